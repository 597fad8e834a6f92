/*
 * The host's GEMM against OpenBLAS and BLIS (bench-blas.h says how): f32,
 * square and of the shapes of Qwen3-0.6B (weights stored [n][k]), and with
 * weights of 16 bits.
 *
 *	tests/bench/host-gemm [THREADS [M [v4|v3]]]
 *
 * In the same turns: T0's own way without AMX ("v4", where it chose AMX), and
 * as many multiply-adds in registers as the threads can do, the peak that the
 * share is of; AMX may exceed it.
 */
#include "engine/weights/weights.h"
#include "tests/bench/blas.h"

enum { ROUNDS = 11, MIN_NS = 4000000, FMA_ROUNDS = 20000 };
enum { PEAK = BENCH_OWN, PLAIN };

struct own {
	struct cpu_gemm plain; /* without AMX */
	struct cpu_gemm_config config;
	double flop[2]; /* of each thread at the peak */
};

static void plain(struct bench *b)
{
	const struct own *o = b->ctx;

	cpu_gemm(&o->plain, b->scratch, b->threads);
}

/* NULL where T0 chose no AMX. */
static void (*plain_init(struct bench *b, struct own *o))(struct bench *b)
{
	if (b->config.level <= 4)
		return NULL;
	setenv("T0_HOST_SIMD", "v4", 1);
	cpu_gemm_default(&b->g, &o->config);
	unsetenv("T0_HOST_SIMD");
	o->plain = b->g;
	o->plain.config = &o->config;
	return plain;
}

static void peak_part(void *ctx, struct threads *t, unsigned thread)
{
	struct own *o = ctx;

	(void)t;
	o->flop[thread] = qwen_kernels_best()->fma(FMA_ROUNDS);
}

static void peak(struct bench *b)
{
	if (b->threads)
		threads_run(b->threads, peak_part, b->ctx);
	else
		peak_part(b->ctx, NULL, 0);
}

static void report(struct bench_rows *r, const struct bench *b,
		   struct table *t)
{
	enum { WAY = BENCH_COLUMN + BENCH_GEMV };
	const struct own *o = b->ctx;
	double limit = (o->flop[0] + o->flop[1]) / bench_least(b, PEAK);
	char how[CPU_GEMM_TEXT];

	cpu_gemm_config_name(&b->config, how);
	how[strcspn(how, " ") + strcspn(strchr(how, ' ') + 1, " ") + 1] = 0;
	bench_report(r, b, t);
	table_cell(t, WAY, "%s", how);
	table_cell(t, WAY + 1, "%.0f %%",
		   100 * bench_ratio_one(r, "FMA peak", RES_HIGHER,
					 bench_flops(b, BENCH_T0) / limit));
	if (!bench_has(b, PLAIN))
		return;
	table_cell(t, WAY + 3, "%.2f",
		   bench_against(r, b, PLAIN, "T0 without AMX").value);
	table_cell(t, WAY + 2, "%.1f", bench_report_side(r, b, PLAIN) * 1e-9);
}

static void shape(struct bench_rows *r, struct table *t, unsigned threads,
		  const struct cpu_problem *p)
{
	struct own o = { 0 };
	struct bench b;

	bench_init(&b, threads, p);
	b.rounds = bench_rounds(ROUNDS);
	b.min_ns = MIN_NS;
	b.ctx = &o;
	b.own[PEAK - BENCH_OWN] = peak;
	b.own[PLAIN - BENCH_OWN] = plain_init(&b, &o);
	b.own_name[PLAIN - BENCH_OWN] = "T0 without AMX";
	bench_measure(&b);
	report(r, &b, t);
	bench_fini(&b);
}

int main(int argc, char **argv)
{
	static const struct cpu_problem problem[] = {
		{ 256, 256, 256, CPU_GEMM_F32, false },
		{ 512, 512, 512, CPU_GEMM_F32, false },
		{ 1024, 1024, 1024, CPU_GEMM_F32, false },
		{ 2048, 2048, 2048, CPU_GEMM_F32, false },
		/* Fewer rows: tests/bench/host-thin. */
		{ 16, 1024, 1024, CPU_GEMM_F32, true },
		{ 16, 3072, 1024, CPU_GEMM_F32, true },
		{ 16, 1024, 3072, CPU_GEMM_F32, true },
		{ 16, 2048, 1024, CPU_GEMM_F32, true },
		{ 128, 1024, 1024, CPU_GEMM_F32, true },
		{ 128, 3072, 1024, CPU_GEMM_F32, true },
		{ 128, 1024, 3072, CPU_GEMM_F32, true },
		{ 128, 2048, 1024, CPU_GEMM_F32, true },
		{ 16, 3072, 1024, CPU_GEMM_BF16, true },
		{ 128, 3072, 1024, CPU_GEMM_BF16, true },
		{ 512, 1024, 1024, CPU_GEMM_BF16, true },
		{ 512, 3072, 1024, CPU_GEMM_BF16, true },
		{ 512, 1024, 3072, CPU_GEMM_BF16, true },
		{ 512, 2048, 1024, CPU_GEMM_BF16, true },
		{ 512, 1024, 1024, CPU_GEMM_F16, true },
		{ 512, 1024, 1024, CPU_GEMM_F32, true },
	};
	const struct bench_args a = bench_start(argc, argv);
	struct bench_rows r;
	struct err e = { 0 };
	struct table t;

	bench_open(&r, "host-gemm", argc, argv);

	table_init(&t, BENCH_COLUMNS ",T0's way,#of FMA,#T0 v4,#to v4");
	for (unsigned n = 1; n <= 2; n++)
		for (size_t i = 0; i < ARRAY_SIZE(problem); i++)
			if ((!a.threads || a.threads == n) &&
			    (!a.m || a.m == problem[i].m))
				shape(&r, &t, n, &problem[i]);
	printf("bench-host-gemm: GFLOP/s at best; A and C are f32\n");
	bool good = table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	return bench_close(&r, good, &e);
}
