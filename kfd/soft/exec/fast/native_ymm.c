/*
 * kfd/soft/exec/fast/native_ymm.c - instructions on zmm and mask registers as
 * AVX2 has them, on ymm registers.
 *
 * host.def says how each is done.  Where a zmm is the low half of what an
 * instruction makes or takes, as for 16 halves of 16 floats, that is the low
 * half of either of its two values: what comes from them or goes to them is in
 * the same order (Intel 64 SDM volume 2, VEX forms).
 */
#include "kfd/soft/exec/fast/native_host.h"

/* The second operand: a zmm; memory; a dword or quadword for all lanes. */
struct source {
	enum { ZMM, MEMORY, SPREAD } kind;
	int zmm, spread;
	struct soft_host_mem at;
};

static struct soft_ymm_operand in_reg(int reg)
{
	return (struct soft_ymm_operand){ .reg = reg };
}

static struct soft_ymm_operand in_memory(struct soft_host_mem m, int bytes)
{
	m.offset += bytes;
	return (struct soft_ymm_operand){ SOFT_NOWHERE, m };
}

static struct soft_ymm_operand source_of(struct soft_code *code,
					 const struct source *s, int half)
{
	switch (s->kind) {
	case ZMM:
		return soft_value_source(code, soft_zmm_value(s->zmm, half));
	case MEMORY:
		return in_memory(s->at, half * SOFT_VALUE_BYTES);
	default:
		return in_reg(s->spread);
	}
}

/* ------------------------------------------------------- instructions ---- */

/* Those that zmm have others for: map, prefix, opcode. */
#define MOVE	    1, 2, 0x6f
#define STORE_ALL   1, 2, 0x7f
#define AND	    1, 1, 0xdb
#define ANDN	    1, 1, 0xdf
#define OR	    1, 1, 0xeb
#define XOR	    1, 1, 0xef
#define EQUAL_W	    1, 1, 0x75
#define EQUAL_D	    1, 1, 0x76
#define EQUAL_Q	    2, 1, 0x29
#define ABOVE_D	    1, 1, 0x66
#define MIN_UW	    2, 1, 0x3a
#define MAX_UW	    2, 1, 0x3e
#define MIN_UD	    2, 1, 0x3b
#define MAX_UD	    2, 1, 0x3f
#define SUB_PS	    1, 0, 0x5c
#define MIN_PS	    1, 0, 0x5d
#define MAX_PS	    1, 0, 0x5f
#define COMPARE_PS  1, 0, 0xc2
#define MUL_PS	     1, 0, 0x59
#define ROUND_PS     3, 1, 0x08
#define RSQRT_PS     1, 0, 0x52
#define MIN_SD	     2, 1, 0x39
#define MAX_SD	     2, 1, 0x3d
#define ADD_D	     1, 1, 0xfe
#define SUB_D	     1, 1, 0xfa
#define ADD_W	     1, 1, 0xfd
#define PRODUCTS_W   1, 1, 0xf5
#define PRODUCTS_B   2, 1, 0x04
#define BLEND_Q	     3, 1, 0x4b
#define ADD_PS	     1, 0, 0x58
#define FMSUB_213    2, 1, 0xaa
#define FMADD_231    2, 1, 0xb8
#define FLOATS	    1, 0, 0x5b /* of integers */
#define INTEGERS    1, 2, 0x5b
#define FMADD_213   2, 1, 0xa8
#define SHIFT_W	    1, 1, 0x71 /* with a digit */
#define SHIFT_D	    1, 1, 0x72
#define SHIFT_Q	    1, 1, 0x73
#define BLEND	    3, 1, 0x4c
#define PERMUTE_D   2, 1, 0x36
#define PERMUTE_Q   3, 1 | HOST_W1, 0x00
#define PERMUTE_128 3, 1, 0x46
#define SHUFFLE_B   2, 1, 0x00
#define PACK_DW	    1, 1, 0x6b
#define PACK_WB	    1, 1, 0x63
#define PACK_UDW    2, 1, 0x2b
#define INSERT_128  3, 1, 0x38
#define EXTRACT_128 3, 1, 0x39
#define SPREAD_W    2, 1, 0x79
#define SPREAD_D    2, 1, 0x58
#define SPREAD_Q    2, 1, 0x59
#define SPREAD_128  2, 1, 0x5a
#define LOAD_WHERE  2, 1, 0x8c
#define STORE_WHERE 2, 1, 0x8e
#define LOAD_128    1, 2 | HOST_128, 0x6f
#define STORE_128   1, 2 | HOST_128, 0x7f
#define STORE_64    1, 1 | HOST_128, 0xd6
#define FROM_INT    1, 1 | HOST_128, 0x6e
#define SIGN_BITS   1, 1, 0xd7 /* of bytes, to an integer register */
#define TEST	    2, 1, 0x17

static void emit(struct soft_code *code, unsigned map, unsigned prefix,
		 unsigned opcode, int d, int s1, struct soft_ymm_operand s2)
{
	soft_host_vex(code, map, prefix, opcode, d, s1, s2, 0);
}

static void emit_imm(struct soft_code *code, unsigned map, unsigned prefix,
		     unsigned opcode, int d, int s1, struct soft_ymm_operand s2,
		     unsigned imm)
{
	soft_host_vex(code, map, prefix, opcode, d, s1, s2, 1);
	soft_host_byte(code, imm);
}

/* To a register that is free. */
static int make(struct soft_code *code, unsigned map, unsigned prefix,
		unsigned opcode, int s1, struct soft_ymm_operand s2)
{
	const int t = soft_value_free(code);

	emit(code, map, prefix, opcode, t, s1, s2);
	return t;
}

