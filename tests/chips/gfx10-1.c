/*
 * Instructions that gfx10_1 alone has: multiply-adds that round twice, scalar
 * stores and atomics, scratch memory by SGPRs, operations between two places
 * of LDS.  Random values against C's arithmetic, by the manual's words (RDNA
 * ISA 1.0, 8 and 12); and what gfx10_1 has not.
 */
#include <math.h>

#include "tests/chips/gfx10.h"

enum { TRIES = 200 };

static uint64_t seed = 1010;

static bool run_text(struct lanes *t, const char *text)
{
	return run_lines(t, "gfx1010", text);
}

/* --------------------------------------------------------- multiply-add ----
 */

/* Zeros, denormals, and numbers whose products have a sum of their size. */
static uint32_t draw_float(void)
{
	const uint64_t r = lanes_random(&seed);
	const uint32_t u = (uint32_t)(r >> 32);

	switch (r & 15) {
	case 0:
		return u & 0x80000000;
	case 1:
		return u & 0x807fffff;
	default:
		return (u & 0x80ffffff) | 0x3f000000;
	}
}

/* A denormal is a zero of its sign. */
static float flush_f32(float f)
{
	return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}

/* With volatile there is no single rounding. */
static uint32_t mad_f32(uint32_t a, uint32_t b, uint32_t c, bool legacy)
{
	const float x = flush_f32(float_of(a)), y = flush_f32(float_of(b));
	volatile float product = flush_f32(x * y), sum;

	if (legacy && (x == 0 || y == 0))
		product = 0;
	sum = product + flush_f32(float_of(c));
	return bits_of(flush_f32(sum));
}

static const struct {
	const char *text;
	bool legacy;
	int c; /* which register is added: v2, the old v3, or -1: 3.0 */
	int b; /* v1, or -1: 3.0 */
} rows[] = {
	{ "v_mad_f32 v3, v0, v1, v2", false, 2, 1 },
	{ "v_mad_legacy_f32 v3, v0, v1, v2", true, 2, 1 },
	{ "v_mac_f32_e32 v3, v0, v1", false, 3, 1 },
	{ "v_mac_f32_e64 v3, v0, v1", false, 3, 1 },
	{ "v_mac_legacy_f32_e32 v3, v0, v1", true, 3, 1 },
	{ "v_madak_f32 v3, v0, v1, 0x40400000", false, -1, 1 },
	{ "v_madmk_f32 v3, v0, 0x40400000, v1", false, 1, -1 },
};

static void test_mad(struct lanes *t, size_t row)
{
	int bad = 0, unlike_fma = 0;

	for (int k = 0; k < TRIES; k++) {
		uint32_t in[4][2][SOFT_LANES];
		const uint32_t three = 0x40400000;

		for (int r = 0; r < 4; r++)
			for (int i = 0; i < t->w.wave_size; i++)
				t->v[i / 32][r][i % 32] =
					in[r][i / 32][i % 32] = draw_float();
		bad += !run_text(t, rows[row].text);
		for (int i = 0; i < t->w.wave_size; i++) {
			const int h = i / 32, l = i % 32;
			const uint32_t a = in[0][h][l];
			const uint32_t b =
				rows[row].b < 0 ? three : in[rows[row].b][h][l];
			const uint32_t c =
				rows[row].c < 0 ? three : in[rows[row].c][h][l];
			const uint32_t want =
				mad_f32(a, b, c, rows[row].legacy);

			bad += t->v[h][3][l] != want;
			unlike_fma += bits_of(fmaf(float_of(a), float_of(b),
						   float_of(c))) != want;
		}
	}
	is_i64(bad, 0, "wave%d: %s", t->w.wave_size, rows[row].text);
	ok(unlike_fma > TRIES, "and it is not fused");
}

/* The low half of a product, whatever the signs. */
static void test_mul(struct lanes *t)
{
	int bad = 0;

	for (int k = 0; k < TRIES; k++) {
		const uint32_t a = (uint32_t)lanes_random(&seed);
		const uint32_t b = (uint32_t)lanes_random(&seed);

		lanes_set(t, 0, a);
		lanes_set(t, 1, b);
		bad += !run_text(t, "v_mul_lo_i32 v3, v0, v1") ||
		       t->v[0][3][0] != (uint32_t)((uint64_t)a * b);
	}
	is_i64(bad, 0, "wave%d: v_mul_lo_i32", t->w.wave_size);
}

