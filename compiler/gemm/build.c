/*
 * compiler/gemm/build.c - the main kernel, from tile indices to its end.
 */
#include "compiler/gemm/gemm_int.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- arguments -- */

/* Compute queues allow vectors anywhere; bytes need `aligned`. */
static struct val arg_pointer(struct dsl *k, const struct gemm_config *c,
			      enum dsl_type t, const char *name, uint32_t flags)
{
	const struct val p = ARG_PTR(k, t, name, flags);

	return ALIGNED(p, c->even ? 4 : 2);
}

void gemm_args(struct dsl *k, const struct gemm_op *op,
	       const struct gemm_config *c, struct gemm_args *a)
{
	const enum dsl_type sums = op->in == DSL_I8 ? DSL_I32 : DSL_F32;

	a->a = arg_pointer(k, c, op->in, "a", DSL_READONLY);
	a->b = arg_pointer(k, c, op->weights ? DSL_U8 : op->in, "b",
			   DSL_READONLY);
	if (op->weights)
		a->b = ALIGNED(a->b, 16);
	a->c = arg_pointer(k, c, op->out, "c", 0);
	a->bias = arg_pointer(k, c, op->out, "bias", DSL_READONLY);
	/* C itself may be the residual. */
	a->residual = arg_pointer(k, c, op->out, "residual", 0);
	a->workspace = arg_pointer(k, c, sums, "workspace", 0);
	a->scale = ARG_PTR(k, DSL_F16, "scale", DSL_READONLY);
#define LONG(name) a->name = ARG(k, DSL_I64, #name);
#define INT(name)  a->name = ARG(k, DSL_I32, #name);
#define REAL(name) a->name = ARG(k, DSL_F32, #name);
#define NONE(name)
	GEMM_ARGS(NONE, LONG, INT, REAL)
#undef LONG
#undef INT
#undef REAL
#undef NONE
}

/* ------------------------------------------------------------ pipeline -- */

/* What goes round the K loop. */
struct pipe {
	struct gemm_gen *g;
	struct val first, last; /* elements of K: of the first, the last tile */
	struct var now, next;	/* buffers: being read, being filled */
	struct var held_a[GEMM_MAX_LOADS], held_b[GEMM_MAX_LOADS];
	struct var direct[GEMM_MAX_LOADS]; /* B of the tile being read */
};

static void load_both(struct pipe *p, struct val k, struct gemm_stage *a,
		      struct gemm_stage *b)
{
	gemm_feed_load(&p->g->a, k, a);
	if (!p->g->c->b_direct)
		gemm_feed_load(&p->g->b, k, b);
}

static void store_both(struct pipe *p, const struct gemm_stage *a,
		       const struct gemm_stage *b, struct val buffer)
{
	gemm_feed_store(p->g, &p->g->a, a, buffer);
	if (!p->g->c->b_direct)
		gemm_feed_store(p->g, &p->g->b, b, buffer);
}

static struct val buffer_at(struct gemm_gen *g, uint32_t k)
{
	return CONST(g->k, DSL_I32, k * g->p.buffer);
}

static struct val next_buffer(struct gemm_gen *g, struct val buffer)
{
	const uint32_t n = g->c->buffers, size = g->p.buffer;

	if (n == 1)
		return buffer;
	if (n == 2)
		return SUB((int)size, buffer);
	return SELECT(EQ(buffer, (int)((n - 1) * size)), 0, ADD(buffer, size));
}

/* Tiles that are in LDS or held in registers before the one being loaded. */
static uint32_t tiles_ahead(const struct gemm_config *c)
{
	return 1 + (c->buffers == 3) + (c->prefetch == 2);
}

/* The tile `ahead` of that at k, or the last: nobody reads that one twice. */
static struct val tile_at(struct pipe *p, struct val k, uint32_t ahead)
{
	return MIN(ADD(k, ahead * p->g->c->k), p->last);
}

static void hold_stage(struct var *to, const struct gemm_stage *from,
		       bool first)
{
	for (uint32_t j = 0; j < from->n; j++)
		if (first)
			to[j] = VAR_OF(from->v[j]);
		else
			SET(to[j], from->v[j]);
}

