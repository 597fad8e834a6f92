/*
 * compiler/kernels/packed.c - causal attention of packed documents, and its
 * gradients, in f32.
 *
 * Tokens are flat.  `position` counts from 0 in each document, so token i sees
 * tokens i - position[i] to i.  A wave has one token of one head: each lane
 * has the score of a key (or a query) of its own in a block of 32, and then
 * some elements of the sum, to which the block's weights come lane by lane.
 * No two waves write to the same place: results have the same bits every time.
 */
#include <float.h>

#include "compiler/kernels/kernels_int.h"

enum { WAVE_LANES = 32, MOST_PIECES = KERNEL_MAX_HEAD / WAVE_LANES };

/* Heads of tokens: [tokens][heads][head]. */
struct heads {
	struct val p, heads;
	uint32_t head; /* elements */
};

static struct val vector_at(const struct heads *h, struct val token,
			    struct val head)
{
	struct val at = ADD(MUL(CAST(DSL_I64, token), CAST(DSL_I64, h->heads)),
			    CAST(DSL_I64, head));

	return ADVANCE(h->p,
		       MUL(at, CAST(DSL_I64, CONST(h->p.k, DSL_I32, h->head))));
}

/* Of two vectors; where `in` is false nothing is read of the second. */
static struct val dot_of(struct dsl *k, struct val a, struct val b,
			 uint32_t head, struct val in)
{
	uint32_t each = head % 4 ? head % 2 ? 1 : 2 : 4;
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, 0, (int)head, (int)each)
	{
		struct val at = CAST(DSL_U32, i);

		SET(sum, add_dot(LOADV(a, at, each), LOADV_IF(in, b, at, each),
				 GET(sum)));
	}
	return GET(sum);
}

/* Element 32 c + lane of a sum of vectors. */
struct sums {
	struct var acc[MOST_PIECES];
	uint32_t head, pieces;
};

static struct sums sums_new(struct dsl *k, uint32_t head)
{
	struct sums s = { .head = head,
			  .pieces = (head + WAVE_LANES - 1) / WAVE_LANES };

	for (uint32_t c = 0; c < s.pieces; c++)
		s.acc[c] = VAR(k, DSL_F32, 0);
	return s;
}

static struct val place_of(struct dsl *k, uint32_t c)
{
	return CAST(DSL_U32, ADD(LANE(k), c * WAVE_LANES));
}

static struct val is_inside(struct dsl *k, const struct sums *s, uint32_t c)
{
	return LT(place_of(k, c), s->head);
}

static void sums_add(struct dsl *k, struct sums *s, struct val weight,
		     struct val x)
{
	for (uint32_t c = 0; c < s->pieces; c++)
		SET(s->acc[c],
		    FMA(weight, LOAD_IF(is_inside(k, s, c), x, place_of(k, c)),
			GET(s->acc[c])));
}

static void sums_scale(struct sums *s, struct val by)
{
	for (uint32_t c = 0; c < s->pieces; c++)
		SET(s->acc[c], MUL(GET(s->acc[c]), by));
}

static void sums_store(struct dsl *k, const struct sums *s, struct val to)
{
	for (uint32_t c = 0; c < s->pieces; c++)
		STORE_IF(is_inside(k, s, c), to, place_of(k, c),
			 GET(s->acc[c]));
}

/* What all three kernels know. */
struct packed {
	uint32_t head;
	struct val q, k, v; /* f32 */
	struct val position, heads, kv_heads, tokens, scale;
	struct val token, h, kv; /* of this wave */
};

static struct heads queries_of(const struct packed *p, struct val at)
{
	return (struct heads){ at, p->heads, p->head };
}

static struct heads keys_of(const struct packed *p, struct val at)
{
	return (struct heads){ at, p->kv_heads, p->head };
}

