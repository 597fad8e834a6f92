/*
 * The runtime on the gfx1100 in software: the same calls as on a card, with
 * real machine code.  Words are written out from the ISA (assembler text
 * beside them); results are computed here.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "tests/code.h"
#include "tests/still.h"
#include "tests/tap.h"

#define MS 1000000ull

struct rig {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *out;
	struct err e;
};

/* A kernel of kernels.s by another name. */
static const struct kfd_kernel *kernel(struct rig *r, const char *name,
				       const char *label)
{
	const struct code c = code_of("tests/runtime/kernels.s", label);
	struct kfd_raw_desc d = { .name = name,
				  .rsrc1 = 0x60af0000, /* 8 VGPRs, WGP mode */
				  .rsrc2 = 0x84, /* 2 user SGPRs, group id X */
				  .properties = 0x408, /* wave32, kernargs */
				  .kernarg_bytes = 12 };
	const struct kfd_kernel *k = NULL;

	if (!kfd_code_raw(r->dev, c.dw, c.size_bytes, &d, &k, &r->e))
		diag("%s", r->e.msg);
	return k;
}

static bool rig_open(struct rig *r, const struct soft_options *o)
{
	struct kfd_driver *d = kfd_soft_new(o, &r->e);

	if (d && kfd_open_driver(&r->dev, d, -1, "test", &r->e) &&
	    kfd_queue_new(r->dev, NULL, &r->q, &r->e) &&
	    kfd_mem_alloc(r->dev, KFD_VRAM, 65536, "out", &r->out, &r->e))
		return true;
	diag("%s", r->e.msg);
	return false;
}

/* The message gives the address of instruction `offset` bytes in. */
static void has_pc(const struct err *e, const struct kfd_kernel *k,
		   unsigned offset, const char *name)
{
	char pc[32];

	snprintf(pc, sizeof(pc), "pc 0x%llx)",
		 (unsigned long long)k->entry_va + offset);
	has_str(e->msg, pc, "%s", name);
}

struct args {
	uint64_t out;
	uint32_t add;
} __attribute__((packed));

static struct kfd_launch launch(const struct kfd_kernel *k,
				const struct args *a, uint32_t n)
{
	return (struct kfd_launch){ .kernel = k,
				    .grid = { n },
				    .wg = { 32 },
				    .args = a,
				    .args_bytes = sizeof(*a),
				    .deadline_ns =
					    time_mono_ns() + 20000 * MS };
}

static unsigned wrong_words(const struct kfd_mem *m, uint32_t n, uint32_t add)
{
	const volatile uint32_t *p = m->cpu;
	unsigned wrong = 0;

	for (uint32_t i = 0; i < n; i++)
		wrong += p[i] != add + i;
	return wrong;
}

static void test_choice(void)
{
	struct kfd_dev *dev;
	struct err e = { 0 };

	if (!ok(kfd_open(&dev, "soft", &e), "\"soft\" opens (%s)", e.msg))
		return;
	const struct kfd_info *i = kfd_info(dev);
	is_str(i->spec, "soft", "its spec");
	is_str(i->origin, "emulated", "its figures are emulated");
	is_str(i->gfx, "gfx1100", "it is a gfx1100");
	is_u64(i->node.cu_count, 96, "with 96 CUs");
	is_u64(i->node.vram_bytes, 25753026560, "and 24 GB");
	has_str(i->why, "asked for", "it says why it was chosen");
	kfd_close(dev);
}

static void test_store(struct rig *r)
{
	const struct kfd_kernel *k = kernel(r, "store", "store");
	struct args a = { r->out->va, 1000 };
	struct kfd_launch l = launch(k, &a, 100);
	struct kfd_timing t = { 0 };

	memset(r->out->cpu, 0xee, 65536);
	ok(kfd_run(r->q, &l, &t, &r->e), "a kernel runs (%s)", r->e.msg);
	is_u64(wrong_words(r->out, 100, 1000), 0, "100 work-items stored");
	is_u64(((uint32_t *)r->out->cpu)[100], 0xeeeeeeee,
	       "and none of the partial workgroup's missing ones");
	ok(t.end_ticks >= t.start_ticks && t.start_ticks > 0, "it has times");
}

static void test_domains(struct rig *r)
{
	static const enum kfd_domain domain[] = { KFD_VRAM, KFD_GTT,
						  KFD_USERPTR };
	static const char *const name[] = { "VRAM", "GTT", "user pages" };
	const struct kfd_kernel *k = kernel(r, "store", "store");

	for (size_t i = 0; i < ARRAY_SIZE(domain); i++) {
		struct kfd_mem *m;
		bool made = kfd_mem_alloc(r->dev, domain[i], 3 << 20, name[i],
					  &m, &r->e);
		if (!ok(made, "%s: allocated (%s)", name[i], r->e.msg))
			continue;
		struct args a = { m->va, 77 };
		struct kfd_launch l = launch(k, &a, 786432);
		ok(kfd_run(r->q, &l, NULL, &r->e), "%s: a kernel runs (%s)",
		   name[i], r->e.msg);
		is_u64(wrong_words(m, 786432, 77), 0, "%s: 3 MiB are right",
		       name[i]);
		kfd_mem_free(r->dev, m);
	}
}

