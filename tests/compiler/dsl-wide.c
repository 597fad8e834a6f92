/*
 * Conversions of i64 and of bytes, and scans of groups: the interpreter and the
 * soft device, with and without optimisation, against the host's.
 */
#include <float.h>
#include <math.h>

#include "compiler/dsl/dsl.h"
#include "compiler/ssa/ssa.h"
#include "tests/compiler/cc-run.h"

enum { N = 256, GROUP = 128 };

static struct cc_dev dev;
static uint64_t seed = 2120;

/* Both ways of running; the results of each go through `check`. */
static void both(struct ssa_func *f, const struct ssa_call *c, uint32_t groups,
		 void (*check)(const char *how, const void *ctx),
		 const void *ctx)
{
	for (int level = 0; level <= 3; level += 3) {
		struct cc_options o;
		struct err e = { 0 };
		char how[40];

		cc_test_options(&o);
		o.level = level;
		snprintf(how, sizeof(how), "soft device, -O%d", level);
		if (ok(cc_try(&dev, f, &o, c, groups, 1, NULL, &e), "%s %s",
		       how, e.msg))
			check(how, ctx);
	}
	struct err e = { 0 };
	if (ok(call_run(f, c, groups, 1, NULL, &e), "interpreter %s", e.msg))
		check("interpreter", ctx);
}

/* -------------------------------------------------------- conversions ---- */

struct numbers {
	int64_t i[N], to_i[N];
	float f[N], to_f[N];
};

/* Ends of ranges, ties between two floats and beside them, random sizes. */
static int64_t number(uint32_t k)
{
	static const int64_t some[] = {
		0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, UINT32_MAX,
		1ll << 32, (1ll << 24) + 1, -(1ll << 24) - 1, (1ll << 24) + 3,
		(1ll << 40) + (1ll << 16), (1ll << 40) + (1ll << 16) + 1,
		(3ll << 40) + (1ll << 17) - 1, 0x7fffffbfffffffff,
		0x7fffff4000000000, 0x7fffffc000000000,
	};

	if (k < ARRAY_SIZE(some))
		return some[k];
	return (int64_t)test_random(&seed) >> (k % 63);
}

static float fraction(uint32_t k)
{
	static const float some[] = {
		0, -0.0f, .99f, -.99f, 1, -1.5f, NAN, INFINITY, -INFINITY,
		0x1p63f, -0x1p63f, 0x1.fffffep62f, -0x1.fffffep62f, 0x1p31f,
		8388607.5f, -8388609, 1e30f, -1e30f, FLT_MIN / 2,
	};

	if (k < ARRAY_SIZE(some))
		return some[k];
	return test_random_f32(&seed) * ldexpf(1, (int)(k % 70));
}

static int64_t toward_zero(float f)
{
	if (isnan(f))
		return 0;
	if (f >= 0x1p63f)
		return INT64_MAX;
	return f < -0x1p63f ? INT64_MIN : (int64_t)f;
}

static void check_numbers(const char *how, const void *ctx)
{
	const struct numbers *x = ctx;
	int wrong[2] = { 0 };

	for (int k = 0; k < N; k++) {
		float want = (float)x->i[k];
		wrong[0] += memcmp(&x->to_f[k], &want, 4) != 0;
		wrong[1] += x->to_i[k] != toward_zero(x->f[k]);
	}
	is_i64(wrong[0], 0, "i64 to f32, %s", how);
	is_i64(wrong[1], 0, "f32 to i64, %s", how);
}

static void test_numbers(void)
{
	static struct numbers x;
	struct err e = { 0 };
	struct dsl *k = KERNEL("numbers", 64);
	struct val to_f = ARG_PTR(k, DSL_F32, "to_f", 0);
	struct val to_i = ARG_PTR(k, DSL_I64, "to_i", 0);
	struct val in_i = ARG_PTR(k, DSL_I64, "i", DSL_READONLY);
	struct val in_f = ARG_PTR(k, DSL_F32, "f", DSL_READONLY);
	struct val at = CAST(DSL_U32, GLOBAL_ID(k, 0));
	struct ssa_call c = { 0 };

	STORE(to_f, at, CAST(DSL_F32, LOAD(in_i, at)));
	STORE(to_i, at, CAST(DSL_I64, LOAD(in_f, at)));
	struct ssa_func *f = dsl_finish(k, &e);
	if (!ok(f, "conversions of i64 are built %s", e.msg))
		return;
	for (uint32_t j = 0; j < N; j++) {
		x.i[j] = number(j);
		x.f[j] = fraction(j);
	}
	call_buffer(&c, x.to_f, sizeof(x.to_f));
	call_buffer(&c, x.to_i, sizeof(x.to_i));
	call_buffer(&c, x.i, sizeof(x.i));
	call_buffer(&c, x.f, sizeof(x.f));
	both(f, &c, N / 64, check_numbers, &x);
	ssa_func_free(f);
}

