/*
 * engine/cmd/serve/cmd_serve_answer.c - what t0-qwen3 serve says, in OpenAI's
 * form: whole answers, and what is new of one as events.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/cmd/serve/cmd_serve_http.h"

/*
 * Bytes that are no character, as models may write them and messages may quote
 * them, become U+FFFD.
 */
static json_t *text_json(const char *text, size_t len)
{
	json_t *j = json_stringn(text, len);
	struct buf b = { 0 };

	for (size_t i = 0, n; !j && i < len; i += n) {
		for (n = len - i < 4 ? len - i : 4; n; n--) {
			json_t *one = json_stringn(text + i, n);
			json_decref(one);
			if (one)
				break;
		}
		if (n)
			buf_add(&b, text + i, n);
		else
			buf_adds(&b, "\xef\xbf\xbd");
		n += !n;
	}
	j = j ? j : json_stringn(b.data, b.len);
	buf_fini(&b);
	return j;
}

json_t *serve_error_json(unsigned status, const char *message,
			 const char *param)
{
	const char *type = status == 401 ? "authentication_error" :
			   status == 429 ? "rate_limit_error" :
			   status >= 500 ? "server_error" :
					   "invalid_request_error";

	return json_pack("{s:{s:o,s:s,s:s?,s:n}}", "error", "message",
			 text_json(message, strlen(message)), "type", type, "param", param, "code");
}

/* A file's name may be any bytes. */
json_t *serve_name_json(const struct server *s)
{
	const char *name = qwen_cmd_name(s->c->model);

	return text_json(name, strlen(name));
}

/* ---- logarithms of probabilities ---- */

static const char *token_bytes(const struct choice *c, uint32_t id, size_t *len)
{
	const char *s = qwen_token_bytes(c->job->s->session.tok, id, len, NULL);

	*len = s ? *len : 0;
	return s ? s : "";
}

/* A chat's token: text, logarithm and bytes. */
static json_t *likely_json(const struct choice *c, const struct qwen_likely *l)
{
	json_t *bytes = json_array();
	size_t len;
	const char *s = token_bytes(c, l->id, &len);

	for (size_t i = 0; i < len; i++)
		json_array_append_new(bytes, json_integer((unsigned char)s[i]));
	return json_pack("{s:o,s:f,s:o}", "token", text_json(s, len), "logprob",
			 l->log_p, "bytes", bytes);
}

/* A completion's token is a name; what is no text has its bytes as that. */
static json_t *name_json(const struct choice *c, uint32_t id)
{
	size_t len;
	const char *s = token_bytes(c, id, &len);
	json_t *j = json_stringn(s, len);
	struct buf b = { 0 };

	if (j)
		return j;
	buf_adds(&b, "bytes:");
	for (size_t i = 0; i < len; i++)
		buf_printf(&b, "\\x%02x", (unsigned char)s[i]);
	j = json_stringn(b.data, b.len);
	buf_fini(&b);
	return j;
}

static json_t *chat_words_json(const struct choice *c, size_t to)
{
	const uint32_t likely = c->job->likely;
	json_t *list = json_array();

	for (size_t i = c->words_sent; i < to; i++) {
		json_t *word = likely_json(c, &c->words.v[i].said);
		json_t *top = json_array();
		for (uint32_t k = 0; k < likely; k++)
			json_array_append_new(
				top,
				likely_json(c, &c->likely.v[i * likely + k]));
		json_object_set_new(word, "top_logprobs", top);
		json_array_append_new(list, word);
	}
	return json_pack("{s:o,s:n}", "content", list, "refusal");
}

static json_t *completion_words_json(const struct choice *c, size_t to)
{
	const uint32_t likely = c->job->likely;
	json_t *token = json_array(), *p = json_array(), *top = json_array(),
	       *at = json_array();

	for (size_t i = c->words_sent; i < to; i++) {
		const struct word *w = &c->words.v[i];
		json_t *others = json_object();
		for (uint32_t k = 0; k < likely; k++) {
			const struct qwen_likely *l =
				&c->likely.v[i * likely + k];
			json_t *name = name_json(c, l->id);
			json_object_setn_new(others, json_string_value(name),
					     json_string_length(name),
					     json_real(l->log_p));
			json_decref(name);
		}
		json_array_append_new(token, name_json(c, w->said.id));
		json_array_append_new(p, json_real(w->said.log_p));
		json_array_append_new(top, others);
		json_array_append_new(at, json_integer((json_int_t)w->from));
	}
	if (!likely) {
		json_decref(top);
		top = json_null();
	}
	return json_pack("{s:o,s:o,s:o,s:o}", "tokens", token, "token_logprobs",
			 p, "top_logprobs", top, "text_offset", at);
}

/* Of the next words of a choice. */
static json_t *words_json(const struct choice *c, size_t to)
{
	if (!c->job->logprobs)
		return json_null();
	return c->job->kind == SERVE_CHAT ? chat_words_json(c, to) :
					    completion_words_json(c, to);
}

/* ---- whole answers ---- */

static json_t *usage_json(const struct job *j)
{
	uint32_t prompt = 0, n = 0;

	for (size_t i = 0; i < j->prompts.n; i++)
		prompt += (uint32_t)j->prompts.v[i].n;
	for (uint32_t i = 0; i < j->n_choices; i++)
		n += j->choice[i].tokens;
	return json_pack("{s:I,s:I,s:I}", "prompt_tokens", (json_int_t)prompt,
			 "completion_tokens", (json_int_t)n, "total_tokens",
			 (json_int_t)(prompt + n));
}

