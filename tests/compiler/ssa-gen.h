/*
 * ssa-gen - random kernels from a seed, for every test that compares two ways
 * of running a function: levels of optimisation, the interpreter, a device.
 *
 * A kernel is built with the DSL (and with bare SSA where that has no words):
 * all types and operations whose result is one for all devices, nested IFs and
 * loops, by lane and uniform, masked and vector accesses, LDS with barriers,
 * lanes, atomics and matrices.  It never divides the world: every work-item
 * writes words of its own, loops end, indices are inside, and no NaN's sign or
 * payload is looked at.
 *
 *	struct gen_kernel g;
 *	gen_kernel(&g, seed, GEN_ALL);
 *	gen_fill(&g, 7, &data);		// arguments and memory
 *	... run g.f on it: gen_interpret(), or on a device ...
 *	gen_same(&g, &data, &other)	// compares what was written
 *	gen_kernel_fini(&g);
 */
#ifndef T0_TESTS_SSA_GEN_H
#define T0_TESTS_SSA_GEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/dsl/dsl.h"
#include "compiler/dsl/dsl_int.h"
#include "tests/compiler/ssa-run.h"

/* What a kernel may contain. */
enum {
	GEN_FLOAT = 1,
	GEN_F16 = 2,
	GEN_I64 = 4,
	GEN_PAIRS = 8, /* packed 16-bit operations */
	GEN_FLOW = 16,
	GEN_LDS = 32,
	GEN_LANES = 64,
	GEN_ATOMICS = 128,
	GEN_WMMA = 256,
	GEN_SMALL = 512, /* i8, i16, bf16 in memory */
	GEN_DIVIDE = 1024, /* integer division */
	GEN_ALL = 2047,
};

enum {
	GEN_IN_WORDS = 256, /* of each input; a power of two */
	GEN_SLOTS = 16,	    /* words of each work-item in an output */
	GEN_SUMS = 16,	    /* words for atomics */
	GEN_MAX_ITEMS = 512,
	GEN_POOL = 256,
	GEN_VARS = 6,
};

/* Memory of one run; the kernel's first five arguments, then i32 and f32. */
struct gen_data {
	uint32_t in[GEN_IN_WORDS]; /* any bits */
	uint32_t gap[8];	   /* so that no buffer begins where one ends */
	float in_f[GEN_IN_WORDS];  /* numbers, some special; no NaN */
	uint32_t gap_f[8];
	uint32_t out[GEN_MAX_ITEMS * GEN_SLOTS];
	uint32_t gap_out[8];
	float out_f[GEN_MAX_ITEMS * GEN_SLOTS];
	uint32_t gap_sums[8];
	uint32_t sums[GEN_SUMS];
	uint32_t number;
	float factor;
};

struct gen_kernel {
	struct ssa_func *f;
	uint32_t groups; /* to launch */
	uint32_t items;	 /* of all groups */
	uint64_t seed;
};

/* While a kernel is made. */
struct gen {
	struct dsl *k;
	uint64_t random;
	uint32_t parts;
	struct val pool[GEN_POOL]; /* what is in scope */
	uint32_t n_pool;
	struct var var[GEN_VARS];
	enum dsl_type var_type[GEN_VARS];
	struct val in, in_f, out, out_f, sums, lds, number, factor, item;
	uint32_t depth, budget;
	bool uniform; /* are all work-items of the group here? */
	bool whole;   /* are all waves full? */
};

static inline uint32_t gen_below(struct gen *g, uint32_t n)
{
	return (uint32_t)(test_random(&g->random) >> 33) % n;
}

static inline bool gen_one_in(struct gen *g, uint32_t n)
{
	return gen_below(g, n) == 0;
}

static inline void gen_keep(struct gen *g, struct val v)
{
	for (uint32_t j = 0; j < v.n && g->n_pool < GEN_POOL; j++) {
		struct val x = v;

		x.e += j;
		x.n = 1;
		g->pool[g->n_pool++] = x;
	}
}

