/*
 * compiler/kernels/expert_tiles.c - mixtures of experts, many tokens at once:
 * products of tiles whose rows are an expert's pairs.
 *
 * expert_sort() puts pairs of the same expert side by side and cuts them into
 * tiles of KERNEL_EXPERT_TILE.  A launch has groups for as many tiles as there
 * can be; those behind the last end at once, so that the host need not know
 * how many there are.  A pair's result does not depend on its place.
 *
 * Inputs have the type of the weights, or f16 where these are integers, which
 * become f16 on the way (stream.c says how they lie); sums are f32.
 */
#include "compiler/kernels/kernels_int.h"

enum {
	TILE_BITS = KERNEL_EXPERT_TILE_BITS,
	TILE = 1 << TILE_BITS,
	SIDE = 16,  /* of a fragment */
	DEPTH = 32, /* of a step: a group of integers */
	BLOCKS = TILE / SIDE,
};

/* ---- who stands where ---- */

/* Of a tile: its expert, its first place, its places. */
enum { TILE_EXPERT, TILE_FIRST, TILE_COUNT, TILE_WORDS };

/* v becomes its sum over the work-items before, plus what `carry` had. */
static struct val scan_on(struct var carry, struct val v)
{
	struct val before = ADD(GET(carry), GROUP_SCAN(ADD, v, false));

	SET(carry, ADD(GET(carry), GROUP_SUM(v)));
	return before;
}

/* The last expert that begins at tile t or before: the one that has it. */
static struct val tile_expert(struct dsl *k, struct val cut,
			      struct val experts, struct val t)
{
	struct var e = VAR(k, DSL_I32, 0);

	for (uint32_t step = KERNEL_MAX_EXPERTS / 2; step; step /= 2) {
		struct val far = ADD(GET(e), step), in = LT(far, experts);
		struct val at = LOAD_IF(in, cut, far);

		SET(e, SELECT(AND(in, LE(at, t)), far, GET(e)));
	}
	return GET(e);
}

/*
 * Arguments: order [pairs] (i32: pairs, by expert), tile [tiles][3] (i32:
 * expert, first place, places), expert [pairs] (i32), pairs, experts (at most
 * KERNEL_MAX_EXPERTS), tiles (i32).  One group; tiles behind the last have no
 * places.
 */
void build_expert_sort(struct dsl *k, const struct kernel_shape *s)
{
	struct val order = ARG_PTR(k, DSL_I32, "order", DSL_NOALIAS);
	struct val tile = ARG_PTR(k, DSL_I32, "tile", DSL_NOALIAS);
	struct val expert = ARG_PTR(k, DSL_I32, "expert", DSL_READONLY);
	struct val pairs = ARG(k, DSL_I32, "pairs");
	struct val experts = ARG(k, DSL_I32, "experts");
	struct val tiles = ARG(k, DSL_I32, "tiles");
	struct val first = LDS(k, DSL_I32, KERNEL_MAX_EXPERTS, "first");
	struct val cut = LDS(k, DSL_I32, KERNEL_MAX_EXPERTS, "cut");
	struct val me = LOCAL_ID(k, 0);
	struct var place = VAR(k, DSL_I32, 0), all = VAR(k, DSL_I32, 0);

	FOR(k, i, me, experts, s->group) {
		STORE(first, i, 0);
	}
	BARRIER(k);
	FOR(k, i, me, pairs, s->group) {
		ATOMIC(SSA_RMW_ADD, first, LOAD(expert, i), 1);
	}
	BARRIER(k);
	FOR(k, from, 0, experts, s->group) {
		struct val i = ADD(from, me), in = LT(i, experts);
		struct val n = LOAD_IF(in, first, i);

		STORE_IF(in, first, i, scan_on(place, n));
		STORE_IF(in, cut, i,
			 scan_on(all, SHR(ADD(n, TILE - 1), TILE_BITS)));
	}
	BARRIER(k);
	/* Loops that nothing but the sizes ends: the same in all lanes. */
	FOR(k, base, 0, tiles, s->group) {
		struct val t = ADD(base, me), in = LT(t, tiles);
		struct val e = tile_expert(k, cut, experts, t);
		struct val next = ADD(e, 1), more = LT(next, experts);
		struct val end = SELECT(more, LOAD_IF(more, first, next),
					pairs);
		struct val done = SHL(SUB(t, LOAD(cut, e)), TILE_BITS);
		struct val from = ADD(LOAD(first, e), done);
		struct val to = MUL(t, TILE_WORDS);

		STORE_IF(in, tile, ADD(to, TILE_EXPERT), e);
		STORE_IF(in, tile, ADD(to, TILE_FIRST), from);
		STORE_IF(in, tile, ADD(to, TILE_COUNT),
			 SELECT(LT(t, all), MIN(SUB(end, from), TILE), 0));
	}
	BARRIER(k);
	FOR(k, base, 0, pairs, s->group) {
		struct val i = ADD(base, me), in = LT(i, pairs);
		struct val at = ATOMIC_IF(in, SSA_RMW_ADD, first,
					  LOAD_IF(in, expert, i), 1);

		STORE_IF(in, order, at, i);
	}
}

