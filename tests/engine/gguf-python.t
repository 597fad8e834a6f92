#!/bin/sh
# GGUF files and the published Python package `gguf`: the values of random
# blocks of every type are the same, to the bit; files of ours are read as they
# are meant, and theirs by us; blocks of ours lie no further from the weights.
. tests/tap.sh
python3 -c 'import gguf' 2>/dev/null ||
	skip_all 'no Python package gguf (pip install gguf): blocks are compared with tests/ref alone'

cat >"$tmp/blocks.py" <<'END'
import subprocess, sys
import gguf, numpy as np
from gguf.quants import dequantize
np.seterr(all="ignore")
name, program = sys.argv[1:]
kind = gguf.GGMLQuantizationType[name]
values, size = gguf.GGML_QUANT_SIZES[kind]
raw = np.random.default_rng(2612).integers(0, 256, (2000, size), np.uint8)
want = dequantize(raw, kind).astype(np.float32).ravel()
out = subprocess.run([program, name.lower()], input=raw.tobytes(),
                     stdout=subprocess.PIPE, check=True).stdout
got = np.frombuffer(out, np.float32)
assert got.size == 2000 * values, got.size
same = got.view(np.uint32) == want.view(np.uint32)
same |= np.isnan(got) & np.isnan(want)
if not same.all():
    i = int(np.argmin(same))
    sys.exit(f"{(~same).sum()} differ; value {i}: {got[i]}, wanted {want[i]}")
END
for type in Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 IQ4_NL MXFP4 Q6_K Q5_K Q4_K IQ4_XS Q3_K \
	Q2_K; do
	exits 0 "2000 blocks of $type" python3 "$tmp/blocks.py" $type \
		"$T0_BUILD/tests/engine/blocks"
done

# reads WHAT FILE FOLDER: the tensors of a file are those of the folder of f32.
cat >"$tmp/reads.py" <<'END'
import json, sys
import gguf, numpy as np
from gguf.quants import dequantize
file, folder = sys.argv[1:]
with open(folder + "/model.safetensors", "rb") as f:
    head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    data = f.read()
r = gguf.GGUFReader(file)
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, 99)
theirs = {t.name: t for t in r.tensors}
assert len(theirs) == len(head), (len(theirs), len(head))
for name, info in head.items():
    t = theirs[names.get_name(name, try_suffixes=(".weight",))]
    a, b = info["data_offsets"]
    ours = np.frombuffer(data[a:b], np.float32)
    value = t.data if t.tensor_type == 0 else dequantize(t.data, t.tensor_type)
    assert list(reversed(t.shape.tolist())) == info["shape"], name
    assert (value.ravel().view(np.uint32) == ours.view(np.uint32)).all(), name
want = {"qwen3.block_count": 2, "qwen3.embedding_length": 64,
        "general.architecture": "qwen3", "tokenizer.ggml.pre": "qwen2",
        "qwen3.attention.key_length": 32}
for key, value in want.items():
    assert r.fields[key].contents() == value, key
assert len(r.fields["tokenizer.ggml.tokens"].contents()) == 512
END
q=$T0_BUILD/t0-qwen3
exits 0 'a model' scripts/make-model "$tmp/tiny"
for type in f16 bf16 q8_0 q4_1 q5_0 mxfp4; do
	exits 0 "as a file of $type" "$q" convert -q "$tmp/tiny" \
		"$tmp/$type.gguf" --type $type
	exits 0 'as a folder' "$q" convert -q "$tmp/$type.gguf" "$tmp/f32" \
		--type f32
	exits 0 'and as Python reads it' python3 "$tmp/reads.py" \
		"$tmp/$type.gguf" "$tmp/f32"
done

# A file of theirs is read and written again: other keys, the same tensors.
cat >"$tmp/writes.py" <<'END'
import sys
import gguf
r = gguf.GGUFReader(sys.argv[1])
w = gguf.GGUFWriter(sys.argv[2], "qwen3")
for key, f in r.fields.items():
    if not key.startswith("GGUF.") and key != "general.architecture":
        w.add_key_value(key, f.contents(), f.types[0],
                        f.types[1] if len(f.types) > 1 else None)
w.add_custom_alignment(128)
w.add_name("theirs")
for t in r.tensors:
    w.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
END
exits 0 'a file of theirs' python3 "$tmp/writes.py" "$tmp/q4_1.gguf" \
	"$tmp/theirs.gguf"
exits 0 'is read' "$q" convert -q "$tmp/theirs.gguf" "$tmp/ours.gguf"
ok 'and the same' cmp "$tmp/ours.gguf" "$tmp/q4_1.gguf"

# errors TYPE: our squared error by theirs, of random weights.
cat >"$tmp/errors.py" <<'END'
import subprocess, sys
import gguf, numpy as np
from gguf.quants import dequantize, quantize
name, program = sys.argv[1:]
kind = gguf.GGMLQuantizationType[name]
x = np.random.default_rng(2612).standard_normal((64, 1024), np.float32)
out = subprocess.run([program, "pack", name.lower()], input=x.tobytes(),
                     stdout=subprocess.PIPE, check=True).stdout
ours = dequantize(np.frombuffer(out, np.uint8).reshape(64, -1), kind)
theirs = dequantize(quantize(x, kind), kind)
ratio = ((ours - x) ** 2).sum() / ((theirs - x) ** 2).sum()
print(f"squared error: {ratio:.4f} of theirs")
sys.exit(int(ratio > 1.0001))
END
for type in Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 MXFP4; do
	exits 0 "$type made here is no worse" python3 "$tmp/errors.py" $type \
		"$T0_BUILD/tests/engine/blocks"
	diag "$type: $(cat "$tmp/out")"
done
plan_done
