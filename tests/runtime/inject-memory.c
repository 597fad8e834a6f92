/*
 * Memory that is short, that the host cannot see, or that will not go away.
 */
#include "tests/runtime/inject.h"

static uint8_t pattern(size_t i, uint32_t seed)
{
	return (uint8_t)((i * 2654435761u + seed) >> 13);
}

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = pattern(i, seed);
}

static size_t differ(const uint8_t *p, size_t n, uint32_t seed)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i++)
		bad += p[i] != pattern(i, seed);
	return bad;
}

/* Write, copy, read through every pair of domains, at odd offsets. */
static void copies(struct rig *r, const enum kfd_domain *domain, int n,
		   const char *name)
{
	const size_t size = 70000;
	static const size_t off[] = { 0, 1, 16, 4093 };
	uint8_t *in = xmalloc(size), *out = xmalloc(size);

	fill(in, size, 3);
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			struct kfd_mem *x, *y;
			bool good = kfd_mem_alloc(r->dev, domain[a],
						  size + 8192, "x", &x,
						  &r->e) &&
				    kfd_mem_alloc(r->dev, domain[b],
						  size + 8192, "y", &y, &r->e);
			size_t bad = 0;

			for (size_t i = 0; good && i < ARRAY_SIZE(off); i++) {
				const size_t to = off[ARRAY_SIZE(off) - 1 - i];

				memset(out, 0, size);
				good = kfd_write(r->dev, x, off[i], in, size,
						 &r->e) &&
				       kfd_copy(r->dev, y, to, x, off[i], size,
						&r->e) &&
				       kfd_read(r->dev, out, y, to, size,
						&r->e);
				bad += differ(out, size, 3);
			}
			ok(good, "%s: copies from %d to %d (%s)", name,
			   (int)domain[a], (int)domain[b], r->e.msg);
			is_u64(bad, 0, "%s: bytes right from %d to %d", name,
			       (int)domain[a], (int)domain[b]);
			kfd_mem_free(r->dev, x);
			kfd_mem_free(r->dev, y);
		}
	free(in);
	free(out);
}

static void test_small_bar(void)
{
	static const enum kfd_domain seen[] = { KFD_VRAM_PRIVATE, KFD_GTT,
						KFD_USERPTR };
	const struct soft_options o = { .small_bar = true };
	const uint32_t canary[4] = { 0xdeadbeef, 1, 2, 3 };
	uint32_t back[4];
	struct kfd_mem *m;
	struct rig r;

	if (!ok(rig_open(&r, &o, NULL, 0), "small BAR: opens (%s)", r.e.msg))
		return;
	ok(rig_run(&r, 77, 5000), "small BAR: code in VRAM runs (%s)",
	   r.e.msg);
	struct soft_census c;
	soft_census(r.d, &c);
	ok(c.vram_bytes >= 1 << 20, "small BAR: the code is in VRAM");
	ok(!kfd_mem_alloc(r.dev, KFD_VRAM, 4096, "seen", &m, &r.e),
	   "small BAR: memory for both sides is refused");
	rig_error(&r.e, ERR_UNSUPPORTED, 2, "small BAR", "small BAR",
		  "enable Resizable BAR");
	r.e = (struct err){ 0 };
	copies(&r, seen, 3, "small BAR");
	ok(kfd_mem_alloc(r.dev, KFD_VRAM_PRIVATE, 64, "tiny", &m, &r.e) &&
		   !m->cpu && kfd_write(r.dev, m, 48, canary, 16, &r.e) &&
		   kfd_read(r.dev, back, m, 48, 16, &r.e),
	   "small BAR: a few bytes at the end (%s)", r.e.msg);
	is_mem(back, canary, 16, "small BAR: they come back");
	ok(!kfd_write(r.dev, m, 49, canary, 16, &r.e) &&
		   r.e.code == ERR_USAGE,
	   "small BAR: a byte past the end is refused");
	kfd_mem_free(r.dev, m);
	rig_close(&r, 60000, "small BAR");
}

static void test_large_bar(void)
{
	static const enum kfd_domain all[] = { KFD_VRAM, KFD_VRAM_PRIVATE,
					       KFD_GTT, KFD_USERPTR };
	struct rig r;

	if (!ok(rig_open(&r, NULL, NULL, 0), "large BAR: opens"))
		return;
	copies(&r, all, 4, "large BAR");
	ok(!kfd_copy(r.dev, r.out, 10, r.out, 0, 100, &r.e) &&
		   r.e.code == ERR_USAGE,
	   "overlapping places are refused");
	rig_close(&r, 60000, "large BAR");
}

/* The copy queue has died of a hang; the next copy gets another. */
static void test_copy_survives(void)
{
	const struct soft_inject rule = { .what = SOFT_INJECT_ILLEGAL };
	uint32_t v = 4711, back = 0;
	struct kfd_mem *m;
	struct rig r;

	if (!ok(rig_open(&r, NULL, &rule, 1) &&
			kfd_mem_alloc(r.dev, KFD_VRAM_PRIVATE, 4096, "m", &m,
				      &r.e),
		"a device whose first packet fails"))
		return;
	ok(!kfd_write(r.dev, m, 0, &v, 4, &r.e), "the first copy fails");
	has_str(r.e.msg, "writing 'm'", "it says where to");
	r.e = (struct err){ 0 };
	ok(kfd_write(r.dev, m, 0, &v, 4, &r.e) &&
		   kfd_read(r.dev, &back, m, 0, 4, &r.e) && back == 4711,
	   "the next one works (%s)", r.e.msg);
	rig_close(&r, 3000, "copy after a fault");
}

