/*
 * engine/cmd/cmd_bench_store.c - what bench measured, into the database.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "engine/cmd/cmd_bench.h"
#include "engine/cpu/cpu.h"
#include "results/stats/stats.h"

bool qwen_bench_begin(struct qwen_bench *b, struct err *e)
{
	struct res_start start = { .tool = "t0-qwen3 bench",
				   .argc = b->c->cmd.line_argc,
				   .argv = b->c->cmd.line_argv,
				   .seed = b->c->seed };
	char inputs[512];

	res_params(inputs, sizeof(inputs),
		   "model:X prompt:X weights:s cache:s backend:s threads:u "
		   "chunk:U fresh:b copied:b ?prompt_file:X ?activations:s "
		   "?devices:U",
		   b->model_hash, b->prompt_hash,
		   qwen_weights_name(b->s.model.layer[0].q.type),
		   b->c->cache ? b->c->cache : "f16", b->s.model.backend->name,
		   threads_count(b->s.threads), b->c->chunk, b->c->fresh,
		   b->c->copy, b->file_hash, b->c->activations,
		   b->c->devices > 1 ? b->c->devices : 0);
	start.inputs = inputs;
	b->db = res_open(b->c->db, RES_WRITE, e);
	bool ok = b->db && res_host_self(b->db, &start.host, e) &&
		  res_build_self(b->db, &start.build, e) &&
		  res_run_begin(b->db, &start, &b->run, e);

	return ok;
}

bool qwen_bench_end(struct qwen_bench *b, bool ok, struct err *e)
{
	const int stop = *b->c->stop;
	const int code = ok ? 0 : stop ? cmd_stop_status(stop) : EXIT_TROUBLE;
	enum res_state end = ok ? RES_COMPLETE :
			     stop ? RES_INTERRUPTED : RES_FAILED;
	struct err late = { 0 };

	if (end == RES_INTERRUPTED)
		err_set(e, ERR_STOPPED, "the samples that were finished are "
			"stored");
	if (!b->run || res_run_finish(b->db, b->run, end, code,
				      ok ? NULL : e->msg, &late))
		return ok;
	if (ok)
		*e = late;
	return false;
}

static enum res_origin result_origin(const struct qwen_bench *b)
{
	return qwen_is_emulated(&b->s.model) ? RES_EMULATED : RES_HARDWARE;
}

bool qwen_bench_samples(struct qwen_bench *b, int64_t case_id,
			const char *metric, const char *unit, const double *v,
			enum res_better better, struct res_interval *median,
			struct err *e)
{
	const size_t n = b->finished;
	struct res_interval m = res_median(v, n);
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit,
				.value = m.value, .lo = m.lo, .hi = m.hi,
				.n = (int64_t)n, .clock_hz = NAN,
				.better = better, .origin = result_origin(b),
				.samples = v, .n_samples = n };

	*median = m;
	return res_result_add(b->db, &r, NULL, e);
}

static bool store_exact(struct qwen_bench *b, int64_t case_id,
			const char *metric, const char *unit, double v,
			enum res_better better, struct err *e)
{
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit, .value = v,
				.lo = v, .hi = v, .n = 1, .clock_hz = NAN,
				.better = better, .origin = result_origin(b) };

	return res_result_add(b->db, &r, NULL, e);
}

bool qwen_bench_derived(struct qwen_bench *b, int64_t case_id,
			  const char *metric, const char *unit, double v,
			  enum res_better better, struct err *e)
{
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit, .value = v,
				.lo = NAN, .hi = NAN, .n = 1, .clock_hz = NAN,
				.better = better, .origin = result_origin(b) };

	return res_result_add(b->db, &r, NULL, e);
}

bool qwen_bench_correct(struct qwen_bench *b, int64_t case_id,
			const char *why, struct err *e)
{
	struct res_verdict v = { .run = b->run, .case_id = case_id,
				 .kind = RES_CORRECTNESS, .answer = RES_PASS,
				 .reason = why };

	return res_verdict_add(b->db, &v, e);
}

static bool store_correctness(struct qwen_bench *b, int64_t case_id,
			      struct err *e)
{
	char text[128];

	snprintf(text, sizeof(text), "one piece and one by one differ by %.2g",
		 b->error);
	return qwen_bench_correct(b, case_id, text, e);
}

static enum res_answer is_coherent(const struct qwen_bench *b, char text[128])
{
	const struct qwen_config *m = &b->s.model.config;
	const struct qwen_stream s = { b->said.v, b->said.n, m->stop,
				       m->n_stops, false };
	struct qwen_coherence r;
	struct qwen_limits l;

	if (!b->s.tok) {
		snprintf(text, 128, "the model has no tokenizer");
		return RES_NODATA;
	}
	qwen_limits_init(&l);
	qwen_coherence_check(&r, &s, b->s.tok, &l);
	snprintf(text, 128, "%s", r.passed ? "no fault found" :
					     "the decoded text is broken");
	for (int i = 0; i < QWEN_LIMITS; i++)
		if (r.broken[i])
			snprintf(text, 128, "%s is %.3g",
				 qwen_limit_name((enum qwen_limit)i),
				 r.value[i]);
	return r.passed ? RES_PASS : RES_FAIL;
}

bool qwen_bench_coherence(struct qwen_bench *b, int64_t case_id, uint32_t depth,
			  struct err *e)
{
	char text[128];
	struct res_verdict v = { .run = b->run, .case_id = case_id,
				 .kind = RES_COHERENCE,
				 .answer = RES_NODATA,
				 .reason = text };

	if (depth)
		snprintf(text, sizeof(text), "what stands before means nothing");
	else
		v.answer = is_coherent(b, text);

	return res_verdict_add(b->db, &v, e);
}

/* What the share of a phase is a share of. */
static void limit_name(const struct qwen_bench *b, const char *phase,
		       char out[static 80])
{
	if (strcmp(phase, "prefill") != 0)
		snprintf(out, 80, "reads of memory");
	else if (b->s.model.backend != &qwen_cpu)
		snprintf(out, 80, "the host's unit");
	else
		snprintf(out, 80, "%s",
			 qwen_roofline_unit(b->s.model.layer[0].q.type));
}

