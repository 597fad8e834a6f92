/*
 * The soft device's dispatches: what a wave begins with, how workgroups are
 * run, and what their faults look like.  The kernels are in launch.s.
 */
#include "tests/code.h"
#include "tests/soft/softdev.h"
#include "tests/still.h"

/* ----------------------------------------------------------------- rig -- */

#define OUT_BYTES (1u << 20)
#define R1_8_VGPRS 0u
#define R1_16_VGPRS 1u
#define R1_DENORMS (15u << 16)
#define WAVE32_KERNARG (AMD_PROP_WAVE32 | AMD_PROP_KERNARG_PTR)

struct rig {
	struct sd s;
	struct sd_queue q;
	struct sd_mem code, arg, out, sig;
	struct amd_kernel_descriptor *kd;
	uint64_t *kernarg;
	uint32_t *result;
	struct amd_signal *done;
	struct aql_dispatch p;
};

static struct rig rig(const struct soft_options *o)
{
	struct rig r = { .s = sd_open(o) };

	r.q = sd_queue(&r.s, 64);
	r.code = sd_alloc(&r.s, 4096, VRAM_FLAGS);
	r.arg = sd_alloc(&r.s, 4096, GTT_FLAGS);
	r.out = sd_alloc(&r.s, OUT_BYTES, VRAM_FLAGS);
	r.sig = sd_alloc(&r.s, 4096, GTT_FLAGS);
	r.kd = r.code.p;
	r.kernarg = r.arg.p;
	r.result = r.out.p;
	r.done = r.sig.p;
	r.kernarg[0] = sd_ptr(r.result);
	r.done->kind = AMD_SIGNAL_USER;
	r.done->value = 1;
	r.p = (struct aql_dispatch){
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 1, 1, 1 },
		.grid_size = { 1, 1, 1 },
		.kernel_object = sd_ptr(r.kd),
		.kernarg_address = sd_ptr(r.kernarg),
		.completion_signal = sd_ptr(r.done),
	};
	return r;
}

static void rig_end(struct rig *r)
{
	sd_queue_destroy(&r->s, &r->q);
	sd_queue_buffers_free(&r->s, &r->q);
	sd_free(&r->s, &r->code);
	sd_free(&r->s, &r->arg);
	sd_free(&r->s, &r->out);
	sd_free(&r->s, &r->sig);
	sd_close(&r->s);
}

/* Empty the instruction caches, as whoever overwrites code must. */
static void invalidate(struct rig *r)
{
	uint32_t *dw = (uint32_t *)r->arg.p + 512;
	const struct aql_pm4_ib p = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_PM4_IB,
		.ib_jump_cmd = { PM4_TYPE3(PM4_INDIRECT_BUFFER, 3),
				 (uint32_t)sd_ptr(dw),
				 (uint32_t)(sd_ptr(dw) >> 32), 8 },
		.dw_cnt_remain = 10,
	};

	dw[0] = PM4_TYPE3(PM4_ACQUIRE_MEM, 7);
	sd_submit(&r->s, &r->q, &p);
}

/* Put code and a descriptor for it in place; the id of X is in s15. */
static void load_bytes(struct rig *r, const uint32_t *code, size_t bytes)
{
	memset(r->kd, 0, sizeof(*r->kd));
	memcpy((uint8_t *)r->code.p + 256, code, bytes);
	r->kd->kernel_code_entry_byte_offset = 256;
	r->kd->kernel_code_properties = WAVE32_KERNARG;
	r->kd->compute_pgm_rsrc1 = R1_16_VGPRS | R1_DENORMS |
				   AMD_RSRC1_WGP_MODE;
	r->kd->compute_pgm_rsrc2 = 15u << 1 | AMD_RSRC2_WORKGROUP_ID_X;
	invalidate(r);
}
/* A kernel of launch.s. */
static void load(struct rig *r, const char *label)
{
	struct code c = code_of("tests/soft/launch.s", label);

	load_bytes(r, c.dw, c.size_bytes);
}

