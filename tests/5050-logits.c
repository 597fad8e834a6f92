/*
 * Logits of the CPU backend against a second implementation in double
 * precision, written from the published architecture: it reads the files by
 * itself and shares no code with the engine.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/make.h"
#include "engine/model.h"
#include "tests/tap.h"

/* ---- the reference ---- */

struct ref {
	uint8_t *file;
	size_t data; /* where the tensors begin */
	json_t *header;
	int layers, hidden, heads, kv_heads, dim, ffn, vocab;
	double theta, eps;
	bool tied;
};

static double bits_to_f64(const uint8_t *p, const char *type)
{
	if (strcmp(type, "F32") == 0) {
		float f;
		memcpy(&f, p, 4);
		return f;
	}
	unsigned h = p[0] | (unsigned)p[1] << 8;
	if (strcmp(type, "BF16") == 0) {
		int exp = h >> 7 & 255;
		double m = (h & 127) / 128.0;
		double v = exp ? ldexp(1 + m, exp - 127) : ldexp(m, -126);
		return h >> 15 ? -v : v;
	}
	int exp = h >> 10 & 31;
	double m = (h & 1023) / 1024.0;
	double v = exp ? ldexp(1 + m, exp - 15) : ldexp(m, -14);
	return h >> 15 ? -v : v;
}

/* A whole tensor as doubles; the caller frees it. */
static double *ref_tensor(const struct ref *r, const char *name)
{
	json_t *t = json_object_get(r->header, name);
	const char *type = json_string_value(json_object_get(t, "dtype"));
	json_t *place = json_object_get(t, "data_offsets");
	size_t from = (size_t)json_integer_value(json_array_get(place, 0));
	size_t to = (size_t)json_integer_value(json_array_get(place, 1));
	size_t bytes = type[0] == 'F' && type[1] == '3' ? 4 : 2;
	double *v = malloc((to - from) / bytes * sizeof(*v));

	for (size_t i = 0; i < (to - from) / bytes; i++)
		v[i] = bits_to_f64(r->file + r->data + from + i * bytes, type);
	return v;
}

static double *ref_layer(const struct ref *r, int layer, const char *name)
{
	char s[128];

	snprintf(s, sizeof(s), "model.layers.%d.%s.weight", layer, name);
	return ref_tensor(r, s);
}

static int number(const json_t *j, const char *key)
{
	return (int)json_integer_value(json_object_get(j, key));
}

static void ref_open(struct ref *r, const char *dir)
{
	struct buf path = { 0 }, bytes = { 0 };
	struct err e = { 0 };
	uint64_t n = 0;

	buf_printf(&path, "%s/config.json", dir);
	json_t *c = json_load_file(path.data, 0, NULL);
	r->layers = number(c, "num_hidden_layers");
	r->hidden = number(c, "hidden_size");
	r->heads = number(c, "num_attention_heads");
	r->kv_heads = number(c, "num_key_value_heads");
	r->dim = number(c, "head_dim");
	r->ffn = number(c, "intermediate_size");
	r->vocab = number(c, "vocab_size");
	r->theta = json_number_value(json_object_get(c, "rope_theta"));
	r->eps = json_number_value(json_object_get(c, "rms_norm_eps"));
	r->tied = json_is_true(json_object_get(c, "tie_word_embeddings"));
	json_decref(c);
	buf_reset(&path);
	buf_printf(&path, "%s/model.safetensors", dir);
	file_read(path.data, 0, &bytes, &e);
	buf_fini(&path);
	r->file = (uint8_t *)bytes.data;
	for (int i = 0; i < 8; i++)
		n |= (uint64_t)r->file[i] << 8 * i;
	r->header = json_loadb((char *)r->file + 8, n, 0, NULL);
	r->data = 8 + n;
}

static void ref_close(struct ref *r)
{
	free(r->file);
	json_decref(r->header);
}

static void ref_norm(const double *x, const double *w, int n, double eps,
		     double *y)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += x[i] * x[i];
	for (int i = 0; i < n; i++)
		y[i] = x[i] / sqrt(s / n + eps) * w[i];
}