static void take_stage(struct var *from, struct gemm_stage *to)
{
	for (uint32_t j = 0; j < to->n; j++)
		to->v[j] = GET(from[j]);
}

/* One tile: the next ones come in while its products are made. */
static void step_tile(struct pipe *p, struct val k)
{
	struct gemm_gen *g = p->g;
	const struct gemm_config *c = g->c;
	const struct val at = tiles_ahead(c) > 1 ?
				      tile_at(p, k, tiles_ahead(c)) :
				      ADD(k, c->k);
	struct gemm_stage a, b, old_a, old_b, direct, coming;

	if (c->prefetch)
		load_both(p, at, &a, &b);
	if (c->b_direct) {
		gemm_direct_load(g, ADD(k, c->k), &coming);
		direct.n = coming.n;
		take_stage(p->direct, &direct);
	}
	gemm_product(g, GET(p->now), &direct);
	if (c->b_direct)
		hold_stage(p->direct, &coming, false);
	if (!c->prefetch)
		load_both(p, at, &a, &b);
	if (c->buffers == 1)
		BARRIER(g->k);
	if (c->prefetch == 2) {
		old_a = a;
		old_b = b;
		take_stage(p->held_a, &old_a);
		if (!c->b_direct)
			take_stage(p->held_b, &old_b);
		store_both(p, &old_a, &old_b, GET(p->next));
		hold_stage(p->held_a, &a, false);
		if (!c->b_direct)
			hold_stage(p->held_b, &b, false);
	} else {
		store_both(p, &a, &b, GET(p->next));
	}
	BARRIER(g->k);
	SET(p->now, next_buffer(g, GET(p->now)));
	SET(p->next, next_buffer(g, GET(p->next)));
}

static void begin_pipe(struct pipe *p)
{
	struct gemm_gen *g = p->g;
	struct gemm_stage a, b;

	load_both(p, p->first, &a, &b);
	if (g->c->b_direct) {
		struct gemm_stage direct;

		gemm_direct_load(g, p->first, &direct);
		hold_stage(p->direct, &direct, true);
	}
	store_both(p, &a, &b, buffer_at(g, 0));
	if (g->c->buffers == 3) {
		load_both(p, tile_at(p, p->first, 1), &a, &b);
		store_both(p, &a, &b, buffer_at(g, 1));
	}
	if (g->c->prefetch == 2) {
		load_both(p, tile_at(p, p->first, tiles_ahead(g->c) - 1), &a,
			  &b);
		hold_stage(p->held_a, &a, true);
		if (!g->c->b_direct)
			hold_stage(p->held_b, &b, true);
	}
	BARRIER(g->k);
}

/* `tiles` whole tiles of K from element `from` on, all rows of them inside. */
static void whole_tiles(struct gemm_gen *g, struct val from, struct val tiles)
{
	const int k = g->c->k, u = g->c->unroll;
	const struct val steps = SUB(tiles, 1);
	struct pipe p = { .g = g, .first = from,
			  .last = ADD(from, MUL(steps, k)) };
	const uint32_t fill = g->c->buffers - 1;

	p.now = VAR_OF(buffer_at(g, 0));
	p.next = VAR_OF(buffer_at(g, fill));
	begin_pipe(&p);
	const struct val many = u > 1 ? MUL(DIV(steps, u), u) :
					CONST(g->k, DSL_I32, 0);

	if (u > 1) {
		FOR(g->k, t, 0, many, u) {
			if (g->c->buffers > 1 && u % g->c->buffers == 0) {
				SET(p.now, buffer_at(g, 0));
				SET(p.next, buffer_at(g, fill));
			}
			for (int i = 0; i < u; i++)
				step_tile(&p, ADD(from, MUL(ADD(t, i), k)));
		}
	}
	FOR(g->k, t, many, steps, 1) {
		step_tile(&p, ADD(from, MUL(t, k)));
	}
	struct gemm_stage direct = { .n = g->p.slices * g->p.frags_n };

	if (g->c->b_direct)
		take_stage(p.direct, &direct);
	gemm_product(g, GET(p.now), &direct);
}

