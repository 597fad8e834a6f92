# Sourced by tests that assemble a small kernel of their own.
# shellcheck shell=sh

# kernel_text CHIP VGPRS LDS CODE: the kernel k(buffer), s[0:1] its arguments.
kernel_text() {
	cat <<END
	.amdgcn_target "amdgcn-amd-amdhsa--$1"
	.amdhsa_code_object_version 5
	.text
	.globl k
	.p2align 8
	.type k,@function
k:
$4
	s_endpgm
.Lend:
	.size k, .Lend-k
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_kernarg_size 8
		.amdhsa_group_segment_fixed_size $3
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr $2
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
    .group_segment_fixed_size: $3
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 1024
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: k.kd
    .vgpr_count: $2
    .wavefront_size: 32
amdhsa.target: amdgcn-amd-amdhsa--$1
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
END
}
