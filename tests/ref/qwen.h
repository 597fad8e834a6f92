/*
 * qwen-ref - logits of a Qwen3 model in double precision, written from the
 * published architecture: it reads the files by itself and shares no code with
 * the engine.
 */
#ifndef T0_TESTS_QWEN_REF_H
#define T0_TESTS_QWEN_REF_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/ref/engram.h"
#include "tests/tap.h"

struct ref {
	uint8_t *file;
	size_t data; /* where the tensors begin */
	json_t *header;
	int layers, hidden, heads, kv_heads, dim, ffn, vocab;
	double theta, eps;
	/* YaRN as published; factor 0: none */
	double factor, original, fast, slow, attention;
	bool tied;
	const char *prefix; /* of names: those of embedding models have none */
	int experts, used; /* 0: one network for all tokens */
	bool normed;
	int engram_rows, engram_layer; /* 0: none */
};

static inline double bits_to_f64(const uint8_t *p, const char *type)
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
static inline double *ref_tensor(const struct ref *r, const char *name)
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

static inline double *ref_layer(const struct ref *r, int layer,
				const char *name)
{
	char s[128];

	snprintf(s, sizeof(s), "%slayers.%d.%s.weight", r->prefix, layer, name);
	return ref_tensor(r, s);
}

static inline int number(const json_t *j, const char *key)
{
	return (int)json_integer_value(json_object_get(j, key));
}

static inline void ref_open(struct ref *r, const char *dir)
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
	r->experts = number(c, "num_experts");
	r->used = number(c, "num_experts_per_tok");
	r->normed = json_is_true(json_object_get(c, "norm_topk_prob"));
	if (r->experts)
		r->ffn = number(c, "moe_intermediate_size");
	r->theta = json_number_value(json_object_get(c, "rope_theta"));
	const json_t *rope = json_object_get(c, "rope_scaling");
	r->factor = json_number_value(json_object_get(rope, "factor"));
	r->original = json_number_value(json_object_get(
		rope, "original_max_position_embeddings"));
	r->fast = json_number_value(json_object_get(rope, "beta_fast"));
	r->slow = json_number_value(json_object_get(rope, "beta_slow"));
	r->attention = json_number_value(
		json_object_get(rope, "attention_factor"));
	const json_t *engram = json_object_get(c, "t0_engram");
	r->engram_rows = number(engram, "rows");
	r->engram_layer = number(engram, "layer");
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
	r->prefix = json_object_get(r->header, "norm.weight") ? "" : "model.";
}

static inline void ref_close(struct ref *r)
{
	free(r->file);
	json_decref(r->header);
}

static inline void ref_norm(const double *x, const double *w, int n, double eps,
		     double *y)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += x[i] * x[i];
	for (int i = 0; i < n; i++)
		y[i] = x[i] / sqrt(s / n + eps) * w[i];
}

static inline void ref_mat(const double *w, const double *x, int rows, int cols,
		    double *y)
{
	for (int i = 0; i < rows; i++) {
		y[i] = 0;
		for (int k = 0; k < cols; k++)
			y[i] += w[(size_t)i * cols + k] * x[k];
	}
}

/* Frequencies below `low` pairs are kept, above `high` divided by the factor. */
static inline double ref_frequency(const struct ref *r, int i)
{
	const double pi = 3.14159265358979323846;
	double base = pow(r->theta, -2.0 * i / r->dim), ends[2], ramp;
	double turns[2] = { r->fast ? r->fast : 32, r->slow ? r->slow : 1 };

	if (!r->factor)
		return base;
	for (int k = 0; k < 2; k++)
		ends[k] = r->dim * log(r->original / (2 * pi * turns[k])) /
			  log(r->theta) / 2;
	ends[0] = fmax(0, floor(ends[0]));
	ends[1] = fmin(r->dim - 1, ceil(ends[1]));
	if (ends[1] == ends[0])
		ends[1] += 0.001;
	ramp = (i - ends[0]) / (ends[1] - ends[0]);
	ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
	return base / r->factor * ramp + base * (1 - ramp);
}

static inline void ref_rope(const struct ref *r, double *x, int position)
{
	double size = !r->factor ? 1 : r->attention ? r->attention :
		      1 + log(r->factor) / 10;

	for (int i = 0; i < r->dim / 2; i++) {
		double a = position * ref_frequency(r, i);
		double p = x[i], q = x[i + r->dim / 2];
		x[i] = size * (p * cos(a) - q * sin(a));
		x[i + r->dim / 2] = size * (q * cos(a) + p * sin(a));
	}
}

/* Attention and its residual, for n rows x[hidden] of one sequence. */
static inline void ref_attention(const struct ref *r, int layer, double *x,
				 int n)
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

/* out += share times a feed-forward network of h. */
static inline void ref_swiglu(const struct ref *r, int layer, const char *of,
			      const double *h, double share, double *out)
{
	double *w[3], *g = malloc((size_t)r->ffn * sizeof(*g));
	double *u = malloc((size_t)r->ffn * sizeof(*u));
	double *y = malloc((size_t)r->hidden * sizeof(*y));
	char name[96];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s.%s_proj", of,
			 i == 0 ? "gate" : i == 1 ? "up" : "down");
		w[i] = ref_layer(r, layer, name);
	}
	ref_mat(w[0], h, r->ffn, r->hidden, g);
	ref_mat(w[1], h, r->ffn, r->hidden, u);
	for (int i = 0; i < r->ffn; i++)
		g[i] = g[i] / (1 + exp(-g[i])) * u[i];
	ref_mat(w[2], g, r->hidden, r->ffn, y);
	for (int i = 0; i < r->hidden; i++)
		out[i] += share * y[i];
	double *all[] = { w[0], w[1], w[2], g, u, y };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]);
}

