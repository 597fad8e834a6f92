/*
 * Operations of a tape against double precision written out here: values, and
 * gradients against slopes (tests/ref/grad.h); that an error in any way back is
 * seen; what does not fit; and two models that learn.
 */
#include "engine/train/tape/record.h"
#include "tests/ref/grad.h"
#include "tests/tap.h"

#define BOUND  1e-5
#define ROUNDS 12 /* shapes of each */
#define MOST   3  /* inputs */

static uint64_t seed = 41;

static double random_unit(void)
{
	return (double)(int64_t)(random_next(&seed) >> 11) * 0x1p-52 - 1;
}

static size_t random_between(size_t from, size_t to)
{
	return from + (size_t)(random_next(&seed) % (to - from + 1));
}

/* One operation: inputs in double, what it should give, and by the tape. */
struct job {
	struct tape_shape s[MOST];
	double *x[MOST];
	unsigned n_x;
	double *c; /* the loss is the sum of c[i] y[i] */
	size_t n_y;
	uint32_t id[512];
	size_t n, m, d, out, rows, heads, group; /* as the operation has them */
	int which;
	unsigned dim;
	bool causal, masked; /* attention; keys seen: those with an id */
	void (*value)(const struct job *j, double *y);
	struct tensor *(*run)(struct job *j, struct tensor *const *x);
};

