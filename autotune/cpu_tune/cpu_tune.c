/*
 * autotune/cpu_tune/cpu_tune.c - the search: candidates are timed in rounds
 * and halved.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "results/db/tunes.h"
#include "results/stats/stats.h"

enum {
	SPACE_MAX = 600, /* configurations of a problem */
	FINALISTS = 4,	 /* and the default */
	ROUNDS = 11,	 /* of the finalists */
	SIEVE = 3,	 /* turns before slower ones leave */
};

struct candidate {
	struct cpu_gemm_config config;
	double best_s; /* of all turns: noise only adds */
	double time_s[ROUNDS];
	bool failed;
};

/* The search for one problem. */
struct search {
	const struct cpu_tune_opts *o;
	const struct cpu_problem *p;
	struct cpu_trial *trial;
	struct candidate *v; /* [n], v[0] is the default */
	size_t n, failed;
	uint64_t seed;
	double end_s;
	struct res_db *db;
	int64_t run;
	struct res_tune_key key;
	char target[CPU_GEMM_TEXT], op[CPU_GEMM_TEXT], code[RES_IDENTITY];
};

static double now_s(void)
{
	return (double)time_mono_ns() * 1e-9;
}

static bool is_stopped(const struct search *s)
{
	return s->o->stop && *s->o->stop;
}

/* ---- rows of the database ---- */

/* What says which machine code ran: this program's and the configuration. */
static void object_of(const struct search *s, const char *config,
		      char out[CPU_GEMM_TEXT * 2])
{
	snprintf(out, CPU_GEMM_TEXT * 2, "%s %s", s->code, config);
}

static void class_of(const struct search *s, char out[CPU_GEMM_TEXT])
{
	snprintf(out, CPU_GEMM_TEXT, "%zux%zux%zu", s->p->m, s->p->n, s->p->k);
}

static bool store_check(struct search *s, const struct candidate *c,
			double worst, size_t compared, struct err *e)
{
	char config[CPU_GEMM_TEXT], object[CPU_GEMM_TEXT * 2];
	char class[CPU_GEMM_TEXT];

	cpu_gemm_config_name(&c->config, config);
	object_of(s, config, object);
	class_of(s, class);
	const struct res_tune_check row = {
		.target = s->target,
		.op = s->op,
		.config = config,
		.object = object,
		.class = class,
		.pass = !c->failed,
		.worst = isfinite(worst) ? worst : NAN,
		.compared = (int64_t)compared,
		.seed = s->o->seed,
	};
	return res_tune_check_put(s->db, s->run, &row, e);
}

static bool store_tune(struct search *s, const struct candidate *c,
		       struct res_interval t, size_t samples, struct err *e)
{
	char config[CPU_GEMM_TEXT], object[CPU_GEMM_TEXT * 2];

	cpu_gemm_config_name(&c->config, config);
	object_of(s, config, object);
	bool tried = isfinite(c->best_s);
	const struct res_tune row = {
		.config = config,
		.object = object,
		.state = c->failed ? RES_TUNE_FAILED :
			 samples   ? RES_TUNE_TIMED :
			 tried	   ? RES_TUNE_REJECTED :
				     RES_TUNE_RANKED,
		.reason = c->failed ? "its result is wrong" :
			  samples   ? "" :
			  tried	    ? "slower than others in the first turns" :
				      "there was no time to try it",
		.bound_s = NAN,
		.time_s = t.value,
		.lo_s = t.lo,
		.hi_s = t.hi,
		.clock_hz = NAN,
		.samples = (int64_t)samples,
	};
	return res_tune_put(s->db, s->run, &s->key, &row, e);
}

static bool store_winner(struct search *s, const struct candidate *c,
			 const struct candidate *second, struct err *e)
{
	char config[CPU_GEMM_TEXT], other[CPU_GEMM_TEXT] = "";
	char class[CPU_GEMM_TEXT];

	cpu_gemm_config_name(&c->config, config);
	if (second)
		cpu_gemm_config_name(&second->config, other);
	class_of(s, class);
	const struct res_tune_winner w = { .key = s->key,
					   .tune = { .config = config },
					   .second = other,
					   .class = class,
					   .budget = "host",
					   .candidates = (int64_t)s->n };
	return res_tune_win(s->db, &w, e);
}

/* ---- turns ---- */

/* A wrong candidate is out; C is spoilt first, so what is left out shows. */
static bool check_one(struct search *s, struct candidate *c, struct err *e)
{
	float *out = cpu_trial_c(s->trial);
	size_t compared;

	for (size_t i = 0; i < s->p->m * s->p->n; i++)
		out[i] = NAN;
	cpu_trial_run(s->trial, &c->config);
	double worst = cpu_trial_worst(s->trial, &compared);
	c->failed = !(worst <= 1);
	s->failed += c->failed;
	c->best_s = c->failed ? INFINITY :
				cpu_trial_time(s->trial, &c->config);
	return store_check(s, c, worst, compared, e);
}

