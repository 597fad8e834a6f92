#!/bin/sh
# LDS that no argument names: t0-run --lds, and what happens without it.
. tests/tap.sh
isa=$T0_BUILD/t0-isa
run=$T0_BUILD/t0-run

# out[i] = 7 + i, by way of LDS from byte 512 on; the descriptor declares none.
cat >"$tmp/through.s" <<'END'
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	through
	.p2align 8
	.type	through,@function
through:
	s_load_b64 s[2:3], s[0:1], 0
	v_lshlrev_b32 v1, 2, v0
	v_add_nc_u32 v2, 7, v0
	ds_store_b32 v1, v2 offset:512
	s_waitcnt lgkmcnt(0)
	ds_load_b32 v3, v1 offset:512
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
	s_endpgm
.Lend:
	.size	through, .Lend - through
	.rodata
	.p2align 6
	.amdhsa_kernel through
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_count 15
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 4
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version:
  - 1
  - 2
amdhsa.kernels:
  - .name: through
    .symbol: through.kd
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 1024
    .sgpr_count: 6
    .vgpr_count: 4
    .wavefront_size: 32
    .args:
      - .address_space: global
        .offset: 0
        .size: 8
        .value_kind: global_buffer
...
	.end_amdgpu_metadata
END
exits 0 'a kernel with LDS of the launch' "$isa" asm "$tmp/through.s" \
	-o "$tmp/t.co"
exits 0 'which the verifier cannot judge' "$isa" verify "$tmp/t.co"
has "$tmp/out" '0 findings in 9 instructions and 1 blocks; its LDS depends on the launch' \
	'and says so'
through() {
	"$run" -q --device soft --grid 32 --block 32 --csv "$@" "$tmp/t.co" \
		through out:32:u32'>'"$tmp/x"
}
exits 3 'LDS that the workgroup does not have is a fault' through
has "$tmp/err" 'LDS access at byte 512, but the workgroup has 0 bytes' \
	'which says where and what'
exits 3 'so is a granule of 512 bytes too few' through --lds 512
exits 0 'with --lds it runs' through --lds 640
is "$(od -An -tu4 -w128 -v "$tmp/x" | tr -s ' ')" " $(seq -s ' ' 7 38)" \
	'to its results'
exits 0 'the checks agree' through --check --lds 640
exits 2 'more than a workgroup can have' through --lds 65537
has "$tmp/err" 'at most 64K' 'is refused'
plan_done
