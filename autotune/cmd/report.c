/*
 * autotune/cmd/report.c - tables of what the tuner found.
 */
#include <math.h>
#include <string.h>

#include "autotune/cmd/cmd.h"

/* From 2048 cubed on a launch costs little. */
#define LARGE_FLOP (2.0 * 2048 * 2048 * 2048)

/* What others published, and what the simulator is off by, is of one chip. */
static bool is_published(const struct tune_report *r)
{
	return !strcmp(r->costs->chip, TUNE_CHIP);
}

/* Share of what all matrix pipes could do at this clock. */
static double peak_share(const struct tune_problem *p, double time_s,
			 double clock_hz, const struct cost_model *m)
{
	return tune_flop(p) / time_s / tune_peak_flops(p, m, clock_hz);
}

static void shape_text(const struct tune_problem *p, char out[TUNE_TEXT])
{
	int at = snprintf(out, TUNE_TEXT, "%ux%ux%u", p->m, p->n, p->k);

	if (p->batch > 1)
		snprintf(out + at, (size_t)(TUNE_TEXT - at), "x%u", p->batch);
}

static void set_number(struct table *t, int col, double v, int digits)
{
	if (!isnan(v))
		table_cell(t, col, "%.*f", digits, v);
}

enum {
	SHAPE,
	OP,
	CACHES,
	TIME,
	TFLOPS,
	PEAK,
	CALLED,
	ROCBLAS,
	TRITON,
	T0_GPU,
	CONFIG,
	LO,
	HI,
	SAMPLES,
	LIMIT,
	SECOND,
	BEHIND,
	ORIGIN,
	VERDICT,
	BOUND,
	CLOCK,
	TRIED,
	SPACE,
	RATE_LO,
	RATE_HI,
	CALLED_LO,
	CALLED_HI,
	BEHIND_LO,
	BEHIND_HI,
	WON,
	DRAWS,
	WORST,
	FASTEST,
};
#define COLUMNS \
	"shape,op,caches,#time_us,#TFLOPS,#peak_percent,#launched_TFLOPS," \
	"#rocBLAS,#Triton,#T0_GPU,best,#lo_us,#hi_us,#samples,limit," \
	"runner_up,#behind_percent,origin,verdict,#bound_us,#clock_MHz," \
	"#simulated,#space,#lo_TFLOPS,#hi_TFLOPS,#launched_lo_TFLOPS," \
	"#launched_hi_TFLOPS,#behind_lo_percent,#behind_hi_percent,#won," \
	"#draws,#worst_percent,fastest"

/* Measured ones have an interval; what is simulated may be off so far. */
static void set_range(struct table *t, const struct tune_report *r,
		      const struct tune_outcome *o)
{
	const double flop = tune_flop(&o->problem) / 1e12;
	const double launch = cost_value(r->costs, COST_LAUNCH) * 1e-6;
	double lo = o->lo_s, hi = o->hi_s;

	if (o->origin == RES_SIMULATED && r->error) {
		lo = o->time_s * r->error->least;
		hi = o->time_s * r->error->most;
	}
	set_number(t, LO, lo * 1e6, 2);
	set_number(t, HI, hi * 1e6, 2);
	set_number(t, RATE_LO, flop / hi, 2);
	set_number(t, RATE_HI, flop / lo, 2);
	set_number(t, CALLED_LO, flop / (hi + launch), 2);
	set_number(t, CALLED_HI, flop / (lo + launch), 2);
}

/* How it stands where costs are other ones (draws.c). */
static void set_standing(struct table *t, const struct tune_outcome *o)
{
	const struct tune_standing *s = &o->standing,
				   *second = &o->second_standing;

	if (!s->draws)
		return;
	table_cell(t, WON, "%d", s->won);
	table_cell(t, DRAWS, "%d", s->draws);
	set_number(t, WORST, 100 * (s->worst - 1), 1);
	if (second->draws) {
		set_number(t, BEHIND_LO, 100 * (second->least - 1), 1);
		set_number(t, BEHIND_HI, 100 * (second->most - 1), 1);
	}
	table_cell(t, FASTEST, "%s", *o->fastest ? o->fastest : o->config);
}

