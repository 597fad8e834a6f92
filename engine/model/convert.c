/*
 * engine/model/convert.c - models between folders and GGUF files: the bytes of
 * tensors, and the files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/convert_int.h"

static bool ends_in_gguf(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}

/* ---- its bytes ---- */

static enum qwen_weights plain_type(enum qwen_dtype t)
{
	return t == QWEN_F32 ? QWEN_W_F32 :
	       t == QWEN_F16 ? QWEN_W_F16 :
			       QWEN_W_BF16;
}

static void norm_widen(struct conversion *c, const struct qwen_tensor *t)
{
	c->row = xrealloc(c->row, (t->count + 1) * sizeof(*c->row));
	qwen_kernels_best()->widen(plain_type(t->dtype), t->data, t->count,
				   c->row);
}

/* Do the norms keep their values as `w`? */
static bool norms_fit(struct conversion *c, enum qwen_weights w)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	bool same = true;

	for (size_t i = 0; same && i < c->n; i++) {
		const size_t n = c->from[i]->count;
		if (c->out[i].n_dims != 1)
			continue;
		norm_widen(c, c->from[i]);
		uint16_t *half = xmalloc((n + 1) * 2);
		float *back = xmalloc((n + 1) * sizeof(*back));
		k->narrow(w, c->row, n, half);
		k->widen(w, half, n, back);
		same = memcmp(back, c->row, n * sizeof(*back)) == 0;
		free(half);
		free(back);
	}
	return same;
}

static void norms_choose(struct conversion *c)
{
	enum qwen_dtype t = QWEN_F32;

	for (size_t i = 0; i < c->n; i++)
		if (c->out[i].n_dims == 2)
			t = c->out[i].dtype;
	if ((t != QWEN_F16 && t != QWEN_BF16) || !norms_fit(c, plain_type(t)))
		return;
	for (size_t i = 0; i < c->n; i++)
		if (c->out[i].n_dims == 1)
			c->out[i].dtype = t;
}

static const void *norm_bytes(struct conversion *c, size_t i)
{
	norm_widen(c, c->from[i]);
	/* One more: there are bytes, too, where there is no value. */
	buf_reset(&c->bytes);
	buf_add(&c->bytes, c->row, (c->from[i]->count + 1) * sizeof(*c->row));
	qwen_kernels_best()->narrow(plain_type(c->out[i].dtype), c->row,
				    c->from[i]->count, c->bytes.data);
	return c->bytes.data;
}

static enum qwen_weights weights_of(enum qwen_dtype t)
{
	return dtype_is_float(t) ?
		       plain_type(t) :
		       (enum qwen_weights)(QWEN_W_INT4 + t - QWEN_BOOL);
}

static void foreign_read(const void *ctx, size_t row, float *x)
{
	qwen_foreign_row(ctx, row, x);
}

static const void *foreign_bytes(struct conversion *c, size_t i,
				 const struct qwen_convert *how, struct err *e)
{
	struct qwen_matrix out = { .type = weights_of(c->out[i].dtype),
				   .rows = (uint32_t)c->out[i].shape[0],
				   .cols = (uint32_t)c->out[i].shape[1] };
	struct qwen_foreign f;

	return qwen_foreign_find(&f, &c->in, &c->config.packing, c->packed[i],
				 out.rows, out.cols, e) &&
			       qwen_matrix_from_rows(how, &out, foreign_read,
						     &f, c->packed[i], e) ?
		       out.data :
		       NULL;
}

static const void *matrix_bytes(struct conversion *c, size_t i, struct err *e)
{
	const struct qwen_tensor *t = c->from[i];
	struct qwen_convert how = { .kernels = qwen_kernels_best(),
				    .threads = c->how->threads,
				    .blocks = &c->blocks };
	struct qwen_matrix from, out;

	const struct qwen_matrix *made =
		qwen_convert_made(c, c->packed[i] ? c->packed[i] : t->name);

	qwen_blocks_fini(&c->blocks);
	if (made && weights_of(c->out[i].dtype) == made->type)
		return made->data;
	if (made)
		from = *made;
	else if (c->packed[i])
		return foreign_bytes(c, i, &how, e);
	else if (!qwen_matrix_make(&from, t, qwen_convert_scale(c, t), &how, e))
		return NULL;
	out = from;
	out.type = weights_of(c->out[i].dtype);
	if (out.type == from.type)
		return t->data;
	return qwen_matrix_convert(&how, &out, &from, t->name, e) ? out.data :
								    NULL;
}

static const void *tensor_bytes(void *ctx, size_t i, struct err *e)
{
	struct conversion *c = ctx;

	if (c->how->stop && *c->how->stop) {
		err_set(e, ERR_STOPPED, "%s is not written", c->how->to);
		return NULL;
	}
	if (c->how->progress)
		progress_step(c->how->progress, 1);
	return c->out[i].n_dims == 1 ? norm_bytes(c, i) : matrix_bytes(c, i, e);
}

/* ---- a file ---- */

/* Matrices of experts as one tensor; free() the result. */
static struct qwen_tensor *tensors_join(const struct conversion *c, size_t *n)
{
	struct qwen_tensor *t = xcalloc(c->n + 1, sizeof(*t));

