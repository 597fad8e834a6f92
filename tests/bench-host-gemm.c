/*
 * The host's GEMM against OpenBLAS and BLIS, in one process: f32, square and of
 * the shapes of Qwen3-0.6B (weights stored [n][k]), and with weights of 16
 * bits, against their sgemm of the same weights made f32 before.  They are
 * loaded where they are installed; nothing is linked with them.
 *
 *	bench-host-gemm [THREADS [M [v3]]]
 *
 * All take turns, in an order that changes; each time is that of enough calls
 * for a few milliseconds.  A ratio is the time of the better of theirs to ours
 * in the same turn, > 1 where we are faster: its median with a 95 % interval,
 * and behind it the ratio of the best times.  With one row, their sgemv counts,
 * too.  One thread is timed by its own clock of the processor, two by the
 * wall's.
 *
 * In the same turns: T0's own way without AMX ("v4", where it chose AMX), and
 * as many multiply-adds in registers as the threads can do, the peak that the
 * share is of; AMX may exceed it.
 *
 * BLIS 0.9 does not know processors after Ice Lake and then takes kernels for
 * AVX2; it is told to take those for AVX-512 where there is that.
 */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autotune/host.h"
#include "base/float.h"
#include "engine/kernels.h"
#include "results/stats.h"

enum { ROUNDS = 11, MIN_NS = 4000000, FMA_ROUNDS = 20000 };
/* From 1 to 4: sgemm and sgemv of each library. */
enum { OURS = 0, THEIRS = 5, PLAIN = 5, PEAK = 6, SIDES = 7 };
/* OpenBLAS's threads spin for 2^26 cycles after a call, in others' way. */
enum { PAUSE_US = 50000 };
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k,
		      float alpha, const float *a, int lda, const float *b,
		      int ldb, float beta, float *c, int ldc);
typedef void sgemv_fn(int order, int t, int m, int n, float alpha,
		      const float *a, int lda, const float *x, int incx,
		      float beta, float *y, int incy);

struct library {
	const char *name;
	const char *file[2];
	const char *set_threads;
	sgemm_fn *sgemm;
	sgemv_fn *sgemv;
	void *handle;
};

static struct library library[] = {
	{ "OpenBLAS",
	  { "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
	    "libopenblas.so.0" },
	  "openblas_set_num_threads", NULL, NULL, NULL },
	{ "BLIS",
	  { "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
	    "libblis.so.4" },
	  "bli_thread_set_num_threads", NULL, NULL, NULL },
};

/*
 * The calling thread runs on the first processor, workers, which inherit what
 * is set while they are made, on the second; BLIS makes its own anew with every
 * call, so that it has both.
 */
enum { FIRST = 1, SECOND = 2, BOTH = 3 };

static void run_on(unsigned mask)
{
	static cpu_set_t all;
	cpu_set_t set;
	int n = 0;

	if (!CPU_COUNT(&all))
		sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &all) && mask >> n++ & 1)
			CPU_SET(i, &set);
	if (n == 2)
		sched_setaffinity(0, sizeof(set), &set);
}

static void load(struct library *l)
{
	for (int i = 0; i < 2 && !l->handle; i++)
		l->handle = dlopen(l->file[i], RTLD_NOW | RTLD_LOCAL);
	if (!l->handle) {
		fprintf(stderr, "bench-host-gemm: no %s here; scripts/setup "
			"test installs it\n", l->name);
		return;
	}
	l->sgemm = (sgemm_fn *)dlsym(l->handle, "cblas_sgemm");
	l->sgemv = (sgemv_fn *)dlsym(l->handle, "cblas_sgemv");
}

static void set_threads(struct library *l, unsigned n)
{
	if (l->handle && !strncmp(l->set_threads, "bli", 3))
		((void (*)(int64_t))dlsym(l->handle, l->set_threads))(n);
	else if (l->handle)
		((void (*)(int))dlsym(l->handle, l->set_threads))((int)n);
}

