/*
 * engine/train/heads/eagle.c - EAGLE-3's layer, learning.
 *
 * It says several tokens in a row, as where it proposes: step 0 is of the
 * model's hidden states, at every token of a row; a step behind it goes on from
 * every token of the row with what came out of the step before.  So at step s
 * token i has the keys of step 0 up to i, and one key of each step behind that.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/heads/heads.h"

/* Rows and columns; no columns: a norm. */
static const char *part_shape(const struct qwen_config *c,
			      enum train_eagle_part part, size_t *rows,
			      size_t *cols)
{
	const size_t n = c->hidden, q = (size_t)c->heads * c->head_dim;
	const size_t kv = (size_t)c->kv_heads * c->head_dim, f = c->ffn;
	const struct {
		const char *name;
		size_t rows, cols;
	} of[TRAIN_EAGLE_PARTS] = {
		[TRAIN_EAGLE_FC] = { "fc", n, 3 * n },
		[TRAIN_EAGLE_Q] = { "midlayer.self_attn.q_proj", q, 2 * n },
		[TRAIN_EAGLE_K] = { "midlayer.self_attn.k_proj", kv, 2 * n },
		[TRAIN_EAGLE_V] = { "midlayer.self_attn.v_proj", kv, 2 * n },
		[TRAIN_EAGLE_O] = { "midlayer.self_attn.o_proj", n, q },
		[TRAIN_EAGLE_GATE] = { "midlayer.mlp.gate_proj", f, n },
		[TRAIN_EAGLE_UP] = { "midlayer.mlp.up_proj", f, n },
		[TRAIN_EAGLE_DOWN] = { "midlayer.mlp.down_proj", n, f },
		[TRAIN_EAGLE_OUT] = { "lm_head", c->vocab, n },
		[TRAIN_EAGLE_EMBED_NORM] = { "midlayer.input_layernorm", n, 0 },
		[TRAIN_EAGLE_HIDDEN_NORM] = { "midlayer.hidden_norm", n, 0 },
		[TRAIN_EAGLE_FFN_NORM] = { "midlayer.post_attention_layernorm",
					   n, 0 },
		[TRAIN_EAGLE_NORM] = { "norm", n, 0 },
	};

	*rows = of[part].rows;
	*cols = of[part].cols;
	return of[part].name;
}

static void part_init(struct train_eagle *h, enum train_eagle_part part,
		      uint64_t seed)
{
	size_t rows, cols;

	part_shape(&h->m->config, part, &rows, &cols);
	struct tensor *w = tape_param(h->tape, cols ? TAPE_SHAPE(rows, cols) :
						      TAPE_SHAPE(rows));
	h->w[part] = w;
	for (size_t i = 0; i < rows && !cols; i++)
		w->data[i] = part == TRAIN_EAGLE_NORM ? h->m->norm[i] : 1;
	if (cols)
		tape_fill(w, 1 / sqrtf((float)cols), seed + part);
	if (part == TRAIN_EAGLE_OUT)
		for (size_t i = 0; i < rows; i++)
			qwen_matrix_row(h->m->kernels, &h->m->head, (uint32_t)i,
					w->data + i * cols);
	if (part == TRAIN_EAGLE_FC)
		for (size_t i = 0; i < rows; i++)
			w->data[i * cols + 2 * rows + i] += 1;
}

void train_eagle_init(struct train_eagle *h, const struct qwen_model *m,
		      uint32_t steps, uint32_t length, uint64_t seed,
		      struct err *e)
{
	const size_t angles =
		(size_t)(length + steps) * (m->config.head_dim / 2);

	*h = (struct train_eagle){ .m = m, .steps = steps, .length = length };
	h->tape = tape_new(m->threads, e);
	for (int i = 0; i < TRAIN_EAGLE_PARTS; i++)
		part_init(h, (enum train_eagle_part)i, seed);
	h->cosine = xcalloc(angles, sizeof(*h->cosine));
	h->sine = xcalloc(angles, sizeof(*h->sine));
	qwen_angles(&m->config, 0, length + steps, h->cosine, h->sine);
}

void train_eagle_fini(struct train_eagle *h)
{
	tape_free(h->tape);
	free(h->cosine);
	free(h->sine);
	*h = (struct train_eagle){ 0 };
}

/* ---- a step ---- */

