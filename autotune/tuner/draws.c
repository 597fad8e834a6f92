/*
 * autotune/tuner/draws.c - which of the fastest is so whatever the costs are.
 *
 * Costs that nobody has measured are guesses, and a configuration may win by
 * one of them alone.  The fastest few of a problem, the finalists, are
 * therefore simulated with each draw of the costs (cost_draw()), all with the
 * same ones; of a draw only ratios count, so that what slows all of them falls
 * out. Preferred is who is least behind the fastest of a draw, where it is
 * behind most.
 */
#include <math.h>
#include <stdlib.h>

#include "autotune/tuner/tune_int.h"
#include "base/threads.h"

enum { OF_A_TILE = 2 };
/* Slower than the fastest by more is not looked at. */
#define NEAR 1.2

/* ---- finalists ---- */

static bool is_same_tile(const struct gemm_config *a,
			 const struct gemm_config *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k;
}

/* The fastest that is not among v[n], of no tile that is there OF_A_TILE times.
 */
static size_t next_finalist(const struct candidates *h, const size_t *v,
			    size_t n)
{
	size_t best = h->n;

	for (size_t i = 0; i < h->legal; i++) {
		const struct candidate *x = &h->v[i];
		int same = 0;
		bool taken = x->c.state != RES_TUNE_TIMED ||
			     x->time_s > NEAR * h->v[h->best].time_s ||
			     (best < h->n && x->time_s >= h->v[best].time_s);

		for (size_t k = 0; k < n && !taken; k++) {
			taken = v[k] == i;
			same += is_same_tile(&h->v[v[k]].c.config,
					     &x->c.config);
		}
		if (!taken && same < OF_A_TILE)
			best = i;
	}
	return best;
}

struct drawing {
	const struct decider *j;
	struct cost_model cost[COST_DRAWS];
	struct {
		struct candidates *h;
		struct candidate *x;
	} * of; /* [n] finalists */
	size_t n;
	uint64_t end_ns; /* 0: none */
	struct progress bar;
	pthread_mutex_t lock;
	struct err *e;
	bool failed;
};

static void add_finalists(struct drawing *d, struct candidates *h,
			  uint32_t most)
{
	size_t v[TUNE_DRAWN_MOST], n = 0;

	if (h->done || h->best == h->n)
		return;
	while (n < most && n < ARRAY_SIZE(v)) {
		const size_t i = next_finalist(h, v, n);

		if (i == h->n)
			break;
		v[n++] = i;
	}
	/* One alone is compared with nobody. */
	for (size_t i = 0; i < n && n > 1; i++) {
		struct candidate *x = &h->v[v[i]];

		x->draw = xcalloc(COST_DRAWS, sizeof(*x->draw));
		x->draw[0] = x->time_s;
		d->of[d->n].h = h;
		d->of[d->n++].x = x;
	}
}

/* ---- simulations ---- */

static bool is_over(const struct drawing *d)
{
	const _Atomic int *stop = d->j->o->stop;

	return d->failed || (stop && *stop) ||
	       (d->end_ns && time_mono_ns() > d->end_ns);
}

static bool simulate_draw(const struct drawing *d, size_t i, int draw,
			  struct err *e)
{
	const struct tune_problem *p = d->of[i].h->p;
	struct candidate *x = d->of[i].x;
	struct tune_simulation t = { 0 };
	const struct gemm_code *code =
		code_get(d->j->codes, &p->op, &x->c.config, e);

	if (!code ||
	    !tune_simulate(p, &x->c.config, code, &d->cost[draw], false, &t, e))
		return err_wrap(e, "%s with other costs", x->config);
	x->draw[draw] = t.time_s;
	tune_simulation_fini(&t);
	return true;
}

static void simulate_part(void *ctx, struct threads *t, unsigned thread)
{
	struct drawing *d = ctx;
	struct threads_deal deal;
	struct err e = { 0 };
	size_t from, to;

	threads_deal(&deal, t, thread, d->n * (COST_DRAWS - 1), 1);
	while (threads_take(&deal, &from, &to))
		for (size_t i = from; i < to; i++) {
			const bool go = !is_over(d);
			const bool ok =
				!go ||
				simulate_draw(d, i / (COST_DRAWS - 1),
					      1 + (int)(i % (COST_DRAWS - 1)),
					      &e);

			pthread_mutex_lock(&d->lock);
			progress_step(&d->bar, 1);
			if (!ok && !d->failed) {
				d->failed = true;
				*d->e = e;
			}
			pthread_mutex_unlock(&d->lock);
		}
}

