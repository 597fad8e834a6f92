/*
 * engine/train/tape/element.c - operations on elements, and their spreading.
 */
#include <math.h>

#include "engine/train/tape/record.h"

/* ---- of two operands ---- */

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE };
static const char *const pair_name[] = { "add", "subtract", "multiply",
					 "divide" };

static float combine_pair(int how, float a, float b)
{
	return how == ADD      ? a + b :
	       how == SUBTRACT ? a - b :
	       how == MULTIPLY ? a * b :
				 a / b;
}

/* The slope by the first (side 0) or second operand. */
static float pair_slope(int how, int side, float a, float b)
{
	if (how == MULTIPLY)
		return side ? a : b;
	if (how == DIVIDE)
		return side ? -a / (b * b) : 1 / b;
	return side && how == SUBTRACT ? -1 : 1;
}

static void pair_back(struct tape *t, const struct tape_line *l)
{
	struct tensor *const x[] = { l->out, l->in[0], l->in[1] };
	struct tape_walk w;

	(void)t;
	tape_walk_begin(&w, x, 3);
	while (tape_walk_next(&w))
		for (size_t i = 0; i < w.n; i++) {
			float dy = x[0]->grad[w.off[0] + i * w.by[0]];
			size_t p = w.off[1] + i * w.by[1];
			size_t q = w.off[2] + i * w.by[2];
			float a = x[1]->data[p], b = x[2]->data[q];

			if (x[1]->grad)
				x[1]->grad[p] +=
					dy * pair_slope(l->which, 0, a, b);
			if (x[2]->grad)
				x[2]->grad[q] +=
					dy * pair_slope(l->which, 1, a, b);
		}
}

static struct tensor *apply_pair(int how, struct tensor *a, struct tensor *b)
{
	struct tape_shape s;
	struct tape_walk w;

	if (!a || !b)
		return NULL;
	struct tape *t = a->tape;
	if (!tape_join(&a->shape, &b->shape, 0, &s))
		return tape_fail(t, "%s: %s and %s; wanted the same sizes, or "
				 "1", pair_name[how], tape_show(t, &a->shape),
				 tape_show(t, &b->shape));
	a = tape_spread(a, s);
	b = tape_spread(b, s);
	struct tensor *x[] = { NULL, a, b };
	x[0] = tape_result(t, s, x + 1, 2);
	tape_walk_begin(&w, x, 3);
	while (tape_walk_next(&w))
		for (size_t i = 0; i < w.n; i++)
			x[0]->data[w.off[0] + i * w.by[0]] = combine_pair(
				how, a->data[w.off[1] + i * w.by[1]],
				b->data[w.off[2] + i * w.by[2]]);
	tape_record(t, &(struct tape_line){ .back = pair_back, .out = x[0],
					    .in = { a, b }, .which = how });
	return x[0];
}

struct tensor *tape_add(struct tensor *a, struct tensor *b)
{
	return apply_pair(ADD, a, b);
}

struct tensor *tape_subtract(struct tensor *a, struct tensor *b)
{
	return apply_pair(SUBTRACT, a, b);
}

struct tensor *tape_multiply(struct tensor *a, struct tensor *b)
{
	return apply_pair(MULTIPLY, a, b);
}

struct tensor *tape_divide(struct tensor *a, struct tensor *b)
{
	return apply_pair(DIVIDE, a, b);
}

/* ---- of one operand ---- */

static void scale_back(struct tape *t, const struct tape_line *l)
{
	(void)t;
	for (size_t i = 0; i < tape_count(l->out); i++)
		l->in[0]->grad[i] += l->number * l->out->grad[i];
}

struct tensor *tape_scale(struct tensor *x, float by, float plus)
{
	x = tape_dense(x);
	if (!x)
		return NULL;
	struct tensor *y = tape_result(x->tape, x->shape, &x, 1);
	for (size_t i = 0; i < tape_count(x); i++)
		y->data[i] = x->data[i] * by + plus;
	tape_record(x->tape, &(struct tape_line){ .back = scale_back, .out = y,
						  .in = { x }, .number = by });
	return y;
}

static float logistic_of(float x)
{
	return 1 / (1 + expf(-x));
}

/* The normal distribution's integral up to x. */
static float normal_integral(float x)
{
	return .5f * erfcf(-x * (float)M_SQRT1_2);
}

static float function_value(int f, float x)
{
	switch (f) {
	case TAPE_RELU:
		return x > 0 ? x : 0 * x; /* NaN stays one */
	case TAPE_GELU:
		return x * normal_integral(x);
	case TAPE_SILU:
		return x * logistic_of(x);
	case TAPE_SIGMOID:
		return logistic_of(x);
	case TAPE_TANH:
		return tanhf(x);
	case TAPE_EXP:
		return expf(x);
	case TAPE_LOG:
		return logf(x);
	default:
		return sqrtf(x);
	}
}

/* At x, where the value is y. */
static float function_slope(int f, float x, float y)
{
	switch (f) {
	case TAPE_RELU:
		return x > 0;
	case TAPE_GELU:
		return normal_integral(x) +
		       x * expf(-.5f * x * x) * .39894228f;
	case TAPE_SILU:
		return logistic_of(x) * (1 + x * logistic_of(-x));
	case TAPE_SIGMOID:
		return y * logistic_of(-x);
	case TAPE_TANH:
		return 1 - y * y;
	case TAPE_EXP:
		return y;
	case TAPE_LOG:
		return 1 / x;
	default:
		return .5f / y;
	}
}

static void function_back(struct tape *t, const struct tape_line *l)
{
	(void)t;
	for (size_t i = 0; i < tape_count(l->out); i++)
		l->in[0]->grad[i] +=
			l->out->grad[i] *
			function_slope(l->which, l->in[0]->data[i],
				       l->out->data[i]);
}

struct tensor *tape_apply(enum tape_function f, struct tensor *x)
{
	x = tape_dense(x);
	if (!x)
		return NULL;
	struct tensor *y = tape_result(x->tape, x->shape, &x, 1);
	for (size_t i = 0; i < tape_count(x); i++)
		y->data[i] = function_value((int)f, x->data[i]);
	tape_record(x->tape,
		    &(struct tape_line){ .back = function_back, .out = y,
					 .in = { x }, .which = (int)f });
	return y;
}
