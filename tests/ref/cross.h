/*
 * ref-cross - vector instructions that look across lanes or registers:
 * check_<mnemonic>() for each row of tests/ref/cross.def.
 */
#ifndef T0_TESTS_REF_CROSS_H
#define T0_TESTS_REF_CROSS_H

#include "isa/code/code.h"
#include "tests/ref/num.h"
#include "tests/ref/state.h"

/* What one program sees of itself. */
struct program {
	struct isa_inst in;
	int wave;
	const struct state *old;
	struct state *want;
};

static inline uint32_t old_v(const struct program *p, unsigned reg, int lane)
{
	return p->old->v[lane / 32][reg % REF_VGPRS][lane % 32];
}

static inline void want_v(const struct program *p, unsigned reg, int lane, uint32_t u)
{
	p->want->v[lane / 32][reg % REF_VGPRS][lane % 32] = u;
}

static inline bool active(const struct program *p, int lane)
{
	return p->old->s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1;
}

static inline uint32_t scalar(const struct program *p, int operand)
{
	const struct isa_operand *o = &p->in.opnd[operand];

	return o->kind == ISA_K_SGPR ? p->old->s[o->reg] : o->value;
}

static inline unsigned reg(const struct program *p, int operand)
{
	return p->in.opnd[operand].reg;
}

/* --------------------------------------------------------------- lanes ---- */

static inline void check_v_nop(const struct program *p)
{
	(void)p;
}

static inline void check_v_pipeflush(const struct program *p)
{
	(void)p;
}

static inline void check_v_readfirstlane_b32(const struct program *p)
{
	int first = 0;

	for (int lane = p->wave; lane--;)
		if (active(p, lane))
			first = lane;
	p->want->s[reg(p, 0)] = old_v(p, reg(p, 1), first);
}

static inline void check_v_readlane_b32(const struct program *p)
{
	p->want->s[reg(p, 0)] =
		old_v(p, reg(p, 1), (int)(scalar(p, 2) % (uint32_t)p->wave));
}

static inline void check_v_writelane_b32(const struct program *p)
{
	want_v(p, reg(p, 0), (int)(scalar(p, 2) % (uint32_t)p->wave),
	       scalar(p, 1));
}

/* Within rows of 16, or from the other row of the pair. */
static inline void permlane(const struct program *p, int other)
{
	uint64_t nibbles = scalar(p, 2) | (uint64_t)scalar(p, 3) << 32;
	bool inactive = p->in.f[ISA_F_OPSEL] & 1;
	bool bound = p->in.f[ISA_F_OPSEL] & 2;

	for (int lane = 0; lane < p->wave; lane++) {
		int from = (lane / 16 * 16) ^ other;

		from += nibbles >> 4 * (lane % 16) & 15;
		if (!active(p, lane))
			continue;
		if (inactive || active(p, from))
			want_v(p, reg(p, 0), lane, old_v(p, reg(p, 1), from));
		else if (bound)
			want_v(p, reg(p, 0), lane, 0);
	}
}

static inline void check_v_permlane16_b32(const struct program *p)
{
	permlane(p, 0);
}

static inline void check_v_permlanex16_b32(const struct program *p)
{
	permlane(p, 16);
}

static inline void check_v_permlane64_b32(const struct program *p)
{
	for (int lane = 0; p->wave == 64 && lane < 64; lane++)
		if (active(p, lane))
			want_v(p, reg(p, 0), lane,
			       old_v(p, reg(p, 1), (lane + 32) % 64));
}

/* ----------------------------------------------------------- registers ---- */

static inline void swap(const struct program *p, unsigned a, unsigned b)
{
	for (int lane = 0; lane < p->wave; lane++) {
		if (!active(p, lane))
			continue;
		want_v(p, a, lane, old_v(p, b, lane));
		want_v(p, b, lane, old_v(p, a, lane));
	}
}

static inline void check_v_swap_b32(const struct program *p)
{
	swap(p, reg(p, 0), reg(p, 1));
}

static inline void check_v_swaprel_b32(const struct program *p)
{
	uint32_t m0 = p->old->s[ISA_R_M0];

	swap(p, reg(p, 0) + (m0 >> 16 & 1023), reg(p, 1) + (m0 & 1023));
}

static inline uint32_t with_half(uint32_t u, bool high, uint32_t h)
{
	return high ? (u & 0xffff) | h << 16 : (u & 0xffff0000) | h;
}

static inline void check_v_swap_b16(const struct program *p)
{
	bool high_a = p->in.opnd[0].mods & ISA_M_HI;
	bool high_b = p->in.opnd[1].mods & ISA_M_HI;

	for (int lane = 0; lane < p->wave; lane++) {
		uint32_t a = old_v(p, reg(p, 0), lane);
		uint32_t b = old_v(p, reg(p, 1), lane);
		uint32_t ha = (high_a ? a >> 16 : a) & 0xffff;
		uint32_t hb = (high_b ? b >> 16 : b) & 0xffff;

		if (!active(p, lane))
			continue;
		if (reg(p, 0) == reg(p, 1)) {
			a = with_half(with_half(a, high_a, hb), high_b, ha);
			want_v(p, reg(p, 0), lane, a);
			continue;
		}
		want_v(p, reg(p, 0), lane, with_half(a, high_a, hb));
		want_v(p, reg(p, 1), lane, with_half(b, high_b, ha));
	}
}

