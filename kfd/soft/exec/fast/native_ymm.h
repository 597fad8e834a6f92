/*
 * kfd/soft/exec/fast/native_ymm.h - AVX2's instructions, to write code with.
 *
 * Private to native_ymm.c, which has instructions on zmm as ymm registers do
 * them, and native_ymm_make.c, which makes the values that take more than one.
 */
#ifndef T0_KFD_SOFT_NATIVE_YMM_H
#define T0_KFD_SOFT_NATIVE_YMM_H

#include "kfd/soft/exec/fast/native_host.h"

/* The second operand: a zmm; memory; a dword or quadword for all lanes. */
struct soft_ymm_source {
	enum { ZMM, MEMORY, SPREAD } kind;
	int zmm, spread;
	struct soft_host_mem at;
};

static inline struct soft_ymm_operand in_reg(int reg)
{
	return (struct soft_ymm_operand){ .reg = reg };
}

static inline struct soft_ymm_operand in_memory(struct soft_host_mem m,
						int bytes)
{
	m.offset += bytes;
	return (struct soft_ymm_operand){ SOFT_NOWHERE, m };
}

static inline struct soft_ymm_operand
source_of(struct soft_code *code, const struct soft_ymm_source *s, int half)
{
	switch (s->kind) {
	case ZMM:
		return soft_value_source(code, soft_zmm_value(s->zmm, half));
	case MEMORY:
		return in_memory(s->at, half * SOFT_VALUE_BYTES);
	default:
		return in_reg(s->spread);
	}
}

/* ------------------------------------------------------- instructions ---- */

/* Those of host.def; shifts want a digit. */
#define MOVE	    HOST_OF(MOVD)
#define STORE_ALL   HOST_OF(STORED)
#define AND	    HOST_OF(ANDD)
#define ANDN	    HOST_OF(ANDND)
#define OR	    HOST_OF(ORD)
#define XOR	    HOST_OF(XORD)
#define MIN_UW	    HOST_OF(MINUW)
#define MAX_UW	    HOST_OF(MAXUW)
#define MIN_UD	    HOST_OF(MINUD)
#define MAX_UD	    HOST_OF(MAXUD)
#define SUB_PS	    HOST_OF(SUBPS)
#define MIN_PS	    HOST_OF(MINPS)
#define MAX_PS	    HOST_OF(MAXPS)
#define COMPARE_PS  HOST_OF(CMPPS)
#define MUL_PS	    HOST_OF(MULPS)
#define ROUND_PS    HOST_OF(RNDSCALEPS)
#define MIN_SD	    HOST_OF(MINSD)
#define MAX_SD	    HOST_OF(MAXSD)
#define ADD_D	    HOST_OF(ADDD)
#define SUB_D	    HOST_OF(SUBD)
#define ADD_W	    HOST_OF(ADDW)
#define ADD_PS	    HOST_OF(ADDPS)
#define FMADD_231   HOST_OF(FMADD231PS)
#define FLOATS	    HOST_OF(CVTDQ2PS)
#define INTEGERS    HOST_OF(CVTTPS2DQ)
#define FMADD_213   HOST_OF(FMADD213PS)
#define SHIFT_D	    HOST_OF(SLLD)
#define SHIFT_Q	    HOST_OF(SLLQ)
#define PERMUTE_D   HOST_OF(PERMD)
#define INSERT_128  HOST_OF(INSERT32X4)
#define EXTRACT_128 HOST_OF(EXTRACT32X4)
#define SPREAD_D    HOST_OF(BROADCASTD)
#define LOAD_128    HOST_OF(LOAD128)
#define FROM_INT    HOST_OF(LOAD32)

/* Others: map, prefix, opcode. */
#define EQUAL_W	    1, 1, 0x75
#define EQUAL_D	    1, 1, 0x76
#define EQUAL_Q	    2, 1, 0x29
#define ABOVE_D	    1, 1, 0x66
#define RSQRT_PS    1, 0, 0x52
#define PRODUCTS_W  1, 1, 0xf5
#define PRODUCTS_B  2, 1, 0x04
#define BLEND_Q	    3, 1, 0x4b
#define FMSUB_213   2, 1, 0xaa
#define SHIFT_W	    1, 1, 0x71 /* with a digit */
#define BLEND	    3, 1, 0x4c
#define PERMUTE_Q   3, 1 | HOST_W1, 0x00
#define PERMUTE_128 3, 1, 0x46
#define SHUFFLE_B   2, 1, 0x00
#define PACK_DW	    1, 1, 0x6b
#define PACK_WB	    1, 1, 0x63
#define SPREAD_W    2, 1, 0x79
#define SPREAD_Q    2, 1, 0x59
#define LOAD_WHERE  2, 1, 0x8c
#define STORE_WHERE 2, 1, 0x8e
#define STORE_128   1, 2 | HOST_128, 0x7f
#define STORE_64    1, 1 | HOST_128, 0xd6
#define SIGN_BITS   1, 1, 0xd7 /* of bytes, to an integer register */
#define TEST	    2, 1, 0x17

