/*
 * Performance counters by PM4, as AMD's profilers program them: reset, choice,
 * start, a dispatch, stop, and a read for each WGP.
 *
 * Registers and events are those of AMD's headers for gfx11; how many
 * instructions of each kind the kernel of counters.s has is counted by hand.
 */
#include "tests/code.h"
#include "tests/soft/said.h"
#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw) - 1u) << 16 | (op) << 8)
#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
#define GROUPS 20u

/* Registers, and where SET_UCONFIG_REG begins. */
#define UCONFIG 0xc000u
#define GFX_INDEX 0xc200u
#define PERFMON_CNTL 0xd808u
#define SELECT0 0xd9c0u
#define COUNTER0_LO 0xd1c0u
#define SQG_SELECT0 0xd9d0u
#define SQG_COUNTER0_LO 0xd1e4u
#define CTRL 0xd9e0u
#define CTRL2 0xd9e2u
#define BROADCAST 0xe0000000u

static struct sd s;
static struct sd_queue q;
static struct sd_mem code, out;
static volatile uint64_t *fence;
static uint32_t *result; /* what counters are copied to */
static uint64_t wptr, n_fences;

static void begin_queue(void)
{
	sd_queue_prepare(&s, &q, 256);
	memset(q.ring, 0, 256 * 64);
	q.a.type = KFD_QUEUE_COMPUTE;
	is_i64(sd_queue_create(&s, &q), 0, "a PM4 queue");
	wptr = 0;
}

static void put_packet(const uint32_t *dw, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile uint32_t *)q.ring)[wptr++ % 4096] = dw[i];
}
#define PUT(...) \
	put_packet((const uint32_t[]){ __VA_ARGS__ }, \
		   sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void write_reg(uint32_t at, uint32_t value)
{
	PUT(HEAD(0x79, 2), at - UCONFIG, value);
}

/* COPY_DATA from a counter (4) to memory through L2 (2). */
static void read_reg(uint32_t at, uint32_t *to)
{
	PUT(HEAD(0x40, 5), 4u | 2u << 8, at, 0, LO(to), HI(to));
}

/* Rings; false: the queue did not come to the end. */
static bool run_all(void)
{
	const uint64_t want = ++n_fences, until = time_mono_ns() + 5000000000;

	PUT(HEAD(0x49, 7), 0x514, 2u << 29, LO(fence), HI(fence),
	    (uint32_t)want, 0, 0);
	__atomic_store_n(&q.q->write_dispatch_id, wptr, __ATOMIC_RELEASE);
	s.d->ring(s.d, q.doorbell, wptr);
	while (__atomic_load_n(fence, __ATOMIC_ACQUIRE) != want)
		if (time_mono_ns() > until || said("refused"))
			return false;
	return true;
}

static void put_dispatch(bool wave32)
{
	const uint64_t at = sd_ptr(code.p) >> 8;

	PUT(HEAD(0x76, 3), 0x20c, (uint32_t)at, (uint32_t)(at >> 32));
	/* 8 VGPRs; two user SGPRs and the group's id. */
	PUT(HEAD(0x76, 3), 0x212, 0, 2u << 1 | 1u << 7);
	PUT(HEAD(0x76, 4), 0x207, 32, 1, 1);
	PUT(HEAD(0x76, 3), 0x240, LO(out.p), HI(out.p));
	PUT(HEAD(0x15, 4), GROUPS, 1, 1, 1u | 1u << 2 | (wave32 ? 1u << 15 : 0));
}

static void put_start(const uint32_t *event, unsigned n)
{
	write_reg(GFX_INDEX, BROADCAST);
	write_reg(PERFMON_CNTL, 0);
	write_reg(CTRL2, 0x1ffff);
	for (unsigned i = 0; i < n; i++) {
		write_reg(SELECT0 + 2 * i, event[i]);
		write_reg(SQG_SELECT0 + i, event[i]);
	}
	write_reg(CTRL, 0x55);
	write_reg(PERFMON_CNTL, 1);
}

/* All WGPs' counter i, then the engines', into result[i]. */
static void put_reads(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned w = 0; w < 54; w++) {
			const unsigned se = w < 48 ? w / 8 : w - 48;

			write_reg(GFX_INDEX,
				  se << 16 | (w < 48 ? (w / 4 % 2) << 8 |
							       (w % 4) << 2 :
						       3u << 29));
			read_reg(w < 48 ? COUNTER0_LO + 2 * i :
					  SQG_COUNTER0_LO + 2 * i,
				 &result[i * 64 + w]);
		}
	write_reg(GFX_INDEX, BROADCAST);
}

static uint64_t sum_words(const uint32_t *v, unsigned n)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++)
		all += v[i];
	return all;
}

