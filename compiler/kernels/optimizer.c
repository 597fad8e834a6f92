/*
 * compiler/kernels/optimizer.c - weights follow gradients that are clipped by
 * their common length, all on the device.
 */
#include "compiler/kernels/kernels_int.h"

/*
 * Arguments: out [groups] (f32), x (f32), n (u32): group i has the sum of the
 * squares of elements [i, i + 1) * KERNEL_SPAN.
 */
void build_square_sum(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, DSL_F32, "out", DSL_NOALIAS);
	struct val in = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val n = ARG(k, DSL_U32, "n");
	struct val base = MUL(CAST(DSL_U32, GROUP_ID(k, 0)), KERNEL_SPAN);
	struct val first =
		ADD(base, MUL(CAST(DSL_U32, LOCAL_ID(k, 0)), KERNEL_VECTOR));
	struct var sum = VAR(k, DSL_F32, 0);

	for (uint32_t i = 0; i < KERNEL_SPAN; i += s->group * KERNEL_VECTOR) {
		struct val x = LOAD_IN(in, ADD(first, i), KERNEL_VECTOR, n);

		SET(sum, add_dot(x, x, GET(sum)));
	}
	struct val all = GROUP_SUM(GET(sum));
	IF(k, EQ(LOCAL_ID(k, 0), 0))
	{
		STORE(out, GROUP_ID(k, 0), all);
	}
}

/*
 * Arguments: out [2] (f32), x [n] (f32), n (i32), clip, scale (f32): the root of
 * the sum of x, times `scale`, and what a gradient is multiplied with: scale, or
 * clip / length as often where that is longer and clip is not 0; 0 if it is no
 * number.  One group.
 */
void build_clip_norm(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, DSL_F32, "out", DSL_NOALIAS);
	struct val in = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), clip = ARG(k, DSL_F32, "clip");
	struct val scale = ARG(k, DSL_F32, "scale");
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group)
	{
		SET(sum, ADD(GET(sum), LOAD(in, i)));
	}
	struct val norm = MUL(SQRT(GROUP_SUM(GET(sum))), scale);
	struct val longer = AND(GT(clip, 0.0), GT(norm, clip));
	struct val by = MUL(SELECT(longer, DIV(clip, norm), 1.0), scale);

	IF(k, EQ(LOCAL_ID(k, 0), 0))
	{
		STORE(out, 0, norm);
		STORE(out, 1, SELECT(EQ(SUB(norm, norm), 0.0), by, 0.0));
	}
}

/* What a step works with: arrays, and numbers of the step. */
struct learn {
	struct val p, g, m, v, norm;
	struct val rate, keep, beta1, beta2, eps, c1, c2, salt;
	bool adamw, direction;
	enum dsl_type type; /* of p */
};

/* A hash whose upper bits are as good as chance. */
static struct val mix_bits(struct val x)
{
	x = MUL(XOR(x, SHR(x, 16)), 0x7feb352d);
	x = MUL(XOR(x, SHR(x, 15)), 0x846ca68bu);
	return XOR(x, SHR(x, 16));
}

/* To one of the two bf16 that are next, by what is near: exact as f32. */
static struct val round_by_chance(struct val x, struct val i, struct val salt)
{
	struct val bits =
		ADD(BITS(DSL_U32, x), SHR(mix_bits(XOR(i, salt)), 16));

	return BITS(DSL_F32, AND(bits, 0xffff0000u));
}

/* The direction of AdamW; its two states follow. */
static struct val adamw_direction(const struct learn *a, struct val g,
				  const struct share *at)
{
	struct val m =
		FMA(load_part(a->m, at), a->beta1, MUL(g, SUB(1.0, a->beta1)));
	struct val v = FMA(load_part(a->v, at), a->beta2,
			   MUL(MUL(g, g), SUB(1.0, a->beta2)));

	store_part(a->m, at, m);
	store_part(a->v, at, v);
	return DIV(MUL(m, a->c1), ADD(SQRT(MUL(v, a->c2)), a->eps));
}

static struct val momentum_direction(const struct learn *a, struct val g,
				     const struct share *at)
{
	struct val m = FMA(load_part(a->m, at), a->beta1, g);

	store_part(a->m, at, m);
	return m;
}

static void learn_part(struct dsl *k, const struct learn *a,
		       const struct share *at)
{
	struct val by = LOAD(a->norm, 1), zero = CONST(k, DSL_F32, 0);

	IF(k, GT(by, 0.0))
	{
		struct val g = MUL(load_part(a->g, at), by);
		struct val d = a->adamw	    ? adamw_direction(a, g, at) :
			       a->direction ? load_part(a->m, at) :
					      momentum_direction(a, g, at);
		struct val p =
			SUB(MUL(load_part(a->p, at), a->keep), MUL(a->rate, d));

		if (a->type == DSL_BF16)
			p = round_by_chance(p, RANGE(at->i, KERNEL_VECTOR),
					    a->salt);
		store_part(a->p, at, p);
	}
	store_part(a->g, at, JOIN(zero, zero, zero, zero));
}

