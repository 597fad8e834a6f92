/*
 * compiler/kernels/rope.c - rotary position embedding, both ways of pairing.
 */
#include "compiler/kernels/kernels_int.h"

/*
 * Arguments: out (shape.to), x [tokens][heads][n], cos, sin
 * [positions][n / 2] (f32),
 * position [tokens] (i32), heads, n, rows = tokens * heads (i32), turn (f32):
 * 1 turns forward, -1 back, which is the gradient.  out may be x of its type.
 */
void build_rope(struct dsl *k, const struct kernel_shape *s)
{
	bool pairs = is_kernel(k, "rope_pairs");

	struct val out = ARG_PTR(k, s->to, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct val cosine = ARG_PTR(k, DSL_F32, "cos", DSL_READONLY);
	struct val sine = ARG_PTR(k, DSL_F32, "sin", DSL_READONLY);
	struct val position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
	struct val heads = ARG(k, DSL_I32, "heads"), n = ARG(k, DSL_I32, "n");
	struct val rows = ARG(k, DSL_I32, "rows");
	struct val turn = ARG(k, DSL_F32, "turn");
	struct val row = wave_row(k, s);

	IF(k, LT(row, rows)) {
		struct val half = SHR(n, 1);
		struct val p = LOAD(position, DIV(row, heads));
		struct val c = row_of(cosine, p, half);
		struct val d = row_of(sine, p, half);
		struct val x = row_of(in, row, n), y = row_of(out, row, n);

		FOR(k, i, LANE(k), half, 32) {
			struct val i0 = pairs ? SHL(i, 1) : i;
			struct val i1 = pairs ? ADD(i0, 1) : ADD(i, half);
			struct val a = load_f32(x, i0), b = load_f32(x, i1);
			struct val ci = LOAD(c, i), di = MUL(LOAD(d, i), turn);

			store_f32(y, i0, SUB(MUL(a, ci), MUL(b, di)));
			store_f32(y, i1, FMA(b, ci, MUL(a, di)));
		}
	}
}
