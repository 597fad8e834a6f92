/*
 * compiler/kernels/topk.c - the k largest of a row.
 *
 * Which they are is found bit by bit from histograms of eight bits (radix
 * selection), so that a row is read a fixed number of times whatever k is; then
 * they are sorted by counting.
 */
#include "compiler/kernels/kernels_int.h"

enum { BINS = 256, BITS_EACH = 8, MOST = KERNEL_MAX_TOPK };

struct topk {
	struct dsl *k;
	struct val x, n;
	struct val bins;	    /* LDS: histogram */
	struct val found;	    /* LDS: bin, how many of it, its size */
	struct val keys, places;    /* LDS: the k largest, in any order */
	struct val count;	    /* LDS: how many of these there are */
};

/*
 * Larger numbers have larger keys; zeros are equal, NaN is below all others.
 */
static struct val key_of(struct dsl *k, struct val v)
{
	struct val zero = CONST(k, DSL_F32, 0);
	struct val bits = BITS(DSL_U32, SELECT(EQ(v, 0.0), zero, v));
	struct val flip = SELECT(GE(BITS(DSL_I32, bits), 0), 0x80000000u,
				 CONST(k, DSL_U32, 0xffffffffu));

	return SELECT(ISNAN(v), CONST(k, DSL_U32, 0), XOR(bits, flip));
}

static struct val key_at(const struct topk *t, struct val i)
{
	return key_of(t->k, load_f32(t->x, i));
}

/* What is chosen so far: the upper bits, and how many of those below them. */
struct choice {
	struct var bits, need, size;
};

/*
 * One step: of what begins with the chosen bits, the histogram of the next
 * eight; the bin that holds the last of the `need` largest.  `place`: of equal
 * keys, lower places are larger.
 */
static void select_digit(struct topk *t, struct choice *c, uint32_t shift,
			 const struct val *equal)
{
	struct dsl *k = t->k;
	struct val me = LOCAL_ID(k, 0), upper = GET(c->bits);

	STORE(t->bins, me, 0);
	BARRIER(k);
	FOR (k, i, me, t->n, BINS) {
		struct val key = key_at(t, i), in = CONST(k, DSL_BOOL, 1);
		if (equal) {
			in = EQ(key, *equal);
			key = NOT(CAST(DSL_U32, i));
		}
		if (shift + BITS_EACH < 32) {
			struct val same = XOR(key, upper);
			in = AND(in, EQ(SHR(same, shift + BITS_EACH), 0));
		}
		ATOMIC_IF(in, SSA_RMW_ADD, t->bins,
			  AND(SHR(key, shift), BINS - 1), 1);
	}
	BARRIER(k);
	struct val bin = SUB(BINS - 1, me), size = LOAD(t->bins, bin);
	struct val upto = GROUP_SCAN(ADD, size, true), above = SUB(upto, size);
	struct val need = GET(c->need);
	IF (k, AND(LT(above, need), LE(need, upto))) {
		STORE(t->found, 0, bin);
		STORE(t->found, 1, SUB(need, above));
		STORE(t->found, 2, size);
	}
	BARRIER(k);
	SET(c->bits, OR(upper, SHL(CAST(DSL_U32, LOAD(t->found, 0)), shift)));
	SET(c->need, LOAD(t->found, 1));
	SET(c->size, LOAD(t->found, 2));
	BARRIER(k);
}

/* The key of the last one, and the place of the last of those equal to it. */
static void choose_last(struct topk *t, struct val k_least, struct val *key,
			struct val *place)
{
	struct dsl *k = t->k;
	struct choice c = { VAR(k, DSL_U32, 0), VAR_OF(k_least),
			    VAR(k, DSL_I32, 0) };
	struct choice p = { VAR(k, DSL_U32, 0), VAR(k, DSL_I32, 0),
			    VAR(k, DSL_I32, 0) };

	for (int shift = 24; shift >= 0; shift -= BITS_EACH)
		select_digit(t, &c, (uint32_t)shift, NULL);
	*key = GET(c.bits);
	IF (k, LT(c.need, c.size)) {
		SET(p.need, c.need);
		for (int shift = 24; shift >= 0; shift -= BITS_EACH)
			select_digit(t, &p, (uint32_t)shift, key);
	}
	*place = CAST(DSL_I32, NOT(GET(p.bits)));
	*place = SELECT(LT(c.need, c.size), *place, INT32_MAX);
}

static void collect_largest(struct topk *t, struct val last, struct val place)
{
	struct dsl *k = t->k;

	IF (k, EQ(LOCAL_ID(k, 0), 0)) {
		STORE(t->count, 0, 0);
	}
	BARRIER(k);
	FOR (k, i, LOCAL_ID(k, 0), t->n, BINS) {
		struct val key = key_at(t, i);
		struct val in = OR(GT(key, last), AND(EQ(key, last),
						      LE(i, place)));

		IF (k, in) {
			struct val at = ATOMIC(SSA_RMW_ADD, t->count, 0, 1);
			STORE(t->keys, at, key);
			STORE(t->places, at, i);
		}
	}
	BARRIER(k);
}

/*
 * Arguments: value [rows][k] (shape.type), place [rows][k] (i32), x [rows][n],
 * n, k (i32, at most KERNEL_MAX_TOPK).  From the largest down; of equals the
 * one of the lower place first; NaN counts as the smallest.  Behind the n-th
 * the value is -infinity and the place -1.
 */
void build_topk(struct dsl *k, const struct kernel_shape *s)
{
	if (s->group != BINS)
		FAIL(k, "groups of %u work-items; wanted %d", s->group, BINS);
	struct val value = ARG_PTR(k, s->type, "value", 0);
	struct val place = ARG_PTR(k, DSL_I32, "place", 0);
	struct val in = ARG_PTR(k, s->type, "x", DSL_READONLY);
	struct val n = ARG(k, DSL_I32, "n"), many = ARG(k, DSL_I32, "k");
	struct val row = GROUP_ID(k, 0), me = LOCAL_ID(k, 0);
	struct topk t = { k, row_of(in, row, n), n,
			  LDS(k, DSL_I32, BINS, "bins"),
			  LDS(k, DSL_I32, 4, "found"),
			  LDS(k, DSL_U32, MOST, "keys"),
			  LDS(k, DSL_I32, MOST, "places"),
			  LDS(k, DSL_I32, 1, "count") };
	struct val v = row_of(value, row, many), p = row_of(place, row, many);
	struct val some = MIN(MIN(many, n), MOST), last, from;

	IF (k, GT(some, 0)) {
		choose_last(&t, some, &last, &from);
		collect_largest(&t, last, from);
		IF (k, LT(me, some)) {
			struct val a = LOAD(t.keys, me), i = LOAD(t.places, me);
			struct var rank = VAR(k, DSL_I32, 0);

			FOR (k, j, 0, some, 1) {
				struct val b = LOAD(t.keys, j);
				struct val before = LT(LOAD(t.places, j), i);
				struct val first = OR(GT(b, a),
					AND(EQ(b, a), before));
				SET(rank, ADD(rank, CAST(DSL_I32, first)));
			}
			STORE(v, GET(rank), LOAD(t.x, i));
			STORE(p, GET(rank), i);
		}
	}
	IF (k, AND(GE(me, some), LT(me, many))) {
		store_f32(v, me, CONST(k, DSL_F32, -1.0 / 0.0));
		STORE(p, me, -1);
	}
}
