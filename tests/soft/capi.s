; Kernels of tests/soft/capi.c.

; out[64 * group + item] = in[64 * group + item] + group
add_group:
	s_load_b128 s[4:7], s[0:1], null
	s_waitcnt lgkmcnt(0)
	s_lshl_b32 s3, s2, 6
	v_add_nc_u32 v1, s3, v0
	v_lshlrev_b32 v1, 2, v1
	global_load_b32 v2, v1, s[6:7]
	s_waitcnt vmcnt(0)
	v_add_nc_u32 v2, s2, v2
	global_store_b32 v1, v2, s[4:5]
	s_endpgm

; out[16 * (x + 3 y + 6 z of the group) + item] = v0 ^ (z << 16 | y << 8 | x)
ids:
	s_load_b64 s[8:9], s[0:1], null
	v_and_b32 v1, 0x3ff, v0
	v_bfe_u32 v2, v0, 10, 10
	v_bfe_u32 v3, v0, 20, 10
	v_lshl_add_u32 v1, v2, 2, v1
	v_lshl_add_u32 v1, v3, 3, v1
	v_lshlrev_b32 v1, 2, v1
	s_mul_i32 s5, s3, 3
	s_add_u32 s5, s5, s2
	s_mul_i32 s6, s4, 6
	s_add_u32 s5, s5, s6
	s_lshl_b32 s5, s5, 6
	v_add_nc_u32 v1, s5, v1
	s_lshl_b32 s6, s4, 8
	s_or_b32 s6, s6, s3
	s_lshl_b32 s6, s6, 8
	s_or_b32 s6, s6, s2
	v_mov_b32 v4, v0
	v_xor_b32 v4, s6, v4
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v4, s[8:9]
	s_endpgm

; Reverses its work-items' numbers through LDS, over two waves.
reverse:
	s_load_b64 s[8:9], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	ds_store_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_sub_nc_u32 v2, 0xfc, v1
	ds_load_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[8:9]
	s_endpgm

; out[item] = 3 * item, by way of scratch
scratch:
	s_load_b64 s[8:9], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mul_u32_u24 v2, 3, v0
	scratch_store_b32 off, v2, off offset:4
	s_waitcnt_vscnt null, 0x0
	scratch_load_b32 v3, off, off offset:4
	s_waitcnt vmcnt(0) lgkmcnt(0)
	global_store_b32 v1, v3, s[8:9]
	s_endpgm

load_first:
	s_load_b64 s[8:9], s[0:1], null
	v_mov_b32 v1, 0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v3, v1, s[8:9]
	s_waitcnt vmcnt(0)
	s_endpgm

store_first:
	s_load_b64 s[8:9], s[0:1], null
	v_mov_b32 v1, 0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v1, s[8:9]
	s_endpgm

forever:
	s_branch forever

trap:
	s_trap 3

nothing:
	.long 0xffffffff

no_end:
	s_nop 0

; Workgroup 0 waits until workgroup 1 has stored 7, then stores 7 itself.
wait_for_other:
	s_load_b64 s[8:9], s[0:1], null
	v_mov_b32 v1, 0
	v_mov_b32 v2, 7
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 .Lwait_for_other
	global_store_b32 v1, v2, s[8:9]
	s_endpgm
.Lwait_for_other:
	global_load_b32 v3, v1, s[8:9] glc
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s4, v3
	s_cmp_eq_u32 s4, 7
	s_cbranch_scc0 .Lwait_for_other
	global_store_b32 v1, v2, s[8:9] offset:4
	s_endpgm
