/*
 * What serving costs and gives, for a model of the 0.6B shape on the processor:
 * decoding of one sequence with a paged cache against a dense one, and of
 * sixteen sequences in a batch against one, each in turn with the other; for
 * the sixteen also the share of what the best unit for the weights' type does.
 */
#include "engine/cpu/cpu.h"
#include "engine/serve/serve.h"
#include "results/stats/stats.h"
#include "tests/bench/models.h"

enum {
	ROUNDS = 24,
	TOKENS = 4,  /* of a sequence and sample */
	DEPTH = 512, /* positions before them, of one sequence */
	MANY = 16,   /* sequences */
	PROMPT = 32, /* tokens of each of them */
	POSITIONS = DEPTH + TOKENS,
	BLOCKS = POSITIONS / QWEN_BLOCK + 1,
	LITTLE = 1 << 20, /* bytes: how fast memory is, is not asked */
};

/* ---- one sequence ---- */

static struct qwen_state *state_make(const struct qwen_model *m, bool paged)
{
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = POSITIONS,
					  .max_tokens = DEPTH,
					  .cache = qwen_both(QWEN_W_F16),
					  .blocks = paged ? BLOCKS : 0 };
	static uint32_t block[BLOCKS]; /* which the state keeps */
	struct qwen_token t[DEPTH];
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	if (!s)
		BUG("%s", e.msg);
	/* None beside the one before it. */
	for (uint32_t i = 0; i < BLOCKS; i++)
		block[i] = i * 7 % BLOCKS;
	if (paged)
		qwen_state_map(s, 0, block, 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		t[i] = (struct qwen_token){ .id = i * 7919 % m->config.vocab };
	if (!qwen_forward(s, t, DEPTH, &e))
		BUG("%s", e.msg);
	return s;
}

/* Tokens per second behind DEPTH positions; the ids are added to `sum`. */
static double decode_one(struct qwen_state *s, uint64_t *sum)
{
	struct qwen_token t = { .id = 1, .best = true };
	struct err e = { 0 };

	qwen_state_truncate(s, 0, DEPTH);
	const uint64_t from = time_mono_ns();
	for (int i = 0; i < TOKENS; i++) {
		if (!qwen_forward(s, &t, 1, &e))
			BUG("%s", e.msg);
		t.id = qwen_argmax(s, 0);
		*sum += t.id;
	}
	return TOKENS / ((double)(time_mono_ns() - from) * 1e-9);
}

/* ---- many ---- */

static bool count_token(void *ctx, void *who, const struct qwen_news *news)
{
	(void)who;
	(void)news;
	++*(unsigned *)ctx;
	return true;
}

static void step(struct qwen_batch *b, unsigned *heard)
{
	struct err e = { 0 };

	*heard = 0;
	if (!qwen_batch_step(b, count_token, heard, &e))
		BUG("%s", e.msg);
}

/* Tokens per second of all together. */
static double decode_many(const struct qwen_model *m, struct qwen_batch *b)
{
	uint32_t ids[PROMPT];
	struct err e = { 0 };
	unsigned heard = 0;

	for (uint32_t s = 0; s < MANY; s++) {
		for (uint32_t i = 0; i < PROMPT; i++)
			ids[i] = (s * 131 + i) * 7919 % m->config.vocab;
		const struct qwen_ask ask = {
			.ids = ids,
			.n = PROMPT,
			.tokens = 3 * TOKENS,
			.how = { .top_p = 1, .repetition_penalty = 1 },
			.user = s,
			.who = b
		};
		if (!qwen_batch_add(b, &ask, &e))
			BUG("%s", e.msg);
	}
	while (heard < MANY)
		step(b, &heard);
	const uint64_t from = time_mono_ns();
	unsigned all = 0;
	for (int i = 0; i < TOKENS; i++) {
		step(b, &heard);
		all += heard;
	}
	const double rate = all / ((double)(time_mono_ns() - from) * 1e-9);
	qwen_batch_cancel(b, b);
	return rate;
}

