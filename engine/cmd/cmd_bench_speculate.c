/*
 * engine/cmd/cmd_bench_speculate.c - what speculation wins.
 *
 * The same prompt is gone on with greedily, a token a pass and with proposals,
 * in turn, so that what disturbs the machine disturbs both.  The tokens have to
 * be the same, and it is the text with proposals that is judged.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd_bench.h"
#include "engine/cmd/cmd_speculate.h"

/* One case; arrays have room for all samples. */
struct gain {
	struct qwen_bench *b;
	struct qwen_guess guess;
	struct qwen_sampler sampler;
	struct qwen_ids plain;
	uint32_t tokens;
	double *speed, *one, *ratio;
	struct qwen_speculated sum; /* of passes with a proposer */
	double one_s;		    /* of a pass of a token, on average */
};

/* Seconds of the tokens behind the prompt, whose first is not of them. */
static bool go_on(struct gain *g, struct qwen_speculation *s,
		  struct qwen_ids *text, double *seconds, struct err *e)
{
	struct qwen_bench *b = g->b;
	const uint32_t n = (uint32_t)b->prompt.n;
	uint32_t id;

	text->n = 0;
	for (uint32_t i = 0; i < n; i++)
		qwen_ids_add(text, b->prompt.v[i]);
	qwen_state_truncate(b->st, 0, 0);
	if (!qwen_feed(b->c, b->st, text->v, n, NULL, NULL, e) ||
	    !qwen_sample(&g->sampler,
			 qwen_logits(b->st, (uint32_t)((n - 1) % b->c->chunk)),
			 &id, e) ||
	    !qwen_speculation_begin(s, text, e))
		return false;
	qwen_ids_add(text, id);
	const uint64_t from = time_mono_ns();
	while (text->n <= n + g->tokens)
		if (!qwen_speculate(s, text,
				    (uint32_t)(n + 1 + g->tokens - text->n), e))
			return false;
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	return true;
}

static void counts_add(struct qwen_speculated *to,
		       const struct qwen_speculated *more)
{
	to->passes += more->passes;
	to->tokens += more->tokens;
	to->tried += more->tried;
	to->proposed += more->proposed;
	to->right += more->right;
	to->propose_s += more->propose_s;
	to->pass_s += more->pass_s;
}

static bool is_same_text(const struct gain *g, const struct qwen_ids *text,
			 struct err *e)
{
	for (size_t i = 0; i < text->n; i++)
		if (text->v[i] != g->plain.v[i])
			return err_set(e, ERR_DEVICE,
				       "with proposals token "
				       "%zu is %u; without it is %u",
				       i, text->v[i], g->plain.v[i]);
	return true;
}

/* Both, one after the other; what is known of costs begins anew. */
static bool measure_pair(struct gain *g, uint64_t i, struct err *e)
{
	struct qwen_bench *b = g->b;
	struct qwen_speculation one = { .state = b->st,
					.sampler = &g->sampler };
	struct qwen_speculation s = g->guess.s;
	double seconds, plain_s;

	s.state = b->st;
	s.sampler = &g->sampler;
	if (!go_on(g, &one, &g->plain, &plain_s, e) ||
	    !go_on(g, &s, &b->said, &seconds, e) ||
	    !is_same_text(g, &b->said, e))
		return false;
	g->one[i] = g->tokens / plain_s;
	g->speed[i] = g->tokens / seconds;
	g->ratio[i] = plain_s / seconds;
	g->one_s += plain_s / g->tokens;
	counts_add(&g->sum, &s.counts);
	return true;
}

/* A case with its speed and verdicts; b->said is what was said. */
static bool store_speed(struct gain *g, const char *how, const double *speed,
			struct res_interval *median, int64_t *id, struct err *e)
{
	struct qwen_bench *b = g->b;
	char params[128], text[96];

	snprintf(text, sizeof(text), "the same %u tokens with and without",
		 g->tokens);
	res_params(params, sizeof(params), "phase:s tokens:u how:s",
		   "speculate", g->tokens, how);
	return res_case_id(b->db, "engine", qwen_cmd_name(b->c->model), params,
			   id, e) &&
	       qwen_bench_samples(b, *id, "speed", "token/s", speed, RES_HIGHER,
				  median, e) &&
	       qwen_bench_correct(b, *id, text, e) &&
	       qwen_bench_coherence(b, *id, 0, e);
}

