/*
 * Hostile packets: streams of PM4, SDMA and AQL that are random, or right but
 * for a few bits, with doorbells, pointers and memory that change under them.
 *
 * Whatever they do, the process lives, memory that the GPU was not given stays
 * as it is, every queue can be destroyed, and the device works afterwards.
 * T0_SEED repeats a run, T0_SLOW=1 makes a long one.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw) - 1u) << 16 | (op) << 8)
#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
#define SECONDS 1000000000ull
#define RING_PACKETS 64u
#define RING_DW (RING_PACKETS * 16u)

static struct sd s;
static struct sd_mem mem, kernel; /* 64 KiB that packets use, and code */
static uint8_t *canary; /* beyond mem: the host's, not the GPU's */
static const struct code *store;
static uint64_t seed;

/* ------------------------------------------------------------- random -- */

static uint64_t next64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1dull;
}

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(next64() >> 33) % n;
}

static bool one_in(uint32_t n)
{
	return !random_below(n);
}

/* Addresses that are right, nearly right, and wrong. */
static uint64_t some_address(void)
{
	const uint64_t base = sd_ptr(mem.p);

	switch (random_below(48)) {
	case 0:
		return base + mem.size - 4 * random_below(4);
	case 1:
		return base - 4;
	case 2:
		return sd_ptr(canary) + 8 * random_below(64);
	case 3:
		return UINT64_MAX - random_below(64);
	case 4:
		return 0;
	case 5:
		return base + random_below(4096); /* any alignment */
	case 6:
		return sd_ptr(kernel.p) + 4 * random_below(256);
	case 7:
		return next64();
	default:
		return base + 8 * random_below(1024);
	}
}

static uint32_t some_count(void)
{
	static const uint32_t n[] = { 0, 1, 2, 7, 255, 256, 1024, 0xffff,
				      0xfffff, 0x3fffffff, 0xffffffff };

	return n[random_below(ARRAY_SIZE(n))];
}

/* Flip bits of up to n dwords. */
static void mutate_packet(uint32_t *dw, size_t n)
{
	for (uint32_t i = random_below(3); i; i--)
		dw[random_below((uint32_t)n)] ^= 1u << random_below(32);
	if (one_in(8))
		dw[random_below((uint32_t)n)] = some_count();
}

/* ------------------------------------------------------------ packets -- */

static size_t pm4_dispatch(uint32_t *d)
{
	const uint64_t at = (sd_ptr(kernel.p) + 256) >> 8;
	const uint64_t out = some_address();
	const uint32_t dw[] = {
		HEAD(0x76, 3), 0x20c, (uint32_t)at, (uint32_t)(at >> 32),
		HEAD(0x76, 3), 0x212, 0xc0000, 2u << 1 | 1u << 7 | random_below(2),
		HEAD(0x76, 4), 0x207, 32, 1, 1,
		HEAD(0x76, 3), 0x240, (uint32_t)out, (uint32_t)(out >> 32),
		HEAD(0x76, 2), 0x218, one_in(4) ? some_count() : 0,
		HEAD(0x15, 4), one_in(8) ? some_count() : 3, 1, 1,
		1u << 15 | 1u << 2 | 1,
	};

	memcpy(d, dw, sizeof(dw));
	return ARRAY_SIZE(dw);
}

