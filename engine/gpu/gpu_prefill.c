/*
 * engine/gpu/gpu_prefill.c - a layer of many tokens, in tiled products.
 *
 * Products of tiles (compiler/gemm) read each weight once for all tokens.
 * Their inputs are rounded to the weights' type, sums are f32.  Integer
 * weights become f16 in the kernel, and so do the inputs that meet them; the
 * results of SwiGLU, which have no bound, are scaled down for it.  Our own blocks
 * become f16 in memory, a matrix at a time.
 */
#include <math.h>

#include "engine/gpu/gpu_int.h"

static bool has_tiles(enum qwen_weights w)
{
	return w != QWEN_W_F32;
}

static bool is_integer(enum qwen_weights w)
{
	return w >= QWEN_W_INT8;
}

/* What products with such weights take. */
static enum dsl_type input_of(enum qwen_weights w)
{
	return is_integer(w) ? DSL_F16 : gpu_type(w);
}

static struct gemm_op plain_op(enum qwen_weights w)
{
	return (struct gemm_op){ .in = input_of(w), .out = DSL_F32,
				 .weights = is_integer(w) && !qwen_is_own(w) ?
						    gpu_type(w) : DSL_NONE,
				 .b_trans = true };
}

bool gpu_tile_is_there(const struct gpu_state *s, enum qwen_weights w)
{
	return s->of[w].rms_norm;
}

static bool tiles_pay(uint32_t n, uint64_t weights)
{
	return n >= TILE_TOKENS || (n > KERNEL_MAX_TOKENS &&
				    (n - 1) * weights >= TILE_WEIGHTS);
}

static uint64_t weights_of(const struct gpu_matrix *w)
{
	return (uint64_t)w->rows * w->cols;
}

/* Then tiles are for attention alone. */
static bool is_mixture(const struct gpu_state *s)
{
	return s->g->m->config.experts.n;
}

static bool has_layer(const struct gpu_state *s, const struct gpu_layer *l)
{
	enum qwen_weights w = l->heads.type;

	return gpu_tile_is_there(s, w) && l->out.type == w &&
	       (is_mixture(s) || (l->both.type == w && l->down.type == w));
}

bool gpu_tile_pays(const struct gpu_state *s, uint32_t layer, uint32_t n)
{
	const struct gpu_layer *l = &s->g->layer[layer];

	return has_layer(s, l) &&
	       tiles_pay(n, weights_of(&l->heads) + weights_of(&l->out) +
			       (is_mixture(s) ? 0 : weights_of(&l->both) +
				weights_of(&l->down)));
}

/* The vocabulary of our own blocks would be much to make f16 of. */
static bool has_head(const struct gpu_state *s)
{
	const enum qwen_weights w = s->g->head.type;

	return gpu_tile_is_there(s, w) && !qwen_is_own(w);
}

bool gpu_tile_logits_pays(const struct gpu_state *s, uint32_t n)
{
	const struct gpu_matrix *w = &s->g->head;

	return has_head(s) && tiles_pay(n, weights_of(w));
}

/* A layer's products for m tokens, or any; autotune/tuner/models.def. */
static bool tiles_find(struct gpu_state *s, enum qwen_weights w, uint32_t m,
		       bool any, struct gpu_layer_tiles *t, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gemm_op plain = plain_op(w);
	struct gemm_op add = plain, pair = plain, down;
	uint32_t d = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
	uint32_t hidden = c->hidden, ffn = c->ffn;
	struct gpu_card *g = &s->g->card;

	add.beta = true;
	down = add;
	pair.out = plain.in;
	pair.epilogue = GEMM_SWIGLU | (is_integer(w) ? GEMM_SHRINK : 0);
	down.epilogue = is_integer(w) ? GEMM_SCALE : 0;
	return (t->heads = gpu_tiles(g, &plain, m, d + 2 * kv, hidden, any,
				     e)) &&
	       (t->out = gpu_tiles(g, &add, m, hidden, d, any, e)) &&
	       (is_mixture(s) ||
		((t->both = gpu_tiles(g, &pair, m, ffn, hidden, any, e)) &&
		 (t->down = gpu_tiles(g, &down, m, hidden, ffn, any, e))));
}

/* Tokens that the layer's tiles for few are launched with at most. */
static uint32_t few_of(const struct gpu_state *s)
{
	return s->shape.max_tokens < TILE_FEW ? s->shape.max_tokens : TILE_FEW;
}

