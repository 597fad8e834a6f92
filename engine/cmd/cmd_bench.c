/*
 * engine/cmd/cmd_bench.c - t0-qwen3 bench.
 *
 * Tokens per second of prefill and decode, into the database.
 *
 * The prompt is given, or made of ids from a seed, the same for every commit,
 * so that two runs have byte-identical inputs; their hash, the file's and the
 * model's are part of what is compared.  Before anything is timed the same
 * tokens go through the model in one piece and one by one, and must give the
 * same logits: that is the correctness verdict.  The text that was decoded is
 * judged for coherence; a random model fails there, and its speed is then no
 * accepted win.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/cmd/cmd_bench.h"
#include "engine/cpu/cpu.h"
#include "results/stats/stats.h"

#define MAX_SAMPLES 1000
#define MAX_BATCH   1024

static uint32_t max_of(const uint64_t *v, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m = v[i] > m ? v[i] : m;
	return (uint32_t)m;
}

/* Numbers from `least` to `limit`. */
static bool sweep_read(const char *option, const char *text, uint64_t least,
		       uint64_t limit, uint64_t **v, size_t *n, struct err *e)
{
	if (!cli_sweep(text, v, n, e))
		return err_wrap(e, "%s", option);
	for (size_t i = 0; i < *n; i++)
		if ((*v)[i] < least || (*v)[i] > limit)
			return err_set(e, ERR_USAGE, "%s %llu: wanted %llu to "
				       "%llu", option,
				       (unsigned long long)(*v)[i],
				       (unsigned long long)least,
				       (unsigned long long)limit);
	return true;
}

static bool sweeps_read(struct qwen_bench *b, struct err *e)
{
	uint64_t limit = b->s.model.config.max_positions;

	if (!sweep_read("--prefill", b->c->prefill, 1, limit, &b->prefill,
			&b->n_prefill, e) ||
	    !sweep_read("--decode", b->c->decode, 1, limit, &b->decode,
			&b->n_decode, e) ||
	    !sweep_read("--batch", b->c->batch, 1, MAX_BATCH, &b->batch,
			&b->n_batch, e) ||
	    !sweep_read("--depth", b->c->depth, 0, limit, &b->depth,
			&b->n_depth, e))
		return false;
	if (!b->c->samples || b->c->samples > MAX_SAMPLES)
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 1 to %d",
			       (unsigned long long)b->c->samples, MAX_SAMPLES);
	b->longest = max_of(b->prefill, b->n_prefill);
	b->widest = max_of(b->batch, b->n_batch);
	uint64_t need = (uint64_t)b->longest + max_of(b->decode, b->n_decode) +
			max_of(b->depth, b->n_depth) +
			(b->c->speculate || b->c->draft);
	if (need > limit)
		return err_set(e, ERR_USAGE, "--prefill, --decode and --depth up "
			       "to %llu tokens; the model's context has %llu",
			       (unsigned long long)need,
			       (unsigned long long)limit);
	b->positions = (uint32_t)need;
	return qwen_cmd_state(b->c, &b->s, b->widest, b->positions, &b->st,
			      e);
}

static void prompt_random(struct qwen_bench *b)
{
	uint64_t x = b->c->seed;

	for (uint32_t i = 0; i < b->longest; i++) {
		x = x * 6364136223846793005 + 1442695040888963407;
		qwen_ids_add(&b->prompt,
			     (uint32_t)((x >> 33) % b->s.model.config.vocab));
	}
}

static bool prompt_read(struct qwen_bench *b, struct err *e)
{
	const char *file = b->c->prompt_file;
	struct buf text = { 0 };

	if (file && strcmp(file, "-") == 0)
		return err_set(e, ERR_USAGE, "--prompt-file -: bench reads it "
			       "more than once; wanted a file");
	if (!qwen_cmd_prompt(b->c, &b->s, &b->prompt, e) ||
	    (file && !file_read(file, 0, &text, e)))
		return false;
	if (file)
		b->file_hash = XXH3_64bits(text.data, text.len);
	buf_fini(&text);
	if (b->prompt.n < b->longest)
		return err_set(e, ERR_USAGE, "the prompt has %zu tokens; "
			       "--prefill wants %u", b->prompt.n, b->longest);
	b->prompt.n = b->longest;
	return true;
}

