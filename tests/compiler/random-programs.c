/*
 * Random kernels compiled at every level, and for few registers, do on the
 * soft device, in checked mode, what the interpreter says.
 *
 * T0_SEED=n T0_COUNT=m runs m kernels from seed n on; T0_SLOW=1 runs 20,000.
 */
#include <stdlib.h>

#include "tests/compiler/cc-run.h"
#include "tests/compiler/ssa-gen.h"

static struct cc_dev dev;
static struct gen_data want, got;
static uint64_t total_spills;

static void show(const struct gen_kernel *g)
{
	struct buf text = { 0 };

	if (!getenv("T0_SHOW"))
		return;
	ssa_print(g->f, &text);
	fputs(text.data, stderr);
	buf_fini(&text);
}

static bool device_agrees(const struct gen_kernel *g,
			  const struct cc_options *o, const char *how)
{
	struct ssa_call c = { 0 };
	struct cc_stats st = { 0 };
	struct err e = { 0 };

	gen_fill(g->seed, &got);
	call_buffer(&c, got.in, sizeof(got.in));
	call_buffer(&c, got.in_f, sizeof(got.in_f));
	call_buffer(&c, got.out, g->items * GEN_SLOTS * 4);
	call_buffer(&c, got.out_f, g->items * GEN_SLOTS * 4);
	call_buffer(&c, got.sums, sizeof(got.sums));
	call_u32(&c, got.number);
	call_f32(&c, got.factor);
	if (!cc_try(&dev, g->f, o, &c, g->groups, 1, &st, &e)) {
		diag("seed %llu, %s: %s", (unsigned long long)g->seed, how,
		     e.msg);
		show(g);
		return false;
	}
	total_spills += st.spills;
	if (gen_same(g, &want, &got))
		return true;
	diag("%s", how);
	show(g);
	return false;
}

static bool kernel_agrees(uint64_t seed)
{
	struct cc_options o;
	struct gen_kernel g;
	struct err e = { 0 };
	bool good;

	gen_kernel(&g, seed, GEN_ALL);
	gen_fill(seed, &want);
	good = gen_interpret(&g, &want, &e);
	if (!good)
		diag("seed %llu: %s", (unsigned long long)seed, e.msg);
	cc_test_options(&o);
	for (o.level = 0; o.level <= 3 && good; o.level++) {
		char how[16];

		snprintf(how, sizeof(how), "-O%d", o.level);
		good = device_agrees(&g, &o, how);
	}
	o.level = 3;
	o.wgp = true;
	/* Four operands of a matrix product alone are 32. */
	o.max_vgprs = seed % 2 ? 40 : 48;
	good = good && device_agrees(&g, &o, "few registers");
	gen_kernel_fini(&g);
	return good;
}

/* Where lanes that are all off come to a loop, at -O0. */
static const uint64_t once_wrong[] = { 1098, 8758 };

int main(void)
{
	const char *first = getenv("T0_SEED"), *n = getenv("T0_COUNT");
	const uint64_t seed = first ? strtoull(first, NULL, 0) : 1;
	const int count = n ? atoi(n) : getenv("T0_SLOW") ? 20000 : 120;
	int wrong = 0;

	cc_dev_begin(&dev);
	for (int k = 0; k < count && wrong < 5; k++)
		wrong += !kernel_agrees(seed + (uint64_t)k);
	for (size_t k = 0; !first && k < ARRAY_SIZE(once_wrong); k++)
		wrong += !kernel_agrees(once_wrong[k]);
	is_i64(wrong, 0, "%d random kernels from seed %llu agree at all levels",
	       count, (unsigned long long)seed);
	ok(count < 100 || total_spills > 0, "%llu registers were spilled",
	   (unsigned long long)total_spills);
	cc_dev_close(&dev);
	return plan_done();
}
