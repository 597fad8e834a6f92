#!/bin/sh
# What gfx1010 does not interlock: the verifier finds each hazard by its name and
# takes the code when it is mended.  What clang-19 compiles for a gfx1010 is right,
# and wrong without any one of the instructions by which it mends it.
. tests/tap.sh
. tests/kernel.sh

isa=$T0_BUILD/t0-isa

# kernel BODY: s[2:3] is a pointer that was loaded, v0 an offset
kernel() {
	kernel_text gfx1010 8 1024 "	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v0, 2, v0
	v_mov_b32_e32 v1, 1
	s_waitcnt lgkmcnt(0)
$1"
}

# look NAME RULE BODY: RULE is found, or nothing where it is "none"
look() {
	kernel "$3" >"$tmp/k.s"
	exits 0 "$1: assembled" "$isa" asm "$tmp/k.s" -o "$tmp/k.co"
	if [ "$2" = none ]; then
		exits 0 "$1: taken" "$isa" verify "$tmp/k.co"
	else
		exits 1 "$1: refused" "$isa" verify "$tmp/k.co"
		has "$tmp/out" "$2" 'by its name'
	fi
}

store='	global_store_dword v0, v1, s[2:3]'
look 'a pointer is overwritten while a store reads it' hazard-vmem-sgpr "$store
	s_mov_b32 s2, 0"
look 'behind a wait for its source' none "$store
	s_waitcnt_depctr 0xffe3
	s_mov_b32 s2, 0"
look 'behind a vector instruction' none "$store
	v_mov_b32_e32 v2, 0
	s_mov_b32 s2, 0"
look 'a wait for other counters' hazard-vmem-sgpr "$store
	s_waitcnt_depctr 0xfffe
	s_mov_b32 s2, 0"
look 'EXEC, which every store reads' hazard-vmem-sgpr "$store
	s_mov_b32 exec_lo, 1"
look 'a scalar load overwrites it' hazard-vmem-sgpr "$store
	s_load_dword s2, s[0:1], 0x0
	s_waitcnt lgkmcnt(0)"
look 'another register' none "$store
	s_mov_b32 s4, 0"

# Operations between two places of LDS, of which there are 1024 bytes.
wait='
	s_waitcnt lgkmcnt(0)'
look 'the second place 255 dwords on' none \
	"	v_mov_b32_e32 v2, 0
	ds_add_src2_u32 v2 offset:255$wait"
look 'and one dword more' lds-budget \
	"	v_mov_b32_e32 v2, 0
	ds_add_src2_u32 v2 offset:256$wait"
look 'it has 64 bits' lds-budget \
	"	v_mov_b32_e32 v2, 0
	ds_add_src2_u64 v2 offset:255$wait"
look 'it lies two dwords before' none \
	"	v_mov_b32_e32 v2, 8
	ds_max_src2_i32 v2 offset:0x7ffe$wait"
look 'the address says where' none \
	"	v_mov_b32_e32 v2, 0x20008
	ds_max_src2_i32 v2 offset:0x8100$wait"
look 'the first place beyond the end' lds-budget \
	"	v_mov_b32_e32 v2, 0x400
	ds_write_src2_b32 v2 offset:0x7ffe$wait"

load='	s_load_dword s4, s[2:3], 0x0'
lane='	v_readfirstlane_b32 s2, v1'
look 'the base of a scalar load, by the vector unit' hazard-smem-sgpr "$load
$lane
	s_waitcnt lgkmcnt(0)"
look 'behind a scalar instruction' none "$load
	s_mov_b32 null, 0
$lane
	s_waitcnt lgkmcnt(0)"
look 'behind a wait for it' none "$load
	s_waitcnt lgkmcnt(0)
$lane"
look 'behind one that waits for nothing' hazard-smem-sgpr "$load
	s_nop 3
	s_waitcnt vmcnt(0)
$lane
	s_waitcnt lgkmcnt(0)"

look 'v_cmpx behind a store' hazard-cmpx-exec "$store
	v_cmpx_gt_u32_e32 8, v0"
look 'behind a wait' none "$store
	s_waitcnt_depctr 0xfffe
	v_cmpx_gt_u32_e32 8, v0"
look 'behind a vector write of a mask' none "$store
	v_cmp_gt_u32_e32 vcc_lo, 8, v0
	v_cmpx_gt_u32_e32 8, v0"

lds='	ds_write_b32 v0, v1'
branch='	v_cmp_gt_u32_e32 vcc_lo, 8, v0
	s_cbranch_vccz .Lover
	v_mov_b32_e32 v2, 0
.Lover:'
look 'LDS, a branch, a store' hazard-lds-branch "$lds
$branch
$store"
look 'a store, a branch, LDS' hazard-lds-branch "$store
$branch
$lds"
look 'with a wait for stores' none "$store
$branch
	s_waitcnt_vscnt null, 0x0
$lds"
look 'without a branch' none "$store
$lds"
look 'with stores on both sides' none "$lds
$store
$branch
$store"

far=$(i=0; while [ $i -lt 63 ]; do echo '	s_nop 0'; i=$((i + 1)); done)
look 'a branch by 0x3f' hazard-branch-offset "	v_cmp_gt_u32_e32 vcc_lo, 8, v0
	s_cbranch_vccz .Lover
$far
.Lover:"
look 'by one more' none "	v_cmp_gt_u32_e32 vcc_lo, 8, v0
	s_cbranch_vccz .Lover
	s_nop 0
$far
.Lover:"

if command -v clang-19 >/dev/null; then
	all=0 found=0
	for k in counters reduce gemv solve scan fft; do
		clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
			-mcpu=gfx1010 -nogpulib -O2 \
			"tests/data/kernels/$k.cl" -S -o "$tmp/$k.s"
		"$isa" asm "$tmp/$k.s" -o "$tmp/$k.co"
		exits 0 "clang-19's $k is right" "$isa" verify "$tmp/$k.co"
		for n in $(grep -n 's_waitcnt_depctr 0xffe3' "$tmp/$k.s" |
			cut -d: -f1); do
			sed "${n}s/s_waitcnt_depctr.*/s_nop 0/" "$tmp/$k.s" \
				>"$tmp/k.s"
			"$isa" asm "$tmp/k.s" -o "$tmp/k.co"
			"$isa" verify "$tmp/k.co" >"$tmp/out" 2>&1
			all=$((all + 1))
			! grep -q hazard-vmem-sgpr "$tmp/out" ||
				found=$((found + 1))
		done
	done
	is "$found" "$all" 'each wait of clang-19 is missed'
	ok 'and there were some' test "$all" -ge 20
fi
plan_done
