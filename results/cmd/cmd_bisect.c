/*
 * results/cmd/cmd_bisect.c - the commit that made a case worse.
 *
 * git proposes the commit that halves what is left; each is measured in turns
 * with both ends, so it is bad when it is proven worse than the good one, good
 * when the bad one is proven worse than it, and skipped when neither is.
 */
#include "results/cmd/commits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { EXIT_SKIP = 125 }; /* what `git bisect run` takes for "try another" */

enum answer { STEP_GOOD, STEP_BAD, STEP_SKIP };

struct bisection {
	struct commits c;
	struct candidate good, bad;
	size_t processes;
	/* The measurement that is followed, and what it lost in all. */
	struct buf row;
	double change;
	char first_bad[TREE_COMMIT];
	VEC(char *) excluded; /* "^HASH", good ones */
	VEC(char *) skipped;
};

static bool is_followed(const struct bisection *b, const struct pair *p)
{
	struct buf name = { 0 };

	piece_name(pair_piece(p), &name);
	buf_printf(&name, " %s", pair_piece(p)->metric);
	bool same = !strcmp(name.data, b->row.data);
	buf_fini(&name);
	return same;
}

/* ---------------------------------------------------------- both ends -- */

/* The row that lost most is followed, or said: nothing is worse. */
static void choose_row(struct bisection *b, const struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *p = &pairs->v[i];
		double change = p->effect.change.value;
		if (strcmp(p->verdict, "worse") ||
		    fabs(change) < b->c.s->o.least ||
		    fabs(change) <= fabs(b->change))
			continue;
		b->change = change;
		buf_reset(&b->row);
		piece_name(pair_piece(p), &b->row);
		buf_printf(&b->row, " %s", pair_piece(p)->metric);
	}
}

static bool build_end(struct bisection *b, struct candidate *k,
		      const char *name, struct err *e)
{
	char commit[TREE_COMMIT];

	return trees_resolve(&b->c.trees, name, commit, e) &&
	       candidate_build(&b->c, k, commit, NULL, e) &&
	       (k->tree.built || err_set(e, ERR_INPUT, "%s: %s", name,
					 k->tree.reason));
}

static bool judge_ends(struct bisection *b, struct err *e)
{
	struct candidate *const ends[] = { &b->good, &b->bad };
	struct series x = { .processes = b->processes, .recalls = true,
			    .label = "bisect" };
	struct pairs pairs;

	if (!strcmp(b->good.code, b->bad.code))
		return err_set(e, ERR_INPUT, "%s and %s have the same code: "
			       "nothing to compare", b->good.tree.name,
			       b->bad.tree.name);
	bool ok = commits_measure(&b->c, &x, ends, 2, e) &&
		  commits_judge(&b->c, &b->good, &b->bad, b->c.s->o.alpha,
				&pairs, e);
	if (ok) {
		choose_row(b, &pairs);
		pairs_fini(&pairs);
	}
	return ok;
}

/* ---------------------------------------------------------------- steps -- */

/* Is the followed row of `b` proven worse than that of `a`? */
static bool is_worse(struct bisection *x, const struct candidate *a,
		     const struct candidate *b, bool *worse, struct err *e)
{
	struct pairs pairs;

	*worse = false;
	if (!commits_judge(&x->c, a, b, x->c.s->o.alpha, &pairs, e))
		return false;
	for (size_t i = 0; i < pairs.n; i++)
		*worse |= is_followed(x, &pairs.v[i]) &&
			  !strcmp(pairs.v[i].verdict, "worse");
	pairs_fini(&pairs);
	return true;
}

/* With twice the processes, twice, while nothing is proven. */
static bool measure_step(struct bisection *b, struct candidate *k,
			 enum answer *a, struct err *e)
{
	struct candidate *const all[] = { &b->good, k, &b->bad };
	struct series x = { .recalls = true, .label = "bisect" };
	bool bad, good;

