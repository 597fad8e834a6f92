/*
 * kfd/soft/exec/gfx12/matrix.c - SWMMAC, and WMMA of 32 elements along k.
 *
 * Registers become fragments of 16 x 16 as gfx11 has them, which wmma_simd.c
 * multiplies; sums stay 32 bits wide until all of K is in.
 */
#include "kfd/soft/exec/gfx12/matrix.h"

/* clang-format off */
#define SPARSE(name, in_a, in_b, sum, k, odd, upper)                         \
	{ ISA_v_swmmac_##name, SOFT_ELEMENT_##in_a, SOFT_ELEMENT_##in_b,     \
	  WMMA_##sum, k, true, odd, upper },
static const struct soft_matrix matrices[] = {
	{ ISA_v_wmma_i32_16x16x32_iu4, SOFT_ELEMENT_I4, SOFT_ELEMENT_I4,
	  WMMA_IU8, 32, false, 16, 8 },
	SPARSE(f32_16x16x32_f16, F16, F16, F32, 32, 8, 16)
	SPARSE(f32_16x16x32_bf16, BF16, BF16, F32, 32, 8, 16)
	SPARSE(f16_16x16x32_f16, F16, F16, F16, 32, 8, 16)
	SPARSE(bf16_16x16x32_bf16, BF16, BF16, BF16, 32, 8, 16)
	SPARSE(i32_16x16x32_iu8, I8, I8, IU8, 32, 16, 8)
	SPARSE(i32_16x16x32_iu4, I4, I4, IU8, 32, 16, 8)
	SPARSE(i32_16x16x64_iu4, I4, I4, IU8, 64, 32, 16)
	SPARSE(f32_16x16x32_fp8_fp8, FP8, FP8, F32, 32, 16, 8)
	SPARSE(f32_16x16x32_fp8_bf8, FP8, BF8, F32, 32, 16, 8)
	SPARSE(f32_16x16x32_bf8_fp8, BF8, FP8, F32, 32, 16, 8)
	SPARSE(f32_16x16x32_bf8_bf8, BF8, BF8, F32, 32, 16, 8)
};
/* clang-format on */

/* ------------------------------------------------------------ elements ---- */

enum { K_MAX = 64 };

static int bits_of(enum soft_element t)
{
	return t <= SOFT_ELEMENT_BF16 ? 16 : t == SOFT_ELEMENT_I4 ? 4 : 8;
}

/* Which lanes hold what: how the operand of one instruction is spread. */
struct spread {
	const struct soft_matrix *m;
	int bits, wave;
	/* A of SWMMAC: two of four elements, and no `upper` for 4 bits. */
	bool sparse;
};

static unsigned upper_of(const struct spread *s)
{
	const bool repeats = s->sparse && s->bits == 4 && s->m->k == 32;

	return s->wave == 64 && !repeats ? s->m->upper : 0;
}

static int group_of(const struct spread *s, unsigned k)
{
	return (k & s->m->odd ? 1 : 0) + (k & upper_of(s) ? 2 : 0);
}

/* The number of element k among those of its lane: its other bits. */
static unsigned rank_of(const struct spread *s, unsigned k)
{
	const unsigned gone = s->m->odd | upper_of(s);
	unsigned r = 0, at = 0;

	for (unsigned bit = 1; bit < K_MAX; bit <<= 1) {
		if (gone & bit)
			continue;
		r |= k & bit ? 1u << at : 0;
		at++;
	}
	return r;
}

static uint32_t read_element(struct soft_wave *w, const struct spread *s,
			     unsigned reg, int group, unsigned n, int low)
{
	const unsigned at = n * (unsigned)s->bits;
	const uint32_t *v = w->v[group >> 1][reg + at / 32];

	return v[(group & 1) * WMMA_N + low] >> at % 32 &
	       (uint32_t)((1ull << s->bits) - 1);
}

/* As gfx11 has it: halves stay, 8-bit floats become such. */
static uint32_t convert(enum soft_element t, uint32_t v)
{
	return t == SOFT_ELEMENT_FP8 ? soft_half_of_fp8(v) :
	       t == SOFT_ELEMENT_BF8 ? v << 8 :
				       v;
}

/* Rows of A or columns of B: [low][k]. */
typedef uint32_t elements[WMMA_N][K_MAX];

static void read_dense(struct soft_wave *w, const struct spread *s,
		       enum soft_element t, unsigned reg, elements out)
{
	for (unsigned k = 0; k < s->m->k; k++)
		for (int i = 0; i < WMMA_N; i++)
			out[i][k] = convert(t, read_element(w, s, reg,
							    group_of(s, k),
							    rank_of(s, k), i));
}

/* The four bits about elements 4 g to 4 g + 3 of row i. */
static unsigned read_index(struct soft_wave *w, const struct spread *s,
			   const struct isa_inst *in, unsigned g, int i)
{
	const int group = group_of(s, 4 * g);
	const int groups = s->wave == 64 && upper_of(s) ? 4 : 2;
	const int used = s->m->k / 4 / groups * 4; /* bits of a lane */
	const unsigned part = in->f[ISA_F_OPSEL] % (32u / (unsigned)used);
	const unsigned at = part * (unsigned)used + rank_of(s, 4 * g);

	return w->v[group >> 1][in->opnd[3].reg][(group & 1) * WMMA_N + i] >>
		       at &
	       15;
}

static void read_sparse(struct soft_wave *w, const struct spread *s,
			const struct isa_inst *in, elements out)
{
	const enum soft_element t = s->m->a;

	memset(out, 0, sizeof(elements));
	for (unsigned g = 0; g < s->m->k / 4u; g++)
		for (int i = 0; i < WMMA_N; i++) {
			const int group = group_of(s, 4 * g);
			const unsigned n = rank_of(s, 4 * g) / 2;
			const unsigned x = read_index(w, s, in, g, i);

			for (unsigned j = 0; j < 2; j++)
				out[i][4 * g + (x >> 2 * j & 3)] = convert(
					t, read_element(w, s, in->opnd[1].reg,
							group, n + j, i));
		}
}

/* Sixteen of them from k on, as registers of gfx11. */
static void pack_elements(const struct soft_matrix *m, elements e, unsigned k,
			  uint32_t (*v)[SOFT_LANES])
{
	const int bits = m->acc == WMMA_IU8 ? bits_of(m->a) : 16;

	memset(v, 0, 8 * SOFT_VREG_BYTES);
	for (unsigned j = 0; j < WMMA_N; j++)
		for (int i = 0; i < WMMA_N; i++)
			v[j * (unsigned)bits / 32][i] |=
				e[i][k + j] << j * (unsigned)bits % 32;
}

/* Are its registers words of gfx11's, only elsewhere? */
static bool has_whole_words(const struct spread *s)
{
	const enum soft_element t = s->m->a;

	return !s->sparse && t != SOFT_ELEMENT_FP8 && t != SOFT_ELEMENT_BF8;
}

/* The same as pack() of such an operand. */
static void copy_words(struct soft_wave *w, const struct spread *s,
		       unsigned reg, unsigned k, uint32_t (*v)[SOFT_LANES])
{
	const unsigned each = 32 / (unsigned)s->bits; /* elements of a word */

	for (unsigned q = 0; q < WMMA_N / each; q++) {
		const int group = group_of(s, k + q * each);
		const unsigned at = rank_of(s, k + q * each) / each;

		memcpy(v[q], &w->v[group >> 1][reg + at][(group & 1) * WMMA_N],
		       WMMA_N * sizeof(uint32_t));
	}
}

/* ------------------------------------------------------------- C and D ---- */

static bool is_half(const struct soft_matrix *m)
{
	return m->acc == WMMA_F16 || m->acc == WMMA_BF16;
}

/* Where row r is, and at which bit of its words. */
static uint32_t *acc_row(struct soft_wave *w, unsigned reg, int r, bool half,
			 int *shift)
{
	const uintptr_t base[] = { (uintptr_t)w->v[0], (uintptr_t)w->v[1] };
	const enum wmma_layout l = w->wave_size == 64 ? WMMA_GFX12_64 :
							WMMA_GFX12;

	*shift = half ? r % 2 * 16 : 0;
	return soft_wmma_row(base, reg * SOFT_VREG_BYTES, r, l, half);
}

static uint32_t widen_sum(enum wmma_type acc, uint32_t v)
{
	return acc == WMMA_F16	? f32_bits(soft_f32_from_f16(v & 0xffff)) :
	       acc == WMMA_BF16 ? v << 16 :
				  v;
}

/* The default NaN stands for all. */
static uint32_t narrow_sum(enum wmma_type acc, uint32_t v, uint32_t mode)
{
	const bool nan = (v & 0x7fffffff) > F32_INF;

	if (acc == WMMA_F16)
		return nan ? 0xfe00 :
			     soft_f16_from_f32(
				     f32_value(v),
				     SOFT_HALF_EVEN |
					     (mode & SOFT_MODE_FP16_OVFL));
	return nan ? 0xffc0 : (v + 0x7fff + (v >> 16 & 1)) >> 16;
}

/* C, or D of SWMMAC; neg_lo of C negates, neg_hi takes the absolute value. */
static void read_sums(struct soft_wave *w, const struct soft_matrix *m,
		      const struct isa_inst *in, uint32_t (*c)[WMMA_N])
{
	const struct isa_operand *o = &in->opnd[m->sparse ? 0 : 3];
	const bool floats = m->acc != WMMA_IU8 && !m->sparse;
	const uint32_t keep = floats && o->mods & ISA_M_NEG_HI ? 0x7fffffff :
								 ~0u;
	const uint32_t flip = floats && o->mods & ISA_M_NEG ? 1u << 31 : 0;
	int shift = 0;

	for (int r = 0; r < WMMA_N; r++) {
		const uint32_t *row =
			o->kind == ISA_K_VGPR ?
				acc_row(w, o->reg, r, is_half(m), &shift) :
				NULL;

		for (int l = 0; l < WMMA_N; l++) {
			const uint32_t v = row ? row[l] >> shift : o->value;

			c[r][l] = (widen_sum(m->acc, v) & keep) ^ flip;
		}
	}
}

static void write_sums(struct soft_wave *w, const struct soft_matrix *m,
		       const struct isa_inst *in, uint32_t (*d)[WMMA_N])
{
	for (int r = 0; r < WMMA_N; r++) {
		int shift;
		uint32_t *row =
			acc_row(w, in->opnd[0].reg, r, is_half(m), &shift);

		for (int l = 0; l < WMMA_N; l++)
			row[l] = !is_half(m) ?
					 d[r][l] :
					 (row[l] & ~(0xffffu << shift)) |
						 narrow_sum(m->acc, d[r][l],
							    w->mode)
							 << shift;
	}
}

/* ------------------------------------------------------------ products ---- */

static bool has_registers(struct soft_wave *w, const struct isa_inst *in)
{
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].kind == ISA_K_VGPR &&
		    !soft_vgpr(w, 0, in->opnd[i].reg, in->opnd[i].dwords))
			return false;
	return true;
}