/* What all steps of a batch are of. */
struct batch {
	struct train_eagle *h;
	const uint32_t *id, *position;
	size_t rows, length;
	struct tensor *k, *v; /* [rows][kv heads][1][keys][head_dim] so far */
};

static struct tensor *norm_part(const struct train_eagle *h, struct tensor *x,
				enum train_eagle_part part)
{
	return tape_norm(x, h->w[part], (float)h->m->config.norm_eps);
}

/* The embeddings of the tokens 1 + step places behind, of the same row. */
static struct tensor *embed_tokens(const struct batch *b, uint32_t step)
{
	const size_t n = b->h->m->config.hidden;
	struct tensor *x =
		tape_input(b->h->tape, TAPE_SHAPE(b->rows, b->length, n), NULL);

	for (size_t i = 0; i < b->rows * b->length; i++)
		if (i % b->length + 1 + step < b->length)
			qwen_matrix_row(b->h->m->kernels, &b->h->m->embed,
					b->id[i + 1 + step], x->data + i * n);
	return x;
}

/* x [rows][length][heads][head_dim], `step` positions further on. */
static struct tensor *turn_heads(const struct batch *b, struct tensor *x,
				 uint32_t step)
{
	const size_t half = b->h->m->config.head_dim / 2;
	const struct tape_shape s = TAPE_SHAPE(b->rows, b->length, 1, half);
	struct tensor *c = tape_input(b->h->tape, s, NULL);
	struct tensor *d = tape_input(b->h->tape, s, NULL);
	struct tensor *low = tape_slice(x, 3, 0, half);
	struct tensor *high = tape_slice(x, 3, half, half);

	for (size_t i = 0; i < b->rows * b->length; i++) {
		const size_t at = (b->position[i] + step) * half;
		memcpy(c->data + i * half, b->h->cosine + at,
		       half * sizeof(*c->data));
		memcpy(d->data + i * half, b->h->sine + at,
		       half * sizeof(*d->data));
	}
	return tape_append(
		tape_subtract(tape_multiply(low, c), tape_multiply(high, d)),
		tape_add(tape_multiply(high, c), tape_multiply(low, d)), 3);
}

/* [rows][1][1][length][keys]: which keys tokens have at a step. */
static struct tensor *seen_keys(const struct batch *b, uint32_t step)
{
	const size_t n = b->length, keys = (step + 1) * n;
	struct tensor *seen = tape_input(
		b->h->tape, TAPE_SHAPE(b->rows, 1, 1, n, keys), NULL);

	for (size_t r = 0; r < b->rows; r++)
		for (size_t i = 0; i < n; i++) {
			const size_t begin = i - b->position[r * n + i];
			float *row = seen->data + (r * n + i) * keys;
			for (size_t k = begin; k <= i; k++)
				row[k] = 1;
			for (uint32_t s = 1; s <= step; s++)
				row[s * n + i] = 1;
		}
	return seen;
}

static struct tensor *attend_steps(struct batch *b, struct tensor *in,
				   uint32_t step)
{
	const struct train_eagle *h = b->h;
	const struct qwen_config *c = &h->m->config;
	const size_t kv = c->kv_heads, per = c->heads / kv, d = c->head_dim;
	const struct tape_shape heads =
		TAPE_SHAPE(b->rows, b->length, c->heads, d);
	const struct tape_shape keys = TAPE_SHAPE(b->rows, b->length, kv, d);
	struct tensor *part[3];

	for (int i = 0; i < 3; i++) {
		part[i] = tape_reshape(
			tape_linear(in, h->w[TRAIN_EAGLE_Q + i], NULL),
			i ? keys : heads);
		if (i < 2)
			part[i] = turn_heads(b, part[i], step);
		part[i] = tape_reshape(part[i], TAPE_SHAPE(b->rows, b->length,
							   kv, i ? 1 : per, d));
		/* [rows][kv heads][queries' heads or 1][length][head_dim] */
		part[i] = tape_swap(tape_swap(part[i], 1, 2), 2, 3);
	}
	b->k = step ? tape_append(b->k, part[1], 3) : part[1];
	b->v = step ? tape_append(b->v, part[2], 3) : part[2];
	struct tensor *y =
		tape_attention_seen(part[0], b->k, b->v, seen_keys(b, step));
	y = tape_swap(tape_swap(y, 2, 3), 1, 2);
	y = tape_reshape(y, TAPE_SHAPE(b->rows, b->length, c->heads * d));
	return tape_linear(y, h->w[TRAIN_EAGLE_O], NULL);
}

