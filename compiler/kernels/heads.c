/*
 * compiler/kernels/heads.c - heads of queries and keys: their norm, their
 * rotation, their way into the cache.
 *
 * One wave per head.
 */
#include <math.h>

#include "compiler/kernels/kernels_int.h"

/* Which of its elements there are: NULL if all. */
static bool piece_mask(struct dsl *k, const struct head_piece *piece,
		       struct val at, struct val *i, struct val *in)
{
	const bool given = in->k;
	struct val there;

	*i = ADD(at, piece->first);
	if (piece->inside && piece->head % HEAD_PIECE == 0)
		return given;
	if (piece->head % HEAD_PIECE) {
		*i = RANGE(*i, HEAD_PIECE);
		there = LT(RANGE(piece->first, HEAD_PIECE), piece->head);
	} else {
		there = LT(piece->first, piece->head);
	}
	*in = given ? AND(there, *in) : there;
	return k != NULL;
}

struct val head_load(struct dsl *k, struct val p, struct val at,
		     const struct head_piece *piece, const struct val *in)
{
	struct val i, mask = in ? *in : (struct val){ 0 };
	const bool masked = piece_mask(k, piece, at, &i, &mask);

	if (piece->head % HEAD_PIECE)
		return LOAD_IF(mask, p, i);
	return masked ? LOADV_IF(mask, p, i, HEAD_PIECE) :
			LOADV(p, i, HEAD_PIECE);
}

void head_store(struct dsl *k, struct val p, struct val at,
		const struct head_piece *piece, struct val x,
		const struct val *in)
{
	struct val i, mask = in ? *in : (struct val){ 0 };

	if (piece_mask(k, piece, at, &i, &mask))
		STORE_IF(mask, p, i, x);
	else
		STORE(p, i, x);
}

struct val head_at(struct val p, uint32_t head)
{
	return head % HEAD_PIECE ? p : ALIGNED(p, 16);
}

/* ----------------------------------------------- into the cache at once -- */

enum { MAX_PARTS = 4 }; /* of 32 pairs, in a head of 256 */

/*
 * The pairs (i, i + n/2) of a head that a lane holds: `width` neighbouring i
 * in each part, so that a part is a vector of each half.
 */
struct pairs {
	struct dsl *k;
	uint32_t n, half, width, parts;
	bool turned;
	struct val i[MAX_PARTS], in[MAX_PARTS];
};

static struct pairs pairs_of(struct dsl *k, uint32_t n)
{
	struct pairs p = { .k = k, .n = n, .half = n / 2 };

	p.width = p.half % 64 ? 1 : p.half % 128 ? 2 : 4;
	p.parts = (p.half + 32 * p.width - 1) / (32 * p.width);
	for (uint32_t j = 0; j < p.parts; j++) {
		p.i[j] = ADD(MUL(LANE(k), p.width), 32 * p.width * j);
		p.in[j] = LT(p.i[j], p.half);
	}
	return p;
}

static bool part_whole(const struct pairs *p, uint32_t j)
{
	return (j + 1) * 32 * p->width <= p->half;
}

static struct val pair_load(const struct pairs *p, struct val at, uint32_t j,
			    uint32_t first)
{
	struct val i = ADD(p->i[j], first);

	return CAST(DSL_F32, part_whole(p, j) ?
		    LOADV(at, i, p->width) :
		    LOADV_IF(p->in[j], at, i, p->width));
}

static void pair_store(const struct pairs *p, struct val at, uint32_t j,
		       uint32_t first, struct val v)
{
	struct val i = ADD(p->i[j], first);

	if (part_whole(p, j))
		STORE(at, i, v);
	else
		STORE_IF(p->in[j], at, i, v);
}

/* A head in registers: element i[j] of each half. */
struct halves {
	struct val x[2][MAX_PARTS];
};

