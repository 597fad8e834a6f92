/*
 * engine/train/gpu/muon.c - Newton-Schulz iterations of bf16, by the matrix
 * units (engine/train/muon.c has the same for the host).
 *
 * All is of the shape of the matrix: what is square is so on its smaller side.
 */
#include "engine/train/gpu/gpu_int.h"

#define ROUNDS 5
static const float poly[3] = { 3.4445f, -4.7750f, 2.0315f };

struct newton {
	uint32_t rows, cols, side;
	uint64_t now, next, square, by; /* of bf16: g->muon */
};

/* m and g follow: g is where the momentum will be. */
static bool put_nesterov(struct train_gpu *s, const struct train_param *p,
			 const struct train_adam *how, uint64_t norm,
			 struct err *e)
{
	uint64_t n = (uint64_t)p->rows * p->cols;
	const struct train_launch l = { .kernel = "learn_nesterov", .n = n };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, value_at(s, p->gradient));
	arg_va(&a, value_at(s, p->state[0]));
	arg_va(&a, norm);
	arg_f32(&a, how->momentum);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e);
}

/* x->now = g over its length */
static bool put_unit(struct train_gpu *s, const struct train_param *p,
		     const struct newton *x, struct err *e)
{
	uint64_t n = (uint64_t)p->rows * p->cols;
	const struct train_launch l = { "over_length", { .to = DSL_BF16 }, n };
	const struct train_span g = { value_at(s, p->gradient), n };
	uint64_t length = train_work_take(s, 2 * sizeof(float));
	struct gpu_args a = { .n = 0 };

	arg_va(&a, x->now);
	arg_va(&a, g.x);
	arg_va(&a, length);
	arg_u32(&a, (uint32_t)n);
	return train_put_length(s, &g, 1, length, 0, 1, e) &&
	       train_put_kernel(s, &l, &a, e);
}

static bool put_copy(struct train_gpu *s, uint64_t out, uint64_t x, uint64_t n,
		     struct err *e)
{
	return train_put_convert(s, out, DSL_BF16, x, DSL_BF16, n, e);
}

/* c = alpha a b + beta c of bf16; beta 0: = alpha a b */
static bool put_narrow(struct train_gpu *s, struct train_product p,
		       struct err *e)
{
	p.in = DSL_BF16;
	p.a_narrow = p.b_narrow = p.c_narrow = true;
	p.add = p.beta != 0;
	return train_put_product(s, &p, e);
}

/* next = a x + (b S + c S S) x, S = x x^T; or from the other side. */
static bool put_round(struct train_gpu *s, const struct newton *x,
		      struct err *e)
{
	bool tall = x->rows > x->cols;
	uint64_t n = (uint64_t)x->side * x->side;
	const struct train_product square = {
		.m = x->side, .n = x->side, .k = tall ? x->rows : x->cols,
		.a = x->now, .b = x->now, .c = x->square,
		.a_t = tall, .b_t = !tall,
	};
	const struct train_product by = {
		.m = x->side, .n = x->side, .k = x->side, .a = x->square,
		.b = x->square, .c = x->by, .b_t = true,
		.alpha = poly[2], .beta = poly[1],
	};
	const struct train_product next = {
		.m = x->rows, .n = x->cols, .k = x->side,
		.a = tall ? x->now : x->by, .b = tall ? x->by : x->now,
		.c = x->next, .beta = poly[0],
	};

	return put_narrow(s, square, e) &&
	       put_copy(s, x->by, x->square, n, e) && put_narrow(s, by, e) &&
	       put_copy(s, x->next, x->now, (uint64_t)x->rows * x->cols, e) &&
	       put_narrow(s, next, e);
}

bool train_put_direction(struct train_gpu *s, const struct train_param *p,
			 const struct train_adam *how, uint64_t norm,
			 uint64_t *out, struct err *e)
{
	const uint32_t *at = s->g->muon;
	struct newton x = {
		.rows = p->rows, .cols = p->cols,
		.side = p->rows < p->cols ? p->rows : p->cols,
		.now = value_at(s, at[0]), .next = value_at(s, at[1]),
		.square = value_at(s, at[2]), .by = value_at(s, at[3]),
	};

	if (!put_nesterov(s, p, how, norm, e) || !put_unit(s, p, &x, e))
		return false;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t was = x.now;

		if (!put_round(s, &x, e))
			return false;
		x.now = x.next;
		x.next = was;
	}
	*out = x.now;
	return true;
}
