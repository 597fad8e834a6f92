/*
 * isa/verify/cfg.c - reachable machine code as a graph of blocks.
 *
 * First a walk from every entry marks where instructions start and which of
 * them are leaders; then the instructions are decoded into one array in the
 * order of their addresses and cut into blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/verify/cfg_int.h"

enum { M_START = 1, M_INSIDE = 2, M_LEADER = 4 };

struct walk {
	struct cfg *g;
	struct {
		uint32_t off, from;
	} * todo;
	int n, cap;
	struct isa_target t;
};

static void fault_after(struct cfg *g, enum verify_rule rule, uint32_t off,
			uint32_t from, const char *what)
{
	for (int i = 0; i < g->n_faults; i++)
		if (g->fault[i].off == off && g->fault[i].rule == rule)
			return;
	VEC_GROW(g->fault, g->n_faults, 1, g->cap_faults);
	g->fault[g->n_faults++] = (struct cfg_fault){ rule, off, from, what };
}

static void add_fault(struct cfg *g, enum verify_rule rule, uint32_t off,
		      const char *what)
{
	fault_after(g, rule, off, off, what);
}

static int find_func(struct cfg *g, uint32_t entry)
{
	const struct verify_input *in = g->in;
	struct cfg_func f = { 0, in->size_bytes, entry, -1 };

	for (int i = 0; i < g->n_funcs; i++)
		if (g->func[i].entry == entry)
			return i;
	for (int i = 0; i < in->n_funcs; i++)
		if (in->func[i].start <= in->vaddr + entry &&
		    in->vaddr + entry < in->func[i].end) {
			f.lo = in->func[i].start - in->vaddr;
			f.hi = in->func[i].end - in->vaddr;
		}
	VEC_GROW(g->func, g->n_funcs, 1, g->cap_funcs);
	g->func[g->n_funcs] = f;
	return g->n_funcs++;
}

static const struct cfg_target *target_of(const struct cfg *g, uint32_t off)
{
	for (int i = 0; i < g->n_targets; i++)
		if (g->target[i].from == off)
			return &g->target[i];
	return NULL;
}

bool cfg_add_target(struct cfg *g, uint32_t from, uint32_t to)
{
	for (int i = 0; i < g->n_targets; i++)
		if (g->target[i].from == from)
			return false;
	VEC_GROW(g->target, g->n_targets, 1, g->cap_targets);
	g->target[g->n_targets++] = (struct cfg_target){ from, to };
	return true;
}

/* Target of the relative branch at `off`, as a byte offset. */
static int64_t branch_to(const struct isa_inst *in, uint32_t off)
{
	return (int64_t)off + 4 + 4 * (int64_t)(int16_t)in->f[ISA_F_SIMM16];
}

static enum cfg_end end_of(const struct isa_inst *in)
{
	if (isa_op_info(in->op)->flags & ISA_END)
		return CFG_STOP;
	switch (in->op) {
	case ISA_s_branch:
		return CFG_JUMP;
	case ISA_s_cbranch_scc0:
	case ISA_s_cbranch_scc1:
	case ISA_s_cbranch_vccz:
	case ISA_s_cbranch_vccnz:
	case ISA_s_cbranch_execz:
	case ISA_s_cbranch_execnz:
	case ISA_s_cbranch_cdbgsys:
	case ISA_s_cbranch_cdbguser:
	case ISA_s_cbranch_cdbgsys_or_user:
	case ISA_s_cbranch_cdbgsys_and_user:
	case ISA_s_subvector_loop_begin:
	case ISA_s_subvector_loop_end:
		return CFG_COND;
	case ISA_s_call_b64:
	case ISA_s_swappc_b64:
		return CFG_CALL;
	case ISA_s_setpc_b64:
	case ISA_s_rfe_b64:
		return CFG_RETURN;
	case ISA_s_code_end:
		return CFG_STOP;
	}
	return CFG_FALL;
}

static void push_offset(struct walk *w, uint32_t off, uint32_t from)
{
	VEC_GROW(w->todo, w->n, 1, w->cap);
	w->todo[w->n].off = off;
	w->todo[w->n++].from = from;
}

