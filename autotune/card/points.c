/*
 * autotune/card/points.c - what is measured, and which parameter it tells.
 */
#include <string.h>

#include "autotune/card/card.h"
#include "probes/micro/micro.h"

static const struct card_point more[] = {
#define POINT(row, rule, area, name, metric, where) \
	{ COST_##row, CARD_##rule, area, name, metric, where },
#include "autotune/card/card.def"
};

static void add_point(struct card_list *l, const struct card_point *p)
{
	if (l->of[p->row] >= 0 || l->n == CARD_POINTS_MAX)
		return;
	l->of[p->row] = l->n;
	l->v[l->n++] = *p;
}

/* An instruction that stands for a row of cost.def. */
static void add_row(struct card_list *l, const char *row)
{
	const struct card_point p = { cost_row_find(row), CARD_ADD, "cost",
				      row, "value", "" };

	if (*row)
		add_point(l, &p);
}

void card_list_init(struct card_list *l)
{
	size_t n;
	const struct micro_inst *v = micro_insts(&n);

	l->n = 0;
	for (int row = 0; row < COST_ROW_COUNT; row++)
		l->of[row] = -1;
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		add_point(l, &more[i]);
	for (size_t i = 0; i < n; i++) {
		add_row(l, v[i].latency);
		add_row(l, v[i].interval);
	}
}
