#!/bin/sh
# Whole runs of the tools with several threads: their answers are those of one
# thread, and the thread sanitizer (make test-tsan) finds nothing to report.
. tests/tap.sh
export T0_DEVICE=soft T0_DB="$tmp/t0.db" T0_CACHE="$tmp/cache"
q=$T0_BUILD/t0-qwen3
exits 0 'a tiny model' "$q" make -q -m "$tmp/tiny" --shape tiny

text() {
	"$q" generate -q -m "$tmp/tiny" --ids 5,6,7,8,9 -n "$1" --seed 3 \
		--backend "$2" --threads "$3"
}
for backend in cpu gpu; do
	tokens=24
	[ $backend = cpu ] || tokens=6
	exits 0 "$backend: a text by four threads" text $tokens $backend 4
	cp "$tmp/out" "$tmp/four"
	exits 0 "$backend: and by one" text $tokens $backend 1
	ok "$backend: are the same" cmp -s "$tmp/four" "$tmp/out"
done
exits 0 'a bench of the host' "$q" bench -q -m "$tmp/tiny" --threads 4 \
	--prefill 16 --decode 8 --samples 2
exits 0 'int8' "$q" quantize -q --to int8 "$tmp/tiny" "$tmp/int8" --threads 4
exits 0 'a text of it' "$q" generate -q -m "$tmp/int8" --ids 5,6,7 -n 6 \
	--threads 4
exits 0 'a search on the device in software' "$T0_BUILD/t0-tune" --sizes 64 \
	--budget quick -q
exits 0 'a search on the host' "$T0_BUILD/t0-tune" --device host --sizes 64 \
	--budget quick -q
exits 0 'launches' "$T0_BUILD/t0-probe" dispatch --quick -q
exits 0 'every tier' "$T0_BUILD/t0-probe" tiers -q
plan_done
