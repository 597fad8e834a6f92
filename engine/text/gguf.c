/*
 * engine/text/gguf.c - the tokenizer of a GGUF file, and one for it.
 *
 * Its lists say the same as tokenizer.json, which they are turned into and read
 * as: there is one reader.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/files/files.h"
#include "engine/text/text_int.h"

/* What a token is, as tokenizer.ggml.token_type has it. */
enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

/* ---- from a file ---- */

/* A JSON string; what must not stand in one is escaped. */
static void add_string(struct buf *b, const char *s, size_t len)
{
	buf_addc(b, '"');
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '"' || s[i] == '\\')
			buf_addc(b, '\\');
		if ((unsigned char)s[i] < 0x20)
			buf_printf(b, "\\u%04x", s[i]);
		else
			buf_addc(b, s[i]);
	}
	buf_addc(b, '"');
}

static bool text_is_one_of(const struct qwen_gguf_value *v,
			   const char *const *one)
{
	const uint8_t *at = NULL;
	const char *text;
	size_t len;

	if (!v || v->array || !qwen_gguf_text(v, &at, &text, &len))
		return false;
	for (; *one; one++)
		if (len == strlen(*one) && memcmp(text, *one, len) == 0)
			return true;
	return false;
}

/* Another model's tokenizer would give other tokens: refused. */
static bool kind_check(const struct qwen_gguf *g, struct err *e)
{
	static const char *const model[] = { "gpt2", NULL };
	static const char *const split[] = { "qwen2", "deepseek-r1-qwen",
					     NULL };

	if (!text_is_one_of(qwen_gguf_find(g, "tokenizer.ggml.model"), model))
		return err_set(e, ERR_UNSUPPORTED, "tokenizer.ggml.model is "
			       "not \"gpt2\", byte-pair encoding");
	if (!text_is_one_of(qwen_gguf_find(g, "tokenizer.ggml.pre"), split))
		return err_set(e, ERR_UNSUPPORTED, "tokenizer.ggml.pre is not "
			       "\"qwen2\": the text would be split as another "
			       "model's");
	return true;
}

static const struct qwen_gguf_value *
list_find(const struct qwen_gguf *g, const char *key, bool strings,
	  struct err *e)
{
	const struct qwen_gguf_value *v = qwen_gguf_find(g, key);

	if (v && v->array && (v->type == QWEN_GGUF_STRING) == strings)
		return v;
	err_set(e, ERR_INPUT, "%s is not a list of %s", key,
		strings ? "strings" : "numbers");
	return NULL;
}

struct lists {
	const struct qwen_gguf_value *tokens, *types, *merges;
};

static bool lists_find(struct lists *l, const struct qwen_gguf *g,
		       struct err *e)
{
	l->tokens = list_find(g, "tokenizer.ggml.tokens", true, e);
	l->types = l->tokens ? list_find(g, "tokenizer.ggml.token_type", false,
					 e) : NULL;
	l->merges = l->types ? list_find(g, "tokenizer.ggml.merges", true, e) :
			       NULL;
	return l->merges && (l->tokens->n == l->types->n ||
			     err_set(e, ERR_INPUT, "%llu tokens have %llu types",
				     (unsigned long long)l->tokens->n,
				     (unsigned long long)l->types->n));
}

/* The tokens that were added, or those that were learnt. */
static void add_tokens(const struct lists *l, bool added, struct buf *out)
{
	const uint8_t *at = NULL;
	const char *text, *comma = "";
	size_t len;
	int64_t type = NORMAL;

	for (uint64_t i = 0; qwen_gguf_text(l->tokens, &at, &text, &len); i++) {
		qwen_gguf_int(l->types, i, &type);
		bool is_added = type == CONTROL || type == USER_DEFINED;
		if (is_added != added || type == UNUSED)
			continue;
		buf_adds(out, comma);
		comma = ",";
		if (added)
			buf_printf(out, "{\"id\":%llu,\"content\":",
				   (unsigned long long)i);
		add_string(out, text, len);
		if (added)
			buf_printf(out, ",\"special\":%s}",
				   type == CONTROL ? "true" : "false");
		else
			buf_printf(out, ":%llu", (unsigned long long)i);
	}
}

static void add_merges(const struct lists *l, struct buf *out)
{
	const uint8_t *at = NULL;
	const char *text, *comma = "";
	size_t len;

	while (qwen_gguf_text(l->merges, &at, &text, &len)) {
		buf_adds(out, comma);
		add_string(out, text, len);
		comma = ",";
	}
}

bool qwen_gguf_tokenizer(const struct qwen_gguf *g, struct buf *out,
			 struct err *e)
{
	struct lists l;