/* ---- products ---- */

/* The matrix of one expert, and what a wave makes of it. */
struct tile {
	struct val w, scale, n;
	enum dsl_type type, in;
	struct val row[2]; /* of each lane's weights */
	struct val a;	   /* the row that this work-item fetches, */
	struct val lds;	   /* for all to find here, [TILE][PITCH] */
	struct var sum[BLOCKS][2];
};

static bool is_integer(enum dsl_type t)
{
	return t == DSL_I8 || t == DSL_U8;
}

/* Sixteen of a lane's weights from bytes of 0 to 255, `zero` of which is 0. */
static struct val whole_weights(struct val words, uint32_t shift, uint32_t mask,
				double zero, struct val scale)
{
	struct val e[SIDE], less = MUL(scale, -zero);

	for (uint32_t i = 0; i < SIDE; i++) {
		struct val b =
			AND(SHR(ELEM(words, i / 4), i % 4 * 8 + shift), mask);

		e[i] = CAST(DSL_F16, FMA(CAST(DSL_F32, b), scale, less));
	}
	return dsl_join(DSL_AT, e, SIDE);
}

/* DEPTH weights of a row as they lie in memory. */
struct raw {
	struct val part[2], scale;
};

static struct raw weights_load(const struct tile *t, uint32_t b, struct val at)
{
	const bool four = t->type == DSL_U8;
	struct val p = row_of(t->w, t->row[b], four ? SHR(t->n, 1) : t->n);
	struct raw r = { 0 };

	if (is_integer(t->type))
		r.scale = LOAD(row_of(t->scale, t->row[b], SHR(t->n, 5)),
			       SHR(at, 5));
	for (uint32_t i = 0; i < (four ? 1 : 2); i++)
		r.part[i] = LOADV(p, four ? SHR(at, 1) : ADD(at, i * SIDE),
				  SIDE);
	return r;
}

/* And as two fragments. */
static void weights_turn(const struct tile *t, const struct raw *r,
			 struct val out[2])
{
	for (uint32_t i = 0; i < 2; i++) {
		struct val v = r->part[t->type == DSL_U8 ? 0 : i];

		if (is_integer(t->type)) {
			struct val scale = CAST(DSL_F32, r->scale);
			struct val words = BITS(DSL_U32, v);

			v = t->type == DSL_U8 ?
				    whole_weights(words, 4 * i, 15, 8, scale) :
				    whole_weights(XOR(words, 0x80808080), 0,
						  255, 128, scale);
		}
		out[i] = FRAG_FROM('B', v);
	}
}

enum {
	STEPS = 4, /* at most */
	PITCH = STEPS * DEPTH + 8,
	GROUP = 128,
	FETCH = GROUP / TILE, /* work-items that fetch a row */
};

