/*
 * Which registers instructions read and write, against a table by hand from
 * the RDNA3 ISA manual: registers in order of the text, implicit ones behind.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "tests/tap.h"

/*
 * uses: "r" read, "w" written, "b" both; v0, s0, vcc, exec, m0 with ":n" for
 * n registers; scc alone.  The order does not matter.
 */
static const struct {
	int wave;
	uint32_t word[3];
	const char *text, *uses;
} known[] = {
	{ 32, { 0x80020504 }, "s_add_u32 s2, s4, s5", "ws2 rs4 rs5 wscc" },
	{ 32, { 0x82020504 }, "s_addc_u32 s2, s4, s5",
	  "ws2 rs4 rs5 rscc wscc" },
	{ 32, { 0x8b820604 }, "s_and_b64 s[2:3], s[4:5], s[6:7]",
	  "ws2:2 rs4:2 rs6:2 wscc" },
	{ 32, { 0x98020504 }, "s_cselect_b32 s2, s4, s5",
	  "ws2 rs4 rs5 rscc" },
	{ 32, { 0xbe820004 }, "s_mov_b32 s2, s4", "ws2 rs4" },
	{ 32, { 0xbe820104 }, "s_mov_b64 s[2:3], s[4:5]", "ws2:2 rs4:2" },
	{ 32, { 0xbefe0104 }, "s_mov_b64 exec, s[4:5]", "wexec:2 rs4:2" },
	{ 32, { 0xbe822004 }, "s_and_saveexec_b32 s2, s4",
	  "ws2 rs4 wscc bexec" },
	{ 64, { 0xbe822104 }, "s_and_saveexec_b64 s[2:3], s[4:5]",
	  "ws2:2 rs4:2 wscc bexec:2" },
	{ 32, { 0xbe820204 }, "s_cmov_b32 s2, s4", "bs2 rs4 rscc" },
	{ 32, { 0xbe824004 }, "s_movrels_b32 s2, s4", "ws2 rs4 rm0" },
	{ 32, { 0xbf060504 }, "s_cmp_eq_u32 s4, s5", "rs4 rs5 wscc" },
	{ 32, { 0xbf110604 }, "s_cmp_lg_u64 s[4:5], s[6:7]",
	  "rs4:2 rs6:2 wscc" },
	{ 32, { 0xb0020005 }, "s_movk_i32 s2, 0x5", "ws2" },
	{ 32, { 0xb7820005 }, "s_addk_i32 s2, 0x5", "bs2 wscc" },
	{ 32, { 0xb1820005 }, "s_cmpk_eq_i32 s2, 0x5", "rs2 wscc" },
	{ 32, { 0xb8820001 }, "s_getreg_b32 s2, hwreg(HW_REG_MODE, 0, 1)",
	  "ws2" },
	{ 32, { 0xb9020001 }, "s_setreg_b32 hwreg(HW_REG_MODE, 0, 1), s2",
	  "rs2" },
	{ 32, { 0xbf800000 }, "s_nop 0", "" },
	{ 32, { 0xbfa10002 }, "s_cbranch_scc0 2", "rscc" },
	{ 32, { 0xbfa30002 }, "s_cbranch_vccz 2", "rvcc" },
	{ 64, { 0xbfa30002 }, "s_cbranch_vccz 2", "rvcc:2" },
	{ 64, { 0xbfa50002 }, "s_cbranch_execz 2", "rexec:2" },
	{ 32, { 0xf4000102, 0xf8000010 }, "s_load_b32 s4, s[4:5], 0x10",
	  "ws4 rs4:2" },
	{ 32, { 0xf4080102, 0x0c000000 }, "s_load_b128 s[4:7], s[4:5], s6",
	  "ws4:4 rs4:2 rs6" },
	{ 32, { 0x7e040300 }, "v_mov_b32_e32 v2, v0", "wv2 rv0 rexec" },
	{ 64, { 0x7e040300 }, "v_mov_b32_e32 v2, v0", "wv2 rv0 rexec:2" },
	{ 32, { 0x7e040500 }, "v_readfirstlane_b32 s2, v0",
	  "ws2 rv0 rexec" },
	{ 32, { 0x7e041f04 }, "v_cvt_f32_f64_e32 v2, v[4:5]",
	  "wv2 rv4:2 rexec" },
	{ 32, { 0x7e04cb04 }, "v_swap_b32 v2, v4", "bv2 bv4 rexec" },
	{ 32, { 0x06040904 }, "v_add_f32_e32 v2, v4, v4",
	  "wv2 rv4 rv4 rexec" },
	{ 32, { 0x06040804 }, "v_add_f32_e32 v2, s4, v4",
	  "wv2 rs4 rv4 rexec" },
	{ 32, { 0x56040904 }, "v_fmac_f32_e32 v2, v4, v4",
	  "bv2 rv4 rv4 rexec" },
	{ 32, { 0x40040904 }, "v_add_co_ci_u32_e32 v2, vcc_lo, v4, v4, vcc_lo",
	  "wv2 wvcc rv4 rv4 rvcc rexec" },
	{ 64, { 0x40040904 }, "v_add_co_ci_u32_e32 v2, vcc, v4, v4, vcc",
	  "wv2 wvcc:2 rv4 rv4 rvcc:2 rexec:2" },
	{ 32, { 0x02040904 }, "v_cndmask_b32_e32 v2, v4, v4, vcc_lo",
	  "wv2 rv4 rv4 rvcc rexec" },
	{ 32, { 0x7c240904 }, "v_cmp_eq_f32_e32 vcc_lo, v4, v4",
	  "wvcc rv4 rv4 rexec" },
	{ 64, { 0x7c240904 }, "v_cmp_eq_f32_e32 vcc, v4, v4",
	  "wvcc:2 rv4 rv4 rexec:2" },
	{ 32, { 0x7d240904 }, "v_cmpx_eq_f32_e32 v4, v4",
	  "rv4 rv4 bexec" },
	{ 32, { 0xd8d80000, 0x02000004 }, "ds_load_b32 v2, v4",
	  "wv2 rv4 rexec" },
	{ 32, { 0xd8340000, 0x00000204 }, "ds_store_b32 v4, v2",
	  "rv4 rv2 rexec" },
	{ 32, { 0xd8800000, 0x02000604 }, "ds_add_rtn_u32 v2, v4, v6",
	  "wv2 rv4 rv6 rexec" },
	{ 32, { 0xdc520000, 0x027c0004 }, "global_load_b32 v2, v[4:5], off",
	  "wv2 rv4:2 rexec" },
	{ 32, { 0xdc520000, 0x02040004 }, "global_load_b32 v2, v4, s[4:5]",
	  "wv2 rv4 rs4:2 rexec" },
	{ 32, { 0xdc6a0000, 0x007c0204 }, "global_store_b32 v[4:5], v2, off",
	  "rv4:2 rv2 rexec" },
	{ 32, { 0xdcd60000, 0x007c0204 },
	  "global_atomic_add_u32 v[4:5], v2, off", "rv4:2 rv2 rexec" },
	{ 32, { 0xdcd64000, 0x067c0204 },
	  "global_atomic_add_u32 v6, v[4:5], v2, off glc",
	  "wv6 rv4:2 rv2 rexec" },
	{ 32, { 0xdc510000, 0x02060000 }, "scratch_load_b32 v2, off, s6",
	  "wv2 rs6 rexec" },
	{ 32, { 0xe0500000, 0x80010200 }, "buffer_load_b32 v2, off, s[4:7], 0",
	  "wv2 rs4:4 rexec" },
	{ 32, { 0xe0d44000, 0x80410204 },
	  "buffer_atomic_add_u32 v2, v4, s[4:7], 0 offen glc",
	  "bv2 rv4 rs4:4 rexec" },
	{ 32, { 0xd4120002, 0x00000904 },
	  "v_cmp_eq_f32_e64 s2, v4, s4",
	  "ws2 rv4 rs4 rexec" },
	{ 32, { 0xd7000602, 0x00020d04 },
	  "v_add_co_u32 v2, s6, v4, v6",
	  "wv2 ws6 rv4 rv6 rexec" },
	{ 32, { 0xd7600002, 0x00000d04 },
	  "v_readlane_b32 s2, v4, s6",
	  "ws2 rv4 rs6" },
	{ 32, { 0xcc404002, 0x1c0a3512 },
	  "v_wmma_f32_16x16x16_f16 v[2:9], v[18:25], v[26:33], v[2:9]",
	  "wv2:8 rv18:8 rv26:8 rv2:8 rexec" },
	{ 32, { 0xc9060d04, 0x02021709 },
	  "v_dual_add_f32 v2, v4, v6 :: v_dual_mul_f32 v3, v9, v11",
	  "wv2 rv4 rv6 wv3 rv9 rv11 rexec" },
	{ 32, { 0xd7610002, 0x00000c04 },
	  "v_writelane_b32 v2, s4, s6",
	  "bv2 rs4 rs6" },
	{ 32, { 0xd65b0002, 0x00200d04 },
	  "v_permlane16_b32 v2, v4, s6, s8",
	  "bv2 rv4 rs6 rs8 rexec" },
	{ 32, { 0xd6fc6a02, 0x04220d04 },
	  "v_div_scale_f32 v2, vcc_lo, v4, v6, v8",
	  "wv2 wvcc rv4 rv6 rv8 rexec" },
	{ 32, { 0xd6370002, 0x04220d04 },
	  "v_div_fmas_f32 v2, v4, v6, v8",
	  "wv2 rv4 rv6 rv8 rvcc rexec" },
	{ 32, { 0x7e0402fa, 0xff00e404 },
	  "v_mov_b32_dpp v2, v4 quad_perm:[0,1,2,3] row"
	  "_mask:0xf bank_mask:0xf",
	  "bv2 rv4 rexec" },
	{ 32, { 0x7e0402fa, 0xff08e404 },
	  "v_mov_b32_dpp v2, v4 quad_perm:[0,1,2,3] row"
	  "_mask:0xf bank_mask:0xf bound_ctrl:1",
	  "wv2 rv4 rexec" },
	{ 32, { 0x7e0402fa, 0x7f08e404 },
	  "v_mov_b32_dpp v2, v4 quad_perm:[0,1,2,3] row"
	  "_mask:0x7 bank_mask:0xf bound_ctrl:1",
	  "bv2 rv4 rexec" },
	{ 32, { 0xcc0e4002, 0x1c220d04 },
	  "v_pk_fma_f16 v2, v4, v6, v8",
	  "wv2 rv4 rv6 rv8 rexec" },
	{ 32, { 0xd6140002, 0x04220d04 },
	  "v_fma_f64 v[2:3], v[4:5], v[6:7], v[8:9]",
	  "wv2:2 rv4:2 rv6:2 rv8:2 rexec" },
	{ 32, { 0xd6fe7c02, 0x04220d04 },
	  "v_mad_u64_u32 v[2:3], null, v4, v6, v[8:9]",
	  "wv2:2 rv4 rv6 rv8:2 rexec" },
	{ 32, { 0xdac40000, 0x02000000 },
	  "ds_load_addtid_b32 v2",
	  "wv2 rm0 rexec" },
	{ 32, { 0xdca20000, 0x02040000 },
	  "global_load_addtid_b32 v2, s[4:5]",
	  "wv2 rs4:2 rexec" },
	{ 32, { 0xdd084000, 0x027c0604 },
	  "flat_atomic_cmpswap_b64 v[2:3], v[4:5], v[6:9] glc",
	  "wv2:2 rv4:2 rv6:4 rexec" },
	{ 32, { 0xc8120d04, 0x02021709 },
	  "v_dual_fmac_f32 v2, v4, v6 :: v_dual_cndmask"
	  "_b32 v3, v9, v11",
	  "bv2 rv4 rv6 wv3 rv9 rv11 rvcc rexec" },
	{ 32, { 0xbe8200fd }, "s_mov_b32 s2, src_scc", "ws2 rscc" },
};

