/*
 * engine/files/packing.c - how others pack weights: "quantization_config" of
 * config.json.
 */
#include <string.h>

#include "engine/files/files_int.h"

/* A whole number, or `other` where the key is missing. */
static bool number_read(const json_t *j, const char *key, json_int_t lo,
			json_int_t hi, json_int_t other, uint32_t *out,
			struct err *e)
{
	const json_t *v = json_object_get(j, key);
	json_int_t n = v ? json_integer_value(v) : other;

	if ((v && !json_is_integer(v)) || n < lo || n > hi)
		return err_set(e, ERR_UNSUPPORTED, "\"%s\" is %lld; wanted "
			       "%lld to %lld", key, (long long)n, (long long)lo,
			       (long long)hi);
	*out = (uint32_t)n;
	return true;
}

/* The text of a key is `wanted`, or it is missing. */
static bool text_check(const json_t *j, const char *key, const char *wanted,
		       struct err *e)
{
	const json_t *v = json_object_get(j, key);
	const char *s = json_string_value(v);

	if (!v || json_is_null(v) || (s && strcasecmp(s, wanted) == 0))
		return true;
	return err_set(e, ERR_UNSUPPORTED, "\"%s\" is \"%s\"; this engine "
		       "knows only \"%s\"", key, s ? s : "of no text", wanted);
}

static bool fp8_read(struct qwen_packing *p, const json_t *j, struct err *e)
{
	const json_t *block = json_object_get(j, "weight_block_size");
	json_int_t rows = json_integer_value(json_array_get(block, 0));
	json_int_t cols = json_integer_value(json_array_get(block, 1));

	if (json_array_size(block) != 2 || rows < 1 || cols < 1 ||
	    rows > 1 << 20 || cols > 1 << 20)
		return err_set(e, ERR_UNSUPPORTED, "\"weight_block_size\" is "
			       "not [rows, columns]; this engine knows only "
			       "fp8 whose blocks have scales");
	p->kind = QWEN_PACKED_FP8;
	p->rows = (uint32_t)rows;
	p->group = (uint32_t)cols;
	return text_check(j, "fmt", "e4m3", e);
}

/* A group of -1, which is a whole row, becomes 0. */
static bool group_read(struct qwen_packing *p, const json_t *j, struct err *e)
{
	const json_t *v = json_object_get(j, "group_size");

	if (json_is_integer(v) && json_integer_value(v) == -1)
		return true;
	return number_read(j, "group_size", 1, 1 << 20, 128, &p->group, e);
}

static bool gptq_read(struct qwen_packing *p, const json_t *j, struct err *e)
{
	const char *form = json_string_value(
		json_object_get(j, "checkpoint_format"));

	p->kind = QWEN_PACKED_GPTQ;
	/* The first form of the files stores each zero less one. */
	p->zero_more = !form || strcmp(form, "gptq_v2") != 0;
	if (form && strcmp(form, "gptq") != 0 && strcmp(form, "gptq_v2") != 0)
		return err_set(e, ERR_UNSUPPORTED, "\"checkpoint_format\" is "
			       "\"%s\"; this engine knows \"gptq\" and "
			       "\"gptq_v2\"", form);
	return number_read(j, "bits", 4, 8, 4, &p->bits, e) &&
	       (p->bits == 4 || p->bits == 8 ||
		err_set(e, ERR_UNSUPPORTED, "\"bits\" is %u; this engine "
			"knows 4 and 8", p->bits)) && group_read(p, j, e);
}

static bool awq_read(struct qwen_packing *p, const json_t *j, struct err *e)
{
	p->kind = QWEN_PACKED_AWQ;
	return number_read(j, "bits", 4, 4, 4, &p->bits, e) &&
	       text_check(j, "version", "gemm", e) && group_read(p, j, e);
}

bool qwen_packing_read(struct qwen_packing *p, const json_t *j, struct err *e)
{
	static const struct {
		const char *method;
		bool (*read)(struct qwen_packing *p, const json_t *j,
			     struct err *e);
	} known[] = { { "fp8", fp8_read }, { "gptq", gptq_read },
		      { "awq", awq_read } };
	const char *s = json_string_value(json_object_get(j, "quant_method"));

	*p = (struct qwen_packing){ 0 };
	if (!j || json_is_null(j) || json_is_false(j))
		return true;
	for (size_t i = 0; s && i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].method, s) == 0)
			return known[i].read(p, j, e) ||
			       err_wrap(e, "\"quantization_config\"");
	return err_set(e, ERR_UNSUPPORTED, "\"quantization_config\" is of the "
		       "\"quant_method\" %s; this engine knows fp8, gptq and "
		       "awq", s ? s : "that is missing");
}
