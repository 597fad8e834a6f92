/*
 * Gradients of a whole tiny Qwen3, tensor by tensor, against slopes of double
 * precision (tests/ref/grad.h), and what must not change them.
 */
#include "tests/train/step.h"

static const struct train_how plain = { .rows = ROWS, .length = LENGTH };

static struct threads *pool[8]; /* by how many threads they have */

static struct step_by by_threads(unsigned n)
{
	struct err e = { 0 };

	if (!pool[n])
		pool[n] = threads_new(n, &e);
	return (struct step_by){ pool[n], NULL };
}

/* Gradients of two steps; the largest difference over the largest value. */
static double compare_steps(const struct train_how *a,
			    const struct train_how *b, unsigned threads,
			    bool *same, size_t *peak_a, size_t *peak_b)
{
	const struct step_by by_a = by_threads(2), by_b = by_threads(threads);
	struct train_graph g, h;
	struct model m;
	struct train *x = step_run(&g, a, false, &by_a, &m);
	double most = 0;

	model_free(&m);
	struct train *y = step_run(&h, b, false, &by_b, &m);
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
	const struct step_by by = by_threads(2);
	struct train_graph g;
	struct model m;
	struct train *x = step_run(&g, &plain, true, &by, &m);
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
	const struct step_by by = by_threads(2);
	struct train_graph g;
	struct train_rule r;
	struct model m;
	struct train *x = step_run(&g, &how, true, &by, &m);
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
	const struct step_by by = by_threads(2);

	make_batch();
	test_step("tied", &plain, true, &by, 1e-4, 1e-6);
	test_step("untied", &plain, false, &by, 1e-4, 1e-6);
	test_step("bf16", &bf16, true, &by, 2e-2, 1e-2);
	test_step("bf16, untied", &bf16, false, &by, 2e-2, 1e-2);
	test_step("f16", &f16, true, &by, 2.5e-3, 1e-3);
	test_step("f16, untied", &f16, false, &by, 2.5e-3, 1e-3);
	test_step("adapters", &lora, true, &by, 1e-4, 1e-6);
	lora.type = QWEN_W_BF16;
	lora.targets = 0x15;
	test_step("adapters of some, bf16", &lora, false, &by, 2e-2, 1e-2);
	lora.type = QWEN_W_F16;
	test_step("adapters of some, f16", &lora, false, &by, 2.5e-3, 1e-3);
	test_same();
	test_sum();
	test_overflow();
	test_refused();
	for (size_t i = 0; i < ARRAY_SIZE(pool); i++)
		threads_free(pool[i]);
	return plan_done();
}
