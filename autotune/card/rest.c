/*
 * autotune/card/rest.c - what only products tell.
 *
 * A parameter that no point tells may be anywhere in its range.  The products'
 * times, in logarithms, are linear in the parameters' logarithms nearly enough;
 * what is known before is a normal distribution whose 95 % are the range.  Both
 * together give the most likely values and how far they may be off: ridge
 * regression, step by step around the values found so far.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card_int.h"

enum { STEPS = 2, SWEEPS = 2, PASSES = 3 };
/* Of a product's time: better nobody measures it. */
#define NOISE_LEAST 0.003
/* Unknown is what changes no product by more. */
#define HARMLESS 0.005

static const enum cost_row rest[] = {
#define REST(row, least, most) COST_##row,
#include "autotune/card/card.def"
};
static const struct range {
	double down, up; /* factors of cost.def's value */
} ranges[] = {
#define REST(row, least, most) { least, most },
#include "autotune/card/card.def"
};
enum { N_REST = ARRAY_SIZE(rest) };

const enum cost_row *card_rest(int *n)
{
	*n = N_REST;
	return rest;
}

static bool is_whole(enum cost_row row)
{
	const char *unit = cost_row_info(row)->unit;

	return !strcmp(unit, "cycle") || !strcmp(unit, "") ||
	       !strcmp(unit, "lane") || !strcmp(unit, "B");
}

/* Shares are numbers without a unit, too. */
double card_round(enum cost_row row, double v)
{
	const double was = cost_row_info(row)->value;

	return is_whole(row) && was >= 1 ? fmax(floor(v + 0.5), 1) : v;
}

static double end_of(int k, bool up)
{
	const double was = cost_row_info(rest[k])->value;

	return card_round(rest[k], was * (up ? ranges[k].up : ranges[k].down));
}

void card_range(enum cost_row row, double *least, double *most)
{
	*least = *most = cost_row_info(row)->value;
	for (int k = 0; k < N_REST; k++)
		if (rest[k] == row) {
			*least = end_of(k, false);
			*most = end_of(k, true);
		}
}

/* ---- the kit's products ---- */

bool card_products_init(struct card_products *p, int most,
			const struct card_fit_how *how, struct err *e)
{
	int n;
	const struct card_gemm *g = card_gemms(&n);

	*p = (struct card_products){ 0 };
	n = most && most < n ? most : n;
	p->v = xcalloc((size_t)n + 1, sizeof(*p->v));
	for (int i = 0; i < n; i++) {
		if (how->stop && *how->stop)
			return err_set(e, ERR_STOPPED, "not at its end");
		if (!card_compile(&g[i], &p->v[i], e))
			return false;
		p->n++;
	}
	return true;
}

void card_products_fini(struct card_products *p)
{
	for (size_t i = 0; i < p->n; i++)
		card_code_fini(&p->v[i]);
	free(p->v);
	*p = (struct card_products){ 0 };
}

/* ---- effects ---- */

bool card_effects(const struct cost_model *m, const struct card_products *p,
		  const struct card_fit_how *how, double *up, double *down,
		  double *base, struct err *e)
{
	enum { MODELS = 2 * N_REST + 1 };
	struct cost_model *all = xcalloc(MODELS, sizeof(*all));
	double *s = xcalloc(MODELS * (p->n + 1), sizeof(*s));

	for (int i = 0; i < MODELS; i++)
		all[i] = *m; /* borrows all but its rows */
	for (int k = 0; k < N_REST; k++) {
		all[1 + 2 * k].row[rest[k]].value = end_of(k, true);
		all[2 + 2 * k].row[rest[k]].value = end_of(k, false);
	}
	bool ok = card_simulate_all(p->v, p->n, all, MODELS, how, s, e);
	for (size_t i = 0; ok && i < p->n; i++) {
		base[i] = log(s[i]);
		for (int k = 0; k < N_REST; k++) {
			size_t at = (size_t)k * p->n + i;

			up[at] = log(s[(1 + 2 * (size_t)k) * p->n + i] / s[i]);
			down[at] = log(s[(2 + 2 * (size_t)k) * p->n + i] /
				       s[i]);
		}
	}
	free(all);
	free(s);
	return ok;
}

/* ---- the fit ---- */

/*
 * Everything is in units of the ranges: x = 1 is the upper end, -1 the lower.
 * `at` is where the parameters are now.
 */
struct solve {
	const struct card_data *d;
	const struct card_products *p;
	const struct card_fit_how *how;
	struct cost_model *m;
	double *up, *down;   /* [N_REST][p->n], from where the search began */
	double *now;	     /* [p->n] logarithms of the times now */
	double x[N_REST], noise;
	double inverse[N_REST][N_REST];
	bool used[N_REST]; /* changes some product enough */
	struct err *e;
};

