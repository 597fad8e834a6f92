/*
 * engine/serve/batch.c - many texts at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/serve/serve.h"

/* Tokens of a pass whose sums do not depend on how many there are. */
enum { FEW = QWEN_FEW };
#define NO_SLOT UINT32_MAX

struct request {
	struct qwen_ids ids; /* the prompt, and what followed */
	uint32_t n_prompt, most;
	uint64_t user;
	void *who;
	struct qwen_sampler sampler;
	struct qwen_table table; /* its length: positions computed */
	uint32_t slot;		 /* NO_SLOT: waits */
	enum qwen_pool pool;
	struct qwen_matcher *matcher; /* or NULL */
	double *vector; /* [hidden], where pooled: the sum so far */
	struct qwen_guessing guess;
	bool gone;
};

struct user {
	uint64_t id, tokens; /* that it has had */
};

struct qwen_batch {
	const struct qwen_model *m;
	struct qwen_batch_shape shape;
	struct qwen_state *state;
	struct qwen_pages *pages;
	VEC(struct request *) all;	 /* the earliest first */
	VEC(struct user) users;		 /* who have requests */
	bool *taken;			 /* [sequences] */
	struct qwen_proposer **proposer; /* [sequences], where it speculates */
	struct qwen_token *token;	 /* [chunk or FEW] */
	float *masked;			 /* [vocab] */
	struct qwen_batch_counts counts;
	struct qwen_guess_costs costs;
	qwen_heard_fn *heard;
	void *ctx;
};

static bool proposers_init(struct qwen_batch *b, struct err *e)
{
	const struct qwen_batch_shape *s = &b->shape;

	b->proposer = xcalloc(s->sequences, sizeof(struct qwen_proposer *));
	for (uint32_t i = 0; i < s->sequences && s->speculate; i++) {
		b->proposer[i] = s->proposer_new ?
					 s->proposer_new(s->proposer_ctx,
							 b->state, i, e) :
					 qwen_lookup_new();
		if (!b->proposer[i])
			return false;
	}
	return true;
}

struct qwen_batch *qwen_batch_new(const struct qwen_model *m,
				  const struct qwen_batch_shape *shape,
				  struct err *e)
{
	const uint32_t most = shape->chunk > FEW ? shape->chunk : FEW;
	const struct qwen_shape s = { .sequences = shape->sequences,
				      .positions = shape->positions,
				      .max_tokens = most,
				      .cache = shape->cache,
				      .blocks = shape->blocks };
	struct qwen_batch *b;
	struct qwen_state *state;

	if (!shape->chunk || !shape->blocks) {
		err_set(e, ERR_USAGE,
			"a batch of %u blocks and pieces of %u: "
			"wanted at least 1 of each",
			shape->blocks, shape->chunk);
		return NULL;
	}
	if (shape->speculate > QWEN_PROPOSED ||
	    (shape->speculate && m->backend->few < FEW)) {
		err_set(e, ERR_USAGE,
			"%u proposals of a text with --backend %s: wanted at "
			"most %d, and cpu",
			shape->speculate, m->backend->name, QWEN_PROPOSED);
		return NULL;
	}
	state = qwen_state_new(m, &s, e);
	if (!state)
		return NULL;
	b = xcalloc(1, sizeof(*b));
	b->m = m;
	b->shape = *shape;
	b->state = state;
	b->costs.steady = shape->steady;
	b->pages = qwen_pages_new(shape->blocks);
	b->taken = xcalloc(shape->sequences, sizeof(*b->taken));
	b->token = xcalloc(most, sizeof(*b->token));
	b->masked = xcalloc(m->config.vocab, sizeof(*b->masked));
	if (proposers_init(b, e))
		return b;
	qwen_batch_free(b);
	return NULL;
}

/* ---- requests ---- */

static struct user *user_of(struct qwen_batch *b, uint64_t id)
{
	for (size_t i = 0; i < b->users.n; i++)
		if (b->users.v[i].id == id)
			return &b->users.v[i];
	return NULL;
}

/* A new user is not behind those who have waited. */
static void user_add(struct qwen_batch *b, uint64_t id)
{
	struct user u = { id, b->users.n ? UINT64_MAX : 0 };

	if (user_of(b, id))
		return;
	for (size_t i = 0; i < b->users.n; i++)
		if (b->users.v[i].tokens < u.tokens)
			u.tokens = b->users.v[i].tokens;
	vec_push(&b->users, u);
}

