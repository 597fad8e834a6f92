/*
 * kfd/soft/exec/fast/native.h - runs of microops as code of the host.
 *
 * Private to fast/.  Where the host has AVX2 and lets a process make code,
 * vector microops that follow each other become one function: it costs no
 * dispatch, and keeps what it read and wrote in zmm registers, two for a vreg.
 * All of it is written for AVX-512; on a host without, its registers are values
 * that are in ymm registers or in memory (native_values.c), and each of its
 * instructions becomes some of AVX2's (native_ymm.c).  It stands in front of
 * them as a microop of its own:
 *
 *	microop   ...  native  v_fma_f32  v_add_f32  v_cmp_lt_f32  load  ...
 *	                  `------------------------------------------^
 *
 * Every result goes to its vreg at once, so that the function may give up
 * before any of its microops: it then jumps to that one, and the others follow
 * as if it had not been there.  It does so where the host's instructions would
 * not give the bits wanted, as for sums that are NaN; native.def says when.
 * Nothing in it faults or looks at the PC.
 *
 * It has two bodies, for EXEC all ones and for any other, which is looked at
 * where it begins.  Whatever writes EXEC is the last one in it.
 *
 * Operands are prepared in it (native_prepare.c), lanes moved at will
 * (native_cross.c).  Loads and stores are part of it whose lanes lie as they
 * did before (native_pattern.c, native_place.c, native_mem.c), and so is DPP,
 * where all lanes execute.  For others it leaves to the microop and is entered
 * again behind that one, by a microop that stands there:
 *
 *	native  v_add_nc_u32  load  native  v_fma_f32  ...
 *	   `------------------------------------------^
 *
 * Moves that follow each other and are at one address, but for their offsets,
 * are a group: their lanes are looked at and found in memory once, and it is
 * entered behind all of them.
 *
 * Code is written into pages that are not executable, which then become
 * executable and read only, and stay so.  Each thread has its own.  Where the
 * system refuses that once, nothing more is asked of it: what follows runs as
 * microops.
 */
#ifndef T0_KFD_SOFT_NATIVE_H
#define T0_KFD_SOFT_NATIVE_H

#include "kfd/soft/exec/fast/translate.h"

/* Fewer of them run no faster than by themselves. */
#define SOFT_NATIVE_LEAST 2

/* Pages of code of one thread. */
struct soft_native {
	struct soft_native *older;
	uint8_t *code;
	size_t used_bytes, size_bytes;
};

/*
 * Code in the making; and for a host without zmm registers what its ymm ones
 * have where the code ends so far, or NULL.
 */
struct soft_ymm;
struct soft_code {
	struct buf bytes;
	struct soft_ymm *ymm;
};

#define SOFT_MAX_TEMPS 256 /* vregs */

/* Behind a superblock's temporaries: where such a host keeps what its registers
 * have no room for. */
#define SOFT_NATIVE_HOMES	(SOFT_MAX_TEMPS * (int)SOFT_VREG_BYTES)
#define SOFT_NATIVE_HOMES_BYTES 2560

/* ------------------------------------------------------ native_fuse.c ---- */

/*
 * The n microops of a superblock, with functions in front of runs where `c`
 * and the host allow them; the caller frees them, soft_native_free() their
 * code.  `temp` is where the superblock's temporaries begin, `mode` is
 * MODE[7:0].
 */
struct soft_microop *soft_native_fuse(struct soft_code_cache *c,
				      struct soft_microop *m, size_t n,
				      const uint8_t *temp, uint32_t mode);
void soft_native_free(struct soft_native *pages);

/* ---------------------------------------------------- native_scalar.c ---- */

/* Is it a scalar instruction that soft_native_scalar() knows? */
bool soft_native_is_scalar(const struct soft_microop *m);
void soft_native_scalar(struct soft_code *code, const struct soft_microop *m);
/* Does such a one write this SGPR? */
bool soft_native_writes(const struct soft_microop *m, int reg);

