/*
 * engine/state/outline.c - the tensors of a model: names, places and sizes.
 */
#include <stdlib.h>

#include "engine/state/state.h"

/* Every matrix of a layer: its name in the files and its place. */
enum size { HIDDEN, QUERIES, KEYS, FFN };
static const struct {
	const char *name;
	size_t offset;
	enum size rows, cols;
} layer_matrix[] = {
#define AT(field) offsetof(struct qwen_layer, field)
	{ "self_attn.q_proj", AT(q), QUERIES, HIDDEN },
	{ "self_attn.k_proj", AT(k), KEYS, HIDDEN },
	{ "self_attn.v_proj", AT(v), KEYS, HIDDEN },
	{ "self_attn.o_proj", AT(o), HIDDEN, QUERIES },
	{ "mlp.gate_proj", AT(gate), FFN, HIDDEN },
	{ "mlp.up_proj", AT(up), FFN, HIDDEN },
	{ "mlp.down_proj", AT(down), HIDDEN, FFN },
};

static const struct {
	const char *name;
	size_t offset;
	bool per_head;
} layer_norm[] = {
	{ "input_layernorm", AT(attn_norm), false },
	{ "post_attention_layernorm", AT(ffn_norm), false },
	{ "self_attn.q_norm", AT(q_norm), true },
	{ "self_attn.k_norm", AT(k_norm), true },
};

static uint64_t size_of(const struct qwen_config *c, enum size s)
{
	switch (s) {
	case HIDDEN:
		return c->hidden;
	case QUERIES:
		return (uint64_t)c->heads * c->head_dim;
	case KEYS:
		return (uint64_t)c->kv_heads * c->head_dim;
	default:
		return c->ffn;
	}
}

void qwen_model_outline(struct qwen_model *m, const struct qwen_config *c,
			enum qwen_weights w)
{
	*m = (struct qwen_model){ .config = *c,
				  .embed = { w, c->vocab, c->hidden, NULL,
					     NULL } };
	m->head = m->embed;
	m->layer = xcalloc(c->layers, sizeof(*m->layer));
	m->token_bytes = qwen_matrix_bytes(&m->head);
	for (uint32_t l = 0; l < c->layers; l++)
		for (size_t i = 0; i < ARRAY_SIZE(layer_matrix); i++) {
			struct qwen_matrix *to = (struct qwen_matrix *)
				((char *)&m->layer[l] + layer_matrix[i].offset);
			to->type = w;
			to->rows = (uint32_t)size_of(c, layer_matrix[i].rows);
			to->cols = (uint32_t)size_of(c, layer_matrix[i].cols);
			m->token_bytes += qwen_matrix_bytes(to);
		}
}

void qwen_model_close(struct qwen_model *m)
{
	if (m->device && m->backend->close)
		m->backend->close(m);
	qwen_blocks_fini(&m->blocks);
	free(m->layer);
	arena_fini(&m->mem);
	qwen_tensors_close(&m->tensors);
	*m = (struct qwen_model){ 0 };
}

bool qwen_layer_each(const struct qwen_model *m, uint32_t l,
		     qwen_part_fn *each, void *ctx, struct err *e)
{
	char *layer = (char *)&m->layer[l];
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(layer_norm); i++) {
		struct qwen_part p = { .name = name };
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_norm[i].name);
		p.norm = (const float **)(layer + layer_norm[i].offset);
		p.n = layer_norm[i].per_head ? m->config.head_dim :
					       m->config.hidden;
		if (!each(ctx, &p, e))
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(layer_matrix); i++) {
		struct qwen_part p = { .name = name };
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_matrix[i].name);
		p.matrix = (struct qwen_matrix *)
			(layer + layer_matrix[i].offset);
		if (!each(ctx, &p, e))
			return false;
	}
	return true;
}

bool qwen_model_each(struct qwen_model *m, qwen_part_fn *each, void *ctx,
		     struct err *e)
{
	const struct qwen_part embed = { "model.embed_tokens.weight", &m->embed,
					 NULL, 0 };
	const struct qwen_part norm = { "model.norm.weight", NULL,
					&m->norm,
					m->config.hidden };
	const struct qwen_part head = { "lm_head.weight", &m->head, NULL, 0 };

	if (!each(ctx, &embed, e))
		return false;
	for (uint32_t l = 0; l < m->config.layers; l++)
		if (!qwen_layer_each(m, l, each, ctx, e))
			return false;
	return each(ctx, &norm, e) &&
	       (m->config.tied || each(ctx, &head, e));
}
