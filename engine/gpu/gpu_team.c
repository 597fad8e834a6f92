/*
 * engine/gpu/gpu_team.c - several devices that share a model: tensor
 * parallelism.
 *
 * Each has a part of every layer: heads of attention (of fewer keys and values
 * than devices, some have the same head) and columns of the feed
 * forward network with the rows of the products before them (column-parallel),
 * and the same columns of the products behind them (row-parallel; Shoeybi et
 * al., Megatron-LM, 2019).  The residual stream is on all of them.  What a
 * device's part of a row-parallel product gives lies in a buffer that the
 * others see, and is added up by each for itself (one shot), or by each for a
 * share, which the others then fetch (two shots): always in the same order, so
 * that all have the same bits.  Of the output layer each has rows; the first
 * device gathers the logits.
 *
 * Queues wait for each other by barrier packets; the host only puts them.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "engine/gpu/gpu_int.h"

/* ---- parts of a model ---- */

static size_t row_bytes(const struct qwen_matrix *w)
{
	return gpu_weight_bytes(w) / w->rows;
}

static struct qwen_matrix take_rows(const struct qwen_matrix *w, uint32_t from,
				    uint32_t n)
{
	struct qwen_matrix part = *w;

	part.rows = n;
	if (w->data)
		part.data = (const char *)w->data + from * row_bytes(w);
	if (w->scale)
		part.scale = w->scale + (size_t)from * (w->cols / QWEN_GROUP);
	return part;
}

static void copy_columns(char *to, const char *from, size_t rows, size_t stride,
			 size_t at, size_t n)
{
	for (size_t r = 0; r < rows; r++)
		memcpy(to + r * n, from + r * stride + at, n);
}

static void *own_memory(struct gpu_part *p, size_t bytes)
{
	VEC_GROW(p->own, p->n_own, 1, p->cap_own);
	return p->own[p->n_own++] = xmalloc(bytes + 1);
}

/* What is copied is the part's. */
static struct qwen_matrix take_columns(struct gpu_part *p,
				       const struct qwen_matrix *w,
				       uint32_t from, uint32_t n)
{
	const size_t stride = row_bytes(w), groups = w->cols / QWEN_GROUP;
	const size_t bytes = stride * n / w->cols;
	struct qwen_matrix part = *w;

	part.cols = n;
	if (w->data) {
		void *data = own_memory(p, w->rows * bytes);
		part.data = data;
		copy_columns(data, w->data, w->rows, stride,
			     stride * from / w->cols, bytes);
	}
	if (w->scale) {
		const size_t some = n / QWEN_GROUP * sizeof(*w->scale);
		void *scale = own_memory(p, w->rows * some);
		part.scale = scale;
		copy_columns(scale, (const char *)w->scale, w->rows,
			     groups * sizeof(*w->scale),
			     from / QWEN_GROUP * sizeof(*w->scale), some);
	}
	return part;
}

void gpu_part_take(struct gpu_part *p, const struct gpu *g,
		   const struct qwen_layer *l)
{
	const struct qwen_config *c = &g->m->config;
	const uint32_t d = c->heads * c->head_dim, r = g->number;
	const uint32_t kv = c->kv_heads * c->head_dim;

	*p = (struct gpu_part){ .layer = *l };
	if (g->team->n == 1)
		return;
	p->layer.q = take_rows(&l->q, r * d, d);
	p->layer.k = take_rows(&l->k, g->first_kv * c->head_dim, kv);
	p->layer.v = take_rows(&l->v, g->first_kv * c->head_dim, kv);
	p->layer.o = take_columns(p, &l->o, r * d, d);
	if (!c->experts.n) {
		p->layer.gate = take_rows(&l->gate, g->first_ffn, c->ffn);
		p->layer.up = take_rows(&l->up, g->first_ffn, c->ffn);
		p->layer.down = take_columns(p, &l->down, g->first_ffn, c->ffn);
		return;
	}
	p->layer.expert = own_memory(p, c->experts.n * sizeof(*l->expert));
	for (uint32_t i = 0; i < c->experts.n; i++) {
		const struct qwen_expert *from = &l->expert[i];
		struct qwen_expert *to = &p->layer.expert[i];
		to->gate = take_rows(&from->gate, g->first_ffn, c->ffn);
		to->up = take_rows(&from->up, g->first_ffn, c->ffn);
		to->down = take_columns(p, &from->down, g->first_ffn, c->ffn);
	}
}

void gpu_part_drop(struct gpu_part *p)
{
	while (p->n_own)
		free(p->own[--p->n_own]);
	free(p->own);
}

uint32_t gpu_first_id(const struct gpu *g, uint32_t number)
{
	return (uint32_t)((uint64_t)g->m->config.vocab * number / g->team->n);
}

struct qwen_matrix gpu_part_head(const struct gpu *g)
{
	const uint32_t first = gpu_first_id(g, g->number);

