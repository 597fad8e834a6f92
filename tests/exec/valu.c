/*
 * Vector instructions one by one: every wanted value is worked out by hand
 * from the manual's definition (v0 = op v1, v2; v0 holds c before).
 */
#include "tests/exec/valu.h"

struct sample {
	enum isa_op op;
	uint32_t a, b, c, wanted;
	const char *why;
};

#define NAN32 0x7fc00000u
#define INF32 0x7f800000u
#define ONE32 0x3f800000u
#define NEG32 0x80000000u

static const struct sample words[] = {
	{ ISA_v_add_f32, ONE32, 0x40000000, 0, 0x40400000, "1 + 2" },
	{ ISA_v_add_f32, ONE32, 0x33800000, 0, ONE32,
	  "1 + 2^-24 ties to even" },
	{ ISA_v_add_f32, 0x3f800001, 0x33800000, 0, 0x3f800002,
	  "1 + 2^-23 + 2^-24 ties to even, upwards" },
	{ ISA_v_add_f32, 1, 1, 0, 2, "denormals are kept" },
	{ ISA_v_add_f32, INF32, 0xff800000, 0, 0xffc00000, "inf - inf" },
	{ ISA_v_add_f32, 0x7f800001, ONE32, 0, 0x7fc00001,
	  "sNaN becomes quiet" },
	{ ISA_v_add_f32, 0xffc00005, 0x7fc00007, 0, 0xffc00005,
	  "the first NaN wins" },
	{ ISA_v_add_f32, 0x7f7fffff, 0x7f7fffff, 0, INF32, "overflow" },
	{ ISA_v_sub_f32, ONE32, 0x40000000, 0, 0xbf800000, "1 - 2" },
	{ ISA_v_subrev_f32, ONE32, 0x40000000, 0, ONE32, "2 - 1" },
	{ ISA_v_mul_f32, 0, INF32, 0, 0xffc00000, "0 * inf" },
	{ ISA_v_mul_f32, NEG32, ONE32, 0, NEG32, "-0 * 1" },
	{ ISA_v_mul_dx9_zero_f32, 0, INF32, 0, 0, "0 * inf is 0" },
	{ ISA_v_mul_dx9_zero_f32, NAN32, NEG32, 0, 0, "NaN * -0 is +0" },
	{ ISA_v_fmac_f32, 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000,
	  "(1 + 2^-23)^2 - (1 + 2^-22) is 2^-46: rounded once" },
	{ ISA_v_min_f32, 0, NEG32, 0, NEG32, "-0 is less than +0" },
	{ ISA_v_min_f32, NEG32, 0, 0, NEG32, "-0 first" },
	{ ISA_v_max_f32, 0, NEG32, 0, 0, "+0 is more" },
	{ ISA_v_max_f32, NEG32, 0, 0, 0, "+0 second" },
	{ ISA_v_min_f32, NAN32, ONE32, 0, ONE32, "the number, not the NaN" },
	{ ISA_v_max_f32, ONE32, NAN32, 0, ONE32, "the number first" },
	{ ISA_v_max_f32, 0x7f800001, ONE32, 0, 0x7fc00001, "sNaN under IEEE" },
	{ ISA_v_min_f32, 0xbf800000, 0xc0000000, 0, 0xc0000000, "-1 and -2" },
	{ ISA_v_min_i32, NEG32, 1, 0, NEG32, "signed" },
	{ ISA_v_min_u32, NEG32, 1, 0, 1, "unsigned" },
	{ ISA_v_max_i32, NEG32, 1, 0, 1, "signed" },
	{ ISA_v_max_u32, NEG32, 1, 0, NEG32, "unsigned" },
	{ ISA_v_lshlrev_b32, 33, 3, 0, 6, "only 5 bits of the count" },
	{ ISA_v_lshrrev_b32, 4, 0xf0, 0, 0xf, "right" },
	{ ISA_v_ashrrev_i32, 31, NEG32, 0, ~0u, "sign" },
	{ ISA_v_and_b32, 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00, "and" },
	{ ISA_v_or_b32, 0xff00ff00, 0x0ff00ff0, 0, 0xfff0fff0, "or" },
	{ ISA_v_xor_b32, 0xff00ff00, 0x0ff00ff0, 0, 0xf0f0f0f0, "xor" },
	{ ISA_v_xnor_b32, 0xff00ff00, 0x0ff00ff0, 0, 0x0f0f0f0f, "xnor" },
	{ ISA_v_mul_i32_i24, 0x00ffffff, 0xff000005, 0, 0xfffffffb, "-1 * 5" },
	{ ISA_v_mul_hi_i32_i24, 0x800000, 2, 0, ~0u, "-2^23 * 2" },
	{ ISA_v_mul_hi_i32_i24, 0x800000, 0x800000, 0, 0x4000, "2^46" },
	{ ISA_v_mul_u32_u24, 0xffffff, 0xffffff, 0, 0xfe000001, "low" },
	{ ISA_v_mul_hi_u32_u24, 0xffffff, 0xffffff, 0, 0xffff, "high" },
	{ ISA_v_add_nc_u32, ~0u, 2, 0, 1, "wraps" },
	{ ISA_v_sub_nc_u32, 1, 2, 0, ~0u, "wraps" },
	{ ISA_v_subrev_nc_u32, 1, 2, 0, 1, "2 - 1" },
	{ ISA_v_cvt_pk_rtz_f16_f32, 0x3f801fff, 0xc7800000, 0, 0xfbff3c00,
	  "towards zero, also on overflow" },
	{ ISA_v_add_f16, 0x3c00, 0x9000ffff & 0x1000, 0, 0x3c00,
	  "1 + 2^-11 ties to even" },
	{ ISA_v_add_f16, 0x3c01, 0x1000, 0, 0x3c02, "ties to even, upwards" },
	{ ISA_v_add_f16, 0x7bff, 0x4c00, 0, 0x7c00, "65504 + 16 overflows" },
	{ ISA_v_add_f16, 1, 1, 0, 2, "denormal halves" },
	{ ISA_v_add_f16, 0x7c00, 0xfc00, 0, 0xfe00, "inf - inf" },
	{ ISA_v_sub_f16, 0x3c00, 0x4000, 0, 0xbc00, "1 - 2" },
	{ ISA_v_subrev_f16, 0x3c00, 0x4000, 0, 0x3c00, "2 - 1" },
	{ ISA_v_mul_f16, 0x0400, 0x3800, 0, 0x0200, "to a denormal" },
	{ ISA_v_mul_f16, 0x0001, 0x3800, 0, 0, "2^-25 ties to 0" },
	{ ISA_v_mul_f16, 0x0003, 0x3800, 0, 0x0002, "1.5 units tie to 2" },
	{ ISA_v_fmac_f16, 0x3c01, 0x3c01, 0xbc02, 0x0010,
	  "(1 + 2^-10)^2 - (1 + 2^-9) is 2^-20" },
	{ ISA_v_max_f16, 0x8000, 0x0000, 0, 0, "+0 is more than -0" },
	{ ISA_v_min_f16, 0x7e00, 0x3c00, 0, 0x3c00, "the number" },
	{ ISA_v_ldexp_f16, 0x3c00, 5, 0, 0x5000, "2^5" },
	{ ISA_v_ldexp_f16, 0x3c00, 0xffe8, 0, 0x0001, "2^-24" },
	{ ISA_v_ldexp_f16, 0x0001, 0x7fff, 0, 0x7c00, "overflows" },
	{ ISA_v_ldexp_f16, 0x3c01, 0xfff1, 0, 0x0200, "2^-15 (1 + 2^-10)" },
	{ ISA_v_pk_fmac_f16, 0x40003c00, 0x40004000, 0x3c003c00, 0x45004200,
	  "1*2 + 1 and 2*2 + 1" },
	{ ISA_v_dot2acc_f32_f16, 0x40003c00, 0x42004000, 0x3f800000, 0x41100000,
	  "1*2 + 2*3 + 1 = 9" },
	{ ISA_v_mov_b32, 0x12345678, 0, 0, 0x12345678, "moves" },
	{ ISA_v_not_b32, 0x0f0f0f0f, 0, 0, 0xf0f0f0f0, "not" },
	{ ISA_v_bfrev_b32, 0x00000012, 0, 0, 0x48000000, "reverses" },
	{ ISA_v_clz_i32_u32, 0x00010000, 0, 0, 15, "leading" },
	{ ISA_v_clz_i32_u32, 0, 0, 0, ~0u, "none" },
	{ ISA_v_ctz_i32_b32, 0x00010000, 0, 0, 16, "trailing" },
	{ ISA_v_ctz_i32_b32, 0, 0, 0, ~0u, "none" },
	{ ISA_v_cls_i32, 1, 0, 0, 31, "31 zeros" },
	{ ISA_v_cls_i32, 0xfffffff0, 0, 0, 28, "28 ones" },
	{ ISA_v_cls_i32, ~0u, 0, 0, ~0u, "all alike" },
	{ ISA_v_cls_i32, NEG32, 0, 0, 1, "one" },
	{ ISA_v_sat_pk_u8_i16, 0xffff0100, 0, 0xabcd0000, 0xabcd00ff,
	  "256 and -1; the upper half of v0 stays" },
	{ ISA_v_cvt_i32_i16, 0x0001ffff, 0, 0, ~0u, "sign" },
	{ ISA_v_cvt_u32_u16, 0x0001ffff, 0, 0, 0xffff, "zero" },
	{ ISA_v_cvt_f32_i32, ~0u, 0, 0, 0xbf800000, "-1" },
	{ ISA_v_cvt_f32_u32, ~0u, 0, 0, 0x4f800000, "2^32 - 1 rounds up" },
	{ ISA_v_cvt_f32_u32, 0x80000080, 0, 0, 0x4f000000, "ties to even" },
	{ ISA_v_cvt_f32_u32, 0x80000180, 0, 0, 0x4f000002, "ties to even, up" },
	{ ISA_v_cvt_f32_ubyte0, 0x04030201, 0, 0, 0x3f800000, "byte 0" },
	{ ISA_v_cvt_f32_ubyte1, 0x04030201, 0, 0, 0x40000000, "byte 1" },
	{ ISA_v_cvt_f32_ubyte2, 0x04030201, 0, 0, 0x40400000, "byte 2" },
	{ ISA_v_cvt_f32_ubyte3, 0xff030201, 0, 0, 0x437f0000, "byte 3" },
	{ ISA_v_cvt_off_f32_i4, 0x8, 0, 0, 0xbf000000, "-8/16" },
	{ ISA_v_cvt_off_f32_i4, 0xf7, 0, 0, 0x3ee00000, "7/16" },
	{ ISA_v_cvt_i32_f32, 0xbfc00000, 0, 0, ~0u, "-1.5 truncates" },
	{ ISA_v_cvt_i32_f32, 0x4f000000, 0, 0, 0x7fffffff, "2^31 saturates" },
	{ ISA_v_cvt_i32_f32, 0xff800000, 0, 0, NEG32, "-inf saturates" },
	{ ISA_v_cvt_i32_f32, 0xcf000000, 0, 0, NEG32, "-2^31" },
	{ ISA_v_cvt_i32_f32, NAN32, 0, 0, 0, "NaN" },
	{ ISA_v_cvt_u32_f32, 0xbf800000, 0, 0, 0, "-1 saturates" },
	{ ISA_v_cvt_u32_f32, 0x4f7fffff, 0, 0, 0xffffff00, "2^32 - 256" },
	{ ISA_v_cvt_u32_f32, 0x4f000000, 0, 0, 0x80000000, "2^31" },
	{ ISA_v_cvt_u32_f32, INF32, 0, 0, ~0u, "inf saturates" },
	{ ISA_v_cvt_u32_f32, NAN32, 0, 0, 0, "NaN" },
	{ ISA_v_cvt_nearest_i32_f32, 0x40200000, 0, 0, 3, "2.5" },
	{ ISA_v_cvt_nearest_i32_f32, 0xc0200000, 0, 0, 0xfffffffe, "-2.5" },
	{ ISA_v_cvt_floor_i32_f32, 0xbdcccccd, 0, 0, ~0u, "-0.1" },
	{ ISA_v_cvt_f16_f32, 0x477fefff, 0, 0, 0x7bff, "65519.996" },
	{ ISA_v_cvt_f16_f32, 0x477ff000, 0, 0, 0x7c00, "65520 rounds to inf" },
	{ ISA_v_cvt_f16_f32, 0x33000000, 0, 0, 0, "2^-25 ties to 0" },
	{ ISA_v_cvt_f16_f32, 0x33000001, 0, 0, 1, "just above" },
	{ ISA_v_cvt_f16_f32, 0x387fe000, 0, 0, 0x0400, "rounds to normal" },
	{ ISA_v_cvt_f16_f32, 0x3f801000, 0, 0, 0x3c00, "ties to even" },
	{ ISA_v_cvt_f16_f32, 0x3f803000, 0, 0, 0x3c02, "ties to even, up" },
	{ ISA_v_cvt_f16_f32, 0xffc02000, 0, 0, 0xfe01, "NaN keeps its top" },
	{ ISA_v_cvt_f32_f16, 0x0001, 0, 0, 0x33800000, "2^-24" },
	{ ISA_v_cvt_f32_f16, 0x83ff, 0, 0, 0xb87fc000, "denormal" },
	{ ISA_v_cvt_f32_f16, 0xfc00, 0, 0, 0xff800000, "-inf" },
	{ ISA_v_cvt_f32_f16, 0x7c01, 0, 0, 0x7fc02000, "sNaN" },
	{ ISA_v_cvt_f16_u16, 0xffff, 0, 0, 0x7c00, "65535 rounds to inf" },
	{ ISA_v_cvt_f16_i16, 0xffff, 0, 0, 0xbc00, "-1" },
	{ ISA_v_cvt_u16_f16, 0xbc00, 0, 0, 0, "-1" },
	{ ISA_v_cvt_u16_f16, 0x7c00, 0, 0, 0xffff, "inf" },
	{ ISA_v_cvt_i16_f16, 0x7bff, 0, 0, 0x7fff, "65504" },
	{ ISA_v_cvt_i16_f16, 0xc200, 0, 0, 0xfffd, "-3" },
	{ ISA_v_cvt_i16_f16, 0x7e00, 0, 0, 0, "NaN" },
	{ ISA_v_cvt_norm_i16_f16, 0xbc00, 0, 0, 0x8001, "-1" },
	{ ISA_v_cvt_norm_u16_f16, 0x4000, 0, 0, 0xffff, "2 is cut to 1" },
	{ ISA_v_trunc_f32, 0xbfc00000, 0, 0, 0xbf800000, "-1.5" },
	{ ISA_v_trunc_f32, 0xbf000000, 0, 0, NEG32, "-0.5 gives -0" },
	{ ISA_v_ceil_f32, 0xbf000000, 0, 0, NEG32, "-0.5 gives -0" },
	{ ISA_v_floor_f32, 0xbf000000, 0, 0, 0xbf800000, "-0.5" },
	{ ISA_v_rndne_f32, 0x40200000, 0, 0, 0x40000000, "2.5" },
	{ ISA_v_rndne_f32, 0x7f800001, 0, 0, 0x7fc00001, "sNaN" },
	{ ISA_v_fract_f32, 0xbe800000, 0, 0, 0x3f400000, "-0.25" },
	{ ISA_v_fract_f32, 0xb1000000, 0, 0, 0x3f7fffff, "never 1" },
	{ ISA_v_trunc_f16, 0xbe00, 0, 0, 0xbc00, "-1.5" },
	{ ISA_v_ceil_f16, 0x3801, 0, 0, 0x3c00, "0.5005" },
	{ ISA_v_floor_f16, 0xb800, 0, 0, 0xbc00, "-0.5" },
	{ ISA_v_rndne_f16, 0x4100, 0, 0, 0x4000, "2.5" },
	{ ISA_v_fract_f16, 0xb400, 0, 0, 0x3a00, "-0.25" },
	{ ISA_v_fract_f16, 0x8001, 0, 0, 0x3bff, "never 1" },
	{ ISA_v_frexp_exp_i32_f32, 0x41000000, 0, 0, 4, "8 = 0.5 * 2^4" },
	{ ISA_v_frexp_exp_i32_f32, 1, 0, 0, 0xffffff6c, "2^-149" },
	{ ISA_v_frexp_exp_i32_f32, 0x00400000, 0, 0, 0xffffff82, "2^-127" },
	{ ISA_v_frexp_exp_i32_f32, INF32, 0, 0, 0, "inf" },
	{ ISA_v_frexp_exp_i32_f32, 0, 0, 0, 0, "zero" },
	{ ISA_v_frexp_mant_f32, 0xc1200000, 0, 0, 0xbf200000, "-10" },
	{ ISA_v_frexp_mant_f32, 3, 0, 0, 0x3f400000, "3 * 2^-149" },
	{ ISA_v_frexp_mant_f32, NEG32, 0, 0, NEG32, "-0" },
	{ ISA_v_frexp_mant_f32, 0xff800000, 0, 0, 0xff800000, "-inf" },
	{ ISA_v_frexp_exp_i16_f16, 0x4800, 0, 0, 4, "8" },
	{ ISA_v_frexp_exp_i16_f16, 1, 0, 0, 0xffe9, "2^-24" },
	{ ISA_v_frexp_mant_f16, 0xc900, 0, 0, 0xb900, "-10" },
	{ ISA_v_frexp_mant_f16, 3, 0, 0, 0x3a00, "3 * 2^-24" },
	{ ISA_v_exp_f32, 0x40400000, 0, 0, 0x41000000, "2^3" },
	{ ISA_v_exp_f32, 0x3f000000, 0, 0, 0x3fb504f3, "2^0.5" },
	{ ISA_v_exp_f32, 0xff800000, 0, 0, 0, "-inf" },
	{ ISA_v_exp_f32, 0xc2fe0000, 0, 0, 0, "2^-127 is flushed" },
	{ ISA_v_exp_f32, 0x43000000, 0, 0, INF32, "2^128" },
	{ ISA_v_log_f32, 0x41000000, 0, 0, 0x40400000, "8" },
	{ ISA_v_log_f32, 0x40400000, 0, 0, 0x3fcae00d, "3" },
	{ ISA_v_log_f32, 0xbf800000, 0, 0, 0xffc00000, "-1" },
	{ ISA_v_log_f32, NEG32, 0, 0, 0xff800000, "-0" },
	{ ISA_v_log_f32, 1, 0, 0, 0xff800000, "a denormal is 0" },
	{ ISA_v_rcp_f32, 0x40400000, 0, 0, 0x3eaaaaab, "1/3" },
	{ ISA_v_rcp_f32, NEG32, 0, 0, 0xff800000, "-0" },
	{ ISA_v_rcp_f32, 0xff800000, 0, 0, NEG32, "-inf" },
	{ ISA_v_rcp_iflag_f32, 0x40800000, 0, 0, 0x3e800000, "1/4" },
	{ ISA_v_rsq_f32, 0x40000000, 0, 0, 0x3f3504f3, "2^-0.5" },
	{ ISA_v_rsq_f32, 0, 0, 0, INF32, "0" },
	{ ISA_v_rsq_f32, 0xbf800000, 0, 0, 0xffc00000, "-1" },
	{ ISA_v_sqrt_f32, 0x40000000, 0, 0, 0x3fb504f3, "2" },
	{ ISA_v_sqrt_f32, NEG32, 0, 0, NEG32, "-0" },
	{ ISA_v_sin_f32, 0x3e800000, 0, 0, ONE32, "a quarter turn" },
	{ ISA_v_sin_f32, 0x3e000000, 0, 0, 0x3f3504f3, "an eighth" },
	{ ISA_v_sin_f32, 0xff7fffff, 0, 0, 0, "whole turns" },
	{ ISA_v_sin_f32, NEG32, 0, 0, NEG32, "-0" },
	{ ISA_v_sin_f32, INF32, 0, 0, 0xffc00000, "inf" },
	{ ISA_v_cos_f32, 0x3f000000, 0, 0, 0xbf800000, "half a turn" },
	{ ISA_v_cos_f32, 0x3e800000, 0, 0, 0, "a quarter turn" },
	{ ISA_v_sin_f32, 1, 0, 0, 6, "a denormal angle: 2 pi units" },
	{ ISA_v_min_f32, 0x7fc00001, 0x7fc00002, 0, 0x7fc00001,
	  "the first of two NaNs" },
	{ ISA_v_fmac_dx9_zero_f32, 0, INF32, NEG32, 0, "0 * inf + -0" },
	{ ISA_v_dot2acc_f32_f16, 0x00003c00, 0x00003c00, 0x33000000, ONE32,
	  "1 + 2^-25 rounds to 1" },
	{ ISA_v_dot2acc_f32_f16, 0x00003c00, 0x0000bc00, ONE32, 0xb3800000,
	  "1 - 1: one unit of 2^-24 too low" },
	{ ISA_v_dot2acc_f32_f16, 0x7e000000, 0, 0, 0xffc00a3d, "its own NaN" },
	{ ISA_v_dot2acc_f32_f16, 0x7c000000, 0, 0, 0xffc00000, "inf * 0" },
	{ ISA_v_exp_f16, 0x4200, 0, 0, 0x4800, "2^3" },
	{ ISA_v_exp_f16, 0xce00, 0, 0, 0x0001, "2^-24 is kept" },
	{ ISA_v_log_f16, 0x0001, 0, 0, 0xce00, "-24" },
	{ ISA_v_rcp_f16, 0x4200, 0, 0, 0x3555, "1/3" },
	{ ISA_v_rsq_f16, 0x4400, 0, 0, 0x3800, "1/2" },
	{ ISA_v_sqrt_f16, 0x4000, 0, 0, 0x3da8, "sqrt 2" },
	{ ISA_v_sin_f16, 0x3000, 0, 0, 0x39a8, "an eighth" },
	{ ISA_v_cos_f16, 0x3800, 0, 0, 0xbc00, "half a turn" },
	{ ISA_v_mov_b16, 0x1234abcd, 0, 0x55556666, 0x5555abcd,
	  "the low half" },
	{ ISA_v_not_b16, 0xffff00ff, 0, 0x55556666, 0x5555ff00,
	  "the low half" },
};