static void input_add(struct job *j, struct tape_shape s, double from,
		      double to)
{
	size_t n = tape_shape_count(&s);
	double *x = calloc(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (float)((from + to) / 2 +
			       (to - from) / 2 * random_unit());
	j->s[j->n_x] = s;
	j->x[j->n_x++] = x;
}

static double weighted_sum(void *ctx)
{
	struct job *j = ctx;
	double sum = 0, *y = calloc(j->n_y + 1, sizeof(*y));

	j->value(j, y);
	for (size_t i = 0; i < j->n_y; i++)
		sum += j->c[i] * y[i];
	free(y);
	return sum;
}

static void job_fini(struct job *j)
{
	for (unsigned i = 0; i < j->n_x; i++)
		free(j->x[i]);
	free(j->c);
}

/* ---- of two operands ---- */

/* Element i of a shape, in an operand that is spread to it. */
static double spread_element(const struct tape_shape *all, size_t i,
			     const struct tape_shape *s, const double *x)
{
	size_t at = 0, stride = 1;

	for (unsigned k = 1; k <= s->n; k++) {
		size_t of = i % all->dim[all->n - k], has = s->dim[s->n - k];
		at += has == 1 ? 0 : of * stride;
		stride *= has;
		i /= all->dim[all->n - k];
	}
	return x[at];
}

static void pair_value(const struct job *j, double *y)
{
	struct tape_shape all = j->s[0].n > j->s[1].n ? j->s[0] : j->s[1];

	for (unsigned k = 1; k <= all.n; k++)
		for (int o = 0; o < 2; o++) {
			const struct tape_shape *s = &j->s[o];
			if (k <= s->n && s->dim[s->n - k] != 1)
				all.dim[all.n - k] = s->dim[s->n - k];
		}
	for (size_t i = 0; i < j->n_y; i++) {
		double a = spread_element(&all, i, &j->s[0], j->x[0]);
		double b = spread_element(&all, i, &j->s[1], j->x[1]);
		y[i] = j->which == 0 ? a + b : j->which == 1 ? a - b :
		       j->which == 2 ? a * b : a / b;
	}
}

static struct tensor *pair_run(struct job *j, struct tensor *const *x)
{
	return j->which == 0 ? tape_add(x[0], x[1]) :
	       j->which == 1 ? tape_subtract(x[0], x[1]) :
	       j->which == 2 ? tape_multiply(x[0], x[1]) :
			       tape_divide(x[0], x[1]);
}

static void pair_make(struct job *j)
{
	struct tape_shape s = { .n = (unsigned)random_between(0, 4) };

	for (unsigned i = 0; i < s.n; i++)
		s.dim[i] = random_between(random_next(&seed) % 8 != 0, 4);
	for (int o = 0; o < 2; o++) {
		struct tape_shape of = s;
		unsigned lacks = s.n ? (unsigned)random_between(0, s.n) : 0;
		if (random_next(&seed) % 2)
			lacks = 0;
		of.n -= lacks;
		for (unsigned i = 0; i < of.n; i++)
			of.dim[i] = random_next(&seed) % 3 ? s.dim[i + lacks] :
							     1;
		input_add(j, of, .3, 1.7);
	}
	j->value = pair_value;
	j->run = pair_run;
}

/* ---- of one operand ---- */

static double function_of(int f, double x)
{
	switch (f) {
	case TAPE_RELU:
		return x > 0 ? x : 0;
	case TAPE_GELU:
		return x * .5 * (1 + erf(x / sqrt(2)));
	case TAPE_SILU:
		return grad_silu(x);
	case TAPE_SIGMOID:
		return 1 / (1 + exp(-x));
	case TAPE_TANH:
		return tanh(x);
	case TAPE_EXP:
		return exp(x);
	case TAPE_LOG:
		return log(x);
	case TAPE_SQRT:
		return sqrt(x);
	default:
		return -1.5 * x + .25;
	}
}

static void function_value(const struct job *j, double *y)
{
	for (size_t i = 0; i < j->n_y; i++)
		y[i] = function_of(j->which, j->x[0][i]);
}

static struct tensor *function_run(struct job *j, struct tensor *const *x)
{
	return j->which == TAPE_FUNCTIONS ?
		       tape_scale(x[0], -1.5f, .25f) :
		       tape_apply((enum tape_function)j->which, x[0]);
}

static void function_make(struct job *j)
{
	bool positive = j->which == TAPE_LOG || j->which == TAPE_SQRT;

	input_add(j, TAPE_SHAPE(random_between(1, 4), random_between(1, 9)),
		  positive ? .3 : -2, 2);
	for (size_t i = 0; i < tape_shape_count(&j->s[0]); i++)
		if (fabs(j->x[0][i]) < .01) /* where ReLU has no slope */
			j->x[0][i] = .5;
	j->value = function_value;
	j->run = function_run;
}

/* ---- reductions ---- */

static void reduce_value(const struct job *j, double *y)
{
	const size_t *dim = j->s[0].dim;
	size_t inner = 1, n = dim[j->dim];

	for (unsigned i = j->dim + 1; i < 3; i++)
		inner *= dim[i];
	for (size_t i = 0; i < j->n_y; i++) {
		const double *x = j->x[0] + i / inner * n * inner + i % inner;
		double sum = 0, most = -INFINITY;
		for (size_t k = 0; k < n; k++) {
			sum += x[k * inner];
			most = fmax(most, x[k * inner]);
		}
		y[i] = j->which == TAPE_MAX  ? most :
		       j->which == TAPE_MEAN ? sum / (double)n : sum;
	}
}

static struct tensor *reduce_run(struct job *j, struct tensor *const *x)
{
	return tape_reduce((enum tape_reduction)j->which, x[0], j->dim);
}

static void reduce_make(struct job *j)
{
	size_t least = j->which == TAPE_SUM ? 0 : 1;

	j->dim = (unsigned)random_between(0, 2);
	input_add(j, TAPE_SHAPE(random_between(1, 5), random_between(1, 5),
				random_between(1, 5)), -2, 2);
	if (random_next(&seed) % 4 == 0)
		j->s[0].dim[j->dim] = least; /* fewer of what there is */
	j->value = reduce_value;
	j->run = reduce_run;
}

static void total_value(const struct job *j, double *y)
{
	size_t n = tape_shape_count(&j->s[0]);

	y[0] = j->which == TAPE_MAX ? -INFINITY : 0;
	for (size_t i = 0; i < n; i++)
		y[0] = j->which == TAPE_MAX ? fmax(y[0], j->x[0][i]) :
		       y[0] + j->x[0][i] /
				(j->which == TAPE_MEAN ? (double)n : 1);
}

static struct tensor *total_run(struct job *j, struct tensor *const *x)
{
	return tape_reduce_all((enum tape_reduction)j->which, x[0]);
}

static void total_make(struct job *j)
{
	j->which = (int)random_between(0, TAPE_REDUCTIONS - 1);
	input_add(j, TAPE_SHAPE(random_between(1, 4), random_between(1, 4)),
		  -2, 2);
	j->value = total_value;
	j->run = total_run;
}

/* ---- rows ---- */

static void softmax_value(const struct job *j, double *y)
{
	for (size_t i = 0; i < j->n_y; i++) {
		const double *x = j->x[0] + i / j->n * j->n;
		double sum = 0;
		for (size_t k = 0; k < j->n; k++)
			sum += exp(x[k]);
		y[i] = exp(j->x[0][i]) / sum;
	}
}

static struct tensor *softmax_run(struct job *j, struct tensor *const *x)
{
	(void)j;
	return tape_softmax(x[0]);
}

static void softmax_make(struct job *j)
{
	j->n = random_between(0, 20);
	input_add(j, TAPE_SHAPE(random_between(1, 3), random_between(0, 3),
				j->n), -3, 3);
	j->value = softmax_value;
	j->run = softmax_run;
}

static void norm_value(const struct job *j, double *y)
{
	for (size_t r = 0; r < j->rows; r++)
		grad_norm(j->x[0] + r * j->n, j->x[1], (int)j->n, .01,
			  y + r * j->n);
}

static struct tensor *norm_run(struct job *j, struct tensor *const *x)
{
	(void)j;
	return tape_norm(x[0], x[1], .01f);
}

static void norm_make(struct job *j)
{
	j->rows = random_between(0, 9);
	j->n = random_between(1, 40);
	input_add(j, TAPE_SHAPE(j->rows, j->n), -2, 2);
	input_add(j, TAPE_SHAPE(j->n), -2, 2);
	j->value = norm_value;
	j->run = norm_run;
}

static void embedding_value(const struct job *j, double *y)
{
	for (size_t i = 0; i < j->n_y; i++)
		y[i] = j->x[0][j->id[i / j->n] * j->n + i % j->n];
}

static struct tensor *embedding_run(struct job *j, struct tensor *const *x)
{
	return tape_embedding(x[0], TAPE_SHAPE(2, j->rows), j->id);
}

static void embedding_make(struct job *j)
{
	j->rows = random_between(0, 8);
	j->n = random_between(1, 9);
	for (size_t i = 0; i < 2 * j->rows; i++)
		j->id[i] = (uint32_t)random_between(0, 4);
	input_add(j, TAPE_SHAPE(5, j->n), -2, 2);
	j->value = embedding_value;
	j->run = embedding_run;
}

static void loss_value(const struct job *j, double *y)
{
	double sum = 0;
	int n = 0;

	for (size_t r = 0; r < j->rows; r++) {
		const double *x = j->x[0] + r * j->n;
		double all = 0;
		if (j->id[r] == TRAIN_IGNORE)
			continue;
		for (size_t k = 0; k < j->n; k++)
			all += exp(x[k]);
		sum += log(all) - x[j->id[r]];
		n++;
	}
	y[0] = n ? sum / n : 0;
}

static struct tensor *loss_run(struct job *j, struct tensor *const *x)
{
	return tape_cross_entropy(x[0], j->id);
}

static void loss_make(struct job *j)
{
	j->rows = random_between(0, 12);
	j->n = random_between(1, 30);
	for (size_t i = 0; i < j->rows; i++)
		j->id[i] = random_next(&seed) % 4 ?
				   (uint32_t)random_between(0, j->n - 1) :
				   TRAIN_IGNORE;
	input_add(j, TAPE_SHAPE(j->rows, j->n), -3, 3);
	j->value = loss_value;
	j->run = loss_run;
}

/* ---- products ---- */

static void linear_value(const struct job *j, double *y)
{
	for (size_t r = 0; r < j->rows; r++) {
		for (size_t i = 0; j->n_x > 2 && i < j->out; i++)
			y[r * j->out + i] = j->x[2][i];
		grad_mat(j->x[1], j->x[0] + r * j->n, (int)j->out, (int)j->n,
			 y + r * j->out);
	}
}

static struct tensor *linear_run(struct job *j, struct tensor *const *x)
{
	return tape_linear(x[0], x[1], j->n_x > 2 ? x[2] : NULL);
}

static void linear_make(struct job *j)
{
	size_t a = random_between(1, 3), b = random_between(0, 20);

	j->n = random_between(0, 40);
	j->out = random_between(1, 40);
	j->rows = a * b;
	input_add(j, TAPE_SHAPE(a, b, j->n), -1, 1);
	input_add(j, TAPE_SHAPE(j->out, j->n), -1, 1);
	if (random_next(&seed) % 4)
		input_add(j, TAPE_SHAPE(j->out), -1, 1);
	j->value = linear_value;
	j->run = linear_run;
}

/* Query `at` of a head: what it makes of the keys it sees. */
static void attend_query(const struct job *j, size_t at, const double *q,
			 const double *k, const double *v, double *y)
{
	const size_t seen = j->causal ? j->m - j->n + at + 1 : j->m;
	double sum = 0;

	for (size_t u = 0; u < seen; u++) {
		double dot = 0;
		if (j->masked && !j->id[at * j->m + u])
			continue;
		for (size_t i = 0; i < j->d; i++)
			dot += q[i] * k[u * j->d + i];
		double p = exp(dot / sqrt((double)j->d));
		sum += p;
		for (size_t i = 0; i < j->out; i++)
			y[i] += p * v[u * j->out + i];
	}
	for (size_t i = 0; i < j->out; i++)
		y[i] = sum > 0 ? y[i] / sum : 0;
}

/* Queries lie [n][heads][group][d]: the tape sees them turned. */
static void attention_value(const struct job *j, double *y)
{
	size_t all = j->heads * j->group;

	for (size_t h = 0; h < all; h++)
		for (size_t i = 0; i < j->n; i++)
			attend_query(j, i, j->x[0] + (i * all + h) * j->d,
				     j->x[1] + h / j->group * j->m * j->d,
				     j->x[2] + h / j->group * j->m * j->out,
				     y + (h * j->n + i) * j->out);
}

static struct tensor *attention_run(struct job *j, struct tensor *const *x)
{
	struct tensor *q = tape_reshape(
		x[0], TAPE_SHAPE(j->n, j->heads, j->group, j->d));
	struct tensor *k = tape_reshape(x[1],
					TAPE_SHAPE(j->heads, 1, j->m, j->d));
	struct tensor *v = tape_reshape(x[2],
					TAPE_SHAPE(j->heads, 1, j->m, j->out));

	q = tape_swap(tape_swap(q, 0, 1), 1, 2); /* heads, group, n, d */
	if (!j->masked)
		return tape_attention(q, k, v, j->causal);
	if (!q)
		return NULL;
	struct tensor *seen = tape_input(q->tape, TAPE_SHAPE(j->n, j->m), NULL);
	for (size_t i = 0; i < j->n * j->m; i++)
		seen->data[i] = (float)j->id[i];
	return tape_attention_seen(q, k, v, seen);
}

static void attention_make(struct job *j)
{
	j->n = random_between(0, 9);
	j->masked = j->which;
	j->causal = !j->masked && random_next(&seed) % 2;
	j->m = random_between(j->causal ? j->n : 0, 12);
	if (j->masked)
		j->m = random_between(3, 12);
	/* The first query may see none; others see two, or more. */
	for (size_t i = 0; j->masked && i < j->n * j->m; i++)
		j->id[i] = i / j->m == 0 ? j->n % 2 :
					   i % j->m < 2 ||
						   random_next(&seed) % 3;
	j->d = random_between(1, 9);
	j->out = random_between(1, 7);
	j->heads = random_between(1, 3);
	j->group = random_between(1, 3);
	input_add(j, TAPE_SHAPE(j->n, j->heads * j->group * j->d), -2, 2);
	input_add(j, TAPE_SHAPE(j->heads, j->m, j->d), -2, 2);
	input_add(j, TAPE_SHAPE(j->heads, j->m, j->out), -2, 2);
	j->value = attention_value;
	j->run = attention_run;
}

/* ---- views ---- */

/* x [a][b][c]: of rows 1 on the square, turned, flat. */
static void view_value(const struct job *j, double *y)
{
	const size_t *s = j->s[0].dim;

	for (size_t k = 0; k < s[2]; k++)
		for (size_t l = 0; l < s[1]; l++)
			for (size_t i = 1; i < s[0]; i++) {
				double v = j->x[0][(i * s[1] + l) * s[2] + k];
				*y++ = v * v;
			}
}

static struct tensor *view_run(struct job *j, struct tensor *const *x)
{
	struct tensor *y = tape_slice(x[0], 0, 1, j->s[0].dim[0] - 1);

	y = tape_swap(y, 0, 2);
	y = tape_reshape(tape_multiply(y, y), TAPE_SHAPE(j->n));
	return tape_copy(y);
}

static void view_make(struct job *j)
{
	input_add(j, TAPE_SHAPE(random_between(1, 4), random_between(1, 4),
				random_between(0, 4)), -2, 2);
	j->n = (j->s[0].dim[0] - 1) * j->s[0].dim[1] * j->s[0].dim[2];
	j->value = view_value;
	j->run = view_run;
}

/* a and b on the square, one behind the other in a dimension of 3. */
static void append_value(const struct job *j, double *y)
{
	size_t before = 1, behind = 1;
	struct tape_shape s = j->s[0];

	for (unsigned k = 0; k < s.n; k++)
		*(k < j->dim ? &before : &behind) *= k == j->dim ? 1 : s.dim[k];
	for (size_t i = 0; i < before; i++)
		for (unsigned o = 0; o < 2; o++) {
			size_t n = j->s[o].dim[j->dim] * behind;
			for (size_t k = 0; k < n; k++, y++) {
				double v = j->x[o][i * n + k];
				*y = v * v;
			}
		}
}

static struct tensor *append_run(struct job *j, struct tensor *const *x)
{
	struct tensor *y = tape_append(x[0], x[1], j->dim);

	return tape_multiply(y, y);
}

static void append_make(struct job *j)
{
	struct tape_shape s = TAPE_SHAPE(random_between(1, 4),
					 random_between(0, 4),
					 random_between(1, 4));

	j->dim = (unsigned)random_between(0, 2);
	input_add(j, s, -2, 2);
	s.dim[j->dim] = random_between(0, 4);
	input_add(j, s, -2, 2);
	j->value = append_value;
	j->run = append_run;
}

/* x [n] + x [n][1], both of one parameter, spread by hand. */
static void twice_value(const struct job *j, double *y)
{
	for (size_t i = 0; i < j->n * j->n; i++)
		y[i] = j->x[0][i % j->n] * j->x[0][i / j->n];
}

static struct tensor *twice_run(struct job *j, struct tensor *const *x)
{
	struct tensor *b = tape_reshape(x[0], TAPE_SHAPE(j->n, 1));

	return tape_multiply(tape_spread(x[0], TAPE_SHAPE(j->n, j->n)), b);
}

static void twice_make(struct job *j)
{
	j->n = random_between(1, 6);
	input_add(j, TAPE_SHAPE(j->n), -2, 2);
	j->value = twice_value;
	j->run = twice_run;
}

static const struct {
	const char *name;
	void (*make)(struct job *j);
	int which;
} test[] = {
	{ "add", pair_make, 0 },
	{ "subtract", pair_make, 1 },
	{ "multiply", pair_make, 2 },
	{ "divide", pair_make, 3 },
	{ "ReLU", function_make, TAPE_RELU },
	{ "GELU", function_make, TAPE_GELU },
	{ "SiLU", function_make, TAPE_SILU },
	{ "sigmoid", function_make, TAPE_SIGMOID },
	{ "tanh", function_make, TAPE_TANH },
	{ "exp", function_make, TAPE_EXP },
	{ "log", function_make, TAPE_LOG },
	{ "sqrt", function_make, TAPE_SQRT },
	{ "scale", function_make, TAPE_FUNCTIONS },
	{ "sum", reduce_make, TAPE_SUM },
	{ "mean", reduce_make, TAPE_MEAN },
	{ "max", reduce_make, TAPE_MAX },
	{ "of all elements", total_make, 0 },
	{ "softmax", softmax_make, 0 },
	{ "norm", norm_make, 0 },
	{ "embedding", embedding_make, 0 },
	{ "cross-entropy", loss_make, 0 },
	{ "linear", linear_make, 0 },
	{ "attention", attention_make, 0 },
	{ "attention to some keys", attention_make, 1 },
	{ "views", view_make, 0 },
	{ "append", append_make, 0 },
	{ "a tensor twice", twice_make, 0 },
};

/* ---- running ---- */

struct result {
	struct tape *t;
	struct err e;
	struct tensor *x[MOST], *y;
};

/* Forward; the weights c of the outputs are made the first time. */
static struct tensor *job_begin(struct job *j, struct result *r,
				struct threads *pool)
{
	*r = (struct result){ 0 };
	r->t = tape_new(pool, &r->e);
	for (unsigned i = 0; i < j->n_x; i++) {
		r->x[i] = tape_param(r->t, j->s[i]);
		for (size_t k = 0; k < tape_count(r->x[i]); k++)
			r->x[i]->data[k] = (float)j->x[i][k];
	}
	r->y = j->run(j, r->x);
	if (!r->y)
		return NULL;
	j->n_y = tape_count(r->y);
	float *c = calloc(j->n_y + 1, sizeof(*c));
	if (!j->c) {
		j->c = calloc(j->n_y + 1, sizeof(*j->c));
		for (size_t i = 0; i < j->n_y; i++)
			j->c[i] = (float)random_unit();
	}
	for (size_t i = 0; i < j->n_y; i++)
		c[i] = (float)j->c[i];
	struct tensor *loss = tape_reduce_all(
		TAPE_SUM,
		tape_multiply(r->y, tape_input(r->t, r->y->shape, c)));
	free(c);
	return loss;
}

static double value_error(struct job *j, const struct result *r)
{
	double most = 0, size = .1;
	double *y = calloc(j->n_y + 1, sizeof(*y));

	j->value(j, y);
	for (size_t i = 0; i < j->n_y; i++) {
		if (!isfinite(r->y->data[i]))
			most = INFINITY;
		most = fmax(most, fabs(y[i] - r->y->data[i]));
		size = fmax(size, fabs(y[i]));
	}
	free(y);
	return most / size;
}

static double slope_error(struct job *j, const struct result *r)
{
	double most = 0;

	for (unsigned i = 0; i < j->n_x; i++)
		if (tape_count(r->x[i]))
			most = fmax(most, grad_error(weighted_sum, j, j->x[i],
						     r->x[i]->grad,
						     tape_count(r->x[i]), 1,
						     true));
	return most;
}

static void test_gradients(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		double value = 0, slope = 0;

		for (int round = 0; round < ROUNDS; round++) {
			struct job j = { .which = test[i].which };
			struct result r;

			test[i].make(&j);
			struct tensor *loss = job_begin(&j, &r, NULL);
			if (!tape_backward(loss)) {
				diag("%s: %s", test[i].name, r.e.msg);
				value = INFINITY;
			} else {
				value = fmax(value, value_error(&j, &r));
				slope = fmax(slope, slope_error(&j, &r));
			}
			tape_free(r.t);
			job_fini(&j);
		}
		if (!ok(value <= BOUND, "%s: values", test[i].name) |
		    !ok(slope <= BOUND, "%s: gradients", test[i].name))
			diag("%.2e, %.2e", value, slope);
	}
}

