; Kernels of tests/exec/vop3-div.c.

; v3 = v0 / v1
div32:
	v_div_scale_f32 v10, null, v1, v1, v0
	v_rcp_f32 v11, v10
	v_fma_f32 v12, -v10, v11, 1.0
	v_fmac_f32 v11, v12, v11
	v_div_scale_f32 v12, vcc_lo, v0, v1, v0
	v_mul_f32 v13, v12, v11
	v_fma_f32 v14, -v10, v13, v12
	v_fmac_f32 v13, v14, v11
	v_fma_f32 v10, -v10, v13, v12
	v_div_fmas_f32 v10, v10, v11, v13
	v_div_fixup_f32 v3, v10, v1, v0

; v[6:7] = v[0:1] / v[2:3]
div64:
	v_div_scale_f64 v[10:11], null, v[2:3], v[2:3], v[0:1]
	v_rcp_f64 v[12:13], v[10:11]
	v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
	v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]
	v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
	v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]
	v_div_scale_f64 v[14:15], vcc_lo, v[0:1], v[2:3], v[0:1]
	v_mul_f64 v[16:17], v[14:15], v[12:13]
	v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]
	v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]
	v_div_fixup_f64 v[6:7], v[10:11], v[2:3], v[0:1]

; v3.l = v0.l / v1.l; by way of f32, since v_fma_mixlo_f16, which rounds
; v0 * (1 / v1) once, misses ties of denormal quotients
div16:
	v_cvt_f32_f16 v10, v1
	v_cvt_f32_f16 v11, v0
	v_rcp_f32 v10, v10
	v_mul_f32 v10, v11, v10
	v_cvt_f16_f32 v10, v10
	v_div_fixup_f16 v3, v10, v1, v0
