/* base/progress.c: a bar on a terminal, and nothing elsewhere. */
#include <errno.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

static char seen[65536];

/* Runs in a child whose stderr is a terminal or a pipe. */
static void work(bool quiet, unsigned steps)
{
	struct progress p;
	struct timespec pause = { .tv_nsec = 1000000 };

	progress_init(&p, "slots", 200, quiet);
	for (unsigned i = 0; i < steps; i++) {
		progress_step(&p, 1);
		if (i == steps / 2)
			progress_warn(&p, "t0-x", "slot %u is odd", i);
		nanosleep(&pause, NULL);
	}
	progress_fini(&p);
}

/* Everything the child writes to stderr goes into `seen`. */
static bool watch(bool terminal, bool quiet, const char *term)
{
	int fd[2];

	if (terminal ? openpty(&fd[0], &fd[1], NULL, NULL, NULL) : pipe(fd))
		return false;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		if (term)
			setenv("TERM", term, 1);
		else
			unsetenv("TERM");
		work(quiet, 200);
		exit(0);
	}
	close(fd[1]);
	size_t len = 0;
	ssize_t n;
	/* A terminal whose other end is closed reads as EIO. */
	while ((n = read(fd[0], seen + len, sizeof(seen) - 1 - len)) > 0)
		len += (size_t)n;
	seen[len] = '\0';
	close(fd[0]);
	waitpid(pid, NULL, 0);
	return true;
}

static unsigned occurrences(const char *part)
{
	unsigned n = 0;

	for (const char *s = seen; (s = strstr(s, part)); s++)
		n++;
	return n;
}

int main(void)
{
	static const char warning[] = "t0-x: warning: slot 100 is odd\n";

	ok(watch(false, false, "xterm"), "runs into a pipe");
	is_str(seen, warning, "no terminal: only the warning");
	if (!watch(true, false, "xterm")) {
		skip("no pseudo-terminal: %s", strerror(errno));
		return plan_done();
	}
	has_str(seen, "slots [", "a terminal: a bar");
	has_str(seen, "/200  ", "with the count");
	has_str(seen, " s left", "and the time left");
	has_str(seen, "\r\033[Kt0-x: warning: slot 100 is odd\r\n",
		"the bar is cleared before the warning");
	is_str(seen + (strlen(seen) > 4 ? strlen(seen) - 4 : 0), "\r\033[K",
	       "the line is cleared at the end");
	/* 200 steps take at least 0.2 s; noise only makes it longer. */
	ok(occurrences("slots [") >= 2, "the bar is redrawn");
	ok(occurrences("slots [") < 100, "but not for every step");
	ok(watch(true, true, "xterm") && !strstr(seen, "slots ["),
	   "quiet: no bar");
	ok(watch(true, false, "dumb") && !strstr(seen, "slots ["),
	   "a dumb terminal: no bar");
	ok(watch(true, false, NULL) && !strstr(seen, "slots ["),
	   "a terminal without a name: no bar");
	return plan_done();
}
