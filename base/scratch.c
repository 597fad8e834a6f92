/*
 * base/scratch.c - files and folders for a while.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

const char *scratch_place(const char *otherwise)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp == '/' ? tmp : otherwise;
}

const char *scratch_memory(void)
{
	return access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm";
}

static void name_one(struct buf *path, const char *place, const char *what)
{
	buf_printf(path, "%s/t0-%s-XXXXXX",
		   place ? place : scratch_place("/tmp"), what);
}

static bool refuse_place(const struct buf *path, struct err *e)
{
	return err_sys(e, ERR_IO, errno, "%s: cannot be made (TMPDIR names "
		       "another place)", path->data);
}

bool scratch_folder(struct buf *path, const char *place, const char *what,
		    struct err *e)
{
	name_one(path, place, what);
	return mkdtemp(path->data) || refuse_place(path, e);
}

int scratch_file(struct buf *path, const char *what, struct err *e)
{
	name_one(path, NULL, what);

	const int fd = mkstemp(path->data);

	if (fd < 0)
		refuse_place(path, e);
	return fd;
}
