/* compiler/sim/machine.c - values of a wave, as far as they follow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/machine.h"

enum { HALF = 32, SOURCES = 3 };

enum form {
	FORM_NEW,	/* not decoded yet */
	FORM_FORGET,	/* what it writes is not known */
	FORM_NONE,	/* waits and hints */
	FORM_V32,
	FORM_V64,
	FORM_CARRY,
	FORM_CMP,
	FORM_CNDMASK,
	FORM_READLANE,	/* and v_readfirstlane */
	FORM_WRITELANE,
	FORM_SCALAR,
	FORM_SAVEEXEC,
	FORM_SMEM,
	FORM_GETPC,
	FORM_JUMP,
	FORM_MEMORY,
};

/* A half of a vector instruction: VOPD has two. */
struct half {
	uint16_t op;
	uint8_t form;
	uint8_t n_src;
	uint8_t src[SOURCES]; /* indices of operands */
	uint8_t dst, mask_out, mask_in; /* the same; 255: none */
	bool need_scc, kill_scc;
	/* Registers that are read, and that are written. */
	uint64_t need_s[2], need_v[4], kill_s[2], kill_v[4];
};

struct machine_op {
	uint8_t form;
	bool dual, end;
	struct half x, y;
	struct isa_inst in;
};

/* ---- helpers of machine.def ---- */

static inline float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static inline uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static inline uint32_t to_u32(float f)
{
	return f >= 4294967296.0f ? UINT32_MAX : f > 0 ? (uint32_t)f : 0;
}

static inline uint32_t to_i32(float f)
{
	if (f >= 2147483648.0f)
		return INT32_MAX;
	return f >= -2147483648.0f ? (uint32_t)(int32_t)f : (uint32_t)INT32_MIN;
}

static inline uint32_t reverse(uint32_t a)
{
	a = (a & 0x55555555) << 1 | (a >> 1 & 0x55555555);
	a = (a & 0x33333333) << 2 | (a >> 2 & 0x33333333);
	a = (a & 0x0f0f0f0f) << 4 | (a >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(a);
}

/* Bits of the lanes below `lane` of a half. */
static inline uint32_t below(int lane)
{
	if (lane <= 0)
		return 0;
	return lane >= 32 ? UINT32_MAX : (1u << lane) - 1;
}

/* ---- decoding ---- */

static bool in_v32(enum isa_op op)
{
	switch (op) {
#define V(name, expr) case ISA_##name:
#define F(name, expr) case ISA_##name:
#include "compiler/sim/machine.def"
		return true;
	default:
		return false;
	}
}

static enum form form_of(enum isa_op op, const struct isa_op_info *info)
{
	if (info->pipe == ISA_PIPE_BRANCH)
		return FORM_JUMP;
	if (info->pipe == ISA_PIPE_SMEM)
		return FORM_SMEM;
	if (info->pipe == ISA_PIPE_VMEM || info->pipe == ISA_PIPE_LDS ||
	    info->pipe == ISA_PIPE_FLAT)
		return FORM_MEMORY;
	if (in_v32(op))
		return FORM_V32;
	switch (op) {
#define W(name, expr) case ISA_##name:
#include "compiler/sim/machine.def"
		return FORM_V64;
#define C(name, type, expr) case ISA_v_cmp_##name: case ISA_v_cmpx_##name:
#include "compiler/sim/machine.def"
		return FORM_CMP;
#define S(name, value, scc) case ISA_##name:
#define T(name, scc) case ISA_##name:
#include "compiler/sim/machine.def"
		return FORM_SCALAR;
#define E(name, expr) \
	case ISA_s_##name##_saveexec_b32: case ISA_s_##name##_saveexec_b64:
#include "compiler/sim/machine.def"
		return FORM_SAVEEXEC;
	case ISA_v_add_co_u32: case ISA_v_sub_co_u32: case ISA_v_subrev_co_u32:
	case ISA_v_add_co_ci_u32: case ISA_v_sub_co_ci_u32:
	case ISA_v_subrev_co_ci_u32:
		return FORM_CARRY;
	case ISA_v_cndmask_b32:
		return FORM_CNDMASK;
	case ISA_v_readfirstlane_b32: case ISA_v_readlane_b32:
		return FORM_READLANE;
	case ISA_v_writelane_b32:
		return FORM_WRITELANE;
	case ISA_s_getpc_b64:
		return FORM_GETPC;
	case ISA_s_swappc_b64: case ISA_s_setpc_b64:
		return FORM_JUMP;
	default:
		return info->pipe == ISA_PIPE_SPECIAL ? FORM_NONE : FORM_FORGET;
	}
}

/* Operands of a half, by what they are for. */
static void find_operands(struct half *h, const struct isa_inst *in, int from,
			  int to)
{
	h->dst = h->mask_in = h->mask_out = 255;
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CD)
			h->mask_out = (uint8_t)i;
		else if (o->slot == ISA_SLOT_CI)
			h->mask_in = (uint8_t)i;
		else if (o->role & ISA_DST)
			h->dst = (uint8_t)i;
		else if (h->n_src < SOURCES)
			h->src[h->n_src++] = (uint8_t)i;
	}
}

