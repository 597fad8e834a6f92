/*
 * engine/files/safetensors.c - safetensors files, mapped and checked.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/files/files_int.h"

static const struct {
	const char *name;
	uint32_t values, bytes;
	int gguf;
} dtype[QWEN_DTYPES] = {
#define PLAIN(NAME, bytes, gguf) { #NAME, 1, bytes, gguf },
#define BLOCK(NAME, name, values, bytes, gguf) { #NAME, values, bytes, gguf },
#define PACKED(NAME, values, bytes, hfq)       { #NAME, values, bytes, -1 },
#include "engine/files/dtype.def"
};
/* Types of safetensors: those of single values, and our own. */
static bool is_written(int type)
{
	return type <= QWEN_BOOL ||
	       (dtype[type].gguf < 0 && !qwen_dtype_is_packed(type));
}

const char *qwen_dtype_name(enum qwen_dtype t)
{
	return dtype[t].name;
}

uint32_t qwen_dtype_values(enum qwen_dtype t)
{
	return dtype[t].values;
}

uint32_t qwen_dtype_bytes(enum qwen_dtype t)
{
	return dtype[t].bytes;
}

int qwen_dtype_gguf(enum qwen_dtype t)
{
	return dtype[t].gguf;
}

/* ---- one file's header ---- */

static bool dtype_find(const char *name, enum qwen_dtype *out)
{
	for (int i = 0; name && i < QWEN_DTYPES; i++)
		if (is_written(i) && strcmp(dtype[i].name, name) == 0) {
			*out = (enum qwen_dtype)i;
			return true;
		}
	return false;
}

static bool is_u64(const json_t *v, uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static bool shape_read(struct qwen_tensor *t, const json_t *shape,
		       struct err *e)
{
	if (!json_is_array(shape) || json_array_size(shape) > QWEN_MAX_DIMS)
		return err_set(e, ERR_INPUT,
			       "\"shape\" is not a list of at most %d numbers",
			       QWEN_MAX_DIMS);
	t->n_dims = (uint32_t)json_array_size(shape);
	t->count = 1;
	for (uint32_t i = 0; i < t->n_dims; i++)
		if (!is_u64(json_array_get(shape, i), &t->shape[i]) ||
		    __builtin_mul_overflow(t->count, t->shape[i], &t->count))
			return err_set(e, ERR_INPUT,
				       "dimension %u of \"shape\" is not a "
				       "number, or too large", i);
	return true;
}

/* Fills all but `data`. */
static bool entry_read(struct qwen_tensor *t, const json_t *entry,
		       uint64_t data_bytes, struct err *e)
{
	const char *type = json_string_value(json_object_get(entry, "dtype"));
	const json_t *place = json_object_get(entry, "data_offsets");
	uint64_t from, to, wanted;

	if (!dtype_find(type, &t->dtype))
		return err_set(e, ERR_INPUT, "dtype is %s, which is not one of "
			       "F64 F32 F16 BF16 F8_E4M3 I64 I32 I16 I8 U8 "
			       "BOOL, or of T0's I6_32 to I3_256",
			       type ? type : "missing");
	if (!shape_read(t, json_object_get(entry, "shape"), e))
		return false;
	if (json_array_size(place) != 2 ||
	    !is_u64(json_array_get(place, 0), &from) ||
	    !is_u64(json_array_get(place, 1), &to))
		return err_set(e, ERR_INPUT,
			       "\"data_offsets\" is not [begin, end]");
	if (from > to || to > data_bytes)
		return err_set(e, ERR_INPUT, "data_offsets [%llu, %llu] leave "
			       "the file, which has %llu bytes of data",
			       (unsigned long long)from, (unsigned long long)to,
			       (unsigned long long)data_bytes);
	const uint32_t values = dtype[t->dtype].values;
	if (values > 1 && (!t->n_dims || t->shape[t->n_dims - 1] % values))
		return err_set(e, ERR_INPUT, "rows are no whole number of "
			       "blocks of %u values, as %s has them", values,
			       type);
	if (__builtin_mul_overflow(t->count / values, dtype[t->dtype].bytes,
				   &wanted) ||
	    wanted != to - from)
		return err_set(e, ERR_INPUT, "has %llu bytes, but its shape "
			       "needs %llu values of %s",
			       (unsigned long long)(to - from),
			       (unsigned long long)t->count, type);
	t->size_bytes = to - from;
	t->offset = from;
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct qwen_tensor *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->size_bytes > y->size_bytes) -
	       (x->size_bytes < y->size_bytes);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct qwen_tensor *)a)->name,
		      ((const struct qwen_tensor *)b)->name);
}

