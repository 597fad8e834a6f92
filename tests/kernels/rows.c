/*
 * The kernels of the library that work on rows: odd lengths, one row, empty
 * rows, NaN and infinities, against double precision.
 */
#include <float.h>

#include "tests/ref/norm.h"

static uint64_t seed = 2510;
static struct cc_dev dev;

static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16 };
static const char *const type_name[] = { "f32", "f16", "bf16" };
static const size_t sizes[] = { 1, 2, 31, 32, 33, 127, 128, 129, 500, 1025,
				0 };
#define FULL (ARRAY_SIZE(sizes) - 1) /* without the empty one */
#define ROWS 3

/* One run of one kernel, with what it was given and what is wanted. */
struct run {
	struct arr out, x;
	size_t rows, n;
	double *want, *tol;
};

static struct run run_new(enum ssa_kind out, enum ssa_kind in, size_t rows,
			  size_t n, size_t results, double scale)
{
	return (struct run){ arr_stale(out, results),
			     arr_random(in, rows * n, scale, &seed), rows, n,
			     calloc(results + 1, sizeof(double)),
			     calloc(results + 1, sizeof(double)) };
}

static void run_fini(struct run *r)
{
	free(r->out.bits);
	free(r->x.bits);
	free(r->want);
	free(r->tol);
}

static double x_of(const struct run *r, size_t row, size_t i)
{
	return arr_get(&r->x, row * r->n + i);
}

/* The largest of a row, and the sum of e^(x - largest). */
static double row_sum(const struct run *r, size_t row, double *max)
{
	double sum = 0;

	*max = -INFINITY;
	for (size_t i = 0; i < r->n; i++)
		*max = isnan(x_of(r, row, i)) ? NAN :
			fmax(*max, x_of(r, row, i));
	for (size_t i = 0; i < r->n; i++)
		sum += exp(x_of(r, row, i) - *max);
	return sum;
}

static void test_softmax(const char *name, size_t t)
{
	bool log_form = strcmp(name, "log_softmax") == 0;
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, name, types[t], 0), "%s of %s compiles", name,
		type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		enum ssa_kind k = kind_of(types[t]);
		struct run r = run_new(k, k, ROWS, sizes[s], ROWS * sizes[s],
				       s % 2 ? 20 : 1);
		struct ssa_call c = { 0 };
		if (sizes[s] > 30) {
			arr_set(&r.x, 5, -INFINITY);
			arr_set(&r.x, sizes[s] + 7, NAN);
		}
		call_arr(&c, &r.out);
		call_arr(&c, &r.x);
		call_u32(&c, (uint32_t)sizes[s]);
		wrong += !lib_run(&dev, &l, &c, ROWS, 1);
		for (size_t row = 0; row < ROWS; row++) {
			double max, sum = row_sum(&r, row, &max);
			for (size_t i = 0; i < r.n; i++) {
				size_t at = row * r.n + i;
				double d = x_of(&r, row, i) - max;
				double want = log_form ? d - log(sum) :
							 exp(d) / sum;
				/* The arguments of e^x have an error of
				 * 2^-24 of their size; sums add like their
				 * square root. */
				double e = 0x1p-23 * (45 + sqrt(r.n));
				r.want[at] = want;
				r.tol[at] = (log_form ? e + 0x1p-22 * fabs(d) :
					     e * want + 0x1p-126) +
					.51 * ulp_of(k) *
						(isfinite(want) ? fabs(want) :
								  0) +
					step_of(k);
			}
		}
		wrong += judge(&r.out, r.want, r.tol);
		missed += r.n > 3 ? mutants_missed(&r.out, r.want, r.tol) : 0;
		run_fini(&r);
	}
	is_u64(wrong, 0, "%s of %s, %zu lengths", name, type_name[t],
	       ARRAY_SIZE(sizes));
	is_u64(missed, 0, "%s of %s: mutants are noticed", name, type_name[t]);
	lib_close(&l);
}

