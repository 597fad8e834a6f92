/*
 * compiler/gemm/parts.c - tiles of which several workgroups have a part.
 *
 * A part is a slot of the workspace: run c of row group i of work-item t is
 * GEMM_RUN sums at ((i * runs + c) * threads + t) * GEMM_RUN.  With split there
 * are `split` slots per tile, in the order of tiles.  With stream-K workgroup w
 * works through [w * part, (w + 1) * part) of all tiles of K of all tiles of C;
 * at most two of its tiles are others', too: its first (slot 2w) and its last
 * (2w + 1).
 */
#include "compiler/gemm/gemm_int.h"

#include <stdlib.h>

bool gemm_has_parts(const struct gemm_config *c)
{
	return c->stream_k || c->split > 1;
}

/* Tiles of K; at least one. */
static struct val k_tiles(struct gemm_gen *g)
{
	return MAX(DIV(ADD(g->arg.k, g->c->k - 1), g->c->k), 1);
}

static struct val slot_at(struct gemm_gen *g, struct val slot)
{
	return ADVANCE(g->arg.workspace, MUL(CAST(DSL_I64, slot),
					     g->c->m * g->c->n));
}

static uint32_t run_at(struct gemm_gen *g, uint32_t i, uint32_t c)
{
	return (i * g->p.runs + c) * g->p.threads * GEMM_RUN;
}

void gemm_part_store(struct gemm_gen *g, struct val slot)
{
	const struct val p = slot_at(g, slot);
	const struct val t = MUL(LOCAL_ID(g->k, 0), GEMM_RUN);

	for (uint32_t i = 0; i < g->p.frags_m; i++)
		for (uint32_t c = 0; c < g->p.runs; c++)
			STORE(p, ADD(t, run_at(g, i, c)),
			      gemm_run_sums(g, i, c));
}

/* ------------------------------------------------------------ stream-K -- */

/* Tiles in bands of rows, as the plain order has them. */
static void place_linear(struct gemm_gen *g, struct val t)
{
	const uint32_t order = g->c->order > 1 ? g->c->order : 1;
	const struct val all = MUL(g->arg.tiles_m, g->arg.tiles_n);

	g->batch = DIV(t, all);
	t = SUB(t, MUL(g->batch, all));
	const struct val band = DIV(t, MUL(g->arg.tiles_n, order));
	const struct val first = MUL(band, order);
	const struct val rows = MIN(SUB(g->arg.tiles_m, first), order);
	const struct val in = SUB(t, MUL(first, g->arg.tiles_n));
	const struct val column = DIV(in, rows);

	gemm_place_tile(g, ADD(first, SUB(in, MUL(column, rows))), column);
}

/* Of workgroup w's part of a tile; `first`: the tile that it begins with. */
static struct val slot_of(struct val w, struct val tile, struct val first)
{
	const struct val twice = MUL(w, 2);

	return SELECT(EQ(tile, first), twice, ADD(twice, 1));
}

static struct val stream_all(struct gemm_gen *g)
{
	return MUL(MUL(g->arg.tiles_m, g->arg.tiles_n),
		   MUL(g->arg.batch, k_tiles(g)));
}

void gemm_stream(struct gemm_gen *g, gemm_tile_fn *tile)
{
	struct dsl *k = g->k;
	const struct val w = GROUP_ID(k, 0), deep = k_tiles(g);
	const struct val from = MUL(w, g->arg.part);
	const struct val end = MIN(ADD(from, g->arg.part), stream_all(g));
	const struct val first = DIV(from, deep);
	struct var at = VAR_OF(from);

	WHILE (k, LT(GET(at), end)) {
		const struct val now = GET(at), t = DIV(now, deep);
		const struct val k0 = SUB(now, MUL(t, deep));
		const struct val k1 = MIN(deep, ADD(k0, SUB(end, now)));
		const struct val slot = slot_of(w, t, first);

		place_linear(g, t);
		BARRIER(k);
		tile(g, MUL(k0, g->c->k), MIN(MUL(k1, g->c->k), g->arg.k),
		     EQ(SUB(k1, k0), deep), slot);
		SET(at, ADD(now, SUB(k1, k0)));
	}
}

/* -------------------------------------------------------------- reduce -- */

/* Adds a slot's runs of one row group to acc[runs]. */
static void add_slot(struct gemm_gen *g, struct val slot, struct val item,
		     struct val group)
{
	const struct val p = ADVANCE(
		slot_at(g, slot),
		CAST(DSL_I64, MUL(group, run_at(g, 1, 0))));
	const struct val t = MUL(item, GEMM_RUN);

