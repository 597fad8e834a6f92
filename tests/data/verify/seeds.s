/*
 * Right kernels, each of which becomes wrong by one change (seeds.def).
 * Labels name what is changed and where the fault then shows.
 * s[0:1] kernel arguments, s15 workgroup, v0 work-item; up to 256 work-items.
 */
.macro begin name
	.p2align 8
	.globl \name
	.type \name,@function
\name:
.endm

/* ---- wait counters ---- */
begin vm
	s_load_b128 s[4:7], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
vm_w0:	s_waitcnt lgkmcnt(0)
vm_l0:	global_load_b32 v2, v1, s[4:5]
	global_load_b32 v3, v1, s[4:5] offset:4
	global_load_b32 v4, v1, s[4:5] offset:8
vm_w1:	s_waitcnt vmcnt(2)
vm_u1:	v_add_f32 v5, v2, v2
vm_w2:	s_waitcnt vmcnt(0)
vm_u2:	v_add_f32 v5, v5, v4
	v_add_f32 v5, v5, v3
	s_mov_b32 s8, 4
	global_load_b32 v6, v1, s[4:5] offset:12
vm_loop:
	global_load_b32 v7, v1, s[4:5] offset:16
vm_w3:	s_waitcnt vmcnt(1)
vm_u3:	v_add_f32 v5, v5, v6
vm_w4:	s_waitcnt vmcnt(0)
vm_u4:	v_mov_b32 v6, v7
vm_s:	s_sub_i32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
vm_b:	s_cbranch_scc1 vm_loop
	global_load_b32 v8, v1, s[4:5]
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 vm_skip
vm_w5:	s_waitcnt vmcnt(0)
	s_branch vm_join
vm_skip:
vm_w6:	s_waitcnt vmcnt(0)
vm_join:
vm_u5:	v_mov_b32 v8, 0
	v_add_f32 v5, v5, v8
vm_st:	global_store_b32 v1, v5, s[6:7]
vm_end:	s_endpgm

begin lgkm
	v_lshlrev_b32 v1, 4, v0
	s_load_b64 s[4:5], s[0:1], 0x0
	s_load_b64 s[6:7], s[0:1], 0x8
lgkm_w0: s_waitcnt lgkmcnt(0)
lgkm_u0: s_add_u32 s4, s4, s6
	s_load_b32 s8, s[6:7], 0x0
lgkm_l0: ds_load_b32 v2, v1
lgkm_w1: s_waitcnt lgkmcnt(0)
lgkm_u1: v_add_nc_u32 v2, s8, v2
	ds_load_b32 v3, v1 offset:4
	ds_load_b32 v4, v1 offset:8
lgkm_w2: s_waitcnt lgkmcnt(1)
lgkm_u2: v_add_nc_u32 v2, v2, v3
lgkm_w3: s_waitcnt lgkmcnt(0)
lgkm_u3: v_mov_b32 v4, v2
	v_lshlrev_b32 v1, 2, v0
	global_store_b32 v1, v4, s[4:5]
	s_endpgm

/* The streaming loop of a GEMM: twelve loads in flight, six waited for. */
begin stream
	s_load_b64 s[4:5], s[0:1], 0x0
	v_and_b32 v1, 15, v0
	v_lshlrev_b32 v1, 5, v1
	v_mov_b32 v80, 0
	v_mov_b32 v81, 0
	v_mov_b32 v82, 0
	v_mov_b32 v83, 0
	v_mov_b32 v84, 0
	v_mov_b32 v85, 0
	v_mov_b32 v86, 0
	v_mov_b32 v87, 0
	s_mov_b32 s8, 8
	ds_load_b128 v[8:11], v1
	ds_load_b128 v[12:15], v1 offset:16
	ds_load_b128 v[16:19], v1 offset:32
	ds_load_b128 v[20:23], v1 offset:48
	ds_load_b128 v[24:27], v1 offset:64
	ds_load_b128 v[28:31], v1 offset:80
