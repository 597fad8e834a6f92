/*
 * A pass on the device: all packets are put, the doorbell rings a layer at a
 * time, and the host waits once.  What the host writes (ids, positions) and
 * reads (logits, ids) lies in host memory that the device sees; all else stays
 * on the device.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gpu.h"

/* Keys of one group of attention; a longer context is split over groups. */
#define SPLIT_KEYS 256
/* Passes of more tokens have groups enough without splits. */
#define SPLIT_TOKENS 8
/* Layers under way before the host looks whether it should stop. */
#define AHEAD 4

/* Words per token that the host writes. */
enum word { ID, POSITION, SLOT, LENGTH, PICK, WORDS };

/* The kernels of a matrix's product depend on its type. */
struct products {
	const struct gpu_kernel *embed, *heads, *add, *swiglu, *norm;
};

struct state {
	struct gpu *g;
	struct qwen_shape shape;
	struct kfd_queue *queue;
	struct products of[QWEN_WEIGHTS];
	const struct gpu_kernel *attend, *split, *join, *argmax, *copy;
	uint32_t ratio, splits; /* heads of a group of attention; at most */
	struct kfd_mem *key, *value; /* [layers][sequences][kv][positions][d] */
	size_t layer_bytes; /* of one layer's keys */
	struct kfd_mem *cosine, *sine;
	struct kfd_mem *words; /* [WORDS][max_tokens] i32, host memory */
	struct kfd_mem *x, *q, *a, *ffn, *part, *top;
	struct kfd_mem *logits, *best; /* [cap_wanted] rows */
	struct kfd_mem *out;	       /* the same in host memory */
	uint32_t cap_wanted;
	struct qwen_counts counts;
	uint64_t ticket; /* of the last packet */
};

/* ---- memory ---- */

static bool memory(struct state *s, enum kfd_domain domain, const char *name,
		   size_t bytes, struct kfd_mem **out, struct err *e)
{
	return kfd_mem_alloc(s->g->dev, domain, bytes, name, out, e);
}

static bool cache_new(struct state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t size = s->shape.cache == QWEN_W_F32 ? 4 : 2, all;

	s->layer_bytes = (size_t)s->shape.sequences * c->kv_heads *
			 s->shape.positions * c->head_dim * size;
	all = c->layers * s->layer_bytes;
	return memory(s, KFD_VRAM_PRIVATE, "keys", all, &s->key, e) &&
	       memory(s, KFD_VRAM_PRIVATE, "values", all, &s->value, e);
}

static bool angles_new(struct state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = (size_t)s->shape.positions * (c->head_dim / 2);
	size_t bytes = n * sizeof(float);
	float *cosine = xmalloc(2 * bytes), *sine = cosine + n;
	bool good;

	qwen_angles(c, s->shape.positions, cosine, sine);
	good = memory(s, KFD_VRAM_PRIVATE, "cosines", bytes, &s->cosine, e) &&
	       memory(s, KFD_VRAM_PRIVATE, "sines", bytes, &s->sine, e) &&
	       kfd_write(s->g->dev, s->cosine, 0, cosine, bytes, e) &&
	       kfd_write(s->g->dev, s->sine, 0, sine, bytes, e);
	free(cosine);
	return good;
}

