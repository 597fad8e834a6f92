/*
 * engine/gpu/gpu.c - a model on a device: its weights.
 */
#include "base/vec.h"
#include "engine/gpu/gpu_int.h"

#include <stdlib.h>
#include <string.h>

/* Bits of a value of our own blocks, behind the scale that each has in f16. */
static uint32_t own_bits(enum qwen_weights w)
{
	const struct qwen_layout l = qwen_layout(w);

	return (l.bytes - 2) * 8 / l.values;
}

enum dsl_type gpu_type(enum qwen_weights w)
{
	static const enum dsl_type type[QWEN_WEIGHTS] = {
		[QWEN_W_F32] = DSL_F32, [QWEN_W_F16] = DSL_F16,
		[QWEN_W_BF16] = DSL_BF16, [QWEN_W_INT8] = DSL_I8,
		[QWEN_W_INT4] = DSL_U8,
	};

	return !qwen_is_own(w)     ? type[w] :
	       own_bits(w) == 6 ? DSL_U32 : DSL_I16;
}

uint32_t gpu_span(enum qwen_weights w)
{
	return qwen_is_own(w) ? qwen_layout(w).values : 0;
}

enum dsl_type gpu_cache_type(enum qwen_weights w)
{
	return w == QWEN_W_F8				  ? DSL_U8 :
	       w == QWEN_W_INT4 || w == QWEN_W_INT4R ? DSL_U32 :
						       gpu_type(w);
}

/* ---- weights ---- */

/* Device memory that is filled from its start on. */
struct block {
	struct gpu *g;
	struct kfd_mem *mem;
	size_t used;
};
#define ALIGN 256

