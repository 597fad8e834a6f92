/* A folder of EAGLE-3 heads as published, of random weights. */
#ifndef T0_TESTS_ENGINE_EAGLE_FOLDER_H
#define T0_TESTS_ENGINE_EAGLE_FOLDER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/state/state.h"

enum {
	EAGLE_HEADS = 4,
	EAGLE_KV = 2,
	EAGLE_DIM = 8,
	EAGLE_FFN = 40,
	EAGLE_FLOATS = 13,
	EAGLE_TENSORS = EAGLE_FLOATS + 2
};

/* By their places in `data`. */
enum {
	E_FC,
	E_Q,
	E_K,
	E_V,
	E_O,
	E_GATE,
	E_UP,
	E_DOWN,
	E_OUT,
	E_EMBED_NORM,
	E_HIDDEN_NORM,
	E_FFN_NORM,
	E_NORM
};

struct eagle_folder {
	uint32_t hidden, vocab, draft; /* the caller's */
	struct qwen_tensor t[EAGLE_TENSORS];
	float *data[EAGLE_FLOATS];
	int64_t *d2t;
	uint8_t *t2d;
};

static const void *eagle_bytes(void *ctx, size_t i, struct err *e)
{
	const struct eagle_folder *f = ctx;

	(void)e;
	return i < EAGLE_FLOATS	 ? (const void *)f->data[i] :
	       i == EAGLE_FLOATS ? (const void *)f->d2t :
				   (const void *)f->t2d;
}

/* The draft's token i is the model's 2 i + 1. */
static bool eagle_folder_write(struct eagle_folder *f, const char *dir,
			       uint64_t seed)
{
	const uint64_t n = f->hidden, q = EAGLE_HEADS * EAGLE_DIM;
	const uint64_t kv = EAGLE_KV * EAGLE_DIM, ffn = EAGLE_FFN;
	const struct {
		const char *name;
		uint64_t rows, cols;
	} of[EAGLE_FLOATS] = {
		{ "fc.weight", n, 3 * n },
		{ "midlayer.self_attn.q_proj.weight", q, 2 * n },
		{ "midlayer.self_attn.k_proj.weight", kv, 2 * n },
		{ "midlayer.self_attn.v_proj.weight", kv, 2 * n },
		{ "midlayer.self_attn.o_proj.weight", n, q },
		{ "midlayer.mlp.gate_proj.weight", ffn, n },
		{ "midlayer.mlp.up_proj.weight", ffn, n },
		{ "midlayer.mlp.down_proj.weight", n, ffn },
		{ "lm_head.weight", f->draft, n },
		{ "midlayer.input_layernorm.weight", n, 0 },
		{ "midlayer.hidden_norm.weight", n, 0 },
		{ "midlayer.post_attention_layernorm.weight", n, 0 },
		{ "norm.weight", n, 0 },
	};
	struct buf text = { 0 }, path = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < EAGLE_FLOATS; i++) {
		const uint64_t cols = of[i].cols ? of[i].cols : 1;
		const double far = of[i].cols ? 1.7 / sqrt((double)cols) : 0.3;
		f->data[i] = xcalloc(of[i].rows * cols, sizeof(float));
		for (uint64_t k = 0; k < of[i].rows * cols; k++)
			f->data[i][k] =
				(float)((of[i].cols ? 0 : 1) +
					far * ((double)(random_next(&seed) >>
							40) *
						       0x1p-23 -
					       1));
		f->t[i] = (struct qwen_tensor){ .name = of[i].name,
						.dtype = QWEN_F32,
						.n_dims = of[i].cols ? 2 : 1,
						.shape = { of[i].rows,
							   of[i].cols } };
	}
	f->d2t = xcalloc(f->draft, sizeof(*f->d2t));
	f->t2d = xcalloc(f->vocab, 1);
	for (uint32_t i = 0; i < f->draft; i++) {
		f->d2t[i] = i + 1;
		f->t2d[2 * i + 1] = 1;
	}
	f->t[E_NORM + 1] = (struct qwen_tensor){ .name = "d2t",
						 .dtype = QWEN_I64,
						 .n_dims = 1,
						 .shape = { f->draft } };
	f->t[E_NORM + 2] = (struct qwen_tensor){ .name = "t2d",
						 .dtype = QWEN_BOOL,
						 .n_dims = 1,
						 .shape = { f->vocab } };
	buf_printf(&text,
		   "{\"architectures\": [\"LlamaForCausalLMEagle3\"], "
		   "\"hidden_size\": %u, \"intermediate_size\": %d, "
		   "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, "
		   "\"head_dim\": %d, \"vocab_size\": %u, "
		   "\"draft_vocab_size\": %u, \"rms_norm_eps\": 1e-6, "
		   "\"rope_theta\": 10000}",
		   f->hidden, EAGLE_FFN, EAGLE_HEADS, EAGLE_KV, EAGLE_DIM,
		   f->vocab, f->draft);
	buf_printf(&path, "%s/config.json", dir);
	bool good = file_make_folders(dir, &e) &&
		    file_write_atomic(path.data, text.data, text.len, &e);
	buf_reset(&path);
	buf_printf(&path, "%s/model.safetensors", dir);
	good = good && qwen_tensors_write(path.data, f->t, EAGLE_TENSORS,
					  eagle_bytes, f, &e);
	buf_fini(&path);
	buf_fini(&text);
	return good;
}

static void eagle_folder_free(struct eagle_folder *f)
{
	for (int i = 0; i < EAGLE_FLOATS; i++)
		free(f->data[i]);
	free(f->d2t);
	free(f->t2d);
}

#endif
