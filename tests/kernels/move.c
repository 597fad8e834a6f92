/*
 * Masks, embeddings, transposition, rotary embedding and matrix times vector:
 * exact where nothing is rounded, else against double precision.
 */
#include "tests/kernels/kernel-run.h"

static uint64_t seed = 2520;
static struct cc_dev dev;

static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16 };
static const char *const type_name[] = { "f32", "f16", "bf16" };

static size_t differs(const struct arr *got, const double *want)
{
	double *none = calloc(got->n + 1, sizeof(*none));
	size_t wrong = judge(got, want, none);

	free(none);
	return wrong;
}

static size_t exact_missed(const struct arr *good, const double *want)
{
	double *none = calloc(good->n + 1, sizeof(*none));
	size_t missed = good->n > 3 ? mutants_missed(good, want, none) : 0;

	free(none);
	return missed;
}

static bool opened(struct lib *l, const char *name, size_t t)
{
	return ok(lib_open(l, name, types[t], 0), "%s of %s compiles", name,
		  type_name[t]);
}

static void test_mask(size_t t)
{
	static const uint32_t shape[][3] = { /* queries, keys, offset */
		{ 1, 1, 0 }, { 3, 3, 0 }, { 5, 7, 2 }, { 33, 33, 0 },
		{ 4, 130, 126 }, { 2, 129, 0 }, { 1, 300, 7 }, { 31, 32, 1 },
		{ 6, 128, 128 }, { 40, 5, 0 }, { 3, 0, 0 },
	};
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!opened(&l, "causal_mask", t))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t q = shape[s][0], n = shape[s][1], rows = 2 * q;
		struct arr x =
			arr_random(kind_of(types[t]), rows * n, 1, &seed);
		struct arr out = arr_stale(kind_of(types[t]), rows * n);
		double *want = calloc(rows * n + 1, sizeof(*want));
		struct ssa_call c = { 0 };
		if (rows * n > 30) {
			arr_set(&x, 0, NAN);
			arr_set(&x, n, INFINITY);
		}
		call_arr(&c, &out);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)q);
		call_u32(&c, shape[s][2]);
		wrong += !lib_run(&dev, &l, &c, rows, 1);
		for (size_t i = 0; i < rows * n; i++)
			want[i] = i % n > i / n % q + shape[s][2] ?
					  -INFINITY : arr_get(&x, i);
		wrong += differs(&out, want);
		missed += exact_missed(&out, want);
		free(x.bits);
		free(out.bits);
		free(want);
	}
	is_u64(wrong, 0, "causal_mask of %s", type_name[t]);
	is_u64(missed, 0, "causal_mask of %s: mutants are noticed",
	       type_name[t]);
	lib_close(&l);
}

static void test_embed(size_t t)
{
	enum { VOCAB = 11, ROWS = 9 };
	static const size_t length[] = { 1,   2,   5,	31,  32, 33,
					 127, 128, 131, 300, 0 };
	static const int id[ROWS] = { 0, 10, 3, 3, -1, 11, 5, 3, 1000000 };
	size_t wrong = 0, missed = 0;
	struct lib f, b;

	if (!opened(&f, "embed", t) || !opened(&b, "embed_back", t))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(length); s++) {
		size_t n = length[s];
		struct arr table = arr_random(kind_of(types[t]), VOCAB * n, 1,
					      &seed);
		struct arr out = arr_stale(kind_of(types[t]), ROWS * n);
		struct arr grad = arr_new(kind_of(types[t]), ROWS * n);
		struct arr sum = arr_new(SSA_F32, VOCAB * n);
		struct arr ids = arr_new(SSA_I32, ROWS);
		double *want = calloc(ROWS * n + 1, sizeof(*want));
		double *added = calloc(VOCAB * n + 1, sizeof(*added));
		struct ssa_call c = { 0 }, d = { 0 };
		if (n > 30) {
			arr_set(&table, 3 * n, NAN);
			arr_set(&table, 5 * n + 1, -INFINITY);
		}
		for (size_t i = 0; i < ROWS; i++)
			arr_set(&ids, i, id[i]);
		call_arr(&c, &out);
		call_arr(&c, &table);
		call_arr(&c, &ids);
		call_u32(&c, VOCAB);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &f, &c, ROWS, 1);
		for (size_t i = 0; i < ROWS * n; i++) {
			int which = id[i / n];
			bool there = which >= 0 && which < VOCAB;
			size_t at = there ? (size_t)which * n + i % n : 0;
			want[i] = there ? arr_get(&table, at) : 0;
			/* Multiples of 1/64: their sums are exact. */
			arr_set(&grad, i, n > 30 && i == 7 * n ? INFINITY :
				(double)(test_random(&seed) % 64) / 64);
			if (there)
				added[at] += arr_get(&grad, i);
		}
		wrong += differs(&out, want);
		missed += exact_missed(&out, want);
		call_arr(&d, &sum);
		call_arr(&d, &grad);
		call_arr(&d, &ids);
		call_u32(&d, VOCAB);
		call_u32(&d, (uint32_t)n);
		wrong += !lib_run(&dev, &b, &d, ROWS, 1) + differs(&sum, added);
		missed += exact_missed(&sum, added);
		struct arr *all[] = { &table, &out, &sum, &ids, &grad };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(want);
		free(added);
	}
	is_u64(wrong, 0, "embed and embed_back of %s, ids out of range too",
	       type_name[t]);
	is_u64(missed, 0, "and mutants are noticed");
	lib_close(&f);
	lib_close(&b);
}

