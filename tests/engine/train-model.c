/*
 * Gradients of a whole tiny Qwen3, tensor by tensor, against slopes of double
 * precision (tests/ref/grad.h), and what must not change them.
 */
#include "base/float.h"
#include "engine/train/train.h"
#include "tests/ref/grad.h"
#include "tests/tap.h"

#define LENGTH 13
#define ROWS   2
#define TOKENS (ROWS * LENGTH)
#define MOST   64 /* tensors */

static uint64_t seed = 21;
static uint32_t ids[TOKENS], positions[TOKENS], targets[TOKENS];
static unsigned n_targets;

static double random_unit(void)
{
	return (double)(int64_t)(random_next(&seed) >> 11) * 0x1p-52 - 1;
}

static struct qwen_config config_of(bool tied)
{
	return (struct qwen_config){
		.layers = 2, .hidden = 24, .heads = 4, .kv_heads = tied ? 2 : 1,
		.head_dim = 10, .ffn = 34, .vocab = 67, .max_positions = 64,
		.rope_theta = 1e4, .norm_eps = 1e-6, .tied = tied,
	};
}

static void make_batch(void)
{
	for (int t = 0; t < TOKENS; t++) {
		bool begins = t % LENGTH == 0 || t == 5 || t == 20;
		ids[t] = (uint32_t)(random_next(&seed) % 67);
		positions[t] = begins ? 0 : positions[t - 1] + 1;
		targets[t] = t == 4 || t > 23 ?
				     TRAIN_IGNORE :
				     (uint32_t)(random_next(&seed) % 67);
		n_targets += targets[t] != TRAIN_IGNORE;
	}
}

/* ---- the reference ---- */

struct model {
	struct grad_shape s;
	double *p[MOST];
	size_t n[MOST];
	unsigned n_params;
	const struct train_param *param;
};

/* Matrices with what their adapters add, for as long as a loss takes. */
static void merge_adapters(const struct model *m, double **p)
{
	for (unsigned i = 0; i < m->n_params; i++) {
		const struct train_param *of = &m->param[i];

		p[i] = m->p[i];
		if (of->adapter == TRAIN_NONE)
			continue;
		const double *a = m->p[of->adapter], *b = m->p[of->adapter + 1];
		uint32_t rank = m->param[of->adapter].rows;
		p[i] = malloc(m->n[i] * sizeof(double));
		for (size_t k = 0; k < m->n[i]; k++) {
			p[i][k] = m->p[i][k];
			for (uint32_t r = 0; r < rank; r++)
				p[i][k] += b[k / of->cols * rank + r] *
					   a[r * of->cols + k % of->cols];
		}
	}
}

static double model_loss(void *ctx)
{
	const struct model *m = ctx;

	double *p[MOST];

	merge_adapters(m, p);
	double loss = grad_model(&m->s, p, ids, positions, targets, TOKENS) /
		      n_targets;
	for (unsigned i = 0; i < m->n_params; i++)
		if (p[i] != m->p[i])
			free(p[i]);
	return loss;
}

/* Random weights of the graph's type: both sides begin with the same. */
static void model_new(struct model *m, const struct train_graph *g)
{
	const struct qwen_config *c = &g->config;

	seed = 22;
	m->s = (struct grad_shape){
		(int)c->layers, (int)c->hidden, (int)c->heads,
		(int)c->kv_heads, (int)c->head_dim, (int)c->ffn, (int)c->vocab,
		c->rope_theta, c->norm_eps, c->tied,
	};
	m->n_params = g->n_params;
	m->param = g->param;
	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		uint32_t mask = !p->matrix	       ? UINT32_MAX :
				g->type == QWEN_W_BF16 ? 0xffff0000 :
				g->type == QWEN_W_F16  ? 0xffffe000 :
							 UINT32_MAX;

		/* What adapters add is small. */
		double size = i < g->n_tensors ? 1 : .4;

		m->n[i] = (size_t)p->rows * p->cols;
		m->p[i] = malloc(m->n[i] * sizeof(double));
		for (size_t k = 0; k < m->n[i]; k++) {
			double v = p->matrix ?
					   random_unit() * size *
						   sqrt(3. / p->cols) :
					   1 + .3 * random_unit();
			m->p[i][k] = f32_value(f32_bits((float)v) & mask);
		}
	}
}

