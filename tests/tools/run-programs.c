/*
 * Larger kernels from end to end, as tests/tools/run-kernels has the small
 * ones: sorts, linear algebra, recursion, atomics, transforms, matrices of
 * integers.
 */
#include "tests/tools/run-kernels.h"

static int compare_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void test_sort(const char *name, const char *options, int group)
{
	uint32_t x[512], wanted[512];
	struct arg arg[] = { MEM(x) };

	for (int i = 0; i < 512; i++)
		x[i] = i % 5 ? next_random() : next_random() % 16;
	memcpy(wanted, x, sizeof(x));
	for (int i = 0; i < 512; i += group)
		qsort(wanted + i, (size_t)group, sizeof(*wanted), compare_u32);
	if (run(name, name, options, arg, 1))
		is_mem(x, wanted, sizeof(x), "%s: %s sorts each workgroup's",
		       label, name);
}

static void test_gemm(void)
{
	enum { M = 37, N = 21, K = 45 };
	float a[M * K], b[K * N], c[M * N], wanted[M * N];
	struct arg arg[] = { MEM(a), MEM(b), MEM(c),
			     { "u32:37", NULL, 0 },
			     { "u32:21", NULL, 0 },
			     { "u32:45", NULL, 0 } };

	for (int i = 0; i < M * K; i++)
		a[i] = (float)small(100) / 4;
	for (int i = 0; i < K * N; i++)
		b[i] = (float)small(100) / 4;
	for (int i = 0; i < M * N; i++) {
		float sum = 0;

		c[i] = wanted[i] = (float)small(100);
		for (int k = 0; k < K; k++)
			sum = fmaf(a[i / N * K + k], b[k * N + i % N], sum);
		wanted[i] += sum;
	}
	if (run("sgemm", "sgemm", "--grid 32,48 --block 16,16", arg, 6))
		is_mem(c, wanted, sizeof(c), "%s: tiles with tails", label);
}

static void test_gemv(void)
{
	enum { M = 5, N = 200 };
	double a[M * N], x[N], y[M] = { 0 }, wanted[M];
	struct arg arg[] = { MEM(a), MEM(x), MEM(y), { "u32:200", NULL, 0 } };

	for (int i = 0; i < N; i++)
		x[i] = small(1000) / 3.0;
	for (int i = 0; i < M * N; i++)
		a[i] = small(1000) / 7.0;
	for (int row = 0; row < M; row++) {
		double part[64] = { 0 };

		for (int j = 0; j < N; j++)
			part[j % 64] = fma(a[row * N + j], x[j], part[j % 64]);
		for (int step = 32; step; step /= 2)
			for (int i = 0; i < step; i++)
				part[i] += part[i + step];
		wanted[row] = part[0];
	}
	if (run("gemv", "gemv", "--grid 320 --block 64", arg, 4))
		is_mem(y, wanted, sizeof(y), "%s: sums of doubles", label);
}

static void test_spmv(void)
{
	enum { ROWS = 64, MOST = 40 };
	uint32_t start[ROWS + 1] = { 0 };
	uint16_t column[ROWS * MOST];
	float value[ROWS * MOST], x[256], y[ROWS] = { 0 }, wanted[ROWS];
	struct arg arg[] = { MEM(start), MEM(column), MEM(value), MEM(x),
			     MEM(y) };
	uint32_t n = 0;

	memset(column, 0, sizeof(column));
	memset(value, 0, sizeof(value));
	for (int i = 0; i < 256; i++)
		x[i] = (float)small(50) / 2;
	for (int row = 0; row < ROWS; row++) {
		float sum = 0;
		bool full = false;

		for (uint32_t k = next_random() % MOST; k; k--, n++) {
			column[n] = next_random() % 256;
			value[n] = row == 9 ? 1e5f : (float)small(3);
			if (full || value[n] == 0)
				continue;
			sum = fmaf(value[n], x[column[n]], sum);
			full = sum > 1e6f;
		}
		start[row + 1] = n;
		wanted[row] = sum;
	}
	if (run("spmv", "spmv", "--grid 64 --block 32", arg, 5))
		is_mem(y, wanted, sizeof(y), "%s: rows of every length", label);
}