static void test_vram_full(void)
{
	const struct soft_options o = { .vram_bytes = 64 << 20 };
	struct kfd_pool_stats s;
	struct kfd_mem *a, *b;
	struct rig r;

	if (!ok(rig_open(&r, &o, NULL, 0), "a card of 64 MiB (%s)", r.e.msg))
		return;
	struct kfd_pool *p = kfd_pool_new(r.dev, KFD_VRAM, 0);
	ok(kfd_pool_get(p, 40 << 20, "first", &a, &r.e), "40 MiB are had");
	kfd_pool_put(p, a);
	kfd_pool_stats(p, &s);
	is_u64(s.idle_bytes, 40 << 20, "and kept when given back");
	ok(kfd_mem_alloc(r.dev, KFD_VRAM, 30 << 20, "second", &b, &r.e),
	   "30 more: the pool lets go first (%s)", r.e.msg);
	kfd_pool_stats(p, &s);
	is_u64(s.idle_bytes, 0, "of all that it kept");
	ok(!kfd_mem_alloc(r.dev, KFD_VRAM, 40 << 20, "third", &a, &r.e),
	   "40 more are not there");
	rig_error(&r.e, ERR_NOMEM, 2, "VRAM full", "41943040 bytes of VRAM",
		  "of 67108864 are available");
	ok(kfd_pool_free(p, &r.e), "the pool ends clean");
	rig_close(&r, 3000, "VRAM full");
}

static void test_pool(void)
{
	struct kfd_pool_stats s;
	struct kfd_mem *m[3], *big;
	struct rig r;

	if (!ok(rig_open(&r, NULL, NULL, 0), "a device for a pool"))
		return;
	struct kfd_pool *p = kfd_pool_new(r.dev, KFD_GTT, 1 << 20);
	for (int i = 0; i < 3; i++)
		kfd_pool_get(p, 5000, "buffer", &m[i], &r.e);
	const uint64_t va = m[1]->va;
	is_u64(m[1]->size_bytes, 5000, "a buffer has the size asked for");
	kfd_pool_put(p, m[1]);
	ok(kfd_pool_get(p, 4500, "again", &m[1], &r.e) && m[1]->va == va,
	   "a buffer given back is used again");
	is_str(m[1]->name, "again", "under its new name");
	is_u64(m[1]->size_bytes, 4500, "and size");
	ok(kfd_pool_get(p, 4 << 20, "big", &big, &r.e), "a big one");
	kfd_pool_put(p, big);
	kfd_pool_stats(p, &s);
	is_u64(s.gets, 5, "five were asked for");
	is_u64(s.hits, 1, "one came from the pool");
	is_u64(s.used, 3, "three are out");
	is_u64(s.idle_bytes, 0, "more than the limit is not kept");
	ok(s.peak_bytes >= (4 << 20) + 3 * 5120, "the peak is known");
	ok(!kfd_pool_free(p, &r.e), "ending it now finds the leak");
	has_str(r.e.msg, "3 buffers", "and counts it");
	/* Addresses of code never come back, whatever is allocated. */
	const struct kfd_kernel *k;
	uint64_t code[64], reused = 0;

	for (int i = 0; i < 64; i++) {
		static uint32_t big_code[300000]; /* a block of its own */

		big_code[0] = 0xbfb00000;
		rig_kernel(&r, "k", big_code, sizeof(big_code), &k);
		code[i] = k->object_va;
		kfd_code_unload(k->code);
		kfd_mem_alloc(r.dev, KFD_VRAM, sizeof(big_code), "d", &big,
			      &r.e);
		for (int j = 0; j <= i; j++)
			reused += big->va <= code[j] &&
				  code[j] < big->va + big->size_bytes;
		kfd_mem_free(r.dev, big);
	}
	is_u64(reused, 0, "no address of code is ever given to data");
	rig_close(&r, 5000, "pool");
}

static void test_leak_check(void)
{
	struct kfd_mem *m;
	struct rig r;

	if (!ok(rig_open(&r, NULL, NULL, 0), "a device to leave things on"))
		return;
	kfd_mem_alloc(r.dev, KFD_VRAM, 12345, "forgotten", &m, &r.e);
	ok(!kfd_close_check(r.dev, &r.e), "closing finds what was left");
	has_str(r.e.msg, "'forgotten' (12345 bytes)", "by name");
	has_str(r.e.msg, "queue 0", "the queue, too");
	ok(rig_begin(&r, NULL, NULL, 0) && rig_device(&r), "another device");
	kfd_mem_free(r.dev, r.out);
	kfd_queue_free(r.q, NULL);
	kfd_code_unload(r.store->code);
	ok(kfd_close_check(r.dev, &r.e), "a clean end is one (%s)", r.e.msg);
}

/* FREE says EBUSY: everything else goes on. */
static void test_stubborn(void)
{
	const struct soft_inject rule = { .what = SOFT_INJECT_IOCTL,
					  .nr = KFD_NR_FREE_MEMORY_OF_GPU,
					  .err = EBUSY, .after = 1 };
	struct rig r;

	ok(rig_open(&r, NULL, &rule, 1) && rig_run(&r, 4, 5000),
	   "a device that will not free one object");
	is_str(rig_end(&r, 1) ? "more" : "that one", "that one",
	       "closing leaves that one and nothing else");
}

int main(void)
{
	test_small_bar();
	test_large_bar();
	test_copy_survives();
	test_vram_full();
	test_pool();
	test_leak_check();
	test_stubborn();
	return plan_done();
}
