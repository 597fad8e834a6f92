#!/bin/sh
# Checked mode on a gfx1010: operations between two places of LDS have both.

. tests/tap.sh
. tests/kernel.sh

bin=$T0_BUILD
unset T0_DEVICE

# kernel BODY: v0 is four times the lane, s[2:3] where v2 is stored
kernel() {
	kernel_text gfx1010 8 1024 "	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v0, 2, v0
	v_mov_b32_e32 v1, 1
	s_waitcnt lgkmcnt(0)
$1
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v0, v2, s[2:3]"
}

# run LANES BODY
run() {
	kernel "$2" >"$tmp/k.s"
	"$bin/t0-isa" asm "$tmp/k.s" -o "$tmp/k.co" &&
		"$bin/t0-run" --check --device soft:gfx1010 -g "$1" -b "$1" \
			"$tmp/k.co" k out:64:u32 >"$tmp/out" 2>&1
}

first='	ds_write_b32 v0, v0'
second='	ds_write_b32 v0, v1 offset:128
	s_waitcnt lgkmcnt(0)'
op='	s_waitcnt lgkmcnt(0)
	ds_add_src2_u32 v0 offset:32'
run 32 "$first
$second
$op"
is "$?" 0 'both places are written: nothing is found'
has "$tmp/out" '1 5 9 13' 'and the sums are right'
for b in "$first
$op" "$second
$op"; do
	run 32 "$b"
	is "$?" 1 'one of them is not'
	has "$tmp/out" 'uninitialised' 'which is said'
done
run 32 "$second
	ds_write_src2_b32 v0 offset:32"
is "$?" 0 'what is copied over needs no value'
run 32 "	ds_write_src2_b32 v0 offset:32"
is "$?" 1 'what is copied does'
run 64 "$first
$op"
is "$?" 1 'another wave writes the second place'
has "$tmp/out" 'race: ' 'which is a race'
plan_done
