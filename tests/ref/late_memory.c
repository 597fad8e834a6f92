/*
 * tests/ref/late_memory.c - the late executor: memory operations from issue
 * to the wait that forces them.
 *
 * Addresses and data of stores are taken at issue, as the hardware does before
 * anything later can write those registers.  Memory is touched, and registers
 * written, when a wait forces it; memory earlier only where a later operation
 * of the same wave that is forced meets the same bytes.
 */
#include "tests/ref/late_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tests/ref/memory.h"

/* ------------------------------------------------------------- issue ---- */

bool late_is_memory(const struct isa_inst *in)
{
	switch (in->fmt) {
	case ISA_FMT_SMEM:
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MIMG:
		return true;
	}
	return false;
}

static uint32_t vgpr(const struct late_wave *w, uint32_t reg, int lane)
{
	return w->s.v[lane / 32][reg & 255][lane % 32];
}

static int64_t sign_extend(uint32_t u, int bits)
{
	return (int64_t)((uint64_t)u << (64 - bits)) >> (64 - bits);
}

static uint64_t flat_address(const struct late_wave *w,
			     const struct isa_inst *in, int lane)
{
	const uint32_t *f = in->f;
	const int64_t offset = sign_extend(f[ISA_F_OFFSET] & 0x1fff, 13);
	const uint32_t low = vgpr(w, f[ISA_F_ADDR], lane);
	const bool has_base = f[ISA_F_SADDR] != ISA_R_NULL;

	if (in->fmt == ISA_FMT_SCRATCH)
		return (uint64_t)(offset + (f[ISA_F_SVE] ? low : 0) +
				  (has_base ? w->s.s[f[ISA_F_SADDR]] : 0)) &
		       UINT32_MAX;
	if (in->fmt == ISA_FMT_GLOBAL && has_base)
		return (w->s.s[f[ISA_F_SADDR]] |
			(uint64_t)w->s.s[f[ISA_F_SADDR] + 1] << 32) +
		       low + (uint64_t)offset;
	return (low | (uint64_t)vgpr(w, f[ISA_F_ADDR] + 1, lane) << 32) +
	       (uint64_t)offset;
}

/* Raw buffers (RDNA3 ISA 9.1.5): no stride, no swizzle. */
static bool buffer_address(struct late_wave *w, const struct isa_inst *in,
			   struct late_op *op, int lane)
{
	const uint32_t *f = in->f, *d = &w->s.s[f[ISA_F_SRSRC] * 4];
	const uint64_t base = d[0] | (uint64_t)(d[1] & 0xffff) << 32;
	const uint32_t soffset =
		f[ISA_F_SOFFSET] < 128 ?
			(f[ISA_F_SOFFSET] == ISA_R_NULL ?
				 0 : w->s.s[f[ISA_F_SOFFSET]]) :
			f[ISA_F_SOFFSET] - 128;
	const uint64_t offset = f[ISA_F_OFFSET] +
				(f[ISA_F_OFFEN] ?
					 vgpr(w, f[ISA_F_ADDR], lane) : 0);

	if (f[ISA_F_IDXEN] || d[1] >> 16 & 0x3fff ||
	    f[ISA_F_SOFFSET] > 192)
		return false;
	op->at[lane][0] = base + soffset + offset;
	op->outside[lane] = offset + op->part_bytes > d[2];
	return true;
}

static bool lane_addresses(struct late_wave *w, const struct isa_inst *in,
			   const struct memory_row *row, struct late_op *op,
			   int lane)
{
	const uint32_t *f = in->f;

	if (in->fmt == ISA_FMT_MUBUF)
		return buffer_address(w, in, op, lane);
	if (in->fmt != ISA_FMT_DS) {
		op->at[lane][0] = flat_address(w, in, lane);
		return true;
	}
	/* LDS addresses have 32 bits, and wrap. */
	const uint32_t base = vgpr(w, f[ISA_F_ADDR], lane);

	if (row->kind & PAIR) {
		op->at[lane][0] =
			(uint32_t)(base + f[ISA_F_OFFSET0] * (uint32_t)row->unit);
		op->at[lane][1] =
			(uint32_t)(base + f[ISA_F_OFFSET1] * (uint32_t)row->unit);
	} else {
		op->at[lane][0] =
			(uint32_t)(base + (f[ISA_F_OFFSET0] |
					   f[ISA_F_OFFSET1] << 8));
	}
	return true;
}

