/*
 * isa/verify/cfg_order.c - the order in which blocks are visited, loops and
 * strongly connected components.
 */
#include <stdlib.h>

#include "isa/verify/cfg_int.h"

/*
 * One depth-first walk gives reverse postorder, the targets of back edges and
 * (Tarjan) the strongly connected components.
 */
struct dfs {
	struct cfg *g;
	int *low, *num, *stack, *path;
	uint8_t *on; /* 1 on Tarjan's stack, 2 on the path */
	uint8_t *next;
	int n_stack, n_num, n_scc, at;
};

static void dfs_close(struct dfs *d, int b)
{
	struct cfg *g = d->g;

	g->rpo[--d->at] = b;
	d->on[b] &= ~2;
	if (d->low[b] != d->num[b])
		return;
	for (int x = -1; x != b;) {
		x = d->stack[--d->n_stack];
		d->on[x] &= ~1;
		g->block[x].scc = d->n_scc;
	}
	d->n_scc++;
}

static void dfs_open(struct dfs *d, int b, int func)
{
	d->low[b] = d->num[b] = ++d->n_num;
	d->stack[d->n_stack++] = b;
	d->on[b] = 3;
	d->g->block[b].func = func;
}

static void dfs_run(struct dfs *d, int root, int func)
{
	struct cfg *g = d->g;
	int depth = 0;

	if (d->num[root])
		return;
	dfs_open(d, root, func);
	d->path[depth++] = root;
	while (depth) {
		int b = d->path[depth - 1];
		int s = d->next[b] < 2 ? g->block[b].succ[d->next[b]++] : -2;

		if (s >= 0 && !d->num[s]) {
			dfs_open(d, s, func);
			d->path[depth++] = s;
		} else if (s >= 0) {
			if (d->on[s] & 2)
				g->block[s].header = true;
			if (d->on[s] & 1 && d->num[s] < d->low[b])
				d->low[b] = d->num[s];
		} else if (s == -2) {
			depth--;
			if (depth && d->low[b] < d->low[d->path[depth - 1]])
				d->low[d->path[depth - 1]] = d->low[b];
			dfs_close(d, b);
		}
	}
}

void cfg_order(struct cfg *g)
{
	int n = g->n_blocks + 1;
	struct dfs d = { .g = g, .at = g->n_blocks };

	d.low = xcalloc(n, sizeof(int));
	d.num = xcalloc(n, sizeof(int));
	d.stack = xcalloc(n, sizeof(int));
	d.path = xcalloc(n, sizeof(int));
	d.on = xcalloc(n, 1);
	d.next = xcalloc(n, 1);
	g->rpo = xcalloc(n, sizeof(int));
	for (int f = g->n_funcs - 1; f >= 0; f--)
		if (g->func[f].block >= 0)
			dfs_run(&d, g->func[f].block, f);
	for (int i = d.at; i < g->n_blocks; i++)
		g->block[g->rpo[i]].order = i;
	free(d.low);
	free(d.num);
	free(d.stack);
	free(d.path);
	free(d.on);
	free(d.next);
}
