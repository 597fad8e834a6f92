/*
 * autotune/tuner/decide.c - the best candidate that is right.
 */
#include <math.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

enum { MEASURED_MOST = 64 };

static void count_states(const struct candidates *h, struct tune_outcome *out)
{
	out->space = (uint32_t)h->n;
	out->timed = h->timed;
	out->rejected = out->failed = 0;
	for (size_t i = 0; i < h->n; i++) {
		out->rejected += h->v[i].c.state == RES_TUNE_REJECTED;
		out->failed += h->v[i].c.state == RES_TUNE_FAILED;
	}
}

/* Those that were drawn first, by what they lose at worst; then by time. */
static bool is_preferred(const struct candidates *h, size_t a, size_t b)
{
	const double worst_a = draw_worst(h, a), worst_b = draw_worst(h, b);

	if (isnan(worst_a) != isnan(worst_b))
		return isnan(worst_b);
	if (worst_a != worst_b && !isnan(worst_a))
		return worst_a < worst_b;
	return h->v[a].time_s < h->v[b].time_s;
}

/* The best that is not known to be wrong, but for `not`; h->n: none. */
static size_t find_best(const struct candidates *h, size_t not)
{
	size_t best = h->n;

	for (size_t i = 0; i < h->legal; i++)
		if (i != not && h->v[i].c.state == RES_TUNE_TIMED &&
		    (best == h->n || is_preferred(h, i, best)))
			best = i;
	return best;
}

static bool open_bench(struct decider *j, struct err *e)
{
	bool ok = tune_bench_open(&j->bench, j->o->device, j->o->clock,
				  j->o->stop, e);

	if (ok && !j->o->quiet)
		fold_printf(stderr, 2, "t0-tune: %s\n",
			    kfd_info(j->bench.dev)->why);
	return ok;
}

bool decide_open(struct decider *j, struct err *e)
{
	const char *d = j->o->device;

	if (!j->o->clock && d && !strncmp(d, "soft", 4))
		return true;
	if (!open_bench(j, e))
		return false;
	j->measures = tune_bench_has_clock(&j->bench, &j->origin, NULL);
	if (j->measures)
		snprintf(j->operands, sizeof(j->operands), "%s",
			 j->o->operands);
	return true;
}

bool decide_room(struct decider *j, const struct tune_problem *p,
		 struct err *e)
{
	return (j->bench.dev || open_bench(j, e)) &&
	       tune_bench_has_room(&j->bench, p, e);
}

static bool check_candidate(struct decider *j, const struct candidates *h,
			    size_t i, const struct gemm_code *code,
			    struct res_tune_check *row,
			    struct tune_check_result *c, int *answer,
			    struct err *e)
{
	if (!j->bench.dev && !open_bench(j, e))
		return false;
	if (!tune_check(&j->bench, h->p, &h->v[i].c.config, code, j->o->seed, c,
			e))
		return err_wrap(e, "checking %s", h->v[i].config);
	row->pass = c->pass;
	row->worst = c->worst;
	row->compared = (int64_t)c->compared;
	row->seed = c->seed;
	row->detail = c->detail;
	*answer = c->pass ? 1 : -1;
	return res_tune_check_put(j->s->db, j->s->run, row, e);
}

/*
 * Is entry i right?  Its code may have been checked before.  *answer as in
 * res_tune_checked(), but never 0.
 */
static bool is_right(struct decider *j, struct candidates *h, size_t i,
		     int *answer, struct err *e)
{
	char op[TUNE_TEXT], class[TUNE_TEXT], object[20];
	struct candidate *x = &h->v[i];
	struct tune_check_result checked; /* row.detail is in it */
	struct res_tune_key key = tune_store_key(j->s, h->p, RES_SIMULATED, "",
						 op);
	const struct gemm_code *code = code_get(j->codes, &h->p->op,
						&x->c.config, e);

	if (!code)
		return false;
	tune_object_digest(code, object);
	tune_class(h->p, &x->c.config, class);
	struct res_tune_check row = {
		.target = j->s->chip, .op = op, .config = x->config,
		.object = object, .class = class,
	};
	if (!res_tune_checked(j->s->db, &row, answer, e))
		return false;
	/* That another product passed is for other shards to know. */
	if (j->o->shard && *answer > 0)
		*answer = 0;
	if (!*answer &&
	    !check_candidate(j, h, i, code, &row, &checked, answer, e))
		return false;
	if (*answer > 0)
		return true;
	x->c.state = RES_TUNE_FAILED;
	snprintf(x->c.reason, sizeof(x->c.reason), "wrong: %.100s",
		 row.detail ? row.detail : "found before");
	struct res_tune t = candidate_row(x);
	return res_tune_put(j->s->db, j->s->run, &key, &t, e);
}