static void ref_mat(const double *w, const double *x, int rows, int cols,
		    double *y)
{
	for (int i = 0; i < rows; i++) {
		y[i] = 0;
		for (int k = 0; k < cols; k++)
			y[i] += w[(size_t)i * cols + k] * x[k];
	}
}

static void ref_rope(const struct ref *r, double *x, int position)
{
	for (int i = 0; i < r->dim / 2; i++) {
		double a = position * pow(r->theta, -2.0 * i / r->dim);
		double p = x[i], q = x[i + r->dim / 2];
		x[i] = p * cos(a) - q * sin(a);
		x[i + r->dim / 2] = q * cos(a) + p * sin(a);
	}
}

/* Attention and its residual, for n rows x[hidden] of one sequence. */
static void ref_attention(const struct ref *r, int layer, double *x, int n)
{
	int qd = r->heads * r->dim, kd = r->kv_heads * r->dim;
	double *wn = ref_layer(r, layer, "input_layernorm");
	double *wq = ref_layer(r, layer, "self_attn.q_proj");
	double *wk = ref_layer(r, layer, "self_attn.k_proj");
	double *wv = ref_layer(r, layer, "self_attn.v_proj");
	double *wo = ref_layer(r, layer, "self_attn.o_proj");
	double *nq = ref_layer(r, layer, "self_attn.q_norm");
	double *nk = ref_layer(r, layer, "self_attn.k_norm");
	double *h = malloc((size_t)r->hidden * sizeof(*h));
	double *q = malloc((size_t)n * qd * sizeof(*q));
	double *k = malloc((size_t)n * kd * sizeof(*k));
	double *v = malloc((size_t)n * kd * sizeof(*v));
	double *a = calloc((size_t)qd, sizeof(*a));
	double *score = malloc((size_t)n * sizeof(*score));

	for (int t = 0; t < n; t++) {
		ref_norm(x + (size_t)t * r->hidden, wn, r->hidden, r->eps, h);
		ref_mat(wq, h, qd, r->hidden, q + (size_t)t * qd);
		ref_mat(wk, h, kd, r->hidden, k + (size_t)t * kd);
		ref_mat(wv, h, kd, r->hidden, v + (size_t)t * kd);
		for (int i = 0; i < r->heads; i++) {
			double *p = q + (size_t)t * qd + i * r->dim;
			ref_norm(p, nq, r->dim, r->eps, p);
			ref_rope(r, p, t);
		}
		for (int i = 0; i < r->kv_heads; i++) {
			double *p = k + (size_t)t * kd + i * r->dim;
			ref_norm(p, nk, r->dim, r->eps, p);
			ref_rope(r, p, t);
		}
	}
	for (int t = 0; t < n; t++) {
		memset(a, 0, (size_t)qd * sizeof(*a));
		for (int i = 0; i < r->heads; i++) {
			int g = i / (r->heads / r->kv_heads);
			double sum = 0, top = -INFINITY;
			for (int s = 0; s <= t; s++) {
				score[s] = 0;
				for (int d = 0; d < r->dim; d++)
					score[s] += q[(size_t)t * qd +
						      i * r->dim + d] *
						k[(size_t)s * kd +
						  g * r->dim + d];
				score[s] /= sqrt(r->dim);
				top = fmax(top, score[s]);
			}
			for (int s = 0; s <= t; s++)
				sum += exp(score[s] - top);
			for (int s = 0; s <= t; s++)
				for (int d = 0; d < r->dim; d++)
					a[i * r->dim + d] +=
						exp(score[s] - top) / sum *
						v[(size_t)s * kd +
						  g * r->dim + d];
		}
		ref_mat(wo, a, r->hidden, qd, h);
		for (int i = 0; i < r->hidden; i++)
			x[(size_t)t * r->hidden + i] += h[i];
	}
	double *all[] = { wn, wq, wk, wv, wo, nq, nk, h, q, k, v, a, score };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]);
}

