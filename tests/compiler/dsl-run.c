/*
 * Kernels of the DSL in the interpreter, against references in double
 * precision: the three examples of its header, the functions of dsl_math.c with
 * the accuracy that is stated there, scans, memory, control flow and printf.
 */
#include <math.h>

#include "compiler/dsl/dsl_int.h"
#include "compiler/opt/pass.h"
#include "tests/compiler/dsl-tests.h"
#include "tests/compiler/ssa-run.h"

static uint64_t seed = 20240607;

static struct ssa_func *made(struct ssa_func *f, const struct err *e, int level)
{
	struct err oe = { 0 };

	if (!f || (level >= 0 && !ssa_optimize(f, level, NULL, NULL, &oe))) {
		diag("%s%s", e->msg, oe.msg);
		exit(1);
	}
	return f;
}

static bool runs(struct ssa_func *f, const struct ssa_call *c, uint32_t gx,
		 uint32_t gy)
{
	struct err e = { 0 };

	if (call_run(f, c, gx, gy, NULL, &e))
		return true;
	diag("%s", e.msg);
	return false;
}

static bool run_example(struct ssa_func *f, const struct ssa_call *c,
			uint32_t gx, uint32_t gy, int level, struct err *e)
{
	return runs(made(f, e, level), c, gx, gy);
}

static void test_outside(int level)
{
	enum { N = 1000 };
	float x[N] = { 0 }, y[N] = { 0 };
	struct err e = { 0 };
	struct ssa_func *f = made(example_saxpy(&e), &e, level);
	struct ssa_call c = { 0 };

	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, sizeof(y) - 4);
	call_f32(&c, 1.7f);
	call_u32(&c, N);
	ok(!call_run(f, &c, (N + 255) / 256, 1, NULL, &e),
	   "an access past the buffer is found, -O%d", level);
	has_str(e.msg, "are outside of all buffers", "and named, -O%d", level);
	has_str(e.msg, "dsl-examples.h:21", "with its line, -O%d", level);
	ssa_func_free(f);
}

/* ------------------------------------------------------------ functions -- */

typedef struct val unary_fn(struct dsl_at at, struct val x);

static struct val sine(struct dsl_at at, struct val x)
{
	return dsl_sin(at, x, false);
}

static struct val cosine(struct dsl_at at, struct val x)
{
	return dsl_sin(at, x, true);
}

