/*
 * kernels_int - what the builders of the kernel library share.
 */
#ifndef T0_COMPILER_KERNELS_INT_H
#define T0_COMPILER_KERNELS_INT_H

#include <string.h>

#include "compiler/kernels/kernels.h"

/* Builders fill kernel *k for shape *s, whose defaults are filled in. */
#define BUILDER(name, file) \
	void build_##name(struct dsl *k, const struct kernel_shape *s);
#define K(...)
#include "compiler/kernels/kernels.def"

/* Which of its builder's kernels? */
static inline bool is_kernel(const struct dsl *k, const char *name)
{
	return strcmp(dsl_name(k), name) == 0;
}

/* Element i of a pointer as f32, and back to its type. */
static inline struct val load_f32(struct val p, struct val i)
{
	return CAST(DSL_F32, LOAD(p, i));
}

static inline void store_f32(struct val p, struct val i, struct val x)
{
	STORE(p, i, CAST((enum dsl_type)p.elem, x));
}

/* sum + a b */
static inline struct val add_dot(struct val a, struct val b, struct val sum)
{
	for (uint32_t i = 0; i < a.n; i++)
		sum = FMA(ELEM(a, i), ELEM(b, i), sum);
	return sum;
}

/* Where row r of n elements begins. */
static inline struct val row_of(struct val p, struct val r, struct val n)
{
	return ADVANCE(p, MUL(CAST(DSL_I64, r), CAST(DSL_I64, n)));
}

/* a / b where both are the same in a wave: so that addresses become scalar. */
static inline struct val group_div(struct val a, struct val b)
{
	return READ_FIRST(DIV(a, b));
}

/*
 * The cache of keys or values (kernels.h, "Caches"): three arguments, and the
 * table of one that is paged; and the place of one vector in it.
 */
struct cache_at {
	struct val row, head, sequence, table;
};

static inline struct cache_at cache_args(struct dsl *k,
					 const struct kernel_shape *s)
{
	struct cache_at c = { ARG(k, DSL_I32, "row"), ARG(k, DSL_I32, "head"),
			      ARG(k, DSL_I64, "sequence"), { 0 } };

	if (s->paged)
		c.table = ARG_PTR(k, DSL_I32, "table", DSL_READONLY);
	return c;
}

static inline struct val cache_row(const struct cache_at *c, struct val p,
				   struct val sequence, struct val head,
				   struct val position)
{
	if (c->table.k) {
		sequence = LOAD(c->table,
				ADD(sequence, SHR(position, KERNEL_BLOCK_BITS)));
		position = AND(position, KERNEL_BLOCK - 1);
	}
	struct val at = MUL(CAST(DSL_I64, sequence), c->sequence);

	at = ADD(at, MUL(CAST(DSL_I64, head), CAST(DSL_I64, c->head)));
	return ADVANCE(ADVANCE(p, at), MUL(CAST(DSL_I64, position),
					   CAST(DSL_I64, c->row)));
}

/* HEAD_PIECE elements of a head from `first` (u32) on. */
enum { HEAD_PIECE = 8 };
struct head_piece {
	struct val first;
	uint32_t head; /* elements of the head */
	bool inside;   /* every lane's piece lies within the head */
};

/* Of the head at element `at` of p; what is outside, or not `in`, is 0. */
struct val head_load(struct dsl *k, struct val p, struct val at,
		     const struct head_piece *piece, const struct val *in);
void head_store(struct dsl *k, struct val p, struct val at,
		const struct head_piece *piece, struct val x,
		const struct val *in);
/* A pointer to heads: at multiples of 16 bytes if their size allows. */
struct val head_at(struct val p, uint32_t head);

/* The keys or the values of one head in the cache, see cache.c. */
struct cached {
	struct val at, row;	      /* the first vector; between vectors */
	struct val scale, scale_row;  /* the same of scales, where there are */
	struct val last; /* if set: vectors behind it are this one again */
	/* Paged: the sequence's blocks; `at` is of block 0, the next `step` on. */
	struct val table, step;
};

struct cached cached_head(const struct cache_at *c, struct val p,
			  struct val sequence, struct val head, uint32_t n);
/*
 * Of a paged cache: how far a block is from the first in elements, and what is
 * there.  Its vectors are numbered from 0.
 */
