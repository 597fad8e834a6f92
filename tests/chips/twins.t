#!/bin/sh
# The library's kernels and their twins in OpenCL C by clang-19, both for a chip and
# run on it in software, give the same, but at -O0 in checked mode.  Without T0_SLOW a
# few, each chip's at another level; with it all, at -O0, -O2 and -O3: 153, of which 7
# multiply matrices.
. tests/tap.sh

command -v clang-19 ld.lld-19 >/dev/null 2>&1 ||
	skip_all 'clang-19 or lld-19 is not installed'

# alike CHIP LEVEL TWINS [KERNEL...]: so many at least
alike()
{
	export T0_TEST_CHIP=$1 T0_TEST_LEVEL=$2
	least=$3
	shift 3
	exits 0 "$T0_TEST_CHIP, clang-19 $T0_TEST_LEVEL: ${*:-all twins}" \
		"$T0_BUILD/tests/bench/clang" "$@"
	is "$(awk -v n="$least" '/^clang:/ { print ($2 >= n) }' "$tmp/out")" 1 \
		"$least are alike or more"
}

if [ -n "$T0_SLOW" ]; then
	for chip in gfx1010:146 gfx1030:146 gfx1151:153 gfx1200:153 gfx1201:153; do
		for level in -O0 -O2 -O3; do
			alike ${chip%:*} $level ${chip#*:}
		done
	done
else
	alike gfx1010 -O0 4 swiglu rope
	alike gfx1030 -O3 4 argmax turn_heads
	alike gfx1151 -O2 2 transpose
	alike gfx1201 -O0 2 sum_parts expert_tiles
fi
plan_done
