/*
 * kfd/soft/trap/loader.c - main() of soft-trap, which t0-soft and trap.h
 * call with the words of enum trap_arg.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "kfd/soft/preload/preload.h"
#include "kfd/soft/trap/trap.h"

#define SCRIPT_DEPTH 4

struct trap_state trap;

/*
 * Is it a script?  Then its interpreter takes its place: the path, one
 * argument if there is one, and the script.
 */
static bool open_script(char ***argv, const char *path)
{
	char line[512] = "", **old = *argv, **new;
	char *at, *word, *rest;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t argc = 0, n = 0;
	ssize_t got = -1;

	if (fd >= 0) {
		got = read(fd, line, sizeof(line) - 1);
		close(fd);
	}
	if (got < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[strcspn(line, "\n")] = '\0';
	word = line + 2 + strspn(line + 2, " \t");
	at = word + strcspn(word, " \t");
	rest = at + strspn(at, " \t");
	*at = '\0';
	while (old[argc])
		argc++;
	new = calloc(argc + 4, sizeof(*new));
	if (!new || !*word)
		return false;
	new[n++] = strdup(word);
	if (*rest)
		new[n++] = strdup(rest);
	new[n++] = strdup(path);
	for (size_t i = 1; i < argc; i++)
		new[n++] = old[i];
	*argv = new;
	return true;
}

static int fail(const char *what)
{
	fprintf(stderr, "t0-soft: --trap: %s\n", what);
	return EXIT_TROUBLE;
}

static void prepare_state(char **argv)
{
	const ssize_t n = readlink("/proc/self/exe", trap.self,
				   sizeof(trap.self) - 1);

	trap.self[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < TRAP_ARGS; i++)
		trap.arg[i] = argv[i];
	trap.owner = getpid();
	setenv("T0_SOFT_ROOT", argv[TRAP_ROOT], 1);
	setenv("T0_SOFT_OPTIONS", argv[TRAP_OPTIONS], 1);
	setenv("T0_SOFT_LOG", argv[TRAP_LOG], 1);
	/* Found now, so that the handler need not look. */
	pl_node_of_inode(0, 0);
}

int main(int argc, char **argv, char **envp)
{
	struct sigaction a = { .sa_sigaction = trap_handle,
			       .sa_flags = SA_SIGINFO | SA_ONSTACK };
	char **args = argv + TRAP_ARGS, why[256];
	const char *path, *slash;

	if (argc < TRAP_ARGS)
		return fail("this is a part of t0-soft run --trap");
	path = argv[TRAP_PROGRAM];
	prepare_state(argv);
	for (int i = 0; i < SCRIPT_DEPTH && open_script(&args, path); i++)
		trap.arg[TRAP_PROGRAM] = path = args[0];
	if (!realpath(path, trap.program))
		return fail(strerror(errno));
	slash = strrchr(path, '/');
	prctl(PR_SET_NAME, slash ? slash + 1 : path);
	sigfillset(&a.sa_mask);
	if (sigaction(SIGSYS, &a, NULL) || !trap_serve())
		return fail(strerror(errno));
	sigemptyset(&a.sa_mask);
	sigaddset(&a.sa_mask, SIGSYS);
	sigprocmask(SIG_UNBLOCK, &a.sa_mask, NULL);
	trap_load(path, args, envp, why);
	return fail(why);
}
