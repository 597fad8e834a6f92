/*
 * compiler/backend/dag.c - the scheduling DAG: dependences and their latencies.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/backend/backend_int.h"
#include "compiler/ssa/ssa.h"

/* ------------------------------------------------------------ latency ---- */

static struct isa_inst as_isa(const struct mir_inst *i,
			      const struct mir_func *m)
{
	struct isa_inst in = { .op = i->op };

	if (i->op == MIR_COPY)
		in.op = mir_is_v(m, &i->o[0]) ? ISA_v_mov_b32 : ISA_s_mov_b32;
	else if (i->op >= ISA_OP_COUNT)
		in.op = ISA_s_nop;
	in.fmt = isa_op_info(in.op)->fmt;
	if (i->flags & MIR_DPP)
		in.form = ISA_FORM_DPP16;
	return in;
}

enum unit { UNIT_VALU, UNIT_SALU, UNIT_SMEM, UNIT_MEM, UNIT_OTHER };

static enum unit unit_of(const struct sched_dag *g, const struct mir_inst *i)
{
	if (i->op == MIR_COPY)
		return mir_is_v(g->m, &i->o[0]) ? UNIT_VALU : UNIT_SALU;
	if (mir_is_valu(i))
		return UNIT_VALU;
	if (mir_is_salu(i))
		return UNIT_SALU;
	if (mir_is_smem(i))
		return UNIT_SMEM;
	return mir_is_vmem(i) || mir_is_ds(i) ? UNIT_MEM : UNIT_OTHER;
}

static double cost_of(const struct sched_dag *g, enum cost_row r)
{
	return cost_value(g->costs, r);
}

/* From the issue of `a` to that of `b`, which reads its result `o`. */
static uint32_t edge_latency(const struct sched_dag *g,
			     const struct mir_inst *a, const struct mir_inst *b,
			     const struct mir_opnd *o)
{
	enum unit from = unit_of(g, a), to = unit_of(g, b);
	struct isa_inst in = as_isa(a, g->m);
	double l = cost_latency(g->costs, &in);

	if (from == UNIT_VALU && mir_is_s(g->m, o))
		l = to == UNIT_VALU ? cost_of(g, COST_VALU_SGPR) :
				      cost_of(g, COST_VALU_TO_SALU);
	else if (from == UNIT_VALU && to == UNIT_MEM)
		l = cost_of(g, COST_VALU_TO_MEM);
	else if (from == UNIT_VALU && mir_pipe(a) == ISA_PIPE_WMMA &&
		 mir_pipe(b) != ISA_PIPE_WMMA)
		l = cost_of(g, COST_WMMA_RESULT);
	else if (from == UNIT_SALU && to == UNIT_VALU)
		l = cost_of(g, COST_SALU_TO_VALU);
	else if (from == UNIT_SALU && to == UNIT_SMEM)
		l = cost_of(g, COST_SALU_TO_SMEM);
	return (uint32_t)(l + 0.5);
}

uint32_t sched_issue_cycles(const struct sched_dag *g, const struct mir_inst *i)
{
	struct isa_inst in = as_isa(i, g->m);
	double c = cost_issue(g->costs, &in);

	return c < 1 ? 1 : (uint32_t)(c + 0.5);
}

/* -------------------------------------------------------------- edges ---- */

static void add_edge(struct sched_dag *g, uint32_t from, uint32_t to,
		     uint32_t lat)
{
	struct sched_node *n = &g->node[from];

	if (from == to)
		return;
	for (uint32_t k = n->n_succ; k-- > 0 && n->n_succ - k < 8;)
		if (n->succ[k] == to) {
			if (n->lat[k] < lat)
				n->lat[k] = (uint16_t)lat;
			return;
		}
	if (n->n_succ == n->cap_succ) {
		n->cap_succ = vec_capacity(n->cap_succ, n->n_succ, 1,
					   sizeof(n->cap_succ),
					   sizeof(*n->succ));
		n->succ = xrealloc(n->succ, n->cap_succ * sizeof(*n->succ));
		n->lat = xrealloc(n->lat, n->cap_succ * sizeof(*n->lat));
	}
	n->succ[n->n_succ] = to;
	n->lat[n->n_succ++] = (uint16_t)lat;
	g->node[to].n_preds++;
}

