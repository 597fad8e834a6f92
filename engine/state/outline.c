/*
 * engine/state/outline.c - the tensors of a model: names, places and sizes.
 */
#include <stdlib.h>

#include "engine/state/state.h"

/* Every matrix of a layer, or of an expert: its name in the files, its place. */
enum size { HIDDEN, QUERIES, KEYS, FFN, EXPERTS };
struct matrix_place {
	const char *name;
	size_t offset;
	enum size rows, cols;
};
#define AT(field) offsetof(struct qwen_layer, field)
static const struct matrix_place attention_matrix[] = {
	{ "self_attn.q_proj", AT(q), QUERIES, HIDDEN },
	{ "self_attn.k_proj", AT(k), KEYS, HIDDEN },
	{ "self_attn.v_proj", AT(v), KEYS, HIDDEN },
	{ "self_attn.o_proj", AT(o), HIDDEN, QUERIES },
};
static const struct matrix_place dense_matrix[] = {
	{ "mlp.gate_proj", AT(gate), FFN, HIDDEN },
	{ "mlp.up_proj", AT(up), FFN, HIDDEN },
	{ "mlp.down_proj", AT(down), HIDDEN, FFN },
};
static const struct matrix_place router_matrix[] = {
	{ "mlp.gate", AT(router), EXPERTS, HIDDEN },
};
#define IN(field) offsetof(struct qwen_expert, field)
static const struct matrix_place expert_matrix[] = {
	{ "gate_proj", IN(gate), FFN, HIDDEN },
	{ "up_proj", IN(up), FFN, HIDDEN },
	{ "down_proj", IN(down), HIDDEN, FFN },
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
	case EXPERTS:
		return c->experts.n;
	default:
		return c->ffn;
	}
}

/* Some matrices of something: a layer, or an expert of one. */
struct group {
	const struct matrix_place *place;
	size_t n;
	void *of;
	const char *prefix; /* of their names */
	bool expert, router;
};

typedef bool group_fn(void *ctx, const struct group *g, struct err *e);

/* All of a layer, in the order of a pass. */
static bool groups_each(const struct qwen_model *m, uint32_t l, group_fn *each,
			void *ctx, struct err *e)
{
	struct qwen_layer *layer = &m->layer[l];
	char prefix[64];
	struct group g = { attention_matrix, ARRAY_SIZE(attention_matrix),
			   layer, "", false, false };

	if (!each(ctx, &g, e))
		return false;
	g.place = dense_matrix;
	g.n = ARRAY_SIZE(dense_matrix);
	if (!m->config.experts.n)
		return each(ctx, &g, e);
	g.place = router_matrix;
	g.n = ARRAY_SIZE(router_matrix);
	g.router = true;
	if (!each(ctx, &g, e))
		return false;
	for (uint32_t i = 0; i < m->config.experts.n; i++) {
		snprintf(prefix, sizeof(prefix), "mlp.experts.%u.", i);
		g = (struct group){ expert_matrix, ARRAY_SIZE(expert_matrix),
				    &layer->expert[i], prefix, true, false };
		if (!each(ctx, &g, e))
			return false;
	}
	return true;
}

static struct qwen_matrix *matrix_at(const struct group *g, size_t i)
{
	return (struct qwen_matrix *)((char *)g->of + g->place[i].offset);
}

/* What of these bytes a token reads: of experts those that it uses. */
static uint64_t token_share(const struct qwen_config *c, bool expert,
			    uint64_t bytes)
{
	return expert ? bytes * c->experts.used / c->experts.n : bytes;
}

static uint64_t rows_share(const struct qwen_matrix *m, uint32_t rows)
{
	return m->rows ? qwen_matrix_bytes(m) / m->rows * rows : 0;
}

uint64_t qwen_part_bytes(const struct qwen_model *m, const struct qwen_part *p)
{
	return p->looked_up ? rows_share(p->matrix, QWEN_ORDERS) :
	       p->matrix    ? token_share(&m->config, p->expert,
					  qwen_matrix_bytes(p->matrix)) :
			      p->n * sizeof(**p->norm);
}

