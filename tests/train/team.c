/*
 * Training on several devices in software that share the batches of a step:
 * as one device with all of them in one batch, or one after the other; all
 * devices have the same weights, and one that dies is told.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/train/gpu/gpu_int.h"
#include "kfd/driver.h"
#include "kfd/soft/inject/inject.h"
#include "kfd/soft/soft.h"
#include "tests/tap.h"

enum { LENGTH = 13, MOST_ROWS = 16, STEPS = 8 };
static struct threads *threads;
static uint32_t ids[MOST_ROWS * LENGTH], positions[MOST_ROWS * LENGTH],
	targets[MOST_ROWS * LENGTH];
static uint64_t seed = 17;
static bool no_links; /* of the machines that run_open() makes */

/* A run on devices of its own. */
struct run {
	struct kfd_driver *driver;
	struct train_gpu *gpu;
	struct train_backend b;
	struct train_graph g;
	struct train_rule rule;
	struct train *x;
	uint32_t rows;	  /* of a batch */
	uint64_t batches; /* of a step */
	double loss;	  /* of the last step */
	struct err e;
};

static void make_batches(void)
{
	for (uint32_t t = 0; t < MOST_ROWS * LENGTH; t++) {
		positions[t] = t % LENGTH;
		ids[t] = (uint32_t)(random_next(&seed) % 67);
		targets[t] = t % 5 == 4 ? TRAIN_IGNORE :
					  (uint32_t)(random_next(&seed) % 67);
	}
}

static bool run_open(struct run *r, uint32_t devices, uint32_t rows,
		     uint64_t batches, enum train_method method,
		     enum qwen_weights type)
{
	const struct qwen_config c = {
		.layers = 2,
		.hidden = 32,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 10,
		.ffn = 34,
		.vocab = 67,
		.max_positions = 64,
		.rope_theta = 1e4,
		.norm_eps = 1e-6,
		.tied = true,
	};
	const struct train_how how = { .rows = rows,
				       .length = LENGTH,
				       .type = type,
				       .method = method,
				       .masters = type != QWEN_W_F32 };
	const struct soft_options o = { .deterministic = true,
					.cards = devices,
					.small_bar = no_links,
					.deadline_ns = 200000000 };
	struct train_gpu_how on = { .devices = devices };

	*r = (struct run){ .rows = rows, .batches = batches };
	train_rule_init(&r->rule);
	r->rule.method = method;
	r->rule.steps = STEPS;
	on.driver = r->driver = kfd_soft_new(&o, &r->e);
	if (!train_qwen3(&r->g, &c, &how, &r->e) ||
	    !train_gpu_open(&r->gpu, &on, &r->e))
		return false;
	train_gpu_backend(r->gpu, &r->b);
	r->x = train_new(&r->g, threads, &r->b, &r->e);
	if (r->x)
		train_random(r->x, 5);
	return r->x;
}

static void run_close(struct run *r)
{
	train_free(r->x);
	train_graph_fini(&r->g);
	train_gpu_close(r->gpu);
}

static void put_batch(void *ctx, uint64_t i)
{
	const struct run *r = ctx;
	const size_t n = (size_t)r->rows * LENGTH, at = i * n;

	memcpy(train_data(r->x, r->g.ids), ids + at, n * sizeof(*ids));
	memcpy(train_data(r->x, r->g.position), positions + at,
	       n * sizeof(*ids));
	memcpy(train_data(r->x, r->g.target), targets + at, n * sizeof(*ids));
}

static void add_loss(void *ctx, uint64_t i)
{
	struct run *r = ctx;
	const float *loss = train_data(r->x, r->g.loss);

	(void)i;
	for (size_t t = 0; t < (size_t)r->rows * LENGTH; t++)
		r->loss += loss[t];
}

static bool take_steps(struct run *r, uint64_t from, uint64_t to)
{
	const struct train_batches all = { r->batches, put_batch, add_loss, r };
	uint32_t n = 0;
	double norm;

	for (size_t t = 0; t < r->batches * r->rows * LENGTH; t++)
		n += targets[t] != TRAIN_IGNORE;
	train_scale(r->x, 1 / (float)n);
	for (uint64_t i = from; i < to; i++) {
		r->loss = 0;
		if (!train_run_batches(r->x, &all, &r->e) ||
		    !train_update(r->x, &r->rule, i, &norm, &r->e))
			return false;
		r->loss /= n;
	}
	return train_fetch(r->x, &r->e);
}

static bool run_learn(struct run *r, uint32_t devices, uint32_t rows,
		      uint64_t batches, enum train_method method,
		      enum qwen_weights type)
{
	const bool good = run_open(r, devices, rows, batches, method, type) &&
			  take_steps(r, 0, STEPS);

	if (!ok(good, "%u devices learn from %llu batches of %u", devices,
		(unsigned long long)batches, rows))
		diag("%s", r->e.msg);
	return good;
}

