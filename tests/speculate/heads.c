/*
 * Heads that propose tokens: what a state keeps of layers, Medusa's folders as
 * published, and gradients, against double precision computed here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/train/heads/heads.h"
#include "tests/tap.h"

enum { HEADS = 2, BLOCKS = 2, N = 21 };

static struct threads *threads;
static char root[] = "/tmp/t0-heads-XXXXXX";
static char path[128], dir[64];

static float draw(uint64_t *seed)
{
	return (float)((double)(random_next(seed) >> 40) * 0x1p-23 - 1);
}

static bool is_near(double a, double b, double bound)
{
	return fabs(a - b) <= bound * (1 + fabs(b));
}

/* ---- what a state keeps ---- */

static void test_taps(const struct qwen_model *m)
{
	const struct qwen_shape shape = { .sequences = 2,
					  .positions = 64,
					  .max_tokens = 64,
					  .cache = qwen_both(QWEN_W_F32) };
	const struct qwen_config *c = &m->config;
	const uint32_t tap[] = { c->layers, 0 };
	struct qwen_token t[N];
	float *row = xcalloc(c->hidden, sizeof(*row));
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	bool first = true, last = true, again = true;

	ok(qwen_state_tap(s, tap, 2, &e), "a state keeps what enters layers");
	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct qwen_token){ .id = 3 * i + 1,
					    .sequence = i % 2,
					    .logits = true };
	ok(qwen_forward(s, t, N, &e), "a wide pass of two sequences");
	for (uint32_t i = 0; i < N; i++) {
		const float *h = qwen_kept(s, i % 2, i / 2);
		const float *logits = qwen_logits(s, i);
		double square = 0, y = 0;

		qwen_matrix_row(m->kernels, &m->embed, t[i].id, row);
		first &= !memcmp(h + c->hidden, row, c->hidden * sizeof(*row));
		for (uint32_t k = 0; k < c->hidden; k++)
			square += (double)h[k] * h[k];
		qwen_matrix_row(m->kernels, &m->head, 5, row);
		for (uint32_t k = 0; k < c->hidden; k++)
			y += h[k] / sqrt(square / c->hidden + c->norm_eps) *
			     m->norm[k] * row[k];
		last &= is_near(y, (double)logits[5], 1e-4);
	}
	ok(first, "what enters the first layer is the embedding");
	ok(last, "what leaves the last gives the logits");
	memcpy(row, qwen_kept(s, 0, 4), c->hidden * sizeof(*row));
	qwen_state_truncate(s, 0, 4);
	ok(qwen_forward(s, &t[8], 1, &e), "a narrow pass");
	for (uint32_t k = 0; k < c->hidden; k++)
		again &= is_near((double)qwen_kept(s, 0, 4)[k],
				 (double)row[k], 1e-3);
	ok(again, "keeps the same");
	qwen_state_free(s);
	free(row);
}

/* ---- a folder of Medusa's ---- */

struct folder {
	struct qwen_tensor t[HEADS * (2 * BLOCKS + 1)];
	char name[HEADS * (2 * BLOCKS + 1)][32];
	float *data[HEADS * (2 * BLOCKS + 1)];
	uint32_t n;
	bool narrow;
	uint16_t *out;
};

static const void *folder_bytes(void *ctx, size_t i, struct err *e)
{
	struct folder *f = ctx;
	size_t n = qwen_tensor_bytes(&f->t[i]) / 2;

	(void)e;
	if (!f->narrow)
		return f->data[i];
	free(f->out);
	f->out = xcalloc(n, sizeof(*f->out));
	qwen_kernels_best()->narrow(QWEN_W_BF16, f->data[i], n, f->out);
	return f->out;
}

static void folder_add(struct folder *f, uint64_t rows, uint64_t cols,
		       uint64_t *seed, const char *name)
{
	const size_t n = rows * (cols ? cols : 1);
	float *v = xcalloc(n, sizeof(*v));

	/* Of 8 bits, so that bf16 has them, too. */
	for (size_t i = 0; i < n; i++)
		v[i] = roundf(draw(seed) * 64) / 512;
	snprintf(f->name[f->n], sizeof(f->name[0]), "%s", name);
	f->data[f->n] = v;
	f->t[f->n] =
		(struct qwen_tensor){ .name = f->name[f->n],
				      .dtype = f->narrow ? QWEN_BF16 : QWEN_F32,
				      .n_dims = cols ? 2 : 1,
				      .shape = { rows, cols } };
	f->n++;
}

