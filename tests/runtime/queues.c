/*
 * Several queues, barriers between them, scratch of several sizes, and times:
 * with kernels that run, on the gfx1100 in software.
 */
#include "tests/runtime/inject.h"

struct scratch_args {
	uint64_t out;
	uint32_t last, shift;
};

static bool scratch_run(struct rig *r, struct kfd_queue *q, uint32_t bytes,
			bool wave64)
{
	const uint32_t n = 1024;
	const struct kfd_raw_desc d = {
		.name = "scratch",
		.rsrc1 = 0x60af0000,
		.rsrc2 = 0x85, /* private segment, 2 user SGPRs, id X */
		.properties = wave64 ? 0x8 : 0x408,
		.kernarg_bytes = sizeof(struct scratch_args),
		.private_bytes = bytes,
	};
	const struct scratch_args a = { r->out->va, bytes - 4, wave64 ? 6 : 5 };
	const struct code c = code_of("tests/runtime/kernels.s", "scratch");
	const struct kfd_kernel *k;

	if (!kfd_code_raw(r->dev, c.dw, c.size_bytes, &d, &k, &r->e))
		return false;
	const struct kfd_launch l = { .kernel = k, .grid = { n },
				      .wg = { wave64 ? 64 : 32 }, .args = &a,
				      .args_bytes = sizeof(a) };
	const volatile uint32_t *out = r->out->cpu;
	unsigned wrong = 0;

	memset(r->out->cpu, 0, n * 4);
	if (!kfd_run(q, &l, NULL, &r->e))
		return false;
	for (uint32_t i = 0; i < n; i++)
		wrong += out[i] != 2 * i + 1;
	kfd_code_unload(k->code);
	return !wrong;
}

