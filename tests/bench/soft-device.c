/*
 * Whole dispatches on the soft device, host threads and checked mode included:
 *
 *   - what a second host thread gains, on workgroups that run for long and on
 *     ones that end at once, beside what two threads gain on this host with a
 *     plain C loop that shares nothing;
 *   - what a device costs whose checked mode is off, against the bare executor
 *     without a device, which has no checks to be switched off.
 *
 * Real time, since threads are what is measured: a trial is short, all are run
 * in turns, and the best of many counts.  A host that is busy otherwise gives
 * no second core, which the plain C loop shows; the CPU time of an instruction
 * with two threads, against that with one, tells even then what they cost each
 * other: 2 divided by it is the gain on an idle host.
 */
#include <pthread.h>

#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "tests/bench/machine.h"
#include "tests/bench/rows.h"

enum {
	TRIALS = 100,
	LONG_LOOPS = 400,
	LONG_GROUPS = 32,
	SHORT_LOOPS = 2,
	SHORT_GROUPS = 10000,
	C_LOOPS = 200000, /* of two threads each */
	THREADS = 2,
	PAUSE_NS = 1000000, /* before a trial, to be let run at once */
};

static const char text[] = "v_fma_f32 v1, v1, v20, v21\n"
			   "v_add_f32 v2, v22, v1\n"
			   "v_mul_f32 v3, v2, v20\n"
			   "v_fmac_f32 v4, v20, v3\n"
			   "v_add_nc_u32 v5, v5, v23\n"
			   "v_xor_b32 v6, v6, v5\n"
			   "v_lshl_add_u32 v7, v5, 3, v6\n"
			   "v_and_or_b32 v8, v7, v23, v6\n";

struct kernel {
	const char *name;
	uint32_t loops, groups;
	struct bench_code code;
};

static struct kernel kernels[] = {
	{ .name = "long workgroups", .loops = LONG_LOOPS,
	  .groups = LONG_GROUPS },
	{ .name = "short workgroups", .loops = SHORT_LOOPS,
	  .groups = SHORT_GROUPS },
};

/* s6 is set by the code itself; the bare executor sets it, too. */
static void assemble(struct kernel *k)
{
	struct bench_code body;
	char line[64];

	bench_assemble(&body, ISA_GFX11, 32, text, 2);
	k->code.gen = ISA_GFX11;
	k->code.wave = 32;
	k->code.bytes = 0;
	snprintf(line, sizeof(line), "s_movk_i32 s6, %u", k->loops);
	bench_line(&k->code, line);
	memcpy((uint8_t *)k->code.word + k->code.bytes, body.word, body.bytes);
	k->code.bytes += body.bytes;
	/* s_movk, the loops, s_endpgm */
	k->code.n_insts = 2 + k->loops * (body.n_insts);
}

/* ------------------------------------------------------------ devices ---- */

struct device {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	const struct kfd_kernel *kernel[ARRAY_SIZE(kernels)];
};

static bool device_open(struct device *d, unsigned threads, struct err *e)
{
	const struct soft_options o = { .threads = threads };
	const struct kfd_queue_opts qo = { .ring_packets = 64 };
	const struct kfd_raw_desc desc = {
		.name = "loop",
		.rsrc1 = 0x60af0003, /* 32 VGPRs */
		.rsrc2 = 0x84,
		.properties = 0x400, /* wave32 */
	};
	struct kfd_driver *drv = kfd_soft_new(&o, e);

	if (!drv || !kfd_open_driver(&d->dev, drv, -1, "benchmark", e) ||
	    !kfd_queue_new(d->dev, &qo, &d->q, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		if (!kfd_code_raw(d->dev, kernels[i].code.word,
				  kernels[i].code.bytes, &desc, &d->kernel[i],
				  e))
			return false;
	return true;
}

static uint64_t process_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t))
		BUG("no clock of the process");
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_before(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* Wave instructions a second, and what they cost. */
struct rate {
	double real;		/* the best */
	double insts, cpu_ns; /* of all trials */
};

static double max(double a, double b)
{
	return a > b ? a : b;
}

static bool device_rate(struct device *d, size_t i, struct rate *best,
			struct err *e)
{
	const struct kernel *k = &kernels[i];
	const double insts = (double)k->code.n_insts * k->groups;
	struct kfd_launch l = { .kernel = d->kernel[i],
				.grid = { k->groups * LANES },
				.wg = { LANES } };
	uint64_t ns, cpu;

	pause_before();
	ns = time_mono_ns();
	cpu = process_ns();
	if (!kfd_run(d->q, &l, NULL, e))
		return false;
	ns = time_mono_ns() - ns;
	cpu = process_ns() - cpu;
	best->real = max(best->real, insts * 1e9 / (double)ns);
	best->insts += insts;
	best->cpu_ns += (double)cpu;
	return true;
}

/* The same waves without a device. */
static double bare_rate(struct bench_machine *m, const struct kernel *k)
{
	uint64_t before = m->w.n_insts, ns = time_mono_ns();

	for (uint32_t i = 0; i < k->groups; i++)
		bench_run(m, k->loops);
	ns = time_mono_ns() - ns;
	return (double)(m->w.n_insts - before) * 1e9 / (double)ns;
}

/* ------------------------------------------------------------ plain C ---- */

enum { C_LANES = 64 };

static void *c_loop(void *arg)
{
	volatile float sink;
	float v[C_LANES] = { 0 };

	(void)arg;
	for (int i = 0; i < C_LOOPS; i++)
		for (int j = 0; j < C_LANES; j++)
			v[j] = v[j] * 0.5f + 1;
	sink = v[7];
	(void)sink;
	return NULL;
}

/* Loops a second of n threads. */
static double c_rate(int n)
{
	pthread_t t[THREADS];
	uint64_t ns;

	pause_before();
	ns = time_mono_ns();

	for (int i = 1; i < n; i++)
		if (pthread_create(&t[i], NULL, c_loop, NULL))
			BUG("cannot start thread %d", i);
	c_loop(NULL);
	for (int i = 1; i < n; i++)
		pthread_join(t[i], NULL);
	ns = time_mono_ns() - ns;
	return (double)n * C_LOOPS * 1e9 / (double)ns;
}

/* ------------------------------------------------------------- report ---- */

struct best {
	double bare;
	struct rate one, two;
};

static bool measure(struct device *one, struct device *two,
		    struct bench_machine *m, struct best *best, double c[2],
		    struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		bench_load(m, &kernels[i].code);
		best[i].bare = max(best[i].bare, bare_rate(m, &kernels[i]));
		if (!device_rate(one, i, &best[i].one, e) ||
		    !device_rate(two, i, &best[i].two, e))
			return false;
	}
	c[0] = max(c[0], c_rate(1));
	c[1] = max(c[1], c_rate(THREADS));
	return true;
}

