/*
 * kfd/soft/exec/salu.c - scalar ALU instructions.
 *
 * salu.def says what each instruction computes; each of its rows becomes a
 * function here, and a slot in the table that finds it.
 */
#include "kfd/soft/exec/mem.h"
#include "kfd/soft/exec/valu_mods.h"

/* --------------------------------------------------------- operands ---- */

static uint64_t read_special(const struct soft_wave *w, int reg)
{
	const struct soft_env *env = w->group->env;

	switch (reg) {
	case ISA_R_SHARED_BASE:
		return env->shared_base;
	case ISA_R_SHARED_LIMIT:
		return env->shared_limit;
	case ISA_R_PRIVATE_BASE:
		return env->private_base;
	case ISA_R_PRIVATE_LIMIT:
		return env->private_limit;
	}
	return w->scc;
}

/* Inline constants: integers are sign-extended, floats become doubles. */
static uint64_t wide_inline(const struct isa_operand *o)
{
	if (o->reg >= 240)
		return isa_inline_value(o->reg, ISA_T_F64);
	return (uint64_t)(int64_t)(int32_t)o->value;
}

/*
 * A 32-bit literal of a 64-bit operand: the high half of a double, else
 * sign-extended if the type is signed (confirmed on the card).
 */
static uint64_t wide_literal(const struct isa_operand *o)
{
	switch (isa_type_info(o->type)->kind) {
	case 'F':
		return (uint64_t)o->value << 32;
	case 'I':
		return (uint64_t)(int64_t)(int32_t)o->value;
	}
	return o->value;
}

uint64_t soft_read_scalar(struct soft_wave *w, const struct isa_operand *o,
			  const struct isa_inst *in)
{
	bool wide = o->dwords == 2;

	(void)in;
	switch (o->kind) {
	case ISA_K_SGPR:
		if (o->reg == ISA_R_NULL)
			return 0;
		if (wide)
			return w->s[o->reg] | (uint64_t)w->s[o->reg + 1] << 32;
		return w->s[o->reg];
	case ISA_K_SPECIAL:
		return wide ? read_special(w, o->reg) :
			      (uint32_t)read_special(w, o->reg);
	case ISA_K_INLINE:
		return wide ? wide_inline(o) : o->value;
	case ISA_K_LITERAL:
		return wide ? wide_literal(o) : o->value;
	case ISA_K_IMM:
		return o->value;
	}
	return 0;
}

bool soft_is_writable(const struct soft_wave *w, int reg)
{
	return reg < ISA_R_TTMP0 || reg > ISA_R_NULL ||
	       (w->privileged && reg != ISA_R_NULL);
}

void soft_write_scalar(struct soft_wave *w, const struct isa_operand *o,
		       uint64_t value)
{
	if (o->kind != ISA_K_SGPR || !soft_is_writable(w, o->reg))
		return;
	w->s[o->reg] = (uint32_t)value;
	if (o->dwords == 2)
		w->s[o->reg + 1] = (uint32_t)(value >> 32);
}

static inline uint32_t get_u32(struct soft_wave *w, const struct soft_uop *u,
			       int i)
{
	const struct isa_operand *o = &u->in.opnd[i];

	/* s[ISA_R_NULL] is 0: nothing ever writes it. */
	if (o->kind == ISA_K_SGPR)
		return w->s[o->reg];
	if (o->kind == ISA_K_SPECIAL)
		return (uint32_t)read_special(w, o->reg);
	return o->value;
}

static inline int32_t get_i32(struct soft_wave *w, const struct soft_uop *u,
			      int i)
{
	return (int32_t)get_u32(w, u, i);
}

static inline uint64_t get_u64(struct soft_wave *w, const struct soft_uop *u,
			       int i)
{
	return soft_read_scalar(w, &u->in.opnd[i], &u->in);
}

static inline int64_t get_i64(struct soft_wave *w, const struct soft_uop *u,
			      int i)
{
	return (int64_t)get_u64(w, u, i);
}

/* EXEC as wide as the instruction is. */
static inline uint64_t exec_u32(const struct soft_wave *w)
{
	return w->s[ISA_R_EXEC_LO];
}

static inline uint64_t exec_u64(const struct soft_wave *w)
{
	return w->s[ISA_R_EXEC_LO] | (uint64_t)w->s[ISA_R_EXEC_HI] << 32;
}