/* -------------------------------------------------------- scalar memory ----
 */

static void set_base(struct lanes *t)
{
	t->w.s[4] = (uint32_t)MEMORY_VA;
	t->w.s[5] = (uint32_t)(MEMORY_VA >> 32);
	/* s[8:11]: a buffer of 64 bytes at the same place */
	t->w.s[8] = t->w.s[4];
	t->w.s[9] = t->w.s[5];
	t->w.s[10] = 64;
	t->w.s[11] = 0;
}

static void test_stores(struct lanes *t)
{
	memset(memory, 0, sizeof(memory));
	set_base(t);
	for (uint32_t i = 0; i < 4; i++)
		t->w.s[12 + i] = 100 + i;
	t->w.s[6] = 32;
	ok(run_text(t, "s_store_dword s12, s[4:5], 0x4; "
		       "s_store_dwordx2 s[12:13], s[4:5], s6; "
		       "s_store_dwordx4 s[12:15], s[4:5], s6 offset:0x20; "
		       "s_buffer_store_dwordx4 s[12:15], s[8:11], 0x38; "
		       "s_scratch_store_dword s13, s[4:5], s6; "
		       "s_scratch_load_dword s20, s[4:5], s6; "
		       "s_dcache_wb; s_waitcnt lgkmcnt(0); "
		       "s_get_waveid_in_workgroup s21; s_waitcnt lgkmcnt(0)"),
	   "scalar stores run");
	is_u64(memory[1], 100, "a dword by an immediate");
	is_u64(memory[8], 100, "two by a register");
	is_u64(memory[9], 101, "and the second");
	is_u64(memory[19], 103, "four by both, the last");
	is_u64(memory[15], 101, "of a buffer what is inside");
	is_u64(memory[16], 100, "and not what is beyond its 64 bytes");
	is_u64(memory[32 * 64 / 4], 101, "a register of scratch counts 64");
	is_u64(t->w.s[20], 101, "and is loaded from there");
	is_u64(t->w.s[21], 0, "the first wave is number 0");
}

/* The manual's pseudo code; `b` is what is compared. */
static uint64_t apply(const char *op, uint64_t m, uint64_t a, uint64_t b,
		      int bits)
{
	const uint64_t all = bits == 64 ? ~UINT64_C(0) : UINT32_MAX;
	const int64_t sm = bits == 64 ? (int64_t)m : (int32_t)m;
	const int64_t sa = bits == 64 ? (int64_t)a : (int32_t)a;

	if (!strcmp(op, "swap"))
		return a;
	if (!strcmp(op, "cmpswap"))
		return m == b ? a : m;
	if (!strcmp(op, "add"))
		return (m + a) & all;
	if (!strcmp(op, "sub"))
		return (m - a) & all;
	if (!strcmp(op, "smin"))
		return sm < sa ? m : a;
	if (!strcmp(op, "smax"))
		return sm > sa ? m : a;
	if (!strcmp(op, "umin"))
		return m < a ? m : a;
	if (!strcmp(op, "umax"))
		return m > a ? m : a;
	if (!strcmp(op, "and"))
		return m & a;
	if (!strcmp(op, "or"))
		return m | a;
	if (!strcmp(op, "xor"))
		return m ^ a;
	if (!strcmp(op, "inc"))
		return m >= a ? 0 : m + 1;
	return m == 0 || m > a ? a : m - 1; /* dec */
}

