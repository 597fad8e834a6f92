/*
 * autotune/tuner/search.c - all problems: workers time, the main thread
 * decides.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/tuner/tune_int.h"

static const struct tune_budget budgets[] = {
	{ "quick", 16, 2, 3, 0, 3 },
	{ "standard", 96, 2, 6, 0, 5 },
	{ "exhaustive", UINT32_MAX, 2, 24, 0, 12 },
};

bool tune_budget_parse(const char *s, struct tune_budget *b, struct err *e)
{
	char *end;
	double seconds = strtod(s, &end);

	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++)
		if (!strcmp(s, budgets[i].name)) {
			*b = budgets[i];
			return true;
		}
	if (end == s || *end || !(seconds > 0) || seconds > 1e6)
		return err_set(e, ERR_USAGE, "--budget %s: wanted quick, "
			       "standard, exhaustive or seconds", s);
	*b = (struct tune_budget){ "seconds", UINT32_MAX, 2, 6, seconds, 5 };
	return true;
}

/* ---- workers ---- */

/* A candidate to be timed, then an answer on its way to the database. */
struct answer {
	size_t candidates, entry;
	bool last; /* of its round */
	struct answer *next;
};

struct search {
	const struct tune_opts *o;
	struct code_cache *codes;
	struct candidates *candidates; /* [n] */
	size_t n;
	uint64_t end_ns; /* of timing; 0: none */
	pthread_mutex_t lock;
	/*
	 * What is timed next is chosen by what was timed before, so that it is
	 * chosen in rounds: from what all earlier rounds said and nothing else,
	 * however many threads there are and whichever is faster.
	 */
	VEC(struct answer *) round;
	size_t begun, given; /* of the round */
	pthread_cond_t turn; /* a round has ended, or another begun */
	pthread_cond_t news;
	struct answer *first, **last;
	unsigned working;
	bool failed; /* the main thread gives up */
};

static bool is_over(const struct search *s)
{
	return s->failed || (s->o->stop && *s->o->stop) ||
	       (s->end_ns && time_mono_ns() > s->end_ns);
}

/* What is fast for the problems beside this one may be for it, too. */
static bool follow_neighbours(struct search *s, struct answer *a)
{
	struct candidates *h = &s->candidates[a->candidates];
	uint32_t most = s->o->budget.simulate;

	if (s->o->shard)
		return false;
	return (a->candidates > 0 &&
		candidates_follow(h, h - 1, most, &a->entry)) ||
	       (a->candidates + 1 < s->n &&
		candidates_follow(h, h + 1, most, &a->entry));
}

/* Chooses the candidates of a round, a few of each problem; the lock is held. */
static void begin_round(struct search *s)
{
	const int each = s->n == 1 && !s->o->shard ? 4 : 2;

	s->round.n = s->begun = s->given = 0;
	for (int k = 0; k < each; k++)
		for (size_t i = 0; !is_over(s) && i < s->n; i++) {
			struct answer a = { .candidates = i };

			if (!follow_neighbours(s, &a) &&
			    !candidates_next(&s->candidates[i],
					     s->o->budget.simulate, &a.entry))
				continue;
			struct answer *job = xcalloc(1, sizeof(*job));
			*job = a;
			vec_push(&s->round, job);
		}
	pthread_cond_broadcast(&s->turn);
}

/* Those that nobody began, as it is time to end, stay untried. */
static void drop_rest(struct search *s)
{
	for (size_t i = s->begun; i < s->round.n; i++) {
		struct answer *a = s->round.v[i];

		candidates_drop(&s->candidates[a->candidates], a->entry);
		free(a);
	}
	s->round.n = s->begun;
}

/* Its answers count, in the order of the round; the lock is held. */
static void end_round(struct search *s)
{
	for (size_t i = 0; i < s->round.n; i++) {
		struct answer *a = s->round.v[i];

		candidates_take(&s->candidates[a->candidates], a->entry);
		a->last = i + 1 == s->round.n;
		*s->last = a;
		s->last = &a->next;
	}
	s->round.n = s->begun = s->given = 0;
	pthread_cond_signal(&s->news);
	pthread_cond_broadcast(&s->turn);
}

/* The next to be timed, or NULL when there is no more; the lock is held. */
static struct answer *next_job(struct search *s)
{
	for (;;) {
		if (is_over(s))
			drop_rest(s);
		if (s->begun < s->round.n)
			return s->round.v[s->begun++];
		if (s->given < s->begun) { /* others are at it */
			pthread_cond_wait(&s->turn, &s->lock);
			continue;
		}
		if (s->round.n)
			end_round(s);
		begin_round(s);
		if (!s->round.n)
			return NULL;
	}
}

