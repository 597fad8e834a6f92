/*
 * dsl - kernels written in C that read like the mathematics they do.
 *
 * A kernel is a C function that builds SSA (compiler/ssa/ssa.h) while it runs.
 * It describes one work-item: values are `struct val`, operations are macros in
 * capitals (they note file and line), and C itself is the macro language: a C
 * `for` unrolls, a C function is a subroutine, a C variable is a parameter.
 *
 * Example 1: y = a x + y, with a tail that reads and writes nothing.
 *
 *	struct ssa_func *saxpy(struct err *e)
 *	{
 *		struct dsl *k = KERNEL("saxpy", 256);
 *		struct val x = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
 *		struct val y = ARG_PTR(k, DSL_F32, "y", 0);
 *		struct val a = ARG(k, DSL_F32, "a"), n = ARG(k, DSL_U32, "n");
 *		struct val i = GLOBAL_ID(k, 0), in = LT(i, n);
 *
 *		STORE_IF(in, y, i, FMA(a, LOAD_IF(in, x, i),
 *				       LOAD_IF(in, y, i)));
 *		return dsl_finish(k, e);
 *	}
 *
 * Example 2: softmax of a row of n, one workgroup per row, in one pass over the
 * data for maximum and sum together (a new maximum rescales the sum).
 *
 *	struct ssa_func *softmax(struct err *e)
 *	{
 *		struct dsl *k = KERNEL("softmax", 64);
 *		struct val in = ARG_PTR(k, DSL_F32, "in", DSL_READONLY);
 *		struct val out = ARG_PTR(k, DSL_F32, "out", 0);
 *		struct val n = ARG(k, DSL_I32, "n");
 *		struct val row = MUL(CAST(DSL_I64, GROUP_ID(k, 0)),
 *				     CAST(DSL_I64, n));
 *		struct val x = ADVANCE(in, row), y = ADVANCE(out, row);
 *		struct var max = VAR(k, DSL_F32, -INFINITY);
 *		struct var sum = VAR(k, DSL_F32, 0);
 *
 *		FOR(k, i, LOCAL_ID(k, 0), n, 64) {
 *			struct val v = LOAD(x, i), m = MAX(max, v);
 *
 *			SET(sum, FMA(sum, EXP(SUB(max, m)), EXP(SUB(v, m))));
 *			SET(max, m);
 *		}
 *		struct val top = GROUP_MAX(max);
 *		struct val all = GROUP_SUM(MUL(sum, EXP(SUB(max, top))));
 *
 *		FOR(k, j, LOCAL_ID(k, 0), n, 64) {
 *			STORE(y, j, DIV(EXP(SUB(LOAD(x, j), top)), all));
 *		}
 *		return dsl_finish(k, e);
 *	}
 *
 * (A lane without elements has max = -inf, and -inf - -inf is NaN: the tests'
 * copy of this example takes rows of at least 64.)
 *
 * Example 3: a 16x16 tile of D = A B, A and B of f16, depth a multiple of 16.
 *
 *	struct ssa_func *tile(struct err *e)
 *	{
 *		struct dsl *k = KERNEL("tile", 32);
 *		struct val a = ARG_PTR(k, DSL_F16, "a", DSL_READONLY);
 *		struct val b = ARG_PTR(k, DSL_F16, "b", DSL_READONLY);
 *		struct val d = ARG_PTR(k, DSL_F32, "d", 0);
 *		struct val depth = ARG(k, DSL_I32, "depth");
 *		struct val m = MUL(GROUP_ID(k, 0), 16);
 *		struct val n = MUL(GROUP_ID(k, 1), 16);
 *		struct val ld = MUL(NUM_GROUPS(k, 1), 16);
 *		struct var acc = VAR_OF(FRAG_ZERO(k, DSL_F32));
 *
 *		FOR(k, i, 0, depth, 16) {
 *			struct val fa = FRAG_LOAD('A', a,
 *				ADD(MUL(m, depth), i), depth, DSL_ROWS);
 *			struct val fb = FRAG_LOAD('B', b,
 *				ADD(MUL(i, ld), n), ld, DSL_ROWS);
 *
 *			SET(acc, WMMA(fa, fb, acc));
 *		}
 *		FRAG_STORE(d, ADD(MUL(m, ld), n), ld, DSL_ROWS, GET(acc));
 *		return dsl_finish(k, e);
 *	}
 *
 * A source of its own, for t0-cc: T0_KERNEL(name) in place of the function's
 * head, any number of them.
 *
 *	#include "compiler/dsl/dsl.h"
 *
 *	T0_KERNEL(fill)
 *	{
 *		struct dsl *k = KERNEL("fill", 64);
 *		struct val out = ARG_PTR(k, DSL_I32, "out", 0);
 *
 *		STORE(out, GLOBAL_ID(k, 0), 7);
 *		return dsl_finish(k, e);
 *	}
 *
 * Values and numbers.  Wherever a value is wanted, a C number may stand (it
 * takes the type of the other operand) or a variable (it is read).  Both
 * operands of an operation have the same type; only CAST() converts.  A value
 * may have 1 to 16 elements: an operation works on each, one of one element is
 * repeated.  bf16, i8, u8 and i16 are for memory: CAST() them to compute.
 *
 * Variables.  `struct val` is a value for ever; what changes in an IF or a loop
 * is a `struct var`.  It lives until the block of C in which it was made ends.
 *
 * Masks.  IF, FOR and WHILE may differ from lane to lane; lanes that do not
 * take part wait.  Barriers, GROUP_... and matrix operations are for places
 * that all lanes reach together.  Never leave the body of one of these by
 * break, goto, continue or return.
 *
 * Errors stick: the first one is kept with the source's file and line, later
 * calls do nothing, and dsl_finish() reports it.
 *
 * Floating point follows compiler/ssa/ssa.h: by default a product and a sum may
 * become one fma (SSA_CONTRACT); MATH(k, flags) sets another policy for what
 * follows, e.g. MATH(k, SSA_CONTRACT | SSA_FAST).
 *
 * Ownership: the builder owns all values; dsl_finish() frees it and returns the
 * function, which is the caller's (ssa_func_free()).
 */
