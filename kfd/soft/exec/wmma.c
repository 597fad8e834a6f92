/*
 * kfd/soft/exec/wmma.c - WMMA instructions: registers to matrices and back.
 */
#include "kfd/soft/exec/wmma.h"

/* An inline constant is a row of itself; op_sel does not move it. */
static void set_rows(const uintptr_t *base, const struct isa_operand *o,
		     struct wmma *m, uint32_t constant[WMMA_N])
{
	for (int l = 0; l < WMMA_N; l++) {
		const uint32_t v = o[3].value << m->shift;

		constant[l] = m->paired ? (v & 0xffff) | v << 16 : v;
	}
	for (int r = 0; r < WMMA_N; r++) {
		m->c[r] = o[3].kind != ISA_K_VGPR ?
				  constant :
				  soft_wmma_row(base,
						o[3].reg * SOFT_VREG_BYTES, r,
						m->layout, m->paired);
		m->d[r] = soft_wmma_row(base, o[0].reg * SOFT_VREG_BYTES, r,
					m->layout, m->paired);
	}
}

static const int in_words[] = { 8, 8, 4, 4, 4, 2 }; /* enum wmma_type */

static void set_words(const uintptr_t *base, const struct isa_operand *o,
		      const struct wmma *m, const uint32_t **word)
{
	const int n = in_words[m->in];

	for (int q = 0; q < n; q++)
		word[q] = soft_wmma_word(base, o->reg * SOFT_VREG_BYTES, q, n,
					 m->layout);
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

bool soft_wmma_types(const struct isa_inst *in, bool wide, struct wmma *m)
{
	/* clang-format off */
#define GFX11(name, in, acc)                                              \
	{ ISA_v_wmma_##name, WMMA_##in, WMMA_##in, WMMA_##acc, WMMA_GFX11 },
#define GFX12(name, in_a, in_b, acc)                                      \
	{ ISA_v_wmma_##name, WMMA_##in_a, WMMA_##in_b, WMMA_##acc, WMMA_GFX12 },
#define BOTH(name, in, acc)                                               \
	GFX11(name, in, acc) GFX12(name##__w12, in, in, acc)
	static const struct {
		uint16_t op;
		enum wmma_type in, in_b, acc;
		enum wmma_layout layout;
	} type[] = {
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
	size_t i = 0;

	while (i < ARRAY_SIZE(type) && type[i].op != in->op)
		i++;
	if (i == ARRAY_SIZE(type))
		return false;
	m->in = type[i].in;
	m->in_b = type[i].in_b;
	m->acc = type[i].acc;
	m->layout = type[i].layout + wide;
	m->paired = soft_wmma_is_paired(m->layout, m->acc);
	m->shift = m->acc <= WMMA_BF16 && in->f[ISA_F_OPSEL] & 4 ? 16 : 0;
	return true;
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
	struct wmma m;

	soft_wmma_types(&u->in, w->wave_size == 64, &m);
	if (!has_registers(w, o, &m))
		return;
	set_words(base, &o[1], &m, m.a);
	set_words(base, &o[2], &m, m.b);
	set_mods(&u->in, w->mode, &m);
	set_rows(base, o, &m, constant);
	(m.in >= WMMA_IU8 ? soft_simd()->wmma_int :
			    soft_simd()->wmma_float)(&m);
}
