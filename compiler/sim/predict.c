/*
 * compiler/sim/predict.c - a dispatch on the whole GPU, in one call.
 */
#include <math.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "isa/code/code.h"

/* ---- rounds ---- */

/* What is cold in round number `round`, from 0. */
static int cold_in(const struct sim_dispatch *d, int round,
		   struct sim_cold out[SIM_COLD_MOST])
{
	int n = 0;

	for (int i = 0; i < d->n_cold; i++)
		if (!d->cold[i].rounds || round < d->cold[i].rounds)
			out[n++] = d->cold[i];
	return n;
}

/* The round, of those before `end`, from which on something else is cold. */
static int next_change(const struct sim_dispatch *d, int round, int end)
{
	for (int i = 0; i < d->n_cold; i++)
		if (d->cold[i].rounds > round && d->cold[i].rounds < end)
			end = d->cold[i].rounds;
	return end;
}

/* What limits the waves that there are at once, and is to be left out. */
static void lift_limits(const struct sim_dispatch *d, struct sim_source *s)
{
	enum { FEW_VGPRS = 24, FEW_BYTES = 1024 };

	if (d->without & SIM_NO_VGPR_LIMIT && s->vgprs > FEW_VGPRS)
		s->vgprs = FEW_VGPRS;
	if (d->without & SIM_NO_LDS_LIMIT && s->lds_bytes > FEW_BYTES)
		s->lds_bytes = FEW_BYTES;
}

static bool simulate_round(const struct sim_dispatch *d, int round, int groups,
			   double mhz, struct sim_result *r, uint64_t *unknown,
			   struct err *e)
{
	double wgps = cost_value(d->cost, COST_N_WGP);
	struct sim_cold cold[SIM_COLD_MOST];
	struct sim_config c = {
		.without = d->without,
		.cost = d->cost, .clock_mhz = mhz, .warmth = d->warmth,
		.footprint_bytes = d->footprint_bytes,
		.cold = cold, .n_cold = cold_in(d, round, cold),
		.warm_code = d->warmth == SIM_WARM, .trips = d->trips,
		.busy_wgps = (double)d->groups < wgps ? (int)d->groups
						      : (int)wgps,
		.issued = round ? NULL : d->issued, .ctx = d->issued_ctx,
	};
	struct sim_source s = { 0 };

	if (!d->open(d->ctx, &s, groups, e))
		return false;
	lift_limits(d, &s);
	bool ok = sim_run(&s, &c, r, e);

	*unknown += s.unknown;
	d->close(&s);
	return ok;
}

/* Workgroups that a WGP holds; the source is opened for its description. */
static bool find_at_once(const struct sim_dispatch *d, int *at_once,
			 int *waves, struct err *e)
{
	struct sim_source s = { 0 };
	struct isa_occupancy o;

	if (!d->open(d->ctx, &s, 1, e))
		return false;
	lift_limits(d, &s);
	struct isa_resources need = {
		.wave = s.wave_size, .vgprs = s.vgprs,
		.lds_bytes = s.lds_bytes,
		.workgroup_size = s.waves_per_group * s.wave_size,
		.wgp_mode = !s.cu_mode,
	};
	bool fits = isa_occupancy(d->cost->chip, &need, &o) && o.workgroups;
	int most = SIM_WAVES_MAX / s.waves_per_group;

	*waves = s.waves_per_group;
	*at_once = fits ? o.workgroups * (s.cu_mode ? 2 : 1) : 0;
	*at_once = *at_once < most ? *at_once : most;
	d->close(&s);
	return *at_once || err_set(e, ERR_UNSUPPORTED, "a workgroup of %d "
				   "waves with %d VGPRs and %u bytes of LDS "
				   "does not fit a WGP", *waves, need.vgprs,
				   need.lds_bytes);
}

static bool at_clock(const struct sim_dispatch *d, double mhz,
		     struct sim_forecast *f, struct err *e)
{
	const int each = d->uneven ? f->groups : f->at_once;
	int whole = f->groups / each, rest = f->groups % each;

	sim_fini(&f->round);
	f->cycles = 0;
	f->unknown = 0;
	for (int i = 0, next; i < whole + (rest > 0); i = next) {
		struct sim_result r = { 0 };

		next = i < whole ? next_change(d, i, whole) : i + 1;
		if (!simulate_round(d, i, i < whole ? each : rest, mhz, &r,
				    &f->unknown, e))
			return false;
		f->cycles += (next - i) * (double)r.cycles;
		if (i)
			sim_fini(&r);
		else
			f->round = r;
	}
	f->rounds = whole + (rest > 0);
	f->clock_mhz = mhz;
	f->limit = sim_pipe_name(f->round.limit);
	return true;
}

