/*
 * How fast the gfx1100 in software is: wave instructions a second on a vector
 * loop, on a streaming kernel (y += a x) and on a matrix product with WMMA, for
 * one host thread and for all of them, against plain C for the same arithmetic
 * (this file is compiled with -O2), and WMMA against what the core's FMA units
 * can do.  All are measured in turn in every round; medians are shown.  What
 * one thread does is counted in its CPU time, what several do in real time:
 * the gain of the second thread means something on an idle host only.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/base.h"
#include "isa/text/text.h"
#include "kfd/soft/exec/exec.h"
#include "tests/bench/rows.h"

enum {
	ROUNDS = 9,
	MAX_THREADS = 64,
	CODE_VA = 0x10000,
	X_VA = 0x40000000,
	Y_VA = 0x80000000,
	STREAM_BYTES = 8 << 20, /* of x and of y: beyond a core's caches */
	VALU_LOOPS = 400000,
	STREAM_LOOPS = STREAM_BYTES / 128, /* 32 floats each */
	GEMM_K = 2048,	/* inner dimension */
	GEMM_LOOPS = GEMM_K / 16,
	TILE_BYTES = 16 * 16 * 2,
	GEMM_TILES = 4,	/* 4 x 4 tiles of 16 x 16 in a wave */
	GEMM_TIMES = 40,
	LANES = 32,
};

/* ------------------------------------------------------------ kernels ---- */

static const char valu_text[] =
	"v_fma_f32 v1, v1, v20, v21\n"
	"v_add_f32 v2, v22, v1\n"
	"v_mul_f32 v3, v2, v20\n"
	"v_fmac_f32 v4, v20, v3\n"
	"v_add_nc_u32 v5, v5, v23\n"
	"v_xor_b32 v6, v6, v5\n"
	"v_lshl_add_u32 v7, v5, 3, v6\n"
	"v_and_or_b32 v8, v7, v23, v6\n"
	"v_fma_f32 v9, v9, v20, v22\n"
	"v_add_f32 v10, v21, v9\n"
	"v_mul_f32 v11, v10, v20\n"
	"v_fmac_f32 v12, v20, v11\n"
	"v_add_nc_u32 v13, v13, v23\n"
	"v_xor_b32 v14, v14, v13\n"
	"v_lshl_add_u32 v15, v13, 3, v14\n"
	"v_and_or_b32 v16, v15, v23, v14\n";

static const char stream_text[] =
	"global_load_b32 v1, v0, s[2:3]\n"
	"global_load_b32 v2, v0, s[4:5]\n"
	"s_waitcnt vmcnt(0)\n"
	"v_fmac_f32 v2, v20, v1\n"
	"global_store_b32 v0, v2, s[4:5]\n"
	"v_add_nc_u32 v0, 0x80, v0\n";

/*
 * A and B are packed: a tile holds 16 halves of each of 16 rows (columns), and
 * the tiles along K follow each other.
 */
static void gemm_text(struct buf *b)
{
	for (int i = 0; i < 2 * GEMM_TILES; i++)
		for (int part = 0; part < 2; part++)
			buf_printf(b,
				   "global_load_b128 v[%d:%d], v%d, s[2:3] "
				   "offset:%d\n", 16 + 8 * i + 4 * part,
				   16 + 8 * i + 4 * part + 3, i, 16 * part);
	buf_adds(b, "s_add_u32 s2, s2, 512\n"
		    "s_addc_u32 s3, s3, 0\n"
		    "s_waitcnt vmcnt(0)\n");
	for (int i = 0; i < GEMM_TILES; i++)
		for (int j = 0; j < GEMM_TILES; j++) {
			int a = 16 + 8 * i, c = 80 + 32 * i + 8 * j;
			int d = 16 + 8 * (GEMM_TILES + j);

			buf_printf(b,
				   "v_wmma_f32_16x16x16_f16 v[%d:%d], v[%d:%d],"
				   " v[%d:%d], v[%d:%d]\n", c, c + 7, a, a + 7,
				   d, d + 7, c, c + 7);
		}
}

