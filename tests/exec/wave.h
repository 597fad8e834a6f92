/*
 * exec-wave - machine code on waves of the emulator, without a device.
 *
 *	struct bench b;
 *	bench_init(&b, 32, 1);
 *	b.wave[0].s[0] = 40;
 *	bench_text(&b, "s_add_i32 s0, s0, 2");
 *	is_u64(b.wave[0].s[0], 42, "...");
 *	bench_fini(&b);
 *
 * GPU memory: code, then one page of data that may be read and written, at
 * BENCH_DATA, and one that may only be read behind it.  The next addresses are
 * not mapped.
 */
#ifndef T0_TESTS_EXEC_WAVE_H
#define T0_TESTS_EXEC_WAVE_H

#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/exec.h"
#include "tests/code.h"

#define BENCH_CODE UINT64_C(0x7f0000010000)
#define BENCH_DATA UINT64_C(0x7f0000200000)
#define BENCH_PAGE 4096u
#define BENCH_CONST (BENCH_DATA + BENCH_PAGE)
#define BENCH_LDS 65536u
#define BENCH_SCRATCH 1024u /* bytes per lane */
#define BENCH_VGPRS 256
#define BENCH_LDS_VA UINT64_C(0x1000000000000)
#define BENCH_SCRATCH_VA UINT64_C(0x2000000000000)
#define BENCH_WAVES 2

struct bench {
	struct soft_env env;
	struct soft_group group;
	struct soft_wave wave[BENCH_WAVES];
	uint8_t *code; /* [BENCH_PAGE * 4] */
	union {
		uint8_t u8[2 * BENCH_PAGE];
		uint32_t u32[BENCH_PAGE / 2];
		uint64_t u64[BENCH_PAGE / 4];
	} *mem; /* the data page and the constant page */
	uint64_t time;
};

static inline bool bench_find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct bench *b = ctx;

	if (va >= BENCH_CODE && va < BENCH_CODE + 4 * BENCH_PAGE)
		*out = (struct soft_range){ BENCH_CODE, 4 * BENCH_PAGE, b->code,
					    SOFT_MEM_READ | SOFT_MEM_EXEC };
	else if (va >= BENCH_DATA && va < BENCH_CONST)
		*out = (struct soft_range){ BENCH_DATA, BENCH_PAGE, b->mem->u8,
					    SOFT_MEM_READ | SOFT_MEM_WRITE };
	else if (va >= BENCH_CONST && va < BENCH_CONST + BENCH_PAGE)
		*out = (struct soft_range){ BENCH_CONST, BENCH_PAGE,
					    b->mem->u8 + BENCH_PAGE,
					    SOFT_MEM_READ };
	else
		return false;
	return true;
}

static inline uint64_t bench_realtime(void *ctx)
{
	return ((struct bench *)ctx)->time;
}

static inline void bench_wave_init(struct bench *b, struct soft_wave *w,
				   int wave_size, int index)
{
	w->group = &b->group;
	w->pc = BENCH_CODE;
	w->wave_size = wave_size;
	w->n_vgprs = BENCH_VGPRS;
	w->index = index;
	/* Round to nearest, f32 denormals flushed, DX10_CLAMP, IEEE. */
	w->mode = 0x3c0;
	for (int h = 0; h < wave_size / 32; h++) {
		w->v[h] = calloc(BENCH_VGPRS, sizeof(*w->v[h]));
		w->s[ISA_R_EXEC_LO + h] = UINT32_MAX;
	}
	w->scratch = calloc(BENCH_SCRATCH, (size_t)wave_size);
	w->scratch_lane_bytes = BENCH_SCRATCH;
	w->scratch_va = UINT64_C(0x7f1234500000);
}

static inline void bench_init(struct bench *b, int wave_size, int n_waves)
{
	memset(b, 0, sizeof(*b));
	b->env = (struct soft_env){
		.gen = ISA_GFX11, .ctx = b, .find = bench_find, .realtime = bench_realtime,
		.shared_base = BENCH_LDS_VA,
		.shared_limit = BENCH_LDS_VA + UINT32_MAX,
		.private_base = BENCH_SCRATCH_VA,
		.private_limit = BENCH_SCRATCH_VA + UINT32_MAX,
	};
	b->code = calloc(4, BENCH_PAGE);
	b->mem = calloc(1, sizeof(*b->mem));
	b->group.env = &b->env;
	b->group.code = soft_code_cache_new();
	b->group.lds = calloc(1, BENCH_LDS);
	b->group.lds_size_bytes = BENCH_LDS;
	b->group.wave = b->wave;
	b->group.n_waves = n_waves;
	for (int i = 0; i < n_waves; i++)
		bench_wave_init(b, &b->wave[i], wave_size, i);
}

static inline void bench_fini(struct bench *b)
{
	for (int i = 0; i < b->group.n_waves; i++) {
		free(b->wave[i].v[0]);
		free(b->wave[i].v[1]);
		free(b->wave[i].scratch);
	}
	soft_code_cache_free(b->group.code);
	free(b->group.lds);
	free(b->code);
	free(b->mem);
}

/* Put s_endpgm behind the code, and every wave at its beginning. */
static inline void bench_load(struct bench *b, const void *code, size_t bytes)
{
	static const uint32_t endpgm = 0xbfb00000;

	memcpy(b->code, code, bytes);
	memcpy(b->code + bytes, &endpgm, sizeof(endpgm));
	soft_code_cache_reset(b->group.code);
	for (int i = 0; i < b->group.n_waves; i++) {
		b->wave[i].pc = BENCH_CODE;
		b->wave[i].state = SOFT_READY;
	}
}

/* Run all waves to their ends; a barrier opens when all wait or have ended. */
static inline void bench_go(struct bench *b)
{
	bool again = true;

	while (again) {
		again = false;
		for (int i = 0; i < b->group.n_waves; i++)
			soft_wave_run(&b->wave[i], 1000000);
		for (int i = 0; i < b->group.n_waves; i++)
			if (b->wave[i].state == SOFT_AT_BARRIER) {
				b->wave[i].state = SOFT_READY;
				again = true;
			}
	}
}

/* Bytes of which each differs from those around it. */
static inline void pattern_put(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + 1);
}

/* Some of them, from the one at `at` on, little endian. */
static inline uint64_t pattern(unsigned at, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)(uint8_t)((at + (unsigned)i) * 7 + 1) << 8 * i;
	return v;
}

static inline void bench_fill(struct bench *b)
{
	pattern_put(b->mem->u8, sizeof(b->mem->u8));
}

static inline void bench_run(struct bench *b, const uint32_t *code, size_t n)
{
	bench_load(b, code, n * 4);
	bench_go(b);
}

/* The same, of assembly text. */
static inline void bench_load_text(struct bench *b, const char *text)
{
	uint32_t code[64];

	bench_load(b, code,
		   4 * code_lines(text, b->wave[0].wave_size, code,
				  ARRAY_SIZE(code)));
}

static inline void bench_text(struct bench *b, const char *text)
{
	bench_load_text(b, text);
	bench_go(b);
}

#define BENCH_RUN(b, ...)                                        \
	bench_run(b, (const uint32_t[]){ __VA_ARGS__ },          \
		  sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

#endif
