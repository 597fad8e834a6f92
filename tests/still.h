/*
 * tests/still.h - the program stands still with all its threads, as on a host
 * that is busy with others or was suspended.
 */
#ifndef T0_TESTS_STILL_H
#define T0_TESTS_STILL_H

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline void stand_still(unsigned ms)
{
	const pid_t self = getpid(), child = fork();

	if (!child) {
		kill(self, SIGSTOP);
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 },
			  NULL);
		kill(self, SIGCONT);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

#endif
