/*
 * Integers fitted to inputs: the codes are those of optimal brain quantization,
 * here in double with the inverse of the inputs' products written out, for the
 * scales that were chosen; and less is lost than by rounding.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float.h"
#include "engine/weights/weights.h"
#include "tests/tap.h"

enum { N = 96, ROWS = 24, TOKENS = 400 };

static double random_normal(uint64_t *seed)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += (double)(random_next(seed) >> 11) * 0x1p-53;
	return sum - 6;
}

/* Inputs of which neighbours go together by `share`; sums of products. */
static void moments_make(double share, uint64_t *seed, double h[N][N])
{
	memset(h, 0, sizeof(double[N][N]));
	for (int t = 0; t < TOKENS; t++) {
		double x[N], before = 0;
		for (int i = 0; i < N; i++) {
			before = share * before +
				 sqrt(1 - share * share) * random_normal(seed);
			x[i] = before * (1 + i % 5);
		}
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				h[i][j] += x[i] * x[j];
	}
}

static bool fit_new(struct qwen_fit *f, double h[N][N], unsigned threads,
		    float *sums, struct err *e)
{
	struct threads *t = threads_new(threads, e);

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) /* below is never looked at */
			sums[i * N + j] = j < i ? NAN : (float)h[i][j];
	bool ok = t && qwen_fit_init(f, sums, N, t, e);
	threads_free(t);
	return ok;
}

/* H with a hundredth of its mean diagonal, inverted by elimination. */
static void invert(double h[N][N], double v[N][N])
{
	static double a[N][N];
	double mean = 0;

	for (int i = 0; i < N; i++)
		mean += h[i][i] / N;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = h[i][j] + (i == j ? 0.01 * mean : 0);
			v[i][j] = i == j;
		}
	for (int i = 0; i < N; i++) {
		double by = a[i][i];
		for (int j = 0; j < N; j++) {
			a[i][j] /= by;
			v[i][j] /= by;
		}
		for (int k = 0; k < N; k++) {
			double c = k == i ? 0 : a[k][i];
			for (int j = 0; j < N; j++) {
				a[k][j] -= c * a[i][j];
				v[k][j] -= c * v[i][j];
			}
		}
	}
}

/* Codes that differ where columns are rounded and left one by one. */
static int count_wrong(double h[N][N], const float *x, const uint16_t *scale,
		       int least, int most, const int8_t *q)
{
	static double v[N][N];
	double w[N];
	int wrong = 0;

	invert(h, v);
	for (int i = 0; i < N; i++)
		w[i] = x[i];
	for (int i = 0; i < N; i++) {
		double d = float_value(scale[i / 32], 5, 10);
		double code = fmin(fmax(nearbyint(w[i] / d), least), most);
		/* Halves may go either way; what follows is then another. */
		if (fabs(fabs(w[i] / d - q[i]) - 0.5) < 1e-3)
			code = q[i];
		wrong += code != q[i];
		double off = (w[i] - d * q[i]) / v[i][i];
		for (int j = i + 1; j < N; j++)
			w[j] -= off * v[i][j];
		for (int k = i + 1; k < N; k++)
			for (int j = i + 1; j < N; j++)
				v[k][j] -= v[k][i] * v[i][j] / v[i][i];
	}
	return wrong;
}

static double loss_of(double h[N][N], const float *x, const float *as)
{
	double sum = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			sum += (x[i] - as[i]) * h[i][j] * (x[j] - as[j]);
	return sum;
}

static double rounded_loss(double h[N][N], const float *x)
{
	uint8_t block[N / 32 * 18];
	const struct qwen_matrix m = { QWEN_W_Q4_0, 1, N, block, NULL };
	float y[N];

	qwen_pack_row(QWEN_W_Q4_0, x, N, block);
	qwen_matrix_row(qwen_kernels_best(), &m, 0, y);
	return loss_of(h, x, y);
}