/* ---- defects ---- */

static struct {
	void (*back)(struct tape *t, const struct tape_line *l);
	unsigned operand;
	bool missing; /* nothing is added; else all elements are off */
} planted;

/* Element i of a tensor's gradient, in order. */
static float *grad_at(const struct tensor *x, size_t i)
{
	size_t at = 0;

	for (unsigned k = x->shape.n; k--; i /= x->shape.dim[k])
		at += i % x->shape.dim[k] * x->stride[k];
	return x->grad + at;
}

static void back_planted(struct tape *t, const struct tape_line *l)
{
	const struct tensor *x = l->in[planted.operand];
	size_t n = tape_count(x);
	float *was = malloc((n + 1) * sizeof(*was));

	for (size_t i = 0; i < n; i++)
		was[i] = *grad_at(x, i);
	planted.back(t, l);
	if (planted.missing)
		for (size_t i = 0; i < n; i++)
			*grad_at(x, i) = was[i];
	else
		for (size_t i = 0; i < n; i++)
			*grad_at(x, i) += 1e-3f * (float)(1 + i % 3);
	free(was);
}

/* Does the error of a defect in operand `k` of line `i` show? */
static bool is_seen(struct job *j, size_t i, unsigned k, bool missing,
		    bool *there)
{
	struct result r;
	struct tensor *loss = job_begin(j, &r, NULL);
	struct tape_line *l = &r.t->line.v[i];
	const struct tensor *x = l->in[k];
	bool seen = false;

	*there = x && x->grad && tape_count(x);
	if (*there) {
		planted.back = l->back;
		planted.operand = k;
		planted.missing = missing;
		l->back = back_planted;
		tape_backward(loss);
		seen = slope_error(j, &r) > BOUND;
	}
	tape_free(r.t);
	return seen;
}

