/*
 * engine/files/gguf.c - GGUF files, mapped and checked.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "engine/files/files_int.h"

static const struct {
	const char *name;
	uint8_t bytes; /* 0: as it says itself */
} type[QWEN_GGUF_TYPES] = {
	[QWEN_GGUF_U8] = { "u8", 1 },	[QWEN_GGUF_I8] = { "i8", 1 },
	[QWEN_GGUF_U16] = { "u16", 2 }, [QWEN_GGUF_I16] = { "i16", 2 },
	[QWEN_GGUF_U32] = { "u32", 4 }, [QWEN_GGUF_I32] = { "i32", 4 },
	[QWEN_GGUF_F32] = { "f32", 4 }, [QWEN_GGUF_BOOL] = { "bool", 1 },
	[QWEN_GGUF_STRING] = { "string", 0 },
	[QWEN_GGUF_ARRAY] = { "array", 0 },
	[QWEN_GGUF_U64] = { "u64", 8 }, [QWEN_GGUF_I64] = { "i64", 8 },
	[QWEN_GGUF_F64] = { "f64", 8 },
};

static uint64_t number_of(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

const uint8_t *qwen_bytes_take(struct qwen_cursor *c, uint64_t n,
			       const char *what, struct err *e)
{
	const uint8_t *p = c->at;

	if (n > (uint64_t)(c->end - p)) {
		err_set(e, ERR_INPUT, "%s needs %llu bytes, but the file ends "
			"after %llu", what, (unsigned long long)n,
			(unsigned long long)(c->end - p));
		return NULL;
	}
	c->at += n;
	return p;
}

bool qwen_number_take(struct qwen_cursor *c, unsigned bytes, const char *what,
		      uint64_t *out, struct err *e)
{
	const uint8_t *p = qwen_bytes_take(c, bytes, what, e);

	*out = p ? number_of(p, bytes) : 0;
	return p;
}

/* A name as a C string in the arena: not empty, without zero bytes. */
static const char *name_take(struct qwen_cursor *c, struct arena *mem,
			     const char *what, struct err *e)
{
	uint64_t n;
	const uint8_t *p;

	if (!qwen_number_take(c, 8, what, &n, e) ||
	    !(p = qwen_bytes_take(c, n, what, e)))
		return NULL;
	if (!n || n > QWEN_MAX_NAME_BYTES || memchr(p, 0, n)) {
		err_set(e, ERR_INPUT, "%s has %llu bytes or a zero byte; "
			"wanted 1 to %d without one", what,
			(unsigned long long)n, QWEN_MAX_NAME_BYTES);
		return NULL;
	}
	return memcpy(arena_alloc(mem, n + 1), p, n);
}

/* ---- metadata ---- */

static bool type_take(struct qwen_cursor *c, enum qwen_gguf_type *out,
		      struct err *e)
{
	uint64_t t;

	if (!qwen_number_take(c, 4, "a type", &t, e))
		return false;
	if (t >= QWEN_GGUF_TYPES)
		return err_set(e, ERR_INPUT, "type %llu is unknown; there are "
			       "0 to %d", (unsigned long long)t,
			       QWEN_GGUF_TYPES - 1);
	*out = (enum qwen_gguf_type)t;
	return true;
}

static bool value_take(struct qwen_cursor *c, struct qwen_gguf_value *v,
		       struct err *e)
{
	uint64_t bytes;

	v->n = 1;
	if (!type_take(c, &v->type, e))
		return false;
	v->array = v->type == QWEN_GGUF_ARRAY;
	if (v->array && (!type_take(c, &v->type, e) ||
			 !qwen_number_take(c, 8, "an array", &v->n, e)))
		return false;
	if (v->type == QWEN_GGUF_ARRAY)
		return err_set(e, ERR_UNSUPPORTED, "an array of arrays; wanted "
			       "numbers or strings");
	v->data = c->at;
	if (v->type != QWEN_GGUF_STRING) {
		if (__builtin_mul_overflow(v->n, type[v->type].bytes, &bytes))
			bytes = UINT64_MAX;
		return qwen_bytes_take(c, bytes, type[v->type].name, e);
	}
	for (uint64_t i = 0; i < v->n; i++)
		if (!qwen_number_take(c, 8, "a string", &bytes, e) ||
		    !qwen_bytes_take(c, bytes, "a string", e))
			return false;
	return true;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct qwen_gguf_value *)a)->key,
		      ((const struct qwen_gguf_value *)b)->key);
}

