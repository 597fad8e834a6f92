/*
 * A training step on the host: its share of the multiply-adds that all threads
 * do, and that of AdamW's step of their reading of memory, measured in turn.
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

enum { ROUNDS = 5 };

static const struct {
	const char *name;
	struct qwen_config c;
	uint32_t rows, length;
} shape[] = {
	{ "10m",
	  { .layers = 7, .hidden = 320, .heads = 5, .kv_heads = 5,
	    .head_dim = 64, .ffn = 960, .vocab = 2048 },
	  4, 512 },
	{ "0.6b/7",
	  { .layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 8,
	    .head_dim = 128, .ffn = 3072, .vocab = 21705 },
	  1, 512 },
};

struct job {
	struct train_graph g;
	struct train *x;
	struct qwen_roofline *flop, *read;
};

static bool job_open(struct job *j, size_t i, enum qwen_weights type,
		     struct threads *t, struct err *e)
{
	struct qwen_config c = shape[i].c;
	struct train_how how = { .rows = shape[i].rows,
				 .length = shape[i].length, .type = type,
				 .masters = true, .method = TRAIN_ADAMW };

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
					      (size_t)256 << 20, e) : NULL;
	if (!j->read)
		return false;
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
	train_free(j->x);
	train_graph_fini(&j->g);
}

/* Bytes that a step of AdamW moves: the operations' weights, too. */
static double adamw_bytes(const struct train_graph *g)
{
	double sum = 0;

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		bool narrow = p->master != p->weight;
		/* Clipping reads gradients once more. */
		sum += (double)p->rows * p->cols * (narrow ? 38 : 36);
	}
	return sum;
}

static void measure_step(struct bench_rows *r, struct job *j, size_t i,
			 enum qwen_weights type)
{
	double rate[ROUNDS], share[ROUNDS], moved[ROUNDS], memory[ROUNDS];
	unsigned rounds = bench_rounds(ROUNDS);
	struct train_rule rule;
	char name[64];

	train_rule_init(&rule);
	rule.steps = rounds;
	train_run(j->x, 0, j->g.n_ops, NULL); /* pages come */
	train_update(j->x, &rule, 0, &(double){ 0 }, NULL);
	for (unsigned k = 0; k < rounds; k++) {
		double fma = qwen_roofline_fma(j->flop);
		uint64_t from = time_mono_ns();
		train_run(j->x, 0, j->g.n_ops, NULL);
		uint64_t at = time_mono_ns();
		train_update(j->x, &rule, k, &(double){ 0 }, NULL);
		uint64_t to = time_mono_ns();
		double more = qwen_roofline_fma(j->flop);
		fma = more > fma ? more : fma;
		rate[k] = train_flop(&j->g) / ((double)(to - from) * 1e-9);
		share[k] = rate[k] / fma;
		moved[k] = adamw_bytes(&j->g) / ((double)(to - at) * 1e-9);
		memory[k] = moved[k] / qwen_roofline_read(j->read);
	}
	snprintf(name, sizeof(name), "train/%s-%s", shape[i].name,
		 qwen_weights_name(type));
	bench_case(r, name, NULL);
	printf("%-20s %7.1f GFLOP/s  %5.1f %% of the FMA limit\n", name + 6,
	       bench_rate(r, "FLOP/s", rate, rounds) / 1e9,
	       100 * bench_ratio(r, "the FMA limit", RES_HIGHER, share,
				 rounds));
	snprintf(name, sizeof(name), "train/adamw-%s-%s", shape[i].name,
		 qwen_weights_name(type));
	bench_case(r, name, NULL);
	printf("%-20s %7.1f GB/s     %5.1f %% of reading memory\n", name + 6,
	       bench_rate(r, "B/s", moved, rounds) / 1e9,
	       100 * bench_ratio(r, "reading memory", RES_HIGHER, memory,
				 rounds));
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
