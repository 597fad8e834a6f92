/*
 * compiler/sim/examine/fit.c - the automatic fit: coordinate descent over the
 * parameters that cost.def names, each on the measurements that it names.
 */
#include <math.h>

#include "compiler/sim/examine/examine.h"

enum { SWEEPS = 2 };
/* A smaller gain is none: what nothing tells stays where it was. */
static const double least_gain = 1e-7;

struct search {
	struct cost_model *m;
	const struct fit_data *d;
	const struct cost_fit *f;
	int without;
	struct err *e;
};

bool fit_knows(const char *group)
{
	const struct cost_fit *f;
	int n;

	f = cost_fits(&n);
	for (int i = 0; i < n; i++)
		if (cost_fit_names(&f[i], group))
			return true;
	return false;
}

static bool is_used(const struct search *s, int group)
{
	return group != s->without &&
	       cost_fit_names(s->f, s->d->group[group]);
}

static bool has_groups(const struct search *s)
{
	for (int i = 0; i < s->d->n; i++)
		if (is_used(s, i))
			return true;
	return false;
}

/* To everything, or because what it was fitted on is left out now. */
static bool is_fitted(const struct search *s)
{
	return s->without < 0 ? has_groups(s) :
	       cost_fit_names(s->f, s->d->group[s->without]);
}

/* Mean loss of the parameter's groups with this value. */
static bool try_value(const struct search *s, double value, double *out)
{
	double sum = 0, loss;
	int n = 0;

	s->m->row[s->f->row].value = value;
	for (int i = 0; i < s->d->n; i++) {
		if (!is_used(s, i))
			continue;
		if (s->d->stop && *s->d->stop)
			return err_set(s->e, ERR_STOPPED, "the fit of %s was "
				       "not at its end, nothing is stored",
				       cost_row_info(s->f->row)->name);
		if (!s->d->loss(s->d->ctx, i, s->f->by, s->m, &loss,
				s->e))
			return false;
		sum += loss;
		n++;
	}
	*out = sum / n;
	return true;
}

/* As far as it gets in one direction; *best and *value follow. */
static bool walk_steps(const struct search *s, double by, double *value,
		       double *best)
{
	for (double next = *value + by, loss;
	     next >= s->f->least && next <= s->f->most; next += by) {
		if (!try_value(s, next, &loss))
			return false;
		if (loss > *best - least_gain)
			break;
		*best = loss;
		*value = next;
	}
	return true;
}

/* The largest step is a quarter of the range at most. */
static double find_first_step(const struct cost_fit *f)
{
	double step = f->step;

	while (step * 8 <= f->most - f->least)
		step *= 2;
	return step;
}

static bool fit_row(const struct search *s)
{
	double value = cost_value(s->m, s->f->row), best;
	bool ok = try_value(s, value, &best);

	for (double by = find_first_step(s->f); ok && by > s->f->step * 0.75;
	     by /= 2)
		ok = walk_steps(s, by, &value, &best) &&
		     walk_steps(s, -by, &value, &best);
	s->m->row[s->f->row].value = value;
	return ok;
}

bool fit_costs(struct cost_model *m, const struct fit_data *d, int without,
	       struct err *e)
{
	struct search s = { .m = m, .d = d, .without = without, .e = e };
	const struct cost_fit *f;
	int n;

	f = cost_fits(&n);
	for (int i = 0; i < n; i++) {
		s.f = &f[i];
		if (is_fitted(&s))
			m->row[s.f->row].value = s.f->from;
	}
	for (int i = 0; i < n * SWEEPS; i++) {
		s.f = &f[i % n];
		if (is_fitted(&s) && has_groups(&s) && !fit_row(&s))
			return err_wrap(e, "fit of %s",
					cost_row_info(s.f->row)->name);
	}
	return true;
}
