/*
 * Host products in tiles of AMX, bit by bit: a model in plain C of how values
 * are cut into bf16 parts and of what the unit does with them.  What the parts
 * lose, what becomes of values that have none, and that neither threads nor
 * blocks change a bit.
 *
 * Intel's manual ("TDPBF16PS"): each pair of k's has two sums, of even and odd
 * k's, by fused multiply-add over the 16 pairs; both are added, then the old
 * value.  Rounded to nearest; denormals are zero, as operands and as results.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/host.h"
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

/* Parts of x, the large one first; what is left in the end is returned. */
static double cut(double x, double part[3])
{
	for (int i = 0; i < 3; i++) {
		part[i] = nearest8(x);
		x -= part[i];
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
 * Pairs of parts, {of A, of B}, in their order; by the type of B.  That of f32
 * is of {B, A} in a swapped product.
 */
static const int order[3][6][2] = {
	{ { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 }, { 0, 0 } },
	{ { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 0 } },
	{ { 2, 0 }, { 1, 0 }, { 0, 0 } },
};
static const int pairs[3] = { 6, 5, 3 };

static float model(const double (*a)[3], const double (*b)[3], size_t k,
		   enum host_gemm_type type, bool swapped)
{
	bool turn = swapped && type == HOST_GEMM_F32;
	float sum = 0;

	for (size_t at = 0; at < k; at += 32)
		for (int i = 0; i < pairs[type]; i++)
			sum = tile_product(sum, a + at, order[type][i][turn],
					   b + at, order[type][i][!turn],
					   k - at < 32 ? k - at : 32);
	return sum;
}

/* ---- products ---- */

enum { M = 37, N = 45, K = 75 };

struct product {
	enum host_gemm_type type;
	float a[M][K], c[M][N];
	double b[N][K];
	union {
		float f[N * K];
		uint16_t h[N * K];
	} stored;
};

static const int bits[3][2] = { { 8, 23 }, { 5, 10 }, { 8, 7 } };
static const char *const types[] = { "f32", "f16", "bf16" };

/* B as double is what its type holds. */
static void b_set(struct product *p, bool by_n, size_t j, size_t k, double v)
{
	uint64_t u = float_bits(v, bits[p->type][0], bits[p->type][1]);
	size_t at = by_n ? j * K + k : k * N + j;

	p->b[j][k] = float_value(u, bits[p->type][0], bits[p->type][1]);
	if (p->type == HOST_GEMM_F32)
		p->stored.f[at] = (float)p->b[j][k];
	else
		p->stored.h[at] = (uint16_t)u;
}

static void fill(struct product *p, bool by_n, enum host_gemm_type type)
{
	p->type = type;
	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			p->a[i][k] = (float)ldexp(uniform(), (int)below(20));
		for (size_t j = 0; j < N; j++)
			b_set(p, by_n, j, k,
			      ldexp(uniform(), (int)below(12) - 8));
	}
}

static void run(struct product *p, bool by_n, enum host_gemm_path path,
		unsigned rows, unsigned vecs, unsigned depth, unsigned parts)
{
	const struct host_gemm_config c = { .path = path, .level = 5,
					    .rows = (uint8_t)rows,
					    .vecs = (uint8_t)vecs,
					    .copy = true, .kc = 32,
					    .depth = (uint16_t)depth,
					    .nc = (uint16_t)(1 + below(60)) };
	const struct host_gemm g = { .m = M, .n = N, .k = K, .alpha = 1,
				     .a = p->a[0], .lda = K,
				     .b = &p->stored, .ldb = by_n ? K : N,
				     .b_type = p->type, .b_by_n = by_n,
				     .c = p->c[0], .ldc = N, .config = &c };
	struct host_gemm_scratch s = { 0 };

	for (unsigned i = 0; i < parts; i++)
		host_gemm_part(&g, &s, i, parts);
	host_gemm_scratch_fini(&s);
}

/* ---- tests ---- */

static void bit_by_bit(struct product *p, enum host_gemm_type type, bool by_n)
{
	static double a[M][K][3], b[N][K][3];
	double left = 0;
	float want[M][N];
	int wrong = 0;

	fill(p, by_n, type);
	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			left = fmax(left, fabs(cut(p->a[i][k], a[i][k])));
		for (size_t j = 0; j < N; j++) {
			left = fmax(left, fabs(cut(p->b[j][k], b[j][k])));
			if (type == HOST_GEMM_F16)
				left = fmax(left, fabs(b[j][k][2]));
			if (type == HOST_GEMM_BF16)
				left = fmax(left, fabs(b[j][k][1]));
		}
	}
	is_f64(left, 0, "%s [%s]: parts lose nothing", types[type],
	       by_n ? "n][k" : "k][n");
	for (int swapped = 0; swapped <= by_n; swapped++) {
		for (size_t i = 0; i < M; i++)
			for (size_t j = 0; j < N; j++)
				want[i][j] = model(a[i], b[j], K, type,
						   swapped);
		for (unsigned x = 0; x < 24; x++) {
			run(p, by_n, HOST_GEMM_NORMAL + swapped,
			    16 + x % 2 * 16, 1 + x / 2 % 2,
			    32 * (1 + x / 4 % 3), 1 + x % 5);
			wrong += memcmp(p->c, want, sizeof(want)) != 0;
		}
	}
	is_i64(wrong, 0, "%s [%s]: bits of the model, whatever the blocks and "
	       "shares", types[type], by_n ? "n][k" : "k][n");
}

