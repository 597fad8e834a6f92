/*
 * web - t0-qwen3 serve as a test's child, and a client that sees every byte:
 * it may send halves, read slowly and leave at any time, as no library lets it.
 */
#ifndef T0_TESTS_REF_WEB_H
#define T0_TESTS_REF_WEB_H

#include <sys/types.h>

#include "base/base.h"

/* ---- the server ---- */

struct web_server {
	pid_t pid;
	uint16_t port;
};

/* A file of $T0_BUILD, or of build/rel; valid until the next call. */
const char *web_tool(const char *name);
/*
 * Runs `t0-qwen3 serve` with options (words, one space between) on the port, 0
 * for any; its stderr goes to `log`.  It dies with the test.  Waits until it
 * listens; pid 0: it has ended instead.
 */
struct web_server web_start(const char *options, uint16_t port,
			    const char *log);
/* Sends the signal (0: none), waits for the end: an exit status, or -SIGNAL. */
int web_end(struct web_server *s, int signal);
/* A number of /proc/PID/status ("VmRSS:", "Threads:"); 0: none. */
uint64_t web_status(const struct web_server *s, const char *name);

/* ---- the client ---- */

struct web {
	int fd; /* -1: closed */
	struct buf in;
	size_t at;	 /* of what has come, read so far */
	size_t total;	 /* bytes that have come */
	size_t piece;	 /* bytes that one read takes; 0: many */
	unsigned nap_us; /* before each read */
	size_t give_up;	 /* reads no more after so many bytes; 0: never */
	bool late;	 /* no byte for as long as it waits */
};

struct web_reply {
	int status; /* 0: none has come */
	bool whole; /* up to its end as HTTP has it */
	bool closes;
	char type[64];
	struct buf body; /* without the marks of chunks */
};

/* To 127.0.0.1; `receive` bytes of buffer, 0: as is usual; waits at most
 * `wait_s` for a byte to come. */
bool web_open(struct web *w, uint16_t port, int receive, int wait_s);
/* With `hard`: by a reset, in the middle of whatever goes on. */
void web_close(struct web *w, bool hard);
bool web_send(struct web *w, const void *data, size_t n);
/* A whole request: POST with a body, or GET where it is NULL. */
void web_request(struct buf *out, const char *path, const char *body);
/* The next reply; false: it is not whole. */
bool web_read(struct web *w, struct web_reply *r);
void web_reply_fini(struct web_reply *r);

/* A request on a connection of its own; the reply's body, or NULL. */
char *web_get(uint16_t port, const char *path);
/* A row of /metrics, "texts_running"; UINT64_MAX: none. */
uint64_t web_metric(uint16_t port, const char *name);
/* Nothing runs, waits or is being read any more; false: not within wait_s. */
bool web_idle(const struct web_server *s, int wait_s);

#endif
