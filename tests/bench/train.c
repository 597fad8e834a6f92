/*
 * A training step on the host: its share of the multiply-adds that all threads
 * do, of bf16 also of their best unit for that, and the share of AdamW's step
 * of what memory gives, all measured in turn.
 *
 *	tests/bench/train [THREADS]
 *
 * Shapes: 10 M parameters, and a seventh of Qwen3-0.6B (4 of its layers and as
 * much of its vocabulary) in rows of 512.  Operations are those of the products
 * and of attention, forward and backward; all else counts as time only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/train/train.h"
#include "tests/bench/rows.h"
#include "tests/bench/yard.h"

enum { ROUNDS = 5 };

static const struct {
	const char *name;
	struct qwen_config c;
	uint32_t rows, length;
} shape[] = {
	{ "10m",
	  { .layers = 7,
	    .hidden = 320,
	    .heads = 5,
	    .kv_heads = 5,
	    .head_dim = 64,
	    .ffn = 960,
	    .vocab = 2048 },
	  4,
	  512 },
	{ "0.6b/7",
	  { .layers = 4,
	    .hidden = 1024,
	    .heads = 16,
	    .kv_heads = 8,
	    .head_dim = 128,
	    .ffn = 3072,
	    .vocab = 21705 },
	  1,
	  512 },
};

struct job {
	struct train_graph g;
	struct train *x;
	struct qwen_roofline *flop, *read;
	struct yard yard;
};

static bool job_open(struct job *j, size_t i, enum qwen_weights type,
		     struct threads *t, struct err *e)
{
	struct qwen_config c = shape[i].c;
	struct train_how how = { .rows = shape[i].rows,
				 .length = shape[i].length,
				 .type = type,
				 .masters = true,
				 .method = TRAIN_ADAMW };

	*j = (struct job){ 0 };
	c.rope_theta = 1e6;
	c.norm_eps = 1e-6;
	c.tied = true;
	c.max_positions = how.length;
	if (!train_qwen3(&j->g, &c, &how, e) ||
	    !(j->x = train_new(&j->g, t, NULL, e)))
		return false;
	j->flop = qwen_roofline_new(t, qwen_kernels_best(), 1 << 20, e);
	j->read = j->flop ? qwen_roofline_new(t, qwen_kernels_best(),
					      (size_t)256 << 20, e) :
			    NULL;
	if (!j->read)
		return false;
	if (!yard_open(&j->yard, t))
		return err_set(e, ERR_NOMEM, "no memory to measure it with");
	train_random(j->x, 1);
	uint32_t *id = train_data(j->x, j->g.ids);
	uint32_t *position = train_data(j->x, j->g.position);
	uint32_t *target = train_data(j->x, j->g.target);
	uint64_t seed = 1;
	for (uint32_t k = 0; k < how.rows * how.length; k++) {
		id[k] = (uint32_t)(random_next(&seed) % c.vocab);
		target[k] = (uint32_t)(random_next(&seed) % c.vocab);
		position[k] = k % how.length;
	}
	return true;
}

static void job_close(struct job *j)
{
	qwen_roofline_free(j->flop);
	qwen_roofline_free(j->read);
	yard_close(&j->yard);
	train_free(j->x);
	train_graph_fini(&j->g);
}

/*
 * What memory needs for a step of AdamW at least: clipping reads gradients, the
 * step reads and writes them, weights and two states; 16 bits are written.
 */
static double least_seconds(const struct train_graph *g, double read,
			    double rewrite)
{
	double sum = 0;

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		double n = (double)p->rows * p->cols;

		sum += n * 4 / read + n * 32 / rewrite;
		if (p->master != p->weight)
			sum += n * 4 / rewrite;
	}
	return sum;
}

/* The faster of two moments: around what is measured. */
static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double best_unit(struct job *j)
{
	return qwen_roofline_product(j->flop, QWEN_W_BF16);
}

/* A step and its limits, once. */
struct round {
	double rate, share, unit, update_s, memory;
};

