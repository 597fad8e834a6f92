/*
 * kfd/soft/exec/fast/microop_row_simd.c - microops of any row of the tables.
 *
 * A row is one of valu.def or vop3.def; here are also the microops that prepare
 * its operands.  Vregs are written with the widest stores that the host has: a
 * wide load that follows narrow stores to the same place would have to wait for
 * them.
 *
 * What has locals in memory is a function of its own, so that the microop
 * itself ends with a jump.
 */
#include "kfd/soft/exec/fast/translate.h"
#include "kfd/soft/exec/valu_microop.h"
#include "kfd/soft/exec/valu_mods.h"

/* ------------------------------------------------------------ operands ---- */

static void microop_spread(struct soft_wave *w, const struct soft_microop *m,
			   const uintptr_t *base)
{
	uint32_t *p = (uint32_t *)m->a, v = w->s[m->imm];

	LANES(i) p[i] = v;
	SOFT_NEXT(w, m, base);
}

static void microop_spread2(struct soft_wave *w, const struct soft_microop *m,
			    const uintptr_t *base)
{
	uint32_t *p = (uint32_t *)m->a;
	uint32_t low = w->s[m->imm], high = w->s[m->imm + 1];

	LANES(i) p[i] = low;
	LANES(i) p[SOFT_LANES + i] = high;
	SOFT_NEXT(w, m, base);
}

static __attribute__((noinline)) void
apply_operand_mods(struct soft_wave *w, const struct soft_microop *m,
		   const uintptr_t *base)
{
	const struct isa_operand *o = &m->u->in.opnd[m->imm & 15];
	const uint32_t *from = (const uint32_t *)(base[m->kb] + m->b);
	uint32_t *to = (uint32_t *)m->a;
	const uint32_t *p = mods_apply(o, m->u->in.fmt, m->imm & 16, from, to);

	(void)w;
	if (p != to)
		memcpy(to, p, SOFT_VREG_BYTES * (o->dwords ? o->dwords : 1));
}

static void microop_mods(struct soft_wave *w, const struct soft_microop *m,
			 const uintptr_t *base)
{
	apply_operand_mods(w, m, base);
	SOFT_NEXT(w, m, base);
}

static void microop_signs(struct soft_wave *w, const struct soft_microop *m,
			  const uintptr_t *base)
{
	const uint32_t *from = (const uint32_t *)(base[m->kb] + m->b);
	uint32_t *to = (uint32_t *)m->a;
	uint32_t keep = m->imm & ISA_M_ABS ? 0x7fffffff : ~0u;
	uint32_t flip = m->imm & ISA_M_NEG ? 0x80000000 : 0;

	LANES(i) to[i] = (from[i] & keep) ^ flip;
	SOFT_NEXT(w, m, base);
}

/* ----------------------------------------------------------------- DPP ---- */

/* Bit i: bit from[i] of m. */
static inline uint32_t permute_bits(uint32_t m, const uint32_t *from)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = -(int32_t)(m >> from[i] & 1);
	return soft_lanes_mask(r);
}

/* Sources are in the lane's own row of 16. */
static inline void permute_lanes(const uint32_t *src, const uint32_t *from,
				 uint32_t valid, uint32_t *to)
{
#if defined(__AVX512F__)
	for (int i = 0; i < SOFT_LANES; i += 16) {
		__m512i k = _mm512_loadu_si512(from + i);
		__m512i v = _mm512_loadu_si512(src + i);

		_mm512_storeu_si512(to + i,
				    _mm512_maskz_permutexvar_epi32(
					    (__mmask16)(valid >> i), k, v));
	}
#else
	_Alignas(64) uint32_t r[SOFT_LANES];

	LANES(i) r[i] = src[from[i]];
	LANES(i) to[i] = valid & soft_lane_bit[i] ? r[i] : 0;
#endif
}

static __attribute__((noinline)) void move_lanes(struct soft_wave *w,
						 const struct soft_microop *m,
						 const uintptr_t *base)
{
	const uint32_t *src = (const uint32_t *)(base[m->kb] + m->b);
	const uint32_t *from = (const uint32_t *)m->c;
	struct soft_microop_dpp *d = (struct soft_microop_dpp *)m->d;
	uint32_t *exec = &w->s[ISA_R_EXEC_LO + m->half];
	uint32_t valid = d->valid;

	if (!d->fetch && *exec != ~0u)
		valid &= permute_bits(*exec, from);
	permute_lanes(src, from, valid, (uint32_t *)m->a);
	d->exec = *exec;
	*exec &= d->enabled & (d->bound ? ~0u : valid);
}