	return take_rows(&g->m->head, first,
			 gpu_first_id(g, g->number + 1) - first);
}

/* ---- the devices ---- */

bool gpu_team_check(const struct qwen_config *c, uint32_t n, struct err *e)
{
	if (!n || n > GPU_CARDS_MAX)
		return err_set(e, ERR_USAGE, "%u devices; wanted 1 to %d", n,
			       GPU_CARDS_MAX);
	if (n > 1 && (c->heads % n || (c->kv_heads % n && n % c->kv_heads)))
		return err_set(e, ERR_UNSUPPORTED,
			       "%u heads of attention with "
			       "%u of keys and values on %u devices; wanted "
			       "the same number of each on all, or of "
			       "keys and values one on several",
			       c->heads, c->kv_heads, n);
	if (n > 1 && c->ffn / QWEN_GROUP < n)
		return err_set(e, ERR_UNSUPPORTED,
			       "a feed forward network of "
			       "%u on %u devices; wanted at least %d on each",
			       c->ffn, n, QWEN_GROUP);
	return true;
}

/* Whole groups of integers, as many on each as can be. */
static uint32_t first_ffn(const struct qwen_config *c, uint32_t number,
			  uint32_t n)
{
	const uint32_t groups = c->ffn / QWEN_GROUP;

	return number == n ? c->ffn : groups * number / n * QWEN_GROUP;
}

/* The model as one of n devices has it; its layers are those of `m`. */
void gpu_team_share(struct gpu *g, const struct qwen_model *m, uint32_t n)
{
	g->own = *m;
	g->own.config.heads /= n;
	/* What several devices' queries share, each of them has. */
	g->own.config.kv_heads =
		n > m->config.kv_heads ? 1 : m->config.kv_heads / n;
	g->first_kv = m->config.kv_heads * g->number / n;
	g->first_ffn = first_ffn(&m->config, g->number, n);
	g->own.config.ffn =
		first_ffn(&m->config, g->number + 1, n) - g->first_ffn;
	g->m = &g->own;
}

/* ---- sums ---- */

/* What others read, and all that a queue of theirs waits for. */
static bool share_all(const struct gpu_run *run, const struct gpu_state *s,
		      struct err *e)
{
	struct kfd_mem *const mem[] = { s->x, s->delta[0], s->delta[1] };
	struct kfd_dev *dev = s->g->card.dev;

	for (uint32_t r = 0; r < run->n; r++) {
		struct kfd_dev *peer = run->rank[r]->g->card.dev;
		if (peer == dev)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(mem); i++)
			if (!kfd_mem_share(mem[i], dev, peer, e))
				return false;
		if (!kfd_queue_share(s->queue, peer, e))
			return false;
	}
	return true;
}

bool gpu_team_state(struct gpu_state *s, struct err *e)
{
	const size_t bytes = (size_t)s->shape.max_tokens *
			     s->g->m->config.hidden * sizeof(float);
	const struct kernel_shape plain = { .type = DSL_F32 };

	if (s->g->team->n == 1)
		return true;
	for (int i = 0; i < 2; i++)
		if (!kfd_mem_alloc(s->g->card.dev, s->g->team->shared, bytes,
				   i ? "part of the feed forward" :
				       "part of attention",
				   &s->delta[i], e))
			return false;
	s->sum = gpu_kernel(&s->g->card, "sum_parts", &plain, e);
	return s->sum != NULL;
}

/* Between passes both are zero, but for what a failure has left. */
static bool clear_deltas(const struct gpu_run *run, struct err *e)
{
	const size_t bytes = run->rank[0]->delta[0]->size_bytes;
	void *zeros = xcalloc(1, bytes);
	bool ok = true;

	for (uint32_t r = 0; ok && r < run->n; r++)
		for (int i = 0; ok && i < 2; i++)
			ok = kfd_write(run->rank[r]->g->card.dev,
				       run->rank[r]->delta[i], 0, zeros, bytes,
				       e);
	free(zeros);
	return ok;
}

bool gpu_team_ready(struct gpu_run *run, struct err *e)
{
	if (run->broken)
		return err_set(e, ERR_DEVICE,
			       "a device of the %u was lost; "
			       "the model has to be loaded again",
			       run->n);
	if (run->n == 1 || !run->dirty)
		return true;
	run->dirty = !clear_deltas(run, e);
	return !run->dirty;
}

bool gpu_team_join(struct gpu_run *run, struct err *e)
{
	bool ok = true;

	run->dirty = true;
	for (uint32_t r = 0; ok && run->n > 1 && r < run->n; r++)
		ok = share_all(run, run->rank[r], e);
	return ok;
}

/* What all devices have been given so far. */
struct meeting {
	struct kfd_after on[GPU_CARDS_MAX];
};

static struct meeting call_meeting(struct gpu_run *run)
{
	struct meeting m;

	for (uint32_t r = 0; r < run->n; r++)
		m.on[r] = (struct kfd_after){ run->rank[r]->queue,
					      run->rank[r]->ticket };
	run->meetings++;
	return m;
}

