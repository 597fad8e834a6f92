/*
 * t0-qwen3 bench: tokens per second of prefill and decode, into the database.
 *
 * The prompt is made of ids from a seed, the same for every commit, so that two
 * runs have byte-identical inputs; their hash and the model's are part of what
 * is compared.  Before anything is timed the same tokens go through the model
 * in one piece and one by one, and must give the same logits: that is the
 * correctness verdict.  The text that was decoded is judged for coherence; a
 * random model fails there, and its speed is then no accepted win.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <xxhash.h>

#include "engine/cmd.h"
#include "results/results.h"
#include "results/stats.h"

#define MAX_SAMPLES 1000

struct bench {
	struct qwen_cmd *c;
	struct qwen_session s;
	struct qwen_state *st;
	struct res_db *db;
	int64_t run;
	uint64_t *prefill, *decode, *batch;
	size_t n_prefill, n_decode, n_batch;
	uint32_t longest, widest;
	struct qwen_ids prompt, said;
	uint64_t model_hash, prompt_hash;
	double error; /* of the self-check, relative */
	struct table t;
};

static uint32_t most(const uint64_t *v, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m = v[i] > m ? v[i] : m;
	return (uint32_t)m;
}

static bool sweeps_read(struct bench *b, struct err *e)
{
	uint64_t limit = b->s.model.config.max_positions;

	if (!cli_sweep(b->c->prefill, &b->prefill, &b->n_prefill, e) ||
	    !cli_sweep(b->c->decode, &b->decode, &b->n_decode, e) ||
	    !cli_sweep(b->c->batch, &b->batch, &b->n_batch, e))
		return false;
	if (!b->c->samples || b->c->samples > MAX_SAMPLES)
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 1 to %d",
			       (unsigned long long)b->c->samples, MAX_SAMPLES);
	b->longest = most(b->prefill, b->n_prefill);
	b->widest = most(b->batch, b->n_batch);
	uint64_t need = (uint64_t)b->longest + most(b->decode, b->n_decode);
	if (need > limit || !b->longest || !b->widest || b->widest > 1024)
		return err_set(e, ERR_USAGE, "--prefill and --decode up to "
			       "%llu tokens, --batch up to %u: wanted 1 to "
			       "%llu together, and 1 to 1024",
			       (unsigned long long)need, b->widest,
			       (unsigned long long)limit);
	return qwen_cmd_state(b->c, &b->s, b->widest, (uint32_t)need, &b->st,
			      e);
}

static void inputs_make(struct bench *b)
{
	const struct qwen_tensors *t = &b->s.model.tensors;
	uint64_t x = b->c->seed;

	for (uint32_t i = 0; i < b->longest; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		qwen_ids_add(&b->prompt,
			     (uint32_t)((x >> 33) % b->s.model.config.vocab));
	}
	b->prompt_hash = XXH3_64bits(b->prompt.v,
				     b->prompt.n * sizeof(*b->prompt.v));
	for (size_t i = 0; i < t->n_maps; i++)
		b->model_hash = XXH3_64bits_withSeed(t->map[i].base,
						     t->map[i].size_bytes,
						     b->model_hash);
}

/* ---- correctness ---- */

#define CHECKED 16u

