/*
 * probes/discover/kernel.c - the kernel around a slot, and its initial state.
 *
 * Registers above those watched are the kernel's own: s80..s87 hold pointers
 * from start to end, s96..s102 take what the epilogue must save first, v48..
 * v63 are scratch for loads and stores.  The epilogue recomputes everything
 * that it needs besides the pointers, so that a slot may overwrite it.
 *
 * Instructions are rows and fields, which generations encode as they do.
 * Offsets are added to addresses, for the generations' fields differ in width.
 */
#include <string.h>

#include "probes/discover/discover_int.h"

#define INLINE(n)	  (128u + (n))
#define MINUS_1		  193u
#define LITERAL		  255u
#define VGPR(n)		  (256u + (n))
#define HWREG_ALL(id)	  (31u << 11 | (id)) /* hwreg(id, 0, 32) */
#define HWREG_MODE	  1u
#define HWREG_FLAT_SCR_LO 20u
#define NOP_8		  7u
#define SCRATCH_AT	  64u /* bytes into a lane's scratch */

enum {
	S_KERNARG = 0,
	S_SCRATCH = 2, /* where own_scratch is not: address, offset */
	S_SCRATCH_OFFSET = 4,
	S_IN = 80,    /* input buffer */
	S_OUT = 82,   /* output buffer */
	S_SAVED = 96, /* scc, exec, vcc, m0, mode */
	V_LANE = 48,
	V_LANE16 = 49,
	V_CONTROL = 50,
	V_LANE4 = 51,
	V_DATA = 52, /* ..59 */
	V_AT = 60,   /* an address */
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

static void set_addresses(struct probe_state *st, enum isa_gen gen,
			  uint64_t mem_va)
{
	const uint64_t mid = mem_va + PROBE_MEM_DW * 2;

	for (uint32_t l = 0; l < PROBE_LANES; l++) {
		st->v[PROBE_V_ADDR][l] = (uint32_t)(mid + 64 * l);
		st->v[PROBE_V_ADDR + 1][l] = (uint32_t)((mid + 64 * l) >> 32);
		st->v[PROBE_V_LDS][l] = 16 * l;
		st->v[PROBE_V_OFFSET][l] = 64 * l;
		st->v[PROBE_V_SCRATCH][l] = SCRATCH_AT;
	}
	/*
	 * Raw buffer, stride 0, all four components as 32-bit integers, and
	 * gfx10's resource level.
	 */
	st->s[PROBE_S_RSRC] = (uint32_t)mid;
	st->s[PROBE_S_RSRC + 1] = (uint32_t)(mid >> 32);
	st->s[PROBE_S_RSRC + 2] = PROBE_MEM_DW * 2;
	st->s[PROBE_S_RSRC + 3] = 0x30000000u | 0xfac |
				  probe_buffer_format(gen) << 12 |
				  (gen < ISA_GFX11 ? 1u << 24 : 0);
}

void probe_state_init(struct probe_state *st, enum isa_gen gen, uint64_t seed,
		      uint64_t mem_va)
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
	set_addresses(st, gen, mem_va);
}

/* --------------------------------------------------------------- code --- */