/* ------------------------------------------------------ native_emit.c ---- */

/* Instructions of the host on one zmm each: host.def. */
enum soft_host_op {
#define H(name, ...) SOFT_HOST_##name,
#include "kfd/soft/exec/fast/host.def"
#undef H
	SOFT_HOST_COUNT
};

/* Integer registers that native code uses. */
enum soft_host_reg {
	SOFT_RAX, /* VGPRs of half 0 */
	SOFT_RCX, /* free */
	SOFT_RDX, /* the third argument of a microop: bases */
	SOFT_RSI = 6, /* the second: the microop */
	SOFT_RDI, /* the first: the wave */
	SOFT_R8,  /* temporaries of the superblock */
	SOFT_R9,  /* VGPRs of half 1 */
	SOFT_R10, /* free */
	SOFT_R11, /* free */
	SOFT_RIP = 16, /* what follows the instruction */
};

/* A place in memory. */
struct soft_host_mem {
	enum soft_host_reg base;
	int32_t offset;
};

/*
 * vop[k](zmm d, zmm s1, zmm s2), or of two operands vop[k](zmm d, zmm s2); `k`
 * is the mask register of the lanes to be written, 0: all.  Where `op` compares
 * d is a mask register.
 */
void soft_host_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, int s2, uint8_t imm);
/* The same with s2 in memory: 64 bytes, or a dword for every lane. */
void soft_host_op_mem(struct soft_code *code, enum soft_host_op op, int d,
		      int k, int s1, struct soft_host_mem s2, bool spread,
		      uint8_t imm);

/* A line of the host's caches that will be read; base: one below r8. */
void soft_host_prefetch(struct soft_code *code, struct soft_host_mem m);

/*
 * Mask registers.  16 lanes from memory, and from another one; these, by way of
 * ecx; a or b; 16 lanes of k and 16 of the next one that are also set at
 * `exec`, to memory.
 */
void soft_host_kload16(struct soft_code *code, int k, struct soft_host_mem m);
void soft_host_kmove16(struct soft_code *code, int k, int from);
void soft_host_kset16(struct soft_code *code, int k, uint32_t lanes);
void soft_host_kor(struct soft_code *code, int k, int a, int b);
void soft_host_store_mask(struct soft_code *code, struct soft_host_mem to,
			  int k, struct soft_host_mem exec);

/*
 * Jumps forward, to be placed by soft_host_here(): where the bits of a mask
 * are not all 0; where a dword in memory is not -1, has some of the
 * bits, has none; as flags are; always.
 */
enum soft_host_condition {
	SOFT_HOST_BELOW = 0x82,
	SOFT_HOST_ZERO = 0x84,
	SOFT_HOST_NOT_ZERO,
	SOFT_HOST_ABOVE = 0x87,
};
size_t soft_host_jump_mask(struct soft_code *code, int k);
size_t soft_host_jump_bits(struct soft_code *code, struct soft_host_mem m,
			   uint32_t bits);
size_t soft_host_jump_no_bits(struct soft_code *code, struct soft_host_mem m,
			      uint32_t bits);
size_t soft_host_jump_if(struct soft_code *code, enum soft_host_condition c);
size_t soft_host_jump(struct soft_code *code);
size_t soft_host_jump_not_ones(struct soft_code *code, struct soft_host_mem m);
void soft_host_here(struct soft_code *code, size_t jump);
/* To code before it. */
void soft_host_jump_to(struct soft_code *code, size_t at);

/* Where an SGPR is. */
struct soft_host_mem soft_host_sgpr(int reg);

