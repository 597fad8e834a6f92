/*
 * asks.c - requests for texts with what is right for them.
 */
#include "tests/ref/asks.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Special tokens are no part of an answer. */
static void drop_specials(char *text)
{
	char *to = text;

	for (const char *at = text, *end; *at;) {
		if (!strncmp(at, "<|", 2) && (end = strstr(at, "|>")))
			at = end + 2;
		else
			*to++ = *at++;
	}
	*to = '\0';
}

/* Bytes of a character may stand before and behind a special token. */
static bool parts_character(const char *text)
{
	return strstr(text, "\xef\xbf\xbd<|") || strstr(text, "|>\xef\xbf\xbd");
}

/* A single run; false: its text does not say what a server writes. */
static bool run_single(struct ask *a, unsigned i, const char *folder,
		       unsigned chunk)
{
	char line[1024], path[64];
	json_t *all;
	FILE *p;
	const char *text, *ended;
	bool clear;

	snprintf(path, sizeof(path), "%s/prompt", folder);
	p = fopen(path, "w");
	if (!p || fputs(a->prompt, p) < 0 || fclose(p))
		BUG("no prompt");
	snprintf(line, sizeof(line),
		 "%s generate -q -m %s/model -f %s --json --threads 1 --chunk "
		 "%u -n %u --temperature %g --seed %u%s",
		 web_tool("t0-qwen3"), folder, path, chunk, a->tokens,
		 a->temperature, a->seed + i, a->chat ? " --chat" : "");
	p = popen(line, "r");
	all = p ? json_loadf(p, 0, NULL) : NULL;
	if (!p || pclose(p) || !all)
		BUG("no single run: %s", line);
	text = json_string_value(
		json_object_get(json_array_get(all, 0), "text"));
	ended = json_string_value(
		json_object_get(json_array_get(all, 0), "ended"));
	clear = !parts_character(text);
	a->text[i] = xstrdup(text);
	drop_specials(a->text[i]);
	a->finish[i] = strcmp(ended, "token limit") ? "stop" : "length";
	json_decref(all);
	return clear;
}

/* A stop string out of the first text's middle, of letters. */
static void choose_stop(struct ask *a)
{
	const char *first = a->text[0];

	for (size_t i = strlen(first) / 2; i + 2 < strlen(first); i++)
		if (first[i] >= 'a' && first[i] <= 'z' && first[i + 1] >= 'a' &&
		    first[i + 1] <= 'z') {
			snprintf(a->stop, sizeof(a->stop), "%.2s", first + i);
			break;
		}
	for (unsigned i = 0; i < a->n && *a->stop; i++) {
		char *at = strstr(a->text[i], a->stop);
		if (!at)
			continue;
		*at = '\0';
		a->finish[i] = "stop";
	}
}

static void texts_free(struct ask *a)
{
	for (unsigned i = 0; i < MOST_TEXTS; i++) {
		free(a->text[i]);
		a->text[i] = NULL;
	}
}

void asks_make(struct ask asks[ASKS], const char *folder, unsigned chunk)
{
	static const char *const begins[] = { "The program",
					      "It is free software: you can",
					      "A river" };
	unsigned seed = 1;

	for (unsigned k = 0; k < ASKS; k++) {
		struct ask *a = &asks[k];
		bool good = false;

		snprintf(a->prompt, sizeof(a->prompt), "%s", begins[k % 3]);
		/* Some are longer than a piece, and begin alike. */
		for (unsigned i = 0; i < (k % 4) * 20; i++)
			strcat(a->prompt, i % 7 ? " of the" : " licence");
		a->chat = k % 5 == 4;
		a->tokens = 5 + k * 7 % 60;
		a->temperature = k % 3 ? 0.8 : 0;
		a->n = k % 6 == 5 ? MOST_TEXTS : 1;
		while (!good) {
			texts_free(a);
			a->seed = seed += 10;
			snprintf(a->prompt + strlen(a->prompt), 8, " %u", k);
			good = true;
			for (unsigned i = 0; i < a->n && good; i++)
				good = run_single(a, i, folder, chunk);
		}
		if (k % 4 == 3)
			choose_stop(a);
	}
}

