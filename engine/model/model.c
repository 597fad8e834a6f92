/*
 * engine/model/model.c - a model from its files.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/model/model.h"

/* Of less it is not said what pages they lie in. */
#define TOLD_BYTES 256000000

/* What a backend without blocks gets of them; the first two lose nothing. */
static enum qwen_weights repacked_type(enum qwen_dtype t)
{
	return t == QWEN_Q8_0 ? QWEN_W_INT8 :
	       t == QWEN_Q4_0 ? QWEN_W_INT4 : QWEN_W_F16;
}

static bool is_repacked(const struct qwen_model *m, const struct qwen_load *how,
			const struct qwen_tensor *t)
{
	return t && t->dtype > QWEN_BOOL && !how->convert &&
	       !m->backend->blocks &&
	       !(m->backend->own && t->dtype >= QWEN_I6_32 &&
		 t->dtype <= QWEN_I3_256);
}

static const char *const packing_name[] = {
	[QWEN_PACKED_FP8] = "FP8",
	[QWEN_PACKED_GPTQ] = "GPTQ",
	[QWEN_PACKED_AWQ] = "AWQ",
	[QWEN_PACKED_HFQ] = "HFQ",
};

/* One line about all of them. */
static void repacked_tell(const struct qwen_model *m,
			  const struct qwen_load *how)
{
	bool told[QWEN_DTYPES] = { false };
	struct buf b = { 0 };

	for (size_t i = 0; i < m->tensors.n_tensors; i++) {
		const struct qwen_tensor *t = &m->tensors.tensor[i];
		if (!is_repacked(m, how, t) || told[t->dtype])
			continue;
		told[t->dtype] = true;
		buf_printf(&b, "%s%s as %s", b.len ? ", " : "",
			   qwen_dtype_name(t->dtype),
			   qwen_weights_name(repacked_type(t->dtype)));
	}
	if (b.len)
		buf_printf(&b, ": --backend %s takes blocks of GGUF so",
			   m->backend->name);
	else if (!how->convert &&
		 qwen_is_foreign(&m->tensors, &m->config.packing,
				 "model.layers.0.self_attn.o_proj.weight"))
		buf_printf(&b, "%s as f16: the nearest that is computed with "
			   "(--weights int8 takes half of it)",
			   packing_name[m->config.packing.kind]);
	if (b.len && how->warn)
		how->warn(how->ctx, b.data);
	buf_fini(&b);
}

static void foreign_read(const void *ctx, size_t row, float *x)
{
	qwen_foreign_row(ctx, row, x);
}

/* FP8, GPTQ, AWQ or HFQ as the wanted type, or as f16. */
static bool foreign_load(struct qwen_model *m, struct qwen_matrix *out,
			 const char *name, const struct qwen_convert *how,
			 struct err *e)
{
	struct qwen_foreign f;

	out->type = how->convert ? how->weights : QWEN_W_F16;
	return qwen_foreign_find(&f, &m->tensors, &m->config.packing, name,
				 out->rows, out->cols, e) &&
	       qwen_matrix_from_rows(how, out, foreign_read, &f, name, e);
}

/*
 * Fills `out`, whose size is known.  Integers are stored with fewer columns of
 * bytes, and scales beside them.
 */
static bool matrix_find(struct qwen_model *m, struct qwen_matrix *out,
			const char *name, const struct qwen_load *how,
			struct err *e)
{
	struct qwen_convert convert = {
		.kernels = m->kernels, .threads = m->threads,
		.blocks = &m->blocks, .convert = how->convert,
		.weights = how->weights,
	};
	const uint64_t rows = out->rows, cols = out->cols;

	if (qwen_is_foreign(&m->tensors, &m->config.packing, name))
		return foreign_load(m, out, name, &convert, e);
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
	if (is_repacked(m, how, t)) {
		convert.convert = true;
		convert.weights = repacked_type(t->dtype);
	}
	return qwen_matrix_make(out, t, scale, &convert, e);
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

struct loading {
	struct qwen_model *m;
	const struct qwen_load *how;
};

static bool part_load(void *ctx, const struct qwen_part *p, struct err *e)
{
	const struct loading *x = ctx;
	struct qwen_model *m = x->m;

	struct qwen_load how = *x->how;

	if (p->router) {
		how.convert = true;
		how.weights = QWEN_W_F32;
	}
	if (p->matrix ? !matrix_find(m, p->matrix, p->name, &how, e) :
	    !(*p->norm = norm_find(m, p->name, p->n, e)))
		return false;
	m->token_bytes += qwen_part_bytes(m, p);
	return true;
}

static bool ends_load(struct qwen_model *m, const struct qwen_load *how,
		      struct err *e)
{
	const struct qwen_config *c = &m->config;

	m->norm = norm_find(m, "model.norm.weight", c->hidden, e);
	if (!m->norm || !matrix_find(m, &m->embed, "model.embed_tokens.weight",
				     how, e))
		return false;
	if (c->tied)
		m->head = m->embed;
	else if (!qwen_tensor_find(&m->tensors, "lm_head.weight") &&
		 !qwen_is_foreign(&m->tensors, &c->packing, "lm_head.weight"))
		return err_set(e, ERR_INPUT, "there is no output layer, tensor "
			       "lm_head.weight, as in models of embeddings: "
			       "t0-qwen3 embed takes those");
	else if (!matrix_find(m, &m->head, "lm_head.weight", how, e))
		return false;
	m->token_bytes += qwen_matrix_bytes(&m->head) +
			  c->hidden * sizeof(float);
	return true;
}

struct use {
	const struct qwen_tensors *t;
	bool *of; /* [n_tensors] */
	bool packed; /* by others */
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
	/* What may stand for "weight", or beside it. */
	static const char *const end[] = { "weight_scale", "weight_scale_inv",
					   "qweight", "qzeros", "scales",
					   "g_idx" };
	const struct use *u = ctx;
	size_t n = !p->matrix ? 0 : u->packed ? ARRAY_SIZE(end) : 1;
	int stem = (int)(strlen(p->name) - strlen("weight"));
	char name[160];

