/*
 * kfd/soft/exec/mem.h - memory instructions, and what their handlers share.
 *
 * Private to exec/ and fast/.
 */
#ifndef T0_KFD_SOFT_MEM_H
#define T0_KFD_SOFT_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "kfd/soft/exec/exec.h"

/* Are all bits of VCC, of EXEC zero that the wave has? */
static inline bool soft_is_vccz(const struct soft_wave *w)
{
	return !(w->s[ISA_R_VCC_LO] |
		 (w->wave_size == 64 ? w->s[ISA_R_VCC_HI] : 0));
}

static inline bool soft_is_execz(const struct soft_wave *w)
{
	return !(w->s[ISA_R_EXEC_LO] |
		 (w->wave_size == 64 ? w->s[ISA_R_EXEC_HI] : 0));
}

/* Where the fault is that was raised just now. */
static inline void soft_fault_at(struct soft_wave *w, uint64_t va, bool write,
				 int lane)
{
	w->fault.va = va;
	w->fault.write = write;
	w->fault.lane = lane;
}

/* ------------------------------------------------------------ wave.c ---- */

/*
 * Copy between registers and GPU memory; false after raising the fault.  Each
 * naturally aligned part of 1, 2, 4 or 8 bytes is one access, as other waves
 * see it.
 */
bool soft_load(struct soft_wave *w, uint64_t va, void *out,
	       uint32_t size_bytes, int lane);
bool soft_store(struct soft_wave *w, uint64_t va, const void *in,
		uint32_t size_bytes, int lane);

/* ----------------------------------------------------------- unify.c ---- */

/*
 * What was decoded, as handlers and translations want it: fields of gfx10 that
 * mean the same as those of gfx11 in another way become these.  Operands stay.
 */
void soft_unify(struct isa_inst *in);
/* gfx11's number of a typed format of this generation, 0: there is none. */
uint32_t soft_unify_format(enum isa_gen gen, uint32_t format);

/* --------------------------------------------------------- control.c ---- */

/* SOPP, and the scalar instructions that see PC, MODE or messages. */
soft_handler *soft_control_handler(const struct isa_inst *in);
/* ------------------------------------------------- barrier.c ---- */

/* Barriers, those of gfx12 in parts and with names; NULL: another one. */
soft_handler *soft_barrier_handler(const struct isa_inst *in);

/* The handler of what does nothing here. */
soft_handler soft_run_nothing;
/* Does it nothing but steer timing? */
bool soft_control_is_nothing(const struct isa_inst *in);

/* ---------------------------------------------------------- atomic.c ---- */

#define ATOMIC(name, type, expr) soft_atomic_fn soft_atomic_##name;
#include "kfd/soft/exec/atomic.def"

/*
 * Replace *host, 4 or 8 bytes and aligned, by what fn makes of it, in one
 * step as every thread sees it.  Returns the old value.
 */
uint64_t soft_atomic_apply(void *host, int bytes, soft_atomic_fn *fn,
			   uint64_t a, uint64_t b, uint32_t mode);

/* -------------------------------------------------------------- smem.c --- */

/*
 * The part of a scalar address behind its base: bits 1:0 of immediate and
 * register are ignored.
 */
uint64_t soft_scalar_offset(const struct soft_wave *w,
			    const struct soft_uop *u);
/* Write the SGPRs of SDATA. */
void soft_put_sgprs(struct soft_wave *w, const struct soft_uop *u,
		    const uint32_t *value, int dwords);
/* kfd/soft/exec/gfx10/scalar.c: what gfx10_1 alone has of scalar memory, or NULL. */
soft_handler *soft_scalar_store_handler(const struct isa_inst *in,
					const void **op);

/* -------------------------------------------------------------- lds.c ---- */

/* [at, at + size) of the workgroup's LDS, NULL if it has no such bytes. */
static inline uint8_t *soft_lds_at(const struct soft_wave *w, uint64_t at,
				   uint32_t size_bytes)
{
	const struct soft_group *g = w->group;

	if (at > g->lds_size_bytes || size_bytes > g->lds_size_bytes - at)
		return NULL;
	return g->lds + at;
}

/*
 * A load or store that does nothing but move: what it moves, and its offsets;
 * off[1] is 0 if it has one address only.  NULL: it is something else.
 */
const struct soft_access *soft_lds_plain(const struct soft_uop *u, bool *store,
					 uint32_t off[2]);
