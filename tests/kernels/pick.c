/*
 * The k largest of a row, pages of a cache, matrix times vector with aligned
 * rows, and gradients of qk_norm.
 */
#include "tests/ref/norm.h"

static uint64_t seed = 2550;
static struct cc_dev dev;

static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16 };
static const char *const type_name[] = { "f32", "f16", "bf16" };

static void release(struct arr *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(all[i]->bits);
}

/* --------------------------------------------------------------- topk ---- */

/* Is element a of a row before element b? */
static bool before(const struct arr *x, size_t row, size_t a, size_t b)
{
	double va = arr_get(x, row + a), vb = arr_get(x, row + b);

	if (isnan(va) || isnan(vb))
		return isnan(va) && isnan(vb) ? a < b : isnan(vb);
	return va > vb || (va == vb && a < b);
}

static void topk_want(const struct arr *x, size_t n, size_t k, size_t rows,
		      double *value, double *place)
{
	for (size_t r = 0; r < rows; r++) {
		for (size_t j = 0; j < k; j++) {
			value[r * k + j] = -INFINITY;
			place[r * k + j] = -1;
		}
		for (size_t i = 0; i < n; i++) {
			size_t rank = 0;
			for (size_t o = 0; o < n && rank < k; o++)
				rank += before(x, r * n, o, i);
			if (rank >= k)
				continue;
			value[r * k + rank] = arr_get(x, r * n + i);
			place[r * k + rank] = (double)i;
		}
	}
}

/* Few different values, so that there are equal ones; one row is constant. */
static void coarsen(struct arr *x, size_t rows, size_t n, int levels)
{
	for (size_t i = 0; i < rows * n; i++) {
		double v = arr_get(x, i);
		arr_set(x, i, i / n == 1 ? .5 : floor(v * levels) / levels);
	}
	if (n > 9) {
		arr_set(x, 2 * n + 3, NAN);
		arr_set(x, 2 * n + 4, -NAN);
		arr_set(x, 2 * n + 5, INFINITY);
		arr_set(x, 2 * n + 6, -INFINITY);
		arr_set(x, 2 * n + 7, -0.0);
		arr_set(x, 2 * n + 8, 0.0);
	}
}

