/*
 * compiler/gemm/direct.c - fragments of B that bypass LDS.
 */
#include "compiler/gemm/gemm_int.h"

/* Where this lane's row of fragment j begins. */
void gemm_direct_init(struct gemm_gen *g)
{
	for (uint32_t j = 0; j < g->p.frags_n; j++) {
		const struct val r = ADD(ADD(g->wave_column, j * GEMM_FRAG),
					 gemm_lane_row_n(g));

		g->b.at[j] = MUL(gemm_feed_row(g, &g->b, r, !g->c->even),
				 g->b.ld);
	}
}

void gemm_direct_load(struct gemm_gen *g, struct val k, struct gemm_stage *s)
{
	const struct val p = ADVANCE(g->b.base, k);

	s->n = g->p.slices * g->p.frags_n;
	for (uint32_t i = 0; i < g->p.slices; i++)
		for (uint32_t j = 0; j < g->p.frags_n; j++)
			s->v[i * g->p.frags_n + j] = BITS(
				DSL_U32, LOADV(ADVANCE(p, i * GEMM_FRAG),
					       g->b.at[j], GEMM_FRAG));
}

void gemm_direct_masked(struct gemm_gen *g, struct val k, struct val end,
			struct gemm_stage *s)
{
	s->n = g->p.slices * g->p.frags_n;
	for (uint32_t j = 0; j < g->p.frags_n; j++) {
		const struct val r = ADD(ADD(g->wave_column, j * GEMM_FRAG),
					 gemm_lane_row_n(g));
		const struct val in = gemm_feed_has(g, &g->b, r);
		const struct val row = gemm_feed_row(g, &g->b, r, false);
		const struct val p = ADVANCE(g->b.base,
					     MUL(CAST(DSL_I64, row),
						 CAST(DSL_I64, g->b.ld)));

		for (uint32_t i = 0; i < g->p.slices; i++) {
			const struct val each =
				RANGE(ADD(k, i * GEMM_FRAG), GEMM_FRAG);

			s->v[i * g->p.frags_n + j] = BITS(
				DSL_U32,
				LOAD_IF(AND(LT(each, end), in), p, each));
		}
	}
}