struct code {
	uint32_t word[512];
	size_t bytes;
};

static void add_line(struct code *c, const char *line)
{
	static const struct isa_target t = { ISA_GFX11, LANES, false };
	struct isa_inst in;
	const char *why = isa_parse(&t, line, NULL, NULL, &in);

	if (why)
		BUG("%s: %s", line, why);
	c->bytes += (size_t)isa_encode(&in, (uint8_t *)c->word + c->bytes);
}

/* The text, s6 times. */
static void assemble(struct code *c, const char *text)
{
	char *copy = xstrdup(text), *at = copy, *line;
	uint32_t n;

	c->bytes = 0;
	while ((line = strsep(&at, "\n")))
		if (*line)
			add_line(c, line);
	add_line(c, "s_sub_u32 s6, s6, 1");
	add_line(c, "s_cmp_lg_u32 s6, 0");
	n = (uint32_t)(c->bytes / 4);
	c->word[n] = 0xbfa20000 | ((0 - (n + 1)) & 0xffff); /* s_cbranch_scc1 */
	c->bytes += 4;
	add_line(c, "s_endpgm");
	free(copy);
}

/* ------------------------------------------------------------ machine ---- */

enum job { JOB_VALU, JOB_STREAM, JOB_GEMM, JOBS };

static const char *const job_name[] = { "vector loop", "y += a x",
					"matrix product, WMMA" };

/* One thread's own GPU. */
struct machine {
	struct soft_env env;
	struct soft_group group;
	struct soft_wave w;
	struct code *code; /* [JOBS] */
	enum job job;
	uint32_t (*v)[SOFT_LANES]; /* [256] */
	uint8_t *x, *y;		   /* [STREAM_BYTES] */
	uint64_t insts;
};

static bool find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct machine *m = ctx;

	if (va >= X_VA && va - X_VA < STREAM_BYTES)
		*out = (struct soft_range){ X_VA, STREAM_BYTES, m->x,
					    SOFT_MEM_READ };
	else if (va >= Y_VA && va - Y_VA < STREAM_BYTES)
		*out = (struct soft_range){ Y_VA, STREAM_BYTES, m->y,
					    SOFT_MEM_READ | SOFT_MEM_WRITE };
	else if (va >= CODE_VA && va - CODE_VA < sizeof(m->code->word))
		*out = (struct soft_range){
			CODE_VA, sizeof(m->code->word),
			(uint8_t *)m->code[m->job].word,
			SOFT_MEM_READ | SOFT_MEM_EXEC
		};
	else
		return false;
	return true;
}

static void *must_align(size_t bytes)
{
	void *p = aligned_alloc(64, bytes);

	if (!p)
		BUG("no memory for %zu bytes", bytes);
	memset(p, 0, bytes);
	return p;
}

static void machine_init(struct machine *m, struct code *code)
{
	m->code = code;
	m->env.ctx = m;
	m->env.gen = ISA_GFX11;
	m->env.find = find;
	m->v = must_align(256 * sizeof(*m->v));
	m->x = must_align(STREAM_BYTES);
	m->y = must_align(STREAM_BYTES);
	for (size_t i = 0; i < STREAM_BYTES / 4; i++)
		((uint32_t *)m->x)[i] = 0x3c003800; /* as halves: 1 and 0.5 */
	m->group.env = &m->env;
	m->group.wave = &m->w;
	m->group.n_waves = 1;
	m->w.group = &m->group;
	m->w.v[0] = m->v;
	m->w.n_vgprs = 256;
	m->w.wave_size = LANES;
	/* As compilers set it: nearest even, denormals, IEEE, DX10_CLAMP. */
	m->w.mode = 0x3f0;
}

static void machine_fini(struct machine *m)
{
	free(m->v);
	free(m->x);
	free(m->y);
}

static void set_lanes(struct machine *m, int reg, uint32_t value)
{
	for (int i = 0; i < LANES; i++)
		m->v[reg][i] = value;
}

