/*
 * What goes wrong while kernels run: faults, refusals, hangs, resets, pauses,
 * interrupts that are lost and some that nobody asked for.
 */
#include <signal.h>
#include "tests/runtime/inject.h"

/* Ten packets of which rule `r` strikes one; waits for the last. */
static bool ten(struct rig *r, uint64_t ticket[10], uint64_t deadline_ms)
{
	for (uint32_t i = 0; i < 10; i++) {
		struct kfd_launch l = rig_launch(r, 64, 100 * i, deadline_ms);

		if (!kfd_put(r->q, &l, &ticket[i], &r->e))
			return false;
	}
	kfd_flush(r->q);
	return kfd_wait(r->q, ticket[9], time_mono_ns() + deadline_ms * MS,
			NULL, &r->e);
}

/* Fault at packet 4 of 10: the report, and what became of the others. */
static void struck(const char *name, const struct soft_inject *rule,
		   enum kfd_fault_kind kind, bool device, const char *what,
		   struct rig *r)
{
	uint64_t ticket[10];
	struct kfd_fault f = { 0 };
	struct err e = { 0 };

	if (!ok(rig_open(r, NULL, rule, 1), "%s: a device (%s)", name,
		r->e.msg))
		return;
	ok(!ten(r, ticket, 5000), "%s: waiting fails", name);
	rig_error(&r->e, ERR_DEVICE, 3, name, what,
		  "kernel 'store', packet 4 of queue 0");
	ok(kfd_queue_fault(r->q, &f), "%s: there is a fault record", name);
	is_str(kfd_fault_name(f.kind), kfd_fault_name(kind), "%s: its kind",
	       name);
	ok(f.has_packet && f.packet == 4 && f.queue == 0,
	   "%s: packet 4 of queue 0 is the guilty one", name);
	is_str(f.kernel, "store", "%s: its kernel", name);
	ok(f.device_lost == device && kfd_lost(r->dev, NULL) == device,
	   "%s: the device is %s", name, device ? "lost" : "not lost");
	ok(kfd_wait(r->q, ticket[3], 0, NULL, &e),
	   "%s: packets before it are complete", name);
	ok(!kfd_wait(r->q, ticket[5], 0, NULL, &e) && e.code == ERR_DEVICE,
	   "%s: those behind it have failed", name);
	has_str(e.msg, "packet 4", "%s: with the same report", name);
	struct kfd_launch l = rig_launch(r, 32, 0, 1000);
	ok(!kfd_run(r->q, &l, NULL, &e), "%s: no more is taken", name);
	if (device)
		return;
	kfd_queue_free(r->q, NULL);
	r->e = (struct err){ 0 };
	ok(kfd_queue_new(r->dev, NULL, &r->q, &r->e) && rig_run(r, 5, 5000),
	   "%s: a new queue works (%s)", name, r->e.msg);
}

