/*
 * EAGLE-3 heads as published: what the layer makes of hidden states and tokens,
 * and of its own results, against double precision computed here; folders that
 * are not as they should be.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/speculate/speculate.h"
#include "tests/speculate/eagle-folder.h"
#include "tests/tap.h"

enum { ENTRIES = 23, GUESSES = 3, ALL = ENTRIES + GUESSES, WIDE = 512 };

static char root[] = "/tmp/t0-eagle-XXXXXX";
static char dir[64];

/* ---- the layer in double ---- */

struct slow {
	const struct eagle_folder *f;
	const struct qwen_model *m;
	double k[ALL][EAGLE_KV * EAGLE_DIM], v[ALL][EAGLE_KV * EAGLE_DIM];
	double x[WIDE]; /* what comes out */
};

static void slow_product(const float *w, size_t rows, size_t cols,
			 const double *x, double *y)
{
	for (size_t r = 0; r < rows; r++) {
		y[r] = 0;
		for (size_t c = 0; c < cols; c++)
			y[r] += w[r * cols + c] * x[c];
	}
}

static void slow_norm(const double *x, const float *w, size_t n, double *y)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / sqrt(sum / (double)n + 1e-6) * w[i];
}

static void slow_rope(double *x, uint32_t position)
{
	for (int i = 0; i < EAGLE_DIM / 2; i++) {
		const double angle = position * pow(1e4, -2.0 * i / EAGLE_DIM);
		const double a = x[i], b = x[i + EAGLE_DIM / 2];
		x[i] = a * cos(angle) - b * sin(angle);
		x[i + EAGLE_DIM / 2] = b * cos(angle) + a * sin(angle);
	}
}

static void slow_attend(const struct slow *s, const double *q, uint32_t at,
			int kv, double *out)
{
	double score[ALL], sum = 0;

	for (uint32_t p = 0; p <= at; p++) {
		score[p] = 0;
		for (int i = 0; i < EAGLE_DIM; i++)
			score[p] += q[i] * s->k[p][kv * EAGLE_DIM + i];
		sum += score[p] = exp(score[p] / sqrt(EAGLE_DIM));
	}
	for (int i = 0; i < EAGLE_DIM; i++) {
		out[i] = 0;
		for (uint32_t p = 0; p <= at; p++)
			out[i] += score[p] / sum * s->v[p][kv * EAGLE_DIM + i];
	}
}

/* s->x goes through the layer as entry `at`. */
static void slow_layer(struct slow *s, uint32_t id, uint32_t at)
{
	const struct eagle_folder *f = s->f;
	const size_t n = f->hidden;
	double e[WIDE], both[2 * WIDE], q[EAGLE_HEADS * EAGLE_DIM];
	double a[EAGLE_HEADS * EAGLE_DIM], h[WIDE], gate[EAGLE_FFN],
		up[EAGLE_FFN];
	float row[WIDE];

	qwen_matrix_row(s->m->kernels, &s->m->embed, id, row);
	for (size_t i = 0; i < n; i++)
		e[i] = (double)row[i];
	slow_norm(e, f->data[E_EMBED_NORM], n, both);
	slow_norm(s->x, f->data[E_HIDDEN_NORM], n, both + n);
	slow_product(f->data[E_Q], EAGLE_HEADS * EAGLE_DIM, 2 * n, both, q);
	slow_product(f->data[E_K], EAGLE_KV * EAGLE_DIM, 2 * n, both, s->k[at]);
	slow_product(f->data[E_V], EAGLE_KV * EAGLE_DIM, 2 * n, both, s->v[at]);
	for (int i = 0; i < EAGLE_KV; i++)
		slow_rope(s->k[at] + i * EAGLE_DIM, at);
	for (int i = 0; i < EAGLE_HEADS; i++) {
		slow_rope(q + i * EAGLE_DIM, at);
		slow_attend(s, q + i * EAGLE_DIM, at,
			    i / (EAGLE_HEADS / EAGLE_KV), a + i * EAGLE_DIM);
	}
	slow_product(f->data[E_O], n, EAGLE_HEADS * EAGLE_DIM, a, e);
	for (size_t i = 0; i < n; i++)
		s->x[i] += e[i];
	slow_norm(s->x, f->data[E_FFN_NORM], n, h);
	slow_product(f->data[E_GATE], EAGLE_FFN, n, h, gate);
	slow_product(f->data[E_UP], EAGLE_FFN, n, h, up);
	for (int i = 0; i < EAGLE_FFN; i++)
		gate[i] *= up[i] / (1 + exp(-gate[i]));
	slow_product(f->data[E_DOWN], n, EAGLE_FFN, gate, e);
	for (size_t i = 0; i < n; i++)
		s->x[i] += e[i];
}

static uint32_t slow_say(const struct slow *s, double *logits)
{
	const struct eagle_folder *f = s->f;
	double h[WIDE];
	uint32_t best = 0;

	slow_norm(s->x, f->data[E_NORM], f->hidden, h);
	slow_product(f->data[E_OUT], f->draft, f->hidden, h, logits);
	for (uint32_t i = 1; i < f->draft; i++)
		best = logits[i] > logits[best] ? i : best;
	return 2 * best + 1;
}

/* ---- compared ---- */

static double far_of(const struct qwen_eagle *h, const double *logits)
{
	double far = 0;

	for (uint32_t i = 0; i < h->vocab; i++)
		far = fmax(far, fabs((double)h->logits[i] - logits[i]));
	return far;
}

