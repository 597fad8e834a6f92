/*
 * train-jobs - every operation of a training step with its way back, on shapes
 * of a seed, and how far its values and gradients are from those of double
 * precision (tests/ref/grad.h).  For tests of whoever executes them.
 */
#ifndef T0_TESTS_TRAIN_JOBS_H
#define T0_TESTS_TRAIN_JOBS_H

#include "engine/train/train.h"
#include "tests/ref/engram.h"
#include "tests/ref/grad.h"
#include "tests/tap.h"

#define MOST 10 /* operands that are told apart */

static uint64_t seed = 20;

static inline double random_unit(void)
{
	return (double)(int64_t)(random_next(&seed) >> 11) * 0x1p-52 - 1;
}

static inline uint32_t random_between(uint32_t from, uint32_t to)
{
	return from + (uint32_t)(random_next(&seed) % (to - from + 1));
}

/*
 * One operation with its way back.  Inputs are in both precisions; the
 * sum_weighted is the sum of c[i] y[i].
 */
struct job {
	struct train_graph g;
	struct grad_shape s;
	uint32_t value[MOST]; /* inputs that have a gradient */
	uint32_t gradient[MOST];
	double *x[MOST];
	double *slope[MOST]; /* of the sum; NaN: not known yet */
	size_t n[MOST];
	unsigned n_inputs;
	uint32_t y, dy; /* TRAIN_NONE: the loss */
	double *c;
	uint32_t *position, *id, *target;
	int tokens, out, in;
	void (*row)(struct job *j, int t, double *y); /* in double */
	/* Gradient i begins as was[i]; added[i]: it is added to. */
	double *was[MOST];
	bool added[MOST];
};

static inline double sum_weighted(void *ctx)
{
	struct job *j = ctx;
	size_t all = (size_t)j->tokens * j->out;
	double sum = 0, *y = calloc(all, sizeof(*y));

	for (int t = 0; t < j->tokens; t++)
		j->row(j, t, y + (size_t)t * j->out);
	for (size_t i = 0; i < all; i++)
		sum += j->c[i] * y[i];
	free(y);
	return sum;
}

static inline uint32_t value_new(struct job *j, enum train_home home,
				 size_t rows, size_t cols)
{
	return train_value_add(&j->g, home, rows, cols, 4);
}

/* An input with a gradient; what is a weight gets one that is added to. */
static inline uint32_t input_new(struct job *j, size_t rows, size_t cols)
{
	unsigned i = j->n_inputs++;

	j->value[i] = value_new(j, TRAIN_INPUT, rows, cols);
	j->gradient[i] = value_new(j, TRAIN_GRADIENT, rows, cols);
	j->n[i] = rows * cols;
	j->x[i] = calloc(j->n[i], sizeof(double));
	j->slope[i] = calloc(j->n[i], sizeof(double));
	for (size_t k = 0; k < j->n[i]; k++)
		j->slope[i][k] = NAN;
	for (size_t k = 0; k < j->n[i]; k++)
		j->x[i][k] = (float)(1.5 * random_unit());
	return j->value[i];
}

static inline void shape_new(struct job *j, uint32_t rows, uint32_t length,
			     int heads, int kv, int dim)
{
	*j = (struct job){ .s = { .heads = heads, .kv_heads = kv, .dim = dim,
				  .theta = 1e4, .eps = 1e-6 },
			   .tokens = (int)(rows * length) };
	j->g = (struct train_graph){
		.rows = rows, .length = length,
		.config = { .heads = (uint32_t)heads, .kv_heads = (uint32_t)kv,
			    .head_dim = (uint32_t)dim, .rope_theta = 1e4,
			    .norm_eps = 1e-6 },
	};
	j->position = calloc((size_t)j->tokens, 4);
	j->id = calloc((size_t)j->tokens, 4);
	j->target = calloc((size_t)j->tokens, 4);
	j->g.cosine = value_new(j, TRAIN_INPUT, length, (size_t)dim / 2);
	j->g.sine = value_new(j, TRAIN_INPUT, length, (size_t)dim / 2);
	j->g.position = value_new(j, TRAIN_INPUT, (size_t)j->tokens, 1);
	j->g.ids = value_new(j, TRAIN_INPUT, (size_t)j->tokens, 1);
	j->g.target = value_new(j, TRAIN_INPUT, (size_t)j->tokens, 1);
	/* Documents of random lengths, cut where a row ends. */
	for (int t = 0; t < j->tokens; t++)
		j->position[t] = t % (int)length == 0 ||
						 random_next(&seed) % 9 == 0 ?
					 0 : j->position[t - 1] + 1;
}

