/* base/err.c: messages, chains of context, exit codes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

static void test_set(void)
{
	struct err e = { 0 };

	ok(!err_set(&e, ERR_INPUT, "%s: byte %d", "a.co", 7),
	   "err_set returns false");
	is_str(e.msg, "a.co: byte 7", "the message is formatted");
	is_i64(e.code, ERR_INPUT, "the code is kept");
	is_i64(e.sys_errno, 0, "errno is 0 without a system error");
	has_str(e.file, "tests/base/err.c", "the file that raised it is kept");
	ok(e.line > 0, "the line that raised it is kept");

	err_sys(&e, ERR_IO, ENOENT, "x.db");
	is_str(e.msg, "x.db: No such file or directory",
	       "err_sys appends the system's words");
	is_i64(e.sys_errno, ENOENT, "err_sys keeps errno");

	ok(!err_set(NULL, ERR_IO, "nobody listens"), "no error struct is fine");
	ok(!err_wrap(NULL, "nobody"), "wrapping no error struct is fine");
}

static void test_chain(void)
{
	struct err e = { 0 };

	err_set(&e, ERR_DEVICE, "ring full");
	ok(!err_wrap(&e, "queue %u", 3u), "err_wrap returns false");
	err_wrap(&e, "t0.co");
	is_str(e.msg, "t0.co: queue 3: ring full", "contexts go outside in");
	is_i64(e.code, ERR_DEVICE, "wrapping keeps the code");

	err_set(&e, ERR_DEVICE, "again: %s", e.msg);
	is_str(e.msg, "again: t0.co: queue 3: ring full",
	       "the old message may be an argument of the new one");
}

static void test_long(void)
{
	struct err e = { 0 };
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&e, ERR_INPUT, "%s", text);
	is_u64(strlen(e.msg), 1023, "a long message fills the struct");
	is_str(e.msg + 1020, "...", "a cut message ends in dots");
	err_wrap(&e, "context");
	has_str(e.msg, "context: xxx", "context in front survives the cut");
	is_str(e.msg + 1020, "...", "a cut chain ends in dots");
	err_wrap(&e, "%s", text);
	is_u64(strlen(e.msg), 1023, "a context too long is cut as well");
}

static void test_exit_codes(void)
{
	static const struct {
		enum err_code code;
		int wanted; /* DESIGN.md, "Tools" */
	} c[] = {
		{ ERR_NONE, 0 },   { ERR_USAGE, 2 },	   { ERR_INPUT, 2 },
		{ ERR_IO, 2 },	   { ERR_PERM, 2 },	   { ERR_NOMEM, 2 },
		{ ERR_NODEV, 77 }, { ERR_DEVICE, 3 },	   { ERR_TIMEOUT, 3 },
		{ ERR_BUSY, 2 },   { ERR_UNSUPPORTED, 2 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct err e = { .code = c[i].code };
		is_i64(err_exit_code(&e), c[i].wanted, "error code %d exits %d",
		       c[i].code, c[i].wanted);
	}
}

/* What err_report prints; its result goes to *status. */
static const char *reported(const struct err *e, int *status)
{
	static char text[2048];
	FILE *f = tmpfile();
	int keep = dup(STDERR_FILENO);

	dup2(fileno(f), STDERR_FILENO);
	*status = err_report("t0-x", e);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* A terminal obeys C0, DEL and C1; U+00A0 and what is above are letters. */
static void test_visible(void)
{
	struct err e = { 0 };
	int status = 0;

	err_set(&e, ERR_INPUT, "a\033[31m\tb\r\x7f \xc2\x9b" "31m\xc2\x80 "
		"\xc2\xa0\xc3\xa9\xe2\x9b\x94 \xc2\nend\xc2");
	is_str(reported(&e, &status),
	       "t0-x: a?[31m\tb?? ?31m? \xc2\xa0\xc3\xa9\xe2\x9b\x94 "
	       "\xc2\nend\xc2\n", "no terminal obeys a message");
}

static void test_report(void)
{
	struct err e = { 0 };
	int status = -1;

	err_set(&e, ERR_TIMEOUT, "queue 3: no answer in 5 s");
	unsetenv("T0_DEBUG");
	is_str(reported(&e, &status), "t0-x: queue 3: no answer in 5 s\n",
	       "a report has the tool and the message");
	is_i64(status, 3, "and is the exit status");
	setenv("T0_DEBUG", "1", 1);
	has_str(reported(&e, &status),
		"t0-x: queue 3: no answer in 5 s [tests/base/err.c:",
		"T0_DEBUG adds where it was raised");
	unsetenv("T0_DEBUG");
}

int main(void)
{
	test_visible();
	test_report();
	test_set();
	test_chain();
	test_long();
	test_exit_codes();
	return plan_done();
}
