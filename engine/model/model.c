#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/state/backend.h"

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

/* Integers are stored with fewer columns of bytes, and scales beside them. */
static bool matrix_find(struct qwen_model *m, struct qwen_matrix *out,
			const char *name, uint64_t rows, uint64_t cols,
			const struct qwen_load *how, struct err *e)
{
	const struct qwen_tensor *t = qwen_tensor_find(&m->tensors, name);
	const struct qwen_tensor *scale = NULL;
	uint64_t shape[2] = { rows, cols };

	if (t && t->dtype == QWEN_U8)
		shape[1] = cols / 2;
	if (!qwen_tensor_require(&m->tensors, name, 2, shape, e))
		return false;
	if (t->dtype == QWEN_U8 || t->dtype == QWEN_I8) {
		shape[1] = cols / QWEN_GROUP;
		scale = qwen_tensor_require(&m->tensors,
			arena_printf(&m->mem, "%s_scale", name), 2, shape, e);
		if (!scale)
			return false;
		if (scale->dtype != QWEN_F16 || cols % QWEN_GROUP)
			return err_set(e, ERR_INPUT, "%s: scales of %s are %s "
				       "for %llu columns; wanted F16 and a "
				       "multiple of %d", t->file, name,
				       qwen_dtype_name(scale->dtype),
				       (unsigned long long)cols, QWEN_GROUP);
	}
	return qwen_matrix_make(m, out, t, scale, how, e);
}

static const float *norm_find(struct qwen_model *m, const char *name,
			      uint64_t n, struct err *e)
{
	const struct qwen_tensor *t = qwen_tensor_require(&m->tensors, name, 1,
							  &n, e);
	struct qwen_matrix row = { .rows = 1, .cols = (uint32_t)n };

	if (!t)
		return NULL;
	if (t->dtype != QWEN_F32 && t->dtype != QWEN_F16 &&
	    t->dtype != QWEN_BF16) {
		err_set(e, ERR_INPUT, "%s: tensor %s is %s; wanted F32, F16 or "
			"BF16", t->file, name, qwen_dtype_name(t->dtype));
		return NULL;
	}
	row.type = t->dtype == QWEN_F32 ? QWEN_W_F32 :
		   t->dtype == QWEN_F16 ? QWEN_W_F16 : QWEN_W_BF16;
	row.data = t->data;
	float *out = arena_alloc(&m->mem, n * sizeof(*out));
	qwen_matrix_row(m->kernels, &row, 0, out);
	return out;
}

static bool layer_load(struct qwen_model *m, uint32_t l,
		       const struct qwen_load *how, struct err *e)
{
	const struct qwen_config *c = &m->config;
	char *layer = (char *)&m->layer[l];
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(layer_matrix); i++) {
		struct qwen_matrix *w = (struct qwen_matrix *)
			(layer + layer_matrix[i].offset);
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_matrix[i].name);
		if (!matrix_find(m, w, name, size_of(c, layer_matrix[i].rows),
				 size_of(c, layer_matrix[i].cols), how, e))
			return false;
		m->token_bytes += qwen_matrix_bytes(w);
	}
	for (size_t i = 0; i < ARRAY_SIZE(layer_norm); i++) {
		uint32_t n = layer_norm[i].per_head ? c->head_dim : c->hidden;
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_norm[i].name);
		const float *v = norm_find(m, name, n, e);
		if (!v)
			return false;
		*(const float **)(layer + layer_norm[i].offset) = v;
		m->token_bytes += n * sizeof(*v);
	}
	return true;
}

static bool ends_load(struct qwen_model *m, const struct qwen_load *how,
		      struct err *e)
{
	const struct qwen_config *c = &m->config;

	m->norm = norm_find(m, "model.norm.weight", c->hidden, e);
	if (!m->norm || !matrix_find(m, &m->embed, "model.embed_tokens.weight",
				     c->vocab, c->hidden, how, e))
		return false;
	m->head = m->embed;
	if (!c->tied && !matrix_find(m, &m->head, "lm_head.weight", c->vocab,
				     c->hidden, how, e))
		return false;
	m->token_bytes += qwen_matrix_bytes(&m->head) +
			  c->hidden * sizeof(float);
	return true;
}

struct use {
	const struct qwen_tensors *t;
	bool *of; /* [n_tensors] */
};

static bool name_use(struct use *u, const char *name)
{
	const struct qwen_tensor *x = qwen_tensor_find(u->t, name);

	if (x)
		u->of[x - u->t->tensor] = true;
	return true;
}