static inline struct val gen_constant(struct gen *g, enum dsl_type t)
{
	static const int32_t whole[] = { 0, 1, -1, 2, 3, 7, 10, 16, 31, 32, 64,
					 100, 255, 0x7fffffff, -0x7fffffff - 1,
					 0x12345678, 0xffff, -5 };
	static const double real[] = { 0, 1, -1, 0.5, 2, -3.25, 1e-3, 100, 7,
				       6e-8, 65504 };

	if (t == DSL_BOOL)
		return CONST(g->k, t, gen_below(g, 2));
	if (t == DSL_F32 || t == DSL_F16)
		return CONST(g->k, t, real[gen_below(g, ARRAY_SIZE(real))]);
	const int64_t v = whole[gen_below(g, ARRAY_SIZE(whole))];

	return CONST(g->k, t, t == DSL_U32 ? (int64_t)(uint32_t)v : v);
}

/* A value of this type: of the pool, a variable, a constant, or converted. */
static inline struct val gen_any(struct gen *g, enum dsl_type t)
{
	for (int tries = 0; tries < 12; tries++) {
		const struct val v = g->pool[gen_below(g, g->n_pool)];
		const uint32_t x = gen_below(g, GEN_VARS);

		if (gen_one_in(g, 4) && g->var_type[x] == t)
			return GET(g->var[x]);
		if (v.type == t)
			return v;
	}
	if (gen_one_in(g, 3))
		return gen_constant(g, t);
	switch (t) {
	case DSL_BOOL:
		return GT(gen_any(g, DSL_I32), gen_constant(g, DSL_I32));
	case DSL_U32:
	case DSL_I64:
		return CAST(t, gen_any(g, DSL_I32));
	case DSL_F32:
		return g->factor;
	case DSL_F16:
		return CAST(DSL_F16, g->factor);
	default:
		return g->number;
	}
}

static inline enum dsl_type gen_type(struct gen *g)
{
	static const enum dsl_type t[] = { DSL_I32, DSL_I32, DSL_U32, DSL_BOOL,
					   DSL_F32, DSL_F32, DSL_F16,
					   DSL_I64 };
	const enum dsl_type it = t[gen_below(g, ARRAY_SIZE(t))];

	if ((it == DSL_F32 && !(g->parts & GEN_FLOAT)) ||
	    (it == DSL_F16 && !(g->parts & GEN_F16)) ||
	    (it == DSL_I64 && !(g->parts & GEN_I64)))
		return DSL_I32;
	return it;
}

/* x, or 1 where it is NaN, so that its bits may be looked at. */
static inline struct val gen_number(struct val x)
{
	return SELECT(EQ(x, x), x, 1);
}

static inline struct val gen_float_op(struct gen *g, enum dsl_type t)
{
	static const enum dsl_op two[] = { DSL_ADD, DSL_SUB, DSL_MUL, DSL_MIN,
					   DSL_MAX, DSL_DIV };
	static const enum dsl_op one[] = { DSL_NEG, DSL_ABS, DSL_FLOOR,
					   DSL_CEIL, DSL_TRUNC, DSL_ROUND,
					   DSL_SQRT };
	const struct val a = gen_any(g, t), b = gen_any(g, t);

	switch (gen_below(g, 6)) {
	case 0:
		return dsl_unary(DSL_AT, one[gen_below(g, ARRAY_SIZE(one))], a);
	case 1:
		return FMA(a, b, gen_any(g, t));
	case 2:
		return COPYSIGN(a, gen_number(b));
	default:
		return dsl_binary(DSL_AT, two[gen_below(g, ARRAY_SIZE(two))], a,
				  b);
	}
}

static inline struct val gen_int_op(struct gen *g, enum dsl_type t)
{
	static const enum dsl_op two[] = {
		DSL_ADD, DSL_SUB, DSL_MUL, DSL_MIN, DSL_MAX, DSL_AND, DSL_OR,
		DSL_XOR, DSL_SHL, DSL_SHR, DSL_MULHI, DSL_DIV, DSL_REM
	};
	static const enum dsl_op one[] = { DSL_NOT, DSL_NEG, DSL_CLZ, DSL_CTZ,
					   DSL_POPCOUNT };
	const struct val a = gen_any(g, t);
	const struct val b = gen_one_in(g, 2) ? gen_constant(g, t) :
						gen_any(g, t);
	uint32_t op = gen_below(g, g->parts & GEN_DIVIDE ? 13 : 11);

	if (gen_one_in(g, 6))
		return dsl_unary(DSL_AT,
				 one[gen_below(g, t == DSL_I64 ? 2 : 5)], a);
	if (gen_one_in(g, 20) && t == DSL_I32)
		return DOT4(a, b, gen_any(g, t));
	if (t == DSL_I64 && op == 10)
		op = 0;
	return dsl_binary(DSL_AT, two[op], a, b);
}

