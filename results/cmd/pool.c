/*
 * results/cmd/pool.c - what many processes of one program say of a machine.
 */
#include "results/cmd/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- trials -- */

/* Of each four neighbours, two at random are side b. */
static void deal_sides(struct pool *p, bool *b, size_t n)
{
	for (size_t i = 0; i + 3 < n; i += 4) {
		size_t one = random_next(&p->seed) % 4;
		size_t two = random_next(&p->seed) % 3;
		two += two >= one;
		for (size_t k = 0; k < 4; k++)
			b[i + k] = k == one || k == two;
	}
}

/* Where 2 * side processes that ran one after the other begin. */
static size_t pick_window(struct pool *p, size_t n)
{
	return 4 * (random_next(&p->seed) % ((p->n - n) / 4 + 1));
}

static size_t count_false(struct pool *p, size_t n, size_t trials)
{
	bool *b = xcalloc(n, sizeof(*b));
	size_t found = 0;

	for (size_t t = 0; t < trials; t++) {
		size_t from = pick_window(p, n), r;
		deal_sides(p, b, n);
		for (r = 0; r < p->rows; r++)
			if (res_turns_p(p->value[r] + from, b, n) <=
			    p->alpha)
				break;
		found += r < p->rows;
	}
	free(b);
	return found;
}

/* How often b, slower by that share, is proven to differ. */
static double share_found(struct pool *p, const double *r, size_t n,
			  double share, size_t trials)
{
	bool *b = xcalloc(n, sizeof(*b));
	double *x = xcalloc(n, sizeof(*x));
	size_t found = 0;

	for (size_t t = 0; t < trials; t++) {
		size_t from = pick_window(p, n);
		deal_sides(p, b, n);
		for (size_t i = 0; i < n; i++)
			x[i] = r[from + i] + (b[i] ? log1p(share) : 0);
		found += res_turns_p(x, b, n) <= p->alpha;
	}
	free(b);
	free(x);
	return (double)found / (double)trials;
}