	*a = STEP_SKIP;
	for (size_t n = b->processes; n <= 4 * b->processes; n *= 2) {
		x.processes = n;
		if (!commits_measure(&b->c, &x, all, 3, e)) {
			if (e->code == ERR_STOPPED || x.failed != &k->side)
				return false;
			cmd_remark(&b->c.s->cmd, "%s", e->msg);
			*e = (struct err){ 0 };
			return true;
		}
		if (!is_worse(b, &b->good, k, &bad, e) ||
		    !is_worse(b, k, &b->bad, &good, e))
			return false;
		if (bad || good) {
			*a = bad ? STEP_BAD : STEP_GOOD;
			return true;
		}
	}
	return true;
}

static bool judge_step(struct bisection *b, const char *commit, enum answer *a,
		       struct err *e)
{
	static const char *const word[] = { "good", "bad", "skipped" };
	struct candidate k = { 0 };
	bool ok = candidate_build(&b->c, &k, commit, NULL, e);

	if (ok && !k.tree.built)
		*a = STEP_SKIP;
	else if (ok && !strcmp(k.code, b->good.code))
		*a = STEP_GOOD;
	else if (ok && !strcmp(k.code, b->bad.code))
		*a = STEP_BAD;
	else if (ok)
		ok = measure_step(b, &k, a, e);
	if (ok)
		cmd_remark(&b->c.s->cmd, "%s is %s%s%s", k.tree.name, word[*a],
			   *k.tree.reason ? ": " : "", k.tree.reason);
	candidate_fini(&k);
	return ok;
}

/* --------------------------------------------------------------- search -- */

static bool is_skipped(const struct bisection *b, const char *commit)
{
	for (size_t i = 0; i < b->skipped.n; i++)
		if (!strcmp(b->skipped.v[i], commit))
			return true;
	return false;
}

/* The candidates, best first, as `git rev-list --bisect-all` lists them. */
static bool list_left(struct bisection *b, struct buf *out, struct err *e)
{
	VEC(const char *) words = { 0 };
	const char *const fixed[] = { "git", "rev-list", "--bisect-all",
				b->first_bad };

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		vec_push(&words, fixed[i]);
	for (size_t i = 0; i < b->excluded.n; i++)
		vec_push(&words, b->excluded.v[i]);
	vec_push(&words, NULL);
	bool ok = trees_git_words(&b->c.trees, out, words.v, e);
	vec_fini(&words);
	return ok;
}

/* What to try next; "" if nothing but the first bad one is left. */
static bool choose_next(struct bisection *b, char next[TREE_COMMIT],
			size_t *left, struct err *e)
{
	struct buf list = { 0 };
	char *save;
	bool ok = list_left(b, &list, e);

	*next = 0;
	*left = 0;
	for (char *line = ok && list.len ? strtok_r(list.data, "\n", &save) :
					   NULL;
	     line; line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, " ")] = 0;
		if (!strcmp(line, b->first_bad))
			continue;
		++*left;
		if (!*next && !is_skipped(b, line))
			snprintf(next, TREE_COMMIT, "%s", line);
	}
	buf_fini(&list);
	return ok;
}

static bool find_first_bad(struct bisection *b, struct err *e)
{
	char next[TREE_COMMIT];
	enum answer a;
	size_t left;

	for (;;) {
		if (!choose_next(b, next, &left, e))
			return false;
		if (!*next)
			return !left || err_set(e, ERR_INPUT, "the first bad "
				"commit is %s or one of %zu before it that "
				"cannot be judged", b->first_bad, left);
		if (!judge_step(b, next, &a, e))
			return false;
		if (a == STEP_BAD) {
			memcpy(b->first_bad, next, sizeof(next));
		} else if (a == STEP_GOOD) {
			struct buf word = { 0 };
			buf_printf(&word, "^%s", next);
			vec_push(&b->excluded, word.data);
		} else {
			vec_push(&b->skipped, xstrdup(next));
		}
	}
}

static bool tell_found(struct bisection *b, struct err *e)
{
	struct buf text = { 0 };
	FILE *out = b->c.s->cmd.out;
	bool ok = trees_git(&b->c.trees, &text, e, "show", "--no-patch",
			    "--format=%an, %as: %s", b->first_bad, NULL);

	if (ok)
		fprintf(out, "%s is the first bad commit\n%s\n%s: %+.3g %% "
			"from %s to %s\n", b->first_bad, text.data,
			b->row.data, 100 * b->change, b->good.tree.name,
			b->bad.tree.name);
	buf_fini(&text);
	return ok;
}

