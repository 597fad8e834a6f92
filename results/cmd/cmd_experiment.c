/*
 * results/cmd/cmd_experiment.c - changes that are tried one after the other,
 * each against the same base by the same evaluator, and kept or discarded.
 *
 * The evaluator is the command, the files that belong to it and the check: its
 * hash is part of every row, and a change that touches one of these files is
 * discarded, so nobody gets better by changing what is asked.
 */
#include "results/cmd/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "results/process/process.h"

struct experimenting {
	struct commits c;
	struct changes list;
	struct outcome *out; /* [list.n] */
	struct candidate base;
	struct experiment_key key;
	char evaluator[RES_IDENTITY];
	uint64_t until_ns; /* of the budget; 0: none */
};

/* A change as it is measured. */
struct trial {
	struct candidate k;
	struct buf name;
	wordexp_t words; /* of env and args */
	VEC(const char *) argv;
};

/* ----------------------------------------------------------- evaluator -- */

/* A file of the evaluator: a tree's own, or one that lies elsewhere. */
static void evaluator_path(const struct tree *tree, const char *file,
			   struct buf *out)
{
	if (*file != '/')
		buf_printf(out, "%s/%s", tree->path.data, file);
	if (*file == '/' || access(out->data, F_OK)) {
		buf_reset(out);
		buf_adds(out, file);
	}
}

static bool hash_file(const struct tree *tree, const char *file,
		      char out[RES_IDENTITY], struct err *e)
{
	struct buf path = { 0 }, bytes = { 0 };

	evaluator_path(tree, file, &path);
	bool ok = file_read(path.data, 0, &bytes, e);
	if (ok)
		res_identity(bytes.data, bytes.len, out);
	buf_fini(&path);
	buf_fini(&bytes);
	return ok;
}

static bool name_evaluator(struct experimenting *x, struct err *e)
{
	const struct show_opts *o = &x->c.s->o;
	const char *const word[] = { o->build, o->check, o->only, o->metric };
	struct buf b = { 0 };
	bool ok = true;

	for (const char *const *w = x->c.words; *w; w++)
		buf_printf(&b, "%s\n", *w);
	for (const char *const *w = x->c.cases; w && *w; w++)
		buf_printf(&b, "case %s\n", *w);
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		buf_printf(&b, "%zu %s\n", i, word[i] ? word[i] : "");
	buf_printf(&b, "%.17g %.17g\n", o->alpha, o->least);
	for (int i = 0; ok && i < o->evaluator.n; i++) {
		char hash[RES_IDENTITY];
		ok = hash_file(&x->base.tree, o->evaluator.v[i], hash, e) ||
		     err_wrap(e, "--evaluator");
		buf_printf(&b, "%s %s\n", o->evaluator.v[i], hash);
	}
	res_identity(b.data, b.len, x->evaluator);
	buf_fini(&b);
	return ok;
}

/* The file of the evaluator that the change differs in; NULL: none. */
static bool find_touched(struct experimenting *x, const struct tree *tree,
			 const char **file, struct err *e)
{
	const struct cli_list *l = &x->c.s->o.evaluator;
	char a[RES_IDENTITY], b[RES_IDENTITY];

	*file = NULL;
	for (int i = 0; i < l->n && !*file; i++) {
		if (!hash_file(&x->base.tree, l->v[i], a, e) ||
		    !hash_file(tree, l->v[i], b, e))
			return false;
		if (strcmp(a, b))
			*file = l->v[i];
	}
	return true;
}

/* ------------------------------------------------------------ one change -- */

static void set_verdict(struct experimenting *x, struct outcome *o,
		   const char *verdict, const char *fmt, ...)
	T0_PRINTF(4, 5);
static void set_verdict(struct experimenting *x, struct outcome *o,
		   const char *verdict, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *s = text; (s = strchr(s, '\n'));)
		*s = ' ';
	o->verdict = verdict;
	o->reason = arena_strdup(&x->list.mem, text);
}

/* The base's tree with another environment or other words. */
static bool prepare_words(struct experimenting *x, const struct change *c,
			  struct trial *t, struct outcome *o)
{
	char id[RES_IDENTITY];

