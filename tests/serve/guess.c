/*
 * How many tokens a batch proposes: what proposals cost that are always wrong,
 * and a proposer that costs more than it brings, by a clock of this test's own;
 * and on a model by what was computed, where texts stay the same.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "tests/tap.h"

/* ---- by a clock ---- */

/* In passes of one token. */
struct machine {
	double more;	/* of a pass, for each token more */
	double propose; /* for a proposal */
	double read;	/* of the proposer, for a token that it has not seen */
	double chance;	/* of a proposal */
};

enum { PROMPT = 200, MOST_TEXTS = 8 };

static double draw_uniform(uint64_t *seed)
{
	return (double)(random_next(seed) % 100000) / 1e5;
}

/* Of what the proposer is asked, its own time. */
static double ask_guess(const struct machine *m, struct qwen_guess_costs *c,
			struct qwen_guessing *g, uint32_t n)
{
	const double s = m->read * g->behind + m->propose * n;

	qwen_guess_asked(c, g, n, s);
	return s;
}

/*
 * Seconds of `tokens` tokens of each of so many texts over those without, of a
 * batch that knows some costs.
 */
static double run_clock(const struct machine *m, struct qwen_guess_costs *c,
			uint32_t texts, uint32_t tokens, uint64_t seed)
{
	struct qwen_guessing g[MOST_TEXTS];
	uint32_t said[MOST_TEXTS] = { 0 }, n[MOST_TEXTS], room, all;
	double time = 0, plain = 0;

	room = (QWEN_FEW - texts) / texts;
	room = room < QWEN_PROPOSED ? room : QWEN_PROPOSED;
	for (uint32_t i = 0; i < texts; i++)
		qwen_guess_begin(&g[i], PROMPT);
	/* All end together, or nearly: what each says is counted. */
	while (said[0] < tokens) {
		const double noise = 0.9 + 0.2 * draw_uniform(&seed);
		all = texts;
		for (uint32_t i = 0; i < texts; i++) {
			n[i] = qwen_guess_length(c, &g[i], texts, room);
			if (n[i])
				time += ask_guess(m, c, &g[i], n[i]);
			all += n[i];
		}
		const double pass = 1 + m->more * (all - 1);
		qwen_guess_pass(c, all, all > texts, noise * pass);
		time += pass;
		for (uint32_t i = 0; i < texts; i++) {
			uint32_t right = 0;
			while (right < n[i] && draw_uniform(&seed) < m->chance)
				right++;
			qwen_guess_see(&g[i], n[i], right);
			said[i] += right + 1;
		}
	}
	for (uint32_t i = 0; i < texts; i++)
		plain += said[i] * (1 + m->more * (texts - 1)) / texts;
	return time / plain;
}

/* Of texts in a row, from the `first` on, with passes of several costs. */
static double worst_of(double chance, double propose, double read, int first)
{
	static const double more[] = { 0.02, 0.1, 0.3, 1 };
	double worst = 0;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		for (uint32_t texts = 1; texts <= MOST_TEXTS; texts++) {
			const struct machine m = { more[i], propose, read,
						   chance };
			struct qwen_guess_costs c = { 0 };
			for (int k = 0; k < 3; k++) {
				double t = run_clock(&m, &c, texts, 512, texts);
				worst = fmax(worst, k < first ? 0 : t);
			}
		}
	return worst;
}

static double run_once(const struct machine *m, uint32_t texts)
{
	struct qwen_guess_costs c = { 0 };

	return run_clock(m, &c, texts, 1000, 1);
}

static void test_clock(void)
{
	const struct machine cheap = { 0.05, 0, 0, 0.9 },
			     draft = { 0.05, 0.1, 0.01, 0.8 };
	double wrong = worst_of(0, 0, 0, 0), late = worst_of(0, 0.2, 0, 0),
	       dear = worst_of(1, 2, 0.05, 1);

	diag("wrong %.3f, wrong and slow %.3f, right and dear %.3f", wrong,
	     late, dear);
	ok(wrong <= 1.05, "proposals that are all wrong cost 5 %% at most");
	ok(late <= 1.05, "also where they take a fifth of a pass each");
	ok(dear <= 1.05, "and right ones that take two passes each, once that "
			 "is known");
	ok(run_once(&cheap, 1) < 0.4, "right ones for nothing: %.2f",
	   run_once(&cheap, 1));
	ok(run_once(&cheap, 4) < 0.6, "of four texts: %.2f",
	   run_once(&cheap, 4));
	ok(run_once(&draft, 1) < 0.7, "a cheap draft: %.2f",
	   run_once(&draft, 1));
}