static bool bisect_range(struct bisection *b, struct err *e)
{
	struct buf word = { 0 };

	if (!judge_ends(b, e))
		return false;
	if (!b->row.len) {
		cmd_remark(&b->c.s->cmd, "nothing is proven worse in %s than "
			   "in %s", b->bad.tree.name, b->good.tree.name);
		b->c.s->cmd.status = EXIT_NO;
		return true;
	}
	memcpy(b->first_bad, b->bad.tree.commit, TREE_COMMIT);
	buf_printf(&word, "^%s", b->good.tree.commit);
	vec_push(&b->excluded, word.data);
	return find_first_bad(b, e) && tell_found(b, e);
}

/* ---------------------------------------------- a step of git bisect run -- */

/* Good only if a loss of the limit is excluded. */
static int status_of(const struct bisection *b, const struct pairs *pairs)
{
	double limit = b->c.s->o.least > 0 ? b->c.s->o.least : GATE_LIMIT;
	int status = EXIT_YES;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct pair *p = &pairs->v[i];
		bool higher = p->n_a && !strcmp(p->of_a->better, "higher");
		double loss = higher ? -p->effect.change.lo :
				       p->effect.change.hi;
		if (!strcmp(p->verdict, "worse") &&
		    fabs(p->effect.change.value) >= b->c.s->o.least)
			return EXIT_NO;
		if (!pair_has_both(p) || !(loss < limit))
			status = EXIT_SKIP;
	}
	return status;
}

static bool judge_head(struct bisection *b, struct err *e)
{
	struct candidate *const ends[] = { &b->good, &b->bad };
	struct series x = { .processes = b->processes, .recalls = true,
			    .label = "bisect" };
	struct cmd *c = &b->c.s->cmd;
	char commit[TREE_COMMIT];
	struct pairs pairs;

	if (!trees_resolve(&b->c.trees, "HEAD", commit, e) ||
	    !candidate_build(&b->c, &b->bad, commit, NULL, e))
		return false;
	c->status = b->bad.tree.built ? EXIT_YES : EXIT_SKIP;
	if (!b->bad.tree.built || !strcmp(b->good.code, b->bad.code))
		return true;
	if (!commits_measure(&b->c, &x, ends, 2, e)) {
		if (e->code == ERR_STOPPED || x.failed != &b->bad.side)
			return false;
		*e = (struct err){ 0 };
		c->status = EXIT_SKIP;
		return true;
	}
	if (!commits_judge(&b->c, &b->good, &b->bad, b->c.s->o.alpha, &pairs,
			   e))
		return false;
	c->status = status_of(b, &pairs);
	pairs_fini(&pairs);
	return true;
}

/* -------------------------------------------------------------- command -- */

static void bisection_fini(struct bisection *b)
{
	candidate_fini(&b->good);
	candidate_fini(&b->bad);
	for (size_t i = 0; i < b->excluded.n; i++)
		free(b->excluded.v[i]);
	for (size_t i = 0; i < b->skipped.n; i++)
		free(b->skipped.v[i]);
	vec_fini(&b->excluded);
	vec_fini(&b->skipped);
	buf_fini(&b->row);
}

bool res_cmd_bisect(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct bisection b = { 0 };
	char commit[TREE_COMMIT];
	struct trees here;
	bool ok = trees_open(&here, s, e), two = false;

	if (ok) {
		two = c->argc > 2 && trees_resolve(&here, c->argv[1], commit,
						   NULL);
		trees_close(&here, true);
	}
	ok = ok && series_processes(s, &b.processes, e) &&
	     commits_open(&b.c, s, (const char *const *)c->argv + 1 + two,
			  e);
	if (ok) {
		ok = build_end(&b, &b.good, c->argv[0], e) &&
		     (two ? build_end(&b, &b.bad, c->argv[1], e) &&
				    bisect_range(&b, e) :
			    judge_head(&b, e));
		commits_close(&b.c);
	}
	bisection_fini(&b);
	return ok;
}
