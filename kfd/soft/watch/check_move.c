/*
 * kfd/soft/watch/check_move.c - uninitialised values on their way between
 * registers and memory.
 *
 * LDS and scratch only carry validity, as registers do; what reaches GPU
 * memory is a finding.  A lane's values that were never stored to LDS come
 * back uninitialised from there.
 */
#include "kfd/soft/watch/watch_int.h"

/* Operands with the data of a store or atomic: at most two. */
struct data {
	int reg[2], dwords[2];
};

static struct data data_of(const struct site *s)
{
	const struct isa_inst *in = &s->u.in;
	struct data d = { { -1, -1 }, { 0, 0 } };
	int n = 0;

	for (int i = 0; i < in->n_opnd && n < 2; i++) {
		const struct isa_operand *o = &in->opnd[i];
		const bool data = o->slot == ISA_SLOT_DATA ||
				  o->slot == ISA_SLOT_DATA0 ||
				  o->slot == ISA_SLOT_DATA1 ||
				  o->slot == ISA_SLOT_DATAG ||
				  (s->is_store && s->kind == SITE_BUFFER &&
				   o->reg == in->f[ISA_F_VDATA] && i == 0);

		if (!data || o->kind != ISA_K_VGPR)
			continue;
		d.reg[n] = o->reg;
		d.dwords[n++] = o->dwords;
	}
	return d;
}

static bool lane_valid(const struct actor *a, int reg, int lane)
{
	return reg >= 256 ||
	       a->sw->vgpr[lane / SOFT_LANES][reg] >> lane % SOFT_LANES & 1;
}

static void told_data(struct actor *a, const struct access *x, int reg)
{
	struct shadow_wave *sw = a->sw;

	check_uninit(a, x->lane, "what is stored", &sw->vorigin[reg]);
	sw->vgpr[x->lane / SOFT_LANES][reg] |= 1u << x->lane % SOFT_LANES;
}

/* Is what this lane stores from `reg` on, n registers, initialised? */
static bool stored_valid(struct actor *a, const struct access *x, int reg,
			 int n)
{
	bool valid = true;

	for (int r = reg; r < reg + n; r++) {
		if (lane_valid(a, r, x->lane))
			continue;
		if (x->space == SOFT_SPACE_MEMORY)
			told_data(a, x, r);
		else
			valid = false;
	}
	return valid;
}

/* The same of all that it stores, where nothing is to be told. */
static bool are_valid(const struct actor *a, const struct access *x, int reg)
{
	for (int at = 0; at < x->size_bytes; at += 4)
		if (!lane_valid(a, reg++, x->lane))
			return false;
	return true;
}

/* Plain stores: dword by dword. */
static void move_store(struct actor *a, const struct access *x,
		       const struct data *d)
{
	const int second = a->s->n_addr == 2 && x->part > 0;
	int reg = d->reg[second] + (second ? 0 : x->part);

	if (reg < 0)
		return;
	if (a->s->n_comps) {
		const bool valid = stored_valid(a, x, d->reg[0], d->dwords[0]);

		memory_set_valid(a, x, 0, x->size_bytes, valid);
		return;
	}
	if (are_valid(a, x, reg)) {
		memory_set_valid(a, x, 0, x->size_bytes, true);
		return;
	}
	for (uint32_t at = 0; at < x->size_bytes; at += 4, reg++) {
		const uint32_t left = x->size_bytes - at;

		memory_set_valid(a, x, at, left < 4 ? left : 4,
				 stored_valid(a, x, reg, 1));
	}
}

static void move_atomic(struct actor *a, const struct access *x,
			const struct data *d, bool old)
{
	const int second = a->s->n_addr == 2 && x->part > 0;
	bool valid = old || a->s->replaces;

	if (!x->write) /* a second place, of ds_*_src2_* */
		return;
	if (a->s->two_sources)
		valid &= memory_valid(a, x + 1, 0, x->size_bytes);
	if (!valid && x->space == SOFT_SPACE_MEMORY) {
		const struct origin o = { ORIGIN_LOAD, 0, x->space, a->s,
					  x->at };

		check_uninit(a, x->lane, "the result of the atomic", &o);
		valid = true;
	}
	for (int k = 0; k < 2; k++)
		if (d->reg[k] >= 0 && (a->s->n_addr != 2 || k == second))
			valid &= stored_valid(a, x, d->reg[k], d->dwords[k]);
	memory_set_valid(a, x, 0, x->size_bytes, valid);
}

