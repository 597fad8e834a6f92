/*
 * engine/cmd/serve/cmd_load_http.c - requests of t0-qwen3 load: many at once in
 * one thread, each begun when it is due, whatever became of those before.
 */
#include <curl/curl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_load.h"

struct load_client {
	const struct qwen_cmd *c;
	CURLM *multi;
	struct curl_slist *headers;
	char *model, *url;
	struct flight **live; /* of a run: [requests], NULL or on its way */
};

/* Bytes of a line that are looked at. */
enum { MOST_LINE = 1 << 24 };

/* A request on its way. */
struct flight {
	struct load_request *r;
	struct flight **place; /* where it is live */
	uint64_t begin_ns;     /* of the run */
	CURL *easy;
	char *body;
	struct buf line; /* of the stream, so far */
	bool done;	 /* the stream has its end */
	bool told;	 /* an error, or is no stream */
};

static double time_since(uint64_t begin_ns)
{
	return (double)(time_mono_ns() - begin_ns) * 1e-9;
}

/* The first fault counts. */
static void fail(struct flight *f, enum load_end end, const char *why)
{
	if (f->told)
		return;
	f->told = true;
	f->r->end = end;
	snprintf(f->r->why, sizeof(f->r->why), "%s", why);
	err_make_visible(f->r->why);
}

/* ---- a stream ---- */

static void hear_text(struct flight *f, const json_t *text, double now)
{
	struct load_request *r = f->r;

	if (!json_string_length(text))
		return;
	if (isnan(r->first))
		r->first = now;
	else
		vec_push(&r->gaps, now - r->last);
	r->last = now;
	r->got += !r->counted;
	buf_add(&r->text, json_string_value(text), json_string_length(text));
}

static void hear_event(struct flight *f, const char *text, double now)
{
	json_error_t bad;
	json_t *j = json_loads(text, JSON_ALLOW_NUL, &bad), *choice, *delta,
	       *error;
	json_t *usage, *count;

	if (!json_is_object(j)) {
		fail(f, LOAD_MALFORMED, "an event is no JSON object");
		json_decref(j);
		return;
	}
	choice = json_array_get(json_object_get(j, "choices"), 0);
	delta = json_object_get(choice, "delta");
	usage = json_object_get(j, "usage");
	count = json_object_get(usage, "completion_tokens");
	error = json_object_get(j, "error");
	if (error) {
		const char *why =
			json_string_value(json_object_get(error, "message"));
		fail(f, LOAD_TOLD, why ? why : "an error without a message");
	}
	hear_text(f, json_object_get(choice, "text"), now);
	hear_text(f, json_object_get(delta, "reasoning_content"), now);
	hear_text(f, json_object_get(delta, "content"), now);
	if (json_is_string(json_object_get(choice, "finish_reason")))
		f->r->length = strcmp(json_string_value(json_object_get(
					      choice, "finish_reason")),
				      "length") == 0;
	if (json_is_integer(count)) {
		f->r->counted = true;
		f->r->got = (uint32_t)json_integer_value(count);
	}
	json_decref(j);
}

/* Fields other than data say nothing about tokens. */
static void hear_line(struct flight *f, const char *line, double now)
{
	static const char field[] = "data:";

	if (strncmp(line, field, strlen(field)) != 0) {
		if (*line == '{' || *line == '<')
			fail(f, LOAD_MALFORMED, "the answer is no stream");
		return;
	}
	line += strlen(field);
	line += *line == ' ';
	if (strcmp(line, "[DONE]") == 0)
		f->done = true;
	else
		hear_event(f, line, now);
}

static size_t hear_bytes(char *data, size_t size, size_t n, void *ctx)
{
	struct flight *f = ctx;
	const double now = time_since(f->begin_ns);
	long status = 0;

	n *= size;
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	for (size_t i = 0; i < n; i++) {
		if (status == 200 && data[i] == '\n') {
			buf_adds(&f->line, "");
			hear_line(f, f->line.data, now);
			buf_reset(&f->line);
		} else if (data[i] != '\r' && f->line.len < MOST_LINE) {
			buf_addc(&f->line, data[i]);
		}
	}
	return n;
}