/* Does the dispatch complete?  A queue that faulted is not waited for. */
static bool run(struct rig *r)
{
	struct soft_fault before = { 0 }, f = { 0 };

	soft_last_fault(r->s.d, &before);
	__atomic_store_n(&r->done->value, 1, __ATOMIC_RELEASE);
	sd_submit(&r->s, &r->q, &r->p);
	for (int i = 0; i < 200; i++) {
		if (sd_wait_value(r->done, 0, 100))
			return true;
		soft_last_fault(r->s.d, &f);
		if (f.count != before.count) {
			diag("%s", f.text);
			return false;
		}
	}
	return false;
}

/* -------------------------------------------------------------- state -- */

/* The packed ids of every work-item of a grid, also in partial workgroups. */
static void ids(struct rig *r, const uint32_t grid[3], const uint16_t wg[3],
		const char *name)
{
	uint32_t n[3], bad = 0, seen = 0;

	for (int i = 0; i < 3; i++) {
		r->p.grid_size[i] = grid[i];
		r->p.workgroup_size[i] = wg[i];
		n[i] = (grid[i] + wg[i] - 1) / wg[i];
	}
	load(r, "state");
	r->kd->compute_pgm_rsrc2 = 13u << 1 | 7u << 7 | 2u << 11;
	((uint32_t *)r->kernarg)[2] = n[0];
	((uint32_t *)r->kernarg)[3] = n[1];
	((uint32_t *)r->kernarg)[4] = wg[0] * wg[1] * wg[2];
	((uint32_t *)r->kernarg)[6] = wg[0];
	((uint32_t *)r->kernarg)[7] = wg[0] * wg[1];
	r->p.setup = 3;
	memset(r->result, 0xff, OUT_BYTES);
	ok(run(r), "%s: completes", name);
	for (uint32_t z = 0; z < grid[2]; z++)
		for (uint32_t y = 0; y < grid[1]; y++)
			for (uint32_t x = 0; x < grid[0]; x++) {
				const uint32_t g = (z / wg[2] * n[1] +
						    y / wg[1]) * n[0] +
						   x / wg[0];
				const uint32_t lx = x % wg[0], ly = y % wg[1],
					       lz = z % wg[2];
				const uint32_t at =
					g * wg[0] * wg[1] * wg[2] + lx +
					wg[0] * (ly + wg[1] * lz);

				bad += r->result[at] !=
				       (lx | ly << 10 | lz << 20);
			}
	is_u64(bad, 0, "%s: every work-item has its ids", name);
	for (uint32_t i = 0; i < OUT_BYTES / 4; i++)
		seen += r->result[i] != UINT32_MAX;
	is_u64(seen, grid[0] * grid[1] * grid[2], "%s: and no other ran", name);
}

static void test_ids(struct rig *r)
{
	ids(r, (const uint32_t[]){ 100, 1, 1 }, (const uint16_t[]){ 64, 1, 1 },
	    "100 in groups of 64");
	ids(r, (const uint32_t[]){ 13, 7, 5 }, (const uint16_t[]){ 8, 4, 2 },
	    "13x7x5 in groups of 8x4x2");
	ids(r, (const uint32_t[]){ 3000, 1, 1 }, (const uint16_t[]){ 3, 1, 1 },
	    "1000 groups of 3");
	ids(r, (const uint32_t[]){ 33, 31, 1 },
	    (const uint16_t[]){ 32, 32, 1 }, "one full group of 1024");
}