/* Definition or use of a dword since the start of the part. */
struct access {
	uint32_t node; /* + 1 */
	struct mir_inst *i;
	struct mir_opnd o;
};

struct uses {
	struct access *a;
	uint32_t n, cap;
};

struct tracker {
	struct sched_dag *g;
	struct access *def; /* [dwords] */
	struct uses *use;   /* [dwords] since that definition */
};

static void add_use(struct uses *u, uint32_t node, struct mir_inst *i)
{
	VEC_GROW(u->a, u->n, 1, u->cap);
	u->a[u->n++] = (struct access){ .node = node, .i = i };
}

static void read_dword(struct tracker *t, uint32_t d, uint32_t node,
		       struct mir_inst *i)
{
	struct access *def = &t->def[d];

	if (def->node)
		add_edge(t->g, def->node - 1, node,
			 edge_latency(t->g, def->i, i, &def->o));
	add_use(&t->use[d], node, i);
}

static void write_dword(struct tracker *t, uint32_t d, uint32_t node,
			struct mir_inst *i, const struct mir_opnd *o)
{
	if (t->def[d].node)
		add_edge(t->g, t->def[d].node - 1, node, 1);
	for (uint32_t k = 0; k < t->use[d].n; k++)
		add_edge(t->g, t->use[d].a[k].node, node, 0);
	t->use[d].n = 0;
	t->def[d] = (struct access){ .node = node + 1, .i = i, .o = *o };
}

static void add_register_edges(struct tracker *t, uint32_t node,
			       struct mir_inst *i)
{
	const struct mir_func *m = t->g->m;

	for (int k = 0; k < i->n_opnd; k++) {
		const struct mir_opnd *o = &i->o[k];

		if (o->kind != MIR_VREG ||
		    (k < i->n_def && !mir_reads_result(i)))
			continue;
		for (int j = 0; j < o->n; j++)
			read_dword(t,
				   m->vreg[o->reg].dword + o->sub + (uint32_t)j,
				   node, i);
	}
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG)
			for (int j = 0; j < i->o[k].n; j++)
				write_dword(t,
					    m->vreg[i->o[k].reg].dword +
						    i->o[k].sub + (uint32_t)j,
					    node, i, &i->o[k]);
}

/* ------------------------------------------------------------- memory ---- */

static bool is_fence(const struct mir_inst *i)
{
	return mir_isa_flags(i) & ISA_BARRIER ||
	       (mir_is_vmem(i) && !i->n_opnd) ||
	       (i->flags & MIR_ORDERED && !mir_is_memory(i));
}

static const struct ssa_inst *pointer_base(const struct mir_inst *i)
{
	const struct ssa_inst *p = i->mem->arg[0];

	while (p->op == SSA_ptradd)
		p = p->arg[0];
	return p;
}

/* Different places from the same start. */
static bool are_disjoint(const struct mir_inst *a, const struct mir_inst *b)
{
	const struct ssa_inst *x = a->mem, *y = b->mem;

	return x->arg[0] == y->arg[0] && x->arg[1] == y->arg[1] &&
	       !strncmp(a->tail, " offset0", 8) ==
		       !strncmp(b->tail, " offset0", 8) &&
	       a->off != b->off &&
	       (a->off + a->bytes <= b->off || b->off + b->bytes <= a->off);
}

/* Both come from kernel arguments of which one promises not to overlap. */
static bool are_distinct_objects(const struct mir_inst *a,
				 const struct mir_inst *b, const bool *noalias)
{
	const struct ssa_inst *x = pointer_base(a), *y = pointer_base(b);

	if (x->op == SSA_lds && y->op == SSA_lds)
		return x->imm != y->imm;
	return x->op == SSA_arg && y->op == SSA_arg && x->imm != y->imm &&
	       noalias[x->imm] && noalias[y->imm];
}