static inline void set_exec_u32(struct soft_wave *w, uint64_t exec)
{
	w->s[ISA_R_EXEC_LO] = (uint32_t)exec;
}

static inline void set_exec_u64(struct soft_wave *w, uint64_t exec)
{
	w->s[ISA_R_EXEC_LO] = (uint32_t)exec;
	w->s[ISA_R_EXEC_HI] = (uint32_t)(exec >> 32);
}

/* ---------------------------------------------------------- helpers ---- */

static bool shift_add(uint32_t a, int shift, uint32_t b, uint32_t *d)
{
	uint64_t sum = ((uint64_t)a << shift) + b;

	*d = (uint32_t)sum;
	return sum >> 32;
}

static uint64_t low_bits(unsigned n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* The low `width` bits of v as a signed number. */
static int64_t sign_from(int64_t v, unsigned width)
{
	uint64_t sign;

	if (width == 0)
		return 0;
	if (width >= 64)
		return v;
	sign = UINT64_C(1) << (width - 1);
	return (int64_t)((((uint64_t)v & low_bits(width)) ^ sign) - sign);
}

static uint64_t reverse_bits(uint64_t v)
{
	v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
	v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
	return __builtin_bswap64(v);
}

/* Bit i of a at bit 2 * i. */
static uint64_t spread_bits(uint32_t a)
{
	uint64_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (uint64_t)(a >> i & 1) << 2 * i;
	return r;
}

/* Bit i: one of the bits 4 * i .. 4 * i + 3 is set. */
static uint64_t quad_mask(uint64_t v)
{
	uint64_t r = 0;

	for (int i = 0; i < 16; i++)
		r |= (uint64_t)((v >> 4 * i & 15) != 0) << i;
	return r;
}

static uint64_t whole_quads(uint64_t v)
{
	uint64_t any = (v | v >> 1 | v >> 2 | v >> 3) & 0x1111111111111111;

	return any * 15;
}

/* ------------------------------------------------------------- rows ---- */

#define T_u32 uint32_t
#define T_i32 int32_t
#define T_u64 uint64_t
#define T_i64 int64_t

/*
 * `sources` declares what the code reads; `after` uses what it gave.  The types
 * D, A and B choose C types (T_u32) and readers (get_u32).  The row
 *
 *	S2(s_add_u32, u32, u32, u32, d = a + b, scc = d < a)
 *
 * becomes
 *
 *	static void run_s_add_u32(struct soft_wave *w, const struct soft_uop *u)
 *	{
 *		bool scc = w->scc;
 *		uint32_t d;
 *		uint32_t a = get_u32(w, u, 1);
 *		uint32_t b = get_u32(w, u, 2);
 *
 *		(d = a + b, scc = d < a);
 *		w->scc = scc;
 *		soft_write_scalar(w, &u->in.opnd[0], (uint64_t)d);
 *	}
 *
 * and, at the end of this file, [ISA_s_add_u32] = run_s_add_u32 in the table.
 */
#define ROW(name, D, sources, code, after)                             \
	static void run_##name(struct soft_wave *w, const struct soft_uop *u) \
	{                                                              \
		bool scc = w->scc;                                     \
		sources                                                \
		code;                                                  \
		w->scc = scc;                                          \
		after                                                  \
	}
#define CODE(...) (__VA_ARGS__)
#define SET(D) soft_write_scalar(w, &u->in.opnd[0], (uint64_t)d);

#define S2(name, D, A, B, ...)                                         \
	ROW(name, D, T_##D d; T_##A a = get_##A(w, u, 1);              \
	    T_##B b = get_##B(w, u, 2);, CODE(__VA_ARGS__), SET(D))
#define S1(name, D, A, ...)                                            \
	ROW(name, D, T_##D d; T_##A a = get_##A(w, u, 1);,             \
	    CODE(__VA_ARGS__), SET(D))
#define R1(name, D, A, ...)                                            \
	ROW(name, D, T_##D d = get_##D(w, u, 0);                       \
	    T_##A a = get_##A(w, u, 1);, CODE(__VA_ARGS__), SET(D))
#define X1(name, D, A, ...)                                            \
	ROW(name, D, T_##D d; T_##A a = get_##A(w, u, 1);              \
	    uint64_t exec = exec_##D(w);, CODE(__VA_ARGS__),           \
	    set_exec_##D(w, exec); SET(D))
#define SK(name, D, ...)                                               \
	ROW(name, D, T_##D d = get_##D(w, u, 0);                       \
	    int16_t k = (int16_t)u->in.f[ISA_F_SIMM16];,               \
	    CODE(__VA_ARGS__), SET(D))
#define KC(name, D, ...)                                               \
	ROW(name, D, T_##D d = get_##D(w, u, 0);                       \
	    int16_t k = (int16_t)u->in.f[ISA_F_SIMM16];,               \
	    CODE(__VA_ARGS__), )
#define SC(name, A, B, ...)                                            \
	ROW(name, A, T_##A a = get_##A(w, u, 0);                       \
	    T_##B b = get_##B(w, u, 1);, CODE(__VA_ARGS__), )
#include "kfd/soft/exec/salu.def"

/* ----------------------------------------------- indexed scalar moves ---- */

/*
 * A register M0 away: a source beyond the file reads SGPR 0, a destination
 * beyond it is not written (RDNA3 ISA 3.4, "Out-of-range").
 */
static bool index_register(const struct isa_operand *o, uint32_t by,
			   struct isa_operand *out)
{
	uint64_t reg = (uint64_t)o->reg + by;

	*out = *o;
	if (o->kind != ISA_K_SGPR)
		return true;
	if (reg + o->dwords > ISA_R_VCC_HI + 1) {
		out->reg = 0;
		return false;
	}
	out->reg = (uint16_t)reg;
	return true;
}

static void move_relative(struct soft_wave *w, const struct soft_uop *u,
			  uint32_t src, uint32_t dst)
{
	struct isa_operand from, to;
	uint64_t v;

	index_register(&u->in.opnd[1], src, &from);
	v = soft_read_scalar(w, &from, &u->in);
	if (index_register(&u->in.opnd[0], dst, &to))
		soft_write_scalar(w, &to, v);
}

static void run_movrels(struct soft_wave *w, const struct soft_uop *u)
{
	move_relative(w, u, w->s[ISA_R_M0], 0);
}

static void run_movreld(struct soft_wave *w, const struct soft_uop *u)
{
	move_relative(w, u, 0, w->s[ISA_R_M0]);
}

static void run_movrelsd_2(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t m0 = w->s[ISA_R_M0];

	move_relative(w, u, m0 & 0x3ff, m0 >> 16 & 0x3ff);
}

/* --------------------------------------------- floats (RDNA3.5 and up) ---- */

/*
 * Each does to SGPRs what a vector instruction does to a lane, rounding, keeping
 * denormals and passing NaNs on as MODE says; SCC changes in compares only.  The
 * upper half of a 16-bit result is zero.
 */
static const struct {
	enum isa_op scalar, vector;
} twins[] = {
#define TWIN(name)     { ISA_s_##name, ISA_v_##name },
#define TWINS(name)    TWIN(name##_f32) TWIN(name##_f16)
#define COMPARES(name) TWINS(cmp_##name)
	TWINS(min_num) TWINS(max_num) TWINS(minimum) TWINS(maximum)
	TWINS(add) TWINS(sub) TWINS(min) TWINS(max) TWINS(mul) TWINS(fmac)
		TWINS(ceil) TWINS(floor) TWINS(trunc) TWINS(rndne) TWIN(
			fmaak_f32) TWIN(fmamk_f32) TWIN(cvt_pk_rtz_f16_f32)
			TWIN(cvt_f32_i32) TWIN(cvt_f32_u32) TWIN(cvt_i32_f32)
				TWIN(cvt_u32_f32) TWIN(cvt_f16_f32)
					TWIN(cvt_f32_f16){ ISA_s_cvt_hi_f32_f16,
							   ISA_v_cvt_f32_f16 },
	/* gfx12's transcendental instructions on SGPRs. */
#define S_TWIN(name) { ISA_v_s_##name, ISA_v_##name },
#define S_TWINS(name) S_TWIN(name##_f32) S_TWIN(name##_f16)
	S_TWINS(exp) S_TWINS(log) S_TWINS(rcp) S_TWINS(rsq) S_TWINS(sqrt)
	COMPARES(lt) COMPARES(eq) COMPARES(le) COMPARES(gt) COMPARES(lg)
		COMPARES(ge) COMPARES(o) COMPARES(u) COMPARES(nge) COMPARES(nlg)
			COMPARES(ngt) COMPARES(nle) COMPARES(neq) COMPARES(nlt)
};

/* What the k-th source of the row's vector instruction is. */
static enum isa_type type_of(const struct soft_lane_op *row, int k)
{
	const struct isa_op_info *op =
		isa_op_info((enum isa_op)(row - soft_simd()->ops));

	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot != ISA_SLOT_D &&
		    op->opnd[i].slot != ISA_SLOT_CD && !k--)
			return (enum isa_type)op->opnd[i].type;
	return (enum isa_type)op->opnd[0].type; /* RD: the destination */
}

/* Source k as the vector instruction's, in lane 0 of v. */
static void fetch_source(struct soft_wave *w, const struct soft_uop *u,
			 const struct isa_operand *o, int k,
			 uint32_t v[2 * SOFT_LANES])
{
	const struct soft_lane_op *row = u->op;
	const uint32_t mode = soft_row_mode(row, w->mode);
	const enum isa_type type = type_of(row, k);

	memset(v, 0, SOFT_VREG_BYTES);
	v[0] = (uint32_t)soft_read_scalar(w, o, &u->in);
	if (u->in.op == ISA_s_cvt_hi_f32_f16)
		v[0] >>= 16;
	if (o->mods && u->in.fmt == ISA_FMT_VOP3) {
		const uint32_t sign = isa_type_is_half(type) ? 0x8000 : 1u << 31;

		v[0] &= o->mods & ISA_M_ABS ? sign - 1 : ~0u;
		v[0] ^= o->mods & ISA_M_NEG ? sign : 0;
	}
	if (!(row->flags & SOFT_V_KEEP) && mods_flush(type, mode, false))
		mods_flush_vreg(type, v);
}

static void run_float(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_lane_op *row = u->op;
	const uint32_t mode = soft_row_mode(row, w->mode);
	const struct isa_operand *dst = NULL;
	_Alignas(64) uint32_t src[3][2 * SOFT_LANES] = { 0 };
	_Alignas(64) uint32_t d[2 * SOFT_LANES] = { 0 };
	struct soft_lanes x = { .a = src[0],
				.b = src[1],
				.c = src[2],
				.d = d,
				.exec = 1,
				.mode = w->mode };
	int k = 0;

	for (int i = 0; i < u->in.n_opnd; i++)
		if (u->in.opnd[i].role & ISA_DST)
			dst = &u->in.opnd[i];
		else
			fetch_source(w, u, &u->in.opnd[i], k, src[k]), k++;
	if (dst && dst->role & ISA_SRC)
		fetch_source(w, u, dst, k, src[k]);
	mods_compute(row, dst ? dst->type : ISA_T_F32, mode, &x);
	if (!dst) {
		w->scc = x.mask_out & 1;
		return;
	}
	mods_finish(&u->in, dst->type, mode, row->flags, d);
	soft_write_scalar(w, dst,
			  isa_type_is_half(dst->type) ? d[0] & 0xffff : d[0]);
}

/* The handler of a float instruction, and its row, or NULL. */
soft_handler *soft_scalar_float(const struct isa_inst *in, const void **op)
{
	for (size_t i = 0; i < ARRAY_SIZE(twins); i++)
		if (twins[i].scalar == in->op) {
			*op = &soft_simd()->ops[twins[i].vector];
			return run_float;
		}
	return NULL;
}

/* ------------------------------------------------------------ table ---- */

static soft_handler *const handler[ISA_OP_COUNT] = {
#define ENTRY(name) [ISA_##name] = run_##name,
#define S2(name, ...) ENTRY(name)
#define S1(name, ...) ENTRY(name)
#define R1(name, ...) ENTRY(name)
#define X1(name, ...) ENTRY(name)
#define SK(name, ...) ENTRY(name)
#define KC(name, ...) ENTRY(name)
#define SC(name, ...) ENTRY(name)
#include "kfd/soft/exec/salu.def"
	[ISA_s_movrels_b32] = run_movrels,
	[ISA_s_movrels_b64] = run_movrels,
	[ISA_s_movreld_b32] = run_movreld,
	[ISA_s_movreld_b64] = run_movreld,
	[ISA_s_movrelsd_2_b32] = run_movrelsd_2,
};

soft_handler *soft_salu_handler(const struct isa_inst *in, const void **op)
{
	*op = NULL;
	return handler[in->op] ? handler[in->op] :
				 soft_scalar_float(in, op);
}
