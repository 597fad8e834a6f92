/*
 * compiler/gemm/plan.c - shares of the tile: waves, lanes, loads, LDS.
 */
#include "compiler/gemm/gemm_int.h"

#include <string.h>

static bool is_power(uint32_t x)
{
	return x && !(x & (x - 1));
}

/* ------------------------------------------------------------ operands -- */

/* The widest loads that give every work-item the same number of them. */
static bool share_vectors(struct gemm_side *s, uint32_t threads,
			  uint32_t elem_bytes)
{
	for (uint32_t bytes = 16; bytes >= 4; bytes /= 2) {
		const uint32_t vec = bytes / elem_bytes;

		if (!vec || s->minor % vec ||
		    s->major * s->minor / vec % threads)
			continue;
		s->vec = vec;
		s->steps = s->major * s->minor / vec / threads;
		return true;
	}
	return false;
}

/*
 * Blocks of loads that are `vec` wide, and stores `deep` wide: the narrower of
 * the two as wide as can be, then the loads, which are dearer.
 */
static bool share_blocks(struct gemm_side *s, uint32_t threads,
			 uint32_t elem_bytes)
{
	const uint32_t most = 16 / elem_bytes, least = 4 / elem_bytes;
	uint32_t best = 0;

	for (uint32_t deep = most; deep >= least; deep /= 2)
		for (uint32_t vec = most; vec >= least; vec /= 2) {
			const uint32_t low = deep < vec ? deep : vec;

			if (s->major % deep || s->minor % vec ||
			    s->major * s->minor / (deep * vec) % threads ||
			    32 * low + vec <= best)
				continue;
			best = 32 * low + vec;
			s->turn = deep;
			s->vec = vec;
			s->steps = s->major * s->minor / (deep * vec) / threads;
		}
	return best;
}

/*
 * A wave loads whole lines of memory, if the tile has them: the rest of one is
 * fetched once more for the other CU.  Some power of two is possible, for a
 * whole number of waves has all blocks.
 */
static void share_lanes(struct gemm_side *s, uint32_t elem_bytes)
{
	const uint32_t line = 128, deep = s->major / s->turn;
	uint32_t most = line / (s->vec * elem_bytes), best = 0;

	for (uint32_t along = 1; along <= GEMM_WAVE; along *= 2) {
		if (s->minor / s->vec % along || deep % (GEMM_WAVE / along))
			continue;
		if (!best || along <= most)
			best = along;
	}
	s->along = best;
}

static bool plan_side(struct gemm_plan *p, struct gemm_side *s, uint32_t rows,
		      uint32_t k, bool minor_k, enum gemm_lds lds,
		      enum dsl_type stored)
{
	const bool as_is = minor_k == p->wmma;
	const uint32_t row = p->wmma ? k : rows;
	const uint32_t chunks = row * p->elem_bytes / 16;

	*s = (struct gemm_side){ .rows = rows, .minor_k = minor_k,
				 .major = minor_k ? rows : k,
				 .minor = minor_k ? k : rows,
				 .stored = stored, .group = 1 };
	if (stored == DSL_U8)
		s->minor /= 2;
	if (!(as_is ? share_vectors(s, p->threads, stored ? 1 :
							     p->elem_bytes) :
		      share_blocks(s, p->threads, p->elem_bytes)))
		return false;
	if (s->turn)
		share_lanes(s, p->elem_bytes);
	if (s->steps * (stored ? 2 : s->turn ? s->turn : 1) > GEMM_MAX_LOADS)
		return false;
	if (s->turn && p->wmma) {
		s->group = s->vec;
		gemm_lds_pad(p, s, row);
	} else if (lds == GEMM_LDS_SWIZZLE) {
		const uint32_t used = chunks > 8 ? 8 : chunks;

		s->chunk_mask = used - 1;
		s->chunk_shift = used < 8 ? (uint32_t)__builtin_ctz(8 / used) :
					    0;
		s->pitch = row;
	} else {
		gemm_lds_pad(p, s, row);
	}
	return true;
}

