/*
 * Instructions as code of the host (kfd/soft/exec/fast/native.def) give what
 * their handlers give, bit for bit: each one listed here by itself, for special
 * and random sources, all halves as the first one, in several MODEs, with all
 * lanes and with some, of a wave32 and of a wave64.  The same is asked of
 * processors without AVX-512, and without AVX2, which has microops only.
 *
 * T0_SEED chooses other numbers, T0_SLOW=1 more of them.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/exec/host-code.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	SOURCES = 10, /* VGPRs from here on; v30 and up are results */
	N_SOURCES = 6,
	RESULTS = 30,
	N_RESULTS = 4,
	HOT = 2 * SOFT_HOT_AFTER,
};

/* MODE as compilers set it; f32 flushes; without IEEE, without DX10_CLAMP. */
static const uint32_t modes[] = { 0x3f0, 0x3c0, 0x0f0, 0x1f0, 0x2c0, 0x3f0 };
/* Some that native code leaves alone. */
static const uint32_t odd_modes[] = { 0x330, 0x8003f0, 0x3d0, 0x3e0,
				      0x3f5, 0x370,    0x3b0, 0x300 };

/* It has host code; none; none for processors without AVX-512. */
enum form { HOST_CODE, MICROOP, ONLY_ZMM };

struct inst {
	const char *text;
	enum form form;
};

