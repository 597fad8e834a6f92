/*
 * kfd/soft/exec/fast/native_emit.c - instructions of the host as bytes.
 *
 * Intel 64 SDM volume 2, 2.3 (VEX) and 2.7 (EVEX).
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native_host.h"

const struct soft_host_inst soft_host_inst[SOFT_HOST_COUNT] = {
#define H(name, map, prefix, opcode, shape, ymm) \
	[SOFT_HOST_##name] = { map, prefix, opcode, shape, ymm },
#include "kfd/soft/exec/fast/host.def"
#undef H
};

/*
 * Up to 8 bytes, lowest first.  There is mostly room; the byte behind the last
 * one is buf's.
 */
static void emit_bytes(struct soft_code *code, uint64_t bytes, unsigned n)
{
	if (code->bytes.len + sizeof(bytes) < code->bytes.cap) {
		memcpy(code->bytes.data + code->bytes.len, &bytes,
		       sizeof(bytes));
		code->bytes.len += n;
		return;
	}
	buf_add(&code->bytes, &bytes, n);
}

void soft_host_byte(struct soft_code *code, unsigned b)
{
	emit_bytes(code, b & 0xff, 1);
}

static void emit_dword(struct soft_code *code, uint32_t v)
{
	emit_bytes(code, v, 4);
}

/* ModRM, and what follows; a SIB byte is never needed. */
static unsigned modrm_mem(int reg, struct soft_host_mem m)
{
	return (unsigned)(reg & 7) << 3 |
	       (m.base == SOFT_RIP ? 5 : 0x80 | (m.base & 7));
}

static void emit_offset(struct soft_code *code, struct soft_host_mem m,
			int imm_bytes)
{
	int32_t from = 0;

	/* Counted from the end of the instruction. */
	if (m.base == SOFT_RIP)
		from = imm_bytes + 4 + (int32_t)code->bytes.len;
	emit_dword(code, (uint32_t)(m.offset - from));
}

static void emit_mem(struct soft_code *code, int reg, struct soft_host_mem m,
		     int imm_bytes)
{
	soft_host_byte(code, modrm_mem(reg, m));
	emit_offset(code, m, imm_bytes);
}

/* ----------------------------------------------------------------- zmm ---- */

/*
 * The four bytes of EVEX, opcode and ModRM.  R, X and B extend the fields of ModRM, of which X is
 * bit 4 of a zmm in r/m; all of them, vvvv and V are inverted.
 */
static void emit_evex(struct soft_code *code, const struct soft_host_inst *h,
		      int reg, int rm_high, int k, int vvvv, bool spread,
		      uint64_t modrm)
{
	unsigned r = ~(unsigned)reg, rm = ~(unsigned)rm_high;
	unsigned v = ~(unsigned)vvvv, round = h->prefix >> 4 & 3;

	unsigned p0 = (r >> 3 & 1) << 7 | (rm >> 4 & 1) << 6 |
		      (rm >> 3 & 1) << 5 | (r >> 4 & 1) << 4 | (h->map & 7);
	unsigned p1 = (h->prefix & HOST_W1) | (v & 15) << 3 | 4 |
		      (h->prefix & 3);
	/* A rounding is where the length was, and where `spread` is. */
	unsigned length = h->prefix & HOST_128 ? 0 : 2;
	unsigned p2 = (round ? round : length) << 5 |
		      (unsigned)(spread || round) << 4 | (v >> 4 & 1) << 3 |
		      (unsigned)k;

	emit_bytes(code, 0x62 | p0 << 8 | p1 << 16 | p2 << 24 |
			 (uint64_t)h->opcode << 32 | modrm << 40, 6);
}

/* Where EVEX wants the operands: ModRM.reg, vvvv. */
static int modrm_reg(const struct soft_host_inst *h, int d)
{
	return h->shape == SHIFT ? h->map >> 4 : d;
}

static int vvvv_reg(const struct soft_host_inst *h, int d, int s1)
{
	return h->shape == THREE ? s1 : h->shape == SHIFT ? d : 0;
}

void soft_host_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, int s2, uint8_t imm)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const bool store = h->shape == STORE;
	int reg = store ? s2 : modrm_reg(h, d), rm = store ? d : s2;

	if (code->ymm) {
		soft_ymm_op(code, op, d, k, s1, s2, imm);
		return;
	}
	emit_evex(code, h, reg, rm, k, vvvv_reg(h, d, s1), false,
		  0xc0 | (unsigned)(reg & 7) << 3 | (rm & 7));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

