/*
 * engine/cmd/serve/cmd_chat_set.c - settings of a conversation that goes on.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/serve/cmd_chat.h"

enum kind { REAL, COUNT, WORD };

/* One of them; `at` has room for what `kind` says. */
struct setting {
	const char *name;
	enum kind kind;
	void *at;
};

static bool value_read(const struct setting *s, const char *text, struct err *e)
{
	char *end;

	errno = 0;
	if (s->kind == WORD) {
		enum chat_thinking how;
		if (!chat_thinking_parse(text, &how, e))
			return false;
		*(const char **)s->at = chat_thinking_name(how);
		return true;
	}
	if (s->kind == REAL) {
		double v = strtod(text, &end);
		if (*text && !*end && isfinite(v)) {
			*(double *)s->at = v;
			return true;
		}
	} else {
		unsigned long long v = strtoull(text, &end, 10);
		if (isdigit((unsigned char)*text) && !*end && !errno) {
			*(uint64_t *)s->at = v;
			return true;
		}
	}
	return err_set(e, ERR_USAGE, "%s \"%s\"; wanted a number", s->name,
		       text);
}

/* As they apply: what was not set is what the model says. */
static void print_all(const struct qwen_cmd *c, const struct qwen_config *m)
{
	const struct qwen_sampling how = qwen_cmd_sampling(c, m);

	printf("temperature %g\ntop-k %u\ntop-p %g\nmin-p %g\n"
	       "repetition-penalty %g\nseed %llu\ntokens %llu\nthinking %s\n",
	       how.temperature, how.top_k, how.top_p, how.min_p,
	       how.repetition_penalty, (unsigned long long)how.seed,
	       (unsigned long long)c->answer, c->thinking);
}

bool chat_set(struct qwen_cmd *c, const struct qwen_config *m, const char *text,
	      struct err *e)
{
	struct qwen_cmd to = *c;
	const struct setting all[] = {
		{ "temperature", REAL, &to.temperature },
		{ "top-k", COUNT, &to.top_k },
		{ "top-p", REAL, &to.top_p },
		{ "min-p", REAL, &to.min_p },
		{ "repetition-penalty", REAL, &to.penalty },
		{ "seed", COUNT, &to.seed },
		{ "tokens", COUNT, &to.answer },
		{ "thinking", WORD, &to.thinking },
	};
	size_t n = strcspn(text, " ");
	struct qwen_sampler trial = { 0 };
	struct qwen_sampling how;
	bool ok;

	if (!*text) {
		print_all(c, m);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (strlen(all[i].name) != n || memcmp(text, all[i].name, n))
			continue;
		if (!value_read(&all[i], text + n + strspn(text + n, " "), e))
			return false;
		to.greedy = to.greedy && strcmp(all[i].name, "temperature");
		how = qwen_cmd_sampling(&to, m);
		ok = qwen_sampler_init(&trial, &how, m->vocab, e);
		qwen_sampler_fini(&trial);
		if (ok && !to.answer)
			ok = err_set(e, ERR_USAGE,
				     "tokens 0; wanted at least "
				     "1");
		if (ok)
			*c = to;
		return ok;
	}
	return err_set(e, ERR_USAGE,
		       "/set %.*s: wanted temperature, top-k, "
		       "top-p, min-p, repetition-penalty, seed, tokens or "
		       "thinking",
		       (int)n, text);
}
