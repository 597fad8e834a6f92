/*
 * engine/grammar/lexicon.c - tokens in the order of their bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/lexicon.h"

static int by_bytes(const void *a, const void *b)
{
	const struct lexeme *x = a, *y = b;
	const uint32_t n = x->len < y->len ? x->len : y->len;
	const int c = memcmp(x->bytes, y->bytes, n);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

struct qwen_lexicon *qwen_lexicon_new(const struct qwen_tokenizer *t)
{
	struct qwen_lexicon *l = xcalloc(1, sizeof(*l));
	const uint32_t size = qwen_tokenizer_size(t);

	l->size = size;
	l->lexeme = xcalloc(size, sizeof(*l->lexeme));
	l->place = xcalloc(size, sizeof(*l->place));
	for (uint32_t id = 0; id < size; id++) {
		size_t len;
		bool special;
		const char *s = qwen_token_bytes(t, id, &len, &special);
		if (!s || special || !len)
			continue;
		l->lexeme[l->n++] = (struct lexeme){ .bytes = s,
						     .len = (uint32_t)len,
						     .id = id };
		l->longest = len > l->longest ? (uint32_t)len : l->longest;
	}
	qsort(l->lexeme, l->n, sizeof(*l->lexeme), by_bytes);
	for (uint32_t i = 0; i < l->n; i++) {
		struct lexeme *x = &l->lexeme[i], *before = x - 1;
		l->place[x->id] = i + 1;
		while (i && x->shared < x->len && x->shared < before->len &&
		       x->bytes[x->shared] == before->bytes[x->shared])
			x->shared++;
	}
	return l;
}

void qwen_lexicon_free(struct qwen_lexicon *l)
{
	if (!l)
		return;
	free(l->lexeme);
	free(l->place);
	free(l);
}
