/*
 * kfd/soft/preload/faults.c - what goes wrong on purpose: `t0-soft run --inject`.
 *
 * T0_SOFT_INJECT is "WHAT@PROCESS.PACKET,...": the PROCESS-th process (from 1)
 * that opens the device in one run of t0-soft finds that its packet number
 * PACKET (from 1) does WHAT.  Processes are counted by a file in the folder of
 * the device, so that a script of many steps can be hit in one of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kfd/soft/inject/inject.h"
#include "kfd/soft/preload/preload.h"

/* Which process of the run is this one?  0: nobody can say. */
static unsigned long count_process(void)
{
	char path[PL_PATH];
	struct stat st = { 0 };

	snprintf(path, sizeof(path), "%.4000s/processes", pl_root());
	const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			    0600);
	if (fd < 0)
		return 0;
	const bool good = write(fd, "x", 1) == 1 && !fstat(fd, &st);
	close(fd);
	return good ? (unsigned long)st.st_size : 0;
}

bool pl_inject(struct kfd_driver *d, struct err *e)
{
	const char *env = getenv("T0_SOFT_INJECT");
	char *copy, *save = NULL;
	bool ok = true;

	if (!env || !*env)
		return true;
	copy = xstrdup(env);
	const unsigned long process = count_process();
	for (char *p = strtok_r(copy, ",", &save); p && ok;
	     p = strtok_r(NULL, ",", &save)) {
		struct soft_inject rule;
		unsigned long who;

		ok = soft_inject_parse(p, &rule, &who, e);
		if (ok && who == process)
			soft_inject(d, &rule);
	}
	free(copy);
	return ok;
}
