/*
 * engine/gpu/gpu_decode.c - a layer of few tokens, in five packets.
 *
 * Weights stream past the tokens; norms, rotary embedding, the cache and sums
 * are fused into the same kernels (compiler/kernels/stream.c).
 */
#include <math.h>

#include "engine/gpu/gpu_int.h"

/*
 * A wave for each KERNEL_STREAM_ROWS rows of a head, as far as there is room:
 * four tokens take registers of which a WGP has not enough for 32 waves.
 */
static uint32_t heads_group(uint32_t head_dim, uint32_t tokens)
{
	uint32_t group = 32, most = tokens < 4 ? 1024 : 512;

	while (group < most && group < head_dim / KERNEL_STREAM_ROWS * 32)
		group *= 2;
	return group;
}

uint32_t gpu_stream_tokens(uint32_t n)
{
	uint32_t t = KERNEL_MAX_TOKENS;

	while (n % t)
		t--;
	return t;
}

bool gpu_stream_kernels(struct gpu_state *s, enum qwen_weights w,
			uint32_t tokens, struct err *e)
{
	struct kernel_shape shape = { .type = DSL_F32, .weights = gpu_type(w),
				      .span = gpu_span(w),
				      .cache = gpu_cache_type(s->shape.cache.keys),
				      .tokens = tokens,
				      .paged = s->pages,
				      .turned = gpu_is_turned(s) };
	struct gpu_streams *k = &s->of[w].stream[tokens];
	struct kernel_shape tall = shape;
	struct gpu_card *g = &s->g->card;

	if (k->norm)
		return true;
	tall.group = heads_group(s->g->m->config.head_dim, tokens);
	return (k->heads = gpu_kernel(g, "stream_heads", &tall, e)) &&
	       (k->add = gpu_kernel(g, "stream_add", &shape, e)) &&
	       (k->swiglu = gpu_kernel(g, "stream_swiglu", &shape, e)) &&
	       (k->norm = gpu_kernel(g, "stream_norm", &shape, e));
}

/* Queries, keys and values: normed, turned, and kept. */
static bool put_heads(struct gpu_state *s, uint32_t layer,
		      const struct gpu_pass *p, struct err *e)
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
	return put_kernel(s, s->of[l->heads.type].stream[p->each].heads, &a,
			  c->heads + 2 * c->kv_heads, p->n / p->each, e);
}

static bool put_join(struct gpu_state *s, uint32_t n, uint32_t splits,
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
	return put_kernel(s, s->join, &a, groups_of(s->join, rows), 1, e);
}

/*
 * Keys of a split of `rows` groups: about SPLIT_KEYS, or up to twice as many,
 * with which the WGP that gets most groups has the fewest keys.
 */
static uint32_t split_keys(const struct gpu_state *s, uint32_t keys,
			   uint32_t rows)
{
	const uint32_t wgps = kfd_info(s->g->card.dev)->node.cu_count / 2;
	const uint32_t most = (keys + SPLIT_KEYS - 1) / SPLIT_KEYS;
	uint32_t best = SPLIT_KEYS, least = UINT32_MAX;

	for (uint32_t n = most; n > most / 2; n--) {
		uint32_t chunk = (keys + n * 32 - 1) / (n * 32) * 32;
		uint32_t work = (n * rows + wgps - 1) / wgps * chunk;
		if (work < least) {
			least = work;
			best = chunk;
		}
	}
	return best;
}

/*
 * Keys of a split.  Where a token's results must not depend on the others of
 * its pass, neither may this.
 */
static uint32_t chunk_of(const struct gpu_state *s, const struct gpu_pass *p,
			 uint32_t rows)
{
	if (gpu_is_exact(s) && p->n <= QWEN_FEW)
		return SPLIT_KEYS;
	if (p->n > SPLIT_TOKENS)
		return (p->longest + QWEN_BLOCK - 1) / QWEN_BLOCK * QWEN_BLOCK;
	return split_keys(s, p->longest, rows);
}

bool gpu_attend(struct gpu_state *s, uint32_t layer, const struct gpu_pass *p,
		struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const uint32_t n = p->n, rows = n * c->heads / s->ratio;
	const uint32_t chunk = chunk_of(s, p, rows);
	const uint32_t splits = (p->longest + chunk - 1) / chunk;
	const bool whole = splits == 1;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, whole ? s->a : s->part);
	if (!whole)
		arg_mem(&a, s->top);
	else if (s->pages)
		arg_word(&a, s, GPU_BEGIN);
	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_word(&a, s, GPU_LENGTH);
	arg_word(&a, s, GPU_SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, c->heads * c->head_dim);
	arg_strides(&a, s);
	arg_u32(&a, chunk);
	arg_f32(&a, 1 / sqrt(c->head_dim));
	return put_kernel(s, whole ? s->attend : s->split, &a, splits, rows,
			  e) &&
	       (whole || put_join(s, n, splits, e)) && gpu_turn_back(s, n, e);
}

bool gpu_turn_back(struct gpu_state *s, uint32_t n, struct err *e)
{
	const uint32_t rows = n * s->g->m->config.heads;
	struct gpu_args a = { .n = 0 };

	if (!gpu_is_turned(s))
		return true;
	arg_mem(&a, s->a);
	arg_u32(&a, rows);
	return put_kernel(s, s->back, &a, groups_of(s->back, rows), 1, e);
}

/* The half's sum += W y. */
static bool put_add_product(struct gpu_state *s, const struct gpu_matrix *w,
			    enum gpu_half half, const struct kfd_mem *y,
			    const struct gpu_pass *p, struct err *e)
{
	const struct gpu_kernel *k = s->of[w->type].stream[p->each].add;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, gpu_sum(s, half));
	arg_matrix(&a, w);
	arg_mem(&a, y);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	gpu_ends(s);
	return put_kernel(s, k, &a, groups_of(k, w->rows), p->n / p->each, e);
}

static bool put_swiglu(struct gpu_state *s, const struct gpu_layer *l,
		       const struct gpu_pass *p, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_kernel *k = s->of[l->both.type].stream[p->each].swiglu;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->ffn);
	arg_matrix(&a, &l->both);
	arg_mem(&a, s->x);
	arg_va(&a, l->ffn_norm);
	arg_f32(&a, c->norm_eps);
	arg_u32(&a, c->ffn);
	arg_u32(&a, c->hidden);
	return put_kernel(s, k, &a, groups_of(k, c->ffn), p->n / p->each, e);
}

static bool layer_kernels(struct gpu_state *s, const struct gpu_layer *l,
			  uint32_t each, struct err *e)
{
	return gpu_stream_kernels(s, l->heads.type, each, e) &&
	       gpu_stream_kernels(s, l->out.type, each, e) &&
	       (s->g->m->config.experts.n ||
		(gpu_stream_kernels(s, l->both.type, each, e) &&
		 gpu_stream_kernels(s, l->down.type, each, e)));
}

bool gpu_layer(struct gpu_state *s, uint32_t layer, enum gpu_half half,
	       const struct gpu_pass *p, struct err *e)
{
	const struct gpu_layer *l = &s->g->layer[layer];

	if (!layer_kernels(s, l, p->each, e))
		return false;
	if (half == GPU_ATTENTION)
		return put_heads(s, layer, p, e) &&
		       gpu_attend(s, layer, p, e) &&
		       put_add_product(s, &l->out, half, s->a, p, e);
	return put_swiglu(s, l, p, e) &&
	       put_add_product(s, &l->down, half, s->ffn, p, e);
}