/* One product and what all need for it. */
struct bench {
	struct host_gemm g, plain; /* plain: without AMX */
	struct host_gemm_config config, plain_config;
	float *wide; /* B for the libraries */
	double flop[2]; /* of each thread at the peak */
	unsigned n_threads;
	struct threads *threads;
	struct host_gemm_scratch *scratch;
};

static void fma_part(void *ctx, struct threads *t, unsigned thread)
{
	struct bench *b = ctx;

	(void)t;
	b->flop[thread] = qwen_kernels_best()->fma(FMA_ROUNDS);
}

static bool side_is_there(const struct bench *b, int side)
{
	const struct library *l = &library[(side - 1) / 2];

	if (side == OURS || side == PEAK)
		return true;
	if (side == PLAIN)
		return b->config.level != b->plain_config.level;
	return side % 2 ? l->sgemm != NULL : l->sgemv && b->g.m == 1;
}

static void call(struct bench *b, int side)
{
	const struct library *l = &library[(side - 1) / 2];
	const struct host_gemm *g = &b->g;
	int m = (int)g->m, n = (int)g->n, k = (int)g->k, ldb = (int)g->ldb;

	if (side == OURS)
		host_gemm(g, b->scratch, b->threads);
	else if (side == PLAIN)
		host_gemm(&b->plain, b->scratch, b->threads);
	else if (side == PEAK && b->threads)
		threads_run(b->threads, fma_part, b);
	else if (side == PEAK)
		fma_part(b, NULL, 0);
	else if (side % 2)
		l->sgemm(ROW_MAJOR, NO_TRANS, g->b_by_n ? TRANS : NO_TRANS, m,
			 n, k, 1, g->a, k, b->wide, ldb, 0, g->c, n);
	else
		l->sgemv(ROW_MAJOR, NO_TRANS, n, k, 1, b->wide, ldb, g->a, 1, 0,
			 g->c, 1);
}

