#!/bin/sh
# A model says the same on every chip in software and on the processor.
. tests/tap.sh
q=$T0_BUILD/t0-qwen3
m=$tmp/model
unset T0_DB T0_DEVICE
cd "$tmp" || exit

say() { "$q" generate -q -m "$m" --greedy -n 24 --prompt 'The sea is' "$@"; }

exits 0 'a model' "$q" make -q --shape tiny --weights f32 -m "$m"
exits 0 'on the processor' say
cp "$tmp/out" want
for chip in gfx1010 gfx1030 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 \
	gfx1200 gfx1201; do
	exits 0 "on a $chip" say --backend gpu --device "soft:$chip"
	ok 'the same text' cmp want "$tmp/out"
done
exits 0 'shared out to two' say --backend gpu --device soft:gfx1151 --devices 2
ok 'the same text' cmp want "$tmp/out"

# Other weights, and experts: as on a gfx1100.
exits 0 'a mixture' "$q" make -q --shape tiny-moe --weights f32 -m experts
for of in model:bf16 model:int8 experts:int4; do
	m=$tmp/${of%:*}
	exits 0 "$of on a gfx1100" say --backend gpu -w "${of#*:}"
	cp "$tmp/out" want
	for chip in gfx1010 gfx1030 gfx1151 gfx1201; do
		exits 0 "$of on a $chip" say --backend gpu -w "${of#*:}" \
			--device "soft:$chip"
		ok 'the same text' cmp want "$tmp/out"
	done
done
exits 2 'a chip that is not there' say --backend gpu --device soft:gfx1036
has "$tmp/err" 'there is no gfx1036 in software' 'is named, with those that are'
plan_done
