/*
 * autotune/cpu - matrix products on the host's processor: the manual.
 *
 *	C = alpha * A * op(B) + beta * C
 *
 * A is f32 [m][k], C is f32 [m][n]; rows are `lda` and `ldc` elements apart.
 * B is f32, f16 or bf16, stored [k][n] or, as models store weights, [n][k];
 * `ldb` counts elements, too.  16-bit values become f32 exactly, products are
 * summed in f32: the error of an element is within sqrt(k) * 2^-23 of the sum
 * of the absolute products, times a small constant.
 *
 * beta = 0 does not read C, alpha = 0 reads neither A nor B, and k = 0 is an
 * empty sum.  Otherwise NaN and infinity go where arithmetic takes them.  C
 * must not overlap A or B.
 *
 * With AMX, f32 values are cut into three bf16 parts and f16 values into two,
 * which loses nothing of them; of the products of parts those are left out that
 * are together less than 2^-24 of a product.  Sums are f32.  What differs from
 * the other levels: a value or a part of it below 2^-126 counts as 0, and so
 * does a sum.  Sums that are not finite are made again without AMX.
 *
 * A product is `coarse` where values have errors far larger than f32's, as
 * weights that were integers.  Then AMX cuts f32 values into two parts, which
 * loses less than 2^-16 of each and 2^-14 of a product, and takes half the
 * time.  The other levels compute as ever.
 *
 * Where `a_as` says so, values of A become bf16 before they are multiplied, as
 * PyTorch computes a model of bf16, and those of B, too: AVX-512 BF16, or AMX
 * with one part.  Products of bf16 values are exact, sums f32; a value or a sum
 * below 2^-126 counts as 0.  Products of few rows that pack nothing, and levels
 * without such a unit, leave all as it is.
 *
 * Or they become bytes, each 32 k's of a row with a scale, their largest value
 * over 127, and so do those of a B that is made; sums of 32 products are exact
 * then.  INT8 and INT4 are multiplied as they are stored.  Infinity and NaN make
 * all of their group NaN.  With a B of CHANNEL8 a row of A is one group, and sums
 * of all k's are exact; there are CPU_GEMM_CHANNEL_K of them at most.  Where
 * nothing of A may be rounded, integers of B become f32.
 *
 * The bits of C depend on the shape, the configuration and the level of the
 * instruction set, never on the number of threads.
 *
 * Inside a step that all threads do, such as a model's forward pass:
 *
 *	cpu_gemm_part(&g, &scratch[thread], thread, threads_count(t));
 *	threads_barrier(t);
 *
 * from outside, with a pool or without: cpu_gemm(&g, &scratch, pool).
 */
#ifndef T0_AUTOTUNE_GEMM_H
#define T0_AUTOTUNE_GEMM_H

#include "base/base.h"
#include "base/threads.h"

/*
 * How B is stored.  MADE: nowhere as such, a function makes rows of it as f32
 * when they are wanted, for weights of types that are the caller's.
 */
enum cpu_gemm_type {
	CPU_GEMM_F32,
	CPU_GEMM_F16,
	CPU_GEMM_BF16,
	CPU_GEMM_MADE,
	CPU_GEMM_INT8, /* `b` is a struct cpu_gemm_ints */
	CPU_GEMM_INT4,
	CPU_GEMM_CHANNEL8,
	CPU_GEMM_TYPES
};

/* "f32", "channel8": as texts and rows have it. */
const char *cpu_gemm_type_name(enum cpu_gemm_type type);

/*
 * Integers [n][k], k a multiple of 32, of which 32 share a scale in f16: those of
 * row j and group i begin at q + j * q_row + i * q_group, their scale is at
 * scale + j * scale_row + i * scale_group, all in bytes.  INT8: a signed byte
 * each.  INT4: byte b has value b in its low half and b + 16 in its high one,
 * 8 added.
 *
 * CHANNEL8: bytes, too, but all of a row share a scale, in f32; q_group is 32,
 * scale_group 0.
 */
struct cpu_gemm_ints {
	const uint8_t *q, *scale;
	size_t q_row, q_group, scale_row, scale_group;
};

/*
 * Makes rows [row, row + n) of a B [n][k], their elements [k0, k0 + k), in
 * out[i * ldo + j].  k0 and k are multiples of CPU_GEMM_MADE_STEP, but for a k
 * that ends a row.
 */
typedef void cpu_gemm_make_fn(const void *b, size_t row, size_t n, size_t k0,
			      size_t k, float *out, size_t ldo);
#define CPU_GEMM_MADE_STEP 32

/* 255 * 127 times so many is below 2^31. */
#define CPU_GEMM_CHANNEL_K 65536

/* ------------------------------------------------------- gemm_plan.c ---- */

/*
 * How a product is split into tiles.  One side is read value by value, each
 * broadcast to a vector ("rows" of a tile); the other is packed, a few vectors
 * wide ("columns").
 */
enum cpu_gemm_path {
	CPU_GEMM_AUTO,
	CPU_GEMM_DOT,	   /* few rows of A; B is read once, as it is */
	CPU_GEMM_NORMAL,  /* rows of A are broadcast, B is packed */
	CPU_GEMM_SWAPPED, /* rows of B [n][k] are broadcast, A is packed */
	CPU_GEMM_PATHS
};

