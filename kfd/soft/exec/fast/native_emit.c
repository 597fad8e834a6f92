/*
 * kfd/soft/exec/fast/native_emit.c - instructions of the host as bytes.
 *
 * Intel 64 SDM volume 2, 2.3 (VEX) and 2.7 (EVEX).
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

enum shape { THREE, TWO, STORE, SHIFT };
#define HOST_W1	  0x80
#define HOST_DOWN 0x10
#define HOST_UP	  0x20
#define HOST_128  0x40

static const struct host_inst {
	uint8_t map, prefix, opcode, shape;
} host_inst[SOFT_HOST_COUNT] = {
#define H(name, map, prefix, opcode, shape) \
	[SOFT_HOST_##name] = { map, prefix, opcode, shape },
#include "kfd/soft/exec/fast/host.def"
#undef H
};

/* Those with a byte at their end. */
static bool has_imm(enum soft_host_op op)
{
	const struct host_inst *h = &host_inst[op];

	return h->map == 3 || h->shape == SHIFT || op == SOFT_HOST_CMPPS;
}

/*
 * Up to 8 bytes, lowest first.  There is mostly room; the byte behind the last
 * one is buf's.
 */
static void emit_bytes(struct buf *code, uint64_t bytes, unsigned n)
{
	if (code->len + sizeof(bytes) < code->cap) {
		memcpy(code->data + code->len, &bytes, sizeof(bytes));
		code->len += n;
		return;
	}
	buf_add(code, &bytes, n);
}

static void emit_byte(struct buf *code, unsigned b)
{
	emit_bytes(code, b & 0xff, 1);
}

static void emit_dword(struct buf *code, uint32_t v)
{
	emit_bytes(code, v, 4);
}

/* ModRM, and what follows; a SIB byte is never needed. */
static unsigned modrm_mem(int reg, struct soft_host_mem m)
{
	return (unsigned)(reg & 7) << 3 |
	       (m.base == SOFT_RIP ? 5 : 0x80 | (m.base & 7));
}

static void emit_offset(struct buf *code, struct soft_host_mem m, int imm_bytes)
{
	int32_t from = 0;

	/* Counted from the end of the instruction. */
	if (m.base == SOFT_RIP)
		from = imm_bytes + 4 + (int32_t)code->len;
	emit_dword(code, (uint32_t)(m.offset - from));
}

static void emit_mem(struct buf *code, int reg, struct soft_host_mem m,
		     int imm_bytes)
{
	emit_byte(code, modrm_mem(reg, m));
	emit_offset(code, m, imm_bytes);
}

/* ----------------------------------------------------------------- zmm ---- */

/*
 * The four bytes of EVEX, opcode and ModRM.  R, X and B extend the fields of ModRM, of which X is
 * bit 4 of a zmm in r/m; all of them, vvvv and V are inverted.
 */
static void emit_evex(struct buf *code, const struct host_inst *h, int reg,
		      int rm_high, int k, int vvvv, bool spread, uint64_t modrm)
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
static int modrm_reg(const struct host_inst *h, int d)
{
	return h->shape == SHIFT ? h->map >> 4 : d;
}

static int vvvv_reg(const struct host_inst *h, int d, int s1)
{
	return h->shape == THREE ? s1 : h->shape == SHIFT ? d : 0;
}

void soft_host_op(struct buf *code, enum soft_host_op op, int d, int k, int s1,
		  int s2, uint8_t imm)
{
	const struct host_inst *h = &host_inst[op];
	const bool store = h->shape == STORE;
	int reg = store ? s2 : modrm_reg(h, d), rm = store ? d : s2;

	emit_evex(code, h, reg, rm, k, vvvv_reg(h, d, s1), false,
		  0xc0 | (unsigned)(reg & 7) << 3 | (rm & 7));
	if (has_imm(op))
		emit_byte(code, imm);
}

void soft_host_op_mem(struct buf *code, enum soft_host_op op, int d, int k,
		      int s1, struct soft_host_mem s2, bool spread, uint8_t imm)
{
	const struct host_inst *h = &host_inst[op];
	int reg = modrm_reg(h, d);
	int rm = s2.base == SOFT_RIP ? 0 : s2.base & 8;

	emit_evex(code, h, reg, rm, k, vvvv_reg(h, d, s1), spread,
		  modrm_mem(reg, s2));
	emit_offset(code, s2, has_imm(op));
	if (has_imm(op))
		emit_byte(code, imm);
}

void soft_host_prefetch(struct buf *code, struct soft_host_mem m)
{
	emit_byte(code, 0x0f);
	emit_byte(code, 0x18);
	emit_mem(code, 1, m, 0);
}

