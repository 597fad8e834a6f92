/*
 * compiler/kernels/decode.c - attention of one query per row.
 *
 * As decoding needs it: keys and values of a sequence's cache are read once, by
 * all waves of a group.
 *
 * A team of lanes holds one key at a time, KEY_PART elements in each lane, and
 * keeps its own maximum, sum and weighted values (online softmax).  Teams are
 * merged at the end, in a wave by shuffles and between waves in LDS.  Scores
 * are in units of log2: 2^score is the weight.
 *
 * Blocks of a paged cache are looked up a turn ahead, so that keys do not wait
 * for their table; those of a text's first keys come with the token.
 */
#include <float.h>

#include "compiler/kernels/kernels_int.h"

enum {
	KEY_PART = HEAD_PIECE,
	MAX_RATIO = KERNEL_MAX_RATIO,
	MAX_BLOCKS = KERNEL_TABLE_BEGIN
};

struct decode {
	struct dsl *k;
	const struct kernel_shape *s;
	uint32_t team;	/* lanes: a power of two */
	uint32_t teams; /* of the group */
	uint32_t ahead; /* keys that a team reads at a time */
	struct val first; /* element of a head that this lane begins with */
	struct val mine;  /* the team's number */
	struct cached kc, vc;
	struct val block[MAX_BLOCKS]; /* paged: where this turn's begin */
	struct val last_block;	      /* paged: the last key's */
	struct val begin;	      /* the first blocks; or none */
	struct val q[MAX_RATIO];      /* scaled */
	struct var max[MAX_RATIO], sum[MAX_RATIO], acc[MAX_RATIO];
	/* With i8: of q, and of the weights in acc times their scales. */
	struct val q_sum[MAX_RATIO];
	struct var weight[MAX_RATIO];
};

static struct val splat_f32(struct dsl *k, double x)
{
	struct val v[KEY_PART];

	for (int j = 0; j < KEY_PART; j++)
		v[j] = CONST(k, DSL_F32, x);
	return dsl_join(DSL_AT, v, KEY_PART);
}

static struct head_piece piece_of(const struct decode *d)
{
	return (struct head_piece){
		d->first, d->s->head, d->team * KEY_PART <= d->s->head
	};
}

/*
 * The lane's part of a key or value, as f32; 0 unless `in`.  With i8 its scale
 * stays apart: it is for one score or one weight, not for each element.  So
 * does that bytes become floats without a sign in one instruction, in two with
 * one: x is cached_more() more, which comes off the sums.
 */
struct part {
	struct val x, scale;
};

/* Where a team's key lies: its number from `base` on; paged: in which block. */
struct place {
	struct val base, number, offset;
	struct val first; /* the first team's key */
};

/* Do all teams have keys of the same block, so that all lanes know it? */
static bool shares_block(const struct decode *d)
{
	return d->teams <= KERNEL_BLOCK;
}

/* Key `u` of a turn that begins at j, a multiple of the teams, or of 16. */
static struct place find_key(const struct decode *d, struct val j, uint32_t u)
{
	struct val base = ADD(j, u * d->teams), key, block;

	if (!d->kc.table.k)
		return (struct place){ base, d->mine, { 0 }, base };
	if (shares_block(d))
		return (struct place){ AND(base, KERNEL_BLOCK - 1), d->mine,
				       d->block[u * d->teams / KERNEL_BLOCK],
				       base };
	key = ADD(base, d->mine);
	block = MIN(SHR(key, KERNEL_BLOCK_BITS), d->last_block);
	if (32 / d->team <= KERNEL_BLOCK)
		block = READ_FIRST(block);
	return (struct place){ CONST(d->k, DSL_I32, 0),
			       AND(key, KERNEL_BLOCK - 1),
			       cached_offset(&d->kc,
					     LOAD(d->kc.table, block)),
			       base };
}

static struct part part_load(const struct decode *d, const struct cached *c,
			     const struct place *at, const struct val *in)
{
	const struct head_piece piece = piece_of(d);
	const struct cached page = at->offset.k ? cached_block(c, at->offset) :
						  *c;
	struct val x = cached_load(&page, at->base, at->number, &piece, in);

	if (c->at.elem == DSL_U8) /* in F8_UNITs */
		x = f8_halves(x);
	if (!cached_is_scaled(c))
		return (struct part){ .x = CAST(DSL_F32, x) };
	return (struct part){ cached_numbers(c, x),
			      cached_scale(&page, at->base, at->number, &piece,
					   in) };
}

static struct val apply_scale(const struct part *p, struct val x)
{
	return p->scale.k ? MUL(x, p->scale) : x;
}

