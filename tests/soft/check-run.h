/* check-run - kernels of tests/data/check under t0-run --check. */
#ifndef T0_TESTS_CHECK_RUN_H
#define T0_TESTS_CHECK_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/base.h"

#define FOLDER "tests/data/check"

/*
 * The exit status of t0-run, -1 if it has none; its stderr in *err, with one
 * more newline.  `shape` is options, `memory` the first argument.
 */
static inline int check_run(const char *object, const char *kernel,
			    const char *shape, const char *memory,
			    struct buf *err)
{
	struct buf command = { 0 };
	char chunk[4096];
	size_t n;

	buf_printf(&command, "timeout 60 '%s/t0-run' --check --quiet --device "
		   "soft %s %s %s %s u64:0 2>&1 >/dev/null",
		   getenv("T0_BUILD"), shape, object, kernel, memory);
	FILE *pipe = popen(command.data, "r");
	buf_fini(&command);
	if (!pipe)
		return -1;
	while ((n = fread(chunk, 1, sizeof(chunk), pipe)) > 0)
		buf_add(err, chunk, n);
	buf_addc(err, '\n');
	int status = pclose(pipe);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
