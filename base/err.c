/*
 * base/err.c - errors with code, message and context.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Copies, and shows with "..." at the end that something did not fit. */
static void copy_msg(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (len < size) {
		memcpy(dst, src, len + 1);
		return;
	}
	memcpy(dst, src, size - 4);
	memcpy(dst + size - 4, "...", 4);
}

bool err_set_at(struct err *e, enum err_code code, int errnum, const char *file,
		int line, const char *fmt, ...)
{
	if (!e)
		return false;
	/* The arguments may point into e->msg, so it is written last. */
	char msg[2 * sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (errnum && len < sizeof(msg)) {
		char text[128];
		snprintf(msg + len, sizeof(msg) - len, ": %s",
			 strerror_r(errnum, text, sizeof(text)));
	}
	e->code = code;
	e->sys_errno = errnum;
	e->file = file;
	e->line = line;
	copy_msg(e->msg, sizeof(e->msg), msg);
	return false;
}

bool err_wrap(struct err *e, const char *fmt, ...)
{
	if (!e)
		return false;
	char msg[2 * sizeof(e->msg)];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (len >= sizeof(e->msg))
		len = sizeof(e->msg) - 1;
	snprintf(msg + len, sizeof(msg) - len, ": %s", e->msg);
	copy_msg(e->msg, sizeof(e->msg), msg);
	return false;
}

int err_exit_code(const struct err *e)
{
	switch (e->code) {
	case ERR_NONE:
		return EXIT_YES;
	case ERR_DEVICE:
	case ERR_TIMEOUT:
		return EXIT_FAULT;
	case ERR_NODEV:
		return EXIT_NODEVICE;
	default:
		return EXIT_TROUBLE;
	}
}

void err_make_visible(char *s)
{
	const unsigned char *from = (const unsigned char *)s;

	for (; *from; from++) {
		const bool c1 = from[0] == 0xc2 && from[1] >= 0x80 &&
				from[1] < 0xa0;
		const bool plain = from[0] >= 0x20 ? from[0] != 0x7f :
				   from[0] == '\n' || from[0] == '\t';

		*s++ = c1 || !plain ? '?' : (char)*from;
		from += c1;
	}
	*s = '\0';
}

int err_report(const char *tool, const struct err *e)
{
	struct err shown = *e;

	fflush(stdout);
	err_make_visible(shown.msg);
	if (getenv("T0_DEBUG") && e->file)
		fold_printf(stderr, 2, "%s: %s [%s:%d]\n", tool, shown.msg,
			    e->file, e->line);
	else
		fold_printf(stderr, 2, "%s: %s\n", tool, shown.msg);
	return err_exit_code(e);
}

_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "t0: bug at %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}
