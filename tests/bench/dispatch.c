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

enum { BATCH = 200, PASSES = 400, TARGET_NS = 60 };

static const uint32_t end_code[] = { 0xbfb00000 }; /* s_endpgm */

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double report(const char *what, double *ns)
{
	qsort(ns, PASSES, sizeof(*ns), compare);
	printf("%-34s %6.1f ns  (p10 %.1f, p90 %.1f)\n", what, ns[PASSES / 2],
	       ns[PASSES / 10], ns[PASSES * 9 / 10]);
	return ns[PASSES / 2];
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

static bool bench(struct kfd_dev *dev, struct err *e)
{
	static double put[PASSES], copy[PASSES];
	static const uint32_t kernargs[] = { 0, 16, 64 };
	const struct kfd_queue_opts o = { .ring_packets = 1024 };
	const uint64_t args[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
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
		char what[64];

		if (!kfd_code_raw(dev, end_code, sizeof(end_code), &d, &kernel,
				  e))
			return false;
		struct kfd_launch l = { .kernel = kernel,
					.grid = { 32 },
					.wg = { 32 },
					.args = args,
					.args_bytes = kernargs[k] };
		for (int i = 0; i < PASSES; i++) {
			copy[i] = copies(q);
			if (!puts_ns(q, &l, &put[i], e))
				return false;
		}
		snprintf(what, sizeof(what), "put, %u bytes of arguments",
			 kernargs[k]);
		const double p = report(what, put);
		const double c = report("memcpy of 64 bytes", copy);
		printf("%-34s %6.1f     %s %d ns\n", "ratio", p / c,
		       p <= TARGET_NS ? "at most" : "MORE THAN", TARGET_NS);
	}
	return true;
}

int main(void)
{
	struct kfd_dev *dev;
	struct err e = { 0 };

	if (kfd_open(&dev, "soft", &e) && bench(dev, &e)) {
		kfd_close(dev);
		return 0;
	}
	return err_report("bench-dispatch", &e);
}