static struct val power(struct dsl_at at, struct val x)
{
	return dsl_pow(at, x, dsl_of_f64(1.5));
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static double gelu(double x)
{
	return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double power_15(double x)
{
	return pow(x, 1.5);
}

/* Errors allowed: in ulps of the result, or absolute, or of |x|. */
static const struct {
	const char *name;
	unary_fn *build;
	double (*want)(double x);
	double low, high, ulps, absolute, of_x;
} function[] = {
	{ "exp", dsl_exp, exp, -87, 88.7, 2, 0, 0 },
	{ "exp of denormals", dsl_exp, exp, -104, -87, 0, 0x1p-126, 0 },
	{ "log", dsl_log, log, 1e-45, 1e-37, 3, 0, 0 },
	{ "log of small", dsl_log, log, 1e-6, 2, 3, 0x1p-24, 0 },
	{ "log of large", dsl_log, log, 2, 3e38, 3, 0, 0 },
	{ "sin", sine, sin, -10, 10, 0, 0x1p-20, 0 },
	{ "sin of large", sine, sin, -1e6, 1e6, 0, 0x1p-20, 0 },
	{ "cos of large", cosine, cos, -1e6, 1e6, 0, 0x1p-20, 0 },
	{ "tanh", dsl_tanh, tanh, -10, 10, 4, 0, 0 },
	{ "tanh of small", dsl_tanh, tanh, -1, 1, 4, 0, 0 },
	{ "sigmoid", dsl_sigmoid, sigmoid, -80, 30, 4, 0, 0 },
	{ "silu", dsl_silu, silu, -80, 30, 4, 0, 0 },
	{ "erf", dsl_erf, erf, -5, 5, 4, 0, 0 },
	{ "erf of small", dsl_erf, erf, -1.1, 1.1, 4, 0, 0 },
	{ "gelu", dsl_gelu, gelu, -6, 6, 0, 0, 0x1p-22 },
	{ "pow 3/2", power, power_15, 0.1, 100, 16, 0, 0 },
};

static struct ssa_func *make_function(unary_fn *fn, struct err *e)
{
	struct dsl *k = KERNEL("function", 256);
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val y = ARG_PTR(k, DSL_F32, "y", 0);
	struct val i = GLOBAL_ID(k, 0);

	STORE(y, i, fn(DSL_AT, LOAD(x, i)));
	return dsl_finish(k, e);
}

static double ulp_of(double v)
{
	const float f = fabsf((float)v);

	return (double)(nextafterf(f, INFINITY) - f);
}

static void test_function(size_t k)
{
	enum { N = 2048 };
	static float x[N], y[N];
	struct err e = { 0 };
	struct ssa_func *f = made(make_function(function[k].build, &e), &e, -1);
	struct ssa_call c = { 0 };
	double worst = 0, at = 0;

	for (int i = 0; i < N; i++)
		x[i] = (float)(function[k].low +
			       (function[k].high - function[k].low) *
				       (0.5 + 0.5 * (double)test_random_f32(
							    &seed)));
	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, sizeof(y));
	ok(runs(f, &c, N / 256, 1), "%s runs", function[k].name);
	for (int i = 0; i < N; i++) {
		const double want = function[k].want((double)x[i]);
		const double allowed =
			fmax(function[k].ulps * ulp_of(want),
			     fmax(function[k].absolute,
				  function[k].of_x * fabs((double)x[i])));
		const double share = fabs((double)y[i] - want) / allowed;

		if (!(share <= worst)) {
			worst = share;
			at = (double)x[i];
		}
	}
	ok(worst <= 1, "%s: %.2f of the error stated, at %g", function[k].name,
	   worst, at);
	ssa_func_free(f);
}

/* What the functions do with what is no number, or too large. */
static void test_special(void)
{
	static const struct {
		const char *name;
		unary_fn *build;
		float in, out;
	} t[] = {
		{ "exp", dsl_exp, INFINITY, INFINITY },
		{ "exp", dsl_exp, -INFINITY, 0 },
		{ "exp", dsl_exp, 89, INFINITY },
		{ "exp", dsl_exp, -120, 0 },
		{ "exp", dsl_exp, 0, 1 },
		{ "exp", dsl_exp, NAN, NAN },
		{ "log", dsl_log, 0, -INFINITY },
		{ "log", dsl_log, -1, NAN },
		{ "log", dsl_log, INFINITY, INFINITY },
		{ "log", dsl_log, 1, 0 },
		{ "tanh", dsl_tanh, INFINITY, 1 },
		{ "tanh", dsl_tanh, -100, -1 },
		{ "tanh", dsl_tanh, NAN, NAN },
		{ "tanh", dsl_tanh, -0.0f, -0.0f },
		{ "sigmoid", dsl_sigmoid, -INFINITY, 0 },
		{ "sigmoid", dsl_sigmoid, INFINITY, 1 },
		{ "silu", dsl_silu, 200, 200 },
		{ "erf", dsl_erf, INFINITY, 1 },
		{ "erf", dsl_erf, -9, -1 },
		{ "erf", dsl_erf, NAN, NAN },
		{ "sin", sine, NAN, NAN },
		{ "sin", sine, INFINITY, NAN },
		{ "cos", cosine, 0, 1 },
	};

	for (size_t k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
		struct err e = { 0 };
		struct ssa_func *f = made(make_function(t[k].build, &e), &e,
					  -1);
		float x[256], y[256];
		struct ssa_call c = { 0 };

		for (int i = 0; i < 256; i++)
			x[i] = t[k].in;
		call_buffer(&c, x, sizeof(x));
		call_buffer(&c, y, sizeof(y));
		runs(f, &c, 1, 1);
		is_f64((double)y[77], (double)t[k].out, "%s(%g)", t[k].name,
		       (double)t[k].in);
		ssa_func_free(f);
	}
}

/* --------------------------------------------------------- other things -- */

/* Collatz steps of each work-item: WHILE, IF, ELSE by lane. */
static void test_flow(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("collatz", 100);
	struct val out = ARG_PTR(k, DSL_I32, "out", 0);
	struct val i = GLOBAL_ID(k, 0);
	struct var n = VAR(k, DSL_U32, 1), steps = VAR(k, DSL_I32, 0);
	int32_t got[200], wrong = 0;
	struct ssa_call c = { 0 };

	SET(n, ADD(i, 1));
	WHILE (k, NE(n, 1)) {
		IF (k, EQ(AND(n, 1), 0)) {
			SET(n, SHR(n, 1));
		}
		ELSE (k) {
			SET(n, FMA(n, 3, 1));
		}
		SET(steps, ADD(steps, 1));
	}
	STORE(out, i, GET(steps));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	call_buffer(&c, got, sizeof(got));
	ok(runs(f, &c, 2, 1), "collatz runs, -O%d", level);
	for (uint32_t j = 0; j < 200; j++) {
		int want = 0;

		for (uint32_t v = j + 1; v != 1; want++)
			v = v & 1 ? 3 * v + 1 : v / 2;
		wrong += got[j] != want;
	}
	is_i64(wrong, 0, "each work-item has its own number of steps, -O%d",
	       level);
	ssa_func_free(f);
}

/* Sums before each of 100 items over 4 waves, and shuffles. */
static void test_lanes(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("scan", 100);
	struct val out = ARG_PTR(k, DSL_I32, "out", 0);
	struct val i = LOCAL_ID(k, 0), sq = MUL(i, i);
	int32_t got[5 * 100], want = 0, wrong[5] = { 0 };
	struct ssa_call c = { 0 };

	STORE(out, i, GROUP_SCAN(ADD, sq, false));
	STORE(out, ADD(i, 100), GROUP_SCAN(ADD, sq, true));
	STORE(out, ADD(i, 200), WAVE_MAX(i));
	STORE(out, ADD(i, 300), SHUFFLE_XOR(i, 1));
	STORE(out, ADD(i, 400), CAST(DSL_I32, BALLOT(EQ(REM(i, 3), 0))));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	call_buffer(&c, got, sizeof(got));
	ok(runs(f, &c, 1, 1), "scan runs, -O%d", level);
	for (int j = 0; j < 100; j++) {
		uint32_t bits = 0;

		wrong[0] += got[j] != want;
		want += j * j;
		wrong[1] += got[100 + j] != want;
		wrong[2] += got[200 + j] != (j < 96 ? j | 31 : 99);
		wrong[3] += got[300 + j] != (j ^ 1);
		for (int l = 0; l < 32; l++)
			bits |= (uint32_t)((j & ~31) + l < 100 &&
					   ((j & ~31) + l) % 3 == 0) << l;
		wrong[4] += (uint32_t)got[400 + j] != bits;
	}
	for (int j = 0; j < 5; j++)
		is_i64(wrong[j], 0, "between lanes: %d, -O%d", j, level);
	ssa_func_free(f);
}

/* Rows of 7 with vectors of 4: the tail neither reads nor writes beyond. */
static void test_bounds(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("bounds", 2);
	struct val in = ARG_PTR(k, DSL_BF16, "in", DSL_READONLY);
	struct val out = ARG_PTR(k, DSL_F16, "out", 0);
	struct val i = MUL(LOCAL_ID(k, 0), 4);
	uint16_t x[7], y[8];
	int wrong = 0;
	struct ssa_call c = { 0 };

	STORE_IN(
		out, i,
		CAST(DSL_F16, MUL(CAST(DSL_F32, LOAD_IN(in, i, 4, V(7))), 0.5)),
		V(7));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	for (int j = 0; j < 7; j++)
		x[j] = (uint16_t)ssa_f64_to_bits(SSA_BF16, j + 1.0);
	y[7] = 0x1234;
	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, 14);
	ok(runs(f, &c, 1, 1), "a tail of a vector stays inside, -O%d", level);
	for (int j = 0; j < 7; j++)
		wrong += ssa_bits_to_f64(SSA_F16, y[j]) != (j + 1) / 2.0;
	is_i64(wrong, 0, "and every element is there, -O%d", level);
	ssa_func_free(f);
}