/* The tensors of a file cover its data exactly, each in its own place. */
static bool places_check(struct qwen_tensor *t, size_t n, uint64_t data_bytes,
			 struct err *e)
{
	uint64_t end = 0;

	if (n)
		qsort(t, n, sizeof(*t), by_place);
	for (size_t i = 0; i < n; i++) {
		if (t[i].offset != end)
			return err_set(e, ERR_INPUT, "tensor %s begins at byte "
				       "%llu of the data, but the one before "
				       "it ends at %llu", t[i].name,
				       (unsigned long long)t[i].offset,
				       (unsigned long long)end);
		end += t[i].size_bytes;
	}
	if (end != data_bytes)
		return err_set(e, ERR_INPUT, "the tensors end at byte %llu of "
			       "the data, which has %llu",
			       (unsigned long long)end,
			       (unsigned long long)data_bytes);
	return true;
}

static bool entries_read(struct qwen_tensors *t, struct qwen_tensor *out,
			 size_t *n, json_t *header, const char *path,
			 uint64_t data_bytes, struct err *e)
{
	const char *name;
	json_t *entry;

	*n = 0;
	json_object_foreach(header, name, entry) {
		if (strcmp(name, "__metadata__") == 0)
			continue;
		struct qwen_tensor *x = &out[(*n)++];
		x->name = arena_strdup(&t->mem, name);
		x->file = path;
		if (!entry_read(x, entry, data_bytes, e))
			return err_wrap(e, "tensor %s", name);
	}
	return places_check(out, *n, data_bytes, e);
}

static json_t *header_load(const uint8_t *bytes, size_t size_bytes,
			   uint64_t *header_bytes, struct err *e)
{
	json_error_t je;
	json_t *header;

	if (size_bytes < 8) {
		err_set(e, ERR_INPUT, "%zu bytes are too few for a "
			"safetensors file", size_bytes);
		return NULL;
	}
	*header_bytes = 0;
	for (int i = 0; i < 8; i++)
		*header_bytes |= (uint64_t)bytes[i] << 8 * i;
	if (*header_bytes > size_bytes - 8 ||
	    *header_bytes > QWEN_MAX_HEADER_BYTES) {
		err_set(e, ERR_INPUT, "the header is said to have %llu bytes; "
			"the file has %zu, and at most %d are allowed",
			(unsigned long long)*header_bytes, size_bytes - 8,
			QWEN_MAX_HEADER_BYTES);
		return NULL;
	}
	header = json_loadb((const char *)bytes + 8, *header_bytes,
			    JSON_REJECT_DUPLICATES, &je);
	if (!header || !json_is_object(header)) {
		err_set(e, ERR_INPUT, "the header is not a JSON object: %s "
			"(byte %d)", header ? "another type" : je.text,
			header ? 0 : je.position);
		json_decref(header);
		return NULL;
	}
	return header;
}

void qwen_tensor_place(struct qwen_tensors *t, struct qwen_tensor *x,
		       const void *data)
{
	/* Blocks are read by bytes. */
	size_t align = dtype[x->dtype].values > 1 ? 1 : dtype[x->dtype].bytes;

	x->data = data;
	if ((uintptr_t)data % align)
		x->data = memcpy(arena_alloc(&t->mem, x->size_bytes), data,
				 x->size_bytes);
	t->total_bytes += x->size_bytes;
}