/* Stores and atomics: the first operand, then the second one. */
static void take_data(const struct late_wave *w, const struct isa_inst *in,
		      struct late_op *op, int lane)
{
	const bool ds = in->fmt == ISA_FMT_DS, mubuf = in->fmt == ISA_FMT_MUBUF;
	const uint32_t first = in->f[mubuf ? ISA_F_VDATA : ISA_F_DATA0];
	const uint32_t words = (op->part_bytes + 3) / 4;

	for (uint32_t i = 0; i < 2 * words && i < 8; i++)
		op->data[lane][i] =
			vgpr(w, ds && i >= words ?
					in->f[ISA_F_DATA1] + i - words :
					first + i, lane);
}

/* RDNA3 ISA 12.5: lanes change places; the LDS unit does it at once. */
static bool permute_lanes(struct late_wave *w, const struct isa_inst *in,
			  struct late_op *op)
{
	const uint32_t imm = in->f[ISA_F_OFFSET0] | in->f[ISA_F_OFFSET1] << 8;
	const uint32_t addr = in->f[ISA_F_ADDR], data = in->f[ISA_F_DATA0];

	memset(op->data, 0, sizeof(op->data));
	for (int i = 0; i < w->lanes; i++) {
		const int half = i / 32 * 32;
		const int to = half + (int)((vgpr(w, addr, i) + imm) / 4 % 32);
		int from = half;

		if (!(op->exec >> i & 1))
			continue;
		if (in->op == ISA_ds_permute_b32) {
			op->data[to][0] = vgpr(w, data, i);
		} else if (in->op == ISA_ds_bpermute_b32) {
			if (op->exec >> to & 1)
				op->data[i][0] = vgpr(w, data, to);
		} else { /* swizzle: within four, or and, or, xor of five bits */
			if (imm >= 0xc000)
				return false;
			from += imm >= 0x8000 ?
					(i % 32 & ~3) |
						(int)(imm >> 2 * (i & 3) & 3) :
					(((i % 32) & (int)(imm & 31)) |
					 (int)(imm >> 5 & 31)) ^
						(int)(imm >> 10 & 31);
			if (op->exec >> from & 1)
				op->data[i][0] = vgpr(w, addr, from);
		}
	}
	op->performed = op->loads = true;
	return true;
}

static void issue_scalar(struct late_wave *w, const struct isa_inst *in,
			 struct late_op *op)
{
	const uint32_t *f = in->f;
	const uint32_t base = f[ISA_F_SBASE] * 2;
	const int64_t offset = sign_extend(f[ISA_F_OFFSET], 21);

	op->at[0][0] = ((w->s.s[base] | (uint64_t)w->s.s[base + 1] << 32) &
			~UINT64_C(3)) +
		       (uint64_t)(offset & ~INT64_C(3)) +
		       (f[ISA_F_SOFFSET] == ISA_R_NULL ?
				0 : w->s.s[f[ISA_F_SOFFSET]] & ~3u);
	op->part_bytes = (uint32_t)memory_rows[in->op].bytes * 4;
	op->exec = 1;
	op->loads = true;
	op->need = LATE_SMEM;
}

static bool is_permute(const struct isa_inst *in)
{
	return in->op == ISA_ds_permute_b32 || in->op == ISA_ds_bpermute_b32 ||
	       in->op == ISA_ds_swizzle_b32;
}

static bool returns_old(const struct isa_inst *in, const struct memory_row *row)
{
	return in->fmt == ISA_FMT_DS ? row->flags & RTN : in->f[ISA_F_GLC];
}

static bool issue_vector(struct late_wave *w, const struct isa_inst *in,
			 struct late_op *op)
{
	const struct memory_row *row = &memory_rows[in->op];
	const int kind = row->kind & ~PAIR;

	op->exec = w->s.s[ISA_R_EXEC_LO] |
		   (uint64_t)w->s.s[ISA_R_EXEC_HI] << 32;
	if (late_is_image(in))
		return late_issue_image(w, in, op);
	op->n_parts = row->kind & PAIR ? 2 : 1;
	op->part_bytes = (uint32_t)row->bytes;
	op->loads = kind == LOADS || kind == SWAPS ||
		    (kind == ATOMICS && returns_old(in, row));
	op->stores = kind != LOADS;
	op->space = in->fmt == ISA_FMT_DS      ? LATE_SHARED :
		    in->fmt == ISA_FMT_SCRATCH ? LATE_SCRATCH :
						 LATE_MEMORY;
	op->need = in->fmt == ISA_FMT_DS ? LATE_LDS :
		   op->loads		 ? LATE_VM :
					   LATE_VS;
	op->need |= in->fmt == ISA_FMT_FLAT ? LATE_LDS : 0;
	if (is_permute(in))
		return permute_lanes(w, in, op);
	if (kind < LOADS || kind > ATOMICS)
		return false;
	for (int i = 0; i < w->lanes; i++) {
		if (!(op->exec >> i & 1))
			continue;
		if (!lane_addresses(w, in, row, op, i))
			return false;
		if (op->stores)
			take_data(w, in, op, i);
	}
	return true;
}

