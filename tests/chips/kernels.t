#!/bin/sh
# The end-to-end tests of all kernels that a chip can express, compiled for it by
# clang-19, in checked mode on the chip in software.  Without T0_SLOW the smaller
# ones, each chip's at another level.
. tests/tap.sh

command -v clang-19 ld.lld-19 llvm-strip-19 llvm-mc-19 >/dev/null 2>&1 ||
	skip_all 'clang-19, lld-19 or llvm-19 is not installed'
export T0_SOFT_CHECK=1
programs=tests/tools/run-kernels
chips='gfx1010:-O3 gfx1030:-O2 gfx1151:-O0 gfx1201:-O3'
least=15
if [ -n "$T0_SLOW" ]; then
	programs="$programs tests/tools/run-programs"
	chips='gfx1010 gfx1030 gfx1151 gfx1200 gfx1201'
	least=60
fi
for of in $chips; do
	[ -n "$T0_SLOW" ] || export T0_TEST_LEVEL=${of#*:}
	export T0_TEST_CHIP=${of%:*}
	for t in $programs; do
		exits 0 "$of: $t" "$T0_BUILD/$t"
		is "$(grep -v SKIP "$tmp/out" | grep -c '^ok ' |
			awk -v n=$least '{ print ($1 >= n) }')" 1 \
			'and there were kernels'
	done
done
plan_done
