/*
 * Packets, arguments, waiting and errors against the recording driver, whose
 * packet processor completes (or spoils) packets without running code.
 */
#include "tests/runtime/kfd-fake.h"
#include "tests/tap.h"

#define MS 1000000ull

struct rig {
	struct fake *f;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	const struct kfd_kernel *k;
	struct err e;
};

/* s_endpgm; wave32, 8 VGPRs, one argument pointer. */
static const uint32_t endpgm = 0xbfb00000;

static struct kfd_raw_desc raw(const char *name, uint32_t kernarg)
{
	return (struct kfd_raw_desc){ .name = name,
				      .properties = 1 << 10 | 1 << 3,
				      .rsrc1 = 0x60af0000,
				      .rsrc2 = 0x9e,
				      .kernarg_bytes = kernarg };
}

static struct rig rig(enum fake_cp cp, const struct kfd_queue_opts *o)
{
	struct rig r = { .f = fake_new() };
	struct kfd_raw_desc d = raw("probe_me", 12);

	r.f->cp = cp;
	if (!kfd_open_driver(&r.dev, &r.f->drv, -1, "test", &r.e) ||
	    !kfd_queue_new(r.dev, o, &r.q, &r.e) ||
	    !kfd_code_raw(r.dev, &endpgm, 4, &d, &r.k, &r.e))
		BUG("rig: %s", r.e.msg);
	return r;
}

static struct kfd_launch launch(const struct rig *r, const uint32_t args[3],
				uint64_t ms)
{
	return (struct kfd_launch){ .kernel = r->k,
				    .grid = { 100, 1, 1 },
				    .wg = { 32, 1, 1 },
				    .args = args,
				    .args_bytes = 12,
				    .deadline_ns = time_mono_ns() + ms * MS };
}

static void test_packet(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	uint32_t args[3] = { 7, 8, 9 };
	struct kfd_launch l = launch(&r, args, 2000);
	struct kfd_timing t = { 0 };

	l.grid[1] = 3;
	l.dyn_lds_bytes = 1000;
	ok(kfd_run(r.q, &l, &t, &r.e), "a dispatch runs (%s)", r.e.msg);
	const struct aql_dispatch *p = &r.f->last;
	is_u64(p->header, 0x1502, "header: dispatch, barrier, system scopes");
	is_u64(p->setup, 2, "two dimensions");
	is_u64(p->grid_size[0], 100, "grid x in work-items");
	is_u64(p->grid_size[1], 3, "grid y");
	is_u64(p->grid_size[2], 1, "grid z is 1");
	is_u64(p->workgroup_size[0], 32, "workgroup x");
	is_u64(p->workgroup_size[2], 1, "workgroup z is 1");
	is_u64(p->group_segment_size, 1000, "LDS in the packet");
	is_u64(p->private_segment_size, 0, "no scratch");
	is_u64(p->kernel_object, r.k->object_va, "the descriptor");
	is_mem((void *)(uintptr_t)p->kernarg_address, args, 12, "arguments");
	is_u64(t.device_ns, 2500, "250 ticks of 10 ns");
	ok(t.host_ns > 0, "host time is given");
	is_u64(p->completion_signal % 64, 0, "the signal is aligned");
	is_u64(r.f->queue[0].limit, 1, "the doorbell got index 0, not 1");
	is_u64(r.f->queue[0].q.rptr_addr ?
		       ((struct amd_queue *)(uintptr_t)(r.f->queue[0]
								.q.rptr_addr -
							0x80))
			       ->write_dispatch_id :
		       0,
	       1, "the write index counts packets");
	kfd_close(r.dev);
}

static void test_descriptor(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	const uint32_t *kd = (void *)(uintptr_t)r.k->object_va;

	is_u64(r.k->object_va % 64, 0, "the descriptor is aligned");
	is_u64(kd[2], 12, "kernarg size at 8");
	is_u64(kd[4], 256, "entry offset at 16, relative");
	is_u64(kd[12], 0x60af0000, "rsrc1 at 48");
	is_u64(kd[13], 0x9e, "rsrc2 at 52");
	is_u64(kd[14] & 0xffff, 0x408, "properties at 56");
	is_u64(*(uint32_t *)(uintptr_t)r.k->entry_va, endpgm, "the code");
	is_u64(((uint32_t *)(uintptr_t)r.k->entry_va)[1], 0xbf9f0000,
	       "s_code_end behind it");
	is_u64(r.k->vgprs, 8, "VGPRs from rsrc1");
	is_u64(r.k->wave_size, 32, "wave32 from the properties");
	kfd_close(r.dev);
}

