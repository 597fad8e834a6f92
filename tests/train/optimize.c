/*
 * Optimizers against their published formulas in double precision; schedules
 * against values by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float.h"
#include "engine/train/train.h"
#include "tests/tap.h"

#define STEPS 5
#define MOST  40 /* tensors */

static uint64_t seed = 31;

static double random_unit(void)
{
	return (double)(int64_t)(random_next(&seed) >> 11) * 0x1p-52 - 1;
}

static const struct qwen_config config = {
	.layers = 1, .hidden = 12, .heads = 2, .kv_heads = 1, .head_dim = 8,
	.ffn = 20, .vocab = 300, .max_positions = 8, .rope_theta = 1e4,
	.norm_eps = 1e-6, .tied = true,
};

struct job {
	struct train_graph g;
	struct train *x;
	struct threads *t;
};

static void job_new(struct job *j, const struct train_how *how,
		    unsigned threads)
{
	struct train_how h = *how;
	struct err e = { 0 };

	h.rows = h.length = 4;
	j->t = threads_new(threads, &e);
	if (!train_qwen3(&j->g, &config, &h, &e) ||
	    !(j->x = train_new(&j->g, j->t, NULL, &e)))
		diag("%s", e.msg);
}

/* A step of the optimizer: the length of the gradients. */
static double job_update(struct job *j, const struct train_rule *r,
			 uint64_t step)
{
	struct err e = { 0 };
	double norm = 0;

	if (!train_update(j->x, r, step, &norm, &e))
		diag("%s", e.msg);
	return norm;
}

static void job_fini(struct job *j)
{
	train_free(j->x);
	train_graph_fini(&j->g);
	threads_free(j->t);
}

static size_t count_of(const struct train_param *p)
{
	return (size_t)p->rows * p->cols;
}

/* ---- the formulas, for one weight ---- */

struct state {
	double w, m, v, average;
};

static void follow_adamw(struct state *s, double g, double rate, double decay,
			 const struct train_rule *r, int step)
{
	s->m = r->beta1 * s->m + (1 - r->beta1) * g;
	s->v = r->beta2 * s->v + (1 - r->beta2) * g * g;
	double m = s->m / (1 - pow(r->beta1, step + 1));
	double v = s->v / (1 - pow(r->beta2, step + 1));
	s->w -= rate * decay * s->w;
	s->w -= rate * m / (sqrt(v) + r->epsilon);
}

static void follow_sgd(struct state *s, double g, double rate, double decay,
		       const struct train_rule *r)
{
	s->m = r->momentum * s->m + g;
	s->w -= rate * decay * s->w;
	s->w -= rate * s->m;
}

/* ---- a run ---- */

/* Random gradients of a step; the length of all of them. */
static double fill_gradients(struct job *j, double size)
{
	double sum = 0;

	for (uint32_t i = 0; i < j->g.n_params; i++) {
		float *g = train_data(j->x, j->g.param[i].gradient);
		for (size_t k = 0; k < count_of(&j->g.param[i]); k++) {
			g[k] = (float)(size * random_unit());
			sum += (double)g[k] * g[k];
		}
	}
	return sqrt(sum);
}

static void test_formula(enum train_method method, double clip)
{
	const char *name = train_method_name(method);
	struct train_how how = { .method = method, .average = true };
	struct state *s[MOST];
	struct train_rule r;
	struct job j;
	double worst = 0, worst_norm = 0, worst_average = 0;
	bool zero = true;

	train_rule_init(&r);
	r.method = method;
	r.steps = 10;
	r.warmup = 2;
	r.rate = 0.05;
	r.clip = clip;
	r.average = 0.75;
	job_new(&j, &how, 2);
	for (uint32_t i = 0; i < j.g.n_params; i++) {
		float *w = train_data(j.x, j.g.param[i].weight);
		s[i] = calloc(count_of(&j.g.param[i]), sizeof(**s));
		for (size_t k = 0; k < count_of(&j.g.param[i]); k++)
			s[i][k].w = s[i][k].average = w[k] =
				(float)random_unit();
	}
	train_average_begin(j.x);
	for (int step = 0; step < STEPS; step++) {
		double norm = fill_gradients(&j, 0.5);
		double by = clip > 0 && norm > clip ? clip / norm : 1;
		for (uint32_t i = 0; i < j.g.n_params; i++) {
			const struct train_param *p = &j.g.param[i];
			const float *g = train_data(j.x, p->gradient);
			double decay = p->matrix ? r.decay : 0;
			for (size_t k = 0; k < count_of(p); k++) {
				struct state *o = &s[i][k];
				if (method == TRAIN_ADAMW)
					follow_adamw(o, g[k] * by,
						     train_rate(&r, step),
						     decay, &r, step);
				else
					follow_sgd(o, g[k] * by,
						   train_rate(&r, step), decay,
						   &r);
				o->average = .75 * o->average + .25 * o->w;
			}
		}
		double got = job_update(&j, &r, (uint64_t)step);
		worst_norm = fmax(worst_norm, fabs(got / norm - 1));
	}
	for (uint32_t i = 0; i < j.g.n_params; i++) {
		const struct train_param *p = &j.g.param[i];
		const float *w = train_data(j.x, p->weight);
		const float *a = train_data(j.x, p->average);
		const float *g = train_data(j.x, p->gradient);
		for (size_t k = 0; k < count_of(p); k++) {
			worst = fmax(worst, fabs(w[k] - s[i][k].w));
			worst_average = fmax(worst_average,
					     fabs(a[k] - s[i][k].average));
			zero &= g[k] == 0;
		}
		free(s[i]);
	}
	if (!ok(worst < 2e-6, "%s, clip %g: weights", name, clip) |
	    !ok(worst_average < 2e-6, "%s, clip %g: averages", name, clip) |
	    !ok(worst_norm < 1e-6, "%s, clip %g: length of gradients", name,
		clip))
		diag("%.2e %.2e %.2e", worst, worst_average, worst_norm);
	ok(zero, "%s, clip %g: gradients are 0 behind a step", name, clip);
	job_fini(&j);
}