static void test_transpose(size_t t)
{
	static const size_t shape[][2] = { { 1, 1 }, { 1, 40 }, { 40, 1 },
		{ 32, 32 }, { 33, 31 }, { 64, 96 }, { 5, 7 }, { 100, 37 },
		{ 31, 65 }, { 2, 200 }, { 0, 5 },
		{ 5, 0 } };
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!opened(&l, "transpose", t))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t m = shape[s][0], n = shape[s][1];
		struct arr x = arr_random(kind_of(types[t]), m * n, 1, &seed);
		struct arr out = arr_stale(kind_of(types[t]), m * n);
		double *want = calloc(m * n + 1, sizeof(*want));
		double *none = calloc(m * n + 1, sizeof(*none));
		struct ssa_call c = { 0 };
		if (m * n > 30) {
			arr_set(&x, 9, NAN);
			arr_set(&x, 17, INFINITY);
		}
		call_arr(&c, &out);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)m);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, n),
				  kernel_groups(l.entry, &l.shape, m));
		for (size_t i = 0; i < m * n; i++)
			want[i % n * m + i / n] = arr_get(&x, i);
		wrong += judge(&out, want, none);
		missed += mutants_missed(&out, want, none);
		free(x.bits);
		free(out.bits);
		free(want);
		free(none);
	}
	is_u64(wrong, 0, "transpose of %s", type_name[t]);
	is_u64(missed, 0, "transpose of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* Forward, then backward, which gives the input again. */
static void test_rope(const char *name, size_t t)
{
	enum { TOKENS = 5, HEADS = 3, ROWS = TOKENS * HEADS, POSITIONS = 20 };
	static const size_t length[] = { 2,  4,   8,   30,  32, 62,
					 64, 66, 128, 130, 256, 0 };
	enum ssa_kind k = kind_of(types[t]);
	bool pairs = strcmp(name, "rope_pairs") == 0;
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!opened(&l, name, t))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(length); s++) {
		size_t n = length[s], half = n / 2;
		struct arr x = arr_random(k, ROWS * n, 1, &seed);
		struct arr out = arr_stale(k, ROWS * n);
		struct arr in = arr_new(k, ROWS * n);
		struct arr cosine = arr_new(SSA_F32, POSITIONS * half);
		struct arr sine = arr_new(SSA_F32, POSITIONS * half);
		struct arr place = arr_new(SSA_I32, TOKENS);
		double *want = calloc(ROWS * n + 1, sizeof(*want));
		double *tol = calloc(ROWS * n + 1, sizeof(*tol));
		if (n > 30) { /* both of a pair, so that they stay theirs */
			arr_set(&x, n, NAN);
			arr_set(&x, n + (pairs ? 1 : half), NAN);
			arr_set(&x, 2 * n, INFINITY);
			arr_set(&x, 2 * n + (pairs ? 1 : half), NAN);
		}
		for (size_t i = 0; i < POSITIONS * half; i++) {
			double a = (double)(i / half) *
				   pow(1e4, -2.0 * (double)(i % half) /
						    (double)n);
			arr_set(&cosine, i, cos(a));
			arr_set(&sine, i, sin(a));
		}
		for (size_t i = 0; i < TOKENS; i++)
			arr_set(&place, i, (double)(i * 4));
		for (int turn = 1; turn >= -1; turn -= 2) {
			struct ssa_call c = { 0 };
			memcpy(in.bits, turn > 0 ? x.bits : out.bits,
			       in.n * arr_bytes(&in));
			call_arr(&c, &out);
			call_arr(&c, &in);
			call_arr(&c, &cosine);
			call_arr(&c, &sine);
			call_arr(&c, &place);
			call_u32(&c, HEADS);
			call_u32(&c, (uint32_t)n);
			call_u32(&c, ROWS);
			call_f32(&c, (float)turn);
			wrong += !lib_run(&dev, &l, &c,
				kernel_groups(l.entry, &l.shape, ROWS), 1);
			for (size_t i = 0; i < ROWS * n; i++) {
				size_t row = i / n, at = i % n;
				size_t pair = pairs ? at / 2 : at % half;
				size_t a = row * n + (pairs ? 2 * pair : pair);
				size_t b = pairs ? a + 1 : a + half;
				double angle = 4.0 * (double)(row / HEADS) *
					pow(1e4, -2.0 * (double)pair /
							 (double)n);
				double xa = arr_get(&x, a), xb = arr_get(&x, b);
				double turned = i == a ?
					xa * cos(angle) - xb * sin(angle) :
					xb * cos(angle) + xa * sin(angle);
				want[i] = turn > 0 ? turned :
					  isnan(xa) || isnan(xb) ? NAN :
					  arr_get(&x, i);
				tol[i] = (turn > 0 ? .6 : 1.6) * ulp_of(k) *
						 (fabs(xa) + fabs(xb)) +
					 4e-7 * (fabs(xa) + fabs(xb)) +
					 step_of(k);
			}
			wrong += judge(&out, want, tol);
			missed += turn > 0 ? mutants_missed(&out, want, tol) :
					     0;
		}
		struct arr *all[] = { &x, &in, &out, &cosine, &sine, &place };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(want);
		free(tol);
	}
	is_u64(wrong, 0, "%s of %s, forward and back", name, type_name[t]);
	is_u64(missed, 0, "%s of %s: mutants are noticed", name, type_name[t]);
	lib_close(&l);
}

