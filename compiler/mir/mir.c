/*
 * compiler/mir/mir.c - making, asking and printing machine instructions.
 */
#include "compiler/mir/mir.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

void mir_init(struct mir_func *m, struct arena *a, const char *name, int wave)
{
	memset(m, 0, sizeof(*m));
	m->arena = a;
	m->name = name;
	m->wave = wave;
	m->gen = ISA_GFX11;
	m->n_vregs = 1;
	m->cap_vregs = 256;
	m->vreg = xcalloc(m->cap_vregs, sizeof(*m->vreg));
}

void mir_fini(struct mir_func *m)
{
	free(m->vreg);
	free(m->order);
	m->vreg = NULL;
	m->order = NULL;
}

uint32_t mir_vreg(struct mir_func *m, enum mir_file file, int n)
{
	struct mir_vreg *v;

	VEC_GROW(m->vreg, m->n_vregs, 1, m->cap_vregs);
	v = &m->vreg[m->n_vregs];
	memset(v, 0, sizeof(*v));
	v->file = (uint8_t)file;
	v->n = (uint8_t)n;
	v->align = 1;
	/* Pairs and wider scalars are aligned (RDNA3 ISA 3.4.1). */
	if (file == MIR_S)
		v->align = n == 1 ? 1 : n == 2 ? 2 : 4;
	v->phys = -1;
	return m->n_vregs++;
}

struct mir_block *mir_block(struct mir_func *m)
{
	struct mir_block *b = arena_alloc(m->arena, sizeof(*b));

	b->id = m->n_blocks++;
	return b;
}

void mir_append_block(struct mir_func *m, struct mir_block *b)
{
	VEC_GROW(m->order, m->n_order, 1, m->cap_order);
	b->order = m->n_order;
	m->order[m->n_order++] = b;
}

void mir_add_edge(struct mir_block *from, struct mir_block *to)
{
	for (uint32_t i = 0; i < from->n_succ; i++)
		if (from->succ[i] == to)
			return;
	from->succ[from->n_succ++] = to;
}

/* Slots of isa/tables/insts.def that are results. */
static int count_defs(const struct isa_op_info *op)
{
	int n = 0;

	for (int i = 0; i < op->n_opnd; i++)
		switch (op->opnd[i].slot) {
		case ISA_SLOT_D:
		case ISA_SLOT_DS:
		case ISA_SLOT_CO:
		case ISA_SLOT_CD:
			n++;
			break;
		case ISA_SLOT_SDATA:
			n += (op->flags & ISA_LOAD) != 0;
			break;
		}
	return n;
}

struct mir_inst *mir_inst(struct mir_func *m, int op, const struct mir_opnd *o,
			  int n)
{
	struct mir_inst *i = arena_alloc(m->arena, sizeof(*i));

	if (n > MIR_MAX_OPND)
		BUG("%d operands", n);
	i->op = (uint16_t)op;
	i->n_opnd = (uint8_t)n;
	i->n_def =
		(uint8_t)(op >= ISA_OP_COUNT ? 1 : count_defs(isa_op_info(op)));
	if (i->n_def > n)
		i->n_def = (uint8_t)n;
	if (n)
		memcpy(i->o, o, (size_t)n * sizeof(*o));
	i->tail = "";
	i->line = m->line;
	m->n_insts++;
	return i;
}

void mir_append(struct mir_block *b, struct mir_inst *i)
{
	i->block = b;
	i->prev = b->last;
	i->next = NULL;
	*(b->last ? &b->last->next : &b->first) = i;
	b->last = i;
}

void mir_before(struct mir_inst *at, struct mir_inst *i)
{
	i->block = at->block;
	i->prev = at->prev;
	i->next = at;
	*(at->prev ? &at->prev->next : &at->block->first) = i;
	at->prev = i;
}

struct mir_inst *mir_insert(struct mir_func *m, struct mir_inst *at, int op,
			    const struct mir_opnd *o, int n)
{
	struct mir_inst *i = mir_inst(m, op, o, n);

	i->line = at->line;
	mir_before(at, i);
	return i;
}

void mir_after(struct mir_inst *at, struct mir_inst *i)
{
	i->block = at->block;
	i->prev = at;
	i->next = at->next;
	*(at->next ? &at->next->prev : &at->block->last) = i;
	at->next = i;
}

void mir_unlink(struct mir_inst *i)
{
	*(i->prev ? &i->prev->next : &i->block->first) = i->next;
	*(i->next ? &i->next->prev : &i->block->last) = i->prev;
	i->prev = i->next = NULL;
}

