/*
 * What is drawn with the help of another distribution has the one it should
 * have: chi-squared against softmax computed here, against plain draws, and of
 * whole texts that a draft proposes.  Seeds are fixed; the same statistic
 * refuses draws that take every proposal.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/speculate/speculate.h"
#include "engine/train/heads/heads.h"
#include "tests/tap.h"

enum { VOCAB = 24, DRAWS = 40000, CELLS = 64 };
/* Of a normal distribution: one in 3,500 is above. */
static const double Z = 3.45;

/* How far chi-squared is above what it should be (Wilson and Hilferty). */
static double z_of(double chi, unsigned freedom)
{
	const double f = 2 / (9.0 * freedom);

	return freedom ? (cbrt(chi / freedom) - (1 - f)) / sqrt(f) : 0;
}

/* Of two samples; cells of few are put together. */
static double two_samples(const uint32_t *a, const uint32_t *b, size_t cells)
{
	double n = 0, m = 0, chi = 0, rest_a = 0, rest_b = 0;
	unsigned used = 0;

	for (size_t i = 0; i < cells; i++) {
		n += a[i];
		m += b[i];
	}
	const double k = sqrt(m / n), l = sqrt(n / m);
	for (size_t i = 0; i <= cells; i++) {
		double x = i < cells ? a[i] : rest_a;
		double y = i < cells ? b[i] : rest_b;
		if (i < cells && x + y < 20) {
			rest_a += x;
			rest_b += y;
		} else if (x + y > 0) {
			chi += (k * x - l * y) * (k * x - l * y) / (x + y);
			used++;
		}
	}
	return z_of(chi, used - 1);
}

/* Of a sample against probabilities. */
static double one_sample(const uint32_t *a, const double *p, size_t cells,
			 double n)
{
	double chi = 0;
	unsigned used = 0;

	for (size_t i = 0; i < cells; i++)
		if (p[i] * n >= 5) {
			chi += (a[i] - p[i] * n) * (a[i] - p[i] * n) /
			       (p[i] * n);
			used++;
		}
	return z_of(chi, used - 1);
}

static void logits_draw(float *v, double width, uint64_t *seed)
{
	for (int i = 0; i < VOCAB; i++)
		v[i] = (float)(width *
			       ((double)(random_next(seed) >> 11) * 0x1p-53 -
				0.5));
}

struct counts {
	uint32_t plain[VOCAB], with[VOCAB], blind[VOCAB];
	uint32_t taken;
};

/* Draws of one distribution: as ever, and proposed by another one. */
static bool draw_all(const struct qwen_sampling *how, const float *mine,
		     const float *others, struct counts *c)
{
	struct qwen_sampling how_draft = *how;
	struct qwen_sampler s, draft, alone;
	double odds[VOCAB];
	uint32_t id, proposed;
	struct err e = { 0 };
	bool good;

	how_draft.seed += 1000;
	*c = (struct counts){ 0 };
	good = qwen_sampler_init(&s, how, VOCAB, &e) &&
	       qwen_sampler_init(&draft, &how_draft, VOCAB, &e);
	how_draft.seed += 1000;
	good = good && qwen_sampler_init(&alone, &how_draft, VOCAB, &e);
	for (int i = 0; i < DRAWS && good; i++) {
		good = qwen_sample(&alone, mine, &id, &e);
		c->plain[id]++;
		good = good &&
		       qwen_sample_odds(&draft, others, odds, &proposed, &e) &&
		       qwen_sample_proposed(&s, mine, proposed, odds, &id, &e);
		c->with[id]++;
		c->blind[proposed]++;
		c->taken += id == proposed;
	}
	qwen_sampler_fini(&s);
	qwen_sampler_fini(&draft);
	qwen_sampler_fini(&alone);
	return good;
}

/* Softmax, and the overlap of two of them. */
static double overlap(const float *a, const float *b, double t, double *p)
{
	double q[VOCAB], sum_p = 0, sum_q = 0, both = 0;

	for (int i = 0; i < VOCAB; i++) {
		sum_p += p[i] = exp(a[i] / t);
		sum_q += q[i] = exp(b[i] / t);
	}
	for (int i = 0; i < VOCAB; i++) {
		p[i] /= sum_p;
		both += fmin(p[i], q[i] / sum_q);
	}
	return both;
}

static void test_draws(void)
{
	uint64_t seed = 11;
	float mine[VOCAB], others[VOCAB];
	double p[VOCAB], worst = 0, worst_two = 0, blind = INFINITY, far = 0;
	struct counts c;
	bool good = true;

	for (int round = 0; round < 24 && good; round++) {
		struct qwen_sampling how = { .temperature = 0.5 + round % 3,
					     .top_p = 1,
					     .repetition_penalty = 1,
					     .seed = (uint64_t)round };
		logits_draw(mine, 6, &seed);
		logits_draw(others, 6, &seed);
		double both = overlap(mine, others, how.temperature, p);
		good = draw_all(&how, mine, others, &c);
		worst = fmax(worst, one_sample(c.with, p, VOCAB, DRAWS));
		far = fmax(far, fabs(c.taken / (double)DRAWS - both));
		blind = fmin(blind, one_sample(c.blind, p, VOCAB, DRAWS));
		/* Cut as generate may cut. */
		how.top_k = 3 + (uint32_t)round % 9;
		how.top_p = round % 2 ? 0.8 : 1;
		how.min_p = round % 4 ? 0 : 0.1;
		good = good && draw_all(&how, mine, others, &c);
		worst_two =
			fmax(worst_two, two_samples(c.plain, c.with, VOCAB));
		/* What is cut off is never said. */
		for (int i = 0; i < VOCAB; i++)
			good = good && !(c.with[i] > 20 && !c.plain[i]);
	}
	diag("worst of softmax %.2f, of plain draws %.2f", worst, worst_two);
	ok(good, "draws");
	ok(worst < Z, "they have softmax's distribution");
	ok(worst_two < Z, "cut ones are as plain ones are");
	ok(blind > 10, "the same test refuses the proposals themselves");
	ok(far < 0.01, "as many are taken as both distributions share");
}

