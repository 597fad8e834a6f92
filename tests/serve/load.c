/*
 * t0-qwen3 load against servers of known delays and known faults: its rows
 * against what the server says it did, its sums against rows.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

/* ---- the server ---- */

enum { PIECES = 5, MOST = 4096 };
static const double first_s = 0.05, next_s = 0.02;

/* What the server does with requests, by the last word of their model. */
static const char *const ways[] = {
	"good", "busy",	 "status", "cut",   "text",
	"told", "empty", "slow",   "close", "fast"
};

static int listener;
static uint16_t port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: of requests that were answered, in the order of their ends. */
static struct {
	double first, last;
} done[MOST];
static int n_done;

static void forget_done(void)
{
	pthread_mutex_lock(&lock);
	n_done = 0;
	pthread_mutex_unlock(&lock);
}

static int count_done(void)
{
	pthread_mutex_lock(&lock);
	const int n = n_done;
	pthread_mutex_unlock(&lock);
	return n;
}

static double now(void)
{
	return (double)time_mono_ns() * 1e-9;
}

static void nap(double s)
{
	usleep((useconds_t)(s * 1e6));
}

static void put(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

static const char *read_request(int fd)
{
	static _Thread_local char text[1 << 16];
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
		const char *body = strstr(text, "\r\n\r\n");
		const char *size = strcasestr(text, "content-length:");
		if (body && size &&
		    strlen(body + 4) >= strtoul(size + 15, NULL, 10))
			return text;
	}
	return NULL;
}

static const char *way_of(const char *request)
{
	const char *model = strstr(request, "\"model\":\"");

	for (size_t i = 0; model && i < ARRAY_SIZE(ways); i++)
		if (!strncmp(model + 9, ways[i], strlen(ways[i])))
			return ways[i];
	return "none";
}

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: "
			   "text/event-stream\r\nConnection: close\r\n\r\n";

static void stream(int fd, bool fast, bool whole)
{
	double first = 0, last = 0;

	put(fd, head);
	put(fd, ": a remark\r\n\r\n");
	for (int i = 0; i < PIECES; i++) {
		if (!fast)
			nap(i ? next_s : first_s);
		last = now();
		first = i ? first : last;
		put(fd, "data: {\"choices\":[{\"index\":0,\"text\":\"word \","
			"\"finish_reason\":null}]}\r\n\r\n");
	}
	if (!whole)
		return;
	/* Who has read the end finds it here. */
	pthread_mutex_lock(&lock);
	done[n_done].first = first;
	done[n_done++].last = last;
	pthread_mutex_unlock(&lock);
	/* Two tokens a piece, but one. */
	put(fd, "data: {\"choices\":[{\"index\":0,\"text\":\"\","
		"\"finish_reason\":\"length\"}]}\n\n"
		"data: {\"choices\":[],\"usage\":{\"completion_tokens\":9}}\n\n"
		"data: [DONE]\n\n");
}

static void *answer(void *ctx)
{
	const int fd = (int)(intptr_t)ctx;
	const char *request = read_request(fd), *way;

	way = request ? way_of(request) : "none";
	if (!strcmp(way, "good") || !strcmp(way, "fast"))
		stream(fd, !strcmp(way, "fast"), true);
	else if (!strcmp(way, "cut"))
		stream(fd, true, false);
	else if (!strcmp(way, "busy"))
		put(fd, "HTTP/1.1 429 Too Many\r\nConnection: close\r\n"
			"Content-Length: 4\r\n\r\nbusy");
	else if (!strcmp(way, "status"))
		put(fd, "HTTP/1.1 500 Broken\r\nConnection: close\r\n"
			"Content-Length: 6\r\n\r\nbroken");
	else if (!strcmp(way, "text"))
		put(fd, head), put(fd, "data: {no json\n\ndata: [DONE]\n\n");
	else if (!strcmp(way, "told"))
		put(fd, head), put(fd, "data: {\"error\":{\"message\":\"out of "
				       "luck\"}}\n\ndata: [DONE]\n\n");
	else if (!strcmp(way, "empty"))
		put(fd, head), put(fd, "data: [DONE]\n\n");
	else if (!strcmp(way, "slow"))
		nap(3);
	close(fd);
	return NULL;
}

static void *serve(void *ctx)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		pthread_t t;
		if (pthread_create(&t, NULL, answer, (void *)(intptr_t)fd))
			break;
		pthread_detach(t);
	}
	return ctx;
}

static void start(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	pthread_t t;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, n) ||
	    listen(listener, 1024) ||
	    getsockname(listener, (struct sockaddr *)&at, &n) ||
	    pthread_create(&t, NULL, serve, NULL))
		BUG("no server: %s", strerror(errno));
	pthread_detach(t);
	port = ntohs(at.sin_port);
}

