/*
 * engine/gpu/gpu_pass.c - a pass on the device: one stream of packets.
 *
 * All packets are put, the doorbell rings a layer at a time, and the host
 * waits once; the packets are a chain with one interrupt at its end, or one a
 * layer where the host may stop it.  Ids, positions and results lie in host
 * memory that the device sees; everything else stays on the device.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/gpu/gpu_int.h"

/* Layers under way before the host looks whether it should stop. */
#define AHEAD 4

/* ---- memory ---- */

static bool alloc_memory(struct gpu_state *s, enum kfd_domain domain,
			 const char *name, size_t bytes, struct kfd_mem **out,
			 struct err *e)
{
	return kfd_mem_alloc(s->g->card.dev, domain, bytes, name, out, e);
}

static bool cache_new(struct gpu_state *s, struct err *e)
{
	const enum qwen_weights w = s->shape.cache.keys;
	const struct qwen_config *c = &s->g->m->config;
	size_t positions = s->pages ? (size_t)s->shape.blocks * QWEN_BLOCK :
				      (size_t)s->shape.sequences *
					      s->shape.positions;
	size_t all;

	const enum dsl_type type = gpu_cache_type(w);

	s->element = type == DSL_F32 || type == DSL_U32 ? 4 :
		     type == DSL_I8 || type == DSL_U8	? 1 : 2;
	s->layer_bytes = positions * c->kv_heads * s->vector * s->element;
	all = c->layers * s->layer_bytes;
	return alloc_memory(s, KFD_VRAM_PRIVATE, "keys", all, &s->key, e) &&
	       alloc_memory(s, KFD_VRAM_PRIVATE, "values", all, &s->value, e);
}

static bool angles_new(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = (size_t)s->shape.positions * (c->head_dim / 2);
	size_t bytes = n * sizeof(float);
	float *cosine = xmalloc(2 * bytes), *sine = cosine + n;
	bool good;

	qwen_angles(c, 0, s->shape.positions, cosine, sine);
	good = alloc_memory(s, KFD_VRAM_PRIVATE, "cosines", bytes, &s->cosine,
			    e) &&
	       alloc_memory(s, KFD_VRAM_PRIVATE, "sines", bytes, &s->sine, e) &&
	       kfd_write(s->g->card.dev, s->cosine, 0, cosine, bytes, e) &&
	       kfd_write(s->g->card.dev, s->sine, 0, sine, bytes, e);
	free(cosine);
	return good;
}