/* An atomic of one address and one operand: what it does, else NULL. */
const struct soft_access *soft_lds_atomic(const struct soft_uop *u);
/* The lane that lane i of ds_swizzle_b32 reads, by its offset. */
uint32_t soft_swizzle_from(uint32_t i, uint32_t imm);

/* ------------------------------------------------------------- vmem.c ---- */

/*
 * What was decoded, as handlers and translations want it: OFFSET of scalar,
 * flat and buffer memory becomes a number of 32 bits, whatever bits and sign it
 * has in the generation.
 */
void soft_extend_offset(struct isa_inst *in);

/* As soft_lds_plain(), of FLAT, GLOBAL and SCRATCH. */
const struct soft_access *soft_vmem_plain(const struct soft_uop *u,
					  bool *store);

/* Bytes between memory and registers, false after raising the fault. */
bool soft_move_lane(struct soft_wave *w, const struct soft_place *p,
		    const struct soft_access *a, uint32_t *value, bool store);

/* As soft_lds_atomic(), of FLAT and GLOBAL. */
const struct soft_access *soft_vmem_atomic(const struct soft_uop *u);

/* What was loaded as a register has it. */
static inline uint32_t soft_extend(const struct soft_access *a, uint32_t v)
{
	if (a->bytes == 1)
		return a->is_signed ? (uint32_t)(int8_t)v : (uint8_t)v;
	if (a->bytes == 2)
		return a->is_signed ? (uint32_t)(int16_t)v : (uint16_t)v;
	return v;
}

/* A loaded value to registers reg.. of one lane, and back. */
void soft_put_lane(struct soft_wave *w, const struct soft_access *a, int half,
		   uint32_t lane, uint32_t reg, const uint32_t *value);
void soft_get_lane(const struct soft_wave *w, const struct soft_access *a,
		   int half, uint32_t lane, uint32_t reg, uint32_t *value);

/* An atomic's operands from registers reg.., and what was in memory to them. */
void soft_get_operands(const struct soft_wave *w, const struct soft_access *a,
		       int half, uint32_t lane, uint32_t reg, uint64_t *x,
		       uint64_t *y);
void soft_put_old(struct soft_wave *w, const struct soft_access *a, int half,
		  uint32_t lane, uint32_t reg, uint64_t old);

/* ----------------------------------------------------------- buffer.c ---- */

/* Loads that follow see what other threads stored before. */
soft_handler soft_run_invalidate;

/* MUBUF and MTBUF. */
soft_handler *soft_buffer_handler(const struct isa_inst *in, const void **op);

/*
 * What a lane loaded to LDS, at M0[15:0] + the instruction's offset + 4 * lane;
 * false after raising a fault.
 */
bool soft_load_to_lds(struct soft_wave *w, const struct soft_uop *u,
		      uint32_t value, int lane);
/* As soft_lds_plain(), of MUBUF. */
const struct soft_access *soft_buffer_plain(const struct soft_uop *u,
					    bool *store);
/* ------------------------------------------------- transpose.c ---- */

/* Transposed and block loads and stores, and their access; NULL: another one. */
soft_handler *soft_gfx12_vmem_handler(const struct isa_inst *in,
				      const void **op);

/* ------------------------------------------------------------ image.c ---- */

/* MIMG; NULL: it is not executed, and why, to go on behind "emulator". */
soft_handler *soft_image_handler(const struct isa_inst *in);
const char *soft_image_refusal(const struct isa_inst *in);

/* ----------------------------------------------------------- format.c ---- */

/*
 * Typed formats, by the number in MTBUF's FORMAT field and in descriptors of
 * buffers and images, 1..63.  Components are X Y Z W, 32 bits each in
 * registers, or 16 bits each in the low halves with `d16`.
 */

/* Components that the format lacks become 0, and W becomes 1. */
void soft_format_load(uint32_t format, bool d16, const uint8_t *mem,
		      uint32_t out[4]);
void soft_format_store(uint32_t format, bool d16, const uint32_t in[4],
		       uint8_t *mem);
/* The constant 1 as a component of the format shows it. */
uint32_t soft_format_one(uint32_t format, bool d16);

/* ------------------------------------------------------------ smem.c ---- */

/* Of s_load, which has no descriptor: the dwords it loads; else 0. */
int soft_smem_dwords(const struct soft_uop *u);

#endif
