# An object without metadata, whose data wants every relocation that a linker
# leaves to the loader: ABS64 with and without addend, an undefined weak symbol
# and RELATIVE64.  k.kd is found by its symbol alone.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	k
	.p2align 8
	.type	k,@function
k:
	s_endpgm
	.size k, .-k
	.amdhsa_code_object_version 5
	.rodata
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 1
		.amdhsa_next_free_sgpr 1
		.amdhsa_kernarg_size 8
	.end_amdhsa_kernel
	.data
	.globl there
	.weak maybe
	.p2align 3
table:
	.quad there
	.quad there+16
	.quad maybe
	.quad table
	.quad 0
there:
	.quad 0x1122334455667788
	.size there, 8
	.type there,@object
