/*
 * compiler/gemm/feed.c - tiles from memory to LDS.
 */
#include "compiler/gemm/gemm_int.h"

static struct val div_const(struct val x, uint32_t by)
{
	return by & (by - 1) ? DIV(x, by) : SHR(x, __builtin_ctz(by));
}

static struct val remainder_of(struct val x, uint32_t by)
{
	return by & (by - 1) ? REM(x, by) : AND(x, by - 1);
}

static bool is_halved(const struct gemm_gen *g, const struct gemm_feed *f)
{
	return f == &g->b && g->op->epilogue & GEMM_SWIGLU;
}

/*
 * Row r of the tile, along M or N, counted from the operand's first: for SWIGLU
 * every other 16 rows are the other factor's, N further on.
 */
static struct val near_row(const struct gemm_gen *g, const struct gemm_feed *f,
			   struct val r)
{
	if (!is_halved(g, f))
		return r;
	return OR(SHL(SHR(r, 5), 4), AND(r, 15));
}

static struct val far_rows(const struct gemm_gen *g, struct val r)
{
	return MUL(AND(SHR(r, 4), 1), g->arg.n);
}

struct val gemm_feed_has(const struct gemm_gen *g, const struct gemm_feed *f,
			 struct val r)
{
	return LT(near_row(g, f, r), f->valid);
}

struct val gemm_feed_row(const struct gemm_gen *g, const struct gemm_feed *f,
			 struct val r, bool clamp)
{
	struct val row = near_row(g, f, r);

	if (clamp)
		row = MIN(row, SUB(f->valid, 1));
	return is_halved(g, f) ? ADD(row, far_rows(g, r)) : row;
}

/* Load number j of this work-item: its place in memory's tile. */
struct spot {
	struct val major, minor;
};

static struct spot spot_of(struct gemm_gen *g, const struct gemm_feed *f,
			   struct val j)
{
	const struct gemm_side *s = f->s;
	const struct val v = ADD(LOCAL_ID(g->k, 0), MUL(j, g->p.threads));
	const uint32_t per = s->minor / s->vec;

	return (struct spot){ div_const(v, per),
			      MUL(remainder_of(v, per), s->vec) };
}

/*
 * The same for step j, whose number is known: where the work-items fill whole
 * rows, steps are a constant apart.  Of a block, the first element.
 */
struct step {
	struct spot spot;
	uint32_t major, minor; /* to be added */
};

/* Of block v the first element; gemm_block_of() in numbers. */
static struct spot block_of(const struct gemm_side *s, struct val v)
{
	const uint32_t across = gemm_across(s);
	const uint32_t more = s->major / s->turn / across;
	const struct val row = div_const(v, s->along);
	const struct val rest = div_const(row, across);
	const struct val major = ADD(MUL(remainder_of(rest, more), across),
				     remainder_of(row, across));
	struct val minor = remainder_of(v, s->along);

	if (s->minor / s->vec > s->along)
		minor = ADD(MUL(div_const(rest, more), s->along), minor);
	return (struct spot){ MUL(major, s->turn), MUL(minor, s->vec) };
}

/* Whole waves further on, which either fill rows of blocks or divide one. */
static struct step block_step(struct gemm_gen *g, const struct gemm_side *s,
			      uint32_t j)
{
	const uint32_t across = gemm_across(s);
	const uint32_t more = s->major / s->turn / across;
	const uint32_t waves = g->p.threads / GEMM_WAVE, on = j * waves;
	const struct val v = LOCAL_ID(g->k, 0);

	if (waves % more && more % waves)
		return (struct step){ block_of(s, ADD(v, j * g->p.threads)),
				      0, 0 };
	return (struct step){ block_of(s, v), on % more * across * s->turn,
			      on / more * s->along * s->vec };
}

static struct step step_of(struct gemm_gen *g, const struct gemm_feed *f,
			   uint32_t j)
{
	const struct gemm_side *s = f->s;
	const uint32_t per = s->minor / s->vec;
	const bool regular = g->p.threads % per == 0;
	const uint32_t rows = regular ? j * (g->p.threads / per) : 0;
	const struct val v = ADD(LOCAL_ID(g->k, 0),
				 regular ? 0 : (int)(j * g->p.threads));

	if (s->turn)
		return block_step(g, s, j);
	return (struct step){ { div_const(v, per),
				MUL(remainder_of(v, per), s->vec) },
			      rows,
			      0 };
}

static struct val feed_offset(struct gemm_gen *g, const struct gemm_feed *f,
			      struct val major, struct val minor)
{
	if (f->s->minor_k)
		return ADD(MUL(gemm_feed_row(g, f, major, !g->c->even), f->ld),
			   minor);
	return ADD(MUL(major, f->ld), gemm_feed_row(g, f, minor, false));
}

void gemm_feed_init(struct gemm_gen *g, struct gemm_feed *f)
{
	const uint32_t deep = f->s->turn ? f->s->turn : 1;

	for (uint32_t j = 0; j < f->s->steps; j++) {
		const struct step at = step_of(g, f, j);

		for (uint32_t i = 0; i < deep; i++)
			f->at[j * deep + i] = feed_offset(
				g, f, ADD(at.spot.major, at.major + i),
				ADD(at.spot.minor, at.minor));
		if (f->s->stored)
			gemm_scales_init(g, f, j, gemm_feed_row(
				g, f, ADD(at.spot.major, at.major),
				!g->c->even), at.spot.minor);
	}
}

