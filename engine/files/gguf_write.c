/*
 * engine/files/gguf_write.c - GGUF files, written.
 */
#include <math.h>
#include <string.h>

#include "engine/files/files_int.h"

static void put_number(struct buf *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

static void put_text(struct buf *b, const char *s, size_t len)
{
	put_number(b, len, 8);
	buf_add(b, s, len);
}

static void put_key(struct qwen_gguf_out *o, const char *key,
		    enum qwen_gguf_type type)
{
	put_text(&o->keys, key, strlen(key));
	put_number(&o->keys, type, 4);
	o->n_keys++;
}

void qwen_gguf_put_int(struct qwen_gguf_out *o, const char *key, uint32_t v)
{
	put_key(o, key, QWEN_GGUF_U32);
	put_number(&o->keys, v, 4);
}

void qwen_gguf_put_real(struct qwen_gguf_out *o, const char *key, double v)
{
	const float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, 4);
	put_key(o, key, QWEN_GGUF_F32);
	put_number(&o->keys, bits, 4);
}

void qwen_gguf_put_text(struct qwen_gguf_out *o, const char *key,
			const char *text)
{
	put_key(o, key, QWEN_GGUF_STRING);
	put_text(&o->keys, text, strlen(text));
}

void qwen_gguf_put_list(struct qwen_gguf_out *o, const char *key,
			enum qwen_gguf_type type, uint64_t n)
{
	put_key(o, key, QWEN_GGUF_ARRAY);
	put_number(&o->keys, type, 4);
	put_number(&o->keys, n, 8);
}

void qwen_gguf_item_text(struct qwen_gguf_out *o, const char *s, size_t len)
{
	put_text(&o->keys, s, len);
}

void qwen_gguf_item_int(struct qwen_gguf_out *o, int32_t v)
{
	put_number(&o->keys, (uint32_t)v, 4);
}

struct real_key {
	const char *name;
	double v;
};
struct size_key {
	const char *name;
	uint32_t v;
};

/* Behind the name of the architecture; a size of 0 is not there. */
static void put_sizes(struct qwen_gguf_out *o, const char *kind,
		      const struct size_key *k, size_t n)
{
	char key[96];

	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%s.%s", kind, k[i].name);
		if (k[i].v)
			qwen_gguf_put_int(o, key, k[i].v);
	}
}

static void put_reals(struct qwen_gguf_out *o, const char *kind,
		      const struct real_key *k, size_t n)
{
	char key[96];

	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%s.%s", kind, k[i].name);
		qwen_gguf_put_real(o, key, k[i].v);
	}
}

const char *qwen_gguf_kind(const struct qwen_config *c)
{
	return c->experts.n ? "qwen3moe" : "qwen3";
}

static void put_yarn(struct qwen_gguf_out *o, const struct qwen_config *c)
{
	const char *kind = qwen_gguf_kind(c);
	const struct real_key factor = { "rope.scaling.factor",
					 c->yarn.factor };
	const struct size_key length = {
		"rope.scaling.original_context_length",
		(uint32_t)c->yarn.positions
	};
	const struct real_key rest[] = {
		{ "rope.scaling.yarn_beta_fast", c->yarn.fast },
		{ "rope.scaling.yarn_beta_slow", c->yarn.slow },
		/* Theirs is by what follows from the factor. */
		{ "rope.scaling.attn_factor",
		  c->yarn.attention / (0.1 * log(c->yarn.factor) + 1) },
	};
	char key[96];

	snprintf(key, sizeof(key), "%s.rope.scaling.type", kind);
	qwen_gguf_put_text(o, key, "yarn");
	put_reals(o, kind, &factor, 1);
	put_sizes(o, kind, &length, 1);
	put_reals(o, kind, rest, ARRAY_SIZE(rest));
}