static void test_topk(size_t t)
{
	enum { ROWS = 3 };
	static const size_t shape[][2] = { /* n, k */
		{ 1, 1 }, { 1, 64 }, { 5, 3 }, { 64, 64 }, { 63, 64 },
		{ 100, 10 }, { 255, 1 }, { 256, 64 }, { 257, 33 }, { 1000, 64 },
		{ 1500, 50 }, { 0, 4 }, { 10, 0 },
	};
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "topk", types[t], 0), "topk of %s compiles",
		type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t n = shape[s][0], k = shape[s][1];
		enum ssa_kind kind = kind_of(types[t]);
		struct arr x = arr_random(kind, ROWS * n, 3, &seed);
		struct arr value = arr_stale(kind, ROWS * k);
		struct arr place = arr_stale(SSA_I32, ROWS * k);
		double *want = calloc(ROWS * k + 1, sizeof(*want));
		double *at = calloc(ROWS * k + 1, sizeof(*at));
		double *none = calloc(ROWS * k + 1, sizeof(*none));
		struct ssa_call c = { 0 };
		if (s % 2)
			coarsen(&x, ROWS, n, 4);
		call_arr(&c, &value);
		call_arr(&c, &place);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)k);
		wrong += !lib_run(&dev, &l, &c, ROWS, 1);
		topk_want(&x, n, k, ROWS, want, at);
		wrong += judge(&value, want, none) + judge(&place, at, none);
		missed += mutants_missed(&place, at, none);
		release((struct arr *[]){ &x, &value, &place }, 3);
		free(want);
		free(at);
		free(none);
	}
	is_u64(wrong, 0, "topk of %s", type_name[t]);
	is_u64(missed, 0, "topk of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* ---------------------------------------------------------- kv_gather ---- */

enum { SEQUENCES = 3, PAGES = 4, POOL = 9 };

static void test_gather(const struct kernel_shape *shape)
{
	static const size_t size[][2] = { /* n, page */
		{ 8, 1 }, { 16, 4 }, { 128, 16 }, { 256, 16 }, { 264, 5 },
		{ 1024, 2 }, { 40, 32 }, { 24, 7 }, { 512, 3 }, { 8, 33 },
	};
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open_shape(&l, "kv_gather", shape), "kv_gather compiles"))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(size); s++) {
		size_t n = size[s][0] - !shape->wide, page = size[s][1];
		size_t rows = PAGES * page, sequence = rows * n;
		bool bytes = shape->type == DSL_I8;
		struct arr pool = arr_random(kind_of(shape->type),
					     POOL * page * n, bytes ? 127 : 2,
					     &seed);
		struct arr out = arr_stale(kind_of(shape->to),
					   SEQUENCES * sequence);
		struct arr table = arr_new(SSA_I32, SEQUENCES * PAGES);
		struct arr length = arr_new(SSA_I32, SEQUENCES);
		double *want = calloc(out.n, sizeof(*want));
		double *tol = calloc(out.n, sizeof(*tol));
		struct ssa_call c = { 0 };
		for (size_t i = 0; i < table.n; i++)
			arr_set(&table, i, i == 2 ? -1 : i == 5 ? POOL :
					   (double)(test_random(&seed) % POOL));
		arr_set(&length, 0, (double)rows);
		arr_set(&length, 1, (double)rows - 1);
		arr_set(&pool, 0, bytes ? -128 : NAN);
		arr_set(&pool, page * n, bytes ? 127 : INFINITY);
		call_arr(&c, &out);
		call_arr(&c, &pool);
		call_arr(&c, &table);
		call_arr(&c, &length);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)page);
		call_u32(&c, PAGES);
		call_u32(&c, POOL);
		call_u64(&c, sequence);
		wrong += !lib_run(&dev, &l, &c, (rows + 3) / 4, SEQUENCES);
		for (size_t i = 0; i < out.n; i++) {
			size_t b = i / sequence, row = i % sequence / n;
			double id = arr_get(&table, b * PAGES + row / page);
			bool there = id >= 0 && id < POOL;
			size_t from = ((size_t)(there ? id : 0) * page +
				       row % page) * n + i % n;
			bool in = (double)row < arr_get(&length, b);
			want[i] = !in ? STALE :
				  there ? arr_get(&pool, from) : 0;
			tol[i] = bytes ? 0 : step_of(out.kind) +
				 .501 * ulp_of(out.kind) * fabs(want[i]);
		}
		wrong += judge(&out, want, tol);
		missed += mutants_missed(&out, want, tol);
		release((struct arr *[]){ &pool, &out, &table, &length }, 4);
		free(want);
		free(tol);
	}
	is_u64(wrong, 0, "kv_gather, type %d to %d%s", shape->type, shape->to,
	       shape->wide ? ", wide" : "");
	is_u64(missed, 0, "and mutants are noticed");
	lib_close(&l);
}

/* --------------------------------------------------------------- gemv ---- */

