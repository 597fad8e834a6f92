/*
 * t0-qwen3 serve under 64 clients that do what clients do, and what they should
 * not: they leave, read slowly, send halves, too much, or no JSON.  Every
 * answer that ends is the text that a single run of t0-qwen3 generate gives,
 * and when all have gone nothing of them is left.
 *
 * Then the server is killed, or told to end, under clients that wait: each
 * hears of it.  8 seconds, ten minutes with T0_SLOW=1; clients draw from
 * T0_SEED (1).
 */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ref/asks.h"
#include "tests/ref/web.h"
#include "tests/tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

enum { CLIENTS = 64, ROUNDS = 3 };
enum { CHUNK = 32, BODY_MOST = 8192 };

static char folder[] = "/tmp/t0-storm-XXXXXX";
static struct web_server server;
static char options[512], log_path[64];
static uint64_t idle_threads; /* that the server has for nobody */

static struct ask asks[ASKS];

/* ---- clients ---- */

enum { FINISHED, STREAMED, SLOW, BUSY, LEFT, DROPPED, REFUSED, LOOKED, SUMS };
static const char *const sums[SUMS] = { "finished", "streamed", "slowly",
					"busy",	    "left",	"dropped",
					"refused",  "looked" };

struct client {
	uint64_t seed;
	uint64_t end_ns;
	struct web web; /* fd -1: not connected */
	unsigned did[SUMS], wrong;
	char why[256]; /* of the first */
};

static struct client clients[CLIENTS];

static unsigned below(struct client *c, unsigned n)
{
	return (unsigned)(random_next(&c->seed) % n);
}

T0_PRINTF(2, 3)
static bool complain(struct client *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!c->wrong++)
		vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return false;
}

static bool check_reply(struct client *c, const struct ask *a,
			const struct web_reply *r)
{
	char why[256];

	c->did[BUSY] += r->status == 429;
	return r->status == 429 || ask_check(a, r, why, sizeof(why)) ||
	       complain(c, "ask %d: %s", (int)(a - asks), why);
}

static bool connected(struct client *c, int receive)
{
	if (c->web.fd >= 0 && !receive)
		return true;
	web_close(&c->web, false);
	return web_open(&c->web, server.port, receive, 120) ||
	       complain(c, "no connection: %s", strerror(errno));
}

/* Reads the answer to an ask that has been sent. */
static void hear_answer(struct client *c, const struct ask *a, int sum)
{
	struct web_reply r = { 0 };

	web_read(&c->web, &r);
	if (check_reply(c, a, &r))
		c->did[sum] += r.status == 200;
	if (!r.whole || r.closes)
		web_close(&c->web, false);
	web_reply_fini(&r);
}

/* ---- what they do ---- */

static void ask_any(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	bool stream = below(c, 2);
	struct buf b = { 0 };

	ask_put(&b, a, stream);
	if (connected(c, 0) && (web_send(&c->web, b.data, b.len) ||
				complain(c, "not sent: %s", strerror(errno))))
		hear_answer(c, a, stream ? STREAMED : FINISHED);
	buf_fini(&b);
}

/* Two requests at once, answered in order. */
static void ask_twice(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	const struct ask *next = &asks[below(c, ASKS)];
	struct buf b = { 0 };

	ask_put(&b, a, false);
	ask_put(&b, next, false);
	if (connected(c, 0) && (web_send(&c->web, b.data, b.len) ||
				complain(c, "not sent: %s", strerror(errno)))) {
		hear_answer(c, a, FINISHED);
		if (c->web.fd >= 0)
			hear_answer(c, next, FINISHED);
	}
	buf_fini(&b);
}

static void read_slowly(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	struct buf b = { 0 };

	ask_put(&b, a, below(c, 4));
	if (connected(c, 2048) && web_send(&c->web, b.data, b.len)) {
		c->web.piece = 1 + below(c, 300);
		c->web.nap_us = 100 + below(c, 3000);
		hear_answer(c, a, SLOW);
	}
	web_close(&c->web, false);
	buf_fini(&b);
}

