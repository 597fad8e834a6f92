/*
 * The soft device with the simulator's clock: wave-instructions per second of
 * a whole series of probes, beside the same kernels on the soft device alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/micro/micro.h"
#include "tests/bench/rows.h"

enum { ITERATIONS = 20000, REPS = 2 };

struct args {
	uint64_t out, data;
	uint32_t iterations, reps, warm, unused;
};

/* Seconds of one dispatch of p's code on a soft device without a clock. */
static double untimed(const struct micro_probe *p, struct err *e)
{
	const struct kfd_raw_desc desc = {
		.name = "bench", .rsrc1 = 15u | 0xfu << 16 | 1u << 21 |
				  1u << 23 | 1u << 29 | 1u << 30,
		.rsrc2 = 15u << 1 | 1u << 7, .properties = 1u << 10 | 1u << 3,
		.kernarg_bytes = 32,
	};
	const struct kfd_kernel *k;
	struct kfd_dev *dev = NULL;
	struct kfd_queue *q;
	struct kfd_mem *out, *data;
	struct kfd_timing t = { 0 };

	if (!kfd_open(&dev, "soft", e) || !kfd_queue_new(dev, NULL, &q, e) ||
	    !kfd_mem_alloc(dev, KFD_GTT, 1u << 17, "out", &out, e) ||
	    !kfd_mem_alloc(dev, KFD_VRAM, 1u << 20, "data", &data, e) ||
	    !kfd_code_raw(dev, p->code.data, p->code.len, &desc, &k, e)) {
		kfd_close(dev);
		return 0;
	}
	const struct args args = { out->va, data->va, ITERATIONS, REPS, 0, 0 };
	const struct kfd_launch l = { .kernel = k, .grid = { 32 },
				      .wg = { 32 }, .args = &args,
				      .args_bytes = sizeof(args) };
	const bool good = kfd_run(q, &l, &t, e);
	kfd_close(dev);
	return good ? (double)t.host_ns * 1e-9 : 0;
}

static void report(struct bench_rows *r, double timed, double alone)
{
	static const char unit[] = "insts/s";

	bench_case(r, "timed", NULL);
	printf("%-42s %8.2f M/s\n", "timed, wave-instructions",
	       bench_rate_one(r, unit, timed) * 1e-6);
	bench_case(r, "without a clock", NULL);
	printf("%-42s %8.2f M/s ", "the same without a clock",
	       bench_rate_one(r, unit, alone) * 1e-6);
	bench_case(r, "timed", NULL);
	printf("(%.1f times)\n", bench_ratio_one(r, "time without a clock",
						 RES_LOWER, alone / timed));
}

int main(int argc, char **args)
{
	static const _Atomic int stop = 0;
	char name[] = "bench-host-timed", *argv[] = { name, NULL };
	char db[] = "/tmp/t0-bench-timed-XXXXXX";
	const int fd = mkstemp(db);
	const struct probe_opts o = { .device = "sim", .db = db, .seed = 1,
				      .quiet = true, .argc = 1, .argv = argv,
				      .stop = &stop, .samples = 2,
				      .format_out = "/dev/null" };
	struct micro_device d;
	struct micro_probe p = { 0 };
	struct bench_rows r;
	struct err e = { 0 };
	size_t n;
	const struct micro_inst *i = micro_insts(&n);

	if (fd < 0 || close(fd) || unlink(db))
		return EXIT_TROUBLE;
	bench_open(&r, "host-timed", argc, args);
	bool good = micro_device_open(&d, &o, "bench", "x", &e) &&
		    micro_inst_probe(&p, &d, i, false, 1, &e);
	p.iterations = ITERATIONS / 4;
	p.reps = REPS;
	const uint64_t start = time_mono_ns();
	good = good && micro_probe_run(&p, 1, &e);
	const double s = (double)(time_mono_ns() - start) * 1e-9;
	if (good) {
		const double rate = (double)probe_timed_issues(d.timed) / s;
		/* Per repetition: 3 times the copies, and 3 loops' ends. */
		const double all = (double)REPS * ITERATIONS *
				   (3 * p.copies + 6);
		const double alone_s = untimed(&p, &e);

		good = alone_s > 0;
		if (good)
			report(&r, rate, all / alone_s);
	}
	micro_probe_fini(&p);
	good = !micro_device_close(&d, good, &e) && good;
	unlink(db);
	return bench_close(&r, good, &e);
}
