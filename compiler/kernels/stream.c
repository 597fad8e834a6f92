/*
 * compiler/kernels/stream.c - the products of decoding.
 *
 * Weights stream past a few activations.  What precedes and follows the product
 * in a Qwen3 layer is fused with it, so that a layer is five packets.
 *
 * Weights are W [rows][n], a row per output, of any type of kernel_shape
 * (weights): floats, I8, or U8 for two of 4 bits; the integers have a scale of
 * f16 for each 32 columns, [rows][n / 32], and 4-bit ones lie as gemv_int4 has
 * them.  For floats `scale` is not read.  n is a multiple of 32.  Activations
 * are f32.  Grid dimension 1 counts tokens, shape.tokens at a time: these share
 * the weights, which are read once for them.
 *
 * U32 and I16 stand for codes of 6 and 3 bits, 32 or 4 added, with a scale for
 * shape.span columns.  Those of 32 columns lie together, in 24 and 12 bytes: of 6
 * bits the low 4 as those of 4 bits are, then the 2 high ones, of columns i,
 * i + 8, i + 16 and i + 24 in byte i of 8, from the lowest on; of 3 bits the low
 * 2 so, then the high one of column i in bit i of 4 bytes.
 *
 * Each wave makes KERNEL_STREAM_ROWS rows in one go, for more loads under way;
 * stream_add, which has few rows, half as many, so that WGPs get equal shares.
 * RMSNorm costs no pass of its own: sum w x g / rms(x) needs the squares of x,
 * and x is here anyway.
 */
#include "compiler/kernels/stream_int.h"

#define ROWS KERNEL_STREAM_ROWS
#define HALF (ROWS / 2)
#define TOKENS KERNEL_MAX_TOKENS
#define QUANT_GROUP 32

/*
 * Columns of one lane in one step: one or two runs of `run` from `at` on, and
 * the input of each token there.  Integers are multiplied with an offset that
 * makes them positive, as bytes become floats in one instruction; `less` takes
 * it off.
 */
struct columns {
	struct val at[2], group, half; /* group: of 32; half: 0 or 8 of 16 */
	uint32_t runs, run;
	struct piece {
		struct val x[2], less;
	} of[TOKENS];
};

/* Codes of 6 or 3 bits. */
static bool is_own(enum dsl_type t)
{
	return t == DSL_U32 || t == DSL_I16;
}

/* Bytes of 32 columns of them. */
static uint32_t own_bytes(enum dsl_type t)
{
	return t == DSL_U32 ? 24 : 12;
}

/* Does a lane take columns of both halves of a group? */
static bool is_halved(enum dsl_type t)
{
	return t == DSL_U8 || is_own(t);
}

struct stream stream_args(struct dsl *k, const struct kernel_shape *shape)
{
	const enum dsl_type t = shape->weights;
	struct stream s = { .type = t, .rows = ROWS };

	s.w = ALIGNED(ARG_PTR(k, is_own(t) ? DSL_U8 : t, "w", DSL_READONLY),
		      t == DSL_I16 ? 4 : 8);
	s.scale = ARG_PTR(k, DSL_F16, "scale", DSL_READONLY);
	s.step = t == DSL_F32 ? 4 : is_halved(t) ? 16 : 8;
	while (1u << s.span < shape->span)
		s.span++;
	return s;
}

static bool is_integer(const struct stream *s)
{
	return s->type == DSL_I8 || is_halved(s->type);
}

/* What codes are more than their numbers. */
static double zero_of(enum dsl_type t)
{
	return t == DSL_U8 ? 8 : t == DSL_U32 ? 32 : t == DSL_I16 ? 4 : 128;
}

/* The scale of a group of 32 columns. */
static struct val stream_scale(const struct stream *row, struct val group)
{
	return CAST(DSL_F32,
		    LOAD(row->scale, row->span > 5 ? SHR(group, row->span - 5) :
						     group));
}

static struct columns stream_columns(const struct stream *s, struct val step)
{
	struct columns c = { .runs = 1, .run = s->step };