/* Modifiers of integers and parts of registers are not evaluated. */
static bool is_plain(const struct isa_inst *in)
{
	if (in->form != ISA_FORM_PLAIN || in->f[ISA_F_CLAMP] ||
	    in->f[ISA_F_OMOD])
		return false;
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].mods & ~(ISA_M_NEG | ISA_M_ABS))
			return false;
	return true;
}

static void add_bits(uint64_t *set, int reg, int n)
{
	for (int r = reg; r < reg + n; r++)
		set[r / 64] |= UINT64_C(1) << r % 64;
}

static void add_register(struct half *h, bool vgpr, int role, int reg, int n)
{
	if (reg + n > (vgpr ? 256 : 128))
		return;
	if (role & ISA_SRC)
		add_bits(vgpr ? h->need_v : h->need_s, reg, n);
	if (role & ISA_DST)
		add_bits(vgpr ? h->kill_v : h->kill_s, reg, n);
}

static void find_registers(struct half *h, const struct isa_inst *in,
			   const struct isa_target *t)
{
	struct isa_use u;

	isa_use(t, in, &u);
	h->need_scc = u.scc_read;
	h->kill_scc = u.scc_write;
	for (int k = 0; k < u.n; k++)
		add_register(h, u.reg[k].file == ISA_K_VGPR, u.reg[k].role,
			     u.reg[k].reg, u.reg[k].count);
}

/* Of a half of VOPD, which exists for wave32 only. */
static void find_half_registers(struct half *h, const struct isa_inst *in,
				int from, int to)
{
	add_bits(h->need_s, ISA_R_EXEC_LO, 1);
	if (h->op == ISA_v_cndmask_b32)
		add_bits(h->need_s, ISA_R_VCC_LO, 1);
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind == ISA_K_VGPR ||
		    (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL))
			add_register(h, o->kind == ISA_K_VGPR, o->role, o->reg,
				     o->dwords);
	}
}

static bool is_evaluated(enum form f)
{
	return f != FORM_FORGET && f != FORM_NONE && f != FORM_MEMORY &&
	       f != FORM_JUMP;
}

static void find_forms(struct machine_op *o, const struct isa_target *t)
{
	const struct isa_inst *in = &o->in;
	const struct isa_op_info *info = isa_op_info(in->op);
	int x = in->op_y ? in->n_opnd_x : in->n_opnd;

	o->end = (info->flags & ISA_END) != 0;
	o->form = form_of(in->op, info);
	o->x.op = in->op;
	o->x.form = o->form;
	find_operands(&o->x, in, 0, x);
	if (!in->op_y)
		find_registers(&o->x, in, t);
	if (in->op_y) {
		o->dual = true;
		o->y.op = in->op_y;
		o->y.form = form_of(in->op_y, isa_op_info(in->op_y));
		find_operands(&o->y, in, x, in->n_opnd);
		find_half_registers(&o->x, in, 0, x);
		find_half_registers(&o->y, in, x, in->n_opnd);
		o->form = FORM_V32;
	}
	if (is_evaluated(o->form) && !is_plain(in))
		o->form = o->x.form = o->y.form = FORM_FORGET;
}

