/*
 * engine/cpu/cpu_forward.c - the CPU backend: state, layers, sharing among
 * threads.
 *
 * Every step is split over the model's threads, by rows of the weights, so
 * that each thread streams its own part of a matrix.  Decoding (cpu_decode.c)
 * is bound by memory, a prompt (cpu_prefill.c) by arithmetic.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/float.h"
#include "engine/cpu/cpu_int.h"

#define HUGE_PAGE ((size_t)2 << 20)

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* In large pages where it is large: rows of activations are far apart. */
static float *alloc_floats(struct cpu *s, size_t a, size_t b)
{
	size_t bytes = a * b * sizeof(float), spare = HUGE_PAGE;
	uint8_t *p;

	if (bytes < HUGE_PAGE)
		return arena_alloc(&s->mem, bytes);
	p = arena_alloc(&s->mem, bytes + spare);
	p += -(uintptr_t)p % HUGE_PAGE;
	madvise(p, bytes, MADV_HUGEPAGE);
	return (float *)p;
}

/* ---- activations ---- */

static bool has_bytes(void)
{
	return cpu_gemm_may(CPU_LEVEL_VNNI) ||
	       cpu_gemm_may(CPU_LEVEL_AVX_VNNI) ||
	       cpu_gemm_may(CPU_LEVEL_BYTES);
}

/* Are there products of few tokens with weights and inputs of bf16? */
static bool has_pairs(const struct qwen_model *m)
{
	return m->kernels->product_pairs && cpu_gemm_may(CPU_LEVEL_BF16);
}

enum qwen_activations cpu_activations(const struct qwen_model *m,
				      enum qwen_weights w, bool wide)
{
	switch (m->activations) {
	case QWEN_AS_AUTO:
		if (qwen_is_integer(w))
			return !wide || has_bytes() ? QWEN_AS_INT8 :
						      QWEN_AS_F32;
		return w == QWEN_W_BF16 && (wide ? cpu_gemm_may(CPU_LEVEL_BF16) :
						   has_pairs(m)) ?
			       QWEN_AS_BF16 :
			       QWEN_AS_F32;
	case QWEN_AS_INT8:
		return qwen_is_integer(w) ? QWEN_AS_INT8 : QWEN_AS_F32;
	default:
		return m->activations;
	}
}

void cpu_round(enum qwen_activations as, float *x, size_t n)
{
	for (size_t i = 0; i < n && as == QWEN_AS_BF16; i++) {
		uint32_t u = f32_bits(x[i]);
		if (x[i] == x[i])
			x[i] = f32_value((u + 0x7fff + (u >> 16 & 1)) &
					 0xffff0000);
	}
	for (size_t i = 0; i < n && as == QWEN_AS_F16; i++)
		x[i] = (float)(_Float16)x[i];
}

/* ---- memory ---- */

static uint32_t widest_of(const struct qwen_config *c)
{
	return max_u32(c->ffn, max_u32(c->hidden, c->heads * c->head_dim));
}

static void quants_init(struct cpu *s, struct qwen_quants *q, uint32_t n)
{
	uint32_t widest = widest_of(&s->m->config);
	struct qwen_quants none;
	size_t bytes = qwen_quants_place(&none, widest, NULL);

	for (uint32_t i = 0; i < n; i++)
		qwen_quants_place(&q[i], widest, arena_alloc(&s->mem, bytes));
}

static void worker_init(struct cpu *s, struct worker *w, unsigned thread)
{
	const struct qwen_config *c = &s->m->config;

	const uint32_t queries = s->together * (c->heads / c->kv_heads);

	*w = (struct worker){ .s = s, .t = s->m->threads, .thread = thread };
	w->score = alloc_floats(s, queries, QWEN_RUN);
	w->query = alloc_floats(s, queries, c->head_dim);
	w->sum = alloc_floats(s, queries, c->head_dim);
	w->part = arena_alloc(&s->mem, queries * sizeof(*w->part));
	w->wide = alloc_floats(s, QWEN_RUN, c->head_dim);
	w->h = alloc_floats(s, NARROW, c->hidden);
	w->xp = (uint16_t *)alloc_floats(s, NARROW * s->each,
					 (widest_of(c) + 1) / 2);
	w->xr = alloc_floats(s, NARROW * s->each, widest_of(c));
	w->row = alloc_floats(s, 1, widest_of(c));
	w->best = arena_alloc(&s->mem, s->shape.max_tokens * sizeof(*w->best));
	w->xq = arena_alloc(&s->mem, NARROW * s->each * sizeof(*w->xq));
	quants_init(s, w->xq, NARROW * s->each);
}