	if (is_halved(s->type)) {
		c.half = MUL(AND(step, 1), 8);
		c.runs = 2;
		c.run = 8;
		c.group = SHR(step, 1);
		c.at[0] = ADD(SHL(c.group, 5), c.half);
		c.at[1] = ADD(c.at[0], QUANT_GROUP / 2);
		return c;
	}
	c.at[0] = MUL(step, s->step);
	if (s->type == DSL_I8)
		c.group = SHR(c.at[0], 5);
	return c;
}

/* Row r of the matrix. */
static struct stream stream_row(const struct stream *s, struct val r)
{
	struct stream row = *s;

	row.w = row_of(s->w, r,
		       is_own(s->type) ?
			       MUL(SHR(s->n, 5), own_bytes(s->type)) :
		       s->type == DSL_U8 ? SHR(s->n, 1) : s->n);
	if (is_integer(s))
		row.scale = row_of(s->scale, r, SHR(s->n, s->span));
	return row;
}

/* -offset times the sum of x. */
static struct val columns_less(const struct stream *s, const struct columns *c,
			       const struct piece *p)
{
	struct val sum = ELEM(p->x[0], 0);

	for (uint32_t j = 0; j < c->runs; j++)
		for (uint32_t i = !j; i < c->run; i++)
			sum = ADD(sum, ELEM(p->x[j], i));
	return MUL(sum, -zero_of(s->type));
}

/*
 * A lane's integers of a step, as they lie: bytes, or of 6 bits the low 4 and
 * the rest, of 3 the high one of each in bits and the rest.
 */
struct raw {
	struct val word[2], pairs[2], bits;
};

static struct val words_load(struct val p, struct val at)
{
	return BITS(DSL_U32, LOADV(p, at, 8));
}

static struct raw stream_load(const struct stream *row, const struct columns *c,
			      struct val step)
{
	const bool six = row->type == DSL_U32;
	struct raw r = { 0 };
	struct val at, v;

	if (!is_own(row->type)) {
		v = words_load(row->w, MUL(step, 8));
		r.word[0] = ELEM(v, 0);
		r.word[1] = ELEM(v, 1);
		return r;
	}
	at = MUL(c->group, own_bytes(row->type));
	if (six) {
		v = words_load(row->w, ADD(at, c->half));
		r.word[0] = ELEM(v, 0);
		r.word[1] = ELEM(v, 1);
	} else {
		v = BITS(DSL_U32, LOADV(row->w, ADD(at, 8), 4));
		r.bits = SHR(ELEM(v, 0), CAST(DSL_U32, c->half));
	}
	v = words_load(row->w, six ? ADD(at, 16) : at);
	for (uint32_t i = 0; i < 2; i++)
		r.pairs[i] = SHR(ELEM(v, i), CAST(DSL_U32, SHR(c->half, 2)));
	return r;
}

/* Four bits, one in each byte. */
static struct val bits_spread(struct val x)
{
	x = AND(OR(x, SHL(x, 14)), 0x00030003);
	return AND(OR(x, SHL(x, 7)), 0x01010101);
}

/* Four bytes of run j, from column 4 i on. */
static struct val codes_of(const struct stream *row, const struct raw *r,
			   uint32_t j, uint32_t i)
{
	struct val low, pairs;

	if (row->type == DSL_I8)
		return XOR(r->word[i], 0x80808080);
	if (row->type == DSL_U8)
		return AND(SHR(r->word[i], 4 * j), 0x0f0f0f0f);
	pairs = AND(SHR(r->pairs[i], 4 * j), 0x03030303);
	if (row->type == DSL_U32) {
		low = AND(SHR(r->word[i], 4 * j), 0x0f0f0f0f);
		return OR(low, SHL(pairs, 4));
	}
	low = AND(SHR(r->bits, 16 * j + 4 * i), 15);
	return OR(pairs, SHL(bits_spread(low), 2));
}

