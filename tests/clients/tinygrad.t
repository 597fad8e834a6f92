#!/bin/sh
# tinygrad as it comes from Python's package index, through /dev/kfd: its PM4
# and its AQL queues, its copies, what its LLVM backend compiles.
. tests/clients/clients.sh

fetched tinygrad
/sbin/ldconfig -p | grep -q libLLVM ||
	skip_all 'tinygrad needs libLLVM, which is not installed (libllvm19)'
CACHEDB=$tmp/tinygrad.db DEV=AMD
export CACHEDB DEV
python=$part/bin/python

for queue in PM4 AQL; do
	exits 0 "with $queue queues it runs" env \
		AMD_AQL="$([ $queue = PM4 ]; echo $?)" timeout -k 5 120 \
		"$soft" run -- "$python" tests/data/clients/tinygrad-client.py
	lines "$tmp/out"
	is "$(grep -c . "$tmp/out")" 11 'all of it'
	is "$(grep 't0-soft' "$tmp/err")" '' 'nothing was refused'
done
plan_done
