/*
 * results/cmd/gate.c on synthetic samples with a known effect: how often it
 * cries wolf, how often it misses.  Fixed seeds.
 */
#include <math.h>
#include <stdlib.h>

#include "results/cmd/cmd.h"
#include "tests/tap.h"

/* splitmix64: published by S. Vigna, enough for a test. */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

enum noise { NORMAL, SKEWED, OUTLIERS };

static double draw(enum noise kind, uint64_t *state)
{
	double normal = sqrt(-2 * log(uniform(state))) *
			cos(2 * M_PI * uniform(state));

	if (kind == SKEWED) /* exponential, of the same spread */
		return -log(uniform(state)) - 1;
	if (kind == OUTLIERS && uniform(state) < 0.1)
		return normal + 8;
	return normal;
}

enum { MOST = 64 };

static void measure(struct piece *p, double samples[MOST], size_t n,
		    double value, double noise, enum noise kind,
		    uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		samples[i] = value * (1 + noise * draw(kind, state));
	struct res_interval m = res_median(samples, n);
	*p = (struct piece){
		.better = "lower", .unit = "s", .value = m.value, .lo = m.lo,
		.hi = m.hi, .n = (int64_t)n, .samples = samples,
		.n_samples = n,
	};
}

struct rates {
	int of[4]; /* by enum gate_answer */
	int gains; /* of the passes, those that count as better */
};

static struct rates try(int trials, size_t n, double loss, double noise,
			enum noise kind, const char *correct, uint64_t seed)
{
	struct rates r = { 0 };
	uint64_t state = seed;

	for (int i = 0; i < trials; i++) {
		double a[MOST], b[MOST];
		struct piece base, now;
		struct gate_verdict v;
		measure(&base, a, n, 2.5e-3, noise, kind, &state);
		measure(&now, b, n, 2.5e-3 * (1 + loss), noise, kind, &state);
		base.correct = now.correct = correct;
		gate_judge(&base, &now, &v);
		r.of[v.answer]++;
		r.gains += v.answer == GATE_PASS && v.loss <= -v.threshold;
	}
	return r;
}

static void test_false_alarms(void)
{
	static const struct {
		const char *what;
		enum noise kind;
		size_t n;
		double noise;
	} c[] = {
		{ "1 % noise, 10 samples", NORMAL, 10, 0.01 },
		{ "0.1 % noise, 10 samples", NORMAL, 10, 0.001 },
		{ "5 % noise, 10 samples", NORMAL, 10, 0.05 },
		{ "15 % noise, 10 samples", NORMAL, 10, 0.15 },
		{ "3 % noise, 6 samples", NORMAL, 6, 0.03 },
		{ "3 % noise, 40 samples", NORMAL, 40, 0.03 },
		{ "3 % skewed noise, 10 samples", SKEWED, 10, 0.03 },
		{ "1 % noise, a tenth outliers", OUTLIERS, 10, 0.01 },
	};
	enum { TRIALS = 10000 };

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t seed = 1000 + i;
		struct rates r = try(TRIALS, c[i].n, 0, c[i].noise, c[i].kind,
				     NULL, seed);
		diag("%s, no effect, seed %llu: %d pass, %d regress, %d "
		     "inconclusive of %d", c[i].what, (unsigned long long)seed,
		     r.of[0], r.of[1], r.of[2], TRIALS);
		ok(r.of[GATE_REGRESS] < TRIALS / 100,
		   "%s: fewer than 1 %% false alarms", c[i].what);
		is_i64(r.of[GATE_NODATA], 0, "%s: always data", c[i].what);
	}
}

static void test_power(void)
{
	enum { TRIALS = 10000 };
	struct rates r = try(TRIALS, 10, 0.05, 0.01, NORMAL, NULL, 42);

	diag("5 %% loss, 1 %% noise, 10 samples, seed 42: %d found, %d "
	     "inconclusive, %d passed of %d", r.of[1], r.of[2], r.of[0],
	     TRIALS);
	ok(r.of[GATE_REGRESS] >= TRIALS * 99 / 100,
	   "a loss of 5 %% is found in 99 of 100 trials");
	is_i64(r.of[GATE_PASS], 0, "and never passes");
	r = try(100, 10, 0.05, 0.01, NORMAL, NULL, 7);
	ok(r.of[GATE_REGRESS] >= 99, "also in just 100 trials: %d",
	   r.of[GATE_REGRESS]);
	r = try(TRIALS, 10, 0.01, 0.002, NORMAL, NULL, 43);
	is_i64(r.of[GATE_REGRESS], 0, "a proven loss of 1 %% is too small");
	r = try(1000, 40, 0.10, 0.03, NORMAL, NULL, 44);
	ok(r.of[GATE_PASS] == 0, "40 noisy samples: 10 %% never passes");
}