static bool is_measured(const struct solve *s, size_t i)
{
	return s->d->gemm[i].n > 0 && s->d->gemm[i].value > 0;
}

static double residual_of(const struct solve *s, size_t i)
{
	return log(s->d->gemm[i].value) - s->now[i];
}

static double slope_of(const struct solve *s, int k, size_t i)
{
	const size_t at = (size_t)k * s->p->n + i;

	return (s->up[at] - s->down[at]) / 2;
}

/* Value of a parameter at x, halfway ends in logarithms. */
static double value_at(int k, double x)
{
	const double was = cost_row_info(rest[k])->value;
	const double end = x > 0 ? end_of(k, true) : end_of(k, false);
	const double v = fabs(x) > 1 ? end : was * pow(end / was, fabs(x));

	return card_round(rest[k], v);
}

static double place_of(int k, double value)
{
	const double was = cost_row_info(rest[k])->value;
	const double end = value > was ? end_of(k, true) : end_of(k, false);

	return value == was || end == was ? 0 :
	       (value > was ? 1 : -1) * log(value / was) / log(end / was);
}

static bool simulate_now(struct solve *s)
{
	if (!card_simulate_all(s->p->v, s->p->n, s->m, 1, s->how, s->now, s->e))
		return false;
	for (size_t i = 0; i < s->p->n; i++)
		s->now[i] = log(s->now[i]);
	return true;
}

/* How wrong, in squares: of the products, and of what was known before. */
static double badness(const struct solve *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->p->n; i++)
		if (is_measured(s, i))
			sum += pow(residual_of(s, i) / s->noise, 2);
	for (int k = 0; k < N_REST; k++)
		sum += pow(1.96 * s->x[k], 2) / 4;
	return sum;
}

/* a x = b for a symmetric a > 0; a becomes its inverse. */
static void invert(double a[N_REST][N_REST], double inverse[N_REST][N_REST])
{
	for (int i = 0; i < N_REST; i++)
		for (int k = 0; k < N_REST; k++)
			inverse[i][k] = i == k;
	for (int i = 0; i < N_REST; i++) {
		const double pivot = a[i][i];

		for (int k = 0; k < N_REST; k++) {
			a[i][k] /= pivot;
			inverse[i][k] /= pivot;
		}
		for (int r = 0; r < N_REST; r++) {
			const double f = r == i ? 0 : a[r][i];

			for (int k = 0; k < N_REST; k++) {
				a[r][k] -= f * a[i][k];
				inverse[r][k] -= f * inverse[i][k];
			}
		}
	}
}

/* One step of the regression, from where the parameters are. */
static void take_step(struct solve *s)
{
	double a[N_REST][N_REST] = { { 0 } }, b[N_REST] = { 0 };

	for (int k = 0; k < N_REST; k++) {
		a[k][k] = 0.96; /* a standard deviation is half a range */
		b[k] = -0.96 * s->x[k];
		for (size_t i = 0; i < s->p->n && s->used[k]; i++) {
			const double w = slope_of(s, k, i) /
					 (s->noise * s->noise);

			if (!is_measured(s, i))
				continue;
			b[k] += w * residual_of(s, i);
			for (int r = 0; r < N_REST; r++)
				if (s->used[r])
					a[k][r] += w * slope_of(s, r, i);
		}
	}
	invert(a, s->inverse);
	for (int k = 0; k < N_REST; k++) {
		double dx = 0;

		for (int r = 0; r < N_REST; r++)
			dx += s->inverse[k][r] * b[r];
		if (s->used[k]) {
			s->x[k] = fmin(fmax(s->x[k] + dx, -1), 1);
			s->m->row[rest[k]].value = value_at(k, s->x[k]);
		}
	}
}

/* What is not linear: one parameter after the other, a little up and down. */
static bool try_around(struct solve *s, int k, double by, double *best)
{
	const double was = s->x[k], value = s->m->row[rest[k]].value;
	double *now = xmalloc((s->p->n + 1) * sizeof(*now));

	memcpy(now, s->now, s->p->n * sizeof(*now));
	s->x[k] = fmin(fmax(was + by, -1), 1);
	s->m->row[rest[k]].value = value_at(k, s->x[k]);
	bool ok = s->m->row[rest[k]].value == value || simulate_now(s);
	const double bad = ok ? badness(s) : INFINITY;

	if (bad < *best && s->m->row[rest[k]].value != value) {
		*best = bad;
	} else {
		s->x[k] = was;
		s->m->row[rest[k]].value = value;
		memcpy(s->now, now, s->p->n * sizeof(*now));
	}
	free(now);
	return ok;
}