bool gpu_tile_kernels(struct gpu_state *s, enum qwen_weights w, struct err *e)
{
	const enum dsl_type cache = gpu_cache_type(s->shape.cache.keys);
	const struct kernel_shape narrow = { .type = DSL_F32,
					     .to = input_of(w) },
		widen = { .weights = gpu_type(w), .span = gpu_span(w) },
		heads = { .type = DSL_F32, .cache = cache,
			  .head = s->g->m->config.head_dim,
			  .paged = s->pages,
			  .turned = gpu_is_turned(s) };
	struct gpu_products *p = &s->of[w];
	uint32_t most = s->shape.max_tokens;
	struct gpu_card *g = &s->g->card;

	if (most <= KERNEL_MAX_TOKENS || !has_tiles(w))
		return true;
	return tiles_find(s, w, most, false, &p->full, e) &&
	       tiles_find(s, w, most, true, &p->part, e) &&
	       tiles_find(s, w, few_of(s), true, &p->few, e) &&
	       (!qwen_is_own(w) ||
		(p->widen = gpu_kernel(g, "stream_widen", &widen, e))) &&
	       (p->narrow = gpu_kernel(g, "convert", &narrow, e)) &&
	       (p->rms_norm = gpu_kernel(g, "rms_norm_rows", &narrow, e)) &&
	       (s->turn = gpu_kernel(g, "qk_norm_rope", &heads, e)) &&
	       (s->flash = gpu_kernel(g, "attention", &heads, e));
}

/* For these logits any number of rows may come. */
static const struct gpu_tiles *head_tiles(struct gpu_state *s, uint32_t n,
					  struct err *e)
{
	const struct gpu_matrix *w = &s->g->head;
	const struct gemm_op op = plain_op(w->type);

	return gpu_tiles(&s->g->card, &op, n <= TILE_FEW ? few_of(s) :
						    s->shape.max_tokens,
			 w->rows, w->cols, true, e);
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

static bool workspace_of(const struct gpu_tiles *t, const struct gpu_matrix *w,
			 uint32_t n, size_t *most, struct err *e)
{
	struct gemm_operands x = { .alpha = 1 };
	struct gemm_launch g;

	if (!tiles_launch(t, w, &x, n, &g, e))
		return false;
	if (g.workspace_bytes > *most)
		*most = g.workspace_bytes;
	return true;
}

/* What a layer's products need beside their operands. */
static bool layer_workspace(const struct gpu_state *s, uint32_t i,
			    size_t *most, struct err *e)
{
	const struct gpu_layer *l = &s->g->layer[i];
	const struct gpu_products *of = &s->of[l->heads.type];
	const struct {
		const struct gpu_layer_tiles *t;
		uint32_t n;
	} p[] = { { &of->full, s->shape.max_tokens },
		  { &of->part, s->shape.max_tokens }, { &of->few, few_of(s) } };

	for (size_t k = 0; k < ARRAY_SIZE(p); k++)
		if (!workspace_of(p[k].t->heads, &l->heads, p[k].n, most, e) ||
		    !workspace_of(p[k].t->out, &l->out, p[k].n, most, e) ||
		    (!is_mixture(s) &&
		     (!workspace_of(p[k].t->both, &l->both, p[k].n, most, e) ||
		      !workspace_of(p[k].t->down, &l->down, p[k].n, most, e))))
			return false;
	return true;
}

static bool workspace_bytes(struct gpu_state *s, size_t *most, struct err *e)
{
	const uint32_t n[] = { few_of(s), s->shape.max_tokens };

	*most = 0;
	for (uint32_t i = 0; i < s->g->m->config.layers; i++)
		if (has_layer(s, &s->g->layer[i]) &&
		    !layer_workspace(s, i, most, e))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
		const struct gpu_tiles *t;

		if (!has_head(s))
			break;
		t = head_tiles(s, n[i], e);
		if (!t || !workspace_of(t, &s->g->head, n[i], most, e))
			return false;
	}
	return true;
}

/* Of the largest matrix of our own blocks, as f16. */
static size_t wide_bytes(const struct gpu_state *s)
{
	size_t most = 0;

	for (uint32_t i = 0; i < s->g->m->config.layers; i++) {
		const struct gpu_layer *l = &s->g->layer[i];
		const struct gpu_matrix *w[] = { &l->heads, &l->out, &l->both,
						 &l->down };
		const size_t n = is_mixture(s) ? 2 : ARRAY_SIZE(w);

		for (size_t k = 0; k < n && has_layer(s, l); k++)
			if (qwen_is_own(w[k]->type) && weights_of(w[k]) > most)
				most = weights_of(w[k]);
	}
	return most * 2;
}

bool gpu_tile_buffers(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = s->shape.max_tokens, d = c->heads * c->head_dim;
	size_t kv = c->kv_heads * c->head_dim;
	size_t widest = c->hidden > d ? c->hidden : d, more;
	const struct {
		const char *name;
		size_t bytes;
		struct kfd_mem **mem;
	} want[] = {
		{ "input of products", n * widest * 2, &s->narrow },
		{ "queries, keys, values", n * (d + 2 * kv) * sizeof(float),
		  &s->qkv },
		{ "a matrix as f16", wide_bytes(s), &s->wide },
	};

	if (!s->turn)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (want[i].bytes &&
		    !kfd_mem_alloc(s->g->card.dev, KFD_VRAM_PRIVATE,
				   want[i].bytes, want[i].name, want[i].mem,
				   e))
			return false;
	return workspace_bytes(s, &more, e) &&
	       (!more || kfd_mem_alloc(s->g->card.dev, KFD_VRAM_PRIVATE, more,
				       "partial sums", &s->workspace, e));
}