stream_loop:
stream_p: ds_load_b128 v[32:35], v1 offset:96
	ds_load_b128 v[36:39], v1 offset:112
	ds_load_b128 v[40:43], v1 offset:128
	ds_load_b128 v[44:47], v1 offset:144
	ds_load_b128 v[48:51], v1 offset:160
stream_q: ds_load_b128 v[52:55], v1 offset:176
stream_w: s_waitcnt lgkmcnt(6)
stream_m: v_wmma_f32_16x16x16_f16 v[80:87], v[8:15], v[16:23], v[80:87]
stream_n: v_wmma_f32_16x16x16_f16 v[80:87], v[8:15], v[24:31], v[80:87]
	ds_load_b128 v[8:11], v1
	ds_load_b128 v[12:15], v1 offset:16
	ds_load_b128 v[16:19], v1 offset:32
	ds_load_b128 v[20:23], v1 offset:48
	ds_load_b128 v[24:27], v1 offset:64
	ds_load_b128 v[28:31], v1 offset:80
stream_x: s_waitcnt lgkmcnt(6)
stream_o: v_wmma_f32_16x16x16_f16 v[80:87], v[32:39], v[40:47], v[80:87]
stream_r: v_wmma_f32_16x16x16_f16 v[80:87], v[32:39], v[48:55], v[80:87]
stream_s: s_sub_i32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 stream_loop
	s_waitcnt lgkmcnt(0)
	v_lshlrev_b32 v1, 5, v0
	global_store_b128 v1, v[80:83], s[4:5]
	global_store_b128 v1, v[84:87], s[4:5] offset:16
stream_end: s_endpgm

begin exports
	v_mov_b32 v1, 1.0
	exp mrt0 v1, v1, v1, v1 done
exports_w1: s_waitcnt expcnt(0)
exports_u1: v_mov_b32 v1, 2.0
	s_mov_b32 m0, 0
	lds_direct_load v2 wait_vdst:0
exports_w2: s_waitcnt expcnt(0)
exports_u2: v_add_f32 v3, v2, v1
	lds_direct_load v4 wait_vdst:0
	lds_direct_load v5 wait_vdst:0
exports_w3: s_waitcnt expcnt(1)
exports_u3: v_add_f32 v3, v4, v3
	s_waitcnt expcnt(0)
	s_endpgm

begin scratch
	v_mov_b32 v1, 1.0
	s_load_b64 s[4:5], s[0:1], 0x0
scratch_s: scratch_store_b32 off, v1, off offset:60
	s_waitcnt lgkmcnt(0)
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 scratch_other
scratch_l: scratch_load_b32 v2, off, off offset:60
	s_waitcnt vmcnt(0)
scratch_w1: s_waitcnt_vscnt null, 0x0
scratch_u1: s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
	s_endpgm
scratch_other:
	s_mov_b32 s6, 32
scratch_t: scratch_store_b32 off, v1, s6 offset:28
	v_lshlrev_b32 v3, 2, v0
	global_store_b32 v3, v1, s[4:5]
scratch_w2: s_waitcnt_vscnt null, 0x1
scratch_u2: s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
	s_endpgm

/* ---- LDS and barriers ---- */
begin share
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	v_xor_b32 v2, 0x3fc, v1
	s_mov_b32 s8, 4
share_loop:
share_s: ds_store_b32 v1, v0
share_w1: s_waitcnt lgkmcnt(0)
share_b1: s_barrier
share_l: ds_load_b32 v3, v2
	s_waitcnt lgkmcnt(0)
share_b2: s_barrier
	v_add_nc_u32 v0, v3, v0
share_d: s_sub_i32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
share_c: s_cbranch_scc1 share_loop
	v_mov_b32 v4, 0
	s_mov_b32 s9, exec_lo
	v_cmpx_eq_u32 0, v1
	s_cbranch_execz share_skip
	ds_store_b32 v4, v0