	if (wordexp(c->what, &t->words, WRDE_NOCMD | WRDE_UNDEF)) {
		set_verdict(x, o, "crash", "%s cannot be read as words",
			    c->what);
		return false;
	}
	res_identity(c->what, strlen(c->what), id);
	buf_printf(&t->name, "%.12s+%s-%.8s", x->base.tree.name,
		   change_kind_name(c->kind), strchr(id, ':') + 1);
	buf_printf(&t->k.key, "%s %s %s", x->base.tree.key,
		   change_kind_name(c->kind), c->what);
	t->k.side = x->base.side;
	t->k.side.name = t->name.data;
	t->k.side.key = t->k.key.data;
	if (c->kind == CHANGE_ENV) {
		t->k.side.set = (const char *const *)t->words.we_wordv;
		return true;
	}
	for (const char *const *w = x->c.words; *w; w++)
		vec_push(&t->argv, *w);
	for (size_t i = 0; i < t->words.we_wordc; i++)
		vec_push(&t->argv, t->words.we_wordv[i]);
	vec_push(&t->argv, NULL);
	t->k.side.argv = t->argv.v;
	return true;
}

/* The tree of a commit or patch; false with o->verdict: not to be measured. */
static bool prepare_tree(struct experimenting *x, const struct change *c,
			 struct trial *t, struct outcome *o, struct err *e)
{
	bool patch = c->kind == CHANGE_PATCH;
	const char *touched;

	if (!candidate_build(&x->c, &t->k, patch ? x->base.tree.commit :
			     c->content, patch ? c->what : NULL, e))
		return false;
	if (!t->k.tree.built) {
		set_verdict(x, o, "crash", "%s", t->k.tree.reason);
		return false;
	}
	if (!find_touched(x, &t->k.tree, &touched, e))
		return false;
	if (touched)
		set_verdict(x, o, "discard", "it changes the evaluator: %s",
		       touched);
	else if (!strcmp(t->k.code, x->base.code))
		set_verdict(x, o, "discard", "the same code as the base");
	return !o->verdict;
}

/* --check, in the change's tree and environment. */
static bool is_right(struct experimenting *x, const struct trial *t,
		     struct outcome *o)
{
	const char *check = x->c.s->o.check;
	const char *words[] = { "sh", "-c", check, NULL };
	struct buf log = { 0 };
	struct err why = { 0 };
	size_t n = 0;

	if (!check)
		return true;
	buf_printf(&log, "%s.check", t->k.side.dir);
	while (t->k.side.set && t->k.side.set[n])
		n++;
	struct process p = { "sh", words, t->k.side.dir, t->k.side.set, n,
			     log.data, x->c.s->cmd.stop };
	bool ok = process_run(&p, &why);
	if (!ok && !*p.stop)
		set_verdict(x, o, "discard", "wrong: --check: %.400s", why.msg);
	unlink(log.data);
	buf_fini(&log);
	return ok;
}

/* --------------------------------------------------------------- judged -- */

static void take_row(struct experimenting *x, struct outcome *o,
		     const struct pair *p)
{
	bool higher = !strcmp(p->of_a->better, "higher");
	const struct res_interval *c = &p->effect.change;
	struct buf name = { 0 };

	piece_name(pair_piece(p), &name);
	buf_printf(&name, " %s", pair_piece(p)->metric);
	o->row = arena_strdup(&x->list.mem, name.data);
	buf_fini(&name);
	o->gain = higher ? c->value : -c->value;
	o->lo = higher ? c->lo : -c->hi;
	o->hi = higher ? c->hi : -c->lo;
	o->p = p->effect.p;
}

static bool is_wrong(const struct pair *p)
{
	return p->n_b && p->b.correct && strcmp(p->b.correct, "pass");
}

/* The first of these that any row says decides; then the largest change. */
enum { SAYS_WRONG, SAYS_MISSING, SAYS_WORSE, SAYS_UNCHECKED, SAYS_BETTER,
       SAYS_NOTHING };

static int row_says(const struct experimenting *x, const struct pair *p)
{
	if (is_wrong(p))
		return SAYS_WRONG;
	if (!p->n_b)
		return SAYS_MISSING;
	if (!strcmp(p->verdict, "worse") &&
	    fabs(p->effect.change.value) >= x->c.s->o.least)
		return SAYS_WORSE;
	if (!strcmp(p->verdict, "better, unchecked") && !x->c.s->o.check)
		return SAYS_UNCHECKED;
	return strncmp(p->verdict, "better", 6) ? SAYS_NOTHING : SAYS_BETTER;
}

