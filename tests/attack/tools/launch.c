/*
 * A tool is started with the attack's words, environment, streams and limits,
 * and watched until it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

enum { NOBODY = 65534 };

void word_add(struct attack *a, const char *word)
{
	vec_push(&a->words, arena_strdup(&a->mem, word));
}

void environ_set(struct attack *a, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = strcspn(text, "=");
	for (size_t i = 0; i < a->environ.n; i++)
		if (strcspn(a->environ.v[i], "=") == len &&
		    !strncmp(a->environ.v[i], text, len)) {
			a->environ.v[i] = arena_strdup(&a->mem, text);
			return;
		}
	vec_push(&a->environ, arena_strdup(&a->mem, text));
}

void environ_usual(struct attack *a)
{
	static const char *const sanitizers[] = {
		"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
	};

	a->environ.n = 0;
	environ_set(a, "PATH=%s:/usr/local/bin:/usr/bin:/bin", a->c->build);
	environ_set(a, "HOME=%s", a->folder);
	environ_set(a, "TMPDIR=%s", a->folder);
	environ_set(a, "XDG_CACHE_HOME=%s/cache", a->folder);
	environ_set(a, "GIT_CEILING_DIRECTORIES=%s", a->c->scratch);
	environ_set(a, "T0_DEVICE=soft");
	environ_set(a, "LANG=C.UTF-8");
	for (size_t i = 0; i < ARRAY_SIZE(sanitizers); i++)
		if (getenv(sanitizers[i]))
			environ_set(a, "%s=%s", sanitizers[i],
				    getenv(sanitizers[i]));
}

void limit_set(struct attack *a, int which, rlim_t value)
{
	for (int i = 0; i < a->n_limits; i++)
		if (a->limits[i].which == which) {
			a->limits[i].value = value;
			return;
		}
	if (a->n_limits == ARRAY_SIZE(a->limits))
		BUG("more limits than there is room for");
	a->limits[a->n_limits++] = (struct limit){ which, value };
}

/* ---- in the child ---- */

static void open_stream(int fd, enum stream how, const char *usual)
{
	const bool in = fd == STDIN_FILENO;
	int opened = -1, ends[2];

	switch (how) {
	case STREAM_USUAL:
		opened = in ? open("/dev/null", O_RDONLY) :
			      open(usual, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
				   0666);
		break;
	case STREAM_CLOSED:
		close(fd);
		return;
	case STREAM_FULL:
		opened = open("/dev/full", O_RDWR);
		break;
	case STREAM_GONE:
		if (pipe(ends) == 0) {
			opened = ends[!in];
			close(ends[in]);
		}
		break;
	case STREAM_WRONG:
		opened = open("/dev/null", in ? O_WRONLY : O_RDONLY);
		break;
	}
	if (opened >= 0 && opened != fd) {
		dup2(opened, fd);
		close(opened);
	}
}

/* What the attack says, and nothing else. */
static char **make_environ(const struct attack *a)
{
	static char *list[64];
	int n = 0;

	for (size_t i = 0; i < a->environ.n && n < 63; i++)
		if (strchr(a->environ.v[i], '='))
			list[n++] = a->environ.v[i];
	list[n] = NULL;
	return list;
}

static _Noreturn void run_child(struct attack *a, const struct launched *l)
{
	VEC(char *) argv = { 0 };
	struct buf path = { 0 };
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	buf_printf(&path, "%s/%s", a->c->build, a->tool);
	vec_push(&argv, arena_strdup(&a->mem, a->tool));
	for (size_t i = 0; i < a->words.n; i++)
		vec_push(&argv, a->words.v[i]);
	vec_push(&argv, NULL);
	char **environ_list = make_environ(a);
	if (chdir(a->folder))
		_exit(126);
	umask(0);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	open_stream(STDIN_FILENO, a->stream[0], NULL);
	open_stream(STDOUT_FILENO, a->stream[1], l->out);
	open_stream(STDERR_FILENO, a->stream[2], l->err);
	if (a->c->drop && (setgroups(0, NULL) || setgid(NOBODY) ||
			   setuid(NOBODY)))
		_exit(126);
	for (int i = 0; i < a->n_limits; i++) {
		const struct rlimit r = { a->limits[i].value,
					  a->limits[i].value };

		setrlimit((__rlimit_resource_t)a->limits[i].which, &r);
	}
	execve(path.data, argv.v, environ_list);
	_exit(126);
}

/* ---- outside ---- */

bool launch_begin(struct attack *a, struct launched *l, int serial)
{
	snprintf(l->out, sizeof(l->out), "%s/out%d", a->c->room, serial);
	snprintf(l->err, sizeof(l->err), "%s/err%d", a->c->room, serial);
	fflush(NULL);
	l->start_ns = time_mono_ns();
	l->pid = fork();
	if (l->pid == 0)
		run_child(a, l);
	l->pidfd = l->pid > 0 ? (int)syscall(SYS_pidfd_open, l->pid, 0) : -1;
	if (l->pidfd >= 0)
		return true;
	fault(a, "the campaign cannot start a process: %s", strerror(errno));
	return false;
}

/* False: it still runs after that. */
static bool wait_end(const struct launched *l, uint64_t us)
{
	struct pollfd p = { .fd = l->pidfd, .events = POLLIN };
	const struct timespec t = { (time_t)(us / 1000000),
				    (long)(us % 1000000) * 1000 };

	return ppoll(&p, 1, &t, NULL) > 0;
}

/* What may last gets so long until it is asked to end. */
enum { LASTS_US = 2000000 };

static uint64_t patience_us(const struct attack *a)
{
	return (a->c->sanitized ? 600 : 120) * UINT64_C(1000000);
}

static bool wait_watched(struct attack *a, struct launched *l,
			 struct outcome *o)
{
	if (a->signal) {
		if (wait_end(l, a->signal_us))
			return true;
		kill(l->pid, a->signal);
	}
	if (a->may_last) {
		if (wait_end(l, LASTS_US))
			return true;
		o->stopped = true;
		if (getenv("T0_ATTACK_TELL"))
			fprintf(stderr, "# attack %ju (%s) lasts\n",
				(uintmax_t)a->number, a->family->name);
		kill(l->pid, SIGTERM);
	}
	return wait_end(l, patience_us(a));
}

static void read_stream(const char *path, struct buf *out)
{
	struct err e = { 0 };

	buf_adds(out, "");
	file_read(path, 0, out, &e);
	unlink(path);
}

void launch_end(struct attack *a, struct launched *l, struct outcome *o)
{
	int status = 0;

	*o = (struct outcome){ 0 };
	o->hung = !wait_watched(a, l, o);
	/* The group is the attack's own; what it left behind goes with it. */
	if (o->hung)
		kill(l->pid, SIGKILL);
	waitpid(l->pid, &status, 0);
	kill(-l->pid, SIGKILL);
	close(l->pidfd);
	o->seconds = (double)(time_mono_ns() - l->start_ns) * 1e-9;
	o->killed = WIFSIGNALED(status);
	o->status = o->killed ? WTERMSIG(status) : WEXITSTATUS(status);
	read_stream(l->out, &o->out);
	read_stream(l->err, &o->err);
}

void launch(struct attack *a, struct outcome *o)
{
	struct launched l;

	*o = (struct outcome){ 0 };
	if (launch_begin(a, &l, 0))
		launch_end(a, &l, o);
}

void outcome_fini(struct outcome *o)
{
	buf_fini(&o->out);
	buf_fini(&o->err);
}
