/*
 * engine/gpu/gpu.c - a model on a device: weights, kernels, choice of tiles.
 */
#include "base/vec.h"
#include "engine/gpu/gpu_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/db/results.h"

enum dsl_type gpu_type(enum qwen_weights w)
{
	static const enum dsl_type type[QWEN_WEIGHTS] = {
		[QWEN_W_F32] = DSL_F32, [QWEN_W_F16] = DSL_F16,
		[QWEN_W_BF16] = DSL_BF16, [QWEN_W_INT8] = DSL_I8,
		[QWEN_W_INT4] = DSL_U8,
	};

	return type[w];
}

/* ---- kernels ---- */

static bool same_shape(const struct kernel_shape *a,
		       const struct kernel_shape *b)
{
	return a->type == b->type && a->to == b->to &&
	       a->weights == b->weights && a->group == b->group &&
	       a->cache == b->cache && a->head == b->head &&
	       a->wide == b->wide && a->ratio == b->ratio &&
	       a->tokens == b->tokens;
}

static bool code_load(struct gpu *g, const void *object, size_t bytes,
		      struct gpu_code *out, struct err *e)
{
	struct kfd_code *code;

	if (!kfd_code_load(g->dev, object, bytes, &code, e))
		return false;
	*out = (struct gpu_code){ kfd_code_at(code, 0), object, bytes, "", "" };
	snprintf(out->label, sizeof(out->label), "%s", out->kernel->name);
	return true;
}

static bool kernel_make(struct gpu *g, struct gpu_kernel *k, struct err *e)
{
	struct cc_options o;

	kernel_options(&k->shape, &o);
	o.costs = &g->costs;
	if (!kernel_object(&g->objects, k->entry, &k->shape, &o, &k->object,
			   e))
		return err_wrap(e, "kernel %s", k->entry->name);
	if (code_load(g, k->object.bytes, k->object.len, &k->code, e))
		return true;
	cache_object_fini(&k->object);
	return err_wrap(e, "kernel %s", k->entry->name);
}

const struct gpu_kernel *gpu_kernel(struct gpu *g, const char *name,
				    const struct kernel_shape *shape,
				    struct err *e)
{
	struct gpu_kernel want = { .entry = kernel_find(name),
				   .shape = *shape };

	if (!want.entry)
		BUG("no kernel is called %s", name);
	if (!kernel_shape_check(want.entry, &want.shape, e))
		return NULL;
	for (size_t i = 0; i < g->n_kernels; i++)
		if (g->kernel[i]->entry == want.entry &&
		    same_shape(&g->kernel[i]->shape, &want.shape))
			return g->kernel[i];
	if (!kernel_make(g, &want, e))
		return NULL;
	VEC_GROW(g->kernel, g->n_kernels, 1, g->cap_kernels);
	g->kernel[g->n_kernels] = xmalloc(sizeof(want));
	*g->kernel[g->n_kernels] = want;
	return g->kernel[g->n_kernels++];
}

/* Without a database, or with one that knows nothing: false, and no error. */
static bool tiles_select(struct gpu *g, struct gpu_tiles *t, char *why,
			 size_t size)
{
	/* B is the weights, of which other layers' came before. */
	const struct tune_problem p = { t->op, t->m, t->n, t->k, 1,
					TUNE_COLD_B };
	struct tune_choice c;

	if (!g->selector || !tune_select(g->selector, &p, &c, NULL))
		return false;
	t->config = c.config;
	t->objects = c.code;
	snprintf(why, size, "%s", c.why);
	return true;
}

static bool tiles_load(struct gpu *g, struct gpu_tiles *t, const char *why,
		       struct err *e)
{
	bool good = true;

	for (int i = 0; good && i < t->objects.n; i++) {
		const struct buf *b = &t->objects.object[i].bytes;
		good = code_load(g, b->data, b->len, &t->code[i], e);
		if (!good)
			break;
		gemm_config_name(&t->config, t->code[i].label,
				 sizeof(t->code[i].label));
		snprintf(t->code[i].chosen, sizeof(t->code[i].chosen), "%s",
			 why);
	}
	if (!good)
		gemm_code_fini(&t->objects);
	return good;
}

/* One that there is: of any size with this configuration, or of this size. */
static struct gpu_tiles *tiles_known(struct gpu *g,
				     const struct gpu_tiles *want, bool any)
{
	for (size_t i = 0; i < g->n_tiles; i++) {
		struct gpu_tiles *t = g->tiles[i];

		if (!memcmp(&t->op, &want->op, sizeof(t->op)) &&
		    t->any == any &&
		    (any ? !memcmp(&t->config, &want->config,
				   sizeof(t->config)) :
			   t->m == want->m && t->n == want->n &&
				     t->k == want->k))
			return t;
	}
	return NULL;
}