/* Arguments: q, k, v (f32), position (i32). */
static void inputs_take(struct dsl *k, const struct kernel_shape *s,
			struct packed *p)
{
	p->head = s->head;
	p->q = ARG_PTR(k, DSL_F32, "q", DSL_READONLY);
	p->k = ARG_PTR(k, DSL_F32, "k", DSL_READONLY);
	p->v = ARG_PTR(k, DSL_F32, "v", DSL_READONLY);
	p->position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
}

/* Arguments: heads, kv_heads, tokens (i32), scale (f32). */
static void sizes_take(struct dsl *k, struct packed *p)
{
	p->heads = ARG(k, DSL_I32, "heads");
	p->kv_heads = ARG(k, DSL_I32, "kv_heads");
	p->tokens = ARG(k, DSL_I32, "tokens");
	p->scale = ARG(k, DSL_F32, "scale");
}

/* The wave's token and head, of queries. */
static void query_find(struct dsl *k, const struct kernel_shape *s,
		       struct packed *p)
{
	struct val row = READ_FIRST(wave_row(k, s));

	p->token = group_div(row, p->heads);
	p->h = SUB(row, MUL(p->token, p->heads));
	p->kv = group_div(p->h, group_div(p->heads, p->kv_heads));
}

/* ------------------------------------------------------------ forward -- */

struct softmax {
	struct var max, total;
};

/* Weights of a block of keys, and what was summed fits to them. */
static struct val weigh_keys(struct dsl *k, const struct packed *p,
			     struct softmax *m, struct sums *sum, struct val q,
			     struct val key, struct val in)
{
	struct heads keys = keys_of(p, p->k);
	struct val s = dot_of(k, q, vector_at(&keys, key, p->kv), p->head, in);

	s = SELECT(in, MUL(s, p->scale), -FLT_MAX);
	struct val top = MAX(GET(m->max), WAVE_MAX(s));
	struct val shrink = EXP(SUB(GET(m->max), top));
	struct val w = SELECT(in, EXP(SUB(s, top)), 0.0);

	SET(m->total, FMA(GET(m->total), shrink, WAVE_SUM(w)));
	sums_scale(sum, shrink);
	SET(m->max, top);
	return w;
}

static void attend_token(struct dsl *k, const struct packed *p, struct val out,
			 struct val lse)
{
	struct heads queries = queries_of(p, p->q), values = keys_of(p, p->v);
	struct heads results = queries_of(p, out);
	struct val q = vector_at(&queries, p->token, p->h);
	struct val start = SUB(p->token, LOAD(p->position, p->token));
	struct softmax m = { VAR(k, DSL_F32, -FLT_MAX), VAR(k, DSL_F32, 0) };
	struct sums sum = sums_new(k, p->head);

	FOR(k, base, start, ADD(p->token, 1), WAVE_LANES)
	{
		struct val key = ADD(base, LANE(k)), in = LE(key, p->token);
		struct val w = weigh_keys(k, p, &m, &sum, q, key, in);
		struct val n = MIN(SUB(ADD(p->token, 1), base), WAVE_LANES);

		FOR(k, j, 0, n, 1)
		{
			sums_add(k, &sum, READ_LANE(w, j),
				 vector_at(&values, ADD(base, j), p->kv));
		}
	}
	sums_scale(&sum, DIV(1.0, GET(m.total)));
	sums_store(k, &sum, vector_at(&results, p->token, p->h));
	IF(k, EQ(LANE(k), 0))
	{
		STORE(lse, ADD(MUL(p->token, p->heads), p->h),
		      ADD(GET(m.max), LOG(GET(m.total))));
	}
}

/*
 * Arguments: out [tokens][heads][head], lse [tokens][heads] (f32: the log of
 * the sum of exponentials), inputs_take(), sizes_take().  q is as out, k and v
 * are [tokens][kv_heads][head].  Rows: tokens * heads.
 */
