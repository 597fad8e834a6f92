/*
 * compiler/kernels/norm.c - rows divided by their root mean square.
 *
 * Rows of a model (rms_norm) have a group each, those of heads (qk_norm) a
 * wave.
 */
#include "compiler/kernels/kernels_int.h"

/* Where the norm of a row is worked out: by `group` work-items, or a wave. */
struct norm {
	struct val w, eps, n;
	uint32_t group; /* 0: a wave */
};

static struct val first_of(struct dsl *k, const struct norm *d)
{
	return d->group ? LOCAL_ID(k, 0) : LANE(k);
}

static uint32_t step_of(const struct norm *d)
{
	return d->group ? d->group : 32;
}

static struct val mean_of(const struct norm *d, struct var sum)
{
	struct val all = d->group ? GROUP_SUM(GET(sum)) : WAVE_SUM(GET(sum));

	return DIV(all, CAST(DSL_F32, d->n));
}

/* 1 / sqrt(mean of x^2 + eps) */
static struct val rms_scale(struct dsl *k, const struct norm *d, struct val x)
{
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, first_of(k, d), d->n, step_of(d)) {
		struct val v = load_f32(x, i);

		SET(sum, FMA(v, v, sum));
	}
	return DIV(1.0, SQRT(ADD(mean_of(d, sum), d->eps)));
}

static void norm_forward(struct dsl *k, const struct norm *d, struct val in,
			 struct val out, struct val row)
{
	struct val x = row_of(in, row, d->n), y = row_of(out, row, d->n);
	struct val r = rms_scale(k, d, x);

	FOR(k, i, first_of(k, d), d->n, step_of(d)) {
		store_f32(y, i, MUL(MUL(load_f32(x, i), r),
				    load_f32(d->w, i)));
	}
}

/* Arguments: out (shape.to), x [rows][n], w [n], eps (f32), n (i32). */
void build_rms_norm(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->to, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct norm d = { .group = s->group };

	d.w = ARG_PTR(k, s->type, "w", DSL_READONLY);
	d.eps = ARG(k, DSL_F32, "eps");
	d.n = ARG(k, DSL_I32, "n");
	norm_forward(k, &d, in, out, GROUP_ID(k, 0));
}

/* Arguments: out, x [rows][n], w [n], eps (f32), n, rows (i32). */
void build_qk_norm(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct norm d = { .group = 0 };

	d.w = ARG_PTR(k, s->type, "w", DSL_READONLY);
	d.eps = ARG(k, DSL_F32, "eps");
	d.n = ARG(k, DSL_I32, "n");
	struct val rows = ARG(k, DSL_I32, "rows"), row = wave_row(k, s);

	IF (k, LT(row, rows)) {
		norm_forward(k, &d, in, out, row);
	}
}

/*
 * Arguments: out [picked][n] (shape.to), x [rows][n], w [n] (f32), pick
 * [picked] (i32: which row), eps (f32), n (i32: a multiple of 4).  Rows begin
 * at multiples of 16 bytes.
 */
void build_rms_norm_rows(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ALIGNED(ARG_PTR(k, s->to, "out", DSL_NOALIAS), 8);
	struct val in = ALIGNED(ARG_PTR(k, DSL_F32, "x", DSL_READONLY), 16);
	struct val w = ALIGNED(ARG_PTR(k, DSL_F32, "w", DSL_READONLY), 16);
	struct val pick = ARG_PTR(k, DSL_I32, "pick", DSL_READONLY);
	struct val eps = ARG(k, DSL_F32, "eps");
	struct val n = ARG(k, DSL_I32, "n"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, LOAD(pick, row), n), y = row_of(out, row, n);
	struct val first = MUL(LOCAL_ID(k, 0), 4);
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, first, n, 4 * s->group) {
		struct val v = LOADV(x, i, 4);

		for (uint32_t j = 0; j < 4; j++)
			SET(sum, FMA(ELEM(v, j), ELEM(v, j), GET(sum)));
	}
	struct val r = RSQRT(ADD(DIV(GROUP_SUM(GET(sum)), CAST(DSL_F32, n)),
				 eps));
	FOR(k, i, first, n, 4 * s->group) {
		STORE(y, i, CAST(s->to, MUL(MUL(LOADV(x, i, 4), r),
					   LOADV(w, i, 4))));
	}
}

/* ------------------------------------------------------------ gradients -- */

struct back {
	struct norm d;
	struct val dx, dw, x, g;
};

/*
 * Arguments: dx [rows][n] (shape.to), dw [n] (f32, added to), x, w,
 * g [rows][n], eps, n
 */
static struct back back_args(struct dsl *k, const struct kernel_shape *s,
			     uint32_t group)
{
	struct back b = { .d = { .group = group } };

	b.dx = ARG_PTR(k, s->to, "dx", 0);
	b.dw = ARG_PTR(k, DSL_F32, "dw", 0);
	b.x = ARG_PTR(k, s->type, "x", 0);
	b.d.w = ARG_PTR(k, s->type, "w", DSL_READONLY);
	b.g = ARG_PTR(k, s->type, "g", 0);
	b.d.eps = ARG(k, DSL_F32, "eps");
	b.d.n = ARG(k, DSL_I32, "n");
	return b;
}

/*
 * With r = 1 / rms and m = mean of x w g: dx = r (w g - x r^2 m), dw = g x r.
 */
static void norm_backward(struct dsl *k, const struct back *b, struct val row)
{
	const struct norm *d = &b->d;
	struct val x = row_of(b->x, row, d->n), y = row_of(b->dx, row, d->n);
	struct val g = row_of(b->g, row, d->n);
	struct val r = rms_scale(k, d, x);
	struct var dot = VAR(k, DSL_F32, 0);

	FOR(k, i, first_of(k, d), d->n, step_of(d)) {
		SET(dot, FMA(MUL(load_f32(x, i), load_f32(d->w, i)),
			     load_f32(g, i), dot));
	}
	struct val m = MUL(MUL(r, r), mean_of(d, dot));
	FOR(k, j, first_of(k, d), d->n, step_of(d)) {
		struct val xj = load_f32(x, j), gj = load_f32(g, j);

		store_f32(y, j, MUL(r, SUB(MUL(load_f32(d->w, j), gj),
					   MUL(xj, m))));
		ATOMIC(SSA_RMW_FADD, b->dw, j, MUL(MUL(gj, xj), r));
	}
}

/* As back_args(). */
void build_rms_norm_back(struct dsl *k, const struct kernel_shape *s)
{
	struct back b = back_args(k, s, s->group);

	norm_backward(k, &b, GROUP_ID(k, 0));
}

/* As back_args(), then rows (i32). */
void build_qk_norm_back(struct dsl *k, const struct kernel_shape *s)
{
	struct back b = back_args(k, s, 0);
	struct val rows = ARG(k, DSL_I32, "rows"), row = wave_row(k, s);

	IF (k, LT(row, rows)) {
		norm_backward(k, &b, row);
	}
}
