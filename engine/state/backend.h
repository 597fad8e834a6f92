/*
 * backend - who computes a forward pass: the seam between model and machine.
 *
 * One description of a model (struct qwen_model: shapes, and weights as
 * matrices in host memory) serves every backend.  What is the same for all is
 * done once above this line (engine/state/state.c): tokens are checked, each gets
 * its position, sequences have lengths, results have rows.  A backend gets a
 * pass that is known to be right and fits, and owns everything else: where
 * weights lie, the cache of keys and values, its buffers, the order of work.
 *
 * The hook is coarse, a whole pass, because backends differ in how they cut
 * it: the CPU runs a few barriers per layer, a GPU one command stream per
 * pass.  The layers are in engine/cpu/cpu_forward.c for both to be compared with.
 *
 * A new backend is one `const struct qwen_backend` and a row of the table in
 * engine/model/backends.c; `t0-qwen3 --backend NAME` then finds it, and all commands
 * and benchmarks work.  What it must hold, tests/engine/logits.c proves: logits
 * within the bounds of the type against the reference, for prefill, chunks,
 * decode and batches in any order and mixture.
 */
#ifndef T0_ENGINE_BACKEND_H
#define T0_ENGINE_BACKEND_H

#include "engine/model/model.h"

/*
 * One pass.  Tokens of one sequence come in order; `position` is where each is
 * stored, and it attends to positions 0 .. position[i] of its sequence, those
 * of the same pass included.  After qwen_state_cut() a position may be written
 * again: the cache is just overwritten.
 */
struct qwen_pass {
	const struct qwen_token *token; /* [n] */
	const uint32_t *position;	/* [n] */
	uint32_t n;			/* 1 .. shape.max_tokens */
	/* Rows of results: row r is of token wanted[r]; ascending. */
	const uint32_t *wanted; /* [n_wanted] */
	uint32_t n_wanted;	/* may be 0: the output layer is not needed */
	/*
	 * Host memory.  Row r of `logits` is written if
	 * token[wanted[r]].logits, best[r] if .best: the id of the largest
	 * logit, the lowest of equals.
	 */
	float *logits;	/* [n_wanted][vocab] */
	uint32_t *best; /* [n_wanted] */
	/*
	 * Not NULL and set: give up at the next layer or packet and return
	 * false with ERR_BUSY; the caller then forgets the pass.
	 */
	const volatile sig_atomic_t *stop;
};

/* What a pass cost a device, for t0-qwen3 bench; 0 on the CPU. */
struct qwen_counts {
	uint64_t passes, packets, copies, copied_bytes; /* since state_new */
};

struct qwen_backend {
	const char *name; /* as --backend has it */
	/*
	 * After a model's weights are mapped, or converted as `how` says: puts
	 * them where this backend wants them, with what it needs to know in
	 * m->device, which a failure leaves NULL.  NULL: nothing to do.  Host
	 * copies stay mapped, so that embeddings may be read there.
	 */
	bool (*open)(struct qwen_model *m, const struct qwen_load *how,
		     struct err *e);
	void (*close)(struct qwen_model *m); /* if m->device is not NULL */
	/* NULL: no.  Then times are not those of the machine it stands for. */
	bool (*is_emulated)(const struct qwen_model *m);
	/* Caches and buffers of one qwen_state; `shape` has been checked. */
	void *(*state_new)(const struct qwen_model *m,
			   const struct qwen_shape *shape, struct err *e);
	void (*state_free)(void *state);
	uint64_t (*cache_bytes)(const void *state);
	/* Returns when the results are there. */
	bool (*forward)(void *state, const struct qwen_pass *p, struct err *e);
	/* NULL: there are none. */
	void (*counts)(const void *state, struct qwen_counts *out);
};

/* -------------------------------------------------------- backend.c ---- */

/* Are its times those of another machine than the one that it stands for? */
bool qwen_is_emulated(const struct qwen_model *m);
/* NULL is the first of the table; ERR_UNSUPPORTED lists what there is. */
const struct qwen_backend *qwen_backend_find(const char *name, struct err *e);

/* -------------------------------------------------------- forward.c ---- */

extern const struct qwen_backend qwen_cpu;

/* ------------------------------------------------------------- gpu.c ---- */

/* Any device of kfd/kfd.h: how->device as kfd_open() has it. */
extern const struct qwen_backend qwen_gpu;

/* ---------------------------------------------------------- state.c ---- */

/*
 * Angles of the rotary embedding: cosine and sine [positions][head_dim / 2],
 * from double, as positions times small frequencies lose bits in f32.
 */
void qwen_angles(const struct qwen_config *c, uint32_t positions,
		 float *cosine, float *sine);

#endif