static void model_free(struct model *m)
{
	for (unsigned i = 0; i < m->n_params; i++)
		free(m->p[i]);
}

/* ---- the step ---- */

static const struct train_how plain = { .rows = ROWS, .length = LENGTH };

static struct threads *pool[8]; /* by how many threads they have */

static struct threads *pool_of(unsigned n)
{
	struct err e = { 0 };

	if (!pool[n])
		pool[n] = threads_new(n, &e);
	return pool[n];
}

#define SCALE 1024 /* of the loss, in f16 */

/* Gradients without the scale that they were made with. */
static void unscale_gradients(struct train *x, const struct train_graph *g)
{
	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		if (p->gradient == TRAIN_NONE)
			continue;
		float *d = train_data(x, p->gradient);
		for (size_t k = 0; k < (size_t)p->rows * p->cols; k++)
			d[k] /= SCALE;
	}
}

/* A step's gradients; NULL is said why. */
static struct train *step_run(struct train_graph *g, const struct train_how *how,
			  bool tied, unsigned n_threads, struct model *m)
{
	struct qwen_config c = config_of(tied);
	struct err e = { 0 };
	struct threads *t = pool_of(n_threads);
	struct train *x;

	if (!train_qwen3(g, &c, how, &e) || !(x = train_new(g, t, NULL, &e))) {
		diag("%s", e.msg);
		return NULL;
	}
	model_new(m, g);
	for (uint32_t i = 0; i < g->n_params; i++) {
		float *to = train_data(x, g->param[i].weight);
		uint16_t *half = train_data(x, g->param[i].weight);
		for (size_t k = 0; k < m->n[i]; k++) {
			float f = (float)m->p[i][k];
			if (g->value[g->param[i].weight].width == 2)
				half[k] = (uint16_t)(
					g->type == QWEN_W_F16 ?
						float_bits(f, 5, 10) :
						f32_bits(f) >> 16);
			else
				to[k] = f;
		}
	}
	memcpy(train_data(x, g->ids), ids, sizeof(ids));
	memcpy(train_data(x, g->position), positions, sizeof(positions));
	memcpy(train_data(x, g->target), targets, sizeof(targets));
	train_scale(x, 1.f / (float)n_targets);
	train_loss_scale(x, how->type == QWEN_W_F16 ? SCALE : 1);
	train_run(x, 0, g->n_ops, NULL);
	if (how->type == QWEN_W_F16)
		unscale_gradients(x, g);
	return x;
}

static double loss_of(const struct train *x, const struct train_graph *g)
{
	const float *loss = train_data(x, g->loss);
	double sum = 0;

	for (int t = 0; t < TOKENS; t++)
		sum += loss[t];
	return sum / n_targets;
}

static void test_gradients(const char *name, const struct train_how *how,
			   bool tied, double bound, double loss_bound)
{
	struct train_graph g;
	struct model m;
	struct train *x = step_run(&g, how, tied, 2, &m);
	double worst = 0, want = model_loss(&m), got = loss_of(x, &g);
	const char *where = "";

	if (!ok(fabs(got - want) <= loss_bound * want, "%s: the loss", name))
		diag("got %.8f, wanted %.8f", got, want);
	for (uint32_t i = 0; i < g.n_params; i++) {
		if (g.param[i].gradient == TRAIN_NONE)
			continue;
		double off = grad_error(model_loss, &m, m.p[i],
					train_data(x, g.param[i].gradient),
					m.n[i], 1 + m.n[i] / 60, false);
		where = off > worst ? g.param[i].name : where;
		worst = fmax(worst, off);
	}
	ok(worst <= bound, "%s: gradients of all tensors", name);
	diag("%s: loss off by %.1e, gradients by %.1e, %s", name,
	     fabs(got / want - 1), worst, where);
	model_free(&m);
	train_free(x);
	train_graph_fini(&g);
}