/* The largest of each element's group, given that of its 16 neighbours. */
static void group_tops(const struct pairs *p, struct halves *t)
{
	const uint32_t last = p->parts - 1;
	struct val low = LT(LANE(p->k), 16), other[MAX_PARTS], up, down;

	for (uint32_t j = 0; j < 2 * p->parts && p->half % 32 == 0; j++)
		t->x[j & 1][j / 2] = MAX(t->x[j & 1][j / 2], SHUFFLE_XOR(
			t->x[j & 1][j / 2], 16 / p->width));
	if (p->half % 32 == 0)
		return;
	/* The middle group is in both halves: later ones begin in lane 16. */
	for (uint32_t j = 0; j < p->parts; j++)
		other[j] = SHUFFLE_XOR(t->x[1][j], 16);
	up = t->x[0][last];
	t->x[0][last] = MAX(up, t->x[1][0]);
	for (uint32_t j = 0; j < last; j++)
		t->x[0][j] = MAX(t->x[0][j], SHUFFLE_XOR(t->x[0][j], 16));
	for (uint32_t j = 0; j < p->parts; j++) {
		down = j < last ? other[j + 1] : other[j];
		t->x[1][j] = MAX(t->x[1][j], SELECT(low, up, down));
		up = other[j];
	}
}

/* Codes of 4 bits of element i on as words, which the first lane of each has. */
static void codes_store(const struct pairs *p, struct val at, struct val i,
			struct val in, struct val code)
{
	struct val first = AND(i, HEAD_PIECE - 1), word = ELEM(code, 0);

	for (uint32_t w = 1; w < p->width; w++)
		word = OR(word, SHL(ELEM(code, w), 4 * w));
	word = SHL(word, CAST(DSL_U32, MUL(first, 4)));
	for (uint32_t m = 1; m * p->width < HEAD_PIECE; m *= 2)
		word = OR(word, SHUFFLE_XOR(word, m));
	STORE_IF(AND(in, EQ(first, 0)), at, SHR(i, 3), word);
}

static void head_quantize(const struct pairs *p, struct val at,
			  const struct halves *y)
{
	const bool four = at.elem == DSL_U32;
	struct dsl *k = p->k;
	struct val scales = cache_scales(at, CONST(k, DSL_I32, p->n));
	struct halves t;

	for (uint32_t h = 0; h < 2; h++)
		for (uint32_t j = 0; j < p->parts; j++) {
			struct val m = four ?
				quant4_top(CONST(k, DSL_U32, 0), y->x[h][j]) :
				quant_top(CONST(k, DSL_I32, 0), y->x[h][j]);
			for (uint32_t w = 1; w < 16 / p->width; w *= 2)
				m = MAX(m, SHUFFLE_XOR(m, w));
			t.x[h][j] = m;
		}
	group_tops(p, &t);
	for (uint32_t h = 0; h < 2; h++)
		for (uint32_t j = 0; j < p->parts; j++) {
			struct val i = ADD(p->i[j], h * p->half);
			struct val begins = EQ(AND(i, KERNEL_CACHE_GROUP - 1),
					       0);
			struct quant q = four ? quant4_of(t.x[h][j]) :
						quant_of(t.x[h][j]);

			if (four)
				codes_store(p, at, i, p->in[j],
					    quant4(&q, y->x[h][j]));
			else
				pair_store(p, at, j, h * p->half,
					   quantize(&q, y->x[h][j]));
			STORE_IF(AND(p->in[j], begins), scales,
				 SHR(i, KERNEL_CACHE_GROUP_BITS), q.scale);
		}
}

/* Sums and differences of elements a power of two apart, in a lane or two. */
static struct val half_turn(const struct pairs *p, struct val x)
{
	struct val e[KERNEL_VECTOR];

	for (uint32_t m = 1; m < p->width; m *= 2) {
		for (uint32_t w = 0; w < p->width; w++)
			e[w] = w & m ? SUB(ELEM(x, w ^ m), ELEM(x, w)) :
				       ADD(ELEM(x, w), ELEM(x, w ^ m));
		x = dsl_join(DSL_AT, e, p->width);
	}
	for (uint32_t m = 1; m * p->width < p->half; m *= 2) {
		struct val low = EQ(AND(LANE(p->k), (int)m), 0);
		struct val sign = SELECT(low, CONST(p->k, DSL_F32, 1), -1.0);

		x = FMA(x, sign, SHUFFLE_XOR(x, m));
	}
	return x;
}

