/* The soft device's queues: creation, doorbells, packets that run no code. */
#include "tests/soft/softdev.h"

static struct sd s;

/* -------------------------------------------------------- CREATE_QUEUE -- */

/* Change one 32- or 64-bit field of good arguments, and try. */
#define TRY(field, value)                        \
	({                                       \
		struct sd_queue t = q;           \
		t.a.field = (value);             \
		sd_queue_create(&s, &t);         \
	})

static void test_create(void)
{
	struct sd_queue q, a, b;
	uint32_t pct;

	sd_queue_prepare(&s, &q, 64);
	is_i64(TRY(gpu_id, 3), -EINVAL, "an unknown GPU is EINVAL");
	is_i64(TRY(type, KFD_QUEUE_SDMA_XGMI), -EINVAL,
	       "the card has no XGMI engines");
	is_i64(TRY(percentage, 101), -EINVAL, "percentage 101 is EINVAL");
	is_i64(TRY(priority, 16), -EINVAL, "priority 16 is EINVAL");
	is_i64(TRY(ring_size, 3 << 10), -EINVAL, "a ring of 3 KiB is EINVAL");
	is_i64(TRY(ring_size, 8192), -EINVAL,
	       "a ring that is not its whole mapping is EINVAL");
	is_i64(TRY(ring_size, 512), -EINVAL,
	       "less than 1 KiB is made 1 KiB, which is no mapping");
	is_i64(TRY(ring_base, 1ull << 47), -EFAULT,
	       "a ring outside user space is EFAULT");
	is_i64(TRY(rptr_addr, UINT64_MAX), -EFAULT, "rptr too");
	is_i64(TRY(wptr_addr, q.a.ring_base + 4096), -EINVAL,
	       "a write pointer outside a one-page mapping is EINVAL");
	is_i64(TRY(rptr_addr, sd_ptr(q.cwsr.p)), -EINVAL,
	       "a read pointer in a larger mapping too");
	is_i64(TRY(eop_size, 8192), -EINVAL, "an EOP size of 8192 is EINVAL");
	is_i64(TRY(eop_addr, sd_ptr(q.cwsr.p)), -EINVAL,
	       "an EOP address without its page is EINVAL");
	is_i64(TRY(ctl_stack_size, 0x8000), -EINVAL,
	       "another card's control stack size is EINVAL");
	is_i64(TRY(cwsr_size, 0x2bea000 + 4096), -EINVAL,
	       "a context save size that is off by a page is EINVAL");
	is_i64(TRY(cwsr_addr, q.a.ring_base), -EINVAL,
	       "a context save area that is not mapped is EINVAL");
	pct = 100 | 1 << 8; /* bits above the low byte mean something else */
	q.a.percentage = pct;
	is_i64(sd_queue_create(&s, &q), 0, "with all right it works");
	ok(q.a.doorbell_offset >> 62 == 3 &&
	   (q.a.doorbell_offset >> 46 & 0xffff) == SOFT_GPU_ID,
	   "the doorbell offset is an mmap cookie");
	ok((q.a.doorbell_offset & 0x1fff) != q.a.queue_id * 8,
	   "and is not simply queue id * 8");
	is_i64(sd_map(&s, q.ringm.handle, false), -EBUSY,
	       "a queue's ring cannot be unmapped");
	is_i64(sd_free_handle(&s, q.eop.handle), -EBUSY,
	       "nor its EOP buffer freed");

	a = sd_queue(&s, 64);
	b = sd_queue(&s, 64);
	ok(a.a.queue_id != b.a.queue_id && a.doorbell != b.doorbell,
	   "queues differ in id and doorbell");
	is_i64(sd_queue_destroy(&s, &q), 0, "a queue is destroyed");
	is_i64(sd_queue_destroy(&s, &q), -EINVAL, "but not twice");
	is_i64(sd_queue_buffers_free(&s, &q), 0, "then its buffers are free");
	sd_queue_destroy(&s, &a);
	sd_queue_destroy(&s, &b);
	sd_queue_buffers_free(&s, &a);
	sd_queue_buffers_free(&s, &b);
}

