/*
 * T0's products on the host against OpenBLAS and BLIS, in one process, for
 * benchmarks.  They are loaded where they are installed; nothing is linked with
 * them.
 *
 * Neither knows processors that are younger than it.  Then OpenBLAS 0.3.21
 * takes kernels for SSE, a fifth as fast; it is told to take those for what
 * there is, unless OPENBLAS_CORETYPE says otherwise.  BLIS 0.9 takes kernels
 * for AVX2, which are the better ones for some shapes.  So it takes part as two
 * libraries: one is told to take those, and, where there is AVX-512, a second
 * copy those for that.
 *
 * All sides take turns, in an order that changes; each time is that of enough
 * calls for a few milliseconds.  A ratio is the time of the best of theirs to
 * ours in the same turn, > 1 where we are faster: its median with a 95 %
 * interval, and behind it the ratio of the best times.  The best of theirs is
 * the one with the least median of the three at that shape, with one row of
 * their sgemv, too.  One thread is timed by its own clock of the processor,
 * two by the wall's, and every turn of two begins with a pause.
 *
 * All read the same f32 matrix.  A B of 16 bits is only ours: they have no such
 * product, so they read the same values as f32.
 */
#ifndef T0_TESTS_BENCH_BLAS_H
#define T0_TESTS_BENCH_BLAS_H

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "base/float.h"
#include "results/stats/stats.h"
#include "tests/bench/rows.h"

enum {
	BENCH_ROUNDS_MAX = 101,
	BENCH_LIBRARIES = 3,
	BENCH_OWN_MAX = 2,
	/* Sides: T0, sgemm and sgemv of each library, the benchmark's own. */
	BENCH_T0 = 0,
	BENCH_GEMM = 1,
	BENCH_GEMV = BENCH_GEMM + BENCH_LIBRARIES,
	BENCH_OWN = BENCH_GEMV + BENCH_LIBRARIES,
	BENCH_SIDES = BENCH_OWN + BENCH_OWN_MAX,
};

/* One product, and what all sides need for it. */
struct bench {
	struct cpu_gemm g;
	struct cpu_gemm_config config;
	float *wide; /* B for the libraries */
	unsigned n_threads;
	struct threads *threads;	   /* NULL: one */
	struct cpu_gemm_scratch *scratch; /* [n_threads] */
	/* The benchmark fills these, `rounds` with BENCH_ROUNDS_MAX at most. */
	unsigned rounds;
	uint64_t min_ns;			     /* of a turn */
	void (*own[BENCH_OWN_MAX])(struct bench *b); /* NULL: not there */
	const char *own_name[BENCH_OWN_MAX];
	void *ctx;				     /* for `own` */
	/* Seconds of one call; of sides that are there. */
	double time[BENCH_SIDES][BENCH_ROUNDS_MAX];
};

/*
 * What all such benchmarks take: [THREADS [M [LEVEL]]].  0 is all; LEVEL is
 * "v3" or "v4", of all sides, and without AMX.
 */
struct bench_args {
	unsigned threads;
	size_t m;
};

/* ---------------------------------------------------------- libraries ---- */

typedef void bench_sgemm_fn(int order, int ta, int tb, int m, int n, int k,
			    float alpha, const float *a, int lda,
			    const float *b, int ldb, float beta, float *c,
			    int ldc);
typedef void bench_sgemv_fn(int order, int t, int m, int n, float alpha,
			    const float *a, int lda, const float *x, int incx,
			    float beta, float *y, int incy);

static struct bench_library {
	const char *name;
	const char *file[2]; /* none: the one before, once more */
	const char *set_threads;
	int level;	  /* of x86-64 that it takes */
	const char *arch; /* what BLIS_ARCH_TYPE says while it starts */
	void *handle;
	bench_sgemm_fn *sgemm;
	bench_sgemv_fn *sgemv;
} bench_library[BENCH_LIBRARIES] = {
	{ .name = "OpenBLAS",
	  .file = { "/usr/lib/x86_64-linux-gnu/openblas-pthread/"
		    "libopenblas.so.0",
		    "libopenblas.so.0" },
	  .set_threads = "openblas_set_num_threads" },
	{ .name = "BLIS AVX2",
	  .set_threads = "bli_thread_set_num_threads",
	  .level = 3,
	  .file = { "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
		    "libblis.so.4" },
	  .arch = "3" },
	{ .name = "BLIS AVX-512",
	  .set_threads = "bli_thread_set_num_threads",
	  .level = 4,
	  .arch = "0" },
};

/*
 * The calling thread runs on the first processor, workers, which inherit what
 * is set while they are made, on the second; BLIS makes its own anew with every
 * call, so that it has both.
 */
enum bench_cpus { BENCH_FIRST = 1, BENCH_SECOND = 2, BENCH_BOTH = 3 };

