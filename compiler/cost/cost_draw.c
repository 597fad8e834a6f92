/*
 * compiler/cost/cost_draw.c - what costs that nobody has measured may be.
 *
 * A Latin hypercube: the range of each row is cut into as many equal parts, of
 * the logarithm, as there are draws, and each draw has the middle of another
 * one, in an order that differs from row to row.
 */
#include <math.h>
#include <string.h>

#include "compiler/cost/cost.h"

/* Units of what one card has as another: sizes, and the clock of all. */
static const char *const certain[] = { "B", "lane", "MHz", "" };

/* It may be so many times as much, or as little. */
static double spread_of(const struct cost_model *m, enum cost_row row)
{
	const struct cost_row_info *info = cost_row_info(row);

	if (m->row[row].origin > COST_DEFAULT)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(certain); i++)
		if (!strcmp(info->unit, certain[i]))
			return 1;
	if (info->confidence == 'L')
		return 2;
	/* What is known of another chip only is as good as what is derived. */
	return info->confidence == 'M' || m->row[row].origin == COST_GUESS ?
		       1.25 :
		       1;
}

/* Which part of the range of this row a draw has, 0..COST_DRAWS - 2. */
static int part_of(enum cost_row row, int draw)
{
	enum { PARTS = COST_DRAWS - 1 };
	uint64_t state = row;
	int part[PARTS];

	for (int i = 0; i < PARTS; i++)
		part[i] = i;
	for (int i = PARTS; i > 1; i--) {
		const int k = (int)(random_next(&state) % (uint64_t)i);
		const int x = part[i - 1];

		part[i - 1] = part[k];
		part[k] = x;
	}
	return part[draw - 1];
}

static double draw_row(const struct cost_model *m, enum cost_row row, int draw)
{
	const double spread = spread_of(m, row), value = cost_value(m, row);
	const int parts = COST_DRAWS - 1;

	if (spread == 1 || !(value > 0))
		return value;
	const double at = (2 * part_of(row, draw) + 1.0) / parts - 1;
	const double v = value * pow(spread, at);
	const bool whole = !strcmp(cost_row_info(row)->unit, "cycle");

	return whole ? fmax(floor(v + 0.5), 1) : v;
}

void cost_draw(const struct cost_model *m, int draw, struct cost_model *out)
{
	static const enum cost_row level[] = { COST_L0_LAT, COST_L1_LAT,
					       COST_L2_LAT };

	*out = *m;
	if (!draw)
		return;
	for (int row = 0; row < COST_ROW_COUNT; row++)
		out->row[row].value = draw_row(m, row, draw);
	/* Whoever missed in a cache has looked there first. */
	for (size_t i = 1; i < ARRAY_SIZE(level); i++)
		out->row[level[i]].value = fmax(out->row[level[i]].value,
						out->row[level[i - 1]].value);
}
