#include <stdlib.h>
#include <string.h>

#include "engine/kernels.h"

extern const struct qwen_kernels qwen_kernels_v2, qwen_kernels_v3,
	qwen_kernels_v4;

static const char *const name[QWEN_WEIGHTS] = { "f32", "f16", "bf16", "int8",
						"int4" };

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
	return err_set(e, ERR_USAGE, "got weights \"%s\"; wanted f32, f16, "
		       "bf16, int8 or int4", s);
}

uint64_t qwen_matrix_bytes(const struct qwen_matrix *w)
{
	uint64_t n = (uint64_t)w->rows * w->cols;

	switch (w->type) {
	case QWEN_W_F32:
		return 4 * n;
	case QWEN_W_INT8:
		return n + n / QWEN_GROUP * 2;
	case QWEN_W_INT4:
		return n / 2 + n / QWEN_GROUP * 2;
	default:
		return 2 * n;
	}
}

static bool has_v3(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
	       __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt");
}

static bool has_v4(void)
{
	return has_v3() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

const struct qwen_kernels *const *qwen_kernels_all(void)
{
	static const struct qwen_kernels *const all[] = {
		&qwen_kernels_v4, &qwen_kernels_v3, &qwen_kernels_v2, NULL
	};

	return has_v4() ? all : has_v3() ? all + 1 : all + 2;
}

const struct qwen_kernels *qwen_kernels_best(void)
{
	const struct qwen_kernels *const *k = qwen_kernels_all();
	const char *wanted = getenv("T0_ENGINE_SIMD");

	for (const struct qwen_kernels *const *i = k; wanted && *i; i++)
		if (strcmp((*i)->name, wanted) == 0)
			return *i;
	return k[0];
}
