/*
 * engine/train/gpu/gpu_int.h - what the files of the device share: its state,
 * and packets.
 */
#ifndef T0_ENGINE_TRAIN_GPU_INT_H
#define T0_ENGINE_TRAIN_GPU_INT_H

#include "engine/gpu/card/card.h"
#include "engine/train/gpu/gpu.h"

struct train_gpu {
	struct gpu_card card;
	/* All devices, this one's number among them; the first has the run. */
	struct train_gpu *device[GPU_CARDS_MAX];
	uint32_t devices, number;
	/*
	 * Gradients as others see them, one behind the other, where there are
	 * no links to the device: in host memory.  NULL: they see the arena.
	 */
	struct kfd_mem *exchange;
	bool loud; /* the next packet can be waited for by others */
	bool marked; /* one of the list could be: `mark`, the last of them */
	uint64_t mark;
	const struct train_graph *g; /* NULL: there is no run */
	struct kfd_mem *arena, *work;
	struct kfd_mem *norm; /* f32: length of gradients, and their clip */
	/*
	 * What the host has of an arena that it does not see, or of those of
	 * several devices; or NULL.
	 */
	char *mirror; /* [g->bytes], the first device's */
	/*
	 * Packets go to the record, or on the queue; without either they are
	 * counted, and what they need of the workspace.
	 */
	struct gpu_record *record;
	struct kfd_queue *queue;
	size_t work_used, work_most; /* bytes, of this operation and of any */
	/* What products are of: BF16, F16, or F32, then nothing is narrow. */
	enum dsl_type half;
	bool *narrow; /* [g->n_values]: in memory it is that (storage.c) */
	/*
	 * [g->n_values]: a gradient that a product makes whole before anything
	 * is added to it; and one of these to which that has not happened in
	 * this step: it is written, whatever is there (storage.c).
	 */
	bool *whole, *fresh;
	float scale;  /* of the loss, all in all */
	float loss_scale; /* as train_loss_scale() has it */
	uint32_t packets;
	uint64_t ticket, deadline_ns; /* of the last packet, of the list */
};

/* ---------------------------------------------------------- device.c ---- */

/* `bytes` of the workspace, until train_work_begin(): the device's address. */
uint64_t train_work_take(struct train_gpu *s, size_t bytes);
void train_work_begin(struct train_gpu *s);
bool train_put_packet(struct train_gpu *s, const struct gpu_code *c,
		      const struct kfd_launch *l, struct err *e);
/* All packets of operations [from, to). */
bool train_put_list(struct train_gpu *s, uint32_t from, uint32_t to,
		    struct err *e);
/* The graph is the run's from here on; its memory, but for a queue. */
bool train_run_begin(struct train_gpu *s, const struct train_graph *g,
		     uint32_t *packets, struct err *e);
void train_run_end(struct train_gpu *s);

/* A kernel of the library. */
struct train_launch {
	const char *kernel;
	struct kernel_shape shape;
	uint64_t n; /* elements or rows: what kernel_groups() takes */
};
bool train_put_kernel(struct train_gpu *s, const struct train_launch *l,
		      const struct gpu_args *a, struct err *e);

/* The device's address of a value, and what it is. */
static inline uint64_t value_at(const struct train_gpu *s, uint32_t value)
{
	return (s->arena ? s->arena->va : 0) + s->g->value[value].offset;
}

static inline uint64_t operand_at(const struct train_gpu *s,
				  const struct train_op *op, unsigned i)
{
	return value_at(s, op->v[i]);
}

static inline const struct train_value *
operand_of(const struct train_gpu *s, const struct train_op *op, unsigned i)
{
	return &s->g->value[op->v[i]];
}

static inline uint64_t count_elements(const struct train_value *x)
{
	return (uint64_t)x->rows * x->cols;
}

static inline void arg_operand(struct gpu_args *a, const struct train_gpu *s,
			       const struct train_op *op, unsigned i)
{
	arg_va(a, operand_at(s, op, i));
}

/* ------------------------------------------------------------ team.c ---- */

/* What others read is there for them, and all queues are waited for. */
bool train_team_join(struct train_gpu *first, struct err *e);
/* Packets that train_put_sums() has at most for each device. */
uint32_t train_team_packets(const struct train_gpu *s);
/* Every device's gradients become the sum of all; `s` is the first. */
bool train_put_sums(struct train_gpu *s, struct err *e);

/* ------------------------------------------------------------- ops.c ---- */

bool train_put_operation(struct train_gpu *s, const struct train_op *op,
			 struct err *e);
/* Attention is by the matrix units: heads fill tiles. */
bool train_has_flash(const struct train_gpu *s);
/* out[n] = x[n] of another type. */
bool train_put_convert(struct train_gpu *s, uint64_t out, enum dsl_type to,
		       uint64_t x, enum dsl_type from, uint64_t n,
		       struct err *e);

/* --------------------------------------------------------- storage.c ---- */

/* Fills s->narrow. */
void train_find_storage(struct train_gpu *s);
/* Fills s->whole, and s->fresh for the first step. */
void train_find_whole(struct train_gpu *s);
/* A step begins. */
void train_step_begin(struct train_gpu *s);

static inline bool is_narrow(const struct train_gpu *s,
			     const struct train_op *op, unsigned i)
{
	return op->v[i] != TRAIN_NONE && s->narrow[op->v[i]];
}

static inline enum dsl_type type_of(const struct train_gpu *s,
				    const struct train_op *op, unsigned i)
{
	return is_narrow(s, op, i) ? s->half : DSL_F32;
}

/* -------------------------------------------------------- products.c ---- */

/*
 * c [m][n] = alpha a b (0: 1), + beta c with `add` (0: 1), + z with one.  A
 * matrix lies as it is multiplied or, with its `t`, turned.  Operands are f32
 * or, with their `narrow`, of type `in`; so is the product, of F32 or of 16
 * bits.
 */
struct train_product {
	uint32_t m, n, k;
	uint64_t a, b, c, z;
	float alpha, beta;
	enum dsl_type in;
	bool a_t, b_t, a_narrow, b_narrow, c_narrow, add;
};
bool train_put_product(struct train_gpu *s, struct train_product *p,
		       struct err *e);

bool train_put_linear(struct train_gpu *s, const struct train_op *op,
		      struct err *e);
bool train_put_linear_dx(struct train_gpu *s, const struct train_op *op,
			 struct err *e);
bool train_put_linear_dw(struct train_gpu *s, const struct train_op *op,
			 struct err *e);
bool train_put_loss(struct train_gpu *s, const struct train_op *op,
		    struct err *e);
bool train_put_loss_back(struct train_gpu *s, const struct train_op *op,
			 struct err *e);

/* ---------------------------------------------------------- update.c ---- */

/* All packets of an update, but for the wait. */
bool train_put_update(struct train_gpu *s, const struct train_rule *r,
		      uint64_t step, struct err *e);
/* Its length, and 1 over the scale of the loss: at `out` [2] (clip_norm). */
struct train_span {
	uint64_t x, n;
};
bool train_put_length(struct train_gpu *s, const struct train_span *x,
		      uint32_t n, uint64_t out, double clip, double scale,
		      struct err *e);

/* ------------------------------------------------------------ muon.c ---- */

/*
 * The gradient's direction of Muon, of bf16: *out.  norm: of clip_norm, for all
 * gradients.
 */
bool train_put_direction(struct train_gpu *s, const struct train_param *p,
			 const struct train_adam *how, uint64_t norm,
			 uint64_t *out, struct err *e);

#endif
