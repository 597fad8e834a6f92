#!/bin/sh
# t0-qwen3 convert, and models in GGUF files on the command line.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/tiny
exits 0 'a tiny model' scripts/make-model "$m"
exits 0 'its file' "$q" convert -q "$m" "$tmp/a.gguf"
exits 0 'info' "$q" info -m "$tmp/a.gguf"
has "$tmp/out" '143808' 'counts its parameters'
has "$tmp/out" 'there' 'and finds the tokenizer'

# ---- what is there already is not made again ----
# again WHAT 1|0 [OPTION...]: is it said that there is nothing to do?
again() {
	what=$1 said=$2 before=$(stat -c %i "$tmp/b.gguf")
	shift 2
	sleep 0.1
	exits 0 "$what" "$q" convert "$m" "$tmp/b.gguf" "$@"
	is "$(grep -c 'b.gguf is newer.*nothing to do$' "$tmp/err")" "$said" \
		"$what: says so, or nothing of it"
	is "$([ "$(stat -c %i "$tmp/b.gguf")" = "$before" ] && echo 1 ||
		echo 0)" "$said" "$what: the file is left, or another"
	ok "$what: holds what it should" cmp "$tmp/b.gguf" "$tmp/want.gguf"
}
# want [OPTION...]: what a conversion into a new file gives
want() {
	rm -f "$tmp/want.gguf"
	"$q" convert -q "$m" "$tmp/want.gguf" "$@"
}
want
cp "$tmp/want.gguf" "$tmp/b.gguf"
again 'the same again' 1
want --type q8_0
again 'another type' 0 --type q8_0
again 'that type again' 1 --type q8_0
want
again 'no type' 0
cp -r "$m" "$tmp/tiny.old"
sed -i 's/"temperature": [0-9.]*/"temperature": 0.25/' \
	"$m/generation_config.json"
want
again 'a file that was changed' 0
cp -p "$tmp/tiny.old/generation_config.json" "$m/generation_config.json"
want
again 'a file that is old, but put there anew' 0
head -c 60000 "$tmp/want.gguf" >"$tmp/b.gguf"
again 'half a file' 0
exits 0 'a folder' "$q" convert -q "$tmp/b.gguf" "$tmp/folder"
sleep 0.1
exits 0 'the folder again' "$q" convert "$tmp/b.gguf" "$tmp/folder"
has "$tmp/err" 'of these types: nothing to do' 'says so, too'
rm "$tmp/folder/config.json"
exits 0 'a folder that lacks a file' "$q" convert "$tmp/b.gguf" "$tmp/folder"
ok 'gets it' [ -s "$tmp/folder/config.json" ]
rm "$tmp/folder/tokenizer.json"
exits 0 'or its tokenizer' "$q" convert "$tmp/b.gguf" "$tmp/folder"
ok 'gets that' [ -s "$tmp/folder/tokenizer.json" ]

# logits WHERE OUT [OPTION...]
logits() {
	where=$1 out=$2
	shift 2
	exits 0 "logits of $(basename "$where") $*" "$q" logits -q -m "$where" \
		--ids 1,2,3 --out "$out" "$@"
}
logits "$m" "$tmp/1"
logits "$tmp/a.gguf" "$tmp/2"
ok 'are the same bits' cmp "$tmp/1" "$tmp/2"

