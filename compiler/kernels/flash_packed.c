/*
 * compiler/kernels/flash_packed.c - causal attention of packed documents, and
 * its gradients, by the matrix units.
 *
 * As packed.c, but a group has PACKED_ROWS tokens of a head, a wave 16 of them,
 * each in two lanes 16 apart.  Values are bf16 in products, or f16 where they
 * are that in memory, sums f32; in memory
 * queries, keys, values, results and their gradients are of shape.type, dq and
 * dk f32.  Every product is computed turned, so that a lane has the results of
 * its own token: rows of the first matrix are numbered so that lane l holds
 * eight neighbouring ones (flash.c).  What meets the tokens comes through LDS,
 * as rows and turned; scores are in units of log2.
 */
#include <float.h>

#include "compiler/kernels/kernels_int.h"

enum {
	TILE = 16,
	PIECE = 8,
	ROWS = KERNEL_PACKED_ROWS,
	MOST_TILES = KERNEL_MAX_HEAD / TILE,
	MOST_STEPS = 4,
	MOST_GROUPS = 2
};
#define LOG2_E 0x1.715476p0
#define LN_2   0x1.62e43p-1

struct flash {
	struct dsl *k;
	enum dsl_type narrow;	     /* in products */
	uint32_t group, head, tiles; /* tiles: of a head */
	uint32_t block;		     /* tokens in LDS at a time */
	uint32_t pitch, turned_pitch;
	struct val column, half, row; /* of this lane in a tile; A's row */
	struct val position, heads, kv_heads, tokens, scale;
	struct val h, kv, first;   /* of the group: heads, first token */
	struct val own, in, start; /* the lane's token, and what it sees */
	struct val wave_first, wave_last; /* tokens of the wave */
};

/* ---------------------------------------------------------- arguments -- */

static void flash_begin(struct flash *f, struct dsl *k,
			const struct kernel_shape *s, uint32_t block)
{
	if (s->head % TILE)
		FAIL(k, "heads of %u elements; wanted a multiple of %d",
		     s->head, TILE);
	*f = (struct flash){ .k = k,
			     .narrow = s->type == DSL_F16 ? DSL_F16 : DSL_BF16,
			     .group = s->group,
			     .head = s->head,
			     .tiles = (s->head + TILE - 1) / TILE,
			     .block = block,
			     .pitch = s->head + PIECE,
			     .turned_pitch = block + PIECE };
	struct val lane = AND(LANE(k), TILE - 1);
	f->column = lane;
	f->half = SHR(LANE(k), 4);
	f->row = ADD(MUL(AND(lane, 1), 8), SHR(lane, 1));
}

/* Arguments: position (i32), heads, kv_heads, tokens (i32), scale (f32). */
static void sizes_take(struct flash *f)
{
	struct dsl *k = f->k;

	f->position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
	f->heads = ARG(k, DSL_I32, "heads");
	f->kv_heads = ARG(k, DSL_I32, "kv_heads");
	f->tokens = ARG(k, DSL_I32, "tokens");
	f->scale = ARG(k, DSL_F32, "scale");
}

static struct val take_array(struct dsl *k, enum dsl_type type,
			     const char *name)
{
	return ALIGNED(ARG_PTR(k, type, name, DSL_READONLY), 16);
}

static struct val give_array(struct dsl *k, enum dsl_type type,
			     const char *name)
{
	return ALIGNED(ARG_PTR(k, type, name, DSL_NOALIAS), 16);
}

/* The group's head of `heads`, and its tokens; the last ones come first. */
static struct val find_tokens(struct flash *f, struct val heads, bool reversed)
{
	struct dsl *k = f->k;
	struct val x = GROUP_ID(k, 0), block = group_div(x, heads);
	struct val head = SUB(x, MUL(block, heads));

