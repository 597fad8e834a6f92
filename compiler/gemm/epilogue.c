/*
 * compiler/gemm/epilogue.c - from sums to C.
 */
#include "compiler/gemm/gemm_int.h"

/* ------------------------------------------------------------- one run -- */

/*
 * GEMM_RUN neighbours of one row: the sums, their place in the tile; the gate's
 * sums for SWIGLU.
 */
struct run {
	struct val x, gate;
	struct val row, column; /* i32 */
};

/* Pointers to the tile's first element. */
struct out {
	struct val c, residual, bias;
};

/* Which of the run's elements are there. */
static struct val mask_of(struct gemm_gen *g, const struct run *c)
{
	const struct val row = LT(ADD(g->row, c->row), g->arg.m);
	const struct val column = RANGE(ADD(g->column, c->column), GEMM_RUN);

	return AND(LT(column, g->arg.n), row);
}

static struct val read_run(struct gemm_gen *g, struct val p, struct val at,
			   const struct run *c, bool whole)
{
	return CAST(DSL_F32, whole ? LOADV(p, at, GEMM_RUN) :
				     LOAD_IF(mask_of(g, c), p,
					     RANGE(at, GEMM_RUN)));
}

static struct val apply_activation(const struct gemm_op *op, struct val x,
				   struct val gate)
{
	if (op->epilogue & GEMM_RELU)
		return MAX(x, 0.0);
	if (op->epilogue & GEMM_SILU)
		return SILU(x);
	if (op->epilogue & GEMM_GELU)
		return GELU(x);
	if (op->epilogue & GEMM_SWIGLU)
		return MUL(SILU(gate), x);
	return x;
}

static struct val apply_linear(struct gemm_gen *g, const struct out *o,
			       const struct run *c, struct val x, bool second,
			       bool whole)
{
	const uint32_t ep = g->op->epilogue;

	x = CAST(DSL_F32, x);
	if (ep & GEMM_SCALE)
		x = MUL(x, g->arg.alpha);
	if (!(ep & GEMM_BIAS))
		return x;
	const struct val p = second ? ADVANCE(o->bias, g->arg.n) : o->bias;

	struct val at = c->column;
	const struct val b =
		CAST(DSL_F32,
		     whole ? LOADV(p, at, GEMM_RUN) :
			     LOAD_IF(mask_of(g, c), p, RANGE(at, GEMM_RUN)));

	return ADD(x, b);
}

static void finish_run(struct gemm_gen *g, const struct out *o,
		       const struct run *c, bool whole)
{
	const struct gemm_op *op = g->op;
	const struct val at = ADD(MUL(c->row, g->arg.ldc), c->column);
	const bool pair = op->epilogue & GEMM_SWIGLU;
	struct val x = c->x, gate = c->gate;

	if (op->out != DSL_I32) {
		x = apply_linear(g, o, c, x, pair, whole);
		if (pair)
			gate = apply_linear(g, o, c, gate, false, whole);
		if (op->beta)
			x = FMA(g->arg.beta,
				read_run(g, o->c, at, c, whole), x);
		x = apply_activation(op, x, gate);
		if (op->epilogue & GEMM_SHRINK)
			x = MUL(x, 1.0 / GEMM_SHRINK_BY);
		if (op->epilogue & GEMM_RESIDUAL)
			x = ADD(x, read_run(g, o->residual, at, c, whole));
		x = CAST(op->out, x);
	}
	if (whole)
		STORE(o->c, at, x);
	else
		STORE_IF(mask_of(g, c), o->c, RANGE(at, GEMM_RUN), x);
}

/* ------------------------------------------------------------ the tile -- */

static void place_output(struct gemm_gen *g, struct out *o)
{
	const struct val first =
		ADD(MUL(CAST(DSL_I64, g->batch), g->arg.stride_c),
		    ADD(MUL(CAST(DSL_I64, g->row), CAST(DSL_I64, g->arg.ldc)),
			CAST(DSL_I64, g->column)));

	o->c = ADVANCE(g->arg.c, first);
	if (g->op->epilogue & GEMM_RESIDUAL)
		o->residual = ADVANCE(g->arg.residual, first);
	if (g->op->epilogue & GEMM_BIAS)
		o->bias = ADVANCE(g->arg.bias, CAST(DSL_I64, g->column));
}

static void finish_runs(struct gemm_gen *g, const struct out *o,
			gemm_sums_fn *sums, uint32_t from, uint32_t to,
			bool whole)
{
	const bool pair = g->op->epilogue & GEMM_SWIGLU;
	const uint32_t apart = g->p.runs_16;

	for (uint32_t i = from; i < to; i++)
		for (uint32_t c = 0; c < g->p.runs; c++) {
			/* Of a pair the gate's columns are the first 16. */
			if (pair && c / apart % 2)
				continue;
			const struct run x = {
				.x = sums(g, i, pair ? c + apart : c),
				.gate = pair ? sums(g, i, c) :
					       (struct val){ 0 },
				.row = gemm_run_row(g, i),
				.column = gemm_run_column(g, c),
			};

			finish_run(g, o, &x, whole);
		}
}

void gemm_epilogue(struct gemm_gen *g, gemm_sums_fn *sums, uint32_t from,
		   uint32_t to)
{
	struct out o;

	place_output(g, &o);
	if (g->c->even) {
		finish_runs(g, &o, sums, from, to, true);
		return;
	}
	const struct val inside =
		AND(LE(ADD(g->row, g->c->m), g->arg.m),
		    LE(ADD(g->column, (int)g->p.out_n), g->arg.n));

	IF (g->k, inside) {
		finish_runs(g, &o, sums, from, to, true);
	}
	ELSE (g->k) {
		finish_runs(g, &o, sums, from, to, false);
	}
}
