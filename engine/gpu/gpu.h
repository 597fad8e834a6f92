/*
 * gpu - the gfx1100 backend: a model on a device behind kfd/kfd.h, be it a
 * card or the gfx1100 in software.
 *
 * gpu.c holds the device: weights in its memory, kernels of the library
 * compiled for their types.  gpu_pass.c holds a state: cache, activations, a
 * queue, and the one command stream that a pass is.  A token costs five packets
 * a layer (compiler/kernels/stream.c) and two copies of a few words.
 * gpu_forecast.c puts the same packets into the pipeline simulator instead:
 * what a card would take, without one and without weights.
 */
#ifndef T0_ENGINE_GPU_H
#define T0_ENGINE_GPU_H

#include "autotune/tuner/tune.h"
#include "compiler/driver/cc.h"
#include "compiler/gemm/gemm.h"
#include "compiler/kernels/kernels.h"
#include "engine/state/state.h"
#include "kfd/kfd.h"

/* A matrix in device memory, as struct qwen_matrix has it. */
struct gpu_matrix {
	enum qwen_weights type;
	uint32_t rows, cols;
	uint64_t w, scale; /* device addresses; without a scale: w */
};

struct gpu_layer {
	struct gpu_matrix heads; /* queries, keys, values */
	struct gpu_matrix out, both /* gate, up */, down;
	uint64_t attn_norm, ffn_norm, q_norm, k_norm; /* f32 */
};

/* A kernel on the device, and the object that it came from. */
struct gpu_code {
	const struct kfd_kernel *kernel;
	const void *object;
	size_t object_bytes;
	char label[TUNE_TEXT]; /* for people: its name, or configuration */
	char chosen[240];      /* and where that comes from, or "" */
};

/* A kernel of the library, ready to launch. */
struct gpu_kernel {
	const struct kernel_entry *entry;
	struct kernel_shape shape; /* defaults filled in */
	struct cache_object object;
	struct gpu_code code;
};

/* A product of tiles, ready to launch: c[m][n] of k. */
struct gpu_tiles {
	struct gemm_op op;
	uint32_t m, n, k;
	bool any; /* of any size, rather */
	struct gemm_config config;
	struct gpu_code code[GEMM_KERNELS];
	struct gemm_code objects;
};

struct gpu {
	struct kfd_dev *dev;
	struct object_cache objects;
	struct cost_model costs;
	struct tune_opts tune;
	struct tune_selector *selector; /* NULL: there is no database */
	const struct qwen_model *m;
	struct kfd_mem **mem; /* [n_mem]: what holds the weights */
	size_t n_mem, cap_mem;
	struct gpu_matrix embed, head;
	uint64_t norm;
	struct gpu_layer *layer; /* [config.layers] */
	struct gpu_kernel **kernel; /* [n_kernels]: each once */
	size_t n_kernels, cap_kernels;
	struct gpu_tiles **tiles; /* [n_tiles]: each once */
	size_t n_tiles, cap_tiles;
};

/* ------------------------------------------------------------- gpu.c ---- */

/* Any device of kfd/kfd.h: how->device as kfd_open() has it. */
extern const struct qwen_backend qwen_gpu;

/* The library's name for it; F32, F16, BF16, I8, or U8 for INT4. */
enum dsl_type gpu_type(enum qwen_weights w);
/* Made when first asked for; they live as long as g.  NULL and *e if not. */
const struct gpu_kernel *gpu_kernel(struct gpu *g, const char *name,
				    const struct kernel_shape *shape,
				    struct err *e);
/*
 * For m rows what tune_select() says; where that knows nothing, or for `any`
 * number of rows, about m, gemm_default_for().
 */
const struct gpu_tiles *gpu_tiles(struct gpu *g, const struct gemm_op *op,
				  uint32_t m, uint32_t n, uint32_t k, bool any,
				  struct err *e);

/* -------------------------------------------------------- gpu_pass.c ---- */

void *gpu_state_new(const struct qwen_model *m, const struct qwen_shape *shape,
		    struct err *e);
void gpu_state_free(void *state);
uint64_t gpu_cache_bytes(const void *state);
bool gpu_forward(void *state, const struct qwen_pass *p, struct err *e);
void gpu_counts(const void *state, struct qwen_counts *out);

/* ---------------------------------------------------- gpu_forecast.c ---- */

/* A pass of `sequences` times `tokens` tokens, the last at position-1. */
struct gpu_question {
	uint32_t sequences, tokens, positions;
	enum qwen_weights weights, cache;
};
/* Launches of the same kernel with the same sizes. */
struct gpu_share {
	char kernel[TUNE_TEXT];
	uint32_t launches;
	double each_s; /* on the GPU */
	char limit[16]; /* the busiest pipe */
	char chosen[240]; /* why this kernel, where there was a choice */
};
struct gpu_forecast {
	struct gpu_share *share; /* [n]; the caller's, free() */
	size_t n;
	uint32_t packets;
	double kernels_s, launches_s; /* their sum is the pass */
	uint64_t weight_bytes;	      /* that a pass reads at least */
};
struct cost_model;
/*
 * Simulated: every kernel of the pass, from its code, its arguments and the
 * costs.  ERR_NOMEM if the model does not fit the card; ERR_UNSUPPORTED names
 * a kernel that the simulator cannot follow.
 */
bool gpu_forecast(const struct qwen_config *c, const struct gpu_question *q,
		  const struct cost_model *m, struct gpu_forecast *out,
		  struct err *e);

#endif
