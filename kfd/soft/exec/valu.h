/*
 * kfd/soft/exec/valu.h - how vector instructions are executed.
 *
 * Private to exec/ and fast/.  A vector instruction is executed in three
 * stages, once per half (32 lanes) of the wave:
 *
 *   fetch    operands become vregs of 32 dwords.  A VGPR without modifiers is
 *            used in place; everything else is built in a scratch vreg:
 *            scalars and constants are broadcast, DPP lanes are permuted,
 *            neg, abs and op_sel are applied, denormals flushed as MODE says.
 *   compute  a lane function (soft_lane_fn) fills x->d, and x->mask_out if it
 *            has a mask result, for all 32 lanes, whether or not they execute.
 *   finish   omod, clamp, flush; lanes in x->exec are written back.
 *
 * Lane functions are in files *_simd.c, which are compiled three times, for
 * x86-64-v2, -v3 and -v4, with SIMD_LEVEL defined as v2, v3 or v4.  Write
 * simple loops over SOFT_LANES with LANES(i); gcc -O3 vectorises them.  All
 * must give the same bits: no contraction, no libm beyond what IEEE 754 defines
 * exactly (sqrt, fma, rint).  Rows of valu.def and vop3.def (each explained at
 * its head) make both the functions and the tables.
 *
 * What a lane function may assume:
 *  - a, b, c are the sources in the order of the text without masks; for rows
 *    with ISA_RD the old destination comes last (so v_fmac is a * b + c).
 *  - dword j of an operand is vreg j: a[j * SOFT_LANES + lane].  Operands of
 *    one to four dwords are fetched, others must be a handler of their own.
 *  - 16-bit operands are in bits 15:0 and bits 31:16 are anything.
 *  - packed operands (V2F16...) of VOP3P have op_sel, op_sel_hi, neg and neg_hi
 *    applied; MIX, V4I8 and V8I4 are raw, with the modifiers in mods[].
 *  - d overlaps no source.  A 16-bit result goes to bits 15:0; finish keeps the
 *    other half of the register and obeys op_sel of the destination.
 *  - clamp of floats is finish's work.  Integer rows look at x->clamp.
 *  - MXCSR has default exceptions masked.  If the row has SOFT_V_ROUND, it has
 *    the rounding mode of MODE for the type of the destination, and makes zeros
 *    of tiny results where that type is f32 or f64 and loses its denormals: both
 *    the host and gfx1100 look at what is tiny after rounding.  Else denormals
 *    are kept, to nearest.
 */
#ifndef T0_KFD_SOFT_VALU_H
#define T0_KFD_SOFT_VALU_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/fast/fast.h"

#define SOFT_OPND_DWORDS 4 /* widest operand that fetch and finish know */

struct soft_lanes {
	const uint32_t *a, *b, *c; /* [dwords][SOFT_LANES] */
	uint32_t *d;		   /* [dwords][SOFT_LANES] */
	uint32_t exec;	   /* lanes that execute: EXEC, and DPP's masks */
	uint32_t mask_in;  /* carry in or select: CI, or VCC if ISA_RVCC */
	uint32_t mask_out; /* compare or carry result; finish ands exec */
	uint32_t mode;	   /* enum soft_mode */
	int half;	   /* 1 in the upper half of a wave64 */
	uint8_t mods[3];   /* enum isa_mod of a, b, c */
	bool clamp;
};

typedef void soft_lane_fn(struct soft_lanes *x);

enum soft_vflag {
	SOFT_V_ROUND = 1,      /* rounds as MODE says: run under that MXCSR */
	SOFT_V_KEEP = 2,       /* denormals stay, whatever MODE says */
	SOFT_V_KEEP_OUT = 4,   /* those of the result do */
	SOFT_V_MICROOP_64 = 8, /* the row's microop writes two dwords */
	SOFT_V_FLUSH = 16,     /* f32 denormals are zeros, whatever MODE says */
	SOFT_V_OMOD = 32,      /* omod counts whatever MODE's denormals are */
	SOFT_V_TRANS = 64,     /* transcendental: omod overflows to infinity */
	SOFT_V_MICROOP_16 = 128, /* the row's microop writes half a dword, the
				  * high one if imm says so */
};