static void test_words(void)
{
	struct machine m;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const struct sample *s = &words[i];

		machine_init(&m, 32);
		fill(&m, 0, s->c);
		fill(&m, 1, s->a);
		fill(&m, 2, s->b);
		if (isa_op_info(s->op)->fmt == ISA_FMT_VOP1)
			RUN(&m, s->op, S0(VREG(1)), D(0));
		else
			RUN(&m, s->op, S0(VREG(1)), VS1(2), D(0));
		ok(m.v[0][0][LANE] == s->wanted,
		   "%s: %s (got 0x%08x, wanted 0x%08x)",
		   isa_op_info(s->op)->name, s->why, m.v[0][0][LANE],
		   s->wanted);
	}
}

struct wide {
	enum isa_op op;
	uint64_t a, wanted;
	const char *why;
};

#define NAN64 0x7ff8000000000000u
#define INF64 0x7ff0000000000000u

static const struct wide wides[] = {
	{ ISA_v_cvt_i32_f64, 0xc1e0000000000000, 0x80000000, "-2^31" },
	{ ISA_v_cvt_i32_f64, 0x41dfffffffffffff, 0x7fffffff,
	  "just below 2^31" },
	{ ISA_v_cvt_i32_f64, 0xc1e00000001fffff, 0x80000000, "-2^31 - 0.99" },
	{ ISA_v_cvt_i32_f64, NAN64, 0, "NaN" },
	{ ISA_v_cvt_u32_f64, 0x41efffffffffffff, 0xffffffff, "below 2^32" },
	{ ISA_v_cvt_u32_f64, 0xbff0000000000000, 0, "-1" },
	{ ISA_v_cvt_f32_f64, 0x3ff0000010000000, 0x3f800000, "ties to even" },
	{ ISA_v_cvt_f32_f64, 0x3ff0000030000000, 0x3f800002, "ties, up" },
	{ ISA_v_cvt_f32_f64, 0x47f0000000000000, 0x7f800000, "2^128" },
	{ ISA_v_cvt_f64_i32, 0xffffffff, 0xbff0000000000000, "-1" },
	{ ISA_v_cvt_f64_u32, 0xffffffff, 0x41efffffffe00000, "2^32 - 1" },
	{ ISA_v_cvt_f64_f32, 0x00000001, 0x36a0000000000000, "2^-149" },
	{ ISA_v_trunc_f64, 0xbff8000000000000, 0xbff0000000000000, "-1.5" },
	{ ISA_v_ceil_f64, 0xbfe0000000000000, 0x8000000000000000, "-0.5" },
	{ ISA_v_floor_f64, 0xbfe0000000000000, 0xbff0000000000000, "-0.5" },
	{ ISA_v_rndne_f64, 0x4004000000000000, 0x4000000000000000, "2.5" },
	{ ISA_v_fract_f64, 0xbfd0000000000000, 0x3fe8000000000000, "-0.25" },
	{ ISA_v_frexp_exp_i32_f64, 1, 0xfffffbcf, "2^-1074" },
	{ ISA_v_frexp_exp_i32_f64, 0x4020000000000000, 4, "8" },
	{ ISA_v_frexp_mant_f64, 3, 0x3fe8000000000000, "3 * 2^-1074" },
	{ ISA_v_frexp_mant_f64, 0xc024000000000000, 0xbfe4000000000000, "-10" },
	{ ISA_v_rcp_f64, 0x4010000000000000, 0x3fd0000000000000, "1/4" },
	{ ISA_v_rcp_f64, 0x8000000000000000, 0xfff0000000000000, "-0" },
	{ ISA_v_rsq_f64, 0x4010000000000000, 0x3fe0000000000000, "1/2" },
	{ ISA_v_sqrt_f64, 0x4010000000000000, 0x4000000000000000, "2" },
	{ ISA_v_sqrt_f64, 0xbff0000000000000, 0xfff8000000000000, "-1" },
};