static void test_thousand(struct rig *r)
{
	const struct kfd_queue_opts o = { .ring_packets = 64,
					  .kernarg_bytes = 2048 };
	const struct kfd_kernel *k = kernel(r, "store", "store");
	struct kfd_queue *q[2];
	uint64_t ticket[2] = { 0 };
	bool fine = true;

	kfd_queue_new(r->dev, &o, &q[0], &r->e);
	kfd_queue_new(r->dev, &o, &q[1], &r->e);
	memset(r->out->cpu, 0, 65536);
	/* Queue n's packet i writes i into a place of its own. */
	for (uint32_t i = 0; i < 1000 && fine; i++) {
		for (int n = 0; n < 2 && fine; n++) {
			struct args a = { r->out->va + 4u * (n * 1000 + i),
					  i + 1 };
			struct kfd_launch l = launch(k, &a, 1);
			l.quiet = i % 3;
			fine = kfd_put(q[n], &l, &ticket[n], &r->e);
		}
	}
	fine = fine && kfd_wait(q[0], ticket[0], 0, NULL, &r->e) &&
	       kfd_wait(q[1], ticket[1], 0, NULL, &r->e);
	ok(fine, "1,000 dispatches on each of two queues (%s)", r->e.msg);
	is_u64(wrong_words(r->out, 1000, 1), 0, "the first queue's are right");
	const uint32_t *second = (uint32_t *)r->out->cpu + 1000;
	unsigned wrong = 0;
	for (uint32_t i = 0; i < 1000; i++)
		wrong += second[i] != i + 1;
	is_u64(wrong, 0, "the second queue's too");
	ok(kfd_queue_free(q[0], &r->e) && kfd_queue_free(q[1], &r->e),
	   "the queues go (%s)", r->e.msg);
}

static void test_illegal(struct rig *r)
{
	const struct kfd_kernel *bad = kernel(r, "illegal", "illegal");
	const struct kfd_kernel *good = kernel(r, "store", "store");
	struct args a = { r->out->va, 5 };
	struct kfd_launch l = launch(bad, &a, 32);
	struct kfd_queue *q;
	struct err e = { 0 };

	kfd_queue_new(r->dev, NULL, &q, &e);
	ok(!kfd_run(q, &l, NULL, &e) && e.code == ERR_DEVICE,
	   "an illegal instruction is a device error");
	diag("%s", e.msg);
	has_str(e.msg, "illegal instruction", "it is named");
	has_str(e.msg, "kernel 'illegal', packet 0", "with kernel and packet");
	has_pc(&e, bad, 0, "and instruction address");
	ok(!kfd_lost(r->dev, NULL), "the device lives on");
	kfd_queue_free(q, NULL);
	e = (struct err){ 0 };
	l = launch(good, &a, 32);
	ok(kfd_queue_new(r->dev, NULL, &q, &e) && kfd_run(q, &l, NULL, &e),
	   "another queue runs (%s)", e.msg);
	is_u64(wrong_words(r->out, 32, 5), 0, "and is right");
	kfd_queue_free(q, NULL);
}

static void test_memory_fault(void)
{
	struct rig r = { 0 };

	if (!ok(rig_open(&r, NULL), "a device for a fault"))
		return;
	const struct kfd_kernel *k = kernel(&r, "overrun", "store");
	/* 32 lanes, of which the last 16 are past the end. */
	struct args a = { r.out->va + 65536 - 64, 5 };
	struct kfd_launch l = launch(k, &a, 32);
	const uint64_t start = time_mono_ns();

	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "a store past the end of a buffer faults");
	ok(time_mono_ns() - start < 5000 * MS, "soon");
	diag("%s", r.e.msg);
	has_str(r.e.msg, "0 bytes past the end of 'out' (VRAM",
		"the buffer is named");
	has_str(r.e.msg, "kernel 'overrun', packet 0 of queue 0",
		"kernel and packet too");
	has_pc(&r.e, k, 11 * 4, "and the store");
	ok(kfd_lost(r.dev, NULL), "the device is lost");
	kfd_close(r.dev);
	r = (struct rig){ 0 };
	ok(rig_open(&r, NULL), "it can be opened again (%s)", r.e.msg);
	k = kernel(&r, "store", "store");
	a = (struct args){ r.out->va, 9 };
	l = launch(k, &a, 32);
	ok(kfd_run(r.q, &l, NULL, &r.e), "and runs kernels (%s)", r.e.msg);
	is_u64(wrong_words(r.out, 32, 9), 0, "rightly");
	kfd_close(r.dev);
}

static void test_hang(void)
{
	struct rig r = { 0 };

	if (!ok(rig_open(&r, NULL), "a device for a hang"))
		return;
	const struct kfd_kernel *k = kernel(&r, "loop", "loop");
	struct args a = { 0, 0 };
	struct kfd_launch l = launch(k, &a, 32);
	const uint64_t start = time_mono_ns();

	l.deadline_ns = start + 200 * MS;
	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_TIMEOUT,
	   "an endless kernel ends at the deadline");
	has_str(r.e.msg, "kernel 'loop', packet 0", "it is named");
	kfd_queue_free(r.q, NULL);
	kfd_close(r.dev);
	ok(time_mono_ns() - start < 15000 * MS, "closing kills it");
}

