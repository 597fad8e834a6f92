/*
 * engine/files/hfq.c - hipfire's files: a folder's texts and tensors in one.
 *
 * "HFQM", u32 version, u32 architecture, u32 tensors, u64 where the texts
 * begin, u64 where the data does; the texts, a JSON object, and right behind it
 * u32 tensors again, and of each u16 and so many bytes of name, u8 type, u8
 * dimensions, u32 each, u32 group, u64 bytes.  The data has them in this order,
 * without gaps.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/files/files_int.h"

#define HFQ_VERSION 1
static const char magic[4] = { 'H', 'F', 'Q', 'M' };

/* Types of the files by their number; those of one layout have two names. */
static const struct {
	int number;
	enum qwen_dtype type;
} known[] = {
	{ 1, QWEN_F16 },  { 2, QWEN_F32 },   { 3, QWEN_Q8_0 },
	{ 4, QWEN_Q4_K }, { 16, QWEN_BF16 },
#define PACKED(NAME, values, bytes, hfq) { hfq, QWEN_##NAME },
#include "engine/files/dtype.def"
};

static bool type_find(uint64_t number, enum qwen_dtype *out, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].number == (int64_t)number) {
			*out = known[i].type;
			return true;
		}
	return err_set(e, ERR_UNSUPPORTED,
		       "type %llu of hipfire is not known "
		       "to this engine; it reads F16, F32, BF16, Q8F16, Q4_K, "
		       "Q4F16G64, HFQ2 to HFQ6 and MQ4 to MQ8",
		       (unsigned long long)number);
}

/* ---- tensors ---- */

/* Files made of GGUF files have the innermost dimension first, too. */
static bool shape_take(struct qwen_cursor *c, struct qwen_tensor *t,
		       bool reversed, struct err *e)
{
	uint64_t n;

	if (!qwen_number_take(c, 1, "the number of dimensions", &n, e))
		return false;
	if (n > QWEN_MAX_DIMS)
		return err_set(e, ERR_INPUT,
			       "%llu dimensions; at most %d are "
			       "allowed",
			       (unsigned long long)n, QWEN_MAX_DIMS);
	t->n_dims = (uint32_t)n;
	t->count = 1;
	for (uint32_t i = 0; i < t->n_dims; i++) {
		uint64_t *to = &t->shape[reversed ? t->n_dims - 1 - i : i];
		if (!qwen_number_take(c, 4, "a dimension", to, e))
			return false;
		if (__builtin_mul_overflow(t->count, *to, &t->count))
			return err_set(e, ERR_INPUT,
				       "its dimensions are too "
				       "large");
	}
	return true;
}

static bool size_check(const struct qwen_tensor *t, uint64_t said,
		       struct err *e)
{
	const uint32_t values = qwen_dtype_values(t->dtype);
	const uint64_t inner = t->n_dims ? t->shape[t->n_dims - 1] : 1;
	uint64_t bytes;

	if (inner % values)
		return err_set(e, ERR_UNSUPPORTED,
			       "has rows of %llu values, "
			       "no whole number of blocks of %u",
			       (unsigned long long)inner, values);
	return (!__builtin_mul_overflow(t->count / values,
					qwen_dtype_bytes(t->dtype), &bytes) &&
		bytes == said) ||
	       err_set(e, ERR_INPUT,
		       "has %llu bytes, but its shape needs "
		       "%llu values of %s",
		       (unsigned long long)said, (unsigned long long)t->count,
		       qwen_dtype_name(t->dtype));
}

static const char *name_take(struct qwen_cursor *c, struct arena *mem,
			     struct err *e)
{
	uint64_t n;
	const uint8_t *p;

	if (!qwen_number_take(c, 2, "a tensor's name", &n, e) ||
	    !(p = qwen_bytes_take(c, n, "a tensor's name", e)))
		return NULL;
	if (!n || memchr(p, 0, n)) {
		err_set(e, ERR_INPUT,
			"a tensor's name is empty or has a zero "
			"byte");
		return NULL;
	}
	return memcpy(arena_alloc(mem, n + 1), p, n);
}