static inline void output_new(struct job *j, size_t cols)
{
	j->out = (int)cols;
	j->y = value_new(j, TRAIN_INPUT, (size_t)j->tokens, cols);
	j->dy = value_new(j, TRAIN_INPUT, (size_t)j->tokens, cols);
}

static inline uint32_t scratch_new(struct job *j, size_t rows, size_t cols)
{
	return value_new(j, TRAIN_PASSING, rows, cols);
}

static inline void job_fini(struct job *j)
{
	for (unsigned i = 0; i < j->n_inputs; i++) {
		free(j->x[i]);
		free(j->slope[i]);
		free(j->was[i]);
	}
	free(j->c);
	free(j->position);
	free(j->id);
	free(j->target);
	train_graph_fini(&j->g);
}

/* ---- the operations ---- */

static inline void row_norm(struct job *j, int t, double *y)
{
	grad_norm(j->x[0] + (size_t)t * j->out, j->x[1], j->out, j->s.eps, y);
}

static inline void norm_job(struct job *j, bool add)
{
	uint32_t tokens = random_between(1, 90), n = random_between(1, 60);

	shape_new(j, 1, tokens, 1, 1, 2);
	uint32_t x = input_new(j, tokens, n), w = input_new(j, 1, n);
	uint32_t scale = scratch_new(j, tokens, 1);

	output_new(j, n);
	TRAIN_OP(&j->g, NORM, x, w, j->y, scale);
	TRAIN_OP(&j->g, NORM_BACK, j->dy, x, w, scale, j->gradient[0],
		 j->gradient[1], scratch_new(j, (tokens + 31) / 32, n))->add =
		add;
	j->row = row_norm;
}

static inline void norm_added(struct job *j)
{
	norm_job(j, true);
}

static inline void norm_written(struct job *j)
{
	norm_job(j, false);
}

static inline void row_turn(struct job *j, int t, double *y)
{
	for (int h = 0; h < j->s.heads; h++) {
		double *out = y + h * j->s.dim;

		grad_norm(j->x[0] + ((size_t)t * j->s.heads + h) * j->s.dim,
			  j->x[1], j->s.dim, j->s.eps, out);
		grad_rope(out, j->s.dim, j->s.theta, j->position[t]);
	}
}

static inline void turn_job(struct job *j)
{
	uint32_t length = random_between(1, 40), heads = random_between(1, 5);
	uint32_t dim = 2 * random_between(1, 20), n = heads * dim;

	shape_new(j, 2, length, (int)heads, 1, (int)dim);
	uint32_t x = input_new(j, 2 * length, n), w = input_new(j, 1, dim);
	uint32_t scale = scratch_new(j, 2 * length, heads);

	output_new(j, n);
	TRAIN_OP(&j->g, TURN, x, w, j->g.position, j->g.cosine, j->g.sine,
		 j->y, scale);
	TRAIN_OP(&j->g, TURN_BACK, j->dy, x, w, j->g.position, j->g.cosine,
		 j->g.sine, scale, j->gradient[0], j->gradient[1],
		 scratch_new(j, (2 * length * heads + 31) / 32, dim));
	j->row = row_turn;
}

