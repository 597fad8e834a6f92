/* As seeds.s, in wave64: the hazards that only that has. */
.macro begin name
	.p2align 8
	.globl \name
	.type \name,@function
\name:
.endm

begin forward
	v_mov_b32 v1, 1.0
	v_mov_b32 v2, 2.0
	s_mov_b64 s[4:5], exec
	s_mov_b64 exec, 0xff
	v_mov_b32 v3, 3.0
forward_w1: s_waitcnt_depctr 0xfff
forward_u1: v_add_f32 v4, v2, v3
	s_mov_b64 exec, s[4:5]
	v_mul_f32 v5, v1, v1
	s_mov_b64 exec, 0xf0
	v_mul_f32 v6, v1, v1
	v_mul_f32 v7, v1, v1
forward_w2: s_waitcnt_depctr 0xfff
forward_u2: v_fma_f32 v8, v5, v6, v7
	v_mul_f32 v9, v1, v1
	s_mov_b64 exec, s[4:5]
	v_mul_f32 v10, v1, v1
	v_nop
	v_nop
forward_w3: s_waitcnt_depctr 0xfff
forward_u3: v_add_f32 v11, v9, v10
	s_endpgm

begin masks
	s_mov_b64 s[4:5], 0xf
	s_mov_b64 vcc, 0xf0
	v_mov_b32 v1, 1
	v_cndmask_b32 v2, v0, v1, s[4:5]
	s_mov_b64 s[4:5], 0x33
masks_w1: s_waitcnt_depctr 0xfffe
masks_u1: v_cndmask_b32 v3, v0, v1, s[4:5]
	v_cndmask_b32 v4, v0, v1, vcc
	s_mov_b64 vcc, 0x55
masks_w2: s_waitcnt_depctr 0xfffe
masks_u2: v_cndmask_b32 v5, v0, v1, vcc
	s_mov_b64 s[6:7], 0x77
	v_cndmask_b32 v6, v0, v1, s[6:7]
	s_mov_b32 s6, 0x11
masks_w3: s_waitcnt_depctr 0xfffe
masks_u3: v_mov_b32 v7, s6
	s_endpgm
