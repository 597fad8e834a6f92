/*
 * kfd/soft/exec/fast/native_runs.c - runs of vector microops to host code.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "kfd/soft/exec/fast/native.h"

/* ---------------------------------------------------------------- rows ---- */

enum check { NONE, NAN_RESULT, ORDERED, LEAST, MOST };

/* What a step names: vregs, then constants. */
enum name { A, B, C, T, U, V, K_FIRST, K_31 = K_FIRST, K_24_BITS, K_ONES,
	    K_SIGN, K_REST, K_END };
static const uint32_t constant[] = { 31, 0xffffff, ~0u, 0x80000000,
				     0x7fffffff };

enum mask { IN = 1, M, N };

enum step_kind { END, PLAIN, MASKED, MAKES, MAKES_IN, JOINS };

struct step {
	uint8_t kind, op, d, s1, s2, imm;
};

#define MOST_STEPS 6

struct row {
	enum check check;
	struct step step[MOST_STEPS + 1]; /* END is the last one */
};

#define NAN		       NAN_RESULT
#define DO(op, d, s1, s2)      DOI(op, d, s1, s2, 0)
#define OP1(op, d, s)	       DOI(op, d, 0, s, 0)
#define OP1I(op, d, s, imm)    DOI(op, d, 0, s, imm)
#define DOI(op, d, s1, s2, imm) { PLAIN, SOFT_HOST_##op, d, s1, s2, imm },
#define IF_IN(op, d, s1, s2)   { MASKED, SOFT_HOST_##op, d, s1, s2, 0 },
#define TEST(op, m, s1, s2, relation) \
	{ MAKES, SOFT_HOST_##op, m, s1, s2, relation },
#define TEST_IN(op, m, s1, s2, relation) \
	{ MAKES_IN, SOFT_HOST_##op, m, s1, s2, relation },
#define EITHER(m, n) { JOINS, 0, m, m, n, 0 },

static const struct row rows[ISA_OP_COUNT] = {
#define N(name, check, ...) [ISA_##name] = { check, { __VA_ARGS__ } },
#include "kfd/soft/exec/fast/native.def"
#undef N
};

/* The signs of floats, which an instruction's modifiers change. */
static const struct row sign_rows[] = {
	[ISA_M_NEG] = { NONE, { DO(XORD, T, B, K_SIGN) } },
	[ISA_M_ABS] = { NONE, { DO(ANDD, T, B, K_REST) } },
	[ISA_M_NEG | ISA_M_ABS] = { NONE, { DO(ORD, T, B, K_SIGN) } },
};

/* A row of a microop that spreads an SGPR has no steps. */
static const struct row spread_row = { NONE, { { END, 0, 0, 0, 0, 0 } } };

static bool has_name(const struct row *r, enum name v)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS && (s->s1 == v || s->s2 == v))
			return true;
	return false;
}

static bool has_result(const struct row *r)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind <= MASKED && s->d == T)
			return true;
	return false;
}

static bool uses_mask(const struct row *r, enum step_kind first,
		      enum step_kind last)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind >= first && s->kind <= last)
			return true;
	return false;
}

/* The row of a microop, NULL: none. */
static const struct row *find_row(const struct soft_microop *m)
{
	const struct soft_simd *simd = &soft_simd_v4;
	const struct isa_inst *in = &m->u->in;
	uint16_t op = m->part == SOFT_PART_Y ? in->op_y : in->op;

	if (m->fn == simd->row->spread)
		return &spread_row;
	if (m->fn == simd->row->signs)
		return &sign_rows[m->imm];
	if (m->fn != simd->ops[op].microop || !rows[op].step[0].kind)
		return NULL;
	return &rows[op];
}

/* Such microops fill a temporary, all of its lanes. */
static bool is_preparation(const struct soft_microop *m)
{
	return m->fn == soft_simd_v4.row->spread ||
	       m->fn == soft_simd_v4.row->signs;
}

static bool writes_exec(const struct soft_microop *m)
{
	if (soft_native_is_scalar(m))
		return soft_native_writes(m, ISA_R_EXEC_LO) ||
		       soft_native_writes(m, ISA_R_EXEC_HI);
	return m->mask_out == ISA_R_EXEC_LO || m->mask_out == ISA_R_EXEC_HI;
}

