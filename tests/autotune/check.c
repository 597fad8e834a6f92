/*
 * The check finds right kernels right and wrong ones wrong: mutants of the
 * kernel that should have run, and of what it left in memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"
#include "tests/tap.h"

static struct tune_bench bench;

static bool compiled(const struct gemm_op *op, const struct gemm_config *c,
		     struct gemm_code *code)
{
	struct err e = { 0 };

	*code = (struct gemm_code){ .n = 0 };
	return gemm_compile(op, c, NULL, code, &e) ||
	       ok(false, "compiles: %s", e.msg);
}

static struct tune_problem problem(const char *dtype, const char *layout,
				   const char *epilogue, uint32_t m, uint32_t n,
				   uint32_t k)
{
	struct tune_problem p = { .m = m, .n = n, .k = k, .batch = 1 };
	struct err e = { 0 };

	if (!tune_op_parse(dtype, layout, epilogue, &p.op, &e))
		diag("%s", e.msg);
	return p;
}

static struct tune_check_result check(const struct tune_problem *p,
			       const struct gemm_config *c,
			       const struct gemm_code *code)
{
	struct tune_check_result out = { 0 };
	struct err e = { 0 };

	if (!tune_check(&bench, p, c, code, 11, &out, &e))
		diag("no answer: %s", e.msg);
	return out;
}

static void test_right(void)
{
	static const struct {
		const char *dtype, *layout, *epilogue;
		uint32_t m, n, k, batch;
	} t[] = {
		{ "bf16", "nn", "", 64, 96, 128, 1 },
		{ "bf16:f32", "nt", "", 33, 65, 47, 1 },
		{ "f16", "tn", "bias,silu", 70, 64, 64, 1 },
		{ "bf16", "nt", "scale,gelu,residual", 40, 56, 100, 1 },
		{ "bf16", "nt", "swiglu", 48, 64, 64, 1 },
		{ "f16:f32", "nn", "scale,beta", 17, 31, 33, 1 },
		{ "i8", "nt", "", 64, 64, 128, 1 },
		{ "bf16", "nt", "", 32, 32, 64, 3 },
		{ "bf16", "nn", "", 1024, 1024, 512, 1 },
		{ "bf16", "nt", "", 1, 1, 1, 1 },
		{ "f16w4:f32", "nt", "beta", 70, 65, 96, 1 },
		{ "f16w8:bf16", "nt", "swiglu", 33, 48, 64, 2 },
		{ "bf16w4:f32", "nt", "", 512, 512, 512, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct tune_problem p = problem(t[i].dtype, t[i].layout,
						t[i].epilogue, t[i].m, t[i].n,
						t[i].k);
		struct gemm_config c = gemm_default(&p.op);
		struct gemm_code code;
		char name[TUNE_TEXT];

		p.batch = t[i].batch;
		gemm_op_name(&p.op, name, sizeof(name));
		if (!compiled(&p.op, &c, &code))
			continue;
		struct tune_check_result r = check(&p, &c, &code);
		ok(r.pass, "%s %ux%ux%u is right: %s", name, p.m, p.n, p.k,
		   r.detail);
		ok(r.compared >= (uint64_t)p.m * p.n * p.batch ||
		   r.compared > 10000, "%llu elements were compared",
		   (unsigned long long)r.compared);
		gemm_code_fini(&code);
	}
}

/* A kernel that computes something else than it is said to. */
static void test_other_kernel(const char *what, const char *said_epilogue,
			      const char *layout, const char *real_epilogue,
			      const char *real_layout, uint32_t k)
{
	struct tune_problem p = problem("bf16", layout, said_epilogue, 64, 64,
					k);
	struct tune_problem q = problem("bf16", real_layout, real_epilogue,
					64, 64, k);
	struct gemm_config c = gemm_default(&p.op);
	struct gemm_code code;

	if (!compiled(&q.op, &c, &code))
		return;
	struct tune_check_result r = check(&p, &c, &code);
	ok(!r.pass && r.wrong > 100, "%s: %llu of %llu elements are wrong (%s)",
	   what, (unsigned long long)r.wrong, (unsigned long long)r.compared,
	   r.detail);
	gemm_code_fini(&code);
}

