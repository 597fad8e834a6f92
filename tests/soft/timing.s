; Kernels of tests/soft/timing.c.

; Each work-item stores SHADER_CYCLES before a barrier, the difference to
; that behind it, and the real time
clocks:
	s_load_b64 s[2:3], s[0:1], null
	s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)
	v_lshlrev_b32 v1, 2, v0
	s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)
	v_mov_b32 v2, 0
	s_barrier
	s_getreg_b32 s5, hwreg(HW_REG_SHADER_CYCLES, 0, 20)
	s_lshl_b32 s8, s15, 6
	s_waitcnt lgkmcnt(0)
	v_add_nc_u32 v1, s8, v0
	s_sub_i32 s9, s5, s4
	v_mov_b32 v2, s4
	v_mov_b32 v3, s9
	v_mov_b32 v4, s6
	v_mov_b32 v5, s7
	v_lshlrev_b32 v1, 4, v1
	global_store_b128 v1, v[2:5], s[2:3]
	s_endpgm

endless:
	s_branch endless

illegal:
	s_nop 0
	.long 0xbe80ff00
	s_endpgm
