/*
 * Kernels that write rubbish where printf and hostcalls are read: the test
 * writes it in their place.  The host reads nothing else, remembers little,
 * says once what was wrong, and prints what is sound.  T0_SEED repeats a run.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd/kfd.h"
#include "kfd/runtime/service.h"
#include "tests/tap.h"

#define DATA "tests/data/printf/"
#define CALL_HEAD 24u /* bytes of a packet's header, and of its payload */
#define CALL_LANES 512u

static struct kfd_dev *dev;
static struct kfd_queue *queue;
static struct buf text;
static struct err e;
static uint64_t seed;

static void collect(void *ctx, const char *s, size_t len)
{
	(void)ctx;
	buf_add(&text, s, len);
}

static uint32_t rng(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

static void quit(void)
{
	diag("%s", e.msg);
	exit(1);
}

static void open_queue(void)
{
	const struct kfd_queue_opts o = { .print = collect,
					  .printf_bytes = 8192 };

	if (!kfd_queue_new(dev, &o, &queue, &e))
		quit();
	queue->service = xcalloc(1, sizeof(*queue->service));
	buf_reset(&text);
}

static void close_queue(void)
{
	if (!kfd_queue_free(queue, &e))
		quit();
}

/* Lines that tell of damage. */
static unsigned count_complaints(void)
{
	unsigned n = 0;

	for (const char *p = text.data; p && (p = strchr(p, '[')); p++)
		n += !strncmp(p, "[printf of kernel", 17) ||
		     !strncmp(p, "[hostcall of a kernel", 21);
	return n;
}

/* ------------------------------------------------------------- buffers ---- */

/* Rubbish in a buffer of a kernel of the object; how often it was damaged. */
static uint64_t fill_buffers(const char *object, const char *name, int times)
{
	const struct kfd_kernel *k;
	struct kfd_print_stats s;
	struct kfd_code *code;
	struct buf co = { 0 };

	if (!file_read(object, 0, &co, &e) ||
	    !kfd_code_load(dev, co.data, co.len, &code, &e) ||
	    !kfd_code_kernel(code, name, &k, &e))
		quit();
	open_queue();
	for (int i = 0; i < times; i++) {
		struct printbuf *b;
		uint32_t *w;

		if (!kfd_print_take(queue, k, &b, &e) || !b)
			quit();
		w = b->mem->pub.cpu;
		for (size_t j = 0; j < 8192 / 4; j++)
			if (rng() % 4)
				w[j] = rng() % 3 ? rng() % 20 :
						   rng() << 16 | rng();
		if (rng() % 3 == 0)
			w[0] = rng() % 8192;
		if (rng() % 2)
			w[1] = rng() % 2 ? 0 : 8184;
		/* Rings end where the host says, whatever the kernel says. */
		if (k->printf_ring && rng() % 2)
			kfd_print_poll(queue, b);
		kfd_print_end(queue, b);
	}
	kfd_queue_print_stats(queue, &s);
	ok(count_complaints() >= 1, "%s: it is said", name);
	close_queue();
	kfd_code_unload(code);
	buf_fini(&co);
	return s.damaged;
}

/* ----------------------------------------------------------- hostcalls ---- */

/* The buffer's words: headers, payloads, bell, stacks, mask. */
static uint64_t *call_buffer(void)
{
	const uint64_t va = kfd_hostcall_va(queue, &e);

	if (!va)
		quit();
	return (uint64_t *)(uintptr_t)va;
}

static uint64_t *call_lane(const uint64_t *b, uint64_t packet, unsigned lane)
{
	return (uint64_t *)(uintptr_t)b[1] + packet * CALL_LANES + lane * 8;
}

/* Packet i is ready, with these lanes. */
static void push_packet(uint64_t *b, uint64_t i, uint64_t lanes,
			uint32_t service)
{
	uint64_t *head = (void *)((char *)(uintptr_t)b[0] + i * CALL_HEAD);

	head[0] = b[4];
	head[1] = lanes;
	head[2] = service | 1ull << 32;
	b[4] = (b[5] + 1) | i;
}

static void test_rubbish(int times)
{
	uint64_t *b, *head;
	struct kfd_print_stats s;
	const int err = dup(STDERR_FILENO);

	/* Messages say themselves that they are for there. */
	(void)!freopen("/dev/null", "w", stderr);
	open_queue();
	b = call_buffer();
	for (int i = 0; i < times; i++) {
		const uint64_t p = rng() % (b[5] + 1);

		head = (void *)((char *)(uintptr_t)b[0] + p * CALL_HEAD);
		push_packet(b, p, (uint64_t)rng() << 32 | rng(),
			    rng() % 8 ? 2 : rng());
		if (rng() % 4 == 0) /* a ring, or anywhere */
			head[0] = rng() % 2 ? (b[5] + 1) | p :
					      (uint64_t)rng() << 32 | rng();
		for (unsigned k = 0; k < CALL_LANES; k++)
			call_lane(b, p, 0)[k] =
				rng() % 2 ? rng() % 4 | rng() % 8 << 5 |
						    (rng() % 8) << 8 :
					    (uint64_t)rng() << 40 | rng();
		kfd_hostcall_poll(queue);
	}
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	kfd_queue_print_stats(queue, &s);
	ok(s.damaged > 0, "rubbish in hostcalls is noticed (%llu times)",
	   (unsigned long long)s.damaged);
	is_u64(count_complaints(), 1, "and said once");
	close_queue();
}

/* Messages that are begun and never end: neither slow nor large. */
static void test_endless_messages(void)
{
	const uint64_t began = time_mono_ns();
	const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	struct kfd_print_stats s;
	size_t after;
	uint64_t *b;

	open_queue();
	b = call_buffer();
	for (uint64_t i = 0; i < 5000; i++) {
		for (unsigned k = 0; k < 64; k++)
			call_lane(b, i & b[5], k)[0] = 1 | 7u << 5;
		push_packet(b, i & b[5], UINT64_MAX, 2);
		kfd_hostcall_poll(queue);
	}
	ok(time_mono_ns() - began < 30000000000ull, "320,000 are begun soon");
	/* And one that is sound, after these. */
	memset(call_lane(b, 0, 0), 0, 64);
	call_lane(b, 0, 0)[0] = 3 | 2u << 5;
	memcpy(&call_lane(b, 0, 0)[2], "sound\n", 7);
	push_packet(b, 0, 1, 2);
	kfd_hostcall_poll(queue);
	has_str(text.data ? text.data : "", "sound\n", "a sound one is printed");
	for (uint64_t i = 0; i < 200000; i++) { /* each goes on and on */
		call_lane(b, 0, 0)[0] = 7u << 5 | (i % 300000) << 8;
		for (unsigned k = 1; k < 64; k++)
			call_lane(b, 0, k)[0] = 7u << 5 |
						((i * 64 + k) % 300000) << 8;
		push_packet(b, 0, UINT64_MAX, 2);
		kfd_hostcall_poll(queue);
	}
	after = mallinfo2().uordblks + mallinfo2().hblkhd;
	ok(after - before < 900u << 20, "they take %zu MiB at most",
	   (after - before) >> 20);
	kfd_queue_print_stats(queue, &s);
	is_u64(s.records, 1, "nothing else was printed");
	close_queue();
}

int main(void)
{
	const char *env = getenv("T0_SEED");
	const int times = getenv("T0_SLOW") ? 50000 : 1000;

	seed = env ? strtoull(env, NULL, 0) : 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	alarm(getenv("T0_SLOW") ? 600 : 120);
	if (!kfd_open(&dev, "soft", &e))
		quit();
	ok(fill_buffers(DATA "ring.co", "ring", times) > 0,
	   "rubbish in rings is noticed");
	ok(fill_buffers(DATA "opencl.co", "all", times) > 0,
	   "rubbish in linear buffers is noticed");
	test_rubbish(times);
	test_endless_messages();
	ok(kfd_close_check(dev, &e), "nothing is left behind (%s)", e.msg);
	buf_fini(&text);
	return plan_done();
}
