/*
 * engine/state/state.c - what the states of all backends share: lengths,
 * positions, rows of results.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/state/state.h"

struct qwen_state {
	const struct qwen_model *m;
	struct qwen_shape shape;
	void *own;	    /* the backend's state */
	struct arena mem;
	struct qwen_token *token; /* [max_tokens]: of the last pass */
	uint32_t *length;   /* [sequences] */
	uint32_t *position; /* [max_tokens] */
	uint32_t *row;	    /* [max_tokens]: token to row of results, or NONE */
	uint32_t *wanted;   /* [max_tokens]: the reverse */
	uint32_t *shown_row, *shown; /* [max_tokens]: the same for `hidden` */
	uint32_t *best;	    /* [max_tokens] */
	float *logits;	    /* [cap_logits][vocab] */
	float *hidden;	    /* [cap_shown][hidden] */
	uint32_t cap_logits, cap_shown;
	uint32_t tap[QWEN_TAPS], n_taps;
	/* [sequences][positions][n_taps][hidden], and rows of QWEN_FEW tokens
	   of a tree */
	float *kept;
	float **kept_of; /* [max_tokens]: where each goes */
	/* Of an Engram: ids by their places in the cache, and rows of a pass */
	uint32_t *said, *gram;
	const uint32_t **block;	   /* [sequences]: of a cache of blocks */
	uint32_t parent[QWEN_FEW]; /* of a tree's tokens */
	struct qwen_pass pass; /* the last one; n is 0 if it failed */
};
#define NONE UINT32_MAX

static uint32_t *alloc_ids(struct qwen_state *s, uint32_t n)
{
	return arena_alloc(&s->mem, n * sizeof(uint32_t));
}

static void engram_init(struct qwen_state *s)
{
	const struct qwen_shape *shape = &s->shape;
	const size_t all = shape->blocks ?
				   (size_t)shape->blocks * QWEN_BLOCK :
				   (size_t)shape->sequences * shape->positions;

	s->said = xcalloc(all, sizeof(*s->said));
	s->gram = xcalloc((size_t)shape->max_tokens * QWEN_ORDERS,
			  sizeof(*s->gram));
	s->block = xcalloc(shape->sequences, sizeof(const uint32_t *));
}

struct qwen_state *qwen_state_new(const struct qwen_model *m,
				  const struct qwen_shape *shape,
				  struct err *e)
{
	struct qwen_state *s;