	*n = 0;
	for (size_t i = 0; i < c->n; (*n)++) {
		struct qwen_tensor *to = &t[*n];
		*to = c->out[i];
		if (!name_has_end(to->name, "_exps.weight")) {
			i++;
			continue;
		}
		to->n_dims = 3;
		to->shape[2] = to->shape[1];
		to->shape[1] = to->shape[0];
		to->shape[0] = c->config.experts.n;
		i += c->config.experts.n;
	}
	return t;
}

static bool file_write(struct conversion *c, struct err *e)
{
	struct qwen_gguf_out o = { 0 };

	size_t n;
	struct qwen_tensor *t = tensors_join(c, &n);
	qwen_gguf_put_config(&o, &c->config);
	qwen_gguf_put_int(&o, "general.quantization_version", 2);
	bool ok = qwen_convert_words_put(c, &o, e) &&
		  qwen_gguf_write(&o, c->how->to, t, n, tensor_bytes, c, e);
	qwen_gguf_out_fini(&o);
	free(t);
	return ok;
}

/* ---- a folder ---- */

/* Of another model that was there, and would be read instead. */
static void others_remove(struct conversion *c)
{
	static const char *const name[] = {
		"model.safetensors.index.json",
		"vocab.json",
		"merges.txt",
		"added_tokens.json",
		"tokenizer.json",
		"tokenizer_config.json",
		"chat_template.jinja",
	};

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		unlink(arena_printf(&c->mem, "%s/%s", c->how->to, name[i]));
}

/* Of the folder or file that is made. */
static const char *weights_path(struct conversion *c)
{
	return c->to_gguf ? c->how->to :
			    arena_printf(&c->mem, "%s/model.safetensors",
					 c->how->to);
}

static bool folder_write(struct conversion *c, struct err *e)
{
	struct buf config = { 0 }, generation = { 0 };

	if (mkdir(c->how->to, 0777) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "%s: cannot be made",
			       c->how->to);
	others_remove(c);
	qwen_config_print(&c->config, &config, &generation);
	bool ok = qwen_convert_text(c, "config.json", &config, e) &&
		  qwen_convert_text(c, "generation_config.json", &generation,
				    e) &&
		  qwen_convert_words_write(c, e) &&
		  qwen_tensors_write(weights_path(c), c->out, c->n,
				     tensor_bytes, c, e);
	buf_fini(&config);
	buf_fini(&generation);
	return ok;
}

/* ---- both ---- */

static bool is_current(struct conversion *c)
{
	struct qwen_tensor *t = xcalloc(c->n + 1, sizeof(*t));

	for (size_t i = 0; i < c->n; i++) {
		t[i] = c->out[i];
		t[i].name = c->packed[i] ? c->packed[i] : c->from[i]->name;
	}
	bool current = qwen_copy_is_current(c->how->from, c->how->to,
					    weights_path(c), t, c->n);
	free(t);
	return current;
}

static bool model_write(struct conversion *c, struct err *e)
{
	if (!c->to_gguf)
		norms_choose(c);
	if (c->how->current) {
		*c->how->current = is_current(c);
		if (*c->how->current)
			return true;
	}
	return c->to_gguf ? file_write(c, e) : folder_write(c, e);
}

static bool ends_check(const struct qwen_conversion *how, struct err *e)
{
	struct stat a, b;

	if (!ends_in_gguf(how->to) && (how->made || !qwen_is_file(how->from)))
		return err_set(e, ERR_USAGE,
			       "%s into %s: wanted a GGUF file "
			       "at one end, INTO ending in .gguf or FROM such "
			       "a file, or one of hipfire's",
			       how->from, how->to);
	if (stat(how->from, &a) == 0 && stat(how->to, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return err_set(e, ERR_USAGE,
			       "%s and %s are the same; wanted "
			       "another one to write",
			       how->from, how->to);
	if (how->typed &&
	    (how->type == QWEN_W_INT8 || how->type == QWEN_W_INT4 ||
	     qwen_is_own(how->type) ||
	     (!ends_in_gguf(how->to) && qwen_is_block(how->type))))
		return err_set(e, ERR_USAGE,
			       "%s for %s: wanted f32, f16 or "
			       "bf16, or for a file one of its blocks, as "
			       "q8_0 (t0-qwen3 quantize makes int8, int4, "
			       "int6_N and int3_N)",
			       qwen_weights_name(how->type), how->to);
	return true;
}

bool qwen_model_convert(const struct qwen_conversion *how, struct err *e)
{
	struct conversion c = { .how = how, .to_gguf = ends_in_gguf(how->to) };

	if (!ends_check(how, e) || !qwen_config_load(&c.config, how->from, e))
		return false;
	if (c.to_gguf && c.config.experts.n && !c.config.experts.normed)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s: \"norm_topk_prob\" is "
			       "false, which GGUF files of mixtures cannot "
			       "say; wanted a folder as INTO, or a mixture "
			       "where it is true",
			       how->from);
	if (!qwen_tensors_open(&c.in, how->from, e))
		return false;
	bool ok = qwen_convert_plan(&c, e);
	if (how->progress)
		how->progress->total = c.n;
	ok = ok && model_write(&c, e);
	qwen_blocks_fini(&c.blocks);
	free(c.out);
	free(c.from);
	free(c.packed);
	free(c.row);
	buf_fini(&c.bytes);
	arena_fini(&c.mem);
	qwen_tensors_close(&c.in);
	return ok;
}
