/*
 * The host's GEMM against OpenBLAS and BLIS (bench-blas.h says how): f32,
 * square and of the shapes of Qwen3-0.6B (weights stored [n][k]), and with
 * weights of 16 bits.  Then bf16, bytes with a scale for each row, int8 and int4
 * in groups by the units for them, where A is rounded, too, against oneDNN
 * (onednn.h).
 *
 *	tests/bench/host-gemm [THREADS [M [v4|v3]]]
 *
 * In the same turns: T0's own way without AMX ("v4", where it chose AMX), and
 * as many multiply-adds in registers as the threads can do, the peak that the
 * share is of; AMX may exceed it.
 */
#include "engine/weights/weights.h"
#include "tests/bench/blas.h"
#include "tests/bench/onednn.h"

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

/* ---- by the unit of a type, against oneDNN ---- */

/* B as integers of any size, as f32 values are not needed. */
static void ints_init(struct bench *b, struct cpu_gemm_ints *m)
{
	const bool four = b->g.b_type == CPU_GEMM_INT4;
	const size_t bytes = four ? 16 : 32, groups = b->g.k / 32;
	uint8_t *q = bench_memory(b->g.n * groups * (bytes + 2));
	uint64_t seed = 3;

	for (size_t i = 0; i < b->g.n * groups * (bytes + 2); i++)
		q[i] = (uint8_t)random_next(&seed) & 0x3f;
	*m = (struct cpu_gemm_ints){ q + 2, q, groups * (bytes + 2), bytes + 2,
				     groups * (bytes + 2), bytes + 2 };
	if (b->g.b_type == CPU_GEMM_CHANNEL8)
		*m = (struct cpu_gemm_ints){ q + 4 * b->g.n, q, b->g.k, 32, 4, 0 };
	b->g.b = m;
}

enum { THEIRS = BENCH_OWN, THEIRS_ROUNDED };

static void call_unit(struct bench *b, const struct onednn_product *their,
		      int side)
{
	if (side == THEIRS_ROUNDED)
		onednn_round(their);
	if (side == BENCH_T0)
		bench_call(b, BENCH_T0);
	else
		onednn_run(their);
}

/* Turns of all, in orders that change. */
static void take_turns(struct bench *b, const struct onednn_product *their)
{
	enum { PAUSE_US = 50000 }; /* until theirs do not spin any more */
	int side[] = { BENCH_T0, THEIRS, THEIRS_ROUNDED };
	unsigned calls = 1 + (unsigned)((double)MIN_NS * 1e-9 /
					bench_turn(b, BENCH_T0, 1));
	uint64_t seed = 1;

	for (unsigned i = 0; i < b->rounds; i++) {
		bench_shuffle(side, ARRAY_SIZE(side), &seed);
		for (size_t s = 0; s < ARRAY_SIZE(side); s++) {
			if (b->n_threads > 1)
				usleep(PAUSE_US);
			call_unit(b, their, side[s]);
			double from = bench_clock(b->n_threads);
			for (unsigned k = 0; k < calls; k++)
				call_unit(b, their, side[s]);
			b->time[side[s]][i] =
				(bench_clock(b->n_threads) - from) / calls;
		}
	}
}

/* Its second thread is made where the calling one runs. */
static bool onednn_start(struct onednn_product *their, const struct onednn *d,
			 const struct bench *b, bool bytes)
{
	const struct cpu_gemm *g = &b->g;
	bool good;

	if (d->set_threads)
		d->set_threads((int)b->n_threads);
	bench_run_on(b->n_threads > 1 ? BENCH_SECOND : BENCH_FIRST);
	good = onednn_init(their, d, bytes, g->a, b->wide, (long)g->m,
			   (long)g->n, (long)g->k);
	if (good)
		onednn_run(their);
	bench_run_on(BENCH_FIRST);
	return good;
}

static void unit_shape(struct bench_rows *r, struct table *t,
		       const struct onednn *d, unsigned threads,
		       const struct cpu_problem *p)
{
	struct cpu_problem plain = *p;
	struct onednn_product their;
	struct cpu_gemm_ints ints;
	const bool bytes = p->b_type >= CPU_GEMM_MADE;
	struct bench b;

	plain.b_type = bytes ? CPU_GEMM_F32 : p->b_type;
	bench_init(&b, threads, &plain);
	b.g.b_type = p->b_type;
	b.g.a_as = p->a_as;
	if (bytes)
		ints_init(&b, &ints);
	cpu_gemm_default(&b.g, &b.config);
	b.rounds = bench_rounds(2 * ROUNDS);
	if (onednn_start(&their, d, &b, bytes)) {
		take_turns(&b, &their);
		table_row(t);
		table_cell(t, 0, "%zux%zux%zu", p->m, p->n, p->k);
		table_cell(t, 1, "%s", cpu_gemm_type_name(p->b_type));
		table_cell(t, 2, "%u", threads);
		table_cell(t, 7, "%s", cpu_gemm_unit(b.config.level));
		table_cell(t, 6, "%.1f", bench_flops(&b, THEIRS) * 1e-9);
		table_cell(t, 5, "%.1f", bench_report_side(r, &b, BENCH_T0) *
						 1e-9);
		struct res_interval x =
			bench_against(r, &b, THEIRS_ROUNDED,
				      "oneDNN that rounds A, too");
		table_cell(t, 4, "%.3f %.3f-%.3f", x.value, x.lo, x.hi);
		x = bench_against(r, &b, THEIRS, "oneDNN");
		table_cell(t, 3, "%.3f %.3f-%.3f", x.value, x.lo, x.hi);
	}
	onednn_fini(&their);
	if (bytes) {
		free((void *)(uintptr_t)ints.scale);
		b.g.b = b.wide;
	}
	bench_fini(&b);
}