/* Nobody runs for longer than the deadline, then the signal is set. */
static void *set_after_standstill(void *signal)
{
	stand_still(4000);
	nanosleep(&(struct timespec){ 0, 300 * MS }, NULL);
	kfd_signal_set(signal, 0);
	return NULL;
}

static void test_standstill(void)
{
	struct rig r = { 0 };
	struct kfd_signal *s;
	pthread_t t;

	if (!ok(rig_open(&r, NULL), "a device on a host that stands still") ||
	    !ok(kfd_signal_new(r.dev, 1, &s, &r.e), "a signal"))
		return;
	pthread_create(&t, NULL, set_after_standstill, s);
	ok(kfd_signal_wait(s, time_mono_ns() + 3500 * MS, &r.e),
	   "a wait does not end while nobody runs (%s)", r.e.msg);
	pthread_join(t, NULL);
	kfd_signal_free(s);
	kfd_close(r.dev);
}

/* The device's own limit is shorter than ours: it resets itself. */
static void test_reset(void)
{
	const struct soft_options o = { .deadline_ns = 100 * MS };
	struct rig r = { 0 };

	if (!ok(rig_open(&r, &o), "a device that resets on a hang"))
		return;
	const struct kfd_kernel *k = kernel(&r, "loop", "loop");
	struct args a = { 0, 0 };
	struct kfd_launch l = launch(k, &a, 32);

	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "a reset is a device error");
	diag("%s", r.e.msg);
	has_str(r.e.msg, "reset (hang", "it says what happened");
	ok(kfd_lost(r.dev, NULL), "the device is lost by it");
	kfd_close(r.dev);
}

static void test_limits(void)
{
	const struct soft_options small = { .vram_bytes = 256 << 20 };
	const struct soft_options bar = { .small_bar = true };
	struct rig r = { 0 };
	struct kfd_mem *m;

	if (!ok(rig_open(&r, &small), "a card of 256 MiB"))
		return;
	uint64_t before = kfd_mem_live_bytes(r.dev);
	ok(!kfd_mem_alloc(r.dev, KFD_VRAM, 300 << 20, "huge", &m, &r.e) &&
		   r.e.code == ERR_NOMEM,
	   "more VRAM than there is: ERR_NOMEM");
	has_str(r.e.msg, "314572800", "it says how much was wanted");
	has_str(r.e.msg, "268435456", "and how much there is");
	is_u64(kfd_mem_live_bytes(r.dev), before, "nothing is left behind");
	r.e = (struct err){ 0 };
	ok(kfd_mem_alloc(r.dev, KFD_VRAM, 100 << 20, "fits", &m, &r.e),
	   "what fits is given (%s)", r.e.msg);
	kfd_close(r.dev);
	r = (struct rig){ 0 };
	ok(!rig_open(&r, &bar) && r.e.code == ERR_UNSUPPORTED,
	   "a small BAR refuses host-visible VRAM");
	kfd_close(r.dev);
}

static void test_old_kernels(void)
{
	static const uint32_t minor[] = { 1, 6, 11, 13, 14, 19 };

	for (size_t i = 0; i < ARRAY_SIZE(minor); i++) {
		const struct soft_options o = { .kfd_minor = minor[i] };
		struct rig r = { 0 };
		struct kfd_queue *q = NULL;
		struct err e = { 0 };

		if (!ok(rig_open(&r, &o), "KFD 1.%u opens", minor[i]))
			continue;
		const struct kfd_kernel *bad =
			kernel(&r, "illegal", "illegal");
		const struct kfd_kernel *k = kernel(&r, "s", "store");
		struct args a = { r.out->va, 3 };
		struct kfd_launch l = launch(k, &a, 64);
		ok(kfd_run(r.q, &l, NULL, &r.e), "KFD 1.%u runs (%s)", minor[i],
		   r.e.msg);
		is_u64(wrong_words(r.out, 64, 3), 0, "KFD 1.%u is right",
		       minor[i]);
		l = launch(bad, &a, 32);
		ok(kfd_queue_new(r.dev, NULL, &q, &e) &&
			   !kfd_run(q, &l, NULL, &e) && e.code == ERR_DEVICE,
		   "KFD 1.%u reports an illegal instruction", minor[i]);
		has_str(e.msg, "illegal", "KFD 1.%u names it", minor[i]);
		kfd_close(r.dev);
	}
}

int main(void)
{
	struct rig r = { 0 };

	test_choice();
	if (!ok(rig_open(&r, NULL), "the device opens"))
		return plan_done();
	test_store(&r);
	test_domains(&r);
	test_thousand(&r);
	test_illegal(&r);
	kfd_close(r.dev);
	test_memory_fault();
	test_hang();
	test_standstill();
	test_reset();
	test_limits();
	test_old_kernels();
	return plan_done();
}