/* Some opcodes of soft_host_int(). */
#define SOFT_HOST_ADD	0x03u
#define SOFT_HOST_AND	0x23u
#define SOFT_HOST_SUB	0x2bu
#define SOFT_HOST_CMP	0x3bu
#define SOFT_HOST_MOV	0x8bu
#define SOFT_HOST_PUT	0x89u /* memory is written */
#define SOFT_HOST_IMUL	0x0fafu
#define SOFT_HOST_MOVZXB 0x0fb6u /* and others that extend */
#define SOFT_HOST_MOVZXW 0x0fb7u
#define SOFT_HOST_MOVSXB 0x0fbeu
#define SOFT_HOST_MOVSXW 0x0fbfu
#define SOFT_HOST_CMOVZ 0x0f44u

/* op r32, m; of two bytes if it begins with 0f.  The same of 64 bits. */
void soft_host_int(struct soft_code *code, unsigned op, enum soft_host_reg reg,
		   struct soft_host_mem m);
void soft_host_int64(struct soft_code *code, unsigned op,
		     enum soft_host_reg reg, struct soft_host_mem m);
/* The same of two registers; `wide`: of 64 bits. */
void soft_host_int_regs(struct soft_code *code, unsigned op, bool wide,
			enum soft_host_reg reg, enum soft_host_reg rm);
/* Arithmetic with a constant. */
void soft_host_int_const(struct soft_code *code, unsigned op,
			 enum soft_host_reg reg, uint32_t value);
void soft_host_int64_const(struct soft_code *code, unsigned op,
			   enum soft_host_reg reg, int32_t value);
/* The low bits of a register to memory: 8, 16 or 32. */
void soft_host_put(struct soft_code *code, int bits, enum soft_host_reg reg,
		   struct soft_host_mem m);
/* 64 bits shifted: SOFT_HOST_SHL or _SHR. */
#define SOFT_HOST_SHL 4
#define SOFT_HOST_SHR 5
#define SOFT_HOST_SAR 7
void soft_host_shift_const(struct soft_code *code, unsigned digit,
			   enum soft_host_reg reg, unsigned by);
/* rcx = m shifted by ecx, with flags; `prefix` of shlx, sarx, shrx. */
void soft_host_shift(struct soft_code *code, unsigned prefix, bool wide,
		     struct soft_host_mem m);
/* The carry flag is the bool at m; uses ecx.  The zero flag is set if it is
 * false. */
void soft_host_carry(struct soft_code *code, struct soft_host_mem m);
void soft_host_test_byte(struct soft_code *code, struct soft_host_mem m);

/* reg = how many of the low bits at m are 0. */
void soft_host_tzcnt(struct soft_code *code, enum soft_host_reg reg,
		     struct soft_host_mem m);

/* MXCSR becomes what is at m. */
void soft_host_mxcsr(struct soft_code *code, struct soft_host_mem m);

/* reg = value */
void soft_host_set32(struct soft_code *code, enum soft_host_reg reg,
		     uint32_t value);
void soft_host_set64(struct soft_code *code, enum soft_host_reg reg,
		     uint64_t value);
/* Leaves for the microop `skip` behind this one. */
void soft_host_leave(struct soft_code *code, size_t skip);

/* ---------------------------------------------------- native_values.c ---- */

/*
 * On a host without zmm registers they, and mask registers, are where there is
 * room (native_host.h); where there are zmm these do nothing.  Nothing is in
 * any; it is needed no more; whatever is needed is where code that came another
 * way finds it, too.
 */
void soft_host_reset(struct soft_code *code);
void soft_host_forget(struct soft_code *code, int z);
void soft_host_forget_mask(struct soft_code *code, int k);
void soft_host_settle(struct soft_code *code);
/* How it is where a jump is written, for where it arrives; which frees it. */
struct soft_ymm *soft_host_save(const struct soft_code *code);
void soft_host_restore(struct soft_code *code, struct soft_ymm *saved);

/* -------------------------------------------------- native_ymm_make.c ---- */

/* Can ymm registers do it? */
bool soft_ymm_has(enum soft_host_op op, uint8_t imm);

/* ------------------------------------------------------ native_runs.c ---- */