/* Run j of eight integers, what makes them positive added. */
static struct val stream_integers(const struct stream *row, const struct raw *r,
				  uint32_t j)
{
	struct val e[8];

	for (uint32_t i = 0; i < 8; i++)
		e[i] = CAST(DSL_F32, AND(SHR(codes_of(row, r, j, i / 4),
					     i % 4 * 8), 255));
	return dsl_join(DSL_AT, e, 8);
}

/* sum[tokens] += the products of one step of a row with each input. */
static void stream_dot(const struct stream *row, const struct columns *c,
		       struct val step, struct var *sum, uint32_t tokens)
{
	struct val w[2], scale;
	struct raw raw;

	if (is_integer(row)) {
		raw = stream_load(row, c, step);
		scale = stream_scale(row, c->group);
	} else {
		w[0] = CAST(DSL_F32, LOADV(row->w, c->at[0], c->run));
	}
	for (uint32_t j = 0; is_integer(row) && j < c->runs; j++)
		w[j] = stream_integers(row, &raw, j);
	for (uint32_t t = 0; t < tokens; t++) {
		const struct piece *p = &c->of[t];
		struct val part = is_integer(row) ? p->less : GET(sum[t]);

		for (uint32_t j = 0; j < c->runs; j++)
			for (uint32_t i = 0; i < c->run; i++)
				part = FMA(ELEM(w[j], i), ELEM(p->x[j], i),
					   part);
		SET(sum[t], is_integer(row) ? FMA(scale, part, GET(sum[t])) :
					      part);
	}
}

/* Inputs of a step; what norms need is added up. */
static void input_step(const struct stream *s, const struct stream_input *in,
		       struct columns *c, struct var *squares)
{
	struct val gain[2];

	for (uint32_t j = 0; in->norm && j < c->runs; j++)
		gain[j] = LOADV(in->gain, c->at[j], c->run);
	for (uint32_t t = 0; t < in->tokens; t++) {
		struct piece *p = &c->of[t];

		for (uint32_t j = 0; j < c->runs; j++) {
			struct val x = LOADV(in->x[t], c->at[j], c->run);

			for (uint32_t e = 0; in->norm && e < c->run; e++)
				SET(squares[t], FMA(ELEM(x, e), ELEM(x, e),
						    GET(squares[t])));
			p->x[j] = in->norm ? MUL(x, gain[j]) : x;
		}
		if (is_integer(s))
			p->less = columns_less(s, c, p);
	}
}

void stream_rows(struct dsl *k, const struct stream *s,
		 const struct stream_input *in, const struct val *r,
		 struct val out[TOKENS][ROWS])
{
	struct stream row[ROWS];
	struct var sum[ROWS][TOKENS], squares[TOKENS];
	struct val steps = DIV(s->n, s->step);

	for (uint32_t t = 0; t < in->tokens; t++)
		squares[t] = VAR(k, DSL_F32, 0);
	for (uint32_t j = 0; j < s->rows; j++) {
		row[j] = stream_row(s, r[j]);
		for (uint32_t t = 0; t < in->tokens; t++)
			sum[j][t] = VAR(k, DSL_F32, 0);
	}
	FOR(k, i, LANE(k), steps, 32) {
		struct columns c = stream_columns(s, i);

		input_step(s, in, &c, squares);
		for (uint32_t j = 0; j < s->rows; j++)
			stream_dot(&row[j], &c, i, sum[j], in->tokens);
	}
	for (uint32_t t = 0; t < in->tokens; t++) {
		struct val rms = CONST(k, DSL_F32, 1);

		if (in->norm)
			rms = RSQRT(ADD(DIV(WAVE_SUM(GET(squares[t])),
					    CAST(DSL_F32, s->n)), in->eps));
		for (uint32_t j = 0; j < s->rows; j++)
			out[t][j] = MUL(WAVE_SUM(GET(sum[j][t])), rms);
	}
}

struct stream_input stream_input_args(struct dsl *k, bool norm, uint32_t tokens)
{
	struct stream_input in = { .norm = norm, .tokens = tokens };

