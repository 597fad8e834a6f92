/*
 * gemm-sim - the time of matrix products on the whole GPU, as the pipeline
 * simulator forecasts it from the code objects and their arguments.
 */
#ifndef T0_TESTS_GEMM_SIM_H
#define T0_TESTS_GEMM_SIM_H

#include <string.h>

#include "compiler/gemm/gemm.h"
#include "compiler/sim/sim.h"
#include "isa/object/object.h"

/* Where operands would lie: each at 2 MiB, none overlaps. */
#define GEMM_SIM_A UINT64_C(0x7f0000000000)
#define GEMM_SIM_B UINT64_C(0x7f1000000000)
#define GEMM_SIM_C UINT64_C(0x7f2000000000)
#define GEMM_SIM_WORK UINT64_C(0x7f3000000000)
#define GEMM_SIM_SCALE UINT64_C(0x7f4000000000)

/* Seconds of one dispatch, launch not included; *f is the caller's. */
static inline bool gemm_sim_run(const struct cost_model *m,
				const struct buf *object, const char *kernel,
				const uint32_t groups[3], uint32_t group_size,
				const void *args, size_t args_bytes,
				uint64_t footprint, struct sim_forecast *f,
				struct err *e)
{
	uint8_t kernarg[512] = { 0 };
	struct sim_launch l = { .kernarg = kernarg,
				.groups = { groups[0], groups[1], groups[2] },
				.group_size = { group_size, 1, 1 } };
	struct co co;
	bool good;

	if (!co_parse(&co, object->data, object->len, e))
		return false;
	l.kernel = co_kernel_require(&co, kernel, e);
	memcpy(kernarg, args, args_bytes);
	/* Compilers load whole vectors, past the last argument. */
	l.kernarg_bytes = sizeof(kernarg);
	good = l.kernel && sim_object_forecast(m, &l, footprint, f, e);
	co_fini(&co);
	return good;
}

/* A product by our kernels: all of them, launches after the first included. */
static inline bool gemm_sim_ours(const struct cost_model *m,
				 const struct gemm_op *op,
				 const struct gemm_config *c,
				 const struct gemm_code *code,
				 const struct gemm_shape *s, double *seconds,
				 struct sim_forecast *main, struct err *e)
{
	const struct gemm_operands x = { .a = GEMM_SIM_A, .b = GEMM_SIM_B,
					 .c = GEMM_SIM_C,
					 .workspace = GEMM_SIM_WORK,
					 .scale = GEMM_SIM_SCALE,
					 .alpha = 1, .beta = 1 };
	const uint64_t in = op->in == DSL_I8 ? 1 : op->in == DSL_F32 ? 4 : 2;
	const uint64_t out = op->out == DSL_F32 || op->out == DSL_I32 ? 4 : 2;
	const uint64_t touched = in * ((uint64_t)s->m * s->k +
				       (uint64_t)s->n * s->k) +
				 out * s->m * s->n;
	struct gemm_launch l;

	*seconds = 0;
	if (!gemm_launch(op, c, s, &x, &l, e))
		return false;
	for (int k = 0; k < l.n; k++) {
		struct sim_forecast f = { 0 };

		if (!gemm_sim_run(m, &code->object[k].bytes, l.step[k].kernel,
				  l.step[k].groups, l.step[k].group_size,
				  l.step[k].args, l.step[k].args_bytes,
				  touched + l.workspace_bytes, &f, e)) {
			if (k)
				sim_forecast_fini(main);
			return false;
		}
		*seconds += f.time_s + (k ? f.launch_s : 0);
		if (k)
			sim_forecast_fini(&f);
		else
			*main = f;
	}
	return true;
}

#endif