static size_t count_lines(struct job *j)
{
	struct result r;
	size_t n;

	job_begin(j, &r, NULL);
	n = r.t->line.n;
	tape_free(r.t);
	return n;
}

/* A job where something is learnt. */
static void job_sloped(struct job *j, size_t of)
{
	double most = 0;

	while (most < .1) {
		*j = (struct job){ .which = test[of].which };
		test[of].make(j);
		count_lines(j);
		for (unsigned i = 0; i < j->n_x; i++)
			for (size_t k = 0; k < tape_shape_count(&j->s[i]); k++)
				most = fmax(most, fabs(grad_slope(
							  weighted_sum, j,
							  j->x[i] + k)));
		if (most < .1)
			job_fini(j);
	}
}

static void test_mutants(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		unsigned tried = 0, seen = 0;
		struct job j;

		job_sloped(&j, i);
		for (size_t l = 0, n = count_lines(&j); l < n; l++)
			for (unsigned k = 0; k < 2 * TAPE_OPERANDS; k++) {
				bool there;
				seen += is_seen(&j, l, k / 2, k % 2, &there);
				tried += there;
			}
		if (!ok(tried > 1 && seen == tried, "%s: every defect is seen",
			test[i].name))
			diag("%u of %u", seen, tried);
		job_fini(&j);
	}
}