/* The best right one but `not`; the wrong ones before it are marked. */
static bool first_right(struct decider *j, struct candidates *h, size_t not,
			size_t *out, struct err *e)
{
	for (;;) {
		int answer = 0;

		*out = find_best(h, not);
		if (*out == h->n || (j->o->stop && *j->o->stop))
			return true;
		if (!is_right(j, h, *out, &answer, e)) {
			*out = h->n;
			return e->code == ERR_STOPPED; /* the caller looks */
		}
		if (answer > 0)
			return true;
	}
}

/*
 * What is the fastest in a draw is what others are held against, and so has to
 * be right, too.
 */
static bool check_fastest(struct decider *j, struct candidates *h,
			  struct err *e)
{
	for (int k = 0; k < COST_DRAWS;) {
		const size_t i = draw_fastest(h, k);
		int answer = 0;

		if (i == h->n || (j->o->stop && *j->o->stop))
			return true;
		if (!is_right(j, h, i, &answer, e))
			return e->code == ERR_STOPPED; /* the caller looks */
		k += answer > 0;
	}
	return true;
}

/* The rows of the finalists say how they stand beside the winner. */
static bool store_standings(struct decider *j, struct candidates *h,
			    size_t best, struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_key key = tune_store_key(j->s, h->p, RES_SIMULATED, "",
						 op);
	bool ok = true;

	for (size_t i = 0; ok && i < h->legal; i++) {
		struct candidate *x = &h->v[i];

		if (!x->draw || x->c.state != RES_TUNE_TIMED)
			continue;
		const struct tune_standing s =
			draw_standing(h, i, i == best ? h->n : best);
		draw_text(&s, x->c.reason);
		const struct res_tune t = candidate_row(x);
		ok = res_tune_put(j->s->db, j->s->run, &key, &t, e);
	}
	return ok;
}

static void describe_standing(const struct candidates *h, size_t best,
			      size_t second, struct tune_outcome *out)
{
	const size_t fastest = draw_fastest(h, 0);

	out->standing = draw_standing(h, best, h->n);
	if (second < h->n)
		out->second_standing = draw_standing(h, second, best);
	if (out->standing.draws && h->v[fastest].time_s < h->v[best].time_s) {
		snprintf(out->fastest, TUNE_TEXT, "%s", h->v[fastest].config);
		out->fastest_s = h->v[fastest].time_s;
	}
}

static void describe_simulated(const struct candidates *h, size_t best,
			       size_t second, struct tune_outcome *out)
{
	const struct candidate *x = &h->v[best];

	out->found = true;
	out->time_s = x->time_s;
	out->lo_s = out->hi_s = NAN;
	out->samples = 1;
	out->clock_hz = x->clock_hz;
	out->bound_s = x->c.bound_s;
	snprintf(out->config, TUNE_TEXT, "%s", x->config);
	snprintf(out->limit, sizeof(out->limit), "%s", x->limit);
	tune_class(h->p, &x->c.config, out->class);
	if (second < h->n) {
		snprintf(out->second, TUNE_TEXT, "%s", h->v[second].config);
		out->second_s = h->v[second].time_s;
	}
	describe_standing(h, best, second, out);
}

static bool store_winner(struct decider *j, const struct candidates *h,
			 const struct tune_outcome *out, struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_winner w = {
		.key = tune_store_key(j->s, h->p, j->origin, j->operands, op),
		.tune = { .config = out->config }, .second = out->second,
		.class = out->class, .budget = j->o->budget.name,
		.candidates = (int64_t)h->n,
	};
	struct gemm_config c;
	const struct tune_speed x = {
		.problem = h->p, .config = &c, .winner = true,
		.origin = j->origin, .time_s = out->time_s, .lo_s = out->lo_s,
		.hi_s = out->hi_s, .clock_hz = out->clock_hz,
		.n = out->samples,
	};

	return res_tune_win(j->s->db, &w, e) &&
	       gemm_config_parse(out->config, &c, e) &&
	       tune_store_speed(j->s, &x, e);
}

/* The fastest right ones by the simulator, to be measured. */
static bool choose_finalists(struct decider *j, struct candidates *h, size_t *v,
			     size_t *n, struct err *e)
{
	size_t most = j->o->budget.measure, at;

	for (*n = 0; *n < most && *n < MEASURED_MOST; (*n)++) {
		if (!first_right(j, h, h->n, &at, e))
			return false;
		if (at == h->n)
			break;
		v[*n] = at;
		h->v[at].c.state = RES_TUNE_RANKED; /* out of the way */
	}
	for (size_t i = 0; i < *n; i++)
		h->v[v[i]].c.state = RES_TUNE_TIMED;
	return true;
}

