/*
 * t0-qwen3 serve and clients that move a byte now and then: a request that does
 * not come whole ends with error 408, an answer that is not read with the
 * connection; who is in time keeps it.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ref/web.h"
#include "tests/tap.h"

enum {
	PATIENCE_S = 20, /* far beyond what the server is told */
	NAP_US = 100000
};

static struct web_server server;
static char folder[] = "/tmp/t0-late-XXXXXX";

static double seconds_since(uint64_t begin_ns)
{
	return (double)(time_mono_ns() - begin_ns) / 1e9;
}

/* Sends the text, then a byte now and then; the answer's status; 0: none. */
static int trickle_request(const char *text, double *seconds)
{
	const uint64_t begin = time_mono_ns();
	struct web_reply r = { 0 };
	struct pollfd in = { .events = POLLIN };
	struct web w;
	int status = 0;

	if (!web_open(&w, server.port, 0, PATIENCE_S) ||
	    !web_send(&w, text, strlen(text)))
		return 0;
	in.fd = w.fd;
	while (seconds_since(begin) < PATIENCE_S &&
	       !poll(&in, 1, NAP_US / 1000) && web_send(&w, "a", 1))
		;
	*seconds = seconds_since(begin);
	if (web_read(&w, &r) && memmem(r.body.data, r.body.len, "--receive", 9))
		status = r.status;
	web_reply_fini(&r);
	web_close(&w, false);
	return status;
}

struct client {
	pthread_t thread;
	int status;
	double seconds;
	unsigned good;
};

static void *send_headers(void *ctx)
{
	struct client *c = ctx;

	c->status = trickle_request("GET /health HTTP/1.1\r\nX: ", &c->seconds);
	return NULL;
}

static void *send_body(void *ctx)
{
	struct client *c = ctx;

	c->status =
		trickle_request("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
				"Content-Length: 10000\r\n\r\n{",
				&c->seconds);
	return NULL;
}

/* Of a large answer a few bytes at a time. */
static void *read_slowly(void *ctx)
{
	static const char ask[] =
		"{\"prompt\":\"a\",\"max_tokens\":100,\"n\":16,"
		"\"logprobs\":20,\"stream\":true,\"temperature\":1}";
	struct client *c = ctx;
	const uint64_t begin = time_mono_ns();
	struct web_reply r = { 0 };
	struct buf out = { 0 };
	struct web w;

	web_request(&out, "/v1/completions", ask);
	if (web_open(&w, server.port, 4096, PATIENCE_S) &&
	    web_send(&w, out.data, out.len)) {
		w.piece = 512;
		w.nap_us = NAP_US;
		w.give_up = 512 * PATIENCE_S * (1000000 / NAP_US);
		c->good = web_read(&w, &r); /* whole? */
		c->status = r.status;
		c->seconds = seconds_since(begin);
	}
	web_reply_fini(&r);
	web_close(&w, false);
	buf_fini(&out);
	return NULL;
}

/* Asks again and again on one connection, for longer than one request may. */
static void *ask_in_time(void *ctx)
{
	struct client *c = ctx;
	struct buf out = { 0 };
	struct web w;

	web_request(&out, "/health", NULL);
	if (web_open(&w, server.port, 0, PATIENCE_S))
		for (int i = 0; i < 8; i++) {
			struct web_reply r = { 0 };
			usleep(4 * NAP_US);
			c->good += web_send(&w, out.data, out.len) &&
				   web_read(&w, &r) && r.status == 200;
			web_reply_fini(&r);
		}
	web_close(&w, false);
	buf_fini(&out);
	return NULL;
}

int main(void)
{
	static void *(*const does[])(void *) = { send_headers, send_body,
						 read_slowly, ask_in_time };
	struct client c[ARRAY_SIZE(does)] = { 0 };
	char line[1024], log[64];

	if (!getenv("T0_BUILD") || !mkdtemp(folder))
		skip_all("T0_BUILD is not set");
	snprintf(line, sizeof(line),
		 "%s make -q --model %s/model --weights f32",
		 web_tool("t0-qwen3"), folder);
	snprintf(log, sizeof(log), "%s/log", folder);
	if (system(line))
		skip_all("no model");
	snprintf(line, sizeof(line),
		 "--model %s/model --threads 1 --context 256 --receive 2 "
		 "--timeout 2",
		 folder);
	server = web_start(line, 0, log);
	if (!ok(server.pid, "a server starts"))
		return plan_done();
	for (size_t i = 0; i < ARRAY_SIZE(does); i++)
		pthread_create(&c[i].thread, NULL, does[i], &c[i]);
	for (size_t i = 0; i < ARRAY_SIZE(does); i++)
		pthread_join(c[i].thread, NULL);
	is_i64(c[0].status, 408, "headers that trickle are refused");
	is_i64(c[1].status, 408, "and a body");
	ok(c[0].seconds >= 2 && c[1].seconds >= 2,
	   "not before their time: %.1f s, %.1f s", c[0].seconds, c[1].seconds);
	ok(c[0].seconds < PATIENCE_S && c[1].seconds < PATIENCE_S,
	   "and not for ever");
	ok(c[2].status == 200 && !c[2].good, "an answer begins");
	ok(c[2].seconds >= 1 && c[2].seconds < PATIENCE_S,
	   "who does not read it is hung up on: %.1f s", c[2].seconds);
	is_u64(c[3].good, 8, "each request has its own time");
	ok(web_idle(&server, PATIENCE_S), "nothing stays behind");
	is_i64(web_end(&server, SIGTERM), 143, "the server ends");
	snprintf(line, sizeof(line), "rm -rf %s", folder);
	ok(system(line) == 0, "the model is gone");
	return plan_done();
}