/* ---- Muon ---- */

/* o o^T or o^T o, the smaller: its distance from the identity. */
static double distance_from_identity(const float *o, uint32_t rows,
				     uint32_t cols)
{
	uint32_t m = rows < cols ? rows : cols, n = rows < cols ? cols : rows;
	double most = 0;

	for (uint32_t i = 0; i < m; i++)
		for (uint32_t k = 0; k < m; k++) {
			double dot = 0;
			for (uint32_t l = 0; l < n; l++)
				dot += rows < cols ?
					       o[i * cols + l] * o[k * cols + l] :
					       o[l * cols + i] * o[l * cols + k];
			most = fmax(most, fabs(dot - (i == k)));
		}
	return most;
}

struct newton {
	float *x, *space[4];
	uint32_t rows, cols;
};

static void run_newton(void *ctx, struct threads *t, unsigned thread)
{
	struct cpu_gemm_scratch gemm = { 0 };
	struct newton *n = ctx;

	train_orthogonalize(n->x, n->rows, n->cols, n->space, &gemm, t,
			    thread);
	cpu_gemm_scratch_fini(&gemm);
}

/*
 * A matrix with orthogonal rows (of a cosine transform), scaled row by row:
 * what is nearest to it is known, the rows at length 1.
 */
static void test_newton(uint32_t rows, uint32_t cols)
{
	size_t n = (size_t)rows * cols;
	uint32_t m = rows < cols ? rows : cols, l = rows < cols ? cols : rows;
	struct newton w = { .rows = rows, .cols = cols };
	struct err e = { 0 };
	struct threads *t = threads_new(2, &e);
	double worst = 0, cosine = 0;

	w.x = malloc(n * sizeof(float));
	double *want = malloc(n * sizeof(double));
	for (int i = 0; i < 4; i++)
		w.space[i] = malloc((i < 2 ? n : (size_t)m * m) *
				    sizeof(float));
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t k = 0; k < l; k++) {
			double v = sqrt((i ? 2. : 1.) / l) *
				   cos(M_PI * (k + .5) * i / l);
			size_t at = rows < cols ? i * (size_t)cols + k :
						  k * (size_t)cols + i;
			want[at] = v;
			w.x[at] = (float)(v * (1 + .2 * (i % 7)));
		}
	threads_run(t, run_newton, &w);
	for (size_t i = 0; i < n; i++)
		cosine += want[i] * w.x[i] / m;
	worst = distance_from_identity(w.x, rows, cols);
	if (!ok(worst < 0.7, "%ux%u: rows are nearly orthogonal, of length "
		"0.6 to 1.3", rows, cols) |
	    !ok(cosine > 0.6 && cosine < 1.3, "%ux%u: and where they were",
		rows, cols))
		diag("%.3f %.3f", worst, cosine);
	for (int i = 0; i < 4; i++)
		free(w.space[i]);
	free(w.x);
	free(want);
	threads_free(t);
}

