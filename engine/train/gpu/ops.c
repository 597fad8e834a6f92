/*
 * engine/train/gpu/ops.c - the packets of each operation but products.
 */
#include <math.h>

#include "engine/train/gpu/gpu_int.h"

static const struct kernel_shape f32 = { .type = DSL_F32 };

/* ---- elements ---- */

bool train_put_convert(struct train_gpu *s, uint64_t out, enum dsl_type to,
		       uint64_t x, enum dsl_type from, uint64_t n,
		       struct err *e)
{
	const struct train_launch l = { "convert",
					{ .type = from, .to = to },
					n };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, out);
	arg_va(&a, x);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e);
}

/* out[n] = x[n] of f32, rounded to what products are of. */
static bool put_round(struct train_gpu *s, uint64_t out, uint64_t x, uint64_t n,
		      struct err *e)
{
	const struct train_launch l = { "round_bf16", f32, n };
	struct gpu_args a = { .n = 0 };

	if (s->half == DSL_F16) {
		uint64_t by = train_work_take(s, n * 2);

		return train_put_convert(s, by, DSL_F16, x, DSL_F32, n, e) &&
		       train_put_convert(s, out, DSL_F32, by, DSL_F16, n, e);
	}
	arg_va(&a, out);
	arg_va(&a, x);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e);
}

/* Operand i of f32, where the operation says so. */
static bool round_operand(struct train_gpu *s, const struct train_op *op,
			  unsigned i, struct err *e)
{
	return !op->round || is_narrow(s, op, i) ||
	       put_round(s, operand_at(s, op, i), operand_at(s, op, i),
			 count_elements(operand_of(s, op, i)), e);
}

/* The kernel of f32, or the one whose results are rounded. */
static struct train_launch choose_launch(const struct train_gpu *s, bool narrow,
					 const char *wide, const char *rounded,
					 uint64_t n)
{
	return narrow ?
		       (struct train_launch){ rounded, { .to = s->half }, n } :
		       (struct train_launch){ wide, f32, n };
}

static bool put_rounded(struct train_gpu *s, const struct train_op *op,
			struct err *e)
{
	uint64_t n = count_elements(operand_of(s, op, 1));

	if (is_narrow(s, op, 1))
		return train_put_convert(s, operand_at(s, op, 1), s->half,
					 operand_at(s, op, 0), DSL_F32, n, e);
	return put_round(s, operand_at(s, op, 1), operand_at(s, op, 0), n, e);
}

static bool put_swiglu(struct train_gpu *s, const struct train_op *op,
		       struct err *e)
{
	uint64_t n = count_elements(operand_of(s, op, 2));
	const struct train_launch l = choose_launch(
		s, is_narrow(s, op, 2), "swiglu", "swiglu_narrow", n);
	struct gpu_args a = { .n = 0 };

	arg_operand(&a, s, op, 2);
	arg_operand(&a, s, op, 0);
	arg_operand(&a, s, op, 1);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e) && round_operand(s, op, 2, e);
}

static bool put_swiglu_back(struct train_gpu *s, const struct train_op *op,
			    struct err *e)
{
	static const unsigned order[] = { 3, 4, 1, 2, 0 };
	uint64_t n = count_elements(operand_of(s, op, 3));
	bool narrow = is_narrow(s, op, 3) && is_narrow(s, op, 4);
	const struct train_launch l =
		choose_launch(s, narrow, "swiglu_back", "swiglu_back_narrow", n);
	struct gpu_args a = { .n = 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
		arg_operand(&a, s, op, order[i]);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e) && round_operand(s, op, 3, e) &&
	       round_operand(s, op, 4, e);
}

/* ---- embedding ---- */

static bool put_embed(struct train_gpu *s, const struct train_op *op,
		      struct err *e)
{
	const struct train_value *table = operand_of(s, op, 1);
	const struct train_launch l = {
		"stream_embed",
		{ .weights = table->width == 2 ? s->half : DSL_F32 },
		operand_of(s, op, 2)->rows
	};
	struct gpu_args a = { .n = 0 };