static void write_slowly(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	struct buf b = { 0 };
	size_t at = 0, some;

	ask_put(&b, a, below(c, 2));
	for (bool good = connected(c, 0); good && at < b.len; at += some) {
		some = 1 + below(c, 60);
		some = some < b.len - at ? some : b.len - at;
		good = web_send(&c->web, b.data + at, some) ||
		       complain(c, "not sent: %s", strerror(errno));
		usleep(below(c, 4000));
	}
	if (at >= b.len)
		hear_answer(c, a, SLOW);
	buf_fini(&b);
}

/* Asks, and goes: at once, after a while, or in the middle of the answer. */
static void leave(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	struct web_reply r = { 0 };
	struct buf b = { 0 };

	ask_put(&b, a, below(c, 2));
	if (connected(c, 0) && web_send(&c->web, b.data, b.len)) {
		if (below(c, 2)) {
			c->web.give_up = c->web.total + 1 + below(c, 3000);
			c->web.piece = 64;
			web_read(&c->web, &r);
		} else {
			usleep(below(c, 50000));
		}
		c->did[LEFT]++;
	}
	web_reply_fini(&r);
	web_close(&c->web, below(c, 2));
	buf_fini(&b);
}

/* Half a request. */
static void drop(struct client *c)
{
	const struct ask *a = &asks[below(c, ASKS)];
	struct buf b = { 0 };

	ask_put(&b, a, below(c, 2));
	if (connected(c, 0) &&
	    web_send(&c->web, b.data, below(c, (unsigned)b.len)))
		c->did[DROPPED]++;
	usleep(below(c, 20000));
	web_close(&c->web, below(c, 2));
	buf_fini(&b);
}

/* A request whose answer is known before. */
static bool hear_status(struct client *c, const struct buf *b, int status,
			const char *part)
{
	struct web_reply r = { 0 };
	bool good = connected(c, 0) &&
		    (web_send(&c->web, b->data, b->len) ||
		     complain(c, "not sent: %s", strerror(errno)));
	json_t *j;

	if (!good)
		return false;
	web_read(&c->web, &r);
	j = r.body.len ? json_loads(r.body.data, 0, NULL) : NULL;
	if (status == 400 && r.whole && r.status == 429)
		c->did[BUSY]++; /* some are looked at when it is their turn */
	else if (!r.whole || r.status != status || !strstr(r.body.data, part) ||
		 (status >= 400 &&
		  !json_is_string(json_object_get(json_object_get(j, "error"),
						  "message"))))
		good = complain(c, "status %d, %s, wanted %d: %.150s", r.status,
				r.whole ? "whole" : "cut", status,
				r.body.data ? r.body.data : "");
	json_decref(j);
	if (!r.whole || r.closes)
		web_close(&c->web, false);
	web_reply_fini(&r);
	return good;
}

static void send_wrong(struct client *c)
{
	static const struct {
		const char *body, *part;
	} bad[] = {
		{ "", "no JSON" },
		{ "{\"prompt\":", "no JSON" },
		{ "[1,2,3]", "no JSON object" },
		{ "{\"prompt\":\"\\\xc3\xa9\"}", "no JSON" },
		{ "{\"prompt\":\"\xff\xfe\"}", "no JSON" },
		{ "{\"prompt\":\"\xed\xa0\x80\"}", "no JSON" },
		{ "{\"prompt\":\"\\ud800\"}", "no JSON" },
		{ "{\"prompt\":\"a\\u0000b\"}", "no JSON" },
		{ "{\"prompt\":7}", "wanted a string" },
		{ "{\"prompt\":\"\"}", "empty" },
		{ "{\"prompt\":\"a\",\"n\":-1}", "\\\"n\\\"" },
		{ "{\"prompt\":\"a\",\"stop\":[\"\"]}", "\\\"stop\\\"" },
		{ "{\"prompt\":\"a\",\"max_tokens\":1e99}", "max_tokens" },
		{ "{\"prompt\":\"a\",\"temperature\":\"hot\"}", "temperature" },
		{ "{\"prompt\":\"a\",\"top_p\":7}", "wanted" },
	};
	size_t i = below(c, ARRAY_SIZE(bad));
	struct buf b = { 0 };

	web_request(&b, "/v1/completions", bad[i].body);
	c->did[REFUSED] += hear_status(c, &b, 400, bad[i].part);
	buf_fini(&b);
}