static uint64_t clock_ns(unsigned threads)
{
	struct timespec t;

	clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
		      &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds of one call. */
static double timed(struct bench *b, int side, unsigned calls)
{
	uint64_t from;

	if (b->n_threads > 1) {
		run_on(side == 3 || side == 4 ? BOTH : FIRST);
		usleep(PAUSE_US);
	}
	call(b, side);
	if (calls > 1)
		call(b, side);
	from = clock_ns(b->n_threads);
	for (unsigned i = 0; i < calls; i++)
		call(b, side);
	return (double)(clock_ns(b->n_threads) - from) * 1e-9 / calls;
}

static double least(const double *x, size_t n)
{
	double best = x[0];

	for (size_t i = 1; i < n; i++)
		best = x[i] < best ? x[i] : best;
	return best;
}

/* The largest difference of C from the first library's, for a sane result. */
static double difference(struct bench *b, int side)
{
	size_t n = b->g.m * b->g.n;
	float *mine = xmalloc(n * sizeof(*mine));
	double most = 0;

	call(b, OURS);
	memcpy(mine, b->g.c, n * sizeof(*mine));
	call(b, side);
	for (size_t i = 0; i < n; i++) {
		double d = (double)mine[i] - b->g.c[i];
		most = d > most ? d : -d > most ? -d : most;
	}
	free(mine);
	return most;
}

/* The side of theirs that is best in the middle; OURS if there is none. */
static int best_of_theirs(const struct bench *b, double (*time)[ROUNDS])
{
	double best = INFINITY;
	int side = OURS;

	for (int s = 1; s < THEIRS; s++) {
		if (!side_is_there(b, s))
			continue;
		double t = res_median(time[s], ROUNDS).value;
		if (t < best) {
			best = t;
			side = s;
		}
	}
	return side;
}

static void report(struct table *t, const struct bench *b,
		   double (*time)[ROUNDS])
{
	const struct host_gemm *g = &b->g;
	double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
	double ratio[ROUNDS], ours = flops / least(time[OURS], ROUNDS);
	double peak = (b->flop[0] + b->flop[1]) / least(time[PEAK], ROUNDS);
	static const char *const types[] = { "f32", "f16", "bf16" };
	int best = best_of_theirs(b, time);
	char how[HOST_GEMM_TEXT];

	table_row(t);
	host_gemm_config_name(&b->config, how);
	how[strcspn(how, " ") + strcspn(strchr(how, ' ') + 1, " ") + 1] = 0;
	table_cell(t, 0, "%zux%zux%zu", g->m, g->n, g->k);
	table_cell(t, 1, "%s", types[g->b_type]);
	table_cell(t, 2, "%u", b->n_threads);
	table_cell(t, 3, "%s", how);
	table_cell(t, 4, "%.0f %%", 100 * ours / peak);
	for (int s = 0; s < PEAK; s++)
		if (side_is_there(b, s))
			table_cell(t, 5 + s, "%.1f",
				   flops / least(time[s], ROUNDS) * 1e-9);
	if (side_is_there(b, PLAIN)) {
		for (int i = 0; i < ROUNDS; i++)
			ratio[i] = time[PLAIN][i] / time[OURS][i];
		table_cell(t, 11, "%.2f", res_median(ratio, ROUNDS).value);
	}
	if (best == OURS)
		return;
	for (int i = 0; i < ROUNDS; i++)
		ratio[i] = time[best][i] / time[OURS][i];
	struct res_interval r = res_median(ratio, ROUNDS);
	table_cell(t, 12, "%.2f", r.value);
	table_cell(t, 13, "%.2f-%.2f", r.lo, r.hi);
	table_cell(t, 14, "%.2f",
		   least(time[best], ROUNDS) / least(time[OURS], ROUNDS));
}

static void measure(struct table *t, struct bench *b)
{
	double time[SIDES][ROUNDS];
	unsigned calls[SIDES] = { 0 };

	for (int s = 0; s < SIDES; s++)
		if (side_is_there(b, s)) {
			double d = s == PEAK ? 0 : difference(b, s);
			if (d > 1e-6 * (double)b->g.k)
				BUG("C differs by %g", d);
			double one = timed(b, s, 1);
			calls[s] = 1 + (unsigned)(MIN_NS * 1e-9 / one);
		}
	for (int i = 0; i < ROUNDS; i++)
		for (int s = 0; s < SIDES; s++) {
			int side = (s * (i % 2 ? 2 : 3) + i) % SIDES;
			if (side_is_there(b, side))
				time[side][i] = timed(b, side, calls[side]);
		}
	report(t, b, time);
}

static float *matrix(size_t n, uint64_t *seed)
{
	float *x = aligned_alloc(4096, (n * sizeof(*x) + 4095) / 4096 * 4096);

	if (!x)
		BUG("no memory for a matrix of %zu", n);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)(random_next(seed) >> 11) * 0x1p-52 - 1);
	return x;
}

/* B in its type; `wide` becomes what that holds. */
static const void *weights(enum host_gemm_type type, float *wide, size_t n)
{
	bool f16 = type == HOST_GEMM_F16;
	int e = f16 ? 5 : 8, m = f16 ? 10 : 7;
	uint16_t *x;

	if (type == HOST_GEMM_F32)
		return wide;
	x = xmalloc(n * sizeof(*x));
	for (size_t i = 0; i < n; i++) {
		x[i] = (uint16_t)float_bits(wide[i], e, m);
		wide[i] = (float)float_value(x[i], e, m);
	}
	return x;
}

static void configure(struct bench *b, int level)
{
	static const char *const name[] = { "v2", "v3", "v4" };

	if (level)
		setenv("T0_HOST_SIMD", name[level - 2], 1);
	host_gemm_default(&b->g, &b->config);
	b->plain = b->g;
	if (!level) {
		setenv("T0_HOST_SIMD", "v4", 1);
		host_gemm_default(&b->plain, &b->plain_config);
		unsetenv("T0_HOST_SIMD");
	} else {
		b->plain_config = b->config;
	}
	b->g.config = &b->config;
	b->plain.config = &b->plain_config;
}