static struct machine_op *fetch(struct machine_code *c, uint64_t pc,
				struct err *e)
{
	uint64_t off = pc - c->va;
	struct isa_target t = { ISA_GFX11, c->wave_size, false };

	if (pc < c->va || off >= c->size_bytes || off % 4) {
		err_set(e, ERR_INPUT, "a wave goes to 0x%llx, outside its code",
			(unsigned long long)pc);
		return NULL;
	}
	struct machine_op *o = &c->op[off / 4];
	if (o->form != FORM_NEW)
		return o;
	const char *why = isa_decode(&t, c->code + off, c->size_bytes - off,
				     &o->in);
	if (why) {
		err_set(e, ERR_INPUT, "no instruction at offset %llu: %s",
			(unsigned long long)off, why);
		return NULL;
	}
	find_forms(o, &t);
	return o;
}

/* ---- operands ---- */

static uint64_t scalar(const struct machine *m, const struct isa_operand *o)
{
	switch (o->kind) {
	case ISA_K_SGPR:
		if (o->reg == ISA_R_NULL)
			return 0;
		return m->s[o->reg] | (o->dwords > 1 && o->reg < 127
			? (uint64_t)m->s[o->reg + 1] << 32 : 0);
	case ISA_K_INLINE:
		return o->dwords > 1 ? isa_inline_value(o->reg, o->type)
				     : o->value;
	case ISA_K_LITERAL:
	case ISA_K_IMM:
		return o->value;
	case ISA_K_SPECIAL:
		if (o->reg == ISA_R_SCC)
			return m->scc;
		if (o->reg == ISA_R_EXECZ)
			return !machine_exec(m);
		return 0;
	default:
		return 0;
	}
}

/* Lanes of a half and dword of a source: a register's, or `row` filled. */
static const uint32_t *lanes_of(const struct machine_code *c,
				const struct machine *m,
				const struct isa_operand *o, int half,
				int dword, uint32_t *row)
{
	if (o->kind == ISA_K_VGPR && o->reg + dword < c->vgprs &&
	    !(o->mods & (ISA_M_NEG | ISA_M_ABS)))
		return m->v + (o->reg + dword) * c->wave_size + half * HALF;
	uint32_t value = (uint32_t)(scalar(m, o) >> 32 * dword);

	for (int l = 0; l < HALF; l++) {
		uint32_t x = value;

		if (o->kind == ISA_K_VGPR)
			x = m->v[(o->reg + dword) * c->wave_size + half * HALF +
				 l];
		x = o->mods & ISA_M_ABS ? x & 0x7fffffff : x;
		row[l] = o->mods & ISA_M_NEG ? x ^ 0x80000000 : x;
	}
	return row;
}

static uint32_t mask_of(const struct machine *m, const struct isa_operand *o,
			int half)
{
	if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
		return m->s[o->reg + half];
	return (uint32_t)(scalar(m, o) >> 32 * half);
}

static void write_scalar(struct machine *m, const struct isa_operand *o,
			 uint64_t value)
{
	if (o->kind != ISA_K_SGPR || o->reg == ISA_R_NULL)
		return;
	m->s[o->reg] = (uint32_t)value;
	if (o->dwords > 1 && o->reg < 127)
		m->s[o->reg + 1] = (uint32_t)(value >> 32);
}

/* ---- vector ---- */

/* A result on its way: two dwords of 64 lanes, and a mask. */
struct value {
	uint32_t v[2][2 * HALF]; /* [dword][lane] */
	uint32_t mask[2];
};

