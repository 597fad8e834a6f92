/*
 * probes/discover/batch.c - slots in child processes.
 *
 * None can take the run down with it.  A child opens the device for itself,
 * announces each slot before it runs it, and sends the result through a pipe;
 * it never touches the database.  When it dies, its last announcement names
 * the slot: the batch is cut there, without a search.  But a slot can do harm
 * that only shows at the next one.  So every verdict that another slot may
 * have caused is asked for again in a process of its own, which also proves
 * afterwards that the device still works; if the answers differ, the slot
 * before is asked, too.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/discover/discover.h"

#define OPEN_MS	    60000 /* opening the device, or bringing it back */
#define KILL_MS	    10000 /* a killed child may hang in the driver */
#define RETRIES	    3	  /* of children that get no device */
#define RETRY_US    500000

enum message_kind { MSG_BEGIN, MSG_DONE, MSG_ERROR };

/* Smaller than PIPE_BUF, so that it arrives whole or not at all. */
struct message {
	enum message_kind kind;
	int slot;
	struct probe_result result;
	struct err error;
};
_Static_assert(sizeof(struct message) <= 4096, "written in one piece");

struct child {
	pid_t pid;
	int fd;
	int at;	    /* the slot it announced and did not finish; -1 = none */
	int n_done;
	struct err error; /* what it said before it gave up */
	char death[128];  /* how it ended; empty = in order */
	bool silent;	  /* it was killed for not answering */
};

struct batch {
	const struct probe_slots *slots;
	const struct probe_batch_opts *o;
	struct err *e;
	int *suspect; /* positions in todo, to be run alone */
	int n_suspects;
};

/* ------------------------------------------------------- in the child --- */

static bool send_message(int fd, const struct message *m)
{
	ssize_t n;

	do
		n = write(fd, m, sizeof(*m));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*m);
}

static bool child_slots(const struct batch *b, int fd, const int *todo, int n,
			struct err *e)
{
	struct probe_session *s = probe_session_open(
		b->o->device, b->o->seed, b->o->deadline_ns, e);
	bool good = s;

	for (int i = 0; good && i < n; i++) {
		struct message m = { .kind = MSG_BEGIN, .slot = todo[i] };

		if (!send_message(fd, &m))
			break;
		good = probe_session_run(s, &b->slots->v[todo[i]], &m.result,
					 e);
		/* Alone, it also answers for what it leaves behind. */
		if (good && n == 1)
			good = probe_session_check(s, e);
		m.kind = MSG_DONE;
		if (good && !send_message(fd, &m))
			break;
	}
	probe_session_close(s);
	return good;
}

static _Noreturn void child_main(const struct batch *b, int fd,
				 const int *todo, int n, pid_t parent)
{
	struct message m = { .kind = MSG_ERROR };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the parent decides */
	signal(SIGPIPE, SIG_DFL);
	if (getppid() == parent && !child_slots(b, fd, todo, n, &m.error))
		send_message(fd, &m);
	/* No exit handlers: what they would close is the parent's. */
	_exit(0);
}

/* ------------------------------------------------------ in the parent --- */

static bool child_start(struct child *c, const struct batch *b,
			const int *todo, int n)
{
	const pid_t parent = getpid();
	int fd[2];

	*c = (struct child){ .at = -1, .fd = -1 };
	if (pipe(fd))
		return err_sys(b->e, ERR_IO, errno, "pipe to a child process");
	fflush(NULL);
	c->pid = fork();
	if (!c->pid) {
		close(fd[0]);
		child_main(b, fd[1], todo, n, parent);
	}
	close(fd[1]);
	c->fd = fd[0];
	if (c->pid > 0)
		return true;
	close(fd[0]);
	return err_sys(b->e, ERR_NOMEM, errno, "child process");
}

/* 1: a message; 0: the end; -1: nothing in time. */
static int child_read(struct child *c, int timeout_ms, struct message *m)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -1;
	return read(c->fd, m, sizeof(*m)) == (ssize_t)sizeof(*m);
}

