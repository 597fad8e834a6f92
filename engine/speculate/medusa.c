/*
 * engine/speculate/medusa.c - heads that look further ahead.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/speculate/heads_int.h"

/* ---- the folder ---- */

static bool config_read(struct qwen_medusa *h, const char *dir, struct err *e)
{
	json_t *j = heads_config_open(dir, e);
	/* The next token is the model's own. */
	const bool ok = j &&
			heads_count_read(j, "medusa_num_heads", 1,
					 QWEN_PROPOSED, HEADS_NEED, &h->n, e) &&
			heads_count_read(j, "medusa_num_layers", 0,
					 QWEN_MEDUSA_BLOCKS, HEADS_NEED,
					 &h->blocks, e);

	if (j && !ok)
		err_wrap(e, "%s/config.json", dir);
	json_decref(j);
	return ok;
}

static bool head_find(struct qwen_medusa *h, uint32_t i, struct err *e)
{
	struct qwen_medusa_head *head = &h->head[i];
	const struct qwen_kernels *k = h->m->kernels;
	const uint32_t hidden = h->m->config.hidden;
	char name[64];

	head->linear =
		arena_alloc(&h->mem, h->blocks * sizeof(*head->linear) + 1);
	head->bias = arena_alloc(&h->mem, h->blocks * sizeof(*head->bias) + 1);
	for (uint32_t j = 0; j < h->blocks; j++) {
		snprintf(name, sizeof(name), "%u.%u.linear.weight", i, j);
		if (!heads_matrix_find(&h->tensors, k, name, hidden, hidden,
				       &head->linear[j], e))
			return false;
		snprintf(name, sizeof(name), "%u.%u.linear.bias", i, j);
		head->bias[j] = heads_row_find(&h->tensors, k, &h->mem, name,
					       hidden, e);
		if (!head->bias[j])
			return false;
	}
	snprintf(name, sizeof(name), "%u.%u.weight", i, h->blocks);
	return heads_matrix_find(&h->tensors, k, name, h->m->config.vocab,
				 hidden, &head->out, e);
}

bool qwen_medusa_open(struct qwen_medusa *h, const char *dir,
		      const struct qwen_model *m, struct err *e)
{
	const size_t hidden = m->config.hidden, vocab = m->config.vocab;
	bool ok;

	*h = (struct qwen_medusa){ .m = m };
	ok = config_read(h, dir, e) &&
	     qwen_tensors_open_file(
		     &h->tensors,
		     arena_printf(&h->mem, "%s/medusa_lm_head.safetensors",
				  dir),
		     e);
	h->head = arena_alloc(&h->mem, (h->n + 1) * sizeof(*h->head));
	for (uint32_t i = 0; ok && i < h->n; i++)
		ok = head_find(h, i, e);
	if (ok) {
		h->x = arena_alloc(&h->mem, h->n * hidden * sizeof(float));
		h->y = arena_alloc(&h->mem, h->n * hidden * sizeof(float));
		h->logits = arena_alloc(&h->mem, h->n * vocab * sizeof(float));
		return true;
	}
	qwen_medusa_close(h);
	return false;
}

void qwen_medusa_close(struct qwen_medusa *h)
{
	qwen_tensors_close(&h->tensors);
	arena_fini(&h->mem);
	*h = (struct qwen_medusa){ 0 };
}

/* ---- what they say ---- */

struct asked {
	struct qwen_medusa *h;
	uint32_t n;
};

static float silu(float x)
{
	return x / (1 + expf(-x));
}

static void run_heads(void *ctx, struct threads *t, unsigned thread)
{
	const struct asked *asked = ctx;
	struct qwen_medusa *h = asked->h;
	const struct qwen_kernels *k = h->m->kernels;
	const uint32_t hidden = h->m->config.hidden;
	const uint32_t vocab = h->m->config.vocab;
	size_t from, to;

	for (uint32_t j = 0; j < h->blocks; j++) {
		threads_part(t, thread, hidden, 16, &from, &to);
		for (uint32_t i = 0; i < asked->n; i++)
			k->product(&h->head[i].linear[j], (uint32_t)from,
				   (uint32_t)to, h->x + (size_t)i * hidden,
				   hidden, 1, h->y + (size_t)i * hidden, hidden,
				   false);
		threads_barrier(t);
		for (uint32_t i = 0; i < asked->n; i++)
			for (size_t c = from; c < to; c++)
				h->x[(size_t)i * hidden + c] +=
					silu(h->y[(size_t)i * hidden + c] +
					     h->head[i].bias[j][c]);
		threads_barrier(t);
	}
	threads_part(t, thread, vocab, 16, &from, &to);
	for (uint32_t i = 0; i < asked->n; i++)
		k->product(&h->head[i].out, (uint32_t)from, (uint32_t)to,
			   h->x + (size_t)i * hidden, hidden, 1,
			   h->logits + (size_t)i * vocab, vocab, false);
}

void qwen_medusa_run(struct qwen_medusa *h, const float *hidden, uint32_t n)
{
	const struct qwen_config *c = &h->m->config;
	struct asked asked = { h, n };

	h->m->kernels->rms_norm(hidden, h->m->norm, c->hidden,
				(float)c->norm_eps, h->x);
	for (uint32_t i = 1; i < n; i++)
		memcpy(h->x + (size_t)i * c->hidden, h->x,
		       c->hidden * sizeof(*h->x));
	threads_run(h->m->threads, run_heads, &asked);
}

