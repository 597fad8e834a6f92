/*
 * Training on the gfx1100 in software: gradients of every operation and of a
 * whole tiny Qwen3 against double precision, steps beside those of the host,
 * and that defects are seen.
 */
#include "engine/train/gpu/gpu.h"
#include "kfd/driver.h"
#include "kfd/soft/soft.h"
#include "tests/train/jobs.h"
#include "tests/train/step.h"

#define BOUND 1e-5

static struct train_gpu *gpu;
static struct train_backend backend;
static struct threads *threads;

/* ---- operations ---- */

/* What gradient i was before the operations. */
static float *copy_was(const struct job *j, unsigned i)
{
	float *was = malloc(j->n[i] * sizeof(*was));

	for (size_t k = 0; k < j->n[i]; k++)
		was[k] = (float)j->was[i][k];
	return was;
}

/* All defects in all gradients of a job: how many are not seen. */
static unsigned count_unseen(struct job *j, struct train *x)
{
	unsigned unseen = 0;

	for (unsigned i = 0; i < j->n_inputs; i++) {
		float *g = train_data(x, j->gradient[i]);
		size_t bytes = j->n[i] * sizeof(*g);

		if (j->gradient[i] == j->dy) /* no operation makes it */
			continue;
		float *was = copy_was(j, i), *kept = malloc(bytes);
		memcpy(kept, g, bytes);
		for (int defect = 0; defect < DEFECTS; defect++) {
			plant_defect(defect, j->added[i], was,
				     &j->g.value[j->gradient[i]], g);
			unseen += back_error(j, x) <= BOUND;
			memcpy(g, kept, bytes);
		}
		free(kept);
		free(was);
	}
	return unseen;
}

static void test_operations(void)
{
	int rounds = getenv("T0_SLOW") ? 6 : 2;

	for (size_t i = 0; i < DEVICE_JOBS; i++) {
		const char *name = job_table[i].name;
		double value = 0, slope = 0;
		unsigned unseen = 0;

		for (int round = 0; round < rounds; round++) {
			struct job j;

			job_table[i].make(&j);
			struct train *x = job_run(&j, threads, &backend);
			value = fmax(value, forward_error(&j, x));
			slope = fmax(slope, back_error(&j, x));
			if (!round && j.tokens < 100)
				unseen = count_unseen(&j, x);
			train_free(x);
			job_fini(&j);
		}
		ok(value <= BOUND, "%s: values", name);
		ok(slope <= BOUND, "%s: gradients", name);
		is_u64(unseen, 0, "%s: every defect is seen", name);
		diag("%s: values %.2e, gradients %.2e", name, value, slope);
	}
}

/* ---- a whole model ---- */

static const struct train_how plain = { .rows = ROWS, .length = LENGTH };

static void test_model(void)
{
	const struct step_by by = { threads, &backend };
	struct train_how how = plain;

	make_batch();
	test_step("tied", &how, true, &by, 1e-4, 1e-6);
	how.vocab_chunk = 20;
	test_step("untied, in chunks", &how, false, &by, 1e-4, 1e-6);
	how.rank = 3;
	how.targets = 0x7f;
	how.again = TRAIN_AGAIN_ATTENTION | TRAIN_AGAIN_FFN;
	how.again_layers = 1;
	test_step("adapters", &how, true, &by, 1e-4, 1e-6);
	how.type = QWEN_W_BF16;
	how.targets = 0x15;
	test_step("adapters of some, bf16", &how, false, &by, 2e-2, 1e-2);
	how = plain;
	how.type = QWEN_W_BF16;
	how.masters = true;
	test_step("bf16", &how, true, &by, 2e-2, 1e-2);
	how.type = QWEN_W_F16;
	test_step("f16", &how, true, &by, 2.5e-3, 1e-3);
}

/* Tensors of zeros, and a tail that is not written. */
static void test_defects(void)
{
	const struct step_by by = { threads, &backend };
	unsigned unseen = 0;
	struct train_graph g;
	struct model m;
	struct train *x = step_run(&g, &plain, true, &by, &m);

	for (uint32_t i = 0; i < g.n_params; i++) {
		float *d = train_data(x, g.param[i].gradient);
		size_t n = m.n[i], tail = n < 4 ? 1 : n / 4;
		float *kept = malloc(n * sizeof(*d));

		memcpy(kept, d, n * sizeof(*d));
		memset(d, 0, n * sizeof(*d));
		unseen += tensor_error(&g, x, &m, i) <= 1e-4;
		memcpy(d, kept, (n - tail) * sizeof(*d));
		unseen += tensor_error(&g, x, &m, i) <= 1e-4;
		memcpy(d, kept, n * sizeof(*d));
		free(kept);
	}
	is_u64(unseen, 0, "a tensor of zeros, or a lost tail, is seen");
	model_free(&m);
	train_free(x);
	train_graph_fini(&g);
}

