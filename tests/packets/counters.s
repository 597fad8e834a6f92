; The kernel of tests/packets/counters.c: s[0:1] = out, s2 = group; 32 work-items.

; Once 2 SALU, 2 VALU, 1 load, 1 wait; 5 times 2 SALU, 3 VALU (1 transcendental),
; 1 s_delay_alu, 1 conditional branch; then 1 LDS, 1 wait, 1 store, 1 branch, 1
; message and s_endpgm.
counted:
	s_lshl_b32 s3, s2, 2
	s_mov_b32 s4, 5
	v_mov_b32 v0, s3
	v_mov_b32 v1, 0
	global_load_b32 v2, v0, s[0:1]
	s_waitcnt vmcnt(0)
.Lloop:
	s_delay_alu instid0(VALU_DEP_1)
	v_add_nc_u32 v1, v1, 1
	v_cvt_f32_u32 v3, v1
	v_sqrt_f32 v3, v3
	s_sub_u32 s4, s4, 1
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 .Lloop
	ds_nop
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v1, s[0:1] offset:1024
	s_branch .Lend
	s_nop 0
.Lend:
	s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
	s_endpgm