static char *ask_body(const struct ask *a, bool stream)
{
	json_t *j = json_pack("{s:i,s:i,s:i,s:f,s:b}", "max_tokens",
			      (int)a->tokens, "n", (int)a->n, "seed",
			      (int)a->seed, "temperature", a->temperature,
			      "stream", (int)stream);
	char *text;

	if (a->chat)
		json_object_set_new(j, "messages",
				    json_pack("[{s:s,s:s}]", "role", "user",
					      "content", a->prompt));
	else
		json_object_set_new(j, "prompt", json_string(a->prompt));
	if (*a->stop)
		json_object_set_new(j, "stop", json_string(a->stop));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}

void asks_free(struct ask asks[ASKS])
{
	for (int k = 0; k < ASKS; k++)
		texts_free(&asks[k]);
}

void ask_put(struct buf *out, const struct ask *a, bool stream)
{
	char *body = ask_body(a, stream);

	web_request(out, a->chat ? "/v1/chat/completions" : "/v1/completions",
		    body);
	free(body);
}

/* ---- replies ---- */

static bool take_choice(struct texts *t, json_t *one)
{
	json_int_t i = json_integer_value(json_object_get(one, "index"));
	json_t *finish = json_object_get(one, "finish_reason");
	json_t *in = json_object_get(one, "message");
	json_t *text;

	in = in ? in : json_object_get(one, "delta");
	text = in ? json_object_get(in, "content") :
		    json_object_get(one, "text");
	if (i < 0 || i >= MOST_TEXTS || (text && !json_is_string(text)) ||
	    *t->finish[i])
		return false;
	if (text) /* the last event of a chat only says how it ended */
		buf_adds(&t->text[i], json_string_value(text));
	if (json_is_string(finish))
		snprintf(t->finish[i], sizeof(t->finish[i]), "%s",
			 json_string_value(finish));
	return true;
}

static bool take_object(struct texts *t, const char *text)
{
	json_t *j = json_loads(text, 0, NULL), *one;
	bool good = json_is_object(j);
	size_t i;

	t->told_error = t->told_error || json_object_get(j, "error");
	json_array_foreach (json_object_get(j, "choices"), i, one)
		good = good && take_choice(t, one);
	json_decref(j);
	return good;
}

bool texts_take(struct texts *t, const struct web_reply *r)
{
	bool stream = !strcmp(r->type, "text/event-stream");
	char *at = r->body.data, *end;

	if (!stream)
		return (t->done = take_object(t, at));
	for (; *at; at = end + 2) {
		end = strstr(at, "\n\n");
		if (!end || strncmp(at, "data: ", 6) != 0 || t->done)
			return false;
		*end = '\0';
		if (!strcmp(at + 6, "[DONE]"))
			t->done = true;
		else if (!take_object(t, at + 6))
			return false;
	}
	return t->done;
}

void texts_fini(struct texts *t)
{
	for (int i = 0; i < MOST_TEXTS; i++)
		buf_fini(&t->text[i]);
}

bool ask_check(const struct ask *a, const struct web_reply *r, char *why,
	       size_t size)
{
	struct texts t = { 0 };
	bool good = r->status == 200 && r->whole && texts_take(&t, r);

	if (!good)
		snprintf(why, size, "status %d, %s: %.150s", r->status,
			 r->whole ? "whole" : "cut",
			 r->body.data ? r->body.data : "");
	for (unsigned i = 0; i < a->n && good; i++) {
		const char *got = t.text[i].data ? t.text[i].data : "";
		good = !strcmp(got, a->text[i]) &&
		       !strcmp(t.finish[i], a->finish[i]);
		if (!good)
			snprintf(why, size,
				 "text %u: got '%s' (%s), wanted '%s' (%s)", i,
				 got, t.finish[i], a->text[i], a->finish[i]);
	}
	texts_fini(&t);
	return good;
}
