/*
 * engine/text/bpe.c - text to tokens: pieces, and merges by rank.
 */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include <xxhash.h>

#include "engine/text/text_int.h"

#define MAX_TEXT_BYTES (1u << 30) /* NFC may make it three times longer */

/* ---- pieces seen before: most words of a text come again ---- */

#define CACHE_SLOTS 16384 /* 1 MiB */
#define CACHE_BYTES 30
#define CACHE_IDS 8

struct cached {
	uint8_t len, n;
	char bytes[CACHE_BYTES];
	uint32_t id[CACHE_IDS];
};

/* A token of the piece that is being merged, in a doubly linked list. */
struct node {
	uint32_t id; /* NO_TOKEN: merged away */
	uint32_t prev, next;
};

/* A merge that was possible when it was put into the heap. */
struct chance {
	uint32_t rank, at, left, right, into;
};

struct qwen_encoder {
	const struct qwen_tokenizer *t;
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	struct cached *cache;
	struct node *node;
	struct chance *heap;
	size_t n_heap, cap; /* of node; heap has room for 3 * cap */
	const _Atomic int *stop; /* NULL: none */
};

struct qwen_encoder *qwen_encoder_new(const struct qwen_tokenizer *t)
{
	struct qwen_encoder *x = xcalloc(1, sizeof(*x));

	x->t = t;
	x->match = pcre2_match_data_create(1, NULL);
	x->context = pcre2_match_context_create(NULL);
	x->stack = pcre2_jit_stack_create(64 << 10, 256 << 20, NULL);
	pcre2_jit_stack_assign(x->context, NULL, x->stack);
	x->cache = xcalloc(CACHE_SLOTS, sizeof(*x->cache));
	return x;
}

void qwen_encoder_free(struct qwen_encoder *x)
{
	if (!x)
		return;
	pcre2_match_data_free(x->match);
	pcre2_match_context_free(x->context);
	pcre2_jit_stack_free(x->stack);
	free(x->cache);
	free(x->node);
	free(x->heap);
	free(x);
}

/* ---- merging one piece ---- */

/* Lower rank first; of equal ranks the one further left. */
static bool merges_before(const struct chance *a, const struct chance *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_put(struct qwen_encoder *x, struct chance c)
{
	size_t i = x->n_heap++;

	for (; i && merges_before(&c, &x->heap[(i - 1) / 2]); i = (i - 1) / 2)
		x->heap[i] = x->heap[(i - 1) / 2];
	x->heap[i] = c;
}

static struct chance heap_take(struct qwen_encoder *x)
{
	struct chance top = x->heap[0], last = x->heap[--x->n_heap];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < x->n_heap; i = child) {
		if (child + 1 < x->n_heap &&
		    merges_before(&x->heap[child + 1], &x->heap[child]))
			child++;
		if (!merges_before(&x->heap[child], &last))
			break;
		x->heap[i] = x->heap[child];
	}
	x->heap[i] = last;
	return top;
}

/* Considers the pair that begins at node `at`. */
static void chance_add(struct qwen_encoder *x, uint32_t at)
{
	uint32_t next = x->node[at].next;

	if (next == NO_TOKEN)
		return;
	const struct merge *m = qwen_merge_find(x->t, x->node[at].id,
						x->node[next].id);
	if (m)
		heap_put(x, (struct chance){ m->rank, at, m->left, m->right,
					     m->into });
}

static void nodes_init(struct qwen_encoder *x, const char *s, size_t len)
{
	if (len > x->cap) {
		x->cap = len + len / 2 + 64;
		x->node = xrealloc(x->node, x->cap * sizeof(*x->node));
		x->heap = xrealloc(x->heap, 3 * x->cap * sizeof(*x->heap));
	}
	x->n_heap = 0;
	for (size_t i = 0; i < len; i++)
		x->node[i] = (struct node){
			x->t->of_byte[(unsigned char)s[i]],
			i ? (uint32_t)i - 1 : NO_TOKEN,
			i + 1 < len ? (uint32_t)i + 1 : NO_TOKEN
		};
	for (size_t i = 0; i + 1 < len; i++)
		chance_add(x, (uint32_t)i);
}

static void merge_all(struct qwen_encoder *x)
{
	struct node *node = x->node;

	while (x->n_heap) {
		struct chance c = heap_take(x);
		uint32_t next = node[c.at].next;
		/* One of the two may have merged with another since. */
		if (node[c.at].id != c.left || next == NO_TOKEN ||
		    node[next].id != c.right)
			continue;
		node[c.at].id = c.into;
		node[c.at].next = node[next].next;
		node[next].id = NO_TOKEN;
		if (node[c.at].next != NO_TOKEN)
			node[node[c.at].next].prev = c.at;
		chance_add(x, c.at);
		if (node[c.at].prev != NO_TOKEN)
			chance_add(x, node[c.at].prev);
	}
}

static struct cached *cache_slot(struct qwen_encoder *x, const char *s,
				 size_t len)
{
	if (len > CACHE_BYTES)
		return NULL;
	return &x->cache[XXH3_64bits(s, len) % CACHE_SLOTS];
}

static void piece_encode(struct qwen_encoder *x, const char *s, size_t len,
			 struct qwen_ids *ids)
{
	struct cached *c = cache_slot(x, s, len);
	size_t first = ids->n;

