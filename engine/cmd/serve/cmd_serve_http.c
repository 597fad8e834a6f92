/*
 * engine/cmd/serve/cmd_serve_http.c - requests of t0-qwen3 serve, in OpenAI's
 * form.
 *
 * A thread for each connection reads a request, gives the loop a job and waits
 * for its texts; a client that has gone cancels it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/cmd/serve/cmd_serve.h"

/* A request so far. */
struct call {
	struct server *s;
	struct buf body;
	bool large, answered; /* of server.answers */
	struct job *job;
};

enum { IDLE_S = 30 }; /* a connection on which nothing moves */

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

/*
 * Bytes that are no character, as models may write them and messages may quote
 * them, become U+FFFD.
 */
static json_t *text_json(const char *text, size_t len)
{
	json_t *j = json_stringn(text, len);
	struct buf b = { 0 };

	for (size_t i = 0, n; !j && i < len; i += n) {
		for (n = len - i < 4 ? len - i : 4; n; n--) {
			json_t *one = json_stringn(text + i, n);
			json_decref(one);
			if (one)
				break;
		}
		if (n)
			buf_add(&b, text + i, n);
		else
			buf_adds(&b, "\xef\xbf\xbd");
		n += !n;
	}
	j = j ? j : json_stringn(b.data, b.len);
	buf_fini(&b);
	return j;
}

static json_t *error_json(unsigned status, const char *message)
{
	const char *type = status == 401 ? "authentication_error" :
			   status == 429 ? "rate_limit_error" :
			   status >= 500 ? "server_error" :
					   "invalid_request_error";

	return json_pack("{s:{s:o,s:s,s:n,s:n}}", "error", "message",
			 text_json(message, strlen(message)), "type", type,
			 "param", "code");
}

static enum MHD_Result send_error(struct MHD_Connection *con, unsigned status,
				  const char *message)
{
	return send_json(con, status, error_json(status, message));
}

static json_t *usage_json(const struct job *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->n; i++)
		n += j->choice[i].tokens;
	return json_pack("{s:I,s:I,s:I}", "prompt_tokens",
			 (json_int_t)j->prompt.n, "completion_tokens",
			 (json_int_t)n, "total_tokens",
			 (json_int_t)(j->prompt.n + n));
}

/* The model's: a file's name may be any bytes. */
static json_t *name_json(const struct server *s)
{
	const char *name = qwen_cmd_name(s->c->model);

	return text_json(name, strlen(name));
}

static json_t *head_json(const struct job *j, json_t *choices)
{
	const char *what = !j->chat  ? "text_completion" :
			   j->stream ? "chat.completion.chunk" :
				       "chat.completion";

	return json_pack("{s:s,s:s,s:I,s:o,s:o}", "id", j->id, "object", what,
			 "created", (json_int_t)time(NULL), "model",
			 name_json(j->s), "choices", choices);
}

static json_t *choice_json(const struct job *j, uint32_t i, json_t *text,
			   const char *finish)
{
	json_t *c = json_pack("{s:i,s:s?,s:n}", "index", (int)i,
			      "finish_reason", finish, "logprobs");

	if (!j->chat)
		json_object_set_new(c, "text", text);
	else if (j->stream)
		json_object_set_new(c, "delta",
				    json_pack("{s:o}", "content", text));
	else
		json_object_set_new(c, "message",
				    json_pack("{s:s,s:o}", "role", "assistant",
					      "content", text));
	return c;
}

/* ---- streams ---- */

static void put_event(struct buf *out, json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);

	buf_printf(out, "data: %s\n\n", text);
	free(text);
	json_decref(j);
}

/* How much of a text may go out: what may become a stop string may not. */
static size_t whole_end(const struct choice *c)
{
	size_t held = c->job->longest ? c->job->longest - 1 : 0;
	size_t end = c->text.len > held ? c->text.len - held : 0;

	if (c->finish)
		return c->text.len;
	while (end && (c->text.data[end] & 0xc0) == 0x80)
		end--;
	return end;
}

