/*
 * exec-lanes - run a few instruction words on one emulated wave, without a
 * device: registers in, registers out.
 *
 *	struct lanes *t = lanes_new(32);
 *	lanes_set(t, 0, 5);			// v0 = 5 in all lanes
 *	lanes_text(t, "v_add_nc_u32 v3, v0, v1");	// and s_endpgm
 *	is_u64(t->v[0][3][0], ...);		// v3, lane 0
 *
 * EXEC is all ones, MODE the default of code objects for f16/f64 and "keep
 * denormals" for f32; change w.s[] and w.mode before lanes_run().
 */
#ifndef T0_TESTS_EXEC_LANES_H
#define T0_TESTS_EXEC_LANES_H

#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/exec.h"
#include "tests/code.h"
#include "tests/tap.h"

#define LANES_VGPRS 256
#define LANES_CODE_VA 0x10000
#define LANES_MODE (0xf0 | SOFT_MODE_IEEE | SOFT_MODE_DX10_CLAMP)

struct lanes {
	struct soft_wave w;
	struct soft_group group;
	struct soft_env env;
	struct soft_code_cache *code;
	uint32_t text[256];
	uint32_t v[2][LANES_VGPRS][SOFT_LANES];
};

static inline bool lanes_find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct lanes *t = ctx;

	if (va < LANES_CODE_VA || va >= LANES_CODE_VA + sizeof(t->text))
		return false;
	*out = (struct soft_range){ .va = LANES_CODE_VA,
				    .size_bytes = sizeof(t->text),
				    .host = (uint8_t *)t->text,
				    .flags = SOFT_MEM_READ | SOFT_MEM_EXEC };
	return true;
}

static inline struct lanes *lanes_new(int wave_size)
{
	struct lanes *t = aligned_alloc(64, (sizeof(*t) + 63) & ~63ul);

	memset(t, 0, sizeof(*t));
	t->code = soft_code_cache_new();
	t->env = (struct soft_env){ .gen = ISA_GFX11, .ctx = t,
				      .find = lanes_find };
	t->group = (struct soft_group){ .env = &t->env, .code = t->code,
					.wave = &t->w, .n_waves = 1 };
	t->w.group = &t->group;
	t->w.wave_size = wave_size;
	t->w.n_vgprs = LANES_VGPRS;
	t->w.mode = LANES_MODE;
	t->w.v[0] = t->v[0];
	t->w.v[1] = t->v[1];
	t->w.s[ISA_R_EXEC_LO] = ~0u;
	t->w.s[ISA_R_EXEC_HI] = wave_size == 64 ? ~0u : 0;
	return t;
}

static inline void lanes_free(struct lanes *t)
{
	soft_code_cache_free(t->code);
	free(t);
}

static inline void lanes_set(struct lanes *t, int reg, uint32_t value)
{
	for (int h = 0; h < 2; h++)
		for (int i = 0; i < SOFT_LANES; i++)
			t->v[h][reg][i] = value;
}

static inline void lanes_set64(struct lanes *t, int reg, uint64_t value)
{
	lanes_set(t, reg, (uint32_t)value);
	lanes_set(t, reg + 1, (uint32_t)(value >> 32));
}

static inline uint64_t lanes_get64(const struct lanes *t, int reg, int lane)
{
	return (uint64_t)t->v[0][reg + 1][lane] << 32 | t->v[0][reg][lane];
}

/* false, after a diagnostic, unless the wave came to its end. */
static inline bool lanes_run(struct lanes *t, const uint32_t *words, int n)
{
	memcpy(t->text, words, n * sizeof(*words));
	t->text[n] = 0xbfb00000; /* s_endpgm */
	soft_code_cache_reset(t->code);
	t->w.pc = LANES_CODE_VA;
	t->w.state = SOFT_READY;
	t->w.last = (struct soft_range){ 0 };
	soft_wave_run(&t->w, 1000);
	if (t->w.state == SOFT_ENDED)
		return true;
	diag("stopped at 0x%llx: %s", (unsigned long long)t->w.fault.pc,
	     t->w.fault.text);
	return false;
}

static inline bool lanes_text(struct lanes *t, const char *text)
{
	uint32_t code[16];
	size_t n = code_lines(text, t->w.wave_size, code, ARRAY_SIZE(code));

	return lanes_run(t, code, (int)n);
}

/* xorshift64*: the same numbers everywhere for a seed that is not 0. */
static inline uint64_t lanes_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
