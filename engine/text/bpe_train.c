/*
 * engine/text/bpe_train.c - a byte-pair encoding trained on text.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text_int.h"

/* Special tokens of every tokenizer that is learnt, in Qwen's order. */
static const char *const added[] = {
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>",
	"</tool_call>", "<tool_response>", "</tool_response>", "<think>",
	"</think>",
};
#define FIRST_UNSPECIAL 3 /* from here on they are text, not marks */
#define MAX_WORD 32
#define MAX_WORDS 20000
#define PLACES	  65536 /* of words by their hash; more than twice as many */

struct word {
	uint32_t id[MAX_WORD];
	uint32_t n, count;
};

struct learner {
	struct word *word;
	uint32_t *place; /* [PLACES]: one more than a word's number */
	uint32_t n_words, n_tokens;
	char **letters; /* [n_tokens]: a token as the files write it */
	uint32_t *pairs; /* counts [cap][cap] */
	uint32_t cap;
};

/* A word: letters with the space before them, as the split has it. */
static size_t word_length(const char *s, size_t len)
{
	size_t n = len > 1 && *s == ' ' && isalpha((unsigned char)s[1]);

	while (n < len && isalpha((unsigned char)s[n]))
		n++;
	return n ? n : 1;
}

static void word_add(struct learner *l, const char *s, size_t len)
{
	struct word w = { .n = (uint32_t)len, .count = 1 };
	uint32_t at = 0;

	if (len < 2 || len > MAX_WORD)
		return;
	for (size_t i = 0; i < len; i++) {
		w.id[i] = (unsigned char)s[i];
		at = (at ^ w.id[i]) * 0x01000193;
	}
	for (at ^= at >> 16; l->place[at % PLACES]; at++) {
		struct word *other = &l->word[l->place[at % PLACES] - 1];
		if (other->n == w.n &&
		    memcmp(other->id, w.id, sizeof(w.id)) == 0) {
			other->count++;
			return;
		}
	}
	if (l->n_words < MAX_WORDS) {
		l->word[l->n_words++] = w;
		l->place[at % PLACES] = l->n_words;
	}
}

/* The pair that stands in the text most often; the first of equals. */
static bool best_pair(struct learner *l, uint32_t *left, uint32_t *right)
{
	uint32_t most = 1;

	memset(l->pairs, 0, (size_t)l->cap * l->cap * sizeof(*l->pairs));
	for (uint32_t i = 0; i < l->n_words; i++)
		for (uint32_t k = 0; k + 1 < l->word[i].n; k++)
			l->pairs[(size_t)l->word[i].id[k] * l->cap +
				 l->word[i].id[k + 1]] += l->word[i].count;
	for (size_t i = 0; i < (size_t)l->cap * l->cap; i++)
		if (l->pairs[i] > most) {
			most = l->pairs[i];
			*left = (uint32_t)(i / l->cap);
			*right = (uint32_t)(i % l->cap);
		}
	return most > 1;
}

static void word_merge(struct word *w, uint32_t left, uint32_t right,
		       uint32_t into)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		bool both = i + 1 < w->n && w->id[i] == left &&
			    w->id[i + 1] == right;
		w->id[n++] = both ? into : w->id[i];
		i += both;
	}
	w->n = n;
}

static void learn_merges(struct learner *l, json_t *merges)
{
	uint32_t left, right;

	while (l->n_tokens < l->cap && best_pair(l, &left, &right)) {
		struct buf b = { 0 };
		buf_printf(&b, "%s%s", l->letters[left], l->letters[right]);
		json_array_append_new(merges,
				      json_sprintf("%s %s", l->letters[left],
						   l->letters[right]));
		for (uint32_t i = 0; i < l->n_words; i++)
			word_merge(&l->word[i], left, right, l->n_tokens);
		l->letters[l->n_tokens++] = b.data;
	}
}

static json_t *added_json(uint32_t first)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < ARRAY_SIZE(added); i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:b}", "id",
			(int)(first + i), "content", added[i], "special",
			i < FIRST_UNSPECIAL));
	return list;
}

bool qwen_bpe_train(const char *text, size_t len_bytes, uint32_t vocab,
		    struct buf *out, struct err *e)
{
	struct learner l = { .n_tokens = 256 };
	json_t *merges, *ids, *all;
	char letter[256][3];

	if (vocab < 256 + ARRAY_SIZE(added) || vocab > QWEN_BPE_VOCAB_MAX)
		return err_set(e, ERR_USAGE, "a vocabulary of %u tokens; "
			       "wanted %zu to %d, or a folder with a "
			       "tokenizer", vocab, 256 + ARRAY_SIZE(added),
			       QWEN_BPE_VOCAB_MAX);
	l.cap = vocab - (uint32_t)ARRAY_SIZE(added);
	l.word = xcalloc(MAX_WORDS, sizeof(*l.word));
	l.place = xcalloc(PLACES, sizeof(*l.place));
	l.letters = xcalloc(l.cap, sizeof(*l.letters));
	l.pairs = xcalloc((size_t)l.cap * l.cap, sizeof(*l.pairs));
	qwen_letters(letter);
	for (unsigned b = 0; b < 256; b++)
		l.letters[b] = xstrdup(letter[b]);
	for (size_t i = 0, n; i < len_bytes; i += n) {
		n = word_length(text + i, len_bytes - i);
		word_add(&l, text + i, n);
	}
	merges = json_array();
	ids = json_object();
	learn_merges(&l, merges);
	for (uint32_t i = 0; i < l.n_tokens; i++) {
		json_object_set_new(ids, l.letters[i], json_integer(i));
		free(l.letters[i]);
	}
	all = json_pack("{s:s, s:o, s:{s:s, s:o, s:o}}", "version", "1.0",
			"added_tokens", added_json(l.cap), "model", "type",
			"BPE", "vocab", ids, "merges", merges);
	char *s = json_dumps(all, JSON_COMPACT);
	buf_adds(out, s);
	free(s);
	json_decref(all);
	free(l.word);
	free(l.place);
	free(l.letters);
	free(l.pairs);
	return true;
}