/* What is left of K, or all of it where rows are missing. */
static void masked_tiles(struct gemm_gen *g, struct val from, struct val end)
{
	const struct val buffer = buffer_at(g, 0);

	FOR(g->k, k, from, end, g->c->k) {
		struct gemm_stage direct;

		BARRIER(g->k);
		gemm_feed_masked(g, &g->a, k, end, buffer);
		if (g->c->b_direct)
			gemm_direct_masked(g, k, end, &direct);
		else
			gemm_feed_masked(g, &g->b, k, end, buffer);
		BARRIER(g->k);
		gemm_product(g, buffer, &direct);
	}
}

/* ---------------------------------------------------------------- tile -- */

/*
 * Where whole tiles have to end.  Of rows along M or N that are adjacent some
 * may be missing: what is read in their place lies in the rows of K that
 * follow, and nobody looks at its sums; so the last tile is masked, and all if
 * even a tile of such rows is shorter than one of them.
 */
static struct val side_end(struct gemm_gen *g, const struct gemm_feed *f,
			   uint32_t rows, struct val from, struct val end)
{
	const struct val last = SUB(g->arg.k, g->c->k);
	const struct val far = GT((int)rows, MUL(f->ld, g->c->k));

	if (f->s->minor_k)
		return end;
	return SELECT(GE(f->valid, (int)rows), end,
		      SELECT(far, from, MIN(end, last)));
}

static struct val whole_end(struct gemm_gen *g, struct val from, struct val end)
{
	if (g->c->even)
		return end;
	if (g->op->in == DSL_I8)
		end = SELECT(NE(g->arg.aligned, 0), end, from);
	end = side_end(g, &g->a, g->c->m, from, end);
	return g->c->b_direct ? end : side_end(g, &g->b, g->p.out_n, from, end);
}

static void sums_init(struct gemm_gen *g)
{
	const uint32_t n = g->p.frags_m * g->p.frags_n;
	const enum dsl_type t = g->op->in == DSL_I8 ? DSL_I32 : DSL_F32;

	for (uint32_t k = 0; k < n; k++)
		g->acc[k] = g->p.wmma ? VAR_OF(FRAG_ZERO(g->k, t)) :
					VAR(g->k, DSL_F32, 0);
}

static void accumulate_tiles(struct gemm_gen *g, struct val from,
			     struct val end)
{
	const struct val length = SUB(whole_end(g, from, end), from);
	const struct val fast = DIV(MAX(length, 0), g->c->k);

	IF (g->k, GT(fast, 0)) {
		whole_tiles(g, from, fast);
	}
	if (!g->c->even)
		masked_tiles(g, ADD(from, MUL(fast, g->c->k)), end);
}

/* From here on rows of weights and what lies between them count bytes. */
static struct val stored_offset(const struct gemm_gen *g, struct val elements)
{
	return g->op->weights == DSL_U8 ? SHR(elements, 1) : elements;
}

static void feed_weights(struct gemm_gen *g, struct val first)
{
	g->b.scale_ld = SHR(g->arg.ldb, 5);
	g->b.scale = ADVANCE(g->arg.scale,
			     ADD(SHR(first, 5),
				 MUL(CAST(DSL_I64, g->column),
				     CAST(DSL_I64, g->b.scale_ld))));
}

static void feeds_init(struct gemm_gen *g)
{
	const struct gemm_args *a = &g->arg;
	const struct val batch = CAST(DSL_I64, g->batch);

	g->a = (struct gemm_feed){ .s = &g->p.a, .ld = a->lda,
				   .valid = SUB(a->m, g->row) };
	g->b = (struct gemm_feed){ .s = &g->p.b,
				   .ld = stored_offset(g, a->ldb),
				   .valid = SUB(a->n, g->column) };
	const struct val row = CAST(DSL_I64, g->row);
	const struct val column = CAST(DSL_I64, g->column);

	g->a.base = ADVANCE(ADVANCE(a->a, MUL(batch, a->stride_a)),
			    g->op->a_trans ? row :
					     MUL(row, CAST(DSL_I64, a->lda)));
	const struct val first_b = MUL(batch, a->stride_b);

	g->b.base = ADVANCE(
		ADVANCE(a->b, stored_offset(g, first_b)),
		g->op->b_trans ? MUL(column, CAST(DSL_I64, g->b.ld)) : column);
	if (g->op->weights)
		feed_weights(g, first_b);
	gemm_feed_init(g, &g->a);
	if (g->c->b_direct)
		gemm_direct_init(g);
	else
		gemm_feed_init(g, &g->b);
}

