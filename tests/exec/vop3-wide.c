/*
 * VOP3 instructions with 64-bit registers, carries, and lanes that look at each
 * other.  Wanted values are worked out by hand; the words are what LLVM 19
 * assembles the text to.
 */
#include "tests/exec/lanes.h"

/* v[6:7] = op(v[0:1], v[2:3], v[4:5]); 32-bit sources use the low register. */
struct row {
	const char *text;
	uint64_t src[3], want;
	const char *why;
};

static const struct row rows[] = {
	{ "v_fma_f64 v[6:7], v[0:1], v[2:3], v[4:5]",
	  { 0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002 },
	  0x3970000000000000,
	  "u^2 = 2^-104" },
	{ "v_fma_f64 v[6:7], -v[0:1], |v[2:3]|, v[4:5]",
	  { 0x4000000000000000, 0xc008000000000000, 0x3ff0000000000000 },
	  0xc014000000000000,
	  "-2 * 3 + 1" },
	{ "v_fma_f64 v[6:7], v[0:1], v[2:3], v[4:5]",
	  { 0x7ff0000000000000, 0x0, 0x0 },
	  0xfff8000000000000,
	  "inf * 0" },
	{ "v_add_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x3ff0000000000000, 0x3ca0000000000000, 0x0 },
	  0x3ff0000000000000,
	  "1 + 2^-53: to even" },
	{ "v_add_f64 v[6:7], v[0:1], 1.0",
	  { 0x3ff0000000000000, 0x0, 0x0 },
	  0x4000000000000000,
	  "inline constant" },
	{ "v_add_f64 v[6:7], v[0:1], v[2:3] clamp",
	  { 0x4000000000000000, 0x4000000000000000, 0x0 },
	  0x3ff0000000000000,
	  "" },
	{ "v_mul_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x10000000000000, 0x3fe0000000000000, 0x0 },
	  0x8000000000000,
	  "denormal" },
	{ "v_mul_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x7ff4000000000001, 0x7ff8000000000002, 0x0 },
	  0x7ffc000000000001,
	  "first NaN, quiet" },
	{ "v_min_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x0, 0x8000000000000000, 0x0 },
	  0x8000000000000000,
	  "" },
	{ "v_max_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x7ff8000000000000, 0xc000000000000000, 0x0 },
	  0xc000000000000000,
	  "" },
	{ "v_max_f64 v[6:7], v[0:1], v[2:3]",
	  { 0x7ff0000000000001, 0xc000000000000000, 0x0 },
	  0x7ff8000000000001,
	  "a signalling NaN wins" },
	{ "v_ldexp_f64 v[6:7], v[0:1], v2",
	  { 0x3ff8000000000000, 0xfffffffe, 0x0 },
	  0x3fd8000000000000,
	  "" },
	{ "v_ldexp_f64 v[6:7], v[0:1], v2",
	  { 0x3ff0000000000003, 0xfffffc00, 0x0 },
	  0x4000000000001,
	  "(1 + 3u) 2^-1024: 0.75 of a unit up" },
	{ "v_ldexp_f64 v[6:7], v[0:1], v2",
	  { 0x7fe0000000000000, 0xfffff800, 0x0 },
	  0x2000000000000,
	  "2^1023 2^-2048" },
	{ "v_ldexp_f64 v[6:7], v[0:1], v2",
	  { 0x1, 0x800, 0x0 },
	  0x7cd0000000000000,
	  "2^-1074 2^2048" },
	{ "v_div_fixup_f64 v[6:7], v[0:1], v[2:3], v[4:5]",
	  { 0x3ff0000000000000, 0x0, 0x0 },
	  0xfff8000000000000,
	  "" },
	{ "v_div_fixup_f64 v[6:7], v[0:1], v[2:3], v[4:5]",
	  { 0x3ff0000000000000, 0x8000000000000000, 0x3ff0000000000000 },
	  0xfff0000000000000,
	  "" },
	{ "v_div_fixup_f64 v[6:7], v[0:1], v[2:3], v[4:5]",
	  { 0x3ff0000000000000, 0x7fe0000000000000, 0x1 },
	  0x0,
	  "far below" },
	{ "v_trig_preop_f64 v[6:7], v[0:1], v2",
	  { 0x3ff0000000000000, 0x0, 0x0 },
	  0x3fe45f306dc9c882,
	  "2/pi cut to 53 bits" },
	{ "v_lshlrev_b64 v[6:7], v0, v[2:3]",
	  { 0x44, 0x123456789abcdef, 0x0 },
	  0x123456789abcdef0,
	  "shift is 4" },
	{ "v_lshrrev_b64 v[6:7], v0, v[2:3]",
	  { 0x20, 0x8123456789abcdef, 0x0 },
	  0x81234567,
	  "" },
	{ "v_ashrrev_i64 v[6:7], v0, v[2:3]",
	  { 0x20, 0x8123456789abcdef, 0x0 },
	  0xffffffff81234567,
	  "" },
	{ "v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]",
	  { 0x504030201, 0x1010101, 0x3000200010000 },
	  0xc000c000b0006,
	  "windows 1234 2345 345 45" },
	{ "v_qsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5] clamp",
	  { 0x0, 0xffffffff, 0xffff000000000000 },
	  0xffff03fc03fc03fc,
	  "saturates" },
	{ "v_mqsad_pk_u16_u8 v[6:7], v[0:1], v2, v[4:5]",
	  { 0x504030201, 0x10001, 0x3000200010000 },
	  0x7000800050002,
	  "two bytes count" },
};

