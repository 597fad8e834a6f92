/*
 * engine/grammar/matcher.c - a pushdown automaton through a text.
 *
 * A stack is a node: the element that comes next, and the node to go on with
 * behind its END.  A state is the set of stacks that the text may be at; equal
 * nodes and states are one, so that where a byte leads from a state, and which
 * tokens may come there, is found once.
 */
#include <math.h>
#include <xxhash.h>

#include "engine/grammar/grammar_int.h"
#include "engine/grammar/lexicon.h"

/* States and masks that are kept at most. */
enum { MOST_STATES = 1 << 12, MOST_MASKS = 512 };
/* Bytes that a text may be from its end beyond the shortest: bounds its depth.
 */
enum { MOST_OPEN = 1024 };

#define BOTTOM	0 /* the node of a text that may end */
#define DEAD	0 /* the state that nothing leads out of */
#define UNKNOWN UINT32_MAX

struct node {
	uint32_t elem, below;
	uint32_t least; /* bytes to its end */
};

struct mask {
	uint64_t *allowed; /* [lexicon->n / 64 + 1], by place */
	uint32_t worst;	   /* bytes to the end, behind any of them */
};

struct state {
	uint32_t first, n; /* nodes, of `nodes` */
	uint32_t least;
	uint32_t *next;	  /* [n_alike], NULL: none is known */
	struct mask mask; /* allowed NULL: not known */
};

/* Where equal ones are found: open addressing, one more than the index. */
struct finder {
	uint32_t *slot; /* [cap], a power of two */
	size_t n, cap;
};

struct tables {
	VEC(struct node) node;
	VEC(struct state) state;
	VEC(uint32_t) nodes; /* of all states */
	struct finder node_at, state_at;
	uint32_t masks;
};

struct qwen_matcher {
	const struct qwen_grammar *g;
	const struct qwen_lexicon *l;
	struct tables t;
	VEC(uint32_t) set;     /* the state that is being made */
	VEC(bool) visited;     /* [node] */
	VEC(uint32_t) touched; /* which are */
	uint32_t *path;	       /* [longest + 1]: states of a token's bytes */
	uint64_t *allowed;     /* of a mask that is not kept */
	uint32_t at, limit;    /* the state; the most bytes to an end */
};

/* ---- finding equal ones ---- */

static uint64_t node_hash(const struct node *n)
{
	const uint32_t key[] = { n->elem, n->below };

	return XXH3_64bits(key, sizeof(key));
}

static uint64_t state_hash(const uint32_t *nodes, size_t n)
{
	return XXH3_64bits(nodes, n * sizeof(*nodes));
}

/* Puts `i` where its hash says. */
static void finder_put(struct finder *f, uint64_t hash, uint32_t i)
{
	size_t at = hash & (f->cap - 1);

	while (f->slot[at])
		at = (at + 1) & (f->cap - 1);
	f->slot[at] = i + 1;
	f->n++;
}

/* Room for one more: where it is more, all slots are empty. */
static bool finder_grow(struct finder *f)
{
	if (f->n * 2 < f->cap)
		return false;
	f->cap = f->cap ? f->cap * 2 : 256;
	free(f->slot);
	f->slot = xcalloc(f->cap, sizeof(*f->slot));
	f->n = 0;
	return true;
}

