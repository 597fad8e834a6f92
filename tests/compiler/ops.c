/*
 * The back end, operation by operation: a kernel that applies it to arrays of
 * random and special values gives on the soft device, in checked mode, what
 * the interpreter gives.
 */
#include <math.h>

#include "tests/compiler/cc-run.h"

enum { N = 256 };

static uint64_t seed = 20250101;
static struct cc_dev dev;

struct op_test {
	const char *op;	  /* with sub-name and, behind a space, flags */
	const char *type; /* of the operands and the result */
	const char *result; /* another type of the result, or NULL */
	int n_args;
	int ulps; /* allowed difference, f32 */
};

static const struct op_test ops[] = {
	{ "add", "i32", NULL, 2, 0 },
	{ "sub", "i32", NULL, 2, 0 },
	{ "mul", "i32", NULL, 2, 0 },
	{ "mulhi_u", "i32", NULL, 2, 0 },
	{ "mulhi_s", "i32", NULL, 2, 0 },
	{ "div_u", "i32", NULL, 2, 0 },
	{ "div_s", "i32", NULL, 2, 0 },
	{ "rem_u", "i32", NULL, 2, 0 },
	{ "rem_s", "i32", NULL, 2, 0 },
	{ "and", "i32", NULL, 2, 0 },
	{ "or", "i32", NULL, 2, 0 },
	{ "xor", "i32", NULL, 2, 0 },
	{ "not", "i32", NULL, 1, 0 },
	{ "shl", "i32", NULL, 2, 0 },
	{ "shr_u", "i32", NULL, 2, 0 },
	{ "shr_s", "i32", NULL, 2, 0 },
	{ "min_u", "i32", NULL, 2, 0 },
	{ "max_u", "i32", NULL, 2, 0 },
	{ "min_s", "i32", NULL, 2, 0 },
	{ "max_s", "i32", NULL, 2, 0 },
	{ "clz", "i32", NULL, 1, 0 },
	{ "ctz", "i32", NULL, 1, 0 },
	{ "popcount", "i32", NULL, 1, 0 },
	{ "dot4_s", "i32", NULL, 3, 0 },
	{ "add", "i64", NULL, 2, 0 },
	{ "sub", "i64", NULL, 2, 0 },
	{ "mul", "i64", NULL, 2, 0 },
	{ "div_u", "i64", NULL, 2, 0 },
	{ "div_s", "i64", NULL, 2, 0 },
	{ "rem_u", "i64", NULL, 2, 0 },
	{ "rem_s", "i64", NULL, 2, 0 },
	{ "and", "i64", NULL, 2, 0 },
	{ "or", "i64", NULL, 2, 0 },
	{ "xor", "i64", NULL, 2, 0 },
	{ "not", "i64", NULL, 1, 0 },
	{ "shl", "i64", NULL, 2, 0 },
	{ "shr_u", "i64", NULL, 2, 0 },
	{ "shr_s", "i64", NULL, 2, 0 },
	{ "min_u", "i64", NULL, 2, 0 },
	{ "max_u", "i64", NULL, 2, 0 },
	{ "min_s", "i64", NULL, 2, 0 },
	{ "max_s", "i64", NULL, 2, 0 },
	{ "add", "i16", NULL, 2, 0 },
	{ "mul", "i16", NULL, 2, 0 },
	{ "shr_u", "i16", NULL, 2, 0 },
	{ "shr_s", "i16", NULL, 2, 0 },
	{ "shl", "i16", NULL, 2, 0 },
	{ "min_s", "i16", NULL, 2, 0 },
	{ "max_u", "i16", NULL, 2, 0 },
	{ "add", "i16x2", NULL, 2, 0 },
	{ "sub", "i16x2", NULL, 2, 0 },
	{ "mul", "i16x2", NULL, 2, 0 },
	{ "and", "i16x2", NULL, 2, 0 },
	{ "not", "i16x2", NULL, 1, 0 },
	{ "shl", "i16x2", NULL, 2, 0 },
	{ "shr_u", "i16x2", NULL, 2, 0 },
	{ "shr_s", "i16x2", NULL, 2, 0 },
	{ "min_s", "i16x2", NULL, 2, 0 },
	{ "max_u", "i16x2", NULL, 2, 0 },
	{ "fadd", "f32", NULL, 2, 0 },
	{ "fsub", "f32", NULL, 2, 0 },
	{ "fmul", "f32", NULL, 2, 0 },
	{ "fma", "f32", NULL, 3, 0 },
	{ "fdiv", "f32", NULL, 2, 0 },
	{ "fneg", "f32", NULL, 1, 0 },
	{ "fabs", "f32", NULL, 1, 0 },
	{ "copysign", "f32", NULL, 2, 0 },
	{ "fmin", "f32", NULL, 2, 0 },
	{ "fmax", "f32", NULL, 2, 0 },
	{ "fsqrt", "f32", NULL, 1, 0 },
	{ "frsqrt", "f32", NULL, 1, 1 },
	{ "frcp", "f32", NULL, 1, 1 },
	{ "fexp2", "f32", NULL, 1, 1 },
	{ "flog2", "f32", NULL, 1, 1 },
	{ "ffloor", "f32", NULL, 1, 0 },
	{ "fceil", "f32", NULL, 1, 0 },
	{ "ftrunc", "f32", NULL, 1, 0 },
	{ "fround", "f32", NULL, 1, 0 },
	{ "fadd", "f16", NULL, 2, 0 },
	{ "fsub", "f16", NULL, 2, 0 },
	{ "fmul", "f16", NULL, 2, 0 },
	{ "fma", "f16", NULL, 3, 0 },
	{ "fdiv", "f16", NULL, 2, 0 },
	{ "fneg", "f16", NULL, 1, 0 },
	{ "fabs", "f16", NULL, 1, 0 },
	{ "fmin", "f16", NULL, 2, 0 },
	{ "fmax", "f16", NULL, 2, 0 },
	{ "fsqrt", "f16", NULL, 1, 0 },
	{ "ffloor", "f16", NULL, 1, 0 },
	{ "fround", "f16", NULL, 1, 0 },
	{ "fadd", "f16x2", NULL, 2, 0 },
	{ "fsub", "f16x2", NULL, 2, 0 },
	{ "fmul", "f16x2", NULL, 2, 0 },
	{ "fma", "f16x2", NULL, 3, 0 },
	{ "fneg", "f16x2", NULL, 1, 0 },
	{ "fabs", "f16x2", NULL, 1, 0 },
	{ "fmin", "f16x2", NULL, 2, 0 },
	{ "fmax", "f16x2", NULL, 2, 0 },
	{ "fadd", "f64", NULL, 2, 0 },
	{ "fsub", "f64", NULL, 2, 0 },
	{ "fmul", "f64", NULL, 2, 0 },
	{ "fma", "f64", NULL, 3, 0 },
	{ "fneg", "f64", NULL, 1, 0 },
	{ "fabs", "f64", NULL, 1, 0 },
	{ "fmin", "f64", NULL, 2, 0 },
	{ "fmax", "f64", NULL, 2, 0 },
	{ "fcvt", "f32", "f16", 1, 0 },
	{ "fcvt", "f32", "bf16", 1, 0 },
	{ "fcvt", "f32", "f64", 1, 0 },
	{ "fcvt", "f16", "f32", 1, 0 },
	{ "fcvt", "bf16", "f32", 1, 0 },
	{ "fcvt", "f64", "f32", 1, 0 },
	{ "fcvt_from_s", "i32", "f32", 1, 0 },
	{ "fcvt_from_u", "i32", "f32", 1, 0 },
	{ "fcvt_from_s", "i32", "f64", 1, 0 },
	{ "fcvt_from_u", "i32", "f64", 1, 0 },
	{ "fcvt_to_s", "f32", "i32", 1, 0 },
	{ "fcvt_to_u", "f32", "i32", 1, 0 },
	{ "fcvt_to_s", "f64", "i32", 1, 0 },
	{ "fcvt_to_u", "f64", "i32", 1, 0 },
	{ "zext", "i8", "i32", 1, 0 },
	{ "zext", "i16", "i32", 1, 0 },
	{ "zext", "i32", "i64", 1, 0 },
	{ "zext", "i8", "i64", 1, 0 },
	{ "zext", "i8", "i16", 1, 0 },
	{ "sext", "i8", "i32", 1, 0 },
	{ "sext", "i16", "i32", 1, 0 },
	{ "sext", "i32", "i64", 1, 0 },
	{ "sext", "i16", "i64", 1, 0 },
	{ "trunc", "i64", "i32", 1, 0 },
	{ "trunc", "i32", "i16", 1, 0 },
	{ "trunc", "i32", "i8", 1, 0 },
	{ "trunc", "i64", "i8", 1, 0 },
	{ "bitcast", "f32", "i32", 1, 0 },
	{ "bitcast", "i64", "i32x2", 1, 0 },
	{ "bitcast", "i32", "i16x2", 1, 0 },
	{ "shuffle_xor 1", "i32", NULL, 1, 0 },
	{ "shuffle_xor 7", "f32", NULL, 1, 0 },
	{ "shuffle_xor 16", "i32", NULL, 1, 0 },
	{ "shuffle_xor 21", "f32", NULL, 1, 0 },
	{ "shuffle", "i32", NULL, 2, 0 },
	{ "read_first", "f32", NULL, 1, 0 },
	{ "read_first", "i64", NULL, 1, 0 },
	{ "reduce.add", "i32", NULL, 1, 0 },
	{ "reduce.min_s", "i32", NULL, 1, 0 },
	{ "reduce.max_u", "i32", NULL, 1, 0 },
	{ "reduce.xor", "i32", NULL, 1, 0 },
	{ "reduce.fmin", "f32", NULL, 1, 0 },
	{ "reduce.fmax", "f32", NULL, 1, 0 },
	{ "reduce.fadd", "f32", NULL, 1, 0 },
	{ "scan.add 1", "i32", NULL, 1, 0 },
	{ "scan.add 0", "i32", NULL, 1, 0 },
	{ "scan.min_u 0", "i32", NULL, 1, 0 },
	{ "scan.max_s 1", "i32", NULL, 1, 0 },
	{ "scan.fmax 1", "f32", NULL, 1, 0 },
	{ "scan.fmin 0", "f32", NULL, 1, 0 },
	{ "scan.fadd 1", "f32", NULL, 1, 0 },
	{ "scan.fadd 0", "f32", NULL, 1, 0 },
	{ "group_reduce.add", "i32", NULL, 1, 0 },
	{ "group_reduce.fmax", "f32", NULL, 1, 0 },
	{ "group_reduce.min_u", "i32", NULL, 1, 0 },
};