/* A step of a hidden matrix is of 0.2 of the rate, whatever the gradient. */
static void test_muon(void)
{
	struct train_how how = { .method = TRAIN_MUON };
	struct train_rule r;
	struct job j;

	train_rule_init(&r);
	r.method = TRAIN_MUON;
	r.schedule = TRAIN_RATE_CONSTANT;
	r.rate = 0.1;
	r.decay = 0;
	r.steps = 3;
	for (unsigned threads = 1; threads < 3; threads++) {
		job_new(&j, &how, threads);
		seed = 33;
		fill_gradients(&j, 1e-3);
		job_update(&j, &r, 0);
		static float one[20 * 12];
		const struct train_param *p = &j.g.param[9]; /* gate */
		const float *w = train_data(j.x, p->weight);
		double sum = 0;
		for (size_t k = 0; k < count_of(p); k++)
			sum += (double)w[k] * w[k];
		double size = sqrt(sum / (double)count_of(p)) / .1;
		if (threads == 1) {
			is_str(p->name, "model.layers.0.mlp.gate_proj.weight",
			       "a hidden matrix");
			ok(size > .12 && size < .26, "moves by 0.2 of the "
			   "rate");
			memcpy(one, w, count_of(p) * sizeof(*w));
		} else {
			is_mem(w, one, count_of(p) * sizeof(*w),
			       "by two threads the same");
		}
		w = train_data(j.x, j.g.param[0].weight);
		ok(fabs(fabs(w[5]) - .1) < 1e-4, "%u threads: the embedding "
		   "moves as with AdamW, by the rate", threads);
		job_fini(&j);
	}
}

/* ---- schedules ---- */

static void test_schedules(void)
{
	struct train_rule r;
	struct err e = { 0 };
	static const struct {
		enum train_schedule s;
		uint64_t step;
		double want;
	} row[] = {
		{ TRAIN_RATE_CONSTANT, 0, .1 }, { TRAIN_RATE_CONSTANT, 9, 1 },
		{ TRAIN_RATE_CONSTANT, 109, 1 }, { TRAIN_RATE_COSINE, 4, .5 },
		{ TRAIN_RATE_COSINE, 10, 1 }, { TRAIN_RATE_COSINE, 60, .6 },
		{ TRAIN_RATE_COSINE, 35, .2 + .8 * (2 + M_SQRT2) / 4 },
		{ TRAIN_RATE_COSINE, 110, .2 }, { TRAIN_RATE_COSINE, 999, .2 },
		{ TRAIN_RATE_LINEAR, 10, 1 }, { TRAIN_RATE_LINEAR, 35, .8 },
		{ TRAIN_RATE_LINEAR, 110, .2 }, { TRAIN_RATE_WSD, 89, 1 },
		{ TRAIN_RATE_WSD, 90, 1 }, { TRAIN_RATE_WSD, 100, .6 },
		{ TRAIN_RATE_WSD, 110, .2 },
	};

	train_rule_init(&r);
	r.rate = 2;
	r.least = .2;
	r.steps = 110;
	r.warmup = 10;
	r.cooldown = 20;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		r.schedule = row[i].s;
		double got = train_rate(&r, row[i].step);
		if (!ok(fabs(got - 2 * row[i].want) < 1e-12, "%s, step %u",
			train_schedule_name(r.schedule),
			(unsigned)row[i].step))
			diag("got %g, wanted %g", got, 2 * row[i].want);
	}
	ok(train_rule_check(&r, &e), "a rule that can be");
	r.warmup = 100;
	ok(!train_rule_check(&r, &e), "more warm-up and cool-down than steps");
	has_str(e.msg, "110 in all", "says how many there are");
	r.warmup = 0;
	r.beta2 = 1;
	ok(!train_rule_check(&r, &e), "beta2 of 1 is refused");
	has_str(e.msg, "beta2", "and named");
}

/* ---- bf16 ---- */

/* Without masters a small step is made as often as it is large. */
static void test_chance(void)
{
	struct train_how how = { .type = QWEN_W_BF16, .method = TRAIN_SGD };
	struct train_rule r;
	struct job j;
	double sum = 0;

	train_rule_init(&r);
	r.method = TRAIN_SGD;
	r.schedule = TRAIN_RATE_CONSTANT;
	r.rate = 1;
	r.clip = r.decay = 0;
	r.steps = 2;
	job_new(&j, &how, 2);
	const struct train_param *p = &j.g.param[0];
	uint16_t *w = train_data(j.x, p->weight);
	float *g = train_data(j.x, p->gradient);
	size_t n = count_of(p), up = 0, other = 0;
	for (size_t k = 0; k < n; k++) {
		w[k] = 0x3f80;		/* 1, the next one is 1 + 2^-7 */
		g[k] = -0.25f * 0x1p-7f; /* a quarter of the way */
	}
	ok(p->master == TRAIN_NONE, "there are no masters");
	job_update(&j, &r, 0);
	for (size_t k = 0; k < n; k++) {
		up += w[k] == 0x3f81;
		other += w[k] != 0x3f81 && w[k] != 0x3f80;
		sum += (double)k * (w[k] == 0x3f81);
	}
	/* Four deviations of a binomial of 3600. */
	double far = 4 * sqrt((double)n * .25 * .75);
	if (!ok(fabs((double)up - .25 * (double)n) < far,
		"a quarter of weights go up") |
	    !ok(other == 0, "the others stay"))
		diag("%zu of %zu, %zu", up, n, other);
	ok(fabs(sum / (double)up - (double)n / 2) < (double)n / 8,
	   "all over the matrix");
	job_fini(&j);
}