static void send_large(struct client *c)
{
	size_t n = BODY_MOST + 1 + below(c, 200000);
	char *body = xmalloc(n + 1);
	struct buf b = { 0 };

	memset(body, 'a', n);
	body[n] = '\0';
	web_request(&b, "/v1/completions", body);
	c->did[REFUSED] += hear_status(c, &b, 413, "--max-body");
	buf_fini(&b);
	free(body);
}

static void look(struct client *c)
{
	static const struct {
		const char *path, *part;
		int status;
	} all[] = {
		{ "/health", "\"ok\"", 200 },
		{ "/metrics", "t0_requests_total", 200 },
		{ "/v1/models", "\"model\"", 200 },
		{ "/v1/completions", "POST", 405 },
		{ "/v1/nothing", "no such path", 404 },
		{ "/%ff%00/..//", "no such path", 404 },
	};
	size_t i = below(c, ARRAY_SIZE(all));
	struct buf b = { 0 };

	web_request(&b, all[i].path, NULL);
	c->did[LOOKED] += hear_status(c, &b, all[i].status, all[i].part);
	buf_fini(&b);
}

static const struct way {
	void (*act)(struct client *c);
	unsigned weight;
} ways[] = { { ask_any, 30 },	  { ask_twice, 6 },  { read_slowly, 8 },
	     { write_slowly, 6 }, { leave, 20 },     { drop, 10 },
	     { send_wrong, 10 },  { send_large, 4 }, { look, 6 } };

static void *run_client(void *ctx)
{
	struct client *c = ctx;

	while (time_mono_ns() < c->end_ns && !c->wrong) {
		unsigned x = below(c, 100), i = 0;
		for (; x >= ways[i].weight; i++)
			x -= ways[i].weight;
		ways[i].act(c);
	}
	web_close(&c->web, false);
	return NULL;
}

/* ---- the campaign ---- */

struct left { /* when nobody asks */
	uint64_t heap, blocks, rss_kb, threads;
};

static bool run_round(unsigned round, uint64_t seconds, struct left *left)
{
	pthread_t thread[CLIENTS];
	const char *wrong = NULL;
	const char *seed = getenv("T0_SEED");
	uint64_t at = seed ? strtoull(seed, NULL, 0) : 1;

	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = &clients[i];
		c->web.fd = -1;
		c->seed = (at * ROUNDS + round) * CLIENTS + i;
		c->end_ns = time_mono_ns() + seconds * 1000000000;
		if (pthread_create(&thread[i], NULL, run_client, c))
			BUG("no thread");
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < CLIENTS && !wrong; i++)
		wrong = clients[i].wrong ? clients[i].why : NULL;
	is_str(wrong, NULL, "round %u: all was as it should be", round);
	if (!ok(web_idle(&server, 60), "round %u: nothing goes on after it",
		round))
		return false;
	for (int i = 0;
	     i < 100 && web_status(&server, "Threads:") > idle_threads; i++)
		usleep(100000);
	left->threads = web_status(&server, "Threads:");
	left->heap = web_metric(server.port, "heap_bytes");
	left->blocks = web_metric(server.port, "cache_blocks_left");
	left->rss_kb = web_status(&server, "VmRSS:");
	diag("round %u: heap %llu bytes, resident %llu kB, %llu threads", round,
	     (unsigned long long)left->heap, (unsigned long long)left->rss_kb,
	     (unsigned long long)left->threads);
	return !wrong;
}