static double report_rate(struct bench_rows *r, const char *name,
			  unsigned threads, const char *unit, double rate)
{
	char params[64];

	res_params(params, sizeof(params), "?threads:u", threads);
	bench_case(r, name, params);
	return bench_rate_one(r, unit, rate);
}

static double report_ratio(struct bench_rows *r, const char *to, double ratio)
{
	return bench_ratio_one(r, to, RES_HIGHER, ratio);
}

/* Threads 0 is the executor without a device. */
static void report_kernel(struct bench_rows *r, const char *name,
			  const struct best *best, struct table *t)
{
	static const char unit[] = "insts/s";
	const double one = best->one.real, two = best->two.real;

	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%.1f",
		   report_rate(r, name, 0, unit, best->bare) * 1e-6);
	table_cell(t, 2, "%.1f", report_rate(r, name, 1, unit, one) * 1e-6);
	table_cell(t, 3, "%.2f", report_ratio(r, "bare", one / best->bare));
	table_cell(t, 4, "%.1f",
		   report_rate(r, name, THREADS, unit, two) * 1e-6);
	table_cell(t, 5, "%.2f", report_ratio(r, "1 thread", two / one));
	table_cell(t, 6, "%.2f",
		   bench_ratio_one(r, "CPU time of 1 thread", RES_LOWER,
				   best->two.cpu_ns / best->two.insts /
				   (best->one.cpu_ns / best->one.insts)));
}

static bool report(struct bench_rows *r, const struct best *best,
		   const double c[2], struct err *e)
{
	static const char plain[] = "plain C", loops[] = "loops/s";
	struct table t;
	bool done;

	table_init(&t, "soft device,#M insts/s bare,#1 thread,#of bare,"
		       "#2 threads,#gain,#CPU time of 2 to 1");
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		report_kernel(r, kernels[i].name, &best[i], &t);
	table_row(&t);
	table_cell(&t, 0, "plain C, nothing shared (M loops/s)");
	table_cell(&t, 2, "%.2f", report_rate(r, plain, 1, loops, c[0]) * 1e-6);
	table_cell(&t, 4, "%.2f",
		   report_rate(r, plain, THREADS, loops, c[1]) * 1e-6);
	table_cell(&t, 5, "%.2f", report_ratio(r, "1 thread", c[1] / c[0]));
	done = table_print(&t, TABLE_TEXT, stdout, e);
	table_fini(&t);
	return done;
}

int main(int argc, char **argv)
{
	const unsigned trials = bench_rounds(TRIALS);
	struct bench_rows r;
	struct best best[ARRAY_SIZE(kernels)] = { { 0 } };
	struct device one = { 0 }, two = { 0 };
	struct bench_machine m;
	double c[2] = { 0, 0 };
	struct err e = { 0 };
	bool good;

	bench_open(&r, "soft-device", argc, argv);
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		assemble(&kernels[i]);
	bench_machine_init(&m, 4096);
	good = device_open(&one, 1, &e) && device_open(&two, THREADS, &e);
	for (unsigned i = 0; good && i < trials; i++)
		good = measure(&one, &two, &m, best, c, &e);
	good = good && report(&r, best, c, &e);
	kfd_close(two.dev);
	kfd_close(one.dev);
	bench_machine_fini(&m);
	return bench_close(&r, good, &e);
}