static void test_registers(struct rig *r)
{
	const uint32_t *o = r->result;
	uint64_t packet, index;

	load(r, "sgprs");
	r->kd->kernel_code_properties =
		AMD_PROP_WAVE32 | AMD_PROP_DISPATCH_PTR | AMD_PROP_QUEUE_PTR |
		AMD_PROP_KERNARG_PTR | AMD_PROP_DISPATCH_ID |
		AMD_PROP_PRIVATE_SEGMENT_SIZE;
	r->kd->compute_pgm_rsrc1 |= AMD_RSRC1_DX10_CLAMP | AMD_RSRC1_IEEE_MODE;
	r->kd->compute_pgm_rsrc1 &= ~R1_DENORMS;
	r->kd->compute_pgm_rsrc1 |= 1u << 12 | 2u << 14 | 3u << 16;
	r->kd->compute_pgm_rsrc2 |= AMD_RSRC2_WORKGROUP_INFO;
	r->p.setup = 1;
	memcpy(r->p.grid_size, (uint32_t[]){ 20, 1, 1 }, 12);
	memcpy(r->p.workgroup_size, (uint16_t[]){ 20, 1, 1 }, 6);
	index = r->q.next;
	packet = sd_ptr(r->q.ring + index % 64 * 64);
	ok(run(r), "a kernel that asks for everything completes");
	is_u64(o[0] | (uint64_t)o[1] << 32, packet, "s[0:1] is the packet");
	is_u64(o[2] | (uint64_t)o[3] << 32, sd_ptr(r->q.q),
	       "s[2:3] is the queue");
	is_u64(o[4] | (uint64_t)o[5] << 32, sd_ptr(r->kernarg),
	       "s[4:5] is the kernarg segment");
	is_u64(o[6] | (uint64_t)o[7] << 32, index,
	       "s[6:7] is the packet index");
	is_u64(o[8], 0, "s8 is the private segment size");
	is_u64(o[9], 0, "s15, behind the padding, is the workgroup id");
	is_u64(o[10], 0xfffff, "EXEC has the 20 work-items");
	is_u64(o[11], 0x339, "MODE comes from the descriptor");
	is_u64(o[12], 20, "the packet can be read through its pointer");
	is_u64(o[13], 0x80000001, "workgroup info: first wave, one wave");
}

static void test_wave64(struct rig *r)
{
	uint32_t bad = 0;

	load(r, "wave64");
	r->kd->kernel_code_properties = AMD_PROP_KERNARG_PTR;
	r->kd->compute_pgm_rsrc2 = 2u << 1 | AMD_RSRC2_WORKGROUP_ID_X;
	memcpy(r->p.grid_size, (uint32_t[]){ 40, 1, 1 }, 12);
	memcpy(r->p.workgroup_size, (uint16_t[]){ 64, 1, 1 }, 6);
	memset(r->result, 0xff, 4096);
	ok(run(r), "a wave64 kernel completes");
	for (uint32_t i = 0; i < 64; i++)
		bad += r->result[i] != (i < 40 ? i : UINT32_MAX);
	is_u64(bad, 0, "40 of its 64 lanes ran, the id being in s2");
	is_u64(r->result[256], 0xff, "the high half of EXEC has eight lanes");
}

/* ---------------------------------------------------- LDS and scratch -- */

static void test_lds(struct rig *r)
{
	uint32_t bad = 0;

	load(r, "lds");
	memcpy(r->p.grid_size, (uint32_t[]){ 256, 1, 1 }, 12);
	memcpy(r->p.workgroup_size, (uint16_t[]){ 256, 1, 1 }, 6);
	r->p.group_segment_size = 1024;
	ok(run(r), "eight waves exchange through LDS");
	for (uint32_t i = 0; i < 256; i++)
		bad += r->result[i] != 3 * (255 - i);
	is_u64(bad, 0, "the barrier holds until all have written");
	r->p.group_segment_size = 0;
}

/* Too little scratch: the CP asks, the host grows it, the packet goes on. */
static void test_scratch(struct rig *r)
{
	struct sd_mem m = sd_alloc(&r->s, 168 * 32 * 12, VRAM_FLAGS);
	struct amd_queue *q = r->q.q;
	uint32_t bad = 0;

	load(r, "scratch");
	r->kd->compute_pgm_rsrc2 |= AMD_RSRC2_PRIVATE_SEGMENT;
	r->p.private_segment_size = 164;
	memcpy(r->p.grid_size, (uint32_t[]){ 256, 1, 1 }, 12);
	memcpy(r->p.workgroup_size, (uint16_t[]){ 64, 1, 1 }, 6);
	__atomic_store_n(&r->done->value, 1, __ATOMIC_RELEASE);
	sd_submit(&r->s, &r->q, &r->p);
	ok(sd_wait_value(r->q.inactive, 0x400, 5000),
	   "without scratch a wave32 kernel asks with code 0x400");
	is_i64(r->done->value, 1, "and waits");
	q->scratch_backing_memory_location = sd_ptr(m.p);
	q->scratch_backing_memory_byte_size = m.size;
	q->scratch_wave64_lane_byte_size = 168 * 32 / 64;
	q->compute_tmpring_size = AMD_TMPRING(2, 21);
	__atomic_store_n(&r->q.inactive->value, 0, __ATOMIC_RELEASE);
	ok(sd_wait_value(r->done, 0, 20000), "then it runs");
	/* All four workgroups store the same to the same place. */
	for (uint32_t i = 0; i < 64; i++)
		bad += r->result[i] != i + 7;
	is_u64(bad, 0, "every lane has scratch of its own");
	r->p.private_segment_size = 0;
	sd_free(&r->s, &m);
}

