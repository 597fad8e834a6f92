/*
 * compiler/sim/cache.c - tags of a set-associative cache, LRU.
 */
#include <stdlib.h>

#include "compiler/sim/sim_int.h"

void cache_init(struct cache *c, uint64_t bytes, uint32_t line, uint32_t ways)
{
	uint64_t sets = bytes / line / ways;

	c->sets = sets ? (uint32_t)sets : 1;
	c->ways = ways;
	c->clock = 0;
	c->tag = xcalloc((size_t)c->sets * ways, sizeof(*c->tag));
	c->ready = xcalloc((size_t)c->sets * ways, sizeof(*c->ready));
	c->used = xcalloc((size_t)c->sets * ways, sizeof(*c->used));
}

void cache_fini(struct cache *c)
{
	free(c->tag);
	free(c->ready);
	free(c->used);
	*c = (struct cache){ 0 };
}

uint64_t *cache_find(struct cache *c, uint64_t line, bool *hit)
{
	size_t set = line % c->sets * (size_t)c->ways, victim = set;

	c->clock++;
	for (size_t i = set; i < set + c->ways; i++) {
		if (c->tag[i] == line + 1) {
			c->used[i] = c->clock;
			*hit = true;
			return &c->ready[i];
		}
		if (c->used[i] < c->used[victim])
			victim = i;
	}
	c->tag[victim] = line + 1;
	c->used[victim] = c->clock;
	*hit = false;
	return &c->ready[victim];
}
