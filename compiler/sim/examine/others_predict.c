/*
 * compiler/sim/examine/others_predict.c - the time of a tiled product on the
 * GPU.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"

struct job {
	const struct others_tile *t;
	const struct others_shape *s;
	int steps; /* tiles of K that a workgroup works through */
};

static uint64_t total_bytes(const struct others_shape *s)
{
	return 2 * ((uint64_t)s->m * (uint64_t)s->k +
		    (uint64_t)s->k * (uint64_t)s->n) +
	       4 * (uint64_t)s->m * (uint64_t)s->n;
}

static bool open_source(void *ctx, struct sim_source *s, int n, struct err *e)
{
	const struct job *j = ctx;
	struct others_code g;
	bool ok = others_generate(&g, j->t, j->s, j->steps - 2, n, e);

	*s = (struct sim_source){ .cu_mode = j->t->cu_mode, .wave_size = 32,
				  .vgprs = g.vgprs, .lds_bytes = g.lds_bytes };
	ok = ok && sim_affine_open(s, (uint8_t *)g.code.data, g.code.len,
				   0x10000, g.affine.data, "gemm", e);
	/* The source keeps the code, nobody the description. */
	buf_fini(&g.affine);
	if (!ok)
		others_fini(&g);
	return ok;
}

static void close_source(struct sim_source *s)
{
	void *code = (void *)(uintptr_t)s->code;

	sim_affine_close(s);
	free(code);
}

double others_idle(const struct others_tile *t, const struct cost_model *m)
{
	return 1e-6 * cost_value(m, t->family == OTHERS_T0 ? COST_LAUNCH_SYNC
							   : COST_LAUNCH_ASYNC);
}

bool others_predict(const struct others_tile *t, const struct others_shape *s,
		    const struct cost_model *m, struct others_guess *out,
		    struct err *e)
{
	int split = s->split > 1 ? s->split : 1;

	memset(out, 0, sizeof(*out));
	if (t->m < 1 || t->n < 1 || t->k < 1)
		return err_set(e, ERR_UNSUPPORTED, "a tile of %dx%dx%d; wanted "
			       "sides of 1 or more", t->m, t->n, t->k);
	double tiles = ceil((double)s->m / t->m) * ceil((double)s->n / t->n);
	struct job j = { t, s, s->k / split / t->k };
	struct sim_dispatch d = {
		.cost = m, .groups = (uint64_t)tiles * (uint64_t)split,
		.footprint_bytes = total_bytes(s), .warmth = SIM_WARM,
		.idle_s = others_idle(t, m), .trips = SIM_TRIPS,
		.open = open_source, .close = close_source, .ctx = &j,
	};
	struct sim_forecast f;

	if (j.steps < 2)
		return err_set(e, ERR_UNSUPPORTED, "%dx%dx%d in tiles of %d: "
			       "less than two steps", s->m, s->n, s->k, t->k);
	if (!sim_forecast(&d, &f, e))
		return false;
	*out = (struct others_guess){
		.gpu_s = f.time_s, .cycles = f.cycles,
		.clock_mhz = f.clock_mhz, .groups = f.groups,
		.at_once = f.at_once, .rounds = f.rounds,
	};
	sim_forecast_fini(&f);
	return true;
}
