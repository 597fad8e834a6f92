/*
 * Tool calls of t0-qwen3 serve: a model that says noise calls tools with
 * arguments of their schemas; streams say the same; results go back into the
 * prompt as the template has them.
 */
#include "engine/text/text.h"
#include "tests/serve/client.h"
#include "tests/serve/schema.h"

static const char path[] = "/v1/chat/completions";
static const char tools_text[] =
	"[{\"type\":\"function\",\"function\":{\"name\":\"weather\","
	"\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{"
	"\"enum\":[\"Bonn\",\"Oslo\"]},\"days\":{\"type\":\"integer\","
	"\"minimum\":1,\"maximum\":14}},\"required\":[\"city\"],"
	"\"additionalProperties\":false}}},"
	"{\"type\":\"function\",\"function\":{\"name\":\"stop_it-2\"}}]";
static struct served served;

static json_t *request_of(const char *choice, uint64_t seed, int n, int tokens)
{
	json_error_t e;
	json_t *r = json_pack("{s:[{s:s,s:s}],s:i,s:I,s:f,s:i,s:o}", "messages",
			      "role", "user", "content", "Is it cold?",
			      "max_tokens", tokens, "seed", (json_int_t)seed,
			      "temperature", 3.0, "n", n, "tools",
			      json_loads(tools_text, 0, &e));

	if (choice)
		json_object_set_new(r, "tool_choice",
				    json_loads(choice, JSON_DECODE_ANY, &e));
	return r;
}

/* Is a call one of a tool, with arguments that it takes? */
static bool is_call(json_t *call)
{
	json_t *tools = json_loads(tools_text, 0, NULL);
	json_t *args = json_loads(text_at(call, "function.arguments"), 0, NULL);
	const char *name = text_at(call, "function.name");
	bool good = json_is_object(args) &&
		    !strcmp(text_at(call, "type"), "function") &&
		    !strncmp(text_at(call, "id"), "call_", 5);

	if (!strcmp(name, "weather")) {
		json_t *s = get_at(tools, "0.function.parameters");
		good = good && is_valid(s, s, args);
	} else {
		good = good && !strcmp(name, "stop_it-2");
	}
	json_decref(args);
	json_decref(tools);
	return good;
}

/* A choice of a stream, put together as clients do. */
static json_t *join_stream(json_t *events, int k)
{
	json_t *calls = json_array(), *event, *one, *finish = json_null();
	struct buf content = { 0 };
	size_t i, n;

	json_array_foreach (events, i, event) {
		json_t *c = get_at(event, "choices.0"), *d = get_at(c, "delta");
		if (json_integer_value(get_at(c, "index")) != k)
			continue;
		one = get_at(d, "content");
		if (json_is_string(one))
			buf_add(&content, json_string_value(one),
				json_string_length(one));
		if (json_is_string(get_at(c, "finish_reason")))
			finish = get_at(c, "finish_reason");
		json_array_foreach (get_at(d, "tool_calls"), n, one) {
			size_t at = (size_t)json_integer_value(
				get_at(one, "index"));
			json_t *had = json_array_get(calls, at), *f;
			if (!had) {
				had = json_deep_copy(one);
				json_object_del(had, "index");
				json_array_append_new(calls, had);
				continue;
			}
			f = json_object_get(had, "function");
			json_t *more = json_sprintf(
				"%s%s", text_at(f, "arguments"),
				text_at(one, "function.arguments"));
			json_object_set_new(f, "arguments", more);
		}
	}
	buf_adds(&content, "");
	one = json_pack("{s:o,s:o,s:O}", "calls", calls, "content",
			json_stringn(content.data, content.len), "finish",
			finish);
	buf_fini(&content);
	return one;
}

/* Are they the same but for their ids, which are a request's? */
static bool are_alike(json_t *joined, json_t *choice)
{
	json_t *a = json_deep_copy(get_at(joined, "calls")),
	       *b = json_deep_copy(get_at(choice, "message.tool_calls")), *call;
	json_t *content = get_at(choice, "message.content"),
	       *none = json_string("");
	size_t i;

	json_array_foreach (a, i, call)
		json_object_del(call, "id");
	json_array_foreach (b, i, call)
		json_object_del(call, "id");
	bool same = (b ? json_equal(a, b) : !json_array_size(a)) &&
		    json_equal(json_is_null(content) ? none : content,
			       get_at(joined, "content")) &&
		    json_equal(get_at(joined, "finish"),
			       get_at(choice, "finish_reason"));
	json_decref(a);
	json_decref(b);
	json_decref(none);
	return same;
}

struct tally {
	uint32_t choices, calls, good, same, with_text;
	uint32_t finish; /* as wanted */
};

