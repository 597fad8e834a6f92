/*
 * engine/model/convert.c - models between folders and GGUF files.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/model/model.h"
#include "engine/text/text.h"

struct conversion {
	const struct qwen_conversion *how;
	bool to_gguf;
	struct qwen_config config;
	struct qwen_tensors in;
	/* What is written, and of what, in the order of the files. */
	struct qwen_tensor *out;
	const struct qwen_tensor **from;
	const char **packed; /* its name, where it is packed by others */
	size_t n;
	const char *joined; /* what a tensor of experts will be called */
	struct arena mem;
	struct qwen_blocks blocks; /* of the tensor that is written */
	float *row;		   /* of a norm */
	struct buf bytes;
};

static bool ends_in_gguf(const char *path)
{
	size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".gguf") == 0;
}

/* ---- what is written ---- */

static enum qwen_dtype dtype_of(enum qwen_weights w)
{
	static const enum qwen_dtype plain[] = { QWEN_F32, QWEN_F16, QWEN_BF16,
						 QWEN_Q8_0, QWEN_Q4_0 };

	return qwen_is_block(w) ? (enum qwen_dtype)(QWEN_BOOL + w -
						    QWEN_W_INT4) : plain[w];
}

static bool is_float(enum qwen_dtype t)
{
	return t == QWEN_F32 || t == QWEN_F16 || t == QWEN_BF16;
}

/* The next type that fits rows of so many values, where one does not. */
static enum qwen_dtype fitting_type(enum qwen_dtype t, uint64_t cols)
{
	static const struct {
		enum qwen_dtype large, small;
	} near[] = { { QWEN_Q6_K, QWEN_Q8_0 },	  { QWEN_Q5_K, QWEN_Q5_1 },
		     { QWEN_Q4_K, QWEN_Q5_0 },	  { QWEN_IQ4_XS, QWEN_IQ4_NL },
		     { QWEN_Q3_K, QWEN_IQ4_NL }, { QWEN_Q2_K, QWEN_IQ4_NL } };

	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		if (near[i].large == t && cols % qwen_dtype_values(t))
			t = near[i].small;
	return cols % qwen_dtype_values(t) ? QWEN_F16 : t;
}

struct search {
	const char *name;
	const struct qwen_matrix *found;
};

static bool name_compare(void *ctx, const struct qwen_part *p, struct err *e)
{
	struct search *s = ctx;

	(void)e;
	if (p->matrix && strcmp(p->name, s->name) == 0)
		s->found = p->matrix;
	return true;
}

/* What is taken instead of a tensor, or NULL. */
static const struct qwen_matrix *made_find(const struct conversion *c,
					   const char *name)
{
	struct search s = { name, NULL };

	if (c->how->made)
		qwen_model_each((struct qwen_model *)c->how->made,
				name_compare, &s, NULL);
	return s.found;
}

/* A matrix as it is to be: as wanted, or the nearest that loses nothing. */
static enum qwen_dtype matrix_type(const struct conversion *c,
				   const struct qwen_tensor *t, uint64_t cols)
{
	const struct qwen_matrix *made = made_find(c, t->name);

	if (made)
		return dtype_of(made->type);
	if (c->how->typed)
		return fitting_type(dtype_of(c->how->type), cols);
	if (is_float(t->dtype))
		return t->dtype;
	if (!c->to_gguf || t->dtype >= QWEN_I6_32)
		return QWEN_F32;
	return t->dtype == QWEN_I8 ? QWEN_Q8_0 :
	       t->dtype == QWEN_U8 ? QWEN_Q4_0 : t->dtype;
}

static const struct qwen_tensor *scale_of(const struct conversion *c,
					  const struct qwen_tensor *t)
{
	char name[512];

	if (t->dtype != QWEN_I8 && t->dtype != QWEN_U8)
		return NULL;
	snprintf(name, sizeof(name), "%s_scale", t->name);
	return qwen_tensor_find(&c->in, name);
}