static size_t pad_bytes(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool block_new(struct block *b, struct gpu *g, size_t bytes,
		      const char *name, struct err *e)
{
	*b = (struct block){ .g = g };
	if (!kfd_mem_alloc(g->card.dev, KFD_VRAM_PRIVATE, bytes, name, &b->mem,
			   e))
		return false;
	VEC_GROW(g->mem, g->n_mem, 1, g->cap_mem);
	g->mem[g->n_mem++] = b->mem;
	return true;
}

/* To the block's end; *va is where it lies there.  NULL: nothing to copy. */
static bool block_add(struct block *b, const void *data, size_t bytes,
		      uint64_t *va, struct err *e)
{
	*va = b->mem->va + b->used;
	if (data && !kfd_write(b->g->card.dev, b->mem, b->used, data, bytes, e))
		return false;
	b->used += bytes;
	return true;
}

static bool floats_add(struct block *b, const float *x, uint32_t n,
		       uint64_t *va, struct err *e)
{
	b->used = pad_bytes(b->used);
	return block_add(b, x, n * sizeof(*x), va, e);
}

static size_t scale_bytes(const struct qwen_matrix *w)
{
	const uint32_t span = gpu_span(w->type);

	return w->type >= QWEN_W_INT8 ? (size_t)w->rows *
		(w->cols / (span ? span : QWEN_GROUP)) * 2 : 0;
}

size_t gpu_weight_bytes(const struct qwen_matrix *w)
{
	static const uint8_t bits[QWEN_WEIGHTS] = {
		[QWEN_W_F32] = 32, [QWEN_W_F16] = 16, [QWEN_W_BF16] = 16,
		[QWEN_W_INT8] = 8, [QWEN_W_INT4] = 4,
	};

	return (size_t)w->rows * w->cols / 8 *
	       (qwen_is_own(w->type) ? own_bits(w->type) : bits[w->type]);
}

/*
 * Codes or scales of our own blocks, without the others between them; where the
 * model has no weights, as of a forecast, NULL.
 */
static void *blocks_part(const struct qwen_matrix *w, bool scales)
{
	const struct qwen_layout l = qwen_layout(w->type);
	const size_t n = (size_t)w->rows * (w->cols / l.values);
	const size_t each = scales ? 2 : l.bytes - 2;
	const uint8_t *from = w->data;
	uint8_t *to = from ? xmalloc(n * each + 1) : NULL;

	for (size_t i = 0; from && i < n; i++)
		memcpy(to + i * each, from + i * l.bytes + (scales ? 0 : 2),
		       each);
	return to;
}

/* The integers of a matrix, or its scales, behind those of others. */
static bool matrix_add(struct block *b, const struct qwen_matrix *w,
		       bool scales, struct err *e)
{
	const size_t bytes = scales ? scale_bytes(w) : gpu_weight_bytes(w);
	const bool own = qwen_is_own(w->type);
	void *part = own ? blocks_part(w, scales) : NULL;
	uint64_t va;
	bool good = block_add(b, own ? part : scales ? w->scale : w->data,
			      bytes, &va, e);

	free(part);
	return good;
}

/* What matrices_add() needs at most. */
static size_t matrices_bytes(const struct qwen_matrix *const *w, uint32_t n)
{
	size_t bytes = 2 * ALIGN;

	for (uint32_t i = 0; i < n; i++)
		bytes += gpu_weight_bytes(w[i]) + scale_bytes(w[i]);
	return bytes;
}

/* Matrices of the same input, one below the other, as one. */
static bool matrices_add(struct block *b, const struct qwen_matrix *const *w,
			 uint32_t n, struct gpu_matrix *out, struct err *e)
{
	*out = (struct gpu_matrix){ .type = w[0]->type, .cols = w[0]->cols };
	b->used = pad_bytes(b->used);
	out->w = out->scale = b->mem->va + b->used;
	for (uint32_t i = 0; i < n; i++) {
		if (w[i]->type != out->type || w[i]->cols % QWEN_GROUP)
			return err_set(e, ERR_UNSUPPORTED, "a matrix of %u "
				       "columns of %s beside one of %s; the "
				       "gfx1100 backend wants multiples of %d "
				       "and one type (--weights makes it one)",
				       w[i]->cols,
				       qwen_weights_name(w[i]->type),
				       qwen_weights_name(out->type),
				       QWEN_GROUP);
		out->rows += w[i]->rows;
		if (!matrix_add(b, w[i], false, e))
			return false;
	}
	if (out->type < QWEN_W_INT8)
		return true;
	b->used = pad_bytes(b->used);
	out->scale = b->mem->va + b->used;
	for (uint32_t i = 0; i < n; i++)
		if (!matrix_add(b, w[i], true, e))
			return false;
	return true;
}

/* Of a layer, in the order of a pass: [n], those of experts side by side. */
struct matrices {
	const struct qwen_matrix **all; /* q, k, v, o, then [router] */
	const struct qwen_matrix **both, **down; /* [2 nets], [nets] of them */
	uint32_t n, nets;
};

static struct matrices matrices_of(const struct qwen_config *c,
				   const struct qwen_layer *l)
{
	const struct qwen_matrix *first[] = { &l->q, &l->k, &l->v, &l->o,
					      &l->router };
	const uint32_t nets = c->experts.n ? c->experts.n : 1;
	const uint32_t before = c->experts.n ? 5 : 4;
	struct matrices m = { .n = before + 3 * nets, .nets = nets };

	m.all = xcalloc(m.n, sizeof(*m.all));
	memcpy(m.all, first, before * sizeof(*m.all));
	m.both = m.all + before;
	m.down = m.both + 2 * nets;
	for (uint32_t i = 0; i < nets; i++) {
		const struct qwen_expert *x = &l->expert[i];
		m.both[2 * i] = c->experts.n ? &x->gate : &l->gate;
		m.both[2 * i + 1] = c->experts.n ? &x->up : &l->up;
		m.down[i] = c->experts.n ? &x->down : &l->down;
	}
	return m;
}

static bool part_add(struct gpu *g, uint32_t i, const struct qwen_layer *l,
		     struct err *e)
{
	const struct qwen_config *c = &g->m->config;
	const struct matrices m = matrices_of(c, l);
	struct gpu_layer *to = &g->layer[i];
	const struct {
		const float *x;
		uint32_t n;
		uint64_t *va;
	} norm[] = { { l->attn_norm, c->hidden, &to->attn_norm },
		     { l->ffn_norm, c->hidden, &to->ffn_norm },
		     { l->q_norm, c->head_dim, &to->q_norm },
		     { l->k_norm, c->head_dim, &to->k_norm } };
	struct block b;
	char name[32];

	size_t bytes = matrices_bytes(m.all, m.n) + 8 * ALIGN;
	for (size_t k = 0; k < ARRAY_SIZE(norm); k++)
		bytes += pad_bytes(norm[k].n * sizeof(float));
	snprintf(name, sizeof(name), "layer %u", i);
	bool ok = block_new(&b, g, bytes, name, e) &&
		  matrices_add(&b, m.all, 3, &to->heads, e) &&
		  matrices_add(&b, m.all + 3, 1, &to->out, e) &&
		  (!c->experts.n ||
		   matrices_add(&b, m.all + 4, 1, &to->router, e)) &&
		  matrices_add(&b, m.both, 2 * m.nets, &to->both, e) &&
		  matrices_add(&b, m.down, m.nets, &to->down, e);
	for (size_t k = 0; ok && k < ARRAY_SIZE(norm); k++)
		ok = floats_add(&b, norm[k].x, norm[k].n, norm[k].va, e);
	free(m.all);
	return ok;
}

static bool layer_add(struct gpu *g, uint32_t i, struct err *e)
{
	struct gpu_part part;

	gpu_part_take(&part, g, &g->m->layer[i]);
	bool ok = part_add(g, i, &part.layer, e);
	gpu_part_drop(&part);
	return ok;
}

/* Rows of a matrix that is on the device. */
static struct gpu_matrix rows_of(const struct gpu_matrix *w, uint32_t from,
				 const struct qwen_matrix *part)
{
	struct gpu_matrix m = *w;

	m.rows = part->rows;
	m.w += gpu_weight_bytes(part) / part->rows * from;
	m.scale += scale_bytes(part) / part->rows * from;
	return m;
}

static bool ends_add(struct gpu *g, struct err *e)
{
	const struct qwen_matrix *embed[] = { &g->m->embed };
	const struct qwen_matrix part = gpu_part_head(g), *head[] = { &part };
	uint32_t hidden = g->m->config.hidden;
	struct block b;

	if (!block_new(&b, g,
		       matrices_bytes(embed, 1) +
			       pad_bytes(hidden * sizeof(float)),
		       "embedding", e) ||
	    !matrices_add(&b, embed, 1, &g->embed, e) ||
	    !floats_add(&b, g->m->norm, hidden, &g->norm, e))
		return false;
	g->head = rows_of(&g->embed, gpu_first_id(g, g->number), &part);
	return g->m->config.tied ||
	       (block_new(&b, g, matrices_bytes(head, 1), "output", e) &&
		matrices_add(&b, head, 1, &g->head, e));
}

/*
 * Before gigabytes are read from a disk and copied.  Where the driver does not
 * say what is free, the block that has no room any more does.
 */
static bool is_room(struct gpu *g, struct err *e)
{
	const struct qwen_model *m = g->m;
	const struct qwen_matrix *ends[] = { &m->embed, &m->head };
	uint64_t room, bytes = matrices_bytes(ends, m->config.tied ? 1 : 2);

	if (!kfd_vram_available(g->card.dev, &room, NULL))
		return true;
	for (uint32_t i = 0; i < m->config.layers; i++) {
		const struct matrices x = matrices_of(&m->config, &m->layer[i]);
		bytes += matrices_bytes(x.all, x.n) / g->team->n;
		free(x.all);
	}
	return bytes <= room ||
	       err_set(e, ERR_NOMEM, "%.2f GB of weights, %.2f GB of VRAM are "
		       "free", (double)bytes / 1e9, (double)room / 1e9);
}

/* ---- the backend ---- */

/* Sums of more bytes are shared out: fewer of them cross a link. */
#define ONE_SHOT_BYTES (256 << 10)

static void device_close(struct gpu *g)
{
	gpu_card_close(&g->card);
	free(g->mem);
	free(g->layer);
	free(g);
}

/* The first was opened first, and the others through it. */
static void gpu_close(struct qwen_model *m)
{
	struct gpu_team *t = m->device;

	while (t->open)
		device_close(t->device[--t->open]);
	free(t);
	m->device = NULL;
}

static bool gpu_is_emulated(const struct qwen_model *m)
{
	const struct gpu_team *t = m->device;

	return strcmp(kfd_info(t->device[0]->card.dev)->origin, "hardware") !=
	       0;
}

static bool device_fill(struct gpu *g, const struct qwen_load *how,
			struct err *e)
{
	const uint32_t layers = g->m->config.layers;
	bool good = is_room(g, e) && ends_add(g, e);

	g->layer = xcalloc(layers, sizeof(*g->layer));
	for (uint32_t i = 0; good && i < layers; i++) {
		good = layer_add(g, i, e) || err_wrap(e, "layer %u", i);
		if (how->progress && !g->number)
			progress_step(how->progress, 1);
	}
	if (!good && e->code == ERR_NOMEM)
		err_wrap(e, "the model with weights of %s does not fit "
			 "(--weights int8 and int4 take less)",
			 qwen_weights_name(g->m->layer[0].q.type));
	return good;
}

static bool device_open(struct gpu_team *t, const struct qwen_model *m,
			const struct qwen_load *how, struct err *e)
{
	struct gpu *g = xcalloc(1, sizeof(*g));
	const struct gpu_card_how card = {
		.device = how->device, .driver = how->driver,
		.cards = t->n, .first = t->open ? &t->device[0]->card : NULL,
		.warn = how->warn, .ctx = how->ctx,
	};

	g->team = t;
	g->number = t->open;
	g->m = m;
	if (t->n > 1)
		gpu_team_share(g, m, t->n);
	t->device[t->open++] = g;
	return gpu_card_open(&g->card, &card, e) && device_fill(g, how, e);
}

bool gpu_open(struct qwen_model *m, const struct qwen_load *how, uint32_t open,
	      struct err *e)
{
	const struct qwen_config *c = &m->config;
	const uint32_t n = how->devices ? how->devices : 1;
	struct gpu_team *t;
	bool good = true;

	if (c->head_dim % 2 || c->head_dim > KERNEL_MAX_HEAD)
		return err_set(e, ERR_UNSUPPORTED, "heads of %u elements; the "
			       "gfx1100 backend has even ones up to %d",
			       c->head_dim, KERNEL_MAX_HEAD);
	if (c->engram.rows)
		return err_set(e, ERR_UNSUPPORTED,
			       "a model with an Engram (\"t0_engram\"); the "
			       "gfx1100 backend has none, --backend cpu has");
	if (!gpu_team_check(c, n, e))
		return false;
	if (n > 1 && (qwen_is_own(m->layer[0].q.type) ||
		      qwen_is_own(m->embed.type)))
		return err_set(e, ERR_UNSUPPORTED, "weights of %s are not "
			       "shared out among devices; wanted f32, f16, "
			       "bf16, int8 or int4",
			       qwen_weights_name(m->layer[0].q.type));
	t = m->device = xcalloc(1, sizeof(*t));
	t->n = n;
	t->one_shot_bytes = ONE_SHOT_BYTES;
	while (good && t->open < open)
		good = device_open(t, m, how, e);
	t->shared = KFD_VRAM_PRIVATE;
	if (good && open > 1) {
		struct gpu_card *card[GPU_CARDS_MAX];
		for (uint32_t i = 0; i < open; i++)
			card[i] = &t->device[i]->card;
		t->shared = gpu_shared_domain(card, open);
	}
	if (!good)
		gpu_close(m);
	return good;
}

static bool open_all(struct qwen_model *m, const struct qwen_load *how,
		     struct err *e)
{
	return gpu_open(m, how, how->devices ? how->devices : 1, e);
}

const struct qwen_backend qwen_gpu = {
	.name = "gpu",
	.few = 1,
	.own = true,
	.open = open_all,
	.close = gpu_close,
	.is_emulated = gpu_is_emulated,
	.state_new = gpu_state_new,
	.state_free = gpu_state_free,
	.cache_bytes = gpu_cache_bytes,
	.forward = gpu_forward,
	.map = gpu_map,
	.copy = gpu_copy,
	.counts = gpu_counts,
};
