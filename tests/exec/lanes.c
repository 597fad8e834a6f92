/*
 * Loads, stores and atomics of all lanes, which lie in all kinds of ways, do
 * as host code (kfd/soft/exec/fast/native_mem.c) or microops what their
 * handlers do, bit for bit: in registers, memory, LDS and scratch, and with
 * the same fault at the same address.  Each instruction first runs so often
 * that the way is learned, or some by turns; then lanes lie in the same way
 * elsewhere, reach over both ends of memory, lie in another way, or only some
 * of them execute.
 *
 * Which ways host code does by itself is said here, too.  T0_SEED chooses other
 * numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/exec/host-code.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	BYTES = 16384, /* of memory and of LDS */
	WARM = 128,
	ROUNDS = 64,
	TIMES = 3, /* in each of them */
	DATA = 10, /* VGPRs; v0, v2 and v3 are addresses */
	DATA_END = 16,
	RESULTS = 30,
	N_REGS = 34,
};

/*
 * What it moves of a lane, 0: it is an atomic operation; from each of its two
 * addresses if `second` is not 0: so far behind the first one is the other.
 */
struct inst {
	const char *text;
	int bytes;
	bool store;
	bool whole; /* text: else operands are to be put in */
	int second;
	bool scratch;
};

/* Data are v10 and up, results v30 and up, addresses v0 or v[2:3]. */
#define INST(text, bytes, store) { text, bytes, store, false, 0, false },
#define WHOLE(text, bytes, store) { text, bytes, store, true, 0, false },
#define TWO(text, bytes, store, second) \
	{ text, bytes, store, true, second, false },
#define SCRATCH(text, bytes, store) { text, bytes, store, true, 0, true },
#define MOVE(name, bytes, store) \
	INST("global_" name, bytes, store) \
	INST("flat_" name, bytes, store) \
	INST("buffer_" name, bytes, store)
#define ATOMICS(ds, global) \
	WHOLE("ds_" ds " v0, v10", 0, true) \
	INST("global_atomic_" global " v10", 0, true) \
	INST("flat_atomic_" global " v10", 0, true)
#define RETURNING(ds, global) \
	WHOLE("ds_" ds " v30, v0, v10", 0, true) \
	INST("global_atomic_" global " v30, v10 glc", 0, true)