#define LANES_DO(code)                                                         \
	for (int l = 0; l < HALF; l++) {                                       \
		uint32_t a = pa[l], b = pb[l], c = pc[l], d = pd[l];           \
		int32_t x = (int32_t)a, y = (int32_t)b;                        \
		int lane = half * HALF + l;                                    \
		(void)b; (void)c; (void)d; (void)x; (void)y; (void)lane;       \
		out[l] = (code);                                               \
	}                                                                      \
	break;

static void compute32(enum isa_op op, int half, const uint32_t *pa,
		      const uint32_t *pb, const uint32_t *pc,
		      const uint32_t *pd, uint32_t *out)
{
	switch (op) {
#define V(name, expr) case ISA_##name: LANES_DO(expr)
#include "compiler/sim/machine.def"
	default:
		break;
	}
}
#undef LANES_DO

static void computef(enum isa_op op, const uint32_t *pa, const uint32_t *pb,
		     const uint32_t *pc, const uint32_t *pd, uint32_t *out)
{
	for (int l = 0; l < HALF; l++) {
		float a = float_of(pa[l]), b = float_of(pb[l]);
		float c = float_of(pc[l]), d = float_of(pd[l]), r = 0;

		switch (op) {
#define F(name, expr) case ISA_##name: r = expr; break;
#include "compiler/sim/machine.def"
		default:
			return;
		}
		out[l] = bits_of(r);
	}
}

static bool is_float(enum isa_op op)
{
	switch (op) {
#define F(name, expr) case ISA_##name:
#include "compiler/sim/machine.def"
		return true;
	default:
		return false;
	}
}

static uint64_t compute64(enum isa_op op, const uint32_t *src[SOURCES][2],
			  int l)
{
	uint32_t a = src[0][0][l], b = src[1][0][l];
	uint64_t B = b | (uint64_t)src[1][1][l] << 32;
	uint64_t C = src[2][0][l] | (uint64_t)src[2][1][l] << 32;

	switch (op) {
#define W(name, expr) case ISA_##name: return expr;
#include "compiler/sim/machine.def"
	default:
		return 0;
	}
}

static bool compute_cmp(enum isa_op op, uint64_t wide_a, uint64_t wide_b)
{
	switch (op) {
#define C(name, type, expr)                                                    \
	case ISA_v_cmp_##name: case ISA_v_cmpx_##name: {                       \
		type a = (type)wide_a, b = (type)wide_b;                       \
		return expr;                                                   \
	}
#include "compiler/sim/machine.def"
	default:
		return false;
	}
}

static uint32_t compute_carry(enum isa_op op, uint32_t a, uint32_t b,
			      bool in, bool *out)
{
	uint64_t r;

	if (op == ISA_v_subrev_co_u32 || op == ISA_v_subrev_co_ci_u32) {
		uint32_t swap = a;

		a = b;
		b = swap;
	}
	if (op == ISA_v_add_co_u32 || op == ISA_v_add_co_ci_u32)
		r = (uint64_t)a + b + in;
	else
		r = (uint64_t)a - b - in;
	*out = r >> 32 & 1;
	return (uint32_t)r;
}

