/*
 * autotune/cpu/gemm_plan.c - which paths and tiles a product may take, and a
 * good default.
 */
#include <cpuid.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cpu/gemm_int.h"

extern const struct cpu_gemm_kernels cpu_gemm_kernels_v2, cpu_gemm_kernels_v3,
	cpu_gemm_kernels_v4, cpu_gemm_kernels_bf16;

const struct cpu_gemm_kernels *cpu_gemm_kernels(unsigned level)
{
	return level == CPU_LEVEL_BF16 ? &cpu_gemm_kernels_bf16 :
	       level >= 4 ? &cpu_gemm_kernels_v4 :
	       level == 3 ? &cpu_gemm_kernels_v3 :
			    &cpu_gemm_kernels_v2;
}

/* Asked once, too: of a hypervisor, and for every product. */
bool cpu_has_avx_vnni(void)
{
	enum { UNKNOWN, NO, YES };
	static _Atomic int known;
	int has = atomic_load_explicit(&known, memory_order_relaxed);
	unsigned a, b, c, d;

	if (has == UNKNOWN) {
		has = cpu_level("") >= 3 &&
				      __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
				      a >> 4 & 1 ?
			      YES :
			      NO;
		atomic_store_explicit(&known, has, memory_order_relaxed);
	}
	return has == YES;
}

static bool has_wide_vnni(void)
{
	return cpu_level("") >= 4 && __builtin_cpu_supports("avx512vnni");
}

bool cpu_gemm_has(unsigned level)
{
	const unsigned v = (unsigned)cpu_level("");

	switch (level) {
	case CPU_LEVEL_AMX:
		return cpu_has_amx();
	case CPU_LEVEL_BF16:
		return v >= 4 && __builtin_cpu_supports("avx512bf16");
	case CPU_LEVEL_VNNI:
		return has_wide_vnni();
	case CPU_LEVEL_AVX_VNNI:
		return has_wide_vnni() || cpu_has_avx_vnni();
	case CPU_LEVEL_BYTES:
		return v >= 3;
	default:
		return level >= 2 && level <= v;
	}
}

/* Behind which name T0_HOST_SIMD lets a unit be. */
static const char *const unit_asked[CPU_LEVELS] = {
	[CPU_LEVEL_AMX] = "+amx",
	[CPU_LEVEL_BF16] = "+bf16",
	[CPU_LEVEL_VNNI] = "+vnni",
	[CPU_LEVEL_AVX_VNNI] = "+vnni",
	[CPU_LEVEL_BYTES] = "v",
};
/* And with which level of x86-64. */
static const uint8_t unit_of[CPU_LEVELS] = {
	[CPU_LEVEL_AMX] = 4, [CPU_LEVEL_BF16] = 4, [CPU_LEVEL_VNNI] = 4,
	[CPU_LEVEL_AVX_VNNI] = 3, [CPU_LEVEL_BYTES] = 3,
};

bool cpu_gemm_may(unsigned level)
{
	const char *most = getenv("T0_HOST_SIMD");
	const unsigned v = (unsigned)cpu_level("T0_HOST_SIMD");

	if (level < CPU_LEVEL_AMX)
		return level <= v;
	return cpu_gemm_has(level) && v >= unit_of[level] &&
	       (!most || !*most || strstr(most, unit_asked[level]));
}

unsigned cpu_gemm_level(void)
{
	return cpu_gemm_may(CPU_LEVEL_AMX) ? CPU_LEVEL_AMX :
					     (unsigned)cpu_level("T0_HOST_SIMD");
}

const char *cpu_gemm_unit(unsigned level)
{
	static const char *const unit[] = {
		[2] = "SSE4", [3] = "AVX2", [4] = "AVX-512",
		[CPU_LEVEL_AMX] = "AMX, f32 as bf16 parts",
		[CPU_LEVEL_BF16] = "AVX-512 BF16",
		[CPU_LEVEL_VNNI] = "AVX-512 VNNI",
		[CPU_LEVEL_AVX_VNNI] = "AVX-VNNI",
		[CPU_LEVEL_BYTES] = "AVX2, 8 bits"
	};

	return unit[level];
}

