/*
 * engine/model/convert_words.c - tokenizer and template of conversations of a
 * model that is converted.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/convert_int.h"
#include "engine/text/text.h"

static bool template_of_folder(struct conversion *c, const char **out,
			       struct err *e)
{
	const char *dir = c->how->from;
	char *path = arena_printf(&c->mem, "%s/chat_template.jinja", dir);
	struct buf text = { 0 };

	if (access(path, F_OK) == 0) {
		bool ok = file_read(path, 1 << 24, &text, e);
		buf_addc(&text, '\0');
		*out = ok ? arena_strdup(&c->mem, text.data) : NULL;
		buf_fini(&text);
		return ok;
	}
	path = arena_printf(&c->mem, "%s/tokenizer_config.json", dir);
	json_t *j = access(path, F_OK) == 0 ? json_load_file(path, 0, NULL) :
					      NULL;
	const char *s = json_string_value(json_object_get(j, "chat_template"));
	*out = s ? arena_strdup(&c->mem, s) : NULL;
	json_decref(j);
	return true;
}

static char *template_of_file(struct conversion *c, const struct qwen_gguf *g)
{
	const struct qwen_gguf_value *v =
		qwen_gguf_find(g, "tokenizer.chat_template");
	const uint8_t *at = NULL;
	const char *s;
	size_t len;

	if (!v || v->array || !qwen_gguf_text(v, &at, &s, &len))
		return NULL;
	return arena_printf(&c->mem, "%.*s", (int)len, s);
}

static bool gguf_words(struct conversion *c, struct buf *tokenizer,
		       const char **talk, struct err *e)
{
	struct qwen_gguf g;

	if (!qwen_gguf_open(&g, c->how->from, e))
		return false;
	*talk = template_of_file(c, &g);
	bool ok = !tokenizer || !qwen_gguf_find(&g, "tokenizer.ggml.tokens") ||
		  qwen_gguf_tokenizer(&g, tokenizer, e);
	qwen_gguf_close(&g);
	return ok;
}

/* Of a folder's text, or of the keys of a GGUF file. */
static bool hfq_template(struct conversion *c, struct qwen_hfq *h,
			 const char **talk, struct err *e)
{
	struct buf text = { 0 };
	struct qwen_gguf g;
	bool ok = true;

	if (qwen_hfq_text(h, "tokenizer_config.json", &text)) {
		json_t *j = json_loadb(text.data, text.len, 0, NULL);
		const char *s =
			json_string_value(json_object_get(j, "chat_template"));
		*talk = s ? arena_strdup(&c->mem, s) : NULL;
		json_decref(j);
	} else if (qwen_hfq_has_tokenizer(h) &&
		   !qwen_hfq_text(h, "tokenizer.json", &text)) {
		ok = qwen_hfq_keys(h, &g, e);
		*talk = ok ? template_of_file(c, &g) : NULL;
		if (ok)
			qwen_gguf_close(&g);
	}
	buf_fini(&text);
	return ok;
}

static bool hfq_words(struct conversion *c, struct buf *tokenizer,
		      const char **talk, struct err *e)
{
	struct qwen_hfq h;

	if (!qwen_hfq_open(&h, c->how->from, e))
		return false;
	bool ok = hfq_template(c, &h, talk, e) &&
		  (!tokenizer || !qwen_hfq_has_tokenizer(&h) ||
		   qwen_hfq_tokenizer(&h, tokenizer, e));
	qwen_hfq_close(&h);
	return ok;
}

/* Of a file; `tokenizer` may be NULL.  What is not there stays empty. */
static bool words_read(struct conversion *c, struct buf *tokenizer,
		       const char **talk, struct err *e)
{
	return qwen_is_hfq(c->how->from) ? hfq_words(c, tokenizer, talk, e) :
					   gguf_words(c, tokenizer, talk, e);
}

bool qwen_convert_words_put(struct conversion *c, struct qwen_gguf_out *o,
			    struct err *e)
{
	const char *from = c->how->from, *text = NULL;

	if (!qwen_tokenizer_there(from)) { /* others must be told so */
		qwen_gguf_put_text(o, "tokenizer.ggml.model", "no_vocab");
		qwen_gguf_put_int(o,
				  arena_printf(&c->mem, "%s.vocab_size",
					       qwen_gguf_kind(&c->config)),
				  c->config.vocab);
		return true;
	}
	struct qwen_tokenizer *t = qwen_tokenizer_load(from, e);
	if (!t)
		return false;
	qwen_gguf_put_tokenizer(o, t, c->config.vocab);
	qwen_tokenizer_free(t);
	if (!(qwen_is_file(from) ? words_read(c, NULL, &text, e) :
				   template_of_folder(c, &text, e)))
		return false;
	if (text)
		qwen_gguf_put_text(o, "tokenizer.chat_template", text);
	return true;
}

bool qwen_convert_text(struct conversion *c, const char *name,
		       const struct buf *text, struct err *e)
{
	return qwen_text_write(c->how->to, name, text, e);
}

bool qwen_convert_words_write(struct conversion *c, struct err *e)
{
	struct buf text = { 0 };
	const char *talk = NULL;
	bool ok = words_read(c, &text, &talk, e);

	if (ok && text.len)
		ok = qwen_convert_text(c, "tokenizer.json", &text, e);
	buf_fini(&text);
	if (ok && talk) {
		json_t *j = json_pack("{s:s}", "chat_template", talk);
		char *s = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
		ok = s || err_set(e, ERR_INPUT,
				  "tokenizer.chat_template is "
				  "not UTF-8");
		if (s)
			buf_adds(&text, s);
		ok = ok &&
		     qwen_convert_text(c, "tokenizer_config.json", &text, e);
		free(s);
		json_decref(j);
	}
	buf_fini(&text);
	return ok;
}