static uint32_t type_bytes(const char *t)
{
	uint32_t bits = t[0] == 'b' ? 16 : (uint32_t)atoi(t + 1);
	const char *x = strchr(t, 'x');

	return bits / 8 * (x ? (uint32_t)atoi(x + 1) : 1);
}

static void kernel_text(const struct op_test *t, struct buf *b)
{
	const char *res = t->result ? t->result : t->type;
	const char *imm = strchr(t->op, ' ');
	int name = imm ? (int)(imm - t->op) : (int)strlen(t->op);

	buf_printf(b, "kernel k group 64 1 1 wave 32\n");
	for (int k = 0; k < t->n_args; k++)
		buf_printf(b, "arg a%d ptr i8 noalias readonly\n", k);
	buf_printf(b, "arg out ptr i8 noalias\nb0:\n"
		      "\t%%0 = local_id i32 0\n\t%%1 = group_id i32 0\n"
		      "\t%%2 = const i32 64\n\t%%3 = mul i32 %%1, %%2\n"
		      "\t%%4 = add i32 %%3, %%0\n"
		      "\t%%5 = const i32 %u\n\t%%6 = mul i32 %%4, %%5\n"
		      "\t%%7 = const i32 %u\n\t%%8 = mul i32 %%4, %%7\n",
		   type_bytes(t->type), type_bytes(res));
	for (int k = 0; k <= t->n_args; k++)
		buf_printf(b, "\t%%%d = arg ptr %d\n", 10 + k, k);
	for (int k = 0; k < t->n_args; k++)
		buf_printf(b, "\t%%%d = load %s %%%d, %%6 align %u\n", 20 + k,
			   t->type, 10 + k, type_bytes(t->type));
	buf_printf(b, "\t%%30 = %.*s %s", name, t->op, res);
	for (int k = 0; k < t->n_args; k++)
		buf_printf(b, "%s %%%d", k ? "," : "", 20 + k);
	buf_printf(b, "%s\n", imm ? imm : "");
	buf_printf(b, "\tstore %%%d, %%8, %%30 align %u\n\tret\n",
		   10 + t->n_args, type_bytes(res));
}

