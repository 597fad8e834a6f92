/*
 * compiler/kernels/gemv.c - matrix times vector.
 *
 * As decoding needs it: weights are read once.
 */
#include "compiler/kernels/kernels_int.h"

#define PER_LANE 4 /* neighbouring columns of one load */
#define WAVE_COLUMNS (32 * PER_LANE)
#define QUANT_GROUP 32 /* columns that share a scale */

static void row_store(struct dsl *k, struct val y, struct val row,
		      struct var sum)
{
	struct val all = WAVE_SUM(GET(sum));

	IF(k, EQ(LANE(k), 0)) {
		STORE(y, row, all);
	}
}

/* Columns before `end`, `each` of them at a time per lane. */
static void row_dot(struct dsl *k, struct var sum, struct val w, struct val x,
		    struct val end, uint32_t each)
{
	FOR (k, c, MUL(LANE(k), each), end, 32 * each) {
		SET(sum, add_dot(CAST(DSL_F32, LOADV(w, c, each)),
				 LOADV(x, c, each), GET(sum)));
	}
}

/*
 * Arguments: y [rows] (f32), w [rows][n], x [n] (f32), rows, n (i32).
 * shape.wide: n is a multiple of 8.
 */
void build_gemv(struct dsl *k, const struct kernel_shape *s)
{
	struct val y = ARG_PTR(k, DSL_F32, "y", 0);
	struct val wp = ARG_PTR(k, s->type, "w", DSL_READONLY);
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val rows = ARG(k, DSL_I32, "rows"), n = ARG(k, DSL_I32, "n");
	struct val row = wave_row(k, s);
	struct val whole = AND(n, -PER_LANE);

	IF(k, LT(row, rows)) {
		struct val w = row_of(wp, row, n);
		struct var sum = VAR(k, DSL_F32, 0);

		if (s->wide) {
			row_dot(k, sum, ALIGNED(w, 16), ALIGNED(x, 16), n,
				2 * PER_LANE);
		} else {
			row_dot(k, sum, w, x, whole, PER_LANE);
			FOR (k, t, ADD(whole, LANE(k)), n, 32) {
				SET(sum, FMA(load_f32(w, t), LOAD(x, t), sum));
			}
		}
		row_store(k, y, row, sum);
	}
}

/*
 * A row of weights in groups that share a scale.  Arguments: y [rows] (f32),
 * w, scale [rows][n / 32] (f16), x [n] (f32), rows, n (i32, a multiple of 32).
 */
struct grouped {
	struct val y, w, scale, x, n, row, inside;
};

static struct grouped grouped_args(struct dsl *k, const struct kernel_shape *s,
				   enum dsl_type weights)
{
	struct grouped g;

	g.y = ARG_PTR(k, DSL_F32, "y", 0);
	g.w = ALIGNED(ARG_PTR(k, weights, "w", DSL_READONLY), PER_LANE);
	g.scale = ARG_PTR(k, DSL_F16, "scale", DSL_READONLY);
	g.x = ALIGNED(ARG_PTR(k, DSL_F32, "x", DSL_READONLY), 4 * PER_LANE);
	struct val rows = ARG(k, DSL_I32, "rows");
	g.n = ARG(k, DSL_I32, "n");
	g.row = wave_row(k, s);
	g.inside = LT(g.row, rows);
	return g;
}

/* An element without its sign. */
static struct val word_load(struct val p, struct val i)
{
	struct val x = LOAD(p, i);

	return p.elem == DSL_I16 ? CAST(DSL_U32, AND(CAST(DSL_I32, x), 0xffff)) :
				   CAST(DSL_U32, x);
}

/* Nibbles of 16 bits, one in each byte. */
static struct val nibbles_spread(struct val x)
{
	x = AND(OR(x, SHL(x, 8)), 0x00ff00ff);
	return AND(OR(x, SHL(x, 4)), 0x0f0f0f0f);
}

/* Pairs of bits of 8 bits, one in each byte. */
static struct val pairs_spread(struct val x)
{
	x = AND(OR(x, SHL(x, 12)), 0x000f000f);
	return AND(OR(x, SHL(x, 6)), 0x03030303);
}

/* Codes of eight columns: of the even ones bytes, and of the odd ones. */
static void codes_six(struct val low, struct val high, struct val code[2])
{
	struct val pairs = nibbles_spread(high);

	code[0] = OR(AND(low, 0x0f0f0f0f), SHL(AND(pairs, 0x03030303), 4));
	code[1] = OR(AND(SHR(low, 4), 0x0f0f0f0f),
		     SHL(AND(pairs, 0x0c0c0c0c), 2));
}

static void codes_three(struct val low, struct val high, struct val code[2])
{
	struct val pairs = nibbles_spread(low), bits = pairs_spread(high);

	code[0] = OR(AND(pairs, 0x03030303), SHL(AND(bits, 0x01010101), 2));
	code[1] = OR(AND(SHR(pairs, 2), 0x03030303),
		     SHL(AND(bits, 0x02020202), 1));
}