/* The structure of KFD 1.16 ends before sdma_engine_id. */
static void test_create_old(void)
{
	struct sd_queue q;
	struct {
		uint8_t a[88];
		uint64_t guard;
	} old;
	int ret;

	sd_queue_prepare(&s, &q, 64);
	memcpy(old.a, &q.a, 88);
	old.guard = 0x1122334455667788;
	ret = sd_ioctl(&s, KFD_REQUEST(KFD_DIR_WR, 88, 2), &old);
	is_i64(ret, 0, "CREATE_QUEUE with 88 bytes works");
	is_u64(old.guard, 0x1122334455667788, "and writes no further");
	memcpy(&q.a, old.a, 88);
	is_i64(sd_ioctl(&s, KFD_IOC_DESTROY_QUEUE,
			&(struct kfd_ioc_destroy_queue){ q.a.queue_id, 0 }),
	       0, "its queue id came back");
	sd_queue_buffers_free(&s, &q);
}

static void test_cwsr_svm(void)
{
	struct sd_queue q;
	void *area = mmap(NULL, 0x2c02000, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[2];
	} v = { { sd_ptr(area), 0x2c02000, KFD_SVM_OP_SET, 2 },
		{ { KFD_SVM_ATTR_SET_FLAGS, 0x51 },
		  { KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID } } };

	sd_queue_prepare(&s, &q, 64);
	q.a.cwsr_addr = sd_ptr(area);
	is_i64(sd_queue_create(&s, &q), -EINVAL,
	       "plain host memory is no context save area");
	sd_ioctl(&s, KFD_IOC_SVM(2), &v);
	is_i64(sd_queue_create(&s, &q), 0, "an SVM range is one");
	sd_queue_destroy(&s, &q);
	sd_queue_buffers_free(&s, &q);
	s.d->munmap(s.d, area, 0x2c02000);
}

/* ------------------------------------------------------------- packets -- */

struct bench { /* a queue and signals to play with */
	struct sd_queue q;
	struct sd_mem m;
	struct amd_signal *sig; /* [64] */
};

static struct bench bench(void)
{
	struct bench b = { .q = sd_queue(&s, 64),
			   .m = sd_alloc(&s, 4096, GTT_FLAGS) };

	b.sig = b.m.p;
	for (int i = 0; i < 64; i++) {
		b.sig[i].kind = AMD_SIGNAL_USER;
		b.sig[i].value = 1;
	}
	return b;
}

static void bench_end(struct bench *b)
{
	sd_queue_destroy(&s, &b->q);
	sd_queue_buffers_free(&s, &b->q);
	sd_free(&s, &b->m);
}

static void test_barrier_and(void)
{
	struct bench b = bench();
	struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);

	sd_submit(&s, &b.q, &p);
	ok(sd_wait_value(&b.sig[0], 0, 5000),
	   "a barrier without dependencies completes");
	is_u64(__atomic_load_n(&b.q.q->read_dispatch_id, __ATOMIC_ACQUIRE), 1,
	       "the read index moved on");
	is_u64(__atomic_load_n((uint16_t *)b.q.ring, __ATOMIC_ACQUIRE),
	       AQL_INVALID, "the packet's header is INVALID again");
	p.completion_signal = sd_ptr(&b.sig[1]);
	p.dep_signal[0] = sd_ptr(&b.sig[2]);
	p.dep_signal[4] = sd_ptr(&b.sig[3]);
	sd_submit(&s, &b.q, &p);
	ok(sd_stays(&b.sig[1], 1, 5), "barrier-and waits for both signals");
	__atomic_store_n(&b.sig[2].value, 0, __ATOMIC_RELEASE);
	ok(sd_stays(&b.sig[1], 1, 5), "one is not enough");
	__atomic_store_n(&b.sig[3].value, 0, __ATOMIC_RELEASE);
	ok(sd_wait_value(&b.sig[1], 0, 5000), "both are");
	bench_end(&b);
}