/* One packet, right but for its addresses and counts; its dwords. */
static size_t pm4_packet(uint32_t *d)
{
	const uint64_t a = some_address();
	const uint32_t lo = (uint32_t)a, hi = (uint32_t)(a >> 32);
	const uint32_t *ib = (uint32_t *)mem.p + 4096;

	static const uint8_t more[][2] = {
		/* opcode and dwords of those that move, compare and skip */
		{ 0x40, 5 }, { 0x50, 6 }, { 0x1e, 8 }, { 0x22, 4 }, { 0x23, 1 },
		{ 0x93, 8 }, { 0x79, 2 }, { 0x16, 3 }, { 0x9b, 3 },
	};
	uint32_t k;

	switch (random_below(11)) {
	case 9:
	case 10:
		k = random_below(ARRAY_SIZE(more));
		d[0] = HEAD(more[k][0], more[k][1]);
		for (uint32_t i = 1; i <= more[k][1]; i++)
			d[i] = i % 2 ? random_below(0x200) | random_below(16) << 8 : hi;
		for (uint32_t i = 2; i + 1 <= more[k][1]; i += 2)
			d[i] = lo, d[i + 1] = hi;
		if (one_in(2)) /* control words of which little is wrong */
			d[1] = 1 | random_below(2) << 4 | 5u << 8;
		if (more[k][1] >= 6)
			d[6] = random_below(8192);
		return more[k][1] + 1u;
	case 0:
		memcpy(d, (uint32_t[]){ HEAD(0x37, 5), 5u << 8 | random_below(2) << 16,
					lo, hi, 1, 2 }, 24);
		return 6;
	case 1:
		memcpy(d, (uint32_t[]){ HEAD(0x49, 7), 0x514,
					random_below(4) << 29 | random_below(4) << 24, lo, hi,
					5, 6, some_count() }, 32);
		return 8;
	case 2: /* mostly never comes true */
		memcpy(d, (uint32_t[]){ HEAD(0x3c, 6), random_below(8) | 1u << 4, lo,
					hi, some_count(), some_count(), 4 },
		       28);
		return 7;
	case 3: /* into memory with buffers that call themselves */
		memcpy(d, (uint32_t[]){ HEAD(0x3f, 3), LO(ib), HI(ib),
					8 | random_below(2) << 20 }, 16);
		return 4;
	case 4:
		memcpy(d, (uint32_t[]){ HEAD(0x3f, 3), lo, hi,
					some_count() }, 16);
		return 4;
	case 5:
		memcpy(d, (uint32_t[]){ HEAD(0x76, 3), random_below(0x3ff), lo, hi },
		       16);
		return 4;
	case 6:
		return pm4_dispatch(d);
	case 7:
		memcpy(d, (uint32_t[]){ HEAD(0x58, 7), 0, 0, 0, 0, 0, 0, 0 },
		       32);
		return 8;
	default:
		memcpy(d, (uint32_t[]){ HEAD(0x10, 3), 1, 2, 3 }, 16);
		if (!one_in(8))
			return 4;
		for (int i = 0; i < 4; i++)
			d[i] = (uint32_t)next64();
		d[0] = HEAD(d[0] & 0xff, 1 + random_below(3));
		return 4;
	}
}

static size_t sdma_packet(uint32_t *d)
{
	const uint64_t a = some_address(), b = some_address();
	const uint32_t lo = (uint32_t)a, hi = (uint32_t)(a >> 32);
	static const uint32_t op[] = { 0, 1, 2, 5, 6, 8, 10, 11, 13, 17 };
	const uint32_t n = one_in(12) ? some_count() : random_below(256);

	d[0] = op[random_below(ARRAY_SIZE(op))];
	if (d[0] == 8)
		d[0] |= 1u << 31 | random_below(8) << 28;
	if (d[0] == 10)
		d[0] |= random_below(64) << 25;
	if (d[0] == 13)
		d[0] |= random_below(3) << 8;
	memcpy(&d[1], (uint32_t[]){ lo, hi, n, (uint32_t)b,
				    (uint32_t)(b >> 32), 0, 0 }, 28);
	if (d[0] == 1)
		memcpy(&d[1], (uint32_t[]){ n, 0, lo, hi, (uint32_t)b,
					    (uint32_t)(b >> 32), 0 }, 28);
	if (d[0] == 11)
		memcpy(&d[3], (uint32_t[]){ 0x5a5a5a5a, n }, 8);
	return 8;
}

static size_t aql_packet(uint32_t *d)
{
	struct aql_dispatch p = {
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = (uint16_t)(one_in(8) ? random_below(8) : 1),
		.workgroup_size = { 32, 1, 1 },
		.grid_size = { 64, 1, 1 },
		.private_segment_size = one_in(12) ? some_count() : 0,
		.group_segment_size = one_in(12) ? some_count() : 0,
		.kernel_object = one_in(12) ? some_address() :
					     sd_ptr(kernel.p),
		.kernarg_address = some_address(),
		.completion_signal = one_in(2) ? some_address() : 0,
	};
	struct aql_barrier b = sd_barrier(
		one_in(2) ? AQL_BARRIER_AND : AQL_BARRIER_OR,
		(void *)(uintptr_t)(one_in(2) ? some_address() : 0));
	struct aql_pm4_ib v = {
		.header = AQL_HEADER(AQL_VENDOR, 1, 2, 2),
		.amd_format = AQL_VENDOR_PM4_IB,
		.ib_jump_cmd = { HEAD(0x3f, 3), LO((uint32_t *)mem.p + 4096),
				 HI(mem.p), 8 | 1u << 23 },
		.dw_cnt_remain = 10,
	};

	if (one_in(4))
		for (int i = 0; i < 3; i++)
			p.grid_size[i] = some_count();
	if (one_in(6))
		for (int i = 0; i < 3; i++)
			p.workgroup_size[i] = (uint16_t)some_count();
	for (int i = 0; i < 5; i++)
		b.dep_signal[i] = one_in(4) ? some_address() : 0;
	switch (random_below(4)) {
	case 0:
		memcpy(d, &b, 64);
		break;
	case 1:
		memcpy(d, &v, 64);
		break;
	default:
		memcpy(d, &p, 64);
	}
	return 16;
}

/* -------------------------------------------------------------- memory -- */