/* --------------------------------------------------------------- masks ---- */

/* The three bytes of VEX, map 0F; no register above 7 but vvvv is used. */
static void emit_vex(struct buf *code, bool w, int vvvv, bool l,
		     unsigned prefix, unsigned opcode)
{
	emit_byte(code, 0xc4);
	emit_byte(code, 0xe1);
	emit_byte(code, (unsigned)w << 7 | (~(unsigned)vvvv & 15) << 3 |
				(unsigned)l << 2 | prefix);
	emit_byte(code, opcode);
}

void soft_host_kload16(struct buf *code, int k, struct soft_host_mem m)
{
	emit_vex(code, false, 0, false, 0, 0x90);
	emit_mem(code, k, m, 0);
}

void soft_host_kmove16(struct buf *code, int k, int from)
{
	emit_vex(code, false, 0, false, 0, 0x90);
	emit_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)from);
}

/* mov ecx, lanes; kmovw k, ecx */
void soft_host_kset16(struct buf *code, int k, uint32_t lanes)
{
	soft_host_set32(code, SOFT_RCX, lanes & 0xffff);
	emit_vex(code, false, 0, false, 0, 0x92);
	emit_byte(code, 0xc0 | (unsigned)k << 3 | SOFT_RCX);
}

void soft_host_kunpack(struct buf *code, int k, int high, int low)
{
	emit_vex(code, false, high, true, 0, 0x4b);
	emit_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)low);
}

void soft_host_kor(struct buf *code, int k, int a, int b)
{
	emit_vex(code, true, a, true, 1, 0x45);
	emit_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)b);
}

/* kmovd ecx, k; and ecx, exec; mov to, ecx */
void soft_host_store_mask(struct buf *code, struct soft_host_mem to, int k,
			  struct soft_host_mem exec)
{
	emit_vex(code, false, 0, false, 3, 0x93);
	emit_byte(code, 0xc0 | SOFT_RCX << 3 | (unsigned)k);
	emit_byte(code, 0x23);
	emit_mem(code, SOFT_RCX, exec, 0);
	emit_byte(code, 0x89);
	emit_mem(code, SOFT_RCX, to, 0);
}

/* --------------------------------------------------------------- jumps ---- */

size_t soft_host_jump_if(struct buf *code, enum soft_host_condition c)
{
	emit_byte(code, 0x0f);
	emit_byte(code, c);
	emit_dword(code, 0);
	return code->len;
}

size_t soft_host_jump(struct buf *code)
{
	emit_byte(code, 0xe9);
	emit_dword(code, 0);
	return code->len;
}

void soft_host_jump_to(struct buf *code, size_t at)
{
	emit_byte(code, 0xe9);
	emit_dword(code, (uint32_t)(at - code->len - 4));
}