/* Those whose lanes EXEC chooses. */
static bool obeys_exec(const struct soft_microop *m)
{
	return !is_preparation(m) && !soft_native_is_scalar(m);
}

/* ----------------------------------------------------------- registers ---- */

#define PAIRS  14 /* of zmm, which hold a vreg */
#define PAIR_U 14
#define PAIR_V 15
#define NOWHERE -1

/* Mask registers, of lanes 0 to 15 and 16 to 31. */
enum {
	K_M = 1,	/* and 2 */
	K_IN = 3,	/* and 4 */
	K_EXEC = 5,	/* and 6 */
	K_N = 7,	/* in use for one row of lanes at a time */
	K_OTHER = 0,	/* what no instruction can be masked by */
};

/* Code of one run in the making. */
struct run {
	struct buf *code;
	const uint8_t *temp;
	struct {
		struct soft_host_mem vreg;
		bool used;
		unsigned last; /* microop that needed it */
	} pair[PAIRS];
	unsigned now;
	bool masked;
	int half; /* whose EXEC is in K_EXEC */
	struct buf bail; /* struct bail */
};

/* A jump to be made: to the microop so many behind the run's. */
struct bail {
	size_t jump, skip;
};

static struct soft_host_mem row_of(struct soft_host_mem vreg, int i)
{
	vreg.offset += i * (int32_t)SOFT_VREG_BYTES / 2;
	return vreg;
}

static struct soft_host_mem host_mem_of(const struct run *r, int base,
					uintptr_t at)
{
	if (base == SOFT_BASE_ABSOLUTE)
		return (struct soft_host_mem){
			SOFT_R8, (int32_t)(at - (uintptr_t)r->temp) };
	return (struct soft_host_mem){ base ? SOFT_R9 : SOFT_RAX, (int32_t)at };
}

static int find_pair(const struct run *r, struct soft_host_mem vreg)
{
	for (int i = 0; i < PAIRS; i++)
		if (r->pair[i].used && r->pair[i].vreg.base == vreg.base &&
		    r->pair[i].vreg.offset == vreg.offset)
			return i;
	return NOWHERE;
}

/* One that holds nothing, or what was not needed for longest. */
static int take_pair(struct run *r)
{
	int best = 0;

	for (int i = 0; i < PAIRS; i++)
		if (r->pair[i].last < r->pair[best].last)
			best = i;
	r->pair[best].used = false;
	r->pair[best].last = r->now;
	return best;
}

static void hold_vreg(struct run *r, int pair, struct soft_host_mem vreg)
{
	int old = find_pair(r, vreg);

	if (old != NOWHERE)
		r->pair[old].used = false;
	r->pair[pair].vreg = vreg;
	r->pair[pair].used = true;
	r->pair[pair].last = r->now;
}

static int load_vreg(struct run *r, struct soft_host_mem vreg)
{
	int pair = find_pair(r, vreg);

	if (pair != NOWHERE) {
		r->pair[pair].last = r->now;
		return pair;
	}
	pair = take_pair(r);
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_MOVD, 2 * pair + i, 0, 0,
				 row_of(vreg, i), false, 0);
	hold_vreg(r, pair, vreg);
	return pair;
}

static void store_vreg(struct run *r, int pair, struct soft_host_mem vreg)
{
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_STORED, 2 * pair + i, 0, 0,
				 row_of(vreg, i), false, 0);
}

/* --------------------------------------------------------------- steps ---- */

/* Pairs by their names; of constants, where they are. */
struct names {
	int pair[K_FIRST];
};

static void emit_step(struct run *r, const struct step *s,
		      const struct names *n, int i)
{
	int k = s->kind == MASKED || s->kind == MAKES_IN ? K_IN + i : 0;
	int d = s->kind < MAKES ? 2 * n->pair[s->d] + i :
		s->d == M	? K_M + i :
				  K_N;
	int s1 = 2 * n->pair[s->s1] + i;

	if (s->kind == JOINS)
		soft_host_kor(r->code, K_M + i, K_M + i, K_N);
	else if (s->s2 >= K_FIRST)
		soft_host_op_mem(
			r->code, s->op, d, k, s1,
			(struct soft_host_mem){ SOFT_RIP,
						(s->s2 - K_FIRST) * 4 },
			s->op != SOFT_HOST_BROADCASTD, s->imm);
	else
		soft_host_op(r->code, s->op, d, k, s1, 2 * n->pair[s->s2] + i,
			     s->imm);
}