static bool tensor_take(struct qwen_cursor *c, struct qwen_tensor *t,
			bool reversed, struct err *e)
{
	uint64_t type, group, bytes;

	if (!qwen_number_take(c, 1, "a type", &type, e) ||
	    !shape_take(c, t, reversed, e) ||
	    !qwen_number_take(c, 4, "a group", &group, e) ||
	    !qwen_number_take(c, 8, "a size", &bytes, e) ||
	    !type_find(type, &t->dtype, e) || !size_check(t, bytes, e))
		return false;
	t->size_bytes = (size_t)bytes;
	return true;
}

static bool tensors_take(struct qwen_hfq *h, struct qwen_cursor *c,
			 uint64_t wanted, const char *path, struct err *e)
{
	const char *from =
		json_string_value(json_object_get(h->words, "source"));
	const bool reversed = from && strcmp(from, "gguf") == 0;
	struct qwen_tensors *t = &h->t;
	uint64_t n;

	if (!qwen_number_take(c, 4, "the number of tensors", &n, e))
		return false;
	/* A name, a type, dimensions, a group and a size have at least 17. */
	if (n != wanted || n > (uint64_t)(c->end - c->at) / 17)
		return err_set(e, ERR_INPUT,
			       "%llu tensors, of which the head "
			       "has %llu, do not fit before the data",
			       (unsigned long long)n,
			       (unsigned long long)wanted);
	t->tensor = xcalloc(n + 1, sizeof(*t->tensor));
	for (; t->n_tensors < n; t->n_tensors++) {
		struct qwen_tensor *x = &t->tensor[t->n_tensors];
		x->file = path;
		x->name = name_take(c, &t->mem, e);
		if (!x->name)
			return err_wrap(e, "tensor %zu", t->n_tensors);
		if (!tensor_take(c, x, reversed, e))
			return err_wrap(e, "tensor %s", x->name);
	}
	return true;
}

static bool places_take(struct qwen_tensors *t, const uint8_t *data,
			uint64_t data_bytes, struct err *e)
{
	uint64_t at = 0;

	for (size_t i = 0; i < t->n_tensors; i++) {
		struct qwen_tensor *x = &t->tensor[i];
		if (x->size_bytes > data_bytes - at)
			return err_set(e, ERR_INPUT,
				       "tensor %s needs %zu "
				       "bytes from byte %llu of the data on, "
				       "which has %llu",
				       x->name, x->size_bytes,
				       (unsigned long long)at,
				       (unsigned long long)data_bytes);
		x->offset = at;
		qwen_tensor_place(t, x, data + at);
		at += x->size_bytes;
	}
	return true;
}

/* ---- the file ---- */

/* The JSON object, whose end nothing says. */
static bool words_take(struct qwen_hfq *h, struct qwen_cursor *c, struct err *e)
{
	json_error_t je;

	h->words = json_loadb((const char *)c->at, (size_t)(c->end - c->at),
			      JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES,
			      &je);
	if (!json_is_object(h->words))
		return err_set(e, ERR_INPUT,
			       "its texts are not a JSON object: "
			       "%s (byte %d)",
			       h->words ? "another type" : je.text,
			       h->words ? 0 : je.position);
	c->at += je.position;
	return true;
}