static void judge_pairs(struct experimenting *x, const struct pairs *pairs,
		  struct outcome *o)
{
	const struct pair *best = NULL;
	int says = SAYS_NOTHING;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *p = &pairs->v[i];
		int now = row_says(x, p);
		if (best && (now > says || (now == says &&
		    !(fabs(p->effect.change.value) >
		      fabs(best->effect.change.value)))))
			continue;
		best = p;
		says = now;
	}
	take_row(x, o, best);
	size_t more = effect_processes(&best->effect, GATE_LIMIT);
	switch (says) {
	case SAYS_WRONG:
		set_verdict(x, o, "discard",
			    "wrong: its results failed a check");
		break;
	case SAYS_MISSING:
		set_verdict(x, o, "discard", "it does not measure this case");
		break;
	case SAYS_WORSE:
		set_verdict(x, o, "discard", "worse");
		break;
	case SAYS_UNCHECKED:
		set_verdict(x, o, "discard", "better, but nothing says that its "
		       "results are right: --check COMMAND");
		break;
	case SAYS_BETTER:
		set_verdict(x, o, "keep", "better");
		break;
	default:
		if (best->effect.exact || !more)
			set_verdict(x, o, "discard", best->effect.exact ?
			       "no change" : "nothing is proven");
		else
			set_verdict(x, o, "discard", "nothing is proven; %zu "
			       "processes a side find %g %%", more,
			       100 * GATE_LIMIT);
	}
}

static bool measure_trial(struct experimenting *x, struct trial *t,
		    struct outcome *o, struct err *e)
{
	struct candidate *const both[] = { &x->base, &t->k };
	struct series s = { .processes = x->key.processes, .recalls = true,
			    .label = x->evaluator, .until_ns = x->until_ns };
	struct pairs pairs;

	if (!commits_measure(&x->c, &s, both, 2, e)) {
		if (e->code == ERR_STOPPED || s.failed != &t->k.side)
			return false;
		set_verdict(x, o, "crash", "%.500s", e->msg);
		*e = (struct err){ 0 };
		return true;
	}
	bool ok = commits_judge(&x->c, &x->base, &t->k, x->c.s->o.alpha /
				(double)x->list.n, &pairs, e);
	if (ok)
		judge_pairs(x, &pairs, o);
	pairs_fini(&pairs);
	return ok;
}

static bool try_change(struct experimenting *x, const struct change *c,
		       struct outcome *o, struct err *e)
{
	struct trial t = { 0 };
	bool tree = c->kind == CHANGE_COMMIT || c->kind == CHANGE_PATCH;
	bool ready = tree ? prepare_tree(x, c, &t, o, e) :
			    prepare_words(x, c, &t, o);
	bool ok = ready || o->verdict;

	if (ready && is_right(x, &t, o))
		ok = measure_trial(x, &t, o, e);
	else if (ready && !o->verdict)
		ok = err_set(e, ERR_STOPPED, "in --check");
	wordfree(&t.words);
	vec_fini(&t.argv);
	candidate_fini(&t.k);
	buf_fini(&t.name);
	return ok;
}

/* ------------------------------------------------------------- the list -- */

/* What was tried is known by the commit, not by a name that may move. */
static bool resolve_commits(struct experimenting *x, struct err *e)
{
	char commit[TREE_COMMIT];

	for (size_t i = 0; i < x->list.n; i++) {
		struct change *c = &x->list.v[i];
		if (c->kind != CHANGE_COMMIT)
			continue;
		if (!trees_resolve(&x->c.trees, c->what, commit, e))
			return false;
		c->content = arena_strdup(&x->list.mem, commit);
	}
	return true;
}

static bool is_over(const struct experimenting *x)
{
	return *x->c.s->cmd.stop ||
	       (x->until_ns && time_mono_ns() > x->until_ns);
}