static bool self_check(struct bench *b, struct err *e)
{
	uint32_t n = b->longest < CHECKED ? b->longest : CHECKED;
	uint32_t vocab = b->s.model.config.vocab;
	float *one = xcalloc(vocab, sizeof(*one));
	double square = 0, worst = 0;
	bool ok = true;

	for (uint32_t i = 0; ok && i < n; i++) {
		struct qwen_token t = { .id = b->prompt.v[i],
				      .logits = i + 1 == n };
		ok = qwen_forward(b->st, &t, 1, e);
	}
	if (ok)
		memcpy(one, qwen_logits(b->st, 0), vocab * sizeof(*one));
	qwen_state_cut(b->st, 0, 0);
	ok = ok && qwen_feed(b->c, b->st, b->prompt.v, n, NULL, NULL, e);
	const float *all = ok ? qwen_logits(b->st,
		(uint32_t)((n - 1) % b->c->chunk)) : NULL;
	for (uint32_t i = 0; ok && i < vocab; i++) {
		square += (double)one[i] * one[i];
		worst = fmax(worst, fabs((double)one[i] - all[i]));
	}
	b->error = worst / sqrt(square / vocab);
	if (ok && !(b->error < 1e-3))
		ok = err_set(e, ERR_DEVICE, "the logits of %u tokens in one "
			     "piece and one by one differ by %.3g of their "
			     "size; at most 0.001 is right", n, b->error);
	qwen_state_cut(b->st, 0, 0);
	free(one);
	return ok;
}

/* ---- timing ---- */

static void empty(struct bench *b)
{
	for (uint32_t i = 0; i < b->widest; i++)
		qwen_state_cut(b->st, i, 0);
}

/* Seconds for the first n tokens of the prompt. */
static bool prefill_once(struct bench *b, uint32_t n, double *seconds,
			 struct err *e)
{
	empty(b);
	uint64_t from = time_mono_ns();
	if (!qwen_feed(b->c, b->st, b->prompt.v, n, NULL, NULL, e))
		return false;
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	return true;
}

/* Seconds for n greedy steps of `width` sequences behind a short prompt. */
static bool decode_once(struct bench *b, uint32_t n, uint32_t width,
			double *seconds, struct err *e)
{
	struct qwen_token *t = xcalloc(width, sizeof(*t));
	bool ok = true;

	empty(b);
	b->said.n = 0;
	for (uint32_t i = 0; i < width; i++)
		t[i] = (struct qwen_token){ .id = b->prompt.v[i % b->prompt.n],
					    .sequence = i, .best = true };
	uint64_t from = 0;
	for (uint32_t i = 0; ok && i <= n; i++) {
		if (i == 1) /* the first step warms */
			from = time_mono_ns();
		ok = qwen_forward(b->st, t, width, e);
		for (uint32_t k = 0; ok && k < width; k++)
			t[k].id = qwen_best(b->st, k);
		if (ok)
			qwen_ids_add(&b->said, t[0].id);
	}
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	free(t);
	return ok;
}

/* ---- results ---- */

static bool run_begin(struct bench *b, struct err *e)
{
	struct res_start start = { .tool = "t0-qwen3 bench",
				   .argc = b->c->argc, .argv = b->c->argv,
				   .seed = b->c->seed };
	struct buf in = { 0 };

	buf_printf(&in, "{\"model\":\"%016llx\",\"prompt\":\"%016llx\","
			"\"weights\":\"%s\",\"cache\":\"%s\",\"backend\":"
			"\"cpu\",\"threads\":%u,\"chunk\":%llu}",
		   (unsigned long long)b->model_hash,
		   (unsigned long long)b->prompt_hash,
		   qwen_weights_name(b->s.model.layer[0].q.type),
		   b->c->cache ? b->c->cache : "f32",
		   threads_count(b->s.threads),
		   (unsigned long long)b->c->chunk);
	start.inputs = in.data;
	b->db = res_open(b->c->db, RES_WRITE, e);
	bool ok = b->db && res_host_self(b->db, &start.host, e) &&
		  res_build_self(b->db, &start.build, e) &&
		  res_run_begin(b->db, &start, &b->run, e);
	buf_fini(&in);
	return ok;
}

static bool store(struct bench *b, int64_t case_id, const char *metric,
		  const char *unit, const double *v, size_t n,
		  enum res_better better, double *median, struct err *e)
{
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit, .value = v[0],
				.lo = NAN, .hi = NAN, .n = (int64_t)n,
				.clock_hz = NAN, .better = better,
				.origin = RES_HARDWARE, .samples = v,
				.n_samples = n };
	struct res_interval m = res_median(v, n);

	r.value = m.value;
	r.lo = m.lo;
	r.hi = m.hi;
	if (median)
		*median = r.value;
	return res_result_add(b->db, &r, NULL, e);
}

