/*
 * Products of few rows on the host against OpenBLAS and BLIS, in one process:
 * shapes of Qwen3-0.6B (weights stored [n][k]).  They are loaded where they are
 * installed; nothing is linked with them.  bench-host-gemm has the others.
 *
 *	bench-host-thin [THREADS [M [v4|v3 [f32|bf16|f16]]]]
 *
 * All take turns, in an order that changes; each time is that of enough calls
 * for a few milliseconds.  A ratio is the time of the best of theirs to ours
 * in the same turn, > 1 where we are faster: its median with a 95 % interval,
 * and behind it the ratio of the best times.  With one row, their sgemv counts,
 * too; there all depends on the memory, so turns are many and short, and what
 * merely reads B takes its turn as well ("of reading": its time to ours).  One
 * thread is timed by its own clock of the processor, two by the wall's.
 *
 * All read the same f32 matrix.  A B of 16 bits is only ours: they have no such
 * product, so they read the same values as f32.
 *
 * BLIS 0.9 does not know processors after Ice Lake and then takes kernels for
 * AVX2.  Where there is AVX-512, those for that take part, too: a second copy
 * of the library that is told to.
 */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "autotune/host.h"
#include "base/float.h"
#include "results/stats.h"

enum { ROUNDS_MAX = 101, OURS = 0, READS = 7, SIDES = 8 };
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
	const char *arch; /* what BLIS_ARCH_TYPE says while it starts */
	sgemm_fn *sgemm;
	sgemv_fn *sgemv;
	void *handle;
};

