/*
 * The chat template: texts that follow from its published rules, written out
 * by hand.
 */
#include <string.h>

#include "engine/text/text.h"
#include "tests/tap.h"

#define USER(s) "<|im_start|>user\n" s "<|im_end|>\n"
#define ASK "<|im_start|>assistant\n"

static const struct {
	const char *what, *messages, *tools;
	unsigned flags;
	const char *wanted;
} turns[] = {
	{ "one question", "[{\"role\":\"user\",\"content\":\"Hi\"}]", NULL,
	  QWEN_CHAT_PROMPT, USER("Hi") ASK },
	{ "without thinking", "[{\"role\":\"user\",\"content\":\"Hi\"}]", NULL,
	  QWEN_CHAT_PROMPT | QWEN_CHAT_NO_THINK,
	  USER("Hi") ASK "<think>\n\n</think>\n\n" },
	{ "without a prompt", "[{\"role\":\"user\",\"content\":\"Hi\"}]", NULL,
	  QWEN_CHAT_NO_THINK, USER("Hi") },
	{ "a system turn", "[{\"role\":\"system\",\"content\":\"Be brief.\"},"
	  "{\"role\":\"user\",\"content\":\"Hi\"}]", NULL, 0,
	  "<|im_start|>system\nBe brief.<|im_end|>\n" USER("Hi") },
	{ "a thought of an earlier turn is left out",
	  "[{\"role\":\"user\",\"content\":\"A\"},"
	  "{\"role\":\"assistant\",\"content\":\"<think>\\nhm\\n</think>\\n\\n"
	  "B\"},{\"role\":\"user\",\"content\":\"C\"}]", NULL, 0,
	  USER("A") ASK "B<|im_end|>\n" USER("C") },
	{ "the thought of the last turn stays",
	  "[{\"role\":\"user\",\"content\":\"A\"},"
	  "{\"role\":\"assistant\",\"content\":\"<think>\\nhm\\n</think>\\n\\n"
	  "B\"}]", NULL, 0,
	  USER("A") ASK "<think>\nhm\n</think>\n\nB<|im_end|>\n" },
	{ "a last turn without a thought has an empty one",
	  "[{\"role\":\"user\",\"content\":\"A\"},"
	  "{\"role\":\"assistant\",\"content\":\"B\"}]", NULL, 0,
	  USER("A") ASK "<think>\n\n</think>\n\nB<|im_end|>\n" },
	{ "a thought that is given apart",
	  "[{\"role\":\"user\",\"content\":\"A\"},"
	  "{\"role\":\"assistant\",\"content\":\"B\","
	  "\"reasoning_content\":\"\\nwell\\n\"}]", NULL, 0,
	  USER("A") ASK "<think>\nwell\n</think>\n\nB<|im_end|>\n" },
	{ "calls and results",
	  "[{\"role\":\"user\",\"content\":\"A\"},"
	  "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
	  "{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1,\"y\":[0.5,"
	  "true,null]}}},{\"name\":\"g\",\"arguments\":\"{}\"}]},"
	  "{\"role\":\"tool\",\"content\":\"1\"},"
	  "{\"role\":\"tool\",\"content\":\"2\"}]", NULL, QWEN_CHAT_PROMPT,
	  USER("A") ASK
	  "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1, \"y\": "
	  "[0.5, true, null]}}\n</tool_call>\n"
	  "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"
	  "<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n"
	  "<tool_response>\n2\n</tool_response><|im_end|>\n" ASK },
	{ "tools", "[{\"role\":\"system\",\"content\":\"S\"},"
	  "{\"role\":\"user\",\"content\":\"A\"}]",
	  "[{\"type\":\"function\",\"n\":1e20,\"u\":\"\xc3\xa9\\n\"}]", 0,
	  "<|im_start|>system\nS\n\n# Tools\n\nYou may call one or more "
	  "functions to assist with the user query.\n\nYou are provided with "
	  "function signatures within <tools></tools> XML tags:\n<tools>\n"
	  "{\"type\": \"function\", \"n\": 1e+20, \"u\": \"\xc3\xa9\\n\"}\n"
	  "</tools>\n\nFor each function call, return a json object with "
	  "function name and arguments within <tool_call></tool_call> XML "
	  "tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
	  "<args-json-object>}\n</tool_call><|im_end|>\n" USER("A") },
};

static const struct {
	const char *what, *messages, *part;
} bad[] = {
	{ "no JSON", "[", "messages:1:" },
	{ "an object", "{}", "wanted a list" },
	{ "an empty list", "[]", "wanted a list" },
	{ "another role", "[{\"role\":\"boss\",\"content\":\"\"}]",
	  "message 0: the role is \"boss\"" },
	{ "no content", "[{\"role\":\"user\"}]", "message 0 has no text" },
};

int main(void)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		buf_reset(&out);
		qwen_chat(turns[i].messages, turns[i].tools, turns[i].flags,
			  &out, &e);
		is_str(out.data, turns[i].wanted, "%s", turns[i].what);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ok(!qwen_chat(bad[i].messages, NULL, 0, &out, &e) &&
		   e.code == ERR_INPUT, "%s is refused", bad[i].what);
		has_str(e.msg, bad[i].part, "%s: says why", bad[i].what);
	}
	ok(!qwen_chat(turns[0].messages, "{}", 0, &out, &e),
	   "tools that are no list are refused");
	buf_reset(&out);
	qwen_chat_one("S", "U", QWEN_CHAT_PROMPT, &out);
	is_str(out.data, "<|im_start|>system\nS<|im_end|>\n" USER("U") ASK,
	       "one turn without JSON");
	buf_fini(&out);
	return plan_done();
}
