/*
 * engine/speculate/heads.c - folders of heads.
 */
#include "engine/speculate/heads_int.h"

#define MAX_CONFIG_BYTES ((size_t)1 << 20)

json_t *heads_config_open(const char *dir, struct err *e)
{
	struct buf path = { 0 }, text = { 0 };
	json_error_t je;
	json_t *j = NULL;

	buf_printf(&path, "%s/config.json", dir);
	if (file_read(path.data, MAX_CONFIG_BYTES, &text, e) &&
	    !(j = json_loadb(text.data, text.len, 0, &je)))
		err_set(e, ERR_INPUT, "%s: line %d: %s", path.data, je.line,
			je.text);
	buf_fini(&text);
	buf_fini(&path);
	return j;
}

bool heads_count_read(const json_t *j, const char *key, uint32_t least,
		      uint32_t most, uint32_t otherwise, uint32_t *out,
		      struct err *e)
{
	const json_t *v = json_object_get(j, key);
	const json_int_t n = v ? json_integer_value(v) : otherwise;

	if ((v && !json_is_integer(v)) || n < least || n > most)
		return err_set(e, ERR_INPUT,
			       "\"%s\": wanted a whole number, %u to %u", key,
			       least, most);
	*out = (uint32_t)n;
	return true;
}

static bool tensor_find(const struct qwen_tensors *t,
			const struct qwen_kernels *k, const char *name,
			int dims, const uint64_t shape[2],
			struct qwen_matrix *out, struct err *e)
{
	const struct qwen_convert how = { .kernels = k };
	const struct qwen_tensor *found =
		qwen_tensor_require(t, name, dims, shape + (dims == 1), e);

	if (!found)
		return false;
	struct qwen_tensor one = *found;
	one.n_dims = 2;
	one.shape[0] = shape[0];
	one.shape[1] = shape[1];
	return qwen_matrix_make(out, &one, NULL, &how, e);
}

bool heads_matrix_find(const struct qwen_tensors *t,
		       const struct qwen_kernels *k, const char *name,
		       uint32_t rows, uint32_t cols, struct qwen_matrix *out,
		       struct err *e)
{
	const uint64_t shape[2] = { rows, cols };

	return tensor_find(t, k, name, 2, shape, out, e);
}

float *heads_row_find(const struct qwen_tensors *t,
		      const struct qwen_kernels *k, struct arena *mem,
		      const char *name, uint32_t n, struct err *e)
{
	const uint64_t shape[2] = { 1, n };
	struct qwen_matrix row;

	if (!tensor_find(t, k, name, 1, shape, &row, e))
		return NULL;
	float *out = arena_alloc(mem, n * sizeof(*out));
	qwen_matrix_row(k, &row, 0, out);
	return out;
}