	arg_operand(&a, s, op, 2);
	arg_operand(&a, s, op, 1);
	arg_operand(&a, s, op, 1); /* there are no scales */
	arg_operand(&a, s, op, 0);
	arg_u32(&a, (uint32_t)table->rows);
	arg_u32(&a, (uint32_t)table->cols);
	return train_put_kernel(s, &l, &a, e);
}

static bool put_embed_back(struct train_gpu *s, const struct train_op *op,
			   struct err *e)
{
	const struct train_value *table = operand_of(s, op, 2);
	const struct train_launch l = { "embed_back", f32,
					operand_of(s, op, 1)->rows };
	struct gpu_args a = { .n = 0 };

	arg_operand(&a, s, op, 2);
	arg_operand(&a, s, op, 1);
	arg_operand(&a, s, op, 0);
	arg_u32(&a, (uint32_t)table->rows);
	arg_u32(&a, (uint32_t)table->cols);
	return train_put_kernel(s, &l, &a, e);
}

/* ---- norms ---- */

/* Rows that are normed: of the residual stream a group each, of heads a wave.
 */
struct norm_rows {
	uint32_t n, rows;
	bool heads, narrow; /* narrow: results are bf16 */
};

static bool norm_put(struct train_gpu *s, const struct norm_rows *r,
		     uint64_t out, uint64_t x, uint64_t w, struct err *e)
{
	const struct train_launch l =
		choose_launch(s, r->narrow, r->heads ? "qk_norm" : "rms_norm",
			      "rms_norm_narrow", r->rows);
	struct gpu_args a = { .n = 0 };

	arg_va(&a, out);
	arg_va(&a, x);
	arg_va(&a, w);
	arg_f32(&a, s->g->config.norm_eps);
	arg_u32(&a, r->n);
	if (r->heads)
		arg_u32(&a, r->rows);
	return train_put_kernel(s, &l, &a, e);
}

/* dw is added to; without one it goes to the workspace. */
static bool norm_back_put(struct train_gpu *s, const struct norm_rows *r,
			  const struct train_op *op, const unsigned at[3],
			  uint64_t dx, uint64_t dy, struct err *e)
{
	const struct train_launch l = choose_launch(
		s, r->narrow, r->heads ? "qk_norm_back" : "rms_norm_back",
		"qk_norm_back_narrow", r->rows);
	uint32_t dw = op->v[at[2]];
	struct gpu_args a = { .n = 0 };

	arg_va(&a, dx);
	arg_va(&a, dw != TRAIN_NONE ? value_at(s, dw) :
				      train_work_take(s, r->n * sizeof(float)));
	arg_operand(&a, s, op, at[0]);
	arg_operand(&a, s, op, at[1]);
	arg_va(&a, dy);
	arg_f32(&a, s->g->config.norm_eps);
	arg_u32(&a, r->n);
	if (r->heads)
		arg_u32(&a, r->rows);
	return train_put_kernel(s, &l, &a, e);
}

static struct norm_rows residual_rows(const struct train_value *x)
{
	return (struct norm_rows){ .n = (uint32_t)x->cols,
				   .rows = (uint32_t)x->rows };
}

static bool put_norm(struct train_gpu *s, const struct train_op *op,
		     struct err *e)
{
	struct norm_rows r = residual_rows(operand_of(s, op, 0));

	r.narrow = is_narrow(s, op, 2);
	return norm_put(s, &r, operand_at(s, op, 2), operand_at(s, op, 0),
			operand_at(s, op, 1), e) &&
	       round_operand(s, op, 2, e);
}

static bool put_add(struct train_gpu *s, uint64_t to, uint64_t x, uint64_t n,
		    struct err *e)
{
	const struct train_launch l = { "add", f32, n };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, to);
	arg_va(&a, to);
	arg_va(&a, x);
	arg_u32(&a, (uint32_t)n);
	return train_put_kernel(s, &l, &a, e);
}