static const struct inst insts[] = {
	MOVE("load_b32 v30", 4, false)
	MOVE("load_b64 v[30:31]", 8, false)
	MOVE("load_b96 v[30:32]", 12, false)
	MOVE("load_b128 v[30:33]", 16, false)
	MOVE("load_u8 v30", 1, false)
	MOVE("load_i8 v30", 1, false)
	MOVE("load_u16 v30", 2, false)
	MOVE("load_i16 v30", 2, false)
	MOVE("load_d16_u8 v30", 1, false)
	MOVE("load_d16_i8 v30", 1, false)
	MOVE("load_d16_b16 v30", 2, false)
	MOVE("load_d16_hi_u8 v30", 1, false)
	MOVE("load_d16_hi_i8 v30", 1, false)
	MOVE("load_d16_hi_b16 v30", 2, false)
	MOVE("store_b32 v10", 4, true)
	MOVE("store_b64 v[10:11]", 8, true)
	MOVE("store_b96 v[10:12]", 12, true)
	MOVE("store_b128 v[10:13]", 16, true)
	MOVE("store_b8 v10", 1, true)
	MOVE("store_b16 v10", 2, true)
	MOVE("store_d16_hi_b8 v10", 1, true)
	MOVE("store_d16_hi_b16 v10", 2, true)
	WHOLE("ds_load_b32 v30, v0 offset:8", 4, false)
	WHOLE("ds_load_b64 v[30:31], v0 offset:16", 8, false)
	WHOLE("ds_load_b96 v[30:32], v0", 12, false)
	WHOLE("ds_load_b128 v[30:33], v0 offset:32", 16, false)
	WHOLE("ds_load_u8 v30, v0 offset:3", 1, false)
	WHOLE("ds_load_i8 v30, v0", 1, false)
	WHOLE("ds_load_u16 v30, v0 offset:2", 2, false)
	WHOLE("ds_load_i16 v30, v0", 2, false)
	WHOLE("ds_load_u8_d16 v30, v0", 1, false)
	WHOLE("ds_load_i8_d16_hi v30, v0", 1, false)
	WHOLE("ds_load_u16_d16 v30, v0", 2, false)
	WHOLE("ds_load_u16_d16_hi v30, v0", 2, false)
	TWO("ds_load_2addr_b32 v[30:31], v0 offset1:1", 4, false, 4)
	TWO("ds_load_2addr_b32 v[30:31], v0 offset0:3 offset1:200", 4, false,
	    788)
	TWO("ds_load_2addr_b32 v[30:31], v0 offset0:5 offset1:2", 4, false, -12)
	TWO("ds_load_2addr_b64 v[30:33], v0 offset1:1", 8, false, 8)
	TWO("ds_load_2addr_b64 v[30:33], v0 offset0:9 offset1:2", 8, false, -56)
	TWO("ds_load_2addr_stride64_b32 v[30:31], v0 offset1:2", 4, false, 512)
	WHOLE("ds_store_b32 v0, v10 offset:8", 4, true)
	WHOLE("ds_store_b64 v0, v[10:11]", 8, true)
	WHOLE("ds_store_b128 v0, v[10:13] offset:16", 16, true)
	WHOLE("ds_store_b8 v0, v10", 1, true)
	WHOLE("ds_store_b16 v0, v10", 2, true)
	WHOLE("ds_store_b8_d16_hi v0, v10 offset:1", 1, true)
	WHOLE("ds_store_b16_d16_hi v0, v10", 2, true)
	TWO("ds_store_2addr_b32 v0, v10, v14 offset1:1", 4, true, 4)
	TWO("ds_store_2addr_b32 v0, v10, v14 offset1:64", 4, true, 256)
	TWO("ds_store_2addr_b32 v0, v10, v14 offset0:40 offset1:8", 4, true,
	    -128)
	TWO("ds_store_2addr_b64 v0, v[10:11], v[14:15] offset1:1", 8, true, 8)
	TWO("ds_store_2addr_b64 v0, v[10:11], v[14:15] offset0:70 offset1:1", 8,
	    true, -552)
	SCRATCH("scratch_load_b32 v30, v0, off offset:16", 4, false)
	SCRATCH("scratch_load_b64 v[30:31], v0, s20", 8, false)
	SCRATCH("scratch_load_b96 v[30:32], v0, off", 12, false)
	SCRATCH("scratch_load_b128 v[30:33], v0, s20 offset:32", 16, false)
	SCRATCH("scratch_load_b32 v30, off, s20 offset:16", 4, false)
	SCRATCH("scratch_load_b128 v[30:33], off, off offset:1000", 16, false)
	SCRATCH("scratch_load_u16 v30, v0, off", 2, false)
	SCRATCH("scratch_load_d16_hi_u8 v30, v0, off", 1, false)
	SCRATCH("scratch_store_b32 v0, v10, off offset:16", 4, true)
	SCRATCH("scratch_store_b64 v0, v[10:11], s20", 8, true)
	SCRATCH("scratch_store_b128 v0, v[10:13], off", 16, true)
	SCRATCH("scratch_store_b128 off, v[10:13], s20 offset:20", 16, true)
	SCRATCH("scratch_store_b8 v0, v10, off", 1, true)
	SCRATCH("scratch_store_d16_hi_b16 v0, v10, off", 2, true)
	ATOMICS("add_u32", "add_u32")
	ATOMICS("sub_u32", "sub_u32")
	ATOMICS("inc_u32", "inc_u32")
	ATOMICS("dec_u32", "dec_u32")
	ATOMICS("min_i32", "min_i32")
	ATOMICS("max_i32", "max_i32")
	ATOMICS("min_u32", "min_u32")
	ATOMICS("max_u32", "max_u32")
	ATOMICS("and_b32", "and_b32")
	ATOMICS("or_b32", "or_b32")
	ATOMICS("xor_b32", "xor_b32")
	ATOMICS("add_f32", "add_f32")
	ATOMICS("min_f32", "min_f32")
	RETURNING("add_rtn_u32", "add_u32")
	RETURNING("max_rtn_i32", "max_i32")
	RETURNING("storexchg_rtn_b32", "swap_b32")
	RETURNING("add_rtn_f32", "add_f32")
	/* Those of one address, which host code finds at once. */
	WHOLE("global_load_b32 v30, v0, s[2:3] offset:64\n"
	      "global_load_u16 v31, v0, s[2:3] offset:2\n"
	      "global_load_d16_hi_b16 v31, v0, s[2:3] offset:100\n"
	      "global_load_b64 v[32:33], v0, s[2:3] offset:8", 4, false)
	WHOLE("global_load_b128 v[30:33], v[2:3], off offset:48\n"
	      "global_load_b32 v30, v[2:3], off offset:16\n"
	      "global_load_i8 v31, v[2:3], off offset:17", 4, false)
	WHOLE("global_store_b64 v0, v[14:15], s[2:3] offset:80\n"
	      "global_store_b32 v0, v10, s[2:3] offset:8\n"
	      "global_store_b16 v0, v11, s[2:3] offset:10\n"
	      "global_store_b128 v0, v[10:13], s[2:3] offset:32", 4, true)
	WHOLE("global_load_b32 v30, v0, s[2:3] offset:8\n"
	      "global_store_b32 v0, v10, s[2:3] offset:12\n"
	      "global_store_b8 v0, v11, s[2:3] offset:8\n"
	      "global_load_b64 v[31:32], v0, s[2:3] offset:8", 4, true)
	WHOLE("ds_store_b32 v0, v10 offset:8\n"
	      "ds_load_b64 v[30:31], v0 offset:4\n"
	      "ds_store_b16 v0, v11 offset:10\n"
	      "ds_load_u16_d16_hi v30, v0 offset:200\n"
	      "ds_store_b128 v0, v[10:13]\n"
	      "ds_load_b32 v33, v0 offset:8", 4, true)
	WHOLE("flat_load_b32 v30, v[2:3] offset:4\n"
	      "flat_load_b64 v[31:32], v[2:3] offset:8\n"
	      "flat_load_u8 v33, v[2:3]", 4, false)
	/* None: the address is another one then. */
	WHOLE("ds_load_b32 v30, v0 offset:4\nds_load_b32 v0, v0 offset:8\n"
	      "ds_load_b32 v31, v0 offset:12", 0, false)
	WHOLE("ds_rsub_u32 v0, v10", 0, true)
	WHOLE("ds_rsub_rtn_u32 v30, v0, v10 offset:8", 0, true)
};