/*
 * Two f16 at a time are as one at a time; constants and single values repeat.
 */
static void test_pairs(int level)
{
	enum { N = 64 };
	struct err e = { 0 };
	struct dsl *k = KERNEL("pairs", N / 4);
	struct val a = ARG_PTR(k, DSL_F16, "a", DSL_READONLY);
	struct val b = ARG_PTR(k, DSL_F16, "b", DSL_READONLY);
	struct val out = ARG_PTR(k, DSL_F16, "out", 0);
	struct val i = MUL(LOCAL_ID(k, 0), 4);
	struct val x = LOADV(a, i, 4), y = LOADV(b, i, 4);
	uint16_t in[2][N], got[5][N];
	struct ssa_call c = { 0 };
	int wrong = 0;

	STORE(out, i, PAIRS(ADD, x, y));
	STORE(ADVANCE(out, N), i, PAIRS(SUB, x, 3));
	STORE(ADVANCE(out, 2 * N), i, PAIRS(MUL, x, ELEM(y, 0)));
	STORE(ADVANCE(out, 3 * N), i, PAIRS(MIN, x, y));
	STORE(ADVANCE(out, 4 * N), i, PAIRS(MAX, x, y));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	for (int j = 0; j < N; j++)
		for (int s = 0; s < 2; s++)
			in[s][j] = (uint16_t)ssa_f64_to_bits(
				SSA_F16, 9 * (double)test_random_f32(&seed));
	call_buffer(&c, in[0], sizeof(in[0]));
	call_buffer(&c, in[1], sizeof(in[1]));
	call_buffer(&c, got, sizeof(got));
	ok(runs(f, &c, 1, 1), "pairs of f16 run, -O%d", level);
	for (int j = 0; j < N; j++) {
		const double p = ssa_bits_to_f64(SSA_F16, in[0][j]);
		const double q = ssa_bits_to_f64(SSA_F16, in[1][j]);
		const double r = ssa_bits_to_f64(SSA_F16, in[1][j & ~3]);
		const double want[5] = { p + q, p - 3, p * r, fmin(p, q),
					 fmax(p, q) };

		for (int s = 0; s < 5; s++)
			wrong += got[s][j] !=
				 ssa_f64_to_bits(SSA_F16, want[s]);
	}
	is_i64(wrong, 0, "and each is rounded once, -O%d", level);
	ssa_func_free(f);
	k = KERNEL("odd", 1);
	out = ARG_PTR(k, DSL_F16, "out", 0);
	STORE(out, 0, PAIRS(ADD, LOADV(out, 0, 3), 1));
	e = (struct err){ 0 };
	ok(!dsl_finish(k, &e), "three elements are no pairs");
	has_str(e.msg, "even number", "which is said");
}

