/*
 * A layer for many tokens: products of tiles (compiler/gemm) read each weight
 * once for all of them.  Inputs of products are rounded to the weights' type,
 * sums are f32.  Weights of integers become f16 on the way, as what meets them,
 * or bf16 behind SwiGLU, whose results have no bound.
 */
#include <math.h>

#include "engine/gpu_int.h"

static bool has_tiles(enum qwen_weights w)
{
	return w != QWEN_W_F32;
}

/* What products with such weights multiply: of normed inputs, of others. */
struct types {
	enum dsl_type in, wide, weights;
};

static struct types types_of(enum qwen_weights w)
{
	const enum dsl_type t = gpu_type(w);

	return w >= QWEN_W_INT8 ? (struct types){ DSL_F16, DSL_BF16, t } :
				  (struct types){ t, t, DSL_NONE };
}

bool gpu_tile_can(const struct gpu_state *s, uint32_t layer)
{
	const struct gpu_layer *l = &s->g->layer[layer];
	enum qwen_weights w = l->heads.type;

	return s->rms_norm && has_tiles(w) && l->out.type == w &&
	       l->both.type == w && l->down.type == w;
}

/* A layer's products for m tokens (0: any number); autotune/models.def. */
static bool tiles_find(struct gpu_state *s, enum qwen_weights w, uint32_t m,
		       struct gpu_layer_tiles *t, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct types type = types_of(w);
	const struct gemm_op plain = { .in = type.in, .out = DSL_F32,
				       .weights = type.weights,
				       .b_trans = true };
	struct gemm_op add = plain, wide = plain, pair = plain;
	uint32_t d = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
	struct gpu *g = s->g;

	add.beta = wide.beta = true;
	wide.in = pair.out = type.wide;
	pair.epilogue = GEMM_SWIGLU;
	return (t->heads = gpu_tiles(g, &plain, m, d + 2 * kv, c->hidden, e)) &&
	       (t->out = gpu_tiles(g, &add, m, c->hidden, d, e)) &&
	       (t->both = gpu_tiles(g, &pair, m, c->ffn, c->hidden, e)) &&
	       (t->down = gpu_tiles(g, &wide, m, c->hidden, c->ffn, e));
}

bool gpu_tile_kernels(struct gpu_state *s, enum qwen_weights w, struct err *e)
{
	const enum dsl_type type = types_of(w).in;
	const enum dsl_type cache = gpu_type(s->shape.cache);
	const struct kernel_shape f32 = { .type = DSL_F32 },
		narrow = { .type = DSL_F32, .to = type },
		heads = { .type = DSL_F32, .cache = cache,
			  .head = s->g->m->config.head_dim };
	struct gpu_products *p = &s->of[w];
	struct gpu *g = s->g;

	if (s->shape.max_tokens < TILE_TOKENS || !has_tiles(w))
		return true;
	return tiles_find(s, w, s->shape.max_tokens, &p->full, e) &&
	       tiles_find(s, w, 0, &p->part, e) &&
	       (p->narrow = gpu_kernel(g, "convert", &narrow, e)) &&
	       (s->rms_norm = gpu_kernel(g, "rms_norm", &f32, e)) &&
	       (s->turn = gpu_kernel(g, "qk_norm_rope", &heads, e)) &&
	       (s->flash = gpu_kernel(g, "attention", &heads, e));
}

/* A launch of t for n tokens. */
static bool tiles_launch(const struct gpu_tiles *t, const struct gpu_matrix *w,
			 const struct gemm_operands *x, uint32_t n,
			 struct gemm_launch *out, struct err *e)
{
	bool pair = t->op.epilogue & GEMM_SWIGLU;
	const struct gemm_shape shape = {
		.m = n, .n = pair ? w->rows / 2 : w->rows, .k = w->cols,
	};

	return gemm_launch(&t->op, &t->config, &shape, x, out, e);
}

/* What the products of full passes need beside their operands. */
static bool workspace_bytes(const struct gpu_state *s, size_t *most,
			    struct err *e)
{
	*most = 0;
	for (uint32_t i = 0; i < s->g->m->config.layers; i++) {
		const struct gpu_layer *l = &s->g->layer[i];
		const struct gpu_layer_tiles *t = &s->of[l->heads.type].full;
		const struct {
			const struct gpu_tiles *t;
			const struct gpu_matrix *w;
		} p[] = { { t->heads, &l->heads }, { t->out, &l->out },
			  { t->both, &l->both }, { t->down, &l->down } };
		for (size_t k = 0; gpu_tile_can(s, i) && k < 4; k++) {
			struct gemm_operands x = { .alpha = 1 };
			struct gemm_launch g;
			if (!tiles_launch(p[k].t, p[k].w, &x,
					  s->shape.max_tokens, &g, e))
				return false;
			if (g.workspace_bytes > *most)
				*most = g.workspace_bytes;
		}
	}
	return true;
}