static void ref_ffn(const struct ref *r, int layer, double *x, int n)
{
	double *wn = ref_layer(r, layer, "post_attention_layernorm");
	double *wg = ref_layer(r, layer, "mlp.gate_proj");
	double *wu = ref_layer(r, layer, "mlp.up_proj");
	double *wd = ref_layer(r, layer, "mlp.down_proj");
	double *h = malloc((size_t)r->hidden * sizeof(*h));
	double *g = malloc((size_t)r->ffn * sizeof(*g));
	double *u = malloc((size_t)r->ffn * sizeof(*u));

	for (int t = 0; t < n; t++) {
		double *row = x + (size_t)t * r->hidden;
		ref_norm(row, wn, r->hidden, r->eps, h);
		ref_mat(wg, h, r->ffn, r->hidden, g);
		ref_mat(wu, h, r->ffn, r->hidden, u);
		for (int i = 0; i < r->ffn; i++)
			g[i] = g[i] / (1 + exp(-g[i])) * u[i];
		ref_mat(wd, g, r->hidden, r->ffn, h);
		for (int i = 0; i < r->hidden; i++)
			row[i] += h[i];
	}
	double *all[] = { wn, wg, wu, wd, h, g, u };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]);
}

/* Logits [n][vocab] of one sequence. */
static double *ref_logits(const struct ref *r, const uint32_t *id, int n)
{
	double *embed = ref_tensor(r, "model.embed_tokens.weight");
	double *head = r->tied ? embed : ref_tensor(r, "lm_head.weight");
	double *norm = ref_tensor(r, "model.norm.weight");
	double *x = malloc((size_t)n * r->hidden * sizeof(*x));
	double *h = malloc((size_t)r->hidden * sizeof(*h));
	double *out = malloc((size_t)n * r->vocab * sizeof(*out));

	for (int t = 0; t < n; t++)
		memcpy(x + (size_t)t * r->hidden,
		       embed + (size_t)id[t] * r->hidden,
		       (size_t)r->hidden * sizeof(*x));
	for (int l = 0; l < r->layers; l++) {
		ref_attention(r, l, x, n);
		ref_ffn(r, l, x, n);
	}
	for (int t = 0; t < n; t++) {
		ref_norm(x + (size_t)t * r->hidden, norm, r->hidden, r->eps,
			 h);
		ref_mat(head, h, r->vocab, r->hidden,
			out + (size_t)t * r->vocab);
	}
	if (!r->tied)
		free(head);
	free(embed);
	free(norm);
	free(x);
	free(h);
	return out;
}

/* ---- comparing ---- */

/* Largest difference over the reference's root mean square. */
static double worst(const float *got, const double *want, int n)
{
	double square = 0, most = 0;

	for (int i = 0; i < n; i++) {
		square += want[i] * want[i];
		most = fmax(most, fabs(got[i] - want[i]));
		if (isnan(got[i]))
			return INFINITY;
	}
	return most / sqrt(square / n);
}

#define N 23
static uint32_t ids[N];
static struct threads *threads;

static struct qwen_model open_model(const char *dir, bool convert,
				    enum qwen_weights w)
{
	struct qwen_load how = { .convert = convert, .weights = w };
	struct qwen_model m;
	struct err e = { 0 };

	if (!qwen_model_load(&m, dir, &how, threads, &e))
		diag("%s", e.msg);
	return m;
}

/* Feeds ids[0..N) in pieces of `chunk`; the worst error over all tokens. */
static double run(const struct qwen_model *m, enum qwen_weights cache,
		  uint32_t chunk, const double *want)
{
	struct qwen_shape shape = { 2, 64, N, cache, NULL };
	struct qwen_token t[N];
	struct err e = { 0 };
	double most = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct qwen_token){ ids[i], 1, true, false };
	for (uint32_t at = 0; at < N; at += chunk) {
		uint32_t n = at + chunk < N ? chunk : N - at;
		if (!qwen_forward(s, t + at, n, &e)) {
			diag("%s", e.msg);
			return INFINITY;
		}
		for (uint32_t i = 0; i < n; i++)
			most = fmax(most, worst(qwen_logits(s, i),
						want + (size_t)(at + i) *
							m->config.vocab,
						(int)m->config.vocab));
	}
	qwen_state_free(s);
	return most;
}

