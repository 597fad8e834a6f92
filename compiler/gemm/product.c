/*
 * compiler/gemm/product.c - a tile's products, and which lane holds which sums.
 */
#include "compiler/gemm/gemm_int.h"

/* ------------------------------------------------------------ matrices -- */

/* A row's 16 elements of K, from slice `slice` on. */
static struct val load_fragment(struct gemm_gen *g, const struct gemm_side *s,
				char role, struct val row, uint32_t more,
				uint32_t slice, struct val buffer)
{
	const uint32_t eb = g->p.elem_bytes, chunk = 16 / eb;
	struct val part[GEMM_FRAG];

	if (!s->chunk_mask) {
		const struct gemm_place p = gemm_lds_place(
			s, row, more, CONST(g->k, DSL_I32, slice * GEMM_FRAG),
			eb);

		return FRAG_FROM(role, LOADV(ADVANCE(g->lds, ADD(p.at, buffer)),
					     p.add, GEMM_FRAG));
	}
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

/* gemm_frag_row() of this lane. */
struct val gemm_lane_row_n(struct gemm_gen *g)
{
	const struct val r = AND(LANE(g->k), 15);

	return OR(OR(AND(SHR(r, 1), 3), SHL(AND(r, 1), 2)), AND(r, 8));
}

/*
 * Columns of C are the rows of the matrix instruction, so that a lane's results
 * lie side by side in C.
 */
static void multiply_matrices(struct gemm_gen *g, struct val buffer,
			      const struct gemm_stage *direct)
{
	const struct gemm_plan *p = &g->p;
	const struct val m = ADD(g->wave_row, AND(LANE(g->k), 15));
	const struct val n = ADD(g->wave_column, gemm_lane_row_n(g));
	struct val a[16], b[16];

	for (uint32_t s = 0; s < p->slices; s++) {
		for (uint32_t i = 0; i < p->frags_m; i++)
			a[i] = load_fragment(g, &p->a, 'B', m, i * GEMM_FRAG, s,
					     buffer);
		for (uint32_t j = 0; j < p->frags_n; j++)
			b[j] = direct ?
				       FRAG_FROM('A',
						 BITS(g->op->in,
						      direct->v[s * p->frags_n +
								j])) :
				       load_fragment(g, &p->b, 'A', n,
						     j * GEMM_FRAG, s, buffer);
		for (uint32_t j = 0; j < p->frags_n; j++)
			for (uint32_t i = 0; i < p->frags_m; i++) {
				struct var acc = g->acc[i * p->frags_n + j];

				SET(acc, WMMA(b[j], a[i], acc));
			}
	}
}

/* ---------------------------------------------------------------- f32 ---- */

static struct val lane_m(struct gemm_gen *g)
{
	return MUL(AND(LANE(g->k), GEMM_LANES_M - 1), GEMM_RUN);
}

static struct val lane_n(struct gemm_gen *g)
{
	return MUL(SHR(LANE(g->k), 3), GEMM_RUN);
}

/* Elements of row k of K that this lane needs: four, and four further on. */
static void row_of_k(struct gemm_gen *g, const struct gemm_side *s, uint32_t k,
		     struct val at, uint32_t apart, uint32_t n, struct val *out)
{
	const struct val p = ADVANCE(g->lds, at);

	for (uint32_t c = 0; c < n; c += GEMM_RUN) {
		const struct val x = LOADV(p, s->first + k * s->pitch +
					      c / GEMM_RUN * apart, GEMM_RUN);

		for (uint32_t j = 0; j < GEMM_RUN; j++)
			out[c + j] = ELEM(x, j);
	}
}

static void multiply_scalars(struct gemm_gen *g, struct val buffer)
{
	const struct gemm_plan *p = &g->p;
	const struct val m = ADD(buffer, ADD(g->wave_row, lane_m(g)));
	const struct val n = ADD(buffer, ADD(g->wave_column, lane_n(g)));
	struct val a[64], b[64];

	for (uint32_t k = 0; k < g->c->k; k++) {
		row_of_k(g, &p->a, k, m, GEMM_LANES_M * GEMM_RUN, p->frags_m,
			 a);
		row_of_k(g, &p->b, k, n, GEMM_LANES_N * GEMM_RUN, p->frags_n,
			 b);
		for (uint32_t i = 0; i < p->frags_m; i++)
			for (uint32_t j = 0; j < p->frags_n; j++) {
				struct var acc = g->acc[i * p->frags_n + j];

				SET(acc, FMA(a[i], b[j], acc));
			}
	}
}

void gemm_product(struct gemm_gen *g, struct val buffer,
		  const struct gemm_stage *b)
{
	if (g->p.wmma)
		multiply_matrices(g, buffer, g->c->b_direct ? b : NULL);
	else
		multiply_scalars(g, buffer);
}

/* ---------------------------------------------------------------- sums -- */

struct val gemm_run_sums(struct gemm_gen *g, uint32_t i, uint32_t c)
{
	const struct gemm_plan *p = &g->p;
	struct val e[GEMM_RUN];

	if (p->wmma) {
		const struct val x =
			FRAG_ELEMS(GET(g->acc[i * p->frags_n + c / 2]));

		for (uint32_t j = 0; j < GEMM_RUN; j++)
			e[j] = ELEM(x, c % 2 * GEMM_RUN + j);
	} else {
		for (uint32_t j = 0; j < GEMM_RUN; j++)
			e[j] = GET(g->acc[i * p->frags_n + c * GEMM_RUN + j]);
	}
	return dsl_join(DSL_AT, e, GEMM_RUN);
}

struct val gemm_run_row(struct gemm_gen *g, uint32_t i)
{
	if (g->p.wmma)
		return ADD(ADD(g->wave_row, AND(LANE(g->k), 15)),
			   i * GEMM_FRAG);
	return ADD(ADD(g->wave_row, lane_m(g)),
		   i / GEMM_RUN * (GEMM_LANES_M * GEMM_RUN) + i % GEMM_RUN);
}

/* Of a pair the columns of C, 16 for every 32 of the tile. */
struct val gemm_run_column(struct gemm_gen *g, uint32_t c)
{
	const bool pair = g->op->epilogue & GEMM_SWIGLU;
	const uint32_t block = c / g->p.runs_16 / (1 + pair);
	const struct val wave = pair ? SHR(g->wave_column, 1) : g->wave_column;

	if (g->p.wmma)
		return ADD(ADD(wave, MUL(SHR(LANE(g->k), 4), GEMM_RUN)),
			   block * GEMM_FRAG + c % 2 * 8);
	return ADD(ADD(wave, lane_n(g)), block * GEMM_FRAG);
}