static void test_quiet_pass(void)
{
	struct rates r = try(1000, 10, 0, 0.005, NORMAL, NULL, 5);

	ok(r.of[GATE_PASS] >= 990, "0.5 %% noise without effect passes: %d",
	   r.of[GATE_PASS]);
}

static void test_gain(void)
{
	struct rates r = try(1000, 10, -0.2, 0.01, NORMAL, "pass", 6);

	is_i64(r.gains, 1000, "a checked gain of 20 %% passes as one");
	r = try(1000, 10, -0.2, 0.01, NORMAL, NULL, 6);
	is_i64(r.of[GATE_INCONCLUSIVE], 1000,
	       "the same gain without a check is no win");
	r = try(1000, 10, -0.2, 0.01, NORMAL, "fail", 6);
	is_i64(r.of[GATE_REGRESS], 1000, "and a wrong result is a regression");
}

static void answer_is(struct piece base, struct piece now,
		      enum gate_answer answer, const char *why,
		      const char *name)
{
	struct gate_verdict v;

	gate_judge(&base, &now, &v);
	is_i64(v.answer, answer, "%s: the answer", name);
	has_str(v.reason, why, "%s: the reason", name);
}

static void test_rules(void)
{
	double x[] = { 10, 11, 9, 10.1, 9.9, 10.2, 9.8, 10 };
	double up[] = { 20, 22, 18, 20.2, 19.8, 20.4, 19.6, 20 };
	double neg[] = { -1, -2, -1, -2, -1, -2, -1, -2 };
	struct piece a = { .better = "higher", .unit = "token/s", .value = 10,
			   .lo = 9.8, .hi = 10.2, .n = 8, .samples = x,
			   .n_samples = 8, .correct = "pass",
			   .coherent = "pass" };
	struct piece b = a;
	struct gate_verdict v;

	gate_judge(&a, NULL, &v);
	is_i64(v.answer, GATE_NODATA, "nothing measured is no data");
	answer_is(a, b, GATE_PASS, "no loss of", "the same samples");
	b.n_samples = 5;
	answer_is(a, b, GATE_INCONCLUSIVE, "a verdict needs 6",
		  "five samples");
	b = a;
	b.correct = NULL;
	answer_is(a, b, GATE_NODATA, "it did not run",
		  "a correctness check that did not run");
	b.correct = "inconclusive";
	answer_is(a, b, GATE_NODATA, "inconclusive", "an undecided check");
	b = a;
	b.coherent = "fail";
	answer_is(a, b, GATE_REGRESS, "coherence", "incoherent text");
	b = a;
	b.samples = up;
	b.value = 20;
	answer_is(a, b, GATE_PASS, "better, and correct", "twice as fast");
	a.coherent = b.coherent = NULL;
	answer_is(a, b, GATE_INCONCLUSIVE, "no coherence",
		  "twice as fast without a look at the text");
	answer_is(b, a, GATE_REGRESS, "more than", "half as fast");
	a.better = b.better = "none";
	answer_is(a, b, GATE_REGRESS, "more than",
		  "a change of what should not change");
	a.samples = b.samples = neg;
	answer_is(a, b, GATE_PASS, "no loss",
		  "values below zero are compared by their shift");

	/* Counted, not timed: the interval is the value. */
	struct piece c = { .better = "lower", .unit = "instruction", .n = 1,
			   .value = 1000, .lo = 1000, .hi = 1000 };
	struct piece d = c;
	answer_is(c, d, GATE_PASS, "no loss", "an equal count");
	d.value = d.lo = d.hi = 1010;
	answer_is(c, d, GATE_PASS, "no loss", "a count 1 % higher");
	d.value = d.lo = d.hi = 1020;
	answer_is(c, d, GATE_REGRESS, "2 % worse", "a count 2 % higher");
	d.n = 0;
	answer_is(c, d, GATE_INCONCLUSIVE, "needs 6", "a number from nowhere");
	gate_judge(&c, &d, &v);
	ok(!v.investigate, "2 %% needs no explanation");
	d.value = 1050;
	gate_judge(&c, &d, &v);
	ok(v.investigate, "5 %% needs one");
}

int main(void)
{
	test_false_alarms();
	test_power();
	test_quiet_pass();
	test_gain();
	test_rules();
	return plan_done();
}