/* Losses at most `most` of those of rounding. */
static void test_inputs(double share, double most_share, int least, int most)
{
	static double h[N][N];
	static float sums[N * N], other[N * N], x[N], y[N];
	double fitted = 0, rounded = 0;
	uint64_t seed = 5;
	struct qwen_fit f, g;
	struct err e = { 0 };
	int wrong = 0, differ = 0;

	moments_make(share, &seed, h);
	if (!ok(fit_new(&f, h, 1, sums, &e) && fit_new(&g, h, 3, other, &e),
		"%g together: factors", share))
		return;
	for (int r = 0; r < ROWS; r++) {
		int8_t q[N], p[N];
		uint16_t scale[N / 32], as[N / 32];
		for (int i = 0; i < N; i++)
			x[i] = (float)random_normal(&seed);
		qwen_fit_row(&f, least, most, x, q, scale);
		qwen_fit_row(&g, least, most, x, p, as);
		differ += memcmp(q, p, sizeof(q)) != 0 ||
			  memcmp(scale, as, sizeof(as)) != 0;
		wrong += count_wrong(h, x, scale, least, most, q);
		for (int i = 0; i < N; i++)
			y[i] = (float)(q[i] *
				       float_value(scale[i / 32], 5, 10));
		fitted += loss_of(h, x, y);
		rounded += rounded_loss(h, x);
	}
	is_u64((uint64_t)wrong, 0, "%g together, %d .. %d: codes of %d rows",
	       share, least, most, ROWS);
	is_u64((uint64_t)differ, 0, "%g: the same with three threads", share);
	ok(fitted <= most_share * rounded, "%g: %.4g is lost, of %.4g", share,
	   fitted, rounded);
	qwen_fit_fini(&f);
	qwen_fit_fini(&g);
}

static void test_matrix(void)
{
	static const struct {
		enum qwen_weights as;
		int least, most;
	} type[] = { { QWEN_W_INT8, -127, 127 },
		     { QWEN_W_INT4, -8, 7 },
		     { QWEN_W_Q8_0, -127, 127 },
		     { QWEN_W_Q5_0, -16, 15 },
		     { QWEN_W_Q4_0, -8, 7 } };
	static float w[ROWS * N], sums[N * N], y[N];
	static double h[N][N];
	struct err e = { 0 };
	struct threads *t = threads_new(2, &e);
	struct qwen_blocks blocks = { 0 };
	const struct qwen_convert how = { .kernels = qwen_kernels_best(),
					  .threads = t,
					  .blocks = &blocks };
	const struct qwen_matrix from = { QWEN_W_F32, ROWS, N, w, NULL };
	uint64_t seed = 9;
	struct qwen_fit f;

	moments_make(0.5, &seed, h);
	for (int i = 0; i < ROWS * N; i++)
		w[i] = (float)random_normal(&seed);
	ok(fit_new(&f, h, 1, sums, &e), "factors");
	for (size_t k = 0; k < ARRAY_SIZE(type); k++) {
		struct qwen_matrix to = from;
		double off = 0;
		to.type = type[k].as;
		ok(qwen_matrix_fit(&how, &to, &from, &f, "w", &e), "%s",
		   qwen_weights_name(to.type));
		for (uint32_t r = 0; r < ROWS; r++) {
			int8_t q[N];
			uint16_t scale[N / 32];
			qwen_matrix_row(how.kernels, &to, r, y);
			qwen_fit_row(&f, type[k].least, type[k].most, w + r * N,
				     q, scale);
			for (int i = 0; i < N; i++)
				off = fmax(
					off,
					fabs(y[i] -
					     q[i] * float_value(scale[i / 32],
								5, 10)));
		}
		ok(off == 0, "its rows");
	}
	struct qwen_matrix to = from;
	to.type = QWEN_W_IQ4_NL;
	ok(!qwen_matrix_fit(&how, &to, &from, &f, "w", &e) &&
		   e.code == ERR_UNSUPPORTED,
	   "uneven codes are refused");
	qwen_fit_fini(&f);
	qwen_blocks_fini(&blocks);
	threads_free(t);
}

int main(void)
{
	static double h[N][N];
	static float sums[N * N];
	struct qwen_fit f;
	struct err e = { 0 };
	float zero[N] = { 0 };
	uint16_t scale[N / 32];
	int8_t q[N];

	test_inputs(0, 1.05, -8, 7);
	test_inputs(0.7, 0.8, -8, 7);
	test_inputs(0.95, 0.5, -8, 7);
	test_inputs(0.7, 0.01, -127, 127);
	test_matrix();
	ok(fit_new(&f, h, 2, sums, &e), "inputs that are all zero");
	qwen_fit_row(&f, -8, 7, zero, q, scale);
	ok(q[0] == 0 && q[N - 1] == 0 && !(scale[0] & 0x7fff), "and weights");
	qwen_fit_fini(&f);
	h[3][7] = INFINITY;
	h[3][3] = h[7][7] = 1;
	ok(!fit_new(&f, h, 2, sums, &e) && e.code == ERR_INPUT,
	   "infinite ones are refused");
	return plan_done();
}