/*
 * Weights and config.json, which a GGUF file has inside: with another rotary
 * base it is another model.
 */
static bool model_hash(struct qwen_bench *b, struct err *e)
{
	const struct qwen_tensors *t = &b->s.model.tensors;
	struct buf path = { 0 }, config = { 0 };

	buf_printf(&path, "%s/config.json", b->c->model);
	bool folder = !qwen_is_file(b->c->model);
	bool ok = !folder || file_read(path.data, 0, &config, e);
	if (ok && folder)
		b->model_hash = XXH3_64bits(config.data, config.len);
	for (size_t i = 0; ok && i < t->n_maps; i++)
		b->model_hash = XXH3_64bits_withSeed(t->map[i].base,
						     t->map[i].size_bytes,
						     b->model_hash);
	buf_fini(&path);
	buf_fini(&config);
	return ok;
}

static bool inputs_make(struct qwen_bench *b, struct err *e)
{
	const struct qwen_cmd *c = b->c;

	if (!c->prompt && !c->prompt_file && !c->messages && !c->ids)
		prompt_random(b);
	else if (!prompt_read(b, e))
		return false;
	b->prompt_hash = XXH3_64bits(b->prompt.v,
				     b->prompt.n * sizeof(*b->prompt.v));
	return model_hash(b, e);
}

/*
 * With integers, one by one rounds activations to 8 bits where one piece does
 * not: through 28 layers that is 7 % of the largest difference.  So it is with
 * tiles on a device, which round them to the weights' 16 bits.  Keys and values
 * that a cache rounds fall to either side of a half now and then.  Logits that
 * have nothing to do with each other differ by more than 400 %.
 */
#define CHECKED 16u

static double check_bound(const struct qwen_bench *b)
{
	const char *cache = b->c->cache ? b->c->cache : "f16";

	if (strstr(cache, "int4"))
		return 1;
	if (qwen_is_integer(b->s.model.layer[0].q.type) ||
	    b->s.model.backend != &qwen_cpu || strstr(cache, "8"))
		return 0.3;
	if (cpu_activations(&b->s.model, b->s.model.layer[0].q.type, true) !=
	    QWEN_AS_F32)
		return 0.1;
	return strcmp(cache, "f32") == 0 ? 1e-3 :
	       strcmp(cache, "f16") == 0 ? 1e-2 :
					   8e-2;
}

static bool self_check(struct qwen_bench *b, struct err *e)
{
	uint32_t n = b->longest < CHECKED ? b->longest : CHECKED;
	uint32_t vocab = b->s.model.config.vocab;
	const double bound = check_bound(b);
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
	qwen_state_truncate(b->st, 0, 0);
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
	qwen_state_truncate(b->st, 0, 0);
	free(one);
	return ok;
}

/* What memory gives, or the unit of the weights' products, right now. */
static double limit_now(struct qwen_bench *b, bool prefill)
{
	return prefill ? qwen_roofline_product(b->peak,
					       b->s.model.layer[0].q.type) :
			 qwen_roofline_read(b->peak);
}

/*
 * Fills the case's samples.  Each stands between two samples of its limit, so
 * that what disturbs the machine for longer disturbs all three: what they took
 * together is what the limit would have taken.
 */
static bool measure_case(struct qwen_bench *b, struct qwen_case *k,
			 bool prefill, struct err *e)
{
	for (; b->finished < b->c->samples; b->finished++) {
		const uint64_t i = b->finished;
		if (*b->c->stop)
			return err_set(e, ERR_STOPPED, "between samples");
		double before = limit_now(b, prefill);
		if (!qwen_bench_sample(b, k, &k->seconds[i], e))
			return false;
		k->speed[i] = (double)k->tokens * k->width / k->seconds[i];
		k->limit[i] = 2 / (1 / before + 1 / limit_now(b, prefill));
	}
	return true;
}

