/*
 * compiler/backend/spill.c - spilled registers and rematerialized constants.
 *
 * Vector registers are spilled to scratch, under the mask of the instruction:
 * each lane has its own slot, so inactive lanes keep theirs.  Scalar registers
 * are spilled to lanes of vector registers.  A register that only ever holds a
 * constant is rematerialized.
 */
#include "compiler/backend/backend_int.h"

#include <stdlib.h>

struct spiller {
	struct mir_func *m;
	const bool *which;
	uint32_t n_old;	  /* vregs before */
	uint32_t *slot;	  /* scratch byte, or lane number */
	struct mir_inst **maker; /* [n_old] the only definition, or NULL */
	uint32_t *n_makers;
	uint32_t lane_reg[64], n_lanes;
};

static void find_definitions(struct spiller *s)
{
	MIR_EACH_INST(s->m, i)
		for (int k = 0; k < i->n_def; k++)
			if (i->o[k].kind == MIR_VREG &&
			    i->op != MIR_UNDEF) {
				s->maker[i->o[k].reg] = i;
				s->n_makers[i->o[k].reg]++;
			}
}

static bool is_rematerializable(const struct spiller *s, uint32_t v)
{
	const struct mir_inst *i = s->maker[v];

	return s->n_makers[v] == 1 && i->op == MIR_COPY &&
	       i->o[1].kind == MIR_IMM && !(i->flags & MIR_PARTIAL) &&
	       i->o[0].n == s->m->vreg[v].n;
}

static void assign_slots(struct spiller *s)
{
	struct mir_func *m = s->m;

	for (uint32_t v = 1; v < s->n_old; v++) {
		if (!s->which[v] || is_rematerializable(s, v))
			continue;
		if (m->vreg[v].file == MIR_V) {
			s->slot[v] = m->scratch_bytes;
			m->scratch_bytes += 4u * m->vreg[v].n;
			m->vgpr_spills += m->vreg[v].n;
		} else {
			s->slot[v] = s->n_lanes;
			s->n_lanes += m->vreg[v].n;
			m->sgpr_spills += m->vreg[v].n;
		}
	}
}

/* ----------------------------------------------------------- vector ---- */

static int piece_dwords(int n)
{
	return n >= 4 ? 4 : n;
}

static void insert_spill_code(struct mir_inst *at, struct mir_inst *i,
			      bool before)
{
	i->line = at->line;
	i->flags |= MIR_SPILL | (at->flags & (MIR_TERM | MIR_HEAD));
	if (before) {
		/* Inside a group it belongs to the group. */
		if (at->flags & MIR_GLUED)
			i->flags |= MIR_GLUED;
		mir_before(at, i);
	} else {
		if (at->next && at->next->flags & MIR_GLUED)
			i->flags |= MIR_GLUED;
		mir_after(at, i);
	}
}

/* What an instruction's offset does not reach; 16 bytes must be in reach. */
static uint32_t scratch_reach(const struct spiller *s)
{
	return (s->m->gen < ISA_GFX11 ? 2048 : 4096) - 16;
}

/*
 * The base that `at` is reached from: an own scalar register, or none, which
 * gfx10_1 has no encoding for.
 */
static struct mir_opnd scratch_base(struct spiller *s, uint32_t at)
{
	uint32_t v;

	if (at < scratch_reach(s) && s->m->gen != ISA_GFX10_1)
		return mir_off();
	v = mir_vreg(s->m, MIR_S, 1);
	s->m->vreg[v].tiny = true;
	return mir_reg(s->m, v);
}

static struct mir_inst *build_scratch(struct spiller *s, bool store,
				      struct mir_opnd data, uint32_t at,
				      struct mir_opnd base)
{
	static const uint16_t op[2][5] = {
		{ 0, ISA_scratch_load_b32, ISA_scratch_load_b64,
		  ISA_scratch_load_b96, ISA_scratch_load_b128 },
		{ 0, ISA_scratch_store_b32, ISA_scratch_store_b64,
		  ISA_scratch_store_b96, ISA_scratch_store_b128 },
	};
	struct mir_opnd l[3] = { data, mir_off(), base };
	struct mir_opnd t[3] = { mir_off(), data, base };
	struct mir_inst *i =
		mir_inst(s->m, op[store][data.n], store ? t : l, 3);

	i->off = (int32_t)(at % scratch_reach(s));
	i->bytes = (uint8_t)(4 * data.n);
	return i;
}

static void access_scratch(struct spiller *s, struct mir_inst *at,
			   uint32_t slot, struct mir_opnd t, int from, int n,
			   bool store)
{
	for (int k = from, w; k < from + n; k += w) {
		const uint32_t place = slot + 4u * (uint32_t)k;
		struct mir_opnd base[2] = { scratch_base(s, place),
					    mir_imm(place -
						    place % scratch_reach(s)) };
		struct mir_inst *i;

		w = piece_dwords(from + n - k);
		i = build_scratch(s, store, mir_part(t, k, w), place, base[0]);
		insert_spill_code(at, i, !store);
		if (base[0].kind == MIR_VREG)
			insert_spill_code(i, mir_inst(s->m, MIR_COPY, base, 2),
					  true);
	}
}

