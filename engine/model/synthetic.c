/*
 * engine/model/synthetic.c - models with random weights.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/model/model.h"
#include "engine/text/text.h"

/* The published shapes; "tiny" is ours, small and with every irregularity. */
static const struct {
	const char *name;
	uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
	bool tied;
	uint32_t experts, used;
} shape[] = {
	{ "tiny", 2, 64, 4, 2, 32, 160, 512, true, 0, 0 },
	{ "tiny-moe", 2, 64, 4, 2, 32, 96, 512, false, 12, 3 },
	{ "0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true, 0, 0 },
	{ "1.7b", 28, 2048, 16, 8, 128, 6144, 151936, true, 0, 0 },
	{ "4b", 36, 2560, 32, 8, 128, 9728, 151936, true, 0, 0 },
	{ "8b", 36, 4096, 32, 8, 128, 12288, 151936, false, 0, 0 },
	{ "14b", 40, 5120, 40, 8, 128, 17408, 151936, false, 0, 0 },
	{ "32b", 64, 5120, 64, 8, 128, 25600, 151936, false, 0, 0 },
	{ "30b-a3b", 48, 2048, 32, 4, 128, 768, 151936, false, 128, 8 },
	{ "235b-a22b", 94, 4096, 64, 4, 128, 1536, 151936, false, 128, 8 },
};

bool qwen_shape_find(const char *name, struct qwen_config *c, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		if (strcmp(shape[i].name, name) != 0)
			continue;
		*c = (struct qwen_config){
			.layers = shape[i].layers, .hidden = shape[i].hidden,
			.heads = shape[i].heads,
			.kv_heads = shape[i].kv_heads,
			.head_dim = shape[i].head_dim, .ffn = shape[i].ffn,
			.vocab = shape[i].vocab, .tied = shape[i].tied,
			.max_positions = 40960, .rope_theta = 1e6,
			.norm_eps = 1e-6,
			.experts = { shape[i].experts, shape[i].used,
				     shape[i].experts > 0 },
		};
		return true;
	}
	return err_set(e, ERR_USAGE, "there is no shape \"%s\"; there are "
		       "tiny, tiny-moe, 0.6b, 1.7b, 4b, 8b, 14b, 32b, 30b-a3b and "
		       "235b-a22b", name);
}

/* ---- the tensors ---- */

struct spec {
	char name[96];
	uint32_t n_dims;
	uint64_t shape[2];
	float width;  /* values are uniform in mean +- width */
	float mean;
	uint64_t offset, size_bytes;
	uint32_t shard;
};

struct specs {
	struct spec *v;
	size_t n, cap;
};

static void spec_add(struct specs *s, const char *name, uint64_t rows,
		     uint64_t cols)
{
	struct spec *x = vec_add(s);
	*x = (struct spec){ .n_dims = cols ? 2 : 1, .shape = { rows, cols } };
	snprintf(x->name, sizeof(x->name), "%s.weight", name);
	/* Uniform in +-w has variance w^2 / 3: a row's product has 1. */
	x->width = cols ? sqrtf(3.f / (float)cols) : 0.1f;
	x->mean = cols ? 0 : 1;
}

/* A feed-forward network, of a layer or of an expert. */
static void ffn_add(struct specs *s, const struct qwen_config *c,
		    const char *of)
{
	static const char *const part[] = { "gate_proj", "up_proj",
					    "down_proj" };
	char name[96];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%.70s%s", of, part[i]);
		spec_add(s, name, i == 2 ? c->hidden : c->ffn,
			 i == 2 ? c->ffn : c->hidden);
	}
}

static void layer_add(struct specs *s, const struct qwen_config *c, uint32_t l)
{
	uint64_t q = (uint64_t)c->heads * c->head_dim;
	uint64_t kv = (uint64_t)c->kv_heads * c->head_dim;
	const struct {
		const char *name;
		uint64_t rows, cols;
	} part[] = {
		{ "input_layernorm", c->hidden, 0 },
		{ "self_attn.q_proj", q, c->hidden },
		{ "self_attn.k_proj", kv, c->hidden },
		{ "self_attn.v_proj", kv, c->hidden },
		{ "self_attn.q_norm", c->head_dim, 0 },
		{ "self_attn.k_norm", c->head_dim, 0 },
		{ "self_attn.o_proj", c->hidden, q },
		{ "post_attention_layernorm", c->hidden, 0 },
	};
	char name[80];

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		snprintf(name, sizeof(name), "model.layers.%u.%s", l,
			 part[i].name);
		spec_add(s, name, part[i].rows, part[i].cols);
	}
	snprintf(name, sizeof(name), "model.layers.%u.mlp.", l);
	if (!c->experts.n)
		ffn_add(s, c, name);
	for (uint32_t i = 0; i < c->experts.n; i++) {
		if (i == 0) {
			snprintf(name, sizeof(name), "model.layers.%u.mlp.gate",
				 l);
			spec_add(s, name, c->experts.n, c->hidden);
		}
		snprintf(name, sizeof(name), "model.layers.%u.mlp.experts.%u.",
			 l, i);
		ffn_add(s, c, name);
	}
}