bool gpu_tile_buffers(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = s->shape.max_tokens, d = c->heads * c->head_dim;
	size_t kv = c->kv_heads * c->head_dim;
	size_t wide = c->hidden > d ? c->hidden : d, more;
	const struct {
		const char *name;
		size_t bytes;
		struct kfd_mem **mem;
	} want[] = {
		{ "normalized", n * c->hidden * sizeof(float), &s->h },
		{ "input of products", n * wide * 2, &s->narrow },
		{ "queries, keys, values", n * (d + 2 * kv) * sizeof(float),
		  &s->qkv },
	};

	if (!s->rms_norm)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (!kfd_mem_alloc(s->g->dev, KFD_VRAM_PRIVATE, want[i].bytes,
				   want[i].name, want[i].mem, e))
			return false;
	return workspace_bytes(s, &more, e) &&
	       (!more || kfd_mem_alloc(s->g->dev, KFD_VRAM_PRIVATE, more,
				       "partial sums", &s->workspace, e));
}

/* c = a W for n tokens; with `beta` of the op, added to c. */
static bool product(struct gpu_state *s, const struct gpu_tiles *t,
		    const struct gpu_matrix *w, const struct kfd_mem *a,
		    const struct kfd_mem *c, uint32_t n, struct err *e)
{
	const struct gemm_operands x = {
		.a = a->va, .b = w->w, .scale = w->scale, .c = c->va,
		.alpha = 1, .beta = 1,
		.workspace = s->workspace ? s->workspace->va : 0,
	};
	struct gemm_launch g;

	if (!tiles_launch(t, w, &x, n, &g, e))
		return false;
	for (int i = 0; i < g.n; i++) {
		const struct kfd_launch l = {
			.kernel = t->code[i].kernel,
			.grid = { g.step[i].groups[0] * g.step[i].group_size,
				  g.step[i].groups[1], g.step[i].groups[2] },
			.wg = { g.step[i].group_size, 1, 1 },
			.args = g.step[i].args,
			.args_bytes = g.step[i].args_bytes,
		};
		if (!gpu_put(s, &t->code[i], &l, e))
			return false;
	}
	return true;
}

/* s->narrow = n values of x in the type that meets the weights. */
static bool narrow(struct gpu_state *s, enum qwen_weights w,
		   const struct kfd_mem *x, uint32_t n, struct err *e)
{
	const struct gpu_kernel *k = s->of[w].narrow;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->narrow);
	arg_mem(&a, x);
	arg_u32(&a, n);
	return put(s, k, &a, groups_of(k, n), 1, e);
}

/* s->narrow = norm(x) */
static bool norm(struct gpu_state *s, enum qwen_weights w, uint64_t gain,
		 uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->h);
	arg_mem(&a, s->x);
	arg_va(&a, gain);
	arg_f32(&a, c->norm_eps);
	arg_u32(&a, c->hidden);
	return put(s, s->rms_norm, &a, n, 1, e) &&
	       narrow(s, w, s->h, n * c->hidden, e);
}

/* Queries to s->q, keys and values to the cache. */
static bool turn(struct gpu_state *s, uint32_t layer, uint32_t n,
		 struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_layer *l = &s->g->layer[layer];
	uint32_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
	uint32_t rows = n * (c->heads + 2 * c->kv_heads);
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_mem(&a, s->qkv);
	arg_va(&a, s->qkv->va + q * sizeof(float));
	arg_va(&a, s->qkv->va + (q + kv) * sizeof(float));
	arg_va(&a, l->q_norm);
	arg_va(&a, l->k_norm);
	arg_mem(&a, s->cosine);
	arg_mem(&a, s->sine);
	arg_word(&a, s, GPU_POSITION);
	arg_word(&a, s, GPU_SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, q + 2 * kv);
	arg_u32(&a, q + 2 * kv);
	arg_strides(&a, s);
	arg_u32(&a, n);
	arg_f32(&a, c->norm_eps);
	return put(s, s->turn, &a, groups_of(s->turn, rows), 1, e);
}

/* All tokens of a run together. */
static bool flash(struct gpu_state *s, uint32_t layer,
		  const struct gpu_pass *p, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t each = s->flash->shape.group / 2;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->a);
	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_word(&a, s, GPU_RUN_FIRST);
	arg_word(&a, s, GPU_RUN_LENGTH);
	arg_word(&a, s, GPU_RUN_SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, c->heads * c->head_dim);
	arg_strides(&a, s);
	arg_u32(&a, 1);
	arg_f32(&a, 1 / sqrt(c->head_dim));
	return put(s, s->flash, &a, (p->run_most + each - 1) / each,
		   (uint64_t)p->runs * c->heads, e);
}

bool gpu_tile_layer(struct gpu_state *s, uint32_t layer,
		    const struct gpu_pass *p, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_layer *l = &s->g->layer[layer];
	const enum qwen_weights w = l->heads.type;
	uint32_t n = p->n;
	const struct gpu_layer_tiles *t = n == s->shape.max_tokens ?
						  &s->of[w].full :
						  &s->of[w].part;
	uint32_t d = c->heads * c->head_dim;

	return norm(s, w, l->attn_norm, n, e) &&
	       product(s, t->heads, &l->heads, s->narrow, s->qkv, n, e) &&
	       turn(s, layer, n, e) &&
	       (p->runs ? flash : gpu_attend)(s, layer, p, e) &&
	       narrow(s, w, s->a, n * d, e) &&
	       product(s, t->out, &l->out, s->narrow, s->x, n, e) &&
	       norm(s, w, l->ffn_norm, n, e) &&
	       product(s, t->both, &l->both, s->narrow, s->ffn, n, e) &&
	       product(s, t->down, &l->down, s->ffn, s->x, n, e);
}
