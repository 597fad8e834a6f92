/*
 * compiler/sim/examine/order.c - are products in the order that was published?
 *
 * Of one source only, whose card, clock and way of measuring are the same, and
 * of times that differ by more than what is measured twice does.
 */
#include "compiler/sim/examine/examine_int.h"

#define DIFFERS 1.1
#define SMALL	2048 /* no side of the product is larger */

enum order { ORDER_SHAPE, ORDER_SMALL, ORDERS };
static const char *const names[ORDERS] = {
	[ORDER_SHAPE] = "order of one shape",
	[ORDER_SMALL] = "order of small shapes",
};

struct tally {
	int pairs, right;
};

static const struct others_row *product_of(const struct exam *x,
					   const struct exam_row *row)
{
	if (row->set != EXAM_GEMM && row->set != EXAM_SPLIT &&
	    row->set != EXAM_TILES)
		return NULL;
	return row->at < 0 ? NULL : &x->published[row->at];
}

static bool is_small(const struct others_row *p)
{
	return p->m <= SMALL && p->n <= SMALL && p->k <= SMALL;
}

static bool is_pair(const struct others_row *p, const struct others_row *q,
		    enum order order)
{
	bool same = p->m == q->m && p->n == q->n && p->k == q->k;

	return order == ORDER_SHAPE ? same :
				      !same && is_small(p) && is_small(q);
}

/* Of rows a and b of x. */
static void count_pair(const struct exam *x, int a, int b, enum order order,
		       struct tally *t)
{
	const struct exam_row *u = &x->row[a], *v = &x->row[b];
	const struct others_row *p = product_of(x, u), *q = product_of(x, v);
	const double ratio = u->reference / v->reference;

	if (!p || !q || !is_pair(p, q, order) ||
	    (ratio < DIFFERS && ratio > 1 / DIFFERS))
		return;
	t->pairs++;
	t->right += (ratio > 1) == (u->predicted > v->predicted);
}

static struct tally count_group(const struct exam *x, int group,
				enum order order)
{
	struct tally t = { 0 };

	for (int a = 0; a < x->n_rows; a++)
		for (int b = 0; b < a && x->row[a].group == group; b++)
			if (x->row[b].group == group)
				count_pair(x, a, b, order, &t);
	return t;
}

static void list_tally(struct table *t, enum order order, const char *group,
		       struct tally n)
{
	if (!n.pairs)
		return;
	table_row(t);
	table_cell(t, 0, "%s", names[order]);
	table_cell(t, 1, "%s", group);
	table_cell(t, 2, "%d", n.pairs);
	table_cell(t, 3, "%d", n.right);
	table_cell(t, 4, "%.1f", 100.0 * n.right / n.pairs);
}

bool exam_print_order(const struct exam *x, struct err *e)
{
	struct table t;

	table_init(&t, "set,left_out,#pairs,#right,#right_percent");
	for (enum order order = 0; order < ORDERS; order++) {
		struct tally all = { 0 };

		for (int g = 0; g < x->n_groups; g++) {
			struct tally n = count_group(x, g, order);

			list_tally(&t, order, x->group[g].name, n);
			all.pairs += n.pairs;
			all.right += n.right;
		}
		list_tally(&t, order, "each", all);
	}
	bool ok = table_print(&t, x->o->format, x->o->out, e);
	table_fini(&t);
	return ok;
}