static void test_mandel(void)
{
	enum { WIDTH = 32, HEIGHT = 16 };
	uint16_t steps[WIDTH * HEIGHT] = { 0 }, wanted[WIDTH * HEIGHT];
	struct arg arg[] = { MEM(steps),
			     { "f32:-2", NULL, 0 },
			     { "f32:-1", NULL, 0 },
			     { "f32:0.09375", NULL, 0 },
			     { "u32:32", NULL, 0 } };

	for (int i = 0; i < WIDTH * HEIGHT; i++) {
		float cx = fmaf((float)(i % WIDTH), 0.09375f, -2);
		float cy = fmaf((float)(i / WIDTH), 0.09375f, -1);
		float x = 0, y = 0;
		int n = 0;

		for (; n < 200; n++) {
			volatile float xx = x * x, yy = y * y;

			if (fmaf(y, y, xx) > 4)
				break;
			y = fmaf(x + x, y, cy);
			x = (xx - yy) + cx;
		}
		wanted[i] = (uint16_t)n;
	}
	if (run("mandel", "mandel", "--grid 512 --block 128", arg, 5))
		is_mem(steps, wanted, sizeof(steps), "%s: escape times", label);
}

static uint32_t ackermann(uint32_t m, uint32_t n)
{
	if (!m)
		return n + 1;
	return ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

static void test_recurse(void)
{
	uint32_t x[64], y[64] = { 0 }, wanted[64];
	struct arg arg[] = { MEM(x), MEM(y) };

	for (int i = 0; i < 64; i++) {
		x[i] = next_random();
		wanted[i] = ackermann(x[i] & 1, x[i] >> 1 & 7);
	}
	if (run("functions", "recurse", "--grid 64 --block 64 --stack 2k", arg,
		2))
		is_mem(y, wanted, sizeof(y), "%s: calls that call themselves",
		       label);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t v = i, a = x[i] | 1;

		for (int k = 0; k < 8; k++)
			switch (x[i] >> 4 * k & 3) {
			case 1:
				v *= a;
				break;
			case 2:
				v = v << (a & 31) | v >> (-a & 31);
				break;
			default:
				v += a;
			}
		wanted[i] = v;
	}
	if (run("functions", "choose", "--grid 64 --block 64 --stack 1k", arg,
		2))
		is_mem(y, wanted, sizeof(y), "%s: calls of several", label);
}

static void test_atomics(void)
{
	enum { N = 512 };
	int32_t x[N], low = 0x7fffffff, high = -0x7fffffff;
	uint32_t bits[3] = { 0, 0, ~0u }, ticket = 0, owner[N];
	uint32_t wbits[3] = { 0, 0, ~0u }, seen = 0;
	int32_t wlow = low, whigh = high, wseen[N];
	uint64_t sum = 5, wsum = 5;
	struct arg arg[] = { MEM(x), { NULL, &low, 4 }, { NULL, &high, 4 },
			     MEM(bits), { NULL, &sum, 8 },
			     { NULL, &ticket, 4 }, MEM(owner) };

	memset(owner, 0, sizeof(owner));
	memset(wseen, 0, sizeof(wseen));
	for (int i = 0; i < N; i++) {
		x[i] = (int32_t)next_random();
		wlow = x[i] < wlow ? x[i] : wlow;
		whigh = x[i] > whigh ? x[i] : whigh;
		wbits[0] |= (uint32_t)x[i] & 0xff;
		wbits[1] ^= (uint32_t)x[i];
		wbits[2] &= (uint32_t)x[i] | 0xfffff000;
		wsum += (uint64_t)(int64_t)x[i];
	}
	if (!run("counters", "atomics", "--grid 512 --block 64", arg, 7))
		return;
	is_i64(low, wlow, "%s: atomic minimum", label);
	is_i64(high, whigh, "%s: atomic maximum", label);
	is_mem(bits, wbits, sizeof(bits), "%s: atomic or, xor, and", label);
	is_u64(sum, wsum, "%s: a 64-bit sum", label);
	is_u64(ticket, N, "%s: as many tickets as lanes", label);
	for (int i = 0; i < N; i++)
		seen += owner[i] < N && !wseen[owner[i]]++;
	is_u64(seen, N, "%s: each ticket to another lane", label);
}