static void test_barrier_or(void)
{
	struct bench b = bench();
	struct aql_barrier p = sd_barrier(AQL_BARRIER_OR, &b.sig[0]);

	p.dep_signal[1] = sd_ptr(&b.sig[1]);
	p.dep_signal[2] = sd_ptr(&b.sig[2]);
	sd_submit(&s, &b.q, &p);
	ok(sd_stays(&b.sig[0], 1, 5), "barrier-or waits");
	__atomic_store_n(&b.sig[2].value, 0, __ATOMIC_RELEASE);
	ok(sd_wait_value(&b.sig[0], 0, 5000), "for either signal");
	p = sd_barrier(AQL_BARRIER_OR, &b.sig[3]);
	sd_submit(&s, &b.q, &p);
	ok(sd_wait_value(&b.sig[3], 0, 5000),
	   "without dependencies it completes");
	bench_end(&b);
}

static void test_barrier_value(void)
{
	struct bench b = bench();
	struct aql_barrier_value p = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_BARRIER_VALUE,
		.signal = sd_ptr(&b.sig[1]),
		.value = 0x20,
		.mask = 0xf0,
		.cond = AQL_COND_GTE,
		.completion_signal = sd_ptr(&b.sig[0]),
	};

	__atomic_store_n(&b.sig[1].value, 0x11f, __ATOMIC_RELEASE);
	sd_submit(&s, &b.q, &p);
	ok(sd_stays(&b.sig[0], 1, 5), "0x11f & 0xf0 is below 0x20: waits");
	__atomic_store_n(&b.sig[1].value, 0x120, __ATOMIC_RELEASE);
	ok(sd_wait_value(&b.sig[0], 0, 5000), "0x120 & 0xf0 is not: completes");
	bench_end(&b);
}

/* Two queues: one's completion is the other's dependency. */
static void test_two_queues(void)
{
	struct bench a = bench(), b = bench();
	struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);

	p.dep_signal[0] = sd_ptr(&a.sig[0]);
	sd_submit(&s, &b.q, &p);
	ok(sd_stays(&b.sig[0], 1, 3), "a queue waits for another");
	p = sd_barrier(AQL_BARRIER_AND, &a.sig[0]);
	sd_submit(&s, &a.q, &p);
	ok(sd_wait_value(&b.sig[0], 0, 5000), "and is let go by it");
	bench_end(&a);
	bench_end(&b);
}

/* --------------------------------------------------- doorbells and ring -- */

static void test_doorbells(void)
{
	struct bench b = bench();
	struct aql_barrier p[3];

	for (int i = 0; i < 3; i++)
		p[i] = sd_barrier(AQL_BARRIER_AND, &b.sig[i]);
	/* Two producers: the second is faster. */
	__atomic_store_n(&b.q.q->write_dispatch_id, 2, __ATOMIC_RELEASE);
	sd_put_at(&b.q, 1, &p[1]);
	s.d->ring(s.d, b.q.doorbell, 1);
	ok(sd_stays(&b.sig[1], 1, 5),
	   "a packet behind one that is not published waits");
	sd_put_at(&b.q, 0, &p[0]);
	s.d->ring(s.d, b.q.doorbell, 0);
	ok(sd_wait_value(&b.sig[1], 0, 5000),
	   "a lower doorbell value later runs both");
	is_i64(__atomic_load_n(&b.sig[0].value, __ATOMIC_ACQUIRE), 0,
	       "in order");
	bench_end(&b);
}

/* A program that knows nothing of ring() stores to its mapping. */
static void test_foreign_store(void)
{
	struct sd keep = s;
	struct bench b;
	struct aql_barrier p;

	s = sd_open(NULL);
	b = bench();
	p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);
	__atomic_store_n(&b.q.q->write_dispatch_id, 1, __ATOMIC_RELEASE);
	sd_put_at(&b.q, 0, &p);
	__atomic_store_n(b.q.doorbell, 0, __ATOMIC_RELEASE);
	ok(sd_wait_value(&b.sig[0], 0, 5000), "a bare doorbell store is seen");
	bench_end(&b);
	sd_close(&s);
	s = keep;
}

