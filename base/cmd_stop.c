/*
 * base/cmd_stop.c - what ends a command from outside, and closed streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cmd_int.h"

/* ---- closed streams ---- */

void cmd_open_streams(void)
{
	/* The wrong way round, so that using one is an error as before. */
	static const int mode[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", mode[fd]);
}

/* ---- signals and the deadline ---- */

/* A call that was refused says why, and what it was for. */
static void on_refusal(int sig)
{
	(void)sig;
}

void cmd_refuse_quietly(void)
{
	/* Not SIG_IGN, which programs that a tool runs would inherit. */
	const struct sigaction sa = { .sa_handler = on_refusal,
				      .sa_flags = SA_RESTART };

	sigaction(SIGXFSZ, &sa, NULL);
}

/* Of the process, as signals are. */
static _Atomic int signalled;
static char at_once[64]; /* what the end of --deadline says; "": is caught */

/*
 * Who waits in write() for a reader that does not read, not for so long either,
 * goes on when the call, restarted, finds /dev/null there.
 */
static void leave_full_pipe(void)
{
	enum { SLOW_READER_MS = 200 };
	const int fd[] = { STDOUT_FILENO, STDERR_FILENO };
	const int error = errno;
	int null;

	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		struct pollfd p = { fd[i], POLLOUT, 0 };

		if (poll(&p, 1, SLOW_READER_MS) != 0)
			continue;
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0) {
			dup2(null, fd[i]);
			close(null);
		}
	}
	errno = error;
}

static void on_signal(int sig)
{
	if (sig == SIGALRM && *at_once) {
		if (write(STDERR_FILENO, at_once, strlen(at_once)) < 0)
			_exit(EXIT_FAULT);
		_exit(EXIT_FAULT);
	}
	leave_full_pipe();
	signalled = sig;
}

bool cmd_is_stopped(void)
{
	return signalled;
}

static void catch_one(int sig)
{
	const struct sigaction sa = {
		.sa_handler = on_signal,
		.sa_flags = SA_RESTART | (int)SA_RESETHAND
	};

	sigaction(sig, &sa, NULL);
}

static void set_timer(uint64_t ns)
{
	const uint64_t us = (ns + 999) / 1000;
	const struct itimerval t = { .it_value = {
		(time_t)(us / 1000000), (suseconds_t)(us % 1000000) } };

	setitimer(ITIMER_REAL, &t, NULL);
}

void cmd_stop_begin(struct cmd *c)
{
	signalled = 0;
	c->stop = &signalled;
	if (!c->deadline_ns)
		return;
	snprintf(at_once, sizeof(at_once),
		 "%s: not done after --deadline %g\n", c->tool->name,
		 (double)c->deadline_ns * 1e-9);
	catch_one(SIGALRM);
	set_timer(c->deadline_ns);
}

const _Atomic int *cmd_catch_signals(const struct cmd *c)
{
	struct sigaction hup;

	*at_once = '\0';
	catch_one(SIGINT);
	catch_one(SIGTERM);
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		catch_one(SIGHUP);
	return c->stop;
}

int cmd_stop_status(int signal)
{
	return signal == SIGALRM ? EXIT_FAULT : 128 + signal;
}

bool cmd_stop_end(const struct cmd *c, struct err *e, int *status)
{
	char by[64];

	if (c->deadline_ns)
		set_timer(0);
	if (!signalled)
		return false;
	*status = cmd_stop_status(signalled);
	if (signalled == SIGALRM)
		snprintf(by, sizeof(by), "--deadline %g",
			 (double)c->deadline_ns * 1e-9);
	else
		snprintf(by, sizeof(by), "SIG%s", sigabbrev_np(signalled));
	if (e->code == ERR_NONE)
		err_set(e, ERR_STOPPED, "%s",
			c->kept ? c->kept : "what was finished is kept");
	err_wrap(e, "stopped by %s", by);
	return true;
}