/* ---- a request ---- */

static char *body_make(const struct load_client *l,
		       const struct load_request *r)
{
	const struct qwen_cmd *c = l->c;
	json_t *j = json_pack("{s:s,s:i,s:b,s:{s:b},s:I}", "model", l->model,
			      "max_tokens", (int)r->tokens, "stream", 1,
			      "stream_options", "include_usage", 1, "seed",
			      (json_int_t)(r->seed & INT64_MAX));
	char *text;

	if (c->chat)
		json_object_set_new(j, "messages",
				    json_pack("[{s:s,s:s}]", "role", "user",
					      "content", r->prompt));
	else
		json_object_set_new(j, "prompt", json_string(r->prompt));
	if (!isnan(c->temperature))
		json_object_set_new(j, "temperature",
				    json_real(c->temperature));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}

static void take_off(struct load_client *l, struct load_request *r,
		     struct flight **place, uint64_t begin_ns)
{
	struct flight *f = *place = xcalloc(1, sizeof(*f));

	f->r = r;
	f->place = place;
	f->begin_ns = begin_ns;
	f->body = body_make(l, r);
	f->easy = curl_easy_init();
	if (!f->easy)
		mem_ran_out(sizeof(*f), "a request");
	curl_easy_setopt(f->easy, CURLOPT_URL, l->url);
	curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, l->headers);
	curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, f->body);
	curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, hear_bytes);
	curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(f->easy, CURLOPT_PRIVATE, f);
	curl_easy_setopt(f->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(f->easy, CURLOPT_TIMEOUT, (long)l->c->timeout);
	r->first = r->last = NAN;
	r->sent = time_since(begin_ns);
	curl_multi_add_handle(l->multi, f->easy);
}

static enum load_end end_of(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		return LOAD_UNREACHED;
	case CURLE_OPERATION_TIMEDOUT:
		return LOAD_TIMEOUT;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		return LOAD_MALFORMED;
	default:
		return LOAD_CUT;
	}
}

static void flight_free(struct load_client *l, struct flight *f)
{
	*f->place = NULL;
	curl_multi_remove_handle(l->multi, f->easy);
	curl_easy_cleanup(f->easy);
	buf_fini(&f->line);
	free(f->body);
	free(f);
}

static void land(struct load_client *l, struct flight *f, CURLcode code)
{
	long status = 0;

	buf_adds(&f->line, "");
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		fail(f, end_of(code), curl_easy_strerror(code));
	else if (status != 200)
		fail(f,
		     status == 429 || status == 503 ? LOAD_BUSY : LOAD_STATUS,
		     f->line.data);
	else if (!f->done)
		fail(f, LOAD_CUT, "the stream has no [DONE]");
	else if (isnan(f->r->first))
		fail(f, LOAD_EMPTY, "the answer has no text");
	if (isnan(f->r->last))
		f->r->last = time_since(f->begin_ns);
	flight_free(l, f);
}

/* ---- a run ---- */

static size_t land_all(struct load_client *l)
{
	struct flight *f;
	CURLMsg *m;
	size_t n = 0;
	int left;

	while ((m = curl_multi_info_read(l->multi, &left)))
		if (m->msg == CURLMSG_DONE) {
			const CURLcode code = m->data.result;
			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f);
			land(l, f, code);
			n++;
		}
	return n;
}

/* Milliseconds until a request is due, at most a tenth of a second. */
static int time_left(const struct load_run *r, size_t next, uint64_t begin_ns)
{
	double left = next < r->n ? r->v[next].at - time_since(begin_ns) : 0.1;

	return left <= 0 ? 0 : left >= 0.1 ? 100 : (int)(left * 1000);
}