const struct gpu_tiles *gpu_tiles(struct gpu *g, const struct gemm_op *op,
				  uint32_t m, uint32_t n, uint32_t k, bool any,
				  struct err *e)
{
	struct gpu_tiles *t, want = { .op = *op, .m = m, .n = n, .k = k };
	char why[240] = "default: suits every shape";

	if (any || !(t = tiles_known(g, &want, false))) {
		want.any = any || !tiles_select(g, &want, why, sizeof(why));
		if (want.any)
			want.config = gemm_default_for(op, m, n, k);
		t = tiles_known(g, &want, want.any);
	}
	if (t)
		return t;
	struct cc_options o;

	cc_options_init(&o);
	o.costs = &g->costs;
	if (want.any &&
	    !gemm_object(&g->objects, op, &want.config, &o, &want.objects, e))
		return NULL;
	if (!tiles_load(g, &want, why, e))
		return NULL;
	t = xmalloc(sizeof(*t));
	*t = want;
	VEC_GROW(g->tiles, g->n_tiles, 1, g->cap_tiles);
	return g->tiles[g->n_tiles++] = t;
}

/*
 * What was measured and tuned, where there is a database: the one that is
 * named may be what this run is going to write.
 */
static bool selector_open(struct gpu *g, struct err *e)
{
	g->tune = (struct tune_opts){ .costs = &g->costs,
				      .objects = &g->objects };
	if (!cost_open(&g->costs, "gfx1100", NULL, true, COST_HARDWARE, NULL,
		       e))
		return false;
	if (access(res_path(NULL), F_OK) != 0)
		return true;
	g->selector = tune_selector_open(&g->tune, e);
	return g->selector != NULL;
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
	if (!kfd_mem_alloc(g->dev, KFD_VRAM_PRIVATE, bytes, name, &b->mem, e))
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
	if (data && !kfd_write(b->g->dev, b->mem, b->used, data, bytes, e))
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
	return w->type >= QWEN_W_INT8 ? (size_t)w->rows *
		(w->cols / QWEN_GROUP) * 2 : 0;
}

static size_t weight_bytes(const struct qwen_matrix *w)
{
	static const uint8_t bits[QWEN_WEIGHTS] = {
		[QWEN_W_F32] = 32, [QWEN_W_F16] = 16, [QWEN_W_BF16] = 16,
		[QWEN_W_INT8] = 8, [QWEN_W_INT4] = 4,
	};

	return (size_t)w->rows * w->cols / 8 * bits[w->type];
}

/* What matrices_add() needs at most. */
static size_t matrices_bytes(const struct qwen_matrix *const *w, int n)
{
	size_t bytes = 2 * ALIGN;

	for (int i = 0; i < n; i++)
		bytes += weight_bytes(w[i]) + scale_bytes(w[i]);
	return bytes;
}

/* Matrices of the same input, one below the other, as one. */
static bool matrices_add(struct block *b, const struct qwen_matrix *const *w,
			 int n, struct gpu_matrix *out, struct err *e)
{
	uint64_t va;

	*out = (struct gpu_matrix){ .type = w[0]->type, .cols = w[0]->cols };
	b->used = pad_bytes(b->used);
	out->w = out->scale = b->mem->va + b->used;
	for (int i = 0; i < n; i++) {
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
		if (!block_add(b, w[i]->data, weight_bytes(w[i]), &va, e))
			return false;
	}
	if (out->type < QWEN_W_INT8)
		return true;
	b->used = pad_bytes(b->used);
	out->scale = b->mem->va + b->used;
	for (int i = 0; i < n; i++)
		if (!block_add(b, w[i]->scale, scale_bytes(w[i]), &va, e))
			return false;
	return true;
}

enum { LAYER_MATRICES = 7 };

static void matrices_of(const struct qwen_layer *l,
			const struct qwen_matrix *out[LAYER_MATRICES])
{
	const struct qwen_matrix *all[] = { &l->q, &l->k, &l->v, &l->o,
					    &l->gate, &l->up, &l->down };

	memcpy(out, all, sizeof(all));
}

