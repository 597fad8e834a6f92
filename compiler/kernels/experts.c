/*
 * compiler/kernels/experts.c - mixtures of experts: who computes what, and the
 * products of decoding.
 *
 * A token and one of its experts are a pair; pairs of a token stand together,
 * `used` of them.  Which experts these are is in memory, written by route():
 * no launch depends on it, and the host never knows.  Matrices of all experts
 * lie one below the other, as stream.c has them.
 */
#include "compiler/kernels/stream_int.h"

enum {
	ROWS = KERNEL_STREAM_ROWS,
	PAIRS = ROWS / 2,
	EACH = KERNEL_EXPERT_ROWS,
	WAVES_MAX = 32,
	USED = KERNEL_MAX_TOPK,
};

/* ---- who computes what ---- */

/* Larger scores have larger keys; zeros are equal, NaN is below all others. */
static struct val key_of(struct dsl *k, struct val v)
{
	struct val zero = CONST(k, DSL_F32, 0);
	struct val bits = BITS(DSL_U32, SELECT(EQ(v, 0.0), zero, v));
	struct val flip = SELECT(GE(BITS(DSL_I32, bits), 0), 0x80000000u,
				 CONST(k, DSL_U32, 0xffffffffu));

	return SELECT(ISNAN(v), CONST(k, DSL_U32, 0), XOR(bits, flip));
}

/* How many of the n keys are larger than the i-th, or equal and before it. */
static struct val rank_of(struct dsl *k, struct val keys, struct val n,
			  struct val i)
{
	struct val mine = LOAD(keys, i);
	struct var rank = VAR(k, DSL_I32, 0);

	FOR(k, j, 0, n, 1) {
		struct val other = LOAD(keys, j);
		struct val ahead =
			OR(GT(other, mine), AND(EQ(other, mine), LT(j, i)));

		SET(rank, ADD(rank, CAST(DSL_I32, ahead)));
	}
	return GET(rank);
}

/*
 * Arguments: share [tokens][used] (f32), expert [tokens][used] (i32), score
 * [tokens][n] (f32), n (at most KERNEL_MAX_EXPERTS), used (at most
 * KERNEL_MAX_TOPK and n), normed (i32).  A group takes a token: the largest
 * scores from the largest down, of equals the first; their parts of the softmax
 * of all, or with `normed` of that of themselves.
 */
void build_route(struct dsl *k, const struct kernel_shape *s)
{
	struct val share = ARG_PTR(k, DSL_F32, "share", DSL_NOALIAS);
	struct val expert = ARG_PTR(k, DSL_I32, "expert", DSL_NOALIAS);
	struct val score = ARG_PTR(k, DSL_F32, "score", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), used = ARG(k, DSL_I32, "used");
	struct val normed = NE(ARG(k, DSL_I32, "normed"), 0);
	struct val keys = LDS(k, DSL_U32, KERNEL_MAX_EXPERTS, "keys");
	struct val best = LDS(k, DSL_F32, USED, "best");
	struct val token = GROUP_ID(k, 0), me = LOCAL_ID(k, 0);
	struct val x = row_of(score, token, n);
	struct val to = row_of(expert, token, used);
	struct var top = VAR(k, DSL_F32, -1.0 / 0.0);
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, me, n, s->group) {
		struct val v = LOAD(x, i);

		STORE(keys, i, key_of(k, v));
		SET(top, MAX(top, v));
	}
	struct val most = GROUP_MAX(GET(top));
	BARRIER(k);
	/* The same in all lanes: nothing but the sizes says how often. */
	FOR(k, from, 0, n, s->group) {
		struct val i = ADD(from, me), there = LT(i, n);
		struct val v = SUB(LOAD_IF(there, x, i), most);
		struct val e = SELECT(there, EXP(v), 0.0);
		struct val rank = rank_of(k, keys, n, MIN(i, SUB(n, 1)));
		struct val in = AND(there, LT(rank, used));

		STORE_IF(in, best, rank, e);
		STORE_IF(in, to, rank, i);
		SET(sum, ADD(sum, SELECT(OR(in, NOT(normed)), e, 0.0)));
	}
	struct val all = GROUP_SUM(GET(sum));
	BARRIER(k);
	for (uint32_t from = 0; from < USED; from += s->group) {
		struct val i = ADD(me, from), there = LT(i, used);

		STORE_IF(there, row_of(share, token, used), i,
			 DIV(LOAD_IF(there, best, i), all));
	}
}

/* ---- products of pairs ---- */

