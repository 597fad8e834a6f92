/*
 * engine/cmd/serve/cmd_serve_ask.c - what clients of t0-qwen3 serve ask for, in
 * OpenAI's form, as jobs.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_serve_ask.h"

json_t *serve_get_given(const struct reader *r, const char *name)
{
	json_t *x = json_object_get(r->body, name);

	return json_is_null(x) ? NULL : x;
}

bool serve_refuse(struct reader *r, const char *name, const char *wanted)
{
	char *got = json_dumps(json_object_get(r->body, name),
			       JSON_COMPACT | JSON_ENCODE_ANY);

	r->param = name;
	err_set(r->e, ERR_USAGE, "\"%s\" is %.100s; wanted %s", name,
		got ? got : "missing", wanted);
	free(got);
	return false;
}

static bool read_number(struct reader *r, const char *name, double *x)
{
	json_t *j = serve_get_given(r, name);

	if (j && !json_is_number(j))
		return serve_refuse(r, name, "a number");
	if (j)
		*x = json_number_value(j);
	return true;
}

static bool read_count(struct reader *r, const char *name, uint64_t least,
		       uint64_t most, uint32_t *x)
{
	json_t *j = serve_get_given(r, name);
	char wanted[64];

	if (!j)
		return true;
	if (!json_is_integer(j) || json_integer_value(j) < (json_int_t)least ||
	    json_integer_value(j) > (json_int_t)most) {
		snprintf(wanted, sizeof(wanted), "an integer from %llu to %llu",
			 (unsigned long long)least, (unsigned long long)most);
		return serve_refuse(r, name, wanted);
	}
	*x = (uint32_t)json_integer_value(j);
	return true;
}

static bool read_switch(struct reader *r, const char *name, bool *x)
{
	json_t *j = serve_get_given(r, name);

	if (j && !json_is_boolean(j))
		return serve_refuse(r, name, "true or false");
	*x = json_is_true(j);
	return true;
}

static bool read_seed(struct reader *r)
{
	json_t *j = serve_get_given(r, "seed");

	if (j && !json_is_integer(j))
		return serve_refuse(r, "seed", "an integer");
	if (j)
		r->j->how.seed = (uint64_t)json_integer_value(j);
	return true;
}

static bool read_stops(struct reader *r)
{
	struct job *j = r->j;
	json_t *stop = serve_get_given(r, "stop");
	size_t n = json_is_array(stop) ? json_array_size(stop) : 1;

	if (!stop)
		return true;
	for (size_t i = 0; i < n; i++) {
		json_t *one = json_is_array(stop) ? json_array_get(stop, i) :
						    stop;
		size_t len = json_string_length(one);
		if (!len || n > MOST_STOPS)
			return serve_refuse(r, "stop",
					    "a string, or at most 4 of them");
		j->stop[j->n_stops++] = xstrdup(json_string_value(one));
		j->longest = len > j->longest ? len : j->longest;
	}
	return true;
}

/* They would cut a text that is of a form from its first byte on. */
static bool check_stops(struct reader *r)
{
	return !r->j->n_stops || !r->j->grammar || r->j->calls == CALLS_MAY ||
	       serve_refuse(r, "stop",
			    "it left out where \"response_format\" or "
			    "\"tool_choice\" says what form the answer has");
}

/* Is it as if the parameter were not there? */
static bool is_neutral(json_t *x)
{
	return !x || json_is_false(x) ||
	       (json_is_number(x) && json_number_value(x) == 0) ||
	       (json_is_string(x) && !json_string_length(x)) ||
	       (json_is_array(x) && !json_array_size(x)) ||
	       (json_is_object(x) && !json_object_size(x));
}

/* What would change the answer, and is not done here. */
static bool refuse_unknown(struct reader *r)
{
	static const char *const chat[] = { "tools", "tool_choice" };
	static const char *const unknown[] = {

		"functions",
		"function_call",
		"logit_bias",
		"echo",
		"suffix",
		"presence_penalty",
		"frequency_penalty",
		"audio",
		"prediction",
		"web_search_options",
		"dimensions",
	};

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		if (!is_neutral(serve_get_given(r, unknown[i])))
			return serve_refuse(
				r, unknown[i],
				"it left out: this server does not do "
				"that");
	for (size_t i = 0; i < ARRAY_SIZE(chat) && r->j->kind != SERVE_CHAT;
	     i++)
		if (!is_neutral(serve_get_given(r, chat[i])))
			return serve_refuse(r, chat[i], "it only in a chat");
	return true;
}

/*
 * A chat says whether, and how many others it wants with each; a completion
 * says how many, 0 being none but the token's own.
 */