/* With masters weights are these, rounded to nearest. */
static void test_masters(void)
{
	struct train_how how = { .type = QWEN_W_BF16, .masters = true,
				 .method = TRAIN_ADAMW };
	struct train_rule r;
	struct job j;
	bool same = true;

	train_rule_init(&r);
	r.steps = 2;
	job_new(&j, &how, 2);
	const struct train_param *p = &j.g.param[0];
	float *master = train_data(j.x, p->master);
	const uint16_t *w = train_data(j.x, p->weight);
	for (size_t k = 0; k < count_of(p); k++)
		master[k] = (float)random_unit();
	fill_gradients(&j, 1);
	job_update(&j, &r, 0);
	for (size_t k = 0; k < count_of(p); k++)
		same &= w[k] == float_bits(master[k], 8, 7);
	ok(same, "weights are masters, rounded");
	job_fini(&j);
}

/* f16: what the loss was multiplied with is divided out; the scale by hand. */
static void test_scale(void)
{
	struct train_how how = { .type = QWEN_W_F16, .masters = true,
				 .method = TRAIN_SGD };
	struct train_place p = { .loss_scale = 1024 };
	struct train_rule r;
	struct job j;
	bool same = true;

	train_rule_init(&r);
	r.method = TRAIN_SGD;
	r.schedule = TRAIN_RATE_CONSTANT;
	r.rate = .5;
	r.decay = 0;
	r.clip = 2;
	r.steps = 9;
	r.grow_after = 3;
	job_new(&j, &how, 2);
	train_loss_scale(j.x, 1024);
	double norm = fill_gradients(&j, 512) / 1024;
	const struct train_param *q = &j.g.param[0];
	const float *g = train_data(j.x, q->gradient);
	const float *master = train_data(j.x, q->master);
	const uint16_t *w = train_data(j.x, q->weight);
	double want = -.5 * g[7] / 1024 * 2 / norm;
	double got = job_update(&j, &r, 0);
	ok(norm > 2 && fabs(got / norm - 1) < 1e-6, "f16: the length is that "
	   "without the scale");
	ok(fabs(master[7] / want - 1) < 1e-6, "f16: and so is the step");
	for (size_t k = 0; k < count_of(q); k++)
		same &= w[k] == float_bits(master[k], 5, 10);
	ok(same, "f16: weights are masters, rounded");
	static const struct {
		double norm, scale;
	} row[] = {
		{ 1, 1024 }, { 1, 1024 }, { 1, 2048 }, { 1, 2048 },
		{ INFINITY, 1024 }, { 1, 1024 }, { NAN, 512 }, { 1, 512 },
		{ 1, 512 }, { 1, 1024 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		bool good = train_scale_follow(j.x, &r, row[i].norm, &p);
		ok(good == (row[i].norm == 1), "f16, step %zu: is %s", i,
		   row[i].norm == 1 ? "good" : "skipped");
		is_f64(p.loss_scale, row[i].scale, "f16, step %zu: the scale",
		       i);
	}
	is_u64(p.skipped, 2, "f16: two were skipped");
	p.loss_scale = 0x1p24;
	for (int i = 0; i < 3; i++)
		train_scale_follow(j.x, &r, 1, &p);
	is_f64(p.loss_scale, 0x1p24, "f16: the scale ends at 2^24");
	job_fini(&j);
}

static void test_broken(void)
{
	struct train_how how = { .method = TRAIN_ADAMW };
	struct train_rule r;
	struct job j;

	train_rule_init(&r);
	r.steps = 2;
	job_new(&j, &how, 1);
	const struct train_param *p = &j.g.param[3];
	float *g = train_data(j.x, p->gradient);
	const float *w = train_data(j.x, p->weight);
	const float *m = train_data(j.x, j.g.param[0].state[0]);
	fill_gradients(&j, 1);
	g[2] = INFINITY;
	ok(!isfinite(job_update(&j, &r, 0)), "an infinite gradient is told");
	ok(w[0] == 0 && w[2] == 0 && m[0] == 0, "and changes nothing");
	ok(g[0] == 0 && g[2] == 0, "gradients are 0 then, too");
	job_fini(&j);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	test_formula(TRAIN_ADAMW, 0);
	test_formula(TRAIN_ADAMW, 1);
	test_formula(TRAIN_SGD, 0);
	test_formula(TRAIN_SGD, 1);
	test_newton(12, 20);
	test_newton(40, 17);
	test_newton(32, 32);
	test_muon();
	test_schedules();
	test_chance();
	test_masters();
	test_scale();
	test_broken();
	return plan_done();
}