#define SOFT_NATIVE_PAIRS 14 /* of zmm, which hold a vreg */

/* A vreg in registers. */
struct soft_native_pair {
	struct soft_host_mem vreg;
	bool used;
	unsigned last; /* microop that needed it */
};

/* Code of one body of a run in the making. */
struct soft_native_run {
	struct soft_code *code;
	struct soft_code_cache *cache; /* whose waves will run it */
	const uint8_t *temp;
	struct soft_native_pair pair[SOFT_NATIVE_PAIRS];
	unsigned now;
	uint32_t mode; /* MODE[7:0] */
	bool masked;
	bool flush; /* MXCSR makes zeros of denormals */
	bool plain16; /* MODE says of halves what microops expect */
	int half;     /* whose EXEC is in mask registers */
	int mask;     /* the SGPR whose lanes are in those of M */
	size_t first; /* microop at which an instruction with DPP begins, or 0 */
	uint32_t lanes; /* that it writes */
	struct buf bail; /* struct soft_native_bail */
};

/* A jump to be made: to the microop so many behind the run's first. */
struct soft_native_bail {
	size_t jump, skip;
	bool flush; /* MXCSR has to be put back */
};

/* Where a run is entered again. */
struct soft_native_entry {
	size_t before; /* microop of the run */
	size_t code;
	size_t label[2]; /* of the bodies: where it goes on */
	/* What is in registers there if all lanes execute, else nothing. */
	struct soft_native_pair pair[SOFT_NATIVE_PAIRS];
};

/* How many microops from the first one on may be one run. */
size_t soft_native_count(const struct soft_microop *m, size_t n, uint32_t mode);
/* Their code; and where else it is entered, behind the caller's entries. */
void soft_native_emit(struct soft_code_cache *c, struct soft_code *code,
		      const uint8_t *temp, const struct soft_microop *m,
		      size_t n, uint32_t mode, struct buf *entries);
/* Code from here on runs with denormals as zeros, or as ever. */
void soft_native_flush(struct soft_native_run *r, bool flush);
/* Leave if the jump is taken. */
void soft_native_bail(struct soft_native_run *r, size_t jump, size_t skip);

/* -------------------------------------------------------- native_find.c ---- */

/* Does native.def know it, where MODE[7:0] is `mode`, or is it prepared? */
bool soft_native_is_row(const struct soft_microop *m, uint32_t mode);
/* Of such ones: it writes a mask. */
bool soft_native_makes_mask(const struct soft_microop *m, uint32_t mode);

/* -------------------------------------------------------- native_rows.c ---- */

#define SOFT_NOWHERE -1

/* `skip`: where it is left for the microop. */
void soft_native_row(struct soft_native_run *r, const struct soft_microop *m,
		     size_t skip);
/* EXEC of a half to its mask registers, if that is not what they are. */
void soft_native_exec(struct soft_native_run *r, int half);

/* ---------------------------------------------------- native_prepare.c ---- */

/* It fills a temporary, all of its lanes; and there is code for it. */
bool soft_native_is_preparation(const struct soft_microop *m);
bool soft_native_is_prepared(const struct soft_microop *m);
void soft_native_prepare(struct soft_native_run *r,
			 const struct soft_microop *m);

/* Mixed precision: a source that counts as float, as its modifiers say. */
bool soft_native_is_mixed(const struct soft_microop *m);
int soft_native_mixed(struct soft_native_run *r, int pair, unsigned mods);

/* ------------------------------------------------------- native_cross.c ---- */

/* Does it move lanes at will?  If all of them execute only? */
bool soft_native_is_cross(const struct soft_microop *m);
bool soft_native_crosses_all(const struct soft_microop *m);
void soft_native_cross(struct soft_native_run *r, const struct soft_microop *m);

/* ------------------------------------------------------- native_pairs.c ---- */

/* Where a vreg is, and its lanes from 16 i on. */
struct soft_host_mem soft_native_vreg(const struct soft_native_run *r, int base,
				      uintptr_t at);
