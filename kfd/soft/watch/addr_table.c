/*
 * kfd/soft/watch/addr_table.c - a hash table from addresses to pointers.
 */
#include <stdlib.h>

#include "kfd/soft/watch/watch_int.h"

#define FIRST_SLOTS 256 /* a power of two */

/* Open addressing: the entry with this key, or the free one for it. */
static struct addr_entry *find_entry(const struct addr_table *t, uint64_t key)
{
	const size_t mask = t->n_slots - 1;
	size_t i = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;

	while (t->slot[i].value && t->slot[i].key != key)
		i = (i + 1) & mask;
	return &t->slot[i];
}

static void grow_table(struct addr_table *t)
{
	const struct addr_table old = *t;

	t->n_slots = old.n_slots ? 2 * old.n_slots : FIRST_SLOTS;
	t->slot = xcalloc(t->n_slots, sizeof(*t->slot));
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slot[i].value)
			*find_entry(t, old.slot[i].key) = old.slot[i];
	free(old.slot);
}

void *addr_table_get(const struct addr_table *t, uint64_t key)
{
	return t->n_slots ? find_entry(t, key)->value : NULL;
}

void addr_table_put(struct addr_table *t, uint64_t key, void *value)
{
	struct addr_entry *x;

	if (2 * (t->n + 1) > t->n_slots)
		grow_table(t);
	x = find_entry(t, key);
	t->n += !x->value;
	*x = (struct addr_entry){ key, value };
}

void addr_table_fini(struct addr_table *t)
{
	free(t->slot);
	*t = (struct addr_table){ 0 };
}
