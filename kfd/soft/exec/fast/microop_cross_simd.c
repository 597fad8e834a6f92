/*
 * kfd/soft/exec/fast/microop_cross_simd.c - steps of instructions that move lanes at will:
 * ds_bpermute_b32, ds_swizzle_b32, v_permlane16_b32, v_permlanex16_b32.
 */
#include "kfd/soft/exec/fast/microop_cross.h"
#include "kfd/soft/exec/valu_step.h"

/* r[i] = src[from[i] % 32] */
static inline void take(const uint32_t *src, const uint32_t *from, uint32_t *r)
{
#if defined(__AVX512F__)
	__m512i low = _mm512_loadu_si512(src);
	__m512i high = _mm512_loadu_si512(src + 16);

	for (int i = 0; i < SOFT_LANES; i += 16)
		_mm512_storeu_si512(
			r + i, _mm512_permutex2var_epi32(
				       low, _mm512_loadu_si512(from + i),
				       high));
#else
	LANES(i) r[i] = src[from[i] % SOFT_LANES];
#endif
}

/* Lanes that do not execute are read as 0. */
static inline void take_active(const uint32_t *src, const uint32_t *from,
			       uint32_t exec, uint32_t *r)
{
	_Alignas(64) uint32_t active[SOFT_LANES];

	if (exec == ~0u) {
		take(src, from, r);
		return;
	}
	LANES(i) active[i] = exec & step_bit[i] ? src[i] : 0;
	take(active, from, r);
}

static __attribute__((noinline)) void bpermute(struct soft_wave *w,
					       const struct soft_step *s,
					       const uintptr_t *base)
{
	const uint32_t exec = w->s[ISA_R_EXEC_LO + s->half];
	const uint32_t *addr = (const uint32_t *)(base[s->half] + s->a);
	_Alignas(64) uint32_t from[SOFT_LANES], r[SOFT_LANES];

	LANES(i) from[i] = (addr[i] + s->imm) >> 2;
	take_active((const uint32_t *)(base[s->half] + s->b), from, exec, r);
	step_put((uint32_t *)(base[s->half] + s->d), r, exec);
}

static void step_bpermute(struct soft_wave *w, const struct soft_step *s,
			  const uintptr_t *base)
{
	bpermute(w, s, base);
	SOFT_NEXT(w, s, base);
}

static __attribute__((noinline)) void swizzle(struct soft_wave *w,
					      const struct soft_step *s,
					      const uintptr_t *base)
{
	const uint32_t exec = w->s[ISA_R_EXEC_LO + s->half];
	_Alignas(64) uint32_t r[SOFT_LANES];

	take_active((const uint32_t *)(base[s->half] + s->b),
		    (const uint32_t *)s->a, exec, r);
	step_put((uint32_t *)(base[s->half] + s->d), r, exec);
}

static void step_swizzle(struct soft_wave *w, const struct soft_step *s,
			 const uintptr_t *base)
{
	swizzle(w, s, base);
	SOFT_NEXT(w, s, base);
}

/* All lanes execute, or may be read anyway: false if not. */
static __attribute__((noinline)) bool permlane(struct soft_wave *w,
					       const struct soft_step *s,
					       const uintptr_t *base)
{
	const struct isa_inst *in = &s->u->in;
	const uint32_t exec = w->s[ISA_R_EXEC_LO + s->half];
	_Alignas(64) uint32_t from[SOFT_LANES], r[SOFT_LANES];
	uint64_t sel;

	if (exec != ~0u && !s->part)
		return false;
	sel = (uint32_t)soft_read_scalar(w, &in->opnd[2], in) |
	      soft_read_scalar(w, &in->opnd[3], in) << 32;
	for (int i = 0; i < 16; i++) {
		from[i] = s->imm | (uint32_t)(sel >> 4 * i & 15);
		from[i + 16] = from[i] ^ 16;
	}
	take((const uint32_t *)(base[s->half] + s->b), from, r);
	step_put((uint32_t *)(base[s->half] + s->d), r, exec);
	return true;
}

static void step_permlane(struct soft_wave *w, const struct soft_step *s,
			  const uintptr_t *base)
{
	if (__builtin_expect(permlane(w, s, base), 1))
		SOFT_NEXT(w, s, base);
	else
		soft_step_checked(w, s, base);
}

const struct soft_cross_steps SIMD(soft_cross_steps) = {
	.bpermute = step_bpermute,
	.swizzle = step_swizzle,
	.permlane = step_permlane,
};
