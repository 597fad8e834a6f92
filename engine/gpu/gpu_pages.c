/*
 * engine/gpu/gpu_pages.c - a cache in blocks: which are whose, and copies.
 *
 * Kernels find a sequence's blocks in a table in the device's memory, which the
 * host writes before a pass.  Copies of blocks wait for the next pass, whose
 * first packets they are.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "engine/gpu/gpu_int.h"

_Static_assert(QWEN_BLOCK == KERNEL_BLOCK, "blocks of engine and kernels");

static uint32_t *table_words(const struct gpu_state *s)
{
	return s->table->cpu;
}

/* Behind the table, for copies: of each layer its first block, and its rows. */
static uint32_t layers_at(const struct gpu_state *s)
{
	return s->shape.sequences * s->pages;
}

bool gpu_pages_init(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const uint32_t at = layers_at(s), n = at + 2 * c->layers;
	const uint32_t bytes = (uint32_t)s->vector * s->element;
	const struct kernel_shape move = { .type = DSL_I8,
					   .to = DSL_I8,
					   .wide = bytes % 16 == 0 };

	if (!s->pages)
		return true;
	s->mapped = xcalloc(s->shape.sequences, sizeof(*s->mapped));
	s->move = gpu_kernel(&s->g->card, "kv_gather", &move, e);
	if (!s->move ||
	    !kfd_mem_alloc(s->g->card.dev, KFD_VRAM, n * sizeof(uint32_t),
			   "table of blocks", &s->table, e))
		return false;
	memset(table_words(s), 0, n * sizeof(uint32_t));
	for (uint32_t i = 0; i < c->layers; i++) {
		table_words(s)[at + i] = i * s->shape.blocks;
		table_words(s)[at + c->layers + i] = c->kv_heads * QWEN_BLOCK;
	}
	return true;
}

void gpu_pages_fini(struct gpu_state *s)
{
	kfd_mem_free(s->g->card.dev, s->table);
	free(s->mapped);
	vec_fini(&s->copies);
}

void gpu_pages_write(struct gpu_state *s, const struct qwen_pass *p)
{
	int32_t *begin = host_words(s, GPU_BEGIN);

	for (uint32_t i = 0; s->pages && i < p->n; i++) {
		const uint32_t q = p->token[i].sequence;
		const uint32_t n = p->position[i] / QWEN_BLOCK + 1;

		for (uint32_t k = 0; k < KERNEL_TABLE_BEGIN; k++)
			*begin++ = k < n ? (int32_t)s->mapped[q][k] : 0;
		s->counts.copied_bytes += KERNEL_TABLE_BEGIN * sizeof(*begin);
		if (i + 1 < p->n && p->token[i + 1].sequence == q)
			continue;
		memcpy(table_words(s) + q * s->pages, s->mapped[q],
		       n * sizeof(uint32_t));
		s->counts.copied_bytes += n * sizeof(uint32_t);
	}
}

/* Block `to` of all layers becomes `from`: rows of vectors, a layer each. */
static bool put_copy(struct gpu_state *s, const struct kfd_mem *cache,
		     const struct gpu_copy *copy, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const uint32_t rows = c->kv_heads * QWEN_BLOCK;
	const uint32_t bytes = s->vector * s->element;
	const uint64_t block = (uint64_t)rows * bytes;
	const uint64_t at = s->table->va + layers_at(s) * sizeof(uint32_t);
	struct gpu_args a = { .n = 0 };

	arg_va(&a, cache->va + copy->to * block);
	arg_va(&a, cache->va + copy->from * block);
	arg_va(&a, at);
	arg_va(&a, at + c->layers * sizeof(uint32_t));
	arg_u32(&a, bytes);
	arg_u32(&a, rows);
	arg_u32(&a, 1);
	arg_u32(&a, c->layers * s->shape.blocks);
	arg_va(&a, s->layer_bytes);
	return put_kernel(s, s->move, &a, (rows + 3) / 4, c->layers, e);
}

bool gpu_pages_copy(struct gpu_state *s, struct err *e)
{
	for (size_t i = 0; i < s->copies.n; i++)
		if (!put_copy(s, s->key, &s->copies.v[i], e) ||
		    !put_copy(s, s->value, &s->copies.v[i], e))
			return false;
	s->copies.n = 0;
	return true;
}

void gpu_map(void *state, uint32_t sequence, const uint32_t *block)
{
	struct gpu_run *run = state;

	for (uint32_t r = 0; r < run->n; r++)
		run->rank[r]->mapped[sequence] = block;
}

void gpu_copy(void *state, uint32_t from, uint32_t to)
{
	struct gpu_run *run = state;

	for (uint32_t r = 0; r < run->n; r++)
		vec_push(&run->rank[r]->copies,
			 ((struct gpu_copy){ from, to }));
}