/* Bit of lanes where a relation holds between zmm a and zmm b: to `k`. */
static void emit_unordered(struct run *r, int k, int a, int b, int exec)
{
	soft_host_op(r->code, SOFT_HOST_CMPPS, k, exec, a, b, 3);
}

static void add_bail(struct run *r, size_t jump, size_t skip)
{
	struct bail b = { jump, skip };

	buf_add(&r->bail, &b, sizeof(b));
}

/* Leave if there is a NaN in lanes that execute: of vregs a and b. */
static void check_ordered(struct run *r, int a, int b, size_t skip)
{
	for (int i = 0; i < 2; i++) {
		int exec = r->masked ? K_EXEC + i : 0;

		emit_unordered(r, i ? K_OTHER : K_N, 2 * a + i, 2 * b + i,
			       exec);
	}
	soft_host_kor(r->code, K_N, K_N, K_OTHER);
	add_bail(r, soft_host_jump_mask(r->code, K_N), skip);
}

/* The same of all lanes of one, in one comparison. */
static void check_nan(struct run *r, int t, size_t skip)
{
	if (r->masked) {
		check_ordered(r, t, t, skip);
		return;
	}
	emit_unordered(r, K_N, 2 * t, 2 * t + 1, 0);
	add_bail(r, soft_host_jump_mask(r->code, K_N), skip);
}

static void check_value(struct run *r, int t, enum name value, size_t skip)
{
	const struct soft_host_mem at = { SOFT_RIP, (value - K_FIRST) * 4 };

	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_CMPD, i ? K_OTHER : K_N,
				 r->masked ? K_EXEC + i : 0, 2 * t + i, at,
				 true, 0);
	soft_host_kor(r->code, K_N, K_N, K_OTHER);
	add_bail(r, soft_host_jump_mask(r->code, K_N), skip);
}

static void emit_check(struct run *r, const struct row *row,
		       const struct names *n, size_t skip)
{
	switch (row->check) {
	case NONE:
		break;
	case NAN_RESULT:
		check_nan(r, n->pair[T], skip);
		break;
	case ORDERED:
		check_ordered(r, n->pair[A], n->pair[B], skip);
		if (has_name(row, C))
			check_ordered(r, n->pair[C], n->pair[C], skip);
		break;
	case LEAST:
		check_value(r, n->pair[T], K_SIGN, skip);
		break;
	case MOST:
		check_value(r, n->pair[T], K_ONES, skip);
	}
}

/* ------------------------------------------------------------ microops ---- */

/* 32 lanes of an SGPR of masks to k and k + 1. */
static void load_mask(struct run *r, int k, int reg)
{
	struct soft_host_mem m = soft_host_sgpr(reg);

	soft_host_kload16(r->code, k, m);
	m.offset += 2;
	soft_host_kload16(r->code, k + 1, m);
}

static void load_exec(struct run *r, int half)
{
	if (r->masked && r->half != half)
		load_mask(r, K_EXEC, ISA_R_EXEC_LO + half);
	r->half = half;
}

/* The result to its vreg, which is then in registers. */
static void put_result(struct run *r, int t, struct soft_host_mem vreg)
{
	if (r->masked) {
		int old = load_vreg(r, vreg);

		for (int i = 0; i < 2; i++)
			soft_host_op(r->code, SOFT_HOST_MOVD, 2 * old + i,
				     K_EXEC + i, 0, 2 * t + i, 0);
		t = old;
	}
	store_vreg(r, t, vreg);
	hold_vreg(r, t, vreg);
}

static void load_sources(struct run *r, const struct soft_microop *m,
			 const struct row *row, struct names *n)
{
	const uintptr_t at[] = { m->a, m->b, m->c };
	const uint8_t base[] = { m->ka, m->kb, m->kc };

	for (int i = A; i <= C; i++)
		n->pair[i] =
			has_name(row, i) ?
				load_vreg(r, host_mem_of(r, base[i], at[i])) :
				0;
}