static int make_imm(struct soft_code *code, unsigned map, unsigned prefix,
		    unsigned opcode, int s1, struct soft_ymm_operand s2,
		    unsigned imm)
{
	const int t = soft_value_free(code);

	emit_imm(code, map, prefix, opcode, t, s1, s2, imm);
	return t;
}

static int shifted(struct soft_code *code, unsigned digit, int s, unsigned by)
{
	const int t = soft_value_free(code);

	emit_imm(code, SHIFT_D, (int)digit, t, in_reg(s), by);
	return t;
}

enum { RIGHT = 2, SIGNED_RIGHT = 4, LEFT = 6 };

/* d = the bytes of s2 where `mask` has ones, else of s1 */
static void blend(struct soft_code *code, int d, int s1,
		  struct soft_ymm_operand s2, int mask)
{
	emit_imm(code, BLEND, d, s1, s2, (unsigned)mask << 4);
}

static int ones(struct soft_code *code)
{
	const int t = soft_value_free(code);

	emit(code, EQUAL_D, t, t, in_reg(t));
	return t;
}

static int zeros(struct soft_code *code)
{
	const int t = soft_value_free(code);

	emit(code, XOR, t, t, in_reg(t));
	return t;
}

static void invert(struct soft_code *code, int t)
{
	emit(code, XOR, t, t, in_reg(ones(code)));
}

static struct soft_ymm_operand constant(int number, int half)
{
	return in_memory(soft_native_at(number), half * SOFT_VALUE_BYTES);
}

/* In a register, too. */
static int source_reg(struct soft_code *code, const struct source *s, int half)
{
	if (s->kind == ZMM)
		return soft_value_get(code, soft_zmm_value(s->zmm, half));
	if (s->kind == SPREAD)
		return s->spread;
	return make(code, MOVE, 0, source_of(code, s, half));
}

static int zmm_reg(struct soft_code *code, int z, int half)
{
	return soft_value_get(code, soft_zmm_value(z, half));
}

/* ---------------------------------------------------------- one by one ---- */

/* Register t becomes a value of zmm d, in lanes of mask register k. */
static void put(struct soft_code *code, int d, int k, int half, int t)
{
	if (k)
		blend(code, t, zmm_reg(code, d, half), in_reg(t),
		      soft_value_get(code, soft_mask_value(k, half)));
	soft_value_bind(code, soft_zmm_value(d, half), t);
}

/* The same of a mask. */
static void put_mask(struct soft_code *code, int d, int k, int half, int t)
{
	if (k)
		emit(code, AND, t, t,
		     soft_value_source(code, soft_mask_value(k, half)));
	soft_value_bind(code, soft_mask_value(d, half), t);
}

static void do_each(struct soft_code *code, enum soft_host_op op, int d, int k,
		    int s1, const struct source *s, uint8_t imm, int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const int value = soft_zmm_value(d, half),
		  has_imm = soft_host_has_imm(op);
	const int vvvv = h->shape == THREE ? zmm_reg(code, s1, half) : 0;
	struct soft_ymm_operand rm = h->shape == SHIFT ?
					     in_reg(source_reg(code, s, half)) :
					     source_of(code, s, half);
	int to;

	if (op == SOFT_HOST_CMPPS) {
		put_mask(code, d, k, half,
			 make_imm(code, COMPARE_PS, vvvv, rm, imm));
		return;
	}
	if (h->ymm == FUSED && k)
		to = make(code, MOVE, 0, in_reg(zmm_reg(code, d, half)));
	else if (h->ymm == FUSED)
		to = soft_value_change(code, value);
	else
		to = k ? soft_value_free(code) : soft_value_set(code, value);
	if (h->shape == SHIFT)
		soft_host_vex(code, h->map & 7, h->prefix, h->opcode,
			      h->map >> 4, to, rm, 1);
	else
		soft_host_vex(code, h->map, h->prefix, h->opcode, to, vvvv, rm,
			      has_imm);
	if (has_imm)
		soft_host_byte(code, imm);
	if (k)
		put(code, d, k, half, to);
}

/* A copy, which may be left to whoever reads it. */
static void do_move(struct soft_code *code, int d, int k,
		    const struct source *s, int half)
{
	const int value = soft_zmm_value(d, half);
	struct soft_ymm_operand from;

	if (k && s->kind == MEMORY) {
		put(code, d, k, half,
		    make(code, LOAD_WHERE,
			 soft_value_get(code, soft_mask_value(k, half)),
			 source_of(code, s, half)));
		return;
	}
	from = source_of(code, s, half);
	if (k)
		put(code, d, k, half, make(code, MOVE, 0, from));
	else if (from.reg != SOFT_NOWHERE ||
		 !soft_value_is_at(code, value, from.at))
		emit(code, MOVE, soft_value_set(code, value), 0, from);
}

static void do_store(struct soft_code *code, int s, int k,
		     struct soft_host_mem to, int half)
{
	const int value = soft_zmm_value(s, half);
	const struct soft_ymm_operand at =
		in_memory(to, half * SOFT_VALUE_BYTES);

	if (k) {
		emit(code, STORE_WHERE, soft_value_get(code, value),
		     soft_value_get(code, soft_mask_value(k, half)), at);
		return;
	}
	soft_value_stores(code, value, at.at);
	emit(code, STORE_ALL, soft_value_get(code, value), 0, at);
	soft_value_stored(code, value, at.at);
}

/* 128 bits of a register, of which the others are anything then. */
static void do_low(struct soft_code *code, enum soft_host_op op, int d, int s1,
		   const struct source *s, uint8_t imm)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const struct soft_ymm_operand rm =
		s->kind == MEMORY ? in_memory(s->at, 0) : in_reg(s->zmm);
	const bool store = h->shape == STORE;
	const int vvvv = h->shape == THREE ? zmm_reg(code, s1, 0) : 0;
	const int to = store ? zmm_reg(code, d, 0) :
			       soft_value_set(code, soft_zmm_value(d, 0));

	soft_host_vex(code, h->map, h->prefix, h->opcode, to, vvvv, rm,
		      soft_host_has_imm(op));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

