/*
 * Products of bf16 in the pipeline simulator: our best of a few configurations
 * beside what is published of rocBLAS, and, where B is stored N x K (nt) or it
 * is the gradient of a weight (tn), beside a straightforward LDS-tiled WMMA
 * kernel in OpenCL C that clang-19 compiled (clang-kernels/gemm.cl).  The
 * simulator's own error is what `t0-sim --validate` says.
 */
#include <math.h>
#include <unistd.h>

#include "tests/bench/rows.h"
#include "tests/compiler/cc-run.h"
#include "tests/kernels/gemm-sim.h"

static const char *const candidates[] = {
	"32x32x64_w2x1_b1_p1_u1_g8_pad_cu_even",
	"32x32x64_w2x1_b1_p1_u2_g8_pad_cu_even",
	"64x64x64_w2x2_b1_p1_u1_g8_swz_wgp_even",
	"64x64x64_w2x2_b1_p1_u1_g8_pad_wgp_even",
	"128x128x32_w2x2_b2_p1_u1_g8_swz_wgp_even",
	"128x128x32_w2x2_b1_p1_u1_g8_swz_wgp_even",
	"128x128x32_w4x2_b1_p1_u2_g8_swz_cu_even",
	"128x128x32_w4x2_b2_p1_u1_g8_swz_wgp_even",
};

static const uint32_t sizes[] = { 256, 512, 1024, 2048, 4096, 8192 };

static double tflops(double n, double seconds)
{
	return 2 * n * n * n / seconds * 1e-12;
}

/* ---------------------------------------------------------------- ours -- */

struct best {
	const char *name, *limit;
	double tflops, clock_mhz, wmma; /* share of the matrix units */
};

static void try_one(const struct cost_model *m, bool b_trans, const char *name,
		    uint32_t n, struct best *b)
{
	const struct gemm_op op = { .in = DSL_BF16, .out = DSL_BF16,
				    .b_trans = b_trans };
	const struct gemm_shape s = { .m = n, .n = n, .k = n };
	struct sim_forecast f;
	struct gemm_config c;
	struct gemm_code code;
	struct err e = { 0 };
	double seconds;

	if (!gemm_config_parse(name, &c, &e) ||
	    !gemm_compile(&op, &c, NULL, &code, &e) ||
	    !gemm_sim_ours(m, &op, &c, &code, &s, &seconds, &f, &e))
		BUG("%s: %s", name, e.msg);
	const double t = tflops(n, seconds + f.launch_s);

	if (t > b->tflops)
		*b = (struct best){ name, f.limit, t, f.clock_mhz,
				    f.round.share[SIM_PIPE_WMMA] };
	sim_forecast_fini(&f);
	gemm_code_fini(&code);
}

/* -------------------------------------------------------------- clang's -- */

struct clang_args {
	uint64_t c, a, b;
	int32_t n, k_end, ld;
};

enum { CLANG_TILE = 128 };

/* The twin of a layout: `tn` has f32 added to, else B is N x K, C bf16. */
static const char *clang_kernel(bool tn)
{
	return tn ? "gemm_tn" : "gemm";
}

static struct clang_args clang_args(const struct gemm_shape *s, bool tn,
				    const uint64_t va[3])
{
	return (struct clang_args){ va[2], va[0], va[1], (int32_t)s->n,
				    (int32_t)s->k,
				    (int32_t)(tn ? s->m : s->k) };
}

/* Seconds, launch included. */
static double clang_seconds(const struct cost_model *m,
			    const struct buf *object,
			    const struct gemm_shape *s, bool tn)
{
	const uint64_t va[3] = { GEMM_SIM_A, GEMM_SIM_B, GEMM_SIM_C };
	const struct clang_args a = clang_args(s, tn, va);
	const uint32_t groups[3] = { s->n / CLANG_TILE, s->m / CLANG_TILE, 1 };
	const uint64_t footprint =
		2 * ((uint64_t)s->m * s->k + (uint64_t)s->n * s->k) +
		(tn ? 4 : 2) * (uint64_t)s->m * s->n;
	struct sim_forecast f;
	struct err e = { 0 };

	if (!gemm_sim_run(m, object, clang_kernel(tn), groups, 128, &a,
			  sizeof(a), footprint, &f, &e))
		BUG("%s", e.msg);
	const double t = f.time_s + f.launch_s;

	sim_forecast_fini(&f);
	return t;
}

static double clang_tflops(const struct cost_model *m, const struct buf *object,
			   uint32_t n)
{
	const struct gemm_shape s = { .m = n, .n = n, .k = n };

	return tflops(n, clang_seconds(m, object, &s, false));
}