static bool file_parse(struct qwen_hfq *h, const char *path,
		       const uint8_t *bytes, size_t size_bytes, struct err *e)
{
	struct qwen_cursor c = { bytes, bytes + size_bytes };
	uint64_t mark, version, kind, tensors, words, data;

	if (!qwen_number_take(&c, 4, "the file's mark", &mark, e) ||
	    !qwen_number_take(&c, 4, "the version", &version, e) ||
	    !qwen_number_take(&c, 4, "the architecture", &kind, e) ||
	    !qwen_number_take(&c, 4, "the number of tensors", &tensors, e) ||
	    !qwen_number_take(&c, 8, "where texts begin", &words, e) ||
	    !qwen_number_take(&c, 8, "where the data begins", &data, e))
		return err_wrap(e, "%s", path);
	if (memcmp(bytes, magic, sizeof(magic)) != 0 || version != HFQ_VERSION)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s: an HFQ file begins "
			       "with \"HFQM\" and version %d; got version %llu",
			       path, HFQ_VERSION, (unsigned long long)version);
	if (words < (uint64_t)(c.at - bytes) || words > data ||
	    data > size_bytes || data - words > QWEN_MAX_HEADER_BYTES)
		return err_set(e, ERR_INPUT,
			       "%s: texts from byte %llu and "
			       "data from byte %llu on; the file has %zu, and "
			       "texts at most %d",
			       path, (unsigned long long)words,
			       (unsigned long long)data, size_bytes,
			       QWEN_MAX_HEADER_BYTES);
	c = (struct qwen_cursor){ bytes + words, bytes + data };
	return (words_take(h, &c, e) && tensors_take(h, &c, tensors, path, e) &&
		places_take(&h->t, bytes + data, size_bytes - data, e) &&
		qwen_tensors_sort(&h->t, e)) ||
	       err_wrap(e, "%s", path);
}

bool qwen_hfq_parse(struct qwen_hfq *h, const char *path, const void *bytes,
		    size_t size_bytes, struct err *e)
{
	*h = (struct qwen_hfq){ 0 };
	if (file_parse(h, arena_strdup(&h->t.mem, path), bytes, size_bytes, e))
		return true;
	qwen_hfq_close(h);
	return false;
}

bool qwen_hfq_open(struct qwen_hfq *h, const char *path, struct err *e)
{
	const struct qwen_map *m;

	*h = (struct qwen_hfq){ 0 };
	path = arena_strdup(&h->t.mem, path);
	m = qwen_file_map(&h->t, path, e);
	if (m && file_parse(h, path, m->base, m->size_bytes, e))
		return true;
	qwen_hfq_close(h);
	return false;
}

void qwen_hfq_close(struct qwen_hfq *h)
{
	json_decref(h->words);
	buf_fini(&h->keys);
	qwen_tensors_close(&h->t);
	*h = (struct qwen_hfq){ 0 };
}

bool qwen_is_hfq(const char *path)
{
	char begin[sizeof(magic)];
	struct stat st;

	/* A pipe would wait for who writes, and lose what was read. */
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	FILE *f = fopen(path, "rb");
	bool is = f && fread(begin, sizeof(begin), 1, f) == 1 &&
		  memcmp(begin, magic, sizeof(magic)) == 0;
	if (f)
		fclose(f);
	return is;
}

bool qwen_hfq_tensors(struct qwen_tensors *t, const char *path, struct err *e)
{
	struct qwen_hfq h;

	*t = (struct qwen_tensors){ 0 };
	if (!qwen_hfq_open(&h, path, e))
		return false;
	json_decref(h.words);
	*t = h.t;
	return true;
}

/* ---- what it says ---- */

/* Files made of GGUF files do not say this, as those do not. */
static void config_complete(json_t *config, const struct qwen_hfq *h)
{
	if (!json_object_get(config, "tie_word_embeddings"))
		json_object_set_new(config, "tie_word_embeddings",
				    json_boolean(!qwen_tensor_find(
					    &h->t, "lm_head.weight")));
	if (!json_object_get(config, "hidden_act"))
		json_object_set_new(config, "hidden_act", json_string("silu"));
}

bool qwen_hfq_config(struct qwen_config *c, const struct qwen_hfq *h,
		     struct err *e)
{
	const json_t *said = json_object_get(h->words, "config");