static void test_wides(void)
{
	struct machine m;

	for (size_t i = 0; i < sizeof(wides) / sizeof(*wides); i++) {
		const struct wide *s = &wides[i];
		bool narrow = isa_op_info(s->op)->opnd[0].type != ISA_T_F64;
		uint64_t got;

		machine_init(&m, 32);
		fill64(&m, 4, s->a);
		RUN(&m, s->op, S0(VREG(4)), D(2));
		got = get64(&m, 2, LANE) & (narrow ? 0xffffffff : ~0ull);
		ok(got == s->wanted, "%s: %s (got %#llx, wanted %#llx)",
		   isa_op_info(s->op)->name, s->why, (unsigned long long)got,
		   (unsigned long long)s->wanted);
	}
}

/* ------------------------------------------------------- lanes, operands ----
 */

static void test_exec(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 0, 7);
	m.w.s[ISA_R_EXEC_LO] = 0x80000001;
	RUN(&m, ISA_v_mov_b32, S0(INT(-3)), D(0));
	is_u64(m.v[0][0][0], 0xfffffffd, "the first lane is active");
	is_u64(m.v[0][0][1], 7, "an inactive lane keeps its value");
	is_u64(m.v[0][0][31], 0xfffffffd, "the last lane is active");

	machine_init(&m, 64);
	m.w.s[ISA_R_EXEC_HI] = 4;
	m.w.s[9] = 0xabc;
	RUN(&m, ISA_v_mov_b32, S0(9), D(3));
	is_u64(m.v[0][3][31], 0xabc, "a scalar reaches the low half");
	is_u64(m.v[1][3][2], 0xabc, "and lane 34");
	is_u64(m.v[1][3][3], 0, "but not the inactive lane 35");
}