/* ---------------------------------------------------------------- data ---- */

static uint64_t special(const char *type)
{
	static const uint32_t f32[] = { 0,	    0x80000000, 0x3f800000,
					0xbf800000, 0x7f800000, 0xff800000,
					0x7fc00000, 1,		0x807fffff,
					0x00800000, 0x7f7fffff, 0x4b000001 };
	static const uint16_t f16[] = { 0,	0x8000, 0x3c00, 0xbc00, 0x7c00,
					0xfc00, 0x7e00, 1,	0x83ff, 0x0400,
					0x7bff, 0x6400 };
	static const uint64_t f64[] = {
		0, 1ull << 63, 0x3ff0000000000000, 0x7ff0000000000000,
		0xfff0000000000000, 0x7ff8000000000000, 1, 0x41f0000000000000
	};
	static const int64_t in[] = { 0, 1, -1, 2, 7, INT32_MAX, INT32_MIN,
				      INT64_MAX, INT64_MIN, 255, 65535 };
	uint64_t r = test_random(&seed);

	if (!strcmp(type, "f32"))
		return f32[r % ARRAY_SIZE(f32)];
	if (!strcmp(type, "f64"))
		return f64[r % ARRAY_SIZE(f64)];
	if (!strcmp(type, "bf16"))
		return f32[r % ARRAY_SIZE(f32)] >> 16;
	if (type[0] == 'f')
		return f16[r % ARRAY_SIZE(f16)] |
		       (uint32_t)f16[r / 16 % ARRAY_SIZE(f16)] << 16;
	return (uint64_t)in[r % ARRAY_SIZE(in)];
}