static bool read_logprobs(struct reader *r)
{
	struct job *j = r->j;

	if (j->kind == SERVE_COMPLETION) {
		j->logprobs = serve_get_given(r, "logprobs") != NULL;
		return read_count(r, "logprobs", 0, MOST_LIKELY, &j->likely);
	}
	if (!read_switch(r, "logprobs", &j->logprobs) ||
	    !read_count(r, "top_logprobs", 0, MOST_LIKELY, &j->likely))
		return false;
	return !j->likely || j->logprobs ||
	       serve_refuse(r, "top_logprobs", "\"logprobs\": true with it");
}

static bool read_user(struct reader *r)
{
	json_t *user = serve_get_given(r, "user");

	if (user && !json_is_string(user))
		return serve_refuse(r, "user", "a string");
	if (user)
		r->j->user = XXH3_64bits(json_string_value(user),
					 json_string_length(user));
	return true;
}

/* Any text, any JSON object, or what satisfies a schema. */
static bool read_format(struct reader *r)
{
	json_t *x = serve_get_given(r, "response_format"),
	       *of = json_object_get(x, "json_schema");
	const char *type = json_string_value(json_object_get(x, "type"));
	json_t *schema = json_object_get(of, "schema");

	if (!x || (type && !strcmp(type, "text")))
		return true;
	if (type && !strcmp(type, "json_object")) {
		r->j->grammar = qwen_grammar_json();
		return true;
	}
	if (!type || strcmp(type, "json_schema") || !json_is_object(schema))
		return serve_refuse(r, "response_format",
				    "a \"type\" of text, json_object, or "
				    "json_schema with {\"json_schema\": "
				    "{\"schema\": {...}}}");
	r->j->grammar = qwen_grammar_schema(schema, r->e);
	if (!r->j->grammar)
		r->param = "response_format";
	return r->j->grammar != NULL;
}

static bool read_settings(struct reader *r)
{
	struct job *j = r->j;
	const struct qwen_cmd *c = j->s->c;

	j->usage = json_is_true(json_object_get(
		json_object_get(r->body, "stream_options"), "include_usage"));
	return read_switch(r, "stream", &j->stream) &&
	       read_number(r, "temperature", &j->how.temperature) &&
	       read_number(r, "top_p", &j->how.top_p) &&
	       read_count(r, "max_tokens", 1, c->tokens, &j->most) &&
	       read_count(r, "max_completion_tokens", 1, c->tokens, &j->most) &&
	       read_count(r, "n", 1, MOST_CHOICES, &j->n) && read_seed(r) &&
	       read_logprobs(r) && read_format(r) && read_stops(r);
}

static bool read_encoding(struct reader *r)
{
	json_t *x = serve_get_given(r, "encoding_format");
	const char *s = x ? json_string_value(x) : "float";

	if (!s || (strcmp(s, "float") && strcmp(s, "base64")))
		return serve_refuse(r, "encoding_format",
				    "\"float\" or \"base64\"");
	r->j->base64 = !strcmp(s, "base64");
	return true;
}

/* ---- prompts ---- */

/* Where a request does not say how many tokens: what the context has left. */
static uint32_t count_left(const struct qwen_cmd *c, size_t prompt)
{
	const size_t left = prompt < c->context ? c->context - prompt : 1;

	return (uint32_t)(left < c->tokens ? left : c->tokens);
}

static bool check_length(struct reader *r, const struct qwen_ids *ids)
{
	struct job *j = r->j;

	if (!j->most && j->kind != SERVE_EMBEDDING)
		j->most = count_left(j->s->c, ids->n);
	if (!ids->n)
		return err_set(r->e, ERR_USAGE, "the prompt is empty");
	if (ids->n + j->most <= j->s->c->context)
		return true;
	return err_set(r->e, ERR_USAGE,
		       "the prompt has %zu tokens and %u "
		       "may follow; the context has %llu",
		       ids->n, j->most, (unsigned long long)j->s->c->context);
}

static bool add_text(struct reader *r, const char *text, size_t len)
{
	struct qwen_encoder *x = qwen_encoder_new(r->j->s->session.tok);
	struct qwen_ids *ids = vec_add(&r->j->prompts);
	const struct server *s = r->j->s;
	bool good = qwen_encode(x, text ? text : "", len, 0, ids, r->e);

	if (s->ends_texts && r->j->kind == SERVE_EMBEDDING)
		qwen_ids_add(ids, s->text_end);
	good = good && check_length(r, ids);
	qwen_encoder_free(x);
	return good;
}

