/*
 * autotune/card/design.c - which products tell most about what only products
 * tell.
 *
 * Of each size the best configurations by the tuner's estimate, one or two of a
 * tile, are compiled, and simulated with each parameter of card_rest() at both
 * ends of its range.  Taken is, one after the other, the product whose
 * measurement narrows most what those before it left open (D-optimal: it raises
 * the determinant of the information most); but of each size the first two that
 * the estimate has, between which a fit has to decide, go before all others.
 * Where these are enough nothing has to be simulated.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card_int.h"
#include "base/vec.h"

enum { OF_A_SIZE = 12, OF_A_TILE = 2, SEEDS = 2, SPILLS_MOST = 0 };
/* How well a product is measured, as a share of its time. */
#define NOISE 0.005

static const struct size {
	const char *dtype;
	uint32_t m, n, k;
} sizes[] = {
	{ "bf16", 256, 256, 256 },    { "bf16", 512, 512, 512 },
	{ "bf16", 1024, 1024, 1024 }, { "bf16", 2048, 2048, 2048 },
	{ "bf16", 4096, 4096, 4096 }, { "bf16", 128, 3072, 1024 },
	{ "bf16", 2048, 512, 4096 },  { "f16", 1024, 1024, 1024 },
	{ "f16", 512, 2048, 2048 },   { "i8", 1024, 1024, 1024 },
	{ "f32", 512, 512, 512 },     { "f32", 1024, 1024, 1024 },
};

struct choice {
	struct card_gemm gemm;
	char config[TUNE_TEXT];
	bool seed, taken;
};
struct design {
	struct choice *choice;
	struct card_code *code;
	size_t n, cap, cap_code;
	/* [n][rest] of the logarithm of the time, / NOISE; NULL: not asked. */
	double *slope;
};

/* ---- candidates ---- */

static bool is_same_tile(const struct gemm_config *a,
			 const struct gemm_config *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k &&
	       a->waves_m == b->waves_m && a->waves_n == b->waves_n;
}

static int count_tile(const struct design *d, size_t from,
		      const struct gemm_config *c)
{
	int n = 0;

	for (size_t i = from; i < d->n; i++)
		n += is_same_tile(&d->code[i].config, c);
	return n;
}

static bool is_usable(const struct card_code *c)
{
	const struct cc_stats *s = &c->code.object[0].stats;

	return s->spills <= SPILLS_MOST &&
	       tune_groups_at_once(TUNE_CHIP, &c->config, (int)s->vgprs,
				   s->lds_bytes);
}

static void add_candidate(struct design *d, const struct size *s,
			  const struct gemm_config *config, bool seed)
{
	struct choice x = { .gemm = { s->dtype, s->m, s->n, s->k, NULL },
			    .seed = seed };
	struct card_code code;

	gemm_config_name(config, x.config, sizeof(x.config));
	x.gemm.config = x.config;
	/* One that does not compile is none. */
	if (!card_compile(&x.gemm, &code, NULL) || !is_usable(&code)) {
		card_code_fini(&code);
		return;
	}
	VEC_GROW(d->choice, d->n, 1, d->cap);
	VEC_GROW(d->code, d->n, 1, d->cap_code);
	d->choice[d->n] = x;
	d->code[d->n++] = code;
}

/* The best `most` of a size. */
static bool add_size(struct design *d, const struct size *s, size_t most,
		     const struct cost_model *m, const _Atomic int *stop,
		     struct err *e)
{
	struct tune_problem p = { .m = s->m, .n = s->n, .k = s->k, .batch = 1 };
	const size_t from = d->n;
	struct tune_space space;

	if (!tune_op_parse(s->dtype, NULL, NULL, &p.op, e))
		return false;
	tune_space_init(&space, &p, m);
	for (size_t i = 0; i < space.legal && d->n - from < most; i++)
		if (!(stop && *stop) &&
		    count_tile(d, from, &space.v[i].config) < OF_A_TILE)
			add_candidate(d, s, &space.v[i].config,
				      d->n - from < SEEDS);
	tune_space_fini(&space);
	return !(stop && *stop) || err_set(e, ERR_STOPPED, "not at its end");
}

/* All candidates, or the seeds where no more are asked for. */
static bool add_sizes(struct design *d, size_t how_many,
		      const struct cost_model *m, const _Atomic int *stop,
		      struct err *e)
{
	const bool seeds = how_many <= SEEDS * ARRAY_SIZE(sizes);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (seeds && d->n >= how_many)
			break;
		if (!add_size(d, &sizes[i], seeds ? SEEDS : OF_A_SIZE, m, stop,
			      e))
			return false;
	}
	/* Configurations are in the vector, which has stopped growing. */
	for (size_t i = 0; i < d->n; i++)
		d->choice[i].gemm.config = d->choice[i].config;
	return true;
}

