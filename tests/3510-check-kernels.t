#!/bin/sh
# Checked mode finds nothing in sound kernels: the end-to-end test of all
# kernels (9210), whose runs fail when --check has a finding, runs under it.
. tests/tap.sh

export T0_SOFT_CHECK=1
exits 0 'all kernels, prebuilt and at -O0, -O2, -O3, are clean' \
	"$T0_BUILD/tests/9210-run-kernels"
is "$(grep -c '^ok ' "$tmp/out" | awk '{ print ($1 >= 40) }')" 1 \
	'and there were kernels'
plan_done
