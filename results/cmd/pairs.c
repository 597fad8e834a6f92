/*
 * results/cmd/pairs.c - two sides, measurement by measurement, and what is
 * proven of each.
 */
#include "base/vec.h"
#include "results/cmd/cmd.h"

#include <math.h>
#include <string.h>

bool pair_has_both(const struct pair *p)
{
	return p->n_a && p->n_b;
}

bool pair_is_chancy(const struct pair *p)
{
	return pair_has_both(p) && !(p->a.exact && p->b.exact);
}

const struct piece *pair_piece(const struct pair *p)
{
	return p->n_a ? p->of_a : p->of_b;
}

static const char *verdict_of(const struct pair *p)
{
	const struct effect *f = &p->effect;
	const char *better = p->of_a->better;

	if (!f->tested)
		return "inconclusive";
	if (!f->proven)
		return f->exact ? "same" : "~";
	if (!strcmp(better, "none"))
		return "differs";
	if ((f->change.value > 0) != !strcmp(better, "higher"))
		return "worse";
	if (p->b.correct && strcmp(p->b.correct, "pass"))
		return "better, but wrong";
	return p->b.correct ? "better" : "better, unchecked";
}

/* All pieces of one measurement must agree with the first of side a. */
static bool check_all(const struct piece *first, const struct piece *v,
		      size_t n, const struct cli_list *allow, struct err *e)
{
	struct buf name = { 0 };
	struct mismatch m;
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		if (pieces_comparable(first, &v[i], false, allow, &m))
			continue;
		piece_name(first, &name);
		ok = err_set(e, ERR_INPUT,
			     "these sides cannot be compared: %s is %s on one "
			     "and %s on the other%s (%s, runs %lld and %lld); "
			     "--allow %s compares them all the same",
			     m.field, m.a, m.b, m.remedy, name.data,
			     (long long)first->facts->run,
			     (long long)v[i].facts->run, m.field);
	}
	buf_fini(&name);
	return ok;
}

static size_t group_len(const struct pieces *p, size_t i)
{
	size_t n = 0;

	while (i + n < p->n && !piece_order(&p->v[i], &p->v[i + n]))
		n++;
	return n;
}

static bool add_pair(struct pairs *all, const struct piece *a, size_t n,
		     const struct piece *b, size_t m,
		     const struct cli_list *allow, struct err *e)
{
	const struct piece *first = n ? a : b;

	if (!check_all(first, a, n, allow, e) ||
	    !check_all(first, b, m, allow, e))
		return false;
	struct pair *p = vec_add(all);
	*p = (struct pair){ a, b, n, m, .verdict = "only one side" };
	measured_init(&p->a, a, n);
	measured_init(&p->b, b, m);
	all->family += pair_is_chancy(p);
	return true;
}

bool pairs_make(struct pairs *all, const struct pieces *a,
		const struct pieces *b, const struct cli_list *allow,
		struct err *e)
{
	size_t i = 0, j = 0;

	while (i < a->n || j < b->n) {
		int o = i >= a->n ? 1 : j >= b->n ? -1 :
			piece_order(&a->v[i], &b->v[j]);
		size_t n = o <= 0 ? group_len(a, i) : 0;
		size_t m = o >= 0 ? group_len(b, j) : 0;
		if (!add_pair(all, a->v + i, n, b->v + j, m, allow, e))
			return false;
		i += n;
		j += m;
	}
	return true;
}

void pairs_judge(struct pairs *all, double alpha,
		 const struct calibrations *known)
{
	alpha /= (double)(all->family ? all->family : 1);
	for (size_t i = 0; i < all->n; i++) {
		struct pair *p = &all->v[i];
		if (!pair_has_both(p))
			continue;
		p->effect = effect_of(&p->a, &p->b, alpha,
				      calibrated_drift(known, p->of_a));
		p->verdict = verdict_of(p);
	}
}

size_t pairs_worse(const struct pairs *all, double least)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += !strcmp(all->v[i].verdict, "worse") &&
		     fabs(all->v[i].effect.change.value) >= least;
	return n;
}

void pairs_fini(struct pairs *all)
{
	for (size_t i = 0; i < all->n; i++) {
		measured_fini(&all->v[i].a);
		measured_fini(&all->v[i].b);
	}
	vec_fini(all);
}
