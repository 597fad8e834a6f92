/*
 * engine/cmd/serve/cmd_chat_talk.c - a conversation, as text and as tokens.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_chat.h"

static char *text_clean(const char *text, size_t len)
{
	struct buf b = { 0 };

	buf_adds(&b, "");
	for (size_t i = 0; i < len;) {
		utf8proc_int32_t code;
		utf8proc_ssize_t n =
			utf8proc_iterate((const utf8proc_uint8_t *)text + i,
					 (utf8proc_ssize_t)(len - i), &code);
		if (n > 0 && code)
			buf_add(&b, text + i, (size_t)n);
		else
			buf_adds(&b, "\xef\xbf\xbd");
		i += n > 0 ? (size_t)n : 1;
	}
	return b.data;
}

struct chat_turn *chat_talk_add(struct chat_talk *t, const char *role,
				const char *text, size_t len)
{
	vec_push(t, ((struct chat_turn){ role, text_clean(text, len), { 0 } }));
	return &t->v[t->n - 1];
}

void chat_talk_truncate(struct chat_talk *t, size_t n)
{
	while (t->n > n) {
		struct chat_turn *last = &t->v[--t->n];
		free(last->text);
		qwen_ids_fini(&last->ids);
	}
}

void chat_talk_fini(struct chat_talk *t)
{
	chat_talk_truncate(t, 0);
	vec_fini(t);
}

void chat_talk_system(struct chat_talk *t, const char *text)
{
	bool there = t->n && strcmp(t->v[0].role, "system") == 0;

	if (!there && *text) {
		struct chat_turn last =
			*chat_talk_add(t, "system", text, strlen(text));
		memmove(t->v + 1, t->v, (t->n - 1) * sizeof(*t->v));
		t->v[0] = last;
	} else if (there && *text) {
		free(t->v[0].text);
		t->v[0].text = text_clean(text, strlen(text));
	} else if (there) {
		free(t->v[0].text);
		memmove(t->v, t->v + 1, --t->n * sizeof(*t->v));
	}
}

/* ---- as tokens ---- */

/* An answer without its thought; what has no end is none. */
static const char *answer_of(const char *text)
{
	static const char end[] = "</think>";
	const char *at, *answer = text;

	for (at = strstr(text, end); at; at = strstr(at + 1, end)) {
		answer = at + strlen(end);
		answer += strspn(answer, "\n");
	}
	return answer;
}

static bool encode_text(struct qwen_encoder *x, struct buf *text,
			struct qwen_ids *out, struct err *e)
{
	bool ok = qwen_encode(x, text->data, text->len, 0, out, e);

	buf_reset(text);
	return ok;
}

/*
 * Special tokens cut a text, so that parts between them may be encoded each
 * for itself.  `text` is what was not yet encoded.
 */
static bool add_turn(const struct chat_turn *turn, struct qwen_encoder *x,
		     struct buf *text, struct qwen_ids *out, struct err *e)
{
	const char *answer = strcmp(turn->role, "assistant") == 0 ?
				     answer_of(turn->text) :
				     turn->text;

	buf_printf(text, "<|im_start|>%s\n", turn->role);
	if (!turn->ids.n || answer != turn->text) {
		buf_adds(text, answer);
	} else {
		if (!encode_text(x, text, out, e))
			return false;
		for (size_t i = 0; i < turn->ids.n; i++)
			qwen_ids_add(out, turn->ids.v[i]);
	}
	buf_adds(text, "<|im_end|>\n");
	return true;
}

bool chat_talk_ids(const struct chat_talk *t, struct qwen_encoder *x,
		   bool no_think, struct qwen_ids *out, struct err *e)
{
	struct buf text = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < t->n; i++)
		ok = add_turn(&t->v[i], x, &text, out, e);
	buf_adds(&text, "<|im_start|>assistant\n");
	if (no_think)
		buf_adds(&text, "<think>\n\n</think>\n\n");
	ok = ok && encode_text(x, &text, out, e);
	buf_fini(&text);
	return ok;
}

/* ---- as a file ---- */

bool chat_talk_save(const struct chat_talk *t, const char *path, struct err *e)
{
	json_t *list = json_array();
	char *text;
	bool ok;

	for (size_t i = 0; i < t->n; i++)
		json_array_append_new(list, json_pack("{s:s,s:s}", "role",
						      t->v[i].role, "content",
						      t->v[i].text));
	text = json_dumps(list, JSON_INDENT(1));
	ok = file_write_atomic(path, text, strlen(text), e);
	free(text);
	json_decref(list);
	return ok;
}

static const char *role_find(const char *name)
{
	static const char *const known[] = { "system", "user", "assistant" };

	for (size_t i = 0; name && i < ARRAY_SIZE(known); i++)
		if (strcmp(name, known[i]) == 0)
			return known[i];
	return NULL;
}

static bool talk_read(struct chat_talk *t, const json_t *list, struct err *e)
{
	json_t *m;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, ERR_INPUT,
			       "wanted a list of {\"role\", \"content\"}");
	json_array_foreach (list, i, m) {
		const json_t *content = json_object_get(m, "content");
		const char *role = role_find(
			json_string_value(json_object_get(m, "role")));
		if (!role || !json_is_string(content))
			return err_set(
				e, ERR_INPUT,
				"turn %zu: wanted \"role\": \"system\", "
				"\"user\" or \"assistant\" and a text as "
				"\"content\"",
				i);
		if (i && strcmp(role, "system") == 0)
			return err_set(e, ERR_INPUT,
				       "turn %zu is the system's; wanted that "
				       "first",
				       i);
		chat_talk_add(t, role, json_string_value(content),
			      json_string_length(content));
	}
	return true;
}

bool chat_talk_load(struct chat_talk *t, const char *path, struct err *e)
{
	struct chat_talk new = { 0 };
	struct buf text = { 0 };
	json_error_t bad;
	json_t *list = NULL;
	bool ok = file_read(path, 0, &text, e);

	if (ok) {
		list = json_loadb(text.data ? text.data : "", text.len, 0,
				  &bad);
		ok = list ? talk_read(&new, list, e) :
			    err_set(e, ERR_INPUT, "line %d: %s", bad.line,
				    bad.text);
		ok = ok || err_wrap(e, "%s", path);
	}
	if (ok) {
		struct chat_talk old = *t;
		*t = new;
		new = old;
	}
	chat_talk_fini(&new);
	json_decref(list);
	buf_fini(&text);
	return ok;
}