	if (!json_is_object(said))
		return err_set(e, ERR_INPUT, "no object \"config\"");
	json_t *config = json_copy((json_t *)said);
	config_complete(config, h);
	char *text = json_dumps(config, 0);
	bool ok = qwen_config_parse(c, text, NULL, e);
	free(text);
	json_decref(config);
	if (ok && c->packing.kind != QWEN_PACKED_NOT)
		return err_set(e, ERR_UNSUPPORTED,
			       "\"quantization_config\" in "
			       "an HFQ file; wanted one made of plain weights");
	c->packing.kind = QWEN_PACKED_HFQ;
	return ok;
}

bool qwen_hfq_config_load(struct qwen_config *c, const char *path,
			  struct err *e)
{
	struct qwen_hfq h;

	if (!qwen_hfq_open(&h, path, e))
		return false;
	bool ok = qwen_hfq_config(c, &h, e) || err_wrap(e, "%s", path);
	qwen_hfq_close(&h);
	return ok;
}

bool qwen_hfq_text(const struct qwen_hfq *h, const char *name, struct buf *out)
{
	char key[32];

	/* Without ".json". */
	snprintf(key, sizeof(key), "%.*s", (int)strcspn(name, "."), name);
	const json_t *v = json_object_get(h->words, key);
	if (json_is_string(v)) {
		buf_adds(out, json_string_value(v));
		return true;
	}
	if (!json_is_object(v))
		return false;
	char *text = json_dumps(v, JSON_INDENT(2));
	buf_adds(out, text);
	free(text);
	return true;
}

bool qwen_hfq_has_tokenizer(const struct qwen_hfq *h)
{
	const char *text =
		json_string_value(json_object_get(h->words, "tokenizer"));

	/* Without one it is "{}". */
	return text ? strlen(text) > 2 :
		      json_object_get(json_object_get(h->words, "gguf_meta"),
				      "tokenizer.ggml.tokens") != NULL;
}

/* A list of texts or of whole numbers. */
static void list_put(struct qwen_gguf_out *o, const char *key, const json_t *v)
{
	const bool texts = json_is_string(json_array_get(v, 0));
	const size_t n = json_array_size(v);

	qwen_gguf_put_list(o, key, texts ? QWEN_GGUF_STRING : QWEN_GGUF_I32, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *x = json_array_get(v, i);
		if (texts)
			qwen_gguf_item_text(
				o,
				json_is_string(x) ? json_string_value(x) : "",
				json_string_length(x));
		else
			qwen_gguf_item_int(o, (int32_t)json_integer_value(x));
	}
}

bool qwen_hfq_keys(struct qwen_hfq *h, struct qwen_gguf *g, struct err *e)
{
	static const uint8_t begin[] = { 'G', 'G', 'U', 'F', 3, 0, 0, 0,
					 0,   0,   0,	0,   0, 0, 0, 0 };
	json_t *all = json_object_get(h->words, "gguf_meta"), *v;
	struct qwen_gguf_out o = { 0 };
	const char *key;

	if (!json_is_object(all))
		return err_set(e, ERR_INPUT, "no object \"gguf_meta\"");
	json_object_foreach(all, key, v)
	{
		if (json_is_string(v) &&
		    strlen(json_string_value(v)) == json_string_length(v))
			qwen_gguf_put_text(&o, key, json_string_value(v));
		else if (json_is_array(v))
			list_put(&o, key, v);
	}
	buf_reset(&h->keys);
	buf_add(&h->keys, begin, sizeof(begin));
	for (int i = 0; i < 8; i++)
		buf_addc(&h->keys, (char)(o.n_keys >> 8 * i));
	buf_add(&h->keys, o.keys.data, o.keys.len);
	qwen_gguf_out_fini(&o);
	return qwen_gguf_parse(g, "\"gguf_meta\"", h->keys.data, h->keys.len,
			       e);
}