static void start(struct machine *m)
{
	struct soft_wave *w = &m->w;

	memset(m->v, 0, 256 * sizeof(*m->v));
	for (int i = 0; i < LANES; i++)
		m->v[0][i] = 4 * (uint32_t)i;
	set_lanes(m, 20, 0x3f000000); /* 0.5 */
	set_lanes(m, 21, 0x3f800000);
	set_lanes(m, 22, 0x40000000);
	set_lanes(m, 23, 0x01234567);
	for (int t = 0; m->job == JOB_GEMM && t < 2 * GEMM_TILES; t++)
		for (int i = 0; i < LANES; i++)
			m->v[t][i] = (uint32_t)(t * GEMM_LOOPS * TILE_BYTES +
						  i % 16 * 32);
	memset(w->s, 0, sizeof(w->s));
	w->s[2] = X_VA;
	w->s[4] = Y_VA;
	w->s[6] = m->job == JOB_VALU   ? VALU_LOOPS :
		  m->job == JOB_STREAM ? STREAM_LOOPS :
					 GEMM_LOOPS;
	w->s[ISA_R_EXEC_LO] = ~0u;
	w->pc = CODE_VA;
	w->state = SOFT_READY;
	memset(&w->last, 0, sizeof(w->last));
}

static void *machine_run(void *arg)
{
	struct machine *m = arg;
	int times = m->job == JOB_GEMM ? GEMM_TIMES : 1;
	uint64_t before = m->w.n_insts;

	m->group.code = soft_code_cache_new();
	for (int i = 0; i < times; i++) {
		start(m);
		while (m->w.state == SOFT_READY)
			soft_wave_run(&m->w, 4096);
		if (m->w.state != SOFT_ENDED)
			BUG("%s: %s", job_name[m->job], m->w.fault.text);
	}
	soft_code_cache_free(m->group.code);
	m->insts = m->w.n_insts - before;
	return NULL;
}

/* Of this thread alone, whatever else the host does. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
		BUG("no clock of the thread");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Wave instructions a second of CPU time, on this thread. */
static double emulate_one(struct machine *m, enum job job)
{
	uint64_t ns = cpu_ns();

	m->job = job;
	machine_run(m);
	return (double)m->insts * 1e9 / (double)(cpu_ns() - ns);
}

/* Wave instructions a second of n machines at once. */
static double emulate(struct machine *m, int n, enum job job)
{
	pthread_t thread[MAX_THREADS];
	uint64_t insts = 0, ns = time_mono_ns();

	for (int i = 0; i < n; i++)
		m[i].job = job;
	for (int i = 1; i < n; i++)
		if (pthread_create(&thread[i], NULL, machine_run, &m[i]))
			BUG("cannot start thread %d", i);
	machine_run(&m[0]);
	for (int i = 1; i < n; i++)
		pthread_join(thread[i], NULL);
	ns = time_mono_ns() - ns;
	for (int i = 0; i < n; i++)
		insts += m[i].insts;
	return (double)insts * 1e9 / (double)ns;
}

/* ------------------------------------------------------------ plain C ---- */

static volatile uint32_t sink;

static void c_half(float *f, uint32_t *u, float p, float q)
{
	f[0] = f[0] * 0.5f + p;
	f[1] = q + f[0];
	f[2] = f[1] * 0.5f;
	f[3] = 0.5f * f[2] + f[3];
	u[0] += 0x01234567;
	u[1] ^= u[0];
	u[2] = (u[0] << 3) + u[1];
	u[3] = (u[2] & 0x01234567) | u[1];
}

static void c_valu(struct machine *m)
{
	(void)m;
	for (int lane = 0; lane < LANES; lane++) {
		float f[8] = { 0 };
		uint32_t u[8] = { 0 };

		for (int i = 0; i < VALU_LOOPS; i++) {
			c_half(f, u, 1, 2);
			c_half(f + 4, u + 4, 2, 1);
		}
		sink += u[3] + u[7] + (f[3] + f[7] > 1);
	}
}

