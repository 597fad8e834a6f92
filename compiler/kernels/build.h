/* build - what the builders of the kernel library share. */
#ifndef T0_COMPILER_KERNELS_BUILD_H
#define T0_COMPILER_KERNELS_BUILD_H

#include "compiler/kernels/kernels.h"

#define K(name, builder, per, group, what)                             \
	struct ssa_func *kernel_##builder(const struct kernel_entry *k, \
					  const struct kernel_shape *s, \
					  struct err *e);
#include "compiler/kernels/kernels.def"

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

/* NaN if either is, else the larger: C's MAX drops NaN. */
static inline struct val max_nan(struct val a, struct val b)
{
	return SELECT(ISNAN(a), a, SELECT(ISNAN(b), b, MAX(a, b)));
}

#endif