/* x [rows][length][hidden] through the layer. */
static struct tensor *run_layer(struct batch *b, struct tensor *x,
				uint32_t step)
{
	const struct train_eagle *h = b->h;
	struct tensor *const *w = h->w;
	struct tensor *embed =
		norm_part(h, embed_tokens(b, step), TRAIN_EAGLE_EMBED_NORM);
	struct tensor *hidden = norm_part(h, x, TRAIN_EAGLE_HIDDEN_NORM);

	x = tape_add(x, attend_steps(b, tape_append(embed, hidden, 2), step));
	struct tensor *in = norm_part(h, x, TRAIN_EAGLE_FFN_NORM);
	struct tensor *gate = tape_apply(
		TAPE_SILU, tape_linear(in, w[TRAIN_EAGLE_GATE], NULL));
	struct tensor *up = tape_linear(in, w[TRAIN_EAGLE_UP], NULL);
	return tape_add(x, tape_linear(tape_multiply(gate, up),
				       w[TRAIN_EAGLE_DOWN], NULL));
}

struct tensor *train_eagle_loss(struct train_eagle *h, const float *x,
				const uint32_t *id, const uint32_t *position,
				size_t rows, size_t length,
				const uint32_t *const *target,
				struct train_heads_sum *sum)
{
	struct batch b = { h, id, position, rows, length, NULL, NULL };
	struct tensor *in = tape_input(
		h->tape, TAPE_SHAPE(rows, length, 3 * h->m->config.hidden), x);
	struct tensor *all = NULL;

	in = tape_linear(in, h->w[TRAIN_EAGLE_FC], NULL);
	for (uint32_t s = 0; s < h->steps; s++) {
		in = run_layer(&b, in, s);
		struct tensor *logits =
			tape_linear(norm_part(h, in, TRAIN_EAGLE_NORM),
				    h->w[TRAIN_EAGLE_OUT], NULL);

		if (!train_heads_lose(sum, s, logits, target[s], &all))
			return NULL;
	}
	return all;
}

/* ---- the folder ---- */

static const void *part_bytes(void *ctx, size_t i, struct err *e)
{
	const struct train_eagle *h = ctx;

	(void)e;
	return h->w[i]->data;
}

static bool write_config(const struct qwen_config *c, const char *dir,
			 const char *base, struct err *e)
{
	json_t *name = json_string(base);
	json_t *j = json_pack(
		"{s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o}",
		"architectures", "LlamaForCausalLMEagle3", "hidden_size",
		(json_int_t)c->hidden, "intermediate_size", (json_int_t)c->ffn,
		"num_attention_heads", (json_int_t)c->heads,
		"num_key_value_heads", (json_int_t)c->kv_heads, "head_dim",
		(json_int_t)c->head_dim, "vocab_size", (json_int_t)c->vocab,
		"draft_vocab_size", (json_int_t)c->vocab, "rms_norm_eps",
		c->norm_eps, "rope_theta", c->rope_theta,
		"base_model_name_or_path", name ? name : json_null());

	return qwen_json_write(dir, "config.json", j, e);
}

bool train_eagle_write(const struct train_eagle *h, const char *dir,
		       const char *base, struct err *e)
{
	struct qwen_tensor t[TRAIN_EAGLE_PARTS] = { 0 };
	struct arena mem = { 0 };

	for (int i = 0; i < TRAIN_EAGLE_PARTS; i++) {
		size_t rows, cols;
		const char *name = part_shape(
			&h->m->config, (enum train_eagle_part)i, &rows, &cols);
		t[i] = (struct qwen_tensor){
			.name = arena_printf(&mem, "%s.weight", name),
			.dtype = QWEN_F32,
			.n_dims = cols ? 2 : 1,
			.shape = { rows, cols },
		};
	}
	bool ok = file_make_folders(dir, e) &&
		  write_config(&h->m->config, dir, base, e) &&
		  qwen_tensors_write(
			  arena_printf(&mem, "%s/model.safetensors", dir), t,
			  TRAIN_EAGLE_PARTS, part_bytes, (void *)h, e);
	arena_fini(&mem);
	return ok;
}