/* ---- the tool ---- */

static char folder[] = "/tmp/t0-load-XXXXXX";

struct row {
	double sample, due, sent, first, last, tokens, gap[PIECES];
	int gaps;
	char end[32];
};
static struct row rows[MOST];
static int n_rows;

static void read_rows(void)
{
	char path[256], line[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", folder);
	n_rows = 0;
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		BUG("no log");
	while (fgets(line, sizeof(line), f)) {
		struct row *r = &rows[n_rows++];
		char *field[10], *at = line;
		*r = (struct row){ 0 };
		for (int i = 0; i < 10; i++)
			field[i] = strsep(&at, ",");
		r->sample = atof(field[1]);
		r->due = atof(field[2]);
		r->sent = atof(field[3]);
		r->first = atof(field[4]);
		r->last = atof(field[5]);
		r->tokens = atof(field[6]);
		snprintf(r->end, sizeof(r->end), "%s", field[7]);
		for (char *g = field[8]; *g && *g != '\n'; r->gaps++)
			r->gap[r->gaps] = strtod(g, &g);
	}
	fclose(f);
}

/* The exit status; the table is in `out`, as CSV without its first line. */
static int load(const char *options, char *out, size_t size)
{
	const char *build = getenv("T0_BUILD");
	char line[1024], table[2048] = "";
	FILE *p;
	size_t n;

	snprintf(line, sizeof(line),
		 "%s/t0-qwen3 load -q --csv --db %s/db --log %s/log "
		 "--url http://127.0.0.1:%u --tokens 9 %s 2>&1",
		 build ? build : "build/rel", folder, folder, port, options);
	p = popen(line, "r");
	n = p ? fread(table, 1, sizeof(table) - 1, p) : 0;
	table[n] = '\0';
	snprintf(out, size, "%s",
		 strchr(table, '\n') ? strchr(table, '\n') + 1 : table);
	return p ? WEXITSTATUS(pclose(p)) : -1;
}

/* ---- what rows come to, by counting ---- */

/* The smallest x that is not below a share q of all, interpolated as numpy. */
static double share_of(const double *v, int n, double q)
{
	double place = q * (n - 1), low = 0, high = 0;
	int k = (int)place;

	for (int i = 0; i < n; i++) {
		int below = 0, equal = 0;
		for (int j = 0; j < n; j++) {
			below += v[j] < v[i];
			equal += v[j] == v[i];
		}
		if (below <= k && k < below + equal)
			low = v[i];
		if (below <= k + 1 && k + 1 < below + equal)
			high = v[i];
	}
	return k + 1 < n ? low + (place - k) * (high - low) : low;
}

static void check_close(double got, double wanted, const char *what)
{
	if (!ok(fabs(got - wanted) <= 1e-4 * fabs(wanted) + 1e-7, "%s", what))
		diag("got %.9g, wanted %.9g", got, wanted);
}

static void test_sums(void)
{
	static double first[MOST], gap[MOST], late[MOST];
	double col[13], end = 0, tokens = 0, good = 0;
	char out[2048], *at = out;
	int n = 0, gaps = 0, n_late = 0;

	forget_done();
	is_i64(load("--model good --request-rate 50 --requests 60 --samples 1 "
		    "--within-first 0.056 --within-token 0.0105",
		    out, sizeof(out)),
	       0, "a good server is measured");
	read_rows();
	is_i64(n_rows, 60, "a row for each request");
	is_i64(count_done(), 60, "and the server had them");
	for (int i = 0; i < 12; i++) {
		char *field = strsep(&at, ",");
		col[i] = field ? atof(field) : NAN;
	}
	for (int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		first[n++] = r->first - r->due;
		late[n_late++] = r->sent - r->due;
		for (int k = 0; k < r->gaps; k++)
			gap[gaps++] = r->gap[k];
		tokens += r->tokens;
		end = r->last > end ? r->last : end;
		good += r->first - r->due <= 0.056 &&
			(r->last - r->first) / 8 <= 0.0105;
	}
	check_close(col[2], tokens / end, "throughput is that of the rows");
	check_close(col[3], 60 / end, "answers a second");
	check_close(col[4], good / end, "goodput");
	check_close(col[5], share_of(first, n, 0.5), "first token, median");
	check_close(col[6], share_of(first, n, 0.9), "first token, p90");
	check_close(col[7], share_of(first, n, 0.99), "first token, p99");
	check_close(col[8], share_of(gap, gaps, 0.5), "next token, median");
	check_close(col[9], share_of(gap, gaps, 0.9), "next token, p90");
	check_close(col[10], share_of(gap, gaps, 0.99), "next token, p99");
	check_close(col[11], share_of(late, n_late, 0.99),
		    "the client's delay");
	is_i64(gaps, 60 * (PIECES - 1), "a gap between any two pieces");
	is_f64(tokens, 60 * 9, "tokens are those that the server counts");
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* After test_sums(): rows against the clock of the server. */
static void test_delays(void)
{
	static double client[MOST], server[MOST];
	int early = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_rows; i++) {
		early += rows[i].first - rows[i].sent < first_s;
		client[i] = rows[i].last;
		server[i] = done[i].last;
	}
	pthread_mutex_unlock(&lock);
	is_i64(early, 0, "no token is seen before it was sent");
	qsort(client, (size_t)n_rows, sizeof(*client), by_value);
	qsort(server, (size_t)n_rows, sizeof(*server), by_value);
	/* The clocks differ by when the run began, and by what came late. */
	for (int i = 0; i < n_rows; i++)
		client[i] -= server[i];
	qsort(client, (size_t)n_rows, sizeof(*client), by_value);
	ok(client[n_rows / 2] - client[0] < 0.1,
	   "and most are seen when they were sent");
}

/* Gaps between requests are exponential: Kolmogorov's distance. */
static void test_arrivals(void)
{
	const double rate = 2000;
	char out[2048];
	double worst = 0;
	int below_zero = 0;

	forget_done();
	is_i64(load("--model fast --request-rate 2000 --requests 1000 "
		    "--samples 1 --seed 7",
		    out, sizeof(out)),
	       0, "many requests");
	read_rows();
	for (int i = 0; i < n_rows; i++) {
		double gap = rows[i].due - (i ? rows[i - 1].due : 0);
		double below = 0;
		below_zero += gap < 0;
		for (int k = 0; k < n_rows; k++)
			below += rows[k].due - (k ? rows[k - 1].due : 0) <= gap;
		worst = fmax(worst,
			     fabs(below / n_rows - 1 + exp(-rate * gap)));
	}
	is_i64(below_zero, 0, "they are in order");
	/* 1.63 / sqrt(n): one in a hundred seeds would fail. */
	if (!ok(worst < 1.63 / sqrt(n_rows), "and a Poisson process"))
		diag("distance %.4f", worst);
	static double due[MOST];
	const int n = n_rows;
	for (int i = 0; i < n; i++)
		due[i] = rows[i].due;
	load("--model fast --request-rate 2000 --requests 1000 --samples 1 "
	     "--seed 7",
	     out, sizeof(out));
	read_rows();
	int same = 0;
	for (int i = 0; i < n; i++)
		same += due[i] == rows[i].due;
	is_i64(same, n, "of its seed");
}

/* Answers take 130 ms, and requests come every 10: none waits for another. */
static void test_open(void)
{
	char path[256], out[2048];
	int late = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", folder);
	f = fopen(path, "w");
	for (int i = 0; f && i < 40; i++)
		fprintf(f,
			"{\"timestamp\": %d, \"input_length\": 3, "
			"\"output_length\": 9}\n",
			i * 10);
	if (!f || fclose(f))
		BUG("no trace");
	snprintf(path, sizeof(path),
		 "--model good --samples 2 --trace %s/trace", folder);
	forget_done();
	is_i64(load(path, out, sizeof(out)), 0, "a trace");
	read_rows();
	is_i64(n_rows, 80, "as often as there are samples");
	int wrong = 0;
	for (int i = 0; i < n_rows; i++) {
		wrong += fabs(rows[i].due - i % 40 * 0.01) > 1e-9;
		late += rows[i].sent - rows[i].due > 0.1;
	}
	is_i64(wrong, 0, "at its times");
	is_i64(late, 0, "whatever became of those before");
}

static void test_errors(void)
{
	static const struct {
		const char *model, *options, *end;
	} kinds[] = {
		{ "busy", "", "busy 3" },
		{ "status", "", "status 3" },
		{ "cut", "", "cut 3" },
		{ "close", "", "cut 3" },
		{ "text", "", "malformed 3" },
		{ "told", "", "told 3" },
		{ "empty", "", "empty 3" },
		{ "slow", "--timeout 1", "timeout 3" },
		{ "good", "--url http://127.0.0.1:1", "unreached 3" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char options[256], out[2048];
		snprintf(options, sizeof(options),
			 "--model %s --request-rate 100 --requests 3 --samples "
			 "1 %s",
			 kinds[i].model, kinds[i].options);
		is_i64(load(options, out, sizeof(out)), 1,
		       "%s, %s: requests have failed", kinds[i].model,
		       kinds[i].end);
		has_str(out, kinds[i].end, "and are counted, %s",
			kinds[i].model);
	}
}

int main(void)
{
	char line[256];

	unsetenv("http_proxy");
	unsetenv("T0_DB");
	if (!mkdtemp(folder))
		BUG("no folder");
	start();
	test_sums();
	test_delays();
	test_arrivals();
	test_open();
	test_errors();
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
