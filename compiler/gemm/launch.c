/*
 * compiler/gemm/launch.c - grid and arguments of a product.
 */
#include "compiler/gemm/gemm_int.h"

#include <string.h>

/* The arguments as the kernels declare them (gemm_args()). */
struct packed {
#define PTR(name)  uint64_t name;
#define LONG(name) int64_t name;
#define INT(name)  int32_t name;
#define REAL(name) float name;
	GEMM_ARGS(PTR, LONG, INT, REAL)
#undef PTR
#undef LONG
#undef INT
#undef REAL
};
/* Without what C adds for alignment. */
#define ARGS_END (offsetof(struct packed, beta) + sizeof(float))
_Static_assert(sizeof(struct packed) <= GEMM_ARGS_BYTES, "arguments fit");

static uint32_t count_tiles(uint32_t size, uint32_t tile)
{
	return size / tile + (size % tile != 0);
}

static void pack_args(const struct gemm_op *op, const struct gemm_shape *s,
		      const struct gemm_operands *x, struct packed *a)
{
	const uint32_t columns = op->epilogue & GEMM_SWIGLU ? 2 * s->n : s->n;
	const uint32_t lda = op->a_trans ? s->m : s->k;
	const uint32_t ldb = op->b_trans ? s->k : columns;

	*a = (struct packed){
		.a = x->a, .b = x->b, .c = x->c, .bias = x->bias,
		.residual = x->residual, .workspace = x->workspace,
		.scale = x->scale,
		.stride_a = (int64_t)s->stride_a,
		.stride_b = (int64_t)s->stride_b,
		.stride_c = (int64_t)s->stride_c,
		.m = (int32_t)s->m, .n = (int32_t)s->n, .k = (int32_t)s->k,
		.lda = (int32_t)(s->lda ? s->lda : lda),
		.ldb = (int32_t)(s->ldb ? s->ldb : ldb),
		.ldc = (int32_t)(s->ldc ? s->ldc : s->n),
		.batch = (int32_t)(s->batch ? s->batch : 1),
		.alpha = x->alpha, .beta = x->beta,
	};
}

/* Do rows of A and B, which may be of bytes, all begin at even addresses? */
static bool is_even(const struct gemm_op *op, const struct packed *a)
{
	const bool pair = op->epilogue & GEMM_SWIGLU && !op->b_trans;
	const int64_t all = (int64_t)(a->a | a->b) | a->lda | a->ldb |
			    a->stride_a | a->stride_b | (pair ? a->n : 0);

	return op->in != DSL_I8 || all % 2 == 0;
}

static bool at_16(const struct gemm_op *op, const struct gemm_operands *x)
{
	uint64_t all = x->a | x->b | x->c;

	if (op->epilogue & GEMM_BIAS)
		all |= x->bias;
	if (op->epilogue & GEMM_RESIDUAL)
		all |= x->residual;
	return all % 16 == 0;
}

/* Groups in x run through the columns of a band of rows of tiles. */
static void main_step(const struct gemm_config *c, const struct gemm_plan *p,
		      struct packed *a, struct gemm_launch *out)
{
	const uint32_t band = c->order > 1 ? c->order : 1;
	const uint32_t deep = count_tiles((uint32_t)a->k, c->k);
	const uint32_t all = (uint32_t)(a->tiles_m * a->tiles_n * a->batch);
	uint32_t *groups = out->step[0].groups;

	out->n = 1;
	out->step[0].kernel = "gemm";
	out->step[0].group_size = p->threads;
	groups[0] = (uint32_t)a->tiles_n * band;
	groups[1] = count_tiles((uint32_t)a->tiles_m, band);
	groups[2] = (uint32_t)a->batch * c->split;
	a->part = (int32_t)(count_tiles(deep, c->split) * c->k);
	if (!c->stream_k)
		return;
	a->part = (int32_t)count_tiles(all * (deep ? deep : 1), c->split);
	groups[0] = all ? c->split : 0;
	groups[1] = groups[2] = 1;
}

static void reduce_step(const struct gemm_config *c, const struct gemm_plan *p,
			const struct packed *a, struct gemm_launch *out)
{
	const uint32_t each = c->waves_m * c->waves_n * p->frags_m;
	const uint32_t all = (uint32_t)(a->tiles_m * a->tiles_n * a->batch);
	uint32_t *groups = out->step[1].groups;
	uint64_t slots = (uint64_t)all * c->split;

	out->n = 2;
	out->step[1].kernel = "gemm_reduce";
	out->step[1].group_size = GEMM_WAVE;
	groups[0] = (uint32_t)a->tiles_n;
	groups[1] = (uint32_t)a->tiles_m;
	groups[2] = (uint32_t)a->batch * each;
	if (c->stream_k) {
		slots = 2 * (uint64_t)c->split;
		groups[0] = all;
		groups[1] = 1;
		groups[2] = each;
	}
	out->workspace_bytes = slots * c->m * c->n * 4;
}

bool gemm_launch(const struct gemm_op *op, const struct gemm_config *c,
		 const struct gemm_shape *s, const struct gemm_operands *x,
		 struct gemm_launch *out, struct err *e)
{
	struct gemm_plan p;
	struct packed a;

	memset(out, 0, sizeof(*out));
	if (!gemm_plan(op, c, &p, e) || !gemm_fits(op, c, s, e))
		return false;
	pack_args(op, s, x, &a);
	if (c->even && !at_16(op, x))
		return err_set(e, ERR_USAGE, "an operand that does not lie at "
			       "a multiple of 16 bytes (config.even)");
	if (op->weights && x->b % 16)
		return err_set(e, ERR_USAGE, "B of integers at %#llx; wanted a "
			       "multiple of 16 bytes",
			       (unsigned long long)x->b);
	a.aligned = is_even(op, &a);
	a.tiles_m = (int32_t)count_tiles(s->m, c->m);
	a.tiles_n = (int32_t)count_tiles(s->n, p.out_n);
	main_step(c, &p, &a, out);
	if (gemm_has_parts(c))
		reduce_step(c, &p, &a, out);
	for (int k = 0; k < out->n; k++) {
		out->step[k].args_bytes = ARGS_END;
		memcpy(out->step[k].args, &a, ARGS_END);
	}
	return true;
}
