/*
 * base/panel/keeper.c - the terminal comes back, however the process ends: a
 * child waits for that, as no handler of signals can for SIGKILL.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/panel/panel_int.h"

/* Colours off, the cursor, the screen as it was (xterm's control sequences). */
static const char back[] = "\033[0m\033[?25h\033[?1049l\r";

static void write_all(int fd, const char *data, size_t n)
{
	while (n) {
		const ssize_t some = write(fd, data, n);

		if (some <= 0)
			return;
		data += some;
		n -= (size_t)some;
	}
}

/* What was written meanwhile. */
static void say_all(int said, int to)
{
	char bytes[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(said, bytes, sizeof(bytes), at)) > 0) {
		write_all(to, bytes, (size_t)n);
		at += n;
	}
}

/* A byte: the terminal was given back.  None: the process has ended. */
static void keep_terminal(const struct keeper *k, int from,
			  const struct termios *how)
{
	static const int not_mine[] = { SIGINT,	 SIGTERM, SIGHUP, SIGQUIT,
					SIGTSTP, SIGTTOU, SIGPIPE };
	char byte;

	for (size_t i = 0; i < sizeof(not_mine) / sizeof(*not_mine); i++)
		signal(not_mine[i], SIG_IGN);
	from = fcntl(from, F_DUPFD, 10); /* which may be 3 or 5 */
	dup2(k->terminal, 3);
	dup2(from, 4);
	dup2(k->said, 5);
	closefrom(6);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	if (read(4, &byte, 1) == 0) {
		write_all(3, back, sizeof(back) - 1);
		tcsetattr(3, TCSANOW, how);
		say_all(5, 3);
	}
	_exit(0);
}

bool keeper_begin(struct keeper *k)
{
	struct termios how;
	int ends[2];

	*k = (struct keeper){ .child = -1, .was_stderr = -1, .said = -1 };
	if (tcgetattr(STDOUT_FILENO, &how) || pipe2(ends, O_CLOEXEC))
		return false;
	fflush(stdout);
	fflush(stderr);
	k->alive = ends[1];
	k->terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	k->said = memfd_create("panel", MFD_CLOEXEC);
	k->child = fork();
	if (k->child == 0) {
		close(ends[1]);
		keep_terminal(k, ends[0], &how);
	}
	close(ends[0]);
	if (k->child < 0 || k->said < 0 || k->terminal < 0)
		return false;
	if (isatty(STDERR_FILENO)) {
		k->was_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
		dup2(k->said, STDERR_FILENO);
	}
	dup2(k->said, STDOUT_FILENO);
	return true;
}

void keeper_end(struct keeper *k)
{
	if (k->child < 0)
		return;
	fflush(stdout);
	fflush(stderr);
	dup2(k->terminal, STDOUT_FILENO);
	if (k->was_stderr >= 0) {
		dup2(k->was_stderr, STDERR_FILENO);
		close(k->was_stderr);
	}
	say_all(k->said, k->terminal);
	write_all(k->alive, "", 1);
	waitpid(k->child, NULL, 0);
	close(k->alive);
	close(k->terminal);
	close(k->said);
}

void keeper_last_line(const struct keeper *k, char *out, size_t size)
{
	const off_t end = lseek(k->said, 0, SEEK_END);
	const off_t from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
	ssize_t n = pread(k->said, out, size - 1, from);
	char *line;

	fflush(stdout);
	out[n > 0 ? n : 0] = 0;
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r'))
		out[--n] = 0;
	line = strrchr(out, '\n');
	if (line)
		memmove(out, line + 1, strlen(line));
}