static void test_rms_norm(size_t t)
{
	enum ssa_kind k = kind_of(types[t]);
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "rms_norm", types[t], 0),
		"rms_norm of %s compiles", type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		size_t n = sizes[s];
		struct run r = run_new(k, k, ROWS, n, ROWS * n, 3);
		struct arr w = arr_random(k, n, 2, &seed);
		struct ssa_call c = { 0 };
		if (n > 30) {
			arr_set(&r.x, n + 3, NAN);
			arr_set(&r.x, 2 * n + 9, INFINITY);
		}
		call_arr(&c, &r.out);
		call_arr(&c, &r.x);
		call_arr(&c, &w);
		call_f32(&c, 1e-6f);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c, ROWS, 1);
		for (size_t at = 0; at < ROWS * n; at++) {
			double sum = 0;
			for (size_t i = 0; i < n; i++)
				sum += x_of(&r, at / n, i) *
				       x_of(&r, at / n, i);
			r.want[at] = arr_get(&r.x, at) /
				     sqrt(sum / (double)n + (double)1e-6f) *
				     arr_get(&w, at % n);
			r.tol[at] = fabs(r.want[at]) *
					    (.51 * ulp_of(k) +
					     0x1p-23 * (4 + sqrt(n))) +
				    step_of(k);
		}
		wrong += judge(&r.out, r.want, r.tol);
		missed += n > 3 ? mutants_missed(&r.out, r.want, r.tol) : 0;
		free(w.bits);
		run_fini(&r);
	}
	is_u64(wrong, 0, "rms_norm of %s", type_name[t]);
	is_u64(missed, 0, "rms_norm of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* Some rows, in an order of their own, of f32 to what products take. */
static void test_rms_norm_rows(enum dsl_type to)
{
	enum { PICKED = 5, N = 388 };
	const int32_t pick[PICKED] = { 2, 0, 2, 1, 0 };
	struct kernel_shape shape = { .type = DSL_F32, .to = to };
	const enum ssa_kind k = kind_of(to);
	struct run r = run_new(k, SSA_F32, ROWS, N, PICKED * N, 3);
	struct arr w = arr_random(SSA_F32, N, 2, &seed);
	struct arr rows = arr_new(SSA_I32, PICKED);
	struct ssa_call c = { 0 };
	struct lib l;

	if (!ok(lib_open_shape(&l, "rms_norm_rows", &shape),
		"rms_norm_rows to %s compiles", kernel_type_name(to)))
		return;
	memcpy(rows.bits, pick, sizeof(pick));
	call_arr(&c, &r.out);
	call_arr(&c, &r.x);
	call_arr(&c, &w);
	call_arr(&c, &rows);
	call_f32(&c, 1e-6f);
	call_u32(&c, N);
	ok(lib_run(&dev, &l, &c, PICKED, 1), "and runs");
	for (size_t at = 0; at < PICKED * N; at++) {
		const size_t from = (size_t)pick[at / N];
		double sum = 0;

		for (size_t i = 0; i < N; i++)
			sum += x_of(&r, from, i) * x_of(&r, from, i);
		r.want[at] = x_of(&r, from, at % N) /
			     sqrt(sum / N + (double)1e-6f) *
			     arr_get(&w, at % N);
		r.tol[at] = fabs(r.want[at]) * (.51 * ulp_of(k) + 0x1p-19) +
			    step_of(k);
	}
	is_u64(judge(&r.out, r.want, r.tol), 0, "rms_norm_rows to %s",
	       kernel_type_name(to));
	is_u64(mutants_missed(&r.out, r.want, r.tol), 0, "mutants are noticed");
	free(w.bits);
	free(rows.bits);
	run_fini(&r);
	lib_close(&l);
}

/* sum of g y(x) with y = rms_norm: what the gradients are of. */
static double norm_loss(const double *x, const double *w, const double *g,
			size_t n)
{
	double sum = 0, loss = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (size_t i = 0; i < n; i++)
		loss += g[i] * w[i] * x[i] / sqrt(sum / (double)n + 1e-6);
	return loss;
}

/* The reference itself: its gradients are slopes of the loss. */
static void test_reference(void)
{
	enum { N = 20 };
	struct arr x = arr_random(SSA_F32, N, 2, &seed);
	struct arr w = arr_random(SSA_F32, N, 1, &seed);
	struct arr g = arr_random(SSA_F32, N, 1, &seed);
	double v[4][N] = { { 0 } }, at[3][N], h = 1e-4;
	int wrong = 0;

	for (size_t i = 0; i < N; i++) {
		at[0][i] = arr_get(&x, i);
		at[1][i] = arr_get(&w, i);
		at[2][i] = arr_get(&g, i);
	}
	norm_back_want(&x, &w, &g, 1, N, v[0], v[1], v[2], v[3]);
	for (int i = 0; i < 2 * N; i++) {
		double *p = &at[i / N][i % N], was = *p, d;
		*p = was + h;
		d = norm_loss(at[0], at[1], at[2], N);
		*p = was - h;
		d -= norm_loss(at[0], at[1], at[2], N);
		*p = was;
		/* The third derivative's part is below h^2. */
		wrong += fabs(d / (2 * h) - v[i / N * 2][i % N]) > 3 * h * h;
	}
	is_u64((uint64_t)wrong, 0, "the reference's gradients are slopes");
	free(x.bits);
	free(w.bits);
	free(g.bits);
}

static void test_rms_norm_back(size_t t)
{
	enum ssa_kind k = kind_of(types[t]);
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "rms_norm_back", types[t], 0),
		"rms_norm_back of %s compiles", type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		size_t n = sizes[s], all = ROWS * n;
		struct run r = run_new(k, k, ROWS, n, all, 2);
		struct arr w = arr_random(k, n, 1, &seed);
		struct arr g = arr_random(k, all, 1, &seed);
		struct arr dw = arr_new(SSA_F32, n);
		double *ww = calloc(n + 1, sizeof(*ww));
		double *wt = calloc(n + 1, sizeof(*wt));
		struct ssa_call c = { 0 };
		if (n > 128)
			arr_set(&r.x, 2 * n, NAN);
		call_arr(&c, &r.out);
		call_arr(&c, &dw);
		call_arr(&c, &r.x);
		call_arr(&c, &w);
		call_arr(&c, &g);
		call_f32(&c, 1e-6f);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c, ROWS, 1);
		norm_back_want(&r.x, &w, &g, ROWS, n, r.want, r.tol, ww, wt);
		for (size_t i = 0; i < all; i++)
			r.tol[i] += .51 * ulp_of(k) * fabs(r.want[i]) +
				    step_of(k);
		wrong += judge(&r.out, r.want, r.tol) + judge(&dw, ww, wt);
		missed += n > 3 ? mutants_missed(&r.out, r.want, r.tol) : 0;
		missed += n > 3 && n < 129 ? mutants_missed(&dw, ww, wt) : 0;
		free(w.bits);
		free(g.bits);
		free(dw.bits);
		free(ww);
		free(wt);
		run_fini(&r);
	}
	is_u64(wrong, 0, "rms_norm_back of %s", type_name[t]);
	is_u64(missed, 0, "rms_norm_back of %s: mutants are noticed",
	       type_name[t]);
	lib_close(&l);
}