/* The largest difference of a weight, over the size of its tensor's. */
static double distance(const struct run *a, const struct run *b)
{
	double most = 0;

	for (uint32_t i = 0; i < a->g.n_params; i++) {
		const struct train_param *p = &a->g.param[i];
		const uint32_t w = p->master != TRAIN_NONE ? p->master :
							     p->weight;
		const float *x = train_data(a->x, w), *y = train_data(b->x, w);
		const size_t n = (size_t)p->rows * p->cols;
		double off = 0, square = 0;

		for (size_t k = 0; k < n; k++) {
			off = fmax(off, fabs((double)x[k] - (double)y[k]));
			square += (double)x[k] * (double)x[k];
		}
		most = fmax(most, off / sqrt(square / (double)n));
	}
	return most;
}

/* What every device has of all values that are kept, but for gradients. */
static bool all_the_same(const struct run *r)
{
	const struct train_gpu *s = r->gpu;
	bool same = true;

	for (uint32_t i = 0; i < r->g.n_params; i++) {
		const struct train_param *p = &r->g.param[i];
		const struct train_value *v = &r->g.value[p->weight];
		const size_t bytes = (size_t)v->rows * v->cols * v->width;
		char *got = xmalloc(bytes);

		for (uint32_t d = 0; d < s->devices; d++)
			same = same &&
			       kfd_read(s->device[d]->card.dev, got,
					s->device[d]->arena, v->offset, bytes,
					NULL) &&
			       !memcmp(got, train_data(r->x, p->weight), bytes);
		free(got);
	}
	return same;
}

static void check_team(struct run *one, uint32_t devices, uint32_t rows,
		       uint64_t batches, enum train_method method,
		       enum qwen_weights type, double bound, const char *what)
{
	struct run r;

	if (run_learn(&r, devices, rows, batches, method, type)) {
		const double off = distance(one, &r);
		ok(off <= bound, "%s: the same weights within %g", what, bound);
		diag("%s: weights off by %.1e, loss by %.1e", what, off,
		     fabs(one->loss - r.loss));
		ok(all_the_same(&r), "%s: on every device", what);
	}
	run_close(&r);
}

/* Twice the batch on one; or as many batches, one after the other. */
static void test_equal(enum train_method method, enum qwen_weights type,
		       double bound, const char *name)
{
	struct run one;
	char what[64];

	if (run_learn(&one, 1, 4, 1, method, type)) {
		snprintf(what, sizeof(what), "%s, two halves", name);
		check_team(&one, 2, 2, 2, method, type, bound, what);
	}
	run_close(&one);
	if (method == TRAIN_MUON || type != QWEN_W_F32)
		return;
	if (run_learn(&one, 1, 2, 8, method, type)) {
		snprintf(what, sizeof(what), "%s, two and four turns", name);
		check_team(&one, 2, 2, 8, method, type, bound, what);
		snprintf(what, sizeof(what), "%s, eight devices", name);
		check_team(&one, 8, 2, 8, method, type, bound, what);
	}
	run_close(&one);
}

/* Learns two steps; packet `at` behind the first goes wrong. */
static bool dies_at(enum soft_inject_what what, uint64_t at, bool *struck,
		    struct err *e)
{
	const struct soft_inject rule = { .what = what,
					  .after = at,
					  .va = 0x123456789000 };
	struct run r;
	bool good = run_open(&r, 2, 2, 2, TRAIN_SGD, QWEN_W_F32) &&
		    take_steps(&r, 0, 1);

	soft_inject(r.driver, &rule);
	const bool done = good && take_steps(&r, 1, 2);
	*struck = soft_injected(r.driver, what);
	*e = r.e;
	run_close(&r);
	return good && done != *struck;
}

static void test_deaths(void)
{
	static const struct {
		enum soft_inject_what what;
		const char *name;
	} all[] = { { SOFT_INJECT_ILLEGAL, "an illegal instruction" },
		    { SOFT_INJECT_FAULT, "a page fault" } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned wrong = 0, packets = 0;
		bool struck = true;

		for (uint64_t at = i; struck; at += 61) {
			struct err e = { 0 };
			wrong += !dies_at(all[i].what, at, &struck, &e);
			packets += struck;
			if (struck && packets == 1)
				diag("%s", e.msg);
		}
		ok(packets > 5, "%s in %u places", all[i].name, packets);
		is_u64(wrong, 0, "is told");
	}
}

int main(void)
{
	struct err e = { 0 };

	threads = threads_new(1, &e);
	make_batches();
	test_equal(TRAIN_SGD, QWEN_W_F32, 1e-5, "SGD");
	test_equal(TRAIN_ADAMW, QWEN_W_F32, 1e-5, "AdamW");
	no_links = true;
	test_equal(TRAIN_ADAMW, QWEN_W_F32, 1e-5, "without links");
	no_links = false;
	test_equal(TRAIN_MUON, QWEN_W_F32, 2e-2, "Muon");
	test_equal(TRAIN_ADAMW, QWEN_W_BF16, 2e-2, "bf16");
	test_deaths();
	threads_free(threads);
	return plan_done();
}
