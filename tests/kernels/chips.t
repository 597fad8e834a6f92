#!/bin/sh
# The library's kernels, compiled for other chips and run on them in checked
# mode: the tests of kernels, with another chip in the place of gfx1100.
. tests/tap.sh

for chip in gfx1101 gfx1102 gfx1103; do
	for t in elementwise rows move; do
		export T0_TEST_CHIP=$chip
		exits 0 "$chip: tests/kernels/$t" "$T0_BUILD/tests/kernels/$t"
	done
done
is "$(grep -c '^ok ' "$tmp/out" | awk '{ print ($1 >= 20) }')" 1 \
	'and there were kernels'
plan_done
