/*
 * engine/text/chat.c - conversations in Qwen3's chat template.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"

/* ---- JSON as the template's tojson writes it (Python's json.dumps) ---- */

static void dump_string(const char *s, struct buf *out)
{
	static const char plain[] = "\"\\\b\f\n\r\t", code[] = "\"\\bfnrt";

	buf_addc(out, '"');
	for (; *s; s++) {
		const char *at = strchr(plain, *s);
		if (at)
			buf_printf(out, "\\%c", code[at - plain]);
		else if ((unsigned char)*s < 0x20)
			buf_printf(out, "\\u%04x", *s);
		else
			buf_addc(out, *s);
	}
	buf_addc(out, '"');
}

/* The fewest digits that read back as the same number. */
static void dump_real(double v, struct buf *out)
{
	char s[40];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(s, sizeof(s), "%.*g", digits, v);
		if (strtod(s, NULL) == v)
			break;
	}
	/* Python writes an exponent from 1e16 on and below 1e-4. */
	double size = fabs(v);
	if (strchr(s, 'e') && size < 1e16 && size >= 1e-4)
		snprintf(s, sizeof(s), "%.0f", v);
	buf_adds(out, s);
	if (!strpbrk(s, ".en"))
		buf_adds(out, ".0");
}

static void dump_json(const json_t *j, struct buf *out)
{
	const char *key, *sep = "";
	json_t *v;
	size_t i;

	switch (json_typeof(j)) {
	case JSON_OBJECT:
		buf_addc(out, '{');
		json_object_foreach((json_t *)j, key, v) {
			buf_adds(out, sep);
			dump_string(key, out);
			buf_adds(out, ": ");
			dump_json(v, out);
			sep = ", ";
		}
		buf_addc(out, '}');
		break;
	case JSON_ARRAY:
		buf_addc(out, '[');
		json_array_foreach(j, i, v) {
			buf_adds(out, sep);
			dump_json(v, out);
			sep = ", ";
		}
		buf_addc(out, ']');
		break;
	case JSON_STRING:
		dump_string(json_string_value(j), out);
		break;
	case JSON_INTEGER:
		buf_printf(out, "%lld", (long long)json_integer_value(j));
		break;
	case JSON_REAL:
		dump_real(json_real_value(j), out);
		break;
	default:
		buf_adds(out, json_is_true(j) ? "true" :
			 json_is_false(j) ? "false" : "null");
	}
}

/* ---- messages ---- */

static const char *get_text(const json_t *m, const char *key)
{
	const char *s = json_string_value(json_object_get(m, key));

	return s ? s : "";
}

static bool is_role(const json_t *m, const char *role)
{
	return m && strcmp(get_text(m, "role"), role) == 0;
}

static bool starts_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool ends_with(const char *s, const char *with)
{
	size_t n = strlen(s), k = strlen(with);

	return n >= k && strcmp(s + n - k, with) == 0;
}

/* The last question that is not the result of a tool; else the last turn. */
static size_t last_query(const json_t *messages)
{
	size_t n = json_array_size(messages);

	for (size_t i = n; i-- > 0;) {
		const json_t *m = json_array_get(messages, i);
		const char *s = get_text(m, "content");
		if (is_role(m, "user") && !(starts_with(s, "<tool_response>") &&
					    ends_with(s, "</tool_response>")))
			return i;
	}
	return n - 1;
}

static void add_turn(const char *role, const char *content, struct buf *out)
{
	buf_printf(out, "<|im_start|>%s\n%s<|im_end|>\n", role, content);
}

static void tools_turn(const json_t *tools, const json_t *first,
		       struct buf *out)
{
	const json_t *tool;
	size_t i;

	buf_adds(out, "<|im_start|>system\n");
	if (is_role(first, "system"))
		buf_printf(out, "%s\n\n", get_text(first, "content"));
	buf_adds(out, "# Tools\n\nYou may call one or more functions to assist "
		      "with the user query.\n\nYou are provided with function "
		      "signatures within <tools></tools> XML tags:\n<tools>");
	json_array_foreach(tools, i, tool) {
		buf_addc(out, '\n');
		dump_json(tool, out);
	}
	buf_adds(out, "\n</tools>\n\nFor each function call, return a json "
		      "object with function name and arguments within "
		      "<tool_call></tool_call> XML tags:\n<tool_call>\n"
		      "{\"name\": <function-name>, \"arguments\": "
		      "<args-json-object>}\n</tool_call><|im_end|>\n");
}

static const char *skip_breaks(const char *s)
{
	return s + strspn(s, "\n");
}

/* Length of `s` without line breaks at its end. */
static int trimmed_len(const char *s, size_t n)
{
	while (n && s[n - 1] == '\n')
		n--;
	return (int)n;
}

/*
 * The thought and the answer of an assistant's turn.  The thought is what is
 * given, or what stands in the content before </think>; it is `thought_len`
 * bytes long.
 */
static void thought_split(const json_t *m, const char **thought,
			  int *thought_len, const char **answer)
{
	const char *s = get_text(m, "content"), *end = strstr(s, "</think>"),
		   *at;

	*answer = s;
	*thought = get_text(m, "reasoning_content");
	*thought_len = (int)strlen(*thought);
	if (json_is_string(json_object_get(m, "reasoning_content")) || !end)
		return;
	/* The template takes the last part as the answer. */
	for (at = end; at; at = strstr(at + 1, "</think>"))
		*answer = skip_breaks(at + strlen("</think>"));
	*thought = s;
	for (at = strstr(s, "<think>"); at && at < end;
	     at = strstr(at + 1, "<think>"))
		*thought = at + strlen("<think>");
	*thought = skip_breaks(*thought);
	*thought_len = *thought < end ?
			trimmed_len(*thought, (size_t)(end - *thought)) : 0;
}

