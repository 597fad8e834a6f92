/*
 * The elementwise kernels of the library: every type, odd sizes, one element,
 * none, NaN and infinities, against double precision.
 */
#include "tests/kernels/kernel-run.h"

static uint64_t seed = 27;
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
		{ "lerp", x + a * (y - x) },
		{ "round_bf16", ssa_bits_to_f64(SSA_BF16,
						ssa_f64_to_bits(SSA_BF16, x)) },
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
	{ "sigmoid", 1, 0, 6, true }, { "silu", 1, 0, 6, true },
	{ "gelu", 1, 0, 0, true },    { "exp", 1, 0, 4, true },
	{ "tanh", 1, 0, 6, true },    { "swiglu", 2, 0, 8, true },
	{ "add_relu", 2, 0, 1, true }, { "lerp", 2, 1, 2, true },
	{ "round_bf16", 1, 0, 0, true },
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

/* Every one of the 65,536 values of a 16-bit type, or random f32. */
static void convert_size(struct lib *l, size_t n, size_t *wrong,
			 size_t *missed)
{
	enum ssa_kind fk = kind_of(l->shape.type), tk = kind_of(l->shape.to);
	struct arr x = arr_new(fk, n), out = arr_stale(tk, n);
	double *want = calloc(n + 1, sizeof(*want));
	double *none = calloc(n + 1, sizeof(*none));
	struct ssa_call c = { 0 };

	for (size_t i = 0; i < n; i++) {
		uint64_t bits = fk == SSA_F32 || n < 65536 ?
					test_random(&seed) : i;
		memcpy(x.bits + i * arr_bytes(&x), &bits, arr_bytes(&x));
		want[i] = ssa_bits_to_f64(tk, ssa_f64_to_bits(tk,
							      arr_get(&x, i)));
	}
	call_arr(&c, &out);
	call_arr(&c, &x);
	call_u32(&c, (uint32_t)n);
	*wrong += !lib_run(&dev, l, &c, kernel_groups(l->entry, &l->shape, n),
			   1) + judge(&out, want, none);
	*missed += n > 3 ? mutants_missed(&out, want, none) : 0;
	free(x.bits);
	free(out.bits);
	free(want);
	free(none);
}

static void test_convert(enum dsl_type from, enum dsl_type to, const char *name)
{
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "convert", from, to), "convert %s compiles", name))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		convert_size(&l, sizes[i], &wrong, &missed);
	convert_size(&l, 65537, &wrong, &missed);
	is_u64(wrong, 0, "convert %s rounds to nearest even", name);
	is_u64(missed, 0, "convert %s: mutants are noticed", name);
	lib_close(&l);
}

/* Inputs of one element, and the gradients that follow. */
static void swiglu_want(double x, double y, double g, enum ssa_kind kind,
			double want[2], double tol[2])
{
	double h = 1e-5, up = (x + h) / (1 + exp(-x - h));
	double down = (x - h) / (1 + exp(-x + h));

	/* The slope by a difference: an independent derivative. */
	want[0] = g * y * ((up - down) / (2 * h));
	want[1] = g * (x / (1 + exp(-x)));
	tol[0] = 1e-6 * (size_of(g * y) + 1e-3);
	tol[1] = 1e-6 * (size_of(g * x) + 1e-3);
	for (int i = 0; i < 2; i++)
		tol[i] += .51 * ulp_of(kind) * size_of(want[i]) + step_of(kind);
}