	in.x[0] = ALIGNED(ARG_PTR(k, DSL_F32, "x", DSL_READONLY), 16);
	if (norm) {
		in.gain = ALIGNED(ARG_PTR(k, DSL_F32, "gain", DSL_READONLY),
				  16);
		in.eps = ARG(k, DSL_F32, "eps");
	}
	return in;
}

void stream_input_rows(struct stream_input *in, const struct val *at,
		       struct val n)
{
	const struct val x = in->x[0];

	for (uint32_t t = 0; t < in->tokens; t++)
		in->x[t] = row_of(x, at[t], n);
}

void stream_store(struct dsl *k, struct val y, struct val first,
		  struct val rows, const struct val *out, uint32_t n)
{
	IF(k, EQ(LANE(k), 0)) {
		for (uint32_t j = 0; j < n; j++)
			STORE_IF(LT(ADD(first, j), rows), y, ADD(first, j),
				 out[j]);
	}
}

/* What the products of rows have in common. */
struct job {
	struct val y[TOKENS], rows, first; /* the wave's; not cut */
	struct stream w;
	struct stream_input in;
	struct val r[ROWS], out[TOKENS][ROWS];
};

/* The group's token number t. */
static struct val token_of(struct dsl *k, uint32_t tokens, uint32_t t)
{
	return ADD(MUL(GROUP_ID(k, 1), tokens), t);
}

/*
 * Arguments y, w, scale, x[, gain, eps][, pick], rows, n, and the `each` rows
 * of this wave, none beyond the last.
 */
static void job_begin(struct job *j, struct dsl *k,
		      const struct kernel_shape *s, bool norm, bool picks,
		      uint32_t each)
{
	struct val pick = { 0 }, at[TOKENS];
	struct val y = ARG_PTR(k, DSL_F32, "y", DSL_NOALIAS);
	j->w = stream_args(k, s);
	j->in = stream_input_args(k, norm, s->tokens);
	if (picks)
		pick = ARG_PTR(k, DSL_I32, "pick", DSL_READONLY);
	j->rows = ARG(k, DSL_I32, "rows");
	j->w.n = ARG(k, DSL_I32, "n");
	j->first = MUL(wave_row(k, s), each);
	for (uint32_t i = 0; i < each; i++)
		j->r[i] = MIN(ADD(j->first, i), SUB(j->rows, 1));
	for (uint32_t t = 0; t < s->tokens; t++) {
		at[t] = token_of(k, s->tokens, t);
		j->y[t] = row_of(y, at[t], j->rows);
		if (picks)
			at[t] = LOAD(pick, at[t]);
	}
	stream_input_rows(&j->in, at, j->w.n);
}

/*
 * Arguments: y [tokens][rows] (f32, added to), w, scale, x [tokens][n], rows, n
 * (i32).
 */
void build_stream_add(struct dsl *k, const struct kernel_shape *s)
{
	struct val before[TOKENS][HALF];
	struct job j;

	job_begin(&j, k, s, false, false, HALF);
	j.w.rows = HALF;
	IF(k, LT(j.first, j.rows)) {
		/* Under way while the weights are. */
		for (uint32_t t = 0; t < j.in.tokens; t++)
			for (uint32_t i = 0; i < HALF; i++)
				before[t][i] = LOAD(j.y[t], j.r[i]);
		stream_rows(k, &j.w, &j.in, j.r, j.out);
		for (uint32_t t = 0; t < j.in.tokens; t++) {
			for (uint32_t i = 0; i < HALF; i++)
				j.out[t][i] = ADD(before[t][i], j.out[t][i]);
			stream_store(k, j.y[t], j.first, j.rows, j.out[t], HALF);
		}
	}
}

/*
 * Arguments: y [picked][rows] (f32), w, scale, x [tokens][n], gain [n], eps,
 * pick [picked] (i32: which token), rows, n (i32).  y = W norm(x).
 */