static struct round measure_round(struct job *j, const struct train_rule *rule,
				  uint64_t step)
{
	struct round r;
	double norm, fma = qwen_roofline_fma(j->flop), unit = best_unit(j);
	uint64_t from = time_mono_ns();

	train_run(j->x, 0, j->g.n_ops, NULL);
	train_update(j->x, rule, step, &norm, NULL);
	r.rate = train_flop(&j->g) / ((double)(time_mono_ns() - from) * 1e-9);
	r.share = r.rate / larger(fma, qwen_roofline_fma(j->flop));
	unit = larger(unit, best_unit(j));
	r.unit = r.rate / unit;

	double read = qwen_roofline_read(j->read);
	double rewrite = yard_rewrite(&j->yard);
	from = time_mono_ns();
	train_update(j->x, rule, step, &norm, NULL);
	r.update_s = (double)(time_mono_ns() - from) * 1e-9;
	r.memory = least_seconds(&j->g,
				 larger(read, qwen_roofline_read(j->read)),
				 larger(rewrite, yard_rewrite(&j->yard))) /
		   r.update_s;
	return r;
}

static void print_rounds(struct bench_rows *r, const char *shape_name,
			 enum qwen_weights type, const struct round *v,
			 unsigned n)
{
	double x[5][ROUNDS];
	char name[64];

	for (unsigned k = 0; k < n; k++) {
		x[0][k] = v[k].rate;
		x[1][k] = v[k].share;
		x[2][k] = v[k].unit;
		x[3][k] = v[k].update_s;
		x[4][k] = v[k].memory;
	}
	snprintf(name, sizeof(name), "train/%s-%s", shape_name,
		 qwen_weights_name(type));
	bench_case(r, name, NULL);
	printf("%-20s %7.1f GFLOP/s  %5.1f %% of the FMA limit", name + 6,
	       bench_rate(r, "FLOP/s", x[0], n) / 1e9,
	       100 * bench_ratio(r, "the FMA limit", RES_HIGHER, x[1], n));
	if (type == QWEN_W_BF16)
		printf(", %.1f %% of the best unit for bf16 (%s)",
		       100 * bench_ratio(r, "the best unit for bf16",
					 RES_HIGHER, x[2], n),
		       qwen_roofline_unit(type));
	snprintf(name, sizeof(name), "train/adamw-%s-%s", shape_name,
		 qwen_weights_name(type));
	bench_case(r, name, NULL);
	printf("\n%-20s %7.1f ms         %5.1f %% of what memory gives\n",
	       name + 6, 1e3 * bench_time(r, x[3], n, 1),
	       100 * bench_ratio(r, "what memory gives", RES_HIGHER, x[4], n));
}

static void measure_step(struct bench_rows *r, struct job *j, size_t i,
			 enum qwen_weights type)
{
	unsigned rounds = bench_rounds(ROUNDS);
	struct round v[ROUNDS];
	struct train_rule rule;

	train_rule_init(&rule);
	rule.steps = rounds;
	train_run(j->x, 0, j->g.n_ops, NULL); /* pages come */
	train_update(j->x, &rule, 0, &(double){ 0 }, NULL);
	for (unsigned k = 0; k < rounds; k++)
		v[k] = measure_round(j, &rule, k);
	print_rounds(r, shape[i].name, type, v, rounds);
}

int main(int argc, char **argv)
{
	struct bench_rows r;
	struct err e = { 0 };
	bool good = true;

	bench_open(&r, "train", argc, argv);
	struct threads *t =
		threads_new(argc > 1 ? (unsigned)atoi(argv[1]) : 0, &e);
	good = t != NULL;
	for (size_t i = 0; good && i < ARRAY_SIZE(shape); i++)
		for (int half = 0; good && half < 2; half++) {
			enum qwen_weights type = half ? QWEN_W_BF16 :
							QWEN_W_F32;
			struct job j;

			good = job_open(&j, i, type, t, &e);
			if (good)
				measure_step(&r, &j, i, type);
			job_close(&j);
		}
	threads_free(t);
	return bench_close(&r, good, &e);
}