static bool exact(struct bench *b, int64_t case_id, const char *metric,
		  const char *unit, double v, enum res_better better,
		  struct err *e)
{
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit, .value = v,
				.lo = v, .hi = v, .n = 1, .clock_hz = NAN,
				.better = better, .origin = RES_HARDWARE };

	return res_result_add(b->db, &r, NULL, e);
}

static bool verdicts(struct bench *b, int64_t case_id, bool decoded,
		     struct err *e)
{
	const struct qwen_config *m = &b->s.model.config;
	char text[128];
	struct res_verdict v = { .run = b->run, .case_id = case_id,
				 .kind = RES_CORRECTNESS, .answer = RES_PASS,
				 .reason = text };

	snprintf(text, sizeof(text), "one piece and one by one differ by %.2g",
		 b->error);
	if (!res_verdict_add(b->db, &v, e))
		return false;
	if (!decoded)
		return true;
	v.kind = RES_COHERENCE;
	v.answer = RES_NODATA;
	snprintf(text, sizeof(text), "the model has no tokenizer");
	if (b->s.tok) {
		struct qwen_stream s = { b->said.v, b->said.n, m->stop,
					 m->n_stops, false };
		struct qwen_coherence r;
		struct qwen_limits l;
		qwen_limits_init(&l);
		qwen_coherence_check(&r, &s, b->s.tok, &l);
		v.answer = r.passed ? RES_PASS : RES_FAIL;
		snprintf(text, sizeof(text), "%s", r.passed ?
			 "no fault found" : "the decoded text is broken");
		for (int i = 0; i < QWEN_LIMITS; i++)
			if (r.broken[i])
				snprintf(text, sizeof(text), "%s is %.3g",
					 qwen_limit_name((enum qwen_limit)i),
					 r.value[i]);
	}
	return res_verdict_add(b->db, &v, e);
}

static void row(struct bench *b, const char *phase, uint64_t tokens,
		uint64_t batch, double speed, double first)
{
	table_row(&b->t);
	table_cell(&b->t, 0, "%s", phase);
	table_cell(&b->t, 1, "%llu", (unsigned long long)tokens);
	table_cell(&b->t, 2, "%llu", (unsigned long long)batch);
	table_cell(&b->t, 3, "%.3f", speed);
	if (!isnan(first))
		table_cell(&b->t, 4, "%.4f", first);
	table_cell(&b->t, 5, "%llu", (unsigned long long)b->c->samples);
}

static const char *model_name(const struct bench *b)
{
	const char *end = strrchr(b->c->model, '/');

	return end && end[1] ? end + 1 : b->c->model;
}

static bool case_of(struct bench *b, const char *phase, uint64_t tokens,
		    uint64_t batch, int64_t *id, struct err *e)
{
	char params[128];

	snprintf(params, sizeof(params), "{\"phase\":\"%s\",\"tokens\":%llu,"
		 "\"batch\":%llu}", phase, (unsigned long long)tokens,
		 (unsigned long long)batch);
	return res_case_id(b->db, "engine", model_name(b), params, id, e);
}

static bool bench_prefill(struct bench *b, uint32_t n, struct err *e)
{
	double *seconds = xcalloc(b->c->samples, sizeof(*seconds));
	double *speed = xcalloc(b->c->samples, sizeof(*speed));
	double first = NAN, rate = NAN;
	int64_t id;
	bool ok = prefill_once(b, n, seconds, e); /* warms */

	for (uint64_t i = 0; ok && i < b->c->samples; i++) {
		ok = prefill_once(b, n, &seconds[i], e);
		speed[i] = n / seconds[i];
	}
	ok = ok && case_of(b, "prefill", n, 1, &id, e) &&
	     store(b, id, "speed", "token/s", speed, b->c->samples, RES_HIGHER,
		   &rate, e) &&
	     store(b, id, "first_token", "s", seconds, b->c->samples,
		   RES_LOWER, &first, e) &&
	     verdicts(b, id, false, e);
	if (ok)
		row(b, "prefill", n, 1, rate, first);
	free(seconds);
	free(speed);
	return ok;
}

