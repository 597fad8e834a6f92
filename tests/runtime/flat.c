/*
 * Memory stays flat however many dispatches a device ends: what they needed is
 * used again.  (t0-run --repeat keeps their times, 16 bytes each, for its table.)
 *
 * 40,000 dispatches in batches and 2,000 one by one; a million and 100,000 with
 * T0_SLOW=1.
 */
#include <malloc.h>
#include <stdlib.h>

#include "kfd/kfd.h"
#include "tests/tap.h"

enum { BATCH = 200, SLACK_BYTES = 256 << 10 };

static const uint32_t end_code[] = { 0xbfb00000 }; /* s_endpgm */

/* Resident bytes, and those of the heap; sanitizers keep what is freed. */
static bool used_bytes(size_t *resident, size_t *heap)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)resident, (void)heap;
	return false;
#else
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	bool good = f && fscanf(f, "%lu %lu", &size, &pages) == 2;

	if (f)
		fclose(f);
	*resident = pages * 4096;
	*heap = mallinfo2().uordblks;
	return good;
#endif
}

static bool run_batches(struct kfd_queue *q, struct kfd_launch *l, long n,
			struct err *e)
{
	for (long i = 0; i < n; i++) {
		l->quiet = (i + 1) % BATCH != 0;
		if (!kfd_put(q, l, NULL, e) ||
		    (!l->quiet && !kfd_drain(q, 0, e)))
			return false;
	}
	return true;
}

static bool run_singly(struct kfd_queue *q, struct kfd_launch *l, long n,
		       struct err *e)
{
	struct kfd_timing t;

	l->quiet = false;
	for (long i = 0; i < n; i++)
		if (!kfd_run(q, l, &t, e))
			return false;
	return true;
}

static void test_growth(const char *how, struct kfd_queue *q,
			struct kfd_launch *l, long n,
			bool (*run)(struct kfd_queue *q, struct kfd_launch *l,
				    long n, struct err *e))
{
	size_t resident[2] = { 0 }, heap[2] = { 0 };
	struct err e = { 0 };

	ok(run(q, l, 10 * BATCH, &e), "%s: a beginning (%s)", how, e.msg);
	bool known = used_bytes(&resident[0], &heap[0]);
	ok(run(q, l, n, &e), "%s: %ld dispatches (%s)", how, n, e.msg);
	if (!known || !used_bytes(&resident[1], &heap[1])) {
		skip("a sanitizer keeps what is freed");
		return;
	}
	diag("%s: resident %zu, then %zu bytes; heap %zu, then %zu", how,
	     resident[0], resident[1], heap[0], heap[1]);
	ok(resident[1] <= resident[0] + SLACK_BYTES &&
	   heap[1] <= heap[0] + SLACK_BYTES, "%s: memory stays flat", how);
}

int main(void)
{
	const bool slow = getenv("T0_SLOW") != NULL;
	const struct kfd_queue_opts o = { .ring_packets = 1024 };
	const struct kfd_raw_desc d = { .name = "empty",
					.rsrc1 = 0x60af0000,
					.rsrc2 = 0x84,
					.properties = 0x408,
					.kernarg_bytes = 16 };
	const uint64_t args[2] = { 1, 2 };
	struct kfd_dev *dev = NULL;
	struct kfd_queue *q;
	struct err e = { 0 };
	struct kfd_launch l = { .grid = { 32 }, .wg = { 32 }, .args = args,
				.args_bytes = sizeof(args) };

	if (ok(kfd_open(&dev, "soft", &e) && kfd_queue_new(dev, &o, &q, &e) &&
	       kfd_code_raw(dev, end_code, sizeof(end_code), &d, &l.kernel, &e),
	       "a device (%s)", e.msg)) {
		test_growth("in batches", q, &l, slow ? 1000000 : 40000,
			    run_batches);
		test_growth("one by one", q, &l, slow ? 100000 : 2000,
			    run_singly);
	}
	kfd_close(dev);
	return plan_done();
}
