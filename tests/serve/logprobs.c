/*
 * Logarithms of probabilities that t0-qwen3 serve tells, against a softmax of
 * long doubles over logits of passes of its own.
 */
#include <math.h>

#include "engine/cpu/cpu.h"
#include "engine/model/model.h"
#include "engine/text/text.h"
#include "tests/serve/client.h"

static struct served served;
static struct qwen_model model;
static struct qwen_tokenizer *tok;

/* The id whose bytes these are; the last of them, where they are a list. */
static uint32_t find_id(json_t *bytes)
{
	for (uint32_t id = 0; id < model.config.vocab; id++) {
		size_t len, i = 0;
		const char *s = qwen_token_bytes(tok, id, &len, NULL);
		if (!s || len != json_array_size(bytes))
			continue;
		while (i < len && json_integer_value(json_array_get(
					  bytes, i)) == (unsigned char)s[i])
			i++;
		if (i == len)
			return id;
	}
	return UINT32_MAX;
}

static long double log_sum(const float *logits)
{
	long double most = -INFINITY, sum = 0;

	for (uint32_t i = 0; i < model.config.vocab; i++)
		most = fmaxl(most, logits[i]);
	for (uint32_t i = 0; i < model.config.vocab; i++)
		sum += expl(logits[i] - most);
	return most + logl(sum);
}

/* How many logits are larger, or equal and of a lower id. */
static uint32_t rank_of(const float *logits, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < model.config.vocab; i++)
		n += logits[i] > logits[id] ||
		     (logits[i] == logits[id] && i < id);
	return n;
}

/* Is a word's logarithm that of the logits?  *id: which token it is. */
static bool is_right(json_t *word, const float *logits, uint32_t *id)
{
	*id = find_id(json_object_get(word, "bytes"));
	if (*id == UINT32_MAX)
		return false;
	long double want = logits[*id] - log_sum(logits);
	double got = json_number_value(json_object_get(word, "logprob"));
	return fabsl(got - want) < 1e-9;
}

/* Every word of a list, by passes over prompt and words. */
static void test_values(json_t *content, const char *prompt, uint32_t likely,
			const char *name)
{
	const struct qwen_shape shape = { 1, 256, 64, qwen_both(QWEN_W_F16), NULL, 0 };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(&model, &shape, &e);
	struct qwen_encoder *x = qwen_encoder_new(tok);
	struct qwen_token t[64] = { 0 };
	struct qwen_ids ids = { 0 };
	uint32_t n, id, wrong = 0, order = 0;
	size_t i;
	json_t *word, *other;

	qwen_encode(x, prompt, strlen(prompt), 0, &ids, &e);
	for (n = 0; n < ids.n; n++)
		t[n].id = ids.v[n];
	json_array_foreach (content, i, word) {
		json_t *top = json_object_get(word, "top_logprobs");
		size_t k;
		t[n - 1].logits = true;
		if (!qwen_forward(s, t, n, &e))
			break;
		const float *logits = qwen_logits(s, n - 1);
		json_array_foreach (top, k, other) {
			wrong += !is_right(other, logits, &id);
			order += rank_of(logits, id) != k;
		}
		order += k != likely;
		wrong += !is_right(word, logits, &id);
		t[0] = (struct qwen_token){ .id = id };
		n = 1;
	}
	is_u64(wrong, 0, "%s: every logarithm is the softmax's", name);
	is_u64(order, 0, "%s: the likeliest are told, best first", name);
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
	qwen_state_free(s);
}

/* Events' words are one list. */
static json_t *join_events(json_t *events, const char *path)
{
	json_t *all = json_array(), *event;
	size_t i;

	json_array_foreach (events, i, event) {
		json_t *list = get_at(event, path);
		if (json_is_array(list))
			json_array_extend(all, list);
	}
	return all;
}

static json_t *chat_request(void)
{
	return json_pack("{s:[{s:s,s:s}],s:i,s:i,s:f,s:b,s:i}", "messages",
			 "role", "user", "content", "Well?", "max_tokens", 24,
			 "seed", 5, "temperature", 1.5, "logprobs", true,
			 "top_logprobs", 7);
}

static void test_chat(void)
{
	static const char path[] = "/v1/chat/completions",
			  list[] = "choices.0.logprobs.content",
			  prompt[] = "<|im_start|>user\nWell?<|im_end|>\n"
				     "<|im_start|>assistant\n";
	long status;
	json_t *whole = ask_json(&served, path, chat_request(), &status);
	json_t *events = ask_stream(&served, path, chat_request(), &status);
	json_t *content = get_at(whole, list), *joined;

	is_u64(json_array_size(content),
	       (uint64_t)json_integer_value(
		       get_at(whole, "usage.completion_tokens")),
	       "a chat: each token is told");
	test_values(content, prompt, 7, "a chat");
	joined = join_events(events, list);
	ok(json_equal(joined, content), "a stream tells the same");
	json_decref(joined);
	json_decref(whole);
	json_decref(events);
}

static json_t *completion_request(int likely)
{
	return json_pack("{s:s,s:i,s:i,s:f,s:i}", "prompt", "The program",
			 "max_tokens", 24, "seed", 6, "temperature", 1.5,
			 "logprobs", likely);
}