	if (c && c->len == len && memcmp(c->bytes, s, len) == 0) {
		for (unsigned i = 0; i < c->n; i++)
			qwen_ids_add(ids, c->id[i]);
		return;
	}
	nodes_init(x, s, len);
	merge_all(x);
	for (uint32_t i = 0; i != NO_TOKEN; i = x->node[i].next)
		qwen_ids_add(ids, x->node[i].id);
	if (c && ids->n - first <= CACHE_IDS) {
		c->len = (uint8_t)len;
		c->n = (uint8_t)(ids->n - first);
		memcpy(c->bytes, s, len);
		memcpy(c->id, ids->v + first, c->n * sizeof(*c->id));
	}
}

/* ---- text to pieces ---- */

/* `s` is valid UTF-8, already normalized. */
static bool split_encode(struct qwen_encoder *x, const char *s, size_t len,
			 struct qwen_ids *ids, struct err *e)
{
	const PCRE2_SIZE *range = pcre2_get_ovector_pointer(x->match);

	for (size_t at = 0; at < len; at = range[1]) {
		if (x->stop && *x->stop)
			return err_set(e, ERR_STOPPED, "at byte %zu of %zu of "
				       "a text", at, len);
		int n = pcre2_match(x->t->split, (PCRE2_SPTR)s, len, at,
				    PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED,
				    x->match, x->context);
		if (n < 1)
			return err_set(e, ERR_NOMEM, "splitting the text at "
				       "byte %zu failed (pcre2 error %d); "
				       "shorter runs of one kind of character "
				       "would do", at, n);
		piece_encode(x, s + range[0], range[1] - range[0], ids);
	}
	return true;
}

static bool is_ascii(const char *s, size_t len)
{
	unsigned char all = 0;

	for (size_t i = 0; i < len; i++)
		all |= (unsigned char)s[i];
	return all < 0x80;
}

/* `s` is valid UTF-8. */
static bool valid_encode(struct qwen_encoder *x, const char *s, size_t len,
			 unsigned flags, struct qwen_ids *ids, struct err *e)
{
	struct buf nfc = { 0 };

	if ((flags & QWEN_NO_NFC) || is_ascii(s, len))
		return split_encode(x, s, len, ids, e);
	qwen_nfc(s, len, &nfc);
	bool ok = split_encode(x, nfc.data, nfc.len, ids, e);
	buf_fini(&nfc);
	return ok;
}

void qwen_encoder_stop(struct qwen_encoder *x, const _Atomic int *stop)
{
	x->stop = stop;
}

/* Bytes at the start of `s` that are valid UTF-8. */
static size_t valid_length(const char *s, size_t len)
{
	size_t at = 0;

	while (at < len) {
		utf8proc_int32_t c;
		utf8proc_ssize_t n = utf8proc_iterate(
			(const utf8proc_uint8_t *)s + at,
			(utf8proc_ssize_t)(len - at), &c);
		if (n < 1)
			break;
		at += (size_t)n;
	}
	return at;
}

static size_t invalid_length(const char *s, size_t len)
{
	size_t at = 1;

	while (at < len &&
	       valid_length(s + at, len - at < 4 ? len - at : 4) == 0)
		at++;
	return at;
}

static bool text_encode(struct qwen_encoder *x, const char *s, size_t len,
			unsigned flags, struct qwen_ids *ids, struct err *e)
{
	while (len) {
		size_t n = valid_length(s, len);
		if (n && !valid_encode(x, s, n, flags, ids, e))
			return false;
		s += n;
		len -= n;
		if (!len)
			break;
		n = invalid_length(s, len);
		piece_encode(x, s, n, ids);
		s += n;
		len -= n;
	}
	return true;
}

/* The added token that `s` begins with, the longest; NO_TOKEN if none. */
static uint32_t added_at(const struct qwen_tokenizer *t, const char *s,
			 size_t len)
{
	for (uint32_t i = 0; i < t->n_added; i++) {
		const struct token *a = &t->token[t->added[i]];
		if (a->len <= len && memcmp(a->bytes, s, a->len) == 0)
			return t->added[i];
	}
	return NO_TOKEN;
}

bool qwen_encode(struct qwen_encoder *x, const char *text, size_t len_bytes,
		 unsigned flags, struct qwen_ids *ids, struct err *e)
{
	size_t from = 0;

	if (len_bytes > MAX_TEXT_BYTES)
		return err_set(e, ERR_INPUT, "a text of %zu bytes; at most %u "
			       "can be encoded at once", len_bytes,
			       MAX_TEXT_BYTES);
	for (size_t at = 0; at < len_bytes && !(flags & QWEN_PLAIN); at++) {
		uint32_t id =
			x->t->added_first[(unsigned char)text[at]] ?
				added_at(x->t, text + at, len_bytes - at) :
				NO_TOKEN;
		if (id == NO_TOKEN)
			continue;
		if (!text_encode(x, text + from, at - from, flags, ids, e))
			return false;
		qwen_ids_add(ids, id);
		from = at + x->t->token[id].len;
		at = from - 1;
	}
	return text_encode(x, text + from, len_bytes - from, flags, ids, e);
}
