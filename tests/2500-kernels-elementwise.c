/*
 * The elementwise kernels of the library: every type, odd sizes, one element,
 * none, NaN and infinities, against double precision.
 */
#include "tests/kernel-run.h"

static uint64_t seed = 25;
static struct cc_dev dev;

static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16 };
static const char *const type_name[] = { "f32", "f16", "bf16" };
static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 31, 128, 1023, 1024, 1025,
				2500 };

static double ref(const char *name, double x, double y, double z, double a,
		  double b)
{
	double s = x / (1 + exp(-x));
	const struct {
		const char *name;
		double v;
	} all[] = {
		{ "add", x + y }, { "sub", x - y }, { "mul", x * y },
		{ "scale", a * x }, { "affine", a * x + b },
		{ "axpy", a * x + y }, { "fma", x * y + z },
		{ "relu", x < 0 ? 0 : x }, { "sigmoid", 1 / (1 + exp(-x)) },
		{ "silu", s }, { "gelu", x * (1 + erf(x / sqrt(2))) / 2 },
		{ "exp", exp(x) }, { "tanh", tanh(x) }, { "swiglu", s * y },
		{ "add_relu", x + y < 0 ? 0 : x + y },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].v;
	return NAN;
}

static const struct {
	const char *name;
	int inputs, numbers;
	double ulps; /* of f32, of the result; dsl.h states them */
	bool special;
} op[] = {
	{ "add", 2, 0, 1, true },     { "sub", 2, 0, 1, true },
	{ "mul", 2, 0, 1, true },     { "scale", 1, 1, 1, true },
	{ "affine", 1, 2, 1, true },  { "axpy", 2, 1, 1, true },
	{ "fma", 3, 0, 1, true },     { "relu", 1, 0, 1, true },
	{ "sigmoid", 1, 0, 6, true }, { "silu", 1, 0, 6, false },
	{ "gelu", 1, 0, 0, false },   { "exp", 1, 0, 4, true },
	{ "tanh", 1, 0, 6, true },    { "swiglu", 2, 0, 8, false },
	{ "add_relu", 2, 0, 1, true },
};

/* An input that is not finite makes the result exact: no room for error. */
static double size_of(double v)
{
	return isfinite(v) ? fabs(v) : 0;
}

/* Roundings: of the f32 result, of the type, and of sums that cancel. */
static double tolerance(size_t o, enum ssa_kind kind, double want,
			const double *in)
{
	double size = size_of(want) + step_of(kind) / ulp_of(kind);
	double f32 = op[o].ulps * 0x1p-23 * size;

	if (strcmp(op[o].name, "gelu") == 0)
		f32 = 0x1p-21 * size_of(in[0]);
	return f32 + 0.51 * ulp_of(kind) * size +
	       0x1p-23 * (size_of(in[0] * in[3]) + size_of(in[1]) +
			  size_of(in[2]));
}

static void one_size(struct lib *l, size_t o, size_t n, size_t *wrong,
		     size_t *missed)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1e-30,
				      -60, 60, 3e4 };
	enum ssa_kind kind = kind_of(l->shape.type);
	struct arr out = arr_stale(kind, n), x[3];
	double a = 1.25, b = -0.5, *want = calloc(n + 1, sizeof(*want));
	double *tol = calloc(n + 1, sizeof(*tol));
	struct ssa_call c = { 0 };

	for (int i = 0; i < 3; i++) {
		x[i] = arr_random(kind, n, 4, &seed);
		for (size_t k = 0; op[o].special && n > 100 &&
				   k < ARRAY_SIZE(odd); k++)
			arr_set(&x[i], 10 * k + (size_t)i, odd[k]);
	}
	call_arr(&c, &out);
	for (int i = 0; i < op[o].inputs; i++)
		call_arr(&c, &x[i]);
	for (int i = 0; i < op[o].numbers; i++)
		call_f32(&c, (float)(i ? b : a));
	call_u32(&c, (uint32_t)n);
	*wrong += !lib_run(&dev, l, &c,
			   kernel_groups(l->entry, &l->shape, n), 1);
	for (size_t i = 0; i < n; i++) {
		double in[4] = { arr_get(&x[0], i), arr_get(&x[1], i),
				 arr_get(&x[2], i),
				 op[o].numbers ? a : arr_get(&x[1], i) };
		double r = ref(op[o].name, in[0], in[1], in[2], a, b);
		/* What is beyond the type becomes infinity. */
		double held = ssa_bits_to_f64(kind, ssa_f64_to_bits(kind, r));
		want[i] = isfinite(held) ? r : held;
		tol[i] = tolerance(o, kind, want[i], in);
	}
	*wrong += judge(&out, want, tol);
	if (n > 3)
		*missed += mutants_missed(&out, want, tol);
	for (int i = 0; i < 3; i++)
		free(x[i].bits);
	free(out.bits);
	free(want);
	free(tol);
}