/* Inputs of some steps into LDS. */
static void inputs_fetch(struct dsl *k, const struct tile *t, struct val at,
			 uint32_t steps)
{
	struct val me = LOCAL_ID(k, 0), row = DIV(me, FETCH);
	struct val from = MUL(AND(me, FETCH - 1), steps * DEPTH / FETCH);
	struct val to = ADD(MUL(row, PITCH), from), x[STEPS];

	for (uint32_t s = 0; s < steps; s++)
		x[s] = LOADV(t->a, ADD(ADD(at, from), s * DEPTH / FETCH),
			     DEPTH / FETCH);
	BARRIER(k);
	for (uint32_t s = 0; s < steps; s++)
		STORE(t->lds, ADD(to, s * DEPTH / FETCH), x[s]);
	BARRIER(k);
}

/*
 * Some steps at once: a lane's weights of these are neighbours, which caches
 * would not keep until the next time.
 */
static void tile_steps(struct dsl *k, struct tile *t, struct val at,
		       uint32_t steps)
{
	struct val lane = MUL(AND(LANE(k), SIDE - 1), PITCH);
	struct raw raw[STEPS][2];

	for (uint32_t s = 0; s < steps; s++)
		for (uint32_t b = 0; b < 2; b++)
			raw[s][b] = weights_load(t, b, ADD(at, s * DEPTH));
	inputs_fetch(k, t, at, steps);
	for (uint32_t s = 0; s < steps; s++) {
		struct val w[2][2];

		for (uint32_t b = 0; b < 2; b++)
			weights_turn(t, &raw[s][b], w[b]);
		for (uint32_t m = 0; m < BLOCKS; m++)
			for (uint32_t i = 0; i < 2; i++) {
				const uint32_t to = m * SIDE * PITCH +
						    s * DEPTH + i * SIDE;
				struct val x = FRAG_FROM(
					'A', LOADV(t->lds, ADD(lane, to),
						   SIDE));

				for (uint32_t b = 0; b < 2; b++)
					SET(t->sum[m][b],
					    WMMA(x, w[b][i],
						 GET(t->sum[m][b])));
			}
	}
}

static void tile_multiply(struct dsl *k, struct tile *t)
{
	const uint32_t steps = is_integer(t->type) ? STEPS : STEPS / 2;
	const uint32_t each = steps * DEPTH;
	struct val most = MUL(DIV(t->n, each), each);

	for (uint32_t m = 0; m < BLOCKS; m++)
		for (uint32_t b = 0; b < 2; b++)
			t->sum[m][b] = VAR_OF(FRAG_ZERO(k, DSL_F32));
	FOR(k, at, 0, most, each) {
		tile_steps(k, t, at, steps);
	}
	FOR(k, at, most, t->n, DEPTH) {
		tile_steps(k, t, at, 1);
	}
}

/*
 * Arguments: y [pairs][rows] (f32; of swiglu as inputs), w, scale, a (their
 * rows, of n), order, tile (expert_sort), used, rows, n (i32), by (f32).  Grid
 * dimension 1 counts tiles.
 * expert_tiles_swiglu: w [experts][2 rows][n], a [tokens][n], y = by silu(gate)
 * up, of what a has; a wave makes 16 rows.  expert_tiles: w [experts][rows][n],
 * a [pairs][n], y = by w a; a wave makes 32 rows.
 */