static json_t *head_json(const struct job *j, json_t *choices)
{
	const char *what = j->kind == SERVE_COMPLETION ? "text_completion" :
			   j->stream ? "chat.completion.chunk" :
				       "chat.completion";

	return json_pack("{s:s,s:s,s:I,s:o,s:o}", "id", j->id, "object", what,
			 "created", (json_int_t)time(NULL), "model",
			 serve_name_json(j->s), "choices", choices);
}

/* The next of a choice: text up to `end` and words up to `words`. */
static json_t *choice_json(const struct job *j, uint32_t i, size_t end,
			   size_t words)
{
	const struct choice *c = &j->choice[i];
	json_t *text = text_json(c->text.data ? c->text.data + c->sent : "",
				 end - c->sent);
	json_t *o = json_pack("{s:i,s:s?,s:o}", "index", (int)i,
			      "finish_reason", c->finish, "logprobs",
			      words_json(c, words));

	if (j->kind == SERVE_COMPLETION)
		json_object_set_new(o, "text", text);
	else if (j->stream)
		json_object_set_new(o, "delta",
				    json_pack("{s:o}", "content", text));
	else
		json_object_set_new(o, "message",
				    json_pack("{s:s,s:o}", "role", "assistant",
					      "content", text));
	return o;
}

/* Base 64 of RFC 4648, of whole bytes. */
static json_t *base64_json(const unsigned char *at, size_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	struct buf b = { 0 };
	json_t *j;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)at[i] << 16;
		v |= i + 1 < n ? (uint32_t)at[i + 1] << 8 : 0;
		v |= i + 2 < n ? at[i + 2] : 0;
		buf_addc(&b, digit[v >> 18]);
		buf_addc(&b, digit[v >> 12 & 63]);
		buf_addc(&b, i + 1 < n ? digit[v >> 6 & 63] : '=');
		buf_addc(&b, i + 2 < n ? digit[v & 63] : '=');
	}
	j = json_stringn(b.data, b.len);
	buf_fini(&b);
	return j;
}

/* As numbers, or as the bytes of f32, the lowest first. */
static json_t *vector_json(const struct job *j, const float *v)
{
	const uint32_t n = j->s->session.model.config.hidden;
	json_t *list;

	if (j->base64)
		return base64_json((const unsigned char *)v, n * sizeof(*v));
	list = json_array();
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, json_real(v[i]));
	return list;
}

static json_t *embeddings_json(const struct job *j)
{
	json_t *data = json_array(), *usage = usage_json(j);

	for (uint32_t i = 0; i < j->n_choices; i++)
		json_array_append_new(
			data, json_pack("{s:s,s:i,s:o}", "object", "embedding",
					"index", (int)i, "embedding",
					vector_json(j, j->choice[i].vector)));
	json_object_del(usage, "completion_tokens");
	return json_pack("{s:s,s:o,s:s,s:o}", "object", "list", "data", data,
			 "model", qwen_cmd_name(j->s->c->model), "usage",
			 usage);
}

json_t *serve_answer_json(const struct job *j)
{
	if (j->kind == SERVE_EMBEDDING)
		return embeddings_json(j);
	json_t *choices = json_array(), *head = head_json(j, choices);

	for (uint32_t i = 0; i < j->n_choices; i++)
		json_array_append_new(choices,
				      choice_json(j, i, j->choice[i].text.len,
						  j->choice[i].words.n));
	json_object_set_new(head, "usage", usage_json(j));
	return head;
}

/* ---- streams ---- */

static void put_event(struct buf *out, json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT);

	buf_printf(out, "data: %s\n\n", text);
	free(text);
	json_decref(j);
}

/* How much of a text may go out: what may become a stop string may not. */
static size_t whole_end(const struct choice *c)
{
	size_t held = c->job->longest ? c->job->longest - 1 : 0;
	size_t end = c->text.len > held ? c->text.len - held : 0;

	if (c->finish)
		return c->text.len;
	while (end && (c->text.data[end] & 0xc0) == 0x80)
		end--;
	return end;
}

/* Words whose text begins before `end`; all of a text that has its finish. */
static size_t words_end(const struct choice *c, size_t end)
{
	size_t n = c->words_sent;

	while (n < c->words.n && (c->finish || c->words.v[n].from < end))
		n++;
	return n;
}

void serve_put_start(const struct job *j, struct buf *out)
{
	for (uint32_t i = 0; i < j->n_choices && j->kind == SERVE_CHAT; i++)
		put_event(out,
			  head_json(j, json_pack("[{s:i,s:{s:s,s:s},s:n}]",
						 "index", (int)i, "delta",
						 "role", "assistant", "content",
						 "", "finish_reason")));
}

void serve_put_news(struct job *j, struct buf *out)
{
	for (uint32_t i = 0; i < j->n_choices; i++) {
		struct choice *c = &j->choice[i];
		size_t end = whole_end(c);
		if (c->told || (end <= c->sent && !c->finish))
			continue;
		end = end > c->sent ? end : c->sent;
		size_t words = words_end(c, end);
		put_event(out,
			  head_json(j, json_pack("[o]", choice_json(j, i, end,
								    words))));
		c->sent = end;
		c->words_sent = words;
		c->told = c->finish != NULL;
	}
	if (j->known)
		return;
	if (j->going)
		put_event(out, serve_error_json(j->broken ? j->status : 500,
						j->broken ? j->broken : "gone",
						NULL));
	else if (j->usage && !j->usage_told) {
		json_t *head = head_json(j, json_array());
		json_object_set_new(head, "usage", usage_json(j));
		put_event(out, head);
	}
	buf_adds(out, "data: [DONE]\n\n");
	j->end_told = true;
}
