/*
 * web.c - t0-qwen3 serve as a test's child, and a client of it.
 */
#include "tests/ref/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the server ---- */

const char *web_tool(const char *name)
{
	static char path[512];
	const char *build = getenv("T0_BUILD");

	snprintf(path, sizeof(path), "%s/%s", build ? build : "build/rel",
		 name);
	return path;
}

static _Noreturn void run_server(const char *tool, const char *options,
				 uint16_t port, const char *log, int out)
{
	char words[1024], number[16], *argv[64], *at = words;
	int n = 0, err = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	snprintf(words, sizeof(words), "%s", options);
	snprintf(number, sizeof(number), "%u", port);
	argv[n++] = (char *)"t0-qwen3";
	argv[n++] = (char *)"serve";
	argv[n++] = (char *)"--port";
	argv[n++] = number;
	while (at && n < 63)
		argv[n++] = strsep(&at, " ");
	argv[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, 1);
	dup2(err, 2);
	execv(tool, argv);
	_exit(127);
}

struct web_server web_start(const char *options, uint16_t port, const char *log)
{
	struct web_server s = { 0 };
	char line[128] = "", *colon;
	size_t n = 0;
	ssize_t got;
	int out[2];

	if (pipe2(out, O_CLOEXEC) || (s.pid = fork()) < 0)
		BUG("no server");
	if (!s.pid)
		run_server(web_tool("t0-qwen3"), options, port, log, out[1]);
	close(out[1]);
	while (!strchr(line, '\n') && n < sizeof(line) - 1 &&
	       (got = read(out[0], line + n, sizeof(line) - 1 - n)) > 0)
		n += (size_t)got;
	close(out[0]);
	colon = strrchr(line, ':');
	if (strchr(line, '\n') && colon)
		s.port = (uint16_t)atoi(colon + 1);
	else
		web_end(&s, SIGKILL);
	return s;
}

int web_end(struct web_server *s, int signal)
{
	int status = 0;

	if (!s->pid)
		return -1;
	if (signal)
		kill(s->pid, signal);
	waitpid(s->pid, &status, 0);
	s->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

uint64_t web_status(const struct web_server *s, const char *name)
{
	char path[64], line[256];
	uint64_t v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			v = strtoull(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return v;
}

/* ---- the client ---- */

bool web_open(struct web *w, uint16_t port, int receive, int wait_s)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval wait = { .tv_sec = wait_s };
	const int one = 1;

	*w = (struct web){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
					0) };
	if (w->fd < 0)
		return false;
	if (receive)
		setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &receive,
			   sizeof(receive));
	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(w->fd, (const struct sockaddr *)&to, sizeof(to)))
		return true;
	web_close(w, false);
	return false;
}

void web_close(struct web *w, bool hard)
{
	const struct linger reset = { 1, 0 };

	if (w->fd >= 0 && hard)
		setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (w->fd >= 0)
		close(w->fd);
	buf_fini(&w->in);
	*w = (struct web){ .fd = -1 };
}

bool web_send(struct web *w, const void *data, size_t n)
{
	const char *at = data;
	ssize_t sent;

	for (; n; at += sent, n -= (size_t)sent)
		if ((sent = send(w->fd, at, n, MSG_NOSIGNAL)) <= 0)
			return false;
	return true;
}

void web_request(struct buf *out, const char *path, const char *body)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\n",
		   body ? "POST" : "GET", path);
	if (body)
		buf_printf(out, "Content-Length: %zu\r\n\r\n%s", strlen(body),
			   body);
	else
		buf_adds(out, "\r\n");
}

/* More bytes; false: there are none, or nobody wants them. */
static bool fill(struct web *w)
{
	char bytes[16384];
	size_t most = w->piece && w->piece < sizeof(bytes) ? w->piece :
							     sizeof(bytes);
	ssize_t got;

	if (w->give_up && w->total >= w->give_up)
		return false;
	if (w->nap_us)
		usleep(w->nap_us);
	got = recv(w->fd, bytes, most, 0);
	w->late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
	if (got <= 0)
		return false;
	w->total += (size_t)got;
	buf_add(&w->in, bytes, (size_t)got);
	return true;
}

