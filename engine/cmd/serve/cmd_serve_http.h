/*
 * engine/cmd/serve/cmd_serve_http.h - OpenAI's form of what t0-qwen3 serve is
 * asked for (cmd_serve_ask.c) and of what it says (cmd_serve_answer.c), for who
 * has the connections (cmd_serve_http.c).
 */
#ifndef T0_ENGINE_CMD_SERVE_HTTP_H
#define T0_ENGINE_CMD_SERVE_HTTP_H

#include <jansson.h>

#include "engine/cmd/serve/cmd_serve.h"

/*
 * A request's job.  NULL: it is refused, for what `e` says and, unless it is
 * NULL, for the parameter that *param names.
 */
struct job *serve_job_new(struct server *s, enum serve_kind kind,
			  const struct buf *body, const char **param,
			  struct err *e);
void serve_job_free(struct job *j); /* NULL: nothing */

/* Where in a choice's text the calls of tools are, and what is before them. */
struct calls {
	size_t text; /* that certainly is no call */
	uint32_t n;
	struct call_text {
		size_t name, name_len, args, args_len; /* so far */
	} v[MOST_CALLS];
};
void serve_find_calls(const struct choice *c, struct calls *out);

/* `param` may be NULL. */
json_t *serve_error_json(unsigned status, const char *message,
			 const char *param);
/* What the server's model is called. */
json_t *serve_name_json(const struct server *s);
/* The answer, where the loop does not speak of the job any more. */
json_t *serve_answer_json(const struct job *j);
/* Of a stream, as events: its beginning, and what is new of its job. */
void serve_put_start(const struct job *j, struct buf *out);
void serve_put_news(struct job *j, struct buf *out);

/* ------------------------------------------------- cmd_serve_peers.c ---- */

/* MHD's: a connection is there, or is about to be closed. */
void serve_meet_peer(void *ctx, struct MHD_Connection *con, void **at,
		     enum MHD_ConnectionNotificationCode what);
/*
 * Under the server's lock: a request has come whole (`heard`), and its answer
 * must be gone by --timeout and --receive; or the next one must come.
 */
void serve_limit_peer(struct server *s, struct MHD_Connection *con, bool heard);

#endif