static void test_faults(void)
{
	const struct {
		const char *name;
		enum soft_inject_what what;
		enum kfd_fault_kind kind;
		bool device;
		const char *text;
	} t[] = {
		{ "illegal instruction", SOFT_INJECT_ILLEGAL,
		  KFD_FAULT_ILLEGAL, false, "illegal instruction" },
		{ "refused packet", SOFT_INJECT_REFUSE, KFD_FAULT_PACKET, false,
		  "grid or workgroup dimensions" },
		{ "page fault", SOFT_INJECT_FAULT, KFD_FAULT_MEMORY, true,
		  "page not present" },
		{ "poison", SOFT_INJECT_ECC, KFD_FAULT_ECC, true,
		  "uncorrectable memory error" },
		{ "reset", SOFT_INJECT_RESET, KFD_FAULT_RESET, true,
		  "was reset" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct soft_inject rule = { .what = t[i].what,
						  .after = 4,
						  .va = 0x123456789000 };
		struct rig r;

		struck(t[i].name, &rule, t[i].kind, t[i].device, t[i].text, &r);
		rig_close(&r, 3000, t[i].name);
	}
}

/* The fault is at an address that the test knows, near what it allocated. */
static void near_what(const char *name, int64_t from_start, bool freed,
		      const char *text)
{
	struct rig r;
	struct kfd_mem *m;
	struct kfd_fault f = { 0 };
	uint64_t ticket[10];

	if (!ok(rig_open(&r, NULL, NULL, 0), "%s: a device", name))
		return;
	ok(kfd_mem_alloc(r.dev, KFD_VRAM, 10000, "victim", &m, &r.e),
	   "%s: a buffer", name);
	const uint64_t at = m->va;
	const struct soft_inject rule = { .what = SOFT_INJECT_FAULT,
					  .after = 2,
					  .va = at + (uint64_t)from_start };
	soft_inject(r.d, &rule);
	if (freed)
		kfd_mem_free(r.dev, m);
	ok(!ten(&r, ticket, 5000) && kfd_queue_fault(r.q, &f),
	   "%s: it faults", name);
	has_str(r.e.msg, text, "%s: the report names it", name);
	has_str(r.e.msg, "kernel 'store', packet 2 of queue 0",
		"%s: and kernel and packet", name);
	is_str(f.near.name, "victim", "%s: the record names it, too", name);
	is_i64(f.near.offset, from_start, "%s: with the distance", name);
	ok(f.near.freed == freed && f.near.va == at && f.has_va,
	   "%s: and whether it is freed", name);
	rig_close(&r, 3000, name);
}

static void test_near(void)
{
	near_what("past a live one", 10000, false,
		  "0 bytes past the end of 'victim' (VRAM");
	near_what("before a live one", -100, false,
		  "100 bytes before 'victim' (VRAM");
	near_what("inside a freed one", 4100, true,
		  "4100 bytes into freed 'victim' (VRAM");
}

static void test_hang(void)
{
	struct soft_inject rule = { .what = SOFT_INJECT_HANG, .after = 4 };
	uint64_t ticket[10];
	struct kfd_fault f = { 0 };
	struct rig r;

	ok(rig_open(&r, NULL, &rule, 1) && !ten(&r, ticket, 300),
	   "hang: the deadline ends it");
	rig_error(&r.e, ERR_TIMEOUT, 3, "hang",
		  "kernel 'store', packet 4 of queue 0", "hangs or needs more");
	ok(kfd_queue_fault(r.q, &f) && f.kind == KFD_FAULT_HANG &&
		   f.packet == 4 && !f.device_lost,
	   "hang: the record says so");
	ok(!kfd_lost(r.dev, NULL), "hang: the device is not lost");
	ok(kfd_queue_free(r.q, &r.e), "hang: the queue can be ended");
	r.e = (struct err){ 0 };
	ok(kfd_queue_new(r.dev, NULL, &r.q, &r.e) && rig_run(&r, 1, 5000),
	   "hang: another one works (%s)", r.e.msg);
	rig_close(&r, 3000, "hang");

	rule.ns = 200 * MS; /* then the driver loses patience */
	ok(rig_open(&r, NULL, &rule, 1) && !ten(&r, ticket, 5000),
	   "hang and reset: waiting fails");
	rig_error(&r.e, ERR_DEVICE, 3, "hang and reset", "was reset (hang",
		  "contents of its memory are lost");
	ok(kfd_queue_fault(r.q, &f) && f.kind == KFD_FAULT_RESET &&
		   f.memory_lost,
	   "hang and reset: the record says so");
	rig_close(&r, 3000, "hang and reset");
}

/*
 * What misses its deadline may still run: what it uses stays, freed or not,
 * until it has ended or the device is closed.
 */
static void test_late(void)
{
	const struct code gate = code_of("tests/runtime/kernels.s", "gate");
	const struct kfd_kernel *kernel;
	volatile uint32_t *out;
	struct kfd_mem *other;
	struct rig r;

	ok(rig_open(&r, NULL, NULL, 0) &&
		   rig_kernel(&r, "gate", gate.dw, gate.size_bytes, &kernel) &&
		   kfd_mem_alloc(r.dev, KFD_GTT, 65536, "other", &other, &r.e),
	   "late: a kernel that waits for the host");
	const uint64_t bytes = kfd_mem_live_bytes(r.dev);
	struct kfd_launch l = rig_launch(&r, 32, 77, 100);
	uint64_t ticket;
	l.kernel = kernel;
	out = r.out->cpu;
	out[0] = out[1] = 0;
	ok(kfd_submit(r.q, &l, &ticket, &r.e) &&
		   !kfd_wait(r.q, ticket, l.deadline_ns, NULL, &r.e),
	   "late: it misses its deadline");
	is_u64(r.e.code, ERR_TIMEOUT, "late: the error says so");
	kfd_code_unload(kernel->code);
	kfd_mem_free(r.dev, r.out);
	is_u64(kfd_mem_live_bytes(r.dev), bytes, "late: nothing is freed");
	out[0] = 1;
	r.e = (struct err){ 0 };
	ok(kfd_wait(r.q, ticket, time_mono_ns() + 5000 * MS, NULL, &r.e),
	   "late: it can be waited for again (%s)", r.e.msg);
	is_u64(out[1], 77, "late: and did its work");
	kfd_mem_free(r.dev, other);
	is_u64(kfd_mem_live_bytes(r.dev), bytes - 65536,
	       "late: then memory is freed as ever");
	rig_close(&r, 8000, "late");

	ok(rig_open(&r, NULL, NULL, 0) &&
		   rig_kernel(&r, "gate", gate.dw, gate.size_bytes, &kernel),
	   "late for ever: a kernel that waits");
	l = rig_launch(&r, 32, 77, 100);
	l.kernel = kernel;
	*(volatile uint32_t *)r.out->cpu = 0;
	ok(!kfd_run(r.q, &l, NULL, &r.e), "late for ever: it does not end");
	kfd_code_unload(kernel->code);
	kfd_mem_free(r.dev, r.out);
	ok(!kfd_lost(r.dev, NULL), "late for ever: the device is not lost");
	rig_close(&r, 3000, "late for ever");
}

/* The queue cannot be taken off the hardware: closing goes on. */
static void test_stuck_queue(void)
{
	const struct soft_inject rule[] = {
		{ .what = SOFT_INJECT_HANG },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_DESTROY_QUEUE,
		  .err = ETIME, .times = UINT64_MAX },
	};
	struct rig r;

	ok(rig_open(&r, NULL, rule, 2) && !rig_run(&r, 1, 200),
	   "stuck queue: it hangs");
	ok(!kfd_queue_free(r.q, &r.e), "stuck queue: ending it fails");
	rig_error(&r.e, ERR_DEVICE, 3, "stuck queue", "DESTROY_QUEUE",
		  "the device hangs");
	is_str(rig_end(&r, 99) ? "left" : "nothing", "nothing",
	       "stuck queue: closing gives back all that it can");
}