static void test_rows(void)
{
	struct lanes *t = lanes_new(32);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];

		for (int k = 0; k < 3; k++)
			lanes_set64(t, 2 * k, r->src[k]);
		lanes_text(t, r->text);
		is_u64(lanes_get64(t, 6, 0), r->want, "%zu %s (%s)", i, r->text,
		       r->why);
		is_u64(lanes_get64(t, 6, 31), r->want, "%zu %s, lane 31", i,
		       r->text);
	}
	lanes_free(t);
}

static void test_mqsad_u32(void)
{
	/* v_mqsad_u32_u8 v[6:9], v[0:1], v2, v[10:13] */
	static const char code[] =
		"v_mqsad_u32_u8 v[6:9], v[0:1], v2, v[10:13]";
	static const uint32_t want[] = { 2, 14, 26, 34 };
	struct lanes *t = lanes_new(32);

	lanes_set64(t, 0, 0x0504030201);
	lanes_set(t, 2, 0x00010001);
	for (int j = 0; j < 4; j++)
		lanes_set(t, 10 + j, 10 * j);
	lanes_text(t, code);
	for (int j = 0; j < 4; j++)
		is_u64(t->v[0][6 + j][9], want[j], "mqsad_u32: window %d", j);
	lanes_free(t);
}

/* Lane 0 carries, lane 1 does not, lane 2 is off; the mask goes to s4. */
static void carry(const char *name, const char *text, const uint32_t a[2],
		  const uint32_t b[2], const uint32_t want[2])
{
	struct lanes *t = lanes_new(32);

	for (int i = 0; i < 3; i++) {
		t->v[0][0][i] = a[i & 1];
		t->v[0][1][i] = b[i & 1];
	}
	t->w.s[ISA_R_EXEC_LO] = 3;
	t->w.s[4] = 0xffffffff;
	lanes_text(t, text);
	is_u64(t->v[0][3][0], want[0], "%s: lane 0", name);
	is_u64(t->v[0][3][1], want[1], "%s: lane 1", name);
	is_u64(t->w.s[4], 1, "%s: one carry, disabled lanes 0", name);
	lanes_free(t);
}

static void test_carry(void)
{
	static const uint32_t max_5[] = { 0xffffffff, 5 }, two_3[] = { 2, 3 };
	static const uint32_t one_5[] = { 1, 5 };

	carry("v_add_co_u32", "v_add_co_u32 v3, s4, v0, v1", max_5, two_3,
	      (uint32_t[]){ 1, 8 });
	carry("v_add_co_u32 clamp", "v_add_co_u32 v3, s4, v0, v1 clamp", max_5,
	      two_3, (uint32_t[]){ 0xffffffff, 8 });
	carry("v_sub_co_u32", "v_sub_co_u32 v3, s4, v0, v1", one_5, two_3,
	      (uint32_t[]){ 0xffffffff, 2 });
	carry("v_subrev_co_u32", "v_subrev_co_u32 v3, s4, v0, v1", two_3, one_5,
	      (uint32_t[]){ 0xffffffff, 2 });
}

static void mad64(const char *name, const char *text, uint32_t a, uint32_t b,
		  uint64_t c, uint64_t want, bool carry_out)
{
	struct lanes *t = lanes_new(32);

	lanes_set(t, 0, a);
	lanes_set(t, 1, b);
	lanes_set64(t, 4, c);
	lanes_text(t, text);
	is_u64(lanes_get64(t, 6, 7), want, "%s", name);
	is_u64(t->w.s[4], carry_out ? ~0u : 0, "%s: carry", name);
	lanes_free(t);
}

static void test_mad64(void)
{
	mad64("mad_u64_u32", "v_mad_u64_u32 v[6:7], s4, v0, v1, v[4:5]", ~0u,
	      ~0u, 1, 0xfffffffe00000002, false);
	mad64("mad_u64_u32 overflow",
	      "v_mad_u64_u32 v[6:7], s4, v0, v1, v[4:5]", ~0u, ~0u, ~0ull,
	      0xfffffffe00000000, true);
	mad64("mad_i64_i32", "v_mad_i64_i32 v[6:7], s4, v0, v1, v[4:5]", -3u, 5,
	      10, -5ull, true);
	mad64("mad_i64_i32 positive",
	      "v_mad_i64_i32 v[6:7], s4, v0, v1, v[4:5]", -3u, -5u, 10, 25,
	      false);
	mad64("mad_i64_i32 clamp",
	      "v_mad_i64_i32 v[6:7], s4, v0, v1, v[4:5] clamp", 0x7fffffff, 2,
	      INT64_MAX, INT64_MAX, false);
}