	if (reversed)
		block = SUB(SUB(group_div(NUM_GROUPS(k, 0), heads), 1), block);
	f->first = MUL(block, ROWS);
	f->wave_first = ADD(f->first, MUL(READ_FIRST(WAVE(k)), TILE));
	f->wave_last = ADD(f->wave_first, TILE - 1);
	f->own = ADD(f->wave_first, f->column);
	f->in = LT(f->own, f->tokens);
	f->start = SUB(f->own, LOAD_IF(f->in, f->position, f->own));
	return head;
}

static void find_queries(struct flash *f)
{
	f->h = find_tokens(f, f->heads, true);
	f->kv = group_div(f->h, group_div(f->heads, f->kv_heads));
}

/* ------------------------------------------------------------- memory -- */

/* A head of an array [tokens][heads][head]. */
struct vectors {
	struct val p, stride;
};

static struct vectors vectors_of(const struct flash *f, struct val p,
				 struct val heads, struct val head)
{
	return (struct vectors){
		ALIGNED(ADVANCE(p, MUL(head, (int)f->head)), 16),
		CAST(DSL_U32, MUL(heads, (int)f->head)),
	};
}

static struct val place_of(const struct vectors *v, struct val token,
			   struct val element)
{
	return ADD(MUL(CAST(DSL_U32, token), v->stride),
		   CAST(DSL_U32, element));
}

static struct val narrow_val(const struct flash *f, struct val x)
{
	return x.type == f->narrow ? x : CAST(f->narrow, x);
}

/* Of two tokens that are neighbours, a piece each. */
struct unit {
	struct val x[2], pair, piece, in;
};

static uint32_t count_units(const struct flash *f)
{
	return f->block / 2 * f->head / PIECE;
}

/* Behind the last token comes that one again: who takes it hides it. */
static struct unit unit_load(const struct flash *f, const struct vectors *v,
			     struct val base, uint32_t step)
{
	struct dsl *k = f->k;
	const uint32_t pairs = f->block / 2, units = count_units(f);
	struct val u = ADD(LOCAL_ID(k, 0), step);
	struct unit x = { .pair = AND(u, pairs - 1),
			  .piece = DIV(u, (int)pairs),
			  .in = step + f->group <= units ? dsl_of_i64(1) :
							   LT(u, (int)units) };

	for (uint32_t i = 0; i < 2; i++) {
		struct val token = MIN(ADD(base, ADD(MUL(x.pair, 2), i)),
				       SUB(f->tokens, 1));
		struct val at = place_of(v, token, MUL(x.piece, PIECE));

		x.x[i] = narrow_val(f, LOADV_IF(x.in, v->p, at, PIECE));
	}
	return x;
}

/* Where a block lies in LDS: as rows, turned; either may be missing. */
struct staged {
	struct val rows, turned;
};

/* One address for the rows, one for what is turned: the rest is constant. */
static void unit_store(const struct flash *f, const struct unit *x,
		       const struct staged *to)
{
	struct val row = ADD(MUL(x->pair, 2 * f->pitch), MUL(x->piece, PIECE));
	struct val turned =
		ADD(MUL(x->piece, PIECE * f->turned_pitch), MUL(x->pair, 2));

	for (uint32_t i = 0; to->rows.k && i < 2; i++)
		STORE_IF(x->in, ALIGNED(to->rows, 16), ADD(row, i * f->pitch),
			 x->x[i]);
	for (uint32_t j = 0; to->turned.k && j < PIECE; j++)
		STORE_IF(x->in, ALIGNED(to->turned, 4),
			 ADD(turned, j * f->turned_pitch),
			 JOIN(ELEM(x->x[0], j), ELEM(x->x[1], j)));
}

/* Where something of a block comes from, and where it goes. */
struct part {
	const struct vectors *from;
	const struct staged *to;
};

/* Tokens [base, base + block) of both; loads first, that they overlap. */
static void stage_block(const struct flash *f, const struct part part[2],
			struct val base)
{
	const uint32_t units = count_units(f);
	struct unit x[2][MOST_STEPS];