/* -------------------------------------------------- order and progress -- */

/* One thread must not stick to a workgroup that waits for another. */
static void test_dependent_groups(void)
{
	const struct soft_options o = { .deterministic = true };
	struct rig r = rig(&o);

	load(&r, "wait");
	r.p.grid_size[0] = 2;
	ok(run(&r), "workgroup 0 may wait for workgroup 1");
	rig_end(&r);
}

/*
 * All workgroups but the last wait for it: does it get in?  Under a sanitizer
 * that takes seconds, so only those that do not are given up soon.
 */
static bool wait_for_last(uint32_t groups, uint32_t lds_bytes, bool wgp,
			  uint64_t deadline_ns)
{
	const struct soft_options o = { .deadline_ns = deadline_ns };
	struct rig r = rig(&o);
	const struct code wait = code_of("tests/soft/launch.s", "wait");
	char last[32];
	uint32_t code[64];
	bool good;

	memcpy(code, wait.dw, wait.size_bytes);
	snprintf(last, sizeof(last), "s_cmpk_lg_u32 s15, %u", groups - 1);
	code_lines(last, 32, &code[5], 1); /* for s_cmp_eq_u32 s15, 0 */
	load_bytes(&r, code, wait.size_bytes);
	if (!wgp)
		r.kd->compute_pgm_rsrc1 &= ~AMD_RSRC1_WGP_MODE;
	r.p.grid_size[0] = groups;
	r.p.group_segment_size = lds_bytes;
	good = run(&r);
	rig_end(&r);
	return good;
}

#define SOON_NS 1000000000u
/* 96 CUs with 64 KiB of LDS each; in WGP mode 48 pairs with 128 KiB. */
static void test_resident(void)
{
	ok(wait_for_last(96, 40960, false, 0), "40 KiB of LDS: 96 in CU mode");
	ok(!wait_for_last(97, 40960, false, SOON_NS), "... and no more");
	ok(wait_for_last(144, 40960, true, 0), "144 in WGP mode");
	ok(!wait_for_last(145, 40960, true, SOON_NS), "... and no more");
}

/* Waits until the packet behind that of load() is in work. */
static bool has_begun(const struct rig *r)
{
	bool moved = false;

	for (int i = 0; i < 5000 && !moved; i++) {
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		moved = __atomic_load_n(&r->q.q->read_dispatch_id,
					__ATOMIC_ACQUIRE) == 2;
	}
	return moved;
}

static void test_read_index(void)
{
	const struct soft_options o = { .threads = 2 };
	struct rig r = rig(&o);

	load(&r, "endless");
	sd_submit(&r.s, &r.q, &r.p);
	ok(has_begun(&r) && r.done->value == 1,
	   "the read index moves on before the kernel has ended");
	is_i64(sd_queue_destroy(&r.s, &r.q), 0,
	       "a queue with an endless kernel can be destroyed");
	is_i64(r.done->value, 1, "its signal never completes");
	is_i64(sd_queue_create(&r.s, &r.q), 0, "and another queue be made");
	rig_end(&r);
}

/* Does the count come to stand, or does it go on?  Seconds are for slow hosts:
 * what was begun is run to the end of its slice. */
static bool comes_to(const uint32_t *count, bool stand)
{
	uint32_t before = __atomic_load_n(count, __ATOMIC_ACQUIRE), now;

	for (int i = 0; i < 500; i++, before = now) {
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
		now = __atomic_load_n(count, __ATOMIC_ACQUIRE);
		if ((now == before) == stand)
			return true;
	}
	return false;
}

/* What a card does by saving waves: taken from it and put back, again and
 * again, a kernel neither goes on meanwhile nor loses anything. */
