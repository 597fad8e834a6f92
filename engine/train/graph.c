/*
 * engine/train/graph.c - operations, values, and where they lie.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/train/train.h"

static const struct {
	const char *name, *operands;
} kind[] = {
#define OP(name, operands) { #name, operands },
#include "engine/train/ops.def"
#undef OP
};

const char *train_kind_name(enum train_kind k)
{
	return kind[k].name;
}

const char *train_kind_operands(enum train_kind k)
{
	return kind[k].operands;
}

void train_graph_fini(struct train_graph *g)
{
	free(g->value);
	free(g->op);
	free(g->param);
	*g = (struct train_graph){ 0 };
}

uint32_t train_value_add(struct train_graph *g, enum train_home home,
			 size_t rows, size_t cols, uint32_t width)
{
	VEC_GROW(g->value, g->n_values, 1, g->cap_values);
	g->value[g->n_values] = (struct train_value){
		.home = home, .width = width, .rows = rows, .cols = cols,
		.first = UINT32_MAX,
	};
	return g->n_values++;
}

struct train_op *train_op_add(struct train_graph *g, enum train_kind k,
			      const uint32_t *v, unsigned n)
{
	VEC_GROW(g->op, g->n_ops, 1, g->cap_ops);
	struct train_op *op = &g->op[g->n_ops];

	*op = (struct train_op){ .kind = k };
	if (n != strlen(kind[k].operands))
		BUG("%s has %zu operands; got %u", kind[k].name,
		    strlen(kind[k].operands), n);
	for (unsigned i = 0; i < n; i++) {
		op->v[i] = v[i];
		if (v[i] == TRAIN_NONE) {
			if (!isupper(kind[k].operands[i]))
				BUG("%s: operand %u is missing", kind[k].name,
				    i);
			continue;
		}
		struct train_value *x = &g->value[v[i]];
		x->first = g->n_ops < x->first ? g->n_ops : x->first;
		x->last = g->n_ops;
	}
	g->n_ops++;
	return op;
}

/* ---- memory ---- */

#define ALIGN 64

static bool value_bytes(const struct train_value *x, size_t *out)
{
	size_t n;

	if (!size_mul(x->rows, x->cols, &n) || !size_mul(n, x->width, &n) ||
	    !size_add(n, ALIGN - 1, &n))
		return false;
	*out = n / ALIGN * ALIGN;
	return true;
}

/* A passing value on its way to a place. */
struct placed {
	uint32_t value;
	size_t from, bytes;
};

static int compare_size(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) :
				      (x->value > y->value) -
					      (x->value < y->value);
}

static int compare_place(const void *a, const void *b)
{
	const struct placed *const *x = a, *const *y = b;

	return ((*x)->from > (*y)->from) - ((*x)->from < (*y)->from);
}

static bool meet_in_time(const struct train_value *a,
			 const struct train_value *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/*
 * The lowest gap that is wide enough among those that are there at the same
 * time; the largest come first, so that small ones fill what they leave.
 */
static size_t find_gap(const struct train_graph *g, const struct placed *p,
		       size_t n, const struct placed **there)
{
	const struct train_value *x = &g->value[p[n].value];
	size_t k = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		if (meet_in_time(x, &g->value[p[i].value]))
			there[k++] = &p[i];
	qsort(there, k, sizeof(const struct placed *), compare_place);
	for (size_t i = 0; i < k; i++) {
		if (there[i]->from >= at && there[i]->from - at >= p[n].bytes)
			break;
		if (there[i]->from + there[i]->bytes > at)
			at = there[i]->from + there[i]->bytes;
	}
	return at;
}

static void place_passing(struct train_graph *g, struct placed *p, size_t n)
{
	const struct placed **there = xcalloc(n + 1, sizeof(const struct placed *));

	qsort(p, n, sizeof(*p), compare_size);
	for (size_t i = 0; i < n; i++) {
		p[i].from = find_gap(g, p, i, there);
		g->value[p[i].value].offset = g->kept + p[i].from;
		if (p[i].from + p[i].bytes > g->passing)
			g->passing = p[i].from + p[i].bytes;
	}
	free(there);
}

/* Nothing that passes is read before it is written. */
static void check_order(const struct train_graph *g)
{
	bool *written = xcalloc(g->n_values, sizeof(*written));

	for (uint32_t i = 0; i < g->n_ops; i++) {
		const struct train_op *op = &g->op[i];
		const char *how = kind[op->kind].operands;

		for (unsigned k = 0; how[k]; k++) {
			uint32_t v = op->v[k];
			int what = tolower(how[k]);
			bool reads = what == 'r' || what == 'a' ||
				     (what == 'x' && op->add);

			if (v == TRAIN_NONE ||
			    g->value[v].home != TRAIN_PASSING)
				continue;
			if (reads && !written[v])
				BUG("operation %u, %s: operand %u is read but "
				    "was not written", i,
				    kind[op->kind].name, k);
			written[v] |= what != 's';
		}
	}
	free(written);
}

bool train_memory_plan(struct train_graph *g, struct err *e)
{
	struct placed *p = xcalloc(g->n_values, sizeof(*p));
	size_t n = 0, all = 0, bytes;
	bool ok = true;

	check_order(g);
	g->kept = g->passing = 0;
	for (int home = 0; ok && home < TRAIN_PASSING; home++)
		for (uint32_t i = 0; ok && i < g->n_values; i++) {
			if ((int)g->value[i].home != home)
				continue;
			g->value[i].offset = g->kept;
			ok = value_bytes(&g->value[i], &bytes) &&
			     size_add(g->kept, bytes, &g->kept);
		}
	for (uint32_t i = 0; ok && i < g->n_values; i++) {
		if (g->value[i].home != TRAIN_PASSING ||
		    g->value[i].first == UINT32_MAX)
			continue;
		p[n].value = i;
		ok = value_bytes(&g->value[i], &p[n].bytes) &&
		     size_add(all, p[n].bytes, &all);
		n++;
	}
	ok = ok && size_add(all, g->kept, &all);
	if (ok)
		place_passing(g, p, n);
	else
		err_set(e, ERR_USAGE, "the memory of a step is more than a "
			"number holds; wanted a smaller batch or model");
	g->bytes = g->kept + g->passing;
	free(p);
	return ok;
}