/* Products of a lane, then of the team. */
static struct val score_key(const struct decode *d, uint32_t r,
			    const struct part *key)
{
	struct val sum = MUL(ELEM(d->q[r], 0), ELEM(key->x, 0));

	if (key->scale.k)
		sum = FMA(d->q_sum[r], -cached_more(&d->kc), sum);
	for (uint32_t j = 1; j < KEY_PART; j++)
		sum = FMA(ELEM(d->q[r], j), ELEM(key->x, j), sum);
	sum = apply_scale(key, sum);
	for (uint32_t m = d->team / 2; m; m /= 2)
		sum = ADD(sum, SHUFFLE_XOR(sum, m));
	return sum;
}

static void weight_add(struct decode *d, uint32_t r, struct val back,
		       const struct val *p)
{
	struct val weight = MUL(GET(d->weight[r]), back);

	for (uint32_t u = 0; u < d->ahead; u++)
		weight = ADD(weight, p[u]);
	SET(d->weight[r], weight);
}

/*
 * `ahead` keys of each team, from `j` on; those at `end` and behind are none.
 */
static void attend_block(struct decode *d, struct val j, const struct val *end)
{
	enum { MOST = 4 };
	struct val in[MOST], p[MOST];
	struct part x[MOST], v[MOST];

	for (uint32_t u = 0; u < d->ahead; u++) {
		struct place at = find_key(d, j, u);
		if (end)
			in[u] = LT(ADD(at.first, d->mine), *end);
		x[u] = part_load(d, &d->kc, &at, end ? &in[u] : NULL);
		v[u] = part_load(d, &d->vc, &at, end ? &in[u] : NULL);
	}
	for (uint32_t r = 0; r < d->s->ratio; r++) {
		struct val was = GET(d->max[r]), m = was;
		for (uint32_t u = 0; u < d->ahead; u++) {
			p[u] = score_key(d, r, &x[u]);
			if (end)
				p[u] = SELECT(in[u], p[u], -FLT_MAX);
			m = MAX(m, p[u]);
		}
		struct val back = EXP2(SUB(was, m));
		struct val sum = MUL(GET(d->sum[r]), back);
		struct val acc = MUL(GET(d->acc[r]), back);
		for (uint32_t u = 0; u < d->ahead; u++) {
			p[u] = EXP2(SUB(p[u], m));
			if (end)
				p[u] = SELECT(in[u], p[u], 0.0);
			sum = ADD(sum, p[u]);
			p[u] = apply_scale(&v[u], p[u]);
			acc = FMA(p[u], v[u].x, acc);
		}
		if (v[0].scale.k)
			weight_add(d, r, back, p);
		SET(d->max[r], m);
		SET(d->sum[r], sum);
		SET(d->acc[r], acc);
	}
}

/* Teams of a wave become one: every lane holds its part of the whole. */
static void merge_wave(struct decode *d, uint32_t r)
{
	for (uint32_t m = d->team; m < 32; m *= 2) {
		struct val was = GET(d->max[r]), other = SHUFFLE_XOR(was, m);
		struct val top = MAX(was, other), sum = GET(d->sum[r]);
		struct val acc = GET(d->acc[r]);
		struct val a = EXP2(SUB(was, top)), b = EXP2(SUB(other, top));
		SET(d->max[r], top);
		SET(d->sum[r], FMA(sum, a, MUL(SHUFFLE_XOR(sum, m), b)));
		SET(d->acc[r], FMA(acc, a, MUL(SHUFFLE_XOR(acc, m), b)));
	}
}

/* What the group as a whole found for one head. */
struct found {
	struct val max, sum, value; /* value: of element i */
};

/* Waves of the group in LDS. */
struct meeting {
	struct val max, sum, acc;
	uint32_t width; /* elements of a head, padded */
	uint32_t waves;
};

static struct meeting publish_waves(struct decode *d)
{
	struct dsl *k = d->k;
	const uint32_t ratio = d->s->ratio;
	struct meeting t = { .width = d->team * KEY_PART,
			     .waves = d->s->group / 32 };

