/*
 * kfd/soft/exec/wmma.c - WMMA instructions: registers to matrices and back.
 */
#include "kfd/soft/exec/wmma.h"

/* Where row r of C or D is: 16 lanes of a register of one half. */
static uint32_t *acc_row(struct soft_wave *w, unsigned reg, int r)
{
	int log2_rows = w->wave_size == 64 ? 2 : 1; /* of one register */
	int row = r & ((1 << log2_rows) - 1);

	return &w->v[row >> 1][reg + (r >> log2_rows)][(row & 1) * WMMA_N];
}

/* An inline constant is a row of itself; op_sel does not move it. */
static void set_rows(struct soft_wave *w, const struct isa_operand *o,
		     struct wmma *m, uint32_t constant[WMMA_N])
{
	for (int l = 0; l < WMMA_N; l++)
		constant[l] = o[3].value << m->shift;
	for (int r = 0; r < WMMA_N; r++) {
		m->c[r] = o[3].kind == ISA_K_VGPR ? acc_row(w, o[3].reg, r)
						  : constant;
		m->d[r] = acc_row(w, o[0].reg, r);
	}
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

void soft_wmma_types(const struct isa_inst *in, struct wmma *m)
{
	static const struct {
		uint16_t op;
		enum wmma_type in, acc;
	} type[] = {
		{ ISA_v_wmma_f32_16x16x16_f16, WMMA_F16, WMMA_F32 },
		{ ISA_v_wmma_f32_16x16x16_bf16, WMMA_BF16, WMMA_F32 },
		{ ISA_v_wmma_f16_16x16x16_f16, WMMA_F16, WMMA_F16 },
		{ ISA_v_wmma_bf16_16x16x16_bf16, WMMA_BF16, WMMA_BF16 },
		{ ISA_v_wmma_i32_16x16x16_iu8, WMMA_IU8, WMMA_IU8 },
		{ ISA_v_wmma_i32_16x16x16_iu4, WMMA_IU4, WMMA_IU4 },
	};
	size_t i = 0;

	while (type[i].op != in->op)
		i++;
	m->in = type[i].in;
	m->acc = type[i].acc;
	m->shift = m->acc <= WMMA_BF16 && in->f[ISA_F_OPSEL] & 4 ? 16 : 0;
}

void soft_wmma_run(struct soft_wave *w, const struct soft_uop *u)
{
	static const int in_dwords[] = { 8, 8, 4, 2 };
	const struct isa_operand *o = u->in.opnd; /* D, A, B, C */
	int acc_dwords = 8 * SOFT_LANES / w->wave_size;
	uint32_t constant[WMMA_N];
	struct wmma m;

	soft_wmma_types(&u->in, &m);
	m.a = soft_vgpr(w, 0, o[1].reg, in_dwords[m.in]);
	m.b = soft_vgpr(w, 0, o[2].reg, in_dwords[m.in]);
	if (!m.a || !m.b || !soft_vgpr(w, 0, o[0].reg, acc_dwords) ||
	    (o[3].kind == ISA_K_VGPR &&
	     !soft_vgpr(w, 0, o[3].reg, acc_dwords)))
		return;
	set_mods(&u->in, w->mode, &m);
	set_rows(w, o, &m, constant);
	(m.in >= WMMA_IU8 ? soft_simd()->wmma_int :
			    soft_simd()->wmma_float)(&m);
}