void build_stream_norm(struct dsl *k, const struct kernel_shape *s)
{
	struct job j;

	job_begin(&j, k, s, true, true, ROWS);
	IF(k, LT(j.first, j.rows)) {
		stream_rows(k, &j.w, &j.in, j.r, j.out);
		for (uint32_t t = 0; t < j.in.tokens; t++)
			stream_store(k, j.y[t], j.first, j.rows, j.out[t], ROWS);
	}
}

/*
 * Arguments: y [tokens][rows] (f32), w [2 rows][n] (gate, then up), scale,
 * x [tokens][n], gain [n], eps, rows, n (i32).  y = silu(gate) up of norm(x).
 */
void build_stream_swiglu(struct dsl *k, const struct kernel_shape *s)
{
	struct job j;

	job_begin(&j, k, s, true, false, HALF);
	for (uint32_t i = 0; i < HALF; i++)
		j.r[HALF + i] = ADD(j.r[i], j.rows);
	IF(k, LT(j.first, j.rows)) {
		stream_rows(k, &j.w, &j.in, j.r, j.out);
		for (uint32_t t = 0; t < j.in.tokens; t++) {
			struct val *out = j.out[t];

			for (uint32_t i = 0; i < HALF; i++)
				out[i] = MUL(SILU(out[i]), out[HALF + i]);
			stream_store(k, j.y[t], j.first, j.rows, out, HALF);
		}
	}
}

/* One head of each token, in LDS, before its norm and turn. */
static struct val head_product(struct dsl *k, const struct stream *w,
			       const struct stream_input *in, struct val head,
			       struct val d, uint32_t group)
{
	struct val lds = LDS(k, DSL_F32, KERNEL_MAX_HEAD * in->tokens, "head");
	struct val top = MUL(head, d);

	FOR(k, r0, MUL(WAVE(k), ROWS), d, group / 32 * ROWS) {
		struct val r[ROWS], out[TOKENS][ROWS];

		for (uint32_t j = 0; j < ROWS; j++)
			r[j] = ADD(top, MIN(ADD(r0, j), SUB(d, 1)));
		stream_rows(k, w, in, r, out);
		for (uint32_t t = 0; t < in->tokens; t++)
			stream_store(k, ADVANCE(lds, t * KERNEL_MAX_HEAD), r0, d,
				   out[t], ROWS);
	}
	BARRIER(k);
	return lds;
}

/*
 * Arguments of stream_heads behind the input, the group's head, and what a
 * work-item has of it: element i, which turns with j, and their gains.
 */
struct turn {
	struct val q, kc, vc, q_gain, k_gain, cosine, sine, position, slot;
	struct val heads, kv_heads, d, head;
	struct val i, in, j, is_q, last, kv;
	struct var gain_i, gain_j;
	struct cache_at cache;
	bool turned;
};

/* One token's head: what a work-item has of it, and where it goes. */
struct head_of {
	struct val mine, other /* element j */, rms, lds;
	struct val position, sequence, token;
	struct var cosine, sine;
};

static struct val gain_of(const struct turn *a, struct val i)
{
	return SELECT(a->is_q, LOAD(a->q_gain, i), LOAD(a->k_gain, i));
}

/*
 * What follows the product and lies in memory is under way with the weights.
 * Waves that have no element do not wait for positions.
 */