/* A branch from `from` to `to` within function `f`: follow or report. */
static void follow_branch(struct walk *w, const struct cfg_func *f,
			  uint32_t from, int64_t to)
{
	if (to < f->lo || to >= f->hi) {
		add_fault(w->g, VERIFY_BRANCH_OUT, from,
			  "it goes to an address outside its function");
		return;
	}
	push_offset(w, to, from);
}

/* Successors of an instruction that ends a block. */
static void end_block(struct walk *w, int func, const struct isa_inst *in,
		      uint32_t off, enum cfg_end end)
{
	struct cfg *g = w->g;
	const struct cfg_target *t = target_of(g, off);
	int64_t to = in->op == ISA_s_call_b64 || end == CFG_JUMP ||
				     end == CFG_COND ?
			     branch_to(in, off) :
			     -1;

	if (end == CFG_JUMP || end == CFG_COND) {
		follow_branch(w, &g->func[func], off, to);
	} else if (end == CFG_CALL || end == CFG_RETURN) {
		if (t)
			to = t->to;
		else if (end == CFG_RETURN || in->op != ISA_s_call_b64)
			return;
		if (to < 0 || (uint64_t)to >= g->in->size_bytes || to % 4)
			add_fault(g, VERIFY_BRANCH_OUT, off,
				  "it calls an address outside the code");
		else
			find_func(g, to);
	}
}

/* Mark [off, off + size); false if it overlaps another instruction. */
static bool claim_bytes(struct walk *w, uint32_t off, uint32_t size,
			uint32_t from)
{
	struct cfg *g = w->g;

	if (g->mark[off / 4] & M_INSIDE) {
		add_fault(g, VERIFY_BRANCH_OUT, from,
			  "it lands inside another instruction");
		return false;
	}
	g->mark[off / 4] |= M_START;
	for (uint32_t i = off / 4 + 1; i < (off + size) / 4; i++) {
		if (g->mark[i] & M_START)
			add_fault(g, VERIFY_BRANCH_OUT, (uint32_t)g->at[i],
				  "it lands inside another instruction");
		g->mark[i] |= M_INSIDE;
	}
	return true;
}

/* Linear decoding from `off` on; `from` is the branch that led there. */
static void walk_line(struct walk *w, int func, uint32_t off, uint32_t from)
{
	struct cfg *g = w->g;
	/* Padding at the end of a function is not the instruction to blame. */
	uint32_t hi = g->func[func].hi, prev = from, real = from;

	g->mark[off / 4] |= M_LEADER;
	while (!(g->mark[off / 4] & M_START)) {
		struct isa_inst in;
		const char *why =
			isa_decode(&w->t, g->in->code + off, hi - off, &in);
		enum cfg_end end;

		if (why) {
			fault_after(g, VERIFY_NO_CODE, off, prev, why);
			return;
		}
		g->at[off / 4] = from;
		if (in.op == ISA_s_code_end) {
			add_fault(g, VERIFY_OFF_END, real,
				  "only padding follows");
			return;
		}
		if (!claim_bytes(w, off, in.size_bytes, from))
			return;
		end = end_of(&in);
		end_block(w, func, &in, off, end);
		prev = off;
		if (in.op != ISA_s_nop)
			real = off;
		off += in.size_bytes;
		if (end == CFG_JUMP || end == CFG_STOP || end == CFG_RETURN)
			return;
		if (off >= hi) {
			add_fault(g, VERIFY_OFF_END, real,
				  "nothing of the function follows");
			return;
		}
		if (end != CFG_FALL)
			g->mark[off / 4] |= M_LEADER;
	}
}

static void walk_all(struct walk *w)
{
	struct cfg *g = w->g;

	for (int f = 0; f < g->n_funcs; f++) {
		push_offset(w, g->func[f].entry, g->func[f].entry);
		while (w->n) {
			uint32_t off = w->todo[--w->n].off;

			walk_line(w, f, off, w->todo[w->n].from);
		}
	}
	free(w->todo);
}

