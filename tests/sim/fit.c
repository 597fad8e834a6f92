/*
 * The automatic fit: it finds parameters that made a measurement, from one group
 * or from several; a group that is left out tells it nothing.
 */
#include <math.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "tests/tap.h"

/* Kernels that cost.def names, and one that it does not. */
static const char *const groups[] = { "E_3", "r_32_32_16_2", "discover_ops",
				      "nobody" };
enum { E3, R32, DISCOVER, NOBODY };

struct truth {
	double dram[4], then_smem; /* what each group says it is */
	int asked[4];
};

/* A measurement that is met where the parameters are the true ones. */
static bool loss_of(void *ctx, int group, enum cost_fit_by by,
		    const struct cost_model *m, double *loss, struct err *e)
{
	struct truth *t = ctx;

	(void)by;
	(void)e;
	t->asked[group]++;
	*loss = fabs(cost_value(m, COST_DRAM_LAT) - t->dram[group]) / 100;
	if (group == R32)
		*loss += fabs(cost_value(m, COST_SALU_TO_SMEM) - t->then_smem);
	return true;
}

static void test_table(void)
{
	const struct cost_fit *f;
	int n;

	f = cost_fits(&n);
	ok(n > 0, "%d rows are fitted", n);
	for (int i = 0; i < n; i++) {
		double v = cost_row_info(f[i].row)->value;

		ok(v >= f[i].least && v <= f[i].most &&
		   f[i].from >= f[i].least && f[i].from <= f[i].most &&
		   f[i].step > 0, "%s lies in its range",
		   cost_row_info(f[i].row)->name);
	}
	const struct cost_fit made = { .on = "one|two words|three" };
	ok(cost_fit_names(&made, "one") && cost_fit_names(&made, "two words") &&
	   cost_fit_names(&made, "three"), "names between bars are found");
	ok(!cost_fit_names(&made, "two") && !cost_fit_names(&made, "") &&
	   !cost_fit_names(&made, "threefold"), "parts of them are not");
	ok(!cost_fit_find(COST_N_WGP), "what AMD states was not fitted");
	ok(fit_knows("E_3") && !fit_knows("nobody"), "kernels that were used");
}

static void test_found(const struct cost_model *base)
{
	struct truth t = { .dram = { 150, 150, 150, 150 }, .then_smem = 13 };
	struct fit_data d = { groups, 4, loss_of, &t, NULL };
	struct cost_model m = *base;
	struct err e = { 0 };

	ok(fit_costs(&m, &d, -1, &e), "a fit to all: %s", e.msg);
	ok(fabs(cost_value(&m, COST_DRAM_LAT) - 150) <=
	   cost_fit_find(COST_DRAM_LAT)->step, "finds 150: %g",
	   cost_value(&m, COST_DRAM_LAT));
	is_f64(cost_value(&m, COST_SALU_TO_SMEM), 13, "and 13");
	is_i64(t.asked[NOBODY], 0, "a kernel that no row names has no say");
	is_f64(cost_value(&m, COST_TLB_LAT), cost_fit_find(COST_TLB_LAT)->from,
	       "what nothing tells stays at its beginning");
	is_f64(cost_value(&m, COST_L2_LAT), cost_value(base, COST_L2_LAT),
	       "rows without a FIT stay as they are");
}

static void test_left_out(const struct cost_model *base)
{
	/* E_3 says something else than the two others. */
	struct truth t = { .dram = { 290, 120, 120, 120 }, .then_smem = 13 };
	struct fit_data d = { groups, 4, loss_of, &t, NULL };
	struct cost_model m = *base;
	struct err e = { 0 };

	ok(fit_costs(&m, &d, E3, &e), "without E_3: %s", e.msg);
	is_i64(t.asked[E3], 0, "it is never asked");
	ok(fabs(cost_value(&m, COST_DRAM_LAT) - 120) <=
	   cost_fit_find(COST_DRAM_LAT)->step, "the others decide: %g",
	   cost_value(&m, COST_DRAM_LAT));
	is_f64(cost_value(&m, COST_SALU_TO_SMEM),
	       cost_value(base, COST_SALU_TO_SMEM),
	       "what was not fitted on it stays");
	m = *base;
	ok(fit_costs(&m, &d, R32, &e), "without r_32_32_16_2: %s", e.msg);
	is_f64(cost_value(&m, COST_SALU_TO_SMEM),
	       cost_fit_find(COST_SALU_TO_SMEM)->from,
	       "a parameter with no other kernel is what it was before");
}

static void test_stop(const struct cost_model *base)
{
	_Atomic int stop = 1;
	struct truth t = { .dram = { 150 } };
	struct fit_data d = { groups, 4, loss_of, &t, &stop };
	struct cost_model m = *base;
	struct err e = { 0 };

	ok(!fit_costs(&m, &d, -1, &e) && e.code == ERR_STOPPED,
	   "it can be stopped: %s", e.msg);
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	test_table();
	test_found(&m);
	test_left_out(&m);
	test_stop(&m);
	cost_fini(&m);
	return plan_done();
}
