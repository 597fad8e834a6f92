/*
 * autotune/card/fit.c - costs from what a card measured (card.h).
 *
 * Each point moves its parameter until the simulated probe gives what the card
 * gave: first as far as its rule says, then by the slope that the last move
 * showed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card_int.h"

enum { ROUNDS_MOST = 6, PASSES = 3 };
/* What a simulated point may be off where it is called found. */
#define NEAR 0.03
/* It need not come nearer than that, and is open again beyond. */
#define ENOUGH 0.002
#define REOPEN 0.02

/* A parameter's search. */
struct way {
	double want, was; /* the point: measured, and simulated last */
	double theta, before; /* the parameter now, and a move ago */
	double slope, got_before;
	bool moved, settled;
	double best, best_off; /* nearest so far */
};

struct search {
	struct card_fit *f;
	const struct card_data *d;
	const struct card_fit_how *how;
	struct card_list list;
	struct way way[CARD_POINTS_MAX];
	bool wanted[CARD_POINTS_MAX];
	struct err *e;
};

/* What is compared: rates in bytes a cycle do not depend on the clock. */
static double figure_of(const struct card_point *p, const struct card_value *v)
{
	return p->rule == CARD_CYCLE && v->clock_hz > 0 ?
		       v->value / v->clock_hz :
	       p->rule == CARD_LOAD ? v->value * 1e6 :
				      v->value;
}

static bool in_logarithms(const struct card_point *p)
{
	return p->rule == CARD_RATIO || p->rule == CARD_CYCLE ||
	       p->rule == CARD_INVERSE;
}

static double first_slope(const struct card_point *p)
{
	return p->rule == CARD_INVERSE ? -1 : 1;
}

static double off_by(const struct way *w, double got)
{
	return fabs(got / w->want - 1);
}

static double bend(const struct card_point *p, double v)
{
	return in_logarithms(p) ? log(v) : v;
}

/* The slope that the last move showed, unless it showed nothing. */
static void learn_slope(const struct card_point *p, struct way *w, double got)
{
	const double dy = bend(p, got) - bend(p, w->got_before);
	const double dx = bend(p, w->theta) - bend(p, w->before);

	if (w->moved && dx != 0 && dy / dx * first_slope(p) > 0.02)
		w->slope = dy / dx;
}

static void move_on(const struct card_point *p, struct way *w, double got)
{
	const double dy = bend(p, w->want) - bend(p, got);
	const double to = in_logarithms(p) ?
				  exp(log(w->theta) + dy / w->slope) :
				  w->theta + dy / w->slope;
	/* A long step may end where nothing is linear any more. */
	const double near = fmin(fmax(to, w->theta / 2), w->theta * 2);
	double next = card_round(p->row, near);

	/* Whole cycles: the next one, if that is where it would go. */
	if (next == w->theta)
		next = card_round(p->row, next + (to > next ? 1 : -1));
	w->before = w->theta;
	w->got_before = got;
	w->moved = true;
	/* Where it would stay or come back, nothing nearer is to be had. */
	w->settled |= next == w->theta || next == w->best;
	w->theta = next;
}

static void take_round(struct search *s, const struct card_data *got)
{
	for (int i = 0; i < s->list.n; i++) {
		const struct card_point *p = &s->list.v[i];
		struct way *w = &s->way[i];

		if (!s->wanted[i] || !(got->point[i].n > 0))
			continue;
		const double y = figure_of(p, &got->point[i]);

		w->was = y;
		if (off_by(w, y) < w->best_off) {
			w->best_off = off_by(w, y);
			w->best = w->theta;
		}
		w->settled |= off_by(w, y) <= ENOUGH;
		if (w->settled)
			continue;
		learn_slope(p, w, y);
		move_on(p, w, y);
	}
}

static void put_costs(struct search *s, bool best)
{
	for (int i = 0; i < s->list.n; i++) {
		struct way *w = &s->way[i];

		if (!s->wanted[i])
			continue;
		w->theta = best ? w->best : w->theta;
		s->f->costs.row[s->list.v[i].row].value = w->theta;
	}
}

/* A cost that is measured as such begins there. */
static void begin_ways(struct search *s)
{
	for (int i = 0; i < s->list.n; i++) {
		const struct card_point *p = &s->list.v[i];
		struct way *w = &s->way[i];

		s->wanted[i] = s->d->point[i].n > 0;
		if (!s->wanted[i])
			continue;
		w->want = figure_of(p, &s->d->point[i]);
		w->slope = first_slope(p);
		w->theta = w->best = card_round(p->row,
			!strcmp(p->area, "cost") ?
				w->want : cost_value(&s->f->costs, p->row));
		w->best_off = INFINITY;
	}
}

