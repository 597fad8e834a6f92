/*
 * WMMA against a slow reference: matrices in double or int64, with the register
 * layout written out here once more.  On a mismatch the lanes and registers
 * that differ are listed, since layout faults show as patterns.
 */
#include <math.h>

#include "kfd/soft/exec/wmma.h"
#include "tests/exec/lanes.h"

#define N 16
enum { A = 0, C = 16, D = 40 }; /* first registers; B follows A */
enum in { F16, BF16, IU8, IU4 };
enum out { F32, HALF, HALF_HIGH, I32 };

static const int in_regs[] = { 8, 8, 4, 2 }, in_bits[] = { 16, 16, 8, 4 };

struct form {
	const char *text, *code;
	int wave;
	enum in in;
	enum out out;
	bool neg_a[2], neg_b[2]; /* even and odd k; [0]: signed for integers */
	bool neg_c, abs_c, clamp;
	bool c_is_one;
};

#define F32_F16 "wmma_f32_f16"
static const struct form forms[] = {
	{ F32_F16,
	  "v_wmma_f32_16x16x16_f16 v[40:47], v[0:7], v[8:15], v[16:23]", 32,
	  F16, F32, .clamp = false },
	{ F32_F16 " neg_lo:[1,0,1] neg_hi:[0,1,1]",
	  "v_wmma_f32_16x16x16_f16 v[40:47], v[0:7], v[8:15], v[16:23] neg_lo:[1,0,1] neg_hi:[0,1,1]",
	  32, F16, F32, .neg_a = { 1, 0 }, .neg_b = { 0, 1 }, .neg_c = true,
	  .abs_c = true },
	{ F32_F16 ", C = 1.0",
	  "v_wmma_f32_16x16x16_f16 v[40:47], v[0:7], v[8:15], 1.0", 32, F16,
	  F32, .c_is_one = true },
	{ "wmma_f32_bf16",
	  "v_wmma_f32_16x16x16_bf16 v[40:47], v[0:7], v[8:15], v[16:23]", 32,
	  BF16, F32, .clamp = false },
	{ "wmma_f16",
	  "v_wmma_f16_16x16x16_f16 v[40:47], v[0:7], v[8:15], v[16:23]", 32,
	  F16, HALF, .clamp = false },
	{ "wmma_f16 op_sel:[0,0,1]",
	  "v_wmma_f16_16x16x16_f16 v[40:47], v[0:7], v[8:15], v[16:23] op_sel:[0,0,1]",
	  32, F16, HALF_HIGH, .clamp = false },
	{ "wmma_bf16",
	  "v_wmma_bf16_16x16x16_bf16 v[40:47], v[0:7], v[8:15], v[16:23]", 32,
	  BF16, HALF, .clamp = false },
	{ "wmma_bf16 op_sel:[0,0,1]",
	  "v_wmma_bf16_16x16x16_bf16 v[40:47], v[0:7], v[8:15], v[16:23] op_sel:[0,0,1]",
	  32, BF16, HALF_HIGH, .clamp = false },
	{ "wmma_i32_iu8",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23]", 32, IU8,
	  I32, .clamp = false },
	{ "wmma_i32_iu8 signed A",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23] neg_lo:[1,0,0]",
	  32, IU8, I32, .neg_a = { 1 } },
	{ "wmma_i32_iu8 signed B",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23] neg_lo:[0,1,0]",
	  32, IU8, I32, .neg_b = { 1 } },
	{ "wmma_i32_iu8 signed",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23] neg_lo:[1,1,0]",
	  32, IU8, I32, .neg_a = { 1 }, .neg_b = { 1 } },
	{ "wmma_i32_iu8 signed clamp",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23] neg_lo:[1,1,0] clamp",
	  32, IU8, I32, .neg_a = { 1 }, .neg_b = { 1 }, .clamp = true },
	{ "wmma_i32_iu8 clamp",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], v[16:23] clamp",
	  32, IU8, I32, .clamp = true },
	{ "wmma_i32_iu8, C = 1",
	  "v_wmma_i32_16x16x16_iu8 v[40:47], v[0:3], v[4:7], 1", 32, IU8, I32,
	  .c_is_one = true },
	{ "wmma_i32_iu4",
	  "v_wmma_i32_16x16x16_iu4 v[40:47], v[0:1], v[2:3], v[16:23]", 32, IU4,
	  I32, .clamp = false },
	{ "wmma_i32_iu4 signed A",
	  "v_wmma_i32_16x16x16_iu4 v[40:47], v[0:1], v[2:3], v[16:23] neg_lo:[1,0,0]",
	  32, IU4, I32, .neg_a = { 1 } },
	{ "wmma_i32_iu4 signed clamp",
	  "v_wmma_i32_16x16x16_iu4 v[40:47], v[0:1], v[2:3], v[16:23] neg_lo:[1,1,0] clamp",
	  32, IU4, I32, .neg_a = { 1 }, .neg_b = { 1 }, .clamp = true },
	{ F32_F16 " wave64",
	  "v_wmma_f32_16x16x16_f16 v[40:43], v[0:7], v[8:15], v[16:19]", 64,
	  F16, F32, .clamp = false },
	{ "wmma_f16 wave64",
	  "v_wmma_f16_16x16x16_f16 v[40:43], v[0:7], v[8:15], v[16:19]", 64,
	  F16, HALF, .clamp = false },
	{ "wmma_i32_iu8 signed wave64",
	  "v_wmma_i32_16x16x16_iu8 v[40:43], v[0:3], v[4:7], v[16:19] neg_lo:[1,1,0]",
	  64, IU8, I32, .neg_a = { 1 }, .neg_b = { 1 } },
};

