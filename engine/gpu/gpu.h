/*
 * engine/gpu - the gfx1100 backend: the manual.
 *
 * A model on a device behind kfd/kfd.h, be it a card or the gfx1100 in
 * software.
 *
 * gpu.c holds the device: weights in its memory, kernels of the library
 * compiled for their types.  gpu_pass.c holds a state: cache, activations, a
 * queue, and the one command stream that a pass is.  A token costs five packets
 * a layer (compiler/kernels/stream.c) and two copies of a few words.
 * Experts of a mixture are chosen on the device (gpu_experts.c): four packets
 * in place of two, whatever is chosen.  gpu_team.c cuts a model for several
 * devices, and adds up what each of them has.  gpu_pages.c has the tables of a
 * cache in blocks, which all of attention reads.  gpu_forecast.c puts the same
 * packets into the pipeline simulator instead: what a card would take, without
 * one and without weights.
 */
#ifndef T0_ENGINE_GPU_H
#define T0_ENGINE_GPU_H

#include "engine/gpu/card/card.h"
#include "engine/state/state.h"

/* ------------------------------------------------------------- gpu.c ---- */

/* Any device of kfd/kfd.h: how->device as kfd_open() has it. */
extern const struct qwen_backend qwen_gpu;

/* ---------------------------------------------------- gpu_forecast.c ---- */

/* A pass of `sequences` times `tokens` tokens, the last at position-1. */
struct gpu_question {
	uint32_t sequences, tokens, positions;
	uint32_t devices; /* that share the model; 0: one */
	enum qwen_weights weights;
	struct qwen_kinds cache;
	bool paged; /* the cache is blocks in no order */
};
/*
 * Simulated: every kernel of the pass, from its code, its arguments and the
 * costs; of several devices the first one's, and the links.  ERR_NOMEM if the
 * model does not fit the card; ERR_UNSUPPORTED names a kernel that the simulator
 * cannot follow.
 */
bool gpu_forecast(const struct qwen_config *c, const struct gpu_question *q,
		  const struct cost_model *m, struct gpu_forecast *out,
		  struct err *e);

#endif
