/*
 * Host products in tiles of AMX, bit by bit: a model in plain C of how values
 * are cut into bf16 parts and of what the unit does with them.  What the parts
 * lose, all of them or the two of coarse products, what becomes of values that
 * have none, and that neither threads nor blocks change a bit.
 *
 * Intel's manual ("TDPBF16PS"): each pair of k's has two sums, of even and odd
 * k's, by fused multiply-add over the 16 pairs; both are added, then the old
 * value.  Rounded to nearest; denormals are zero, as operands and as results.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu/gemm.h"
#include "base/float.h"
#include "tests/tap.h"

static uint64_t seed = 1;

static size_t below(size_t n)
{
	return (size_t)(random_next(&seed) % n);
}

static double uniform(void)
{
	return (double)(random_next(&seed) >> 11) * 0x1p-52 - 1;
}

/* ---- the model ---- */

/* The nearest value of 8 significant bits; halves go away from zero. */
static double nearest8(double x)
{
	int e;
	double f = frexp(x, &e);

	return ldexp(round(ldexp(f, 8)), e - 8);
}

/* x without what is behind its 8 significant bits. */
static double cut8(double x)
{
	int e;
	double f = frexp(x, &e);

	return ldexp(trunc(ldexp(f, 8)), e - 8);
}

/* Parts of x, the large one first; what is left in the end is returned. */
static double cut(double x, double part[3], int parts)
{
	for (int i = 0; i < 3; i++) {
		part[i] = i + 1 == parts ? cut8(x) : nearest8(x);
		x -= i < parts ? part[i] : 0;
	}
	return x;
}

static float flushed(float x)
{
	return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static float fma_flushed(float a, float b, float c)
{
	return flushed(fmaf(flushed(a), flushed(b), c));
}

/* One product of tiles for one element: 32 k's of one part each. */
static float tile_product(float sum, const double (*a)[3], int pa,
			  const double (*b)[3], int pb, size_t k)
{
	float even = 0, odd = 0;

	for (size_t i = 0; i < k; i += 2) {
		even = fma_flushed((float)a[i][pa], (float)b[i][pb], even);
		if (i + 1 < k)
			odd = fma_flushed((float)a[i + 1][pa],
					  (float)b[i + 1][pb], odd);
	}
	return flushed(sum + flushed(even + odd));
}

/*
 * Pairs of parts, {of A, of B}, in their order.  Where both sides have as many
 * it is of {B, A} in a swapped product.
 */
struct how {
	int a_parts, b_parts, pairs, order[6][2];
};

/* By the type of B, and coarse. */
static const struct how hows[2][4] = {
	{
		{ 3, 3, 6,
		  { { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 },
		    { 0, 0 } } },
		{ 3, 2, 5,
		  { { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 0 } } },
		{ 3, 1, 3, { { 2, 0 }, { 1, 0 }, { 0, 0 } } },
		{ 3, 3, 6,
		  { { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 },
		    { 0, 0 } } },
	},
	{
		{ 2, 2, 3, { { 0, 1 }, { 0, 0 }, { 1, 0 } } },
		{ 2, 2, 3, { { 0, 1 }, { 0, 0 }, { 1, 0 } } },
		{ 2, 1, 2, { { 1, 0 }, { 0, 0 } } },
		{ 2, 2, 3, { { 0, 1 }, { 0, 0 }, { 1, 0 } } },
	},
};

static float model(const double (*a)[3], const double (*b)[3], size_t k,
		   const struct how *h, bool swapped)
{
	bool turn = swapped && h->a_parts == h->b_parts;
	float sum = 0;

	for (size_t at = 0; at < k; at += 32)
		for (int i = 0; i < h->pairs; i++)
			sum = tile_product(sum, a + at, h->order[i][turn],
					   b + at, h->order[i][!turn],
					   k - at < 32 ? k - at : 32);
	return sum;
}

/* ---- products ---- */

enum { M = 37, N = 45, K = 75 };

struct product {
	enum cpu_gemm_type type;
	bool coarse;
	float a[M][K], c[M][N];
	double b[N][K];
	union {
		float f[N * K];
		uint16_t h[N * K];
	} stored;
};

static const int bits[4][2] = { { 8, 23 }, { 5, 10 }, { 8, 7 }, { 8, 23 } };

/* The product's name, for what is said about it. */
static const char *name(const struct product *p, bool by_n)
{
	static char s[64];

	snprintf(s, sizeof(s), "%s%s [%s]", p->coarse ? "coarse " : "",
		 cpu_gemm_type_name(p->type), by_n ? "n][k" : "k][n");
	return s;
}

static bool is_f32(const struct product *p)
{
	return p->type == CPU_GEMM_F32 || p->type == CPU_GEMM_MADE;
}

static void make(const void *b, size_t row, size_t n, size_t k0, size_t k,
		 float *out, size_t ldo)
{
	const float *from = b;

	for (size_t i = 0; i < n; i++)
		memcpy(out + i * ldo, from + (row + i) * K + k0, k * 4);
}

/* B as double is what its type holds. */
static void b_set(struct product *p, bool by_n, size_t j, size_t k, double v)
{
	uint64_t u = float_bits(v, bits[p->type][0], bits[p->type][1]);
	size_t at = by_n ? j * K + k : k * N + j;

	p->b[j][k] = float_value(u, bits[p->type][0], bits[p->type][1]);
	if (is_f32(p))
		p->stored.f[at] = (float)(isnan(v) ? v : p->b[j][k]);
	else
		p->stored.h[at] = (uint16_t)u;
}

static void fill(struct product *p, bool by_n)
{
	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			p->a[i][k] = (float)ldexp(uniform(), (int)below(20));
		for (size_t j = 0; j < N; j++)
			b_set(p, by_n, j, k,
			      ldexp(uniform(), (int)below(12) - 8));
	}
}