share_skip:
share_e: s_or_b32 exec_lo, exec_lo, s9
share_w2: s_waitcnt lgkmcnt(0)
share_b3: s_barrier
share_l2: ds_load_b32 v5, v4
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v5, s[4:5]
	s_endpgm

/* A load under a condition, and the store of the next round by all lanes. */
begin window
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	v_add_nc_u32 v2, -16, v1
	v_mov_b32 v3, 0
	s_mov_b32 s8, 4
window_loop:
window_s: ds_store_b32 v1, v3
	s_waitcnt lgkmcnt(0)
window_b1: s_barrier
	s_mov_b32 s9, exec_lo
	v_cmpx_lt_u32 3, v0
	s_cbranch_execz window_skip
window_l: ds_load_b32 v3, v2
	s_waitcnt lgkmcnt(0)
window_skip:
	s_or_b32 exec_lo, exec_lo, s9
window_b2: s_barrier
	s_sub_i32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 window_loop
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[4:5]
	s_endpgm

/* Stores that others are to see: before a barrier, a fence, an atomic. */
begin order
	s_load_b128 s[4:7], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	v_xor_b32 v2, 0x3fc, v1
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[4:5]
order_w1: s_waitcnt_vscnt null, 0x0
	s_barrier
order_i1: buffer_gl0_inv
	global_load_b32 v3, v2, s[4:5]
	s_waitcnt vmcnt(0)
	global_store_b32 v1, v3, s[6:7]
order_w2: s_waitcnt_vscnt null, 0x0
order_i2: buffer_gl1_inv
	buffer_gl0_inv
	v_mov_b32 v4, 0
	v_mov_b32 v5, 1
	global_atomic_add_u32 v4, v5, s[6:7]
order_w3: s_waitcnt_vscnt null, 0x0
order_i3: buffer_gl1_inv
	buffer_gl0_inv
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 order_skip
	global_store_b32 v1, v0, s[4:5] offset:4
order_skip:
order_w4: s_waitcnt_vscnt null, 0x0
	s_barrier
order_i4: buffer_gl0_inv
	/* An acquire alone lets stores be outstanding. */
	global_store_b32 v1, v0, s[4:5]
	global_atomic_add_u32 v6, v4, v5, s[6:7] glc
	s_waitcnt vmcnt(0)
	buffer_gl1_inv
	buffer_gl0_inv
	s_endpgm

begin lanes
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, 0
	v_cmp_gt_u32 vcc_lo, 16, v0
	s_and_saveexec_b32 s6, vcc_lo
	v_mov_b32 v2, 1
lanes_r1: s_or_b32 exec_lo, exec_lo, s6
lanes_b1: s_barrier
	s_mov_b32 s6, exec_lo
	v_cmpx_lt_u32 7, v0
	s_cbranch_execz lanes_j
	v_mov_b32 v2, 3
lanes_j:
lanes_r2: s_or_b32 exec_lo, exec_lo, s6
lanes_b2: s_barrier
lanes_v2: v_add_nc_u32 v2, v2, v2
	v_cmp_ne_u32 vcc_lo, 3, v0
	s_and_saveexec_b32 s6, vcc_lo
	s_xor_b32 s6, exec_lo, s6
	v_mov_b32 v2, 5
lanes_r3: s_or_saveexec_b32 s6, s6
	s_xor_b32 exec_lo, exec_lo, s6
	v_mov_b32 v2, 6
lanes_r4: s_or_b32 exec_lo, exec_lo, s6
lanes_b3: s_barrier
	s_waitcnt lgkmcnt(0)
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 lanes_k
	v_cmp_ne_u32 vcc_lo, 9, v0
	s_and_saveexec_b32 s7, vcc_lo
	v_add_nc_u32 v2, 1, v2
lanes_r5: s_or_b32 exec_lo, exec_lo, s7
lanes_k:
lanes_v5: v_add_nc_u32 v2, v2, v0
	s_mov_b32 s8, 0
	v_mov_b32 v3, v0
