/*
 * compiler/backend/vopd.c - dual issue: two vector instructions in one (RDNA3
 * ISA 7.6).
 *
 * An instruction of the first half of isa/tables/vopd.def looks a few
 * instructions ahead for a partner that may move up to it.  Both read before
 * either writes.  Sources in the same position come from different banks,
 * results go to an even and an odd register, at most two scalars and one
 * literal are read; the parser of isa/ decides whether a pair encodes.
 */
#include <string.h>

#include "compiler/backend/backend_int.h"
#include "isa/text/text.h"

enum { WINDOW = 12, BANKS = 4 };

/* Both halves, or the second only. */
static int vopd_role(int op)
{
	switch (op) {
	case ISA_v_fmac_f32:
	case ISA_v_fmaak_f32:
	case ISA_v_fmamk_f32:
	case ISA_v_mul_f32:
	case ISA_v_add_f32:
	case ISA_v_sub_f32:
	case ISA_v_subrev_f32:
	case ISA_v_mov_b32:
	case ISA_v_cndmask_b32:
	case ISA_v_max_f32:
	case ISA_v_min_f32:
	case ISA_v_max_num_f32:
	case ISA_v_min_num_f32:
		return 3;
	case ISA_v_add_nc_u32:
	case ISA_v_lshlrev_b32:
	case ISA_v_and_b32:
		return 2;
	}
	return 0;
}

static bool is_vgpr(const struct mir_func *m, const struct mir_opnd *o)
{
	return mir_is_v(m, o);
}

/* Which operand stands where: SRC0 and VSRC1. */
static const struct mir_opnd *source_operand(const struct mir_inst *i, int k)
{
	if (i->op == ISA_v_mov_b32)
		return k ? NULL : &i->o[1];
	if (i->op == ISA_v_fmamk_f32)
		return k ? &i->o[3] : &i->o[1];
	return &i->o[1 + k];
}

static bool is_plain(const struct mir_func *m, const struct mir_inst *i)
{
	if (i->tail[0] || i->pair || i->flags & (MIR_GLUED | MIR_DPP))
		return false;
	if (i->next && i->next->flags & MIR_GLUED)
		return false;
	for (int k = 0; k < i->n_opnd; k++)
		if (i->o[k].mods)
			return false;
	if (i->op == ISA_v_cndmask_b32 &&
	    (i->o[3].kind == MIR_IMM || mir_phys(m, &i->o[3]) != ISA_R_VCC_LO))
		return false;
	if (source_operand(i, 1) && !is_vgpr(m, source_operand(i, 1)))
		return false;
	return is_vgpr(m, &i->o[0]) && i->o[0].n == 1;
}

static int candidate_role(const struct mir_func *m, const struct mir_inst *i)
{
	int r = vopd_role(i->op);

	return r && is_plain(m, i) ? r : 0;
}

static bool banks_fit(const struct mir_func *m, const struct mir_inst *x,
		      const struct mir_inst *y)
{
	if (mir_phys(m, &x->o[0]) % 2 == mir_phys(m, &y->o[0]) % 2)
		return false;
	for (int k = 0; k < 2; k++) {
		const struct mir_opnd *a = source_operand(x, k),
				      *b = source_operand(y, k);

		if (a && b && is_vgpr(m, a) && is_vgpr(m, b) &&
		    mir_phys(m, a) % BANKS == mir_phys(m, b) % BANKS)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------- moving ---- */

/* Both at once: y neither reads nor writes what x writes. */
static bool are_independent(const struct mir_func *m, const struct mir_inst *x,
			    const struct mir_touch *y)
{
	struct mir_touch t;
	int n = 0;

	mir_touches(m, x, &t);
	for (int k = 0; k < t.n; k++)
		if (t.t[k].write)
			t.t[n++] = t.t[k];
	t.n = n;
	return !mir_touches_conflict(&t, y);
}

static bool can_encode(struct mir_func *m, struct mir_inst *x,
		       struct mir_inst *y)
{
	struct isa_target t = { .gen = m->gen, .wave = 32 };
	struct buf text = { 0 };
	struct isa_inst in;
	bool good;

	x->pair = y;
	mir_print_inst(m, x, &text);
	good = !isa_parse(&t, text.data, NULL, NULL, &in) && in.op_y &&
	       !mir_lacks_half(m, in.op) && !mir_lacks_half(m, in.op_y);
	buf_fini(&text);
	if (!good)
		x->pair = NULL;
	return good;
}

static bool form_pair(struct mir_func *m, struct mir_inst *x,
		      struct mir_inst *y)
{
	int rx = candidate_role(m, x), ry = candidate_role(m, y);
	struct mir_touch t;

	mir_touches(m, y, &t);
	if (!ry || !are_independent(m, x, &t) || !banks_fit(m, x, y))
		return false;
	if (rx & 1 && can_encode(m, x, y)) {
		mir_unlink(y);
		return true;
	}
	if (!(ry & 1) || !can_encode(m, y, x))
		return false;
	/* y is the first half: it takes x's place. */
	mir_unlink(y);
	mir_before(x, y);
	mir_unlink(x);
	return true;
}

static bool stops_search(const struct mir_inst *i)
{
	return mir_is_branch(i) || mir_writes_exec(i) || i->flags & MIR_GLUED ||
	       mir_pipe(i) == ISA_PIPE_SPECIAL;
}

static struct mir_inst *find_partner(struct mir_func *m, struct mir_inst *x)
{
	struct mir_inst *y = x->next;

	for (int k = 0; y && k < WINDOW; k++, y = y->next) {
		struct mir_touch t;
		bool free = true;

		if (stops_search(y))
			return NULL;
		if (!candidate_role(m, y))
			continue;
		mir_touches(m, y, &t);
		for (struct mir_inst *i = x->next; free && i != y;
		     i = i->next) {
			struct mir_touch between;

			mir_touches(m, i, &between);
			free = !mir_touches_conflict(&between, &t);
		}
		if (free && form_pair(m, x, y))
			return x->pair ? x : y;
	}
	return NULL;
}

void mir_form_vopd(struct mir_func *m)
{
	if (m->wave != 32 || m->gen < ISA_GFX11)
		return;
	MIR_EACH_INST(m, i) {
		struct mir_inst *p;

		if (!candidate_role(m, i))
			continue;
		p = find_partner(m, i);
		if (p)
			i = p;
	}
}
