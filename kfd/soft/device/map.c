/*
 * kfd/soft/device/map.c - the address maps: from a card's addresses to host
 * memory.
 *
 * Readers hold it for a slice and may keep pointers that long; writers wait
 * for the slices in progress, and no new one begins before they are done.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kfd/soft/device/dev.h"

void soft_map_init(struct soft_dev *d)
{
	pthread_rwlockattr_t a;

	/* MAP must get in between the slices of busy waves. */
	pthread_rwlockattr_init(&a);
	pthread_rwlockattr_setkind_np(
		&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (size_t i = 0; i < ARRAY_SIZE(d->gate); i++)
		pthread_rwlock_init(&d->gate[i].lock, &a);
	pthread_rwlockattr_destroy(&a);
}

void soft_map_fini(struct soft_dev *d)
{
	for (unsigned i = 0; i < d->n_cards; i++)
		free(d->card[i].map.v);
	for (size_t i = 0; i < ARRAY_SIZE(d->gate); i++)
		pthread_rwlock_destroy(&d->gate[i].lock);
}

/* Threads differ in the address that names them, by the size of a stack. */
static pthread_rwlock_t *my_gate(struct soft_dev *d)
{
	const uint64_t self = (uint64_t)(uintptr_t)pthread_self();
	const uint64_t i = self * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	return &d->gate[i % ARRAY_SIZE(d->gate)].lock;
}

void soft_map_hold(struct soft_dev *d)
{
	pthread_rwlock_rdlock(my_gate(d));
}

void soft_map_release(struct soft_dev *d)
{
	pthread_rwlock_unlock(my_gate(d));
}

void soft_map_hold_alone(struct soft_dev *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->gate); i++)
		pthread_rwlock_wrlock(&d->gate[i].lock);
}

void soft_map_release_alone(struct soft_dev *d)
{
	for (size_t i = ARRAY_SIZE(d->gate); i-- > 0;)
		pthread_rwlock_unlock(&d->gate[i].lock);
}

/* Index of the first range that ends after va. */
static size_t map_search(const struct soft_map *m, uint64_t va)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;

		if (m->v[mid].va + m->v[mid].size_bytes <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool soft_map_is_free(const struct soft_map *m, uint64_t va, uint64_t size)
{
	const size_t i = map_search(m, va);

	return i == m->n || va + size <= m->v[i].va;
}

/* The caller has made sure that the room is free. */
void soft_map_insert(struct soft_card *c, const struct soft_range *r)
{
	struct soft_map *m = &c->map;
	size_t i;

	soft_map_hold_alone(c->dev);
	vec_reserve(m, 1);
	i = map_search(m, r->va);
	memmove(&m->v[i + 1], &m->v[i], (m->n - i) * sizeof(*m->v));
	m->v[i] = *r;
	m->n++;
	if (r->flags & SOFT_MEM_EXEC)
		__atomic_add_fetch(&m->code_epoch, 1, __ATOMIC_RELAXED);
	soft_map_release_alone(c->dev);
}

void soft_map_remove(struct soft_card *c, uint64_t va)
{
	struct soft_map *m = &c->map;
	const size_t i = map_search(m, va);

	if (i == m->n || m->v[i].va != va)
		return;
	soft_map_hold_alone(c->dev);
	if (m->v[i].flags & SOFT_MEM_EXEC)
		__atomic_add_fetch(&m->code_epoch, 1, __ATOMIC_RELAXED);
	memmove(&m->v[i], &m->v[i + 1], (m->n - i - 1) * sizeof(*m->v));
	m->n--;
	soft_map_release_alone(c->dev);
}

void soft_map_replace_held(struct soft_card *c, uint64_t lo, uint64_t hi,
			   const struct soft_range *r, size_t n)
{
	struct soft_map *m = &c->map;
	size_t i, end;

	vec_reserve(m, n);
	i = end = map_search(m, lo);
	while (end < m->n && m->v[end].va < hi)
		end++;
	memmove(&m->v[i + n], &m->v[end], (m->n - end) * sizeof(*m->v));
	if (n)
		memcpy(&m->v[i], r, n * sizeof(*r));
	m->n = m->n - (end - i) + n;
	__atomic_add_fetch(&m->code_epoch, 1, __ATOMIC_RELAXED);
}

void soft_map_replace(struct soft_card *c, uint64_t lo, uint64_t hi,
		      const struct soft_range *r, size_t n)
{
	soft_map_hold_alone(c->dev);
	soft_map_replace_held(c, lo, hi, r, n);
	soft_map_release_alone(c->dev);
}

bool soft_map_find(void *ctx, uint64_t va, struct soft_range *out)
{
	const struct soft_map *m = &((struct soft_card *)ctx)->map;
	const size_t i = map_search(m, va);

	if (i == m->n || va < m->v[i].va)
		return false;
	*out = m->v[i];
	return true;
}

void *soft_map_at(struct soft_card *c, uint64_t va, uint64_t size, uint32_t need)
{
	struct soft_range r;

	if (!soft_map_find(c, va, &r) || (r.flags & need) != need ||
	    size > r.size_bytes - (va - r.va))
		return NULL;
	return r.host + (va - r.va);
}