static inline struct val gen_compare(struct gen *g)
{
	enum dsl_type t = gen_type(g);

	if (t == DSL_BOOL)
		return gen_one_in(g, 3) ? NOT(gen_any(g, t)) :
					  dsl_binary(DSL_AT, DSL_AND +
						     gen_below(g, 3),
						     gen_any(g, t),
						     gen_any(g, t));
	return dsl_binary(DSL_AT, DSL_LT + gen_below(g, 6), gen_any(g, t),
			  gen_one_in(g, 2) ? gen_constant(g, t) :
					     gen_any(g, t));
}

static inline struct val gen_convert(struct gen *g)
{
	const enum dsl_type from = gen_type(g), to = gen_type(g);
	const struct val x = gen_any(g, from);
	const bool real = from == DSL_F32 || from == DSL_F16 ||
			  to == DSL_F32 || to == DSL_F16;

	if (from == DSL_F32 && (to == DSL_I32 || to == DSL_U32) &&
	    gen_one_in(g, 2))
		return BITS(to, gen_number(x));
	/* Bits without the top of the exponent: no infinity, no NaN. */
	if (from == DSL_I32 && to == DSL_F32 && gen_one_in(g, 2))
		return BITS(DSL_F32, AND(x, 0xbfffffff));
	if (g->parts & GEN_SMALL && gen_one_in(g, 3) && from == DSL_I32) {
		static const enum dsl_type small[] = { DSL_I8, DSL_U8,
						       DSL_I16 };

		return CAST(DSL_I32, CAST(small[gen_below(g, 3)], x));
	}
	if (g->parts & GEN_SMALL && gen_one_in(g, 3) && from == DSL_F32)
		return CAST(DSL_F32, CAST(DSL_BF16, x));
	if (real && (from == DSL_I64 || to == DSL_I64))
		return x;
	return CAST(to, x);
}

/* An operation on packed pairs; DSL values are scalars. */
static inline struct val gen_pair(struct gen *g)
{
	static const enum ssa_op on_int[] = { SSA_add, SSA_sub, SSA_mul,
					      SSA_and, SSA_or, SSA_xor, SSA_shl,
					      SSA_shr_u, SSA_shr_s, SSA_min_u,
					      SSA_max_u, SSA_min_s, SSA_max_s };
	static const enum ssa_op on_float[] = { SSA_fadd, SSA_fsub, SSA_fmul,
						SSA_fmin, SSA_fmax };
	const bool real = g->parts & GEN_F16 && gen_one_in(g, 2);
	const struct ssa_type t = ssa_type(real ? SSA_F16 : SSA_I16, 2);
	struct ssa_inst *v[2], *r;

	for (int j = 0; j < 2; j++) {
		if (!real) {
			v[j] = dsl_emit1(g->k, SSA_bitcast, t,
					 gen_any(g, DSL_I32).e[0]);
			continue;
		}
		struct val two = JOIN(gen_any(g, DSL_F16), gen_any(g, DSL_F16));

		v[j] = dsl_pack(g->k, &two);
	}
	r = dsl_emit2(g->k,
		      real ? on_float[gen_below(g, ARRAY_SIZE(on_float))] :
			     on_int[gen_below(g, ARRAY_SIZE(on_int))],
		      t, v[0], v[1]);
	if (real)
		return dsl_unpack(g->k, DSL_F16, r);
	return dsl_val1(g->k, DSL_I32, dsl_emit1(g->k, SSA_bitcast,
						 ssa_type(SSA_I32, 1), r));
}

static inline struct val gen_value(struct gen *g)
{
	const enum dsl_type t = gen_type(g);

	if (g->parts & GEN_PAIRS && gen_one_in(g, 12))
		return gen_pair(g);
	if (gen_one_in(g, 5))
		return gen_convert(g);
	if (gen_one_in(g, 6))
		return SELECT(gen_any(g, DSL_BOOL), gen_any(g, t),
			      gen_any(g, t));
	if (t == DSL_BOOL)
		return gen_compare(g);
	return t == DSL_F32 || t == DSL_F16 ? gen_float_op(g, t) :
					      gen_int_op(g, t);
}

/* -------------------------------------------------------------- memory -- */

