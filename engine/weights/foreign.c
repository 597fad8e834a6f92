/*
 * engine/weights/foreign.c - weights as FP8, GPTQ and AWQ checkpoints pack
 * them, and hipfire (packed.c).
 */
#include <string.h>

#include "base/float.h"
#include "engine/weights/weights.h"

/* ---- where they are ---- */

/* The tensor NAME with another end than .weight, of this shape. */
static const struct qwen_tensor *part_find(const struct qwen_tensors *t,
					   const char *name, const char *end,
					   uint32_t n_dims, uint64_t rows,
					   uint64_t cols, struct err *e)
{
	const uint64_t shape[2] = { rows, cols };
	struct buf b = { 0 };

	buf_printf(&b, "%.*s%s", (int)(strlen(name) - strlen("weight")), name,
		   end);
	const struct qwen_tensor *x = qwen_tensor_require(t, b.data, n_dims,
							  shape, e);
	buf_fini(&b);
	return x;
}

static bool type_check(const struct qwen_tensor *t, bool floats,
		       struct err *e)
{
	bool is_float = t->dtype == QWEN_F32 || t->dtype == QWEN_F16 ||
			t->dtype == QWEN_BF16;

	return (floats ? is_float : t->dtype == QWEN_I32) ||
	       err_set(e, ERR_INPUT, "%s: tensor %s is %s; wanted %s", t->file,
		       t->name, qwen_dtype_name(t->dtype),
		       floats ? "F32, F16 or BF16" : "I32");
}

static bool fp8_find(struct qwen_foreign *f, const struct qwen_tensors *t,
		     const char *name, struct err *e)
{
	const uint32_t br = f->how.rows, bc = f->how.group;

	f->codes = part_find(t, name, "weight", 2, f->rows, f->cols, e);
	f->scale = f->codes ? part_find(t, name, "weight_scale_inv", 2,
					(f->rows + br - 1) / br,
					(f->cols + bc - 1) / bc, e) : NULL;
	return f->scale && type_check(f->scale, true, e);
}

/* Columns of a word, or of AWQ rows. */
static bool words_find(struct qwen_foreign *f, const struct qwen_tensors *t,
		       const char *name, struct err *e)
{
	const bool awq = f->how.kind == QWEN_PACKED_AWQ;
	const uint32_t per = 32 / f->how.bits, group = f->how.group;

	if (f->rows % per || f->cols % per || f->cols % group)
		return err_set(e, ERR_INPUT, "tensor %s has %u rows of %u; "
			       "words have %u and groups %u", name, f->rows,
			       f->cols, per, group);
	f->codes = part_find(t, name, "qweight", 2,
			     awq ? f->cols : f->cols / per,
			     awq ? f->rows / per : f->rows, e);
	f->zeros = f->codes ? part_find(t, name, "qzeros", 2, f->cols / group,
					f->rows / per, e) : NULL;
	f->scale = f->zeros ? part_find(t, name, "scales", 2, f->cols / group,
					f->rows, e) : NULL;
	if (!f->scale || !type_check(f->codes, false, e) ||
	    !type_check(f->zeros, false, e) || !type_check(f->scale, true, e))
		return false;
	return true;
}

/* The group of every column, where it is not its place that says it. */
static bool order_find(struct qwen_foreign *f, const struct qwen_tensors *t,
		       const char *name, struct err *e)
{
	char of[256];

	snprintf(of, sizeof(of), "%.*sg_idx",
		 (int)(strlen(name) - strlen("weight")), name);
	if (f->how.kind != QWEN_PACKED_GPTQ || !qwen_tensor_find(t, of))
		return true;
	f->order = part_find(t, name, "g_idx", 1, f->cols, 0, e);
	if (!f->order || !type_check(f->order, false, e))
		return false;
	const int32_t *g = f->order->data;
	for (uint32_t c = 0; c < f->cols; c++)
		if (g[c] < 0 || (uint32_t)g[c] >= f->cols / f->how.group)
			return err_set(e, ERR_INPUT, "%s: tensor %s has group "
				       "%d for column %u; there are %u",
				       f->order->file, f->order->name, g[c], c,
				       f->cols / f->how.group);
	return true;
}

bool qwen_foreign_find(struct qwen_foreign *f, const struct qwen_tensors *t,
		       const struct qwen_packing *how, const char *name,
		       uint32_t rows, uint32_t cols, struct err *e)
{
	*f = (struct qwen_foreign){ .how = *how, .rows = rows, .cols = cols };
	if (!f->how.group)
		f->how.group = cols;
	if (how->kind == QWEN_PACKED_FP8)
		return fp8_find(f, t, name, e);
	if (how->kind == QWEN_PACKED_HFQ) {
		f->codes = part_find(t, name, "weight", 2, rows, cols, e);
		return f->codes;
	}
	return words_find(f, t, name, e) && order_find(f, t, name, e);
}

