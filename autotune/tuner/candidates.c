/*
 * autotune/tuner/candidates.c - which candidate to simulate next.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

enum { PER_TILE = 1 };

/* ---- what is known already ---- */

static struct candidate *find_candidate(struct candidates *h,
					const char *config)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->v[i].config, config))
			return &h->v[i];
	return NULL;
}

static bool take_known(void *ctx, const struct res_tune *t)
{
	struct candidates *h = ctx;
	struct candidate *x = find_candidate(h, t->config);

	if (x)
		x->known = true;
	/* A bound ruled it out beside a fastest that may be wrong by now. */
	if (!x || x->c.state != RES_TUNE_RANKED ||
	    t->state == RES_TUNE_RANKED || !strncmp(t->reason, "bound: ", 7))
		return true;
	x->c.state = t->state;
	x->taken = true;
	snprintf(x->c.reason, sizeof(x->c.reason), "%s", t->reason);
	snprintf(x->object, sizeof(x->object), "%s", t->object);
	snprintf(x->limit, sizeof(x->limit), "%s", t->limits);
	x->time_s = t->time_s;
	x->clock_hz = t->clock_hz;
	h->taken += t->state == RES_TUNE_TIMED;
	if (t->state == RES_TUNE_TIMED)
		candidates_take(h, (size_t)(x - h->v));
	return true;
}

struct seeding {
	struct candidates *h;
	double far[CANDIDATE_SEEDS];
};

/* The nearest first. */
static bool add_seed(void *ctx, const struct res_tune_winner *w)
{
	struct seeding *s = ctx;
	struct candidates *h = s->h;
	double far = tune_distance(h->p, &w->key);
	struct candidate *x = find_candidate(h, w->tune.config);
	size_t at = h->n_seeds;

	if (!x || x->c.state != RES_TUNE_RANKED || far > TUNE_NEAREST_FAR)
		return true;
	for (size_t i = 0; i < h->n_seeds; i++)
		if (&h->v[h->seed[i]] == x)
			return true;
	while (at > 0 && far < s->far[at - 1])
		at--;
	if (at == CANDIDATE_SEEDS)
		return true;
	h->n_seeds += h->n_seeds < CANDIDATE_SEEDS;
	for (size_t i = h->n_seeds - 1; i > at; i--) {
		h->seed[i] = h->seed[i - 1];
		s->far[i] = s->far[i - 1];
	}
	h->seed[at] = (size_t)(x - h->v);
	s->far[at] = far;
	return true;
}

struct res_tune candidate_row(const struct candidate *x)
{
	bool timed = x->c.state == RES_TUNE_TIMED;
	bool legal = x->c.bound_s > 0;

	return (struct res_tune){
		.config = x->config, .state = x->c.state,
		.reason = x->c.reason,
		.limits = timed ? x->limit : x->c.limit,
		.object = x->object,
		.bound_s = legal ? x->c.bound_s : NAN,
		.time_s = timed ? x->time_s : NAN, .lo_s = NAN, .hi_s = NAN,
		.clock_hz = timed ? x->clock_hz : NAN, .samples = timed,
	};
}

/* What is not there yet; who was killed may have left a part of it. */
static bool store_space(struct candidates *h, struct tune_store *s,
			const struct res_tune_key *key, struct err *e)
{
	bool ok = true;

	res_batch_begin(s->db);
	for (size_t i = 0; ok && i < h->n; i++) {
		struct res_tune t = candidate_row(&h->v[i]);

		ok = h->v[i].known || res_tune_put(s->db, s->run, key, &t, e);
	}
	return res_batch_end(s->db, ok ? e : NULL) && ok;
}

bool candidates_init(struct candidates *h, const struct tune_problem *p,
		     const struct tune_opts *o, struct tune_store *s,
		     struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_key key = tune_store_key(s, p, RES_SIMULATED, "", op);
	struct tune_space space;
	struct seeding seeding = { .h = h };

	tune_space_init(&space, p, o->costs);
	*h = (struct candidates){ .p = p, .n = space.n, .legal = space.legal,
				  .best = space.n };
	h->v = xcalloc(space.n + 1, sizeof(*h->v));
	h->tried = xcalloc(space.n + 1, sizeof(*h->tried));
	for (size_t i = 0; i < space.n; i++) {
		h->v[i].c = space.v[i];
		gemm_config_name(&space.v[i].config, h->v[i].config,
				 TUNE_TEXT);
	}
	tune_space_fini(&space);
	return res_tune_each(s->db, &key, take_known, h, e) &&
	       store_space(h, s, &key, e) &&
	       res_tune_winners(s->db, s->chip, op, add_seed, &seeding, e);
}

void candidates_fini(struct candidates *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->v[i].draw);
	free(h->v);
	free(h->tried);
	*h = (struct candidates){ 0 };
}

/* ---- the order ---- */

static bool same_tile(const struct gemm_config *a, const struct gemm_config *b)
{
	return a->m == b->m && a->n == b->n;
}

static int of_tile(const struct candidates *h, const struct gemm_config *c)
{
	int n = 0;

	for (size_t i = 0; i < h->legal; i++)
		n += h->v[i].taken && same_tile(&h->v[i].c.config, c) &&
		     strncmp(h->v[i].c.reason, "bound: ", 7);
	return n;
}

