/*
 * results/stats/blocks.c - two sides measured in turns: the aligned rank test.
 *
 * Within a block (processes that ran next to each other) every way to say which
 * of them were side b is equally likely if the sides are alike, whatever drifts
 * from block to block.  Values are taken relative to their block's median and
 * ranked together (Hodges and Lehmann, 1962); the sum of b's ranks is held
 * against all those ways, counted exactly where blocks are small.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "results/stats/stats.h"

/* Larger blocks are not counted but approximated by a normal distribution. */
enum { EXACT_BLOCK = 40, FEW = 8 };

size_t res_blocks(const bool *b, size_t n, size_t *block)
{
	size_t blocks = 0, from = 0, na = 0, nb = 0;

	for (size_t i = 0; i < n; i++) {
		na += !b[i];
		nb += b[i];
		block[i] = blocks;
		if (na < 2 || nb < 2)
			continue;
		blocks++;
		from = i + 1;
		na = nb = 0;
	}
	/* What is left over is no block of its own. */
	for (size_t i = from; i < n && blocks; i++)
		block[i] = blocks - 1;
	return blocks ? blocks : n > 0;
}

/* ---------------------------------------------------------------- ranks -- */

struct ranked {
	double value;
	size_t at; /* its place in the order of time */
};

static int by_value(const void *p, const void *q)
{
	const struct ranked *a = p, *b = q;

	return (a->value > b->value) - (a->value < b->value);
}

/* Probabilities of sums from, from + 1, ... from + len - 1. */
struct sums {
	double *p;
	size_t from, len;
};

/* A design: who ran when, and scratch of the same length. */
struct design {
	const double *x; /* [n] in order of time, as are all */
	const bool *b;
	size_t n, blocks;
	size_t *block;
	struct ranked *order;
	size_t *rank; /* doubled mid-ranks */
	/* Which ranks each block had when `all` was counted; sorted. */
	size_t *known;
	struct sums all;
};

static double median_of_block(struct ranked *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2].value :
		       v[n / 2 - 1].value / 2 + v[n / 2].value / 2;
}

/* Ranks of the values, b's less `shift`, relative to their block's median. */
static void rank_aligned(struct design *d, double shift)
{
	struct ranked *v = d->order;

	for (size_t i = 0; i < d->n; i++)
		v[i] = (struct ranked){ d->x[i] - (d->b[i] ? shift : 0), i };
	for (size_t i = 0, k; i < d->n; i += k) {
		for (k = 1; i + k < d->n && d->block[i + k] == d->block[i]; k++)
			;
		double m = median_of_block(v + i, k);
		for (size_t j = i; j < i + k; j++)
			v[j].value -= m;
	}
	qsort(v, d->n, sizeof(*v), by_value);
	for (size_t i = 0, k; i < d->n; i += k) {
		/* Equal but for the last bits of the subtraction is equal. */
		double far = v[i].value + 1e-12 * fabs(v[i].value) + 1e-300;
		for (k = 1; i + k < d->n && v[i + k].value <= far; k++)
			;
		for (size_t j = i; j < i + k; j++)
			d->rank[v[j].at] = 2 * i + k + 1;
	}
}

/* -------------------------------------------------------- distributions -- */

/* As below, way by way: what blocks of processes in turns need. */
static struct sums sums_of_few(const size_t *rank, size_t n, size_t m)
{
	struct sums s = { NULL, SIZE_MAX, 0 };
	size_t sum[1 << FEW], ways = 0, most = 0;

	for (unsigned mask = 0; mask < 1u << n; mask++) {
		if ((size_t)__builtin_popcount(mask) != m)
			continue;
		sum[ways] = 0;
		for (size_t i = 0; i < n; i++)
			sum[ways] += mask >> i & 1 ? rank[i] : 0;
		s.from = sum[ways] < s.from ? sum[ways] : s.from;
		most = sum[ways] > most ? sum[ways] : most;
		ways++;
	}
	s.len = most - s.from + 1;
	s.p = xcalloc(s.len, sizeof(*s.p));
	for (size_t i = 0; i < ways; i++)
		s.p[sum[i] - s.from] += 1 / (double)ways;
	return s;
}

/* Of picking m of n ranks, each way alike: p[k][sum] grows rank by rank. */
static struct sums sums_of_block(const size_t *rank, size_t n, size_t m)
{
	size_t len = 1;

