/*
 * engine/weights/cache.c - the keys and values of attention.
 */
#include <string.h>
#include <sys/mman.h>

#include "engine/weights/weights.h"

/* An INT8 vector: groups of 32 bytes, each with its scale as f32 behind it. */
#define INT8_GROUP_BYTES (QWEN_GROUP + 4)

static size_t vector_bytes(enum qwen_weights type, uint32_t n)
{
	switch (type) {
	case QWEN_W_F32:
		return 4 * (size_t)n;
	case QWEN_W_INT8:
		return n / QWEN_GROUP * (size_t)INT8_GROUP_BYTES;
	default:
		return 2 * (size_t)n;
	}
}

static uint8_t *map_pages(size_t size_bytes)
{
	void *p = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size_bytes, MADV_HUGEPAGE);
	return p;
}

bool qwen_cache_init(struct qwen_cache *c, uint32_t layers, struct err *e)
{
	uint64_t half;

	if (c->type >= QWEN_W_INT4 ||
	    (c->type == QWEN_W_INT8 && c->head_dim % QWEN_GROUP))
		return err_set(e, ERR_UNSUPPORTED, "a cache of %s for heads of "
			       "%u; wanted f32, f16 or bf16, or int8 for heads "
			       "that are multiples of %d",
			       qwen_weights_name(c->type), c->head_dim,
			       QWEN_GROUP);
	c->vector_bytes = vector_bytes(c->type, c->head_dim);
	half = (uint64_t)layers * c->sequences * c->kv_heads;
	if (__builtin_mul_overflow(half, c->positions * c->vector_bytes,
				   &half) || half > UINT64_MAX / 4)
		return err_set(e, ERR_USAGE, "%u sequences of %u positions "
			       "are too many", c->sequences, c->positions);
	c->size_bytes = 2 * half;
	c->key = map_pages(c->size_bytes);
	if (!c->key)
		return err_set(e, ERR_NOMEM, "no memory for a cache of %llu "
			       "bytes; fewer positions or int8 need less",
			       (unsigned long long)c->size_bytes);
	c->value = c->key + half;
	return true;
}

void qwen_cache_fini(struct qwen_cache *c)
{
	if (c->key)
		munmap(c->key, c->size_bytes);
	*c = (struct qwen_cache){ 0 };
}

size_t qwen_cache_at(const struct qwen_cache *c, uint32_t layer,
		     uint32_t sequence, uint32_t head, uint32_t position)
{
	size_t i = (size_t)layer * c->sequences + sequence;

	return (i * c->kv_heads + head) * c->positions + position;
}

void qwen_cache_put(const struct qwen_cache *c, uint8_t *part, size_t at,
		    const float *x)
{
	uint8_t *p = part + at * c->vector_bytes;
	float d, sum;

	if (c->type != QWEN_W_INT8) {
		c->k->narrow(c->type, x, c->head_dim, p);
		return;
	}
	for (uint32_t i = 0; i < c->head_dim; i += QWEN_GROUP) {
		struct qwen_quants q = { (int8_t *)p, &d, &sum, NULL };
		c->k->quantize(x + i, QWEN_GROUP, &q);
		memcpy(p + QWEN_GROUP, &d, sizeof(d));
		p += INT8_GROUP_BYTES;
	}
}

struct qwen_matrix qwen_cache_rows(const struct qwen_cache *c,
				   const uint8_t *part, size_t at, uint32_t n,
				   float *space)
{
	const uint8_t *p = part + at * c->vector_bytes;
	struct qwen_matrix m = { c->type, n, c->head_dim, p, NULL };

	if (c->type != QWEN_W_INT8)
		return m;
	m.type = QWEN_W_F32;
	m.data = space;
	for (size_t i = 0; i < (size_t)n * c->head_dim; i += QWEN_GROUP) {
		float d;
		memcpy(&d, p + QWEN_GROUP, sizeof(d));
		for (int j = 0; j < QWEN_GROUP; j++)
			space[i + j] = d * (int8_t)p[j];
		p += INT8_GROUP_BYTES;
	}
	return m;
}
