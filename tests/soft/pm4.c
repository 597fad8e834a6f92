/*
 * PM4: compute queues of type 0, and indirect buffers in AQL queues.
 * Packets are written out as the hardware's manuals have them.
 */
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw) - 1u) << 16 | (op) << 8)
#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
/* RELEASE_MEM: 64 bits of data, no interrupt or one after the write. */
#define DATA64 (2u << 29)
#define INTERRUPT (2u << 24)

static struct sd s;
static struct sd_mem mem; /* what the packets write to */
static volatile uint32_t *word;
static volatile uint64_t *fence;

struct pm4 {
	struct sd_queue q;
	uint64_t wptr; /* dwords */
};

static struct pm4 pm4_new(void)
{
	struct pm4 p = { 0 };

	sd_queue_prepare(&s, &p.q, 64);
	memset(p.q.ring, 0, 64 * 64);
	p.q.a.type = KFD_QUEUE_COMPUTE;
	is_i64(sd_queue_create(&s, &p.q), 0, "a PM4 queue is made");
	return p;
}

static void pm4_free(struct pm4 *p)
{
	sd_queue_destroy(&s, &p->q);
	sd_queue_buffers_free(&s, &p->q);
}

static void put(struct pm4 *p, const uint32_t *dw, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile uint32_t *)p->q.ring)[p->wptr++ % 1024] = dw[i];
}
#define PUT(p, ...) \
	put(p, (const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void ring(struct pm4 *p)
{
	__atomic_store_n(&p->q.q->write_dispatch_id, p->wptr,
			 __ATOMIC_RELEASE);
	s.d->ring(s.d, p->q.doorbell, p->wptr);
}

static void put_fence(struct pm4 *p, uint64_t value, uint32_t select,
		      uint32_t event)
{
	PUT(p, HEAD(0x49, 7), 0x514, select, LO(fence), HI(fence),
	    (uint32_t)value, (uint32_t)(value >> 32), event);
}

static bool fence_is(uint64_t wanted)
{
	const uint64_t end = time_mono_ns() + 5000000000ull;

	while (__atomic_load_n(fence, __ATOMIC_ACQUIRE) != wanted)
		if (time_mono_ns() > end)
			return false;
	return true;
}

/* The read pointer, an index into the ring, moves after what a packet does. */
static bool read_is(struct pm4 *p, uint64_t wanted)
{
	const uint64_t end = time_mono_ns() + 5000000000ull;

	while (__atomic_load_n(&p->q.q->read_dispatch_id, __ATOMIC_ACQUIRE) !=
	       wanted % 1024)
		if (time_mono_ns() > end)
			return false;
	return true;
}

static void test_writes(void)
{
	struct pm4 p = pm4_new();
	uint64_t after;

	PUT(&p, 0xffff1000); /* a NOP of one dword */
	PUT(&p, HEAD(0x10, 3), 1, 2, 3);
	PUT(&p, HEAD(0x37, 5), 5u << 8, LO(&word[3]), HI(&word[3]), 0xabcd,
	    0x1234);
	PUT(&p, HEAD(0x58, 7), 0, 0, 0, 0, 0, 0, 0); /* ACQUIRE_MEM */
	PUT(&p, HEAD(0x46, 1), 0x407);		     /* CS_PARTIAL_FLUSH */
	put_fence(&p, 0x1122334455667788, DATA64, 0);
	after = p.wptr;
	ring(&p);
	ok(fence_is(0x1122334455667788), "RELEASE_MEM stores 64 bits");
	is_u64(word[3], 0xabcd, "WRITE_DATA stored its first dword before");
	is_u64(word[4], 0x1234, "and its second one behind it");
	ok(read_is(&p, after), "the read pointer counts dwords");

	/* Around the end of the ring, 1024 dwords long, in many bits. */
	for (unsigned i = 0; i < 300; i++)
		PUT(&p, HEAD(0x10, 2), i, i);
	ring(&p);
	ok(read_is(&p, after + 900), "NOPs are read");
	put_fence(&p, 77, DATA64, 0);
	for (unsigned i = 0; i < 40; i++)
		PUT(&p, HEAD(0x10, 2), i, i);
	put_fence(&p, 78, DATA64, 0);
	ring(&p);
	ok(fence_is(78), "packets run across the end of the ring");
	ok(read_is(&p, p.wptr), "and the read pointer goes on behind it");
	put_fence(&p, 0, 3u << 29, 0);
	ring(&p);
	ok(read_is(&p, p.wptr), "a timestamp is written");
	ok(*fence > 1000, "it is no small number");
	pm4_free(&p);
}

static void test_interrupt(void)
{
	struct pm4 p = pm4_new();
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct sd_mem page = sd_alloc(&s, KFD_EVENT_PAGE_BYTES, GTT_FLAGS);
	uint32_t result;

	is_i64(sd_event(&s, KFD_EVENT_SIGNAL, true, page.handle, &e), 0,
	       "an event is made");
	d.event_id = e.event_id;
	put_fence(&p, 5, DATA64 | INTERRUPT, e.event_id);
	ring(&p);
	is_i64(sd_wait_event(&s, &d, 5000, &result), 0, "waiting for it works");
	is_u64(result, KFD_WAIT_COMPLETE, "RELEASE_MEM raised the interrupt");
	is_u64(*fence, 5, "after its write");
	pm4_free(&p);
}

static void test_wait_and_nesting(void)
{
	struct pm4 p = pm4_new();
	uint32_t *ib = (uint32_t *)mem.p + 256, *ib2 = ib + 64;

	*fence = 0;
	word[8] = 0;
	/* Wait until word 8, masked with 0xff, is at least 5. */
	memcpy(ib2, (uint32_t[]){ HEAD(0x3c, 6), 5 | 1u << 4, LO(&word[8]),
				  HI(&word[8]), 5, 0xff, 4 }, 28);
	memcpy(ib, (uint32_t[]){ HEAD(0x3f, 3), LO(ib2), HI(ib2), 7,
				 HEAD(0x37, 4), 5u << 8, LO(&word[9]),
				 HI(&word[9]), 99 }, 36);
	PUT(&p, HEAD(0x3f, 3), LO(ib), HI(ib), 9);
	put_fence(&p, 9, DATA64, 0);
	word[9] = 0;
	ring(&p);
	__atomic_store_n(&word[8], 0x104, __ATOMIC_RELEASE);
	usleep(20000);
	is_u64(*fence, 0, "WAIT_REG_MEM in a nested buffer waits");
	__atomic_store_n(&word[8], 0x105, __ATOMIC_RELEASE);
	ok(fence_is(9), "and goes on when its word is right");
	is_u64(word[9], 99, "the outer buffer went on behind the inner one");
	pm4_free(&p);
}

static void put_dispatch(struct pm4 *p, const void *entry, const void *out,
			 uint32_t groups, uint32_t more_rsrc1)
{
	const uint64_t at = sd_ptr(entry) >> 8;

	PUT(p, HEAD(0x76, 3), 0x20c, (uint32_t)at, (uint32_t)(at >> 32));
	/* RSRC1: 8 VGPRs; RSRC2: two user registers, workgroup id X. */
	PUT(p, HEAD(0x76, 3), 0x212, 0xc0000 | more_rsrc1,
	    2u << 1 | 1u << 7);
	PUT(p, HEAD(0x76, 4), 0x207, 32, 1, 1);
	PUT(p, HEAD(0x76, 3), 0x240, LO(out), HI(out));
	PUT(p, HEAD(0x15, 4), groups, 1, 1, 1u << 15 | 1u << 2 | 1);
}

static void test_dispatch(void)
{
	const struct code code = code_of("tests/soft/pm4.s", "store_ids");
	struct pm4 p = pm4_new();
	struct sd_mem k = sd_alloc(&s, 4096, VRAM_FLAGS);
	struct sd_mem out = sd_alloc(&s, 65536, VRAM_FLAGS);
	uint32_t *o = out.p, bad = 0;

	memcpy((uint8_t *)k.p + 256, code.dw, code.size_bytes);
	put_dispatch(&p, (uint8_t *)k.p + 256, o, 100, 0);
	put_fence(&p, 1234, DATA64, 0);
	ring(&p);
	ok(fence_is(1234), "DISPATCH_DIRECT completes");
	for (uint32_t i = 0; i < 3200; i++)
		bad += o[i] != i;
	is_u64(bad, 0, "all 3200 work-items stored their ids");
	is_u64(o[3200], 0, "and no others");
	pm4_free(&p);
	sd_free(&s, &k);
	sd_free(&s, &out);
}

/* tinygrad and kfdtest set PRIV in every dispatch on gfx11. */
static void test_privileged(void)
{
	const struct code code = code_of("tests/soft/pm4.s", "privileged");
	struct pm4 p = pm4_new();
	struct sd_mem k = sd_alloc(&s, 4096, VRAM_FLAGS);
	struct sd_mem out = sd_alloc(&s, 4096, VRAM_FLAGS);
	const uint32_t *o = out.p;

	memcpy((uint8_t *)k.p + 256, code.dw, code.size_bytes);
	put_dispatch(&p, (uint8_t *)k.p + 256, o, 1, AMD_RSRC1_PRIV);
	put_fence(&p, 4321, DATA64, 0);
	ring(&p);
	ok(fence_is(4321), "a dispatch with PRIV in RSRC1 completes");
	is_u64(o[0], 1, "STATUS says that the wave is privileged");
	is_u64(o[1], UINT32_MAX + 7u, "it may write trap registers");
	is_u64(o[2], 0, "s_rfe_b64 ends that");
	pm4_free(&p);
	sd_free(&s, &k);
	sd_free(&s, &out);
}

/* As ROCr does it: an AQL vendor packet with an indirect buffer. */
static void test_vendor(void)
{
	struct sd_queue q = sd_queue(&s, 64);
	struct amd_signal *sig = (void *)((uint8_t *)mem.p + 3072);
	uint32_t *ib = (uint32_t *)mem.p + 512;
	struct aql_pm4_ib v = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_PM4_IB,
		.ib_jump_cmd = { HEAD(0x3f, 3), LO(ib), HI(ib),
				 13 | 1u << 23 },
		.dw_cnt_remain = 10,
		.completion_signal = sd_ptr(sig),
	};
	const uint32_t dw[] = { HEAD(0x37, 4), 5u << 8, LO(&word[20]),
				HI(&word[20]), 4711, HEAD(0x49, 7), 0x514,
				DATA64, LO(fence), HI(fence), 1, 0, 0 };

	memset(sig, 0, sizeof(*sig));
	sig->kind = AMD_SIGNAL_USER;
	sig->value = 1;
	memcpy(ib, dw, sizeof(dw));
	sd_submit(&s, &q, &v);
	ok(sd_wait_value(sig, 0, 5000), "a vendor packet with PM4 completes");
	is_u64(word[20], 4711, "its WRITE_DATA was done");
	is_u64(*fence, 1, "and its RELEASE_MEM");
	sd_queue_destroy(&s, &q);
	sd_queue_buffers_free(&s, &q);
}

/* Buffers that chain to themselves, and waits for what never comes. */
static void test_endless(void)
{
	uint32_t *ib = (uint32_t *)mem.p + 600;
	const uint32_t never[] = { HEAD(0x3c, 6), 3 | 1u << 4, LO(&word[30]),
				   HI(&word[30]), 1, 1, 4 };
	const uint32_t chain[] = { HEAD(0x3f, 3), LO(ib), HI(ib), 4 | 1u << 20 };
	const struct aql_pm4_ib v = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_PM4_IB,
		.ib_jump_cmd = { HEAD(0x3f, 3), LO(ib), HI(ib), 4 | 1u << 23 },
		.dw_cnt_remain = 10,
	};
	struct sd_queue q = sd_queue(&s, 64);
	struct pm4 p = pm4_new();

	word[30] = 0;
	memcpy(ib, chain, sizeof(chain));
	sd_submit(&s, &q, &v);
	PUT(&p, HEAD(0x3f, 3), LO(ib), HI(ib), 4);
	ring(&p);
	usleep(2000);
	is_i64(sd_queue_destroy(&s, &q), 0, "an AQL queue in a buffer that "
	       "chains to itself can be destroyed");
	sd_queue_buffers_free(&s, &q);
	is_i64(sd_queue_destroy(&s, &p.q), 0, "and a PM4 queue, too");
	sd_queue_buffers_free(&s, &p.q);
	p = pm4_new();
	put(&p, never, ARRAY_SIZE(never));
	ring(&p);
	usleep(2000);
	is_i64(sd_queue_destroy(&s, &p.q), 0, "and one that waits for what "
	       "never comes");
	sd_queue_buffers_free(&s, &p.q);
}