static void c_stream(struct machine *m)
{
	const float *x = (const float *)(const void *)m->x;
	float *y = (float *)(void *)m->y;

	for (size_t i = 0; i < STREAM_BYTES / 4; i++)
		y[i] += 0.5f * x[i];
	sink += y[77] > 1;
}

/* The same product in floats, rows of 64 at a time. */
static void c_gemm(struct machine *m)
{
	enum { N = 16 * GEMM_TILES };
	const float *x = (const float *)(const void *)m->x;
	static float c[N][N];

	for (int times = 0; times < GEMM_TIMES; times++)
		for (int i = 0; i < N; i++)
			for (int k = 0; k < GEMM_K; k++)
				for (int j = 0; j < N; j++)
					c[i][j] += x[i * GEMM_K + k] *
						   x[N * GEMM_K + k * N + j];
	sink += c[3][5] > 1;
}

static double seconds(void (*f)(struct machine *), struct machine *m)
{
	uint64_t ns = cpu_ns();

	f(m);
	return (double)(cpu_ns() - ns) * 1e-9;
}

/* --------------------------------------------------------------- peak ---- */

enum { PEAK_LOOPS = 1000000, CHAINS = 12 };

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void peak_512(void)
{
	__m512 acc[CHAINS], k = _mm512_set1_ps(0.5f);

	for (int j = 0; j < CHAINS; j++)
		acc[j] = _mm512_set1_ps((float)j);
	for (int i = 0; i < PEAK_LOOPS; i++)
#pragma GCC unroll 12
		for (int j = 0; j < CHAINS; j++)
			acc[j] = _mm512_fmadd_ps(acc[j], k, k);
	for (int j = 1; j < CHAINS; j++)
		acc[0] = _mm512_add_ps(acc[0], acc[j]);
	sink += _mm512_cvtss_f32(acc[0]) > 1;
}

__attribute__((target("avx2,fma"))) static void peak_256(void)
{
	__m256 acc[CHAINS], k = _mm256_set1_ps(0.5f);

	for (int j = 0; j < CHAINS; j++)
		acc[j] = _mm256_set1_ps((float)j);
	for (int i = 0; i < PEAK_LOOPS; i++)
#pragma GCC unroll 12
		for (int j = 0; j < CHAINS; j++)
			acc[j] = _mm256_fmadd_ps(acc[j], k, k);
	for (int j = 1; j < CHAINS; j++)
		acc[0] = _mm256_add_ps(acc[0], acc[j]);
	sink += _mm256_cvtss_f32(acc[0]) > 1;
}
#endif

/* Single precision FLOP/s of one core, with the widest unit it has. */
static double peak(const char **what)
{
	uint64_t ns = cpu_ns();
	int lanes = 0;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		peak_512(), lanes = 16, *what = "AVX-512";
	else if (__builtin_cpu_supports("fma"))
		peak_256(), lanes = 8, *what = "AVX2";
#endif
	ns = cpu_ns() - ns;
	return 2.0 * lanes * CHAINS * PEAK_LOOPS * 1e9 / (double)ns;
}

/* ------------------------------------------------------------- report ---- */

struct result {
	double one[ROUNDS], all[ROUNDS]; /* instructions a second */
	double ratio[ROUNDS]; /* to plain C, one thread */
	double gain[ROUNDS];  /* of the second thread */
};

static void measure(struct machine *m, int threads, enum job job,
		    struct result *r, int round)
{
	static void (*const plain[])(struct machine *) = { c_valu, c_stream,
							   c_gemm };
	double c, alone = emulate(m, 1, job), two = alone;

	if (threads > 1)
		two = emulate(m, 2, job);
	r->all[round] = threads > 2 ? emulate(m, threads, job) : two;
	r->gain[round] = two / alone;
	r->one[round] = emulate_one(m, job);
	c = (double)m->insts / seconds(plain[job], m);
	r->ratio[round] = r->one[round] / c;
}

