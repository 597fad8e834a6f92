/*
 * results/cmd/pool.c on invented processes: false alarms stay at the level,
 * what can be detected is what the theory of the rank test says.
 */
#include <math.h>
#include <stdlib.h>

#include "results/cmd/series.h"
#include "tests/tap.h"

enum { N = 200, ROWS = 3, SIDE = 20 };

static double normal(uint64_t *state)
{
	double u = ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;
	double v = ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static struct pool_verdict judge(double noise, double drift, double outliers)
{
	static double value[ROWS][N];
	double *row[ROWS];
	bool principal[ROWS] = { true };
	struct pool p = { row, principal, ROWS, N, 0.01 / ROWS, 1 };
	uint64_t state = 7;

	for (size_t r = 0; r < ROWS; r++) {
		row[r] = value[r];
		for (size_t i = 0; i < N; i++)
			value[r][i] = noise * normal(&state) +
				      drift * (double)i / N +
				      (random_next(&state) % 25 ? 0 : outliers);
	}
	return pool_judge(&p, SIDE, 500);
}

/* Two-sided at a third of 1 %, found 19 times of 20; efficiency 3 / pi. */
static double theory(double noise)
{
	return expm1(noise * sqrt(2.0 / SIDE * M_PI / 3) * (2.935 + 1.645));
}

/* Blocks of A B B A, b slower by `loss`; sides as a series keeps them. */
static struct planted_verdict judge_planted(double noise, double loss)
{
	enum { BLOCKS = 30, EACH = 2 * BLOCKS };
	static struct facts facts[2 * EACH];
	static struct piece v[2 * EACH];
	struct pieces p = { .v = v, .n = 2 * EACH };
	uint64_t state = 3;

	for (size_t i = 0; i < 2 * EACH; i++) {
		size_t b = i >= EACH, k = i % EACH;
		facts[i] = (struct facts){
			.start_ns = (int64_t)(4 * (k / 2) + (b ? 1 + k % 2 :
							       3 * (k % 2))),
			.side = b ? "planted" : "a",
		};
		v[i] = (struct piece){
			.facts = &facts[i], .area = "a", .name = "n",
			.params = "{}", .metric = "rate", .unit = "B/s",
			.better = "higher", .origin = "hardware", .source = "",
			.value = 1e9 * exp(noise * normal(&state)) *
				 (b ? 1 - loss : 1),
			.lo = NAN, .hi = NAN, .n = 1,
		};
	}
	return pool_judge_planted(&p, SIDE, 200, 0.01 / ROWS);
}

static void test_planted(void)
{
	struct planted_verdict v = judge_planted(0.005, 0.06);
	is_u64(v.found, 200, "planted: 6 %% in noise of 0.5 %% is found");
	is_u64(v.passed, 0, "planted: and passes no gate");
	ok(fabs(v.change - 0.06) < 0.005, "planted: as 6 %%, %.4f", v.change);
	v = judge_planted(0.005, 0);
	ok(v.found <= 4, "planted: nothing, and %zu of 200 find it", v.found);
	is_u64(v.passed, 200, "planted: nothing passes every gate");
	v = judge_planted(0.3, 0.06);
	ok(v.found <= 10, "planted: in noise of 30 %% %zu find it", v.found);
	is_u64(v.passed, 0, "planted: but none passes");
	v = pool_judge_planted(&(struct pieces){ 0 }, SIDE, 200, 0.01);
	is_u64(v.trials, 0, "planted: without processes there is no trial");
}

int main(void)
{
	test_planted();
	struct pool_verdict v = judge(0.01, 0, 0);
	ok(v.false_alarms <= 10, "noise: %zu of 500 false", v.false_alarms);
	ok(v.detectable > 0.9 * theory(0.01) && v.detectable < 1.4 * theory(0.01),
	   "noise: %.4f is found, by theory %.4f", v.detectable, theory(0.01));
	ok(fabs(v.spread / (0.01 * 0.6745) - 1) < 0.3,
	   "noise: half of the values lie within %.4f", v.spread);
	is_u64(v.serial, 5, "noise: five pairs of groups");
	is_u64(v.serial_false, 0, "noise: none is called different");
	v = judge(0.01, 0.5, 0);
	ok(v.false_alarms <= 10, "drift: %zu of 500 false", v.false_alarms);
	ok(v.detectable < 2 * theory(0.01), "drift: %.4f is found",
	   v.detectable);
	is_u64(v.serial_false, 5, "drift: every later group is called slower");
	ok(v.drift > 0.03 && v.drift < 0.08, "drift: by %.3f", v.drift);
	v = judge(0.01, 0, 0.5);
	ok(v.false_alarms <= 10, "outliers: %zu of 500 false", v.false_alarms);
	ok(v.detectable < 0.1, "outliers: %.4f is found all the same",
	   v.detectable);
	v = judge(1, 0, 0);
	ok(isnan(v.detectable) || v.detectable > 1, "wild: %.4f",
	   v.detectable);
	return plan_done();
}
