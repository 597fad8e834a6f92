; Kernels of tests/runtime.

; out[i] = add + i for each work-item i, workgroups of 32.
store:
	s_load_b64 s[4:5], s[0:1], null
	s_load_b32 s6, s[0:1], 0x8
	v_and_b32 v0, 0x3ff, v0
	v_lshl_add_u32 v1, s2, 5, v0
	v_lshlrev_b32 v2, 2, v1
	s_waitcnt lgkmcnt(0)
	v_add_nc_u32 v3, s6, v1
	global_store_b32 v2, v3, s[4:5]
	s_endpgm

; out[i] = 2 i + 1, by way of scratch: i at offset 0 of the lane's, ~i at
; offset s6.  s7 = log2 of the workgroup's size.
scratch:
	s_load_b64 s[4:5], s[0:1], null
	s_load_b64 s[6:7], s[0:1], 0x8
	v_and_b32 v0, 0x3ff, v0
	s_waitcnt lgkmcnt(0)
	v_mov_b32 v6, s7
	v_lshl_add_u32 v1, s2, v6, v0
	v_not_b32 v2, v1
	scratch_store_b32 off, v1, off
	scratch_store_b32 off, v2, s6
	s_waitcnt_vscnt null, 0x0
	scratch_load_b32 v3, off, off
	scratch_load_b32 v4, off, s6
	s_waitcnt vmcnt(0)
	v_sub_nc_u32 v5, v3, v4
	v_lshlrev_b32 v1, 2, v1
	global_store_b32 v1, v5, s[4:5]
	s_endpgm

loop:
	s_branch loop

; SOP1 opcode 255: no generation has it.
illegal:
	.long 0xbe80ff00
	s_endpgm

; out[i] = in[i] + 1 for each work-item i, workgroups of 32.
increment:
	s_load_b128 s[4:7], s[0:1], null
	v_and_b32 v0, 0x3ff, v0
	v_lshl_add_u32 v1, s2, 5, v0
	v_lshlrev_b32 v2, 2, v1
	s_waitcnt lgkmcnt(0)
	global_load_b32 v3, v2, s[6:7]
	s_waitcnt vmcnt(0)
	v_add_nc_u32 v3, 1, v3
	global_store_b32 v2, v3, s[4:5]
	s_endpgm

; Waits until out[0] is not 0, then out[1] = add.
gate:
	s_load_b64 s[4:5], s[0:1], null
	s_load_b32 s6, s[0:1], 0x8
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
	v_mov_b32 v2, s6
.Lclosed:
	global_load_b32 v1, v0, s[4:5] glc
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s7, v1
	s_cmp_eq_u32 s7, 0
	s_cbranch_scc1 .Lclosed
	global_store_b32 v0, v2, s[4:5] offset:4
	s_endpgm