/* Gradients of two steps; the largest difference over the largest value. */
static double compare_steps(const struct train_how *a, const struct train_how *b,
		     unsigned threads, bool *same, size_t *peak_a,
		     size_t *peak_b)
{
	struct train_graph g, h;
	struct model m;
	struct train *x = step_run(&g, a, false, 2, &m);
	double most = 0;

	model_free(&m);
	struct train *y = step_run(&h, b, false, threads, &m);
	*same = true;
	for (uint32_t i = 0; i < g.n_params; i++) {
		const float *p = train_data(x, g.param[i].gradient);
		const float *q = train_data(y, h.param[i].gradient);
		double off = 0, size = 0;
		*same &= !memcmp(p, q, m.n[i] * sizeof(*p));
		for (size_t k = 0; k < m.n[i]; k++) {
			off = fmax(off, fabs((double)p[k] - q[k]));
			size = fmax(size, fabs((double)p[k]));
		}
		most = fmax(most, off / size);
	}
	*peak_a = g.passing;
	*peak_b = h.passing;
	model_free(&m);
	train_free(x);
	train_free(y);
	train_graph_fini(&g);
	train_graph_fini(&h);
	return most;
}

static void test_same(void)
{
	struct train_how other = plain;
	size_t all, less;
	bool same;

	for (unsigned again = 1; again < 4; again++)
		for (uint32_t layers = 1; layers < 3; layers++) {
			other.again = again;
			other.again_layers = layers;
			compare_steps(&plain, &other, 2, &same, &all, &less);
			ok(same, "made again, %u, in %u layers: the same bits",
			   again, layers);
			ok(less < all || layers == 1,
			   "made again, %u, in %u layers: less memory", again,
			   layers);
			if (less >= all)
				diag("%zu, without %zu", less, all);
		}
	compare_steps(&plain, &plain, 1, &same, &all, &less);
	ok(same, "1 and 2 threads: the same bits");
	compare_steps(&plain, &plain, 5, &same, &all, &less);
	ok(same, "5 threads: the same bits");
	other = (struct train_how){ .rows = ROWS, .length = LENGTH,
				    .type = QWEN_W_BF16, .masters = true,
				    .again = 3, .again_layers = 2 };
	struct train_how bf16 = other;
	bf16.again = 0;
	compare_steps(&bf16, &other, 1, &same, &all, &less);
	ok(same, "bf16, made again: the same bits");
	other = plain;
	other.vocab_chunk = 10;
	double off = compare_steps(&plain, &other, 2, &same, &all, &less);
	if (!ok(off < 1e-5, "a small chunk of the vocabulary: the same"))
		diag("%.2e", off);
}

/* Two batches in a row are summed. */
static void test_sum(void)
{
	struct train_graph g;
	struct model m;
	struct train *x = step_run(&g, &plain, true, 2, &m);
	const struct train_param *p = &g.param[1 + GRAD_GATE];
	size_t n = m.n[1 + GRAD_GATE];
	const float *now = train_data(x, p->gradient);
	float *once = malloc(n * sizeof(*once));
	double off = 0, size = 0;

	memcpy(once, now, n * sizeof(*once));
	train_run(x, 0, g.n_ops, NULL);
	for (size_t i = 0; i < n; i++) {
		off = fmax(off, fabs(now[i] - 2. * once[i]));
		size = fmax(size, fabs(now[i]));
	}
	ok(off < 1e-6 * size, "gradients of a second batch are added");
	free(once);
	model_free(&m);
	train_free(x);
	train_graph_fini(&g);
}

/*
 * A scale that f16 does not bear: steps are skipped and change nothing, until
 * it is small enough; then weights follow.
 */