static bool read_chat(struct reader *r)
{
	struct buf text = { 0 };
	bool good = serve_read_chat(r, &text) &&
		    add_text(r, text.data, text.len);

	buf_fini(&text);
	return good;
}

/* Tokens instead of a text. */
static bool add_ids(struct reader *r, json_t *list)
{
	struct qwen_ids *ids = vec_add(&r->j->prompts);
	json_t *id;
	size_t i;

	json_array_foreach (list, i, id) {
		json_int_t v = json_is_integer(id) ? json_integer_value(id) :
						     -1;
		if (v < 0 || v >= r->j->s->session.model.config.vocab)
			return err_set(r->e, ERR_USAGE,
				       "token %zu is none; wanted integers "
				       "from 0 to %u",
				       i,
				       r->j->s->session.model.config.vocab - 1);
		qwen_ids_add(ids, (uint32_t)v);
	}
	return check_length(r, ids);
}

/* A text, a list of tokens, or a list of at most `most` of either. */
static bool read_inputs(struct reader *r, const char *name, size_t most)
{
	static const char wanted[] = "a string, a list of tokens, or a list of "
				     "either that is not too long";
	json_t *from = serve_get_given(r, name), *one = json_array_get(from, 0);
	bool many = json_is_string(one) || json_is_array(one), good = true;

	r->param = name;
	if (!json_is_string(from) && !json_is_array(from))
		return serve_refuse(r, name, wanted);
	if (many && json_array_size(from) > most)
		return serve_refuse(r, name, wanted);
	for (size_t i = 0; i < (many ? json_array_size(from) : 1) && good;
	     i++) {
		one = many ? json_array_get(from, i) : from;
		if (json_is_string(one))
			good = add_text(r, json_string_value(one),
					json_string_length(one));
		else
			good = json_is_array(one) ?
				       add_ids(r, one) :
				       serve_refuse(r, name, wanted);
	}
	return good;
}

static bool read_request(struct reader *r)
{
	struct job *j = r->j;

	bool good = read_user(r) && refuse_unknown(r);

	j->n = 1;
	j->how = qwen_cmd_sampling(j->s->c, &j->s->session.model.config);
	if (j->kind == SERVE_EMBEDDING)
		good = good && read_encoding(r) &&
		       read_inputs(r, "input", MOST_INPUTS);
	else if (j->kind == SERVE_CHAT)
		good = good && read_settings(r) && read_chat(r);
	else
		good = good && read_settings(r) &&
		       read_inputs(r, "prompt", MOST_CHOICES / j->n);
	if (!good || !check_stops(r))
		return false;
	r->param = NULL;
	j->n_choices = j->n * (uint32_t)j->prompts.n;
	j->choice = xcalloc(j->n_choices, sizeof(*j->choice));
	for (uint32_t i = 0; i < j->n_choices; i++) {
		j->choice[i].job = j;
		j->choice[i].decoder.skip_special = true;
	}
	return true;
}

void serve_job_free(struct job *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < j->n_choices; i++) {
		buf_fini(&j->choice[i].text);
		free(j->choice[i].vector);
		vec_fini(&j->choice[i].words);
		vec_fini(&j->choice[i].likely);
	}
	free(j->choice);
	for (size_t i = 0; i < j->n_stops; i++)
		free(j->stop[i]);
	for (size_t i = 0; i < j->prompts.n; i++)
		qwen_ids_fini(&j->prompts.v[i]);
	vec_fini(&j->prompts);
	qwen_grammar_free(j->grammar);
	free(j);
}

struct job *serve_job_new(struct server *s, enum serve_kind kind,
			  const struct buf *body, const char **param,
			  struct err *e)
{
	static const char *const prefix[] = { "cmpl", "chatcmpl", "embd" };
	struct job *j = xcalloc(1, sizeof(*j));
	json_error_t bad;
	struct reader r = { .j = j, .e = e };
	bool good;

	j->s = s;
	j->kind = kind;
	j->deadline_ns = time_mono_ns() + s->c->timeout * 1000000000;
	snprintf(j->id, sizeof(j->id), "%s-%016llx", prefix[kind],
		 (unsigned long long)(time_mono_ns() ^ (uintptr_t)j));
	r.body = json_loadb(body->data ? body->data : "", body->len, 0, &bad);
	if (json_is_object(r.body))
		good = read_request(&r);
	else
		good = err_set(e, ERR_INPUT, "the body is no JSON object: %s",
			       r.body ? "it is something else" : bad.text);
	*param = r.param;
	json_decref(r.body);
	if (good)
		return j;
	serve_job_free(j);
	return NULL;
}
