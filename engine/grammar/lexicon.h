/*
 * engine/grammar/lexicon.h - a lexicon, for the matcher.
 */
#ifndef T0_ENGINE_GRAMMAR_LEXICON_H
#define T0_ENGINE_GRAMMAR_LEXICON_H

#include "engine/grammar/grammar.h"

struct lexeme {
	const char *bytes; /* [len], the tokenizer's */
	uint32_t len, id;
	uint32_t shared; /* bytes that the one before begins with, too */
};

struct qwen_lexicon {
	struct lexeme *lexeme; /* [n], by their bytes */
	uint32_t n, longest;
	uint32_t *place; /* [size]: one more than where an id's is; 0: none */
	uint32_t size;
};

#endif