static struct specs specs_all(const struct qwen_config *c)
{
	struct specs s = { 0 };

	spec_add(&s, "model.embed_tokens", c->vocab, c->hidden);
	for (uint32_t l = 0; l < c->layers; l++)
		layer_add(&s, c, l);
	spec_add(&s, "model.norm", c->hidden, 0);
	if (!c->tied)
		spec_add(&s, "lm_head", c->vocab, c->hidden);
	if (c->engram.rows) {
		spec_add(&s, "model.engram.table",
			 (uint64_t)QWEN_ORDERS * c->engram.rows, c->hidden);
		spec_add(&s, "model.engram.gate", c->hidden, 0);
	}
	return s;
}

static const char *stored_name(enum qwen_weights w)
{
	return w == QWEN_W_F32 ? "F32" : w == QWEN_W_F16 ? "F16" : "BF16";
}

/* Gives each tensor its shard and place; shards get runs of tensors. */
static void places_set(struct specs *s, const struct qwen_synthetic *how,
		       uint32_t shards)
{
	size_t bytes = how->weights == QWEN_W_F32 ? 4 : 2;
	uint64_t at = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct spec *x = &s->v[i];
		x->shard = (uint32_t)(i * shards / s->n);
		if (i && x->shard != s->v[i - 1].shard)
			at = 0;
		x->offset = at;
		x->size_bytes = x->shape[0] *
				(x->n_dims == 2 ? x->shape[1] : 1) * bytes;
		at += x->size_bytes;
	}
}

static json_t *header_json(const struct specs *s, uint32_t shard,
			   const char *type)
{
	json_t *j = json_object();

	for (size_t i = 0; i < s->n; i++) {
		const struct spec *x = &s->v[i];
		if (x->shard != shard)
			continue;
		json_t *dims = json_array();
		for (uint32_t d = 0; d < x->n_dims; d++)
			json_array_append_new(dims, json_integer(
				(json_int_t)x->shape[d]));
		json_object_set_new(j, x->name, json_pack("{s:s, s:o, s:[I,I]}",
			"dtype", type, "shape", dims, "data_offsets",
			(json_int_t)x->offset,
			(json_int_t)(x->offset + x->size_bytes)));
	}
	return j;
}

static uint64_t mix_bits(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#define CHUNK 65536

/* Values depend on the seed, the tensor's number and the place alone. */
static bool tensor_write(FILE *f, const struct spec *x, uint64_t seed,
			 const struct qwen_synthetic *how,
			 const struct qwen_kernels *k)
{
	static _Thread_local float v[CHUNK];
	static _Thread_local uint8_t out[4 * CHUNK];
	size_t bytes = how->weights == QWEN_W_F32 ? 4 : 2;
	uint64_t n = x->size_bytes / bytes;

	for (uint64_t at = 0; at < n; at += CHUNK) {
		size_t some = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
		for (size_t i = 0; i < some; i++) {
			uint64_t r = mix_bits(seed + (at + i + 1) *
						0x9e3779b97f4a7c15);
			float u = (float)(int64_t)(r >> 40) * 0x1p-23f - 1;
			v[i] = x->mean + x->width * u;
		}
		k->narrow(how->weights, v, some, out);
		if (fwrite(out, bytes, some, f) != some)
			return false;
		if (how->stop && *how->stop)
			return false;
	}
	return true;
}

static bool header_write(FILE *f, json_t *j)
{
	char *s = json_dumps(j, JSON_COMPACT);
	uint64_t n = strlen(s), padded = (8 + n + 63) / 64 * 64 - 8;
	uint8_t length[8];
	char blanks[64];

	memset(blanks, ' ', sizeof(blanks));
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(padded >> 8 * i);
	bool ok = fwrite(length, 8, 1, f) == 1 && fwrite(s, 1, n, f) == n &&
		  fwrite(blanks, 1, padded - n, f) == padded - n;
	free(s);
	json_decref(j);
	return ok;
}

static void shard_name(char *s, size_t n, uint32_t i, uint32_t shards)
{
	if (shards < 2)
		snprintf(s, n, "model.safetensors");
	else
		snprintf(s, n, "model-%05u-of-%05u.safetensors", i + 1, shards);
}

/* Written beside its place and moved there when it is whole. */
static bool shard_write(const char *path, const struct specs *s, uint32_t shard,
			const struct qwen_synthetic *how, struct err *e)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	struct buf tmp = { 0 };

	buf_printf(&tmp, "%s.part", path);
	FILE *f = fopen(tmp.data, "wb");
	bool ok = f && header_write(f, header_json(s, shard,
						   stored_name(how->weights)));
	for (size_t i = 0; ok && i < s->n; i++) {
		if (s->v[i].shard != shard)
			continue;
		ok = tensor_write(f, &s->v[i],
				  mix_bits(how->seed * 1000003 + i), how, k);
		if (how->progress)
			progress_step(how->progress, 1);
	}
	ok = ok && fflush(f) == 0 && fsync(fileno(f)) == 0;
	int why = errno;
	if (f && fclose(f) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok && rename(tmp.data, path) != 0) {
		ok = false;
		why = errno;
	}
	if (!ok) {
		unlink(tmp.data);
		if (how->stop && *how->stop)
			err_set(e, ERR_STOPPED, "%s is not written", path);
		else
			err_sys(e, ERR_IO, why, "%s: cannot be written", path);
	}
	buf_fini(&tmp);
	return ok;
}

