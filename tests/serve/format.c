/*
 * response_format of t0-qwen3 serve: answers of a model that says noise parse,
 * and satisfy their schemas by a validator of its own.
 */
#include "tests/serve/client.h"
#include "tests/serve/schema.h"

static const char chat[] = "/v1/chat/completions";
static struct served served;

static json_t *request_of(json_t *format, int tokens, uint64_t seed)
{
	return json_pack("{s:[{s:s,s:s}],s:i,s:I,s:f,s:i,s:o}", "messages",
			 "role", "user", "content", "Tell it as JSON.",
			 "max_tokens", tokens, "seed", (json_int_t)seed,
			 "temperature", 1.5, "n", 2, "response_format", format);
}

static json_t *schema_format(json_t *schema)
{
	return json_pack("{s:s,s:{s:s,s:b,s:O}}", "type", "json_schema",
			 "json_schema", "name", "x", "strict", 1, "schema",
			 schema);
}

static void test_objects(void)
{
	uint32_t good = 0;

	for (int i = 0; i < 8; i++) {
		long status;
		json_t *a = ask_json(
			&served, chat,
			request_of(json_pack("{s:s}", "type", "json_object"),
				   2 + 9 * i, (uint64_t)i),
			&status);
		for (int k = 0; k < 2; k++) {
			char at[40];
			snprintf(at, sizeof(at), "choices.%d.message.content",
				 k);
			json_t *v = json_loads(text_at(a, at), 0, NULL);
			snprintf(at, sizeof(at), "choices.%d.finish_reason", k);
			good += json_is_object(v) &&
				!strcmp(text_at(a, at), "stop");
			json_decref(v);
		}
		json_decref(a);
	}
	is_u64(good, 16, "json_object: all are objects, in 2 to 65 tokens");
}

/* The text of choice k of a stream. */
static struct buf join_text(json_t *events, int k)
{
	struct buf b = { 0 };
	json_t *event;
	size_t i;

	json_array_foreach (events, i, event)
		if (json_integer_value(get_at(event, "choices.0.index")) == k &&
		    json_is_string(get_at(event, "choices.0.delta.content")))
			buf_adds(&b, text_at(event, "choices.0.delta.content"));
	buf_adds(&b, "");
	return b;
}

static void test_schemas(uint32_t n)
{
	uint64_t seed = 77;
	uint32_t valid = 0, same = 0, texts = 0;

	for (uint32_t i = 0; i < n; i++) {
		json_t *s = random_root(&seed);
		json_t *r = request_of(schema_format(s), 100, seed);
		long status;
		json_t *a = ask_json(&served, chat, json_incref(r), &status);
		json_t *events = ask_stream(&served, chat, r, &status);
		if (strstr(text_at(a, "error.message"), "shortest"))
			diag("%s", text_at(a, "error.message"));
		for (int k = 0; k < 2 && !json_object_get(a, "error"); k++) {
			char at[40];
			struct buf b = join_text(events, k);
			snprintf(at, sizeof(at), "choices.%d.message.content",
				 k);
			json_t *v = json_loads(text_at(a, at), 0, NULL);
			valid += v && is_valid(s, s, v);
			same += !strcmp(b.data, text_at(a, at));
			texts++;
			json_decref(v);
			buf_fini(&b);
		}
		json_decref(events);
		json_decref(a);
		json_decref(s);
	}
	ok(texts > n, "most schemas can be satisfied in 100 tokens: %u", texts);
	is_u64(valid, texts, "all answers satisfy their schemas");
	is_u64(same, texts, "and are the same as streams");
}

static void test_completion(void)
{
	long status;
	json_t *s = json_pack("{s:s,s:i,s:i}", "type", "integer", "minimum", 41,
			      "maximum", 43);
	json_t *a = ask_json(&served, "/v1/completions",
			     json_pack("{s:s,s:o,s:i,s:i}", "prompt", "It is ",
				       "response_format", schema_format(s),
				       "max_tokens", 9, "logprobs", 2),
			     &status);
	const int v = atoi(text_at(a, "choices.0.text"));

	ok(v >= 41 && v <= 43, "a completion has a form, too: %d", v);
	is_u64(json_array_size(get_at(a, "choices.0.logprobs.token_logprobs")),
	       (uint64_t)json_integer_value(
		       get_at(a, "usage.completion_tokens")),
	       "and logarithms");
	json_decref(a);
	json_decref(s);
}

static void test_refused(void)
{
	static const struct {
		const char *format, *says;
	} row[] = {
		{ "\"json\"", "wanted a \\\"type\\\"" },
		{ "{\"type\":\"xml\"}", "wanted" },
		{ "{\"type\":\"json_schema\"}", "wanted" },
		{ "{\"type\":\"json_schema\",\"json_schema\":{\"schema\":"
		  "{\"type\":\"string\",\"pattern\":\"a\"}}}",
		  "\\\"pattern\\\"" },
		{ "{\"type\":\"json_schema\",\"json_schema\":{\"schema\":"
		  "{\"type\":\"string\",\"minLength\":30}}}",
		  "shortest" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		char body[512];
		long status;
		snprintf(body, sizeof(body),
			 "{\"prompt\":\"a\",\"max_tokens\":10,"
			 "\"response_format\":%s}",
			 row[i].format);
		struct buf b =
			ask_text(&served, "/v1/completions", body, &status);
		ok(status == 400 && strstr(b.data, row[i].says) &&
			   strstr(b.data, "invalid_request_error"),
		   "refused: %s", row[i].format);
		if (!strstr(b.data, row[i].says))
			diag("%s", b.data);
		buf_fini(&b);
	}
}

int main(void)
{
	model_make(&served);
	if (!ok(server_start(&served, NULL), "a server starts"))
		return plan_done();
	test_objects();
	test_schemas(getenv("T0_SLOW") ? 400 : 30);
	test_completion();
	test_refused();
	ok(server_end(&served), "the server ends");
	model_remove(&served);
	return plan_done();
}
