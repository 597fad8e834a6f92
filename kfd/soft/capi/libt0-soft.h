/*
 * libt0-soft - run gfx1100 machine code from any program.
 *
 * The library executes RDNA3 machine code on host threads, bit for bit as the
 * instruction set defines it.  There is no device and no driver: GPU memory is
 * the caller's own address space, and code is bytes.
 *
 *	uint64_t kernarg[2] = { (uintptr_t)out, (uintptr_t)in };
 *	int r = run_asm_ex(code, bytes, 4, 1, 1, 64, 1, 1, kernarg,
 *			   2 << 1 | 1 << 7, 0, NULL, 0);
 *
 * runs 4 workgroups of 64 work-items with the address of `kernarg` in s[0:1]
 * and the workgroup's id in s2.
 *
 * Memory.  What the process may read or write, the code may; anything else is
 * a fault that ends the run with its code, and the process goes on.  What is
 * mapped is looked up once, when the run begins: do not unmap or protect
 * memory that a run uses while it lasts.  Only the bytes of the code can be
 * executed.  After a fault, memory holds what was written before.
 *
 * Threads.  Any number of runs may be under way at the same time.
 *
 * This header stands alone and may be included from C and C++.
 */
#ifndef T0_LIBT0_SOFT_H
#define T0_LIBT0_SOFT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return; 0 is success. */
enum t0_soft_status {
	T0_SOFT_OK = 0,
	T0_SOFT_ILLEGAL = 1,	 /* illegal instruction */
	T0_SOFT_UNSUPPORTED = 2, /* graphics, or a message of trap handlers */
	T0_SOFT_MEMORY = 3,	 /* not mapped, read only, or no code there */
	T0_SOFT_APERTURE = 4,	 /* outside of LDS or scratch through FLAT */
	T0_SOFT_ALIGN = 5,	 /* an atomic that is not aligned */
	T0_SOFT_TRAP = 6,	 /* s_trap */
	T0_SOFT_HANG = 7,	 /* the deadline, or s_sethalt */
	T0_SOFT_ARGUMENT = 8,	 /* sizes that no gfx1100 takes; no memory */
};

/* Everything about a launch; zero what you do not need. */
struct t0_soft_launch {
	const void *code;
	uint32_t code_bytes;
	uint32_t groups[3];	/* workgroups; 0 counts as 1 */
	uint32_t group_size[3]; /* work-items of each, at most 1024; 0 is 1 */
	/*
	 * As COMPUTE_PGM_RSRC2: bits 5:1 number of user SGPRs, 7, 8, 9 put the
	 * workgroup's id of X, Y, Z after them, 23:15 LDS in units of 512
	 * bytes.
	 */
	uint32_t rsrc2;
	/* Bits 19:12, 21, 23, 26: MODE.  0: as compilers set it for compute. */
	uint32_t rsrc1;
	uint32_t scratch_bytes_per_lane;
	/* The user SGPRs; without them s[0:1] is the address `kernarg`. */
	const uint32_t *user_sgprs;
	uint32_t n_user_sgprs;
	const void *kernarg;
	uint32_t wave_size;   /* 32 or 64; 0 = 32 */
	uint32_t threads;     /* 0 = one per processor */
	uint64_t deadline_ns; /* from the call on; 0 = none */
};

/* The fault that ended a run. */
struct t0_soft_fault {
	int status;	       /* enum t0_soft_status */
	uint32_t workgroup[3]; /* where it happened */
	uint32_t wave;	       /* of the workgroup */
	int32_t lane;	       /* -1: scalar, or unknown */
	uint64_t pc;	       /* address of the instruction */
	uint64_t address;      /* that could not be accessed, else 0 */
	char text[256];	       /* a sentence with all of it */
};

/* Run; on failure *f, which may be NULL, says more. */
int t0_soft_run(const struct t0_soft_launch *l, struct t0_soft_fault *f);

/* "memory fault" and so on. */
const char *t0_soft_status_name(int status);

/*
 * The entry that tinygrad's emulator seam expects: wave32, g* in workgroups,
 * l* in work-items, all threads, no deadline.
 */
int run_asm_ex(const void *code, uint32_t code_bytes, uint32_t gx, uint32_t gy,
	       uint32_t gz, uint32_t lx, uint32_t ly, uint32_t lz,
	       const void *kernarg, uint32_t rsrc2,
	       uint32_t scratch_bytes_per_lane, const uint32_t *user_sgprs,
	       uint32_t n_user_sgprs);

#ifdef __cplusplus
}
#endif

#endif