static void emit_inst(struct probe_kernel *k, struct isa_inst in)
{
	const struct isa_op_info *op = isa_op_info(in.op);
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	int opcode =
		isa_opcode(k->gen, in.op,
			   in.fmt == ISA_FMT_VOP3 && op->fmt != ISA_FMT_VOP3);
	int n;

	in.gen = (uint8_t)k->gen;
	in.layout = (uint8_t)isa_layout(k->gen, in.fmt);
	in.m0_is_124 = k->gen < ISA_GFX11;
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

/* SIMM16 of 0: until nothing is outstanding. */
static void wait_zero(struct probe_kernel *k, enum isa_op op)
{
	if (isa_opcode(k->gen, op, false) >= 0)
		emit_inst(k,
			  (struct isa_inst){ .op = op,
					     .fmt = isa_op_info(op)->fmt,
					     .f = { F(SDST) = ISA_R_NULL } });
}

static void wait_all(struct probe_kernel *k)
{
	static const enum isa_op waits[] = {
		ISA_s_waitcnt,	     ISA_s_waitcnt_vscnt, ISA_s_wait_loadcnt,
		ISA_s_wait_storecnt, ISA_s_wait_dscnt,	  ISA_s_wait_kmcnt,
	};

	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		wait_zero(k, waits[i]);
}

static void add_offset(struct probe_kernel *k, uint32_t v, uint32_t off)
{
	EMIT_LIT(k, v_add_nc_u32, VOP2, off, F(VDST) = V_AT, F(SRC0) = LITERAL,
		 F(VSRC1) = v);
}

static void emit_load4(struct probe_kernel *k, uint32_t v, uint32_t off)
{
	add_offset(k, V_LANE16, off);
	EMIT(k, global_load_b128, GLOBAL, F(VDST) = v, F(ADDR) = V_AT,
	     F(SADDR) = S_IN);
}

static void emit_store4(struct probe_kernel *k, uint32_t v, uint32_t off)
{
	add_offset(k, V_LANE16, off);
	EMIT(k, global_store_b128, GLOBAL, F(DATA0) = v, F(ADDR) = V_AT,
	     F(SADDR) = S_OUT);
}

static void emit_store1(struct probe_kernel *k, uint32_t v, uint32_t off)
{
	add_offset(k, V_LANE4, off);
	EMIT(k, global_store_b32, GLOBAL, F(DATA0) = v, F(ADDR) = V_AT,
	     F(SADDR) = S_OUT);
}

static void lane_numbers(struct probe_kernel *k)
{
	EMIT(k, v_mbcnt_lo_u32_b32, VOP3, F(VDST) = V_LANE, F(SRC0) = MINUS_1,
	     F(SRC1) = INLINE(0));
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

/*
 * Four dwords of scratch from or to v, without an address; before gfx11 with
 * one of 0, which all of these can.
 */
static void emit_scratch4(struct probe_kernel *k, enum isa_op op,
			  enum isa_field field, uint32_t v, uint32_t off)
{
	struct isa_inst in = { .op = (uint16_t)op,
			       .fmt = ISA_FMT_SCRATCH };

	if (k->gen < ISA_GFX11) {
		EMIT(k, v_mov_b32, VOP1, F(VDST) = V_AT, F(SRC0) = INLINE(0));
		in.f[ISA_F_ADDR] = V_AT;
	}
	in.f[field] = v;
	in.f[ISA_F_SADDR] = ISA_R_NULL;
	in.f[ISA_F_OFFSET] = off;
	emit_inst(k, in);
}

static void fill_memories(struct probe_kernel *k)
{
	for (uint32_t i = 0; i < 4; i++) {
		emit_load4(k, V_DATA, PROBE_IN_LDS + 512 * i);
		wait_all(k);
		EMIT(k, ds_store_b128, DS, F(ADDR) = V_LANE16,
		     F(DATA0) = V_DATA, F(OFFSET1) = 2 * i);
		emit_scratch4(k, ISA_scratch_store_b128, ISA_F_DATA0,
			      PROBE_V_SRC1 + 4 * i, SCRATCH_AT + 16 * i);
	}
	wait_all(k);
}

static void s_load(struct probe_kernel *k, enum isa_op op, uint32_t dst,
		   uint32_t off)
{
	emit_inst(k,
		  (struct isa_inst){ .op = op,
				     .fmt = ISA_FMT_SMEM,
				     .f = { F(SDATA) = dst, F(SBASE) = S_IN / 2,
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

/* dst += add, with the carry into the register behind it. */
static void add_to_pair(struct probe_kernel *k, uint32_t dst, uint32_t add)
{
	/* gfx12's rows differ in no more than the name. */
	const bool renamed = isa_opcode(k->gen, ISA_s_add_u32, false) < 0;
	const struct isa_inst low = {
		.op = renamed ? ISA_s_add_co_u32 : ISA_s_add_u32,
		.fmt = ISA_FMT_SOP2,
		.has_literal = true,
		.literal = add,
		.f = { F(SDST) = dst, F(SSRC0) = dst, F(SSRC1) = LITERAL },
	};
	const struct isa_inst high = {
		.op = renamed ? ISA_s_add_co_ci_u32 : ISA_s_addc_u32,
		.fmt = ISA_FMT_SOP2,
		.f = { F(SDST) = dst + 1, F(SSRC0) = dst + 1,
		       F(SSRC1) = INLINE(0) },
	};

	emit_inst(k, low);
	emit_inst(k, high);
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
	add_to_pair(k, PROBE_S_NEXT, delta);
	s_mov(k, ISA_R_M0, INLINE(PROBE_M0));
	EMIT(k, s_cmp_eq_u32, SOPC, F(SSRC0) = INLINE(0), F(SSRC1) = INLINE(0));
	EMIT(k, s_nop, SOPP, F(SIMM16) = NOP_8);
}

/* Before gfx11 a wave says where its scratch is (RDNA2 ISA 3.3). */
static void set_scratch(struct probe_kernel *k)
{
	if (isa_gen_info(k->gen)->own_scratch)
		return;
	EMIT(k, s_add_u32, SOP2, F(SDST) = S_SCRATCH, F(SSRC0) = S_SCRATCH,
	     F(SSRC1) = S_SCRATCH_OFFSET);
	EMIT(k, s_addc_u32, SOP2, F(SDST) = S_SCRATCH + 1,
	     F(SSRC0) = S_SCRATCH + 1, F(SSRC1) = INLINE(0));
	EMIT(k, s_setreg_b32, SOPK, F(SDST) = S_SCRATCH,
	     F(SIMM16) = HWREG_ALL(HWREG_FLAT_SCR_LO));
	EMIT(k, s_setreg_b32, SOPK, F(SDST) = S_SCRATCH + 1,
	     F(SIMM16) = HWREG_ALL(HWREG_FLAT_SCR_LO + 1));
}

static void emit_prologue(struct probe_kernel *k, int slot_words)
{
	set_scratch(k);
	EMIT(k, s_load_b128, SMEM, F(SDATA) = S_IN, F(SBASE) = S_KERNARG,
	     F(SOFFSET) = ISA_R_NULL);
	wait_all(k);
	lane_numbers(k);
	emit_control(k, false);
	for (uint32_t g = 0; g < PROBE_VGPRS / 4; g++)
		emit_load4(k, 4 * g, PROBE_IN_VGPR + 512 * g);
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
	     F(SIMM16) = HWREG_ALL(HWREG_MODE));
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
		EMIT(k, ds_load_b128, DS, F(ADDR) = V_LANE16, F(VDST) = V_DATA,
		     F(OFFSET1) = 2 * i);
		emit_scratch4(k, ISA_scratch_load_b128, ISA_F_VDST, V_DATA + 4,
			      SCRATCH_AT + 16 * i);
		wait_all(k);
		emit_store4(k, V_DATA, PROBE_OUT_LDS + 512 * i);
		emit_store4(k, V_DATA + 4, PROBE_OUT_SCRATCH + 512 * i);
		wait_all(k);
	}
}

static void emit_epilogue(struct probe_kernel *k)
{
	save_first(k);
	lane_numbers(k);
	save_scalars(k);
	for (uint32_t g = 0; g < PROBE_VGPRS / 4; g++)
		emit_store4(k, 4 * g, PROBE_OUT_VGPR + 512 * g);
	save_memories(k);
	emit_control(k, true);
	EMIT(k, s_endpgm, SOPP);
}

void probe_kernel_init(struct probe_kernel *k, const struct probe_slot *slot)
{
	*k = (struct probe_kernel){ .gen = slot->gen };
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

struct kfd_raw_desc probe_kernel_desc(enum isa_gen gen, const char *name)
{
	const bool own = isa_gen_info(gen)->own_scratch;

	/*
	 * Wave32, denormals kept, scratch; kernel arguments in s[0:1] and,
	 * where the wave needs it, the address of scratch memory in s[2:3].
	 */
	return (struct kfd_raw_desc){
		.name = name,
		.rsrc1 = probe_rsrc1(gen, VGPR_ALLOC),
		.rsrc2 = 1u | (own ? 2u : 4u) << 1,
		.properties =
			(uint16_t)(1u << 10 | 1u << 3 | (own ? 0 : 1u << 5)),
		.kernarg_bytes = 16,
		.lds_bytes = LDS_BYTES,
		.private_bytes = SCRATCH_LANE_BYTES,
	};
}