static void set_neg(uint32_t neg[2], uint8_t mods)
{
	neg[0] = mods & ISA_M_NEG ? 0x80000000 : 0;
	neg[1] = mods & ISA_M_NEG_HI ? 0x80000000 : 0;
}

/* Integers saturate once, when all products are in. */
static void add_clamped(uint32_t (*c)[WMMA_N], uint32_t (*d)[WMMA_N],
			bool clamp)
{
	for (int r = 0; r < WMMA_N; r++)
		for (int l = 0; l < WMMA_N; l++)
			c[r][l] = mad_i32((int32_t)d[r][l], c[r][l], clamp);
}

/* One operand, as it is or made into elements before. */
struct operand {
	struct spread s;
	unsigned reg;
	elements e; /* if !has_whole_words(&s) */
};

static void gather_operand(struct soft_wave *w, struct operand *o, unsigned k,
			   uint32_t (*v)[SOFT_LANES])
{
	if (has_whole_words(&o->s))
		copy_words(w, &o->s, o->reg, k, v);
	else
		pack_elements(o->s.m, o->e, k, v);
}

static void multiply_matrices(struct soft_wave *w, const struct soft_matrix *m,
			      const struct isa_inst *in, struct operand *a,
			      struct operand *b, uint32_t (*c)[WMMA_N])
{
	const bool ints = m->acc == WMMA_IU8;
	const struct isa_operand *o = in->opnd;
	_Alignas(64) uint32_t va[8][SOFT_LANES], vb[8][SOFT_LANES];
	_Alignas(64) uint32_t sum[WMMA_N][WMMA_N] = { 0 };
	uint32_t(*to)[WMMA_N] = ints ? sum : c;
	const enum wmma_type in_all = m->a == SOFT_ELEMENT_BF16 ? WMMA_BF16 :
				      !ints			? WMMA_F16 :
				      m->a == SOFT_ELEMENT_I4	? WMMA_IU4 :
								  WMMA_IU8;
	struct wmma x = { .in = in_all,
			  .in_b = in_all,
			  .acc = ints ? WMMA_IU8 : WMMA_F32,
			  .signed_a = o[1].mods & ISA_M_NEG,
			  .signed_b = o[2].mods & ISA_M_NEG,
			  .c_keep = ~0u };