/* Somebody else's reset: memory is gone, and no event told us. */
static void test_mute_reset(void)
{
	const struct soft_inject rule = { .what = SOFT_INJECT_RESET_MUTE,
					  .after = 4 };
	uint64_t ticket[10];
	struct kfd_fault f = { 0 };
	struct rig r;
	const uint64_t start = time_mono_ns();

	ok(rig_open(&r, NULL, &rule, 1) && !ten(&r, ticket, 20000),
	   "reset without an event: noticed");
	ok(time_mono_ns() - start < 5000 * MS,
	   "reset without an event: long before the deadline");
	rig_error(&r.e, ERR_DEVICE, 3, "reset without an event",
		  "was reset, cause unknown", "must be opened again");
	ok(kfd_lost_fault(r.dev, &f) && f.kind == KFD_FAULT_RESET &&
		   f.memory_lost && f.packet == 4,
	   "reset without an event: the record says so");
	rig_close(&r, 5000, "reset without an event");
}

/* Nothing is wrong in these: they only take longer. */
static void test_patience(void)
{
	const struct {
		const char *name;
		struct soft_inject rule;
		uint32_t minor;
		uint64_t min_ms, max_ms;
	} t[] = {
		{ "eviction of 1.5 s",
		  { .what = SOFT_INJECT_PAUSE, .after = 4, .ns = 1500 * MS },
		  0, 1400, 4000 },
		{ "slow packet",
		  { .what = SOFT_INJECT_SLOW, .after = 4, .ns = 300 * MS }, 0,
		  300, 2000 },
		{ "lost interrupts",
		  { .what = SOFT_INJECT_LOST_IRQ, .times = ~0ull }, 0, 0,
		  2500 },
		{ "lost interrupts, KFD 1.11",
		  { .what = SOFT_INJECT_LOST_IRQ, .times = ~0ull }, 11, 0,
		  500 },
		{ "spurious wake-ups",
		  { .what = SOFT_INJECT_SPURIOUS, .times = ~0ull,
		    .ns = 2 * MS }, 0, 100, 3000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		/* All start late enough for the waiter to sleep. */
		const struct soft_inject rule[] = {
			t[i].rule, { .what = SOFT_INJECT_SLOW, .after = 4,
				     .ns = 20 * MS } };
		const struct soft_options o = { .kfd_minor = t[i].minor };
		uint64_t ticket[10];
		struct rig r;

		if (!ok(rig_open(&r, &o, rule, 2), "%s: a device", t[i].name))
			continue;
		const uint64_t start = time_mono_ns();
		ok(ten(&r, ticket, 10000), "%s: all packets complete (%s)",
		   t[i].name, r.e.msg);
		const uint64_t ms = (time_mono_ns() - start) / MS;
		ok(ms >= t[i].min_ms && ms < t[i].max_ms,
		   "%s: in %d ms, wanted %d to %d", t[i].name, (int)ms,
		   (int)t[i].min_ms, (int)t[i].max_ms);
		is_u64(rig_wrong(r.out, 64, 900), 0,
		       "%s: the results are right", t[i].name);
		uint64_t evicted = 99;
		ok(kfd_evicted(r.dev, &evicted, &r.e), "%s: evictions are "
		   "counted (%s)", t[i].name, r.e.msg);
		is_u64(evicted, i ? 0 : 1500, "%s: for so many ms", t[i].name);
		rig_close(&r, 6000, t[i].name);
	}
}

/*
 * On a card a wave's memory violation may come with SIGSEGV for the process.
 * The runtime must leave that signal alone, before and after a fault.
 */
static void test_signals(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT };
	const struct soft_inject rule = { .what = SOFT_INJECT_FAULT,
					  .va = 0x1000 };
	struct sigaction was[ARRAY_SIZE(signals)], now;
	uint64_t ticket[10];
	bool alone = true;
	struct rig r;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], NULL, &was[i]);
	if (!ok(rig_open(&r, NULL, &rule, 1), "a device that faults"))
		return;
	ok(!ten(&r, ticket, 3000), "it does");
	/* Sanitizers have handlers of their own, which stay. */
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		alone &= !sigaction(signals[i], NULL, &now) &&
			 now.sa_handler == was[i].sa_handler;
	ok(alone, "SIGSEGV, SIGBUS and SIGABRT are left alone");
	rig_close(&r, 5000, "signals");
}