static void test_swap_add(void)
{
	float x[128], wanted = 0;
	uint32_t sum = 0;
	struct arg arg[] = { MEM(x), { NULL, &sum, 4 } };
	float got;

	for (int i = 0; i < 128; i++)
		wanted += x[i] = (float)small(1000) / 4;
	if (!run("counters", "swap_add", "--grid 128 --block 64", arg, 2))
		return;
	memcpy(&got, &sum, 4);
	ok(got == wanted, "%s: a sum by compare and swap", label);
}

static void test_hash(void)
{
	uint64_t x[64], mixed[64] = { 0 }, wanted[64];
	uint32_t crc[64] = { 0 }, counts[64] = { 0 }, wcrc[64], wcounts[64];
	struct arg arg[] = { MEM(x), MEM(mixed), MEM(crc), MEM(counts) };

	for (int i = 0; i < 64; i++) {
		uint64_t v = x[i] = i ? (uint64_t)next_random() << 32 >>
							    i % 40 |
						    next_random() :
					0;
		uint32_t c = ~0u, n = 0;

		/* The CRC bit by bit, the counts by looking. */
		for (int k = 0; k < 64; k++) {
			c ^= v >> k & 1;
			c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
			n += v >> k & 1;
		}
		wcrc[i] = ~c;
		for (int k = 0; k < 64 && !(v >> (63 - k) & 1); k++)
			n += 1 << 8;
		for (int k = 0; k < 64 && !(v >> k & 1); k++)
			n += 1 << 16;
		wcounts[i] = n;
		for (int k = 0; k < 3; k++) {
			v ^= v >> 33;
			v *= UINT64_C(0xff51afd7ed558ccd);
			v = v << 29 | v >> 35;
			v += (uint64_t)((int64_t)v >> 7);
		}
		wanted[i] = v;
	}
	if (!run("hash", "hash", "--grid 64 --block 64", arg, 4))
		return;
	is_mem(mixed, wanted, sizeof(mixed), "%s: 64-bit mixing", label);
	is_mem(crc, wcrc, sizeof(crc), "%s: a CRC by table", label);
	is_mem(counts, wcounts, sizeof(counts), "%s: counts of bits", label);
}

static void test_halves(void)
{
	uint16_t x[64], y[64] = { 0 }, wanted[64], bx[64], by[64];
	uint8_t in[256];
	int8_t out[256] = { 0 }, wout[256];
	int16_t sum[64] = { 0 }, wsum[64] = { 0 };
	struct arg poly[] = { MEM(x), MEM(y) };
	struct arg axpy[] = { MEM(bx), MEM(by), { "f32:3", NULL, 0 } };
	struct arg bytes[] = { MEM(in), MEM(out), MEM(sum) };

	/* 4 p(v) of v = 2 i is a small integer: no rounding anywhere. */
	for (int i = 0; i < 64; i++) {
		int v = 4 * (i % 16) - 32;

		x[i] = f16_bits(v);
		wanted[i] = f16_bits(v * v / 2 - v - v / 4 + 3 - 2 * v);
	}
	if (run("halves", "polynomial", "--grid 64 --block 64", poly, 2))
		is_mem(y, wanted, sizeof(y), "%s: a polynomial of halves",
		       label);
	for (int i = 0; i < 64; i++) {
		int a = small(60), b = small(60);

		bx[i] = bf16_bits(a);
		by[i] = bf16_bits(b);
		wanted[i] = bf16_bits(3 * a + b);
	}
	if (run("halves", "bf16_axpy", "--grid 64 --block 32", axpy, 3))
		is_mem(by, wanted, sizeof(by), "%s: bfloat16 by hand", label);
	for (int i = 0; i < 256; i++) {
		int v = (in[i] = next_random() & 255) - 128;

		wout[i] = (int8_t)(v > 100 ? 100 : v < -100 ? -100 : v);
		wsum[i / 4] = (int16_t)(wsum[i / 4] + wout[i]);
	}
	if (run("halves", "bytes", "--grid 64 --block 32", bytes, 3)) {
		is_mem(out, wout, sizeof(out), "%s: bytes, clamped", label);
		is_mem(sum, wsum, sizeof(sum), "%s: sums of bytes", label);
	}
}