/* Four digits, and all of those before the point. */
static void rate_cell(struct table *t, int col, double v)
{
	if (!isnan(v))
		table_cell(t, col, v < 1000 ? "%.4g" : "%.0f", v);
}

void qwen_bench_speed_cells(struct table *t, struct res_interval speed)
{
	rate_cell(t, BENCH_SPEED, speed.value);
	rate_cell(t, BENCH_SPEED_LO, speed.lo);
	rate_cell(t, BENCH_SPEED_HI, speed.hi);
}

/* One line: speed, and what share of its limit that is. */
static void add_row(struct qwen_bench *b, const struct qwen_case *k,
		    struct res_interval speed, double first,
		    struct res_interval share)
{
	char limit[80];

	limit_name(b, k->phase, limit);
	table_row(&b->t);
	table_cell(&b->t, BENCH_PHASE, "%s", k->phase);
	table_cell(&b->t, BENCH_TOKENS, "%u", k->tokens);
	table_cell(&b->t, BENCH_BATCH, "%u", k->width);
	qwen_bench_speed_cells(&b->t, speed);
	if (!isnan(share.lo)) {
		table_cell(&b->t, BENCH_PERCENT_LO, "%.1f", 100 * share.lo);
		table_cell(&b->t, BENCH_PERCENT_HI, "%.1f", 100 * share.hi);
	}
	if (!isnan(first))
		table_cell(&b->t, BENCH_FIRST, "%.3g", first);
	table_cell(&b->t, BENCH_PERCENT, "%.1f", 100 * share.value);
	table_cell(&b->t, BENCH_SAMPLES, "%llu",
		   (unsigned long long)b->finished);
	table_cell(&b->t, BENCH_LIMIT, "%s", limit);
	table_cell(&b->t, BENCH_DEPTH, "%u", k->depth);
	table_cell(&b->t, BENCH_ACTIVATIONS, "%s",
		   qwen_cmd_activations(&b->s.model,
					strcmp(k->phase, "prefill") == 0));
}

static bool case_of(struct qwen_bench *b, const struct qwen_case *k,
		    int64_t *id, struct err *e)
{
	char params[128];

	res_params(params, sizeof(params), "phase:s tokens:u batch:u ?depth:u",
		   k->phase, k->tokens, k->width, k->depth);
	return res_case_id(b->db, "engine", qwen_cmd_name(b->c->model), params,
			   id, e);
}

/*
 * Stores speed and limit; `work` is what one token takes of the limit.  The
 * share is the median of those of the samples, each with its own limit.
 */
