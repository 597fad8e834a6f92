/*
 * t0-qwen3 serve and requests that are nearly right.  Those of
 * tests/corpus/http are sent as they are, then with something done to them: to
 * their bytes, to the values of their JSON, to their length.  Whatever comes,
 * the server answers in HTTP and JSON, or hangs up; it goes on; and nothing
 * stays behind.
 *
 * Some thousand requests, 100,000 with T0_SLOW=1, drawn from T0_SEED (1).  What
 * once broke the server goes to tests/corpus/http.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "tests/ref/web.h"
#include "tests/tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

enum { WORKERS = 8, WAIT_S = 60 };

struct request {
	char name[256];
	struct buf bytes;
	size_t body; /* where it begins */
};

static VEC(struct request) corpus;
static char folder[] = "/tmp/t0-http-XXXXXX";
static struct web_server server;

static bool read_corpus(const char *source)
{
	struct dirent **all;
	char path[1024];
	int n;

	snprintf(path, sizeof(path), "%s/tests/corpus/http",
		 source ? source : ".");
	n = scandir(path, &all, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		struct request r = { 0 };
		struct err e = { 0 };
		char *body;
		snprintf(path, sizeof(path), "%s/tests/corpus/http/%s",
			 source ? source : ".", all[i]->d_name);
		snprintf(r.name, sizeof(r.name), "%s", all[i]->d_name);
		free(all[i]);
		if (*r.name == '.')
			continue;
		if (!file_read(path, 1 << 20, &r.bytes, &e))
			BUG("%s", e.msg);
		body = memmem(r.bytes.data, r.bytes.len, "\r\n\r\n", 4);
		r.body = body ? (size_t)(body - r.bytes.data) + 4 : r.bytes.len;
		vec_push(&corpus, r);
	}
	if (n >= 0)
		free(all);
	return corpus.n != 0;
}

/* ---- what is done to them ---- */

struct worker {
	uint64_t seed;
	unsigned index, count;
	struct buf input;   /* that it sends now */
	unsigned status[6]; /* answers by their first digit; 0: none */
	char why[512];
};
static struct worker workers[WORKERS];
static _Atomic bool broken;

static size_t below(struct worker *w, size_t n)
{
	return n ? random_next(&w->seed) % n : 0;
}

static const char *const pieces[] = {
	"null",
	"true",
	"-1",
	"1e308",
	"-0.0",
	"9223372036854775808",
	"4294967296",
	"[",
	"{",
	"]",
	"}",
	"\"",
	",",
	":",
	"\\",
	"\\ud800",
	"\\u0000",
	"\\udc00\\ud800",
	"\xff",
	"\xc3",
	"\xf4\x90\x80\x80",
	"<|im_end|>",
	"<|im_start|>",
	"<think>",
	"\"prompt\"",
	"\"messages\"",
	"\"role\":\"assistant\",",
	"\"stop\":",
	"\"n\":16,",
	"\"stream\":true,",
	"\r\n",
	"\r\n\r\n",
	" HTTP/1.1\r\n",
	"GET ",
	"POST ",
	"Content-Length: 5\r\n",
	"%00",
	"/../",
	"Transfer-Encoding: chunked\r\n",
	"?a=b&c",
	"\t",
	"Connection: close\r\n",
};

static void put_at(struct buf *b, size_t at, const void *bytes, size_t n)
{
	struct buf tail = { 0 };

	buf_add(&tail, b->data + at, b->len - at);
	b->len = at;
	buf_add(b, bytes, n);
	buf_add(b, tail.data, tail.len);
	buf_fini(&tail);
}

/* Of what stands behind `from`. */
static void bend_bytes(struct worker *w, struct buf *b, size_t from)
{
	size_t at = from + below(w, b->len - from + 1);
	size_t n = below(w, 1 + below(w, 40)), left = b->len - at;
	const char *piece = pieces[below(w, ARRAY_SIZE(pieces))];
	char copy[64];

	n = n < left ? n : left;
	switch (below(w, 6)) {
	case 0:
		if (left)
			b->data[at] ^= (char)(1 << below(w, 8));
		break;
	case 1:
		if (left)
			b->data[at] = (char)below(w, 256);
		break;
	case 2:
		memmove(b->data + at, b->data + at + n, left - n);
		b->len -= n;
		break;
	case 3:
		memcpy(copy, b->data + at, n);
		put_at(b, from + below(w, b->len - from + 1), copy, n);
		break;
	case 4:
		b->len = below(w, 4) ? b->len : at;
		break;
	default:
		put_at(b, at, piece, strlen(piece));
	}
}

