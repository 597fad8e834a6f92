/*
 * Code that changes while a cache has it, in every form: hot loops that get
 * other instructions, lie elsewhere, or are gone.  Behind
 * soft_code_cache_stale() a cache that has seen it all does what a new one
 * does.
 */
#include "tests/exec/wave.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	BODY = 12,    /* instructions of a dword */
	LOOPS = 2,    /* one behind the other */
	TRIPS = 12,   /* at most: code becomes hot in some round */
	ROUNDS = 8000,
	RESULTS = 4,  /* VGPRs */
	PART = BODY + 4, /* dwords of a loop */
};

/* What the body may have; the last is no instruction. */
static const char *const texts[] = {
	"v_add_nc_u32 v1, v1, v4", "v_xor_b32 v2, v1, v2",
	"v_sub_nc_u32 v3, v3, v1", "v_lshlrev_b32 v1, 3, v1",
	"v_max_u32 v0, v0, v3",	   "s_add_u32 s4, s4, s5",
	"v_mov_b32 v2, s4",	   "v_min_i32 v3, v1, v2",
	"s_nop 0",		   "s_icache_inv",
};
enum { TEXTS = ARRAY_SIZE(texts) };

static struct {
	uint8_t *code; /* where it lies now */
	uint64_t size_bytes;
	bool mapped, executable;
} place = { .size_bytes = 4 * BENCH_PAGE };

static bool find_code(void *ctx, uint64_t va, struct soft_range *out)
{
	if (va - BENCH_CODE >= place.size_bytes)
		return bench_find(ctx, va, out);
	*out = (struct soft_range){ BENCH_CODE, place.size_bytes, place.code,
				    SOFT_MEM_READ };
	if (place.executable)
		out->flags |= SOFT_MEM_EXEC;
	return place.mapped;
}

/* Loop i, as often as s6 or s7 says. */
static void write_loop(uint32_t *at, const uint32_t *body, uint32_t i)
{
	static const uint32_t end[] = {
		0x80828102, /* s_sub_u32 s2, s2, 1 */
		0xbf078002, /* s_cmp_lg_u32 s2, 0 */
		0xbfa20000 + (0xffff & (0 - BODY - 3)), /* s_cbranch_scc1 */
	};

	at[0] = 0xbe820006 + i; /* s_mov_b32 s2, s6 or s7 */
	memcpy(at + 1, body, BODY * sizeof(*body));
	memcpy(at + 1 + BODY, end, sizeof(end));
}

static void begin_wave(struct soft_wave *w, const uint32_t trips[LOOPS])
{
	for (uint32_t r = 0; r < 8; r++)
		for (uint32_t i = 0; i < 32; i++)
			w->v[0][r][i] = 7 * r + 1000 * i + 1;
	memset(w->s, 0, sizeof(w->s));
	w->s[ISA_R_EXEC_LO] = UINT32_MAX;
	w->s[5] = 3;
	memcpy(&w->s[6], trips, LOOPS * sizeof(*trips));
	w->n_insts = 0;
	w->pc = BENCH_CODE;
	w->state = SOFT_READY;
	memset(&w->fault, 0, sizeof(w->fault));
}

static bool is_same(const struct soft_wave *x, const struct soft_wave *y)
{
	return x->state == y->state && x->fault.kind == y->fault.kind &&
	       x->fault.pc == y->fault.pc && x->n_insts == y->n_insts &&
	       !memcmp(x->s, y->s, sizeof(x->s)) &&
	       !memcmp(x->v[0], y->v[0], RESULTS * sizeof(*x->v[0]));
}

struct machine {
	struct bench old, new; /* one whose cache stays, one that forgets */
	uint8_t *copies[2];
	uint32_t body[LOOPS][BODY], code[TEXTS];
	struct isa_gen_state g;
};

/* Some instructions become others, but seldom: code has to become hot. */
static void change_code(struct machine *m)
{
	uint32_t n = gen_percent(&m->g, 15) ? 1 + gen_below(&m->g, 3) : 0;

	while (n--)
		m->body[gen_below(&m->g, LOOPS)][gen_below(&m->g, BODY)] =
			gen_percent(&m->g, 3) ?
				0xffffffff :
				m->code[gen_below(&m->g, TEXTS)];
}

static void write_code(const struct machine *m, uint8_t *to)
{
	uint32_t *at = (uint32_t *)(void *)to;

	for (uint32_t i = 0; i < LOOPS; i++)
		write_loop(at + i * PART, m->body[i], i);
	at[LOOPS * PART] = 0xbfb00000; /* s_endpgm */
}

