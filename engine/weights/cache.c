/*
 * engine/weights/cache.c - the keys and values of attention.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/weights/weights.h"

#define LARGE_PAGE ((size_t)2 << 20)

/* An INT8 vector: its integers, and a scale in f16 for each group of them. */
static size_t vector_bytes(enum qwen_weights type, uint32_t n)
{
	switch (type) {
	case QWEN_W_F32:
		return 4 * (size_t)n;
	case QWEN_W_INT8:
		return n + n / QWEN_GROUP * sizeof(uint16_t);
	default:
		return 2 * (size_t)n;
	}
}

/*
 * Large pages, but for the first run of each sequence: short texts take no more
 * than their own vectors.  Blocks are all large pages: they are full soon.
 */
static uint8_t *map_pages(const struct qwen_cache *c, uint64_t size_bytes)
{
	uint64_t part = size_bytes / c->sequences;
	uint8_t *p = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (c->blocks)
		madvise(p, size_bytes, MADV_HUGEPAGE);
	for (uint32_t s = 0; s < c->sequences && c->runs > 1 && !c->blocks;
	     s++) {
		uint8_t *from = p + s * part + part / c->runs;
		from += -(uintptr_t)from % LARGE_PAGE;
		if (from < p + (s + 1) * part)
			madvise(from, (size_t)(p + (s + 1) * part - from),
				MADV_HUGEPAGE);
	}
	return p;
}

bool qwen_cache_init(struct qwen_cache *c, struct err *e)
{
	uint64_t vectors = (uint64_t)c->layers * 2 * c->kv_heads;
	uint64_t mapped, count;

	if (c->type >= QWEN_W_INT4 ||
	    (c->type == QWEN_W_INT8 && c->head_dim % QWEN_GROUP))
		return err_set(e, ERR_UNSUPPORTED, "a cache of %s for heads of "
			       "%u; wanted f32, f16 or bf16, or int8 for heads "
			       "that are multiples of %d",
			       qwen_weights_name(c->type), c->head_dim,
			       QWEN_GROUP);
	c->run = c->positions < QWEN_RUN ? c->positions : QWEN_RUN;
	c->runs = (c->positions + c->run - 1) / c->run;
	c->together = c->blocks ? QWEN_BLOCK : c->run;
	count = c->blocks ? c->blocks : (uint64_t)c->sequences * c->runs;
	/* Whole cache lines, so that every head's begin with one. */
	c->together_bytes =
		(c->together * vector_bytes(c->type, c->head_dim) + 63) / 64 *
		64;
	if (__builtin_mul_overflow(vectors * c->together_bytes, count,
				   &mapped) ||
	    mapped > UINT64_MAX / 4)
		return err_set(e, ERR_USAGE, "%u sequences of %u positions "
			       "are too many", c->sequences, c->positions);
	c->size_bytes = vectors * vector_bytes(c->type, c->head_dim) *
			(c->blocks ? count * QWEN_BLOCK :
				     (uint64_t)c->sequences * c->positions);
	c->mapped_bytes = mapped;
	c->data = map_pages(c, mapped);
	if (c->data && c->blocks)
		c->table = xcalloc(c->sequences, sizeof(*c->table));
	return c->data ||
	       err_set(e, ERR_NOMEM, "no memory for a cache of %llu bytes; "
		       "fewer positions or int8 need less",
		       (unsigned long long)mapped);
}

void qwen_cache_fini(struct qwen_cache *c)
{
	if (c->data)
		munmap(c->data, c->mapped_bytes);
	free(c->table);
	*c = (struct qwen_cache){ 0 };
}

/*
 * The positions of a run or block of one head; what comes first is farthest
 * apart.
 */
static uint8_t *part_at(const struct qwen_cache *c, const struct qwen_place *p,
			uint32_t position)
{
	const uint32_t part = position / c->together;
	size_t i = c->blocks ? c->table[p->sequence][part] :
			       (size_t)p->sequence * c->runs + part;

	i = (i * c->layers + p->layer) * 2 + p->part;
	return c->data + (i * c->kv_heads + p->head) * c->together_bytes;
}

static void put_integers(const struct qwen_cache *c, uint8_t *run, uint32_t at,
			 const float *x)
{
	const uint32_t groups = c->head_dim / QWEN_GROUP;
	uint16_t *scale = (uint16_t *)(run + (size_t)c->together * c->head_dim) +
			  (size_t)at * groups;
	float d[QWEN_PAD / QWEN_GROUP], sum[QWEN_PAD / QWEN_GROUP];

	for (uint32_t g = 0, n; g < groups; g += n) {
		n = groups - g < ARRAY_SIZE(d) ? groups - g : ARRAY_SIZE(d);
		const struct qwen_quants q = {
			(int8_t *)run + (size_t)at * c->head_dim +
				(size_t)g * QWEN_GROUP,
			d, sum, NULL
		};
		c->k->quantize(x + (size_t)g * QWEN_GROUP, n * QWEN_GROUP, &q);
		c->k->narrow(QWEN_W_F16, d, n, scale + g);
	}
}

void qwen_cache_put(const struct qwen_cache *c, const struct qwen_place *p,
		    uint32_t position, const float *x)
{
	uint8_t *run = part_at(c, p, position);
	uint32_t at = position % c->together;

	if (c->type == QWEN_W_INT8)
		put_integers(c, run, at, x);
	else
		c->k->narrow(c->type, x, c->head_dim,
			     run + at * vector_bytes(c->type, c->head_dim));
}

struct qwen_matrix qwen_cache_rows(const struct qwen_cache *c,
				   const struct qwen_place *p, uint32_t from,
				   uint32_t n)
{
	const uint8_t *data = part_at(c, p, from);
	struct qwen_matrix m = { c->type, n < c->together ? n : c->together,
				 c->head_dim, data, NULL };

	if (c->type == QWEN_W_INT8)
		m.scale = (const uint16_t *)(data +
					     (size_t)c->together * c->head_dim);
	return m;
}

void qwen_cache_copy(const struct qwen_cache *c, uint32_t from, uint32_t to)
{
	size_t bytes = (size_t)c->layers * 2 * c->kv_heads * c->together_bytes;

	memcpy(c->data + to * bytes, c->data + from * bytes, bytes);
}
