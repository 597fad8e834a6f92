/*
 * results/stats/blocks.c against brute force: every way to deal the sides
 * within the blocks, and Mann-Whitney where there is one block.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "results/stats/stats.h"
#include "tests/tap.h"

/* splitmix64: published by S. Vigna, enough for a test. */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static void sides_of(const char *text, bool *b)
{
	for (size_t i = 0; text[i]; i++)
		b[i] = text[i] == 'B';
}

static void blocks_are(const char *sides, const char *want)
{
	bool b[64];
	size_t block[64], n = strlen(sides);

	sides_of(sides, b);
	size_t blocks = res_blocks(b, n, block);
	char got[64] = "";
	for (size_t i = 0; i < n; i++)
		got[i] = (char)('0' + block[i]);
	is_str(got, want, "blocks of %s", sides);
	is_u64(blocks, (uint64_t)(want[n - 1] - '0') + 1, "and their number");
}

static void test_blocks(void)
{
	blocks_are("ABBAABBA", "00001111");
	blocks_are("ABABBA", "000000");
	blocks_are("AAABBB", "000000");
	blocks_are("ABBAABBAAB", "0000111111");
	blocks_are("AAAABBBBAABB", "000000111111");
	blocks_are("AABBABABBBAA", "000011112222");
}

/* ---- by brute force: all values of one bit mask per process ---- */

static double median4(const double *v, size_t n)
{
	double *s = res_sorted(v, n);
	double m = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;

	free(s);
	return m;
}

static double brute_p(const double *x, const bool *b, const size_t *block,
		      size_t n)
{
	double al[16], rank[16], sum = 0;
	size_t want[16] = { 0 }, ways = 0, below = 0, above = 0;

	for (size_t i = 0; i < n; i++) {
		double v[16];
		size_t k = 0;
		for (size_t j = 0; j < n; j++)
			if (block[j] == block[i])
				v[k++] = x[j];
		al[i] = x[i] - median4(v, k);
		want[block[i]] += b[i];
	}
	for (size_t i = 0; i < n; i++) {
		rank[i] = 0.5;
		for (size_t j = 0; j < n; j++)
			rank[i] += fabs(al[j] - al[i]) < 1e-9 ? 0.5 :
				   al[j] < al[i]	    ? 1 : 0;
		sum += b[i] ? rank[i] : 0;
	}
	for (unsigned mask = 0; mask < 1u << n; mask++) {
		size_t have[16] = { 0 };
		double s = 0;
		for (size_t i = 0; i < n; i++)
			if (mask >> i & 1) {
				have[block[i]]++;
				s += rank[i];
			}
		if (memcmp(have, want, sizeof(have)))
			continue;
		ways++;
		below += s <= sum + 1e-9;
		above += s >= sum - 1e-9;
	}
	double tail = (double)(below < above ? below : above);
	return fmin(1, 2 * tail / (double)ways);
}

static void test_exact(void)
{
	static const char *const sides[] = { "ABBAABBA", "ABBAABBAABBA",
					     "AAABBB", "AABBABABBBAA",
					     "BBBBBAAAAAAAA" };
	uint64_t state = 3;

	for (size_t s = 0; s < ARRAY_SIZE(sides); s++)
		for (int trial = 0; trial < 6; trial++) {
			double x[16];
			bool b[16];
			size_t block[16], n = strlen(sides[s]);
			sides_of(sides[s], b);
			res_blocks(b, n, block);
			for (size_t i = 0; i < n; i++) /* every third: ties */
				x[i] = trial % 3 ? 10 * uniform(&state) :
				       floor(6 * uniform(&state));
			double got = res_turns_p(x, b, n);
			double want = brute_p(x, b, block, n);
			ok(fabs(got - want) < 1e-12, "%s, trial %d: p %.6f is "
			   "%.6f", sides[s], trial, got, want);
		}
}

/* One block: the tests of rank.c, which R and scipy have confirmed. */
static void test_one_block(void)
{
	uint64_t state = 9;

	for (int trial = 0; trial < 5; trial++) {
		double x[20];
		bool b[20];
		for (size_t i = 0; i < 20; i++) {
			b[i] = i >= 10;
			x[i] = uniform(&state) + (b[i] ? 0.3 * trial : 0);
		}
		struct res_turns t = res_turns(x, b, 20, 0.05);
		struct res_rank_test u = res_mann_whitney(x, 10, x + 10, 10);
		struct res_interval s = res_shift(x, 10, x + 10, 10);
		ok(fabs(t.p - u.p) < 1e-12, "one block: p is Mann-Whitney's");
		ok(fabs(t.shift.value - s.value) < 1e-12, "and the shift");
		ok(fabs(t.shift.lo - s.lo) < 1e-9 &&
		   fabs(t.shift.hi - s.hi) < 1e-9,
		   "and its interval: %g..%g is %g..%g", t.shift.lo,
		   t.shift.hi, s.lo, s.hi);
	}
}

/* Larger than what is counted: as Mann-Whitney's own approximation. */
static void test_large(void)
{
	double x[120];
	bool b[120];
	uint64_t state = 11;

	for (size_t i = 0; i < 120; i++) {
		b[i] = i >= 60;
		x[i] = uniform(&state) + (b[i] ? 0.15 : 0);
	}
	double p = res_turns_p(x, b, 120);
	double u = res_mann_whitney(x, 60, x + 60, 60).p;
	ok(fabs(p / u - 1) < 1e-6, "60 and 60: p %g is %g", p, u);
}

/* A drift ten times as large as the effect, and what it hides. */
static void test_drift(void)
{
	double x[40], a[20], c[20];
	bool b[40];
	uint64_t state = 5;
	size_t na = 0, nb = 0;

	for (size_t i = 0; i < 40; i++) {
		b[i] = i % 4 == 1 || i % 4 == 2;
		x[i] = (double)i * 0.05 + 0.1 * uniform(&state) +
		       (b[i] ? 0.2 : 0);
		*(b[i] ? &c[nb++] : &a[na++]) = x[i];
	}
	struct res_turns t = res_turns(x, b, 40, 0.01);
	ok(res_mann_whitney(a, na, c, nb).p > 0.2,
	   "without blocks the drift hides the shift");
	ok(t.p < 1e-4, "in turns it is proven: p %g", t.p);
	ok(t.shift.lo > 0.1 && t.shift.hi < 0.3,
	   "and measured: %.3f [%.3f, %.3f] holds 0.2", t.shift.value,
	   t.shift.lo, t.shift.hi);
	is_u64(t.blocks, 10, "ten blocks");
}

static void test_least(void)
{
	bool b[12];

	sides_of("ABBAABBA", b);
	ok(fabs(res_turns_least_p(b, 8) - 2.0 / 36) < 1e-12,
	   "two blocks of four: 2 of 36");
	sides_of("AAAAAABBBBBB", b);
	ok(fabs(res_turns_least_p(b, 12) - 2.0 / 924) < 1e-12,
	   "six after six: 2 of 924");
	sides_of("AAAA", b);
	struct res_turns t = res_turns((double[]){ 1, 2, 3, 4 }, b, 4, 0.05);
	ok(isnan(t.p) && isnan(t.shift.value), "one side alone says nothing");
	sides_of("ABBA", b);
	t = res_turns((double[]){ 1, 2, 3, 4 }, b, 4, 0.05);
	ok(isnan(t.shift.lo) && isnan(t.shift.hi),
	   "four processes have no interval");
}

int main(void)
{
	test_blocks();
	test_exact();
	test_one_block();
	test_large();
	test_drift();
	test_least();
	return plan_done();
}