static void buffers_init(struct cpu *s)
{
	const struct qwen_config *c = &s->m->config;
	size_t n = s->shape.max_tokens, items;
	unsigned threads = threads_count(s->m->threads);

	s->x = alloc_floats(s, n, c->hidden);
	s->h = alloc_floats(s, n, c->hidden);
	s->q = alloc_floats(s, n, (size_t)c->heads * c->head_dim);
	s->a = alloc_floats(s, n, (size_t)c->heads * c->head_dim);
	s->k = alloc_floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->v = alloc_floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->each = c->experts.n ? c->experts.used : 1;
	s->gate = alloc_floats(s, n * s->each, c->ffn);
	s->up = alloc_floats(s, n * s->each, c->ffn);
	cpu_experts_init(s);
	s->run = arena_alloc(&s->mem, n * sizeof(*s->run));
	s->there = arena_alloc(&s->mem,
			       NARROW * c->kv_heads * sizeof(*s->there));
	items = (size_t)NARROW * c->heads * s->cache.runs;
	s->sums = alloc_floats(s, items, c->head_dim);
	s->part = arena_alloc(&s->mem, items * sizeof(*s->part));
	s->worker = arena_alloc(&s->mem, threads * sizeof(*s->worker));
	for (unsigned t = 0; t < threads; t++)
		worker_init(s, &s->worker[t], t);
}

/*
 * The winners of t0-tune --device host, for as many threads.  A database that
 * cannot be read leaves the defaults: nothing else of it is needed.
 */
static bool cpu_open(struct qwen_model *m, const struct qwen_load *how,
		     struct err *e)
{
	struct err bad = { 0 };
	char text[sizeof(bad.msg) + 64];

	(void)e;
	m->device = cpu_table_open(NULL, threads_count(m->threads), &bad);
	if (!m->device && how->warn) {
		snprintf(text, sizeof(text), "products are not tuned: %s",
			 bad.msg);
		how->warn(how->ctx, text);
	}
	return true;
}

static void cpu_close(struct qwen_model *m)
{
	cpu_table_free(m->device);
	m->device = NULL;
}

static void *cpu_state_new(const struct qwen_model *m,
			   const struct qwen_shape *shape, struct err *e)
{
	const struct qwen_config *c = &m->config;
	struct cpu *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->shape = *shape;
	s->pairs = has_pairs(m) && cpu_activations(m, QWEN_W_BF16, false) ==
					   QWEN_AS_BF16;
	s->together = TOGETHER_ROWS * c->kv_heads / c->heads;
	s->together = s->together > TOGETHER ? TOGETHER :
		      s->together < 16	     ? 16 :
					       s->together;
	s->cache = (struct qwen_cache){ .type = shape->cache,
					.layers = c->layers,
					.blocks = shape->blocks,
					.sequences = shape->sequences,
					.positions = shape->positions,
					.kv_heads = c->kv_heads,
					.head_dim = c->head_dim,
					.k = m->kernels };
	if (!qwen_cache_init(&s->cache, e)) {
		free(s);
		return NULL;
	}
	buffers_init(s);
	s->cosine = alloc_floats(s, shape->positions, c->head_dim / 2);
	s->sine = alloc_floats(s, shape->positions, c->head_dim / 2);
	return s;
}

static void cpu_state_free(void *state)
{
	struct cpu *s = state;

	for (unsigned t = 0; t < threads_count(s->m->threads); t++)
		cpu_gemm_scratch_fini(&s->worker[t].gemm);
	free(s->stored);
	qwen_cache_fini(&s->cache);
	arena_fini(&s->mem);
	free(s);
}