/* s->wide = W. */
static bool put_wide(struct gpu_state *s, const struct gpu_matrix *w,
		     struct err *e)
{
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->wide);
	arg_matrix(&a, w);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put_kernel(s, s->of[w->type].widen, &a, w->rows, 1, e);
}

/* c = a W for n tokens; with `beta` of the op, added to c. */
static bool put_product(struct gpu_state *s, const struct gpu_tiles *t,
			const struct gpu_matrix *w, const struct kfd_mem *a,
			const struct kfd_mem *c, uint32_t n, struct err *e)
{
	const bool own = qwen_is_own(w->type);
	const struct gemm_operands x = {
		.a = a->va, .b = own ? s->wide->va : w->w,
		.scale = w->scale, .c = c->va,
		.alpha = t->op.epilogue & GEMM_SCALE ? GEMM_SHRINK_BY : 1,
		.beta = 1,
		.workspace = s->workspace ? s->workspace->va : 0,
	};
	struct gemm_launch g;

	if (!tiles_launch(t, w, &x, n, &g, e) ||
	    (own && !put_wide(s, w, e)))
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
		if (i + 1 == g.n && (t->op.beta || c == s->logits))
			gpu_ends(s);
		if (!gpu_put(s, &t->code[i], &l, e))
			return false;
	}
	return true;
}

/* s->narrow = n values of x in the type that meets the weights. */
static bool put_narrow(struct gpu_state *s, enum qwen_weights w,
		       const struct kfd_mem *x, uint32_t n, struct err *e)
{
	const struct gpu_kernel *k = s->of[w].narrow;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->narrow);
	arg_mem(&a, x);
	arg_u32(&a, n);
	return put_kernel(s, k, &a, groups_of(k, n), 1, e);
}

bool gpu_tile_norm(struct gpu_state *s, enum qwen_weights w, uint64_t gain,
		   enum gpu_word rows, uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->narrow);
	arg_mem(&a, s->x);
	arg_va(&a, gain);
	arg_word(&a, s, rows);
	arg_f32(&a, c->norm_eps);
	arg_u32(&a, c->hidden);
	return put_kernel(s, s->of[w].rms_norm, &a, n, 1, e);
}

bool gpu_tile_logits(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct gpu_matrix *w = &s->g->head;
	const struct gpu_tiles *t = head_tiles(s, n, e);

	return t && gpu_tile_norm(s, w->type, s->g->norm, GPU_PICK, n, e) &&
	       put_product(s, t, w, s->narrow, s->logits, n, e);
}

/* Queries to s->q, keys and values to the cache. */
static bool put_rope(struct gpu_state *s, uint32_t layer, uint32_t n,
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
	return put_kernel(s, s->turn, &a, groups_of(s->turn, rows), 1, e);
}

/* All tokens of a run together. */
static bool put_flash(struct gpu_state *s, uint32_t layer,
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
	return put_kernel(s, s->flash, &a, (uint64_t)p->runs * c->heads,
			  (p->run_most + each - 1) / each, e) &&
	       gpu_turn_back(s, p->n, e);
}

bool gpu_tile_layer(struct gpu_state *s, uint32_t layer, enum gpu_half half,
		    const struct gpu_pass *p, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_layer *l = &s->g->layer[layer];
	const enum qwen_weights w = l->heads.type;
	uint32_t n = p->n;
	const struct gpu_layer_tiles *t =
		n == s->shape.max_tokens ? &s->of[w].full :
		n <= TILE_FEW		 ? &s->of[w].few : &s->of[w].part;
	bool runs = p->runs && p->run_most >= FLASH_RUN;
	uint32_t d = c->heads * c->head_dim;

	if (half == GPU_ATTENTION)
		return gpu_tile_norm(s, w, l->attn_norm, GPU_ROW, n, e) &&
		       put_product(s, t->heads, &l->heads, s->narrow, s->qkv, n,
				   e) &&
		       put_rope(s, layer, n, e) &&
		       (runs ? put_flash : gpu_attend)(s, layer, p, e) &&
		       put_narrow(s, w, s->a, n * d, e) &&
		       put_product(s, t->out, &l->out, s->narrow,
				   gpu_sum(s, half), n, e);
	return gpu_tile_norm(s, w, l->ffn_norm, GPU_ROW, n, e) &&
	       put_product(s, t->both, &l->both, s->narrow, s->ffn, n, e) &&
	       put_product(s, t->down, &l->down, s->ffn, gpu_sum(s, half), n,
			   e);
}
