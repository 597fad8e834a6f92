/*
 * compiler/dsl/dsl_math.c - functions of f32 made of the operations of the DSL.
 *
 * The polynomials interpolate at Chebyshev nodes; their errors stand beside
 * them.  The macros of dsl.h note the line of whoever called the function.
 */
#include "compiler/dsl/dsl_int.h"

#undef DSL_AT
#define DSL_AT at

/* Is x an f32 in scope?  For messages that name the function's caller. */
static bool takes_f32(struct dsl_at at, struct val *x)
{
	struct dsl *k = x->k;

	if (dsl_go(k, at) && dsl_defined(k, at, x, 1) &&
	    dsl_want(k, at, x, DSL_F32))
		return true;
	*x = (struct val){ 0 };
	return false;
}

static bool is_fast(const struct val *x)
{
	return x->k->math & SSA_FAST;
}

/*
 * What follows up to rounded_end() relies on each product being rounded.
 */
static uint16_t rounded_begin(struct dsl *k)
{
	const uint16_t math = k->math;

	k->math &= (uint16_t)~SSA_CONTRACT;
	return math;
}

static struct val rounded_end(struct dsl *k, uint16_t math, struct val v)
{
	k->math = math;
	return v;
}

/* c[0] + c[1] x + ... by Horner's rule. */
static struct val eval_poly(struct dsl_at at, struct val x, const double *c,
			    int n)
{
	struct val r = FMA(x, c[n - 1], c[n - 2]);

	for (int j = n - 3; j >= 0; j--)
		r = FMA(r, x, c[j]);
	return r;
}

#define LOG2E_HIGH 0x1.715476p+0  /* f32 nearest to log2(e) */
#define LOG2E_LOW  0x1.4ae0cp-26  /* log2(e) - LOG2E_HIGH */
#define LN2	   0x1.62e42fefa39efp-1
#define TURN_HIGH  0x1.45f306p-3  /* f32 nearest to 1 / (2 pi) */
#define TURN_LOW   0x1.b9391p-28  /* 1 / (2 pi) - TURN_HIGH */

/*
 * e^x = 2^(h + l), h = x log2(e) rounded and l what the rounding lost: 2^l is
 * 1 + l ln 2.  Where 2^h is infinite the correction is left out, as it may have
 * the other sign.
 */
struct val dsl_exp(struct dsl_at at, struct val x)
{
	if (!takes_f32(at, &x))
		return x;
	if (is_fast(&x))
		return EXP2(MUL(x, LOG2E_HIGH));
	const uint16_t math = rounded_begin(x.k);
	const struct val h = MUL(x, LOG2E_HIGH);
	const struct val l = FMA(x, LOG2E_LOW, FMA(x, LOG2E_HIGH, NEG(h)));
	const struct val r = EXP2(h);

	return rounded_end(x.k, math, SELECT(LT(ABS(x), 88.72),
					     FMA(r, MUL(l, LN2), r), r));
}

/* Below the normal numbers, which the hardware's unit takes for zero. */
struct val dsl_log(struct dsl_at at, struct val x)
{
	if (!takes_f32(at, &x))
		return x;
	if (is_fast(&x))
		return MUL(LOG2(x), LN2);
	const struct val small = LT(x, 0x1p-126);
	const struct val y = LOG2(SELECT(small, MUL(x, 0x1p32), x));

	return MUL(SUB(y, SELECT(small, V(32.0), CONST(x.k, DSL_F32, 0))), LN2);
}

/* x in turns as n + h + l, n whole; only h + l matters. */
struct val dsl_sin(struct dsl_at at, struct val x, bool cosine)
{
	if (!takes_f32(at, &x))
		return x;
	const uint16_t math = rounded_begin(x.k);
	const struct val t = MUL(x, TURN_HIGH);
	const struct val l = FMA(x, TURN_LOW, FMA(x, TURN_HIGH, NEG(t)));
	const struct val r = ADD(SUB(t, ROUND(t)), l);

	return rounded_end(x.k, math, cosine ? DSL_1(COS_TURNS, r) :
					       DSL_1(SIN_TURNS, r));
}

/* x + x s P(s), s = x^2 below 0.6 (error of P 4e-8); else from e^(2|x|). */
struct val dsl_tanh(struct dsl_at at, struct val x)
{
	static const double p[] = { -0.33333330332755473, 0.1333291536758957,
				    -0.05387394889728021, 0.02111095920648222,
				    -0.006269119895501684 };

	if (!takes_f32(at, &x))
		return x;
	const struct val a = ABS(x), s = MUL(x, x);
	const struct val near = FMA(MUL(a, s), eval_poly(at, s, p, 5), a);
	const struct val e = EXP(ADD(a, a));
	const struct val far = SUB(1, DIV(2, ADD(e, 1)));

	return COPYSIGN(SELECT(LT(a, 0.6), near, far), x);
}

struct val dsl_sigmoid(struct dsl_at at, struct val x)
{
	return takes_f32(at, &x) ? DIV(1, ADD(EXP(NEG(x)), 1)) : x;
}

struct val dsl_silu(struct dsl_at at, struct val x)
{
	return takes_f32(at, &x) ? DIV(x, ADD(EXP(NEG(x)), 1)) : x;
}

/* x P(x^2) below 1 (error of P 2e-9); else 1 - 2^Q(|x|) (error of Q 3e-8). */
struct val dsl_erf(struct dsl_at at, struct val x)
{
	static const double p[] = { 1.1283791658483509,	 -0.3761262666671985,
				    0.11283594715154313, -0.02685421201037881,
				    0.0051890874229765785,
				    -0.0008016864283299621,
				    7.875875050430342e-05 };
	static const double q[] = { 0.000459555591881918, -1.630578738431754,
				    -0.9115292333615556,  -0.15882220917324236,
				    0.03812702106663081,  -0.006871016671230976,
				    0.0008621340274557479,
				    -6.660036993690353e-05,
				    2.370439789528518e-06 };

	if (!takes_f32(at, &x))
		return x;
	const struct val a = ABS(x), s = MUL(x, x);
	const struct val near = MUL(x, eval_poly(at, s, p, 7));
	/* From 4 on it is 1; MIN() would lose a NaN. */
	const struct val b = SELECT(GT(a, 4.0), V(4.0), a);
	const struct val far = SUB(1, EXP2(eval_poly(at, b, q, 9)));

	return SELECT(LT(a, 1.0), near, COPYSIGN(far, x));
}

struct val dsl_gelu(struct dsl_at at, struct val x)
{
	if (!takes_f32(at, &x))
		return x;
	const struct val half = MUL(x, 0.5);

	return FMA(half, ERF(MUL(x, 0.70710678118654752)), half);
}

struct val dsl_pow(struct dsl_at at, struct val x, struct val y)
{
	if (!takes_f32(at, &x))
		return x;
	return EXP2(MUL(y, LOG2(x)));
}

struct val dsl_isnan(struct dsl_at at, struct val x)
{
	return NE(x, x);
}