/* What computes: levels of x86-64, and units beyond them. */
enum cpu_gemm_level {
	CPU_LEVEL_AMX = 5,
	CPU_LEVEL_BF16, /* AVX-512 BF16: A and B in bf16 */
	CPU_LEVEL_VNNI, /* bytes: by AVX-512 VNNI */
	CPU_LEVEL_AVX_VNNI,
	CPU_LEVEL_BYTES, /* by AVX2 */
	CPU_LEVELS
};

struct cpu_gemm_config {
	enum cpu_gemm_path path;
	uint8_t level;	/* 2, 3 or 4: of x86-64; see enum cpu_gemm_level */
	uint8_t rows;	/* of a tile; at most cpu_gemm_rows_max() */
	uint8_t vecs;	/* width of a tile in vectors */
	uint16_t kc;	/* of a tile; at most CPU_GEMM_KC_MAX */
	uint16_t nc;	/* columns packed at a time */
	uint16_t depth; /* multiple of kc: k's packed at a time */
	/* How far CPU_GEMM_DOT fetches ahead; 0: what is good for most. */
	uint16_t ahead_bytes;
};

#define CPU_GEMM_KC_MAX   1024
#define CPU_GEMM_VECS_MAX 4
#define CPU_GEMM_DOT_MAX  32 /* rows of A that CPU_GEMM_DOT takes */

struct cpu_gemm {
	size_t m, n, k;
	float alpha, beta;
	const float *a;
	size_t lda;
	const void *b;
	size_t ldb;
	enum cpu_gemm_type b_type;
	bool b_by_n; /* B is stored [n][k] */
	cpu_gemm_make_fn *make; /* for CPU_GEMM_MADE; it gets `b` */
	bool coarse; /* 16 bits of a value are enough; see above */
	/*
	 * What values of A, and those of B that are wider, may be rounded to:
	 * F32 for not at all, BF16, or INT8 in groups of 32 k's.
	 */
	enum cpu_gemm_type a_as;
	float *c;
	size_t ldc;
	/* NULL: what cpu_gemm_default() says. */
	const struct cpu_gemm_config *config;
};

/* Is it one of those that multiply bytes? */
static inline bool cpu_gemm_is_bytes(unsigned level)
{
	return level >= CPU_LEVEL_VNNI;
}
/*
 * Rows of the largest tile of so many vectors for a B of a type; 0: there is
 * none.  With AMX vectors are of 16 values and rows multiples of 16; kc is 32.
 */
unsigned cpu_gemm_rows_max(unsigned level, enum cpu_gemm_type b_type,
			   unsigned vecs);
/* Has this processor AMX with bf16, and does the system let us use it? */
bool cpu_has_amx(void);
/*
 * The level of this processor, or the one in T0_HOST_SIMD ("v2", "v3", "v4");
 * 5 is v4 with AMX.
 */
unsigned cpu_gemm_level(void);
/* Has this processor what a level takes? */
bool cpu_gemm_has(unsigned level);
/*
 * And may it be taken?  T0_HOST_SIMD names all that may: a level of x86-64, and
 * units behind it, "v4+bf16"; where it is not set, all that there are.
 */
bool cpu_gemm_may(unsigned level);
/*
 * The best of all that there may be for a B of a type, whatever A may be rounded
 * to: what a product's speed is a share of.
 */
unsigned cpu_gemm_best(enum cpu_gemm_type b_type);
/* "AVX2", "AMX, f32 as bf16 parts": what computes at a level. */
const char *cpu_gemm_unit(unsigned level);
/* A good configuration for the shape, without having measured. */
void cpu_gemm_default(const struct cpu_gemm *g, struct cpu_gemm_config *c);
/* Can this product be done so?  If not, *why says what is wrong. */
bool cpu_gemm_legal(const struct cpu_gemm *g,
		    const struct cpu_gemm_config *c, const char **why);

/* ----------------------------------------------------- cpu_gemm.c ------ */

/* Memory for packing, of one thread.  Zero-initialise; grows as needed. */
struct cpu_gemm_scratch {
	void *data;
	size_t size_bytes;
};
void cpu_gemm_scratch_fini(struct cpu_gemm_scratch *s);

/*
 * The share `part` of `parts` of a product.  Shares are independent: each
 * writes its own elements of C, in any order, at once or one after the other,
 * with a scratch that nobody else uses meanwhile.  A configuration that is not
 * legal is a BUG.
 */
void cpu_gemm_part(const struct cpu_gemm *g, struct cpu_gemm_scratch *s,
		   unsigned part, unsigned parts);
/*
 * The same of n products that have m, k, alpha, beta and A in common, as those
 * of one layer's input; A is packed once where it is packed.  The first's
 * configuration is for all.  A is coarse if all of them are; B is of CHANNEL8 in
 * all of them, or in none.
 */
void cpu_gemm_list_part(const struct cpu_gemm *g, size_t n,
			struct cpu_gemm_scratch *s, unsigned part,
			unsigned parts);
/*
 * The yardstick of AMX: so many rounds of multiply-adds of bf16 in registers;
 * returns how many FLOP, 0 without AMX.  A product of f32 and bf16 takes 3 of
 * them, of f32 and f32 6, a coarse one 3.
 */
double cpu_amx_flop(uint64_t rounds);
/*
 * The same of any level that there is: so many rounds of its multiply-adds in
 * registers; returns how many FLOP.
 */
double cpu_gemm_spin(unsigned level, uint64_t rounds);
/* All shares; `s` is [threads_count(t)], or of one where t is NULL. */
void cpu_gemm(const struct cpu_gemm *g, struct cpu_gemm_scratch *s,
	      struct threads *t);

#endif