/* Adds one file's tensors; `path` lives as long as `t`. */
static bool file_add(struct qwen_tensors *t, const char *path,
		     const uint8_t *bytes, size_t size_bytes, struct err *e)
{
	uint64_t header_bytes;
	json_t *header = header_load(bytes, size_bytes, &header_bytes, e);
	size_t n;

	if (!header)
		return err_wrap(e, "%s", path);
	const uint8_t *data = bytes + 8 + header_bytes;
	t->tensor = xrealloc(t->tensor, (t->n_tensors + 1 +
					 json_object_size(header)) *
						sizeof(*t->tensor));
	struct qwen_tensor *first = t->tensor + t->n_tensors;
	memset(first, 0, (1 + json_object_size(header)) * sizeof(*first));
	bool ok = entries_read(t, first, &n, header, path,
			       size_bytes - 8 - header_bytes, e);
	json_decref(header);
	if (!ok)
		return err_wrap(e, "%s", path);
	for (size_t i = 0; i < n; i++)
		qwen_tensor_place(t, &first[i], data + first[i].offset);
	t->n_tensors += n;
	return true;
}

bool qwen_tensors_sort(struct qwen_tensors *t, struct err *e)
{
	if (t->n_tensors)
		qsort(t->tensor, t->n_tensors, sizeof(*t->tensor), by_name);
	for (size_t i = 1; i < t->n_tensors; i++)
		if (strcmp(t->tensor[i - 1].name, t->tensor[i].name) == 0)
			return err_set(e, ERR_INPUT, "tensor %s is in %s and "
				       "in %s", t->tensor[i].name,
				       t->tensor[i - 1].file,
				       t->tensor[i].file);
	return true;
}

bool qwen_tensors_parse(struct qwen_tensors *t, const char *path,
			const void *bytes, size_t size_bytes, struct err *e)
{
	*t = (struct qwen_tensors){ 0 };
	if (file_add(t, arena_strdup(&t->mem, path), bytes, size_bytes, e) &&
	    qwen_tensors_sort(t, e))
		return true;
	qwen_tensors_close(t);
	return false;
}

/* ---- a folder ---- */

static bool file_open(struct qwen_tensors *t, const char *path, struct err *e)
{
	const struct qwen_map *m = qwen_file_map(t, path, e);

	return m && file_add(t, path, m->base, m->size_bytes, e);
}

/* A shard's name must stay in the folder. */
static bool shard_name_check(const char *name, struct err *e)
{
	if (!name || !*name || strchr(name, '/') || strcmp(name, "..") == 0)
		return err_set(e, ERR_INPUT,
			       "\"weight_map\" names \"%s\", which is not the "
			       "name of a file in this folder",
			       name ? name : "(not a string)");
	return true;
}

static bool shard_known(const struct qwen_tensors *t, const char *path)
{
	for (size_t i = 0; i < t->n_maps; i++)
		if (strcmp(t->map[i].path, path) == 0)
			return true;
	return false;
}

static bool shards_map(struct qwen_tensors *t, const char *dir, json_t *map,
		       struct err *e)
{
	const char *tensor;
	json_t *file;

	json_object_foreach(map, tensor, file) {
		const char *name = json_string_value(file);
		if (!shard_name_check(name, e))
			return err_wrap(e, "tensor %s", tensor);
		char *path = arena_printf(&t->mem, "%s/%s", dir, name);
		if (!shard_known(t, path) && !file_open(t, path, e))
			return false;
	}
	return qwen_tensors_sort(t, e);
}

/* Every tensor lies where the index says. */
static bool index_check(const struct qwen_tensors *t, json_t *map,
			struct err *e)
{
	const char *name;
	json_t *file;

	json_object_foreach(map, name, file) {
		const struct qwen_tensor *x = qwen_tensor_find(t, name);
		const char *wanted = json_string_value(file);
		if (!x)
			return err_set(e, ERR_INPUT, "tensor %s is not in %s, "
				       "where the index has it", name, wanted);
		if (strcmp(strrchr(x->file, '/') + 1, wanted) != 0)
			return err_set(e, ERR_INPUT, "tensor %s is in %s, but "
				       "the index has it in %s", name, x->file,
				       wanted);
	}
	return true;
}

static bool index_open(struct qwen_tensors *t, const char *dir,
		       const char *path, struct err *e)
{
	json_error_t je;
	json_t *index = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	json_t *map = json_object_get(index, "weight_map");
	bool ok = false;

	if (!index)
		err_set(e, ERR_INPUT, "%s:%d: %s", path, je.line, je.text);
	else if (!json_is_object(map))
		err_set(e, ERR_INPUT, "%s: no object \"weight_map\"", path);
	else if (!shards_map(t, dir, map, e) || !index_check(t, map, e))
		err_wrap(e, "%s", path);
	else
		ok = true;
	json_decref(index);
	return ok;
}

