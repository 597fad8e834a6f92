/*
 * compiler/kernels/move.c - kernels that move elements rather than compute with
 * them.
 */
#include "compiler/kernels/kernels_int.h"

/*
 * Arguments: out, x [rows][n], n, queries, offset (i32).  Row r is query
 * r % queries of its matrix; what is more than `offset` behind it, -infinity.
 */
void build_causal_mask(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct val n = ARG(k, DSL_I32, "n");
	struct val queries = ARG(k, DSL_I32, "queries");
	struct val offset = ARG(k, DSL_I32, "offset");
	struct val row = GROUP_ID(k, 0);
	struct val last = ADD(REM(row, queries), offset);
	struct val x = row_of(in, row, n), y = row_of(out, row, n);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		store_f32(y, i, SELECT(GT(i, last), -1.0 / 0.0,
				       load_f32(x, i)));
	}
}

/*
 * Arguments: out [rows][n], table [vocab][n], id [rows] (i32), vocab, n.  An id
 * that is not in the table gives a row of zeros.
 */
void build_embed(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val table = ARG_PTR(k, s->type, "table", DSL_READONLY);
	struct val id = ARG_PTR(k, DSL_I32, "id", DSL_READONLY);
	struct val vocab = ARG(k, DSL_U32, "vocab"), n = ARG(k, DSL_I32, "n");
	struct val row = GROUP_ID(k, 0), which = LOAD(id, row);
	struct val there = LT(CAST(DSL_U32, which), vocab);
	struct val x = row_of(table, which, n), y = row_of(out, row, n);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		store_f32(y, i, CAST(DSL_F32, LOAD_IF(there, x, i)));
	}
}

/*
 * Arguments: table [vocab][n] (f32, added to), g [rows][n], id, vocab, n.  Ids
 * that are not in the table add nothing.
 */
void build_embed_back(struct dsl *k, const struct kernel_shape *s)
{
	struct val table = ARG_PTR(k, DSL_F32, "table", 0);
	struct val grad = ARG_PTR(k, s->type, "g", DSL_READONLY);
	struct val id = ARG_PTR(k, DSL_I32, "id", DSL_READONLY);
	struct val vocab = ARG(k, DSL_U32, "vocab"), n = ARG(k, DSL_I32, "n");
	struct val row = GROUP_ID(k, 0), which = LOAD(id, row);
	struct val there = LT(CAST(DSL_U32, which), vocab);
	struct val to = row_of(table, which, n), g = row_of(grad, row, n);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		ATOMIC_IF(there, SSA_RMW_FADD, to, i, load_f32(g, i));
	}
}

/*
 * Arguments: out [n][m], x [m][n], m, n (i32); groups (n / 32, m / 32).  The
 * tile's rows are 33 apart in LDS, so that its columns lie in all banks.
 */
void build_transpose(struct dsl *k, const struct kernel_shape *s)
{
	enum { TILE = KERNEL_TILE_SIZE, PITCH = TILE + 1 };

	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct val m = ARG(k, DSL_I32, "m"), n = ARG(k, DSL_I32, "n");
	struct val tile = LDS(k, DSL_F32, TILE * PITCH, "tile");
	struct val tx = AND(LOCAL_ID(k, 0), TILE - 1);
	struct val ty = SHR(LOCAL_ID(k, 0), 5);
	struct val c0 = MUL(GROUP_ID(k, 0), TILE);
	struct val r0 = MUL(GROUP_ID(k, 1), TILE);
	struct val c = ADD(c0, tx), r = ADD(r0, tx);

	for (uint32_t i = 0; i < TILE; i += s->group / TILE) {
		struct val y = ADD(ty, i), row = ADD(r0, y);
		struct val there = AND(LT(row, m), LT(c, n));
		struct val x = row_of(in, row, n);

		STORE(tile, ADD(MUL(y, PITCH), tx),
		      CAST(DSL_F32, LOAD_IF(there, x, c)));
	}
	BARRIER(k);
	for (uint32_t i = 0; i < TILE; i += s->group / TILE) {
		struct val x = ADD(ty, i), row = ADD(c0, x);
		struct val there = AND(LT(row, n), LT(r, m));
		struct val y = row_of(out, row, m);

		STORE_IF(there, y, r, CAST(s->type,
			 LOAD(tile, ADD(MUL(tx, PITCH), x))));
	}
}