/* A row of valu.def or vop3.def; fn NULL: no lane function executes it. */
struct soft_lane_op {
	soft_lane_fn *fn;
	soft_microop_fn *microop; /* the same on 32-bit operands, or NULL */
	soft_microop_fn *flush;	  /* likewise, f32 denormals become zeros */
	uint8_t flags;	    /* enum soft_vflag */
};

/* MODE as the row sees it. */
static inline uint32_t soft_row_mode(const struct soft_lane_op *row,
				     uint32_t mode)
{
	return row->flags & SOFT_V_FLUSH ? mode & ~SOFT_MODE_DENORM_F32 : mode;
}

#define SOFT_CAT_(a, b) a##_##b
#define SOFT_CAT(a, b)	SOFT_CAT_(a, b)
/* The name of a function or table in this compilation of a _simd.c file. */
#define SIMD(name) SOFT_CAT(name, SIMD_LEVEL)

#define LANES(i) for (int i = 0; i < SOFT_LANES; i++)

/* --------------------------------------------------- dispatch_simd.c ----- */

struct wmma;
typedef void soft_wmma_fn(struct wmma *m); /* wmma.h */

/*
 * Everything that is compiled once for each level of x86-64: the one seam
 * between code that is and code that is not.  Each part is filled in by the
 * *_simd.c file that is named with its type.
 */
struct soft_simd {
	const struct soft_lane_op *ops; /* valu.def, vop3.def: [ISA_OP_COUNT] */
	soft_wmma_fn *wmma_float, *wmma_int;
	const struct soft_wmma_microops *wmma;	 /* wmma.h */
	const struct soft_row_microops *row;	 /* translate.h */
	const struct soft_cross_microops *cross; /* translate.h */
	const struct soft_mem_microops *mem;	 /* translate.h */
	const struct soft_move_table *moves;	 /* translate.h */
};
extern const struct soft_simd soft_simd_v2, soft_simd_v3, soft_simd_v4;

/* ------------------------------------------------------------ valu.c ----- */

/*
 * The vregs of VGPRs reg .. reg + dwords - 1, or NULL after raising a fault:
 * the wave did not allocate them.
 */
uint32_t *soft_vgpr(struct soft_wave *w, int half, unsigned reg, int dwords);

/*
 * What is for this processor: one of the three above.  The environment variable
 * T0_SOFT_SIMD=v2 or v3 makes it do with less, for tests.
 */
const struct soft_simd *soft_simd(void);

/*
 * Run u->op, which is a struct soft_lane_op, on all that an instruction can ask
 * for.  Handlers of single instructions use it for what they share.
 */
soft_handler soft_valu_run;

/* The same on one half of the wave, and on one part of a VOPD instruction. */
void soft_valu_run_part(struct soft_wave *w, const struct soft_uop *u, int half,
			enum soft_dual part);

/* Is it executed by a lane function? */
bool soft_is_lane_op(const struct soft_uop *u);

/* The inline constant or literal of an operand, as a 32-bit source. */
uint32_t soft_constant(const struct soft_uop *u, const struct isa_operand *o);

/* -------------------------------------------------------- valu_dpp.c ----- */

/*
 * Apply the instruction's DPP to a vreg.  Returns the lanes that may be
 * written: those whose row and bank are enabled and whose source is valid or
 * reads as zero.  `exec` is EXEC of this half.
 */
uint32_t soft_dpp(const struct isa_inst *in, uint32_t exec, const uint32_t *src,
		  uint32_t *dst);

/* ------------------------------------------------------------ sdwa.c ----- */

/* The part of source k that the instruction's SDWA selects, in bits from 0 on. */
void soft_sdwa_select(const struct isa_inst *in, int k, const uint32_t *src,
		      uint32_t *dst);
/* The result to its part of a register, and what becomes of the rest. */
void soft_sdwa_put(const struct isa_inst *in, uint32_t exec,
		   const uint32_t *result, uint32_t *reg);

/* ---------------------------------------------------- valu_special.c ----- */