static void child_reap(struct child *c)
{
	const uint64_t until = time_mono_ns() + KILL_MS * 1000000ull;
	int status = 0;
	pid_t r;

	if (c->silent)
		kill(c->pid, SIGKILL);
	close(c->fd);
	while ((r = waitpid(c->pid, &status, WNOHANG)) == 0) {
		if (time_mono_ns() > until) {
			kill(c->pid, SIGKILL);
			snprintf(c->death, sizeof(c->death),
				 "process %d hangs in the driver", c->pid);
			return;
		}
		usleep(200);
	}
	if (c->silent)
		snprintf(c->death, sizeof(c->death),
			 "its process stopped answering and was killed");
	else if (r > 0 && WIFSIGNALED(status))
		snprintf(c->death, sizeof(c->death),
			 "its process died of signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (r > 0 && WEXITSTATUS(status))
		snprintf(c->death, sizeof(c->death), "its process exited %d",
			 WEXITSTATUS(status));
}

/* Is this verdict one that an earlier slot may have caused? */
static bool is_doubtful(const struct probe_result *r)
{
	return r->verdict == RES_SLOT_HANGS || r->verdict == RES_SLOT_FAULTS ||
	       (r->verdict == RES_SLOT_UNPROVEN && !r->unsupported);
}

static bool is_batch_stopped(const struct batch *b)
{
	return b->o->stop && *b->o->stop;
}

/* A doubtful verdict of a slot among others is not told: it comes again. */
static bool take_result(struct batch *b, const struct message *m, int pos,
			struct probe_result *alone)
{
	if (alone) {
		*alone = m->result;
	} else if (is_doubtful(&m->result)) {
		b->suspect[b->n_suspects++] = pos;
		return true;
	}
	return b->o->done(b->o->ctx, m->slot, &m->result);
}

/*
 * Take messages until the child ends; false when the run is to stop.  `alone`
 * is given when it has one slot only.
 */
static bool child_listen(struct child *c, struct batch *b, int first,
			 struct probe_result *alone)
{
	const int slot_ms = (int)(b->o->deadline_ns / 1000000) * 4 + OPEN_MS;
	struct message m;
	bool go = true;
	int r = 0;

	while (go && !is_batch_stopped(b) &&
	       (r = child_read(c, slot_ms, &m)) > 0) {
		if (m.kind == MSG_BEGIN) {
			c->at = m.slot;
		} else if (m.kind == MSG_ERROR) {
			c->error = m.error;
		} else {
			c->at = -1;
			go = take_result(b, &m, first + c->n_done, alone);
			c->n_done++;
		}
	}
	c->silent = !go || is_batch_stopped(b) || r < 0;
	child_reap(c);
	return go && !is_batch_stopped(b);
}

/* A slot whose process, with nothing else in it, did not come to an end. */
static struct probe_result verdict_of_death(const struct child *c)
{
	struct probe_result r = { .verdict = c->silent ? RES_SLOT_HANGS :
							 RES_SLOT_FAULTS };

	if (c->error.code)
		snprintf(r.reason, sizeof(r.reason),
			 "left the device unusable: %.200s", c->error.msg);
	else
		snprintf(r.reason, sizeof(r.reason), "%s", c->death);
	return r;
}

/* No slot was begun: no device.  It may come back after a reset. */
static bool no_device(struct batch *b, const struct child *c, int *tries)
{
	if (++*tries < RETRIES) {
		usleep(RETRY_US);
		return true;
	}
	if (c->error.code)
		*b->e = c->error;
	else
		err_set(b->e, ERR_DEVICE, "%s before its first slot",
			*c->death ? c->death : "a child ended");
	return err_wrap(b->e, "no child process gets the device (%d tries)",
			RETRIES);
}

static bool run_alone(struct batch *b, const int *todo, int pos,
		      struct probe_result *r)
{
	struct child c;
	int tries = 0;

	do {
		if (!b->o->idle(b->o->ctx) ||
		    !child_start(&c, b, todo + pos, 1) ||
		    !child_listen(&c, b, pos, r))
			return false;
		if (c.n_done)
			return true;
	} while (c.at < 0 && no_device(b, &c, &tries));
	if (c.at < 0)
		return false;
	*r = verdict_of_death(&c);
	return b->o->done(b->o->ctx, todo[pos], r);
}

/* The suspects again; also who ran before one that was innocent. */
static bool run_suspects(struct batch *b, const int *todo)
{
	for (int i = 0; i < b->n_suspects; i++) {
		const int pos = b->suspect[i];
		struct probe_result r;

		if (!run_alone(b, todo, pos, &r))
			return false;
		if (!is_doubtful(&r) && pos && !run_alone(b, todo, pos - 1, &r))
			return false;
	}
	return true;
}

static bool run_all(struct batch *b, const int *todo, int n)
{
	int pos = 0, tries = 0;

	while (pos < n) {
		const int left = n - pos, size = b->o->slots_per_child;
		struct child c;

		if (!b->o->idle(b->o->ctx) ||
		    !child_start(&c, b, todo + pos, left < size ? left : size))
			return false;
		if (!child_listen(&c, b, pos, NULL))
			return false;
		pos += c.n_done;
		if (c.at >= 0)
			b->suspect[b->n_suspects++] = pos++;
		else if (!c.n_done && !no_device(b, &c, &tries))
			return false;
		else if (c.n_done)
			tries = 0;
	}
	return true;
}

bool probe_batch(const struct probe_slots *slots, const int *todo, int n,
		 const struct probe_batch_opts *o, struct err *e)
{
	struct batch b = { .slots = slots, .o = o, .e = e };
	bool good;

	b.suspect = xcalloc((size_t)n + 1, sizeof(*b.suspect));
	good = run_all(&b, todo, n) && run_suspects(&b, todo);
	free(b.suspect);
	return good;
}
