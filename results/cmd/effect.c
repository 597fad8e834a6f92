/*
 * results/cmd/effect.c - what the processes of two sides say about each other.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------- measured -- */

/* A simulation says the same each time: its interval is what it resolves. */
static bool is_exact(const struct piece *p)
{
	if (!strcmp(p->origin, "simulated"))
		return p->n >= 1;
	return p->n >= 1 && p->lo == p->value && p->hi == p->value &&
	       p->n_samples < RES_MIN_SAMPLES;
}

static const char *worse_verdict(const char *a, const char *b)
{
	return a && b ? (strcmp(a, "pass") ? a : b) : NULL;
}

static void add_process(struct measured *m, double value, int64_t when)
{
	size_t i = m->n++;

	for (; i && m->when[i - 1] > when; i--) {
		m->when[i] = m->when[i - 1];
		m->value[i] = m->value[i - 1];
	}
	m->when[i] = when;
	m->value[i] = value;
}

static void add_piece(struct measured *m, const struct piece *p)
{
	bool many = p->baseline_uuid && p->n_processes > 1;

	for (size_t i = 0; many && i < p->n_samples; i++)
		add_process(m, p->samples[i], p->facts->start_ns);
	if (!many)
		add_process(m, p->value, p->facts->start_ns);
}

void measured_init(struct measured *m, const struct piece *v, size_t n)
{
	size_t most = 1;

	*m = (struct measured){ .exact = n > 0 };
	for (size_t i = 0; i < n; i++)
		most += v[i].n_samples + 1;
	m->value = xcalloc(most, sizeof(*m->value));
	m->when = xcalloc(most, sizeof(*m->when));
	for (size_t i = 0; i < n; i++) {
		add_piece(m, &v[i]);
		m->exact = m->exact && is_exact(&v[i]) &&
			   v[i].value == v[0].value;
		m->correct = i ? worse_verdict(m->correct, v[i].correct) :
				 v[i].correct;
		m->coherent = i ? worse_verdict(m->coherent, v[i].coherent) :
				  v[i].coherent;
	}
	m->first = n ? v : NULL;
	m->median = res_median(m->value, m->n);
	if (m->exact)
		m->median.lo = m->median.hi = m->median.value;
}

void measured_fini(struct measured *m)
{
	free(m->value);
	free(m->when);
	*m = (struct measured){ 0 };
}

/* ------------------------------------------------------------- turns -- */

/* Both sides in the order of time, in logarithms where there are any. */
struct turns {
	double *x;
	bool *b;
	size_t n;
	double scale; /* 0: logarithms; else a shift times this is a share */
};

static void turns_init(struct turns *t, size_t n)
{
	*t = (struct turns){ xcalloc(n + 1, sizeof(*t->x)),
			     xcalloc(n + 1, sizeof(*t->b)), n, 0 };
}

/* `median` of the side that shares are of, where there are no logarithms. */
static void scale_turns(struct turns *t, double median)
{
	bool above = true;

	for (size_t i = 0; i < t->n; i++)
		above = above && t->x[i] > 0;
	for (size_t i = 0; above && i < t->n; i++)
		t->x[i] = log(t->x[i]);
	t->scale = above ? 0 : median != 0 ? 1 / fabs(median) : INFINITY;
}

static void merge_sides(struct turns *t, const struct measured *a,
			const struct measured *b)
{
	size_t i = 0, j = 0;

	turns_init(t, a->n + b->n);
	for (size_t k = 0; k < t->n; k++) {
		t->b[k] = i >= a->n || (j < b->n && b->when[j] < a->when[i]);
		t->x[k] = t->b[k] ? b->value[j++] : a->value[i++];
	}
	scale_turns(t, a->median.value);
}

static void turns_fini(struct turns *t)
{
	free(t->x);
	free(t->b);
}

static double share_of(const struct turns *t, double shift)
{
	if (!t->scale)
		return expm1(shift);
	return shift == 0 ? 0 : shift * t->scale;
}

