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
#include <xxhash.h>

#include "engine/backend.h"
#include "engine/cmd_bench.h"
#include "engine/peak.h"
#include "results/stats.h"

#define MAX_SAMPLES 1000

static uint32_t most(const uint64_t *v, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m = v[i] > m ? v[i] : m;
	return (uint32_t)m;
}

static bool sweeps_read(struct qwen_bench *b, struct err *e)
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

static void inputs_make(struct qwen_bench *b)
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

/*
 * With integers, one by one rounds activations to 8 bits where one piece does
 * not: through 28 layers that is 7 % of the largest difference.  So it is with
 * tiles on a device, which round them to the weights' 16 bits.  Logits that
 * have nothing to do with each other differ by more than 400 %.
 */
#define CHECKED 16u

static bool self_check(struct qwen_bench *b, struct err *e)
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

/* Where the limit is a median of so many, taken behind each sample. */
enum { LIMIT_READS = 3 };

static double limit_now(struct qwen_bench *b,
			double (*limit)(struct qwen_peak *p))
{
	double v[LIMIT_READS];

	for (int i = 0; i < LIMIT_READS; i++)
		v[i] = limit(b->peak);
	return res_median(v, LIMIT_READS).value;
}

/* Fills the case's samples; what is measured with each is its limit. */
static bool measure(struct qwen_bench *b, struct qwen_case *k,
		    double (*limit)(struct qwen_peak *p), struct err *e)
{
	for (uint64_t i = 0; i < b->c->samples; i++) {
		if (!qwen_bench_sample(b, k, &k->seconds[i], e))
			return false;
		k->speed[i] = (double)k->tokens * k->width / k->seconds[i];
		k->limit[i] = limit_now(b, limit);
	}
	return true;
}

static bool bench_case(struct qwen_bench *b, const char *phase, uint64_t tokens,
		       uint64_t width, struct err *e)
{
	const bool prefill = strcmp(phase, "prefill") == 0;
	const size_t n = b->c->samples;
	double *v = xcalloc(3 * n, sizeof(*v)), seconds;
	struct qwen_case k = { phase, (uint32_t)tokens, (uint32_t)width,
			       v, v + n, v + 2 * n };
	bool ok = true;

	if (prefill) /* warms */
		ok = qwen_bench_sample(b, &k, &seconds, e);
	else if (b->c->fresh) /* whose text is not seen: it is from here */
		ok = qwen_bench_once(b, &k, &seconds, e);
	ok = ok &&
	     measure(b, &k, prefill ? qwen_peak_fma : qwen_peak_read, e) &&
	     qwen_bench_store(b, &k, e);
	free(v);
	return ok;
}

static bool all(struct qwen_bench *b, struct err *e)
{
	const struct qwen_case longest = { .phase = "prefill",
					   .tokens = b->longest };
	double seconds;
	/* The peak is the model's: the yardstick's buffer comes after it. */
	bool ok = qwen_bench_once(b, &longest, &seconds, e) &&
		  qwen_bench_store_memory(b, e);

	b->peak = ok ? qwen_peak_new(b->s.threads, b->s.model.kernels,
				     b->s.model.token_bytes, e) : NULL;
	ok = ok && b->peak;
	for (size_t i = 0; ok && i < b->n_prefill; i++)
		ok = bench_case(b, "prefill", b->prefill[i], 1, e);
	for (size_t k = 0; ok && k < b->n_batch; k++)
		for (size_t i = 0; ok && i < b->n_decode; i++)
			ok = bench_case(b, "decode", b->decode[i], b->batch[k],
					e);
	return ok;
}

/* --one: a single sample, its seconds on stdout. */
static bool one_sample(struct qwen_bench *b, struct err *e)
{
	const bool prefill = strcmp(b->c->one, "prefill") == 0;
	const struct qwen_case k = {
		.phase = b->c->one,
		.tokens = prefill ? b->longest : most(b->decode, b->n_decode),
		.width = b->widest
	};
	double seconds;

	if (!qwen_bench_once(b, &k, &seconds, e))
		return false;
	printf("%.9f\n", seconds);
	return true;
}

/* Everything, into the database and the table. */
static bool bench(struct qwen_bench *b, struct err *e)
{
	bool ok = self_check(b, e) && qwen_bench_begin(b, e) && all(b, e);

	return qwen_bench_end(b, ok, e) && qwen_cmd_table(b->c, &b->t, e);
}

int qwen_cmd_bench(struct qwen_cmd *c, struct err *e)
{
	struct qwen_bench b = { .c = c };
	bool ok;

	if (!qwen_session_open(&b.s, c, false, e))
		return err_exit_code(e);
	table_init(&b.t, "phase,#tokens,#batch,#tokens_per_s,#first_token_s,"
			 "#percent_of_limit,#samples,limit");
	ok = sweeps_read(&b, e);
	if (ok) {
		inputs_make(&b);
		ok = c->one ? one_sample(&b, e) : bench(&b, e);
	}
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
