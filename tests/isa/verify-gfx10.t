#!/bin/sh
# Waits of gfx10, whose counts lie elsewhere than those of gfx11: the verifier and
# checked mode take those that suffice, and find those that do not.  What clang-19
# compiles for a gfx1030 is right.
. tests/tap.sh
. tests/kernel.sh

isa=$T0_BUILD/t0-isa

# kernel VMCNT LGKMCNT: 20 loads, of which the first is used
kernel() {
	kernel_text gfx1030 21 0 "	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v0, 2, v0
	s_waitcnt lgkmcnt($2)
$(seq 20 | sed 's/.*/	global_load_dword v&, v0, s[2:3]/')
	s_waitcnt vmcnt($1)
	v_add_nc_u32_e32 v1, 1, v1
	s_waitcnt vmcnt(0)
	global_store_dword v0, v1, s[2:3]"
}

# look VMCNT LGKMCNT STATUS NAME
look() {
	kernel "$1" "$2" >"$tmp/k.s"
	exits 0 "vmcnt($1), lgkmcnt($2): assembled" \
		"$isa" asm "$tmp/k.s" -o "$tmp/k.co"
	exits "$3" "the verifier on $4" "$isa" verify "$tmp/k.co"
	cp "$tmp/out" "$tmp/verified"
	exits "$3" "checked mode on $4" "$T0_BUILD/t0-run" --check --device \
		soft:gfx1030 "$tmp/k.co" k -b 32 buf:32:u32=1
}

look 19 0 0 'a wait that suffices'
look 20 0 1 'a wait for too few loads'
has "$tmp/verified" 'wait-vmcnt' 'is named'
has "$tmp/err" 'no s_waitcnt for vmcnt lies between' 'and by checked mode'
look 19 1 1 'a wait for too few scalar loads'
has "$tmp/verified" 'wait-lgkmcnt' 'is named'

if command -v clang-19 >/dev/null; then
	for k in saxpy reduce transpose scan sgemm fft; do
		clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
			-mcpu=gfx1030 -nogpulib -O2 \
			"tests/data/kernels/$k.cl" -o "$tmp/$k.co"
		exits 0 "clang-19's $k is right" "$isa" verify "$tmp/$k.co"
	done
fi
plan_done
