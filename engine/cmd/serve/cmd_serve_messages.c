/*
 * engine/cmd/serve/cmd_serve_messages.c - the messages and tools of a chat, as
 * the template takes them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_serve_ask.h"

enum { MOST_TOOLS = 128, LONGEST_NAME = 64 };

static const char *text_of(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool refuse_message(struct reader *r, size_t i, const char *what)
{
	r->param = "messages";
	return err_set(r->e, ERR_USAGE, "message %zu %s", i, what);
}

/* Parts of text become one. */
static bool join_parts(struct reader *r, json_t *message, size_t i)
{
	json_t *content = json_object_get(message, "content"), *part;
	struct buf all = { 0 };
	size_t k;

	json_array_foreach (content, k, part) {
		const char *type = text_of(part, "type"),
			   *text = text_of(part, "text");
		if (!type || strcmp(type, "text") || !text) {
			buf_fini(&all);
			return refuse_message(r, i,
					      "has a part that is no text; "
					      "wanted {\"type\": \"text\", "
					      "\"text\"}");
		}
		buf_adds(&all, text);
	}
	json_object_set_new(message, "content",
			    json_stringn(all.data ? all.data : "", all.len));
	buf_fini(&all);
	return true;
}

/* Has an earlier message of the assistant this call? */
static bool has_call(json_t *messages, size_t before, const char *id)
{
	for (size_t i = 0; i < before; i++) {
		json_t *calls = json_object_get(json_array_get(messages, i),
						"tool_calls"),
		       *call;
		size_t k;
		json_array_foreach (calls, k, call) {
			const char *its = text_of(call, "id");
			if (its && !strcmp(its, id))
				return true;
		}
	}
	return false;
}

/* Calls that the template can write. */
static bool check_calls(struct reader *r, json_t *message, size_t i)
{
	json_t *calls = json_object_get(message, "tool_calls"), *call;
	size_t k;

	json_array_foreach (calls, k, call) {
		json_t *f = json_object_get(call, "function");
		if (!text_of(call, "id") || !text_of(f, "name") ||
		    !text_of(f, "arguments"))
			return refuse_message(
				r, i,
				"has a call without \"id\" or \"function\": "
				"{\"name\", \"arguments\"}, strings");
	}
	return true;
}

static bool fit_message(struct reader *r, json_t *messages, size_t i)
{
	json_t *m = json_array_get(messages, i);
	const char *role = text_of(m, "role"), *id;

	if (!role)
		return refuse_message(r, i, "has no \"role\"");
	if (json_is_array(json_object_get(m, "content")) &&
	    !join_parts(r, m, i))
		return false;
	if (!strcmp(role, "tool")) {
		id = text_of(m, "tool_call_id");
		if (!id || !has_call(messages, i, id))
			return refuse_message(
				r, i,
				"of the role tool has no \"tool_call_id\" of "
				"a call before it");
	}
	if (!strcmp(role, "developer"))
		json_object_set_new(m, "role", json_string("system"));
	return check_calls(r, m, i);
}

/* ---- tools ---- */

static bool is_name(const char *s)
{
	const size_t n = s ? strlen(s) : 0;

	return n && n <= LONGEST_NAME &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			 "0123456789_-") == n;
}

/* The name that "tool_choice" wants, NULL if it is of another form. */
static const char *named_choice(json_t *choice)
{
	return text_of(json_object_get(choice, "function"), "name");
}

static bool read_choice(struct reader *r)
{
	json_t *x = serve_get_given(r, "tool_choice");
	const char *s = json_string_value(x);
	static const char *const names[] = { [CALLS_NONE] = "none",
					     [CALLS_MAY] = "auto",
					     [CALLS_MUST] = "required" };

	if (named_choice(x)) {
		r->j->calls = CALLS_ONE;
		return true;
	}
	r->j->calls = CALLS_MAY;
	for (size_t i = 0; s && i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], s)) {
			r->j->calls = (enum serve_calls)i;
			return true;
		}
	return !x || serve_refuse(r, "tool_choice",
				  "none, auto, required or {\"type\": "
				  "\"function\", \"function\": {\"name\"}}");
}