const char *cpu_gemm_type_name(enum cpu_gemm_type type)
{
	static const char *const name[CPU_GEMM_TYPES] = {
		[CPU_GEMM_F32] = "f32",	  [CPU_GEMM_F16] = "f16",
		[CPU_GEMM_BF16] = "bf16", [CPU_GEMM_MADE] = "made",
		[CPU_GEMM_INT8] = "int8", [CPU_GEMM_INT4] = "int4",
		[CPU_GEMM_CHANNEL8] = "channel8"
	};

	return name[type];
}

unsigned cpu_gemm_rows_max(unsigned level, enum cpu_gemm_type b_type,
			   unsigned vecs)
{
	if (vecs < 1 || vecs > CPU_GEMM_VECS_MAX)
		return 0;
	if (level == CPU_AMX_LEVEL)
		return vecs <= 2 ? CPU_AMX_ROWS_MAX : 0;
	if (cpu_gemm_is_bytes(level))
		return vecs <= cpu_bytes_kernels(level, b_type)->vecs ?
			       cpu_bytes_kernels(level, b_type)->rows :
			       0;
	return cpu_gemm_kernels(level)->rows[vecs - 1];
}

unsigned cpu_gemm_best(enum cpu_gemm_type b_type)
{
	const unsigned plain = (unsigned)cpu_level("T0_HOST_SIMD");

	if (b_type == CPU_GEMM_BF16 || b_type >= CPU_GEMM_MADE) {
		if (cpu_gemm_may(CPU_LEVEL_AMX))
			return CPU_LEVEL_AMX;
	}
	if (b_type == CPU_GEMM_BF16 && cpu_gemm_may(CPU_LEVEL_BF16))
		return CPU_LEVEL_BF16;
	for (unsigned i = CPU_LEVEL_VNNI; i < CPU_LEVELS; i++)
		if (b_type >= CPU_GEMM_MADE && cpu_gemm_may(i))
			return i;
	return plain;
}

double cpu_gemm_spin(unsigned level, uint64_t rounds)
{
	switch (level) {
	case CPU_LEVEL_AMX:
		return cpu_amx_flop(rounds);
	case 2:
		return cpu_gemm_spin_v2(level, rounds);
	case 3:
	case CPU_LEVEL_AVX_VNNI:
	case CPU_LEVEL_BYTES:
		return cpu_gemm_spin_v3(level, rounds);
	default:
		return cpu_gemm_spin_v4(level, rounds);
	}
}

/* ---- what can be done ---- */

/* A tile of AMX holds all of what it sums up; there is no smaller step. */
static const char *illegal_amx(const struct cpu_gemm_config *c)
{
	return c->rows % 16			   ? "rows are not of tiles" :
	       c->kc != CPU_AMX_K		   ? "kc is not a tile's" :
	       c->depth < c->kc || c->depth % c->kc ? "depth is not of tiles" :
						     NULL;
}

static const char *illegal_bytes(const struct cpu_gemm *g,
				 const struct cpu_gemm_config *c)
{
	return g->a_as != CPU_GEMM_INT8	    ? "A must not be rounded to bytes" :
	       g->b_type < CPU_GEMM_MADE    ? "B is not of integers" :
	       c->path != CPU_GEMM_NORMAL   ? "bytes have one path" :
	       c->kc < 1 || c->depth != c->kc ? "depth is not kc" :
	       g->b_type == CPU_GEMM_CHANNEL8 && g->k > CPU_GEMM_CHANNEL_K ?
						"k is too large for exact sums" :
						NULL;
}