static void calls_add(const json_t *calls, bool after_text, struct buf *out)
{
	const json_t *call;
	size_t i;

	json_array_foreach(calls, i, call) {
		const json_t *f = json_object_get(call, "function");
		const json_t *args;
		call = f ? f : call;
		args = json_object_get(call, "arguments");
		buf_printf(out, "%s<tool_call>\n{\"name\": \"%s\", "
			   "\"arguments\": ", i || after_text ? "\n" : "",
			   get_text(call, "name"));
		if (json_is_string(args))
			buf_adds(out, json_string_value(args));
		else if (args)
			dump_json(args, out);
		buf_adds(out, "}\n</tool_call>");
	}
}

static void assistant_turn(const json_t *m, bool recent, bool last,
			   struct buf *out)
{
	const char *thought, *answer;
	int len;

	thought_split(m, &thought, &len, &answer);
	buf_adds(out, "<|im_start|>assistant\n");
	if (recent && (last || len)) {
		const char *s = skip_breaks(thought);
		len -= (int)(s - thought);
		buf_printf(out, "<think>\n%.*s\n</think>\n\n",
			   len > 0 ? trimmed_len(s, (size_t)len) : 0, s);
		buf_adds(out, skip_breaks(answer));
	} else {
		buf_adds(out, answer);
	}
	calls_add(json_object_get(m, "tool_calls"), *answer != '\0', out);
	buf_adds(out, "<|im_end|>\n");
}

static void tool_turn(const json_t *m, const json_t *before,
		      const json_t *after, struct buf *out)
{
	if (!is_role(before, "tool"))
		buf_adds(out, "<|im_start|>user");
	buf_printf(out, "\n<tool_response>\n%s\n</tool_response>",
		   get_text(m, "content"));
	if (!is_role(after, "tool"))
		buf_adds(out, "<|im_end|>\n");
}

static void prompt_add(unsigned flags, struct buf *out)
{
	if (flags & QWEN_CHAT_PROMPT)
		buf_adds(out, "<|im_start|>assistant\n");
	if ((flags & QWEN_CHAT_PROMPT) && (flags & QWEN_CHAT_NO_THINK))
		buf_adds(out, "<think>\n\n</think>\n\n");
}

static void messages_add(const json_t *list, const json_t *tools,
			 unsigned flags, struct buf *out)
{
	size_t query = last_query(list), n = json_array_size(list);
	bool has_tools = json_array_size(tools) > 0;

	if (has_tools)
		tools_turn(tools, json_array_get(list, 0), out);
	for (size_t i = 0; i < n; i++) {
		const json_t *m = json_array_get(list, i);
		const json_t *before = i ? json_array_get(list, i - 1) : NULL;
		if (is_role(m, "assistant"))
			assistant_turn(m, i > query, i + 1 == n, out);
		else if (is_role(m, "tool"))
			tool_turn(m, before, json_array_get(list, i + 1), out);
		else if (i || !is_role(m, "system") || !has_tools)
			add_turn(get_text(m, "role"), get_text(m, "content"),
				 out);
	}
	prompt_add(flags, out);
}

static bool messages_check(const json_t *list, struct err *e)
{
	const json_t *m;
	size_t i;

	if (!json_is_array(list) || !json_array_size(list))
		return err_set(e, ERR_INPUT, "messages: wanted a list of "
			       "{\"role\", \"content\"}");
	json_array_foreach(list, i, m) {
		bool call = is_role(m, "assistant") &&
			    json_is_array(json_object_get(m, "tool_calls"));
		if (!is_role(m, "system") && !is_role(m, "user") &&
		    !is_role(m, "assistant") && !is_role(m, "tool"))
			return err_set(e, ERR_INPUT,
				       "message %zu: the role is "
				       "\"%s\"; wanted system, user, assistant "
				       "or tool",
				       i, get_text(m, "role"));
		if (!json_is_string(json_object_get(m, "content")) && !call)
			return err_set(e, ERR_INPUT,
				       "message %zu has no text as content", i);
	}
	return true;
}

static json_t *list_load(const char *s, const char *what, struct err *e)
{
	json_error_t je;
	json_t *j = json_loads(s, 0, &je);

	if (!j)
		err_set(e, ERR_INPUT, "%s:%d: %s", what, je.line, je.text);
	return j;
}

bool qwen_chat(const char *messages, const char *tools, unsigned flags,
	       struct buf *out, struct err *e)
{
	json_t *list = list_load(messages, "messages", e);
	json_t *t = list && tools ? list_load(tools, "tools", e) : NULL;
	bool ok = list && (!tools || t) && messages_check(list, e);

	if (ok && t && !json_is_array(t))
		ok = err_set(e, ERR_INPUT, "tools: wanted a list");
	if (ok)
		messages_add(list, t, flags, out);
	json_decref(list);
	json_decref(t);
	return ok;
}

void qwen_chat_one(const char *system, const char *user, unsigned flags,
		   struct buf *out)
{
	if (system)
		add_turn("system", system, out);
	add_turn("user", user, out);
	prompt_add(flags, out);
}
