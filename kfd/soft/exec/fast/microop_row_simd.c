/*
 * kfd/soft/exec/fast/microop_row_simd.c - the steps of step_row.h.
 *
 * Planes are written with the widest stores that the host has: a wide load that
 * follows narrow stores to the same place would have to wait for them.
 *
 * What has locals in memory is a function of its own, so that the step itself
 * ends with a jump.
 */
#include "kfd/soft/exec/fast/microop_row.h"
#include "kfd/soft/exec/valu_mods.h"
#include "kfd/soft/exec/valu_step.h"

#define PLANE_BYTES (SOFT_LANES * sizeof(uint32_t))

#define STEP(name)                                                           \
	static void step_##name(struct soft_wave *w,                         \
				const struct soft_step *s,                   \
				const uintptr_t *base)
#define BODY(name)                                                           \
	static __attribute__((noinline)) void name(                          \
		struct soft_wave *w, const struct soft_step *s,              \
		const uintptr_t *base)

/* ------------------------------------------------------------ operands ---- */

STEP(spread)
{
	uint32_t *p = (uint32_t *)s->a, v = w->s[s->imm];

	LANES(i) p[i] = v;
	SOFT_NEXT(w, s, base);
}

STEP(spread2)
{
	uint32_t *p = (uint32_t *)s->a;
	uint32_t low = w->s[s->imm], high = w->s[s->imm + 1];

	LANES(i) p[i] = low;
	LANES(i) p[SOFT_LANES + i] = high;
	SOFT_NEXT(w, s, base);
}

BODY(apply)
{
	const struct isa_operand *o = &s->u->in.opnd[s->imm & 15];
	const uint32_t *from = (const uint32_t *)(base[s->kb] + s->b);
	uint32_t *to = (uint32_t *)s->a;
	const uint32_t *p = mods_apply(o, s->u->in.fmt, s->imm & 16, from, to);

	(void)w;
	if (p != to)
		memcpy(to, p, PLANE_BYTES * (o->dwords ? o->dwords : 1));
}

STEP(mods)
{
	apply(w, s, base);
	SOFT_NEXT(w, s, base);
}

STEP(signs)
{
	const uint32_t *from = (const uint32_t *)(base[s->kb] + s->b);
	uint32_t *to = (uint32_t *)s->a;
	uint32_t keep = s->imm & ISA_M_ABS ? 0x7fffffff : ~0u;
	uint32_t flip = s->imm & ISA_M_NEG ? 0x80000000 : 0;

	LANES(i) to[i] = (from[i] & keep) ^ flip;
	SOFT_NEXT(w, s, base);
}

/* ----------------------------------------------------------------- DPP ---- */

/* Bit i: bit from[i] of m. */
static inline uint32_t permute_bits(uint32_t m, const uint32_t *from)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = -(int32_t)(m >> from[i] & 1);
	return step_mask(r);
}

/* Sources are in the lane's own row of 16. */
static inline void permute(const uint32_t *src, const uint32_t *from,
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
	LANES(i) to[i] = valid & step_bit[i] ? r[i] : 0;
#endif
}

BODY(move_lanes)
{
	const uint32_t *src = (const uint32_t *)(base[s->kb] + s->b);
	const uint32_t *from = (const uint32_t *)s->c;
	struct soft_step_dpp *d = (struct soft_step_dpp *)s->d;
	uint32_t *exec = &w->s[ISA_R_EXEC_LO + s->half];
	uint32_t valid = d->valid;

	if (!d->fetch && *exec != ~0u)
		valid &= permute_bits(*exec, from);
	permute(src, from, valid, (uint32_t *)s->a);
	d->exec = *exec;
	*exec &= d->enabled & (d->bound ? ~0u : valid);
}

STEP(dpp)
{
	move_lanes(w, s, base);
	SOFT_NEXT(w, s, base);
}

STEP(dpp_end)
{
	const struct soft_step_dpp *d = (const struct soft_step_dpp *)s->d;

	w->s[ISA_R_EXEC_LO + s->half] = d->exec;
	SOFT_NEXT(w, s, base);
}

/* ---------------------------------------------------------------- rows ---- */

static inline void row(struct soft_wave *w, const struct soft_step *s,
		       const uintptr_t *base, bool finish, uint32_t *d)
{
	const struct isa_inst *in = &s->u->in;
	const struct soft_vrow *r = s->u->op;
	bool y = s->part == SOFT_PART_Y;
	struct soft_lanes x = {
		.a = (const uint32_t *)(base[s->ka] + s->a),
		.b = (const uint32_t *)(base[s->kb] + s->b),
		.c = (const uint32_t *)(base[s->kc] + s->c),
		.d = d,
		.exec = w->s[ISA_R_EXEC_LO + s->half],
		.mask_in = w->s[s->mask_in],
		.mode = w->mode,
		.half = s->half,
		.mods = { s->mods[0], s->mods[1], s->mods[2] },
		.clamp = in->f[ISA_F_CLAMP],
	};

	if (y)
		r += in->op_y - in->op;
	r->fn(&x);
	if (finish)
		mods_finish(in, in->opnd[y ? in->n_opnd_x : 0].type, w->mode,
			    r->flags & (SOFT_V_KEEP | SOFT_V_KEEP_OUT), d);
	if (s->mask_out != SOFT_STEP_NO_MASK)
		w->s[s->mask_out] = x.mask_out & x.exec;
}

#define ROW_STEPS(name, finish)                                              \
	BODY(run_##name)                                                     \
	{                                                                    \
		_Alignas(64) uint32_t d[SOFT_OPND_DWORDS * SOFT_LANES];      \
		uint32_t *to = (uint32_t *)(base[s->half] + s->d);           \
		uint32_t exec = w->s[ISA_R_EXEC_LO + s->half];               \
                                                                             \
		row(w, s, base, finish, d);                                  \
		for (uint32_t j = 0; j < s->imm; j++)                        \
			step_put(to + j * SOFT_LANES, d + j * SOFT_LANES,    \
				 exec);                                      \
	}                                                                    \
	BODY(run_##name##16)                                                 \
	{                                                                    \
		_Alignas(64) uint32_t d[SOFT_LANES];                         \
		uint32_t exec = w->s[ISA_R_EXEC_LO + s->half];               \
                                                                             \
		row(w, s, base, finish, d);                                  \
		step_put16((uint32_t *)(base[s->half] + s->d), d, exec,      \
			   s->imm);                                          \
	}                                                                    \
	STEP(name)                                                           \
	{                                                                    \
		run_##name(w, s, base);                                      \
		SOFT_NEXT(w, s, base);                                       \
	}                                                                    \
	STEP(name##16)                                                       \
	{                                                                    \
		run_##name##16(w, s, base);                                  \
		SOFT_NEXT(w, s, base);                                       \
	}
ROW_STEPS(row, false)
ROW_STEPS(finish, true)

const struct soft_row_steps SIMD(soft_row_steps) = {
	.spread = step_spread,
	.spread2 = step_spread2,
	.mods = step_mods,
	.signs = step_signs,
	.dpp = step_dpp,
	.dpp_end = step_dpp_end,
	.row = step_row,
	.row16 = step_row16,
	.row_finish = step_finish,
	.row16_finish = step_finish16,
};