/* One number through CAST() to a type and what comes out, as 64 bits. */
static uint64_t cast_of(double in, enum dsl_type from, enum dsl_type to,
			int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("cast", 1);
	struct val out = ARG_PTR(k, to, "out", 0);
	struct val x = ARG_PTR(k, from, "in", 0);
	const bool real = dsl_type_info[from].is_float;
	uint64_t bits = real ? ssa_f64_to_bits(dsl_type_info[from].kind, in) :
			       (uint64_t)(int64_t)in;
	uint64_t got = 0;
	struct ssa_call c = { 0 };

	STORE(out, 0, CAST(to, LOAD(x, 0)));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	call_buffer(&c, &got, 8);
	call_buffer(&c, &bits, 8);
	runs(f, &c, 1, 1);
	ssa_func_free(f);
	return got;
}

static void test_casts(int level)
{
	static const struct {
		double in;
		enum dsl_type from, to;
		uint64_t want;
	} t[] = {
		/* Toward zero, saturating, NaN to 0. */
		{ -1.75, DSL_F32, DSL_I32, 0xffffffff },
		{ 3e9, DSL_F32, DSL_I32, 0x7fffffff },
		{ 3e9, DSL_F32, DSL_U32, 3000000000 },
		{ -1, DSL_F32, DSL_U32, 0 },
		{ NAN, DSL_F32, DSL_I32, 0 },
		{ 300, DSL_F32, DSL_I8, 127 },
		{ -300, DSL_F32, DSL_I8, 0x80 },
		{ 300, DSL_F32, DSL_U8, 255 },
		{ -40000, DSL_F16, DSL_I16, 0x8000 },
		/* To nearest even: halfway between two bf16 or f16. */
		{ 1 + 1.0 / 256, DSL_F32, DSL_BF16, 0x3f80 },
		{ 1 + 3.0 / 256, DSL_F32, DSL_BF16, 0x3f82 },
		{ 1 + 1.0 / 256 + 1e-6, DSL_F32, DSL_BF16, 0x3f81 },
		{ 3.4e38, DSL_F32, DSL_BF16, 0x7f80 },
		{ 2049, DSL_F32, DSL_F16, 0x6800 },
		{ 65520, DSL_F32, DSL_F16, 0x7c00 },
		{ 65519, DSL_F32, DSL_F16, 0x7bff },
		{ 0x1p-24, DSL_F32, DSL_F16, 1 },
		{ 0x1p-25, DSL_F32, DSL_F16, 0 },
		{ 1.5, DSL_BF16, DSL_F16, 0x3e00 },
		{ 16777217, DSL_I32, DSL_F32, 0x4b800000 },
		{ -2, DSL_I8, DSL_F32, 0xc0000000 },
		{ 254, DSL_U8, DSL_BF16, 0x437e },
		/* Integers keep their sign as they grow, and wrap. */
		{ -2, DSL_I8, DSL_I64, 0xfffffffffffffffe },
		{ 254, DSL_U8, DSL_I32, 254 },
		{ -1, DSL_I32, DSL_I64, UINT64_MAX },
		{ 4294967295.0, DSL_U32, DSL_I64, 0xffffffff },
		{ 0x12345, DSL_I32, DSL_I16, 0x2345 },
	};

	for (size_t k = 0; k < sizeof(t) / sizeof(t[0]); k++)
		is_u64(cast_of(t[k].in, t[k].from, t[k].to, level), t[k].want,
		       "%s %g to %s, -O%d", dsl_type_info[t[k].from].name,
		       t[k].in, dsl_type_info[t[k].to].name, level);
}