static inline void row_linear(struct job *j, int t, double *y)
{
	if (j->n_inputs > 2)
		memcpy(y, j->x[2] + (size_t)t * j->out,
		       (size_t)j->out * sizeof(*y));
	grad_mat(j->x[1], j->x[0] + (size_t)t * j->in, j->out, j->in, y);
}

static inline void linear_job(struct job *j, bool residual)
{
	uint32_t tokens = random_between(1, 70), in = random_between(1, 50),
		 out = random_between(1, 50);

	shape_new(j, 1, tokens, 1, 1, 2);
	uint32_t x = input_new(j, tokens, in), w = input_new(j, out, in);
	uint32_t z = residual ? input_new(j, tokens, out) : TRAIN_NONE;

	j->in = (int)in;
	output_new(j, out);
	TRAIN_OP(&j->g, LINEAR, x, w, z, j->y);
	TRAIN_OP(&j->g, LINEAR_DX, j->dy, w, j->gradient[0])->add = residual;
	TRAIN_OP(&j->g, LINEAR_DW, j->dy, x, j->gradient[1],
		 scratch_new(j, out, tokens));
	j->row = row_linear;
}

static inline void linear_alone(struct job *j)
{
	linear_job(j, false);
}

/* The residual's gradient is dy itself: no operation makes it. */
static inline void linear_residual(struct job *j)
{
	linear_job(j, true);
	j->gradient[2] = j->dy;
}

static inline void row_attention(struct job *j, int t, double *y)
{
	grad_attend(&j->s, j->x[0], j->x[1], j->x[2], j->position, t, y);
}

static inline void attention_job(struct job *j, uint32_t rows, uint32_t length,
			  int heads, int kv, int dim, bool whole)
{
	shape_new(j, rows, length, heads, kv, dim);
	size_t tokens = (size_t)rows * length;
	uint32_t q = input_new(j, tokens, (size_t)heads * dim);
	uint32_t k = input_new(j, tokens, (size_t)kv * dim);
	uint32_t v = input_new(j, tokens, (size_t)kv * dim);
	uint32_t lse = scratch_new(j, tokens, (size_t)heads);

	for (uint32_t t = 0; whole && t < tokens; t++)
		j->position[t] = t % length;
	output_new(j, (size_t)heads * dim);
	TRAIN_OP(&j->g, ATTENTION, q, k, v, j->g.position, j->y, lse);
	TRAIN_OP(&j->g, ATTENTION_BACK, j->dy, j->y, q, k, v, j->g.position,
		 lse, j->gradient[0], j->gradient[1], j->gradient[2],
		 scratch_new(j, tokens, (size_t)heads));
	j->row = row_attention;
}

static inline void attention_ratio_2(struct job *j)
{
	attention_job(j, 2, 19, 4, 2, 6, false);
}

static inline void attention_ratio_3(struct job *j)
{
	attention_job(j, 1, 71, 3, 1, 10, false);
}

static inline void attention_random(struct job *j)
{
	uint32_t kv = random_between(1, 3);

	attention_job(j, random_between(1, 2), random_between(1, 80),
		      (int)(kv * random_between(1, 4)), (int)kv,
		      (int)(2 * random_between(1, 10)), false);
}

static inline void attention_blocks(struct job *j)
{
	attention_job(j, 1, 131, 1, 1, 16, true);
}

static inline void attention_one(struct job *j)
{
	attention_job(j, 3, 1, 2, 2, 4, true);
}

static inline void attention_documents(struct job *j)
{
	attention_job(j, 1, 140, 2, 1, 4, true);
	for (uint32_t t = 0; t < 140; t++) /* 0..69, 70..139 */
		j->position[t] = t % 70;
}

static inline void row_swiglu(struct job *j, int t, double *y)
{
	for (int i = 0; i < j->out; i++) {
		size_t at = (size_t)t * j->out + i;
		y[i] = grad_silu(j->x[0][at]) * j->x[1][at];
	}
}

