; A loop of 10 trips less s2: no operands, no waits.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	loop
	.p2align 8
	.type	loop,@function
loop:
	v_add_f32 v1, v1, v2
	s_add_u32 s2, s2, 1
	s_cmp_lt_u32 s2, 10
	s_cbranch_scc1 loop
	s_endpgm
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel loop
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 16
		.amdhsa_user_sgpr_count 2
	.end_amdhsa_kernel