static bool decide_by_device(struct decider *j, struct candidates *h,
			     struct tune_outcome *out, struct err *e)
{
	size_t v[MEASURED_MOST], n;

	if (!choose_finalists(j, h, v, &n, e))
		return false;
	count_states(h, out);
	out->origin = j->origin;
	return measure_finalists(j, h, v, n, out, e) &&
	       (!out->found || store_winner(j, h, out, e));
}

bool decide_winner(struct decider *j, struct candidates *h,
		   struct tune_outcome *out, struct err *e)
{
	size_t best, second = h->n;

	if (j->measures)
		return decide_by_device(j, h, out, e);
	if (!check_fastest(j, h, e) || !first_right(j, h, h->n, &best, e))
		return false;
	if (best < h->n && j->o->budget.verify > 1 &&
	    !first_right(j, h, best, &second, e))
		return false;
	count_states(h, out);
	out->origin = j->origin;
	if (best == h->n || (j->o->stop && *j->o->stop)) {
		snprintf(out->why, sizeof(out->why), "%s",
			 j->o->stop && *j->o->stop ? "interrupted"
			 : "no configuration could be timed and was right");
		return true;
	}
	describe_simulated(h, best, second, out);
	return store_standings(j, h, best, e) && store_winner(j, h, out, e);
}

/* ---- what was found before ---- */

struct known {
	const struct res_tune_key *key;
	const struct tune_budget *budget;
	struct tune_outcome *out;
};

static int rank_of(const char *budget)
{
	static const char *const order[] = { "quick", "standard",
					     "exhaustive" };

	for (int i = 0; i < (int)ARRAY_SIZE(order); i++)
		if (!strcmp(budget, order[i]))
			return i;
	return 0; /* seconds: whatever there was time for */
}

static bool take_known(void *ctx, const struct res_tune_winner *w)
{
	struct known *k = ctx;
	const struct res_tune_key *a = &w->key, *b = k->key;
	struct tune_outcome *out = k->out;

	if (a->m != b->m || a->n != b->n || a->k != b->k ||
	    a->batch != b->batch || a->origin != b->origin ||
	    strcmp(a->caches, b->caches) ||
	    strcmp(a->operands, b->operands) || strcmp(a->costs, b->costs) ||
	    strcmp(a->code, b->code) ||
	    rank_of(w->budget) < rank_of(k->budget->name))
		return true;
	out->found = out->stored = true;
	out->time_s = w->tune.time_s;
	out->lo_s = w->tune.lo_s;
	out->hi_s = w->tune.hi_s;
	out->samples = w->tune.samples;
	out->clock_hz = w->tune.clock_hz;
	out->bound_s = w->tune.bound_s;
	out->origin = a->origin;
	snprintf(out->config, TUNE_TEXT, "%s", w->tune.config);
	snprintf(out->second, TUNE_TEXT, "%s", w->second);
	snprintf(out->class, TUNE_TEXT, "%s", w->class);
	snprintf(out->limit, sizeof(out->limit), "%s", w->tune.limits);
	return false;
}

static bool take_count(void *ctx, const struct res_tune *t)
{
	struct tune_outcome *out = ctx;

	out->space++;
	out->timed += t->state == RES_TUNE_TIMED;
	out->rejected += t->state == RES_TUNE_REJECTED;
	out->failed += t->state == RES_TUNE_FAILED;
	if (!strcmp(t->config, out->second)) {
		out->second_s = t->time_s;
		draw_parse(t->reason, &out->second_standing);
	}
	if (!strcmp(t->config, out->config))
		draw_parse(t->reason, &out->standing);
	/* They come by their times. */
	if (t->state == RES_TUNE_TIMED && !out->fastest_s &&
	    draw_parse(t->reason, &(struct tune_standing){ 0 })) {
		out->fastest_s = t->time_s;
		if (t->time_s < out->time_s)
			snprintf(out->fastest, TUNE_TEXT, "%s", t->config);
	}
	return true;
}

bool decide_stored(struct decider *j, const struct tune_problem *p,
		   struct tune_outcome *out, struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_key key = tune_store_key(j->s, p, j->origin,
						 j->operands, op);
	struct known k = { .key = &key, .budget = &j->o->budget, .out = out };

	return res_tune_winners(j->s->db, j->s->chip, op, take_known, &k, e) &&
	       (!out->found ||
		res_tune_each(j->s->db, &key, take_count, out, e));
}