enum order { LINE, ROWS, MIXED, ANYWHERE };

struct way {
	uint32_t step; /* from lane to lane */
	enum order order;
};

/* Rows are of 16 lanes, and equal. */
static const struct way ways[] = {
	{ 0, LINE },   { 1, LINE },    { 1, ROWS },	 { 2, LINE },
	{ 2, ROWS },   { 4, LINE },    { 4, ROWS },	 { 8, LINE },
	{ 8, ROWS },   { 12, LINE },   { 16, LINE },	 { 16, ROWS },
	{ 20, LINE },  { 32, LINE },   { 32, ROWS },	 { 48, ROWS },
	{ 80, LINE },  { 144, LINE },  { 272, ROWS },	 { 400, LINE },
	{ 4, MIXED },  { 16, MIXED },  { 80, MIXED },	 { 2, ANYWHERE },
	{ 4, ANYWHERE }, { 16, ANYWHERE }, { 64, ANYWHERE },
};

enum { N_WAYS = ARRAY_SIZE(ways) };

/* Where the lanes are, the first one of them in memory at 0. */
static void make_lanes(struct isa_gen_state *g, const struct way *w,
		       uint32_t *at)
{
	for (uint32_t i = 0; i < LANES; i++)
		at[i] = w->order == ROWS     ? i % 16 * w->step :
			w->order == ANYWHERE ? gen_below(g, 32) * w->step :
					       i * w->step;
	for (uint32_t i = LANES - 1; i && w->order == MIXED; i--) {
		const uint32_t k = gen_below(g, i + 1), was = at[i];

		at[i] = at[k];
		at[k] = was;
	}
	if (w->order == ANYWHERE)
		at[gen_below(g, LANES)] = 0;
}

