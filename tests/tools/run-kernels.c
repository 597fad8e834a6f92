/*
 * Kernels from end to end: t0-run takes a code object, runs it on the soft
 * device and writes its buffers, which are compared with a plain C version of
 * the same arithmetic.  Inputs are chosen so that every result is exact, or
 * is what IEEE 754 prescribes.
 *
 * The prebuilt objects always run; where clang-19 is installed, the same
 * sources run compiled at -O0, -O2 and -O3 too.
 */
#include "tests/tools/run-kernels.h"

static void test_saxpy(void)
{
	float x[1024], y[1024], wanted[1024];
	struct arg arg[] = {
		{ "f32:2.5", NULL, 0 }, MEM(x), MEM(y), { "u32:1000", NULL, 0 }
	};

	for (int i = 0; i < 1024; i++) {
		x[i] = (float)small(10000) / 8;
		wanted[i] = y[i] = (float)small(10000) / 8;
		if (i < 1000)
			wanted[i] += 2.5f * x[i];
	}
	if (run("saxpy", "saxpy", "--grid 1024 --block 256", arg, 4))
		is_mem(y, wanted, sizeof(y), "%s: saxpy, 24 of them masked",
		       label);
}

static void test_reduce(void)
{
	float x[1024], sum[4] = { 0 }, wanted[4] = { 0 };
	struct arg arg[] = { MEM(x), MEM(sum), { "u32:1000", NULL, 0 } };

	for (int i = 0; i < 1024; i++) {
		x[i] = (float)small(1000);
		if (i < 1000)
			wanted[i / 256] += x[i];
	}
	if (run("reduce", "reduce", "--grid 1024 --block 256", arg, 3))
		is_mem(sum, wanted, sizeof(sum), "%s: sums through LDS", label);
}

static void test_wmma(const char *kernel, uint16_t (*bits)(int))
{
	int ia[256], ib[256];
	uint16_t a[256], b[256];
	float c[256], d[256] = { 0 }, wanted[256];
	struct arg arg[] = { MEM(a), MEM(b), MEM(c), MEM(d) };

	for (int i = 0; i < 256; i++) {
		a[i] = bits(ia[i] = small(60));
		b[i] = bits(ib[i] = small(60));
		c[i] = (float)small(1000) / 4;
	}
	for (int row = 0; row < 16; row++)
		for (int col = 0; col < 16; col++) {
			double sum = (double)c[row * 16 + col];

			for (int k = 0; k < 16; k++)
				sum += ia[row * 16 + k] * ib[k * 16 + col];
			wanted[row * 16 + col] = (float)sum;
		}
	if (run("wmma", kernel, "--block 32", arg, 4))
		is_mem(d, wanted, sizeof(d), "%s: %s tile", label, kernel);
}

static void test_histogram(void)
{
	uint32_t x[1024], bin[64], wanted[64];
	struct arg arg[] = { MEM(x), MEM(bin), { "u32:1001", NULL, 0 } };

	for (int i = 0; i < 64; i++)
		wanted[i] = bin[i] = (uint32_t)i;
	for (int i = 0; i < 1024; i++) {
		x[i] = next_random() & next_random();
		wanted[x[i] % 64] += i < 1001;
	}
	if (run("histogram", "histogram", "--grid 1024 --block 128", arg, 3))
		is_mem(bin, wanted, sizeof(bin), "%s: atomics count all",
		       label);
}

static void test_scan(void)
{
	int32_t x[512], sum[512] = { 0 }, wanted[512], total = 0;
	struct arg arg[] = { MEM(x), MEM(sum), { "lds:1k", NULL, 0 } };

	for (int i = 0; i < 512; i++) {
		x[i] = small(1000);
		total = i % 256 ? total + x[i] : x[i];
		wanted[i] = total;
	}
	if (run("scan", "scan", "--grid 512 --block 256", arg, 3))
		is_mem(sum, wanted, sizeof(sum),
		       "%s: prefix sums in dynamic LDS", label);
}

static void test_collatz(void)
{
	uint32_t x[128], steps[128] = { 0 }, wanted[128];
	struct arg arg[] = { MEM(x), MEM(steps) };

	for (uint32_t i = 0; i < 128; i++) {
		uint64_t v = x[i] = i == 27 ? 27 : next_random() >> 8;

		for (wanted[i] = 0; v > 1 && wanted[i] < 1000; wanted[i]++)
			v = v & 1 ? 3 * v + 1 : v / 2;
	}
	if (run("collatz", "collatz", "--grid 128 --block 64", arg, 2)) {
		is_u64(steps[27], 111, "%s: 27 takes 111 steps", label);
		is_mem(steps, wanted, sizeof(steps), "%s: divergent loops",
		       label);
	}
}

