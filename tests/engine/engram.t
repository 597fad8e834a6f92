#!/bin/sh
# t0-qwen3 train --engram: a model with a table of runs of words learns, and all
# that opens models gives its texts: in one pass or many, served, speculated.
. tests/tap.sh
unset T0_DB
q=$T0_BUILD/t0-qwen3
head -c 60000 /usr/share/common-licenses/GPL-3 | head -c 34000 >"$tmp/text"
learn() {
	"$q" train -q --data "$tmp/text" --layers 2 --hidden 64 --heads 2 \
		--kv-heads 1 --vocab 300 --length 64 --rows 8 --steps 90 --optimizer muon --rate 0.02 \
		--eval-every 90 --threads 1 "$@"
}
exits 0 'a model learns' learn "$tmp/plain"
exits 0 'and one with a table' learn --engram 1024 "$tmp/m"
has "$tmp/m/config.json" '"t0_engram"' 'which its folder says'
# loss FOLDER: of what was held out.
loss() { tail -n 1 "$1/log.csv" | cut -d, -f 6; }
ok 'it learns more in as many steps' awk "BEGIN {
	exit !($(loss "$tmp/m") < $(loss "$tmp/plain")) }"
diag "held out: $(loss "$tmp/plain"), with a table $(loss "$tmp/m") nats"
# What was held out is the last tenth, in rows of 64.
tail -c 3400 "$tmp/text" >"$tmp/held"
exits 0 'the engine judges the text' "$q" eval -q -m "$tmp/m" -f "$tmp/held" \
	--plain --cache f32 --csv
ok 'much as training did' awk -F, -v loss="$(loss "$tmp/m")" 'NR == 2 {
	d = log($2) - loss; exit !(d < 0.06 && d > -0.06) }' "$tmp/out"

# ---- the same text, however it is computed ----
write() {
	"$q" generate -q -m "$tmp/m" -p 'You may convey a work' -n 40 -g "$@"
}
write >"$tmp/one"
exits 0 'heads learn on it' "$q" train -q --medusa 2 --model "$tmp/m" \
	--data "$tmp/text" --length 64 --steps 10 --rows 4 "$tmp/heads"
for how in '--chunk 1' '--threads 2' '--speculate lookup' "--draft '$tmp/m'" \
	"--heads '$tmp/heads'"; do
	eval "write $how" >"$tmp/other"
	ok "with $how it writes the same" cmp "$tmp/one" "$tmp/other"
done
exits 0 'int8 of it is made' "$q" quantize -q --to int8 "$tmp/m" "$tmp/int8"
exits 0 'and says something' "$q" generate -q -m "$tmp/int8" -p You -n 8 -g

for type in bf16 f16; do
	exits 0 "in $type one learns, too" "$q" train -q --data "$tmp/text" \
		--layers 2 --hidden 32 --heads 1 --kv-heads 1 --vocab 300 \
		--length 32 --rows 2 --steps 4 --threads 1 --engram 64 \
		--precision $type "$tmp/$type"
	exits 0 'and is read' "$q" generate -q -m "$tmp/$type" -p You -n 4 -g
done
exits 0 'adapters leave it as it is' "$q" train -q --data "$tmp/text" \
	--model "$tmp/bf16" --lora 2 --length 32 --rows 2 --steps 2 --threads 1 \
	"$tmp/lora"

# ---- where it cannot be ----
exits 0 'an end is gone on from' learn --engram 1024 --resume "$tmp/m"
exits 2 'but not as another model' learn --engram 512 --resume "$tmp/m"
has "$tmp/err" 'engram' 'which is named'
while IFS='|' read -r what said options; do
	eval "set -- $options"
	exits 2 "$what" learn "$@" "$tmp/none"
	has "$tmp/err" "$said" "$what: says why"
done <<END
no rows|--engram 0 of 2 layers: wanted 1 to|--engram 0
no number|--engram x of 2 layers: wanted 1 to|--engram x
the first layer|--engram 64:0 of 2 layers|--engram 64:0
a layer that is not there|a layer from 1 to 1|--engram 64:2
a table for a model that is there|--engram with --model|--engram 64 --model '$tmp/plain'
a gfx1100|wanted --backend cpu|--engram 64 --backend gpu --device soft --steps 1
END
exits 2 'a GGUF file' "$q" convert -q "$tmp/m" "$tmp/m.gguf"
has "$tmp/err" 'model.engram.table.weight has no place' 'has no place for it'
exits 2 'a card' "$q" generate -q -m "$tmp/m" -p a --backend gpu --device soft
has "$tmp/err" '--backend cpu has' 'has none either'
plan_done
