/*
 * The back end on control flow, memory and lanes: kernels of the DSL give on
 * the soft device, in checked mode and at every level, what the interpreter
 * gives; so they do when there are too few registers for them.
 */
#include <math.h>

#include "compiler/dsl/dsl.h"
#include "isa/object/object.h"
#include "tests/compiler/cc-run.h"

enum { N = 512 };

static uint64_t seed = 77;
static struct cc_dev dev;

/* i32, where the DSL's is u32 */
#define ID(k) CAST(DSL_I32, GLOBAL_ID(k, 0))

/* Kernels take (in, out, n): N values of 32 bits, random, and n = 300. */
struct kernel {
	const char *name;
	void (*body)(struct dsl *k, struct val in, struct val out,
		     struct val n);
	uint32_t group;
};

static void if_else(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), x = LOAD(in, i);
	struct var r = VAR(k, DSL_I32, 7), w = VAR(k, DSL_I64, 1);

	IF (k, LT(i, n)) {
		IF (k, EQ(AND(x, 1), 0)) {
			SET(r, DIV(x, 3));
		}
		ELSE (k) {
			SET(r, ADD(r, x));
			SET(w, MUL(CAST(DSL_I64, x), 5));
		}
		STORE(out, i, ADD(r, CAST(DSL_I32, w)));
	}
	ELSE (k) {
		STORE(out, i, XOR(x, -1));
	}
}

static void conditions(struct dsl *k, struct val in, struct val out,
		       struct val n)
{
	struct val i = ID(k), x = LOAD(in, i);
	struct var odd = VAR(k, DSL_BOOL, 0), big = VAR(k, DSL_BOOL, 1);

	IF (k, LT(AND(x, 3), 2)) {
		SET(odd, EQ(AND(x, 1), 1));
		IF (k, GT(x, 0)) {
			SET(big, GT(x, 1000));
		}
	}
	ELSE (k) {
		SET(odd, LT(x, n));
	}
	STORE(out, i,
	      ADD(SELECT(AND(odd, big), n, 2),
		  SELECT(OR(odd, NOT(big)), x, 32)));
}

static void collatz(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k);
	struct var x = VAR_OF(ADD(AND(LOAD(in, i), 127), 1));
	struct var steps = VAR(k, DSL_I32, 0), top = VAR(k, DSL_I32, 0);

	(void)n;
	WHILE (k, NE(x, 1)) {
		IF (k, EQ(AND(x, 1), 0)) {
			SET(x, SHR(x, 1));
		}
		ELSE (k) {
			SET(x, ADD(MUL(x, 3), 1));
		}
		SET(top, MAX(top, x));
		SET(steps, ADD(steps, 1));
	}
	STORE(out, i, ADD(MUL(steps, 65536), top));
}

/* Lanes leave both loops at different times; the flag is carried. */
static void nested(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), x = AND(LOAD(in, i), 7);
	struct var sum = VAR(k, DSL_I32, 0), seen = VAR(k, DSL_BOOL, 0);
	struct var a = VAR(k, DSL_I32, 1), b = VAR(k, DSL_I32, 2);

	FOR (k, j, 0, x, 1) {
		struct var c = VAR_OF(j);

		WHILE (k, AND(LT(c, 5), NOT(seen))) {
			SET(sum, ADD(sum, MUL(c, x)));
			SET(seen, GT(sum, 60));
			SET(c, ADD(c, 1));
		}
		/* a and b change places each time */
		struct val t = GET(a);
		SET(a, GET(b));
		SET(b, ADD(t, n));
	}
	STORE(out, i, ADD(ADD(sum, MUL(a, 3)), SELECT(seen, b, 0)));
}

static void uniform(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k);
	struct var s = VAR(k, DSL_I32, 0), p = VAR(k, DSL_I32, 1);

	FOR (k, j, 0, REM(n, 17), 1) {
		IF (k, EQ(REM(j, 3), 0)) {
			SET(s, ADD(s, LOAD(in, j)));
		}
		ELSE (k) {
			SET(p, ADD(p, MUL(s, j)));
		}
	}
	IF (k, GT(n, 10000)) {
		SET(p, 0);
	}
	STORE(out, i, ADD(ADD(s, p), i));
}

static void masks(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), in_range = LT(MUL(i, 2), n);
	struct val v = LOADV_IF(in_range, in, MUL(i, 2), 2);
	struct val w = LOADV_IF(GE(i, 128), in, AND(i, 252), 4);
	struct val s = ADD(ADD(ELEM(v, 0), ELEM(v, 1)), ELEM(w, 3));

	STORE(out, i, 5);
	STORE_IF(OR(in_range, EQ(AND(i, 1), 1)), out, i, s);
}