static bool buffers_new(struct state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = s->shape.max_tokens, d = c->heads * c->head_dim;
	size_t some = n < SPLIT_TOKENS ? n : SPLIT_TOKENS;
	const struct {
		const char *name;
		size_t floats;
		struct kfd_mem **mem;
	} want[] = {
		{ "activations", n * c->hidden, &s->x },
		{ "queries", n * d, &s->q },
		{ "attention", n * d, &s->a },
		{ "feed forward", n * c->ffn, &s->ffn },
		{ "attention of splits", some * d * s->splits, &s->part },
		{ "sums of splits", some * c->heads * s->splits * 2, &s->top },
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (!memory(s, KFD_VRAM_PRIVATE, want[i].name,
			    want[i].floats * sizeof(float), want[i].mem, e))
			return false;
	return memory(s, KFD_GTT, "ids and positions",
		      WORDS * n * sizeof(int32_t), &s->words, e);
}

/* Room for n rows of results. */
static bool results_grow(struct state *s, uint32_t n, struct err *e)
{
	size_t bytes = (size_t)n * s->g->m->config.vocab * sizeof(float);

	if (n <= s->cap_wanted)
		return true;
	kfd_mem_free(s->g->dev, s->logits);
	kfd_mem_free(s->g->dev, s->out);
	kfd_mem_free(s->g->dev, s->best);
	s->logits = s->out = s->best = NULL;
	s->cap_wanted = 0;
	if (!memory(s, KFD_VRAM_PRIVATE, "logits", bytes, &s->logits, e) ||
	    !memory(s, KFD_GTT, "logits for the host", bytes, &s->out, e) ||
	    !memory(s, KFD_GTT, "best ids", n * sizeof(int32_t), &s->best, e))
		return false;
	s->cap_wanted = n;
	return true;
}

/* ---- kernels ---- */

static bool products_find(struct state *s, enum qwen_weights w, struct err *e)
{
	struct kernel_shape shape = { .type = DSL_F32, .weights = gpu_type(w),
				      .cache = gpu_type(s->shape.cache) };
	struct products *p = &s->of[w];
	struct gpu *g = s->g;

	if (p->norm)
		return true;
	return (p->embed = gpu_kernel(g, "stream_embed", &shape, e)) &&
	       (p->heads = gpu_kernel(g, "stream_heads", &shape, e)) &&
	       (p->add = gpu_kernel(g, "stream_add", &shape, e)) &&
	       (p->swiglu = gpu_kernel(g, "stream_swiglu", &shape, e)) &&
	       (p->norm = gpu_kernel(g, "stream_norm", &shape, e));
}

/* The largest divisor that a kernel can have. */
static uint32_t ratio_of(const struct qwen_config *c)
{
	uint32_t r = c->heads / c->kv_heads, best = 1;

	for (uint32_t i = 1; i <= KERNEL_MAX_RATIO; i++)
		if (r % i == 0)
			best = i;
	return best;
}

static bool kernels_find(struct state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct kernel_shape heads = {
		.type = DSL_F32, .cache = gpu_type(s->shape.cache),
		.head = c->head_dim, .ratio = s->ratio,
	}, plain = { .type = DSL_F32 }, wide = { .type = DSL_F32,
						 .group = 1024 };
	struct gpu *g = s->g;

	if (!products_find(s, g->embed.type, e) ||
	    !products_find(s, g->head.type, e))
		return false;
	for (uint32_t i = 0; i < c->layers; i++) {
		const struct gpu_layer *l = &g->layer[i];
		if (!products_find(s, l->heads.type, e) ||
		    !products_find(s, l->out.type, e) ||
		    !products_find(s, l->both.type, e) ||
		    !products_find(s, l->down.type, e))
			return false;
	}
	return (s->attend = gpu_kernel(g, "attn_decode", &heads, e)) &&
	       (s->split = gpu_kernel(g, "attn_split", &heads, e)) &&
	       (s->join = gpu_kernel(g, "attn_join", &plain, e)) &&
	       (s->argmax = gpu_kernel(g, "argmax", &wide, e)) &&
	       (s->copy = gpu_kernel(g, "convert", &plain, e));
}

/* ---- packets ---- */

/* Arguments of a launch, each at a multiple of its size. */
struct args {
	uint8_t bytes[256];
	size_t n;
};

static void arg(struct args *a, const void *v, size_t size)
{
	a->n = (a->n + size - 1) / size * size;
	memcpy(a->bytes + a->n, v, size);
	a->n += size;
}

static void arg_va(struct args *a, uint64_t va)
{
	arg(a, &va, sizeof(va));
}

static void arg_mem(struct args *a, const struct kfd_mem *m)
{
	arg_va(a, m->va);
}

static void arg_u32(struct args *a, uint32_t v)
{
	arg(a, &v, sizeof(v));
}

static void arg_f32(struct args *a, double x)
{
	float v = (float)x;

	arg(a, &v, sizeof(v));
}

static void arg_matrix(struct args *a, const struct gpu_matrix *w)
{
	arg_va(a, w->w);
	arg_va(a, w->scale);
}

static void arg_word(struct args *a, const struct state *s, enum word w)
{
	arg_va(a, s->words->va + (uint64_t)w * s->shape.max_tokens *
					 sizeof(int32_t));
}

/* Strides of the cache, in elements: of a position, a head, a sequence. */
static void arg_strides(struct args *a, const struct state *s)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t head = s->shape.positions * c->head_dim;

	arg_u32(a, c->head_dim);
	arg_u32(a, head);
	arg_va(a, (uint64_t)c->kv_heads * head);
}