static uint64_t cpu_cache_bytes(const void *state)
{
	return ((const struct cpu *)state)->cache.size_bytes;
}

static void cpu_map(void *state, uint32_t sequence, const uint32_t *block)
{
	((struct cpu *)state)->cache.table[sequence] = block;
}

static void cpu_copy(void *state, uint32_t from, uint32_t to)
{
	qwen_cache_copy(&((struct cpu *)state)->cache, from, to);
}

/* ---- of both kinds of passes ---- */

static void head_turn(const struct cpu *s, float *x, const float *norm,
		      uint32_t position)
{
	const struct qwen_config *c = &s->m->config;
	size_t at = (size_t)position * (c->head_dim / 2);

	s->m->kernels->rms_norm(x, norm, c->head_dim, (float)c->norm_eps, x);
	s->m->kernels->rope(x, s->cosine + at, s->sine + at, c->head_dim);
}

/* What a tree's token n has stored. */
static float *stored_at(const struct cpu *s, uint32_t n,
			const struct qwen_place *p)
{
	const struct qwen_config *c = &s->m->config;
	size_t at = ((size_t)p->layer * NARROW + n) * 2 + p->part;

	return s->stored + (at * c->kv_heads + p->head) * c->head_dim;
}

void cpu_kv_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h)
{
	const struct qwen_config *c = &s->m->config;
	size_t row = ((size_t)n * c->kv_heads + h) * c->head_dim;
	uint32_t at = s->p->position[n];
	struct qwen_place p = { QWEN_KEYS, layer, s->p->token[n].sequence, h };

	head_turn(s, s->k + row, s->m->layer[layer].k_norm, at);
	qwen_cache_put(&s->cache, &p, at, s->k + row);
	p.part = QWEN_VALUES;
	qwen_cache_put(&s->cache, &p, at, s->v + row);
	if (!s->p->tree)
		return;
	p.part = QWEN_KEYS;
	memcpy(stored_at(s, n, &p), s->k + row, c->head_dim * sizeof(float));
	p.part = QWEN_VALUES;
	memcpy(stored_at(s, n, &p), s->v + row, c->head_dim * sizeof(float));
}

/* Again, where another branch of its tree has been since. */
static void cpu_take(void *state, uint32_t i)
{
	const struct cpu *s = state;
	const struct qwen_config *c = &s->m->config;
	struct qwen_place p = { .sequence = s->p->token[i].sequence };

	for (p.layer = 0; p.layer < c->layers; p.layer++)
		for (p.head = 0; p.head < c->kv_heads; p.head++)
			for (int part = 0; part < 2; part++) {
				p.part = part ? QWEN_VALUES : QWEN_KEYS;
				qwen_cache_put(&s->cache, &p,
					       s->p->position[i],
					       stored_at(s, i, &p));
			}
}

void cpu_q_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h)
{
	const struct qwen_config *c = &s->m->config;
	float *q = s->q + ((size_t)n * c->heads + h) * c->head_dim;

	head_turn(s, q, s->m->layer[layer].q_norm, s->p->position[n]);
	if (s->cache.type.keys == QWEN_W_INT4R)
		s->m->kernels->turn(q, c->head_dim);
}

void cpu_turn_back(const struct cpu *s, float *a)
{
	if (s->cache.type.values == QWEN_W_INT4R)
		s->m->kernels->turn(a, s->m->config.head_dim);
}

struct rows cpu_part(const struct worker *w, const struct qwen_matrix *m,
		     float *y, bool add)
{
	struct rows r = { .w = m, .y = y, .add = add };

	threads_part(w->t, w->thread, m->rows, 16, &r.r0, &r.r1);
	return r;
}

/* ---- one pass ---- */

/* Cuts the pass into runs. */
static void runs_init(struct cpu *s)
{
	const struct qwen_pass *p = s->p;

	s->n_runs = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		struct run *r = &s->run[s->n_runs];
		if (i && r[-1].n < s->together &&
		    p->token[i].sequence == p->token[i - 1].sequence)
			r[-1].n++;
		else
			s->run[s->n_runs++] = (struct run){ i, 1 };
	}
}