static void test_double(void)
{
	double x[64], y[256] = { 0 }, wanted[256];
	struct arg arg[] = { MEM(x), MEM(y) };

	for (int i = 0; i < 64; i++) {
		x[i] = ldexp(1.0 + next_random() / 4294967296.0, i - 40);
		if (i >= 60) /* the integer conversion must stay in range */
			x[i] = i + 0.75;
		wanted[4 * i] = fma(x[i], x[i], -1.0);
		wanted[4 * i + 1] = 1.0 / x[i];
		wanted[4 * i + 2] = sqrt(x[i]);
		wanted[4 * i + 3] = (double)(int)x[i];
	}
	if (run("double", "f64", "--grid 64 --block 64", arg, 2))
		is_mem(y, wanted, sizeof(y),
		       "%s: f64 fma, division, root, conversion", label);
}

static void test_scratch(void)
{
	int32_t x[32 * 48], y[32 * 48], wanted[32 * 48];
	struct arg arg[] = { MEM(x), MEM(y) };

	for (int i = 0; i < 32 * 48; i++) {
		/* Lane i / 48 has that many values, then skipped ones. */
		x[i] = i % 48 <= i / 48 ? i : 0x7fffffff;
		y[i] = -1;
		wanted[i] = i % 48 <= i / 48 ? i / 48 * 48 + (i / 48 - i % 48) :
					       -1;
	}
	if (run("scratch", "scratch", "--block 32", arg, 2))
		is_mem(y, wanted, sizeof(y), "%s: a stack per lane", label);
}

static void test_divide(void)
{
	int32_t a[64], b[64], quot[64], rem[64], wquot[64], wrem[64];
	uint32_t uquot[64], wuquot[64];
	int64_t lquot[64], wlquot[64];
	struct arg arg[] = { MEM(a),   MEM(b),	   MEM(quot),
			     MEM(rem), MEM(uquot), MEM(lquot) };

	memset(quot, 0, sizeof(quot));
	memset(rem, 0, sizeof(rem));
	memset(uquot, 0, sizeof(uquot));
	memset(lquot, 0, sizeof(lquot));
	for (int i = 0; i < 64; i++) {
		a[i] = (int32_t)(next_random() >> i % 32);
		b[i] = (int32_t)(next_random() >> (i * 7) % 31);
		if (!b[i] || b[i] == -1)
			b[i] = i + 2;
		wquot[i] = a[i] / b[i];
		wrem[i] = a[i] % b[i];
		wuquot[i] = (uint32_t)a[i] / (uint32_t)b[i];
		wlquot[i] = (int64_t)a[i] * 1000003 / b[i];
	}
	if (!run("divide", "divide", "--grid 64 --block 64", arg, 6))
		return;
	is_mem(quot, wquot, sizeof(quot), "%s: signed quotients", label);
	is_mem(rem, wrem, sizeof(rem), "%s: signed remainders", label);
	is_mem(uquot, wuquot, sizeof(uquot), "%s: unsigned quotients", label);
	is_mem(lquot, wlquot, sizeof(lquot), "%s: 64-bit quotients", label);
}

static void test_transpose(void)
{
	float in[48 * 32], out[48 * 32], wanted[48 * 32]; /* [48][32] */
	struct arg arg[] = {
		MEM(in), MEM(out), { "u32:32", NULL, 0 }, { "u32:48", NULL, 0 }
	};

	memset(out, 0, sizeof(out));
	for (int y = 0; y < 48; y++)
		for (int x = 0; x < 32; x++) {
			in[y * 32 + x] = (float)(y * 100 + x);
			wanted[x * 48 + y] = (float)(y * 100 + x);
		}
	if (run("transpose", "transpose", "--grid 32,48", arg, 4))
		is_mem(out, wanted, sizeof(out), "%s: 2-D workgroups", label);
}