/* An index into an input that leaves room for n elements. */
static inline struct val gen_index(struct gen *g, uint32_t n)
{
	struct val i = gen_any(g, gen_one_in(g, 2) ? DSL_U32 : DSL_I32);

	if (gen_one_in(g, 3))
		return CONST(g->k, DSL_I32, gen_below(g, GEN_IN_WORDS - n));
	i = AND(i, GEN_IN_WORDS / 2 - 1);
	if (gen_one_in(g, 2)) /* neighbours, for vectorisation */
		i = ADD(i, gen_below(g, 8));
	return gen_one_in(g, 4) && g->parts & GEN_I64 ? CAST(DSL_I64, i) : i;
}

static inline void gen_load_small(struct gen *g)
{
	static const enum dsl_type t[] = { DSL_I8, DSL_U8, DSL_I16 };
	const enum dsl_type it = t[gen_below(g, 3)];

	gen_keep(g, CAST(DSL_I32, LOADV(AS(it, g->in), gen_index(g, 8),
					1 + gen_below(g, 4))));
}

static inline void gen_load(struct gen *g)
{
	const uint32_t n = gen_one_in(g, 2) ? 1 : 1 + gen_below(g, 8);
	const bool real = g->parts & GEN_FLOAT && gen_one_in(g, 2);
	const struct val p = real ? g->in_f : g->in;

	if (g->parts & GEN_SMALL && gen_one_in(g, 4)) {
		gen_load_small(g);
		return;
	}
	if (gen_one_in(g, 3))
		gen_keep(g, LOADV_IF(gen_any(g, DSL_BOOL), p, gen_index(g, n),
				     n));
	else if (gen_one_in(g, 3)) /* one by one, side by side */
		gen_keep(g, LOAD(p, RANGE(ADD(AND(gen_any(g, DSL_I32), 63),
					      gen_below(g, 4)), 4)));
	else
		gen_keep(g, LOADV(p, gen_index(g, n), n));
}

/* A slot of this work-item's own. */
static inline struct val gen_slot(struct gen *g)
{
	if (gen_one_in(g, 5))
		return ADD(MUL(g->item, GEN_SLOTS),
			   CAST(DSL_U32, AND(gen_any(g, DSL_I32),
					     GEN_SLOTS / 2 - 1)));
	return ADD(MUL(g->item, GEN_SLOTS), gen_below(g, GEN_SLOTS - 4));
}

static inline void gen_store(struct gen *g)
{
	const struct val at = gen_slot(g);

	if (g->parts & GEN_FLOAT && gen_one_in(g, 2)) {
		STORE(g->out_f, at, gen_any(g, DSL_F32));
	} else if (gen_one_in(g, 4)) {
		STORE(g->out, at, JOIN(gen_any(g, DSL_I32),
				       gen_any(g, DSL_I32)));
	} else if (gen_one_in(g, 3)) {
		STORE_IF(gen_any(g, DSL_BOOL), g->out, at,
			 gen_any(g, DSL_I32));
	} else {
		STORE(g->out, at, gen_any(g, DSL_I32));
	}
	if (gen_one_in(g, 3))
		gen_keep(g, LOAD(g->out, gen_slot(g)));
}

static inline void gen_atomic(struct gen *g)
{
	static const enum ssa_rmw op[] = { SSA_RMW_ADD,	  SSA_RMW_MIN_S,
					   SSA_RMW_MAX_S, SSA_RMW_MIN_U,
					   SSA_RMW_MAX_U, SSA_RMW_AND,
					   SSA_RMW_OR,	  SSA_RMW_XOR };
	const enum ssa_rmw how = op[gen_below(g, 8)];

	/* One operation for each word, so that the order is all the same. */
	if (gen_one_in(g, 2))
		ATOMIC_IF(gen_any(g, DSL_BOOL), how, g->sums, how,
			  gen_any(g, DSL_I32));
	else
		gen_keep(g, ATOMIC(how, g->out, gen_slot(g),
				   gen_any(g, DSL_I32)));
}

/* --------------------------------------------------------------- group -- */

static inline void gen_lds(struct gen *g)
{
	const uint32_t size = g->k->f->group[0];
	const struct val id = LOCAL_ID(g->k, 0);

	STORE(g->lds, id, gen_any(g, DSL_I32));
	BARRIER(g->k);
	gen_keep(g, LOAD(g->lds, REM(ADD(id, 1 + gen_below(g, size - 1)),
				     size)));
	if (gen_one_in(g, 2))
		gen_keep(g, LOAD(g->lds, gen_below(g, size)));
	BARRIER(g->k);
}