static int compare_time(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->best_s > y->best_s) - (x->best_s < y->best_s);
}

static void shuffle_order(struct search *s, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)(random_next(&s->seed) % i);
		struct candidate t = s->v[i - 1];
		s->v[i - 1] = s->v[j];
		s->v[j] = t;
	}
}

static void time_round(struct search *s, size_t n)
{
	for (size_t i = 0; i < n && !is_stopped(s); i++) {
		double t = cpu_trial_time(s->trial, &s->v[i].config);
		s->v[i].best_s = t < s->v[i].best_s ? t : s->v[i].best_s;
	}
}

/*
 * All candidates once, as far as half of the time goes; then the faster third
 * stays, turn by turn.  Returns how many are left, in front, the fastest first.
 */
static size_t halve_candidates(struct search *s, struct err *e)
{
	double half = (now_s() + s->end_s) / 2;
	size_t n = 0;

	shuffle_order(s, s->n);
	for (; n < s->n && !is_stopped(s) && (n == 0 || now_s() < half); n++)
		if (!check_one(s, &s->v[n], e))
			return 0;
	for (;;) {
		qsort(s->v, n, sizeof(*s->v), compare_time);
		while (n && s->v[n - 1].failed)
			n--;
		if (n <= FINALISTS)
			return n;
		n = n / 3 > FINALISTS ? n / 3 : FINALISTS;
		for (int i = 0; i < SIEVE && now_s() < s->end_s; i++)
			time_round(s, n);
	}
}

/* The default takes part whatever its place; *at is where it stands then. */
static bool with_default(struct search *s, size_t *n,
			 const struct cpu_gemm_config *first, size_t *at,
			 struct err *e)
{
	struct candidate *v = s->v, swap;

	for (*at = 0; memcmp(&v[*at].config, first, sizeof(*first)); ++*at)
		;
	if (*at < *n)
		return true;
	swap = v[*at];
	v[*at] = v[*n];
	v[*n] = swap;
	*at = (*n)++;
	return isfinite(v[*at].best_s) || v[*at].failed ||
	       check_one(s, &v[*at], e);
}

static void last_rounds(struct search *s, size_t n)
{
	for (int r = 0; r < ROUNDS; r++)
		for (size_t i = 0; i < n; i++) {
			struct candidate *c = &s->v[(i + (size_t)r) % n];
			c->time_s[r] = cpu_trial_time(s->trial, &c->config);
		}
}

static double median_time(const struct candidate *c)
{
	return c->failed ? INFINITY : res_median(c->time_s, ROUNDS).value;
}

/* The fastest of [0, n) but `but`; n if there is none. */
static size_t find_fastest(const struct search *s, size_t n, size_t but)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++)
		if (i != but && !s->v[i].failed &&
		    (best == n ||
		     median_time(&s->v[i]) < median_time(&s->v[best])))
			best = i;
	return best;
}