/* ---- steps ---- */

/* A language that can be learnt: mostly the next id follows from this one. */
static void make_language(const struct train *x, const struct train_graph *g,
			  uint64_t *s)
{
	uint32_t *id = train_data(x, g->ids), *to = train_data(x, g->target);
	uint32_t *position = train_data(x, g->position);

	for (int t = 0; t < TOKENS; t++) {
		bool begins = t % LENGTH == 0 || random_next(s) % 16 == 0;
		bool guess = begins || random_next(s) % 8 == 0;

		id[t] = guess ? (uint32_t)(random_next(s) % 67) :
				(id[t - 1] * 5 + 3) % 67;
		position[t] = begins ? 0 : position[t - 1] + 1;
	}
	for (int t = 0; t < TOKENS; t++)
		to[t] = t + 1 < TOKENS && position[t + 1] ? id[t + 1] :
							    TRAIN_IGNORE;
}

static double take_step(struct train *x, const struct train_graph *g,
			const struct train_rule *r, uint64_t step)
{
	uint64_t s = 1000 + step;
	double norm, sum = 0;
	struct err e = { 0 };
	unsigned n = 0;

	make_language(x, g, &s);
	for (int t = 0; t < TOKENS; t++)
		n += ((uint32_t *)train_data(x, g->target))[t] != TRAIN_IGNORE;
	train_scale(x, 1.f / (float)n);
	if (!train_run(x, 0, g->n_ops, &e))
		diag("%s", e.msg);
	for (int t = 0; t < TOKENS; t++)
		sum += ((float *)train_data(x, g->loss))[t];
	if (!train_update(x, r, step, &norm, &e))
		diag("%s", e.msg);
	return sum / n;
}

/* A run with random weights; `loss` of every step. */
static struct train *learn(struct train_graph *g, const struct train_how *how,
			   const struct train_rule *r,
			   const struct train_backend *b, double *loss)
{
	struct qwen_config c = config_of(true);
	struct err e = { 0 };
	struct train *x;

	c.layers = getenv("T0_SLOW") ? 2 : 1;
	if (how->type != QWEN_W_F32) /* by the matrix units */
		c.head_dim = 16;
	if (!train_qwen3(g, &c, how, &e) ||
	    !(x = train_new(g, threads, b, &e))) {
		diag("%s", e.msg);
		return NULL;
	}
	train_random(x, 5);
	train_adapters_random(x, 5);
	train_average_begin(x);
	train_loss_scale(x, how->type == QWEN_W_F16 ? SCALE : 1);
	for (uint64_t i = 0; i < r->steps; i++)
		loss[i] = take_step(x, g, r, i);
	return x;
}

/* How far two arrays are apart, over the largest of the first. */
static double distance_of(const float *a, const float *b, size_t n)
{
	double most = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fabs((double)a[i] - b[i]));
		size = fmax(size, fabs((double)a[i]));
	}
	return isfinite(most) ? most / (size + 1e-30) : INFINITY;
}

/* The worst of all tensors of a home. */
static double home_distance(const struct train_graph *g, enum train_home home,
			    const struct train *a, const struct train *b)
{
	double most = 0;

	for (uint32_t i = 0; i < g->n_values; i++)
		if (g->value[i].home == home && g->value[i].width == 4)
			most = fmax(most,
				    distance_of(train_data(a, i),
						train_data(b, i),
						g->value[i].rows *
							g->value[i].cols));
	return most;
}

#define MOST_STEPS 200