static inline void gen_lanes(struct gen *g)
{
	const enum dsl_type t = g->parts & GEN_FLOAT && gen_one_in(g, 4) ?
					DSL_F32 : DSL_I32;
	const struct val x = gen_any(g, t);

	switch (gen_below(g, g->uniform && g->whole ? 9 : 5)) {
	case 0:
		gen_keep(g, WAVE_MAX(x));
		return;
	case 1:
		gen_keep(g, WAVE_SUM(gen_any(g, DSL_I32)));
		return;
	case 2:
		gen_keep(g, WAVE_SCAN(ADD, gen_any(g, DSL_I32),
				      gen_one_in(g, 2)));
		return;
	case 3:
		gen_keep(g, READ_FIRST(x));
		return;
	case 4:
		gen_keep(g, CAST(DSL_I32, BALLOT(gen_any(g, DSL_BOOL))));
		return;
	case 5:
		gen_keep(g, SHUFFLE(x, gen_any(g, DSL_I32)));
		return;
	case 6:
		gen_keep(g, SHUFFLE_XOR(x, 1u << gen_below(g, 5)));
		return;
	case 7:
		gen_keep(g, READ_LANE(x, gen_below(g, 32)));
		return;
	default:
		gen_keep(g, GROUP_MAX(x));
		return;
	}
}

/* Small whole numbers of f16, so that no NaN comes. */
static inline void gen_wmma(struct gen *g)
{
	struct val e[2][16], c = FRAG_ZERO(g->k, DSL_F32);
	struct ssa_inst *v[2];
	const struct val lane = AND(LANE(g->k), 15);

	for (int j = 0; j < 2; j++) {
		for (uint32_t x = 0; x < 16; x++)
			e[j][x] = CAST(DSL_F16, CAST(DSL_F32,
				AND(LOAD(g->in, ADD(lane, 15 * x + j)), 15)));
		struct val all = dsl_join(DSL_AT, e[j], 16);

		v[j] = dsl_pack(g->k, &all);
	}
	struct val a = dsl_val1(g->k, DSL_F16, v[0]);
	struct val b = dsl_val1(g->k, DSL_F16, v[1]);

	a.frag = 'A';
	b.frag = 'B';
	c = WMMA(a, b, c);
	gen_keep(g, FRAG_ELEMS(WMMA(a, b, c)));
}

/* ---------------------------------------------------------- statements -- */

static inline void gen_body(struct gen *g, uint32_t n);

/* A side or body: what is made in it goes out of scope. */
static inline void gen_scope(struct gen *g, bool uniform, uint32_t n)
{
	const uint32_t n_pool = g->n_pool;
	const bool was = g->uniform;

	g->depth++;
	g->uniform = uniform && was;
	gen_body(g, n);
	g->uniform = was;
	g->depth--;
	g->n_pool = n_pool;
}

static inline void gen_if(struct gen *g)
{
	/* The number is the same for all. */
	const bool same = gen_one_in(g, 3);
	const struct val c = same ? LT(AND(g->number, 15), gen_below(g, 16)) :
				    gen_any(g, DSL_BOOL);
	const uint32_t n = 1 + gen_below(g, 4);

	IF (g->k, c) {
		gen_scope(g, same, n);
	}
	if (gen_one_in(g, 2))
		return;
	ELSE (g->k) {
		gen_scope(g, same, n);
	}
}

static inline void gen_loop(struct gen *g)
{
	const bool same = gen_one_in(g, 2), up = gen_one_in(g, 3);
	const struct val few = AND(same ? g->number : gen_any(g, DSL_I32), 3);
	const uint32_t n = 1 + gen_below(g, 4), step = 1 + gen_below(g, 2);

	if (gen_one_in(g, 4)) {
		struct var left = VAR_OF(few);

		WHILE (g->k, GT(left, 0)) {
			SET(left, SUB(left, 1));
			gen_scope(g, same, n);
		}
		return;
	}
	FOR (g->k, i, up ? few : V(0), up ? V(5) : gen_one_in(g, 2) ? few :
	     CONST(g->k, DSL_I32, gen_below(g, 6)), step) {
		const uint32_t n_pool = g->n_pool;

		gen_keep(g, i);
		if (gen_one_in(g, 2))
			gen_keep(g, MUL(i, g->number));
		gen_scope(g, same, n);
		g->n_pool = n_pool;
	}
}

