/*
 * engine/corpus - text to learn from, as tokens in rows: the manual.
 *
 * What is read:
 *
 *	folder	every regular file of it, in the order of names
 *	.bin	tokens as llm.c writes them (a header of 256 int32, then uint16
 *		or uint32) or as nanoGPT does (uint16 alone)
 *	.jsonl	an object a line: {"text": ...}, or {"messages": [...]} as
 *		conversations are, of which only the assistant's turns are
 *		learnt
 *	others	a text, one document
 *
 * Documents follow each other in one stream of tokens, each ended by the
 * corpus's `end` token.  Rows are cut out of the stream.  A token sees what
 * stands before it in its row and document, and learns the next one; what comes
 * after the end of a document is nobody's to know.
 */
#ifndef T0_ENGINE_CORPUS_H
#define T0_ENGINE_CORPUS_H

#include "engine/text/text.h"

/* ---------------------------------------------------------- corpus.c ---- */

struct corpus {
	uint32_t *token;
	size_t n, cap;
	uint8_t *skipped; /* [n]: tokens that nobody learns; NULL: none */
	uint32_t end;	  /* the token behind a document */
	uint64_t hash;	  /* of all tokens */
	const _Atomic int *stop; /* ends corpus_add(); NULL: nothing does */
};

/*
 * Adds what lies at `path`, in the tokens of `t`; without a tokenizer only
 * shards can be read.  Tokens from `vocab` on are ERR_INPUT.  `c` begins as
 * zeros, with `end` and `stop`; the caller ends with corpus_fini(), also after a
 * failure.
 */
bool corpus_add(struct corpus *c, const char *path,
		const struct qwen_tokenizer *t, uint32_t vocab, struct err *e);
void corpus_fini(struct corpus *c);
/* The texts of a path, one after the other: to train a tokenizer on. */
bool corpus_text(const char *path, size_t most_bytes, struct buf *out,
		 struct err *e);

/* ------------------------------------------------------------ rows.c ---- */

#define CORPUS_IGNORE UINT32_MAX /* a target that is none */

/*
 * Rows of `length` tokens out of tokens [from, to).  With `shuffle` each epoch
 * begins at another token and has its rows in another order; both depend on
 * seed and epoch alone.  Without, rows come in order and the last one may be
 * filled up with tokens that nobody learns.
 */
struct corpus_rows {
	const struct corpus *c;
	size_t from, to;
	uint32_t length;
	bool shuffle;
	uint64_t seed;
	size_t n; /* rows of an epoch */
	/* of the epoch at hand */
	uint64_t epoch;
	size_t shift;
	uint32_t *order; /* [n]; NULL: none yet */
};

/* ERR_INPUT: there are less than two tokens. */
bool corpus_rows_init(struct corpus_rows *r, const struct corpus *c,
		      size_t from, size_t to, uint32_t length, bool shuffle,
		      uint64_t seed, struct err *e);
void corpus_rows_fini(struct corpus_rows *r);
/*
 * Row `row`, counted through all epochs: ids, positions and targets
 * [length].  Returns how many targets there are.
 */
uint32_t corpus_row(struct corpus_rows *r, uint64_t row, uint32_t *id,
		    uint32_t *position, uint32_t *target);

#endif
