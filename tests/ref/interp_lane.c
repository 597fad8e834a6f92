/*
 * Between the lanes of a wave and the waves of a group, in the interpreter.
 */
#include <string.h>

#include "tests/ref/interp_int.h"

static void set_all(struct interp_wave *w, const struct ssa_inst *i, uint64_t v)
{
	INTERP_EACH(lane, w->mask)
		*interp_word(w, i, 0, lane) = v;
}

/* Operand 0 of another lane; what an inactive one gives is 0. */
static uint64_t of_lane(const struct interp_wave *w, const struct ssa_inst *i,
			uint64_t lane)
{
	return w->mask >> lane & 1 ? interp_arg(w, i, 0, lane) : 0;
}

/* Results replace operands only after all were read. */
static void shuffle(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint64_t wrap = w->m->f->wave - 1;
	uint64_t out[INTERP_LANES];

	INTERP_EACH(lane, w->mask)
		out[lane] = of_lane(w, i,
				    i->op == SSA_shuffle_xor ?
					    lane ^ i->imm :
					    interp_arg(w, i, 1, lane) & wrap);
	INTERP_EACH(lane, w->mask)
		*interp_word(w, i, 0, lane) = out[lane];
}

static void ballot(struct interp_wave *w, const struct ssa_inst *i)
{
	uint64_t bits = 0;

	INTERP_EACH(lane, w->mask)
		bits |= interp_arg(w, i, 0, lane) << lane;
	set_all(w, i, bits);
}

/* Combines the active lanes onto `v`. */
static uint64_t combine(const struct interp_wave *w, const struct ssa_inst *i,
			uint64_t v, bool *first)
{
	INTERP_EACH(lane, w->mask) {
		const uint64_t x = interp_arg(w, i, 0, lane);

		v = *first ? x : ssa_eval_rmw(i->sub, i->type, v, x);
		*first = false;
	}
	return v;
}

static void reduce(struct interp_wave *w, const struct ssa_inst *i)
{
	bool first = true;

	set_all(w, i, combine(w, i, 0, &first));
}

static void scan(struct interp_wave *w, const struct ssa_inst *i)
{
	uint64_t v = ssa_rmw_identity(i->sub, i->type);
	bool first = true;

	INTERP_EACH(lane, w->mask) {
		const uint64_t x = interp_arg(w, i, 0, lane);
		const uint64_t with =
			first ? x : ssa_eval_rmw(i->sub, i->type, v, x);

		*interp_word(w, i, 0, lane) = i->imm ? with : v;
		v = with;
		first = false;
	}
}

void interp_lanes(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint64_t first = (uint64_t)__builtin_ctzll(w->mask);
	const uint64_t wrap = w->m->f->wave - 1;

	switch (i->op) {
	case SSA_shuffle:
	case SSA_shuffle_xor:
		shuffle(w, i);
		return;
	case SSA_read_first:
		set_all(w, i, interp_arg(w, i, 0, first));
		return;
	case SSA_read_lane:
		set_all(w, i, of_lane(w, i, interp_arg(w, i, 1, first) & wrap));
		return;
	case SSA_ballot:
		ballot(w, i);
		return;
	case SSA_reduce:
		reduce(w, i);
		return;
	case SSA_scan:
		scan(w, i);
		return;
	default:
		BUG("no lanes in %s", ssa_op_info(i->op)->name);
	}
}

void interp_group_reduce(struct interp_wave *wave, uint32_t n_waves,
			 const struct ssa_inst *i)
{
	bool first = true;
	uint64_t v = 0;

	for (uint32_t k = 0; k < n_waves; k++)
		v = combine(&wave[k], i, v, &first);
	for (uint32_t k = 0; k < n_waves; k++)
		set_all(&wave[k], i, v);
}

/* ------------------------------------------------------------ matrices -- */

enum { N = 16 };

/* Element k of operand a (0: A, 1: B) of row or column r. */
static int64_t whole_element(const struct interp_wave *w,
			     const struct ssa_inst *i, uint32_t a, int r, int k)
{
	const bool is_signed = i->flags & (a ? SSA_SIGNED_B : SSA_SIGNED_A);
	const int bits = i->sub == SSA_WMMA_I32_IU8 ? 8 : 4;
	uint8_t x[N];

	interp_get(w, i->arg[a], (uint64_t)r, x);
	const int v = bits == 8 ? x[k] : x[k / 2] >> k % 2 * 4 & 15;

	return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static float element(const struct interp_wave *w, const struct ssa_inst *i,
		     uint32_t a, int r, int k)
{
	uint16_t x[N];

	interp_get(w, i->arg[a], (uint64_t)r, x);
	return (float)ssa_bits_to_f64(i->arg[a]->type.kind, x[k]);
}

static uint64_t dot_whole(const struct interp_wave *w, const struct ssa_inst *i,
			  int row, int column, uint64_t c)
{
	for (int k = 0; k < N; k++)
		c += (uint64_t)(whole_element(w, i, 0, row, k) *
				whole_element(w, i, 1, column, k));
	return c & UINT32_MAX;
}

static uint64_t dot_float(const struct interp_wave *w, const struct ssa_inst *i,
			  int row, int column, uint64_t c)
{
	const enum ssa_kind kind = i->type.kind;
	float sum = (float)ssa_bits_to_f64(kind, c);

	for (int k = 0; k < N; k++)
		sum = __builtin_fmaf(element(w, i, 0, row, k),
				     element(w, i, 1, column, k), sum);
	return ssa_f64_to_bits(kind, (double)sum);
}

/* Element j of the result in a lane; 16-bit results keep every second. */
void interp_wmma(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint32_t size = ssa_kind_bits(i->type.kind) / 8;
	const uint32_t step = i->type.n / 8 * size;
	uint8_t out[INTERP_LANES][64];

	INTERP_EACH(lane, w->mask) {
		interp_get(w, i->arg[2], lane, out[lane]);
		for (uint32_t j = 0; j < 8; j++) {
			uint8_t *at = out[lane] + j * step;
			const int row = (int)(2 * j + lane / N);
			const int column = (int)(lane % N);
			uint64_t c = 0;

			memcpy(&c, at, size);
			c = i->type.kind == SSA_I32 ?
				    dot_whole(w, i, row, column, c) :
				    dot_float(w, i, row, column, c);
			memcpy(at, &c, size);
		}
	}
	INTERP_EACH(lane, w->mask)
		interp_put(w, i, lane, out[lane]);
}
