/*
 * Conversions of i64 and scans of groups: the interpreter and the soft device,
 * with and without optimisation, against the host's.
 */
#include <float.h>
#include <math.h>

#include "compiler/dsl.h"
#include "tests/cc-run.h"

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

		cc_options_init(&o);
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
	struct err e = { 0 };

	if (!cc_dev_open(&dev, true, &e)) {
		diag("%s", e.msg);
		return 1;
	}
	diag("seed %llu", (unsigned long long)seed);
	test_numbers();
	test_refused();
	test_scans();
	cc_dev_close(&dev);
	return plan_done();
}