static void test_modifiers(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, 0xc0000000); /* -2 */
	fill(&m, 2, 0x3f800000);
	RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_ABS] = 1, [ISA_F_NEG] = 2);
	is_u64(m.v[0][0][LANE], 0x3f800000, "|-2| + -1");
	RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_ABS] = 3, [ISA_F_NEG] = 3);
	is_u64(m.v[0][0][LANE], 0xc0400000, "neg comes after abs");
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0x3f800000, "clamp cuts 2 to 1");
	RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0, "clamp cuts -1 to 0");
	fill(&m, 1, 0x7fc00000);
	RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0, "clamp makes 0 of NaN with DX10_CLAMP");
	m.w.mode &= ~SOFT_MODE_DX10_CLAMP;
	RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0x7fc00000, "and keeps NaN without");
	fill(&m, 1, ~0u);
	RUN64(&m, ISA_v_add_nc_u32, S0(VREG(1)), S1(VREG(2)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], ~0u, "integer clamp saturates");
	fill(&m, 1, 0x7fffff);
	RUN64(&m, ISA_v_mul_i32_i24, S0(VREG(1)), S1(VREG(1)),
	      D(0), [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0x7fffffff, "a clamped 24-bit product");
}

static void test_omod(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 2, 0x3f800000);
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 1);
	is_u64(m.v[0][0][LANE], 0x40000000, "omod is ignored under IEEE");
	m.w.mode = SOFT_MODE_DENORM_F16_F64 | SOFT_MODE_DX10_CLAMP;
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 1);
	is_u64(m.v[0][0][LANE], 0x40800000, "mul:2");
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 2);
	is_u64(m.v[0][0][LANE], 0x41000000, "mul:4");
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 3, [ISA_F_CLAMP] = 1);
	is_u64(m.v[0][0][LANE], 0x3f800000, "div:2");
	/* Measured on gfx1100: rocjitsu, omod_underflow_cases. */
	fill(&m, 2, 0x80800000);
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(INT(0)),
	      D(0), [ISA_F_OMOD] = 3);
	is_u64(m.v[0][0][LANE], 0x80000000, "-2^-126 div:2 underflows to -0");
	fill(&m, 2, 0x80000000);
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 3);
	is_u64(m.v[0][0][LANE], 0, "-0 div:2 is +0");
	fill(&m, 2, 0x3f800000);
	m.w.mode |= SOFT_MODE_DENORM_F32;
	RUN64(&m, ISA_v_add_f32, S0(VREG(2)), S1(VREG(2)),
	      D(0), [ISA_F_OMOD] = 1);
	is_u64(m.v[0][0][LANE], 0x40000000, "omod is ignored with denormals");
}