static struct qwen_batch *batch_make(const struct qwen_model *m)
{
	const struct qwen_batch_shape shape = {
		.sequences = MANY,
		.positions = PROMPT + 3 * TOKENS,
		.blocks = MANY * ((PROMPT + 3 * TOKENS) / QWEN_BLOCK + 2),
		.chunk = PROMPT,
		.budget = MANY * PROMPT,
		.cache = qwen_both(QWEN_W_F16)
	};
	struct err e = { 0 };
	struct qwen_batch *b = qwen_batch_new(m, &shape, &e);

	if (!b)
		BUG("%s", e.msg);
	return b;
}

/* ---- both ---- */

static void report_speed(struct bench_models *b, const char *what,
			 const double *v, const double *share, const char *of)
{
	char params[96];
	struct res_interval p = res_median(share, b->rounds);

	res_params(params, sizeof(params), "weights:s threads:u", b->weights,
		   b->threads);
	bench_case(&b->rows, what, params);
	printf("%-5s %u thread%s %-18s %8.2f tok/s  %6.3f of %s [%.3f %.3f]\n",
	       b->weights, b->threads, b->threads > 1 ? "s" : " ", what,
	       bench_rate(&b->rows, "token/s", v, b->rounds),
	       bench_ratio(&b->rows, of, RES_HIGHER, share, b->rounds), of,
	       p.lo, p.hi);
	fflush(stdout);
}

static void bench_model(struct bench_models *b, const struct qwen_model *m)
{
	double dense[ROUNDS], paged[ROUNDS], many[ROUNDS], cost[ROUNDS],
		gain[ROUNDS], share[ROUNDS], ones[ROUNDS];
	const double flop = qwen_config_flop(&m->config, 1);
	struct qwen_state *one = state_make(m, false),
			  *in_blocks = state_make(m, true);
	struct qwen_batch *batch = batch_make(m);
	struct err e = { 0 };
	struct qwen_roofline *peak =
		qwen_roofline_new(m->threads, m->kernels, LITTLE, &e);
	uint64_t sum[2] = { 0 };

	if (!peak)
		BUG("%s", e.msg);
	decode_many(m, batch);
	for (unsigned r = 0; r < b->rounds; r++) {
		dense[r] = decode_one(one, &sum[0]);
		paged[r] = decode_one(in_blocks, &sum[1]);
		many[r] = decode_many(m, batch);
		cost[r] = paged[r] / dense[r];
		gain[r] = many[r] / dense[r];
		share[r] = many[r] * flop /
			   qwen_roofline_product(peak, m->layer[0].q.type);
		ones[r] = 1;
	}
	if (sum[0] != sum[1])
		BUG("a paged cache gives other tokens");
	report_speed(b, "dense", dense, ones, "itself");
	report_speed(b, "paged", paged, cost, "dense");
	report_speed(b, "sixteen", many, gain, "one, dense");
	report_speed(b, "sixteen", many, share, "unit's peak");
	printf("      of the peak of %s\n",
	       qwen_roofline_unit(m->layer[0].q.type));
	qwen_roofline_free(peak);
	qwen_batch_free(batch);
	qwen_state_free(one);
	qwen_state_free(in_blocks);
}

static void load_and_bench(struct bench_models *b, const char *dir)
{
	struct qwen_load how = { .convert = true, .copy = true };
	struct err e = { 0 };
	struct threads *t = threads_new(b->threads, &e);
	struct qwen_model m;

	if (!t || !qwen_weights_parse(b->weights, &how.weights, &e) ||
	    !qwen_model_load(&m, dir, &how, t, &e))
		BUG("%s", e.msg);
	bench_model(b, &m);
	qwen_model_close(&m);
	threads_free(t);
}

int main(int argc, char **argv)
{
	struct bench_models b = { .rounds = bench_rounds(ROUNDS) };

	return bench_each(&b, "serve", argc, argv, load_and_bench);
}
