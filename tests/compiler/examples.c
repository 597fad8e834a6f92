/*
 * The examples of compiler/dsl/dsl.h, compiled, on the soft device.  2110 has
 * them in the interpreter.
 */
#include "tests/compiler/cc-run.h"
#include "tests/compiler/dsl-tests.h"

static struct cc_dev dev;

static bool run(struct ssa_func *f, const struct ssa_call *c, uint32_t gx,
		uint32_t gy, int level, struct err *e)
{
	struct cc_options o;

	cc_test_options(&o);
	o.level = level;
	if (f && cc_try(&dev, f, &o, c, gx, gy, NULL, e))
		return true;
	diag("%s", e->msg);
	return false;
}

int main(void)
{
	uint64_t seed = 4711;

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (int level = 0; level <= 3; level += 3) {
		test_saxpy(run, level, &seed);
		test_softmax(run, level, &seed, 64);
		test_softmax(run, level, &seed, 1000);
		test_tile(run, level, &seed);
	}
	cc_dev_close(&dev);
	return plan_done();
}