/* v_readlane_b32 s4, v0, s5; v_writelane_b32 v3, s4, s5 */
static void test_lane_access(int wave)
{
	static const char read[] = "v_readlane_b32 s4, v0, s5";
	static const char write[] = "v_writelane_b32 v3, s4, s5";
	struct lanes *t = lanes_new(wave);

	for (int i = 0; i < 64; i++)
		t->v[i / 32][0][i % 32] = 100 + i;
	t->w.s[ISA_R_EXEC_LO] = 1;
	t->w.s[5] = 37; /* 5 in a wave32 */
	lanes_text(t, read);
	is_u64(t->w.s[4], wave == 64 ? 137 : 105,
	       "wave%d: readlane ignores EXEC and wraps", wave);
	t->w.s[4] = 77;
	lanes_text(t, write);
	is_u64(t->v[wave == 64][3][5], 77, "wave%d: writelane", wave);
	is_u64(t->v[wave == 64][3][4], 0, "wave%d: no other lane", wave);
	lanes_free(t);
}

/*
 * Lane selector s5:s4 = 0x0fedcba987654321: within a row, lane i takes lane
 * i + 1 mod 16.  EXEC lacks lanes 1 and 20.
 */
static void permlane(const char *name, const char *text, int row, bool fi,
		     bool bc)
{
	struct lanes *t = lanes_new(32);
	int bad = -1;

	for (int i = 0; i < 32; i++)
		t->v[0][0][i] = 1000 + i;
	lanes_set(t, 3, 5);
	t->w.s[4] = 0x87654321;
	t->w.s[5] = 0x0fedcba9;
	t->w.s[ISA_R_EXEC_LO] = ~(1u << 1 | 1u << 20);
	lanes_text(t, text);
	for (int i = 0; i < 32 && bad < 0; i++) {
		int from = ((i & 16) ^ row) + (i + 1) % 16;
		bool off = from == 1 || from == 20;
		uint32_t want = off && !fi ? (bc ? 0 : 5) : 1000 + from;

		if (i == 1 || i == 20)
			want = 5;
		if (t->v[0][3][i] != want)
			bad = i;
	}
	is_i64(bad, -1, "%s: every lane", name);
	lanes_free(t);
}

static void test_permlane(void)
{
	permlane("permlane16", "v_permlane16_b32 v3, v0, s4, s5", 0, false,
		 false);
	permlane("permlane16 fetch inactive",
		 "v_permlane16_b32 v3, v0, s4, s5 op_sel:[1,0]", 0, true,
		 false);
	permlane("permlane16 bound control",
		 "v_permlane16_b32 v3, v0, s4, s5 op_sel:[0,1]", 0, false,
		 true);
	permlane("permlanex16", "v_permlanex16_b32 v3, v0, s4, s5", 16, false,
		 false);
}

/* v3 = bits of v0 below this lane + v1 */
static void test_mbcnt(void)
{
	static const char code_lo[] = "v_mbcnt_lo_u32_b32 v3, v0, v1";
	static const char code_hi[] = "v_mbcnt_hi_u32_b32 v3, v0, v1";
	struct lanes *t = lanes_new(64);

	lanes_set(t, 0, 0xffffffff);
	lanes_set(t, 1, 0);
	lanes_text(t, code_lo);
	is_u64(t->v[0][3][31], 31, "mbcnt_lo counts lanes below");
	is_u64(t->v[1][3][0], 32, "mbcnt_lo: all of the lower half");
	lanes_text(t, code_hi);
	is_u64(t->v[0][3][31], 0, "mbcnt_hi: nothing in the lower half");
	is_u64(t->v[1][3][31], 31, "mbcnt_hi counts lanes from 32");
	lanes_free(t);
}

/* v_cndmask_b16 v3, -v0, v1, s4 */
static void test_cndmask(void)
{
	static const char code[] = "v_cndmask_b16 v3, -v0, v1, s4";
	struct lanes *t = lanes_new(32);

	lanes_set(t, 0, 0x11113c00);
	lanes_set(t, 1, 0x22224000);
	lanes_set(t, 3, 0xdead0000);
	t->w.s[4] = 2;
	lanes_text(t, code);
	is_u64(t->v[0][3][0], 0xdeadbc00, "cndmask_b16: 0 selects -src0");
	is_u64(t->v[0][3][1], 0xdead4000, "cndmask_b16: 1 selects src1");
	lanes_free(t);
}

int main(void)
{
	test_rows();
	test_mqsad_u32();
	test_carry();
	test_mad64();
	test_lane_access(32);
	test_lane_access(64);
	test_permlane();
	test_mbcnt();
	test_cndmask();
	return plan_done();
}