static const struct inst insts[] = {
	{ "v_add_f32_e64 v30, -v10, |v11| clamp", HOST_CODE },
	{ "v_mul_f32_e64 v30, v10, v11 clamp", HOST_CODE },
	{ "v_fma_f32 v30, -v10, v11, |v12| clamp", HOST_CODE },
	{ "v_fma_f32 v30, v10, v11, v12 mul:2", HOST_CODE },
	{ "v_max_f32_e64 v30, v10, -v11 clamp", HOST_CODE },
	{ "v_min_f32_e64 v30, v10, v11", HOST_CODE },
	{ "v_max3_f32 v30, v10, v11, v12 clamp", HOST_CODE },
	{ "v_cvt_f32_f16_e64 v30, -v10 clamp", HOST_CODE },
	{ "v_fmac_f32 v30, v10, v11", HOST_CODE },
	{ "v_sub_f32 v30, v10, v11", HOST_CODE },
	{ "v_rndne_f32 v30, v10", HOST_CODE },
	{ "v_cmp_lt_f32 s12, v10, |v11|", HOST_CODE },
	{ "v_add_f16_e64 v30, -v10, v11 clamp", HOST_CODE },
	{ "v_mul_f16 v30, v10, v11", HOST_CODE },
	{ "v_fma_f16 v30, v10, -v11, v12 clamp", HOST_CODE },
	{ "v_fma_f16 v30, v10, v11, v12 op_sel:[1,0,1,1]", HOST_CODE },
	{ "v_fmac_f16 v30, v10, v11", HOST_CODE },
	{ "v_max_f16 v30, v10, v11", HOST_CODE },
	{ "v_min_f16_e64 v30, v10, |v11| clamp", HOST_CODE },
	{ "v_pk_add_f16 v30, v10, v11", HOST_CODE },
	{ "v_pk_add_f16 v30, v10, v11 clamp", HOST_CODE },
	{ "v_pk_add_f16 v30, v10, v11 op_sel:[1,0] op_sel_hi:[0,0] "
	  "neg_lo:[1,0] neg_hi:[0,1]",
	  0 },
	{ "v_pk_mul_f16 v30, v10, v11", HOST_CODE },
	{ "v_pk_mul_f16 v30, v10, v11 op_sel:[1,1] op_sel_hi:[1,0] "
	  "neg_lo:[1,1] neg_hi:[1,0] clamp",
	  0 },
	{ "v_pk_fma_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_pk_fma_f16 v30, v10, v11, v12 op_sel:[0,1,0] op_sel_hi:[1,1,0] "
	  "neg_lo:[0,0,1] neg_hi:[0,0,1] clamp",
	  0 },
	{ "v_pk_fmac_f16 v30, v10, v11", HOST_CODE },
	{ "v_pk_min_f16 v30, v10, v11", HOST_CODE },
	{ "v_pk_max_f16 v30, v10, v11 neg_lo:[1,0] neg_hi:[1,0] clamp",
	  HOST_CODE },
	{ "v_dot4_i32_iu8 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot4_i32_iu8 v30, v10, v11, v12 neg_lo:[1,0,0]", HOST_CODE },
	{ "v_dot4_i32_iu8 v30, v10, v11, v12 neg_lo:[0,1,0]", HOST_CODE },
	{ "v_dot4_i32_iu8 v30, v10, v11, v12 neg_lo:[1,1,0]", HOST_CODE },
	{ "v_dot8_i32_iu4 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot8_i32_iu4 v30, v10, v11, v12 neg_lo:[1,0,0]", HOST_CODE },
	{ "v_dot8_i32_iu4 v30, v10, v11, v12 neg_lo:[0,1,0]", HOST_CODE },
	{ "v_dot8_i32_iu4 v30, v10, v11, v12 neg_lo:[1,1,0]", HOST_CODE },
	{ "v_dot4_u32_u8 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot8_u32_u4 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot4_i32_iu8 v30, v10, v11, v12 neg_lo:[1,1,0] clamp", MICROOP },
	{ "v_fma_mix_f32 v30, v10, v11, v12", HOST_CODE },
	{ "v_fma_mix_f32 v30, v10, v11, v12 op_sel_hi:[1,1,0]", HOST_CODE },
	{ "v_fma_mix_f32 v30, -v10, |v11|, -|v12| op_sel:[1,0,1] op_sel_hi:[1,1,1] clamp",
	  0 },
	{ "v_fma_mixlo_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_fma_mixlo_f16 v30, v10, -v11, v12 op_sel:[1,0,0] op_sel_hi:[1,0,1] clamp",
	  0 },
	{ "v_fma_mixhi_f16 v30, v10, v11, |v12| op_sel_hi:[0,1,0]", HOST_CODE },
	{ "v_dot2_f32_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot2_f32_f16 v30, v10, v11, v12 neg_lo:[1,0,0] neg_hi:[1,0,0]",
	  0 },
	{ "v_dot2_f32_f16 v30, v10, v11, v12 clamp", HOST_CODE },
	{ "v_dot2acc_f32_f16 v30, v10, v11", HOST_CODE },
	{ "v_dot2_f32_bf16 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot2_f32_bf16 v30, v10, v11, v12 neg_lo:[0,1,0] neg_hi:[0,1,0]",
	  0 },
	{ "v_rcp_f32 v30, v10", HOST_CODE },
	{ "v_rcp_f32_e64 v30, -|v10| clamp", HOST_CODE },
	{ "v_rcp_iflag_f32 v30, v10", HOST_CODE },
	{ "v_sqrt_f32 v30, v10", HOST_CODE },
	{ "v_rsq_f32 v30, v10", HOST_CODE },
	{ "v_exp_f32 v30, v10", HOST_CODE },
	{ "v_log_f32 v30, v10", HOST_CODE },
	{ "v_sin_f32 v30, v10", HOST_CODE },
	{ "v_cos_f32 v30, v10", HOST_CODE },
	{ "v_rcp_f16 v30, v10", HOST_CODE },
	{ "v_rcp_f16_e64 v30, -|v10| clamp", HOST_CODE },
	{ "v_sqrt_f16 v30, v10", HOST_CODE },
	{ "v_rsq_f16 v30, v10", HOST_CODE },
	{ "v_exp_f16 v30, v10", HOST_CODE },
	{ "v_exp_f16_e64 v30, -v10 clamp", HOST_CODE },
	{ "v_log_f16 v30, v10", HOST_CODE },
	{ "v_log_f16_e64 v30, |v10|", HOST_CODE },
	{ "v_med3_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_med3_f16 v30, v10, -v11, |v12| op_sel:[0,1,0,1]", HOST_CODE },
	{ "v_div_fixup_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_mad_i64_i32 v[30:31], s12, v10, v11, v[12:13]", HOST_CODE },
	{ "v_mad_i64_i32 v[30:31], null, v10, v11, v[30:31]", HOST_CODE },
	{ "v_rndne_f16 v30, v10", HOST_CODE },
	{ "v_floor_f16 v30, v10", HOST_CODE },
	{ "v_ceil_f16_e64 v30, -v10 clamp", HOST_CODE },
	{ "v_trunc_f16 v30, v10", HOST_CODE },
	{ "v_fract_f16 v30, v10", HOST_CODE },
	{ "v_min3_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_max3_f16 v30, v10, -v11, |v12| clamp", HOST_CODE },
	{ "v_max3_f16 v30, v10, v11, v12 op_sel:[1,0,1,1]", HOST_CODE },
	{ "v_minmax_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_maxmin_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_cvt_f16_u16 v30, v10", HOST_CODE },
	{ "v_cvt_f16_i16 v30, v10", HOST_CODE },
	{ "v_cvt_u16_f16 v30, v10", HOST_CODE },
	{ "v_cvt_i16_f16_e64 v30, -v10", HOST_CODE },
	{ "v_cvt_floor_i32_f32 v30, v10", HOST_CODE },
	{ "v_cvt_nearest_i32_f32 v30, v10", HOST_CODE },
	{ "v_cvt_u32_u16 v30, v10", HOST_CODE },
	{ "v_cvt_i32_i16 v30, v10", HOST_CODE },
	{ "v_cvt_pk_u16_u32 v30, v10, v11", HOST_CODE },
	{ "v_cvt_pk_i16_i32 v30, v10, v11", HOST_CODE },
	{ "v_maxmin_i32 v30, v10, v11, v12", HOST_CODE },
	{ "v_minmax_i32 v30, v10, v11, v12", HOST_CODE },
	{ "v_maxmin_u32 v30, v10, v11, v12", HOST_CODE },
	{ "v_minmax_u32 v30, v10, v11, v12", HOST_CODE },
	{ "v_mad_u32_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_mad_i32_i16 v30, v10, v11, v12 op_sel:[1,0,0,0]", HOST_CODE },
	{ "v_mad_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_mad_i16 v30, v10, v11, v12 op_sel:[0,1,0,1]", HOST_CODE },
	{ "v_min3_i16 v30, v10, v11, v12", HOST_CODE },
	{ "v_max3_i16 v30, v10, v11, v12", HOST_CODE },
	{ "v_min3_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_max3_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_med3_i16 v30, v10, v11, v12", HOST_CODE },
	{ "v_med3_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_not_b16 v30, v10", HOST_CODE },
	{ "v_mov_b16 v30.l, v10.l", HOST_CODE },
	{ "v_lshlrev_b64 v[30:31], v10, v[11:12]", HOST_CODE },
	{ "v_lshlrev_b64 v[30:31], 35, v[30:31]", HOST_CODE },
	{ "v_lshrrev_b64 v[30:31], v10, v[11:12]", HOST_CODE },
	{ "v_ashrrev_i64 v[30:31], v10, v[11:12]", HOST_CODE },
	{ "v_ashrrev_i64 v[30:31], v10, s[20:21]", HOST_CODE },
	{ "v_mad_u64_u32 v[30:31], s12, v10, v11, v[12:13]", HOST_CODE },
	{ "v_mad_u64_u32 v[30:31], null, v10, v11, v[12:13]", HOST_CODE },
	{ "v_mad_u64_u32 v[30:31], vcc_lo, v30, s20, v[30:31]", HOST_CODE },
	{ "v_mul_hi_u32 v30, v10, v11", HOST_CODE },
	{ "v_mul_hi_i32 v30, v10, v11", HOST_CODE },
	{ "v_bfe_i32 v30, v10, v11, v12", HOST_CODE },
	{ "v_alignbit_b32 v30, v10, v11, v12", HOST_CODE },
	{ "v_alignbyte_b32 v30, v10, v11, v12", HOST_CODE },
	{ "v_add_co_u32 v30, s12, v10, v11", HOST_CODE },
	{ "v_add_co_ci_u32_e64 v30, s12, v10, v11, s14", HOST_CODE },
	{ "v_subrev_co_ci_u32 v30, vcc_lo, v10, v11, vcc_lo", HOST_CODE },
	{ "v_add_co_u32 v30, null, v10, v11", HOST_CODE },
	{ "v_pk_add_u16 v30, v10, v11", HOST_CODE },
	{ "v_pk_add_i16 v30, v10, v11", HOST_CODE },
	{ "v_pk_sub_u16 v30, v10, v11", HOST_CODE },
	{ "v_pk_sub_i16 v30, v10, v11", HOST_CODE },
	{ "v_pk_mul_lo_u16 v30, v10, v11", HOST_CODE },
	{ "v_pk_min_i16 v30, v10, v11", HOST_CODE },
	{ "v_pk_max_i16 v30, v10, v11", HOST_CODE },
	{ "v_pk_min_u16 v30, v10, v11", HOST_CODE },
	{ "v_pk_max_u16 v30, v10, v11", HOST_CODE },
	{ "v_pk_lshlrev_b16 v30, v10, v11", ONLY_ZMM },
	{ "v_pk_lshrrev_b16 v30, v10, v11", ONLY_ZMM },
	{ "v_pk_ashrrev_i16 v30, v10, v11", ONLY_ZMM },
	{ "v_pk_mad_u16 v30, v10, v11, v12", HOST_CODE },
	{ "v_pk_mad_i16 v30, v10, v11, v12 op_sel:[1,0,1] op_sel_hi:[0,1,1]",
	  0 },
	{ "v_readlane_b32 s12, v10, 3", HOST_CODE },
	{ "v_readlane_b32 s12, v10, s13", HOST_CODE },
	{ "v_readlane_b32 vcc_lo, v10, m0", HOST_CODE },
	{ "v_readfirstlane_b32 s13, v11", HOST_CODE },
	{ "v_writelane_b32 v30, s12, 37", HOST_CODE },
	{ "v_permlane16_b32 v30, v10, s12, s13", HOST_CODE },
	{ "v_permlanex16_b32 v30, v10, s12, s13", HOST_CODE },
	{ "v_permlanex16_b32 v30, v10, s12, s13 op_sel:[1,0]", HOST_CODE },
	{ "v_permlane16_b32 v30, v10, s12, s13 op_sel:[0,1]", HOST_CODE },
	{ "ds_bpermute_b32 v30, v10, v11", HOST_CODE },
	{ "ds_bpermute_b32 v30, v10, v11 offset:1028", HOST_CODE },
	{ "ds_swizzle_b32 v30, v12 offset:0x401f", HOST_CODE },
	{ "ds_swizzle_b32 v30, v12 offset:swizzle(QUAD_PERM,1,0,3,2)",
	  HOST_CODE },
	{ "v_ldexp_f32 v30, v10, v11", ONLY_ZMM },
	{ "v_ldexp_f32 v30, v10, 3", ONLY_ZMM },
	{ "v_med3_f32 v30, v10, v11, v12", HOST_CODE },
	{ "v_fract_f32 v30, v10", HOST_CODE },
	{ "v_div_scale_f32 v30, vcc_lo, v10, v11, v10", HOST_CODE },
	{ "v_div_scale_f32 v30, null, v10, v11, v12", HOST_CODE },
	{ "v_div_fixup_f32 v30, v10, v11, v12", HOST_CODE },
	{ "v_bfm_b32 v30, v10, v11", HOST_CODE },
	{ "v_clz_i32_u32 v30, v10", ONLY_ZMM },
	{ "v_ctz_i32_b32 v30, v10", ONLY_ZMM },
	{ "v_bcnt_u32_b32 v30, v10, v11", ONLY_ZMM },
	{ "v_mbcnt_lo_u32_b32 v30, v10, v11", ONLY_ZMM },
	{ "v_mbcnt_lo_u32_b32 v30, -1, 0", ONLY_ZMM },
	{ "v_mbcnt_hi_u32_b32 v30, v10, v11", HOST_CODE },
	{ "v_ldexp_f16 v30, v10, v11", HOST_CODE },
	{ "v_ldexp_f16_e64 v30, -v10, v11 clamp", HOST_CODE },
	{ "v_dot2_f16_f16 v30, v10, v11, v12", HOST_CODE },
	{ "v_dot2_f16_f16 v30, -v10, |v11|, v12", HOST_CODE },
	{ "v_pack_b32_f16 v30, v10, v11", HOST_CODE },
	{ "v_pack_b32_f16 v30, v10, v11 op_sel:[1,0,0]", HOST_CODE },
	{ "v_pack_b32_f16 v30, -|v10|, v11 clamp", MICROOP },
	{ "v_lshlrev_b32 v30, 16, v10", HOST_CODE },
	{ "v_lshrrev_b32 v30, 31, v10", HOST_CODE },
	{ "v_ashrrev_i32 v30, 33, v10", HOST_CODE },
	{ "v_ashrrev_i32 v30, 0x12340007, v10", HOST_CODE },
	{ "v_lshlrev_b32 v30, s12, v10", HOST_CODE },
	{ "v_lshl_add_u32 v30, v10, 3, v11", HOST_CODE },
	{ "v_lshl_or_b32 v30, v10, -3, v11", HOST_CODE },
	{ "v_add_lshl_u32 v30, v10, v11, 4", HOST_CODE },
	{ "v_bfe_u32 v30, v10, 3, 5", HOST_CODE },
	{ "v_bfe_i32 v30, v10, 3, 40", HOST_CODE },
	{ "v_alignbit_b32 v30, v10, v11, 12", HOST_CODE },
	{ "v_lshlrev_b32_dpp v30, v10, v11 row_ror:3", HOST_CODE },
	{ "v_perm_b32 v30, v10, v11, 0x01060205", HOST_CODE },
	{ "v_cmp_lt_f16 s12, v10, v11", HOST_CODE },
	{ "v_cmp_nlg_f16 vcc_lo, v10, v11", HOST_CODE },
	{ "v_cmp_gt_i16 s12, v10, v11", HOST_CODE },
	{ "v_cmpx_le_u16 v10, v11", MICROOP },
	{ "v_add_nc_u16 v30, v10, v11", HOST_CODE },
	{ "v_sub_nc_i16 v30, v10, v11", HOST_CODE },
	{ "v_mul_lo_u16 v30, v10, v11", HOST_CODE },
	{ "v_min_u16 v30, v10, v11", HOST_CODE },
	{ "v_max_u16 v30, v10, v11", HOST_CODE },
	{ "v_min_i16 v30, v10, v11", HOST_CODE },
	{ "v_max_i16 v30, v10, v11", HOST_CODE },
	{ "v_lshlrev_b16 v30, v10, v11", ONLY_ZMM },
	{ "v_lshrrev_b16 v30, v10, v11", ONLY_ZMM },
	{ "v_ashrrev_i16 v30, v10, v11", ONLY_ZMM },
	{ "v_and_b16 v30, v10, v11", HOST_CODE },
	{ "v_add_nc_i16 v30, v10, v11 op_sel:[1,0,1]", HOST_CODE },
	{ "v_div_fmas_f32 v30, v10, v11, v12", MICROOP },
	{ "v_perm_b32 v30, v10, v11, v12", MICROOP },
	{ "v_exp_f32_dpp v30, v10 quad_perm:[1,0,3,2] row_mask:0x5 bank_mask:0xf",
	  HOST_CODE },
	{ "v_log_f32_dpp v30, v10 row_shr:1 row_mask:0xf bank_mask:0xf",
	  HOST_CODE },
	{ "v_add_f16_dpp v30, v10, v11 row_shr:1 row_mask:0xf bank_mask:0xf",
	  HOST_CODE },
	{ "v_max_f16_dpp v30, v10, v11 dpp8:[7,6,5,4,3,2,1,0]", HOST_CODE },
	{ "v_add_f32_dpp v30, -v10, |v11| row_ror:3 row_mask:0xf bank_mask:0xf bound_ctrl:1",
	  HOST_CODE },
	{ "v_dot2acc_f32_f16_dpp v30, v10, v11 row_ror:3 row_mask:0xf bank_mask:0xe",
	  HOST_CODE },
	{ "v_dot2_f32_f16_e64_dpp v30, v10, v11, v12 row_xmask:4 row_mask:0xf bank_mask:0xf",
	  HOST_CODE },
};

