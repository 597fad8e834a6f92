/*
 * kfd/soft/exec/fast/native_ymm_make.c - values for which AVX2 needs more than
 * one instruction.
 */
#include "kfd/soft/exec/fast/native_ymm.h"

/* --------------------------------------------------------- comparisons ---- */

/* Is s1 EQ, LT, LE, -, NE, GE, GT s2: what zmm number 0, 1, 2, 4, 5, 6. */
static int compare_values(struct soft_code *code, enum soft_host_op op, int s1,
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
					    make(code, MAX_SD, s1, s2);
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

/* Of three operands d, s1 and s2: their bits as the byte of TERNLOG says, one
 * step after the other from the first operand on. */
enum ternary_operand { D, S1, S2, ONES, BOTH /* D & S1 */ };
enum ternary_step { STOP, WITH_AND, WITH_OR, WITH_XOR };
static const struct ternary {
	uint8_t function, first; /* enum ternary_operand */
	struct {
		uint8_t step, operand;
	} then[3];
} ternary[] = {
	{ 0x0f, D, { { WITH_XOR, ONES } } },
	{ 0xa5, D, { { WITH_XOR, S2 }, { WITH_XOR, ONES } } },
	{ 0x96, D, { { WITH_XOR, S1 }, { WITH_XOR, S2 } } },
	{ 0xfe, D, { { WITH_OR, S1 }, { WITH_OR, S2 } } },
	{ 0xf8, S1, { { WITH_AND, S2 }, { WITH_OR, D } } },
	{ 0xea, D, { { WITH_AND, S1 }, { WITH_OR, S2 } } },
	{ 0xca, S1, { { WITH_XOR, S2 }, { WITH_AND, D }, { WITH_XOR, S2 } } },
	{ 0xd8, D, { { WITH_XOR, S1 }, { WITH_AND, S2 }, { WITH_XOR, D } } },
	{ 0xe8, D, { { WITH_XOR, S1 }, { WITH_AND, S2 }, { WITH_OR, BOTH } } },
};

/* NULL: it is not among them. */
static const struct ternary *find_ternary(unsigned function)
{
	for (size_t i = 0; i < ARRAY_SIZE(ternary); i++)
		if (ternary[i].function == function)
			return &ternary[i];
	return NULL;
}

static int combine_bits(struct soft_code *code, unsigned function, int d,
			int s1, struct soft_ymm_operand s2)
{
	const struct ternary *f = find_ternary(function);
	const int t = make(code, MOVE, 0, in_reg(f->first == D ? d : s1));

	for (size_t i = 0; i < ARRAY_SIZE(f->then) && f->then[i].step; i++) {
		const enum ternary_operand o = f->then[i].operand;
		const struct soft_ymm_operand with =
			o == S2	      ? s2 :
			o == ONES     ? in_reg(ones(code)) :
			o == BOTH ? in_reg(make(code, AND, d, in_reg(s1))) :
					in_reg(o == D ? d : s1);

		if (f->then[i].step == WITH_AND)
			emit(code, AND, t, t, with);
		else if (f->then[i].step == WITH_OR)
			emit(code, OR, t, t, with);
		else
			emit(code, XOR, t, t, with);
	}
	return t;
}

/* ------------------------------------------------------------- floats ---- */

/* Neither is a NaN; zeros are equal for the host, but -0 is below +0. */
static int find_extreme(struct soft_code *code, bool most, int s1,
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

/* Classes of FPCLASS, or more: what is outside of a range of integers. */
static const struct float_class {
	uint8_t classes;
	bool both_signs;
	int least, most; /* constants */
} float_class[] = {
	/* NaN, infinite; the same or 0 */
	{ 0x99, true, SOFT_NATIVE_0, SOFT_NATIVE_MOST_FLOAT },
	{ 0x9f, true, SOFT_NATIVE_1, SOFT_NATIVE_MOST_FLOAT },
	/* NaN, denormal, 0, negative; NaN, infinite, 0, negative */
	{ 0xf1, false, SOFT_NATIVE_EXP_1, SOFT_NATIVE_EXPONENT },
	{ 0xdf, false, SOFT_NATIVE_1, SOFT_NATIVE_MOST_FLOAT },
};

/* NULL: it is not among them. */
static const struct float_class *find_class(unsigned classes)
{
	for (size_t i = 0; i < ARRAY_SIZE(float_class); i++)
		if (float_class[i].classes == classes)
			return &float_class[i];
	return NULL;
}

static int is_class(struct soft_code *code, unsigned classes, int s)
{
	const struct float_class *c = find_class(classes);
	int t;

	if (c->both_signs)
		s = make(code, AND, s,
			 in_reg(spread_constant(code, SOFT_NATIVE_REST)));
	t = make(code, ABOVE_D, spread_constant(code, c->least), in_reg(s));
	emit(code, OR, t, t,
	     in_reg(make(code, ABOVE_D, s,
			 in_reg(spread_constant(code, c->most)))));
	return t;
}

/* By 2^n twice, n half of what a register of floats says, rounded down. */
static int scale_twice(struct soft_code *code, int s, int by)
{
	const int n = make_imm(code, ROUND_PS, 0, in_reg(by), 9);
	int t;

	emit(code, INTEGERS, n, 0, in_reg(n));
	emit(code, MAX_SD, n, n,
	     in_reg(spread_constant(code, SOFT_NATIVE_MINUS_252)));
	emit(code, MIN_SD, n, n,
	     in_reg(spread_constant(code, SOFT_NATIVE_254)));
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
	const int zero = zeros(code),
		  one = spread_constant(code, SOFT_NATIVE_1);
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
	int error,
		s = two_sum(code, make(code, MUL_PS, a, in_reg(b)), c, &error);

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

/* --------------------------------------------------------- dot products ----
 */

/* Sums of four products of unsigned bytes and signed ones. */
static int add_products(struct soft_code *code, int a, int b)
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

static int add_small_products(struct soft_code *code, int a, int b)
{
	const int t = make(code, PRODUCTS_B, a, in_reg(b)), one = ones(code);

	emit_imm(code, SHIFT_W, RIGHT, one, in_reg(one), 15);
	emit(code, PRODUCTS_W, t, t, in_reg(one));
	return t;
}

/* -------------------------------------------------------- lanes moved ---- */

/* Lanes of 16 that a register of indices names. */
int soft_ymm_look_up(struct soft_code *code, int index,
		     const struct soft_ymm_source *table)
{
	const int t = make(code, PERMUTE_D, index, source_of(code, table, 0));
	const int u = make(code, PERMUTE_D, index, source_of(code, table, 1));

	blend(code, t, t, in_reg(u), by_bit(code, index, 3));
	return t;
}

/* The low words of dwords, to 128 bits. */
int soft_ymm_low_words(struct soft_code *code, int s)
{
	const int t =
		make(code, SHUFFLE_B, s, constant(SOFT_NATIVE_LOW_WORDS, 0));

	emit_imm(code, PERMUTE_Q, t, 0, in_reg(t), 0x08);
	return t;
}

/* The low bytes, to 64. */
int soft_ymm_low_bytes(struct soft_code *code, int s)
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
static int one_of_two(struct soft_code *code, int index,
		      const struct soft_ymm_source *s)
{
	const int t = make(code, SPREAD_Q, 0, in_memory(s->at, 0));
	const int u = make(code, SPREAD_Q, 0, in_memory(s->at, 8));
	const int sign = soft_value_free(code);

	emit_imm(code, SHIFT_Q, LEFT, sign, in_reg(index), 63);
	emit_imm(code, BLEND_Q, t, t, in_reg(u), (unsigned)sign << 4);
	return t;
}

/* ------------------------------------------------------------ each one ---- */

/* Of those that make masks, but for CMPPS, which is as it is. */
static int make_mask(struct soft_code *code, enum soft_host_op op, int s1,
		     const struct soft_ymm_source *s, uint8_t imm, int half)
{
	const bool wide = op == SOFT_HOST_TESTMQ || op == SOFT_HOST_TESTNMQ;
	const bool none = op == SOFT_HOST_TESTNMD || op == SOFT_HOST_TESTNMQ;
	int t;

	switch (op) {
	case SOFT_HOST_DIFFERD:
		return make(code, XOR, zmm_reg(code, s1, half),
			    source_of(code, s, half));
	case SOFT_HOST_CMPD:
	case SOFT_HOST_CMPUD:
	case SOFT_HOST_CMPUW:
		return compare_values(code, op, zmm_reg(code, s1, half),
				      source_of(code, s, half), imm);
	case SOFT_HOST_FPCLASSPS:
		return is_class(code, imm, source_reg(code, s, half));
	case SOFT_HOST_MOVW2M:
		t = soft_value_free(code);
		emit_imm(code, SHIFT_W, SIGNED_RIGHT, t,
			 in_reg(source_reg(code, s, half)), 15);
		return t;
	default:
		return test_bits(code, wide, none, zmm_reg(code, s1, half),
				 source_of(code, s, half));
	}
}

/* Bytes that indices name, of two tables by bit 6 of them. */
static int shuffle_bytes(struct soft_code *code, int index, int first,
			 int second)
{
	const int t = make(code, SHUFFLE_B, first, in_reg(index));
	const int u = make(code, SHUFFLE_B, second, in_reg(index));

	blend(code, t, t, in_reg(u), make(code, ADD_W, index, in_reg(index)));
	return t;
}

/* Of those that move lanes or parts of them, within a value. */
static int make_moved(struct soft_code *code, enum soft_host_op op, int d,
		      int s1, const struct soft_ymm_source *s, uint8_t imm,
		      int half)
{
	int a, t;

	switch (op) {
	case SOFT_HOST_PERMPD:
		return soft_ymm_look_up(
			code, dword_index(code, zmm_reg(code, s1, half)), s);
	case SOFT_HOST_PERMPD_ODD:
		return one_of_two(code, zmm_reg(code, s1, half), s);
	case SOFT_HOST_PERMW_HIGH:
		return soft_ymm_low_words(
			code,
			shifted(code, RIGHT, source_reg(code, s, half), 16));
	case SOFT_HOST_PERMI2B:
		a = zmm_reg(code, s1, half);
		return shuffle_bytes(code, zmm_reg(code, d, half), a,
				     source_reg(code, s, half));
	case SOFT_HOST_ROLD:
		a = source_reg(code, s, half);
		t = shifted(code, LEFT, a, imm);
		emit(code, OR, t, t,
		     in_reg(shifted(code, RIGHT, a, 32u - imm)));
		return t;
	case SOFT_HOST_MOVDW:
		return soft_ymm_low_words(code, source_reg(code, s, half));
	case SOFT_HOST_EXTRACT64X4:
		t = soft_value_free(code);
		emit_imm(code, EXTRACT_128, source_reg(code, s, half), 0,
			 in_reg(t), 1);
		return t;
	case SOFT_HOST_INSERT64X4:
		return make_imm(code, INSERT_128, zmm_reg(code, s1, half),
				source_of(code, s, half), 1);
	default:
		BUG("no code of ymm registers for instruction %d of host.def",
		    (int)op);
	}
}

/* What is the same in all lanes. */
static int make_spread(struct soft_code *code, enum soft_host_op op,
		       const struct soft_ymm_source *s)
{
	struct soft_ymm_operand from = s->kind == ZMM ? source_of(code, s, 0) :
							in_memory(s->at, 0);
	int t;

	if (op == SOFT_HOST_BROADCASTD)
		return make(code, SPREAD_D, 0, from);
	if (op == SOFT_HOST_BROADCASTQ)
		return make(code, SPREAD_Q, 0, from);
	t = make(code, FROM_INT, 0, in_reg(s->zmm));
	emit(code, SPREAD_D, t, 0, in_reg(t));
	return t;
}

int soft_ymm_make(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, const struct soft_ymm_source *s, uint8_t imm,
		  int half)
{
	int a, t;

	if (soft_host_inst[op].ymm == MASK)
		return make_mask(code, op, s1, s, imm, half);
	switch (op) {
	case SOFT_HOST_BROADCASTD:
	case SOFT_HOST_BROADCASTQ:
	case SOFT_HOST_BROADCAST_INT:
		return make_spread(code, op, s);
	case SOFT_HOST_BLENDMD:
		a = zmm_reg(code, s1, half);
		t = soft_value_free(code);
		blend(code, t, a, source_of(code, s, half),
		      soft_value_get(code, soft_mask_value(k, half)));
		return t;
	case SOFT_HOST_TERNLOGD:
	case SOFT_HOST_TERNLOGQ:
		a = zmm_reg(code, s1, half);
		return combine_bits(code, imm, zmm_reg(code, d, half), a,
				    source_of(code, s, half));
	case SOFT_HOST_RANGEPS:
		return find_extreme(code, imm & 1, zmm_reg(code, s1, half),
				    source_of(code, s, half));
	case SOFT_HOST_CVTUDQ2PS:
		return float_of_unsigned(code, source_reg(code, s, half));
	case SOFT_HOST_CVTTPS2UDQ:
		return unsigned_of_float(code, source_reg(code, s, half));
	case SOFT_HOST_SCALEFPS_ONCE:
		a = zmm_reg(code, s1, half);
		return scale_twice(code, a, source_reg(code, s, half));
	case SOFT_HOST_FMADD231PS_DOWN:
	case SOFT_HOST_FMADD231PS_DOWN_HALF:
		a = zmm_reg(code, s1, half);
		t = source_reg(code, s, half);
		return (op == SOFT_HOST_FMADD231PS_DOWN ? sum_to_odd :
							  half_to_odd)(
			code, a, t, zmm_reg(code, d, half));
	case SOFT_HOST_RSQRT14PS:
		return make(code, RSQRT_PS, 0, source_of(code, s, half));
	case SOFT_HOST_DPBUSD:
	case SOFT_HOST_DPBUSD_SMALL:
		a = zmm_reg(code, s1, half);
		t = (op == SOFT_HOST_DPBUSD ? add_products :
					      add_small_products)(
			code, a, source_reg(code, s, half));
		emit(code, ADD_D, t, t,
		     soft_value_source(code, soft_zmm_value(d, half)));
		return t;
	default:
		return make_moved(code, op, d, s1, s, imm, half);
	}
}

/* ------------------------------------------------------------ which are ----
 */

/* Of those for which not every constant is known. */
static bool knows_imm(enum soft_host_op op, uint8_t imm)
{
	if (op == SOFT_HOST_FPCLASSPS)
		return find_class(imm);
	return (op != SOFT_HOST_TERNLOGD && op != SOFT_HOST_TERNLOGQ) ||
	       find_ternary(imm);
}

bool soft_ymm_has(enum soft_host_op op, uint8_t imm)
{
	return soft_host_inst[op].ymm != NOT && knows_imm(op, imm);
}
