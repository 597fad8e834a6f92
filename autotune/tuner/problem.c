/*
 * autotune/tuner/problem.c - problems, as text and as lists.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune.h"
#include "base/vec.h"

/* ---- operations ---- */

static const struct {
	const char *name;
	enum dsl_type type, out; /* default type of C */
	uint32_t bytes;
	enum dsl_type weights; /* of B, if it is of integers */
} types[] = {
	{ "bf16", DSL_BF16, DSL_BF16, 2, DSL_NONE },
	{ "f16", DSL_F16, DSL_F16, 2, DSL_NONE },
	{ "i8", DSL_I8, DSL_I32, 1, DSL_NONE },
	{ "f32", DSL_F32, DSL_F32, 4, DSL_NONE },
	{ "i32", DSL_I32, DSL_I32, 4, DSL_NONE },
	{ "bf16w8", DSL_BF16, DSL_BF16, 2, DSL_I8 },
	{ "bf16w4", DSL_BF16, DSL_BF16, 2, DSL_U8 },
	{ "f16w8", DSL_F16, DSL_F16, 2, DSL_I8 },
	{ "f16w4", DSL_F16, DSL_F16, 2, DSL_U8 },
};

static const struct {
	const char *name;
	uint32_t bit;
} epilogues[] = {
	{ "bias", GEMM_BIAS }, { "scale", GEMM_SCALE },
	{ "relu", GEMM_RELU }, { "silu", GEMM_SILU },
	{ "gelu", GEMM_GELU }, { "swiglu", GEMM_SWIGLU },
	{ "shrink", GEMM_SHRINK }, { "residual", GEMM_RESIDUAL },
};

uint32_t tune_type_bytes(enum dsl_type t)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].type == t)
			return types[i].bytes;
	return 0;
}

double tune_b_bytes(const struct gemm_op *op)
{
	if (!op->weights)
		return tune_type_bytes(op->in);
	return (op->weights == DSL_U8 ? 0.5 : 1) + 2.0 / GEMM_GROUP;
}

/* Of the inputs where `op` is given, else of C: *type. */
static bool type_parse(const char *s, size_t len, struct gemm_op *op,
		       enum dsl_type *type, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == len &&
		    !memcmp(s, types[i].name, len) &&
		    (op || !types[i].weights)) {
			*type = op ? types[i].out : types[i].type;
			if (op) {
				op->in = types[i].type;
				op->weights = types[i].weights;
			}
			return true;
		}
	return err_set(e, ERR_USAGE, "--dtype: no type '%.*s'; wanted "
		       "IN[:OUT] of bf16, f16, i8, f32 (and i32 behind i8; "
		       "IN also bf16w8, bf16w4, f16w8, f16w4)",
		       (int)len, s);
}

static bool layout_parse(const char *s, struct gemm_op *op, struct err *e)
{
	if (strlen(s) != 2 || strspn(s, "nt") != 2)
		return err_set(e, ERR_USAGE, "--layout %s: wanted nn, nt, tn "
			       "or tt (t: A is stored KxM, B is stored NxK)",
			       s);
	op->a_trans = s[0] == 't';
	op->b_trans = s[1] == 't';
	return true;
}

static bool epilogue_parse(const char *s, struct gemm_op *op, struct err *e)
{
	while (*s) {
		size_t len = strcspn(s, ","), i = 0;

		for (; i < ARRAY_SIZE(epilogues); i++)
			if (strlen(epilogues[i].name) == len &&
			    !memcmp(s, epilogues[i].name, len))
				break;
		if (i < ARRAY_SIZE(epilogues))
			op->epilogue |= epilogues[i].bit;
		else if (len == 4 && !memcmp(s, "beta", 4))
			op->beta = true;
		else
			return err_set(e, ERR_USAGE, "--epilogue: no '%.*s'; "
				       "wanted bias, scale, relu, silu, gelu, "
				       "swiglu, shrink, residual, beta",
				       (int)len, s);
		s += len + (s[len] == ',');
	}
	return true;
}