bool late_issue(struct late_wave *w, const struct isa_inst *in)
{
	struct late_op *op = xcalloc(1, sizeof(*op));
	bool known = true;

	op->in = in;
	if (in->fmt != ISA_FMT_SMEM)
		known = issue_vector(w, in, op);
	else if (memory_rows[in->op].kind == SCALAR &&
		 isa_op_info((enum isa_op)in->op)->opnd[1].type == ISA_T_B64)
		issue_scalar(w, in, op);
	else
		known = false;
	if (!known) {
		free(op);
		return err_set(w->group->grid->e, ERR_UNSUPPORTED,
			       "%s has no reference here",
			       isa_op_info((enum isa_op)in->op)->name);
	}
	VEC_GROW(w->op, w->n_ops, 1, w->cap_ops);
	w->op[w->n_ops++] = op;
	return true;
}

/* ----------------------------------------------------------- perform ---- */

static uint8_t *place_of(struct late_wave *w, const struct late_op *op,
			 int lane, uint64_t at, size_t n)
{
	const struct late_run *r = w->group->grid->run;

	switch (op->space) {
	case LATE_SHARED:
		return at + n <= r->lds_bytes ? w->group->lds + at : NULL;
	case LATE_SCRATCH:
		return at + n <= r->scratch_bytes ?
			       w->scratch + (size_t)lane * r->scratch_bytes +
				       at :
			       NULL;
	}
	return late_bytes(r, at, n);
}

static void touch_bytes(struct late_op *op, int lane, uint32_t part,
			uint8_t *at)
{
	const struct memory_row *row = &memory_rows[op->in->op];
	const uint32_t n = op->part_bytes, word = part * ((n + 3) / 4);
	uint8_t *data = (uint8_t *)&op->data[lane][word];
	const bool ds = op->in->fmt == ISA_FMT_DS;
	uint64_t m = 0, a = 0, b = 0;
	uint8_t old[64];

	if (row->kind == ATOMICS) {
		memcpy(&m, at, n);
		memcpy(&a, data, n);
		memcpy(&b, data + (ds ? (n + 3) / 4 * 4 : n), n);
		a = row->fn(m, a, b);
		memcpy(at, &a, n);
		memcpy(data, &m, n);
		return;
	}
	memcpy(old, at, n);
	if (op->stores)
		memcpy(at, data + (row->half == HIGH ? 2 : 0), n);
	if (op->loads)
		memcpy(data, old, n);
}

/* Lane i of a, and lane k of b. */
static bool share_parts(const struct late_op *a, int i, const struct late_op *b,
			int k)
{
	for (uint32_t p = 0; p < a->n_parts; p++)
		for (uint32_t q = 0; q < b->n_parts; q++)
			if (a->at[i][p] < b->at[k][q] + b->part_bytes &&
			    b->at[k][q] < a->at[i][p] + a->part_bytes)
				return true;
	return false;
}

static bool share_bytes(const struct late_op *a, const struct late_op *b)
{
	for (int i = 0; i < 64; i++)
		for (int k = 0; a->exec >> i & 1 && k < 64; k++) {
			if (!(b->exec >> k & 1) ||
			    (a->space == LATE_SCRATCH && i != k))
				continue;
			if (share_parts(a, i, b, k))
				return true;
		}
	return false;
}

/* Older ones of the wave that meet it, for those come first. */
static bool perform_older(struct late_wave *w, const struct late_op *op)
{
	for (int i = 0; i < w->n_ops && w->op[i] != op; i++) {
		struct late_op *x = w->op[i];

		if (x->performed || x->space != op->space ||
		    x->need & LATE_SMEM || !(x->stores || op->stores) ||
		    !share_bytes(x, op))
			continue;
		if (!late_perform(w, x))
			return false;
	}
	return true;
}