static void test_refused(void)
{
	struct err e = { 0 };
	struct dsl *k = KERNEL("refused", 64);
	struct val p = ARG_PTR(k, DSL_BF16, "p", 0);

	STORE(p, 0, CAST(DSL_BF16, CONST(k, DSL_I64, 1)));
	ok(!dsl_finish(k, &e) && strstr(e.msg, "i64 to bf16"),
	   "i64 goes to no other float: %s", e.msg);
}

/* -------------------------------------------------------------- bytes ---- */

enum { WAYS = 4 };

struct bytes {
	uint8_t in[N][8];
	float by[N], plus[N];
	float out[WAYS][N][8];
	uint16_t pairs[N][8];
};

/* The bits of x as f16; one NaN is as good as another. */
static uint16_t f16_bits(float x)
{
	return (uint16_t)ssa_f64_to_bits(SSA_F16, (double)x);
}

static bool is_nan16(uint16_t h)
{
	return (h & 0x7fff) > 0x7c00;
}

static void check_bytes(const char *how, const void *ctx)
{
	const struct bytes *x = ctx;
	int wrong[WAYS] = { 0 }, pairs = 0;

	for (int k = 0; k < N; k++)
		for (int j = 0; j < 8; j++) {
			const float u = x->in[k][j], s = (int8_t)x->in[k][j];
			const float want[WAYS] = { u, s, u, u };
			const uint16_t h = f16_bits(fmaf(u, x->by[k],
							 x->plus[k]));
			const uint16_t got = x->pairs[k][j];

			for (int w = 0; w < WAYS; w++)
				wrong[w] += x->out[w][k][j] != want[w];
			pairs += got != h && !(is_nan16(got) && is_nan16(h));
		}
	is_i64(wrong[0], 0, "bytes without a sign to f32, %s", how);
	is_i64(wrong[1], 0, "with a sign, %s", how);
	is_i64(wrong[2], 0, "fields of words, %s", how);
	is_i64(wrong[3], 0, "of words that all lanes share, %s", how);
	is_i64(pairs, 0, "pairs of fma as f16, %s", how);
}

static struct ssa_func *bytes_build(struct err *e)
{
	struct dsl *k = KERNEL("bytes", 64);
	struct val out = ARG_PTR(k, DSL_F32, "out", DSL_NOALIAS);
	struct val pairs = ARG_PTR(k, DSL_F16, "pairs", DSL_NOALIAS);
	struct val in = ALIGNED(ARG_PTR(k, DSL_U8, "in", DSL_READONLY), 8);
	struct val by = ARG_PTR(k, DSL_F32, "by", DSL_READONLY);
	struct val plus = ARG_PTR(k, DSL_F32, "plus", DSL_READONLY);
	struct val at = CAST(DSL_U32, GLOBAL_ID(k, 0)), to = SHL(at, 3);
	struct val x = LOADV(in, to, 8), y[8], sum[8], same[8];
	struct val words = BITS(DSL_U32, x);
	struct val a = LOAD(by, at), b = LOAD(plus, at);

	for (uint32_t j = 0; j < 8; j++) {
		struct val w = SHR(ELEM(words, j / 4), j % 4 * 8);

		y[j] = CAST(DSL_F32, j % 4 == 3 ? w : AND(w, 255));
		sum[j] = CAST(DSL_F16, FMA(y[j], a, b));
	}
	STORE(out, to, CAST(DSL_F32, CAST(DSL_I32, x)));
	STORE(out, ADD(to, N * 8), CAST(DSL_F32, CAST(DSL_I32,
						     BITS(DSL_I8, x))));
	STORE(out, ADD(to, 2 * N * 8), dsl_join(DSL_AT, y, 8));
	STORE(pairs, to, dsl_join(DSL_AT, sum, 8));
	FOR (k, i, 0, 64, 1) { /* a work-item at a time: scalar words */
		struct val row = SHL(CAST(DSL_U32, ADD(MUL(GROUP_ID(k, 0), 64),
						       i)), 3);

		words = LOADV(AS(DSL_U32, in), SHR(row, 2), 2);
		for (uint32_t j = 0; j < 8; j++)
			same[j] = CAST(DSL_F32, AND(SHR(ELEM(words, j / 4),
							j % 4 * 8), 255));
		STORE_IF(EQ(LOCAL_ID(k, 0), i), out, ADD(row, 3 * N * 8),
			 dsl_join(DSL_AT, same, 8));
	}
	return dsl_finish(k, e);
}