static void compute_half(const struct machine_code *c, const struct machine *m,
			 const struct isa_inst *in, const struct half *h,
			 int half, struct value *out)
{
	static const struct isa_operand none = { .kind = ISA_K_LITERAL };
	uint32_t row[SOURCES + 1][2][HALF];
	const uint32_t *src[SOURCES][2];
	uint32_t *to = out->v[0] + half * HALF;
	uint32_t carry = 0;

	for (int k = 0; k < SOURCES; k++) {
		const struct isa_operand *o = k < h->n_src
						      ? &in->opnd[h->src[k]]
						      : &none;
		bool wide = o->dwords > 1;

		src[k][0] = lanes_of(c, m, o, half, 0, row[k][0]);
		src[k][1] = wide || o->kind == ISA_K_VGPR ||
					    h->form == FORM_V64
				    ? lanes_of(c, m, o->dwords > 1 ? o : &none,
					       half, wide, row[k][1])
				    : src[k][0];
	}
	if (h->mask_in != 255)
		carry = mask_of(m, &in->opnd[h->mask_in], half);
	else if (h->form == FORM_CNDMASK)
		carry = m->s[ISA_R_VCC_LO + half];
	out->mask[half] = 0;
	switch (h->form) {
	case FORM_V32: {
		const uint32_t *old = h->dst == 255 ? src[0][0]
			: lanes_of(c, m, &in->opnd[h->dst], half, 0,
				   row[SOURCES][0]);

		if (is_float(h->op))
			computef(h->op, src[0][0], src[1][0], src[2][0], old,
				 to);
		else
			compute32(h->op, half, src[0][0], src[1][0], src[2][0],
				  old, to);
		return;
	}
	case FORM_V64:
		for (int l = 0; l < HALF; l++) {
			uint64_t r = compute64(h->op, src, l);

			to[l] = (uint32_t)r;
			out->v[1][half * HALF + l] = (uint32_t)(r >> 32);
		}
		return;
	case FORM_CNDMASK:
		for (int l = 0; l < HALF; l++)
			to[l] = carry >> l & 1 ? src[1][0][l] : src[0][0][l];
		return;
	case FORM_CARRY:
		for (int l = 0; l < HALF; l++) {
			bool over;

			to[l] = compute_carry(h->op, src[0][0][l], src[1][0][l],
					      carry >> l & 1, &over);
			out->mask[half] |= (uint32_t)over << l;
		}
		return;
	case FORM_CMP: {
		bool wide = in->opnd[h->src[0]].dwords > 1 ||
			    in->opnd[h->src[1]].dwords > 1;

		for (int l = 0; l < HALF; l++) {
			uint64_t a = src[0][0][l], b = src[1][0][l];

			if (wide) {
				a |= (uint64_t)src[0][1][l] << 32;
				b |= (uint64_t)src[1][1][l] << 32;
			}
			out->mask[half] |= (uint32_t)compute_cmp(h->op, a, b)
					   << l;
		}
		return;
	}
	default:
		return;
	}
}

/* Results of active lanes; masks have zeros for the others. */
static void write_half(const struct machine_code *c, struct machine *m,
		       const struct isa_inst *in, const struct half *h,
		       const struct value *val)
{
	const struct isa_operand *d = h->dst == 255 ? NULL : &in->opnd[h->dst];
	uint64_t exec = machine_exec(m), mask;

	for (int k = 0; d && d->kind == ISA_K_VGPR && k < d->dwords && k < 2 &&
			d->reg + k < c->vgprs; k++) {
		uint32_t *to = m->v + (d->reg + k) * c->wave_size;

		for (int l = 0; l < c->wave_size; l++)
			to[l] = exec >> l & 1 ? val->v[k][l] : to[l];
	}
	mask = (val->mask[0] | (uint64_t)val->mask[1] << 32) & exec;
	if (h->form == FORM_CMP && h->mask_out == 255) { /* v_cmpx */
		m->s[ISA_R_EXEC_LO] = (uint32_t)mask;
		m->s[ISA_R_EXEC_HI] = (uint32_t)(mask >> 32);
	} else if (h->mask_out != 255) {
		write_scalar(m, &in->opnd[h->mask_out], mask);
	}
}

static void eval_vector(const struct machine_code *c, struct machine *m,
			const struct machine_op *o)
{
	struct value x;

	for (int half = 0; half < c->wave_size / HALF; half++)
		compute_half(c, m, &o->in, &o->x, half, &x);
	write_half(c, m, &o->in, &o->x, &x);
}

static void eval_lane(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	const struct isa_operand *src = &in->opnd[o->x.src[0]];
	uint64_t exec = machine_exec(m);
	int lane = exec ? __builtin_ctzll(exec) : 0;

	if (o->form == FORM_WRITELANE) {
		const struct isa_operand *d = &in->opnd[o->x.dst];

		lane = (int)scalar(m, &in->opnd[o->x.src[1]]) &
		       (c->wave_size - 1);
		if (d->reg < c->vgprs)
			m->v[d->reg * c->wave_size + lane] =
				(uint32_t)scalar(m, src);
		return;
	}
	if (o->x.op == ISA_v_readlane_b32)
		lane = (int)scalar(m, &in->opnd[o->x.src[1]]) &
		       (c->wave_size - 1);
	write_scalar(m, &in->opnd[o->x.dst],
		     src->kind == ISA_K_VGPR
			     ? m->v[src->reg * c->wave_size + lane]
			     : scalar(m, src));
}