static struct cpu_gemm gemm_of(struct product *p, bool by_n,
			       const struct cpu_gemm_config *c)
{
	return (struct cpu_gemm){ .m = M, .n = N, .k = K, .alpha = 1,
				  .a = p->a[0], .lda = K,
				  .b = &p->stored, .ldb = by_n ? K : N,
				  .b_type = p->type, .b_by_n = by_n,
				  .make = make, .coarse = p->coarse,
				  .c = p->c[0], .ldc = N, .config = c };
}

static void run(struct product *p, bool by_n, enum cpu_gemm_path path,
		unsigned rows, unsigned vecs, unsigned depth, unsigned parts)
{
	const struct cpu_gemm_config c = { .path = path, .level = 5,
					   .rows = (uint8_t)rows,
					   .vecs = (uint8_t)vecs,
					   .kc = 32,
					   .depth = (uint16_t)depth,
					   .nc = (uint16_t)(1 + below(60)) };
	const struct cpu_gemm g = gemm_of(p, by_n, &c);
	struct cpu_gemm_scratch s = { 0 };

	for (unsigned i = 0; i < parts; i++)
		cpu_gemm_part(&g, &s, i, parts);
	cpu_gemm_scratch_fini(&s);
}

/* ---- tests ---- */

static void bit_by_bit(struct product *p, bool by_n)
{
	static double a[M][K][3], b[N][K][3];
	const struct how *h = &hows[p->coarse][p->type];
	double left = 0;
	float want[M][N];
	int wrong = 0;

	fill(p, by_n);
	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			left = fmax(left, fabs(cut(p->a[i][k], a[i][k],
						   h->a_parts) /
					       p->a[i][k]));
		for (size_t j = 0; j < N; j++)
			left = fmax(left, fabs(cut(p->b[j][k], b[j][k],
						   h->b_parts) /
					       p->b[j][k]));
	}
	ok(p->coarse ? left > 0 && left < 0x1p-16 : left == 0,
	   "%s: parts lose %s", name(p, by_n),
	   p->coarse ? "less than 2^-16" : "nothing");
	for (int swapped = 0; swapped <= by_n; swapped++) {
		for (size_t i = 0; i < M; i++)
			for (size_t j = 0; j < N; j++)
				want[i][j] = model(a[i], b[j], K, h, swapped);
		for (unsigned x = 0; x < 24; x++) {
			run(p, by_n, CPU_GEMM_NORMAL + swapped,
			    16 + x % 2 * 16, 1 + x / 2 % 2,
			    32 * (1 + x / 4 % 3), 1 + x % 5);
			wrong += memcmp(p->c, want, sizeof(want)) != 0;
		}
	}
	is_i64(wrong, 0, "%s: bits of the model, whatever the blocks and "
	       "shares", name(p, by_n));
}