static bool put(struct state *s, const struct gpu_kernel *k,
		const struct args *a, uint64_t gx, uint64_t gy, struct err *e)
{
	uint32_t wg = k->shape.group;
	struct kfd_launch l = {
		.kernel = k->kernel,
		.grid = { (uint32_t)gx * wg, (uint32_t)gy, 1 },
		.wg = { wg, 1, 1 },
		.args = a->bytes,
		.args_bytes = a->n,
	};

	s->counts.packets++;
	return kfd_put(s->queue, &l, &s->ticket, e);
}

static uint64_t groups_of(const struct gpu_kernel *k, uint64_t n)
{
	return kernel_groups(k->entry, &k->shape, n);
}

/* ---- the layers ---- */

static bool embed(struct state *s, uint32_t n, struct err *e)
{
	const struct gpu_matrix *w = &s->g->embed;
	struct args a = { .n = 0 };

	arg_mem(&a, s->x);
	arg_matrix(&a, w);
	arg_word(&a, s, ID);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put(s, s->of[w->type].embed, &a, n, 1, e);
}

/* Queries, keys and values: normed, turned, and kept. */
static bool heads(struct state *s, uint32_t layer, uint32_t n, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_layer *l = &s->g->layer[layer];
	struct args a = { .n = 0 };

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
	arg_word(&a, s, POSITION);
	arg_word(&a, s, SLOT);
	arg_u32(&a, c->heads);
	arg_u32(&a, c->kv_heads);
	arg_u32(&a, c->head_dim);
	arg_u32(&a, c->hidden);
	arg_strides(&a, s);
	return put(s, s->of[l->heads.type].heads, &a,
		   c->heads + 2 * c->kv_heads, n, e);
}

static bool join(struct state *s, uint32_t n, uint32_t splits, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t rows = n * c->heads;
	struct args a = { .n = 0 };

	arg_mem(&a, s->a);
	arg_mem(&a, s->part);
	arg_mem(&a, s->top);
	arg_u32(&a, splits);
	arg_u32(&a, c->head_dim);
	arg_u32(&a, rows);
	return put(s, s->join, &a, groups_of(s->join, rows), 1, e);
}

