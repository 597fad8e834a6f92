/*
 * engine/cmd/serve/cmd_serve_http.c - requests of t0-qwen3 serve, in OpenAI's
 * form.
 *
 * A thread for each connection reads a request, gives the loop a job and waits
 * for its texts; a client that has gone cancels it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/serve/cmd_serve_http.h"

/* A request so far. */
struct call {
	struct server *s;
	struct buf body;
	uint64_t length; /* that has come; of a large one nothing is kept */
	bool large, answered; /* of server.answers */
	struct job *job;
};

enum {
	IDLE_S = 30, /* a connection on which nothing moves */
	ENDLESS = 64 /* times --max-body: hung up on */
};

/*
 * Waiting for the loop is no idleness, but MHD looks at the clock behind its
 * handlers: 0 seconds, no limit, while they wait; IDLE_S begin then anew.
 */
static void limit_idle(struct MHD_Connection *con, unsigned seconds)
{
	MHD_set_connection_option(con, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

/* ---- answers ---- */

static enum MHD_Result send_text(struct MHD_Connection *con, unsigned status,
				 const char *type, char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result done;

	MHD_add_response_header(r, "Content-Type", type);
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
	done = MHD_queue_response(con, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result send_json(struct MHD_Connection *con, unsigned status,
				 json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);

	json_decref(j);
	return send_text(con, status, "application/json", text);
}

static enum MHD_Result send_error(struct MHD_Connection *con, unsigned status,
				  const char *message, const char *param)
{
	return send_json(con, status, serve_error_json(status, message, param));
}

/* ---- streams ---- */

/* State of a stream: what has been made of it and not yet gone out. */
struct stream {
	struct MHD_Connection *con;
	struct call *call;
	struct buf out;
	size_t at;
};

static ssize_t stream_read(void *ctx, uint64_t pos, char *to, size_t max)
{
	struct stream *st = ctx;
	struct job *j = st->call->job;
	struct server *s = j->s;

	(void)pos;
	if (st->at == st->out.len && j->end_told)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (st->at == st->out.len) {
		buf_reset(&st->out);
		st->at = 0;
		limit_idle(st->con, 0);
		pthread_mutex_lock(&s->lock);
		while (serve_put_news(j, &st->out), !st->out.len)
			pthread_cond_wait(&s->told, &s->lock);
		pthread_mutex_unlock(&s->lock);
		limit_idle(st->con, IDLE_S);
	}
	if (max > st->out.len - st->at)
		max = st->out.len - st->at;
	memcpy(to, st->out.data + st->at, max);
	st->at += max;
	return (ssize_t)max;
}

static void stream_free(void *ctx)
{
	struct stream *st = ctx;

	buf_fini(&st->out);
	free(st);
}

static enum MHD_Result send_stream(struct MHD_Connection *con,
				   struct call *call)
{
	struct stream *st = xcalloc(1, sizeof(*st));
	struct MHD_Response *r;
	enum MHD_Result done;

	st->con = con;
	st->call = call;
	serve_put_start(call->job, &st->out);
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096,
					      stream_read, st, stream_free);
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	done = MHD_queue_response(con, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}

/* ---- requests ---- */

static bool has_left(struct MHD_Connection *con)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = { .fd = i->connect_fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 &&
	       p.revents & (POLLHUP | POLLERR | POLLRDHUP);
}

static enum MHD_Result send_whole(struct MHD_Connection *con, struct job *j)
{
	struct server *s = j->s;
	struct timespec until;

	limit_idle(con, 0);
	pthread_mutex_lock(&s->lock);
	while (j->known) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&s->told, &s->lock, &until);
		j->cancelled = j->cancelled || has_left(con);
	}
	pthread_mutex_unlock(&s->lock);
	limit_idle(con, IDLE_S);
	if (j->broken)
		return send_error(con, j->status, j->broken, NULL);
	return send_json(con, 200, serve_answer_json(j));
}

static enum MHD_Result answer_post(struct MHD_Connection *con,
				   struct call *call, enum serve_kind kind)
{
	const char *param = NULL;
	struct err e = { 0 };

	if (call->large)
		return send_error(con, 413, "the body is too long (--max-body)",
				  NULL);
	call->job = serve_job_new(call->s, kind, &call->body, &param, &e);
	if (!call->job)
		return send_error(con, 400, e.msg, param);
	if (!serve_submit(call->s, call->job))
		return send_error(con, call->s->closing ? 503 : 429,
				  "the queue is full, or the server ends; try "
				  "again later",
				  NULL);
	return call->job->stream ? send_stream(con, call) :
				   send_whole(con, call->job);
}

static enum MHD_Result send_metrics(struct MHD_Connection *con,
				    struct server *s)
{
	const struct mallinfo2 heap = mallinfo2();
	struct buf b = { 0 };

	pthread_mutex_lock(&s->lock);
	const struct {
		const char *name, *type;
		uint64_t v;
	} row[] = {
		{ "requests_total", "counter", s->requests },
		{ "requests_finished_total", "counter", s->finished },
		{ "requests_cancelled_total", "counter", s->cancelled },
		{ "requests_refused_total", "counter", s->refused },
		{ "prompt_tokens_total", "counter", s->counts.prompt_tokens },
		{ "found_tokens_total", "counter", s->counts.found_tokens },
		{ "tokens_total", "counter", s->counts.tokens },
		{ "proposed_tokens_total", "counter", s->counts.proposed },
		{ "accepted_tokens_total", "counter", s->counts.right },
		{ "preemptions_total", "counter", s->counts.preempted },
		{ "texts_running", "gauge", s->counts.running },
		{ "texts_waiting", "gauge", s->counts.waiting },
		{ "cache_blocks_left", "gauge", s->counts.blocks_left },
		{ "heap_bytes", "gauge", heap.uordblks + heap.hblkhd },
	};
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		buf_printf(&b, "# TYPE t0_%s %s\nt0_%s %llu\n", row[i].name,
			   row[i].type, row[i].name,
			   (unsigned long long)row[i].v);
	return send_text(con, 200, "text/plain; version=0.0.4", b.data);
}

/* Does the request have the key?  Takes as long for every wrong one. */
static bool has_key(struct MHD_Connection *con, const struct server *s)
{
	const char *got = MHD_lookup_connection_value(con, MHD_HEADER_KIND,
						      "Authorization");
	size_t n = s->key ? strlen(s->key) : 0;
	unsigned char differs = 0;

	if (!s->key)
		return true;
	if (!got || strncmp(got, "Bearer ", 7) != 0 || strlen(got + 7) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(got[7 + i] ^ s->key[i]);
	return !differs;
}

static enum MHD_Result answer_request(struct MHD_Connection *con,
				      struct call *call, const char *url,
				      const char *method)
{
	struct server *s = call->s;
	static const char *const path[] = {
		[SERVE_COMPLETION] = "/v1/completions",
		[SERVE_CHAT] = "/v1/chat/completions",
		[SERVE_EMBEDDING] = "/v1/embeddings",
	};
	enum serve_kind kind = 0;

	if (!strcmp(url, "/health"))
		return send_json(con, s->closing ? 503 : 200,
				 json_pack("{s:s}", "status",
					   s->closing ? "ends" : "ok"));
	if (!strcmp(url, "/") && strcmp(method, "POST") != 0)
		return serve_send_page(con);
	if (!has_key(con, s))
		return send_error(con, 401,
				  "wanted the server's key as "
				  "Authorization: Bearer KEY",
				  NULL);
	if (!strcmp(url, "/metrics"))
		return send_metrics(con, s);
	if (!strcmp(url, "/v1/models"))
		return send_json(con, 200,
				 json_pack("{s:s,s:[{s:o,s:s,s:i,s:s}]}",
					   "object", "list", "data", "id",
					   serve_name_json(s), "object",
					   "model", "created", 0, "owned_by",
					   "t0"));
	while (kind < ARRAY_SIZE(path) && strcmp(url, path[kind]))
		kind++;
	if (kind == ARRAY_SIZE(path))
		return send_error(con, 404, "there is no such path", NULL);
	if (strcmp(method, "POST"))
		return send_error(con, 405, "wanted POST", NULL);
	return answer_post(con, call, kind);
}

/* An answer begins, or the call of one ends. */
static void count_answer(struct MHD_Connection *con, struct call *call,
			 bool begins)
{
	pthread_mutex_lock(&call->s->lock);
	serve_limit_peer(call->s, con, begins);
	call->s->answers += begins;
	call->s->answers -= !begins && call->answered;
	call->answered = begins;
	pthread_cond_broadcast(&call->s->told);
	pthread_mutex_unlock(&call->s->lock);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *con,
				  const char *url, const char *method,
				  const char *version, const char *data,
				  size_t *size, void **state)
{
	struct call *call = *state;

	(void)version;
	if (!call) {
		call = *state = xcalloc(1, sizeof(*call));
		call->s = ctx;
		return MHD_YES;
	}
	if (!*size) {
		count_answer(con, call, true);
		return answer_request(con, call, url, method);
	}
	call->length += *size;
	call->large = call->length > call->s->c->max_body;
	/* Who sends this much may not want to hear that it is too much. */
	if (call->length / ENDLESS > call->s->c->max_body)
		return MHD_NO;
	if (!call->large)
		buf_add(&call->body, data, *size);
	*size = 0;
	return MHD_YES;
}

static void on_end(void *ctx, struct MHD_Connection *con, void **state,
		   enum MHD_RequestTerminationCode why)
{
	struct call *call = *state;

	(void)ctx;
	(void)why;
	if (!call)
		return;
	if (call->job)
		serve_leave(call->s, call->job);
	count_answer(con, call, false);
	serve_job_free(call->job);
	buf_fini(&call->body);
	free(call);
}

struct MHD_Daemon *serve_listen(struct server *s, uint16_t *port, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(*port) };
	struct MHD_Daemon *d;

	if (inet_pton(AF_INET, s->c->bind, &at.sin_addr) != 1) {
		err_set(e, ERR_USAGE,
			"--bind %s: wanted an address as "
			"127.0.0.1",
			s->c->bind);
		return NULL;
	}
	d = MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION |
			MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
		*port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &at,
		MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, serve_meet_peer, s,
		MHD_OPTION_CONNECTION_LIMIT, 1024u,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_END);
	if (d)
		*port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
	else
		err_sys(e, ERR_IO, errno, "cannot listen at %s, port %u",
			s->c->bind, *port);
	return d;
}

void serve_close(struct server *s, struct MHD_Daemon *d, unsigned wait_s)
{
	int listener = MHD_quiesce_daemon(d);
	struct timespec until;

	if (listener >= 0)
		close(listener);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += wait_s;
	pthread_mutex_lock(&s->lock);
	while (s->answers &&
	       !pthread_cond_timedwait(&s->told, &s->lock, &until))
		;
	pthread_mutex_unlock(&s->lock);
	MHD_stop_daemon(d); /* closes what is open */
}