void mir_remove(struct mir_inst *i)
{
	if (i->next && i->next->flags & MIR_GLUED && !(i->flags & MIR_GLUED))
		i->next->flags &= (uint16_t)~MIR_GLUED;
	mir_unlink(i);
}

struct mir_opnd mir_part(struct mir_opnd o, int at, int n)
{
	if (o.kind == MIR_VREG)
		o.sub = (uint8_t)(o.sub + at);
	else if (o.kind == MIR_HW)
		o.reg += (uint32_t)at;
	o.n = (uint8_t)n;
	return o;
}

bool mir_same(const struct mir_opnd *a, const struct mir_opnd *b)
{
	if (a->kind != b->kind || a->mods != b->mods)
		return false;
	if (a->kind == MIR_IMM)
		return a->imm == b->imm;
	return a->reg == b->reg && a->sub == b->sub && a->n == b->n;
}

/* -------------------------------------------------------------- facts ---- */

static const struct isa_op_info pseudo = { .name = "pseudo",
					   .pipe = ISA_PIPE_SPECIAL };

const struct isa_op_info *mir_info(const struct mir_inst *i)
{
	return i->op < ISA_OP_COUNT ? isa_op_info(i->op) : &pseudo;
}

bool mir_writes_exec(const struct mir_inst *i)
{
	if (mir_isa_flags(i) & ISA_WEXEC)
		return true;
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_HW && i->o[k].reg == ISA_R_EXEC_LO)
			return true;
	return false;
}

bool mir_reads_result(const struct mir_inst *i)
{
	return i->flags & MIR_PARTIAL || mir_isa_flags(i) & ISA_RD;
}

/* ------------------------------------------------------------ numbers ---- */

static void count_preds(struct mir_func *m)
{
	for (uint32_t b = 0; b < m->n_order; b++)
		m->order[b]->n_preds = 0;
	for (uint32_t b = 0; b < m->n_order; b++)
		for (uint32_t k = 0; k < m->order[b]->n_succ; k++)
			m->order[b]->succ[k]->n_preds++;
	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_block *x = m->order[b];

		x->pred = arena_alloc(m->arena,
				      (x->n_preds + 1) * sizeof(*x->pred));
		x->n_preds = 0;
	}
	for (uint32_t b = 0; b < m->n_order; b++)
		for (uint32_t k = 0; k < m->order[b]->n_succ; k++) {
			struct mir_block *to = m->order[b]->succ[k];

			to->pred[to->n_preds++] = m->order[b];
		}
}

void mir_number(struct mir_func *m)
{
	uint32_t pos = 1;

	count_preds(m);
	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_block *x = m->order[b];

		x->order = b;
		x->start = pos++;
		for (struct mir_inst *i = x->first; i; i = i->next)
			i->pos = pos++;
		x->end = pos;
	}
	m->n_dwords = 0;
	for (uint32_t v = 1; v < m->n_vregs; v++) {
		m->vreg[v].dword = m->n_dwords;
		m->n_dwords += m->vreg[v].n;
	}
}

/* ---------------------------------------------------------- dead code ---- */

static bool has_effect(const struct mir_inst *i)
{
	if (i->flags & (MIR_KEEP | MIR_TERM | MIR_HEAD) || i->op == MIR_UNDEF)
		return true;
	if (i->op == MIR_COPY)
		return i->o[0].kind != MIR_VREG;
	if (mir_is_store(i) || mir_is_branch(i) ||
	    mir_pipe(i) == ISA_PIPE_SPECIAL || mir_pipe(i) == ISA_PIPE_MSG)
		return true;
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_HW && i->o[k].reg != ISA_R_NULL)
			return true;
	return !i->n_def && !(mir_isa_flags(i) & ISA_WSCC);
}

static void count_uses(const struct mir_inst *i, uint32_t *uses, int by)
{
	for (int k = i->n_def; k < i->n_opnd; k++)
		if (i->o[k].kind == MIR_VREG)
			uses[i->o[k].reg] += (uint32_t)by;
}

static bool is_dead(const struct mir_inst *i, const uint32_t *uses, bool scc)
{
	if (has_effect(i) || (scc && mir_isa_flags(i) & ISA_WSCC))
		return false;
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG && uses[i->o[k].reg])
			return false;
	return true;
}