	if (!shape->sequences || !shape->positions || !shape->max_tokens) {
		err_set(e, ERR_USAGE, "%u sequences of %u positions, %u tokens "
			"at once: wanted at least 1 of each", shape->sequences,
			shape->positions, shape->max_tokens);
		return NULL;
	}
	if (shape->positions > m->config.max_positions) {
		err_set(e, ERR_USAGE, "a context of %u tokens; this model's "
			"\"max_position_embeddings\" is %u", shape->positions,
			m->config.max_positions);
		return NULL;
	}
	if (shape->blocks && !m->backend->map) {
		err_set(e, ERR_UNSUPPORTED, "the backend %s has no paged "
			"cache; --backend cpu has", m->backend->name);
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->m = m;
	s->shape = *shape;
	s->token = arena_alloc(&s->mem, shape->max_tokens * sizeof(*s->token));
	s->length = alloc_ids(s, shape->sequences);
	s->position = alloc_ids(s, shape->max_tokens);
	s->row = alloc_ids(s, shape->max_tokens);
	s->wanted = alloc_ids(s, shape->max_tokens);
	s->shown_row = alloc_ids(s, shape->max_tokens);
	s->shown = alloc_ids(s, shape->max_tokens);
	s->best = alloc_ids(s, shape->max_tokens);
	s->kept_of = arena_alloc(&s->mem,
				 shape->max_tokens * sizeof(*s->kept_of));
	if (m->config.engram.rows)
		engram_init(s);
	s->own = m->backend->state_new(m, shape, e);
	if (s->own)
		return s;
	free(s->said);
	free(s->gram);
	free(s->block);
	arena_fini(&s->mem);
	free(s);
	return NULL;
}

void qwen_state_free(struct qwen_state *s)
{
	if (!s)
		return;
	s->m->backend->state_free(s->own);
	free(s->said);
	free(s->gram);
	free(s->block);
	free(s->logits);
	free(s->hidden);
	free(s->kept);
	arena_fini(&s->mem);
	free(s);
}

uint64_t qwen_state_bytes(const struct qwen_state *s)
{
	return s->m->backend->cache_bytes(s->own);
}

void qwen_state_counts(const struct qwen_state *s, struct qwen_counts *out)
{
	*out = (struct qwen_counts){ 0 };
	if (s->m->backend->counts)
		s->m->backend->counts(s->own, out);
}

uint32_t qwen_state_length(const struct qwen_state *s, uint32_t sequence)
{
	return sequence < s->shape.sequences ? s->length[sequence] : 0;
}

void qwen_state_truncate(struct qwen_state *s, uint32_t sequence, uint32_t n)
{
	if (sequence < s->shape.sequences && n < s->length[sequence])
		s->length[sequence] = n;
}

void qwen_state_map(struct qwen_state *s, uint32_t sequence,
		    const uint32_t *block, uint32_t length)
{
	s->m->backend->map(s->own, sequence, block);
	if (s->block)
		s->block[sequence] = block;
	s->length[sequence] = length;
}

void qwen_state_copy(struct qwen_state *s, uint32_t from, uint32_t to)
{
	s->m->backend->copy(s->own, from, to);
	if (s->said)
		memcpy(s->said + (size_t)to * QWEN_BLOCK,
		       s->said + (size_t)from * QWEN_BLOCK,
		       QWEN_BLOCK * sizeof(*s->said));
}

bool qwen_state_fill(struct qwen_state *s, uint32_t sequence, uint32_t n)
{
	if (sequence >= s->shape.sequences || n > s->shape.positions)
		return false;
	qwen_state_truncate(s, sequence, n);
	if (s->length[sequence] == n)
		return true;
	if (!s->m->backend->fill)
		return false;
	s->m->backend->fill(s->own, sequence, s->length[sequence], n);
	s->length[sequence] = n;
	return true;
}

static float *kept_at(const struct qwen_state *s, uint32_t sequence,
		      uint32_t position)
{
	const size_t at = (size_t)sequence * s->shape.positions + position;

	return s->kept + at * s->n_taps * s->m->config.hidden;
}

bool qwen_state_tap(struct qwen_state *s, const uint32_t *layer, uint32_t n,
		    struct err *e)
{
	const size_t all =
		(size_t)s->shape.sequences * s->shape.positions + QWEN_FEW;

	if (n && !s->m->backend->taps)
		return err_set(e, ERR_UNSUPPORTED, "the backend %s does not "
			       "keep what enters layers; --backend cpu does",
			       s->m->backend->name);
	free(s->kept);
	s->kept = n ? xcalloc(all * n * s->m->config.hidden,
			      sizeof(*s->kept)) :
		      NULL;
	s->n_taps = n;
	for (uint32_t i = 0; i < n; i++)
		s->tap[i] = layer[i];
	return true;
}

const float *qwen_kept(const struct qwen_state *s, uint32_t sequence,
		       uint32_t position)
{
	return kept_at(s, sequence, position);
}

static void taps_init(struct qwen_state *s)
{
	struct qwen_pass *p = &s->pass;

	p->tap = s->tap;
	p->n_taps = s->n_taps;
	p->kept = s->kept_of;
	for (uint32_t i = 0; i < p->n && p->n_taps; i++)
		s->kept_of[i] = p->tree ? kept_at(s, s->shape.sequences, i) :
					  kept_at(s, p->token[i].sequence,
						  p->position[i]);
}

static bool tokens_check(const struct qwen_state *s,
			 const struct qwen_token *token, uint32_t n,
			 struct err *e)
{
	uint32_t vocab = s->m->config.vocab;

