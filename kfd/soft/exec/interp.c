/*
 * kfd/soft/exec/interp.c - VINTERP: parameter interpolation.
 *
 * A fused multiply-add of which some sources come from one lane of the quad
 * (RDNA3 ISA 12.3), whatever EXEC says of that lane.  The sum is rounded once,
 * by MODE's field for the type of the result, or to zero where the name says
 * rtz; sources and result are flushed as MODE says for their types.  WAIT_EXP
 * finds nothing to wait for, since parameter loads are not executed.
 */
#include "kfd/soft/exec/valu_mods.h"
#include "kfd/soft/exec/vop3.h"

enum { OWN = 4, ROUND_TO_ZERO_MODE = 3 };

static const struct interp {
	uint8_t from[3]; /* lane of the quad, OWN: the lane itself */
	bool rtz;
} table[ISA_OP_COUNT] = {
#define P10 { 1, OWN, 0 }
#define P2  { 2, OWN, OWN }
	[ISA_v_interp_p10_f32] = { P10, false },
	[ISA_v_interp_p2_f32] = { P2, false },
	[ISA_v_interp_p10_f16_f32] = { P10, false },
	[ISA_v_interp_p2_f16_f32] = { P2, false },
	[ISA_v_interp_p10_rtz_f16_f32] = { P10, true },
	[ISA_v_interp_p2_rtz_f16_f32] = { P2, true },
#undef P10
#undef P2
};

static uint32_t sum_f32(float a, float b, float c, unsigned round,
			uint32_t mode)
{
	const double r = soft_fma_scaled(&soft_format_f32, a, b, c, 0, round,
					 !(mode & 0x20));

	return r == r ? f32_bits((float)r) :
			fma_f32(a, b, c, mode & SOFT_MODE_IEEE);
}

/* A sum that overflows is finite if FP16_OVFL says so; a NaN comes by f32. */
static uint32_t sum_f16(float a, float b, float c, unsigned round,
			uint32_t mode)
{
	const bool finite = a - a == 0 && b - b == 0 && c - c == 0;
	const double sum = soft_fma_scaled(&soft_format_f16, a, b, c, 0, round,
					   soft_flushes16(mode));
	uint32_t r;

	if (sum != sum)
		return soft_f16_from_bits(fma_f32(a, b, c, true),
					  SOFT_HALF_EVEN);
	r = soft_f16_from_f64(sum, SOFT_HALF_EVEN);
	return soft_ovfl16(mode) && finite && (r & 0x7fff) == 0x7c00 ? r - 1 :
								       r;
}

/* Source k of one half as floats; false after a fault. */
static bool fetch_source(struct soft_wave *w, const struct soft_uop *u,
			 int half, int k, float *f)
{
	const struct isa_operand *o = &u->in.opnd[1 + k];
	const int from = table[u->in.op].from[k];
	const uint32_t *v = soft_vgpr(w, half, o->reg, 1), *p;
	uint32_t quad[SOFT_LANES], tmp[2 * SOFT_LANES]; /* as below */

	if (!v)
		return false;
	LANES(i) quad[i] = v[from == OWN ? i : (i & ~3) | from];
	p = mods_apply(o, u->in.fmt, mods_flush(o->type, w->mode, false), quad,
		       tmp);
	if (isa_type_info(o->type)->bits == 16)
		LANES(i) f[i] = soft_f32_from_f16(p[i] & 0xffff);
	else
		LANES(i) f[i] = f32_value(p[i]);
	return true;
}

static bool run_half(struct soft_wave *w, const struct soft_uop *u, int half)
{
	const struct isa_operand *dst = &u->in.opnd[0];
	const bool f16 = isa_type_info(dst->type)->bits == 16;
	const unsigned mode = f16 ? soft_round16(w->mode) : w->mode & 3;
	const unsigned round = table[u->in.op].rtz ? ROUND_TO_ZERO_MODE : mode;
	uint32_t *to = soft_vgpr(w, half, dst->reg, 1);
	uint32_t d[2 * SOFT_LANES]; /* valu_mods.h knows pairs, too */
	float f[3][SOFT_LANES];

	for (int k = 0; k < 3; k++)
		if (!fetch_source(w, u, half, k, f[k]))
			return false;
	if (!to)
		return false;
	LANES(i)
	d[i] = f16 ? sum_f16(f[0][i], f[1][i], f[2][i], round, w->mode) :
		     sum_f32(f[0][i], f[1][i], f[2][i], round, w->mode);
	mods_finish(&u->in, dst->type, w->mode, 0, d);
	if (f16)
		soft_put_vreg16(to, d, soft_exec(w, half),
				dst->mods & ISA_M_HI);
	else
		soft_put_vreg(to, d, soft_exec(w, half));
	return true;
}

void soft_interp_run(struct soft_wave *w, const struct soft_uop *u)
{
	for (int half = 0; half < soft_halves(w); half++)
		if (!run_half(w, u, half))
			return;
}