/* What is put to s behind it sees what they have written. */
static bool await(const struct gpu_run *run, const struct gpu_state *s,
		  const struct meeting *m, struct err *e)
{
	return !s->queue || kfd_after(s->queue, m->on, (int)run->n, e);
}

/* x of a span = the sum of parts; that span of the other delta = 0. */
static bool put_sum(struct gpu_state *s, struct gpu_span span,
		    const uint64_t *part, uint32_t n, bool feed, struct err *e)
{
	struct gpu_args a = { .n = 0 };

	if (!span.n)
		return true;
	gpu_sum_args(&a, span, s->x->va, part, n, s->delta[!feed]->va);
	gpu_ends(s);
	return put_kernel(s, s->sum, &a, groups_of(s->sum, span.n), 1, e);
}

/* Of a forecast there is one device, which stands for the others. */
static struct gpu_state *peer_of(struct gpu_run *run, uint32_t r)
{
	return run->rank[r < run->n ? r : 0];
}

static bool sum_span(struct gpu_run *run, struct gpu_state *s, bool feed,
		     struct gpu_span span, struct err *e)
{
	uint64_t part[KERNEL_MAX_PARTS] = { s->x->va };
	const uint32_t n = run->team->n;

	for (uint32_t r = 0; r < n; r++)
		part[r + 1] = peer_of(run, r)->delta[feed]->va;
	run->linked_bytes += (n - 1) * span.n * sizeof(float);
	return put_sum(s, span, part, n + 1, feed, e);
}

/* What the others have added up. */
static bool fetch_spans(struct gpu_run *run, struct gpu_state *s, bool feed,
			uint64_t n, struct err *e)
{
	for (uint32_t i = 1; i < run->team->n; i++) {
		const uint32_t r = (s->g->number + i) % run->team->n;
		const uint64_t part = peer_of(run, r)->x->va;
		const struct gpu_span span = gpu_span_of(n, r, run->team->n);

		run->linked_bytes += span.n * sizeof(float);
		if (!put_sum(s, span, &part, 1, feed, e))
			return false;
	}
	return true;
}

bool gpu_team_sum(struct gpu_run *run, bool feed, uint32_t tokens,
		  struct err *e)
{
	const uint64_t n = (uint64_t)tokens *
			   run->rank[0]->g->m->config.hidden;
	const uint32_t most = run->team->n;
	const bool two = most > 2 &&
			 n * sizeof(float) > run->team->one_shot_bytes;

	struct meeting m;

	if (most == 1)
		return true;
	m = call_meeting(run);
	for (uint32_t r = 0; r < run->n; r++) {
		struct gpu_state *s = run->rank[r];
		const struct gpu_span all = { 0, n };
		if (!await(run, s, &m, e) ||
		    !sum_span(run, s, feed,
			      two ? gpu_span_of(n, s->g->number, most) : all, e))
			return false;
	}
	if (!two)
		return true;
	m = call_meeting(run);
	for (uint32_t r = 0; r < run->n; r++)
		if (!await(run, run->rank[r], &m, e) ||
		    !fetch_spans(run, run->rank[r], feed, n, e))
			return false;
	return true;
}

/* ---- logits ---- */

bool gpu_team_logits(struct gpu_run *run, uint32_t rows, struct err *e)
{
	struct gpu_state *first = run->rank[0];
	const struct gpu *g = first->g;
	const uint32_t vocab = g->m->config.vocab;

	if (run->team->n == 1)
		return true;
	const struct meeting m = call_meeting(run);
	if (!await(run, first, &m, e))
		return false;
	for (uint32_t i = 0; i < rows * run->team->n; i++) {
		const uint32_t row = i / run->team->n, r = i % run->team->n;
		const uint32_t from = gpu_first_id(g, r);
		const uint32_t n = gpu_first_id(g, r + 1) - from;
		const struct gpu_state *s = peer_of(run, r);
		struct gpu_args a = { .n = 0 };

		arg_va(&a, first->whole->va + ((uint64_t)row * vocab + from) *
						      sizeof(float));
		arg_va(&a, s->logits->va + (uint64_t)row * n * sizeof(float));
		arg_u32(&a, n);
		run->linked_bytes += r ? n * sizeof(float) : 0;
		if (!put_kernel(first, first->copy, &a,
				groups_of(first->copy, n), 1, e))
			return false;
	}
	return true;
}

/* ---- waiting ---- */

bool gpu_team_wait(struct gpu_run *run, uint64_t deadline_ns, struct err *e)
{
	struct kfd_after all[GPU_CARDS_MAX];

	for (uint32_t r = 0; r < run->n; r++)
		all[r] = (struct kfd_after){ run->rank[r]->queue,
					     run->rank[r]->ticket };
	if (gpu_wait_all(all, run->n, deadline_ns, e))
		return true;
	run->broken = true;
	return false;
}