static void report_threads(struct bench_rows *rows, enum job job,
			   unsigned threads)
{
	char params[64];

	res_params(params, sizeof(params), "threads:u", threads);
	bench_case(rows, job_name[job], params);
}

static void add_row(struct bench_rows *rows, struct table *t, enum job job,
		    const struct result *r, unsigned threads, unsigned rounds)
{
	static const char unit[] = "insts/s";

	report_threads(rows, job, 1);
	double one = bench_rate(rows, unit, r->one, rounds), all = one;

	table_row(t);
	table_cell(t, 0, "%s", job_name[job]);
	table_cell(t, 1, "%.1f", one * 1e-6);
	table_cell(t, 2, "%.2f", one * LANES * 1e-9);
	table_cell(t, 3, "%.3f", bench_ratio(rows, "C of gcc -O2", RES_HIGHER,
					     r->ratio, rounds));
	if (threads > 1) {
		report_threads(rows, job, threads);
		all = bench_rate(rows, unit, r->all, rounds);
		report_threads(rows, job, 2);
	}
	table_cell(t, 4, "%.1f", all * 1e-6);
	table_cell(t, 5, "%.2f", bench_ratio(rows, "1 thread", RES_HIGHER,
					     r->gain, rounds));
}

/* Of the instructions of the loop, 16 are WMMA with 8192 operations each. */
static double wmma_flops(const struct machine *m, double insts_per_s)
{
	double wmma = (double)GEMM_TILES * GEMM_TILES * GEMM_LOOPS * GEMM_TIMES;

	return insts_per_s / (double)m->insts * wmma * 8192;
}

static void run(struct bench_rows *rows, struct machine *m, int threads,
		struct table *t)
{
	const unsigned rounds = bench_rounds(ROUNDS);
	static struct result r[JOBS];
	double top[ROUNDS], share[ROUNDS], flops[ROUNDS];
	const char *unit = "no FMA";

	for (unsigned i = 0; i < rounds; i++) {
		for (enum job j = 0; j < JOBS; j++)
			measure(m, threads, j, &r[j], (int)i);
		top[i] = peak(&unit);
		flops[i] = wmma_flops(m, r[JOB_GEMM].one[i]);
		share[i] = flops[i] / top[i];
	}
	for (enum job j = 0; j < JOBS; j++)
		add_row(rows, t, j, &r[j], (unsigned)threads, rounds);
	bench_case(rows, "FMA peak of a core", NULL);
	const double most = bench_rate(rows, "FLOP/s", top, rounds);
	bench_case(rows, "WMMA", NULL);
	printf("soft: WMMA %.1f GFLOP/s on one thread, %.0f %% of the core's "
	       "FMA peak of %.1f (%s)\n",
	       bench_rate(rows, "FLOP/s", flops, rounds) * 1e-9,
	       bench_ratio(rows, "FMA peak of a core", RES_HIGHER, share,
			   rounds) * 100, most * 1e-9, unit);
}

int main(int argc, char **argv)
{
	struct bench_rows r;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int threads = cpus < 1		 ? 1 :
		      cpus > MAX_THREADS ? MAX_THREADS :
					   (int)cpus;
	struct machine *m = xcalloc((size_t)threads, sizeof(*m));
	static struct code code[JOBS];
	struct err e = { 0 };
	struct buf text = { 0 };
	struct table t;

	bench_open(&r, "soft", argc, argv);
	gemm_text(&text);
	assemble(&code[JOB_VALU], valu_text);
	assemble(&code[JOB_STREAM], stream_text);
	assemble(&code[JOB_GEMM], text.data);
	for (int i = 0; i < threads; i++)
		machine_init(&m[i], code);
	table_init(&t, "soft,#M wave insts/s,#G lane ops/s,#vs C -O2,"
		       "#M insts/s all threads,#gain of thread 2");
	run(&r, m, threads, &t);
	bool done = table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	buf_fini(&text);
	for (int i = 0; i < threads; i++)
		machine_fini(&m[i]);
	free(m);
	return bench_close(&r, done, &e);
}
