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

enum { N = 256, ROWS = 8, TOKENS = 700 };

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

/* A row as it was fitted. */
struct row {
	int8_t q[N];
	uint16_t half[N / 16];
	int step[N / 16];
	double scale[N]; /* of each column */
};

static struct row row_fit(const struct qwen_fit *f, const struct qwen_codes *c,
			  const float *x)
{
	struct row r = { { 0 }, { 0 }, { 0 }, { 0 } };

	qwen_fit_row(f, c, x, r.q, r.half, c->steps ? r.step : NULL);
	for (uint32_t i = 0; i < N; i++)
		r.scale[i] = c->steps ? float_value(r.half[i / 256], 5, 10) *
						r.step[i / c->run] :
					float_value(r.half[i / c->run], 5, 10);
	return r;
}

/* Codes that differ where columns are rounded and left one by one. */
static int count_wrong(double h[N][N], const float *x,
		       const struct qwen_codes *c, const struct row *r)
{
	const int8_t *q = r->q;
	static double v[N][N];
	double w[N];
	int wrong = 0;

	invert(h, v);
	for (int i = 0; i < N; i++)
		w[i] = x[i];
	for (int i = 0; i < N; i++) {
		double d = r->scale[i];
		double code =
			fmin(fmax(nearbyint(w[i] / d), c->least), c->most);
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

static double rounded_loss(double h[N][N], enum qwen_weights type,
			   const float *x)
{
	uint8_t block[N / 32 * 34];
	const struct qwen_matrix m = { type, 1, N, block, NULL };
	float y[N];

	qwen_pack_row(type, x, N, block);
	qwen_matrix_row(qwen_kernels_best(), &m, 0, y);
	return loss_of(h, x, y);
}

/* Losses at most a share of those of rounding. */
static void test_inputs(double share, double most_share, enum qwen_weights type)
{
	static double h[N][N];
	static float sums[N * N], other[N * N], x[N], y[N];
	const struct qwen_codes *c = qwen_codes_of(type);
	const char *name = qwen_weights_name(type);
	double fitted = 0, rounded = 0;
	uint64_t seed = 5;
	struct qwen_fit f, g;
	struct err e = { 0 };
	int wrong = 0, differ = 0;

	moments_make(share, &seed, h);
	if (!ok(fit_new(&f, h, 1, sums, &e) && fit_new(&g, h, 3, other, &e),
		"%g together: factors", share))
		return;
	for (int k = 0; k < ROWS; k++) {
		for (int i = 0; i < N; i++)
			x[i] = (float)random_normal(&seed);
		const struct row r = row_fit(&f, c, x), p = row_fit(&g, c, x);
		differ += memcmp(&r, &p, sizeof(r)) != 0;
		wrong += count_wrong(h, x, c, &r);
		for (int i = 0; i < N; i++)
			y[i] = (float)(r.q[i] * r.scale[i]);
		fitted += loss_of(h, x, y);
		rounded += rounded_loss(h, type, x);
	}
	is_u64((uint64_t)wrong, 0, "%g together, %s: codes of %d rows", share,
	       name, ROWS);
	is_u64((uint64_t)differ, 0, "%g: the same with three threads", share);
	ok(fitted <= most_share * rounded, "%g, %s: %.4g is lost, of %.4g",
	   share, name, fitted, rounded);
	qwen_fit_fini(&f);
	qwen_fit_fini(&g);
}

static void test_matrix(void)
{
	static const enum qwen_weights type[] = { QWEN_W_INT8, QWEN_W_INT4,
						  QWEN_W_Q8_0, QWEN_W_Q6_K,
						  QWEN_W_Q5_0, QWEN_W_Q4_0,
						  QWEN_W_Q3_K, QWEN_W_I6_64,
						  QWEN_W_I3_32 };
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
		to.type = type[k];
		ok(qwen_matrix_fit(&how, &to, &from, &f, "w", &e), "%s",
		   qwen_weights_name(to.type));
		for (uint32_t r = 0; r < ROWS; r++) {
			const struct row x =
				row_fit(&f, qwen_codes_of(to.type), w + r * N);
			qwen_matrix_row(how.kernels, &to, r, y);
			for (int i = 0; i < N; i++)
				off = fmax(off,
					   fabs(y[i] - x.q[i] * x.scale[i]));
		}
		ok(off < 1e-6, "its rows");
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

	test_inputs(0, 1.05, QWEN_W_Q4_0);
	test_inputs(0.7, 0.8, QWEN_W_Q4_0);
	test_inputs(0.95, 0.5, QWEN_W_Q4_0);
	test_inputs(0.7, 0.8, QWEN_W_Q8_0);
	test_inputs(0.7, 0.8, QWEN_W_Q6_K);
	test_inputs(0.7, 0.8, QWEN_W_Q5_0);
	test_inputs(0.7, 0.8, QWEN_W_Q3_K);
	test_inputs(0.7, 0.8, QWEN_W_I6_64);
	test_inputs(0.7, 0.8, QWEN_W_I3_32);
	test_matrix();
	ok(fit_new(&f, h, 2, sums, &e), "inputs that are all zero");
	const enum qwen_weights both[] = { QWEN_W_Q4_0, QWEN_W_Q6_K };
	for (int k = 0; k < 2; k++) {
		const struct row r = row_fit(&f, qwen_codes_of(both[k]), zero);
		ok(r.q[0] == 0 && r.q[N - 1] == 0 && !(r.half[0] & 0x7fff) &&
			   r.step[0] == 0,
		   "and weights");
	}
	qwen_fit_fini(&f);
	h[3][7] = INFINITY;
	h[3][3] = h[7][7] = 1;
	ok(!fit_new(&f, h, 2, sums, &e) && e.code == ERR_INPUT,
	   "infinite ones are refused");
	return plan_done();
}
