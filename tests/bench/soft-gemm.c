/*
 * Tile products of our compiler on the gfx1100 in software: what the host gets
 * out of its own units in a whole dispatch, launch, memory and LDS included.
 * FLOP/s of its processor time, and their share of what a core's unit does in
 * registers (cpu_gemm_spin()): FMA for floats, for i8 the best for bytes that is
 * exact.  A sample of each result is checked.
 *
 *	tests/bench/soft-gemm [N]
 */
#include <time.h>

#include "autotune/cpu/gemm.h"
#include "tests/bench/rows.h"
#include "tests/kernels/gemm-run.h"

enum { ROUNDS = 7, LOOKED_AT = 200, SPINS = 200000 };

static const struct {
	struct gemm_op op;
	const char *config;
} product[] = {
	{ { .in = DSL_BF16, .out = DSL_F32, .b_trans = true },
	  "128x128x32_w2x2_b2_p1_u1_g0_pad" },
	{ { .in = DSL_BF16, .out = DSL_F32 },
	  "128x128x32_w2x2_b2_p1_u1_g0_pad" },
	{ { .in = DSL_F16, .out = DSL_F32, .b_trans = true },
	  "128x128x32_w2x2_b2_p1_u1_g0_pad" },
	{ { .in = DSL_F16, .out = DSL_F16, .b_trans = true },
	  "128x128x32_w2x2_b2_p1_u1_g0_pad" },
	{ { .in = DSL_I8, .out = DSL_I32, .b_trans = true },
	  "128x128x32_w2x2_b2_p1_u1_g0_pad" },
	{ { .in = DSL_BF16, .out = DSL_F32, .b_trans = true },
	  "64x64x64_w2x2_b2_p1_u1_g0_pad_wgp" },
};