/* Rows of a, columns of b; elements of so many bits. */
static void test_int_matrix(const char *kernel, int bits, bool b_signed)
{
	uint32_t a[16 * 4] = { 0 }, b[16 * 4] = { 0 };
	int32_t c[256], d[256] = { 0 }, wanted[256], each = 32 / bits;
	const int n = 16 / each; /* dwords a row */
	struct arg arg[] = { { NULL, a, (size_t)n * 64 },
			     { NULL, b, (size_t)n * 64 }, MEM(c), MEM(d) };

	for (int i = 0; i < 16 * n; i++) {
		a[i] = next_random();
		b[i] = next_random();
	}
	for (int i = 0; i < 256; i++) {
		int row = i / 16, col = i % 16;

		wanted[i] = c[i] = small(1000000);
		for (int k = 0; k < 16; k++) {
			uint32_t x = a[row * n + k / each] >> k % each * bits;
			uint32_t y = b[col * n + k / each] >> k % each * bits;
			int32_t sx = (int32_t)(x << (32 - bits)) >> (32 - bits);
			int32_t sy = (int32_t)(y << (32 - bits)) >> (32 - bits);

			y &= (1u << bits) - 1;
			wanted[i] += sx * (b_signed ? sy : (int32_t)y);
		}
	}
	if (run("wmma_more", kernel, "--block 32", arg, 4))
		is_mem(d, wanted, sizeof(d), "%s: %s tile", label, kernel);
}

static void test_half_matrix(void)
{
	int ia[256], ib[256];
	uint16_t a[256], b[256], c[256], d[256] = { 0 }, wanted[256];
	struct arg arg[] = { MEM(a), MEM(b), MEM(c), MEM(d) };

	for (int i = 0; i < 256; i++) {
		a[i] = f16_bits(ia[i] = small(8));
		b[i] = f16_bits(ib[i] = small(8));
	}
	for (int i = 0; i < 256; i++) {
		int sum = small(100);

		c[i] = f16_bits(sum);
		for (int k = 0; k < 16; k++)
			sum += ia[i / 16 * 16 + k] * ib[i % 16 * 16 + k];
		wanted[i] = f16_bits(sum);
	}
	if (run("wmma_more", "f16", "--block 32", arg, 4))
		is_mem(d, wanted, sizeof(d), "%s: f16 accumulators", label);
}

static void test_fft(void)
{
	enum { N = 128, GROUPS = 2 };
	float x[GROUPS * N][2], y[GROUPS * N][2], root[N / 2][2];
	struct arg arg[] = { MEM(x), MEM(y), MEM(root) };
	double worst = 0;

	memset(y, 0, sizeof(y));
	for (int i = 0; i < GROUPS * N; i++)
		for (int k = 0; k < 2; k++)
			x[i][k] = (float)small(1000) / 1000;
	for (int i = 0; i < N / 2; i++) {
		root[i][0] = (float)cos(-2 * M_PI * i / N);
		root[i][1] = (float)sin(-2 * M_PI * i / N);
	}
	if (!run("fft", "fft", "--grid 128 --block 64", arg, 3))
		return;
	for (int i = 0; i < GROUPS * N; i++) {
		double re = 0, im = 0;

		for (int k = 0; k < N; k++) {
			double w = -2 * M_PI * (i % N) * k / N;
			const float *v = x[i / N * N + k];

			re += v[0] * cos(w) - v[1] * sin(w);
			im += v[0] * sin(w) + v[1] * cos(w);
		}
		worst = fmax(worst, fabs(re - (double)y[i][0]));
		worst = fmax(worst, fabs(im - (double)y[i][1]));
	}
	/* Seven stages of three roundings, of sums up to about 30. */
	ok(worst < 7 * 3 * 32 * 0x1p-24, "%s: transforms, error %g", label,
	   worst);
}