#ifndef T0_COMPILER_DSL_H
#define T0_COMPILER_DSL_H

#include "compiler/ssa/ssa.h"

/* t0-cc shows these functions to the sources that it loads. */
#pragma GCC visibility push(default)

enum dsl_type {
	DSL_NONE, /* a zero-initialised value: undefined */
	DSL_BOOL,
	DSL_I8,
	DSL_U8,
	DSL_I16,
	DSL_I32,
	DSL_U32,
	DSL_I64,
	DSL_F16,
	DSL_BF16,
	DSL_F32,
	DSL_GLOBAL, /* pointer into global memory, */
	DSL_SHARED, /* into LDS; `elem` is what it points to */
	DSL_NUMBER, /* a C number that waits for a type */
	DSL_TYPES
};

struct dsl; /* the builder of one kernel */

/* A value.  Copy it freely; fields are for dsl_*.c. */
struct val {
	struct dsl *k;
	struct ssa_inst **e; /* [n] */
	uint8_t type, elem;  /* enum dsl_type */
	uint8_t n;	     /* elements */
	char frag;	     /* 'A', 'B', 'C': one of the matrix's; else 0 */
	uint8_t align;	     /* of a pointer: log2 of what ALIGNED() said */
	bool readonly;	     /* of a pointer */
	bool whole;	     /* a number: `i` holds it, too */
	double f;
	int64_t i;
};

/* A variable: its value is whatever was SET() last on the way here. */
struct var {
	struct dsl *k;
	uint32_t id;
};

struct dsl_at {
	const char *file;
	uint32_t line;
};
#define DSL_AT ((struct dsl_at){ __FILE__, __LINE__ })

/*
 * A value from a value, a variable or a C number.  The name in between keeps
 * nested operations from being expanded twice at each level.
 */
