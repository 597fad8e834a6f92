/*
 * asks - requests for texts with what is right for them: what a single run of
 * t0-qwen3 generate writes, without special tokens and cut before a stop
 * string.
 */
#ifndef T0_TESTS_REF_ASKS_H
#define T0_TESTS_REF_ASKS_H

#include "tests/ref/web.h"

enum { ASKS = 18, MOST_TEXTS = 3 };

struct ask {
	char prompt[512], stop[8];
	bool chat;
	unsigned tokens, n, seed;
	double temperature;
	char *text[MOST_TEXTS]; /* of a single run, cut before `stop` */
	const char *finish[MOST_TEXTS];
};

/* With the model folder/model, prompts in pieces of `chunk` tokens. */
void asks_make(struct ask asks[ASKS], const char *folder, unsigned chunk);
void asks_free(struct ask asks[ASKS]);
/* Appends the request. */
void ask_put(struct buf *out, const struct ask *a, bool stream);
/* Is the reply right?  If not, why. */
bool ask_check(const struct ask *a, const struct web_reply *r, char *why,
	       size_t size);

/* Texts that a reply has, whole or as events, and how they end. */
struct texts {
	struct buf text[MOST_TEXTS];
	char finish[MOST_TEXTS][16];
	bool done, told_error;
};

/* False: the reply is not what OpenAI's clients expect. */
bool texts_take(struct texts *t, const struct web_reply *r);
void texts_fini(struct texts *t);

#endif