/* Times Hadamard's matrix, normalized; heads of a power of two are one part. */
static void head_turn(const struct pairs *p, struct halves *y)
{
	const double size = 1 / sqrt(p->n);
	struct val a = y->x[0][0], b = y->x[1][0];

	y->x[0][0] = MUL(half_turn(p, ADD(a, b)), size);
	y->x[1][0] = MUL(half_turn(p, SUB(a, b)), size);
}

static void head_keep(const struct pairs *p, struct val at,
		      const struct halves *from)
{
	const enum dsl_type type = at.elem;
	struct halves y = *from;

	if (p->turned)
		head_turn(p, &y);
	if (type == DSL_I8 || type == DSL_U32) {
		head_quantize(p, at, &y);
		return;
	}
	for (uint32_t j = 0; j < p->parts; j++)
		for (uint32_t h = 0; h < 2; h++)
			pair_store(p, at, j, h * p->half,
				   CAST(type, type == DSL_U8 ?
						      f8_code(y.x[h][j]) :
						      y.x[h][j]));
}

/* What turns a head: rows of tables for one position. */
struct turn {
	struct val w, eps, cosine, sine;
};

/* y = rope(rms_norm(x) w) */
static void norm_turn(const struct pairs *p, const struct turn *t,
		      struct val x, struct val y)
{
	struct val a[MAX_PARTS], b[MAX_PARTS];
	struct val sum = CONST(p->k, DSL_F32, 0);
	struct halves out;

	for (uint32_t j = 0; j < p->parts; j++) {
		a[j] = pair_load(p, x, j, 0);
		b[j] = pair_load(p, x, j, p->half);
		sum = add_dot(a[j], a[j], sum);
		sum = add_dot(b[j], b[j], sum);
	}
	struct val mean = MUL(WAVE_SUM(sum), 1.0 / p->n);
	struct val r = DIV(1.0, SQRT(ADD(mean, t->eps)));
	for (uint32_t j = 0; j < p->parts; j++) {
		struct val c = pair_load(p, t->cosine, j, 0);
		struct val d = pair_load(p, t->sine, j, 0);
		struct val u = MUL(MUL(a[j], r), pair_load(p, t->w, j, 0));
		struct val v = MUL(MUL(b[j], r),
				   pair_load(p, t->w, j, p->half));

		out.x[0][j] = SUB(MUL(u, c), MUL(v, d));
		out.x[1][j] = FMA(v, c, MUL(u, d));
	}
	head_keep(p, y, &out);
}

static void copy_head(const struct pairs *p, struct val x, struct val y)
{
	struct halves h;

	for (uint32_t j = 0; j < p->parts; j++)
		for (uint32_t i = 0; i < 2; i++)
			h.x[i][j] = pair_load(p, x, j, i * p->half);
	head_keep(p, y, &h);
}

/* Vectors of a lane lie at multiples of their size where heads do. */
static struct val head_ptr(struct val p, const struct pairs *at)
{
	return at->width > 1 ? ALIGNED(p, 4 * at->width) : p;
}

/*
 * Queries are turned into `out`, keys into the cache, values copied there.
 * Arguments: out [tokens][heads][head] (shape.type), kc, vc (shape.cache),
 * q [tokens][q_ld], k, v [tokens][kv_ld], qw, kw [head] (shape.type), cos, sin
 * [positions][head / 2] (f32), position, slot [tokens] (i32), heads, kv_heads,
 * q_ld, kv_ld, row, head (i32), sequence (i64): the cache's strides, see
 * kernels.h; tokens (i32), eps (f32).  A row per token and head of q, k and v:
 * tokens * (heads + 2 kv_heads).  shape.head is even.
 */
