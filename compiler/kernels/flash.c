/*
 * compiler/kernels/flash.c - attention of many queries, by the matrix units.
 *
 * Scores are computed transposed: S' = K Q', keys by queries, so that a lane
 * holds one query's scores and the softmax needs one exchange, with the lane 16
 * apart.  Then O' = V' P', elements by queries, P' rounded to the cache's
 * type.  Rows of both products are numbered so that lane l holds eight
 * neighbouring ones: row 2 j + h of a matrix is key or element 8 h + j, h being
 * l / 16.  Keys lie in LDS as they are, values transposed, both padded so that
 * 16 lanes read 16 rows from different banks.  Scores are in units of log2.
 *
 * A cache of i8 becomes f16 on its way into LDS, once for all queries of the
 * group: that is three instructions an element there, while scales of 32
 * elements would split each product in four.  So do those of u8 and u32.
 */
#include <float.h>

#include "compiler/kernels/kernels_int.h"

enum { TILE = 16, PIECE = HEAD_PIECE, MAX_TILES = KERNEL_MAX_HEAD / TILE };

struct flash {
	struct dsl *k;
	const struct kernel_shape *s;
	enum dsl_type type; /* of both operands of products */
	uint32_t keys;	/* in LDS at a time */
	uint32_t wide;	/* elements of a head, to whole tiles */
	uint32_t tiles; /* wide / TILE */
	uint32_t k_pitch, v_pitch, q_pitch; /* elements */
	bool q_lds;	/* queries wait in LDS: too many for registers */
	struct val kt, vt, qt; /* LDS */
	struct val column, half, row; /* of this lane in a tile; A's row */
	struct cached kc, vc;	      /* this head's */
	struct val length, limit;     /* keys of all, and of this query */
	struct val whole, last; /* keys that all, that any of the wave see */
	struct val scale;
	struct val block[2]; /* paged: where those of the keys in LDS begin */
	struct val q[MAX_TILES];
	struct var max, sum, acc[MAX_TILES];
};

static struct val tile_of(struct val p, struct val at)
{
	return LOADV(ALIGNED(p, 16), at, TILE);
}

/* ----------------------------------------------------------- staging ---- */

/* Unit of this work-item's share. */
static struct val unit_of(const struct flash *f, uint32_t step)
{
	struct dsl *k = f->k;

	return ADD(LOCAL_ID(k, 0), step);
}

static struct head_piece piece_of(const struct flash *f, struct val number)
{
	return (struct head_piece){ CAST(DSL_U32, MUL(number, PIECE)),
				    f->s->head, f->wide == f->s->head };
}

/* Units that a work-item loads before it stores the first. */
enum { KEY_UNITS = 4, VALUE_UNITS = KEY_UNITS / 2 };

/* A piece of a key or value as it lies in the cache. */
struct raw {
	struct val x, scale;
};

/*
 * Behind the last key comes that one again, so that loads need no mask: its
 * scores are hidden.  So is what is behind it in its block.
 */
static struct raw raw_load(const struct cached *c, struct val base,
			   struct val number, const struct head_piece *p)
{
	struct raw r = { .x = cached_load(c, base, number, p, NULL) };

	if (cached_is_scaled(c))
		r.scale = cached_scale(c, base, number, p, NULL);
	return r;
}

/*
 * Of a paged cache, key skip + number of those for LDS; `one`: its block is that
 * of `skip`.
 */
static struct raw page_load(const struct flash *f, const struct cached *c,
			    uint32_t skip, struct val number, bool one,
			    const struct head_piece *p)
{
	struct val from = f->block[one ? skip / KERNEL_BLOCK : 0];
	struct cached page;

	number = ADD(number, one ? skip % KERNEL_BLOCK : skip);
	if (!one && f->keys > KERNEL_BLOCK)
		from = SELECT(GE(number, KERNEL_BLOCK), f->block[1], from);
	if (!one)
		number = AND(number, KERNEL_BLOCK - 1);
	page = cached_block(c, from);
	return raw_load(&page, CONST(f->k, DSL_I32, 0), number, p);
}

/* The same in the type of products. */
static struct val raw_value(const struct flash *f, const struct raw *r)
{
	if (f->s->cache == DSL_U8)
		return MUL(f8_halves(r->x), F8_UNIT);
	if (!r->scale.k)
		return r->x;
	return CAST(f->type, FMA(cached_numbers(&f->kc, r->x), r->scale,
				 MUL(r->scale, -cached_more(&f->kc))));
}