	t.max = LDS(k, DSL_F32, t.waves * ratio, "max");
	t.sum = LDS(k, DSL_F32, t.waves * ratio, "sum");
	t.acc = LDS(k, DSL_F32, t.waves * ratio * t.width, "acc");
	for (uint32_t r = 0; r < ratio; r++) {
		if (cached_is_scaled(&d->vc))
			SET(d->acc[r], FMA(d->weight[r], -cached_more(&d->vc),
					   d->acc[r]));
		if (d->s->cache == DSL_U8)
			SET(d->acc[r], MUL(GET(d->acc[r]), F8_UNIT));
		merge_wave(d, r);
	}
	IF (k, LT(LANE(k), d->team)) {
		for (uint32_t r = 0; r < ratio; r++) {
			struct val at = ADD(MUL(WAVE(k), ratio), r);

			STORE(t.max, at, GET(d->max[r]));
			STORE(t.sum, at, GET(d->sum[r]));
			STORE(ALIGNED(t.acc, 16), ADD(MUL(at, t.width),
				MUL(LANE(k), KEY_PART)), GET(d->acc[r]));
		}
	}
	BARRIER(k);
	return t;
}

/* Element i of head r. */
static struct found gather_head(struct decode *d, const struct meeting *t,
				struct val r, struct val i)
{
	enum { MOST = 32 };
	struct dsl *k = d->k;
	struct val at[MOST], m[MOST], top = CONST(k, DSL_F32, -FLT_MAX);
	struct val sum = CONST(k, DSL_F32, 0), value = sum;

	for (uint32_t w = 0; w < t->waves; w++) {
		at[w] = ADD(r, w * d->s->ratio);
		m[w] = LOAD(t->max, at[w]);
		top = MAX(top, m[w]);
	}
	for (uint32_t w = 0; w < t->waves; w++) {
		struct val a = EXP2(SUB(m[w], top));

		sum = FMA(LOAD(t->sum, at[w]), a, sum);
		value = FMA(LOAD(t->acc, ADD(MUL(at[w], t->width), i)), a,
			    value);
	}
	return (struct found){ top, sum, value };
}

/* Blocks of a turn's keys, from the one of key j on. */
static void look_up(const struct decode *d, struct val table, struct val j,
		    struct val *id)
{
	struct val first = SHR(j, KERNEL_BLOCK_BITS);

	for (uint32_t b = 0; b * KERNEL_BLOCK < d->teams * d->ahead; b++)
		id[b] = LOAD(table, ADD(first, b));
}

/* For the next turn: nobody waits for them before. */
static void keep_blocks(const struct decode *d, const struct val *id,
			struct var *next)
{
	for (uint32_t b = 0; b * KERNEL_BLOCK < d->teams * d->ahead; b++)
		SET(next[b], id[b]);
}

/* Where they begin. */
static void take_blocks(struct decode *d, const struct var *next)
{
	for (uint32_t b = 0; b * KERNEL_BLOCK < d->teams * d->ahead; b++)
		d->block[b] = cached_offset(&d->kc, GET(next[b]));
}

/*
 * Which keys: all of the sequence, or a chunk of them.  Whole blocks without
 * masks, then the rest.
 */
static void attend_keys(struct decode *d, struct val begin, struct val end)
{
	struct dsl *k = d->k;
	const uint32_t block = d->teams * d->ahead;
	const bool ahead = d->kc.table.k && shares_block(d);
	struct val whole = ADD(begin, AND(SUB(end, begin), -(int)block));
	struct var next[MAX_BLOCKS];
	struct val id[MAX_BLOCKS];

	if (d->kc.table.k)
		d->last_block = SHR(SUB(end, 1), KERNEL_BLOCK_BITS);
	for (uint32_t b = 0; ahead && b < MAX_BLOCKS; b++)
		next[b] = VAR(k, DSL_I32, 0);
	if (ahead) {
		look_up(d, d->begin.k ? d->begin : d->kc.table, begin, id);
		keep_blocks(d, id, next);
	}
	FOR(k, j, begin, whole, (int)block) {
		if (ahead) {
			take_blocks(d, next);
			look_up(d, d->kc.table, ADD(j, block), id);
		}
		attend_block(d, j, NULL);
		if (ahead)
			keep_blocks(d, id, next);
	}
	IF (k, LT(whole, end)) {
		if (ahead)
			take_blocks(d, next);
		attend_block(d, whole, &end);
	}
}

static void decode_begin(struct decode *d, struct dsl *k,
			 const struct kernel_shape *s)
{
	*d = (struct decode){ .k = k, .s = s, .team = 1 };
	while (d->team * KEY_PART < s->head)
		d->team *= 2;
	d->teams = s->group / d->team;
	d->ahead = s->ratio > 4 ? 2 : 4;
	struct val lane = AND(LANE(k), d->team - 1);
	d->first = CAST(DSL_U32, MUL(lane, KEY_PART));
	d->mine = SHR(LOCAL_ID(k, 0), __builtin_ctz(d->team));
}

