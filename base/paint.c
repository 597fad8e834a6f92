/*
 * base/paint.c - whether there are colours, and which.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static const char good[] = "\033[32m", bad[] = "\033[31m", open[] = "\033[33m";

/* Words of verdicts and states. */
static const struct word {
	const char *word, *sgr;
} words[] = {
	{ "pass", good },	  { "passed", good },
	{ "better", good },	  { "right", good },
	{ "ok", good },		  { "kept", good },
	{ "fail", bad },	  { "failed", bad },
	{ "worse", bad },	  { "regress", bad },
	{ "regression", bad },	  { "wrong", bad },
	{ "inconclusive", open }, { "incomparable", open },
	{ "discarded", open },
};

bool paint_wanted(FILE *out)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
	const char *force = getenv("CLICOLOR_FORCE");
	const int fd = fileno(out);

	if (no && *no)
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	return term && strcmp(term, "dumb") != 0 && fd >= 0 && isatty(fd);
}

bool paint_when(const char *when, struct err *e)
{
	if (!strcmp(when, "auto"))
		return true;
	if (!strcmp(when, "always")) {
		unsetenv("NO_COLOR");
		setenv("CLICOLOR_FORCE", "1", 1);
	} else if (!strcmp(when, "never")) {
		unsetenv("CLICOLOR_FORCE");
		setenv("NO_COLOR", "1", 1);
	} else {
		return err_set(e, ERR_USAGE, "--color=%s: wanted always, never "
			       "or auto", when);
	}
	return true;
}

const char *paint_word(const char *word)
{
	const size_t len = strcspn(word, ":, ");

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].word) == len &&
		    !strncmp(words[i].word, word, len))
			return words[i].sgr;
	return NULL;
}