/* y = W x by the weights' values, with a bound from the terms' sizes. */
static void gemv_judge(const struct arr *y, const double *w,
		       const struct arr *x, size_t rows, size_t n,
		       size_t *wrong, size_t *missed)
{
	double *want = calloc(rows + 1, sizeof(*want));
	double *tol = calloc(rows + 1, sizeof(*tol));

	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < n; i++) {
			double p = w[r * n + i] * arr_get(x, i);
			want[r] += p;
			tol[r] += 0x1p-23 * fabs(p);
		}
	for (size_t r = 0; r < rows; r++)
		tol[r] *= 1 + sqrt(n) / 8;
	*wrong += judge(y, want, tol);
	*missed += rows > 3 ? mutants_missed(y, want, tol) : 0;
	free(want);
	free(tol);
}

static void test_gemv(size_t t)
{
	static const size_t shape[][2] = { { 1, 1 }, { 1, 3 }, { 2, 4 },
		{ 3, 127 }, { 4, 128 }, { 5, 129 }, { 7, 500 }, { 16, 1024 },
		{ 9, 1027 }, { 33, 64 }, { 5, 0 } };
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!opened(&l, "gemv", t))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t rows = shape[s][0], n = shape[s][1];
		struct arr w =
			arr_random(kind_of(types[t]), rows * n, 1, &seed);
		struct arr x = arr_random(SSA_F32, n, 1, &seed);
		struct arr y = arr_stale(SSA_F32, rows);
		double *wv = calloc(rows * n + 1, sizeof(*wv));
		struct ssa_call c = { 0 };
		if (rows > 6 && n)
			arr_set(&w, 5 * n + 1, rows == 7 ? NAN : INFINITY);
		for (size_t i = 0; i < rows * n; i++)
			wv[i] = arr_get(&w, i);
		call_arr(&c, &y);
		call_arr(&c, &w);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		gemv_judge(&y, wv, &x, rows, n, &wrong, &missed);
		struct arr *all[] = { &w, &x, &y };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(wv);
	}
	is_u64(wrong, 0, "gemv of %s", type_name[t]);
	is_u64(missed, 0, "gemv of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

static void test_gemv_int(const char *name, bool four)
{
	static const size_t shape[][2] = { { 1, 32 }, { 2, 64 }, { 3, 96 },
		{ 4, 128 }, { 5, 160 }, { 7, 512 }, { 9, 1024 }, { 6, 1056 },
		{ 33, 64 }, { 5, 0 } };
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, name, DSL_F32, 0), "%s compiles", name))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t rows = shape[s][0], n = shape[s][1], groups = n / 32;
		struct arr w = arr_new(SSA_I8, rows * n / (four ? 2 : 1));
		struct arr scale = arr_random(SSA_F16, rows * groups, 1, &seed);
		struct arr x = arr_random(SSA_F32, n, 1, &seed);
		struct arr y = arr_stale(SSA_F32, rows);
		double *wv = calloc(rows * n + 1, sizeof(*wv));
		struct ssa_call c = { 0 };
		for (size_t i = 0; i < w.n; i++)
			w.bits[i] = (uint8_t)test_random(&seed);
		if (rows > 6)
			arr_set(&scale, 5 * groups, rows == 7 ? NAN : INFINITY);
		for (size_t i = 0; i < rows * n; i++) {
			size_t g = i / 32, k = i % 32;
			uint8_t b = w.bits[four ? g * 16 + k % 16 : i];
			int q = !four ? (int8_t)b : (k < 16 ? b & 15 : b >> 4) -
							    8;
			wv[i] = q * arr_get(&scale, g);
		}
		call_arr(&c, &y);
		call_arr(&c, &w);
		call_arr(&c, &scale);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		gemv_judge(&y, wv, &x, rows, n, &wrong, &missed);
		struct arr *all[] = { &w, &scale, &x, &y };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(wv);
	}
	is_u64(wrong, 0, "%s", name);
	is_u64(missed, 0, "%s: mutants are noticed", name);
	lib_close(&l);
}