static bool bench_case(struct qwen_bench *b, const char *phase, uint64_t tokens,
		       uint64_t width, uint64_t depth, struct err *e)
{
	const bool prefill = strcmp(phase, "prefill") == 0;
	const size_t n = b->c->samples;
	double *v = xcalloc(3 * n, sizeof(*v)), seconds;
	struct qwen_case k = { phase, (uint32_t)tokens, (uint32_t)width,
			       (uint32_t)depth, v, v + n, v + 2 * n };
	struct err late = { 0 };
	bool ok = true;

	b->finished = 0;
	if (prefill) /* warms */
		ok = qwen_bench_sample(b, &k, &seconds, e);
	else if (b->c->fresh) /* whose text is not seen: it is from here */
		ok = qwen_bench_once(b, &k, &seconds, e);
	ok = ok && measure_case(b, &k, prefill, e);
	/* A signal keeps the samples that are finished. */
	if (ok)
		ok = qwen_bench_store(b, &k, e);
	else if (*b->c->stop && b->finished)
		qwen_bench_store(b, &k, &late);
	free(v);
	return ok;
}

static bool bench_depth(struct qwen_bench *b, uint64_t depth, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < b->n_prefill; i++)
		ok = bench_case(b, "prefill", b->prefill[i], 1, depth, e);
	for (size_t k = 0; ok && k < b->n_batch; k++)
		for (size_t i = 0; ok && i < b->n_decode; i++)
			ok = bench_case(b, "decode", b->decode[i], b->batch[k],
					depth, e);
	return ok;
}

static bool bench_all(struct qwen_bench *b, struct err *e)
{
	const struct qwen_case longest = { .phase = "prefill",
					   .tokens = b->longest };
	double seconds;
	/* The peak is the model's: the yardstick's buffer comes after it. */
	bool ok = qwen_bench_once(b, &longest, &seconds, e) &&
		  qwen_bench_store_memory(b, e);

	b->peak = ok ? qwen_roofline_new(b->s.threads, b->s.model.kernels,
					 b->s.model.token_bytes, e) : NULL;
	ok = ok && b->peak;
	for (size_t d = 0; ok && d < b->n_depth; d++)
		ok = bench_depth(b, b->depth[d], e);
	return ok && qwen_bench_speculate(b, e);
}

/* --one: a single sample, its seconds on stdout. */
static bool one_sample(struct qwen_bench *b, struct err *e)
{
	const bool prefill = strcmp(b->c->one, "prefill") == 0;
	if (!prefill && strcmp(b->c->one, "decode") != 0)
		return err_set(e, ERR_USAGE, "--one %s: wanted prefill or "
			       "decode", b->c->one);
	const struct qwen_case k = {
		.phase = b->c->one,
		.tokens = prefill ? b->longest : max_of(b->decode, b->n_decode),
		.width = b->widest,
		.depth = max_of(b->depth, b->n_depth),
	};
	double seconds;

	if (!qwen_bench_once(b, &k, &seconds, e))
		return false;
	fprintf(b->c->cmd.out, "%.9f\n", seconds);
	return true;
}

/* Everything, into the database and the table. */
static bool run_bench(struct qwen_bench *b, struct err *e)
{
	bool ok = self_check(b, e) && qwen_bench_begin(b, e) && bench_all(b, e);

	return qwen_bench_end(b, ok, e) && qwen_bench_show(b, e);
}

static void say_loaded(const struct qwen_cmd *c, uint64_t ns)
{
	struct buf text = { 0 };

	unit_print(&text, (double)ns * 1e-9, "s");
	cmd_remark(&c->cmd, "loaded in %s", text.data);
	buf_fini(&text);
}

bool qwen_cmd_bench(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_bench b = { .c = c };
	const uint64_t from = time_mono_ns();
	bool ok;

	if (!qwen_session_open(&b.s, c, QWEN_WORDS_IF_THERE, e))
		return false;
	if (!c->one)
		say_loaded(c, time_mono_ns() - from);
	qwen_settling_wait(b.s.model.settling);
	table_init(&b.t, BENCH_COLUMNS);
	ok = sweeps_read(&b, e) && inputs_make(&b, e) &&
	     (c->one ? one_sample(&b, e) : run_bench(&b, e));
	table_fini(&b.t);
	res_close(b.db);
	qwen_roofline_free(b.peak);
	qwen_ids_fini(&b.prompt);
	qwen_ids_fini(&b.said);
	free(b.prefill);
	free(b.decode);
	free(b.batch);
	free(b.depth);
	qwen_state_free(b.st);
	qwen_session_close(&b.s);
	return ok;
}