static void swiglu_size(struct lib *l, size_t n, size_t *wrong, size_t *missed)
{
	enum ssa_kind kind = kind_of(l->shape.type);
	struct arr a[] = { arr_stale(kind, n), arr_stale(kind, n),
			   arr_random(kind, n, 6, &seed),
			   arr_random(kind, n, 2, &seed),
			   arr_random(kind, n, 2, &seed) };
	double *v[4], want[2], tol[2];
	struct ssa_call c = { 0 };

	for (size_t i = 0; i < 4; i++)
		v[i] = calloc(n + 1, sizeof(double));
	if (n > 100) {
		arr_set(&a[2], 7, NAN);
		arr_set(&a[2], 11, INFINITY);
		arr_set(&a[2], 13, -INFINITY);
		arr_set(&a[4], 17, NAN);
	}
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		call_arr(&c, &a[i]);
	call_u32(&c, (uint32_t)n);
	*wrong += !lib_run(&dev, l, &c, kernel_groups(l->entry, &l->shape, n),
			   1);
	for (size_t i = 0; i < n; i++) {
		swiglu_want(arr_get(&a[2], i), arr_get(&a[3], i),
			    arr_get(&a[4], i), kind, want, tol);
		v[0][i] = want[0];
		v[1][i] = tol[0];
		v[2][i] = want[1];
		v[3][i] = tol[1];
	}
	*wrong += judge(&a[0], v[0], v[1]) + judge(&a[1], v[2], v[3]);
	if (n > 3)
		*missed += mutants_missed(&a[0], v[0], v[1]) +
			   mutants_missed(&a[1], v[2], v[3]);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		free(a[i].bits);
	for (size_t i = 0; i < 4; i++)
		free(v[i]);
}

static void test_swiglu_back(size_t t)
{
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "swiglu_back", types[t], 0), "swiglu_back of %s",
		type_name[t]))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		swiglu_size(&l, sizes[i], &wrong, &missed);
	is_u64(wrong, 0, "swiglu_back of %s gives the slopes", type_name[t]);
	is_u64(missed, 0, "swiglu_back of %s: mutants are noticed",
	       type_name[t]);
	lib_close(&l);
}

/* Numbers of a step of AdamW: rate, beta1, beta2, eps, decay, c1, c2. */
static void adamw_numbers(float number[7], int step)
{
	number[0] = 0.01f;
	number[1] = .9f;
	number[2] = .999f;
	number[3] = 1e-8f;
	number[4] = .1f;
	number[5] = (float)(1 - pow(.9, step));
	number[6] = (float)(1 - pow(.999, step));
}

/*
 * p, m, v of one element after a step.  Each sum's error is of its terms'
 * size; that of v, which may be much smaller, is halved by the root.
 */
static void adamw_want(const float number[7], double p, double g, double m,
		       double v, double want[3], double tol[3])
{
	double b1 = (double)number[1], b2 = (double)number[2];
	double m1 = b1 * m + (1 - b1) * g, v1 = b2 * v + (1 - b2) * g * g;
	double root = sqrt(v1 / (double)number[6]) + (double)number[3];
	double step = m1 / (double)number[5] / root;
	double rate = (double)number[0], decay = (double)number[4];

	want[0] = p - rate * (step + decay * p);
	want[1] = m1;
	want[2] = v1;
	tol[1] = 0x1p-23 * (fabs(m) + 2 * fabs(g)) + 0x1p-126;
	tol[2] = 0x1p-23 * (v + 2 * g * g) + 0x1p-126;
	tol[0] = rate * (tol[1] / (double)number[5] / root +
			 fabs(step) * (tol[2] / v1 + 0x1p-21)) +
		 0x1p-22 * fabs(p);
}

