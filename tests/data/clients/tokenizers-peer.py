"""Ids and offsets of t0-qwen3 tokenize against those of the tokenizers package.

    tokenizers-peer.py TOOL FOLDER TEXT

The package learns a vocabulary from the text, with Qwen's pattern of words, and
writes it to FOLDER.  Prints a line a check, "good NAME" or "bad NAME", then on stderr how fast both
are, each in turn with the other, of the text 20 times over.
"""
import os
import subprocess
import sys
import tempfile
import time

from tokenizers import (Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, trainers)

WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

tool, model, path = sys.argv[1:]
peer = Tokenizer(models.BPE())
peer.normalizer = normalizers.NFC()
peer.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Split(Regex(WORDS), "isolated"),
     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
peer.decoder = decoders.ByteLevel()
peer.train([path], trainers.BpeTrainer(
    vocab_size=3000, show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
os.makedirs(model, exist_ok=True)
peer.save(model + "/tokenizer.json")
with open(path, encoding="utf-8", newline="") as f:
    text = f.read()


def say(good, name):
    print("good" if good else "bad", name, flush=True)


def run(*more, given=b""):
    return subprocess.run([tool, "tokenize", "-q", "-m", model, *more],
                          check=True, capture_output=True, input=given).stdout


def own_ids(name):
    return [int(word) for word in run(name).split()]


want = peer.encode(text, add_special_tokens=False)
say(len(want.ids) > 1000, "a text of many tokens")
say(own_ids(path) == want.ids, "the same ids")
say(run("--detokenize", given=str(want.ids).encode()).decode() == text,
    "which are the text again")

# Characters to bytes; a token of a part of a character has all of it there.
at = [0]
for c in text:
    at.append(at[-1] + len(c.encode()))
rows = [line.split(b",") for line in
        run("--offsets", path, "--csv").split(b"\n")[1:]]
rows = [(int(r[0]), int(r[1])) for r in rows
        if len(r) > 2 and r[0].isdigit() and r[1].isdigit()]
say(len(rows) == len(want.ids), "an offset for each")
say(all(at[a] <= x and y <= at[b]
        for (x, y), (a, b) in zip(rows, want.offsets)), "within its own")

with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, "long")
    with open(name, "w", encoding="utf-8", newline="") as f:
        f.write(text * 20)
    long = text * 20
    ratios = []
    for _ in range(7):
        a = time.monotonic()
        peer.encode(long, add_special_tokens=False)
        b = time.monotonic()
        run(name)
        c = time.monotonic()
        ratios.append((b - a) / (c - b))
    ratios.sort()
    print(f"{len(long.encode()) / 1e6:.1f} MB: the tool is {ratios[3]:.2f} "
          f"times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}), its start "
          "and the text's way in and out included", file=sys.stderr)