static void shared(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), l = LOCAL_ID(k, 0);
	struct val tile = LDS(k, DSL_I32, 160, "tile");
	struct val bytes = LDS(k, DSL_U8, 256, "bytes");
	struct val vec = LDS(k, DSL_I32, 512, "vec");

	STORE(tile, ADD(l, SHR(l, 5)), LOAD(in, i));
	STORE(bytes, l, CAST(DSL_U8, l));
	STORE(vec, MUL(l, 4), JOIN(l, MUL(l, 2), i, n));
	BARRIER(k);
	struct val r = SUB(127, l);
	struct val v = LOADV(vec, MUL(r, 4), 4);
	STORE(out, i,
	      ADD(ADD(LOAD(tile, ADD(r, SHR(r, 5))),
		      CAST(DSL_I32, LOAD(bytes, r))),
		  ADD(ADD(ELEM(v, 0), ELEM(v, 1)),
		      ADD(ELEM(v, 2), ELEM(v, 3)))));
}

static void atomics(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), l = LOCAL_ID(k, 0);
	struct val h = LDS(k, DSL_I32, 16, "h"), x = LOAD(in, i);

	(void)n;
	STORE_IF(LT(l, 16), h, l, 0);
	BARRIER(k);
	ATOMIC(SSA_RMW_ADD, h, AND(x, 15), 1);
	ATOMIC_IF(GT(x, 0), SSA_RMW_MAX_S, h, 0, AND(x, 15));
	BARRIER(k);
	ATOMIC_IF(LT(l, 16), SSA_RMW_ADD, out, l, LOAD(h, AND(l, 15)));
	ATOMIC(SSA_RMW_MIN_S, out, 16, x);
	ATOMIC(SSA_RMW_OR, out, 17, x);
	ATOMIC(SSA_RMW_XOR, out, 18, x);
}

static void lanes(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), x = LOAD(in, i);
	struct var r = VAR(k, DSL_I32, 0);

	IF (k, LT(AND(x, 7), 5)) {
		SET(r, WAVE_SUM(AND(x, 255)));
		SET(r, ADD(r, WAVE_SCAN(ADD, AND(x, 15), true)));
	}
	SET(r, ADD(r, MUL(WAVE(k), 1000000)));
	STORE(out, i, ADD(r, GROUP_MAX(AND(x, n))));
}

static void many(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), v[24];
	struct var s = VAR(k, DSL_I32, 0);

	for (int j = 0; j < 24; j++)
		v[j] = LOAD(in, AND(ADD(i, j * 7), N - 1));
	FOR (k, t, 0, AND(n, 7), 1) {
		for (int j = 0; j < 24; j++)
			SET(s, ADD(MUL(s, 3), XOR(v[j], t)));
	}
	STORE(out, i, s);
}

static void spread(struct dsl *k, struct val in, struct val out, struct val n)
{
	struct val i = ID(k), x = LOAD(in, i), u[130];
	struct var s = VAR(k, DSL_I32, 0);

	/* Many uniform values alive at once. */
	for (int j = 0; j < 130; j++)
		u[j] = MUL(ADD(n, j), ADD(n, 3 * j + 1));
	WHILE (k, LT(s, AND(x, 63))) {
		for (int j = 0; j < 130; j++)
			SET(s, ADD(s, AND(u[j], 3)));
		SET(s, ADD(s, 1));
	}
	STORE(out, i, s);
}

static void shuffles(struct dsl *k, struct val in, struct val out,
		     struct val n)
{
	struct val i = ID(k), x = LOAD(in, i), l = LANE(k);
	struct val r = SHUFFLE(x, AND(x, 31));

	/* Any lane of the wave, however many it has. */
	r = ADD(MUL(r, 5), SHUFFLE(x, SUB(n, l)));
	STORE(out, i, ADD(r, SHUFFLE(ADD(x, l), XOR(l, 33))));
}

/* More live values than the first 4 KiB of scratch hold. */
static void far_away(struct dsl *k, struct val in, struct val out,
		     struct val n)
{
	enum { LIVE = 1100 };
	struct val i = ID(k), x = LOAD(in, i);
	static struct val v[LIVE];
	struct var s = VAR(k, DSL_I32, 0);

	for (int j = 0; j < LIVE; j++)
		v[j] = j ? ADD(MUL(v[j - 1], 3), j) : x;
	BARRIER(k);
	FOR (k, t, 0, AND(n, 3), 1) {
		for (int j = 0; j < LIVE; j++)
			SET(s, ADD(XOR(s, v[LIVE - 1 - j]), t));
	}
	STORE(out, i, s);
}