/* Asks for both forms, and counts. */
static void count_calls(json_t *request, const char *finish, struct tally *t)
{
	long status;
	json_t *a = ask_json(&served, path, json_incref(request), &status);
	json_t *events = ask_stream(&served, path, request, &status), *choice,
	       *call;
	size_t i, k;

	json_array_foreach (get_at(a, "choices"), i, choice) {
		json_t *calls = get_at(choice, "message.tool_calls"),
		       *joined = join_stream(events, (int)i);
		t->choices++;
		json_array_foreach (calls, k, call) {
			t->calls++;
			t->good += is_call(call);
		}
		t->with_text +=
			calls &&
			json_is_string(get_at(choice, "message.content"));
		t->finish +=
			!strcmp(text_at(choice, "finish_reason"),
				calls ? finish : "length") ||
			(!calls &&
			 !strcmp(text_at(choice, "finish_reason"), "stop"));
		t->same += are_alike(joined, choice);
		if (!are_alike(joined, choice)) {
			char *x = json_dumps(joined, 0),
			     *y = json_dumps(choice, 0);
			diag("%s", x);
			diag("%s", y);
			free(x);
			free(y);
		}
		json_decref(joined);
	}
	if (!json_object_get(a, "choices"))
		diag("%s", text_at(a, "error.message"));
	json_decref(events);
	json_decref(a);
}

static void test_must(void)
{
	struct tally t = { 0 };

	for (uint64_t seed = 0; seed < 6; seed++)
		count_calls(request_of("\"required\"", seed * 50, 3, 128),
			    "tool_calls", &t);
	is_u64(t.choices, 18, "required: all answers came");
	ok(t.calls >= 18, "each calls a tool, or several: %u", t.calls);
	is_u64(t.good, t.calls, "with arguments that it takes");
	is_u64(t.finish, 18, "and says that it ends for them");
	is_u64(t.same, 18, "a stream says the same");
	is_u64(t.with_text, 0, "without a text");
}

static void test_one(void)
{
	struct tally t = { 0 };

	count_calls(request_of("{\"type\":\"function\",\"function\":"
			       "{\"name\":\"weather\"}}",
			       3, 8, 120),
		    "stop", &t);
	is_u64(t.calls, 8, "a named tool is called once");
	is_u64(t.good, 8, "with its arguments");
	is_u64(t.finish, 8, "and \"stop\"");
	is_u64(t.same, 8, "in streams, too");
	t = (struct tally){ 0 };
	json_t *r = request_of("\"required\"", 9, 8, 128);
	json_object_set_new(r, "parallel_tool_calls", json_false());
	count_calls(r, "tool_calls", &t);
	is_u64(t.calls, 8, "no two at once where that is not wanted");
}

/*
 * The mark is one of 512 tokens: among so many texts some have it.  A stop
 * string that every call has in it cuts none.
 */
static void test_may(void)
{
	struct tally t = { 0 };

	for (uint64_t seed = 0; seed < 5; seed++) {
		json_t *r = request_of(NULL, seed * 100, 16, 128);
		json_object_set_new(r, "stop", json_string("\"arguments\""));
		count_calls(r, "tool_calls", &t);
	}
	is_u64(t.choices, 80, "auto: all answers came");
	ok(t.calls > 2, "some call tools: %u", t.calls);
	is_u64(t.good, t.calls, "with arguments that they take");
	ok(t.with_text > 0, "after a text");
	is_u64(t.same, 80, "streams say the same");
	is_u64(t.finish, 80, "and why they end");
}

/* ---- prompts ---- */

static int64_t prompt_tokens(json_t *request)
{
	long status;
	json_t *a = ask_json(&served, path, request, &status);
	int64_t n = json_integer_value(get_at(a, "usage.prompt_tokens"));

	if (status != 200)
		diag("%s", text_at(a, "error.message"));
	json_decref(a);
	return n;
}

static int64_t count_tokens(struct qwen_tokenizer *tok, const char *text)
{
	struct qwen_encoder *x = qwen_encoder_new(tok);
	struct qwen_ids ids = { 0 };
	struct err e = { 0 };

	qwen_encode(x, text, strlen(text), 0, &ids, &e);
	int64_t n = (int64_t)ids.n;
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
	return n;
}

