/*
 * compiler/kernels/rows.c - one row of n per group, of any length, by a loop
 * over its work-items.
 */
#include <float.h>

#include "compiler/kernels/kernels_int.h"

/* The largest of a row and the sum of e^(x - largest), in all work-items. */
struct total {
	struct val max, sum;
};

/*
 * In one pass: a new maximum rescales the sum.  The maximum begins at the
 * lowest number, not at -infinity, so that work-items without elements have
 * no infinity to subtract; a row of -infinity alone gives 0 / 0 = NaN as the
 * definition does.
 */
static struct total row_total(struct dsl *k, struct val x, struct val n,
			      uint32_t group)
{
	struct var max = VAR(k, DSL_F32, -FLT_MAX);
	struct var sum = VAR(k, DSL_F32, 0);

	FOR(k, i, LOCAL_ID(k, 0), n, group) {
		struct val v = load_f32(x, i), m = MAX(max, v);

		SET(sum, FMA(sum, EXP(SUB(max, m)), EXP(SUB(v, m))));
		SET(max, m);
	}
	struct val top = GROUP_MAX(GET(max));
	return (struct total){
		top, GROUP_SUM(MUL(sum, EXP(SUB(max, top))))
	};
}

/* Arguments: out, x [rows][n], n (i32). */
void build_softmax(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, s->type, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct val n = ARG(k, DSL_I32, "n"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, row, n), y = row_of(out, row, n);
	struct total t = row_total(k, x, n, s->group);
	const bool log = is_kernel(k, "log_softmax");
	struct val log_sum = log ? LOG(t.sum) : t.sum;

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct val d = SUB(load_f32(x, i), t.max);

		store_f32(y, i, log ? SUB(d, log_sum) : DIV(EXP(d), t.sum));
	}
}

/* Arguments: loss [rows] (f32), x [rows][n], target [rows] (i32), n. */
void build_cross_entropy(struct dsl *k, const struct kernel_shape *s)
{
	struct val loss = ARG_PTR(k, DSL_F32, "loss", 0);
	struct val in = ARG_PTR(k, s->type, "x", DSL_READONLY);
	struct val target = ARG_PTR(k, DSL_I32, "target", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, row, n);
	struct total t = row_total(k, x, n, s->group);

	IF(k, EQ(LOCAL_ID(k, 0), 0)) {
		struct val hit = load_f32(x, LOAD(target, row));

		STORE(loss, row, ADD(LOG(t.sum), SUB(t.max, hit)));
	}
}

/* Arguments: dx [rows][n], x, target, a (f32), n: a (softmax - 1 at target). */
void build_cross_entropy_back(struct dsl *k, const struct kernel_shape *s)
{
	struct val dx = ARG_PTR(k, s->type, "dx", 0);
	struct val in = ARG_PTR(k, s->type, "x", 0);
	struct val target = ARG_PTR(k, DSL_I32, "target", DSL_READONLY);
	struct val a = ARG(k, DSL_F32, "a"), n = ARG(k, DSL_I32, "n");
	struct val row = GROUP_ID(k, 0), hit = LOAD(target, row);
	struct val x = row_of(in, row, n), y = row_of(dx, row, n);
	struct total t = row_total(k, x, n, s->group);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct val p = DIV(EXP(SUB(load_f32(x, i), t.max)), t.sum);

		store_f32(y, i, MUL(a, SELECT(EQ(i, hit), SUB(p, 1.0), p)));
	}
}

/* log(e^a + e^b); a may be -infinity. */
static struct val lse_join(struct val a, struct val b)
{
	struct val top = MAX(a, b);

	return ADD(top, LOG(ADD(EXP(SUB(a, top)), EXP(SUB(b, top)))));
}

/*
 * A chunk of a longer row: elements at to at + n of `all`.  Chunks come in
 * their order.  Arguments: loss, lse [rows] (f32), x [rows][n] (f32), target [rows]
 * (i32), at, n, all (u32).  Until the last chunk `loss` holds x[target]; a
 * target that is not below `all` has a loss of 0.
 */