bool tune_op_parse(const char *dtype, const char *layout, const char *epilogue,
		   struct gemm_op *op, struct err *e)
{
	const char *in = dtype ? dtype : "bf16";
	size_t len = strcspn(in, ":");

	*op = (struct gemm_op){ 0 };
	return type_parse(in, len, op, &op->out, e) &&
	       (!in[len] || type_parse(in + len + 1, strlen(in + len + 1),
				       NULL, &op->out, e)) &&
	       layout_parse(layout ? layout : "nn", op, e) &&
	       epilogue_parse(epilogue ? epilogue : "", op, e);
}

/* ---- sizes ---- */

uint64_t tune_columns(const struct tune_problem *p)
{
	return (uint64_t)p->n * (p->op.epilogue & GEMM_SWIGLU ? 2 : 1);
}

struct gemm_shape tune_shape(const struct tune_problem *p)
{
	return (struct gemm_shape){
		.m = p->m, .n = p->n, .k = p->k, .batch = p->batch,
		.lda = p->op.a_trans ? p->m : p->k,
		.ldb = p->op.b_trans ? p->k : tune_columns(p),
		.ldc = p->n,
		.stride_a = (uint64_t)p->m * p->k,
		.stride_b = tune_columns(p) * p->k,
		.stride_c = (uint64_t)p->m * p->n,
	};
}

double tune_flop(const struct tune_problem *p)
{
	return 2.0 * p->m * (double)tune_columns(p) * p->k * p->batch;
}

double tune_bytes_a(const struct tune_problem *p)
{
	return (double)p->m * p->k * p->batch * tune_type_bytes(p->op.in);
}

double tune_bytes_b(const struct tune_problem *p)
{
	return (double)tune_columns(p) * p->k * p->batch *
	       tune_b_bytes(&p->op);
}

static double bytes_c(const struct tune_problem *p)
{
	double c = (p->op.beta ? 2 : 1) +
		   (p->op.epilogue & GEMM_RESIDUAL ? 1 : 0);

	return c * p->m * p->n * p->batch * tune_type_bytes(p->op.out);
}

double tune_bytes(const struct tune_problem *p)
{
	return tune_bytes_a(p) + tune_bytes_b(p) + bytes_c(p);
}

double tune_bytes_warm(const struct tune_problem *p)
{
	return p->caches == TUNE_COLD ? bytes_c(p)
	       : p->caches == TUNE_COLD_B ? tune_bytes_a(p) + bytes_c(p)
	       : tune_bytes(p);
}

static const char *const caches[TUNE_CACHES] = { "warm", "cold-b", "cold" };

const char *tune_caches_name(enum tune_caches c)
{
	return caches[c];
}

bool tune_caches_parse(const char *s, enum tune_caches *c, struct err *e)
{
	for (int i = 0; i < TUNE_CACHES; i++)
		if (!strcmp(s, caches[i])) {
			*c = (enum tune_caches)i;
			return true;
		}
	return err_set(e, ERR_USAGE, "--caches %s: wanted warm, cold-b (B in "
		       "memory) or cold (A and B)", s);
}

/* ---- lists ---- */

void tune_problems_fini(struct tune_problems *l)
{
	free(l->v);
	*l = (struct tune_problems){ 0 };
}

static bool add_problem(struct tune_problems *l, const struct gemm_op *op,
			uint64_t m, uint64_t n, uint64_t k, uint64_t batch,
			enum tune_caches usual, struct err *e)
{
	/* The kernels count in 32 bits, the tuner multiplies in 64. */
	const uint64_t most = 1 << 20;
	const enum tune_caches state = l->caches ? *l->caches : usual;

