/*
 * What AMD read from gfx1100 cards about NaNs, denormals, rounding and output
 * modifiers, for tests of its emulator rocjitsu (ROCm/rocm-systems,
 * valu_fp_mode_test.cpp and vop3_conversion_modifier_test.cpp): values, not
 * code.  Each program runs one by one and in the fast form.
 */
#include "tests/exec/lanes.h"

enum { WARM = 20, OLD = 0x5a5a5a5a };

#define IEEE SOFT_MODE_IEEE
#define OVFL SOFT_MODE_FP16_OVFL
#define DX10 SOFT_MODE_DX10_CLAMP

static struct lanes *t;

static void set_sources(const uint32_t *v, uint32_t old)
{
	for (int i = 0; i < 4; i++)
		lanes_set(t, i, v[i]);
	lanes_set(t, 6, old);
}

/* v6 after the text; the second time, in the fast form. */
static uint32_t run_again(const uint32_t *v, uint32_t old)
{
	for (int i = 0; i < WARM; i++) {
		set_sources(v, old);
		t->w.pc = LANES_CODE_VA;
		t->w.state = SOFT_READY;
		soft_wave_run(&t->w, 1000);
	}
	return t->v[0][6][7];
}

static void expect_old(const char *text, uint32_t mode, const uint32_t v[4],
		       uint32_t old, uint32_t want)
{
	uint32_t slow, fast;

	t->w.mode = mode;
	set_sources(v, old);
	if (!lanes_text(t, text)) {
		ok(false, "%s", text);
		return;
	}
	slow = t->v[0][6][7];
	fast = run_again(v, old);
	if (slow != want || fast != want)
		diag("0x%08x 0x%08x 0x%08x, MODE 0x%x: got 0x%08x, fast "
		     "0x%08x, wanted 0x%08x",
		     v[0], v[1], v[2], mode, slow, fast, want);
	ok(slow == want && fast == want, "%s of 0x%08x 0x%08x, MODE 0x%x",
	   text, v[0], v[1], mode);
}

static void check_lane(const char *text, uint32_t mode, uint32_t a, uint32_t b,
		       uint32_t c, uint32_t want)
{
	expect_old(text, mode, (uint32_t[4]){ a, b, c }, OLD, want);
}

/* A half, in the lower part of v6. */
static void expect_half(const char *text, uint32_t mode, uint32_t a, uint32_t b,
			uint32_t c, uint32_t want)
{
	check_lane(text, mode, a, b, c, (OLD & 0xffff0000) | want);
}

/* The four roundings of f32, the four settings of its denormals, IEEE. */
#define EACH_MODE(round, denorm, ieee)                    \
	for (uint32_t round = 0; round < 4; round++)      \
		for (uint32_t denorm = 0; denorm < 4; denorm++) \
			for (uint32_t ieee = 0; ieee < 2; ieee++)

/* ------------------------------------------------------------- f32 -------- */

static void test_add_mul(void)
{
	static const char *const text[2] = { "v_add_f32 v6, v0, v1",
					     "v_mul_f32 v6, v0, v1" };

	EACH_MODE(round, denorm, ieee)
	for (int mul = 0; mul < 2; mul++) {
		uint32_t mode = ieee << 9 | denorm << 4 | round;
		uint32_t nan = ieee ? 0x7fc01abc : 0x7f801abc;

		check_lane(text[mul], mode, 0x7f801abc, 0xffc00222, 0, nan);
		check_lane(text[mul], mode, 0x3f800000, 0x7f801abc, 0, nan);
		check_lane(text[mul], mode, 0, 0x80000000, 0,
			   mul || round == 2 ? 0x80000000 : 0);
		if (!mul)
			continue;
		/* 2^-126 (1 - 2^-24) is tiny, though it rounds to 2^-126. */
		check_lane(text[1], mode, 0x00800000, 0x3f7fffff, 0,
			   !(denorm & 2) ? 0 :
			   round < 2	 ? 0x00800000 :
					   0x007fffff);
		check_lane(text[1], mode, 0x80800000, 0x3f7fffff, 0,
			   !(denorm & 2)	    ? 0x80000000 :
			   round == 0 || round == 2 ? 0x80800000 :
						      0x807fffff);
	}
}

