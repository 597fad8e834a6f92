/*
 * probes/discover/kernel.c - the kernel around a slot, and its initial state.
 *
 * Registers above those watched are the kernel's own: s80..s87 hold pointers
 * from start to end, s96..s102 take what the epilogue must save first, v48..
 * v63 are scratch for loads and stores.  The epilogue recomputes everything
 * that it needs besides the pointers, so that a slot may overwrite it.
 */
#include <string.h>

#include "probes/discover/discover.h"

#define INLINE(n) (128u + (n))
#define MINUS_1	  193u
#define LITERAL	  255u
#define VGPR(n)	  (256u + (n))
#define HWREG_MODE_ALL 0xf801u /* hwreg(HW_REG_MODE, 0, 32) */
#define NOP_8	  7u
#define SCRATCH_AT 64u /* bytes into a lane's scratch */

enum {
	S_KERNARG = 0,
	S_IN = 80,	  /* input buffer */
	S_IN_VGPR = 82,	  /* its VGPRs + 4096 */
	S_OUT = 84,	  /* output buffer + 4096 */
	S_OUT_VGPR = 86,  /* its VGPRs + 4096 */
	S_SAVED = 96,	  /* scc, exec, vcc, m0, mode */
	V_LANE = 48,
	V_LANE16 = 49,
	V_CONTROL = 50,
	V_LANE4 = 51,
	V_DATA = 52, /* ..55 */
	V_SGPR = 62, /* s0..s31, one per lane */
	V_MORE = 63,
	N_SAVED = 7,
	VGPR_ALLOC = 64,
	SCRATCH_LANE_BYTES = 1024,
	LDS_BYTES = 4096,
};

static const uint32_t control_add[2] = { 0x1234567u, 0x89abcdefu };
static const uint32_t control_xor[2] = { 0x55aa33ccu, 0x0f1e2d3cu };

uint32_t probe_control(bool after, uint32_t lane)
{
	return ((lane << 7) + control_add[after]) ^ control_xor[after];
}

/* -------------------------------------------------------------- state --- */

/*
 * A dword that is worth computing with as every type: the high half starts a
 * float or double between 2^-3 and 2^5 of either sign, the low half is an f16
 * between 0.25 and 16, and no byte is likely to be 0.
 */
static uint32_t draw_value(uint64_t *s)
{
	const uint64_t r = random_next(s);
	const uint32_t f32 = (uint32_t)(r % 8 + 124) << 23 |
			     ((uint32_t)(r >> 8) & 0x7f0000);
	const uint32_t f16 = ((uint32_t)(r >> 24) % 6 + 13) << 10 |
			     ((uint32_t)(r >> 32) & 0x3ff);

	return f32 | f16 | (uint32_t)(r >> 63) << 31 |
	       (uint32_t)(r >> 62 & 1) << 15;
}

static void set_addresses(struct probe_state *st, uint64_t mem_va)
{
	const uint64_t mid = mem_va + PROBE_MEM_DW * 2;

	for (uint32_t l = 0; l < PROBE_LANES; l++) {
		st->v[PROBE_V_ADDR][l] = (uint32_t)(mid + 64 * l);
		st->v[PROBE_V_ADDR + 1][l] = (uint32_t)((mid + 64 * l) >> 32);
		st->v[PROBE_V_LDS][l] = 16 * l;
		st->v[PROBE_V_OFFSET][l] = 64 * l;
		st->v[PROBE_V_SCRATCH][l] = SCRATCH_AT;
	}
	/* Raw buffer, stride 0, all four components as 32-bit integers. */
	st->s[PROBE_S_RSRC] = (uint32_t)mid;
	st->s[PROBE_S_RSRC + 1] = (uint32_t)(mid >> 32);
	st->s[PROBE_S_RSRC + 2] = PROBE_MEM_DW * 2;
	st->s[PROBE_S_RSRC + 3] = 0x30000000u | 61u << 12 | 0xfac;
}