/* The operand from element k of K on. */
static struct val from_k(const struct gemm_feed *f, struct val k)
{
	k = CAST(DSL_I64, f->s->stored == DSL_U8 ? SHR(k, 1) : k);
	return ADVANCE(f->base, f->s->minor_k ? k :
						MUL(k, CAST(DSL_I64, f->ld)));
}

/* Vectors that stay as they are travel as dwords. */
void gemm_feed_load(const struct gemm_feed *f, struct val k,
		    struct gemm_stage *s)
{
	const struct gemm_side *side = f->s;
	const struct val p = from_k(f, k);

	s->n = side->steps * (side->turn ? side->turn : 1);
	for (uint32_t j = 0; j < s->n; j++) {
		const struct val x = LOADV(p, f->at[j], side->vec);

		s->v[j] = side->turn ? x : BITS(DSL_U32, x);
	}
	if (side->stored)
		gemm_scales_load(f, k, s);
}

struct val gemm_lds_at(const struct gemm_gen *g, const struct gemm_place *p,
		       struct val buffer)
{
	return ADVANCE(g->lds, ADD(p->at, buffer));
}

/* Element m of each of the block's loads, side by side. */
static struct val transpose_loads(struct dsl_at at, const struct gemm_stage *s,
				  uint32_t from, uint32_t deep, uint32_t m)
{
	struct val e[16];

	for (uint32_t i = 0; i < deep; i++)
		e[i] = ELEM(s->v[from + i], m);
	return deep == 1 ? e[0] : dsl_join(at, e, deep);
}

void gemm_feed_store(struct gemm_gen *g, const struct gemm_feed *f,
		     const struct gemm_stage *s, struct val buffer)
{
	const struct gemm_side *side = f->s;
	const uint32_t eb = g->p.elem_bytes, deep = side->turn;

	for (uint32_t j = 0; j < side->steps; j++) {
		const struct step at = step_of(g, f, j);

		if (side->stored) {
			gemm_weights_store(g, side, s->v[j],
					   s->v[side->steps + j],
					   at.spot.major, at.major,
					   at.spot.minor, buffer);
			continue;
		}
		for (uint32_t m = 0; m < (deep ? side->vec : 1); m++) {
			const struct gemm_place p = gemm_lds_place_block(
				side, deep ? at.spot.minor : at.spot.major,
				deep ? at.minor + m : at.major,
				deep ? at.spot.major : at.spot.minor, eb);
			const struct val to = gemm_lds_at(g, &p, buffer);

			if (deep)
				STORE(to, p.add + at.major,
				      transpose_loads(DSL_AT, s, j * deep, deep,
						      m));
			else
				STORE(AS(DSL_U32, to), p.add * eb / 4, s->v[j]);
		}
	}
}

/* -------------------------------------------------------------- masked -- */

static struct val load_masked(struct gemm_gen *g, const struct gemm_feed *f,
			      const struct spot *at, struct val k,
			      struct val end)
{
	const struct gemm_side *s = f->s;
	struct val row, from, limit;

	if (s->minor_k) {
		row = gemm_feed_row(g, f, at->major, false);
		from = ADD(k, at->minor);
		limit = SELECT(gemm_feed_has(g, f, at->major), end, 0);
	} else {
		const struct val far = is_halved(g, f) ?
					       far_rows(g, at->minor) :
					       CONST(g->k, DSL_I32, 0);

		row = ADD(k, at->major);
		from = ADD(near_row(g, f, at->minor), far);
		limit = SELECT(LT(row, end), ADD(f->valid, far), 0);
	}
	const struct val p = ADVANCE(f->base, MUL(CAST(DSL_I64, row),
						  CAST(DSL_I64, f->ld)));

	const struct val each = RANGE(from, s->vec);

	return LOAD_IF(LT(each, limit), p, each);
}

void gemm_feed_masked(struct gemm_gen *g, const struct gemm_feed *f,
		      struct val k, struct val end, struct val buffer)
{
	const struct gemm_side *s = f->s;
	const uint32_t loads = s->steps * (s->turn ? s->turn : 1);
	const uint32_t eb = g->p.elem_bytes;

	FOR(g->k, j, 0, CONST(g->k, DSL_I32, loads), 1) {
		const struct spot at = spot_of(g, f, j);

		if (s->stored) {
			struct val loaded, scale;

			gemm_weights_masked(g, f, at.major, at.minor, k, end,
					    &loaded, &scale);
			gemm_weights_store(g, s, loaded, scale, at.major, 0,
					   at.minor, buffer);
			continue;
		}
		const struct val x = load_masked(g, f, &at, k, end);

		for (uint32_t m = 0; m < (s->turn ? s->vec : 1); m++) {
			const struct gemm_place p = gemm_lds_place_block(
				s, s->turn ? at.minor : at.major, m * !!s->turn,
				s->turn ? at.major : at.minor, eb);

			STORE(gemm_lds_at(g, &p, buffer), p.add,
			      s->turn ? ELEM(x, m) : x);
		}
	}
}