/* Models of embeddings are saved from within: "layers.0.…" */
static bool names_complete(struct qwen_tensors *t, struct err *e)
{
	if (!qwen_tensor_find(t, "embed_tokens.weight"))
		return true;
	for (size_t i = 0; i < t->n_tensors; i++) {
		const char **name = &t->tensor[i].name;
		if (strncmp(*name, "lm_head.", 8) != 0)
			*name = arena_printf(&t->mem, "model.%s", *name);
	}
	return qwen_tensors_sort(t, e);
}

bool qwen_tensors_open(struct qwen_tensors *t, const char *dir, struct err *e)
{
	bool ok;

	*t = (struct qwen_tensors){ 0 };
	if (qwen_is_hfq(dir))
		return qwen_hfq_tensors(t, dir, e);
	if (qwen_is_file(dir))
		return qwen_gguf_tensors(t, dir, e);
	char *one = arena_printf(&t->mem, "%s/model.safetensors", dir);
	char *index = arena_printf(&t->mem, "%s/model.safetensors.index.json",
				   dir);
	if (access(one, F_OK) == 0)
		ok = file_open(t, one, e) && qwen_tensors_sort(t, e);
	else if (access(index, F_OK) == 0)
		ok = index_open(t, dir, index, e);
	else
		ok = err_set(e, ERR_IO, "%s: has neither model.safetensors nor "
			     "model.safetensors.index.json; wanted the folder "
			     "of a Hugging Face model (scripts/make-model "
			     "writes one)", dir);
	if (ok && names_complete(t, e))
		return true;
	qwen_tensors_close(t);
	return false;
}

bool qwen_tensors_open_file(struct qwen_tensors *t, const char *path,
			    struct err *e)
{
	*t = (struct qwen_tensors){ 0 };
	if (file_open(t, arena_strdup(&t->mem, path), e) &&
	    qwen_tensors_sort(t, e))
		return true;
	qwen_tensors_close(t);
	return false;
}

void qwen_tensors_close(struct qwen_tensors *t)
{
	for (size_t i = 0; i < t->n_maps; i++)
		qwen_file_unmap(&t->map[i]);
	free(t->map);
	free(t->tensor);
	arena_fini(&t->mem);
	*t = (struct qwen_tensors){ 0 };
}

/* ---- lookup ---- */

const struct qwen_tensor *qwen_tensor_find(const struct qwen_tensors *t,
					   const char *name)
{
	struct qwen_tensor key = { .name = name };

	return t->n_tensors ? bsearch(&key, t->tensor, t->n_tensors,
				      sizeof(*t->tensor), by_name)
			    : NULL;
}

static void shape_text(struct buf *b, uint32_t n, const uint64_t *shape)
{
	buf_addc(b, '[');
	for (uint32_t i = 0; i < n; i++)
		buf_printf(b, "%s%llu", i ? ", " : "",
			   (unsigned long long)shape[i]);
	buf_addc(b, ']');
}

const struct qwen_tensor *qwen_tensor_require(const struct qwen_tensors *t,
					      const char *name, uint32_t n_dims,
					      const uint64_t *shape,
					      struct err *e)
{
	const struct qwen_tensor *x = qwen_tensor_find(t, name);
	struct buf got = { 0 }, wanted = { 0 };

	if (!x) {
		err_set(e, ERR_INPUT, "%s: tensor %s is missing",
			t->n_maps ? t->map[0].path : "model", name);
		return NULL;
	}
	if (x->n_dims == n_dims &&
	    memcmp(x->shape, shape, n_dims * sizeof(*shape)) == 0)
		return x;
	shape_text(&got, x->n_dims, x->shape);
	shape_text(&wanted, n_dims, shape);
	err_set(e, ERR_INPUT, "%s: tensor %s has shape %s, but config.json "
		"wants %s", x->file, name, got.data, wanted.data);
	buf_fini(&got);
	buf_fini(&wanted);
	return NULL;
}