	if (!m || !n || !k || !batch || m > most || n > most || k > most ||
	    batch > 65535)
		return err_set(e, ERR_USAGE, "a product of %llux%llux%llu, "
			       "%llu at a time: wanted sizes of 1..%llu and "
			       "batches of 1..65535", (unsigned long long)m,
			       (unsigned long long)n, (unsigned long long)k,
			       (unsigned long long)batch,
			       (unsigned long long)most);
	for (size_t i = 0; i < l->n; i++) /* once is enough */
		if (l->v[i].m == m && l->v[i].n == n && l->v[i].k == k &&
		    l->v[i].batch == batch && l->v[i].caches == state &&
		    l->v[i].op.b_trans == op->b_trans &&
		    l->v[i].op.in == op->in && l->v[i].op.out == op->out &&
		    l->v[i].op.weights == op->weights)
			return true;
	vec_push(l, (struct tune_problem){
		.op = *op, .m = (uint32_t)m, .n = (uint32_t)n,
		.k = (uint32_t)k, .batch = (uint32_t)batch, .caches = state,
	});
	return true;
}

/* "a..b" without a step: doubling, which is what sizes of tiles want. */
static bool parse_sizes(const char *s, uint64_t **out, size_t *n, struct err *e)
{
	struct buf b = { 0 };

	for (const char *at = s; *at;) {
		size_t len = strcspn(at, ",");

		buf_add(&b, at, len);
		if (memmem(at, len, "..", 2) && !memchr(at, '+', len) &&
		    !memchr(at, '*', len))
			buf_adds(&b, "*2");
		at += len;
		if (*at)
			buf_addc(&b, *at++);
	}
	bool ok = cli_sweep(b.data ? b.data : "", out, n, e);
	buf_fini(&b);
	return ok || err_wrap(e, "--sizes");
}

bool tune_problems_sizes(struct tune_problems *l, const struct gemm_op *op,
			 const char *text, struct err *e)
{
	uint64_t *v = NULL;
	size_t n = 0;
	bool ok = parse_sizes(text, &v, &n, e);

	for (size_t i = 0; ok && i < n; i++)
		ok = add_problem(l, op, v[i], v[i], v[i], 1, TUNE_WARM, e) ||
		     err_wrap(e, "--sizes %s", text);
	free(v);
	return ok;
}

static bool shape_parse(struct tune_problems *l, const struct gemm_op *op,
			const char *s, size_t len, struct err *e)
{
	uint64_t v[4] = { 0, 0, 0, 1 };
	char word[32];
	size_t at = 0;
	int n = 0;

	for (; n < 4 && at <= len; n++) {
		size_t part = strcspn(s + at, "x,");

		if (part >= sizeof(word))
			break;
		snprintf(word, sizeof(word), "%.*s", (int)part, s + at);
		if (!cli_u64(word, &v[n], NULL))
			break;
		at += part + 1;
	}
	if (n < 3 || at <= len)
		return err_set(e, ERR_USAGE, "--shapes: '%.*s': wanted MxNxK "
			       "or MxNxKxBATCH", (int)len, s);
	return add_problem(l, op, v[0], v[1], v[2], v[3], TUNE_WARM, e) ||
	       err_wrap(e, "--shapes");
}

bool tune_problems_shapes(struct tune_problems *l, const struct gemm_op *op,
			  const char *list, struct err *e)
{
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ",");

		if (!shape_parse(l, op, at, len, e))
			return false;
		at += len + (at[len] == ',');
	}
	return l->n || err_set(e, ERR_USAGE, "--shapes: wanted MxNxK,...");
}

/* ---- models ---- */

static const struct model {
	const char *name;
	uint32_t hidden, heads, kv_heads, ffn;
} models[] = {
#define MODEL(model, hidden, heads, kv_heads, ffn) \
	{ model, hidden, heads, kv_heads, ffn },
#include "autotune/tuner/models.def"
};
static const uint32_t model_rows[] = {
#define ROWS(m) m,
#include "autotune/tuner/models.def"
};