/* 2^25 groups of 2^7 lanes are 2^32 lanes: not none. */
static void test_overflow(void)
{
	const struct soft_options o = { .threads = 1 };
	struct soft_fault f = { 0 };
	struct sd was = s;
	struct pm4 p;

	s = sd_open(&o);
	p = pm4_new();
	PUT(&p, HEAD(0x76, 4), 0x207, 128, 1, 1);
	PUT(&p, HEAD(0x15, 4), 1u << 25, 1, 1, 1u << 15 | 1u << 2 | 1);
	ring(&p);
	for (int i = 0; i < 5000 && !soft_last_fault(s.d, &f); i++)
		usleep(1000);
	has_str(f.text, "2^32 - 1", "too many lanes are refused, by name");
	sd_queue_destroy(&s, &p.q);
	sd_close(&s);
	s = was;
}

static void test_nonsense(void)
{
	struct pm4 p = pm4_new();
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct soft_fault f = { 0 };
	uint32_t result;

	sd_event(&s, KFD_EVENT_HW_EXCEPTION, false, 0, &e);
	d.event_id = e.event_id;
	PUT(&p, HEAD(0xee, 1), 0);
	ring(&p);
	is_i64(sd_wait_event(&s, &d, 5000, &result), 0, "waiting works");
	is_u64(result, KFD_WAIT_COMPLETE, "an unknown opcode hangs the engine: "
	       "the card is reset");
	is_u64(d.hw.memory_lost, 1, "its memory is lost");
	ok(soft_last_fault(s.d, &f) && f.kind == SOFT_FAULT_PACKET,
	   "the record says packet");
	has_str(f.text, "0xc000ee00", "and names it");
}

int main(void)
{
	const struct soft_options o = { .threads = 2 };

	s = sd_open(&o);
	mem = sd_alloc(&s, 4096, GTT_FLAGS);
	word = mem.p;
	fence = (void *)((uint8_t *)mem.p + 512);
	test_writes();
	test_interrupt();
	test_wait_and_nesting();
	test_dispatch();
	test_privileged();
	test_vendor();
	test_endless();
	test_overflow();
	test_nonsense();
	sd_close(&s);
	return plan_done();
}