/* Both waves by turns, for an instruction or as far as they go. */
static void run_slices(struct isa_gen_state *g, struct soft_wave *w)
{
	for (int i = 0; w[0].state == SOFT_READY || w[1].state == SOFT_READY;
	     i = !i)
		soft_wave_run(&w[i], gen_percent(g, 50) ? 1 : 100000);
}

static bool run_round(struct machine *m)
{
	const uint32_t trips[LOOPS] = { 1 + gen_below(&m->g, TRIPS),
					1 + gen_below(&m->g, TRIPS) };
	struct soft_wave *old = m->old.wave, *new = m->new.wave;

	change_code(m);
	place.code = m->copies[gen_below(&m->g, 2)];
	place.mapped = gen_percent(&m->g, 99);
	place.executable = gen_percent(&m->g, 99);
	write_code(m, place.code);
	soft_code_cache_stale(m->old.group.code);
	soft_code_cache_reset(m->new.group.code);
	for (int i = 0; i < BENCH_WAVES; i++) {
		begin_wave(&old[i], trips);
		begin_wave(&new[i], trips);
		soft_wave_run(&new[i], 100000);
	}
	if (gen_percent(&m->g, 50)) { /* entered an odd number of times */
		soft_wave_run(&old[0], 1);
		begin_wave(&old[0], trips);
	}
	run_slices(&m->g, old);
	return is_same(&old[0], &new[0]) && is_same(&old[1], &new[1]);
}

static void test_form(const char *name, enum soft_form form)
{
	struct machine m = { .g = { .seed = 20261128, .gen = ISA_GFX11 } };
	uint64_t good = 0, ended = 0;

	bench_init(&m.old, 32, BENCH_WAVES);
	bench_init(&m.new, 32, BENCH_WAVES);
	m.old.env.find = m.new.env.find = find_code;
	soft_code_cache_limit(m.old.group.code, form);
	soft_code_cache_limit(m.new.group.code, SOFT_HANDLERS);
	for (int i = 0; i < 2; i++)
		m.copies[i] = calloc(4, BENCH_PAGE);
	for (size_t i = 0; i < TEXTS; i++)
		is_u64(code_lines(texts[i], 32, &m.code[i], 1), 1, "%s",
		       texts[i]);
	for (int i = 0; i < LOOPS * BODY; i++)
		m.body[i / BODY][i % BODY] = m.code[i % (TEXTS - 1)];
	for (int i = 0; i < ROUNDS; i++) {
		good += run_round(&m);
		ended += m.old.wave[0].state == SOFT_ENDED;
	}
	is_u64(good, ROUNDS, "%s: what changed is seen", name);
	ok(ended > ROUNDS / 4, "%s: many come to the end", name);
	for (int i = 0; i < 2; i++)
		free(m.copies[i]);
	bench_fini(&m.old);
	bench_fini(&m.new);
}

/* More code than a cache keeps, twice. */
static void test_long(void)
{
	enum { ADDS = 100000 };
	static const uint32_t end[] = {
		0x80828102, /* s_sub_u32 s2, s2, 1 */
		0xbf078002, /* s_cmp_lg_u32 s2, 0 */
		0xbfa10001, /* s_cbranch_scc0: past the jump */
		0xbe804806, /* s_setpc_b64 s[6:7] */
		0xbfb00000, /* s_endpgm */
	};
	uint32_t *code = malloc((ADDS + ARRAY_SIZE(end)) * sizeof(*code));
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	b.env.find = find_code;
	place.code = (uint8_t *)code;
	place.size_bytes = (ADDS + ARRAY_SIZE(end)) * sizeof(*code);
	place.mapped = place.executable = true;
	for (int i = 0; i < ADDS; i++)
		code[i] = 0x80040504; /* s_add_u32 s4, s4, s5 */
	memcpy(code + ADDS, end, sizeof(end));
	w->s[2] = 2;
	w->s[5] = 3;
	w->s[6] = (uint32_t)BENCH_CODE;
	w->s[7] = BENCH_CODE >> 32;
	soft_wave_run(w, 10 * ADDS);
	is_u64(w->state, SOFT_ENDED, "more code than a cache keeps runs");
	is_u64(w->s[4], 2 * 3 * ADDS, "... each instruction twice");
	is_u64(w->n_insts, 2 * (ADDS + 3) + 2, "... and is counted");
	bench_fini(&b);
	free(code);
}

int main(void)
{
	test_form("handlers", SOFT_HANDLERS);
	test_form("microops", SOFT_MICROOPS);
	test_form("host code", SOFT_HOST_CODE);
	test_long();
	return plan_done();
}