	for (uint32_t at = 0; at < units; at += MOST_STEPS * f->group) {
		uint32_t n = 0;

		for (; n < MOST_STEPS && at + n * f->group < units; n++)
			for (uint32_t i = 0; i < 2; i++)
				x[i][n] = unit_load(f, part[i].from, base,
						    at + n * f->group);
		for (uint32_t i = 0; i < 2; i++)
			for (uint32_t j = 0; j < n; j++)
				unit_store(f, &x[i][j], part[i].to);
	}
}

static struct val rows_new(const struct flash *f, uint32_t rows,
			   const char *name)
{
	return LDS(f->k, f->narrow, rows * f->pitch, name);
}

static struct val turned_new(const struct flash *f, const char *name)
{
	return LDS(f->k, f->narrow, f->head * f->turned_pitch, name);
}

/* ----------------------------------------------------------- products -- */

static struct val tile_at(char role, struct val lds, struct val at)
{
	struct val x = LOADV(ALIGNED(lds, 16), at, TILE);

	return FRAG_OPERAND(role, x);
}

/* Elements 16 c of the lane's row of tile g, for the first matrix. */
static struct val row_tile(const struct flash *f, struct val lds, uint32_t g,
			   uint32_t c)
{
	return tile_at(
		'A', lds,
		ADD(MUL(f->row, f->pitch), g * TILE * f->pitch + c * TILE));
}

static struct val turned_tile(const struct flash *f, struct val lds, uint32_t c,
			      uint32_t g)
{
	return tile_at('A', lds,
		       ADD(MUL(f->row, f->turned_pitch),
			   c * TILE * f->turned_pitch + g * TILE));
}

/* The lane's own token, as the second matrix: in registers, or in LDS. */
struct own {
	struct val x[MOST_TILES];
	struct val lds; /* rows of the group's tokens */
};

static void own_load(const struct flash *f, const struct vectors *v,
		     struct own *o)
{
	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val at =
			place_of(v, f->own, CONST(f->k, DSL_I32, c * TILE));
		o->x[c] = FRAG_OPERAND(
			'B', narrow_val(f, LOADV_IF(f->in, v->p, at, TILE)));
	}
}

static struct val own_tile(const struct flash *f, const struct own *o,
			   uint32_t c)
{
	struct dsl *k = f->k;

	if (!o->lds.k)
		return o->x[c];
	struct val row = ADD(MUL(WAVE(k), TILE), f->column);
	return tile_at('B', o->lds, ADD(MUL(row, f->pitch), c * TILE));
}

/* Rows 8 half + 0..7 of tile g times the lane's token. */
static struct val multiply_rows(const struct flash *f, struct val lds,
				uint32_t g, const struct own *o)
{
	struct val s = FRAG_ZERO(f->k, DSL_F32);

	for (uint32_t c = 0; c < f->tiles; c++)
		s = WMMA(row_tile(f, lds, g, c), own_tile(f, o, c), s);
	return FRAG_ELEMS(s);
}

/* Both halves' results of a tile as the second matrix. */
static struct val turn_weights(const struct flash *f, struct val p)
{
	struct val mine = BITS(DSL_I32, CAST(f->narrow, p));
	struct val other = SHUFFLE_XOR(mine, 16), low = EQ(f->half, 0);
	struct val a = SELECT(low, mine, other), b = SELECT(low, other, mine);

	return FRAG_OPERAND('B', BITS(f->narrow, JOIN(a, b)));
}

/* Elements 16 c + 8 half + 0..7 of a sum for the lane's token. */
struct sums {
	struct var acc[MOST_TILES];
};

static void sums_begin(const struct flash *f, struct sums *s)
{
	for (uint32_t c = 0; c < f->tiles; c++)
		s->acc[c] = VAR_OF(FRAG_ZERO(f->k, DSL_F32));
}

static void sums_add(const struct flash *f, struct sums *s, struct val turned,
		     uint32_t g, struct val weights)
{
	for (uint32_t c = 0; c < f->tiles; c++)
		SET(s->acc[c], WMMA(turned_tile(f, turned, c, g), weights,
				    GET(s->acc[c])));
}

