/*
 * What each group of instructions costs in the gfx1100 in software: wave
 * instructions a second in the fast form of code (step.h), against the same
 * instructions by their handlers one by one, on one host thread.  A group whose
 * ratio is near 1 has no fast form.  What other chips in software make of the
 * same group, or of the nearest that they have, is a share of gfx1100's rate.
 */
#include "tests/bench/machine.h"
#include "tests/bench/rows.h"

enum {
	ROUNDS = 7,
	TRIAL_NS = 4000000,
	MEMORY_BYTES = 256 << 10, /* of X_VA; loads stay in the caches */
};

static const struct {
	const char *name;
	enum isa_gen gen;
} chips[] = {
	{ "gfx1100", ISA_GFX11 },
	{ "gfx1010", ISA_GFX10_1 },
	{ "gfx1030", ISA_GFX10_3 },
	{ "gfx1151", ISA_GFX11_5 },
	{ "gfx1201", ISA_GFX12 },
};
enum { CHIPS = ARRAY_SIZE(chips) };

#define WIDE "wave64" /* in the names of groups that are of such a wave */

struct group {
	const char *name, *text;
	uint32_t mode; /* 0: as compilers set it */
};

/* Parts of the text that gfx10, all of it, or gfx12 names otherwise, in this order. */
static const struct {
	enum isa_gen gen;
	const char *from, *to;
} names[] = {
	{ ISA_GFX10_3, "ds_load_2addr_", "ds_read2_" },
	{ ISA_GFX10_3, "ds_store_2addr_", "ds_write2_" },
	{ ISA_GFX10_3, "ds_load_", "ds_read_" },
	{ ISA_GFX10_3, "ds_store_", "ds_write_" },
	{ ISA_GFX10_3, "_load_b32", "_load_dword" },
	{ ISA_GFX10_3, "_load_b64", "_load_dwordx2" },
	{ ISA_GFX10_3, "_load_b128", "_load_dwordx4" },
	{ ISA_GFX10_3, "_store_b32", "_store_dword" },
	{ ISA_GFX10_3, "_store_b128", "_store_dwordx4" },
	{ ISA_GFX10_3, "global_store_b16", "global_store_short" },
	{ ISA_GFX10_3, "global_load_u8", "global_load_ubyte" },
	{ ISA_GFX10_3, "global_load_u16", "global_load_ushort" },
	{ ISA_GFX10_3, "load_d16_b16", "load_short_d16" },
	{ ISA_GFX10_3, "load_d16_hi_b16", "load_short_d16_hi" },
	{ ISA_GFX10_3, "atomic_add_u32", "atomic_add" },
	{ ISA_GFX10_3, "global_atomic_add_f32", "global_atomic_add" },
	{ ISA_GFX10_3, "offset:2048", "offset:1024" },
	{ ISA_GFX10_3, "v_cvt_pk_rtz_f16", "v_cvt_pkrtz_f16" },
	{ ISA_GFX10_3, "v_dot2acc_f32_f16", "v_dot2c_f32_f16" },
	{ ISA_GFX10_3, "s_delay_alu instid0(VALU_DEP_1)", "s_nop 1" },
	{ ISA_GFX12, "v_dot2acc_f32_f16 v31, v22, v23",
	  "v_dot2_f32_f16 v31, v22, v23, v31" },
	{ ISA_GFX12, "], 0 offen", "], null offen" },
	{ ISA_GFX12, " glc", " th:TH_ATOMIC_RETURN" },
	{ ISA_GFX12, "s_waitcnt vmcnt(0)", "s_wait_loadcnt 0x0" },
};

/*
 * v0: 4 * lane; v1: 16 * lane; v2, v3: address of X_VA + 4 * lane; v4: 64
 * times a permutation of the lanes; v10 to v19: floats; v20: 0; v21: lane;
 * v50 and up: pairs of halves; others: free.  s[2:3]: X_VA; s[8:11]: a buffer
 * of it.
 */