static void test_wrap(void)
{
	struct bench b = bench();
	bool good = true;

	for (int i = 0; i < 200 && good; i++) {
		struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);

		__atomic_store_n(&b.sig[0].value, 1, __ATOMIC_RELEASE);
		sd_submit(&s, &b.q, &p);
		good = sd_wait_value(&b.sig[0], 0, 5000);
	}
	ok(good, "200 packets go through a ring of 64");
	is_u64(__atomic_load_n(&b.q.q->read_dispatch_id, __ATOMIC_ACQUIRE),
	       200, "and the read index does not wrap");
	bench_end(&b);
}

static void test_suspend(void)
{
	struct bench b = bench();
	struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);
	struct kfd_ioc_update_queue u = { b.q.a.ring_base, b.q.a.queue_id,
					  b.q.a.ring_size, 0, 7 };

	is_i64(sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u), 0,
	       "percentage 0 is accepted");
	sd_submit(&s, &b.q, &p);
	ok(sd_stays(&b.sig[0], 1, 5), "a suspended queue runs nothing");
	u.percentage = 100;
	sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u);
	ok(sd_wait_value(&b.sig[0], 0, 5000), "then it goes on");
	u.percentage = 101;
	is_i64(sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u), -EINVAL,
	       "percentage 101 is EINVAL here too");
	u.percentage = 100;
	u.ring_base = sd_ptr(b.m.p) + 4096;
	is_i64(sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u), -EINVAL,
	       "a ring that is not mapped is EINVAL");
	u.queue_id = 999;
	is_i64(sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u), -EFAULT,
	       "an unknown queue is EFAULT, as the kernel has it");
	bench_end(&b);
}

/* ------------------------------------------------ completion and events -- */

static void test_timestamps(void)
{
	struct bench b = bench();
	struct kfd_ioc_get_clock_counters before = { .gpu_id = SOFT_GPU_ID };
	struct kfd_ioc_get_clock_counters after = before;
	bool ordered = true;
	uint64_t last = 0;

	sd_ioctl(&s, KFD_IOC_GET_CLOCK_COUNTERS, &before);
	for (int i = 0; i < 20; i++) {
		struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[i]);

		sd_submit(&s, &b.q, &p);
	}
	ok(sd_wait_value(&b.sig[19], 0, 5000), "twenty barriers complete");
	sd_ioctl(&s, KFD_IOC_GET_CLOCK_COUNTERS, &after);
	for (int i = 0; i < 20; i++) {
		ordered &= b.sig[i].start_ts >= last &&
			   b.sig[i].end_ts >= b.sig[i].start_ts;
		last = b.sig[i].end_ts;
	}
	ok(ordered, "their timestamps never go back");
	ok(b.sig[0].start_ts >= before.gpu_clock && last <= after.gpu_clock,
	   "and lie between two GET_CLOCK_COUNTERS");
	bench_end(&b);
}

static void test_mailbox(void)
{
	struct bench b = bench();
	struct sd_mem page = sd_alloc(&s, KFD_EVENT_PAGE_BYTES, GTT_FLAGS);
	struct kfd_ioc_create_event e;
	struct aql_barrier p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);
	struct kfd_event_data d = { .last_event_age = 1 };
	uint64_t *slot = page.p;
	uint32_t result;

	sd_event(&s, KFD_EVENT_SIGNAL, true, page.handle, &e);
	b.sig[0].event_mailbox_ptr = sd_ptr(&slot[e.event_slot_index]);
	b.sig[0].event_id = e.event_trigger_data;
	d.event_id = e.event_id;
	sd_submit(&s, &b.q, &p);
	is_i64(sd_wait_event(&s, &d, 5000, &result), 0,
	       "a completion with a mailbox");
	is_u64(result, KFD_WAIT_COMPLETE, "wakes WAIT_EVENTS");
	is_i64(__atomic_load_n(&b.sig[0].value, __ATOMIC_ACQUIRE), 0,
	       "the value was written before");
	is_u64(d.last_event_age, 2, "the event was set once");
	is_u64(__atomic_load_n(&slot[e.event_slot_index], __ATOMIC_ACQUIRE),
	       UINT64_MAX, "the kernel emptied the slot");
	bench_end(&b);
}

