/*
 * results/process/process.c - other programs: found, run, and quoted where they
 * fail.
 */
#include "results/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

char *program_find(const char *name, struct err *e)
{
	const char *path = getenv("PATH");
	struct buf b = { 0 };

	if (strchr(name, '/') || !path) {
		char *real = realpath(name, NULL);
		if (!real || access(real, X_OK))
			err_sys(e, ERR_INPUT, errno, "%s: no program", name);
		else
			return real;
		free(real);
		return NULL;
	}
	for (size_t len; *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		buf_reset(&b);
		buf_printf(&b, "%.*s/%s", (int)len, path, name);
		if (!access(b.data, X_OK))
			return b.data;
	}
	buf_fini(&b);
	err_set(e, ERR_INPUT, "%s: no such program in PATH", name);
	return NULL;
}

/* The environment with these set; the strings are `set`'s.  free() it. */
static char **environment(const char *const *set, size_t n)
{
	size_t have = 0, k = 0;

	while (environ[have])
		have++;
	char **env = xcalloc(have + n + 1, sizeof(*env));
	for (size_t i = 0; i < have; i++) {
		bool replaced = false;
		for (size_t j = 0; j < n; j++) {
			size_t len = strcspn(set[j], "=") + 1;
			replaced |= !strncmp(environ[i], set[j], len);
		}
		if (!replaced)
			env[k++] = environ[i];
	}
	memcpy(env + k, set, n * sizeof(*env));
	return env;
}

static bool start_child(const struct process *p, pid_t *child, struct err *e)
{
	posix_spawn_file_actions_t files;
	char **env = environment(p->set, p->n_set);

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, p->log, O_WRONLY |
					 O_TRUNC | O_CREAT, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	if (p->dir)
		posix_spawn_file_actions_addchdir_np(&files, p->dir);
	int failed = posix_spawnp(child, p->program, &files, NULL,
				  (char *const *)p->argv, env);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	return !failed ||
	       err_sys(e, ERR_IO, failed, "%s: cannot run", p->program);
}

/* The last lines of what it said. */
static void tail_of(const char *log, char out[256])
{
	struct buf text = { 0 };

	*out = 0;
	if (file_read(log, 0, &text, NULL) && text.len) {
		size_t from = text.len > 240 ? text.len - 240 : 0;
		while (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = 0;
		snprintf(out, 256, "%s", text.data + from);
	}
	buf_fini(&text);
}

/* Until it has ended, or *stop. */
static void await_end(pid_t child, const _Atomic int *stop)
{
	struct pollfd p = { .fd = pidfd_open(child, 0), .events = POLLIN };

	/* A signal ends poll(2), unless it comes just before. */
	while (p.fd >= 0 && !*stop && poll(&p, 1, 1000) <= 0)
		;
	if (p.fd >= 0)
		close(p.fd);
}

bool process_run(const struct process *p, struct err *e)
{
	char said[256];
	pid_t child;
	int status = 0;

	if (!start_child(p, &child, e))
		return false;
	if (p->stop)
		await_end(child, p->stop);
	if (p->stop && *p->stop && *p->stop != SIGINT)
		kill(child, SIGTERM);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	tail_of(p->log, said);
	return err_set(e, ERR_INPUT, "%s %s %d; it said: %s", p->program,
		       WIFEXITED(status) ? "ended with" : "was killed by signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) :
					   WTERMSIG(status), said);
}

/* ------------------------------------------------------------- neighbour -- */

bool neighbour_start(pid_t *pid, struct err *e)
{
	*pid = fork();
	if (*pid < 0)
		return err_sys(e, ERR_NOMEM, errno, "a busy neighbour");
	if (*pid)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned i = 0;; i++)
		;
}

void neighbour_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