static void test_prompts(struct qwen_tokenizer *tok)
{
	static const char turns[] =
		"[{\"role\":\"developer\",\"content\":\"Be brief.\"},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		"\"Cold\"},{\"type\":\"text\",\"text\":\"er?\"}]},"
		"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
		"\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":"
		"\"weather\",\"arguments\":\"{\\\"city\\\": \\\"Bonn\\\"}\"}}]},"
		"{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":"
		"\"-3 C\"}]";
	static const char want[] =
		"<|im_start|>system\nBe brief.<|im_end|>\n"
		"<|im_start|>user\nColder?<|im_end|>\n"
		"<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n"
		"{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\"}}\n"
		"</tool_call><|im_end|>\n"
		"<|im_start|>user\n<tool_response>\n-3 C\n</tool_response>"
		"<|im_end|>\n<|im_start|>assistant\n";
	static const char plain[] = "<|im_start|>assistant\n<tool_call>\n";
	json_t *r = json_pack("{s:o,s:i}", "messages",
			      json_loads(turns, 0, NULL), "max_tokens", 1);
	int64_t got = prompt_tokens(r);
	char *without = xstrdup(want), *at = strstr(without, "<think>");

	/* The thought of a turn that is not the last is left out if empty. */
	memmove(at, at + strlen("<think>\n\n</think>\n\n"),
		strlen(at + strlen("<think>\n\n</think>\n\n")) + 1);
	is_i64(got, count_tokens(tok, without),
	       "a tool's result is in the prompt as the template has it");
	has_str(without, plain, "with its call");
	free(without);
	r = request_of("\"none\"", 1, 1, 1);
	got = prompt_tokens(json_incref(r));
	json_object_del(r, "tools");
	json_object_del(r, "tool_choice");
	is_i64(got, prompt_tokens(r), "none: the model sees no tools");
	ok(prompt_tokens(request_of(NULL, 1, 1, 100)) > got,
	   "else it sees them");
}

static void test_refused(void)
{
	static const struct {
		const char *more, *param;
	} row[] = {
		{ "\"tools\":{}", "tools" },
		{ "\"tools\":[{\"type\":\"retrieval\"}]", "tools" },
		{ "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
		  "\"a b\"}}]",
		  "tools" },
		{ "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
		  "\"a\"}},{\"type\":\"function\",\"function\":{\"name\":\"a\"}"
		  "}]",
		  "tools" },
		{ "\"tool_choice\":\"auto\"", "tool_choice" },
		{ "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
		  "\"a\"}}],\"tool_choice\":\"maybe\"",
		  "tool_choice" },
		{ "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
		  "\"a\"}}],\"tool_choice\":{\"type\":\"function\","
		  "\"function\":{\"name\":\"b\"}}",
		  "tool_choice" },
		{ "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
		  "\"a\",\"strict\":true,\"parameters\":{\"type\":\"object\","
		  "\"patternProperties\":{}}}}]",
		  "tools" },
		{ "\"stop\":\"}\",\"response_format\":{\"type\":"
		  "\"json_object\"}",
		  "stop" },
		{ "\"stop\":\"}\",\"tool_choice\":\"required\",\"tools\":[{"
		  "\"type\":\"function\",\"function\":{\"name\":\"a\"}}]",
		  "stop" },
		{ "\"functions\":[{\"name\":\"a\"}]", "functions" },
		{ "\"logit_bias\":{\"5\":1}", "logit_bias" },
		{ "\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]",
		  "messages" },
		{ "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
		  "\"image_url\"}]}]",
		  "messages" },
		{ "\"messages\":[{\"content\":\"x\"}]", "messages" },
		{ "\"messages\":[3]", "messages" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		char body[1024];
		long status;
		snprintf(body, sizeof(body), "{\"max_tokens\":120,%s%s}",
			 row[i].more,
			 strstr(row[i].more, "messages") ?
				 "" :
				 ",\"messages\":[{\"role\":\"user\","
				 "\"content\":\"a\"}]");
		struct buf b = ask_text(&served, path, body, &status);
		json_t *j = json_loads(b.data, 0, NULL);
		ok(status == 400 &&
			   !strcmp(text_at(j, "error.param"), row[i].param),
		   "refused: %s", row[i].more);
		if (status != 400)
			diag("%s", b.data);
		json_decref(j);
		buf_fini(&b);
	}
}

int main(void)
{
	static const char *const all[] = { "--top-k", "0", "--top-p", "1",
					   NULL };
	struct qwen_tokenizer *tok;
	struct err e = { 0 };
	char model[64];

	model_make(&served);
	snprintf(model, sizeof(model), "%s/model", served.dir);
	tok = qwen_tokenizer_load(model, &e);
	if (!ok(tok && server_start(&served, all), "a server starts"))
		return plan_done();
	test_must();
	test_one();
	test_may();
	test_prompts(tok);
	test_refused();
	ok(server_end(&served), "the server ends");
	qwen_tokenizer_free(tok);
	model_remove(&served);
	return plan_done();
}