/* ---- scalar ---- */

static int64_t sign32(uint64_t a)
{
	return (int32_t)a;
}

static void eval_scalar(struct machine *m, const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	const struct half *h = &o->x;
	const struct isa_operand *dst = h->dst == 255 ? NULL
						      : &in->opnd[h->dst];
	uint64_t a = h->n_src > 0 ? scalar(m, &in->opnd[h->src[0]]) : 0;
	uint64_t b = h->n_src > 1 ? scalar(m, &in->opnd[h->src[1]]) : 0;
	uint64_t d0 = dst ? scalar(m, dst) : a, d = 0;
	int64_t x = sign32(a), y = sign32(b), k;
	bool scc = m->scc;

	/* A literal is as wide as the operand: zero-extended to 64 bits. */
	k = (int16_t)in->f[ISA_F_SIMM16];
	switch (in->op) {
#define S(name, value, flag) case ISA_##name: d = value; m->scc = flag; break;
#define T(name, flag) case ISA_##name: m->scc = flag; return;
#include "compiler/sim/machine.def"
	default:
		return;
	}
	if (dst)
		write_scalar(m, dst, d);
}

static void eval_saveexec(const struct machine_code *c, struct machine *m,
			  const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	uint64_t a = scalar(m, &in->opnd[o->x.src[0]]);
	uint64_t exec = machine_exec(m), n = exec;

	switch (in->op) {
#define E(name, expr)                                                          \
	case ISA_s_##name##_saveexec_b32:                                      \
	case ISA_s_##name##_saveexec_b64: n = expr; break;
#include "compiler/sim/machine.def"
	default:
		break;
	}
	if (c->wave_size == 32 || in->opnd[o->x.dst].dwords < 2)
		n &= UINT32_MAX;
	write_scalar(m, &in->opnd[o->x.dst], exec);
	m->s[ISA_R_EXEC_LO] = (uint32_t)n;
	m->s[ISA_R_EXEC_HI] = (uint32_t)(n >> 32);
	m->scc = n != 0;
}

/* ---- what is known ---- */

static bool knows(const struct machine *m, const struct half *o)
{
	uint64_t missing = 0;

	for (int k = 0; k < 4; k++)
		missing |= o->need_v[k] & ~m->know_v[k];
	for (int k = 0; k < 2; k++)
		missing |= o->need_s[k] & ~m->know_s[k];
	return !missing && (m->know_scc || !o->need_scc);
}

static void forget(struct machine *m, const struct half *o)
{
	const uint64_t always = UINT64_C(1) << (ISA_R_NULL - 64);

	for (int k = 0; k < 4; k++)
		m->know_v[k] &= ~o->kill_v[k];
	for (int k = 0; k < 2; k++)
		m->know_s[k] &= ~o->kill_s[k];
	m->know_s[1] |= always;
	m->know_scc = m->know_scc && !o->kill_scc;
}

static void learn(struct machine *m, const struct half *o)
{
	for (int k = 0; k < 4; k++)
		m->know_v[k] |= o->kill_v[k];
	for (int k = 0; k < 2; k++)
		m->know_s[k] |= o->kill_s[k];
	m->know_scc = m->know_scc || o->kill_scc;
}

/* A scalar load of bytes that are at hand. */
static bool load(const struct machine_code *c, struct machine *m,
		 const struct isa_inst *in)
{
	const struct isa_operand *d = &in->opnd[0];
	uint64_t va, bytes = d->dwords * 4u;

	if (!(d->role & ISA_DST) || d->reg + d->dwords > 128 ||
	    !machine_scalar_address(m, in, &va))
		return false;
	for (int k = 0; k < c->n_memory; k++) {
		const struct machine_memory *r = &c->memory[k];

		if (va < r->va || va - r->va > r->size_bytes ||
		    bytes > r->size_bytes - (va - r->va))
			continue;
		memcpy(&m->s[d->reg], (const uint8_t *)r->bytes + (va - r->va),
		       bytes);
		return true;
	}
	return false;
}

