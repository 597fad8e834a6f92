/*
 * engine/state/engram.c - which rows of an Engram's table a token has.
 */
#include "engine/state/state.h"

/* Every bit of x in every bit of what comes out. */
static uint64_t mix_bits(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

void qwen_engram_rows(const struct qwen_config *c,
		      const uint32_t id[QWEN_ORDERS + 1],
		      uint32_t row[QWEN_ORDERS])
{
	uint64_t h = mix_bits(id[0] + 1ull);

	for (uint32_t i = 0; i < QWEN_ORDERS; i++) {
		h = mix_bits(h ^ (id[i + 1] + 1ull) << 32);
		row[i] = i * c->engram.rows + (uint32_t)(h % c->engram.rows);
	}
}