/*
 * Arguments: p (shape.type), g, m (f32), [v (f32),] norm [2] of clip_norm,
 * rate, keep, beta1, [beta2, eps, c1, c2,] salt (u32), n (u32).  With g
 * clipped:
 *
 *	learn_adamw	m and v are means of g and its square; p = keep p -
 *			rate m c1 / (sqrt(v c2) + eps)
 *	learn_momentum	m = beta1 m + g; p = keep p - rate m
 *	learn_direction	p = keep p - rate d, with d of bf16 in the place of m
 *			and no beta1
 *
 * and g is 0 then.  Where norm[1] is 0 nothing but that happens.  p of bf16 is
 * rounded up or down by chance, in proportion to what is near: a hash of the
 * element's number and the salt.
 */
void build_learn(struct dsl *k, const struct kernel_shape *s)
{
	struct learn a = { .adamw = is_kernel(k, "learn_adamw"),
			   .direction = is_kernel(k, "learn_direction"),
			   .type = s->type };

	a.p = ARG_PTR(k, s->type, "p", DSL_NOALIAS);
	a.g = ARG_PTR(k, DSL_F32, "g", DSL_NOALIAS);
	a.m = a.direction ? ARG_PTR(k, DSL_BF16, "d", DSL_READONLY) :
			    ARG_PTR(k, DSL_F32, "m", DSL_NOALIAS);
	if (a.adamw)
		a.v = ARG_PTR(k, DSL_F32, "v", DSL_NOALIAS);
	a.norm = ARG_PTR(k, DSL_F32, "norm", DSL_READONLY);
	a.rate = ARG(k, DSL_F32, "rate");
	a.keep = ARG(k, DSL_F32, "keep");
	if (!a.direction)
		a.beta1 = ARG(k, DSL_F32, "beta1");
	if (a.adamw) {
		a.beta2 = ARG(k, DSL_F32, "beta2");
		a.eps = ARG(k, DSL_F32, "eps");
		a.c1 = ARG(k, DSL_F32, "c1");
		a.c2 = ARG(k, DSL_F32, "c2");
	}
	a.salt = ARG(k, DSL_U32, "salt");
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, learn_part(k, &a, &at));
}

static void nesterov_part(struct dsl *k, const struct learn *a,
			  const struct share *at)
{
	struct val by = LOAD(a->norm, 1);

	IF(k, GT(by, 0.0))
	{
		struct val g = MUL(load_part(a->g, at), by);
		struct val m = FMA(load_part(a->m, at), a->beta1, g);

		store_part(a->m, at, m);
		store_part(a->g, at, FMA(m, a->beta1, g));
	}
}

/*
 * Arguments: g, m (f32), norm [2] of clip_norm, beta1, n (u32): with g clipped
 * m = beta1 m + g and g = g + beta1 m, where the momentum will be; nothing
 * where norm[1] is 0.
 */
void build_learn_nesterov(struct dsl *k, const struct kernel_shape *s)
{
	struct learn a = { .g = ARG_PTR(k, DSL_F32, "g", DSL_NOALIAS) };

	(void)s;
	a.m = ARG_PTR(k, DSL_F32, "m", DSL_NOALIAS);
	a.norm = ARG_PTR(k, DSL_F32, "norm", DSL_READONLY);
	a.beta1 = ARG(k, DSL_F32, "beta1");
	struct val n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, nesterov_part(k, &a, &at));
}

/* Arguments: out (shape.to), x (f32), norm (f32), n: x / (norm[0] + 1e-7). */
void build_over_length(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->to, "out", DSL_NOALIAS);
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val norm = ARG_PTR(k, DSL_F32, "norm", DSL_READONLY);
	struct val n = ARG(k, DSL_U32, "n");
	struct val by = DIV(1.0, ADD(LOAD(norm, 0), 1e-7));
	PARTS(k, n, at, store_part(out, &at, MUL(load_part(x, &at), by)));
}

static void average_part(struct dsl *k, const struct learn *a, struct val share,
			 const struct share *at)
{
	IF(k, GT(LOAD(a->norm, 1), 0.0))
	{
		struct val m = load_part(a->m, at);

		store_part(a->m, at,
			   FMA(SUB(load_part(a->p, at), m), share, m));
	}
}

/*
 * Arguments: m (f32), p (shape.type), norm [2] of clip_norm, share, n (u32):
 * m += share (p - m), but nothing where norm[1] is 0: p has not learnt.
 */
void build_learn_average(struct dsl *k, const struct kernel_shape *s)
{
	struct learn a = { .m = ARG_PTR(k, DSL_F32, "m", DSL_NOALIAS) };

	a.p = ARG_PTR(k, s->type, "p", DSL_READONLY);
	a.norm = ARG_PTR(k, DSL_F32, "norm", DSL_READONLY);
	struct val share = ARG(k, DSL_F32, "share"), n = ARG(k, DSL_U32, "n");
	PARTS(k, n, at, average_part(k, &a, share, &at));
}