/*
 * A token's experts: the softmax of all scores, of which the largest are taken,
 * of equals the first, and with normed made to sum to one.
 */
static inline void ref_mixture(const struct ref *r, int layer, const double *h,
			       double *out)
{
	double *router = ref_layer(r, layer, "mlp.gate");
	double *p = malloc((size_t)r->experts * sizeof(*p));
	double sum = 0, part = 0, share[64];
	int chosen[64];
	char name[64];

	ref_mat(router, h, r->experts, r->hidden, p);
	for (int i = 0; i < r->experts; i++) {
		/* Scores are f32, so that they tie where the engine's do. */
		p[i] = exp((float)p[i]);
		sum += p[i];
	}
	for (int k = 0; k < r->used; k++) {
		int most = 0;
		for (int i = 1; i < r->experts; i++)
			if (p[i] > p[most])
				most = i;
		chosen[k] = most;
		share[k] = p[most] / sum;
		part += share[k];
		p[most] = -1;
	}
	for (int k = 0; k < r->used; k++) {
		snprintf(name, sizeof(name), "mlp.experts.%d", chosen[k]);
		ref_swiglu(r, layer, name, h,
			   r->normed ? share[k] / part : share[k], out);
	}
	free(router);
	free(p);
}

static inline void ref_ffn(const struct ref *r, int layer, double *x, int n)
{
	double *wn = ref_layer(r, layer, "post_attention_layernorm");
	double *h = malloc((size_t)r->hidden * sizeof(*h));

	for (int t = 0; t < n; t++) {
		double *row = x + (size_t)t * r->hidden;
		ref_norm(row, wn, r->hidden, r->eps, h);
		if (r->experts)
			ref_mixture(r, layer, h, row);
		else
			ref_swiglu(r, layer, "mlp", h, 1, row);
	}
	free(wn);
	free(h);
}

/* One that stands outside of layers. */
static inline double *ref_end(const struct ref *r, const char *name)
{
	char s[64];

	snprintf(s, sizeof(s), "%s%s.weight", r->prefix, name);
	return ref_tensor(r, s);
}

/* What an Engram adds before its layer. */
static inline void ref_engram(const struct ref *r, const uint32_t *id,
			      double *x, int n)
{
	double *table = ref_end(r, "engram.table");
	double *gate = ref_end(r, "engram.gate");
	double *h = malloc((size_t)r->hidden * sizeof(*h));

	for (int t = 0; t < n; t++) {
		double *row = x + (size_t)t * r->hidden, dot = 0;
		const double *of[2];
		for (int o = 0; o < 2; o++)
			of[o] = table + (size_t)engram_ref_row(
						id + t, (uint32_t)t, o,
						(uint32_t)r->engram_rows) *
						r->hidden;
		ref_norm(row, gate, r->hidden, r->eps, h);
		for (int i = 0; i < r->hidden; i++)
			dot += h[i] * (of[0][i] + of[1][i]);
		for (int i = 0; i < r->hidden; i++)
			row[i] += (of[0][i] + of[1][i]) /
				  (1 + exp(-dot / sqrt(r->hidden)));
	}
	free(table);
	free(gate);
	free(h);
}

/* What the last norm makes of each token of a sequence, [n][hidden]. */
static inline double *ref_hidden(const struct ref *r, const uint32_t *id, int n)
{
	double *embed = ref_end(r, "embed_tokens");
	double *norm = ref_end(r, "norm");
	double *x = malloc((size_t)n * r->hidden * sizeof(*x));

	for (int t = 0; t < n; t++)
		memcpy(x + (size_t)t * r->hidden,
		       embed + (size_t)id[t] * r->hidden,
		       (size_t)r->hidden * sizeof(*x));
	for (int l = 0; l < r->layers; l++) {
		if (r->engram_rows && l == r->engram_layer)
			ref_engram(r, id, x, n);
		ref_attention(r, l, x, n);
		ref_ffn(r, l, x, n);
	}
	for (int t = 0; t < n; t++)
		ref_norm(x + (size_t)t * r->hidden, norm, r->hidden, r->eps,
			 x + (size_t)t * r->hidden);
	free(embed);
	free(norm);
	return x;
}

/* Logits [n][vocab] of one sequence. */
static inline double *ref_logits(const struct ref *r, const uint32_t *id, int n)
{
	double *head = r->tied ? ref_end(r, "embed_tokens") :
				 ref_tensor(r, "lm_head.weight");
	double *h = ref_hidden(r, id, n);
	double *out = malloc((size_t)n * r->vocab * sizeof(*out));

	for (int t = 0; t < n; t++)
		ref_mat(head, h + (size_t)t * r->hidden, r->vocab, r->hidden,
			out + (size_t)t * r->vocab);
	free(head);
	free(h);
	return out;
}

/* Largest difference over the reference's root mean square. */
static inline double worst(const float *got, const double *want, int n)
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

static inline void close_to(double got, double bound, const char *what)
{
	if (!ok(got <= bound, "%s: within %g", what, bound))
		diag("%s: error %.3g", what, got);
	else
		diag("%s: error %.2e", what, got);
}

#endif