/* A counter that 64 work-items add to, a maximum, and a lock by CAS. */
static void test_atomics(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("atomics", 64);
	struct val p = ARG_PTR(k, DSL_I32, "p", 0);
	struct val i = LOCAL_ID(k, 0);
	struct val lds = LDS(k, DSL_I32, 1, "sum");
	struct ssa_call c = { 0 };
	int32_t m[5] = { 100, -7, 1, 0, 0 };

	ATOMIC(SSA_RMW_ADD, p, 0, i);
	ATOMIC_IF(LT(i, 40), SSA_RMW_MAX_S, p, 1, i);
	IF (k, EQ(i, 5)) {
		STORE(p, 3, CAS(p, 2, 1, 9));
		STORE(p, 4, CAS(p, 2, 1, 11));
		STORE(lds, 0, 0);
	}
	BARRIER(k);
	ATOMIC(SSA_RMW_ADD, lds, 0, 2);
	BARRIER(k);
	IF (k, EQ(i, 0)) {
		STORE(p, 0, ADD(LOAD(p, 0), LOAD(lds, 0)));
	}
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	call_buffer(&c, m, sizeof(m));
	ok(runs(f, &c, 1, 1), "atomics run, -O%d", level);
	is_i64(m[0], 100 + 63 * 64 / 2 + 2 * 64, "sums are whole, -O%d", level);
	is_i64(m[1], 39, "the mask holds for atomics, -O%d", level);
	is_i64(m[2], 9, "the first CAS writes, -O%d", level);
	is_i64(m[3] * 100 + m[4], 109, "CAS gives what was there, -O%d", level);
	ssa_func_free(f);
}

