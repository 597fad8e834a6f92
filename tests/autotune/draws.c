/*
 * What wins with the costs as they are, and loses where they may be, is not
 * taken: planted times, and a search beside simulations of its finalists.
 */
#include <math.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"
#include "tests/results/results.h"

/* ---- planted ---- */

enum { PLANTED = 3 };
static struct candidate planted[PLANTED];
static double times[PLANTED][COST_DRAWS];

/*
 * The first is the fastest with the costs as they are and in most draws, but in
 * one it is half as slow again; the second is never more than 4 % behind; the
 * third is slower than that everywhere.
 */
static struct candidates plant_candidates(void)
{
	for (int i = 0; i < PLANTED; i++) {
		planted[i] = (struct candidate){ .draw = times[i] };
		planted[i].c.state = RES_TUNE_TIMED;
		for (int k = 0; k < COST_DRAWS; k++)
			times[i][k] = (1 + 0.04 * i) * (k + 1) * 1e-6;
		planted[i].time_s = times[i][0];
	}
	times[0][7] *= 1.5;
	return (struct candidates){
		.v = planted, .n = PLANTED, .legal = PLANTED, .best = 0
	};
}

static void test_planted(void)
{
	struct candidates h = plant_candidates();
	struct tune_standing s, back;
	char text[TUNE_REASON];

	is_u64(draw_fastest(&h, 0), 0, "one is the fastest as costs are");
	is_u64(draw_fastest(&h, 7), 1, "and loses in a draw");
	ok(fabs(draw_worst(&h, 0) - 1.5 / 1.04) < 1e-12, "by 44 %%");
	ok(fabs(draw_worst(&h, 1) - 1.04) < 1e-12, "another by 4 at most");
	s = draw_standing(&h, 1, h.n);
	ok(s.draws == COST_DRAWS && s.won == 1 && isnan(s.least),
	   "which is the fastest once");
	s = draw_standing(&h, 0, 1);
	ok(s.won == COST_DRAWS - 1 && fabs(s.least - 1 / 1.04) < 1e-12 &&
		   fabs(s.most - 1.5 / 1.04) < 1e-12,
	   "the other stands from 4 %% before to 44 %% behind it");
	draw_text(&s, text);
	ok(draw_parse(text, &back) && back.won == s.won &&
		   back.draws == s.draws && fabs(back.worst - s.worst) < 1e-4 &&
		   fabs(back.least - s.least) < 1e-4 &&
		   fabs(back.most - s.most) < 1e-4,
	   "\"%s\" says it all", text);
	ok(!draw_parse("bound: 3 us", &back), "other reasons say nothing");
	planted[0].c.state = RES_TUNE_FAILED;
	ok(draw_worst(&h, 1) == 1, "one that is wrong is no measure");
	planted[1].draw = NULL;
	ok(isnan(draw_worst(&h, 1)), "nor is one that was not drawn");
}

/* ---- a search ---- */

static char dir[64], path[96];
static struct cost_model costs;

static bool search_one(const struct tune_problem *p, struct tune_outcome *out)
{
	const struct tune_problems l = { .v = (struct tune_problem *)p,
					 .n = 1 };
	const struct tune_opts o = {
		.db = path,
		.device = "soft",
		.operands = "normal",
		.seed = 3,
		.budget = { "quick", 12, 2, 3, 0, 4 },
		.quiet = true,
		.costs = &costs,
		.jobs = 2,
	};
	struct err e = { 0 };

	return ok(tune_search(&o, &l, out, &e) && out->found, "a search: %s%s",
		  e.msg, out->why);
}

