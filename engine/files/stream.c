/*
 * engine/files/stream.c - large files, written in parts: all there or not at
 * all.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/files/files_int.h"

bool qwen_stream_open(struct qwen_stream *s, const char *path, struct err *e)
{
	struct buf tmp = { 0 };

	buf_printf(&tmp, "%s.%d.tmp", path, (int)getpid());
	*s = (struct qwen_stream){ .path = path, .tmp = tmp.data };
	s->f = fopen(s->tmp, "wb");
	return s->f || err_sys(e, ERR_IO, errno, "%s: cannot be written",
			       s->path);
}

bool qwen_stream_add(struct qwen_stream *s, const void *p, size_t n,
		     struct err *e)
{
	return !n || fwrite(p, 1, n, s->f) == n ||
	       err_sys(e, ERR_IO, errno, "%s: cannot be written", s->path);
}

bool qwen_stream_close(struct qwen_stream *s, bool ok, struct err *e)
{
	if (ok && (fflush(s->f) != 0 || fsync(fileno(s->f)) != 0))
		ok = err_sys(e, ERR_IO, errno, "%s: cannot be written",
			     s->path);
	if (s->f && fclose(s->f) != 0 && ok)
		ok = err_sys(e, ERR_IO, errno, "%s: cannot be written",
			     s->path);
	if (ok && rename(s->tmp, s->path) != 0)
		ok = err_sys(e, ERR_IO, errno, "%s: cannot be written",
			     s->path);
	if (ok)
		file_sync_folder(s->path);
	else if (s->f)
		unlink(s->tmp);
	free(s->tmp);
	*s = (struct qwen_stream){ 0 };
	return ok;
}