static void test_bytes(void)
{
	static struct bytes x;
	struct err e = { 0 };
	struct ssa_func *f = bytes_build(&e);
	struct ssa_call c = { 0 };

	if (!ok(f, "conversions of bytes are built %s", e.msg))
		return;
	for (uint32_t j = 0; j < N; j++) {
		for (uint32_t i = 0; i < 8; i++)
			x.in[j][i] = (uint8_t)test_random(&seed);
		x.by[j] = fraction(j);
		x.plus[j] = fraction(j / 2);
	}
	call_buffer(&c, x.out, sizeof(x.out));
	call_buffer(&c, x.pairs, sizeof(x.pairs));
	call_buffer(&c, x.in, sizeof(x.in));
	call_buffer(&c, x.by, sizeof(x.by));
	call_buffer(&c, x.plus, sizeof(x.plus));
	both(f, &c, N / 64, check_bytes, &x);
	ssa_func_free(f);
}

/* -------------------------------------------------------------- scans ---- */

struct scans {
	int32_t in[N], least[N], most[N];
	uint32_t before[N];
	float high[N];
};

static void check_scans(const char *how, const void *ctx)
{
	const struct scans *x = ctx;
	int wrong[4] = { 0 };

	for (int g = 0; g < N; g += GROUP) {
		int32_t least = INT32_MAX, most = INT32_MIN;
		uint32_t before = UINT32_MAX;
		float high = -INFINITY;

		for (int k = g; k < g + GROUP; k++) {
			wrong[0] += x->before[k] != before;
			wrong[1] += x->high[k] != high;
			before = (uint32_t)x->in[k] < before ?
					 (uint32_t)x->in[k] : before;
			high = fmaxf(high, (float)x->in[k]);
			least = x->in[k] < least ? x->in[k] : least;
			most = x->in[k] > most ? x->in[k] : most;
			wrong[2] += x->least[k] != least;
			wrong[3] += x->most[k] != most;
		}
	}
	for (int k = 0; k < 4; k++)
		is_i64(wrong[k], 0, "scan %d, %s", k, how);
}

static void test_scans(void)
{
	static struct scans x;
	struct err e = { 0 };
	struct dsl *k = KERNEL("scans", GROUP);
	struct val least = ARG_PTR(k, DSL_I32, "least", 0);
	struct val most = ARG_PTR(k, DSL_I32, "most", 0);
	struct val before = ARG_PTR(k, DSL_U32, "before", 0);
	struct val high = ARG_PTR(k, DSL_F32, "high", 0);
	struct val in = ARG_PTR(k, DSL_I32, "in", DSL_READONLY);
	struct val at = CAST(DSL_U32, GLOBAL_ID(k, 0)), v = LOAD(in, at);
	struct ssa_call c = { 0 };

	STORE(least, at, GROUP_SCAN(MIN, v, true));
	STORE(most, at, GROUP_SCAN(MAX, v, true));
	STORE(before, at, GROUP_SCAN(MIN, CAST(DSL_U32, v), false));
	STORE(high, at, GROUP_SCAN(MAX, CAST(DSL_F32, v), false));
	struct ssa_func *f = dsl_finish(k, &e);
	if (!ok(f, "scans of a group are built %s", e.msg))
		return;
	for (uint32_t j = 0; j < N; j++)
		x.in[j] = (int32_t)(test_random(&seed) >> 32) / (int)(j + 1);
	call_buffer(&c, x.least, sizeof(x.least));
	call_buffer(&c, x.most, sizeof(x.most));
	call_buffer(&c, x.before, sizeof(x.before));
	call_buffer(&c, x.high, sizeof(x.high));
	call_buffer(&c, x.in, sizeof(x.in));
	both(f, &c, N / GROUP, check_scans, &x);
	ssa_func_free(f);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_numbers();
	test_refused();
	test_bytes();
	test_scans();
	cc_dev_close(&dev);
	return plan_done();
}