/* ------------------------------------------------------------- loads ---- */

/* The registers that the instruction writes, all active lanes initialised. */
static const struct isa_operand *init_destination(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (!(o->role & ISA_DST))
			continue;
		for (int k = 0; k < o->dwords; k++) {
			if (o->kind == ISA_K_SGPR && o->reg + k < 128) {
				a->sw->sgpr[o->reg + k] = UINT32_MAX;
				continue;
			}
			if (o->kind != ISA_K_VGPR || o->reg + k > 255)
				continue;
			for (int h = 0; h < soft_halves(a->w); h++)
				a->sw->vgpr[h][o->reg + k] |=
					soft_exec(a->w, h);
		}
		return o;
	}
	return NULL;
}

static bool all_valid(const struct actor *a, int reg)
{
	for (int h = 0; h < soft_halves(a->w); h++)
		if (soft_exec(a->w, h) & ~a->sw->vgpr[h][reg])
			return false;
	return true;
}

static void set_invalid(struct actor *a, const struct isa_operand *o, int dword,
			const struct access *x)
{
	const struct origin from = { ORIGIN_LOAD, 0, x->space, a->s, x->at };
	const int reg = o->reg + dword;

	if (o->kind == ISA_K_SGPR && reg < 128) {
		a->sw->sgpr[reg] = 0;
		a->sw->sorigin[reg] = from;
	} else if (o->kind == ISA_K_VGPR && reg < 256) {
		/* The first lane's: it is the one reported. */
		if (all_valid(a, reg))
			a->sw->vorigin[reg] = from;
		a->sw->vgpr[x->lane / SOFT_LANES][reg] &=
			~(1u << x->lane % SOFT_LANES);
	}
}

/* Bytes beyond the allocation, in a scalar load that begins inside it. */
static bool is_beyond(const struct actor *a, const struct access *x,
		      uint32_t at)
{
	const struct watch_object *o;

	if (x->lane >= 0)
		return false;
	o = watch_object_below(a->t, x->at);
	return o && x->at < o->va + o->size_bytes &&
	       x->at + at + 4 > o->va + o->size_bytes;
}

static void move_load(struct actor *a, const struct access *x,
		      const struct isa_operand *o)
{
	if (a->s->n_comps) {
		if (!memory_valid(a, x, 0, x->size_bytes))
			for (int k = 0; k < o->dwords; k++)
				set_invalid(a, o, k, x);
		return;
	}
	if (x->lane >= 0 && memory_valid(a, x, 0, x->size_bytes))
		return;
	for (uint32_t at = 0; at < x->size_bytes; at += 4) {
		const uint32_t left = x->size_bytes - at;

		if (is_beyond(a, x, at) ||
		    !memory_valid(a, x, at, left < 4 ? left : 4))
			set_invalid(a, o, x->part + (int)at / 4, x);
	}
}

void check_moved(struct actor *a)
{
	const struct isa_operand *o = NULL;
	struct data d = data_of(a->s);
	bool old[WATCH_ACCESSES_MAX];

	if (a->s->kind == SITE_LANES)
		return;
	for (int i = 0; i < a->t->n_accesses; i++) {
		const struct access *x = &a->t->access[i];

		if (a->s->is_atomic) {
			old[i] = memory_valid(a, x, 0, x->size_bytes);
			move_atomic(a, x, &d, old[i]);
		} else if (a->s->is_store) {
			move_store(a, x, &d);
		}
	}
	if (a->s->is_load || a->s->returns)
		o = init_destination(a);
	for (int i = 0; o && i < a->t->n_accesses; i++) {
		const struct access *x = &a->t->access[i];

		if (a->s->is_load)
			move_load(a, x, o);
		else if (!old[i])
			for (int k = 0; k < x->size_bytes / 4; k++)
				set_invalid(a, o, x->part + k, x);
	}
}