static void sums_scale(const struct flash *f, struct sums *s, struct val by)
{
	for (uint32_t c = 0; c < f->tiles; c++)
		SET(s->acc[c], FRAG_OF(MUL(FRAG_ELEMS(s->acc[c]), by)));
}

static void sums_store(const struct flash *f, const struct sums *s,
		       const struct vectors *v)
{
	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val first = ADD(MUL(f->half, PIECE), c * TILE);

		STORE_IF(f->in, v->p, place_of(v, f->own, first),
			 CAST((enum dsl_type)v->p.elem, FRAG_ELEMS(s->acc[c])));
	}
}

/* ------------------------------------------------------ loop over keys -- */

/* The first key of the group, and the one behind its last. */
static struct val first_key(const struct flash *f)
{
	return SUB(f->first, LOAD(f->position, f->first));
}

static struct val last_key(const struct flash *f)
{
	return MIN(ADD(f->first, ROWS), f->tokens);
}

/* `s`, or `hidden` where the lane's query does not see the key. */
static struct val hide_keys(const struct flash *f, struct val s,
			    struct val base, uint32_t g, double hidden)
{
	struct val key = RANGE(ADD(ADD(base, MUL(f->half, 8)), g * TILE), 8);

	return SELECT(AND(LE(key, f->own), GE(key, f->start)), s, hidden);
}

struct softmax {
	struct var max, total;
};

static struct val max_elem(struct val m, struct val x)
{
	for (uint32_t j = 0; j < x.n; j++)
		m = MAX(m, ELEM(x, j));
	return m;
}

/* A larger maximum makes what was summed smaller; mostly there is none. */
static void rescale_sums(const struct flash *f, struct softmax *x,
			 struct sums *sum, struct val m)
{
	struct dsl *k = f->k;

	IF(k, ANY(GT(m, x->max)))
	{
		struct val by = EXP2(SUB(x->max, m));

		SET(x->total, MUL(x->total, by));
		sums_scale(f, sum, by);
		SET(x->max, m);
	}
}

/* The block of keys in LDS. */
static void attend_block(const struct flash *f, struct softmax *x,
			 struct sums *sum, const struct own *q, struct val base,
			 const struct staged *keys, const struct staged *values)
{
	const uint32_t groups = f->block / TILE;
	struct val s[MOST_GROUPS], m = GET(x->max);

	for (uint32_t g = 0; g < groups; g++) {
		s[g] = MUL(multiply_rows(f, keys->rows, g, q), f->scale);
		s[g] = hide_keys(f, MUL(s[g], LOG2_E), base, g, -FLT_MAX);
		m = max_elem(m, s[g]);
	}
	rescale_sums(f, x, sum, MAX(m, SHUFFLE_XOR(m, 16)));
	for (uint32_t g = 0; g < groups; g++) {
		struct val p =
			hide_keys(f, EXP2(SUB(s[g], x->max)), base, g, 0);
		for (uint32_t j = 0; j < p.n; j++)
			SET(x->total, ADD(x->total, ELEM(p, j)));
		sums_add(f, sum, values->turned, g, turn_weights(f, p));
	}
}

static void store_attention(const struct flash *f, struct softmax *x,
			    struct sums *sum, struct val out, struct val lse)
{
	const struct vectors v = vectors_of(f, out, f->heads, f->h);
	struct val total = ADD(x->total, SHUFFLE_XOR(GET(x->total), 16));
	struct val log2_sum = ADD(x->max, LOG2(total));

	sums_scale(f, sum, DIV(1.0, total));
	sums_store(f, sum, &v);
	STORE_IF(AND(f->in, EQ(f->half, 0)), lse,
		 ADD(MUL(f->own, f->heads), f->h), MUL(log2_sum, LN_2));
}

/*
 * Arguments: out, lse, q, k, v, position, heads, kv_heads, tokens, scale, as of
 * attn_packed.  Heads are multiples of 16, arrays lie at multiples of 16 bytes.
 * Groups: heads times tokens / KERNEL_PACKED_ROWS, rounded up.
 */