/* From half as many bytes; of bytes that become dwords from a quarter. */
static void do_long(struct soft_code *code, enum soft_host_op op, int d, int k,
		    const struct source *s, int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const bool quarter = op == SOFT_HOST_MOVZXBD || op == SOFT_HOST_MOVSXBD;
	const struct soft_ymm_operand rm =
		s->kind == MEMORY ?
			in_memory(s->at, half * (quarter ? 8 : 16)) :
			source_of(code, s, half);
	const int to = k ? soft_value_free(code) :
			   soft_value_set(code, soft_zmm_value(d, half));

	emit(code, h->map, h->prefix, h->opcode, to, 0, rm);
	if (k)
		put(code, d, k, half, to);
}

/* To half as many. */
static void do_short(struct soft_code *code, enum soft_host_op op, int d,
		     const struct source *s, uint8_t imm, int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const int from = source_reg(code, s, half);
	const int to = soft_value_set(code, soft_zmm_value(d, half));
	const bool store = h->shape == STORE;

	soft_host_vex(code, h->map, h->prefix, h->opcode, store ? from : to, 0,
		      in_reg(store ? to : from), soft_host_has_imm(op));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

/* --------------------------------------------------------- comparisons ---- */

/* Is s1 EQ, LT, LE, -, NE, GE, GT s2: what zmm number 0, 1, 2, 4, 5, 6. */
static int compare(struct soft_code *code, enum soft_host_op op, int s1,
		   struct soft_ymm_operand s2, int relation)
{
	const bool word = op == SOFT_HOST_CMPUW;
	int t;

	switch (relation & 3) {
	case 0:
		t = word ? make(code, EQUAL_W, s1, s2) :
			   make(code, EQUAL_D, s1, s2);
		break;
	case 1: /* they are no less where they are the greater of both */
		t = word		  ? make(code, MAX_UW, s1, s2) :
		    op == SOFT_HOST_CMPUD ? make(code, MAX_UD, s1, s2) :
					    make(code, 2, 1, 0x3d, s1, s2);
		break;
	default: /* no more */
		t = word		  ? make(code, MIN_UW, s1, s2) :
		    op == SOFT_HOST_CMPUD ? make(code, MIN_UD, s1, s2) :
					    make(code, ABOVE_D, s1, s2);
	}
	if (relation & 3 && (op != SOFT_HOST_CMPD || (relation & 3) == 1)) {
		if (word)
			emit(code, EQUAL_W, t, t, in_reg(s1));
		else
			emit(code, EQUAL_D, t, t, in_reg(s1));
	}
	/* What is here: EQ; GE; LE, of integers with signs GT. */
	if (op == SOFT_HOST_CMPD ?
		    relation == 1 || relation == 2 || relation == 4 :
		    relation == 1 || relation == 4 || relation == 6)
		invert(code, t);
	return t;
}

/* Where s1 & s2 has some bit, or none. */
static int test_bits(struct soft_code *code, bool wide, bool none, int s1,
		     struct soft_ymm_operand s2)
{
	const int t = make(code, AND, s1, s2), zero = zeros(code);

	if (wide)
		emit(code, EQUAL_Q, t, t, in_reg(zero));
	else
		emit(code, EQUAL_D, t, t, in_reg(zero));
	if (!none)
		invert(code, t);
	return t;
}

/* ------------------------------------------------------------- logic ---- */

/* Three operands' bits, as the byte of TERNLOG says. */
static int combine(struct soft_code *code, unsigned function, int d, int s1,
		   struct soft_ymm_operand s2)
{
	int t;

	switch (function) {
	case 0x0f:
		t = make(code, MOVE, 0, in_reg(d));
		invert(code, t);
		return t;
	case 0xa5:
		t = make(code, XOR, d, s2);
		invert(code, t);
		return t;
	case 0x96:
		t = make(code, XOR, d, in_reg(s1));
		emit(code, XOR, t, t, s2);
		return t;
	case 0xfe:
		t = make(code, OR, d, in_reg(s1));
		emit(code, OR, t, t, s2);
		return t;
	case 0xf8:
		t = make(code, AND, s1, s2);
		emit(code, OR, t, t, in_reg(d));
		return t;
	case 0xea:
		t = make(code, AND, d, in_reg(s1));
		emit(code, OR, t, t, s2);
		return t;
	case 0xca: /* s2 ^ (d & (s1 ^ s2)) */
		t = make(code, XOR, s1, s2);
		emit(code, AND, t, t, in_reg(d));
		emit(code, XOR, t, t, s2);
		return t;
	case 0xd8: /* d ^ (s2 & (d ^ s1)) */
		t = make(code, XOR, d, in_reg(s1));
		emit(code, AND, t, t, s2);
		emit(code, XOR, t, t, in_reg(d));
		return t;
	default: /* 0xe8: (d & s1) | (s2 & (d ^ s1)) */
		t = make(code, XOR, d, in_reg(s1));
		emit(code, AND, t, t, s2);
		emit(code, OR, t, t, in_reg(make(code, AND, d, in_reg(s1))));
		return t;
	}
}

/* ------------------------------------------------------------- floats ---- */

/* Neither is a NaN; zeros are equal for the host, but -0 is below +0. */
static int extreme(struct soft_code *code, bool most, int s1,
		   struct soft_ymm_operand s2)
{
	const int b = s2.reg != SOFT_NOWHERE ? s2.reg : make(code, MOVE, 0, s2);
	int t, u;

	if (most) {
		t = make(code, MAX_PS, s1, in_reg(b));
		u = make(code, MAX_PS, b, in_reg(s1));
		emit(code, AND, t, t, in_reg(u));
	} else {
		t = make(code, MIN_PS, s1, in_reg(b));
		u = make(code, MIN_PS, b, in_reg(s1));
		emit(code, OR, t, t, in_reg(u));
	}
	return t;
}

static int spread_constant(struct soft_code *code, int number)
{
	return make(code, SPREAD_D, 0, constant(number, 0));
}

/* Both halves of an integer are exact; they are rounded once. */
static int float_of_unsigned(struct soft_code *code, int s)
{
	const int high = shifted(code, RIGHT, s, 16);
	const int low =
		make(code, AND, s,
		     in_reg(spread_constant(code, SOFT_NATIVE_LOW_HALF)));

	emit(code, FLOATS, high, 0, in_reg(high));
	emit(code, FLOATS, low, 0, in_reg(low));
	emit(code, FMADD_213, high, spread_constant(code, SOFT_NATIVE_65536F),
	     in_reg(low));
	return high;
}

/* What does not fit becomes ones: then the signed integer is negative. */
static int unsigned_of_float(struct soft_code *code, int s)
{
	const int limit = spread_constant(code, SOFT_NATIVE_2P31F);
	const int large = make_imm(code, COMPARE_PS, s, in_reg(limit), 13);
	const int t = make(code, AND, large, in_reg(limit));
	int sign;

	emit(code, SUB_PS, t, s, in_reg(t));
	emit(code, INTEGERS, t, 0, in_reg(t));
	sign = shifted(code, SIGNED_RIGHT, t, 31);
	emit_imm(code, SHIFT_D, LEFT, large, in_reg(large), 31);
	emit(code, XOR, t, t, in_reg(large));
	emit(code, OR, t, t, in_reg(sign));
	return t;
}

/* As FPCLASS has them. */
#define NAN_INF	     0x99
#define NAN_INF_ZERO 0x9f
#define NO_ROOT	     0xf1 /* NaN, denormal, negative */
#define NO_LOG	     0xdf /* NaN, infinite, 0, negative */

/* Is an integer below `least` or above `most`? */
static int is_outside(struct soft_code *code, int s, int least, int most)
{
	const int t = make(code, ABOVE_D, spread_constant(code, least), in_reg(s));

	emit(code, OR, t, t,
	     in_reg(make(code, ABOVE_D, s,
			 in_reg(spread_constant(code, most)))));
	return t;
}

static int is_class(struct soft_code *code, unsigned classes, int s)
{
	int inf, t, twice;

	if (classes == NO_ROOT)
		return is_outside(code, s, SOFT_NATIVE_EXP_1,
				  SOFT_NATIVE_EXPONENT);
	if (classes == NO_LOG)
		return is_outside(code, s, SOFT_NATIVE_1, SOFT_NATIVE_MOST_FLOAT);
	inf = spread_constant(code, SOFT_NATIVE_EXPONENT);
	t = make(code, AND, s, in_reg(inf));
	emit(code, EQUAL_D, t, t, in_reg(inf));
	if (classes != NAN_INF_ZERO)
		return t;
	twice = shifted(code, LEFT, s, 1);
	emit(code, EQUAL_D, twice, twice, in_reg(zeros(code)));
	emit(code, OR, t, t, in_reg(twice));
	return t;
}

/* By 2^n twice, n half of what a register of floats says, rounded down. */
static int scaled(struct soft_code *code, int s, int by)
{
	const int n = make_imm(code, ROUND_PS, 0, in_reg(by), 9);
	int t;

	emit(code, INTEGERS, n, 0, in_reg(n));
	emit(code, MAX_SD, n, n,
	     in_reg(spread_constant(code, SOFT_NATIVE_MINUS_252)));
	emit(code, MIN_SD, n, n, in_reg(spread_constant(code, SOFT_NATIVE_254)));
	t = shifted(code, SIGNED_RIGHT, n, 1);
	emit(code, SUB_D, n, n, in_reg(t));
	for (int i = 0; i < 2; i++) {
		const int power = i ? n : t;

		emit(code, ADD_D, power, power,
		     in_reg(spread_constant(code, SOFT_NATIVE_127)));
		emit_imm(code, SHIFT_D, LEFT, power, in_reg(power), 23);
		emit(code, MUL_PS, t, i ? t : s, in_reg(power));
	}
	return t;
}

/* Knuth's: the rounded sum of a and b, and in *error what it lacks. */
static int two_sum(struct soft_code *code, int a, int b, int *error)
{
	const int sum = make(code, ADD_PS, a, in_reg(b));
	const int back = make(code, SUB_PS, sum, in_reg(a));
	const int t = make(code, SUB_PS, sum, in_reg(back));

	emit(code, SUB_PS, t, a, in_reg(t));
	emit(code, SUB_PS, back, b, in_reg(back));
	emit(code, ADD_PS, t, t, in_reg(back));
	soft_value_release(code, back);
	*error = t;
	return sum;
}

/* Register s was rounded to nearest, and lacks what has the sign of `error`: to
 * the neighbour that is odd.  Both are lost. */
static int to_odd(struct soft_code *code, int s, int error)
{
	const int zero = zeros(code), one = spread_constant(code, SOFT_NATIVE_1);
	const int odd = shifted(code, LEFT, s, 31);

	emit_imm(code, SHIFT_D, SIGNED_RIGHT, odd, in_reg(odd), 31);
	emit_imm(code, COMPARE_PS, zero, error, in_reg(zero), 12);
	emit(code, ANDN, odd, odd, in_reg(zero));
	emit(code, XOR, error, error, in_reg(s));
	emit_imm(code, SHIFT_D, SIGNED_RIGHT, error, in_reg(error), 31);
	emit(code, OR, error, error, in_reg(one));
	emit(code, AND, odd, odd, in_reg(error));
	emit(code, ADD_D, s, s, in_reg(odd));
	return s;
}

/* a * b + c of halves: the product is exact. */
static int half_to_odd(struct soft_code *code, int a, int b, int c)
{
	int error, s = two_sum(code, make(code, MUL_PS, a, in_reg(b)), c, &error);

	return to_odd(code, s, error);
}

/* A product that became 0 and is none keeps its sign: it is not nothing. */
static void keep_tiny(struct soft_code *code, int product, int a, int b)
{
	const int zero = zeros(code);
	const int t = make_imm(code, COMPARE_PS, a, in_reg(zero), 4);
	const int u = make_imm(code, COMPARE_PS, b, in_reg(zero), 4);

	emit(code, AND, t, t, in_reg(u));
	emit_imm(code, COMPARE_PS, zero, product, in_reg(zero), 0);
	emit(code, AND, t, t, in_reg(zero));
	emit_imm(code, SHIFT_D, RIGHT, t, in_reg(t), 31);
	emit(code, OR, product, product, in_reg(t));
	soft_value_release(code, zero);
	soft_value_release(code, t);
	soft_value_release(code, u);
}

/* Of floats: Boldo and Muller, "Exact and Approximated Error of the FMA". */
static int sum_to_odd(struct soft_code *code, int a, int b, int c)
{
	const int r = make(code, MOVE, 0, in_reg(c));
	const int product = make(code, MUL_PS, a, in_reg(b));
	const int rest = make(code, MOVE, 0, in_reg(a));
	int low, lower, high, all;

	emit(code, FMADD_231, r, a, in_reg(b));
	emit(code, FMSUB_213, rest, b, in_reg(product));
	low = two_sum(code, c, rest, &lower);
	soft_value_release(code, rest);
	keep_tiny(code, product, a, b);
	all = two_sum(code, product, low, &high);
	emit(code, SUB_PS, all, all, in_reg(r));
	emit(code, ADD_PS, all, all, in_reg(high));
	emit(code, ADD_PS, all, all, in_reg(lower));
	return to_odd(code, r, all);
}

/* --------------------------------------------------------- dot products ---- */

/* Sums of four products of unsigned bytes and signed ones. */
static int products(struct soft_code *code, int a, int b)
{
	int t = soft_value_free(code), u = soft_value_free(code), sum;

	emit_imm(code, SHIFT_W, LEFT, t, in_reg(a), 8);
	emit_imm(code, SHIFT_W, RIGHT, t, in_reg(t), 8);
	emit_imm(code, SHIFT_W, LEFT, u, in_reg(b), 8);
	emit_imm(code, SHIFT_W, SIGNED_RIGHT, u, in_reg(u), 8);
	sum = make(code, PRODUCTS_W, t, in_reg(u));
	emit_imm(code, SHIFT_W, RIGHT, t, in_reg(a), 8);
	emit_imm(code, SHIFT_W, SIGNED_RIGHT, u, in_reg(b), 8);
	emit(code, PRODUCTS_W, t, t, in_reg(u));
	emit(code, ADD_D, sum, sum, in_reg(t));
	return sum;
}

static int small_products(struct soft_code *code, int a, int b)
{
	const int t = make(code, PRODUCTS_B, a, in_reg(b)), one = ones(code);

	emit_imm(code, SHIFT_W, RIGHT, one, in_reg(one), 15);
	emit(code, PRODUCTS_W, t, t, in_reg(one));
	return t;
}

/* -------------------------------------------------------- lanes moved ---- */

/* A mask of bytes by one bit of each index. */
static int by_bit(struct soft_code *code, int index, unsigned bit)
{
	const int t = shifted(code, LEFT, index, 31 - bit);

	emit_imm(code, SHIFT_D, SIGNED_RIGHT, t, in_reg(t), 31);
	return t;
}

/* Lanes of 16 that a register of indices names. */
static int look_up(struct soft_code *code, int index,
		   const struct source *table)
{
	const int t = make(code, PERMUTE_D, index, source_of(code, table, 0));
	const int u = make(code, PERMUTE_D, index, source_of(code, table, 1));

	blend(code, t, t, in_reg(u), by_bit(code, index, 3));
	return t;
}

static struct source zmm_source(int z)
{
	return (struct source){ .kind = ZMM, .zmm = z };
}

static void do_permute(struct soft_code *code, int d, int k, int index,
		       const struct source *table)
{
	int t[2];

	for (int h = 0; h < 2; h++)
		t[h] = look_up(code, zmm_reg(code, index, h), table);
	for (int h = 0; h < 2; h++)
		put(code, d, k, h, t[h]);
}

/* Of 32 lanes in two tables. */
static void do_permute_two(struct soft_code *code, int d, int index,
			   const struct source *first,
			   const struct source *second)
{
	int t[2];

	for (int h = 0; h < 2; h++) {
		const int i = zmm_reg(code, index, h);
		int u;

		t[h] = look_up(code, i, first);
		u = look_up(code, i, second);
		blend(code, t[h], t[h], in_reg(u), by_bit(code, i, 4));
		soft_value_begin(code);
		code->ymm->last[t[h]] = code->ymm->now;
	}
	for (int h = 0; h < 2; h++)
		put(code, d, 0, h, t[h]);
}

/* The low words of dwords, to 128 bits. */
static int low_words(struct soft_code *code, int s)
{
	const int t =
		make(code, SHUFFLE_B, s, constant(SOFT_NATIVE_LOW_WORDS, 0));

	emit_imm(code, PERMUTE_Q, t, 0, in_reg(t), 0x08);
	return t;
}

/* The low bytes, to 64. */
static int low_bytes(struct soft_code *code, int s)
{
	const int t =
		make(code, SHUFFLE_B, s, constant(SOFT_NATIVE_LOW_BYTES, 0));

	emit(code, PERMUTE_D, t,
	     make(code, MOVE, 0, constant(SOFT_NATIVE_FOURTHS, 0)), in_reg(t));
	return t;
}

/* Indices of quadwords, as those of their dwords. */
static int dword_index(struct soft_code *code, int index)
{
	const int t = soft_value_free(code), u = soft_value_free(code);

	emit_imm(code, SHIFT_Q, LEFT, t, in_reg(index), 1);
	emit_imm(code, SHIFT_Q, LEFT, u, in_reg(index), 33);
	emit(code, OR, t, t, in_reg(u));
	emit(code, SPREAD_Q, u, 0, constant(SOFT_NATIVE_2P32, 0));
	emit(code, OR, t, t, in_reg(u));
	return t;
}

/* The first or second quadword of a table, by bit 0 of an index. */
static int one_of_two(struct soft_code *code, int index, const struct source *s)
{
	const int t = make(code, SPREAD_Q, 0, in_memory(s->at, 0));
	const int u = make(code, SPREAD_Q, 0, in_memory(s->at, 8));
	const int sign = soft_value_free(code);

	emit_imm(code, SHIFT_Q, LEFT, sign, in_reg(index), 63);
	emit_imm(code, BLEND_Q, t, t, in_reg(u), (unsigned)sign << 4);
	return t;
}

/* 128 bits of zmm s to memory or to the low ones of zmm d. */
static void extract_block(struct soft_code *code, int d, int s,
			  struct soft_ymm_operand to, unsigned block)
{
	const int from = zmm_reg(code, s, (int)block / 2);

	if (to.reg == SOFT_NOWHERE)
		emit_imm(code, EXTRACT_128, from, 0, to, block % 2);
	else
		emit_imm(code, EXTRACT_128, from, 0,
			 in_reg(soft_value_set(code, soft_zmm_value(d, 0))),
			 block % 2);
}

/* Zmm s1 with 128 bits that are the source's low ones, to zmm d. */
static void insert_block(struct soft_code *code, int d, int s1,
			 const struct source *s, unsigned block)
{
	const int half = (int)block / 2, other = 1 - half;
	const struct soft_ymm_operand from = source_of(code, s, 0);
	const int value = soft_zmm_value(d, half);

	if (block % 2 || soft_value_is_set(code, soft_zmm_value(s1, half))) {
		const int base = zmm_reg(code, s1, half);

		emit_imm(code, INSERT_128, soft_value_set(code, value), base,
			 from, block % 2);
	} else {
		emit(code, LOAD_128, soft_value_set(code, value), 0, from);
	}
	if (d != s1)
		emit(code, MOVE, soft_value_set(code, soft_zmm_value(d, other)),
		     0, in_reg(zmm_reg(code, s1, other)));
}

/* ------------------------------------------------------------ each one ---- */

/* One value of those for which host.def has no way. */
static void do_own(struct soft_code *code, enum soft_host_op op, int d, int k,
		   int s1, const struct source *s, uint8_t imm, int half)
{
	struct soft_ymm_operand rm;
	int a, t;

	switch (op) {
	case SOFT_HOST_BROADCASTD:
	case SOFT_HOST_BROADCASTQ:
		rm = s->kind == ZMM ? source_of(code, s, 0) :
				      in_memory(s->at, 0);
		t = op == SOFT_HOST_BROADCASTD ? make(code, SPREAD_D, 0, rm) :
						 make(code, SPREAD_Q, 0, rm);
		break;
	case SOFT_HOST_BROADCAST_INT:
		t = make(code, FROM_INT, 0, in_reg(s->zmm));
		emit(code, SPREAD_D, t, 0, in_reg(t));
		break;
	case SOFT_HOST_BLENDMD:
		a = zmm_reg(code, s1, half);
		t = soft_value_free(code);
		blend(code, t, a, source_of(code, s, half),
		      soft_value_get(code, soft_mask_value(k, half)));
		k = 0;
		break;
	case SOFT_HOST_DIFFERD:
		put_mask(code, d, k, half,
			 make(code, XOR, zmm_reg(code, s1, half),
			      source_of(code, s, half)));
		return;
	case SOFT_HOST_CMPD:
	case SOFT_HOST_CMPUD:
	case SOFT_HOST_CMPUW:
		put_mask(code, d, k, half,
			 compare(code, op, zmm_reg(code, s1, half),
				 source_of(code, s, half), imm));
		return;
	case SOFT_HOST_TESTMD:
	case SOFT_HOST_TESTNMD:
	case SOFT_HOST_TESTMQ:
	case SOFT_HOST_TESTNMQ:
		put_mask(code, d, k, half,
			 test_bits(code,
				   op == SOFT_HOST_TESTMQ ||
					   op == SOFT_HOST_TESTNMQ,
				   op == SOFT_HOST_TESTNMD ||
					   op == SOFT_HOST_TESTNMQ,
				   zmm_reg(code, s1, half),
				   source_of(code, s, half)));
		return;
	case SOFT_HOST_FPCLASSPS:
		put_mask(code, d, k, half,
			 is_class(code, imm, source_reg(code, s, half)));
		return;
	case SOFT_HOST_MOVW2M:
		t = soft_value_free(code);
		emit_imm(code, SHIFT_W, SIGNED_RIGHT, t,
			 in_reg(source_reg(code, s, half)), 15);
		put_mask(code, d, k, half, t);
		return;
	case SOFT_HOST_TERNLOGD:
	case SOFT_HOST_TERNLOGQ:
		a = zmm_reg(code, s1, half);
		t = combine(code, imm, zmm_reg(code, d, half), a,
			    source_of(code, s, half));
		break;
	case SOFT_HOST_RANGEPS:
		t = extreme(code, imm & 1, zmm_reg(code, s1, half),
			    source_of(code, s, half));
		break;
	case SOFT_HOST_CVTUDQ2PS:
		t = float_of_unsigned(code, source_reg(code, s, half));
		break;
	case SOFT_HOST_CVTTPS2UDQ:
		t = unsigned_of_float(code, source_reg(code, s, half));
		break;
	case SOFT_HOST_SCALEFPS_ONCE:
		t = scaled(code, zmm_reg(code, s1, half),
			   source_reg(code, s, half));
		break;
	case SOFT_HOST_FMADD231PS_DOWN:
	case SOFT_HOST_FMADD231PS_DOWN_HALF:
		a = zmm_reg(code, s1, half);
		t = (op == SOFT_HOST_FMADD231PS_DOWN ? sum_to_odd :
						       half_to_odd)(
			code, a, source_reg(code, s, half),
			zmm_reg(code, d, half));
		break;
	case SOFT_HOST_RSQRT14PS:
		t = make(code, RSQRT_PS, 0, source_of(code, s, half));
		break;
	case SOFT_HOST_DPBUSD:
	case SOFT_HOST_DPBUSD_SMALL:
		a = zmm_reg(code, s1, half);
		t = (op == SOFT_HOST_DPBUSD ? products : small_products)(
			code, a, source_reg(code, s, half));
		emit(code, ADD_D, t, t,
		     soft_value_source(code, soft_zmm_value(d, half)));
		break;
	case SOFT_HOST_PERMPD:
		t = look_up(code, dword_index(code, zmm_reg(code, s1, half)), s);
		break;
	case SOFT_HOST_PERMPD_ODD:
		t = one_of_two(code, zmm_reg(code, s1, half), s);
		break;
	case SOFT_HOST_PERMW_HIGH:
		t = low_words(code, shifted(code, RIGHT,
					    source_reg(code, s, half), 16));
		break;
	case SOFT_HOST_PERMI2B:
		a = zmm_reg(code, d, half);
		t = make(code, SHUFFLE_B, zmm_reg(code, s1, half), in_reg(a));
		emit(code, ADD_W, a = soft_value_free(code),
		     zmm_reg(code, d, half), in_reg(zmm_reg(code, d, half)));
		blend(code, t, t,
		      in_reg(make(code, SHUFFLE_B, source_reg(code, s, half),
				  in_reg(zmm_reg(code, d, half)))), a);
		break;
	case SOFT_HOST_ROLD:
		a = source_reg(code, s, half);
		t = shifted(code, LEFT, a, imm);
		emit(code, OR, t, t,
		     in_reg(shifted(code, RIGHT, a, 32u - imm)));
		break;
	case SOFT_HOST_MOVDW:
		t = low_words(code, source_reg(code, s, half));
		break;
	case SOFT_HOST_EXTRACT64X4:
		t = soft_value_free(code);
		emit_imm(code, EXTRACT_128, source_reg(code, s, half), 0,
			 in_reg(t), 1);
		break;
	case SOFT_HOST_INSERT64X4:
		t = make_imm(code, INSERT_128, zmm_reg(code, s1, half),
			     source_of(code, s, half), 1);
		break;
	default:
		BUG("no code of ymm registers for instruction %d of host.def",
		    (int)op);
	}
	put(code, d, k, half, t);
}

/* Both values at once. */
static bool do_across(struct soft_code *code, enum soft_host_op op, int d,
		      int k, int s1, const struct source *s, uint8_t imm)
{
	struct source other;
	int t[2];

	switch (op) {
	case SOFT_HOST_PERMD:
		do_permute(code, d, k, s1, s);
		return true;
	case SOFT_HOST_PERMT2D:
		other = zmm_source(d);
		do_permute_two(code, d, s1, &other, s);
		return true;
	case SOFT_HOST_PERMI2D:
		other = zmm_source(s1);
		do_permute_two(code, d, d, &other, s);
		return true;
	case SOFT_HOST_SHUF64X2: /* even blocks of both */
		t[0] = make_imm(code, PERMUTE_128, zmm_reg(code, s1, 0),
				in_reg(zmm_reg(code, s1, 1)), 0x20);
		t[1] = make_imm(code, PERMUTE_128, source_reg(code, s, 0),
				source_of(code, s, 1), 0x20);
		for (int h = 0; h < 2; h++)
			put(code, d, 0, h, t[h]);
		return true;
	case SOFT_HOST_INSERT32X4:
		insert_block(code, d, s1, s, imm);
		return true;
	default:
		return false;
	}
}

static void do_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, const struct source *s, uint8_t imm)
{
	const enum soft_ymm_way way = soft_host_inst[op].ymm;

	if (way == NOTHING)
		return;
	if (way == LOW) {
		do_low(code, op, d, s1, s, imm);
		return;
	}
	if (do_across(code, op, d, k, s1, s, imm))
		return;
	for (int h = 0; h < 2; h++) {
		if (h && s->kind != SPREAD)
			soft_value_begin(code);
		if (op == SOFT_HOST_MOVD)
			do_move(code, d, k, s, h);
		else if (way == EACH || way == FUSED)
			do_each(code, op, d, k, s1, s, imm, h);
		else if (way == LONG)
			do_long(code, op, d, k, s, h);
		else if (way == SHORT)
			do_short(code, op, d, s, imm, h);
		else
			do_own(code, op, d, k, s1, s, imm, h);
	}
}

