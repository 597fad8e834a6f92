/*
 * engine/weights/kernels.c - the kernels of this processor, and names of
 * types.
 */
#include <string.h>

#include "engine/weights/weights.h"

extern const struct qwen_kernels qwen_kernels_v2, qwen_kernels_v3,
	qwen_kernels_v4;

static const char *const name[QWEN_WEIGHTS] = {
	"f32", "f16", "bf16", "int8", "int4",
#define BLOCK(NAME, name, ...) name,
#include "engine/files/dtype.def"
};

struct qwen_layout qwen_layout(enum qwen_weights w)
{
	static const struct qwen_layout layout[] = {
#define BLOCK(NAME, name, values, bytes, gguf) { values, bytes },
#include "engine/files/dtype.def"
	};

	return layout[w - QWEN_W_INT4 - 1];
}

const char *qwen_weights_name(enum qwen_weights w)
{
	return name[w];
}

bool qwen_weights_parse(const char *s, enum qwen_weights *w, struct err *e)
{
	for (int i = 0; i < QWEN_WEIGHTS; i++)
		if (strcmp(name[i], s) == 0) {
			*w = (enum qwen_weights)i;
			return true;
		}
	return err_set(e, ERR_USAGE, "got the type \"%s\"; wanted f32, f16, "
		       "bf16, int8, int4, int6_N or int3_N for N of 32, 64, "
		       "128 or 256, or of GGUF q8_0, q5_1, q5_0, q4_1, "
		       "q4_0, iq4_nl, mxfp4, q6_k, q5_k, q4_k, iq4_xs, q3_k or "
		       "q2_k", s);
}

uint64_t qwen_matrix_bytes(const struct qwen_matrix *w)
{
	uint64_t n = (uint64_t)w->rows * w->cols;

	if (qwen_is_block(w->type)) {
		struct qwen_layout l = qwen_layout(w->type);
		return n / l.values * l.bytes;
	}
	switch (w->type) {
	case QWEN_W_F32:
		return 4 * n;
	case QWEN_W_F8:
		return n;
	case QWEN_W_INT8:
		return n + n / QWEN_GROUP * 2;
	case QWEN_W_INT4:
		return n / 2 + n / QWEN_GROUP * 2;
	default:
		return 2 * n;
	}
}

size_t qwen_quants_place(struct qwen_quants *q, uint32_t cols, void *mem)
{
	size_t n = ((size_t)cols + QWEN_PAD - 1) / QWEN_PAD * QWEN_PAD;

	q->q = mem;
	q->half = q->q + n;
	q->d = (float *)((char *)mem + 2 * n);
	q->sum = q->d + n / QWEN_GROUP;
	q->half_sum = q->sum + n / QWEN_GROUP;
	return 2 * n + 4 * n / QWEN_GROUP * sizeof(float);
}

static const struct qwen_kernels *const all[] = {
	&qwen_kernels_v4, &qwen_kernels_v3, &qwen_kernels_v2, NULL
};

const struct qwen_kernels *const *qwen_kernels_all(void)
{
	return all + (4 - cpu_level(""));
}

const struct qwen_kernels *qwen_kernels_best(void)
{
	return all[4 - cpu_level("T0_ENGINE_SIMD")];
}