static inline void gen_set(struct gen *g)
{
	const uint32_t x = gen_below(g, GEN_VARS);

	SET(g->var[x], gen_any(g, g->var_type[x]));
}

static inline void gen_statement(struct gen *g)
{
	const uint32_t p = g->parts;

	switch (gen_below(g, 20)) {
	case 0:
	case 1:
		if (p & GEN_FLOW && g->depth < 3)
			gen_if(g);
		return;
	case 2:
		if (p & GEN_FLOW && g->depth < 3)
			gen_loop(g);
		return;
	case 3:
	case 4:
		gen_load(g);
		return;
	case 5:
	case 6:
		gen_store(g);
		return;
	case 7:
		if (p & GEN_LDS && g->uniform)
			gen_lds(g);
		return;
	case 8:
		if (p & GEN_LANES)
			gen_lanes(g);
		return;
	case 9:
		if (p & GEN_ATOMICS)
			gen_atomic(g);
		return;
	case 10:
		if (p & GEN_WMMA && g->uniform && g->whole && gen_one_in(g, 4))
			gen_wmma(g);
		return;
	case 11:
	case 12:
	case 13:
		gen_set(g);
		return;
	default:
		gen_keep(g, gen_value(g));
		return;
	}
}

static inline void gen_body(struct gen *g, uint32_t n)
{
	for (uint32_t j = 0; j < n && g->budget; j++) {
		g->budget--;
		gen_statement(g);
	}
}

/* What is in the variables at the end is written. */
static inline void gen_results(struct gen *g)
{
	for (uint32_t j = 0; j < GEN_VARS; j++) {
		const struct val at = ADD(MUL(g->item, GEN_SLOTS),
					  GEN_SLOTS - 1 - j);
		const struct val v = GET(g->var[j]);

		if (g->var_type[j] == DSL_F32 || g->var_type[j] == DSL_F16)
			STORE(g->out_f, at, CAST(DSL_F32, v));
		else
			STORE(g->out, at, CAST(DSL_I32, v));
		if (g->var_type[j] == DSL_I64)
			STORE(g->out, ADD(MUL(g->item, GEN_SLOTS), j),
			      CAST(DSL_I32, SHR(v, 32)));
	}
}

static inline void gen_start(struct gen *g)
{
	struct dsl *k = g->k;

	MATH(k, 0); /* nothing may be fused: every level must agree */
	g->in = ARG_PTR(k, DSL_I32, "in", DSL_READONLY);
	g->in_f = ARG_PTR(k, DSL_F32, "in_f", DSL_READONLY);
	g->out = ARG_PTR(k, DSL_I32, "out", DSL_NOALIAS);
	g->out_f = ARG_PTR(k, DSL_F32, "out_f", DSL_NOALIAS);
	g->sums = ARG_PTR(k, DSL_I32, "sums", DSL_NOALIAS);
	g->number = ARG(k, DSL_I32, "number");
	g->factor = ARG(k, DSL_F32, "factor");
	if (g->parts & GEN_LDS)
		g->lds = LDS(k, DSL_I32, k->f->group[0], "lds");
	g->item = GLOBAL_ID(k, 0);
	gen_keep(g, g->item);
	gen_keep(g, LOCAL_ID(k, 0));
	gen_keep(g, GROUP_ID(k, 0));
	gen_keep(g, LANE(k));
	gen_keep(g, g->number);
	if (g->parts & GEN_FLOAT)
		gen_keep(g, g->factor);
	gen_keep(g, LOAD(g->in, AND(g->item, GEN_IN_WORDS - 1)));
	if (g->parts & GEN_FLOAT)
		gen_keep(g, LOAD(g->in_f, AND(g->item, GEN_IN_WORDS - 1)));
	for (uint32_t j = 0; j < GEN_VARS; j++) {
		g->var_type[j] = gen_type(g);
		if (g->var_type[j] == DSL_BOOL)
			g->var_type[j] = DSL_I32;
		/* The type above is used by gen_any() from now on. */
		g->var[j] = VAR_OF(gen_constant(g, g->var_type[j]));
	}
}