/* The form of completions against the chat's, whose values are known. */
static void test_completion(void)
{
	static const char path[] = "/v1/completions";
	long status;
	json_t *whole = ask_json(&served, path, completion_request(3), &status);
	json_t *events =
		ask_stream(&served, path, completion_request(3), &status);
	json_t *none = ask_json(&served, path, completion_request(0), &status);
	json_t *l = get_at(whole, "choices.0.logprobs"), *one, *joined;
	json_t *p = get_at(l, "token_logprobs"),
	       *top = get_at(l, "top_logprobs");
	const char *text = text_at(whole, "choices.0.text");
	size_t i, wrong = 0, at = 0;

	is_u64(json_array_size(p), 24, "a completion: each token is told");
	json_array_foreach (get_at(l, "tokens"), i, one) {
		json_t *others = json_array_get(top, i), *v;
		const char *key, *name = json_string_value(one);
		double most = -INFINITY, sum = 0,
		       own = json_number_value(json_array_get(p, i));
		json_object_foreach(others, key, v)
		{
			most = fmax(most, json_number_value(v));
			sum += exp(json_number_value(v));
			wrong += !strcmp(key, name) &&
				 json_number_value(v) != own;
		}
		wrong += json_object_size(others) != 3 || sum > 1 || own > most;
		at = (size_t)json_integer_value(
			json_array_get(get_at(l, "text_offset"), i));
		wrong += !strncmp(name, "<|", 2) || !strncmp(name, "bytes", 5) ?
				 0 :
				 strncmp(text + at, name, strlen(name)) &&
					 !strstr(text, "\xef\xbf\xbd");
	}
	is_u64(wrong, 0, "a completion: names, offsets and likeliest agree");
	for (const char *const *key =
		     (const char *const[]){ "tokens", "token_logprobs",
					    "top_logprobs", "text_offset",
					    NULL };
	     *key; key++) {
		char where[64];
		snprintf(where, sizeof(where), "choices.0.logprobs.%s", *key);
		joined = join_events(events, where);
		ok(json_equal(joined, get_at(whole, where)),
		   "a stream tells the same %s", *key);
		json_decref(joined);
	}
	ok(json_equal(get_at(none, "choices.0.logprobs.token_logprobs"), p) &&
		   json_is_null(
			   get_at(none, "choices.0.logprobs.top_logprobs")),
	   "with 0 others the token's own is told");
	json_decref(whole);
	json_decref(events);
	json_decref(none);
}

static void test_stops(void)
{
	json_t *r = chat_request(), *whole, *stopped, *list, *words;
	size_t same = 0;
	long status;
	const char *text;
	char stop[2] = "";

	whole = ask_json(&served, "/v1/chat/completions", json_incref(r),
			 &status);
	text = text_at(whole, "choices.0.message.content");
	for (size_t i = 4; text[i] && !*stop; i++)
		if (text[i] > ' ' && text[i] < 0x7f)
			*stop = text[i];
	json_object_set_new(r, "stop", json_string(stop));
	stopped = ask_json(&served, "/v1/chat/completions", r, &status);
	list = get_at(stopped, "choices.0.logprobs.content");
	is_str(text_at(stopped, "choices.0.finish_reason"), "stop",
	       "a stop string ends it");
	words = get_at(whole, "choices.0.logprobs.content");
	ok(json_array_size(list) < json_array_size(words),
	   "words behind it are not told");
	for (size_t i = 0; i < json_array_size(list); i++)
		same += json_equal(json_array_get(list, i),
				   json_array_get(words, i));
	is_u64(same, json_array_size(list), "those before it are the same");
	json_decref(whole);
	json_decref(stopped);
}

static void test_refused(void)
{
	static const struct {
		const char *path, *body, *param;
	} row[] = {
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
		  "\"logprobs\":3}",
		  "logprobs" },
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
		  "\"top_logprobs\":3}",
		  "top_logprobs" },
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
		  "\"logprobs\":true,\"top_logprobs\":21}",
		  "top_logprobs" },
		{ "/v1/completions", "{\"prompt\":\"a\",\"logprobs\":true}",
		  "logprobs" },
		{ "/v1/completions", "{\"prompt\":\"a\",\"logprobs\":-1}",
		  "logprobs" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		long status;
		struct buf b =
			ask_text(&served, row[i].path, row[i].body, &status);
		json_t *j = json_loads(b.data, 0, NULL);
		ok(status == 400 &&
			   !strcmp(text_at(j, "error.param"), row[i].param) &&
			   !strcmp(text_at(j, "error.type"),
				   "invalid_request_error"),
		   "refused: %s", row[i].body);
		json_decref(j);
		buf_fini(&b);
	}
}

int main(void)
{
	struct qwen_load load = { .backend = &qwen_cpu };
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	char path[64];

	model_make(&served);
	snprintf(path, sizeof(path), "%s/model", served.dir);
	tok = qwen_tokenizer_load(path, &e);
	if (!tok || !qwen_model_load(&model, path, &load, threads, &e) ||
	    !server_start(&served, NULL))
		skip_all("no server: %s", e.msg);
	test_chat();
	test_completion();
	test_stops();
	test_refused();
	ok(server_end(&served), "the server ends");
	qwen_model_close(&model);
	qwen_tokenizer_free(tok);
	threads_free(threads);
	model_remove(&served);
	return plan_done();
}