/* ---- the other files ---- */

/* Of sampling what Qwen3's own files say. */
static bool config_write(const char *dir, const struct qwen_config *c,
			 uint32_t stop, struct err *e)
{
	struct qwen_config as = *c;

	as.sample = true;
	as.temperature = 0.6;
	as.top_k = 20;
	as.top_p = 0.95;
	as.min_p = 0;
	as.repetition_penalty = 1;
	as.stop[0] = stop;
	as.n_stops = 1;
	return qwen_config_write(&as, dir, e);
}

static bool index_write(const char *dir, const struct specs *s,
			uint32_t shards, struct err *e)
{
	json_t *map = json_object();
	json_int_t total = 0;
	char name[64];

	for (size_t i = 0; i < s->n; i++) {
		shard_name(name, sizeof(name), s->v[i].shard, shards);
		json_object_set_new(map, s->v[i].name, json_string(name));
		total += (json_int_t)s->v[i].size_bytes;
	}
	return qwen_json_write(dir, "model.safetensors.index.json",
			       json_pack("{s:{s:I}, s:o}", "metadata",
					 "total_size", total, "weight_map",
					 map), e);
}

bool qwen_tokenizer_copy(const char *from, const char *dir, struct err *e)
{
	static const char *const file[] = { "tokenizer.json", "vocab.json",
					    "merges.txt", "added_tokens.json",
					    "tokenizer_config.json" };
	bool there, any = false;

	for (size_t i = 0; i < ARRAY_SIZE(file); i++) {
		if (!qwen_file_copy(from, dir, file[i], &there, e))
			return false;
		any |= there;
	}
	return any || err_set(e, ERR_INPUT, "%s: has neither tokenizer.json "
			      "nor vocab.json", from);
}

/* Text that is on every Debian system: the licences. */
static bool tokenizer_learn(const char *dir, uint32_t vocab, struct err *e)
{
	static const char *const text[] = {
		"/usr/share/common-licenses/GPL-3",
		"/usr/share/common-licenses/Apache-2.0",
		"/usr/share/common-licenses/GFDL-1.3",
	};
	struct buf in = { 0 }, out = { 0 };
	bool ok = true;

	for (size_t i = 0; ok && i < ARRAY_SIZE(text); i++)
		if (access(text[i], R_OK) == 0)
			ok = file_read(text[i], 0, &in, e);
	ok = ok &&
	     qwen_bpe_train(in.data ? in.data : "", in.len, vocab, &out, e) &&
	     qwen_text_write(dir, "tokenizer.json", &out, e);
	buf_fini(&in);
	buf_fini(&out);
	return ok;
}

static bool weights_write(const char *dir, const struct qwen_synthetic *how,
			  struct err *e)
{
	struct specs s = specs_all(&how->config);
	uint32_t shards = how->shards ? how->shards : 1;
	char name[64];
	bool ok = true;

	places_set(&s, how, shards);
	for (uint32_t i = 0; ok && i < shards; i++) {
		struct buf path = { 0 };
		shard_name(name, sizeof(name), i, shards);
		buf_printf(&path, "%s/%s", dir, name);
		ok = shard_write(path.data, &s, i, how, e);
		buf_fini(&path);
	}
	if (ok && shards > 1) {
		ok = index_write(dir, &s, shards, e);
		qwen_file_remove(dir, "model.safetensors");
	}
	free(s.v);
	return ok;
}

bool qwen_synthetic_write(const char *dir, const struct qwen_synthetic *how,
			  struct err *e)
{
	uint32_t vocab = how->config.vocab;
	/* <|im_end|>: Qwen's id, or the third of nine at the end. */
	uint32_t stop = how->tokenizer ? 151645 : vocab - 7;

	if (how->weights > QWEN_W_BF16)
		return err_set(e, ERR_USAGE, "a model is made in f32, f16 or "
			       "bf16; `quantize` makes others of it");
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "%s: cannot be made", dir);
	if (how->tokenizer ? !qwen_tokenizer_copy(how->tokenizer, dir, e) :
	    vocab <= QWEN_BPE_VOCAB_MAX && !tokenizer_learn(dir, vocab, e))
		return false;
	if (stop >= vocab)
		stop = vocab - 1;
	return config_write(dir, &how->config, stop, e) &&
	       weights_write(dir, how, e);
}
