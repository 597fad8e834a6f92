/*
 * engine/cmd/serve/cmd_serve_ask.h - a request that is being read:
 * cmd_serve_ask.c, its messages and tools (cmd_serve_messages.c).
 */
#ifndef T0_ENGINE_CMD_SERVE_ASK_H
#define T0_ENGINE_CMD_SERVE_ASK_H

#include "engine/cmd/serve/cmd_serve_http.h"

struct reader {
	struct job *j;
	json_t *body;
	const char *param; /* what is wrong, or NULL */
	struct err *e;
};

/* The value of a parameter that is given; null is not. */
json_t *serve_get_given(const struct reader *r, const char *name);
/* Refuses a parameter: what it is, and what was wanted.  Returns false. */
bool serve_refuse(struct reader *r, const char *name, const char *wanted);

/*
 * The conversation as the model is to see it, tools included, and what of the
 * tools its answer may be.
 */
bool serve_read_chat(struct reader *r, struct buf *text);

#endif