void qwen_gguf_put_config(struct qwen_gguf_out *o, const struct qwen_config *c)
{
	const char *kind = qwen_gguf_kind(c);
	const struct size_key size[] = {
		{ "block_count", c->layers },
		{ "context_length", c->max_positions },
		{ "embedding_length", c->hidden },
		{ "feed_forward_length", c->ffn },
		{ "attention.head_count", c->heads },
		{ "attention.head_count_kv", c->kv_heads },
		{ "attention.key_length", c->head_dim },
		{ "attention.value_length", c->head_dim },
		{ "expert_count", c->experts.n },
		{ "expert_used_count", c->experts.used },
		{ "expert_feed_forward_length", c->experts.n ? c->ffn : 0 },
	};
	const struct real_key real[] = {
		{ "rope.freq_base", c->rope_theta },
		{ "attention.layer_norm_rms_epsilon", c->norm_eps },
	};

	qwen_gguf_put_text(o, "general.architecture", kind);
	put_sizes(o, kind, size, ARRAY_SIZE(size));
	put_reals(o, kind, real, ARRAY_SIZE(real));
	if (c->yarn.factor > 0)
		put_yarn(o, c);
	if (c->sample) {
		qwen_gguf_put_real(o, "general.sampling.temp", c->temperature);
		qwen_gguf_put_int(o, "general.sampling.top_k", c->top_k);
		qwen_gguf_put_real(o, "general.sampling.top_p", c->top_p);
		qwen_gguf_put_real(o, "general.sampling.min_p", c->min_p);
		qwen_gguf_put_real(o, "general.sampling.penalty_repeat",
				   c->repetition_penalty);
	}
	if (c->n_stops)
		qwen_gguf_put_int(o, "tokenizer.ggml.eos_token_id", c->stop[0]);
	if (c->n_stops > 1)
		qwen_gguf_put_int(o, "tokenizer.ggml.eot_token_id", c->stop[1]);
}

/* ---- the file ---- */

/* Zeros up to the next tensor's place. */
static bool padding_add(struct qwen_stream *s, uint64_t at, struct err *e)
{
	static const char zero[QWEN_GGUF_ALIGNMENT];

	return qwen_stream_add(s, zero, (size_t)(
		qwen_gguf_pad(at, QWEN_GGUF_ALIGNMENT) - at), e);
}

static void put_tensor(struct buf *b, const struct qwen_tensor *t, uint64_t at)
{
	put_text(b, t->name, strlen(t->name));
	put_number(b, t->n_dims, 4);
	for (uint32_t i = t->n_dims; i--;) /* innermost first */
		put_number(b, t->shape[i], 8);
	put_number(b, (uint32_t)qwen_dtype_gguf(t->dtype), 4);
	put_number(b, at, 8);
}

static bool head_add(const struct qwen_gguf_out *o, struct qwen_stream *s,
		     const struct qwen_tensor *t, size_t n, struct err *e)
{
	struct buf b = { 0 };
	uint64_t at = 0;

	buf_adds(&b, "GGUF");
	put_number(&b, 3, 4);
	put_number(&b, n, 8);
	put_number(&b, o->n_keys, 8);
	buf_add(&b, o->keys.data, o->keys.len);
	for (size_t i = 0; i < n; i++) {
		put_tensor(&b, &t[i], at);
		at = qwen_gguf_pad(at + qwen_tensor_bytes(&t[i]),
				   QWEN_GGUF_ALIGNMENT);
	}
	bool ok = qwen_stream_add(s, b.data, b.len, e) &&
		  padding_add(s, b.len, e);
	buf_fini(&b);
	return ok;
}

bool qwen_gguf_write(const struct qwen_gguf_out *o, const char *path,
		     const struct qwen_tensor *t, size_t n,
		     qwen_bytes_fn *make, void *ctx, struct err *e)
{
	struct qwen_stream s;
	bool ok = qwen_stream_open(&s, path, e) && head_add(o, &s, t, n, e);

	for (size_t i = 0, at = 0; ok && i < n; i++) {
		const size_t bytes = qwen_tensor_bytes(&t[i]);
		const size_t parts = t[i].n_dims == 3 ? t[i].shape[0] : 1;
		for (size_t k = 0; ok && k < parts; k++) {
			const void *data = make(ctx, at++, e);
			ok = data && qwen_stream_add(&s, data, bytes / parts, e);
		}
		ok = ok && padding_add(&s, bytes, e);
	}
	return qwen_stream_close(&s, ok, e);
}

void qwen_gguf_out_fini(struct qwen_gguf_out *o)
{
	buf_fini(&o->keys);
	*o = (struct qwen_gguf_out){ 0 };
}
