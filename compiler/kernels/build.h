/* build - what the builders of the kernel library share. */
#ifndef T0_COMPILER_KERNELS_BUILD_H
#define T0_COMPILER_KERNELS_BUILD_H

#include "compiler/kernels/kernels.h"

#define BUILDER(name)                                            \
	struct ssa_func *kernel_##name(const struct kernel_entry *k, \
				       const struct kernel_shape *s, struct err *e)
BUILDER(elementwise);
BUILDER(swiglu_back);
BUILDER(convert);
BUILDER(adamw);
BUILDER(softmax);
BUILDER(rms_norm);
BUILDER(rms_norm_back);
BUILDER(cross_entropy);
BUILDER(cross_entropy_back);
BUILDER(row_reduce);
BUILDER(argmax);
BUILDER(causal_mask);
BUILDER(embed);
BUILDER(embed_back);
BUILDER(transpose);
BUILDER(rope);
BUILDER(gemv);
BUILDER(gemv_int8);
BUILDER(gemv_int4);
BUILDER(qk_norm);
BUILDER(qk_norm_back);
BUILDER(qk_norm_rope);
BUILDER(kv_store);
BUILDER(attn_decode);
BUILDER(attn_join);

/*
 * The builder of a kernel, for a shape with its defaults filled in; NULL after
 * filling *e.  A macro, so that the kernel's file is its builder's.
 */
#define BEGIN(entry, shape, s, e) kernel_begin(DSL_AT, entry, shape, s, e)
struct dsl *kernel_begin(struct dsl_at at, const struct kernel_entry *entry,
			 const struct kernel_shape *shape,
			 struct kernel_shape *s, struct err *e);

/* Element i of a pointer as f32, and back to its type. */
static inline struct val load_f32(struct val p, struct val i)
{
	return CAST(DSL_F32, LOAD(p, i));
}

static inline void store_f32(struct val p, struct val i, struct val x)
{
	STORE(p, i, CAST((enum dsl_type)p.elem, x));
}

/* Where row r of n elements begins. */
static inline struct val row_of(struct val p, struct val r, struct val n)
{
	return ADVANCE(p, MUL(CAST(DSL_I64, r), CAST(DSL_I64, n)));
}

/*
 * The cache of keys or values (kernels.h, "Caches"): three arguments, and the
 * place of one vector in it.
 */
struct cache_at {
	struct val row, head, sequence;
};

static inline struct cache_at cache_args(struct dsl *k)
{
	return (struct cache_at){ ARG(k, DSL_I32, "row"),
				  ARG(k, DSL_I32, "head"),
				  ARG(k, DSL_I64, "sequence") };
}

static inline struct val cache_row(const struct cache_at *c, struct val p,
				   struct val sequence, struct val head,
				   struct val position)
{
	struct val at = MUL(CAST(DSL_I64, sequence), c->sequence);

	at = ADD(at, MUL(CAST(DSL_I64, head), CAST(DSL_I64, c->head)));
	return ADVANCE(ADVANCE(p, at), MUL(CAST(DSL_I64, position),
					   CAST(DSL_I64, c->row)));
}

/* NaN if either is, else the larger: C's MAX drops NaN. */
static inline struct val max_nan(struct val a, struct val b)
{
	return SELECT(ISNAN(a), a, SELECT(ISNAN(b), b, MAX(a, b)));
}

#endif