/* Codes in planes of bits, read one by one. */
static unsigned bits_at(const struct arr *a, size_t first, unsigned n)
{
	unsigned v = 0;

	for (unsigned j = 0; j < n; j++)
		v |= (unsigned)(a->bits[(first + j) / 8] >> (first + j) % 8 & 1)
		     << j;
	return v;
}

static void test_gemv_own(const char *name, bool six)
{
	static const size_t shape[][3] = { { 1, 32, 5 }, { 2, 64, 6 },
		{ 3, 96, 5 }, { 5, 128, 7 }, { 7, 512, 8 }, { 9, 1024, 6 },
		{ 6, 1056, 5 }, { 33, 256, 7 }, { 5, 0, 5 } };
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, name, DSL_F32, 0), "%s compiles", name))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t rows = shape[s][0], n = shape[s][1];
		size_t groups = n >> shape[s][2];
		struct arr low = arr_new(SSA_I8, rows * n / (six ? 2 : 4));
		struct arr high = arr_new(SSA_I8, rows * n / (six ? 4 : 8));
		struct arr scale = arr_random(SSA_F16, rows * groups, 1, &seed);
		struct arr x = arr_random(SSA_F32, n, 1, &seed);
		struct arr y = arr_stale(SSA_F32, rows);
		double *wv = calloc(rows * n + 1, sizeof(*wv));
		struct ssa_call c = { 0 };

		for (size_t i = 0; i < low.n; i++)
			low.bits[i] = (uint8_t)test_random(&seed);
		for (size_t i = 0; i < high.n; i++)
			high.bits[i] = (uint8_t)test_random(&seed);
		if (rows > 6)
			arr_set(&scale, 5 * groups, rows == 7 ? NAN : INFINITY);
		for (size_t i = 0; i < rows * n; i++) {
			unsigned code = six ? bits_at(&low, 4 * i, 4) |
					      bits_at(&high, 2 * i, 2) << 4 :
					      bits_at(&low, 2 * i, 2) |
					      bits_at(&high, i, 1) << 2;
			wv[i] = ((int)code - (six ? 32 : 4)) *
				arr_get(&scale, i >> shape[s][2]);
		}
		struct arr *all[] = { &y, &low, &high, &scale, &x };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			call_arr(&c, all[i]);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)shape[s][2]);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		gemv_judge(&y, wv, &x, rows, n, &wrong, &missed);
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(wv);
	}
	is_u64(wrong, 0, "%s", name);
	is_u64(missed, 0, "%s: mutants are noticed", name);
	lib_close(&l);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		test_mask(t);
		test_embed(t);
		test_transpose(t);
		test_rope("rope", t);
		test_rope("rope_pairs", t);
		test_gemv(t);
	}
	test_gemv_int("gemv_int8", false);
	test_gemv_int("gemv_int4", true);
	test_gemv_own("gemv_int6", true);
	test_gemv_own("gemv_int3", false);
	cc_dev_close(&dev);
	return plan_done();
}
