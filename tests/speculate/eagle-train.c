/*
 * A layer of EAGLE-3 that learns: losses of several tokens in a row and their
 * gradients against double precision and slopes computed here, in rows of
 * several documents; what is written is what engine/speculate reads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/train/heads/heads.h"
#include "tests/tap.h"

enum {
	HIDDEN = 24,
	HEADS = 4,
	KV = 2,
	DIM = 6,
	FFN = 20,
	VOCAB = 265,
	ROWS = 2,
	LENGTH = 7,
	STEPS = 3,
	ALL = LENGTH + STEPS,
	TRIED = 6
};

static char root[] = "/tmp/t0-eagle-train-XXXXXX";
static char dir[64];

/* Row 1 is of two documents. */
static const uint32_t position[ROWS * LENGTH] = { 0, 1, 2, 3, 4, 5, 6,
						  0, 1, 2, 0, 1, 2, 3 };
static uint32_t id[ROWS * LENGTH], target[STEPS][ROWS * LENGTH];
static float taps[ROWS * LENGTH][3 * HIDDEN];

/* ---- in double ---- */

struct keys {
	double k[ALL][KV * DIM], v[ALL][KV * DIM];
	size_t n;
};

struct slow {
	const struct qwen_model *m;
	double *w[TRAIN_EAGLE_PARTS];
};

static void slow_product(const double *w, size_t rows, size_t cols,
			 const double *x, double *y)
{
	for (size_t r = 0; r < rows; r++) {
		y[r] = 0;
		for (size_t c = 0; c < cols; c++)
			y[r] += w[r * cols + c] * x[c];
	}
}

static void slow_norm(const double *x, const double *w, double *y)
{
	double sum = 0;

	for (size_t i = 0; i < HIDDEN; i++)
		sum += x[i] * x[i];
	for (size_t i = 0; i < HIDDEN; i++)
		y[i] = x[i] / sqrt(sum / HIDDEN + 1e-6) * w[i];
}

static void slow_turn(double *x, const struct qwen_config *c, double at)
{
	for (int i = 0; i < DIM / 2; i++) {
		const double angle = at * pow(c->rope_theta, -2.0 * i / DIM);
		const double a = x[i], b = x[i + DIM / 2];
		x[i] = a * cos(angle) - b * sin(angle);
		x[i + DIM / 2] = b * cos(angle) + a * sin(angle);
	}
}

static void slow_attend(const struct keys *s, const double *q, int kv,
			double *out)
{
	double score[ALL], sum = 0;

	for (size_t p = 0; p < s->n; p++) {
		score[p] = 0;
		for (int i = 0; i < DIM; i++)
			score[p] += q[i] * s->k[p][kv * DIM + i];
		sum += score[p] = exp(score[p] / sqrt(DIM));
	}
	memset(out, 0, DIM * sizeof(*out));
	for (size_t p = 0; p < s->n; p++)
		for (int i = 0; i < DIM; i++)
			out[i] += score[p] / sum * s->v[p][kv * DIM + i];
}

/* x goes through the layer, with a key more. */
static void slow_layer(const struct slow *s, struct keys *keys, double *x,
		       uint32_t token, double at)
{
	double *const *w = s->w, both[2 * HIDDEN], q[HEADS * DIM];
	double a[HEADS * DIM], h[HIDDEN], gate[FFN], up[FFN];
	double *k = keys->k[keys->n], *v = keys->v[keys->n];
	float row[HIDDEN];

	keys->n++;
	qwen_matrix_row(s->m->kernels, &s->m->embed, token, row);
	for (int i = 0; i < HIDDEN; i++)
		h[i] = (double)row[i];
	slow_norm(h, w[TRAIN_EAGLE_EMBED_NORM], both);
	slow_norm(x, w[TRAIN_EAGLE_HIDDEN_NORM], both + HIDDEN);
	slow_product(w[TRAIN_EAGLE_Q], HEADS * DIM, 2 * HIDDEN, both, q);
	slow_product(w[TRAIN_EAGLE_K], KV * DIM, 2 * HIDDEN, both, k);
	slow_product(w[TRAIN_EAGLE_V], KV * DIM, 2 * HIDDEN, both, v);
	for (int i = 0; i < KV; i++)
		slow_turn(k + i * DIM, &s->m->config, at);
	for (int i = 0; i < HEADS; i++) {
		slow_turn(q + i * DIM, &s->m->config, at);
		slow_attend(keys, q + i * DIM, i / (HEADS / KV), a + i * DIM);
	}
	slow_product(w[TRAIN_EAGLE_O], HIDDEN, HEADS * DIM, a, h);
	for (int i = 0; i < HIDDEN; i++)
		x[i] += h[i];
	slow_norm(x, w[TRAIN_EAGLE_FFN_NORM], h);
	slow_product(w[TRAIN_EAGLE_GATE], FFN, HIDDEN, h, gate);
	slow_product(w[TRAIN_EAGLE_UP], FFN, HIDDEN, h, up);
	for (int i = 0; i < FFN; i++)
		gate[i] *= up[i] / (1 + exp(-gate[i]));
	slow_product(w[TRAIN_EAGLE_DOWN], HIDDEN, FFN, gate, h);
	for (int i = 0; i < HIDDEN; i++)
		x[i] += h[i];
}