bool qwen_is_foreign(const struct qwen_tensors *t,
		     const struct qwen_packing *how, const char *name)
{
	const struct qwen_tensor *x = qwen_tensor_find(t, name);
	char of[256];

	if (how->kind == QWEN_PACKED_FP8)
		return x && x->dtype == QWEN_F8_E4M3;
	if (how->kind == QWEN_PACKED_HFQ)
		return x && qwen_dtype_is_packed(x->dtype);
	snprintf(of, sizeof(of), "%.*sqweight",
		 (int)(strlen(name) - strlen("weight")), name);
	return how->kind != QWEN_PACKED_NOT && qwen_tensor_find(t, of);
}

/* ---- what they are ---- */

static float scale_at(const struct qwen_tensor *t, size_t i)
{
	uint16_t half;
	float f;

	if (t->dtype == QWEN_F32) {
		memcpy(&f, (const uint8_t *)t->data + 4 * i, 4);
		return f;
	}
	memcpy(&half, (const uint8_t *)t->data + 2 * i, 2);
	return t->dtype == QWEN_F16 ? (float)float_value(half, 5, 10) :
				      f32_value((uint32_t)half << 16);
}

/* Four bits of exponent, three of fraction; only all ones are no number. */
static float fp8_value(uint8_t b)
{
	const int e = b >> 3 & 15, m = b & 7;
	float v = e ? (float)(8 + m) * f32_value((uint32_t)(e + 117) << 23) :
		      (float)m * 0x1p-9f;

	if ((b & 127) == 127)
		v = f32_value(0x7fc00000);
	return b & 128 ? -v : v;
}

static void fp8_row(const struct qwen_foreign *f, size_t row, float *out)
{
	const uint32_t wide = f->how.group;
	const uint8_t *code = (const uint8_t *)f->codes->data + row * f->cols;
	const size_t first = row / f->how.rows * ((f->cols + wide - 1) / wide);
	float value[256];

	for (int i = 0; i < 256; i++)
		value[i] = fp8_value((uint8_t)i);
	for (uint32_t c = 0; c < f->cols;) {
		const float scale = scale_at(f->scale, first + c / wide);
		const uint32_t end = f->cols - c < wide ? f->cols : c + wide;
		for (; c < end; c++)
			out[c] = value[code[c]] * scale;
	}
}

static uint32_t word_at(const struct qwen_tensor *t, size_t i)
{
	return ((const uint32_t *)t->data)[i];
}

/* Column c of a row: code and zero in bits of words, scales of a group. */
static void words_row(const struct qwen_foreign *f, size_t row, float *out)
{
	/* Where AWQ has the codes of eight rows in a word. */
	static const uint8_t place[] = { 0, 4, 1, 5, 2, 6, 3, 7 };
	const bool awq = f->how.kind == QWEN_PACKED_AWQ;
	const uint32_t bits = f->how.bits, per = 32 / bits;
	const uint32_t mask = (1u << bits) - 1, n = f->rows;
	const uint32_t at = bits * (uint32_t)(awq ? place[row % per] :
						    row % per);
	const int32_t *order = f->order ? f->order->data : NULL;
	size_t last = SIZE_MAX;
	uint32_t zero = 0;
	float scale = 0;

	for (uint32_t c = 0; c < f->cols; c++) {
		size_t g = order ? (size_t)order[c] : c / f->how.group;
		if (g != last) { /* most columns have their neighbour's */
			zero = (word_at(f->zeros, g * (n / per) + row / per) >>
				at & mask) + f->how.zero_more;
			scale = scale_at(f->scale, g * n + row);
			last = g;
		}
		uint32_t code = awq ?
			word_at(f->codes, (size_t)c * (n / per) + row / per) >>
				at & mask :
			word_at(f->codes, (size_t)(c / per) * n + row) >>
				c % per * bits & mask;
		out[c] = (float)((int)code - (int)zero) * scale;
	}
}

void qwen_foreign_row(const struct qwen_foreign *f, size_t row, float *out)
{
	if (f->how.kind == QWEN_PACKED_FP8)
		fp8_row(f, row, out);
	else if (f->how.kind == QWEN_PACKED_HFQ)
		qwen_packed_row(f->codes, row, out);
	else
		words_row(f, row, out);
}
