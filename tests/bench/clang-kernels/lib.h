/*
 * What the OpenCL twins of compiler/kernels/ share.  They need a compiler and
 * no device library.  -DELEM= and -DTO= name the types in memory; arithmetic is
 * f32, and functions are computed by the formulas of compiler/dsl/dsl_math.c,
 * so that two compilers are compared and not two mathematical libraries.
 *
 * A twin takes the arguments of its kernel in the same order, runs in the same
 * workgroups and gives each work-item the same elements.
 */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#ifndef ELEM
#define ELEM float
#endif
#ifndef TO
#define TO ELEM
#endif

/* What the cache holds: with -DCACHE_I8 vectors of kernels.h, "Caches". */
#ifdef CACHE_I8
typedef char CACHED;
#else
typedef ELEM CACHED;
#endif

typedef float f4 __attribute__((ext_vector_type(4)));
typedef int i4 __attribute__((ext_vector_type(4)));
/* Four elements that lie at a multiple of one. */
typedef ELEM elem4 __attribute__((ext_vector_type(4), aligned(sizeof(ELEM))));
typedef TO to4 __attribute__((ext_vector_type(4), aligned(sizeof(TO))));
typedef float mem4 __attribute__((ext_vector_type(4), aligned(4)));

#define KERNEL(group) \
	__attribute__((reqd_work_group_size(group, 1, 1))) kernel void
#define INLINE static inline __attribute__((always_inline))
#define lid() __builtin_amdgcn_workitem_id_x()
#define group_x() __builtin_amdgcn_workgroup_id_x()
#define group_y() __builtin_amdgcn_workgroup_id_y()
#ifdef __GFX10__ /* no instruction adds floats in memory */
INLINE void add_float(global float *p, float x)
{
	volatile global atomic_uint *at = (volatile global atomic_uint *)p;
	uint old = __opencl_atomic_load(at, __ATOMIC_RELAXED,
					__OPENCL_MEMORY_SCOPE_DEVICE);

	while (!__opencl_atomic_compare_exchange_strong(
		at, &old, __builtin_astype(__builtin_astype(old, float) + x, uint),
		__ATOMIC_RELAXED, __ATOMIC_RELAXED,
		__OPENCL_MEMORY_SCOPE_DEVICE))
		;
}
#else
#define add_float(p, x) __builtin_amdgcn_global_atomic_fadd_f32(p, x)
#endif
/* From the hidden arguments. */
#define groups_x() (((constant uint *)__builtin_amdgcn_implicitarg_ptr())[0])
#define groups_y() (((constant uint *)__builtin_amdgcn_implicitarg_ptr())[1])
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
/* The same in all lanes of a wave, which the compiler cannot always know. */
#define same(x) __builtin_amdgcn_readfirstlane(x)
#define wave() same(lid() / 32)
#define lane() (lid() % 32)
/* The row of this wave, of four in a workgroup. */
#define wave_row() ((int)(group_x() * 4 + wave()))
#define FLOAT_MAX 3.402823466e+38f
#define INFINITE __builtin_inff()