/* -------------------------------------------------------------- layout ---- */

/* Register j and lane t of element (row, column) of C and D. */
static uint32_t *element(struct lanes *t, int first, int row, int col)
{
	int group = t->w.wave_size / N; /* rows that one register holds */
	int lane = row % group * N + col;

	return &t->v[lane / 32][first + row / group][lane % 32];
}

/* Element k of row (A) or column (B) `l`, from lane l. */
static uint32_t fragment(struct lanes *t, int first, int bits, int l, int k)
{
	int per = 32 / bits;
	uint32_t u = t->v[0][first + k / per][l] >> k % per * bits;

	return bits == 32 ? u : u & ((1u << bits) - 1);
}

/* -------------------------------------------------------------- values ---- */

static double f16_value(uint32_t h)
{
	int e = h >> 10 & 31, m = h & 0x3ff;
	double v = ldexp(e ? m | 0x400 : m, (e ? e : 1) - 25);

	return h & 0x8000 ? -v : v;
}

static double value_of_f32(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static double value(enum in in, uint32_t u, bool neg)
{
	double v;

	if (in == F16)
		v = f16_value(u);
	else if (in == BF16)
		v = value_of_f32(u << 16);
	else if (in == IU8)
		return neg ? (double)(int8_t)u : (double)u;
	else
		return neg && u & 8 ? (double)u - 16 : (double)u;
	return neg ? -v : v;
}

/* A finite number of moderate size; integers are any bits. */
static uint32_t random_input(uint64_t *seed, enum in in)
{
	uint64_t u = lanes_random(seed);
	uint32_t one[2];

	if (in >= IU8)
		return (uint32_t)u;
	for (int j = 0; j < 2; j++, u >>= 24)
		one[j] = in == F16 ? (u & 0x83ff) | (10 + (u >> 16) % 9) << 10 :
				     (u & 0x807f) | (120 + (u >> 16) % 14) << 7;
	return one[0] | one[1] << 16;
}

static uint32_t random_acc(uint64_t *seed, const struct form *f)
{
	uint64_t u = lanes_random(seed);

	if (f->out == I32) /* near the limits every other time */
		return u >> 63 ? (uint32_t)u :
				 (uint32_t)(0x7fffe000 + u % 0x4000);
	if (f->out == F32)
		return (uint32_t)(u & 0x807fffff) | (121 + (u >> 40) % 12)
							    << 23;
	return random_input(seed, f->in);
}

/* Fills A, B (repeated in every 16 lanes), C and D. */
static void fill(struct lanes *t, const struct form *f, uint64_t *seed)
{
	for (int r = A; r < A + 2 * in_regs[f->in]; r++)
		for (int l = 0; l < N; l++) {
			uint32_t u = random_input(seed, f->in);

			for (int lane = l; lane < 64; lane += N)
				t->v[lane / 32][r][lane % 32] = u;
		}
	for (int r = C; r < D + 8; r++)
		for (int lane = 0; lane < 64; lane++)
			t->v[lane / 32][r][lane % 32] = random_acc(seed, f);
}

/* ----------------------------------------------------------- reference ---- */

static double c_value(struct lanes *t, const struct form *f, int row, int col)
{
	uint32_t u = *element(t, C, row, col);
	double v;

	if (f->c_is_one)
		return 1;
	if (f->out == I32)
		return (int32_t)u;
	v = f->out == F32 ?
		    value_of_f32(u) :
		    value(f->in, f->out == HALF_HIGH ? u >> 16 : u & 0xffff, 0);
	v = f->abs_c ? fabs(v) : v;
	return f->neg_c ? -v : v;
}

/* Exact for integers.  *size: the sum of magnitudes, for the error bound. */
static double dot(struct lanes *t, const struct form *f, int row, int col,
		  double *size)
{
	double sum = c_value(t, f, row, col);

	*size = fabs(sum);
	for (int k = 0; k < N; k++) {
		int bits = in_bits[f->in], b0 = A + in_regs[f->in];
		bool ints = f->in >= IU8;
		double a = value(f->in, fragment(t, A, bits, row, k),
				 f->neg_a[ints ? 0 : k & 1]);
		double b = value(f->in, fragment(t, b0, bits, col, k),
				 f->neg_b[ints ? 0 : k & 1]);

		sum += a * b;
		*size += fabs(a * b);
	}
	return sum;
}

/* The documented order: C, then k = 0..15, one fused rounding each. */
static float in_order(struct lanes *t, const struct form *f, int row, int col)
{
	float sum = (float)c_value(t, f, row, col);

	for (int k = 0; k < N; k++)
		sum = fmaf((float)value(f->in, fragment(t, A, 16, row, k),
					f->neg_a[k & 1]),
			   (float)value(f->in, fragment(t, A + 8, 16, col, k),
					f->neg_b[k & 1]),
			   sum);
	return sum;
}

static bool same(struct lanes *t, const struct form *f, uint32_t old, int row,
		 int col)
{
	uint32_t got = *element(t, D, row, col);
	double size, want = dot(t, f, row, col, &size);
	double step = f->out == F32 ? 0x1p-24 : f->in == F16 ? 0x1p-11 : 0x1p-8;

	if (f->out == I32) {
		int64_t v = (int64_t)want;

		if (f->clamp)
			v = v > INT32_MAX ? INT32_MAX :
			    v < INT32_MIN ? INT32_MIN :
					    v;
		return got == (uint32_t)v;
	}
	if (f->out == F32)
		return value_of_f32(got) == in_order(t, f, row, col) &&
		       fabs(value_of_f32(got) - want) <= 17 * step * size;
	/* The other half is kept; half an ulp of the result, and the sum. */
	uint32_t kept = f->out == HALF ? got >> 16 : got & 0xffff;
	uint32_t was = f->out == HALF ? old >> 16 : old & 0xffff;
	double v = value(f->in, f->out == HALF ? got & 0xffff : got >> 16, 0);

	return kept == was &&
	       fabs(v - want) <= step * fabs(want) + 18 * 0x1p-24 * size;
}

/* --------------------------------------------------------------- tests ---- */

static void test_form(const struct form *f, uint64_t *seed)
{
	struct lanes *t = lanes_new(f->wave);
	static uint32_t old[N][N];
	int bad = 0;

	for (int round = 0; round < 20; round++) {
		fill(t, f, seed);
		for (int r = 0; r < N; r++)
			for (int c = 0; c < N; c++)
				old[r][c] = *element(t, D, r, c);
		t->w.s[ISA_R_EXEC_LO] = (uint32_t)lanes_random(seed);
		lanes_text(t, f->code);
		for (int r = 0; r < N; r++)
			for (int c = 0; c < N; c++) {
				double size;

				if (same(t, f, old[r][c], r, c) || bad++ > 8)
					continue;
				diag("row %d column %d (lane %d, register %d): "
				     "got %08x, wanted about %.9g",
				     r, c, r % (f->wave / N) * N + c,
				     r / (f->wave / N), *element(t, D, r, c),
				     dot(t, f, r, c, &size));
			}
	}
	is_u64(bad, 0, "%s: 20 random matrices", f->text);
	lanes_free(t);
}

/* v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7] */
static void test_in_place(void)
{
	static const char code[] =
		"v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7]";
	struct lanes *t = lanes_new(32);

	for (int r = 16; r < 32; r++)
		lanes_set(t, r, 0x3c003c00);
	for (int r = 0; r < 8; r++)
		lanes_set(t, r, 0x40a00000);
	lanes_text(t, code);
	is_u64(t->v[0][0][0], 0x41a80000, "all ones onto C = 5 is 21");
	lanes_text(t, code);
	is_u64(t->v[0][7][31], 0x42140000, "and once more 37");
	lanes_free(t);
}

/* A single one in A and in B makes a single one in D, where it belongs. */
static void test_position(void)
{
	struct lanes *t = lanes_new(32);

	for (int lane = 0; lane < 32; lane++) {
		t->v[0][3][lane] = lane % N == 11 ? 0x3c000000 : 0;
		t->v[0][8 + 3][lane] = lane % N == 6 ? 0x40000000 : 0;
	}
	lanes_text(t, forms[0].code);
	/* A[11][7] * B[7][6] = 2 at row 11: register 5, lanes 16..31 */
	is_u64(t->v[0][D + 5][16 + 6], 0x40000000, "row 11, column 6");
	t->v[0][D + 5][16 + 6] = 0;
	int others = 0;

	for (int r = 0; r < 8; r++)
		for (int lane = 0; lane < 32; lane++)
			others += t->v[0][D + r][lane] != 0;
	is_u64(others, 0, "and nothing elsewhere");
	lanes_free(t);
}

/* ----------------------------------------------------------- constants ---- */

/* What field 240 to 248 is in each type of C (RDNA3 ISA 5.4). */
static const struct {
	uint32_t f32, f16, bf16;
} constants[] = {
	{ 0x3f000000, 0x3800, 0x3f00 }, { 0xbf000000, 0xb800, 0xbf00 },
	{ 0x3f800000, 0x3c00, 0x3f80 }, { 0xbf800000, 0xbc00, 0xbf80 },
	{ 0x40000000, 0x4000, 0x4000 }, { 0xc0000000, 0xc000, 0xc000 },
	{ 0x40800000, 0x4400, 0x4080 }, { 0xc0800000, 0xc400, 0xc080 },
	{ 0x3e22f983, 0x3118, 0x3e22 },
};

/* The program of the form with a constant for C, on zeros for A and B. */
static void run_constant(struct lanes *t, const struct form *f, uint32_t field)
{
	uint32_t code[4];
	size_t n = code_lines(f->code, f->wave, code, ARRAY_SIZE(code));

	for (int r = A; r < C; r++)
		lanes_set(t, r, 0);
	for (int r = D; r < D + 8; r++)
		lanes_set(t, r, 0x12345678);
	code[1] = (code[1] & ~(511u << 18)) | field << 18;
	lanes_run(t, code, (int)n);
}

static uint32_t wanted_constant(const struct form *f, uint32_t field)
{
	const uint32_t n = field <= 192 ? field - 128 : 192 - field;
	uint32_t half;

	if (f->out == I32 || f->out == F32)
		return field < 240 ? n : constants[field - 240].f32;
	half = f->in == BF16 ? constants[field - 240].bf16 :
			       constants[field - 240].f16;
	return f->out == HALF ? 0x12340000 | half : half << 16 | 0x5678;
}

/* Integers as floats are denormals; what becomes of them is not known. */
static void test_constants(const struct form *f)
{
	const bool whole = f->out == I32;
	struct lanes *t;
	int bad = 0;

	if (f->neg_c || f->abs_c || f->c_is_one || (whole && f->clamp))
		return;
	t = lanes_new(f->wave);
	for (uint32_t field = whole ? 128 : 240; field <= 248; field++) {
		if (field > 208 && field < 240)
			continue;
		run_constant(t, f, field);
		for (int r = 0; r < N; r++)
			for (int c = 0; c < N; c++)
				bad += *element(t, D, r, c) !=
				       wanted_constant(f, field);
	}
	is_u64(bad, 0, "%s: constants for C", f->text);
	lanes_free(t);
}

/* Infinities, NaN and f16 overflow. */
static void test_special(void)
{
	struct lanes *t = lanes_new(32);

	for (int r = 0; r < 16; r++)
		lanes_set(t, r, 0x7bff7bff);
	lanes_text(t, forms[4].code);
	is_u64(t->v[0][D][0], 0x7c00, "f16 result overflows to infinity");
	t->v[0][0][0] = 0x7bff7c00; /* A[0][0] = inf */
	t->v[0][8][1] = 0x7bff0000; /* B[0][1] = 0 */
	lanes_text(t, forms[0].code);
	is_u64(t->v[0][D][0], 0x7f800000, "inf * finite is inf");
	is_u64(t->v[0][D][1], 0xffc00000, "inf * 0 is the default NaN");
	is_u64(t->v[0][D][16] >> 31, 0, "row 1 has no infinity");
	lanes_free(t);
}

/* One multiplication at one level: the sums are left in `c`. */
static void run_level(soft_wmma_fn *fn, int in, uint32_t (*ab)[8][SOFT_LANES],
		      uint32_t (*c)[N])
{
	struct wmma m = { .in = in,
			  .in_b = in,
			  .acc = in >= WMMA_IU8 ? in : WMMA_F32,
			  .signed_a = true,
			  .c_keep = ~0u };

	for (int q = 0; q < 8; q++)
		m.a[q] = ab[0][q], m.b[q] = ab[1][q];
	for (int r = 0; r < N; r++) {
		for (int l = 0; l < N; l++)
			c[r][l] = 0x3f800000 + (N * r + l) * 0x12345;
		m.c[r] = m.d[r] = c[r];
	}
	fn(&m);
}

static void test_levels(uint64_t *seed)
{
	soft_wmma_fn *const floats[] = { soft_simd_v2.wmma_float,
					 soft_simd_v3.wmma_float,
					 soft_simd_v4.wmma_float };
	soft_wmma_fn *const ints[] = { soft_simd_v2.wmma_int,
				       soft_simd_v3.wmma_int,
				       soft_simd_v4.wmma_int };
	uint32_t ab[2][8][SOFT_LANES], c[3][N][N];
	int levels = 1;

	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		levels = __builtin_cpu_supports("avx512bw") &&
					 __builtin_cpu_supports("avx512vl") ?
				 3 :
				 2;
	for (int in = WMMA_F16; in <= WMMA_IU4; in++) {
		int bad = 0;

		for (int n = 0; n < 50; n++) {
			for (int i = 0; i < 2 * 8 * SOFT_LANES; i++)
				(&ab[0][0][0])[i] =
					(uint32_t)lanes_random(seed);
			for (int l = 0; l < levels; l++)
				run_level((in >= WMMA_IU8 ? ints : floats)[l],
					  in, ab, c[l]);
			for (int l = 1; l < levels; l++)
				bad += memcmp(c[l], c[0], sizeof(c[l])) != 0;
		}
		is_u64(bad, 0,
		       "input type %d: %d levels, the same bits for "
		       "any input",
		       in, levels);
	}
}

int main(void)
{
	uint64_t seed = 4242;

	diag("seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		test_form(&forms[i], &seed);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		test_constants(&forms[i]);
	test_in_place();
	test_position();
	test_special();
	test_levels(&seed);
	return plan_done();
}