static void slow_say(const struct slow *s, const double *x, double *logits)
{
	double h[HIDDEN];

	slow_norm(x, s->w[TRAIN_EAGLE_NORM], h);
	slow_product(s->w[TRAIN_EAGLE_OUT], VOCAB, HIDDEN, h, logits);
}

/* The first entry of token i of a row, behind the keys of those before it. */
static void slow_begin(const struct slow *s, struct keys *keys, size_t at,
		       double *x)
{
	double wide[3 * HIDDEN];

	if (!position[at])
		keys->n = 0;
	for (int i = 0; i < 3 * HIDDEN; i++)
		wide[i] = (double)taps[at][i];
	slow_product(s->w[TRAIN_EAGLE_FC], HIDDEN, 3 * HIDDEN, wide, x);
	slow_layer(s, keys, x, id[at + 1], position[at]);
}

static double slow_loss(const struct slow *s)
{
	double loss[STEPS] = { 0 }, all = 0, x[HIDDEN], logits[VOCAB];
	uint32_t n[STEPS] = { 0 };
	struct keys keys = { .n = 0 };

	for (size_t at = 0; at < ROWS * LENGTH; at++) {
		if (at % LENGTH == LENGTH - 1)
			continue;
		slow_begin(s, &keys, at, x);
		struct keys own = keys;
		for (uint32_t step = 0; step < STEPS; step++) {
			double sum = 0;
			if (at % LENGTH + 1 + step >= LENGTH)
				break;
			if (step)
				slow_layer(s, &own, x, id[at + 1 + step],
					   position[at] + step);
			if (target[step][at] == TRAIN_IGNORE)
				continue;
			slow_say(s, x, logits);
			for (int i = 0; i < VOCAB; i++)
				sum += exp(logits[i]);
			loss[step] += log(sum) - logits[target[step][at]];
			n[step]++;
		}
	}
	for (int i = 0; i < STEPS; i++)
		all += loss[i] / n[i];
	return all;
}

/* ---- compared ---- */

static void slow_read(struct slow *s, const struct train_eagle *h)
{
	for (int k = 0; k < TRAIN_EAGLE_PARTS; k++) {
		const size_t n = tape_count(h->w[k]);
		s->w[k] = xcalloc(n, sizeof(double));
		for (size_t i = 0; i < n; i++)
			s->w[k][i] = (double)h->w[k]->data[i];
	}
}

static double gradients_apart(const struct slow *s, const struct train_eagle *h)
{
	const double step = 1e-5;
	uint64_t seed = 6;
	double worst = 0;

	for (int k = 0; k < TRAIN_EAGLE_PARTS; k++)
		for (int j = 0; j < TRIED; j++) {
			const size_t i =
				random_next(&seed) % tape_count(h->w[k]);
			const double was = s->w[k][i];
			double slope;
			s->w[k][i] = was + step;
			slope = slow_loss(s);
			s->w[k][i] = was - step;
			slope = (slope - slow_loss(s)) / (2 * step);
			s->w[k][i] = was;
			worst = fmax(worst,
				     fabs((double)h->w[k]->grad[i] - slope));
		}
	return worst;
}