static const char *find_illegal(const struct cpu_gemm *g,
				const struct cpu_gemm_config *c)
{
	if (!cpu_gemm_has(c->level))
		return "the processor lacks this level";
	if (c->level == CPU_LEVEL_BF16 && g->a_as != CPU_GEMM_BF16)
		return "A must not be rounded to bf16";
	if (g->b_type >= CPU_GEMM_MADE && !g->b_by_n)
		return "B is made, but not [n][k]";
	if (c->path == CPU_GEMM_DOT)
		return c->level > 4 ? "AMX has tiles only" :
		       g->b_type >= CPU_GEMM_MADE ? "B is made, not stored" :
		       g->m > CPU_GEMM_DOT_MAX ? "too many rows of A" :
						  NULL;
	if (c->path != CPU_GEMM_NORMAL && c->path != CPU_GEMM_SWAPPED)
		return "no such path";
	if (c->path == CPU_GEMM_SWAPPED && !g->b_by_n)
		return "B is stored [k][n]";
	if (c->rows < 1 ||
	    c->rows > cpu_gemm_rows_max(c->level, g->b_type, c->vecs))
		return "no such tile";
	if (c->nc < 1)
		return "nc is 0";
	if (c->level == CPU_AMX_LEVEL)
		return illegal_amx(c);
	if (cpu_gemm_is_bytes(c->level))
		return illegal_bytes(g, c);
	if (c->kc < 16 || c->kc > CPU_GEMM_KC_MAX || c->kc % 16)
		return "kc is not a multiple of 16 up to the largest";
	if (g->b_type >= CPU_GEMM_MADE && c->kc % CPU_GEMM_MADE_STEP)
		return "kc is not a multiple of what is made at a time";
	if (c->depth < c->kc || c->depth % c->kc)
		return "depth is not a multiple of kc";
	return NULL;
}

bool cpu_gemm_legal(const struct cpu_gemm *g,
		    const struct cpu_gemm_config *c, const char **why)
{
	*why = find_illegal(g, c);
	return !*why;
}

/* ---- what is good without having measured ---- */

/* Asked once: sysconf() runs CPUID, which a hypervisor makes slow. */
static size_t second_cache_bytes(void)
{
	static _Atomic long known;
	long bytes = atomic_load_explicit(&known, memory_order_relaxed);

	if (!bytes) {
		bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
		bytes = bytes > 0 ? bytes : 256 << 10;
		atomic_store_explicit(&known, bytes, memory_order_relaxed);
	}
	return (size_t)bytes;
}

/* Columns that fill 3/8 of the second cache: rows, C, what is fetched ahead. */
static uint16_t columns_of(unsigned kc)
{
	size_t nc = second_cache_bytes() / 8 * 3 / (kc * sizeof(float));

	nc = nc / 64 * 64;
	return (uint16_t)(nc < 64 ? 64 : nc > 4096 ? 4096 : nc);
}

/*
 * A swapped product turns C back once per depth, so all of k if that fits half
 * of the second cache, else even parts of it.
 */
static unsigned depth_of(const struct cpu_gemm *g,
			 const struct cpu_gemm_config *c)
{
	unsigned lanes = cpu_gemm_kernels(c->level)->lanes;
	size_t columns = (g->m + lanes) / lanes * lanes;
	size_t fit = second_cache_bytes() / 2 / sizeof(float) / columns / c->kc;
	size_t steps = (g->k + c->kc - 1) / c->kc;

	fit = fit < 1 ? 1 : fit > 16 ? 16 : fit;
	if (steps > fit)
		steps = (steps + (steps + fit - 1) / fit - 1) /
			((steps + fit - 1) / fit);
	return (unsigned)(steps < 1 ? 1 : steps) * c->kc;
}

void cpu_gemm_blocks(const struct cpu_gemm *g, bool deep,
		     struct cpu_gemm_config *c)
{
	c->depth = (uint16_t)(deep ? depth_of(g, c) : c->kc);
	c->nc = columns_of(c->depth);
	/* What the depth was made to hold. */
	if (c->depth > c->kc && c->nc < g->m)
		c->nc = (uint16_t)g->m;
}

void cpu_amx_blocks(const struct cpu_gemm *g, size_t depth,
		    struct cpu_gemm_config *c)
{
	enum cpu_gemm_type type = c->path == CPU_GEMM_SWAPPED ?
					   CPU_GEMM_F32 :
					   g->b_type;
	unsigned parts = cpu_amx_parts(type, g->coarse);
	size_t steps = (g->k + depth - 1) / depth, bytes, nc;

