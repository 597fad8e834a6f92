/*
 * kfd/soft/exec/fast/translate.h - instructions to microops.
 *
 * Private to fast/.  superblock.c walks the instructions; each translate_*.c
 * knows a family of them, and takes the functions of its microops from the
 * struct of that family below, which a *_simd.c file fills in for each level
 * of x86-64 (struct soft_simd, valu.h).
 */
#ifndef T0_KFD_SOFT_TRANSLATE_H
#define T0_KFD_SOFT_TRANSLATE_H

#include "kfd/soft/exec/code.h"
#include "kfd/soft/exec/mem.h"
#include "kfd/soft/exec/wmma.h"

#define SOFT_FRAGMENTS 16 /* of matrices, in floats */

/* A superblock in the making. */
struct soft_translator {
	const struct soft_simd *simd;
	struct soft_code_cache *cache;
	struct buf microops;
	uint8_t *temp; /* [max_temps] vregs */
	int n_temps, max_temps;
	/* Vregs that hold a constant, or an SGPR in every lane. */
	struct {
		uint32_t lo, hi; /* value, or register */
		int dwords;
		bool scalar, valid;
		uint8_t *vreg;
	} known[64];
	int n_known;
	struct {
		enum wmma_from kind;
		int reg;       /* the first of its 8 VGPRs */
		bool valid;    /* the vregs have what the registers have */
		uint8_t *vreg; /* 8 of them: what wmma.h says */
	} fragment[SOFT_FRAGMENTS];
	int n_fragments;
	uint32_t mode; /* MODE[7:0] */
	bool wide;     /* wave64 */
	uint64_t n_insts;
	unsigned n_loads; /* so far, of this thread */
};

/* ------------------------------------------------------ superblock.c ---- */

struct soft_microop *soft_translator_emit(struct soft_translator *t,
					  soft_microop_fn *fn,
					  const struct soft_uop *u);
/* `n` vregs that no other microop uses, NULL: no more room. */
uint8_t *soft_translator_temps(struct soft_translator *t, int n);

/* Calls the handler; the superblock goes on if the wave may. */
soft_microop_fn soft_microop_checked;
/* The same of handlers that neither fault nor look at the PC. */
soft_microop_fn soft_microop_call;

/* -------------------------------------------------- translate_valu.c ---- */

/* Emit the microops of a vector instruction; false: none were. */
bool soft_translate_valu(struct soft_translator *t, const struct soft_uop *u);

/* How lanes move by DPP; a temporary vreg holds one. */
struct soft_microop_dpp {
	uint32_t exec;	  /* EXEC while the instruction runs with less */
	uint32_t valid;	  /* lanes whose source is in their row */
	uint32_t enabled; /* by row_mask and bank_mask */
	bool fetch;	  /* sources that do not execute count */
	bool bound;	  /* lanes without a source are written: 0 */
};

/*
 * microop_row_simd.c: for any row of valu.def and vop3.def, and for what comes
 * before and after one.  Rows that have a microop of their own (valu_microop.h)
 * need these only for operands that have to be prepared; a prepared operand is
 * a temporary.
 */
struct soft_row_microops {
	/* SGPR imm to the vreg at a; and SGPRs imm, imm + 1 to two vregs. */
	soft_microop_fn *spread, *spread2;
	/*
	 * The vreg of b to the vreg at a, with the modifiers of operand
	 * imm & 15; imm & 16: denormals become zeros.
	 */
	soft_microop_fn *mods;
	/* The signs of 32-bit floats only: imm is 1 to negate, 2: magnitude. */
	soft_microop_fn *signs;
	/*
	 * The vreg of b to the vreg at a, lane i from lane c[i]; d is the
	 * struct soft_microop_dpp.  EXEC has the lanes to be written until
	 * dpp_end.
	 */
	soft_microop_fn *dpp, *dpp_end;
	/*
	 * Any row, by its lane function; imm: dwords of the result.  Of row16,
	 * the result goes to the half imm of the register.  The others also do
	 * what the instruction wants done with a float: omod, clamp, flush.
	 */
	soft_microop_fn *row, *row16, *row_finish, *row16_finish;
};

/* -------------------------------------------------- translate_wmma.c ---- */

/*
 * Emit the microops of a WMMA instruction; false: there are none.  A fragment
 * that several of them share becomes floats once, as long as nothing writes its
 * registers: soft_translator_forget_written() is told of every other
 * instruction.
 */
bool soft_translate_wmma(struct soft_translator *t, const struct soft_uop *u);
void soft_translator_forget_written(struct soft_translator *t,
				    const struct soft_uop *u);

/* ------------------------------------------------- translate_cross.c ---- */

/* Emit the microop of an instruction that moves lanes at will; false: none. */
bool soft_translate_cross(struct soft_translator *t, const struct soft_uop *u);
/*
 * The same of one that reads or writes a lane of a VGPR, and at most one SGPR;
 * its imm is how many lanes the wave has.  NULL: none.
 */
const struct soft_microop *soft_translate_lane(struct soft_translator *t,
					       const struct soft_uop *u);

/* microop_cross_simd.c: b is the vreg that is read, d the one written. */
struct soft_cross_microops {
	soft_microop_fn *bpermute; /* a: the vreg of addresses, imm: offset */
	soft_microop_fn *swizzle;  /* a: a temporary: lanes to be read */
	/* Of a wave32.  imm: 16 to read the other row; part: any lane may be
	 * read, else the handler does it unless all execute. */
	soft_microop_fn *permlane;
};

