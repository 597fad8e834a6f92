/*
 * engine/serve/guess.c - how many tokens of a text a batch proposes.
 */
#include "engine/serve/serve.h"

/*
 * Proposals at first: twice as many when all were right, half of them when none
 * was.  What rests is looked at after so many passes.
 */
enum { BEGIN = 2, REST = 32 };
/* What a token more costs of one of a pass, at a guess, until it is known. */
#define COST_GUESS 0.25
/* Of a text's time, for looks. */
#define ALLOWED 0.02
/* Passes with proposals, until one without is measured again. */
enum { MEASURED_AGAIN = 64 };

void qwen_guess_begin(struct qwen_guessing *g, uint32_t behind)
{
	*g = (struct qwen_guessing){
		.most = BEGIN, .right = 0.5, .rested = 1, .behind = behind
	};
}

/* Seconds of a pass of n tokens; of what was not seen, after a shorter one. */
static double pass_of(const struct qwen_guess_costs *c, uint32_t n)
{
	uint32_t m = n;

	while (m && !(c->pass[m] > 0))
		m--;
	return m ? c->pass[m] * (1 + COST_GUESS * (n - m) / m) : 0;
}

/* Of the text that has n proposals beside `texts`, each with one token. */
static double speed_of(const struct qwen_guess_costs *c,
		       const struct qwen_guessing *g, uint32_t texts,
		       uint32_t n)
{
	const double tokens = texts - 1 + qwen_pace_tokens(g->right, n);

	return tokens / (pass_of(c, texts + n) + c->propose * n);
}

/* Is one proposal a small part of the time since the last? */
static bool may_look(const struct qwen_guess_costs *c,
		     const struct qwen_guessing *g, uint32_t texts)
{
	const double one = pass_of(c, texts);
	const double look =
		pass_of(c, texts + 1) - one + c->propose + c->read * g->behind;

	return g->rested >= REST && look <= ALLOWED * one / texts * g->rested;
}

uint32_t qwen_guess_length(const struct qwen_guess_costs *c,
			   const struct qwen_guessing *g, uint32_t texts,
			   uint32_t room)
{
	const uint32_t most = room < g->most ? room : g->most;
	double best;
	uint32_t n = 0;

	if (c->steady && room)
		return most ? most : g->rested >= REST;
	if (!room || !(c->pass[texts] > 0) || c->since >= MEASURED_AGAIN)
		return 0;
	best = speed_of(c, g, texts, 0);
	for (uint32_t i = 1; i <= most; i++) {
		const double speed = speed_of(c, g, texts, i);
		if (speed > best) {
			best = speed;
			n = i;
		}
	}
	return n ? n : may_look(c, g, texts);
}

void qwen_guess_asked(struct qwen_guess_costs *c, struct qwen_guessing *g,
		      uint32_t n, double seconds)
{
	const double each = n ? seconds / n : seconds;

	if (!g->rested)
		qwen_pace_average(&c->propose, each);
	else if (c->propose > each)
		c->propose = each;
	if (g->rested && g->behind)
		qwen_pace_average(&c->read, seconds / g->behind);
	g->behind = 0;
}

void qwen_guess_pass(struct qwen_guess_costs *c, uint32_t tokens, bool proposed,
		     double seconds)
{
	qwen_pace_average(&c->pass[tokens], seconds);
	c->since = proposed ? c->since + 1 : 0;
}

void qwen_guess_see(struct qwen_guessing *g, uint32_t n, uint32_t right)
{
	g->behind += right + 1;
	if (!n) {
		g->rested++;
		return;
	}
	qwen_pace_learn(&g->right, n, right);
	if (!right) {
		g->most /= 2;
	} else if (right == n) {
		/* What rested was right: it is tried again. */
		g->most = g->most ? 2 * g->most : BEGIN;
		if (g->rested >= REST && g->right < 0.5)
			g->right = 0.5;
	}
	g->most = g->most < QWEN_PROPOSED ? g->most : QWEN_PROPOSED;
	g->rested = 0;
}