	steps = steps ? steps : 1;
	depth = (g->k + steps - 1) / steps;
	depth = (depth + CPU_AMX_K - 1) / CPU_AMX_K * CPU_AMX_K;
	c->depth = (uint16_t)(depth ? depth : CPU_AMX_K);
	bytes = cpu_amx_bytes(parts, 32, c->depth);
	nc = second_cache_bytes() / 2 / bytes * 32;
	c->nc = (uint16_t)(nc < 32 ? 32 : nc > 4096 ? 4096 : nc);
}

/*
 * What won on Sapphire Rapids (v4, and v3 on the same).  With so many rows of A
 * it is better to read B as it is than to pack anything: sums along k where B
 * is [n][k], of its rows where it is [k][n].  Where packed bf16 is multiplied
 * twice as fast, that pays earlier: of 6 rows it takes 0.77 of the time on Zen 4.
 */
static size_t dot_rows(const struct cpu_gemm *g, unsigned level)
{
	return !g->b_by_n		 ? 16 :
	       level == CPU_LEVEL_BF16 ? 4 :
	       level >= 4		 ? 8 :
	       level == 3		 ? 4 :
					   3;
}

/*
 * Turning the smaller side is cheaper, but to turn C back costs more than both:
 * its rows are far apart.  And a tile has whole vectors of rows of A then.
 *
 * Measured on Zen 4 with Qwen3-0.6B's weights: up to how many rows that pays,
 * and as much as how many rows turning B costs more, by AVX2 and by AVX-512.
 */
static const struct {
	uint8_t most, more[2];
} swapped_rows[] = {
	[CPU_GEMM_F32] = { 96, { 5, 2 } },
	[CPU_GEMM_F16] = { 32, { 2, 1 } },
	[CPU_GEMM_BF16] = { 32, { 2, 1 } },
	[CPU_GEMM_MADE] = { 128, { 8, 8 } },
};
#define SWAPPED_MOST 128

static bool swapped_pays(const struct cpu_gemm *g, unsigned level)
{
	size_t type = g->b_type < CPU_GEMM_MADE ? g->b_type : CPU_GEMM_MADE;
	size_t lanes = cpu_gemm_kernels(level)->lanes;
	size_t width = (g->m + lanes - 1) / lanes * lanes;

	return g->b_by_n && g->m < g->n &&
	       g->m <= swapped_rows[type].most &&
	       width < g->m + swapped_rows[type].more[level >= 4];
}

static void plan_tile(const struct cpu_gemm *g, struct cpu_gemm_config *c)
{
	bool wide = c->level >= 4;
	size_t lanes = cpu_gemm_kernels(c->level)->lanes;

	c->rows = wide ? 12 : 6;
	c->vecs = 2;
	/* 0.97 of the time of 12x2, but for columns that half fill it. */
	if (wide && c->path == CPU_GEMM_NORMAL && g->n > 64) {
		c->rows = 8;
		c->vecs = 3;
	}
	if (c->path == CPU_GEMM_SWAPPED && g->m <= lanes) {
		c->rows = wide ? 16 : 12;
		c->vecs = 1;
	}
}

/*
 * From so many rows of A on packing parts pays: 1.2 to 1.3 of the rate of v4 at
 * the first, measured on Sapphire Rapids with 1024 columns and k's; at 64 x 64
 * both are the same.  Coarse products gain no earlier: of 16 rows of A with
 * int8 v4 takes 0.9 of the time.
 */
static bool amx_pays(const struct cpu_gemm *g)
{
	size_t rows = 8 * cpu_amx_parts(g->b_type, false);

	return g->m >= (g->b_by_n ? rows : 2 * rows) &&
	       g->m * g->n > 64 * 64 && g->n >= 16 && g->k >= CPU_AMX_K;
}

/*
 * All of a panel's groups, that sums be added to C once, as long as they fit
 * half of the second cache and a tile's rows of them half of the first.
 */
