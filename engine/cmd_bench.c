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
#include <unistd.h>
#include <xxhash.h>

#include "autotune/host.h"
#include "engine/backend.h"
#include "engine/cmd.h"
#include "engine/peak.h"
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
	uint32_t longest, widest, positions; /* positions: of a sequence */
	struct qwen_ids prompt, said;
	uint64_t model_hash, prompt_hash;
	double error; /* of the self-check, relative */
	struct qwen_peak *peak;
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
	b->positions = (uint32_t)need;
	return qwen_cmd_state(b->c, &b->s, b->widest, b->positions, &b->st,
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

/*
 * With integers, one by one rounds activations to 8 bits where one piece does
 * not: through 28 layers that is 7 % of the largest difference.  So it is with
 * tiles on a device, which round them to the weights' 16 bits.  Logits that
 * have nothing to do with each other differ by more than 400 %.
 */
#define CHECKED 16u

static bool self_check(struct bench *b, struct err *e)
{
	uint32_t n = b->longest < CHECKED ? b->longest : CHECKED;
	uint32_t vocab = b->s.model.config.vocab;
	bool rounds = b->s.model.layer[0].q.type >= QWEN_W_INT8 ||
		      b->s.model.backend != &qwen_cpu ||
		      (b->c->cache && strcmp(b->c->cache, "int8") == 0);
	const double bound = rounds ? 0.3 : 1e-3;
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
	if (ok && !(b->error < bound))
		ok = err_set(e, ERR_DEVICE, "the logits of %u tokens in one "
			     "piece and one by one differ by %.3g of their "
			     "size; at most %g is right", n, b->error, bound);
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

/* A word of a shell's command line. */
static void quote(struct buf *out, const char *s)
{
	buf_addc(out, ' ');
	buf_addc(out, '\'');
	for (; *s; s++)
		if (*s == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addc(out, *s);
	buf_addc(out, '\'');
}

/* The prompt must be the parent's: it has as many tokens. */
static void child_command(const struct bench *b, const char *phase, uint32_t n,
			  uint32_t width, struct buf *cmd)
{
	const struct qwen_cmd *c = b->c;
	const struct {
		const char *option, *value;
	} text[] = {
		{ "--model", c->model }, { "--backend", c->backend },
		{ "--weights", c->weights }, { "--cache", c->cache },
	};

	buf_printf(cmd, "exec /proc/%d/exe bench -q --one %s --samples 1 "
		   "--threads %llu --chunk %llu --seed %llu --prefill %u "
		   "--decode %u --batch %u", (int)getpid(), phase,
		   (unsigned long long)c->threads,
		   (unsigned long long)c->chunk, (unsigned long long)c->seed,
		   strcmp(phase, "prefill") == 0 ? n : b->longest,
		   strcmp(phase, "prefill") == 0 ? 1 : n, width);
	if (c->copy)
		buf_adds(cmd, " --copy");
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		if (text[i].value) {
			buf_printf(cmd, " %s", text[i].option);
			quote(cmd, text[i].value);
		}
}

static bool once(struct bench *b, const char *phase, uint32_t n,
		 uint32_t width, double *seconds, struct err *e)
{
	return strcmp(phase, "prefill") == 0 ?
		       prefill_once(b, n, seconds, e) :
		       decode_once(b, n, width, seconds, e);
}

/*
 * The same in a process of its own: caches, pages and the heap are as a user
 * finds them.  The child is this program with --one PHASE, whose last line is
 * the time.
 */
static bool in_fresh_process(struct bench *b, const char *phase, uint32_t n,
			     uint32_t width, double *seconds, struct err *e)
{
	struct buf cmd = { 0 };
	char out[64] = "";

	child_command(b, phase, n, width, &cmd);
	FILE *f = popen(cmd.data, "r");
	bool read = f && fgets(out, sizeof(out), f);
	int status = f ? pclose(f) : -1;
	char *end;
	*seconds = strtod(out, &end);
	bool ok = read && status == 0 && end != out && *seconds > 0;
	if (!ok)
		err_set(e, ERR_IO, "a fresh process for %s of %u tokens ended "
			"with %d and \"%s\"; it was: %s", phase, n, status, out,
			cmd.data);
	buf_fini(&cmd);
	return ok;
}

static bool sample(struct bench *b, const char *phase, uint32_t n,
		   uint32_t width, double *seconds, struct err *e)
{
	return b->c->fresh ? in_fresh_process(b, phase, n, width, seconds, e) :
			     once(b, phase, n, width, seconds, e);
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
			"\"%s\",\"threads\":%u,\"chunk\":%llu,"
		   "\"fresh\":%s,\"copied\":%s}",
		   (unsigned long long)b->model_hash,
		   (unsigned long long)b->prompt_hash,
		   qwen_weights_name(b->s.model.layer[0].q.type),
		   b->c->cache ? b->c->cache : "f32",
		   b->s.model.backend->name, threads_count(b->s.threads),
		   (unsigned long long)b->c->chunk,
		   b->c->fresh ? "true" : "false",
		   b->c->copy ? "true" : "false");
	start.inputs = in.data;
	b->db = res_open(b->c->db, RES_WRITE, e);
	bool ok = b->db && res_host_self(b->db, &start.host, e) &&
		  res_build_self(b->db, &start.build, e) &&
		  res_run_begin(b->db, &start, &b->run, e);
	buf_fini(&in);
	return ok;
}

static enum res_origin origin(const struct bench *b)
{
	return qwen_is_emulated(&b->s.model) ? RES_EMULATED : RES_HARDWARE;
}

static bool store(struct bench *b, int64_t case_id, const char *metric,
		  const char *unit, const double *v, size_t n,
		  enum res_better better, double *median, struct err *e)
{
	struct res_result r = { .run = b->run, .case_id = case_id,
				.metric = metric, .unit = unit, .value = v[0],
				.lo = NAN, .hi = NAN, .n = (int64_t)n,
				.clock_hz = NAN, .better = better,
				.origin = origin(b), .samples = v,
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
				.better = better, .origin = origin(b) };

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

/* What the share of a phase is a share of. */
static void limit_name(const struct bench *b, const char *phase,
		       char out[static 80])
{
	if (strcmp(phase, "prefill") != 0)
		snprintf(out, 80, "reads of memory");
	else if (b->s.model.backend != &qwen_cpu)
		snprintf(out, 80, "the host's FMA in f32");
	else
		snprintf(out, 80, "FMA in f32; products in %s",
			 host_gemm_unit(host_gemm_level()));
}

/* One line: speed, and what share of its limit that is. */
static void row(struct bench *b, const char *phase, uint64_t tokens,
		uint64_t batch, double speed, double first, double share)
{
	char limit[80];

	limit_name(b, phase, limit);
	table_row(&b->t);
	table_cell(&b->t, 0, "%s", phase);
	table_cell(&b->t, 1, "%llu", (unsigned long long)tokens);
	table_cell(&b->t, 2, "%llu", (unsigned long long)batch);
	table_cell(&b->t, 3, "%.3f", speed);
	if (!isnan(first))
		table_cell(&b->t, 4, "%.4f", first);
	table_cell(&b->t, 5, "%.1f", 100 * share);
	table_cell(&b->t, 6, "%llu", (unsigned long long)b->c->samples);
	table_cell(&b->t, 7, "%s", limit);
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

/* Where the limit is a median of so many, taken behind each sample. */
enum { LIMIT_READS = 3 };

static double limit_now(struct bench *b, double (*measure)(struct qwen_peak *p))
{
	double v[LIMIT_READS];

	for (int i = 0; i < LIMIT_READS; i++)
		v[i] = measure(b->peak);
	return res_median(v, LIMIT_READS).value;
}

/* What one phase measured, per sample. */
struct samples {
	double *seconds, *speed, *limit;
	uint64_t n;
};

static struct samples samples_new(uint64_t n)
{
	return (struct samples){ xcalloc(n, sizeof(double)),
				 xcalloc(n, sizeof(double)),
				 xcalloc(n, sizeof(double)), n };
}

static void samples_free(struct samples *s)
{
	free(s->seconds);
	free(s->speed);
	free(s->limit);
}

/* Stores speed and limit; `work` is what one token takes of the limit. */
static bool samples_store(struct bench *b, int64_t id, const struct samples *s,
			  const char *metric, const char *unit, double work,
			  double *rate, double *share, struct err *e)
{
	double limit;

	if (!store(b, id, "speed", "token/s", s->speed, s->n, RES_HIGHER, rate,
		   e) ||
	    !store(b, id, metric, unit, s->limit, s->n, RES_HIGHER, &limit, e))
		return false;
	*share = *rate * work / limit;
	return exact(b, id, "share_of_limit", "1", *share, RES_HIGHER, e);
}

static bool bench_prefill(struct bench *b, uint32_t n, struct err *e)
{
	struct samples s = samples_new(b->c->samples);
	double first = NAN, rate = NAN, share = NAN;
	int64_t id;
	bool ok = sample(b, "prefill", n, 1, s.seconds, e); /* warms */

	for (uint64_t i = 0; ok && i < s.n; i++) {
		ok = sample(b, "prefill", n, 1, &s.seconds[i], e);
		s.speed[i] = n / s.seconds[i];
		s.limit[i] = limit_now(b, qwen_peak_fma);
	}
	ok = ok && case_of(b, "prefill", n, 1, &id, e) &&
	     samples_store(b, id, &s, "fma_limit", "FLOP/s",
			   qwen_config_flop(&b->s.model.config, n) / n, &rate,
			   &share, e) &&
	     store(b, id, "first_token", "s", s.seconds, s.n, RES_LOWER,
		   &first, e) &&
	     verdicts(b, id, false, e);
	if (ok)
		row(b, "prefill", n, 1, rate, first, share);
	samples_free(&s);
	return ok;
}

static bool device_counts(struct bench *b, int64_t id, struct err *e)
{
	struct qwen_counts c;

	qwen_state_counts(b->st, &c);
	if (!c.passes)
		return true;
	return exact(b, id, "packets_per_pass", "1",
		     (double)c.packets / (double)c.passes, RES_LOWER, e) &&
	       exact(b, id, "copies_per_pass", "1",
		     (double)c.copies / (double)c.passes, RES_LOWER, e);
}

/*
 * Keys and values that a step of decode_once() reads, on average: of 2 .. n + 1
 * positions of each sequence.
 */
static double cache_bytes(const struct bench *b, uint32_t n, uint32_t width)
{
	double one = (double)qwen_state_bytes(b->st) /
		     ((double)b->widest * b->positions);

	return one * width * (n + 3) / 2;
}

static bool bench_decode(struct bench *b, uint32_t n, uint32_t width,
			 struct err *e)
{
	struct samples s = samples_new(b->c->samples);
	double weights = (double)b->s.model.token_bytes;
	double cache = cache_bytes(b, n, width), bytes = weights + cache;
	double rate = NAN, share = NAN, seconds;
	int64_t id;
	/* What a fresh process says is not seen: the text is from here. */
	bool ok = !b->c->fresh || decode_once(b, n, width, &seconds, e);

	for (uint64_t i = 0; ok && i < s.n; i++) {
		ok = sample(b, "decode", n, width, &s.seconds[i], e);
		s.speed[i] = (double)n * width / s.seconds[i];
		s.limit[i] = limit_now(b, qwen_peak_read);
	}
	ok = ok && case_of(b, "decode", n, width, &id, e) &&
	     samples_store(b, id, &s, "read_limit", "B/s", bytes / width, &rate,
			   &share, e) &&
	     exact(b, id, "weights_per_pass", "B", weights, RES_LOWER, e) &&
	     exact(b, id, "cache_per_pass", "B", cache, RES_LOWER, e) &&
	     exact(b, id, "read_rate", "B/s", rate / width * bytes, RES_HIGHER,
		   e) &&
	     device_counts(b, id, e) && verdicts(b, id, true, e);
	if (ok)
		row(b, "decode", n, width, rate, NAN, share);
	samples_free(&s);
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
	double seconds;
	/* The peak is the model's: the yardstick's buffer comes after it. */
	bool ok = prefill_once(b, b->longest, &seconds, e) && memory(b, e);

	b->peak = ok ? qwen_peak_new(b->s.threads, b->s.model.kernels,
				     b->s.model.token_bytes, e) : NULL;
	ok = ok && b->peak;
	for (size_t i = 0; ok && i < b->n_prefill; i++)
		ok = bench_prefill(b, (uint32_t)b->prefill[i], e);
	for (size_t k = 0; ok && k < b->n_batch; k++)
		for (size_t i = 0; ok && i < b->n_decode; i++)
			ok = bench_decode(b, (uint32_t)b->decode[i],
					  (uint32_t)b->batch[k], e);
	return ok;
}

/* --one: a single sample, its seconds on stdout. */
static bool one_sample(struct bench *b, struct err *e)
{
	double seconds;
	bool prefill = strcmp(b->c->one, "prefill") == 0;

	if (!once(b, b->c->one, prefill ? b->longest : most(b->decode,
							    b->n_decode),
		  b->widest, &seconds, e))
		return false;
	printf("%.9f\n", seconds);
	return true;
}

int qwen_cmd_bench(struct qwen_cmd *c, struct err *e)
{
	struct bench b = { .c = c };
	bool ok;

	if (!qwen_session_open(&b.s, c, false, e))
		return err_exit_code(e);
	table_init(&b.t, "phase,#tokens,#batch,#tokens_per_s,#first_token_s,"
			 "#percent_of_limit,#samples,limit");
	ok = sweeps_read(&b, e);
	if (ok) {
		inputs_make(&b);
		ok = c->one ? one_sample(&b, e) : self_check(&b, e) &&
							  run_begin(&b, e);
	}
	ok = ok && (c->one || all(&b, e));
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
	ok = ok && (c->one || qwen_cmd_table(c, &b.t, e));
	table_fini(&b.t);
	res_close(b.db);
	qwen_peak_free(b.peak);
	qwen_ids_fini(&b.prompt);
	qwen_ids_fini(&b.said);
	free(b.prefill);
	free(b.decode);
	free(b.batch);
	qwen_state_free(b.st);
	qwen_session_close(&b.s);
	return ok ? EXIT_YES : err_exit_code(e);
}