/* A weight of 0 does not hide an infinite value: those of no key are 0. */
static void raw_hide(const struct flash *f, struct raw *r, struct val in)
{
	if (r->scale.k)
		r->scale = SELECT(in, r->scale, 0.0);
	else /* two elements at a time */
		r->x = BITS(f->s->cache,
			    SELECT(in, BITS(DSL_U32, r->x), 0));
}

/* Keys of one block, as they lie in the cache. */
struct key_unit {
	struct raw r;
	struct val at, in;
};

static struct key_unit key_load(const struct flash *f, struct val base,
				uint32_t step)
{
	const uint32_t each = f->wide / PIECE;
	/* In whole rows a work-item's place in its row stays the same. */
	const uint32_t rows = step % each ? 0 : step / each;
	struct val u = unit_of(f, step), l = unit_of(f, rows ? 0 : step);
	struct val row = DIV(l, (int)each), number = SUB(l, MUL(row, each));
	struct head_piece p = piece_of(f, number);
	const bool one = f->s->group % each == 0 &&
			 KERNEL_BLOCK % (f->s->group / each) == 0;

	return (struct key_unit){
		f->kc.table.k ? page_load(f, &f->kc, rows, row, one, &p) :
				raw_load(&f->kc, ADD(base, rows), row, &p),
		ADD(MUL(ADD(row, rows), f->k_pitch), MUL(number, PIECE)),
		LT(u, (int)(f->keys * each)),
	};
}

/* Values of two keys at a time, side by side in LDS. */
struct value_unit {
	struct raw r[2];
	struct val key, at, in;
};

static struct value_unit value_load(const struct flash *f, struct val base,
				    uint32_t step)
{
	const uint32_t pairs = f->keys / 2;
	struct val u = unit_of(f, step), l = unit_of(f, 0);
	struct val two = SHL(AND(l, pairs - 1), 1);
	struct val number = ADD(DIV(l, (int)pairs), step / pairs);
	const uint32_t each = f->wide / PIECE;
	/* The last vector of a block may be that of the cache. */
	if (f->vc.table.k && pairs * each % f->s->group)
		number = MIN(number, (int)each - 1);
	struct head_piece p = piece_of(f, number);
	struct value_unit v = {
		.key = ADD(base, two),
		.at = ADD(MUL(number, PIECE * f->v_pitch), two),
		.in = LT(u, (int)(pairs * f->wide / PIECE)),
	};

	for (uint32_t i = 0; i < 2; i++)
		v.r[i] = f->vc.table.k ?
				 page_load(f, &f->vc, 0, ADD(two, i), false,
					   &p) :
				 raw_load(&f->vc, base, ADD(two, i), &p);
	return v;
}

static void value_store(const struct flash *f, struct value_unit *v)
{
	for (uint32_t i = 0; i < 2; i++)
		raw_hide(f, &v->r[i], LT(ADD(v->key, i), f->length));
	struct val x = raw_value(f, &v->r[0]), y = raw_value(f, &v->r[1]);
	for (uint32_t j = 0; j < PIECE; j++)
		STORE_IF(v->in, ALIGNED(f->vt, 4), ADD(v->at, j * f->v_pitch),
			 JOIN(ELEM(x, j), ELEM(y, j)));
}

/* A block of keys and their values to LDS: loads first, that they overlap. */
static void stage_block(const struct flash *f, struct val base)
{
	const uint32_t group = f->s->group;
	const uint32_t units = f->keys * f->wide / PIECE;
	struct key_unit k[KEY_UNITS];
	struct value_unit v[VALUE_UNITS];

	for (uint32_t at = 0; at < units; at += KEY_UNITS * group) {
		uint32_t n = 0, m = 0;

		for (; n < KEY_UNITS && at + n * group < units; n++)
			k[n] = key_load(f, base, at + n * group);
		for (; m < VALUE_UNITS && at / 2 + m * group < units / 2; m++)
			v[m] = value_load(f, base, at / 2 + m * group);
		for (uint32_t i = 0; i < n; i++)
			STORE_IF(k[i].in, ALIGNED(f->kt, 16), k[i].at,
				 raw_value(f, &k[i].r));
		for (uint32_t i = 0; i < m; i++)
			value_store(f, &v[i]);
	}
}

/* ---------------------------------------------------------- products ---- */

static struct val query_tile(const struct flash *f, uint32_t c)
{
	struct dsl *k = f->k;