/* What is new of a job, as events. */
static void put_news(struct job *j, struct buf *out)
{
	for (uint32_t i = 0; i < j->n; i++) {
		struct choice *c = &j->choice[i];
		size_t end = whole_end(c);
		if (c->told || (end <= c->sent && !c->finish))
			continue;
		json_t *text = end > c->sent ? text_json(c->text.data + c->sent,
							 end - c->sent) :
					       json_string("");
		put_event(out, head_json(j, json_pack("[o]",
						      choice_json(j, i, text,
								  c->finish))));
		c->sent = end > c->sent ? end : c->sent;
		c->told = c->finish != NULL;
	}
	if (j->known)
		return;
	if (j->going)
		put_event(out, error_json(j->broken ? j->status : 500,
					  j->broken ? j->broken : "gone"));
	else if (j->usage && !j->usage_told) {
		json_t *head = head_json(j, json_array());
		json_object_set_new(head, "usage", usage_json(j));
		put_event(out, head);
	}
	buf_adds(out, "data: [DONE]\n\n");
	j->end_told = true;
}

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
		while (put_news(j, &st->out), !st->out.len)
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
	for (uint32_t i = 0; i < call->job->n && call->job->chat; i++)
		put_event(&st->out,
			  head_json(call->job,
				    json_pack("[{s:i,s:{s:s,s:s},s:n}]",
					      "index", (int)i, "delta", "role",
					      "assistant", "content", "",
					      "finish_reason")));
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096,
					      stream_read, st, stream_free);
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	done = MHD_queue_response(con, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}

/* ---- requests ---- */

static const char *read_number(json_t *body, const char *name, double *x)
{
	json_t *j = json_object_get(body, name);

	if (j && !json_is_null(j) && !json_is_number(j))
		return name;
	if (json_is_number(j))
		*x = json_number_value(j);
	return NULL;
}

static const char *read_count(json_t *body, const char *name, uint64_t least,
			      uint64_t most, uint64_t *x)
{
	json_t *j = json_object_get(body, name);

	if (!j || json_is_null(j))
		return NULL;
	if (!json_is_integer(j) || json_integer_value(j) < (json_int_t)least ||
	    json_integer_value(j) > (json_int_t)most)
		return name;
	*x = (uint64_t)json_integer_value(j);
	return NULL;
}

static const char *read_stops(struct job *j, json_t *body)
{
	json_t *stop = json_object_get(body, "stop");
	size_t n = json_is_array(stop) ? json_array_size(stop) : 1;

	if (!stop || json_is_null(stop))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		json_t *one = json_is_array(stop) ? json_array_get(stop, i) :
						    stop;
		size_t len = json_string_length(one);
		if (!len || n > MOST_STOPS)
			return "stop";
		j->stop[j->n_stops++] = xstrdup(json_string_value(one));
		j->longest = len > j->longest ? len : j->longest;
	}
	return NULL;
}

/* The name of what is not as it should be, or NULL. */
static const char *read_settings(struct job *j, json_t *body)
{
	static const char *const unknown[] = { "tools", "functions", "logprobs",
					       "response_format",
					       "logit_bias" };
	const struct qwen_cmd *c = j->s->c;
	uint64_t most = c->tokens, n = 1, seed = c->seed;
	json_t *stream = json_object_get(body, "stream");
	const char *bad;

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		json_t *x = json_object_get(body, unknown[i]);
		if (x && !json_is_null(x) && !json_is_false(x))
			return unknown[i];
	}
	if (stream && !json_is_boolean(stream) && !json_is_null(stream))
		return "stream";
	j->stream = json_is_true(stream);
	j->usage = json_is_true(json_object_get(
		json_object_get(body, "stream_options"), "include_usage"));
	j->how = qwen_cmd_sampling(c, &j->s->session.model.config);
	if ((bad = read_number(body, "temperature", &j->how.temperature)) ||
	    (bad = read_number(body, "top_p", &j->how.top_p)) ||
	    (bad = read_count(body, "max_tokens", 1, c->tokens, &most)) ||
	    (bad = read_count(body, "max_completion_tokens", 1, c->tokens,
			      &most)) ||
	    (bad = read_count(body, "n", 1, MOST_CHOICES, &n)) ||
	    (bad = read_count(body, "seed", 0, INT64_MAX, &seed)))
		return bad;
	j->how.seed = seed;
	j->most = (uint32_t)most;
	j->n = (uint32_t)n;
	return read_stops(j, body);
}

static bool read_prompt(struct job *j, json_t *body, struct err *e)
{
	struct qwen_encoder *x = qwen_encoder_new(j->s->session.tok);
	json_t *from = json_object_get(body, j->chat ? "messages" : "prompt");
	struct buf text = { 0 };
	bool good = true;

	if (j->chat) {
		char *list = json_dumps(from, JSON_ENCODE_ANY);
		good = list ? qwen_chat(list, NULL, QWEN_CHAT_PROMPT, &text,
					e) :
			      err_set(e, ERR_USAGE,
				      "\"messages\" is missing; "
				      "wanted a list");
		free(list);
	} else if (json_is_string(from)) {
		buf_add(&text, json_string_value(from),
			json_string_length(from));
	} else {
		good = err_set(e, ERR_USAGE, "\"prompt\": wanted a string");
	}
	good = good && qwen_encode(x, text.data ? text.data : "", text.len, 0,
				   &j->prompt, e);
	if (good && !j->prompt.n)
		good = err_set(e, ERR_USAGE, "the prompt is empty");
	if (good && j->prompt.n + j->most > j->s->c->context)
		good = err_set(e, ERR_USAGE,
			       "the prompt has %zu tokens and %u "
			       "may follow; the context has %llu",
			       j->prompt.n, j->most,
			       (unsigned long long)j->s->c->context);
	qwen_encoder_free(x);
	buf_fini(&text);
	return good;
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < MOST_CHOICES; i++)
		buf_fini(&j->choice[i].text);
	for (size_t i = 0; i < j->n_stops; i++)
		free(j->stop[i]);
	qwen_ids_fini(&j->prompt);
	free(j);
}

