/*
 * compiler/cost/cost_peaks.c - what a chip could do at most, by its costs.
 */
#include <math.h>

#include "compiler/cost/cost.h"
#include "results/db/results.h"

/* FLOP per cycle and SIMD: 16x16x16 products, or 32 lanes of pairs. */
double cost_wmma_rate(const struct cost_model *m)
{
	return 2 * 4096 / cost_value(m, COST_WMMA_ISSUE);
}

double cost_fma_rate(const struct cost_model *m)
{
	return 2 * 2 * 32 / cost_value(m, COST_VOPD_ISSUE);
}

static bool store_peak(struct res_db *db, int64_t run, const char *name,
		       const char *metric, const char *unit, double value,
		       struct err *e)
{
	struct res_result r = {
		.run = run, .metric = metric, .unit = unit, .value = value,
		.lo = value, .hi = value, .n = 1, .clock_hz = NAN,
		.better = RES_NEITHER, .origin = RES_SIMULATED,
	};

	return res_case_id(db, "peak", name, NULL, &r.case_id, e) &&
	       res_result_add(db, &r, NULL, e);
}

static bool store_flops(const struct cost_model *m, struct res_db *db,
			int64_t run, const char *pipe, double rate,
			enum cost_row clock, struct err *e)
{
	double hz = cost_value(m, clock) * 1e6;
	char name[64];

	snprintf(name, sizeof(name), "%s at %.1f GHz", pipe, hz / 1e9);
	return store_peak(db, run, name, "flops", "FLOP/s",
			  4 * cost_value(m, COST_N_WGP) * rate * hz, e);
}

bool cost_store_peaks(const struct cost_model *m, struct res_db *db,
		      int64_t run, struct err *e)
{
	double wmma = cost_wmma_rate(m), fma = cost_fma_rate(m);
	bool two = cost_value(m, COST_CLOCK) != cost_value(m, COST_CLOCK_SHORT);

	return store_flops(m, db, run, "WMMA", wmma, COST_CLOCK_SHORT, e) &&
	       (!two || store_flops(m, db, run, "WMMA", wmma, COST_CLOCK, e)) &&
	       store_flops(m, db, run, "FMA f32, dual", fma, COST_CLOCK_SHORT,
			   e) &&
	       store_peak(db, run, "Infinity Cache", "bandwidth", "B/s",
			  cost_value(m, COST_MALL_BW), e) &&
	       store_peak(db, run, "DRAM", "bandwidth", "B/s",
			  cost_value(m, COST_DRAM_BW), e);
}