/* Empty where clang-19 is not installed. */
static bool clang_compile(struct buf *object, struct err *e)
{
	char path[] = "/tmp/t0-gemm-XXXXXX";
	const char *root = getenv("T0_SRC");
	struct buf command = { 0 };

	if (system("command -v clang-19 >/dev/null 2>&1")) {
		printf("gemm: SKIPPED the comparison: clang-19 is not "
		       "installed\n");
		return true;
	}
	int fd = mkstemp(path);
	buf_printf(&command, "clang-19 -x cl -cl-std=CL2.0 -nogpulib -O3 "
		   "-target amdgcn-amd-amdhsa -mcpu=gfx1100 "
		   "%s/tests/bench/clang-kernels/gemm.cl -o %s",
		   root ? root : ".", path);
	bool good = fd >= 0 && system(command.data) == 0 ?
		file_read(path, 0, object, e) :
		err_set(e, ERR_INPUT, "this command failed: %s", command.data);
	buf_fini(&command);
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return good;
}

/* ----------------------------------------------------------- same result -- */

enum { SMALL = 256 };

static uint16_t random_bf16(uint64_t *seed)
{
	const float x = (float)((double)(int64_t)random_next(seed) * 0x1p-63);
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static double as_double(uint16_t x)
{
	const uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

enum { ELEMS = SMALL * SMALL };

/* Element i of the product, in double precision; `tn` adds it to 1. */
static double product_element(const uint16_t *a, const uint16_t *b, int i,
			      bool tn)
{
	const int row = i / SMALL, col = i % SMALL;
	double sum = tn;

	for (int k = 0; k < SMALL; k++)
		sum += as_double(a[tn ? k * SMALL + row : row * SMALL + k]) *
		       as_double(b[tn ? k * SMALL + col : col * SMALL + k]);
	return sum;
}

static void run_clang(const struct buf *object, bool tn, const uint16_t *a,
		      const uint16_t *b, void *c)
{
	const struct gemm_shape s = { .m = SMALL, .n = SMALL, .k = SMALL };
	const size_t bytes[3] = { 2 * ELEMS, 2 * ELEMS, (tn ? 4 : 2) * ELEMS };
	const void *x[3] = { a, b, c };
	const struct kfd_kernel *kernel;
	struct kfd_code *code;
	struct kfd_mem *m[3];
	struct err e = { 0 };
	struct cc_dev d;
	uint64_t va[3];

	if (!cc_dev_open(&d, false, &e))
		BUG("%s", e.msg);
	for (int k = 0; k < 3; k++) {
		if (!kfd_mem_alloc(d.dev, KFD_VRAM, bytes[k], "operand", &m[k],
				   &e) ||
		    !kfd_write(d.dev, m[k], 0, x[k], bytes[k], &e))
			BUG("%s", e.msg);
		va[k] = m[k]->va;
	}
	const struct clang_args args = clang_args(&s, tn, va);
	struct kfd_launch l = { .args = &args, .wg = { 128, 1, 1 },
				.grid = { SMALL / CLANG_TILE * 128,
					  SMALL / CLANG_TILE, 1 } };

	if (!kfd_code_load(d.dev, object->data, object->len, &code, &e) ||
	    !kfd_code_kernel(code, clang_kernel(tn), &kernel, &e))
		BUG("%s", e.msg);
	l.kernel = kernel;
	l.args_bytes = kernel->explicit_bytes;
	if (!kfd_run(d.queue, &l, NULL, &e) ||
	    !kfd_read(d.dev, c, m[2], 0, bytes[2], &e))
		BUG("%s", e.msg);
	kfd_code_unload(code);
	for (int k = 0; k < 3; k++)
		kfd_mem_free(d.dev, m[k]);
	cc_dev_close(&d);
}

/* Run on the soft device: the largest difference to double precision. */
static double clang_error(const struct buf *object, bool tn)
{
	static uint16_t a[ELEMS], b[ELEMS], half[ELEMS];
	static float sum[ELEMS];
	uint64_t seed = 7;
	double worst = 0;

	for (int i = 0; i < ELEMS; i++) {
		a[i] = random_bf16(&seed);
		b[i] = random_bf16(&seed);
		sum[i] = 1;
	}
	run_clang(object, tn, a, b, tn ? (void *)sum : half);
	for (int i = 0; i < ELEMS; i++) {
		double got = tn ? (double)sum[i] : as_double(half[i]);

		worst = fmax(worst, fabs(product_element(a, b, i, tn) - got));
	}
	return worst;
}

/* -------------------------------------------------------------- report -- */

/* The published figure, from beside the source tree; 0: not there. */
static double published(uint32_t n)
{
	const char *root = getenv("T0_SRC");
	struct buf path = { 0 }, text = { 0 };
	struct err e = { 0 };
	char key[64];
	double x = 0;

	buf_printf(&path, "%s/../shared/reference/published_perf.csv",
		   root ? root : ".");
	snprintf(key, sizeof(key), "rocBLAS (torch.mm),%u,%u,%u,bf16,", n, n,
		 n);
	if (file_read(path.data, 0, &text, &e)) {
		const char *at = strstr(text.data, key);

		at = at ? strstr(at, "throughput,") : NULL;
		x = at ? atof(at + strlen("throughput,")) : 0;
	}
	buf_fini(&path);
	buf_fini(&text);
	return x;
}

static double report_rate(struct bench_rows *r, const char *name, bool b_trans,
			  uint32_t n, double tflop_per_s)
{
	char params[128];

	res_params(params, sizeof(params), "m:u n:u k:u type:s nt:b", n, n, n,
		   "bf16", b_trans);
	bench_case(r, name, params);
	return bench_rate_one(r, "FLOP/s", tflop_per_s * 1e12) * 1e-12;
}

static void row(struct bench_rows *r, const struct cost_model *m,
		const struct buf *object, bool b_trans, uint32_t n)
{
	const double known = published(n);
	struct best b = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(candidates); k++)
		try_one(m, b_trans, candidates[k], n, &b);
	printf("%s %5u %7.1f ", b_trans ? "nt" : "nn", n,
	       report_rate(r, "T0", b_trans, n, b.tflops));
	printf("%5.0f%% %5.0f  ",
	       100 * bench_ratio_one(r, "peak", RES_HIGHER, b.tflops /
				     (49152 * b.clock_mhz * 1e-6)),
	       b.clock_mhz);
	if (known > 0)
		printf("%7.1f ", known);
	else
		printf("%7s ", "-");
	if (object->len && b_trans && n >= 512 && n <= 4096) {
		const double f = clang_tflops(m, object, n);

		printf("%7.1f %5.2f  ", f,
		       bench_ratio_one(r, "clang-19 -O3", RES_HIGHER,
				       b.tflops / f));
		report_rate(r, "clang-19 -O3", b_trans, n, f);
	} else {
		printf("%7s %5s  ", "-", "-");
	}
	printf("%-6s %3.0f%%  %s\n", b.limit, 100 * b.wmma, b.name);
}

/* -------------------------------------------- integers with scales in B -- */

static double weights_us(const struct cost_model *m, enum dsl_type weights,
			 const uint32_t s[3])
{
	const struct gemm_op op = { .in = weights ? DSL_F16 : DSL_BF16,
				    .out = DSL_F32, .weights = weights,
				    .b_trans = true };
	const struct gemm_config c = gemm_default_for(&op, s[0], s[1], s[2]);
	const struct gemm_shape shape = { .m = s[0], .n = s[1], .k = s[2] };
	struct sim_forecast f;
	struct gemm_code code;
	struct err e = { 0 };
	double seconds;

	if (!gemm_compile(&op, &c, NULL, &code, &e) ||
	    !gemm_sim_ours(m, &op, &c, &code, &shape, &seconds, &f, &e))
		BUG("%s", e.msg);
	sim_forecast_fini(&f);
	gemm_code_fini(&code);
	return seconds * 1e6;
}

static double report_time(struct bench_rows *r, const uint32_t s[3],
			  const char *weights, double us)
{
	char params[128];

	res_params(params, sizeof(params), "m:u n:u k:u weights:s", s[0], s[1],
		   s[2], weights);
	bench_case(r, "B of weights", params);
	return bench_time(r, &us, 1, 1e-6);
}

static double report_gain(struct bench_rows *r, double ratio)
{
	return bench_ratio_one(r, "bf16", RES_HIGHER, ratio);
}

/* As the engine has them where nothing was tuned: Qwen3 8B's. */
static void weights_table(struct bench_rows *r, const struct cost_model *m)
{
	static const uint32_t shape[][3] = {
		{ 8, 6144, 4096 }, { 8, 4096, 12288 }, { 128, 6144, 4096 },
		{ 512, 6144, 4096 }, { 512, 4096, 12288 },
	};

	printf("\nB of integers with scales, us simulated, and bf16's time "
	       "over theirs:\n%14s %8s %8s %5s %8s %5s\n",
	       "m x n x k", "bf16", "int8", "", "int4", "");
	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		const uint32_t *s = shape[i];
		const double b = weights_us(m, DSL_NONE, s);
		const double i8 = weights_us(m, DSL_I8, s);
		const double i4 = weights_us(m, DSL_U8, s);

		printf("%4ux%4ux%5u %8.1f ", s[0], s[1], s[2],
		       report_time(r, s, "bf16", b));
		printf("%8.1f ", report_time(r, s, "int8", i8));
		printf("%5.2f ", report_gain(r, b / i8));
		printf("%8.1f ", report_time(r, s, "int4", i4));
		printf("%5.2f\n", report_gain(r, b / i4));
	}
}

