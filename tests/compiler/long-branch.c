/*
 * Loops and conditions whose code is longer than a branch reaches: 128 KiB.
 * Their kernel gives what plain C gives, on chips of each generation in checked
 * mode, and its branches go over others.
 */
#include "compiler/dsl/dsl.h"
#include "isa/code/code.h"
#include "isa/object/object.h"
#include "tests/compiler/cc-run.h"

enum { N = 256, GROUP = 64, STEPS = 9000, LOAD_EACH = 150, LIMIT = 200 };

static uint32_t factor(uint32_t s)
{
	return (s * 2654435761u | 1u) & 0xfffffff;
}

/* Where the value's first bit is set: `n` times STEPS steps, 24 bytes each. */
static struct ssa_func *build(struct err *e)
{
	struct dsl *k = KERNEL("long", GROUP);
	struct val in = ARG_PTR(k, DSL_U32, "in", DSL_READONLY);
	struct val out = ARG_PTR(k, DSL_U32, "out", 0);
	struct val n = ARG(k, DSL_U32, "n");
	struct val id = GLOBAL_ID(k, 0);
	struct var x = VAR(k, DSL_U32, LOAD(in, id));

	IF(k, EQ(AND(x, 1), 1))
	{
		FOR(k, i, 0, n, 1)
		{
			for (uint32_t s = 0; s < STEPS; s++) {
				SET(x, MUL(XOR(x, s + LIMIT), factor(s)));
				if (s % LOAD_EACH)
					continue;
				SET(x, ADD(x, LOAD(in, AND(ADD(id, ADD(i, s)),
							   N - 1))));
			}
		}
	}
	STORE(out, id, x);
	return dsl_finish(k, e);
}

static uint32_t want_value(const uint32_t *in, uint32_t id, uint32_t n)
{
	uint32_t x = in[id];

	for (uint32_t i = 0; in[id] & 1 && i < n; i++)
		for (uint32_t s = 0; s < STEPS; s++) {
			x = (x ^ (s + LIMIT)) * factor(s);
			x += s % LOAD_EACH ? 0 : in[(id + i + s) % N];
		}
	return x;
}

/* Branches that go to another branch, which the code runs around. */
static unsigned count_hops(const struct cc_object *obj, enum isa_gen gen)
{
	const struct isa_target t = { gen, 32, false };
	struct isa_inst in, before = { .op = 0 };
	struct err e = { 0 };
	struct co co;
	unsigned n = 0;

	if (!co_parse(&co, obj->bytes.data, obj->bytes.len, &e))
		return 0;
	const struct co_kernel *k = &co.kernels[0];

	for (uint64_t at = 0; at + 4 <= k->code_bytes; at += in.size_bytes) {
		if (isa_decode(&t, k->code + at, k->code_bytes - at, &in))
			break;
		n += in.op == ISA_s_branch && before.op == ISA_s_branch;
		before = in;
	}
	co_fini(&co);
	return n;
}

static void test_chip(const char *chip, int level)
{
	static uint32_t in[N], out[N];
	const uint32_t n = 3;
	struct ssa_call c = { 0 };
	struct cc_object obj = { 0 };
	struct cc_options o;
	struct err e = { 0 };
	struct cc_dev dev;
	struct ssa_func *f = build(&e);
	uint64_t seed = 29;
	int wrong = 0;

	setenv("T0_TEST_CHIP", chip, 1);
	cc_test_options(&o);
	o.level = level;
	for (int i = 0; i < N; i++)
		in[i] = (uint32_t)(test_random(&seed) >> 20);
	call_buffer(&c, in, sizeof(in));
	call_buffer(&c, out, sizeof(out));
	call_u32(&c, n);
	cc_dev_begin(&dev);
	if (!ok(f && cc_compile(f, &o, &obj, &e) &&
			cc_launch(&dev, f, &obj, &c, N / GROUP, 1, &e),
		"%s, -O%d: long code runs", chip, level))
		diag("%s", e.msg);
	for (uint32_t i = 0; i < N; i++)
		wrong += out[i] != want_value(in, i, n);
	is_i64(wrong, 0, "and give what C gives");
	ok(count_hops(&obj, cc_chip()->gen) > 0, "by branches over branches");
	cc_dev_close(&dev);
	cc_object_fini(&obj);
	ssa_func_free(f);
}

int main(void)
{
	test_chip("gfx1100", 0);
	test_chip("gfx1100", 3);
	test_chip("gfx1010", 3);
	test_chip("gfx1030", 3);
	test_chip("gfx1201", 2);
	return plan_done();
}
