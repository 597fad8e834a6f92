/*
 * compiler/sim/examine/range.c - how far simulated times are off.
 */
#include "compiler/sim/examine/examine.h"

static const struct sim_range ranges[] = {
#define TIME_RANGE(id, least, most, rows, of) \
	[SIM_RANGE_##id] = { least, most, rows, of },
#include "compiler/sim/examine/range.def"
};

const struct sim_range *sim_range(enum sim_range_id id)
{
	return &ranges[id];
}