	if (!f->q_lds)
		return f->q[c];
	struct val row = ADD(MUL(WAVE(k), TILE), f->column);
	return FRAG_OPERAND('B', tile_of(f->qt, ADD(MUL(row, f->q_pitch),
						    c * TILE)));
}

/* Scores of keys 16 g + 8 half + 0..7 of the block; not yet scaled. */
static struct val compute_scores(const struct flash *f, uint32_t g)
{
	struct dsl *k = f->k;
	struct val s = FRAG_ZERO(k, DSL_F32);
	struct val row = MUL(f->row, f->k_pitch);

	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val at = ADD(row, g * TILE * f->k_pitch + c * TILE);

		s = WMMA(FRAG_OPERAND('A', tile_of(f->kt, at)),
			 query_tile(f, c), s);
	}
	return FRAG_ELEMS(s);
}

/* Where a query's keys end within the block, the others get -infinity. */
static struct val mask_scores(const struct flash *f, struct val s,
			      struct val base, uint32_t g)
{
	struct dsl *k = f->k;
	struct var out = VAR_OF(s);

	IF (k, GT(ADD(base, f->keys), f->whole)) {
		struct val key = ADD(ADD(base, MUL(f->half, 8)), g * TILE);

		SET(out, SELECT(LT(RANGE(key, 8), f->limit), s, -1.0 / 0.0));
	}
	return GET(out);
}

/* Both halves' weights of a tile, as B: 16 keys of this lane's query. */
static struct val weights_operand(const struct flash *f, struct val p)
{
	struct val mine = BITS(DSL_I32, CAST(f->type, p));
	struct val other = SHUFFLE_XOR(mine, 16), low = EQ(f->half, 0);
	struct val a = SELECT(low, mine, other), b = SELECT(low, other, mine);

	return FRAG_OPERAND('B', BITS(f->type, JOIN(a, b)));
}

static struct val max_elem(struct val m, struct val x)
{
	for (uint32_t j = 0; j < x.n; j++)
		m = MAX(m, ELEM(x, j));
	return m;
}

/* A larger maximum makes what was summed smaller; mostly there is none. */
static void rescale_sums(struct flash *f, struct val m)
{
	struct dsl *k = f->k;

	IF (k, ANY(GT(m, f->max))) {
		struct val by = EXP2(SUB(f->max, m));

		SET(f->sum, MUL(f->sum, by));
		for (uint32_t c = 0; c < f->tiles; c++)
			SET(f->acc[c], FRAG_OF(MUL(FRAG_ELEMS(f->acc[c]), by)));
		SET(f->max, m);
	}
}

static struct val value_tile(const struct flash *f, uint32_t c, uint32_t g)
{
	struct val row = MUL(f->row, f->v_pitch);

	return FRAG_OPERAND('A', tile_of(f->vt, ADD(row, c * TILE * f->v_pitch +
							 g * TILE)));
}

/* Adds the block's weighted values; each tile is read while one is used. */
static void add_values(struct flash *f, const struct val *w, uint32_t groups)
{
	const uint32_t n = f->tiles * groups;
	struct val next = value_tile(f, 0, 0);

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t c = i / groups, j = i + 1;
		struct val v = next;

		if (j < n)
			next = value_tile(f, j / groups, j % groups);
		SET(f->acc[c], WMMA(v, w[i % groups], GET(f->acc[c])));
	}
}

/* The block of keys in LDS, for this wave's queries. */
static void attend_tile(struct flash *f, struct val base)
{
	enum { MOST = 2 };
	struct val s[MOST], w[MOST];
	const uint32_t groups = f->keys / TILE;

	struct val m = CONST(f->k, DSL_F32, -1.0 / 0.0);
	for (uint32_t g = 0; g < groups; g++) {
		s[g] = mask_scores(f, compute_scores(f, g), base, g);
		m = max_elem(m, s[g]);
	}
	m = MUL(MAX(m, SHUFFLE_XOR(m, 16)), f->scale);
	rescale_sums(f, MAX(f->max, m));
	struct val less = NEG(f->max), sum = GET(f->sum);
	for (uint32_t g = 0; g < groups; g++) {
		struct val p = EXP2(FMA(s[g], f->scale, less));
		for (uint32_t j = 0; j < p.n; j++)
			sum = ADD(sum, ELEM(p, j));
		w[g] = weights_operand(f, p);
	}
	SET(f->sum, sum);
	add_values(f, w, groups);
}

/* ------------------------------------------------------------- kernel ---- */

