/*
 * probes/tiers/tiers_memory.c - tier 3: memory.
 *
 * Data comes back as it was written, in every kind of memory, also far from
 * the beginning of a buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/tiers/tiers.h"

#define BLOCK_BYTES (1u << 20)
#define FAR_BYTES   (5ull << 30)

enum pattern { ADDRESS, CHECKER, RANDOM, PATTERNS };

static const struct {
	enum kfd_domain domain;
	const char *name;
} kinds[] = {
	{ KFD_VRAM, "VRAM" },
	{ KFD_VRAM_PRIVATE, "private VRAM" },
	{ KFD_GTT, "GTT" },
	{ KFD_USERPTR, "host pages" },
};

static uint32_t pattern_word(enum pattern p, uint64_t i, uint64_t seed)
{
	switch (p) {
	case ADDRESS:
		return (uint32_t)i * 4;
	case CHECKER:
		return i & 1 ? 0xaaaaaaaa : 0x55555555;
	default:
		seed += i;
		return (uint32_t)random_next(&seed);
	}
}

/* Into `m`, by the device into `copy`, and back. */
static bool round_trip(struct tiers *t, struct kfd_mem *m,
		       struct kfd_mem *copy, uint32_t *host, enum pattern p,
		       struct err *e)
{
	const uint32_t n = BLOCK_BYTES / 4;

	for (uint32_t i = 0; i < n; i++)
		host[i] = pattern_word(p, i, t->o->seed);
	if (!kfd_write(t->dev, m, 0, host, BLOCK_BYTES, e) ||
	    !kfd_copy(t->dev, copy, 0, m, 0, BLOCK_BYTES, e))
		return false;
	memset(host, 0, BLOCK_BYTES);
	if (!kfd_read(t->dev, host, copy, 0, BLOCK_BYTES, e))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (host[i] != pattern_word(p, i, t->o->seed))
			return err_set(e, ERR_DEVICE,
				       "pattern %d: dword %u is 0x%08x, wanted "
				       "0x%08x", (int)p, i, host[i],
				       pattern_word(p, i, t->o->seed));
	return true;
}

static bool one_kind(struct tiers *t, enum kfd_domain domain,
		     struct kfd_mem *copy, uint32_t *host, struct err *e)
{
	struct kfd_mem *m;
	bool good;

	if (!kfd_mem_alloc(t->dev, domain, BLOCK_BYTES, "tier 3", &m, e))
		return false;
	good = true;
	for (int p = 0; p < PATTERNS && good; p++)
		good = round_trip(t, m, copy, host, (enum pattern)p, e);
	kfd_mem_free(t->dev, m);
	return good;
}

/* A word each at places that differ only above bit 31. */
static bool check_far_words(struct tiers *t, struct err *e)
{
	static const uint64_t at[] = { 0, 1ull << 31, (1ull << 32) - 16,
				       1ull << 32, (1ull << 32) + (1u << 29),
				       FAR_BYTES - 16 };
	struct kfd_mem *m;
	bool good = true;

	if (!kfd_mem_alloc(t->dev, KFD_VRAM_PRIVATE, FAR_BYTES, "tier 3 far",
			   &m, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(at) && good; i++) {
		const uint64_t v[2] = { at[i] ^ t->o->seed, ~at[i] };

		good = kfd_write(t->dev, m, at[i], v, 16, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(at) && good; i++) {
		uint64_t v[2] = { 0 };

		good = kfd_read(t->dev, v, m, at[i], 16, e);
		if (good && (v[0] != (at[i] ^ t->o->seed) || v[1] != ~at[i]))
			good = err_set(e, ERR_DEVICE,
				       "offset 0x%llx holds what "
				       "belongs to 0x%llx",
				       (unsigned long long)at[i],
				       (unsigned long long)~v[1]);
	}
	kfd_mem_free(t->dev, m);
	return good;
}

bool tiers_memory(struct tiers *t)
{
	uint32_t *host = xmalloc(BLOCK_BYTES);
	struct kfd_mem *copy;
	struct err e = { 0 };
	bool all = true;

	if (!kfd_mem_alloc(t->dev, KFD_VRAM_PRIVATE, BLOCK_BYTES,
			   "tier 3 copy", &copy, &e)) {
		free(host);
		return tiers_fail(t, "allocation", "%s", e.msg);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].domain == KFD_VRAM &&
		    !kfd_info(t->dev)->node.large_bar) {
			tiers_pass(t, kinds[i].name, "not there: small BAR");
			continue;
		}
		e = (struct err){ 0 };
		bool good = one_kind(t, kinds[i].domain, copy, host, &e);
		all = tiers_verdict(t, kinds[i].name, good, &e,
				    "3 patterns of 1 MiB went in, by the "
				    "device to VRAM, and back") && all;
	}
	kfd_mem_free(t->dev, copy);
	free(host);
	e = (struct err){ 0 };
	uint64_t left = 0;
	if (kfd_vram_available(t->dev, &left, NULL) &&
	    left < FAR_BYTES + (1u << 28))
		tiers_pass(t, "beyond 4 GiB", "not tried: %.2f GB are free",
			   (double)left * 1e-9);
	else
		all = tiers_verdict(t, "beyond 4 GiB", check_far_words(t, &e),
				    &e, "6 places in 5 GiB are apart") &&
		      all;
	return all;
}