/* --------------------------------------------------- translate_mem.c ---- */

/* Emit the microop of a memory instruction; false: there is none. */
bool soft_translate_memory(struct soft_translator *t, const struct soft_uop *u);

/* The mapping that holds va, which then is in code->recent; NULL: none. */
const struct soft_range *soft_find_range(struct soft_wave *w, uint64_t va);

/*
 * A memory microop moves the lanes of an instruction at once if all their
 * addresses lie in one mapping (or in LDS, in scratch, in the range of a
 * buffer) and nothing is wrong with them; whatever is unusual is left to the
 * handler, which has touched nothing yet.
 *
 * Its fields: a and d are the vregs of the address and of the data, b the
 * function that moves (soft_move_fn), c the scalar register of the address, imm
 * the offset, mods[0] the bytes of a lane, mods[1] what the mapping must allow
 * (enum soft_mem_flag), mods[2] whether a whole dword is moved, and ka the
 * version of what is known of its lanes.  LDS instructions with two addresses
 * have the second offset in the low half of c, its data vreg in the high one.
 * Of atomics b is the operation (soft_atomic_fn) and kb the same of all lanes,
 * mods[2] whether the old values go to VGPR mask_in.
 */

/* Atomics that are computed for all lanes at once (atomic.def). */
enum soft_atomic_lanes {
	SOFT_LANES_NONE,
	SOFT_LANES_ADD_F32_LDS,
	SOFT_LANES_ADD_F32_MEM,
#define ATOMIC(name, type, expr)
#define LANES_32(name, type, expr) SOFT_LANES_##name,
#include "kfd/soft/exec/atomic.def"
	SOFT_LANES_COUNT
};

/* The lanes of one half: byte i of its registers is at host + offset[lane]. */
struct soft_move {
	uint8_t *host;
	const uint32_t *offset; /* [SOFT_LANES] */
	uint32_t *data;		/* [dwords][SOFT_LANES] */
	uint32_t exec;		/* not 0 */
};
typedef void soft_move_fn(const struct soft_move *m);

/*
 * X(name): every way to move.  The number is of bits; sub-dword loads say how
 * they are extended, and those that keep half of a register which one they
 * write.
 */
#define SOFT_MOVES(X) \
	X(load_32) \
	X(load_64) X(load_96) X(load_128) X(load_u8) X(load_i8) X(load_u16) \
		X(load_i16) X(load_low_u8) X(load_low_i8) X(load_low_16) \
			X(load_high_u8) X(load_high_i8) X(load_high_16) \
				X(store_32) X(store_64) X(store_96) \
					X(store_128) X(store_8) X(store_16) \
						X(store_high_8) \
							X(store_high_16)

enum soft_move_kind {
#define X(name) SOFT_MOVE_##name,
	SOFT_MOVES(X)
#undef X
		SOFT_MOVE_COUNT
};

/* What tells where the lanes are. */
enum soft_where {
	SOFT_AT_SADDR, /* global: scalar base, 32-bit offsets */
	SOFT_AT_VADDR, /* global: 64-bit addresses */
	SOFT_AT_FLAT,  /* the same, but not in LDS or scratch */
	SOFT_AT_LDS,
	SOFT_AT_LDS2, /* two addresses */
	SOFT_AT_SCRATCH,
	/*
	 * The same where a lane's dwords lie a wave apart: a microop moves one
	 * dword or less, the mask_in'th of the mods[0] bytes.
	 */
	SOFT_AT_SWIZZLED,
	SOFT_AT_BUFFER, /* MUBUF */
	SOFT_AT_COUNT
};

/* Emit the microop of s_load; false: there is none. */
bool soft_translate_scalar_load(struct soft_translator *t,
				const struct soft_uop *u);

/* What a microop's host code looks at: mask_out says which (native_place.c). */
static inline struct soft_line *soft_line_of(struct soft_code_cache *c,
					     const struct soft_microop *m)
{
	return &c->line[m->mask_out % SOFT_LINES]
		       [m->u->in.fmt == ISA_FMT_FLAT]
		       [(m->mods[1] & SOFT_MEM_WRITE) != 0];
}

static inline struct soft_pattern *soft_pattern_of(const struct soft_microop *m)
{
	return &((struct soft_node *)m->u)->pattern;
}

/* Nothing was known of its lanes when the microop was made. */
static inline bool soft_is_scattered(const struct soft_microop *m)
{
	return m->ka == SOFT_SCATTERED;
}

/* What handlers have seen is expected from now on; `bytes` of a lane. */
void soft_pattern_settle(struct soft_code_cache *c, struct soft_pattern *p,
			 uint32_t bytes);
/* Lanes were not where they are expected; `off` says where they are. */
void soft_pattern_learn(struct soft_code_cache *c, const struct soft_microop *m,
		      const uint32_t *off);

/*
 * How far ahead lines of four dwords are fetched: weights that a kernel streams
 * are read once, and so in no cache.
 */
#define SOFT_AHEAD_BYTES 6144

/* microop_mem_simd.c and microop_move_simd.c. */
struct soft_mem_microops {
	/* mods[0] dwords at SGPR pair c plus imm plus SGPR mask_in, to d. */
	soft_microop_fn *scalar_load;
	soft_microop_fn *move[SOFT_AT_COUNT][2];   /* [][wave64] */
	soft_microop_fn *atomic[SOFT_AT_COUNT][2]; /* NULL: handlers */
};
struct soft_move_table {
	soft_move_fn *move[SOFT_MOVE_COUNT];
};

#endif