/* Bits are those of one thread, however many there are. */
static void test_threads(void)
{
	struct err e = { 0 };
	struct threads *pool = threads_new(3, &e);
	bool same = true;

	for (int round = 0; round < ROUNDS; round++) {
		struct job j = { 0 };
		struct result one, three;

		(round % 2 ? linear_make : attention_make)(&j);
		tape_backward(job_begin(&j, &one, NULL));
		tape_backward(job_begin(&j, &three, pool));
		for (unsigned i = 0; i < j.n_x; i++)
			same &= !memcmp(one.x[i]->grad, three.x[i]->grad,
					tape_count(one.x[i]) * sizeof(float));
		tape_free(one.t);
		tape_free(three.t);
		job_fini(&j);
	}
	ok(same, "1 and 3 threads give the same bits");
	threads_free(pool);
}

/* ---- what does not fit ---- */

static void test_refused(void)
{
	struct err e = { 0 };
	struct tape *t = tape_new(NULL, &e);
	struct tensor *x = tape_param(t, TAPE_SHAPE(3, 4));
	struct tensor *w = tape_param(t, TAPE_SHAPE(5, 6));
	struct tensor *v = tape_param(t, TAPE_SHAPE(4));
	struct tensor *one = tape_input(t, (struct tape_shape){ 0 }, NULL);
	static const uint32_t three[] = { 0, 1, 4 };

#define REFUSED(call, name, ...)                                   \
	do {                                                       \
		static const char *const part[] = { __VA_ARGS__ }; \
		e = (struct err){ 0 };                             \
		ok(!(call), "%s: is refused", name);               \
		for (size_t i = 0; i < ARRAY_SIZE(part); i++)      \
			has_str(e.msg, part[i], "%s: says %s",     \
				name, part[i]);                    \
	} while (0)
	REFUSED(tape_linear(x, w, NULL), "linear", "linear", "[3, 4]",
		"[5, 6]", "[out, in]");
	REFUSED(tape_linear(x, tape_swap(x, 0, 1), v), "a bias too long",
		"the bias [4]");
	REFUSED(tape_add(x, w), "add", "add", "[3, 4]", "[5, 6]");
	REFUSED(tape_norm(x, w, 0), "norm", "x is [3, 4] and w [5, 6]");
	REFUSED(tape_softmax(one), "softmax", "one number");
	REFUSED(tape_reshape(x, TAPE_SHAPE(5)), "reshape", "12 elements",
		"[5] of 5");
	REFUSED(tape_slice(x, 1, 3, 2), "slice", "2 elements from 3",
		"[3, 4]");
	REFUSED(tape_swap(x, 0, 2), "swap", "dimensions 0 and 2");
	REFUSED(tape_spread(x, TAPE_SHAPE(3, 5)), "spread", "[3, 4]",
		"[3, 5]");
	REFUSED(tape_reduce(TAPE_SUM, x, 2), "sum", "dimension 2 of [3, 4]");
	REFUSED(tape_reduce(TAPE_MEAN, tape_slice(x, 0, 0, 0), 0),
		"a mean of nothing", "mean", "[0, 4]", "not empty");
	REFUSED(tape_embedding(x, TAPE_SHAPE(3), three), "embedding",
		"id 2 is 4", "3 rows");
	REFUSED(tape_cross_entropy(x, three), "cross-entropy",
		"target 2 is 4", "4 logits");
	REFUSED(tape_attention(x, w, w, false), "attention", "q is [3, 4]",
		"k [5, 6]");
	REFUSED(tape_attention(x, tape_slice(x, 0, 0, 2),
			       tape_slice(x, 0, 0, 2), true),
		"causal, with too few keys", "n at most m");
	REFUSED(tape_attention_seen(x, x, x, w), "keys of other tensors",
		"what is seen [5, 6]", "and [..., n, m]");
	REFUSED(tape_append(x, w, 0), "append", "[3, 4] and [5, 6]",
		"dimension 0");
	REFUSED(tape_append(x, x, 2), "append beyond", "dimension 2");
	REFUSED(tape_backward(x), "backward", "[3, 4]", "one element");
	e = (struct err){ 0 };
	tape_reshape(tape_linear(tape_add(x, w), w, NULL), TAPE_SHAPE(7));
	has_str(e.msg, "add: ", "the first error stays");
	ok(!tape_backward(one), "and nothing is learnt after it");
	struct train_rule r;
	train_rule_init(&r);
	r.method = TRAIN_MUON;
	REFUSED(tape_update(t, &r, 0, NULL), "Muon", "muon", "adamw or sgd");
	tape_free(t);
}