/* SGPR imm, or the vreg of b with other signs, to the temporary at a. */
static void emit_preparation(struct run *r, const struct soft_microop *m,
			     const struct row *row)
{
	struct soft_host_mem to = host_mem_of(r, SOFT_BASE_ABSOLUTE, m->a);
	struct names n = { { 0 } };

	if (row != &spread_row)
		n.pair[B] = load_vreg(r, host_mem_of(r, m->kb, m->b));
	n.pair[T] = take_pair(r);
	for (int i = 0; i < 2; i++)
		if (row == &spread_row)
			soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD,
					 2 * n.pair[T] + i, 0, 0,
					 soft_host_sgpr((int)m->imm), false, 0);
		else
			emit_step(r, row->step, &n, i);
	store_vreg(r, n.pair[T], to);
	hold_vreg(r, n.pair[T], to);
}

/* `skip`: where the microop is, counted from the run's. */
static void emit_row(struct run *r, const struct soft_microop *m,
		     const struct row *row, size_t skip)
{
	bool result = has_result(row);
	struct names n = { { 0 } };

	load_exec(r, m->half);
	load_sources(r, m, row, &n);
	if (uses_mask(row, MASKED, MASKED) || uses_mask(row, MAKES_IN, MAKES_IN))
		load_mask(r, K_IN, m->mask_in);
	n.pair[T] = result ? take_pair(r) : 0;
	n.pair[U] = PAIR_U;
	n.pair[V] = PAIR_V;
	for (int i = 0; i < 2; i++)
		for (const struct step *s = row->step; s->kind; s++)
			emit_step(r, s, &n, i);
	emit_check(r, row, &n, skip);
	if (uses_mask(row, MAKES, JOINS)) {
		soft_host_kunpack(r->code, K_M, K_M + 1, K_M);
		soft_host_store_mask(r->code, soft_host_sgpr(m->mask_out), K_M,
				     soft_host_sgpr(ISA_R_EXEC_LO + m->half));
	}
	if (result)
		put_result(r, n.pair[T], host_mem_of(r, m->half, m->d));
}

static void emit_microop(struct run *r, const struct soft_microop *m,
			 size_t skip)
{
	r->now++;
	if (soft_native_is_scalar(m))
		soft_native_scalar(r->code, m);
	else if (is_preparation(m))
		emit_preparation(r, m, find_row(m));
	else
		emit_row(r, m, find_row(m), skip);
}

/* ---------------------------------------------------------------- runs ---- */

static size_t count_run(const struct soft_microop *m, size_t n)
{
	size_t i = 0;

	while (i < n && (find_row(&m[i]) || soft_native_is_scalar(&m[i])))
		if (writes_exec(&m[i++]))
			break;
	return i;
}

static void leave_all(struct run *r, size_t n)
{
	const struct bail *b = (const struct bail *)(const void *)r->bail.data;

	soft_host_leave(r->code, n);
	for (size_t i = 0; i < r->bail.len / sizeof(*b); i++) {
		soft_host_here(r->code, b[i].jump);
		soft_host_leave(r->code, b[i].skip);
	}
	buf_fini(&r->bail);
}

/* One body of n microops. */
static void emit_body(struct buf *code, const uint8_t *temp,
		      const struct soft_microop *m, size_t n, bool masked)
{
	struct run r = { .code = code, .temp = temp, .masked = masked,
			 .half = NOWHERE };

	for (size_t i = 0; i < n; i++)
		emit_microop(&r, &m[i], 1 + i);
	leave_all(&r, 1 + n);
}

static void emit_run(struct buf *code, const uint8_t *temp,
		     const struct soft_microop *m, size_t n)
{
	bool half[2] = { false, false };
	size_t other[2] = { 0, 0 };

	for (size_t i = 0; i < n; i++)
		half[m[i].half] |= obeys_exec(&m[i]);
	soft_host_load64(code, SOFT_RAX, (struct soft_host_mem){ SOFT_RDX, 0 });
	soft_host_load64(code, SOFT_R9, (struct soft_host_mem){ SOFT_RDX, 8 });
	soft_host_set64(code, SOFT_R8, (uintptr_t)temp);
	for (int h = 0; h < 2; h++)
		if (half[h])
			other[h] = soft_host_jump_not_ones(
				code, soft_host_sgpr(ISA_R_EXEC_LO + h));
	emit_body(code, temp, m, n, false);
	for (int h = 0; h < 2; h++)
		if (half[h])
			soft_host_here(code, other[h]);
	if (half[0] || half[1])
		emit_body(code, temp, m, n, true);
}