static int try_atomic(struct lanes *t, const char *op, bool wide, bool buffer)
{
	const int n = wide ? 2 : 1, bits = 32 * n;
	const bool two = !strcmp(op, "cmpswap");
	uint64_t m = 0, a = 0, b = 0, got = 0, old = 0;
	const int data = n * (two ? 2 : 1);
	char text[160], regs[24];

	for (int k = 0; k < n; k++) {
		memory[2 + k] = (uint32_t)lanes_random(&seed) % 5 - 2;
		t->w.s[12 + k] = (uint32_t)lanes_random(&seed) % 5 - 2;
		t->w.s[12 + n + k] =
			two && lanes_random(&seed) & 1 ? memory[2 + k] : 7;
	}
	memcpy(&m, &memory[2], 4 * (size_t)n);
	memcpy(&a, &t->w.s[12], 4 * (size_t)n);
	memcpy(&b, &t->w.s[12 + n], 4 * (size_t)n);
	if (data == 1)
		strcpy(regs, "s12");
	else
		snprintf(regs, sizeof(regs), "s[12:%d]", 11 + data);
	snprintf(text, sizeof(text),
		 "s_%satomic_%s%s %s, %s, 0x8 glc; s_waitcnt lgkmcnt(0)",
		 buffer ? "buffer_" : "", op, wide ? "_x2" : "", regs,
		 buffer ? "s[8:11]" : "s[4:5]");
	if (!run_text(t, text))
		return 1;
	memcpy(&got, &memory[2], 4 * (size_t)n);
	memcpy(&old, &t->w.s[12], 4 * (size_t)n);
	return got != apply(op, m, a, b, bits) || old != m;
}

static void test_atomics(struct lanes *t)
{
	static const char *const ops[] = { "swap", "cmpswap", "add",  "sub",
					   "smin", "umin",    "smax", "umax",
					   "and",  "or",      "xor",  "inc",
					   "dec" };

	set_base(t);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		int bad = 0;

		for (int k = 0; k < TRIES; k++)
			bad += try_atomic(t, ops[i], k & 1, k & 2);
		is_i64(bad, 0, "s_atomic_%s and its kin", ops[i]);
	}
	memory[2] = 5;
	t->w.s[12] = 3;
	ok(run_text(t, "s_atomic_add s12, s[4:5], 0x8; s_waitcnt lgkmcnt(0)"),
	   "one that returns nothing");
	is_u64(memory[2], 8, "adds");
	is_u64(t->w.s[12], 3, "and leaves the register");
	ok(run_text(t, "s_buffer_atomic_add s12, s[8:11], 0x40 glc; "
		       "s_waitcnt lgkmcnt(0)"),
	   "one beyond the buffer's end");
	is_u64(t->w.s[12], 0, "returns 0");
	ok(!run_text(t, "s_atomic_add_x2 s[12:13], s[4:5], 0x4"),
	   "one that is not aligned faults");
}

/* ------------------------------------------------------- places of LDS ----
 */

enum { LDS_BYTES = 2048 };

/* By the manual's words: floats of 32 or 64 bits. */
static uint64_t apply_float(const char *op, uint64_t m, uint64_t b, int bits)
{
	double x, y;

	if (bits == 32) {
		const float sum = float_of((uint32_t)m) + float_of((uint32_t)b);

		x = float_of((uint32_t)m);
		y = float_of((uint32_t)b);
		if (!strcmp(op, "add"))
			return bits_of(sum);
	} else {
		memcpy(&x, &m, 8);
		memcpy(&y, &b, 8);
	}
	return strcmp(op, "min") ? y > x ? b : m : y < x ? b : m;
}

/* clang-format off */
static const struct src2 {
	const char *name, *op;
	int bits;
	bool is_float;
} src2[] = {
#define WIDTHS(a, op, type) \
	{ "ds_" a "_src2_" type "32", op, 32, false }, \
	{ "ds_" a "_src2_" type "64", op, 64, false },
	WIDTHS("add", "add", "u") WIDTHS("sub", "sub", "u")
	WIDTHS("rsub", "rsub", "u") WIDTHS("inc", "inc", "u")
	WIDTHS("dec", "dec", "u") WIDTHS("min", "smin", "i")
	WIDTHS("max", "smax", "i") WIDTHS("min", "umin", "u")
	WIDTHS("max", "umax", "u") WIDTHS("and", "and", "b")
	WIDTHS("or", "or", "b") WIDTHS("xor", "xor", "b")
	WIDTHS("write", "swap", "b")
	{ "ds_min_src2_f32", "min", 32, true },
	{ "ds_max_src2_f32", "max", 32, true },
	{ "ds_add_src2_f32", "add", 32, true },
	{ "ds_min_src2_f64", "min", 64, true },
	{ "ds_max_src2_f64", "max", 64, true },
};
/* clang-format on */