static void add_use(struct buf *b, char role, const char *file, int reg,
		    int count)
{
	buf_printf(b, "%s%c%s", b->len ? " " : "", role, file);
	if (reg >= 0)
		buf_printf(b, "%d", reg);
	if (count > 1)
		buf_printf(b, ":%d", count);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of a text in order, each once. */
static void sorted(const char *text, char *out, size_t size)
{
	char copy[256], *word[32], *save;
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = strtok_r(copy, " ", &save); p && n < 32;
	     p = strtok_r(NULL, " ", &save))
		word[n++] = p;
	qsort(word, (size_t)n, sizeof(*word), by_text);
	*out = 0;
	for (int i = 0; i < n; i++) {
		if (i && !strcmp(word[i], word[i - 1]))
			continue;
		strncat(out, word[i], size - strlen(out) - 2);
		strcat(out, " ");
	}
}

static void uses(const struct isa_target *t, const struct isa_inst *in,
		 struct buf *b)
{
	struct isa_use use;

	isa_use(t, in, &use);
	for (int i = 0; i < use.n; i++) {
		char role = "?wrb"[use.reg[i].role];
		int reg = use.reg[i].reg, count = use.reg[i].count;

		if (use.reg[i].file == ISA_K_VGPR)
			add_use(b, role, "v", reg, count);
		else if (reg == ISA_R_VCC_LO)
			add_use(b, role, "vcc", -1, count);
		else if (reg == ISA_R_EXEC_LO)
			add_use(b, role, "exec", -1, count);
		else if (reg == ISA_R_M0)
			add_use(b, role, "m0", -1, count);
		else
			add_use(b, role, "s", reg, count);
	}
	if (use.scc_read)
		add_use(b, 'r', "scc", -1, 1);
	if (use.scc_write)
		add_use(b, 'w', "scc", -1, 1);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct isa_target t = { .gen = ISA_GFX11,
					.wave = known[i].wave };
		char text[ISA_TEXT_MAX], got[256], wanted[256];
		struct buf b = { 0 };
		struct isa_inst in;
		const char *why = isa_decode(&t, known[i].word,
					     sizeof(known[i].word), &in);

		if (why) {
			ok(false, "%08x: %s", known[i].word[0], why);
			continue;
		}
		isa_print(&t, &in, text, sizeof(text));
		is_str(text, known[i].text, "the bytes of %s", known[i].text);
		uses(&t, &in, &b);
		sorted(b.data ? b.data : "", got, sizeof(got));
		sorted(known[i].uses, wanted, sizeof(wanted));
		is_str(got, wanted, "registers of %s, wave%d", text, t.wave);
		buf_fini(&b);
	}
	return plan_done();
}
