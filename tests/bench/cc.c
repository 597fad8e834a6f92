/*
 * How long compiling takes: the examples of compiler/dsl/dsl.h and a large
 * random kernel, at the highest level, against the budget of 50 ms for one
 * kernel that just-in-time compiling has; and the whole library, of bf16,
 * against
 * 10 s for all of it.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/driver/cc.h"
#include "compiler/kernels/kernels.h"
#include "tests/bench/rows.h"
#include "tests/compiler/dsl-examples.h"
#include "tests/compiler/ssa-gen.h"

enum { ROUNDS = 9, BUDGET_MS = 50, LIBRARY_MS = 10000 };

static void report_kernel(struct bench_rows *r, const char *name,
			  const double *ms, unsigned n, unsigned insts)
{
	bench_case(r, name, NULL);
	const double median = bench_time(r, ms, n, 1e-3);

	printf("compile %-10s %5u instructions %7.2f ms median of %u: %.2f of "
	       "the budget of %d ms\n",
	       name, insts, median, n,
	       bench_ratio_one(r, "the budget of 50 ms", RES_LOWER,
			       median / BUDGET_MS), BUDGET_MS);
}

static bool bench(struct bench_rows *r, const char *name, struct ssa_func *f,
		  struct err *e)
{
	const unsigned rounds = bench_rounds(ROUNDS);
	struct cc_options o;
	struct cc_object obj = { 0 };
	double ms[ROUNDS];
	bool good = f != NULL;

	cc_options_init(&o);
	for (unsigned k = 0; good && k < rounds; k++) {
		uint64_t t = time_mono_ns();

		cc_object_fini(&obj);
		good = cc_compile(f, &o, &obj, e);
		ms[k] = (double)(time_mono_ns() - t) / 1e6;
	}
	if (good)
		report_kernel(r, name, ms, rounds, obj.stats.insts);
	cc_object_fini(&obj);
	ssa_func_free(f);
	return good || err_wrap(e, "%s", name);
}

/* Building and compiling one kernel; the fastest of three. */
static double library_ms(const struct kernel_entry *k, struct err *e)
{
	const struct kernel_shape s = { .type = DSL_BF16 };
	double least = HUGE_VAL;

	for (int i = 0; i < 3; i++) {
		uint64_t t = time_mono_ns();
		struct cc_object obj = { 0 };
		struct cc_options o;
		struct ssa_func *f = kernel_build(k, &s, e);

		cc_options_init(&o);
		if (!f || !cc_compile(f, &o, &obj, e))
			return -1;
		least = fmin(least, (double)(time_mono_ns() - t) / 1e6);
		cc_object_fini(&obj);
		ssa_func_free(f);
	}
	return least;
}

static void report_library(struct bench_rows *r, double all,
			   const char *slowest, double most)
{
	char params[64];

	res_params(params, sizeof(params), "type:s kernels:u", "bf16",
		   (unsigned)kernel_count);
	bench_case(r, "the library", params);
	printf("compile the library: %zu kernels in %.0f ms, %.3f of the "
	       "budget of %d ms; ", kernel_count, bench_time(r, &all, 1, 1e-3),
	       bench_ratio_one(r, "the budget of 10 s", RES_LOWER,
			       all / LIBRARY_MS), LIBRARY_MS);
	bench_case(r, "the library's slowest", params);
	printf("the slowest, %s, takes %.1f ms, %.2f of %d\n", slowest,
	       bench_time(r, &most, 1, 1e-3),
	       bench_ratio_one(r, "the budget of 50 ms", RES_LOWER,
			       most / BUDGET_MS), BUDGET_MS);
}

static bool bench_library(struct bench_rows *r, struct err *e)
{
	const char *slowest = "";
	double all = 0, most = 0;

	for (size_t i = 0; i < kernel_count; i++) {
		double ms = library_ms(&kernel_table[i], e);

		if (ms < 0)
			return err_wrap(e, "%s", kernel_table[i].name);
		all += ms;
		if (ms > most) {
			most = ms;
			slowest = kernel_table[i].name;
		}
	}
	report_library(r, all, slowest, most);
	return true;
}

int main(int argc, char **argv)
{
	struct gen_kernel g;
	struct bench_rows r;
	struct err e = { 0 };

	bench_open(&r, "cc", argc, argv);
	gen_kernel(&g, 6508, GEN_ALL);
	bool good = bench(&r, "saxpy", example_saxpy(&e), &e) &&
		    bench(&r, "softmax", example_softmax(&e), &e) &&
		    bench(&r, "tile", example_tile(&e), &e) &&
		    bench(&r, "random", g.f, &e) && bench_library(&r, &e);
	return bench_close(&r, good, &e);
}