static json_t *any_value(struct worker *w, int depth)
{
	static const char *const texts[] = { "",	 "a",	      "user",
					     "tool",	 "system",    "\n\n",
					     "\xc3\xa9", "<|im_end|>" };
	static const double reals[] = { 0, -1, 0.5, 1e-300, 1e300, 2 };
	static const json_int_t numbers[] = { 0,  1,	      -1,
					      16, 4294967296, INT64_MAX };
	json_t *j;

	switch (below(w, depth ? 8 : 6)) {
	case 0:
		return json_null();
	case 1:
		return json_boolean(below(w, 2));
	case 2:
		return json_real(reals[below(w, ARRAY_SIZE(reals))]);
	case 3:
		return json_integer(numbers[below(w, ARRAY_SIZE(numbers))]);
	case 4:
	case 5:
		return json_string(texts[below(w, ARRAY_SIZE(texts))]);
	case 6:
		j = json_array();
		for (size_t i = below(w, 20); i; i--)
			json_array_append_new(j, any_value(w, depth - 1));
		return j;
	default:
		j = json_object();
		json_object_set_new(j, "role", any_value(w, depth - 1));
		json_object_set_new(j, "content", any_value(w, depth - 1));
		json_object_set_new(j, "tool_calls", any_value(w, depth - 1));
		return j;
	}
}

/* Another value somewhere, or a key more. */
static void bend_value(struct worker *w, json_t *j)
{
	static const char *const keys[] = {
		"prompt", "messages",	 "stop",     "n",
		"stream", "temperature", "top_p",    "max_tokens",
		"seed",	  "user",	 "logprobs", "stream_options",
		"role",	  "content",	 "tools",    "response_format",
	};
	size_t n = json_is_object(j) ? json_object_size(j) : json_array_size(j);
	size_t i = below(w, n + 1);
	const char *key = keys[below(w, ARRAY_SIZE(keys))];
	json_t *in = NULL;
	void *at = json_object_iter(j);

	for (size_t k = 0; k < i && at; k++)
		at = json_object_iter_next(j, at);
	in = json_is_object(j) ? json_object_iter_value(at) :
				 json_array_get(j, i);
	if (json_is_object(in) || (json_is_array(in) && json_array_size(in))) {
		if (below(w, 4)) {
			bend_value(w, in);
			return;
		}
	}
	if (json_is_array(j))
		json_array_insert_new(j, i, any_value(w, 3));
	else if (at && below(w, 2))
		json_object_set_new(j, json_object_iter_key(at),
				    any_value(w, 3));
	else
		json_object_set_new(j, key, any_value(w, 3));
}

static void bend_json(struct worker *w, struct buf *body)
{
	json_t *j =
		json_loadb(body->data ? body->data : "", body->len, 0, NULL);
	char *text;

	if (!json_is_object(j)) {
		json_decref(j);
		return;
	}
	for (size_t k = 1 + below(w, 3); k; k--)
		bend_value(w, j);
	text = json_dumps(j, JSON_COMPACT);
	buf_reset(body);
	buf_adds(body, text);
	free(text);
	json_decref(j);
}

/* The head without what says how long the body is. */
static void put_head(struct buf *out, const struct request *r)
{
	const char *at = r->bytes.data, *end = at + r->body - 2, *line;

	for (; at < end; at = line) {
		line = memmem(at, (size_t)(end - at), "\r\n", 2);
		line = line ? line + 2 : end;
		if (strncasecmp(at, "content-length:", 15) != 0 &&
		    strncasecmp(at, "transfer-encoding:", 18) != 0)
			buf_add(out, at, (size_t)(line - at));
	}
}

static void put_chunks(struct worker *w, struct buf *out,
		       const struct buf *body)
{
	buf_adds(out, "Transfer-Encoding: chunked\r\n\r\n");
	for (size_t at = 0, n; at < body->len; at += n) {
		n = 1 + below(w, 100);
		n = n < body->len - at ? n : body->len - at;
		buf_printf(out, below(w, 50) ? "%zx\r\n" : "%zx;x=\"y\"\r\n",
			   below(w, 40) ? n : n + below(w, 9));
		buf_add(out, body->data + at, n);
		buf_adds(out, "\r\n");
	}
	buf_adds(out, "0\r\n\r\n");
}