static bool evaluate(const struct machine_code *c, struct machine *m,
		     const struct machine_op *o)
{
	uint64_t at = m->pc + o->in.size_bytes;

	switch (o->form) {
	case FORM_V32: case FORM_V64: case FORM_CARRY: case FORM_CMP:
	case FORM_CNDMASK:
		eval_vector(c, m, o);
		return true;
	case FORM_READLANE: case FORM_WRITELANE:
		eval_lane(c, m, o);
		return true;
	case FORM_SCALAR:
		eval_scalar(m, o);
		return true;
	case FORM_SAVEEXEC:
		eval_saveexec(c, m, o);
		return true;
	case FORM_SMEM:
		return load(c, m, &o->in);
	case FORM_GETPC:
		write_scalar(m, &o->in.opnd[o->x.dst], at);
		return true;
	default:
		return false;
	}
}

/* Both read before one writes; one may be known and the other not. */
static void eval_dual(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o)
{
	const struct half *h[2] = { &o->x, &o->y };
	struct value v[2];
	bool good[2];

	for (int k = 0; k < 2; k++) {
		good[k] = (h[k]->form == FORM_V32 ||
			   h[k]->form == FORM_CNDMASK) && knows(m, h[k]);
		if (good[k])
			compute_half(c, m, &o->in, h[k], 0, &v[k]);
	}
	for (int k = 0; k < 2; k++) {
		if (good[k]) {
			write_half(c, m, &o->in, h[k], &v[k]);
			learn(m, h[k]);
		} else {
			forget(m, h[k]);
		}
	}
}

/* ---- control ---- */

static bool condition(const struct machine_code *c, const struct machine *m,
		      enum isa_op op, bool *taken)
{
	uint64_t vcc = m->s[ISA_R_VCC_LO];

	if (c->wave_size == 64)
		vcc |= (uint64_t)m->s[ISA_R_VCC_HI] << 32;
	switch (op) {
	case ISA_s_branch:
		*taken = true;
		return true;
	case ISA_s_cbranch_scc0: case ISA_s_cbranch_scc1:
		*taken = m->scc == (op == ISA_s_cbranch_scc1);
		return m->know_scc;
	case ISA_s_cbranch_vccz: case ISA_s_cbranch_vccnz:
		*taken = !vcc == (op == ISA_s_cbranch_vccz);
		return machine_knows_s(m, ISA_R_VCC_LO, c->wave_size / 32);
	case ISA_s_cbranch_execz: case ISA_s_cbranch_execnz:
		*taken = !machine_exec(m) == (op == ISA_s_cbranch_execz);
		return machine_knows_s(m, ISA_R_EXEC_LO, c->wave_size / 32);
	default:
		return false;
	}
}

static bool lost(const struct machine_code *c, const struct machine *m,
		 const struct machine_op *o, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, "offset %llu: where %s goes depends "
		       "on data that only executing the kernel computes; use a "
		       "trace or a live source",
		       (unsigned long long)(m->pc - c->va),
		       isa_op_info(o->in.op)->name);
}

static bool jump(const struct machine_code *c, struct machine *m,
		 const struct machine_op *o, struct err *e)
{
	const struct isa_inst *in = &o->in;
	uint64_t next = m->pc + in->size_bytes, to;
	bool taken;

	if (in->op == ISA_s_setpc_b64 || in->op == ISA_s_swappc_b64) {
		if (!knows(m, &o->x))
			return lost(c, m, o, e);
		to = scalar(m, &in->opnd[o->x.src[0]]);
		if (in->op == ISA_s_swappc_b64) {
			write_scalar(m, &in->opnd[o->x.dst], next);
			learn(m, &o->x);
		}
		m->pc = to;
		return true;
	}
	if (!condition(c, m, in->op, &taken)) {
		taken = false;
		if (!c->guess || (int16_t)in->f[ISA_F_SIMM16] < 0)
			return lost(c, m, o, e);
	}
	m->pc = next + (taken ? (uint64_t)(int64_t)(int16_t)
				in->f[ISA_F_SIMM16] * 4 : 0);
	return true;
}