/* ---- the optimizer, by its formulas ---- */

static void test_update(enum train_method method)
{
	const char *name = train_method_name(method);
	struct err e = { 0 };
	struct tape *t = tape_new(NULL, &e);
	struct tensor *p[] = { tape_param(t, TAPE_SHAPE(70, 80)),
			       tape_param(t, TAPE_SHAPE(9)) };
	double w[2] = { 0, 0 }, m[2] = { 0 }, v[2] = { 0 }, norm, got;
	struct train_rule r;

	train_rule_init(&r);
	r.method = method;
	r.steps = 4;
	for (int i = 0; i < 2; i++) {
		tape_fill(p[i], 1, 5 + (uint64_t)i);
		w[i] = p[i]->data[8];
	}
	for (uint64_t step = 0; step < 4; step++) {
		double rate = train_rate(&r, step), off = 0;

		norm = 0;
		for (int i = 0; i < 2; i++)
			for (size_t k = 0; k < tape_count(p[i]); k++) {
				p[i]->grad[k] = (float)random_unit();
				norm += pow(p[i]->grad[k], 2);
			}
		norm = sqrt(norm);
		for (int i = 0; i < 2; i++) {
			double g = p[i]->grad[8] * r.clip / norm;
			w[i] *= 1 - rate * (i ? 0 : r.decay);
			m[i] = method == TRAIN_SGD ?
				       r.momentum * m[i] + g :
				       r.beta1 * m[i] + (1 - r.beta1) * g;
			v[i] = r.beta2 * v[i] + (1 - r.beta2) * g * g;
			double n = (double)step + 1;
			w[i] -= method == TRAIN_SGD ?
					rate * m[i] :
					rate * m[i] / (1 - pow(r.beta1, n)) /
						(sqrt(v[i] /
						      (1 - pow(r.beta2, n))) +
						 r.epsilon);
		}
		tape_update(t, &r, step, &got);
		for (int i = 0; i < 2; i++)
			off = fmax(off, fabs(p[i]->data[8] - w[i]));
		if (!ok(off < 1e-6 && fabs(got / norm - 1) < 1e-6,
			"%s, step %u: as its formula", name, (unsigned)step))
			diag("%.2e, length %g of %g", off, got, norm);
	}
	ok(p[0]->grad[8] == 0, "%s: gradients are 0 then", name);
	p[1]->grad[0] = NAN;
	float was = p[0]->data[8];
	tape_update(t, &r, 4, &got);
	ok(isnan(got) && p[0]->data[8] == was && p[1]->grad[0] == 0,
	   "%s: what is no number changes nothing", name);
	tape_free(t);
}