/* Neither writes to LDS nor reads are moved across. */
INLINE void barrier_lds(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

/* ---------------------------------------------------------- functions ---- */

INLINE float exp_of(float x)
{
#pragma clang fp contract(off)
	const float h = x * 0x1.715476p+0f;
	const float l = FMA(x, 0x1.4ae0cp-26f, FMA(x, 0x1.715476p+0f, -h));
	const float r = __builtin_amdgcn_exp2f(h);

	return __builtin_fabsf(x) < 88.72f ?
		       FMA(r, l * 0x1.62e42fefa39efp-1f, r) : r;
}

INLINE float log_of(float x)
{
	const bool small = x < 0x1p-126f;
	const float y = __builtin_amdgcn_logf(small ? x * 0x1p32f : x);

	return (y - (small ? 32.0f : 0.0f)) * 0x1.62e42fefa39efp-1f;
}

INLINE float sigmoid_of(float x)
{
	return 1 / (exp_of(-x) + 1);
}

INLINE float silu_of(float x)
{
	return x / (exp_of(-x) + 1);
}

INLINE float tanh_of(float x)
{
	const float a = __builtin_fabsf(x), s = x * x;
	float p = FMA(s, -0.006269119895501684f, 0.02111095920648222f);

	p = FMA(p, s, -0.05387394889728021f);
	p = FMA(p, s, 0.1333291536758957f);
	p = FMA(p, s, -0.33333330332755473f);
	const float near = FMA(a * s, p, a);
	const float far = 1 - 2 / (exp_of(a + a) + 1);

	return __builtin_copysignf(a < 0.6f ? near : far, x);
}

INLINE float erf_of(float x)
{
	const float a = __builtin_fabsf(x), s = x * x;
	const float b = a > 4 ? 4 : a;
	float p = FMA(s, 7.875875050430342e-05f, -0.0008016864283299621f);
	float q = FMA(b, 2.370439789528518e-06f, -6.660036993690353e-05f);

	p = FMA(p, s, 0.0051890874229765785f);
	p = FMA(p, s, -0.02685421201037881f);
	p = FMA(p, s, 0.11283594715154313f);
	p = FMA(p, s, -0.3761262666671985f);
	p = FMA(p, s, 1.1283791658483509f);
	q = FMA(q, b, 0.0008621340274557479f);
	q = FMA(q, b, -0.006871016671230976f);
	q = FMA(q, b, 0.03812702106663081f);
	q = FMA(q, b, -0.15882220917324236f);
	q = FMA(q, b, -0.9115292333615559f);
	q = FMA(q, b, -1.630578738431754f);
	q = FMA(q, b, 0.000459555591881918f);
	const float far = 1 - __builtin_amdgcn_exp2f(q);

	return a < 1 ? x * p : __builtin_copysignf(far, x);
}

INLINE float gelu_of(float x)
{
	const float h = x * 0.5f;

	return FMA(h, erf_of(x * 0.70710678118654752f), h);
}

INLINE float relu_of(float x)
{
	return x < 0 ? 0 : x;
}

/* --------------------------------------------------------- reductions ---- */

INLINE float sum_of(float a, float b) { return a + b; }
INLINE float max_of(float a, float b) { return __builtin_fmaxf(a, b); }
INLINE float min_of(float a, float b) { return __builtin_fminf(a, b); }
INLINE int most_of(int a, int b) { return a > b ? a : b; }
INLINE int least_of(int a, int b) { return a < b ? a : b; }

/* The value of lane (i ^ mask) of a row of 16; of the other row. */
#define ROW_XOR(x, mask) \
	__builtin_amdgcn_update_dpp(0, x, 0x160 + (mask), 0xf, 0xf, true)
#define OTHER_ROW(x)                                                 \
	__builtin_amdgcn_permlanex16(x, x, 0x76543210, 0xfedcba98, \
				     false, false)
INLINE int bits_f(float x) { return __builtin_astype(x, int); }
INLINE float float_b(int x) { return __builtin_astype(x, float); }
INLINE int bits_i(int x) { return x; }
INLINE int int_b(int x) { return x; }

/*
 * clang-19 moves v_permlanex16 into a branch that only lane 0 takes, where its
 * other half is switched off; not past this, which is no instruction.
 */
#define HERE(x) __asm__ volatile("" : "+v"(x))

/*
 * wave_OP() over the 32 lanes; group_OP() over the workgroup, by way of
 * `part`, an array of 32 that was not used since the last barrier.
 */
#define REDUCE(type, op, bits, back)                                         \
	INLINE type wave_##op(type x)                                        \
	{                                                                    \
		x = op##_of(x, back(ROW_XOR(bits(x), 1)));                   \
		x = op##_of(x, back(ROW_XOR(bits(x), 2)));                   \
		x = op##_of(x, back(ROW_XOR(bits(x), 4)));                   \
		x = op##_of(x, back(ROW_XOR(bits(x), 8)));                   \
		x = op##_of(x, back(OTHER_ROW(bits(x))));                    \
		HERE(x);                                                     \
		return x;                                                    \
	}                                                                    \
	INLINE type group_##op(type x, uint group, local type *part)         \
	{                                                                    \
		x = wave_##op(x);                                            \
		if (lid() % 32 == 0)                                         \
			part[lid() / 32] = x;                                \
		barrier_lds();                                               \
		x = part[0];                                                 \
		for (uint i = 1; i < group / 32; i++)                        \
			x = op##_of(x, part[i]);                             \
		return x;                                                    \
	}
REDUCE(float, sum, bits_f, float_b)
REDUCE(float, max, bits_f, float_b)
REDUCE(float, min, bits_f, float_b)
REDUCE(int, least, bits_i, int_b)
REDUCE(int, most, bits_i, int_b)

/* ------------------------------------------------------- cache of i8 ---- */

INLINE int size_bits(float x) { return bits_f(x) & 0x7fffffff; }

struct quant {
	float scale, inverse;
};

INLINE struct quant quant_of(int top)
{
	const float d = float_b(top) / 127;

	return (struct quant){ d, d > 0 ? 1 / d : 0 };
}

INLINE char quant(struct quant q, float x)
{
	return (char)(int)__builtin_rintf(x * q.inverse);
}

/* Scales of a vector of `head` elements. */
#define SCALES(p, head) ((global float *)((p) + (head)))
#define SCALE_OF(p, head, i) ((global const float *)((p) + (head)))[(i) / 32]

/* Element i from each lane: a wave has a group. */
INLINE void cache_put(global CACHED *p, int head, int i, float x)
{
#ifdef CACHE_I8
	const struct quant q = quant_of(wave_most(size_bits(x)));

	p[i] = quant(q, x);
	if (i % 32 == 0)
		SCALES(p, head)[i / 32] = q.scale;
#else
	p[i] = (ELEM)x;
#endif
}