void build_flash_packed(struct dsl *k, const struct kernel_shape *s)
{
	struct flash f;
	struct sums sum;
	struct own q = { .lds = { 0 } };

	flash_begin(&f, k, s, 32);
	struct val out = give_array(k, s->type, "out");
	struct val lse = give_array(k, DSL_F32, "lse");
	struct val qp = take_array(k, s->type, "q");
	struct val kp = take_array(k, s->type, "k");
	struct val vp = take_array(k, s->type, "v");
	sizes_take(&f);
	find_queries(&f);
	const struct staged keys = { .rows = rows_new(&f, f.block, "keys") };
	const struct staged values = { .turned = turned_new(&f, "values") };
	const struct vectors qs = vectors_of(&f, qp, f.heads, f.h);
	const struct vectors ks = vectors_of(&f, kp, f.kv_heads, f.kv);
	const struct vectors vs = vectors_of(&f, vp, f.kv_heads, f.kv);
	const struct part parts[] = { { &ks, &keys }, { &vs, &values } };
	struct softmax x = { VAR(k, DSL_F32, -FLT_MAX), VAR(k, DSL_F32, 0) };

	own_load(&f, &qs, &q);
	sums_begin(&f, &sum);
	FOR(k, j, first_key(&f), last_key(&f), (int)f.block)
	{
		BARRIER(k);
		stage_block(&f, parts, j);
		BARRIER(k);
		IF(k, LE(j, f.wave_last))
		{
			attend_block(&f, &x, &sum, &q, j, &keys, &values);
		}
	}
	store_attention(&f, &x, &sum, out, lse);
}

/* ---------------------------------------------------------- gradients -- */

/* Of the lane's query: dy y, which the gradients of all its scores share. */
static struct val dots_of(const struct flash *f, const struct vectors *dy,
			  const struct vectors *y)
{
	struct val sum = CONST(f->k, DSL_F32, 0);

	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val first = ADD(MUL(f->half, PIECE), c * TILE);
		struct val a = LOADV_IF(f->in, dy->p,
					place_of(dy, f->own, first), PIECE);
		struct val b = LOADV_IF(f->in, y->p, place_of(y, f->own, first),
					PIECE);

		sum = add_dot(CAST(DSL_F32, a), CAST(DSL_F32, b), sum);
	}
	return ADD(sum, SHUFFLE_XOR(sum, 16));
}

/* What a query's scores and their gradients are made again from. */
struct query_back {
	struct own q, dy;
	struct val lse, dots; /* lse: log2 */
};

static void back_keys(const struct flash *f, const struct query_back *b,
		      struct sums *dq, struct val base,
		      const struct staged *keys, const struct staged *values)
{
	for (uint32_t g = 0; g < f->block / TILE; g++) {
		struct val s = multiply_rows(f, keys->rows, g, &b->q);
		struct val dw = multiply_rows(f, values->rows, g, &b->dy);
		struct val p = EXP2(SUB(MUL(MUL(s, f->scale), LOG2_E), b->lse));
		struct val ds =
			MUL(MUL(hide_keys(f, p, base, g, 0), SUB(dw, b->dots)),
			    f->scale);

		sums_add(f, dq, keys->turned, g, turn_weights(f, ds));
	}
}

/*
 * Arguments: dq, dots, dy, y, lse, q, k, v, position, heads, kv_heads, tokens,
 * scale, as of attn_packed_dq; the rest as of flash_packed.
 */
