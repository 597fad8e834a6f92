/* compiler/sim/foreign_predict.c - the time of a tiled product on the GPU. */
#include <math.h>
#include <string.h>

#include "compiler/sim/foreign.h"
#include "isa/occupancy.h"

/* Rounds of the loop that are simulated; longer loops go on in their pace. */
enum { TRIPS_LESS = 20, TRIPS_MORE = 40 };

struct job {
	const struct foreign_tile *t;
	const struct foreign_shape *s;
	const struct cost_model *m;
	double mhz;
	int steps; /* tiles of K that a workgroup works through */
	uint64_t total;
	struct err *e;
};

static uint64_t footprint(const struct foreign_shape *s)
{
	return 2 * ((uint64_t)s->m * (uint64_t)s->k +
		    (uint64_t)s->k * (uint64_t)s->n) +
	       4 * (uint64_t)s->m * (uint64_t)s->n;
}

static bool simulate(const struct job *j, int groups, int trips, double *cycles)
{
	struct foreign_code g;
	struct sim_source src = { .cu_mode = j->t->cu_mode, .wave_size = 32 };
	double wgps = cost_value(j->m, COST_N_WGP);
	struct sim_config c = {
		.cost = j->m, .clock_mhz = j->mhz, .warmth = SIM_WARM,
		.footprint_bytes = footprint(j->s), .warm_code = true,
		.busy_wgps = j->total < wgps ? (int)j->total : (int)wgps,
	};
	struct sim_result r = { 0 };
	bool ok = foreign_generate(&g, j->t, j->s, trips, groups, j->e);

	src.vgprs = g.vgprs;
	src.lds_bytes = g.lds_bytes;
	ok = ok && sim_affine_open(&src, (uint8_t *)g.code.data, g.code.len,
				   0x10000, g.affine.data, "gemm", j->e);
	if (ok) {
		ok = sim_run(&src, &c, &r, j->e);
		sim_affine_close(&src);
	}
	*cycles = (double)r.cycles;
	sim_fini(&r);
	foreign_fini(&g);
	return ok;
}

/* Cycles of `groups` workgroups that begin together on a WGP. */
static bool round_cycles(const struct job *j, int groups, double *cycles,
			 double *step)
{
	int trips = j->steps - 2;
	double less, more;

	if (trips <= TRIPS_MORE) {
		*step = NAN;
		return simulate(j, groups, trips > 0 ? trips : 0, cycles);
	}
	if (!simulate(j, groups, TRIPS_LESS, &less) ||
	    !simulate(j, groups, TRIPS_MORE, &more))
		return false;
	*step = (more - less) / (TRIPS_MORE - TRIPS_LESS);
	*cycles = more + *step * (trips - TRIPS_MORE);
	return true;
}

/* Workgroups that a WGP holds. */
static bool find_at_once(const struct job *j, int *at_once)
{
	struct foreign_code g;
	struct isa_occupancy o;

	if (!foreign_generate(&g, j->t, j->s, 0, 1, j->e)) {
		foreign_fini(&g);
		return false;
	}
	struct isa_resources need = {
		.wave = 32, .vgprs = g.vgprs, .lds_bytes = g.lds_bytes,
		.workgroup_size = g.waves * 32, .wgp_mode = !j->t->cu_mode,
	};
	bool ok = isa_occupancy(j->m->chip, &need, &o) && o.workgroups;
	int by_waves = SIM_WAVES_MAX / g.waves;

	*at_once = ok ? o.workgroups * (j->t->cu_mode ? 2 : 1) : 0;
	*at_once = *at_once < by_waves ? *at_once : by_waves;
	foreign_fini(&g);
	return ok || err_set(j->e, ERR_UNSUPPORTED, "a tile of %dx%dx%d does "
			     "not fit a WGP", j->t->m, j->t->n, j->t->k);
}

static bool at_clock(struct job *j, struct foreign_guess *out)
{
	double part = 0, full = 0, step;
	int mine = out->groups, whole = mine / out->at_once;

	if (whole && !round_cycles(j, out->at_once, &full, &out->step_full))
		return false;
	if (mine % out->at_once &&
	    !round_cycles(j, mine % out->at_once, &part, &step))
		return false;
	if (!whole)
		out->step_full = step;
	out->rounds = whole + (mine % out->at_once > 0);
	out->cycles = whole * full + part;
	out->clock_mhz = j->mhz;
	out->gpu_s = out->cycles / (j->mhz * 1e6);
	return true;
}

bool foreign_predict(const struct foreign_tile *t,
		     const struct foreign_shape *s,
		  const struct cost_model *m, struct foreign_guess *out,
		  struct err *e)
{
	double tiles = ceil((double)s->m / t->m) * ceil((double)s->n / t->n);
	struct job j = {
		.t = t, .s = s, .m = m, .e = e,
		.mhz = cost_value(m, COST_CLOCK_SHORT),
		.steps = s->k / (s->split > 1 ? s->split : 1) / t->k,
		.total = (uint64_t)tiles * (uint64_t)(s->split > 1 ? s->split
								     : 1),
	};

	memset(out, 0, sizeof(*out));
	if (j.steps < 2)
		return err_set(e, ERR_UNSUPPORTED, "%dx%dx%d in tiles of %d: "
			       "less than two steps", s->m, s->n, s->k, t->k);
	if (!find_at_once(&j, &out->at_once))
		return false;
	out->groups = (int)ceil((double)j.total / cost_value(m, COST_N_WGP));
	if (!at_clock(&j, out))
		return false;
	if (out->gpu_s * 1e6 <= cost_value(m, COST_SHORT_US))
		return true;
	j.mhz = cost_value(m, COST_CLOCK);
	return at_clock(&j, out);
}