static void bench_run_on(enum bench_cpus mask)
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
static void *bench_second_copy(const struct bench_library *first)
{
	char name[64];
	struct buf file = { 0 };
	struct err e = { 0 };
	Dl_info info;
	int fd = memfd_create("second copy", 0);

	if (!first->sgemm || fd < 0 || !dladdr((void *)first->sgemm, &info) ||
	    !file_read(info.dli_fname, 0, &file, &e) ||
	    write(fd, file.data, file.len) != (ssize_t)file.len)
		return NULL;
	buf_fini(&file);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	close(fd);
	return handle;
}

static void bench_load(struct bench_library *l)
{
	for (int i = 0; i < 2 && l->file[i] && !l->handle; i++)
		l->handle = dlopen(l->file[i], RTLD_NOW | RTLD_LOCAL);
	if (!l->file[0])
		l->handle = bench_second_copy(l - 1);
	if (!l->handle) {
		fprintf(stderr, "no %s here; scripts/setup test installs it\n",
			l->name);
		return;
	}
	l->sgemm = (bench_sgemm_fn *)dlsym(l->handle, "cblas_sgemm");
	l->sgemv = (bench_sgemv_fn *)dlsym(l->handle, "cblas_sgemv");
	if (!l->arch)
		return;
	setenv("BLIS_ARCH_TYPE", l->arch, 1);
	((void (*)(void))dlsym(l->handle, "bli_init"))();
}

static void bench_set_threads(unsigned n)
{
	for (int i = 0; i < BENCH_LIBRARIES; i++) {
		const struct bench_library *l = &bench_library[i];
		if (!l->handle)
			continue;
		void *set = dlsym(l->handle, l->set_threads);
		if (l->arch)
			((void (*)(int64_t))set)(n);
		else
			((void (*)(int))set)((int)n);
	}
}

/* Reads the arguments, and loads the libraries as they ask for. */
static struct bench_args bench_start(int argc, char **argv)
{
	const struct bench_args a = {
		.threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
		.m = argc > 2 ? (size_t)atoi(argv[2]) : 0,
	};

	if (argc > 3)
		setenv("T0_HOST_SIMD", argv[3], 1);
	const int level = cpu_level("T0_HOST_SIMD");
	if (level >= 3)
		setenv("OPENBLAS_CORETYPE", level == 3 ? "HASWELL" : "SKYLAKEX",
		       0);
	bench_run_on(BENCH_SECOND);
	for (int i = 0; i < BENCH_LIBRARIES; i++)
		if (level >= bench_library[i].level)
			bench_load(&bench_library[i]);
	bench_run_on(BENCH_FIRST);
	return a;
}

/* -------------------------------------------------------------- turns ---- */

static const struct bench_library *bench_library_of(int side)
{
	return &bench_library[(side - BENCH_GEMM) % BENCH_LIBRARIES];
}

static bool bench_is_theirs(int side)
{
	return side >= BENCH_GEMM && side < BENCH_OWN;
}

static bool bench_has(const struct bench *b, int side)
{
	if (side == BENCH_T0)
		return true;
	if (side >= BENCH_OWN)
		return b->own[side - BENCH_OWN] != NULL;
	return side < BENCH_GEMV ? bench_library_of(side)->sgemm != NULL :
				   bench_library_of(side)->sgemv && b->g.m == 1;
}

static void bench_theirs(const struct bench *b, int side)
{
	enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
	const struct bench_library *l = bench_library_of(side);
	const struct cpu_gemm *g = &b->g;
	int m = (int)g->m, n = (int)g->n, k = (int)g->k, ldb = (int)g->ldb;

	if (side < BENCH_GEMV)
		l->sgemm(ROW_MAJOR, NO_TRANS, g->b_by_n ? TRANS : NO_TRANS, m,
			 n, k, 1, g->a, k, b->wide, ldb, 0, g->c, n);
	else
		l->sgemv(ROW_MAJOR, g->b_by_n ? NO_TRANS : TRANS,
			 g->b_by_n ? n : k, g->b_by_n ? k : n, 1, b->wide, ldb,
			 g->a, 1, 0, g->c, 1);
}

static void bench_call(struct bench *b, int side)
{
	if (side == BENCH_T0)
		cpu_gemm(&b->g, b->scratch, b->threads);
	else if (side < BENCH_OWN)
		bench_theirs(b, side);
	else
		b->own[side - BENCH_OWN](b);
}