static bool folder_write(struct folder *f, const struct qwen_config *c,
			 uint32_t vocab)
{
	static const char text[] = "{\"medusa_num_heads\": 2, "
				   "\"medusa_num_layers\": 2, "
				   "\"base_model_name_or_path\": \"x\"}";
	uint64_t seed = 5;
	char name[32];
	struct err e = { 0 };

	f->n = 0;
	for (int i = 0; i < HEADS; i++) {
		for (int j = 0; j < BLOCKS; j++) {
			snprintf(name, sizeof(name), "%d.%d.linear.weight", i,
				 j);
			folder_add(f, c->hidden, c->hidden, &seed, name);
			snprintf(name, sizeof(name), "%d.%d.linear.bias", i, j);
			folder_add(f, c->hidden, 0, &seed, name);
		}
		snprintf(name, sizeof(name), "%d.%d.weight", i, BLOCKS);
		folder_add(f, vocab, c->hidden, &seed, name);
	}
	snprintf(path, sizeof(path), "%s/config.json", dir);
	bool good = file_make_folders(dir, &e) &&
		    file_write_atomic(path, text, sizeof(text) - 1, &e);
	snprintf(path, sizeof(path), "%s/medusa_lm_head.safetensors", dir);
	return good &&
	       qwen_tensors_write(path, f->t, f->n, folder_bytes, f, &e);
}

static void folder_free(struct folder *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free(f->data[i]);
	free(f->out);
	*f = (struct folder){ 0 };
}

/* One logit of a head, in double. */
static double logit_of(const struct folder *f, const struct qwen_model *m,
		       const float *hidden, uint32_t head, uint32_t row)
{
	const uint32_t n = m->config.hidden;
	float *const *w = f->data + (size_t)head * (2 * BLOCKS + 1);
	double x[512], y[512], square = 0, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		square += (double)hidden[i] * hidden[i];
	for (uint32_t i = 0; i < n; i++)
		x[i] = hidden[i] / sqrt(square / n + m->config.norm_eps) *
		       m->norm[i];
	for (int j = 0; j < BLOCKS; j++, w += 2) {
		for (uint32_t r = 0; r < n; r++) {
			y[r] = w[1][r];
			for (uint32_t i = 0; i < n; i++)
				y[r] += w[0][(size_t)r * n + i] * x[i];
		}
		for (uint32_t r = 0; r < n; r++)
			x[r] += y[r] / (1 + exp(-y[r]));
	}
	for (uint32_t i = 0; i < n; i++)
		sum += w[0][(size_t)row * n + i] * x[i];
	return sum;
}

static void test_folder(const struct qwen_model *m, bool narrow)
{
	const struct qwen_config *c = &m->config;
	struct folder f = { .narrow = narrow };
	struct qwen_medusa h;
	struct err e = { 0 };
	uint64_t seed = 9;
	float hidden[512];
	uint32_t right = 0;

	for (uint32_t i = 0; i < c->hidden; i++)
		hidden[i] = draw(&seed);
	if (!ok(folder_write(&f, c, c->vocab) &&
			qwen_medusa_open(&h, dir, m, &e),
		"a folder as published, %s: %s", narrow ? "bf16" : "f32",
		e.msg))
		return;
	is_u64(h.n, HEADS, "has its heads");
	is_u64(h.blocks, BLOCKS, "of so many blocks");
	qwen_medusa_run(&h, hidden, HEADS);
	for (uint32_t i = 0; i < HEADS; i++)
		for (uint32_t r = 0; r < c->vocab; r += 37)
			right += is_near((double)h.logits[i * c->vocab + r],
					 logit_of(&f, m, hidden, i, r), 1e-4);
	is_u64(right, HEADS * ((c->vocab + 36) / 37),
	       "and what they say is as in double");
	qwen_medusa_close(&h);
	folder_free(&f);
}

static void test_refuses(const struct qwen_model *m)
{
	struct folder f = { 0 };
	struct qwen_medusa h;
	struct err e = { 0 };

	ok(folder_write(&f, &m->config, m->config.vocab - 1) &&
		   !qwen_medusa_open(&h, dir, m, &e),
	   "heads of another vocabulary are refused");
	has_str(e.msg, "0.2.weight", "by name");
	snprintf(path, sizeof(path), "%s/config.json", dir);
	e = (struct err){ 0 };
	ok(file_write_atomic(path, "{\"medusa_num_heads\": 9}", 23, &e) &&
		   !qwen_medusa_open(&h, dir, m, &e),
	   "and more of them than a pass takes");
	has_str(e.msg, "\"medusa_num_heads\": wanted a whole number, 1 to 7",
		"with what is wanted");
	folder_free(&f);
}

/* ---- gradients ---- */

/* The loss of one head in double; p: linear, bias, out. */
static double loss_of(const struct qwen_model *m, double *const p[3],
		      const float *x, size_t n, const uint32_t *target)
{
	const uint32_t w = m->config.hidden, vocab = m->config.vocab;
	double loss = 0, a[512], b[512];
	uint32_t targets = 0;

	for (size_t t = 0; t < n; t++, x += w) {
		double square = 0, sum = 0, mine = 0;
		if (target[t] == TRAIN_IGNORE)
			continue;
		for (uint32_t i = 0; i < w; i++)
			square += (double)x[i] * x[i];
		for (uint32_t i = 0; i < w; i++)
			a[i] = x[i] / sqrt(square / w + m->config.norm_eps) *
			       m->norm[i];
		for (uint32_t r = 0; r < w; r++) {
			double y = p[1][r];
			for (uint32_t i = 0; i < w; i++)
				y += p[0][(size_t)r * w + i] * a[i];
			b[r] = a[r] + y / (1 + exp(-y));
		}
		for (uint32_t r = 0; r < vocab; r++) {
			double y = 0;
			for (uint32_t i = 0; i < w; i++)
				y += p[2][(size_t)r * w + i] * b[i];
			sum += exp(y);
			mine = r == target[t] ? y : mine;
		}
		loss += log(sum) - mine;
		targets++;
	}
	return loss / targets;
}

