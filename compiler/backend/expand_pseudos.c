/*
 * compiler/backend/expand_pseudos.c - copies become moves, and multiply-adds
 * the short encodings that their registers allow, after allocation.
 */
#include "compiler/backend/backend_int.h"

static struct mir_inst *insert_move(struct mir_func *m, struct mir_inst *at,
				    int op, struct mir_opnd to,
				    struct mir_opnd from)
{
	struct mir_opnd o[2] = { to, from };
	struct mir_inst *i = mir_insert(m, at, op, o, 2);

	i->flags = at->flags;
	return i;
}

static struct mir_opnd imm_part(struct mir_opnd o, int k)
{
	if (k && o.n == 2)
		o.imm = (int32_t)o.imm < 0 ? UINT32_MAX : 0;
	o.n = 1;
	return o;
}

/* Which dwords first: none may be overwritten before it was read. */
static void move_words(struct mir_func *m, struct mir_inst *i, int op)
{
	struct mir_opnd to = i->o[0], from = i->o[1];
	bool down = from.kind != MIR_IMM &&
		    mir_is_s(m, &to) == mir_is_s(m, &from) &&
		    mir_phys(m, &to) > mir_phys(m, &from);

	for (int k = 0; k < to.n; k++) {
		int j = down ? to.n - 1 - k : k;

		insert_move(m, i, op, mir_part(to, j, 1),
			    from.kind == MIR_IMM ? imm_part(from, j) :
						   mir_part(from, j, 1));
	}
}

/* Aligned pairs of scalars move together. */
static bool move_pair(struct mir_func *m, struct mir_inst *i)
{
	struct mir_opnd to = i->o[0], from = i->o[1];

	if (to.n != 2 || mir_phys(m, &to) % 2)
		return false;
	if (from.kind == MIR_IMM) {
		if ((int32_t)from.imm > 64 || (int32_t)from.imm < -16 ||
		    (from.n != 2 && (int32_t)from.imm < 0 &&
		     from.imm != UINT32_MAX))
			return false;
	} else if (mir_phys(m, &from) % 2) {
		return false;
	}
	insert_move(m, i, ISA_s_mov_b64, to, from);
	return true;
}

static bool moves_nothing(const struct mir_func *m, const struct mir_inst *i)
{
	return i->o[1].kind != MIR_IMM &&
	       mir_is_s(m, &i->o[0]) == mir_is_s(m, &i->o[1]) &&
	       mir_phys(m, &i->o[0]) == mir_phys(m, &i->o[1]);
}

static void expand_copy(struct mir_func *m, struct mir_inst *i)
{
	if (moves_nothing(m, i))
		return;
	if (!mir_is_s(m, &i->o[0])) {
		move_words(m, i, ISA_v_mov_b32);
		return;
	}
	if (!move_pair(m, i))
		move_words(m, i, ISA_s_mov_b32);
}

void mir_expand_pseudos(struct mir_func *m)
{
	MIR_EACH_INST_SAFE(m, i) {
		/* EXEC preserves inactive lanes, but for DPP. */
		if (!(i->flags & MIR_DPP))
			i->flags &= (uint16_t)~MIR_PARTIAL;
		if (i->op < ISA_OP_COUNT)
			continue;
		if (i->op == MIR_COPY)
			expand_copy(m, i);
		mir_unlink(i);
	}
}

/* -------------------------------------------------------------- shrink ---- */

static bool is_plain_vgpr(const struct mir_func *m, const struct mir_opnd *o)
{
	return mir_is_v(m, o) && !o->mods;
}

static bool is_literal(const struct mir_opnd *o)
{
	return o->kind == MIR_IMM && !o->mods &&
	       !((int32_t)o->imm >= -16 && (int32_t)o->imm <= 64);
}

static void shrink_fma(struct mir_func *m, struct mir_inst *i)
{
	struct mir_opnd d = i->o[0], a = i->o[1], b = i->o[2], c = i->o[3];

	if (i->tail[0] || i->flags & MIR_DPP || a.mods || b.mods || c.mods)
		return;
	if (!is_plain_vgpr(m, &b)) {
		struct mir_opnd t = a;

		a = b;
		b = t;
	}
	if (is_plain_vgpr(m, &b) && mir_is_v(m, &c) &&
	    mir_phys(m, &d) == mir_phys(m, &c)) {
		i->op = ISA_v_fmac_f32;
		i->o[1] = a;
		i->o[2] = b;
		i->n_opnd = 3;
	} else if (is_literal(&c) && is_plain_vgpr(m, &b) && !is_literal(&a)) {
		i->op = ISA_v_fmaak_f32;
		i->o[1] = a;
		i->o[2] = b;
	} else if (is_literal(&a) && is_plain_vgpr(m, &b) &&
		   is_plain_vgpr(m, &c)) {
		i->op = ISA_v_fmamk_f32;
		i->o[1] = b;
		i->o[2] = a;
	}
}

void mir_shrink_encoding(struct mir_func *m)
{
	MIR_EACH_INST(m, i)
		if (i->op == ISA_v_fma_f32)
			shrink_fma(m, i);
}