static inline void move(const struct program *p, unsigned to, unsigned from)
{
	for (int lane = 0; lane < p->wave; lane++)
		if (active(p, lane))
			want_v(p, to, lane, old_v(p, from, lane));
}

static inline void check_v_movreld_b32(const struct program *p)
{
	move(p, reg(p, 0) + p->old->s[ISA_R_M0], reg(p, 1));
}

static inline void check_v_movrels_b32(const struct program *p)
{
	move(p, reg(p, 0), reg(p, 1) + p->old->s[ISA_R_M0]);
}

static inline void check_v_movrelsd_b32(const struct program *p)
{
	const uint32_t m0 = p->old->s[ISA_R_M0];

	move(p, reg(p, 0) + m0, reg(p, 1) + m0);
}

static inline void check_v_movrelsd_2_b32(const struct program *p)
{
	const uint32_t m0 = p->old->s[ISA_R_M0];

	move(p, reg(p, 0) + (m0 >> 16 & 1023), reg(p, 1) + (m0 & 1023));
}

/* ------------------------------------------------------------ matrices ---- */

/* Row of A or column of B: element k of `bits` bits, negated or signed. */
static inline uint32_t element(const struct program *p, int operand, int line, int k,
			int bits)
{
	int each = 32 / bits;
	uint32_t u = old_v(p, reg(p, operand) + (unsigned)(k / each), line);

	return (uint32_t)((uint64_t)u >> k % each * bits) &
	       (uint32_t)((UINT64_C(1) << bits) - 1);
}

/* Register and lane of element (row, column) of C and D. */
static inline void place(const struct program *p, int row, int column, unsigned *j,
		  int *lane)
{
	int rows = p->wave / 16;

	*j = (unsigned)(row / rows);
	*lane = row % rows * 16 + column;
}

static inline long double sum_of(const struct program *p, const struct ref_fmt *f,
			  int row, int column)
{
	long double sum = 0;

	for (int k = 0; k < 16; k++) {
		long double a = ref_value(f, element(p, 1, row, k, 16));
		long double b = ref_value(f, element(p, 2, column, k, 16));
		unsigned neg = k & 1 ? ISA_M_NEG_HI : ISA_M_NEG;

		a = p->in.opnd[1].mods & neg ? -a : a;
		b = p->in.opnd[2].mods & neg ? -b : b;
		sum += a * b;
	}
	return sum;
}

static inline long double addend(const struct program *p, const struct ref_fmt *f,
			  uint32_t u)
{
	long double c = ref_value(f, u);

	c = p->in.opnd[3].mods & ISA_M_NEG_HI ? fabsl(c) : c;
	return p->in.opnd[3].mods & ISA_M_NEG ? -c : c;
}

/* All values are small integers: exact in every order and every format. */
static inline void float_matrix(const struct program *p, const struct ref_fmt *f,
			 const struct ref_fmt *to)
{
	const bool high = to != &F32 && p->in.f[ISA_F_OPSEL] & 4;

	for (int row = 0; row < 16; row++)
		for (int col = 0; col < 16; col++) {
			uint32_t c, d;
			unsigned j;
			int lane;

			place(p, row, col, &j, &lane);
			c = old_v(p, reg(p, 3) + j, lane);
			d = old_v(p, reg(p, 0) + j, lane);
			if (to != &F32)
				c = high ? c >> 16 : c & 0xffff;
			c = (uint32_t)ref_from_value(
				to, sum_of(p, f, row, col) + addend(p, to, c));
			want_v(p, reg(p, 0) + j, lane,
			       to == &F32 ? c : with_half(d, high, c));
		}
}

static inline void check_v_wmma_f32_16x16x16_f16(const struct program *p)
{
	float_matrix(p, &F16, &F32);
}

static inline void check_v_wmma_f32_16x16x16_bf16(const struct program *p)
{
	float_matrix(p, &BF16, &F32);
}

static inline void check_v_wmma_f16_16x16x16_f16(const struct program *p)
{
	float_matrix(p, &F16, &F16);
}

static inline void check_v_wmma_bf16_16x16x16_bf16(const struct program *p)
{
	float_matrix(p, &BF16, &BF16);
}

static inline int64_t integer(const struct program *p, int operand, int line, int k,
		       int bits)
{
	int64_t v = element(p, operand, line, k, bits);
	bool is_signed = p->in.opnd[operand].mods & ISA_M_NEG;

	return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static inline void int_matrix(const struct program *p, int bits)
{
	for (int row = 0; row < 16; row++)
		for (int col = 0; col < 16; col++) {
			unsigned j;
			int64_t sum;
			int lane;

			place(p, row, col, &j, &lane);
			sum = (int32_t)old_v(p, reg(p, 3) + j, lane);
			for (int k = 0; k < 16; k++)
				sum += integer(p, 1, row, k, bits) *
				       integer(p, 2, col, k, bits);
			if (p->in.f[ISA_F_CLAMP] && sum > INT32_MAX)
				sum = INT32_MAX;
			if (p->in.f[ISA_F_CLAMP] && sum < INT32_MIN)
				sum = INT32_MIN;
			want_v(p, reg(p, 0) + j, lane, (uint32_t)sum);
		}
}

static inline void check_v_wmma_i32_16x16x16_iu8(const struct program *p)
{
	int_matrix(p, 8);
}

static inline void check_v_wmma_i32_16x16x16_iu4(const struct program *p)
{
	int_matrix(p, 4);
}

typedef void check_fn(const struct program *p);

#endif
