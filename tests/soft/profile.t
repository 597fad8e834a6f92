#!/bin/sh
# t0-run --profile, --break and --dump-wave, on a kernel whose instructions
# can be counted by hand: hazard.s "clean" has 18, and one wave runs it.
. tests/tap.sh

run="$T0_BUILD/t0-run"
kernel="tests/data/check/hazard.co clean buf:64:u32=iota u64:0"

# shellcheck disable=SC2086 # a file and arguments
exits 0 'a profile is printed' "$run" -q --device soft --profile $kernel
is "$(awk '$3 == "all" { print $1 }' "$tmp/out")" 18 'all are counted'
is "$(awk '$3 == "LDS" { print $1 }' "$tmp/out")" 3 'LDS instructions too'
is "$(awk '/vector memory$/ { print $1 }' "$tmp/out")" 4 'and memory ones'
is "$(grep -c 'hazard.s:[0-9]*)$' "$tmp/out")" 18 \
	'every instruction has its line'
has "$tmp/out" 'clean+0x28        ds_load_b32 v3, v0' 'and its text and place'

# shellcheck disable=SC2086
exits 0 'two waves of two workgroups' "$run" -q --device soft --profile \
	--grid 128 --block 64 $kernel
is "$(awk '$3 == "all" { print $1 }' "$tmp/out")" 72 'count four times'

# shellcheck disable=SC2086
exits 0 'a wave can be looked at' "$run" -q --device soft \
	--break clean+0x18 --dump-wave 0,0,0:0 $kernel
has "$tmp/err" 'workgroup 0,0,0, wave 0 before' 'it says which'
has "$tmp/err" '  v0   00000000 00000004 00000008 0000000c' \
	'v0 has byte offsets'

# shellcheck disable=SC2086
exits 0 'a place that no wave reaches' "$run" -q --device soft \
	--break nowhere+4 $kernel
has "$tmp/err" 'no wave came to nowhere+4' 'is told'

# shellcheck disable=SC2086
exits 2 'cards cannot be watched' "$run" -q --device kfd --profile $kernel
has "$tmp/err" 'need --device soft' 'and the message says what can'
# shellcheck disable=SC2086
exits 2 'no trace without a file' "$run" -q --device soft \
	--trace /nowhere/trace $kernel
# shellcheck disable=SC2086
exits 2 'no workgroup without a trace' "$run" -q --device soft \
	--trace-group 1,0,0 $kernel
plan_done
