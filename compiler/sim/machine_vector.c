/*
 * compiler/sim/machine_vector.c - evaluation of vector instructions.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "compiler/sim/machine_int.h"

/* ---- helpers of machine.def ---- */

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

/* A signed number of the low 24 bits. */
static inline int32_t low24(uint32_t v)
{
	return (int32_t)(v << 8) >> 8;
}

/* Bits of the lanes below `lane` of a half. */
static inline uint32_t lanes_below(int lane)
{
	if (lane <= 0)
		return 0;
	return lane >= 32 ? UINT32_MAX : (1u << lane) - 1;
}

/* ---- sources ---- */

/*
 * Lanes of a half and dword of a source: a register's, or `row` filled.  What
 * is not known at all reads as zero.
 */
static const uint32_t *lanes_of(const struct machine_code *c,
				const struct machine *m,
				const struct isa_operand *o, int half,
				int dword, uint32_t *row)
{
	const uint32_t *lane = NULL;
	uint32_t value = 0;

	if (o->kind != ISA_K_VGPR)
		value = (uint32_t)(machine_read_s(m, o) >> 32 * dword);
	else if (o->reg + dword < c->vgprs)
		lane = m->v + (o->reg + dword) * c->wave_size +
		       half * MACHINE_HALF;
	if (lane && !(o->mods & (ISA_M_NEG | ISA_M_ABS)))
		return lane;
	for (int l = 0; l < MACHINE_HALF; l++) {
		uint32_t x = lane ? lane[l] : value;

		x = o->mods & ISA_M_ABS ? x & 0x7fffffff : x;
		row[l] = o->mods & ISA_M_NEG ? x ^ 0x80000000 : x;
	}
	return row;
}

static uint32_t lane_mask(const struct machine *m, const struct isa_operand *o,
			int half)
{
	if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
		return m->s[o->reg + half];
	return (uint32_t)(machine_read_s(m, o) >> 32 * half);
}

/* The sources of one half, as lanes; `old` is what the destination holds. */
struct sources {
	const uint32_t *v[MACHINE_SOURCES][2], *old; /* [source][dword] */
	uint32_t carry;				     /* a lane's bit */
	uint32_t row[MACHINE_SOURCES + 1][2][MACHINE_HALF];
};

static void sources_init(struct sources *s, const struct machine_code *c,
			 const struct machine *m, const struct isa_inst *in,
			 const struct machine_half *h, int half)
{
	static const struct isa_operand none = { .kind = ISA_K_LITERAL };

	for (int k = 0; k < MACHINE_SOURCES; k++) {
		const struct isa_operand *o =
			k < h->n_src ? &in->opnd[h->src[k]] : &none;
		bool wide = o->dwords > 1;

		s->v[k][0] = lanes_of(c, m, o, half, 0, s->row[k][0]);
		s->v[k][1] = s->v[k][0];
		if (wide || o->kind == ISA_K_VGPR || h->form == MACHINE_V64)
			s->v[k][1] = lanes_of(c, m, wide ? o : &none, half,
					      wide, s->row[k][1]);
	}
	s->old = s->v[0][0];
	if (h->form == MACHINE_V32 && h->dst != MACHINE_NONE)
		s->old = lanes_of(c, m, &in->opnd[h->dst], half, 0,
				  s->row[MACHINE_SOURCES][0]);
	s->carry = 0;
	if (h->mask_in != MACHINE_NONE)
		s->carry = lane_mask(m, &in->opnd[h->mask_in], half);
	else if (h->form == MACHINE_CNDMASK)
		s->carry = m->s[ISA_R_VCC_LO + half];
}

/* ---- a half ---- */

#define LANES_DO(code)                                                         \
	for (int l = 0; l < MACHINE_HALF; l++) {                               \
		uint32_t a = s->v[0][0][l], b = s->v[1][0][l];                 \
		uint32_t c = s->v[2][0][l], d = s->old[l];                     \
		int32_t x = (int32_t)a, y = (int32_t)b;                        \
		int lane = half * MACHINE_HALF + l;                            \
		(void)b; (void)c; (void)d; (void)x; (void)y; (void)lane;       \
		out[l] = (code);                                               \
	}                                                                      \
	break;

static void compute_int(enum isa_op op, int half, const struct sources *s,
			uint32_t *out)
{
	switch (op) {
#define V(name, expr) case ISA_##name: LANES_DO(expr)
#include "compiler/sim/machine.def"
	default:
		break;
	}
}
#undef LANES_DO