static bool try_all(struct experimenting *x, struct err *e)
{
	struct cmd *c = &x->c.s->cmd;

	for (size_t i = 0; i < x->list.n; i++) {
		const struct change *k = &x->list.v[i];
		struct outcome *o = &x->out[i];
		*o = (struct outcome){ .row = "", .reason = "", .gain = NAN,
				       .lo = NAN, .hi = NAN, .p = NAN };
		if (!experiment_find(x->c.s->db, &x->key, k, &x->list.mem, o,
				     e))
			return false;
		if (o->verdict || is_over(x))
			continue;
		cmd_remark(c, "%zu of %zu: %s %s", i + 1, x->list.n,
			   change_kind_name(k->kind), k->what);
		if (!try_change(x, k, o, e)) {
			if (e->code != ERR_STOPPED)
				return err_wrap(e, "%s %s",
						change_kind_name(k->kind),
						k->what);
			*e = (struct err){ 0 };
			o->verdict = NULL;
			continue;
		}
		if (!experiment_store(x->c.s->db, &x->key, k, o, e))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- shown -- */

struct ranked {
	const struct change *c;
	const struct outcome *o;
};

static int rank_of(const struct outcome *o)
{
	return !o->verdict ? 3 : !strcmp(o->verdict, "crash") ? 2 :
	       !strcmp(o->verdict, "discard");
}

/* Kept ones first, and what gained most. */
static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int c = rank_of(x->o) - rank_of(y->o);
	double gx = isnan(x->o->gain) ? -INFINITY : x->o->gain;
	double gy = isnan(y->o->gain) ? -INFINITY : y->o->gain;

	if (c)
		return c;
	c = (gx < gy) - (gx > gy);
	return c ? c : (x->c > y->c) - (x->c < y->c);
}

static const char columns[] =
	"verdict,#gain,#lo,#hi,change,case,reason,hypothesis,before";

static void rank_row(struct table *t, const struct ranked *r, int digits)
{
	const double share[] = { r->o->gain, r->o->lo, r->o->hi };

	table_row(t);
	table_cell(t, 0, "%s", r->o->verdict ? r->o->verdict : "not tried");
	for (int i = 0; i < 3; i++)
		if (isfinite(share[i]))
			table_cell(t, 1 + i, "%+.*g", digits ? 3 : 17,
				   share[i]);
	table_cell(t, 4, "%s %s", change_kind_name(r->c->kind), r->c->what);
	table_cell(t, 5, "%s", r->o->row);
	table_cell(t, 6, "%s", r->o->reason);
	table_cell(t, 7, "%s", r->c->hypothesis);
	table_cell(t, 8, r->o->known ? "yes" : "");
}

static bool show_ranks(struct experimenting *x, struct err *e)
{
	struct ranked *r = xcalloc(x->list.n, sizeof(*r));
	struct table t;

	for (size_t i = 0; i < x->list.n; i++)
		r[i] = (struct ranked){ &x->list.v[i], &x->out[i] };
	qsort(r, x->list.n, sizeof(*r), by_rank);
	table_init(&t, columns);
	for (size_t i = 0; i < x->list.n; i++)
		rank_row(&t, &r[i], show_digits(x->c.s));
	bool ok = cmd_table(&x->c.s->cmd, &t, e);
	table_fini(&t);
	free(r);
	return ok;
}

/* -------------------------------------------------------------- command -- */

static bool run_list(struct experimenting *x, struct err *e)
{
	const struct show_opts *o = &x->c.s->o;
	char commit[TREE_COMMIT];

	if (o->budget_ns)
		x->until_ns = time_mono_ns() + o->budget_ns;
	if (!resolve_commits(x, e) ||
	    !trees_resolve(&x->c.trees, o->base ? o->base : "HEAD", commit,
			   e) ||
	    !candidate_build(&x->c, &x->base, commit, NULL, e))
		return false;
	if (!x->base.tree.built)
		return err_set(e, ERR_INPUT, "the base, %s: %s",
			       x->base.tree.name, x->base.tree.reason);
	if (!name_evaluator(x, e))
		return false;
	x->key.evaluator = x->evaluator;
	x->key.base = x->base.tree.key;
	x->out = xcalloc(x->list.n, sizeof(*x->out));
	x->c.s->cmd.kept = "the same command goes on with what is left";
	return try_all(x, e) && show_ranks(x, e);
}

static bool list_known(struct show *s, struct err *e)
{
	return show_query(s, "#experiment,created,verdict,#gain,#lo,#hi,change,"
			  "case,reason,hypothesis,base,evaluator",
			  "SELECT experiment, created, verdict, gain, lo, hi, "
			  "kind || ' ' || what, measured, reason, hypothesis, "
			  "substr(base, 1, 12), evaluator FROM v_experiments "
			  "ORDER BY evaluator, base, CASE verdict WHEN 'keep' "
			  "THEN 0 WHEN 'discard' THEN 1 ELSE 2 END, gain DESC, "
			  "experiment", e);
}

bool res_cmd_experiment(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct experimenting x = { 0 };

	if (!c->argc)
		return list_known(s, e);
	bool ok = changes_read(&x.list, c->argv[0], e) &&
		  series_processes(s, &x.key.processes, e) &&
		  commits_open(&x.c, s, (const char *const *)c->argv + 1, e);
	if (ok) {
		ok = run_list(&x, e);
		commits_close(&x.c);
	}
	candidate_fini(&x.base);
	free(x.out);
	changes_fini(&x.list);
	return ok;
}
