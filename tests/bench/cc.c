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
#include "tests/compiler/dsl-examples.h"
#include "tests/compiler/ssa-gen.h"

enum { ROUNDS = 9, BUDGET_MS = 50, LIBRARY_MS = 10000 };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void bench(const char *name, struct ssa_func *f)
{
	struct cc_options o;
	struct cc_object obj = { 0 };
	struct err e = { 0 };
	double ms[ROUNDS];

	cc_options_init(&o);
	for (int k = 0; k < ROUNDS; k++) {
		uint64_t t = time_mono_ns();

		cc_object_fini(&obj);
		if (!cc_compile(f, &o, &obj, &e)) {
			printf("%s: %s\n", name, e.msg);
			ssa_func_free(f);
			return;
		}
		ms[k] = (double)(time_mono_ns() - t) / 1e6;
	}
	qsort(ms, ROUNDS, sizeof(*ms), by_value);
	printf("compile %-10s %5u instructions %7.2f ms median of %d: %.2f of "
	       "the budget of %d ms\n",
	       name, obj.stats.insts, ms[ROUNDS / 2], ROUNDS,
	       ms[ROUNDS / 2] / BUDGET_MS, BUDGET_MS);
	cc_object_fini(&obj);
	ssa_func_free(f);
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

static void bench_library(void)
{
	const char *slowest = "";
	double all = 0, most = 0;
	struct err e = { 0 };

	for (size_t i = 0; i < kernel_count; i++) {
		double ms = library_ms(&kernel_table[i], &e);

		if (ms < 0) {
			printf("%s: %s\n", kernel_table[i].name, e.msg);
			return;
		}
		all += ms;
		if (ms > most) {
			most = ms;
			slowest = kernel_table[i].name;
		}
	}
	printf("compile the library: %zu kernels in %.0f ms, %.3f of the "
	       "budget of %d ms; the slowest, %s, takes %.1f ms, %.2f of %d\n",
	       kernel_count, all, all / LIBRARY_MS, LIBRARY_MS, slowest, most,
	       most / BUDGET_MS, BUDGET_MS);
}

int main(void)
{
	struct gen_kernel g;
	struct err e = { 0 };

	bench("saxpy", example_saxpy(&e));
	bench("softmax", example_softmax(&e));
	bench("tile", example_tile(&e));
	gen_kernel(&g, 6508, GEN_ALL);
	bench("random", g.f);
	bench_library();
	return 0;
}
