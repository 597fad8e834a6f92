/*
 * engine/corpus/rows.c - rows of tokens, in an order that a seed decides.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/corpus/corpus.h"

bool corpus_rows_init(struct corpus_rows *r, const struct corpus *c,
		      size_t from, size_t to, uint32_t length, bool shuffle,
		      uint64_t seed, struct err *e)
{
	*r = (struct corpus_rows){ .c = c, .from = from, .to = to,
				   .length = length, .shuffle = shuffle,
				   .seed = seed };
	if (to - from < 2)
		return err_set(e, ERR_INPUT, "there are %zu tokens to learn "
			       "from; wanted at least 2", to - from);
	/* The last token is a target only; a shift may cost a row. */
	size_t n = to - from - 1;
	r->n = shuffle ? n / length : (n + length - 1) / length;
	if (shuffle && r->n > 1 && r->n * length == n)
		r->n--;
	r->n = r->n ? r->n : 1;
	return r->n <= UINT32_MAX ||
	       err_set(e, ERR_INPUT, "%zu rows; wanted at most %u", r->n,
		       UINT32_MAX);
}

void corpus_rows_fini(struct corpus_rows *r)
{
	free(r->order);
	*r = (struct corpus_rows){ 0 };
}

/* Fisher and Yates; the shift is below what is left behind the rows. */
static void order_epoch(struct corpus_rows *r, uint64_t epoch)
{
	uint64_t state = r->seed ^ (epoch + 1) * 0x9e3779b97f4a7c15;
	size_t used = r->n * r->length, n = r->to - r->from - 1;
	size_t left = n > used ? n - used : 0;

	if (r->order && r->epoch == epoch)
		return;
	free(r->order);
	r->order = xcalloc(r->n, sizeof(*r->order));
	r->epoch = epoch;
	r->shift = r->shuffle ? random_next(&state) % (left + 1) : 0;
	for (size_t i = 0; i < r->n; i++) {
		size_t k = r->shuffle ? random_next(&state) % (i + 1) : i;
		r->order[i] = r->order[k];
		r->order[k] = (uint32_t)i;
	}
}

uint32_t corpus_row(struct corpus_rows *r, uint64_t row, uint32_t *id,
		    uint32_t *position, uint32_t *target)
{
	const struct corpus *c = r->c;
	uint32_t targets = 0;

	order_epoch(r, row / r->n);
	size_t at = r->from + r->shift +
		    (size_t)r->order[row % r->n] * r->length;
	for (uint32_t i = 0; i < r->length; i++, at++) {
		bool there = at < r->to;
		bool ends = there && c->token[at] == c->end;

		id[i] = there ? c->token[at] : 0;
		position[i] = i && id[i - 1] != c->end ? position[i - 1] + 1 :
							0;
		target[i] = CORPUS_IGNORE;
		if (at + 1 < r->to && !ends &&
		    !(c->skipped && c->skipped[at + 1])) {
			target[i] = c->token[at + 1];
			targets++;
		}
	}
	return targets;
}