static void compute_float(enum isa_op op, const struct sources *s,
			  uint32_t *out)
{
	for (int l = 0; l < MACHINE_HALF; l++) {
		float a = f32_value(s->v[0][0][l]),
		      b = f32_value(s->v[1][0][l]);
		float c = f32_value(s->v[2][0][l]), d = f32_value(s->old[l]);
		float r = 0;

		switch (op) {
#define F(name, expr) case ISA_##name: r = expr; break;
#include "compiler/sim/machine.def"
		default:
			return;
		}
		out[l] = f32_bits(r);
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

static uint64_t wide_of(const struct sources *s, int k, int l)
{
	return s->v[k][0][l] | (uint64_t)s->v[k][1][l] << 32;
}

static uint64_t compute_wide(enum isa_op op, const struct sources *s, int l)
{
	uint32_t a = s->v[0][0][l], b = s->v[1][0][l];
	uint64_t B = wide_of(s, 1, l), C = wide_of(s, 2, l);

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

static uint32_t compute_cmps(const struct isa_inst *in,
			     const struct machine_half *h,
			     const struct sources *s)
{
	bool wide = in->opnd[h->src[0]].dwords > 1 ||
		    in->opnd[h->src[1]].dwords > 1;
	uint32_t mask = 0;

	for (int l = 0; l < MACHINE_HALF; l++) {
		uint64_t a = wide ? wide_of(s, 0, l) : s->v[0][0][l];
		uint64_t b = wide ? wide_of(s, 1, l) : s->v[1][0][l];

		mask |= (uint32_t)compute_cmp(h->op, a, b) << l;
	}
	return mask;
}

static uint32_t compute_carries(enum isa_op op, const struct sources *s,
				uint32_t *out)
{
	uint32_t mask = 0;

	for (int l = 0; l < MACHINE_HALF; l++) {
		bool over;

		out[l] = compute_carry(op, s->v[0][0][l], s->v[1][0][l],
				       s->carry >> l & 1, &over);
		mask |= (uint32_t)over << l;
	}
	return mask;
}

void machine_compute(const struct machine_code *c, const struct machine *m,
		     const struct isa_inst *in, const struct machine_half *h,
		     int half, struct machine_value *out)
{
	uint32_t *to = out->v[0] + half * MACHINE_HALF;
	uint32_t *high = out->v[1] + half * MACHINE_HALF;
	struct sources s;

	sources_init(&s, c, m, in, h, half);
	out->mask[half] = 0;
	switch (h->form) {
	case MACHINE_V32:
		if (is_float(h->op))
			compute_float(h->op, &s, to);
		else
			compute_int(h->op, half, &s, to);
		return;
	case MACHINE_V64:
		for (int l = 0; l < MACHINE_HALF; l++) {
			uint64_t r = compute_wide(h->op, &s, l);

			to[l] = (uint32_t)r;
			high[l] = (uint32_t)(r >> 32);
		}
		return;
	case MACHINE_CNDMASK:
		for (int l = 0; l < MACHINE_HALF; l++)
			to[l] = s.v[s.carry >> l & 1][0][l];
		return;
	case MACHINE_CARRY:
		out->mask[half] = compute_carries(h->op, &s, to);
		return;
	case MACHINE_CMP:
		out->mask[half] = compute_cmps(in, h, &s);
		return;
	default:
		return;
	}
}

void machine_write(const struct machine_code *c, struct machine *m,
		   const struct isa_inst *in, const struct machine_half *h,
		   const struct machine_value *val)
{
	const struct isa_operand *d =
		h->dst == MACHINE_NONE ? NULL : &in->opnd[h->dst];
	uint64_t exec = machine_exec(m), mask;

	for (int k = 0; d && d->kind == ISA_K_VGPR && k < d->dwords && k < 2 &&
			d->reg + k < c->vgprs; k++) {
		uint32_t *to = m->v + (d->reg + k) * c->wave_size;

		for (int l = 0; l < c->wave_size; l++)
			to[l] = exec >> l & 1 ? val->v[k][l] : to[l];
	}
	mask = (val->mask[0] | (uint64_t)val->mask[1] << 32) & exec;
	if (h->form == MACHINE_CMP && h->mask_out == MACHINE_NONE) {
		/* v_cmpx */
		m->s[ISA_R_EXEC_LO] = (uint32_t)mask;
		m->s[ISA_R_EXEC_HI] = (uint32_t)(mask >> 32);
	} else if (h->mask_out != MACHINE_NONE) {
		machine_write_s(m, &in->opnd[h->mask_out], mask);
	}
}

/* The lane that operand `o` chooses. */
static int chosen_lane(const struct machine_code *c, const struct machine *m,
		       const struct isa_operand *o)
{
	return (int)machine_read_s(m, o) & (c->wave_size - 1);
}

/* Is a scalar operand known? */
static bool knows_operand(const struct machine *m, const struct isa_operand *o)
{
	return o->kind != ISA_K_SGPR || machine_knows_s(m, o->reg, 1);
}

bool machine_read_lane(const struct machine_code *c, struct machine *m,
		       const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	const struct isa_operand *src = &in->opnd[o->x.src[0]];
	const struct isa_operand *dst = &in->opnd[o->x.dst];
	uint64_t exec = machine_exec(m);
	int lane = exec ? __builtin_ctzll(exec) : 0;

	if (o->x.op == ISA_v_readlane_b32)
		lane = chosen_lane(c, m, &in->opnd[o->x.src[1]]);
	if (src->kind != ISA_K_VGPR) {
		machine_write_s(m, dst, machine_read_s(m, src));
		return true;
	}
	if (src->reg >= c->vgprs ||
	    (!machine_knows_v(m, src->reg, 1) &&
	     !(m->know_lane[src->reg] >> lane & 1)))
		return false;
	machine_write_s(m, dst, m->v[src->reg * c->wave_size + lane]);
	return true;
}

bool machine_write_lane(const struct machine_code *c, struct machine *m,
			const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	const struct isa_operand *src = &in->opnd[o->x.src[0]];
	const struct isa_operand *at = &in->opnd[o->x.src[1]];
	int reg = in->opnd[o->x.dst].reg;
	uint64_t bit;

	if (!knows_operand(m, at))
		return false;
	if (reg >= c->vgprs)
		return true;
	bit = UINT64_C(1) << chosen_lane(c, m, at);
	if (machine_knows_v(m, reg, 1))
		m->know_lane[reg] = UINT64_MAX;
	if (knows_operand(m, src)) {
		m->v[reg * c->wave_size + chosen_lane(c, m, at)] =
			(uint32_t)machine_read_s(m, src);
		m->know_lane[reg] |= bit;
	} else {
		m->know_lane[reg] &= ~bit;
		m->know_v[reg / 64] &= ~(UINT64_C(1) << reg % 64);
	}
	machine_add_bits(m->some_v, reg, 1);
	return true;
}
