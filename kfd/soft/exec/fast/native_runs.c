/*
 * kfd/soft/exec/fast/native_runs.c - runs of microops as functions of the host.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

#define ALL_LANES UINT32_MAX

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
	return !soft_native_is_preparation(m) && !soft_native_is_scalar(m);
}

/* ----------------------------------------------------------------- DPP ---- */

static bool is_dpp(const struct soft_microop *m)
{
	return m->fn == soft_simd()->row->dpp;
}

static bool is_dpp_end(const struct soft_microop *m)
{
	return m->fn == soft_simd()->row->dpp_end;
}

/* What it writes if all lanes execute. */
static uint32_t dpp_lanes(const struct soft_microop *m)
{
	const struct soft_microop_dpp *d = (const struct soft_microop_dpp *)m->d;

	return d->enabled & (d->bound ? ALL_LANES : d->valid);
}

/* Microops of an instruction that begins with DPP; 0: one has no code. */
static size_t count_dpp(const struct soft_microop *m, size_t n, uint32_t mode)
{
	for (size_t i = 1; i < n; i++) {
		if (is_dpp_end(&m[i]))
			return i + 1;
		if (!soft_native_is_row(&m[i], mode) ||
		    (dpp_lanes(m) != ALL_LANES &&
		     soft_native_makes_mask(&m[i], mode)))
			return 0;
	}
	return 0;
}

/* The lanes of the vreg of b, those without a source 0, to the one of a. */
static void emit_dpp(struct soft_native_run *r, const struct soft_microop *m,
		     size_t skip)
{
	const struct soft_microop_dpp *d = (const struct soft_microop_dpp *)m->d;
	const int s = soft_native_load(r, soft_native_vreg(r, m->kb, m->b));
	const int from = soft_native_load(
		r, soft_native_vreg(r, SOFT_BASE_ABSOLUTE, m->c));
	const int t = soft_native_take(r);

	for (int i = 0; i < 2; i++) {
		const int z = 2 * t + i;
		int k = 0;

		if (d->valid != ALL_LANES) {
			soft_host_op(r->code, SOFT_HOST_XORD, z, 0, z, z, 0);
			soft_host_kset16(r->code, SOFT_K_N, d->valid >> 16 * i);
			k = SOFT_K_N;
		}
		soft_host_op(r->code, SOFT_HOST_PERMD, z, k, 2 * from + i,
			     2 * s + i, 0);
	}
	soft_native_store(r, t, soft_native_vreg(r, SOFT_BASE_ABSOLUTE, m->a));
	soft_native_hold(r, t, soft_native_vreg(r, SOFT_BASE_ABSOLUTE, m->a));
	r->first = skip;
	r->lanes = dpp_lanes(m);
	r->masked = r->lanes != ALL_LANES;
}

/* ------------------------------------------------------------- microops ---- */

/* How many of n microops are moves that are found at once; 1: it is alone. */
static size_t count_group(const struct soft_microop *m, size_t n)
{
	size_t i = 1;

	while (i < n && soft_native_moves_next(&m[i - 1]))
		i++;
	return i;
}

/* Whoever goes on behind the first of n may have come from the microop itself;
 * but not within a group. */
static bool is_entered_behind(const struct soft_microop *m, size_t n)
{
	return n > 1 && (soft_native_moves(m) ?
				 !soft_native_moves_next(m) :
				 is_dpp_end(m) || soft_native_crosses_all(m));
}

size_t soft_native_count(const struct soft_microop *m, size_t n, uint32_t mode)
{
	size_t i = 0;

	while (i < n) {
		if (is_dpp(&m[i])) {
			const size_t all = count_dpp(m + i, n - i, mode);

			if (!all)
				break;
			i += all;
		} else if (soft_native_moves(&m[i]) ||
			   soft_native_is_scalar(&m[i]) ||
			   soft_native_is_cross(&m[i]) ||
			   soft_native_is_row(&m[i], mode)) {
			if (writes_exec(&m[i++]))
				break;
		} else {
			break;
		}
	}
	return i;
}

static void reset_mxcsr(struct soft_native_run *r)
{
	soft_host_mxcsr(r->code,
			(struct soft_host_mem){
				SOFT_RDI,
				(int32_t)offsetof(struct soft_wave, mxcsr) });
}