/* A text that is wrong for long, then right, is proposed for again. */
static void test_turns(void)
{
	struct qwen_guess_costs c = { .pass = { 0, 1, 1.1, 1.2, 1.3, 1.4 } };
	struct qwen_guessing g;
	uint32_t looks = 0, passes = 0;

	qwen_guess_begin(&g, 1);
	for (int i = 0; i < 1000; i++) {
		const uint32_t n = qwen_guess_length(&c, &g, 1, 4);
		if (n)
			qwen_guess_asked(&c, &g, n, 0);
		looks += n;
		qwen_guess_see(&g, n, 0);
	}
	ok(looks > 20 && looks <= 35, "of 1000 wrong passes %u proposals",
	   looks);
	for (uint32_t n = 0; passes < 200 && n < 4; passes++) {
		n = qwen_guess_length(&c, &g, 1, 4);
		if (n)
			qwen_guess_asked(&c, &g, n, 0);
		qwen_guess_see(&g, n, n);
	}
	ok(passes < 50, "right again: 4 at once after %u passes", passes);
}

/* Where no clock decides, neither does what proposals cost. */
static void test_steady(void)
{
	struct qwen_guess_costs c = { .steady = true };
	struct qwen_guessing g;

	qwen_guess_begin(&g, PROMPT);
	qwen_guess_pass(&c, 1, false, 1);
	qwen_guess_pass(&c, 3, true, 1000);
	qwen_guess_asked(&c, &g, 2, 1000);
	is_u64(qwen_guess_length(&c, &g, 1, 7), 2, "steady: two at first");
	qwen_guess_see(&g, 2, 2);
	is_u64(qwen_guess_length(&c, &g, 1, 7), 4, "steady: four, being right");
	is_u64(qwen_guess_length(&c, &g, 1, 3), 3, "steady: as there is room");
	qwen_guess_see(&g, 4, 0);
	is_u64(qwen_guess_length(&c, &g, 1, 7), 2, "steady: two, being wrong");
}

/* ---- on a model ---- */

enum { TEXTS = 5, TOKENS = 200, POSITIONS = 256 };

struct heard {
	uint32_t id[TOKENS], n;
};

static bool hear_token(void *ctx, void *who, const struct qwen_news *news)
{
	struct heard *h = who;

	(void)ctx;
	h->id[h->n++] = news->token;
	return true;
}

static struct qwen_proposer *wrong_new(void *ctx, struct qwen_state *state,
				       uint32_t sequence, struct err *e)
{
	const struct qwen_model *m = ctx;

	(void)state;
	(void)sequence;
	(void)e;
	return qwen_wrong_new(m->config.vocab);
}

static bool run_texts(struct qwen_model *m, uint32_t texts, uint32_t speculate,
		      struct heard *h, struct qwen_batch_counts *c)
{
	const struct qwen_batch_shape shape = {
		.sequences = TEXTS,
		.positions = POSITIONS,
		.blocks = TEXTS * (POSITIONS / QWEN_BLOCK + 2),
		.chunk = 16,
		.budget = 64,
		.cache = qwen_both(QWEN_W_F16),
		.speculate = speculate,
		.proposer_new = wrong_new,
		.proposer_ctx = m
	};
	struct err e = { 0 };
	struct qwen_batch *b = qwen_batch_new(m, &shape, &e);
	bool good = b != NULL;

	for (uint32_t i = 0; i < texts && good; i++) {
		const uint32_t ids[] = { 17 + i, 40, 3 * i + 1 };
		const struct qwen_ask a = { .ids = ids,
					    .n = 3,
					    .tokens = TOKENS,
					    .how = { .top_p = 1,
						     .temperature = i % 2,
						     .seed = i,
						     .repetition_penalty = 1 },
					    .who = &h[i] };
		h[i].n = 0;
		good = qwen_batch_add(b, &a, &e);
	}
	do {
		good = good && qwen_batch_step(b, hear_token, NULL, &e);
		qwen_batch_count(b, c);
	} while (good && c->running + c->waiting);
	qwen_batch_free(b);
	return good;
}

static void test_texts(struct qwen_model *m, uint32_t texts)
{
	static struct heard plain[TEXTS], with[TEXTS];
	struct qwen_batch_counts without, c;
	uint32_t other = 0, said = 0;

	m->config.n_stops = 0;
	ok(run_texts(m, texts, 0, plain, &without) &&
		   run_texts(m, texts, QWEN_PROPOSED, with, &c),
	   "%u texts, without proposals and with wrong ones", texts);
	for (uint32_t i = 0; i < texts; i++) {
		other += plain[i].n != with[i].n;
		for (uint32_t k = 0; k < with[i].n; k++)
			other += plain[i].id[k] != with[i].id[k];
		said += with[i].n;
	}
	is_u64(other, 0, "the same tokens");
	is_u64(c.steps, without.steps, "in as many steps");
	ok(c.proposed >= texts && c.proposed <= 0.05 * said && !c.right,
	   "of %u tokens %llu more were computed, none right", said,
	   (unsigned long long)c.proposed);
}

int main(void)
{
	char dir[] = "/tmp/t0-guess-XXXXXX", command[64];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 8 };
	const struct qwen_load load = { 0 };
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	struct qwen_model m;

	test_clock();
	test_turns();
	test_steady();
	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e) ||
	    !qwen_model_load(&m, dir, &load, threads, &e))
		skip_all("no model: %s", e.msg);
	test_texts(&m, 1);
	test_texts(&m, TEXTS);
	qwen_model_close(&m);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