/* What is left out, 2^-24 of a product, in the worst case of all parts. */
static void worst_values(struct product *p)
{
	/* 1 + 2^-8 rounds to 1 + 2^-7; the rest leaves most for its parts. */
	static const float bad = 1 + 0x1p-8f - 0x1p-17f + 0x1p-23f;
	double exact = (double)bad * bad * K, worst = 0;

	p->type = HOST_GEMM_F32;
	for (size_t k = 0; k < K; k++) {
		for (size_t i = 0; i < M; i++)
			p->a[i][k] = bad;
		for (size_t j = 0; j < N; j++)
			b_set(p, true, j, k, bad);
	}
	run(p, true, HOST_GEMM_NORMAL, 32, 2, 96, 1);
	worst = fabs(p->c[3][4] - exact) / exact;
	/* The sums round, too: 18 times with 32 k's and each pair of parts. */
	ok(worst < 0x1p-22, "values that are worst to cut: %.3g of the sum",
	   worst);
}

/* The same as in f32: NaN, infinities and values without parts, anywhere. */
static void odd_values(struct product *p, enum host_gemm_type type, bool by_n)
{
	static const float odd[] = { INFINITY, -INFINITY, NAN, FLT_MAX, 0 };
	int wrong = 0;

	for (int round = 0; round < 40; round++) {
		fill(p, by_n, type);
		for (size_t i = below(4); i; i--)
			p->a[below(M)][below(K)] = odd[below(5)];
		for (size_t i = below(4); i; i--)
			b_set(p, by_n, below(N), below(K), odd[below(3)]);
		for (size_t i = below(40); i; i--)
			b_set(p, by_n, below(N), below(K), 0);
		run(p, by_n, HOST_GEMM_NORMAL + (by_n && round & 1), 32, 2, 64,
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
					  fabs(got - sum) > large * 1e-5);
			}
	}
	is_i64(wrong, 0, "%s [%s]: NaN and infinity go where they do in f32",
	       types[type], by_n ? "n][k" : "k][n");
}

static void tiny_values(struct product *p)
{
	fill(p, true, HOST_GEMM_F32);
	for (size_t k = 0; k < K; k++) {
		p->a[0][k] = 0x1p-130f;
		p->a[1][k] = 0x1.8p-126f;
		p->a[2][k] = 0x1.01p-126f;
		b_set(p, true, 0, k, 1);
	}
	run(p, true, HOST_GEMM_NORMAL, 32, 2, 96, 1);
	is_f64(p->c[0][0], 0, "denormals are zero");
	is_f64(p->c[1][0], K * 0x1.8p-126,
	       "the smallest normal values are not");
	is_f64(p->c[2][0], K * 0x1.02p-126, "but their small parts are");
}

static void levels(void)
{
	setenv("T0_HOST_SIMD", "v4", 1);
	is_u64(host_gemm_level(), 4, "T0_HOST_SIMD=v4 is without AMX");
	setenv("T0_HOST_SIMD", "v3", 1);
	is_u64(host_gemm_level(), 3, "and so is v3");
	setenv("T0_HOST_SIMD", "amx", 1);
	is_u64(host_gemm_level(), 5, "amx is with it");
	unsetenv("T0_HOST_SIMD");
	is_u64(host_gemm_level(), 5, "and so is nothing");
	is_str(host_gemm_unit(5), "AMX, f32 as bf16 parts", "it has a name");
	/* 4 tiles of 16 x 16, 32 multiply-adds each. */
	is_f64(host_amx_flop(10), 10 * 4 * 2 * 16 * 16 * 32,
	       "its yardstick counts what it does");
}

int main(void)
{
	const char *s = getenv("T0_SEED");
	struct product *p;

	if (!host_amx())
		skip_all("no AMX here, or the system does not let it be used");
	seed = s ? strtoull(s, NULL, 0) : 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	p = xcalloc(1, sizeof(*p));
	for (int type = 0; type < 3; type++)
		for (int by_n = 0; by_n < 2; by_n++) {
			bit_by_bit(p, (enum host_gemm_type)type, by_n);
			odd_values(p, (enum host_gemm_type)type, by_n);
		}
	worst_values(p);
	tiny_values(p);
	levels();
	free(p);
	return plan_done();
}