static void flash_begin(struct flash *f, struct dsl *k,
			const struct kernel_shape *s)
{
	const uint32_t tiles = (s->head + TILE - 1) / TILE;

	*f = (struct flash){ .k = k, .s = s, .tiles = tiles,
			     .wide = tiles * TILE, .q_lds = tiles > 8,
			     .keys = tiles > 8 ? 16 : 32,
			     .type = s->cache == DSL_I8 || s->cache == DSL_U8 ||
						     s->cache == DSL_U32 ?
					     DSL_F16 : s->cache };
	f->k_pitch = f->q_pitch = f->wide + PIECE;
	f->v_pitch = f->keys + PIECE;
	f->kt = LDS(k, f->type, f->keys * f->k_pitch, "keys");
	f->vt = LDS(k, f->type, f->wide * f->v_pitch, "values");
	if (f->q_lds)
		f->qt = LDS(k, f->type, s->group / 2 * f->q_pitch, "queries");
	struct val lane = AND(LANE(k), TILE - 1);
	f->column = lane;
	f->half = SHR(LANE(k), 4);
	f->row = ADD(MUL(AND(lane, 1), 8), SHR(lane, 1));
	f->max = VAR(k, DSL_F32, -FLT_MAX);
	f->sum = VAR(k, DSL_F32, 0);
	for (uint32_t c = 0; c < tiles; c++)
		f->acc[c] = VAR_OF(FRAG_ZERO(k, DSL_F32));
}

/* This lane's query, rounded to the type of products. */
static void load_query(struct flash *f, struct val q)
{
	struct dsl *k = f->k;
	struct val none = CONST(k, DSL_U32, 0);
	struct val row = ADD(MUL(WAVE(k), TILE), f->column);

	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val two[2];
		for (uint32_t j = 0; j < 2; j++) {
			struct val n = CONST(k, DSL_I32, 2 * c + j);
			struct head_piece p = piece_of(f, n);
			two[j] = head_load(k, q, none, &p, NULL);
		}
		struct val x = CAST(f->type, CAST(DSL_F32, JOIN(two[0],
								two[1])));
		if (f->q_lds)
			STORE(ALIGNED(f->qt, 16), ADD(MUL(row, f->q_pitch),
						      c * TILE), x);
		else
			f->q[c] = FRAG_OPERAND('B', x);
	}
}

/* Elements 16 c + 8 half + 0..7 of this lane's query. */
static void store_result(struct flash *f, struct val y, struct val in)
{
	struct dsl *k = f->k;
	struct val sum = ADD(f->sum, SHUFFLE_XOR(GET(f->sum), 16));
	struct val by = SELECT(EQ(sum, 0.0), 0.0, DIV(1.0, sum));
	struct val none = CONST(k, DSL_U32, 0);

	for (uint32_t c = 0; c < f->tiles; c++) {
		struct val x = MUL(FRAG_ELEMS(f->acc[c]), by);
		struct head_piece p = piece_of(f, ADD(f->half, 2 * c));

		head_store(k, y, none, &p, CAST((enum dsl_type)y.elem, x),
			   &in);
	}
}

struct val attn_seen(const struct attn_task *t, struct val i)
{
	struct val hidden = MUL(t->causal, SUB(SUB(t->n, 1), i));

	return SUB(t->length, hidden);
}

/* Blocks of the keys from j on; behind the last key's comes that one again. */
static void look_up(const struct flash *f, struct val j, struct var id[2])
{
	/* Of a sequence without keys: -1. */
	struct val last = SHR(MAX(f->kc.last, 0), KERNEL_BLOCK_BITS);

	for (uint32_t b = 0; b < f->keys / KERNEL_BLOCK; b++) {
		struct val at = ADD(SHR(j, KERNEL_BLOCK_BITS), b);
		SET(id[b], LOAD(f->kc.table, MIN(at, last)));
	}
}

