/*
 * results/cmd/cmd_commits.c - a command in every commit of a range, in turns.
 */
#include "results/cmd/commits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

struct row {
	struct candidate k;
	char *subject;
	size_t before; /* the row it is held against; itself: none */
	bool same;     /* code as the row before: not measured */
};

struct range {
	struct commits c;
	VEC(struct row) row; /* A, then what follows it up to B */
	size_t measured, worse;
};

/* ------------------------------------------------------------ the range -- */

/* "A..B", into both names. */
static bool split_range(const char *text, struct buf *a, struct buf *b,
			struct err *e)
{
	const char *dots = strstr(text, "..");

	if (!dots || dots == text || dots[2] == '.')
		return err_set(e, ERR_USAGE, "\"%s\": wanted a range of "
			       "commits, A..B", text);
	buf_printf(a, "%.*s", (int)(dots - text), text);
	buf_adds(b, dots[2] ? dots + 2 : "HEAD");
	return true;
}

static bool add_commit(struct range *r, const char *commit, struct err *e)
{
	struct buf subject = { 0 };

	if (!trees_git(&r->c.trees, &subject, e, "log", "-1", "--format=%s",
		       commit, NULL))
		return false;
	struct row *row = vec_add(&r->row);
	row->subject = subject.data ? subject.data : xstrdup("");
	row->before = r->row.n - 1;
	snprintf(row->k.tree.commit, TREE_COMMIT, "%s", commit);
	return true;
}

static bool list_commits(struct range *r, const char *text, struct err *e)
{
	struct buf a = { 0 }, b = { 0 }, list = { 0 };
	char from[TREE_COMMIT], to[TREE_COMMIT], *save;
	bool ok = split_range(text, &a, &b, e) &&
		  trees_resolve(&r->c.trees, a.data, from, e) &&
		  trees_resolve(&r->c.trees, b.data, to, e) &&
		  add_commit(r, from, e);

	buf_reset(&a);
	buf_printf(&a, "%s..%s", from, to);
	ok = ok && trees_git(&r->c.trees, &list, e, "rev-list", "--reverse",
			     "--topo-order", a.data, NULL);
	for (char *w = ok && list.len ? strtok_r(list.data, "\n", &save) : NULL;
	     ok && w; w = strtok_r(NULL, "\n", &save))
		ok = add_commit(r, w, e);
	if (ok && r->row.n < 2)
		ok = err_set(e, ERR_INPUT, "%s: no commit lies behind the "
			     "first", text);
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&list);
	return ok;
}

/* ------------------------------------------------------------- measured -- */

/* Each is held against the last one before it that has another code. */
static bool build_all(struct range *r, struct err *e)
{
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < r->row.n; i++) {
		struct row *row = &r->row.v[i];
		char commit[TREE_COMMIT];
		memcpy(commit, row->k.tree.commit, sizeof(commit));
		if (!candidate_build(&r->c, &row->k, commit, NULL, e))
			return false;
		if (!row->k.tree.built)
			continue;
		if (last != SIZE_MAX)
			row->before = last;
		row->same = last != SIZE_MAX &&
			    !strcmp(row->k.code, r->row.v[last].k.code);
		if (!row->same)
			last = i;
		r->measured += !row->same;
	}
	if (r->measured < 2)
		return err_set(e, ERR_INPUT, "all that builds has the same "
			       "code: nothing to compare");
	return true;
}

static bool is_measured(const struct row *row)
{
	return row->k.tree.built && !row->same;
}

static bool measure_all(struct range *r, struct err *e)
{
	VEC(struct candidate *) k = { 0 };
	struct series x = { 0 };
	bool ok = series_processes(r->c.s, &x.processes, e);

	for (size_t i = 0; i < r->row.n; i++)
		if (is_measured(&r->row.v[i]))
			vec_push(&k, &r->row.v[i].k);
	ok = ok && commits_measure(&r->c, &x, k.v, k.n, e);
	vec_fini(&k);
	return ok;
}

/* ---------------------------------------------------------------- shown -- */

static const char columns[] =
	"commit,case,metric,~value,unit,~before,~before_lo,~before_hi,verdict,"
	"subject";

static void name_row(struct table *t, const struct row *row,
		     const char *verdict)
{
	table_row(t);
	table_cell(t, 0, "%s", row->k.tree.name);
	table_cell(t, 8, "%s", verdict);
	table_cell(t, 9, "%s", row->subject);
}

static void pair_row(struct range *r, struct table *t, const struct row *row,
		     const struct pair *p)
{
	const struct piece *v = pair_piece(p);
	const struct effect *f = &p->effect;
	const double share[] = { f->change.value, f->change.lo, f->change.hi };
	bool first = row == r->row.v + row->before;
	int digits = show_digits(r->c.s);
	struct buf name = { 0 };

	if (!p->n_b)
		return;
	name_row(t, row, first ? "" : p->verdict);
	piece_name(v, &name);
	table_cell(t, 1, "%s", name.data);
	table_cell(t, 2, "%s", v->metric);
	table_cell(t, 3, "%.*g", digits ? 4 : 17, p->b.median.value);
	table_cell(t, 4, "%s", v->unit);
	for (int i = 0; i < 3 && p->n_a && !first; i++)
		if (isfinite(share[i]))
			table_cell(t, 5 + i, "%.*g", digits ? 4 : 17,
				   1 + share[i]);
	buf_fini(&name);
}

static bool show_row(struct range *r, struct table *t, const struct row *row,
		     struct err *e)
{
	const struct row *before = &r->row.v[row->before];
	struct pairs pairs;

	if (!row->k.tree.built || row->same) {
		struct buf why = { 0 };
		buf_printf(&why, row->same ? "same code as %s" : "%s",
			   row->same ? before->k.tree.name :
				       row->k.tree.reason);
		name_row(t, row, why.data);
		buf_fini(&why);
		return true;
	}
	bool ok = commits_judge(&r->c, &before->k, &row->k, r->c.s->o.alpha /
				(double)(r->measured - 1), &pairs, e);
	for (size_t i = 0; ok && i < pairs.n; i++)
		pair_row(r, t, row, &pairs.v[i]);
	if (ok && before != row)
		r->worse += pairs_worse(&pairs, r->c.s->o.least);
	pairs_fini(&pairs);
	return ok;
}

static bool show_all(struct range *r, struct err *e)
{
	struct cmd *c = &r->c.s->cmd;
	struct table t;
	bool ok = true;

	table_init(&t, columns);
	for (size_t i = 0; ok && i < r->row.n; i++)
		ok = show_row(r, &t, &r->row.v[i], e);
	ok = ok && cmd_table(c, &t, e);
	table_fini(&t);
	c->status = r->worse ? EXIT_NO : EXIT_YES;
	return ok;
}

bool res_cmd_bench_commits(struct cmd *c, struct err *e)
{
	struct range r = { 0 };
	bool ok = res_shard_parse(((struct show *)c)->o.shard, &r.c.shard, e) &&
		  commits_open(&r.c, (struct show *)c,
			       (const char *const *)c->argv + 1, e);

	if (ok) {
		ok = list_commits(&r, c->argv[0], e) && build_all(&r, e) &&
		     measure_all(&r, e) && show_all(&r, e);
		commits_close(&r.c);
	}
	for (size_t i = 0; i < r.row.n; i++) {
		candidate_fini(&r.row.v[i].k);
		free(r.row.v[i].subject);
	}
	vec_fini(&r.row);
	return ok;
}
