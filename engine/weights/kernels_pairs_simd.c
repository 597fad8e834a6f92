/*
 * engine/weights/kernels_pairs_simd.c - products of few tokens with weights of
 * bf16, by AVX-512 BF16: inputs are bf16, too.
 *
 * One instruction multiplies 32 weights, as they lie in memory, with as many
 * inputs, and adds pairs of products to 16 sums.  It takes what is smaller than
 * a normal number for 0.
 */
#include "engine/weights/kernels_simd.h"

#if LANES == 16

/* As many as the registers hold, two rows of each. */
#define TOKENS 8
#define PAIRS  32 /* values of a vector */

/* 32 values as they are. */
static inline vf load_pairs(const uint16_t *p)
{
	vf v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The first n of them, and zeros. */
static inline vf load_some(const uint16_t *p, uint32_t n)
{
	return (vf)_mm512_maskz_loadu_epi16((1u << n) - 1, p);
}

static inline vf add_pairs(vf w, vf x, vf sum)
{
	__asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
	return sum;
}

/*
 * Rows `apart` elements apart, nr of them, of a matrix of n columns; nt tokens.
 * Both are constants where it is inlined.  A row's sum has one order, whatever
 * is beside it.
 */
static inline __attribute__((always_inline)) void
sum_rows(const uint16_t *w, size_t apart, uint32_t n, const uint16_t *x,
	 size_t ldx, float *y, size_t ldy, size_t next, bool add, int nr,
	 int nt)
{
	const uint32_t rest = n % PAIRS;
	vf s[2][TOKENS], v[2];
	uint32_t c = 0;

	UNROLL for (int r = 0; r < nr; r++) UNROLL for (int t = 0; t < nt; t++)
		s[r][t] = splat(0);
	for (; c + PAIRS <= n; c += PAIRS) {
		UNROLL for (int r = 0; r < nr; r++)
		{
			prefetch_line(w + r * apart + c);
			v[r] = load_pairs(w + r * apart + c);
		}
		UNROLL for (int t = 0; t < nt; t++)
		{
			vf z = load_pairs(x + t * ldx + c);
			UNROLL for (int r = 0; r < nr; r++)
				s[r][t] = add_pairs(v[r], z, s[r][t]);
		}
	}
	UNROLL for (int r = 0; r < nr && rest; r++)
		UNROLL for (int t = 0; t < nt; t++) s[r][t] =
			add_pairs(load_some(w + r * apart + c, rest),
				  load_some(x + t * ldx + c, rest), s[r][t]);
	UNROLL for (int r = 0; r < nr; r++) UNROLL for (int t = 0; t < nt; t++)
	{
		float *to = y + t * ldy + r * next;
		float sum = sum_lanes(s[r][t]);
		*to = add ? *to + sum : sum;
	}
}

/* Two rows, or the last one of an odd number, which is rare. */
static void multiply_pair(const struct qwen_matrix *m, struct pair p,
			  const uint16_t *x, size_t ldx, uint32_t nt, float *y,
			  size_t ldy, bool add)
{
	const uint16_t *w = (const uint16_t *)m->data + (size_t)p.row * m->cols;
	const size_t apart = (size_t)p.apart * m->cols;

#define SUM(nt) \
	sum_rows(w, apart, m->cols, x, ldx, y + p.row, ldy, p.apart, add, 2, nt)
	if (p.apart && nt == 8)
		SUM(8);
	else if (p.apart && nt == 4)
		SUM(4);
	else if (p.apart && nt == 2)
		SUM(2);
	else if (p.apart)
		SUM(1);
	else
		for (uint32_t t = 0; t < nt; t++)
			sum_rows(w, 0, m->cols, x + t * ldx, ldx,
				 y + p.row + t * ldy, ldy, 0, add, 1, 1);
}

void SIMD(qwen_product_pairs)(const struct qwen_matrix *w, uint32_t r0,
			      uint32_t r1, const uint16_t *x, size_t ldx,
			      uint32_t n, float *y, size_t ldy, bool add)
{
	struct pair pair[PAIRS_TOGETHER];
	struct pairs p;
	uint32_t some;

	pairs_init(&p, r0, r1, w->cols * sizeof(uint16_t));
	while ((some = pairs_some(&p, pair)))
		for (uint32_t t = 0, nt; t < n; t += nt) {
			for (nt = TOKENS; nt > n - t;)
				nt /= 2;
			for (uint32_t i = 0; i < some; i++)
				multiply_pair(w, pair[i], x + t * ldx, ldx, nt,
					      y + t * ldy, ldy, add);
		}
}

#endif
