/*
 * compiler/kernels/elementwise.c - one result for each element; KERNEL_VECTOR
 * of them per work-item.
 */
#include "compiler/kernels/kernels_int.h"

/* x: the inputs; a and b: numbers. */
struct in {
	struct val x, y, z, a, b;
};

static struct val do_add(const struct in *i) { return ADD(i->x, i->y); }
static struct val do_sub(const struct in *i) { return SUB(i->x, i->y); }
static struct val do_mul(const struct in *i) { return MUL(i->x, i->y); }
static struct val do_scale(const struct in *i) { return MUL(i->x, i->a); }
static struct val do_affine(const struct in *i)
{
	return FMA(i->x, i->a, i->b);
}
static struct val do_axpy(const struct in *i) { return FMA(i->x, i->a, i->y); }
static struct val do_fma(const struct in *i) { return FMA(i->x, i->y, i->z); }
static struct val relu_of(struct val x)
{
	return SELECT(LT(x, 0.0), 0.0, x);
}
static struct val do_relu(const struct in *i)
{
	return relu_of(i->x);
}
static struct val do_sigmoid(const struct in *i) { return SIGMOID(i->x); }
static struct val do_silu(const struct in *i) { return SILU(i->x); }
static struct val do_gelu(const struct in *i) { return GELU(i->x); }
static struct val do_exp(const struct in *i) { return EXP(i->x); }
static struct val do_tanh(const struct in *i) { return TANH(i->x); }
static struct val do_swiglu(const struct in *i)
{
	return MUL(SILU(i->x), i->y);
}
static struct val do_add_relu(const struct in *i)
{
	return relu_of(ADD(i->x, i->y));
}
static struct val do_lerp(const struct in *i)
{
	return FMA(SUB(i->y, i->x), i->a, i->x);
}
static struct val do_round_bf16(const struct in *i)
{
	return CAST(DSL_F32, CAST(DSL_BF16, i->x));
}

static const struct {
	const char *name;
	struct val (*f)(const struct in *i);
	int inputs, numbers;
} op[] = {
	{ "add", do_add, 2, 0 },	 { "sub", do_sub, 2, 0 },
	{ "mul", do_mul, 2, 0 },	 { "scale", do_scale, 1, 1 },
	{ "affine", do_affine, 1, 2 },	 { "axpy", do_axpy, 2, 1 },
	{ "fma", do_fma, 3, 0 },	 { "relu", do_relu, 1, 0 },
	{ "sigmoid", do_sigmoid, 1, 0 }, { "silu", do_silu, 1, 0 },
	{ "gelu", do_gelu, 1, 0 },	 { "exp", do_exp, 1, 0 },
	{ "tanh", do_tanh, 1, 0 },	 { "swiglu", do_swiglu, 2, 0 },
	{ "add_relu", do_add_relu, 2, 0 }, { "lerp", do_lerp, 2, 1 },
	{ "round_bf16", do_round_bf16, 1, 0 },
	{ "swiglu_narrow", do_swiglu, 2, 0 },
};

static void apply_op(size_t o, const struct val *p, const struct val *number,
		     const struct share *at)
{
	struct val v[3] = { 0 };

	for (int i = 0; i < op[o].inputs; i++)
		v[i] = load_part(p[i + 1], at);
	store_part(p[0], at,
		   op[o].f(&(struct in){ v[0], v[1], v[2], number[0],
					 number[1] }));
}

/*
 * Arguments: out (shape.to), x[, y[, z]][, a[, b]], n (u32).  out may be an
 * input of its type.
 */
void build_elementwise(struct dsl *k, const struct kernel_shape *s)
{
	struct val p[4] = { 0 }, number[2] = { 0 };
	size_t o = 0;

	while (!is_kernel(k, op[o].name))
		o++;
	for (int i = 0; i <= op[o].inputs; i++)
		p[i] = ARG_PTR(k, i ? s->type : s->to,
			       ((const char *[]){ "out", "x", "y", "z" })[i],
			       0);
	for (int i = 0; i < op[o].numbers; i++)
		number[i] = ARG(k, DSL_F32,
				((const char *[]){ "a", "b" })[i]);
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, apply_op(o, p, number, &at));
}

/* silu'(x) = s (1 + x (1 - s)) with s = sigmoid(x). */
static void swiglu_gradients(struct val dx, struct val dy, struct val xs,
			     struct val ys, struct val gs,
			     const struct share *at)
{
	struct val x = load_part(xs, at), y = load_part(ys, at),
		   g = load_part(gs, at);
	struct val sig = SIGMOID(x);

	store_part(dx, at,
		   MUL(MUL(g, y), MUL(sig, FMA(x, SUB(1.0, sig), 1.0))));
	store_part(dy, at, MUL(g, MUL(x, sig)));
}