/* ---------------------------------------------------------------- tile -- */

static bool share_waves(const struct gemm_config *c, struct gemm_plan *p)
{
	const uint32_t unit_m = p->wmma ? GEMM_FRAG : GEMM_LANES_M * GEMM_RUN;
	const uint32_t unit_n = p->wmma ? GEMM_FRAG : GEMM_LANES_N * GEMM_RUN;

	if (!c->waves_m || !c->waves_n || c->m % c->waves_m ||
	    c->n % c->waves_n)
		return false;
	p->wave_m = c->m / c->waves_m;
	p->wave_n = c->n / c->waves_n;
	p->frags_m = p->wave_m / (p->wmma ? GEMM_FRAG : GEMM_LANES_M);
	p->frags_n = p->wave_n / (p->wmma ? GEMM_FRAG : GEMM_LANES_N);
	p->runs = p->wmma ? 2 * p->frags_n : p->frags_n / GEMM_RUN;
	p->runs_16 = p->wmma ? 2 : 1;
	return p->wave_m && p->wave_n && p->wave_m % unit_m == 0 &&
	       p->wave_n % unit_n == 0;
}

static uint32_t side_elems(const struct gemm_plan *p,
			   const struct gemm_side *s, uint32_t k)
{
	return s->group > 1 ? s->plane * s->group
			    : s->pitch * (p->wmma ? s->rows : k);
}

bool gemm_plan(const struct gemm_op *op, const struct gemm_config *c,
	       struct gemm_plan *p, struct err *e)
{
	const uint32_t unit = op->in == DSL_F32 ? 1 : GEMM_FRAG;

	memset(p, 0, sizeof(*p));
	p->wmma = op->in != DSL_F32;
	p->elem_bytes = op->in == DSL_F32 ? 4 : op->in == DSL_I8 ? 1 : 2;
	p->threads = GEMM_WAVE * c->waves_m * c->waves_n;
	p->slices = c->k / unit;
	p->out_n = op->epilogue & GEMM_SWIGLU ? c->n / 2 : c->n;
	if (!share_waves(c, p))
		return err_set(e, ERR_UNSUPPORTED, "a tile of %ux%u for %ux%u "
			       "waves: each wants a multiple of %ux%u",
			       c->m, c->n, c->waves_m, c->waves_n,
			       p->wmma ? 16 : 32, 16);
	if (!c->k || c->k % (p->wmma ? GEMM_FRAG : 4))
		return err_set(e, ERR_UNSUPPORTED, "a tile of %u in K; wanted "
			       "a multiple of %d", c->k,
			       p->wmma ? GEMM_FRAG : 4);
	if (c->lds == GEMM_LDS_SWIZZLE && (!p->wmma || !is_power(c->k) ||
					   c->k * p->elem_bytes < 32))
		return err_set(e, ERR_UNSUPPORTED, "a swizzle of rows of %u "
			       "bytes; wanted a power of two from 32, not f32",
			       c->k * p->elem_bytes);
	if (op->weights && c->k % GEMM_GROUP)
		return err_set(e, ERR_UNSUPPORTED, "a tile of %u in K of "
			       "integers with scales; wanted a multiple of %d",
			       c->k, GEMM_GROUP);
	if (!plan_side(p, &p->a, c->m, c->k, !op->a_trans, c->lds, DSL_NONE) ||
	    (!c->b_direct && !plan_side(p, &p->b, c->n, c->k, op->b_trans,
					c->lds, op->weights)))
		return err_set(e, ERR_UNSUPPORTED, "a tile of %ux%ux%u is not "
			       "shared out evenly among %u work-items, at most "
			       "%d loads each", c->m, c->n, c->k, p->threads,
			       GEMM_MAX_LOADS);
	p->b.first = side_elems(p, &p->a, c->k);
	p->buffer = p->b.first +
		    (c->b_direct ? 0 : side_elems(p, &p->b, c->k));
	return true;
}