void soft_native_flush(struct soft_native_run *r, bool flush)
{
	if (flush && !r->flush)
		soft_host_mxcsr(r->code,
				soft_native_at(SOFT_NATIVE_MXCSR_FLUSH));
	if (!flush && r->flush)
		reset_mxcsr(r);
	r->flush = flush;
}

void soft_native_bail(struct soft_native_run *r, size_t jump, size_t skip)
{
	struct soft_native_bail b = { jump, skip, r->flush };

	buf_add(&r->bail, &b, sizeof(b));
}

static void emit_microop(struct soft_native_run *r, const struct soft_microop *m,
			 size_t skip)
{
	r->now++;
	soft_native_forget_free(r);
	if (!soft_native_is_row(m, r->mode))
		r->mask = SOFT_NOWHERE;
	if (is_dpp(m)) {
		emit_dpp(r, m, skip);
	} else if (is_dpp_end(m)) {
		r->first = 0;
		r->masked = false;
	} else if (soft_native_moves(m)) {
		soft_native_flush(r, false);
		soft_native_move(r, m, skip);
	} else if (soft_native_is_scalar(m)) {
		soft_native_scalar(r->code, m);
	} else if (soft_native_is_cross(m)) {
		soft_native_cross(r, m);
	} else {
		soft_native_row(r, m, r->first ? r->first : skip);
	}
}

/* --------------------------------------------------------------- bodies ---- */

struct bodies {
	struct soft_code_cache *cache;
	struct soft_code *code;
	const uint8_t *temp;
	const struct soft_microop *m;
	size_t n;
	uint32_t mode;
	struct soft_native_entry *entry; /* [n_entries] */
	size_t n_entries;
};

static void leave_all(struct soft_native_run *r, size_t n)
{
	const struct soft_native_bail *b =
		(const struct soft_native_bail *)(const void *)r->bail.data;

	soft_native_flush(r, false);
	soft_host_leave(r->code, n);
	for (size_t i = 0; i < r->bail.len / sizeof(*b); i++) {
		soft_host_here(r->code, b[i].jump);
		if (b[i].flush)
			reset_mxcsr(r);
		soft_host_leave(r->code, b[i].skip);
	}
	buf_fini(&r->bail);
}

/* Nothing is in registers where the body for some lanes is entered. */
static void forget_all(struct soft_native_run *r)
{
	memset(r->pair, 0, sizeof(r->pair));
	soft_host_reset(r->code);
	r->half = SOFT_NOWHERE;
}

/* Does it leave to the microop there? */
static bool is_for_all(const struct soft_microop *m)
{
	return is_dpp(m) || soft_native_crosses_all(m) ||
	       (soft_native_moves(m) && !soft_native_moves_some(m));
}

static void emit_body(const struct bodies *b, bool masked)
{
	struct soft_native_run r = { .cache = b->cache, .code = b->code,
				     .temp = b->temp, .mode = b->mode,
				     .masked = masked,
				     .half = SOFT_NOWHERE,
				     .mask = SOFT_NOWHERE };
	struct soft_native_entry *e = b->entry;

	soft_host_reset(b->code);
	for (size_t i = 0; i < b->n; i++) {
		const size_t skip = 1 + i + (size_t)(e - b->entry);
		const size_t group = masked ? 1 :
					      count_group(&b->m[i], b->n - i);

		if (masked && is_for_all(&b->m[i])) {
			soft_native_flush(&r, false);
			soft_host_leave(r.code, skip);
			if (is_dpp(&b->m[i]))
				i += count_dpp(b->m + i, b->n - i, b->mode) - 1;
		} else if (group > 1) {
			soft_native_flush(&r, false);
			r.mask = SOFT_NOWHERE;
			soft_native_move_group(&r, &b->m[i], group, skip);
			i += group - 1;
		} else {
			emit_microop(&r, &b->m[i], skip);
		}
		if (!is_entered_behind(&b->m[i], b->n - i))
			continue;
		soft_native_flush(&r, false);
		soft_native_forget_free(&r);
		soft_host_settle(b->code);
		e->label[masked] = b->code->bytes.len;
		r.mask = SOFT_NOWHERE;
		r.plain16 = false;
		if (masked)
			forget_all(&r);
		else
			memcpy(e->pair, r.pair, sizeof(r.pair));
		e++;
	}
	leave_all(&r, 1 + b->n + b->n_entries);
}