static bool store_speed(struct qwen_bench *b, const struct qwen_case *k,
			int64_t id, const char *metric, const char *unit,
			double work, struct res_interval *rate,
			struct res_interval *share, struct err *e)
{
	double *v = xcalloc(b->finished + 1, sizeof(*v));
	struct res_interval limit;
	bool ok;

	for (size_t i = 0; i < b->finished; i++)
		v[i] = k->speed[i] * work / k->limit[i];
	*share = res_median(v, b->finished);
	ok = qwen_bench_samples(b, id, "speed", "token/s", k->speed, RES_HIGHER,
			   rate, e) &&
	     qwen_bench_samples(b, id, metric, unit, k->limit, RES_HIGHER, &limit,
			   e) &&
	     qwen_bench_samples(b, id, "share_of_limit", "1", v, RES_HIGHER, &limit,
			   e);
	free(v);
	return ok;
}

static bool store_prefill(struct qwen_bench *b, const struct qwen_case *k,
			  int64_t id, struct err *e)
{
	const struct qwen_config *m = &b->s.model.config;
	double work = (qwen_config_flop(m, k->depth + k->tokens) -
		       qwen_config_flop(m, k->depth) +
		       qwen_config_flop(m, 0)) / k->tokens;
	struct res_interval share, rate, first;

	if (!store_speed(b, k, id, "product_limit", "FLOP/s", work, &rate, &share,
			 e) ||
	    !qwen_bench_samples(b, id, "first_token", "s", k->seconds, RES_LOWER,
			   &first, e) ||
	    !store_correctness(b, id, e))
		return false;
	add_row(b, k, rate, first.value, share);
	return true;
}

static bool device_counts(struct qwen_bench *b, int64_t id, struct err *e)
{
	struct qwen_counts c;

	qwen_state_counts(b->st, &c);
	if (!c.passes)
		return true;
	return store_exact(b, id, "packets_per_pass", "1",
		     (double)c.packets / (double)c.passes, RES_LOWER, e) &&
	       store_exact(b, id, "copies_per_pass", "1",
		     (double)c.copies / (double)c.passes, RES_LOWER, e);
}

/*
 * Keys and values that a step of decode reads, on average: of 2 .. tokens + 1
 * positions of each sequence behind its depth.
 */
static double cache_bytes(const struct qwen_bench *b, const struct qwen_case *k)
{
	double one = (double)qwen_state_bytes(b->st) /
		     ((double)b->widest * b->positions);

	return one * k->width * (k->depth + (k->tokens + 3) / 2.0);
}

static bool store_decode(struct qwen_bench *b, const struct qwen_case *k,
			 int64_t id, struct err *e)
{
	double weights = (double)b->s.model.token_bytes;
	double cache = cache_bytes(b, k), work = (weights + cache) / k->width;
	struct res_interval share, rate;

	if (!store_speed(b, k, id, "read_limit", "B/s", work, &rate, &share,
			 e) ||
	    !store_exact(b, id, "weights_per_pass", "B", weights, RES_LOWER,
			 e) ||
	    !store_exact(b, id, "cache_per_pass", "B", cache, RES_LOWER, e) ||
	    !qwen_bench_derived(b, id, "read_rate", "B/s", rate.value * work,
				RES_HIGHER, e) ||
	    !device_counts(b, id, e) || !store_correctness(b, id, e) ||
	    !qwen_bench_coherence(b, id, k->depth, e))
		return false;
	add_row(b, k, rate, NAN, share);
	return true;
}

bool qwen_bench_store(struct qwen_bench *b, const struct qwen_case *k,
		      struct err *e)
{
	int64_t id;

	return case_of(b, k, &id, e) &&
	       (strcmp(k->phase, "prefill") == 0 ? store_prefill(b, k, id, e) :
						   store_decode(b, k, id, e));
}

bool qwen_bench_store_memory(struct qwen_bench *b, struct err *e)
{
	struct rusage u;
	int64_t id;

	getrusage(RUSAGE_SELF, &u);
	return res_case_id(b->db, "engine", qwen_cmd_name(b->c->model),
			   "{\"phase\":\"memory\"}", &id, e) &&
	       qwen_bench_derived(b, id, "peak_memory", "B",
			     (double)u.ru_maxrss * 1024, RES_LOWER, e) &&
	       store_exact(b, id, "cache", "B", (double)qwen_state_bytes(b->st),
			   RES_LOWER, e);
}
