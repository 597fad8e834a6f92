/*
 * kfd/soft/exec/fast/microop_cross_simd.c - microops that move lanes at will.
 *
 * Of ds_bpermute_b32, ds_swizzle_b32, v_permlane16_b32 and v_permlanex16_b32.
 */
#include "kfd/soft/exec/fast/translate.h"
#include "kfd/soft/exec/valu_microop.h"

/* r[i] = src[from[i] % 32] */
static inline void take_lanes(const uint32_t *src, const uint32_t *from,
			      uint32_t *r)
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
		take_lanes(src, from, r);
		return;
	}
	LANES(i) active[i] = exec & soft_lane_bit[i] ? src[i] : 0;
	take_lanes(active, from, r);
}

static __attribute__((noinline)) void run_bpermute(struct soft_wave *w,
						   const struct soft_microop *m,
						   const uintptr_t *base)
{
	const uint32_t exec = soft_exec(w, m->half);
	const uint32_t *addr = (const uint32_t *)(base[m->half] + m->a);
	_Alignas(64) uint32_t from[SOFT_LANES], r[SOFT_LANES];

	LANES(i) from[i] = (addr[i] + m->imm) >> 2;
	take_active((const uint32_t *)(base[m->half] + m->b), from, exec, r);
	soft_put_vreg((uint32_t *)(base[m->half] + m->d), r, exec);
}

static void microop_bpermute(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base)
{
	run_bpermute(w, m, base);
	SOFT_NEXT(w, m, base);
}

static __attribute__((noinline)) void run_swizzle(struct soft_wave *w,
						  const struct soft_microop *m,
						  const uintptr_t *base)
{
	const uint32_t exec = soft_exec(w, m->half);
	_Alignas(64) uint32_t r[SOFT_LANES];

	take_active((const uint32_t *)(base[m->half] + m->b),
		    (const uint32_t *)m->a, exec, r);
	soft_put_vreg((uint32_t *)(base[m->half] + m->d), r, exec);
}

static void microop_swizzle(struct soft_wave *w, const struct soft_microop *m,
			    const uintptr_t *base)
{
	run_swizzle(w, m, base);
	SOFT_NEXT(w, m, base);
}

/* All lanes execute, or may be read anyway: false if not. */
static __attribute__((noinline)) bool run_permlane(struct soft_wave *w,
						   const struct soft_microop *m,
						   const uintptr_t *base)
{
	const struct isa_inst *in = &m->u->in;
	const uint32_t exec = soft_exec(w, m->half);
	_Alignas(64) uint32_t from[SOFT_LANES], r[SOFT_LANES];
	uint64_t sel;

	if (exec != ~0u && !m->part)
		return false;
	sel = (uint32_t)soft_read_scalar(w, &in->opnd[2], in) |
	      soft_read_scalar(w, &in->opnd[3], in) << 32;
	for (int i = 0; i < 16; i++) {
		from[i] = m->imm | (uint32_t)(sel >> 4 * i & 15);
		from[i + 16] = from[i] ^ 16;
	}
	take_lanes((const uint32_t *)(base[m->half] + m->b), from, r);
	soft_put_vreg((uint32_t *)(base[m->half] + m->d), r, exec);
	return true;
}

static void microop_permlane(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base)
{
	if (__builtin_expect(run_permlane(w, m, base), 1))
		SOFT_NEXT(w, m, base);
	else
		soft_microop_checked(w, m, base);
}

const struct soft_cross_microops SIMD(soft_cross_microops) = {
	.bpermute = microop_bpermute,
	.swizzle = microop_swizzle,
	.permlane = microop_permlane,
};