static const struct group groups[] = {
	{ "f32", "v_fma_f32 v30, v10, v11, v12\n"
		 "v_add_f32 v31, v13, v14\n"
		 "v_mul_f32 v32, v15, v16\n"
		 "v_fmac_f32 v33, v17, v18\n"
		 "v_max_f32 v34, v12, v13\n", 0 },
	{ "f32, MODE flushes", "v_fma_f32 v30, v10, v11, v12\n"
			       "v_add_f32 v31, v13, v14\n"
			       "v_mul_f32 v32, v15, v16\n"
			       "v_fmac_f32 v33, v17, v18\n"
			       "v_max_f32 v34, v12, v13\n", 0x3c0 },
	{ "f32, clamp, omod, neg", "v_fma_f32 v30, -v10, v11, v12\n"
				   "v_add_f32_e64 v31, v13, |v14| clamp\n"
				   "v_mul_f32_e64 v32, v15, v16 mul:2\n"
				   "v_fma_f32 v33, v17, v18, -v19 clamp\n", 0 },
	{ "f32 of SGPRs", "v_fma_f32 v30, s20, v11, v12\n"
			  "v_add_f32 v31, s21, v14\n"
			  "v_mul_f32 v32, 0x3f123456, v16\n"
			  "s_add_u32 s22, s22, 1\n"
			  "v_add_nc_u32 v33, s22, v18\n", 0 },
	{ "u32", "v_add_nc_u32 v30, v10, v11\n"
		 "v_lshl_add_u32 v31, v12, 3, v13\n"
		 "v_and_or_b32 v32, v14, v15, v16\n"
		 "v_bfe_u32 v33, v17, 3, 5\n"
		 "v_mul_lo_u32 v34, v10, v12\n", 0 },
	{ "u64, carries", "v_add_co_u32 v30, vcc_lo, v10, v11\n"
			  "v_add_co_ci_u32 v31, vcc_lo, v12, v13, vcc_lo\n"
			  "v_lshlrev_b64 v[32:33], 2, v[10:11]\n"
			  "v_mad_u64_u32 v[34:35], s12, v12, v13, v[14:15]\n",
	  0 },
	{ "compare, select", "v_cmp_lt_f32 vcc_lo, v10, v11\n"
			     "v_cndmask_b32 v30, v12, v13, vcc_lo\n"
			     "v_cmp_gt_u32 s12, v14, v15\n"
			     "v_cndmask_b32 v31, v12, v13, s12\n", 0 },
	{ "v_cmpx, EXEC", "s_mov_b32 s12, exec_lo\n"
			  "v_cmpx_lt_u32 v21, v10\n"
			  "v_add_f32 v30, v10, v11\n"
			  "s_mov_b32 exec_lo, s12\n", 0 },
	{ "VOPD", "v_dual_fmac_f32 v30, v10, v11 :: v_dual_mul_f32 v31, v12, "
		  "v13\n"
		  "v_dual_mov_b32 v32, v14 :: v_dual_add_f32 v33, v15, v16\n",
	  0 },
	{ "f16", "v_add_f16 v30, v50, v51\n"
		 "v_mul_f16 v31, v52, v53\n"
		 "v_fma_f16 v32, v54, v55, v56\n"
		 "v_max_f16 v33, v54, v55\n", 0 },
	{ "conversions", "v_cvt_f16_f32 v30, v10\n"
			 "v_cvt_f32_f16 v31, v51\n"
			 "v_cvt_i32_f32 v32, v12\n"
			 "v_cvt_f32_i32 v33, v13\n"
			 "v_cvt_pk_rtz_f16_f32 v34, v10, v11\n", 0 },
	{ "packed f16", "v_pk_fma_f16 v30, v50, v51, v52\n"
			"v_pk_add_f16 v31, v53, v54\n"
			"v_pk_mul_f16 v32, v55, v56\n"
			"v_pk_max_f16 v33, v55, v56\n", 0 },
	{ "mixed precision", "v_fma_mix_f32 v30, v50, v51, v12 "
			     "op_sel_hi:[1,1,0]\n"
			     "v_fma_mixlo_f16 v31, v13, v14, v15\n", 0 },
	{ "dot2 f16", "v_dot2_f32_f16 v30, v22, v23, v10\n"
		      "v_dot2acc_f32_f16 v31, v22, v23\n", 0 },
	{ "dot2 bf16", "v_dot2_f32_bf16 v30, v22, v23, v10\n", 0 },
	{ "dot4, dot8", "v_dot4_i32_iu8 v30, v10, v11, v12 neg_lo:[1,1,0]\n"
			"v_dot8_i32_iu4 v31, v10, v11, v12 neg_lo:[1,1,0]\n"
			"v_dot4_u32_u8 v32, v10, v11, v12\n", 0 },
	{ "f64", "v_fma_f64 v[30:31], v[24:25], v[26:27], v[28:29]\n"
		 "v_add_f64 v[32:33], v[24:25], v[26:27]\n"
		 "v_mul_f64 v[34:35], v[24:25], v[28:29]\n", 0 },
	{ "transcendental", "v_exp_f32 v30, v10\n"
			    "v_log_f32 v31, v11\n"
			    "v_rcp_f32 v32, v12\n"
			    "v_rsq_f32 v33, v13\n"
			    "v_sqrt_f32 v34, v14\n"
			    "v_sin_f32 v35, v15\n", 0 },
	{ "transcendental f16", "v_exp_f16 v30, v50\n"
				"v_log_f16 v31, v51\n"
				"v_rcp_f16 v32, v52\n"
				"v_rsq_f16 v33, v53\n"
				"v_sqrt_f16 v34, v54\n", 0 },
	{ "f16, u16, rarer", "v_max3_f16 v30, v50, v51, v52\n"
			     "v_rndne_f16 v31, v51\n"
			     "v_cvt_f16_i16 v32, v52\n"
			     "v_cvt_i16_f16 v33, v53\n"
			     "v_mad_u16 v34, v50, v51, v52\n"
			     "v_cvt_pk_i16_i32 v35, v54, v55\n", 0 },
	{ "division", "v_div_scale_f32 v30, vcc_lo, v10, v11, v10\n"
		      "v_div_fmas_f32 v31, v30, v12, v13\n"
		      "v_div_fixup_f32 v32, v31, v11, v10\n", 0 },
	{ "DPP", "v_add_f32_dpp v30, v10, v11 quad_perm:[1,0,3,2]\n"
		 "v_add_f32_dpp v31, v12, v13 row_shr:1\n"
		 "v_mov_b32_dpp v32, v14 row_ror:8\n"
		 "v_max_f32_dpp v33, v15, v16 row_xmask:4\n"
		 "v_mov_b32_dpp v34, v10 dpp8:[7,6,5,4,3,2,1,0]\n", 0 },
	{ "readlane, writelane", "v_readlane_b32 s12, v10, 3\n"
				 "v_readfirstlane_b32 s13, v11\n"
				 "v_writelane_b32 v30, s12, 5\n", 0 },
	{ "permlane, bpermute, swizzle",
	  "v_permlanex16_b32 v30, v10, s12, s13\n"
	  "ds_bpermute_b32 v31, v0, v11\n"
	  "ds_swizzle_b32 v32, v12 offset:0x401f\n", 0 },
	{ "s_waitcnt and the like", "s_waitcnt vmcnt(0)\n"
				    "v_mov_b32 v30, v10\n"
				    "s_delay_alu instid0(VALU_DEP_1)\n"
				    "s_nop 0\n", 0 },
	{ "scalar", "s_add_u32 s12, s12, s13\n"
		    "s_addc_u32 s13, s13, 0\n"
		    "s_lshl_b32 s14, s12, 2\n"
		    "s_and_b32 s15, s14, s13\n"
		    "s_cmp_lg_u32 s15, 0\n", 0 },
	{ "s_load", "s_load_b32 s12, s[2:3], 0x10\n"
		    "s_load_b64 s[14:15], s[2:3], 0x20\n"
		    "s_load_b128 s[16:19], s[2:3], 0x40\n", 0 },
	{ "global b32 loads", "global_load_b32 v30, v0, s[2:3]\n"
			      "global_load_b32 v31, v[2:3], off offset:128\n",
	  0 },
	{ "global b32, scattered", "global_load_b32 v30, v4, s[2:3]\n", 0 },
	{ "global b64, b128 loads",
	  "global_load_b64 v[30:31], v1, s[2:3]\n"
	  "global_load_b128 v[32:35], v1, s[2:3] offset:512\n", 0 },
	{ "global b128, scattered",
	  "global_load_b128 v[32:35], v4, s[2:3]\n", 0 },
	{ "global u8, u16, d16", "global_load_u8 v30, v0, s[2:3]\n"
				 "global_load_u16 v31, v0, s[2:3]\n"
				 "global_load_d16_b16 v32, v0, s[2:3]\n"
				 "global_load_d16_hi_b16 v32, v0, s[2:3]\n",
	  0 },
	{ "global stores", "global_store_b32 v0, v10, s[2:3] offset:2048\n"
			   "global_store_b128 v1, v[10:13], s[2:3]\n"
			   "global_store_b16 v0, v10, s[2:3] offset:2048\n",
	  0 },
	{ "part of the lanes", "s_mov_b32 exec_lo, 0xfffff\n"
			       "global_load_b32 v30, v0, s[2:3]\n"
			       "v_add_f32 v31, v30, v10\n"
			       "global_store_b32 v0, v31, s[2:3]\n"
			       "s_mov_b32 exec_lo, -1\n", 0 },
	{ "flat", "flat_load_b32 v30, v[2:3]\n"
		  "flat_store_b32 v[2:3], v30 offset:1024\n", 0 },
	{ "buffer", "buffer_load_b32 v30, v0, s[8:11], 0 offen\n"
		    "buffer_load_b128 v[32:35], v1, s[8:11], 0 offen\n"
		    "buffer_store_b32 v30, v0, s[8:11], 0 offen offset:128\n",
	  0 },
	{ "scratch", "scratch_store_b32 off, v10, off offset:16\n"
		     "scratch_load_b32 v30, off, off offset:16\n"
		     "scratch_store_b128 off, v[10:13], off offset:32\n"
		     "scratch_load_b128 v[32:35], off, off offset:32\n", 0 },
	{ "LDS b32", "ds_store_b32 v0, v10\n"
		     "ds_load_b32 v30, v0 offset:128\n", 0 },
	{ "LDS b64, b128", "ds_store_b64 v1, v[10:11]\n"
			   "ds_load_b128 v[32:35], v1 offset:128\n"
			   "ds_store_b128 v1, v[10:13]\n"
			   "ds_load_b64 v[30:31], v1\n", 0 },
	{ "LDS scattered", "ds_load_b32 v30, v4\n"
			   "ds_store_b32 v4, v10\n"
			   "ds_load_b128 v[32:35], v4\n", 0 },
	{ "LDS 2addr", "ds_load_2addr_b32 v[30:31], v0 offset1:32\n"
		       "ds_store_2addr_b32 v0, v10, v11 offset1:64\n"
		       "ds_load_2addr_b64 v[32:35], v1 offset1:8\n", 0 },
	{ "LDS u8, u16", "ds_load_u16 v30, v0\n"
			 "ds_load_u16_d16_hi v31, v0\n"
			 "ds_store_b16 v0, v10\n"
			 "ds_store_b8 v0, v10\n", 0 },
	{ "LDS atomics", "ds_add_u32 v0, v10\n"
			 "ds_add_rtn_u32 v30, v0, v10\n"
			 "ds_max_u32 v0, v11\n", 0 },
	{ "global atomics", "global_atomic_add_u32 v0, v10, s[2:3]\n"
			    "global_atomic_add_u32 v30, v0, v10, s[2:3] glc\n"
			    "global_atomic_add_f32 v0, v20, s[2:3] "
			    "offset:512\n", 0 },
	{ "global atomics, one dword",
	  "global_atomic_add_u32 v20, v10, s[2:3]\n"
	  "global_atomic_add_f32 v20, v20, s[2:3] offset:512\n", 0 },
	{ "WMMA f16, bf16",
	  "v_wmma_f32_16x16x16_f16 v[40:47], v[50:57], v[60:67], v[40:47]\n"
	  "v_wmma_f32_16x16x16_bf16 v[70:77], v[50:57], v[60:67], v[70:77]\n",
	  0 },
	{ "WMMA f16 sums, iu8",
	  "v_wmma_f16_16x16x16_f16 v[40:47], v[50:57], v[60:67], v[40:47]\n"
	  "v_wmma_i32_16x16x16_iu8 v[70:77], v[50:53], v[60:63], v[70:77]\n",
	  0 },
	{ "WMMA bf16 sums, iu4",
	  "v_wmma_bf16_16x16x16_bf16 v[40:47], v[50:57], v[60:67], v[40:47]\n"
	  "v_wmma_i32_16x16x16_iu4 v[70:77], v[50:51], v[60:61], v[70:77]\n",
	  0 },
	{ "WMMA f16, bf16, " WIDE,
	  "v_wmma_f32_16x16x16_f16 v[40:43], v[50:57], v[60:67], v[40:43]\n"
	  "v_wmma_f32_16x16x16_bf16 v[70:73], v[50:57], v[60:67], v[70:73]\n",
	  0 },
	{ "WMMA f16 sums, iu8, " WIDE,
	  "v_wmma_f16_16x16x16_f16 v[40:43], v[50:57], v[60:67], v[40:43]\n"
	  "v_wmma_i32_16x16x16_iu8 v[70:73], v[50:53], v[60:63], v[70:73]\n",
	  0 },
};