static uint32_t draw_word(const struct src2 *s)
{
	const uint64_t r = lanes_random(&seed);

	return s->is_float ? ((uint32_t)r & 0x807fffff) | 0x3f800000 :
			     (uint32_t)r % 5 - 2;
}

/*
 * Lane i has its place at 8 * i from 1024 on.  The other is `dwords` dwords
 * away: by the offset, or by the address, in the upper 15 bits of it.
 */
static int try_src2(struct lanes *t, const struct src2 *s, int dwords,
		    bool by_address)
{
	const uint64_t bytes = (uint64_t)s->bits / 8;
	uint8_t lds[LDS_BYTES], want[LDS_BYTES];
	char text[96];

	for (uint32_t i = 0; i < LDS_BYTES; i += 4) {
		const uint32_t u = draw_word(s);

		memcpy(want + i, &u, 4);
	}
	memcpy(lds, want, sizeof(lds));
	t->group.lds = lds;
	t->group.lds_size_bytes = sizeof(lds);
	for (int i = 0; i < t->w.wave_size; i++) {
		const uint32_t at = 1024 + 8 * (uint32_t)i;
		const int64_t other = (int64_t)at + 4 * dwords;
		uint64_t m = 0, b = 0, u;

		t->v[i / 32][1][i % 32] =
			by_address ? (uint32_t)dwords << 17 | at : at;
		memcpy(&m, want + at, bytes);
		if (other >= 0 && other + (int64_t)bytes <= LDS_BYTES)
			memcpy(&b, want + other, bytes);
		u = s->is_float		   ? apply_float(s->op, m, b, s->bits) :
		    !strcmp(s->op, "rsub") ? apply("sub", b, m, 0, s->bits) :
					     apply(s->op, m, b, 0, s->bits);
		memcpy(want + at, &u, bytes);
	}
	snprintf(text, sizeof(text), "%s v1 offset:%d; s_waitcnt lgkmcnt(0)",
		 s->name, by_address ? 0x8123 : dwords & 0x7fff);
	return !run_text(t, text) || memcmp(lds, want, sizeof(lds));
}

static void test_src2(struct lanes *t)
{
	static const int away[] = {
		1, 2, 5, 130, -1, -2, -7, -200, 400, -5000
	};

	for (size_t i = 0; i < ARRAY_SIZE(src2); i++) {
		int bad = 0;

		for (size_t k = 0; k < ARRAY_SIZE(away); k++)
			for (int a = 0; a < 2; a++)
				bad += try_src2(t, &src2[i], away[k], a);
		is_i64(bad, 0, "wave%d: %s", t->w.wave_size, src2[i].name);
	}
	t->group.lds_size_bytes = 0;
}

/* ---------------------------------------------------------------- limits ----
 */

/* FLAT ignores its offset; GLOBAL does not. */
static void test_flat(struct lanes *t)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(memory); i++)
		memory[i] = i;
	lanes_set64(t, 2, MEMORY_VA);
	ok(run_text(t, "flat_load_dword v6, v[2:3] offset:16; "
		       "global_load_dword v7, v[2:3], off offset:16; "
		       "s_waitcnt vmcnt(0) lgkmcnt(0)"),
	   "loads with offsets run");
	is_u64(t->v[0][6][0], 0, "FLAT's is ignored");
	is_u64(t->v[0][7][0], 4, "GLOBAL's is not");
}

static void test_missing(struct lanes *t)
{
	static const uint32_t dot2[] = { 0xcc134003, 0x1c0a0300, 0xbf810000 };

	ok(!lanes_run(t, dot2, ARRAY_SIZE(dot2)),
	   "gfx1030's v_dot2_f32_f16 is illegal");
	is_u64(t->w.fault.kind, SOFT_FAULT_ILLEGAL, "and says so");
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	for (int wave = 32; wave <= 64; wave += 32) {
		struct lanes *t = lanes_new(wave);

		t->env.gen = ISA_GFX10_1;
		t->env.find = find_memory;
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			test_mad(t, i);
		test_mul(t);
		test_src2(t);
		if (wave == 32) {
			test_stores(t);
			test_atomics(t);
			test_flat(t);
			test_missing(t);
		}
		lanes_free(t);
	}
	return plan_done();
}