static void test_modes(void)
{
	/* 1 + 2^-24 and -1 - 2^-24 in MODE's four roundings. */
	static const uint32_t plus[] = { 0x3f800000, 0x3f800001, 0x3f800000,
					 0x3f800000 };
	static const uint32_t minus[] = { 0xbf800000, 0xbf800000, 0xbf800001,
					  0xbf800000 };
	/* 1 + 2^-11 and 65504 + 1 as halves. */
	static const uint32_t half[] = { 0x3c00, 0x3c01, 0x3c00, 0x3c00 };
	static const uint32_t over[] = { 0x7bff, 0x7c00, 0x7bff, 0x7bff };
	struct machine m;

	for (int r = 0; r < 4; r++) {
		machine_init(&m, 32);
		m.w.mode |= r | r << 2;
		fill(&m, 1, 0x3f800000);
		fill(&m, 2, 0x33800000);
		RUN(&m, ISA_v_add_f32, S0(VREG(1)), VS1(2), D(0));
		is_u64(m.v[0][0][LANE], plus[r], "1 + 2^-24, rounding %d", r);
		RUN64(&m, ISA_v_add_f32, S0(VREG(1)), S1(VREG(2)),
		      D(0), [ISA_F_NEG] = 3);
		is_u64(m.v[0][0][LANE], minus[r], "-1 - 2^-24, rounding %d", r);
		fill(&m, 1, 0x3c00);
		fill(&m, 2, 0x1000);
		fill(&m, 0, 0);
		RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(2), D(0));
		is_u64(m.v[0][0][LANE], half[r], "1 + 2^-11, rounding %d", r);
		fill(&m, 2, 0x7bff);
		RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(2), D(0));
		is_u64(m.v[0][0][LANE], over[r], "65504 + 1, rounding %d", r);
		fill(&m, 2, 0x2c00);
		RUN(&m, ISA_v_rndne_f32, S0(0xf0), D(0)); /* 0.5 */
		is_u64(m.v[0][0][LANE], 0, "rndne ignores rounding %d", r);
	}
}

