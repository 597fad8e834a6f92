/*
 * process.h - other programs that commands run; not for others.
 */
#ifndef T0_RESULTS_PROCESS_H
#define T0_RESULTS_PROCESS_H

#include <sys/types.h>

#include "base/base.h"

struct process {
	const char *program;	 /* found in PATH if it has no '/' */
	const char *const *argv; /* ends with NULL */
	const char *dir;	 /* to run it in; NULL: here */
	const char *const *set;	 /* [n_set] "NAME=VALUE" over our environment */
	size_t n_set;
	const char *log; /* the file for what it says */
	/*
	 * NULL, or of cmd_catch_signals(): the signal ends the program, too.
	 * SIGINT is not passed on: a terminal gives it to both.
	 */
	const _Atomic int *stop;
};

/*
 * Runs it to its end.  ERR_IO if it cannot be run; ERR_INPUT, with the last it
 * said, if it ended with another status than 0.
 */
bool process_run(const struct process *p, struct err *e);

/* The path of a program, where the shell would find it; free() it. */
char *program_find(const char *name, struct err *e);

/* A process that keeps one processor busy until it is stopped, or we die. */
bool neighbour_start(pid_t *pid, struct err *e);
void neighbour_stop(pid_t pid);

#endif
