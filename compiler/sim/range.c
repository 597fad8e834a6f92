/*
 * compiler/sim/range.c - how far simulated times are off.
 */
#include <string.h>

#include "compiler/sim/sim.h"

static const struct sim_range ranges[] = {
#define TIME_RANGE(id, least, most, rows, of) \
	[SIM_RANGE_##id] = { least, most, rows, of },
#include "compiler/sim/range.def"
};

const struct sim_range *sim_range(enum sim_range_id id, const char *chip)
{
	return strcmp(chip, COST_CHIP) ? NULL : &ranges[id];
}
