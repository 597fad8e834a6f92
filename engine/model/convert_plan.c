/*
 * engine/model/convert_plan.c - which tensors a conversion writes, of which
 * types, and of what.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/convert_int.h"

static enum qwen_dtype dtype_of(enum qwen_weights w)
{
	static const enum qwen_dtype plain[] = { QWEN_F32, QWEN_F16, QWEN_BF16,
						 QWEN_Q8_0, QWEN_Q4_0 };

	return qwen_is_block(w) ?
		       (enum qwen_dtype)(QWEN_BOOL + w - QWEN_W_INT4) :
		       plain[w];
}

/* The next type that fits rows of so many values, where one does not. */
static enum qwen_dtype fitting_type(enum qwen_dtype t, uint64_t cols)
{
	static const struct {
		enum qwen_dtype large, small;
	} near[] = { { QWEN_Q6_K, QWEN_Q8_0 },	 { QWEN_Q5_K, QWEN_Q5_1 },
		     { QWEN_Q4_K, QWEN_Q5_0 },	 { QWEN_IQ4_XS, QWEN_IQ4_NL },
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

const struct qwen_matrix *qwen_convert_made(const struct conversion *c,
					    const char *name)
{
	struct search s = { name, NULL };

	if (c->how->made)
		qwen_model_each((struct qwen_model *)c->how->made, name_compare,
				&s, NULL);
	return s.found;
}

/* A matrix as it is to be: as wanted, or the nearest that loses nothing. */
static enum qwen_dtype matrix_type(const struct conversion *c,
				   const struct qwen_tensor *t, uint64_t cols)
{
	const struct qwen_matrix *made = qwen_convert_made(c, t->name);

	if (made)
		return dtype_of(made->type);
	if (c->how->typed)
		return fitting_type(dtype_of(c->how->type), cols);
	if (dtype_is_float(t->dtype))
		return t->dtype;
	if (!c->to_gguf || t->dtype >= QWEN_I6_32)
		return QWEN_F32;
	return t->dtype == QWEN_I8 ? QWEN_Q8_0 :
	       t->dtype == QWEN_U8 ? QWEN_Q4_0 :
				     t->dtype;
}

const struct qwen_tensor *qwen_convert_scale(const struct conversion *c,
					     const struct qwen_tensor *t)
{
	char name[512];

	if (t->dtype != QWEN_I8 && t->dtype != QWEN_U8)
		return NULL;
	snprintf(name, sizeof(name), "%s_scale", t->name);
	return qwen_tensor_find(&c->in, name);
}

/* There, of a matrix or of all experts' that are beside it; or NULL. */
static const char *gguf_name(struct conversion *c, const char *name)
{
	return c->joined ? c->joined : qwen_gguf_rename(&c->mem, name, true);
}

/* A matrix that others packed, by the tensor that has its codes. */
static bool foreign_add(struct conversion *c, const struct qwen_tensor *t)
{
	static const char end[] = ".qweight";
	const struct qwen_packing *how = &c->config.packing;
	const bool fp8 = how->kind == QWEN_PACKED_FP8;
	const bool hfq = how->kind == QWEN_PACKED_HFQ;
	const bool words = !fp8 && !hfq;
	const int stem = (int)(strlen(t->name) - strlen(end));
	struct qwen_tensor *to = &c->out[c->n];

	if (t->n_dims != 2 || (fp8 ? t->dtype != QWEN_F8_E4M3 :
			       hfq ? !qwen_dtype_is_packed(t->dtype) :
				     !name_has_end(t->name, end)))
		return false;
	const char *name =
		words ? arena_printf(&c->mem, "%.*s.weight", stem, t->name) :
			t->name;
	const char *gguf = gguf_name(c, name);
	if (!gguf)
		return false;
	*to = (struct qwen_tensor){ .name = name,
				    .n_dims = 2,
				    .shape = { t->shape[0], t->shape[1] } };
	if (how->kind == QWEN_PACKED_GPTQ)
		to->shape[0] *= 32 / how->bits;
	if (how->kind == QWEN_PACKED_AWQ)
		to->shape[1] *= 32 / how->bits;
	if (words) { /* theirs has a row for each column */
		uint64_t cols = to->shape[0];
		to->shape[0] = to->shape[1];
		to->shape[1] = cols;
	}
	c->packed[c->n] = to->name;
	to->name = c->to_gguf ? gguf : name;
	const struct qwen_matrix *made = qwen_convert_made(c, name);
	to->dtype = made ? dtype_of(made->type) :
		    c->how->typed ?
			   fitting_type(dtype_of(c->how->type), to->shape[1]) :
			   QWEN_F32;
	c->from[c->n++] = t;
	return true;
}

/* Is it beside a matrix, and of no use alone? */
static bool is_beside(const struct conversion *c, const struct qwen_tensor *t)
{
	static const char *const end[] = { ".weight_scale", ".weight_scale_inv",
					   ".qzeros", ".scales", ".g_idx" };

	for (size_t i = 0; i < ARRAY_SIZE(end); i++)
		if (name_has_end(t->name, end[i]))
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
		return err_set(e, ERR_UNSUPPORTED,
			       "%s: tensor %s has no place "
			       "in a Qwen3 model",
			       t->file, t->name);
	if (t->n_dims == 2 && !dtype_is_float(t->dtype) &&
	    t->dtype <= QWEN_BOOL && !qwen_convert_scale(c, t))
		return err_set(e, ERR_INPUT,
			       "%s: tensor %s is %s without a "
			       "tensor %s_scale",
			       t->file, t->name, qwen_dtype_name(t->dtype),
			       t->name);
	if (t->n_dims == 1 && !dtype_is_float(t->dtype))
		return err_set(e, ERR_INPUT,
			       "%s: tensor %s is %s; wanted F32, "
			       "F16 or BF16",
			       t->file, t->name, qwen_dtype_name(t->dtype));
	*to = (struct qwen_tensor){ .name = c->to_gguf ? gguf : t->name,
				    .n_dims = t->n_dims,
				    .shape = { t->shape[0], t->shape[1] },
				    .dtype = QWEN_F32 };
	if (t->dtype == QWEN_U8)
		to->shape[1] *= 2;
	/* A router stays f32 in such files: it decides, and is small. */
	if (t->n_dims == 2 && !name_has_end(to->name, ".ffn_gate_inp.weight"))
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
		      &expert, &end) == 2 &&
	       end && layer < c->config.layers && expert < c->config.experts.n;
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
		t = qwen_tensor_find(&c->in,
				     arena_printf(&c->mem, "%s.qweight", name));
	if (!t)
		return err_set(e, ERR_INPUT, "%s: tensor %s.weight is missing",
			       c->how->from, name);
	if (!tensor_add(c, t, e))
		return false;
	const struct qwen_tensor *to = &c->out[at], *first = &to[-(int)expert];
	return (to->dtype == first->dtype && to->n_dims == 2 &&
		to->shape[0] == first->shape[0] &&
		to->shape[1] == first->shape[1]) ||
	       err_set(e, ERR_UNSUPPORTED,
		       "%s: tensor %s is not what that of "
		       "expert 0 is, which a GGUF file has beside it; wanted "
		       "the same type (--to makes it one) and size",
		       t->file, t->name);
}

/* All experts, those side by side that a GGUF file has in one tensor. */
static bool experts_add(struct conversion *c, struct err *e)
{
	bool ok = true;

	for (uint32_t l = 0; ok && c->config.experts.n && l < c->config.layers;
	     l++)
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

bool qwen_convert_plan(struct conversion *c, struct err *e)
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
