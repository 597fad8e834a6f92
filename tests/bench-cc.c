/*
 * How long compiling takes: the examples of compiler/dsl.h and a large random
 * kernel, at the highest level, against the budget of 50 ms for one kernel
 * that just-in-time compiling has.
 */
#include <stdio.h>

#include "compiler/cc.h"
#include "tests/dsl-examples.h"
#include "tests/ssa-gen.h"

enum { ROUNDS = 9, BUDGET_MS = 50 };

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

int main(void)
{
	struct gen_kernel g;
	struct err e = { 0 };

	bench("saxpy", example_saxpy(&e));
	bench("softmax", example_softmax(&e));
	bench("tile", example_tile(&e));
	gen_kernel(&g, 6508, GEN_ALL);
	bench("random", g.f);
	return 0;
}