/* Is the default's time to the other's above 1, with its whole interval? */
static bool is_faster(const struct candidate *c, const struct candidate *than)
{
	double ratio[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ratio[i] = than->time_s[i] / c->time_s[i];
	return res_median(ratio, ROUNDS).lo > 1;
}

static bool decide_winner(struct search *s, size_t n, size_t first,
			  struct cpu_outcome *out, struct err *e)
{
	size_t best = find_fastest(s, n, n);

	if (best == n)
		return true;
	if (!s->v[first].failed && best != first &&
	    !is_faster(&s->v[best], &s->v[first]))
		best = first;
	size_t second = find_fastest(s, n, best);
	struct res_interval t = res_median(s->v[best].time_s, ROUNDS);
	out->found = true;
	out->time_s = t.value;
	out->lo_s = t.lo;
	out->hi_s = t.hi;
	out->samples = ROUNDS;
	out->default_s = median_time(&s->v[first]);
	cpu_gemm_config_name(&s->v[best].config, out->config);
	if (second < n)
		cpu_gemm_config_name(&s->v[second].config, out->second);
	for (size_t i = 0; i < s->n; i++) {
		bool last = i < n && !s->v[i].failed;
		t = last ? res_median(s->v[i].time_s, ROUNDS) :
			   (struct res_interval){ NAN, NAN, NAN };
		if (!store_tune(s, &s->v[i], t, last ? ROUNDS : 0, e))
			return false;
	}
	return store_winner(s, &s->v[best], second < n ? &s->v[second] : NULL,
			    e);
}

static bool search_problem(struct search *s, struct cpu_outcome *out,
			   struct err *e)
{
	struct cpu_gemm_config first, *space;
	size_t n, at;

	space = xcalloc(SPACE_MAX, sizeof(*space));
	s->n = cpu_gemm_candidates(
		s->p, s->o->level ? s->o->level : cpu_gemm_level(), space,
		SPACE_MAX);
	first = space[0];
	s->v = xcalloc(s->n + 1, sizeof(*s->v));
	for (size_t i = 0; i < s->n; i++)
		s->v[i] = (struct candidate){ .config = space[i],
					      .best_s = INFINITY };
	free(space);
	n = halve_candidates(s, e);
	out->candidates = s->n;
	bool ok = n > 0 && !is_stopped(s) &&
		  with_default(s, &n, &first, &at, e);
	if (ok) {
		last_rounds(s, n);
		ok = decide_winner(s, n, at, out, e);
	}
	out->failed = s->failed;
	free(s->v);
	/* Nothing was right, or it was stopped: no error, but no winner. */
	return ok || !e->code;
}

/* ---- a run ---- */

static bool take_known(void *ctx, const struct res_tune_winner *w)
{
	void **both = ctx;
	const struct search *s = both[0];
	struct cpu_outcome *out = both[1];

	if (w->key.m != s->key.m || w->key.n != s->key.n ||
	    w->key.k != s->key.k || strcmp(w->key.code, s->code))
		return true;
	out->found = out->stored = true;
	snprintf(out->config, sizeof(out->config), "%s", w->tune.config);
	snprintf(out->second, sizeof(out->second), "%s", w->second);
	out->time_s = w->tune.time_s;
	out->lo_s = w->tune.lo_s;
	out->hi_s = w->tune.hi_s;
	out->default_s = NAN;
	out->samples = (size_t)w->tune.samples;
	out->candidates = (size_t)w->candidates;
	return false;
}

static bool one_problem(struct search *s, struct cpu_outcome *out,
			struct err *e)
{
	void *both[] = { s, out };
	const struct cpu_tune_opts *o = s->o;

	cpu_problem_op(s->p, s->op);
	s->key = (struct res_tune_key){ .target = s->target,
					.op = s->op,
					.m = (int64_t)s->p->m,
					.n = (int64_t)s->p->n,
					.k = (int64_t)s->p->k,
					.batch = 1,
					.origin = RES_HARDWARE,
					.operands = "normal",
					.costs = "",
					.code = s->code };
	*out = (struct cpu_outcome){ .time_s = NAN };
	if (!res_tune_winners(s->db, s->target, s->op, take_known, both, e))
		return false;
	if (out->stored || is_stopped(s))
		return true;
	s->trial = cpu_trial_new(s->p, o->threads, o->seed, e);
	if (!s->trial)
		return false;
	s->failed = 0;
	s->end_s = now_s() + (o->seconds > 0 ? o->seconds : 5);
	bool ok = search_problem(s, out, e);
	cpu_trial_free(s->trial);
	return ok;
}

static bool code_digest(struct search *s, int64_t build, struct err *e)
{
	struct table t;
	bool ok;

	table_init(&t, "binary");
	ok = res_query(s->db, &t, 0, e,
		       "SELECT binary FROM builds WHERE id = ?", "i", build);
	if (ok && t.n_rows && t.row[0][0])
		snprintf(s->code, sizeof(s->code), "%s", t.row[0][0]);
	table_fini(&t);
	return ok;
}

static bool begin_run(struct search *s, struct err *e)
{
	struct res_start start = { .tool = "t0-tune --device host",
				   .argc = s->o->argc,
				   .argv = s->o->argv,
				   .seed = s->o->seed,
				   .shard = s->o->shard,
				   .work = s->o->work };

	s->db = res_open(s->o->db, RES_WRITE, e);
	return s->db && res_host_self(s->db, &start.host, e) &&
	       res_build_self(s->db, &start.build, e) &&
	       code_digest(s, start.build, e) &&
	       res_run_begin(s->db, &start, &s->run, e);
}

bool cpu_tune(const struct cpu_tune_opts *given, const struct cpu_problem *p,
	      size_t n, struct cpu_outcome *out, struct err *e)
{
	struct cpu_tune_opts o = *given;
	struct search s = { .o = &o, .seed = o.seed };
	struct threads *all = threads_new(o.threads, e);
	bool ok = all != NULL;

	if (ok)
		o.threads = threads_count(all);
	threads_free(all);
	cpu_target(o.threads, s.target);
	ok = ok && begin_run(&s, e);
	for (size_t i = 0; ok && i < n; i++) {
		s.p = &p[i];
		ok = one_problem(&s, &out[i], e);
	}
	if (s.run) {
		enum res_state state = !ok	      ? RES_FAILED :
				       is_stopped(&s) ? RES_INTERRUPTED :
							RES_COMPLETE;
		bool ended = res_run_finish(s.db, s.run, state,
					    ok ? 0 : err_exit_code(e),
					    ok ? NULL : e->msg, ok ? e : NULL);
		ok = ok && ended;
	}
	res_close(s.db);
	return ok;
}