static inline void swiglu_job(struct job *j)
{
	uint32_t tokens = random_between(1, 30), n = random_between(1, 40);

	shape_new(j, 1, tokens, 1, 1, 2);
	uint32_t gate = input_new(j, tokens, n), up = input_new(j, tokens, n);

	output_new(j, n);
	TRAIN_OP(&j->g, SWIGLU, gate, up, j->y);
	TRAIN_OP(&j->g, SWIGLU_BACK, j->dy, gate, up, j->gradient[0],
		 j->gradient[1]);
	j->row = row_swiglu;
}

static inline void row_embed(struct job *j, int t, double *y)
{
	memcpy(y, j->x[0] + (size_t)j->id[t] * j->out,
	       (size_t)j->out * sizeof(*y));
}

static inline void embed_job(struct job *j)
{
	uint32_t tokens = random_between(1, 50), n = random_between(1, 40);

	shape_new(j, 1, tokens, 1, 1, 2);
	uint32_t table = input_new(j, 9, n);

	for (uint32_t t = 0; t < tokens; t++)
		j->id[t] = random_between(0, 8);
	output_new(j, n);
	TRAIN_OP(&j->g, EMBED, j->g.ids, table, j->y);
	TRAIN_OP(&j->g, EMBED_BACK, j->g.ids, j->dy, j->gradient[0]);
	j->row = row_embed;
}

static inline void row_loss(struct job *j, int t, double *y)
{
	if (j->target[t] != TRAIN_IGNORE)
		*y = grad_surprise(j->x[1], j->x[0] + (size_t)t * j->in,
				   (int)(j->n[1] / (size_t)j->in), j->in,
				   j->target[t]);
}

static inline void loss_job(struct job *j, uint32_t vocab, uint32_t chunk)
{
	uint32_t tokens = random_between(10, 50), n = random_between(1, 30);

	shape_new(j, 1, tokens, 1, 1, 2);
	uint32_t x = input_new(j, tokens, n), w = input_new(j, vocab, n);
	uint32_t lse = scratch_new(j, tokens, 1);
	uint32_t logits = scratch_new(j, tokens, chunk);

	j->in = (int)n;
	for (uint32_t t = 0; t < tokens; t++) /* an empty tail, and a hole */
		j->target[t] = t + 4 > tokens || t == 3 ?
				       TRAIN_IGNORE :
				       random_between(0, vocab - 1);
	j->target[0] = 0;
	j->target[1] = vocab - 1;
	output_new(j, 1);
	TRAIN_OP(&j->g, LOSS, x, w, j->g.target, j->y, lse, logits);
	TRAIN_OP(&j->g, LOSS_BACK, x, w, j->g.target, lse, j->gradient[0],
		 j->gradient[1], logits, scratch_new(j, chunk, tokens));
	j->dy = TRAIN_NONE;
	j->row = row_loss;
}

static inline void loss_whole(struct job *j)
{
	uint32_t vocab = random_between(2, 90);

	loss_job(j, vocab, vocab);
}

static inline void loss_chunks(struct job *j)
{
	loss_job(j, random_between(20, 90), random_between(1, 19));
}

static inline void loss_singles(struct job *j)
{
	loss_job(j, 61, 60);
}

/* Inputs: the stream, the gate's norm, the table. */
static inline void row_engram(struct job *j, int t, double *y)
{
	const int n = j->out;
	const double *x = j->x[0] + (size_t)t * n, *of[2];
	double square = 0, dot = 0;

	for (int o = 0; o < 2; o++)
		of[o] = j->x[2] +
			(size_t)engram_ref_row(j->id + t, j->position[t], o,
					       j->g.config.engram.rows) *
				n;
	for (int i = 0; i < n; i++)
		square += x[i] * x[i];
	for (int i = 0; i < n; i++)
		dot += x[i] / sqrt(square / n + 1e-6) * j->x[1][i] *
		       (of[0][i] + of[1][i]);
	for (int i = 0; i < n; i++)
		y[i] = x[i] + (of[0][i] + of[1][i]) / (1 + exp(-dot / sqrt(n)));
}