size_t soft_host_jump_mask(struct buf *code, int k)
{
	emit_vex(code, true, 0, false, 1, 0x98);
	emit_byte(code, 0xc0 | (unsigned)k << 3 | (unsigned)k);
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

size_t soft_host_jump_not_ones(struct buf *code, struct soft_host_mem m)
{
	emit_byte(code, 0x83);
	emit_mem(code, 7, m, 1);
	emit_byte(code, 0xff);
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

static void emit_test(struct buf *code, struct soft_host_mem m, uint32_t bits)
{
	emit_byte(code, 0xf7);
	emit_mem(code, 0, m, 4);
	emit_dword(code, bits);
}

size_t soft_host_jump_bits(struct buf *code, struct soft_host_mem m,
			   uint32_t bits)
{
	emit_test(code, m, bits);
	return soft_host_jump_if(code, SOFT_HOST_NOT_ZERO);
}

size_t soft_host_jump_no_bits(struct buf *code, struct soft_host_mem m,
			      uint32_t bits)
{
	emit_test(code, m, bits);
	return soft_host_jump_if(code, SOFT_HOST_ZERO);
}

void soft_host_here(struct buf *code, size_t jump)
{
	uint32_t distance = (uint32_t)(code->len - jump);

	memcpy(code->data + jump - 4, &distance, sizeof(distance));
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
static void emit_opcode(struct buf *code, unsigned op, bool wide, int reg,
			int rm)
{
	unsigned rex = (unsigned)wide << 3 | (reg >> 3 & 1) << 2 |
		       (rm == SOFT_RIP ? 0 : rm >> 3);

	if (rex)
		emit_byte(code, 0x40 | rex);
	if (op >> 8)
		emit_byte(code, op >> 8);
	emit_byte(code, op);
}

void soft_host_int(struct buf *code, unsigned op, enum soft_host_reg reg,
		   struct soft_host_mem m)
{
	emit_opcode(code, op, false, reg, m.base);
	emit_mem(code, reg, m, 0);
}

void soft_host_int64(struct buf *code, unsigned op, enum soft_host_reg reg,
		     struct soft_host_mem m)
{
	emit_opcode(code, op, true, reg, m.base);
	emit_mem(code, reg, m, 0);
}

void soft_host_int_regs(struct buf *code, unsigned op, bool wide,
			enum soft_host_reg reg, enum soft_host_reg rm)
{
	emit_opcode(code, op, wide, reg, rm);
	emit_byte(code, 0xc0 | (unsigned)(reg & 7) << 3 | (rm & 7));
}

void soft_host_int64_const(struct buf *code, unsigned op,
			   enum soft_host_reg reg, int32_t value)
{
	emit_opcode(code, 0x81, true, 0, reg);
	emit_byte(code, 0xc0 | (op & 0x38) | (reg & 7));
	emit_dword(code, (uint32_t)value);
}

void soft_host_put(struct buf *code, int bits, enum soft_host_reg reg,
		   struct soft_host_mem m)
{
	if (bits == 16)
		emit_byte(code, 0x66);
	soft_host_int(code, bits == 8 ? 0x88 : SOFT_HOST_PUT, reg, m);
}

void soft_host_shift_const(struct buf *code, unsigned digit,
			   enum soft_host_reg reg, unsigned by)
{
	emit_opcode(code, 0xc1, true, 0, reg);
	emit_byte(code, 0xc0 | digit << 3 | (reg & 7));
	emit_byte(code, by);
}

void soft_host_tzcnt(struct buf *code, enum soft_host_reg reg,
		     struct soft_host_mem m)
{
	emit_byte(code, 0xf3);
	soft_host_int(code, 0x0fbc, reg, m);
}

/* The digit of 81 /digit is where it is in the opcode with two operands. */
void soft_host_int_const(struct buf *code, unsigned op, enum soft_host_reg reg,
			 uint32_t value)
{
	bool product = op == SOFT_HOST_IMUL;

	emit_byte(code, product ? 0x69 : 0x81);
	emit_byte(code, 0xc0 | (product ? (unsigned)reg << 3 : op & 0x38) |
				reg);
	emit_dword(code, value);
}

/* VEX.LZ.0F38 F7 /r; test rcx, rcx */
void soft_host_shift(struct buf *code, unsigned prefix, bool wide,
		     struct soft_host_mem m)
{
	emit_byte(code, 0xc4);
	emit_byte(code, 0xe2);
	emit_byte(code, (unsigned)wide << 7 |
				(~(unsigned)SOFT_RCX & 15) << 3 | prefix);
	emit_byte(code, 0xf7);
	emit_mem(code, SOFT_RCX, m, 0);
	soft_host_int_regs(code, 0x85, wide, SOFT_RCX, SOFT_RCX);
}

/* mov cl, m; neg cl */
void soft_host_carry(struct buf *code, struct soft_host_mem m)
{
	soft_host_int(code, 0x8a, SOFT_RCX, m);
	emit_byte(code, 0xf6);
	emit_byte(code, 0xd8 | SOFT_RCX);
}

/* cmp byte m, 0 */
void soft_host_test_byte(struct buf *code, struct soft_host_mem m)
{
	emit_byte(code, 0x80);
	emit_mem(code, 7, m, 1);
	emit_byte(code, 0);
}

void soft_host_mxcsr(struct buf *code, struct soft_host_mem m)
{
	soft_host_int(code, 0x0fae, (enum soft_host_reg)2, m);
}

void soft_host_set32(struct buf *code, enum soft_host_reg reg, uint32_t value)
{
	if (reg >> 3)
		emit_byte(code, 0x40 | reg >> 3);
	emit_byte(code, 0xb8 | (reg & 7));
	emit_dword(code, value);
}

void soft_host_set64(struct buf *code, enum soft_host_reg reg, uint64_t value)
{
	emit_byte(code, REX_W | reg >> 3);
	emit_byte(code, 0xb8 | (reg & 7));
	buf_add(code, &value, sizeof(value));
}

/* vzeroupper, since code for SSE may follow; then as SOFT_NEXT() does. */
void soft_host_leave(struct buf *code, size_t skip)
{
	emit_byte(code, 0xc5);
	emit_byte(code, 0xf8);
	emit_byte(code, 0x77);
	soft_host_int64_const(code, SOFT_HOST_ADD, SOFT_RSI,
			      (int32_t)(skip * sizeof(struct soft_microop)));
	emit_byte(code, 0xff);
	emit_byte(code, 0x20 | SOFT_RSI);
}
