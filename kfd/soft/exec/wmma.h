/*
 * kfd/soft/exec/wmma.h - matrix multiply-accumulate (WMMA).
 *
 * D = A * B + C, all 16 x 16.  Private to wmma*.c, matrix.c and fast/.  Registers
 * of gfx11 hold the matrices as follows (RDNA3 ISA 7.9; "lane" counts in the
 * wave, k is the inner dimension):
 *
 *   A   lane l holds row l mod 16; element k = 2i is in bits 15:0 of register
 *       i, k = 2i + 1 in bits 31:16 (iu8: 4 bytes, iu4: 8 nibbles a register)
 *   B   lane l holds column l mod 16, elements as in A
 *   C D one element a register: of lane t, register j, it is column t mod 16
 *       and row 2j + t / 16 in a wave32, row 4j + t / 16 in a wave64
 *
 * Lanes 16 and above of A and B must repeat lanes 0 to 15.  The hardware wants
 * it so, and nothing says which copy it uses where; here lanes 0 to 15 count.
 * gfx12 has the same words of A and B once each, and rows of C and D elsewhere:
 * kfd/soft/exec/gfx12/matrix.h.
 *
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

enum wmma_type {
	WMMA_F16,
	WMMA_BF16,
	WMMA_FP8,
	WMMA_BF8,
	WMMA_IU8,
	WMMA_IU4,
	WMMA_F32
};

/* What is in which registers and lanes, of wave32 and wave64. */
enum wmma_layout {
	WMMA_GFX11,
	WMMA_GFX11_64,
	WMMA_GFX12,
	WMMA_GFX12_64,
	WMMA_LAYOUTS
};

struct wmma {
	enum wmma_type in, in_b; /* of A; of B, which differs in 8 bits */
	enum wmma_type acc;	 /* float sums: of C and D; 16 or 32 bits */
	enum wmma_layout layout;
	/* Words of A and B, of 16 lanes each, in gfx11's order. */
	const uint32_t *a[WMMA_N / 2], *b[WMMA_N / 2];
	uint32_t neg_a[2], neg_b[2];	/* float: flips of even and odd k */
	bool signed_a, signed_b, clamp; /* integer */
	int shift;		 /* 16: 16-bit C and D are in bits 31:16 */
	bool paired;		 /* 16-bit C and D are there in odd rows only */
	uint32_t c_keep, c_flip; /* float: C is (C & keep) ^ flip */
	bool ovfl;		 /* MODE.FP16_OVFL */
	/* Rows of C and D, 16 columns each; they may be the same. */
	const uint32_t *c[WMMA_N];
	uint32_t *d[WMMA_N];
};

/* Of gfx12, two rows of 16 bits share a register. */
static inline bool soft_wmma_is_paired(enum wmma_layout l, enum wmma_type acc)
{
	return l >= WMMA_GFX12 && (acc == WMMA_F16 || acc == WMMA_BF16);
}

/* Row r of C or D, whose first register is at `at`. */
static inline uint32_t *soft_wmma_row(const uintptr_t *base, uintptr_t at,
				      int r, enum wmma_layout l, bool paired)
{
	const bool wide = l & 1;
	int half, reg, part;

	if (l < WMMA_GFX12) {
		half = wide ? r >> 1 & 1 : 0;
		reg = wide ? r >> 2 : r >> 1;
		part = r & 1;
	} else {
		half = wide ? r >> 2 & 1 : 0;
		reg = (wide ? r & 3 : r & 7) >> paired;
		part = r >> 3;
	}
	return (uint32_t *)(base[half] + at) + reg * SOFT_LANES + part * WMMA_N;
}

/* Word q of the n that a row of A has, 2, 4 or 8, likewise. */
static inline const uint32_t *soft_wmma_word(const uintptr_t *base,
					     uintptr_t at, int q, int n,
					     enum wmma_layout l)
{
	const int odd = n > 2 ? q >> 1 & 1 : q; /* lanes 16 and above */
	const int upper = n == 8 ? q >> 2 : n == 4 ? q & 1 : 0;
	int half = 0, reg = q, part = 0;

	if (l >= WMMA_GFX12) {
		part = odd;
		reg = n == 8 ? q & 1 : 0;
		if (l == WMMA_GFX12_64)
			half = upper;
		else
			reg += upper * (n == 8 ? 2 : 1);
	}
	return (const uint32_t *)(base[half] + at) + reg * SOFT_LANES +
	       part * WMMA_N;
}

/* ------------------------------------------------------- wmma_simd.c ---- */

/* What A and B are turned into floats or halves from. */
enum wmma_from {
	WMMA_FROM_F16,
	WMMA_FROM_BF16,
	WMMA_FROM_FP8,
	WMMA_FROM_BF8,
	WMMA_FROM_U8, /* and, behind each, what is signed */
	WMMA_FROM_I8,
	WMMA_FROM_U4,
	WMMA_FROM_I4,
	WMMA_FROMS
};

/*
 * Microops of what has no modifiers but the signs of integers, for each layout.
 * from[] turns the registers at vreg a into 16 x 16 floats at c, [k][row or
 * column], or into 8 x 16 pairs of halves.  sum[type of C and D, or of integers
 * A's] has such at a and b, C and D at vregs c and d, their halves imm bits up,
 * and leaves it to the handler if a sum is a NaN.  NULL: not on such hosts.
 *
 * `bytes` has those of integers for hosts with AVX-512 VNNI: they make 4 x 16
 * words of four bytes, and want to know by mods[0] and mods[1] whether those of
 * A and B are signed.  Where from[] has none, its sums read vregs a and b.
 */
struct soft_wmma_microops {
	soft_microop_fn *from[WMMA_FROMS][WMMA_LAYOUTS];
	soft_microop_fn *sum[WMMA_F32 + 1][WMMA_LAYOUTS];
	const struct soft_wmma_microops *bytes;
};

/* X(layout, ...) for each. */
#define SOFT_WMMA_EACH(X, ...) \
	X(WMMA_GFX11, __VA_ARGS__) \
	X(WMMA_GFX11_64, __VA_ARGS__) X(WMMA_GFX12, __VA_ARGS__) \
		X(WMMA_GFX12_64, __VA_ARGS__)

#ifdef SIMD_LEVEL
extern const struct soft_wmma_microops SIMD(soft_wmma_microops);
extern const struct soft_wmma_microops SIMD(soft_wmma_bytes);
soft_wmma_fn SIMD(soft_wmma_float), SIMD(soft_wmma_int);
#endif

/* ------------------------------------------------------------ wmma.c ---- */

/*
 * The row of an instruction, which is the op of its handler; NULL: another one,
 * such as those whose inner dimension is not 16.
 */
struct soft_wmma_row;
const struct soft_wmma_row *soft_wmma_of(const struct isa_inst *in);
soft_handler soft_wmma_run;

/* Its types and layout, and the shift of 16-bit C and D. */
void soft_wmma_types(const struct soft_uop *u, bool wide, struct wmma *m);

#endif