static bool has_end(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* There, of a matrix or of all experts' that are beside it; or NULL. */
static const char *gguf_name(struct conversion *c, const char *name)
{
	return c->joined ? c->joined : qwen_gguf_rename(&c->mem, name, true);
}

/* A matrix that FP8, GPTQ or AWQ packed, by the tensor that has its codes. */
static bool foreign_add(struct conversion *c, const struct qwen_tensor *t)
{
	static const char words[] = ".qweight";
	const struct qwen_packing *how = &c->config.packing;
	const bool fp8 = how->kind == QWEN_PACKED_FP8;
	const int stem = (int)(strlen(t->name) - strlen(words));
	struct qwen_tensor *to = &c->out[c->n];

	if (t->n_dims != 2 || (fp8 ? t->dtype != QWEN_F8_E4M3 :
				     !has_end(t->name, words)))
		return false;
	const char *name = fp8 ? t->name : arena_printf(
		&c->mem, "%.*s.weight", stem, t->name);
	const char *gguf = gguf_name(c, name);
	if (!gguf)
		return false;
	*to = (struct qwen_tensor){ .name = name, .n_dims = 2,
				    .shape = { t->shape[0], t->shape[1] } };
	if (how->kind == QWEN_PACKED_GPTQ)
		to->shape[0] *= 32 / how->bits;
	if (how->kind == QWEN_PACKED_AWQ)
		to->shape[1] *= 32 / how->bits;
	if (!fp8) { /* theirs has a row for each column */
		uint64_t cols = to->shape[0];
		to->shape[0] = to->shape[1];
		to->shape[1] = cols;
	}
	c->packed[c->n] = to->name;
	to->name = c->to_gguf ? gguf : name;
	const struct qwen_matrix *made = made_find(c, name);
	to->dtype = made ? dtype_of(made->type) : c->how->typed ?
		fitting_type(dtype_of(c->how->type), to->shape[1]) : QWEN_F32;
	c->from[c->n++] = t;
	return true;
}

/* Is it beside a matrix, and of no use alone? */
static bool is_beside(const struct conversion *c, const struct qwen_tensor *t)
{
	static const char *const end[] = { ".weight_scale", ".weight_scale_inv",
					   ".qzeros", ".scales", ".g_idx" };

	for (size_t i = 0; i < ARRAY_SIZE(end); i++)
		if (has_end(t->name, end[i]))
			return i == 0 || c->config.packing.kind;
	return false;
}

/* Norms become f32 in GGUF files; in folders what the matrices are. */
static bool tensor_add(struct conversion *c, const struct qwen_tensor *t,
		       struct err *e)
{
	struct qwen_tensor *to = &c->out[c->n];
	const char *gguf = gguf_name(c, t->name);

	if (c->config.packing.kind && foreign_add(c, t))
		return true;
	if ((!gguf && c->to_gguf) || t->n_dims < 1 || t->n_dims > 2)
		return err_set(e, ERR_UNSUPPORTED, "%s: tensor %s has no place "
			       "in a Qwen3 model", t->file, t->name);
	if (t->n_dims == 2 && !is_float(t->dtype) && t->dtype <= QWEN_BOOL &&
	    !scale_of(c, t))
		return err_set(e, ERR_INPUT, "%s: tensor %s is %s without a "
			       "tensor %s_scale", t->file, t->name,
			       qwen_dtype_name(t->dtype), t->name);
	if (t->n_dims == 1 && !is_float(t->dtype))
		return err_set(e, ERR_INPUT, "%s: tensor %s is %s; wanted F32, "
			       "F16 or BF16", t->file, t->name,
			       qwen_dtype_name(t->dtype));
	*to = (struct qwen_tensor){ .name = c->to_gguf ? gguf : t->name,
				    .n_dims = t->n_dims,
				    .shape = { t->shape[0], t->shape[1] },
				    .dtype = QWEN_F32 };
	if (t->dtype == QWEN_U8)
		to->shape[1] *= 2;
	/* A router stays f32 in such files: it decides, and is small. */
	if (t->n_dims == 2 && !has_end(to->name, ".ffn_gate_inp.weight"))
		to->dtype = matrix_type(c, t, to->shape[1]);
	c->from[c->n++] = t;
	return true;
}

/* Is it an expert's, one of many in a tensor of the file that is written? */
static bool is_joined(const struct conversion *c, const struct qwen_tensor *t)
{
	unsigned layer, expert;
	int end = 0;

	return c->to_gguf &&
	       sscanf(t->name, "model.layers.%u.mlp.experts.%u.%n", &layer,
		      &expert, &end) == 2 && end &&
	       layer < c->config.layers && expert < c->config.experts.n;
}

/* One expert's matrix, or its codes where others packed it. */
static bool expert_add(struct conversion *c, uint32_t layer, uint32_t expert,
		       int part, struct err *e)
{
	const char *name = qwen_expert_name(&c->mem, layer, expert, part);
	const struct qwen_tensor *t = qwen_tensor_find(
		&c->in, arena_printf(&c->mem, "%s.weight", name));
	const size_t at = c->n;

	if (!t)
		t = qwen_tensor_find(&c->in, arena_printf(&c->mem, "%s.qweight",
							  name));
	if (!t)
		return err_set(e, ERR_INPUT, "%s: tensor %s.weight is missing",
			       c->how->from, name);
	if (!tensor_add(c, t, e))
		return false;
	const struct qwen_tensor *to = &c->out[at], *first = &to[-(int)expert];
	return (to->dtype == first->dtype && to->n_dims == 2 &&
		to->shape[0] == first->shape[0] &&
		to->shape[1] == first->shape[1]) ||
	       err_set(e, ERR_UNSUPPORTED, "%s: tensor %s is not what that of "
		       "expert 0 is, which a GGUF file has beside it; wanted "
		       "the same type (--to makes it one) and size", t->file,
		       t->name);
}

/* All experts, those side by side that a GGUF file has in one tensor. */
static bool experts_add(struct conversion *c, struct err *e)
{
	bool ok = true;

	for (uint32_t l = 0; ok && c->config.experts.n &&
			     l < c->config.layers; l++)
		for (int part = 0; ok && part < QWEN_EXPERT_PARTS; part++) {
			c->joined = qwen_gguf_experts_name(&c->mem, l, part);
			for (uint32_t i = 0; ok && i < c->config.experts.n; i++)
				ok = expert_add(c, l, i, part, e);
		}
	c->joined = NULL;
	return ok;
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct qwen_tensor *x = *(const struct qwen_tensor *const *)a;
	const struct qwen_tensor *y = *(const struct qwen_tensor *const *)b;
	int file = strcmp(x->file, y->file);

	(void)ctx;
	return file ? file : (x->offset > y->offset) - (x->offset < y->offset);
}

static bool tensors_add(struct conversion *c, struct err *e)
{
	const size_t n = c->in.n_tensors;
	const struct qwen_tensor **all = xcalloc(n + 1, sizeof(*all));
	bool ok = true;

	c->out = xcalloc(n + 1, sizeof(*c->out));
	c->from = xcalloc(n + 1, sizeof(*c->from));
	c->packed = xcalloc(n + 1, sizeof(*c->packed));
	for (size_t i = 0; i < n; i++)
		all[i] = &c->in.tensor[i];
	qsort_r(all, n, sizeof(*all), by_place, NULL);
	for (size_t i = 0; ok && i < n; i++)
		/* A tied output layer is the embedding once more. */
		if (!is_beside(c, all[i]) && !is_joined(c, all[i]) &&
		    !(c->config.tied &&
		      strcmp(all[i]->name, "lm_head.weight") == 0))
			ok = tensor_add(c, all[i], e);
	free(all);
	return ok && (!c->to_gguf || experts_add(c, e));
}

/* ---- its bytes ---- */

static enum qwen_weights plain_type(enum qwen_dtype t)
{
	return t == QWEN_F32 ? QWEN_W_F32 :
	       t == QWEN_F16 ? QWEN_W_F16 : QWEN_W_BF16;
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
	return is_float(t) ? plain_type(t) :
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
	       qwen_matrix_from_rows(how, &out, foreign_read, &f,
				     c->packed[i], e) ? out.data : NULL;
}

static const void *matrix_bytes(struct conversion *c, size_t i, struct err *e)
{
	const struct qwen_tensor *t = c->from[i];
	struct qwen_convert how = { .kernels = qwen_kernels_best(),
				    .threads = c->how->threads,
				    .blocks = &c->blocks };
	struct qwen_matrix from, out;

	const struct qwen_matrix *made = made_find(c, c->packed[i] ?
							c->packed[i] : t->name);

	qwen_blocks_fini(&c->blocks);
	if (made && weights_of(c->out[i].dtype) == made->type)
		return made->data;
	if (made)
		from = *made;
	else if (c->packed[i])
		return foreign_bytes(c, i, &how, e);
	else if (!qwen_matrix_make(&from, t, scale_of(c, t), &how, e))
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
	return c->out[i].n_dims == 1 ? norm_bytes(c, i) :
				       matrix_bytes(c, i, e);
}

/* ---- the template of conversations ---- */

static bool template_of_folder(struct conversion *c, const char **out,
			       struct err *e)
{
	const char *dir = c->how->from;
	char *path = arena_printf(&c->mem, "%s/chat_template.jinja", dir);
	struct buf text = { 0 };

	if (access(path, F_OK) == 0) {
		bool ok = file_read(path, 1 << 24, &text, e);
		buf_addc(&text, '\0');
		*out = ok ? arena_strdup(&c->mem, text.data) : NULL;
		buf_fini(&text);
		return ok;
	}
	path = arena_printf(&c->mem, "%s/tokenizer_config.json", dir);
	json_t *j = access(path, F_OK) == 0 ? json_load_file(path, 0, NULL) :
					      NULL;
	const char *s = json_string_value(json_object_get(j, "chat_template"));
	*out = s ? arena_strdup(&c->mem, s) : NULL;
	json_decref(j);
	return true;
}

static char *template_of_file(struct conversion *c, const struct qwen_gguf *g)
{
	const struct qwen_gguf_value *v =
		qwen_gguf_find(g, "tokenizer.chat_template");
	const uint8_t *at = NULL;
	const char *s;
	size_t len;

	if (!v || v->array || !qwen_gguf_text(v, &at, &s, &len))
		return NULL;
	return arena_printf(&c->mem, "%.*s", (int)len, s);
}

/* ---- a file ---- */

static bool words_put(struct conversion *c, struct qwen_gguf_out *o,
		      struct err *e)
{
	const char *from = c->how->from, *text = NULL;
	struct qwen_gguf g;

	if (!qwen_tokenizer_there(from)) { /* others must be told so */
		qwen_gguf_put_text(o, "tokenizer.ggml.model", "no_vocab");
		qwen_gguf_put_int(o, arena_printf(&c->mem, "%s.vocab_size",
						  qwen_gguf_kind(&c->config)),
				  c->config.vocab);
		return true;
	}
	struct qwen_tokenizer *t = qwen_tokenizer_load(from, e);
	if (!t)
		return false;
	qwen_gguf_put_tokenizer(o, t, c->config.vocab);
	qwen_tokenizer_free(t);
	if (!qwen_is_gguf(from)) {
		if (!template_of_folder(c, &text, e))
			return false;
	} else if (qwen_gguf_open(&g, from, e)) {
		text = template_of_file(c, &g);
		qwen_gguf_close(&g);
	} else {
		return false;
	}
	if (text)
		qwen_gguf_put_text(o, "tokenizer.chat_template", text);
	return true;
}

/* Matrices of experts as one tensor; free() the result. */
static struct qwen_tensor *tensors_join(const struct conversion *c, size_t *n)
{
	struct qwen_tensor *t = xcalloc(c->n + 1, sizeof(*t));

	*n = 0;
	for (size_t i = 0; i < c->n; (*n)++) {
		struct qwen_tensor *to = &t[*n];
		*to = c->out[i];
		if (!has_end(to->name, "_exps.weight")) {
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
	bool ok = words_put(c, &o, e) &&
		  qwen_gguf_write(&o, c->how->to, t, n, tensor_bytes, c, e);
	qwen_gguf_out_fini(&o);
	free(t);
	return ok;
}

/* ---- a folder ---- */

static bool text_write(struct conversion *c, const char *name,
		       const struct buf *text, struct err *e)
{
	return file_write_atomic(arena_printf(&c->mem, "%s/%s", c->how->to,
					      name), text->data, text->len, e);
}

static bool words_write(struct conversion *c, struct err *e)
{
	struct buf text = { 0 };
	struct qwen_gguf g;
	char *talk = NULL;
	bool ok = true;

	if (!qwen_gguf_open(&g, c->how->from, e))
		return false;
	if (qwen_gguf_find(&g, "tokenizer.ggml.tokens"))
		ok = qwen_gguf_tokenizer(&g, &text, e) &&
		     text_write(c, "tokenizer.json", &text, e);
	talk = ok ? template_of_file(c, &g) : NULL;
	buf_fini(&text);
	if (talk) {
		json_t *j = json_pack("{s:s}", "chat_template", talk);
		char *s = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
		ok = s || err_set(e, ERR_INPUT, "tokenizer.chat_template is "
				  "not UTF-8");
		if (s)
			buf_adds(&text, s);
		ok = ok && text_write(c, "tokenizer_config.json", &text, e);
		free(s);
		json_decref(j);
	}
	buf_fini(&text);
	qwen_gguf_close(&g);
	return ok;
}

/* Of another model that was there, and would be read instead. */
static void others_remove(struct conversion *c)
{
	static const char *const name[] = {
		"model.safetensors.index.json", "vocab.json", "merges.txt",
		"added_tokens.json", "tokenizer.json", "tokenizer_config.json",
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
	bool ok = text_write(c, "config.json", &config, e) &&
		  text_write(c, "generation_config.json", &generation, e) &&
		  words_write(c, e) &&
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

	if (!ends_in_gguf(how->to) && (how->made || !qwen_is_gguf(how->from)))
		return err_set(e, ERR_USAGE, "%s into %s: wanted a GGUF file "
			       "at one end, INTO ending in .gguf or FROM such "
			       "a file", how->from, how->to);
	if (stat(how->from, &a) == 0 && stat(how->to, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return err_set(e, ERR_USAGE, "%s and %s are the same; wanted "
			       "another one to write", how->from, how->to);
	if (how->typed && (how->type == QWEN_W_INT8 ||
			   how->type == QWEN_W_INT4 ||
			   qwen_is_own(how->type) ||
			   (!ends_in_gguf(how->to) &&
			    qwen_is_block(how->type))))
		return err_set(e, ERR_USAGE, "%s for %s: wanted f32, f16 or "
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
		return err_set(e, ERR_UNSUPPORTED, "%s: \"norm_topk_prob\" is "
			       "false, which GGUF files of mixtures cannot "
			       "say; wanted a folder as INTO, or a mixture "
			       "where it is true", how->from);
	if (!qwen_tensors_open(&c.in, how->from, e))
		return false;
	bool ok = tensors_add(&c, e);
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