static void heads_begin(struct dsl *k, struct turn *a, struct head_of *h,
			const struct val *token, uint32_t tokens)
{
	const struct val half = SHR(a->d, 1);

	a->i = LOCAL_ID(k, 0);
	a->in = LT(a->i, a->d);
	a->j = SELECT(LT(a->i, half), ADD(a->i, half), SUB(a->i, half));
	a->is_q = LT(a->head, a->heads);
	a->last = ADD(a->heads, a->kv_heads);
	a->kv = SUB(a->head, SELECT(LT(a->head, a->last), a->heads, a->last));
	a->gain_i = VAR(k, DSL_F32, 0);
	a->gain_j = VAR(k, DSL_F32, 0);
	for (uint32_t t = 0; t < tokens; t++)
		h[t] = (struct head_of){ .token = token[t],
					 .position = LOAD(a->position, token[t]),
					 .sequence = LOAD(a->slot, token[t]),
					 .cosine = VAR(k, DSL_F32, 0),
					 .sine = VAR(k, DSL_F32, 0) };
	IF (k, a->in) {
		const struct val at = MIN(a->i, a->j);

		SET(a->gain_i, gain_of(a, a->i));
		SET(a->gain_j, gain_of(a, a->j));
		for (uint32_t t = 0; t < tokens; t++) {
			SET(h[t].cosine, LOAD(row_of(a->cosine, h[t].position,
						     half), at));
			SET(h[t].sine, LOAD(row_of(a->sine, h[t].position,
						   half), at));
		}
	}
}

/* A work-item's element of a query or key, normed and turned. */
static struct val head_rope(const struct turn *a, const struct head_of *h)
{
	struct val low = LT(a->i, SHR(a->d, 1)), sine = GET(h->sine);
	struct val x = MUL(MUL(h->mine, h->rms), GET(a->gain_i));
	struct val b = MUL(MUL(h->other, h->rms), GET(a->gain_j));

	return FMA(x, GET(h->cosine), MUL(b, SELECT(low, NEG(sine), sine)));
}

/* 1 / the length of the head, and each wave finds it alone. */
static struct val head_rms(struct dsl *k, const struct turn *a,
			   const struct head_of *h, struct val eps)
{
	struct val sum = CONST(k, DSL_F32, 0);

	for (uint32_t at = 0; at < KERNEL_MAX_HEAD; at += 32) {
		struct val i = ADD(LANE(k), at);
		struct val x = LOAD_IF(LT(i, a->d), h->lds, i);

		sum = FMA(x, x, sum);
	}
	return RSQRT(ADD(DIV(WAVE_SUM(sum), CAST(DSL_F32, a->d)), eps));
}

static void query_put(const struct turn *a, const struct head_of *h,
		      struct val y)
{
	STORE(row_of(a->q, ADD(MUL(h->token, a->heads), a->head), a->d), a->i,
	      y);
}

static void vector_put(struct dsl *k, const struct turn *a,
		       const struct head_of *h, struct val cache, struct val y)
{
	cache_put(k, cache_row(&a->cache, cache, h->sequence, a->kv,
			       h->position), a->d, a->i, y);
}

/* y, 0 behind the head, times Hadamard's matrix, by all of the group. */
static struct val group_turn(struct dsl *k, const struct turn *a,
			     const struct head_of *h, struct val y)
{
	struct var sum = VAR(k, DSL_F32, 0);

	for (int m = 1; m < 32; m *= 2)
		y = FMA(y, SELECT(EQ(AND(LANE(k), m), 0),
				  CONST(k, DSL_F32, 1), -1.0),
			SHUFFLE_XOR(y, m));
	BARRIER(k);
	STORE_IF(a->in, h->lds, a->i, y);
	BARRIER(k);
	FOR (k, w, 0, SHR(a->d, 5), 1) {
		struct val both = AND(w, WAVE(k));
		struct val odd = XOR(XOR(both, SHR(both, 1)), SHR(both, 2));
		struct val at = ADD(MUL(w, 32), LANE(k));
		struct val x = LOAD(h->lds, at);

		SET(sum, ADD(sum, SELECT(EQ(AND(odd, 1), 0), x, NEG(x))));
	}
	return DIV(GET(sum), SQRT(CAST(DSL_F32, a->d)));
}

