/*
 * engine/train/gpu/products.c - matrix products, forward and backward, and the
 * output layer with its loss.
 */
#include "engine/train/gpu/gpu_int.h"

/* What the product takes of an f32 operand: itself, or its 16 bits. */
static bool narrow_operand(struct train_gpu *s, uint64_t *x, enum dsl_type type,
			   uint64_t n, struct err *e)
{
	uint64_t to = train_work_take(s, n * 2), from = *x;

	*x = to;
	return train_put_convert(s, to, type, from, DSL_F32, n, e);
}

static bool put_launch(struct train_gpu *s, const struct gpu_tiles *t,
		       const struct gemm_launch *g, struct err *e)
{
	for (int i = 0; i < g->n; i++) {
		const struct kfd_launch l = {
			.kernel = t->code[i].kernel,
			.grid = { g->step[i].groups[0] * g->step[i].group_size,
				  g->step[i].groups[1], g->step[i].groups[2] },
			.wg = { g->step[i].group_size, 1, 1 },
			.args = g->step[i].args,
			.args_bytes = g->step[i].args_bytes,
		};
		if (!train_put_packet(s, &t->code[i], &l, e))
			return false;
	}
	return true;
}

static float or_one(float x)
{
	return x != 0 ? x : 1;
}

static bool put_tiles(struct train_gpu *s, const struct train_product *p,
		      struct err *e)
{
	const struct gemm_op op = {
		.in = p->in,
		.out = p->c_narrow ? p->in : DSL_F32,
		.a_trans = p->a_t,
		.b_trans = p->b_t,
		.beta = p->add,
		.epilogue = (p->z ? GEMM_RESIDUAL : 0) |
			    (p->alpha != 0 ? GEMM_SCALE : 0),
	};
	const struct gemm_shape shape = { .m = p->m, .n = p->n, .k = p->k };
	struct gemm_operands x = { .a = p->a,
				   .b = p->b,
				   .c = p->c,
				   .residual = p->z,
				   .alpha = or_one(p->alpha),
				   .beta = or_one(p->beta) };
	const struct gpu_tiles *t =
		gpu_tiles(&s->card, &op, p->m, p->n, p->k, false, e);
	struct gemm_launch g;

	if (!t || !gemm_launch(&op, &t->config, &shape, &x, &g, e))
		return false;
	if (g.workspace_bytes) {
		x.workspace = train_work_take(s, g.workspace_bytes);
		if (!gemm_launch(&op, &t->config, &shape, &x, &g, e))
			return false;
	}
	return put_launch(s, t, &g, e);
}

bool train_put_product(struct train_gpu *s, struct train_product *p,
		       struct err *e)
{
	bool half = p->in != DSL_F32;

	if (half && !p->a_narrow &&
	    !narrow_operand(s, &p->a, p->in, (uint64_t)p->m * p->k, e))
		return false;
	if (half && !p->b_narrow &&
	    !narrow_operand(s, &p->b, p->in, (uint64_t)p->n * p->k, e))
		return false;
	return put_tiles(s, p, e);
}

/* Of a product with a weight: adapters are f32. */
static enum dsl_type type_of_weight(const struct train_gpu *s,
				    const struct train_value *w)
{
	return w->width == 2 ? s->half : DSL_F32;
}

/* ---- the three products of a weight ---- */

/* y = x w^T + z */
bool train_put_linear(struct train_gpu *s, const struct train_op *op,
		      struct err *e)
{
	const struct train_value *w = operand_of(s, op, 1);
	struct train_product p = {
		.m = (uint32_t)operand_of(s, op, 0)->rows,
		.n = (uint32_t)w->rows,
		.k = (uint32_t)w->cols,
		.b_t = true,
		.a = operand_at(s, op, 0),
		.b = operand_at(s, op, 1),
		.c = operand_at(s, op, 3),
		.a_narrow = is_narrow(s, op, 0),
		.b_narrow = w->width == 2,
		.c_narrow = is_narrow(s, op, 3),
		.in = type_of_weight(s, w),
		.z = op->v[2] == TRAIN_NONE ? 0 : operand_at(s, op, 2),
	};

	return train_put_product(s, &p, e);
}

/* dx = dy w */
bool train_put_linear_dx(struct train_gpu *s, const struct train_op *op,
			 struct err *e)
{
	const struct train_value *w = operand_of(s, op, 1);
	struct train_product p = {
		.m = (uint32_t)operand_of(s, op, 0)->rows,
		.n = (uint32_t)w->cols,
		.k = (uint32_t)w->rows,
		.a = operand_at(s, op, 0),
		.b = operand_at(s, op, 1),
		.c = operand_at(s, op, 2),
		.a_narrow = is_narrow(s, op, 0),
		.b_narrow = w->width == 2,
		.c_narrow = is_narrow(s, op, 2),
		.in = type_of_weight(s, w),
		.add = op->add,
	};

	return train_put_product(s, &p, e);
}

/* dw += dy^T x, or the first in a step = */
bool train_put_linear_dw(struct train_gpu *s, const struct train_op *op,
			 struct err *e)
{
	const struct train_value *dy = operand_of(s, op, 0);
	const struct train_value *x = operand_of(s, op, 1);
	struct train_product p = {
		.m = (uint32_t)dy->cols,
		.n = (uint32_t)x->cols,
		.k = (uint32_t)dy->rows,
		.a_t = true,
		.add = !s->fresh[op->v[2]],
		.a = operand_at(s, op, 0),
		.b = operand_at(s, op, 1),
		.c = operand_at(s, op, 2),
		.a_narrow = is_narrow(s, op, 0),
		.b_narrow = is_narrow(s, op, 1),
		.in = s->half,
	};