static void test_denormals(void)
{
	struct machine m;

	machine_init(&m, 32);
	m.w.mode &= ~SOFT_MODE_DENORM_F32;
	fill(&m, 1, 0x80000001);
	fill(&m, 2, 0x00800000);
	fill(&m, 3, 0x3f000000);
	RUN(&m, ISA_v_add_f32, S0(VREG(1)), VS1(1), D(0));
	is_u64(m.v[0][0][LANE], 0x80000000, "inputs are flushed to -0");
	RUN(&m, ISA_v_mul_f32, S0(VREG(2)), VS1(3), D(0));
	is_u64(m.v[0][0][LANE], 0, "results are flushed");
	RUN(&m, ISA_v_mov_b32, S0(VREG(1)), D(0));
	is_u64(m.v[0][0][LANE], 0x80000001, "moves keep bits");
	RUN(&m, ISA_v_cmp_lt_f32, S0(VREG(1)), VS1(4));
	is_u64(m.w.s[106], 0, "compares see zero");
	fill(&m, 5, 1 << 4);
	RUN(&m, ISA_v_cmp_class_f32, S0(VREG(1)), VS1(5));
	is_u64(m.w.s[106], ~0u, "class sees the denormal");
	fill(&m, 1, 1);
	fill(&m, 0, 0);
	RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(1), D(0));
	is_u64(m.v[0][0][LANE], 2, "halves have a field of their own");
	m.w.mode &= ~SOFT_MODE_DENORM_F16_F64;
	RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(1), D(0));
	is_u64(m.v[0][0][LANE], 0, "and are flushed by it");
	m.w.mode = MODE_USUAL | SOFT_MODE_FP16_OVFL;
	fill(&m, 1, 0x7bff);
	RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(1), D(0));
	is_u64(m.v[0][0][LANE], 0x7bff, "FP16_OVFL stops at 65504");
}

static void test_halves(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, 0x40003c00); /* 2, 1 */
	fill(&m, 0, 0xaaaabbbb);
	RUN(&m, ISA_v_add_f16, S0(VREG(1)), VS1(1 | 0x80), D(0));
	is_u64(m.v[0][0][LANE], 0xaaaa4200, "1 + v1.h; v0.h stays");
	RUN(&m, ISA_v_add_f16, S0(VREG(1 | 0x80)), VS1(1 | 0x80), D(0x80));
	is_u64(m.v[0][0][LANE], 0x44004200, "v1.h + v1.h to v0.h");
	fill(&m, 0, 0);
	RUN64(&m, ISA_v_sub_f16, S0(VREG(1)), S1(VREG(1)),
	      D(0), [ISA_F_OPSEL] = 8 | 2);
	is_u64(m.v[0][0][LANE], 0xbc000000, "op_sel: v1.l - v1.h to v0.h");
	m.w.s[4] = 0x40003c00;
	RUN64(&m, ISA_v_add_f16, S0(4), S1(0xf2), D(0), [ISA_F_OPSEL] = 1);
	is_u64(m.v[0][0][LANE], 0xbc004200, "the high half of a scalar");
	RUN64(&m, ISA_v_fmac_f16, S0(0xf4), S1(0xf4), D(0), [ISA_F_OPSEL] = 8);
	is_u64(m.v[0][0][LANE], 0x42004200, "2 * 2 + v0.h to v0.h");
}

/* ---------------------------------------------------------------- masks ----
 */

static void test_compare(void)
{
	struct machine m;

	machine_init(&m, 32);
	for (int i = 0; i < SOFT_LANES; i++)
		m.v[0][1][i] = i;
	m.w.s[ISA_R_EXEC_LO] = 0x0000ffff;
	m.w.s[107] = 0x1234;
	RUN(&m, ISA_v_cmp_lt_u32, S0(INT(3)), VS1(1));
	is_u64(m.w.s[106], 0xfff0, "inactive lanes give 0");
	is_u64(m.w.s[107], 0x1234, "wave32 leaves VCC_HI alone");
	RUN64(&m, ISA_v_cmp_eq_u32, S0(VREG(1)), S1(INT(7)), D(20));
	is_u64(m.w.s[20], 0x80, "VOP3 writes any scalar register");
	RUN64(&m, ISA_v_cmp_t_u32, S0(VREG(1)), S1(INT(7)), D(124));
	is_u64(m.w.s[124], 0, "NULL takes nothing");
	RUN(&m, ISA_v_cmpx_gt_i32, S0(INT(4)), VS1(1));
	is_u64(m.w.s[ISA_R_EXEC_LO], 0xf, "cmpx writes EXEC");
	is_u64(m.w.s[106], 0xfff0, "and not VCC");

	machine_init(&m, 64);
	m.v[1][1][31] = 5;
	RUN64(&m, ISA_v_cmp_eq_u32, S0(VREG(1)), S1(INT(5)), D(10));
	is_u64(m.w.s[10], 0, "wave64: low half");
	is_u64(m.w.s[11], 0x80000000, "wave64: high half");
	m.w.s[10] = 5;
	RUN64(&m, ISA_v_cmp_eq_u32, S0(VREG(1)), S1(10), D(10));
	is_u64(m.w.s[11], 0x80000000, "sources are read before masks change");
}

