/*
 * PM4 packets that copy, count, wait for registers and skip, one after the
 * other in one queue; what they leave behind is worked out here.
 */
#include <unistd.h>

#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw) - 1u) << 16 | (op) << 8)
#define AT(p) (uint32_t)sd_ptr(p), (uint32_t)(sd_ptr(p) >> 32)
/* Dword offsets of registers. */
#define SCRATCH_REG3 0xc043
#define HDP_FLUSH_REQ 0xe26
#define HDP_FLUSH_DONE 0xe27

static struct sd s;
static struct sd_mem mem;
static volatile uint32_t *word;
static volatile uint64_t *wide;
static struct sd_queue q;
static uint64_t wptr;
static uint32_t fence;

static void put(const uint32_t *dw, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile uint32_t *)q.ring)[wptr++ % 1024] = dw[i];
}
#define PUT(...) \
	put((const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

/* All that was put has run. */
static void finish(const char *name)
{
	const uint64_t end = time_mono_ns() + 5000000000ull;

	PUT(HEAD(0x49, 7), 0x514, 1u << 29, AT(&word[0]), ++fence, 0, 0);
	__atomic_store_n(&q.q->write_dispatch_id, wptr, __ATOMIC_RELEASE);
	s.d->ring(s.d, q.doorbell, wptr);
	while (__atomic_load_n(&word[0], __ATOMIC_ACQUIRE) != fence &&
	       time_mono_ns() < end)
		;
	is_u64(word[0], fence, "%s", name);
}

static void test_registers(void)
{
	/* What the host's drivers send before they read what it wrote. */
	PUT(HEAD(0x3c, 6), 1u << 6 | 5, HDP_FLUSH_REQ, HDP_FLUSH_DONE,
	    0xffffffff, 0xffffffff, 4);
	PUT(HEAD(0x3c, 6), 1u << 6 | 3, HDP_FLUSH_REQ, HDP_FLUSH_DONE, 4, 4,
	    0x20);
	finish("WAIT_REG_MEM flushes HDP");
	PUT(HEAD(0x79, 3), SCRATCH_REG3 - 0xc000, 0xcafe, 0xf00d);
	PUT(HEAD(0x40, 5), 0 | 5u << 8, SCRATCH_REG3, 0, AT(&word[4]));
	PUT(HEAD(0x40, 5), 0 | 2u << 8 | 1u << 16, SCRATCH_REG3, 0,
	    AT(&word[6]));
	PUT(HEAD(0x37, 4), 0, SCRATCH_REG3, 0, 0x1111);
	PUT(HEAD(0x3c, 6), 3, SCRATCH_REG3, 0, 0x1100, 0xff00, 4);
	PUT(HEAD(0x40, 5), 0 | 5u << 8, SCRATCH_REG3, 0, AT(&word[5]));
	finish("registers are written, waited for and read");
	is_u64(word[4], 0xcafe, "SET_UCONFIG_REG, then COPY_DATA");
	is_u64(word[6] | (uint64_t)word[7] << 32, 0xf00d0000cafeull,
	       "of two registers");
	is_u64(word[5], 0x1111, "WRITE_DATA to a register");
	PUT(HEAD(0x9b, 2), 0x207 | 3u << 28, 77);
	PUT(HEAD(0x40, 5), 0 | 5u << 8, 0x2e07, 0, AT(&word[8]));
	finish("SET_SH_REG_INDEX ends");
	is_u64(word[8], 77, "and sets a register of the shader");
}

static void test_copies(void)
{
	uint8_t *from = (uint8_t *)mem.p + 1024, *to = (uint8_t *)mem.p + 2048;
	uint32_t bad = 0;

	for (unsigned i = 0; i < 512; i++) {
		from[i] = (uint8_t)(i * 7 + 1);
		to[i] = 0;
	}
	word[10] = 0x12345678;
	word[11] = 0x9abcdef0;
	PUT(HEAD(0x40, 5), 1 | 5u << 8, AT(&word[10]), AT(&word[12]));
	PUT(HEAD(0x40, 5), 2 | 2u << 8 | 1u << 16, AT(&word[10]),
	    AT(&word[14]));
	PUT(HEAD(0x40, 5), 5 | 5u << 8 | 1u << 16, 21, 22, AT(&word[16]));
	PUT(HEAD(0x40, 5), 9 | 5u << 8 | 1u << 16, 0, 0, AT(&word[18]));
	PUT(HEAD(0x50, 6), 0, AT(from + 3), AT(to + 5), 301);
	PUT(HEAD(0x50, 6), 2u << 29 | 3u << 20, 0xa5b6c7d8, 0, AT(to + 400),
	    40);
	finish("COPY_DATA and DMA_DATA end");
	is_u64(word[12], 0x12345678, "one word of memory");
	is_u64(word[13], 0, "and no more");
	is_u64(word[14] | (uint64_t)word[15] << 32, 0x9abcdef012345678ull,
	       "two of them");
	is_u64(word[16] * 100 + word[17], 2122, "immediate data");
	ok(wide[9] > 1000, "the clock");
	ok(!memcmp(to + 5, from + 3, 301), "bytes from anywhere to anywhere");
	is_u64(to[4] | to[5 + 301], 0, "and none beside them");
	for (unsigned i = 0; i < 10; i++)
		bad += ((uint32_t *)(to + 400))[i] != 0xa5b6c7d8;
	is_u64(bad, 0, "a fill of 40 bytes");
	is_u64(((uint32_t *)(to + 400))[10], 0, "and no more");
}

static void test_atomics(void)
{
	word[20] = 40;
	wide[11] = 1ull << 40;
	word[24] = 7;
	PUT(HEAD(0x1e, 8), 15, AT(&word[20]), 2, 0, 0, 0, 0);
	PUT(HEAD(0x1e, 8), 15 + 32, AT(&wide[11]), 5, 1, 0, 0, 0);
	PUT(HEAD(0x1e, 8), 8 | 1u << 8, AT(&word[24]), 9, 0, 7, 0, 0);
	PUT(HEAD(0x1e, 8), 8 + 64, AT(&word[24]), 1, 0, 7, 0, 0);
	finish("ATOMIC_MEM ends");
	is_u64(word[20], 42, "an addition");
	is_u64(wide[11], (1ull << 40) + (1ull << 32) + 5, "of 64 bits");
	is_u64(word[24], 9, "compare and swap, once where it compares equal");
}

static void test_conditions(void)
{
	word[30] = 0;
	word[31] = 1;
	word[32] = word[33] = word[34] = word[35] = 0;
	PUT(HEAD(0x22, 4), AT(&word[30]), 0, 5);
	PUT(HEAD(0x37, 4), 5u << 8, AT(&word[32]), 1);
	PUT(HEAD(0x22, 4), AT(&word[31]), 0, 5);
	PUT(HEAD(0x37, 4), 5u << 8, AT(&word[33]), 1);
	PUT(HEAD(0x23, 1), 2u << 24 | 5);
	PUT(HEAD(0x37, 4), 5u << 8, AT(&word[34]), 1);
	PUT(HEAD(0x23, 1), 1u << 24 | 5);
	PUT(HEAD(0x37, 4), 5u << 8, AT(&word[35]), 1);
	finish("COND_EXEC and PRED_EXEC end");
	is_u64(word[32], 0, "what a zero excludes is skipped");
	is_u64(word[33], 1, "what it does not is run");
	is_u64(word[34], 0, "what is another part's is skipped");
	is_u64(word[35], 1, "what is this part's is run");
	wide[20] = 5ull << 32 | 0xff;
	PUT(HEAD(0x93, 8), 1u << 4 | 3, AT(&wide[20]), 0, 5, 0xffffff00,
	    0xffffffff, 4);
	finish("WAIT_REG_MEM64 sees all of its 64 bits");
}

int main(void)
{
	const struct soft_options o = { .threads = 2 };

	s = sd_open(&o);
	mem = sd_alloc(&s, 4096, GTT_FLAGS);
	word = mem.p;
	wide = mem.p;
	sd_queue_prepare(&s, &q, 64);
	memset(q.ring, 0, 64 * 64);
	q.a.type = KFD_QUEUE_COMPUTE;
	is_i64(sd_queue_create(&s, &q), 0, "a PM4 queue is made");
	test_registers();
	test_copies();
	test_atomics();
	test_conditions();
	sd_queue_destroy(&s, &q);
	sd_close(&s);
	return plan_done();
}