/* Per workgroup, which is one wave; events of 32 alone have 0 in waves of 64. */
static const struct {
	const char *name;
	uint32_t event, each;
	bool w32_only, w64_only;
} wanted[] = {
	{ "waves", 4, 1, false, false },
	{ "waves of 32", 5, 1, true, false },
	{ "waves of 64", 6, 1, false, true },
	{ "items", 8, 32, false, false },
	{ "all instructions", 48, 6 + 5 * 7 + 4 + 2, false, false },
	{ "branches", 49, 6, false, false },
	{ "branches not taken", 50, 1, false, false },
	{ "branches taken", 51, 4, false, false },
	{ "FLAT", 56, 0, false, false },
	{ "LDS", 57, 1, false, false },
	{ "SALU", 58, 2 + 5 * 2, false, false },
	{ "SMEM", 59, 0, false, false },
	{ "messages", 61, 1, false, false },
	{ "VALU", 62, 2 + 5 * 3, false, false },
	{ "transcendental", 63, 5, false, false },
	{ "vector memory", 65, 2, false, false },
	{ "loads", 66, 1, false, false },
	{ "stores", 67, 1, false, false },
	{ "s_delay_alu", 68, 5, false, false },
	{ "VALU of waves of 32", 73, 17, true, false },
	{ "instructions of waves of 32", 82, 47, true, false },
	{ "instructions of waves of 64", 83, 47, false, true },
};

/* Eight at a time, as there are counters. */
static void test_events(bool wave32)
{
	for (unsigned at = 0; at < ARRAY_SIZE(wanted); at += 8) {
		const unsigned left = ARRAY_SIZE(wanted) - at;
		const unsigned n = left < 8 ? left : 8;
		uint32_t event[8];

		for (unsigned i = 0; i < n; i++)
			event[i] = wanted[at + i].event;
		memset(result, 0xff, 8192);
		put_start(event, n);
		put_dispatch(wave32);
		write_reg(PERFMON_CNTL, 2);
		if (!ok(run_all(), "a dispatch is counted"))
			return;
		put_dispatch(wave32); /* not counted */
		put_reads(n);
		ok(run_all(), "and read");
		for (unsigned i = 0; i < n; i++) {
			const bool none = wave32 ? wanted[at + i].w64_only :
						   wanted[at + i].w32_only;
			const uint32_t want =
				none ? 0 : GROUPS * wanted[at + i].each;
			const uint32_t *r = &result[i * 64];

			is_u64(sum_words(r, 48), want,
			       "wave%d: %s, of all WGPs", wave32 ? 32 : 64,
			       wanted[at + i].name);
			is_u64(sum_words(r + 48, 6), want,
			       "... of all engines");
		}
	}
}

/* Only what is enabled: CS_EN, and FORCE_EN or the queue's own register. */
static void test_enables(void)
{
	const uint32_t waves = 4;

	put_start(&waves, 1);
	write_reg(CTRL, 1); /* pixel shaders */
	put_dispatch(true);
	put_reads(1);
	ok(run_all() && sum_words(result, 48) == 0, "compute is not enabled");
	put_start(&waves, 1);
	write_reg(CTRL2, 0x1fffe);
	put_dispatch(true);
	put_reads(1);
	ok(run_all() && sum_words(result, 48) == 0,
	   "the queue does not want it");
	put_start(&waves, 1);
	write_reg(CTRL2, 0x1fffe);
	PUT(HEAD(0x76, 2), 0x20b, 1); /* COMPUTE_PERFCOUNT_ENABLE */
	put_dispatch(true);
	put_dispatch(true);
	put_reads(1);
	ok(run_all() && sum_words(result, 48) == 2 * GROUPS, "now it does");
	write_reg(PERFMON_CNTL, 0);
	put_reads(1);
	ok(run_all() && sum_words(result, 48) == 0, "a reset clears");
}

/* Each refusal ends the card, until it is opened anew. */
static void check_refusal(uint32_t at, uint32_t value, const char *why)
{
	said_forget();
	write_reg(at, value);
	ok(!run_all() && said(why), "refused: %s", why);
}

static void open_device(const struct soft_options *o)
{
	const struct code c = code_of("tests/packets/counters.s", "counted");

	s = sd_open(o);
	code = sd_alloc(&s, 4096, VRAM_FLAGS);
	out = sd_alloc(&s, 4096, GTT_FLAGS);
	begin_queue();
	fence = (void *)((uint8_t *)q.sig.p + 1024);
	result = sd_alloc(&s, 8192, GTT_FLAGS).p;
	memcpy(code.p, c.dw, c.size_bytes);
	n_fences = 0;
	said_forget();
}

int main(void)
{
	const struct soft_options o = { .threads = 2, .report = said_keep };

	open_device(&o);
	test_events(true);
	test_events(false);
	test_enables();
	check_refusal(SELECT0, 3, "this event is not counted; accepted: 4..6");
	sd_close(&s);
	open_device(&o);
	check_refusal(0xd844, 0, "register 0xd844, which is not there");
	sd_close(&s);
	return plan_done();
}