/* ---- texts ---- */

enum { TEXTS = 3000, PROMPT = 8, AFTER = 4 };

/* Tokens of many texts, by their place; with a draft, with heads, or NULL. */
static bool write_texts(const struct qwen_model *m,
			const struct qwen_model *draft, const char *heads,
			uint32_t counts[AFTER][CELLS],
			struct qwen_speculated *sum)
{
	const struct qwen_shape shape = { 1,	  PROMPT + AFTER + 1,
					  PROMPT, qwen_both(QWEN_W_F32),
					  NULL,	  0 };
	struct qwen_sampling how = { .temperature = 1.5,
				     .top_k = 6,
				     .top_p = 1,
				     .repetition_penalty = 1.1,
				     .seed = draft ? 77 :
					     heads ? 79 :
						     78 };
	struct qwen_token t[PROMPT] = { 0 };
	struct qwen_speculation s = { .steady = true };
	struct qwen_sampler sampler;
	struct qwen_ids text = { 0 };
	struct err e = { 0 };
	struct qwen_state *state = qwen_state_new(m, &shape, &e);
	bool good = qwen_speculation_init(&s, m, 3, &e) &&
		    qwen_sampler_init(&sampler, &how, m->config.vocab, &e);

	if (draft)
		s.proposer = qwen_draft_new(draft, &shape, &how, &e);
	if (heads)
		s.proposer = qwen_medusa_new(heads, m, true, state, 0, &e);
	s.state = state;
	s.sampler = &sampler;
	for (uint32_t i = 0; i < PROMPT; i++)
		t[i].id = 7 * i + 1;
	good = good && qwen_forward(state, t, PROMPT, &e);
	for (int i = 0; i < TEXTS && good; i++) {
		text.n = 0;
		memset(sampler.seen, 0, sampler.vocab);
		for (uint32_t j = 0; j < PROMPT; j++) {
			qwen_ids_add(&text, t[j].id);
			qwen_sampler_see(&sampler, t[j].id);
		}
		qwen_state_truncate(state, 0, PROMPT - 1);
		while (text.n < PROMPT + AFTER && good)
			good = qwen_speculate(
				&s, &text, (uint32_t)(PROMPT + AFTER - text.n),
				&e);
		for (int j = 0; j < AFTER && good; j++)
			counts[j][text.v[PROMPT + j] % CELLS]++;
	}
	if (!good)
		diag("%s", e.msg);
	*sum = s.counts;
	qwen_proposer_free(s.proposer);
	qwen_sampler_fini(&sampler);
	qwen_ids_fini(&text);
	qwen_state_free(state);
	return good;
}

static void test_texts(const char *dir)
{
	static uint32_t one[AFTER][CELLS], with[AFTER][CELLS],
		trees[AFTER][CELLS];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 4 };
	struct qwen_load as_is = { 0 },
			 small = { .convert = true, .weights = QWEN_W_INT4 };
	struct qwen_speculated sum, none, tree;
	char dir_heads[64];
	struct qwen_model m, draft;
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	bool good;

	snprintf(dir_heads, sizeof(dir_heads), "%s/heads", dir);
	qwen_shape_find("tiny", &how.config, &e);
	if (!ok(qwen_synthetic_write(dir, &how, &e) &&
			qwen_model_load(&m, dir, &as_is, threads, &e) &&
			qwen_model_load(&draft, dir, &small, threads, &e),
		"a model and its draft: %s", e.msg))
		return;
	struct train_medusa blank;
	train_medusa_init(&blank, &m, 2, &e);
	good = train_medusa_write(&blank, dir_heads, dir, &e);
	train_medusa_fini(&blank);
	good = write_texts(&m, NULL, NULL, one, &none) && good;
	good = write_texts(&m, NULL, dir_heads, trees, &tree) && good;
	good = write_texts(&m, &draft, NULL, with, &sum) && good;
	ok(good && none.tokens == none.passes, "texts");
	diag("%llu of %llu proposals taken", (unsigned long long)sum.right,
	     (unsigned long long)sum.proposed);
	ok(sum.right > TEXTS / 4 && sum.right < sum.proposed - TEXTS / 4,
	   "some are taken, some not");
	diag("%llu of %llu candidates of trees", (unsigned long long)tree.right,
	     (unsigned long long)tree.proposed);
	ok(tree.right > TEXTS / 8, "of trees, too");
	for (int i = 0; i < AFTER; i++) {
		double z = two_samples(one[i], trees[i], CELLS);
		ok(z < Z, "tokens at place %d are as without trees: %.2f", i,
		   z);
	}
	for (int i = 0; i < AFTER; i++) {
		double z = two_samples(one[i], with[i], CELLS);
		diag("place %d: %.2f", i, z);
		ok(z < Z, "tokens at place %d are as without a draft", i);
	}
	qwen_model_close(&m);
	qwen_model_close(&draft);
	threads_free(threads);
}

int main(void)
{
	char dir[] = "/tmp/t0-speculate-XXXXXX", command[64];

	if (!mkdtemp(dir))
		skip_all("no folder");
	test_draws();
	test_texts(dir);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