/* Buffers that call or chain to themselves, waits, and random signals. */
static void fill_memory(void)
{
	uint32_t *m = mem.p, *ib = m + 4096;
	struct amd_kernel_descriptor *kd = kernel.p;

	for (size_t i = 0; i < 4096; i++)
		m[i] = one_in(3) ? random_below(64) : 0;
	for (size_t i = 0; i < 8; i++)
		m[4096 + i] = HEAD(0x10, 1);
	if (one_in(2)) {
		const uint32_t chain = random_below(2) << 20;

		memcpy(ib + 4, (uint32_t[]){ HEAD(0x3f, 3), LO(ib), HI(ib),
					     8 | chain }, 16);
	} else {
		pm4_packet(ib);
	}
	memset(kd, 0, sizeof(*kd));
	kd->kernel_code_entry_byte_offset = 256;
	kd->compute_pgm_rsrc1 = 0xc0000;
	kd->compute_pgm_rsrc2 = 2u << 1 | 1u << 7 | random_below(2);
	kd->kernel_code_properties = AMD_PROP_WAVE32 | AMD_PROP_KERNARG_PTR;
	memcpy((uint8_t *)kernel.p + 256, store->dw, store->size_bytes);
	if (one_in(8))
		mutate_packet((uint32_t *)kernel.p, 64 + store->n);
	if (one_in(16))
		for (size_t i = 64; i < 128; i++)
			((uint32_t *)kernel.p)[i] = (uint32_t)next64();
}

/* ------------------------------------------------------------- attacks -- */

struct attack {
	struct sd_queue q;
	uint32_t type;
	uint64_t wptr; /* dwords */
};

static void ring_at(struct attack *a, uint64_t dw)
{
	uint64_t v = a->type == KFD_QUEUE_SDMA ? dw * 4 :
		     a->type == KFD_QUEUE_COMPUTE_AQL ? dw / 16 - 1 : dw;

	if (one_in(10))
		v += random_below(2) ? some_count() : -(uint64_t)some_count();
	__atomic_store_n(&a->q.q->write_dispatch_id,
			 one_in(10) ? next64() : v + 1, __ATOMIC_RELEASE);
	s.d->ring(s.d, a->q.doorbell, v);
}

static void write_stream(struct attack *a)
{
	volatile uint32_t *ring = (void *)a->q.ring;
	uint32_t dw[64];

	for (uint32_t n = 1 + random_below(12); n; n--) {
		const size_t len = a->type == KFD_QUEUE_COMPUTE ?
					   pm4_packet(dw) :
				   a->type == KFD_QUEUE_SDMA ?
					   sdma_packet(dw) :
					   aql_packet(dw);

		if (one_in(12))
			mutate_packet(dw, len);
		for (size_t i = 0; i < len; i++)
			ring[a->wptr++ % RING_DW] = dw[i];
		if (one_in(3))
			ring_at(a, a->wptr);
	}
	ring_at(a, a->wptr);
}

static void *ring_on(void *arg)
{
	const struct attack *a = arg; /* a copy: streams grow meanwhile */

	for (int i = 0; i < 50; i++)
		s.d->ring(s.d, a->q.doorbell, a->wptr / 16 + (uint64_t)i % 3);
	return NULL;
}

static bool canary_lives(void)
{
	for (size_t i = 0; i < 4096; i++)
		if (canary[i] != 0xca)
			return false;
	return true;
}

/* One queue, one stream, changes under it; false: it cannot be stopped. */
static bool attack_once(uint32_t type)
{
	struct attack a = { .type = type }, as_it_was;
	const struct timespec nap = { 0, 200000 };
	volatile uint32_t *ring;
	pthread_t t;
	uint64_t began;
	int ret;

	fill_memory();
	sd_queue_prepare(&s, &a.q, RING_PACKETS);
	if (type != KFD_QUEUE_COMPUTE_AQL)
		memset(a.q.ring, 0, RING_DW * 4);
	a.q.a.type = type;
	if (sd_queue_create(&s, &a.q))
		return false;
	if (one_in(8)) {
		a.q.q->read_dispatch_id_field_base_byte_offset = random_below(9999);
		a.q.q->queue_inactive_signal = some_address();
		a.q.q->scratch_backing_memory_location = some_address();
		a.q.q->compute_tmpring_size = (uint32_t)next64();
	}
	write_stream(&a);
	as_it_was = a;
	pthread_create(&t, NULL, ring_on, &as_it_was);
	ring = (void *)a.q.ring;
	for (int i = 0; i < 200; i++) /* while it is being read */
		if (one_in(4))
			ring[random_below(RING_DW)] = some_count();
	if (one_in(4))
		write_stream(&a);
	if (one_in(4)) /* code under a running kernel */
		memset((uint8_t *)kernel.p + 256, (int)random_below(256), 64);
	if (one_in(4)) /* and memory that packets use */
		sd_map(&s, mem.handle, false);
	nanosleep(&nap, NULL);
	pthread_join(t, NULL);
	began = time_mono_ns();
	ret = sd_queue_destroy(&s, &a.q);
	sd_map(&s, mem.handle, true);
	ret |= sd_queue_buffers_free(&s, &a.q);
	return !ret && time_mono_ns() - began < 20 * SECONDS;
}