/* 1,000 packets through 64 slots and room for 8 argument blocks. */
static void test_rings(enum fake_cp cp, bool quiet, const char *name)
{
	struct kfd_queue_opts o = { .ring_packets = 64, .kernarg_bytes = 1024 };
	struct rig r = rig(cp, &o);
	uint64_t ticket = 0;
	unsigned wrong = 0;
	bool fine = true;

	for (uint32_t i = 0; i < 1000 && fine; i++) {
		uint32_t args[3] = { i * 3, 0, 0 };
		struct kfd_launch l = launch(&r, args, 20000);
		l.quiet = quiet;
		fine = kfd_put(r.q, &l, &ticket, &r.e);
	}
	fine = fine && kfd_wait(r.q, ticket, 0, NULL, &r.e);
	ok(fine, "%s: 1,000 packets complete (%s)", name, r.e.msg);
	is_u64(ticket, 999, "%s: tickets count packets", name);
	is_u64(r.f->n_seen, 1000, "%s: each ran once", name);
	for (uint32_t i = 0; i < r.f->n_seen; i++)
		wrong += r.f->seen[i] != i * 3;
	is_u64(wrong, 0, "%s: each saw its own arguments", name);
	kfd_close(r.dev);
}

static uint16_t header_of(struct rig *r, bool quiet, bool overlap)
{
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(r, args, 2000);

	l.quiet = quiet;
	l.overlap = overlap;
	ok(kfd_submit(r->q, &l, NULL, &r->e), "a packet (%s)", r->e.msg);
	return r->f->last.header;
}

/* Acquire in bits 10:9, release in 12:11: 1 the device, 2 the host, too. */
static void test_chain(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);

	is_u64(header_of(&r, false, false), 0x1502, "no chain: system scopes");
	is_u64(header_of(&r, true, false), 0x0d02, "its first: what came "
	       "before from the host");
	is_u64(header_of(&r, true, false), 0x0b02, "within, the device's");
	is_u64(header_of(&r, false, false), 0x1302, "its last: for the host");
	is_u64(header_of(&r, false, false), 0x1502, "behind it");
	is_u64(header_of(&r, true, false), 0x0d02, "a packet without an end");
	const uint64_t limit = r.f->queue[0].limit;
	ok(kfd_wait(r.q, 5, 0, NULL, &r.e), "is waited for (%s)", r.e.msg);
	is_u64(r.f->queue[0].limit, limit + 1,
	       "through a barrier that ends it");
	ok(kfd_wait(r.q, 5, 0, NULL, &r.e) &&
	   r.f->queue[0].limit == limit + 1, "once");
	is_u64(header_of(&r, true, false), 0x0d02, "and another");
	ok(kfd_drain(r.q, 0, &r.e), "drained");
	is_u64(r.f->queue[0].limit, limit + 3, "that ends it, too");
	is_u64(header_of(&r, true, true), 0x1402,
	       "who overlaps is never quiet");
	kfd_close(r.dev);
}

/* What overlaps may be complete before what it overlaps is. */
static void test_overtaken(void)
{
	struct rig r = rig(FAKE_HANG, NULL);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 2000);
	struct aql_dispatch *ring;
	uint64_t first, second;

	kfd_put(r.q, &l, &first, &r.e);
	l.quiet = true;
	kfd_put(r.q, &l, &first, &r.e);
	l.quiet = false;
	l.overlap = true;
	ok(kfd_submit(r.q, &l, &second, &r.e), "one overlaps a quiet one");
	ring = (void *)(uintptr_t)r.f->queue[0].q.ring_base;
	((struct amd_signal *)(uintptr_t)ring[second].completion_signal)
		->value = 0;
	ok(kfd_wait(r.q, second, time_mono_ns() + 60 * MS, NULL, &r.e),
	   "it is complete");
	ok(!kfd_wait(r.q, first, time_mono_ns() + 60 * MS, NULL, &r.e) &&
	   r.e.code == ERR_TIMEOUT, "the other is not");
	kfd_close(r.dev);
}

/*
 * Blocks of 384 bytes in a ring of 4096: the eleventh would run past the end,
 * into the guard page.
 */
