; Kernels of tests/soft/launch.c.

; out[group * lanes + flat work-item] = v0, with the sizes in the kernargs
state:
	s_load_b64 s[2:3], s[0:1], null
	s_load_b128 s[4:7], s[0:1], 0x8
	s_load_b64 s[10:11], s[0:1], 0x18
	s_waitcnt lgkmcnt(0)
	s_mul_i32 s8, s15, s5
	s_add_i32 s8, s8, s14
	s_mul_i32 s8, s8, s4
	s_add_i32 s8, s8, s13
	s_mul_i32 s8, s8, s6
	v_and_b32 v1, 0x3ff, v0
	v_bfe_u32 v2, v0, 10, 10
	v_bfe_u32 v3, v0, 20, 10
	v_mul_lo_u32 v2, v2, s10
	v_mul_lo_u32 v3, v3, s11
	v_add_nc_u32 v1, v1, v2
	v_add_nc_u32 v1, v1, v3
	v_add_nc_u32 v1, s8, v1
	v_lshlrev_b32 v1, 2, v1
	global_store_b32 v1, v0, s[2:3]
	s_endpgm

; s0..s8, s15, EXEC, MODE, a packet word read through s[0:1], s16
sgprs:
	s_load_b64 s[20:21], s[4:5], null
	v_mov_b32 v9, 0
	s_getreg_b32 s22, hwreg(HW_REG_MODE)
	v_mov_b32 v2, exec_lo
	v_mov_b32 v1, s22
	s_mov_b32 exec_lo, 1
	s_waitcnt lgkmcnt(0)
	v_readfirstlane_b32 s23, v2
	v_mov_b32 v4, s0
	v_mov_b32 v5, s1
	v_mov_b32 v6, s2
	v_mov_b32 v7, s3
	global_store_b128 v9, v[4:7], s[20:21]
	v_mov_b32 v4, s4
	v_mov_b32 v5, s5
	v_mov_b32 v6, s6
	v_mov_b32 v7, s7
	global_store_b128 v9, v[4:7], s[20:21] offset:16
	v_mov_b32 v4, s8
	v_mov_b32 v5, s15
	v_mov_b32 v6, s23
	v_mov_b32 v7, s22
	global_store_b128 v9, v[4:7], s[20:21] offset:32
	s_load_b32 s24, s[0:1], 0xc
	s_waitcnt lgkmcnt(0)
	v_mov_b32 v4, s24
	v_mov_b32 v5, s16
	global_store_b64 v9, v[4:5], s[20:21] offset:48
	s_endpgm

; every lane writes 3 * id to LDS and reads the slot of lane 255 - id
lds:
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mul_u32_u24 v2, 3, v0
	ds_store_b32 v1, v2
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_sub_nc_u32 v3, 0x3fc, v1
	ds_load_b32 v4, v3
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v4, s[2:3]
	s_endpgm

; *kernarg[0] = 42
store:
	s_load_b64 s[2:3], s[0:1], null
	s_waitcnt lgkmcnt(0)
	v_mov_b32 v1, 0
	v_mov_b32 v2, 42
	global_store_b32 v1, v2, s[2:3]
	s_waitcnt_vscnt null, 0x0
	s_endpgm

; workgroup 0 waits for the flag that workgroup 1 sets
wait:
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32 v1, 0
	v_mov_b32 v2, 1
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u32 s15, 0
	s_cbranch_scc1 .Lwait
	global_store_b32 v1, v2, s[2:3]
	s_endpgm
.Lwait:
	global_load_b32 v3, v1, s[2:3] glc
	s_waitcnt vmcnt(0)
	v_cmp_eq_u32 vcc_lo, 0, v3
	s_cbranch_vccnz .Lwait
	s_endpgm

; two values per lane of a wave64, workgroup id in s2
wave64:
	s_load_b64 s[4:5], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, s2
	v_mov_b32 v3, exec_hi
	v_lshl_or_b32 v2, v2, 16, v0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v2, s[4:5]
	global_store_b32 v1, v3, s[4:5] offset:1024
	s_endpgm

; a value through scratch, next to another slot
scratch:
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_add_nc_u32 v2, 7, v0
	v_mov_b32 v4, 0
	scratch_store_b32 off, v2, off offset:160
	scratch_store_b32 off, v4, off offset:156
	s_waitcnt_vscnt null, 0x0
	scratch_load_b32 v3, off, off offset:160
	s_waitcnt vmcnt(0) lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
	s_endpgm

; never ends
endless:
	s_branch endless

illegal:
	s_nop 0
	.long 0xbfff0000
	s_endpgm

; out[0] = STATUS.PRIV + ttmp1, after it was written to; s[0:1] = kernargs
status:
	s_load_b64 s[2:3], s[0:1], null
	s_mov_b32 ttmp1, 2
	v_cmp_eq_u32_e64 ttmp1, v0, v0
	s_getreg_b32 s4, hwreg(HW_REG_STATUS, 5, 1)
	s_add_u32 s4, s4, ttmp1
	v_mov_b32 v0, 0
	v_mov_b32 v1, s4
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v1, s[2:3]
	s_endpgm

; out[1] counts lanes until out[0] is set; then out[64 + id] = 6 * id, half of it
; kept in a register and half in LDS.
persistent:
	s_load_b64 s[2:3], s[0:1], null
	v_and_b32 v0, 0x3ff, v0
	v_mul_u32_u24 v2, v0, 3
	v_lshlrev_b32 v1, 2, v0
	ds_store_b32 v1, v2
	v_mov_b32 v3, 0
	v_mov_b32 v4, 1
	s_waitcnt lgkmcnt(0)
.Lpersist:
	global_atomic_add_u32 v3, v4, s[2:3] offset:4
	global_load_b32 v5, v3, s[2:3] glc
	s_waitcnt vmcnt(0)
	v_cmp_eq_u32_e32 vcc_lo, 0, v5
	s_cbranch_vccnz .Lpersist
	ds_load_b32 v6, v1
	s_waitcnt lgkmcnt(0)
	v_add_nc_u32 v6, v6, v2
	global_store_b32 v1, v6, s[2:3] offset:256
	s_endpgm

; Ends at once.
nothing:
	s_endpgm