/* Queries of one group: heads side by side that share keys; `by` is in log2. */
static void load_queries(struct decode *d, struct val q, struct val by)
{
	const struct head_piece piece = piece_of(d);
	struct dsl *k = d->k;

	for (uint32_t r = 0; r < d->s->ratio; r++) {
		struct val at = CAST(DSL_U32, CONST(k, DSL_I32,
						    r * d->s->head));
		struct val x = head_load(k, q, at, &piece, NULL);

		d->q[r] = MUL(CAST(DSL_F32, x), by);
		d->q_sum[r] = ELEM(d->q[r], 0);
		for (uint32_t j = 1; j < KEY_PART; j++)
			d->q_sum[r] = ADD(d->q_sum[r], ELEM(d->q[r], j));
		d->weight[r] = VAR(k, DSL_F32, 0);
		d->max[r] = VAR(k, DSL_F32, -FLT_MAX);
		d->sum[r] = VAR(k, DSL_F32, 0);
		d->acc[r] = VAR_OF(splat_f32(k, 0));
	}
}

/*
 * attn_decode.  Arguments: out [tokens][heads][head] (shape.type),
 * attn_split.   Arguments: part [tokens][heads][splits][head], top
 *		 [tokens][heads][splits][2] (f32): values weighted by
 *		 2^(score - top[0]), and the sum of these weights in top[1];
 * both then:	 q [tokens][q_ld] (shape.type), kc, vc (shape.cache), length,
 *		 slot [tokens] (i32), heads, kv_heads, q_ld, row, head (i32),
 *		 sequence (i64), chunk (i32: keys of a split; of attn_decode not
 *		 read), scale (f32).  Paged: chunk is a multiple of
 *		 KERNEL_BLOCK, and behind out of attn_decode is begin [tokens]
 *		 [KERNEL_TABLE_BEGIN] (i32): what the table begins with for the
 *		 token, so that its keys need not wait for slot and table.
 * Groups: (splits, tokens * heads / shape.ratio); attn_decode: splits is 1.
 * shape.ratio heads share a group; it divides heads / kv_heads.  A row
 * without keys gives zeros.
 */
void build_attn_decode(struct dsl *k, const struct kernel_shape *s)
{
	bool split = is_kernel(k, "attn_split");
	struct decode d;

	decode_begin(&d, k, s);
	struct val out = ARG_PTR(k, split ? DSL_F32 : s->type,
				 split ? "part" : "out", DSL_NOALIAS);
	struct val top = { 0 };
	if (split)
		top = ARG_PTR(k, DSL_F32, "top", DSL_NOALIAS);
	else if (s->paged)
		d.begin = ARG_PTR(k, DSL_I32, "begin", DSL_READONLY);
	struct val q = ARG_PTR(k, s->type, "q", DSL_READONLY);
	struct val kc = ARG_PTR(k, s->cache, "kc", DSL_READONLY);
	struct val vc = ARG_PTR(k, s->cache, "vc", DSL_READONLY);
	struct val length = ARG_PTR(k, DSL_I32, "length", DSL_READONLY);
	struct val slot = ARG_PTR(k, DSL_I32, "slot", DSL_READONLY);
	struct val heads = ARG(k, DSL_I32, "heads");
	struct val kv_heads = ARG(k, DSL_I32, "kv_heads");
	struct val q_ld = ARG(k, DSL_I32, "q_ld");
	struct cache_at c = cache_args(k, s);
	struct val chunk = ARG(k, DSL_I32, "chunk");
	struct val scale = MUL(ARG(k, DSL_F32, "scale"), 0x1.715476p0);
	struct val each = DIV(heads, (int)s->ratio), row = GROUP_ID(k, 1);
	struct val token = group_div(row, each);
	struct val h = MUL(SUB(row, MUL(token, each)), s->ratio);
	struct val kv = group_div(h, group_div(heads, kv_heads));
	struct val sq = LOAD(slot, token), zero = CONST(k, DSL_I32, 0);
	struct val part = GROUP_ID(k, 0), end = LOAD(length, token);
	struct val from = split ? MIN(MUL(part, chunk), end) : zero;

	if (s->cache == DSL_U8)
		scale = MUL(scale, F8_UNIT);
	if (d.begin.k)
		d.begin = ADVANCE(d.begin, MUL(token, KERNEL_TABLE_BEGIN));
	d.kc = cached_head(&c, kc, sq, kv, s->head);
	d.vc = cached_head(&c, vc, sq, kv, s->head);
	load_queries(&d,
		     head_at(ADVANCE(row_of(q, token, q_ld), MUL(h, s->head)),
			     s->head),
		     scale);
	attend_keys(&d, from, split ? MIN(ADD(from, chunk), end) : end);
	struct meeting t = publish_waves(&d);
	struct val first = ADD(MUL(token, heads), h);
	FOR(k, x, LOCAL_ID(k, 0), (int)(s->ratio * t.width), s->group) {
		struct val r = DIV(x, (int)t.width);
		struct val i = AND(x, t.width - 1);
		struct val to = ADD(first, r);
		struct found f = gather_head(&d, &t, r, i);
		struct val in = LT(i, s->head);
		struct val head = CONST(k, DSL_I32, s->head);

		if (split) {
			to = ADD(MUL(to, NUM_GROUPS(k, 0)), part);
			STORE_IF(in, row_of(out, to, head), i, f.value);
			STORE_IF(EQ(i, 0), top, SHL(to, 1), JOIN(f.max, f.sum));
		} else {
			struct val y = DIV(f.value, f.sum);

			STORE_IF(in, row_of(out, to, head), i,
				 CAST(s->type, SELECT(EQ(f.sum, 0.0), 0.0,
						      y)));
		}
	}
}

