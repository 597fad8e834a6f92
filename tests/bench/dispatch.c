/*
 * What a batched dispatch costs the host: reserve, fill and publish of one
 * packet, its arguments and signal included, without the doorbell, beside a
 * bare memcpy of 64 bytes into the same ring.  Medians and extremes of many
 * batches in turns, on the soft device, whose packet processor sleeps
 * meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/runtime.h"
#include "results/stats/stats.h"
#include "tests/bench/rows.h"

enum { BATCH = 200, PASSES = 400, TARGET_NS = 60 };

static const uint32_t end_code[] = { 0xbfb00000 }; /* s_endpgm */

static double report(struct bench_rows *r, const char *what, const double *ns,
		     unsigned n)
{
	const double median = bench_time(r, ns, n, 1e-9);
	double *sorted = res_sorted(ns, n);

	printf("%-34s %6.1f ns  (p10 %.1f, p90 %.1f)\n", what, median,
	       res_quantile(sorted, n, 0.1), res_quantile(sorted, n, 0.9));
	free(sorted);
	return median;
}

static void report_all(struct bench_rows *r, uint32_t kernarg_bytes,
		       const double *put, const double *copy, unsigned n)
{
	char what[64], params[64];

	res_params(params, sizeof(params), "kernarg_bytes:u", kernarg_bytes);
	snprintf(what, sizeof(what), "put, %u bytes of arguments",
		 kernarg_bytes);
	bench_case(r, "put", params);
	const double p = report(r, what, put, n);
	bench_case(r, "memcpy of 64 bytes", params);
	const double c = report(r, "memcpy of 64 bytes", copy, n);
	bench_case(r, "put", params);
	printf("%-34s %6.1f     %s %d ns\n", "ratio",
	       bench_ratio_one(r, "memcpy of 64 bytes", RES_LOWER, p / c),
	       p <= TARGET_NS ? "at most" : "MORE THAN", TARGET_NS);
}

/* Into the part of the ring that comes next; headers stay INVALID. */
static double copies(struct kfd_queue *q)
{
	struct aql_dispatch p = { .header = AQL_INVALID };
	char *ring = q->ring->pub.cpu;
	const uint64_t start = time_mono_ns();

	for (uint64_t i = 0; i < BATCH; i++) {
		p.kernarg_address = i;
		memcpy(ring + (q->put + i) % q->opts.ring_packets *
				      AQL_PACKET_BYTES,
		       &p, AQL_PACKET_BYTES);
		__asm__ volatile("" ::: "memory");
	}
	return (double)(time_mono_ns() - start) / BATCH;
}

static bool puts_ns(struct kfd_queue *q, struct kfd_launch *l, double *ns,
		    struct err *e)
{
	const uint64_t start = time_mono_ns();

	for (int i = 0; i < BATCH; i++) {
		l->quiet = i + 1 < BATCH;
		if (!kfd_put(q, l, NULL, e))
			return false;
	}
	*ns = (double)(time_mono_ns() - start) / BATCH;
	return kfd_drain(q, 0, e);
}

static bool bench(struct bench_rows *r, struct kfd_dev *dev, struct err *e)
{
	static double put[PASSES], copy[PASSES];
	static const uint32_t kernargs[] = { 0, 16, 64 };
	const struct kfd_queue_opts o = { .ring_packets = 1024 };
	const uint64_t args[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const unsigned passes = bench_rounds(PASSES);
	struct kfd_queue *q;

	if (!kfd_queue_new(dev, &o, &q, e))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(kernargs); k++) {
		const struct kfd_raw_desc d = { .name = "empty",
						.rsrc1 = 0x60af0000,
						.rsrc2 = 0x84,
						.properties = 0x408,
						.kernarg_bytes = kernargs[k] };
		const struct kfd_kernel *kernel;

		if (!kfd_code_raw(dev, end_code, sizeof(end_code), &d, &kernel,
				  e))
			return false;
		struct kfd_launch l = { .kernel = kernel,
					.grid = { 32 },
					.wg = { 32 },
					.args = args,
					.args_bytes = kernargs[k] };
		for (unsigned i = 0; i < passes; i++) {
			copy[i] = copies(q);
			if (!puts_ns(q, &l, &put[i], e))
				return false;
		}
		report_all(r, kernargs[k], put, copy, passes);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct kfd_dev *dev = NULL;
	struct bench_rows r;
	struct err e = { 0 };

	bench_open(&r, "dispatch", argc, argv);
	bool good = kfd_open(&dev, "soft", &e) && bench(&r, dev, &e);
	kfd_close(dev);
	return bench_close(&r, good, &e);
}