static inline void engram_job(struct job *j)
{
	uint32_t rows = random_between(1, 2), length = random_between(1, 30);
	uint32_t n = random_between(2, 40), tokens = rows * length;

	shape_new(j, rows, length, 1, 1, 2);
	j->g.config.engram.rows = random_between(3, 11);
	for (uint32_t t = 0; t < tokens; t++)
		j->id[t] = random_between(0, 3);
	uint32_t x = input_new(j, tokens, n), w = input_new(j, 1, n);
	uint32_t table = input_new(j, 2 * j->g.config.engram.rows, n);
	uint32_t scale = scratch_new(j, tokens, 1);
	uint32_t gate = scratch_new(j, tokens, 1);
	output_new(j, n);
	j->gradient[0] = j->dy; /* in its place */
	TRAIN_OP(&j->g, ENGRAM, j->g.ids, j->g.position, x, w, table, j->y,
		 scale, gate);
	TRAIN_OP(&j->g, ENGRAM_BACK, j->g.ids, j->g.position, x, w, table,
		 scale, gate, j->dy, j->gradient[1], j->gradient[2],
		 scratch_new(j, tokens, 1));
	j->row = row_engram;
}

static const struct {
	const char *name;
	void (*make)(struct job *j);
} job_table[] = {
	{ "norm, written", norm_written },
	{ "norm, added", norm_added },
	{ "norm and rotation of heads", turn_job },
	{ "linear", linear_alone },
	{ "linear, to a residual", linear_residual },
	{ "attention of any shape", attention_random },
	{ "attention, 2 queries a key", attention_ratio_2 },
	{ "attention, 3 queries a key", attention_ratio_3 },
	{ "attention over blocks", attention_blocks },
	{ "attention of one token", attention_one },
	{ "attention of two documents", attention_documents },
	{ "swiglu", swiglu_job },
	{ "embedding", embed_job },
	{ "loss, all of the vocabulary", loss_whole },
	{ "loss, chunks", loss_chunks },
	{ "loss, a last chunk of one", loss_singles },
	{ "a table of runs of words", engram_job },
};
/* The last one is the host's alone. */
#define DEVICE_JOBS (ARRAY_SIZE(job_table) - 1)

/* ---- running ---- */

static inline void put_values(const struct train *x, const struct job *j)
{
	for (unsigned i = 0; i < j->n_inputs; i++) {
		float *to = train_data(x, j->value[i]);

		for (size_t k = 0; k < j->n[i]; k++)
			to[k] = (float)j->x[i][k];
	}
	const struct {
		uint32_t value;
		const uint32_t *from;
	} list[] = { { j->g.position, j->position }, { j->g.ids, j->id },
		     { j->g.target, j->target } };
	for (size_t i = 0; i < 3; i++)
		memcpy(train_data(x, list[i].value), list[i].from,
		       (size_t)j->tokens * 4);
	if (j->dy == TRAIN_NONE)
		return;
	float *dy = train_data(x, j->dy);
	for (int i = 0; i < j->tokens * j->out; i++)
		dy[i] = (float)j->c[i];
}

/* Is operand k added to, not written? */
static inline bool is_added(const struct train_op *op, unsigned k)
{
	char how = train_kind_operands(op->kind)[k];

	return how == 'a' || how == 'A' || (how == 'x' && op->add);
}

/* What is there before the operations, so that none takes it for zeros. */
static inline void gradients_begin(struct job *j)
{
	for (unsigned i = 0; i < j->n_inputs; i++) {
		if (j->gradient[i] == j->dy)
			continue;
		j->was[i] = calloc(j->n[i], sizeof(double));
		for (size_t k = 0; k < j->n[i]; k++)
			j->was[i][k] = (float)random_unit();
		for (uint32_t o = 0; o < j->g.n_ops; o++)
			for (unsigned k = 0; k < TRAIN_OPERANDS; k++)
				if (j->g.op[o].v[k] == j->gradient[i])
					j->added[i] = is_added(&j->g.op[o], k);
	}
}