#define BYTES_GROUPS 384

static void plan_bytes(const struct cpu_gemm *g, unsigned level,
		       struct cpu_gemm_config *c)
{
	const struct cpu_bytes_kernels *k = cpu_bytes_kernels(level, g->b_type);
	size_t groups = (g->k + CPU_BYTES_GROUP - 1) / CPU_BYTES_GROUP;
	size_t most = BYTES_GROUPS / k->rows;
	size_t parts = (groups + most - 1) / most;
	uint16_t kc = (uint16_t)((groups + parts - 1) / parts);

	*c = (struct cpu_gemm_config){ .level = (uint8_t)level,
				       .path = CPU_GEMM_NORMAL,
				       .rows = k->rows,
				       .vecs = k->vecs,
				       .kc = kc,
				       .depth = kc,
				       .nc = 1 };
}

static void plan_amx(const struct cpu_gemm *g, struct cpu_gemm_config *c)
{
	*c = (struct cpu_gemm_config){ .level = CPU_AMX_LEVEL,
				       .path = g->b_by_n && g->m < g->n &&
							g->m <= SWAPPED_MOST ?
							CPU_GEMM_SWAPPED :
							CPU_GEMM_NORMAL,
				       .rows = 32,
				       .vecs = 2,
				       .kc = CPU_AMX_K };
	cpu_amx_blocks(g,
		       c->path == CPU_GEMM_SWAPPED ||
					g->b_type == CPU_GEMM_BF16 ?
				1024 :
				512,
		       c);
	if (c->path == CPU_GEMM_SWAPPED)
		c->nc = SWAPPED_MOST;
}

void cpu_gemm_plan(const struct cpu_gemm *g, unsigned level,
		   struct cpu_gemm_config *c)
{
	if (level == CPU_AMX_LEVEL && amx_pays(g)) {
		plan_amx(g, c);
		return;
	}
	if (g->a_as == CPU_GEMM_BF16 && level > 4 &&
	    cpu_gemm_may(CPU_LEVEL_BF16))
		level = CPU_LEVEL_BF16;
	if (cpu_gemm_is_bytes(level)) {
		plan_bytes(g, level, c);
		return;
	}
	level = level > 4 && level != CPU_LEVEL_BF16 ? 4 : level;
	*c = (struct cpu_gemm_config){
		.level = (uint8_t)level,
		.path = swapped_pays(g, level) ? CPU_GEMM_SWAPPED :
						 CPU_GEMM_NORMAL,
		.kc = 512,
	};
	if (g->m <= dot_rows(g, level) && g->b_type < CPU_GEMM_MADE) {
		c->path = CPU_GEMM_DOT;
		c->level = level > 4 ? 4 : (uint8_t)level;
		c->kc = 0;
		return;
	}
	plan_tile(g, c);
	cpu_gemm_blocks(g, c->path == CPU_GEMM_SWAPPED, c);
}

/* The best level of bytes there may be; 0: none. */
static unsigned bytes_level(const struct cpu_gemm *g)
{
	if (g->a_as != CPU_GEMM_INT8 || g->b_type < CPU_GEMM_MADE ||
	    (g->b_type == CPU_GEMM_CHANNEL8 && g->k > CPU_GEMM_CHANNEL_K))
		return 0;
	for (unsigned level = CPU_LEVEL_VNNI; level <= CPU_LEVEL_BYTES; level++)
		if (cpu_gemm_may(level))
			return level;
	return 0;
}

void cpu_gemm_default(const struct cpu_gemm *g, struct cpu_gemm_config *c)
{
	unsigned level = cpu_gemm_level(), bytes = bytes_level(g);

	if (bytes) {
		plan_bytes(g, bytes, c);
		return;
	}
	if (level == 4 && g->a_as == CPU_GEMM_BF16 &&
	    cpu_gemm_may(CPU_LEVEL_BF16))
		level = CPU_LEVEL_BF16;
	cpu_gemm_plan(g, level, c);
}