static void test_no_straddling(void)
{
	struct kfd_queue_opts o = { .kernarg_bytes = 4096 };
	struct rig r = rig(FAKE_LAZY, &o);
	struct kfd_raw_desc d = raw("wide", 300);
	uint32_t args[75] = { 0 };
	unsigned wrong = 0;
	uint64_t ticket;

	kfd_code_raw(r.dev, &endpgm, 4, &d, &r.k, &r.e);
	for (uint32_t i = 0; i < 100; i++) {
		args[0] = i;
		struct kfd_launch l = launch(&r, args, 5000);
		l.args_bytes = sizeof(args);
		kfd_put(r.q, &l, &ticket, &r.e);
	}
	ok(kfd_wait(r.q, ticket, 0, NULL, &r.e), "wide arguments (%s)",
	   r.e.msg);
	for (uint32_t i = 0; i < 100; i++)
		wrong += r.f->seen[i] != i;
	is_u64(wrong, 0, "no block runs over the end of the ring");
	kfd_close(r.dev);
}

static void test_not_by_read_index(void)
{
	struct rig r = rig(FAKE_HANG, NULL);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 60);
	uint64_t start = time_mono_ns();

	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_TIMEOUT,
	   "a fetched packet is not a finished one");
	diag("%s", r.e.msg);
	uint64_t ms = (time_mono_ns() - start) / MS;
	ok(ms >= 59 && ms < 2000, "the deadline holds (%llu ms)",
	   (unsigned long long)ms);
	has_str(r.e.msg, "probe_me", "the kernel is named");
	has_str(r.e.msg, "packet 0 of queue 0", "the packet is named");
	is_u64((uint64_t)err_exit_code(&r.e), 3, "a hang exits 3");
	ok(kfd_queue_free(r.q, &r.e), "the queue can be freed");
	ok(kfd_queue_new(r.dev, NULL, &r.q, &r.e), "and another made");
	r.f->cp = FAKE_COMPLETE;
	l.deadline_ns = 0;
	ok(kfd_run(r.q, &l, NULL, &r.e), "which works");
	kfd_close(r.dev);
}

static void test_lost_interrupt(void)
{
	struct kfd_queue_opts o = { .spin_ns = 1 };
	struct rig r = rig(FAKE_SILENT, &o);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);

	ok(kfd_run(r.q, &l, NULL, &r.e), "a lost interrupt loses nothing");
	kfd_close(r.dev);
}

static void test_event_age(void)
{
	static const unsigned minors[] = { 13, 14 };

	for (int i = 0; i < 2; i++) {
		struct fake *f = fake_new();
		struct rig r = { .f = f };
		struct kfd_raw_desc d = raw("k", 12);
		uint32_t args[3] = { 0 };

		f->minor = minors[i];
		f->cp = FAKE_HANG;
		kfd_open_driver(&r.dev, &f->drv, -1, "t", &r.e);
		kfd_queue_new(r.dev, NULL, &r.q, &r.e);
		kfd_code_raw(r.dev, &endpgm, 4, &d, &r.k, &r.e);
		struct kfd_launch l = launch(&r, args, 20);
		kfd_run(r.q, &l, NULL, &r.e);
		const struct fake_call *w = fake_call(f, KFD_NR_WAIT_EVENTS, 0);
		is_u64(w->age, minors[i] >= 14, "KFD 1.%u: age in the wait",
		       minors[i]);
		is_u64(w->wait.num_events, 4,
		       "KFD 1.%u: all error events are watched", minors[i]);
		is_u64(w->wait.wait_for_all, 0, "KFD 1.%u: any of them",
		       minors[i]);
		ok(w->wait.timeout <= 21,
		   "KFD 1.%u: no sleep past the "
		   "deadline (%u ms)",
		   minors[i], w->wait.timeout);
		kfd_close(r.dev);
	}
}

static void test_interrupted_wait(void)
{
	struct kfd_queue_opts o = { .spin_ns = 1 };
	struct rig r = rig(FAKE_LAZY, &o);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);

	r.f->inject.nr = KFD_NR_WAIT_EVENTS;
	r.f->inject.err = EINTR;
	r.f->inject.times = 5;
	ok(kfd_run(r.q, &l, NULL, &r.e), "EINTR in a wait is repeated");
	r.f->inject.err = EIO;
	r.f->inject.times = 1;
	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "EIO in a wait is a device error");
	kfd_close(r.dev);
}

