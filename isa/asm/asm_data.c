/*
 * isa/asm/asm_data.c - directives that put bytes into the current section.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm_int.h"

enum { S_NOP = 0xbf800000u }; /* what code is padded with */

/* ------------------------------------------------------------ alignment ----
 */

static bool emit_padding(struct directive *d, uint64_t n, bool given,
			 uint64_t value)
{
	bool code = asm_here(d->a)->flags & ISA_SHF_EXEC;
	int unit = d->arg & 7 ? d->arg & 7 : 1;

	if (!given && code) {
		value = S_NOP;
		unit = 4;
		if (!asm_emit_fill(d->a, n % 4, 0))
			return false;
		n -= n % 4;
	}
	if (asm_here(d->a)->type == ISA_SHT_NOBITS)
		return asm_emit_fill(d->a, n, 0);
	if (n % unit)
		return asm_error(d->a, NULL,
				 "the padding is no multiple of "
				 "the fill value's size");
	for (; n; n -= unit)
		if (!asm_emit(d->a, &value, unit))
			return false;
	return true;
}

/* arg: size of the fill value, and 8 if the number is a power of two. */
bool dir_align(struct directive *d)
{
	int64_t n, value = 0, most = INT64_MAX;
	const char *at = d->p;
	bool given = false;
	struct isa_section *s;
	uint64_t gap;

	if (!dir_number(d, 0, d->arg & 8 ? 16 : 65536, &n))
		return false;
	n = d->arg & 8 ? INT64_C(1) << n : n ? n : 1;
	if (n & (n - 1))
		return asm_error(d->a, at, "an alignment is a power of two");
	if (dir_comma(d)) {
		given = *d->p != ',';
		if (given && !asm_number(d->a, &d->p, &value))
			return false;
		if (dir_comma(d) && !dir_number(d, 0, INT64_MAX, &most))
			return false;
	}
	if (!dir_done(d))
		return false;
	s = asm_here(d->a);
	gap = -s->size_bytes & (n - 1);
	if ((int64_t)gap > most)
		return true;
	if (s->align < (uint64_t)n)
		s->align = n;
	return emit_padding(d, gap, given, value);
}

/* ----------------------------------------------------------------- data ----
 */

static bool read_datum(struct directive *d, int bytes)
{
	struct asm_fixup f = { .kind = FIX_DATA,
			       .bytes = bytes,
			       .section = d->a->section,
			       .line = d->a->line_no,
			       .column = d->p - d->a->line,
			       .offset = asm_here(d->a)->size_bytes };
	static const uint8_t zero[8];
	const char *at = d->p;
	int bits = 8 * bytes;
	int64_t n;

	if (!asm_value(d->a, &d->p, &f.value))
		return false;
	n = f.value.n;
	if (f.value.add || f.value.sub) {
		asm_fixup(d->a, &f);
		return asm_emit(d->a, zero, bytes);
	}
	if (bytes < 8 &&
	    (n < -(INT64_C(1) << (bits - 1)) || n >= INT64_C(1) << bits))
		return asm_error(d->a, at, "%lld does not fit %d bits",
				 (long long)n, bits);
	return asm_emit(d->a, &n, bytes);
}

bool dir_data(struct directive *d)
{
	if (!*isa_skip_space(d->p))
		return true;
	do
		if (!read_datum(d, d->arg))
			return false;
	while (dir_comma(d));
	return dir_done(d);
}

bool dir_floats(struct directive *d)
{
	do {
		char *end;
		double v = strtod(d->p, &end);
		float f = v;

		if (end == d->p)
			return asm_error(d->a, d->p, "wanted a number");
		d->p = end;
		if (!asm_emit(d->a, d->arg == 4 ? (void *)&f : (void *)&v,
			      d->arg))
			return false;
	} while (dir_comma(d));
	return dir_done(d);
}

static int read_octal(const char **p)
{
	int v = 0;

	for (int i = 0; i < 3 && **p >= '0' && **p <= '7'; i++)
		v = v * 8 + *(*p)++ - '0';
	return v & 0xff;
}

/* Escape sequence: the character after a backslash; -1 if unknown. */
static int read_escape(const char **p)
{
	static const char letter[] = "bfnrt\"\\";
	static const char means[] = "\b\f\n\r\t\"\\";
	const char *at;

	if (**p >= '0' && **p <= '7')
		return read_octal(p);
	if (**p == 'x' || **p == 'X') {
		char *end;
		unsigned long v = strtoul(*p + 1, &end, 16);

		if (end == *p + 1)
			return -1;
		*p = end;
		return v & 0xff;
	}
	at = **p ? strchr(letter, **p) : NULL;
	if (!at)
		return -1;
	++*p;
	return (uint8_t)means[at - letter];
}

static bool emit_string(struct directive *d)
{
	const char *p = d->p;
	struct buf b = { 0 };
	bool ok = true;

	if (*p != '"')
		return asm_error(d->a, p, "wanted a string");
	for (p++; ok && *p && *p != '"';) {
		int c = (uint8_t)*p++;

		if (c == '\\') {
			c = read_escape(&p);
			if (c < 0)
				ok = asm_error(d->a, p, "unknown escape");
		}
		buf_addc(&b, c);
	}
	if (ok && !*p)
		ok = asm_error(d->a, d->p, "'\"' missing");
	if (d->arg)
		buf_addc(&b, 0);
	ok = ok && asm_emit(d->a, b.data ? b.data : "", b.len);
	d->p = p + 1;
	buf_fini(&b);
	return ok;
}

/* arg: a zero ends each. */
bool dir_strings(struct directive *d)
{
	do
		if (!emit_string(d))
			return false;
	while (dir_comma(d));
	return dir_done(d);
}

/* .zero n, .space n[, byte] */
bool dir_space(struct directive *d)
{
	int64_t n, v = 0;

	return dir_number(d, 0, CO_MAX_SPAN_BYTES, &n) &&
	       (!dir_comma(d) || dir_number(d, -128, 255, &v)) && dir_done(d) &&
	       asm_emit_fill(d->a, n, v);
}

/* .fill count[, size[, value]] */
bool dir_fill(struct directive *d)
{
	int64_t n, size = 1, v = 0;

	if (!dir_number(d, 0, CO_MAX_SPAN_BYTES / 8, &n) ||
	    (dir_comma(d) && !dir_number(d, 0, 8, &size)) ||
	    (dir_comma(d) && !asm_number(d->a, &d->p, &v)) || !dir_done(d))
		return false;
	/* Fill values are truncated to four bytes. */
	if (size > 4)
		v &= 0xffffffff;
	for (int64_t i = 0; i < n; i++)
		if (!asm_emit(d->a, &v, size))
			return false;
	return true;
}