static bool values_take(struct qwen_gguf *g, struct qwen_cursor *c, uint64_t n,
			struct err *e)
{
	/* A key, a type and a value have at least 14 bytes. */
	if (n > (uint64_t)(c->end - c->at) / 14)
		return err_set(e, ERR_INPUT, "%llu keys do not fit into the "
			       "file", (unsigned long long)n);
	g->value = xcalloc(n + 1, sizeof(*g->value));
	for (; g->n_values < n; g->n_values++) {
		struct qwen_gguf_value *v = &g->value[g->n_values];
		v->key = name_take(c, &g->t.mem, "a key", e);
		if (!v->key)
			return err_wrap(e, "key %zu", g->n_values);
		if (!value_take(c, v, e))
			return err_wrap(e, "%s", v->key);
		v->size_bytes = (size_t)(c->at - v->data);
	}
	qsort(g->value, g->n_values, sizeof(*g->value), by_key);
	for (size_t i = 1; i < g->n_values; i++)
		if (by_key(&g->value[i - 1], &g->value[i]) == 0)
			return err_set(e, ERR_INPUT, "key %s is there twice",
				       g->value[i].key);
	return true;
}

const struct qwen_gguf_value *qwen_gguf_find(const struct qwen_gguf *g,
					     const char *key)
{
	const struct qwen_gguf_value wanted = { .key = key };

	return g->n_values ? bsearch(&wanted, g->value, g->n_values,
				     sizeof(*g->value), by_key) : NULL;
}

bool qwen_gguf_int(const struct qwen_gguf_value *v, uint64_t i, int64_t *out)
{
	const unsigned bytes = type[v->type].bytes;

	if (i >= v->n || !bytes || v->type == QWEN_GGUF_F32 ||
	    v->type == QWEN_GGUF_F64)
		return false;
	const uint64_t u = number_of(v->data + i * bytes, bytes);
	const unsigned above = 64 - 8 * bytes;
	const bool has_sign = v->type == QWEN_GGUF_I8 ||
			      v->type == QWEN_GGUF_I16 ||
			      v->type == QWEN_GGUF_I32 ||
			      v->type == QWEN_GGUF_I64;
	*out = has_sign ? (int64_t)(u << above) >> above : (int64_t)u;
	return has_sign || *out >= 0;
}

bool qwen_gguf_real(const struct qwen_gguf_value *v, uint64_t i, double *out)
{
	int64_t whole;
	float f;
	char text[32];

	if (i < v->n && v->type == QWEN_GGUF_F64) {
		memcpy(out, v->data + 8 * i, 8);
		return true;
	}
	if (i >= v->n || v->type != QWEN_GGUF_F32) {
		bool ok = qwen_gguf_int(v, i, &whole);
		*out = ok ? (double)whole : 0;
		return ok;
	}
	memcpy(&f, v->data + 4 * i, 4);
	for (int digits = 1; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)f);
		if (strtof(text, NULL) == f)
			break;
	}
	*out = strtod(text, NULL);
	return true;
}

bool qwen_gguf_text(const struct qwen_gguf_value *v, const uint8_t **at,
		    const char **text, size_t *len_bytes)
{
	const uint8_t *p = *at ? *at : v->data;

	if (v->type != QWEN_GGUF_STRING || p == v->data + v->size_bytes)
		return false;
	*len_bytes = (size_t)number_of(p, 8);
	*text = (const char *)p + 8;
	*at = p + 8 + *len_bytes;
	return true;
}

/* ---- tensors ---- */

static bool dtype_of(uint64_t number, enum qwen_dtype *out, struct err *e)
{
	for (int i = 0; i < QWEN_DTYPES; i++)
		if (qwen_dtype_gguf((enum qwen_dtype)i) == (int64_t)number) {
			*out = (enum qwen_dtype)i;
			return true;
		}
	return err_set(e, ERR_UNSUPPORTED, "type %llu of ggml is not known to "
		       "this engine; it reads F32, F16, BF16, Q8_0, Q4_0, "
		       "Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS and "
		       "MXFP4", (unsigned long long)number);
}