static bool is_salu(int fmt)
{
	return fmt == ISA_FMT_SOP1 || fmt == ISA_FMT_SOP2 ||
	       fmt == ISA_FMT_SOPC || fmt == ISA_FMT_SOPK;
}

static bool is_vmem(int fmt)
{
	switch (fmt) {
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
	case ISA_FMT_MIMG:
		return true;
	}
	return false;
}

/* Decode the marked instructions in the order of addresses. */
static void decode_all(struct walk *w)
{
	struct cfg *g = w->g;
	size_t dwords = g->in->size_bytes / 4;
	int n = 0;

	for (size_t i = 0; i < dwords; i++)
		n += g->mark[i] & M_START;
	g->insn = xcalloc(n + 1, sizeof(*g->insn));
	for (size_t i = 0; i < dwords; i++) {
		struct cfg_insn *x = &g->insn[g->n_insns];

		g->at[i] = -1;
		if (!(g->mark[i] & M_START))
			continue;
		x->off = 4 * i;
		isa_decode(&w->t, g->in->code + x->off,
			   g->in->size_bytes - x->off, &x->in);
		isa_use(&w->t, &x->in, &x->use);
		x->flags = isa_op_info(x->in.op)->flags |
			   isa_op_info(x->in.op_y)->flags;
		x->pipe = isa_op_info(x->in.op)->pipe;
		x->valu = isa_fmt_is_valu(x->in.fmt);
		x->salu = is_salu(x->in.fmt);
		x->vmem = is_vmem(x->in.fmt);
		x->lds_dir = x->in.fmt == ISA_FMT_LDSDIR;
		g->at[i] = g->n_insns++;
	}
}

static int block_at(const struct cfg *g, int64_t off)
{
	int i;

	if (off < 0 || off >= (int64_t)g->in->size_bytes)
		return -1;
	i = g->at[off / 4];
	return i < 0 ? -1 : g->insn[i].block;
}

static bool starts_block(const struct cfg *g, int i)
{
	const struct cfg_insn *prev = i ? &g->insn[i - 1] : NULL;

	return !prev || g->mark[g->insn[i].off / 4] & M_LEADER ||
	       prev->off + prev->in.size_bytes != g->insn[i].off ||
	       end_of(&prev->in) != CFG_FALL;
}

static void make_blocks(struct cfg *g)
{
	int b = -1;

	g->block = xcalloc(g->n_insns + 1, sizeof(*g->block));
	for (int i = 0; i < g->n_insns; i++) {
		if (starts_block(g, i)) {
			b++;
			g->block[b] = (struct cfg_block){
				.first = i,
				.succ = { -1, -1 },
				.func = -1,
				.callee = -1,
				.order = -1,
				.scc = -1,
			};
		}
		g->block[b].n++;
		g->insn[i].block = b;
	}
	g->n_blocks = b + 1;
}

static void link_block(struct cfg *g, struct cfg_block *b)
{
	const struct cfg_insn *x = &g->insn[b->first + b->n - 1];
	const struct cfg_target *t = target_of(g, x->off);
	int next = block_at(g, x->off + x->in.size_bytes);

	b->end = end_of(&x->in);
	switch (b->end) {
	case CFG_FALL:
		b->succ[0] = next;
		break;
	case CFG_JUMP:
		b->succ[0] = block_at(g, branch_to(&x->in, x->off));
		break;
	case CFG_COND:
		b->succ[0] = next;
		b->succ[1] = block_at(g, branch_to(&x->in, x->off));
		break;
	case CFG_CALL:
		b->succ[0] = next;
		/* fallthrough */
	case CFG_RETURN:
		for (int f = 0; f < g->n_funcs; f++)
			if ((t && g->func[f].entry == t->to) ||
			    (x->in.op == ISA_s_call_b64 &&
			     (int64_t)g->func[f].entry ==
				     branch_to(&x->in, x->off)))
				b->callee = f;
		break;
	case CFG_STOP:
		break;
	}
	if (b->end != CFG_COND && b->end != CFG_CALL && b->succ[0] < 0 &&
	    b->end != CFG_RETURN)
		b->end = CFG_STOP;
}