	(void)e;
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%.*s%s", stem, p->name, end[i]);
		name_use(ctx, name);
	}
	return name_use(ctx, p->name);
}

/* A tensor that no pass uses, a bias or another layer, is another model's. */
static bool unused_check(struct qwen_model *m, struct err *e)
{
	struct use u = { &m->tensors,
			 xcalloc(m->tensors.n_tensors, sizeof(*u.of)),
			 m->config.packing.kind };
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

/* ---- large pages ---- */

struct in_files {
	const struct qwen_tensors *t;
	uint64_t bytes; /* of matrices that lie in the files */
};

static bool part_count(void *ctx, const struct qwen_part *p, struct err *e)
{
	struct in_files *x = ctx;
	const char *data = p->matrix ? p->matrix->data : NULL;

	(void)e;
	for (size_t i = 0; data && i < x->t->n_maps; i++) {
		const struct qwen_map *map = &x->t->map[i];
		if (data >= (const char *)map->base &&
		    data < (const char *)map->base + map->size_bytes)
			x->bytes += qwen_matrix_bytes(p->matrix);
	}
	return true;
}

/* Are the files most of what is computed with? */
static bool is_mapped(struct qwen_model *m)
{
	struct in_files x = { &m->tensors, 0 };

	qwen_model_each(m, part_count, &x, NULL);
	return x.bytes > m->tensors.total_bytes / 2;
}

static void pages_tell(const struct qwen_model *m, const struct qwen_load *how,
		       enum qwen_paging pages)
{
	const double gigabytes = (double)m->tensors.total_bytes * 1e-9;
	char text[160];

	if (!how->remark || m->tensors.total_bytes < TOLD_BYTES ||
	    (pages != QWEN_PAGES_MEMORY && pages != QWEN_PAGES_SMALL))
		return;
	snprintf(text, sizeof(text), pages == QWEN_PAGES_MEMORY ?
		 "%.1f GB of weights go into large pages meanwhile (--copy: "
		 "before the first token)" :
		 "%.1f GB of weights stay in small pages, as memory is less "
		 "than twice as much: decoding is a bit slower", gigabytes);
	how->remark(how->ctx, text);
}

/* Weights of the files into large pages: now, or meanwhile. */
static bool weights_settle(struct qwen_model *m, const struct qwen_load *how,
			   struct err *e)
{
	const uint64_t memory = how->memory_bytes ? how->memory_bytes :
						    memory_limit_bytes();

	if (how->mapped || m->backend != &qwen_cpu || !is_mapped(m))
		return true;
	if (how->copy) {
		if (how->progress)
			how->progress->what = "reading weights";
		return qwen_maps_read(&m->tensors, m->threads, how->progress,
				      how->stop, e);
	}
	enum qwen_paging pages = qwen_pages_choose(&m->tensors, memory);
	m->settling = qwen_maps_settle(&m->tensors, pages);
	pages_tell(m, how, pages);
	return true;
}

bool qwen_model_load(struct qwen_model *m, const char *dir,
		     const struct qwen_load *how, struct threads *threads,
		     struct err *e)
{
	struct loading x = { m, how };
	struct qwen_config c;
	bool ok;

	*m = (struct qwen_model){ 0 };
	if (how->convert && qwen_is_block(how->weights) && how->backend &&
	    !how->backend->blocks &&
	    !(how->backend->own && qwen_is_own(how->weights)))
		return err_set(e, ERR_UNSUPPORTED, "weights of %s: --backend "
			       "%s has no kernels for them; wanted f32, f16, "
			       "bf16, int8, int4, int6_N or int3_N",
			       qwen_weights_name(how->weights),
			       how->backend->name);
	if (!qwen_config_load(&c, dir, e))
		return false;
	c.tied |= how->headless;
	qwen_model_outline(m, &c, how->weights);
	m->threads = threads;
	m->kernels = qwen_kernels_best();
	m->backend = how->backend ? how->backend : &qwen_cpu;
	m->activations = how->activations;
	m->token_bytes = 0;
	ok = qwen_tensors_open(&m->tensors, dir, e) &&
	     qwen_checksum_do(how->checksum, &m->tensors, dir, threads, e);
	if (ok)
		repacked_tell(m, how);
	if (ok && how->progress)
		how->progress->total = m->config.layers;
	ok = ok && ends_load(m, how, e);
	for (uint32_t l = 0; ok && l < m->config.layers; l++) {
		ok = how->stop && *how->stop ?
			     err_set(e, ERR_STOPPED, "%s: %u of %u layers "
				     "were loaded", dir, l,
				     m->config.layers) :
			     qwen_layer_each(m, l, part_load, &x, e);
		if (how->progress)
			progress_step(how->progress, 1);
	}
	ok = ok && qwen_engram_each(m, part_load, &x, e) &&
	     unused_check(m, e) &&
	     (!m->backend->open || m->backend->open(m, how, e)) &&
	     weights_settle(m, how, e);
	if (!ok)
		qwen_model_close(m);
	return ok;
}
