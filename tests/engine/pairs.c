/*
 * Products of few tokens with weights and inputs of bf16 against sums in double
 * precision: rows and columns of any number, added or not, and of each token
 * the bits that it has alone.  What rounds inputs rounds to the nearest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu/gemm.h"
#include "engine/weights/weights.h"
#include "tests/tap.h"

enum { ROWS = 37, COLS = 1030, TOKENS = 16 };

static float value_of(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static uint16_t draw_bf16(uint64_t *seed)
{
	float f = (float)(int32_t)random_next(seed) * 0x1p-31f;
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return (uint16_t)(u >> 16);
}

struct sizes {
	uint32_t cols, r0, r1, n;
	bool add;
};

static struct {
	uint16_t w[ROWS * COLS], x[TOKENS * COLS];
	float y[TOKENS * ROWS], alone[TOKENS * ROWS];
} all;

/* How far a sum is off, over the sum of its products' sizes; 9: outside. */
static double error_of(const struct sizes *s, uint32_t t, uint32_t r)
{
	const float y = all.y[t * ROWS + r];
	double sum = s->add ? 3 : 0, size = fabs(sum);

	if (r < s->r0 || r >= s->r1 || t >= s->n)
		return y == 3 ? 0 : 9;
	for (uint32_t c = 0; c < s->cols; c++) {
		double v = (double)value_of(all.w[r * s->cols + c]) *
			   value_of(all.x[t * s->cols + c]);
		sum += v;
		size += fabs(v);
	}
	return fabs(y - sum) / size;
}

static void fill(float *y)
{
	for (int i = 0; i < TOKENS * ROWS; i++)
		y[i] = 3;
}

static void test_product(const struct qwen_kernels *k, const struct sizes *s)
{
	const struct qwen_matrix w = { QWEN_W_BF16, ROWS, s->cols, all.w,
				       NULL };
	double worst = 0;

	fill(all.y);
	fill(all.alone);
	k->product_pairs(&w, s->r0, s->r1, all.x, s->cols, s->n, all.y, ROWS,
			 s->add);
	for (uint32_t t = 0; t < s->n; t++)
		k->product_pairs(&w, s->r0, s->r1, all.x + t * s->cols, s->cols,
				 1, all.alone + t * ROWS, ROWS, s->add);
	for (uint32_t t = 0; t < TOKENS; t++)
		for (uint32_t r = 0; r < ROWS; r++)
			worst = fmax(worst, error_of(s, t, r));
	ok(worst < 1e-6 && !memcmp(all.y, all.alone, sizeof(all.y)),
	   "%u columns, rows %u to %u, %u tokens%s: error %.1e, and as alone",
	   s->cols, s->r0, s->r1, s->n, s->add ? ", added" : "", worst);
}

/* Of both neighbours the nearer; halfway the even one. */
static bool is_nearest(float x, uint16_t got)
{
	uint32_t u;

	if (isnan(x))
		return isnan(value_of(got));
	memcpy(&u, &x, sizeof(u));
	const uint16_t low = (uint16_t)(u >> 16), high = low + 1;
	if (isinf(x) || isinf(value_of(high)))
		return true; /* see below */
	const double d = fabs((double)x - value_of(low));
	const double e = fabs((double)x - value_of(high));
	return got == (d < e ? low : e < d ? high : low & 1 ? high : low);
}

static void test_narrow(const struct qwen_kernels *k, uint64_t *seed)
{
	enum { N = 10007 };
	static float x[N];
	static uint16_t h[N];
	uint32_t wrong = 0;

	for (int i = 0; i < N; i++) {
		uint32_t u = (uint32_t)random_next(seed);
		if (i % 3 == 0) /* halfway */
			u = (u & 0xffff0000) | 0x8000;
		memcpy(&x[i], &u, sizeof(u));
	}
	x[5] = INFINITY;
	x[6] = -INFINITY;
	x[7] = NAN;
	x[8] = 0x1.ffp127f; /* the nearest with one more bit is infinite */
	x[9] = 0x1.fep127f;
	k->narrow(QWEN_W_BF16, x, N, h);
	for (int i = 0; i < N; i++)
		wrong += !is_nearest(x[i], h[i]);
	ok(!wrong && h[5] == 0x7f80 && h[6] == 0xff80 && h[8] == 0x7f80 &&
		   h[9] == 0x7f7f,
	   "%s: %d values become the nearest of bf16, %u do not", k->name, N,
	   wrong);
}

int main(void)
{
	static const struct sizes sizes[] = {
		{ 64, 0, ROWS, 1, false },    { 64, 0, ROWS, 2, true },
		{ 1, 0, ROWS, 16, false },    { 31, 3, 4, 5, true },
		{ 33, 0, 36, 8, false },      { 96, 16, 32, 16, true },
		{ 1024, 0, ROWS, 3, false },  { 1024, 5, 30, 16, true },
		{ COLS, 0, ROWS, 15, false }, { COLS, 1, ROWS, 7, true },
	};
	uint64_t seed = 20;

	for (size_t i = 0; i < ARRAY_SIZE(all.w); i++)
		all.w[i] = draw_bf16(&seed);
	for (size_t i = 0; i < ARRAY_SIZE(all.x); i++)
		all.x[i] = draw_bf16(&seed);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		test_narrow(*k, &seed);
		if (!(*k)->product_pairs || !cpu_gemm_may(CPU_LEVEL_BF16))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			test_product(*k, &sizes[i]);
	}
	return plan_done();
}
