/*
 * engine/weights/dtype.c - matrices in the type that the engine computes with.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/vec.h"
#include "engine/weights/weights.h"

static bool stored_type(const struct qwen_tensor *t, enum qwen_weights *w)
{
	switch (t->dtype) {
	case QWEN_F32:
		*w = QWEN_W_F32;
		return true;
	case QWEN_F16:
		*w = QWEN_W_F16;
		return true;
	case QWEN_BF16:
		*w = QWEN_W_BF16;
		return true;
	case QWEN_I8:
		*w = QWEN_W_INT8;
		return true;
	case QWEN_U8:
		*w = QWEN_W_INT4;
		return true;
	default:
		if (t->dtype <= QWEN_BOOL)
			return false;
		/* Both lists are those of dtype.def. */
		*w = (enum qwen_weights)(QWEN_W_INT4 + t->dtype - QWEN_BOOL);
		return true;
	}
}

/* Are there scales beside the integers? */
static bool has_scales(enum qwen_weights w)
{
	return w == QWEN_W_INT8 || w == QWEN_W_INT4;
}

/*
 * Many matrices lie in one mapping: most are smaller than a large page, and
 * with small ones a decoded token waits for translations.
 */
#define LARGE_PAGE  ((size_t)2 << 20)
#define BLOCK_BYTES ((size_t)64 << 20)

