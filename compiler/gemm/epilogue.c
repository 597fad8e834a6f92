/* compiler/gemm/epilogue.c - from sums to C. */
#include "compiler/gemm/gemm_int.h"

#include <math.h>

/* ------------------------------------------------------------- one run -- */

static struct val all(struct dsl *k, struct val x, uint32_t n)
{
	struct val e[SSA_MAX_LANES];

	for (uint32_t j = 0; j < n; j++)
		e[j] = x;
	(void)k;
	return n == 1 ? x : dsl_join(DSL_AT, e, n);
}

/* Which of the run's elements are there. */
static struct val mask_of(struct gemm_gen *g, const struct gemm_chunk *c)
{
	const struct val row = LT(ADD(g->row, c->row), g->arg.m);
	const struct val column = RANGE(ADD(g->column, c->column), c->n);

	return AND(LT(column, all(g->k, g->arg.n, c->n)), row);
}

static struct val read_run(struct gemm_gen *g, struct val p, struct val at,
			   const struct gemm_chunk *c, bool whole)
{
	return CAST(DSL_F32, whole ? LOADV(p, at, c->n) :
				     LOAD_IF(mask_of(g, c), p,
					     RANGE(at, c->n)));
}

static struct val activation(const struct gemm_op *op, struct val x,
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

static struct val linear(struct gemm_gen *g, const struct gemm_out *o,
			 const struct gemm_chunk *c, struct val x, bool second,
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
	const struct val b = CAST(
		DSL_F32, whole ? LOADV(p, at, c->n) :
				 LOAD_IF(mask_of(g, c), p, RANGE(at, c->n)));

	return ADD(x, b);
}

void gemm_finish(struct gemm_gen *g, const struct gemm_out *o,
		 const struct gemm_chunk *c, bool whole)
{
	const struct gemm_op *op = g->op;
	const struct val at = ADD(MUL(c->row, g->arg.ldc), c->column);
	const bool pair = op->epilogue & GEMM_SWIGLU;
	struct val x = c->x, gate = c->gate;

	if (op->out != DSL_I32) {
		x = linear(g, o, c, x, pair, whole);
		if (pair)
			gate = linear(g, o, c, gate, false, whole);
		if (op->beta)
			x = FMA(g->arg.beta,
				read_run(g, o->c, at, c, whole), x);
		x = activation(op, x, gate);
		if (op->epilogue & GEMM_RESIDUAL)
			x = ADD(x, read_run(g, o->residual, at, c, whole));
		x = CAST(op->out, x);
	}
	if (whole)
		STORE(o->c, at, x);
	else
		STORE_IF(mask_of(g, c), o->c, RANGE(at, c->n), x);
}

/* ------------------------------------------------------------ the tile -- */

/* Pointers to the tile's first element. */
void gemm_out(struct gemm_gen *g, struct gemm_out *o)
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

/* Four elements of a fragment: half q of those of this lane. */
static struct val quarter(struct gemm_gen *g, uint32_t i, uint32_t j,
			  uint32_t q)
{
	const struct val x = FRAG_ELEMS(GET(g->acc[i * g->p.frags_n + j]));

	return JOIN(ELEM(x, 4 * q), ELEM(x, 4 * q + 1), ELEM(x, 4 * q + 2),
		    ELEM(x, 4 * q + 3));
}

static void matrices(struct gemm_gen *g, const struct gemm_out *o, bool whole)
{
	const bool pair = g->op->epilogue & GEMM_SWIGLU;
	const struct val lane = LANE(g->k);
	const struct val row = ADD(g->wave_row, AND(lane, 15));
	struct val column = MUL(SHR(lane, 4), 4);

	column = ADD(column, pair ? SHR(g->wave_column, 1) : g->wave_column);
	for (uint32_t i = 0; i < g->p.frags_m; i++)
		for (uint32_t j = 0; j < g->p.frags_n; j += 1 + pair)
			for (uint32_t q = 0; q < 2; q++) {
				const uint32_t at = j / (1 + pair) * GEMM_FRAG;
				struct gemm_chunk c = {
					.x = quarter(g, i, j + pair, q),
					.row = ADD(row, i * GEMM_FRAG),
					.column = ADD(column, at + 8 * q),
					.n = 4,
				};

				if (pair)
					c.gate = quarter(g, i, j, q);
				gemm_finish(g, o, &c, whole);
			}
}

void gemm_epilogue(struct gemm_gen *g)
{
	struct gemm_out o;

	gemm_out(g, &o);
	if (g->c->even) {
		matrices(g, &o, true);
		return;
	}
	const struct val inside =
		AND(NE(AND(g->arg.aligned, GEMM_ALIGNED_C), 0),
		    AND(LE(ADD(g->row, g->c->m), g->arg.m),
			LE(ADD(g->column, (int)g->p.out_n), g->arg.n)));

	IF (g->k, inside) {
		matrices(g, &o, true);
	}
	ELSE (g->k) {
		matrices(g, &o, false);
	}
}