struct soft_host_mem soft_native_half(struct soft_host_mem vreg, int i);

/* What no pair holds any more is needed by nobody, nor are masks but M, EXEC.
 */
void soft_native_forget_free(struct soft_native_run *r);
/* A pair of registers: one that is free; with a vreg; is the vreg from now on.
 */
int soft_native_take(struct soft_native_run *r);
int soft_native_load(struct soft_native_run *r, struct soft_host_mem vreg);
void soft_native_hold(struct soft_native_run *r, int pair,
		      struct soft_host_mem vreg);
void soft_native_store(struct soft_native_run *r, int pair,
		       struct soft_host_mem vreg);
void soft_native_store_half(struct soft_native_run *r, int pair,
			    struct soft_host_mem vreg, int i);
/* The result of lanes that execute to its vreg, which then is in registers. */
void soft_native_put(struct soft_native_run *r, int t,
		     struct soft_host_mem vreg);
/* Bits 15:0 of each lane of t to one half of it, the vreg's to the other one. */
void soft_native_merge_half(struct soft_native_run *r, int t,
			    struct soft_host_mem vreg, bool high);
/* A copy of a pair with zeros in lanes that do not execute. */
int soft_native_active(struct soft_native_run *r, int pair);

/* Registers besides those of pairs, two zmm each; and masks, of 16 lanes. */
#define SOFT_PAIR_U 14
#define SOFT_PAIR_V 15
enum {
	SOFT_K_OTHER = 0, /* what no instruction can be masked by */
	SOFT_K_M = 1,	  /* and 2; or where something is odd */
	SOFT_K_IN = 3,	  /* and 4; or, of a row that makes M, the same */
	SOFT_K_EXEC = 5,  /* and 6 */
	SOFT_K_N = 7,	  /* in use for one row of lanes at a time */
	SOFT_K_COUNT
};

/* Constants in front of the code, which knows them by their offsets. */
#define SOFT_COUNT_(...) (sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)
enum soft_native_constant {
#define K(name, value) SOFT_NATIVE_##name,
#define Q(name, value) SOFT_NATIVE_##name, SOFT_NATIVE_##name##_HIGH,
#define F(name, ...) \
	SOFT_NATIVE_##name, \
	SOFT_NATIVE_##name##_LAST = \
		SOFT_NATIVE_##name + (int)SOFT_COUNT_(__VA_ARGS__) - 1,
#include "kfd/soft/exec/fast/constants.def"
#undef F
#undef Q
#undef K
	SOFT_NATIVE_CONSTANTS
};

/* Is it a dword or two for all lanes, and no zmm? */
static inline bool soft_native_is_spread(int constant)
{
	return constant >= SOFT_NATIVE_31;
}

static inline struct soft_host_mem soft_native_at(int constant)
{
	return (struct soft_host_mem){ SOFT_RIP, constant * 4 };
}

/* --------------------------------------------------- native_pattern.c ---- */

/* Does it move lanes of a wave32?  If some lanes execute, and not all? */
bool soft_native_moves(const struct soft_microop *m);
bool soft_native_moves_some(const struct soft_microop *m);
/* Does the next one move lanes that lie from their addresses as those of this
 * one do, so that host code finds both at once? */
bool soft_native_moves_next(const struct soft_microop *m);
/* Is what it moves found in one of cache->line[][][]? */
bool soft_native_in_memory(const struct soft_microop *m);

/* ------------------------------------------------------- native_mem.c ---- */

/* Only then.  If lanes lie in another way it leaves to the microop. */
void soft_native_move(struct soft_native_run *r, const struct soft_microop *m,
		      size_t skip);
/* The same of some that are found at once, where all lanes execute. */
void soft_native_move_group(struct soft_native_run *r,
			    const struct soft_microop *m, size_t n,
			    size_t skip);

#endif