void soft_ymm_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		 int s1, int s2, uint8_t imm)
{
	const struct source s = zmm_source(s2);

	soft_value_begin(code);
	if (op == SOFT_HOST_EXTRACT32X4)
		extract_block(code, d, s2, in_reg(0), imm);
	else
		do_op(code, op, d, k, s1, &s, imm);
}

/* Words and bytes of zmm s to memory. */
static void store_short(struct soft_code *code, bool word, int s,
			struct soft_host_mem to, int half)
{
	const int from = zmm_reg(code, s, half);

	if (word)
		emit(code, STORE_128, low_words(code, from), 0,
		     in_memory(to, 16 * half));
	else
		emit(code, STORE_64, low_bytes(code, from), 0,
		     in_memory(to, 8 * half));
}

static bool do_store_op(struct soft_code *code, enum soft_host_op op, int s,
			int k, struct soft_host_mem to, uint8_t imm)
{
	if (op == SOFT_HOST_EXTRACT32X4) {
		extract_block(code, 0, s, in_memory(to, 0), imm);
		return true;
	}
	if (op != SOFT_HOST_STORED && op != SOFT_HOST_MOVDW &&
	    op != SOFT_HOST_MOVDB)
		return false;
	for (int h = 0; h < 2; h++) {
		soft_value_begin(code);
		if (op == SOFT_HOST_STORED)
			do_store(code, s, k, to, h);
		else
			store_short(code, op == SOFT_HOST_MOVDW, s, to, h);
	}
	return true;
}