static void make_input(struct worker *w)
{
	const struct request *r = &corpus.v[below(w, corpus.n)];
	struct buf *out = &w->input, body = { 0 };
	size_t how = below(w, 10);

	buf_reset(out);
	buf_add(&body, r->bytes.data + r->body, r->bytes.len - r->body);
	buf_add(&body, "", 0);
	if (how < 4)
		bend_json(w, &body);
	if (how >= 3 && how < 6)
		for (size_t k = 1 + below(w, 4); k; k--)
			bend_bytes(w, &body, 0);
	if (how < 7 && r->body < r->bytes.len) {
		put_head(out, r);
		if (below(w, 5)) {
			buf_printf(out, "Content-Length: %zu\r\n\r\n",
				   body.len);
			buf_add(out, body.data, body.len);
		} else {
			put_chunks(w, out, &body);
		}
	} else {
		buf_add(out, r->bytes.data, r->bytes.len);
	}
	if (how >= 7 && how < 9)
		for (size_t k = 1 + below(w, 4); k; k--)
			bend_bytes(w, out, 0);
	buf_fini(&body);
}

/* ---- what must come back ---- */

static bool complain(struct worker *w, const char *what,
		     const struct web_reply *r)
{
	char path[128];
	FILE *f;

	broken = true;
	snprintf(path, sizeof(path), "/tmp/t0-http-%d-%u", (int)getpid(),
		 w->index);
	f = fopen(path, "w");
	if (f) {
		fwrite(w->input.data, 1, w->input.len, f);
		fclose(f);
	}
	snprintf(w->why, sizeof(w->why), "%s, for %s: status %d: %.300s", what,
		 path, r->status, r->body.data ? r->body.data : "");
	return false;
}

static bool is_json(const char *text)
{
	json_t *j = json_loads(text, JSON_ALLOW_NUL, NULL);
	bool good = json_is_object(j);

	json_decref(j);
	return good;
}

static bool check_events(char *at)
{
	bool done = false;

	for (char *end; *at; at = end + 2) {
		end = strstr(at, "\n\n");
		if (!end || done || strncmp(at, "data: ", 6) != 0)
			return false;
		*end = '\0';
		done = !strcmp(at + 6, "[DONE]");
		if (!done && !is_json(at + 6))
			return false;
	}
	return done;
}

static bool check_reply(struct worker *w, struct web_reply *r)
{
	static const int usual[] = { 200, 400, 404, 405, 411, 413, 414,
				     415, 417, 429, 431, 501, 505 };
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		known = known || r->status == usual[i];
	if (!known)
		return complain(w, "no such status was expected", r);
	if (!r->whole)
		return complain(w, "the answer is cut", r);
	if (!strcmp(r->type, "application/json") && !is_json(r->body.data))
		return complain(w, "the answer is no JSON", r);
	if (!strcmp(r->type, "text/event-stream") &&
	    !check_events(r->body.data))
		return complain(w, "the stream is none", r);
	return true;
}

/* An answer comes, or, when the client has no more to say, an end. */
static bool send_input(struct worker *w)
{
	struct web_reply r = { 0 };
	struct web c;
	struct pollfd p = { .events = POLLIN };
	char first[10];
	bool good = true;

	if (!web_open(&c, server.port, 0, WAIT_S))
		return complain(w, "nobody listens", &r);
	/* Who answers before all is sent may hang up. */
	(void)web_send(&c, w->input.data, w->input.len);
	p.fd = c.fd;
	/* 100 is no answer yet, and all of the body has been sent. */
	if (!poll(&p, 1, 100) ||
	    (recv(c.fd, first, sizeof(first), MSG_PEEK) == sizeof(first) &&
	     !memcmp(first, "HTTP/1.1 1", sizeof(first))))
		shutdown(c.fd, SHUT_WR);
	web_read(&c, &r);
	if (c.late)
		good = complain(w, "neither an answer nor an end", &r);
	else if (r.status && strncmp(w->input.data, "HEAD", 4) != 0)
		good = check_reply(w, &r);
	w->status[r.status / 100 % 6]++;
	web_reply_fini(&r);
	web_close(&c, false);
	return good;
}