static void found_row(struct table *t, const struct tune_report *r,
		      const struct tune_outcome *o)
{
	double flop = tune_flop(&o->problem) / 1e12;
	double launch = cost_value(r->costs, COST_LAUNCH) * 1e-6;

	set_number(t, TIME, o->time_s * 1e6, 2);
	set_number(t, TFLOPS, flop / o->time_s, 2);
	set_number(
		t, PEAK,
		100 * peak_share(&o->problem, o->time_s, o->clock_hz, r->costs),
		1);
	set_number(t, CALLED, flop / (o->time_s + launch), 2);
	table_cell(t, CONFIG, "%s", o->config);
	set_range(t, r, o);
	set_standing(t, o);
	table_cell(t, SAMPLES, "%lld", (long long)o->samples);
	table_cell(t, LIMIT, "%s", o->limit);
	if (*o->second) {
		table_cell(t, SECOND, "%s", o->second);
		set_number(t, BEHIND, 100 * (o->second_s / o->time_s - 1), 1);
	}
	table_cell(t, ORIGIN, "%s", res_origin_name(o->origin));
	table_cell(t, VERDICT, "right");
	set_number(t, BOUND, o->bound_s * 1e6, 2);
	set_number(t, CLOCK, o->clock_hz / 1e6, 0);
}

static void add_row(struct table *t, const struct tune_report *r,
		    const struct tune_outcome *o)
{
	const struct tune_problem *p = &o->problem;
	char text[TUNE_TEXT];

	table_row(t);
	shape_text(p, text);
	table_cell(t, SHAPE, "%s", text);
	gemm_op_name(&p->op, text, sizeof(text));
	table_cell(t, OP, "%s", text);
	table_cell(t, CACHES, "%s", tune_caches_name(p->caches));
	if (is_published(r)) {
		set_number(t, ROCBLAS, published_tflops(PUBLISHED_ROCBLAS, p),
			   1);
		set_number(t, TRITON, published_triton(p), 1);
		set_number(t, T0_GPU, published_tflops(PUBLISHED_T0_GPU, p), 1);
	}
	table_cell(t, TRIED, "%u", o->timed);
	table_cell(t, SPACE, "%u", o->space);
	if (o->found)
		found_row(t, r, o);
	else
		table_cell(t, VERDICT, "none: %s", o->why);
}

/* People get two tables that fit a page; programs get all in one. */
static bool print_columns(const struct table *all, const char *columns,
			  const int *col, int n, const struct tune_report *r,
			  struct err *e)
{
	struct table t;

	table_init(&t, columns);
	for (int i = 0; i < all->n_rows; i++) {
		table_row(&t);
		for (int k = 0; k < n; k++)
			if (all->row[i][col[k]])
				table_cell(&t, k, "%s", all->row[i][col[k]]);
	}
	bool ok = table_print(&t, TABLE_TEXT, r->out, e);
	table_fini(&t);
	return ok;
}

static bool print_text(const struct table *all, const struct tune_report *r,
		       struct err *e)
{
	static const int speed[] = { SHAPE,	OP,	   CACHES,  TIME,
				     LO,	HI,	   TFLOPS,  RATE_LO,
				     RATE_HI,	PEAK,	   CLOCK,   CALLED,
				     CALLED_LO, CALLED_HI, ROCBLAS, TRITON,
				     T0_GPU,	ORIGIN,	   VERDICT };
	static const int what[] = { SHAPE,     CONFIG,	  SECOND, BEHIND,
				    BEHIND_LO, BEHIND_HI, WORST,  WON,
				    DRAWS,     LIMIT,	  TRIED,  SPACE };

	if (!print_columns(
		    all,
		    "shape,op,caches,#\xc2\xb5s,#lo,#hi,#TFLOPS,#from,#to,"
		    "#% peak,#at MHz,#launched,#from,#to,#rocBLAS,"
		    "#Triton,#T0-GPU,origin,verdict",
		    speed, ARRAY_SIZE(speed), r, e))
		return false;
	fputc('\n', r->out);
	return print_columns(all,
			     "shape,best,runner-up,#behind %,#lo %,#hi %,"
			     "#worst %,#won,#of,limit,#timed,#space",
			     what, ARRAY_SIZE(what), r, e);
}

/* ---- notes ---- */

static void note_error(const struct tune_report *r)
{
	const struct published_error *x = r->error;

	fold_printf(
		r->out, 0,
		"The simulator is off by %.1f %% in the mean and "
		"%.1f %% at worst (%s, %d rows); lo, hi, from and to are where "
		"80 %% of %d published products lie: %.2f to %.2f of what is "
		"simulated.\n",
		100 * x->mean, 100 * x->worst, x->source, x->rows,
		x->range_rows, x->least, x->most);
}