/*
 * Arguments: y [pairs][rows] (f32), w [experts][2 rows][n] (gate, then up),
 * scale, x [tokens][n], gain [n], eps, share [pairs] (f32), expert [pairs]
 * (i32), used, rows, n (i32).  Grid dimension 1 counts pairs: y = share
 * silu(gate) up of norm(x).
 */
void build_expert_swiglu(struct dsl *k, const struct kernel_shape *s)
{
	struct val y = ARG_PTR(k, DSL_F32, "y", DSL_NOALIAS);
	struct stream w = stream_args(k, s);
	struct stream_input in = stream_input_args(k, true, 1);
	struct val share = ARG_PTR(k, DSL_F32, "share", DSL_READONLY);
	struct val expert = ARG_PTR(k, DSL_I32, "expert", DSL_READONLY);
	struct val used = ARG(k, DSL_I32, "used");
	struct val rows = ARG(k, DSL_I32, "rows");
	w.n = ARG(k, DSL_I32, "n");
	struct val pair = GROUP_ID(k, 1), token = group_div(pair, used);
	struct val first = MUL(wave_row(k, s), PAIRS);
	struct val r[ROWS], out[KERNEL_MAX_TOKENS][ROWS];

	stream_input_rows(&in, &token, w.n);
	IF(k, LT(first, rows)) {
		struct val top = MUL(LOAD(expert, pair), MUL(rows, 2));
		struct val part = LOAD(share, pair);

		for (uint32_t i = 0; i < PAIRS; i++) {
			r[i] = ADD(top, MIN(ADD(first, i), SUB(rows, 1)));
			r[PAIRS + i] = ADD(r[i], rows);
		}
		stream_rows(k, &w, &in, r, out);
		for (uint32_t i = 0; i < PAIRS; i++)
			out[0][i] = MUL(MUL(SILU(out[0][i]), out[0][PAIRS + i]),
					part);
		stream_store(k, row_of(y, pair, rows), first, rows, out[0],
			     PAIRS);
	}
}

/*
 * Arguments: y [tokens][rows] (f32, added to), w [experts][rows][n], scale,
 * x [tokens][used][n] (f32), expert [tokens][used] (i32), used, rows, n (i32).
 * A group makes KERNEL_EXPERT_ROWS rows of a token, which grid dimension 1
 * counts; its waves take the token's experts in turn, and their sums are added
 * in the order of waves.
 */
void build_expert_add(struct dsl *k, const struct kernel_shape *s)
{
	const uint32_t waves = s->group / 32;
	struct val y = ARG_PTR(k, DSL_F32, "y", DSL_NOALIAS);
	struct stream w = stream_args(k, s);
	w.rows = EACH;
	struct stream_input x = stream_input_args(k, false, 1);
	struct val expert = ARG_PTR(k, DSL_I32, "expert", DSL_READONLY);
	struct val used = ARG(k, DSL_I32, "used");
	struct val rows = ARG(k, DSL_I32, "rows");
	w.n = ARG(k, DSL_I32, "n");
	struct val part = LDS(k, DSL_F32, WAVES_MAX * EACH, "part");
	struct val token = GROUP_ID(k, 1), me = LOCAL_ID(k, 0);
	struct val first = MUL(GROUP_ID(k, 0), EACH);
	struct val mine = ADD(first, me), to = row_of(y, token, rows);
	struct val in = AND(LT(me, EACH), LT(mine, rows));
	/* Under way while the weights are. */
	struct val before = LOAD_IF(in, to, mine);
	struct var sum[EACH];

	for (uint32_t i = 0; i < EACH; i++)
		sum[i] = VAR(k, DSL_F32, 0);
	FOR(k, slot, WAVE(k), used, waves) {
		struct val pair = ADD(MUL(token, used), slot);
		struct val top = MUL(LOAD(expert, pair), rows);
		struct val r[EACH], out[KERNEL_MAX_TOKENS][ROWS];
		struct stream_input own = x;

		for (uint32_t i = 0; i < EACH; i++)
			r[i] = ADD(top, MIN(ADD(first, i), SUB(rows, 1)));
		stream_input_rows(&own, &pair, w.n);
		stream_rows(k, &w, &own, r, out);
		for (uint32_t i = 0; i < EACH; i++)
			SET(sum[i], ADD(sum[i], out[0][i]));
	}
	IF(k, EQ(LANE(k), 0)) {
		for (uint32_t i = 0; i < EACH; i++)
			STORE(part, ADD(MUL(WAVE(k), EACH), i), GET(sum[i]));
	}
	BARRIER(k);
	IF(k, in) {
		struct val all = before;

		for (uint32_t i = 0; i < waves; i++)
			all = ADD(all, LOAD(part, ADD(me, i * EACH)));
		STORE(to, mine, all);
	}
}
