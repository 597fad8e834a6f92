/*
 * engine/serve/pages.c - who has which block of a paged cache.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/vec.h"
#include "engine/serve/serve.h"

#define NONE UINT32_MAX

/* What a name stands for; `before` is 0 for a first block. */
struct key {
	uint64_t before;
	uint32_t id[QWEN_BLOCK];
};

struct block {
	uint32_t held; /* by so many tables */
	uint64_t name; /* 0: it has none */
	struct key key;
	uint32_t chain;	       /* the next of its bucket */
	uint32_t older, newer; /* remembered ones, by when they were let go */
};

struct qwen_pages {
	struct block *block; /* [n] */
	uint32_t n;
	uint32_t *free, n_free; /* the next one last */
	uint32_t *bucket;	/* [mask + 1] */
	uint32_t mask;
	uint32_t oldest, newest, remembered;
	uint64_t names; /* given out */
};

struct qwen_pages *qwen_pages_new(uint32_t blocks)
{
	struct qwen_pages *p = xcalloc(1, sizeof(*p));

	*p = (struct qwen_pages){ .n = blocks, .oldest = NONE, .newest = NONE };
	p->block = xcalloc(blocks, sizeof(*p->block));
	p->free = xcalloc(blocks, sizeof(*p->free));
	while (p->n_free < blocks) {
		p->free[p->n_free] = blocks - 1 - p->n_free;
		p->n_free++;
	}
	while (p->mask < blocks)
		p->mask = p->mask * 2 + 1;
	p->bucket = xmalloc(((size_t)p->mask + 1) * sizeof(*p->bucket));
	for (size_t i = 0; i <= p->mask; i++)
		p->bucket[i] = NONE;
	return p;
}

void qwen_pages_free(struct qwen_pages *p)
{
	if (!p)
		return;
	free(p->block);
	free(p->free);
	free(p->bucket);
	free(p);
}

uint32_t qwen_pages_left(const struct qwen_pages *p)
{
	return p->n_free + p->remembered;
}

/* ---- names ---- */

static uint32_t *bucket_of(const struct qwen_pages *p, const struct key *k)
{
	return &p->bucket[XXH3_64bits(k, sizeof(*k)) & p->mask];
}

static struct key key_of(uint64_t before, const uint32_t *ids)
{
	struct key k = { .before = before };

	memcpy(k.id, ids, sizeof(k.id));
	return k;
}

static uint32_t name_find(const struct qwen_pages *p, const struct key *k)
{
	uint32_t b = *bucket_of(p, k);

	while (b != NONE && memcmp(&p->block[b].key, k, sizeof(*k)) != 0)
		b = p->block[b].chain;
	return b;
}

static void name_give(struct qwen_pages *p, uint32_t b, const struct key *k)
{
	uint32_t *bucket = bucket_of(p, k);

	p->block[b].key = *k;
	p->block[b].name = ++p->names;
	p->block[b].chain = *bucket;
	*bucket = b;
}

static void name_take(struct qwen_pages *p, uint32_t b)
{
	uint32_t *at = bucket_of(p, &p->block[b].key);

	while (*at != b)
		at = &p->block[*at].chain;
	*at = p->block[b].chain;
	p->block[b].name = 0;
}

/* ---- holding ---- */

static void remember_block(struct qwen_pages *p, uint32_t b)
{
	p->block[b].older = p->newest;
	p->block[b].newer = NONE;
	*(p->newest == NONE ? &p->oldest : &p->block[p->newest].newer) = b;
	p->newest = b;
	p->remembered++;
}

static void unlink_block(struct qwen_pages *p, uint32_t b)
{
	const struct block *v = &p->block[b];

	*(v->older == NONE ? &p->oldest : &p->block[v->older].newer) = v->newer;
	*(v->newer == NONE ? &p->newest : &p->block[v->newer].older) = v->older;
	p->remembered--;
}

static void hold_block(struct qwen_pages *p, uint32_t b)
{
	if (!p->block[b].held++ && p->block[b].name)
		unlink_block(p, b);
}

static void release_block(struct qwen_pages *p, uint32_t b)
{
	if (--p->block[b].held)
		return;
	if (p->block[b].name)
		remember_block(p, b);
	else
		p->free[p->n_free++] = b;
}