/* Gives its blocks and its place back. */
static void give_back(struct qwen_batch *b, struct request *r)
{
	qwen_pages_drop(b->pages, &r->table);
	if (r->slot != NO_SLOT)
		b->taken[r->slot] = false;
	r->slot = NO_SLOT;
}

static void request_free(struct qwen_batch *b, struct request *r)
{
	give_back(b, r);
	qwen_sampler_fini(&r->sampler);
	qwen_ids_fini(&r->ids);
	qwen_matcher_free(r->matcher);
	free(r->vector);
	free(r);
}

void qwen_batch_free(struct qwen_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->all.n; i++)
		request_free(b, b->all.v[i]);
	vec_fini(&b->all);
	vec_fini(&b->users);
	qwen_pages_free(b->pages);
	for (uint32_t i = 0; i < b->shape.sequences; i++)
		qwen_proposer_free(b->proposer[i]);
	free(b->proposer);
	qwen_state_free(b->state);
	free(b->taken);
	free(b->token);
	free(b->masked);
	free(b);
}

static bool ask_check(const struct qwen_batch *b, const struct qwen_ask *ask,
		      struct err *e)
{
	const uint64_t all = (uint64_t)ask->n + ask->tokens;

	if (!ask->n || !ask->tokens != (ask->pool != QWEN_POOL_NONE))
		return err_set(e, ERR_USAGE,
			       "%u tokens, and %u to follow: "
			       "wanted at least 1 of each",
			       ask->n, ask->tokens);
	/* A block more: of what is found, the last may be copied. */
	if (all > b->shape.positions || all / QWEN_BLOCK + 2 > b->shape.blocks)
		return err_set(e, ERR_USAGE,
			       "%u tokens, and %u to follow: wanted at most %u "
			       "together, in %u blocks of %d but two",
			       ask->n, ask->tokens, b->shape.positions,
			       b->shape.blocks, QWEN_BLOCK);
	if (ask->grammar && qwen_grammar_least(ask->grammar) > ask->tokens)
		return err_set(e, ERR_USAGE,
			       "%u tokens to follow: the shortest text of the "
			       "wanted form has %u bytes",
			       ask->tokens, qwen_grammar_least(ask->grammar));
	for (uint32_t i = 0; i < ask->n; i++)
		if (ask->ids[i] >= b->m->config.vocab)
			return err_set(e, ERR_USAGE,
				       "token %u has id %u; the "
				       "vocabulary has %u",
				       i, ask->ids[i], b->m->config.vocab);
	return true;
}

bool qwen_batch_add(struct qwen_batch *b, const struct qwen_ask *ask,
		    struct err *e)
{
	struct request *r;

	if (!ask_check(b, ask, e))
		return false;
	r = xcalloc(1, sizeof(*r));
	*r = (struct request){ .n_prompt = ask->n,
			       .most = ask->tokens,
			       .user = ask->user,
			       .who = ask->who,
			       .slot = NO_SLOT,
			       .pool = ask->pool };
	if (ask->grammar)
		r->matcher = qwen_matcher_new(ask->grammar, ask->lexicon);
	if (ask->pool)
		r->vector = xcalloc(b->m->config.hidden, sizeof(*r->vector));
	if (!qwen_sampler_init(&r->sampler, &ask->how, b->m->config.vocab, e)) {
		request_free(b, r);
		return false;
	}
	for (uint32_t i = 0; i < ask->n; i++) {
		qwen_ids_add(&r->ids, ask->ids[i]);
		qwen_sampler_see(&r->sampler, ask->ids[i]);
	}
	user_add(b, ask->user);
	vec_push(&b->all, r);
	return true;
}

/* Frees those that are gone, and forgets users without requests. */
static void free_gone(struct qwen_batch *b)
{
	size_t n = 0, users = 0;

	for (size_t i = 0; i < b->all.n; i++) {
		if (b->all.v[i]->gone)
			request_free(b, b->all.v[i]);
		else
			b->all.v[n++] = b->all.v[i];
	}
	b->all.n = n;
	for (size_t i = 0; i < b->users.n; i++) {
		size_t j = 0;
		while (j < n && b->all.v[j]->user != b->users.v[i].id)
			j++;
		if (j < n)
			b->users.v[users++] = b->users.v[i];
	}
	b->users.n = users;
}

