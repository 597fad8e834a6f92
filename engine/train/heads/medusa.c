/*
 * engine/train/heads/medusa.c - heads that look further ahead, learning.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/heads/heads.h"

void train_medusa_init(struct train_medusa *h, const struct qwen_model *m,
		       uint32_t n, struct err *e)
{
	const size_t hidden = m->config.hidden, vocab = m->config.vocab;

	*h = (struct train_medusa){ .m = m, .n = n };
	h->tape = tape_new(m->threads, e);
	for (uint32_t i = 0; i < n; i++) {
		h->linear[i] = tape_param(h->tape, TAPE_SHAPE(hidden, hidden));
		h->bias[i] = tape_param(h->tape, TAPE_SHAPE(hidden));
		h->out[i] = tape_param(h->tape, TAPE_SHAPE(vocab, hidden));
		for (uint32_t r = 0; r < vocab; r++)
			qwen_matrix_row(m->kernels, &m->head, r,
					h->out[i]->data + r * hidden);
	}
}

void train_medusa_fini(struct train_medusa *h)
{
	tape_free(h->tape);
	*h = (struct train_medusa){ 0 };
}

struct tensor *train_medusa_loss(struct train_medusa *h, const float *x,
				 size_t n, const uint32_t *const *target,
				 struct train_heads_sum *sum)
{
	const struct qwen_config *c = &h->m->config;
	struct tensor *in = tape_input(h->tape, TAPE_SHAPE(n, c->hidden), NULL);
	struct tensor *all = NULL;

	for (size_t i = 0; i < n; i++)
		h->m->kernels->rms_norm(x + i * c->hidden, h->m->norm,
					c->hidden, (float)c->norm_eps,
					in->data + i * c->hidden);
	for (uint32_t i = 0; i < h->n; i++) {
		struct tensor *turned = tape_apply(
			TAPE_SILU, tape_linear(in, h->linear[i], h->bias[i]));
		struct tensor *logits =
			tape_linear(tape_add(in, turned), h->out[i], NULL);

		if (!train_heads_lose(sum, i, logits, target[i], &all))
			return NULL;
	}
	return all;
}

/* ---- the folder ---- */

static const void *tensor_bytes(void *ctx, size_t i, struct err *e)
{
	const struct train_medusa *h = ctx;
	struct tensor *const *const of[] = { h->linear, h->bias, h->out };

	(void)e;
	return of[i % 3][i / 3]->data;
}

static bool write_config(const struct train_medusa *h, const char *dir,
			 const char *base, struct err *e)
{
	json_t *name = json_string(base);
	json_t *j = json_pack("{s:i, s:i, s:o}", "medusa_num_heads", (int)h->n,
			      "medusa_num_layers", 1, "base_model_name_or_path",
			      name ? name : json_null());

	return qwen_json_write(dir, "config.json", j, e);
}

bool train_medusa_write(const struct train_medusa *h, const char *dir,
			const char *base, struct err *e)
{
	static const char *const name[] = { "0.linear.weight", "0.linear.bias",
					    "1.weight" };
	const uint64_t hidden = h->m->config.hidden;
	const uint64_t vocab = h->m->config.vocab;
	struct qwen_tensor t[3 * QWEN_PROPOSED] = { 0 };
	struct arena mem = { 0 };

	for (uint32_t i = 0; i < 3 * h->n; i++)
		t[i] = (struct qwen_tensor){
			.name = arena_printf(&mem, "%u.%s", i / 3, name[i % 3]),
			.dtype = QWEN_F32,
			.n_dims = i % 3 == 1 ? 1 : 2,
			.shape = { i % 3 == 2 ? vocab : hidden, hidden },
		};
	bool ok = file_make_folders(dir, e) && write_config(h, dir, base, e) &&
		  qwen_tensors_write(
			  arena_printf(&mem, "%s/medusa_lm_head.safetensors",
				       dir),
			  t, 3 * h->n, tensor_bytes, (void *)h, e);
	arena_fini(&mem);
	return ok;
}
