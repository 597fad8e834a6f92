#!/bin/sh
# The library's kernels and random tile products, compiled for other chips and run
# on them in checked mode: the tests of kernels, with another chip in the place of
# gfx1100.  Without T0_SLOW, one with fewer registers and three of other generations.
. tests/tap.sh

chips='gfx1010 gfx1030 gfx1102 gfx1151 gfx1201'
[ -z "$T0_SLOW" ] || chips='gfx1010 gfx1030 gfx1101 gfx1102 gfx1103 gfx1150
	gfx1151 gfx1200 gfx1201'
for chip in $chips; do
	kernels='elementwise rows move'
	[ $chip != gfx1201 ] || kernels="$kernels gemm"
	[ -z "$T0_SLOW" ] || kernels="$kernels attention decode experts
		expert-tiles gemm stream train train-narrow"
	for t in $kernels; do
		export T0_TEST_CHIP=$chip
		exits 0 "$chip: tests/kernels/$t" "$T0_BUILD/tests/kernels/$t"
		is "$(grep -c '^ok ' "$tmp/out" | awk '{ print ($1 >= 19) }')" 1 \
			'and there were kernels'
	done
done
plan_done
