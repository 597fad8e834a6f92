; x[i] *= 3 for u32 x[n]: by hand, with what a compiler would not write: numeric
; local labels, expressions, and symbols set to registers' worth of numbers.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.amdhsa_code_object_version 5
	.set FACTOR, 1 + 2
	.set SHIFT, 2
	.text
	.globl	triple
	.protected triple
	.p2align 8
	.type	triple,@function
triple:
	s_load_b32 s4, s[0:1], 8		; n
	s_load_b64 s[2:3], s[0:1], 0		; x
	v_lshl_add_u32 v1, s15, 6, v0		// 64 work-items per group
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32 vcc_lo, s4, v1
	s_and_saveexec_b32 s5, vcc_lo
	s_cbranch_execz 1f
	v_lshlrev_b32 v1, SHIFT, v1
	global_load_b32 v2, v1, s[2:3]
	s_waitcnt vmcnt(0)
	v_mul_lo_u32 v2, v2, FACTOR
	global_store_b32 v1, v2, s[2:3]
1:	s_nop 0
	s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
	s_endpgm
.Lend:
	.size	triple, .Lend - triple
	.p2alignl 8, 0xbf9f0000
	.fill	64, 4, 0xbf9f0000

	.rodata
	.p2align 6
	.amdhsa_kernel triple
		.amdhsa_kernarg_size 12
		.amdhsa_user_sgpr_count 15
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr .amdgcn.next_free_vgpr
		.amdhsa_next_free_sgpr .amdgcn.next_free_sgpr
	.end_amdhsa_kernel

	.amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - .name: triple
    .symbol: triple.kd
    .kernarg_segment_size: 12
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 18
    .vgpr_count: 3
    .max_flat_workgroup_size: 64
    .args:
      - .name: x
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .name: n
        .offset: 8
        .size: 4
        .value_kind: by_value
...
	.end_amdgpu_metadata