lanes_loop:
	v_add_nc_u32 v3, -1, v3
lanes_c: v_cmp_gt_i32 vcc_lo, 0, v3
	s_or_b32 s8, vcc_lo, s8
	s_and_not1_b32 exec_lo, exec_lo, s8
	s_cbranch_execnz lanes_loop
lanes_r6: s_or_b32 exec_lo, exec_lo, s8
lanes_v6: global_store_b32 v1, v2, s[4:5]
lanes_end: s_endpgm

/* ---- flags ---- */
begin flags
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
flags_d1: v_cmp_gt_u32 vcc_lo, 7, v0
flags_u1: v_cndmask_b32 v2, 0, v0, vcc_lo
	s_waitcnt lgkmcnt(0)
flags_d2: s_cmp_lg_u32 s4, 0
flags_u2: s_cselect_b32 s6, 1, 2
	v_cvt_f32_u32 v3, v0
	v_div_scale_f32 v4, null, v3, v3, 1.0
flags_d3: v_div_scale_f32 v5, vcc_lo, 1.0, v3, 1.0
flags_u3: v_div_fmas_f32 v6, v4, v4, v5
	v_add_f32 v6, v6, v2
	global_store_b32 v1, v6, s[4:5]
	s_endpgm

begin carry
	s_load_b128 s[4:7], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
carry_d: s_add_u32 s4, s4, s6
carry_u: s_addc_u32 s5, s5, s7
carry_s: global_store_b32 v1, v0, s[4:5]
carry_end: s_endpgm

/* ---- control flow ---- */
begin loops
	s_load_b64 s[4:5], s[0:1], 0x0
	s_mov_b32 s6, 10
	s_mov_b32 s7, 0
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, 0
	s_waitcnt lgkmcnt(0)
loops_a: v_add_nc_u32 v2, 1, v2
loops_s1: s_add_i32 s7, s7, 1
	s_cmp_lt_u32 s7, s6
loops_b1: s_cbranch_scc1 loops_a
	s_mov_b32 s7, 0
loops_c: s_mov_b32 s8, 0
loops_d: v_add_nc_u32 v2, 2, v2
loops_s2: s_add_i32 s8, s8, 1
	s_cmp_lt_u32 s8, s7
loops_b2: s_cbranch_scc1 loops_d
loops_s3: s_add_i32 s7, s7, 1
	s_cmp_lt_u32 s7, s6
loops_b3: s_cbranch_scc1 loops_c
	s_cmp_eq_u32 s4, 0
loops_b4: s_cbranch_scc1 loops_x
loops_l: v_add_f32 v2, 0x40490fdb, v2
loops_x: global_store_b32 v1, v2, s[4:5]
loops_end: s_endpgm

/* ---- matrices ---- */
begin matrix
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 5, v0
	s_waitcnt lgkmcnt(0)
	global_load_b128 v[8:11], v1, s[4:5]
	global_load_b128 v[12:15], v1, s[4:5] offset:16
	global_load_b128 v[16:19], v1, s[4:5] offset:32
	global_load_b128 v[20:23], v1, s[4:5] offset:48
	s_waitcnt vmcnt(0)
matrix_1: v_wmma_f16_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[8:15]
matrix_n1: v_nop
matrix_2: v_wmma_f16_16x16x16_f16 v[32:39], v[24:31], v[16:23], v[24:31]
matrix_n2: v_nop
matrix_3: v_wmma_f16_16x16x16_f16 v[40:47], v[8:15], v[32:39], v[24:31]
matrix_n3: v_mov_b32 v2, 0
	s_nop 0
matrix_4: v_wmma_f16_16x16x16_f16 v[48:55], v[40:47], v[40:47], v[48:55]
	global_store_b128 v1, v[48:51], s[4:5]
	s_endpgm

/* ---- hazards ---- */
begin trans
	v_cvt_f32_u32 v1, v0
	v_rcp_f32 v2, v1
