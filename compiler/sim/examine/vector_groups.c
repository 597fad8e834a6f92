/*
 * compiler/sim/examine/vector_groups.c - which waves of a trace are of one
 * workgroup.  No trace says so, but waves that wait for each other show it.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"

enum {
	WAVES_MOST = 16, /* of a workgroup on one SIMD: all its slots */
	/* From the last arrival to the next issue of all: 14 and more. */
	LEAST_CYCLES = 8,
	BARRIER = 0xbfbd, /* s_barrier, upper half of the word */
};

/* A wave comes to a barrier, and issues what is behind it. */
struct visit {
	uint64_t comes, goes;
};

struct visits {
	struct visit *v;
	int n;
};

static bool is_barrier(const struct vector *v, int event)
{
	uint16_t word;

	memcpy(&word, v->code + v->event[event].off + 2, sizeof(word));
	return word == BARRIER;
}

static struct visits find_visits(const struct vector *v, int wave)
{
	const struct vector_path *p = &v->path[wave];
	struct visits out = { xcalloc((size_t)p->n + 1, sizeof(*out.v)), 0 };

	for (int i = 0; i < p->n; i++) {
		int k = i + 1;

		if (p->event[i] < 0 || !is_barrier(v, p->event[i]))
			continue;
		while (k < p->n && p->event[k] < 0)
			k++;
		out.v[out.n++] = (struct visit){
			v->event[p->event[i]].cycle,
			k < p->n ? v->event[p->event[k]].cycle : UINT64_MAX,
		};
	}
	return out;
}

/* Can waves first..end-1 be of one workgroup? */
static bool can_meet(const struct visits *w, int first, int end)
{
	int n = w[first].n;

	for (int i = first; i < end; i++)
		n = w[i].n < n ? w[i].n : n;
	for (int b = 0; b < n; b++) {
		uint64_t last = 0, next = UINT64_MAX;

		for (int i = first; i < end; i++) {
			const struct visit *at = &w[i].v[b];

			last = at->comes > last ? at->comes : last;
			next = at->goes < next ? at->goes : next;
		}
		if (next < last + LEAST_CYCLES)
			return false;
	}
	return true;
}

static bool can_be_size(const struct visits *w, int n, int size)
{
	for (int i = 0; i < n; i += size)
		if (!can_meet(w, i, i + size < n ? i + size : n))
			return false;
	return true;
}

void vector_find_groups(struct vector *v)
{
	struct visits *w = xcalloc((size_t)v->n_waves, sizeof(*w));
	bool any = false;
	int size;

	for (int i = 0; i < v->n_waves; i++) {
		w[i] = find_visits(v, i);
		any |= w[i].n > 0;
	}
	size = v->n_waves < WAVES_MOST ? v->n_waves : WAVES_MOST;
	while (size > 1 && (!any || !can_be_size(w, v->n_waves, size)))
		size--;
	v->group_waves = size;
	for (int i = 0; i < v->n_waves; i++)
		free(w[i].v);
	free(w);
}
