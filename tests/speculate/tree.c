/*
 * Several candidates in one pass: each token of a tree has the bits that its
 * path has alone, for types of weights and caches, dense and paged, short and
 * across runs of positions; what is taken is held as if it had been all.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "tests/tap.h"

enum { LONGEST = 560, SEQUENCES = 2, BLOCKS = 2 * (LONGEST / QWEN_BLOCK + 1) };

static struct threads *threads;
static char root[] = "/tmp/t0-tree-XXXXXX";

static uint32_t draw_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(random_next(seed) % n);
}

static struct qwen_state *state_new(const struct qwen_model *m,
				    enum qwen_weights cache, bool paged)
{
	static uint32_t block[SEQUENCES][BLOCKS / SEQUENCES];
	const struct qwen_shape shape = { .sequences = SEQUENCES,
					  .positions = LONGEST,
					  .max_tokens = LONGEST,
					  .cache = qwen_both(cache),
					  .blocks = paged ? BLOCKS : 0 };
	const uint32_t taps[] = { 1, m->config.layers };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	if (!s || !qwen_state_tap(s, taps, 2, &e))
		BUG("%s", e.msg);
	for (uint32_t i = 0; i < SEQUENCES && paged; i++) {
		for (uint32_t k = 0; k < BLOCKS / SEQUENCES; k++)
			block[i][k] = SEQUENCES * k + i;
		qwen_state_map(s, i, block[i], 0);
	}
	return s;
}

/* The same text in both sequences, of one length and another. */
static bool fill_state(struct qwen_state *s, uint32_t n, uint64_t seed)
{
	struct qwen_token *t = xcalloc(n, sizeof(*t));
	struct err e = { 0 };
	bool good = true;

	for (uint32_t q = 0; q < SEQUENCES && good; q++) {
		const uint32_t some = n - 3 * q;
		for (uint32_t i = 0; i < some; i++)
			t[i] = (struct qwen_token){
				.id = draw_below(&seed, 500), .sequence = q
			};
		qwen_state_truncate(s, q, 0);
		good = qwen_forward(s, t, some, &e);
	}
	free(t);
	return good;
}

struct tree {
	struct qwen_token t[QWEN_FEW];
	uint32_t parent[QWEN_FEW], n;
};

/* Depth first, of both sequences by turns. */
static void tree_draw(struct tree *t, uint64_t *seed)
{
	uint32_t last[SEQUENCES] = { QWEN_ROOT, QWEN_ROOT };

	t->n = 2 + draw_below(seed, QWEN_FEW - 1);
	for (uint32_t i = 0; i < t->n; i++) {
		const uint32_t q = draw_below(seed, SEQUENCES);
		uint32_t up = last[q];
		while (up != QWEN_ROOT && draw_below(seed, 3) == 0)
			up = t->parent[up];
		t->t[i] = (struct qwen_token){ .id = draw_below(seed, 500),
					       .sequence = q,
					       .logits = true };
		t->parent[i] = up;
		last[q] = i;
	}
}

/* Token i and its ancestors as a pass of their own. */
static bool run_path(struct qwen_state *s, const struct tree *t, uint32_t i,
		     uint32_t *n)
{
	struct qwen_token path[QWEN_FEW];
	uint32_t at = QWEN_FEW;
	struct err e = { 0 };

	for (; i != QWEN_ROOT; i = t->parent[i])
		path[--at] = t->t[i];
	*n = QWEN_FEW - at;
	return qwen_forward(s, path + at, *n, &e);
}

struct found {
	uint32_t trees, tokens, wrong, wrong_hidden, wrong_after;
	uint32_t branches; /* tokens that have a sibling before them */
};

/* One tree against its paths; `a` and `b` hold the same. */
static void compare_tree(const struct qwen_model *m, struct qwen_state *a,
			 struct qwen_state *b, uint64_t *seed, struct found *f)
{
	const size_t bytes = m->config.vocab * sizeof(float);
	const size_t wide = 2 * m->config.hidden * sizeof(float);
	const uint32_t from[SEQUENCES] = { qwen_state_length(a, 0),
					   qwen_state_length(a, 1) };
	struct tree t;
	struct err e = { 0 };
	uint32_t n = 0, i;

	tree_draw(&t, seed);
	if (!qwen_forward_tree(a, t.t, t.parent, t.n, &e))
		BUG("%s", e.msg);
	f->trees++;
	for (i = 0; i < t.n; i++) {
		const uint32_t q = t.t[i].sequence;
		for (uint32_t k = 0; k < i; k++)
			if (t.parent[k] == t.parent[i] &&
			    t.t[k].sequence == q) {
				f->branches++;
				break;
			}
		f->tokens++;
		if (!run_path(b, &t, i, &n))
			BUG("a path");
		f->wrong += memcmp(qwen_logits(a, i), qwen_logits(b, n - 1),
				   bytes) != 0;
		qwen_state_truncate(b, q, from[q]);
	}
	/* One path of each sequence stays. */
	for (uint32_t q = 0; q < SEQUENCES; q++) {
		struct qwen_token more = { .id = draw_below(seed, 500),
					   .sequence = q,
					   .logits = true };
		i = draw_below(seed, t.n);
		while (i && t.t[i].sequence != q)
			i--;
		if (t.t[i].sequence != q)
			continue;
		if (q && !qwen_forward_tree(a, t.t, t.parent, t.n, &e))
			BUG("%s", e.msg);
		qwen_state_take(a, i);
		if (!run_path(b, &t, i, &n))
			BUG("a path");
		for (uint32_t k = 0; k < n; k++)
			f->wrong_hidden +=
				memcmp(qwen_kept(a, q, from[q] + k),
				       qwen_kept(b, q, from[q] + k),
				       wide) != 0;
		if (!qwen_forward(a, &more, 1, &e) ||
		    !qwen_forward(b, &more, 1, &e))
			BUG("%s", e.msg);
		f->wrong_after += memcmp(qwen_logits(a, 0), qwen_logits(b, 0),
					 bytes) != 0;
		qwen_state_truncate(a, q, from[q]);
		qwen_state_truncate(b, q, from[q]);
	}
}