/* The same steps by both; losses within `bound`, and less at the end. */
static void test_steps(const char *name, const struct train_how *how,
		       const struct train_rule *r, double bound)
{
	double want[MOST_STEPS], got[MOST_STEPS], most = 0;
	struct train_graph g, h;
	struct train *x = learn(&g, how, r, NULL, want);
	struct train *y = learn(&h, how, r, &backend, got);

	for (uint64_t i = 0; i < r->steps; i++)
		most = fmax(most, isfinite(got[i]) ? fabs(got[i] - want[i]) :
						     INFINITY);
	ok(most <= bound, "%s: losses of %llu steps within %g", name,
	   (unsigned long long)r->steps, bound);
	ok(got[r->steps - 1] < got[0], "%s: the loss falls", name);
	diag("%s: loss %.4f to %.4f, host %.4f; off by %.2e", name, got[0],
	     got[r->steps - 1], want[r->steps - 1], most);
	if (r->steps < 10 && r->method != TRAIN_MUON) {
		double weight = home_distance(&g, TRAIN_WEIGHT, x, y);
		double state = home_distance(&g, TRAIN_STATE, x, y);

		ok(weight <= bound, "%s: weights as on the host", name);
		ok(state <= bound, "%s: states as on the host", name);
		diag("%s: weights off by %.2e, states by %.2e", name, weight,
		     state);
	}
	train_free(x);
	train_free(y);
	train_graph_fini(&g);
	train_graph_fini(&h);
}

static struct train_rule rule_of(enum train_method method, uint64_t steps)
{
	struct train_rule r;

	train_rule_init(&r);
	r.method = method;
	r.steps = steps;
	r.rate = method == TRAIN_SGD ? 0.3 : 5e-3;
	r.average = 0.9;
	return r;
}

/*
 * f16 with a scale that its gradients do not bear: the step is skipped, the
 * scale halved, until they do; and then it learns.
 */
static void test_overflow(void)
{
	const struct train_how how = { .rows = ROWS, .length = LENGTH,
				       .type = QWEN_W_F16, .masters = true,
				       .method = TRAIN_ADAMW };
	struct train_rule r = rule_of(TRAIN_ADAMW, 1);
	struct train_place p = { .loss_scale = 0x1p24 };
	double first, norm = 0;
	unsigned skipped = 0;
	struct train_graph g;
	struct err e = { 0 };
	struct train *x = learn(&g, &how, &r, &backend, &first);
	const struct train_param *q = &g.param[0];
	size_t bytes = (size_t)q->rows * q->cols * sizeof(float);
	float *was = malloc(bytes);

	memcpy(was, train_data(x, q->master), bytes);
	train_loss_scale(x, 0x1p24f);
	for (; skipped < 24; skipped++) {
		if (!train_run(x, 0, g.n_ops, &e) ||
		    !train_update(x, &r, 1, &norm, &e))
			diag("%s", e.msg);
		if (train_scale_follow(x, &r, norm, &p))
			break;
		ok(memcmp(was, train_data(x, q->master), bytes) == 0,
		   "f16, loss times 2^%u: nothing is learnt", 24 - skipped);
	}
	ok(skipped && skipped < 24 && p.skipped == skipped &&
		   p.loss_scale == ldexp(1, 24 - (int)skipped),
	   "f16: the scale is halved until gradients bear it");
	ok(memcmp(was, train_data(x, q->master), bytes) != 0,
	   "f16: the next step learns");
	diag("f16: %u skipped", skipped);
	free(was);
	train_free(x);
	train_graph_fini(&g);
}

/* A device of its own, whose sums come in one order, and a run on it. */
struct apart {
	struct train_gpu *gpu;
	struct train_backend b;
	struct train_graph g;
	struct train *x;
	double loss[4];
};

static bool apart_open(struct apart *a, bool small_bar)
{
	const struct soft_options o = { .deterministic = true,
					.small_bar = small_bar };
	struct train_how how = plain;
	struct train_rule r = rule_of(TRAIN_ADAMW, 4);
	struct err e = { 0 };
	struct train_gpu_how on = { .driver = kfd_soft_new(&o, &e) };

	how.method = TRAIN_ADAMW;
	how.average = true;
	if (!on.driver || !train_gpu_open(&a->gpu, &on, &e)) {
		diag("%s", e.msg);
		return false;
	}
	train_gpu_backend(a->gpu, &a->b);
	a->x = learn(&a->g, &how, &r, &a->b, a->loss);
	return a->x && train_fetch(a->x, &e);
}

static void apart_close(struct apart *a)
{
	train_free(a->x);
	train_graph_fini(&a->g);
	train_gpu_close(a->gpu);
}