/* ---- learning ---- */

#define SPIRAL 194 /* points, of two arms of one turn and a half */

static struct tensor *spiral_model(struct tensor *const *p, struct tensor *x)
{
	x = tape_apply(TAPE_TANH, tape_linear(x, p[0], p[1]));
	x = tape_apply(TAPE_TANH, tape_linear(x, p[2], p[3]));
	return tape_linear(x, p[4], p[5]);
}

static void test_spirals(void)
{
	struct err e = { 0 };
	struct tape *t = tape_new(NULL, &e);
	struct tensor *p[6], *loss;
	static const size_t width[] = { 2, 32, 32, 2 };
	float point[SPIRAL][2], last = INFINITY;
	uint32_t arm[SPIRAL];
	struct train_rule r;

	for (int i = 0; i < SPIRAL; i++) {
		double at = (i / 2) / (SPIRAL / 2.), far = .1 + .9 * at;
		double angle = 3 * M_PI * at + M_PI * (i % 2);
		arm[i] = (uint32_t)i % 2;
		point[i][0] = (float)(far * cos(angle));
		point[i][1] = (float)(far * sin(angle));
	}
	for (int i = 0; i < 3; i++) {
		p[2 * i] = tape_param(t, TAPE_SHAPE(width[i + 1], width[i]));
		p[2 * i + 1] = tape_param(t, TAPE_SHAPE(width[i + 1]));
		tape_fill(p[2 * i], i ? .3f : 3, 11 + (uint64_t)i);
		tape_fill(p[2 * i + 1], i ? 0 : 1, 21);
	}
	train_rule_init(&r);
	r.rate = .01;
	r.decay = 0;
	r.steps = 600;
	for (uint64_t step = 0; step < r.steps; step++) {
		loss = tape_cross_entropy(
			spiral_model(p, tape_input(t, TAPE_SHAPE(SPIRAL, 2),
						   point[0])),
			arm);
		if (!tape_backward(loss) || !tape_update(t, &r, step, NULL))
			break;
		last = loss->data[0];
		tape_clear(t);
	}
	ok(last < .05f, "two spirals: an MLP tells them apart, loss below "
	   "0.05");
	diag("two spirals: loss %.4f; %s", last, e.msg);
	tape_free(t);
}

#define DIGITS 10
#define LENGTH 8
#define BATCH  32
#define WIDE   32

/* Of a layer: norm, queries, keys, values, output, norm, MLP in and out. */
enum { N1, Q, K, V, O, N2, UP, DOWN, LAYER };
#define LAYERS 2
struct sorter {
	struct tensor *digit, *place, *head, *layer[LAYERS][LAYER];
};