static void *run_worker(void *ctx)
{
	struct worker *w = ctx;

	for (unsigned i = 0; i < w->count && !broken; i++) {
		make_input(w);
		send_input(w);
	}
	return NULL;
}

/* ---- all of it ---- */

static void test_corpus(void)
{
	for (size_t i = 0; i < corpus.n; i++) {
		struct worker *w = &workers[0];
		buf_reset(&w->input);
		buf_add(&w->input, corpus.v[i].bytes.data,
			corpus.v[i].bytes.len);
		if (!ok(send_input(w), "%s is answered", corpus.v[i].name))
			diag("%s", w->why);
	}
}

static bool run_all(unsigned count, unsigned round)
{
	pthread_t thread[WORKERS];
	const char *seed = getenv("T0_SEED");
	uint64_t from = seed ? strtoull(seed, NULL, 0) : 1;

	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].index = i;
		workers[i].count = count / WORKERS;
		workers[i].seed = (from * 1000 + round) * WORKERS + i;
		if (pthread_create(&thread[i], NULL, run_worker, &workers[i]))
			BUG("no thread");
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		if (*workers[i].why)
			diag("%s", workers[i].why);
	return ok(!broken, "round %u: %u requests are answered or ended", round,
		  count);
}

/* Memory in use, when nobody asks. */
static uint64_t heap_left(uint64_t threads)
{
	bool idle = web_idle(&server, WAIT_S);

	for (int i = 0; i < 400 && web_status(&server, "Threads:") > threads;
	     i++)
		usleep(100000);
	if (web_status(&server, "Threads:") > threads)
		diag("%llu threads are left, of %llu",
		     (unsigned long long)web_status(&server, "Threads:"),
		     (unsigned long long)threads);
	return idle ? web_metric(server.port, "heap_bytes") : UINT64_MAX;
}

static void test_rounds(unsigned count, uint64_t threads)
{
	uint64_t first = 0, last = 0;
	unsigned sum[6] = { 0 };

	for (unsigned round = 0; round < 3; round++) {
		if (!run_all(count / 3, round))
			return;
		last = heap_left(threads);
		first = round ? first : last;
		diag("round %u: %llu bytes in use, %llu kB resident", round,
		     (unsigned long long)last,
		     (unsigned long long)web_status(&server, "VmRSS:"));
	}
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < WORKERS; k++)
			sum[i] += workers[k].status[i];
	diag("200: %u, 400: %u, 500: %u, hung up: %u", sum[2], sum[4], sum[5],
	     sum[0]);
	ok(sum[2] > count / 20 && sum[4] > count / 10,
	   "many are right, and many are not");
	is_u64(web_status(&server, "Threads:") > threads + 1, 0,
	       "all threads are back");
	if (SANITIZED)
		skip("a sanitizer has the heap");
	else
		ok(first != UINT64_MAX && last < first + 65536,
		   "and all memory");
}

int main(void)
{
	char line[512], log_path[64];
	uint64_t threads;
	unsigned count = getenv("T0_SLOW") ? 100000 : SANITIZED ? 1500 : 6000;

	unsetenv("T0_DB");
	signal(SIGPIPE, SIG_IGN);
	if (!ok(read_corpus(getenv("T0_SRC")), "there are requests") ||
	    !mkdtemp(folder))
		return plan_done();
	snprintf(line, sizeof(line), "%s make -q --model %s/model",
		 web_tool("t0-qwen3"), folder);
	if (!is_i64(system(line), 0, "a tiny model is made"))
		return plan_done();
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	snprintf(line, sizeof(line),
		 "-m %s/model --threads 1 --context 400 --sequences 16 "
		 "--tokens 8 --max-body 4000",
		 folder);
	server = web_start(line, 0, log_path);
	if (!ok(server.pid, "the server listens"))
		return plan_done();
	threads = web_status(&server, "Threads:");
	test_corpus();
	test_rounds(count, threads);
	if (!is_i64(web_end(&server, SIGTERM), 143, "a signal ends it")) {
		snprintf(line, sizeof(line), "cat %s >&2", log_path);
		if (system(line))
			diag("no log");
	}
	for (size_t i = 0; i < corpus.n; i++)
		buf_fini(&corpus.v[i].bytes);
	for (int i = 0; i < WORKERS; i++)
		buf_fini(&workers[i].input);
	vec_fini(&corpus);
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