static void test_layer(const struct qwen_model *m)
{
	struct eagle_folder f = { .hidden = m->config.hidden,
				  .vocab = m->config.vocab,
				  .draft = m->config.vocab / 3 };
	const size_t n = f.hidden;
	struct slow *s = xcalloc(1, sizeof(*s));
	float *hidden = xcalloc(ENTRIES * 3 * n, sizeof(*hidden));
	double *logits = xcalloc(f.draft, sizeof(*logits));
	double *wide = xcalloc(3 * n, sizeof(*wide)), far = 0;
	uint32_t id[ENTRIES], said, right = 0;
	struct qwen_eagle h;
	struct err e = { 0 };
	uint64_t seed = 8;

	if (!ok(eagle_folder_write(&f, dir, 3) &&
			qwen_eagle_open(&h, dir, m, ALL, &e),
		"a folder as published: %s", e.msg))
		return;
	*s = (struct slow){ .f = &f, .m = m };
	for (size_t i = 0; i < ENTRIES * 3 * n; i++)
		hidden[i] =
			(float)((double)(random_next(&seed) >> 40) * 0x1p-23 -
				1);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		id[i] = (uint32_t)(random_next(&seed) % f.vocab);
		for (size_t k = 0; k < 3 * n; k++)
			wide[k] = (double)hidden[i * 3 * n + k];
		slow_product(f.data[E_FC], n, 3 * n, wide, s->x);
		slow_layer(s, id[i], i);
	}
	/* In two goes, of which one is more than fit together. */
	qwen_eagle_read(&h, hidden, id, 0, 3);
	qwen_eagle_read(&h, hidden + 3 * 3 * n, id + 3, 3, ENTRIES - 3);
	for (uint32_t i = 0; i <= GUESSES; i++) {
		said = qwen_eagle_say(&h);
		right += said == slow_say(s, logits);
		far = fmax(far, far_of(&h, logits));
		if (i == GUESSES)
			break;
		qwen_eagle_guess(&h, said, ENTRIES + i);
		slow_layer(s, said, ENTRIES + i);
	}
	diag("logits differ by %.2g at most", far);
	ok(far < 1e-4, "logits are those of double precision, of entries and "
		       "of guesses behind them");
	is_u64(right, GUESSES + 1, "and tokens are the model's, by d2t");
	is_u64(h.tap[0], 2, "low");
	is_u64(h.tap[1], m->config.layers / 2, "mid");
	is_u64(h.tap[2], m->config.layers < 3 ? 0 : m->config.layers - 3,
	       "and high hidden states are taken");
	qwen_eagle_close(&h);
	eagle_folder_free(&f);
	free(s);
	free(hidden);
	free(logits);
	free(wide);
}

static void test_refuses(const struct qwen_model *m)
{
	const uint32_t hidden = m->config.hidden, vocab = m->config.vocab;
	struct eagle_folder other = { .hidden = hidden + 8,
				      .vocab = vocab,
				      .draft = 32 };
	struct eagle_folder far = { .hidden = hidden,
				    .vocab = vocab,
				    .draft = 32 };
	struct qwen_eagle h;
	struct err e = { 0 };
	char path[128];

	ok(eagle_folder_write(&other, dir, 3) &&
		   !qwen_eagle_open(&h, dir, m, ALL, &e),
	   "heads of another model are refused");
	has_str(e.msg, "wanted its own heads", "by their sizes");
	e = (struct err){ 0 };
	ok(eagle_folder_write(&far, dir, 3), "heads whose");
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	far.d2t[31] = vocab;
	ok(qwen_tensors_write(path, far.t, EAGLE_TENSORS, eagle_bytes, &far,
			      &e) &&
		   !qwen_eagle_open(&h, dir, m, ALL, &e),
	   "tokens are not the model's");
	has_str(e.msg, "d2t of token 31 is ", "are, too");
	far.d2t[31] = 31;
	e = (struct err){ 0 };
	ok(qwen_tensors_write(path, far.t, EAGLE_TENSORS, eagle_bytes, &far,
			      &e) &&
		   !qwen_eagle_open(&h, dir, m, ALL, &e),
	   "and those that t2d does not have");
	e = (struct err){ 0 };
	ok(qwen_tensors_write(path, far.t, EAGLE_FLOATS, eagle_bytes, &far,
			      &e) &&
		   !qwen_eagle_open(&h, dir, m, ALL, &e),
	   "and without d2t");
	has_str(e.msg, "d2t", "which is named");
	eagle_folder_free(&other);
	eagle_folder_free(&far);
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 4 };
	const struct qwen_load as_is = { 0 };
	char command[96], model[64];
	struct err e = { 0 };
	struct threads *threads = threads_new(2, &e);
	struct qwen_model m;

	if (!mkdtemp(root))
		skip_all("no folder");
	snprintf(model, sizeof(model), "%s/model", root);
	snprintf(dir, sizeof(dir), "%s/heads", root);
	qwen_shape_find("tiny", &how.config, &e);
	if (ok(qwen_synthetic_write(model, &how, &e) &&
		       qwen_model_load(&m, model, &as_is, threads, &e),
	       "a model: %s", e.msg)) {
		test_layer(&m);
		test_refuses(&m);
		qwen_model_close(&m);
	}
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ok(system(command) == 0, "the models are gone");
	return plan_done();
}
