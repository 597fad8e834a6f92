#!/bin/sh
# What kernels print, as a user of t0-run sees it.
. tests/tap.sh

run="$T0_BUILD/t0-run -q --device soft"
data=tests/data/printf

# shellcheck disable=SC2086 # a program and its options
{
	exits 0 'a kernel of clang prints' $run -g 32 "$data/opencl.co" lanes \
		i32:3
	is "$(grep -c '^lane [012]: ' "$tmp/out")" 3 'its three lanes'
	exits 0 'one of HIP prints, too' $run -g 64 -b 64 "$data/hip.co" hip \
		i32:2 out:64:i32
	has "$tmp/out" 'hip 1 odd -1.500000 4294967296 b     -1' 'by hostcalls'
	exits 0 'one with a ring prints' $run -g 256 -b 256 "$data/ring.co" \
		ring i32:100
	is "$(grep -c '^item [0-9]* line [0-9]* of [0-9.]*$' "$tmp/out")" \
		25600 'all of its lines'
	exits 0 'with --json' $run --json -g 32 "$data/opencl.co" lanes i32:3
	is "$(grep -c '^lane' "$tmp/out")" 0 'they are not in the result'
	is "$(grep -c '^lane' "$tmp/err")" 3 'but on stderr'
}
plan_done