/* Of row 0 the first four tokens, and what is said behind them. */
static void test_folder(const struct slow *s, const struct train_eagle *h)
{
	enum { ENTRIES = 4 };
	struct qwen_eagle engine;
	struct keys keys = { .n = 0 };
	double x[HIDDEN], logits[VOCAB], far = 0;
	struct err e = { 0 };

	if (!ok(train_eagle_write(h, dir, "a model", &e) &&
			qwen_eagle_open(&engine, dir, s->m, ALL, &e),
		"what has learnt is read: %s", e.msg))
		return;
	for (size_t i = 0; i < ENTRIES; i++)
		slow_begin(s, &keys, i, x);
	qwen_eagle_read(&engine, taps[0], id + 1, 0, ENTRIES);
	for (uint32_t step = 0; step < STEPS; step++) {
		if (step) {
			qwen_eagle_guess(&engine, id[ENTRIES + step],
					 ENTRIES - 1 + step);
			slow_layer(s, &keys, x, id[ENTRIES + step],
				   ENTRIES - 1 + step);
		}
		qwen_eagle_say(&engine);
		slow_say(s, x, logits);
		for (int i = 0; i < VOCAB; i++)
			far = fmax(far,
				   fabs((double)engine.logits[i] - logits[i]));
	}
	diag("logits differ by %.2g at most", far);
	ok(far < 1e-4, "and says the same, token by token");
	qwen_eagle_close(&engine);
}

static void test_layer(const struct qwen_model *m)
{
	const uint32_t *const targets[STEPS] = { target[0], target[1],
						 target[2] };
	struct train_heads_sum sum = { 0 };
	struct train_eagle h;
	struct slow s = { .m = m };
	struct err e = { 0 };
	uint64_t seed = 11;
	uint32_t next[ROWS * LENGTH];

	for (int i = 0; i < ROWS * LENGTH; i++) {
		id[i] = (uint32_t)(random_next(&seed) % VOCAB);
		next[i] = (uint32_t)(random_next(&seed) % VOCAB);
		for (int k = 0; k < 3 * HIDDEN; k++)
			taps[i][k] =
				(float)((double)(random_next(&seed) >> 40) *
						0x1p-23 -
					1);
	}
	next[2] = TRAIN_IGNORE;
	for (uint32_t k = 0; k < STEPS; k++)
		for (int r = 0; r < ROWS; r++)
			train_heads_target(k, position + r * LENGTH,
					   next + r * LENGTH, LENGTH,
					   target[k] + r * LENGTH);
	train_eagle_init(&h, m, STEPS, LENGTH, 3, &e);
	for (int k = TRAIN_EAGLE_EMBED_NORM; k < TRAIN_EAGLE_PARTS; k++)
		for (size_t i = 0; i < HIDDEN; i++)
			h.w[k]->data[i] +=
				0.4f *
				(float)((double)(random_next(&seed) >> 40) *
						0x1p-23 -
					1);
	slow_read(&s, &h);
	struct tensor *loss = train_eagle_loss(&h, taps[0], id, position, ROWS,
					       LENGTH, targets, &sum);
	ok(tape_backward(loss), "%d steps, and back: %s", STEPS, e.msg);
	diag("losses %.9g, %.9g", (double)loss->data[0], slow_loss(&s));
	ok(fabs((double)loss->data[0] - slow_loss(&s)) < 1e-5,
	   "losses are those of double precision");
	const double far = gradients_apart(&s, &h);
	diag("gradients differ by %.2g at most", far);
	ok(far < 1e-5, "and so are gradients, of every part");
	is_u64(sum.targets[0], 10, "of targets within documents");
	is_u64(sum.targets[2], 5, "fewer further ahead");
	test_folder(&s, &h);
	for (int k = 0; k < TRAIN_EAGLE_PARTS; k++)
		free(s.w[k]);
	train_eagle_fini(&h);
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
	how.config.hidden = HIDDEN;
	how.config.heads = HEADS;
	how.config.kv_heads = KV;
	how.config.head_dim = DIM;
	how.config.ffn = FFN;
	how.config.vocab = VOCAB;
	if (ok(qwen_synthetic_write(model, &how, &e) &&
		       qwen_model_load(&m, model, &as_is, threads, &e),
	       "a model: %s", e.msg)) {
		test_layer(&m);
		qwen_model_close(&m);
	}
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