static bool observe(struct search *s, const bool *which, struct card_data *got)
{
	return card_observe(&s->f->costs, which, got, s->how->stop, s->e) &&
	       card_observe_launch(&s->f->costs, got, s->e);
}

/* Until each has settled, the others being where they are. */
static bool settle_all(struct search *s, struct card_data *got)
{
	for (int round = 0; round < ROUNDS_MOST; round++) {
		bool open[CARD_POINTS_MAX], any = false;

		for (int i = 0; i < s->list.n; i++) {
			open[i] = s->wanted[i] && !s->way[i].settled;
			any |= open[i];
		}
		if (!any)
			break;
		put_costs(s, false);
		if (!observe(s, open, got))
			return false;
		take_round(s, got);
	}
	put_costs(s, true);
	return true;
}

/* All together; what is not right any more is open again. */
static bool check_all(struct search *s, struct card_data *got, bool *open)
{
	*open = false;
	if (!observe(s, s->wanted, got))
		return false;
	for (int i = 0; i < s->list.n; i++) {
		struct way *w = &s->way[i];

		if (!s->wanted[i])
			continue;
		w->was = figure_of(&s->list.v[i], &got->point[i]);
		if (off_by(w, w->was) <= REOPEN)
			continue;
		w->settled = w->moved = false;
		w->slope = first_slope(&s->list.v[i]);
		w->best_off = INFINITY;
		*open = true;
	}
	return true;
}

/* ---- what is odd ---- */

/* One point, with a parameter and one of card_rest() so. */
struct trial {
	struct search *s;
	int point;
	double value;
	enum cost_row rest;
	struct card_data *got;
};

static bool simulate_trial(const struct trial *t, double rest, double *figure)
{
	const struct card_point *p = &t->s->list.v[t->point];
	bool which[CARD_POINTS_MAX] = { false };
	struct cost_value *v = t->s->f->costs.row;

	which[t->point] = true;
	v[p->row].value = t->value;
	v[t->rest].value = rest;
	if (!card_observe(&t->s->f->costs, which, t->got, t->s->how->stop,
			  t->s->e))
		return false;
	*figure = figure_of(p, &t->got->point[t->point]);
	return true;
}

/* Too little is simulated at `few`; at `end` it is `got`, which is more. */
static bool halve_range(const struct trial *t, double few, double end,
			double got, bool *found)
{
	struct way *w = &t->s->way[t->point];

	while (off_by(w, got) > NEAR) {
		const double at = card_round(t->rest, (few + end) / 2);

		if (at == few || at == end || fabs(few / end - 1) < ENOUGH)
			return true;
		if (!simulate_trial(t, at, &got))
			return false;
		if (got < w->want)
			few = at;
		else
			end = at;
	}
	w->theta = w->best = t->value;
	w->was = got;
	*found = w->settled = true;
	return true;
}

/*
 * A point between what two whole numbers of cycles make: something that only
 * products tell may hold instructions up, such as a queue that is shorter than
 * what is on its way.  Costs stay as they are unless it is found.
 */
static bool explain_point(struct search *s, int point, struct card_data *got,
			  bool *found)
{
	const struct card_point *p = &s->list.v[point];
	const struct way *w = &s->way[point];
	const double best = w->best;
	struct trial t = { .s = s, .point = point, .got = got };
	int n;
	const enum cost_row *rest = card_rest(&n);

	t.value = best - (w->was > w->want);
	*found = false;
	if (card_round(p->row, best + .25) != best || t.value < 1)
		return true; /* no whole numbers, or none is left */
	for (int i = 0; i < 2 * n; i++) {
		const double was = cost_value(&s->f->costs, rest[i / 2]);
		double end[2], y;

		t.rest = rest[i / 2];
		card_range(t.rest, &end[0], &end[1]);
		if (!simulate_trial(&t, end[i % 2], &y))
			return false;
		if (y >= w->want * (1 - NEAR) &&
		    !halve_range(&t, was, end[i % 2], y, found))
			return false;
		if (*found)
			return true;
		s->f->costs.row[t.rest].value = was;
		s->f->costs.row[p->row].value = best;
	}
	return true;
}

static bool explain_odd(struct search *s, struct card_data *got, bool *any)
{
	*any = false;
	for (int i = 0; i < s->list.n; i++) {
		bool found;

		if (!s->wanted[i] || off_by(&s->way[i], s->way[i].was) <= NEAR)
			continue;
		if (!explain_point(s, i, got, &found))
			return false;
		*any |= found;
	}
	return true;
}

static bool fit_passes(struct search *s, struct card_data *got)
{
	bool open = true, ok = true;

	for (int pass = 0; ok && open && pass < PASSES; pass++)
		ok = settle_all(s, got) && check_all(s, got, &open);
	return ok;
}