/* Where other names are not enough; NULL: the chip has no such. */
static const struct {
	const char *group;
	enum isa_gen gen;
	const char *text;
} others[] = {
	{ "VOPD", ISA_GFX10_3, NULL },
	{ "dot2 f16", ISA_GFX10_1, NULL },
	{ "dot2 bf16", ISA_GFX10_3, NULL },
	{ "dot4, dot8", ISA_GFX10_1, NULL },
	{ "dot4, dot8", ISA_GFX10_3,
	  "v_dot4_i32_i8 v30, v10, v11, v12\n"
	  "v_dot8_i32_i4 v31, v10, v11, v12\n"
	  "v_dot4_u32_u8 v32, v10, v11, v12\n" },
	{ "scratch", ISA_GFX10_1,
	  "scratch_store_dword v20, v10, off offset:16\n"
	  "scratch_load_dword v30, v20, off offset:16\n"
	  "scratch_store_dwordx4 v20, v[10:13], off offset:32\n"
	  "scratch_load_dwordx4 v[32:35], v20, off offset:32\n" },
	{ "WMMA f16, bf16", ISA_GFX10_3, NULL },
	{ "WMMA f16, bf16", ISA_GFX12,
	  "v_wmma_f32_16x16x16_f16 v[40:47], v[50:53], v[60:63], v[40:47]\n"
	  "v_wmma_f32_16x16x16_bf16 v[70:77], v[50:53], v[60:63], v[70:77]\n" },
	{ "WMMA f16 sums, iu8", ISA_GFX10_3, NULL },
	{ "WMMA f16 sums, iu8", ISA_GFX12,
	  "v_wmma_f16_16x16x16_f16 v[40:43], v[50:53], v[60:63], v[40:43]\n"
	  "v_wmma_i32_16x16x16_iu8 v[70:77], v[50:51], v[60:61], v[70:77]\n" },
	{ "WMMA bf16 sums, iu4", ISA_GFX10_3, NULL },
	{ "WMMA bf16 sums, iu4", ISA_GFX12,
	  "v_wmma_bf16_16x16x16_bf16 v[40:43], v[50:53], v[60:63], v[40:43]\n"
	  "v_wmma_i32_16x16x16_iu4 v[70:77], v50, v60, v[70:77]\n" },
	{ "WMMA f16, bf16, " WIDE, ISA_GFX10_3, NULL },
	{ "WMMA f16, bf16, " WIDE, ISA_GFX12,
	  "v_wmma_f32_16x16x16_f16 v[40:43], v[50:51], v[60:61], v[40:43]\n"
	  "v_wmma_f32_16x16x16_bf16 v[70:73], v[50:51], v[60:61], v[70:73]\n" },
	{ "WMMA f16 sums, iu8, " WIDE, ISA_GFX10_3, NULL },
	{ "WMMA f16 sums, iu8, " WIDE, ISA_GFX12,
	  "v_wmma_f16_16x16x16_f16 v[40:41], v[50:51], v[60:61], v[40:41]\n"
	  "v_wmma_i32_16x16x16_iu8 v[70:73], v50, v60, v[70:73]\n" },
};

