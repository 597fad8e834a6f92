/*
 * kfd/soft/exec/fast/native.h - runs of microops as code of the host.
 *
 * Private to fast/.  Where the host has AVX-512 and lets a process make code,
 * vector microops that follow each other become one function: it costs no
 * dispatch, and keeps what it read and wrote in zmm registers, two for a vreg.
 * It stands in front of them as a microop of its own:
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

/* ------------------------------------------------------ native_runs.c ---- */

/*
 * The n microops of a superblock, with functions in front of runs where `c`
 * and the host allow them; the caller frees them, soft_native_free() their
 * code.  `temp` is where the superblock's temporaries begin.
 */
struct soft_microop *soft_native_fuse(struct soft_code_cache *c,
				      const struct soft_microop *m, size_t n,
				      const uint8_t *temp);
void soft_native_free(struct soft_native *pages);

/* ---------------------------------------------------- native_scalar.c ---- */

/* Is it a scalar instruction that soft_native_scalar() knows? */
bool soft_native_is_scalar(const struct soft_microop *m);
void soft_native_scalar(struct buf *code, const struct soft_microop *m);
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
void soft_host_op(struct buf *code, enum soft_host_op op, int d, int k, int s1,
		  int s2, uint8_t imm);
/* The same with s2 in memory: 64 bytes, or a dword for every lane. */
void soft_host_op_mem(struct buf *code, enum soft_host_op op, int d, int k,
		      int s1, struct soft_host_mem s2, bool spread,
		      uint8_t imm);

/*
 * Mask registers.  16 lanes from memory; 16 high ones and 16 low ones to 32; a
 * or b; those 32 of k that are also set at `exec`, to memory.
 */
void soft_host_kload16(struct buf *code, int k, struct soft_host_mem m);
void soft_host_kunpack(struct buf *code, int k, int high, int low);
void soft_host_kor(struct buf *code, int k, int a, int b);
void soft_host_store_mask(struct buf *code, struct soft_host_mem to, int k,
			  struct soft_host_mem exec);

/*
 * Jumps forward, to be placed by soft_host_here(): where the 16 bits of a mask
 * are not all 0; where a dword in memory is not -1; always.
 */
size_t soft_host_jump_mask(struct buf *code, int k);
size_t soft_host_jump_not_ones(struct buf *code, struct soft_host_mem m);
void soft_host_here(struct buf *code, size_t jump);

/* Where an SGPR is. */
struct soft_host_mem soft_host_sgpr(int reg);

/* Opcodes of soft_host_int() besides those of arithmetic. */
#define SOFT_HOST_MOV	0x8bu
#define SOFT_HOST_PUT	0x89u /* memory is written */
#define SOFT_HOST_IMUL	0x0fafu
#define SOFT_HOST_CMOVZ 0x0f44u

/* op r32, m; of two bytes if it begins with 0f. */
void soft_host_int(struct buf *code, unsigned op, enum soft_host_reg reg,
		   struct soft_host_mem m);
/* The same with a constant: arithmetic and SOFT_HOST_IMUL. */
void soft_host_int_const(struct buf *code, unsigned op, enum soft_host_reg reg,
			 uint32_t value);
/* ecx = m shifted by ecx, with flags; `prefix` of shlx, sarx, shrx. */
void soft_host_shift(struct buf *code, unsigned prefix, struct soft_host_mem m);
/* The carry flag is the bool at m; uses ecx.  The zero flag is set if it is
 * false. */
void soft_host_carry(struct buf *code, struct soft_host_mem m);
void soft_host_test_byte(struct buf *code, struct soft_host_mem m);

/* reg = value; reg = *m; reg = value. */
void soft_host_set32(struct buf *code, enum soft_host_reg reg, uint32_t value);
void soft_host_load64(struct buf *code, enum soft_host_reg reg,
		      struct soft_host_mem m);
void soft_host_set64(struct buf *code, enum soft_host_reg reg, uint64_t value);
/* Leaves for the microop `skip` behind this one. */
void soft_host_leave(struct buf *code, size_t skip);

#endif