/* A line without its end; NULL: none comes. */
static char *take_line(struct web *w)
{
	char *line, *end;

	while (w->in.len == w->at ||
	       !(end = memchr(w->in.data + w->at, '\n', w->in.len - w->at)))
		if (!fill(w))
			return NULL;
	line = w->in.data + w->at;
	w->at = (size_t)(end - w->in.data) + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	return line;
}

static bool take_bytes(struct web *w, size_t n, struct buf *to)
{
	for (size_t some; n; n -= some) {
		if (w->in.len == w->at && !fill(w))
			return false;
		some = w->in.len - w->at < n ? w->in.len - w->at : n;
		buf_add(to, w->in.data + w->at, some);
		w->at += some;
	}
	return true;
}

static bool take_chunks(struct web *w, struct buf *to)
{
	size_t n;
	char *line;

	do {
		line = take_line(w);
		if (!line || !strchr("0123456789abcdefABCDEF", *line) || !*line)
			return false;
		n = strtoul(line, NULL, 16);
		if (!take_bytes(w, n, to))
			return false;
		line = take_line(w);
		if (!line || *line)
			return false;
	} while (n);
	return true;
}

bool web_read(struct web *w, struct web_reply *r)
{
	size_t length = 0;
	bool chunked, sized;
	char *line;

	web_reply_fini(r);
	/* What was read before goes. */
	struct buf rest = { 0 };
	if (w->in.len > w->at)
		buf_add(&rest, w->in.data + w->at, w->in.len - w->at);
	buf_fini(&w->in);
	w->in = rest;
	w->at = 0;
	do {
		r->status = 0;
		chunked = sized = false;
		line = take_line(w);
		if (!line || strncmp(line, "HTTP/1.", 7) != 0)
			return false;
		r->status = atoi(line + 9);
		while ((line = take_line(w)) && *line) {
			if (!strncasecmp(line, "content-length: ", 16)) {
				length = strtoul(line + 16, NULL, 10);
				sized = true;
			}
			chunked |=
				!strcasecmp(line, "transfer-encoding: chunked");
			r->closes |= !strcasecmp(line, "connection: close");
			if (!strncasecmp(line, "content-type: ", 14))
				snprintf(r->type, sizeof(r->type), "%s",
					 line + 14);
		}
		if (!line)
			return false;
	} while (r->status / 100 == 1);
	buf_adds(&r->body, "");
	if (chunked)
		r->whole = take_chunks(w, &r->body);
	else if (sized)
		r->whole = take_bytes(w, length, &r->body);
	else
		while (!(r->whole = !take_bytes(w, 1, &r->body) && !w->late))
			if (w->late)
				return false;
	return r->whole;
}

void web_reply_fini(struct web_reply *r)
{
	buf_fini(&r->body);
	*r = (struct web_reply){ 0 };
}

char *web_get(uint16_t port, const char *path)
{
	struct web w;
	struct web_reply r = { 0 };
	struct buf request = { 0 };
	char *body = NULL;

	if (!web_open(&w, port, 0, 60))
		return NULL;
	web_request(&request, path, NULL);
	if (web_send(&w, request.data, request.len) && web_read(&w, &r) &&
	    r.status == 200)
		body = xstrdup(r.body.data);
	buf_fini(&request);
	web_reply_fini(&r);
	web_close(&w, false);
	return body;
}

uint64_t web_metric(uint16_t port, const char *name)
{
	char *all = web_get(port, "/metrics"), *at = NULL, row[64];
	uint64_t v;

	snprintf(row, sizeof(row), "\nt0_%s ", name);
	at = all ? strstr(all, row) : NULL;
	v = at ? strtoull(at + strlen(row), NULL, 10) : UINT64_MAX;
	free(all);
	return v;
}

bool web_idle(const struct web_server *s, int wait_s)
{
	const uint64_t end = time_mono_ns() + (uint64_t)wait_s * 1000000000;
	bool idle;

	do {
		usleep(100000);
		idle = !web_metric(s->port, "texts_running") &&
		       !web_metric(s->port, "texts_waiting") &&
		       web_metric(s->port, "requests_total") ==
			       web_metric(s->port, "requests_finished_total") +
				       web_metric(s->port,
						  "requests_cancelled_total");
	} while (!idle && time_mono_ns() < end);
	return idle;
}