void qwen_batch_cancel(struct qwen_batch *b, const void *who)
{
	for (size_t i = 0; i < b->all.n; i++)
		if (b->all.v[i]->who == who)
			b->all.v[i]->gone = true;
	free_gone(b);
}

/* ---- admission ---- */

static struct request *next_waiting(struct qwen_batch *b)
{
	struct request *best = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < b->all.n; i++) {
		struct request *r = b->all.v[i];
		if (r->slot != NO_SLOT)
			continue;
		uint64_t had = user_of(b, r->user)->tokens;
		if (best && had >= least)
			continue;
		best = r;
		least = had;
	}
	return best;
}

/* Whole pieces of the prompt that are in the cache; one token is left. */
static void find_beginning(struct qwen_batch *b, struct request *r)
{
	uint32_t found = 0;

	if (r->pool != QWEN_POOL_MEAN) /* which needs all of them */
		found = qwen_pages_find(b->pages, &r->table, r->ids.v,
					r->n_prompt - 1);

	qwen_pages_truncate(b->pages, &r->table,
			    found - found % b->shape.chunk);
}

static void admit_waiting(struct qwen_batch *b)
{
	struct request *r;
	uint32_t slot;

	while ((r = next_waiting(b))) {
		for (slot = 0; slot < b->shape.sequences && b->taken[slot];)
			slot++;
		if (slot == b->shape.sequences)
			return;
		find_beginning(b, r);
		if (r->ids.n / QWEN_BLOCK + 2 - r->table.n >
		    qwen_pages_left(b->pages)) {
			qwen_pages_drop(b->pages, &r->table);
			return;
		}
		b->counts.found_tokens += r->table.length;
		b->taken[slot] = true;
		r->slot = slot;
		qwen_guess_begin(&r->guess, (uint32_t)r->ids.n);
		if (b->proposer[slot] && b->proposer[slot]->begin)
			b->proposer[slot]->begin(b->proposer[slot],
						 r->table.length);
		if (r->pool)
			memset(r->vector, 0,
			       b->m->config.hidden * sizeof(*r->vector));
	}
}

/* ---- passes ---- */

/* Blocks for n more tokens; false: it gave its own back, being the latest. */
static bool make_room(struct qwen_batch *b, struct request *r, uint32_t n)
{
	const uint32_t was = r->table.length;
	struct qwen_copy copy;

	while (!qwen_pages_extend(b->pages, &r->table, n, &copy)) {
		struct request *last = r;
		for (size_t i = 0; i < b->all.n; i++)
			if (b->all.v[i]->slot != NO_SLOT)
				last = b->all.v[i];
		give_back(b, last);
		b->counts.preempted++;
		if (last == r)
			return false;
	}
	if (copy.wanted)
		qwen_state_copy(b->state, copy.from, copy.to);
	qwen_state_map(b->state, r->slot, r->table.block, was);
	return true;
}

/* Tokens before the table's end, behind `at` of the pass; p is that end. */
static void put_tokens(struct qwen_batch *b, const struct request *r,
		       uint32_t at, uint32_t n, const struct qwen_proposal *p)
{
	const uint32_t end = r->table.length - p->n;

	for (uint32_t i = 0; i < n + p->n; i++)
		b->token[at + i] = (struct qwen_token){
			.id = i < n ? r->ids.v[end - n + i] : p->id[i - n],
			.sequence = r->slot,
			.hidden = r->pool == QWEN_POOL_MEAN,
			.logits = i >= n,
		};
	b->token[at + n - 1].logits = !r->pool && end == r->ids.n;
	b->token[at + n - 1].hidden = r->pool;
}

static enum qwen_end end_of(const struct qwen_batch *b, const struct request *r,
			    uint32_t id)
{
	const bool last = r->ids.n - r->n_prompt == r->most;

	if (qwen_config_stops(&b->m->config, id))
		return QWEN_END_STOP;
	if (r->matcher && (qwen_matcher_is_whole(r->matcher) ||
			   (last && qwen_matcher_can_end(r->matcher))))
		return QWEN_END_WHOLE;
	return last ? QWEN_END_LENGTH : QWEN_GOES_ON;
}