static void test_memory_fault(void)
{
	struct rig r = rig(FAKE_FAULT, NULL);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);
	struct kfd_mem *m;

	kfd_mem_alloc(r.dev, KFD_VRAM, 4096, "victim", &m, &r.e);
	r.f->fault_va = m->va + 4096;
	uint64_t start = time_mono_ns();
	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "a memory fault is a device error");
	ok(time_mono_ns() - start < 3000 * MS, "long before the deadline");
	diag("%s", r.e.msg);
	has_str(r.e.msg, "page not present", "the reason");
	has_str(r.e.msg, "0 bytes past the end of 'victim' (VRAM",
		"the nearest allocation");
	has_str(r.e.msg, "kernel 'probe_me', packet 0 of queue 0",
		"kernel and packet");
	is_u64((uint64_t)err_exit_code(&r.e), 3, "a fault exits 3");
	ok(kfd_lost(r.dev, NULL), "the device is lost");
	struct err e2 = { 0 };
	ok(!kfd_run(r.q, &l, NULL, &e2) && e2.code == ERR_DEVICE,
	   "later calls say so at once");
	has_str(e2.msg, "lost before", "in their words");
	has_str(e2.msg, "victim", "with the reason");
	kfd_close(r.dev);
}

static void test_reset(void)
{
	struct rig r = rig(FAKE_RESET, NULL);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);

	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "a reset is a device error");
	has_str(r.e.msg, "the GPU was reset (hang", "reset and cause");
	has_str(r.e.msg, "memory are lost", "memory lost");
	ok(kfd_lost(r.dev, NULL), "the device is lost by it");
	kfd_close(r.dev);
}

static void test_queue_errors(enum fake_cp cp, const char *reason)
{
	struct rig r = rig(cp, NULL);
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);
	struct kfd_queue *other;

	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_DEVICE,
	   "%s: a device error", reason);
	has_str(r.e.msg, reason, "%s: named", reason);
	has_str(r.e.msg, "kernel 'probe_me', packet 0", "%s: the packet",
		reason);
	ok(!kfd_lost(r.dev, NULL), "%s: the device lives", reason);
	struct err e2 = { 0 };
	ok(!kfd_submit(r.q, &l, NULL, &e2) && e2.code == ERR_DEVICE,
	   "%s: the queue is dead", reason);
	r.f->cp = FAKE_COMPLETE;
	r.e = (struct err){ 0 };
	ok(kfd_queue_new(r.dev, NULL, &other, &r.e) &&
		   kfd_run(other, &l, NULL, &r.e),
	   "%s: another queue works (%s)", reason, r.e.msg);
	kfd_close(r.dev);
}

static void refuse(struct rig *r, struct kfd_launch l, const char *part,
		   const char *name)
{
	struct err e = { 0 };

	ok(!kfd_launch_check(r->q, &l, &e) && e.code == ERR_USAGE,
	   "%s: refused", name);
	has_str(e.msg, part, "%s: says why", name);
	has_str(e.msg, "probe_me", "%s: names the kernel", name);
}

static void test_checks(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	uint32_t args[3] = { 0 };
	const struct kfd_launch good = launch(&r, args, 1000);
	struct kfd_launch l = good;

	ok(kfd_launch_check(r.q, &good, &r.e), "the good launch passes");
	l.wg[0] = 1025;
	refuse(&r, l, "1024 work-items", "too many work-items");
	l = good;
	l.wg[0] = l.wg[1] = 65536;
	refuse(&r, l, "1024 work-items", "work-items that overflow");
	l = good;
	l.dyn_lds_bytes = 65537;
	refuse(&r, l, "65536", "too much LDS");
	l.dyn_lds_bytes = UINT32_MAX;
	refuse(&r, l, "65536", "absurd LDS");
	l = good;
	l.args_bytes = 8;
	refuse(&r, l, "the kernel takes 12", "too few argument bytes");
	l = good;
	l.args = NULL;
	refuse(&r, l, "takes 12 bytes", "no arguments");
	/*
	 * 256 VGPRs are 264 in steps of 24: 5 waves on a SIMD of 1536.  A
	 * workgroup of 1024 in CU mode has 16 waves on each of 2 SIMDs; in
	 * WGP mode 8 on each of 4; 640 work-items in WGP mode are 5 on each.
	 */
	struct kfd_raw_desc d = raw("probe_me", 12);
	d.rsrc1 = (d.rsrc1 & ~0x3fu) | 31;
	kfd_code_raw(r.dev, &endpgm, 4, &d, &r.k, &r.e);
	l = launch(&r, args, 1000);
	is_u64(r.k->vgprs, 256, "256 VGPRs from rsrc1");
	l.wg[0] = 1024;
	refuse(&r, l, "VGPRs", "16 waves of 256 VGPRs");
	ok(r.k->wgp_mode, "rsrc1 0x60af0000 is in WGP mode");
	l.wg[0] = 640;
	ok(kfd_launch_check(r.q, &l, &r.e), "640 fit in WGP mode");
	l.wg[0] = 672;
	refuse(&r, l, "VGPRs", "21 waves do not");
	kfd_close(r.dev);
}