void gemm_waves_init(struct gemm_gen *g, struct val wave)
{
	const struct gemm_config *c = g->c;

	g->wave_row = MUL(REM(wave, c->waves_m), (int)g->p.wave_m);
	g->wave_column = MUL(DIV(wave, c->waves_m), (int)g->p.wave_n);
}

void gemm_place_tile(struct gemm_gen *g, struct val tile_m, struct val tile_n)
{
	g->row = MUL(tile_m, g->c->m);
	g->column = MUL(tile_n, (int)g->p.out_n);
}

/* The sums of [from, end) of K: to C if that is all of it. */
static void build_part(struct gemm_gen *g, struct val from, struct val end,
		       struct val whole, struct val slot)
{
	gemm_waves_init(g, WAVE(g->k));
	feeds_init(g);
	sums_init(g);
	accumulate_tiles(g, from, end);
	if (!gemm_has_parts(g->c)) {
		gemm_epilogue(g, gemm_run_sums, 0, g->p.frags_m);
	} else if (g->c->stream_k) {
		IF (g->k, whole) {
			gemm_epilogue(g, gemm_run_sums, 0, g->p.frags_m);
		}
		ELSE (g->k) {
			gemm_part_store(g, slot);
		}
	} else {
		gemm_part_store(g, slot);
	}
}

/* Of one tile the part that is this workgroup's. */
static void build_tile(struct gemm_gen *g, struct val tile_m, struct val tile_n)
{
	const struct val z = GROUP_ID(g->k, 2);
	const int parts = g->c->split;
	const struct val s = REM(z, parts);
	const struct val from = MUL(s, g->arg.part);

	g->batch = DIV(z, parts);
	gemm_place_tile(g, tile_m, tile_n);
	const struct val t = ADD(MUL(ADD(MUL(g->batch, g->arg.tiles_m),
					 tile_m), g->arg.tiles_n), tile_n);

	if (parts > 1)
		build_part(g, from, MIN(ADD(from, g->arg.part), g->arg.k), s,
			   ADD(MUL(t, parts), s));
	else
		build_part(g, CONST(g->k, DSL_I32, 0), g->arg.k, s, t);
}

static void ordered_tiles(struct gemm_gen *g)
{
	const uint32_t band = g->c->order;
	const struct val x = GROUP_ID(g->k, 0), y = GROUP_ID(g->k, 1);

	if (g->c->stream_k) {
		gemm_stream(g, build_part);
		return;
	}
	if (band < 2) {
		build_tile(g, y, x);
		return;
	}
	const struct val m = ADD(MUL(y, band), AND(x, band - 1));

	IF (g->k, LT(m, g->arg.tiles_m)) {
		build_tile(g, m, SHR(x, __builtin_ctz(band)));
	}
}

struct ssa_func *gemm_build_main(const struct gemm_op *op,
				 const struct gemm_config *c, struct err *e)
{
	struct gemm_gen g = { .op = op, .c = c };
	struct ssa_func *f;

	if (!gemm_plan(op, c, &g.p, e))
		return NULL;
	g.k = KERNEL("gemm", g.p.threads);
	g.acc = xcalloc(g.p.frags_m * g.p.frags_n, sizeof(*g.acc));
	gemm_args(g.k, op, c, &g.arg);
	g.lds = ALIGNED(LDS(g.k, op->in, c->buffers * g.p.buffer, "tiles"), 16);
	MATH(g.k, SSA_CONTRACT);
	ordered_tiles(&g);
	free(g.acc);
	f = dsl_finish(g.k, e);
	return f;
}
