/*
 * base/mem.c - memory that is there or ends the process; buffers, arenas.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/vec.h"

_Noreturn void mem_ran_out(size_t size_bytes, const char *whose)
{
	fflush(stdout);
	fprintf(stderr, "%s: out of memory: %zu bytes wanted by %s\n",
		program_invocation_short_name, size_bytes, whose);
	_exit(EXIT_TROUBLE);
}

void *mem_new(size_t size_bytes, const char *whose)
{
	void *p = malloc(size_bytes ? size_bytes : 1);

	if (!p)
		mem_ran_out(size_bytes, whose);
	return p;
}

void *mem_zeros(size_t n, size_t size_bytes, const char *whose)
{
	size_t total;

	if (!size_mul(n, size_bytes, &total))
		mem_ran_out(SIZE_MAX, whose);
	void *p = calloc(total ? total : 1, 1);
	if (!p)
		mem_ran_out(total, whose);
	return p;
}

void *mem_resize(void *p, size_t size_bytes, const char *whose)
{
	p = realloc(p, size_bytes ? size_bytes : 1);
	if (!p)
		mem_ran_out(size_bytes, whose);
	return p;
}

void *mem_aligned(size_t align, size_t size_bytes, const char *whose)
{
	void *p;

	if (posix_memalign(&p, align, size_bytes ? size_bytes : 1))
		mem_ran_out(size_bytes, whose);
	return p;
}

char *mem_copy(const char *s, const char *whose)
{
	size_t size = strlen(s) + 1;

	return memcpy(mem_new(size, whose), s, size);
}

bool size_add(size_t a, size_t b, size_t *out)
{
	size_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*out = sum;
	return true;
}

bool size_mul(size_t a, size_t b, size_t *out)
{
	size_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

size_t vec_capacity(size_t cap, size_t n, size_t more, size_t cap_bytes,
		    size_t size_bytes)
{
	const size_t most = SIZE_MAX >> (8 * (sizeof(size_t) - cap_bytes) + 1);
	const size_t first = size_bytes < 64 ? 64 / size_bytes : 1;
	size_t need, total;

	if (!size_add(n, more, &need) || need > most)
		mem_ran_out(SIZE_MAX, MEM_HERE);
	cap = cap > most / 2 ? most : 2 * cap;
	if (cap < first && first <= most)
		cap = first;
	if (cap < need)
		cap = need;
	if (!size_mul(cap, size_bytes, &total))
		mem_ran_out(SIZE_MAX, MEM_HERE);
	return cap;
}

/* Room for `more` bytes and the NUL behind them. */
static void buf_grow(struct buf *b, size_t more)
{
	size_t need;

	if (!size_add(b->len, more, &need) || !size_add(need, 1, &need))
		mem_ran_out(SIZE_MAX, "a buffer");
	if (need <= b->cap)
		return;
	size_t cap;
	if (!size_mul(b->cap, 2, &cap) || cap < need)
		cap = need;
	if (cap < 64)
		cap = 64;
	b->data = mem_resize(b->data, cap, "a buffer");
	b->cap = cap;
}

void buf_add(struct buf *b, const void *data, size_t len_bytes)
{
	buf_grow(b, len_bytes);
	if (len_bytes)
		memcpy(b->data + b->len, data, len_bytes);
	b->len += len_bytes;
	b->data[b->len] = '\0';
}

void buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_html(struct buf *b, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '&':
			buf_adds(b, "&amp;");
			break;
		case '<':
			buf_adds(b, "&lt;");
			break;
		case '"':
			buf_adds(b, "&quot;");
			break;
		default:
			buf_addc(b, *s);
		}
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		BUG("buf_printf: bad format \"%s\"", fmt);
	buf_grow(b, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

enum {
	ARENA_ALIGN = 16,
	ARENA_BLOCK = 65536 /* bytes; larger requests get their own block */
};

struct arena_block {
	struct arena_block *next;
	size_t used, size; /* bytes of data[] */
	_Alignas(ARENA_ALIGN) char data[];
};

static struct arena_block *block_new(size_t size)
{
	size_t total;

	if (!size_add(size, sizeof(struct arena_block), &total))
		mem_ran_out(SIZE_MAX, MEM_HERE);
	struct arena_block *b = mem_zeros(1, total, "an arena");
	b->size = size;
	return b;
}

void *arena_alloc(struct arena *a, size_t size_bytes)
{
	size_t size;

	if (!size_add(size_bytes, ARENA_ALIGN - 1, &size))
		mem_ran_out(SIZE_MAX, MEM_HERE);
	size = size / ARENA_ALIGN * ARENA_ALIGN;
	struct arena_block *b = a->head;
	if (!b || b->size - b->used < size) {
		b = block_new(size > ARENA_BLOCK / 4 ? size : ARENA_BLOCK);
		/* A large block goes second: the head may still have room. */
		bool second = a->head && size > ARENA_BLOCK / 4;
		struct arena_block **at = second ? &a->head->next : &a->head;
		b->next = *at;
		*at = b;
	}
	void *p = b->data + b->used;
	b->used += size;
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t size = strlen(s) + 1;

	return memcpy(arena_alloc(a, size), s, size);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		BUG("arena_printf: bad format \"%s\"", fmt);
	char *s = arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void arena_fini(struct arena *a)
{
	while (a->head) {
		struct arena_block *next = a->head->next;
		free(a->head);
		a->head = next;
	}
}
