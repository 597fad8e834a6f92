/*
 * Products of few rows on the host against OpenBLAS and BLIS (bench-blas.h says
 * how): shapes of Qwen3-0.6B (weights stored [n][k]).  tests/bench/host-gemm
 * has the others.
 *
 *	tests/bench/host-thin [THREADS [M [v4|v3 [f32|bf16|f16]]]]
 *
 * With one row all depends on the memory, so turns are many and short, and what
 * merely reads B takes its turn as well ("of reading": its time to ours).
 */
#include "tests/bench/blas.h"

enum { READS = BENCH_OWN };

/*
 * Reads a thread's share of B, as fast as was found: from eight places, 1 KB
 * ahead of each.
 */
static void read_share(void *ctx, struct threads *t, unsigned thread)
{
	typedef int32_t vec __attribute__((vector_size(16), may_alias));
	enum { STREAMS = 8, LINE = 64, AHEAD = 1024 };
	const struct cpu_gemm *g = ctx;
	unsigned parts = t ? threads_count(t) : 1;
	size_t share =
		g->n * g->k * (g->b_type == CPU_GEMM_F32 ? 4 : 2) / parts;
	size_t step = share / STREAMS / LINE * LINE;
	const char *p = (const char *)g->b + share * thread / LINE * LINE;
	vec sum[STREAMS] = { { 0 } };
	volatile int32_t sink;

	for (size_t at = 0; at < step; at += LINE)
#pragma GCC unroll 8
		for (int i = 0; i < STREAMS; i++) {
			const vec *v = (const vec *)(p + i * step + at);
			__builtin_prefetch((const char *)v + AHEAD);
			sum[i] += (v[0] + v[1]) + (v[2] + v[3]);
		}
	for (int i = 1; i < STREAMS; i++)
		sum[0] += sum[i];
	sink = sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
	(void)sink;
}

static void reads(struct bench *b)
{
	if (b->threads)
		threads_run(b->threads, read_share, &b->g);
	else
		read_share(&b->g, NULL, 0);
}

/* One row takes as long as B does: many short turns, all about as long. */
static void plan_turns(struct bench *b)
{
	bool thin = b->g.m == 1, large = b->g.n * b->g.k > 100000000;

	b->min_ns = thin ? 300000 : 4000000;
	b->rounds = bench_rounds(!thin ? 11 : large ? 7 :
				 b->n_threads > 1 ? 41 : 101);
}

static void shape(struct bench_rows *r, struct table *t, unsigned threads,
		  size_t m, const size_t *weights, enum cpu_gemm_type type,
		  bool by_n)
{
	enum { READING = BENCH_COLUMN + BENCH_OWN };
	const struct cpu_problem p = { m, weights[0], weights[1], type, by_n,
				       CPU_GEMM_F32 };
	struct bench b;

	bench_init(&b, threads, &p);
	plan_turns(&b);
	b.own[READS - BENCH_OWN] = m == 1 ? reads : NULL;
	bench_measure(&b);
	bench_report(r, &b, t);
	if (m == 1)
		table_cell(t, READING, "%.3f",
			   bench_against(r, &b, READS, "reading B").value);
	bench_fini(&b);
}

static void shapes(struct bench_rows *r, struct table *t, unsigned threads,
		   size_t m, enum cpu_gemm_type type)
{
	static const size_t rows[] = { 1, 2, 4, 8, 16 };
	/* [n, k]; the last, of the vocabulary, is larger than any cache. */
	static const size_t weights[][2] = {
		{ 1024, 1024 }, { 3072, 1024 }, { 1024, 3072 },
		{ 2048, 1024 }, { 1024, 2048 }, { 151936, 1024 },
	};
	enum { LAYERS = ARRAY_SIZE(weights) - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 0; j < LAYERS + (rows[i] == 1); j++)
			if (!m || m == rows[i])
				shape(r, t, threads, rows[i], weights[j], type,
				      true);
	for (size_t j = 0; j < LAYERS && m <= 1; j++)
		shape(r, t, threads, 1, weights[j], type, false);
}

int main(int argc, char **argv)
{
	const struct bench_args a = bench_start(argc, argv);
	enum cpu_gemm_type type = CPU_GEMM_F32;
	struct bench_rows r;
	struct err e = { 0 };
	struct table t;

	bench_open(&r, "host-thin", argc, argv);
	for (int i = 0; argc > 4 && i < CPU_GEMM_TYPES; i++)
		if (!strcmp(argv[4], cpu_gemm_type_name(i)))
			type = (enum cpu_gemm_type)i;
	table_init(&t, BENCH_COLUMNS ",#OpenBLAS gemv,#BLIS AVX2 gemv,"
				     "#BLIS AVX-512 gemv,#of reading");
	for (unsigned n = 1; n <= 2; n++)
		if (!a.threads || a.threads == n)
			shapes(&r, &t, n, a.m, type);
	printf("bench-host-thin: GFLOP/s at best\n");
	bool good = table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	return bench_close(&r, good, &e);
}