	if (n <= FEW)
		return sums_of_few(rank, n, m);
	for (size_t i = 0; i < n; i++)
		len += rank[i];
	double *p = xcalloc((m + 1) * len, sizeof(*p));
	p[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = (i < m ? i + 1 : m); k > 0; k--) {
			/* Of the i + 1 seen, this one is the last to come. */
			double *to = p + k * len, *from = p + (k - 1) * len;
			for (size_t s = len; s-- > rank[i];)
				to[s] += from[s - rank[i]];
		}
	double ways = 0;
	for (size_t s = 0; s < len; s++)
		ways += p[m * len + s];
	for (size_t s = 0; s < len; s++)
		p[s] = p[m * len + s] / ways;
	return (struct sums){ p, 0, len };
}

static void add_block(struct sums *all, const struct sums *block)
{
	size_t len = all->len + block->len - 1;
	double *p = xcalloc(len, sizeof(*p));

	for (size_t j = 0; j < block->len; j++)
		for (size_t i = 0; block->p[j] > 0 && i < all->len; i++)
			p[i + j] += all->p[i] * block->p[j];
	free(all->p);
	*all = (struct sums){ p, all->from + block->from, len };
}

/* One block: its ranks, and how many are b's. */
struct part {
	size_t n, nb;
	const size_t *rank;
};

static size_t next_part(const struct design *d, size_t from, struct part *p)
{
	size_t i = from;

	*p = (struct part){ .rank = d->rank + from };
	for (; i < d->n && d->block[i] == d->block[from]; i++) {
		p->n++;
		p->nb += d->b[i];
	}
	return i;
}

/* P(S <= sum) and P(S >= sum) for the sum of b's doubled ranks. */
struct tails {
	double below, above;
};

static int by_rank(const void *p, const void *q)
{
	size_t a = *(const size_t *)p, b = *(const size_t *)q;

	return (a > b) - (a < b);
}

/* Which ranks there are in each block decides all; so often they are the same. */
static bool is_known(struct design *d)
{
	size_t *now = xcalloc(d->n, sizeof(*now));
	struct part p;

	memcpy(now, d->rank, d->n * sizeof(*now));
	for (size_t i = 0, from = 0; i < d->n; from = i) {
		i = next_part(d, from, &p);
		qsort(now + from, p.n, sizeof(*now), by_rank);
	}
	bool known = d->all.p && !memcmp(now, d->known, d->n * sizeof(*now));
	free(d->known);
	d->known = now;
	return known;
}

static void count_sums(struct design *d)
{
	struct part p;

	free(d->all.p);
	d->all = (struct sums){ xcalloc(1, sizeof(double)), 0, 1 };
	d->all.p[0] = 1;
	for (size_t i = 0; i < d->n;) {
		i = next_part(d, i, &p);
		struct sums block = sums_of_block(p.rank, p.n, p.nb);
		add_block(&d->all, &block);
		free(block.p);
	}
}

static struct tails count_tails(struct design *d, size_t sum)
{
	struct tails t = { 0, 0 };

	if (!is_known(d))
		count_sums(d);
	for (size_t i = 0; i < d->all.len; i++) {
		t.below += d->all.from + i <= sum ? d->all.p[i] : 0;
		t.above += d->all.from + i >= sum ? d->all.p[i] : 0;
	}
	return t;
}

static struct tails approximate_tails(const struct design *d, size_t sum)
{
	double mean = 0, var = 0;
	struct part p;

	for (size_t i = 0; i < d->n;) {
		double m = 0, ss = 0;
		i = next_part(d, i, &p);
		double n = (double)p.n, nb = (double)p.nb;
		for (size_t j = 0; j < p.n; j++)
			m += (double)p.rank[j] / n;
		for (size_t j = 0; j < p.n; j++)
			ss += ((double)p.rank[j] - m) * ((double)p.rank[j] - m);
		mean += nb * m;
		var += p.n > 1 ? nb * (n - nb) / (n * (n - 1)) * ss : 0;
	}
	if (!(var > 0))
		return (struct tails){ 1, 1 };
	/* Doubled ranks: the sum moves in steps of two, half of it is one. */
	double off = (double)sum - mean, scale = sqrt(2 * var);
	return (struct tails){ 0.5 * erfc(-(off + 1) / scale),
			       0.5 * erfc((off - 1) / scale) };
}

