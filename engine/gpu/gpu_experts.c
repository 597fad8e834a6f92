/*
 * engine/gpu/gpu_experts.c - feed-forward networks that tokens choose.
 *
 * A router's scores become choices on the device, and the products that follow
 * read there which experts they are of (compiler/kernels/experts.c): the host
 * puts the same packets whatever is chosen.
 */
#include "engine/gpu/gpu_int.h"

/* From so many tokens on, an expert has pairs enough for tiles. */
#define EXPERT_TILE_TOKENS 32

static bool is_mixture(const struct gpu_state *s)
{
	return s->g->m->config.experts.n;
}

/* Products of pairs in tiles; of our own blocks there are none. */
static bool has_tiles(const struct gpu_state *s, enum qwen_weights w)
{
	return gpu_tile_is_there(s, w) && !qwen_is_own(w);
}

static bool products_find(struct gpu_state *s, enum qwen_weights w,
			  struct err *e)
{
	const struct kernel_shape shape = { .weights = gpu_type(w),
					    .span = gpu_span(w) };
	struct gpu_card *g = &s->g->card;
	struct gpu_products *p = &s->of[w];

	return (p->expert_swiglu = gpu_kernel(g, "expert_swiglu", &shape, e)) &&
	       (p->expert_add = gpu_kernel(g, "expert_add", &shape, e)) &&
	       (!has_tiles(s, w) ||
		((p->expert_tiles_swiglu =
			  gpu_kernel(g, "expert_tiles_swiglu", &shape, e)) &&
		 (p->expert_tiles = gpu_kernel(g, "expert_tiles", &shape, e))));
}

bool gpu_expert_kernels(struct gpu_state *s, struct err *e)
{
	const struct kernel_shape plain = { 0 };
	struct gpu_card *g = &s->g->card;

	if (!is_mixture(s))
		return true;
	for (uint32_t i = 0; i < s->g->m->config.layers; i++)
		if (!products_find(s, s->g->layer[i].both.type, e) ||
		    !products_find(s, s->g->layer[i].down.type, e))
			return false;
	return (s->route = gpu_kernel(g, "route", &plain, e)) &&
	       (s->sort = gpu_kernel(g, "expert_sort", &plain, e)) &&
	       (s->join_pairs = gpu_kernel(g, "expert_join", &plain, e)) &&
	       gpu_stream_kernels(s, QWEN_W_F32, 1, e);
}

uint32_t gpu_expert_tiles(const struct qwen_config *c, uint32_t n)
{
	const uint32_t pairs = n * c->experts.used;

	return pairs / KERNEL_EXPERT_TILE +
	       (pairs < c->experts.n ? pairs : c->experts.n);
}

bool gpu_expert_buffers(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const size_t n = s->shape.max_tokens, pairs = n * c->experts.used;
	const struct {
		const char *name;
		size_t words;
		struct kfd_mem **mem;
	} want[] = {
		{ "scores of experts", n * c->experts.n, &s->score },
		{ "shares of experts", pairs, &s->share },
		{ "experts of tokens", pairs, &s->expert },
		{ "pairs by expert", pairs, &s->order },
		{ "tiles of pairs",
		  gpu_expert_tiles(c, s->shape.max_tokens) * 3, &s->tile },
		{ "products of pairs", pairs * c->hidden, &s->pairs },
	};
	/* Those behind the third are for tiles. */
	const size_t some = s->turn ? ARRAY_SIZE(want) : 3;

	for (size_t i = 0; is_mixture(s) && i < some; i++)
		if (!kfd_mem_alloc(s->g->card.dev, KFD_VRAM_PRIVATE,
				   want[i].words * 4, want[i].name, want[i].mem,
				   e))
			return false;
	return true;
}

/* s->score = router norm(x). */
static bool put_scores(struct gpu_state *s, const struct gpu_layer *l,
		       const struct gpu_pass *p, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	if (!gpu_stream_kernels(s, l->router.type, p->each, e))
		return false;
	const struct gpu_kernel *k = s->of[l->router.type].stream[p->each].norm;
	arg_mem(&a, s->score);
	arg_matrix(&a, &l->router);
	arg_mem(&a, s->x);
	arg_va(&a, l->ffn_norm);
	arg_f32(&a, c->norm_eps);
	arg_word(&a, s, GPU_ROW);
	arg_u32(&a, l->router.rows);
	arg_u32(&a, l->router.cols);
	return put_kernel(s, k, &a, groups_of(k, l->router.rows),
			  p->n / p->each, e);
}

/* s->share, s->expert of each token. */
static bool put_route(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct qwen_experts *x = &s->g->m->config.experts;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->share);
	arg_mem(&a, s->expert);
	arg_mem(&a, s->score);
	arg_u32(&a, x->n);
	arg_u32(&a, x->used);
	arg_u32(&a, x->normed);
	return put_kernel(s, s->route, &a, n, 1, e);
}

