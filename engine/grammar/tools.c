/*
 * engine/grammar/tools.c - the calls of tools as Qwen3's chat template has
 * them.
 */
#include "engine/grammar/grammar_int.h"

static const char begin[] = QWEN_CALL_BEGIN;

/* Is it a schema of objects alone? */
static bool is_of_objects(json_t *schema)
{
	const char *type = json_string_value(json_object_get(schema, "type"));

	return type ? !strcmp(type, "object") :
		      json_is_object(json_object_get(schema, "properties"));
}

/* Of a tool's arguments; any object, where it is not strict and not known. */
static bool add_arguments(struct qwen_grammar *g, const struct json_rules *json,
			  const struct qwen_tool *tool, uint32_t *rule,
			  struct err *e)
{
	struct err own = { 0 };

	*rule = json->object;
	if (!tool->parameters)
		return true;
	if (!is_of_objects(tool->parameters))
		return !tool->strict ||
		       err_set(e, ERR_UNSUPPORTED,
			       "tool %s: its parameters' type is not object",
			       tool->name);
	if (schema_add_rule(g, json, tool->parameters, rule, &own))
		return true;
	*rule = json->object;
	return !tool->strict ||
	       err_set(e, own.code, "tool %s: %s", tool->name, own.msg);
}

/* A call behind its mark. */
static bool add_call(struct qwen_grammar *g, const struct qwen_tool *tool,
		     size_t n, uint32_t rule, struct err *e)
{
	struct json_rules json;

	json_add_rules(g, &json);
	for (size_t i = 0; i < n; i++) {
		struct seq s = { 0 };
		uint32_t arguments;
		if (!add_arguments(g, &json, &tool[i], &arguments, e))
			return false;
		seq_add_text(g, &s, QWEN_CALL_NAME, strlen(QWEN_CALL_NAME));
		seq_add_text(g, &s, tool[i].name, strlen(tool[i].name));
		seq_add_text(g, &s, QWEN_CALL_ARGUMENTS,
			     strlen(QWEN_CALL_ARGUMENTS));
		seq_add_rule(&s, arguments);
		seq_add_text(g, &s, QWEN_CALL_END, strlen(QWEN_CALL_END));
		grammar_add_seq(g, rule, &s);
	}
	return true;
}

/*
 * Any text, to its end or a call's mark, behind which `calls` follow: rule i is
 * where the first i bytes of the mark were the last ones.  Only the first of
 * them may begin it anew.
 */
static uint32_t add_text(struct qwen_grammar *g, uint32_t calls)
{
	enum { N = sizeof(begin) - 1 };
	const char first[] = { begin[0], '\0' };
	uint32_t rule[N + 1];

	for (size_t i = 0; i < N; i++)
		rule[i] = grammar_add_rule(g);
	rule[N] = calls;
	for (size_t i = 0; i < N; i++) {
		const char next[] = { begin[i], '\0' };
		const char others[] = { '^', begin[0], i ? begin[i] : '\0',
					'\0' };
		grammar_add(g, rule[i], "");
		grammar_add(g, rule[i], "%c%r", next, rule[i + 1]);
		if (i)
			grammar_add(g, rule[i], "%c%r", first, rule[1]);
		grammar_add(g, rule[i], "%c%r", others, rule[0]);
	}
	return rule[0];
}

struct qwen_grammar *qwen_grammar_tools(const struct qwen_tool *tool, size_t n,
					bool must, uint32_t most, struct err *e)
{
	struct qwen_grammar *g = xcalloc(1, sizeof(*g));
	const uint32_t call = grammar_add_rule(g), more = grammar_add_rule(g),
		       calls = grammar_add_rule(g);
	uint32_t start = grammar_add_rule(g);

	if (!add_call(g, tool, n, call, e)) {
		qwen_grammar_free(g);
		return NULL;
	}
	struct seq s = { 0 };
	seq_add_text(g, &s, "\n", 1);
	seq_add_text(g, &s, begin, strlen(begin));
	seq_add_rule(&s, call);
	grammar_add_seq(g, more, &s);
	grammar_add(g, calls, "%r%r", call,
		    grammar_repeat(g, more, 0, most - 1));
	if (must) {
		seq_add_text(g, &s, begin, strlen(begin));
		seq_add_rule(&s, calls);
		grammar_add_seq(g, start, &s);
	} else {
		start = add_text(g, calls);
	}
	if (grammar_finish(g, start))
		return g;
	err_set(e, ERR_INPUT, "no arguments satisfy the parameters of a tool");
	qwen_grammar_free(g);
	return NULL;
}