static void close_to(double got, double bound, const char *what)
{
	if (!ok(got <= bound, "%s: within %g", what, bound))
		diag("%s: error %.3g", what, got);
	else
		diag("%s: error %.2e", what, got);
}

/* ---- tests ---- */

static char root[] = "/tmp/t0-logits-XXXXXX";

static const char *model(const char *name, enum qwen_weights w, bool tied,
			 uint32_t shards)
{
	static char path[128];
	struct qwen_make how = { .weights = w, .seed = 7, .shards = shards };
	struct err e = { 0 };

	qwen_shape_find("tiny", &how.config, &e);
	how.config.tied = tied;
	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!ok(qwen_make(path, &how, &e), "a tiny model is made: %s", name))
		diag("%s", e.msg);
	return path;
}

/*
 * Bounds: f32 as the issue of the engine has it; for types of b bits of
 * mantissa, errors of 2^-b in each of a few dozen products add up like their
 * square root; integer groups of 32 have steps of 1/254 and 1/16 of their
 * largest value.
 */
static void test_types(void)
{
	struct ref r = { 0 };
	const char *dir = model("f32", QWEN_W_F32, true, 1);

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, false, 0);
	close_to(run(&m, QWEN_W_F32, N, want), 1e-4, "f32, one pass");
	close_to(run(&m, QWEN_W_F32, 1, want), 1e-4, "f32, token by token");
	close_to(run(&m, QWEN_W_F32, 5, want), 1e-4, "f32, chunks of 5");
	close_to(run(&m, QWEN_W_F16, 4, want), 1e-2, "cache of f16");
	close_to(run(&m, QWEN_W_BF16, 4, want), 6e-2, "cache of bf16");
	close_to(run(&m, QWEN_W_INT8, 4, want), 8e-2, "cache of int8");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_F16);
	close_to(run(&m, QWEN_W_F32, 5, want), 1e-2, "converted to f16");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_BF16);
	close_to(run(&m, QWEN_W_F32, 5, want), 8e-2, "converted to bf16");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_INT8);
	close_to(run(&m, QWEN_W_F32, 5, want), 0.15, "converted to int8");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_INT4);
	close_to(run(&m, QWEN_W_F32, 5, want), 1.5, "converted to int4");
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

/* What the files hold is computed with exactly as it is. */
static void test_stored(enum qwen_weights w, bool tied, const char *name)
{
	struct ref r = { 0 };
	const char *dir = model(name, w, tied, 1);
	char what[64];

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, false, 0);
	snprintf(what, sizeof(what), "a model of %s", name);
	close_to(run(&m, QWEN_W_F32, 7, want), 1e-4, what);
	ok(m.n_blocks == 0, "%s: nothing is copied", name);
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

static void test_levels(void)
{
	struct ref r = { 0 };
	char dir[128], what[64];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k; k++)
		for (int w = 0; w < QWEN_WEIGHTS; w++) {
			static const double bound[] = { 1e-4, 1e-2, 8e-2, .15,
							1.5 };
			struct qwen_model m = open_model(dir, true,
							 (enum qwen_weights)w);
			m.kernels = *k;
			snprintf(what, sizeof(what), "%s, %s", (*k)->name,
				 qwen_weights_name((enum qwen_weights)w));
			close_to(run(&m, QWEN_W_F32, 3, want), bound[w], what);
			qwen_model_close(&m);
		}
	free(want);
	ref_close(&r);
}