static inline void emit(struct soft_code *code, unsigned map, unsigned prefix,
			unsigned opcode, int d, int s1,
			struct soft_ymm_operand s2)
{
	soft_host_vex(code, map, prefix, opcode, d, s1, s2, 0);
}

static inline void emit_imm(struct soft_code *code, unsigned map,
			    unsigned prefix, unsigned opcode, int d, int s1,
			    struct soft_ymm_operand s2, unsigned imm)
{
	soft_host_vex(code, map, prefix, opcode, d, s1, s2, 1);
	soft_host_byte(code, imm);
}

/* To a register that is free. */
static inline int make(struct soft_code *code, unsigned map, unsigned prefix,
		       unsigned opcode, int s1, struct soft_ymm_operand s2)
{
	const int t = soft_value_free(code);

	emit(code, map, prefix, opcode, t, s1, s2);
	return t;
}

static inline int make_imm(struct soft_code *code, unsigned map,
			   unsigned prefix, unsigned opcode, int s1,
			   struct soft_ymm_operand s2, unsigned imm)
{
	const int t = soft_value_free(code);

	emit_imm(code, map, prefix, opcode, t, s1, s2, imm);
	return t;
}

static inline int shifted(struct soft_code *code, unsigned digit, int s,
			  unsigned by)
{
	const int t = soft_value_free(code);

	emit_imm(code, SHIFT_D, (int)digit, t, in_reg(s), by);
	return t;
}

enum { RIGHT = 2, SIGNED_RIGHT = 4, LEFT = 6 };

/* d = the bytes of s2 where `mask` has ones, else of s1 */
static inline void blend(struct soft_code *code, int d, int s1,
			 struct soft_ymm_operand s2, int mask)
{
	emit_imm(code, BLEND, d, s1, s2, (unsigned)mask << 4);
}

static inline int ones(struct soft_code *code)
{
	const int t = soft_value_free(code);

	emit(code, EQUAL_D, t, t, in_reg(t));
	return t;
}

static inline int zeros(struct soft_code *code)
{
	const int t = soft_value_free(code);

	emit(code, XOR, t, t, in_reg(t));
	return t;
}

static inline void invert(struct soft_code *code, int t)
{
	emit(code, XOR, t, t, in_reg(ones(code)));
}

static inline struct soft_ymm_operand constant(int number, int half)
{
	return in_memory(soft_native_at(number), half * SOFT_VALUE_BYTES);
}

/* In a register, too. */
static inline int source_reg(struct soft_code *code,
			     const struct soft_ymm_source *s, int half)
{
	if (s->kind == ZMM)
		return soft_value_get(code, soft_zmm_value(s->zmm, half));
	if (s->kind == SPREAD)
		return s->spread;
	return make(code, MOVE, 0, source_of(code, s, half));
}

static inline int zmm_reg(struct soft_code *code, int z, int half)
{
	return soft_value_get(code, soft_zmm_value(z, half));
}

/* A mask of bytes by one bit of each index. */
static inline int by_bit(struct soft_code *code, int index, unsigned bit)
{
	const int t = shifted(code, LEFT, index, 31 - bit);

	emit_imm(code, SHIFT_D, SIGNED_RIGHT, t, in_reg(t), 31);
	return t;
}

/* -------------------------------------------------- native_ymm_make.c ---- */

/* A register with one value of zmm d, or of mask register d; where `op` does
 * not choose by mask k itself, of all lanes. */
int soft_ymm_make(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, const struct soft_ymm_source *s, uint8_t imm,
		  int half);
/* The lanes of 16 that a register of indices names. */
int soft_ymm_look_up(struct soft_code *code, int index,
		     const struct soft_ymm_source *table);
/* The low words of dwords, to 128 bits; the low bytes, to 64. */
int soft_ymm_low_words(struct soft_code *code, int s);
int soft_ymm_low_bytes(struct soft_code *code, int s);

#endif
