/*
 * compiler/driver/prebuilt.c - the pack of prebuilt objects: found in the
 * program, written by the build.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/vec.h"
#include "compiler/driver/cc.h"

/* The bytes of build/MODE/pack.bin, in programs linked with pack.o. */
extern const uint8_t t0_pack[] __attribute__((weak));
extern const uint8_t t0_pack_end[] __attribute__((weak));

static const char magic[8] = "T0PACK1";

struct header {
	char magic[8];
	uint64_t count;
	struct object_key build;
};

/* On disk: offsets from the pack's beginning. */
struct entry {
	struct object_key key;
	uint64_t at, len;
};

enum { ALIGN = 16 };

struct prebuilt prebuilt_embedded(void)
{
	if (!t0_pack)
		return (struct prebuilt){ 0 };
	return (struct prebuilt){ t0_pack, (size_t)(t0_pack_end - t0_pack) };
}

static struct header header_of(const struct prebuilt *p)
{
	struct header h = { 0 };

	if (p->data && p->size_bytes >= sizeof(h))
		memcpy(&h, p->data, sizeof(h));
	return h;
}

static struct entry entry_of(const struct prebuilt *p, uint64_t i)
{
	struct entry x;

	memcpy(&x, p->data + sizeof(struct header) + i * sizeof(x), sizeof(x));
	return x;
}

uint32_t prebuilt_count(const struct prebuilt *p)
{
	return (uint32_t)header_of(p).count;
}

/* The program itself: whatever was compiled otherwise is another program. */
static struct object_key program_hash(void)
{
	struct buf self = { 0 };
	struct object_key key = { 0 };

	if (file_read("/proc/self/exe", 0, &self, NULL)) {
		XXH128_hash_t h = XXH3_128bits(self.data, self.len);
		key = (struct object_key){ h.high64, h.low64 };
	}
	buf_fini(&self);
	return key;
}

struct object_key prebuilt_build(const struct prebuilt *p)
{
	return p->data ? header_of(p).build : program_hash();
}

static int compare_keys(struct object_key a, struct object_key b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	return a.lo < b.lo ? -1 : a.lo > b.lo;
}

const uint8_t *prebuilt_find(const struct prebuilt *p, struct object_key key,
			     size_t *len_bytes)
{
	uint64_t low = 0, high = header_of(p).count;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		struct entry x = entry_of(p, mid);
		int c = compare_keys(key, x.key);

		if (!c) {
			*len_bytes = x.len;
			return p->data + x.at;
		}
		*(c < 0 ? &high : &low) = c < 0 ? mid : mid + 1;
	}
	return NULL;
}

bool prebuilt_check(const struct prebuilt *p, struct err *e)
{
	struct header h = header_of(p);
	uint64_t room = p->size_bytes - sizeof(h);
	struct object_key last = { 0 };

	if (p->size_bytes < sizeof(h) ||
	    memcmp(h.magic, magic, sizeof(magic)) ||
	    h.count > room / sizeof(struct entry))
		return err_set(e, ERR_INPUT, "%zu bytes are no pack of code "
			       "objects", p->size_bytes);
	for (uint64_t i = 0; i < h.count; i++) {
		struct entry x = entry_of(p, i);

		if (x.at > p->size_bytes || x.len > p->size_bytes - x.at ||
		    (i && compare_keys(last, x.key) >= 0))
			return err_set(e, ERR_INPUT, "entry %llu of a pack of "
				       "code objects is damaged",
				       (unsigned long long)i);
		last = x.key;
	}
	return true;
}

/* ------------------------------------------------------------ writing ---- */

void prebuilt_add(struct prebuilt_writer *w, struct object_key key,
		  const void *object, size_t len_bytes)
{
	struct prebuilt_item x = { key, w->objects.len, len_bytes };

	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct prebuilt_item *o = &w->item[i];
		if (o->len == len_bytes &&
		    !memcmp(w->objects.data + o->at, object, len_bytes))
			x.at = o->at;
	}
	if (x.at == w->objects.len) {
		buf_add(&w->objects, object, len_bytes);
		while (w->objects.len % ALIGN)
			buf_addc(&w->objects, 0);
	}
	VEC_GROW(w->item, w->n_items, 1, w->cap_items);
	w->item[w->n_items++] = x;
}

static int by_key(const void *a, const void *b)
{
	return compare_keys(((const struct prebuilt_item *)a)->key,
			    ((const struct prebuilt_item *)b)->key);
}

bool prebuilt_write(struct prebuilt_writer *w, struct buf *out, struct err *e)
{
	struct header h = { .count = w->n_items, .build = program_hash() };
	uint64_t first = sizeof(h) + w->n_items * sizeof(struct entry);

	first = (first + ALIGN - 1) / ALIGN * ALIGN;
	memcpy(h.magic, magic, sizeof(magic));
	buf_add(out, &h, sizeof(h));
	if (w->n_items)
		qsort(w->item, w->n_items, sizeof(*w->item), by_key);
	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct prebuilt_item *x = &w->item[i];
		struct entry to = { x->key, first + x->at, x->len };

		if (i && !compare_keys(x[-1].key, x->key))
			return err_set(e, ERR_INPUT, "two objects of a pack "
				       "have one key");
		buf_add(out, &to, sizeof(to));
	}
	while (out->len % ALIGN)
		buf_addc(out, 0);
	buf_add(out, w->objects.data, w->objects.len);
	return true;
}

void prebuilt_writer_fini(struct prebuilt_writer *w)
{
	free(w->item);
	buf_fini(&w->objects);
	*w = (struct prebuilt_writer){ 0 };
}