static void test_trees(const struct qwen_model *m, enum qwen_weights cache,
		       bool paged)
{
	/* Within a run of positions, across its end, and in a later one. */
	static const uint32_t lengths[] = { 5, 250, 257, 508 };
	struct qwen_state *a = state_new(m, cache, paged);
	struct qwen_state *b = state_new(m, cache, paged);
	struct found f = { 0 };
	uint64_t seed = 31;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (!fill_state(a, lengths[i], i) ||
		    !fill_state(b, lengths[i], i))
			BUG("a text");
		for (int k = 0; k < 6; k++)
			compare_tree(m, a, b, &seed, &f);
	}
	diag("%u trees of %u tokens, %u of them branches", f.trees, f.tokens,
	     f.branches);
	ok(f.branches > 40 && f.tokens > 150, "trees with branches");
	is_u64(f.wrong, 0, "%s, keys of %s%s: each token as its path alone",
	       qwen_weights_name(m->layer[0].q.type), qwen_weights_name(cache),
	       paged ? " in blocks" : "");
	is_u64(f.wrong_hidden, 0, "what enters layers is that of the path");
	is_u64(f.wrong_after, 0, "and what follows it");
	qwen_state_free(a);
	qwen_state_free(b);
}

static void test_refuses(const struct qwen_model *m)
{
	struct qwen_state *s = state_new(m, QWEN_W_F32, false);
	struct qwen_token t[QWEN_FEW + 1] = { 0 };
	const uint32_t late[] = { QWEN_ROOT, 1 },
		       left[] = { QWEN_ROOT, 0, 0, 1 };
	const uint32_t others[] = { QWEN_ROOT, 0 };
	uint32_t chain[QWEN_FEW + 1] = { QWEN_ROOT };
	struct err e = { 0 };

	ok(!qwen_forward_tree(s, t, late, 2, &e), "its own parent");
	has_str(e.msg, "token 1 of a tree follows token 1", "is refused");
	e = (struct err){ 0 };
	ok(!qwen_forward_tree(s, t, left, 4, &e), "a branch that was left");
	has_str(e.msg, "token 3 of a tree follows token 1", "is, too");
	t[1].sequence = 1;
	e = (struct err){ 0 };
	ok(!qwen_forward_tree(s, t, others, 2, &e),
	   "another sequence's parent");
	t[1].sequence = 0;
	for (uint32_t i = 1; i <= QWEN_FEW; i++)
		chain[i] = i - 1;
	e = (struct err){ 0 };
	ok(!qwen_forward_tree(s, t, chain, QWEN_FEW + 1, &e), "too many");
	has_str(e.msg, "at most 16 fit", "says how many fit");
	e = (struct err){ 0 };
	if (!fill_state(s, LONGEST - 2, 1))
		BUG("a text");
	ok(!qwen_forward_tree(s, t, chain, 3, &e), "a tree that leaves the "
						   "context");
	has_str(e.msg, "sequence 0 is full", "says so");
	is_u64(qwen_state_length(s, 0), LONGEST - 2, "and changes nothing");
	qwen_state_free(s);
}

static void test_model(const char *dir, enum qwen_weights w, bool all)
{
	const struct qwen_load how = { .convert = true, .weights = w };
	struct qwen_model m;
	struct err e = { 0 };

	if (!ok(qwen_model_load(&m, dir, &how, threads, &e), "as %s: %s",
		qwen_weights_name(w), e.msg))
		return;
	test_trees(&m, QWEN_W_F32, false);
	test_trees(&m, QWEN_W_F16, true);
	if (all) {
		test_trees(&m, QWEN_W_INT8, false);
		test_trees(&m, QWEN_W_BF16, true);
		test_refuses(&m);
	}
	qwen_model_close(&m);
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 4 };
	char command[96], dense[64], mixture[64];
	struct err e = { 0 };

	if (!mkdtemp(root))
		skip_all("no folder");
	threads = threads_new(2, &e);
	snprintf(dense, sizeof(dense), "%s/dense", root);
	snprintf(mixture, sizeof(mixture), "%s/mixture", root);
	qwen_shape_find("tiny", &how.config, &e);
	how.config.max_positions = LONGEST;
	ok(qwen_synthetic_write(dense, &how, &e), "a model: %s", e.msg);
	qwen_shape_find("tiny-moe", &how.config, &e);
	how.config.max_positions = LONGEST;
	ok(qwen_synthetic_write(mixture, &how, &e), "a mixture: %s", e.msg);
	test_model(dense, QWEN_W_F32, true);
	test_model(dense, QWEN_W_BF16, false);
	test_model(dense, QWEN_W_INT8, false);
	test_model(dense, QWEN_W_INT4, false);
	test_model(mixture, QWEN_W_F32, false);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ok(system(command) == 0, "the models are gone");
	return plan_done();
}