/*
 * Handlers of instructions that are no lane functions; u->op is their (empty)
 * row.  valu_special.c has those of VOP1 (swaps, movrel, readfirstlane), lane.c
 * those of VOP3 and VOP3P (readlane, permlane16).  NULL: not mine.
 */
soft_handler *soft_vop1_special(const struct isa_inst *in);
soft_handler *soft_vop3_special(const struct isa_inst *in);

/* ---------------------------------------------------- float8.c ----- */

/* Conversions and dot products of 8-bit floats, and their row; NULL: not mine. */
soft_handler *soft_float8_handler(const struct isa_inst *in, const void **op);

/* ---------------------------------------------------- matrix.c ----- */

/* Matrix products, and their row; NULL: not mine. */
soft_handler *soft_matrix_handler(const struct isa_inst *in, const void **op);

/* ------------------------------------------------------------ salu.c ----- */

/*
 * Floats in SGPRs, by SALU instructions and gfx12's v_s_...: their handler and the
 * row of the vector instruction that does the same to a lane; NULL: not mine.
 */
soft_handler *soft_scalar_float(const struct isa_inst *in, const void **op);

/* ---------------------------------------------------------- interp.c ----- */

/* Every VINTERP instruction. */
soft_handler soft_interp_run;

/* ------------------------------------------------------ number types ----- */

/* A 32-bit float: denormals become zeros. */
static inline uint32_t soft_flush_f32(uint32_t u)
{
	return u & 0x7f800000 ? u : u & 0x80000000;
}

/* A 64-bit operand's lane, from its two vregs. */
static inline uint64_t soft_get64(const uint32_t *p, int i)
{
	return (uint64_t)p[SOFT_LANES + i] << 32 | p[i];
}

static inline void soft_put64(uint32_t *p, int i, uint64_t v)
{
	p[i] = (uint32_t)v;
	p[SOFT_LANES + i] = (uint32_t)(v >> 32);
}

/* Half precision is computed in float or double: see valu_half.h. */

/* ------------------------------------------------------------- vregs ----- */

/* bit[i] = 1 << i: cheaper than variable shifts before AVX2. */
static const uint32_t soft_lane_bit[SOFT_LANES] = {
#define B4(n) 1u << (n), 2u << (n), 4u << (n), 8u << (n)
	B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28),
#undef B4
};

/*
 * As much of a vreg as the host moves at once.  A vreg that was computed into a
 * local stays in registers if it is only read in such pieces: by memcpy(), or a
 * loop over lanes, it would be in memory.
 */
#if defined(__AVX512F__)
#define SOFT_PIECE_BYTES 64
#elif defined(__AVX__)
#define SOFT_PIECE_BYTES 32
#else
#define SOFT_PIECE_BYTES 16
#endif
typedef uint32_t soft_piece
	__attribute__((vector_size(SOFT_PIECE_BYTES), aligned(4), may_alias));
#define SOFT_PIECES ((int)(SOFT_VREG_BYTES / SOFT_PIECE_BYTES))

static inline void soft_put_vreg(uint32_t *to, const uint32_t *from,
				 uint32_t exec)
{
	const soft_piece *bit = (const soft_piece *)soft_lane_bit;
	const soft_piece *f = (const soft_piece *)from;
	soft_piece *t = (soft_piece *)to;

	if (__builtin_expect(exec == ~0u, 1)) {
#pragma GCC unroll 8
		for (int i = 0; i < SOFT_PIECES; i++)
			t[i] = f[i];
		return;
	}
#pragma GCC unroll 8
	for (int i = 0; i < SOFT_PIECES; i++) {
		soft_piece k = (soft_piece)((bit[i] & exec) == bit[i]);

		t[i] = (f[i] & k) | (t[i] & ~k);
	}
}

static inline void soft_put_vreg16(uint32_t *to, const uint32_t *from,
				   uint32_t exec, bool high)
{
	uint32_t keep = high ? 0xffff : 0xffff0000;
	int shift = high ? 16 : 0;

	LANES(i)
	{
		uint32_t v = (to[i] & keep) | (from[i] & 0xffff) << shift;

		to[i] = exec & soft_lane_bit[i] ? v : to[i];
	}
}

#endif
