/*
 * engine/train/gpu - a training step on a gfx1100: the manual.
 *
 * A backend of engine/train/train.h behind kfd/kfd.h, be the device a card or
 * the gfx1100 in software.
 *
 *	train_gpu_open(&gpu, &how, &e)
 *	train_gpu_backend(gpu, &b)
 *	x = train_new(&graph, threads, &b, &e)
 *	... train_run(x, ...), train_update(x, ...)
 *	train_free(x)
 *	train_gpu_close(gpu)
 *
 * The arena of the graph is one piece of device memory, at the offsets that the
 * graph has planned; where the host does not see it (small BAR) it has a copy,
 * of which a batch goes there and losses come back (train_fetch()).  Beside it
 * are a workspace, for what an operation needs between its packets, and two
 * numbers of the optimizer.  The list that a train_run() has is one chain of
 * packets, with one doorbell and one wait; so is a train_update(), where the
 * length of the gradients and what they are clipped with stay on the device.
 *
 * engine/train/gpu/ops.c has the packets of each kind of operation, of kernels
 * of the library; engine/train/gpu/products.c those of matrix products, whose
 * tiles the tuner chooses for each of the three layouts (y = x w^T, dx = dy w,
 * dw = dy^T x).  Where weights are of 16 bits products are by the matrix units,
 * of operands rounded to that, with sums in f32; else all is f32.  Muon's
 * products are of bf16 always (engine/train/gpu/muon.c).  The first batch of a
 * step writes the gradients of matrices, later ones add to them.
 *
 * Several devices of a machine each have all weights and a share of a step's
 * batches (train_run_batches()); before the update each adds up its span of all
 * gradients, in the order of the devices, fetches the others' spans, and makes
 * the same step (engine/train/gpu/team.c).
 *
 * Bits differ from those of the host.  Sums of gradients of norms and of the
 * embedding are atomic: where the device runs in parallel their last bits
 * depend on its order.
 */
#ifndef T0_ENGINE_TRAIN_GPU_H
#define T0_ENGINE_TRAIN_GPU_H

#include "engine/gpu/card/card.h"
#include "engine/train/train.h"

struct kfd_driver;
struct train_gpu;

struct train_gpu_how {
	const char *device;	   /* as kfd_open() has it */
	uint32_t devices; /* that share the batches of a step; 0: one */
	struct kfd_driver *driver; /* or NULL: instead of device; taken over */
	/* Is told of a cache of objects that does not work; or NULL. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

/* ---------------------------------------------------------- device.c ---- */

/* The device.  End with train_gpu_close(). */
bool train_gpu_open(struct train_gpu **out, const struct train_gpu_how *how,
		    struct err *e);
void train_gpu_close(struct train_gpu *s); /* NULL is fine */
/*
 * What train_new() takes.  One run at a time: ERR_BUSY.  A graph is refused
 * before anything is learnt: ERR_NOMEM with the bytes that it needs and those
 * there are, ERR_UNSUPPORTED for heads of more than KERNEL_MAX_HEAD elements.
 */
void train_gpu_backend(struct train_gpu *s, struct train_backend *b);
/* Packets of the last list or update. */
uint32_t train_gpu_packets(const struct train_gpu *s);

/* -------------------------------------------------------- forecast.c ---- */

struct train_forecast {
	/* Of all batches: forward, backward; and of the optimizer's step. */
	struct gpu_forecast batches, update;
	uint64_t bytes, room_bytes; /* of device memory: needed, there */
};
/*
 * What a step of so many batches would take on a card, simulated: every kernel
 * of it, from its code, its arguments and the costs.  All rows are one document.
 * ERR_NOMEM as train_gpu_backend(); ERR_UNSUPPORTED names a kernel that the
 * simulator cannot follow.  Shares are the caller's: train_forecast_fini().
 */
bool train_gpu_forecast(const struct train_graph *g, const struct train_rule *r,
			uint32_t batches, const struct cost_model *m,
			struct train_forecast *out, struct err *e);
void train_forecast_fini(struct train_forecast *f);

#endif