static void make_preds(struct cfg *g)
{
	int n = 0;

	for (int b = 0; b < g->n_blocks; b++)
		for (int s = 0; s < 2; s++)
			if (g->block[b].succ[s] >= 0)
				g->block[g->block[b].succ[s]].n_preds++;
	for (int b = 0; b < g->n_blocks; b++) {
		g->block[b].pred = n;
		n += g->block[b].n_preds;
		g->block[b].n_preds = 0;
	}
	g->preds = xcalloc(n + 1, sizeof(*g->preds));
	for (int b = 0; b < g->n_blocks; b++)
		for (int s = 0; s < 2; s++) {
			int to = g->block[b].succ[s];

			if (to >= 0)
				g->preds[g->block[to].pred +
					 g->block[to].n_preds++] = b;
		}
}

void cfg_build(struct cfg *g)
{
	struct walk w = { .g = g, .t = g->in->target };
	size_t dwords = g->in->size_bytes / 4;

	g->at = xcalloc(dwords + 1, sizeof(*g->at));
	g->mark = xcalloc(dwords + 1, 1);
	find_func(g, g->in->entry - g->in->vaddr);
	walk_all(&w);
	decode_all(&w);
	make_blocks(g);
	for (int b = 0; b < g->n_blocks; b++)
		link_block(g, &g->block[b]);
	make_preds(g);
	for (int f = 0; f < g->n_funcs; f++)
		g->func[f].block = block_at(g, g->func[f].entry);
	cfg_order(g);
}

void cfg_reset(struct cfg *g)
{
	free(g->insn);
	free(g->block);
	free(g->preds);
	free(g->rpo);
	free(g->at);
	free(g->mark);
	g->insn = NULL;
	g->block = NULL;
	g->preds = g->rpo = NULL;
	g->at = NULL;
	g->mark = NULL;
	g->n_insns = g->n_blocks = g->n_funcs = g->n_faults = 0;
}

void cfg_fini(struct cfg *g)
{
	cfg_reset(g);
	free(g->func);
	free(g->fault);
	free(g->target);
}

int cfg_path(const struct cfg *g, int from, int to, int *out, int max)
{
	int *back = xmalloc((g->n_blocks + 1) * sizeof(int));
	int *queue = xmalloc((g->n_blocks + 1) * sizeof(int));
	int head = 0, tail = 0, n = 0;

	for (int b = 0; b < g->n_blocks; b++)
		back[b] = -2;
	queue[tail++] = from;
	back[from] = -1;
	while (head < tail && back[to] == -2) {
		const struct cfg_block *b = &g->block[queue[head]];
		int s[3] = { b->succ[0], b->succ[1],
			     b->callee >= 0 ? g->func[b->callee].block : -1 };

		for (int i = 0; i < 3; i++)
			if (s[i] >= 0 && back[s[i]] == -2) {
				back[s[i]] = queue[head];
				queue[tail++] = s[i];
			}
		head++;
	}
	if (back[to] == -2) {
		n = -1;
	} else {
		for (int b = to; b >= 0; b = back[b])
			n++;
		int i = n;

		for (int b = to; b >= 0; b = back[b])
			if (--i < max)
				out[i] = b;
		if (n > max)
			n = max;
	}
	free(back);
	free(queue);
	return n;
}

const char *cfg_how(const struct cfg *g, int b, int next)
{
	const struct cfg_block *x = &g->block[b];

	switch (x->end) {
	case CFG_FALL:
		return "falls";
	case CFG_COND:
		return next == x->succ[1] ? "taken" : "not taken";
	case CFG_CALL:
		return next == x->succ[0] ? "returns" : "calls";
	default:
		return "goes";
	}
}

bool cfg_uses(const struct cfg_insn *x, int file, int role, int reg, int count)
{
	for (int i = 0; i < x->use.n; i++)
		if (x->use.reg[i].file == file && x->use.reg[i].role & role &&
		    x->use.reg[i].reg < reg + count &&
		    reg < x->use.reg[i].reg + x->use.reg[i].count)
			return true;
	return false;
}