/* Simulated here, one after the other. */
static void simulate_one(const struct tune_problem *p, const char *config,
			 double s[COST_DRAWS])
{
	struct gemm_code code = { 0 };
	struct gemm_config c;
	struct cc_options o;
	struct err e = { 0 };

	cc_options_init(&o);
	o.costs = &costs;
	if (!gemm_config_parse(config, &c, &e) ||
	    !gemm_compile(&p->op, &c, &o, &code, &e))
		BUG("%s: %s", config, e.msg);
	for (int k = 0; k < COST_DRAWS; k++) {
		struct tune_simulation t;
		struct cost_model m;

		cost_draw(&costs, k, &m);
		if (!tune_simulate(p, &c, &code, &m, false, &t, &e))
			BUG("%s: %s", config, e.msg);
		s[k] = t.time_s;
		tune_simulation_fini(&t);
	}
	gemm_code_fini(&code);
}

struct finalists {
	char config[TUNE_DRAWN_MOST][TUNE_TEXT];
	double s[TUNE_DRAWN_MOST][COST_DRAWS];
	int n;
};

static void find_finalists(const struct tune_problem *p, struct finalists *f)
{
	struct res_db *db = res_open(path, RES_READ, &(struct err){ 0 });
	struct table t;
	struct err e = { 0 };

	table_init(&t, "config");
	if (!res_query(db, &t, 0, &e,
		       "SELECT config FROM v_tunes WHERE reason "
		       "LIKE 'fastest in %'",
		       ""))
		BUG("%s", e.msg);
	for (f->n = 0; f->n < t.n_rows && f->n < TUNE_DRAWN_MOST; f->n++) {
		snprintf(f->config[f->n], TUNE_TEXT, "%s", t.row[f->n][0]);
		simulate_one(p, f->config[f->n], f->s[f->n]);
	}
	table_fini(&t);
	res_close(db);
}

static int least_behind(const struct finalists *f, double *worst)
{
	int best = -1;

	for (int i = 0; i < f->n; i++) {
		double mine = 0;

		for (int k = 0; k < COST_DRAWS; k++)
			for (int other = 0; other < f->n; other++)
				mine = fmax(mine, f->s[i][k] / f->s[other][k]);
		if (best < 0 || mine < *worst) {
			best = i;
			*worst = mine;
		}
	}
	return best;
}

static void test_search(void)
{
	struct tune_problem p = { .m = 512, .n = 512, .k = 512, .batch = 1 };
	static struct finalists f;
	struct tune_outcome out, again;
	struct err e = { 0 };
	double worst = NAN;

	ok(tune_op_parse("bf16", NULL, NULL, &p.op, &e), "512 cubed");
	if (!search_one(&p, &out))
		return;
	find_finalists(&p, &f);
	is_i64(f.n, 4, "as many finalists as the budget has");
	const int best = least_behind(&f, &worst);
	is_str(out.config, f.config[best],
	       "best is who is least behind at "
	       "worst");
	ok(fabs(out.standing.worst - worst) < 1e-9, "by %.4f", worst);
	is_i64(out.standing.draws, COST_DRAWS, "of all draws");
	for (int i = 0; i < f.n; i++)
		if (!strcmp(f.config[i], out.second))
			ok(out.second_standing.least <=
					   f.s[i][0] / f.s[best][0] + 1e-9 &&
				   out.second_standing.most >=
					   f.s[i][0] / f.s[best][0] - 1e-9,
			   "how far the second is behind holds the costs as "
			   "they are");
	for (int i = 0; i < f.n; i++)
		if (f.s[i][0] < f.s[best][0])
			ok(*out.fastest && out.fastest_s <= f.s[i][0] + 1e-12,
			   "who is faster with the costs as they are is "
			   "named");
	ok(search_one(&p, &again) && again.stored, "the same again is known");
	ok(again.standing.won == out.standing.won &&
		   again.standing.draws == out.standing.draws &&
		   fabs(again.standing.worst - worst) < 1e-4 &&
		   fabs(again.second_standing.most - out.second_standing.most) <
			   1e-4,
	   "with how it stands");
	is_str(again.fastest, out.fastest, "and who was passed over");
}

int main(void)
{
	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t.db", dir);
	cost_init(&costs, TUNE_CHIP);
	test_planted();
	test_search();
	cost_fini(&costs);
	remove_dir(dir);
	return plan_done();
}