/* kfd-abi 7.5's example: 164 bytes per lane on a 96-CU card. */
static void test_scratch(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	struct kfd_raw_desc d = raw("spills", 0);
	struct kfd_launch l = { .wg = { 32 }, .grid = { 32 } };

	d.private_bytes = 164;
	kfd_code_raw(r.dev, &endpgm, 4, &d, &l.kernel, &r.e);
	r.f->n_log = 0;
	ok(kfd_run(r.q, &l, NULL, &r.e), "a kernel with scratch runs");
	const struct kfd_ioc_alloc_memory *a =
		&fake_call(r.f, KFD_NR_ALLOC_MEMORY_OF_GPU, 0)->alloc;
	is_u64(a->size, 16515072, "scratch for every slot");
	is_u64(a->flags, 0x90000001, "scratch is VRAM, not executable");
	const struct amd_queue *aq =
		(void *)(uintptr_t)(r.f->queue[0].q.rptr_addr - 0x80);
	is_u64(aq->compute_tmpring_size & 0xfff, 512, "waves per engine");
	is_u64(aq->compute_tmpring_size >> 12, 21, "256-byte units per wave");
	is_u64(aq->scratch_backing_memory_location, a->va_addr, "location");
	is_u64(aq->scratch_backing_memory_byte_size, 16515072, "size");
	is_u64(aq->scratch_wave64_lane_byte_size, 84, "bytes of a wave / 64");
	is_u64(aq->scratch_resource_descriptor[3], 0x20814fac, "descriptor");
	is_u64(aq->scratch_resource_descriptor[1] >> 16, 0x4000, "swizzle");
	is_u64(r.f->last.private_segment_size, 164, "size in the packet");
	kfd_run(r.q, &l, NULL, &r.e);
	is_u64((uint64_t)fake_count(r.f, KFD_NR_ALLOC_MEMORY_OF_GPU), 1,
	       "the second run needs no more");
	d.private_bytes = 1000;
	kfd_code_raw(r.dev, &endpgm, 4, &d, &l.kernel, &r.e);
	ok(kfd_run(r.q, &l, NULL, &r.e), "scratch grows");
	is_u64((uint64_t)fake_count(r.f, KFD_NR_FREE_MEMORY_OF_GPU), 1,
	       "the old scratch is freed");
	is_u64(aq->compute_tmpring_size >> 12, 125, "1000 bytes: 125 units");
	d.private_bytes = 8387584 / 32 + 8;
	kfd_code_raw(r.dev, &endpgm, 4, &d, &l.kernel, &r.e);
	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_INPUT,
	   "more than a wave may have is refused");
	kfd_close(r.dev);
}

/* Growing scratch waits for what is running. */
static void test_scratch_waits(void)
{
	struct rig r = rig(FAKE_LAZY, NULL);
	struct kfd_raw_desc d = raw("spills", 0);
	struct kfd_launch big = { .wg = { 32 }, .grid = { 32 } };
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 5000);

	d.private_bytes = 64;
	kfd_code_raw(r.dev, &endpgm, 4, &d, &big.kernel, &r.e);
	for (int i = 0; i < 5; i++)
		kfd_submit(r.q, &l, NULL, &r.e);
	is_u64(r.f->n_seen, 0, "nothing has run yet");
	ok(kfd_submit(r.q, &big, NULL, &r.e), "a spilling kernel is sent");
	is_u64(r.f->n_seen, 5, "after those before it have run");
	kfd_close(r.dev);
}