static void test_life(void)
{
	enum { W = 48, H = 24 };
	uint8_t in[W * H], out[W * H] = { 0 }, wanted[W * H];
	struct arg arg[] = { MEM(in), MEM(out), { "i32:48", NULL, 0 },
			     { "i32:24", NULL, 0 } };

	for (int i = 0; i < W * H; i++)
		in[i] = next_random() & 1;
	for (int i = 0; i < W * H; i++) {
		int n = -in[i];

		for (int k = 0; k < 9; k++)
			n += in[(i / W + k / 3 + H - 1) % H * W +
				(i % W + k % 3 + W - 1) % W];
		wanted[i] = n == 3 || (n == 2 && in[i]);
	}
	if (run("life", "life", "--grid 48,24 --block 16,8", arg, 4))
		is_mem(out, wanted, sizeof(out), "%s: neighbours of bytes",
		       label);
}

/* Each unit is within an ulp; sums of sixteen terms below 4. */
static void test_math(void)
{
	float x[64], y[256] = { 0 };
	struct arg arg[] = { MEM(x), MEM(y) };
	double worst = 0, a[64], r[64] = { 0 }, off = 0;
	struct arg roots[] = { MEM(a), MEM(r) };

	for (int i = 0; i < 64; i++) {
		x[i] = 0.25f + (float)(next_random() % 4096) / 1024;
		a[i] = ldexp(1 + next_random() / 4294967296.0, i - 20);
	}
	if (run("math", "units", "--grid 64 --block 64", arg, 2)) {
		for (int i = 0; i < 64; i++) {
			double v = (double)x[i], want[4] = { 0 };

			for (int k = 1; k <= 16; k++) {
				double t = (double)(x[i] * (float)k);

				want[0] += exp2(-t) / t;
				want[1] += sin(2 * M_PI * t) *
					   cos(2 * M_PI * t);
			}
			want[2] = log2(v) / sqrt(v);
			want[3] = sqrt(v);
			for (int k = 0; k < 4; k++)
				worst = fmax(worst, fabs(want[k] -
							 (double)y[4 * i + k]));
		}
		ok(worst < 16 * 4 * 0x1p-23, "%s: transcendental loops, %g",
		   label, worst);
	}
	if (!run("math", "cube_root", "--grid 64 --block 64", roots, 2))
		return;
	for (int i = 0; i < 64; i++)
		off = fmax(off, fabs(r[i] / cbrt(a[i]) - 1));
	ok(off < 4 * 0x1p-52, "%s: cube roots of doubles, %g", label, off);
}

static void test_solve(void)
{
	double l[64 * 64], b[64], x[64] = { 0 }, wanted[64];
	struct arg arg[] = { MEM(l), MEM(b), MEM(x) };

	for (int i = 0; i < 64 * 64; i++)
		l[i] = small(100) / 50.0;
	for (int i = 0; i < 64; i++) {
		l[i * 65] = 3 + i / 7.0;
		b[i] = small(100);
	}
	for (int i = 0; i < 64; i++) {
		double sum = b[i];

		for (int k = 0; k < i; k++)
			sum = fma(-l[i * 64 + k], wanted[k], sum);
		wanted[i] = sum / l[i * 65];
	}
	if (run("solve", "solve", "--block 64", arg, 3))
		is_mem(x, wanted, sizeof(x), "%s: forward substitution", label);
}

static void test_all(void)
{
	test_sort("bitonic", "--grid 512 --block 256", 256);
	test_sort("radix", "--grid 512 --block 128", 128);
	test_gemm();
	test_gemv();
	test_spmv();
	test_mandel();
	test_recurse();
	test_atomics();
	test_swap_add();
	test_hash();
	test_halves();
	test_int_matrix("iu8", 8, false);
	test_int_matrix("iu4", 4, true);
	test_half_matrix();
	test_fft();
	test_life();
	test_math();
	test_solve();
}

int main(void)
{
	if (!getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	if (!mkdtemp(dir))
		return 1;
	diag("seed %llu", (unsigned long long)seed);
	test_variants(test_all);
	return plan_done();
}
