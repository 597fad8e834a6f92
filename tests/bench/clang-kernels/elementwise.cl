/* Twins of compiler/kernels/elementwise.c: four elements per work-item. */
#include "lib.h"

#define FROM(p) __builtin_convertvector(*(global const elem4 *)((p) + i), f4)
#define FROM32(p) __builtin_convertvector(*(global const mem4 *)((p) + i), f4)
#define PUT(p, v) (*(global to4 *)((p) + i) = __builtin_convertvector(v, to4))

/*
 * name(out, inputs, numbers, n): `expr` of the elements x, y and z of the
 * arrays, which may be the same, and of the numbers a and b.
 */
#define EACH(name, inputs, numbers, xs, ys, zs, an, bn, expr)                 \
	INLINE float name##_one(float x, float y, float z, float a, float b)  \
	{                                                                     \
		return expr;                                                  \
	}                                                                     \
	KERNEL(256) name(global TO *out, inputs, numbers uint n)              \
	{                                                                     \
		const uint i = 4 * (group_x() * 256 + lid());                 \
									      \
		if (i + 4 <= n) {                                             \
			const f4 x = FROM(xs), y = FROM(ys), z = FROM(zs);    \
			f4 r;                                                 \
									      \
			for (int k = 0; k < 4; k++)                           \
				r[k] = name##_one(x[k], y[k], z[k], an, bn);  \
			PUT(out, r);                                          \
			return;                                               \
		}                                                             \
		for (uint k = i; k < n; k++)                                  \
			out[k] = (TO)name##_one((float)xs[k], (float)ys[k],   \
						(float)zs[k], an, bn);        \
	}
#define IN1 global const ELEM *xs
#define IN2 IN1, global const ELEM *ys
#define IN3 IN2, global const ELEM *zs
#define NUM1 float a,
#define NUM2 float a, float b,

EACH(add, IN2, , xs, ys, xs, 0, 0, x + y)
EACH(sub, IN2, , xs, ys, xs, 0, 0, x - y)
EACH(mul, IN2, , xs, ys, xs, 0, 0, x * y)
EACH(scale, IN1, NUM1, xs, xs, xs, a, 0, x * a)
EACH(affine, IN1, NUM2, xs, xs, xs, a, b, FMA(x, a, b))
EACH(axpy, IN2, NUM1, xs, ys, xs, a, 0, FMA(x, a, y))
EACH(fma, IN3, , xs, ys, zs, 0, 0, FMA(x, y, z))
EACH(relu, IN1, , xs, xs, xs, 0, 0, relu_of(x))
EACH(sigmoid, IN1, , xs, xs, xs, 0, 0, sigmoid_of(x))
EACH(silu, IN1, , xs, xs, xs, 0, 0, silu_of(x))
EACH(gelu, IN1, , xs, xs, xs, 0, 0, gelu_of(x))
EACH(exp, IN1, , xs, xs, xs, 0, 0, exp_of(x))
EACH(tanh, IN1, , xs, xs, xs, 0, 0, tanh_of(x))
EACH(swiglu, IN2, , xs, ys, xs, 0, 0, silu_of(x) * y)
EACH(add_relu, IN2, , xs, ys, xs, 0, 0, relu_of(x + y))
EACH(convert, IN1, , xs, xs, xs, 0, 0, x)

INLINE float gradient_x(float x, float y, float g)
{
	const float s = sigmoid_of(x);

	return g * y * (s * FMA(x, 1 - s, 1.0f));
}

INLINE float gradient_y(float x, float g)
{
	return g * (x * sigmoid_of(x));
}

KERNEL(256) swiglu_back(global ELEM *dx, global ELEM *dy,
			global const ELEM *xs, global const ELEM *ys,
			global const ELEM *gs, uint n)
{
	const uint i = 4 * (group_x() * 256 + lid());

	if (i + 4 <= n) {
		const f4 x = FROM(xs), y = FROM(ys), g = FROM(gs);
		f4 rx, ry;

		for (int k = 0; k < 4; k++) {
			rx[k] = gradient_x(x[k], y[k], g[k]);
			ry[k] = gradient_y(x[k], g[k]);
		}
		PUT(dx, rx);
		PUT(dy, ry);
		return;
	}
	for (uint k = i; k < n; k++) {
		const float x = xs[k], y = ys[k], g = gs[k];

		dx[k] = (ELEM)gradient_x(x, y, g);
		dy[k] = (ELEM)gradient_y(x, g);
	}
}

struct step {
	float rate, beta1, beta2, eps, decay, c1, c2;
};

/* Moments are updated; the parameter's new value. */
INLINE float adamw_one(const struct step *s, float p, float g, float *m,
		       float *v)
{
	const float g2 = g * g;

	*m = FMA(s->beta1, *m - g, g);
	*v = FMA(s->beta2, *v - g2, g2);
	const float step = *m / s->c1 /
			   (__builtin_sqrtf(*v / s->c2) + s->eps);
	return p - s->rate * FMA(s->decay, p, step);
}

KERNEL(256) adamw(global ELEM *ps, global const ELEM *gs, global float *ms,
		  global float *vs, float rate, float beta1, float beta2,
		  float eps, float decay, float c1, float c2, uint n)
{
	const struct step s = { rate, beta1, beta2, eps, decay, c1, c2 };
	const uint i = 4 * (group_x() * 256 + lid());

	if (i + 4 <= n) {
		const f4 p = FROM(ps), g = FROM(gs);
		f4 m = FROM32(ms), v = FROM32(vs), r;

		for (int k = 0; k < 4; k++) {
			float mk = m[k], vk = v[k];

			r[k] = adamw_one(&s, p[k], g[k], &mk, &vk);
			m[k] = mk;
			v[k] = vk;
		}
		*(global mem4 *)(ms + i) = m;
		*(global mem4 *)(vs + i) = v;
		PUT(ps, r);
		return;
	}
	for (uint k = i; k < n; k++) {
		float m = ms[k], v = vs[k];

		ps[k] = (ELEM)adamw_one(&s, (float)ps[k], (float)gs[k], &m, &v);
		ms[k] = m;
		vs[k] = v;
	}
}