/* ----------------------------------------------------------- scalar ---- */

static uint32_t lane_register(struct spiller *s, uint32_t lane)
{
	uint32_t k = lane / (uint32_t)s->m->wave;

	if (!s->lane_reg[k]) {
		struct mir_opnd o;
		struct mir_inst *i;

		s->lane_reg[k] = mir_vreg(s->m, MIR_V, 1);
		s->m->vreg[s->lane_reg[k]].tiny = true;
		o = mir_reg(s->m, s->lane_reg[k]);
		i = mir_inst(s->m, MIR_UNDEF, &o, 1);
		i->flags |= MIR_HEAD;
		if (s->m->order[0]->first)
			mir_before(s->m->order[0]->first, i);
		else
			mir_append(s->m->order[0], i);
	}
	return s->lane_reg[k];
}

static void access_lanes(struct spiller *s, struct mir_inst *at, uint32_t slot,
			 struct mir_opnd t, int from, int n, bool store)
{
	for (int k = from; k < from + n; k++) {
		uint32_t lane = slot + (uint32_t)k;
		struct mir_opnd v = mir_reg(s->m, lane_register(s, lane));
		struct mir_opnd at_lane =
			mir_imm(lane % (uint32_t)s->m->wave);
		struct mir_opnd w[3] = { v, mir_part(t, k, 1), at_lane };
		struct mir_opnd r[3] = { mir_part(t, k, 1), v, at_lane };

		insert_spill_code(at,
				  mir_inst(s->m,
					   store ? ISA_v_writelane_b32 :
						   ISA_v_readlane_b32,
					   store ? w : r, 3),
				  !store);
	}
}

/* ------------------------------------------------------------- rewrite ---- */

static void insert_access(struct spiller *s, struct mir_inst *i, uint32_t v,
			  struct mir_opnd t, int from, int n, bool store)
{
	if (s->m->vreg[v].file == MIR_V)
		access_scratch(s, i, s->slot[v], t, from, n, store);
	else
		access_lanes(s, i, s->slot[v], t, from, n, store);
}

/* First and last dword of `v` that the operands [a, b) touch. */
static bool operand_extent(const struct mir_inst *i, uint32_t v, int a, int b,
			   int *from, int *to)
{
	bool any = false;

	for (int k = a; k < b; k++) {
		const struct mir_opnd *o = &i->o[k];

		if (o->kind != MIR_VREG || o->reg != v)
			continue;
		*from = any && *from < o->sub ? *from : o->sub;
		*to = any && *to > o->sub + o->n ? *to : o->sub + o->n;
		any = true;
	}
	return any;
}

static void spill_operands(struct spiller *s, struct mir_inst *i, uint32_t v)
{
	uint32_t t = mir_vreg(s->m, s->m->vreg[v].file, s->m->vreg[v].n);
	struct mir_opnd to = mir_reg(s->m, t);
	int from, end;

	s->m->vreg[t].tiny = true;
	s->m->vreg[t].vcc = s->m->vreg[v].vcc;
	if (is_rematerializable(s, v)) {
		struct mir_opnd o[2] = { to, s->maker[v]->o[1] };

		insert_spill_code(i, mir_inst(s->m, MIR_COPY, o, 2), true);
	} else {
		if (operand_extent(i, v, mir_reads_result(i) ? 0 : i->n_def,
				   i->n_opnd, &from, &end))
			insert_access(s, i, v, to, from, end - from, false);
		if (operand_extent(i, v, 0, i->n_def, &from, &end))
			insert_access(s, i, v, to, from, end - from, true);
	}
	for (int k = 0; k < i->n_opnd; k++)
		if (i->o[k].kind == MIR_VREG && i->o[k].reg == v)
			i->o[k].reg = t;
}

static void rewrite_inst(struct spiller *s, struct mir_inst *i)
{
	if (i->op == MIR_UNDEF && s->which[i->o[0].reg]) {
		mir_unlink(i);
		return;
	}
	for (int k = 0; k < i->n_opnd; k++) {
		uint32_t v = i->o[k].reg;

		if (i->o[k].kind != MIR_VREG || v >= s->n_old || !s->which[v])
			continue;
		if (is_rematerializable(s, v) && i == s->maker[v]) {
			mir_unlink(i);
			return;
		}
		spill_operands(s, i, v);
	}
}

void mir_spill(struct mir_func *m, const bool *which)
{
	struct spiller s = { .m = m, .which = which, .n_old = m->n_vregs };

	s.slot = xcalloc(m->n_vregs, sizeof(*s.slot));
	s.maker = xcalloc(m->n_vregs, sizeof(*s.maker));
	s.n_makers = xcalloc(m->n_vregs, sizeof(*s.n_makers));
	find_definitions(&s);
	assign_slots(&s);
	MIR_EACH_INST_SAFE(m, i) {
		rewrite_inst(&s, i);
	}
	free(s.slot);
	free(s.maker);
	free(s.n_makers);
}
