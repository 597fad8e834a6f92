/*
 * The allocator of a paged cache against a model that has no hashes, lists or
 * names: it knows for every block which text it ends, and looks through all.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/serve/serve.h"
#include "tests/tap.h"

enum { BLOCKS = 24, TABLES = 6, LONGEST = 8 * QWEN_BLOCK };

/* What is in a block, and since when nobody has it; `n` ids if it has a name.
 */
struct slow {
	uint32_t text[LONGEST], n, held;
	uint64_t since;
};

struct world {
	struct qwen_pages *p;
	struct qwen_table t[TABLES];
	uint32_t text[TABLES][LONGEST];	     /* of each table */
	uint32_t memory[BLOCKS][QWEN_BLOCK]; /* as a backend writes it */
	struct slow slow[BLOCKS];
	uint64_t now, seed;
	const char *wrong;
};

static uint32_t draw_below(struct world *w, uint32_t n)
{
	return (uint32_t)(random_next(&w->seed) % n);
}

static void held_again(struct world *w)
{
	for (int b = 0; b < BLOCKS; b++)
		w->slow[b].held = 0;
	for (int i = 0; i < TABLES; i++)
		for (uint32_t j = 0; j < w->t[i].n; j++)
			w->slow[w->t[i].block[j]].held++;
}

static uint32_t slow_left(const struct world *w)
{
	uint32_t n = 0;

	for (int b = 0; b < BLOCKS; b++)
		n += !w->slow[b].held;
	return n;
}

/* The block that ends with the first n ids; -1: none has them all. */
static int slow_find(const struct world *w, const uint32_t *ids, uint32_t n)
{
	for (int b = 0; b < BLOCKS; b++)
		if (w->slow[b].n == n &&
		    memcmp(w->slow[b].text, ids, n * sizeof(*ids)) == 0)
			return b;
	return -1;
}

/* Is it right to give out block b, which nobody has? */
static void check_taken(struct world *w, uint32_t b)
{
	for (int i = 0; i < BLOCKS; i++) {
		const struct slow *s = &w->slow[i];
		if (s->held || (uint32_t)i == b)
			continue;
		if (w->slow[b].n && !s->n)
			w->wrong = "a text was forgotten while a block was "
				   "free";
		if (w->slow[b].n && s->n && s->since < w->slow[b].since)
			w->wrong = "not the oldest text was forgotten";
	}
	if (w->slow[b].held)
		w->wrong = "a held block was given out";
	w->slow[b].n = 0;
	w->slow[b].held = 1;
}

/* Blocks are let go from the last on. */
static void let_go(struct world *w, struct qwen_table *t, uint32_t from)
{
	for (uint32_t i = t->n; i-- > from;)
		if (!--w->slow[t->block[i]].held)
			w->slow[t->block[i]].since = ++w->now;
}

static void try_find(struct world *w, int i)
{
	uint32_t n = draw_below(w, LONGEST + 1), want = 0, got;
	int b;

	let_go(w, &w->t[i], 0);
	qwen_pages_drop(w->p, &w->t[i]);
	/* Few different texts, so that many begin alike. */
	for (uint32_t j = 0; j < n; j++)
		w->text[i][j] = j % QWEN_BLOCK ? j : draw_below(w, 3);
	while (want + QWEN_BLOCK <= n &&
	       (b = slow_find(w, w->text[i], want + QWEN_BLOCK)) >= 0) {
		w->slow[b].held++;
		want += QWEN_BLOCK;
	}
	got = qwen_pages_find(w->p, &w->t[i], w->text[i], n);
	if (got != want || w->t[i].length != want)
		w->wrong = "another length was found";
}

