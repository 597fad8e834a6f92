/*
 * kfd/soft/exec/wmma.c - WMMA instructions: registers to matrices and back.
 */
#include "kfd/soft/exec/wmma.h"

static const uint8_t in_words[] = { 8, 8, 4, 4, 4, 2 }; /* enum wmma_type */

/* Words and rows, where the layout is known when this is compiled. */
static inline __attribute__((always_inline)) void
set_places(const uintptr_t *base, const struct isa_operand *o, struct wmma *m,
	   const uint32_t *constant, enum wmma_layout l, bool paired)
{
	const int n = in_words[m->in];

	for (int q = 0; q < n; q++) {
		m->a[q] = soft_wmma_word(base, o[1].reg * SOFT_VREG_BYTES, q, n,
					 l);
		m->b[q] = soft_wmma_word(base, o[2].reg * SOFT_VREG_BYTES, q, n,
					 l);
	}
	for (int r = 0; r < WMMA_N; r++) {
		m->c[r] = constant ? constant :
				     soft_wmma_row(base,
						   o[3].reg * SOFT_VREG_BYTES,
						   r, l, paired);
		m->d[r] = soft_wmma_row(base, o[0].reg * SOFT_VREG_BYTES, r, l,
					paired);
	}
}

/* An inline constant is a row of itself; op_sel does not move it. */
static const uint32_t *set_constant(const struct isa_operand *o,
				    const struct wmma *m, uint32_t *to)
{
	const uint32_t v = o->value << m->shift;

	if (o->kind == ISA_K_VGPR)
		return NULL;
	for (int l = 0; l < WMMA_N; l++)
		to[l] = m->paired ? (v & 0xffff) | v << 16 : v;
	return to;
}

static void set_neg(uint32_t neg[2], uint8_t mods)
{
	neg[0] = mods & ISA_M_NEG ? 0x80000000 : 0;
	neg[1] = mods & ISA_M_NEG_HI ? 0x80000000 : 0;
}

/* neg_lo of C negates, neg_hi takes the absolute value first. */
static void set_mods(const struct isa_inst *in, uint32_t mode, struct wmma *m)
{
	const struct isa_operand *o = in->opnd;

	set_neg(m->neg_a, o[1].mods);
	set_neg(m->neg_b, o[2].mods);
	m->signed_a = o[1].mods & ISA_M_NEG;
	m->signed_b = o[2].mods & ISA_M_NEG;
	m->clamp = in->f[ISA_F_CLAMP];
	m->c_keep = o[3].mods & ISA_M_NEG_HI ? 0x7fffffff : ~0u;
	m->c_flip = o[3].mods & ISA_M_NEG ? 0x80000000 : 0;
	m->ovfl = soft_ovfl16(mode);
}

struct soft_wmma_row {
	uint16_t op;
	uint8_t in, in_b, acc; /* enum wmma_type */
	bool gfx12;
};
/* clang-format off */
#define GFX11(name, in, acc) \
	{ ISA_v_wmma_##name, WMMA_##in, WMMA_##in, WMMA_##acc, false },
#define GFX12(name, in_a, in_b, acc) \
	{ ISA_v_wmma_##name, WMMA_##in_a, WMMA_##in_b, WMMA_##acc, true },
#define BOTH(name, in, acc) \
	GFX11(name, in, acc) GFX12(name##__w12, in, in, acc)
static const struct soft_wmma_row rows[] = {
	BOTH(f32_16x16x16_f16, F16, F32)
	BOTH(f32_16x16x16_bf16, BF16, F32)
	BOTH(f16_16x16x16_f16, F16, F16)
	BOTH(bf16_16x16x16_bf16, BF16, BF16)
	BOTH(i32_16x16x16_iu8, IU8, IU8)
	BOTH(i32_16x16x16_iu4, IU4, IU8)
	GFX12(f32_16x16x16_fp8_fp8, FP8, FP8, F32)
	GFX12(f32_16x16x16_fp8_bf8, FP8, BF8, F32)
	GFX12(f32_16x16x16_bf8_fp8, BF8, FP8, F32)
	GFX12(f32_16x16x16_bf8_bf8, BF8, BF8, F32)
};
/* clang-format on */

const struct soft_wmma_row *soft_wmma_of(const struct isa_inst *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].op == in->op)
			return &rows[i];
	return NULL;
}

void soft_wmma_types(const struct soft_uop *u, bool wide, struct wmma *m)
{
	const struct soft_wmma_row *row = u->op;

	m->in = row->in;
	m->in_b = row->in_b;
	m->acc = row->acc;
	m->layout = (row->gfx12 ? WMMA_GFX12 : WMMA_GFX11) + wide;
	m->paired = soft_wmma_is_paired(m->layout, m->acc);
	m->shift = m->acc <= WMMA_BF16 && u->in.f[ISA_F_OPSEL] & 4 ? 16 : 0;
}

/* False after raising a fault: some are beyond the wave's. */
static bool has_registers(struct soft_wave *w, const struct isa_operand *o,
			  const struct wmma *m)
{
	const int wave = m->layout < WMMA_GFX12 ? WMMA_N : w->wave_size;
	const int in = (in_words[m->in] * WMMA_N + wave - 1) / wave;
	const int sums = (WMMA_N * WMMA_N / w->wave_size) >> m->paired;

	return soft_vgpr(w, 0, o[1].reg, in) && soft_vgpr(w, 0, o[2].reg, in) &&
	       soft_vgpr(w, 0, o[0].reg, sums) &&
	       (o[3].kind != ISA_K_VGPR || soft_vgpr(w, 0, o[3].reg, sums));
}

void soft_wmma_run(struct soft_wave *w, const struct soft_uop *u)
{
	const uintptr_t base[] = { (uintptr_t)w->v[0], (uintptr_t)w->v[1] };
	const struct isa_operand *o = u->in.opnd; /* D, A, B, C */
	uint32_t constant[WMMA_N];
	const uint32_t *c;
	struct wmma m;

	soft_wmma_types(u, w->wave_size == 64, &m);
	if (!has_registers(w, o, &m))
		return;
	set_mods(&u->in, w->mode, &m);
	c = set_constant(&o[3], &m, constant);
	if (m.layout == WMMA_GFX11)
		set_places(base, o, &m, c, WMMA_GFX11, false);
	else if (m.layout == WMMA_GFX11_64)
		set_places(base, o, &m, c, WMMA_GFX11_64, false);
	else if (m.layout == WMMA_GFX12)
		set_places(base, o, &m, c, WMMA_GFX12, m.paired);
	else
		set_places(base, o, &m, c, WMMA_GFX12_64, m.paired);
	(m.in >= WMMA_IU8 ? soft_simd()->wmma_int :
			    soft_simd()->wmma_float)(&m);
}
