/*
 * kfd/soft/exec/fast/microop_mem.h - memory instructions as steps (step.h).
 *
 * Private to step_mem.c, step_mem_simd.c and step_move_simd.c.  A step moves
 * the lanes of an instruction at once if all their addresses lie in one mapping
 * (or in LDS, in scratch, in the range of a buffer) and nothing is wrong with
 * them; whatever is unusual is left to the handler, which has touched nothing
 * yet.
 *
 * Fields of such a step: a and d are the planes of the address and of the data,
 * b the function that moves (soft_move_fn), c the scalar register of the
 * address, imm the offset, mods[0] the bytes of a lane and mods[1] what the
 * mapping must allow (enum soft_mem_flag).  LDS instructions with two addresses
 * have the second offset in the low half of c, its data plane in the high one.
 * Of atomics b is the operation (soft_atomic_fn), mods[2] whether the old
 * values go to VGPR mask_in.
 */
#ifndef T0_KFD_SOFT_STEP_MEM_H
#define T0_KFD_SOFT_STEP_MEM_H

#include "kfd/soft/exec/fast/microop.h"
#include "kfd/soft/exec/mem.h"

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
#define SOFT_MOVES(X)                                                         \
	X(load_32) X(load_64) X(load_96) X(load_128)                          \
	X(load_u8) X(load_i8) X(load_u16) X(load_i16)                         \
	X(load_low_u8) X(load_low_i8) X(load_low_16)                          \
	X(load_high_u8) X(load_high_i8) X(load_high_16)                       \
	X(store_32) X(store_64) X(store_96) X(store_128)                      \
	X(store_8) X(store_16) X(store_high_8) X(store_high_16)

enum soft_move_kind {
#define X(name) SOFT_MOVE_##name,
	SOFT_MOVES(X)
#undef X
	SOFT_MOVE_COUNT
};

/* What tells where the lanes are. */
enum soft_where {
	SOFT_AT_SADDR,	 /* global: scalar base, 32-bit offsets */
	SOFT_AT_VADDR,	 /* global: 64-bit addresses */
	SOFT_AT_FLAT,	 /* the same, but not in LDS or scratch */
	SOFT_AT_LDS,
	SOFT_AT_LDS2,	 /* two addresses */
	SOFT_AT_SCRATCH,
	SOFT_AT_BUFFER,	 /* MUBUF */
	SOFT_AT_COUNT
};

/* What step_mem_simd.c and step_move_simd.c have for each level of the host. */
struct soft_mem_steps {
	soft_step_fn *step[SOFT_AT_COUNT][2]; /* [][wave64] */
	soft_step_fn *atomic[SOFT_AT_COUNT][2]; /* NULL: handlers */
};
struct soft_move_table {
	soft_move_fn *move[SOFT_MOVE_COUNT];
};
extern const struct soft_move_table soft_moves_v2, soft_moves_v3, soft_moves_v4;
extern const struct soft_mem_steps soft_mem_steps_v2, soft_mem_steps_v3,
	soft_mem_steps_v4;

/* The mapping that holds va, which then is in code->recent; NULL: none. */
const struct soft_range *soft_step_find(struct soft_wave *w, uint64_t va);

/* Add the step of a memory instruction; false: there is none. */
bool soft_step_memory(struct soft_maker *m, const struct soft_uop *u);

#endif
