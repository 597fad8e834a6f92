/*
 * A layer in five packets: weights stream past the tokens, and norms, turns,
 * the cache and sums are done on the way (compiler/kernels/stream.c).
 */
#include <math.h>

#include "engine/gpu_int.h"

/* Queries, keys and values: normed, turned, and kept. */
static bool heads(struct gpu_state *s, uint32_t layer, uint32_t n,
		  struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_layer *l = &s->g->layer[layer];
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_matrix(&a, &l->heads);
	arg_mem(&a, s->x);
	arg_va(&a, l->attn_norm);
	arg_f32(&a, c->norm_eps);
	arg_va(&a, l->q_norm);
	arg_va(&a, l->k_norm);
	arg_mem(&a, s->cosine);
	arg_mem(&a, s->sine);
	arg_word(&a, s, GPU_POSITION);
	arg_word(&a, s, GPU_SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, c->head_dim);
	arg_u32(&a, c->hidden);
	arg_strides(&a, s);
	return put(s, s->of[l->heads.type].heads, &a,
		   c->heads + 2 * c->kv_heads, n, e);
}

static bool join(struct gpu_state *s, uint32_t n, uint32_t splits,
		 struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t rows = n * c->heads;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->a);
	arg_mem(&a, s->part);
	arg_mem(&a, s->top);
	arg_u32(&a, splits);
	arg_u32(&a, c->head_dim);
	arg_u32(&a, rows);
	return put(s, s->join, &a, groups_of(s->join, rows), 1, e);
}

bool gpu_attend(struct gpu_state *s, uint32_t layer, const struct gpu_pass *p,
		struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t n = p->n, splits = n > SPLIT_TOKENS ? 1 :
		(p->longest + SPLIT_KEYS - 1) / SPLIT_KEYS;
	bool whole = splits == 1;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, whole ? s->a : s->part);
	if (!whole)
		arg_mem(&a, s->top);
	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_word(&a, s, GPU_LENGTH);
	arg_word(&a, s, GPU_SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, c->heads * c->head_dim);
	arg_strides(&a, s);
	arg_u32(&a, SPLIT_KEYS);
	arg_f32(&a, 1 / sqrt(c->head_dim));
	return put(s, whole ? s->attend : s->split, &a, splits,
		   (uint64_t)n * c->heads / s->ratio, e) &&
	       (whole || join(s, n, splits, e));
}

/* x += W y */
static bool add(struct gpu_state *s, const struct gpu_matrix *w,
		const struct kfd_mem *y, uint32_t n, struct err *e)
{
	const struct gpu_kernel *k = s->of[w->type].add;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->x);
	arg_matrix(&a, w);
	arg_mem(&a, y);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put(s, k, &a, groups_of(k, w->rows), n, e);
}

static bool swiglu(struct gpu_state *s, const struct gpu_layer *l, uint32_t n,
		   struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_kernel *k = s->of[l->both.type].swiglu;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->ffn);
	arg_matrix(&a, &l->both);
	arg_mem(&a, s->x);
	arg_va(&a, l->ffn_norm);
	arg_f32(&a, c->norm_eps);
	arg_u32(&a, c->ffn);
	arg_u32(&a, c->hidden);
	return put(s, k, &a, groups_of(k, c->ffn), n, e);
}

bool gpu_layer(struct gpu_state *s, uint32_t layer, const struct gpu_pass *p,
	       struct err *e)
{
	const struct gpu_layer *l = &s->g->layer[layer];
	uint32_t n = p->n;

	return heads(s, layer, n, e) && gpu_attend(s, layer, p, e) &&
	       add(s, &l->out, s->a, n, e) && swiglu(s, l, n, e) &&
	       add(s, &l->down, s->ffn, n, e);
}
