/*
 * autotune/cmd/compare.c - t0-tune compare: a product that others compiled
 * beside our winner of the same sizes, types and layout.
 */
#include <string.h>

#include "autotune/cmd/cmd.h"
#include "compiler/sim/sim.h"

enum {
	WHO,
	WHAT,
	TIME,
	LO,
	HI,
	TFLOPS,
	RATE_LO,
	RATE_HI,
	PEAK,
	CLOCK,
	AT_ONCE,
	LIMIT,
	RATIO,
	VERDICT,
};
#define COLUMNS \
	"who,what,#time_us,#lo_us,#hi_us,#TFLOPS,#lo_TFLOPS,#hi_TFLOPS," \
	"#peak_percent,#clock_MHz,#groups_of_WGP,limit,#times_ours,verdict"

enum { WHY_BYTES = sizeof(((struct err *)0)->msg) };

/* One side of the comparison. */
struct side {
	const char *who, *what, *verdict;
	struct tune_simulation t;
};

static void add_side(struct table *t, const struct tune_comparison *x,
		     const struct side *s, double ours_s)
{
	const struct sim_range *off =
		sim_range(SIM_RANGE_TIMES, x->costs->chip);
	const double flop = tune_flop(x->problem);
	const double peak =
		tune_peak_flops(x->problem, x->costs, s->t.clock_hz);

	table_row(t);
	table_cell(t, WHO, "%s", s->who);
	table_cell(t, WHAT, "%s", s->what);
	table_cell(t, TIME, "%.2f", s->t.time_s * 1e6);
	table_cell(t, TFLOPS, "%.2f", flop / s->t.time_s / 1e12);
	if (off) {
		const double rate = flop / s->t.time_s / 1e12;

		table_cell(t, LO, "%.2f", s->t.time_s * off->least * 1e6);
		table_cell(t, HI, "%.2f", s->t.time_s * off->most * 1e6);
		table_cell(t, RATE_LO, "%.2f", rate / off->most);
		table_cell(t, RATE_HI, "%.2f", rate / off->least);
	}
	table_cell(t, PEAK, "%.1f", 100 * flop / s->t.time_s / peak);
	table_cell(t, CLOCK, "%.0f", s->t.clock_hz / 1e6);
	table_cell(t, AT_ONCE, "%d", s->t.at_once);
	table_cell(t, LIMIT, "%s", s->t.limit);
	if (ours_s > 0)
		table_cell(t, RATIO, "%.3f", s->t.time_s / ours_s);
	table_cell(t, VERDICT, "%s", s->verdict);
}

/* Our winner of this very problem, simulated now; not *found: *why. */
static bool simulate_winner(const struct tune_comparison *x, struct side *s,
			    char config[TUNE_TEXT], bool *found,
			    char why[WHY_BYTES], struct err *e)
{
	const struct tune_opts o = { .db = x->db,
				     .costs = x->costs,
				     .seed = x->seed };
	struct tune_selector *selector = tune_selector_open(&o, e);
	struct tune_choice c = { 0 };

	*found = selector && tune_select(selector, x->problem, &c, e);
	tune_selector_close(selector);
	if (!*found) {
		snprintf(why, WHY_BYTES, "%s", e->msg);
		*e = (struct err){ 0 };
		return true;
	}
	if (c.how != TUNE_EXACT) {
		snprintf(why, WHY_BYTES, "%s", c.why);
		*found = false;
		tune_choice_fini(&c);
		return true;
	}
	gemm_config_name(&c.config, config, TUNE_TEXT);
	bool ok = tune_simulate(x->problem, &c.config, &c.code, x->costs, false,
				&s->t, e);
	tune_choice_fini(&c);
	return ok;
}

bool tune_compare(const struct tune_comparison *x, struct table *t,
		  bool *complete, struct buf *remarks, struct err *e)
{
	struct side theirs = { .who = "theirs", .what = x->kernel };
	struct side ours = { .who = "ours", .verdict = "right" };
	const struct tune_problem *p = x->problem;
	struct tune_verdict v;
	char config[TUNE_TEXT], why[WHY_BYTES];
	bool found;

	table_init(t, COLUMNS);
	if (!tune_foreign_simulate(p, x->foreign, x->costs, &theirs.t, e) ||
	    !tune_foreign_check(p, x->foreign, x->device, x->seed, &v, e) ||
	    !simulate_winner(x, &ours, config, &found, why, e))
		return false;
	theirs.verdict = !v.checked ? "not checked" :
			 v.right    ? "right" :
				      "wrong";
	ours.what = config;
	add_side(t, x, &theirs, found ? ours.t.time_s : 0);
	if (found)
		add_side(t, x, &ours, ours.t.time_s);
	if (!v.checked || !v.right)
		buf_printf(remarks, "theirs is %s: %s\n", theirs.verdict,
			   v.detail);
	if (theirs.t.unknown)
		buf_printf(remarks,
			   "%llu of its accesses have addresses that "
			   "only executing it computes\n",
			   (unsigned long long)theirs.t.unknown);
	if (!found)
		buf_printf(remarks,
			   "no winner of ours to compare with (%s); "
			   "t0-tune with the same --shapes, --dtype, --layout "
			   "and --db finds one\n",
			   why);
	*complete = found && (!v.checked || v.right);
	return true;
}
