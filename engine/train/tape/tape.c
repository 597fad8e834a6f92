/*
 * engine/train/tape/tape.c - a tape: its tensors, the way back, its parameters.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/kernels.h"
#include "engine/train/tape/record.h"

struct tape *tape_new(struct threads *pool, struct err *e)
{
	struct tape *t = xcalloc(1, sizeof(*t));

	*t = (struct tape){ .pool = pool, .e = e };
	t->gemm = xcalloc(pool ? threads_count(pool) : 1, sizeof(*t->gemm));
	return t;
}

void tape_free(struct tape *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < (t->pool ? threads_count(t->pool) : 1); i++)
		cpu_gemm_scratch_fini(&t->gemm[i]);
	free(t->gemm);
	vec_fini(&t->line);
	vec_fini(&t->learner);
	arena_fini(&t->step);
	arena_fini(&t->kept);
	free(t);
}

void tape_clear(struct tape *t)
{
	t->line.n = 0;
	arena_fini(&t->step);
}

struct tensor *tape_fail(struct tape *t, const char *fmt, ...)
{
	char why[sizeof(t->e->msg)];
	va_list ap;

	if (t->e->code != ERR_NONE)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(t->e, ERR_USAGE, "%s", why);
	return NULL;
}

const char *tape_show(struct tape *t, const struct tape_shape *s)
{
	const char *text = "[";

	for (unsigned i = 0; i < s->n; i++)
		text = arena_printf(&t->step, "%s%s%zu", text, i ? ", " : "",
				    s->dim[i]);
	return arena_printf(&t->step, "%s]", text);
}

/* ---- tensors ---- */

size_t tape_shape_count(const struct tape_shape *s)
{
	size_t n = 1;

	for (unsigned i = 0; i < s->n; i++)
		if (!size_mul(n, s->dim[i], &n))
			return SIZE_MAX; /* more than there is of memory */
	return n;
}

size_t tape_count(const struct tensor *x)
{
	return tape_shape_count(&x->shape);
}

static float *floats_new(struct arena *a, size_t n)
{
	size_t bytes;

	if (!size_mul(n, sizeof(float), &bytes))
		mem_ran_out(SIZE_MAX, "a tape");
	return arena_alloc(a, bytes);
}

float *tape_floats(struct tape *t, size_t n)
{
	return floats_new(&t->step, n);
}

static struct tensor *tensor_new(struct tape *t, struct arena *a,
				 struct tape_shape s, bool learns)
{
	struct tensor *x = arena_alloc(a, sizeof(*x));
	size_t n = tape_shape_count(&s), stride = 1;

	*x = (struct tensor){ .tape = t, .shape = s };
	for (unsigned i = s.n; i--;) {
		x->stride[i] = stride;
		stride *= s.dim[i];
	}
	x->data = floats_new(a, n);
	x->grad = learns ? floats_new(a, n) : NULL;
	return x;
}

struct tensor *tape_param(struct tape *t, struct tape_shape s)
{
	struct tensor *x = tensor_new(t, &t->kept, s, true);
	struct tape_learner l = { .x = x };

	for (int i = 0; i < 2; i++)
		l.state[i] = floats_new(&t->kept, tape_count(x));
	vec_push(&t->learner, l);
	return x;
}

struct tensor *tape_input(struct tape *t, struct tape_shape s,
			  const float *data)
{
	struct tensor *x = tensor_new(t, &t->step, s, false);

	if (data && tape_count(x))
		memcpy(x->data, data, tape_count(x) * sizeof(*data));
	return x;
}

struct tensor *tape_result(struct tape *t, struct tape_shape s,
			   struct tensor *const *in, unsigned n)
{
	bool learns = false;

	for (unsigned i = 0; i < n; i++)
		learns |= in[i] && in[i]->grad;
	return tensor_new(t, &t->step, s, learns);
}

void tape_fill(struct tensor *p, float most, uint64_t seed)
{
	random_next(&seed);
	for (size_t i = 0; i < tape_count(p); i++)
		p->data[i] = most * ((float)(random_next(&seed) >> 40) *
					     0x1p-23f - 1);
}

/* ---- lines ---- */

void tape_record(struct tape *t, const struct tape_line *l)
{
	if (l->out->grad)
		vec_push(&t->line, *l);
}

void tape_product(struct tape *t, size_t m, size_t n, size_t k, const float *a,
		  const float *b, bool b_by_n, float beta, float *c)
{
	const struct cpu_gemm g = {
		.m = m, .n = n, .k = k, .alpha = 1, .beta = beta, .a = a,
		.lda = k, .b = b, .ldb = b_by_n ? k : n,
		.b_type = CPU_GEMM_F32, .b_by_n = b_by_n, .c = c, .ldc = n,
	};

	if (m && n)
		cpu_gemm(&g, t->gemm, t->pool);
}

bool tape_backward(struct tensor *loss)
{
	if (!loss)
		return false;
	struct tape *t = loss->tape;
	if (t->e->code != ERR_NONE)
		return false;
	if (tape_count(loss) != 1)
		return tape_fail(t, "backward: the loss is %s; wanted one "
				 "element", tape_show(t, &loss->shape));
	if (loss->grad)
		loss->grad[0] += 1;
	while (t->line.n) {
		const struct tape_line l = t->line.v[--t->line.n];
		l.back(t, &l);
	}
	return true;
}

/* ---- parameters ---- */

#define UNIT 4096 /* elements that square_sum() takes */

static double gradients_length(const struct tape *t)
{
	double sum = 0;

	for (size_t i = 0; i < t->learner.n; i++) {
		const struct tensor *x = t->learner.v[i].x;
		size_t n = tape_count(x);

		for (size_t at = 0; at < n; at += UNIT)
			sum += train_kernels_best()->square_sum(
				x->grad + at, n - at < UNIT ? n - at : UNIT);
	}
	return sqrt(sum);
}

bool tape_update(struct tape *t, const struct train_rule *r, uint64_t step,
		 double *norm)
{
	const struct train_kernels *k = train_kernels_best();
	double length = gradients_length(t);
	struct train_adam how;

	if (r->method != TRAIN_ADAMW && r->method != TRAIN_SGD)
		return tape_fail(t, "update: the optimizer is %s; wanted adamw "
				 "or sgd", train_method_name(r->method));
	train_adam_init(&how, r, step, length);
	for (size_t i = 0; i < t->learner.n; i++) {
		const struct tape_learner *l = &t->learner.v[i];
		size_t n = tape_count(l->x);

		train_adam_decay(&how, r, l->x->shape.n > 1);
		if (isfinite(length) && r->method == TRAIN_ADAMW)
			k->adamw(&how, n, l->x->grad, l->x->data, l->state[0],
				 l->state[1]);
		else if (isfinite(length))
			k->momentum(&how, n, l->x->grad, l->x->data,
				    l->state[0]);
		if (n)
			memset(l->x->grad, 0, n * sizeof(float));
	}
	if (norm)
		*norm = length;
	return true;
}
