/*
 * kfd/soft/exec/wmma.h - matrix multiply-accumulate (WMMA).
 *
 * D = A * B + C, all 16 x 16.  Private to wmma*.c and fast/.  Registers hold
 * the matrices as follows (RDNA3 ISA 7.9; "lane" counts in the wave, k is the
 * inner dimension):
 *
 *   A   lane l holds row l mod 16; element k = 2i is in bits 15:0 of register
 *       i, k = 2i + 1 in bits 31:16 (iu8: 4 bytes, iu4: 8 nibbles a register)
 *   B   lane l holds column l mod 16, elements as in A
 *   C D one element a register: of lane t, register j, it is column t mod 16
 *       and row 2j + t / 16 in a wave32, row 4j + t / 16 in a wave64
 *
 * Lanes 16 and above of A and B must repeat lanes 0 to 15.  The hardware wants
 * it so, and nothing says which copy it uses where; here lanes 0 to 15 count.
 * EXEC is ignored.  So is MODE: sums are rounded to nearest even and denormals
 * stay.
 *
 * The manual leaves the order of the sums open.  Here a sum starts with C and
 * adds the products of k = 0 to 15 in this order, each fused, so that it is
 * rounded to f32 sixteen times; f16 and bf16 results are rounded once more.
 * The error of an f32 element is therefore at most 8 units in the last place
 * of the largest partial sum.  The card adds pairs of products as v_dot2_f32
 * does (valu_dot2.h), which cuts instead of rounding: last bits may differ from
 * it by two such units for each pair.  Integer results are exact.  The default
 * NaN (0xffc00000, 0xfe00, 0xffc0) stands for every NaN.
 */
#ifndef T0_KFD_SOFT_WMMA_H
#define T0_KFD_SOFT_WMMA_H

#include "kfd/soft/exec/vop3.h"

#define WMMA_N 16 /* rows, columns, and the inner dimension */

enum wmma_type { WMMA_F16, WMMA_BF16, WMMA_IU8, WMMA_IU4, WMMA_F32 };

struct wmma {
	enum wmma_type in;	     /* of A and B */
	enum wmma_type acc;	     /* float sums: of C and D; 16 or 32 bits */
	const uint32_t *a, *b;	     /* vregs of A and B: [register][lane] */
	uint32_t neg_a[2], neg_b[2]; /* float: flips of even and odd k */
	bool signed_a, signed_b, clamp; /* integer */
	int shift;		     /* 16: 16-bit C and D are in bits 31:16 */
	uint32_t c_keep, c_flip;     /* float: C is (C & keep) ^ flip */
	bool ovfl;		     /* MODE.FP16_OVFL */
	/* Rows of C and D, 16 columns each; they may be the same. */
	const uint32_t *c[WMMA_N];
	uint32_t *d[WMMA_N];
};

/* ------------------------------------------------------- wmma_simd.c ---- */

/* What A and B are turned into floats or halves from. */
enum wmma_from {
	WMMA_FROM_F16,
	WMMA_FROM_BF16,
	WMMA_FROM_U8, /* and, behind each, what is signed */
	WMMA_FROM_I8,
	WMMA_FROM_U4,
	WMMA_FROM_I4,
	WMMA_FROMS
};

/* Row r of C or D, whose first register is at `at`. */
static inline uint32_t *soft_wmma_row(const uintptr_t *base, uintptr_t at,
				      int r, bool wide)
{
	int half = wide ? r >> 1 & 1 : 0, reg = wide ? r >> 2 : r >> 1;

	return (uint32_t *)(base[half] + at) + reg * SOFT_LANES +
	       (r & 1) * WMMA_N;
}

/*
 * Microops of what has no modifiers but the signs of integers.  from[] turns
 * the registers at vreg a into 16 x 16 floats at c, [k][row or column], or into
 * 8 x 16 pairs of halves.  sum[type of C and D, integers: WMMA_IU8][wave64] has
 * such at a and b, C and D at vregs c and d, their halves imm bits up, and
 * leaves it to the handler if a sum is a NaN.  NULL: not on such hosts.
 *
 * `bytes` has those of integers for hosts with AVX-512 VNNI: they make 4 x 16
 * words of four bytes, and want to know by mods[0] and mods[1] whether those of
 * A and B are signed.
 */
struct soft_wmma_microops {
	soft_microop_fn *from[WMMA_FROMS];
	soft_microop_fn *sum[WMMA_F32 + 1][2];
	const struct soft_wmma_microops *bytes;
};

#ifdef SIMD_LEVEL
extern const struct soft_wmma_microops SIMD(soft_wmma_microops);
extern const struct soft_wmma_microops SIMD(soft_wmma_bytes);
soft_wmma_fn SIMD(soft_wmma_float), SIMD(soft_wmma_int);
#endif

/* ------------------------------------------------------------ wmma.c ---- */

/* A handler for any of the six instructions. */
soft_handler soft_wmma_run;

/* The types of an instruction, and the shift of 16-bit C and D. */
void soft_wmma_types(const struct isa_inst *in, struct wmma *m);

#endif
