/*
 * autotune/cmd/panel.c - t0-tune --tui: the best of each product so far.
 */
#include "base/panel/panel.h"

#include <math.h>
#include <stdlib.h>

#include "autotune/cmd/cmd.h"
#include "autotune/tuner/tune.h"
#include "base/vec.h"
#include "compiler/sim/sim.h"

struct best {
	const struct tune_problem *of;
	double rate; /* FLOP/s */
};

struct tune_watch {
	struct panel *panel;
	const struct cost_model *costs;
	VEC(struct best) best;
};

static struct best *best_of(struct tune_watch *w, const struct tune_problem *p)
{
	for (size_t i = 0; i < w->best.n; i++)
		if (w->best.v[i].of == p)
			return &w->best.v[i];
	vec_push(&w->best, ((struct best){ .of = p }));
	return &w->best.v[w->best.n - 1];
}

static void show_seen(void *ctx, const struct tune_seen *x)
{
	const struct tune_problem *p = x->problem;
	struct tune_watch *w = ctx;
	struct best *b = best_of(w, p);
	const struct sim_range *off =
		sim_range(SIM_RANGE_TIMES, w->costs->chip);
	const double rate = tune_flop(p) / x->time_s;
	char shape[64], config[TUNE_TEXT], range[64] = "";

	panel_progress(w->panel, x->done, x->total);
	if (rate > b->rate) {
		b->rate = rate;
		snprintf(shape, sizeof(shape), "%ux%ux%u", p->m, p->n, p->k);
		gemm_config_name(x->config, config, sizeof(config));
		if (off)
			snprintf(range, sizeof(range), " (%.2f to %.2f)",
				 rate / off->most / 1e12,
				 rate / off->least / 1e12);
		panel_set(w->panel, shape, "%.2f TFLOPS%s  %s", rate / 1e12,
			  range, config);
	}
	panel_point(w->panel, "TFLOPS of each that is timed", rate / 1e12);
	panel_draw(w->panel);
}

struct tune_watch *tune_watch_open(struct tune_opts *o)
{
	struct panel *p = panel_open("t0-tune", "best so far, simulated");
	struct tune_watch *w;

	if (!p)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->panel = p;
	w->costs = o->costs;
	o->see = show_seen;
	o->see_ctx = w;
	return w;
}

void tune_watch_close(struct tune_watch *w)
{
	if (!w)
		return;
	panel_close(w->panel);
	vec_fini(&w->best);
	free(w);
}
