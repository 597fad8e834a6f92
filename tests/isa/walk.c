/*
 * First words in order: what decodes encodes to the same bytes, an
 * instruction's own bytes are enough for it, and nothing is read outside them.
 *
 * With T0_SLOW all 2^32 first words of gfx1100 are walked in both wave sizes
 * and every 16th of the other generations; without it one of some thousands,
 * of every 64 KiB of words at least fourteen.  The words behind the first are
 * drawn by its hash from a pool: any bits, or plain register numbers, which
 * most encodings take.
 *
 * By hand: tests/isa/walk CHIP WAVE STRIDE
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "tests/isa/gen.h"
#include "tests/isa/guard.h"
#include "tests/tap.h"

enum { POOL = 4096, TAIL = 4, CHUNKS = 4096, MAX_THREADS = 64 };

static uint32_t pool[POOL][TAIL];

/* v4, v8 or s[4:7], and so on, in each of the places that encodings use. */
static const uint32_t plain[] = {
	0x00000000, 0x00040804, 0x00041104, 0x04121104, 0xf8000000, 0x047c0804,
	0x80010804, 0x18021104, 0x7c000000, 0x0c7d0804, 0xd8010204, 0x006a1104,
};

static void fill_pool(void)
{
	struct isa_gen_state g = { .seed = 20260703, .gen = ISA_GFX11 };

	for (int i = 0; i < POOL; i++)
		for (int k = 0; k < TAIL; k++)
			pool[i][k] = i & 1 ? gen_u32(&g) :
				     plain[gen_below(&g, ARRAY_SIZE(plain))];
}

/* One walk that several threads share. */
struct walk {
	struct isa_target t;
	uint64_t stride;
	atomic_uint next; /* chunk */
	atomic_ullong accepted, refused, changed, greedy, outside;
};

struct tally {
	uint64_t accepted, refused, changed, greedy, outside;
};

/* `end`: the page's end; `room`: as much before it as a longest one needs. */
static void one(const struct isa_target *t, uint32_t word, uint8_t *end,
		uint8_t *room, struct tally *r)
{
	const uint32_t *tail = pool[(word * 0x9e3779b1u) >> 20];
	uint8_t out[ISA_MAX_SIZE_BYTES];
	struct isa_inst in, alone;

	memcpy(room, &word, 4);
	memcpy(room + 4, tail, sizeof(pool[0]));
	if (isa_decode(t, room, ISA_MAX_SIZE_BYTES, &in)) {
		r->refused++;
		return;
	}
	r->accepted++;
	if (isa_encode(&in, out) != in.size_bytes ||
	    memcmp(out, room, in.size_bytes))
		r->changed++;
	/* Exactly its bytes, and four less. */
	memcpy(end - in.size_bytes, out, in.size_bytes);
	if (isa_decode(t, end - in.size_bytes, in.size_bytes, &alone) ||
	    alone.op != in.op || alone.size_bytes != in.size_bytes)
		r->greedy++;
	memcpy(end - in.size_bytes + 4, out, in.size_bytes - 4u);
	if (!isa_decode(t, end - in.size_bytes + 4, in.size_bytes - 4u, &alone))
		r->outside++;
}

static void *walker(void *arg)
{
	struct walk *w = arg;
	uint8_t *end = guard_end(1);
	uint8_t *room = guard_end(1) - ISA_MAX_SIZE_BYTES;
	struct tally r = { 0 };
	unsigned chunk;

	while ((chunk = atomic_fetch_add(&w->next, 1)) < CHUNKS) {
		uint64_t size = (UINT64_C(1) << 32) / CHUNKS;
		uint64_t from = chunk * size;

		/* Multiples of the stride, wherever chunks begin. */
		for (uint64_t v =
			     (from + w->stride - 1) / w->stride * w->stride;
		     v < from + size; v += w->stride)
			one(&w->t, (uint32_t)v, end, room, &r);
	}
	atomic_fetch_add(&w->accepted, r.accepted);
	atomic_fetch_add(&w->refused, r.refused);
	atomic_fetch_add(&w->changed, r.changed);
	atomic_fetch_add(&w->greedy, r.greedy);
	atomic_fetch_add(&w->outside, r.outside);
	return NULL;
}

static void walk(const char *chip, int wave, uint64_t stride)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	struct walk w = { .t = { .wave = wave }, .stride = stride };
	pthread_t thread[MAX_THREADS];
	uint64_t start = time_mono_ns();
	int threads = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;

	if (!isa_chip_parse(chip, &w.t.gen))
		BUG("no chip %s", chip);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, walker, &w))
			BUG("no thread");
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	diag("%s wave%d, every %llu. word: %llu accepted, %llu refused, %.0f s "
	     "on %d threads", chip, wave, (unsigned long long)stride,
	     (unsigned long long)w.accepted, (unsigned long long)w.refused,
	     (double)(time_mono_ns() - start) / 1e9, threads);
	is_u64(w.accepted + w.refused,
	       ((UINT64_C(1) << 32) + stride - 1) / stride,
	       "%s wave%d: every word was walked", chip, wave);
	ok(w.accepted && w.refused, "%s wave%d: some decode, some do not", chip,
	   wave);
	is_u64(w.changed, 0, "%s wave%d: encoding gives the bytes back", chip,
	       wave);
	is_u64(w.greedy, 0, "%s wave%d: an instruction's bytes are enough",
	       chip, wave);
	is_u64(w.outside, 0, "%s wave%d: fewer bytes are none", chip, wave);
}

int main(int argc, char **argv)
{
	static const char *const others[] = { "gfx1010", "gfx1030", "gfx1150",
					      "gfx1201" };
	const char *slow = getenv("T0_SLOW");
	bool all = slow && *slow;

	fill_pool();
	if (argc > 3) {
		walk(argv[1], atoi(argv[2]), strtoull(argv[3], NULL, 0));
		return plan_done();
	}
	walk("gfx1100", 32, all ? 1 : 4603);
	walk("gfx1100", 64, all ? 1 : 4621);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		walk(others[i], 32, all ? 16 : 9241);
		walk(others[i], 64, all ? 16 : 9257);
	}
	return plan_done();
}