static void adamw_size(struct lib *l, size_t n, size_t *wrong, size_t *missed)
{
	enum ssa_kind kind = kind_of(l->shape.type);
	struct arr a[] = { arr_random(kind, n, 1, &seed), arr_new(kind, n),
			   arr_new(SSA_F32, n), arr_new(SSA_F32, n) };
	static const int part[] = { 0, 2, 3 }; /* p, m, v */
	double *want[3], *tol[3], w[3], t[3];

	for (int i = 0; i < 3; i++) {
		want[i] = calloc(n + 1, sizeof(double));
		tol[i] = calloc(n + 1, sizeof(double));
	}
	for (int step = 1; step <= 3; step++) {
		struct ssa_call c = { 0 };
		float number[7];
		adamw_numbers(number, step);
		for (size_t i = 0; i < n; i++)
			arr_set(&a[1], i, 3 * (double)test_random_f32(&seed));
		if (n > 100)
			arr_set(&a[1], 50, step == 1 ? NAN : INFINITY);
		for (size_t i = 0; i < n; i++) {
			adamw_want(number, arr_get(&a[0], i),
				   arr_get(&a[1], i), arr_get(&a[2], i),
				   arr_get(&a[3], i), w, t);
			for (int k = 0; k < 3; k++) {
				want[k][i] = w[k];
				tol[k][i] = t[k];
			}
			tol[0][i] += .51 * ulp_of(kind) * fabs(w[0]) +
				     step_of(kind);
		}
		for (size_t i = 0; i < ARRAY_SIZE(a); i++)
			call_arr(&c, &a[i]);
		for (size_t i = 0; i < ARRAY_SIZE(number); i++)
			call_f32(&c, number[i]);
		call_u32(&c, (uint32_t)n);
		*wrong += !lib_run(&dev, l, &c,
				   kernel_groups(l->entry, &l->shape, n), 1);
		for (int k = 0; k < 3; k++) {
			const struct arr *x = &a[part[k]];
			*wrong += judge(x, want[k], tol[k]);
			*missed += n > 3 ? mutants_missed(x, want[k], tol[k]) :
					   0;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		free(a[i].bits);
	for (int i = 0; i < 3; i++) {
		free(want[i]);
		free(tol[i]);
	}
}

static void test_adamw(size_t t)
{
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "adamw", types[t], 0), "adamw of %s",
		type_name[t]))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		adamw_size(&l, sizes[i], &wrong, &missed);
	is_u64(wrong, 0, "three steps of AdamW, %s", type_name[t]);
	is_u64(missed, 0, "AdamW of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* Sums in the order of the parts, in f32: the bits are known. */
static void test_sum_parts(uint32_t parts, size_t n, bool clears)
{
	struct arr x[KERNEL_MAX_PARTS], out = arr_stale(SSA_F32, n);
	struct arr clear = arr_random(SSA_F32, n, 2, &seed);
	float *want = calloc(n, sizeof(*want));
	struct ssa_call c = { 0 };
	size_t wrong = 0, kept = 0;
	struct lib l;

	for (uint32_t p = 0; p < KERNEL_MAX_PARTS; p++) {
		x[p] = arr_random(SSA_F32, n, 2, &seed);
		for (size_t i = 0; p < parts && i < n; i++)
			want[i] = p ? want[i] + (float)arr_get(&x[p], i) :
				      (float)arr_get(&x[p], i);
	}
	call_arr(&c, &out);
	call_arr(&c, &clear);
	for (uint32_t p = 0; p < KERNEL_MAX_PARTS; p++)
		call_arr(&c, &x[p]);
	call_u32(&c, parts);
	call_u32(&c, clears);
	call_u32(&c, (uint32_t)n);
	ok(lib_open(&l, "sum_parts", 0, 0) &&
		   lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n),
			   1),
	   "sum_parts of %u runs", parts);
	for (size_t i = 0; i < n; i++) {
		wrong += (float)arr_get(&out, i) != want[i];
		kept += arr_get(&clear, i) != 0;
	}
	is_u64(wrong, 0, "every one of %zu sums is right", n);
	ok(clears ? !kept : kept > n / 2, "the other is cleared, if asked");
	lib_close(&l);
	for (uint32_t p = 0; p < KERNEL_MAX_PARTS; p++)
		free(x[p].bits);
	free(out.bits);
	free(clear.bits);
	free(want);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_ops();
	test_convert(DSL_F16, DSL_F32, "f16 to f32");
	test_convert(DSL_BF16, DSL_F32, "bf16 to f32");
	test_convert(DSL_F32, DSL_F16, "f32 to f16");
	test_convert(DSL_F32, DSL_BF16, "f32 to bf16");
	test_convert(DSL_F16, DSL_BF16, "f16 to bf16");
	test_convert(DSL_BF16, DSL_F16, "bf16 to f16");
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		test_swiglu_back(t);
		test_adamw(t);
	}
	for (uint32_t parts = 1; parts <= KERNEL_MAX_PARTS; parts++)
		test_sum_parts(parts, 1021 + parts, parts % 2);
	cc_dev_close(&dev);
	return plan_done();
}