/* ---- the proposer ---- */

struct medusa {
	struct qwen_proposer proposer;
	const struct qwen_state *state;
	uint32_t sequence, ranks; /* of each head */
	struct qwen_medusa heads;
};

/* A token of a path: head `head` says the one of rank `rank`. */
struct step {
	uint32_t head, rank, parent; /* parent: a step, or NONE */
	double chance;		     /* of the path */
	bool taken;
};
#define NONE UINT32_MAX

/* A head's likeliest tokens, in their order, and their chances. */
struct ranks {
	uint32_t id[QWEN_MEDUSA_RANKS];
	double chance[QWEN_MEDUSA_RANKS];
};

static void rank_tokens(struct qwen_medusa *h, uint32_t head, struct ranks *r)
{
	const uint32_t vocab = h->m->config.vocab;
	const uint32_t n = vocab < QWEN_MEDUSA_RANKS ? vocab :
						       QWEN_MEDUSA_RANKS;
	float *v = h->logits + (size_t)head * vocab;
	float top[QWEN_MEDUSA_RANKS] = { 0 };

	*r = (struct ranks){ 0 };
	for (uint32_t k = 0; k < n; k++) {
		uint32_t id = 0;
		top[k] = h->m->kernels->largest(v, vocab);
		while (id + 1 < vocab && v[id] != top[k])
			id++;
		r->id[k] = id;
		v[id] = -INFINITY;
	}
	for (uint32_t k = 0; k < n; k++)
		v[r->id[k]] = top[k];
	const double sum = h->m->kernels->exp_sum(v, vocab, top[0]);
	for (uint32_t k = 0; k < n; k++)
		r->chance[k] = exp((double)top[k] - (double)top[0]) / sum;
}

/* The likeliest step that is not taken; NONE: all are. */
static uint32_t best_step(const struct step *s, uint32_t n)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < n; i++)
		if (!s[i].taken &&
		    (best == NONE || s[i].chance > s[best].chance))
			best = i;
	return best;
}

/* Each step that is taken brings its first child and its next sibling. */
static uint32_t grow_tree(struct step *s, const struct ranks *r, uint32_t heads,
			  uint32_t ranks, uint32_t k)
{
	uint32_t n = 0, taken = 0, at;

	s[n++] = (struct step){ .parent = NONE, .chance = r[0].chance[0] };
	while (taken < k && (at = best_step(s, n)) != NONE) {
		const struct step one = s[at];
		const double up = one.parent == NONE ? 1 : s[one.parent].chance;
		s[at].taken = true;
		taken++;
		if (one.rank + 1 < ranks)
			s[n++] = (struct step){
				one.head, one.rank + 1, one.parent,
				up * r[one.head].chance[one.rank + 1], false
			};
		if (one.head + 1 < heads)
			s[n++] = (struct step){
				one.head + 1, 0, at,
				one.chance * r[one.head + 1].chance[0], false
			};
	}
	return n;
}

/* The children of a step, and theirs, into the proposal. */
static void put_steps(const struct step *s, uint32_t n, uint32_t parent,
		      uint32_t place, const struct ranks *r,
		      struct qwen_proposal *out)
{
	for (uint32_t i = 0; i < n; i++)
		if (s[i].taken && s[i].parent == parent) {
			out->id[out->n] = r[s[i].head].id[s[i].rank];
			out->parent[out->n++] = place;
			put_steps(s, n, i, out->n, r, out);
		}
}

static bool medusa_propose(struct qwen_proposer *p, const struct qwen_ids *text,
			   uint32_t k, struct qwen_proposal *out, struct err *e)
{
	struct medusa *d = (struct medusa *)p;
	const uint32_t held = qwen_state_length(d->state, d->sequence);
	const uint32_t heads = k < d->heads.n ? k : d->heads.n;
	struct step step[2 * QWEN_PROPOSED + 1];
	struct ranks rank[QWEN_PROPOSED];
	uint32_t n;

	(void)e;
	if (!held || held + 1 != text->n) /* of a prompt: nothing follows yet */
		return true;
	qwen_medusa_run(&d->heads, qwen_kept(d->state, d->sequence, held - 1),
			heads);
	for (uint32_t i = 0; i < heads; i++)
		rank_tokens(&d->heads, i, &rank[i]);
	out->tree = d->ranks > 1;
	n = grow_tree(step, rank, heads, d->ranks, k);
	put_steps(step, n, NONE, 0, rank, out);
	return true;
}

static void medusa_free(struct qwen_proposer *p)
{
	struct medusa *d = (struct medusa *)p;

	qwen_medusa_close(&d->heads);
	free(d);
}

struct qwen_proposer *qwen_medusa_new(const char *dir,
				      const struct qwen_model *m, bool tree,
				      struct qwen_state *state,
				      uint32_t sequence, struct err *e)
{
	struct medusa *d = xcalloc(1, sizeof(*d));

	d->proposer = (struct qwen_proposer){ "medusa", 1, NULL, medusa_propose,
					      medusa_free };
	d->state = state;
	d->sequence = sequence;
	d->ranks = tree ? QWEN_MEDUSA_RANKS : 1;
	if (qwen_medusa_open(&d->heads, dir, m, e) &&
	    qwen_state_tap(state, &m->config.layers, 1, e))
		return &d->proposer;
	medusa_free(&d->proposer);
	return NULL;
}