static double bench_clock(unsigned threads)
{
	struct timespec t;

	clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
		      &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of one call. */
static double bench_turn(struct bench *b, int side, unsigned calls)
{
	/* OpenBLAS's threads spin for 2^26 cycles, in the way of the next. */
	enum { PAUSE_US = 50000 };
	bool blis = bench_is_theirs(side) && bench_library_of(side)->arch;

	if (b->n_threads > 1) {
		bench_run_on(blis ? BENCH_BOTH : BENCH_FIRST);
		usleep(PAUSE_US);
	}
	bench_call(b, side);
	bench_call(b, side);
	double from = bench_clock(b->n_threads);
	for (unsigned i = 0; i < calls; i++)
		bench_call(b, side);
	return (bench_clock(b->n_threads) - from) / calls;
}

/* C is that of T0, but for roundings; own sides may leave it alone. */
static void bench_check(struct bench *b, int side)
{
	size_t n = b->g.m * b->g.n;
	float *ours = xmalloc(n * sizeof(*ours));

	bench_call(b, BENCH_T0);
	memcpy(ours, b->g.c, n * sizeof(*ours));
	if (bench_is_theirs(side))
		memset(b->g.c, 0xff, n * sizeof(*ours)); /* NaN */
	bench_call(b, side);
	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)ours[i] - b->g.c[i]);
		if (!(d <= 1e-6 * (double)b->g.k))
			BUG("C differs by %g", d);
	}
	free(ours);
}

static void bench_shuffle(int *side, int n, uint64_t *seed)
{
	for (int i = n - 1; i > 0; i--) {
		int k = (int)(random_next(seed) % (uint64_t)(i + 1));
		int t = side[i];
		side[i] = side[k];
		side[k] = t;
	}
}

/* Fills b->time. */
static void bench_measure(struct bench *b)
{
	unsigned calls[BENCH_SIDES];
	int side[BENCH_SIDES], n = 0;
	uint64_t seed = 1;

	for (int s = 0; s < BENCH_SIDES; s++)
		if (bench_has(b, s)) {
			bench_check(b, s);
			calls[s] = 1 + (unsigned)((double)b->min_ns * 1e-9 /
						  bench_turn(b, s, 1));
			side[n++] = s;
		}
	for (unsigned i = 0; i < b->rounds; i++) {
		bench_shuffle(side, n, &seed);
		for (int k = 0; k < n; k++)
			b->time[side[k]][i] =
				bench_turn(b, side[k], calls[side[k]]);
	}
}

/* ------------------------------------------------------------- report ---- */

static double bench_least(const struct bench *b, int side)
{
	double best = INFINITY;

	for (unsigned i = 0; i < b->rounds; i++)
		best = fmin(best, b->time[side][i]);
	return best;
}

static double bench_flops(const struct bench *b, int side)
{
	return 2. * (double)b->g.m * (double)b->g.n * (double)b->g.k /
	       bench_least(b, side);
}

/* The time of a side to ours, turn by turn: its median and interval. */
static struct res_interval bench_against(struct bench_rows *r,
					 const struct bench *b, int side,
					 const char *to)
{
	double ratio[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < b->rounds; i++)
		ratio[i] = b->time[side][i] / b->time[BENCH_T0][i];
	bench_ratio(r, to, RES_HIGHER, ratio, b->rounds);
	return res_median(ratio, b->rounds);
}

/* The side of theirs that is best in the middle; BENCH_T0: there is none. */
static int bench_best(const struct bench *b)
{
	double best = INFINITY;
	int side = BENCH_T0;

	for (int s = BENCH_GEMM; s < BENCH_OWN; s++) {
		if (!bench_has(b, s))
			continue;
		double t = res_median(b->time[s], b->rounds).value;
		if (t < best) {
			best = t;
			side = s;
		}
	}
	return side;
}

/* GFLOP/s are at best; BENCH_COLUMN is that of side 0. */
#define BENCH_COLUMNS \
	"shape,B,#threads,#ratio,95 %,#of best,against,#T0,#OpenBLAS," \
	"#BLIS AVX2,#BLIS AVX-512"
enum { BENCH_COLUMN = 7 };

static void bench_side_name(const struct bench *b, int side, char out[32])
{
	if (side == BENCH_T0)
		snprintf(out, 32, "T0");
	else if (side >= BENCH_OWN)
		snprintf(out, 32, "%s", b->own_name[side - BENCH_OWN]);
	else
		snprintf(out, 32, "%s%s", bench_library_of(side)->name,
			 side < BENCH_GEMV ? "" : "'s gemv");
}

/* The product's case; its samples are the turns, its rate that of the best. */
static double bench_report_side(struct bench_rows *r, const struct bench *b,
				int side)
{
	const struct cpu_gemm *g = &b->g;
	char params[192], name[32];

	bench_side_name(b, side, name);
	res_params(params, sizeof(params), "m:U n:U k:U type:s nt:b threads:u",
		   (uint64_t)g->m, (uint64_t)g->n, (uint64_t)g->k,
		   cpu_gemm_type_name(g->b_type), g->b_by_n, b->n_threads);
	bench_case(r, name, params);
	bench_time(r, b->time[side], b->rounds, 1);
	return bench_rate_one(r, "FLOP/s", bench_flops(b, side));
}

