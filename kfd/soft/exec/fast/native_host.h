/*
 * kfd/soft/exec/fast/native_host.h - encodings of the host's instructions, and
 * its ymm registers where it has no zmm.
 *
 * Private to native_emit.c, which writes bytes, native_ymm.c and
 * native_ymm_make.c, which make instructions on ymm registers of those on zmm,
 * native_values.c, which says what is in which register, and native_fuse.c,
 * which has room for that.
 */
#ifndef T0_KFD_SOFT_NATIVE_HOST_H
#define T0_KFD_SOFT_NATIVE_HOST_H

#include "kfd/soft/exec/fast/native.h"

/* Bits of a prefix in host.def. */
#define HOST_PREFIX 0x03
#define HOST_DOWN   0x10
#define HOST_UP	    0x20
#define HOST_128    0x40
#define HOST_W1	    0x80

enum soft_host_shape { THREE, TWO, STORE, SHIFT };

/* What ymm registers do instead. */
enum soft_ymm_way {
	NOT,
	EACH,
	FUSED,
	LOW,
	LONG,
	SHORT,
	OWN,
	MASK,
	NOTHING,
};

struct soft_host_inst {
	uint8_t map, prefix, opcode, shape, ymm;
};
extern const struct soft_host_inst soft_host_inst[SOFT_HOST_COUNT];

/* What soft_host_vex() wants to know of one that AVX2 has, too. */
#define HOST_OF(name) \
	soft_host_inst[SOFT_HOST_##name].map & 7, \
		soft_host_inst[SOFT_HOST_##name].prefix, \
		soft_host_inst[SOFT_HOST_##name].opcode

/* Those with a byte at their end. */
static inline bool soft_host_has_imm(enum soft_host_op op)
{
	const struct soft_host_inst *h = &soft_host_inst[op];

	return h->map == 3 || h->shape == SHIFT || op == SOFT_HOST_CMPPS ||
	       op == SOFT_HOST_SHUFPS;
}

/* A ymm register, or if that is SOFT_NOWHERE a place in memory. */
struct soft_ymm_operand {
	int reg;
	struct soft_host_mem at;
};

/* VEX, opcode and operands of ymm registers, or xmm with HOST_128; `imm` bytes
 * will follow. */
void soft_host_vex(struct soft_code *code, unsigned map, unsigned prefix,
		   unsigned opcode, int reg, int vvvv,
		   struct soft_ymm_operand rm, int imm);
void soft_host_byte(struct soft_code *code, unsigned b);

/* ---------------------------------------------------- native_values.c ---- */

/*
 * A zmm is two values of 32 bytes, and so is a mask register, whose lanes are
 * then all ones or 0.  A value is in a register, or at home: in the vreg or the
 * constant that it equals, else where it has a place of its own behind the
 * superblock's temporaries.  One that was never set is anything.
 */
enum {
	SOFT_YMMS = 16,
	SOFT_ZMMS = 32,
	SOFT_VALUES = 2 * (SOFT_ZMMS + SOFT_K_COUNT),
	SOFT_VALUE_BYTES = 32,
};

struct soft_ymm {
	struct soft_host_mem home[SOFT_VALUES];
	bool at_home[SOFT_VALUES];
	int8_t where[SOFT_VALUES]; /* register, or SOFT_NOWHERE */
	int8_t what[SOFT_YMMS];	   /* value, or SOFT_NOWHERE */
	unsigned last[SOFT_YMMS], now;
};

static inline int soft_zmm_value(int z, int half)
{
	return 2 * z + half;
}

static inline int soft_mask_value(int k, int half)
{
	return 2 * (SOFT_ZMMS + k) + half;
}

/* An instruction on zmm begins: what it asks for stays until the next one. */
void soft_value_begin(struct soft_code *code);
/* The register with a value; the same, which is about to be changed. */
int soft_value_get(struct soft_code *code, int v);
int soft_value_change(struct soft_code *code, int v);
/* Was it ever set? */
bool soft_value_is_set(const struct soft_code *code, int v);
/* Where it is. */
struct soft_ymm_operand soft_value_source(struct soft_code *code, int v);
/* A register for a new value; one for now, and no longer; that becomes a value.
 */
int soft_value_set(struct soft_code *code, int v);
int soft_value_free(struct soft_code *code);
void soft_value_release(struct soft_code *code, int reg);
/* It stays for this instruction, too. */
void soft_value_keep(struct soft_code *code, int reg);
void soft_value_bind(struct soft_code *code, int v, int reg);
/* It equals what is there, if that may be a home. */
bool soft_value_is_at(struct soft_code *code, int v, struct soft_host_mem m);
/* It is about to be stored there, and has been. */
void soft_value_stores(struct soft_code *code, int v, struct soft_host_mem m);
void soft_value_stored(struct soft_code *code, int v, struct soft_host_mem m);
/* It is needed no more. */
void soft_value_forget(struct soft_code *code, int v);

/* ------------------------------------------------------- native_ymm.c ---- */

/* What native_emit.c does with zmm and mask registers. */
void soft_ymm_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		 int s1, int s2, uint8_t imm);
void soft_ymm_op_mem(struct soft_code *code, enum soft_host_op op, int d, int k,
		     int s1, struct soft_host_mem s2, bool spread, uint8_t imm);
void soft_ymm_kload16(struct soft_code *code, int k, struct soft_host_mem m);
void soft_ymm_kmove16(struct soft_code *code, int k, int from);
/* Of ecx. */
void soft_ymm_kset16(struct soft_code *code, int k);
void soft_ymm_kor(struct soft_code *code, int k, int a, int b);
/* ecx = 32 lanes of k and the next one. */
void soft_ymm_mask_bits(struct soft_code *code, int k);
/* The zero flag is set if none is. */
void soft_ymm_test_mask(struct soft_code *code, int k);

#endif