/* Hadamard's matrix comes behind the rotation, and before any rounding. */
static void head_turned(struct dsl *k, const struct turn *a,
			const struct head_of *h)
{
	struct var y = VAR(k, DSL_F32, 0);

	IF (k, a->in) {
		SET(y, h->mine);
		IF (k, LT(a->head, a->last)) {
			SET(y, head_rope(a, h));
		}
	}
	struct val out = group_turn(k, a, h, GET(y));
	IF (k, a->in) {
		IF (k, a->is_q) {
			query_put(a, h, out);
		}
		ELSE (k) {
			IF (k, LT(a->head, a->last)) {
				vector_put(k, a, h, a->kc, out);
			}
			ELSE (k) {
				vector_put(k, a, h, a->vc, out);
			}
		}
	}
}

/* Norm and turn of one token's head, which goes to q or into the cache. */
static void head_finish(struct dsl *k, const struct turn *a,
			const struct stream_input *in, struct head_of *h)
{
	h->mine = LOAD_IF(a->in, h->lds, a->i);
	h->other = LOAD_IF(a->in, h->lds, a->j);
	h->rms = head_rms(k, a, h, in->eps);
	if (a->turned) {
		head_turned(k, a, h);
		return;
	}
	IF(k, a->in) {
		IF(k, GE(a->head, a->last)) {
			vector_put(k, a, h, a->vc, h->mine);
		} ELSE(k) {
			struct val y = head_rope(a, h);

			IF(k, a->is_q) {
				query_put(a, h, y);
			} ELSE(k) {
				vector_put(k, a, h, a->kc, y);
			}
		}
	}
}

/*
 * Arguments: q [tokens][heads][d] (f32), kc, vc (shape.cache), w
 * [(heads + 2 kv_heads) d][n] (queries, keys, values), scale, x [tokens][n],
 * gain [n], eps, q_gain, k_gain [d] (f32), cos, sin [positions][d / 2] (f32),
 * position, slot [tokens] (i32), heads, kv_heads, d, n (i32), row, head (i32),
 * sequence (i64): the cache's strides, see kernels.h.  A group makes one head
 * of its tokens: product, RMSNorm over the head, rotary embedding of halves;
 * keys and values go into the cache.  d is even and at most KERNEL_MAX_HEAD
 * and the group; with shape.turned 32, 64, 128 or 256.
 */
void build_stream_heads(struct dsl *k, const struct kernel_shape *s)
{
	struct val at[TOKENS];
	struct turn a = { .turned = s->turned };
	struct head_of h[TOKENS];

	a.q = ARG_PTR(k, DSL_F32, "q", DSL_NOALIAS);
	a.kc = ARG_PTR(k, s->cache, "kc", DSL_NOALIAS);
	a.vc = ARG_PTR(k, s->cache, "vc", DSL_NOALIAS);
	struct stream w = stream_args(k, s);
	struct stream_input in = stream_input_args(k, true, s->tokens);
	a.q_gain = ARG_PTR(k, DSL_F32, "q_gain", DSL_READONLY);
	a.k_gain = ARG_PTR(k, DSL_F32, "k_gain", DSL_READONLY);
	a.cosine = ARG_PTR(k, DSL_F32, "cos", DSL_READONLY);
	a.sine = ARG_PTR(k, DSL_F32, "sin", DSL_READONLY);
	a.position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
	a.slot = ARG_PTR(k, DSL_I32, "slot", DSL_READONLY);
	a.heads = ARG(k, DSL_I32, "heads");
	a.kv_heads = ARG(k, DSL_I32, "kv_heads");
	a.d = ARG(k, DSL_I32, "d");
	w.n = ARG(k, DSL_I32, "n");
	a.cache = cache_args(k, s);
	a.head = GROUP_ID(k, 0);
	for (uint32_t t = 0; t < s->tokens; t++)
		at[t] = token_of(k, s->tokens, t);
	stream_input_rows(&in, at, w.n);
	heads_begin(k, &a, h, at, s->tokens);
	struct val lds = head_product(k, &w, &in, a.head, a.d, s->group);

	for (uint32_t t = 0; t < s->tokens; t++) {
		h[t].lds = ADVANCE(lds, t * KERNEL_MAX_HEAD);
		head_finish(k, &a, &in, &h[t]);
	}
}

