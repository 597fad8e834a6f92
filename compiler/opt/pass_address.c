/*
 * compiler/opt/pass_address.c - addresses in the hardware's form.
 *
 * The hardware adds up, at no cost, a base that is the same in all lanes, a
 * 32-bit unsigned offset of the lane, and a constant.
 *
 * - A constant in the offset moves into `off`, if the sum did not wrap.
 * - A 64-bit distance that a pointer was advanced by is split into terms.  What
 *   is uniform stays with the pointer; the rest becomes the offset, if it is
 *   provably below 2^32.
 */
#include "compiler/opt/pass.h"

enum {
	MAX_TERMS = 8,
	OFF_MIN = -4096, OFF_MAX = 4095,   /* global: 13 bits, signed */
	LDS_OFF_MAX = 65535,		   /* LDS: 16 bits, unsigned */
};

static bool off_fits(const struct ssa_inst *i, int64_t off)
{
	if (i->arg[0]->type.kind == SSA_LDS)
		return off >= 0 && off <= LDS_OFF_MAX;
	return off >= OFF_MIN && off <= OFF_MAX;
}

static struct ssa_inst *zero_offset(struct ssa_func *f)
{
	return ssa_entry_const(f, ssa_type(SSA_I32, 1), 0);
}

/* ----------------------------------------------------------- constants -- */

static bool fold_offset(struct ssa_func *f, struct ssa_inst *i)
{
	struct ssa_inst *off = i->arg[1];

	if (off->op == SSA_const && off->imm) {
		if (!off_fits(i, i->off + (int64_t)off->imm))
			return false;
		i->off += (int32_t)off->imm;
		i->arg[1] = zero_offset(f);
		return true;
	}
	if (off->op != SSA_add || off->arg[1]->op != SSA_const)
		return false;
	const int64_t c = (int64_t)off->arg[1]->imm;

	if (!off_fits(i, i->off + c) ||
	    !(off->flags & SSA_NUW ||
	      ssa_adds_exactly(f, off->arg[0], off->arg[1])))
		return false;
	i->off += (int32_t)c;
	i->arg[1] = off->arg[0];
	return true;
}

/* A constant that the base was advanced by. */
static bool fold_base(struct ssa_inst *i)
{
	struct ssa_inst *p = i->arg[0];

	if (p->op != SSA_ptradd || p->arg[1]->op != SSA_const)
		return false;
	const int64_t c = ssa_bits_to_s(p->arg[1]->type.kind, p->arg[1]->imm);

	if (!off_fits(i, i->off + c))
		return false;
	i->off += (int32_t)c;
	i->arg[0] = p->arg[0];
	return true;
}

/* --------------------------------------------------------------- terms -- */

/* A distance: the sum of v[k] << shift[k]. */
struct sum {
	struct ssa_inst *v[MAX_TERMS];
	uint32_t shift[MAX_TERMS];
	uint32_t n;
};

static bool collect_terms(struct ssa_func *f, struct sum *s, struct ssa_inst *i,
			  uint32_t shift)
{
	if (i->op == SSA_add)
		return collect_terms(f, s, i->arg[0], shift) &&
		       collect_terms(f, s, i->arg[1], shift);
	if (i->op == SSA_shl && i->arg[1]->op == SSA_const &&
	    shift + i->arg[1]->imm < 32)
		return collect_terms(f, s, i->arg[0],
				     shift + (uint32_t)i->arg[1]->imm);
	/* The same of 32 bits, if nothing is lost. */
	if (i->op == SSA_zext && i->arg[0]->op == SSA_add &&
	    i->arg[0]->type.kind == SSA_I32 &&
	    ssa_adds_exactly(f, i->arg[0]->arg[0], i->arg[0]->arg[1])) {
		struct ssa_inst *wide[2];

		for (int k = 0; k < 2; k++) {
			wide[k] = ssa_inst_new(f, SSA_zext,
					       ssa_type(SSA_I64, 1), 1,
					       &i->arg[0]->arg[k]);
			wide[k]->flags = i->arg[0]->arg[k]->flags & SSA_UNIFORM;
			ssa_insert_before(i, wide[k]);
		}
		return collect_terms(f, s, wide[0], shift) &&
		       collect_terms(f, s, wide[1], shift);
	}
	if (s->n == MAX_TERMS)
		return false;
	s->v[s->n] = i;
	s->shift[s->n++] = shift;
	return true;
}

