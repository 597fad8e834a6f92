/*
 * autotune/card/clock.c - the clock under load, and the time from packet to
 * packet: what the model says of them, and the way back.
 */
#include <math.h>

#include "autotune/card/card.h"
#include "compiler/sim/sim.h"

/* ---- from costs ---- */

/* Busy shares that t0-probe clock makes, as far as a model knows them. */
static const struct {
	int pause_percent;
	double pause; /* of a load's time */
} chains[] = { { 0, 0 },   { 10, .1 }, { 25, .25 }, { 50, .5 },
	       { 100, 1 }, { 200, 2 }, { 400, 4 },  { 800, 8 } };
/* Cycles of a load; only how much of the time it takes matters. */
static const double load_cycles = 1e6;

void card_observe_clock(const struct cost_model *m, struct card_data *out)
{
	out->n_loads = 0;
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		struct card_load *l = &out->load[out->n_loads++];
		double high = cost_value(m, COST_CLOCK_SHORT) * 1e6;
		double idle_s = chains[i].pause * load_cycles / high;
		double hz = cost_clock(m, load_cycles, idle_s) * 1e6;
		double share = load_cycles / hz / (load_cycles / hz + idle_s);

		l->pause_percent = chains[i].pause_percent;
		l->clock = (struct card_value){ hz, hz, hz, hz, 1 };
		l->share = (struct card_value){ share, share, share, hz, 1 };
	}
}

/* What an empty kernel takes, its code in the cache. */
static bool empty_cycles(const struct cost_model *m, double *cycles,
			 struct err *e)
{
	static const uint8_t end[] = { 0x00, 0x00, 0xb0, 0xbf };
	const struct sim_config c = { .cost = m, .warm_code = true,
				      .warmth = SIM_EMPTY, .busy_wgps = 1 };
	struct sim_source s = { 0 };
	struct sim_result r;

	if (!sim_affine_open(&s, end, sizeof(end), 0x1000, "waves 1\n",
			     "empty", e))
		return false;
	bool ok = sim_run(&s, &c, &r, e);
	if (ok) {
		*cycles = (double)r.cycles;
		sim_fini(&r);
	}
	sim_affine_close(&s);
	return ok;
}

bool card_observe_launch(const struct cost_model *m, struct card_data *out,
			 struct err *e)
{
	struct card_list list;
	double cycles;

	card_list_init(&list);
	if (!empty_cycles(m, &cycles, e))
		return false;
	const double s = cost_value(m, COST_LAUNCH) * 1e-6 +
			 cycles / (cost_value(m, COST_CLOCK_SHORT) * 1e6);

	out->point[list.of[COST_LAUNCH]] = (struct card_value){ s, s, s, 0, 1 };
	return true;
}

/* ---- from what was measured ---- */

static bool has_load(const struct card_load *l)
{
	return l->clock.n > 0 && l->share.n > 0 && l->share.value > 0 &&
	       l->share.value <= 1.001;
}

/* Of the exponent p in f = clock share^(-1/p): least squares in logarithms. */
static double fit_power(const struct card_data *d, double clock, double high)
{
	double above = 0, below = 0;

	for (int i = 0; i < d->n_loads; i++) {
		const struct card_load *l = &d->load[i];
		const double x = -log(l->share.value);
		const double y = log(l->clock.value / clock);

		/* Near the most that it boosts to, power is not what limits. */
		if (!has_load(l) || l->clock.value > high * 0.99 || x < 0.02)
			continue;
		above += x * y;
		below += x * x;
	}
	return above > 0 ? below / above : NAN;
}

bool card_fit_clock(struct cost_model *m, const struct card_data *d)
{
	double most_share = 0, clock = NAN, high = 0;

	for (int i = 0; i < d->n_loads; i++) {
		const struct card_load *l = &d->load[i];

		if (!has_load(l))
			continue;
		if (l->share.value > most_share) {
			most_share = l->share.value;
			clock = l->clock.value;
		}
		high = fmax(high, l->clock.value);
	}
	if (most_share < 0.9 || d->n_loads < 3)
		return false;
	/* At a share just below one it is nearly the clock at one. */
	for (int i = 0; i < 3; i++) {
		const double power = fit_power(d, clock, high);

		if (isnan(power))
			break;
		m->row[COST_CLOCK_POWER].value = fmin(fmax(power, 1), 20);
		clock = 0;
		for (int k = 0; k < d->n_loads; k++)
			if (has_load(&d->load[k]) &&
			    d->load[k].share.value == most_share)
				clock = d->load[k].clock.value *
					pow(most_share, 1 / power);
	}
	m->row[COST_CLOCK].value = clock * 1e-6;
	m->row[COST_CLOCK_SHORT].value = high * 1e-6;
	return true;
}