/* s->ffn = a row for each pair, with its share. */
static bool put_swiglu(struct gpu_state *s, const struct gpu_layer *l,
		       uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_kernel *k = s->of[l->both.type].expert_swiglu;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->ffn);
	arg_matrix(&a, &l->both);
	arg_mem(&a, s->x);
	arg_va(&a, l->ffn_norm);
	arg_f32(&a, c->norm_eps);
	arg_mem(&a, s->share);
	arg_mem(&a, s->expert);
	arg_u32(&a, c->experts.used);
	arg_u32(&a, c->ffn);
	arg_u32(&a, c->hidden);
	return put_kernel(s, k, &a, groups_of(k, c->ffn),
			  (uint64_t)n * c->experts.used, e);
}

/* The half's sum += the products of a token's pairs. */
static bool put_add(struct gpu_state *s, const struct gpu_layer *l, uint32_t n,
		    struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const uint32_t each = KERNEL_EXPERT_ROWS;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, gpu_sum(s, GPU_FEED));
	arg_matrix(&a, &l->down);
	arg_mem(&a, s->ffn);
	arg_mem(&a, s->expert);
	arg_u32(&a, c->experts.used);
	arg_u32(&a, c->hidden);
	arg_u32(&a, c->ffn);
	gpu_ends(s);
	return put_kernel(s, s->of[l->down.type].expert_add, &a,
			  (c->hidden + each - 1) / each, n, e);
}

/* ---- many tokens ---- */

static bool tiles_pay(const struct gpu_state *s, const struct gpu_layer *l,
		      uint32_t n)
{
	return n >= EXPERT_TILE_TOKENS && l->both.type == l->down.type &&
	       has_tiles(s, l->both.type);
}

/* s->order, s->tile of the pairs. */
static bool put_sort(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->order);
	arg_mem(&a, s->tile);
	arg_mem(&a, s->expert);
	arg_u32(&a, n * c->experts.used);
	arg_u32(&a, c->experts.n);
	arg_u32(&a, gpu_expert_tiles(c, n));
	return put_kernel(s, s->sort, &a, 1, 1, e);
}

/* One of the products of pairs; a group makes so many rows of a tile. */
struct tiles {
	const struct gpu_kernel *kernel;
	const struct gpu_matrix *w;
	const struct kfd_mem *y, *a;
	uint32_t rows, each;
	double by;
};

static bool put_tiles(struct gpu_state *s, const struct tiles *t, uint32_t n,
		      struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, t->y);
	arg_matrix(&a, t->w);
	arg_mem(&a, t->a);
	arg_mem(&a, s->order);
	arg_mem(&a, s->tile);
	arg_u32(&a, c->experts.used);
	arg_u32(&a, t->rows);
	arg_u32(&a, t->w->cols);
	arg_f32(&a, t->by);
	return put_kernel(s, t->kernel, &a, (t->rows + t->each - 1) / t->each,
			  gpu_expert_tiles(c, n), e);
}

/* The half's sum += a token's pairs. */
static bool put_join(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, gpu_sum(s, GPU_FEED));
	arg_mem(&a, s->pairs);
	arg_mem(&a, s->share);
	arg_u32(&a, c->experts.used);
	arg_u32(&a, c->hidden);
	gpu_ends(s);
	return put_kernel(s, s->join_pairs, &a, n, 1, e);
}

static bool tiles_feed(struct gpu_state *s, const struct gpu_layer *l,
		       uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_products *p = &s->of[l->both.type];
	/* f16 holds what no bound is known of. */
	const double by = l->both.type >= QWEN_W_INT8 ? GEMM_SHRINK_BY : 1;
	const uint32_t waves = p->expert_tiles->shape.group / 32;
	const struct tiles up = { p->expert_tiles_swiglu,
				  &l->both,
				  s->ffn,
				  s->narrow,
				  c->ffn,
				  16 * waves,
				  1 / by };
	const struct tiles down = {
		p->expert_tiles, &l->down,   s->pairs, s->ffn,
		c->hidden,	 32 * waves, by
	};

	return put_sort(s, n, e) &&
	       gpu_tile_norm(s, l->both.type, l->ffn_norm, GPU_ROW, n, e) &&
	       put_tiles(s, &up, n, e) && put_tiles(s, &down, n, e) &&
	       put_join(s, n, e);
}

bool gpu_expert_feed(struct gpu_state *s, uint32_t layer,
		     const struct gpu_pass *p, struct err *e)
{
	const struct gpu_layer *l = &s->g->layer[layer];

	if (!put_scores(s, l, p, e) || !put_route(s, p->n, e))
		return false;
	return tiles_pay(s, l, p->n) ?
		       tiles_feed(s, l, p->n, e) :
		       put_swiglu(s, l, p->n, e) && put_add(s, l, p->n, e);
}
