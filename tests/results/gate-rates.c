/*
 * results/cmd/gate.c on synthetic processes with a known effect: how often it
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

/* n processes, b's in turns with a's or after them. */
static void measure(struct piece *p, double values[MOST], struct facts *f,
		    size_t n, double value, double noise, enum noise kind,
		    uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		values[i] = value * (1 + noise * draw(kind, state));
	*f = (struct facts){ .run = 1 };
	*p = (struct piece){
		.facts = f, .better = "lower", .unit = "s",
		.origin = "hardware", .samples = values, .n_samples = n,
		.baseline_uuid = "x", .n_processes = (int64_t)n,
		.limit = GATE_LIMIT, .lo = NAN, .hi = NAN,
	};
}

static void judge(const struct piece *base, const struct piece *now,
		  struct gate_verdict *v)
{
	struct measured a, b;

	measured_init(&a, base, 1);
	measured_init(&b, now, now ? 1 : 0);
	gate_judge(&a, &b, FAMILY_ALPHA, NAN, v);
	measured_fini(&a);
	measured_fini(&b);
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
		struct facts fa, fb;
		struct gate_verdict v;
		measure(&base, a, &fa, n, 2.5e-3, noise, kind, &state);
		measure(&now, b, &fb, n, 2.5e-3 * (1 + loss), noise, kind,
			&state);
		base.correct = now.correct = correct;
		judge(&base, &now, &v);
		r.of[v.answer]++;
		r.gains += v.answer == GATE_PASS && v.loss.value <= -v.limit;
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
		{ "1 % noise, 10 processes", NORMAL, 10, 0.01 },
		{ "0.1 % noise, 10 processes", NORMAL, 10, 0.001 },
		{ "5 % noise, 10 processes", NORMAL, 10, 0.05 },
		{ "15 % noise, 10 processes", NORMAL, 10, 0.15 },
		{ "3 % noise, 6 processes", NORMAL, 6, 0.03 },
		{ "3 % noise, 40 processes", NORMAL, 40, 0.03 },
		{ "3 % skewed noise, 10 processes", SKEWED, 10, 0.03 },
		{ "1 % noise, a tenth outliers", OUTLIERS, 10, 0.01 },
	};
	enum { TRIALS = 500 };

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t seed = 1000 + i;
		struct rates r = try(TRIALS, c[i].n, 0, c[i].noise, c[i].kind,
				     NULL, seed);
		diag("%s, no effect, seed %llu: %d pass, %d regress, %d "
		     "inconclusive of %d", c[i].what, (unsigned long long)seed,
		     r.of[0], r.of[1], r.of[2], TRIALS);
		ok(r.of[GATE_REGRESS] <= TRIALS / 100,
		   "%s: at most 1 %% false alarms", c[i].what);
		is_i64(r.of[GATE_NODATA], 0, "%s: always data", c[i].what);
	}
}

static void test_power(void)
{
	enum { TRIALS = 500 };
	struct rates r = try(TRIALS, 10, 0.05, 0.01, NORMAL, NULL, 42);

	diag("5 %% loss, 1 %% noise, 10 processes, seed 42: %d found, %d "
	     "inconclusive, %d passed of %d", r.of[1], r.of[2], r.of[0],
	     TRIALS);
	ok(r.of[GATE_REGRESS] >= TRIALS * 95 / 100,
	   "a loss of the limit is found in 95 of 100 trials");
	ok(r.of[GATE_PASS] <= TRIALS / 100, "and passes in at most one: %d",
	   r.of[GATE_PASS]);
	r = try(TRIALS, 20, 0.05, 0.06, NORMAL, NULL, 43);
	ok(r.of[GATE_PASS] <= TRIALS / 100,
	   "where it cannot be found it does not pass: %d", r.of[GATE_PASS]);
	ok(r.of[GATE_INCONCLUSIVE] >= TRIALS / 3,
	   "but is inconclusive: %d", r.of[GATE_INCONCLUSIVE]);
	r = try(TRIALS, 20, 0.01, 0.005, NORMAL, NULL, 44);
	ok(r.of[GATE_PASS] >= TRIALS * 99 / 100,
	   "a loss of 1 %% may be lost: %d", r.of[GATE_PASS]);
	r = try(TRIALS, 20, 0.10, 0.03, NORMAL, NULL, 45);
	is_i64(r.of[GATE_PASS], 0, "10 %% never passes");
	r = try(TRIALS, 20, 0, 0.5, NORMAL, NULL, 46);
	ok(r.of[GATE_PASS] <= TRIALS / 100, "wild ones never pass: %d",
	   r.of[GATE_PASS]);
}

static void test_quiet_pass(void)
{
	struct rates r = try(1000, 10, 0, 0.005, NORMAL, NULL, 5);

	ok(r.of[GATE_PASS] >= 990, "0.5 %% noise without effect passes: %d",
	   r.of[GATE_PASS]);
}