/* Functions of distinct names; of all or the one that is wanted, `tool`. */
static bool read_functions(struct reader *r, json_t *tools,
			   struct qwen_tool *tool, size_t *n)
{
	const char *only =
		r->j->calls == CALLS_ONE ?
			named_choice(serve_get_given(r, "tool_choice")) :
			NULL;
	json_t *one;
	size_t i, k;

	*n = 0;
	json_array_foreach (tools, i, one) {
		json_t *f = json_object_get(one, "function");
		const char *type = text_of(one, "type"),
			   *name = text_of(f, "name");
		for (k = 0; k < i && name; k++)
			if (!strcmp(name,
				    text_of(json_object_get(
						    json_array_get(tools, k),
						    "function"),
					    "name")))
				name = NULL;
		if (!type || strcmp(type, "function") || !is_name(name))
			return serve_refuse(r, "tools",
					    "functions with names of their "
					    "own, of up to 64 letters, digits, "
					    "_ and -");
		if (!only || !strcmp(only, name))
			tool[(*n)++] = (struct qwen_tool){
				name, json_object_get(f, "parameters"),
				json_is_true(json_object_get(f, "strict"))
			};
	}
	return *n || serve_refuse(r, "tool_choice", "a function of \"tools\"");
}

/* The grammar of an answer that may have calls. */
static bool read_tools(struct reader *r, json_t *tools)
{
	struct job *j = r->j;
	json_t *parallel = serve_get_given(r, "parallel_tool_calls");
	struct qwen_tool tool[MOST_TOOLS];
	const bool one = j->calls == CALLS_ONE || json_is_false(parallel);
	size_t n;

	if (json_array_size(tools) > MOST_TOOLS)
		return serve_refuse(r, "tools", "at most 128");
	if (!read_functions(r, tools, tool, &n) || j->calls == CALLS_NONE)
		return j->calls == CALLS_NONE && !r->param;
	if (j->grammar)
		return serve_refuse(r, "response_format",
				    "it without tools, or with "
				    "\"tool_choice\": \"none\"");
	j->grammar = qwen_grammar_tools(tool, n, j->calls != CALLS_MAY,
					one ? 1 : MOST_CALLS, r->e);
	if (!j->grammar)
		r->param = "tools";
	return j->grammar != NULL;
}

bool serve_read_chat(struct reader *r, struct buf *text)
{
	json_t *from = serve_get_given(r, "messages"), *list,
	       *tools = serve_get_given(r, "tools");
	unsigned flags = QWEN_CHAT_PROMPT;
	char *said, *known = NULL;
	bool good = true;

	if (!json_is_array(from))
		return serve_refuse(r, "messages", "a list");
	if (tools && !json_is_array(tools))
		return serve_refuse(r, "tools", "a list");
	if (json_array_size(tools))
		good = read_choice(r) && read_tools(r, tools);
	else if (serve_get_given(r, "tool_choice"))
		good = serve_refuse(r, "tool_choice", "it with \"tools\"");
	list = json_deep_copy(from);
	for (size_t i = 0; i < json_array_size(list) && good; i++)
		good = fit_message(r, list, i);
	/* A thought is no text of a form. */
	if (r->j->grammar && r->j->calls != CALLS_MAY)
		flags |= QWEN_CHAT_NO_THINK;
	said = json_dumps(list, 0);
	if (r->j->calls != CALLS_NONE)
		known = json_dumps(tools, 0);
	if (good && !r->param)
		r->param = "messages";
	good = good && qwen_chat(said, known, flags, text, r->e);
	json_decref(list);
	free(said);
	free(known);
	return good;
}