/* `longest`: keys of the token that has most. */
static bool attention(struct state *s, uint32_t layer, uint32_t n,
		      uint32_t longest, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t splits = n > SPLIT_TOKENS ? 1 :
			  (longest + SPLIT_KEYS - 1) / SPLIT_KEYS;
	bool whole = splits == 1;
	struct args a = { .n = 0 };

	arg_mem(&a, whole ? s->a : s->part);
	if (!whole)
		arg_mem(&a, s->top);
	arg_mem(&a, s->q);
	arg_va(&a, s->key->va + layer * s->layer_bytes);
	arg_va(&a, s->value->va + layer * s->layer_bytes);
	arg_word(&a, s, LENGTH);
	arg_word(&a, s, SLOT);
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
static bool add(struct state *s, const struct gpu_matrix *w,
		const struct kfd_mem *y, uint32_t n, struct err *e)
{
	const struct gpu_kernel *k = s->of[w->type].add;
	struct args a = { .n = 0 };

	arg_mem(&a, s->x);
	arg_matrix(&a, w);
	arg_mem(&a, y);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put(s, k, &a, groups_of(k, w->rows), n, e);
}

static bool swiglu(struct state *s, const struct gpu_layer *l, uint32_t n,
		   struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct gpu_kernel *k = s->of[l->both.type].swiglu;
	struct args a = { .n = 0 };

	arg_mem(&a, s->ffn);
	arg_matrix(&a, &l->both);
	arg_mem(&a, s->x);
	arg_va(&a, l->ffn_norm);
	arg_f32(&a, c->norm_eps);
	arg_u32(&a, c->ffn);
	arg_u32(&a, c->hidden);
	return put(s, k, &a, groups_of(k, c->ffn), n, e);
}

static bool layer(struct state *s, uint32_t i, uint32_t n, uint32_t longest,
		  struct err *e)
{
	const struct gpu_layer *l = &s->g->layer[i];

	return heads(s, i, n, e) && attention(s, i, n, longest, e) &&
	       add(s, &l->out, s->a, n, e) && swiglu(s, l, n, e) &&
	       add(s, &l->down, s->ffn, n, e);
}

/* ---- results ---- */

static bool logits(struct state *s, uint32_t n, struct err *e)
{
	const struct gpu_matrix *w = &s->g->head;
	const struct gpu_kernel *k = s->of[w->type].norm;
	struct args a = { .n = 0 };

	arg_mem(&a, s->logits);
	arg_matrix(&a, w);
	arg_mem(&a, s->x);
	arg_va(&a, s->g->norm);
	arg_f32(&a, s->g->m->config.norm_eps);
	arg_word(&a, s, PICK);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put(s, k, &a, groups_of(k, w->rows), n, e);
}

static bool best(struct state *s, uint32_t n, struct err *e)
{
	struct args a = { .n = 0 };

	arg_mem(&a, s->best);
	arg_mem(&a, s->logits);
	arg_u32(&a, s->g->m->config.vocab);
	return put(s, s->argmax, &a, n, 1, e);
}

/* Row r of the logits to where the host reads it. */
static bool logits_out(struct state *s, uint32_t r, struct err *e)
{
	uint32_t vocab = s->g->m->config.vocab;
	uint64_t at = (uint64_t)r * vocab * sizeof(float);
	struct args a = { .n = 0 };

	arg_va(&a, s->out->va + at);
	arg_va(&a, s->logits->va + at);
	arg_u32(&a, vocab);
	return put(s, s->copy, &a, groups_of(s->copy, vocab), 1, e);
}

static bool results(struct state *s, const struct qwen_pass *p, struct err *e)
{
	bool any = false;

	if (!p->n_wanted)
		return true;
	if (!results_grow(s, p->n_wanted, e) || !logits(s, p->n_wanted, e))
		return false;
	for (uint32_t r = 0; r < p->n_wanted; r++) {
		any |= p->token[p->wanted[r]].best;
		if (p->token[p->wanted[r]].logits && !logits_out(s, r, e))
			return false;
	}
	return !any || best(s, p->n_wanted, e);
}

static void results_read(struct state *s, const struct qwen_pass *p)
{
	uint32_t vocab = s->g->m->config.vocab;
	const int32_t *id = s->best ? s->best->cpu : NULL;
	const float *from = s->out ? s->out->cpu : NULL;

	for (uint32_t r = 0; r < p->n_wanted; r++) {
		const struct qwen_token *t = &p->token[p->wanted[r]];
		size_t at = (size_t)r * vocab, bytes = vocab * sizeof(float);
		if (t->best)
			p->best[r] = (uint32_t)id[r];
		if (t->logits)
			memcpy(p->logits + at, from + at, bytes);
		s->counts.copies += t->best + t->logits;
		s->counts.copied_bytes += t->best * sizeof(*id) +
					  t->logits * bytes;
	}
}

/* ---- the pass ---- */

/* What the kernels read of the tokens; returns the longest context. */
static uint32_t words_write(struct state *s, const struct qwen_pass *p)
{
	int32_t *w = s->words->cpu;
	uint32_t stride = s->shape.max_tokens, longest = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t length = p->position[i] + 1;
		w[ID * stride + i] = (int32_t)p->token[i].id;
		w[POSITION * stride + i] = (int32_t)p->position[i];
		w[SLOT * stride + i] = (int32_t)p->token[i].sequence;
		w[LENGTH * stride + i] = (int32_t)length;
		longest = length > longest ? length : longest;
	}
	for (uint32_t r = 0; r < p->n_wanted; r++)
		w[PICK * stride + r] = (int32_t)p->wanted[r];
	s->counts.copies++;
	s->counts.copied_bytes += (4 * p->n + p->n_wanted) * sizeof(*w);
	return longest;
}