static bool must_stay_ordered(const struct mir_inst *a,
			      const struct mir_inst *b, const bool *noalias)
{
	if (is_fence(a) || is_fence(b)) {
		const struct mir_inst *o = is_fence(a) ? b : a;

		return is_fence(o) || !(o->flags & MIR_CONST ||
					mir_is_smem(o));
	}
	if (a->flags & b->flags & MIR_ORDERED)
		return true;
	if (!mir_is_store(a) && !mir_is_store(b))
		return false;
	if (!a->mem || !b->mem)
		return mir_is_smem(a) == mir_is_smem(b);
	if ((a->flags ^ b->flags) & MIR_LDS)
		return false;
	if (a->flags & MIR_CONST || b->flags & MIR_CONST || mir_is_smem(a) ||
	    mir_is_smem(b))
		return false;
	return !are_disjoint(a, b) && !are_distinct_objects(a, b, noalias);
}

static bool touches_memory(const struct mir_inst *i)
{
	/* Lane exchanges through the LDS unit touch none of it. */
	if (i->op == ISA_ds_bpermute_b32)
		return false;
	return mir_is_memory(i) || is_fence(i);
}

static void add_memory_edges(struct sched_dag *g)
{
	struct access *list = xcalloc(g->n * 8 + 8, sizeof(*list));
	uint32_t n = 0, cap = g->n * 8 + 8;

	for (uint32_t k = 0; k < g->n; k++)
		for (struct mir_inst *i = g->node[k].first;; i = i->next) {
			if (touches_memory(i)) {
				for (uint32_t j = 0; j < n; j++)
					if (must_stay_ordered(list[j].i, i,
							      g->m->noalias))
						add_edge(g, list[j].node, k, 1);
				if (n < cap)
					list[n++] = (struct access){ .node = k,
								     .i = i };
			}
			if (i == g->node[k].last)
				break;
		}
	free(list);
}

/* -------------------------------------------------------------- build ---- */

static void make_nodes(struct sched_dag *g, struct mir_inst *first,
		       struct mir_inst *last)
{
	uint32_t n = 0;

	for (struct mir_inst *i = first;; i = i->next) {
		n += !(i->flags & MIR_GLUED);
		if (i == last)
			break;
	}
	g->node = xcalloc(n + 1, sizeof(*g->node));
	g->n = 0;
	for (struct mir_inst *i = first;; i = i->next) {
		if (!(i->flags & MIR_GLUED) || !g->n) {
			g->node[g->n].first = i;
			g->node[g->n].index = g->n;
			g->n++;
		}
		g->node[g->n - 1].last = i;
		if (i == last)
			break;
	}
}

static void compute_heights(struct sched_dag *g)
{
	for (uint32_t k = g->n; k-- > 0;) {
		struct sched_node *n = &g->node[k];

		n->height = 1;
		for (uint32_t j = 0; j < n->n_succ; j++) {
			uint32_t h = g->node[n->succ[j]].height + n->lat[j];

			n->height = h > n->height ? h : n->height;
		}
	}
}

void sched_dag_build(struct sched_dag *g, struct mir_inst *first,
		     struct mir_inst *last)
{
	struct tracker t = { .g = g };

	make_nodes(g, first, last);
	t.def = xcalloc(g->m->n_dwords + 1, sizeof(*t.def));
	t.use = xcalloc(g->m->n_dwords + 1, sizeof(*t.use));
	for (uint32_t k = 0; k < g->n; k++)
		for (struct mir_inst *i = g->node[k].first;; i = i->next) {
			add_register_edges(&t, k, i);
			if (i == g->node[k].last)
				break;
		}
	add_memory_edges(g);
	compute_heights(g);
	for (uint32_t d = 0; d < g->m->n_dwords; d++)
		free(t.use[d].a);
	free(t.use);
	free(t.def);
}

void sched_dag_free(struct sched_dag *g)
{
	for (uint32_t k = 0; k < g->n; k++) {
		free(g->node[k].succ);
		free(g->node[k].lat);
	}
	free(g->node);
}