static void try_extend(struct world *w, int i, bool named)
{
	struct qwen_table *t = &w->t[i];
	uint32_t n = 1 + draw_below(w, 40), had = t->n, was = t->length, need;
	uint32_t last = had ? t->block[had - 1] : 0;
	bool part = was % QWEN_BLOCK, shared, fits;
	struct qwen_copy c;

	if (was + n > LONGEST)
		return;
	shared = part && (w->slow[last].held > 1 || w->slow[last].n);
	need = (was + n + QWEN_BLOCK - 1) / QWEN_BLOCK - had + shared;
	fits = need <= slow_left(w);
	if (qwen_pages_extend(w->p, t, n, &c) != fits) {
		w->wrong = "it fits, or not, against the count";
		return;
	}
	if (!fits) {
		if (t->n != had || t->length != was)
			w->wrong = "a refusal changed the table";
		return;
	}
	if (c.wanted != shared)
		w->wrong = "a copy was made, or not";
	if (c.wanted) {
		if (c.from != last || c.to != t->block[had - 1])
			w->wrong = "the copy is of another block";
		check_taken(w, c.to);
		memcpy(w->memory[c.to], w->memory[c.from],
		       sizeof(w->memory[0]));
		if (!--w->slow[last].held)
			w->slow[last].since = ++w->now;
	}
	for (uint32_t j = had; j < t->n; j++)
		check_taken(w, t->block[j]);
	for (uint32_t j = was; j < was + n; j++) {
		w->text[i][j] = j % QWEN_BLOCK ? j : draw_below(w, 3);
		w->memory[t->block[j / QWEN_BLOCK]][j % QWEN_BLOCK] =
			w->text[i][j];
	}
	if (!named)
		return;
	uint32_t before[LONGEST / QWEN_BLOCK];
	memcpy(before, t->block, t->n * sizeof(*before));
	qwen_pages_name(w->p, t, w->text[i]);
	for (uint32_t j = 0; j < t->length / QWEN_BLOCK; j++) {
		uint32_t ids = (j + 1) * QWEN_BLOCK;
		int b = slow_find(w, w->text[i], ids);
		if (b < 0 && w->slow[before[j]].held > 1) {
			break;
		} else if (b < 0) {
			struct slow *s = &w->slow[before[j]];
			memcpy(s->text, w->text[i], ids * sizeof(*s->text));
			s->n = ids;
			b = (int)before[j];
		} else if ((uint32_t)b != before[j]) {
			w->slow[b].held++;
			if (!--w->slow[before[j]].held)
				w->slow[before[j]].since = 0;
		}
		if (t->block[j] != (uint32_t)b)
			w->wrong = "a full block is not the one of its text";
	}
}

static void try_truncate(struct world *w, int i)
{
	uint32_t n = draw_below(w, w->t[i].length + 1);

	let_go(w, &w->t[i], (n + QWEN_BLOCK - 1) / QWEN_BLOCK);
	qwen_pages_truncate(w->p, &w->t[i], n);
}

static void try_fork(struct world *w, int from, int to)
{
	if (from == to)
		return;
	let_go(w, &w->t[to], 0);
	qwen_pages_drop(w->p, &w->t[to]);
	qwen_pages_fork(w->p, &w->t[to], &w->t[from]);
	memcpy(w->text[to], w->text[from], sizeof(w->text[0]));
	held_again(w);
}

/* What every table reads through its blocks is its text. */
static void check_texts(struct world *w)
{
	uint32_t held[BLOCKS];

	for (int b = 0; b < BLOCKS; b++)
		held[b] = w->slow[b].held;
	held_again(w);
	for (int b = 0; b < BLOCKS; b++)
		if (held[b] != w->slow[b].held)
			w->wrong = "holders do not add up";
	if (qwen_pages_left(w->p) != slow_left(w))
		w->wrong = "another number of blocks is left";
	for (int i = 0; i < TABLES; i++)
		for (uint32_t j = 0; j < w->t[i].length; j++)
			if (w->memory[w->t[i].block[j / QWEN_BLOCK]]
				     [j % QWEN_BLOCK] != w->text[i][j])
				w->wrong = "a text reads as another";
}

static void fuzz(uint64_t seed, int steps)
{
	struct world *w = xcalloc(1, sizeof(*w));
	int i = 0;

	w->seed = seed;
	w->p = qwen_pages_new(BLOCKS);
	for (; i < steps && !w->wrong; i++) {
		int at = (int)draw_below(w, TABLES);
		switch (draw_below(w, 8)) {
		case 0:
		case 1:
			try_find(w, at);
			break;
		case 2:
			try_truncate(w, at);
			break;
		case 3:
			try_fork(w, at, (int)draw_below(w, TABLES));
			break;
		default:
			try_extend(w, at, draw_below(w, 4));
		}
		check_texts(w);
	}
	if (w->wrong)
		diag("seed %llu, step %d: %s", (unsigned long long)seed, i,
		     w->wrong);
	ok(!w->wrong, "%d random calls as the model has them, seed %llu", steps,
	   (unsigned long long)seed);
	for (i = 0; i < TABLES; i++)
		qwen_pages_drop(w->p, &w->t[i]);
	is_u64(qwen_pages_left(w->p), BLOCKS, "all blocks are back, seed %llu",
	       (unsigned long long)seed);
	qwen_pages_free(w->p);
	free(w);
}

int main(void)
{
	bool slow = getenv("T0_SLOW") != NULL;

	for (uint64_t seed = 1; seed <= 8; seed++)
		fuzz(seed, slow ? 1000000 : 20000);
	return plan_done();
}