/* A token that the request's grammar lets through. */
static bool sample_token(struct qwen_batch *b, struct request *r,
			 const float *logits, uint32_t *id)
{
	const struct qwen_config *c = &b->m->config;
	const uint32_t left = r->most - (uint32_t)(r->ids.n - r->n_prompt);
	struct err e = { 0 };

	if (!r->matcher)
		return qwen_sample(&r->sampler, logits, id, &e);
	memcpy(b->masked, logits, c->vocab * sizeof(*logits));
	qwen_matcher_mask(r->matcher, left, b->masked, c->vocab, c->stop,
			  c->n_stops);
	return qwen_sample(&r->sampler, b->masked, id, &e) &&
	       (qwen_config_stops(c, *id) ||
		qwen_matcher_take(r->matcher, *id));
}

/* The next token, where the pass computed the last one so far. */
static void sample_next(struct qwen_batch *b, struct request *r,
			const float *logits)
{
	struct qwen_news news = { .end = QWEN_END_BROKEN };

	if (!logits)
		return;
	if (sample_token(b, r, logits, &news.token)) {
		qwen_sampler_see(&r->sampler, news.token);
		qwen_ids_add(&r->ids, news.token);
		user_of(b, r->user)->tokens++;
		b->counts.tokens++;
		news.end = end_of(b, r, news.token);
		news.logits = logits;
	}
	r->gone = !b->heard(b->ctx, r->who, &news) || news.end != QWEN_GOES_ON;
}

/* What of one request a pass has. */
struct share {
	struct request *r;
	uint32_t last; /* its last token; proposals are behind it */
	struct qwen_proposal p;
};

/* The next tokens, as far as they were proposed, and one. */
static void take_tokens(struct qwen_batch *b, const struct share *s)
{
	struct request *r = s->r;
	uint32_t right = 0;

	for (;; right++) {
		sample_next(b, r, qwen_logits(b->state, s->last + right));
		if (r->gone || right == s->p.n ||
		    r->ids.v[r->ids.n - 1] != s->p.id[right])
			break;
	}
	qwen_guess_see(&r->guess, s->p.n, right);
	if (!s->p.n)
		return;
	qwen_pages_truncate(b->pages, &r->table, (uint32_t)r->ids.n - 1);
	qwen_state_map(b->state, r->slot, r->table.block, r->table.length);
	b->counts.proposed += s->p.n;
	b->counts.right += right;
}

static bool run_few(struct qwen_batch *b, const struct share *s, uint32_t n,
		    uint32_t tokens, struct err *e)
{
	const uint64_t from = time_mono_ns();
	bool proposed = false;

	if (!qwen_forward(b->state, b->token, tokens, e))
		return false;
	for (uint32_t i = 0; i < n; i++)
		proposed = proposed || s[i].p.n;
	qwen_guess_pass(&b->costs, tokens, proposed,
			(double)(time_mono_ns() - from) * 1e-9);
	for (uint32_t i = 0; i < n; i++)
		take_tokens(b, &s[i]);
	return true;
}

static bool is_written(const struct request *r)
{
	return r->slot != NO_SLOT && r->table.length >= r->n_prompt;
}

static uint32_t count_written(const struct qwen_batch *b)
{
	uint32_t texts = 0;

	for (size_t i = 0; i < b->all.n; i++)
		texts += is_written(b->all.v[i]);
	return texts;
}

/*
 * For one of so many texts, as far as passes of few have room for each; only of
 * blocks that nobody has to give back for it.
 */
static bool propose_tokens(struct qwen_batch *b, struct request *r,
			   uint32_t texts, struct qwen_proposal *p,
			   struct err *e)
{
	struct qwen_proposer *by = b->proposer[r->slot];
	const uint32_t more =
		r->n_prompt + r->most - (uint32_t)r->ids.n; /* to be said */
	uint32_t k = texts < FEW ? (FEW - texts) / texts : 0;
	uint64_t from;