/* ---------------------------------------------------------------- sources ----
 */

static uint32_t random_word(struct isa_gen_state *g)
{
	static const uint32_t special[] = {
		0,	    0x80000000, 0x7f800000, 0xff800000, 0xffc00000,
		0x7f800001, 0x3f800000, 0xbf800000, 0x00800000, 0x80800000,
		0x007fffff, 1,		0x80000001, ~0u,	0x7c007c00,
		0xfc00fc00, 0x7e013c00, 0x3c00fe01, 0x04000400, 0x84008400,
		0x03ff8001, 0x7f7fffff, 0x7bff7bff, 0xfbfffbff, 0x80008000,
		0x00008000, 0x3c003c00,
	};

	switch (gen_below(g, 8)) {
	case 0:
		return special[gen_below(g, ARRAY_SIZE(special))];
	case 1:
	case 2:
		return 0x3c003c00 + (gen_u32(g) & 0x83ff83ff);
	case 3:
	case 4:
		return (gen_u32(g) & 0x807fffff) +
		       (110 + gen_below(g, 32)) * 0x800000;
	case 5: /* halves of any size, but no NaN */
		return gen_u32(g) & 0xbfffbfff;
	}
	return gen_u32(g);
}

/* Numbers only, so that host code goes on: of all sizes if `wide`. */
static uint32_t random_number(struct isa_gen_state *g, bool halves, bool wide)
{
	const uint32_t u = gen_u32(g);

	if (halves)
		return wide ? u & 0xbfffbfff : (u & 0x8fff8fff) + 0x30003000;
	return wide ? u & 0xbfffffff :
		      (u & 0x807fffff) + (118 + gen_below(g, 18)) * 0x800000;
}