void build_qk_norm_rope(struct dsl *k, const struct kernel_shape *s)
{
	if (s->head % 2)
		FAIL(k, "heads of %u elements have no pairs; wanted an even "
		     "number", s->head);
	struct pairs p = pairs_of(k, s->head);
	p.turned = s->turned;
	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val kc = ARG_PTR(k, s->cache, "kc", 0);
	struct val vc = ARG_PTR(k, s->cache, "vc", 0);
	struct val q = ARG_PTR(k, s->type, "q", 0);
	struct val ki = ARG_PTR(k, s->type, "k", 0);
	struct val vi = ARG_PTR(k, s->type, "v", 0);
	struct val qw = ARG_PTR(k, s->type, "qw", DSL_READONLY);
	struct val kw = ARG_PTR(k, s->type, "kw", DSL_READONLY);
	struct val cosine = ARG_PTR(k, DSL_F32, "cos", DSL_READONLY);
	struct val sine = ARG_PTR(k, DSL_F32, "sin", DSL_READONLY);
	struct val position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
	struct val slot = ARG_PTR(k, DSL_I32, "slot", DSL_READONLY);
	struct val heads = ARG(k, DSL_I32, "heads");
	struct val kv = ARG(k, DSL_I32, "kv_heads");
	struct val q_ld = ARG(k, DSL_I32, "q_ld");
	struct val kv_ld = ARG(k, DSL_I32, "kv_ld");
	struct cache_at c = cache_args(k, s);
	struct val tokens = ARG(k, DSL_I32, "tokens");
	struct val eps = ARG(k, DSL_F32, "eps"), row = wave_row(k, s);
	struct val each = ADD(heads, SHL(kv, 1));

	IF (k, LT(row, MUL(tokens, each))) {
		struct val token = group_div(row, each);
		struct val h = SUB(row, MUL(token, each));
		struct val at = LOAD(position, token);
		struct turn t = { head_ptr(qw, &p), eps,
			head_ptr(row_of(cosine, at, CONST(k, DSL_I32, p.half)),
				 &p),
			head_ptr(row_of(sine, at, CONST(k, DSL_I32, p.half)),
				 &p) };

		IF (k, LT(h, heads)) {
			norm_turn(&p, &t, head_ptr(ADVANCE(row_of(q, token,
				q_ld), MUL(h, s->head)), &p), head_ptr(row_of(
				out, ADD(MUL(token, heads), h),
				CONST(k, DSL_I32, s->head)), &p));
		}
		ELSE (k) {
			struct val g = SUB(h, heads);
			struct val n = SELECT(LT(g, kv), g, SUB(g, kv));
			struct val from = MUL(n, s->head);
			struct val sequence = LOAD(slot, token);
			t.w = head_ptr(kw, &p);
			IF (k, LT(g, kv)) {
				norm_turn(&p, &t, head_ptr(ADVANCE(row_of(ki,
					token, kv_ld), from), &p), head_ptr(
					cache_row(&c, kc, sequence, n, at),
					&p));
			}
			ELSE (k) {
				copy_head(&p, head_ptr(ADVANCE(row_of(vi,
					token, kv_ld), from), &p), head_ptr(
					cache_row(&c, vc, sequence, n, at),
					&p));
			}
		}
	}
}

/*
 * Keys and values into the cache.  Arguments: kc, vc (shape.cache), k, v
 * [tokens][kv_ld] (shape.type), position, slot [tokens] (i32), kv_heads, kv_ld,
 * row, head (i32), sequence (i64), tokens.  A row per token and head.
 */
void build_kv_store(struct dsl *k, const struct kernel_shape *s)
{
	struct pairs p = { 0 };

	if (s->turned)
		p = pairs_of(k, s->head);
	p.turned = s->turned;
	struct val kc = ARG_PTR(k, s->cache, "kc", 0);
	struct val vc = ARG_PTR(k, s->cache, "vc", 0);
	struct val ki = ARG_PTR(k, s->type, "k", DSL_READONLY);
	struct val vi = ARG_PTR(k, s->type, "v", DSL_READONLY);
	struct val position = ARG_PTR(k, DSL_I32, "position", DSL_READONLY);
	struct val slot = ARG_PTR(k, DSL_I32, "slot", DSL_READONLY);
	struct val kv = ARG(k, DSL_I32, "kv_heads");
	struct val kv_ld = ARG(k, DSL_I32, "kv_ld");
	struct cache_at c = cache_args(k, s);
	struct val tokens = ARG(k, DSL_I32, "tokens"), row = wave_row(k, s);

	IF (k, LT(row, MUL(tokens, kv))) {
		struct val token = group_div(row, kv);
		struct val h = SUB(row, MUL(token, kv));
		struct val at = LOAD(position, token), sq = LOAD(slot, token);
		struct val from = MUL(h, s->head);
		struct val ky = cache_row(&c, kc, sq, h, at);
		struct val vy = cache_row(&c, vc, sq, h, at);
		struct val kx = ADVANCE(row_of(ki, token, kv_ld), from);
		struct val vx = ADVANCE(row_of(vi, token, kv_ld), from);
		struct val n = CONST(k, DSL_I32, s->head);

		if (s->turned) {
			copy_head(&p, kx, ky);
			copy_head(&p, vx, vy);
		} else {
			FOR(k, i, LANE(k), n, 32) {
				cache_put(k, ky, n, i, load_f32(kx, i));
				cache_put(k, vy, n, i, load_f32(vx, i));
			}
		}
	}
}