/* A device whose memory the host does not see learns the same. */
static void test_small_bar(void)
{
	struct apart large = { 0 }, small = { 0 };

	if (ok(apart_open(&large, false) & apart_open(&small, true),
	       "a large and a small BAR")) {
		is_mem(small.loss, large.loss, sizeof(large.loss),
		       "small BAR: the same losses");
		ok(home_distance(&large.g, TRAIN_WEIGHT, large.x, small.x) ==
				   0 &&
			   home_distance(&large.g, TRAIN_STATE, large.x,
					 small.x) == 0,
		   "small BAR: the same weights and states");
		ok(small.loss[3] < small.loss[0], "small BAR: the loss falls");
	}
	apart_close(&large);
	apart_close(&small);
}

static void test_learning(void)
{
	struct train_how how = plain;
	struct train_rule r = rule_of(TRAIN_ADAMW, MOST_STEPS);

	how.method = TRAIN_ADAMW;
	test_steps("AdamW", &how, &r, 1e-3);
	r.steps = 4;
	how.average = true;
	test_steps("AdamW, averaged", &how, &r, 1e-3);
	r = rule_of(TRAIN_SGD, 4);
	how.method = TRAIN_SGD;
	test_steps("SGD, averaged", &how, &r, 1e-3);
	how.average = false;
	how.method = TRAIN_ADAMW;
	how.type = QWEN_W_BF16;
	how.masters = true;
	r = rule_of(TRAIN_ADAMW, 16);
	test_steps("bf16 with masters", &how, &r, 2e-2);
	how.masters = false;
	test_steps("bf16, rounded by chance", &how, &r, 5e-2);
	how.masters = true;
	how.type = QWEN_W_F16;
	test_steps("f16", &how, &r, 5e-3);
	r = rule_of(TRAIN_MUON, 4);
	how.method = TRAIN_MUON;
	how.type = QWEN_W_F32;
	test_steps("Muon", &how, &r, 2e-2);
	how.type = QWEN_W_BF16;
	how.masters = false;
	test_steps("Muon, bf16, rounded by chance", &how, &r, 5e-2);
	r = rule_of(TRAIN_ADAMW, 16);
	how.method = TRAIN_ADAMW;
	how.rank = 2;
	how.targets = 0x7f;
	test_steps("adapters, bf16", &how, &r, 2e-2);
}

/* The averages of all weights, one behind the other: the caller's. */
static float *copy_averages(const struct train_graph *g, const struct train *x,
			    size_t *bytes)
{
	struct buf all = { 0 };

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		buf_add(&all, train_data(x, p->average),
			(size_t)p->rows * p->cols * sizeof(float));
	}
	*bytes = all.len;
	return (float *)(void *)all.data;
}

/* A step whose gradients are no numbers is none: averages stay, too. */
static void test_no_number(const char *name, enum qwen_weights type,
			   const struct train_backend *b)
{
	const struct train_how how = { .rows = ROWS, .length = LENGTH,
				       .type = type, .method = TRAIN_ADAMW,
				       .average = true };
	struct train_rule r = rule_of(TRAIN_ADAMW, 2);
	struct train_graph g;
	struct err e = { 0 };
	double loss[2], norm = 0;
	size_t bytes;
	struct train *x = learn(&g, &how, &r, b, loss);
	float *was = copy_averages(&g, x, &bytes);

	((float *)train_data(x, g.param[1].gradient))[0] = INFINITY;
	ok(train_update(x, &r, 1, &norm, &e) && !isfinite(norm),
	   "%s: an infinite gradient has no length", name);
	float *now = copy_averages(&g, x, &bytes);
	ok(memcmp(was, now, bytes) == 0, "%s: averages stay", name);
	take_step(x, &g, &r, 1);
	free(now);
	now = copy_averages(&g, x, &bytes);
	ok(memcmp(was, now, bytes) != 0, "%s: the next step moves them", name);
	free(was);
	free(now);
	train_free(x);
	train_graph_fini(&g);
}

int main(void)
{
	const struct train_gpu_how how = { .device = "soft" };
	struct err e = { 0 };

	diag("seed %llu", (unsigned long long)seed);
	threads = threads_new(1, &e);
	if (!ok(train_gpu_open(&gpu, &how, &e), "a device"))
		return plan_done();
	train_gpu_backend(gpu, &backend);
	test_operations();
	test_model();
	test_defects();
	test_learning();
	test_overflow();
	test_small_bar();
	test_no_number("host", QWEN_W_F32, NULL);
	test_no_number("f32", QWEN_W_F32, &backend);
	test_no_number("bf16", QWEN_W_BF16, &backend);
	train_gpu_close(gpu);
	threads_free(threads);
	return plan_done();
}