/* A block without a name, held once; there is one left. */
static uint32_t take_block(struct qwen_pages *p)
{
	uint32_t b = p->oldest;

	if (p->n_free) {
		b = p->free[--p->n_free];
	} else {
		unlink_block(p, b);
		name_take(p, b);
	}
	p->block[b].held = 1;
	return b;
}

/* ---- tables ---- */

static void append_block(struct qwen_table *t, uint32_t b)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 8;
		t->block = xrealloc(t->block, t->cap * sizeof(*t->block));
		t->name = xrealloc(t->name, t->cap * sizeof(*t->name));
	}
	t->block[t->n++] = b;
}

/* The name before block i. */
static uint64_t name_before(const struct qwen_table *t, uint32_t i)
{
	return i ? t->name[i - 1] : 0;
}

uint32_t qwen_pages_find(struct qwen_pages *p, struct qwen_table *t,
			 const uint32_t *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n / QWEN_BLOCK; i++) {
		struct key k =
			key_of(name_before(t, i), ids + (size_t)i * QWEN_BLOCK);
		uint32_t b = name_find(p, &k);
		if (b == NONE)
			break;
		hold_block(p, b);
		append_block(t, b);
		t->name[t->named++] = p->block[b].name;
	}
	t->length = t->n * QWEN_BLOCK;
	return t->length;
}

bool qwen_pages_extend(struct qwen_pages *p, struct qwen_table *t, uint32_t n,
		       struct qwen_copy *copy)
{
	const uint64_t length = (uint64_t)t->length + n;
	const uint64_t blocks = (length + QWEN_BLOCK - 1) / QWEN_BLOCK;
	uint32_t *last = t->length % QWEN_BLOCK ? &t->block[t->n - 1] : NULL;

	*copy = (struct qwen_copy){ 0 };
	copy->wanted = last &&
		       (p->block[*last].held > 1 || p->block[*last].name);
	if (length > UINT32_MAX ||
	    blocks - t->n + copy->wanted > qwen_pages_left(p))
		return false;
	if (copy->wanted) {
		copy->from = *last;
		copy->to = *last = take_block(p);
		release_block(p, copy->from);
	}
	while (t->n < blocks)
		append_block(t, take_block(p));
	t->length = (uint32_t)length;
	return true;
}

void qwen_pages_name(struct qwen_pages *p, struct qwen_table *t,
		     const uint32_t *ids)
{
	for (uint32_t i = t->named; i < t->length / QWEN_BLOCK; i++) {
		struct key k =
			key_of(name_before(t, i), ids + (size_t)i * QWEN_BLOCK);
		uint32_t b = name_find(p, &k);
		if (b == NONE) {
			b = t->block[i];
			if (p->block[b].held > 1)
				break;
			name_give(p, b, &k);
		} else if (b != t->block[i]) {
			hold_block(p, b);
			release_block(p, t->block[i]);
			t->block[i] = b;
		}
		t->name[t->named++] = p->block[b].name;
	}
}

void qwen_pages_fork(struct qwen_pages *p, struct qwen_table *to,
		     const struct qwen_table *from)
{
	for (uint32_t i = 0; i < from->n; i++) {
		hold_block(p, from->block[i]);
		append_block(to, from->block[i]);
	}
	if (from->named)
		memcpy(to->name, from->name,
		       from->named * sizeof(*to->name));
	to->named = from->named;
	to->length = from->length;
}

void qwen_pages_truncate(struct qwen_pages *p, struct qwen_table *t, uint32_t n)
{
	if (n >= t->length)
		return;
	t->length = n;
	while (t->n > (n + QWEN_BLOCK - 1) / QWEN_BLOCK)
		release_block(p, t->block[--t->n]);
	if (t->named > n / QWEN_BLOCK)
		t->named = n / QWEN_BLOCK;
}

void qwen_pages_drop(struct qwen_pages *p, struct qwen_table *t)
{
	qwen_pages_truncate(p, t, 0);
	free(t->block);
	free(t->name);
	*t = (struct qwen_table){ 0 };
}
