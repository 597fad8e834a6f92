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