static void test_gain(void)
{
	struct rates r = try(200, 10, -0.2, 0.01, NORMAL, "pass", 6);

	is_i64(r.gains, 200, "a checked gain of 20 %% passes as one");
	r = try(200, 10, -0.2, 0.01, NORMAL, NULL, 6);
	is_i64(r.of[GATE_INCONCLUSIVE], 200,
	       "the same gain without a check is no win");
	r = try(200, 10, -0.2, 0.01, NORMAL, "fail", 6);
	is_i64(r.of[GATE_REGRESS], 200, "and a wrong result is a regression");
}

static void answer_is(struct piece base, struct piece now,
		      enum gate_answer answer, const char *why,
		      const char *name)
{
	struct gate_verdict v;

	judge(&base, &now, &v);
	is_i64(v.answer, answer, "%s: the answer", name);
	has_str(v.reason, why, "%s: the reason", name);
}

static void test_rules(void)
{
	double x[] = { 10, 14, 7, 12, 8, 13, 9, 10 };
	double near[] = { 10, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10 };
	double up[] = { 20, 22, 18, 20.2, 19.8, 20.4, 19.6, 20 };
	double neg[] = { -1, -1.1, -1, -1.1, -1, -1.1, -1, -1.1 };
	struct facts f = { .run = 1 };
	struct piece a = { .facts = &f, .better = "higher", .unit = "token/s",
			   .origin = "hardware", .lo = NAN, .hi = NAN,
			   .samples = near, .n_samples = 8, .n_processes = 8,
			   .baseline_uuid = "x", .limit = GATE_LIMIT,
			   .correct = "pass", .coherent = "pass" };
	struct piece b = a;
	struct gate_verdict v;

	judge(&a, NULL, &v);
	is_i64(v.answer, GATE_NODATA, "nothing measured is no data");
	answer_is(a, b, GATE_PASS, "no loss of", "the same values");
	b.samples = x;
	answer_is(a, b, GATE_INCONCLUSIVE, "processes a side would",
		  "noisier than the limit");
	b = a;
	b.n_processes = 1;
	answer_is(a, b, GATE_INCONCLUSIVE, "one process was measured",
		  "one process");
	answer_is(b, a, GATE_INCONCLUSIVE, "the baseline is one process",
		  "a baseline of one process");
	b = a;
	b.n_samples = 2;
	answer_is(a, b, GATE_INCONCLUSIVE, "2 processes against the baseline's "
		  "8 prove nothing", "two processes");
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
	b.correct = "fail";
	answer_is(a, b, GATE_REGRESS, "correctness",
		  "twice as fast, and wrong");
	b.correct = "pass";
	answer_is(a, b, GATE_PASS, "better, and correct", "twice as fast");
	a.coherent = b.coherent = NULL;
	answer_is(a, b, GATE_INCONCLUSIVE, "no coherence",
		  "twice as fast without a look at the text");
	a.unit = b.unit = "1";
	answer_is(a, b, GATE_PASS, "better, and correct",
		  "a larger ratio, which is of no text");
	a.coherent = b.coherent = "inconclusive";
	answer_is(a, b, GATE_INCONCLUSIVE, "no coherence",
		  "one of speeds whose text could not be judged");
	a.coherent = b.coherent = NULL;
	a.unit = b.unit = "token/s";
	answer_is(b, a, GATE_REGRESS, "may lose less than 5 %",
		  "half as fast");
	a.better = b.better = "none";
	answer_is(a, b, GATE_REGRESS, "may lose less than",
		  "a change of what should not change");
	a.samples = b.samples = neg;
	a.limit = b.limit = 0.2;
	answer_is(a, b, GATE_PASS, "no loss",
		  "values below zero are compared by their shift");

	/* Counted, not timed: the interval is the value. */
	struct piece c = { .facts = &f, .better = "lower",
			   .unit = "instruction", .origin = "hardware", .n = 1,
			   .value = 1000, .lo = 1000, .hi = 1000,
			   .limit = GATE_LIMIT };
	struct piece d = c;
	answer_is(c, d, GATE_PASS, "no loss", "an equal count");
	d.value = d.lo = d.hi = 1010;
	answer_is(c, d, GATE_PASS, "1 % worse, less than the 5 %",
		  "a count 1 % higher");
	d.value = d.lo = d.hi = 1050;
	answer_is(c, d, GATE_REGRESS, "5 % worse", "a count 5 % higher");
	c.limit = 0.01;
	d.value = d.lo = d.hi = 1010;
	answer_is(c, d, GATE_REGRESS, "less than 1 %", "a limit of 1 %");
	d.n = 0;
	answer_is(c, d, GATE_INCONCLUSIVE, "one process",
		  "a number from nowhere");
	d.n = 1;
	c.value = c.lo = c.hi = 0;
	d.value = d.lo = d.hi = 0;
	answer_is(c, d, GATE_PASS, "no loss", "none of what should not be");
	d.value = d.lo = d.hi = 1;
	answer_is(c, d, GATE_REGRESS, "worse", "the first of what should not");
	d = c;
	c.value = c.lo = c.hi = d.value = d.lo = d.hi = 1000;
	judge(&c, &d, &v);
	ok(!v.investigate, "no change needs no explanation");
	d.value = d.lo = d.hi = 1050;
	judge(&c, &d, &v);
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