/* ------------------------------------------------ gradients of weights -- */

/* As training has it: dw += dy^T x, of f32. */
static double gradient_seconds(const struct cost_model *m,
			       const struct gemm_shape *s, char *name,
			       size_t size)
{
	const struct gemm_op op = { .in = DSL_BF16, .out = DSL_F32,
				    .a_trans = true, .beta = true };
	const struct gemm_config c = gemm_default_for(&op, s->m, s->n, s->k);
	struct sim_forecast f;
	struct gemm_code code;
	struct err e = { 0 };
	double seconds;

	if (!gemm_compile(&op, &c, NULL, &code, &e) ||
	    !gemm_sim_ours(m, &op, &c, &code, s, &seconds, &f, &e))
		BUG("%s", e.msg);
	gemm_config_name(&c, name, size);
	seconds += f.launch_s;
	sim_forecast_fini(&f);
	gemm_code_fini(&code);
	return seconds;
}

static double report_gradient(struct bench_rows *r, const struct gemm_shape *s,
			      const char *by, double seconds)
{
	char params[128];
	double us = seconds * 1e6;

	res_params(params, sizeof(params), "m:u n:u k:u by:s", s->m, s->n,
		   s->k, by);
	bench_case(r, "gradient of weights", params);
	return bench_time(r, &us, 1, 1e-6);
}