static struct job *job_new(struct server *s, bool chat, const struct buf *b,
			   struct err *e)
{
	struct job *j = xcalloc(1, sizeof(*j));
	json_error_t bad;
	json_t *body = json_loadb(b->data ? b->data : "", b->len, 0, &bad);
	json_t *user = json_object_get(body, "user");
	const char *wrong;
	struct err why = { 0 };

	j->s = s;
	j->chat = chat;
	for (uint32_t i = 0; i < MOST_CHOICES; i++) {
		j->choice[i].job = j;
		j->choice[i].decoder.skip_special = true;
	}
	if (!json_is_object(body))
		err_set(e, ERR_INPUT, "the body is no JSON object: %s",
			body ? "it is something else" : bad.text);
	else if ((wrong = read_settings(j, body)))
		err_set(e, ERR_USAGE,
			"\"%s\" has a value that this server "
			"does not take",
			wrong);
	else if (!read_prompt(j, body, &why))
		err_set(e, ERR_USAGE, "%s", why.msg);
	if (json_is_string(user))
		j->user = XXH3_64bits(json_string_value(user),
				      json_string_length(user));
	json_decref(body);
	j->deadline_ns = time_mono_ns() + s->c->timeout * 1000000000;
	snprintf(j->id, sizeof(j->id), "%s-%016llx", chat ? "chatcmpl" : "cmpl",
		 (unsigned long long)(time_mono_ns() ^ (uintptr_t)j));
	if (!e->code)
		return j;
	job_free(j);
	return NULL;
}

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
	json_t *choices = json_array(), *head;
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
	if (j->broken) {
		json_decref(choices);
		return send_error(con, j->status, j->broken);
	}
	for (uint32_t i = 0; i < j->n; i++)
		json_array_append_new(
			choices,
			choice_json(j, i,
				    text_json(j->choice[i].text.data ?
						      j->choice[i].text.data :
						      "",
					      j->choice[i].text.len),
				    j->choice[i].finish));
	head = head_json(j, choices);
	json_object_set_new(head, "usage", usage_json(j));
	return send_json(con, 200, head);
}

static enum MHD_Result answer_post(struct MHD_Connection *con,
				   struct call *call, bool chat)
{
	struct err e = { 0 };

	if (call->large)
		return send_error(con, 413,
				  "the body is too long (--max-body)");
	call->job = job_new(call->s, chat, &call->body, &e);
	if (!call->job)
		return send_error(con, 400, e.msg);
	if (!serve_submit(call->s, call->job))
		return send_error(con, call->s->closing ? 503 : 429,
				  "the queue is full, or the server ends; try "
				  "again later");
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
	bool chat = !strcmp(url, "/v1/chat/completions");

	if (!strcmp(url, "/health"))
		return send_json(con, s->closing ? 503 : 200,
				 json_pack("{s:s}", "status",
					   s->closing ? "ends" : "ok"));
	if (!has_key(con, s))
		return send_error(con, 401,
				  "wanted the server's key as "
				  "Authorization: Bearer KEY");
	if (!strcmp(url, "/metrics"))
		return send_metrics(con, s);
	if (!strcmp(url, "/v1/models"))
		return send_json(con, 200,
				 json_pack("{s:s,s:[{s:o,s:s,s:i,s:s}]}",
					   "object", "list", "data", "id",
					   name_json(s), "object", "model",
					   "created", 0, "owned_by", "t0"));
	if (!chat && strcmp(url, "/v1/completions"))
		return send_error(con, 404, "there is no such path");
	if (strcmp(method, "POST"))
		return send_error(con, 405, "wanted POST");
	return answer_post(con, call, chat);
}

/* An answer begins, or the call of one ends. */
static void count_answer(struct call *call, bool begins)
{
	pthread_mutex_lock(&call->s->lock);
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
		count_answer(call, true);
		return answer_request(con, call, url, method);
	}
	call->large = call->large ||
		      call->body.len + *size > call->s->c->max_body;
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
	(void)con;
	(void)why;
	if (!call)
		return;
	if (call->job)
		serve_leave(call->s, call->job);
	count_answer(call, false);
	job_free(call->job);
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