static void test_code_addresses(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	struct kfd_raw_desc d = raw("k", 0);
	static uint8_t big[600000];
	uint64_t at[50];
	unsigned again = 0;

	for (size_t i = 0; i < sizeof(big); i += 4)
		memcpy(big + i, &endpgm, 4);
	for (int i = 0; i < 50; i++) {
		const struct kfd_kernel *k;
		kfd_code_raw(r.dev, big, sizeof(big), &d, &k, &r.e);
		at[i] = k->entry_va;
		kfd_code_unload(k->code);
		for (int j = 0; j < i; j++)
			again += at[j] < at[i] + sizeof(big) &&
				 at[i] < at[j] + sizeof(big);
	}
	is_u64(again, 0, "50 loads and unloads: no address twice");
	ok(kfd_mem_live_bytes(r.dev) < 70u << 20,
	   "unloaded code gives its memory back");
	ok(!kfd_code_raw(r.dev, big, 6, &d, &r.k, &r.e) &&
		   r.e.code == ERR_USAGE,
	   "half an instruction is refused");
	kfd_close(r.dev);
}

static void test_signals(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	struct kfd_signal *s[100];
	uint32_t args[3] = { 0 };
	struct kfd_launch l = launch(&r, args, 1000);
	uint64_t ticket;
	bool apart = true;

	for (int i = 0; i < 100; i++) {
		kfd_signal_new(r.dev, i, &s[i], &r.e);
		for (int j = 0; j < i; j++)
			apart &= s[i]->va != s[j]->va;
	}
	ok(apart, "100 signals are apart");
	is_i64(kfd_signal_value(s[42]), 42, "a signal has its value");
	l.done = s[1];
	ok(kfd_submit(r.q, &l, &ticket, &r.e) &&
		   kfd_signal_wait(s[1], l.deadline_ns, &r.e) &&
		   kfd_wait(r.q, ticket, 0, NULL, &r.e),
	   "a launch completes the caller's signal");
	is_i64(kfd_signal_value(s[1]), 0, "by counting it down");
	ok(!kfd_signal_wait(s[5], time_mono_ns() + 20 * MS, &r.e) &&
		   r.e.code == ERR_TIMEOUT,
	   "a signal nobody completes times out");
	r.e = (struct err){ 0 };
	ok(kfd_barrier(r.q, (struct kfd_signal *[]){ s[0] }, 1, &ticket, &r.e),
	   "a barrier packet is sent");
	ok(kfd_wait(r.q, ticket, 0, NULL, &r.e), "and waited for");
	ok(!kfd_barrier(r.q, s, 6, NULL, &r.e), "6 dependencies are refused");
	ok(!kfd_wait(r.q, 999, 0, NULL, &r.e), "so is an unknown ticket");
	kfd_signal_free(s[3]);
	kfd_signal_free(NULL);
	kfd_close(r.dev); /* frees the other 99 */
}

static void test_bad_objects(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	struct kfd_code *c;
	uint8_t junk[256] = "\177ELF junk";

	ok(!kfd_code_load(r.dev, junk, 0, &c, &r.e) && !c, "an empty object");
	r.e = (struct err){ 0 };
	ok(!kfd_code_load(r.dev, junk, sizeof(junk), &c, &r.e) && !c,
	   "a broken object is refused");
	is_u64((uint64_t)err_exit_code(&r.e), 2, "with exit code 2");
	const struct kfd_kernel *k;
	r.e = (struct err){ 0 };
	ok(!kfd_code_kernel(r.k->code, "nope", &k, &r.e) && !k,
	   "an unknown kernel");
	has_str(r.e.msg, "probe_me", "the known one is named");
	kfd_close(r.dev);
}

static uint16_t at16(const void *p, unsigned offset)
{
	uint16_t v;

	memcpy(&v, (const char *)p + offset, 2);
	return v;
}

static uint32_t at32(const void *p, unsigned offset)
{
	return at16(p, offset) | (uint32_t)at16(p, offset + 2) << 16;
}