trans_w1: s_waitcnt_depctr 0xfff
trans_u1: v_add_f32 v3, v2, v1
	v_exp_f32 v4, v1
	v_mul_f32 v5, v1, v1
trans_w2: s_waitcnt_depctr 0xfff
trans_u2: v_mul_f32 v6, v5, v4
	v_sqrt_f32 v7, v1
	v_add_f32 v8, v1, v1
	v_add_f32 v9, v1, v1
	v_add_f32 v10, v1, v1
	v_add_f32 v11, v1, v1
trans_n:
	v_add_f32 v12, v1, v1
	v_add_f32 v13, v1, v1
trans_u3: v_add_f32 v14, v7, v1
	v_log_f32 v15, v1
trans_w3: ds_store_b32 v0, v1
trans_u4: v_add_f32 v16, v15, v1
	s_endpgm

begin permute
	s_mov_b32 s4, exec_lo
	v_cmpx_gt_u32 16, v0
permute_f1: v_mov_b32 v1, v0
permute_u1: v_permlane16_b32 v2, v1, s0, s1
	s_mov_b32 exec_lo, s4
	v_cmpx_gt_u32 24, v0
	v_nop
permute_f2: v_mov_b32 v1, v1
permute_u2: v_permlanex16_b32 v3, v1, s0, s1
	s_mov_b32 exec_lo, s4
permute_c3: v_cmp_gt_u32 vcc_lo, 8, v0
permute_u3: v_permlane16_b32 v4, v1, s0, s1
	s_endpgm

begin direct
	s_mov_b32 m0, 0
	v_mov_b32 v1, 0
direct_u1: lds_direct_load v1 wait_vdst:0
	s_waitcnt expcnt(0)
	v_add_f32 v2, v1, v1
	v_mov_b32 v3, 0
	v_mov_b32 v4, 0
direct_u2: lds_direct_load v2 wait_vdst:2
	s_waitcnt expcnt(0)
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v5, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v5, v4, s[4:5]
direct_w3: s_waitcnt_depctr 0xffe3
direct_u3: lds_direct_load v4 wait_vdst:0
	s_waitcnt expcnt(0)
	s_endpgm

begin multiply
	s_load_b64 s[4:5], s[0:1], 0x0
	v_mov_b32 v1, 3
	v_mov_b32 v2, 0
	v_mov_b32 v3, 0
multiply_1: v_mad_u64_u32 v[4:5], null, v0, v1, v[2:3]
multiply_2: v_mad_u64_u32 v[6:7], null, v0, v5, v[4:5]
multiply_3: v_mad_i64_i32 v[8:9], null, v0, v7, v[6:7]
	v_lshlrev_b32 v1, 4, v0
	s_waitcnt lgkmcnt(0)
	global_store_b64 v1, v[4:5], s[4:5]
	global_store_b64 v1, v[6:7], s[4:5] offset:8
	global_store_b64 v1, v[8:9], s[4:5] offset:16
	s_endpgm

/* A call of a function behind the kernel. */
begin outer
	s_load_b64 s[4:5], s[0:1], 0x0
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v2, v1, s[4:5]
	s_mov_b32 s32, 0
	s_getpc_b64 s[6:7]
outer_pc: s_add_u32 s6, s6, outer_f-outer_pc
	s_addc_u32 s7, s7, 0
	s_swappc_b64 s[30:31], s[6:7]
outer_c: s_cmp_lg_u32 s15, 0
outer_u: s_cselect_b32 s8, 1, 2
	v_mov_b32 v2, s8
	s_endpgm
outer_f:
outer_w: s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
outer_v: v_add_f32 v2, v2, v2
	v_cmp_gt_u32 vcc_lo, 7, v0
	s_and_saveexec_b32 s9, vcc_lo
	v_mov_b32 v3, 0
outer_r: s_or_b32 exec_lo, exec_lo, s9
outer_e: s_setpc_b64 s[30:31]