static bool simulate_all(struct drawing *d, struct err *e)
{
	struct threads *t = threads_new(d->j->o->jobs, e);

	if (!t)
		return false;
	pthread_mutex_init(&d->lock, NULL);
	progress_init(&d->bar, "other costs", d->n * (COST_DRAWS - 1),
		      d->j->o->quiet);
	threads_run(t, simulate_part, d);
	progress_fini(&d->bar);
	pthread_mutex_destroy(&d->lock);
	threads_free(t);
	return !d->failed;
}

/* Of a problem that was not drawn to its end nothing is known. */
static void drop_unfinished(struct candidates *h)
{
	bool whole = true;

	for (size_t i = 0; i < h->legal; i++)
		for (int k = 0; k < COST_DRAWS && h->v[i].draw; k++)
			whole = whole && h->v[i].draw[k] > 0;
	for (size_t i = 0; i < h->legal && !whole; i++) {
		free(h->v[i].draw);
		h->v[i].draw = NULL;
	}
}

bool draw_finalists(const struct decider *j, struct candidates *h, size_t n,
		    uint64_t end_ns, struct err *e)
{
	struct drawing d = { .j = j, .end_ns = end_ns, .e = e };
	const uint32_t most = j->o->budget.draw;
	bool ok = true;

	d.of = xcalloc(n * TUNE_DRAWN_MOST + 1, sizeof(*d.of));
	for (int i = 0; i < COST_DRAWS; i++)
		cost_draw(j->o->costs, i, &d.cost[i]);
	for (size_t i = 0; i < n; i++)
		add_finalists(&d, &h[i], most);
	if (d.n)
		ok = simulate_all(&d, e);
	for (size_t i = 0; i < n; i++)
		drop_unfinished(&h[i]);
	free(d.of);
	return ok;
}

/* ---- what they say ---- */

static bool counts(const struct candidate *x)
{
	return x->draw && x->c.state == RES_TUNE_TIMED;
}

size_t draw_fastest(const struct candidates *h, int draw)
{
	size_t best = h->n;

	for (size_t i = 0; i < h->legal; i++)
		if (counts(&h->v[i]) &&
		    (best == h->n ||
		     h->v[i].draw[draw] < h->v[best].draw[draw]))
			best = i;
	return best;
}

double draw_worst(const struct candidates *h, size_t i)
{
	double worst = NAN;

	for (int k = 0; k < COST_DRAWS && h->v[i].draw; k++) {
		const size_t best = draw_fastest(h, k);

		if (best < h->n)
			worst = fmax(worst,
				     h->v[i].draw[k] / h->v[best].draw[k]);
	}
	return worst;
}

struct tune_standing draw_standing(const struct candidates *h, size_t i,
				   size_t other)
{
	const double *a = h->v[i].draw;
	const double *b = other < h->n ? h->v[other].draw : NULL;
	struct tune_standing s = { .worst = NAN, .least = NAN, .most = NAN };

	if (!a)
		return s;
	s.draws = COST_DRAWS;
	s.worst = draw_worst(h, i);
	for (int k = 0; k < COST_DRAWS; k++) {
		s.won += draw_fastest(h, k) == i;
		if (b) {
			s.least = fmin(s.least, a[k] / b[k]);
			s.most = fmax(s.most, a[k] / b[k]);
		}
	}
	return s;
}

/* ---- as a row says it ---- */

#define STANDING "fastest in %d of %d draws, at worst %lf of the best"
#define BESIDE	 ", %lf to %lf of the winner"

void draw_text(const struct tune_standing *s, char out[TUNE_REASON])
{
	int at = snprintf(out, TUNE_REASON,
			  "fastest in %d of %d draws, at "
			  "worst %.4f of the best",
			  s->won, s->draws, s->worst);

	if (!isnan(s->least))
		snprintf(out + at, (size_t)(TUNE_REASON - at),
			 ", %.4f to %.4f of the winner", s->least, s->most);
}

bool draw_parse(const char *reason, struct tune_standing *s)
{
	*s = (struct tune_standing){ .worst = NAN, .least = NAN, .most = NAN };
	return sscanf(reason, STANDING BESIDE, &s->won, &s->draws, &s->worst,
		      &s->least, &s->most) >= 3;
}