static void run_task(struct flash *f, const struct attn_task *t)
{
	struct dsl *k = f->k;
	const int group = (int)f->s->group / 2;
	struct val base = ADD(t->first, MUL(WAVE(k), TILE));
	struct val last = SUB(t->n, 1), i = ADD(base, f->column);
	struct val token = ADD(t->begin, MIN(i, last));
	struct val end = attn_seen(t, MIN(ADD(t->first, group - 1), last));

	f->scale = t->scale;
	f->length = t->length;
	f->kc = t->kc;
	f->vc = t->vc;
	f->kc.last = f->vc.last = SUB(t->length, 1);
	f->limit = attn_seen(t, i);
	f->whole = attn_seen(t, base);
	f->last = attn_seen(t, MIN(ADD(base, TILE - 1), last));
	load_query(f, head_at(ADVANCE(row_of(t->q, token, t->q_ld),
				      MUL(t->h, f->s->head)), f->s->head));
	struct var id[2];
	if (f->kc.table.k) {
		id[0] = VAR(k, DSL_I32, 0);
		id[1] = VAR(k, DSL_I32, 0);
		look_up(f, CONST(k, DSL_I32, 0), id);
	}
	FOR (k, j, 0, end, (int)f->keys) {
		BARRIER(k);
		if (f->kc.table.k) {
			for (uint32_t b = 0; b < f->keys / KERNEL_BLOCK; b++)
				f->block[b] = cached_offset(&f->kc,
							    GET(id[b]));
			look_up(f, ADD(j, f->keys), id);
		}
		stage_block(f, j);
		BARRIER(k);
		IF (k, LT(j, f->last)) {
			attend_tile(f, j);
		}
	}
	struct val row = ADD(MUL(token, t->heads), t->h);
	store_result(f, head_at(row_of(t->out, row, CONST(k, DSL_I32,
				       f->s->head)), f->s->head),
		     LT(i, t->n));
}

/*
 * Arguments: out [tokens][heads][head], q [tokens][q_ld] (shape.type), kc, vc
 * (shape.cache), first [sequences + 1], length, slot [sequences] (i32), heads,
 * kv_heads, q_ld, row, head (i32), sequence (i64), causal (i32), scale (f32,
 * more than 0).  The queries of sequence b are tokens first[b] to first[b + 1]
 * - 1; its keys are length[b], to which the queries' own belong, as the last,
 * if it is causal: then 1, and query i of n sees length - (n - 1 - i) of them;
 * else 0, and all see all.  A query without keys gives zeros.
 *
 * Groups: (sequences * heads, queries of the longest sequence / (group / 2)).
 * Those of the last queries, which see the most keys, begin first, and those
 * of few keys fill the gaps at the end; the other way round, and with a tile of
 * the queries in each column, every WGP would get the same tile of all heads.
 * With a cache of 16 bits queries and weights are rounded to its type, and what
 * is infinite or NaN in a value reaches all queries of its tile; with one of
 * f32 neither.  One of i8 is as one of f16, to which elements are rounded: from
 * 65520 on they are infinite.  So is one of u8 or u32.
 */
void build_attention(struct dsl *k, const struct kernel_shape *s)
{
	struct attn_task t;
	struct flash f;

	t.out = ARG_PTR(k, s->type, "out", DSL_NOALIAS);
	t.q = ARG_PTR(k, s->type, "q", DSL_READONLY);
	struct val kc = ARG_PTR(k, s->cache, "kc", DSL_READONLY);
	struct val vc = ARG_PTR(k, s->cache, "vc", DSL_READONLY);
	struct val first = ARG_PTR(k, DSL_I32, "first", DSL_READONLY);
	struct val length = ARG_PTR(k, DSL_I32, "length", DSL_READONLY);
	struct val slots = ARG_PTR(k, DSL_I32, "slot", DSL_READONLY);
	t.heads = ARG(k, DSL_I32, "heads");
	struct val kv_heads = ARG(k, DSL_I32, "kv_heads");
	t.q_ld = ARG(k, DSL_I32, "q_ld");
	struct cache_at c = cache_args(k, s);
	t.causal = ARG(k, DSL_I32, "causal");
	t.scale = MUL(ARG(k, DSL_F32, "scale"), 0x1.715476p0); /* log2 e */
	struct val x = GROUP_ID(k, 0), b = group_div(x, t.heads);
	t.h = SUB(x, MUL(b, t.heads));
	t.begin = LOAD(first, b);
	t.n = SUB(LOAD(first, ADD(b, 1)), t.begin);
	t.length = LOAD(length, b);
	struct val behind = SUB(NUM_GROUPS(k, 1), ADD(GROUP_ID(k, 1), 1));
	t.first = MUL(behind, (int)s->group / 2);
	IF (k, LT(t.first, t.n)) {
		struct val kv = group_div(t.h, group_div(t.heads,
							kv_heads));
		struct val slot = LOAD(slots, b);

		t.kc = cached_head(&c, kc, slot, kv, s->head);
		t.vc = cached_head(&c, vc, slot, kv, s->head);
		if (s->cache == DSL_F32) {
			attn_plain(k, s, &t);
		} else {
			flash_begin(&f, k, s);
			run_task(&f, &t);
		}
	}
}