/* ------------------------------------------------------ vendor, refusals */

static void test_pm4(void)
{
	struct bench b = bench();
	struct sd_mem ib = sd_alloc(&s, 4096, GTT_FLAGS);
	uint32_t *dw = ib.p;
	struct aql_pm4_ib p = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_PM4_IB,
		.ib_jump_cmd = { 0xc0023f00, (uint32_t)sd_ptr(dw),
				 (uint32_t)(sd_ptr(dw) >> 32), 10 },
		.dw_cnt_remain = 10,
		.completion_signal = sd_ptr(&b.sig[0]),
	};

	dw[0] = 0xc0065800; /* ACQUIRE_MEM with seven dwords */
	dw[8] = 0xc0001000; /* NOP with one */
	sd_submit(&s, &b.q, &p);
	ok(sd_wait_value(&b.sig[0], 0, 5000),
	   "an indirect buffer with ACQUIRE_MEM and NOP runs");
	dw[8] = 0xc0003700; /* WRITE_DATA with one dword */
	p.completion_signal = sd_ptr(&b.sig[1]);
	sd_submit(&s, &b.q, &p);
	ok(sd_wait_value(b.q.inactive, 0x100, 5000),
	   "WRITE_DATA without data is refused with code 0x100");
	is_i64(b.sig[1].value, 1, "its signal is left alone");
	bench_end(&b);
	sd_free(&s, &ib);
}

/* A bad packet: the code in the inactive signal, and nothing further. */
static void refused(const void *packet, int64_t code, const char *part,
		    const char *name)
{
	struct bench b = bench();
	struct aql_barrier after = sd_barrier(AQL_BARRIER_AND, &b.sig[1]);
	struct aql_barrier first = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);
	struct soft_fault f = { 0 };

	sd_submit(&s, &b.q, &first);
	sd_submit(&s, &b.q, packet);
	sd_submit(&s, &b.q, &after);
	ok(sd_wait_value(b.q.inactive, code, 5000), "%s: code 0x%llx", name,
	   (unsigned long long)code);
	ok(sd_stays(&b.sig[1], 1, 3), "%s: the queue stops", name);
	is_i64(b.sig[0].value, 0, "%s: packets before it completed", name);
	is_u64(__atomic_load_n(&b.q.q->read_dispatch_id, __ATOMIC_ACQUIRE), 1,
	       "%s: the read index stands at it", name);
	ok(soft_last_fault(s.d, &f) && f.kind == SOFT_FAULT_PACKET &&
		   f.packet == 1 && f.queue_id == b.q.a.queue_id,
	   "%s: the record names queue and packet", name);
	has_str(f.text, part, "%s: and says why", name);
	bench_end(&b);
}

static void test_refusals(void)
{
	struct aql_dispatch d = {
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 64, 1, 1 },
		.grid_size = { 64, 1, 1 },
	};
	struct aql_dispatch t = d;
	struct aql_barrier b = sd_barrier(AQL_AGENT_DISPATCH, NULL);

	refused(&b, 0x20, "type 4", "agent dispatch");
	b = sd_barrier(77, NULL);
	refused(&b, 0x20, "type 77", "unknown type");
	b = sd_barrier(AQL_VENDOR, NULL);
	refused(&b, 0x100, "format 0", "a ring slot that was zero");
	t.setup = 0;
	refused(&t, 2, "dimensions", "no dimensions");
	t = d;
	t.grid_size[0] = 0;
	refused(&t, 2, "dimensions", "an empty grid");
	t = d;
	t.workgroup_size[1] = 2;
	refused(&t, 2, "dimensions", "a second size with one dimension");
	t = d;
	t.workgroup_size[0] = 1025;
	refused(&t, 0x40, "1025", "1025 work-items");
	t = d;
	t.group_segment_size = 65537;
	refused(&t, 4, "65537", "too much LDS");
	refused(&d, 8, "null", "no kernel");
}