/* The group's text of a chip, to be freed; NULL: there is none. */
static char *text_of(const struct group *g, enum isa_gen gen)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if ((others[i].gen == gen ||
		     (others[i].gen == isa_layout_gen(gen) && !others[i].text)) &&
		    !strcmp(others[i].group, g->name))
			return others[i].text ? xstrdup(others[i].text) : NULL;
	for (const char *p = g->text; *p;) {
		size_t i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (names[i].gen != isa_layout_gen(gen) ||
			strncmp(p, names[i].from, strlen(names[i].from))))
			i++;
		if (i < ARRAY_SIZE(names)) {
			buf_adds(&b, names[i].to);
			p += strlen(names[i].from);
		} else {
			buf_add(&b, p++, 1);
		}
	}
	buf_add(&b, "", 1);
	return b.data;
}

static void registers(struct bench_machine *m, const struct group *g)
{
	struct soft_wave *w = &m->w;

	memset(m->v, 0, 2 * 256 * sizeof(*m->v));
	memset(m->x, 0, m->x_bytes);
	memset(m->scratch, 0, BENCH_SCRATCH_BYTES * LANES);
	for (uint32_t i = 0; i < LANES; i++) {
		m->v[0][i] = 4 * i;
		m->v[1][i] = 16 * i;
		m->v[2][i] = X_VA + 4 * i;
		m->v[4][i] = i * 7 % 32 * 64;
		m->v[21][i] = i;
	}
	for (int r = 10; r < 20; r++)
		for (int i = 0; i < LANES; i++) {
			float f = (float)(r * LANES + i) / 99.0f;

			memcpy(&m->v[r][i], &f, sizeof(f));
		}
	bench_set(m, 22, 0x3e003c00); /* halves: 1, 1.5 */
	bench_set(m, 23, 0x3f003a00);
	for (int r = 25; r < 30; r += 2)
		bench_set(m, r, 0x3ff80000); /* as a double: 1.5 */
	for (int r = 50; r < 68; r++)
		bench_set(m, r, 0x3c003800);
	memset(w->s, 0, sizeof(w->s));
	w->s[2] = w->s[8] = X_VA;
	w->s[10] = (uint32_t)m->x_bytes;
	w->s[11] = 3u << 28; /* raw */
	w->s[20] = w->s[21] = 0x3f800000;
	w->mode = (g->mode ? g->mode : 0x3f0) | soft_fixed_mode(m->env.gen);
}

