/* Sampling: filters by hand, frequencies against the probabilities. */
#include <math.h>
#include <string.h>

#include "engine/text/text.h"
#include "tests/tap.h"

static const struct qwen_sampling all = { .temperature = 1, .top_p = 1,
					  .repetition_penalty = 1 };

/* Logits whose probabilities are 1/2, 1/4, 1/8, 1/16, 1/16. */
static float logit[5];
static const double share[5] = { .5, .25, .125, .0625, .0625 };

/* Which of the five tokens come up in 4000 draws: a bit each. */
static unsigned drawn(struct qwen_sampling how, double *freq)
{
	struct qwen_sampler s;
	struct err e = { 0 };
	unsigned mask = 0;

	memset(freq, 0, 5 * sizeof(*freq));
	qwen_sampler_init(&s, &how, 5, &e);
	for (int i = 0; i < 4000; i++) {
		uint32_t id = 9;
		qwen_sample(&s, logit, &id, &e);
		mask |= 1u << id;
		freq[id] += 1. / 4000;
	}
	qwen_sampler_fini(&s);
	return mask;
}

static void test_filters(void)
{
	struct qwen_sampling how = all;
	double freq[5];

	is_u64(drawn(how, freq), 31, "every token may come");
	for (int i = 0; i < 5; i++) /* 5 standard deviations */
		ok(fabs(freq[i] - share[i]) <
		   5 * sqrt(share[i] * (1 - share[i]) / 4000),
		   "token %d comes as often as it should: %.4f", i, freq[i]);
	how.top_k = 2;
	is_u64(drawn(how, freq), 3, "top-k 2");
	ok(fabs(freq[0] - 2. / 3) < 5 * sqrt(2. / 9 / 4000),
	   "what is left keeps its proportions: %.4f", freq[0]);
	how = all;
	how.top_p = 0.6;
	is_u64(drawn(how, freq), 3, "top-p keeps the token that passes it");
	how.top_p = 0.5;
	is_u64(drawn(how, freq), 1, "and no more");
	how.top_p = 0;
	is_u64(drawn(how, freq), 1, "top-p 0 leaves the best");
	how = all;
	how.min_p = 0.2;
	is_u64(drawn(how, freq), 7, "min-p is a share of the best");
	how = all;
	how.temperature = 0.01;
	is_u64(drawn(how, freq), 1, "cold sampling takes the best");
	how.temperature = 0;
	is_u64(drawn(how, freq), 1, "temperature 0 is greedy");
	how = all;
	how.temperature = 100;
	drawn(how, freq);
	ok(fabs(freq[4] - .2) < .04, "hot sampling takes all alike");
}

static void test_penalty(void)
{
	struct qwen_sampling how = { .top_p = 1, .repetition_penalty = 2 };
	float l[3] = { 4, 3, -1 };
	struct qwen_sampler s;
	struct err e = { 0 };
	uint32_t id;

	qwen_sampler_init(&s, &how, 3, &e);
	qwen_sample(&s, l, &id, &e);
	is_u64(id, 0, "greedy takes the best");
	qwen_sampler_see(&s, 0);
	qwen_sample(&s, l, &id, &e);
	is_u64(id, 1, "4 / 2 is less than 3");
	l[0] = -1.4f; /* -2.8 with the penalty */
	l[1] = -2.9f;
	l[2] = -2.85f;
	qwen_sample(&s, l, &id, &e);
	is_u64(id, 0, "a negative logit is multiplied");
	l[0] = -1.45f;
	qwen_sample(&s, l, &id, &e);
	is_u64(id, 2, "so that it too becomes less");
	qwen_sampler_see(&s, 1000); /* beyond the vocabulary: no matter */
	qwen_sampler_fini(&s);
}

/* Top-k of many tokens, many of them equal, draws from the k best alone. */
static void test_top_k(void)
{
	struct qwen_sampling how = all;
	struct err e = { 0 };
	static float l[997];
	uint32_t x = 1, id;
	unsigned wrong = 0;

	for (uint32_t k = 1; k < 997; k += 1 + k / 3) {
		struct qwen_sampler s;
		for (int i = 0; i < 997; i++)
			l[i] = (float)((x = x * 69069 + 1) >> 24) / 64;
		how.top_k = k;
		how.seed = k;
		qwen_sampler_init(&s, &how, 997, &e);
		for (int draw = 0; draw < 50; draw++) {
			uint32_t better = 0;
			qwen_sample(&s, l, &id, &e);
			for (uint32_t i = 0; i < 997; i++)
				better += l[i] > l[id] ||
					  (l[i] == l[id] && i < id);
			wrong += better >= k;
		}
		qwen_sampler_fini(&s);
	}
	is_u64(wrong, 0, "only the k best are drawn, for any k");
}

static void test_seed(void)
{
	struct qwen_sampling how = all;
	struct qwen_sampler a, b;
	struct err e = { 0 };
	unsigned differ = 0;

	qwen_sampler_init(&a, &how, 5, &e);
	qwen_sampler_init(&b, &how, 5, &e);
	for (int i = 0; i < 100; i++) {
		uint32_t x, y;
		qwen_sample(&a, logit, &x, &e);
		qwen_sample(&b, logit, &y, &e);
		differ += x != y;
	}
	is_u64(differ, 0, "the same seed gives the same tokens");
	qwen_sampler_fini(&a);
	qwen_sampler_fini(&b);
}

static void test_refuses(void)
{
	struct qwen_sampling how = all;
	struct qwen_sampler s;
	struct err e = { 0 };

	how.top_p = 1.5;
	ok(!qwen_sampler_init(&s, &how, 2, &e) && e.code == ERR_USAGE,
	   "top-p 1.5 is refused");
	how = all;
	how.temperature = NAN;
	ok(!qwen_sampler_init(&s, &how, 2, &e), "a temperature of NaN, too");
}

static void test_broken(double temperature)
{
	struct qwen_sampling how = all;
	float l[2] = { 1, NAN };
	struct qwen_sampler s;
	struct err e = { 0 };
	uint32_t id;

	how.temperature = temperature;
	qwen_sampler_init(&s, &how, 2, &e);
	ok(!qwen_sample(&s, l, &id, &e) && e.code == ERR_DEVICE,
	   "temperature %g: a logit of NaN is an error, not a token",
	   temperature);
	l[0] = l[1] = -INFINITY;
	ok(!qwen_sample(&s, l, &id, &e), "so is nothing but -infinity");
	l[1] = INFINITY;
	ok(!qwen_sample(&s, l, &id, &e), "so is +infinity");
	l[1] = -1e30f;
	ok(qwen_sample(&s, l, &id, &e) && id == 1,
	   "one finite logit is enough");
	qwen_sampler_fini(&s);
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		logit[i] = (float)log(share[i]);
	test_filters();
	test_penalty();
	test_top_k();
	test_seed();
	test_refuses();
	test_broken(0);
	test_broken(1);
	return plan_done();
}
