/* compiler/gemm/product.c - the products of a tile that lies in LDS. */
#include "compiler/gemm/gemm_int.h"

/* ------------------------------------------------------------ matrices -- */

/* A row's 16 elements of K, from slice `slice` on. */
static struct val fragment(struct gemm_gen *g, const struct gemm_side *s,
			   char role, struct val row, uint32_t more,
			   uint32_t slice, struct val buffer)
{
	const uint32_t eb = g->p.elem_bytes, chunk = 16 / eb;
	if (!s->chunk_mask) {
		const struct gemm_place p = gemm_lds_place(
			s, row, more, CONST(g->k, DSL_I32, slice * GEMM_FRAG),
			eb);

		return FRAG_FROM(role, LOADV(ADVANCE(g->lds, ADD(p.at, buffer)),
					     p.add, GEMM_FRAG));
	}
	struct val part[GEMM_FRAG];

	for (uint32_t e = 0; e < GEMM_FRAG; e += chunk) {
		const struct gemm_place p = gemm_lds_place(
			s, row, more,
			CONST(g->k, DSL_I32, slice * GEMM_FRAG + e), eb);

		const struct val x = LOADV(ADVANCE(g->lds, ADD(p.at, buffer)),
					   p.add, chunk);

		for (uint32_t j = 0; j < chunk; j++)
			part[e + j] = ELEM(x, j);
	}
	return FRAG_FROM(role, dsl_join(DSL_AT, part, GEMM_FRAG));
}

static struct val lane_row_n(struct gemm_gen *g)
{
	const struct val r = AND(LANE(g->k), 15);

	return OR(OR(AND(SHR(r, 1), 3), SHL(AND(r, 1), 2)), AND(r, 8));
}

/*
 * Columns of C are the rows of the matrix instruction, so that a lane's results
 * lie side by side in C.
 */
static void matrices(struct gemm_gen *g, struct val buffer)
{
	const struct gemm_plan *p = &g->p;
	const struct val m = ADD(g->wave_row, AND(LANE(g->k), 15));
	const struct val n = ADD(g->wave_column, lane_row_n(g));
	struct val a[16], b[16];

	for (uint32_t s = 0; s < p->slices; s++) {
		for (uint32_t i = 0; i < p->frags_m; i++)
			a[i] = fragment(g, &p->a, 'B', m, i * GEMM_FRAG, s,
					buffer);
		for (uint32_t j = 0; j < p->frags_n; j++)
			b[j] = fragment(g, &p->b, 'A', n, j * GEMM_FRAG, s,
					buffer);
		for (uint32_t j = 0; j < p->frags_n; j++)
			for (uint32_t i = 0; i < p->frags_m; i++) {
				struct var acc = g->acc[i * p->frags_n + j];

				SET(acc, WMMA(b[j], a[i], acc));
			}
	}
}

void gemm_product(struct gemm_gen *g, struct val buffer)
{
	matrices(g, buffer);
}