/* Its bound says that it cannot be faster than what there is. */
static bool is_hopeless(const struct candidates *h, struct candidate *x)
{
	if (h->best == h->n || x->c.bound_s < h->v[h->best].time_s)
		return false;
	x->c.state = RES_TUNE_REJECTED;
	x->taken = true;
	snprintf(x->c.reason, sizeof(x->c.reason), "bound: %.2f us (%s) at "
		 "least, %.64s takes %.2f", x->c.bound_s * 1e6, x->c.limit,
		 h->v[h->best].config, h->v[h->best].time_s * 1e6);
	return true;
}

static size_t first_free(struct candidates *h, int per_tile)
{
	for (size_t i = 0; i < h->legal; i++) {
		struct candidate *x = &h->v[i];

		if (!x->taken && !is_hopeless(h, x) &&
		    of_tile(h, &x->c.config) < per_tile)
			return i;
	}
	return h->n;
}

/* ---- what to expect ---- */

static double log_ratio(double a, double b)
{
	return fabs(log2(a / b));
}

/*
 * How unlike two configurations are: doublings of the tile's sides, and ones
 * and halves for the rest.
 */
static double config_distance(const struct gemm_config *a,
			      const struct gemm_config *b)
{
	double shape = log_ratio(a->m, b->m) + log_ratio(a->n, b->n) +
		       log_ratio(a->k, b->k);
	int large = (a->waves_m != b->waves_m || a->waves_n != b->waves_n) +
		    (a->buffers != b->buffers) + (a->prefetch != b->prefetch) +
		    (a->split != b->split || a->stream_k != b->stream_k) +
		    (a->b_direct != b->b_direct);
	int small = (a->unroll != b->unroll) + (a->order != b->order) +
		    (a->lds != b->lds) + (a->cu_mode != b->cu_mode) +
		    (a->even != b->even);

	return shape + large + 0.5 * small;
}

/* What could not be compiled is taken for so much slower than its estimate. */
#define USELESS 3.0

static double slowdown_of(const struct candidate *x)
{
	return x->c.state == RES_TUNE_TIMED ? x->time_s / x->c.estimate_s
					    : USELESS;
}

/*
 * The estimate corrected by its error for configurations like this one: their
 * mean, weighted by likeness (Nadaraya and Watson), with the mean of all for
 * where nothing is near.  What is far from all gets a little credit.
 */
static double expected_time(const struct candidates *h,
			    const struct candidate *x, double mean)
{
	const double credit = 0.08, prior = 0.2;
	double sum = prior * mean, weight = prior;

	for (size_t i = 0; i < h->n_tried; i++) {
		const struct candidate *t = &h->v[h->tried[i]];
		double d = config_distance(&x->c.config, &t->c.config);

		if (d >= 4)
			continue;
		double w = exp(-d * d / 2);
		sum += w * slowdown_of(t);
		weight += w;
	}
	return x->c.estimate_s * sum / weight *
	       (1 - credit * prior / weight);
}

/* No slower than this by the estimate: the rest is not looked at. */
#define FAR_OFF 2.5

static size_t most_promising(struct candidates *h)
{
	size_t found = h->n;
	double least = INFINITY, mean = 0;

	for (size_t i = 0; i < h->n_tried; i++)
		mean += slowdown_of(&h->v[h->tried[i]]) / (double)h->n_tried;
	for (size_t i = 0; i < h->legal; i++) {
		struct candidate *x = &h->v[i];

		if (x->c.estimate_s > FAR_OFF * h->v[0].c.estimate_s)
			break; /* they are in this order */
		if (x->taken || is_hopeless(h, x))
			continue;
		double t = expected_time(h, x, mean);
		if (t < least) {
			least = t;
			found = i;
		}
	}
	return found;
}

bool candidates_follow(struct candidates *h, const struct candidates *other,
		       uint32_t budget, size_t *out)
{
	struct candidate *x;

	if (h == other || h->done || other->best == other->n ||
	    h->taken >= budget)
		return false;
	x = find_candidate(h, other->v[other->best].config);
	if (!x || x->taken || x->c.state != RES_TUNE_RANKED ||
	    is_hopeless(h, x))
		return false;
	x->taken = true;
	h->taken++;
	*out = (size_t)(x - h->v);
	return true;
}

static size_t next_seed(struct candidates *h)
{
	while (h->n_seeds) {
		size_t i = h->seed[--h->n_seeds];

		if (!h->v[i].taken && !is_hopeless(h, &h->v[i]))
			return i;
	}
	return h->n;
}

bool candidates_next(struct candidates *h, uint32_t budget, size_t *out)
{
	if (h->done || h->taken >= budget)
		return false;
	*out = next_seed(h);
	if (*out == h->n)
		*out = h->taken < budget / 4 ? first_free(h, PER_TILE)
					     : most_promising(h);
	if (*out == h->n)
		*out = first_free(h, INT32_MAX);
	if (*out == h->n)
		return false;
	h->v[*out].taken = true;
	h->taken++;
	return true;
}

void candidates_drop(struct candidates *h, size_t i)
{
	h->v[i].taken = false;
	h->taken--;
}

void candidates_take(struct candidates *h, size_t i)
{
	struct candidate *x = &h->v[i];

	h->tried[h->n_tried++] = i;
	if (x->c.state == RES_TUNE_TIMED) {
		h->timed++;
		if (h->best == h->n || x->time_s < h->v[h->best].time_s)
			h->best = i;
	}
}