static bool layer_add(struct gpu *g, uint32_t i, struct err *e)
{
	const struct qwen_config *c = &g->m->config;
	const struct qwen_layer *l = &g->m->layer[i];
	const struct qwen_matrix *all[LAYER_MATRICES];
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

	matrices_of(l, all);
	size_t bytes = matrices_bytes(all, LAYER_MATRICES) + 6 * ALIGN;
	for (size_t k = 0; k < ARRAY_SIZE(norm); k++)
		bytes += pad_bytes(norm[k].n * sizeof(float));
	snprintf(name, sizeof(name), "layer %u", i);
	if (!block_new(&b, g, bytes, name, e) ||
	    !matrices_add(&b, all, 3, &to->heads, e) ||
	    !matrices_add(&b, all + 3, 1, &to->out, e) ||
	    !matrices_add(&b, all + 4, 2, &to->both, e) ||
	    !matrices_add(&b, all + 6, 1, &to->down, e))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(norm); k++)
		if (!floats_add(&b, norm[k].x, norm[k].n, norm[k].va, e))
			return false;
	return true;
}

static bool ends_add(struct gpu *g, struct err *e)
{
	const struct qwen_matrix *embed[] = { &g->m->embed };
	const struct qwen_matrix *head[] = { &g->m->head };
	uint32_t hidden = g->m->config.hidden;
	struct block b;

	if (!block_new(&b, g,
		       matrices_bytes(embed, 1) +
			       pad_bytes(hidden * sizeof(float)),
		       "embedding", e) ||
	    !matrices_add(&b, embed, 1, &g->embed, e) ||
	    !floats_add(&b, g->m->norm, hidden, &g->norm, e))
		return false;
	g->head = g->embed;
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
	const struct qwen_matrix *all[LAYER_MATRICES];
	const struct qwen_matrix *ends[] = { &m->embed, &m->head };
	uint64_t room, bytes = matrices_bytes(ends, m->config.tied ? 1 : 2);

	if (!kfd_vram_available(g->dev, &room, NULL))
		return true;
	for (uint32_t i = 0; i < m->config.layers; i++) {
		matrices_of(&m->layer[i], all);
		bytes += matrices_bytes(all, LAYER_MATRICES);
	}
	return bytes <= room ||
	       err_set(e, ERR_NOMEM, "%.2f GB of weights, %.2f GB of VRAM are "
		       "free", (double)bytes / 1e9, (double)room / 1e9);
}

/* ---- the backend ---- */

static void gpu_close(struct qwen_model *m)
{
	struct gpu *g = m->device;

	kfd_close(g->dev);
	for (size_t i = 0; i < g->n_kernels; i++) {
		cache_object_fini(&g->kernel[i]->object);
		free(g->kernel[i]);
	}
	for (size_t i = 0; i < g->n_tiles; i++) {
		gemm_code_fini(&g->tiles[i]->objects);
		free(g->tiles[i]);
	}
	object_cache_fini(&g->objects);
	tune_selector_close(g->selector);
	cost_fini(&g->costs);
	free(g->kernel);
	free(g->tiles);
	free(g->mem);
	free(g->layer);
	free(g);
	m->device = NULL;
}

static bool gpu_is_emulated(const struct qwen_model *m)
{
	const struct gpu *g = m->device;

	return strcmp(kfd_info(g->dev)->origin, "emulated") == 0;
}

static bool gpu_open(struct qwen_model *m, const struct qwen_load *how,
		     struct err *e)
{
	const struct qwen_config *c = &m->config;
	struct gpu *g;

	if (c->head_dim % 2 || c->head_dim > KERNEL_MAX_HEAD)
		return err_set(e, ERR_UNSUPPORTED, "heads of %u elements; the "
			       "gfx1100 backend has even ones up to %d",
			       c->head_dim, KERNEL_MAX_HEAD);
	g = m->device = xcalloc(1, sizeof(*g));
	g->m = m;
	object_cache_init(&g->objects, how->warn, how->ctx);
	g->layer = xcalloc(c->layers, sizeof(*g->layer));
	bool good = how->driver ? kfd_open_driver(&g->dev, how->driver, -1,
						  "chosen by its caller", e) :
				  kfd_open(&g->dev, how->device, e);
	good = good && is_room(g, e) && selector_open(g, e) && ends_add(g, e);
	for (uint32_t i = 0; good && i < c->layers; i++) {
		good = layer_add(g, i, e) || err_wrap(e, "layer %u", i);
		if (how->progress)
			progress_step(how->progress, 1);
	}
	if (!good && e->code == ERR_NOMEM)
		err_wrap(e, "the model with weights of %s does not fit "
			 "(--weights int8 and int4 take less)",
			 qwen_weights_name(m->layer[0].q.type));
	if (!good)
		gpu_close(m);
	return good;
}

const struct qwen_backend qwen_gpu = {
	.name = "gpu",
	.open = gpu_open,
	.close = gpu_close,
	.is_emulated = gpu_is_emulated,
	.state_new = gpu_state_new,
	.state_free = gpu_state_free,
	.cache_bytes = gpu_cache_bytes,
	.forward = gpu_forward,
	.counts = gpu_counts,
};