static const struct kernel kernels[] = {
	{ "if_else", if_else, 64 },    { "conditions", conditions, 64 },
	{ "collatz", collatz, 64 },    { "nested", nested, 32 },
	{ "uniform", uniform, 64 },    { "masks", masks, 32 },
	{ "shared", shared, 128 },     { "atomics", atomics, 128 },
	{ "lanes", lanes, 64 },	       { "many", many, 64 },
	{ "spread", spread, 64 },      { "shuffles", shuffles, 64 },
	{ "far_away", far_away, 64 },
};

static struct ssa_func *build(const struct kernel *t, struct err *e)
{
	struct dsl *k = KERNEL(t->name, t->group);
	struct val in = ARG_PTR(k, DSL_I32, "in", DSL_READONLY);
	struct val out = ARG_PTR(k, DSL_I32, "out", 0);
	struct val n = ARG(k, DSL_I32, "n");

	t->body(k, in, out, n);
	return dsl_finish(k, e);
}

static void test_kernel(const struct kernel *t, const struct cc_options *o,
			uint32_t wave, const char *how)
{
	static int32_t in[N], want[N], got[N];
	struct ssa_call c = { 0 };
	struct cc_stats st = { 0 };
	struct err e = { 0 };
	struct ssa_func *f = build(t, &e);
	bool good;
	int bad = -1;

	if (!ok(f, "%s builds", t->name)) {
		diag("%s", e.msg);
		return;
	}
	f->wave = wave;
	for (int i = 0; i < N; i++) {
		in[i] = (int32_t)test_random(&seed) >>
			(test_random(&seed) % 28);
		want[i] = got[i] = 0;
	}
	call_buffer(&c, in, sizeof(in));
	call_buffer(&c, want, sizeof(want));
	call_u32(&c, 300);
	good = call_run(f, &c, N / t->group, 1, NULL, &e);
	c.arg[1] = (uint64_t)(uintptr_t)got;
	c.range[1].base = got;
	good = good && cc_try(&dev, f, o, &c, N / t->group, 1, &st, &e);
	for (int i = 0; good && bad < 0 && i < N; i++)
		bad = got[i] == want[i] ? bad : i;
	if (!ok(good && bad < 0, "%s, %s", t->name, how)) {
		diag("%s", e.msg);
		if (bad >= 0)
			diag("element %d of %d: got %d, wanted %d", bad,
			     in[bad], got[bad], want[bad]);
	}
	if (o->max_vgprs)
		diag("%s: %u VGPRs, %u spills", t->name, st.vgprs, st.spills);
	ssa_func_free(f);
}

/* Does the object want WGP mode?  -1: it was refused. */
static int mode_of(size_t kernel, bool wgp, bool cu)
{
	struct cc_object obj = { 0 };
	struct err e = { 0 };
	struct ssa_func *f = build(&kernels[kernel], &e);
	struct cc_options o;
	struct co co;
	int mode = -1;

	cc_test_options(&o);
	o.wgp = wgp;
	o.cu = cu;
	if (cc_compile(f, &o, &obj, &e) &&
	    co_parse(&co, obj.bytes.data, obj.bytes.len, &e)) {
		mode = co.kernels[0].desc.rsrc1 >> 29 & 1;
		co_fini(&co);
	}
	cc_object_fini(&obj);
	ssa_func_free(f);
	return mode;
}

/* if_else has no LDS, shared has, and four waves. */
static void test_modes(void)
{
	enum { IF_ELSE = 0, SHARED = 6 };

	is_i64(mode_of(IF_ELSE, false, false), 1, "without LDS: WGP mode");
	is_i64(mode_of(IF_ELSE, false, true), 0, "CU mode if asked for");
	is_i64(mode_of(SHARED, false, false), 0, "four waves with LDS: CU");
	is_i64(mode_of(SHARED, true, false), 1, "WGP mode if asked for");
	is_i64(mode_of(SHARED, true, true), -1, "both are refused");
}

int main(void)
{
	struct cc_options o;

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	cc_test_options(&o);
	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++) {
		for (o.level = 0; o.level <= 3; o.level++) {
			char how[16];

			snprintf(how, sizeof(how), "-O%d", o.level);
			test_kernel(&kernels[k], &o, 32, how);
		}
		o.level = 3;
		o.wgp = true;
		test_kernel(&kernels[k], &o, 32, "WGP mode");
		o.wgp = false;
		o.max_vgprs = 12;
		test_kernel(&kernels[k], &o, 32, "with 12 VGPRs");
		o.max_vgprs = 0;
		test_kernel(&kernels[k], &o, 64, "waves of 64");
	}
	test_modes();
	cc_dev_close(&dev);
	return plan_done();
}