/* --------------------------------------------------------------- tests -- */

static void open_all(void)
{
	const struct soft_options o = { .threads = 2,
					.deadline_ns = SECONDS / 10 };

	s = sd_open(&o);
	mem = sd_alloc(&s, 65536, GTT_FLAGS);
	kernel = sd_alloc(&s, 4096, VRAM_FLAGS);
}

/* A fault stops all queues of the process until it begins anew. */
static void open_again(void)
{
	munmap(mem.p, mem.size);
	munmap(kernel.p, kernel.size);
	sd_close(&s);
	open_all();
}

/* Does a dispatch run that is right in all points? */
static bool device_works(void)
{
	struct sd_queue q = sd_queue(&s, 64);
	struct amd_signal *sig = (void *)((uint8_t *)mem.p + 32768);
	struct aql_dispatch p = {
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 32, 1, 1 },
		.grid_size = { 128, 1, 1 },
		.kernel_object = sd_ptr(kernel.p),
		.kernarg_address = sd_ptr(mem.p),
		.completion_signal = sd_ptr(sig),
	};
	uint32_t bad = 0;
	bool done;

	do
		fill_memory();
	while (memcmp((uint8_t *)kernel.p + 256, store->dw,
		      store->size_bytes) ||
	       ((uint32_t *)kernel.p)[4] != 256);
	memset(kernel.p, 0, 64);
	((struct amd_kernel_descriptor *)kernel.p)
		->kernel_code_entry_byte_offset = 256;
	((struct amd_kernel_descriptor *)kernel.p)->compute_pgm_rsrc1 = 0xc0000;
	((struct amd_kernel_descriptor *)kernel.p)->compute_pgm_rsrc2 =
		2u << 1 | 1u << 7;
	((struct amd_kernel_descriptor *)kernel.p)->kernel_code_properties =
		AMD_PROP_WAVE32 | AMD_PROP_KERNARG_PTR;
	memset(sig, 0, sizeof(*sig));
	sig->kind = AMD_SIGNAL_USER;
	sig->value = 1;
	memset(mem.p, 0xff, 4096);
	sd_submit(&s, &q, &p);
	done = sd_wait_value(sig, 0, 10000);
	for (uint32_t i = 0; i < 128; i++)
		bad += ((uint32_t *)mem.p)[i] != i;
	sd_queue_destroy(&s, &q);
	sd_queue_buffers_free(&s, &q);
	return done && !bad;
}

static void test_family(const char *name, uint32_t type, int times)
{
	const uint64_t began = time_mono_ns();
	unsigned faults = 0, named = 0, stuck = 0;

	for (int i = 0; i < times && !stuck; i++) {
		struct soft_fault f = { 0 };
		const uint64_t was = seed;

		alarm(60); /* a hang is a death */
		stuck += !attack_once(type);
		if (soft_last_fault(s.d, &f)) {
			faults++;
			named += f.text[0] != 0;
			open_again();
		}
		if (stuck)
			diag("attack %d, seed %#llx", i,
			     (unsigned long long)was);
	}
	alarm(0);
	diag("%s: %d attacks, %u faults, %.1f s", name, times, faults,
	     (double)(time_mono_ns() - began) / 1e9);
	is_u64(stuck, 0, "%s: every queue can be destroyed", name);
	ok(faults > (unsigned)times / 8, "%s: most attacks are noticed", name);
	is_u64(named, faults, "%s: all of these say what was wrong", name);
	ok(canary_lives(), "%s: the program's own memory is untouched", name);
	open_again();
	ok(device_works(), "%s: the device works as before", name);
}

int main(void)
{
	const struct code c = code_of("tests/soft/pm4.s", "store_ids");
	const char *env = getenv("T0_SEED");
	const int times = getenv("T0_SLOW") ? 20000 : 250;

	seed = env ? strtoull(env, NULL, 0) : 20;
	diag("T0_SEED=%#llx", (unsigned long long)seed);
	store = &c;
	canary = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(canary, 0xca, 4096);
	open_all();
	test_family("PM4", KFD_QUEUE_COMPUTE, times);
	test_family("SDMA", KFD_QUEUE_SDMA, times);
	test_family("AQL", KFD_QUEUE_COMPUTE_AQL, times);
	sd_close(&s);
	return plan_done();
}