/* Two sequences in one pass, interleaved, are as each alone. */
static void test_batch(void)
{
	struct qwen_shape shape = { 2, 64, 2 * N, QWEN_W_F32, NULL };
	struct qwen_token t[2 * N];
	struct err e = { 0 };
	char dir[128];
	unsigned differ = 0;

	snprintf(dir, sizeof(dir), "%s/f32", root);
	struct qwen_model m = open_model(dir, false, 0);
	struct qwen_state *both = qwen_state_new(&m, &shape, &e);
	struct qwen_state *one = qwen_state_new(&m, &shape, &e);
	for (uint32_t i = 0; i < N; i++) {
		t[2 * i] = (struct qwen_token){ ids[i], 0, true, false };
		t[2 * i + 1] = (struct qwen_token){ ids[N - 1 - i], 1, i > 3, false };
	}
	qwen_forward(both, t, 2 * N, &e);
	ok(!qwen_logits(both, 1) && qwen_logits(both, 2 * N - 1),
	   "logits are there where they were wanted");
	for (uint32_t i = 0; i < N; i++) {
		struct qwen_token x = { ids[N - 1 - i], 0, true, false };
		qwen_forward(one, &x, 1, &e);
		if (i > 3 && memcmp(qwen_logits(one, 0),
				    qwen_logits(both, 2 * i + 1),
				    m.config.vocab * sizeof(float)) != 0)
			differ++;
	}
	is_u64(differ, 0, "a sequence in a batch has the bits it has alone");
	qwen_state_free(both);
	qwen_state_free(one);
	qwen_model_close(&m);
}

static volatile sig_atomic_t stop;

/* `s` has 8 of 8 positions. */
static void test_stops(struct qwen_state *s)
{
	struct qwen_token t = { .id = 3, .best = true, .logits = true };
	struct err e = { 0 };
	uint32_t at = 0;

	qwen_state_cut(s, 0, 7);
	stop = 1;
	ok(!qwen_forward(s, &t, 1, &e) && e.code == ERR_BUSY,
	   "a signal ends a pass");
	is_u64(qwen_state_length(s, 0), 7, "which never was");
	stop = 0;
	ok(qwen_forward(s, &t, 1, &e), "afterwards it goes on");
	const float *v = qwen_logits(s, 0);
	for (uint32_t i = 1; i < 512; i++)
		at = v[i] > v[at] ? i : at;
	is_u64(qwen_best(s, 0), at, "the best is the largest logit");
}

static void test_refuses(void)
{
	struct qwen_shape shape = { 1, 8, 16, QWEN_W_F32, &stop };
	struct qwen_token t[17] = { { 0, 0, false, false } };
	struct err e = { 0 };
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	struct qwen_model m = open_model(dir, false, 0);
	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
	ok(!qwen_forward(s, t, 9, &e) && e.code == ERR_USAGE,
	   "more tokens than the context are refused");
	has_str(e.msg, "its context has 8", "with its size");
	is_u64(qwen_state_length(s, 0), 0, "and nothing has changed");
	ok(!qwen_forward(s, t, 17, &e), "too many tokens at once, too");
	t[0].id = 512;
	ok(!qwen_forward(s, t, 1, &e), "and an id beyond the vocabulary");
	t[0] = (struct qwen_token){ 1, 1, false, false };
	ok(!qwen_forward(s, t, 1, &e), "and a sequence that is not there");
	t[0].sequence = 0;
	ok(qwen_forward(s, t, 8, &e), "what fits is done");
	qwen_state_cut(s, 0, 5);
	ok(qwen_forward(s, t, 3, &e), "after a cut there is room again");
	ok(qwen_forward(s, t, 0, &e), "no token is no work");
	test_stops(s);
	qwen_state_free(s);
	shape.positions = 1u << 30;
	ok(!qwen_state_new(&m, &shape, &e),
	   "more positions than the model knows are refused");
	qwen_model_close(&m);
}

int main(void)
{
	struct err e = { 0 };

	if (!mkdtemp(root))
		return 2;
	for (uint32_t i = 0; i < N; i++)
		ids[i] = (i * i * 37 + 11 * i + 3) % 512;
	threads = threads_new(3, &e);
	test_types();
	test_stored(QWEN_W_BF16, true, "bf16");
	test_stored(QWEN_W_F16, false, "f16");
	test_levels();
	test_batch();
	test_refuses();
	threads_free(threads);
	char cmd[64];
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
