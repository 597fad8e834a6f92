/*
 * engine/cmd/serve/cmd_serve_calls.c - the calls of tools in a text.
 *
 * The text keeps the form that its grammar has (engine/grammar/tools.c), as far
 * as it goes.
 */
#include <string.h>

#include "engine/cmd/serve/cmd_serve_http.h"

/* Bytes of an object's beginning, and whether its end is among them. */
static size_t object_length(const char *s, size_t n)
{
	uint32_t depth = 0;
	bool string = false;

	for (size_t i = 0; i < n; i++) {
		if (string && s[i] == '\\')
			i++;
		else if (s[i] == '"')
			string = !string;
		else if (!string && (s[i] == '{' || s[i] == '['))
			depth++;
		else if (!string && (s[i] == '}' || s[i] == ']') && !--depth)
			return i + 1;
	}
	return n;
}

/* Where the mark of a call begins, or may begin once more is there. */
static size_t find_mark(const char *s, size_t n, bool whole)
{
	static const char mark[] = QWEN_CALL_BEGIN;
	const size_t len = sizeof(mark) - 1;
	const char *at = n ? memmem(s, n, mark, len) : NULL;
	size_t held = n < len ? n : len - 1;

	if (at || whole)
		return at ? (size_t)(at - s) : n;
	while (held && memcmp(s + n - held, mark, held))
		held--;
	return n - held;
}

void serve_find_calls(const struct choice *c, struct calls *out)
{
	const char *s = c->text.data ? c->text.data : "";
	const size_t n = c->text.len, begin = strlen(QWEN_CALL_BEGIN),
		     name = strlen(QWEN_CALL_NAME),
		     arguments = strlen(QWEN_CALL_ARGUMENTS);
	size_t at;

	*out = (struct calls){ .text = n };
	if (c->job->calls == CALLS_NONE)
		return;
	out->text = find_mark(s, n, c->finish);
	for (at = out->text; at + begin + name < n && out->n < MOST_CALLS;) {
		struct call_text *call = &out->v[out->n];
		call->name = at + begin + name;
		const char *end = memchr(s + call->name, '"', n - call->name);
		if (!end)
			return;
		call->name_len = (size_t)(end - s) - call->name;
		call->args = call->name + call->name_len + arguments;
		if (call->args > n)
			return;
		call->args_len = object_length(s + call->args, n - call->args);
		out->n++;
		at = call->args + call->args_len + strlen(QWEN_CALL_END "\n");
	}
}
