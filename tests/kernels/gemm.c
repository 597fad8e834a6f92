/*
 * Matrix products: random operations, configurations and shapes on the soft
 * device in checked mode against sums in double precision.  T0_SLOW=1 runs
 * many more of them.
 */
#include "tests/kernels/gemm-run.h"
#include "tests/tap.h"

static uint64_t seed = 2600;
static struct cc_dev dev;
static struct cc_options options;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(test_random(&seed) >> 33) % n;
}

#define PICK(...) \
	((const int[]){ __VA_ARGS__ }) \
		[pick(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))]

static struct gemm_op random_op(void)
{
	struct gemm_op op = {
		.in = (enum dsl_type)PICK(DSL_BF16, DSL_BF16, DSL_F16, DSL_I8,
					  DSL_F32),
		.out = (enum dsl_type)PICK(DSL_F32, DSL_BF16, DSL_F16),
		.a_trans = pick(2), .b_trans = pick(2), .beta = pick(3) == 0,
	};
	const uint32_t act[] = { 0, 0, GEMM_RELU, GEMM_SILU, GEMM_GELU,
				 GEMM_SWIGLU };

	op.epilogue = act[pick(ARRAY_SIZE(act))];
	op.epilogue |= pick(2) ? GEMM_SCALE : 0;
	op.epilogue |= pick(2) ? GEMM_BIAS : 0;
	op.epilogue |= pick(3) ? 0 : GEMM_RESIDUAL;
	op.epilogue |= pick(5) ? 0 : GEMM_SHRINK;
	if (op.in == DSL_I8 && pick(2))
		op = (struct gemm_op){ .in = DSL_I8, .out = DSL_I32,
				       .a_trans = op.a_trans,
				       .b_trans = op.b_trans };
	if ((op.in == DSL_F16 || op.in == DSL_BF16) && pick(2)) {
		op.weights = pick(2) ? DSL_I8 : DSL_U8;
		op.b_trans = true;
	}
	if (op.epilogue & GEMM_SWIGLU)
		op.beta = false;
	/* Sums of products of bytes are large: scaled, so that SiLU bends. */
	if (op.in == DSL_I8 && op.out != DSL_I32)
		op.epilogue |= GEMM_SCALE;
	return op;
}

static struct gemm_config random_config(const struct gemm_op *op)
{
	struct gemm_config c;
	struct err e = { 0 };

	do {
		c = (struct gemm_config){
			.m = (uint16_t)PICK(16, 32, 64, 64, 96, 128),
			.n = (uint16_t)PICK(16, 32, 64, 64, 96, 128),
			.k = (uint16_t)PICK(16, 32, 32, 48, 64),
			.waves_m = (uint8_t)PICK(1, 2, 2, 4),
			.waves_n = (uint8_t)PICK(1, 2, 2, 4),
			.buffers = (uint8_t)PICK(1, 2, 2, 3),
			.prefetch = (uint8_t)PICK(0, 1, 1, 2),
			.unroll = (uint8_t)PICK(1, 1, 2, 3, 4),
			.order = (uint8_t)PICK(0, 1, 2, 4, 8),
			.lds = pick(2) ? GEMM_LDS_PAD : GEMM_LDS_SWIZZLE,
			.cu_mode = pick(2), .even = pick(5) == 0,
			.b_direct = pick(3) == 0,
			.split = (uint16_t)PICK(1, 1, 2, 3),
		};
		if (op->in == DSL_F32)
			c.k = (uint16_t)PICK(4, 8, 16);
		if (op->weights)
			c.k = (uint16_t)PICK(32, 32, 64, 96, 128);
		if (pick(5) == 0) {
			c.stream_k = true;
			c.split = (uint16_t)(1 + pick(20));
		}
	} while (!gemm_check(op, &c, &e));
	return c;
}

static uint32_t random_side(uint32_t tile)
{
	const uint32_t r = pick(8);

	if (r == 0)
		return pick(4);
	if (r < 4)
		return tile * (1 + pick(2)) + pick(2) * 8;
	return 1 + pick(2 * tile + 5);
}

static struct gemm_shape random_shape(const struct gemm_op *op,
				      const struct gemm_config *c)
{
	struct gemm_shape s = { .m = random_side(c->m), .n = random_side(c->n),
				.k = random_side(3 * c->k),
				.batch = pick(3) ? 0 : 1 + pick(3) };
	if (op->weights)
		s.k = s.k / 32 * 32;
	struct gemm_case x = { .op = *op, .s = s };
	const struct gemm_dims d = gemm_dims(&x);
	const uint32_t step = op->weights ? 32 : 1;

	if (pick(2)) {
		s.lda = d.lda + pick(9);
		s.ldb = d.ldb + step * pick(9);
		s.ldc = d.ldc + pick(9);
		x.s = s;
	}
	if (c->even) {
		const bool pair = op->epilogue & GEMM_SWIGLU;

		s.m = c->m * (1 + pick(2));
		s.n = (pair ? c->n / 2 : c->n) * (1 + pick(2));
		s.k = c->k * pick(5);
		s.lda = s.ldb = s.ldc = 32 * (1 + s.m + 2 * s.n + s.k);
		x.s = s;
	}
	const struct gemm_dims w = gemm_dims(&x);

	s.stride_a = w.a + pick(3);
	s.stride_b = w.b + step * pick(3);
	s.stride_c = w.c + pick(3);
	if (c->even)
		s.stride_a = w.a, s.stride_b = w.b, s.stride_c = w.c;
	return s;
}

