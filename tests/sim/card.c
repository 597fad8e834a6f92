/*
 * The kit for a first day with a card, rehearsed: a card whose parameters nobody
 * knows is measured by simulating the kit's list, with the noise of measuring,
 * and the fit has to find them.
 *
 * A few parameters and products here; T0_SLOW=1 does it with 19 cards and all of
 * them (and t0-soft run is the 20th: tests/sim/card.t).
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card.h"
#include "tests/tap.h"

/* What has to be found, and how far it may be from what cost.def says. */
static const struct hidden {
	enum cost_row row;
	double least, most; /* factors */
} hidden[] = {
	{ COST_CLOCK, .85, 1.05 },	   { COST_CLOCK_SHORT, .95, 1.1 },
	{ COST_CLOCK_POWER, .7, 1.4 },	   { COST_LAUNCH, .6, 2 },
	{ COST_VALU_LATENCY, .8, 1.6 },	   { COST_VALU_ISSUE, 1, 2 },
	{ COST_TRANS_LATENCY, .7, 1.5 },   { COST_TRANS_ISSUE, .75, 2 },
	{ COST_MUL_LATENCY, .75, 1.5 },	   { COST_MUL_ISSUE, .5, 2 },
	{ COST_DOUBLE_LATENCY, .8, 1.3 },  { COST_DOUBLE_ISSUE, .5, 1.1 },
	{ COST_DOT4_ISSUE, .5, 2 },	   { COST_VOPD_ISSUE, 1, 2 },
	{ COST_SALU_LATENCY, 1, 2.5 },	   { COST_SALU_ISSUE, 1, 2 },
	{ COST_SMEM_LATENCY, .6, 2 },	   { COST_SMEM_ISSUE, 1, 3 },
	{ COST_BRANCH_TAKEN, .7, 1.4 },	   { COST_BRANCH_LATENCY, 1, 2 },
	{ COST_LDS_LOAD_LATENCY, .8, 1.6 }, { COST_LDS_LOAD_ISSUE, 1, 2 },
	{ COST_LDS_STORE_LATENCY, .8, 1.6 }, { COST_LDS_PERMUTE_ISSUE, .67, 2 },
	{ COST_LDS_PHASE64, .5, 1 },	   { COST_LDS_PHASE128, .5, 1 },
	{ COST_LDS_CONFLICT, 1, 3 },	   { COST_BARRIER, .6, 2 },
	{ COST_BARRIER_WAVE, .5, 3 },	   { COST_L0_LAT, .7, 1.4 },
	{ COST_L1_LAT, .9, 1.3 },	   { COST_L2_LAT, .85, 1.4 },
	{ COST_IC_LAT, .6, 1.8 },	   { COST_DRAM_LAT, .7, 1.6 },
	{ COST_L0_BW, .5, 1.1 },		   { COST_L2_BW, .6, 1.3 },
	{ COST_MALL_BW, .7, 1.6 },	   { COST_DRAM_BW, .85, 1.05 },
	{ COST_WMMA_LATENCY, .9, 1.3 },	   { COST_WMMA_ISSUE, .5, 1.1 },
	{ COST_VMEM_LOAD_ISSUE, 1, 3 },	   { COST_VMEM_STORE_LATENCY, .8, 1.4 },
};

static double between(uint64_t *state, double a, double b)
{
	return a + (b - a) * (double)(random_next(state) >> 11) * 0x1p-53;
}

/* Normal, mean 0 and deviation 1. */
static double normal(uint64_t *state)
{
	return sqrt(-2 * log(between(state, 1e-12, 1))) *
	       cos(2 * M_PI * between(state, 0, 1));
}

/* Widths are powers of two. */
static double draw(uint64_t *state, const struct hidden *h)
{
	const double was = cost_row_info(h->row)->value;
	const double v = was * between(state, h->least, h->most);

	if (h->row == COST_LDS_PHASE64 || h->row == COST_LDS_PHASE128)
		return v < 0.75 * was ? was / 2 : was;
	return card_round(h->row, v);
}

/* At least so much more than the other. */
static void after(struct cost_model *m, enum cost_row row,
		  enum cost_row other, double by)
{
	m->row[row].value = fmax(m->row[row].value, m->row[other].value + by);
}