void soft_ymm_op_mem(struct soft_code *code, enum soft_host_op op, int d, int k,
		     int s1, struct soft_host_mem s2, bool spread, uint8_t imm)
{
	struct source s = { .kind = spread ? SPREAD : MEMORY, .at = s2 };
	const struct soft_ymm_operand at = in_memory(s2, 0);

	soft_value_begin(code);
	if (soft_host_inst[op].shape == STORE &&
	    do_store_op(code, op, d, k, s2, imm))
		return;
	if (spread)
		s.spread = soft_host_inst[op].prefix & HOST_W1 ?
				   make(code, SPREAD_Q, 0, at) :
				   make(code, SPREAD_D, 0, at);
	do_op(code, op, d, k, s1, &s, imm);
}

/* --------------------------------------------------------------- masks ---- */

/* Register t has all 16 bits in each dword. */
static void masks_of(struct soft_code *code, int k, int t)
{
	for (int h = 0; h < 2; h++) {
		const struct soft_ymm_operand bits =
			constant(SOFT_NATIVE_LANE_BITS, h);
		const int u = make(code, AND, t, bits);

		emit(code, EQUAL_D, u, u, bits);
		soft_value_bind(code, soft_mask_value(k, h), u);
	}
}

void soft_ymm_kload16(struct soft_code *code, int k, struct soft_host_mem m)
{
	soft_value_begin(code);
	masks_of(code, k, make(code, SPREAD_W, 0, in_memory(m, 0)));
}

