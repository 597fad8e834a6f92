/*
 * engine/speculate/pace.c - how many tokens to propose.
 */
#include "engine/speculate/speculate.h"

/* Shares of what is new in what is known of costs, and of what is right. */
#define COST_NEW  0.125
#define RIGHT_NEW 0.125
/* What a token more costs of a pass, at a guess, until any is known. */
#define COST_GUESS 0.25
/* Of all time, for the account. */
#define ALLOWED 0.02
/* In passes of a token: what the account begins with, and what it holds. */
#define ACCOUNT_BEGIN 1.0
#define ACCOUNT_LEAST (-16.0)
#define ACCOUNT_MOST  8.0
/* Passes of a token before all others: the first ones find cold caches. */
#define WARM 4
/* A pass of a token is measured again after so many others. */
#define MEASURED_AGAIN 64

void qwen_pace_init(struct qwen_pace *p, uint32_t most)
{
	*p = (struct qwen_pace){ .most = most };
	for (int i = 0; i < QWEN_KINDS; i++)
		p->right[i] = 0.5;
	for (uint32_t i = 0; i <= QWEN_PROPOSED; i++)
		p->deep[i] = i;
}

static double clamp(double v, double least, double most)
{
	return v < least ? least : v > most ? most : v;
}

/* Seconds of a pass with n proposals; of a length not seen, by a line. */
static double pass_of(const struct qwen_pace *p, uint32_t n)
{
	double token = COST_GUESS * p->pass[0];

	if (p->pass[n] > 0)
		return p->pass[n];
	for (uint32_t i = 1; i < n; i++)
		if (p->pass[i] > 0)
			token = (p->pass[i] - p->pass[0]) / i;
	return p->pass[0] + (token > 0 ? token * n : 0);
}

/* With what the proposals cost. */
static double cost_of(const struct qwen_pace *p, uint32_t n)
{
	return pass_of(p, n) + p->propose * n;
}

/* What passes of much longer ones cost would be a guess: by twice at most. */
static uint32_t longest_tried(const struct qwen_pace *p)
{
	uint32_t n = p->most;

	while (n && !(p->pass[n] > 0))
		n--;
	return 2 * n + 1 < p->most ? 2 * n + 1 : p->most;
}

double qwen_pace_tokens(double right, uint32_t n)
{
	double tokens = 1, chance = 1;

	for (uint32_t i = 0; i < n; i++) {
		chance *= right;
		tokens += chance;
	}
	return tokens;
}

uint32_t qwen_pace_length(const struct qwen_pace *p, uint32_t kind)
{
	double best;
	uint32_t n = 0, most;

	if (p->warm < WARM || p->since_one >= MEASURED_AGAIN)
		return 0;
	best = 1 / p->pass[0];
	most = longest_tried(p);
	for (uint32_t i = 1; i <= most; i++) {
		const double speed =
			qwen_pace_tokens(p->right[kind], p->deep[i]) /
			cost_of(p, i);
		if (speed > best) {
			best = speed;
			n = i;
		}
	}
	n = n ? n : 1; /* a look whether it pays by now */
	while (n && cost_of(p, n) - p->pass[0] > p->account)
		n--;
	return n;
}

uint32_t qwen_pace_longest(const struct qwen_pace *p, uint32_t kinds)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < kinds; i++) {
		uint32_t n = qwen_pace_length(p, i);
		longest = n > longest ? n : longest;
	}
	return longest;
}

void qwen_pace_average(double *known_s, double now_s)
{
	if (!(*known_s > 0))
		*known_s = now_s;
	else
		*known_s += COST_NEW * (clamp(now_s, 0, 2 * *known_s) - *known_s);
}

void qwen_pace_learn(double *right, uint32_t n, uint32_t taken)
{
	for (uint32_t i = 0; i < n && i <= taken; i++)
		*right += RIGHT_NEW * ((i < taken) - *right);
}

void qwen_pace_see(struct qwen_pace *p, uint32_t kind, uint32_t n,
		   uint32_t deep, uint32_t right, double propose_s,
		   double pass_s)
{
	if (p->warm < WARM) {
		p->pass[0] = p->warm++ && p->pass[0] < pass_s ? p->pass[0] :
								pass_s;
		p->account = ACCOUNT_BEGIN * p->pass[0];
		return;
	}
	qwen_pace_average(&p->pass[n], pass_s);
	if (n)
		qwen_pace_average(&p->propose, propose_s / n);
	p->deep[n] = deep;
	qwen_pace_learn(&p->right[kind], deep, right);
	p->since_one = n ? p->since_one + 1 : 0;
	const double one = p->pass[0];
	const double spent =
		clamp(propose_s, 0, 4 * one) + clamp(pass_s, 0, 2 * p->pass[n]);
	p->account += ALLOWED * spent;
	if (n)
		p->account += (right + 1) * one - spent;
	else
		p->account -= clamp(propose_s, 0, 4 * one);
	p->account = clamp(p->account, ACCOUNT_LEAST * one, ACCOUNT_MOST * one);
}