	for (uint32_t c = 0; c < g->p.runs; c++)
		SET(g->acc[c], ADD(GET(g->acc[c]),
				   LOADV(p, ADD(t, run_at(g, 0, c)),
					 GEMM_RUN)));
}

static struct val reduced_sum(struct gemm_gen *g, uint32_t i, uint32_t c)
{
	(void)i;
	return GET(g->acc[c]);
}

static void zero_runs(struct gemm_gen *g)
{
	const enum dsl_type t = g->op->in == DSL_I8 ? DSL_I32 : DSL_F32;
	const struct val z = CONST(g->k, t, 0);

	for (uint32_t c = 0; c < g->p.runs; c++)
		g->acc[c] = VAR_OF(JOIN(z, z, z, z));
}

/* The row group is the kernel's: rows follow from it at run time. */
static void shift_rows(struct gemm_gen *g, struct val group)
{
	const uint32_t apart = g->p.wmma ? GEMM_FRAG : 0;

	if (apart) {
		g->wave_row = ADD(g->wave_row, MUL(group, apart));
		return;
	}
	g->wave_row = ADD(g->wave_row,
			  ADD(MUL(SHR(group, 2), GEMM_LANES_M * GEMM_RUN),
			      AND(group, GEMM_RUN - 1)));
}

static void reduce_split(struct gemm_gen *g, struct val tile, struct val item,
			 struct val group)
{
	const int parts = g->c->split;

	zero_runs(g);
	FOR (g->k, s, 0, CONST(g->k, DSL_I32, parts), 1) {
		add_slot(g, ADD(MUL(tile, parts), s), item, group);
	}
	shift_rows(g, group);
	gemm_epilogue(g, reduced_sum, 0, 1);
}

static void reduce_stream(struct gemm_gen *g, struct val tile, struct val item,
			  struct val group)
{
	struct dsl *k = g->k;
	const struct val deep = k_tiles(g), part = g->arg.part;
	const struct val from = MUL(tile, deep);
	const struct val first = DIV(from, part);
	const struct val last = DIV(ADD(from, SUB(deep, 1)), part);

	IF (k, LT(first, last)) {
		zero_runs(g);
		FOR (k, w, first, ADD(last, 1), 1) {
			const struct val own = DIV(MUL(w, part), deep);

			add_slot(g, slot_of(w, tile, own), item, group);
		}
		shift_rows(g, group);
		gemm_epilogue(g, reduced_sum, 0, 1);
	}
}

/* A wave for each wave of a tile and each of its row groups. */
static void reduce_parts(struct gemm_gen *g)
{
	struct dsl *k = g->k;
	const struct gemm_config *c = g->c;
	const uint32_t waves = c->waves_m * c->waves_n;
	const struct val z = GROUP_ID(k, 2), group = REM(z, (int)g->p.frags_m);
	const struct val rest = DIV(z, (int)g->p.frags_m);
	const struct val wave = REM(rest, (int)waves);
	const struct val item = ADD(MUL(wave, GEMM_WAVE), LANE(k));

	if (c->stream_k) {
		const struct val t = GROUP_ID(k, 0);

		place_linear(g, t);
		gemm_waves_init(g, wave);
		reduce_stream(g, t, item, group);
		return;
	}
	const struct val m = GROUP_ID(k, 1), n = GROUP_ID(k, 0);

	g->batch = DIV(rest, (int)waves);
	gemm_place_tile(g, m, n);
	gemm_waves_init(g, wave);
	reduce_split(g, ADD(MUL(ADD(MUL(g->batch, g->arg.tiles_m), m),
				g->arg.tiles_n), n),
		     item, group);
}

struct ssa_func *gemm_build_reduce(const struct gemm_op *op,
				   const struct gemm_config *c, struct err *e)
{
	struct gemm_gen g = { .op = op, .c = c };
	struct ssa_func *f;

	if (!gemm_plan(op, c, &g.p, e))
		return NULL;
	g.k = KERNEL("gemm_reduce", GEMM_WAVE);
	g.acc = xcalloc(g.p.runs, sizeof(*g.acc));
	gemm_args(g.k, op, c, &g.arg);
	reduce_parts(&g);
	f = dsl_finish(g.k, e);
	free(g.acc);
	return f;
}