struct val cached_offset(const struct cached *c, struct val block);
struct cached cached_block(const struct cached *c, struct val offset);
/*
 * A lane's piece of vector base + number in the cache's type, as head_load().
 * Where the base is the same in all lanes and the number does not change in a
 * loop, there is no product of vectors in it.
 */
struct val cached_load(const struct cached *c, struct val base,
		       struct val number, const struct head_piece *piece,
		       const struct val *in);
/* What counts it, as f32, where there are scales.  Where no piece is: 0. */
struct val cached_scale(const struct cached *c, struct val base,
			struct val number, const struct head_piece *piece,
			const struct val *in);
static inline bool cached_is_scaled(const struct cached *c)
{
	return c->at.elem == DSL_I8 || c->at.elem == DSL_U32;
}

/* HEAD_PIECE elements with a scale as f32, each cached_more() more. */
struct val cached_numbers(const struct cached *c, struct val x);
static inline double cached_more(const struct cached *c)
{
	return c->at.elem == DSL_I8 ? 128 : 8;
}
/* HEAD_PIECE bytes of E4M3 as f16, each divided by F8_UNIT. */
#define F8_UNIT 256.0
struct val f8_halves(struct val x);
/* The byte of x, in i32. */
struct val f8_code(struct val x);

/*
 * The largest of abs(x) of a group in bits, which keep NaN on top; `top` is 0
 * or that of others.  Then scale and elements as the host makes them.
 */
struct val quant_top(struct val top, struct val x);
struct quant {
	struct val scale, inverse;
} quant_of(struct val top);
struct val quantize(const struct quant *q, struct val x);
/*
 * The same of codes of 4 bits: `top` in u32, the scale in f16, a code in u32.
 */
struct val quant4_top(struct val top, struct val x);
struct quant quant4_of(struct val top);
struct val quant4(const struct quant *q, struct val x);
/* Where the scales of a vector of i8 or u32 of `head` elements begin. */
struct val cache_scales(struct val p, struct val head);
/* Element i of a vector from each lane; a wave has a group or no lane of it. */
void cache_put(struct dsl *k, struct val p, struct val head, struct val i,
	       struct val x);

/* Attention of many queries: what a group works on, see flash.c. */
struct attn_task {
	struct val out, q;
	struct cached kc, vc; /* this head's */
	struct val heads, q_ld, causal, scale; /* scale: in units of log2 */
	struct val begin, n;	/* the sequence's first token; its queries */
	struct val length;	/* its keys */
	struct val h;		/* the head */
	struct val first;	/* query of the group's group / 2 */
};
/* Keys that query i of the sequence sees. */
struct val attn_seen(const struct attn_task *t, struct val i);
/* Without matrix units, in f32. */
void attn_plain(struct dsl *k, const struct kernel_shape *s,
		const struct attn_task *t);

/* ---- one result for each element: KERNEL_VECTOR of them per work-item ---- */

static inline struct val first_index(struct dsl *k)
{
	return MUL(CAST(DSL_U32, GLOBAL_ID(k, 0)), KERNEL_VECTOR);
}

/* The elements of this work-item: all of them, or those below n. */
struct share {
	struct val i, n;
	bool whole;
};

static inline struct val load_part(struct val p, const struct share *at)
{
	return CAST(DSL_F32, at->whole ?
		    LOADV(p, at->i, KERNEL_VECTOR) :
		    LOAD_IN(p, at->i, KERNEL_VECTOR, at->n));
}

static inline void store_part(struct val p, const struct share *at,
			      struct val x)
{
	struct val v = CAST((enum dsl_type)p.elem, x);

	if (at->whole)
		STORE(p, at->i, v);
	else
		STORE_IN(p, at->i, v, at->n);
}

/*
 * Runs `body` for whole vectors where they fit, and element by element at the
 * end of the array.
 */
#define PARTS(k, n, at, body)                                                 \
	do {                                                                  \
		struct share at = { first_index(k), n, true };                 \
		IF(k, LE(ADD(at.i, KERNEL_VECTOR), n)) {                      \
			body;                                                 \
		}                                                             \
		ELSE(k) {                                                     \
			at.whole = false;                                     \
			body;                                                 \
		}                                                             \
	} while (0)

/* The row of this wave, where each wave of a group has one. */
static inline struct val wave_row(struct dsl *k, const struct kernel_shape *s)
{
	return ADD(MUL(GROUP_ID(k, 0), s->group / 32), WAVE(k));
}

#endif