static bool put_norm_back(struct train_gpu *s, const struct train_op *op,
			  struct err *e)
{
	static const unsigned at[] = { 1, 2, 5 };
	const struct train_value *x = operand_of(s, op, 1);
	const struct norm_rows r = residual_rows(x);
	uint64_t dx = operand_at(s, op, 4), n = count_elements(x);
	uint64_t to = op->add ? train_work_take(s, n * sizeof(float)) : dx;

	return norm_back_put(s, &r, op, at, to, operand_at(s, op, 0), e) &&
	       (!op->add || put_add(s, dx, to, n, e));
}

/* ---- heads ---- */

static struct norm_rows heads_of(const struct train_gpu *s,
				 const struct train_value *x)
{
	uint32_t n = s->g->config.head_dim;

	return (struct norm_rows){ .n = n,
				   .heads = true,
				   .rows = (uint32_t)(count_elements(x) / n) };
}

/* A turn: out = x turned, by the angles from operand `angles` on. */
struct rope {
	uint64_t out, x;
	unsigned angles; /* the positions, behind which are cosine and sine */
	bool narrow;	 /* out is bf16 */
	float turn;	 /* 1, or -1 for back */
};

static bool put_rope(struct train_gpu *s, const struct train_op *op,
		     const struct rope *t, const struct norm_rows *r,
		     struct err *e)
{
	uint32_t tokens = s->g->rows * s->g->length;
	const struct train_launch l =
		choose_launch(s, t->narrow, "rope", "rope_narrow", r->rows);
	struct gpu_args a = { .n = 0 };

	arg_va(&a, t->out);
	arg_va(&a, t->x);
	arg_operand(&a, s, op, t->angles + 1);
	arg_operand(&a, s, op, t->angles + 2);
	arg_operand(&a, s, op, t->angles);
	arg_u32(&a, r->rows / tokens);
	arg_u32(&a, r->n);
	arg_u32(&a, r->rows);
	arg_f32(&a, t->turn);
	return train_put_kernel(s, &l, &a, e);
}

static bool put_turn(struct train_gpu *s, const struct train_op *op,
		     struct err *e)
{
	const struct train_value *x = operand_of(s, op, 0);
	const struct norm_rows r = heads_of(s, x);
	struct rope t = { .out = operand_at(s, op, 5),
			  .angles = 2,
			  .narrow = is_narrow(s, op, 5),
			  .turn = 1 };

	t.x = t.narrow ? train_work_take(s, count_elements(x) * sizeof(float)) :
			 t.out;
	return norm_put(s, &r, t.x, operand_at(s, op, 0), operand_at(s, op, 1),
			e) &&
	       put_rope(s, op, &t, &r, e);
}

static bool put_turn_back(struct train_gpu *s, const struct train_op *op,
			  struct err *e)
{
	static const unsigned at[] = { 1, 2, 8 };
	const struct train_value *x = operand_of(s, op, 1);
	struct norm_rows r = heads_of(s, x);
	const struct rope t = {
		.out = train_work_take(s, count_elements(x) * sizeof(float)),
		.x = operand_at(s, op, 0),
		.angles = 3,
		.turn = -1,
	};

	r.narrow = is_narrow(s, op, 7);
	return put_rope(s, op, &t, &r, e) &&
	       norm_back_put(s, &r, op, at, operand_at(s, op, 7), t.out, e) &&
	       round_operand(s, op, 7, e);
}

/* ---- attention ---- */

/* In products of 16 bits there are matrix units for it, if heads fill tiles. */
bool train_has_flash(const struct train_gpu *s)
{
	return s->half != DSL_F32 && s->g->config.head_dim % 16 == 0;
}