static void test_dx9_mode(const char *text, bool accumulates, uint32_t mode)
{
	const struct {
		uint32_t a, b, c, want;
	} row[] = {
		{ 0, 0x7f800000, 0x3f800000, 0x3f800000 },
		{ 0x7fc01234, 0x80000000, 0x3f800000, 0x3f800000 },
		{ 1, 0x4b000000, 0, 0 },
		{ 0x00800000, 0x3f000000, 0, 0 },
		{ 0, 0x7f800000, 0x80000001, (mode & 3) == 2 ? 1u << 31 : 0 },
		{ 0, 0x7f800000, 0x80000000, (mode & 3) == 2 ? 1u << 31 : 0 },
		{ 1u << 31, 0x3f800000, 1u << 31,
		  (mode & 3) == 2 ? 1u << 31 : 0 },
		{ 0x3f800000, 0x3f800000, 0x3f800000, 0x40000000 },
		{ 0x80800000, 0x33800000, 0x00800000, 0 },
		{ 0x80800000, 0x33000000, 0x00800000,
		  (mode & 3) < 2 ? 0x00800000 : 0 },
		{ 0x7fc00111, 0x7fc00222, 0x7fc00333, 0x7fc00111 },
		{ 0x7f800012, 0x3f800000, 0x3f800000, 0x7f800012 },
		{ 0x3f800000, 0x7f800012, 0x3f800000, 0x7f800012 },
		{ 0x3f800000, 0x3f800000, 0x7f800012, 0x7f800012 },
		{ 0, 0x7f800000, 0x7f800012, 0x7f800012 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		uint32_t v[4] = { row[i].a, row[i].b, row[i].c };
		uint32_t want = row[i].want;

		if (want == 0x7f800012 && mode & IEEE)
			want = 0x7fc00012;
		expect_old(text, mode, v, accumulates ? v[2] : OLD, want);
	}
}

/* Denormals are off and omod on, whatever MODE says of them. */
static void test_dx9(void)
{
	static const char *const omod[] = {
		"v_fma_dx9_zero_f32 v6, v0, v1, v2 mul:2",
		"v_fma_dx9_zero_f32 v6, v0, v1, v2 mul:4",
		"v_fma_dx9_zero_f32 v6, v0, v1, v2 div:2",
	};
	static const uint32_t two[] = { 0x40800000, 0x41000000, 0x3f800000 };

	EACH_MODE(round, denorm, ieee)
	{
		uint32_t mode = ieee << 9 | denorm << 4 | round;
		uint32_t zero = round == 2 ? 1u << 31 : 0;

		test_dx9_mode("v_fma_dx9_zero_f32 v6, v0, v1, v2", false, mode);
		test_dx9_mode("v_fmac_dx9_zero_f32 v6, v0, v1", true, mode);
		for (int i = 0; i < 3; i++) {
			check_lane(omod[i], mode, 0x3f800000, 0x3f800000,
				   0x3f800000, ieee ? 0x40000000 : two[i]);
			check_lane(omod[i], mode, 0, 0x7f800000, 1u << 31,
				   ieee ? zero : 0);
		}
		check_lane(omod[2], mode, 0x80800000, 0x3f800000, 0,
			   ieee ? 0x80800000 : 1u << 31);
	}
}

static void test_omod_underflow(void)
{
	EACH_MODE(round, denorm, ieee)
	{
		uint32_t mode = ieee << 9 | denorm << 4 | round;
		bool on = !ieee && !(denorm & 2);

		check_lane("v_fma_f32 v6, v0, 1.0, 0 div:2", mode, 0x80800000,
			   0, 0, on ? 1u << 31 : 0x80800000);
		check_lane("v_add_f32_e64 v6, v0, v1 div:2", mode, 0x807fffff,
			   0x80800000, 0,
			   on	      ? 1u << 31 :
			   denorm & 1 ? 0x80ffffff :
					0x80800000);
	}
}

/* Overflow by omod goes where MODE rounds; of v_mul_dx9_zero_f32. */
static void test_omod_overflow(void)
{
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t neg = 0; neg < 2; neg++) {
			bool inf = !round || round == (neg ? 2 : 1);
			uint32_t sign = neg << 31;

			check_lane("v_mul_dx9_zero_f32_e64 v6, v0, v1 mul:2",
				   round, sign | 0x7f7fffff, 0x3f800000, 0,
				   sign | (inf ? 0x7f800000 : 0x7f7fffff));
			check_lane(
				"v_mul_dx9_zero_f32_e64 v6, v0, v1 clamp mul:2",
				round, sign | 0x7f7fffff, 0x3f800000, 0,
				neg ? 0 : 0x3f800000);
		}
	check_lane("v_ldexp_f32 v6, v0, v1 mul:2", 15, 0x7f7fffff, 0, 0,
		   0x7f7fffff);
}