static void shape(struct table *t, unsigned n_threads, size_t m, size_t n,
		  size_t k, enum host_gemm_type type, bool by_n, int level)
{
	struct err e = { 0 };
	uint64_t seed = 1;
	struct bench b = { .n_threads = n_threads,
			   .wide = matrix(n * k, &seed) };

	b.g = (struct host_gemm){ .m = m, .n = n, .k = k, .alpha = 1,
				  .a = matrix(m * k, &seed), .lda = k,
				  .b = weights(type, b.wide, n * k),
				  .ldb = by_n ? k : n,
				  .b_type = type, .b_by_n = by_n,
				  .c = matrix(m * n, &seed), .ldc = n };
	configure(&b, level);
	b.scratch = xcalloc(n_threads, sizeof(*b.scratch));
	run_on(SECOND);
	if (n_threads > 1 && !(b.threads = threads_new(n_threads, &e)))
		exit(err_report("bench-host-gemm", &e));
	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		set_threads(&library[i], n_threads);
	run_on(FIRST);
	measure(t, &b);
	threads_free(b.threads);
	for (unsigned i = 0; i < n_threads; i++)
		host_gemm_scratch_fini(&b.scratch[i]);
	free(b.scratch);
	free((void *)b.g.a);
	if (b.g.b != b.wide)
		free((void *)b.g.b);
	free(b.wide);
	free(b.g.c);
}

int main(int argc, char **argv)
{
	static const size_t square[] = { 256, 512, 1024, 2048 };
	static const size_t rows[] = { 16, 128 }; /* few: bench-host-thin */
	static const size_t layers[][2] = { { 1024, 1024 }, { 3072, 1024 },
					     { 1024, 3072 }, { 2048, 1024 } };
	static const struct {
		size_t m, n, k;
		enum host_gemm_type type;
	} typed[] = {
		{ 16, 3072, 1024, HOST_GEMM_BF16 },
		{ 128, 3072, 1024, HOST_GEMM_BF16 },
		{ 512, 1024, 1024, HOST_GEMM_BF16 },
		{ 512, 3072, 1024, HOST_GEMM_BF16 },
		{ 512, 1024, 3072, HOST_GEMM_BF16 },
		{ 512, 2048, 1024, HOST_GEMM_BF16 },
		{ 512, 1024, 1024, HOST_GEMM_F16 },
		{ 512, 1024, 1024, HOST_GEMM_F32 },
	};
	unsigned only = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	size_t m = argc > 2 ? (size_t)atoi(argv[2]) : 0;
	int level = argc > 3 ? argv[3][1] - '0' : 0;
	struct err e = { 0 };
	struct table t;

	if ((level ? level : cpu_level("")) == 4)
		setenv("BLIS_ARCH_TYPE", "0", 0);
	else if (level)
		setenv("OPENBLAS_CORETYPE", "HASWELL", 0);
	run_on(SECOND);
	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		load(&library[i]);
	run_on(FIRST);
	table_init(&t, "shape,B,#threads,T0's way,#of FMA,#T0,#OpenBLAS,"
		       "#its gemv,#BLIS,#its gemv,#T0 v4,#to v4,#to theirs,"
		       "95 %,#of best");
	for (unsigned n = 1; n <= 2; n++) {
		if (only && only != n)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(square); i++)
			if (!m || m == square[i])
				shape(&t, n, square[i], square[i], square[i],
				      HOST_GEMM_F32, false, level);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			for (size_t j = 0; j < ARRAY_SIZE(layers); j++)
				if (!m || m == rows[i])
					shape(&t, n, rows[i], layers[j][0],
					      layers[j][1], HOST_GEMM_F32,
					      true, level);
		for (size_t i = 0; i < ARRAY_SIZE(typed); i++)
			if (!m || m == typed[i].m)
				shape(&t, n, typed[i].m, typed[i].n, typed[i].k,
				      typed[i].type, true, level);
	}
	printf("bench-host-gemm: GFLOP/s of the best of %d; A and C "
	       "are f32\n", ROUNDS);
	table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	return 0;
}