/*
 * A row; sides of sgemv have columns behind BENCH_COLUMNS.  What is stored next
 * is of T0's case.
 */
static void bench_report(struct bench_rows *r, const struct bench *b,
			 struct table *t)
{
	const struct cpu_gemm *g = &b->g;
	int best = bench_best(b);
	char against[32];

	table_row(t);
	table_cell(t, 0, "%zux%zux%zu", g->m, g->n, g->k);
	table_cell(t, 1, "%s[%s]", cpu_gemm_type_name(g->b_type),
		   g->b_by_n ? "n][k" : "k][n");
	table_cell(t, 2, "%u", b->n_threads);
	for (int s = BENCH_OWN - 1; s >= BENCH_T0; s--)
		if (bench_has(b, s))
			table_cell(t, BENCH_COLUMN + s, "%.1f",
				   bench_report_side(r, b, s) * 1e-9);
	if (best == BENCH_T0)
		return;
	bench_checked(r, true, "like the libraries', but for roundings");
	bench_side_name(b, best, against);
	struct res_interval x = bench_against(r, b, best, "the best library");
	table_cell(t, 3, "%.3f", x.value);
	table_cell(t, 4, "%.3f-%.3f", x.lo, x.hi);
	table_cell(t, 5, "%.2f",
		   bench_least(b, best) / bench_least(b, BENCH_T0));
	table_cell(t, 6, "%s", against);
}

/* ------------------------------------------------------------ product ---- */

static void *bench_memory(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!p)
		BUG("no memory for %zu bytes", bytes);
	return p;
}

static float *bench_matrix(size_t n, uint64_t *seed)
{
	float *x = bench_memory(n * sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)(random_next(seed) >> 11) * 0x1p-52 - 1);
	return x;
}

/* B in its type; `wide` becomes what that holds. */
static const void *bench_narrow(enum cpu_gemm_type type, float *wide, size_t n)
{
	bool f16 = type == CPU_GEMM_F16;
	int e = f16 ? 5 : 8, m = f16 ? 10 : 7;

	if (type == CPU_GEMM_F32)
		return wide;
	uint16_t *x = bench_memory(n * sizeof(*x));
	for (size_t i = 0; i < n; i++) {
		x[i] = (uint16_t)float_bits(wide[i], e, m);
		wide[i] = (float)float_value(x[i], e, m);
	}
	return x;
}

/* A pool spins only where it was made with a processor for each thread. */
static void bench_place(void *ctx, struct threads *t, unsigned thread)
{
	(void)ctx, (void)t;
	bench_run_on(thread ? BENCH_SECOND : BENCH_FIRST);
}

static void bench_init(struct bench *b, unsigned n_threads,
		       const struct cpu_problem *p)
{
	struct err e = { 0 };
	uint64_t seed = 1;

	memset(b, 0, sizeof(*b));
	b->wide = bench_matrix(p->n * p->k, &seed);
	b->g = (struct cpu_gemm){ .m = p->m,
				  .n = p->n,
				  .k = p->k,
				  .alpha = 1,
				  .a = bench_matrix(p->m * p->k, &seed),
				  .lda = p->k,
				  .b = bench_narrow(p->b_type, b->wide,
						    p->n * p->k),
				  .ldb = p->b_by_n ? p->k : p->n,
				  .b_type = p->b_type,
				  .b_by_n = p->b_by_n,
				  .c = bench_matrix(p->m * p->n, &seed),
				  .ldc = p->n };
	cpu_gemm_default(&b->g, &b->config);
	b->g.config = &b->config;
	b->n_threads = n_threads;
	b->scratch = xcalloc(n_threads, sizeof(*b->scratch));
	/* OpenBLAS makes its second thread when it is asked for it. */
	bench_run_on(BENCH_SECOND);
	bench_set_threads(n_threads);
	bench_run_on(BENCH_BOTH);
	if (n_threads > 1) {
		if (!(b->threads = threads_new(n_threads, &e)))
			BUG("%s", e.msg);
		threads_run(b->threads, bench_place, NULL);
	}
	bench_run_on(BENCH_FIRST);
}

static void bench_fini(struct bench *b)
{
	threads_free(b->threads);
	for (unsigned i = 0; i < b->n_threads; i++)
		cpu_gemm_scratch_fini(&b->scratch[i]);
	free(b->scratch);
	free((void *)b->g.a);
	if (b->g.b != b->wide)
		free((void *)b->g.b);
	free(b->wide);
	free(b->g.c);
}

#endif