/* tests/data/kernels/saxpy.cl, compiled: float, pointer, pointer, uint. */
static void test_code_object(void)
{
	struct rig r = rig(FAKE_COMPLETE, NULL);
	struct buf file = { 0 };
	struct kfd_code *c;
	const struct kfd_kernel *k;
	uint8_t args[28];

	if (!ok(file_read("tests/data/kernels/saxpy.co", 0, &file, &r.e) &&
			kfd_code_load(r.dev, file.data, file.len, &c, &r.e),
		"a compiled object loads (%s)", r.e.msg)) {
		kfd_close(r.dev);
		return;
	}
	for (size_t i = 0; i < sizeof(args); i++)
		args[i] = (uint8_t)(i + 1);
	is_u64((uint64_t)kfd_code_count(c), 1, "it has one kernel");
	ok(kfd_code_kernel(c, "saxpy.kd", &k, &r.e), "found by its symbol");
	ok(kfd_code_kernel(c, "saxpy", &k, &r.e), "and by its name");
	ok(!kfd_code_kernel(c, "saxby", &k, &r.e), "not by another");
	has_str(r.e.msg, "saxpy", "the error lists what there is");
	k = kfd_code_at(c, 0);
	is_u64(k->explicit_bytes, 28, "arguments end at 28");
	is_u64(k->kernarg_bytes, 288, "hidden ones at 288");
	is_u64(k->max_wg, 256, "at most 256 work-items");
	is_u64(k->wave_size, 32, "wave32");
	is_u64(k->entry_va % 256, 0, "the entry is aligned");
	memset(file.data, 0, file.len); /* the file need not stay */
	struct kfd_launch l = { .kernel = k,
				.grid = { 300, 5, 1 },
				.wg = { 128, 2, 1 },
				.args = args,
				.args_bytes = 28 };
	r.e = (struct err){ 0 };
	ok(kfd_run(r.q, &l, NULL, &r.e), "it is dispatched (%s)", r.e.msg);
	const char *p = (char *)(uintptr_t)r.f->last.kernarg_address;
	is_mem(p, args, 28, "explicit arguments are copied");
	is_u64(at32(p, 28), 0, "the gap is 0");
	is_u64(at32(p, 32), 2, "whole workgroups in x");
	is_u64(at32(p, 36), 2, "in y");
	is_u64(at32(p, 40), 1, "in z");
	is_u64(at16(p, 44), 128, "group size x");
	is_u64(at16(p, 46), 2, "y");
	is_u64(at16(p, 48), 1, "z");
	is_u64(at16(p, 50), 44, "remainder x");
	is_u64(at16(p, 52), 1, "remainder y");
	is_u64(at16(p, 54), 0, "remainder z");
	is_u64(at16(p, 96), 2, "grid dimensions");
	l.wg[0] = 257;
	l.wg[1] = 1;
	ok(!kfd_run(r.q, &l, NULL, &r.e) && r.e.code == ERR_USAGE,
	   "257 work-items are refused: compiled for 256");
	kfd_code_unload(c);
	buf_fini(&file);
	kfd_close(r.dev);
}

/* The same object on a gfx1101. */
static void test_other_chip(void)
{
	struct rig r = { .f = fake_new() };
	struct buf file = { 0 };
	struct kfd_code *c;

	fake_gpu(r.f, 1, FAKE_GPU, 110001, 60, 6);
	kfd_open_driver(&r.dev, &r.f->drv, -1, "test", &r.e);
	file_read("tests/data/kernels/saxpy.co", 0, &file, &r.e);
	ok(!kfd_code_load(r.dev, file.data, file.len, &c, &r.e) &&
		   r.e.code == ERR_INPUT,
	   "an object for another chip is refused");
	has_str(r.e.msg, "is for gfx1100, the device is gfx1101",
		"both chips are named");
	buf_fini(&file);
	kfd_close(r.dev);
}

int main(void)
{
	test_packet();
	test_descriptor();
	test_rings(FAKE_COMPLETE, false, "at once");
	test_rings(FAKE_LAZY, false, "one by one");
	test_rings(FAKE_LAZY, true, "quiet");
	test_chain();
	test_overtaken();
	test_no_straddling();
	test_not_by_read_index();
	test_lost_interrupt();
	test_event_age();
	test_interrupted_wait();
	test_memory_fault();
	test_reset();
	test_queue_errors(FAKE_ILLEGAL, "an illegal instruction");
	test_queue_errors(FAKE_INACTIVE, "workgroup too large");
	test_checks();
	test_scratch();
	test_scratch_waits();
	test_code_addresses();
	test_signals();
	test_bad_objects();
	test_code_object();
	test_other_chip();
	return plan_done();
}