bool mir_dce(struct mir_func *m)
{
	uint32_t *uses = xcalloc(m->n_vregs, sizeof(*uses));
	bool any = false, more = true;

	MIR_EACH_INST (m, i)
		count_uses(i, uses, 1);
	while (more) {
		more = false;
		for (uint32_t b = m->n_order; b-- > 0;) {
			struct mir_inst *prev;
			bool scc = false;

			for (struct mir_inst *i = m->order[b]->last; i;
			     i = prev) {
				prev = i->prev;
				if (is_dead(i, uses, scc)) {
					count_uses(i, uses, -1);
					mir_remove(i);
					more = any = true;
					continue;
				}
				if (mir_isa_flags(i) & ISA_WSCC)
					scc = false;
				if (mir_isa_flags(i) & ISA_RSCC)
					scc = true;
			}
		}
	}
	free(uses);
	return any;
}

/* -------------------------------------------------------------- print ---- */

static void print_range(struct buf *out, const char *file, int first, int n)
{
	if (n == 1)
		buf_printf(out, "%s%d", file, first);
	else
		buf_printf(out, "%s[%d:%d]", file, first, first + n - 1);
}

static void print_hw(struct buf *out, int reg, int n)
{
	switch (reg) {
	case ISA_R_VCC_LO:
		buf_adds(out, n == 2 ? "vcc" : "vcc_lo");
		return;
	case ISA_R_VCC_HI:
		buf_adds(out, "vcc_hi");
		return;
	case ISA_R_EXEC_LO:
		buf_adds(out, n == 2 ? "exec" : "exec_lo");
		return;
	case ISA_R_EXEC_HI:
		buf_adds(out, "exec_hi");
		return;
	case ISA_R_M0:
		buf_adds(out, "m0");
		return;
	case ISA_R_NULL:
		buf_adds(out, "null");
		return;
	case ISA_R_SCC:
		buf_adds(out, "src_scc");
		return;
	}
	if (reg >= ISA_R_TTMP0 && reg < ISA_R_NULL)
		print_range(out, "ttmp", reg - ISA_R_TTMP0, n);
	else
		print_range(out, "s", reg, n);
}

static void print_vreg(const struct mir_func *m, const struct mir_opnd *o,
		       struct buf *out)
{
	const struct mir_vreg *v = &m->vreg[o->reg];

	if (v->phys >= 0) {
		int reg = v->phys + o->sub;

		if (v->file == MIR_S)
			print_hw(out, reg, o->n);
		else
			print_range(out, "v", reg, o->n);
		return;
	}
	buf_printf(out, "%%%c%u", v->file == MIR_S ? 's' : 'v', o->reg);
	if (o->n != v->n)
		buf_printf(out, ".%d:%d", o->sub, o->n);
}