static struct library library[] = {
	{ "OpenBLAS",
	  { "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
	    "libopenblas.so.0" },
	  "openblas_set_num_threads", NULL, NULL, NULL, NULL },
	{ "BLIS AVX2",
	  { "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
	    "libblis.so.4" },
	  "bli_thread_set_num_threads", "3", NULL, NULL, NULL },
	{ "BLIS AVX-512", { NULL }, "bli_thread_set_num_threads", "0", NULL,
	  NULL, NULL },
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

/* The file of a loaded library once more, under a name of its own. */
static void *second_copy(const struct library *first)
{
	char name[64], byte[4096];
	Dl_info info;
	int fd = memfd_create("second copy", 0);
	FILE *in, *out = fdopen(fd, "wb");
	size_t n;

	if (!first->sgemm || !out || !dladdr((void *)first->sgemm, &info))
		return NULL;
	in = fopen(info.dli_fname, "rb");
	while (in && (n = fread(byte, 1, sizeof(byte), in)))
		fwrite(byte, 1, n, out);
	if (in)
		fclose(in);
	fflush(out);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	fclose(out);
	return handle;
}

static void load(struct library *l)
{
	for (int i = 0; i < 2 && l->file[i] && !l->handle; i++)
		l->handle = dlopen(l->file[i], RTLD_NOW | RTLD_LOCAL);
	if (!l->file[0])
		l->handle = second_copy(l - 1);
	if (!l->handle) {
		fprintf(stderr, "bench-host-thin: no %s here; scripts/setup "
			"test installs it\n", l->name);
		return;
	}
	l->sgemm = (sgemm_fn *)dlsym(l->handle, "cblas_sgemm");
	l->sgemv = (sgemv_fn *)dlsym(l->handle, "cblas_sgemv");
	void (*start)(void) = (void (*)(void))dlsym(l->handle, "bli_init");
	if (l->arch && start) {
		setenv("BLIS_ARCH_TYPE", l->arch, 1);
		start();
	}
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
	struct host_gemm g;
	struct host_gemm_config config;
	const float *wide; /* B as f32, for them */
	unsigned n_threads, rounds;
	uint64_t min_ns;   /* of a turn */
	int last;	   /* side that had its turn */
	struct threads *threads;
	struct host_gemm_scratch *scratch;
};

/* Sides: ours, then sgemm and sgemv of each library, then nothing but B. */
static bool side_is_there(const struct bench *b, int side)
{
	const struct library *l = &library[(side - 1) / 2];

	if (side == OURS)
		return true;
	if (side == READS)
		return b->g.m == 1;
	return side % 2 ? l->sgemm != NULL : l->sgemv && b->g.m == 1;
}

/*
 * Reads a thread's share of B, as fast as was found: from eight places, 1 KB
 * ahead of each.
 */
static void read_share(void *ctx, struct threads *t, unsigned thread)
{
	typedef int32_t vec __attribute__((vector_size(16), may_alias));
	enum { STREAMS = 8, LINE = 64, AHEAD = 1024 };
	const struct host_gemm *g = ctx;
	unsigned parts = t ? threads_count(t) : 1;
	size_t share = g->n * g->k * (g->b_type == HOST_GEMM_F32 ? 4 : 2) /
		       parts;
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

static void call(const struct bench *b, int side)
{
	const struct library *l = &library[(side - 1) / 2];
	const struct host_gemm *g = &b->g;
	int m = (int)g->m, n = (int)g->n, k = (int)g->k, ldb = (int)g->ldb;

	if (side == OURS)
		host_gemm(g, b->scratch, b->threads);
	else if (side == READS && b->threads)
		threads_run(b->threads, read_share, (void *)(uintptr_t)g);
	else if (side == READS)
		read_share((void *)(uintptr_t)g, NULL, 0);
	else if (side % 2)
		l->sgemm(ROW_MAJOR, NO_TRANS, g->b_by_n ? TRANS : NO_TRANS, m,
			 n, k, 1, g->a, k, b->wide, ldb, 0, g->c, n);
	else
		l->sgemv(ROW_MAJOR, g->b_by_n ? NO_TRANS : TRANS,
			 g->b_by_n ? n : k, g->b_by_n ? k : n, 1, b->wide, ldb,
			 g->a, 1, 0, g->c, 1);
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
		run_on(side > 2 && side != READS ? BOTH : FIRST);
		if (b->last == 1 || b->last == 2)
			usleep(PAUSE_US);
	}
	b->last = side;
	call(b, side);
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
static double difference(const struct bench *b, int side)
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
static int best_of_theirs(const struct bench *b, double (*time)[ROUNDS_MAX])
{
	double best = INFINITY;
	int side = OURS;

	for (int s = 1; s < READS; s++) {
		if (!side_is_there(b, s))
			continue;
		double t = res_median(time[s], b->rounds).value;
		if (t < best) {
			best = t;
			side = s;
		}
	}
	return side;
}

/* The time of a side to ours, turn by turn. */
static struct res_interval ratio_of(const struct bench *b,
				    double (*time)[ROUNDS_MAX], int side)
{
	double ratio[ROUNDS_MAX];

	for (unsigned i = 0; i < b->rounds; i++)
		ratio[i] = time[side][i] / time[OURS][i];
	return res_median(ratio, b->rounds);
}

static const char *const type_name[] = { [HOST_GEMM_F32] = "f32",
					 [HOST_GEMM_F16] = "f16",
					 [HOST_GEMM_BF16] = "bf16" };

static void report(struct table *t, const struct bench *b,
		   double (*time)[ROUNDS_MAX])
{
	const struct host_gemm *g = &b->g;
	double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
	int best = best_of_theirs(b, time);

	table_row(t);
	table_cell(t, 0, "%zux%zux%zu", g->m, g->n, g->k);
	table_cell(t, 1, "%s[%s]", type_name[g->b_type],
		   g->b_by_n ? "n][k" : "k][n");
	table_cell(t, 2, "%u", b->n_threads);
	for (int s = 0; s < READS; s++)
		if (side_is_there(b, s))
			table_cell(t, 3 + s, "%.1f",
				   flops / least(time[s], b->rounds) * 1e-9);
	if (best == OURS)
		return;
	struct res_interval r = ratio_of(b, time, best);
	table_cell(t, 10, "%.3f", r.value);
	table_cell(t, 11, "%.3f-%.3f", r.lo, r.hi);
	table_cell(t, 12, "%.2f", least(time[best], b->rounds) /
					  least(time[OURS], b->rounds));
	table_cell(t, 13, "%s%s", library[(best - 1) / 2].name,
		   best % 2 ? "" : "'s gemv");
	if (side_is_there(b, READS))
		table_cell(t, 14, "%.3f", ratio_of(b, time, READS).value);
}

static void measure(struct table *t, struct bench *b)
{
	double time[SIDES][ROUNDS_MAX];
	unsigned calls[SIDES] = { 0 };

	for (int s = 0; s < SIDES; s++)
		if (side_is_there(b, s)) {
			double d = s == READS ? 0 : difference(b, s);
			if (d > 1e-6 * (double)b->g.k)
				BUG("C differs by %g", d);
			double one = timed(b, s, 1);
			calls[s] =
				1 + (unsigned)((double)b->min_ns * 1e-9 / one);
		}
	for (int i = 0; i < (int)b->rounds; i++)
		for (int s = 0; s < SIDES; s++) {
			int side = (s * (i % 2 ? 5 : 3) + i) % SIDES;
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

/* Makes B what its type can hold, and *wide the same values as f32. */
static void narrow(struct host_gemm *g, float **wide)
{
	static const int bits[][2] = { [HOST_GEMM_F16] = { 5, 10 },
				       [HOST_GEMM_BF16] = { 8, 7 } };
	const int *w = bits[g->b_type];
	float *b = (float *)(uintptr_t)g->b;

	*wide = b;
	if (g->b_type == HOST_GEMM_F32)
		return;
	size_t n = g->n * g->k;
	uint16_t *half = aligned_alloc(4096, (n * 2 + 4095) / 4096 * 4096);
	if (!half)
		BUG("no memory for a matrix of %zu", n);
	for (size_t i = 0; i < n; i++) {
		half[i] = (uint16_t)float_bits(b[i], w[0], w[1]);
		b[i] = (float)float_value(half[i], w[0], w[1]);
	}
	g->b = half;
}

/* One row takes as long as B does: many short turns, all about as long. */
static void plan_turns(struct bench *b)
{
	bool thin = b->g.m == 1, large = b->g.n * b->g.k > 100000000;

	b->min_ns = thin ? 300000 : 4000000;
	b->rounds = !thin ? 11 : large ? 7 : b->n_threads > 1 ? 41 : 101;
}

static void shape(struct table *t, unsigned n_threads,
		  const struct host_problem *p, int level)
{
	struct err e = { 0 };
	uint64_t seed = 1;
	struct bench b = { .n_threads = n_threads };
	float *wide;

	b.g = (struct host_gemm){ .m = p->m, .n = p->n, .k = p->k, .alpha = 1,
				  .a = matrix(p->m * p->k, &seed), .lda = p->k,
				  .b = matrix(p->n * p->k, &seed),
				  .ldb = p->b_by_n ? p->k : p->n,
				  .b_type = p->b_type, .b_by_n = p->b_by_n,
				  .c = matrix(p->m * p->n, &seed),
				  .ldc = p->n };
	narrow(&b.g, &wide);
	b.wide = wide;
	plan_turns(&b);
	if (level) {
		char name[] = { 'v', (char)('0' + level), 0 };
		setenv("T0_HOST_SIMD", name, 1);
		host_gemm_default(&b.g, &b.config);
		b.g.config = &b.config;
	}
	b.scratch = xcalloc(n_threads, sizeof(*b.scratch));
	run_on(SECOND);
	if (n_threads > 1 && !(b.threads = threads_new(n_threads, &e)))
		exit(err_report("bench-host-thin", &e));
	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		set_threads(&library[i], n_threads);
	run_on(FIRST);
	measure(t, &b);
	threads_free(b.threads);
	for (unsigned i = 0; i < n_threads; i++)
		host_gemm_scratch_fini(&b.scratch[i]);
	free(b.scratch);
	free((void *)b.g.a);
	if (b.g.b != wide)
		free((void *)b.g.b);
	free(wide);
	free(b.g.c);
}

static void shapes(struct table *t, unsigned threads, size_t m, int level,
		   enum host_gemm_type type)
{
	static const size_t rows[] = { 1, 2, 4, 8, 16 };
	static const size_t weights[][2] = { { 1024, 1024 }, { 3072, 1024 },
					     { 1024, 3072 }, { 2048, 1024 },
					     { 1024, 2048 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 0; j < ARRAY_SIZE(weights); j++)
			if (!m || m == rows[i])
				shape(t, threads,
				      &(struct host_problem){
					      rows[i], weights[j][0],
					      weights[j][1], type, true },
				      level);
	if (m > 1)
		return;
	/* The vocabulary, larger than any cache; and B [k][n]. */
	shape(t, threads,
	      &(struct host_problem){ 1, 151936, 1024, type, true }, level);
	for (size_t j = 0; j < ARRAY_SIZE(weights); j++)
		shape(t, threads,
		      &(struct host_problem){ 1, weights[j][0], weights[j][1],
					      type, false },
		      level);
}

int main(int argc, char **argv)
{
	unsigned only = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	size_t m = argc > 2 ? (size_t)atoi(argv[2]) : 0;
	int level = argc > 3 ? argv[3][1] - '0' : 0;
	enum host_gemm_type type = HOST_GEMM_F32;
	struct err e = { 0 };
	struct table t;

	for (int i = 0; argc > 4 && i < (int)ARRAY_SIZE(type_name); i++)
		if (!strcmp(argv[4], type_name[i]))
			type = (enum host_gemm_type)i;
	if (level && level < 4)
		setenv("OPENBLAS_CORETYPE", "HASWELL", 0);
	run_on(SECOND);
	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		if (i < 2 || (level ? level : cpu_level("")) == 4)
			load(&library[i]);
	run_on(FIRST);
	table_init(&t, "shape,B,#threads,#T0,#OpenBLAS,#its gemv,#BLIS AVX2,"
		       "#its gemv,#BLIS AVX-512,#its gemv,#ratio,95 %,"
		       "#of best,against,#of reading");
	for (unsigned n = 1; n <= 2; n++)
		if (!only || only == n)
			shapes(&t, n, m, level, type);
	printf("bench-host-thin: GFLOP/s at best\n");
	table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	return 0;
}