/* What it came from: rows of values that are ratios. */
static bool store_ratios(struct gain *g, int64_t id, struct err *e)
{
	const struct qwen_speculated *s = &g->sum;
	const double passes = (double)s->passes;
	/* Seconds of all passes, were each of a token. */
	const double one_s = passes * g->one_s / (double)g->b->finished;
	const struct {
		const char *metric;
		double v, of;
		enum res_better better;
	} all[] = {
		{ "tokens_per_pass", (double)s->tokens, passes, RES_HIGHER },
		{ "tau", (double)(s->tried + s->right), (double)s->tried,
		  RES_HIGHER },
		{ "acceptance", (double)s->right, (double)s->proposed,
		  RES_HIGHER },
		{ "pass_cost", s->pass_s, one_s, RES_LOWER },
		{ "propose_cost", s->propose_s, one_s, RES_LOWER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].of > 0 &&
		    !qwen_bench_derived(g->b, id, all[i].metric, "1",
					all[i].v / all[i].of, all[i].better, e))
			return false;
	return true;
}

static bool store_gain(struct gain *g, struct err *e)
{
	struct qwen_bench *b = g->b;
	const struct qwen_speculated *s = &g->sum;
	const char *how = qwen_guess_name(b->c);
	struct res_interval speed, one, ratio;
	int64_t id;

	/* What is judged is what was said, without the prompt. */
	memmove(b->said.v, b->said.v + b->prompt.n,
		(b->said.n - b->prompt.n) * sizeof(*b->said.v));
	b->said.n -= b->prompt.n;
	if (!store_speed(g, "one", g->one, &one, &id, e) ||
	    !store_speed(g, how, g->speed, &speed, &id, e) ||
	    !qwen_bench_samples(b, id, "gain", "1", g->ratio, RES_HIGHER,
				&ratio, e) ||
	    !store_ratios(g, id, e))
		return false;
	table_row(&b->t);
	table_cell(&b->t, BENCH_PHASE, "%s", how);
	table_cell(&b->t, BENCH_TOKENS, "%u", g->tokens);
	table_cell(&b->t, BENCH_BATCH, "1");
	qwen_bench_speed_cells(&b->t, speed);
	table_cell(&b->t, BENCH_SAMPLES, "%llu",
		   (unsigned long long)b->finished);
	table_cell(&b->t, BENCH_GAIN, "%.3f", ratio.value);
	if (s->tried)
		table_cell(&b->t, BENCH_TAU, "%.3f",
			   1 + (double)s->right / (double)s->tried);
	if (s->proposed)
		table_cell(&b->t, BENCH_ACCEPTANCE, "%.3f",
			   (double)s->right / (double)s->proposed);
	return true;
}

static bool gain_case(struct qwen_bench *b, uint32_t tokens, struct err *e)
{
	const struct qwen_sampling greedy = { .top_p = 1,
					      .repetition_penalty = 1 };
	const uint64_t n = b->c->samples;
	double *v = xcalloc(3 * n, sizeof(*v));
	struct gain g = { .b = b,
			  .tokens = tokens,
			  .speed = v,
			  .one = v + n,
			  .ratio = v + 2 * n };
	struct err late = { 0 };
	bool ok = qwen_sampler_init(&g.sampler, &greedy,
				    b->s.model.config.vocab, e) &&
		  qwen_guess_open(&g.guess, b->c, &b->s, b->st,
				  b->positions, &greedy, e);

	for (b->finished = 0; ok && b->finished < n; b->finished++)
		ok = *b->c->stop ? err_set(e, ERR_STOPPED, "between samples") :
				   measure_pair(&g, b->finished, e);
	/* A signal keeps the samples that are finished. */
	b->finished -= !ok && b->finished;
	if (ok)
		ok = store_gain(&g, e);
	else if (*b->c->stop && b->finished)
		store_gain(&g, &late);
	qwen_guess_close(&g.guess);
	qwen_sampler_fini(&g.sampler);
	qwen_ids_fini(&g.plain);
	free(v);
	return ok;
}

bool qwen_bench_speculate(struct qwen_bench *b, struct err *e)
{
	if (!qwen_guess_name(b->c))
		return true;
	for (size_t i = 0; i < b->n_decode; i++)
		if (!gain_case(b, (uint32_t)b->decode[i], e))
			return false;
	return true;
}
