/*
 * tokenizer - Qwen's byte-level byte-pair encoding.
 *
 * Text becomes tokens in four steps, as the published tokenizer does it:
 * 1. added tokens (<|im_start|> ...) are cut out, the longest at each place;
 * 2. what is between is brought to Unicode form NFC;
 * 3. a regular expression splits it into words, numbers, punctuation, spaces;
 * 4. in each piece, neighbouring tokens are merged, lowest rank first.
 * Every byte is a token, so nothing is unknown.  Bytes that are not UTF-8 are
 * pieces of their own and come back unchanged: decoding what was encoded gives
 * the NFC form of the text, byte for byte.
 *
 * Files: tokenizer.json; or vocab.json, merges.txt and, where they are there,
 * the "added_tokens_decoder" of tokenizer_config.json or added_tokens.json.
 * They are not trusted: what is damaged is refused with file and place.
 *
 * Threads may share a tokenizer; each encoder and each decoder (both cheap)
 * belongs to one.
 */
#ifndef T0_ENGINE_TOKENIZER_H
#define T0_ENGINE_TOKENIZER_H

#include "base/base.h"

struct qwen_tokenizer;

/* Growing token ids. */
struct qwen_ids {
	uint32_t *v;
	size_t n, cap;
};
void qwen_ids_add(struct qwen_ids *ids, uint32_t id);
void qwen_ids_fini(struct qwen_ids *ids);

/* ----------------------------------------------------- tokenizer.c ---- */

/* From a model's folder. */
struct qwen_tokenizer *qwen_tokenizer_load(const char *dir, struct err *e);
/*
 * From text, as the files hold it: either `json` (tokenizer.json), or `vocab`,
 * `merges` and optionally `added` (a list of {"id", "content", "special"}, or
 * an object of content to id).
 */
struct qwen_source {
	const char *json, *vocab, *merges, *added;
	const char *config; /* tokenizer_config.json, instead of `added` */
};
struct qwen_tokenizer *qwen_tokenizer_parse(const struct qwen_source *s,
					    struct err *e);
void qwen_tokenizer_free(struct qwen_tokenizer *t);

/* One more than the largest id. */
uint32_t qwen_tokenizer_size(const struct qwen_tokenizer *t);
/* The id of an added token by its content, or -1. */
int64_t qwen_token_find(const struct qwen_tokenizer *t, const char *content);
/* Its bytes; NULL for an id that is not given out.  *special may be NULL. */
const char *qwen_token_bytes(const struct qwen_tokenizer *t, uint32_t id,
			     size_t *len_bytes, bool *special);

/* ----------------------------------------------------------- bpe.c ---- */

enum {
	QWEN_PLAIN = 1 << 0, /* added tokens in the text are text */
	QWEN_NO_NFC = 1 << 1,
};

struct qwen_encoder;
struct qwen_encoder *qwen_encoder_new(const struct qwen_tokenizer *t);
void qwen_encoder_free(struct qwen_encoder *x);
/* Appends the tokens of `text` (any bytes) to `ids`. */
bool qwen_encode(struct qwen_encoder *x, const char *text, size_t len_bytes,
		 unsigned flags, struct qwen_ids *ids, struct err *e);

/* -------------------------------------------------------- decode.c ---- */

/* Bytes of a character that is not complete yet.  Zero-initialise. */
struct qwen_decoder {
	char held[4];
	unsigned n_held;
	bool skip_special; /* leave special tokens out */
};
/*
 * Appends the text of one more token; the start of a character whose end has
 * not come is held back.  Ids that do not exist give nothing.
 */
void qwen_decode(struct qwen_decoder *d, const struct qwen_tokenizer *t,
		 uint32_t id, struct buf *out);
/* Appends what is still held. */
void qwen_decode_end(struct qwen_decoder *d, struct buf *out);

#endif