void build_flash_packed_dq(struct dsl *k, const struct kernel_shape *s)
{
	struct flash f;
	struct sums sum;
	struct query_back b = { .lse = { 0 } };

	flash_begin(&f, k, s, 32);
	struct val dqp = give_array(k, DSL_F32, "dq");
	struct val dots = give_array(k, DSL_F32, "dots");
	struct val dyp = take_array(k, s->type, "dy");
	struct val yp = take_array(k, s->type, "y");
	struct val lse = take_array(k, DSL_F32, "lse");
	struct val qp = take_array(k, s->type, "q");
	struct val kp = take_array(k, s->type, "k");
	struct val vp = take_array(k, s->type, "v");
	sizes_take(&f);
	find_queries(&f);
	const struct staged keys = { rows_new(&f, f.block, "keys"),
				     turned_new(&f, "turned") };
	const struct staged values = { .rows = rows_new(&f, f.block,
							"values") };
	const struct vectors qs = vectors_of(&f, qp, f.heads, f.h);
	const struct vectors dqs = vectors_of(&f, dqp, f.heads, f.h);
	const struct vectors dys = vectors_of(&f, dyp, f.heads, f.h);
	const struct vectors ys = vectors_of(&f, yp, f.heads, f.h);
	const struct vectors ks = vectors_of(&f, kp, f.kv_heads, f.kv);
	const struct vectors vs = vectors_of(&f, vp, f.kv_heads, f.kv);
	const struct part parts[] = { { &ks, &keys }, { &vs, &values } };
	struct val at = ADD(MUL(f.own, f.heads), f.h);

	own_load(&f, &qs, &b.q);
	own_load(&f, &dys, &b.dy);
	b.lse = MUL(LOAD_IF(f.in, lse, at), LOG2_E);
	b.dots = dots_of(&f, &dys, &ys);
	sums_begin(&f, &sum);
	FOR(k, j, first_key(&f), last_key(&f), (int)f.block)
	{
		BARRIER(k);
		stage_block(&f, parts, j);
		BARRIER(k);
		IF(k, LE(j, f.wave_last))
		{
			back_keys(&f, &b, &sum, j, &keys, &values);
		}
	}
	sums_store(&f, &sum, &dqs);
	STORE_IF(AND(f.in, EQ(f.half, 0)), dots, at, b.dots);
}

/* Of a block of queries in LDS: lse (log2), dots, the first key that is seen.
 */
struct query_facts {
	struct val lse, dots, start;
};

/* Behind the last token nothing is seen. */
static void stage_facts(const struct flash *f, const struct query_facts *to,
			struct val lse, struct val dots, struct val head,
			struct val base)
{
	struct dsl *k = f->k;
	struct val i = LOCAL_ID(k, 0);

	IF(k, LT(i, (int)f->block))
	{
		struct val token = ADD(base, i), in = LT(token, f->tokens);
		struct val at = ADD(MUL(token, f->heads), head);
		struct val start = SUB(token, LOAD_IF(in, f->position, token));

		STORE(to->lse, i, MUL(LOAD_IF(in, lse, at), LOG2_E));
		STORE(to->dots, i, LOAD_IF(in, dots, at));
		STORE(to->start, i, SELECT(in, start, INT32_MAX));
	}
}

/* Of 8 queries of tile g: those of this lane. */
static struct val fact_of(const struct flash *f, struct val lds, uint32_t g)
{
	return LOADV(ALIGNED(lds, 16), ADD(MUL(f->half, 8), g * TILE), 8);
}

/* What is in LDS for the gradients of keys and values. */
struct key_back {
	struct own key, value; /* the group's own */
	struct staged q, dy;
	struct query_facts facts;
};

static void back_queries(const struct flash *f, const struct key_back *b,
			 struct sums *dk, struct sums *dv, struct val base)
{
	for (uint32_t g = 0; g < f->block / TILE; g++) {
		struct val i =
			RANGE(ADD(ADD(base, MUL(f->half, 8)), g * TILE), 8);
		struct val in = AND(GE(i, f->own),
				    LE(fact_of(f, b->facts.start, g), f->own));
		struct val s = multiply_rows(f, b->q.rows, g, &b->key);
		struct val dw = multiply_rows(f, b->dy.rows, g, &b->value);
		struct val p = EXP2(SUB(MUL(MUL(s, f->scale), LOG2_E),
					fact_of(f, b->facts.lse, g)));

		p = SELECT(in, p, 0.0);
		struct val ds =
			MUL(MUL(p, SUB(dw, fact_of(f, b->facts.dots, g))),
			    f->scale);
		sums_add(f, dv, b->dy.turned, g, turn_weights(f, p));
		sums_add(f, dk, b->q.turned, g, turn_weights(f, ds));
	}
}