	set_neg(x.neg_a, o[1].mods);
	set_neg(x.neg_b, o[2].mods);
	for (int q = 0; q < WMMA_N / 2; q++)
		x.a[q] = va[q], x.b[q] = vb[q];
	for (int r = 0; r < WMMA_N; r++)
		x.c[r] = x.d[r] = to[r];
	for (unsigned k = 0; k < m->k; k += WMMA_N) {
		gather_operand(w, a, k, va);
		gather_operand(w, b, k, vb);
		(ints ? soft_simd()->wmma_int : soft_simd()->wmma_float)(&x);
	}
	if (ints)
		add_clamped(c, sum, in->f[ISA_F_CLAMP]);
}

static void run_matrix(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_matrix *m = u->op;
	const struct isa_operand *o = u->in.opnd; /* D, A, B, C */
	const int bits = bits_of(m->a);
	_Alignas(64) uint32_t c[WMMA_N][WMMA_N];
	struct operand a, b;

	if (!has_registers(w, &u->in))
		return;
	a.s = (struct spread){ m, bits, w->wave_size, m->sparse };
	a.reg = o[1].reg;
	b.s = (struct spread){ m, bits, w->wave_size, false };
	b.reg = o[2].reg;
	if (m->sparse)
		read_sparse(w, &a.s, &u->in, a.e);
	else if (!has_whole_words(&a.s))
		read_dense(w, &a.s, m->a, a.reg, a.e);
	if (!has_whole_words(&b.s))
		read_dense(w, &b.s, m->b, b.reg, b.e);
	read_sums(w, m, &u->in, c);
	multiply_matrices(w, m, &u->in, &a, &b, c);
	write_sums(w, m, &u->in, c);
}

soft_handler *soft_matrix_handler(const struct isa_inst *in, const void **op)
{
	const struct soft_wmma_row *dense = soft_wmma_of(in);

	if (dense) {
		*op = dense;
		return soft_wmma_run;
	}
	for (size_t i = 0; i < ARRAY_SIZE(matrices); i++)
		if (matrices[i].op == in->op) {
			*op = &matrices[i];
			return run_matrix;
		}
	return NULL;
}
