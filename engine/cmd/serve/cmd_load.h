/*
 * engine/cmd/serve/cmd_load.h - what the parts of t0-qwen3 load share.
 *
 * All times are in seconds behind the begin of a run of requests.
 */
#ifndef T0_ENGINE_CMD_LOAD_H
#define T0_ENGINE_CMD_LOAD_H

#include "engine/cmd/cmd.h"

/* What became of a request. */
enum load_end {
	LOAD_ANSWERED,
	LOAD_UNREACHED, /* no connection */
	LOAD_TIMEOUT,	/* none within --timeout */
	LOAD_BUSY,	/* status 429 or 503 */
	LOAD_STATUS,	/* another one than 200 */
	LOAD_CUT,	/* the connection ended before the answer did */
	LOAD_MALFORMED, /* what came is no stream of events */
	LOAD_TOLD,	/* the stream has an error in it */
	LOAD_EMPTY,	/* an answer without any text */
	LOAD_ENDS
};
const char *load_end_name(enum load_end end);

struct load_request {
	double at;	 /* when it is due, however late others are */
	char *prompt;	 /* UTF-8 */
	uint32_t tokens; /* asked for, at most */
	uint64_t seed;
	/* What came of it; NAN: did not happen. */
	double sent, first, last; /* of the text, the last: of all */
	struct {
		double *v;
		size_t n, cap;
	} gaps;	      /* between pieces of text */
	uint32_t got; /* tokens: what the server says, else pieces */
	bool counted; /* by the server */
	bool length;  /* it ended because of `tokens` */
	struct buf text;
	enum load_end end;
	char why[160]; /* of an error, for people */
};

/* One run: requests in the order of `at`. */
struct load_run {
	struct load_request *v;
	size_t n;
};
void load_run_free(struct load_run *r);

/* -------------------------------------------------- cmd_load_plan.c ---- */

struct load_plan {
	const char *text; /* of every prompt; NULL: words by chance */
	uint64_t words;
	uint32_t tokens;
	uint64_t requests;
	uint64_t seed;	     /* of times, */
	uint64_t words_seed; /* and of what is asked */
};
/* Requests that come as a Poisson process of `rate` a second. */
void load_plan_chance(struct load_run *out, const struct load_plan *p,
		      double rate);
/*
 * Those of a file: lines of JSON as published traces have them, {"timestamp":
 * milliseconds, "input_length", "output_length"}, or with a "prompt".
 */
bool load_plan_trace(struct load_run *out, const struct load_plan *p,
		     const char *path, struct err *e);

/* -------------------------------------------------- cmd_load_http.c ---- */

struct load_client;
/* Asks for the server's model where --model names none. */
struct load_client *load_client_new(const struct qwen_cmd *c, struct err *e);
void load_client_free(struct load_client *l);
const char *load_client_model(const struct load_client *l);
/* All requests when they are due; returns when the last has ended. */
bool load_client_run(struct load_client *l, struct load_run *r, struct err *e);

/* -------------------------------------------------- cmd_load_sum.c ---- */

enum load_metric {
	LOAD_THROUGHPUT, /* tokens of answers a second */
	LOAD_ANSWERS,	 /* a second */
	LOAD_GOODPUT,	 /* answers within the limits, a second */
	LOAD_FIRST_50,
	LOAD_FIRST_90,
	LOAD_FIRST_99,
	LOAD_TOKEN_50,
	LOAD_TOKEN_90,
	LOAD_TOKEN_99,
	LOAD_ANSWER_50, /* all of an answer */
	LOAD_ANSWER_99,
	LOAD_LATE_99, /* the client itself */
	LOAD_METRICS
};
struct load_sum {
	double v[LOAD_METRICS]; /* NAN: nothing to say it of */
	uint32_t ends[LOAD_ENDS];
	uint32_t wrong; /* answers whose counts do not fit what was asked */
};
/*
 * Limits in seconds: of the first token, and of the mean time of each that
 * follows.  What comes before is counted from when a request was due.
 */
void load_sum_up(struct load_sum *s, const struct load_run *r,
		 double within_first, double within_token);

/* -------------------------------------------------- cmd_load_store.c ---- */

/* A rate, or a trace, and what its runs came to. */
struct load_case {
	double rate; /* NAN: of a trace */
	uint64_t requests;
	const struct load_sum *sum; /* [n] */
	size_t n;
	uint32_t judged; /* texts, for coherence, */
	uint32_t broken; /* and how many are not */
};
struct load_store;
/* Opens the database; `prompts`: the hash of all that is sent. */
struct load_store *load_store_open(const struct qwen_cmd *c, const char *model,
				   uint64_t prompts, struct err *e);
bool load_store_case(struct load_store *s, const struct load_case *k,
		     struct err *e);
/* Ends the run, as complete if `ok`. */
bool load_store_close(struct load_store *s, bool ok, struct err *e);

#endif