void build_loss_chunk(struct dsl *k, const struct kernel_shape *s)
{
	struct val loss = ARG_PTR(k, DSL_F32, "loss", 0);
	struct val lse = ARG_PTR(k, DSL_F32, "lse", 0);
	struct val in = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val target = ARG_PTR(k, DSL_I32, "target", DSL_READONLY);
	struct val at = ARG(k, DSL_U32, "at"), n = ARG(k, DSL_U32, "n");
	struct val all = ARG(k, DSL_U32, "all"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, row, CAST(DSL_I32, n));
	struct total t = row_total(k, x, CAST(DSL_I32, n), s->group);
	struct val which = CAST(DSL_U32, LOAD(target, row));
	struct val place = SUB(which, at), hit = LT(place, n);

	IF (k, EQ(LOCAL_ID(k, 0), 0)) {
		struct val first = EQ(at, 0);
		struct val was = SELECT(first, -1.0 / 0.0, LOAD(lse, row));
		struct val sum = lse_join(was, ADD(t.max, LOG(t.sum)));
		struct val logit = SELECT(hit, LOAD_IF(hit, x, place),
					  SELECT(first, 0.0, LOAD(loss, row)));
		struct val end = GE(ADD(at, n), all);
		struct val learnt = SELECT(LT(which, all), SUB(sum, logit),
					   0.0);

		STORE(lse, row, sum);
		STORE(loss, row, SELECT(end, learnt, logit));
	}
}

/*
 * Arguments: x [rows][n] (f32), lse, target, at, n, all as of loss_chunk, a
 * (f32): x = a (e^(x - lse) - 1 at target), or 0 without a target.
 */
void build_loss_chunk_back(struct dsl *k, const struct kernel_shape *s)
{
	struct val in = ARG_PTR(k, DSL_F32, "x", 0);
	struct val lse = ARG_PTR(k, DSL_F32, "lse", DSL_READONLY);
	struct val target = ARG_PTR(k, DSL_I32, "target", DSL_READONLY);
	struct val at = ARG(k, DSL_U32, "at"), n = ARG(k, DSL_U32, "n");
	struct val all = ARG(k, DSL_U32, "all"), a = ARG(k, DSL_F32, "a");
	struct val row = GROUP_ID(k, 0), sum = LOAD(lse, row);
	struct val x = row_of(in, row, CAST(DSL_I32, n));
	struct val which = CAST(DSL_U32, LOAD(target, row));
	struct val learns = LT(which, all), place = SUB(which, at);

	FOR (k, i, LOCAL_ID(k, 0), CAST(DSL_I32, n), s->group) {
		struct val p = EXP(SUB(LOAD(x, i), sum));
		struct val hit = EQ(CAST(DSL_U32, i), place);
		struct val d = MUL(a, SELECT(hit, SUB(p, 1.0), p));

		STORE(x, i, SELECT(learns, d, 0.0));
	}
}

/* Arguments: out [rows] (f32), x [rows][n], n.  max and min: NaN is ignored. */
void build_row_reduce(struct dsl *k, const struct kernel_shape *s)
{
	bool sum = is_kernel(k, "row_sum"), max = is_kernel(k, "row_max");

	struct val out = ARG_PTR(k, DSL_F32, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, row, n);
	struct var v = VAR(k, DSL_F32,
			   sum ? 0.0 :
			   max ? -1.0 / 0.0 :
				 1.0 / 0.0);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct val xi = load_f32(x, i);

		SET(v, sum ? ADD(v, xi) : max ? MAX(v, xi) : MIN(v, xi));
	}
	struct val all = sum ? GROUP_SUM(GET(v)) :
			 max ? GROUP_MAX(GET(v)) : GROUP_MIN(GET(v));
	IF(k, EQ(LOCAL_ID(k, 0), 0)) {
		STORE(out, row, all);
	}
}

/* Arguments: out [rows] (i32), x [rows][n], n >= 1.  NaN is no largest. */
void build_argmax(struct dsl *k, const struct kernel_shape *s)
{
	struct val out = ARG_PTR(k, DSL_I32, "out", 0);
	struct val in = ARG_PTR(k, s->type, "x", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), row = GROUP_ID(k, 0);
	struct val x = row_of(in, row, n);
	struct var best = VAR(k, DSL_F32, -1.0 / 0.0);
	struct var at = VAR(k, DSL_I32, INT32_MAX);

	FOR(k, i, LOCAL_ID(k, 0), n, s->group) {
		struct val v = load_f32(x, i);
		struct val better = GT(v, best);

		SET(at, SELECT(better, i, at));
		SET(best, SELECT(better, v, best));
	}
	struct val top = GROUP_MAX(GET(best));
	/* A row without a number above -infinity: the first element. */
	struct val mine = SELECT(EQ(best, top), at, INT32_MAX);
	struct val first = GROUP_MIN(mine);
	IF(k, EQ(LOCAL_ID(k, 0), 0)) {
		STORE(out, row, SELECT(EQ(first, INT32_MAX), 0, first));
	}
}
