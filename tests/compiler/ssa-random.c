/*
 * Random kernels give the same in the interpreter at every level of
 * optimisation, after each pass alone, and after a trip through text.
 *
 * T0_SEED=n T0_COUNT=m runs m kernels from seed n on; T0_SLOW=1 runs 20,000.
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"
#include "tests/compiler/ssa-gen.h"

static const char *const passes[] = {
#define PASS(name) #name,
#include "compiler/opt/pass.def"
};

static uint32_t changes[ARRAY_SIZE(passes)];
static struct gen_data want, got;

static void show(const struct gen_kernel *g)
{
	struct buf text = { 0 };

	if (!getenv("T0_SHOW"))
		return;
	ssa_print(g->f, &text);
	fputs(text.data, stderr);
	buf_fini(&text);
}

/* Runs a changed copy and compares. */
static bool agrees(struct gen_kernel *g, const char *how)
{
	struct err e = { 0 };

	gen_fill(g->seed, &got);
	if (!gen_interpret(g, &got, &e)) {
		diag("seed %llu, %s: %s", (unsigned long long)g->seed, how,
		     e.msg);
		show(g);
		return false;
	}
	if (gen_same(g, &want, &got))
		return true;
	diag("after %s", how);
	show(g);
	return false;
}

static bool level_agrees(const struct gen_kernel *g, int level)
{
	struct gen_kernel copy = *g;
	struct err e = { 0 };
	char how[16];

	copy.f = ssa_func_copy(g->f);
	snprintf(how, sizeof(how), "-O%d", level);
	bool good = ssa_optimize(copy.f, level, NULL, NULL, &e);

	if (!good)
		diag("seed %llu, %s: %s", (unsigned long long)g->seed, how,
		     e.msg);
	good = good && agrees(&copy, how);
	gen_kernel_fini(&copy);
	return good;
}

/*
 * The pass alone, on what the DSL made and on what -O1 left of it: some have
 * work only in the one or the other.
 */
static bool pass_agrees(const struct gen_kernel *g, size_t number)
{
	const char *pass = passes[number];
	struct gen_kernel copy = *g;
	struct err e = { 0 };
	bool changed;

	copy.f = ssa_func_copy(g->f);
	bool good = g->seed % 2 == 0 ||
		    ssa_optimize(copy.f, 1, NULL, NULL, &e);

	good = good && ssa_pass_run(copy.f, pass, &changed, &e);
	changes[number] += good && changed;
	if (!good) {
		diag("seed %llu, %s: %s", (unsigned long long)g->seed, pass,
		     e.msg);
		show(g);
	}
	good = good && (!changed || agrees(&copy, pass));
	gen_kernel_fini(&copy);
	return good;
}

static bool text_agrees(const struct gen_kernel *g)
{
	struct buf a = { 0 }, b = { 0 };
	struct err e = { 0 };

	ssa_print(g->f, &a);
	struct ssa_func *f = ssa_parse(a.data, &e);

	if (f)
		ssa_print(f, &b);
	const bool same = f && !strcmp(a.data, b.data);

	if (!same)
		diag("seed %llu: text differs: %s",
		     (unsigned long long)g->seed, e.msg);
	ssa_func_free(f);
	buf_fini(&a);
	buf_fini(&b);
	return same;
}

static bool kernel_agrees(uint64_t seed, bool each_pass)
{
	struct gen_kernel g;
	struct err e = { 0 };

	gen_kernel(&g, seed, GEN_ALL);
	gen_fill(seed, &want);
	bool good = gen_interpret(&g, &want, &e);

	if (!good) {
		diag("seed %llu: %s", (unsigned long long)seed, e.msg);
		show(&g);
	}
	good = good && text_agrees(&g);
	for (int level = 0; level <= 3 && good; level++)
		good = level_agrees(&g, level);
	for (size_t k = 0; k < ARRAY_SIZE(passes) && good && each_pass; k++)
		good = pass_agrees(&g, k);
	gen_kernel_fini(&g);
	return good;
}

int main(void)
{
	const char *first = getenv("T0_SEED"), *n = getenv("T0_COUNT");
	const uint64_t seed = first ? strtoull(first, NULL, 0) : 1;
	const int count = n ? atoi(n) : getenv("T0_SLOW") ? 20000 : 300;
	int wrong = 0;

	for (int k = 0; k < count && wrong < 5; k++)
		wrong += !kernel_agrees(seed + (uint64_t)k,
					!getenv("T0_SLOW") || k < 2000);
	is_i64(wrong, 0, "%d random kernels from seed %llu agree at all levels",
	       count, (unsigned long long)seed);
	/* The DSL leaves nothing to `copies`, and may not contract here. */
	for (size_t k = 0; k < ARRAY_SIZE(passes) && count >= 300; k++)
		ok(changes[k] > 0 || !strcmp(passes[k], "copy_prop") ||
			   !strcmp(passes[k], "fma"),
		   "%s changed %u kernels", passes[k], changes[k]);
	return plan_done();
}