/*
 * A card does a layer in milliseconds; the gfx1100 in software takes what the
 * host takes, and has its own watch for kernels that hang.
 */
static bool wait_for(struct state *s, uint64_t ticket, struct err *e)
{
	bool soft = strcmp(kfd_info(s->g->dev)->origin, "emulated") == 0;
	uint64_t limit = soft ? 3600000000000ull : KFD_DEADLINE_NS;

	return kfd_wait(s->queue, ticket, time_mono_ns() + limit, NULL, e);
}

static bool stopped(const struct qwen_pass *p)
{
	return p->stop && *p->stop;
}

static bool layers(struct state *s, const struct qwen_pass *p,
		   uint32_t longest, struct err *e)
{
	uint64_t done[AHEAD];

	for (uint32_t i = 0; i < s->g->m->config.layers; i++) {
		if (p->stop && i >= AHEAD && !wait_for(s, done[i % AHEAD], e))
			return false;
		if (stopped(p))
			return err_set(e, ERR_BUSY, "stopped in layer %u", i);
		if (!layer(s, i, p->n, longest, e))
			return false;
		kfd_flush(s->queue);
		done[i % AHEAD] = s->ticket;
	}
	return true;
}

bool gpu_forward(void *state, const struct qwen_pass *p, struct err *e)
{
	struct state *s = state;
	uint32_t longest = words_write(s, p);
	bool good = embed(s, p->n, e) && layers(s, p, longest, e) &&
		    results(s, p, e);

	kfd_flush(s->queue);
	s->counts.passes++;
	if (!good) {
		/* What was put may still run on the buffers. */
		wait_for(s, s->ticket, NULL);
		return false;
	}
	if (!wait_for(s, s->ticket, e))
		return false;
	results_read(s, p);
	return true;
}

/* ---- the state ---- */

void *gpu_state_new(const struct qwen_model *m, const struct qwen_shape *shape,
		    struct err *e)
{
	/* Two packets more than five a layer where attention is split. */
	const uint32_t packets = 8 * m->config.layers + 64;
	struct kfd_queue_opts o = { .ring_packets = 64 };
	struct state *s;

	if (shape->cache >= QWEN_W_INT8) {
		err_set(e, ERR_UNSUPPORTED, "a cache of %s; the gfx1100 "
			"backend has f32, f16 and bf16",
			qwen_weights_name(shape->cache));
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->g = m->device;
	s->shape = *shape;
	s->ratio = ratio_of(&m->config);
	s->splits = (shape->positions + SPLIT_KEYS - 1) / SPLIT_KEYS;
	while (o.ring_packets < packets)
		o.ring_packets *= 2;
	o.kernarg_bytes = o.ring_packets * 512;
	if (kernels_find(s, e) && cache_new(s, e) && angles_new(s, e) &&
	    buffers_new(s, e) && kfd_queue_new(s->g->dev, &o, &s->queue, e))
		return s;
	gpu_state_free(s);
	return NULL;
}

void gpu_state_free(void *state)
{
	struct state *s = state;
	struct kfd_mem *all[] = { s->key, s->value, s->cosine, s->sine,
				  s->words, s->x, s->q, s->a, s->ffn, s->part,
				  s->top, s->logits, s->best, s->out };

	kfd_queue_free(s->queue, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		kfd_mem_free(s->g->dev, all[i]);
	free(s);
}

uint64_t gpu_cache_bytes(const void *state)
{
	const struct state *s = state;

	return 2 * s->g->m->config.layers * s->layer_bytes;
}

void gpu_counts(const void *state, struct qwen_counts *out)
{
	*out = ((const struct state *)state)->counts;
}
