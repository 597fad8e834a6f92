#!/bin/sh
# A model that T0 has trained: both backends go on with its text in the same
# words, and what quantising costs it is known in bits of a text that it has not
# seen; random weights would not tell.
. tests/tap.sh
. tests/engine/learnt.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
learnt_model
tail -c 1500 "$learnt_text" >"$tmp/held"

# go_on NAME OPTION...: what follows, greedily, in $tmp/NAME.
go_on() {
	name=$1
	shift
	exits 0 "$name goes on" "$q" generate -q -g -p 'You may convey' -n 12 "$@"
	cp "$tmp/out" "$tmp/$name"
}
# bits MODEL OPTION...: per token of what is held out, in $bits.
bits() {
	exits 0 "bits of $*" "$q" eval -q -f "$tmp/held" --csv -m "$@"
	bits=$(sed -n 2p "$tmp/out" | tr -d '\r' | cut -d, -f3)
}
# worse LEAST MOST WHAT: $bits over those of f32, less 1.
worse() {
	diag "$3: $bits bits per token, $whole of f32"
	ok "$3: worse by $1 to $2" awk "BEGIN { x = $bits / $whole - 1
		exit !(x >= $1 && x <= $2) }"
}

go_on cpu -m "$learnt"
go_on gpu -m "$learnt" --backend gpu --device soft
ok 'both backends say the same' cmp -s "$tmp/cpu" "$tmp/gpu"
ok 'words of the text' grep -q -w -E 'the|a|of|this|work|License' "$tmp/cpu"

bits "$learnt" -w f32
whole=$bits
# A guess among 600 tokens has 9.2 bits.
ok 'it knows the text that it has not seen' \
	awk "BEGIN { exit !($whole > 2 && $whole < 6.5) }"
bits "$learnt" -w bf16
worse -.005 .005 bf16
for to in int8:.01 int4:.15; do
	most=${to#*:} to=${to%:*}
	exits 0 "to $to" "$q" quantize -q --to "$to" "$learnt" "$tmp/$to.dir"
	bits "$tmp/$to.dir"
	worse -.005 "$most" "$to"
	made=$bits
	go_on "$to" -m "$tmp/$to.dir"
	go_on "$to-gpu" -m "$tmp/$to.dir" --backend gpu --device soft
	ok "$to: both backends say the same" cmp -s "$tmp/$to" "$tmp/$to-gpu"
	exits 0 "$to, a file" "$q" convert -q "$tmp/$to.dir" "$tmp/$to.gguf"
	bits "$tmp/$to.gguf"
	ok "$to: the file knows as much" awk "BEGIN { d = $bits / $made - 1
		exit !(d < 1e-4 && d > -1e-4) }"
done
ok 'four bits cost more than eight' awk "BEGIN { exit !($made > $whole) }"
bits "$learnt" --cache int8 -w f32
worse -.005 .01 'a cache of int8'
plan_done
