/*
 * A model's state with a paged cache beside one with a dense one: the same
 * passes of both, whose logits are compared to the bit.
 */
#ifndef T0_TESTS_PAGED_H
#define T0_TESTS_PAGED_H

#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "tests/tap.h"

enum { SEQUENCES = 3, BLOCKS = 160, MOST_TOKENS = 150 /* of a pass */ };

struct pair {
	struct qwen_state *dense, *paged;
	struct qwen_pages *pages;
	struct qwen_table table[SEQUENCES];
	uint32_t positions;
	uint64_t seed;
	uint32_t vocab;
};

static inline bool pair_extend(struct pair *p, uint32_t sequence, uint32_t n)
{
	struct qwen_table *t = &p->table[sequence];
	struct qwen_copy copy;
	uint32_t was = t->length;

	if (!qwen_pages_extend(p->pages, t, n, &copy))
		return false;
	if (copy.wanted)
		qwen_state_copy(p->paged, copy.from, copy.to);
	qwen_state_map(p->paged, sequence, t->block, was);
	return true;
}

static inline void pair_drop(struct pair *p)
{
	for (uint32_t s = 0; s < SEQUENCES; s++)
		qwen_pages_drop(p->pages, &p->table[s]);
}

/*
 * Of a shape without blocks.  They have no order afterwards: so many texts of
 * single ones were dropped across.
 */
static inline bool pair_open(struct pair *p, const struct qwen_model *m,
			     struct qwen_shape shape, uint32_t texts)
{
	struct err e = { 0 };
	bool good = true;

	*p = (struct pair){ .seed = 5 + shape.cache.keys,
			    .positions = shape.positions,
			    .vocab = m->config.vocab };
	p->dense = qwen_state_new(m, &shape, &e);
	shape.blocks = BLOCKS;
	p->paged = qwen_state_new(m, &shape, &e);
	p->pages = qwen_pages_new(BLOCKS);
	if (!p->dense || !p->paged) {
		diag("%s", e.msg);
		return false;
	}
	for (uint32_t i = 0; i < texts; i++)
		for (uint32_t s = 0; s < SEQUENCES; s++)
			good = pair_extend(p, s, 1 + (i * 5 + s * 11) % 16) &&
			       good;
	pair_drop(p);
	return good;
}

static inline void pair_close(struct pair *p)
{
	pair_drop(p);
	qwen_pages_free(p->pages);
	qwen_state_free(p->dense);
	qwen_state_free(p->paged);
}

/* Both in one pass; are these tokens' logits the same? */
static inline bool pair_forward(struct pair *p, const struct qwen_token *t,
				uint32_t n)
{
	struct err e = { 0 };

	if (!qwen_forward(p->dense, t, n, &e) ||
	    !qwen_forward(p->paged, t, n, &e)) {
		diag("%s", e.msg);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		if (t[i].logits &&
		    memcmp(qwen_logits(p->dense, i), qwen_logits(p->paged, i),
			   p->vocab * sizeof(float)) != 0) {
			diag("token %u of %u at length %u differs", i, n,
			     qwen_state_length(p->paged, t[i].sequence));
			return false;
		}
	return true;
}

/*
 * One pass of random tokens, of every sequence from `least` on and below
 * least + range, if there are more than `few` in all.
 */
static inline bool pair_pass(struct pair *p, uint32_t least, uint32_t range,
			     uint32_t few)
{
	struct qwen_token t[MOST_TOKENS];
	uint32_t n = 0;

	for (uint32_t s = 0; s < SEQUENCES; s++) {
		uint32_t some = (uint32_t)(random_next(&p->seed) % range) + least;
		if (p->table[s].length + some > p->positions ||
		    !pair_extend(p, s, some))
			continue;
		while (some--)
			t[n++] = (struct qwen_token){
				(uint32_t)(random_next(&p->seed) % p->vocab), s,
				true, false, false };
	}
	return n <= few || pair_forward(p, t, n);
}

/* A text that goes on in another sequence, block by block shared. */
static inline bool pair_fork(struct pair *p)
{
	struct qwen_token a[20], b[20];
	struct err e = { 0 };

	pair_drop(p);
	for (uint32_t s = 0; s < SEQUENCES; s++)
		qwen_state_truncate(p->dense, s, 0);
	for (uint32_t i = 0; i < 20; i++) {
		a[i] = (struct qwen_token){ .id = i * 7 % p->vocab,
					    .logits = true };
		b[i] = a[i];
		b[i].sequence = 1;
	}
	bool same = pair_extend(p, 0, 20) && pair_forward(p, a, 20) &&
		    qwen_forward(p->dense, b, 20, &e);
	qwen_pages_fork(p->pages, &p->table[1], &p->table[0]);
	for (uint32_t i = 0; i < 9 && same; i++) {
		const struct qwen_token two[] = {
			{ i, 0, true, false, false },
			{ 9 - i, 1, true, false, false } };
		same = pair_extend(p, 0, 1) && pair_extend(p, 1, 1) &&
		       pair_forward(p, two, 2);
	}
	return same && qwen_pages_left(p->pages) == BLOCKS - 3;
}

#endif