/*
 * `round` counts; most have no NaN, and every sixteenth 32 of the 65,536
 * halves, which it does not leave out.
 */
static void fill(struct isa_gen_state *g, uint32_t (*v)[SOFT_LANES], int round)
{
	const bool numbers = round % 4 < 3;
	const uint32_t signs = round & 32 ? ~0u : 0x7fff7fff;

	for (int r = 0; r < N_SOURCES; r++)
		for (int i = 0; i < SOFT_LANES; i++) {
			uint32_t *to = &v[SOURCES + r][i];

			if (!numbers)
				*to = random_word(g);
			else if (round & 64 && gen_below(g, 24) == 0)
				*to = gen_u32(g) & 0x80008000;
			else
				*to = random_number(g, round & (r < 2 ? 2 : 4),
						    round & 8) &
				      signs;
		}
	for (uint32_t i = 0; i < SOFT_LANES && round % 16 == 15; i++) {
		const uint32_t h = ((uint32_t)round / 16 * SOFT_LANES + i) *
				   0x9e37 % 0x10000;

		v[SOURCES][i] = h | (h * 0x6b65 & 0xffff) << 16;
	}
	if (numbers && round % 8 == 5) /* one is special */
		v[SOURCES + gen_below(g, N_SOURCES)][gen_below(g, SOFT_LANES)] =
			random_word(g);
	for (int r = 0; r < N_RESULTS; r++)
		for (int i = 0; i < SOFT_LANES; i++)
			v[RESULTS + r][i] = random_word(g);
}