/* Qwen3 0.6B's matrices, and a chunk of its vocabulary, by rows of tokens. */
static void gradients_table(struct bench_rows *r, const struct cost_model *m,
			    const struct buf *object)
{
	static const struct gemm_shape shape[] = {
		{ .m = 3072, .n = 1024, .k = 512 },
		{ .m = 1024, .n = 3072, .k = 512 },
		{ .m = 2048, .n = 1024, .k = 2048 },
		{ .m = 1024, .n = 1024, .k = 2048 },
		{ .m = 4096, .n = 1024, .k = 2048 },
	};

	printf("\ndw += dy^T x, us simulated with a launch, and the share of "
	       "clang's time:\n%14s %8s %8s %5s  configuration\n",
	       "m x n x k", "ours", "clang", "ratio");
	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		const struct gemm_shape *s = &shape[i];
		char name[128];
		const double ours = gradient_seconds(m, s, name, sizeof(name));

		printf("%4ux%4ux%4u %8.1f ", s->m, s->n, s->k,
		       report_gradient(r, s, "T0", ours));
		if (object->len) {
			const double its = clang_seconds(m, object, s, true);

			printf("%8.1f ", report_gradient(r, s, "clang-19 -O3",
							 its));
			printf("%5.2f ", bench_ratio_one(r, "clang-19 -O3",
							 RES_LOWER,
							 ours / its));
		}
		printf(" %s\n", name);
	}
}

/* A rounding to bf16 of sums below 32; of f32, products are exact. */
static bool is_right(const struct buf *object, struct err *e)
{
	static const double bound[2] = { 0x1p-4, 1e-4 };

	for (int tn = 0; object->len && tn < 2; tn++) {
		const double worst = clang_error(object, tn);

		if (worst > bound[tn])
			return err_set(e, ERR_INPUT,
				       "clang's %s is wrong by %g",
				       clang_kernel(tn), worst);
	}
	return true;
}

static void report_all(struct bench_rows *r, const struct buf *object)
{
	const unsigned n_sizes = bench_rounds(ARRAY_SIZE(sizes));
	struct cost_model m;

	cost_init(&m, "gfx1100");
	r->origin = RES_SIMULATED;
	printf("gemm: bf16, simulated, with a launch; TFLOPS (rocBLAS as "
	       "published, wall clock)\n"
	       "    size    ours  peak   MHz  rocBLAS   clang ratio  limit  "
	       "wmma  configuration\n");
	for (int b_trans = 1; b_trans >= 0; b_trans--)
		for (size_t k = 0; k < n_sizes; k++)
			row(r, &m, object, b_trans, sizes[k]);
	weights_table(r, &m);
	gradients_table(r, &m, object);
	cost_fini(&m);
}

int main(int argc, char **argv)
{
	struct buf object = { 0 };
	struct bench_rows r;
	struct err e = { 0 };

	bench_open(&r, "gemm", argc, argv);
	bool good = clang_compile(&object, &e) && is_right(&object, &e);
	if (good)
		report_all(&r, &object);
	buf_fini(&object);
	return bench_close(&r, good, &e);
}