static void sorter_init(struct sorter *s, struct tape *t)
{
	uint64_t n = 100;

	s->digit = tape_param(t, TAPE_SHAPE(DIGITS, WIDE));
	s->place = tape_param(t, TAPE_SHAPE(LENGTH, WIDE));
	s->head = tape_param(t, TAPE_SHAPE(DIGITS, WIDE));
	tape_fill(s->digit, 1, n++);
	tape_fill(s->place, 1, n++);
	tape_fill(s->head, .3f, n++);
	for (int l = 0; l < LAYERS; l++)
		for (int i = 0; i < LAYER; i++) {
			bool norm = i == N1 || i == N2;
			size_t rows = i == UP ? 2 * WIDE : WIDE;
			size_t cols = i == DOWN ? 2 * WIDE : WIDE;
			s->layer[l][i] = tape_param(
				t, norm ? TAPE_SHAPE(WIDE) :
					  TAPE_SHAPE(rows, cols));
			tape_fill(s->layer[l][i], norm ? 0 : .3f, n++);
			for (int k = 0; norm && k < WIDE; k++)
				s->layer[l][i]->data[k] = 1;
		}
}

/* [BATCH][LENGTH][WIDE] -> [BATCH][heads][LENGTH][WIDE / heads] */
static struct tensor *split_heads(struct tensor *x)
{
	return tape_swap(tape_reshape(x, TAPE_SHAPE(BATCH, LENGTH, 4,
						    WIDE / 4)), 1, 2);
}

static struct tensor *sorter_layer(struct tensor *const *p, struct tensor *x)
{
	struct tensor *n = tape_norm(x, p[N1], 1e-6f);
	struct tensor *a = tape_attention(
		split_heads(tape_linear(n, p[Q], NULL)),
		split_heads(tape_linear(n, p[K], NULL)),
		split_heads(tape_linear(n, p[V], NULL)), false);

	a = tape_reshape(tape_swap(a, 1, 2), TAPE_SHAPE(BATCH, LENGTH, WIDE));
	x = tape_add(x, tape_linear(a, p[O], NULL));
	n = tape_linear(tape_norm(x, p[N2], 1e-6f), p[UP], NULL);
	return tape_add(x, tape_linear(tape_apply(TAPE_GELU, n), p[DOWN],
				       NULL));
}

static struct tensor *sorter_logits(struct sorter *s, const uint32_t *ids)
{
	struct tensor *x = tape_embedding(s->digit, TAPE_SHAPE(BATCH, LENGTH),
					  ids);

	x = tape_add(x, s->place);
	for (int l = 0; l < LAYERS; l++)
		x = sorter_layer(s->layer[l], x);
	return tape_linear(x, s->head, NULL);
}

static int compare_digits(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void make_digits(uint32_t ids[BATCH][LENGTH],
			uint32_t sorted[BATCH][LENGTH])
{
	for (int b = 0; b < BATCH; b++) {
		for (int i = 0; i < LENGTH; i++)
			ids[b][i] = (uint32_t)random_between(0, DIGITS - 1);
		memcpy(sorted[b], ids[b], sizeof(sorted[b]));
		qsort(sorted[b], LENGTH, sizeof(**sorted), compare_digits);
	}
}

/* Digits of new sequences that are put where they belong, of 1000. */
static int count_right(struct tape *t, struct sorter *s)
{
	uint32_t ids[BATCH][LENGTH], want[BATCH][LENGTH];
	int right = 0;

	make_digits(ids, want);
	const struct tensor *y = sorter_logits(s, ids[0]);
	for (int i = 0; i < BATCH * LENGTH; i++) {
		const float *row = y->data + i * DIGITS;
		uint32_t best = 0;
		for (uint32_t k = 1; k < DIGITS; k++)
			best = row[k] > row[best] ? k : best;
		right += best == want[i / LENGTH][i % LENGTH];
	}
	tape_clear(t);
	return right * 1000 / (BATCH * LENGTH);
}

/* No sequence is met twice: what is learnt is how to sort. */
static void test_sorter(void)
{
	uint32_t ids[BATCH][LENGTH], want[BATCH][LENGTH];
	struct err e = { 0 };
	struct tape *t = tape_new(NULL, &e);
	struct sorter s;
	struct train_rule r;
	double sum = 0;

	sorter_init(&s, t);
	train_rule_init(&r);
	r.rate = .004;
	r.decay = 0;
	r.warmup = 20;
	r.steps = 500;
	for (uint64_t step = 0; step < r.steps; step++) {
		make_digits(ids, want);
		struct tensor *loss = tape_cross_entropy(
			sorter_logits(&s, ids[0]), want[0]);
		if (!tape_backward(loss) || !tape_update(t, &r, step, NULL))
			break;
		sum += step >= r.steps - 20 ? loss->data[0] / 20 : 0;
		tape_clear(t);
	}
	int right = count_right(t, &s);
	ok(e.code == ERR_NONE && sum < .15, "digits: attention sorts eight of "
	   "them, loss below 0.15");
	ok(right >= 950, "95 %% of digits of new sequences are right");
	diag("digits: loss %.4f, %d of 1000 right; %s", sum, right, e.msg);
	tape_free(t);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	test_gradients();
	test_mutants();
	test_threads();
	test_refused();
	test_update(TRAIN_ADAMW);
	test_update(TRAIN_SGD);
	test_spirals();
	test_sorter();
	return plan_done();
}