/* Its text is a wave32's, in whatever wave it runs. */
static void load_code(struct bench_machine m[2], struct bench_code *code,
		 const char *text)
{
	const int wave = m[0].w.wave_size;

	code->gen = ISA_GFX11;
	code->wave = 32;
	code->bytes = 0;
	code->n_insts = 0;
	bench_line(code,
		   "v_add_f32 v41, v42, v43"); /* after it MXCSR may flush */
	bench_line(code, text);
	bench_line(code, "v_mov_b32 v40, v30");
	bench_line(code, "s_endpgm");
	for (int k = 0; k < 2; k++) {
		bench_load(&m[k], code);
		m[k].w.wave_size = wave;
	}
}

static void print_difference(const struct bench_machine m[2], const char *text,
			     uint32_t mode, uint32_t exec)
{
	for (int h = 0; h < soft_halves(&m[0].w); h++)
		for (int r = RESULTS; r < RESULTS + N_RESULTS; r++)
			for (int i = 0; i < LANES; i++) {
				uint32_t(*const fast)[LANES] = m[0].w.v[h];
				uint32_t(*const slow)[LANES] = m[1].w.v[h];

				if (fast[r][i] == slow[r][i])
					continue;
				diag("%s: MODE %x, EXEC %x, v%d, lane %d: fast "
				     "%08x, slow %08x of %08x %08x %08x",
				     text, mode, exec, r, 32 * h + i,
				     fast[r][i], slow[r][i], slow[SOURCES][i],
				     slow[SOURCES + 1][i],
				     slow[SOURCES + 2][i]);
				return;
			}
	for (int i = 0; i < 128; i++)
		if (m[0].w.s[i] != m[1].w.s[i])
			diag("%s: MODE %x, EXEC %x, s%d: fast %08x, slow %08x",
			     text, mode, exec, i, m[0].w.s[i], m[1].w.s[i]);
}