/* One shape; the number of things wrong. */
static size_t one_shape(struct gemm_case *x, const struct gemm_code *code)
{
	struct err e = { 0 };
	size_t wrong;
	char name[400];

	x->alpha = x->op.in == DSL_I8 ? 0x1p-13f : 0.75f;
	x->beta = -1.5f;
	gemm_case_fill(x, &seed);
	gemm_reference(x);
	if (!gemm_case_run(&dev, x, code, &e)) {
		diag("%s", e.msg);
		wrong = 1;
	} else {
		wrong = judge(&x->out, x->want, x->tol) +
			mutants_missed(&x->out, x->want, x->tol);
	}
	if (wrong) {
		gemm_case_name(x, name, sizeof(name));
		diag("%s: %zu wrong", name, wrong);
	}
	gemm_case_free(x);
	return wrong;
}

/* One operation and configuration; shapes of it. */
static size_t one_kernel(int shapes, size_t *cases)
{
	struct gemm_case x = { .op = random_op() };
	struct gemm_code code;
	struct err e = { 0 };
	size_t wrong = 0;

	x.c = random_config(&x.op);
	if (!gemm_compile(&x.op, &x.c, &options, &code, &e)) {
		char name[100];

		gemm_op_name(&x.op, name, sizeof(name));
		diag("%s: %s", name, e.msg);
		return 1;
	}
	for (int k = 0; k < shapes; k++) {
		x.s = random_shape(&x.op, &x.c);
		wrong += one_shape(&x, &code) != 0;
		++*cases;
	}
	gemm_code_fini(&code);
	return wrong;
}

/* What the engine launches where nothing was tuned, by the rows of A. */
static void test_defaults(void)
{
	static const struct gemm_op ops[] = {
		{ .in = DSL_BF16, .out = DSL_F32, .b_trans = true,
		  .beta = true },
		{ .in = DSL_BF16, .out = DSL_BF16, .b_trans = true,
		  .epilogue = GEMM_SWIGLU },
		{ .in = DSL_F16, .out = DSL_F32, .b_trans = true,
		  .weights = DSL_U8, .beta = true, .epilogue = GEMM_SCALE },
		{ .in = DSL_F16, .out = DSL_F16, .b_trans = true,
		  .weights = DSL_I8, .epilogue = GEMM_SWIGLU | GEMM_SHRINK },
	};
	static const uint32_t about[][3] = { { 16, 1024, 3072 },
					     { 16, 24576, 64 },
					     { 20, 1024, 64 },
					     { 128, 4096, 64 },
					     { 512, 6144, 64 } };

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		for (size_t j = 0; j < ARRAY_SIZE(about); j++) {
			struct gemm_case x = {
				.op = ops[i],
				.c = gemm_default_for(&ops[i], about[j][0],
						      about[j][1],
						      about[j][2]),
			};
			struct gemm_code code;
			struct err e = { 0 };
			char op[100], name[100];
			size_t wrong = 0;

			gemm_op_name(&x.op, op, sizeof(op));
			gemm_config_name(&x.c, name, sizeof(name));
			if (!gemm_compile(&x.op, &x.c, &options, &code, &e)) {
				ok(false, "%s %s: %s", op, name, e.msg);
				continue;
			}
			x.s = (struct gemm_shape){ .m = x.c.m + 3,
						   .n = x.c.n + 8,
						   .k = 4 * x.c.k + 32 };
			wrong += one_shape(&x, &code);
			is_u64(wrong, 0, "%s %s is right", op, name);
			is_u64(code.object[0].stats.spills, 0, "and spills "
			       "nothing");
			gemm_code_fini(&code);
		}
}

int main(void)
{
	const bool slow = getenv("T0_SLOW") != NULL;
	const int kernels = slow ? 250 : 12;
	struct err e = { 0 };
	size_t wrong = 0, cases = 0;

	diag("seed %llu", (unsigned long long)seed);
	cc_test_options(&options);
	if (!ok(cc_dev_open(&dev, true, &e), "the soft device opens"))
		return plan_done();
	for (int k = 0; k < kernels; k++)
		wrong += one_kernel(3, &cases);
	is_u64(wrong, 0, "%zu random products of %d kernels", cases, kernels);
	test_defaults();
	cc_dev_close(&dev);
	return plan_done();
}