static bool search_around(struct solve *s)
{
	double best = badness(s);

	for (int sweep = 0; sweep < SWEEPS; sweep++)
		for (int k = 0; k < N_REST; k++)
			for (int way = -1; way <= 1; way += 2)
				if (s->used[k] &&
				    !try_around(s, k, way * (sweep ? .2 : .5),
						&best))
					return false;
	return true;
}

/* Root mean square of the residuals, for what was used to meet them. */
static double rms(const struct solve *s)
{
	double sum = 0;
	int n = 0, used = 0;

	for (size_t i = 0; i < s->p->n; i++)
		if (is_measured(s, i)) {
			sum += pow(residual_of(s, i), 2);
			n++;
		}
	for (int k = 0; k < N_REST; k++)
		used += s->used[k];
	return n ? sqrt(sum / (n > 2 * used ? n - used : (n + 1) / 2)) : 0;
}

static double effect_of(const struct solve *s, int k)
{
	double most = 0;

	for (size_t i = 0; i < s->p->n; i++) {
		const size_t at = (size_t)k * s->p->n + i;

		most = fmax(most, fmax(fabs(s->up[at]), fabs(s->down[at])));
	}
	return most;
}

/* Those that matter are looked for; true: there are more of them than before. */
static bool use_effects(struct solve *s)
{
	bool more = false, any = false;

	for (size_t i = 0; i < s->p->n; i++)
		any |= is_measured(s, i);
	for (int k = 0; k < N_REST && any; k++)
		if (!s->used[k] && effect_of(s, k) > HARMLESS)
			s->used[k] = more = true;
	return more;
}

static bool search(struct solve *s)
{
	int n = 0;

	for (size_t i = 0; i < s->p->n; i++)
		n += is_measured(s, i);
	for (int i = 0; i < STEPS && n; i++) {
		s->noise = fmax(NOISE_LEAST, rms(s) / 2);
		take_step(s);
		if (!simulate_now(s))
			return false;
	}
	s->noise = fmax(NOISE_LEAST, rms(s) / 2);
	if (n && !search_around(s))
		return false;
	s->noise = fmax(NOISE_LEAST, rms(s));
	return true;
}

static void keep_rest(const struct solve *s, struct card_fit *f)
{
	double a[N_REST][N_REST] = { { 0 } }, inverse[N_REST][N_REST];

	for (int k = 0; k < N_REST; k++)
		for (int r = 0; r < N_REST; r++) {
			a[k][r] = k == r ? 0.96 : 0;
			for (size_t i = 0; i < s->p->n; i++)
				if (s->used[k] && s->used[r] &&
				    is_measured(s, i))
					a[k][r] += slope_of(s, k, i) *
						   slope_of(s, r, i) /
						   (s->noise * s->noise);
		}
	invert(a, inverse);
	for (int k = 0; k < N_REST; k++) {
		struct card_fit_row *row = &f->row[rest[k]];
		const double x = s->x[k], far = 1.96 * sqrt(inverse[k][k]);

		row->state = s->used[k] ? CARD_FOUND : CARD_UNKNOWN;
		row->value = s->m->row[rest[k]].value;
		row->effect = effect_of(s, k);
		row->lo = s->used[k] ? value_at(k, fmax(x - far, -1)) :
				       end_of(k, false);
		row->hi = s->used[k] ? value_at(k, fmin(x + far, 1)) :
				       end_of(k, true);
	}
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_residual(const struct solve *s)
{
	double v[CARD_GEMMS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->p->n; i++)
		if (is_measured(s, i))
			v[n++] = fabs(expm1(residual_of(s, i)));
	qsort(v, n, sizeof(*v), by_size);
	return n ? v[n / 2] : NAN;
}

bool card_fit_rest(struct card_fit *f, const struct card_data *d,
		   const struct card_products *p,
		   const struct card_fit_how *how, struct err *e)
{
	struct solve s = { .d = d, .p = p, .how = how, .m = &f->costs, .e = e };

	s.up = xcalloc(N_REST * (p->n + 1), sizeof(*s.up));
	s.down = xcalloc(N_REST * (p->n + 1), sizeof(*s.down));
	s.now = xcalloc(p->n + 1, sizeof(*s.now));
	for (int k = 0; k < N_REST; k++)
		s.x[k] = place_of(k, f->costs.row[rest[k]].value);
	bool ok = true, more = true;

	/* What a parameter changes depends on where the others are. */
	for (int pass = 0; ok && more && pass < PASSES; pass++) {
		ok = card_effects(s.m, p, how, s.up, s.down, s.now, e);
		more = ok && use_effects(&s);
		ok = ok && (!more || search(&s));
	}
	if (ok) {
		keep_rest(&s, f);
		f->residual = median_residual(&s);
		for (size_t i = 0; i < p->n; i++)
			f->gemm[i] = exp(s.now[i]);
	}
	free(s.up);
	free(s.down);
	free(s.now);
	return ok;
}
