/*
 * SDMA queues: packets as SDMA 6.0 has them, against memcpy and arithmetic
 * done here.
 */
#include <unistd.h>

#include "tests/soft/softdev.h"

#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
#define AT(p) LO(p), HI(p)

static struct sd s;
static struct sd_mem mem, a, b;
static volatile uint32_t *word;

struct sdma {
	struct sd_queue q;
	uint64_t wptr; /* bytes */
	uint32_t fence;
};

static struct sdma sdma_new(uint32_t type, uint32_t engine)
{
	struct sdma d = { 0 };

	sd_queue_prepare(&s, &d.q, 64);
	d.q.a.type = type;
	d.q.a.sdma_engine_id = engine;
	d.q.a.eop_addr = d.q.a.eop_size = 0;
	d.q.a.cwsr_addr = d.q.a.cwsr_size = d.q.a.ctl_stack_size = 0;
	is_i64(sd_queue_create(&s, &d.q), 0,
	       "an SDMA queue (type %u) needs no EOP and no save area", type);
	return d;
}

static void sdma_free(struct sdma *d)
{
	sd_queue_destroy(&s, &d->q);
	sd_queue_buffers_free(&s, &d->q);
}

static void put(struct sdma *d, const uint32_t *dw, size_t n)
{
	for (size_t i = 0; i < n; i++, d->wptr += 4)
		((volatile uint32_t *)d->q.ring)[d->wptr / 4 % 1024] = dw[i];
}
#define PUT(d, ...) \
	put(d, (const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void ring(struct sdma *d)
{
	__atomic_store_n(&d->q.q->write_dispatch_id, d->wptr,
			 __ATOMIC_RELEASE);
	s.d->ring(s.d, d->q.doorbell, d->wptr);
}

/* Fence, ring, and wait until all is done and read. */
static bool finish(struct sdma *d)
{
	const uint64_t end = time_mono_ns() + 5000000000ull;

	PUT(d, 5, AT(&word[0]), ++d->fence);
	ring(d);
	while (__atomic_load_n(&word[0], __ATOMIC_ACQUIRE) != d->fence ||
	       __atomic_load_n(&d->q.q->read_dispatch_id, __ATOMIC_ACQUIRE) !=
		       d->wptr)
		if (time_mono_ns() > end)
			return false;
	return true;
}

static void test_moves(uint32_t type, uint32_t engine)
{
	struct sdma d = sdma_new(type, engine);
	uint8_t *from = a.p, *to = b.p;
	uint32_t seed = 12345, bad = 0;

	for (uint32_t i = 0; i < a.size; i++)
		from[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	memset(to, 0, b.size);
	PUT(&d, 1, 3000000 - 1, 0, AT(from + 5), AT(to + 9));
	ok(finish(&d), "COPY_LINEAR of 3,000,000 bytes ends");
	ok(!memcmp(to + 9, from + 5, 3000000), "every byte was copied");
	is_u64(to[8] | to[9 + 3000000], 0, "none beside them");

	PUT(&d, 1 | 1u << 27, 100 - 1, 0, AT(from), AT(to + 3100000),
	    AT(to + 3200000));
	ok(finish(&d), "COPY_LINEAR with two destinations ends");
	ok(!memcmp(to + 3100000, from, 100) && !to[3100100] &&
		   !memcmp(to + 3200000, from, 100) && !to[3200100],
	   "both got every byte");

	PUT(&d, 11 | 2u << 30, AT(to), 0xdeadbeef, 4096 - 4);
	PUT(&d, 11 | 2u << 30, AT(to + 8192), 0x01020304, 4096 - 1);
	ok(finish(&d), "CONST_FILL ends");
	for (uint32_t i = 0; i < 1024; i++)
		bad += ((uint32_t *)to)[i] != 0xdeadbeef;
	is_u64(bad, 0, "a count without the last dword fills 4096 bytes");
	is_u64(to[4096], from[4096 - 4], "and no more");
	is_u64(((uint32_t *)to)[2048 + 1023], 0x01020304,
	       "a count in bytes fills 4096 bytes");
	is_u64(to[8192 + 4096], from[8192 + 4096 - 4], "and no more too");

	PUT(&d, 2, AT(&word[16]), 2, 10, 20, 30);
	PUT(&d, 0 | 3u << 16, 0x99, 0x99, 0x99); /* a NOP of four dwords */
	ok(finish(&d), "WRITE_LINEAR and NOP end");
	is_u64(word[16] + word[17] * 100 + word[18] * 10000, 302010,
	       "three dwords were written");
	for (int i = 0; i < 100; i++)
		PUT(&d, 2, AT(&word[20]), 0, (uint32_t)i);
	ring(&d);
	for (int i = 0; i < 100; i++)
		PUT(&d, 2, AT(&word[21]), 0, (uint32_t)i);
	ok(finish(&d), "the ring may wrap");
	is_u64(word[20] + word[21], 198, "and nothing is lost there");
	sdma_free(&d);
}

static void atomic(struct sdma *d, unsigned op, volatile void *at,
		   uint64_t src, uint64_t cmp)
{
	PUT(d, 10 | op << 25, AT(at), (uint32_t)src, (uint32_t)(src >> 32),
	    (uint32_t)cmp, (uint32_t)(cmp >> 32), 0);
}

static void test_atomics(void)
{
	struct sdma d = sdma_new(KFD_QUEUE_SDMA, 0);
	volatile uint64_t *wide = (void *)&word[32];

	word[24] = 40;
	atomic(&d, 15, &word[24], 2, 0); /* ADD: 42 */
	atomic(&d, 8, &word[24], 7, 42); /* CMPSWAP: 7 */
	atomic(&d, 8, &word[24], 9, 42); /* CMPSWAP: stays */
	word[25] = (uint32_t)-5;
	atomic(&d, 17, &word[25], 3, 0); /* SMIN: -5 */
	atomic(&d, 18, &word[25], 3, 0); /* UMIN: 3 */
	*wide = 1;
	atomic(&d, 47, wide, UINT64_MAX, 0);	    /* ADD 64: 0 */
	atomic(&d, 47, wide, 0x100000000ull, 0);    /* ADD 64 */
	atomic(&d, 32 + 22, wide, 0x8000, 0);	    /* OR 64 */
	ok(finish(&d), "atomics end");
	is_u64(word[24], 7, "add, then compare and swap, once");
	is_u64(word[25], 3, "signed and unsigned minimum");
	is_u64(*wide, 0x100008000, "64-bit add carries, or sets");
	sdma_free(&d);
}

static void test_poll_and_trap(void)
{
	struct sdma d = sdma_new(KFD_QUEUE_SDMA, 0);
	struct kfd_ioc_create_event e;
	struct kfd_event_data ev = { 0 };
	struct sd_mem page = sd_alloc(&s, KFD_EVENT_PAGE_BYTES, GTT_FLAGS);
	volatile uint64_t *stamp = (void *)&word[40];
	struct kfd_ioc_get_clock_counters c = { .gpu_id = SOFT_GPU_ID };
	uint32_t result;

	sd_event(&s, KFD_EVENT_SIGNAL, true, page.handle, &e);
	ev.event_id = e.event_id;
	word[28] = 0;
	word[29] = 0;
	PUT(&d, 8, 0, 0x80000000, 0, 0, 0); /* the flush of HDP */
	PUT(&d, 8 | 1u << 31 | 3u << 28, AT(&word[28]), 6, 0xf, 0xfff << 16);
	PUT(&d, 2, AT(&word[29]), 0, 1);
	PUT(&d, 13 | 2u << 8, AT(stamp));
	PUT(&d, 6, e.event_id);
	ring(&d);
	usleep(20000);
	is_u64(word[29], 0, "POLL_REGMEM waits");
	__atomic_store_n(&word[28], 0x16, __ATOMIC_RELEASE);
	is_i64(sd_wait_event(&s, &ev, 5000, &result), 0, "the event comes");
	is_u64(result, KFD_WAIT_COMPLETE, "TRAP raised its interrupt");
	is_u64(word[29], 1, "after what was polled for");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_CLOCK_COUNTERS, &c), 0, "clocks");
	ok(c.gpu_clock - *stamp < 500000000, "TIMESTAMP is the device's clock, "
	   "less than five seconds ago");
	sdma_free(&d);
}

static void test_fault(void)
{
	struct sdma d = sdma_new(KFD_QUEUE_SDMA, 0);
	struct kfd_ioc_create_event e;
	struct kfd_event_data ev = { 0 };
	uint8_t *hole = sd_reserve(1 << 20);
	uint32_t result;

	sd_event(&s, KFD_EVENT_MEMORY, false, 0, &e);
	ev.event_id = e.event_id;
	PUT(&d, 1, 64 - 1, 0, AT(a.p), AT(hole + 4096));
	ring(&d);
	is_i64(sd_wait_event(&s, &ev, 5000, &result), 0, "the event comes");
	is_u64(ev.memory.va, sd_ptr(hole) + 4096,
	       "a copy to memory that is not mapped faults there");
	is_u64(ev.memory.not_present, 1, "as not present");
	sdma_free(&d);
}

static void test_refusals(void)
{
	const struct soft_options old = { .threads = 1, .kfd_minor = 16 };
	struct sd t = sd_open(&old);
	struct sd_queue q;

	sd_queue_prepare(&s, &q, 64);
	q.a.type = KFD_QUEUE_SDMA_BY_ENG_ID;
	q.a.sdma_engine_id = 2;
	is_i64(sd_queue_create(&s, &q), -EINVAL,
	       "there is no third SDMA engine");
	sd_queue_buffers_free(&s, &q);
	sd_queue_prepare(&t, &q, 64);
	q.a.type = KFD_QUEUE_SDMA_BY_ENG_ID;
	is_i64(sd_queue_create(&t, &q), -EINVAL,
	       "before 1.17 engines cannot be chosen");
	sd_queue_buffers_free(&t, &q);
	sd_close(&t);
}

/* A box of 5x4x3 elements out of one of 11x7x5 into one of 9x6x4. */
static void test_window(unsigned log2_bytes)
{
	struct sdma d = sdma_new(KFD_QUEUE_SDMA, 0);
	const unsigned n = 1u << log2_bytes;
	uint8_t *from = a.p, *to = b.p, *want = calloc(1, 4096);

	for (unsigned i = 0; i < 11 * 7 * 5 * n; i++)
		from[i] = (uint8_t)(i * 13 + i / 251);
	memset(to, 0, 4096);
	for (unsigned z = 0; z < 3; z++)
		for (unsigned y = 0; y < 4; y++)
			memcpy(want + ((z * 6 + y + 2) * 9 + 3) * n,
			       from + (((z + 1) * 7 + y + 2) * 11 + 4) * n,
			       5 * n);
	PUT(&d, 1 | 4u << 8 | log2_bytes << 29, AT(from), 4 | 2u << 16,
	    1 | 10u << 13, 76, AT(to), 3 | 2u << 16, 8u << 13, 53,
	    4 | 3u << 16, 2);
	ok(finish(&d), "a window of elements of %u bytes is copied", n);
	ok(!memcmp(to, want, 4096), "and nothing else");
	free(want);
	sdma_free(&d);
}

int main(void)
{
	const struct soft_options o = { .threads = 1 };

	s = sd_open(&o);
	mem = sd_alloc(&s, 4096, GTT_FLAGS);
	a = sd_alloc(&s, 4 << 20, VRAM_FLAGS);
	b = sd_alloc(&s, 4 << 20, GTT_FLAGS);
	word = mem.p;
	test_moves(KFD_QUEUE_SDMA, 0);
	test_moves(KFD_QUEUE_SDMA_BY_ENG_ID, 1);
	for (unsigned i = 0; i <= 2; i++)
		test_window(i);
	test_atomics();
	test_poll_and_trap();
	test_refusals();
	test_fault();
	sd_close(&s);
	return plan_done();
}