static inline struct train *job_run(struct job *j, struct threads *t,
			     const struct train_backend *b)
{
	struct err e = { 0 };
	struct train *x;

	if (!j->c) {
		j->c = calloc((size_t)j->tokens * j->out, sizeof(*j->c));
		for (int i = 0; i < j->tokens * j->out; i++)
			j->c[i] = j->dy == TRAIN_NONE ? .25 :
							(float)random_unit();
		gradients_begin(j);
		if (!train_memory_plan(&j->g, &e))
			diag("%s", e.msg);
	}
	x = train_new(&j->g, t, b, &e);
	put_values(x, j);
	for (unsigned i = 0; i < j->n_inputs; i++)
		for (size_t k = 0; j->was[i] && k < j->n[i]; k++)
			((float *)train_data(x, j->gradient[i]))[k] =
				(float)j->was[i][k];
	train_scale(x, .25f);
	train_run(x, 0, j->g.n_ops, NULL);
	return x;
}

static inline double forward_error(struct job *j, const struct train *x)
{
	const float *got = train_data(x, j->y);
	double most = 0, size = 0;
	double *y = calloc((size_t)j->out, sizeof(*y));

	for (int t = 0; t < j->tokens; t++) {
		memset(y, 0, (size_t)j->out * sizeof(*y));
		j->row(j, t, y);
		for (int i = 0; i < j->out; i++) {
			most = fmax(most, fabs(y[i] - got[t * j->out + i]));
			size = fmax(size, fabs(y[i]));
		}
	}
	free(y);
	return most / size;
}

/* Of all inputs, the worst; some elements of every row are looked at. */
static inline double back_error(struct job *j, const struct train *x)
{
	double most = 0;

	for (unsigned i = 0; i < j->n_inputs; i++) {
		size_t step = 1 + j->n[i] / 100;
		size_t cols = j->g.value[j->gradient[i]].cols;

		if (step >= cols)
			step = cols > 1 ? cols - 1 : 1;
		const float *now = train_data(x, j->gradient[i]);
		float *got = calloc(j->n[i], sizeof(*got));
		for (size_t k = 0; k < j->n[i]; k++)
			got[k] = (float)(now[k] - (j->added[i] ? j->was[i][k] :
								 0));
		most = fmax(most, grad_error_kept(sum_weighted, j, j->x[i],
						  got, j->n[i], step, true,
						  j->slope[i]));
		free(got);
	}
	return most;
}

/* ---- defects of a result ---- */

/*
 * One element is off, a row is left out, or it is written where it should be
 * added to and the other way round.
 */
enum { ELEMENT, ROW, ADDED, DEFECTS };

/* The last row that has changed by more than a little, or NULL. */
static inline float *find_row(float *out, const float *was,
			      const struct train_value *v)
{
	float most = 0;
	size_t last = v->rows * v->cols;

	for (size_t i = 0; i < v->rows * v->cols; i++)
		most = fmaxf(most, fabsf(out[i] - was[i]));
	if (most < 1e-2f)
		return NULL;
	while (fabsf(out[last - 1] - was[last - 1]) < 1e-2f * most)
		last--;
	return out + (last - 1) / v->cols * v->cols;
}

static inline void plant_defect(int defect, bool added, const float *was,
				const struct train_value *v, float *out)
{
	size_t n = v->rows * v->cols;
	float *row = find_row(out, was, v), most = .5f;

	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(out[i]));
	if (defect == ADDED)
		for (size_t i = 0; i < n; i++)
			out[i] += added ? -was[i] : was[i];
	else if (defect == ROW && row)
		memcpy(row, was + (row - out), v->cols * sizeof(*row));
	else /* a row that should be 0, too */
		out[n - 1] += 1e-4f * most;
}

#endif