	if (n > s->shape.max_tokens)
		return err_set(e, ERR_USAGE, "%u tokens in one pass; at most "
			       "%u fit", n, s->shape.max_tokens);
	for (uint32_t i = 0; i < n; i++) {
		if (token[i].id >= vocab)
			return err_set(e, ERR_USAGE, "token %u has id %u; the "
				       "vocabulary has %u", i, token[i].id,
				       vocab);
		if (token[i].sequence >= s->shape.sequences)
			return err_set(e, ERR_USAGE, "token %u is of sequence "
				       "%u; there are %u", i,
				       token[i].sequence, s->shape.sequences);
	}
	return true;
}

/* Forgets the first n positions that were given out. */
static void positions_back(struct qwen_state *s, const struct qwen_token *token,
			   uint32_t n)
{
	while (n-- > 0)
		s->length[token[n].sequence]--;
}

/* Gives each token its position; nothing changes if one has no room. */
static bool positions_set(struct qwen_state *s, const struct qwen_token *token,
			  uint32_t n, struct err *e)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *length = &s->length[token[i].sequence];
		if (*length == s->shape.positions) {
			positions_back(s, token, i);
			return err_set(e, ERR_USAGE, "sequence %u is full: its "
				       "context has %u positions",
				       token[i].sequence, s->shape.positions);
		}
		s->position[i] = (*length)++;
	}
	return true;
}

/* Room for n rows of results. */
static void rows_grow(float **rows, uint32_t *cap, uint32_t n, uint32_t width)
{
	if (n <= *cap)
		return;
	*cap = n;
	free(*rows);
	*rows = xcalloc((size_t)n * width, sizeof(**rows));
}

static void results_init(struct qwen_state *s)
{
	struct qwen_pass *p = &s->pass;

	for (uint32_t i = 0; i < p->n; i++) {
		bool wants = p->token[i].logits || p->token[i].best;
		s->row[i] = wants ? p->n_wanted : NONE;
		if (wants)
			s->wanted[p->n_wanted++] = i;
		s->shown_row[i] = p->n_shown;
		if (p->token[i].hidden)
			s->shown[p->n_shown++] = i;
	}
	rows_grow(&s->logits, &s->cap_logits, p->n_wanted,
		  s->m->config.vocab);
	rows_grow(&s->hidden, &s->cap_shown, p->n_shown,
		  s->m->config.hidden);
	p->shown = s->shown;
	p->hidden = s->hidden;
	p->wanted = s->wanted;
	p->best = s->best;
	p->logits = s->logits;
}

/* What a position of a sequence says. */
static uint32_t *said_at(const struct qwen_state *s, uint32_t sequence,
			 uint32_t position)
{
	if (!s->shape.blocks)
		return s->said + (size_t)sequence * s->shape.positions +
		       position;
	return s->said +
	       (size_t)s->block[sequence][position / QWEN_BLOCK] * QWEN_BLOCK +
	       position % QWEN_BLOCK;
}

/* The token and those before it; a tree's are its ancestors. */
static void tokens_before(const struct qwen_state *s, uint32_t i,
			  uint32_t id[QWEN_ORDERS + 1])
{
	const uint32_t sequence = s->token[i].sequence;
	const uint32_t position = s->position[i];

	for (uint32_t k = 0; k <= QWEN_ORDERS; k++) {
		const bool mine = i != QWEN_ROOT && (s->pass.tree || !k);
		id[k] = position < k ? QWEN_NO_TOKEN :
			mine	     ? s->token[i].id :
				       *said_at(s, sequence, position - k);
		if (mine && s->pass.tree)
			i = s->parent[i];
	}
}

/* Tokens of a tree are said only once they are taken. */
static void grams_set(struct qwen_state *s)
{
	uint32_t id[QWEN_ORDERS + 1];

	for (uint32_t i = 0; i < s->pass.n; i++) {
		tokens_before(s, i, id);
		qwen_engram_rows(&s->m->config, id, s->gram + i * QWEN_ORDERS);
		if (!s->pass.tree)
			*said_at(s, s->token[i].sequence, s->position[i]) =
				s->token[i].id;
	}
	s->pass.gram = s->gram;
}

/* The pass of tokens whose positions are set; false: it is of none. */
static bool run_pass(struct qwen_state *s, const struct qwen_token *token,
		     uint32_t n, struct err *e)
{
	memcpy(s->token, token, n * sizeof(*token));
	s->pass.n = n;
	results_init(s);
	taps_init(s);
	if (s->said)
		grams_set(s);
	if (!n || s->m->backend->forward(s->own, &s->pass, e))
		return true;
	s->pass.n = 0;
	return false;
}

bool qwen_forward(struct qwen_state *s, const struct qwen_token *token,
		  uint32_t n, struct err *e)
{
	s->pass = (struct qwen_pass){ .token = s->token,
				      .position = s->position,
				      .stop = s->shape.stop };
	if (!tokens_check(s, token, n, e) || !positions_set(s, token, n, e))
		return false;
	if (run_pass(s, token, n, e))
		return true;
	positions_back(s, token, n);
	return false;
}