/* D = A B for bytes, and for bf16 with the other layouts; exact. */
static void test_fragments(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("fragments", 32);
	struct val ab = ARG_PTR(k, DSL_I8, "ab", DSL_READONLY);
	struct val hb = ARG_PTR(k, DSL_BF16, "hb", DSL_READONLY);
	struct val d = ARG_PTR(k, DSL_I32, "d", 0);
	struct val h = ARG_PTR(k, DSL_F16, "h", 0);
	struct ssa_call c = { 0 };
	int8_t a[512];
	uint16_t b[512], got_h[256];
	int32_t got[256], wrong = 0, wrong_h = 0;

	FRAG_STORE(d, 0, 16, DSL_COLUMNS,
		   WMMA(FRAG_LOAD('A', ab, 0, 16, DSL_ROWS),
			FRAG_LOAD('B', ab, 256, 16, DSL_COLUMNS),
			FRAG_ZERO(k, DSL_I32)));
	struct val p = WMMA(FRAG_LOAD('A', hb, 0, 16, DSL_COLUMNS),
			    FRAG_LOAD('B', hb, 256, 16, DSL_ROWS),
			    FRAG_ZERO(k, DSL_F32));
	FRAG_STORE(h, 0, 16, DSL_ROWS, FRAG_OF(MUL(FRAG_ELEMS(p), 0.5)));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	for (int i = 0; i < 512; i++) {
		a[i] = (int8_t)test_random(&seed);
		b[i] = (uint16_t)ssa_f64_to_bits(SSA_BF16, i % 7 - 3);
	}
	call_buffer(&c, a, sizeof(a));
	call_buffer(&c, b, sizeof(b));
	call_buffer(&c, got, sizeof(got));
	call_buffer(&c, got_h, sizeof(got_h));
	ok(runs(f, &c, 1, 1), "fragments run, -O%d", level);
	for (int r = 0; r < 16; r++)
		for (int n = 0; n < 16; n++) {
			int want = 0, half = 0;

			for (int x = 0; x < 16; x++) {
				want += a[r * 16 + x] * a[256 + n * 16 + x];
				half += ((x * 16 + r) % 7 - 3) *
					((256 + x * 16 + n) % 7 - 3);
			}
			wrong += got[n * 16 + r] != want;
			wrong_h +=
				ssa_bits_to_f64(SSA_F16, got_h[r * 16 + n]) !=
				half / 2.0;
		}
	is_i64(wrong, 0, "a product of bytes, stored by columns, -O%d", level);
	is_i64(wrong_h, 0, "bf16 by columns and rows, halved, -O%d", level);
	ssa_func_free(f);
}

