/*
 * compiler/dsl/dsl_wide.c - conversions between i64 and f32.
 *
 * The machine has no such instruction: integers do it, exactly, element by
 * element.
 */
#include "compiler/dsl/dsl_int.h"

#undef DSL_AT
#define DSL_AT at

/*
 * The 32 bits from the first one on, the lowest of them also set if any behind
 * is; the machine rounds these to nearest even as it would all 64.
 */
struct val dsl_i64_to_f32(struct dsl_at at, struct val x)
{
	const struct val below = LT(x, 0);
	const struct val size = SELECT(below, NEG(x), x);
	const struct val high = CAST(DSL_U32, SHR(size, 32));
	const struct val low = CAST(DSL_U32, size);
	const struct val none = EQ(high, 0);
	const struct val zeros = ADD(CLZ(SELECT(none, low, high)),
				     SELECT(none, CONST(x.k, DSL_U32, 32), 0));
	const struct val at_top = SHL(size, CAST(DSL_I64, zeros));
	const struct val rest = NE(CAST(DSL_U32, at_top), 0);
	const struct val top = OR(CAST(DSL_U32, SHR(at_top, 32)),
				  CAST(DSL_U32, rest));
	/* times 2^(32 - zeros) */
	const struct val scale = BITS(DSL_F32, SHL(SUB(127 + 32, zeros), 23));
	const struct val f = MUL(CAST(DSL_F32, top), scale);

	return SELECT(below, NEG(f), f);
}

/* Toward zero; saturating, NaN to 0. */
struct val dsl_f32_to_i64(struct dsl_at at, struct val x)
{
	const struct val bits = BITS(DSL_U32, x);
	const struct val power = SUB(CAST(DSL_I32, AND(SHR(bits, 23), 255)),
				     127 + 23);
	const struct val digits = CAST(DSL_I64, OR(AND(bits, 0x7fffff),
						   0x800000));
	const struct val left = CAST(DSL_I64, MIN(MAX(power, 0), 63));
	const struct val right = CAST(DSL_I64, MIN(MAX(NEG(power), 0), 63));
	const struct val size = SHR(SHL(digits, left), right);
	const struct val below = LT(x, 0.0);
	const struct val most = SELECT(below, CONST(x.k, DSL_I64, INT64_MIN),
				       INT64_MAX);
	const struct val whole = SELECT(below, NEG(size), size);
	const struct val fits = LT(ABS(x), 0x1p63);

	return SELECT(fits, whole, SELECT(NE(x, x), CONST(x.k, DSL_I64, 0),
					  most));
}
