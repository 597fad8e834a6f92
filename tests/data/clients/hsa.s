/*
 * out[i] = value + i, workgroups of 64, for hsa.c:
 *	llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj \
 *		--amdhsa-code-object-version=4 hsa.s -o hsa.o
 *	ld.lld-19 -shared hsa.o -o hsa.co && llvm-strip-19 --strip-all hsa.co
 */
	.text
	.globl fill
	.p2align 8
	.type fill,@function
fill:
	s_load_b64 s[4:5], s[0:1], 0x0
	s_load_b32 s6, s[0:1], 0x8
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshl_add_u32 v1, s2, 6, v0
	v_lshlrev_b32_e32 v2, 2, v1
	s_waitcnt lgkmcnt(0)
	v_add_nc_u32_e32 v3, s6, v1
	global_store_b32 v2, v3, s[4:5]
	s_endpgm
	.size fill, .-fill
	.section .rodata,"a"
	.p2align 6
	.amdhsa_kernel fill
		.amdhsa_kernarg_size 16
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 8
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version: [1, 1]
amdhsa.kernels:
  - .name: fill
    .symbol: fill.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 8
    .max_flat_workgroup_size: 1024
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 4, .value_kind: by_value}
...
	.end_amdgpu_metadata
