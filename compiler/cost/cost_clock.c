/*
 * compiler/cost/cost_clock.c - the clock that a power limit leaves.
 */
#include <math.h>

#include "compiler/cost/cost.h"

/* Of the time of a round, cycles at this clock and a pause. */
static double busy_share(double cycles, double idle_s, double mhz)
{
	return cycles / (cycles + idle_s * mhz * 1e6);
}

double cost_clock(const struct cost_model *m, double cycles, double idle_s)
{
	double low = cost_value(m, COST_CLOCK), sustained = low;
	double high = fmax(cost_value(m, COST_CLOCK_SHORT), low);
	double power = cost_value(m, COST_CLOCK_POWER), mhz = high;

	if (!(cycles > 0))
		return high;
	/* A higher clock takes more power in a smaller share of the time. */
	while (high - low > 1e-3) {
		if (pow(mhz / sustained, power) *
			    busy_share(cycles, idle_s, mhz) > 1)
			high = mhz;
		else
			low = mhz;
		mhz = (low + high) / 2;
	}
	return low;
}
