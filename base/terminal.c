/*
 * base/terminal.c - how wide a terminal is, and text folded to it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/table_int.h"

size_t terminal_width(FILE *out)
{
	struct winsize size;
	const int fd = fileno(out);

	if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

/* One column for each character; a malformed byte is shown as one '?'. */
size_t text_width(const char *s)
{
	size_t width = 0;

	for (; *s; width++) {
		const size_t len = table_utf8_len(s);

		s += len ? len : 1;
	}
	return width;
}

size_t fold_length(const char *s, size_t width)
{
	size_t n = 0, blank = 0, used = 0;

	for (; s[n] && s[n] != '\n' && used < width; used++) {
		const size_t len = table_utf8_len(s + n);

		if (s[n] == ' ')
			blank = n;
		n += len ? len : 1;
	}
	if (!s[n] || s[n] == '\n' || s[n] == ' ')
		return n;
	return blank ? blank : n + strcspn(s + n, " \n");
}

/* To the end of the line; returns what is behind it. */
static const char *fold_line(struct buf *out, const char *s, size_t width,
			     size_t hang)
{
	size_t column = 0;

	for (; *s == ' ' || *s == '\t'; s++) {
		column += *s == '\t' ? 8 - column % 8 : 1;
		buf_addc(out, *s);
	}
	for (const size_t next = column + hang; *s && *s != '\n';) {
		const size_t len =
			fold_length(s, column < width ? width - column : 0);

		buf_add(out, s, len);
		s += len + strspn(s + len, " ");
		column = next;
		if (*s && *s != '\n')
			buf_printf(out, "\n%*s", (int)column, "");
	}
	return s;
}

void fold_text(struct buf *out, const char *text, size_t width, size_t hang)
{
	if (!width)
		buf_adds(out, text);
	while (width && *text) {
		text = fold_line(out, text, width, hang);
		if (*text == '\n')
			buf_addc(out, *text++);
	}
}

void fold_printf(FILE *out, size_t hang, const char *fmt, ...)
{
	struct buf folded = { 0 };
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		mem_ran_out(strlen(fmt), MEM_HERE);
	va_end(ap);
	fold_text(&folded, text, terminal_width(out), hang);
	fwrite(folded.data, 1, folded.len, out);
	buf_fini(&folded);
	free(text);
}