static void test_mix(void)
{
	static const char *const text = "v_fma_mix_f32 v6, v0, v1, v2";

	check_lane(text, 0, 1, 0x4b000000, 0, 0);
	check_lane(text, 0x30, 1, 0x4b000000, 0, 0x00800000);
	check_lane(text, 0, 0x00800000, 0x3f000000, 0, 0);
	check_lane(text, 0x30, 0x00800000, 0x3f000000, 0, 0x00400000);
	check_lane(text, 2, 0x3f800000, 0x3f800000, 0xbf800000, 0x80000000);
	check_lane(text, 0, 0x7f800012, 0x3f800000, 0x3f800000, 0x7f800012);
	check_lane(text, IEEE, 0x7f800012, 0x3f800000, 0x3f800000, 0x7fc00012);
}

static void test_parts(void)
{
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t mode = 0xf0 | round | round << 2;
		bool inf = round < 2;

		check_lane("v_ldexp_f32 v6, v0, v1", mode, 0x00800000, -24u, 0,
			   round == 1);
		check_lane("v_ldexp_f32 v6, v0, v1", mode, 0x80800000, -24u, 0,
			   0x80000000 | (round == 2));
		check_lane("v_ldexp_f32 v6, v0, v1", mode, 0x7f7fffff, 1, 0,
			   inf ? 0x7f800000 : 0x7f7fffff);
		expect_half("v_div_fixup_f16 v6, v0, v1, v2", mode, 0x7e2a,
			    0x3c00, 0x3c00, inf ? 0x7c00 : 0x7bff);
		expect_half("v_div_fixup_f16 v6, v0, v1, v2", mode, 0x7c00,
			    0xbc00, 0x3c00, round % 2 ? 0xfbff : 0xfc00);
	}
	check_lane("v_ldexp_f32 v6, v0, v1", 0, 1, 23, 0, 0);
	check_lane("v_ldexp_f32 v6, v0, v1", 0xf0, 1, 23, 0, 0x00800000);
	check_lane("v_frexp_mant_f32 v6, v0", 0xf0, 0xff80002a, 0, 0,
		   0xffc0002a);
	check_lane("v_frexp_mant_f32 v6, v0", 0xf0, 1, 0, 0, 0x3f000000);
	check_lane("v_frexp_mant_f32 v6, v0", 0, 0x80000001, 0, 0, 0x80000000);
	check_lane("v_frexp_exp_i32_f32 v6, v0", 0xf0, 1, 0, 0, -148u);
	check_lane("v_frexp_exp_i32_f32 v6, v0", 0, 1, 0, 0, 0);
	check_lane("v_frexp_exp_i32_f32 v6, v0", 0xf0, 0xff80002a, 0, 0, 0);
	expect_half("v_div_fixup_f16 v6, v0, v1, v2", 0xf0, 0, 0x3c00, 0xfc2a,
		    0xfe2a);
	expect_half("v_div_fixup_f16 v6, v0, v1, v2", 0, 0x3c00, 1, 0x3c00,
		    0x7c00);
	expect_half("v_div_fixup_f16 v6, v0, v1, v2", 0xf0, 0x3c00, 1, 0x3c00,
		    0x3c00);
	check_lane("v_div_scale_f64 v[6:7], vcc_lo, v[0:1], v[0:1], v[2:3]",
		   0xf0, 0x510b2fa8, 0x7ff19bde, 0xc874d413, 0x510b2fa8);
}

