; Kernels and trap handlers of tests/soft/traps.c.

; s_trap 5; then out[2] = 77, behind what the handler stored.
trapping:
	s_load_b64 s[2:3], s[0:1], null
	s_waitcnt lgkmcnt(0)
	v_mov_b32 v0, 0
	v_mov_b32 v1, 0x4d
	s_cmp_eq_u32 s2, s2
	s_trap 5
	s_cselect_b32 s4, 1, 2
	v_mov_b32 v2, s4
	global_store_b64 v0, v[1:2], s[2:3] offset:8
	s_endpgm

; out[4..11] = TTMP 0, 1, 6, 8, 11, 12, 14, 15; the rest is restored.  Tells the
; debugger or the runtime of a trap, and goes on behind s_trap.
recording:
	v_mov_b32 v10, ttmp0
	v_mov_b32 v11, ttmp1
	v_mov_b32 v12, ttmp6
	v_mov_b32 v13, ttmp8
	global_store_b128 v0, v[10:13], s[2:3] offset:16
	v_mov_b32 v10, ttmp11
	v_mov_b32 v11, ttmp12
	v_mov_b32 v12, ttmp14
	v_mov_b32 v13, ttmp15
	global_store_b128 v0, v[10:13], s[2:3] offset:32
	s_sendmsg_rtn_b32 ttmp3, sendmsg(MSG_RTN_GET_DOORBELL)
	s_waitcnt lgkmcnt(0)
	s_mov_b32 ttmp2, m0
	s_or_b32 m0, ttmp3, 0x800
	s_sendmsg sendmsg(MSG_INTERRUPT)
	s_mov_b32 m0, ttmp2
	s_add_u32 ttmp0, ttmp0, 4
	s_addc_u32 ttmp1, ttmp1, 0
	s_and_b32 ttmp1, ttmp1, 0xffff
	s_setreg_b32 hwreg(HW_REG_STATUS), ttmp12
	s_rfe_b64 ttmp[0:1]

; Halts the wave, once it is left.
halting:
	s_or_b32 ttmp12, ttmp12, 0x2000
	s_setreg_b32 hwreg(HW_REG_STATUS), ttmp12
	s_and_b32 ttmp1, ttmp1, 0xffff
	s_rfe_b64 ttmp[0:1]

; One lane's load, store and atomic at kernarg[1]; out[0] = times the handler
; `counting` ran.
touching:
	s_load_b128 s[4:7], s[0:1], null
	s_mov_b64 s[2:3], 0
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[6:7]
	s_nop 0
	global_store_b32 v0, v1, s[6:7]
	s_nop 0
	global_atomic_add_u32 v0, v1, s[6:7]
	s_nop 0
	v_mov_b32 v1, s2
	v_mov_b32 v2, s3
	global_store_b64 v0, v[1:2], s[4:5]
	s_endpgm

; s2 counts, s3 collects TRAPSTS, which is cleared.
counting:
	s_add_u32 s2, s2, 1
	s_getreg_b32 ttmp2, hwreg(HW_REG_TRAPSTS)
	s_or_b32 s3, s3, ttmp2
	s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 0
	s_and_b32 ttmp1, ttmp1, 0xffff
	s_setreg_b32 hwreg(HW_REG_STATUS), ttmp12
	s_rfe_b64 ttmp[0:1]