static bool buffers_new(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	size_t n = s->shape.max_tokens, d = c->heads * c->head_dim;
	size_t most = gpu_is_exact(s) ? QWEN_FEW : SPLIT_TOKENS;
	size_t some = n < most ? n : most;
	size_t pairs = c->experts.n ? c->experts.used : 1;
	const struct {
		const char *name;
		size_t floats;
		struct kfd_mem **mem;
	} want[] = {
		{ "queries", n * d, &s->q },
		{ "attention", n * d, &s->a },
		{ "feed forward", n * c->ffn * pairs, &s->ffn },
		{ "attention of splits", some * d * s->splits, &s->part },
		{ "sums of splits", some * c->heads * s->splits * 2, &s->top },
	};

	if (!alloc_memory(s, s->g->team->shared, "activations",
			  n * c->hidden * sizeof(float), &s->x, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (!alloc_memory(s, KFD_VRAM_PRIVATE, want[i].name,
				  want[i].floats * sizeof(float), want[i].mem,
				  e))
			return false;
	if (!alloc_memory(s, KFD_GTT, "ids and positions",
			  GPU_WORDS * (n + 1) * sizeof(int32_t), &s->words, e))
		return false;
	for (size_t i = 0; i <= n; i++)
		host_words(s, GPU_ROW)[i] = (int32_t)i;
	return gpu_tile_buffers(s, e) && gpu_expert_buffers(s, e);
}

/* Room for n rows of results. */
static bool results_grow(struct gpu_state *s, uint32_t n, struct err *e)
{
	size_t bytes = (size_t)n * s->g->m->config.vocab * sizeof(float);

	if (n <= s->cap_wanted)
		return true;
	kfd_mem_free(s->g->card.dev, s->logits);
	kfd_mem_free(s->g->card.dev, s->out);
	kfd_mem_free(s->g->card.dev, s->best);
	kfd_mem_free(s->g->card.dev, s->whole);
	s->logits = s->out = s->best = s->whole = NULL;
	s->cap_wanted = 0;
	if (!alloc_memory(s, s->g->team->shared, "logits", bytes, &s->logits,
			  e) ||
	    (s->g->number == 0 &&
	     (!alloc_memory(s, KFD_GTT, "logits for the host", bytes, &s->out,
			    e) ||
	      !alloc_memory(s, KFD_GTT, "best ids", n * sizeof(int32_t),
			    &s->best, e))) ||
	    (s->g->number == 0 && s->g->team->n > 1 &&
	     !alloc_memory(s, KFD_VRAM_PRIVATE, "logits of all", bytes,
			   &s->whole, e)) ||
	    (s->g->number &&
	     !kfd_mem_share(s->logits, s->g->card.dev,
			    s->g->team->device[0]->card.dev, e)))
		return false;
	s->cap_wanted = n;
	return true;
}

/* Where the logits of all ids are. */
static const struct kfd_mem *all_logits(const struct gpu_state *s)
{
	return s->whole ? s->whole : s->logits;
}

/* ---- kernels ---- */

static bool products_find(struct gpu_state *s, enum qwen_weights w,
			  struct err *e)
{
	const struct kernel_shape shape = { .type = DSL_F32,
					    .weights = gpu_type(w),
					    .span = gpu_span(w) };
	struct gpu_products *p = &s->of[w];

	return p->embed ||
	       ((p->embed = gpu_kernel(&s->g->card, "stream_embed", &shape,
				       e)) &&
		gpu_tile_kernels(s, w, e) && gpu_stream_kernels(s, w, 1, e));
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

static bool kernels_find(struct gpu_state *s, struct err *e)
{
	const struct qwen_config *c = &s->g->m->config;
	const struct kernel_shape heads = {
		.type = DSL_F32, .cache = gpu_cache_type(s->shape.cache.keys),
		.head = c->head_dim, .ratio = s->ratio, .paged = s->pages,
	}, back = { .type = DSL_F32, .head = c->head_dim },
	   plain = { .type = DSL_F32 }, wide = { .type = DSL_F32,
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
	return gpu_expert_kernels(s, e) &&
	       (s->attend = gpu_kernel(&g->card, "attn_decode", &heads, e)) &&
	       (!gpu_is_turned(s) ||
		(s->back = gpu_kernel(&g->card, "turn_heads", &back, e))) &&
	       (s->split = gpu_kernel(&g->card, "attn_split", &heads, e)) &&
	       (s->join = gpu_kernel(&g->card, "attn_join", &plain, e)) &&
	       (s->argmax = gpu_kernel(&g->card, "argmax", &wide, e)) &&
	       (s->copy = gpu_kernel(&g->card, "convert", &plain, e));
}

/* ---- packets ---- */

static bool put_embed(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct gpu_matrix *w = &s->g->embed;
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->x);
	arg_matrix(&a, w);
	arg_word(&a, s, GPU_ID);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	return put_kernel(s, s->of[w->type].embed, &a, n, 1, e);
}

/* ---- results ---- */

static bool put_logits(struct gpu_state *s, uint32_t n, struct err *e)
{
	const struct gpu_matrix *w = &s->g->head;
	uint32_t each = gpu_stream_tokens(n);
	struct gpu_args a = { .n = 0 };

	if (gpu_tile_logits_pays(s, n))
		return gpu_tile_logits(s, n, e);
	if (!gpu_stream_kernels(s, w->type, each, e))
		return false;
	arg_mem(&a, s->logits);
	arg_matrix(&a, w);
	arg_mem(&a, s->x);
	arg_va(&a, s->g->norm);
	arg_f32(&a, s->g->m->config.norm_eps);
	arg_word(&a, s, GPU_PICK);
	arg_u32(&a, w->rows);
	arg_u32(&a, w->cols);
	const struct gpu_kernel *k = s->of[w->type].stream[each].norm;
	gpu_ends(s);
	return put_kernel(s, k, &a, groups_of(k, w->rows), n / each, e);
}

static bool put_argmax(struct gpu_state *s, uint32_t n, struct err *e)
{
	struct gpu_args a = { .n = 0 };

	arg_mem(&a, s->best);
	arg_mem(&a, all_logits(s));
	arg_u32(&a, s->g->m->config.vocab);
	s->loud = true;
	return put_kernel(s, s->argmax, &a, n, 1, e);
}

/* Row r of the logits to where the host reads it. */
static bool logits_out(struct gpu_state *s, uint32_t r, struct err *e)
{
	uint32_t vocab = s->g->m->config.vocab;
	uint64_t at = (uint64_t)r * vocab * sizeof(float);
	struct gpu_args a = { .n = 0 };

	arg_va(&a, s->out->va + at);
	arg_va(&a, all_logits(s)->va + at);
	arg_u32(&a, vocab);
	return put_kernel(s, s->copy, &a, groups_of(s->copy, vocab), 1, e);
}

static bool read_results(struct gpu_run *run, const struct qwen_pass *p,
			 struct err *e)
{
	struct gpu_state *s = run->rank[0];
	bool any = false;

	if (!gpu_hidden_put(s, p, e))
		return false;
	if (!p->n_wanted)
		return true;
	for (uint32_t r = 0; r < run->n; r++)
		if (!results_grow(run->rank[r], p->n_wanted, e) ||
		    !put_logits(run->rank[r], p->n_wanted, e))
			return false;
	if (!gpu_team_logits(run, p->n_wanted, e))
		return false;
	for (uint32_t r = 0; r < p->n_wanted; r++) {
		any |= p->token[p->wanted[r]].best;
		if (p->token[p->wanted[r]].logits && !logits_out(s, r, e))
			return false;
	}
	return !any || put_argmax(s, p->n_wanted, e);
}

static void results_read(struct gpu_state *s, const struct qwen_pass *p)
{
	uint32_t vocab = s->g->m->config.vocab;
	const int32_t *id = s->best ? s->best->cpu : NULL;
	const float *from = s->out ? s->out->cpu : NULL;

	gpu_hidden_read(s, p);

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

/* Where kernels find a sequence: in the cache, or in the table of blocks. */
static int32_t slot_of(const struct gpu_state *s, uint32_t sequence)
{
	return (int32_t)(s->pages ? sequence * s->pages : sequence);
}

/*
 * Tokens of one sequence that stand together; no runs if a sequence has two
 * of them.
 */
static void runs_write(struct gpu_state *s, const struct qwen_pass *p,
		       struct gpu_pass *out)
{
	int32_t *first = host_words(s, GPU_RUN_FIRST);
	int32_t *length = host_words(s, GPU_RUN_LENGTH);
	int32_t *slot = host_words(s, GPU_RUN_SLOT);
	uint32_t n = 0, most = 0, at;

	for (uint32_t i = 0; i < p->n; i = at) {
		for (uint32_t k = 0; k < n; k++)
			if (slot[k] == slot_of(s, p->token[i].sequence))
				return;
		for (at = i; at < p->n &&
			     p->token[at].sequence == p->token[i].sequence;)
			at++;
		first[n] = (int32_t)i;
		length[n] = (int32_t)p->position[at - 1] + 1;
		slot[n++] = slot_of(s, p->token[i].sequence);
		most = at - i > most ? at - i : most;
	}
	first[n] = (int32_t)p->n;
	out->runs = n;
	out->run_most = most;
	s->counts.copied_bytes += (3 * n + 1) * sizeof(*first);
}

static void words_write(struct gpu_state *s, const struct qwen_pass *p,
			struct gpu_pass *out)
{
	*out = (struct gpu_pass){ .n = p->n,
				  .each = gpu_stream_tokens(p->n) };
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t length = p->position[i] + 1;
		host_words(s, GPU_ID)[i] = (int32_t)p->token[i].id;
		host_words(s, GPU_POSITION)[i] = (int32_t)p->position[i];
		host_words(s, GPU_SLOT)[i] = slot_of(s, p->token[i].sequence);
		host_words(s, GPU_LENGTH)[i] = (int32_t)length;
		out->longest = length > out->longest ? length : out->longest;
	}
	for (uint32_t r = 0; r < p->n_wanted; r++)
		host_words(s, GPU_PICK)[r] = (int32_t)p->wanted[r];
	s->counts.copies++;
	s->counts.copied_bytes += (4 * p->n + p->n_wanted) * sizeof(int32_t);
	if (p->n >= FLASH_RUN)
		runs_write(s, p, out);
}

/*
 * A card does 512 tokens of the largest model in a second or two; the gfx1100
 * in software takes what the host takes, and has its own watch for kernels that
 * hang.
 */
static uint64_t pass_deadline(const struct gpu_state *s, uint32_t tokens)
{
	uint64_t limit = KFD_DEADLINE_NS * (1 + tokens / 512);

	if (qwen_is_emulated(s->g->m))
		limit = 3600000000000ull;
	return time_mono_ns() + limit;
}

static bool is_stopped(const struct qwen_pass *p)
{
	return p->stop && *p->stop;
}

static bool put_share(struct gpu_state *s, uint32_t layer, enum gpu_half half,
		      const struct gpu_pass *p, struct err *e)
{
	if (half == GPU_FEED && s->g->m->config.experts.n)
		return gpu_expert_feed(s, layer, p, e);
	return gpu_tile_pays(s, layer, p->n) ?
		       gpu_tile_layer(s, layer, half, p, e) :
		       gpu_layer(s, layer, half, p, e);
}

static bool put_half(struct gpu_run *run, uint32_t layer, enum gpu_half half,
		     const struct gpu_pass *p, struct err *e)
{
	for (uint32_t r = 0; r < run->n; r++)
		if (!put_share(run->rank[r], layer, half, p, e))
			return false;
	return gpu_team_sum(run, half == GPU_FEED, p->n, e);
}

/* Layers are begun on all devices at once; the first one's are counted. */
static bool put_layers(struct gpu_run *run, const struct qwen_pass *p,
		       const struct gpu_pass *gp, struct err *e)
{
	struct gpu_state *s = run->rank[0];
	uint64_t begun[AHEAD];

	for (uint32_t i = 0; i < s->g->m->config.layers; i++) {
		if (p->stop && i >= AHEAD &&
		    !kfd_wait(s->queue, begun[i % AHEAD], s->deadline_ns, NULL,
			      e))
			return false;
		if (is_stopped(p))
			return err_set(e, ERR_STOPPED, "the pass was not "
				       "finished");
		s->loud = p->stop;
		if (!put_half(run, i, GPU_ATTENTION, gp, e))
			return false;
		begun[i % AHEAD] = s->mark;
		if (!put_half(run, i, GPU_FEED, gp, e))
			return false;
		for (uint32_t r = 0; r < run->n; r++)
			if (run->rank[r]->queue)
				kfd_flush(run->rank[r]->queue);
	}
	return true;
}

bool gpu_put(struct gpu_state *s, const struct gpu_code *c,
	     const struct kfd_launch *l, struct err *e)
{
	struct kfd_launch x = *l;

	s->counts.packets++;
	x.quiet = !s->loud;
	x.deadline_ns = s->deadline_ns;
	s->loud = false;
	if (s->record) {
		gpu_record_launch(s->record, c, &x);
		return true;
	}
	if (!kfd_put(s->queue, &x, &s->ticket, e))
		return false;
	if (!x.quiet)
		s->mark = s->ticket;
	return true;
}

bool gpu_put_pass(struct gpu_run *run, const struct qwen_pass *p,
		  struct err *e)
{
	struct gpu_pass gp;

	for (uint32_t r = 0; r < run->n; r++) {
		struct gpu_state *s = run->rank[r];
		words_write(s, p, &gp);
		gpu_pages_write(s, p);
		s->counts.passes += !r;
		if (!gpu_pages_copy(s, e) || !put_embed(s, p->n, e))
			return false;
	}
	return put_layers(run, p, &gp, e) && read_results(run, p, e);
}

bool gpu_forward(void *state, const struct qwen_pass *p, struct err *e)
{
	struct gpu_run *run = state;
	const uint64_t deadline_ns = pass_deadline(run->rank[0], p->n);

	if (!gpu_team_ready(run, e))
		return false;
	for (uint32_t r = 0; r < run->n; r++)
		run->rank[r]->deadline_ns = deadline_ns;
	bool good = gpu_put_pass(run, p, e);
	for (uint32_t r = 0; r < run->n; r++)
		kfd_flush(run->rank[r]->queue);
	if (!good) {
		/* What was put may still run on the buffers. */
		gpu_team_wait(run, deadline_ns, NULL);
		run->dirty = true;
		return false;
	}
	if (!gpu_team_wait(run, deadline_ns, e)) {
		run->dirty = true;
		return false;
	}
	results_read(run->rank[0], p);
	return true;
}

/* ---- the state ---- */

static void state_free(struct gpu_state *s)
{
	struct kfd_mem *all[] = { s->key, s->value, s->cosine, s->sine,
				  s->words, s->x, s->q, s->a, s->ffn, s->part,
				  s->top, s->narrow, s->qkv, s->workspace,
				  s->wide,
				  s->logits, s->best, s->out, s->whole,
				  s->score, s->share, s->expert,
				  s->order, s->tile, s->pairs, s->shown,
				  s->delta[0], s->delta[1] };

	kfd_queue_free(s->queue, NULL);
	gpu_pages_fini(s);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		kfd_mem_free(s->g->card.dev, all[i]);
	free(s);
}

static bool cache_check(struct qwen_kinds kinds, uint32_t head, struct err *e)
{
	const enum qwen_weights w = kinds.keys;
	const bool whole = head % QWEN_GROUP == 0;
	char text[QWEN_KINDS_TEXT];

	if (kinds.values == w &&
	    (w < QWEN_W_INT8 || w == QWEN_W_F8 ||
	     ((w == QWEN_W_INT8 || w == QWEN_W_INT4) && whole) ||
	     (w == QWEN_W_INT4R && whole && !(head & (head - 1)))))
		return true;
	return err_set(e, ERR_UNSUPPORTED, "a cache of %s for heads of %u; the "
		       "gfx1100 backend has f32, f16, bf16 and f8, int8 and "
		       "int4 for heads that are multiples of %d, and int4r for "
		       "those of 32, 64, 128 or 256, of keys and values alike",
		       qwen_kinds_print(kinds, text), head, QWEN_GROUP);
}

struct gpu_state *gpu_state_make(struct gpu *g, const struct qwen_shape *shape,
				 struct err *e)
{
	const struct qwen_model *m = g->m;
	char text[QWEN_KINDS_TEXT];
	struct gpu_state *s;

	if (!cache_check(shape->cache, m->config.head_dim, e))
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->g = g;
	s->shape = *shape;
	s->ratio = ratio_of(&m->config);
	s->vector = kernel_cache_row(gpu_cache_type(shape->cache.keys),
				     m->config.head_dim);
	s->splits = (shape->positions + SPLIT_KEYS - 1) / SPLIT_KEYS;
	if (shape->blocks)
		s->pages = (shape->positions + QWEN_BLOCK - 1) / QWEN_BLOCK +
			   KERNEL_TABLE_MORE;
	if (kernels_find(s, e) && cache_new(s, e) && gpu_pages_init(s, e) &&
	    angles_new(s, e) &&
	    buffers_new(s, e) && gpu_team_state(s, e))
		return s;
	if (e->code == ERR_NOMEM)
		err_wrap(e, "the cache of %s for %u positions of %u sequences "
			 "does not fit beside the weights (--context, --cache "
			 "int8)", qwen_kinds_print(shape->cache, text),
			 shape->positions, shape->sequences);
	state_free(s);
	return NULL;
}

bool gpu_run_make(struct gpu_run *run, const struct qwen_model *m,
		  const struct qwen_shape *shape, struct err *e)
{
	const struct gpu_team *t = m->device;

	*run = (struct gpu_run){ .team = t };
	while (run->n < t->open) {
		struct gpu_state *s = gpu_state_make(t->device[run->n], shape,
						     e);
		if (!s)
			return false;
		run->rank[run->n++] = s;
	}
	return true;
}

void gpu_run_fini(struct gpu_run *run)
{
	/* One that waits for another ends with its queue. */
	while (run->n)
		state_free(run->rank[--run->n]);
}

static bool queue_new(struct gpu_state *s, struct err *e)
{
	const uint32_t devices = s->g->team->n;
	/*
	 * With tiles a layer has nine, and five that add parts up; of a mixture
	 * nine for attention, all told, and seven for the experts.  What a
	 * cache of int4r turned is turned back.  A team
	 * meets twice in each half of a layer, sums, and fetches; and none of
	 * a pass may stand where another did that is waited for, be it one of
	 * those that gather logits.
	 */
	const uint32_t team = devices > 1 ? 10 + 2 * devices : 0;
	const uint32_t rows = team ? s->shape.max_tokens * (devices + 1) : 0;
	const uint32_t copies = s->pages ? 4 * s->shape.sequences : 0;
	const uint32_t packets = (17 + team) * s->g->m->config.layers + rows +
				 copies + 64;
	struct kfd_queue_opts o = { .ring_packets = 64 };

	while (o.ring_packets < packets)
		o.ring_packets *= 2;
	o.kernarg_bytes = o.ring_packets * 512;
	return kfd_queue_new(s->g->card.dev, &o, &s->queue, e);
}

void *gpu_state_new(const struct qwen_model *m, const struct qwen_shape *shape,
		    struct err *e)
{
	struct gpu_run *run = xcalloc(1, sizeof(*run));
	bool ok = gpu_run_make(run, m, shape, e);

	for (uint32_t r = 0; ok && r < run->n; r++)
		ok = queue_new(run->rank[r], e);
	if (ok && gpu_team_join(run, e))
		return run;
	gpu_state_free(run);
	return NULL;
}

void gpu_state_free(void *state)
{
	gpu_run_fini(state);
	free(state);
}

uint64_t gpu_cache_bytes(const void *state)
{
	const struct gpu_run *run = state;
	const struct gpu_state *s = run->rank[0];

	return 2 * s->g->m->config.layers * s->layer_bytes * run->n;
}

void gpu_counts(const void *state, struct qwen_counts *out)
{
	const struct gpu_run *run = state;

	*out = (struct qwen_counts){ 0 };
	for (uint32_t r = 0; r < run->n; r++) {
		const struct qwen_counts *c = &run->rank[r]->counts;
		out->passes += c->passes;
		out->packets += c->packets;
		out->copies += c->copies;
		out->copied_bytes += c->copied_bytes;
	}
}