/*
 * A list of coarse products on top of what is in C, against double.  The
 * elements of a row of A are alike, and so are those of a column: what their
 * parts lose adds up instead of cancelling out.  Without the second part of
 * one side errors come up to 2^-9.
 */
static void coarse_lists(struct product *p, enum cpu_gemm_path path)
{
	const struct cpu_gemm_config c = { .path = path, .level = 5,
					   .rows = 32, .vecs = 2,
					   .kc = 32,
					   .depth = 64, .nc = 32 };
	static float second[M][N], before[M][N];
	struct cpu_gemm g[2] = { gemm_of(p, true, &c), gemm_of(p, true, &c) };
	struct cpu_gemm_scratch s = { 0 };
	double worst = 0;

	for (size_t i = 0; i < M; i++)
		for (size_t k = 0; k < K; k++)
			p->a[i][k] = 1 + (float)i * 0x1.234567p-6f;
	for (size_t j = 0; j < N; j++)
		for (size_t k = 0; k < K; k++)
			b_set(p, true, j, k, 1 + (double)j * 0x1.a5678p-6);
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++)
			p->c[i][j] = second[i][j] = before[i][j] =
				(float)uniform();
	/* The second one has but some of the first's rows of B. */
	g[1].n = N - 7;
	g[1].b = p->stored.f + 7 * K;
	g[1].c = second[0];
	for (int i = 0; i < 2; i++) {
		g[i].alpha = .5f;
		g[i].beta = -3;
	}
	for (unsigned i = 0; i < 3; i++)
		cpu_gemm_list_part(g, 2, &s, i, 3);
	cpu_gemm_scratch_fini(&s);
	for (size_t i = 0; i < M; i++)
		for (size_t j = 0; j < N; j++) {
			double product = K * .5 * p->a[i][0] * p->b[j][0];
			double want = product - 3. * before[i][j];
			double off = fabs(p->c[i][j] - want) / product;
			worst = fmax(worst, off);
			if (j < 7)
				continue;
			want = product - 3. * before[i][j - 7];
			off = fabs(second[i][j - 7] - want) / product;
			worst = fmax(worst, off);
		}
	ok(worst < 0x1p-14, "%s, path %d: a list of them, %.3g of a product "
	   "at most", name(p, true), path, worst);
}

/* The other levels have no parts: all bits count. */
static void coarse_without(struct product *p)
{
	float fine[M][N];

	fill(p, true);
	setenv("T0_HOST_SIMD", "v4", 1);
	for (int coarse = 0; coarse < 2; coarse++) {
		struct cpu_gemm g = gemm_of(p, true, NULL);
		struct cpu_gemm_scratch s = { 0 };
		g.coarse = coarse;
		cpu_gemm(&g, &s, NULL);
		cpu_gemm_scratch_fini(&s);
		if (!coarse)
			memcpy(fine, p->c, sizeof(fine));
	}
	unsetenv("T0_HOST_SIMD");
	ok(!memcmp(fine, p->c, sizeof(fine)),
	   "%s: without AMX the same as others", name(p, true));
}

/* What is left out, 2^-24 of a product, in the worst case of all parts. */
static void worst_values(struct product *p)
{
	/* 1 + 2^-8 rounds to 1 + 2^-7; the rest leaves most for its parts. */
	static const float bad = 1 + 0x1p-8f - 0x1p-17f + 0x1p-23f;
	double exact = (double)bad * bad * K, worst = 0;

	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			p->a[i][k] = bad;
		for (size_t j = 0; j < N; j++)
			b_set(p, true, j, k, bad);
	}
	run(p, true, CPU_GEMM_NORMAL, 32, 2, 96, 1);
	worst = fabs(p->c[3][4] - exact) / exact;
	/* The sums round, too: 18 times with 32 k's and each pair of parts. */
	ok(worst < 0x1p-22, "values that are worst to cut: %.3g of the sum",
	   worst);
}