void build_attn_packed(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, DSL_F32, "out", DSL_NOALIAS);
	struct val lse = ARG_PTR(k, DSL_F32, "lse", DSL_NOALIAS);
	struct packed p;

	inputs_take(k, s, &p);
	sizes_take(k, &p);
	query_find(k, s, &p);
	IF(k, LT(p.token, p.tokens))
	{
		attend_token(k, &p, out, lse);
	}
}

/* ---------------------------------------------------------- gradients -- */

/* What the way back reads besides. */
struct packed_back {
	struct packed p;
	struct val dy, y, lse, dots;
};

/* The weight of a pair, and the gradient of its score. */
struct pair {
	struct val w, ds;
};

static struct pair pair_back(const struct packed_back *b, struct val score,
			     struct val dw, struct val lse, struct val dots,
			     struct val in)
{
	struct val s = SELECT(in, MUL(score, b->p.scale), lse);
	struct val w = SELECT(in, EXP(SUB(s, lse)), 0.0);

	return (struct pair){ w, MUL(MUL(w, SUB(dw, dots)), b->p.scale) };
}

static void back_query(struct dsl *k, const struct packed_back *b,
		       struct val dq)
{
	const struct packed *p = &b->p;
	struct heads queries = queries_of(p, p->q), dys = queries_of(p, b->dy);
	struct heads ys = queries_of(p, b->y), results = queries_of(p, dq);
	struct heads keys = keys_of(p, p->k), values = keys_of(p, p->v);
	struct val q = vector_at(&queries, p->token, p->h);
	struct val dy = vector_at(&dys, p->token, p->h);
	struct val start = SUB(p->token, LOAD(p->position, p->token));
	struct val at = ADD(MUL(p->token, p->heads), p->h);
	struct val lse = LOAD(b->lse, at);
	struct val dot = dot_of(k, dy, vector_at(&ys, p->token, p->h), p->head,
				EQ(p->h, p->h));
	struct sums sum = sums_new(k, p->head);

	FOR(k, base, start, ADD(p->token, 1), WAVE_LANES)
	{
		struct val key = ADD(base, LANE(k)), in = LE(key, p->token);
		struct val s =
			dot_of(k, q, vector_at(&keys, key, p->kv), p->head, in);
		struct val dw = dot_of(k, dy, vector_at(&values, key, p->kv),
				       p->head, in);
		struct pair x = pair_back(b, s, dw, lse, dot, in);
		struct val n = MIN(SUB(ADD(p->token, 1), base), WAVE_LANES);

		FOR(k, j, 0, n, 1)
		{
			sums_add(k, &sum, READ_LANE(x.ds, j),
				 vector_at(&keys, ADD(base, j), p->kv));
		}
	}
	sums_store(k, &sum, vector_at(&results, p->token, p->h));
	IF(k, EQ(LANE(k), 0))
	{
		STORE(b->dots, at, dot);
	}
}

/*
 * Arguments: dq like q, dots [tokens][heads] (f32: dy y, for attn_packed_dkv),
 * dy, y, lse, inputs_take(), sizes_take().  Rows: tokens * heads.
 */
void build_attn_packed_dq(struct dsl *k, const struct kernel_shape *s)
{
	struct val dq = ARG_PTR(k, DSL_F32, "dq", DSL_NOALIAS);
	struct packed_back b;

	b.dots = ARG_PTR(k, DSL_F32, "dots", DSL_NOALIAS);
	b.dy = ARG_PTR(k, DSL_F32, "dy", DSL_READONLY);
	b.y = ARG_PTR(k, DSL_F32, "y", DSL_READONLY);
	b.lse = ARG_PTR(k, DSL_F32, "lse", DSL_READONLY);
	inputs_take(k, s, &b.p);
	sizes_take(k, &b.p);
	query_find(k, s, &b.p);
	IF(k, LT(b.p.token, b.p.tokens))
	{
		back_query(k, &b, dq);
	}
}