static void test_packed(void)
{
	uint16_t a[64], b[64], fma[64] = { 0 }, wanted[64];
	uint16_t ba[64], bb[64];
	int8_t ca[128], cb[128];
	float sum[32], wsum[32];
	int32_t isum[32], wisum[32];
	struct arg f16[] = { MEM(a), MEM(b), MEM(fma) };
	struct arg dot2[] = { MEM(ba), MEM(bb), MEM(sum) };
	struct arg dot4[] = { MEM(ca), MEM(cb), MEM(isum) };

	for (int i = 0; i < 32; i++) {
		wsum[i] = sum[i] = (float)small(100);
		wisum[i] = isum[i] = small(100000);
	}
	for (int i = 0; i < 64; i++) {
		int x = small(40), y = small(40);

		a[i] = f16_bits(x);
		b[i] = f16_bits(y);
		wanted[i] = f16_bits(x * y + (i % 2 ? -2 : 1));
		ba[i] = bf16_bits(x);
		bb[i] = bf16_bits(y);
		wsum[i / 2] += (float)(x * y);
	}
	for (int i = 0; i < 128; i++) {
		ca[i] = (int8_t)small(127);
		cb[i] = (int8_t)small(127);
		wisum[i / 4] += ca[i] * cb[i];
	}
	if (run("packed", "f16", "--block 32", f16, 3))
		is_mem(fma, wanted, sizeof(fma), "%s: packed f16", label);
	if (run("packed", "dot2_bf16", "--block 32", dot2, 3)) {
		/* The card cuts sums of unlike signs: short by up to 2^-24. */
		for (int i = 0; i < 32; i++)
			sum[i] = rintf(sum[i]);
		is_mem(sum, wsum, sizeof(sum), "%s: bf16 pairs", label);
	}
	if (run("packed", "dot4", "--block 32", dot4, 3))
		is_mem(isum, wisum, sizeof(isum), "%s: int8 quads", label);
}

static void test_lanes(void)
{
	int32_t x[64], y[256], wanted[256];
	struct arg arg[] = { MEM(x), MEM(y) };

	memset(y, 0, sizeof(y));
	for (int i = 0; i < 64; i++)
		x[i] = (int32_t)next_random();
	for (int i = 0; i < 64; i++) {
		int wave = i & 32, lane = i & 31;
		uint32_t ballot = 0;

		for (int l = 0; l < 32; l++)
			ballot |= (uint32_t)(x[wave + l] & 1) << l;
		wanted[4 * i] = x[wave + 31 - lane];
		wanted[4 * i + 1] = x[wave];
		wanted[4 * i + 2] = (int32_t)ballot;
		wanted[4 * i + 3] = x[(i & 48) + ((i - 1) & 15)];
	}
	if (run("lanes", "lanes", "--grid 64 --block 64", arg, 2))
		is_mem(y, wanted, sizeof(y), "%s: between lanes", label);
}

static void test_table(void)
{
	uint32_t pick[32];
	int32_t y[32] = { 0 }, wanted[32];
	struct arg arg[] = { MEM(pick), MEM(y) };

	for (uint32_t i = 0; i < 32; i++) {
		uint32_t row, col;

		pick[i] = next_random();
		row = pick[i] & 1;
		col = pick[i] >> 1 & 3;
		wanted[i] = (int32_t)(2 * col + 1 + row);
	}
	if (run("table", "table", "--block 32", arg, 2))
		is_mem(y, wanted, sizeof(y), "%s: relocated pointers", label);
}

/* ---- faults ------------------------------------------------------------- */

static void faults(const char *kernel, const char *options,
		   const struct arg *arg, int n, const char *text)
{
	int status = run_status("fault", kernel, options, arg, n);
	struct buf path = { 0 }, b = { 0 };
	struct err e = { 0 };

	is_i64(status, 3, "%s: %s ends with exit status 3", label, kernel);
	buf_printf(&path, "%s/err", dir);
	ok(file_read(path.data, 65536, &b, &e), "%s: %s wrote to stderr", label,
	   kernel);
	has_str(b.data, text, "%s: %s is told", label, kernel);
	buf_fini(&path);
	buf_fini(&b);
}

static void test_faults(void)
{
	uint32_t p[16] = { 0 };
	struct arg far[] = { MEM(p), { "u64:0x10000000000", NULL, 0 } };
	struct arg one[] = { MEM(p) };

	faults("bad_store", "--block 32", far, 2, "bad_store");
	faults("forever", "--block 32 --deadline 0.5", one, 1, "forever");
	faults("illegal", "--block 32", one, 1, "illegal");
}

static void test_all(void)
{
	test_saxpy();
	test_reduce();
	test_wmma("wmma", f16_bits);
	test_wmma("wmma_bf16", bf16_bits);
	test_histogram();
	test_scan();
	test_collatz();
	test_double();
	test_scratch();
	test_divide();
	test_transpose();
	test_packed();
	test_lanes();
	test_table();
}

int main(void)
{
	if (!getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	if (!mkdtemp(dir))
		return 1;
	diag("seed %llu", (unsigned long long)seed);
	label = "prebuilt";
	objects = SOURCES;
	if (is_gfx1100())
		test_faults();
	test_variants(test_all);
	return plan_done();
}