/* --------------------------------------------------------------- pages ---- */

#define PAGES_BYTES ((size_t)256 << 10)
#define PAGE	    ((size_t)4096)
#define LINE	    ((size_t)64)

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

static struct soft_native *add_pages(struct soft_native **pages, size_t bytes)
{
	size_t size = bytes > PAGES_BYTES ? round_up(bytes, PAGE) : PAGES_BYTES;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct soft_native *n;

	if (p == MAP_FAILED)
		return NULL;
	n = xcalloc(1, sizeof(*n));
	*n = (struct soft_native){ .older = *pages, .code = p,
				   .size_bytes = size };
	*pages = n;
	return n;
}

/*
 * Where more code goes: into pages that have none yet, since what is executable
 * stays so.  It begins in its first page where the last one's ended: all at
 * the same offset would meet in the same sets of the caches.
 */
static size_t next_offset(const struct soft_native *n)
{
	return round_up(n->used_bytes, PAGE) + n->used_bytes % PAGE;
}

/* Where the code now is; NULL: the system does not want it. */
static uint8_t *add_code(struct soft_native **pages, const struct buf *code)
{
	struct soft_native *n = *pages;
	size_t at, first;

	if (!n || next_offset(n) + code->len > n->size_bytes)
		n = add_pages(pages, code->len);
	if (!n)
		return NULL;
	at = next_offset(n);
	first = at - at % PAGE;
	memcpy(n->code + at, code->data, code->len);
	n->used_bytes = round_up(at + code->len, LINE);
	if (mprotect(n->code + first, round_up(at + code->len, PAGE) - first,
		     PROT_READ | PROT_EXEC))
		return NULL;
	return n->code + at;
}

void soft_native_free(struct soft_native *n)
{
	while (n) {
		struct soft_native *older = n->older;

		munmap(n->code, n->size_bytes);
		free(n);
		n = older;
	}
}

/* ---------------------------------------------------------------- fuse ---- */

/* With a microop in front of each run, whose `b` is where its code is. */
static void add_runs(struct buf *out, struct buf *code,
		     const struct soft_microop *m, size_t n,
		     const uint8_t *temp)
{
	for (size_t i = 0; i < n;) {
		size_t run = count_run(m + i, n - i);

		if (run >= SOFT_NATIVE_LEAST) {
			struct soft_microop first = { .b = code->len,
						      .u = m[i].u,
						      .left = m[i].left };

			buf_add(out, &first, sizeof(first));
			emit_run(code, temp, m + i, run);
		}
		run = run ? run : 1;
		buf_add(out, m + i, run * sizeof(*m));
		i += run;
	}
}

struct soft_microop *soft_native_fuse(struct soft_code_cache *c,
				      const struct soft_microop *m, size_t n,
				      const uint8_t *temp)
{
	struct buf out = { 0 }, code = { 0 };
	struct soft_microop *all;
	uint8_t *at = NULL;

	if (c->most == SOFT_HOST_CODE && soft_simd() == &soft_simd_v4) {
		buf_add(&code, constant, sizeof(constant));
		add_runs(&out, &code, m, n, temp);
	}
	if (out.len > n * sizeof(*m)) {
		at = add_code(&c->native, &code);
		if (!at)
			soft_code_cache_limit(c, SOFT_MICROOPS);
	}
	if (at) {
		n = out.len / sizeof(*m);
		m = (const struct soft_microop *)(const void *)out.data;
	}
	all = xaligned(64, n * sizeof(*m));
	memcpy(all, m, n * sizeof(*m));
	for (size_t i = 0; i < n; i++)
		if (!all[i].fn)
			all[i].fn = (soft_microop_fn *)(void *)(at + all[i].b);
	buf_fini(&out);
	buf_fini(&code);
	return all;
}