/* A number of moderate size, so that results are not all infinite. */
static uint64_t moderate(const char *type)
{
	double x = (double)test_random_f32(&seed) * 100;
	float f = (float)x;
	uint32_t w;
	uint64_t q;

	memcpy(&w, &f, 4);
	memcpy(&q, &x, 8);
	if (!strcmp(type, "f32"))
		return w;
	if (!strcmp(type, "f64"))
		return q;
	if (!strcmp(type, "bf16"))
		return w >> 16;
	if (type[0] == 'f')
		return 0x3c003c00 ^ (test_random(&seed) & 0x87ff87ff);
	return test_random(&seed) >> test_random(&seed) % 64;
}

static void fill(uint8_t *p, const char *type)
{
	uint32_t n = type_bytes(type);

	for (int k = 0; k < N; k++) {
		uint64_t v = test_random(&seed);

		if (v % 4 == 0)
			v = special(type);
		else if (v % 4 < 3)
			v = moderate(type);
		memcpy(p + (uint32_t)k * n, &v, n < 8 ? n : 8);
	}
}

static bool is_nan(uint32_t bits, uint64_t v)
{
	return bits == 16 ? (v & 0x7fff) > 0x7c00 :
	       bits == 32 ? (v & 0x7fffffff) > 0x7f800000 :
			    (v << 1) > 0xffe0000000000000;
}

static int64_t ordered(uint32_t v)
{
	return v & 0x80000000 ? -(int64_t)(v & 0x7fffffff) : (int64_t)v;
}

