/*
 * isa/verify/verify.c - the fixed point over the control-flow graph, and the
 * report.
 *
 * Blocks are visited in reverse postorder until no state changes; one more
 * visit with the final states reports.  Indirect branches whose target turns
 * out to be a constant extend the graph, and the analysis starts again.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/text/text.h"
#include "isa/verify/verify_int.h"

static const struct {
	const char *name, *summary, *remedy;
} rules[VERIFY_RULE_COUNT] = {
#define RULE(id, name, summary, remedy) \
	[VERIFY_##id] = { name, summary, remedy },
#include "isa/verify/verify.def"
#undef RULE
};

const char *verify_rule_name(enum verify_rule rule)
{
	return rules[rule].name;
}

const char *verify_rule_summary(enum verify_rule rule)
{
	return rules[rule].summary;
}

const char *verify_rule_remedy(enum verify_rule rule)
{
	return rules[rule].remedy;
}

enum verify_rule verify_rule_find(const char *name)
{
	int i = 0;

	while (i < VERIFY_RULE_COUNT && strcmp(rules[i].name, name))
		i++;
	return i;
}

const char *ver_reg_name(int reg, char *out)
{
	static const char *const special[] = { "m0", "exec_lo", "exec_hi" };

	if (reg == R_SCC)
		strcpy(out, "scc");
	else if (reg >= R_VGPR)
		snprintf(out, 16, "v%d", reg - R_VGPR);
	else if (reg == ISA_R_VCC_LO || reg == ISA_R_VCC_HI)
		strcpy(out, reg == ISA_R_VCC_LO ? "vcc_lo" : "vcc_hi");
	else if (reg >= ISA_R_M0)
		strcpy(out, special[reg - ISA_R_M0]);
	else if (reg >= ISA_R_TTMP0)
		snprintf(out, 16, "ttmp%d", reg - ISA_R_TTMP0);
	else
		snprintf(out, 16, "s%d", reg);
	return out;
}

/* ------------------------------------------------------------- report ---- */

static bool is_reported(const struct verify_report *r, enum verify_rule rule,
			uint64_t addr)
{
	for (int i = r->n - 1; i >= 0; i--)
		if (r->v[i].rule == rule && r->v[i].addr == addr)
			return true;
	return false;
}

static struct verify_finding *add_finding(struct verifier *v,
					  enum verify_rule rule, uint64_t addr)
{
	struct verify_report *r = v->r;

	if (v->in->allow[rule] || is_reported(r, rule, addr))
		return NULL;
	vec_push(r, (struct verify_finding){ .rule = rule, .addr = addr });
	return &r->v[r->n - 1];
}