static bool block_add(struct qwen_blocks *b, size_t size_bytes, struct err *e)
{
	size_t n = size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES;

	n = (n + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_set(e, ERR_NOMEM, "no memory for %zu bytes of "
			       "weights", size_bytes);
	madvise(p, n, MADV_HUGEPAGE);
	vec_push(b, (struct qwen_block){ p, n, 0 });
	return true;
}

void qwen_blocks_fini(struct qwen_blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		munmap(b->v[i].data, b->v[i].size_bytes);
	free(b->v);
	*b = (struct qwen_blocks){ 0 };
}

static void *block_alloc(struct qwen_blocks *all, size_t size_bytes,
			 struct err *e)
{
	struct qwen_block *b = all->n ? &all->v[all->n - 1] : NULL;

	size_bytes = (size_bytes + 63) / 64 * 64;
	if (!b || b->size_bytes - b->used_bytes < size_bytes) {
		if (!block_add(all, size_bytes, e))
			return NULL;
		b = &all->v[all->n - 1];
	}
	void *p = (char *)b->data + b->used_bytes;
	b->used_bytes += size_bytes;
	return p;
}

static void row_int8(const struct qwen_kernels *k, const float *x,
		     uint32_t cols, int8_t *q, uint16_t *scale)
{
	for (uint32_t c = 0; c < cols; c += QWEN_GROUP, scale++) {
		float top = 0, d;
		for (int i = 0; i < QWEN_GROUP; i++)
			top = fmaxf(top, fabsf(x[c + i]));
		d = top / 127;
		k->narrow(QWEN_W_F16, &d, 1, scale);
		k->widen(QWEN_W_F16, scale, 1, &d);
		for (int i = 0; i < QWEN_GROUP; i++) {
			float v = d > 0 ? rintf(x[c + i] / d) : 0;
			q[c + i] = (int8_t)fminf(fmaxf(v, -127), 127);
		}
	}
}

/* Groups are the blocks of Q4_0, whose scales are searched. */
static void row_int4(const float *x, uint32_t cols, uint8_t *q, uint16_t *scale)
{
	for (uint32_t c = 0; c < cols; c += QWEN_GROUP) {
		uint8_t block[2 + QWEN_GROUP / 2];

		qwen_pack_row(QWEN_W_Q4_0, x + c, QWEN_GROUP, block);
		memcpy(scale++, block, 2);
		memcpy(q, block + 2, QWEN_GROUP / 2);
		q += QWEN_GROUP / 2;
	}
}

static const struct {
	enum qwen_weights type;
	struct qwen_codes c;
} fitted[] = {
	{ QWEN_W_INT8, { -127, 127, 32, 0 } },
	{ QWEN_W_INT4, { -8, 7, 32, 0 } },
	{ QWEN_W_Q8_0, { -127, 127, 32, 0 } },
	{ QWEN_W_Q6_K, { -32, 31, 16, 128 } },
	{ QWEN_W_Q5_0, { -16, 15, 32, 0 } },
	{ QWEN_W_Q4_0, { -8, 7, 32, 0 } },
	{ QWEN_W_Q3_K, { -4, 3, 16, 32 } },
	{ QWEN_W_I6_32, { -32, 31, 32, 0 } },
	{ QWEN_W_I6_64, { -32, 31, 64, 0 } },
	{ QWEN_W_I6_128, { -32, 31, 128, 0 } },
	{ QWEN_W_I6_256, { -32, 31, 256, 0 } },
	{ QWEN_W_I3_32, { -4, 3, 32, 0 } },
	{ QWEN_W_I3_64, { -4, 3, 64, 0 } },
	{ QWEN_W_I3_128, { -4, 3, 128, 0 } },
	{ QWEN_W_I3_256, { -4, 3, 256, 0 } },
};

const struct qwen_codes *qwen_codes_of(enum qwen_weights type)
{
	for (size_t i = 0; i < ARRAY_SIZE(fitted); i++)
		if (fitted[i].type == type)
			return &fitted[i].c;
	return NULL;
}

/* The codes of a group, as INT4 and blocks have them; where they end. */
static uint8_t *codes_put(const struct qwen_codes *c, const int8_t *q,
			  uint8_t *to)
{
	uint32_t fifths = 0;

	if (c->most == 127) {
		memcpy(to, q, QWEN_GROUP);
		return to + QWEN_GROUP;
	}
	for (int i = 0; i < QWEN_GROUP; i++)
		fifths |= (uint32_t)(q[i] - c->least) >> 4 << i;
	if (c->most == 15) {
		memcpy(to, &fifths, 4);
		to += 4;
	}
	for (int i = 0; i < 16; i++)
		to[i] = (uint8_t)(((q[i] - c->least) & 15) |
				  ((q[i + 16] - c->least) & 15) << 4);
	return to + 16;
}

static void groups_put(const struct qwen_codes *c, const int8_t *q,
		       const uint16_t *half, uint32_t cols, uint8_t *data,
		       uint16_t *scale)
{
	for (uint32_t g = 0; g < cols / QWEN_GROUP; g++) {
		if (scale) {
			scale[g] = half[g];
		} else {
			memcpy(data, &half[g], 2);
			data += 2;
		}
		data = codes_put(c, q + g * QWEN_GROUP, data);
	}
}

void qwen_pack_run(enum qwen_weights type, const int8_t *q, uint16_t half,
		   uint8_t *out)
{
	const struct qwen_codes *c = qwen_codes_of(type);
	const bool six = c->most == 31;

	memset(out, 0, qwen_layout(type).bytes);
	memcpy(out, &half, 2);
	out += 2;
	for (uint32_t g = 0; g < c->run; g += 32) {
		uint8_t *two = six ? out + 16 : out;
		for (int i = 0; i < 32; i++) {
			const int code = *q++ - c->least;
			const int pair = six ? code >> 4 : code & 3;
			two[i % 8] |= (uint8_t)(pair << i / 8 * 2);
			if (six)
				out[i % 16] |= (uint8_t)((code & 15)
							 << i / 16 * 4);
			else
				out[8 + i / 8] |=
					(uint8_t)(code >> 2 << i % 8);
		}
		out += six ? 24 : 12;
	}
}

static void row_fit(const struct qwen_fit *fit, enum qwen_weights type,
		    const float *x, uint8_t *data, uint16_t *scale)
{
	const struct qwen_codes *c = qwen_codes_of(type);
	const uint32_t cols = fit->cols, runs = cols / c->run;
	uint16_t *half = xmalloc(runs * sizeof(*half));
	int *step = c->steps ? xmalloc(runs * sizeof(*step)) : NULL;
	int8_t *q = xmalloc(cols);

	qwen_fit_row(fit, c, x, q, half, step);
	for (uint32_t i = 0; qwen_is_own(type) && i < runs; i++)
		qwen_pack_run(type, q + i * c->run, half[i],
			      data + i * qwen_layout(type).bytes);
	if (!step && !qwen_is_own(type))
		groups_put(c, q, half, cols, data, scale);
	for (uint32_t i = 0; step && i < cols / 256; i++)
		qwen_pack_steps(type, q + i * 256, half[i], step + i * 16,
				data + i * qwen_layout(type).bytes);
	free(half);
	free(step);
	free(q);
}

static size_t row_bytes(enum qwen_weights type, uint32_t cols)
{
	struct qwen_matrix one = { type, 1, cols, NULL, NULL };

	return qwen_matrix_bytes(&one) -
	       (has_scales(type) ? cols / QWEN_GROUP * 2 : 0);
}

/* `from` holds what `out` is to be made of; every thread takes some rows. */
struct row_job {
	const struct qwen_kernels *k;
	const struct qwen_matrix *from; /* or NULL: rows are read */
	void (*read)(const void *ctx, size_t row, float *x);
	const void *ctx;
	const struct qwen_fit *fit; /* or NULL */
	struct qwen_matrix *out;
	uint8_t *data;
	uint16_t *scale;
};

/* Blocks whose scales and codes are those of ours, side by side. */
static bool are_alike(enum qwen_weights ours, enum qwen_weights blocks)
{
	return (ours == QWEN_W_INT8 && blocks == QWEN_W_Q8_0) ||
	       (ours == QWEN_W_INT4 && blocks == QWEN_W_Q4_0);
}

static void join_row(const struct row_job *j, size_t r)
{
	const struct qwen_layout l = qwen_layout(j->out->type);
	const size_t n = j->out->cols / QWEN_GROUP, code_bytes = l.bytes - 2;
	const uint8_t *code = (const uint8_t *)j->from->data +
			      r * n * code_bytes;
	uint8_t *to = j->data + r * n * l.bytes;

	for (size_t g = 0; g < n; g++) {
		memcpy(to + g * l.bytes, &j->from->scale[r * n + g], 2);
		memcpy(to + g * l.bytes + 2, code + g * code_bytes,
		       code_bytes);
	}
}

static void split_row(const struct row_job *j, size_t r)
{
	const struct qwen_layout l = qwen_layout(j->from->type);
	const size_t n = j->out->cols / QWEN_GROUP, code_bytes = l.bytes - 2;
	const uint8_t *b = (const uint8_t *)j->from->data + r * n * l.bytes;
	uint8_t *code = j->data + r * n * code_bytes;

	for (size_t g = 0; g < n; g++) {
		memcpy(&j->scale[r * n + g], b + g * l.bytes, 2);
		memcpy(code + g * code_bytes, b + g * l.bytes + 2, code_bytes);
	}
}

/* x has room for a row. */
static void convert_row(const struct row_job *j, size_t r, float *x)
{
	const uint32_t cols = j->out->cols;
	uint8_t *data = j->data + r * row_bytes(j->out->type, cols);
	uint16_t *scale = j->scale ? j->scale + r * (cols / QWEN_GROUP) : NULL;

	if (j->from)
		qwen_matrix_row(j->k, j->from, (uint32_t)r, x);
	else
		j->read(j->ctx, r, x);
	if (j->fit)
		row_fit(j->fit, j->out->type, x, data, scale);
	else if (j->out->type == QWEN_W_INT8)
		row_int8(j->k, x, cols, (int8_t *)data, scale);
	else if (j->out->type == QWEN_W_INT4)
		row_int4(x, cols, data, scale);
	else if (qwen_is_block(j->out->type))
		qwen_pack_row(j->out->type, x, cols, data);
	else
		j->k->narrow(j->out->type, x, cols, data);
}

static void convert_rows(void *ctx, struct threads *t, unsigned thread)
{
	const struct row_job *j = ctx;
	float *x = xmalloc(j->out->cols * sizeof(*x));
	size_t from, to;

	threads_part(t, thread, j->out->rows, 1, &from, &to);
	for (size_t r = from; r < to; r++)
		if (j->fit)
			convert_row(j, r, x);
		else if (j->from && are_alike(j->from->type, j->out->type))
			join_row(j, r);
		else if (j->from && are_alike(j->out->type, j->from->type))
			split_row(j, r);
		else
			convert_row(j, r, x);
	free(x);
}

/* Takes memory for j->out and fills it. */
static bool run_job(const struct qwen_convert *how, struct row_job *j,
		    const char *name, struct err *e)
{
	struct qwen_matrix *out = j->out;
	size_t data = out->rows * row_bytes(out->type, out->cols);
	size_t scales = has_scales(out->type) ?
		(size_t)out->rows * (out->cols / QWEN_GROUP) * 2 : 0;
	uint32_t group = qwen_is_block(out->type) ?
				 qwen_layout(out->type).values : QWEN_GROUP;

	if (qwen_is_integer(out->type) && out->cols % group)
		return err_set(e, ERR_UNSUPPORTED, "tensor %s has %u columns; "
			       "%s needs a multiple of %u", name, out->cols,
			       qwen_weights_name(out->type), group);
	j->data = block_alloc(how->blocks, data, e);
	j->scale = j->data && scales ? block_alloc(how->blocks, scales, e) :
				       NULL;
	if (!j->data || (scales && !j->scale))
		return err_wrap(e, "tensor %s", name);
	threads_run(how->threads, convert_rows, j);
	out->data = j->data;
	out->scale = j->scale;
	return true;
}

bool qwen_matrix_convert(const struct qwen_convert *how,
			 struct qwen_matrix *out,
			 const struct qwen_matrix *from, const char *name,
			 struct err *e)
{
	struct row_job j = { .k = how->kernels, .from = from, .out = out };

	return run_job(how, &j, name, e);
}

bool qwen_matrix_from_rows(const struct qwen_convert *how,
			   struct qwen_matrix *out,
			   void (*read)(const void *ctx, size_t row, float *x),
			   const void *ctx, const char *name, struct err *e)
{
	struct row_job j = { .k = how->kernels, .out = out, .read = read,
			     .ctx = ctx };

	return run_job(how, &j, name, e);
}

bool qwen_matrix_fit(const struct qwen_convert *how, struct qwen_matrix *out,
		     const struct qwen_matrix *from, const struct qwen_fit *fit,
		     const char *name, struct err *e)
{
	struct row_job j = { .k = how->kernels, .from = from, .fit = fit,
			     .out = out };

	if (!qwen_codes_of(out->type))
		return err_set(e, ERR_UNSUPPORTED, "%s is not fitted to inputs; "
			       "wanted int8, int4, int6_N, int3_N, q8_0, q6_k, "
			       "q5_0, q4_0 or q3_k",
			       qwen_weights_name(out->type));
	return run_job(how, &j, name, e);
}

bool qwen_matrix_make(struct qwen_matrix *out, const struct qwen_tensor *t,
		      const struct qwen_tensor *scale,
		      const struct qwen_convert *how, struct err *e)
{
	struct qwen_matrix from = { .rows = (uint32_t)t->shape[0],
				    .cols = (uint32_t)t->shape[1],
				    .data = t->data,
				    .scale = scale ? scale->data : NULL };

	if (!stored_type(t, &from.type) ||
	    has_scales(from.type) != !!scale)
		return err_set(e, ERR_INPUT, "%s: tensor %s is %s; wanted F32, "
			       "F16 or BF16, blocks of GGUF, or integers with "
			       "a tensor "
			       "%s_scale", t->file, t->name,
			       qwen_dtype_name(t->dtype), t->name);
	if (from.type == QWEN_W_INT4)
		from.cols *= 2;
	*out = from;
	if (!how->convert || how->weights == from.type)
		return true;
	out->type = how->weights;
	return qwen_matrix_convert(how, out, &from, t->name, e);
}

void qwen_matrix_row(const struct qwen_kernels *k, const struct qwen_matrix *w,
		     uint32_t row, float *out)
{
	const uint8_t *p = (const uint8_t *)w->data +
			   row * row_bytes(w->type, w->cols);

	if (qwen_is_integer(w->type))
		k->unpack(w, row, 0, w->cols, out);
	else
		k->widen(w->type, p, w->cols, out);
}
