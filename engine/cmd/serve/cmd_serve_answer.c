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
	json_t *j = json_stringn(len ? text : "", len);
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
			 text_json(message, strlen(message)), "type", type,
			 "param", param, "code");
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
	if (!c->job->logprobs || to == c->words_sent)
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

	json_t *head = json_pack("{s:s,s:s,s:I,s:o,s:o}", "id", j->id, "object",
				 what, "created", (json_int_t)time(NULL),
				 "model", serve_name_json(j->s), "choices",
				 choices);

	if (j->stream && j->usage) /* its value comes with the last event */
		json_object_set_new(head, "usage", json_null());
	return head;
}

/* Words whose text begins before `end`; of a whole text also those at it. */
static size_t words_end(const struct choice *c, size_t end)
{
	const bool whole = c->finish && end == c->text.len;
	size_t n = c->words_sent;

	while (n < c->words.n && (whole || c->words.v[n].from < end))
		n++;
	return n;
}

/* Why a choice ended; NULL: it goes on. */
static const char *finish_of(const struct choice *c, const struct calls *calls)
{
	return calls->n && !strcmp(c->finish ? c->finish : "", "stop") &&
			       c->job->calls != CALLS_ONE ?
		       "tool_calls" :
		       c->finish;
}

/* The name of a call, and its arguments from `from` on. */
static json_t *call_json(const struct choice *c, const struct call_text *call,
			 uint32_t i, size_t from)
{
	const char *s = c->text.data, *id = strchr(c->job->id, '-') + 1;
	json_t *f = json_pack(
		"{s:o,s:o}", "name",
		json_stringn(s + call->name, call->name_len), "arguments",
		text_json(s + call->args + from, call->args_len - from));
	char name[64];

	snprintf(name, sizeof(name), "call_%s%02x%02x", id,
		 (unsigned)(c - c->job->choice), i);
	return json_pack("{s:s,s:s,s:o}", "id", name, "type", "function",
			 "function", f);
}

/* A choice of an answer, or a piece of one: its text, words and finish. */
static json_t *piece_json(const struct choice *c, const char *as, json_t *piece,
			  size_t words, const char *finish)
{
	return json_pack("{s:i,s:s?,s:o,s:o}", "index",
			 (int)(c - c->job->choice), "finish_reason", finish,
			 "logprobs", words_json(c, words), as, piece);
}

static json_t *message_json(const struct choice *c, const struct calls *calls)
{
	const bool none = !calls->text && calls->n;
	json_t *m = json_pack(
		"{s:s,s:n,s:o}", "role", "assistant", "refusal", "content",
		none ? json_null() : text_json(c->text.data, calls->text));
	json_t *list = json_array();

	for (uint32_t i = 0; i < calls->n; i++)
		json_array_append_new(list, call_json(c, &calls->v[i], i, 0));
	if (calls->n)
		json_object_set(m, "tool_calls", list);
	json_decref(list);
	return m;
}

static json_t *choice_json(const struct choice *c)
{
	struct calls calls;

	serve_find_calls(c, &calls);
	const bool chat = c->job->kind == SERVE_CHAT;
	return piece_json(c, chat ? "message" : "text",
			  chat ? message_json(c, &calls) :
				 text_json(c->text.data, c->text.len),
			  words_end(c, calls.text), finish_of(c, &calls));
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
		json_array_append_new(choices, choice_json(&j->choice[i]));
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

void serve_put_start(const struct job *j, struct buf *out)
{
	for (uint32_t i = 0; i < j->n_choices && j->kind == SERVE_CHAT; i++)
		put_event(
			out,
			head_json(j, json_pack("[{s:i,s:{s:s,s:s},s:n,s:n}]",
					       "index", (int)i, "delta", "role",
					       "assistant", "content", "",
					       "logprobs", "finish_reason")));
}

static void put_piece(struct buf *out, const struct choice *c, json_t *piece,
		      size_t words, const char *finish)
{
	const char *as = c->job->kind == SERVE_CHAT ? "delta" : "text";

	put_event(out, head_json(c->job,
				 json_pack("[o]", piece_json(c, as, piece,
							     words, finish))));
}

/* What is new of calls: their names, then pieces of their arguments. */
static void put_calls(struct choice *c, const struct calls *calls,
		      struct buf *out)
{
	for (uint32_t i = c->calls_begun ? c->calls_begun - 1 : 0; i < calls->n;
	     i++) {
		const struct call_text *call = &calls->v[i];
		const bool begun = i < c->calls_begun;
		if (begun && call->args_len <= c->args_sent)
			continue;
		if (!begun)
			c->args_sent = 0;
		json_t *one = call_json(c, call, i, c->args_sent);
		json_object_set_new(one, "index", json_integer(i));
		if (begun) {
			json_object_del(one, "id");
			json_object_del(one, "type");
			json_object_del(json_object_get(one, "function"),
					"name");
		}
		c->calls_begun = i + 1;
		c->args_sent = call->args_len;
		put_piece(out, c, json_pack("{s:[o]}", "tool_calls", one),
			  c->words_sent, NULL);
	}
}

/* What is new of a choice: text, then calls, then its finish. */
static void put_choice(struct choice *c, struct buf *out)
{
	const bool chat = c->job->kind == SERVE_CHAT;
	struct calls calls;
	size_t end = whole_end(c), words;

	if (c->told)
		return;
	serve_find_calls(c, &calls);
	end = end < calls.text ? end : calls.text;
	end = end > c->sent ? end : c->sent;
	words = words_end(c, end);
	if (end > c->sent) {
		json_t *text = text_json(c->text.data + c->sent, end - c->sent);
		put_piece(out, c,
			  chat ? json_pack("{s:o}", "content", text) : text,
			  words, NULL);
		c->sent = end;
		c->words_sent = words;
	}
	put_calls(c, &calls, out);
	if (c->finish)
		put_piece(out, c, chat ? json_object() : json_string(""), words,
			  finish_of(c, &calls));
	c->told = c->finish != NULL;
}

void serve_put_news(struct job *j, struct buf *out)
{
	for (uint32_t i = 0; i < j->n_choices; i++)
		put_choice(&j->choice[i], out);
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