	s->fresh[op->v[2]] = false;
	return train_put_product(s, &p, e);
}

/* ---- the output layer ---- */

/* A chunk of the vocabulary: logits [rows][n] of what is from `at` on. */
struct chunk {
	uint32_t rows, hidden, vocab, at, n;
	uint64_t x, w, target, lse, logits; /* w: of the chunk */
	enum dsl_type in;		    /* of products */
	bool narrow, x_narrow;		    /* w and x in memory */
	size_t row_bytes;		    /* of w */
};

static struct chunk chunk_first(const struct train_gpu *s,
				const struct train_op *op, unsigned lse,
				unsigned logits)
{
	const struct train_value *x = operand_of(s, op, 0);
	const struct train_value *w = operand_of(s, op, 1);

	return (struct chunk){
		.rows = (uint32_t)x->rows,
		.hidden = (uint32_t)x->cols,
		.vocab = (uint32_t)w->rows,
		.n = (uint32_t)operand_of(s, op, logits)->cols,
		.x = operand_at(s, op, 0),
		.w = operand_at(s, op, 1),
		.target = operand_at(s, op, 2),
		.lse = operand_at(s, op, lse),
		.logits = operand_at(s, op, logits),
		.in = type_of_weight(s, w),
		.narrow = w->width == 2,
		.x_narrow = is_narrow(s, op, 0),
		.row_bytes = w->cols * w->width,
	};
}

static bool chunk_next(struct chunk *c)
{
	c->at += c->n;
	c->w += c->n * c->row_bytes;
	c->n = c->vocab - c->at < c->n ? c->vocab - c->at : c->n;
	return c->n;
}

static bool put_logits(struct train_gpu *s, const struct chunk *c,
		       struct err *e)
{
	struct train_product p = {
		.m = c->rows,
		.n = c->n,
		.k = c->hidden,
		.b_t = true,
		.a = c->x,
		.b = c->w,
		.c = c->logits,
		.a_narrow = c->x_narrow,
		.b_narrow = c->narrow,
		.in = c->in,
	};

	return train_put_product(s, &p, e);
}

static void arg_chunk(struct gpu_args *a, const struct chunk *c)
{
	arg_u32(a, c->at);
	arg_u32(a, c->n);
	arg_u32(a, c->vocab);
}

bool train_put_loss(struct train_gpu *s, const struct train_op *op,
		    struct err *e)
{
	struct chunk c = chunk_first(s, op, 4, 5);
	const struct train_launch l = { .kernel = "loss_chunk", .n = c.rows };

	do {
		struct gpu_args a = { .n = 0 };

		train_work_begin(s);
		arg_operand(&a, s, op, 3);
		arg_va(&a, c.lse);
		arg_va(&a, c.logits);
		arg_va(&a, c.target);
		arg_chunk(&a, &c);
		if (!put_logits(s, &c, e) || !train_put_kernel(s, &l, &a, e))
			return false;
	} while (chunk_next(&c));
	return true;
}

/* Logits become their gradient: *d, of the type of products. */
static bool put_logits_back(struct train_gpu *s, const struct chunk *c,
			    uint64_t *d, struct err *e)
{
	const struct train_launch l = { .kernel = "loss_chunk_back",
					.n = c->rows };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, c->logits);
	arg_va(&a, c->lse);
	arg_va(&a, c->target);
	arg_chunk(&a, c);
	arg_f32(&a, s->scale);
	*d = c->logits;
	return train_put_kernel(s, &l, &a, e) &&
	       (!c->narrow || narrow_operand(s, d, c->in,
					     (uint64_t)c->rows * c->n, e));
}

static bool put_chunk_back(struct train_gpu *s, const struct train_op *op,
			   const struct chunk *c, uint64_t d, struct err *e)
{
	struct train_product by_x = {
		.m = c->rows,
		.n = c->hidden,
		.k = c->n,
		.a = d,
		.b = c->w,
		.c = operand_at(s, op, 4),
		.a_narrow = c->narrow,
		.b_narrow = c->narrow,
		.in = c->in,
		.add = c->at > 0,
	};
	struct train_product by_w = {
		.m = c->n,
		.n = c->hidden,
		.k = c->rows,
		.a = d,
		.a_t = true,
		.b = c->x,
		.a_narrow = c->narrow,
		.b_narrow = c->x_narrow,
		.in = c->in,
	};

	if (!train_put_product(s, &by_x, e))
		return false;
	if (op->v[5] == TRAIN_NONE)
		return true;
	by_w.add = !s->fresh[op->v[5]];
	by_w.c = operand_at(s, op, 5) +
		 (uint64_t)c->at * c->hidden * sizeof(float);
	return train_put_product(s, &by_w, e);
}

bool train_put_loss_back(struct train_gpu *s, const struct train_op *op,
			 struct err *e)
{
	struct chunk c = chunk_first(s, op, 3, 6);
	bool whole = c.n == c.vocab; /* LOSS has left all of them */
	uint64_t d;

	do {
		train_work_begin(s);
		if ((!whole && !put_logits(s, &c, e)) ||
		    !put_logits_back(s, &c, &d, e) ||
		    !put_chunk_back(s, op, &c, d, e))
			return false;
	} while (chunk_next(&c));
	if (op->v[5] != TRAIN_NONE)
		s->fresh[op->v[5]] = false;
	return true;
}