/* The same as in f32: NaN, infinities and values without parts, anywhere. */
static void odd_values(struct product *p, bool by_n)
{
	/* As a number the second NaN would be rounded to 0. */
	const float odd[] = { INFINITY, -INFINITY, NAN, -nanf("0x3fffff"),
			      FLT_MAX, 0 };
	const double bound = p->coarse ? 0x1p-14 : 1e-5;
	int wrong = 0;

	for (int round = 0; round < 40; round++) {
		fill(p, by_n);
		for (size_t i = below(4); i; i--)
			p->a[below(M)][below(K)] = odd[below(6)];
		for (size_t i = below(4); i; i--)
			b_set(p, by_n, below(N), below(K), odd[below(4)]);
		for (size_t i = below(40); i; i--)
			b_set(p, by_n, below(N), below(K), 0);
		run(p, by_n, CPU_GEMM_NORMAL + (by_n && round & 1), 32, 2, 64,
		    1 + (unsigned)below(3));
		for (size_t i = 0; i < M; i++)
			for (size_t j = 0; j < N; j++) {
				double sum = 0, got = p->c[i][j], large = 0;
				for (size_t k = 0; k < K; k++) {
					double v = p->a[i][k] * p->b[j][k];
					sum += v;
					large += isfinite(v) ? fabs(v) : 0;
				}
				/* Where f32 overflows depends on the order. */
				if (large > FLT_MAX)
					continue;
				wrong += isnan(sum) != isnan(got) ||
					 (isinf(sum) && sum != got) ||
					 (isfinite((float)sum) &&
					  fabs(got - sum) > large * bound);
			}
	}
	is_i64(wrong, 0, "%s: NaN and infinity go where they do in f32",
	       name(p, by_n));
}

static void tiny_values(struct product *p)
{
	fill(p, true);
	for (size_t k = 0; k < K; k++) {
		p->a[0][k] = 0x1p-130f;
		p->a[1][k] = 0x1.8p-126f;
		p->a[2][k] = 0x1.01p-126f;
		b_set(p, true, 0, k, 1);
	}
	run(p, true, CPU_GEMM_NORMAL, 32, 2, 96, 1);
	is_f64(p->c[0][0], 0, "denormals are zero");
	is_f64(p->c[1][0], K * 0x1.8p-126,
	       "the smallest normal values are not");
	is_f64(p->c[2][0], K * 0x1.02p-126, "but their small parts are");
}

static void levels(void)
{
	setenv("T0_HOST_SIMD", "v4", 1);
	is_u64(cpu_gemm_level(), 4, "T0_HOST_SIMD=v4 is without AMX");
	setenv("T0_HOST_SIMD", "v3", 1);
	is_u64(cpu_gemm_level(), 3, "and so is v3");
	setenv("T0_HOST_SIMD", "amx", 1);
	is_u64(cpu_gemm_level(), 5, "amx is with it");
	unsetenv("T0_HOST_SIMD");
	is_u64(cpu_gemm_level(), 5, "and so is nothing");
	is_str(cpu_gemm_unit(5), "AMX, f32 as bf16 parts", "it has a name");
	/* 4 tiles of 16 x 16, 32 multiply-adds each. */
	is_f64(cpu_amx_flop(10), 10 * 4 * 2 * 16 * 16 * 32,
	       "its yardstick counts what it does");
}

int main(void)
{
	const char *s = getenv("T0_SEED");
	struct product *p;

	if (!cpu_has_amx())
		skip_all("no AMX here, or the system does not let it be used");
	seed = s ? strtoull(s, NULL, 0) : 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	p = xcalloc(1, sizeof(*p));
	for (int i = 0; i < 16; i++) {
		p->type = (enum cpu_gemm_type)(i / 2 % 4);
		p->coarse = i / 8;
		/* What is made is [n][k]. */
		if (p->type == CPU_GEMM_MADE && i % 2 == 0)
			continue;
		bit_by_bit(p, i % 2);
		odd_values(p, i % 2);
	}
	coarse_without(p);
	coarse_lists(p, CPU_GEMM_NORMAL);
	coarse_lists(p, CPU_GEMM_SWAPPED);
	p->type = CPU_GEMM_F32;
	p->coarse = false;
	worst_values(p);
	tiny_values(p);
	levels();
	free(p);
	return plan_done();
}
