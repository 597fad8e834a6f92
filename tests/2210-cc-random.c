/*
 * Random kernels, compiled at every level, give on the soft device what they
 * give in the interpreter, and its checked mode finds nothing.
 *
 * T0_SEED=n T0_COUNT=m runs m kernels from seed n on, T0_PARTS=bits of these
 * parts (tests/ssa-gen.h); T0_SLOW=1 runs 20,000; without any, none.
 */
#include <stdlib.h>

#include "tests/cc-run.h"
#include "tests/ssa-gen.h"

static struct gen_data want, got;
static struct cc_dev dev;

static bool level_agrees(const struct gen_kernel *g, int level)
{
	struct cc_options o;
	struct err e = { 0 };

	gen_fill(g->seed, &got);
	const struct ssa_call c = gen_call(g, &got);

	cc_options_init(&o);
	o.level = level;
	if (!cc_try(&dev, g->f, &o, &c, g->groups, 1, NULL, &e)) {
		diag("seed %llu, -O%d: %s", (unsigned long long)g->seed, level,
		     e.msg);
		return false;
	}
	if (gen_same(g, &want, &got))
		return true;
	diag("at -O%d", level);
	return false;
}

static bool kernel_agrees(uint64_t seed, uint32_t parts)
{
	struct gen_kernel g;
	struct err e = { 0 };

	gen_kernel(&g, seed, parts);
	gen_fill(seed, &want);
	bool good = gen_interpret(&g, &want, &e);

	if (!good)
		diag("seed %llu: %s", (unsigned long long)seed, e.msg);
	if (getenv("T0_SHOW")) {
		struct buf text = { 0 };

		ssa_print(g.f, &text);
		fputs(text.data, stderr);
		buf_fini(&text);
	}
	for (int level = 0; level <= 3 && good; level++)
		good = level_agrees(&g, level);
	gen_kernel_fini(&g);
	return good;
}

int main(void)
{
	const char *first = getenv("T0_SEED"), *n = getenv("T0_COUNT");
	const char *bits = getenv("T0_PARTS");
	const uint32_t parts = bits ? (uint32_t)strtoul(bits, NULL, 0) :
				      GEN_ALL;
	const uint64_t seed = first ? strtoull(first, NULL, 0) : 1;
	const int count = n ? atoi(n) : getenv("T0_SLOW") ? 20000 : 0;
	struct err e = { 0 };
	int wrong = 0;

	if (!count)
		skip_all("T0_COUNT or T0_SLOW is not set");
	if (!ok(cc_dev_open(&dev, true, &e), "the soft device opens: '%s'",
		e.msg))
		return plan_done();
	for (int k = 0; k < count && wrong < 5; k++)
		wrong += !kernel_agrees(seed + (uint64_t)k, parts);
	is_i64(wrong, 0, "%d random kernels from seed %llu agree on the device",
	       count, (unsigned long long)seed);
	cc_dev_close(&dev);
	return plan_done();
}