static void test_storm(uint64_t seconds)
{
	const uint64_t blocks = web_metric(server.port, "cache_blocks_left");
	struct left left[ROUNDS] = { 0 };

	for (unsigned i = 0; i < ROUNDS; i++)
		if (!run_round(i, seconds / ROUNDS, &left[i]))
			return;
	for (int k = 0; k < SUMS; k++) {
		unsigned n = 0;
		for (int i = 0; i < CLIENTS; i++)
			n += clients[i].did[k];
		diag("%s: %u", sums[k], n);
		if (k != BUSY)
			ok(n > 10, "many did: %s", sums[k]);
	}
	ok(web_metric(server.port, "preemptions_total") &&
		   web_metric(server.port, "found_tokens_total"),
	   "blocks were scarce, and shared");
	is_u64(left[ROUNDS - 1].blocks, blocks, "all blocks are back");
	is_u64(left[ROUNDS - 1].threads, idle_threads, "and all threads");
	if (SANITIZED)
		skip_some(2, "a sanitizer has the heap");
	else {
		/* Threads keep a little of their own until all have been busy. */
		ok(left[ROUNDS - 1].heap < left[ROUNDS - 2].heap + 65536,
		   "and all memory");
		ok(left[ROUNDS - 1].rss_kb < left[0].rss_kb * 1.25 + 8192,
		   "which is resident, too");
	}
}

/* ---- ends ---- */

enum { HELD = 24 };

/* Clients that wait for long texts, every second one for a stream. */
static bool hold(struct web *w)
{
	struct ask a = asks[0];
	bool good = true;

	a.tokens = SANITIZED ? 80 : 350;
	a.n = MOST_TEXTS;
	for (int i = 0; i < HELD && good; i++) {
		struct buf b = { 0 };
		ask_put(&b, &a, i % 2);
		good = web_open(&w[i], server.port, 0, 120) &&
		       web_send(&w[i], b.data, b.len);
		buf_fini(&b);
	}
	for (int i = 0; i < 600 && good; i++, usleep(20000))
		if (web_metric(server.port, "requests_total") -
			    web_metric(server.port,
				       "requests_cancelled_total") >=
		    HELD)
			break;
	return good;
}

/* Every ask in turn; how many answers were right. */
static int ask_all(void)
{
	struct client c = { .web.fd = -1 };

	for (int i = 0; i < ASKS; i++) {
		struct buf b = { 0 };
		ask_put(&b, &asks[i], i % 2);
		if (connected(&c, 0) && web_send(&c.web, b.data, b.len))
			hear_answer(&c, &asks[i], FINISHED);
		buf_fini(&b);
	}
	web_close(&c.web, false);
	if (c.wrong)
		diag("%s", c.why);
	return (int)c.did[FINISHED];
}

static void test_killed(void)
{
	struct web w[HELD], after;
	int cut = 0, silent = 0;

	server = web_start(options, 0, log_path);
	ok(server.pid && hold(w), "%d clients wait for long texts", HELD);
	const uint16_t port = server.port;
	is_i64(web_end(&server, SIGKILL), -SIGKILL, "the server is killed");
	for (int i = 0; i < HELD; i++) {
		struct web_reply r = { 0 };
		cut += !web_read(&w[i], &r);
		silent += w[i].late;
		web_reply_fini(&r);
		web_close(&w[i], false);
	}
	ok(cut > HELD / 2, "those in flight see that theirs is not whole");
	is_i64(silent, 0, "at once");
	ok(!web_open(&after, port, 0, 5), "who comes then is turned away");
	server = web_start(options, port, log_path);
	ok(server.pid && server.port == port, "it starts again, there");
	is_i64(ask_all(), ASKS, "and answers as before");
	is_i64(web_end(&server, SIGTERM), 143, "and ends");
}