/* The low 32 bits of a term that is no wider. */
static struct ssa_inst *narrow_term(struct ssa_func *f, struct ssa_inst *at,
				    struct ssa_inst *v, uint32_t shift)
{
	const struct ssa_type i32 = ssa_type(SSA_I32, 1);

	if (v->op == SSA_zext && v->arg[0]->type.kind == SSA_I32) {
		v = v->arg[0];
	} else {
		v = ssa_inst_new(f, SSA_trunc, i32, 1, &v);
		v->line = at->line;
		ssa_insert_before(at, v);
	}
	if (!shift)
		return v;
	v = ssa_emit2(f, at, SSA_shl, v, ssa_entry_const(f, i32, shift));
	v->flags |= SSA_NUW;
	return v;
}

static struct ssa_inst *wide_term(struct ssa_func *f, struct ssa_inst *at,
				  struct ssa_inst *v, uint32_t shift)
{
	struct ssa_inst *r = v;

	if (shift)
		r = ssa_emit2(f, at, SSA_shl, v,
			      ssa_entry_const(f, v->type, shift));
	r->flags |= v->flags & SSA_UNIFORM;
	return r;
}

/* Is the sum of what differs between lanes, and the offset, below 2^32? */
static bool divergent_fits(const struct ssa_func *f, const struct sum *s,
			   const struct ssa_inst *off)
{
	uint64_t total = ssa_bounds(f, off).max;
	bool any = false;

	for (uint32_t k = 0; k < s->n; k++) {
		if (s->v[k]->flags & SSA_UNIFORM)
			continue;
		const uint64_t max = ssa_bounds(f, s->v[k]).max;

		if (max > UINT32_MAX)
			return false;
		total += max << s->shift[k];
		if (total > UINT32_MAX)
			return false;
		any = true;
	}
	return any;
}

/* base + distance, off  ->  base + uniform terms, off + the others */
static bool split_base(struct ssa_func *f, struct ssa_inst *i)
{
	struct ssa_inst *p = i->arg[0], *off = i->arg[1];
	struct sum s = { .n = 0 };

	if (p->op != SSA_ptradd || p->type.kind != SSA_PTR ||
	    p->flags & SSA_UNIFORM || p->arg[1]->type.kind != SSA_I64 ||
	    !collect_terms(f, &s, p->arg[1], 0) || !divergent_fits(f, &s, off))
		return false;
	struct ssa_inst *base = p->arg[0];

	for (uint32_t k = 0; k < s.n; k++) {
		const bool uniform = s.v[k]->flags & SSA_UNIFORM;
		struct ssa_inst *t =
			uniform ? wide_term(f, i, s.v[k], s.shift[k]) :
				  narrow_term(f, i, s.v[k], s.shift[k]);

		if (uniform) {
			base = ssa_emit2(f, i, SSA_ptradd, base, t);
			base->flags |= base->arg[0]->flags & SSA_UNIFORM;
		} else if (off->op == SSA_const && !off->imm) {
			off = t;
		} else {
			off = ssa_emit2(f, i, SSA_add, off, t);
			off->flags |= SSA_NUW;
		}
	}
	i->arg[0] = base;
	i->arg[1] = off;
	return true;
}

/* An i32 distance of a pointer without another offset. */
static bool take_distance(struct ssa_func *f, struct ssa_inst *i)
{
	struct ssa_inst *p = i->arg[0], *off = i->arg[1];

	if (p->op != SSA_ptradd || off->op != SSA_const || off->imm ||
	    p->arg[1]->type.kind != SSA_I32 || p->flags & SSA_UNIFORM ||
	    (p->type.kind == SSA_PTR && !ssa_never_negative(f, p->arg[1])))
		return false;
	i->arg[1] = p->arg[1];
	i->arg[0] = p->arg[0];
	return true;
}

bool ssa_pass_address(struct ssa_func *f)
{
	bool any = false;

	ssa_uniform(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			if (!ssa_is_access(i))
				continue;
			while (fold_base(i) || fold_offset(f, i) ||
			       split_base(f, i) || take_distance(f, i))
				any = true;
		}
	return any;
}