bool late_perform(struct late_wave *w, struct late_op *op)
{
	if (op->performed)
		return true;
	op->performed = true;
	if (!(op->need & LATE_SMEM) && op->in->fmt != ISA_FMT_SMEM &&
	    !perform_older(w, op))
		return false;
	if (op->in->fmt == ISA_FMT_SMEM) {
		/* It may begin inside and end beyond: it cannot fault. */
		for (uint32_t i = 0; i < op->part_bytes; i += 4) {
			const uint8_t *from = late_bytes(
				w->group->grid->run, op->at[0][0] + i, 4);

			if (!from && !i)
				return late_fail(w, "loads from 0x%llx",
						 (unsigned long long)
							 op->at[0][0]);
			if (from)
				memcpy(&op->data[0][i / 4], from, 4);
		}
		return true;
	}
	for (int i = 0; i < 64; i++)
		for (uint32_t p = 0; op->exec >> i & 1 && p < op->n_parts;
		     p++) {
			uint8_t *at;

			if (op->outside[i]) {
				memset(op->data[i], 0, sizeof(op->data[i]));
				continue;
			}
			at = place_of(w, op, i, op->at[i][p], op->part_bytes);
			if (!at)
				return late_fail(w, "%s at 0x%llx",
						 isa_op_info((enum isa_op)op
								     ->in->op)
							 ->name,
						 (unsigned long long)
							 op->at[i][p]);
			touch_bytes(op, i, p, at);
		}
	return true;
}

/* ----------------------------------------------------------- deliver ---- */

static uint32_t extended(const uint32_t *data, const struct memory_row *row)
{
	uint32_t u = data[0];

	if (row->bytes == 1)
		return row->is_signed ? (uint32_t)(int8_t)u : u & 0xff;
	if (row->bytes == 2)
		return row->is_signed ? (uint32_t)(int16_t)u : u & 0xffff;
	return u;
}

static void deliver_lane(struct late_wave *w, const struct late_op *op,
			 uint32_t reg, int lane)
{
	const struct memory_row *row = &memory_rows[op->in->op];
	const uint32_t words = (op->part_bytes + 3) / 4 * op->n_parts;

	for (uint32_t i = 0; i < (words ? words : 1); i++) {
		uint32_t *v =
			&w->s.v[lane / 32][(reg + i) & 255][lane % 32];
		uint32_t u = op->data[lane][i];

		if (row->kind == LOADS && row->bytes < 4)
			u = extended(op->data[lane], row);
		if (row->half == LOW)
			u = (*v & 0xffff0000) | (u & 0xffff);
		else if (row->half == HIGH)
			u = (*v & 0xffff) | u << 16;
		*v = u;
	}
}

static void deliver(struct late_wave *w, const struct late_op *op)
{
	const struct isa_inst *in = op->in;

	if (!op->loads)
		return;
	if (in->fmt == ISA_FMT_SMEM) {
		for (uint32_t i = 0; i < op->part_bytes / 4; i++)
			if (in->f[ISA_F_SDATA] != ISA_R_NULL)
				w->s.s[in->f[ISA_F_SDATA] + i] =
					op->data[0][i];
		return;
	}
	for (int i = 0; i < w->lanes; i++)
		if (!(op->exec >> i & 1))
			continue;
		else if (late_is_image(in))
			late_deliver_image(w, op, i);
		else
			deliver_lane(w, op,
				     in->f[in->fmt == ISA_FMT_MUBUF ?
						   ISA_F_VDATA : ISA_F_VDST],
				     i);
}

/* The counter has covered operation i: it may go, if nothing else holds it. */
static bool cover(struct late_wave *w, int i, unsigned counters)
{
	struct late_op *op = w->op[i];

	op->need &= (uint8_t)~counters;
	if (op->need)
		return true;
	if (!late_perform(w, op))
		return false;
	deliver(w, op);
	free(op);
	memmove(&w->op[i], &w->op[i + 1],
		(size_t)(w->n_ops - i - 1) * sizeof(w->op[0]));
	w->n_ops--;
	return true;
}

/*
 * Which comes first: in order, but scalar loads in any order.  The youngest
 * scalar load comes first, for whoever counts waits for an older one.
 */
static int next_covered(const struct late_wave *w, unsigned counters)
{
	int found = -1;

	for (int i = 0; i < w->n_ops; i++) {
		if (!(w->op[i]->need & counters))
			continue;
		if (w->op[i]->need & LATE_SMEM)
			found = i;
		else if (found < 0)
			found = i;
	}
	return found;
}

bool late_wait(struct late_wave *w, unsigned counters, int n)
{
	int outstanding = 0;

	for (int i = 0; i < w->n_ops; i++)
		outstanding += (w->op[i]->need & counters) != 0;
	for (; outstanding > n; outstanding--)
		if (!cover(w, next_covered(w, counters), counters))
			return false;
	return true;
}
