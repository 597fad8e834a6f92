/*
 * engine/train/kernels.h - what operations do with rows and blocks, for each
 * level of the instruction set, and what the files of operations share.
 *
 * Rows have any length; blocks of attention are padded to PAD columns.
 */
#ifndef T0_ENGINE_TRAIN_KERNELS_H
#define T0_ENGINE_TRAIN_KERNELS_H

#include "engine/train/train.h"

#define TRAIN_PAD   16
/* Rows whose gradients of a norm's weight are summed by one thread. */
#define TRAIN_BLOCK 32


struct train_kernels {
	/*
	 * c[i][j] = or, with `add`, += the sum over p < k of
	 * a[i * a_row + p * a_col] * b[p * ldb + j].  n is a multiple of PAD.
	 */
	void (*multiply)(size_t m, size_t n, size_t k, const float *a,
			 size_t a_row, size_t a_col, const float *b, size_t ldb,
			 float *c, size_t ldc, bool add);
	/* out[j * ldo + i] = in[i * ldi + j], i < rows, j < cols */
	void (*turn)(const float *in, size_t ldi, size_t rows, size_t cols,
		     float *out, size_t ldo);
	/* y = x * scale * w; returns scale. */
	float (*norm)(const float *x, const float *w, uint32_t n, float eps,
		      float *y);
	/* dx = or += the gradient, dw += dy * x * scale. */
	void (*norm_back)(const float *dy, const float *x, const float *w,
			  uint32_t n, float scale, bool add, float *dx,
			  float *dw);
	void (*swiglu_back)(const float *dy, const float *gate,
			    const float *up, size_t n, float *dgate,
			    float *dup);
	/* x = exp(x * scale - shift) in [from, to), 0 elsewhere; the sum. */
	float (*exp_row)(float *x, uint32_t from, uint32_t to, uint32_t n,
			 float scale, float shift);
	/* ds = p * (dp - dot) * scale */
	void (*score_back)(const float *p, const float *dp, uint32_t n,
			   float dot, float scale, float *ds);
	/* y += x, y *= a, y = bf16(x) as f32 */
	void (*add)(const float *x, size_t n, float *y);
	void (*multiply_by)(float a, size_t n, float *y);
	void (*round)(const float *x, size_t n, float *y);
	/* Sums of squares in double, of n <= 4096. */
	double (*square_sum)(const float *x, size_t n);
	void (*adamw)(const struct train_adam *a, size_t n, const float *g,
		      float *w, float *m, float *v);
	/* m = momentum * m + clip * g; w = w * keep - rate * m */
	void (*momentum)(const struct train_adam *a, size_t n, const float *g,
			 float *w, float *m);
	/* bf16 bits of x, rounded by chance: element i by that of at + i. */
	void (*round_by_chance)(const float *x, size_t n, uint32_t at,
				uint32_t salt, uint16_t *y);
	/* y += (x - y) * share */
	void (*approach)(const float *x, size_t n, float share, float *y);
};
const struct train_kernels *train_kernels_best(void);

/* ---- for the operations ---- */

/* How a value is stored. */
enum qwen_weights train_type_of(const struct train_graph *g,
				const struct train_value *v);
/* y = x rounded to bf16 or f16, as f32 */
void train_round_row(enum qwen_weights type, const float *x, size_t n,
		     float *y);

/* Operand i: its memory, and the value. */
void *train_at(const struct train_worker *w, const struct train_op *op,
	       unsigned i);
const struct train_value *train_operand(const struct train_worker *w,
					const struct train_op *op, unsigned i);
/* The thread's own floats, contents undefined, until the next call. */
float *train_space(struct train_worker *w, size_t floats);
/* Of a batch and of the loss, together; of the loss. */
float train_scale_of(const struct train_worker *w);
float train_loss_scale_of(const struct train *x);

/* Clips, updates and sets gradients to 0, on the host: returns the length. */
double train_update_host(struct train *x, const struct train_rule *r,
			 uint64_t step);
struct train_worker *train_worker_of(struct train *x, unsigned thread);

/* op_linear.c, op_norm.c, op_attention.c, op_engram.c: rows of train_cpu. */
typedef void train_run_fn(struct train_worker *w, const struct train_op *op);
train_run_fn train_embed, train_embed_back, train_norm, train_norm_back,
	train_turn, train_turn_back, train_linear, train_linear_dx,
	train_linear_dw, train_attention, train_attention_back, train_swiglu,
	train_swiglu_back, train_loss, train_loss_back, train_round,
	train_engram, train_engram_back;

#endif