static void last_norm(struct cpu *s, uint32_t token, float *h)
{
	const struct qwen_config *c = &s->m->config;

	s->m->kernels->rms_norm(s->x + (size_t)token * c->hidden, s->m->norm,
				c->hidden, (float)c->norm_eps, h);
}

/* What is wanted of the last norm itself. */
static void show_hidden(struct worker *w)
{
	const struct qwen_pass *p = w->s->p;
	size_t from, to;

	threads_part(w->t, w->thread, p->n_shown, 1, &from, &to);
	for (size_t r = from; r < to; r++)
		last_norm(w->s, p->shown[r],
			  p->hidden + r * w->s->m->config.hidden);
}

/* The larger logit, of equals the lower id. */
static bool is_better(struct best a, struct best b)
{
	return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* The best of rows r0 .. r1 of the output layer, too. */
static void best_of(struct worker *w, const struct rows *head)
{
	const struct qwen_pass *p = w->s->p;
	uint32_t n = (uint32_t)(head->r1 - head->r0);

	for (uint32_t r = 0; r < p->n_wanted && n; r++) {
		const float *v = p->logits + (size_t)r * head->w->rows;
		struct best best = { .id = (uint32_t)head->r0 };
		if (!p->token[p->wanted[r]].best)
			continue;
		best.logit = w->s->m->kernels->largest(v + head->r0, n);
		if (best.logit < w->best[r].logit)
			continue;
		while (best.id + 1 < head->r1 && v[best.id] != best.logit)
			best.id++;
		if (is_better(best, w->best[r]))
			w->best[r] = best;
	}
}

/* The output layer, only for the tokens whose results are wanted. */
static void compute_logits(struct worker *w)
{
	struct cpu *s = w->s;
	const struct qwen_pass *p = s->p;
	const struct qwen_config *c = &s->m->config;
	struct rows head = cpu_part(w, &s->m->head, p->logits, false);
	struct threads_deal d;
	size_t from, to;

	for (uint32_t r = 0; r < p->n_wanted; r++)
		w->best[r] = (struct best){ -INFINITY, 0 };
	if (p->n_wanted > NARROW) {
		threads_part(w->t, w->thread, p->n_wanted, 1, &from, &to);
		for (size_t r = from; r < to; r++)
			last_norm(s, p->wanted[r], s->h + r * c->hidden);
		threads_barrier(w->t);
		cpu_prefill_products(w, s->h, p->n_wanted, &head, 1);
		best_of(w, &head);
	} else if (p->n_wanted) {
		for (uint32_t r = 0; r < p->n_wanted; r++)
			last_norm(s, p->wanted[r], w->h + (size_t)r * c->hidden);
		cpu_input(w, w->h, p->n_wanted, &head, 1);
		threads_deal(&d, w->t, w->thread, c->vocab, cpu_grain(head.w));
		while (threads_take(&d, &head.r0, &head.r1)) {
			cpu_product(w, w->h, 0, p->n_wanted, &head);
			best_of(w, &head);
		}
	}
	threads_barrier(w->t);
}

/* The best of all threads' bests. */
static void merge_bests(struct cpu *s)
{
	for (uint32_t r = 0; r < s->p->n_wanted; r++) {
		struct best best = s->worker[0].best[r];
		for (unsigned t = 1; t < threads_count(s->m->threads); t++)
			if (is_better(s->worker[t].best[r], best))
				best = s->worker[t].best[r];
		s->p->best[r] = best.id;
	}
}

/* What enters a layer, of the thread's tokens. */
static void keep_rows(const struct worker *w, uint32_t layer)
{
	const struct qwen_pass *p = w->s->p;
	const uint32_t hidden = w->s->m->config.hidden;
	size_t from, to;

	threads_part(w->t, w->thread, p->n, 1, &from, &to);
	for (uint32_t k = 0; k < p->n_taps; k++)
		for (size_t i = from; i < to && p->tap[k] == layer; i++)
			memcpy(p->kept[i] + (size_t)k * hidden,
			       w->s->x + i * hidden, hidden * sizeof(float));
}

static void run_pass(void *ctx, struct threads *t, unsigned thread)
{
	struct cpu *s = ctx;
	struct worker *w = &s->worker[thread];
	const struct qwen_config *c = &s->m->config;
	bool narrow = s->p->n <= NARROW;
	size_t from, to;

	cpu_engram_fetch(w);
	threads_part(t, thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		qwen_matrix_row(s->m->kernels, &s->m->embed, s->p->token[i].id,
				s->x + i * c->hidden);
	threads_barrier(t);
	for (uint32_t l = 0; l < c->layers && !s->stopped; l++) {
		if (c->engram.rows && l == c->engram.layer)
			cpu_engram_add(w);
		keep_rows(w, l);
		if (narrow)
			cpu_decode_attention(w, l);
		else
			cpu_prefill_attention(w, l);
		if (c->experts.n)
			cpu_experts_ffn(w, l);
		else if (narrow)
			cpu_decode_ffn(w, l);
		else
			cpu_prefill_ffn(w, l);
	}
	if (s->stopped)
		return;
	show_hidden(w);
	keep_rows(w, c->layers);
	compute_logits(w);
}

/* As many as the positions of the pass need, a run of them at a time. */
static void angles_init(struct cpu *s)
{
	uint32_t most = 0, to;

	for (uint32_t i = 0; i < s->p->n; i++)
		most = max_u32(most, s->p->position[i] + 1);
	if (most <= s->angles)
		return;
	to = (most + QWEN_RUN - 1) / QWEN_RUN * QWEN_RUN;
	to = to < s->shape.positions ? to : s->shape.positions;
	qwen_angles(&s->m->config, s->angles, to, s->cosine, s->sine);
	s->angles = to;
}

static bool cpu_forward(void *state, const struct qwen_pass *p, struct err *e)
{
	struct cpu *s = state;

	s->p = p;
	s->stopped = false;
	angles_init(s);
	if (p->tree && !s->stored)
		s->stored = xcalloc((size_t)s->m->config.layers * NARROW * 2 *
					    s->m->config.kv_heads *
					    s->m->config.head_dim,
				    sizeof(*s->stored));
	if (p->n <= NARROW)
		cpu_decode_init(s);
	else
		runs_init(s);
	threads_run(s->m->threads, run_pass, s);
	if (s->stopped)
		return err_set(e, ERR_STOPPED, "the pass was not finished");
	merge_bests(s);
	return true;
}

/* Vectors of normal length, other ones for every position and head. */
static void cpu_fill(void *state, uint32_t sequence, uint32_t from, uint32_t to)
{
	enum { NOISE = 4096 };
	const struct cpu *s = state;
	const struct qwen_config *c = &s->m->config;
	float *noise = xmalloc((NOISE + c->head_dim) * sizeof(*noise));
	uint64_t seed = from;

	for (uint32_t i = 0; i < NOISE + c->head_dim; i++)
		noise[i] = (float)((int32_t)random_next(&seed) * 0x1p-31 * 1.7);
	for (uint32_t p = from; p < to; p++)
		for (uint32_t i = 0; i < 2 * c->layers * c->kv_heads; i++) {
			const struct qwen_place at = {
				i % 2 ? QWEN_VALUES : QWEN_KEYS,
				i / 2 / c->kv_heads, sequence,
				i / 2 % c->kv_heads
			};
			qwen_cache_put(&s->cache, &at, p,
				       noise + random_next(&seed) % NOISE);
		}
	free(noise);
}

const struct qwen_backend qwen_cpu = {
	.name = "cpu",
	.blocks = true,
	.few = NARROW,
	.taps = true,
	.open = cpu_open,
	.close = cpu_close,
	.state_new = cpu_state_new,
	.state_free = cpu_state_free,
	.cache_bytes = cpu_cache_bytes,
	.forward = cpu_forward,
	.fill = cpu_fill,
	.map = cpu_map,
	.copy = cpu_copy,
	.take = cpu_take,
};