static uint32_t random_exec(struct isa_gen_state *g, int round)
{
	return round % 3 ? ~0u :
	       round % 5 ? gen_u32(g) :
	       round % 2 ? 0xffff :
			   0;
}

/* One vector of sources by both; false: they differ. */
static bool check_one(struct isa_gen_state *g, struct bench_machine m[2],
		const char *text, uint32_t mode, int round)
{
	struct soft_wave as = { .mode = mode, .scc = round & 1 };
	const int halves = soft_halves(&m[0].w);
	bool same;

	for (int i = 0; i < 106; i++)
		as.s[i] = random_word(g);
	for (int h = 0; h < halves; h++) {
		uint32_t(*const fast)[LANES] = m[0].w.v[h];
		uint32_t(*const slow)[LANES] = m[1].w.v[h];

		as.s[ISA_R_EXEC_LO + h] = random_exec(g, round);
		fill(g, fast, round);
		memcpy(slow[SOURCES], fast[SOURCES], N_SOURCES * sizeof(*fast));
		memcpy(slow[RESULTS], fast[RESULTS], N_RESULTS * sizeof(*fast));
	}
	for (int k = 0; k < 2; k++)
		run_code(&m[k], &as);
	same = !memcmp(m[0].w.s, m[1].w.s, sizeof(m[0].w.s)) &&
	       m[0].w.scc == m[1].w.scc;
	for (int h = 0; h < halves; h++)
		same &= !memcmp(m[0].w.v[h][RESULTS], m[1].w.v[h][RESULTS],
				N_RESULTS * sizeof(*m[0].w.v[h]));
	if (same)
		return true;
	print_difference(m, text, mode, as.s[ISA_R_EXEC_LO]);
	return false;
}