static inline void gen_kernel(struct gen_kernel *out, uint64_t seed,
			      uint32_t parts)
{
	static const uint32_t sizes[] = { 32, 64, 96, 128, 50 };
	struct gen g = { .random = seed * 0x2545f4914f6cdd1d + 1,
			 .parts = parts, .uniform = true };
	struct err e = { 0 };
	const uint32_t size = sizes[gen_below(&g, ARRAY_SIZE(sizes))];
	char name[32];

	snprintf(name, sizeof(name), "gen%llu", (unsigned long long)seed);
	g.k = KERNEL(name, size);
	g.whole = size % 32 == 0;
	g.budget = 10 + gen_below(&g, 80);
	*out = (struct gen_kernel){ .groups = 1 + gen_below(&g, 2),
				    .seed = seed };
	out->items = out->groups * size;
	gen_start(&g);
	gen_body(&g, g.budget);
	gen_results(&g);
	out->f = dsl_finish(g.k, &e);
	if (!out->f) {
		diag("seed %llu: %s", (unsigned long long)seed, e.msg);
		exit(1);
	}
}

static inline void gen_kernel_fini(struct gen_kernel *g)
{
	ssa_func_free(g->f);
}

/* ----------------------------------------------------------------- data -- */

static inline void gen_fill(uint64_t seed, struct gen_data *d)
{
	static const float special[] = { 0, -0.0f, 1, -1, INFINITY, -INFINITY,
					 1e-40f, 3e38f, 65504, 6e-8f };
	uint64_t random = seed + 99;

	memset(d, 0, sizeof(*d));
	for (uint32_t j = 0; j < GEN_IN_WORDS; j++) {
		const uint64_t r = test_random(&random);

		d->in[j] = r & 1 ? (uint32_t)(r >> 32) : (uint32_t)(r >> 58);
		d->in_f[j] = r >> 8 & 7 ? test_random_f32(&random) *
						  (float)(1 << (r >> 20 & 15)) :
					  special[(r >> 30) % 10];
	}
	for (uint32_t j = 0; j < GEN_MAX_ITEMS * GEN_SLOTS; j++) {
		d->out[j] = j;
		d->out_f[j] = (float)j;
	}
	d->number = (uint32_t)test_random(&random) & 0xffff;
	d->factor = test_random_f32(&random) * 8;
}

static inline struct ssa_call gen_call(const struct gen_kernel *g,
				       struct gen_data *d)
{
	struct ssa_call c = { 0 };

	call_buffer(&c, d->in, sizeof(d->in));
	call_buffer(&c, d->in_f, sizeof(d->in_f));
	call_buffer(&c, d->out, g->items * GEN_SLOTS * 4);
	call_buffer(&c, d->out_f, g->items * GEN_SLOTS * 4);
	call_buffer(&c, d->sums, sizeof(d->sums));
	call_u32(&c, d->number);
	call_f32(&c, d->factor);
	return c;
}

static inline bool gen_interpret(const struct gen_kernel *g,
				 struct gen_data *d, struct err *e)
{
	const struct ssa_call c = gen_call(g, d);

	return call_run(g->f, &c, g->groups, 1, NULL, e);
}

/* Was the same written?  Any NaN equals any other; says what differs first. */
static inline bool gen_same(const struct gen_kernel *g,
			    const struct gen_data *a, const struct gen_data *b)
{
	const unsigned long long seed = g->seed;

	for (uint32_t j = 0; j < g->items * GEN_SLOTS; j++) {
		if (a->out[j] != b->out[j]) {
			diag("seed %llu: work-item %u, word %u: 0x%x and 0x%x",
			     seed, j / GEN_SLOTS, j % GEN_SLOTS, a->out[j],
			     b->out[j]);
			return false;
		}
		if (memcmp(&a->out_f[j], &b->out_f[j], 4) &&
		    !(isnan(a->out_f[j]) && isnan(b->out_f[j]))) {
			diag("seed %llu: work-item %u, float %u: %a and %a",
			     seed, j / GEN_SLOTS, j % GEN_SLOTS,
			     (double)a->out_f[j], (double)b->out_f[j]);
			return false;
		}
	}
	for (uint32_t j = 0; j < GEN_SUMS; j++)
		if (a->sums[j] != b->sums[j]) {
			diag("seed %llu: sum %u: 0x%x and 0x%x", seed, j,
			     a->sums[j], b->sums[j]);
			return false;
		}
	return true;
}

#endif