/* Inline constants are written so that the parser finds them. */
static void print_imm(uint32_t v, int type, struct buf *out)
{
	static const struct {
		uint32_t f32;
		uint16_t f16;
		const char *text;
	} inl[] = {
		{ 0x3f000000, 0x3800, "0.5" }, { 0xbf000000, 0xb800, "-0.5" },
		{ 0x3f800000, 0x3c00, "1.0" }, { 0xbf800000, 0xbc00, "-1.0" },
		{ 0x40000000, 0x4000, "2.0" }, { 0xc0000000, 0xc000, "-2.0" },
		{ 0x40800000, 0x4400, "4.0" }, { 0xc0800000, 0xc400, "-4.0" },
	};
	bool half = type == ISA_T_F16;

	if (v <= 64 || (int32_t)v >= -16) {
		if ((int32_t)v <= 64 && (int32_t)v >= -16) {
			buf_printf(out, "%d", (int)v);
			return;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(inl); i++)
		if (half ? v == inl[i].f16 : v == inl[i].f32) {
			buf_adds(out, inl[i].text);
			return;
		}
	buf_printf(out, "0x%x", v);
}

/* Counters that are waited for: those below their maximum. */
static void print_waitcnt(const struct mir_func *m, uint32_t v, struct buf *out)
{
	const struct isa_waits w = isa_waits_of(m->gen, v);
	const bool vm = w.vm != ISA_WAITS_VM;

	if (vm)
		buf_printf(out, "vmcnt(%u)", w.vm);
	if (w.lgkm != ISA_WAITS_LGKM)
		buf_printf(out, "%slgkmcnt(%u)", vm ? " " : "", w.lgkm);
}

/* One or two dependencies: INSTID0 3:0, INSTSKIP 6:4, INSTID1 10:7. */
static void print_delay(uint32_t v, struct buf *out)
{
	static const char *const id[] = {
		"NO_DEP",	 "VALU_DEP_1",	  "VALU_DEP_2",
		"VALU_DEP_3",	 "VALU_DEP_4",	  "TRANS32_DEP_1",
		"TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1",
		"SALU_CYCLE_1",	 "SALU_CYCLE_2",  "SALU_CYCLE_3",
	};
	static const char *const skip[] = { "SAME",   "NEXT",	"SKIP_1",
					    "SKIP_2", "SKIP_3", "SKIP_4" };

	buf_printf(out, "instid0(%s)", id[v & 15]);
	if (v >> 7)
		buf_printf(out, " | instskip(%s) | instid1(%s)",
			   skip[v >> 4 & 7], id[v >> 7]);
}

static void print_simm16(const struct mir_func *m, uint32_t v, int slot,
			 struct buf *out)
{
	if (slot == ISA_SLOT_WAITCNT)
		print_waitcnt(m, v, out);
	else if (slot == ISA_SLOT_DELAY)
		print_delay(v, out);
	else
		buf_printf(out, "0x%x", v);
}

static void print_opnd(const struct mir_func *m, const struct mir_opnd *o,
		       const struct isa_operand_info *info, struct buf *out)
{
	if (o->mods & ISA_M_NEG)
		buf_addc(out, '-');
	if (o->mods & ISA_M_ABS)
		buf_addc(out, '|');
	switch (o->kind) {
	case MIR_VREG:
		print_vreg(m, o, out);
		break;
	case MIR_HW:
		print_hw(out, (int)o->reg, o->n);
		break;
	case MIR_IMM:
		print_imm(o->imm, info->type, out);
		break;
	case MIR_LABEL:
		buf_printf(out, "BB%u", o->label->id);
		break;
	case MIR_OFF:
		buf_adds(out, "off");
		break;
	case MIR_WORD:
		buf_adds(out, o->word);
		break;
	case MIR_SIMM16:
		print_simm16(m, o->imm, info->slot, out);
		break;
	}
	if (o->mods & ISA_M_ABS)
		buf_addc(out, '|');
}

/* Pseudo operations: for dumps only. */
static const char *op_name(const struct mir_func *m, const struct mir_inst *i)
{
	if (i->op == MIR_COPY)
		return "COPY";
	if (i->op == MIR_UNDEF)
		return "UNDEF";
	return isa_op_name(m->gen, i->op);
}

static void print_half(const struct mir_func *m, const struct mir_inst *i,
		       const char *name, bool dual, struct buf *out)
{
	static const struct isa_operand_info none;
	const struct isa_op_info *op = mir_info(i);
	/* The halves of a dual instruction read VCC without naming it. */
	int n = i->n_opnd - (dual && i->op == ISA_v_cndmask_b32);

	buf_adds(out, name);
	for (int k = 0; k < n; k++) {
		buf_adds(out, k ? ", " : " ");
		print_opnd(m, &i->o[k], k < op->n_opnd ? &op->opnd[k] : &none,
			   out);
	}
	if (mir_is_smem(i) && i->off)
		buf_printf(out, " offset:0x%x", (unsigned)i->off);
	else if (i->off)
		buf_printf(out, " offset:%d", i->off);
	buf_adds(out, i->tail);
}

static void dual_name(const struct mir_inst *i, struct buf *name)
{
	buf_reset(name);
	buf_printf(name, "v_dual_%s", mir_info(i)->name + 2);
}

void mir_print_inst(const struct mir_func *m, const struct mir_inst *i,
		    struct buf *out)
{
	struct buf name = { 0 };

	if (!i->pair) {
		print_half(m, i, op_name(m, i), false, out);
		return;
	}
	dual_name(i, &name);
	print_half(m, i, name.data, true, out);
	buf_adds(out, " :: ");
	dual_name(i->pair, &name);
	print_half(m, i->pair, name.data, true, out);
	buf_fini(&name);
}

void mir_print(const struct mir_func *m, struct buf *out)
{
	for (uint32_t b = 0; b < m->n_order; b++) {
		const struct mir_block *x = m->order[b];

		buf_printf(out, "BB%u:", x->id);
		for (uint32_t k = 0; k < x->n_succ; k++)
			buf_printf(out, "%s BB%u", k ? "," : " ; to",
				   x->succ[k]->id);
		buf_addc(out, '\n');
		for (const struct mir_inst *i = x->first; i; i = i->next) {
			buf_addc(out, '\t');
			mir_print_inst(m, i, out);
			buf_adds(out,
				 i->flags & MIR_GLUED ? "  ; glued\n" : "\n");
		}
	}
}