bool machine_step(struct machine_code *c, struct machine *m,
		  struct sim_step *out, struct err *e)
{
	struct machine_op *o = fetch(c, m->pc, e);

	if (!o)
		return false;
	if (out) {
		*out = (struct sim_step){ .exec = machine_exec(m) };
		if (o->form == FORM_MEMORY || o->form == FORM_SMEM)
			machine_access(c, m, &o->in, out);
	}
	if (o->end)
		m->ended = true;
	else if (o->form == FORM_JUMP)
		return jump(c, m, o, e);
	if (o->dual)
		eval_dual(c, m, o);
	else if (is_evaluated(o->form) && knows(m, &o->x) && evaluate(c, m, o))
		learn(m, &o->x);
	else
		forget(m, &o->x);
	m->pc += o->in.size_bytes;
	return true;
}

static bool to_branch(struct machine_code *c, struct machine *m,
		      uint64_t branch, struct err *e)
{
	while (m->pc != branch && !m->ended)
		if (!machine_step(c, m, NULL, e))
			return false;
	return !m->ended || err_set(e, ERR_UNSUPPORTED, "offset %llu: the loop "
				    "is left elsewhere",
				    (unsigned long long)(branch - c->va));
}

bool machine_jump(struct machine_code *c, struct machine *m, uint64_t branch,
		  uint64_t most, uint64_t *taken, struct err *e)
{
	for (*taken = 0;; ++*taken) {
		bool again;

		if (!to_branch(c, m, branch, e))
			return false;
		struct machine_op *o = fetch(c, branch, e);
		if (!o)
			return false;
		if (!condition(c, m, o->in.op, &again))
			return lost(c, m, o, e);
		if (!again || *taken == most)
			return true;
		if (!machine_step(c, m, NULL, e))
			return false;
	}
}

/* ---- beginning and end ---- */

void machine_code_init(struct machine_code *c)
{
	c->op = xcalloc(c->size_bytes / 4 + 1, sizeof(*c->op));
	c->unknown = 0;
}

void machine_code_fini(struct machine_code *c)
{
	free(c->op);
	c->op = NULL;
}

void machine_init(const struct machine_code *c, struct machine *m)
{
	memset(m, 0, sizeof(*m));
	m->pc = c->va;
	m->v = xcalloc((size_t)c->vgprs * (size_t)c->wave_size, sizeof(*m->v));
	machine_set_sgpr(m, ISA_R_NULL, 0);
	machine_set_sgpr(m, ISA_R_EXEC_LO, UINT32_MAX);
	machine_set_sgpr(m, ISA_R_EXEC_HI, c->wave_size == 64 ? UINT32_MAX : 0);
}

void machine_copy(const struct machine_code *c, struct machine *to,
		  const struct machine *from)
{
	uint32_t *v = to->v;
	size_t bytes = (size_t)c->vgprs * (size_t)c->wave_size * sizeof(*v);

	v = v ? v : xmalloc(bytes);
	*to = *from;
	to->v = memcpy(v, from->v, bytes);
}

void machine_fini(struct machine *m)
{
	free(m->v);
	m->v = NULL;
}

void machine_set_sgpr(struct machine *m, int reg, uint32_t value)
{
	m->s[reg] = value;
	add_bits(m->know_s, reg, 1);
}

void machine_set_vgpr(const struct machine_code *c, struct machine *m, int reg,
		      const uint32_t *lanes)
{
	memcpy(m->v + reg * c->wave_size, lanes,
	       (size_t)c->wave_size * sizeof(*lanes));
	add_bits(m->know_v, reg, 1);
}
