/*
 * engine/text/nfc.c - text in Unicode form NFC, by libutf8proc's tables.
 */
#include <stdlib.h>
#include <utf8proc.h>

#include "base/vec.h"
#include "engine/text/text_int.h"

#define OPTIONS	       (UTF8PROC_STABLE | UTF8PROC_COMPOSE)
#define MAX_DECOMPOSED 16 /* Unicode's longest canonical one has 4 */

/*
 * A starter that joins with nothing.  libutf8proc before 2.10 takes it for a
 * Hangul consonant that is not there, and drops it behind a syllable.
 */
#define HANGUL_TBASE 0x11a7

/* Code points, decomposed. */
struct points {
	utf8proc_int32_t *v;
	size_t n, cap;
};

static unsigned class_of(utf8proc_int32_t c)
{
	return (unsigned)utf8proc_get_property(c)->combining_class;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Combining marks v[n] in the order of their class, else as they were. */
static void marks_sort(utf8proc_int32_t *v, size_t n)
{
	uint64_t *key = xcalloc(n, sizeof(*key));
	utf8proc_int32_t *was = xcalloc(n, sizeof(*was));

	for (size_t i = 0; i < n; i++) {
		was[i] = v[i];
		key[i] = (uint64_t)class_of(v[i]) << 32 | i;
	}
	qsort(key, n, sizeof(*key), by_key);
	for (size_t i = 0; i < n; i++)
		v[i] = was[(uint32_t)key[i]];
	free(key);
	free(was);
}

/*
 * Not left to the library: it swaps neighbours, which takes minutes for a
 * megabyte of marks.
 */
static void marks_order(struct points *p)
{
	for (size_t i = 0, end; i < p->n; i = end + 1) {
		unsigned last = 0, class;
		bool sorted = true;
		for (end = i; end < p->n && (class = class_of(p->v[end]));
		     end++) {
			sorted &= class >= last;
			last = class;
		}
		if (!sorted)
			marks_sort(p->v + i, end - i);
	}
}

static void decompose_text(struct points *p, const char *s, size_t len)
{
	utf8proc_int32_t c;

	for (size_t at = 0; at < len;) {
		at += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)s + at,
					       (utf8proc_ssize_t)(len - at),
					       &c);
		vec_reserve(p, MAX_DECOMPOSED);
		p->n += (size_t)utf8proc_decompose_char(
			c, p->v + p->n, MAX_DECOMPOSED, OPTIONS, NULL);
	}
}

static void compose_text(utf8proc_int32_t *v, size_t n, struct buf *out)
{
	utf8proc_uint8_t s[4];
	utf8proc_ssize_t left =
		utf8proc_normalize_utf32(v, (utf8proc_ssize_t)n, OPTIONS);

	for (utf8proc_ssize_t i = 0; i < left; i++)
		buf_add(out, s, (size_t)utf8proc_encode_char(v[i], s));
}

void qwen_nfc(const char *s, size_t len, struct buf *out)
{
	struct points p = { 0 };

	decompose_text(&p, s, len);
	marks_order(&p);
	for (size_t i = 0, end; i < p.n; i = end) {
		for (end = i + 1; end < p.n && p.v[end] != HANGUL_TBASE;)
			end++;
		compose_text(p.v + i, end - i, out);
	}
	free(p.v);
}