static bool units(struct bench_rows *r, const struct bench_args *a,
		  struct err *e)
{
	static const size_t shape[][3] = {
		{ 256, 256, 256 },    { 512, 512, 512 },
		{ 1024, 1024, 1024 }, { 2048, 2048, 2048 },
		{ 16, 3072, 1024 },   { 32, 3072, 1024 },
		{ 64, 3072, 1024 },   { 128, 3072, 1024 },
		{ 512, 3072, 1024 },  { 512, 1024, 3072 },
	};
	static const struct cpu_problem kind[] = {
		{ .b_type = CPU_GEMM_BF16, .a_as = CPU_GEMM_BF16 },
		{ .b_type = CPU_GEMM_CHANNEL8, .a_as = CPU_GEMM_INT8 },
		{ .b_type = CPU_GEMM_INT8, .a_as = CPU_GEMM_INT8 },
		{ .b_type = CPU_GEMM_INT4, .a_as = CPU_GEMM_INT8 },
	};
	struct onednn d;
	struct table t;

	if (!onednn_open(&d)) {
		fprintf(stderr, "no oneDNN 2 here; libdnnl-dev has it\n");
		return true;
	}
	table_init(&t, "shape,type,#threads,ratio and 95 %,"
		       "if it rounds A,#T0,#oneDNN,unit");
	for (unsigned n = 1; n <= 2; n++)
		for (size_t i = 0; i < ARRAY_SIZE(kind) * ARRAY_SIZE(shape);
		     i++) {
			struct cpu_problem p = kind[i / ARRAY_SIZE(shape)];
			const size_t *s = shape[i % ARRAY_SIZE(shape)];
			p.m = s[0];
			p.n = s[1];
			p.k = s[2];
			p.b_by_n = true;
			if ((!a->threads || a->threads == n) &&
			    (!a->m || a->m == p.m))
				unit_shape(r, &t, &d, n, &p);
		}
	printf("GFLOP/s at best; T0 rounds A, theirs is rounded before, but in "
	       "the second ratio\n");
	bool good = table_print(&t, TABLE_TEXT, stdout, e);
	table_fini(&t);
	return good;
}

int main(int argc, char **argv)
{
	static const struct cpu_problem problem[] = {
		{ 256, 256, 256, CPU_GEMM_F32, false, 0 },
		{ 512, 512, 512, CPU_GEMM_F32, false, 0 },
		{ 1024, 1024, 1024, CPU_GEMM_F32, false, 0 },
		{ 2048, 2048, 2048, CPU_GEMM_F32, false, 0 },
		/* Fewer rows: tests/bench/host-thin. */
		{ 16, 1024, 1024, CPU_GEMM_F32, true, 0 },
		{ 16, 3072, 1024, CPU_GEMM_F32, true, 0 },
		{ 16, 1024, 3072, CPU_GEMM_F32, true, 0 },
		{ 16, 2048, 1024, CPU_GEMM_F32, true, 0 },
		{ 128, 1024, 1024, CPU_GEMM_F32, true, 0 },
		{ 128, 3072, 1024, CPU_GEMM_F32, true, 0 },
		{ 128, 1024, 3072, CPU_GEMM_F32, true, 0 },
		{ 128, 2048, 1024, CPU_GEMM_F32, true, 0 },
		{ 16, 3072, 1024, CPU_GEMM_BF16, true, 0 },
		{ 128, 3072, 1024, CPU_GEMM_BF16, true, 0 },
		{ 512, 1024, 1024, CPU_GEMM_BF16, true, 0 },
		{ 512, 3072, 1024, CPU_GEMM_BF16, true, 0 },
		{ 512, 1024, 3072, CPU_GEMM_BF16, true, 0 },
		{ 512, 2048, 1024, CPU_GEMM_BF16, true, 0 },
		{ 512, 1024, 1024, CPU_GEMM_F16, true, 0 },
		{ 512, 1024, 1024, CPU_GEMM_F32, true, 0 },
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
	bool good = table_print(&t, TABLE_TEXT, stdout, &e) &&
		    units(&r, &a, &e);
	table_fini(&t);
	return bench_close(&r, good, &e);
}