static bool time_it(struct search *s, const struct tune_problem *p,
		    struct candidate *x, struct err *e)
{
	struct tune_simulation t = { 0 };
	const struct gemm_code *code = code_get(s->codes, &p->op,
						&x->c.config, e);

	if (!code || !code_is_usable(s->o->costs->chip, &x->c.config, code, e) ||
	    !tune_simulate(p, &x->c.config, code, s->o->costs, false, &t, e))
		return false;
	tune_object_digest(code, x->object);
	x->time_s = t.time_s;
	x->clock_hz = t.clock_hz;
	snprintf(x->limit, sizeof(x->limit), "%s", t.limit);
	tune_simulation_fini(&t);
	return true;
}

/* Only this thread touches the entry until the round ends. */
static void work_on(struct search *s, const struct answer *a)
{
	struct candidates *h = &s->candidates[a->candidates];
	struct candidate *x = &h->v[a->entry], done = *x;
	struct err e = { 0 };

	if (time_it(s, h->p, &done, &e)) {
		done.c.state = RES_TUNE_TIMED;
	} else {
		done.c.state = RES_TUNE_REJECTED;
		snprintf(done.c.reason, sizeof(done.c.reason), "%.110s",
			 e.msg);
	}
	*x = done;
}

static void *run_worker(void *ctx)
{
	struct search *s = ctx;
	struct answer *a;

	pthread_mutex_lock(&s->lock);
	while ((a = next_job(s))) {
		pthread_mutex_unlock(&s->lock);
		work_on(s, a);
		pthread_mutex_lock(&s->lock);
		if (++s->given == s->round.n)
			pthread_cond_broadcast(&s->turn);
	}
	s->working--;
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- the main thread ---- */

/* NULL: all workers have ended and nothing is left. */
static struct answer *wait_answer(struct search *s, struct candidate *x)
{
	struct answer *a;

	pthread_mutex_lock(&s->lock);
	while (!s->first && s->working)
		pthread_cond_wait(&s->news, &s->lock);
	a = s->first;
	if (a) {
		s->first = a->next;
		if (!s->first)
			s->last = &s->first;
		*x = s->candidates[a->candidates].v[a->entry];
	}
	pthread_mutex_unlock(&s->lock);
	return a;
}

static bool store_answer(struct decider *j, const struct candidates *h,
			 const struct candidate *x, struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_key key = tune_store_key(j->s, h->p, RES_SIMULATED,
						 "", op);
	struct res_tune t = candidate_row(x);
	const struct tune_speed speed = {
		.problem = h->p, .config = &x->c.config,
		.origin = RES_SIMULATED, .time_s = x->time_s, .lo_s = NAN,
		.hi_s = NAN, .clock_hz = x->clock_hz, .n = 1,
	};

	return res_tune_put(j->s->db, j->s->run, &key, &t, e) &&
	       (x->c.state != RES_TUNE_TIMED ||
		tune_store_speed(j->s, &speed, e));
}

static void tell_seen(const struct search *s, const struct progress *bar,
		      const struct candidates *h, const struct candidate *x)
{
	const struct tune_seen seen = {
		.done = bar->done, .total = bar->total,
		.problem = h->p, .config = &x->c.config,
		.time_s = x->c.state == RES_TUNE_TIMED ? x->time_s : NAN,
	};

	if (s->o->see)
		s->o->see(s->o->see_ctx, &seen);
}

static bool take_answers(struct search *s, struct decider *j,
			 struct progress *bar, struct err *e)
{
	struct candidate x;
	struct answer *a;
	bool ok = true;

	/* A round is stored in one, so that what goes on goes on from a round. */
	res_batch_begin(j->s->db);
	while ((a = wait_answer(s, &x))) {
		ok = ok &&
		     store_answer(j, &s->candidates[a->candidates], &x, e);
		if (ok && a->last)
			ok = res_batch_commit(j->s->db, e);
		if (!ok) {
			pthread_mutex_lock(&s->lock);
			s->failed = true;
			pthread_mutex_unlock(&s->lock);
		}
		progress_step(bar, 1);
		tell_seen(s, bar, &s->candidates[a->candidates], &x);
		free(a);
	}
	return res_batch_end(j->s->db, ok ? e : NULL) && ok;
}

static uint64_t jobs_of(const struct search *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct candidates *h = &s->candidates[i];
		uint64_t most = s->o->budget.simulate;

		most = most < h->legal ? most : h->legal;
		n += h->done || most < h->taken ? 0 : most - h->taken;
	}
	return n;
}

static unsigned threads_of(const struct tune_opts *o)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return o->jobs ? o->jobs : n > 0 ? (unsigned)n : 1;
}