	k = k < b->shape.speculate ? k : b->shape.speculate;
	k = k < more ? k : more - 1;
	k = qwen_guess_length(&b->costs, &r->guess, texts, k);
	if (!k || qwen_pages_left(b->pages) < 3)
		return true;
	from = time_mono_ns();
	if (!by->propose(by, &r->ids, k, p, e))
		return false;
	qwen_guess_asked(&b->costs, &r->guess, p->n,
			 (double)(time_mono_ns() - from) * 1e-9);
	return true;
}

/* Texts whose prompt is done: one more token, or those to compute again. */
static bool write_texts(struct qwen_batch *b, uint32_t *spent, struct err *e)
{
	const uint32_t texts = count_written(b);
	struct share s[FEW];
	struct qwen_proposal p;
	uint32_t n = 0, tokens = 0;

	for (size_t i = 0; i < b->all.n; i++) {
		struct request *r = b->all.v[i];
		if (!is_written(r))
			continue;
		uint32_t left = (uint32_t)r->ids.n - r->table.length;
		uint32_t some = left < FEW ? left : FEW;
		p = (struct qwen_proposal){ 0 };
		if (left == 1 && !propose_tokens(b, r, texts, &p, e))
			return false;
		if (tokens + some + p.n > FEW) {
			if (!run_few(b, s, n, tokens, e))
				return false;
			n = tokens = 0;
		}
		if (!make_room(b, r, some + p.n))
			continue;
		put_tokens(b, r, tokens, some, &p);
		tokens += some;
		*spent += some;
		s[n++] = (struct share){ r, tokens - 1, p };
		tokens += p.n;
	}
	return !n || run_few(b, s, n, tokens, e);
}

/* The vectors of a piece of n tokens, and of the last one the result. */
static void pool_piece(struct qwen_batch *b, struct request *r, uint32_t n)
{
	const uint32_t hidden = b->m->config.hidden;
	const bool mean = r->pool == QWEN_POOL_MEAN,
		   last = r->table.length == r->n_prompt;
	const struct qwen_news news = { .end = QWEN_END_POOLED,
					.vector = r->vector };

	for (uint32_t i = mean ? 0 : n - 1; i < n && (mean || last); i++) {
		const float *v = qwen_hidden(b->state, i);
		for (uint32_t k = 0; k < hidden; k++)
			r->vector[k] += v[k];
	}
	if (!last)
		return;
	for (uint32_t k = 0; k < hidden && mean; k++)
		r->vector[k] /= r->n_prompt;
	b->heard(b->ctx, r->who, &news);
	r->gone = true;
}

/* The next piece of a prompt, in a pass of its own. */
static bool read_piece(struct qwen_batch *b, struct request *r, uint32_t *spent,
		       struct err *e)
{
	const uint32_t left = r->n_prompt - r->table.length;
	const uint32_t n = left < b->shape.chunk ? left : b->shape.chunk;

	const struct qwen_proposal none = { 0 };

	if (!make_room(b, r, n))
		return true;
	put_tokens(b, r, 0, n, &none);
	*spent += n;
	b->counts.prompt_tokens += n;
	if (!qwen_forward(b->state, b->token, n, e))
		return false;
	if (n == b->shape.chunk)
		qwen_pages_name(b->pages, &r->table, r->ids.v);
	if (r->pool)
		pool_piece(b, r, n);
	else
		sample_next(b, r, qwen_logits(b->state, n - 1));
	return true;
}

bool qwen_batch_step(struct qwen_batch *b, qwen_heard_fn *heard, void *ctx,
		     struct err *e)
{
	uint32_t spent = 0;
	bool good;

	b->heard = heard;
	b->ctx = ctx;
	b->counts.steps++;
	admit_waiting(b);
	good = write_texts(b, &spent, e);
	for (size_t i = 0; i < b->all.n && good; i++) {
		struct request *r = b->all.v[i];
		if (r->slot == NO_SLOT || r->gone ||
		    r->table.length >= r->n_prompt)
			continue;
		if (spent && spent >= b->shape.budget)
			break;
		good = read_piece(b, r, &spent, e);
	}
	free_gone(b);
	return good;
}

void qwen_batch_count(const struct qwen_batch *b, struct qwen_batch_counts *out)
{
	*out = b->counts;
	for (size_t i = 0; i < b->all.n; i++)
		*(b->all.v[i]->slot == NO_SLOT ? &out->waiting :
						 &out->running) += 1;
	out->blocks_left = qwen_pages_left(b->pages);
}
