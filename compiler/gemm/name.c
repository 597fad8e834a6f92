/*
 * compiler/gemm/name.c - operations and configurations as text.
 */
#include "compiler/gemm/gemm_int.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	enum dsl_type type;
	const char *name;
	enum dsl_type weights;
} types[] = {
	{ DSL_BF16, "bf16", 0 },	{ DSL_F16, "f16", 0 },
	{ DSL_F32, "f32", 0 },		{ DSL_I8, "i8", 0 },
	{ DSL_I32, "i32", 0 },		{ DSL_BF16, "bf16w8", DSL_I8 },
	{ DSL_BF16, "bf16w4", DSL_U8 }, { DSL_F16, "f16w8", DSL_I8 },
	{ DSL_F16, "f16w4", DSL_U8 },
};

static const struct {
	uint32_t bit;
	const char *name;
} epilogues[] = {
	{ GEMM_SCALE, "scale" }, { GEMM_BIAS, "bias" },
	{ GEMM_RELU, "relu" },	 { GEMM_SILU, "silu" },
	{ GEMM_GELU, "gelu" },	 { GEMM_SWIGLU, "swiglu" },
	{ GEMM_SHRINK, "shrink" },   { GEMM_RESIDUAL, "residual" },
};

static const char *type_name(enum dsl_type t, enum dsl_type weights)
{
	for (size_t k = 0; k < ARRAY_SIZE(types); k++)
		if (types[k].type == t && types[k].weights == weights)
			return types[k].name;
	return "?";
}

int gemm_op_name(const struct gemm_op *op, char *buf, size_t size)
{
	char more[80] = "";

	if (op->beta)
		strcat(more, "+beta");
	for (size_t k = 0; k < ARRAY_SIZE(epilogues); k++)
		if (op->epilogue & epilogues[k].bit) {
			strcat(more, "+");
			strcat(more, epilogues[k].name);
		}
	return snprintf(buf, size, "%s_%c%c_%s%s",
			type_name(op->in, op->weights),
			op->a_trans ? 't' : 'n', op->b_trans ? 't' : 'n',
			type_name(op->out, DSL_NONE), more);
}

int gemm_config_name(const struct gemm_config *c, char *buf, size_t size)
{
	char split[24] = "";

	if (c->split > 1)
		snprintf(split, sizeof(split), "_split%u", c->split);
	return snprintf(
		buf, size, "%ux%ux%u_w%ux%u_b%u_p%u_u%u_g%u_%s_%s%s%s%s%s",
		c->m, c->n, c->k, c->waves_m, c->waves_n, c->buffers,
		c->prefetch, c->unroll, c->order,
		c->lds == GEMM_LDS_SWIZZLE ? "swz" : "pad",
		c->cu_mode ? "cu" : "wgp", c->b_direct ? "_direct" : "",
		c->stream_k ? "_sk" : "", split, c->even ? "_even" : "");
}

/* --------------------------------------------------------------- parse -- */

/* Is the word at *t this one?  Then *t is behind it. */
static bool accept_word(const char **t, const char *w)
{
	const size_t n = strlen(w);

	if (strncmp(*t, w, n) || ((*t)[n] && !strchr("_+", (*t)[n])))
		return false;
	*t += n;
	return true;
}

static bool type_at(const char **t, enum dsl_type *out, enum dsl_type *weights)
{
	for (size_t k = 0; k < ARRAY_SIZE(types); k++)
		if (accept_word(t, types[k].name)) {
			*out = types[k].type;
			*weights = types[k].weights;
			return true;
		}
	return false;
}

static bool epilogue_at(const char **t, struct gemm_op *op)
{
	if (accept_word(t, "beta")) {
		op->beta = true;
		return true;
	}
	for (size_t k = 0; k < ARRAY_SIZE(epilogues); k++)
		if (accept_word(t, epilogues[k].name)) {
			op->epilogue |= epilogues[k].bit;
			return true;
		}
	return false;
}

static bool is_layout(char c)
{
	return c == 'n' || c == 't';
}

bool gemm_op_parse(const char *text, struct gemm_op *op, struct err *e)
{
	const char *t = text;
	enum dsl_type none = DSL_NONE;
	bool good;

	memset(op, 0, sizeof(*op));
	good = type_at(&t, &op->in, &op->weights) && t[0] == '_' &&
	       is_layout(t[1]) && is_layout(t[2]) && t[3] == '_';
	if (good) {
		op->a_trans = t[1] == 't';
		op->b_trans = t[2] == 't';
		t += 4;
		good = type_at(&t, &op->out, &none) && !none;
	}
	while (good && *t == '+') {
		t++;
		good = epilogue_at(&t, op);
	}
	if (good && !*t)
		return true;
	return err_set(e, ERR_USAGE, "'%s' is no product, at '%s'; wanted e.g. "
		       "bf16_nt_f32+beta+bias+silu", text, t);
}

/* A letter and a number to `most`. */
static bool parse_number(const char **t, const char *before, unsigned long most,
			 unsigned long *out)
{
	const size_t n = strlen(before);
	char *end;

	if (strncmp(*t, before, n) || (*t)[n] < '0' || (*t)[n] > '9')
		return false;
	*out = strtoul(*t + n, &end, 10);
	*t = end;
	return *out <= most;
}

static bool parse_numbers(const char **t, struct gemm_config *c)
{
	unsigned long v[9];
	static const char *const before[] = { "", "x", "x", "_w", "x", "_b",
					      "_p", "_u", "_g" };

	for (size_t k = 0; k < ARRAY_SIZE(v); k++)
		if (!parse_number(t, before[k], k < 3 ? UINT16_MAX : UINT8_MAX,
				  &v[k]))
			return false;
	*c = (struct gemm_config){
		.m = (uint16_t)v[0], .n = (uint16_t)v[1], .k = (uint16_t)v[2],
		.waves_m = (uint8_t)v[3], .waves_n = (uint8_t)v[4],
		.buffers = (uint8_t)v[5], .prefetch = (uint8_t)v[6],
		.unroll = (uint8_t)v[7], .order = (uint8_t)v[8], .split = 1,
	};
	return true;
}

static bool parse_flag(const char **t, struct gemm_config *c)
{
	unsigned long split;

	if (accept_word(t, "pad"))
		c->lds = GEMM_LDS_PAD;
	else if (accept_word(t, "swz"))
		c->lds = GEMM_LDS_SWIZZLE;
	else if (accept_word(t, "cu"))
		c->cu_mode = true;
	else if (accept_word(t, "wgp"))
		c->cu_mode = false;
	else if (accept_word(t, "direct"))
		c->b_direct = true;
	else if (accept_word(t, "sk"))
		c->stream_k = true;
	else if (accept_word(t, "even"))
		c->even = true;
	else if (parse_number(t, "split", UINT16_MAX, &split) && split)
		c->split = (uint32_t)split;
	else
		return false;
	return true;
}

bool gemm_config_parse(const char *text, struct gemm_config *c, struct err *e)
{
	const char *t = text;
	bool good = parse_numbers(&t, c);

	while (good && *t == '_') {
		t++;
		good = parse_flag(&t, c);
	}
	if (good && !*t)
		return true;
	return err_set(e, ERR_USAGE,
		       "'%s' is no configuration, at '%s'; wanted "
		       "e.g. 128x128x32_w2x2_b2_p1_u1_g8_pad_wgp_even",
		       text, t);
}
