/*
 * eval - what a pure operation of the SSA form computes, on bits.
 *
 * The interpreter and constant folding both ask here, so that they cannot
 * disagree.  A scalar is its bits, zero-extended to 64; a packed pair has
 * element 0 in the low half of 32 bits.  NaN results are quiet, with any sign.
 * Operations of limited accuracy (compiler/ssa/ssa.def) are computed in double
 * precision and rounded once; ssa_eval_exact() says which those are not.
 */
#ifndef T0_COMPILER_EVAL_H
#define T0_COMPILER_EVAL_H

#include "compiler/ssa/ssa.h"

/* ------------------------------------------------------------ eval.c ---- */

/*
 * The value of a pure operation on scalars and packed pairs from those of its
 * operands; false if that is not what it is (leaves, pack, extract, ptr of
 * unknown place are the caller's).  ptradd of lds is done modulo 2^32.
 */
bool ssa_eval(const struct ssa_inst *i, const uint64_t *arg, uint64_t *out);
/* Is every device's result the same, bit for bit (any NaN equal)? */
bool ssa_eval_exact(const struct ssa_inst *i);
/* a op b, as atomics, reductions and scans combine; t is a scalar. */
uint64_t ssa_eval_rmw(enum ssa_rmw op, struct ssa_type t, uint64_t a,
		      uint64_t b);
/* What leaves a reduction over nothing. */
uint64_t ssa_rmw_identity(enum ssa_rmw op, struct ssa_type t);
bool ssa_eval_pred(enum ssa_pred p, enum ssa_kind kind, uint64_t a, uint64_t b);

/* ----------------------------------------------------------- float.c ---- */

/* Bits of f16, bf16, f32 or f64 and the number, rounded to nearest even. */
double ssa_bits_to_f64(enum ssa_kind kind, uint64_t bits);
uint64_t ssa_f64_to_bits(enum ssa_kind kind, double v);
/* a b + c rounded once to the kind. */
uint64_t ssa_fma_bits(enum ssa_kind kind, uint64_t a, uint64_t b, uint64_t c);

/* Sign-extended from the kind's width; and cut to it. */
static inline int64_t ssa_bits_to_s(enum ssa_kind kind, uint64_t bits)
{
	const uint32_t drop = 64 - ssa_kind_bits(kind);

	return (int64_t)(bits << drop) >> drop;
}
static inline uint64_t ssa_bits_cut(enum ssa_kind kind, uint64_t v)
{
	return v << (64 - ssa_kind_bits(kind)) >> (64 - ssa_kind_bits(kind));
}

#endif