/* Are lanes that lie so surely moved by host code? */
static bool is_for_host_code(const struct inst *i, const uint32_t *at)
{
	if (!i->bytes || (i->store && i->bytes == 12))
		return false;
	for (int k = 1; i->scratch && strstr(i->text, "v0") && k < LANES; k++)
		if (at[k] != at[0])
			return false;
	/* A lane stores to both of its places before the next one does. */
	for (int k = 0; k < LANES * LANES; k++) {
		const int one = k % LANES, other = k / LANES;
		const int apart = (int)(at[one] - at[other]) - i->second;

		if (one != other && i->second && i->second != i->bytes &&
		    i->store && abs(apart) < i->bytes)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------ setting ---- */

/* An atomic's operands: its old values' register, address, data. */
static void make_atomic(char *out, size_t size, const char *text)
{
	const int name = (int)strcspn(text, " ");
	const bool returns = strstr(text, "v30"), flat = *text == 'f';

	snprintf(out, size, "%.*s %s%s, v10%s offset:%d%s", name, text,
		 returns ? "v30, " : "", flat ? "v[2:3]" : "v0",
		 flat ? "" : ", s[2:3]", 16, returns ? " glc" : "");
}

static void make_text(char *out, size_t size, const struct inst *i, int form)
{
	const char *rest = i->text, *at;

	if (i->whole) {
		snprintf(out, size, "%s", rest);
		return;
	}
	at = strchr(rest, ' ');
	if (!strncmp(rest, "buffer", 6))
		snprintf(out, size,
			 "%s, v0, s[8:11], %s offen offset:%d\n"
			 "s_xor_b32 s11, s11, s12\ns_xor_b32 s9, s9, s13",
			 rest, form ? "s20" : "0", 8 * form);
	else if (strstr(rest, "atomic"))
		make_atomic(out, size, rest);
	else if (!strncmp(rest, "flat", 4) || form)
		snprintf(out, size,
			 i->store ? "%.*s v[2:3], %s%s offset:%d" :
				    "%.*s %s, v[2:3]%s offset:%d",
			 (int)(at - rest), rest, at + 1,
			 *rest == 'f' ? "" : ", off", 16);
	else
		snprintf(out, size,
			 i->store ? "%.*s v0, %s, s[2:3] offset:4" :
				    "%.*s %s, v0, s[2:3] offset:4",
			 (int)(at - rest), rest, at + 1);
}

/* Moves have two kinds of addresses, or of offsets. */
static int n_forms(const struct inst *i)
{
	return i->whole || !i->bytes ? 1 : 2;
}

/* Any bits, but of floats more that are special. */
static uint32_t random_word(struct isa_gen_state *g)
{
	static const uint32_t special[] = { 0, 1, 0x80000000, 0x807fffff,
					    0x00800000, 0x80c00000, 0x7f800000,
					    0xff800000, 0x7fa00001 };

	return gen_below(g, 4) ? gen_u32(g) :
				 special[gen_below(g, ARRAY_SIZE(special))];
}

/* The same numbers for both; where lanes are is said by off[]. */
static void set_registers(struct isa_gen_state *g, struct bench_machine m[2],
			  const uint32_t *off)
{
	uint32_t(*const v)[LANES] = m[0].v;

	for (int r = DATA; r < N_REGS; r = r + 1 == DATA_END ? RESULTS : r + 1)
		for (int i = 0; i < LANES; i++)
			v[r][i] = random_word(g);
	for (int i = 0; i < LANES; i++) {
		v[0][i] = off[i];
		v[2][i] = X_VA + off[i];
		v[3][i] = 0;
	}
	memcpy(m[1].v, v, N_REGS * sizeof(*v));
}

/*
 * If it is `odd`, buffers are swizzled or bounded in another way every second
 * time, since the code changes their dwords 1 and 3 by s13 and s12.
 */
static void set_scalars(struct isa_gen_state *g, struct soft_wave *as,
			uint32_t exec, bool odd)
{
	static const uint32_t others[] = { 3u << 28, 2u << 28, 1u << 28,
					   1u << 23, 0 };

	as->s[2] = as->s[8] = X_VA;
	as->s[9] = 16u << 16;
	as->s[10] = BYTES;
	as->s[11] = 3u << 28;
	if (odd) {
		as->s[12] = others[gen_below(g, ARRAY_SIZE(others))];
		as->s[13] = gen_below(g, 2) << 30;
	}
	as->s[20] = 24;
	as->s[6] = TIMES;
	as->s[ISA_R_EXEC_LO] = exec;
}

/* Memory and LDS of both, after they were found to differ, too. */
static void fill_memory(struct isa_gen_state *g, struct bench_machine m[2])
{
	for (int i = 0; i < BYTES; i += 4) {
		const uint32_t word[] = { random_word(g), random_word(g),
					  random_word(g) };

		memcpy(m[0].x + i, &word[0], 4);
		memcpy(m[0].lds + i, &word[1], 4);
		memcpy(m[0].scratch + i, &word[2], 4);
	}
	memcpy(m[1].x, m[0].x, BYTES);
	memcpy(m[1].lds, m[0].lds, BYTES);
	memcpy(m[1].scratch, m[0].scratch, BYTES);
}

/* ------------------------------------------------------------- checks ---- */

/* Registers and the fault. */
static bool is_same(const struct bench_machine m[2])
{
	const struct soft_wave *a = &m[0].w, *b = &m[1].w;

	return !memcmp(m[0].v, m[1].v, N_REGS * sizeof(*m[0].v)) &&
	       a->state == b->state &&
	       (a->state != SOFT_FAULTED ||
		(a->fault.kind == b->fault.kind && a->fault.va == b->fault.va &&
		 a->fault.lane == b->fault.lane));
}

/* What was stored stays. */
static bool is_memory_same(const struct bench_machine m[2])
{
	return !memcmp(m[0].x, m[1].x, BYTES) &&
	       !memcmp(m[0].lds, m[1].lds, BYTES) &&
	       !memcmp(m[0].scratch, m[1].scratch, BYTES);
}

static bool run_both(struct isa_gen_state *g, struct bench_machine m[2],
		     const uint32_t *off, uint32_t exec, bool odd)
{
	struct soft_wave as = { .mode = 0x3f0 };

	set_registers(g, m, off);
	set_scalars(g, &as, exec, odd);
	for (int k = 0; k < 2; k++)
		run_code(&m[k], &as);
	return is_same(m);
}

/* What a lane has of scratch is shorter than the rest. */
static void shorten_lanes(const struct inst *i, uint32_t *off, uint32_t bytes)
{
	for (int k = 0; i->scratch && k < LANES; k++)
		off[k] %= bytes;
}

static void place_lanes(uint32_t *off, const uint32_t *at, uint32_t base)
{
	for (uint32_t i = 0; i < LANES; i++)
		off[i] = base + at[i];
}

static uint32_t span_of(const uint32_t *at)
{
	uint32_t most = 0;

	for (int i = 0; i < LANES; i++)
		most = at[i] > most ? at[i] : most;
	return most;
}

/* Where lane 0 is, or what is first of them: well inside. */
static uint32_t choose_base(struct isa_gen_state *g, const uint32_t *at)
{
	return gen_below(g, (BYTES - 2100 - span_of(at)) / 16) * 16;
}

/* Where lanes are in one of the rounds that follow. */
static uint32_t place_oddly(struct isa_gen_state *g, uint32_t *off,
			    const uint32_t *at, int round)
{
	const struct way way = { 4u << gen_below(g, 3), LINE };
	uint32_t line[LANES];
	const uint32_t end = BYTES - span_of(at);

	switch (round % 8) {
	case 0: /* about the end */
		place_lanes(off, at, end - gen_below(g, 72));
		break;
	case 1:
		place_lanes(off, at, end - 4 * gen_below(g, 16));
		break;
	case 2: /* before the beginning, and around 4 GiB */
		place_lanes(off, at, 0 - gen_below(g, 64));
		break;
	case 3:
		make_lanes(g, &way, line);
		place_lanes(off, line, choose_base(g, line));
		break;
	case 4: /* one lane elsewhere */
		place_lanes(off, at, choose_base(g, at));
		off[gen_below(g, LANES)] += 4;
		break;
	case 5:
		place_lanes(off, at, choose_base(g, at));
		return gen_u32(g);
	case 6:
		place_lanes(off, at, choose_base(g, at));
		return gen_u32(g) & 0xffff;
	default:
		place_lanes(off, at, choose_base(g, at) + gen_below(g, 4));
	}
	return ~0u;
}

/* Of a group all ask. */
static unsigned count_moves(const struct inst *i)
{
	unsigned n = 1;

	for (const char *at = i->text; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

/*
 * In n ways by turns.  false: they differ; *share: of rounds that host code did
 * alone.
 */
static bool check_ways(struct isa_gen_state *g, struct bench_machine m[2],
		       const struct inst *i, const char *text,
		       const uint32_t (*at)[LANES], int n, double *share)
{
	struct bench_code code;
	uint32_t off[LANES], exec;
	bool native = false;
	int alone = 0;

	bench_assemble(&code, ISA_GFX11, 32, text, 1);
	for (int k = 0; k < 2; k++)
		bench_load(&m[k], &code);
	for (int round = 0; round < WARM + ROUNDS; round++) {
		const uint32_t *now = at[round % n];

		place_lanes(off, now, choose_base(g, now));
		if (round == WARM)
			native = watch_device(&m[0]);
		n_left = 0;
		shorten_lanes(i, off, BENCH_SCRATCH_BYTES - 128);
		if (!run_both(g, m, off, ~0u, false))
			return false;
		/* The first time it has to ask where memory is. */
		alone += native && n_left <= count_moves(i);
	}
	*share = (double)alone / ROUNDS;
	if (!is_memory_same(m))
		return false;
	for (int round = 0; round < ROUNDS; round++) {
		exec = place_oddly(g, off, at[round / 8 % n], round);
		if (round % 16) /* about its end, too */
			shorten_lanes(i, off, BENCH_SCRATCH_BYTES + 8);
		if (!run_both(g, m, off, exec, round % 3 == 0)) {
			diag("%s: round %d: v0 %x, EXEC %x", text, round,
			     off[0], exec);
			return false;
		}
	}
	return is_memory_same(m);
}

/* Which it ends at from now on. */
static const char *first_line(char *text)
{
	text[strcspn(text, "\n")] = 0;
	return text;
}

/* Of one instruction. */
struct verdict {
	bool same, alone;
};

static void check_some(struct isa_gen_state *g, struct bench_machine m[2],
		       const struct inst *i, const char *text,
		       const struct way *w, int n, struct verdict *v)
{
	uint32_t at[N_WAYS][LANES];
	bool fine, wanted = soft_simd() != &soft_simd_v2;
	double share = 0;

	fill_memory(g, m);
	for (int k = 0; k < n; k++) {
		make_lanes(g, &w[k], at[k]);
		wanted &= is_for_host_code(i, at[k]);
	}
	/* Scratch has as many ways as lanes have bytes: one. */
	wanted &= n == 1 || !i->scratch;
	fine = check_ways(g, m, i, text, (const uint32_t(*)[LANES])at, n,
			  &share);
	v->same &= fine;
	if (fine && (!wanted || share > 0.9))
		return;
	diag("%s: step %u, order %d, %d ways: host code alone %.2f of the time",
	     text, w->step, w->order, n, share);
	v->alone = false;
}

static void check_inst(struct isa_gen_state *g, struct bench_machine m[2],
		       const struct inst *i, int form)
{
	struct verdict v = { true, true };
	char text[320];

	make_text(text, sizeof(text), i, form);
	for (size_t k = 0; k < N_WAYS; k++)
		check_some(g, m, i, text, &ways[k], 1, &v);
	/* By turns: as many as host code knows. */
	for (size_t k = 0; k + SOFT_WAYS <= N_WAYS; k += SOFT_WAYS)
		check_some(g, m, i, text, &ways[k], SOFT_WAYS, &v);
	ok(v.same, "%s: as its handler", first_line(text));
	ok(v.alone, "%s: host code where it should be", text);
}

static bool is_read_only; /* from now on */

static bool find_memory(void *ctx, uint64_t va, struct soft_range *out)
{
	const bool found = bench_find(ctx, va, out);

	if (found && out->va == X_VA && is_read_only)
		out->flags &= ~(uint32_t)SOFT_MEM_WRITE;
	return found;
}

/*
 * A store that is found with loads, in memory that became read only and of
 * which a load just said where it is: it faults, and nothing is written.
 */
static void check_read_only(struct isa_gen_state *g, struct bench_machine m[2])
{
	const char *const text = "global_load_b32 v30, v0, s[2:3]\n"
				 "v_mov_b32 v31, v30\n"
				 "global_load_b32 v32, v0, s[2:3] offset:4\n"
				 "global_store_b32 v0, v10, s[2:3] offset:8";
	uint32_t at[LANES], off[LANES];
	struct bench_code code;
	bool same = true;

	make_lanes(g, &(struct way){ 4, LINE }, at);
	place_lanes(off, at, 1024);
	bench_assemble(&code, ISA_GFX11, 32, text, 1);
	for (int k = 0; k < 2; k++) {
		bench_load(&m[k], &code);
		m[k].env.find = find_memory;
	}
	for (int round = 0; round < WARM; round++)
		same &= run_both(g, m, off, ~0u, false);
	is_read_only = true;
	same &= run_both(g, m, off, ~0u, false);
	is_read_only = false;
	ok(same && is_memory_same(m) && m[0].w.state == SOFT_FAULTED,
	   "a store behind a load, to memory that is read only now, faults");
}

/* Behind these bytes, whole pages, there is nothing: nobody may read there. */
static uint8_t *map_guarded(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + bytes, 4096, PROT_NONE))
		BUG("no memory for %zu bytes", bytes);
	return p;
}

static void guard_machine(struct bench_machine *m)
{
	free(m->x);
	free(m->lds);
	free(m->scratch);
	m->x = map_guarded(BYTES);
	m->lds = m->group.lds = map_guarded(BYTES);
	m->scratch = m->w.scratch = map_guarded(BENCH_SCRATCH_BYTES * LANES);
	m->group.lds_size_bytes = BYTES;
}

static void end_machine(struct bench_machine *m)
{
	munmap(m->x, BYTES + 4096);
	munmap(m->lds, BYTES + 4096);
	munmap(m->scratch, BENCH_SCRATCH_BYTES * LANES + 4096);
	m->x = m->lds = m->scratch = NULL;
	bench_machine_fini(m);
}

int main(void)
{
	const char *seed = getenv("T0_SEED");
	struct isa_gen_state g = { .seed = seed ? strtoull(seed, NULL, 0) :
						  20261128,
				   .gen = ISA_GFX11 };
	struct bench_machine m[2];

	diag("seed %llu", (unsigned long long)g.seed);
	for (int k = 0; k < 2; k++) {
		bench_machine_init(&m[k], BYTES);
		guard_machine(&m[k]);
	}
	m[1].slow = true;
	for (size_t i = 0; i < ARRAY_SIZE(insts); i++)
		for (int form = 0; form < n_forms(&insts[i]); form++)
			check_inst(&g, m, &insts[i], form);
	check_read_only(&g, m);
	for (int k = 0; k < 2; k++)
		end_machine(&m[k]);
	return plan_done();
}