/* The dispatcher starts so many waves a cycle, and not more. */
static void dispatch_limit(const struct sim_dispatch *d, int waves,
			   struct sim_forecast *f)
{
	double least = (double)d->groups * waves *
		       cost_value(d->cost, COST_WAVE_RATE) /
		       cost_value(d->cost, COST_N_SE);

	if (f->cycles < least) {
		f->cycles = least;
		f->limit = "dispatch";
	}
	f->time_s = f->cycles / (f->clock_mhz * 1e6);
}

/* Cycles hardly depend on it: those of a clock so near are good enough. */
static const double near_clock = 0.02;

/* The clock of a dispatch that was simulated at "clock". */
static bool find_clock(const struct sim_dispatch *d, struct sim_forecast *f,
		       struct err *e)
{
	double idle_s = d->idle_s > 0 ? d->idle_s : f->launch_s;
	double mhz = cost_clock(d->cost, f->cycles, idle_s);

	if (mhz > f->clock_mhz * (1 + near_clock) && !at_clock(d, mhz, f, e))
		return false;
	f->clock_mhz = cost_clock(d->cost, f->cycles, idle_s);
	return true;
}

bool sim_forecast(const struct sim_dispatch *d, struct sim_forecast *f,
		  struct err *e)
{
	double mhz = d->clock_mhz > 0 ? d->clock_mhz
				      : cost_value(d->cost, COST_CLOCK);
	int waves;

	memset(f, 0, sizeof(*f));
	if (!d->groups)
		return err_set(e, ERR_INPUT, "a grid without workgroups");
	if (!find_at_once(d, &f->at_once, &waves, e))
		return false;
	f->groups = (int)ceil((double)d->groups /
			      cost_value(d->cost, COST_N_WGP));
	f->launch_s = cost_value(d->cost, COST_LAUNCH) * 1e-6;
	bool ok = at_clock(d, mhz, f, e);
	if (ok && d->clock_mhz <= 0)
		ok = find_clock(d, f, e);
	if (!ok) {
		sim_forecast_fini(f);
		return false;
	}
	dispatch_limit(d, waves, f);
	return true;
}

void sim_forecast_fini(struct sim_forecast *f)
{
	sim_fini(&f->round);
	memset(f, 0, sizeof(*f));
}

/* ---- of code objects ---- */

struct object_dispatch {
	const struct sim_launch *l;
	int every;
};

static bool open_object(void *ctx, struct sim_source *s, int n, struct err *e)
{
	const struct object_dispatch *o = ctx;

	return sim_object_open(s, o->l, n, o->every, e);
}

/*
 * Of many workgroups of different lengths every k-th says enough, where they
 * become shorter or longer from the first to the last.
 */
static int every_of(const struct sim_launch *l, uint64_t groups, int wgps)
{
	enum { MOST = 24 }; /* of a WGP */

	return l->uneven ? (int)((groups - 1) / (uint64_t)(wgps * MOST)) + 1
			 : 1;
}

bool sim_object_forecast_as(const struct sim_dispatch *how,
			    const struct sim_launch *l,
			    struct sim_forecast *out, struct err *e)
{
	const uint64_t groups = (uint64_t)l->groups[0] * l->groups[1] *
				l->groups[2];
	const int wgps = (int)cost_value(how->cost, COST_N_WGP);
	const int k = groups ? every_of(l, groups, wgps) : 1;
	struct object_dispatch o = { l, k * wgps };
	struct sim_dispatch d = *how;

	d.groups = groups / (uint64_t)k;
	d.cold = l->cold;
	d.n_cold = l->n_cold;
	d.uneven = l->uneven;
	d.open = open_object;
	d.close = sim_object_close;
	d.ctx = &o;
	if (!sim_forecast(&d, out, e))
		return false;
	out->groups *= k;
	out->cycles *= k;
	out->time_s *= k;
	return true;
}

bool sim_object_forecast(const struct cost_model *m,
			 const struct sim_launch *l, uint64_t footprint_bytes,
			 struct sim_forecast *out, struct err *e)
{
	const struct sim_dispatch how = {
		.cost = m, .footprint_bytes = footprint_bytes,
		.warmth = SIM_WARM, .trips = SIM_TRIPS,
	};

	return sim_object_forecast_as(&how, l, out, e);
}