static void test_cross_entropy(size_t t)
{
	enum ssa_kind k = kind_of(types[t]);
	size_t wrong = 0, missed = 0;
	struct lib f, b;

	if (!ok(lib_open(&f, "cross_entropy", types[t], 0) &&
		lib_open(&b, "cross_entropy_back", types[t], 0),
		"cross_entropy of %s and its gradient compile", type_name[t]))
		return;
	for (size_t s = 0; s < FULL; s++) {
		size_t n = sizes[s];
		struct run r = run_new(k, k, ROWS, n, ROWS * n, 8);
		struct arr loss = arr_stale(SSA_F32, ROWS);
		struct arr target = arr_new(SSA_I32, ROWS);
		double lw[ROWS], lt[ROWS];
		struct ssa_call c = { 0 }, d = { 0 };
		for (size_t i = 0; i < ROWS; i++)
			arr_set(&target, i, (double)(test_random(&seed) % n));
		if (n > 30) {
			size_t hit = (size_t)arr_get(&target, 0);
			arr_set(&r.x, hit ? 0 : 1, -INFINITY);
			arr_set(&r.x, n + 1, NAN);
			arr_set(&r.x, 2 * n + 1, INFINITY);
		}
		call_arr(&c, &loss);
		call_arr(&c, &r.x);
		call_arr(&c, &target);
		call_u32(&c, (uint32_t)n);
		call_arr(&d, &r.out);
		call_arr(&d, &r.x);
		call_arr(&d, &target);
		call_f32(&d, .5f);
		call_u32(&d, (uint32_t)n);
		wrong += !lib_run(&dev, &f, &c, ROWS, 1) +
			 !lib_run(&dev, &b, &d, ROWS, 1);
		for (size_t row = 0; row < ROWS; row++) {
			double max, sum = row_sum(&r, row, &max);
			size_t hit = (size_t)arr_get(&target, row);
			lw[row] = log(sum) + max - x_of(&r, row, hit);
			lt[row] = 0x1p-23 * (60 + sqrt(n));
			for (size_t i = 0; i < n; i++) {
				size_t at = row * n + i;
				double p = exp(x_of(&r, row, i) - max) / sum;
				r.want[at] = .5 * (p - (i == hit));
				r.tol[at] = 0x1p-23 * (30 + sqrt(n)) * p +
					    0x1p-24 * (i == hit) + step_of(k) +
					    .51 * ulp_of(k) * fabs(r.want[at]);
			}
		}
		wrong += judge(&loss, lw, lt) + judge(&r.out, r.want, r.tol);
		missed += n > 3 ? mutants_missed(&r.out, r.want, r.tol) : 0;
		free(loss.bits);
		free(target.bits);
		run_fini(&r);
	}
	is_u64(wrong, 0, "cross_entropy of %s and its gradient",
	       type_name[t]);
	is_u64(missed, 0, "cross_entropy_back of %s: mutants are noticed",
	       type_name[t]);
	lib_close(&f);
	lib_close(&b);
}