/* ------------------------------------------------- transcendentals -------- */

static void test_trans_f32(void)
{
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t denorm = 0; denorm < 4; denorm++) {
			uint32_t mode = 0xc0 | denorm << 4 | round;

			check_lane("v_sin_f32 v6, v0", mode, 0x80000001, 0, 0,
				   denorm == 3 ? 0x80000006 : 0x80000000);
			check_lane("v_log_f32_e64 v6, v0 mul:2", mode,
				   0x40800000, 0, 0, 0x40800000);
			check_lane("v_exp_f32_e64 v6, v0 div:2", mode,
				   0xc2fc0000, 0, 0, 0);
			check_lane("v_exp_f32_e64 v6, v0 mul:2", mode,
				   0x42fe0000, 0, 0, 0x7f800000);
			check_lane("v_exp_f32_e64 v6, v0 mul:2", mode | IEEE,
				   0x42fe0000, 0, 0, 0x7f000000);
		}
	check_lane("v_rcp_f32_e64 v6, v0 mul:2", 0xf0, 0x3f800000, 0, 0,
		   0x40000000);
	check_lane("v_rsq_f32_e64 v6, v0 mul:2", 0xf0, 0x3f800000, 0, 0,
		   0x40000000);
	check_lane("v_cos_f32_e64 v6, v0 mul:2", 0xf0, 0, 0, 0, 0x40000000);
	check_lane("v_rcp_f32_e64 v6, v0 mul:4", 0, 0x00800000, 0, 0,
		   0x7f800000);
	check_lane("v_rcp_f32 v6, v0", 0, 0x7f800001, 0, 0, 0x7f800001);
	check_lane("v_rsq_f32 v6, v0", 0, 0x7f800001, 0, 0, 0x7f800001);
	check_lane("v_sin_f32 v6, v0", 0xf0, 0xff812345, 0, 0, 0xff812345);
	check_lane("v_cos_f32 v6, v0", 0xf0 | IEEE, 0xff812345, 0, 0,
		   0xffc12345);
	check_lane("v_exp_f32 v6, v0", 0xf0, 0xff812345, 0, 0, 0xff812345);
	check_lane("v_log_f32 v6, v0", 0xf0 | IEEE, 0x7f812345, 0, 0,
		   0x7fc12345);
	check_lane("v_log_f32 v6, v0", 0xf0, 0x80000001, 0, 0, 0xff800000);
	check_lane("v_log_f32_e64 v6, v0 clamp", 0xf0, 0x7f800123, 0, 0,
		   0x7f800123);
	check_lane("v_log_f32_e64 v6, v0 clamp", 0xf0 | DX10, 0x7f800123, 0, 0,
		   0);
}