void soft_host_op_mem(struct soft_code *code, enum soft_host_op op, int d,
		      int k, int s1, struct soft_host_mem s2, bool spread,
		      uint8_t imm)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	int reg = modrm_reg(h, d);
	int rm = s2.base == SOFT_RIP ? 0 : s2.base & 8;

	if (code->ymm) {
		soft_ymm_op_mem(code, op, d, k, s1, s2, spread, imm);
		return;
	}
	emit_evex(code, h, reg, rm, k, vvvv_reg(h, d, s1), spread,
		  modrm_mem(reg, s2));
	emit_offset(code, s2, soft_host_has_imm(op));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

void soft_host_prefetch(struct soft_code *code, struct soft_host_mem m)
{
	soft_host_byte(code, 0x0f);
	soft_host_byte(code, 0x18);
	emit_mem(code, 1, m, 0);
}

/* ----------------------------------------------------------------- ymm ---- */

/* R, X and B extend the fields of ModRM; they and vvvv are inverted. */
void soft_host_vex(struct soft_code *code, unsigned map, unsigned prefix,
		   unsigned opcode, int reg, int vvvv,
		   struct soft_ymm_operand rm, int imm)
{
	const bool memory = rm.reg == SOFT_NOWHERE;
	const int base = !memory		? rm.reg :
			 rm.at.base == SOFT_RIP ? 0 :
						  (int)rm.at.base;

	soft_host_byte(code, 0xc4);
	soft_host_byte(code, (~(unsigned)reg & 8) << 4 | 0x40 |
				     (~(unsigned)base & 8) << 2 | map);
	soft_host_byte(code, (prefix & HOST_W1) | (~(unsigned)vvvv & 15) << 3 |
				     (prefix & HOST_128 ? 0u : 4u) |
				     (prefix & HOST_PREFIX));
	soft_host_byte(code, opcode);
	if (memory)
		emit_mem(code, reg, rm.at, imm);
	else
		soft_host_byte(code, 0xc0 | (unsigned)(reg & 7) << 3 |
					     (unsigned)(rm.reg & 7));
}

/* --------------------------------------------------------------- masks ---- */

/* The three bytes of VEX, map 0F; no register above 7 but vvvv is used. */
static void emit_vex(struct soft_code *code, bool w, int vvvv, bool l,
		     unsigned prefix, unsigned opcode)
{
	soft_host_byte(code, 0xc4);
	soft_host_byte(code, 0xe1);
	soft_host_byte(code, (unsigned)w << 7 | (~(unsigned)vvvv & 15) << 3 |
				     (unsigned)l << 2 | prefix);
	soft_host_byte(code, opcode);
}

void soft_host_kload16(struct soft_code *code, int k, struct soft_host_mem m)
{
	if (code->ymm) {
		soft_ymm_kload16(code, k, m);
		return;
	}
	emit_vex(code, false, 0, false, 0, 0x90);
	emit_mem(code, k, m, 0);
}

void soft_host_kmove16(struct soft_code *code, int k, int from)
{
	if (code->ymm) {
		soft_ymm_kmove16(code, k, from);
		return;
	}
	emit_vex(code, false, 0, false, 0, 0x90);
	soft_host_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)from);
}

/* mov ecx, lanes; kmovw k, ecx */
void soft_host_kset16(struct soft_code *code, int k, uint32_t lanes)
{
	soft_host_set32(code, SOFT_RCX, lanes & 0xffff);
	if (code->ymm) {
		soft_ymm_kset16(code, k);
		return;
	}
	emit_vex(code, false, 0, false, 0, 0x92);
	soft_host_byte(code, 0xc0 | (unsigned)k << 3 | SOFT_RCX);
}

void soft_host_kor(struct soft_code *code, int k, int a, int b)
{
	if (code->ymm) {
		soft_ymm_kor(code, k, a, b);
		return;
	}
	emit_vex(code, true, a, true, 1, 0x45);
	soft_host_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)b);
}

