/*
 * compiler/gemm/weights.c - B of integers with scales: on the way to LDS they
 * become what the matrix instructions take.
 *
 * An integer is first a number without arithmetic: its bits, its sign turned
 * into an offset, below the exponent of 1024 are the f16 1024 + offset + q.
 * Subtracting is exact then, and multiplying by the scale rounds once.  bf16
 * has no arithmetic of its own: f32, whose product is exact, then rounds.
 */
#include "compiler/gemm/gemm_int.h"

/* What is added to an integer so that it is not negative. */
static int offset_of(enum dsl_type stored)
{
	return stored == DSL_U8 ? 8 : 128;
}

/* Element of K at a byte of a row, as gemm_side_element(). */
static struct val element_at(const struct gemm_side *s, struct val byte)
{
	/* Of a short row there are no elements behind the first 16. */
	if (s->stored != DSL_U8 || s->minor <= 16)
		return byte;
	return ADD(byte, s->vec == 16 ? byte : AND(byte, ~15));
}

/* Group of a byte of a row. */
static struct val group_at(const struct gemm_side *s, struct val byte)
{
	return SHR(byte, s->stored == DSL_U8 ? 4 : 5);
}

/* ------------------------------------------------------------- loading -- */

void gemm_scales_init(struct gemm_gen *g, struct gemm_feed *f, uint32_t j,
		      struct val row, struct val byte)
{
	(void)g;
	f->scale_at[j] = ADD(MUL(row, f->scale_ld), group_at(f->s, byte));
}

void gemm_scales_load(const struct gemm_feed *f, struct val k,
		      struct gemm_stage *s)
{
	const struct val p = ADVANCE(f->scale, SHR(k, 5));

	for (uint32_t j = 0; j < f->s->steps; j++)
		s->v[s->n++] = LOAD(p, f->scale_at[j]);
}

void gemm_weights_masked(struct gemm_gen *g, const struct gemm_feed *f,
			 struct val row, struct val byte, struct val k,
			 struct val end, struct val *loaded, struct val *scale)
{
	const struct gemm_side *s = f->s;
	const struct val in = AND(gemm_feed_has(g, f, row),
				  LT(ADD(k, element_at(s, byte)), end));
	const struct val r = gemm_feed_row(g, f, row, false);
	const struct val at = ADD(s->stored == DSL_U8 ? SHR(k, 1) : k, byte);
	const struct val w = ADVANCE(f->base, MUL(CAST(DSL_I64, r),
						  CAST(DSL_I64, f->ld)));
	const struct val sc = ADVANCE(f->scale,
				      MUL(CAST(DSL_I64, r),
					  CAST(DSL_I64, f->scale_ld)));

	*loaded = BITS(DSL_U32, LOADV_IF(in, w, at, s->vec));
	*scale = LOAD_IF(in, sc, ADD(SHR(k, 5), group_at(s, byte)));
}

/* ---------------------------------------------------------- converting -- */

/* Integers at bits `bit` and `bit` + 16 of x, with their offset, as f16. */
static struct val two_halves(struct val x, uint32_t bit, enum dsl_type stored)
{
	const uint32_t mask = stored == DSL_U8 ? 0x000f000f : 0x00ff00ff;

	x = OR(AND(SHR(x, bit), mask), 0x64006400);
	return PAIRS(SUB, BITS(DSL_F16, x), 1024 + offset_of(stored));
}

/* Four neighbours: of each byte of x the integer at `bit`. */
static void four_f16(struct val x, uint32_t bit, enum dsl_type stored,
		     struct val scale, struct val *out)
{
	const struct val even = PAIRS(MUL, two_halves(x, bit, stored), scale);
	const struct val odd = PAIRS(MUL, two_halves(x, bit + 8, stored),
				     scale);

	for (uint32_t j = 0; j < 4; j++)
		out[j] = ELEM(j % 2 ? odd : even, j / 2);
}

static void four_bf16(struct val x, uint32_t bit, enum dsl_type stored,
		      struct val scale, struct val *out)
{
	const uint32_t mask = stored == DSL_U8 ? 15 : 255;
	const struct val s = CAST(DSL_F32, scale);
	const struct val below = MUL(s, -(double)offset_of(stored));

	for (uint32_t j = 0; j < 4; j++) {
		const struct val q = AND(SHR(x, bit + 8 * j), mask);

		out[j] = CAST(DSL_BF16, FMA(CAST(DSL_F32, q), s, below));
	}
}

/* Neighbours of K that one part of a load holds: `vec` of them. */
static struct val convert_weights(struct gemm_gen *g, const struct gemm_side *s,
				  struct val loaded, struct val scale,
				  uint32_t part)
{
	struct val e[GEMM_FRAG];

	for (uint32_t d = 0; d < s->vec / 4; d++) {
		struct val x = ELEM(loaded, d);

		if (s->stored == DSL_I8)
			x = XOR(x, 0x80808080);
		(g->op->in == DSL_F16 ? four_f16 : four_bf16)(
			x, 4 * part, s->stored, scale, &e[4 * d]);
	}
	return dsl_join(DSL_AT, e, s->vec);
}

void gemm_weights_store(struct gemm_gen *g, const struct gemm_side *s,
			struct val loaded, struct val scale, struct val row,
			uint32_t more, struct val byte, struct val buffer)
{
	const uint32_t eb = g->p.elem_bytes, chunk = 16 / eb;
	const struct val first = element_at(s, byte);

	for (uint32_t part = 0; part <= (s->stored == DSL_U8); part++) {
		const struct val x = convert_weights(g, s, loaded, scale, part);

		for (uint32_t at = 0; at < s->vec; at += chunk) {
			const uint32_t n = s->vec - at < chunk ? s->vec - at :
								 chunk;
			const uint32_t by = part * GEMM_GROUP / 2 + at;
			struct gemm_place p = gemm_lds_place(
				s, row, more,
				s->chunk_mask ? ADD(first, by) : first, eb);
			struct val e[GEMM_FRAG];

			for (uint32_t j = 0; j < n; j++)
				e[j] = ELEM(x, at + j);
			STORE(gemm_lds_at(g, &p, buffer),
			      p.add + (s->chunk_mask ? 0 : by),
			      dsl_join(DSL_AT, e, n));
		}
	}
}