/* A token of a head per wave, or KERNEL_PACKED_ROWS of them per group. */
static bool attention_put(struct train_gpu *s, const char *const name[2],
			  enum dsl_type type, struct gpu_args *a,
			  uint32_t heads, struct err *e)
{
	const struct qwen_config *c = &s->g->config;
	bool flash = train_has_flash(s);
	uint64_t tokens = (uint64_t)s->g->rows * s->g->length;
	uint64_t rows =
		flash ? (tokens + KERNEL_PACKED_ROWS - 1) / KERNEL_PACKED_ROWS :
			tokens;
	const struct train_launch l = { name[flash],
					{ .type = type, .head = c->head_dim },
					rows * heads };

	arg_u32(a, c->heads);
	arg_u32(a, c->kv_heads);
	arg_u32(a, (uint32_t)tokens);
	arg_f32(a, 1 / sqrt(c->head_dim));
	return train_put_kernel(s, &l, a, e);
}

static bool put_attention(struct train_gpu *s, const struct train_op *op,
			  struct err *e)
{
	static const char *const name[] = { "attn_packed", "flash_packed" };
	static const unsigned order[] = { 4, 5, 0, 1, 2, 3 };
	struct gpu_args a = { .n = 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
		arg_operand(&a, s, op, order[i]);
	return attention_put(s, name, type_of(s, op, 0), &a, s->g->config.heads,
			     e) &&
	       round_operand(s, op, 4, e);
}

static bool put_attention_back(struct train_gpu *s, const struct train_op *op,
			       struct err *e)
{
	static const char *const dq[] = { "attn_packed_dq", "flash_packed_dq" };
	static const char *const dkv[] = { "attn_packed_dkv",
					   "flash_packed_dkv" };
	static const unsigned by_q[] = { 7, 10, 0, 1, 6, 2, 3, 4, 5 };
	static const unsigned by_kv[] = { 8, 9, 10, 0, 6, 2, 3, 4, 5 };
	const struct qwen_config *c = &s->g->config;
	struct gpu_args q = { .n = 0 }, kv = { .n = 0 };

	for (unsigned i = 0; i < ARRAY_SIZE(by_q); i++) {
		arg_operand(&q, s, op, by_q[i]);
		arg_operand(&kv, s, op, by_kv[i]);
	}
	return attention_put(s, dq, type_of(s, op, 0), &q, c->heads, e) &&
	       attention_put(s, dkv, type_of(s, op, 0), &kv, c->kv_heads, e) &&
	       round_operand(s, op, 9, e);
}

/* ---- the table ---- */

static bool refuse_engram(struct train_gpu *s, const struct train_op *op,
			  struct err *e)
{
	(void)s;
	(void)op;
	return err_set(e, ERR_UNSUPPORTED,
		       "a table of runs of words (--engram); wanted --backend "
		       "cpu, which has it");
}

bool train_put_operation(struct train_gpu *s, const struct train_op *op,
			 struct err *e)
{
	static bool (*const put[TRAIN_KINDS])(struct train_gpu * s,
					      const struct train_op *op,
					      struct err *e) = {
		[TRAIN_EMBED] = put_embed,
		[TRAIN_EMBED_BACK] = put_embed_back,
		[TRAIN_ENGRAM] = refuse_engram,
		[TRAIN_ENGRAM_BACK] = refuse_engram,
		[TRAIN_NORM] = put_norm,
		[TRAIN_NORM_BACK] = put_norm_back,
		[TRAIN_TURN] = put_turn,
		[TRAIN_TURN_BACK] = put_turn_back,
		[TRAIN_LINEAR] = train_put_linear,
		[TRAIN_LINEAR_DX] = train_put_linear_dx,
		[TRAIN_LINEAR_DW] = train_put_linear_dw,
		[TRAIN_ATTENTION] = put_attention,
		[TRAIN_ATTENTION_BACK] = put_attention_back,
		[TRAIN_SWIGLU] = put_swiglu,
		[TRAIN_SWIGLU_BACK] = put_swiglu_back,
		[TRAIN_LOSS] = train_put_loss,
		[TRAIN_LOSS_BACK] = train_put_loss_back,
		[TRAIN_ROUND] = put_rounded,
	};

	return put[op->kind](s, op, e);
}