static struct tails tails_at(struct design *d, double shift)
{
	size_t sum = 0, largest = 0;
	struct part p;

	rank_aligned(d, shift);
	for (size_t i = 0; i < d->n; i++)
		sum += d->b[i] ? d->rank[i] : 0;
	for (size_t i = 0; i < d->n;) {
		i = next_part(d, i, &p);
		largest = p.n > largest ? p.n : largest;
	}
	return largest > EXACT_BLOCK ? approximate_tails(d, sum) :
				       count_tails(d, sum);
}

/* -------------------------------------------------------------- effects -- */

static void design_init(struct design *d, const double *x, const bool *b,
			size_t n)
{
	*d = (struct design){
		.x = x, .b = b, .n = n,
		.block = xcalloc(n + 1, sizeof(*d->block)),
		.order = xcalloc(n + 1, sizeof(*d->order)),
		.rank = xcalloc(n + 1, sizeof(*d->rank)),
	};
	d->blocks = res_blocks(b, n, d->block);
}

static void design_fini(struct design *d)
{
	free(d->block);
	free(d->order);
	free(d->rank);
	free(d->known);
	free(d->all.p);
}

/* All differences b - a of neighbours; free() them. */
static double *differences(const struct design *d, size_t *n)
{
	double *diff = NULL;
	size_t cap = 0;

	*n = 0;
	for (size_t i = 0; i < d->n; i++)
		for (size_t j = 0; j < d->n; j++) {
			if (d->b[i] || !d->b[j] || d->block[i] != d->block[j])
				continue;
			if (*n == cap)
				diff = xrealloc(diff, (cap = 2 * cap + 64) *
						sizeof(*diff));
			diff[(*n)++] = d->x[j] - d->x[i];
		}
	return diff;
}

/*
 * The shift at which the tail passes `alpha`, between two of which the first is
 * too far out and the second is not.  The tails are steps: halving finds one.
 */
static double bound_of(struct design *d, double out, double in, double alpha)
{
	for (int i = 0; i < 34 && out != in; i++) {
		double mid = out / 2 + in / 2;
		struct tails t = tails_at(d, mid);
		if ((out < in ? t.above : t.below) <= alpha / 2)
			out = mid;
		else
			in = mid;
	}
	return in;
}

static void find_bounds(struct design *d, const double *diff, size_t n,
			double alpha, struct res_interval *r)
{
	double lo = diff[0], hi = diff[0];

	for (size_t i = 1; i < n; i++) {
		lo = fmin(lo, diff[i]);
		hi = fmax(hi, diff[i]);
	}
	double margin = (hi - lo) + fabs(hi) + fabs(lo) + 1e-9;
	if (tails_at(d, lo - margin).above <= alpha / 2)
		r->lo = bound_of(d, lo - margin, r->value, alpha);
	if (tails_at(d, hi + margin).below <= alpha / 2)
		r->hi = bound_of(d, hi + margin, r->value, alpha);
}

double res_turns_p(const double *x, const bool *b, size_t n)
{
	struct design d;

	design_init(&d, x, b, n);
	struct tails t = tails_at(&d, 0);
	design_fini(&d);
	return fmin(1, 2 * fmin(t.below, t.above));
}

struct res_turns res_turns(const double *x, const bool *b, size_t n,
			   double alpha)
{
	struct res_turns r = { .shift = { NAN, NAN, NAN }, .p = NAN };
	struct design d;
	size_t n_diff;

	design_init(&d, x, b, n);
	double *diff = differences(&d, &n_diff);
	if (n_diff) {
		struct tails t = tails_at(&d, 0);
		r.p = fmin(1, 2 * fmin(t.below, t.above));
		r.shift.value = res_median(diff, n_diff).value;
		find_bounds(&d, diff, n_diff, alpha, &r.shift);
		r.blocks = d.blocks;
	}
	free(diff);
	design_fini(&d);
	return r;
}

double res_turns_least_p(const bool *b, size_t n)
{
	double *x = xcalloc(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (b[i] ? 1e6 : 0) + (double)i / (double)(n + 1);
	double p = res_turns_p(x, b, n);
	free(x);
	return p;
}