static void test_trans_f16(void)
{
	expect_half("v_rcp_f16 v6, v0", OVFL | 0xc0, 0, 0, 0, 0x7bff);
	expect_half("v_rsq_f16 v6, v0", OVFL | 0xc0, 0x8000, 0, 0, 0xfbff);
	expect_half("v_log_f16 v6, v0", OVFL | 0xf0, 0, 0, 0, 0xfbff);
	expect_half("v_log_f16 v6, v0", OVFL | 0x30, 1, 0, 0, 0xfbff);
	expect_half("v_log_f16 v6, v0", OVFL | 0xf0, 0x7c00, 0, 0, 0x7c00);
	expect_half("v_exp_f16 v6, v0", OVFL | 0xf0, 0x7c00, 0, 0, 0x7c00);
	expect_half("v_exp_f16 v6, v0", OVFL | 0xf0, 0x4c00, 0, 0, 0x7bff);
	expect_half("v_log_f16 v6, v0", 0x30, 1, 0, 0, 0xfc00);
	expect_half("v_log_f16 v6, v0", 0xf0, 1, 0, 0, 0xce00);
	expect_half("v_exp_f16 v6, v0", 0xf0, 0xcb80, 0, 0, 0x0200);
	expect_half("v_exp_f16 v6, v0", 0x70, 0xcb80, 0, 0, 0);
	expect_half("v_exp_f16_e64 v6, v0 mul:4", 0xf0, 0xcb80, 0, 0, 0x0200);
	expect_half("v_exp_f16_e64 v6, v0 div:2", OVFL | 0x30, 0x4c00, 0, 0,
		    0x77ff);
	expect_half("v_exp_f16_e64 v6, v0 div:2", 0x30, 0x4c00, 0, 0, 0x7c00);
	expect_half("v_exp_f16_e64 v6, v0 div:2", OVFL | 0xf0, 0x4c00, 0, 0,
		    0x7bff);
	expect_half("v_log_f16_e64 v6, v0 clamp", 0x30, 0xfc01, 0, 0, 0xfc01);
	expect_half("v_exp_f16_e64 v6, v0 mul:2", 0x30, 0x7c01, 0, 0, 0x7c01);
	expect_half("v_rcp_f16 v6, v0", 0, 0x03ff, 0, 0, 0x7c00);
	expect_half("v_rcp_f16 v6, v0", 0xc0, 0x03ff, 0, 0, 0x7401);
	expect_half("v_rcp_f16 v6, v0", 0, 0x7bff, 0, 0, 0);
	expect_half("v_rcp_f16 v6, v0", 0xc0, 0x7bff, 0, 0, 0x0100);
	expect_half("v_rcp_f16 v6, v0", 0, 0x7c01, 0, 0, 0x7c01);
	expect_half("v_rsq_f16 v6, v0", IEEE, 0x7c01, 0, 0, 0x7e01);
	expect_half("v_sqrt_f16_e64 v6, v0 mul:2", 0, 0x7c01, 0, 0, 0x7c01);
	expect_half("v_sin_f16 v6, v0", 0, 1, 0, 0, 0);
	expect_half("v_sin_f16 v6, v0", 0xc0, 1, 0, 0, 6);
	expect_half("v_cos_f16 v6, v0", 0, 0x7c01, 0, 0, 0x7c01);
}

/* ---------------------------------------------------------- halves -------- */

/* v_fma_f16, and v_pk_fma_f16 on two of the same. */
static void fma_both(uint32_t mode, uint32_t a, uint32_t b, uint32_t c,
		     uint32_t want)
{
	expect_half("v_fma_f16 v6, v0, v1, v2", mode, a, b, c, want);
	check_lane("v_pk_fma_f16 v6, v0, v1, v2", mode, a * 0x10001,
		   b * 0x10001, c * 0x10001, want * 0x10001);
}

static void test_fma_f16(void)
{
	for (uint32_t denorm = 0; denorm < 4; denorm++)
		for (uint32_t ieee = 0; ieee < 2; ieee++) {
			uint32_t mode = ieee << 9 | denorm << 6;
			uint32_t quiet = ieee << 9;

			fma_both(mode, 0x7fc1, 0xff80, 0xff80, 0x7fc1);
			fma_both(mode, 0x7c01, 0x3c00, 0, 0x7c01 | quiet);
			fma_both(mode, 0x3c00, 0xfc12, 0x7e01, 0xfc12 | quiet);
			fma_both(mode, 0x3c00, 0x3c00, 0x7c01, 0x7c01 | quiet);
			fma_both(mode, 0, 0x7c00, 0x7e01, 0xfe00);
			fma_both(mode, 0, 0x7c00, 0x3c00, 0xfe00);
			fma_both(mode, 0x7c00, 0x3c00, 0xfc00, 0xfe00);
			fma_both(mode, 1, 0x7c00, 0x7e01,
				 denorm & 1 ? 0x7e01 : 0xfe00);
		}
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
			/* 2^-14 - 2^-24 + a little: tiny in every rounding. */
			fma_both(0x40 | round << 2, 1, sign | 0x03ff,
				 sign | 0x03ff, sign);
			/* 65504 + 2^-48 */
			fma_both(0xc0 | round << 2, 1, 1, 0x7bff,
				 round == 1 ? 0x7c00 : 0x7bff);
		}
}