static void microop_dpp(struct soft_wave *w, const struct soft_microop *m,
			const uintptr_t *base)
{
	move_lanes(w, m, base);
	SOFT_NEXT(w, m, base);
}

static void microop_dpp_end(struct soft_wave *w, const struct soft_microop *m,
			    const uintptr_t *base)
{
	const struct soft_microop_dpp *d =
		(const struct soft_microop_dpp *)m->d;

	w->s[ISA_R_EXEC_LO + m->half] = d->exec;
	SOFT_NEXT(w, m, base);
}

/* ---------------------------------------------------------------- rows ---- */

static inline void run_row(struct soft_wave *w, const struct soft_microop *m,
			   const uintptr_t *base, bool finish, uint32_t *d)
{
	const struct isa_inst *in = &m->u->in;
	const struct soft_lane_op *r = m->u->op;
	bool y = m->part == SOFT_PART_Y;
	enum isa_type type;
	uint32_t mode;
	struct soft_lanes x = {
		.a = (const uint32_t *)(base[m->ka] + m->a),
		.b = (const uint32_t *)(base[m->kb] + m->b),
		.c = (const uint32_t *)(base[m->kc] + m->c),
		.d = d,
		.exec = soft_exec(w, m->half),
		.mask_in = w->s[m->mask_in],
		.mode = w->mode,
		.half = m->half,
		.mods = { m->mods[0], m->mods[1], m->mods[2] },
		.clamp = in->f[ISA_F_CLAMP],
	};

	if (y)
		r += in->op_y - in->op;
	type = in->opnd[y ? in->n_opnd_x : 0].type;
	mode = soft_row_mode(r, w->mode);
	mods_compute(r, type, mode, &x);
	if (finish)
		mods_finish(in, type, mode, r->flags, d);
	if (m->mask_out != SOFT_NO_MASK)
		w->s[m->mask_out] = x.mask_out & x.exec;
}

static __attribute__((noinline)) void run_row32(struct soft_wave *w,
						const struct soft_microop *m,
						const uintptr_t *base,
						bool finish)
{
	_Alignas(64) uint32_t d[SOFT_OPND_DWORDS * SOFT_LANES];
	uint32_t *to = (uint32_t *)(base[m->half] + m->d);
	uint32_t exec = soft_exec(w, m->half);

	run_row(w, m, base, finish, d);
	for (uint32_t j = 0; j < m->imm; j++)
		soft_put_vreg(to + j * SOFT_LANES, d + j * SOFT_LANES, exec);
}

static __attribute__((noinline)) void run_row16(struct soft_wave *w,
						const struct soft_microop *m,
						const uintptr_t *base,
						bool finish)
{
	_Alignas(64) uint32_t d[SOFT_LANES];
	uint32_t exec = soft_exec(w, m->half);

	run_row(w, m, base, finish, d);
	soft_put_vreg16((uint32_t *)(base[m->half] + m->d), d, exec, m->imm);
}

static void microop_row(struct soft_wave *w, const struct soft_microop *m,
			const uintptr_t *base)
{
	run_row32(w, m, base, false);
	SOFT_NEXT(w, m, base);
}

static void microop_row16(struct soft_wave *w, const struct soft_microop *m,
			  const uintptr_t *base)
{
	run_row16(w, m, base, false);
	SOFT_NEXT(w, m, base);
}

static void microop_row_finish(struct soft_wave *w,
			       const struct soft_microop *m,
			       const uintptr_t *base)
{
	run_row32(w, m, base, true);
	SOFT_NEXT(w, m, base);
}

static void microop_row16_finish(struct soft_wave *w,
				 const struct soft_microop *m,
				 const uintptr_t *base)
{
	run_row16(w, m, base, true);
	SOFT_NEXT(w, m, base);
}

const struct soft_row_microops SIMD(soft_row_microops) = {
	.spread = microop_spread,
	.spread2 = microop_spread2,
	.mods = microop_mods,
	.signs = microop_signs,
	.dpp = microop_dpp,
	.dpp_end = microop_dpp_end,
	.row = microop_row,
	.row16 = microop_row16,
	.row_finish = microop_row_finish,
	.row16_finish = microop_row16_finish,
};
