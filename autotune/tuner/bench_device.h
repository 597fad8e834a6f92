/*
 * autotune/tuner/bench_device.h - a device with one product's operands on it: what checking
 * and measuring share.
 */
#ifndef T0_AUTOTUNE_RIG_H
#define T0_AUTOTUNE_RIG_H

#include "autotune/tuner/tune.h"
#include "kfd/kfd.h"

/* -------------------------------------------------------- operands.c ---- */

/*
 * What operands hold.  Power, and with it the clock, depends on it: zeros run
 * faster than data.  Normal (mean 0, deviation 1) is what to measure with.
 */
enum tune_fill { TUNE_NORMAL, TUNE_UNIFORM, TUNE_ZERO, TUNE_CONSTANT };
bool tune_fill_parse(const char *s, enum tune_fill *f, struct err *e);

/* Elements of memory as numbers, and back (to nearest even). */
double tune_get(enum dsl_type t, const void *base, size_t i);
/* `n` elements from `first` on; the same seed, the same values. */
void tune_fill(enum tune_fill f, enum dsl_type t, void *base, size_t n,
	       uint64_t seed);
/*
 * B of integers (struct gemm_op) and its scales, of n elements whose values
 * are drawn alike.
 */
void tune_fill_weights(enum tune_fill f, enum dsl_type weights, void *base,
		       void *scale, size_t n, uint64_t seed);
/* Element i of such a B, rounded to `in`. */
double tune_get_weight(enum dsl_type weights, enum dsl_type in,
		       const void *base, const void *scale, size_t i);

/* ------------------------------------------------------------- rig.c ---- */

/*
 * A device whose clock is a simulator's: it opens the device, and is told what
 * will run before each launch.
 */
struct tune_clock {
	bool (*open)(void *ctx, struct kfd_dev **dev, struct err *e);
	void (*about)(void *ctx, const struct kfd_kernel *kernel,
		      size_t code_bytes);
	/* Could the last launch be timed?  Else *e says why not. */
	bool (*check)(void *ctx, struct err *e);
	void *ctx;
};

/* Zero-initialise; tune_rig_close() frees all. */
struct tune_rig {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	const struct tune_clock *clock; /* NULL: the device's own, or none */
	/* Of the product set last. */
	struct tune_problem p;
	struct gemm_shape shape;
	struct kfd_mem *a, *b, *c, *bias, *residual, *scale, *work;
};
/* Kernels on the device; they belong to it. */
struct tune_loaded {
	struct kfd_code *code[GEMM_KERNELS];
	const struct kfd_kernel *kernel[GEMM_KERNELS];
	size_t code_bytes[GEMM_KERNELS];
	int n;
};

bool tune_rig_open(struct tune_rig *r, const char *device, struct err *e);
/* On the device of a clock, which outlives the rig. */
bool tune_rig_open_timed(struct tune_rig *r, const struct tune_clock *clock,
			 struct err *e);
void tune_rig_close(struct tune_rig *r);
bool tune_rig_load(struct tune_rig *r, const struct gemm_code *code,
		   struct tune_loaded *out, struct err *e);
void tune_rig_unload(struct tune_loaded *l);
/* Memory for a problem's operands, filled; kept if the problem is the same. */
bool tune_rig_set(struct tune_rig *r, const struct tune_problem *p,
		  enum tune_fill fill, uint64_t seed, struct err *e);
/* C as it was before a run: stale values, or those that beta reads. */
void tune_rig_stale(struct tune_rig *r, uint64_t seed);

/* A part of the product: a block of C, and the first elements of K. */
struct tune_view {
	uint32_t row, column, m, n, k;
};
struct tune_view tune_view_all(const struct tune_problem *p);
/* The launches of this view with this configuration. */
bool tune_rig_launch(struct tune_rig *r, const struct gemm_config *c,
		     const struct tune_view *v, struct gemm_launch *out,
		     struct err *e);
/*
 * Run them and wait.  device_s (may be NULL): from the start of the first to
 * the end of the last by the device's clock, 0 where it gives none.
 */
bool tune_rig_run(struct tune_rig *r, const struct tune_loaded *code,
		  const struct gemm_launch *l, double *device_s,
		  struct err *e);

/* alpha and beta of all runs. */
#define TUNE_ALPHA 0.75
#define TUNE_BETA -0.5

#endif