/* With RUNTIME_ENABLE the program gets a mask and an event instead. */
static void test_payload(void)
{
	struct sd keep = s;
	struct kfd_ioc_runtime_enable on = { .mode_mask = 1 };
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct kfd_cwsr_header *h;
	struct aql_barrier p = sd_barrier(AQL_AGENT_DISPATCH, NULL);
	static uint64_t payload; /* plain host memory: the kernel writes it */
	struct sd_queue q;
	uint32_t result;

	s = sd_open(NULL);
	sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &on);
	sd_event(&s, KFD_EVENT_SIGNAL, true, 0, &e);
	q = sd_queue(&s, 64);
	h = q.cwsr.p;
	h->err_payload_addr = sd_ptr(&payload);
	h->err_event_id = e.event_id;
	sd_submit(&s, &q, &p);
	d.event_id = e.event_id;
	sd_wait_event(&s, &d, 5000, &result);
	is_u64(result, KFD_WAIT_COMPLETE, "the error event is set");
	is_u64(payload, 1ull << 19, "bit 19: unsupported packet");
	is_i64(q.inactive->value, 0, "the inactive signal is left alone");
	sd_queue_destroy(&s, &q);
	sd_queue_buffers_free(&s, &q);
	sd_close(&s);
	s = keep;
}

/* --------------------------------------------------------- page faults -- */

static void test_page_fault(void)
{
	struct sd keep = s;
	struct bench b, other;
	struct aql_barrier p;
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct soft_fault f;
	uint32_t result;
	const uint64_t bad = 0x123456789000;

	s = sd_open(NULL);
	b = bench();
	other = bench();
	sd_event(&s, KFD_EVENT_MEMORY, false, 0, &e);
	p = sd_barrier(AQL_BARRIER_AND, (void *)(uintptr_t)(bad + 0x40));
	sd_submit(&s, &b.q, &p);
	d.event_id = e.event_id;
	sd_wait_event(&s, &d, 5000, &result);
	is_u64(result, KFD_WAIT_COMPLETE,
	       "a bad signal address is a MEMORY event");
	ok(d.memory.not_present && !d.memory.read_only, "not present");
	is_u64(d.memory.va, bad, "with the page's address");
	is_u64(d.memory.gpu_id, SOFT_GPU_ID, "and the GPU's id");
	p = sd_barrier(AQL_BARRIER_AND, &other.sig[0]);
	sd_submit(&s, &other.q, &p);
	ok(sd_stays(&other.sig[0], 1, 5),
	   "all queues of the process are evicted");
	ok(soft_last_fault(s.d, &f) && f.kind == SOFT_FAULT_MEMORY &&
	   f.va == bad + 0x40, "the record has the exact address");
	bench_end(&b);
	bench_end(&other);
	sd_close(&s);
	s = keep;
}

/* Unmapped signal memory is gone for the GPU, at once. */
static void test_unmap(void)
{
	struct sd keep = s;
	struct bench b;
	struct aql_barrier p;
	struct soft_fault f = { 0 };

	s = sd_open(NULL);
	b = bench();
	sd_map(&s, b.m.handle, false);
	p = sd_barrier(AQL_BARRIER_AND, &b.sig[0]);
	sd_submit(&s, &b.q, &p);
	/* A busy machine gets to the packet late. */
	for (int i = 0; i < 1000 && !soft_last_fault(s.d, &f); i++)
		sd_stays(&b.sig[0], 1, 20);
	ok(sd_stays(&b.sig[0], 1, 20), "a signal that was unmapped stays");
	ok(soft_last_fault(s.d, &f) && f.va == sd_ptr(&b.sig[0]) && f.write,
	   "its write faulted");
	bench_end(&b);
	sd_close(&s);
	s = keep;
}

int main(void)
{
	s = sd_open(NULL);
	test_create();
	test_create_old();
	test_cwsr_svm();
	test_barrier_and();
	test_barrier_or();
	test_barrier_value();
	test_two_queues();
	test_doorbells();
	test_foreign_store();
	test_wrap();
	test_suspend();
	test_timestamps();
	test_mailbox();
	test_pm4();
	test_refusals();
	test_payload();
	test_page_fault();
	test_unmap();
	sd_close(&s);
	return plan_done();
}