/*
 * Arguments: dx, dy (shape.to), x, y, g, n: the gradients of silu(x) y by x and
 * by y, for
 * the gradient g of the result.
 */
void build_swiglu_back(struct dsl *k, const struct kernel_shape *s)
{
	struct val dx = ARG_PTR(k, s->to, "dx", 0);
	struct val dy = ARG_PTR(k, s->to, "dy", 0);
	struct val x = ARG_PTR(k, s->type, "x", 0);
	struct val y = ARG_PTR(k, s->type, "y", 0);
	struct val g = ARG_PTR(k, s->type, "g", 0);
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, swiglu_gradients(dx, dy, x, y, g, &at));
}

/* The grid is uniform in `parts`: what is not there is not read. */
static void add_parts(struct dsl *k, struct val out, const struct val *x,
		      struct val parts, const struct share *at)
{
	struct var sum = VAR_OF(load_part(x[0], at));

	for (int i = 1; i < KERNEL_MAX_PARTS; i++)
		IF(k, GT(parts, i))
		{
			SET(sum, ADD(GET(sum), load_part(x[i], at)));
		}
	store_part(out, at, GET(sum));
}

/*
 * Arguments: out, clear, x0 .. x8 (f32), parts, clears (i32), n (u32): out is
 * x0 + x1 and so on, of the first `parts`; it may be one of them.  Where clears
 * is not 0, `clear`, which is none of them, becomes 0.
 */
void build_sum_parts(struct dsl *k, const struct kernel_shape *s)
{
	static const char *const name[KERNEL_MAX_PARTS] = {
		"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8",
	};
	struct val out = ARG_PTR(k, DSL_F32, "out", 0);
	struct val clear = ARG_PTR(k, DSL_F32, "clear", 0);
	struct val x[KERNEL_MAX_PARTS];

	(void)s;
	for (int i = 0; i < KERNEL_MAX_PARTS; i++)
		x[i] = ARG_PTR(k, DSL_F32, name[i], 0);
	struct val parts = ARG(k, DSL_I32, "parts");
	struct val clears = ARG(k, DSL_I32, "clears");
	struct val n = ARG(k, DSL_U32, "n");
	struct val zero = CONST(k, DSL_F32, 0);
	struct val zeros = JOIN(zero, zero, zero, zero);
	PARTS(k, n, at, add_parts(k, out, x, parts, &at));
	IF(k, NE(clears, 0))
	{
		PARTS(k, n, at, store_part(clear, &at, zeros));
	}
}

/* Arguments: out (shape.to), x (shape.type), n. */
void build_convert(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->to, "out", 0);
	struct val x = ARG_PTR(k, s->type, "x", 0);
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, store_part(out, &at, load_part(x, &at)));
}

/* What a step of AdamW works with: arrays, and numbers of the step. */
struct adamw {
	struct val p, g, m, v;
	struct val rate, beta1, beta2, eps, decay, c1, c2;
};

static void adamw_step(const struct adamw *a, const struct share *at)
{
	struct val g = load_part(a->g, at), p = load_part(a->p, at),
		   g2 = MUL(g, g);
	struct val m = FMA(a->beta1, SUB(load_part(a->m, at), g), g);
	struct val v = FMA(a->beta2, SUB(load_part(a->v, at), g2), g2);
	struct val step = DIV(DIV(m, a->c1),
			      ADD(SQRT(DIV(v, a->c2)), a->eps));

	store_part(a->m, at, m);
	store_part(a->v, at, v);
	store_part(a->p, at, SUB(p, MUL(a->rate, FMA(a->decay, p, step))));
}

/*
 * Arguments: p (shape.type), g (shape.type), m, v (f32), rate, beta1, beta2,
 * eps, decay, c1, c2 (f32: 1 - beta1^t and 1 - beta2^t), n.
 * Decoupled weight decay: p -= rate (m / c1 / (sqrt(v / c2) + eps) + decay p).
 */
void build_adamw(struct dsl *k, const struct kernel_shape *s)
{
	struct adamw a = {
		.p = ARG_PTR(k, s->type, "p", 0),
		.g = ARG_PTR(k, s->type, "g", 0),
		.m = ARG_PTR(k, DSL_F32, "m", 0),
		.v = ARG_PTR(k, DSL_F32, "v", 0),
		.rate = ARG(k, DSL_F32, "rate"),
		.beta1 = ARG(k, DSL_F32, "beta1"),
		.beta2 = ARG(k, DSL_F32, "beta2"),
		.eps = ARG(k, DSL_F32, "eps"),
		.decay = ARG(k, DSL_F32, "decay"),
		.c1 = ARG(k, DSL_F32, "c1"),
		.c2 = ARG(k, DSL_F32, "c2"),
	};
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, adamw_step(&a, &at));
}