static void test_gemv(size_t t)
{
	static const size_t shape[][2] = { { 1, 8 }, { 3, 16 }, { 4, 64 },
		{ 5, 248 }, { 6, 256 }, { 7, 264 }, { 9, 512 }, { 2, 1024 },
		{ 3, 2056 }, { 33, 72 }, { 5, 0 } };
	const struct kernel_shape wide = { .type = types[t], .wide = true };
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open_shape(&l, "gemv", &wide), "wide gemv of %s compiles",
		type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t rows = shape[s][0], n = shape[s][1];
		struct arr w =
			arr_random(kind_of(types[t]), rows * n, 1, &seed);
		struct arr x = arr_random(SSA_F32, n, 1, &seed);
		struct arr y = arr_stale(SSA_F32, rows);
		double *want = calloc(rows + 1, sizeof(*want));
		double *tol = calloc(rows + 1, sizeof(*tol));
		struct ssa_call c = { 0 };
		if (rows > 5)
			arr_set(&w, 5 * n + 1, rows == 6 ? NAN : INFINITY);
		call_arr(&c, &y);
		call_arr(&c, &w);
		call_arr(&c, &x);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		for (size_t i = 0; i < rows * n; i++) {
			double p = arr_get(&w, i) * arr_get(&x, i % n);
			want[i / n] += p;
			tol[i / n] += 0x1p-23 * fabs(p) * (1 + sqrt(n) / 8);
		}
		wrong += judge(&y, want, tol);
		missed += rows > 3 ? mutants_missed(&y, want, tol) : 0;
		release((struct arr *[]){ &w, &x, &y }, 3);
		free(want);
		free(tol);
	}
	is_u64(wrong, 0, "wide gemv of %s", type_name[t]);
	is_u64(missed, 0, "wide gemv of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* ------------------------------------------------------- qk_norm_back ---- */

static void test_norm_back(size_t t)
{
	static const size_t shape[][2] = { { 1, 1 }, { 2, 2 }, { 4, 31 },
		{ 5, 32 }, { 1, 33 }, { 9, 64 }, { 7, 80 }, { 6, 128 },
		{ 2, 255 }, { 3, 256 }, { 0, 128 } };
	enum ssa_kind kind = kind_of(types[t]);
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "qk_norm_back", types[t], 0),
		"qk_norm_back of %s compiles", type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		size_t rows = shape[s][0], n = shape[s][1], all = rows * n;
		struct arr x = arr_random(kind, all, 2, &seed);
		struct arr g = arr_random(kind, all, 1, &seed);
		struct arr w = arr_random(kind, n, 1, &seed);
		struct arr dx = arr_stale(kind, all), dw = arr_new(SSA_F32, n);
		double *v[4];
		struct ssa_call c = { 0 };
		for (size_t i = 0; i < 4; i++)
			v[i] = calloc(all + n + 1, sizeof(double));
		if (rows == 9)
			arr_set(&g, 3 * n + 7, NAN);
		call_arr(&c, &dx);
		call_arr(&c, &dw);
		call_arr(&c, &x);
		call_arr(&c, &w);
		call_arr(&c, &g);
		call_f32(&c, 1e-6f);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)rows);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		norm_back_want(&x, &w, &g, rows, n, v[0], v[1], v[2], v[3]);
		for (size_t i = 0; i < all; i++)
			v[1][i] += .51 * ulp_of(kind) * fabs(v[0][i]) +
				   step_of(kind);
		wrong += judge(&dx, v[0], v[1]) + judge(&dw, v[2], v[3]);
		missed += n > 1 ? mutants_missed(&dx, v[0], v[1]) : 0;
		missed += rows && n > 1 ? mutants_missed(&dw, v[2], v[3]) : 0;
		release((struct arr *[]){ &x, &g, &w, &dx, &dw }, 5);
		for (size_t i = 0; i < 4; i++)
			free(v[i]);
	}
	is_u64(wrong, 0, "qk_norm_back of %s", type_name[t]);
	is_u64(missed, 0, "qk_norm_back of %s: mutants are noticed",
	       type_name[t]);
	lib_close(&l);
}

/* What a cache of i8 cannot have, and what no other kernel has. */
static void test_refused(void)
{
	static const struct {
		const char *name, *word;
		struct kernel_shape shape;
	} t[] = {
		{ "attention", "33 elements", { .head = 33, .cache = DSL_I8 } },
		{ "kv_store", "multiple of 32", { .head = 72,
						  .cache = DSL_I8 } },
		{ "attn_split", "f32, f16, bf16, i8, u8 or u32",
		  { .cache = DSL_I32 } },
		{ "kv_gather", "or i8 to i8", { .type = DSL_I8,
						.to = DSL_F16 } },
		{ "rms_norm", "f32, f16 or bf16", { .type = DSL_I8 } },
		{ "convert", "f32, f16 or bf16", { .type = DSL_I8,
						   .to = DSL_I8 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct kernel_entry *k = kernel_find(t[i].name);
		struct kernel_shape s = t[i].shape;
		struct err e = { 0 };

		ok(!kernel_shape_check(k, &s, &e) && e.code == ERR_USAGE &&
		   strstr(e.msg, t[i].word), "refused: %s", e.msg);
	}
}

int main(void)
{
	static const struct kernel_shape gather[] = {
		{ .type = DSL_BF16, .to = DSL_BF16, .wide = true },
		{ .type = DSL_F16, .to = DSL_F32, .wide = true },
		{ .type = DSL_F32, .to = DSL_F32 },
		{ .type = DSL_BF16, .to = DSL_BF16 },
		{ .type = DSL_I8, .to = DSL_I8, .wide = true },
		{ .type = DSL_I8, .to = DSL_I8 },
	};

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		test_topk(t);
		test_gemv(t);
		test_norm_back(t);
	}
	for (size_t i = 0; i < ARRAY_SIZE(gather); i++)
		test_gather(&gather[i]);
	test_refused();
	cc_dev_close(&dev);
	return plan_done();
}