/* Code i of a row of them. */
static struct val own_code(const struct stream *row, struct val i)
{
	const bool six = row->type == DSL_U32;
	struct val j = AND(i, QUANT_GROUP - 1), b = AND(j, 7);
	struct val at = MUL(SHR(i, 5), own_bytes(row->type));
	struct val pair = LOAD(row->w, ADD(ADD(at, six ? 16 : 0), b));
	struct val rest = LOAD(row->w, ADD(at, six ? AND(j, 15) :
						      ADD(SHR(j, 3), 8)));

	pair = AND(SHR(CAST(DSL_I32, pair), MUL(SHR(j, 3), 2)), 3);
	rest = SHR(CAST(DSL_I32, rest), six ? MUL(SHR(j, 4), 4) : b);
	return six ? OR(AND(rest, 15), SHL(pair, 4)) :
		     OR(pair, SHL(AND(rest, 1), 2));
}

/*
 * Arguments: x [tokens][n] (f32), w [rows][n], scale, id [tokens] (i32), rows,
 * n (i32): row id of the matrix, as f32.  An id that is not there gives zeros.
 */
void build_stream_embed(struct dsl *k, const struct kernel_shape *s)
{
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_NOALIAS);
	struct stream w = stream_args(k, s);
	struct val id = ARG_PTR(k, DSL_I32, "id", DSL_READONLY);
	struct val rows = ARG(k, DSL_U32, "rows"), n = ARG(k, DSL_I32, "n");
	struct val token = GROUP_ID(k, 0), which = LOAD(id, token);
	struct val there = LT(CAST(DSL_U32, which), rows);

	w.n = n;
	w = stream_row(&w, SELECT(there, which, 0));
	x = row_of(x, token, n);
	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct val v;

		if (is_own(w.type)) {
			v = CAST(DSL_F32, SUB(own_code(&w, i),
					      (int)zero_of(w.type)));
		} else if (w.type == DSL_U8) {
			struct val j = AND(i, QUANT_GROUP - 1);
			struct val b = ADD(SHL(SHR(i, 5), 4), AND(j, 15));
			struct val q = CAST(DSL_I32, LOAD(w.w, b));

			v = CAST(DSL_F32, SUB(SELECT(LT(j, 16), AND(q, 15),
						     SHR(q, 4)), 8));
		} else {
			v = LOAD(w.w, i);
			v = CAST(DSL_F32, is_integer(&w) ? CAST(DSL_I32, v) :
							   v);
		}
		if (is_integer(&w))
			v = MUL(v, CAST(DSL_F32, LOAD(w.scale,
						      SHR(i, w.span))));
		STORE(x, i, SELECT(there, v, CONST(k, DSL_F32, 0)));
	}
}

/*
 * Arguments: out [rows][n] (f16), w [rows][n], scale, rows, n (i32).  A group
 * makes a row.
 */
void build_stream_widen(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, DSL_F16, "out", DSL_NOALIAS);
	struct stream w = stream_args(k, s);
	struct val rows = ARG(k, DSL_I32, "rows"), row = GROUP_ID(k, 0);

	w.n = ARG(k, DSL_I32, "n");
	IF (k, LT(row, rows)) {
		struct val to = ALIGNED(row_of(out, row, w.n), 8);

		w = stream_row(&w, row);
		FOR (k, i, LOCAL_ID(k, 0), DIV(w.n, w.step), s->group) {
			struct columns c = stream_columns(&w, i);
			struct raw raw;

			if (is_integer(&w))
				raw = stream_load(&w, &c, i);
			for (uint32_t j = 0; j < c.runs; j++) {
				struct val v;

				if (is_integer(&w))
					v = MUL(SUB(stream_integers(&w, &raw, j),
						    zero_of(w.type)),
						stream_scale(&w, c.group));
				else
					v = CAST(DSL_F32, LOADV(w.w, c.at[j],
								c.run));
				STORE(to, c.at[j], CAST(DSL_F16, v));
			}
		}
	}
}