static bool time_all(struct search *s, struct decider *j, struct err *e)
{
	unsigned n = threads_of(s->o), started = 0;
	pthread_t *t = xcalloc(n, sizeof(*t));
	struct progress bar;

	progress_init(&bar, "timing", jobs_of(s), s->o->quiet);
	s->working = n;
	for (; started < n; started++)
		if (pthread_create(&t[started], NULL, run_worker, s)) {
			pthread_mutex_lock(&s->lock);
			s->working -= n - started;
			pthread_mutex_unlock(&s->lock);
			break;
		}
	bool ok = started ? take_answers(s, j, &bar, e)
			  : err_set(e, ERR_NOMEM, "no thread could be "
				    "started");
	for (unsigned i = 0; i < started; i++)
		pthread_join(t[i], NULL);
	progress_fini(&bar);
	free(t);
	return ok;
}

/* Those that a bound ruled out meanwhile were decided without an answer. */
static bool store_ruled_out(struct search *s, struct decider *j, struct err *e)
{
	bool ok = true;

	res_batch_begin(j->s->db);
	for (size_t i = 0; ok && i < s->n; i++)
		for (size_t k = 0; ok && k < s->candidates[i].legal; k++)
			if (!s->candidates[i].done &&
			    s->candidates[i].v[k].c.state ==
				    RES_TUNE_REJECTED &&
			    s->candidates[i].v[k].taken)
				ok = store_answer(j, &s->candidates[i],
						  &s->candidates[i].v[k], e);
	return res_batch_end(j->s->db, ok ? e : NULL) && ok;
}

static bool judge_all(struct search *s, struct decider *j,
		      struct tune_outcome *out, struct err *e)
{
	struct progress bar;
	bool ok = true;

	progress_init(&bar, "checking", s->n, s->o->quiet);
	for (size_t i = 0; ok && i < s->n; i++) {
		if (!out[i].stored)
			ok = decide_winner(j, &s->candidates[i], &out[i], e);
		progress_step(&bar, 1);
	}
	progress_fini(&bar);
	return ok;
}

static bool prepare_search(struct search *s, struct decider *j,
			   const struct tune_problems *l,
			   struct tune_outcome *out, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct candidates *h = &s->candidates[i];

		out[i] = (struct tune_outcome){ .problem = l->v[i] };
		if (!decide_stored(j, &l->v[i], &out[i], e))
			return false;
		h->p = &l->v[i];
		h->done = out[i].stored;
		if (!h->done && !decide_room(j, &l->v[i], e))
			return false;
		if (!h->done && !candidates_init(h, &l->v[i], s->o, j->s, e))
			return err_wrap(e, "the space of %ux%ux%u", l->v[i].m,
					l->v[i].n, l->v[i].k);
	}
	return true;
}

static bool all_known(const struct tune_outcome *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!out[i].stored)
			return false;
	return true;
}

/* What is measured needs no guesses. */
static bool draw_all(struct search *s, struct decider *j, uint64_t end_ns,
		     struct err *e)
{
	return j->measures ||
	       draw_finalists(j, s->candidates, s->n, end_ns, e);
}

bool tune_search(const struct tune_opts *o, const struct tune_problems *l,
		 struct tune_outcome *out, struct err *e)
{
	struct tune_store store = { 0 };
	struct decider j = { .o = o, .s = &store, .origin = RES_SIMULATED };
	struct search s = { .o = o, .n = l->n, .last = &s.first };
	/* Of the seconds, for times and draws; the rest is for checks. */
	const double timing = 0.6, drawing = 0.15;
	uint64_t drawn_ns = 0;

	s.candidates = xcalloc(l->n + 1, sizeof(*s.candidates));
	s.codes = j.codes = code_cache_new(o);
	if (o->budget.seconds > 0) {
		s.end_ns = time_mono_ns() +
			   (uint64_t)(o->budget.seconds * timing * 1e9);
		drawn_ns = s.end_ns +
			   (uint64_t)(o->budget.seconds * drawing * 1e9);
	}
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.news, NULL);
	pthread_cond_init(&s.turn, NULL);
	bool ok = tune_store_open(&store, o, e) &&
		  cost_store_peaks(o->costs, store.db, store.run, e) &&
		  decide_open(&j, e) &&
		  prepare_search(&s, &j, l, out, e);
	if (ok && !all_known(out, l->n))
		ok = time_all(&s, &j, e) && store_ruled_out(&s, &j, e) &&
		     draw_all(&s, &j, drawn_ns, e) &&
		     judge_all(&s, &j, out, e);
	tune_bench_close(&j.bench);
	ok = tune_store_close(&store, ok, o->stop && *o->stop, e) && ok;
	for (size_t i = 0; i < l->n; i++)
		candidates_fini(&s.candidates[i]);
	free(s.candidates);
	code_cache_free(s.codes);
	pthread_mutex_destroy(&s.lock);
	pthread_cond_destroy(&s.news);
	pthread_cond_destroy(&s.turn);
	vec_fini(&s.round);
	return ok;
}