/* All products of a model for m tokens; `op` has the type of the inputs. */
static bool add_products(struct tune_problems *l, const struct gemm_op *op,
			 const struct model *x, uint32_t m, struct err *e)
{
	const uint32_t hidden = x->hidden, heads = x->heads, ffn = x->ffn;
	const uint32_t kv_heads = x->kv_heads;
	const uint32_t shrink = op->weights ? GEMM_SHRINK : 0;
	const uint32_t grow = op->weights ? GEMM_SCALE : 0;
	const struct {
		uint32_t n, k;
		struct gemm_op op;
	} product[] = {
#define PRODUCT(n, k, to, sum, last)                                    \
	{ n, k, { .in = op->in, .out = (to) ? (to) : op->in,            \
		  .weights = op->weights, .b_trans = true, .beta = sum, \
		  .epilogue = last } },
#include "autotune/tuner/models.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(product); i++)
		if (!add_problem(l, &product[i].op, m, product[i].n,
				 product[i].k, 1, TUNE_COLD_B, e))
			return false;
	return true;
}

bool tune_problems_model(struct tune_problems *l, const struct gemm_op *op,
			 const char *model, struct err *e)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		bool good = strcmp(models[i].name, model) == 0;
		for (size_t j = 0; good && j < ARRAY_SIZE(model_rows); j++)
			if (!add_products(l, op, &models[i], model_rows[j], e))
				return false;
		if (good)
			return true;
		buf_printf(&names, "%s%s", i ? ", " : "", models[i].name);
	}
	err_set(e, ERR_USAGE, "--shapes-from %s: no model of that name; there "
		"are %s", model, names.data);
	buf_fini(&names);
	return false;
}

/* ---- classes ---- */

/* No tile, a part of one, whole ones, whole ones and a part. */
static char extent_class(uint64_t size, uint64_t tile)
{
	if (!size)
		return '0';
	if (size < tile)
		return '<';
	return size % tile ? '+' : '=';
}

/* Rounds of the loop after which it is where it began. */
static uint64_t cycle_of(const struct gemm_config *c)
{
	return (uint64_t)(c->unroll ? c->unroll : 1) *
	       (c->buffers ? c->buffers : 1);
}

static uint64_t parts_of(const struct gemm_config *c)
{
	return c->split > 1 && !c->stream_k ? c->split : 1;
}

/* Steps of a part, rounded up; beyond TUNE_STEPS only where the cycle ends. */
static uint64_t steps_class(uint64_t steps, const struct gemm_config *c)
{
	uint64_t cycle = cycle_of(c);

	return steps <= TUNE_STEPS ? steps
		: TUNE_STEPS + 1 + (steps - TUNE_STEPS - 1) % cycle;
}

/* Columns of B that make a tile's columns. */
static uint64_t tile_columns(const struct tune_problem *p,
			     const struct gemm_config *c)
{
	return c->n / (p->op.epilogue & GEMM_SWIGLU ? 2 : 1);
}

void tune_class(const struct tune_problem *p, const struct gemm_config *c,
		char out[TUNE_TEXT])
{
	uint64_t parts = parts_of(c);
	uint64_t steps = ((uint64_t)p->k + c->k - 1) / c->k;

	snprintf(
		out, TUNE_TEXT, "m%c n%c k%c%llu%s%s", extent_class(p->m, c->m),
		extent_class(p->n, tile_columns(p, c)),
		extent_class(p->k, c->k),
		(unsigned long long)steps_class((steps + parts - 1) / parts, c),
		steps % parts ? "/" : "", p->batch > 1 ? " batch" : "");
}

static uint32_t reduce_size(uint64_t size, uint64_t tile)
{
	uint64_t least = 2 * tile + size % tile;

	return (uint32_t)(size < least ? size : least);
}

struct tune_problem tune_reduced(const struct tune_problem *p,
				 const struct gemm_config *c)
{
	struct tune_problem r = *p;
	uint64_t parts = parts_of(c);
	uint64_t steps = ((uint64_t)p->k + c->k - 1) / c->k;
	uint64_t mine = steps_class((steps + parts - 1) / parts, c);
	uint64_t less = mine * parts - (parts - steps % parts) % parts;

	r.m = reduce_size(p->m, c->m);
	r.n = reduce_size(p->n, tile_columns(p, c));
	r.batch = p->batch < 2 ? p->batch : 2;
	if (less < steps) /* the last step keeps its rest */
		r.k = (uint32_t)((less - 1) * c->k + p->k -
				 (steps - 1) * c->k);
	return r;
}