static double cpu_clock(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* FLOP/s of a unit of this core. */
static double spin_unit(unsigned level)
{
	const double from = cpu_clock(CLOCK_THREAD_CPUTIME_ID);
	const double flop = cpu_gemm_spin(level, SPINS);

	return flop / (cpu_clock(CLOCK_THREAD_CPUTIME_ID) - from);
}

/* Of the units whose arithmetic is exact, the best for a type. */
static unsigned unit_of(enum dsl_type in)
{
	if (in == DSL_I8)
		for (unsigned i = CPU_LEVEL_VNNI; i < CPU_LEVELS; i++)
			if (cpu_gemm_has(i))
				return i;
	return (unsigned)cpu_level("");
}

/* A product, where its operands are on the device. */
struct placed {
	struct gemm_case x;
	struct gemm_code code;
	struct gemm_launch launch;
	struct gemm_loaded loaded;
	struct kfd_mem *a, *b, *c;
};

static bool place_operands(struct cc_dev *d, struct placed *p, struct err *e)
{
	struct gemm_operands o = { .alpha = 1 };

	return gemm_put(d, &p->x.a, &p->a, &o.a, e) &&
	       gemm_put(d, &p->x.b, &p->b, &o.b, e) &&
	       gemm_put(d, &p->x.out, &p->c, &o.c, e) &&
	       gemm_launch(&p->x.op, &p->x.c, &p->x.s, &o, &p->launch, e);
}

/* How many of some elements of C are wrong. */
static bool is_right(struct cc_dev *d, struct placed *p, struct err *e)
{
	const struct gemm_dims dims = gemm_dims(&p->x);
	struct arr found = p->x.out;
	uint64_t seed = 7;
	size_t wrong = 0;

	found.bits = xcalloc(found.n, arr_bytes(&found));
	p->x.want = xcalloc(found.n, sizeof(double));
	p->x.tol = xcalloc(found.n, sizeof(double));
	bool good = kfd_read(d->dev, found.bits, p->c, 0,
			     found.n * arr_bytes(&found), e);
	for (int i = 0; good && i < LOOKED_AT; i++) {
		const uint64_t row = test_random(&seed) % p->x.s.m;
		const uint64_t column = test_random(&seed) % p->x.s.n;
		const uint64_t at = row * p->x.s.n + column;

		gemm_element(&p->x, &dims, 0, row, column);
		wrong += !(fabs(arr_get(&found, at) - p->x.want[at]) <=
			   p->x.tol[at]);
	}
	free(found.bits);
	return good && (!wrong || err_set(e, ERR_DEVICE, "%zu of %d elements "
					  "are wrong", wrong, LOOKED_AT));
}

static bool measure_product(struct bench_rows *r, struct cc_dev *d,
			    struct placed *p, struct table *t, struct err *e)
{
	const unsigned rounds = bench_rounds(ROUNDS);
	const unsigned level = unit_of(p->x.op.in);
	const uint32_t n = p->x.s.n;
	const double flop = 2.0 * n * n * n;
	double rate[ROUNDS], share[ROUNDS];
	char op[100], how[120], params[256];

	/* The first makes code for the host, which stays. */
	if (!gemm_load(d, &p->code, &p->launch, &p->loaded, e) ||
	    !gemm_steps(d, &p->loaded, &p->launch, e) || !is_right(d, p, e))
		return false;
	for (unsigned i = 0; i < rounds; i++) {
		const double from = cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
		if (!gemm_steps(d, &p->loaded, &p->launch, e))
			return false;
		rate[i] = flop / (cpu_clock(CLOCK_PROCESS_CPUTIME_ID) - from);
		share[i] = rate[i] / spin_unit(level);
	}
	gemm_op_name(&p->x.op, op, sizeof(op));
	gemm_config_name(&p->x.c, how, sizeof(how));
	snprintf(params, sizeof(params), "{\"op\":\"%s\",\"n\":%u,"
		 "\"config\":\"%s\"}", op, n, how);
	bench_case(r, "product", params);
	bench_checked(r, true, "double precision");
	table_row(t);
	table_cell(t, 0, "%s", op);
	table_cell(t, 1, "%u", n);
	table_cell(t, 2, "%.1f", bench_rate(r, "FLOP/s", rate, rounds) * 1e-9);
	table_cell(t, 3, "%.0f %%", 100 * bench_ratio(r, "unit", RES_HIGHER,
						      share, rounds));
	table_cell(t, 4, "%s", how);
	table_cell(t, 5, "%s", cpu_gemm_unit(level));
	return true;
}

static bool run_one(struct bench_rows *r, struct cc_dev *d, size_t which,
		    uint32_t n, struct table *t, struct err *e)
{
	struct cc_options options;
	struct placed p = { .x = { .op = product[which].op, .alpha = 1,
				   .s = { .m = n, .n = n, .k = n } } };
	struct kfd_mem **m[] = { &p.a, &p.b, &p.c };
	uint64_t seed = 1;

	cc_test_options(&options);
	if (!gemm_config_parse(product[which].config, &p.x.c, e) ||
	    !gemm_compile(&p.x.op, &p.x.c, &options, &p.code, e))
		return false;
	gemm_case_fill(&p.x, &seed);
	bool good = place_operands(d, &p, e) &&
		    measure_product(r, d, &p, t, e);
	gemm_unload(&p.loaded);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		if (*m[i])
			kfd_mem_free(d->dev, *m[i]);
	gemm_case_free(&p.x);
	gemm_code_fini(&p.code);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t size[] = { 512, 1024 };
	const unsigned long only = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	struct bench_rows r;
	struct cc_dev d;
	struct err e = { 0 };
	struct table t;

	bench_open(&r, "soft-gemm", argc, argv);
	table_init(&t, "soft: product,#N,#GFLOP/s,#of the unit,configuration,unit");
	bool good = cc_dev_open(&d, false, &e);
	for (size_t i = 0; good && i < 2 * ARRAY_SIZE(product); i++)
		if (!only || only == size[i % 2])
			good = run_one(&r, &d, i / 2, size[i % 2], &t, &e);
	good = good && table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	cc_dev_close(&d);
	return bench_close(&r, good, &e);
}