/* A fault of one queue, seen by a waiter of another. */
static void test_two_queues(void)
{
	const struct soft_inject rule[] = {
		{ .what = SOFT_INJECT_SLOW, .ns = 50 * MS },
		{ .what = SOFT_INJECT_FAULT, .va = 0x7000000000 },
	};
	struct kfd_queue *q2;
	struct kfd_fault f = { 0 };
	uint64_t a, b;
	struct rig r;

	if (!ok(rig_open(&r, NULL, rule, 2) &&
			kfd_queue_new(r.dev, NULL, &q2, &r.e),
		"two queues"))
		return;
	/* The first packet, in queue 0, is slow; the second faults. */
	struct kfd_launch l = rig_launch(&r, 64, 1, 5000);
	ok(kfd_submit(r.q, &l, &a, &r.e), "a slow packet in queue 0");
	struct timespec ms10 = { .tv_nsec = 10 * MS };
	nanosleep(&ms10, NULL);
	ok(kfd_submit(q2, &l, &b, &r.e), "one that faults in queue 1");
	ok(!kfd_wait(r.q, a, 0, NULL, &r.e), "the waiter of queue 0 learns it");
	has_str(r.e.msg, "packet 0 of queue 1",
		"and that it was not its own packet");
	ok(kfd_lost_fault(r.dev, &f) && f.queue == 1, "as does the record");
	rig_close(&r, 3000, "two queues");
}

int main(void)
{
	test_faults();
	test_near();
	test_hang();
	test_late();
	test_stuck_queue();
	test_mute_reset();
	test_patience();
	test_signals();
	test_two_queues();
	return plan_done();
}
