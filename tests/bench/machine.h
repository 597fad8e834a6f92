/*
 * A GPU in software without a device around it, for benchmarks: one wave on one
 * host thread, a piece of memory, LDS and scratch, and code that was
 * assembled from text.
 *
 * Times are of the thread's CPU clock, whatever else the host does, and the
 * best of many interleaved trials is what counts: noise only ever adds.
 */
#ifndef T0_TESTS_BENCH_MACHINE_H
#define T0_TESTS_BENCH_MACHINE_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "isa/text/text.h"
#include "kfd/soft/exec/exec.h"

enum {
	CODE_VA = 0x10000,
	X_VA = 0x40000000, /* read and write */
	LANES = SOFT_LANES,
	BENCH_LDS_BYTES = 65536,
	BENCH_SCRATCH_BYTES = 1024, /* of a lane */
	BENCH_WORDS = 2048,	    /* of code */
};

struct bench_code {
	enum isa_gen gen;
	int wave; /* 32 or 64 */
	uint32_t word[BENCH_WORDS];
	size_t bytes;
	unsigned n_insts;
};

/* What runs on one thread; code and memory may be shared by several. */
struct bench_machine {
	struct soft_env env;
	struct soft_group group;
	struct soft_wave w;
	const struct bench_code *code;
	uint32_t (*v)[SOFT_LANES]; /* [2 * 256]: the upper lanes' last */
	uint8_t *x;		   /* [x_bytes], at X_VA */
	size_t x_bytes;
	uint8_t *lds, *scratch;
	bool slow; /* every instruction by its handler */
};

/* ------------------------------------------------------------- code ---- */

static void bench_line(struct bench_code *c, const char *line)
{
	const struct isa_target t = { c->gen, c->wave, false };
	struct isa_inst in;
	const char *why = isa_parse(&t, line, NULL, NULL, &in);

	if (why)
		BUG("%s: %s", line, why);
	if (c->bytes + ISA_MAX_SIZE_BYTES > sizeof(c->word))
		BUG("a benchmark's code is longer than %d words", BENCH_WORDS);
	c->bytes += (size_t)isa_encode(&in, (uint8_t *)c->word + c->bytes);
	c->n_insts++;
}

/* The lines of the text, `times` times, and all of that s6 times. */
__attribute__((unused)) static void bench_assemble(struct bench_code *c,
						   enum isa_gen gen, int wave,
						   const char *text, int times)
{
	/* s_cbranch_scc1 */
	const uint32_t branch = gen < ISA_GFX11 ? 0xbf850000 : 0xbfa20000;
	uint32_t n;

	c->gen = gen;
	c->wave = wave;
	c->bytes = 0;
	c->n_insts = 0;
	for (int i = 0; i < times; i++) {
		char *copy = xstrdup(text), *at = copy, *line;

		while ((line = strsep(&at, "\n")))
			if (*line)
				bench_line(c, line);
		free(copy);
	}
	bench_line(c, "s_sub_u32 s6, s6, 1");
	bench_line(c, "s_cmp_lg_u32 s6, 0");
	n = (uint32_t)(c->bytes / 4);
	c->word[n] = branch | ((0 - (n + 1)) & 0xffff);
	c->bytes += 4;
	bench_line(c, "s_endpgm");
}

/* ---------------------------------------------------------- machine ---- */

static bool bench_find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct bench_machine *m = ctx;

	if (va >= X_VA && va - X_VA < m->x_bytes)
		*out = (struct soft_range){ X_VA, m->x_bytes, m->x,
					    SOFT_MEM_READ | SOFT_MEM_WRITE };
	else if (va >= CODE_VA && va - CODE_VA < sizeof(m->code->word))
		*out = (struct soft_range){ CODE_VA, sizeof(m->code->word),
					    (uint8_t *)(uintptr_t)m->code->word,
					    SOFT_MEM_READ | SOFT_MEM_EXEC };
	else
		return false;
	return true;
}

static uint64_t bench_clock(void *ctx)
{
	(void)ctx;
	return 0;
}

static void *bench_memory(size_t bytes)
{
	void *p = aligned_alloc(64, bytes);

	if (!p)
		BUG("no memory for %zu bytes", bytes);
	memset(p, 0, bytes);
	return p;
}

static void bench_machine_init(struct bench_machine *m, size_t x_bytes)
{
	memset(m, 0, sizeof(*m));
	m->env.ctx = m;
	m->env.find = bench_find;
	m->env.realtime = bench_clock;
	m->v = bench_memory(2 * 256 * sizeof(*m->v));
	m->x = bench_memory(x_bytes);
	m->x_bytes = x_bytes;
	m->lds = bench_memory(BENCH_LDS_BYTES);
	m->scratch = bench_memory(BENCH_SCRATCH_BYTES * 2 * LANES);
	m->group.env = &m->env;
	m->group.wave = &m->w;
	m->group.n_waves = 1;
	m->group.lds = m->lds;
	m->group.lds_size_bytes = BENCH_LDS_BYTES;
	m->w.group = &m->group;
	m->w.v[0] = m->v;
	m->w.v[1] = m->v + 256;
	m->w.n_vgprs = 256;
	m->w.scratch = m->scratch;
	m->w.scratch_lane_bytes = BENCH_SCRATCH_BYTES;
	/* As compilers set it: nearest even, denormals, IEEE, DX10_CLAMP. */
	m->w.mode = 0x3f0;
}

static void bench_machine_fini(struct bench_machine *m)
{
	soft_code_cache_free(m->group.code);
	free(m->v);
	free(m->x);
	free(m->lds);
	free(m->scratch);
}

/* Of code that has not run here before. */
static void bench_load(struct bench_machine *m, const struct bench_code *c)
{
	soft_code_cache_free(m->group.code);
	m->group.code = soft_code_cache_new();
	if (m->slow)
		soft_code_cache_limit(m->group.code, SOFT_HANDLERS);
	m->code = c;
	m->env.gen = c->gen;
	m->w.wave_size = c->wave;
	m->env.swizzles_scratch = !isa_gen_info(c->gen)->own_scratch;
}

__attribute__((unused)) static void bench_set(struct bench_machine *m, int reg,
					      uint32_t value)
{
	for (int i = 0; i < LANES; i++)
		m->v[reg][i] = m->v[256 + reg][i] = value;
}

/* From the beginning; the caller has set the registers. */
__attribute__((unused)) static void bench_run(struct bench_machine *m,
					      uint32_t loops)
{
	struct soft_wave *w = &m->w;

	w->s[6] = loops;
	w->s[ISA_R_EXEC_LO] = ~0u;
	w->s[ISA_R_EXEC_LO + 1] = w->wave_size == 64 ? ~0u : 0;
	w->pc = CODE_VA;
	w->state = SOFT_READY;
	memset(&w->last, 0, sizeof(w->last));
	while (w->state == SOFT_READY)
		soft_wave_run(w, 4096);
	if (w->state != SOFT_ENDED)
		BUG("the benchmark's wave: %s", w->fault.text);
}

__attribute__((unused)) static uint64_t bench_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
		BUG("no clock of the thread");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