/* ----------------------------------------------------------------- runs ---- */

static void set_bases(const struct bodies *b)
{
	soft_host_int64(b->code, SOFT_HOST_MOV, SOFT_RAX,
			(struct soft_host_mem){ SOFT_RDX, 0 });
	soft_host_int64(b->code, SOFT_HOST_MOV, SOFT_R9,
			(struct soft_host_mem){ SOFT_RDX, 8 });
	soft_host_set64(b->code, SOFT_R8, (uintptr_t)b->temp);
}

/* Which halves' EXEC is asked for. */
static void find_halves(const struct bodies *b, bool half[2])
{
	for (size_t i = 0; i < b->n; i++)
		half[b->m[i].half] |= obeys_exec(&b->m[i]);
}

static void jump_if_some(const struct bodies *b, const bool half[2],
			 size_t jump[2])
{
	for (int h = 0; h < 2; h++)
		if (half[h])
			jump[h] = soft_host_jump_not_ones(
				b->code, soft_host_sgpr(ISA_R_EXEC_LO + h));
}

static void jumps_here(const struct bodies *b, const bool half[2],
		       const size_t jump[2])
{
	for (int h = 0; h < 2; h++)
		if (half[h])
			soft_host_here(b->code, jump[h]);
}

/* What the code behind the label expects in registers. */
static void fill_pairs(const struct bodies *b,
		       const struct soft_native_pair *pair)
{
	for (int i = 0; !b->code->ymm && i < 2 * SOFT_NATIVE_PAIRS; i++)
		if (pair[i / 2].used)
			soft_host_op_mem(b->code, SOFT_HOST_MOVD, i, 0, 0,
					 soft_native_half(pair[i / 2].vreg,
							  i % 2), false, 0);
}

/* `at`: where its microop is, counted from the run's first. */
static void emit_entry(const struct bodies *b, struct soft_native_entry *e,
		       const bool half[2], size_t at)
{
	size_t jump[2] = { 0, 0 };

	e->code = b->code->bytes.len;
	soft_host_int64_const(b->code, SOFT_HOST_SUB, SOFT_RSI,
			      (int32_t)(at * sizeof(struct soft_microop)));
	set_bases(b);
	jump_if_some(b, half, jump);
	fill_pairs(b, e->pair);
	soft_host_jump_to(b->code, e->label[0]);
	jumps_here(b, half, jump);
	soft_host_jump_to(b->code, e->label[1]);
}

static struct soft_native_entry *add_entries(struct buf *entries,
					     const struct bodies *b)
{
	const size_t before = entries->len;

	for (size_t i = 0; i + 1 < b->n; i++) {
		struct soft_native_entry e = { .before = i + 1 };

		if (is_entered_behind(&b->m[i], b->n - i))
			buf_add(entries, &e, sizeof(e));
	}
	return (struct soft_native_entry *)(void *)(entries->data + before);
}

void soft_native_emit(struct soft_code_cache *c, struct soft_code *code,
		      const uint8_t *temp, const struct soft_microop *m,
		      size_t n, uint32_t mode, struct buf *entries)
{
	struct bodies b = { .cache = c, .code = code, .temp = temp, .m = m,
			    .n = n, .mode = mode };
	bool half[2] = { false, false };
	size_t jump[2] = { 0, 0 }, before = entries->len;

	b.entry = add_entries(entries, &b);
	b.n_entries = (entries->len - before) / sizeof(*b.entry);
	find_halves(&b, half);
	set_bases(&b);
	jump_if_some(&b, half, jump);
	emit_body(&b, false);
	jumps_here(&b, half, jump);
	if (half[0] || half[1])
		emit_body(&b, true);
	for (size_t i = 0; i < b.n_entries; i++)
		emit_entry(&b, &b.entry[i], half, 1 + b.entry[i].before + i);
}