void probe_state_init(struct probe_state *st, uint64_t seed, uint64_t mem_va)
{
	uint64_t s = seed;

	memset(st, 0, sizeof(*st));
	for (int r = 0; r < PROBE_VGPRS; r++)
		for (int l = 0; l < PROBE_LANES; l++)
			st->v[r][l] = draw_value(&s);
	/* WMMA wants its A and B in both halves of the wave (RDNA3 ISA 7.9). */
	for (int r = PROBE_V_SRC0; r < PROBE_V_SRC2; r++)
		memcpy(st->v[r] + 16, st->v[r], 64);
	for (int r = 0; r < PROBE_S_MARK; r++)
		st->s[r] = draw_value(&s);
	for (int i = 0; i < PROBE_LDS_DW; i++)
		st->lds[i] = draw_value(&s);
	for (int i = 0; i < PROBE_MEM_DW; i++)
		st->mem[i] = draw_value(&s);
	/* The prologue fills scratch from v16..v31. */
	memcpy(st->scratch, st->v[PROBE_V_SRC1], sizeof(st->scratch));
	st->s[PROBE_S_DST] |= 1; /* so that s_setreg_b32 changes MODE */
	st->scc = 1;
	st->exec[0] = UINT32_MAX;
	st->vcc[0] = draw_value(&s);
	st->vcc[1] = draw_value(&s);
	st->m0 = PROBE_M0;
	set_addresses(st, mem_va);
}

/* --------------------------------------------------------------- code --- */

static void emit_inst(struct probe_kernel *k, struct isa_inst in)
{
	const struct isa_op_info *op = isa_op_info(in.op);
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	int opcode = isa_opcode(ISA_GFX11, in.op,
				in.fmt == ISA_FMT_VOP3 &&
					op->fmt != ISA_FMT_VOP3);
	int n;

	in.f[ISA_F_OP] = (uint32_t)opcode;
	n = opcode < 0 ? 0 : isa_encode(&in, bytes);
	if (!n)
		BUG("%s cannot be encoded", op->name);
	buf_add(&k->code, bytes, (size_t)n);
}