/* ---- information ---- */

/* log det of a symmetric positive matrix of order n, by Cholesky; a is lost. */
static double log_det(double *a, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		for (int k = 0; k <= i; k++) {
			double v = a[i * n + k];

			for (int j = 0; j < k; j++)
				v -= a[i * n + j] * a[k * n + j];
			if (i == k) {
				a[i * n + i] = sqrt(fmax(v, 1e-12));
				sum += 2 * log(a[i * n + i]);
			} else {
				a[i * n + k] = v / a[k * n + k];
			}
		}
	return sum;
}

static void add_information(double *a, const double *slope, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			a[i * n + k] += slope[i] * slope[k];
}

static size_t most_telling(const struct design *d, const double *known, int n)
{
	const size_t bytes = (size_t)(n * n) * sizeof(double);
	double *a = xmalloc(bytes), most = -INFINITY;
	size_t best = d->n;

	for (size_t i = 0; i < d->n; i++) {
		if (d->choice[i].taken)
			continue;
		memcpy(a, known, bytes);
		add_information(a, &d->slope[i * (size_t)n], n);
		const double gain = log_det(a, n);

		if (gain > most) {
			most = gain;
			best = i;
		}
	}
	free(a);
	return best;
}

/* Those of each size that a fit has to decide between go first. */
static size_t next_choice(const struct design *d, const double *known, int n)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->choice[i].seed && !d->choice[i].taken)
			return i;
	return most_telling(d, known, n);
}

static void print_choices(const struct design *d, FILE *out)
{
	fprintf(out,
		"/*\n * The products of the kit, as `t0-sim design` chose "
		"them.\n *\n * GEMM(types, m, n, k, configuration)\n */\n");
	for (size_t i = 0; i < d->n; i++) {
		const struct choice *x = &d->choice[i];

		if (x->taken)
			fprintf(out, "GEMM(\"%s\", %u, %u, %u, \"%s\")\n",
				x->gemm.dtype, x->gemm.m, x->gemm.n, x->gemm.k,
				x->config);
	}
}

static void choose(struct design *d, int how_many, int n)
{
	double *known = xcalloc((size_t)(n * n), sizeof(*known));

	for (int i = 0; i < n; i++)
		known[i * n + i] = 1;
	for (int k = 0; k < how_many; k++) {
		const size_t i = next_choice(d, known, n);

		if (i == d->n)
			break;
		d->choice[i].taken = true;
		if (d->slope)
			add_information(known, &d->slope[i * (size_t)n], n);
	}
	free(known);
}

/* Is anything chosen that is no seed? */
static bool needs_slopes(const struct design *d, int how_many)
{
	int seeds = 0;

	for (size_t i = 0; i < d->n; i++)
		seeds += d->choice[i].seed;
	return how_many > seeds && (size_t)seeds < d->n;
}

static bool find_slopes(struct design *d, const struct cost_model *m, int n,
			const struct card_fit_how *how, struct err *e)
{
	const size_t cells = d->n * (size_t)n + 1;
	double *up = xcalloc(cells, sizeof(*up));
	double *down = xcalloc(cells, sizeof(*down));
	double *base = xcalloc(d->n + 1, sizeof(*base));
	const struct card_products p = { d->code, d->n };
	bool ok = card_effects(m, &p, how, up, down, base, e);

	d->slope = xcalloc(cells, sizeof(*d->slope));
	for (size_t i = 0; ok && i < d->n; i++)
		for (int k = 0; k < n; k++)
			d->slope[i * (size_t)n + (size_t)k] =
				(up[(size_t)k * d->n + i] -
				 down[(size_t)k * d->n + i]) /
				2 / NOISE;
	free(up);
	free(down);
	free(base);
	return ok;
}

bool card_design(FILE *out, int how_many, const struct card_fit_how *how,
		 struct err *e)
{
	struct design d = { 0 };
	struct cost_model m;
	int n;

	card_rest(&n);
	cost_init(&m, TUNE_CHIP);
	bool ok =
		add_sizes(&d, (size_t)how_many, &m, how->stop, e) &&
		(!needs_slopes(&d, how_many) || find_slopes(&d, &m, n, how, e));
	if (ok) {
		choose(&d, how_many, n);
		print_choices(&d, out);
	}
	for (size_t i = 0; i < d.n; i++)
		card_code_fini(&d.code[i]);
	free(d.choice);
	free(d.code);
	free(d.slope);
	cost_fini(&m);
	return ok;
}