static void key_back_begin(const struct flash *f, struct key_back *b,
			   const struct vectors *keys,
			   const struct vectors *values)
{
	struct dsl *k = f->k;
	const struct staged own_keys = { .rows = rows_new(f, ROWS, "keys") };
	const struct staged own_values = { .rows = rows_new(f, ROWS,
							    "values") };

	b->key.lds = own_keys.rows;
	b->value.lds = own_values.rows;
	b->q = (struct staged){ rows_new(f, f->block, "q"),
				turned_new(f, "q turned") };
	b->dy = (struct staged){ rows_new(f, f->block, "dy"),
				 turned_new(f, "dy turned") };
	b->facts = (struct query_facts){ LDS(k, DSL_F32, f->block, "lse"),
					 LDS(k, DSL_F32, f->block, "dots"),
					 LDS(k, DSL_I32, f->block, "start") };
	for (uint32_t i = 0; i < ROWS; i += f->block) {
		struct staged ks = { .rows = ADVANCE(own_keys.rows,
						     (int)(i * f->pitch)) };
		struct staged vs = { .rows = ADVANCE(own_values.rows,
						     (int)(i * f->pitch)) };

		const struct part parts[] = { { keys, &ks }, { values, &vs } };

		stage_block(f, parts, ADD(f->first, i));
	}
}

/*
 * Arguments: dk, dv, dots, dy, lse, q, k, v, position, heads, kv_heads, tokens,
 * scale, as of attn_packed_dkv.  Groups: kv_heads times tokens /
 * KERNEL_PACKED_ROWS, rounded up.
 */
void build_flash_packed_dkv(struct dsl *k, const struct kernel_shape *s)
{
	struct flash f;
	struct sums by_k, by_v;
	struct key_back b = { .q = { .rows = { 0 } } };

	flash_begin(&f, k, s, 16);
	struct val dkp = give_array(k, DSL_F32, "dk");
	struct val dvp = give_array(k, s->type, "dv");
	struct val dots = take_array(k, DSL_F32, "dots");
	struct val dyp = take_array(k, s->type, "dy");
	struct val lse = take_array(k, DSL_F32, "lse");
	struct val qp = take_array(k, s->type, "q");
	struct val kp = take_array(k, s->type, "k");
	struct val vp = take_array(k, s->type, "v");
	sizes_take(&f);
	f.kv = find_tokens(&f, f.kv_heads, false);
	const struct vectors ks = vectors_of(&f, kp, f.kv_heads, f.kv);
	const struct vectors vs = vectors_of(&f, vp, f.kv_heads, f.kv);
	const struct vectors dks = vectors_of(&f, dkp, f.kv_heads, f.kv);
	const struct vectors dvs = vectors_of(&f, dvp, f.kv_heads, f.kv);
	struct val ratio = group_div(f.heads, f.kv_heads);
	struct val last = MIN(ADD(f.first, ROWS - 1), SUB(f.tokens, 1));

	key_back_begin(&f, &b, &ks, &vs);
	sums_begin(&f, &by_k);
	sums_begin(&f, &by_v);
	FOR(k, r, 0, ratio, 1)
	{
		struct val h = ADD(MUL(f.kv, ratio), r);
		const struct vectors qs = vectors_of(&f, qp, f.heads, h);
		const struct vectors dys = vectors_of(&f, dyp, f.heads, h);
		const struct part parts[] = { { &qs, &b.q }, { &dys, &b.dy } };

		FOR(k, j, f.first, f.tokens, (int)f.block)
		{
			struct val start = SUB(j, LOAD(f.position, j));

			IF(k, LE(READ_FIRST(start), last))
			{
				BARRIER(k);
				stage_block(&f, parts, j);
				stage_facts(&f, &b.facts, lse, dots, h, j);
				BARRIER(k);
				back_queries(&f, &b, &by_k, &by_v, j);
			}
		}
	}
	sums_store(&f, &by_k, &dks);
	sums_store(&f, &by_v, &dvs);
}