/* What is launched alone pays for it. */
static void note_launch(const struct tune_report *r,
			const struct tune_outcome *o, size_t n)
{
	const double launch = cost_value(r->costs, COST_LAUNCH) * 1e-6;
	struct buf text = { 0 };
	char shape[TUNE_TEXT];

	for (size_t i = 0; i < n; i++) {
		if (!o[i].found || tune_flop(&o[i].problem) >= LARGE_FLOP)
			continue;
		shape_text(&o[i].problem, shape);
		buf_printf(&text, "%s%.0f %% of %s", text.len ? ", " : "",
			   100 * launch / (o[i].time_s + launch), shape);
	}
	if (text.len)
		fold_printf(r->out, 0, "The launch is %s.\n", text.data);
	buf_fini(&text);
}

/* Who would have won by the costs as they are, and why it did not. */
static void note_drawn(const struct tune_report *r,
		       const struct tune_outcome *o, size_t n)
{
	bool any = false;
	char shape[TUNE_TEXT];

	for (size_t i = 0; i < n; i++)
		any = any || o[i].standing.draws;
	if (!any)
		return;
	fold_printf(
		r->out, 0,
		"Costs that nobody has measured were drawn %d times, alike for "
		"all: half to twice a guess, a quarter more or less of what is "
		"derived.  Best is who is least behind the fastest of any draw: "
		"it is the fastest in `won' of them, and at worst `worst' "
		"behind; lo and hi say how far the runner-up is behind it.\n",
		COST_DRAWS - 1);
	for (size_t i = 0; i < n; i++) {
		if (!o[i].found || !*o[i].fastest)
			continue;
		shape_text(&o[i].problem, shape);
		fold_printf(r->out, 2,
			    "%s: with the costs as they are %s takes %.1f %% "
			    "less; not with all that may be.\n",
			    shape, o[i].fastest,
			    100 * (1 - o[i].fastest_s / o[i].time_s));
	}
}

/* Of a chip whose times nobody published. */
static void note_guesses(const struct tune_report *r)
{
	char costs[128];

	cost_summary(r->costs, costs, sizeof(costs));
	fold_printf(r->out, 0,
		    "\nSimulated times are those of a %s at %.0f MHz, less the "
		    "more of the time the card is busy, down to %.0f MHz.  "
		    "Costs: %s; how far times are off is not known "
		    "(t0-sim costs --chip %s).\n",
		    r->costs->chip, cost_value(r->costs, COST_CLOCK_SHORT),
		    cost_value(r->costs, COST_CLOCK), costs, r->costs->chip);
}

/* The fastest that others published; NAN: nothing is. */
static double published_best(const struct tune_problem *p, const char **who)
{
	const struct {
		const char *who;
		double tflops;
	} all[] = {
		{ "rocBLAS", published_tflops(PUBLISHED_ROCBLAS, p) },
		{ "Triton", published_triton(p) },
		{ "T0-GPU", published_tflops(PUBLISHED_T0_GPU, p) },
	};
	double best = NAN;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!isnan(all[i].tflops) && !(all[i].tflops <= best)) {
			best = all[i].tflops;
			*who = all[i].who;
		}
	return best;
}

/* What may be slower than others are, where the range ends. */
static void note_behind(const struct tune_report *r,
			const struct tune_outcome *o, size_t n)
{
	double launch = cost_value(r->costs, COST_LAUNCH) * 1e-6;

	for (size_t i = 0; i < n && is_published(r); i++) {
		const double flop = tune_flop(&o[i].problem) / 1e12;
		const char *who = "";
		const double theirs = published_best(&o[i].problem, &who);
		double hi = o[i].hi_s;
		char shape[TUNE_TEXT], op[TUNE_TEXT];

		if (o[i].origin == RES_SIMULATED && r->error)
			hi = o[i].time_s * r->error->most;
		if (!o[i].found || !(flop / (hi + launch) < theirs))
			continue;
		shape_text(&o[i].problem, shape);
		gemm_op_name(&o[i].problem.op, op, sizeof(op));
		fold_printf(r->out, 2,
			    "%s %s: %.1f TFLOPS launched may be %.1f, below "
			    "the %.1f of %s; limited by %s.\n",
			    op, shape, flop / (o[i].time_s + launch),
			    flop / (hi + launch), theirs, who,
			    *o[i].limit ? o[i].limit : "nothing that is known");
	}
}

static void print_notes(const struct tune_report *r,
			const struct tune_outcome *o, size_t n)
{
	if (r->error) {
		fold_printf(
			r->out, 0,
			"\nSimulated times are those of the "
			"kernels at %.0f MHz, less the more of the time the "
			"card is busy, down to %.0f MHz, and each row's peak "
			"is that at its clock; `launched' adds %.2f \xc2\xb5s.\n"
			"Published: rocBLAS and Triton by the wall clock, "
			"normal operands, clock not said; T0-GPU on zeros; all "
			"in loops, with warm caches.  Cold-b: B comes from "
			"memory, A and C do not.\n",
			cost_value(r->costs, COST_CLOCK_SHORT),
			cost_value(r->costs, COST_CLOCK),
			cost_value(r->costs, COST_LAUNCH));
		note_error(r);
	} else if (!is_published(r)) {
		note_guesses(r);
	}
	note_drawn(r, o, n);
	note_launch(r, o, n);
	note_behind(r, o, n);
}