	if (!kind_check(g, e) || !lists_find(&l, g, e))
		return false;
	buf_adds(out, "{\"version\":\"1.0\",\"added_tokens\":[");
	add_tokens(&l, true, out);
	buf_adds(out, "],\"model\":{\"type\":\"BPE\",\"vocab\":{");
	add_tokens(&l, false, out);
	buf_adds(out, "},\"merges\":[");
	add_merges(&l, out);
	buf_adds(out, "]}}");
	return true;
}

struct qwen_tokenizer *qwen_gguf_tokenizer_load(const char *path,
						struct err *e)
{
	struct qwen_tokenizer *t = NULL;
	struct buf json = { 0 };
	struct qwen_gguf g;

	if (!qwen_gguf_open(&g, path, e))
		return NULL;
	if (qwen_gguf_tokenizer(&g, &json, e))
		t = qwen_tokenizer_of_text(&json, e);
	if (!t)
		err_wrap(e, "%s", path);
	buf_fini(&json);
	qwen_gguf_close(&g);
	return t;
}

bool qwen_tokenizer_there(const char *path)
{
	static const char *const file[] = { "tokenizer.json", "vocab.json" };
	struct qwen_gguf g;
	struct qwen_hfq h;
	struct err e = { 0 };
	bool there = false;

	if (qwen_is_hfq(path)) {
		if (qwen_hfq_open(&h, path, &e)) {
			there = qwen_hfq_has_tokenizer(&h);
			qwen_hfq_close(&h);
		}
	} else if (qwen_is_file(path) && qwen_gguf_open(&g, path, &e)) {
		there = qwen_gguf_find(&g, "tokenizer.ggml.tokens");
		qwen_gguf_close(&g);
	}
	for (size_t i = 0; !there && i < ARRAY_SIZE(file); i++) {
		struct buf b = { 0 };
		buf_printf(&b, "%s/%s", path, file[i]);
		there = access(b.data, F_OK) == 0;
		buf_fini(&b);
	}
	return there;
}

/* ---- for a file ---- */

/* Tokens as the lists have them: letters for bytes, but for added ones. */
struct lettering {
	char of[256][3];
	struct buf text; /* of the token or merge at hand */
};

static void token_add(struct lettering *l, const struct token *t)
{
	for (uint32_t i = 0; i < t->len; i++)
		if (t->added)
			buf_addc(&l->text, t->bytes[i]);
		else
			buf_adds(&l->text, l->of[(unsigned char)t->bytes[i]]);
}

static int by_rank(const void *a, const void *b)
{
	const struct merge *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void put_merges(struct qwen_gguf_out *o, const struct qwen_tokenizer *t,
		       struct lettering *l)
{
	VEC(struct merge) all = { 0 };

	for (uint32_t i = 0; i <= t->merge_mask; i++)
		if (t->merge[i].into != NO_TOKEN)
			vec_push(&all, t->merge[i]);
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_rank);
	qwen_gguf_put_list(o, "tokenizer.ggml.merges", QWEN_GGUF_STRING, all.n);
	for (size_t i = 0; i < all.n; i++) {
		buf_reset(&l->text);
		token_add(l, &t->token[all.v[i].left]);
		buf_addc(&l->text, ' ');
		token_add(l, &t->token[all.v[i].right]);
		qwen_gguf_item_text(o, l->text.data, l->text.len);
	}
	vec_fini(&all);
}

static int type_of(const struct token *t)
{
	if (!t->bytes)
		return UNUSED;
	return t->special ? CONTROL : t->added ? USER_DEFINED : NORMAL;
}

void qwen_gguf_put_tokenizer(struct qwen_gguf_out *o,
			     const struct qwen_tokenizer *t, uint32_t vocab)
{
	const struct token none = { 0 };
	struct lettering l = { 0 };

	qwen_letters(l.of);
	qwen_gguf_put_text(o, "tokenizer.ggml.model", "gpt2");
	qwen_gguf_put_text(o, "tokenizer.ggml.pre", "qwen2");
	qwen_gguf_put_list(o, "tokenizer.ggml.tokens", QWEN_GGUF_STRING, vocab);
	for (uint32_t i = 0; i < vocab; i++) {
		const struct token *x = i < t->n_tokens ? &t->token[i] : &none;
		buf_reset(&l.text);
		if (x->bytes)
			token_add(&l, x);
		else /* as others fill such places */
			buf_printf(&l.text, "[PAD%u]", i);
		qwen_gguf_item_text(o, l.text.data, l.text.len);
	}
	qwen_gguf_put_list(o, "tokenizer.ggml.token_type", QWEN_GGUF_I32,
			   vocab);
	for (uint32_t i = 0; i < vocab; i++)
		qwen_gguf_item_int(o, type_of(i < t->n_tokens ? &t->token[i] :
								&none));
	put_merges(o, t, &l);
	buf_fini(&l.text);
}