static void test_scratch(struct rig *r)
{
	/* Up, down, far up: it grows, and small ones still work in it. */
	static const uint32_t bytes[] = { 8, 164, 16, 1024, 12, 4096, 128 };
	const uint64_t before = kfd_mem_live_bytes(r->dev);
	struct kfd_queue *q;

	if (!ok(kfd_queue_new(r->dev, NULL, &q, &r->e), "a queue for scratch"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		for (int w64 = 0; w64 < 2; w64++)
			ok(scratch_run(r, q, bytes[i], w64),
			   "%u bytes of scratch per lane, wave%d (%s)",
			   bytes[i], w64 ? 64 : 32, r->e.msg);
	/* 4096 bytes * 64 lanes for each of the card's 3072 wave slots. */
	ok(kfd_mem_live_bytes(r->dev) - before >= 4096ull * 64 * 3072,
	   "there is scratch for as many waves as the card holds");
	kfd_queue_free(q, NULL);
	r->e = (struct err){ 0 };
}

/* The queues' packets follow each other's signals round and round. */
static void test_chain(struct rig *r)
{
	enum { QUEUES = 4, ROUNDS = 25 };
	static const uint32_t priority[QUEUES] = { 1, 7, 11, 15 };
	struct kfd_queue *q[QUEUES];
	struct kfd_signal *s[QUEUES * ROUNDS];
	struct rig_args a[QUEUES * ROUNDS];
	uint64_t ticket = 0;
	bool good = true;

	for (int i = 0; i < QUEUES; i++) {
		const struct kfd_queue_opts o = { .priority = priority[i] };

		good = good && kfd_queue_new(r->dev, &o, &q[i], &r->e);
	}
	/* Backwards, so that nothing is ready when it is put. */
	for (int i = 0; i < QUEUES * ROUNDS && good; i++)
		good = kfd_signal_new(r->dev, 1, &s[i], &r->e);
	for (int i = 0; i < QUEUES * ROUNDS && good; i++) {
		struct kfd_queue *at = q[i % QUEUES];
		struct kfd_launch l = rig_launch(r, 64, 0, 20000);

		a[i] = (struct rig_args){ r->out->va, (uint32_t)i * 1000 };
		l.args = &a[i];
		l.done = s[i];
		/* The first one waits for the host. */
		good = (i == 0 || kfd_barrier(at, &s[i - 1], 1, NULL, &r->e)) &&
		       kfd_submit(at, &l, &ticket, &r->e);
	}
	ok(good, "100 packets in 4 queues of 4 priorities (%s)", r->e.msg);
	ok(kfd_wait(q[QUEUES - 1], ticket, time_mono_ns() + 20000 * MS, NULL,
		    &r->e),
	   "the last one completes (%s)", r->e.msg);
	is_u64(rig_wrong(r->out, 64, (QUEUES * ROUNDS - 1) * 1000), 0,
	       "and it was the last");
	unsigned open = 0;
	for (int i = 0; i < QUEUES * ROUNDS; i++) {
		open += kfd_signal_value(s[i]) != 0;
		kfd_signal_free(s[i]);
	}
	is_u64(open, 0, "every signal between them is 0");
	for (int i = 0; i < QUEUES; i++)
		kfd_queue_free(q[i], NULL);
}

static void test_barrier(struct rig *r)
{
	struct kfd_launch l = rig_launch(r, 64, 5000, 20000);
	struct kfd_signal *s[6];
	uint64_t b, t;

	memset(r->out->cpu, 0, 256);
	for (int i = 0; i < 6; i++)
		kfd_signal_new(r->dev, 1, &s[i], &r->e);
	ok(!kfd_barrier(r->q, s, 6, &b, &r->e) && r->e.code == ERR_USAGE,
	   "a barrier on 6 signals is refused");
	r->e = (struct err){ 0 };
	ok(kfd_barrier(r->q, s, 5, &b, &r->e) &&
		   kfd_submit(r->q, &l, &t, &r->e),
	   "a barrier on 5 is put (%s)", r->e.msg);
	for (int i = 0; i < 4; i++)
		kfd_signal_set(s[i], 0);
	ok(!kfd_wait(r->q, b, time_mono_ns() + 50 * MS, NULL, &r->e) &&
		   r->e.code == ERR_TIMEOUT,
	   "with one signal missing it waits, until the deadline");
	has_str(r->e.msg, "(barrier)", "the message says that it is a barrier");
	is_u64(*(volatile uint32_t *)r->out->cpu, 0,
	       "what stands behind it has not run");
	kfd_signal_set(s[4], 0);
	r->e = (struct err){ 0 };
	ok(kfd_wait(r->q, t, 0, NULL, &r->e),
	   "with the last one it goes on (%s)", r->e.msg);
	is_u64(rig_wrong(r->out, 64, 5000), 0, "and so does the kernel");
	for (int i = 0; i < 6; i++)
		kfd_signal_free(s[i]);
}

static uint64_t raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A kernel's time lies between the submission and the return of the wait. */
static void test_times(struct rig *r)
{
	unsigned outside = 0, missing = 0;
	uint64_t last = 0;

	for (uint32_t i = 0; i < 50; i++) {
		struct kfd_launch l = rig_launch(r, 2048, i, 20000);
		struct kfd_timing t = { 0 };
		const uint64_t before = raw_ns();

		if (!kfd_run(r->q, &l, &t, &r->e))
			break;
		const uint64_t after = raw_ns();
		missing += !t.start_ns || !t.end_ticks;
		/*
		 * The calibration's own readings are some microseconds apart.
		 */
		outside += t.start_ns + 20000 < before ||
			   t.start_ns + t.device_ns > after + 20000;
		outside += t.start_ns < last;
		last = t.start_ns;
	}
	is_str(r->e.msg, "", "50 kernels are timed");
	is_u64(missing, 0, "each has a time on the host's clock");
	is_u64(outside, 0, "which is when it ran");
}

int main(void)
{
	struct rig r;

	if (!ok(rig_open(&r, NULL, NULL, 0), "a device (%s)", r.e.msg))
		return plan_done();
	test_scratch(&r);
	test_chain(&r);
	test_barrier(&r);
	test_times(&r);
	rig_close(&r, 60000, "all of it");
	return plan_done();
}