static void describe_finding(struct verifier *v, struct verify_finding *f,
			     int insn, const int *block, int n, const char *fmt,
			     va_list ap)
{
	struct cfg *g = &v->g;
	struct verify_step *step;
	char text[ISA_TEXT_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	f->what = arena_strdup(&v->r->mem, text);
	isa_print(&v->in->target, &g->insn[insn].in, text, sizeof(text));
	f->text = arena_strdup(&v->r->mem, text);
	step = arena_alloc(&v->r->mem, (n + 1) * sizeof(*step));
	for (int i = 0; i < n; i++) {
		step[i].addr = cfg_addr(g, g->block[block[i]].first);
		step[i].how = i + 1 < n ? cfg_how(g, block[i], block[i + 1]) :
					  "";
	}
	f->path = step;
	f->n_path = n;
}

void ver_report_path(struct verifier *v, enum verify_rule rule, int insn,
		     const int *block, int n, const char *fmt, ...)
{
	struct verify_finding *f = add_finding(v, rule, cfg_addr(&v->g, insn));
	va_list ap;

	if (!f)
		return;
	va_start(ap, fmt);
	describe_finding(v, f, insn, block, n, fmt, ap);
	va_end(ap);
}

void ver_report(struct verifier *v, enum verify_rule rule, int insn, int via,
		const char *fmt, ...)
{
	enum { MAX = 512 };
	struct verify_finding *f = add_finding(v, rule, cfg_addr(&v->g, insn));
	int path[MAX], n = 0, m = 0, to = v->g.insn[insn].block;
	va_list ap;

	if (!f)
		return;
	if (via >= 0)
		n = cfg_path(&v->g, v->g.func[0].block, via, path, MAX);
	if (via >= 0 && n > 0 && via != to)
		m = cfg_path(&v->g, via, to, path + n - 1, MAX - n + 1);
	if (n <= 0 || m < 0)
		n = cfg_path(&v->g, v->g.func[0].block, to, path, MAX);
	else if (m > 0)
		n += m - 1;
	va_start(ap, fmt);
	describe_finding(v, f, insn, path, n < 0 ? 0 : n, fmt, ap);
	va_end(ap);
}

static int by_address(const void *a, const void *b)
{
	const struct verify_finding *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (int)x->rule - (int)y->rule;
}

void verify_report_fini(struct verify_report *r)
{
	free(r->v);
	arena_fini(&r->mem);
	memset(r, 0, sizeof(*r));
}

/* ------------------------------------------------------------- visits ---- */

struct queue {
	uint8_t *in; /* [order] */
	int lo;	     /* lowest position that may be set */
};

static void enqueue_block(struct verifier *v, struct queue *q, int block)
{
	int at = v->g.block[block].order;

	q->in[at] = 1;
	if (at < q->lo)
		q->lo = at;
}

static void propagate_state(struct verifier *v, struct queue *q, int to,
			    const struct vstate *s)
{
	if (to >= 0 && state_join(v, to, s))
		enqueue_block(v, q, to);
}

/*
 * Does a branch on EXEC test a value written just before?  Only then the path
 * on which EXEC is 0 is real: compilers also use such a branch where EXEC
 * cannot be 0, as one that is always or never taken.
 */
static bool tests_new_exec(const struct cfg *g, const struct cfg_block *b)
{
	for (int i = b->first; i < b->first + b->n; i++)
		if (ver_writes_exec(&g->insn[i]))
			return true;
	return false;
}

static void flow_cond(struct verifier *v, struct queue *q,
		      const struct cfg_block *b, struct vstate *s)
{
	int last = b->first + b->n - 1, was = s->exec_zero;
	int op = tests_new_exec(&v->g, b) ? v->g.insn[last].in.op : 0;

	for (int i = 0; i < 2; i++) {
		bool zero = (op == ISA_s_cbranch_execz && i == 1) ||
			    (op == ISA_s_cbranch_execnz && i == 0);

		s->exec_zero = zero ? last + 1 : was;
		propagate_state(v, q, b->succ[i], s);
	}
}

/* A function's return: its callers continue with these ages. */
static void flow_return(struct verifier *v, struct queue *q, int func,
			const struct vage *a)
{
	bool changed = false;

	if (!v->ret[func]) {
		v->ret[func] = xmalloc(sizeof(*a));
		memcpy(v->ret[func], a, sizeof(*a));
		changed = true;
	} else {
		wait_join(v->ret[func], a, &changed);
	}
	if (!changed)
		return;
	for (int b = 0; b < v->g.n_blocks; b++)
		if (v->g.block[b].callee == func && v->at[b])
			enqueue_block(v, q, b);
}

static void flow_call(struct verifier *v, struct queue *q, int block,
		      struct vstate *s, struct vstate *tmp)
{
	const struct cfg_block *b = &v->g.block[block];
	int call = b->first + b->n - 1;

	if (b->callee >= 0) {
		memcpy(tmp, s, v->state_bytes);
		state_call(v, tmp, b->callee);
		propagate_state(v, q, v->g.func[b->callee].block, tmp);
		if (!v->ret[b->callee])
			return;
	}
	state_return(v, s, call, b->callee);
	if (b->end == CFG_CALL)
		propagate_state(v, q, b->succ[0], s);
	else
		flow_return(v, q, b->func, &s->age);
}

static uint32_t tested_value(struct verifier *v, const struct vstate *s, int op)
{
	switch (op) {
	case ISA_s_cbranch_scc0:
	case ISA_s_cbranch_scc1:
		return s->v[R_SCC];
	case ISA_s_cbranch_vccz:
	case ISA_s_cbranch_vccnz:
		return v->in->target.wave == 32 ?
			       s->v[ISA_R_VCC_LO] :
			       val_expr(&v->val, 0, s->v[ISA_R_VCC_LO],
					s->v[ISA_R_VCC_HI], 0);
	case ISA_s_cbranch_execz:
	case ISA_s_cbranch_execnz:
		return s->v[ISA_R_EXEC_LO];
	}
	return 0;
}

/* A constant in the register of s_swappc_b64 or s_setpc_b64 is a target. */
static void learn_target(struct verifier *v, const struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	const struct isa_operand *o;
	uint32_t lo, hi;
	uint64_t at;

	if (x->in.op != ISA_s_swappc_b64 && x->in.op != ISA_s_setpc_b64)
		return;
	o = &x->in.opnd[x->in.n_opnd - 1];
	if (o->kind != ISA_K_SGPR ||
	    !val_is_const(&v->val, s->v[o->reg], &lo) ||
	    !val_is_const(&v->val, s->v[o->reg + 1], &hi))
		return;
	at = (uint64_t)hi << 32 | lo;
	cfg_add_target(&v->g, x->off,
		       at - v->in->vaddr < v->in->size_bytes ?
			       at - v->in->vaddr :
			       UINT32_MAX);
}

static void visit_block(struct verifier *v, struct queue *q, int block,
			struct vstate *s, struct vstate *tmp)
{
	const struct cfg_block *b = &v->g.block[block];
	int last = b->first + b->n - 1;

	memcpy(s, v->at[block], v->state_bytes);
	for (int i = b->first; i <= last; i++) {
		if (v->check) {
			hazard_check(v, s, i);
			budget_check(v, s, i);
		} else if (i == last) {
			learn_target(v, s, i);
		}
		if (i == last)
			v->cond_out[block] =
				tested_value(v, s, v->g.insn[i].in.op);
		wait_step(v, s, i);
		exec_check(v, s, i);
		undef_step(v, s, i);
		lds_step(v, s, i);
		step_values(v, s, i);
	}
	v->exec_out[block] = s->v[ISA_R_EXEC_LO];
	if (v->check)
		return;
	switch (b->end) {
	case CFG_FALL:
	case CFG_JUMP:
		propagate_state(v, q, b->succ[0], s);
		break;
	case CFG_COND:
		flow_cond(v, q, b, s);
		break;
	case CFG_CALL:
		flow_call(v, q, block, s, tmp);
		break;
	case CFG_RETURN:
		if (b->callee >= 0)
			flow_call(v, q, block, s, tmp);
		else if (b->func > 0)
			flow_return(v, q, b->func, &s->age);
		break;
	case CFG_STOP:
		break;
	}
}

static void fixed_point(struct verifier *v)
{
	int n = v->g.n_blocks;
	struct queue q = { .in = xcalloc(n + 1, 1), .lo = n };
	struct vstate *s = xcalloc(1, v->state_bytes);
	struct vstate *tmp = xcalloc(1, v->state_bytes);
	int root = v->g.func[0].block;

	v->at[root] = state_entry(v);
	enqueue_block(v, &q, root);
	while (q.lo < n) {
		int at = q.lo++;

		if (!q.in[at])
			continue;
		q.in[at] = 0;
		visit_block(v, &q, v->g.rpo[at], s, tmp);
	}
	free(q.in);
	free(s);
	free(tmp);
}

static void report_all(struct verifier *v)
{
	struct vstate *s = xcalloc(1, v->state_bytes);
	const struct cfg *g = &v->g;

	v->check = true;
	for (int b = 0; b < g->n_blocks; b++)
		if (v->at[b])
			visit_block(v, NULL, b, s, NULL);
	exec_check_joins(v);
	loops_check(v);
	free(s);
}

/* Faults of the code itself; some have no instruction to print. */
static void report_faults(struct verifier *v)
{
	const struct cfg *g = &v->g;

	for (int i = 0; i < g->n_faults; i++) {
		const struct cfg_fault *f = &g->fault[i];
		struct verify_finding *x;
		int insn = g->at[f->off / 4], from = g->at[f->from / 4];
		uint32_t w = 0;

		if (insn >= 0 && v->at[g->insn[insn].block]) {
			ver_report(v, f->rule, insn, -1, "%s", f->what);
			continue;
		}
		/* Path to the instruction before, at the fault's address. */
		if (from >= 0)
			ver_report(v, f->rule, from, -1, "%s", f->what);
		x = v->r->n ? &v->r->v[v->r->n - 1] : NULL;
		if (from >= 0 && x && x->addr == cfg_addr(g, from))
			x->addr = g->in->vaddr + f->off;
		else
			x = add_finding(v, f->rule, g->in->vaddr + f->off);
		if (!x)
			continue;
		memcpy(&w, g->in->code + f->off, 4);
		x->text = arena_printf(&v->r->mem, ".long 0x%08x", w);
		x->what = arena_strdup(&v->r->mem, f->what);
	}
}

/* LLVM's UserSGPRInit16Bug: less than 16 SGPRs are initialised wrongly. */
static void check_user_sgprs(struct verifier *v)
{
	const struct verify_input *in = v->in;
	int n = in->user_sgprs + in->system_sgprs;

	if (in->user_sgprs < 0 ||
	    !(isa_gen_info(in->target.gen)->hazards & ISA_HZ_SGPRS) ||
	    in->target.wave != 32 || n >= 16 || !v->g.n_insns)
		return;
	ver_report(v, VERIFY_SGPR_INIT16, v->g.block[v->g.func[0].block].first,
		   -1,
		   "%d user and %d system SGPRs are initialised; the hardware "
		   "needs 16 together",
		   in->user_sgprs, in->system_sgprs);
}

static void verifier_init(struct verifier *v)
{
	cfg_build(&v->g);
	lds_collect(v);
	v->state_bytes = sizeof(struct vstate) + 8 * (size_t)v->lds_words;
	v->at = xcalloc(v->g.n_blocks + 1, sizeof(*v->at));
	v->stale = xcalloc(v->g.n_blocks + 1, 1);
	loops_collect(v);
	v->ret = xcalloc(v->g.n_funcs + 1, sizeof(*v->ret));
	v->exec_out = xcalloc(v->g.n_blocks + 1, sizeof(uint32_t));
	v->cond_out = xcalloc(v->g.n_blocks + 1, sizeof(uint32_t));
	val_init(&v->val);
}

static void verifier_fini(struct verifier *v)
{
	for (int b = 0; b < v->g.n_blocks; b++) {
		free(v->at[b]);
		free(v->loop[b]);
	}
	free(v->loop);
	free(v->stale);
	for (int f = 0; f < v->g.n_funcs; f++)
		free(v->ret[f]);
	free(v->at);
	free(v->ret);
	free(v->exec_out);
	free(v->cond_out);
	free(v->lds);
	free(v->lds_of);
	val_fini(&v->val);
	cfg_reset(&v->g);
}

/* More rounds than nested unresolved calls are not worth the time. */
enum { MAX_ROUNDS = 32 };

bool isa_verify(const struct verify_input *in, struct verify_report *r,
		struct err *e)
{
	struct verifier v = { .in = in, .g = { .in = in }, .r = r };
	int known;

	if (in->size_bytes % 4 || in->size_bytes > UINT32_MAX / 2 ||
	    in->entry < in->vaddr || in->entry % 4 ||
	    in->entry - in->vaddr >= in->size_bytes)
		return err_set(e, ERR_INPUT,
			       "verify: entry 0x%llx is not in the %zu bytes "
			       "of code at 0x%llx",
			       (unsigned long long)in->entry, in->size_bytes,
			       (unsigned long long)in->vaddr);
	v.several_waves = !in->max_workgroup ||
			  in->max_workgroup > in->target.wave;
	for (int round = 0;; round++) {
		known = v.g.n_targets;
		verifier_init(&v);
		if (v.g.func[0].block < 0)
			break;
		fixed_point(&v);
		if (v.g.n_targets == known || round == MAX_ROUNDS)
			break;
		verifier_fini(&v);
	}
	if (v.g.func[0].block >= 0) {
		report_all(&v);
		check_user_sgprs(&v);
	}
	report_faults(&v);
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_address);
	r->n_insns = v.g.n_insns;
	r->n_blocks = v.g.n_blocks;
	verifier_fini(&v);
	cfg_fini(&v.g);
	return true;
}