/* Do at most a few processes of one side follow each other? */
static bool ran_in_turns(const struct turns *t)
{
	size_t *block = xcalloc(t->n + 1, sizeof(*block));
	size_t blocks = res_blocks(t->b, t->n, block);

	free(block);
	return blocks > 1 && t->n <= 8 * blocks;
}

/* ------------------------------------------------------------ effect -- */

/* What a normal variable exceeds with probability `p` < 1/2. */
static double upper_normal(double p)
{
	double lo = 0, hi = 40;

	for (int i = 0; i < 60; i++) {
		double z = (lo + hi) / 2;
		if (erfc(z / M_SQRT2) / 2 > p)
			lo = z;
		else
			hi = z;
	}
	return lo;
}

/* An interval of half width `half` at alpha: what is found 19 times of 20. */
static double detectable_of(double half, double width_alpha, double alpha)
{
	double sigma = half / upper_normal(width_alpha / 2);

	return expm1(sigma * (upper_normal(alpha / 2) + upper_normal(0.05)));
}

static struct effect exact_effect(double a, double b)
{
	double c = a == b ? 0 :
		   a != 0 ? (b - a) / fabs(a) : copysign(INFINITY, b - a);

	return (struct effect){ .change = { c, c, c }, .p = c != 0 ? 0 : 1,
				.exact = true, .tested = true,
				.proven = c != 0, .turns = true,
				.detectable = 0 };
}

static void test_turns(struct effect *f, const struct turns *t, double alpha,
		       double drift)
{
	struct res_turns r = res_turns(t->x, t->b, t->n, alpha);
	double wide = f->turns || isnan(drift) || t->scale ? 0 : log1p(drift);

	f->p = r.p;
	f->detectable = detectable_of((r.shift.hi - r.shift.lo) / 2, alpha,
				      alpha);
	f->change = (struct res_interval){ share_of(t, r.shift.value),
					   share_of(t, r.shift.lo - wide),
					   share_of(t, r.shift.hi + wide) };
	f->proven = f->p <= alpha && (f->change.lo > 0 || f->change.hi < 0);
}

struct effect effect_of(const struct measured *a, const struct measured *b,
			double alpha, double drift)
{
	struct effect f = exact_effect(a->median.value, b->median.value);
	struct turns t;

	if (a->exact && b->exact)
		return f;
	f = (struct effect){ .change = { f.change.value, NAN, NAN }, .p = NAN,
			     .na = a->n, .nb = b->n, .detectable = NAN };
	merge_sides(&t, a, b);
	f.turns = ran_in_turns(&t);
	f.tested = a->n > 1 && b->n > 1 &&
		   res_turns_least_p(t.b, t.n) <= alpha;
	if (f.tested)
		test_turns(&f, &t, alpha, drift);
	turns_fini(&t);
	return f;
}

size_t effect_processes(const struct effect *f, double share)
{
	double n = (double)(f->na < f->nb ? f->na : f->nb);
	double times = f->detectable / share;

	if (!isfinite(times) || !(share > 0))
		return 0;
	/* In turns, so always in fours. */
	return 4 * (size_t)ceil(n * fmax(1, times * times) / 4);
}

double measured_detectable(const struct measured *m, double alpha)
{
	const double wide = 0.2; /* a level that few processes reach */
	struct turns t;

	if (m->exact || m->n < RES_MIN_SAMPLES)
		return m->exact ? 0 : NAN;
	/* Its own processes as A B B A: half as many as two such sides. */
	turns_init(&t, m->n);
	for (size_t i = 0; i < m->n; i++) {
		t.x[i] = m->value[i];
		t.b[i] = (i + 1) / 2 % 2;
	}
	scale_turns(&t, m->median.value);
	struct res_turns r = res_turns(t.x, t.b, t.n, wide);
	double half = (r.shift.hi - r.shift.lo) / 2 * (t.scale ? t.scale : 1);
	turns_fini(&t);
	return detectable_of(half / M_SQRT2, wide, alpha);
}
