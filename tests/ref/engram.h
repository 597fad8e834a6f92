/*
 * engram-ref - which rows of an Engram's table a token has, as
 * engine/state/engram.c has published it: for models and for operations.
 */
#ifndef T0_TESTS_ENGRAM_REF_H
#define T0_TESTS_ENGRAM_REF_H

#include <stdint.h>

/* The last step of MurmurHash3. */
static inline uint64_t engram_ref_mix(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/*
 * Row of token `at` of a document that begins `before` tokens earlier: of it
 * and the token before it (order 0), or the two before it (1), of 2 `rows`.
 */
static inline uint32_t engram_ref_row(const uint32_t *at, uint32_t before,
				      int order, uint32_t rows)
{
	uint64_t h = engram_ref_mix((uint64_t)at[0] + 1);

	for (int back = 1; back <= order + 1; back++) {
		uint64_t id = (uint32_t)back <= before ? at[-back] :
							 0xffffffffu;
		h = engram_ref_mix(h ^ (id + 1) << 32);
	}
	return (uint32_t)order * rows + (uint32_t)(h % rows);
}

#endif