static void test_ops(void)
{
	for (size_t o = 0; o < ARRAY_SIZE(op); o++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
			size_t wrong = 0, missed = 0;
			struct lib l;
			if (!ok(lib_open(&l, op[o].name, types[t], 0),
				"%s of %s compiles", op[o].name, type_name[t]))
				continue;
			for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
				one_size(&l, o, sizes[i], &wrong, &missed);
			is_u64(wrong, 0, "%s of %s, %zu sizes", op[o].name,
			       type_name[t], ARRAY_SIZE(sizes));
			is_u64(missed, 0, "%s of %s: mutants are noticed",
			       op[o].name, type_name[t]);
			lib_close(&l);
		}
}

/* Every one of the 65,536 values of a 16-bit type, and random f32. */
static void test_convert(enum dsl_type from, enum dsl_type to, const char *name)
{
	enum ssa_kind fk = kind_of(from), tk = kind_of(to);
	size_t n = 65537, wrong = 0;
	struct arr x = arr_new(fk, n), out = arr_stale(tk, n);
	struct ssa_call c = { 0 };
	struct lib l;

	for (size_t i = 0; i < n; i++) {
		uint64_t bits = fk == SSA_F32 ? test_random(&seed) : i;
		memcpy(x.bits + i * arr_bytes(&x), &bits, arr_bytes(&x));
	}
	if (!ok(lib_open(&l, "convert", from, to), "convert %s compiles", name))
		return;
	call_arr(&c, &out);
	call_arr(&c, &x);
	call_u32(&c, (uint32_t)n);
	ok(lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n), 1),
	   "convert %s runs", name);
	for (size_t i = 0; i < n; i++) {
		double v = arr_get(&x, i);
		double want = ssa_bits_to_f64(tk, ssa_f64_to_bits(tk, v));
		wrong += !close_enough(arr_get(&out, i), want, 0);
	}
	is_u64(wrong, 0, "convert %s rounds to nearest even", name);
	lib_close(&l);
	free(x.bits);
	free(out.bits);
}

static void test_swiglu_back(void)
{
	enum { N = 1001 };
	struct arr dx = arr_stale(SSA_F32, N), dy = arr_stale(SSA_F32, N);
	struct arr x = arr_random(SSA_F32, N, 6, &seed);
	struct arr y = arr_random(SSA_F32, N, 2, &seed);
	struct arr g = arr_random(SSA_F32, N, 2, &seed);
	static double wx[N], wy[N], tx[N], ty[N];
	struct ssa_call c = { 0 };
	struct lib l;

	if (!ok(lib_open(&l, "swiglu_back", DSL_F32, 0), "swiglu_back"))
		return;
	call_arr(&c, &dx);
	call_arr(&c, &dy);
	call_arr(&c, &x);
	call_arr(&c, &y);
	call_arr(&c, &g);
	call_u32(&c, N);
	ok(lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, N), 1),
	   "swiglu_back runs");
	for (int i = 0; i < N; i++) {
		double xi = arr_get(&x, (size_t)i), h = 1e-5;
		double yi = arr_get(&y, (size_t)i), gi = arr_get(&g, (size_t)i);
		double up = (xi + h) / (1 + exp(-xi - h));
		double down = (xi - h) / (1 + exp(-xi + h));
		/* The slope by a difference: an independent derivative. */
		wx[i] = gi * yi * (up - down) / (2 * h);
		wy[i] = gi * xi / (1 + exp(-xi));
		tx[i] = 1e-6 * (fabs(gi * yi) + 1e-3);
		ty[i] = 1e-6 * (fabs(gi * xi) + 1e-3);
	}
	is_u64(judge(&dx, wx, tx), 0, "its gradient by x is the slope");
	is_u64(judge(&dy, wy, ty), 0, "and by y");
	is_u64(mutants_missed(&dx, wx, tx), 0, "mutants are noticed");
	lib_close(&l);
	struct arr *all[] = { &dx, &dy, &x, &y, &g };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
}