/* What lies in C after a run is changed, then looked at. */
static struct tune_check_result look_at(const struct tune_problem *p,
				 void (*spoil)(uint16_t *c, uint32_t n))
{
	struct gemm_config c = gemm_default(&p->op);
	struct tune_check_result out = { .seed = 5 };
	struct tune_view v = tune_view_all(p);
	struct tune_loaded loaded = { .n = 0 };
	struct gemm_launch l;
	struct gemm_code code;
	struct err e = { 0 };

	if (!compiled(&p->op, &c, &code))
		return out;
	if (!tune_bench_set(&bench, p, TUNE_NORMAL, out.seed, &e) ||
	    !tune_bench_load(&bench, &code, &loaded, &e) ||
	    !tune_bench_launch(&bench, &c, &v, &l, &e) ||
	    !tune_bench_run(&bench, &loaded, &l, NULL, &e))
		diag("%s", e.msg);
	spoil(bench.c->cpu, p->n);
	tune_check_block(&bench, &c, &v, true, &out);
	tune_bench_unload(&loaded);
	gemm_code_fini(&code);
	return out;
}

static void nothing(uint16_t *c, uint32_t n)
{
	(void)c;
	(void)n;
}
static void one_bit(uint16_t *c, uint32_t n) /* two units in the last place */
{
	c[3 * n + 5] ^= 2;
}
static void all_zero(uint16_t *c, uint32_t n)
{
	memset(c, 0, (size_t)n * n * 2);
}
static void last_column(uint16_t *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		c[i * n + n - 1] = 0x7fff;
}
static void swapped_rows(uint16_t *c, uint32_t n)
{
	for (uint32_t j = 0; j < n; j++) {
		uint16_t x = c[j];

		c[j] = c[8 * n + j];
		c[8 * n + j] = x;
	}
}

static void test_spoilt(void)
{
	struct tune_problem p = problem("bf16", "nt", "", 80, 80, 256);

	is_u64(look_at(&p, nothing).wrong, 0, "C as it was: nothing is wrong");
	is_u64(look_at(&p, one_bit).wrong, 1,
	       "one element two units in the last place off is found");
	ok(look_at(&p, all_zero).wrong > 80 * 80 * 9 / 10,
	   "a C of zeros is wrong");
	is_u64(look_at(&p, last_column).wrong, 80, "a tail that is NaN is");
	ok(look_at(&p, swapped_rows).wrong > 150, "rows changed over are");
}

/* The accumulator's error for sums of 1024 stays far below what is allowed. */
static void test_bound(void)
{
	struct tune_problem p = problem("bf16:f32", "nt", "", 64, 64, 1024);
	struct gemm_config c = gemm_default(&p.op);
	struct gemm_code code;

	if (!compiled(&p.op, &c, &code))
		return;
	struct tune_check_result r = check(&p, &c, &code);
	ok(r.pass && r.worst < 0.5, "f32 sums use %.3f of the bound",
	   r.worst);
	gemm_code_fini(&code);
}

static void test_classes(void)
{
	struct gemm_config c = { .m = 64, .n = 32, .k = 16, .unroll = 1,
				 .buffers = 2, .split = 1 };
	struct tune_problem p = problem("bf16", "nt", "", 4096, 4096, 4096);
	char a[TUNE_TEXT], b[TUNE_TEXT];
	uint64_t seed = 42;

	tune_class(&p, &c, a);
	is_str(a, "m= n= k=10", "4096 cubed is whole tiles, an even trip");
	p.k = 16 * 17;
	tune_class(&p, &c, a);
	is_str(a, "m= n= k=9", "17 steps are as 9: they end in one buffer");
	p.m = 63;
	p.n = 33;
	p.k = 1;
	tune_class(&p, &c, a);
	is_str(a, "m< n+ k<1", "odd sizes are told apart");
	for (int i = 0; i < 500; i++) {
		c.split = (uint16_t)(1 + random_next(&seed) % 4);
		p.m = (uint32_t)(1 + random_next(&seed) % 3000);
		p.n = (uint32_t)(1 + random_next(&seed) % 3000);
		p.k = (uint32_t)(1 + random_next(&seed) % 3000);
		struct tune_problem q = tune_reduced(&p, &c);

		tune_class(&p, &c, a);
		tune_class(&q, &c, b);
		if (strcmp(a, b) || q.m > p.m || q.n > p.n || q.k > p.k) {
			ok(false, "%ux%ux%u /%u is %s, reduced to %ux%ux%u it "
			   "is %s", p.m, p.n, p.k, c.split, a, q.m, q.n, q.k,
			   b);
			return;
		}
	}
	ok(true, "500 random problems reduce to their class");
}

int main(void)
{
	struct err e = { 0 };

	test_classes();
	if (!ok(tune_bench_open(&bench, "soft", NULL, NULL, &e), "the soft device: %s",
		e.msg))
		return plan_done();
	test_right();
	test_other_kernel("another layout", "", "nt", "", "nn", 64);
	test_other_kernel("a bias that is left out", "bias", "nt", "", "nt",
			  64);
	test_other_kernel("an activation too many", "", "nt", "relu", "nt",
			  64);
	test_spoilt();
	test_bound();
	tune_bench_close(&bench);
	return plan_done();
}
