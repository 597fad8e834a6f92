/*
 * attn-ref - a cache of keys and values with holes, and attention to it in
 * double precision, for tests of attention kernels.
 */
#ifndef T0_TESTS_ATTN_REF_H
#define T0_TESTS_ATTN_REF_H

#include "tests/ref/cache.h"

/* How much, of which types. */
struct attn_shape {
	uint32_t tokens, heads, kv_heads, head, slots, positions;
	bool heads_first; /* [slot][head][position], else heads are last */
	bool paged;	  /* [block][head][position of the block], by a table */
};

struct attn_cache {
	struct arr k, v;
	uint32_t row, head, sequence; /* strides, in elements */
	struct arr table;	      /* [slots][pages] of one that is paged */
	uint32_t pages;
};

static inline size_t cache_place(const struct attn_cache *c, uint32_t slot,
				 uint32_t head, uint32_t position)
{
	size_t block = slot;

	if (c->pages) {
		block = (size_t)arr_get(&c->table, slot * c->pages +
							   position / 16);
		position %= 16;
	}
	return block * c->sequence + head * c->head + position * c->row;
}

/* What a kernel is told of a slot. */
static inline uint32_t cache_slot(const struct attn_cache *c, uint32_t slot)
{
	return c->pages ? slot * c->pages : slot;
}

/* Blocks in no order; entries behind the last are of no block. */
static inline void cache_page(struct attn_cache *c, const struct attn_shape *s)
{
	const uint32_t each = (s->positions + 15) / 16, n = s->slots * each;

	c->pages = each + 8;
	c->table = arr_new(SSA_I32, (size_t)s->slots * c->pages);
	for (size_t i = 0; i < c->table.n; i++)
		arr_set(&c->table, i, 1 << 20);
	for (uint32_t i = 0; i < n; i++)
		arr_set(&c->table, i / each * c->pages + i % each,
			(i * 7 + 3) % n);
}

/* Every vector is NaN, so that what should not be read does not stay unseen. */
static inline struct attn_cache cache_new(enum ssa_kind kind,
					  const struct attn_shape *s)
{
	const uint32_t each = cache_row_of(kind, s->head);
	struct attn_cache c = {
		.row = s->heads_first ? each : s->kv_heads * each,
		.head = s->heads_first ? s->positions * each : each,
		.sequence = s->positions * s->kv_heads * each,
	};
	size_t n = (size_t)s->slots * c.sequence;

	if (s->paged) {
		cache_page(&c, s);
		c.row = each;
		c.head = 16 * each;
		c.sequence = 16 * s->kv_heads * each;
		n = (size_t)s->slots * ((s->positions + 15) / 16) * c.sequence;
	}
	c.k = arr_new(kind, n);
	c.v = arr_new(kind, n);
	/* Of all types: the scales of i8, too. */
	memset(c.k.bits, 0xff, c.k.n * arr_bytes(&c.k));
	memset(c.v.bits, 0xff, c.v.n * arr_bytes(&c.v));
	return c;
}

/* Random vectors for the first n positions of a slot. */
static inline void cache_fill(struct attn_cache *c, const struct attn_shape *s,
			      uint32_t slot, uint32_t n, uint64_t *seed)
{
	for (uint32_t h = 0; h < s->kv_heads; h++)
		for (uint32_t p = 0; p < n; p++) {
			size_t at = cache_place(c, slot, h, p);

			vector_random(&c->k, at, s->head, seed);
			vector_random(&c->v, at, s->head, seed);
		}
}

static inline void cache_fini(struct attn_cache *c)
{
	free(c->k.bits);
	free(c->v.bits);
	free(c->table.bits);
}

static inline void call_cache(struct ssa_call *c, const struct attn_cache *at)
{
	call_u32(c, at->row);
	call_u32(c, at->head);
	call_u64(c, at->sequence);
	if (at->pages)
		call_arr(c, &at->table);
}

/* One query and the keys that it sees: positions first..n-1. */
struct attn_query {
	const struct arr *q;
	size_t q_at;
	uint32_t slot, kv_head, first, n;
	double scale;
	double precision;   /* of weights, if they are rounded before V; or 0 */
	double q_precision; /* of queries, if they are rounded before K; or 0 */
};

/*
 * Wanted values and bounds of one head.  A score has the error of a sum of
 * `head` products, in chains of at most 16 roundings, of its terms' sizes; it
 * is the relative error of its weight, on top of the exponential's and the
 * running sum's.  Weights are in numerator and denominator.
 */
static inline void attn_reference(const struct attn_query *a,
				  const struct attn_cache *c, uint32_t head,
				  double *want, double *tol, enum ssa_kind out)
{
	double *score = calloc(a->n + 1, sizeof(*score));
	double top = -INFINITY, sum = 0, size = 0, far = 0;

	for (uint32_t p = a->first; p < a->n; p++) {
		size_t at = cache_place(c, a->slot, a->kv_head, p);
		double terms = 0;

		for (uint32_t i = 0; i < head; i++) {
			double t = arr_get(a->q, a->q_at + i) *
				   cache_get(&c->k, at, head, i) * a->scale;
			score[p] += t;
			terms += isfinite(t) ? fabs(t) : 0;
		}
		size = fmax(size, terms);
		top = isnan(score[p]) ? NAN : fmax(top, score[p]);
	}
	for (uint32_t p = a->first; p < a->n; p++) {
		far = fmax(far, isfinite(score[p]) ? fabs(score[p] - top) : 0);
		sum += score[p] = exp(score[p] - top);
	}
	double rel = 0x1p-23 * (16 * size + far + 8 + sqrt(a->n)) +
		     a->precision + a->q_precision * size;

	for (uint32_t i = 0; i < head; i++) {
		double v = 0, all = 0;

		for (uint32_t p = a->first; p < a->n; p++) {
			size_t at = cache_place(c, a->slot, a->kv_head, p);
			double t = score[p] / sum *
				   cache_get(&c->v, at, head, i);
			v += t;
			all += isfinite(t) ? fabs(t) : 0;
		}
		want[i] = v;
		tol[i] = 2 * rel * all + .51 * ulp_of(out) * fabs(v) +
			 step_of(out);
	}
	free(score);
}

#endif