bool load_client_run(struct load_client *l, struct load_run *r, struct err *e)
{
	const uint64_t begin_ns = time_mono_ns();
	size_t next = 0, landed = 0;
	int running;

	l->live = xcalloc(r->n, sizeof(struct flight *));
	while (landed < r->n && !*l->c->stop) {
		for (; next < r->n && r->v[next].at <= time_since(begin_ns);
		     next++)
			take_off(l, &r->v[next], &l->live[next], begin_ns);
		curl_multi_perform(l->multi, &running);
		landed += land_all(l);
		if (landed < r->n)
			curl_multi_poll(l->multi, NULL, 0,
					time_left(r, next, begin_ns), NULL);
	}
	for (size_t i = 0; i < next; i++)
		if (l->live[i])
			flight_free(l, l->live[i]);
	free(l->live);
	return landed == r->n ||
	       err_set(e, ERR_STOPPED, "after %zu of %zu requests", landed,
		       r->n);
}

/* ---- the client ---- */

static size_t keep_bytes(char *data, size_t size, size_t n, void *ctx)
{
	buf_add(ctx, data, size * n);
	return size * n;
}

static bool ask_model(struct load_client *l, struct err *e)
{
	CURL *easy = curl_easy_init();
	struct buf url = { 0 }, body = { 0 };
	json_t *j = NULL;
	const char *id = NULL;
	CURLcode code;
	long status = 0;

	buf_printf(&url, "%s/v1/models", l->c->url);
	buf_adds(&body, "");
	curl_easy_setopt(easy, CURLOPT_URL, url.data);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, l->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, 30L);
	code = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK)
		j = json_loadb(body.data, body.len, 0, NULL);
	id = json_string_value(json_object_get(
		json_array_get(json_object_get(j, "data"), 0), "id"));
	if (code != CURLE_OK)
		err_set(e, ERR_IO, "%s: %s; t0-qwen3 serve starts a server",
			url.data, curl_easy_strerror(code));
	else if (status != 200 || !id)
		err_set(e, ERR_INPUT,
			"%s: status %ld, and no model is named; "
			"--model says which",
			url.data, status);
	else
		l->model = xstrdup(id);
	json_decref(j);
	buf_fini(&url);
	buf_fini(&body);
	curl_easy_cleanup(easy);
	return l->model;
}

static bool add_key(struct load_client *l, struct err *e)
{
	struct buf key = { 0 }, header = { 0 };

	if (!l->c->key_file)
		return true;
	if (!file_read(l->c->key_file, 4096, &key, e))
		return false;
	buf_adds(&key, "");
	buf_printf(&header, "Authorization: Bearer %.*s",
		   (int)strcspn(key.data, "\r\n"), key.data);
	l->headers = curl_slist_append(l->headers, header.data);
	buf_fini(&key);
	buf_fini(&header);
	return true;
}

struct load_client *load_client_new(const struct qwen_cmd *c, struct err *e)
{
	struct load_client *l = xcalloc(1, sizeof(*l));
	struct buf url = { 0 };

	curl_global_init(CURL_GLOBAL_DEFAULT);
	l->c = c;
	l->multi = curl_multi_init();
	l->headers = curl_slist_append(NULL, "Content-Type: application/json");
	l->headers = curl_slist_append(l->headers, "Expect:");
	buf_printf(&url, "%s/v1/%scompletions", c->url, c->chat ? "chat/" : "");
	l->url = url.data;
	if (c->asked_model)
		l->model = xstrdup(c->asked_model);
	if (add_key(l, e) && (l->model || ask_model(l, e)))
		return l;
	load_client_free(l);
	return NULL;
}

void load_client_free(struct load_client *l)
{
	if (!l)
		return;
	curl_multi_cleanup(l->multi);
	curl_slist_free_all(l->headers);
	curl_global_cleanup();
	free(l->model);
	free(l->url);
	free(l);
}

const char *load_client_model(const struct load_client *l)
{
	return l->model;
}