/* Of small numbers, so that sums are exact; i32 wraps. */
static void test_dots(int level)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("dots", 64);
	struct val a = ARG_PTR(k, DSL_I32, "a", DSL_READONLY);
	struct val b = ARG_PTR(k, DSL_I32, "b", DSL_READONLY);
	struct val h = ARG_PTR(k, DSL_F16, "h", DSL_READONLY);
	struct val q = ARG_PTR(k, DSL_BF16, "q", DSL_READONLY);
	struct val sum = ARG_PTR(k, DSL_I32, "sum", 0);
	struct val f2 = ARG_PTR(k, DSL_F32, "f2", 0);
	struct val b2 = ARG_PTR(k, DSL_F32, "b2", 0);
	struct val i = LOCAL_ID(k, 0), j = MUL(i, 2);
	struct ssa_call c = { 0 };
	int8_t x[256], y[256];
	uint16_t half[128], brain[128];
	int32_t got[64], wrong = 0, wrong_h = 0, wrong_b = 0;
	float got_h[64], got_b[64];

	STORE(sum, i, DOT4(LOAD(a, i), LOAD(b, i), 0x7fffffff));
	STORE(f2, i, DOT2(LOADV(h, j, 2), LOADV(h, j, 2), 0.5));
	STORE(b2, i, DOT2(LOADV(q, j, 2), LOADV(q, j, 2), -1.0));
	struct ssa_func *f = made(dsl_finish(k, &e), &e, level);

	for (int n = 0; n < 256; n++) {
		x[n] = (int8_t)test_random(&seed);
		y[n] = (int8_t)test_random(&seed);
	}
	for (int n = 0; n < 128; n++) {
		half[n] = (uint16_t)ssa_f64_to_bits(SSA_F16, n % 9 - 4);
		brain[n] = (uint16_t)ssa_f64_to_bits(SSA_BF16, n % 7 - 3);
	}
	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, sizeof(y));
	call_buffer(&c, half, sizeof(half));
	call_buffer(&c, brain, sizeof(brain));
	call_buffer(&c, got, sizeof(got));
	call_buffer(&c, got_h, sizeof(got_h));
	call_buffer(&c, got_b, sizeof(got_b));
	ok(runs(f, &c, 1, 1), "dot products run, -O%d", level);
	for (int n = 0; n < 64; n++) {
		const int h0 = 2 * n % 9 - 4, h1 = (2 * n + 1) % 9 - 4;
		const int b0 = 2 * n % 7 - 3, b1 = (2 * n + 1) % 7 - 3;
		uint32_t want = 0x7fffffff;

		for (int m = 4 * n; m < 4 * n + 4; m++)
			want += (uint32_t)(x[m] * y[m]);
		wrong += (uint32_t)got[n] != want;
		wrong_h += got_h[n] != (float)(h0 * h0 + h1 * h1) + 0.5f;
		wrong_b += got_b[n] != (float)(b0 * b0 + b1 * b1 - 1);
	}
	is_i64(wrong, 0, "of four bytes, and a sum, -O%d", level);
	is_i64(wrong_h, 0, "of two f16, -O%d", level);
	is_i64(wrong_b, 0, "of two bf16, -O%d", level);
	ssa_func_free(f);
}

static void test_printf(void)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("hello", 3);
	struct val i = LOCAL_ID(k, 0);
	struct buf out = { 0 };
	struct ssa_call c = { 0 };

	IF (k, NE(i, 1)) {
		PRINTF(k, "%d%%: %5.2f %x\n", SUB(i, 2),
		       MUL(CAST(DSL_F32, i), 0.5), i);
	}
	struct ssa_func *f = made(dsl_finish(k, &e), &e, -1);

	ok(call_run(f, &c, 1, 1, &out, &e), "printf runs: '%s'", e.msg);
	is_str(out.data, "-2%:  0.00 0\n0%:  1.00 2\n", "lanes print in order");
	buf_fini(&out);
	ssa_func_free(f);
}

/* A barrier that only some lanes reach, and LDS out of bounds. */
static void test_faults(void)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("stuck", 64);
	struct ssa_call c = { 0 };

	IF (k, LT(LANE(k), 5)) {
		BARRIER(k);
	}
	struct ssa_func *f = made(dsl_finish(k, &e), &e, -1);

	ok(!call_run(f, &c, 1, 1, NULL, &e), "a divergent barrier is found");
	has_str(e.msg, "not all lanes", "and named");
	ssa_func_free(f);

	e = (struct err){ 0 };
	k = KERNEL("outside", 64);
	STORE(LDS(k, DSL_F32, 63, "a"), LOCAL_ID(k, 0), 1.0);
	f = made(dsl_finish(k, &e), &e, -1);
	ok(!call_run(f, &c, 1, 1, NULL, &e), "an access past LDS is found");
	has_str(e.msg, "of 252 bytes of LDS", "and named");
	ssa_func_free(f);
}

int main(void)
{
	for (int level = -1; level <= 3; level++) {
		test_saxpy(run_example, level, &seed);
		test_softmax(run_example, level, &seed, 64);
		test_softmax(run_example, level, &seed, 200);
		test_tile(run_example, level, &seed);
		test_outside(level);
		test_flow(level);
		test_lanes(level);
		test_bounds(level);
		test_pairs(level);
		test_casts(level);
		test_atomics(level);
		test_fragments(level);
		test_dots(level);
	}
	for (size_t k = 0; k < sizeof(function) / sizeof(function[0]); k++)
		test_function(k);
	test_special();
	test_printf();
	test_faults();
	return plan_done();
}