/* Is what position p held last, of tokens before i, token `held`? */
static bool is_held(const struct qwen_state *s, const struct qwen_token *token,
		    uint32_t held, uint32_t i)
{
	for (uint32_t k = held + 1; k < i; k++)
		if (token[k].sequence == token[held].sequence &&
		    s->position[k] <= s->position[held])
			return false;
	return true;
}

/* Positions of a tree, whose tokens come in the order that it wants. */
static bool tree_set(struct qwen_state *s, const struct qwen_token *token,
		     const uint32_t *parent, uint32_t n, struct err *e)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t up = parent[i], sequence = token[i].sequence;
		if (up != QWEN_ROOT &&
		    (up >= i || token[up].sequence != sequence ||
		     !is_held(s, token, up, i)))
			return err_set(e, ERR_USAGE, "token %u of a tree "
				       "follows token %u; wanted one of its "
				       "sequence with only descendants of it "
				       "between", i, up);
		s->position[i] = up == QWEN_ROOT ? s->length[sequence] :
						   s->position[up] + 1;
		if (s->position[i] >= s->shape.positions)
			return err_set(e, ERR_USAGE, "sequence %u is full: its "
				       "context has %u positions", sequence,
				       s->shape.positions);
		s->parent[i] = up;
	}
	return true;
}

bool qwen_forward_tree(struct qwen_state *s, const struct qwen_token *token,
		       const uint32_t *parent, uint32_t n, struct err *e)
{
	s->pass = (struct qwen_pass){ .token = s->token,
				      .position = s->position,
				      .tree = true,
				      .stop = s->shape.stop };
	if (!s->m->backend->take)
		return err_set(e, ERR_UNSUPPORTED, "the backend %s has no "
			       "trees; --backend cpu has",
			       s->m->backend->name);
	if (n > QWEN_FEW)
		return err_set(e, ERR_USAGE, "%u tokens of trees; at most %d "
			       "fit", n, QWEN_FEW);
	return tokens_check(s, token, n, e) &&
	       tree_set(s, token, parent, n, e) && run_pass(s, token, n, e);
}

/* Did another token of the pass have its position later? */
static bool is_overwritten(const struct qwen_state *s, uint32_t i)
{
	for (uint32_t k = i + 1; k < s->pass.n; k++)
		if (s->token[k].sequence == s->token[i].sequence &&
		    s->position[k] == s->position[i])
			return true;
	return false;
}

void qwen_state_take(struct qwen_state *s, uint32_t i)
{
	const size_t wide = (size_t)s->n_taps * s->m->config.hidden;

	if (!s->pass.tree || i >= s->pass.n)
		BUG("token %u is not of a tree of %u", i, s->pass.n);
	s->length[s->token[i].sequence] = s->position[i] + 1;
	for (; i != QWEN_ROOT; i = s->parent[i]) {
		if (is_overwritten(s, i))
			s->m->backend->take(s->own, i);
		if (s->said)
			*said_at(s, s->token[i].sequence, s->position[i]) =
				s->token[i].id;
		if (wide)
			memcpy(kept_at(s, s->token[i].sequence,
				       s->position[i]),
			       s->kept_of[i], wide * sizeof(float));
	}
}

const float *qwen_logits(const struct qwen_state *s, uint32_t i)
{
	if (i >= s->pass.n || !s->pass.token[i].logits)
		return NULL;
	return s->logits + (size_t)s->row[i] * s->m->config.vocab;
}

const float *qwen_hidden(const struct qwen_state *s, uint32_t i)
{
	if (i >= s->pass.n || !s->pass.token[i].hidden)
		return NULL;
	return s->hidden + (size_t)s->shown_row[i] * s->m->config.hidden;
}

uint32_t qwen_argmax(const struct qwen_state *s, uint32_t i)
{
	if (i >= s->pass.n || !s->pass.token[i].best)
		BUG("the best of token %u was not asked for", i);
	return s->best[s->row[i]];
}

bool qwen_is_emulated(const struct qwen_model *m)
{
	return m->backend->is_emulated && m->backend->is_emulated(m);
}