static void test_reduce(const char *name, size_t t)
{
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, name, types[t], 0), "%s of %s compiles", name,
		type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		size_t n = sizes[s];
		bool arg = strcmp(name, "argmax") == 0;
		struct run r = run_new(arg ? SSA_I32 : SSA_F32,
				       kind_of(types[t]), ROWS, n, ROWS, 9);
		struct ssa_call c = { 0 };
		if (n > 30) { /* equal ones: the first counts */
			arr_set(&r.x, 20, 9.5);
			arr_set(&r.x, 25, 9.5);
			arr_set(&r.x, strcmp(name, "row_sum") ? 3 : n + 3, NAN);
			arr_set(&r.x, 2 * n + 4, INFINITY);
		}
		call_arr(&c, &r.out);
		call_arr(&c, &r.x);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c, ROWS, 1);
		for (size_t row = 0; row < ROWS; row++) {
			double sum = 0, size = 0, max = -INFINITY,
			       min = INFINITY, at = 0;
			for (size_t i = 0; i < n; i++) {
				double v = x_of(&r, row, i);
				sum += v;
				size += fabs(v);
				at = v > max ? (double)i : at;
				max = fmax(max, v);
				min = fmin(min, v);
			}
			r.want[row] = arg ? at : name[4] == 's' ? sum :
				      name[5] == 'a' ? max : min;
			r.tol[row] = name[4] == 's' && !arg ?
				0x1p-24 * (2 + sqrt(n)) * size : 0;
		}
		wrong += judge(&r.out, r.want, r.tol);
		missed += n > 3 ? mutants_missed(&r.out, r.want, r.tol) : 0;
		run_fini(&r);
	}
	is_u64(wrong, 0, "%s of %s", name, type_name[t]);
	is_u64(missed, 0, "%s of %s: mutants are noticed", name, type_name[t]);
	lib_close(&l);
}

int main(void)
{
	static const char *const reduce[] = { "row_sum", "row_max", "row_min",
					      "argmax" };

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_rms_norm_rows(DSL_F16);
	test_rms_norm_rows(DSL_BF16);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		test_softmax("softmax", t);
		test_softmax("log_softmax", t);
		test_rms_norm(t);
		test_rms_norm_back(t);
		test_cross_entropy(t);
		for (size_t i = 0; i < ARRAY_SIZE(reduce); i++)
			test_reduce(reduce[i], t);
	}
	test_reference();
	cc_dev_close(&dev);
	return plan_done();
}
