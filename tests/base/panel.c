/*
 * --tui on a pseudo terminal: what the panels of four commands show, that the
 * terminal is as it was behind any end, and what happens where there is none.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "base/base.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-panel-XXXXXX";

/* A tool; valid until the next call. */
static const char *built(const char *name)
{
	const char *build = getenv("T0_BUILD");
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", build ? build : "build/rel",
		 name);
	return path;
}

struct run {
	pid_t pid;
	int fd;
	struct termios before;
	struct buf out; /* without control sequences */
	struct buf raw;
};

/* Letters only: what moves the cursor or paints is a blank. */
static void take_text(struct run *r, const char *s, size_t n)
{
	static int in; /* 1: behind ESC, 2: in a sequence */

	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (in == 2)
			in = c >= '@' && c <= '~' ? 0 : 2;
		else if (in == 1)
			in = c == '[' ? 2 : c == '(' || c == ')' ? 3 : 0;
		else if (in == 3)
			in = 0;
		else if (c == 27)
			in = 1;
		else if (c >= ' ' || c == '\n')
			buf_addc(&r->out, (char)c);
		if (in == 2 && c == '[')
			buf_addc(&r->out, ' ');
	}
	buf_add(&r->raw, s, n);
}

static void begin_run(struct run *r, const char *command, const char *term)
{
	const struct winsize size = { .ws_row = 30, .ws_col = 100 };
	int slave;

	*r = (struct run){ 0 };
	if (openpty(&r->fd, &slave, NULL, NULL, &size))
		BUG("no pseudo terminal");
	tcgetattr(r->fd, &r->before);
	r->pid = fork();
	if (!r->pid) {
		close(r->fd);
		login_tty(slave);
		setenv("TERM", term, 1);
		/* Instead of the terminal's own size. */
		unsetenv("COLUMNS");
		unsetenv("LINES");
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(slave);
}

/* Reads until it has printed `text`; NULL: until its end. */
static bool read_until(struct run *r, const char *text)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	for (;;) {
		buf_addc(&r->out, '\0');
		r->out.len--;
		if (text && strstr(r->out.data, text))
			return true;
		if (poll(&p, 1, 60000) <= 0)
			return false;
		n = read(r->fd, bytes, sizeof(bytes));
		if (n <= 0)
			return !text;
		take_text(r, bytes, (size_t)n);
	}
}