struct sizing {
	struct qwen_model *m;
	enum qwen_weights w;
};

static bool sizes_set(void *ctx, const struct group *g, struct err *e)
{
	const struct sizing *x = ctx;
	const struct qwen_config *c = &x->m->config;

	(void)e;
	for (size_t i = 0; i < g->n; i++) {
		struct qwen_matrix *to = matrix_at(g, i);
		to->type = g->router ? QWEN_W_F32 : x->w;
		to->rows = (uint32_t)size_of(c, g->place[i].rows);
		to->cols = (uint32_t)size_of(c, g->place[i].cols);
		x->m->token_bytes += token_share(c, g->expert,
						 qwen_matrix_bytes(to));
	}
	return true;
}

void qwen_model_outline(struct qwen_model *m, const struct qwen_config *c,
			enum qwen_weights w)
{
	*m = (struct qwen_model){ .config = *c,
				  .embed = { w, c->vocab, c->hidden, NULL,
					     NULL } };
	m->head = m->embed;
	m->engram = (struct qwen_matrix){ w, QWEN_ORDERS * c->engram.rows,
					  c->hidden, NULL, NULL };
	m->layer = xcalloc(c->layers, sizeof(*m->layer));
	m->token_bytes = qwen_matrix_bytes(&m->head);
	for (uint32_t l = 0; l < c->layers; l++) {
		m->layer[l].expert = xcalloc(c->experts.n + 1,
					     sizeof(*m->layer[l].expert));
		groups_each(m, l, sizes_set, &(struct sizing){ m, w }, NULL);
	}
}

void qwen_model_close(struct qwen_model *m)
{
	if (m->device && m->backend->close)
		m->backend->close(m);
	qwen_settling_end(m->settling);
	qwen_blocks_fini(&m->blocks);
	for (uint32_t l = 0; m->layer && l < m->config.layers; l++)
		free(m->layer[l].expert);
	free(m->layer);
	arena_fini(&m->mem);
	qwen_tensors_close(&m->tensors);
	*m = (struct qwen_model){ 0 };
}

struct naming {
	uint32_t layer;
	qwen_part_fn *each;
	void *ctx;
};

static bool matrices_name(void *ctx, const struct group *g, struct err *e)
{
	const struct naming *x = ctx;
	char name[128];

	for (size_t i = 0; i < g->n; i++) {
		const struct qwen_part p = { .name = name,
					     .matrix = matrix_at(g, i),
					     .expert = g->expert,
					     .router = g->router };
		snprintf(name, sizeof(name), "model.layers.%u.%s%s.weight",
			 x->layer, g->prefix, g->place[i].name);
		if (!x->each(x->ctx, &p, e))
			return false;
	}
	return true;
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
	return groups_each(m, l, matrices_name,
			   &(struct naming){ l, each, ctx }, e);
}

bool qwen_model_each(struct qwen_model *m, qwen_part_fn *each, void *ctx,
		     struct err *e)
{
	const struct qwen_part embed = { .name = "model.embed_tokens.weight",
					 .matrix = &m->embed };
	const struct qwen_part norm = { .name = "model.norm.weight",
					.norm = &m->norm,
					.n = m->config.hidden };
	const struct qwen_part head = { .name = "lm_head.weight",
					.matrix = &m->head };

	if (!each(ctx, &embed, e))
		return false;
	for (uint32_t l = 0; l < m->config.layers; l++)
		if (!qwen_layer_each(m, l, each, ctx, e))
			return false;
	return each(ctx, &norm, e) && (m->config.tied || each(ctx, &head, e)) &&
	       qwen_engram_each(m, each, ctx, e);
}

bool qwen_engram_each(struct qwen_model *m, qwen_part_fn *each, void *ctx,
		      struct err *e)
{
	const struct qwen_part table = { .name = "model.engram.table.weight",
					 .matrix = &m->engram,
					 .looked_up = true };
	const struct qwen_part gate = { .name = "model.engram.gate.weight",
					.norm = &m->engram_gate,
					.n = m->config.hidden };

	return !m->config.engram.rows ||
	       (each(ctx, &table, e) && each(ctx, &gate, e));
}