static void test_preempted(void)
{
	const struct soft_options o = { .threads = 2,
					.deadline_ns = 300000000 };
	struct rig r = rig(&o);
	struct kfd_ioc_update_queue u = { .queue_id = r.q.a.queue_id,
					  .priority = 7 };
	uint32_t stood = 0, went = 0, wrong = 0;

	load(&r, "persistent");
	memset(r.result, 0, OUT_BYTES);
	r.p.workgroup_size[0] = 256;
	r.p.grid_size[0] = 256;
	r.p.group_segment_size = 1024;
	r.done->value = 1;
	sd_submit(&r.s, &r.q, &r.p);
	for (int i = 0; i < 20; i++) {
		went += comes_to(&r.result[1], false);
		u.ring_size = u.percentage = 0;
		is_i64(sd_ioctl(&r.s, KFD_IOC_UPDATE_QUEUE, &u), 0, "taken");
		stood += comes_to(&r.result[1], true);
		u.ring_base = r.q.a.ring_base;
		u.ring_size = r.q.a.ring_size;
		u.percentage = 100;
		is_i64(sd_ioctl(&r.s, KFD_IOC_UPDATE_QUEUE, &u), 0, "put back");
	}
	is_u64(stood, 20, "a kernel stands while its queue is disabled");
	is_u64(went, 20, "and goes on when it is enabled");
	__atomic_store_n(&r.result[0], 1, __ATOMIC_RELEASE);
	ok(sd_wait_value(r.done, 0, 5000), "it ends, later than a hang would");
	for (uint32_t i = 0; i < 256; i++)
		wrong += r.result[64 + i] != 6 * i;
	is_u64(wrong, 0, "no register and no LDS was lost");
	rig_end(&r);
}

/* -------------------------------------------------------------- faults -- */

static void test_illegal(void)
{
	struct rig r = rig(NULL);
	struct soft_fault f = { 0 };
	struct sd_queue second;

	load(&r, "illegal");
	sd_submit(&r.s, &r.q, &r.p);
	ok(sd_wait_value(r.q.inactive, 0x40000000, 5000),
	   "an illegal instruction gives code 0x40000000");
	ok(sd_stays(r.done, 1, 3), "the kernel does not complete");
	ok(soft_last_fault(r.s.d, &f), "there is a record");
	is_u64(f.kind, SOFT_FAULT_ILLEGAL, "of an illegal instruction");
	is_u64(f.packet, 1, "in packet 1");
	is_u64(f.kernel, sd_ptr(r.kd), "of this kernel");
	is_u64(f.pc, sd_ptr(r.kd) + 260, "at the second instruction");
	ok(f.n_words >= 1 && f.words[0] == 0xbfff0000, "with its code");
	second = sd_queue(&r.s, 64);
	sd_queue_destroy(&r.s, &r.q);
	sd_queue_buffers_free(&r.s, &r.q);
	r.q = second;
	load(&r, "store");
	ok(run(&r) && r.result[0] == 42, "other queues go on");
	rig_end(&r);
}

/* A kernel that stores to `va` must raise this MEMORY event. */
static struct kfd_memory_exception memory_event(struct rig *r)
{
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	uint32_t result;

	sd_event(&r->s, KFD_EVENT_MEMORY, false, 0, &e);
	d.event_id = e.event_id;
	sd_submit(&r->s, &r->q, &r->p);
	sd_wait_event(&r->s, &d, 5000, &result);
	is_u64(result, KFD_WAIT_COMPLETE, "the MEMORY event is set");
	return d.memory;
}

static void test_not_present(void)
{
	struct rig r = rig(NULL);
	struct kfd_memory_exception x;
	struct soft_fault f = { 0 };

	load(&r, "store");
	r.kernarg[0] = 0x7654321000 + 0x124;
	x = memory_event(&r);
	is_u64(x.va, 0x7654321000, "a store to nowhere: page address");
	ok(x.not_present && !x.read_only && !x.no_execute, "not present");
	is_u64(x.gpu_id, SOFT_GPU_ID, "and GPU");
	soft_last_fault(r.s.d, &f);
	is_u64(f.va, 0x7654321124, "the record has the exact address");
	is_u64(f.pc, sd_ptr(r.kd) + 256 + 5 * 4, "and the store's");
	ok(f.write && f.kind == SOFT_FAULT_MEMORY, "as a write");
	ok(sd_stays(r.done, 1, 3), "the kernel does not complete");
	rig_end(&r);
}