/* Wave instructions a second in a trial of about TRIAL_NS. */
static double trial(struct bench_machine *m, const struct group *g,
		    uint32_t loops)
{
	uint64_t before, ns;

	registers(m, g);
	before = m->w.n_insts;
	ns = bench_cpu_ns();
	bench_run(m, loops);
	ns = bench_cpu_ns() - ns;
	return (double)(m->w.n_insts - before) * 1e9 / (double)ns;
}

/* The first runs also warm up and tell how long a trial has to be. */
static uint32_t calibrate(struct bench_machine *m, const struct group *g)
{
	double rate = trial(m, g, 200);

	rate = trial(m, g, 200);
	return 1 + (uint32_t)(rate * TRIAL_NS * 1e-9 / m->code->n_insts);
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

static double report_way(struct bench_rows *r, const struct group *g,
			 const char *way, double best)
{
	char params[64];

	res_params(params, sizeof(params), "way:s", way);
	bench_case(r, g->name, params);
	return bench_rate_one(r, "insts/s", best);
}

static double report_chip(struct bench_rows *r, const struct group *g,
			  const char *chip, double ratio)
{
	char params[64];

	res_params(params, sizeof(params), "way:s chip:s", "stretches", chip);
	bench_case(r, g->name, params);
	return bench_ratio_one(r, "gfx1100", RES_HIGHER, ratio);
}

/* gfx1100 by handlers, then each chip's fast form. */
enum { HANDLERS, STRETCHES, MACHINES = 1 + CHIPS };

/* In turn, so that all see the same host. */
static void find_best(struct bench_machine m[MACHINES], const struct group *g,
		      double best[MACHINES])
{
	const unsigned rounds = bench_rounds(ROUNDS);
	static struct bench_code code[MACHINES];
	uint32_t loops[MACHINES] = { 0 };

	for (int k = 0; k < MACHINES; k++) {
		const enum isa_gen gen = chips[k ? k - STRETCHES : 0].gen;
		char *text = text_of(g, gen);

		best[k] = 0;
		if (!text)
			continue;
		bench_assemble(&code[k], gen, strstr(g->name, WIDE) ? 64 : 32,
			       text, 4);
		free(text);
		bench_load(&m[k], &code[k]);
		loops[k] = calibrate(&m[k], g);
	}
	for (unsigned i = 0; i < rounds; i++)
		for (int k = 0; k < MACHINES; k++)
			if (loops[k])
				best[k] =
					max(best[k], trial(&m[k], g, loops[k]));
}

static void measure_groups(struct bench_rows *r,
			   struct bench_machine m[MACHINES],
			   const struct group *g, struct table *t)
{
	double best[MACHINES];

	find_best(m, g, best);
	table_row(t);
	table_cell(t, 0, "%s", g->name);
	table_cell(t, 1, "%.1f",
		   report_way(r, g, "handlers", best[HANDLERS]) * 1e-6);
	table_cell(t, 2, "%.1f",
		   report_way(r, g, "stretches", best[STRETCHES]) * 1e-6);
	table_cell(t, 3, "%.2f",
		   bench_ratio_one(r, "handlers", RES_HIGHER,
				   best[STRETCHES] / best[HANDLERS]));
	for (int k = 1; k < CHIPS; k++)
		if (best[STRETCHES + k])
			table_cell(t, 3 + k, "%.2f",
				   report_chip(r, g, chips[k].name,
					       best[STRETCHES + k] /
						       best[STRETCHES]));
}

int main(int argc, char **argv)
{
	struct bench_machine m[MACHINES];
	struct bench_rows r;
	struct err e = { 0 };
	struct table t;
	bool done;

	bench_open(&r, "soft-groups", argc, argv);
	for (int k = 0; k < MACHINES; k++)
		bench_machine_init(&m[k], MEMORY_BYTES);
	m[HANDLERS].slow = true;
	table_init(&t, "soft: instructions,#M wave insts/s by handlers,"
		       "#in stretches,#ratio,#gfx1010,#gfx1030,#gfx1151,#gfx1201");
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (argc < 2 || strstr(groups[i].name, argv[1]))
			measure_groups(&r, m, &groups[i], &t);
	done = table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	for (int k = 0; k < MACHINES; k++)
		bench_machine_fini(&m[k]);
	return bench_close(&r, done, &e);
}