#define V(x)		V_(x, __COUNTER__)
#define V_(x, unique)	V__(x, unique)
#define V__(x, unique)                                                    \
	({                                                                \
		const __auto_type dsl_v##unique = (x);                    \
		_Generic(dsl_v##unique, struct val: dsl_of_val,           \
			 struct var: dsl_get, float: dsl_of_f64,          \
			 double: dsl_of_f64, default: dsl_of_i64)(        \
			dsl_v##unique);                                   \
	})

/* ------------------------------------------------------------- dsl.c ---- */

/* A kernel with groups of `x` work-items (or x, y, z). */
#define KERNEL(...) dsl_new(DSL_AT, __VA_ARGS__, 1, 1, 1)
struct dsl *dsl_new(struct dsl_at at, const char *name, uint32_t x, uint32_t y,
		    uint32_t z, ...);
const char *dsl_name(const struct dsl *k); /* of the kernel */
/* The finished function, or NULL and the first error. */
struct ssa_func *dsl_finish(struct dsl *k, struct err *e);
/* An error of the kernel's own, e.g. a parameter that it does not support. */
#define FAIL(k, ...) dsl_fail(k, DSL_AT, __VA_ARGS__)
bool dsl_fail(struct dsl *k, struct dsl_at at, const char *fmt, ...)
	T0_PRINTF(3, 4);

/*
 * READONLY: nothing writes there while the kernel runs, so loads may move over
 * stores and barriers.  NOALIAS: what is reached through it overlaps with no
 * other such argument's.  Without either, a buffer may be used in place.
 */
enum { DSL_READONLY = 1, DSL_NOALIAS = 2 }; /* readonly implies noalias */
#define ARG(k, type, name)	      dsl_arg(k, DSL_AT, type, name)
#define ARG_PTR(k, elem, name, flags) dsl_arg_ptr(k, DSL_AT, elem, name, flags)
struct val dsl_arg(struct dsl *k, struct dsl_at at, enum dsl_type type,
		   const char *name);
struct val dsl_arg_ptr(struct dsl *k, struct dsl_at at, enum dsl_type elem,
		       const char *name, uint32_t flags);
/* An array of `count` in the group's memory, not initialised. */
#define LDS(k, elem, count, name) dsl_lds(k, DSL_AT, elem, count, name)
struct val dsl_lds(struct dsl *k, struct dsl_at at, enum dsl_type elem,
		   uint32_t count, const char *name);

/* Where this work-item is; i32. */
#define LOCAL_ID(k, dim)   dsl_leaf(k, DSL_AT, SSA_local_id, dim)
#define GROUP_ID(k, dim)   dsl_leaf(k, DSL_AT, SSA_group_id, dim)
#define NUM_GROUPS(k, dim) dsl_leaf(k, DSL_AT, SSA_num_groups, dim)
#define LANE(k)		   dsl_leaf(k, DSL_AT, SSA_lane, 0)
#define WAVE(k)		   dsl_leaf(k, DSL_AT, SSA_wave, 0)
#define CLOCK(k)	   dsl_leaf(k, DSL_AT, SSA_clock, 0)
#define GLOBAL_ID(k, dim)  dsl_global_id(k, DSL_AT, dim)
struct val dsl_leaf(struct dsl *k, struct dsl_at at, enum ssa_op op,
		    uint32_t dim);
struct val dsl_global_id(struct dsl *k, struct dsl_at at, uint32_t dim);

#define CONST(k, type, number) dsl_const(k, DSL_AT, type, V(number))
struct val dsl_const(struct dsl *k, struct dsl_at at, enum dsl_type type,
		     struct val number);
/* n elements: start, start + 1, ... */
#define RANGE(start, n) dsl_range(DSL_AT, V(start), n)
struct val dsl_range(struct dsl_at at, struct val start, uint32_t n);
/* Element j of x as a value; the elements of several side by side. */
#define ELEM(x, j) dsl_elem(DSL_AT, V(x), j)
struct val dsl_elem(struct dsl_at at, struct val x, uint32_t j);
#define JOIN(...) DSL_LIST(dsl_join, __VA_ARGS__)
#define DSL_LIST(f, ...)                                  \
	f(DSL_AT, (const struct val[]){ __VA_ARGS__ },    \
	  sizeof((const struct val[]){ __VA_ARGS__ }) / sizeof(struct val))
struct val dsl_join(struct dsl_at at, const struct val *v, size_t n);

/* The floating-point policy from here on: SSA_CONTRACT, _FAST, _REASSOC. */
#define MATH(k, flags) dsl_math(k, flags)
void dsl_math(struct dsl *k, uint16_t flags);
/* So many waves per SIMD are enough: more registers hide more than more do. */
void dsl_waves(struct dsl *k, uint32_t waves);

struct val dsl_of_val(struct val v);
struct val dsl_of_f64(double f);
struct val dsl_of_i64(int64_t i);

/* ---------------------------------------------------------- dsl_op.c ---- */

enum dsl_op {
	DSL_ADD, DSL_SUB, DSL_MUL, DSL_DIV, DSL_REM, DSL_MIN, DSL_MAX,
	DSL_AND, DSL_OR, DSL_XOR, DSL_SHL, DSL_SHR, DSL_MULHI, DSL_COPYSIGN,
	DSL_LT, DSL_LE, DSL_GT, DSL_GE, DSL_EQ, DSL_NE,
	DSL_NEG, DSL_ABS, DSL_NOT, DSL_SQRT, DSL_RSQRT, DSL_RCP, DSL_EXP2,
	DSL_LOG2, DSL_FLOOR, DSL_CEIL, DSL_TRUNC, DSL_ROUND, DSL_CLZ, DSL_CTZ,
	DSL_POPCOUNT, DSL_SIN_TURNS, DSL_COS_TURNS,
	DSL_OPS
};
#define DSL_2(op, a, b) dsl_binary(DSL_AT, DSL_##op, V(a), V(b))
#define DSL_1(op, a)	dsl_unary(DSL_AT, DSL_##op, V(a))
#define ADD(a, b)	DSL_2(ADD, a, b)
#define SUB(a, b)	DSL_2(SUB, a, b)
#define MUL(a, b)	DSL_2(MUL, a, b)
#define DIV(a, b)	DSL_2(DIV, a, b) /* correctly rounded unless FAST */
#define REM(a, b)	DSL_2(REM, a, b) /* integers; sign of a */
#define MIN(a, b)	DSL_2(MIN, a, b) /* a number beats a NaN */
#define MAX(a, b)	DSL_2(MAX, a, b)
#define AND(a, b)	DSL_2(AND, a, b) /* of bits, or of conditions */
#define OR(a, b)	DSL_2(OR, a, b)
#define XOR(a, b)	DSL_2(XOR, a, b)
#define SHL(a, b)	DSL_2(SHL, a, b) /* count modulo the width */
#define SHR(a, b)	DSL_2(SHR, a, b) /* arithmetic for signed types */
#define MULHI(a, b)	DSL_2(MULHI, a, b) /* upper half; i32, u32 */
#define COPYSIGN(a, b)	DSL_2(COPYSIGN, a, b)
#define LT(a, b)	DSL_2(LT, a, b) /* a NaN compares false, */
#define LE(a, b)	DSL_2(LE, a, b)
#define GT(a, b)	DSL_2(GT, a, b)
#define GE(a, b)	DSL_2(GE, a, b)
#define EQ(a, b)	DSL_2(EQ, a, b)
#define NE(a, b)	DSL_2(NE, a, b) /* but here true */
#define NEG(a)		DSL_1(NEG, a)
#define ABS(a)		DSL_1(ABS, a)
#define NOT(a)		DSL_1(NOT, a)
#define SQRT(a)		DSL_1(SQRT, a)	/* correctly rounded unless FAST */
#define RSQRT(a)	DSL_1(RSQRT, a) /* 1 ulp, as are the next three */
#define RCP(a)		DSL_1(RCP, a)
#define EXP2(a)		DSL_1(EXP2, a) /* results below 2^-126 may be 0 */
#define LOG2(a)		DSL_1(LOG2, a) /* of a denormal may be -inf */
#define FLOOR(a)	DSL_1(FLOOR, a)
#define CEIL(a)		DSL_1(CEIL, a)
#define TRUNC(a)	DSL_1(TRUNC, a)
#define ROUND(a)	DSL_1(ROUND, a) /* ties to even */
#define CLZ(a)		DSL_1(CLZ, a)
#define CTZ(a)		DSL_1(CTZ, a)
#define POPCOUNT(a)	DSL_1(POPCOUNT, a)
#define FMA(a, b, c)	dsl_fma(DSL_AT, V(a), V(b), V(c)) /* rounded once */
#define SELECT(c, a, b) dsl_select(DSL_AT, V(c), V(a), V(b))
/*
 * ADD, SUB, MUL, MIN, MAX of f16, two elements in one instruction; n is even.
 */
#define PAIRS(op, a, b) dsl_pairs(DSL_AT, DSL_##op, V(a), V(b))
/* i32: the sum of 4 products of signed bytes, and c. */
#define DOT4(a, b, c)	dsl_dot4(DSL_AT, V(a), V(b), V(c))
/* f32: the sum of two products of f16 or bf16 (2 elements each), and c. */
#define DOT2(a, b, c)	dsl_dot2(DSL_AT, V(a), V(b), V(c))
/*
 * To another type: floats to nearest even (bf16, too); floats to integers
 * toward zero, saturating, NaN to 0; integers to narrower ones wrap.  i64 goes
 * to f32 and back in some 20 instructions, to no other float.
 */
#define CAST(type, x) dsl_cast(DSL_AT, type, V(x))
/* The same bits as another type; elements follow from the widths. */
#define BITS(type, x) dsl_bits(DSL_AT, type, V(x))

struct val dsl_binary(struct dsl_at at, enum dsl_op op, struct val a,
		      struct val b);
struct val dsl_unary(struct dsl_at at, enum dsl_op op, struct val a);
struct val dsl_fma(struct dsl_at at, struct val a, struct val b, struct val c);
struct val dsl_select(struct dsl_at at, struct val c, struct val a,
		      struct val b);
struct val dsl_pairs(struct dsl_at at, enum dsl_op op, struct val a,
		     struct val b);
struct val dsl_dot4(struct dsl_at at, struct val a, struct val b, struct val c);
struct val dsl_dot2(struct dsl_at at, struct val a, struct val b, struct val c);
struct val dsl_cast(struct dsl_at at, enum dsl_type type, struct val x);
struct val dsl_bits(struct dsl_at at, enum dsl_type type, struct val x);

/* -------------------------------------------------------- dsl_math.c ---- */

/*
 * Functions of f32, made of the operations above.  Errors are for the exact
 * policy, in units in the last place of the result, on top of the hardware's
 * 1 ulp; with SSA_FAST the short forms named are used.
 */
#define EXP(x)	   dsl_exp(DSL_AT, V(x))     /* 2 ulp; FAST: 2^(x log2 e) */
#define LOG(x)	   dsl_log(DSL_AT, V(x))     /* 3 ulp or 2^-24 absolute */
#define SIN(x)	   dsl_sin(DSL_AT, V(x), 0)  /* 2^-20 absolute, |x| < 2^20 */
#define COS(x)	   dsl_sin(DSL_AT, V(x), 1)
#define TANH(x)	   dsl_tanh(DSL_AT, V(x))    /* 4 ulp */
#define SIGMOID(x) dsl_sigmoid(DSL_AT, V(x)) /* 4 ulp; 1 / (1 + e^-x) */
#define SILU(x)	   dsl_silu(DSL_AT, V(x))    /* 4 ulp; x sigmoid(x) */
#define ERF(x)	   dsl_erf(DSL_AT, V(x))     /* 4 ulp */
#define GELU(x)	   dsl_gelu(DSL_AT, V(x))    /* 2^-22 |x|; with erf */
#define POW(x, y)  dsl_pow(DSL_AT, V(x), V(y)) /* x > 0; 2^(y log2 x) */
#define ISNAN(x)   dsl_isnan(DSL_AT, V(x))
struct val dsl_exp(struct dsl_at at, struct val x);
struct val dsl_log(struct dsl_at at, struct val x);
struct val dsl_sin(struct dsl_at at, struct val x, bool cosine);
struct val dsl_tanh(struct dsl_at at, struct val x);
struct val dsl_sigmoid(struct dsl_at at, struct val x);
struct val dsl_silu(struct dsl_at at, struct val x);
struct val dsl_erf(struct dsl_at at, struct val x);
struct val dsl_gelu(struct dsl_at at, struct val x);
struct val dsl_pow(struct dsl_at at, struct val x, struct val y);
struct val dsl_isnan(struct dsl_at at, struct val x);

/* -------------------------------------------------------- dsl_flow.c ---- */

#define VAR(k, type, init) dsl_var(DSL_AT, CONST(k, type, init))
#define VAR_OF(value)	   dsl_var(DSL_AT, V(value))
#define SET(var, value)	   dsl_set(DSL_AT, var, V(value))
#define GET(var)	   dsl_get(var)
struct var dsl_var(struct dsl_at at, struct val init);
void dsl_set(struct dsl_at at, struct var v, struct val to);
struct val dsl_get(struct var v);

/* IF (k, c) { ... } or IF (k, c) { ... } ELSE (k) { ... } */
#define IF(k, c) \
	for (dsl_if(k, DSL_AT, V(c)); dsl_body(k); dsl_endif(k))
#define ELSE(k) for (dsl_else(k, DSL_AT); dsl_body(k); dsl_endif(k))
/*
 * i from lo while i < hi by step; i is a value.  The step is positive, and
 * hi + step is within the type.
 */
#define FOR(k, i, lo, hi, step)                                        \
	for (struct val i = dsl_for(k, DSL_AT, V(lo), V(hi), V(step)); \
	     dsl_body(k); dsl_endfor(k))
/* The condition is computed anew each time; it reads variables. */
#define WHILE(k, c)                                            \
	for (dsl_while(k, DSL_AT);                             \
	     dsl_body(k) && dsl_while_if(k, DSL_AT, V(c));     \
	     dsl_endwhile(k))
void dsl_if(struct dsl *k, struct dsl_at at, struct val c);
void dsl_else(struct dsl *k, struct dsl_at at);
void dsl_endif(struct dsl *k);
struct val dsl_for(struct dsl *k, struct dsl_at at, struct val lo,
		   struct val hi, struct val step);
void dsl_endfor(struct dsl *k);
void dsl_while(struct dsl *k, struct dsl_at at);
bool dsl_while_if(struct dsl *k, struct dsl_at at, struct val c);
void dsl_endwhile(struct dsl *k);
bool dsl_body(struct dsl *k);

/* --------------------------------------------------------- dsl_mem.c ---- */

/*
 * Memory.  `p` is a pointer to elements, `i` counts elements from it: an
 * unsigned 32-bit index whose byte offset is below 4 GiB, or an i64.  Where a
 * mask is false nothing is read or written, and a load gives 0.
 *
 * LOADV reads `n` adjacent elements.  An index of several elements reads from
 * as many places.  LOAD_IN and STORE_IN take only the elements whose index is
 * below `end`; the others are 0 or not written.
 */
#define LOAD(p, i)		dsl_load(DSL_AT, p, V(i), 1, V(1))
#define LOAD_IF(mask, p, i)	dsl_load(DSL_AT, p, V(i), 1, V(mask))
#define LOADV(p, i, n)		dsl_load(DSL_AT, p, V(i), n, V(1))
#define LOADV_IF(mask, p, i, n) dsl_load(DSL_AT, p, V(i), n, V(mask))
#define LOAD_IN(p, i, n, end)	dsl_load_in(DSL_AT, p, V(i), n, V(end))
#define STORE(p, i, x)		dsl_store(DSL_AT, p, V(i), V(x), V(1))
#define STORE_IF(mask, p, i, x) dsl_store(DSL_AT, p, V(i), V(x), V(mask))
#define STORE_IN(p, i, x, end)	dsl_store_in(DSL_AT, p, V(i), V(x), V(end))
/* The pointer `i` elements further; i is signed, i32 or i64. */
#define ADVANCE(p, i)	      dsl_advance(DSL_AT, p, V(i))
/*
 * A promise: what is accessed through it, as vectors and fragments too, lies at
 * a multiple of the smaller of its size and this power of two.
 */
#define ALIGNED(p, bytes)     dsl_aligned(DSL_AT, p, bytes)
/* The same address as a pointer to another type. */
#define AS(elem, p)	      dsl_as(DSL_AT, elem, p)
struct val dsl_load(struct dsl_at at, struct val p, struct val i, uint32_t n,
		    struct val mask);
struct val dsl_load_in(struct dsl_at at, struct val p, struct val i, uint32_t n,
		       struct val end);
void dsl_store(struct dsl_at at, struct val p, struct val i, struct val x,
	       struct val mask);
void dsl_store_in(struct dsl_at at, struct val p, struct val i, struct val x,
		  struct val end);
struct val dsl_advance(struct dsl_at at, struct val p, struct val i);
struct val dsl_aligned(struct dsl_at at, struct val p, uint32_t bytes);
struct val dsl_as(struct dsl_at at, enum dsl_type elem, struct val p);

/* The old value; op: SSA_RMW_ADD, _FADD, _MAX_S, ...; relaxed, device scope. */
#define ATOMIC(op, p, i, x) dsl_atomic(DSL_AT, op, p, V(i), V(x), V(1))
#define ATOMIC_IF(mask, op, p, i, x) \
	dsl_atomic(DSL_AT, op, p, V(i), V(x), V(mask))
/* If it is `expected` it becomes `to`; the old value. */
#define CAS(p, i, expected, to) \
	dsl_cas(DSL_AT, p, V(i), V(expected), V(to))
#define BARRIER(k) dsl_sync(k, DSL_AT, SSA_barrier) /* of the group */
#define FENCE(k)   dsl_sync(k, DSL_AT, SSA_fence)   /* device scope */
struct val dsl_atomic(struct dsl_at at, enum ssa_rmw op, struct val p,
		      struct val i, struct val x, struct val mask);
struct val dsl_cas(struct dsl_at at, struct val p, struct val i,
		   struct val expected, struct val to);
void dsl_sync(struct dsl *k, struct dsl_at at, enum ssa_op op);

/* -------------------------------------------------------- dsl_lane.c ---- */

/* Over the active lanes of the wave, for i32, u32, f32: the same in all. */
#define WAVE_SUM(x) dsl_reduce(DSL_AT, SSA_reduce, DSL_ADD, V(x))
#define WAVE_MIN(x) dsl_reduce(DSL_AT, SSA_reduce, DSL_MIN, V(x))
#define WAVE_MAX(x) dsl_reduce(DSL_AT, SSA_reduce, DSL_MAX, V(x))
/* Over the work-items of the group; all must come here. */
#define GROUP_SUM(x) dsl_reduce(DSL_AT, SSA_group_reduce, DSL_ADD, V(x))
#define GROUP_MIN(x) dsl_reduce(DSL_AT, SSA_group_reduce, DSL_MIN, V(x))
#define GROUP_MAX(x) dsl_reduce(DSL_AT, SSA_group_reduce, DSL_MAX, V(x))
/* Of the lanes before this one (and this one if `inclusive`). */
#define WAVE_SCAN(op, x, inclusive) \
	dsl_scan(DSL_AT, DSL_##op, V(x), inclusive) /* op: ADD, MIN, MAX */
/*
 * Of the work-items before (and this one); groups of one dimension.  Without
 * any before: 0, or what loses to every number.
 */
#define GROUP_SCAN(op, x, inclusive) \
	dsl_group_scan(DSL_AT, DSL_##op, V(x), inclusive)
/* x of another lane; of an inactive one it is any value. */
#define SHUFFLE(x, lane)	dsl_shuffle(DSL_AT, SSA_shuffle, V(x), V(lane))
#define READ_LANE(x, lane) \
	dsl_shuffle(DSL_AT, SSA_read_lane, V(x), V(lane))
#define SHUFFLE_XOR(x, mask)	dsl_shuffle_xor(DSL_AT, V(x), mask)
#define READ_FIRST(x)		dsl_read_first(DSL_AT, V(x))
#define BALLOT(c)		dsl_ballot(DSL_AT, V(c))
#define ANY(c)			 NE(BALLOT(c), 0)
#define ALL(c)			 EQ(BALLOT(NOT(c)), 0)
struct val dsl_reduce(struct dsl_at at, enum ssa_op over, enum dsl_op op,
		      struct val x);
struct val dsl_scan(struct dsl_at at, enum dsl_op op, struct val x,
		    bool inclusive);
struct val dsl_group_scan(struct dsl_at at, enum dsl_op op, struct val x,
			  bool inclusive);
struct val dsl_shuffle(struct dsl_at at, enum ssa_op op, struct val x,
		       struct val lane);
struct val dsl_shuffle_xor(struct dsl_at at, struct val x, uint32_t mask);
struct val dsl_read_first(struct dsl_at at, struct val x);
struct val dsl_ballot(struct dsl_at at, struct val c);

/* As printf() of C for each active lane: %d %u %x of integers; %f of f32. */
#define PRINTF(k, fmt, ...) \
	dsl_printf(k, DSL_AT, fmt,                                           \
		   (const struct val[]){ { 0 }, ##__VA_ARGS__ },              \
		   sizeof((const struct val[]){ { 0 }, ##__VA_ARGS__ }) /      \
		   sizeof(struct val))
/* v[1..n-1] are printed. */
void dsl_printf(struct dsl *k, struct dsl_at at, const char *fmt,
		const struct val *v, size_t n);

/* -------------------------------------------------------- dsl_wmma.c ---- */

/*
 * Fragments: 16x16 tiles spread over a wave of 32.  'A' is rows by depth, 'B'
 * depth by columns, 'C' rows by columns (and D).  Elements: A and B of f16 or
 * bf16 with C of f32 (or of the same), A and B of i8 or u8 with C of i32.
 *
 * In memory a tile starts at element `i` of p; with DSL_ROWS row r begins at
 * i + r * ld, with DSL_COLUMNS column c does.  A by rows and B by columns are
 * read 16 elements at once.  For i8 only these two are there.
 */
enum dsl_layout { DSL_ROWS, DSL_COLUMNS };
#define FRAG_ZERO(k, type) dsl_frag_zero(k, DSL_AT, type)
#define FRAG_LOAD(role, p, i, ld, layout) \
	dsl_frag_load(DSL_AT, role, p, V(i), V(ld), layout)
/* What a lane holds of A or B: 16 elements, as FRAG_LOAD would load them. */
#define FRAG_FROM(role, x) dsl_frag_from(DSL_AT, role, V(x))
#define WMMA(a, b, c) dsl_wmma(DSL_AT, V(a), V(b), V(c))
/*
 * Element j (0 to 7) of C in this lane is at this row and column of the tile.
 */
#define FRAG_ROW(k, j)	    dsl_frag_row(k, DSL_AT, j)
#define FRAG_COLUMN(k)	    dsl_frag_column(k, DSL_AT)
#define FRAG_ELEMS(c)	    dsl_frag_elems(DSL_AT, V(c)) /* a value of 8 */
#define FRAG_OF(x)	    dsl_frag_of(DSL_AT, V(x))	 /* and back: 'C' */
/*
 * A or B of a value of 16 f16 or bf16: lane l's row l % 16 of A or column of B;
 * lanes 16 apart must hold the same.
 */
#define FRAG_OPERAND(role, x) dsl_frag_operand(DSL_AT, role, V(x))
/* Converts to what p points to. */
#define FRAG_STORE(p, i, ld, layout, c) \
	dsl_frag_store(DSL_AT, p, V(i), V(ld), layout, V(c))
struct val dsl_frag_zero(struct dsl *k, struct dsl_at at, enum dsl_type type);
struct val dsl_frag_load(struct dsl_at at, char role, struct val p,
			 struct val i, struct val ld, enum dsl_layout layout);
struct val dsl_frag_from(struct dsl_at at, char role, struct val x);
struct val dsl_wmma(struct dsl_at at, struct val a, struct val b, struct val c);
struct val dsl_frag_row(struct dsl *k, struct dsl_at at, uint32_t j);
struct val dsl_frag_column(struct dsl *k, struct dsl_at at);
struct val dsl_frag_elems(struct dsl_at at, struct val c);
struct val dsl_frag_of(struct dsl_at at, struct val x);
struct val dsl_frag_operand(struct dsl_at at, char role, struct val x);
void dsl_frag_store(struct dsl_at at, struct val p, struct val i,
		    struct val ld, enum dsl_layout layout, struct val c);

/* ------------------------------------------------- sources for t0-cc ---- */

struct dsl_kernel {
	const char *name;
	struct ssa_func *(*build)(struct err *e);
	uint32_t line;
};

#define T0_KERNEL(name)                                                    \
	static struct ssa_func *name(struct err *e);                       \
	static const struct dsl_kernel dsl_kernel_##name                   \
		__attribute__((used, section("dsl_kernels"), aligned(8))) = { \
			#name, name, __LINE__                              \
		};                                                         \
	static struct ssa_func *name(struct err *e)

#ifdef DSL_FILE /* the table of this source: what its section holds */
extern const struct dsl_kernel __start_dsl_kernels[]
	__attribute__((weak, visibility("hidden")));
extern const struct dsl_kernel __stop_dsl_kernels[]
	__attribute__((weak, visibility("hidden")));
const struct dsl_kernel *dsl_kernels_of_file(size_t *n);
const struct dsl_kernel *dsl_kernels_of_file(size_t *n)
{
	*n = (size_t)(__stop_dsl_kernels - __start_dsl_kernels);
	return __start_dsl_kernels;
}
#endif

#pragma GCC visibility pop

/* ----------------------------------------------------- load_source.c ---- */

/*
 * The kernels of a C source, built by the C compiler of the host and loaded
 * into this program.
 *
 *	struct cc_source s;
 *	if (!cc_source_open(&s, "saxpy.c", &e))
 *		...
 *	struct ssa_func *f = cc_source_build(&s, &s.kernel[0], &e);
 *	cc_source_close(&s);
 *
 * The compiler is $CC, else cc, with $CFLAGS; what it says goes to stderr.  The
 * source's own code runs in this program, as a plug-in's would.  The program
 * must show it the functions of the DSL: linked with -rdynamic, and using them.
 * Headers are those of the tree that the program lies in, or was installed to.
 */
struct cc_source {
	const char *path;
	const struct dsl_kernel *kernel; /* [n_kernels], those of the source */
	size_t n_kernels;		 /* 1 or more */
	void *handle;			 /* of the loaded object */
};

/* `path` stays the caller's and must stay. */
bool cc_source_open(struct cc_source *s, const char *path, struct err *e);
void cc_source_close(struct cc_source *s);
/* NULL if there is none of this name. */
const struct dsl_kernel *cc_source_find(const struct cc_source *s,
					const char *name);
/*
 * The caller's function, which outlives the source; else an error that names
 * the line of the source and shows it.
 */
struct ssa_func *cc_source_build(const struct cc_source *s,
				 const struct dsl_kernel *k, struct err *e);

#endif