/* omod scales what was rounded, and flushed. */
static void test_fma_f16_omod(void)
{
	static const uint32_t tiny[] = { 0x8000, 0, 0x8000, 0 };
	static const uint32_t huge[] = { 0x77ff, 0x7c00, 0x77ff, 0x77ff };
	static const char *const half = "v_fma_f16 v6, v0, v1, v2 div:2";

	for (uint32_t round = 0; round < 4; round++) {
		expect_half(half, 0x40 | round << 2, 1, 0x3400, 0x8400,
			    tiny[round]);
		expect_half(half, 0x40 | round << 2, 0x0400, 0x0400, 0x7bff,
			    huge[round]);
	}
	expect_half(half, 0, 0x0400, 0xbc00, 0, 0x8000);
	expect_half(half, 0x80, 0x0400, 0xbc00, 0, 0x8400);
	expect_half(half, IEEE, 0x0400, 0xbc00, 0, 0x8400);
	expect_half(half, OVFL, 0x3c00, 0x7bff, 0x7bff, 0x77ff);
	expect_half(half, 0, 0x3c00, 0x7bff, 0x7bff, 0x7c00);
	expect_half("v_fma_f16 v6, v0, v1, v2 mul:4", 0, 0x0400, 0x3800, 0, 0);
	expect_half("v_fma_f16 v6, v0, v1, v2 mul:4", 0, 0x0400, 0xb800, 0, 0);
}

/* Sums and products, minimum and maximum of pairs, without and with IEEE. */
static void test_packed_nans(void)
{
	static const struct {
		uint32_t a, b, sum[2], pick[2];
	} row[] = {
		{ 0x7fc1, 0xff80, { 0x7fc1, 0x7fc1 }, { 0x7fc1, 0x7fc1 } },
		{ 0xff80, 0x7fc1, { 0xff80, 0xff80 }, { 0xff80, 0xff80 } },
		{ 0x7c01, 0xff80, { 0x7c01, 0x7e01 }, { 0x7c01, 0x7e01 } },
		{ 0x7fc1, 0xfc02, { 0x7fc1, 0x7fc1 }, { 0x7fc1, 0xfe02 } },
		{ 0x3c00, 0x7c01, { 0x7c01, 0x7e01 }, { 0x3c00, 0x7e01 } },
	};
	static const char *const text[] = {
		"v_pk_add_f16 v6, v0, v1",
		"v_pk_mul_f16 v6, v0, v1",
		"v_pk_min_f16 v6, v0, v1",
		"v_pk_max_f16 v6, v0, v1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		for (int k = 0; k < 4; k++)
			for (int ieee = 0; ieee < 2; ieee++)
				check_lane(text[k], 0xf0 | (ieee ? IEEE : 0),
					   row[i].a * 0x10001,
					   row[i].b * 0x10001, 0,
					   0x10001 *
						   (k < 2 ? row[i].sum[ieee] :
							    row[i].pick[ieee]));
}

static void test_conversions(void)
{
	check_lane("v_cvt_f32_f16 v6, v0", 0xc0, 0x7c01, 0, 0, 0x7f802000);
	check_lane("v_cvt_f32_f16 v6, v0", 0x2cf, 0xfc01, 0, 0, 0xffc02000);
	check_lane("v_cvt_f32_f16 v6, v0", 0x40, 1, 0, 0, 0x33800000);
	check_lane("v_cvt_f32_f16 v6, v0", 0x80, 0x83ff, 0, 0, 0x80000000);
	check_lane("v_cvt_f32_f16_e64 v6, -v0", 0xc0, 0x7e01, 0, 0, 0xffc02000);
	check_lane("v_cvt_pk_rtz_f16_f32 v6, v0, v1", 0, 0xb3ffffff, 0x477fffff,
		   0, 0x7bff8001);
}

int main(void)
{
	t = lanes_new(32);
	test_add_mul();
	test_dx9();
	test_omod_underflow();
	test_omod_overflow();
	test_mix();
	test_parts();
	test_trans_f32();
	test_trans_f16();
	test_fma_f16();
	test_fma_f16_omod();
	test_packed_nans();
	test_conversions();
	lanes_free(t);
	return plan_done();
}