static void test_read_only(void)
{
	struct rig r = rig(NULL);
	struct sd_mem m = sd_alloc(&r.s, 4096, VRAM_FLAGS & ~KFD_MEM_WRITABLE);
	struct kfd_memory_exception x;

	load(&r, "store");
	r.kernarg[0] = sd_ptr(m.p) + 8;
	x = memory_event(&r);
	ok(x.read_only && !x.not_present && x.va == sd_ptr(m.p),
	   "a store to read-only memory says so");
	sd_free(&r.s, &m);
	rig_end(&r);
}

static void test_no_execute(void)
{
	struct rig r = rig(NULL);
	struct sd_mem m =
		sd_alloc(&r.s, 4096, VRAM_FLAGS & ~KFD_MEM_EXECUTABLE);
	struct kfd_memory_exception x;

	load(&r, "store");
	memcpy(m.p, r.code.p, 4096);
	r.p.kernel_object = sd_ptr(m.p);
	x = memory_event(&r);
	ok(x.no_execute && x.va == sd_ptr(m.p),
	   "code in memory without EXECUTABLE says so");
	sd_free(&r.s, &m);
	rig_end(&r);
}

static unsigned begun;

static void count_thread(void)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
}

/* One of the queue, and helpers. */
static void test_threads(void)
{
	const struct soft_options o = { .threads = 3 };

	soft_thread_begins = count_thread;
	struct rig r = rig(&o);
	load(&r, "endless");
	r.p.grid_size[0] = 64;
	sd_submit(&r.s, &r.q, &r.p);
	has_begun(&r);
	rig_end(&r);
	soft_thread_begins = NULL;
	is_u64(begun, 3, "each thread of the device can be told from others");
}

static void test_busy_host(void)
{
	const struct soft_options o = { .deadline_ns = 1000000000 };
	struct rig r = rig(&o);
	bool ended = false;

	load(&r, "wait");
	r.result[0] = 0;
	sd_submit(&r.s, &r.q, &r.p);
	has_begun(&r);
	stand_still(1500);
	__atomic_store_n(&r.result[0], 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 5000 && !ended; i++) {
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		ended = !__atomic_load_n(&r.done->value, __ATOMIC_ACQUIRE);
	}
	ok(ended, "time in which the host does something else is no hang");
	rig_end(&r);
}

static void test_hang(void)
{
	const struct soft_options o = { .deadline_ns = 30000000 };
	struct rig r = rig(&o);
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct soft_fault f = { 0 };
	struct kfd_ioc_acquire_vm vm = { 0, SOFT_GPU_ID };
	uint32_t result;

	load(&r, "endless");
	sd_event(&r.s, KFD_EVENT_HW_EXCEPTION, false, 0, &e);
	d.event_id = e.event_id;
	sd_submit(&r.s, &r.q, &r.p);
	sd_wait_event(&r.s, &d, 20000, &result);
	is_u64(result, KFD_WAIT_COMPLETE, "an endless kernel: HW_EXCEPTION");
	ok(d.hw.reset_cause == 0 && d.hw.memory_lost == 1 &&
	   d.hw.gpu_id == SOFT_GPU_ID, "reset after a hang, memory lost");
	soft_last_fault(r.s.d, &f);
	ok(f.kind == SOFT_FAULT_HANG && f.pc == sd_ptr(r.kd) + 256,
	   "the record says where it hangs");
	sd_queue_destroy(&r.s, &r.q);
	is_i64(sd_queue_create(&r.s, &r.q), -EIO, "no new queue after a reset");
	r.s.d->close(r.s.d, r.s.kfd);
	r.s.kfd = r.s.d->open(r.s.d, "/dev/kfd", O_RDWR);
	vm.drm_fd = (uint32_t)r.s.drm;
	sd_ioctl(&r.s, KFD_IOC_ACQUIRE_VM, &vm);
	r.q = sd_queue(&r.s, 64);
	ok(true, "but after opening the device again");
	sd_close(&r.s);
}