/* In one mode; *share: of rounds that host code did alone, if it is given. */
static bool check_mode(struct isa_gen_state *g, struct bench_machine m[2],
		       const struct inst *i, uint32_t mode, int rounds,
		       double *share)
{
	struct bench_code code;
	int alone = 0;
	bool native = false;

	load_code(m, &code, i->text);
	for (int round = 0; round < HOT + rounds; round++) {
		if (round == HOT && share)
			native = watch_device(&m[0]);
		n_left = 0;
		if (!check_one(g, m, i->text, mode, round))
			return false;
		alone += native && !n_left;
	}
	if (share)
		*share = (double)alone / rounds;
	return true;
}

/* SGPRs are pairs of them then. */
static bool check_wave64(struct isa_gen_state *g, struct bench_machine m[2],
			 const struct inst *inst, int rounds)
{
	bool same = true;

	for (int k = 0; k < 2; k++)
		m[k].w.wave_size = 64;
	for (int k = 0; k < 2 && same; k++)
		same = check_mode(g, m, inst, modes[k], rounds, NULL);
	for (int k = 0; k < 2; k++)
		m[k].w.wave_size = 32;
	if (!same)
		diag("%s: as a wave64", inst->text);
	return same;
}

static bool check(struct isa_gen_state *g, struct bench_machine m[2],
		  const struct inst *inst, double *share)
{
	const int part = getenv("T0_SLOW") ? 1 : 8; /* of all halves */
	const int rounds = 6000 / part;

	if (!check_mode(g, m, inst, modes[0], 16 * 0x10000 / SOFT_LANES / part,
			share))
		return false;
	for (size_t i = 1; i < ARRAY_SIZE(modes); i++)
		if (!check_mode(g, m, inst, modes[i], rounds, NULL))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(odd_modes); i++)
		if (!check_mode(g, m, inst, odd_modes[i], rounds / 8, NULL))
			return false;
	return check_wave64(g, m, inst, rounds / 4);
}