static void draw_card(struct cost_model *m, uint64_t *state)
{
	int n;
	const enum cost_row *rest = card_rest(&n);

	cost_init(m, "gfx1100");
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		m->row[hidden[i].row].value = draw(state, &hidden[i]);
	for (int i = 0; i < n; i++) {
		double least, most;

		card_range(rest[i], &least, &most);
		m->row[rest[i]].value =
			card_round(rest[i], between(state, least, most));
	}
	/* Results are later than the next instruction, as on every chip. */
	after(m, COST_MUL_LATENCY, COST_MUL_ISSUE, 2);
	after(m, COST_TRANS_LATENCY, COST_TRANS_ISSUE, 2);
	after(m, COST_DOUBLE_LATENCY, COST_DOUBLE_ISSUE, 2);
	after(m, COST_WMMA_LATENCY, COST_WMMA_ISSUE, 0);
	/* Nothing of a level is nearer than the one before. */
	after(m, COST_L1_LAT, COST_L0_LAT, 10);
	after(m, COST_L2_LAT, COST_L1_LAT, 40);
	after(m, COST_CLOCK_SHORT, COST_CLOCK, 400);
	/* L2 is wider than what lies behind it. */
	m->row[COST_MALL_BW].value = fmin(m->row[COST_MALL_BW].value,
					  .9e6 * cost_value(m, COST_L2_BW) *
					  cost_value(m, COST_CLOCK));
}

static void add_noise(struct card_value *v, double share, uint64_t *state)
{
	if (v->n <= 0)
		return;
	v->value *= 1 + share * normal(state);
	v->lo = v->value * (1 - 2 * share);
	v->hi = v->value * (1 + 2 * share);
	v->n = 11;
}

/* The kit's list, simulated on the hidden card. */
static bool measure(const struct cost_model *m, int products,
		    struct card_data *d, uint64_t *state, struct err *e)
{
	const struct card_gemm *g = card_gemms(&(int){ 0 });

	if (!card_observe(m, NULL, d, NULL, e) || !card_observe_launch(m, d, e))
		return false;
	card_observe_clock(m, d);
	for (int i = 0; i < CARD_POINTS_MAX; i++)
		add_noise(&d->point[i], .003, state);
	/* A clock is the middle of eight readings of a quarter millisecond. */
	for (int i = 0; i < d->n_loads; i++)
		add_noise(&d->load[i].clock, .001, state);
	for (int i = 0; i < products; i++) {
		struct card_code code;
		double s = 0;
		bool good = card_compile(&g[i], &code, e) &&
			    card_simulate(&code, m, &s, e);

		d->gemm[i] = (struct card_value){ s, s, s, 0, 1 };
		snprintf(d->object[i], sizeof(d->object[i]), "%s", code.object);
		add_noise(&d->gemm[i], .003, state);
		card_code_fini(&code);
		if (!good)
			return false;
	}
	return true;
}

static void check_found(const struct card_fit *f, const struct cost_model *m,
			const struct card_data *d)
{
	int missed = 0, asked = 0;
	struct card_list l;

	card_list_init(&l);
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		const enum cost_row row = hidden[i].row;
		const double want = cost_value(m, row);
		const double got = f->row[row].value;

		if (l.of[row] >= 0 && d->point[l.of[row]].n <= 0)
			continue;
		asked++;
		if (f->row[row].state == CARD_FOUND &&
		    fabs(got / want - 1) <= .05)
			continue;
		missed++;
		diag("%s: got %g (%s; measured %g, simulated %g), is %g",
		     cost_row_info(row)->name, got,
		     f->row[row].state == CARD_FOUND ? "found" :
		     f->row[row].state == CARD_ODD   ? "odd" : "unknown",
		     f->row[row].measured, f->row[row].simulated, want);
	}
	is_i64(missed, 0, "%d hidden parameters are found within 5 %%", asked);
}

/* The kit's products, and what the fit makes of them. */
struct product {
	struct card_code code;
	double fitted_s;
};

/* How far a product's time is from what the fit makes of it, at most. */
static double change_of(const struct product *p, int n,
			const struct cost_model *m)
{
	struct err e = { 0 };
	double worst = 0, s = 0;

	for (int i = 0; i < n; i++) {
		if (!card_simulate(&p[i].code, m, &s, &e))
			diag("%s", e.msg);
		worst = fmax(worst, fabs(s / p[i].fitted_s - 1));
	}
	return worst;
}

static struct product *compile_products(const struct card_fit *f, int n)
{
	const struct card_gemm *g = card_gemms(&(int){ 0 });
	struct product *p = calloc((size_t)n, sizeof(*p));
	struct err e = { 0 };

	for (int i = 0; i < n; i++)
		if (!card_compile(&g[i], &p[i].code, &e) ||
		    !card_simulate(&p[i].code, &f->costs, &p[i].fitted_s, &e))
			diag("%s", e.msg);
	return p;
}

