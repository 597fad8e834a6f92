#!/bin/sh
# Checked mode finds nothing in sound kernels: the end-to-end tests of all
# kernels (tests/tools) run under it; they fail when --check has a finding.
# T0_SLOW=1 has them at every level that clang compiles at, otherwise it is one.
. tests/tap.sh

export T0_SOFT_CHECK=1
[ -n "${T0_SLOW-}" ] || export T0_TEST_LEVEL=-O0
for t in tests/tools/run-kernels tests/tools/run-programs; do
	exits 0 "$t: all kernels, prebuilt and compiled now, are clean" \
		"$T0_BUILD/$t"
	is "$(grep -c '^ok ' "$tmp/out" | awk '{ print ($1 >= 40) }')" 1 \
		'and there were kernels'
done
plan_done