static double slope_of(const struct qwen_model *m, double *const p[3],
		       double *at, const float *x, size_t n,
		       const uint32_t *target)
{
	const double was = *at, step = 1e-5;
	double up, down;

	*at = was + step;
	up = loss_of(m, p, x, n, target);
	*at = was - step;
	down = loss_of(m, p, x, n, target);
	*at = was;
	return (up - down) / (2 * step);
}

static void test_gradients(const struct qwen_model *m)
{
	enum { TOKENS = 5, TRIED = 12 };
	const uint32_t w = m->config.hidden;
	const uint32_t a[TOKENS] = { 4, 9, TRAIN_IGNORE, 0, 7 };
	const uint32_t b[TOKENS] = { 9, TRAIN_IGNORE, 0, 7, 7 };
	const uint32_t *const target[HEADS] = { a, b };
	float *x = xcalloc((size_t)TOKENS * w, sizeof(*x));
	struct train_heads_sum sum = { 0 };
	struct train_medusa h;
	struct err e = { 0 };
	uint64_t seed = 3;
	double worst = 0, all = 0;

	for (uint32_t i = 0; i < TOKENS * w; i++)
		x[i] = draw(&seed);
	train_medusa_init(&h, m, HEADS, &e);
	for (int i = 0; i < HEADS; i++) {
		tape_fill(h.linear[i], 0.1f, 20 + (uint64_t)i);
		tape_fill(h.bias[i], 0.3f, 30 + (uint64_t)i);
		tape_fill(h.out[i], 0.1f, 40 + (uint64_t)i);
	}
	struct tensor *loss = train_medusa_loss(&h, x, TOKENS, target, &sum);
	ok(tape_backward(loss), "gradients: %s", e.msg);
	for (int i = 0; i < HEADS; i++) {
		struct tensor *of[3] = { h.linear[i], h.bias[i], h.out[i] };
		double *p[3];
		for (int k = 0; k < 3; k++) {
			p[k] = xcalloc(tape_count(of[k]), sizeof(double));
			for (size_t j = 0; j < tape_count(of[k]); j++)
				p[k][j] = (double)of[k]->data[j];
		}
		all += loss_of(m, p, x, TOKENS, target[i]);
		for (int k = 0; k < 3; k++)
			for (int j = 0; j < TRIED; j++) {
				size_t at =
					random_next(&seed) % tape_count(of[k]);
				double want = slope_of(m, p, &p[k][at], x,
						       TOKENS, target[i]);
				worst = fmax(
					worst,
					fabs((double)of[k]->grad[at] - want));
			}
		for (int k = 0; k < 3; k++)
			free(p[k]);
	}
	ok(is_near((double)loss->data[0], all, 1e-5),
	   "losses are those of double precision");
	diag("gradients differ by %.2g at most", worst);
	ok(worst < 1e-5, "and so are gradients");
	is_u64(sum.targets[0], 4, "targets that are none do not count");
	train_medusa_fini(&h);
	free(x);
}

static void test_targets(void)
{
	/* Two documents; the model says the next token. */
	const uint32_t position[6] = { 0, 1, 2, 3, 0, 1 };
	const uint32_t next[6] = { 11, 12, 13, 99, 21, 22 };
	const uint32_t want0[6] = {
		12, 13, 99, TRAIN_IGNORE, 22, TRAIN_IGNORE
	};
	const uint32_t want1[6] = { 13,		  99,		TRAIN_IGNORE,
				    TRAIN_IGNORE, TRAIN_IGNORE, TRAIN_IGNORE };
	uint32_t out[6];

	train_heads_target(0, position, next, 6, out);
	ok(!memcmp(out, want0, sizeof(out)), "head 0 learns the token behind "
					     "the next one, of its document");
	train_heads_target(1, position, next, 6, out);
	ok(!memcmp(out, want1, sizeof(out)), "head 1 the one behind that");
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 4 };
	const struct qwen_load as_is = { 0 };
	char command[96], model[64];
	struct err e = { 0 };
	struct qwen_model m;

	if (!mkdtemp(root))
		skip_all("no folder");
	threads = threads_new(2, &e);
	snprintf(model, sizeof(model), "%s/model", root);
	snprintf(dir, sizeof(dir), "%s/heads", root);
	qwen_shape_find("tiny", &how.config, &e);
	if (ok(qwen_synthetic_write(model, &how, &e) &&
		       qwen_model_load(&m, model, &as_is, threads, &e),
	       "a model: %s", e.msg)) {
		test_taps(&m);
		test_folder(&m, false);
		test_folder(&m, true);
		test_refuses(&m);
		test_gradients(&m);
		qwen_model_close(&m);
	}
	test_targets();
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ok(system(command) == 0, "the models are gone");
	return plan_done();
}