static bool bench_decode(struct bench *b, uint32_t n, uint32_t width,
			 struct err *e)
{
	double *speed = xcalloc(b->c->samples, sizeof(*speed));
	double rate = NAN, s;
	int64_t id;
	bool ok = true;

	for (uint64_t i = 0; ok && i < b->c->samples; i++) {
		ok = decode_once(b, n, width, &s, e);
		speed[i] = (double)n * width / s;
	}
	ok = ok && case_of(b, "decode", n, width, &id, e) &&
	     store(b, id, "speed", "token/s", speed, b->c->samples, RES_HIGHER,
		   &rate, e) &&
	     exact(b, id, "weights_per_pass", "B",
		   (double)b->s.model.token_bytes, RES_LOWER, e) &&
	     exact(b, id, "read_rate", "B/s", rate / width *
			(double)b->s.model.token_bytes, RES_HIGHER, e) &&
	     verdicts(b, id, true, e);
	if (ok)
		row(b, "decode", n, width, rate, NAN);
	free(speed);
	return ok;
}

static bool memory(struct bench *b, struct err *e)
{
	struct rusage u;
	int64_t id;

	getrusage(RUSAGE_SELF, &u);
	return res_case_id(b->db, "engine", model_name(b),
			   "{\"phase\":\"memory\"}", &id, e) &&
	       exact(b, id, "peak_memory", "B", (double)u.ru_maxrss * 1024,
		     RES_LOWER, e) &&
	       exact(b, id, "cache", "B", (double)qwen_state_bytes(b->st),
		     RES_LOWER, e);
}

static bool all(struct bench *b, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < b->n_prefill; i++)
		ok = bench_prefill(b, (uint32_t)b->prefill[i], e);
	for (size_t k = 0; ok && k < b->n_batch; k++)
		for (size_t i = 0; ok && i < b->n_decode; i++)
			ok = bench_decode(b, (uint32_t)b->decode[i],
					  (uint32_t)b->batch[k], e);
	return ok && memory(b, e);
}

int qwen_cmd_bench(struct qwen_cmd *c, struct err *e)
{
	struct bench b = { .c = c };
	bool ok;

	if (!qwen_session_open(&b.s, c, false, e))
		return err_exit_code(e);
	table_init(&b.t, "phase,#tokens,#batch,#tokens_per_s,#first_token_s,"
			 "#samples");
	ok = sweeps_read(&b, e);
	if (ok) {
		inputs_make(&b);
		ok = self_check(&b, e) && run_begin(&b, e);
	}
	ok = ok && all(&b, e);
	if (b.run) {
		struct err late = { 0 };
		enum res_state end = ok ? RES_COMPLETE :
				     *c->stop ? RES_INTERRUPTED : RES_FAILED;
		if (!res_run_finish(b.db, b.run, end, ok ? 0 : EXIT_TROUBLE,
				    ok ? NULL : e->msg, &late) && ok) {
			*e = late;
			ok = false;
		}
	}
	ok = ok && qwen_cmd_table(c, &b.t, e);
	table_fini(&b.t);
	res_close(b.db);
	qwen_ids_fini(&b.prompt);
	qwen_ids_fini(&b.said);
	free(b.prefill);
	free(b.decode);
	free(b.batch);
	qwen_state_free(b.st);
	qwen_session_close(&b.s);
	return ok ? EXIT_YES : err_exit_code(e);
}
