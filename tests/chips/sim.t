#!/bin/sh
# The simulator on code of other chips: gfx1010's operations between two places
# of LDS meet the banks of both.
. tests/tap.sh
. tests/kernel.sh

# cycles ADDRESS OFFSET: of such an operation, v0 the lane
cycles() {
	kernel_text gfx1010 8 8192 "	$1
	ds_add_src2_u32 v1 offset:$2
	s_waitcnt lgkmcnt(0)" >"$tmp/k.s"
	"$T0_BUILD/t0-isa" asm "$tmp/k.s" -o "$tmp/k.co" &&
		"$T0_BUILD/t0-sim" -q --json "$tmp/k.co" k |
		sed -n 's/.*"cycles": *\([0-9]*\).*/\1/p' | head -n 1
}

apart=$(cycles 'v_lshlrev_b32_e32 v1, 2, v0' 512)
one=$(cycles 'v_lshlrev_b32_e32 v1, 7, v0' 512)
ok "a bank for each lane, $apart cycles, or one for all, $one" \
	[ "$one" -ge $((apart + 31)) ]
own=$(cycles 'v_lshl_or_b32 v1, v0, 22, 0x20000' 32768)
ok "where the address has the second place, its bank counts, too: $own" \
	[ "$own" -ge $((apart + 31)) ]
plan_done
