#!/bin/sh
# Kernels of clang's for gfx1201, at all levels, run right and are clean in checked
# mode, as tests/soft/check-kernels.t has it of gfx1100.
. tests/tap.sh

if [ -z "$T0_SLOW" ]; then
	skip 'kernels of other chips: T0_SLOW is not set'
	plan_done
	exit
fi
export T0_SOFT_CHECK=1
for chip in gfx1200 gfx1201; do
	for t in tests/tools/run-kernels tests/tools/run-programs; do
		export T0_TEST_CHIP=$chip
		exits 0 "$chip: $t" "$T0_BUILD/$t"
		is "$(grep -c '^ok ' "$tmp/out" | awk '{ print ($1 >= 40) }')" \
			1 'and there were kernels'
	done
done
plan_done
