#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A test program is one process with one count, hence the only globals. */
static unsigned count, failed;
static const char *todo_why;

static void start(void)
{
	if (count == 0)
		printf("TAP version 13\n");
}

/* '#' would begin a directive and a newline would end the line. */
static void print_name(const char *text)
{
	for (const char *s = text; *s; s++) {
		if (*s == '#' || *s == '\\')
			putchar('\\');
		putchar(*s == '\n' || *s == '\r' ? ' ' : *s);
	}
}

/* The one place that prints a result.  Flushed, as the program may die. */
static bool result(const char *file, int line, bool passed, const char *name,
		   va_list ap)
{
	char text[1024];

	start();
	vsnprintf(text, sizeof(text), name, ap);
	/* Harnesses accept a TODO that passes, so it must not be one. */
	bool surprise = todo_why && passed;
	printf("%s %u - ", passed && !surprise ? "ok" : "not ok", ++count);
	print_name(text);
	if (surprise)
		printf(" (passes: remove the TODO, %s)", todo_why);
	else if (todo_why)
		printf(" # TODO %s", todo_why);
	putchar('\n');
	fflush(stdout);
	if (surprise || (!passed && !todo_why)) {
		failed++;
		diag("check %u failed at %s:%d: %s", count, file, line, text);
	}
	return passed;
}

bool tap_ok(const char *file, int line, bool passed, const char *cond,
	    const char *name, ...)
{
	va_list ap;

	va_start(ap, name);
	result(file, line, passed, name, ap);
	va_end(ap);
	if (!passed)
		diag("  false: %s", cond);
	return passed;
}

bool tap_u64(const char *file, int line, uint64_t got, uint64_t wanted,
	     const char *name, ...)
{
	va_list ap;

	va_start(ap, name);
	bool passed = result(file, line, got == wanted, name, ap);
	va_end(ap);
	if (!passed)
		diag("  got:    %" PRIu64 " (0x%" PRIx64 ")\n"
		     "  wanted: %" PRIu64 " (0x%" PRIx64 ")",
		     got, got, wanted, wanted);
	return passed;
}

bool tap_i64(const char *file, int line, int64_t got, int64_t wanted,
	     const char *name, ...)
{
	va_list ap;

	va_start(ap, name);
	bool passed = result(file, line, got == wanted, name, ap);
	va_end(ap);
	if (!passed)
		diag("  got:    %" PRId64 "\n  wanted: %" PRId64, got, wanted);
	return passed;
}

bool tap_f64(const char *file, int line, double got, double wanted,
	     const char *name, ...)
{
	va_list ap;
	bool same = isnan(wanted) ?
			    isnan(got) :
			    got == wanted && signbit(got) == signbit(wanted);

	va_start(ap, name);
	bool passed = result(file, line, same, name, ap);
	va_end(ap);
	if (!passed)
		diag("  got:    %.17g (%a)\n  wanted: %.17g (%a)", got, got,
		     wanted, wanted);
	return passed;
}

bool tap_str(const char *file, int line, const char *got, const char *wanted,
	     const char *name, ...)
{
	va_list ap;
	bool same = got && wanted ? strcmp(got, wanted) == 0 : got == wanted;

	va_start(ap, name);
	bool passed = result(file, line, same, name, ap);
	va_end(ap);
	if (!passed)
		diag("  got:    %s\n  wanted: %s", got ? got : "NULL",
		     wanted ? wanted : "NULL");
	return passed;
}

bool tap_has(const char *file, int line, const char *got, const char *part,
	     const char *name, ...)
{
	va_list ap;

	va_start(ap, name);
	bool passed = result(file, line, got && strstr(got, part), name, ap);
	va_end(ap);
	if (!passed)
		diag("  got:    %s\n  wanted in it: %s", got ? got : "NULL",
		     part);
	return passed;
}

bool tap_mem(const char *file, int line, const void *got, const void *wanted,
	     size_t size_bytes, const char *name, ...)
{
	const unsigned char *g = got, *w = wanted;
	size_t at = 0;
	va_list ap;

	while (at < size_bytes && g[at] == w[at])
		at++;
	va_start(ap, name);
	bool passed = result(file, line, at == size_bytes, name, ap);
	va_end(ap);
	if (!passed)
		diag("  at byte %zu of %zu\n  got:    0x%02x\n"
		     "  wanted: 0x%02x",
		     at, size_bytes, g[at], w[at]);
	return passed;
}

static void skip_one(const char *why, va_list ap)
{
	start();
	printf("ok %u # SKIP ", ++count);
	vprintf(why, ap);
	putchar('\n');
	fflush(stdout);
}

void skip(const char *why, ...)
{
	va_list ap;

	va_start(ap, why);
	skip_one(why, ap);
	va_end(ap);
}

void skip_some(unsigned n, const char *why, ...)
{
	while (n--) {
		va_list ap;

		va_start(ap, why);
		skip_one(why, ap);
		va_end(ap);
	}
}

_Noreturn void skip_all(const char *why, ...)
{
	va_list ap;

	if (count) {
		diag("skip_all after %u checks", count);
		abort();
	}
	printf("TAP version 13\n1..0 # SKIP ");
	va_start(ap, why);
	vprintf(why, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	exit(0);
}

/* Every line of the message gets its own "# ". */
void diag(const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *s = text; s;) {
		char *end = strchr(s, '\n');
		if (end)
			*end++ = '\0';
		fprintf(stderr, "# %s\n", s);
		s = end;
	}
}

void todo_start(const char *why)
{
	todo_why = why;
}

void todo_end(void)
{
	todo_why = NULL;
}

int plan_done(void)
{
	start();
	printf("1..%u\n", count);
	fflush(stdout);
	if (failed)
		diag("%u of %u checks failed", failed, count);
	else if (count == 0)
		diag("no checks were made");
	return failed || count == 0;
}