static bool shape_take(struct qwen_cursor *c, struct qwen_tensor *t,
		       struct err *e)
{
	uint64_t n;

	if (!qwen_number_take(c, 4, "the number of dimensions", &n, e))
		return false;
	if (n > QWEN_MAX_DIMS)
		return err_set(e, ERR_INPUT, "%llu dimensions; at most %d are "
			       "allowed", (unsigned long long)n, QWEN_MAX_DIMS);
	t->n_dims = (uint32_t)n;
	t->count = 1;
	for (uint32_t i = t->n_dims; i--;) /* innermost first */
		if (!qwen_number_take(c, 8, "a dimension", &t->shape[i], e))
			return false;
	for (uint32_t i = 0; i < t->n_dims; i++)
		if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
			return err_set(e, ERR_INPUT, "its dimensions are too "
				       "large");
	return true;
}

static bool tensor_take(struct qwen_cursor *c, struct qwen_tensor *t,
			struct err *e)
{
	uint64_t number, bytes;

	if (!shape_take(c, t, e) ||
	    !qwen_number_take(c, 4, "a type", &number, e) ||
	    !dtype_of(number, &t->dtype, e) ||
	    !qwen_number_take(c, 8, "a place", &t->offset, e))
		return false;
	const uint32_t values = qwen_dtype_values(t->dtype);
	const uint64_t inner = t->n_dims ? t->shape[t->n_dims - 1] : 1;
	if (inner % values)
		return err_set(e, ERR_INPUT, "has rows of %llu values; %s "
			       "comes in blocks of %u",
			       (unsigned long long)inner,
			       qwen_dtype_name(t->dtype), values);
	if (__builtin_mul_overflow(t->count / values,
				   qwen_dtype_bytes(t->dtype), &bytes) ||
	    bytes > SIZE_MAX)
		return err_set(e, ERR_INPUT, "its dimensions are too large");
	t->size_bytes = (size_t)bytes;
	return true;
}

static bool tensors_take(struct qwen_gguf *g, struct qwen_cursor *c, uint64_t n,
			 const char *path, struct err *e)
{
	struct qwen_tensors *t = &g->t;

	/* A name, dimensions, a type and a place have at least 25 bytes. */
	if (n > (uint64_t)(c->end - c->at) / 25)
		return err_set(e, ERR_INPUT, "%llu tensors do not fit into the "
			       "file", (unsigned long long)n);
	t->tensor = xcalloc(n + 1, sizeof(*t->tensor));
	for (; t->n_tensors < n; t->n_tensors++) {
		struct qwen_tensor *x = &t->tensor[t->n_tensors];
		x->file = path;
		x->name = name_take(c, &t->mem, "a tensor's name", e);
		if (!x->name)
			return err_wrap(e, "tensor %zu", t->n_tensors);
		if (!tensor_take(c, x, e))
			return err_wrap(e, "tensor %s", x->name);
	}
	return true;
}

/* Tensors follow each other, each at the next multiple of the alignment. */
static bool places_take(struct qwen_gguf *g, const uint8_t *data,
			uint64_t data_bytes, struct err *e)
{
	uint64_t at = 0;

	for (size_t i = 0; i < g->t.n_tensors; i++) {
		struct qwen_tensor *x = &g->t.tensor[i];
		at = qwen_gguf_pad(at, g->alignment);
		if (x->offset != at)
			return err_set(e, ERR_INPUT, "tensor %s lies at byte "
				       "%llu of the data; behind the one "
				       "before it comes %llu", x->name,
				       (unsigned long long)x->offset,
				       (unsigned long long)at);
		if (at > data_bytes || x->size_bytes > data_bytes - at)
			return err_set(e, ERR_INPUT, "tensor %s needs %zu "
				       "bytes from byte %llu of the data on, "
				       "which has %llu", x->name,
				       x->size_bytes, (unsigned long long)at,
				       (unsigned long long)data_bytes);
		qwen_tensor_place(&g->t, x, data + at);
		at += x->size_bytes;
	}
	return true;
}