# Ours and theirs of the same numbers.
for type in int8:q8_0 int4:q4_0; do
	ours=${type%:*} theirs=${type#*:}
	exits 0 "$ours" "$q" quantize -q --to "$ours" "$m" "$tmp/$ours"
	exits 0 'as a file' "$q" convert -q "$tmp/$ours" "$tmp/$ours.gguf"
	exits 0 'info' "$q" info -m "$tmp/$ours.gguf"
	has "$tmp/out" "$theirs" "is $theirs"
	logits "$tmp/$ours" "$tmp/1"
	logits "$tmp/$ours.gguf" "$tmp/2" -w "$ours"
	ok 'which is the same again' cmp "$tmp/1" "$tmp/2"
	logits "$tmp/$ours" "$tmp/1" --backend gpu --device soft
	logits "$tmp/$ours.gguf" "$tmp/2" --backend gpu --device soft
	ok 'on the gfx1100, too' cmp "$tmp/1" "$tmp/2"
done

# Rows of 64 are no blocks of 256; other types become f16 on the gfx1100.
exits 0 'q4_k' "$q" convert -q "$m" "$tmp/k.gguf" --type q4_k
exits 0 'info' "$q" info -m "$tmp/k.gguf"
has "$tmp/out" 'q5_0' 'of narrow rows is q5_0'
exits 0 'on the gfx1100' "$q" logits -m "$tmp/k.gguf" --ids 1,2,3 \
	--out "$tmp/1" --backend gpu --device soft
has "$tmp/err" 'Q5_0 as f16: --backend gpu takes' 'is told what it becomes'
logits "$tmp/k.gguf" "$tmp/2" -w f16 --backend gpu --device soft
ok 'and that it is' cmp "$tmp/1" "$tmp/2"

exits 0 'a text' "$q" generate -q -m "$m" -p 'This License' -n 5 -g
cp "$tmp/out" "$tmp/text"
exits 0 'from a file' "$q" generate -q -m "$tmp/a.gguf" -p 'This License' \
	-n 5 -g
ok 'is the same' cmp "$tmp/out" "$tmp/text"
exits 0 'check' "$q" check -m "$tmp/a.gguf" -p 'Yes, it is.'
exits 0 'bench' "$q" bench -q -m "$tmp/k.gguf" --db "$tmp/q.db" --prefill 16 \
	--decode 4 --samples 1
exits 0 'eval of blocks made on loading' "$q" eval -q -m "$tmp/a.gguf" \
	-w q4_1 --ids 1,2,3
exits 0 'forecast' "$q" forecast -q -m "$tmp/a.gguf" --context 64 --prefill 16

# The template of conversations goes with it.
printf '{"chat_template": "{%% for m in messages %%}\\u00e9"}' \
	>"$m/tokenizer_config.json"
exits 0 'with a template' "$q" convert -q "$m" "$tmp/t.gguf"
exits 0 'and back' "$q" convert -q "$tmp/t.gguf" "$tmp/t"
has "$tmp/t/tokenizer_config.json" '{% for m in messages %}é' 'it is kept'

# ---- what is refused ----
refuses() {
	what=$1 said=$2
	shift 2
	exits 2 "$what" "$q" "$@"
	has "$tmp/err" "$said" "$what: says why"
}
refuses 'a folder into a folder' 'a GGUF file at one end' convert "$m" \
	"$tmp/x"
refuses 'a file into itself' 'are the same' convert "$tmp/a.gguf" \
	"$tmp/a.gguf"
refuses 'blocks in a folder' 'wanted f32, f16 or bf16' convert "$tmp/a.gguf" \
	"$tmp/x" --type q8_0
refuses 'ours in a file' 'wanted f32, f16 or bf16' convert "$m" "$tmp/x.gguf" \
	--type int8
refuses 'an unknown type' 'q5_k, q4_k' convert "$m" "$tmp/x.gguf" --type q9
refuses 'a model that is not there' 'config.json' convert "$tmp/none" \
	"$tmp/x.gguf"
refuses 'a folder that cannot be' 'cannot be written' convert "$m" \
	"$tmp/none/x.gguf"
refuses 'a forecast of blocks' 'no kernels for it' forecast --shape tiny \
	--weights q4_k
refuses 'quantize to blocks' 'int8 or int4' quantize --to q4_k "$m" "$tmp/x"
refuses 'quantize of a file' 't0-qwen3 convert' quantize -q --to int8 \
	"$tmp/a.gguf" "$tmp/x"
refuses 'a cache of blocks' 'type "q4_0" of a cache' generate -m "$m" --ids 1 \
	--cache q4_0
refuses 'rows that are no blocks' 'q6_k needs a multiple of 256' info -m "$m" \
	-w q6_k
head -c 100000 "$tmp/a.gguf" >"$tmp/short.gguf"
refuses 'half a file' 'short.gguf: tensor' info -m "$tmp/short.gguf"
sed 's/qwen3.block_count/qwen3.block_kount/' "$tmp/a.gguf" >"$tmp/key.gguf"
refuses 'a missing key' 'key qwen3.block_count is missing' info \
	-m "$tmp/key.gguf"
sed 's/qwen3/qwen9/' "$tmp/a.gguf" >"$tmp/arch.gguf"
refuses 'another architecture' 'this engine knows only Qwen3 models' info \
	-m "$tmp/arch.gguf"
sed 's/blk.1.attn_q.weight/blk.1.attn_x.weight/' "$tmp/a.gguf" \
	>"$tmp/name.gguf"
refuses 'a tensor of another name' 'model.layers.1.self_attn.q_proj' info \
	-m "$tmp/name.gguf"
LC_ALL=C sed 's/\(tokenizer.ggml.pre........\{4\}[^q]*\)qwen2/\1llama/' \
	"$tmp/a.gguf" >"$tmp/pre.gguf"
refuses 'another tokenizer' 'tokenizer.ggml.pre is not' generate \
	-m "$tmp/pre.gguf" -p x
echo 'no model' >"$tmp/text.gguf"
refuses 'a text' 'begins with' info -m "$tmp/text.gguf"
plan_done
