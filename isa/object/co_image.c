/*
 * isa/object/co_image.c - the image of a code object as the GPU sees it, and
 * the offload bundles that compilers wrap objects in.
 */
#include "isa/object/co_int.h"

#include <inttypes.h>
#include <string.h>

#include "isa/tables/tables.h"

/* ---- the image ---------------------------------------------------------- */

/*
 * The value of a relocation, in the notation of the ELF specification: S + A,
 * minus P where it is relative, upper half for _HI.
 */
static uint64_t reloc_value(const struct co *co, const struct co_reloc *r,
			    uint64_t base_va)
{
	uint64_t move = base_va - co->span_vaddr;
	uint64_t s = r->symbol_vaddr + (r->absolute ? 0 : move);
	uint64_t a = (uint64_t)r->addend, p = r->vaddr + move;

	switch (r->type) {
	case CO_RELOC_ABS32_HI:
		return (s + a) >> 32;
	case CO_RELOC_REL32:
	case CO_RELOC_REL32_LO:
	case CO_RELOC_REL64:
		return s + a - p;
	case CO_RELOC_REL32_HI:
		return (s + a - p) >> 32;
	case CO_RELOC_RELATIVE64:
		return move + a;
	default: /* ABS32, ABS32_LO, ABS64 */
		return s + a;
	}
}

static bool is_8_bytes(uint32_t type)
{
	return type == CO_RELOC_ABS64 || type == CO_RELOC_REL64 ||
	       type == CO_RELOC_RELATIVE64;
}

bool co_image_build(const struct co *co, void *dst, size_t size_bytes,
		    uint64_t base_va, struct err *e)
{
	uint8_t *image = dst;

	if (size_bytes < co->span_bytes)
		return err_set(e, ERR_USAGE,
			       "the image needs 0x%" PRIx64 " bytes, got 0x%zx",
			       co->span_bytes, size_bytes);
	memset(image, 0, size_bytes);
	for (uint32_t i = 0; i < co->n_segments; i++) {
		const struct co_segment *s = &co->segments[i];

		memcpy(image + (s->vaddr - co->span_vaddr),
		       co->bytes + s->offset, s->filesz);
	}
	for (uint32_t i = 0; i < co->n_relocs; i++) {
		const struct co_reloc *r = &co->relocs[i];
		uint64_t v = reloc_value(co, r, base_va);

		if (r->undefined)
			return err_set(
				e, ERR_INPUT,
				"undefined symbol %s (relocation at 0x%" PRIx64
				"): link it into the object",
				r->symbol, r->vaddr);
		if (r->type != CO_RELOC_NONE)
			memcpy(image + (r->vaddr - co->span_vaddr), &v,
			       is_8_bytes(r->type) ? 8 : 4);
	}
	return true;
}

/* ---- offload bundles ---------------------------------------------------- */

#define BUNDLE_MAGIC	   "__CLANG_OFFLOAD_BUNDLE__"
#define BUNDLE_MAX_ENTRIES 4096

/*
 * A bundle is: magic (24 bytes), u64 count, then per entry u64 offset,
 * u64 size, u64 length of its name, the name
 * ("hipv4-amdgcn-amd-amdhsa--gfx1100").
 */
struct bundle {
	const uint8_t *bytes;
	size_t len, at;
};

static bool bundle_u64(struct bundle *b, uint64_t *out)
{
	if (b->len - b->at < 8)
		return false;
	memcpy(out, b->bytes + b->at, 8);
	b->at += 8;
	return true;
}

/*
 * Does the entry's name end in this chip, alone or with features
 * ("gfx90a:xnack+")?
 */
static bool name_is_for(const char *name, size_t n, const char *chip)
{
	const char *colon = memchr(name, ':', n);
	size_t end = colon ? (size_t)(colon - name) : n, c = strlen(chip);

	return end > c && name[end - c - 1] == '-' &&
	       !memcmp(name + end - c, chip, c);
}

static void list_name(struct buf *names, const char *name, size_t n)
{
	buf_adds(names, names->len ? ", " : "");
	for (size_t i = 0; i < n && i < 80 && names->len < 400; i++)
		buf_addc(names,
			 name[i] >= ' ' && name[i] < 127 ? name[i] : '?');
}

/* The next entry; false if it is malformed. */
static bool bundle_entry(struct bundle *b, uint64_t *off, uint64_t *size,
			 const char **name, size_t *name_len)
{
	uint64_t n;

	if (!bundle_u64(b, off) || !bundle_u64(b, size) || !bundle_u64(b, &n) ||
	    n > b->len - b->at || *off > b->len || *size > b->len - *off)
		return false;
	*name = (const char *)b->bytes + b->at;
	*name_len = n;
	b->at += n;
	return true;
}

bool co_unbundle(const void *bytes, size_t len, const char *chip,
		 const void **out, size_t *out_len, struct err *e)
{
	struct bundle b = { bytes, len, strlen(BUNDLE_MAGIC) };
	struct buf names = { 0 };
	uint64_t count, off, size;
	bool found = false, exact = false;

	chip = chip ? chip : "gfx1100";
	const struct isa_chip *known = isa_chip_find(chip);
	const char *generic = known ? isa_gen_info(known->gen)->generic : chip;
	*out = bytes;
	*out_len = len;
	if (len < b.at || memcmp(bytes, BUNDLE_MAGIC, b.at))
		return true;
	if (!bundle_u64(&b, &count) || count > BUNDLE_MAX_ENTRIES)
		return err_set(e, ERR_INPUT,
			       "offload bundle: truncated, or more than %d "
			       "entries",
			       BUNDLE_MAX_ENTRIES);
	for (uint64_t i = 0; i < count && !exact; i++) {
		const char *name;
		size_t n;

		if (!bundle_entry(&b, &off, &size, &name, &n)) {
			err_set(e, ERR_INPUT,
				"offload bundle: entry %" PRIu64 " of %" PRIu64
				" leaves the file's %zu bytes",
				i, count, len);
			found = false;
			goto out;
		}
		list_name(&names, name, n);
		exact = name_is_for(name, n, chip);
		if (!exact && !name_is_for(name, n, generic))
			continue;
		found = true;
		*out = b.bytes + off;
		*out_len = size;
	}
	if (!found) {
		err_set(e, ERR_INPUT, "offload bundle without %s; it has: %s",
			chip, names.len ? names.data : "nothing");
	}
out:
	buf_fini(&names);
	return found;
}