/* With `grace` seconds for what was begun, 0 or enough. */
static void test_ended(int grace)
{
	char line[640], path[64];
	struct web w[HELD];
	int told = 0, finished = 0;

	snprintf(path, sizeof(path), "%s/log-%d", folder, grace);
	snprintf(line, sizeof(line), "%s --grace %d", options, grace);
	server = web_start(line, 0, path);
	ok(server.pid && hold(w), "grace %d: %d clients wait", grace, HELD);
	kill(server.pid, SIGTERM);
	for (int i = 0; i < HELD; i++) {
		struct web_reply r = { 0 };
		struct texts t = { 0 };
		bool whole = web_read(&w[i], &r) && texts_take(&t, &r);
		told += whole && t.told_error;
		finished += whole && !t.told_error && *t.finish[0] &&
			    *t.finish[MOST_TEXTS - 1];
		texts_fini(&t);
		web_reply_fini(&r);
		web_close(&w[i], false);
	}
	is_i64(told + finished, HELD, "grace %d: each hears how it ended",
	       grace);
	ok(grace ? !told : told > HELD / 2, "grace %d: %s", grace,
	   grace ? "none is dropped" : "most are dropped");
	is_i64(web_end(&server, 0), 143, "grace %d: and it ends", grace);
	snprintf(line, sizeof(line), "grep -q ' %d dropped at the end' %s",
		 told, path);
	is_i64(system(line), 0, "grace %d: and has counted them", grace);
}

/* A body that does not end is not read for ever. */
static void test_endless(void)
{
	static const char head[] = "POST /v1/completions HTTP/1.1\r\nHost: "
				   "localhost\r\nTransfer-Encoding: "
				   "chunked\r\n\r\n";
	static char piece[4096 + 8] = "1000\r\n";
	struct web w;
	unsigned sent = 0;

	memset(piece + 6, 'a', 4096);
	memcpy(piece + 6 + 4096, "\r\n", 2);
	if (!ok(web_open(&w, server.port, 0, 60) &&
			web_send(&w, head, strlen(head)),
		"a body without an end begins"))
		return;
	while (sent < 1 << 16 && web_send(&w, piece, sizeof(piece)))
		sent++;
	web_close(&w, true);
	ok(sent < 1 << 15, "the server hangs up on it");
}

/* A server that computes for longer than a connection may be idle. */
static void test_stopped(void)
{
	struct web w[HELD];
	int whole = 0;

	server = web_start(options, 0, log_path);
	ok(server.pid && hold(w), "again %d clients wait", HELD);
	kill(server.pid, SIGSTOP);
	sleep(33);
	kill(server.pid, SIGCONT);
	for (int i = 0; i < HELD; i++) {
		struct web_reply r = { 0 };
		whole += web_read(&w[i], &r) && r.status == 200;
		web_reply_fini(&r);
		web_close(&w[i], false);
	}
	is_i64(whole, HELD, "for half a minute, and get their texts");
	is_i64(web_end(&server, SIGTERM), 143, "and that one ends");
}

int main(void)
{
	const char *slow = getenv("T0_SLOW");
	char line[512];

	unsetenv("T0_DB");
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder))
		BUG("no folder");
	snprintf(line, sizeof(line), "%s make -q --model %s/model",
		 web_tool("t0-qwen3"), folder);
	if (!is_i64(system(line), 0, "a tiny model is made"))
		return plan_done();
	asks_make(asks, folder, CHUNK);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	snprintf(options, sizeof(options),
		 "-m %s/model --threads 1 --sequences 12 --blocks 40 --context "
		 "400 --chunk %d --tokens 370 --queue 60 --max-body %d",
		 folder, CHUNK, BODY_MOST);
	server = web_start(options, 0, log_path);
	if (!ok(server.pid, "the server listens"))
		return plan_done();
	idle_threads = web_status(&server, "Threads:");
	test_storm(slow ? 600 : 8);
	test_endless();
	is_i64(web_end(&server, SIGTERM), 143, "a signal ends it");
	snprintf(line, sizeof(line), "grep -q ' 0 dropped at the end' %s",
		 log_path);
	is_i64(system(line), 0, "and nothing is dropped");
	test_killed();
	test_ended(0);
	test_ended(300);
	if (slow)
		test_stopped();
	else
		skip_some(3, "T0_SLOW=1 lets clients wait for half a minute");
	asks_free(asks);
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