void soft_ymm_kset16(struct soft_code *code, int k)
{
	int t;

	soft_value_begin(code);
	t = make(code, FROM_INT, 0, in_reg(SOFT_RCX));
	emit(code, SPREAD_D, t, 0, in_reg(t));
	masks_of(code, k, t);
}

void soft_ymm_kmove16(struct soft_code *code, int k, int from)
{
	soft_value_begin(code);
	for (int h = 0; h < 2; h++)
		soft_value_bind(code, soft_mask_value(k, h),
				make(code, MOVE, 0,
				     soft_value_source(
					     code, soft_mask_value(from, h))));
}

void soft_ymm_kor(struct soft_code *code, int k, int a, int b)
{
	soft_value_begin(code);
	for (int h = 0; h < 2; h++) {
		const int s = soft_value_get(code, soft_mask_value(a, h));

		soft_value_bind(
			code, soft_mask_value(k, h),
			make(code, OR, s,
			     soft_value_source(code, soft_mask_value(b, h))));
	}
}

/* To words, to bytes, and these in their order. */
void soft_ymm_mask_bits(struct soft_code *code, int k)
{
	int words[2], t;

	soft_value_begin(code);
	for (int i = 0; i < 2; i++)
		words[i] = make(
			code, PACK_DW,
			soft_value_get(code, soft_mask_value(k + i, 0)),
			soft_value_source(code, soft_mask_value(k + i, 1)));
	t = make(code, PACK_WB, words[0], in_reg(words[1]));
	emit(code, PERMUTE_D, t,
	     make(code, MOVE, 0, constant(SOFT_NATIVE_FOURTHS, 0)), in_reg(t));
	emit(code, SIGN_BITS, SOFT_RCX, 0, in_reg(t));
}

void soft_ymm_test_mask(struct soft_code *code, int k)
{
	int t;

	soft_value_begin(code);
	t = make(code, OR, soft_value_get(code, soft_mask_value(k, 0)),
		 soft_value_source(code, soft_mask_value(k, 1)));
	emit(code, TEST, t, 0, in_reg(t));
	soft_host_forget_mask(code, k);
}

/* ------------------------------------------------------------ which are ----
 */

/* Those of own code for which not every constant is known. */
static bool knows_imm(enum soft_host_op op, uint8_t imm)
{
	static const uint8_t functions[] = { 0x0f, 0xa5, 0x96, 0xfe, 0xf8,
					     0xea, 0xca, 0xd8, 0xe8 };

	if (op == SOFT_HOST_FPCLASSPS)
		return imm == NAN_INF || imm == NAN_INF_ZERO ||
		       imm == NO_ROOT || imm == NO_LOG;
	if (op != SOFT_HOST_TERNLOGD && op != SOFT_HOST_TERNLOGQ)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (functions[i] == imm)
			return true;
	return false;
}

bool soft_ymm_has(enum soft_host_op op, uint8_t imm)
{
	return soft_host_inst[op].ymm != NOT && knows_imm(op, imm);
}