/* The least share found 19 times of 20, to a twentieth of itself. */
static double detectable_of(struct pool *p, const double *r, size_t n)
{
	enum { TRIALS = 200 };
	double lo = 1e-4, hi = 1e-4;

	while (hi < 4 && share_found(p, r, n, hi, TRIALS) < 0.95) {
		lo = hi;
		hi *= 1.5;
	}
	if (hi >= 4)
		return NAN;
	while (hi / lo > 1.05) {
		double mid = sqrt(lo * hi);
		if (share_found(p, r, n, mid, TRIALS) < 0.95)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* ----------------------------------------------------- one after another -- */

struct serial {
	size_t trials, found;
	double drift; /* the most that neighbouring groups differ, typically */
};

static int by_value(const void *p, const void *q)
{
	double a = *(const double *)p, b = *(const double *)q;

	return (a > b) - (a < b);
}

/* Whole groups in the order of time: what turns would have cancelled. */
static struct serial try_groups(const struct pool *p, size_t side)
{
	size_t n = 2 * side;
	struct serial s = { 0 };
	bool *b = xcalloc(n, sizeof(*b));
	double *most = xcalloc(p->rows, sizeof(*most));

	for (size_t i = side; i < n; i++)
		b[i] = true;
	for (size_t from = 0; from + n <= p->n; from += n) {
		bool found = false;
		for (size_t r = 0; r < p->rows; r++) {
			struct res_turns t = res_turns(p->value[r] + from,
						       b, n, p->alpha);
			found |= t.p <= p->alpha;
			most[r] = fmax(most[r], fabs(t.shift.value));
		}
		s.trials++;
		s.found += found;
	}
	qsort(most, p->rows, sizeof(*most), by_value);
	s.drift = expm1(res_quantile(most, p->rows, 0.5));
	free(most);
	free(b);
	return s;
}

/* -------------------------------------------------------------- verdict -- */

static double spread_of(const struct pool *p)
{
	double worst = 0;

	for (size_t r = 0; r < p->rows; r++)
		if (p->principal[r])
			worst = fmax(worst, expm1(res_mad(p->value[r],
							  p->n)));
	return worst;
}

static double worst_detectable(struct pool *p, size_t n)
{
	double worst = 0;

	for (size_t r = 0; r < p->rows; r++) {
		if (!p->principal[r])
			continue;
		double d = detectable_of(p, p->value[r], n);
		worst = isnan(d) || isnan(worst) ? NAN : fmax(worst, d);
	}
	return worst > 0 ? worst : NAN;
}

struct pool_verdict pool_judge(struct pool *p, size_t side, size_t trials)
{
	struct serial serial = try_groups(p, side);

	return (struct pool_verdict){
		.false_alarms = count_false(p, 2 * side, trials),
		.serial = serial.trials,
		.serial_false = serial.found,
		.detectable = worst_detectable(p, 2 * side),
		.spread = spread_of(p),
		.drift = serial.drift,
	};
}

/* -------------------------------------------------------------- planted -- */

/* One row's processes of both sides, each in the order of time. */
struct planted_row {
	const struct piece *side[2];
	size_t n[2];
};

/* `m` of n blocks, in their order. */
static void pick_blocks(uint64_t *seed, size_t n, size_t m, size_t *out)
{
	for (size_t i = 0, k = 0; i < n && k < m; i++)
		if (random_next(seed) % (n - i) < m - k)
			out[k++] = i;
}

static void judge_row(const struct planted_row *r, const size_t *block,
		      size_t blocks, double alpha, struct gate_verdict *v)
{
	struct piece *of[2];
	struct measured m[2];

	for (int s = 0; s < 2; s++) {
		of[s] = xcalloc(2 * blocks, sizeof(*of[s]));
		for (size_t i = 0; i < 2 * blocks; i++)
			of[s][i] = r->side[s][2 * block[i / 2] + i % 2];
		of[s][0].limit = GATE_LIMIT;
		measured_init(&m[s], of[s], 2 * blocks);
	}
	gate_judge(&m[0], &m[1], alpha, NAN, v);
	for (int s = 0; s < 2; s++) {
		measured_fini(&m[s]);
		free(of[s]);
	}
}

/* Pieces are sorted by row, side and time. */
static size_t find_rows(const struct pieces *p, struct planted_row *row)
{
	size_t n = 0;

	for (size_t i = 0, k; i < p->n; i += k) {
		struct planted_row r = { .side = { &p->v[i] } };
		for (k = 0; i + k < p->n &&
		     !piece_order(&p->v[i], &p->v[i + k]); k++) {
			int s = strcmp(p->v[i + k].facts->side, "a") != 0;
			if (!r.n[s]++)
				r.side[s] = &p->v[i + k];
		}
		if (r.n[0] && r.n[1])
			row[n++] = r;
	}
	return n;
}

struct planted_verdict pool_judge_planted(const struct pieces *pieces,
					  size_t side, size_t trials,
					  double alpha)
{
	struct planted_row *row = xcalloc(pieces->n, sizeof(*row));
	struct planted_verdict v = { .trials = trials, .change = NAN };
	size_t rows = find_rows(pieces, row), blocks = SIZE_MAX;
	double *loss = xcalloc(trials * rows + 1, sizeof(*loss));
	size_t *block = xcalloc(side, sizeof(*block));
	uint64_t seed = 1;

	for (size_t r = 0; r < rows; r++)
		for (int s = 0; s < 2; s++)
			if (row[r].n[s] / 2 < blocks)
				blocks = row[r].n[s] / 2;
	if (!rows || blocks < side / 2)
		v.trials = 0;
	for (size_t t = 0; t < v.trials; t++) {
		size_t worse = 0, passed = 0;
		pick_blocks(&seed, blocks, side / 2, block);
		for (size_t r = 0; r < rows; r++) {
			struct gate_verdict g;
			judge_row(&row[r], block, side / 2, alpha, &g);
			worse += g.effect.proven && g.loss.lo > 0;
			passed += g.answer == GATE_PASS;
			loss[t * rows + r] = g.loss.value;
		}
		v.found += worse > 0;
		v.passed += passed == rows;
	}
	qsort(loss, v.trials * rows, sizeof(*loss), by_value);
	if (v.trials)
		v.change = res_quantile(loss, v.trials * rows, 0.5);
	free(row);
	free(loss);
	free(block);
	return v;
}