/* ---- the file ---- */

static bool head_take(struct qwen_cursor *c, uint32_t *version,
		      uint64_t *tensors, uint64_t *values, struct err *e)
{
	const uint8_t *magic = qwen_bytes_take(c, 4, "the file's mark", e);
	uint64_t v;

	if (!magic)
		return false;
	if (memcmp(magic, "GGUF", 4) != 0)
		return err_set(e, ERR_INPUT, "it begins with %02x %02x %02x "
			       "%02x; a GGUF file begins with \"GGUF\"",
			       magic[0], magic[1], magic[2], magic[3]);
	if (!qwen_number_take(c, 4, "the version", &v, e))
		return false;
	if (v && v % 65536 == 0)
		return err_set(e, ERR_UNSUPPORTED, "the file is in big-endian "
			       "order; wanted little-endian, as "
			       "gguf-convert-endian makes it");
	if (v != 2 && v != 3)
		return err_set(e, ERR_UNSUPPORTED, "GGUF version %llu; wanted "
			       "2 or 3", (unsigned long long)v);
	*version = (uint32_t)v;
	return qwen_number_take(c, 8, "the number of tensors", tensors, e) &&
	       qwen_number_take(c, 8, "the number of keys", values, e);
}

/* Defaults where a key is missing. */
static bool layout_read(struct qwen_gguf *g, struct err *e)
{
	const struct qwen_gguf_value *v = qwen_gguf_find(g, "split.count");
	int64_t n = 1;

	if (v && (!qwen_gguf_int(v, 0, &n) || n > 1))
		return err_set(e, ERR_UNSUPPORTED, "the model is split into "
			       "%lld files (split.count); join them with "
			       "gguf-split --merge", (long long)n);
	n = QWEN_GGUF_ALIGNMENT;
	v = qwen_gguf_find(g, "general.alignment");
	if (v && (!qwen_gguf_int(v, 0, &n) || n < 8 || n > 1 << 20 ||
		  (n & (n - 1))))
		return err_set(e, ERR_INPUT, "general.alignment is %lld; "
			       "wanted a power of two from 8 to 1048576",
			       (long long)n);
	g->alignment = (uint32_t)n;
	return true;
}

static bool file_parse(struct qwen_gguf *g, const char *path,
		       const uint8_t *bytes, size_t size_bytes, struct err *e)
{
	struct qwen_cursor c = { bytes, bytes + size_bytes };
	uint64_t tensors = 0, values = 0;

	if (!head_take(&c, &g->version, &tensors, &values, e) ||
	    !values_take(g, &c, values, e) || !layout_read(g, e) ||
	    !tensors_take(g, &c, tensors, path, e))
		return err_wrap(e, "%s", path);
	uint64_t head = qwen_gguf_pad((uint64_t)(c.at - bytes), g->alignment);
	if (head > size_bytes)
		head = size_bytes; /* a file without tensors may end so */
	return (places_take(g, bytes + head, size_bytes - head, e) &&
		qwen_tensors_sort(&g->t, e)) || err_wrap(e, "%s", path);
}

bool qwen_gguf_parse(struct qwen_gguf *g, const char *path, const void *bytes,
		     size_t size_bytes, struct err *e)
{
	*g = (struct qwen_gguf){ 0 };
	if (file_parse(g, arena_strdup(&g->t.mem, path), bytes, size_bytes, e))
		return true;
	qwen_gguf_close(g);
	return false;
}

bool qwen_gguf_open(struct qwen_gguf *g, const char *path, struct err *e)
{
	const struct qwen_map *m;

	*g = (struct qwen_gguf){ 0 };
	path = arena_strdup(&g->t.mem, path);
	m = qwen_file_map(&g->t, path, e);
	if (m && file_parse(g, path, m->base, m->size_bytes, e))
		return true;
	qwen_gguf_close(g);
	return false;
}

void qwen_gguf_close(struct qwen_gguf *g)
{
	free(g->value);
	qwen_tensors_close(&g->t);
	*g = (struct qwen_gguf){ 0 };
}

bool qwen_is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}