static uint32_t node_get(struct qwen_matcher *m, uint32_t elem, uint32_t below)
{
	struct tables *t = &m->t;
	struct node n = { elem, below, 0 };
	const uint64_t hash = node_hash(&n);

	if (finder_grow(&t->node_at))
		for (uint32_t i = 0; i < t->node.n; i++)
			finder_put(&t->node_at, node_hash(&t->node.v[i]), i);
	for (size_t at = hash & (t->node_at.cap - 1); t->node_at.slot[at];
	     at = (at + 1) & (t->node_at.cap - 1)) {
		const uint32_t i = t->node_at.slot[at] - 1;
		if (t->node.v[i].elem == elem && t->node.v[i].below == below)
			return i;
	}
	n.least = t->node.n ? m->g->least[elem] + t->node.v[below].least : 0;
	vec_push(&t->node, n);
	vec_push(&m->visited, false);
	finder_put(&t->node_at, hash, (uint32_t)t->node.n - 1);
	return (uint32_t)t->node.n - 1;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The state of the nodes in m->set, which it empties. */
static uint32_t state_get(struct qwen_matcher *m)
{
	struct tables *t = &m->t;
	const size_t n = m->set.n;
	struct state s = {
		(uint32_t)t->nodes.n, (uint32_t)n, NO_END, NULL, { NULL, 0 }
	};

	if (n)
		qsort(m->set.v, n, sizeof(*m->set.v), by_number);
	const uint64_t hash = state_hash(m->set.v, n);
	if (finder_grow(&t->state_at))
		for (uint32_t i = 0; i < t->state.n; i++)
			finder_put(&t->state_at,
				   state_hash(t->nodes.v + t->state.v[i].first,
					      t->state.v[i].n),
				   i);
	m->set.n = 0;
	for (size_t at = hash & (t->state_at.cap - 1); t->state_at.slot[at];
	     at = (at + 1) & (t->state_at.cap - 1)) {
		const struct state *x = &t->state.v[t->state_at.slot[at] - 1];
		if (x->n == n && (!n || !memcmp(t->nodes.v + x->first, m->set.v,
						n * sizeof(*m->set.v))))
			return t->state_at.slot[at] - 1;
	}
	for (size_t i = 0; i < n; i++) {
		const uint32_t least = t->node.v[m->set.v[i]].least;
		s.least = least < s.least ? least : s.least;
		vec_push(&t->nodes, m->set.v[i]);
	}
	vec_push(&t->state, s);
	finder_put(&t->state_at, hash, (uint32_t)t->state.n - 1);
	return (uint32_t)t->state.n - 1;
}

/* ---- steps ---- */

/* Adds to m->set the stacks that wait for a byte, from this one on. */
static void add_stacks(struct qwen_matcher *m, uint32_t elem, uint32_t below)
{
	const struct qwen_grammar *g = m->g;

	while (g->elem.v[elem].kind == ELEM_END && below != BOTTOM) {
		elem = m->t.node.v[below].elem;
		below = m->t.node.v[below].below;
	}
	const struct elem x = g->elem.v[elem];
	const uint32_t node = x.kind == ELEM_END ? BOTTOM :
						   node_get(m, elem, below);
	if (m->visited.v[node])
		return;
	m->visited.v[node] = true;
	vec_push(&m->touched, node);
	if (x.kind == ELEM_RULE) {
		/* A rule at the end needs nothing to come back to. */
		if (g->elem.v[elem + 1].kind != ELEM_END)
			below = node_get(m, elem + 1, below);
		for (uint32_t a = g->rule.v[x.of]; a != NO_ALTERNATIVE;
		     a = g->alternative.v[a].next)
			add_stacks(m, g->alternative.v[a].first, below);
	} else {
		vec_push(&m->set, node);
	}
}

static void forget_visits(struct qwen_matcher *m)
{
	for (size_t i = 0; i < m->touched.n; i++)
		m->visited.v[m->touched.v[i]] = false;
	m->touched.n = 0;
}

static uint32_t find_next(struct qwen_matcher *m, uint32_t at, unsigned char c)
{
	const struct state s = m->t.state.v[at];

	for (uint32_t i = 0; i < s.n; i++) {
		const uint32_t node = m->t.nodes.v[s.first + i];
		const struct node n = m->t.node.v[node];
		if (node != BOTTOM &&
		    set_has(&m->g->set.v[m->g->elem.v[n.elem].of], c))
			add_stacks(m, n.elem + 1, n.below);
	}
	forget_visits(m);
	return state_get(m);
}

static uint32_t step_byte(struct qwen_matcher *m, uint32_t at, unsigned char c)
{
	const uint32_t n = m->g->n_alike, alike = m->g->alike[c];
	uint32_t next;

	if (!m->t.state.v[at].next) {
		uint32_t *all = xmalloc(n * sizeof(*all));
		for (uint32_t i = 0; i < n; i++)
			all[i] = at == DEAD ? DEAD : UNKNOWN;
		m->t.state.v[at].next = all;
	}
	next = m->t.state.v[at].next[alike];
	if (next == UNKNOWN) {
		next = find_next(m, at, c);
		m->t.state.v[at].next[alike] = next;
	}
	return next;
}

/* ---- tables ---- */

static void tables_fini(struct tables *t)
{
	for (size_t i = 0; i < t->state.n; i++) {
		free(t->state.v[i].next);
		free(t->state.v[i].mask.allowed);
	}
	vec_fini(&t->node);
	vec_fini(&t->state);
	vec_fini(&t->nodes);
	free(t->node_at.slot);
	free(t->state_at.slot);
	*t = (struct tables){ 0 };
}

/* Empty ones: the bottom and the state of no stack. */
static void tables_init(struct qwen_matcher *m)
{
	m->t = (struct tables){ 0 };
	m->visited.n = m->set.n = 0;
	node_get(m, UINT32_MAX, 0);
	state_get(m);
}

static uint32_t copy_node(struct qwen_matcher *m, const struct tables *from,
			  uint32_t node)
{
	const struct node *n = &from->node.v[node];

	return node == BOTTOM ?
		       BOTTOM :
		       node_get(m, n->elem, copy_node(m, from, n->below));
}

/* Keeps the state that the text is in, and forgets all others. */
static void forget_states(struct qwen_matcher *m)
{
	struct tables was = m->t;
	const struct state at = was.state.v[m->at];

	tables_init(m);
	for (uint32_t i = 0; i < at.n; i++)
		vec_push(&m->set,
			 copy_node(m, &was, was.nodes.v[at.first + i]));
	m->at = state_get(m);
	tables_fini(&was);
}

struct qwen_matcher *qwen_matcher_new(const struct qwen_grammar *g,
				      const struct qwen_lexicon *l)
{
	struct qwen_matcher *m = xcalloc(1, sizeof(*m));

	m->g = g;
	m->l = l;
	m->path = xcalloc(l->longest + 1, sizeof(*m->path));
	m->allowed = xcalloc(l->n / 64 + 1, sizeof(*m->allowed));
	m->limit = qwen_grammar_least(g) + MOST_OPEN;
	tables_init(m);
	for (uint32_t a = g->rule.v[g->start]; a != NO_ALTERNATIVE;
	     a = g->alternative.v[a].next)
		add_stacks(m, g->alternative.v[a].first, BOTTOM);
	forget_visits(m);
	m->at = state_get(m);
	return m;
}

void qwen_matcher_free(struct qwen_matcher *m)
{
	if (!m)
		return;
	tables_fini(&m->t);
	vec_fini(&m->set);
	vec_fini(&m->visited);
	vec_fini(&m->touched);
	free(m->path);
	free(m->allowed);
	free(m);
}

/* ---- tokens ---- */

/*
 * Which tokens lead from state `at` to one whose end is at most `most` bytes
 * away; returns how far the farthest of them is.
 */
static uint32_t find_allowed(struct qwen_matcher *m, uint32_t at, uint32_t most,
			     uint64_t *allowed)
{
	uint32_t alive = 0, worst = 0; /* bytes of the path; see `shared` */

	memset(allowed, 0, (m->l->n / 64 + 1) * sizeof(*allowed));
	m->path[0] = at;
	for (uint32_t i = 0; i < m->l->n; i++) {
		const struct lexeme *x = &m->l->lexeme[i];
		if (x->shared > alive)
			continue;
		for (alive = x->shared; alive < x->len; alive++) {
			uint32_t next =
				step_byte(m, m->path[alive],
					  (unsigned char)x->bytes[alive]);
			if (next == DEAD)
				break;
			m->path[alive + 1] = next;
		}
		if (alive < x->len)
			continue;
		uint32_t least = m->t.state.v[m->path[alive]].least;
		if (least > most)
			continue;
		worst = least > worst ? least : worst;
		allowed[i / 64] |= 1ull << i % 64;
	}
	return worst;
}

static void forget_masks(struct qwen_matcher *m)
{
	for (size_t i = 0; i < m->t.state.n; i++) {
		free(m->t.state.v[i].mask.allowed);
		m->t.state.v[i].mask.allowed = NULL;
	}
	m->t.masks = 0;
}

/* The mask of the state with its limit alone, found once. */
static const struct mask *get_mask(struct qwen_matcher *m)
{
	if (!m->t.state.v[m->at].mask.allowed) {
		if (m->t.masks == MOST_MASKS)
			forget_masks(m);
		struct mask mask = {
			xcalloc(m->l->n / 64 + 1, sizeof(*mask.allowed)), 0
		};
		mask.worst = find_allowed(m, m->at, m->limit, mask.allowed);
		m->t.state.v[m->at].mask = mask;
		m->t.masks++;
	}
	return &m->t.state.v[m->at].mask;
}

void qwen_matcher_mask(struct qwen_matcher *m, uint32_t left, float *logits,
		       uint32_t vocab, const uint32_t *stop, uint32_t n_stops)
{
	const struct mask *mask = get_mask(m);
	const uint64_t *allowed = mask->allowed;

	if (left && mask->worst > left - 1) {
		find_allowed(m, m->at, left - 1, m->allowed);
		allowed = m->allowed;
	}
	for (uint32_t id = 0; id < vocab; id++) {
		const uint32_t at = id < m->l->size ? m->l->place[id] : 0;
		bool may = at && allowed[(at - 1) / 64] >> (at - 1) % 64 & 1;
		for (uint32_t i = 0; i < n_stops && !may; i++)
			may = stop[i] == id && qwen_matcher_can_end(m);
		if (!may)
			logits[id] = -INFINITY;
	}
}

bool qwen_matcher_take(struct qwen_matcher *m, uint32_t id)
{
	const uint32_t place = id < m->l->size ? m->l->place[id] : 0;
	const struct lexeme *x = m->l->lexeme + place - 1;
	uint32_t at = m->at;

	for (uint32_t i = 0; place && i < x->len; i++)
		at = step_byte(m, at, (unsigned char)x->bytes[i]);
	if (!place || at == DEAD)
		return false;
	m->at = at;
	if (m->t.state.n > MOST_STATES)
		forget_states(m);
	return true;
}

bool qwen_matcher_can_end(const struct qwen_matcher *m)
{
	const struct state *s = &m->t.state.v[m->at];

	return s->n && m->t.nodes.v[s->first] == BOTTOM;
}

bool qwen_matcher_is_whole(const struct qwen_matcher *m)
{
	return qwen_matcher_can_end(m) && m->t.state.v[m->at].n == 1;
}