/*
 * Codes of 6 or 3 bits, 32 or 4 added, in groups of 1 << shift columns.
 * Arguments: y [rows] (f32), low, high [rows][n / 8], scale
 * [rows][n >> shift] (f16), x [n] (f32), rows, n (i32, a multiple of 32 and of
 * the group), shift (i32, 5 to 8).  Of gemv_int6 low has the low 4 bits of 8
 * columns in a u32, the first in the lowest, high their 2 high ones in a u16; of
 * gemv_int3 these are the low 2 in a u16 and the high one in a u8.
 */
void build_gemv_own(struct dsl *k, const struct kernel_shape *s)
{
	enum { EACH = 2 * PER_LANE };
	const bool six = is_kernel(k, "gemv_int6");
	struct val y = ARG_PTR(k, DSL_F32, "y", 0);
	struct val lows = ARG_PTR(k, six ? DSL_U32 : DSL_I16, "low",
				  DSL_READONLY);
	struct val highs = ARG_PTR(k, six ? DSL_I16 : DSL_U8, "high",
				   DSL_READONLY);
	struct val scales = ARG_PTR(k, DSL_F16, "scale", DSL_READONLY);
	struct val x = ALIGNED(ARG_PTR(k, DSL_F32, "x", DSL_READONLY), 16);
	struct val rows = ARG(k, DSL_I32, "rows"), n = ARG(k, DSL_I32, "n");
	struct val shift = ARG(k, DSL_I32, "shift"), row = wave_row(k, s);

	IF (k, LT(row, rows)) {
		struct val low = row_of(lows, row, SHR(n, 3));
		struct val high = row_of(highs, row, SHR(n, 3));
		struct val scale = row_of(scales, row, SHR(n, shift));
		struct var sum = VAR(k, DSL_F32, 0);

		FOR (k, c, MUL(LANE(k), EACH), n, 32 * EACH) {
			struct val at = SHR(c, 3), v = LOADV(x, c, EACH);
			struct val code[2], part = CONST(k, DSL_F32, 0);
			struct val l = word_load(low, at);
			struct val h = word_load(high, at);
			struct val all = part;

			(six ? codes_six : codes_three)(l, h, code);
			for (uint32_t j = 0; j < EACH; j++) {
				struct val q = AND(SHR(code[j % 2], j / 2 * 8),
						   255);

				part = FMA(CAST(DSL_F32, q), ELEM(v, j), part);
				all = ADD(all, ELEM(v, j));
			}
			part = FMA(all, six ? -32.0 : -4.0, part);
			SET(sum, FMA(load_f32(scale, SHR(c, shift)), part,
				     sum));
		}
		row_store(k, y, row, sum);
	}
}

/* w is i8 [rows][n]. */
void build_gemv_int8(struct dsl *k, const struct kernel_shape *s)
{
	struct grouped g = grouped_args(k, s, DSL_I8);

	IF(k, g.inside) {
		struct val w = row_of(g.w, g.row, g.n);
		struct val scale = row_of(g.scale, g.row, SHR(g.n, 5));
		struct var sum = VAR(k, DSL_F32, 0);

		FOR(k, c, MUL(LANE(k), PER_LANE), g.n, WAVE_COLUMNS) {
			struct val q = CAST(DSL_F32, CAST(DSL_I32,
					    LOADV(w, c, PER_LANE)));
			struct val part = add_dot(q, LOADV(g.x, c, PER_LANE),
						  CONST(k, DSL_F32, 0));

			SET(sum, FMA(load_f32(scale, SHR(c, 5)), part, sum));
		}
		row_store(k, g.y, g.row, sum);
	}
}

/*
 * w is u8 [rows][n / 2]: byte j of a group of 32 columns holds column j in its
 * low and column j + 16 in its high half, 8 added.
 */
void build_gemv_int4(struct dsl *k, const struct kernel_shape *s)
{
	struct grouped g = grouped_args(k, s, DSL_U8);
	struct val half = SHR(g.n, 1);

	IF(k, g.inside) {
		struct val w = row_of(g.w, g.row, half);
		struct val scale = row_of(g.scale, g.row, SHR(g.n, 5));
		struct var sum = VAR(k, DSL_F32, 0);

		FOR(k, b, MUL(LANE(k), PER_LANE), half, WAVE_COLUMNS) {
			struct val group = SHR(b, 4);
			struct val c = ADD(SHL(group, 5), AND(b, 15));
			struct val q = CAST(DSL_I32, LOADV(w, b, PER_LANE));
			struct val lo = CAST(DSL_F32, SUB(AND(q, 15), 8));
			struct val hi = CAST(DSL_F32, SUB(SHR(q, 4), 8));
			struct val part = add_dot(lo, LOADV(g.x, c, PER_LANE),
						  CONST(k, DSL_F32, 0));

			part = add_dot(
				hi,
				LOADV(g.x, ADD(c, QUANT_GROUP / 2), PER_LANE),
				part);
			SET(sum, FMA(load_f32(scale, group), part, sum));
		}
		row_store(k, g.y, g.row, sum);
	}
}