/* kunpckwd k, k + 1, k; kmovd ecx, k */
static void mask_bits(struct soft_code *code, int k)
{
	emit_vex(code, false, k + 1, true, 0, 0x4b);
	soft_host_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)k);
	emit_vex(code, false, 0, false, 3, 0x93);
	soft_host_byte(code, 0xc0 | SOFT_RCX << 3 | (unsigned)k);
}

/* and ecx, exec; mov to, ecx */
void soft_host_store_mask(struct soft_code *code, struct soft_host_mem to,
			  int k, struct soft_host_mem exec)
{
	(code->ymm ? soft_ymm_mask_bits : mask_bits)(code, k);
	soft_host_int(code, SOFT_HOST_AND, SOFT_RCX, exec);
	soft_host_int(code, SOFT_HOST_PUT, SOFT_RCX, to);
}

/* --------------------------------------------------------------- jumps ---- */

size_t soft_host_jump_if(struct soft_code *code, enum soft_host_condition c)
{
	soft_host_byte(code, 0x0f);
	soft_host_byte(code, c);
	emit_dword(code, 0);
	return code->bytes.len;
}

size_t soft_host_jump(struct soft_code *code)
{
	soft_host_byte(code, 0xe9);
	emit_dword(code, 0);
	return code->bytes.len;
}

void soft_host_jump_to(struct soft_code *code, size_t at)
{
	soft_host_byte(code, 0xe9);
	emit_dword(code, (uint32_t)(at - code->bytes.len - 4));
}

size_t soft_host_jump_mask(struct soft_code *code, int k)
{
	if (code->ymm) {
		soft_ymm_test_mask(code, k);
	} else {
		emit_vex(code, true, 0, false, 1, 0x98);
		soft_host_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)k);
	}
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