static bool part_use(void *ctx, const struct qwen_part *p, struct err *e)
{
	char scale[160];

	(void)e;
	snprintf(scale, sizeof(scale), "%s_scale", p->name);
	return name_use(ctx, p->name) && (p->norm || name_use(ctx, scale));
}

/* A tensor that no pass uses, a bias or another layer, is another model's. */
static bool unused_check(const struct qwen_model *m, struct err *e)
{
	struct use u = { &m->tensors,
			 xcalloc(m->tensors.n_tensors, sizeof(*u.of)) };
	const struct qwen_tensor *x = NULL;

	qwen_model_each(m, part_use, &u, e);
	/* Some files of tied models hold the output layer, too: the same. */
	name_use(&u, "lm_head.weight");
	name_use(&u, "lm_head.weight_scale");
	for (size_t i = 0; !x && i < m->tensors.n_tensors; i++)
		if (!u.of[i])
			x = &m->tensors.tensor[i];
	free(u.of);
	return !x || err_set(e, ERR_UNSUPPORTED, "%s: tensor %s has no place "
			     "in a Qwen3 model of %u layers, as config.json "
			     "wants it", x->file, x->name, m->config.layers);
}

bool qwen_model_load(struct qwen_model *m, const char *dir,
		     const struct qwen_load *how, struct threads *threads,
		     struct err *e)
{
	bool ok;

	*m = (struct qwen_model){ .threads = threads,
				  .kernels = qwen_kernels_best(),
				  .backend = how->backend ? how->backend :
							    &qwen_cpu };
	ok = qwen_config_load(&m->config, dir, e) &&
	     qwen_tensors_open(&m->tensors, dir, e);
	if (ok)
		m->layer = xcalloc(m->config.layers, sizeof(*m->layer));
	if (ok && how->progress)
		how->progress->total = m->config.layers;
	ok = ok && ends_load(m, how, e);
	for (uint32_t l = 0; ok && l < m->config.layers; l++) {
		ok = how->stop && *how->stop ?
			     err_set(e, ERR_BUSY, "%s: stopped by a signal "
				     "after %u of %u layers", dir, l,
				     m->config.layers) :
			     layer_load(m, l, how, e);
		if (how->progress)
			progress_step(how->progress, 1);
	}
	ok = ok && unused_check(m, e) &&
	     (!m->backend->open || m->backend->open(m, how, e));
	if (!ok)
		qwen_model_close(m);
	return ok;
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
	for (size_t i = 0; i < m->n_blocks; i++)
		munmap(m->block[i].data, m->block[i].size_bytes);
	free(m->block);
	free(m->layer);
	arena_fini(&m->mem);
	qwen_tensors_close(&m->tensors);
	*m = (struct qwen_model){ 0 };
}

static bool layer_each(const struct qwen_model *m, uint32_t l,
		       bool (*each)(void *ctx, const struct qwen_part *p,
				    struct err *e),
		       void *ctx, struct err *e)
{
	const char *layer = (const char *)&m->layer[l];
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(layer_norm); i++) {
		struct qwen_part p = { .name = name };
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_norm[i].name);
		p.norm = *(const float *const *)(layer + layer_norm[i].offset);
		p.n = layer_norm[i].per_head ? m->config.head_dim :
					       m->config.hidden;
		if (!each(ctx, &p, e))
			return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(layer_matrix); i++) {
		struct qwen_part p = { .name = name };
		snprintf(name, sizeof(name), "model.layers.%u.%s.weight", l,
			 layer_matrix[i].name);
		p.matrix = (const struct qwen_matrix *)
			(layer + layer_matrix[i].offset);
		if (!each(ctx, &p, e))
			return false;
	}
	return true;
}

bool qwen_model_each(const struct qwen_model *m,
		     bool (*each)(void *ctx, const struct qwen_part *p,
				  struct err *e),
		     void *ctx, struct err *e)
{
	const struct qwen_part embed = { "model.embed_tokens.weight", &m->embed,
					 NULL, 0 };
	const struct qwen_part norm = { "model.norm.weight", NULL, m->norm,
					m->config.hidden };
	const struct qwen_part head = { "lm_head.weight", &m->head, NULL, 0 };

	if (!each(ctx, &embed, e))
		return false;
	for (uint32_t l = 0; l < m->config.layers; l++)
		if (!layer_each(m, l, each, ctx, e))
			return false;
	return each(ctx, &norm, e) &&
	       (m->config.tied || each(ctx, &head, e));
}
