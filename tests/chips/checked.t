#!/bin/sh
# Checked mode on a gfx1010: operations between two places of LDS have both.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

bin=${T0_BUILD:-build/rel}
unset T0_DEVICE

# kernel BODY: v0 is four times the lane, s[2:3] where v2 is stored
kernel() {
	cat <<EOF
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1010"
	.amdhsa_code_object_version 5
	.text
	.globl k
	.p2align 8
	.type k,@function
k:
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v0, 2, v0
	v_mov_b32_e32 v1, 1
	s_waitcnt lgkmcnt(0)
$1
	s_waitcnt lgkmcnt(0)
	ds_read_b32 v2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v0, v2, s[2:3]
	s_endpgm
.Lend:
	.size k, .Lend-k
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_kernarg_size 8
		.amdhsa_group_segment_fixed_size 1024
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 8
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
        .name: x
    .group_segment_fixed_size: 1024
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 64
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: k.kd
    .vgpr_count: 8
    .wavefront_size: 32
amdhsa.target: amdgcn-amd-amdhsa--gfx1010
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
EOF
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