size_t soft_host_jump_not_ones(struct soft_code *code, struct soft_host_mem m)
{
	soft_host_byte(code, 0x83);
	emit_mem(code, 7, m, 1);
	soft_host_byte(code, 0xff);
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

static void emit_test(struct soft_code *code, struct soft_host_mem m,
		      uint32_t bits)
{
	soft_host_byte(code, 0xf7);
	emit_mem(code, 0, m, 4);
	emit_dword(code, bits);
}

size_t soft_host_jump_bits(struct soft_code *code, struct soft_host_mem m,
			   uint32_t bits)
{
	emit_test(code, m, bits);
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

size_t soft_host_jump_no_bits(struct soft_code *code, struct soft_host_mem m,
			      uint32_t bits)
{
	emit_test(code, m, bits);
	return soft_host_jump_if(code, SOFT_HOST_ZERO);
}

void soft_host_here(struct soft_code *code, size_t jump)
{
	uint32_t distance = (uint32_t)(code->bytes.len - jump);

	memcpy(code->bytes.data + jump - 4, &distance, sizeof(distance));
}

/* ------------------------------------------------------------ integers ---- */

#define REX_W 0x48

struct soft_host_mem soft_host_sgpr(int reg)
{
	return (struct soft_host_mem){
		SOFT_RDI,
		(int32_t)(offsetof(struct soft_wave, s) +
			  sizeof(uint32_t) * (size_t)reg) };
}

/* REX where it says something, then the opcode. */
static void emit_opcode(struct soft_code *code, unsigned op, bool wide, int reg,
			int rm)
{
	unsigned rex = (unsigned)wide << 3 | (reg >> 3 & 1) << 2 |
		       (rm == SOFT_RIP ? 0 : rm >> 3);

	if (rex)
		soft_host_byte(code, 0x40 | rex);
	if (op >> 8)
		soft_host_byte(code, op >> 8);
	soft_host_byte(code, op);
}

void soft_host_int(struct soft_code *code, unsigned op, enum soft_host_reg reg,
		   struct soft_host_mem m)
{
	emit_opcode(code, op, false, reg, m.base);
	emit_mem(code, reg, m, 0);
}

void soft_host_int64(struct soft_code *code, unsigned op,
		     enum soft_host_reg reg, struct soft_host_mem m)
{
	emit_opcode(code, op, true, reg, m.base);
	emit_mem(code, reg, m, 0);
}

void soft_host_int_regs(struct soft_code *code, unsigned op, bool wide,
			enum soft_host_reg reg, enum soft_host_reg rm)
{
	emit_opcode(code, op, wide, reg, rm);
	soft_host_byte(code, 0xc0 | (unsigned)(reg & 7) << 3 | (rm & 7));
}

void soft_host_int64_const(struct soft_code *code, unsigned op,
			   enum soft_host_reg reg, int32_t value)
{
	emit_opcode(code, 0x81, true, 0, reg);
	soft_host_byte(code, 0xc0 | (op & 0x38) | (reg & 7));
	emit_dword(code, (uint32_t)value);
}

void soft_host_put(struct soft_code *code, int bits, enum soft_host_reg reg,
		   struct soft_host_mem m)
{
	if (bits == 16)
		soft_host_byte(code, 0x66);
	soft_host_int(code, bits == 8 ? 0x88 : SOFT_HOST_PUT, reg, m);
}

void soft_host_shift_const(struct soft_code *code, unsigned digit,
			   enum soft_host_reg reg, unsigned by)
{
	emit_opcode(code, 0xc1, true, 0, reg);
	soft_host_byte(code, 0xc0 | digit << 3 | (reg & 7));
	soft_host_byte(code, by);
}

void soft_host_tzcnt(struct soft_code *code, enum soft_host_reg reg,
		     struct soft_host_mem m)
{
	soft_host_byte(code, 0xf3);
	soft_host_int(code, 0x0fbc, reg, m);
}

/* The digit of 81 /digit is where it is in the opcode with two operands. */
void soft_host_int_const(struct soft_code *code, unsigned op,
			 enum soft_host_reg reg, uint32_t value)
{
	bool product = op == SOFT_HOST_IMUL;

	soft_host_byte(code, product ? 0x69 : 0x81);
	soft_host_byte(code,
		       0xc0 | (product ? (unsigned)reg << 3 : op & 0x38) | reg);
	emit_dword(code, value);
}

/* VEX.LZ.0F38 F7 /r; test rcx, rcx */
void soft_host_shift(struct soft_code *code, unsigned prefix, bool wide,
		     struct soft_host_mem m)
{
	soft_host_byte(code, 0xc4);
	soft_host_byte(code, 0xe2);
	soft_host_byte(code, (unsigned)wide << 7 |
				     (~(unsigned)SOFT_RCX & 15) << 3 | prefix);
	soft_host_byte(code, 0xf7);
	emit_mem(code, SOFT_RCX, m, 0);
	soft_host_int_regs(code, 0x85, wide, SOFT_RCX, SOFT_RCX);
}

/* mov cl, m; neg cl */
void soft_host_carry(struct soft_code *code, struct soft_host_mem m)
{
	soft_host_int(code, 0x8a, SOFT_RCX, m);
	soft_host_byte(code, 0xf6);
	soft_host_byte(code, 0xd8 | SOFT_RCX);
}

/* cmp byte m, 0 */
void soft_host_test_byte(struct soft_code *code, struct soft_host_mem m)
{
	soft_host_byte(code, 0x80);
	emit_mem(code, 7, m, 1);
	soft_host_byte(code, 0);
}

void soft_host_mxcsr(struct soft_code *code, struct soft_host_mem m)
{
	soft_host_int(code, 0x0fae, (enum soft_host_reg)2, m);
}

void soft_host_set32(struct soft_code *code, enum soft_host_reg reg,
		     uint32_t value)
{
	if (reg >> 3)
		soft_host_byte(code, 0x40 | reg >> 3);
	soft_host_byte(code, 0xb8 | (reg & 7));
	emit_dword(code, value);
}

void soft_host_set64(struct soft_code *code, enum soft_host_reg reg,
		     uint64_t value)
{
	soft_host_byte(code, REX_W | reg >> 3);
	soft_host_byte(code, 0xb8 | (reg & 7));
	buf_add(&code->bytes, &value, sizeof(value));
}

/* vzeroupper, since code for SSE may follow; then as SOFT_NEXT() does. */
void soft_host_leave(struct soft_code *code, size_t skip)
{
	soft_host_byte(code, 0xc5);
	soft_host_byte(code, 0xf8);
	soft_host_byte(code, 0x77);
	soft_host_int64_const(code, SOFT_HOST_ADD, SOFT_RSI,
			      (int32_t)(skip * sizeof(struct soft_microop)));
	soft_host_byte(code, 0xff);
	soft_host_byte(code, 0x20 | SOFT_RSI);
}
