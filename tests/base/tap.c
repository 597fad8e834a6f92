/*
 * tests/tap.c itself.  Each case runs in a child; what it prints is compared
 * here with text written by hand.  This program prints its own TAP, so that a
 * fault in tap.c cannot hide itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

static int passing(void)
{
	ok(1 + 1 == 2, "sums");
	is_u64(7, 7, "u64 %d", 1);
	is_i64(-7, -7, "i64");
	is_f64(NAN, NAN, "NaN is NaN");
	is_str("a", "a", "strings");
	is_str(NULL, NULL, "NULL is NULL");
	has_str("abc", "bc", "part");
	is_mem("ab", "ab", 2, "bytes");
	return plan_done();
}

static int failing(void)
{
	ok(true, "good");
	ok(1 == 2, "bad");
	is_u64(16, 255, "numbers");
	is_str(NULL, "x", "strings");
	is_mem("abc", "axc", 3, "bytes");
	is_f64(-0.0, 0.0, "zeros differ");
	return plan_done();
}

static int directives(void)
{
	ok(true, "hash # in\na name");
	skip("no %s", "device");
	skip_some(2, "no %s", "root");
	todo_start("not yet");
	ok(false, "known");
	todo_end();
	return plan_done();
}

static int surprise(void)
{
	todo_start("not yet");
	ok(true, "works");
	todo_end();
	return plan_done();
}

static int skipped(void)
{
	skip_all("no %s here", "GPU");
}

static int died(void)
{
	ok(true, "first");
	_exit(0);
}

static int empty(void)
{
	return plan_done();
}

static int late_skip(void)
{
	ok(true, "first");
	skip_all("too late");
}

static const struct {
	const char *name;
	int (*run)(void);
	int status; /* -1: dies by a signal */
	const char *out;
	const char *err; /* a part of it; NULL: it is empty */
} cases[] = {
	{ "every kind of check passes", passing, 0,
	  "TAP version 13\nok 1 - sums\nok 2 - u64 1\nok 3 - i64\n"
	  "ok 4 - NaN is NaN\nok 5 - strings\nok 6 - NULL is NULL\n"
	  "ok 7 - part\nok 8 - bytes\n1..8\n",
	  NULL },
	{ "failures are counted and exit 1", failing, 1,
	  "TAP version 13\nok 1 - good\nnot ok 2 - bad\n"
	  "not ok 3 - numbers\nnot ok 4 - strings\nnot ok 5 - bytes\n"
	  "not ok 6 - zeros differ\n1..6\n",
	  "# 5 of 6 checks failed\n" },
	{ "a failure tells its condition", failing, 1, NULL,
	  "#   false: 1 == 2\n" },
	{ "a failure tells what it got and wanted", failing, 1, NULL,
	  "#   got:    16 (0x10)\n#   wanted: 255 (0xff)\n" },
	{ "a failure tells where the bytes differ", failing, 1, NULL,
	  "#   at byte 1 of 3\n#   got:    0x62\n#   wanted: 0x78\n" },
	{ "names are escaped, skips and TODOs do not fail", directives, 0,
	  "TAP version 13\nok 1 - hash \\# in a name\n"
	  "ok 2 # SKIP no device\nok 3 # SKIP no root\nok 4 # SKIP no root\n"
	  "not ok 5 - known # TODO not yet\n1..5\n",
	  "#   false: false\n" },
	{ "a TODO that passes is a failure", surprise, 1,
	  "TAP version 13\n"
	  "not ok 1 - works (passes: remove the TODO, not yet)\n1..1\n",
	  "# 1 of 1 checks failed\n" },
	{ "a program can be skipped", skipped, 0,
	  "TAP version 13\n1..0 # SKIP no GPU here\n", NULL },
	{ "a program that dies has no plan", died, 0,
	  "TAP version 13\nok 1 - first\n", NULL },
	{ "no checks at all is a failure", empty, 1, "TAP version 13\n1..0\n",
	  "# no checks were made\n" },
	{ "skipping after a check aborts", late_skip, -1,
	  "TAP version 13\nok 1 - first\n", "# skip_all after 1 checks\n" },
};

/* The child's output goes to files, which cannot block it. */
static int run_case(int (*run)(void), FILE *out, FILE *err)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		exit(run());
	}
	int status;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void read_back(FILE *f, char *text, size_t size)
{
	rewind(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

int main(void)
{
	bool all = true;

	printf("TAP version 13\n1..%zu\n", ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got_out[4096], got_err[4096];
		const char *out = cases[i].out, *err = cases[i].err;
		FILE *out_file = tmpfile(), *err_file = tmpfile();
		int status = run_case(cases[i].run, out_file, err_file);
		read_back(out_file, got_out, sizeof(got_out));
		read_back(err_file, got_err, sizeof(got_err));
		bool same = status == cases[i].status &&
			    (!out || strcmp(got_out, out) == 0) &&
			    (err ? strstr(got_err, err) != NULL : !*got_err);
		printf("%sok %zu - %s\n", same ? "" : "not ", i + 1,
		       cases[i].name);
		if (!same)
			fprintf(stderr, "exit %d, stdout:\n%sstderr:\n%s",
				status, got_out, got_err);
		all = all && same;
	}
	return !all;
}