void attn_plain(struct dsl *k, const struct kernel_shape *shape,
		const struct attn_task *t)
{
	const int group = (int)shape->group / 2;
	struct kernel_shape s = *shape;
	struct val end = MIN(ADD(t->first, group), t->n);
	struct val zero = CONST(k, DSL_I32, 0);
	struct decode d;

	s.ratio = 1;
	decode_begin(&d, k, &s);
	d.kc = t->kc;
	d.vc = t->vc;
	FOR (k, i, t->first, end, 1) {
		struct val token = ADD(t->begin, i), row = t->h;

		load_queries(&d,
			     head_at(ADVANCE(row_of(t->q, token, t->q_ld),
					     MUL(t->h, s.head)),
				     s.head),
			     t->scale);
		attend_keys(&d, zero, MAX(attn_seen(t, i), 0));
		struct meeting m = publish_waves(&d);
		row = ADD(row, MUL(token, t->heads));
		FOR (k, x, LOCAL_ID(k, 0), (int)s.head, s.group) {
			struct found f = gather_head(&d, &m, zero, x);
			struct val y = row_of(t->out, row,
					      CONST(k, DSL_I32, s.head));

			store_f32(y, x, SELECT(EQ(f.sum, 0.0), 0.0,
					       DIV(f.value, f.sum)));
		}
		BARRIER(k);
	}
}

/*
 * Puts the splits of attn_split together.  Arguments: out [rows][n]
 * (shape.type), part, top, splits, n, rows (i32); a row is a token's head.
 */
void build_attn_join(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->type, "out", DSL_NOALIAS);
	struct val part = ARG_PTR(k, DSL_F32, "part", DSL_READONLY);
	struct val tops = ARG_PTR(k, DSL_F32, "top", DSL_READONLY);
	struct val splits = ARG(k, DSL_I32, "splits");
	struct val n = ARG(k, DSL_I32, "n"), rows = ARG(k, DSL_I32, "rows");
	struct val row = wave_row(k, s);

	IF (k, LT(row, rows)) {
		struct val at = MUL(row, splits);
		struct val p = row_of(part, at, n), y = row_of(out, row, n);
		struct val t = ADVANCE(tops, SHL(at, 1));
		struct var m = VAR(k, DSL_F32, -FLT_MAX);
		struct var l = VAR(k, DSL_F32, 0);

		FOR(k, i, LANE(k), splits, 32) {
			SET(m, MAX(m, LOAD(t, SHL(i, 1))));
		}
		struct val top = WAVE_MAX(GET(m));
		FOR(k, j, LANE(k), splits, 32) {
			struct val two = LOADV(t, SHL(j, 1), 2);

			SET(l, FMA(EXP2(SUB(ELEM(two, 0), top)), ELEM(two, 1),
				   l));
		}
		struct val sum = WAVE_SUM(GET(l));
		FOR(k, c, LANE(k), n, 32) {
			struct var v = VAR(k, DSL_F32, 0);

			FOR(k, g, 0, splits, 1) {
				struct val a = EXP2(SUB(LOAD(t, SHL(g, 1)),
							top));
				struct val x = LOAD(p, ADD(MUL(g, n), c));

				SET(v, FMA(a, x, v));
			}
			store_f32(y, c, SELECT(EQ(sum, 0.0), 0.0,
					       DIV(v, sum)));
		}
	}
}
