; The kernels of tests/soft/pm4.c.

; out[id] = id for ids of 32-wide workgroups; s[0:1] = out, s2 = group.
store_ids:
	v_and_b32 v0, 0x3ff, v0
	s_lshl_b32 s3, s2, 5
	v_add_nc_u32 v2, s3, v0
	v_lshlrev_b32 v1, 2, v2
	global_store_b32 v1, v2, s[0:1]
	s_endpgm

; out[0..2] = STATUS.PRIV, EXEC + 7 by way of ttmp1, STATUS.PRIV behind
; s_rfe_b64; s[0:1] = out.
privileged:
	s_getreg_b32 s4, hwreg(HW_REG_STATUS, 5, 1)
	s_mov_b32 ttmp1, 0
	v_cmp_eq_u32_e64 ttmp1, v0, v0
	s_mov_b32 s5, ttmp1
	s_mov_b32 ttmp1, 7
	s_add_u32 s5, s5, ttmp1
	s_getpc_b64 s[6:7]
	s_add_u32 s6, s6, 16
	s_addc_u32 s7, s7, 0
	s_rfe_b64 s[6:7]
	s_endpgm
	s_getreg_b32 s6, hwreg(HW_REG_STATUS, 5, 1)
	v_mov_b32 v0, 0
	v_mov_b32 v1, s4
	v_mov_b32 v2, s5
	v_mov_b32 v3, s6
	global_store_b96 v0, v[1:3], s[0:1]
	s_endpgm