/* ---- why the winner wins ---- */

static bool explain_winner(const struct tune_report *r,
			   const struct tune_outcome *o, struct err *e)
{
	struct tune_simulation t = { 0 };
	struct gemm_code code = { 0 };
	struct gemm_config c;
	struct cc_options options;
	char shape[TUNE_TEXT];

	cc_options_init(&options);
	options.costs = r->costs;
	options.chip = r->costs->chip;
	bool ok = gemm_config_parse(o->config, &c, e) &&
		  gemm_compile(&o->problem.op, &c, &options, &code, e) &&
		  tune_simulate(&o->problem, &c, &code, r->costs, true, &t, e);
	if (ok) {
		const struct cc_stats *s = &code.object[0].stats;

		shape_text(&o->problem, shape);
		fold_printf(
			r->out, 2,
			"\n%s: %s\n  %u VGPRs, %u bytes of LDS, %u "
			"bytes of code, %d workgroups of a WGP at once\n%s",
			shape, o->config, s->vgprs, s->lds_bytes, s->code_bytes,
			tune_groups_at_once(r->costs->chip, &c, (int)s->vgprs,
					    s->lds_bytes),
			t.explain.data ? t.explain.data : "");
	}
	tune_simulation_fini(&t);
	gemm_code_fini(&code);
	return ok;
}

/* How far it is off, if anything of it is simulated. */
static bool find_error(const struct tune_report *r,
		       const struct tune_outcome *o, size_t n,
		       struct published_error *x, bool *any, struct err *e)
{
	struct res_db *db;

	*any = false;
	for (size_t i = 0; i < n; i++)
		*any |= o[i].found && o[i].origin == RES_SIMULATED &&
			is_published(r);
	if (!*any)
		return true;
	db = r->db ? res_open(r->db, RES_READ, e) : NULL;
	bool ok = (!r->db || db) && published_error(db, r->costs, x, e);
	res_close(db);
	return ok;
}

bool tune_report(const struct tune_report *how, const struct tune_outcome *o,
		 size_t n, struct err *e)
{
	struct tune_report with = *how, *r = &with;
	struct published_error error;
	struct table t;
	bool ok, any;

	if (!find_error(r, o, n, &error, &any, e))
		return false;
	r->error = any ? &error : NULL;
	table_init(&t, COLUMNS);
	for (size_t i = 0; i < n; i++)
		add_row(&t, r, &o[i]);
	ok = r->format == TABLE_TEXT ? print_text(&t, r, e) :
				       table_print(&t, r->format, r->out, e);
	table_fini(&t);
	if (!ok || r->format != TABLE_TEXT)
		return ok;
	if (!r->quiet)
		print_notes(r, o, n);
	for (size_t i = 0; r->explain && ok && i < n; i++)
		ok = !o[i].found || explain_winner(r, &o[i], e);
	return ok;
}

bool tune_report_space(const struct tune_report *r,
		       const struct tune_problems *l, struct err *e)
{
	struct table t;

	table_init(&t, "shape,config,state,#estimate_us,#bound_us,limit,"
		       "reason");
	for (size_t i = 0; i < l->n; i++) {
		struct tune_space s;
		char text[TUNE_TEXT];

		tune_space_init(&s, &l->v[i], r->costs);
		for (size_t k = 0; k < s.n; k++) {
			const struct tune_candidate *c = &s.v[k];
			bool legal = c->state == RES_TUNE_RANKED;

			table_row(&t);
			shape_text(&l->v[i], text);
			table_cell(&t, 0, "%s", text);
			gemm_config_name(&c->config, text, sizeof(text));
			table_cell(&t, 1, "%s", text);
			table_cell(&t, 2, "%s", res_tune_state_name(c->state));
			set_number(&t, 3, legal ? c->estimate_s * 1e6 : NAN, 3);
			set_number(&t, 4, legal ? c->bound_s * 1e6 : NAN, 3);
			if (legal)
				table_cell(&t, 5, "%s", c->limit);
			table_cell(&t, 6, "%s", c->reason);
		}
		tune_space_fini(&s);
	}
	bool ok = table_print(&t, r->format, r->out, e);
	table_fini(&t);
	return ok;
}