/* ----------------------------------------------------------------- levels ----
 */

static void init_machines(struct bench_machine m[2])
{
	for (int k = 0; k < 2; k++) {
		bench_machine_init(&m[k], 4096);
		m[k].w.wave_size = 32;
	}
	m[1].slow = true;
}

/* Some instructions need more than x86-64-v4 to be host code, or less. */
static bool becomes_host_code(const struct inst *t)
{
	const bool vnni = !strncmp(t->text, "v_dot4", 6) ||
			  !strncmp(t->text, "v_dot8", 6);
	const bool vbmi = !strncmp(t->text, "v_perm_b32", 10);
	const bool popcnt = !strncmp(t->text, "v_bcnt", 6) ||
			    !strncmp(t->text, "v_mbcnt_lo", 10);

	if (soft_simd() != &soft_simd_v4)
		return soft_simd() == &soft_simd_v3 && t->form == HOST_CODE;
	return t->form != MICROOP &&
	       (!vnni || __builtin_cpu_supports("avx512vnni")) &&
	       (!vbmi || __builtin_cpu_supports("avx512vbmi")) &&
	       (!popcnt || __builtin_cpu_supports("avx512vpopcntdq"));
}

/* All of them, in a process that was told to do with less. */
static int run_level(const char *level, uint64_t seed)
{
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	struct bench_machine m[2];
	double share = 0;

	setenv("T0_SOFT_SIMD", level, 1);
	init_machines(m);
	for (size_t i = 0; i < ARRAY_SIZE(insts); i++)
		for (size_t k = 0; k < 2; k++)
			if (!check_mode(&g, m, &insts[i], modes[k], 1000,
					k ? NULL : &share) ||
			    (!k && becomes_host_code(&insts[i]) &&
			     share < 0.05))
				return 1;
	return 0;
}

static void test_level(const char *level, uint64_t seed)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(run_level(level, seed));
	ok(child > 0 && waitpid(child, &status, 0) == child && !status,
	   "code for x86-64-%s gives what handlers give", level);
}

int main(void)
{
	const char *seed = getenv("T0_SEED");
	struct isa_gen_state g = { .seed = seed ? strtoull(seed, NULL, 0) :
						  20261126,
				   .gen = ISA_GFX11 };
	struct bench_machine m[2];

	diag("seed %llu", (unsigned long long)g.seed);
	if (__builtin_cpu_supports("avx2"))
		test_level("v3", g.seed);
	test_level("v2", g.seed);
	init_machines(m);
	for (size_t i = 0; i < ARRAY_SIZE(insts); i++) {
		const struct inst *t = &insts[i];
		double share = 0;

		ok(check(&g, m, t, &share), "%s: as its handler", t->text);
		if (becomes_host_code(t))
			ok(share > 0.05, "%s: host code alone %.2f of the time",
			   t->text, share);
	}
	for (int k = 0; k < 2; k++)
		bench_machine_fini(&m[k]);
	return plan_done();
}