static void test_adamw(void)
{
	enum { N = 777, STEPS = 3 };
	struct arr p = arr_random(SSA_F32, N, 1, &seed);
	struct arr m = arr_new(SSA_F32, N), v = arr_new(SSA_F32, N);
	static double rp[N], rm[N], rv[N], tol[N];
	struct lib l;

	if (!ok(lib_open(&l, "adamw", DSL_F32, 0), "adamw"))
		return;
	for (size_t i = 0; i < N; i++)
		rp[i] = arr_get(&p, i);
	for (int step = 1; step <= STEPS; step++) {
		struct arr g = arr_random(SSA_F32, N, 3, &seed);
		double c1 = 1 - pow(.9, step), c2 = 1 - pow(.999, step);
		const float number[] = { 0.01f, .9f, .999f, 1e-8f, .1f,
					 (float)c1, (float)c2 };
		struct ssa_call c = { 0 };
		call_arr(&c, &p);
		call_arr(&c, &g);
		call_arr(&c, &m);
		call_arr(&c, &v);
		for (size_t i = 0; i < ARRAY_SIZE(number); i++)
			call_f32(&c, number[i]);
		call_u32(&c, N);
		lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, N), 1);
		for (size_t i = 0; i < N; i++) {
			double gi = arr_get(&g, i);
			double b1 = (double)number[1], b2 = (double)number[2];
			rm[i] = b1 * rm[i] + (1 - b1) * gi;
			rv[i] = b2 * rv[i] + (1 - b2) * gi * gi;
			rp[i] -= (double)number[0] * (rm[i] / c1 /
				(sqrt(rv[i] / c2) + (double)number[3]) +
				(double)number[4] * rp[i]);
			/* Roundings of p, and of m where its terms cancel. */
			tol[i] = 2e-6 * (fabs(rp[i]) + .1) +
				 .01 * 1e-6 * 3 / (sqrt(rv[i] / c2) + 1e-8);
		}
		free(g.bits);
	}
	is_u64(judge(&p, rp, tol), 0, "three steps of AdamW");
	is_u64(mutants_missed(&p, rp, tol), 0, "AdamW: mutants are noticed");
	lib_close(&l);
	free(p.bits);
	free(m.bits);
	free(v.bits);
}

int main(void)
{
	struct err e = { 0 };

	if (!cc_dev_open(&dev, true, &e)) {
		diag("%s", e.msg);
		return 1;
	}
	diag("seed %llu", (unsigned long long)seed);
	test_ops();
	test_convert(DSL_F16, DSL_F32, "f16 to f32");
	test_convert(DSL_BF16, DSL_F32, "bf16 to f32");
	test_convert(DSL_F32, DSL_F16, "f32 to f16");
	test_convert(DSL_F32, DSL_BF16, "f32 to bf16");
	test_convert(DSL_F16, DSL_BF16, "f16 to bf16");
	test_swiglu_back();
	test_adamw();
	cc_dev_close(&dev);
	return plan_done();
}