static bool fit_points(struct search *s)
{
	struct card_data *got = xcalloc(1, sizeof(*got));
	bool explained;

	begin_ways(s);
	bool ok = fit_passes(s, got) && explain_odd(s, got, &explained) &&
		  (!explained || fit_passes(s, got));
	free(got);
	return ok;
}

/* From the interval of what was measured to that of the parameter. */
static void keep_interval(const struct card_point *p, const struct way *w,
			  const struct card_value *v, struct card_fit_row *row)
{
	const double scale = v->value > 0 ? w->want / v->value : 1;
	const double slope = w->slope != 0 ? w->slope : first_slope(p);
	double end[2] = { v->lo * scale, v->hi * scale };

	for (int i = 0; i < 2; i++) {
		const double dy = bend(p, end[i] > 0 ? end[i] : w->want) -
				  bend(p, w->was);

		end[i] = in_logarithms(p) ?
				 exp(log(row->value) + dy / slope) :
				 row->value + dy / slope;
	}
	row->lo = fmin(fmin(end[0], end[1]), row->value);
	row->hi = fmax(fmax(end[0], end[1]), row->value);
}

static void keep_points(struct search *s)
{
	for (int i = 0; i < s->list.n; i++) {
		const struct card_point *p = &s->list.v[i];
		const struct way *w = &s->way[i];
		struct card_fit_row *row = &s->f->row[p->row];

		if (!s->wanted[i]) {
			row->state = CARD_UNKNOWN;
			continue;
		}
		row->value = cost_value(&s->f->costs, p->row);
		row->measured = w->want;
		row->simulated = w->was;
		row->state = off_by(w, w->was) <= NEAR ? CARD_FOUND : CARD_ODD;
		keep_interval(p, w, &s->d->point[i], row);
	}
}

static void keep_clock(struct search *s)
{
	static const enum cost_row rows[] = { COST_CLOCK, COST_CLOCK_SHORT,
					      COST_CLOCK_POWER };
	const bool found = card_fit_clock(&s->f->costs, s->d);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct card_fit_row *row = &s->f->row[rows[i]];

		row->state = found ? CARD_FOUND : CARD_UNKNOWN;
		row->value = cost_value(&s->f->costs, rows[i]);
		/* Clocks are read to half a per cent, what bends them less. */
		const double far = rows[i] == COST_CLOCK_POWER ? .05 : .005;
		row->lo = row->value * (1 - far);
		row->hi = row->value * (1 + far);
	}
}

static void begin_rows(struct card_fit *f)
{
	for (int row = 0; row < COST_ROW_COUNT; row++) {
		const double v = cost_value(&f->costs, row);

		f->row[row] = (struct card_fit_row){
			.state = CARD_STATED, .value = v, .lo = v, .hi = v,
			.measured = NAN, .simulated = NAN, .effect = NAN,
		};
	}
	for (int i = 0; i < CARD_GEMMS_MAX; i++)
		f->gemm[i] = f->before[i] = NAN;
	f->residual = NAN;
}

/* As cost.def has it, to say what changes. */
static bool simulate_before(struct card_fit *f, const struct card_products *p,
			    const struct card_fit_how *how, struct err *e)
{
	struct cost_model m;

	cost_init(&m, TUNE_CHIP);
	bool ok = card_simulate_all(p->v, p->n, &m, 1, how, f->before, e);
	cost_fini(&m);
	return ok;
}

static bool fit_products(struct card_fit *f, const struct card_data *d,
			 const struct card_fit_how *how, struct err *e)
{
	struct card_products p;
	bool ok = card_products_init(&p, how->products, how, e) &&
		  simulate_before(f, &p, how, e) &&
		  card_fit_rest(f, d, &p, how, e);

	for (size_t i = 0; ok && i < p.n; i++)
		f->other_code += d->gemm[i].n > 0 && *d->object[i] &&
				 strcmp(d->object[i], p.v[i].object) != 0;
	card_products_fini(&p);
	return ok;
}

bool card_fit(struct card_fit *f, const struct card_data *d,
	      const struct card_fit_how *how, struct err *e)
{
	struct search *s = xcalloc(1, sizeof(*s));

	*s = (struct search){ .f = f, .d = d, .how = how, .e = e };
	memset(f, 0, sizeof(*f));
	cost_init(&f->costs, TUNE_CHIP);
	begin_rows(f);
	card_list_init(&s->list);
	keep_clock(s);
	bool ok = fit_points(s);
	if (ok)
		keep_points(s);
	ok = ok && (!how->rest || fit_products(f, d, how, e));
	free(s);
	return ok;
}

void card_fit_fini(struct card_fit *f)
{
	cost_fini(&f->costs);
}