/* Queries [base, base + 32) of one head, of those that see this token. */
static void back_queries(struct dsl *k, const struct packed_back *b,
			 struct val head, struct val base, struct sums *dk,
			 struct sums *dv)
{
	const struct packed *p = &b->p;
	struct heads queries = queries_of(p, p->q), dys = queries_of(p, b->dy);
	struct heads keys = keys_of(p, p->k), values = keys_of(p, p->v);
	struct val i = ADD(base, LANE(k)), there = LT(i, p->tokens);
	struct val start = SUB(i, LOAD_IF(there, p->position, i));
	struct val in = AND(there, LE(start, p->token));
	struct val at = ADD(MUL(i, p->heads), head);
	struct val s = dot_of(k, vector_at(&keys, p->token, p->kv),
			      vector_at(&queries, i, head), p->head, in);
	struct val dw = dot_of(k, vector_at(&values, p->token, p->kv),
			       vector_at(&dys, i, head), p->head, in);
	struct pair x = pair_back(b, s, dw, LOAD_IF(in, b->lse, at),
				  LOAD_IF(in, b->dots, at), in);
	struct val n = MIN(SUB(p->tokens, base), WAVE_LANES);

	FOR(k, j, 0, n, 1)
	{
		struct val query = ADD(base, j);

		sums_add(k, dk, READ_LANE(x.ds, j),
			 vector_at(&queries, query, head));
		sums_add(k, dv, READ_LANE(x.w, j),
			 vector_at(&dys, query, head));
	}
}

/* Is there a token i, and does it see this one? */
static struct val is_seen(const struct packed *p, struct val i)
{
	struct val there = LT(i, p->tokens);
	struct val start = SUB(i, LOAD_IF(there, p->position, i));

	return AND(there, LE(start, p->token));
}

static void back_key(struct dsl *k, const struct packed_back *b, struct val dk,
		     struct val dv)
{
	const struct packed *p = &b->p;
	struct heads dks = keys_of(p, dk), dvs = keys_of(p, dv);
	struct sums by_k = sums_new(k, p->head), by_v = sums_new(k, p->head);
	struct val ratio = group_div(p->heads, p->kv_heads);
	struct var base = VAR_OF(p->token);

	WHILE(k, is_seen(p, GET(base)))
	{
		FOR(k, h, 0, ratio, 1)
		{
			back_queries(k, b, ADD(MUL(p->kv, ratio), h), GET(base),
				     &by_k, &by_v);
		}
		SET(base, ADD(GET(base), WAVE_LANES));
	}
	sums_store(k, &by_k, vector_at(&dks, p->token, p->kv));
	sums_store(k, &by_v, vector_at(&dvs, p->token, p->kv));
}

/*
 * Arguments: dk, dv like k and v, dots as attn_packed_dq left them, dy, lse,
 * inputs_take(), sizes_take().  Rows: tokens * kv_heads.
 */
void build_attn_packed_dkv(struct dsl *k, const struct kernel_shape *s)
{
	struct val dk = ARG_PTR(k, DSL_F32, "dk", DSL_NOALIAS);
	struct val dv = ARG_PTR(k, DSL_F32, "dv", DSL_NOALIAS);
	struct packed_back b;
	struct packed *p = &b.p;

	b.dots = ARG_PTR(k, DSL_F32, "dots", DSL_READONLY);
	b.dy = ARG_PTR(k, DSL_F32, "dy", DSL_READONLY);
	b.lse = ARG_PTR(k, DSL_F32, "lse", DSL_READONLY);
	inputs_take(k, s, p);
	sizes_take(k, p);
	struct val row = READ_FIRST(wave_row(k, s));
	p->token = group_div(row, p->kv_heads);
	p->kv = SUB(row, MUL(p->token, p->kv_heads));
	IF(k, LT(p->token, p->tokens))
	{
		back_key(k, &b, dk, dv);
	}
}