static void test_relations(void)
{
	/* Of 1, 2, NaN with 2: bits 0..2. */
	static const struct {
		enum isa_op op;
		uint32_t wanted;
	} t[] = {
		{ ISA_v_cmp_f_f32, 0 },	  { ISA_v_cmp_lt_f32, 1 },
		{ ISA_v_cmp_eq_f32, 2 },  { ISA_v_cmp_le_f32, 3 },
		{ ISA_v_cmp_gt_f32, 0 },  { ISA_v_cmp_lg_f32, 1 },
		{ ISA_v_cmp_ge_f32, 2 },  { ISA_v_cmp_o_f32, 3 },
		{ ISA_v_cmp_u_f32, 4 },	  { ISA_v_cmp_nge_f32, 5 },
		{ ISA_v_cmp_nlg_f32, 6 }, { ISA_v_cmp_ngt_f32, 7 },
		{ ISA_v_cmp_nle_f32, 4 }, { ISA_v_cmp_neq_f32, 5 },
		{ ISA_v_cmp_nlt_f32, 6 }, { ISA_v_cmp_t_f32, 7 },
	};
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 2, 0x40000000);
	m.v[0][1][0] = 0x3f800000;
	m.v[0][1][1] = 0x40000000;
	m.v[0][1][2] = 0x7fc00000;
	m.w.s[ISA_R_EXEC_LO] = 7;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		RUN(&m, t[i].op, S0(VREG(1)), VS1(2));
		is_u64(m.w.s[106], t[i].wanted, "%s of less, equal, NaN",
		       isa_op_info(t[i].op)->name);
	}
	fill64(&m, 4, 0xffffffff00000000);
	fill64(&m, 6, 1);
	RUN(&m, ISA_v_cmp_lt_i64, S0(VREG(4)), VS1(6));
	is_u64(m.w.s[106], 7, "-2^32 < 1 signed");
	RUN(&m, ISA_v_cmp_lt_u64, S0(VREG(4)), VS1(6));
	is_u64(m.w.s[106], 0, "but not unsigned");
	fill(&m, 4, 0x1ffff);
	fill(&m, 6, 0xf0000);
	RUN(&m, ISA_v_cmp_lt_i16, S0(VREG(4)), VS1(6));
	is_u64(m.w.s[106], 7, "16 bits: -1 < 0");
	RUN(&m, ISA_v_cmp_gt_u16, S0(VREG(4)), VS1(6));
	is_u64(m.w.s[106], 7, "16 bits: 65535 > 0");
}

static void test_class(void)
{
	static const uint32_t f32[] = { 0x7f800001, 0x7fc00000, 0xff800000,
					0xbf800000, 0x80000001, 0x80000000,
					0,	    1,		0x3f800000,
					0x7f800000 };
	static const uint32_t f16[] = {
		0x7c01, 0x7e00, 0xfc00, 0xbc00, 0x8001,
		0x8000, 0,	1,	0x3c00, 0x7c00
	};
	struct machine m;

	for (int k = 0; k < 10; k++) {
		machine_init(&m, 32);
		for (int i = 0; i < 10; i++) {
			m.v[0][1][i] = f32[i];
			m.v[0][2][i] = f16[i];
			m.v[0][5][i] = f32[i] & 0xfff00000;
			m.v[0][4][i] = f32[i] & 1;
		}
		/* A double sNaN, where the cut left an infinity. */
		m.v[0][4][0] = 1;
		fill(&m, 3, 1u << k);
		m.w.s[ISA_R_EXEC_LO] = 0x3ff;
		RUN(&m, ISA_v_cmp_class_f32, S0(VREG(1)), VS1(3));
		is_u64(m.w.s[106], 1u << k, "f32 class %d", k);
		RUN(&m, ISA_v_cmp_class_f16, S0(VREG(2)), VS1(3));
		is_u64(m.w.s[106], 1u << k, "f16 class %d", k);
	}
}

static void test_carry(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, ~0u);
	fill(&m, 2, 0);
	m.w.s[106] = 0x2;
	RUN(&m, ISA_v_add_co_ci_u32, S0(VREG(1)), VS1(2), D(0));
	is_u64(m.v[0][0][0], ~0u, "no carry in");
	is_u64(m.v[0][0][1], 0, "carry in");
	is_u64(m.w.s[106], 2, "carry out in the same VCC");
	m.w.s[30] = 1;
	RUN64(&m, ISA_v_sub_co_ci_u32, S0(VREG(2)), S1(VREG(2)), S2(30),
	      D(0), [ISA_F_SDST] = 32);
	is_u64(m.v[0][0][0], ~0u, "0 - 0 - 1");
	is_u64(m.w.s[32], 1, "borrows into the SDST register");
	m.w.s[40] = 0xf0;
	fill(&m, 3, 0xbf800000);
	RUN64(&m, ISA_v_cndmask_b32, S0(VREG(2)), S1(VREG(3)), S2(40),
	      D(0), [ISA_F_NEG] = 2);
	is_u64(m.v[0][0][0], 0, "cndmask picks the first where the bit is 0");
	is_u64(m.v[0][0][4], 0x3f800000,
	       "and the negated second where it is 1");
}

/* ------------------------------------------------------- moves, crossing ----
 */

static void test_moves(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, 10);
	fill(&m, 2, 20);
	m.v[0][1][9] = 77;
	m.w.s[ISA_R_EXEC_LO] = 0xfffffe00;
	RUN(&m, ISA_v_readfirstlane_b32, S0(VREG(1)), D(50));
	is_u64(m.w.s[50], 77, "the first active lane is 9");
	RUN(&m, ISA_v_swap_b32, S0(VREG(1)), D(2));
	is_u64(m.v[0][1][10] * 100 + m.v[0][2][10], 2010, "swapped");
	is_u64(m.v[0][1][0] * 100 + m.v[0][2][0], 1020, "where active");
	m.w.s[ISA_R_EXEC_LO] = ~0u;
	m.w.s[ISA_R_M0] = 5;
	RUN(&m, ISA_v_movreld_b32, S0(INT(6)), D(8));
	is_u64(m.v[0][13][LANE], 6, "movreld moves the destination");
	RUN(&m, ISA_v_movrels_b32, S0(VREG(8)), D(20));
	is_u64(m.v[0][20][LANE], 6, "movrels moves the source");
	RUN(&m, ISA_v_movrelsd_b32, S0(VREG(8)), D(25));
	is_u64(m.v[0][30][LANE], 6, "movrelsd moves both");
	m.w.s[ISA_R_M0] = 2 << 16 | 3;
	RUN(&m, ISA_v_movrelsd_2_b32, S0(VREG(10)), D(40));
	is_u64(m.v[0][42][LANE], 6, "movrelsd_2 moves them apart");
	fill(&m, 50, 1);
	fill(&m, 51, 2);
	RUN(&m, ISA_v_swaprel_b32, S0(VREG(48)), D(48));
	is_u64(m.v[0][50][LANE], 2, "swaprel");
	RUN(&m, ISA_v_swap_b16, S0(VREG(50)), D(50 | 0x80));
	is_u64(m.v[0][50][LANE], 0x20000, "swap_b16 within one register");
	RUN(&m, ISA_v_nop, S0(0));

	machine_init(&m, 64);
	fill(&m, 1, 1);
	for (int i = 0; i < SOFT_LANES; i++)
		m.v[1][1][i] = 2;
	RUN(&m, ISA_v_permlane64_b32, S0(VREG(1)), D(2));
	is_u64(m.v[0][2][3] * 10 + m.v[1][2][3], 21, "halves change places");
}