/*
 * Arguments: x [rows][head] (shape.type), rows (i32): each times Hadamard's
 * matrix, in its place; a second time gives what there was.  shape.head: 32,
 * 64, 128 or 256.
 */
void build_turn_heads(struct dsl *k, const struct kernel_shape *s)
{
	struct val x = ARG_PTR(k, s->type, "x", DSL_NOALIAS);
	struct val rows = ARG(k, DSL_I32, "rows"), row = wave_row(k, s);

	if (s->head % 32 || s->head & (s->head - 1))
		FAIL(k, "heads of %u elements are not turned; wanted 32, 64, "
		     "128 or 256", s->head);
	struct pairs p = pairs_of(k, s->head);
	p.turned = true;
	IF (k, LT(row, rows)) {
		struct val at = head_ptr(row_of(x, row, CONST(k, DSL_I32,
							      s->head)), &p);

		copy_head(&p, at, at);
	}
}

/* As it is, if that is its type already. */
static struct val as_type(struct val x, enum dsl_type to)
{
	return x.type == to ? x : CAST(to, CAST(DSL_F32, x));
}

static void copy_row(struct dsl *k, const struct kernel_shape *s, struct val x,
		     struct val y, struct val n)
{
	if (s->wide) {
		FOR (k, i, MUL(LANE(k), HEAD_PIECE), n, 32 * HEAD_PIECE) {
			struct val v = LOADV(ALIGNED(x, 16), i, HEAD_PIECE);

			STORE(ALIGNED(y, 16), i, as_type(v, s->to));
		}
		return;
	}
	FOR (k, j, LANE(k), n, 32) {
		STORE(y, j, as_type(LOAD(x, j), s->to));
	}
}

/*
 * Arguments: out [sequences][sequence] (shape.to), pool [pool_pages][page][n]
 * (shape.type), table [sequences][pages], length [sequences] (i32), n, page,
 * pages, pool_pages (i32), sequence (i64).  Row p of sequence b, for p below
 * length[b], is row p % page of page table[b][p / page]; a page that the pool
 * does not have is all zeros.  Groups: (rows of the longest / (group / 32),
 * sequences).  shape.wide: n is a multiple of 8.  Of a cache of I8, n is all
 * heads' kernel_cache_row().
 */
void build_kv_gather(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->to, "out", DSL_NOALIAS);
	struct val pool = ARG_PTR(k, s->type, "pool", DSL_READONLY);
	struct val table = ARG_PTR(k, DSL_I32, "table", DSL_READONLY);
	struct val length = ARG_PTR(k, DSL_I32, "length", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), page = ARG(k, DSL_I32, "page");
	struct val pages = ARG(k, DSL_I32, "pages");
	struct val pool_pages = ARG(k, DSL_U32, "pool_pages");
	struct val sequence = ARG(k, DSL_I64, "sequence");
	struct val row = wave_row(k, s), b = GROUP_ID(k, 1);

	IF (k, LT(row, LOAD(length, b))) {
		struct val which = group_div(row, page);
		struct val at = ADD(MUL(b, pages), which);
		struct val id = CAST(DSL_U32, LOAD(table, at));
		struct val in = SUB(row, MUL(which, page));
		struct val x = row_of(row_of(pool, CAST(DSL_I32, id),
					     MUL(n, page)), in, n);
		struct val y = row_of(ADVANCE(out, MUL(CAST(DSL_I64, b),
						       sequence)), row, n);
		IF (k, LT(id, pool_pages)) {
			copy_row(k, s, x, y, n);
		}
		ELSE (k) {
			FOR (k, i, LANE(k), n, 32) {
				store_f32(y, i, CONST(k, DSL_F32, 0));
			}
		}
	}
}
