#!/bin/sh
# How a model comes into memory, and whether its weights are what they were.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
m=$tmp/m

exits 0 'a model' "$q" make -q -m "$m" --shape tiny --shards 2
exits 0 'logits' "$q" logits -q -m "$m" --ids 1,2,3 --out "$tmp/mapped"
exits 0 'with --copy' "$q" logits -q -m "$m" --ids 1,2,3 --out "$tmp/copied" \
	--copy
ok 'are the same' cmp "$tmp/mapped" "$tmp/copied"

# ---- checksums ----
exits 2 'nothing to verify with' "$q" info -q -m "$m" --checksum verify
has "$tmp/err" 'checksum store writes it' 'says how to get it'
exits 2 'another word' "$q" info -q -m "$m" --checksum check
has "$tmp/err" 'got checksum "check"; wanted store, verify or none' 'is refused'
exits 0 'checksums are stored' "$q" info -q -m "$m" --checksum store
is "$(wc -l <"$m/weights.xxh128")" 2 'of both files'
exits 0 'they are verified' "$q" generate -q -m "$m" --ids 1 -n 1 -g \
	--checksum verify --copy
if command -v xxh128sum >/dev/null; then
	exits 0 'xxh128sum agrees' sh -c 'cd "$1" && xxh128sum -c weights.xxh128' \
		sh "$m"
else
	skip 'xxh128sum is not installed'
fi
# One bit of the last weight.
f=$m/model-00002-of-00002.safetensors
last=$(tail -c 1 "$f" | od -An -tu1 | tr -d ' ')
head -c -1 "$f" >"$tmp/f"
# shellcheck disable=SC2059 # the byte
printf "\\$(printf '%03o' $((last ^ 1)))" >>"$tmp/f"
mv "$tmp/f" "$f"
exits 2 'a changed bit' "$q" generate -q -m "$m" --ids 1 -n 1 -g \
	--checksum verify
has "$tmp/err" '00002.safetensors: its checksum is ' 'names the file'
has "$tmp/err" 'was changed or is damaged; get it again' 'says what to do'
exits 0 'unasked, it is not looked for' "$q" generate -q -m "$m" --ids 1 -n 1 -g
sed -i 1d "$m/weights.xxh128"
exits 2 'a file without a line' "$q" info -q -m "$m" --checksum verify
has "$tmp/err" 'has no line "HASH  model-00001-of-00002.safetensors"' 'is named'
exits 0 'of a GGUF file' "$q" convert -q "$m" "$tmp/m.gguf"
exits 0 'they are stored' "$q" info -q -m "$tmp/m.gguf" --checksum store
ok 'beside it' test -s "$tmp/m.gguf.xxh128"
exits 0 'and verified' "$q" info -q -m "$tmp/m.gguf" --checksum verify

plan_done