static void test_overflow(void)
{
	const struct train_how how = { .rows = ROWS, .length = LENGTH,
				       .type = QWEN_W_F16, .masters = true,
				       .method = TRAIN_ADAMW };
	struct train_place place = { .loss_scale = 0x1p24 };
	struct train_graph g;
	struct train_rule r;
	struct model m;
	struct train *x = step_run(&g, &how, true, 2, &m);
	const float *master = train_data(x, g.param[0].master);
	const uint16_t *w = train_data(x, g.param[0].weight);
	uint16_t was = w[3];
	int steps = 0;
	bool kept = true, good = false;

	train_rule_init(&r);
	r.steps = 50;
	for (uint32_t i = 0; i < g.n_params; i++) /* of step_run() */
		memset(train_data(x, g.param[i].gradient), 0,
		       m.n[i] * sizeof(float));
	for (size_t k = 0; k < m.n[0]; k++)
		((float *)train_data(x, g.param[0].master))[k] =
			(float)m.p[0][k];
	train_loss_scale(x, (float)place.loss_scale);
	for (; !good && steps < 24; steps++) {
		double norm = 0;

		train_run(x, 0, g.n_ops, NULL);
		train_update(x, &r, 0, &norm, NULL);
		good = train_scale_follow(x, &r, norm, &place);
		kept &= good || (w[3] == was && master[3] == (float)m.p[0][3]);
	}
	ok(good && steps > 1, "f16: a scale of 2^24 overflows, a smaller one "
	   "does not");
	ok(kept, "f16: steps that overflow change nothing");
	ok(w[3] != was, "f16: the first good one changes weights");
	is_u64(place.skipped, (uint64_t)steps - 1, "f16: they are counted");
	is_f64(place.loss_scale, ldexp(0x1p24, 1 - steps),
	       "f16: each halves the scale");
	model_free(&m);
	train_free(x);
	train_graph_fini(&g);
}

static void test_refused(void)
{
	struct qwen_config c = config_of(true);
	struct train_how how = plain;
	struct train_graph g;
	struct err e = { 0 };

	how.length = 65;
	ok(!train_qwen3(&g, &c, &how, &e), "rows beyond the context");
	has_str(e.msg, "64 positions", "say the context");
	train_graph_fini(&g);
	how = plain;
	how.type = QWEN_W_INT8;
	ok(!train_qwen3(&g, &c, &how, &e), "weights of integers are refused");
	has_str(e.msg, "int8", "and named");
	train_graph_fini(&g);
	how.type = QWEN_W_F16;
	ok(!train_qwen3(&g, &c, &how, &e), "f16 without masters is refused");
	has_str(e.msg, "wanted them, or bf16", "and what would do");
	train_graph_fini(&g);
	c.vocab = 1 << 24;
	c.hidden = 1 << 20;
	how = plain;
	struct threads *t = threads_new(1, &e);
	ok(train_qwen3(&g, &c, &how, &e), "a list of a huge model");
	ok(!train_new(&g, t, NULL, &e), "does not fit");
	has_str(e.msg, "MiB are free", "and says what there is");
	train_graph_fini(&g);
	threads_free(t);
}

int main(void)
{
	const struct train_how bf16 = { .rows = ROWS, .length = LENGTH,
					.type = QWEN_W_BF16, .masters = true };

	const struct train_how f16 = { .rows = ROWS, .length = LENGTH,
				       .type = QWEN_W_F16, .masters = true };
	struct train_how lora = plain;

	lora.rank = 3;
	lora.targets = 0x7f;
	lora.again = 3;
	lora.again_layers = 1;
	make_batch();
	test_gradients("tied", &plain, true, 1e-4, 1e-6);
	test_gradients("untied", &plain, false, 1e-4, 1e-6);
	test_gradients("bf16", &bf16, true, 2e-2, 1e-2);
	test_gradients("bf16, untied", &bf16, false, 2e-2, 1e-2);
	test_gradients("f16", &f16, true, 2.5e-3, 1e-3);
	test_gradients("f16, untied", &f16, false, 2.5e-3, 1e-3);
	test_gradients("adapters", &lora, true, 1e-4, 1e-6);
	lora.type = QWEN_W_BF16;
	lora.targets = 0x15;
	test_gradients("adapters of some, bf16", &lora, false, 2e-2, 1e-2);
	lora.type = QWEN_W_F16;
	test_gradients("adapters of some, f16", &lora, false, 2.5e-3, 1e-3);
	test_same();
	test_sum();
	test_overflow();
	test_refused();
	for (size_t i = 0; i < ARRAY_SIZE(pool); i++)
		threads_free(pool[i]);
	return plan_done();
}
