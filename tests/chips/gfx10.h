/*
 * gfx10 - what tests of instructions that gfx10 alone has share: memory of
 * their own, and text as code of a chip.
 */
#ifndef T0_TESTS_GFX10_H
#define T0_TESTS_GFX10_H

#include "tests/exec/lanes.h"

#define MEMORY_VA UINT64_C(0x7f00000000)
static uint32_t memory[1024]; /* at MEMORY_VA */

static inline bool find_memory(void *ctx, uint64_t va, struct soft_range *out)
{
	if (va < MEMORY_VA || va >= MEMORY_VA + sizeof(memory))
		return lanes_find(ctx, va, out);
	*out = (struct soft_range){ .va = MEMORY_VA,
				    .size_bytes = sizeof(memory),
				    .host = (uint8_t *)memory,
				    .flags = SOFT_MEM_READ | SOFT_MEM_WRITE };
	return true;
}

/* Lines, and s_endpgm behind them. */
static inline bool run_lines(struct lanes *t, const char *chip,
			     const char *text)
{
	uint32_t code[64];
	size_t n = code_lines_of(chip, text, t->w.wave_size, code,
				 ARRAY_SIZE(code));
	const uint32_t endpgm = 0xbf810000;

	code[n++] = endpgm;
	return lanes_run(t, code, (int)n);
}

static inline float float_of(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static inline uint32_t bits_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

#endif