/* Denormals may count as zero where an approximation is allowed. */
static bool is_within(uint32_t a, uint32_t b, int ulps)
{
	if (ulps && (a & 0x7f800000) == 0 && (b & 0x7f800000) == 0)
		return true;
	return llabs(ordered(a) - ordered(b)) <= ulps;
}

static bool same(const char *type, const uint8_t *a, const uint8_t *b, int ulps)
{
	uint32_t n = type_bytes(type), w = n;
	uint64_t x = 0, y = 0;

	if (type[0] == 'i')
		return !memcmp(a, b, n);
	w = strchr(type, 'x') ? 2 : n;
	for (uint32_t k = 0; k < n; k += w) {
		x = y = 0;
		memcpy(&x, a + k, w);
		memcpy(&y, b + k, w);
		if (type[0] == 'b' && (x & 0x7fff) > 0x7f80 &&
		    (y & 0x7fff) > 0x7f80)
			continue;
		if (type[0] == 'f' && is_nan(8 * w, x) && is_nan(8 * w, y))
			continue;
		if (x != y &&
		    !(w == 4 && is_within((uint32_t)x, (uint32_t)y, ulps)))
			return false;
	}
	return true;
}

/* Where denormals may be flushed the operands are not to be ones. */
static void no_denormals(uint8_t *p)
{
	for (int k = 0; k < N; k++) {
		uint32_t v;

		memcpy(&v, p + 4 * k, 4);
		if (!(v & 0x7f800000))
			v &= 0x80000000;
		memcpy(p + 4 * k, &v, 4);
	}
}

static void test_op(const struct op_test *t, int level)
{
	static uint8_t in[3][8 * N], got[8 * N], want[8 * N];
	const char *res = t->result ? t->result : t->type;
	struct ssa_call c = { 0 };
	struct buf text = { 0 };
	struct cc_options o;
	struct ssa_func *f;
	struct err e = { 0 };
	bool good;
	int bad = -1;

	kernel_text(t, &text);
	f = ssa_text(text.data);
	for (int k = 0; k < t->n_args; k++) {
		fill(in[k], t->type);
		if (t->ulps)
			no_denormals(in[k]);
		call_buffer(&c, in[k], N * type_bytes(t->type));
	}
	call_buffer(&c, want, N * type_bytes(res));
	memset(want, 0, sizeof(want));
	memset(got, 0, sizeof(got));
	good = call_run(f, &c, N / 64, 1, NULL, &e);
	c.arg[t->n_args] = (uint64_t)(uintptr_t)got;
	c.range[t->n_args].base = got;
	cc_test_options(&o);
	o.level = level;
	good = good && cc_try(&dev, f, &o, &c, N / 64, 1, NULL, &e);
	for (int k = 0; good && bad < 0 && k < N; k++)
		if (!same(res, got + (uint32_t)k * type_bytes(res),
			  want + (uint32_t)k * type_bytes(res), t->ulps))
			bad = k;
	if (!ok(good && bad < 0, "%s of %s to %s, -O%d", t->op, t->type, res,
		level)) {
		uint64_t x[5] = { 0 };

		if (e.msg[0])
			diag("%s", e.msg);
		for (int k = 0; bad >= 0 && k < t->n_args; k++)
			memcpy(&x[k],
			       in[k] + (uint32_t)bad * type_bytes(t->type),
			       type_bytes(t->type) < 8 ? type_bytes(t->type) :
							 8);
		if (bad >= 0) {
			memcpy(&x[3], got + (uint32_t)bad * type_bytes(res),
			       type_bytes(res));
			memcpy(&x[4], want + (uint32_t)bad * type_bytes(res),
			       type_bytes(res));
			diag("element %d: %#llx %#llx %#llx: got %#llx, "
			     "wanted %#llx",
			     bad, (unsigned long long)x[0],
			     (unsigned long long)x[1],
			     (unsigned long long)x[2],
			     (unsigned long long)x[3],
			     (unsigned long long)x[4]);
		}
	}
	ssa_func_free(f);
	buf_fini(&text);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (size_t k = 0; k < ARRAY_SIZE(ops); k++)
		test_op(&ops[k], 3);
	cc_dev_close(&dev);
	return plan_done();
}