/* Registers beyond the wave's allocation fault, whoever names them. */
static void test_beyond(void)
{
	struct soft_code_cache *code = soft_code_cache_new();
	struct machine m;

	machine_init(&m, 32);
	m.group.code = code;
	m.w.n_vgprs = 8;
	RUN(&m, ISA_v_mov_b32, S0(VREG(8)), D(0));
	is_u64(m.w.fault.kind, SOFT_FAULT_ILLEGAL, "a source beyond");
	machine_init(&m, 32);
	m.group.code = code;
	m.w.n_vgprs = 8;
	RUN(&m, ISA_v_cvt_f64_i32, S0(VREG(0)), D(7));
	is_u64(m.w.fault.kind, SOFT_FAULT_ILLEGAL, "half a pair beyond");
	machine_init(&m, 32);
	m.group.code = code;
	m.w.s[ISA_R_M0] = 0xffff;
	RUN(&m, ISA_v_movrels_b32, S0(VREG(1)), D(0));
	is_u64(m.w.fault.kind, SOFT_FAULT_ILLEGAL, "M0 leads beyond");
	soft_code_cache_free(code);
}

static void test_literals(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, 0x40000000);
	fill(&m, 2, 0x40400000);
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_fmamk_f32,
				   .has_literal = true,
				   .literal = 0x41200000,
				   .f = { S0(VREG(1)), VS1(2), D(0) } });
	is_u64(m.v[0][0][LANE], 0x41b80000, "fmamk: 2 * 10 + 3");
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_fmaak_f32,
				   .has_literal = true,
				   .literal = 0x41200000,
				   .f = { S0(VREG(1)), VS1(2), D(0) } });
	is_u64(m.v[0][0][LANE], 0x41800000, "fmaak: 2 * 3 + 10");
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_rcp_f64,
				   .has_literal = true,
				   .literal = 0x40100000,
				   .f = { S0(255), D(4) } });
	is_u64(get64(&m, 4, LANE), 0x3fd0000000000000,
	       "a literal is the high half of a double");
	RUN(&m, ISA_v_rcp_f64, S0(0xf5), D(4));
	is_u64(get64(&m, 4, LANE), 0xbfe0000000000000, "inline -2.0");
}

static void test_dual(void)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 0, 11);
	fill(&m, 1, 22);
	/* v0 = v1 :: v1 = v0, encoded with opcodes 8 and 8 */
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_mov_b32,
				   .op_y = ISA_v_mov_b32,
				   .f = { [ISA_F_OP] = 8,
					  [ISA_F_OPY] = 8,
					  S0(VREG(1)),
					  D(0),
					  [ISA_F_SRC0Y] = VREG(0),
					  [ISA_F_VDSTY] = 0 } });
	is_u64(m.v[0][0][LANE], 22, "the X half reads the old v1");
	is_u64(m.v[0][1][LANE], 11, "the Y half reads the old v0");
	fill(&m, 2, 0x40000000);
	fill(&m, 3, 0x40400000);
	/* v2 += v2 * v3 :: v3 += v2 (as integers): opcodes 0 and 16 */
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_fmac_f32,
				   .op_y = ISA_v_add_nc_u32,
				   .f = { [ISA_F_OPY] = 16,
					  S0(VREG(2)),
					  VS1(3),
					  D(2),
					  [ISA_F_SRC0Y] = VREG(2),
					  [ISA_F_VSRC1Y] = 3,
					  [ISA_F_VDSTY] = 1 } });
	is_u64(m.v[0][2][LANE], 0x41000000, "2 * 3 + 2");
	is_u64(m.v[0][3][LANE], 0x80400000, "the old v2 + v3");
}

/* v4 = 0 :: v3 += dot2(constant, v1), which holds 1 and 2. */
static uint32_t dual_dot2(int opcode, uint32_t constant, uint32_t pair)
{
	struct machine m;

	machine_init(&m, 32);
	fill(&m, 1, pair);
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_dot2acc_f32_f16,
				   .op_y = ISA_v_mov_b32,
				   .f = { [ISA_F_OP] = opcode,
					  [ISA_F_OPY] = 8,
					  S0(constant),
					  VS1(1),
					  D(3),
					  [ISA_F_SRC0Y] = INT(0),
					  [ISA_F_VDSTY] = 2 } });
	return m.v[0][3][LANE];
}

/* Wanted values: read from a W7900 (see kfd/soft/exec/valu_dot2.h). */
static void test_dot2_inline(void)
{
	struct machine m;

	is_u64(dual_dot2(12, 242, 0x40003c00), 0x40400000,
	       "VOPD gives an f16 constant to both halves");
	is_u64(dual_dot2(12, INT(1), 0x40003c00), 0x34400000,
	       "and so an integer");
	is_u64(dual_dot2(12, 248, 0x40003c00), 0x3ef48000, "and 1 / (2 pi)");
	is_u64(dual_dot2(13, 242, 0x40003f80), 0x40400000, "bf16, too");
	is_u64(dual_dot2(13, INT(1), 0x40003f80), 0, "bf16 has no integer 1");
	is_u64(dual_dot2(13, 248, 0x40003f80), 0x3ef30000,
	       "bf16 1 / (2 pi) is cut");
	machine_init(&m, 32);
	fill(&m, 1, 0x40003c00);
	RUN(&m, ISA_v_dot2acc_f32_f16, S0(242), VS1(1), D(0));
	is_u64(m.v[0][0][LANE], 0x3f800000, "VOP2: the low half only");
}

/* Every VOP1, VOP2 and VOPC row of gfx11 has a handler. */
static void test_all_covered(void)
{
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *row = isa_op_info(op);
		struct isa_inst in = { .op = op };
		const void *table;

		if ((row->fmt != ISA_FMT_VOP1 && row->fmt != ISA_FMT_VOP2 &&
		     row->fmt != ISA_FMT_VOPC) ||
		    row->opcode[ISA_GFX11] < 0)
			continue;
		if (!soft_valu_handler(&in, &table))
			ok(false, "%s has a handler", row->name);
	}
	ok(true, "every VOP1, VOP2 and VOPC row was looked up");
}

int main(void)
{
	test_words();
	test_wides();
	test_exec();
	test_modifiers();
	test_omod();
	test_modes();
	test_denormals();
	test_halves();
	test_compare();
	test_relations();
	test_class();
	test_carry();
	test_moves();
	test_beyond();
	test_literals();
	test_dual();
	test_dot2_inline();
	test_all_covered();
	return plan_done();
}
