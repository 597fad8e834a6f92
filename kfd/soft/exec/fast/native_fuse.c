/*
 * kfd/soft/exec/fast/native_fuse.c - superblocks with functions of the host,
 * and the pages that these are in.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "kfd/soft/exec/fast/native_host.h"

/* Where soft_native_at() says; code begins in a line of the caches. */
static const uint32_t constant[(SOFT_NATIVE_CONSTANTS + 15) / 16 * 16] = {
#define K(name, value) value,
#define Q(name, value) (uint32_t)(value), (uint32_t)((value) >> 32),
#define F(name, ...) __VA_ARGS__,
#include "kfd/soft/exec/fast/constants.def"
#undef F
#undef Q
#undef K
};

/* --------------------------------------------------------------- pages ---- */

#define PAGES_BYTES ((size_t)256 << 10)
#define PAGE	    ((size_t)4096)
#define LINE	    ((size_t)64)

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

static struct soft_native *add_pages(struct soft_native **pages, size_t bytes)
{
	size_t size = bytes > PAGES_BYTES ? round_up(bytes, PAGE) : PAGES_BYTES;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct soft_native *n;

	if (p == MAP_FAILED)
		return NULL;
	n = xcalloc(1, sizeof(*n));
	*n = (struct soft_native){ .older = *pages, .code = p,
				   .size_bytes = size };
	*pages = n;
	return n;
}

/*
 * Where more code goes: into pages that have none yet, since what is executable
 * stays so.  It begins in its first page where the last one's ended: all at
 * the same offset would meet in the same sets of the caches.
 */
static size_t next_offset(const struct soft_native *n)
{
	return round_up(n->used_bytes, PAGE) + n->used_bytes % PAGE;
}

/* Where the code now is; NULL: the system does not want it. */
static uint8_t *add_code(struct soft_native **pages,
			 const struct soft_code *code)
{
	struct soft_native *n = *pages;
	size_t at, first;

	if (!n || next_offset(n) + code->bytes.len > n->size_bytes)
		n = add_pages(pages, code->bytes.len);
	if (!n)
		return NULL;
	at = next_offset(n);
	first = at - at % PAGE;
	memcpy(n->code + at, code->bytes.data, code->bytes.len);
	n->used_bytes = round_up(at + code->bytes.len, LINE);
	if (mprotect(n->code + first,
		     round_up(at + code->bytes.len, PAGE) - first,
		     PROT_READ | PROT_EXEC))
		return NULL;
	return n->code + at;
}

void soft_native_free(struct soft_native *n)
{
	while (n) {
		struct soft_native *older = n->older;

		munmap(n->code, n->size_bytes);
		free(n);
		n = older;
	}
}

/* ---------------------------------------------------------------- fuse ---- */

/* One that is a function: `b` says where its code is. */
static void add_native(struct buf *out, size_t code,
		       const struct soft_microop *next)
{
	const struct soft_microop m = { .b = code, .u = next->u,
					.left = next->left };

	buf_add(out, &m, sizeof(m));
}

/* Those whose addresses are in the same registers are often in one mapping. */
static void number_lines(struct soft_code_cache *c, struct soft_microop *m,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		if (!soft_native_in_memory(&m[i]))
			continue;
		while (j < i && !(m[j].a == m[i].a && m[j].c == m[i].c &&
				  soft_native_in_memory(&m[j])))
			j++;
		m[i].mask_out = j < i ? m[j].mask_out :
					c->n_lines++ % SOFT_LINES;
	}
}

/* A run, and a microop before it and wherever it is entered. */
static void add_run(struct soft_code_cache *c, struct buf *out,
		    struct soft_code *code, struct soft_microop *m, size_t n,
		    const uint8_t *temp, uint32_t mode)
{
	const struct soft_native_entry *e, *end;
	struct buf entries = { 0 };

	number_lines(c, m, n);
	add_native(out, code->bytes.len, m);
	soft_native_emit(c, code, temp, m, n, mode, &entries);
	e = (const struct soft_native_entry *)(const void *)entries.data;
	end = e + entries.len / sizeof(*e);
	for (size_t i = 0; i < n; i++) {
		if (e < end && e->before == i)
			add_native(out, e++->code, &m[i]);
		buf_add(out, m + i, sizeof(*m));
	}
	buf_fini(&entries);
}

static void add_runs(struct soft_code_cache *c, struct buf *out,
		     struct soft_code *code, struct soft_microop *m, size_t n,
		     const uint8_t *temp, uint32_t mode)
{
	for (size_t i = 0; i < n;) {
		size_t run = soft_native_count(m + i, n - i, mode);

		if (run >= SOFT_NATIVE_LEAST)
			add_run(c, out, code, m + i, run, temp, mode);
		else
			buf_add(out, m + i, (run ? run : 1) * sizeof(*m));
		i += run ? run : 1;
	}
}

struct soft_microop *soft_native_fuse(struct soft_code_cache *c,
				      struct soft_microop *m, size_t n,
				      const uint8_t *temp, uint32_t mode)
{
	struct soft_ymm ymm;
	struct soft_code code = { .ymm = soft_simd() == &soft_simd_v4 ? NULL :
									&ymm };
	struct buf out = { 0 };
	struct soft_microop *all;
	uint8_t *at = NULL;

	if (c->most == SOFT_HOST_CODE && soft_simd() != &soft_simd_v2) {
		buf_add(&code.bytes, constant, sizeof(constant));
		add_runs(c, &out, &code, m, n, temp, mode);
	}
	if (out.len > n * sizeof(*m)) {
		at = add_code(&c->native, &code);
		if (!at)
			soft_code_cache_limit(c, SOFT_MICROOPS);
	}
	if (at) {
		n = out.len / sizeof(*m);
		m = (struct soft_microop *)(void *)out.data;
	}
	all = xaligned(64, n * sizeof(*m));
	memcpy(all, m, n * sizeof(*m));
	for (size_t i = 0; i < n; i++)
		if (!all[i].fn)
			all[i].fn = (soft_microop_fn *)(void *)(at + all[i].b);
	buf_fini(&out);
	buf_fini(&code.bytes);
	return all;
}