/* ------------------------------------------------------------ refusals -- */

static void refused(int64_t code, const char *name, void (*spoil)(struct rig *))
{
	struct rig r = rig(NULL);
	struct soft_fault f = { 0 };

	load(&r, "store");
	spoil(&r);
	sd_submit(&r.s, &r.q, &r.p);
	ok(sd_wait_value(r.q.inactive, code, 5000), "%s: code 0x%llx", name,
	   (unsigned long long)code);
	ok(soft_last_fault(r.s.d, &f) && f.kind == SOFT_FAULT_PACKET &&
	   f.kernel == r.p.kernel_object, "%s: the record names the kernel",
	   name);
	rig_end(&r);
}

static void spoil_vgprs(struct rig *r)
{
	/* 1024 lanes of wave32 on one CU: 16 waves a SIMD, 96 VGPRs each. */
	r->kd->compute_pgm_rsrc1 = 12; /* 104 */
	r->p.workgroup_size[0] = r->p.grid_size[0] = 1024;
}

static void spoil_many_vgprs(struct rig *r)
{
	r->kd->compute_pgm_rsrc1 = 32; /* 264 */
}

static void spoil_align(struct rig *r)
{
	r->p.kernel_object += 8;
}

static void spoil_entry(struct rig *r)
{
	r->kd->kernel_code_entry_byte_offset = 260;
}

static void test_fits(void)
{
	struct rig r = rig(NULL);

	load(&r, "store");
	r.kd->compute_pgm_rsrc1 = 11; /* 96 VGPRs: exactly 16 waves a SIMD */
	r.p.workgroup_size[0] = r.p.grid_size[0] = 1024;
	ok(run(&r), "1024 work-items with 96 VGPRs just fit a CU");
	rig_end(&r);
}

/* PRIV of a descriptor is the packet processor's to fill in. */
static void test_priv(void)
{
	struct rig r = rig(NULL);

	load(&r, "status");
	r.kd->compute_pgm_rsrc1 |= AMD_RSRC1_PRIV;
	r.p.workgroup_size[0] = r.p.grid_size[0] = 32;
	ok(run(&r), "a descriptor with PRIV set runs");
	is_u64(r.result[0], 0, "and is not privileged");
	rig_end(&r);
}

/* More workgroups than 64 bits count: they do not become few, or none. */
static void test_endless_grids(void)
{
	static const uint32_t grid[][3] = {
		{ 0x80000000, 0x80000000, 4 },		  /* 2^64 */
		{ 0xffffffff, 0xffffffff, 0xffffffff },	  /* 2^96 - ... */
		{ 0x80000000, 0x80000000, 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(grid); i++) {
		struct rig r = rig(NULL);
		struct kfd_ioc_destroy_queue a = { r.q.a.queue_id, 0 };

		load(&r, "nothing");
		memcpy(r.p.grid_size, grid[i], sizeof(grid[i]));
		r.p.setup = 3;
		sd_submit(&r.s, &r.q, &r.p);
		ok(sd_stays(r.done, 1, 30), "a grid without end, %zu, does "
		   "not complete", i);
		is_i64(sd_ioctl(&r.s, KFD_IOC_DESTROY_QUEUE, &a), 0,
		       "grid %zu ends with its queue", i);
		sd_queue_buffers_free(&r.s, &r.q);
		sd_close(&r.s);
	}
}

int main(void)
{
	struct rig r = rig(NULL);

	test_ids(&r);
	test_registers(&r);
	test_wave64(&r);
	test_lds(&r);
	test_scratch(&r);
	rig_end(&r);
	test_dependent_groups();
	test_resident();
	test_read_index();
	test_preempted();
	test_illegal();
	test_not_present();
	test_read_only();
	test_no_execute();
	test_threads();
	test_busy_host();
	test_hang();
	refused(0x80, "too many VGPRs for the workgroup", spoil_vgprs);
	refused(0x80, "more than 256 VGPRs", spoil_many_vgprs);
	refused(8, "a descriptor that is not aligned", spoil_align);
	refused(8, "an entry point that is not aligned", spoil_entry);
	test_fits();
	test_priv();
	test_endless_grids();
	return plan_done();
}