/* Its status as a shell has it, and what is true of every end. */
static int end(struct run *r, const char *name)
{
	static const char leave[] = "\033[?1049l", enter[] = "\033[?1049h",
			  shown[] = "\033[?25h";
	struct termios after;
	int status;

	tcgetattr(r->fd, &after);
	ok(read_until(r, NULL), "%s: it ends", name);
	waitpid(r->pid, &status, 0);
	tcgetattr(r->fd, &after);
	buf_addc(&r->raw, '\0');
	ok(strstr(r->raw.data, enter) && strstr(r->raw.data, leave) &&
		   strstr(r->raw.data, shown),
	   "%s: the screen comes back, and the cursor", name);
	is_u64(after.c_lflag, r->before.c_lflag,
	       "%s: keys do what they did before", name);
	close(r->fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void done(struct run *r)
{
	buf_fini(&r->out);
	buf_fini(&r->raw);
}

static const char *watch_command(const char *options)
{
	static char line[1024];

	snprintf(line, sizeof(line),
		 "exec %s watch --device soft --tui -i 50 %s",
		 built("t0-device"), options);
	return line;
}

static void test_watch(void)
{
	struct run r;

	begin_run(&r, watch_command("-n 3 -i 300"), "xterm");
	ok(read_until(&r, "t0-device: Radeon RX 7900 XTX"), "its title");
	ok(read_until(&r, "] 1/3"), "how far it is");
	ok(read_until(&r, "sclk") && read_until(&r, "500 MHz"), "sensors");
	ok(read_until(&r, "power (W)"), "a curve");
	ok(read_until(&r, "q ends"), "and how to end it");
	is_i64(end(&r, "watch"), 0, "it was right");
	ok(strstr(r.out.data, "junction"), "lines stand there afterwards");
	done(&r);
}

/* Sanitizers have their own end for it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FAULTED = 99 };
#else
enum { FAULTED = 139 };
#endif

static void test_ends(void)
{
	static const struct {
		const char *name;
		int signal, status;
	} ends[] = { { "SIGINT", SIGINT, 130 },	  { "SIGTERM", SIGTERM, 143 },
		     { "SIGHUP", SIGHUP, 129 },	  { "SIGKILL", SIGKILL, 137 },
		     { "SIGSEGV", SIGSEGV, FAULTED }, { "key q", 0, 130 } };

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct run r;

		begin_run(&r, watch_command(""), "xterm");
		ok(read_until(&r, "500 MHz"), "%s: it runs", ends[i].name);
		if (ends[i].signal)
			kill(r.pid, ends[i].signal);
		else
			ok(write(r.fd, "q", 1) == 1, "q is pressed");
		is_i64(end(&r, ends[i].name), ends[i].status,
		       "%s: the status says so", ends[i].name);
		done(&r);
	}
}

static void test_without(void)
{
	struct run r;
	char line[1024];

	begin_run(&r, watch_command("-n 1"), "dumb");
	ok(read_until(&r, "TERM names no terminal that can be drawn on; going "
			  "on without"),
	   "a terminal that cannot do it is told of");
	ok(read_until(&r, "junction"), "and lines come instead");
	read_until(&r, NULL);
	waitpid(r.pid, NULL, 0);
	close(r.fd);
	done(&r);
	snprintf(line, sizeof(line),
		 "%s watch --device soft --tui -n 1 >%s/out 2>%s/err && grep "
		 "-q 'stdout is no terminal; going on without' %s/err && "
		 "grep -q junction %s/out",
		 built("t0-device"), folder, folder, folder, folder);
	is_i64(system(line), 0, "no terminal: a message, and lines");
}

static void test_tune(void)
{
	char line[1024];
	struct run r;

	snprintf(line, sizeof(line),
		 "exec %s --shapes 64x64x64 --budget quick --device soft "
		 "--tui --db %s/tune.db",
		 built("t0-tune"), folder);
	begin_run(&r, line, "xterm");
	ok(read_until(&r, "t0-tune: best so far"), "tune: its title");
	ok(read_until(&r, "64x64x64") && read_until(&r, " TFLOPS ("),
	   "the best so far, with its configuration");
	ok(read_until(&r, "TFLOPS of each that is timed"), "and a curve");
	is_i64(end(&r, "tune"), 0, "it was right");
	ok(strstr(r.out.data, "right"), "the table stands there afterwards");
	done(&r);
}

static void test_train(void)
{
	char line[1024];
	struct run r;

	snprintf(line, sizeof(line),
		 "exec %s train --data ARCHITECTURE.md --steps 6 --length 16 "
		 "--layers 1 --hidden 16 --heads 1 --kv-heads 1 --vocab 300 "
		 "--tui %s/learnt",
		 built("t0-qwen3"), folder);
	begin_run(&r, line, "xterm");
	ok(read_until(&r, "t0-qwen3 train: "), "train: its title");
	ok(read_until(&r, "tokens/s") && read_until(&r, "gradients"),
	   "loss, speed and gradients");
	is_i64(end(&r, "train"), 0, "it was right");
	ok(strstr(r.out.data, "bits_per_byte"),
	   "the table stands there afterwards");
	done(&r);
	snprintf(line, sizeof(line),
		 "exec %s train --data ARCHITECTURE.md --steps 300 --length 16 "
		 "--medusa 2 --model %s/learnt --tui %s/heads",
		 built("t0-qwen3"), folder, folder);
	begin_run(&r, line, "xterm");
	ok(read_until(&r, "t0-qwen3 train: ") && read_until(&r, "/300"),
	   "train --medusa: its title, and how far it is");
	ok(read_until(&r, "tokens/s") && read_until(&r, "gradients"),
	   "loss, speed and gradients");
	is_i64(end(&r, "train --medusa"), 0, "it was right");
	ok(strstr(r.out.data, "right"), "the table stands there afterwards");
	done(&r);
}

static void test_serve(void)
{
	char line[1024];
	struct run r;

	snprintf(line, sizeof(line), "%s make -q --model %s/model",
		 built("t0-qwen3"), folder);
	is_i64(system(line), 0, "a model");
	snprintf(line, sizeof(line),
		 "exec %s serve --port 0 --tui --threads 1 --model %s/model",
		 built("t0-qwen3"), folder);
	begin_run(&r, line, "xterm");
	ok(read_until(&r, "t0-qwen3 serve: "), "serve: its title");
	ok(read_until(&r, "http://127.0.0.1:"), "where it listens");
	ok(read_until(&r, "0 run, 0 wait"), "who is served");
	kill(r.pid, SIGTERM);
	is_i64(end(&r, "serve"), 143, "and ends as it was told");
	ok(strstr(r.out.data, "requests finished"),
	   "what it did stands there afterwards");
	done(&r);
}

int main(void)
{
	char line[128];

	unsetenv("T0_DB");
	if (!mkdtemp(folder))
		BUG("no folder");
	test_watch();
	test_ends();
	test_without();
	test_tune();
	test_train();
	test_serve();
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
