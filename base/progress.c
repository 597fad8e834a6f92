/*
 * base/progress.c - a bar on the terminal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static const uint64_t redraw_ns = 100000000; /* ten times a second */

static void draw_bar(struct progress *p, uint64_t now_ns)
{
	static const char full[] = "########################";
	enum { BAR = sizeof(full) - 1 };
	double seconds = (double)(now_ns - p->start_ns) / 1e9;
	double rate = seconds > 0 ? (double)p->done / seconds : 0;

	p->drawn_ns = now_ns;
	if (p->total == 0) {
		fprintf(stderr, "\r%s %" PRIu64 "  %.0f/s\033[K", p->what,
			p->done, rate);
		return;
	}
	uint64_t done = p->done < p->total ? p->done : p->total;
	double share = (double)done / (double)p->total;
	fprintf(stderr, "\r%s [%-*.*s] %" PRIu64 "/%" PRIu64 "  %.0f/s",
		p->what, BAR, (int)(share * BAR), full, p->done, p->total,
		rate);
	if (rate > 0)
		fprintf(stderr, "  %.0f s left",
			(double)(p->total - done) / rate);
	fputs("\033[K", stderr);
}

void progress_init(struct progress *p, const char *what, uint64_t total,
		   bool quiet)
{
	const char *term = getenv("TERM");
	bool dumb = !term || strcmp(term, "dumb") == 0;

	*p = (struct progress){ .what = what, .total = total };
	p->start_ns = time_mono_ns();
	p->on = !quiet && !dumb && isatty(STDERR_FILENO);
}

void progress_step(struct progress *p, uint64_t n)
{
	p->done += n;
	if (!p->on)
		return;
	uint64_t now_ns = time_mono_ns();
	if (now_ns - p->drawn_ns >= redraw_ns)
		draw_bar(p, now_ns);
}

static void clear_line(const struct progress *p)
{
	if (p->on && p->drawn_ns)
		fputs("\r\033[K", stderr);
}

void progress_fini(struct progress *p)
{
	clear_line(p);
	p->on = false;
}

static void say_line(struct progress *p, const char *tool, const char *kind,
		     const char *fmt, va_list ap)
{
	clear_line(p);
	fprintf(stderr, "%s: %s", tool, kind);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	if (p->on)
		draw_bar(p, time_mono_ns());
}

void progress_warn(struct progress *p, const char *tool, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(p, tool, "warning: ", fmt, ap);
	va_end(ap);
}

void progress_remark(struct progress *p, const char *tool, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(p, tool, "", fmt, ap);
	va_end(ap);
}