/* What it calls unknown may be anything: of no consequence for a product. */
static void check_unknown(const struct card_fit *f, const struct cost_model *m,
			  int products)
{
	struct product *p = compile_products(f, products);
	struct cost_model all = f->costs;
	double worst = 0;
	int n, found = 0, inside = 0;
	const enum cost_row *rest = card_rest(&n);

	for (int i = 0; i < n; i++) {
		const struct card_fit_row *row = &f->row[rest[i]];
		const double is = cost_value(m, rest[i]);

		if (row->state == CARD_UNKNOWN) {
			struct cost_model one = f->costs;

			all.row[rest[i]].value = one.row[rest[i]].value = is;
			const double change = change_of(p, products, &one);
			if (change > .02)
				diag("%s: unknown, is %g, changes %.2f %%",
				     cost_row_info(rest[i])->name, is,
				     100 * change);
			worst = fmax(worst, change);
		}
		if (row->state != CARD_FOUND)
			continue;
		found++;
		inside += is >= row->lo * .999 && is <= row->hi * 1.001;
		diag("%s: is %g, got %g (%g to %g)",
		     cost_row_info(rest[i])->name, is, row->value, row->lo,
		     row->hi);
	}
	diag("rest: %d of %d found, the truth of %d is in its interval; "
	     "an unknown one changes a product by %.2f %%, all by %.2f %%",
	     found, n, inside, 100 * worst,
	     100 * change_of(p, products, &all));
	ok(worst <= .02, "no unknown parameter changes a product by 2 %%");
	for (int i = 0; i < products; i++)
		card_code_fini(&p[i].code);
	free(p);
}

/* Only what chains of instructions tell, which is quickly simulated. */
static void keep_latencies(struct card_data *d)
{
	struct card_list l;

	card_list_init(&l);
	for (int i = 0; i < l.n; i++)
		if (l.v[i].row != COST_LAUNCH &&
		    (strcmp(l.v[i].area, "cost") != 0 ||
		     !strstr(l.v[i].name, ".latency")))
			d->point[i].n = 0;
}

static void rehearse(uint64_t seed, bool all, int products)
{
	const struct card_fit_how how = { .products = products,
					  .rest = products > 0, .jobs = 2,
					  .quiet = true };
	struct card_data *d = calloc(1, sizeof(*d));
	struct cost_model m;
	struct card_fit f;
	struct err e = { 0 };
	uint64_t state = seed;

	draw_card(&m, &state);
	bool good = ok(measure(&m, products, d, &state, &e), "card %d is "
		       "measured: %s", (int)seed, e.msg);

	if (!all)
		keep_latencies(d);
	if (good &&
	    ok(card_fit(&f, d, &how, &e), "and fitted: %s", e.msg)) {
		check_found(&f, &m, d);
		if (products)
			check_unknown(&f, &m, products);
		card_fit_fini(&f);
	}
	cost_fini(&m);
	free(d);
}

/*
 * Three instructions in a queue for a result that takes five cycles: one in 1.7
 * cycles, of which no issue of whole cycles is the reason.
 */
static void test_short_queue(void)
{
	const struct card_fit_how how = { .jobs = 2, .quiet = true };
	struct card_data *d = xcalloc(1, sizeof(*d));
	bool which[CARD_POINTS_MAX] = { false };
	struct card_list l;
	struct cost_model m;
	struct card_fit f;
	struct err e = { 0 };

	card_list_init(&l);
	which[l.of[COST_SALU_LATENCY]] = which[l.of[COST_SALU_ISSUE]] = true;
	cost_init(&m, "gfx1100");
	m.row[COST_SALU_LATENCY].value = 5;
	m.row[COST_SALU_ISSUE].value = 1;
	m.row[COST_SALU_QUEUE].value = 3;
	if (ok(card_observe(&m, which, d, NULL, &e) &&
	       card_fit(&f, d, &how, &e), "a short queue is measured: %s",
	       e.msg)) {
		const struct card_fit_row *row = &f.row[COST_SALU_ISSUE];

		ok(row->measured > 1.6 && row->measured < 1.75,
		   "it holds instructions up");
		ok(row->state == CARD_FOUND && row->value == 1,
		   "and is told from a slow issue");
		is_i64((int64_t)cost_value(&f.costs, COST_SALU_QUEUE), 3,
		       "by its length");
		card_fit_fini(&f);
	}
	cost_fini(&m);
	free(d);
}

/* A signal ends it between two probes: what they said by then is no result. */
static void test_stop(void)
{
	static const _Atomic int stop = SIGTERM;
	struct card_data *d = xcalloc(1, sizeof(*d));
	struct cost_model m;
	struct err e = { 0 };

	cost_init(&m, "gfx1100");
	ok(!card_observe(&m, NULL, d, &stop, &e), "probes that are stopped");
	is_i64(e.code, ERR_STOPPED, "say so");
	cost_fini(&m);
	free(d);
}

int main(int argc, char **argv)
{
	const char *slow = getenv("T0_SLOW");
	int n;

	card_gemms(&n);
	test_stop();
	if (argc > 2) { /* by hand: SEED PRODUCTS */
		rehearse(strtoull(argv[1], NULL, 10), true, atoi(argv[2]));
	} else if (slow && *slow) {
		for (uint64_t seed = 1; seed < 20; seed++)
			rehearse(seed, true, n);
	} else {
		test_short_queue();
		rehearse(1, false, 0);
	}
	return plan_done();
}