void build_expert_tiles(struct dsl *k, const struct kernel_shape *s)
{
	const bool pair = is_kernel(k, "expert_tiles_swiglu");
	const enum dsl_type in = is_integer(s->weights) ? DSL_F16 : s->weights;
	struct tile t = { .type = s->weights, .in = in };

	/* All fragments of a step on their way from LDS at once. */
	dsl_waves(k, 8);
	if (s->group != GROUP)
		FAIL(k, "groups of %u work-items; wanted %d", s->group, GROUP);

	struct val y = ARG_PTR(k, pair ? in : DSL_F32, "y", DSL_NOALIAS);
	t.w = ALIGNED(ARG_PTR(k, s->weights, "w", DSL_READONLY), 16);
	t.scale = ARG_PTR(k, DSL_F16, "scale", DSL_READONLY);
	struct val a = ALIGNED(ARG_PTR(k, in, "a", DSL_READONLY), 16);
	struct val order = ARG_PTR(k, DSL_I32, "order", DSL_READONLY);
	struct val tile = ARG_PTR(k, DSL_I32, "tile", DSL_READONLY);
	struct val used = ARG(k, DSL_I32, "used");
	struct val rows = ARG(k, DSL_I32, "rows");
	t.n = ARG(k, DSL_I32, "n");
	struct val by = ARG(k, DSL_F32, "by");
	t.lds = ALIGNED(LDS(k, in, TILE * PITCH, "inputs"), 16);
	struct val at = MUL(GROUP_ID(k, 1), TILE_WORDS);
	struct val expert = LOAD(tile, ADD(at, TILE_EXPERT));
	struct val first = LOAD(tile, ADD(at, TILE_FIRST));
	struct val count = LOAD(tile, ADD(at, TILE_COUNT));
	struct val column = MUL(wave_row(k, s), pair ? SIDE : 2 * SIDE);
	struct val lane = AND(LANE(k), SIDE - 1), last = SUB(rows, 1);
	struct val top = MUL(expert, pair ? MUL(rows, 2) : rows);

	/* The same in all of a group; waves without columns fetch, too. */
	IF(k, GT(count, 0)) {
		for (uint32_t b = 0; b < 2; b++) {
			struct val r = ADD(column, lane);

			r = MIN(pair ? r : ADD(r, b * SIDE), last);
			r = ADD(top, r);
			t.row[b] = pair && b ? ADD(r, rows) : r;
		}
		struct val mine = MIN(DIV(LOCAL_ID(k, 0), FETCH), SUB(count, 1));
		struct val from = LOAD(order, ADD(first, mine));

		t.a = row_of(a, pair ? DIV(from, used) : from, t.n);
		tile_multiply(k, &t);
		for (uint32_t m = 0; m < BLOCKS; m++) {
			struct val e[2];

			for (uint32_t b = 0; b < 2; b++)
				e[b] = FRAG_ELEMS(GET(t.sum[m][b]));
			for (uint32_t j = 0; j < 8; j++) {
				struct val i = ADD(FRAG_ROW(k, j), m * SIDE);
				struct val there = LT(i, count);
				struct val p =
					LOAD_IF(there, order, ADD(first, i));
				struct val to = row_of(y, p, rows);

				for (uint32_t b = 0; b < (pair ? 1 : 2); b++) {
					struct val c =
						ADD(ADD(column, b * SIDE),
						    FRAG_COLUMN(k));
					struct val v = ELEM(e[b], j);

					if (pair)
						v = MUL(SILU(v), ELEM(e[1], j));
					STORE_IF(AND(there, LT(c, rows)), to, c,
						 CAST((enum dsl_type)y.elem,
						      MUL(v, by)));
				}
			}
		}
	}
}

/*
 * Arguments: x [tokens][n] (f32, added to), y [tokens][used][n], share
 * [tokens][used] (f32), used, n (i32).  A group takes a token: the sum of its
 * pairs, each times its share.
 */
void build_expert_join(struct dsl *k, const struct kernel_shape *s)
{
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_NOALIAS);
	struct val y = ARG_PTR(k, DSL_F32, "y", DSL_READONLY);
	struct val share = ARG_PTR(k, DSL_F32, "share", DSL_READONLY);
	struct val used = ARG(k, DSL_I32, "used"), n = ARG(k, DSL_I32, "n");
	struct val token = GROUP_ID(k, 0);
	struct val to = row_of(x, token, n);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct var sum = VAR_OF(LOAD(to, i));

		FOR(k, j, 0, used, 1) {
			struct val p = ADD(MUL(token, used), j);

			SET(sum, FMA(LOAD(share, p), LOAD(row_of(y, p, n), i),
				     GET(sum)));
		}
		STORE(to, i, GET(sum));
	}
}