#define F(name) [ISA_F_##name]
#define EMIT(k, name, format, ...) \
	emit_inst(k, \
		  (struct isa_inst){ .op = ISA_##name, \
				     .fmt = ISA_FMT_##format, \
				     .f = { [ISA_F_OP] = 0, ##__VA_ARGS__ } })
#define EMIT_LIT(k, name, format, lit, ...) \
	emit_inst(k, \
		  (struct isa_inst){ .op = ISA_##name, \
				     .fmt = ISA_FMT_##format, \
				     .has_literal = true, \
				     .literal = lit, \
				     .f = { [ISA_F_OP] = 0, ##__VA_ARGS__ } })

static void s_mov(struct probe_kernel *k, uint32_t dst, uint32_t src)
{
	EMIT(k, s_mov_b32, SOP1, F(SDST) = dst, F(SSRC0) = src);
}

static void wait_all(struct probe_kernel *k)
{
	EMIT(k, s_waitcnt, SOPP);
	EMIT(k, s_waitcnt_vscnt, SOPK, F(SDST) = ISA_R_NULL);
}

#define OFF13(n) ((uint32_t)(n) & 0x1fff)

static void emit_load4(struct probe_kernel *k, uint32_t v, uint32_t base,
		       int off)
{
	EMIT(k, global_load_b128, GLOBAL, F(VDST) = v, F(ADDR) = V_LANE16,
	     F(SADDR) = base, F(OFFSET) = OFF13(off));
}

static void emit_store4(struct probe_kernel *k, uint32_t v, uint32_t base,
			int off)
{
	EMIT(k, global_store_b128, GLOBAL, F(DATA0) = v, F(ADDR) = V_LANE16,
	     F(SADDR) = base, F(OFFSET) = OFF13(off));
}

static void emit_store1(struct probe_kernel *k, uint32_t v, int off)
{
	EMIT(k, global_store_b32, GLOBAL, F(DATA0) = v, F(ADDR) = V_LANE4,
	     F(SADDR) = S_OUT, F(OFFSET) = OFF13(off - 4096));
}

static void lane_numbers(struct probe_kernel *k)
{
	EMIT(k, v_mbcnt_lo_u32_b32, VOP3, F(VDST) = V_LANE,
	     F(SRC0) = MINUS_1, F(SRC1) = INLINE(0));
	EMIT(k, v_lshlrev_b32, VOP2, F(VDST) = V_LANE16, F(SRC0) = INLINE(4),
	     F(VSRC1) = V_LANE);
	EMIT(k, v_lshlrev_b32, VOP2, F(VDST) = V_LANE4, F(SRC0) = INLINE(2),
	     F(VSRC1) = V_LANE);
}

static void emit_control(struct probe_kernel *k, bool after)
{
	EMIT_LIT(k, v_lshl_add_u32, VOP3, control_add[after],
		 F(VDST) = V_CONTROL, F(SRC0) = VGPR(V_LANE),
		 F(SRC1) = INLINE(7), F(SRC2) = LITERAL);
	EMIT_LIT(k, v_xor_b32, VOP2, control_xor[after], F(VDST) = V_CONTROL,
		 F(SRC0) = LITERAL, F(VSRC1) = V_CONTROL);
	emit_store1(k, V_CONTROL, after ? PROBE_OUT_AFTER : PROBE_OUT_BEFORE);
	wait_all(k);
}

static void fill_memories(struct probe_kernel *k)
{
	for (uint32_t i = 0; i < 4; i++) {
		emit_load4(k, V_DATA, S_IN, PROBE_IN_LDS + 512 * (int)i);
		wait_all(k);
		EMIT(k, ds_store_b128, DS, F(ADDR) = V_LANE16,
		     F(DATA0) = V_DATA, F(OFFSET1) = 2 * i);
		EMIT(k, scratch_store_b128, SCRATCH,
		     F(DATA0) = PROBE_V_SRC1 + 4 * i, F(SADDR) = ISA_R_NULL,
		     F(OFFSET) = SCRATCH_AT + 16 * i);
	}
	wait_all(k);
}

static void s_load(struct probe_kernel *k, enum isa_op op, uint32_t dst,
		   uint32_t off)
{
	emit_inst(k, (struct isa_inst){ .op = op, .fmt = ISA_FMT_SMEM,
					.f = { F(SDATA) = dst,
					       F(SBASE) = S_IN / 2,
					       F(OFFSET) = off,
					       F(SOFFSET) = ISA_R_NULL } });
}

static void fill_scalars(struct probe_kernel *k)
{
	s_load(k, ISA_s_load_b512, 0, 0);
	s_load(k, ISA_s_load_b512, 16, 64);
	s_load(k, ISA_s_load_b256, 32, 128);
	s_load(k, ISA_s_load_b64, ISA_R_VCC_LO, 4 * PROBE_SGPRS);
	for (uint32_t i = 0; i < PROBE_MARKERS; i++)
		s_mov(k, PROBE_S_MARK + i, INLINE(0));
	wait_all(k);
}

/* s[36:37] = address of the second marker; `extra` bytes lie between. */
static void point_next(struct probe_kernel *k, int slot_words)
{
	/*
	 * From behind s_getpc: add (8), addc (4), m0 (4), scc (4), nop (4),
	 * the slot, one marker.
	 */
	const uint32_t delta = 24 + 4 * (uint32_t)slot_words + 4;

	EMIT(k, s_getpc_b64, SOP1, F(SDST) = PROBE_S_NEXT);
	EMIT_LIT(k, s_add_u32, SOP2, delta, F(SDST) = PROBE_S_NEXT,
		 F(SSRC0) = PROBE_S_NEXT, F(SSRC1) = LITERAL);
	EMIT(k, s_addc_u32, SOP2, F(SDST) = PROBE_S_NEXT + 1,
	     F(SSRC0) = PROBE_S_NEXT + 1, F(SSRC1) = INLINE(0));
	s_mov(k, ISA_R_M0, INLINE(PROBE_M0));
	EMIT(k, s_cmp_eq_u32, SOPC, F(SSRC0) = INLINE(0),
	     F(SSRC1) = INLINE(0));
	EMIT(k, s_nop, SOPP, F(SIMM16) = NOP_8);
}

static void emit_prologue(struct probe_kernel *k, int slot_words)
{
	EMIT(k, s_load_b256, SMEM, F(SDATA) = S_IN, F(SBASE) = S_KERNARG,
	     F(SOFFSET) = ISA_R_NULL);
	wait_all(k);
	lane_numbers(k);
	emit_control(k, false);
	for (uint32_t g = 0; g < PROBE_VGPRS / 4; g++)
		emit_load4(k, 4 * g, S_IN_VGPR, 512 * (int)g - 4096);
	wait_all(k);
	fill_memories(k);
	fill_scalars(k);
	point_next(k, slot_words);
}

static void save_first(struct probe_kernel *k)
{
	wait_all(k);
	EMIT(k, s_cselect_b32, SOP2, F(SDST) = S_SAVED, F(SSRC0) = INLINE(1),
	     F(SSRC1) = INLINE(0));
	s_mov(k, S_SAVED + 1, ISA_R_EXEC_LO);
	s_mov(k, S_SAVED + 2, ISA_R_EXEC_HI);
	s_mov(k, S_SAVED + 3, ISA_R_VCC_LO);
	s_mov(k, S_SAVED + 4, ISA_R_VCC_HI);
	s_mov(k, S_SAVED + 5, ISA_R_M0);
	EMIT(k, s_getreg_b32, SOPK, F(SDST) = S_SAVED + 6,
	     F(SIMM16) = HWREG_MODE_ALL);
	s_mov(k, ISA_R_EXEC_LO, MINUS_1);
}

static void emit_writelane(struct probe_kernel *k, uint32_t v, uint32_t sgpr,
			   uint32_t lane)
{
	EMIT(k, v_writelane_b32, VOP3, F(VDST) = v, F(SRC0) = sgpr,
	     F(SRC1) = INLINE(lane));
}

static void save_scalars(struct probe_kernel *k)
{
	for (uint32_t i = 0; i < 32; i++)
		emit_writelane(k, V_SGPR, i, i);
	for (uint32_t i = 32; i < PROBE_SGPRS; i++)
		emit_writelane(k, V_MORE, i, i - 32);
	for (uint32_t i = 0; i < N_SAVED; i++)
		emit_writelane(k, V_MORE, S_SAVED + i, PROBE_SGPRS - 32 + i);
	emit_store1(k, V_SGPR, PROBE_OUT_S0);
	emit_store1(k, V_MORE, PROBE_OUT_S32);
}

static void save_memories(struct probe_kernel *k)
{
	for (uint32_t i = 0; i < 4; i++) {
		EMIT(k, ds_load_b128, DS, F(ADDR) = V_LANE16,
		     F(VDST) = V_DATA, F(OFFSET1) = 2 * i);
		EMIT(k, scratch_load_b128, SCRATCH, F(VDST) = V_DATA + 4,
		     F(SADDR) = ISA_R_NULL, F(OFFSET) = SCRATCH_AT + 16 * i);
		wait_all(k);
		emit_store4(k, V_DATA, S_OUT,
			    PROBE_OUT_LDS + 512 * (int)i - 4096);
		emit_store4(k, V_DATA + 4, S_OUT,
			    PROBE_OUT_SCRATCH + 512 * (int)i - 4096);
		wait_all(k);
	}
}

static void emit_epilogue(struct probe_kernel *k)
{
	save_first(k);
	lane_numbers(k);
	save_scalars(k);
	for (uint32_t g = 0; g < PROBE_VGPRS / 4; g++)
		emit_store4(k, 4 * g, S_OUT_VGPR, 512 * (int)g - 4096);
	save_memories(k);
	emit_control(k, true);
	EMIT(k, s_endpgm, SOPP);
}

void probe_kernel_init(struct probe_kernel *k, const struct probe_slot *slot)
{
	*k = (struct probe_kernel){ 0 };
	emit_prologue(k, slot->n_words);
	k->slot_at = (uint32_t)k->code.len;
	buf_add(&k->code, slot->word, 4 * (size_t)slot->n_words);
	k->marks_at = (uint32_t)k->code.len;
	for (uint32_t i = 0; i < PROBE_MARKERS; i++)
		EMIT(k, s_movk_i32, SOPK, F(SDST) = PROBE_S_MARK + i,
		     F(SIMM16) = 1);
	emit_epilogue(k);
}

void probe_kernel_fini(struct probe_kernel *k)
{
	buf_fini(&k->code);
}

struct kfd_raw_desc probe_kernel_desc(const char *name)
{
	/* Wave32, IEEE denormals kept, kernel arguments in s[0:1], scratch. */
	return (struct kfd_raw_desc){
		.name = name,
		.rsrc1 = (VGPR_ALLOC / 8 - 1) | 0xfu << 16 | 1u << 21 |
			 1u << 23 | 1u << 29 | 1u << 30,
		.rsrc2 = 1u | 2u << 1,
		.properties = 1u << 10 | 1u << 3,
		.kernarg_bytes = 32,
		.lds_bytes = LDS_BYTES,
		.private_bytes = SCRATCH_LANE_BYTES,
	};
}
