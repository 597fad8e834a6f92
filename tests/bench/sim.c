/*
 * How fast the pipeline simulator is: the K loop of one workgroup of a
 * 128 x 128 x 32 product with K = 4096, several times, and a full WGP.  Where
 * llvm-mca-19 is installed it predicts the same instructions, as often, in
 * turns with ours: the yardstick.  Times are processor time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "compiler/sim/examine/examine.h"
#include "isa/text/text.h"
#include "tests/bench/rows.h"

enum { PASSES = 7, STEPS = 128 };

/* Of this process alone: others share the machine. */
static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct timed {
	double ms, issues;
};

static struct timed simulate(const struct cost_model *m, int groups,
			      int trips)
{
	const struct others_tile t = {
		.family = OTHERS_TRITON, .m = 128, .n = 128, .k = 32
	};
	const struct others_shape s = { 4096, 4096, 4096, 1 };
	struct others_code g;
	struct err e = { 0 };
	struct sim_result r;
	struct sim_source src = { .wave_size = 32 };
	struct sim_config c = { .cost = m, .warmth = SIM_WARM,
				.footprint_bytes = 64 << 20,
				.warm_code = true, .trips = trips };

	if (!others_generate(&g, &t, &s, STEPS - 2, groups, &e) ||
	    !sim_affine_open(&src, (uint8_t *)g.code.data, g.code.len, 4096,
			     g.affine.data, "gemm", &e))
		BUG("%s", e.msg);
	src.vgprs = g.vgprs;
	src.lds_bytes = g.lds_bytes;
	double from = cpu_ms();
	if (!sim_run(&src, &c, &r, &e))
		BUG("%s", e.msg);
	struct timed x = { cpu_ms() - from, (double)r.issues };
	sim_fini(&r);
	sim_affine_close(&src);
	others_fini(&g);
	return x;
}

/* The kernel's code as text, without what llvm-mca cannot predict. */
static int write_text(const char *path)
{
	const struct others_tile t = {
		.family = OTHERS_TRITON, .m = 128, .n = 128, .k = 32
	};
	const struct others_shape s = { 4096, 4096, 4096, 1 };
	struct isa_target target = { ISA_GFX11, 32, false };
	FILE *f = fopen(path, "w");
	struct others_code g;
	struct err e = { 0 };
	int n = 0;

	if (!f || !others_generate(&g, &t, &s, 1, 1, &e))
		BUG("%s", e.msg);
	for (size_t at = 0; at < g.code.len;) {
		char text[ISA_TEXT_MAX];
		struct isa_inst in;

		if (isa_decode(&target, g.code.data + at, g.code.len - at, &in))
			BUG("its own code does not decode");
		at += in.size_bytes;
		isa_print(&target, &in, text, sizeof(text));
		if (isa_op_info(in.op)->pipe == ISA_PIPE_BRANCH)
			continue;
		fprintf(f, "%s\n", text);
		n++;
	}
	fclose(f);
	others_fini(&g);
	return n;
}

/* Instructions per second of one process; 0 where it is not installed. */
static double mca(const char *path, int instructions, int iterations)
{
	char command[256];

	snprintf(command, sizeof(command), "llvm-mca-19 -mtriple=amdgcn "
		 "-mcpu=gfx1100 -iterations=%d %s >/dev/null 2>&1", iterations,
		 path);
	struct rusage before, after;

	getrusage(RUSAGE_CHILDREN, &before);
	if (system(command))
		return 0;
	getrusage(RUSAGE_CHILDREN, &after);
	double seconds = (double)(after.ru_utime.tv_sec -
				  before.ru_utime.tv_sec) +
			 (double)(after.ru_utime.tv_usec -
				  before.ru_utime.tv_usec) / 1e6;
	return (double)instructions * iterations / seconds;
}

struct passes {
	unsigned n;
	double issues;			 /* of one workgroup */
	double one[PASSES], part[PASSES]; /* milliseconds */
	/* Wave-instructions a second. */
	double rate[PASSES], full[PASSES], other[PASSES];
	double ratio[PASSES]; /* of a full WGP, without jumps to with */
};

static void measure(struct passes *p)
{
	char path[] = "/tmp/t0-mca-XXXXXX";
	struct cost_model m;

	cost_init(&m, "gfx1100");
	close(mkstemp(path));
	int n = write_text(path);
	for (unsigned i = 0; i < p->n; i++) {
		struct timed x = simulate(&m, 1, 0);
		struct timed all = simulate(&m, 6, 0);
		struct timed jumps = simulate(&m, 6, SIM_TRIPS);

		p->issues = x.issues;
		p->one[i] = x.ms;
		p->rate[i] = x.issues / x.ms * 1e3;
		p->full[i] = all.issues / all.ms * 1e3;
		p->part[i] = jumps.ms;
		p->ratio[i] = all.ms / jumps.ms;
		p->other[i] = mca(path, n, (int)(x.issues / n));
	}
	unlink(path);
	cost_fini(&m);
}

static void report(struct bench_rows *r, const struct passes *p)
{
	static const char unit[] = "insts/s";

	bench_case(r, "one workgroup", NULL);
	const double ours = bench_rate(r, unit, p->rate, p->n);
	printf("sim: one workgroup 128x128x32, K = 4096: %.1f ms for %.0f "
	       "wave-instructions\n", bench_time(r, p->one, p->n, 1e-3),
	       p->issues);
	bench_case(r, "a full WGP", NULL);
	printf("sim: %.2f million wave-instructions per second, %.2f with a "
	       "full WGP\n", ours / 1e6,
	       bench_rate(r, unit, p->full, p->n) / 1e6);
	bench_case(r, "a full WGP, with jumps", NULL);
	printf("sim: a full WGP in %.1f ms when time jumps over steady loops, ",
	       bench_time(r, p->part, p->n, 1e-3));
	printf("%.1f times as fast\n",
	       bench_ratio(r, "without jumps", RES_HIGHER, p->ratio, p->n));
	if (!(p->other[0] > 0)) {
		printf("sim: SKIPPED the comparison: llvm-mca-19 is not "
		       "installed\n");
		return;
	}
	bench_case(r, "llvm-mca-19", NULL);
	const double theirs = bench_rate(r, unit, p->other, p->n);
	bench_case(r, "one workgroup", NULL);
	printf("sim: llvm-mca-19 on the same code: %.2f million per second, "
	       "ours is %.1f times as fast\n", theirs / 1e6,
	       bench_ratio_one(r, "llvm-mca-19", RES_HIGHER, ours / theirs));
}

int main(int argc, char **argv)
{
	struct passes p = { .n = bench_rounds(PASSES) };
	struct bench_rows r;
	struct err e = { 0 };

	bench_open(&r, "sim", argc, argv);
	measure(&p);
	report(&r, &p);
	return bench_close(&r, true, &e);
}
