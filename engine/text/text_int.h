/*
 * engine/text/text_int.h - what the files of the tokenizer share.
 */
#ifndef T0_ENGINE_TOKENIZER_INT_H
#define T0_ENGINE_TOKENIZER_INT_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "engine/text/text.h"

struct token {
	const char *bytes; /* NULL: this id is not given out */
	uint32_t len;
	bool added, special;
};

/* A pair of tokens that may be merged; an empty slot has into == NO_TOKEN. */
struct merge {
	uint32_t left, right;
	uint32_t rank, into;
};
#define NO_TOKEN UINT32_MAX

struct qwen_tokenizer {
	struct arena mem;
	struct token *token; /* [n_tokens] by id */
	uint32_t n_tokens, cap_tokens; /* zeroed beyond n_tokens */
	uint32_t of_byte[256];
	struct merge *merge; /* hash table, open addressing */
	uint32_t merge_mask;
	uint32_t *added; /* ids, by content length, longest first */
	uint32_t n_added, cap_added;
	bool added_first[256]; /* a byte that an added token begins with */
	pcre2_code *split;
	void *map; /* or NULL: the file that holds bytes and merges */
	size_t map_bytes;
};

/* tokenizer.c: sets t->split. */
bool qwen_split_compile(struct qwen_tokenizer *t, struct err *e);
/*
 * tokenizer_cache.c: qwen_tokenizer_parse(), or what came of it before; of texts
 * that are long.
 */
struct qwen_tokenizer *qwen_tokenizer_get(const struct qwen_source *s,
					  struct err *e);
/* The same of tokenizer.json's text, which gets a zero byte. */
struct qwen_tokenizer *qwen_tokenizer_of_text(struct buf *json, struct err *e);

/* tokenizer.c: the letter (UTF-8) that stands for a byte in the files. */
void qwen_letters(char of[256][3]);
/* gguf.c */
struct qwen_tokenizer *qwen_gguf_tokenizer_load(const char *path,
						struct err *e);
/* hfq.c */
struct qwen_tokenizer *qwen_hfq_tokenizer_load(const char *path, struct err *e);
/* NULL if the pair never merges. */
const struct merge *qwen_merge_find(const struct qwen_tokenizer *t,
				    uint32_t left, uint32_t right);

/* Appends the form NFC of `s`, which is valid UTF-8. */
void qwen_nfc(const char *s, size_t len_bytes, struct buf *out);

#endif
