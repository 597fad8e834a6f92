/*
 * The DSL: the examples of its header build, and bad kernels get an error that
 * names their line.
 */
#include <stdlib.h>

#include "tests/compiler/dsl-examples.h"
#include "tests/tap.h"

static void test_examples(void)
{
	struct ssa_func *(*const make[])(struct err *) = {
		example_saxpy, example_softmax, example_tile
	};

	for (int i = 0; i < 3; i++) {
		struct err e = { 0 };
		struct ssa_func *f = make[i](&e);

		ok(f && ssa_check(f, &e), "example %d builds: '%s'", i + 1,
		   e.msg);
		ssa_func_free(f);
	}
}

/* Each returns the line that the error must name. */
static uint32_t bad_types(struct dsl *k)
{
	struct val x = ARG(k, DSL_F32, "x"), i = ARG(k, DSL_I32, "i");

	ADD(x, i); return __LINE__;
}

static uint32_t bad_number(struct dsl *k)
{
	struct val i = ARG(k, DSL_I32, "i");

	MUL(i, 0.5); return __LINE__;
}

static uint32_t bad_undefined(struct dsl *k)
{
	struct val x = ARG(k, DSL_F32, "x"), y = { 0 };

	ADD(x, y); return __LINE__;
}

static uint32_t bad_scope(struct dsl *k)
{
	struct val x = ARG(k, DSL_F32, "x"), y = x;

	IF (k, LT(x, 0)) {
		y = NEG(x);
	}
	ADD(y, 1); return __LINE__;
}

static uint32_t bad_lds(struct dsl *k)
{
	LDS(k, DSL_F32, 12000, "a");
	LDS(k, DSL_F32, 5000, "b"); return __LINE__;
}

static uint32_t bad_width(struct dsl *k)
{
	struct val p = ARG_PTR(k, DSL_F32, "p", 0);

	LOADV(p, 0, 17); return __LINE__;
}

static uint32_t bad_bf16(struct dsl *k)
{
	struct val p = ARG_PTR(k, DSL_BF16, "p", 0);

	EXP(LOAD(p, 0)); return __LINE__;
}

static uint32_t bad_store(struct dsl *k)
{
	struct val p = ARG_PTR(k, DSL_F16, "p", 0), x = ARG(k, DSL_F32, "x");

	STORE(p, 0, x); return __LINE__;
}

static uint32_t bad_readonly(struct dsl *k)
{
	struct val p = ARG_PTR(k, DSL_F32, "p", DSL_READONLY);

	STORE(p, 0, 1.0); return __LINE__;
}

static uint32_t bad_break(struct dsl *k)
{
	const uint32_t line = __LINE__ + 1;
	FOR (k, i, 0, 4, 1) {
		if (i.k)
			break;
	}
	return line;
}

static uint32_t bad_else(struct dsl *k)
{
	struct val x = ARG(k, DSL_F32, "x");

	IF (k, LT(x, 0)) {
	}
	struct val y = NEG(x);

	(void)y;
	const uint32_t line = __LINE__ + 1;
	ELSE (k) {
	}
	return line;
}

static uint32_t bad_set(struct dsl *k)
{
	struct var v = VAR(k, DSL_F32, 0);

	SET(v, ARG(k, DSL_I32, "i")); return __LINE__;
}

static uint32_t bad_wmma(struct dsl *k)
{
	struct val x = ARG(k, DSL_F32, "x");

	WMMA(x, x, FRAG_ZERO(k, DSL_F32)); return __LINE__;
}

static uint32_t bad_printf(struct dsl *k)
{
	PRINTF(k, "%d %d\n", LANE(k)); return __LINE__;
}

static uint32_t bad_own(struct dsl *k)
{
	FAIL(k, "head size %d, wanted at most 256", 512); return __LINE__;
}

static const struct {
	const char *name;
	uint32_t (*build)(struct dsl *k);
	const char *says;
} bad[] = {
	{ "two types", bad_types, "type mismatch: f32 and i32" },
	{ "a fraction for an integer", bad_number, "0.5 is no i32" },
	{ "an undefined value", bad_undefined, "undefined value" },
	{ "a value from an IF", bad_scope,
	  "in an IF or a loop that has ended" },
	{ "too much LDS", bad_lds, "68000 bytes, 65536 are there" },
	{ "17 elements", bad_width, "unsupported width: 17" },
	{ "bf16 arithmetic", bad_bf16, "got bf16, wanted f32" },
	{ "a store of another type", bad_store, "got f32, wanted f16" },
	{ "a store where one only reads", bad_readonly, "to read only" },
	{ "break", bad_break, "left by break" },
	{ "ELSE without IF", bad_else, "does not follow an IF" },
	{ "SET of another type", bad_set, "SET() of 1 x i32" },
	{ "WMMA of scalars", bad_wmma, "wanted a fragment A" },
	{ "printf with too few values", bad_printf, "wants 2 values, got 1" },
	{ "the kernel's own error", bad_own, "head size 512" },
};

static void test_errors(void)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = { 0 };
		struct dsl *k = KERNEL("bad", 64);
		const uint32_t line = bad[i].build(k);

		/* What follows an error is harmless. */
		struct val p = ARG_PTR(k, DSL_F32, "later", 0);

		FOR (k, j, 0, 4, 1) {
			IF (k, LT(j, 2)) {
				STORE(p, j, 1.0);
			}
			ELSE (k) {
				STORE(p, j, GROUP_SUM(LOAD(p, j)));
			}
		}
		struct ssa_func *f = dsl_finish(k, &e);
		char place[64];

		ok(!f, "%s is refused", bad[i].name);
		has_str(e.msg, bad[i].says, "%s: the message", bad[i].name);
		snprintf(place, sizeof(place),
			 "tests/compiler/dsl.c:%u: bad: ", line);
		has_str(e.msg, place, "%s: the place", bad[i].name);
	}
}

int main(void)
{
	test_examples();
	test_errors();
	return plan_done();
}
