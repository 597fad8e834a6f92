/*
 * base/unit.c - values in units of their size.
 */
#include <math.h>
#include <string.h>

#include "base/base.h"

/* `unit` and what stands for `least` of it and more, the greatest first. */
static const struct step {
	const char *unit, *scaled;
	double least;
} steps[] = {
	{ "s", "min", 120 },	     { "s", "s", 1 },
	{ "s", "ms", 1e-3 },	     { "s", "\xc2\xb5s", 1e-6 },
	{ "s", "ns", 0 },	     { "B", "TiB", 0x1p40 },
	{ "B", "GiB", 0x1p30 },	     { "B", "MiB", 0x1p20 },
	{ "B", "KiB", 0x1p10 },	     { "B/s", "TB/s", 1e12 },
	{ "B/s", "GB/s", 1e9 },	     { "B/s", "MB/s", 1e6 },
	{ "Hz", "GHz", 1e9 },	     { "Hz", "MHz", 1e6 },
	{ "FLOP/s", "TFLOP/s", 1e12 }, { "FLOP/s", "GFLOP/s", 1e9 },
	{ "FLOP/s", "MFLOP/s", 1e6 },  { "op/s", "Gop/s", 1e9 },
	{ "op/s", "Mop/s", 1e6 },
};

double unit_scale(double value, const char *unit, const char **scaled)
{
	const double size = fabs(value);

	*scaled = unit;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && isfinite(value); i++) {
		const struct step *s = &steps[i];

		if (strcmp(unit, s->unit) || size < s->least || size == 0)
			continue;
		*scaled = s->scaled;
		if (s->least == 120)
			return 1 / 60.0;
		return s->least > 0 ? 1 / s->least : 1e9;
	}
	return 1;
}

void unit_print(struct buf *out, double value, const char *unit)
{
	const char *scaled;
	const double by = unit_scale(value, unit, &scaled);

	buf_printf(out, "%.4g %s", value * by, scaled);
}
