/*
 * engine/cmd/serve/cmd_serve.h - what the halves of t0-qwen3 serve share:
 * requests (cmd_serve_http.c) and the loop that writes their texts
 * (cmd_serve.c).
 */
#ifndef T0_ENGINE_CMD_SERVE_H
#define T0_ENGINE_CMD_SERVE_H

#include <microhttpd.h>
#include <pthread.h>

#include "base/vec.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/cmd_speculate.h"
#include "engine/serve/serve.h"

enum {
	MOST_STOPS = 4,
	MOST_CHOICES = 16,
	MOST_LIKELY = 20,
	MOST_INPUTS = 256,
	MOST_CALLS = 16
};

enum serve_kind { SERVE_COMPLETION, SERVE_CHAT, SERVE_EMBEDDING };

/* May an answer call tools, must it, and which? */
enum serve_calls { CALLS_NONE, CALLS_MAY, CALLS_MUST, CALLS_ONE };

/* A token of a text, where logarithms of probabilities are wanted. */
struct word {
	struct qwen_likely said;
	size_t from; /* where its bytes begin in the text */
};

/* One of a request's texts. */
struct choice {
	struct job *job;
	struct qwen_detokenizer decoder;
	struct buf text; /* cut before a stop string */
	float *vector;	 /* [hidden], of length 1: an embedding */
	uint32_t tokens;
	VEC(struct word) words;
	VEC(struct qwen_likely) likely; /* job->likely of each of them */
	size_t sent;			/* bytes that a stream has had */
	size_t words_sent;
	uint32_t calls_begun; /* that a stream has had the names of, */
	size_t args_sent;     /* and bytes of the last one's arguments */
	const char *finish;   /* NULL: it goes on */
	bool told;	      /* the stream has its finish */
};

/* A request, its handler's; what changes is under the server's lock. */
struct job {
	struct server *s;
	enum serve_kind kind;
	VEC(struct qwen_ids) prompts;
	struct qwen_sampling how;
	uint32_t most, n;	      /* tokens of a text; texts of a prompt */
	struct qwen_grammar *grammar; /* of the texts, or NULL */
	enum serve_calls calls;
	bool logprobs, base64; /* an embedding's form */
	uint32_t likely;       /* others that each token is told with */
	uint64_t user, deadline_ns;
	char *stop[MOST_STOPS];
	size_t n_stops, longest; /* bytes of the longest one */
	bool stream, usage, usage_told, end_told;
	char id[32];
	struct choice *choice; /* [n_choices], those of a prompt together */
	uint32_t n_choices;
	uint32_t going;	    /* choices without a finish */
	bool cancelled;	    /* by the handler */
	bool known;	    /* the loop may still speak of it */
	const char *broken; /* NULL, or what ended it early, */
	unsigned status;    /* and how HTTP calls that */
	struct err refused; /* by the batch: what `broken` may be */
	struct job *next;   /* of those that are new */
};

struct panel;

struct server {
	struct qwen_cmd *c;
	struct qwen_session session;
	struct qwen_guesses guesses;
	struct qwen_batch *batch;
	char *key; /* NULL: anybody may */
	enum qwen_pool pool;
	bool ends_texts; /* by a token, before they are pooled */
	uint32_t text_end;
	struct qwen_lexicon *lexicon;
	pthread_mutex_t lock;
	pthread_cond_t work, told; /* for the loop; for handlers */
	struct job *fresh;
	struct peer *peers;   /* connections (cmd_serve_peers.c) */
	uint32_t jobs;	      /* that are not over */
	uint32_t answers;     /* that are not sent */
	_Atomic bool closing; /* read by handlers without the lock */
	uint64_t requests, finished, refused, cancelled, dropped;
	struct qwen_batch_counts counts;
	struct panel *panel; /* NULL: none was asked for */
};

/* Queues a job; false: the queue is full, or the server ends. */
bool serve_submit(struct server *s, struct job *j);
/* Waits until the loop does not speak of a job any more. */
void serve_leave(struct server *s, struct job *j);

/* Listens; the port that it got. */
struct MHD_Daemon *serve_listen(struct server *s, uint16_t *port,
				struct err *e);
/*
 * After the last job is over.  Nobody new is heard, and who reads gets the rest
 * of the answer, or up to `wait_s` seconds for it.
 */
void serve_close(struct server *s, struct MHD_Daemon *d, unsigned wait_s);

/* Under the lock: hangs up on connections that have had their time. */
void serve_cut_peers(struct server *s);
/* On a panel: what is served. */
struct serve_shown {
	uint64_t at_ns, tokens; /* when a rate was last taken, and of what */
};
void serve_show(const struct server *s, struct panel *p, struct serve_shown *x);

/* Answers with the chat page (cmd_serve_page.c, page.html). */
enum MHD_Result serve_send_page(struct MHD_Connection *con);

#endif
