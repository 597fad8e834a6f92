/*
 * isa/text/parse_const.c - numbers as operands: which are inline constants, and
 * what 32 bits a literal has.
 *
 * An inline constant is a source field of its own and costs nothing; a literal
 * is a dword behind the instruction, of which there is one.  A floating-point
 * token stands for its bits in the operand's type, and must be representable
 * up to rounding.
 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/float.h"
#include "isa/text/parse_int.h"

static uint32_t rounded_f32(double d)
{
	return float_bits(d, 8, 23);
}

static bool is_half(const struct isa_type_info *t)
{
	return t->bits == 16 && t->count == 1;
}

/* How a floating-point token is understood, by type. */
enum { AS_F16, AS_BF16, AS_F32, AS_F64 };

static int float_kind(enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	if (t->bits == 64)
		return AS_F64;
	if (t->kind == 'G')
		return AS_BF16;
	if ((t->bits == 16 && t->kind == 'F') || type == ISA_T_MIX)
		return AS_F16;
	return AS_F32;
}

static uint64_t token_bits(double d, int kind)
{
	switch (kind) {
	case AS_F16:
		return float_bits(d, 5, 10);
	case AS_BF16:
		return float_bits(d, 8, 7);
	case AS_F64:
		return float_bits(d, 11, 52);
	}
	return rounded_f32(d);
}

/* Not too large, and not denormal unless exact. */
static bool float_fits(double d, int kind)
{
	double a = fabs(d);

	switch (kind) {
	case AS_F16:
		return a < 65520 &&
		       (a >= 0x1p-14 || a == rint(a * 0x1p24) * 0x1p-24);
	case AS_F64:
		return true;
	}
	return a < 0x1.ffffffp127 &&
	       (a >= 0x1p-126 || a == rint(a * 0x1p149) * 0x1p-149);
}

/* The type whose inline constants a floating-point token is matched with. */
static enum isa_type inline_type(enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	if (t->bits == 64)
		return ISA_T_F64;
	if (type == ISA_T_MIX || is_half(t))
		return t->kind == 'G' ? ISA_T_BF16 : ISA_T_F16;
	return type;
}

static int inline_float(double d, enum isa_type type)
{
	enum isa_type as = inline_type(type);
	int kind = float_kind(as);
	uint64_t v = token_bits(d, kind);

	if (!float_fits(d, kind))
		return -1;
	if (!v)
		return 128;
	/* 1/(2 pi) is cut, not rounded, to 16 bits. */
	if (kind == AS_BF16 && rounded_f32(d) == 0x3e22f983)
		return 248;
	for (int f = 240; f <= 248; f++)
		if (isa_inline_value(f, as) == v)
			return f;
	/* The bits of a tiny number are those of a small integer. */
	return v <= 64 ? 128 + (int)v : -1;
}

static int inline_int(int64_t i, enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);
	/* 16-bit integers are 32-bit ones here: 0xffff is not -1. */
	bool half = type == ISA_T_MIX ||
		    (is_half(t) && (t->kind == 'F' || t->kind == 'G'));
	enum isa_type as = inline_type(type);
	uint64_t mask = t->bits == 64 ? ~UINT64_C(0) :
			half	      ? 0xffff :
					0xffffffff;
	int64_t n = t->bits == 64 ? i : half ? (int16_t)i : (int32_t)i;

	/* The number must be one of the operand's width, of either sign. */
	if ((uint64_t)i & ~mask && i != n)
		return -1;
	if (n >= -16 && n <= 64)
		return n >= 0 ? 128 + n : 192 - n;
	if ((is_half(t) && !half) ||
	    (t->count > 1 && t->bits == 32 && t->kind == 'I'))
		return -1;
	for (int f = 240; f <= 248; f++)
		if (((isa_inline_value(f, as) ^ (uint64_t)i) & mask) == 0)
			return f;
	return -1;
}

int isa_const_inline(const struct arg *a, enum isa_type type)
{
	return a->kind == ARG_FLOAT ? inline_float(a->d, type) :
				      inline_int(a->i, type);
}

bool isa_set_literal(struct parser *ps, uint32_t v)
{
	struct isa_inst *in = ps->in;

	if (in->has_literal && in->literal != v)
		return isa_refuse(ps, 3, "only one unique literal is allowed");
	in->has_literal = true;
	in->literal = v;
	return true;
}

bool isa_word_value(struct parser *ps, const struct arg *a,
		    enum isa_symbol_use use, int64_t *v)
{
	if (!ps->symbol)
		return isa_refuse(ps, 2, "unknown operand");
	if (!ps->symbol(ps->ctx, a->s, a->len, use, v))
		return isa_refuse(ps, 2,
				  "undefined symbol or malformed expression");
	return true;
}

static bool float_literal(struct parser *ps, double d, enum isa_type type,
			  uint32_t *out)
{
	const struct isa_type_info *t = isa_type_info(type);
	int kind = float_kind(type);

	if (!float_fits(d, kind))
		return isa_refuse(ps, 3, "number out of the type's range");
	if (kind == AS_F64) {
		if (t->kind != 'F')
			return isa_refuse(ps, 3,
					  "a floating-point literal for a "
					  "64-bit integer");
		*out = token_bits(d, kind) >> 32;
		return true;
	}
	*out = token_bits(d, kind);
	return true;
}

bool isa_const_literal(struct parser *ps, const struct arg *a,
		       const struct isa_operand_info *slot, uint32_t *out)
{
	enum isa_type type = slot->type;
	const struct isa_type_info *t = isa_type_info(type);
	bool half = is_half(t) || type == ISA_T_MIX;
	int64_t i = a->i;

	/* The exponent of v_ldexp_f16 is an integer, but a float's bits too. */
	if (a->kind == ARG_FLOAT && ps->in->op == ISA_v_ldexp_f16)
		type = ISA_T_F16;
	if (a->kind == ARG_FLOAT)
		return float_literal(ps, a->d, type, out);
	if (a->kind == ARG_WORD) {
		if (!isa_word_value(ps, a, ISA_SYM_LITERAL, &i))
			return false;
	}
	if (i < INT32_MIN || i > (int64_t)UINT32_MAX)
		return isa_refuse(ps, 3, "literal does not fit 32 bits");
	/* lit() names all 32 bits, of which the operand takes the low half. */
	if (half && (i < -0x8000 || (i > 0xffff && !a->lit)))
		return isa_refuse(ps, 3, "literal does not fit 16 bits");
	*out = half && (i < 0 || !a->lit) ? i & 0xffff : i;
	return true;
}
