/*
 * kfd/runtime/printf.c - printf formatting: formats from metadata, arguments
 * from memory that a kernel wrote. Neither is trusted.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/printf.h"

#define WIDTH_MAX 512
#define ARGS_MAX  256

struct format {
	uint32_t id, n_args, bytes; /* of the arguments together */
	uint32_t *size;		    /* [n_args] */
	bool *is_string;	    /* [n_args] */
	char *text;
};
struct kfd_formats {
	struct format *v; /* by id */
	uint32_t n, largest;
};

/* ----------------------------------------------------------- formats ---- */

/*
 * "\n", "\72" and their like to the bytes they mean, in place.  LLVM leaves
 * a backslash of the program as it is: one before anything else stays.
 */
static void unescape_format(char *s)
{
	static const char names[] = "abfnrtv", bytes[] = "\a\b\f\n\r\t\v";
	char *to = s;

	while (*s) {
		const char *name;
		int v = 0, n = 0;

		if (*s != '\\' || !s[1]) {
			*to++ = *s++;
			continue;
		}
		s++;
		name = strchr(names, *s);
		while (n < 3 && s[n] >= '0' && s[n] <= '7')
			v = v * 8 + s[n++] - '0';
		if (n) {
			*to++ = (char)v;
			s += n;
		} else if (name) {
			*to++ = bytes[name - names];
			s++;
		} else {
			*to++ = '\\';
		}
	}
	*to = 0;
}

/* A number and the colon after it. */
static bool parse_number(const char **s, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)**s))
		return false;
	v = strtoul(*s, &end, 10);
	if (*end != ':' || v > max)
		return false;
	*out = (uint32_t)v;
	*s = end + 1;
	return true;
}

/* Which arguments are strings, by the conversions of the text. */
static void find_strings(struct format *f)
{
	const char *s = f->text;
	uint32_t i = 0;

	f->is_string = xcalloc(f->n_args + 1, sizeof(*f->is_string));
	while ((s = strchr(s, '%')) && i < f->n_args) {
		if (*++s == '%') {
			s++;
			continue;
		}
		for (; *s && strchr("-+ #0123456789.*vhlLjzt", *s); s++)
			i += *s == '*';
		if (i < f->n_args)
			f->is_string[i++] = *s == 's';
	}
}

static bool format_init(struct format *f, const char *s)
{
	*f = (struct format){ 0 };
	if (!parse_number(&s, 65535, &f->id) || !f->id ||
	    !parse_number(&s, ARGS_MAX, &f->n_args))
		return false;
	f->size = xcalloc(f->n_args + 1, sizeof(*f->size));
	/*
	 * LLVM 19 counts the arguments of %F and %A, but neither stores them
	 * nor gives their sizes.
	 */
	for (uint32_t i = 0; i < f->n_args; i++) {
		if (!parse_number(&s, 4096, &f->size[i])) {
			f->n_args = i;
			break;
		}
		f->bytes += f->size[i];
	}
	f->text = xstrdup(s);
	unescape_format(f->text);
	find_strings(f);
	return true;
}

static int by_id(const void *a, const void *b)
{
	const struct format *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

struct kfd_formats *kfd_formats_new(const char *const *entry, uint32_t n)
{
	struct kfd_formats *f = xcalloc(1, sizeof(*f));

	f->v = xcalloc(n + 1, sizeof(*f->v));
	for (uint32_t i = 0; i < n; i++) {
		struct format *x = &f->v[f->n];

		if (!format_init(x, entry[i]))
			continue;
		if (x->bytes + 4 > f->largest)
			f->largest = x->bytes + 4;
		f->n++;
	}
	qsort(f->v, f->n, sizeof(*f->v), by_id);
	return f;
}

void kfd_formats_free(struct kfd_formats *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		free(f->v[i].size);
		free(f->v[i].is_string);
		free(f->v[i].text);
	}
	free(f->v);
	free(f);
}

uint32_t kfd_formats_record_bytes(const struct kfd_formats *f)
{
	return f->largest;
}

static const struct format *find_format(const struct kfd_formats *f,
					uint32_t id)
{
	const struct format key = { .id = id };

	return bsearch(&key, f->v, f->n, sizeof(*f->v), by_id);
}

uint32_t kfd_formats_bytes(const struct kfd_formats *f, uint32_t id)
{
	const struct format *x = find_format(f, id);

	return x ? x->bytes + 4 : 0;
}

/* --------------------------------------------------- clang's strings ---- */

/*
 * LLVM 19 gives a string of 4, 8, 12, ... characters four bytes more than it
 * stores: there is no NUL, and the next argument follows at once.  So many
 * dwords are left unwritten at the record's end, which the host had filled
 * with KFD_PRINTF_UNWRITTEN; which strings they belong to is found by trying.
 */
#define TRIES_MAX 4096

struct layout {
	const struct format *f;
	const uint8_t *args;
	size_t len;
	bool cut[ARGS_MAX];
	unsigned tries;
};

/* Up to three characters and then NULs?  The empty string is 0xffffff00. */
static bool is_tail(const uint8_t *p)
{
	int n = 0;

	if (!p[0])
		return true;
	while (n < 4 && p[n])
		n++;
	for (int i = n; i < 4; i++)
		if (p[i])
			return false;
	return n < 4;
}

/* Arguments from i on, with `cuts` strings still to be cut. */
static bool lay_out(struct layout *l, uint32_t i, size_t at, size_t cuts)
{
	const struct format *f = l->f;
	const uint8_t *p = l->args + at;

	if (i == f->n_args)
		return !cuts;
	if (++l->tries > TRIES_MAX || f->size[i] > l->len - at)
		return false;
	const uint32_t n = f->size[i];
	l->cut[i] = false;
	if (!f->is_string[i] || n < 4 || is_tail(p + n - 4))
		if (lay_out(l, i + 1, at + n, cuts))
			return true;
	l->cut[i] = cuts && f->is_string[i] && n > 4 && !memchr(p, 0, n - 4);
	return l->cut[i] && lay_out(l, i + 1, at + n - 4, cuts - 1);
}

static void find_cuts(struct layout *l)
{
	size_t cuts = 0;
	uint32_t word;

	for (size_t at = l->len & ~(size_t)3; at >= 4; at -= 4, cuts++) {
		memcpy(&word, l->args + at - 4, 4);
		if (word != KFD_PRINTF_UNWRITTEN)
			break;
	}
	if (!cuts || l->len < l->f->bytes || !lay_out(l, 0, 0, cuts))
		memset(l->cut, 0, sizeof(l->cut));
}

/* --------------------------------------------------------- arguments ---- */

struct arg {
	const uint8_t *p;
	size_t bytes;
};
struct source {
	const uint8_t *at;
	size_t left;
	const struct layout *l; /* NULL: words of 64 bits */
	uint32_t i;
};

static bool take_arg(struct source *s, bool string, struct arg *a)
{
	size_t used = 8;

	a->p = s->at;
	if (s->l) {
		if (s->i == s->l->f->n_args)
			return false;
		a->bytes = s->l->f->size[s->i];
		if (a->bytes > s->left)
			return false;
		if (s->l->cut[s->i++])
			a->bytes -= 4;
		used = a->bytes;
	} else {
		a->bytes = used;
		if (string) {
			a->bytes = strnlen((const char *)s->at, s->left);
			used = (a->bytes + 8) / 8 * 8;
		}
		if (a->bytes > s->left)
			return false;
		if (used > s->left)
			used = s->left;
	}
	s->at += used;
	s->left -= used;
	return true;
}

/* ------------------------------------------------------- conversions ---- */

struct spec {
	char flags[8];
	int width, precision; /* -1: not given */
	int vector;	      /* elements; 0: a scalar */
	int bits;	      /* of an integer, by its length modifier */
	char conv;
};

static void take_flags(const char **s, struct spec *x)
{
	size_t n = 0;

	while (**s && strchr("-+ #0", **s)) {
		if (!memchr(x->flags, **s, n) && n + 1 < sizeof(x->flags))
			x->flags[n++] = **s;
		(*s)++;
	}
}

static int cap_width(long v)
{
	return v < 0 ? -1 : v > WIDTH_MAX ? WIDTH_MAX : (int)v;
}

/* Digits or '*'; a negative '*' is -1, and *minus set. */
static int take_number(const char **s, struct source *src, bool *minus)
{
	struct arg a;
	int32_t v = 0;
	long n = 0;

	if (**s == '*') {
		(*s)++;
		if (take_arg(src, false, &a))
			memcpy(&v, a.p, a.bytes < 4 ? a.bytes : 4);
		*minus = v < 0;
		return v < 0 ? cap_width(-(long)v) : cap_width(v);
	}
	*minus = false;
	while (isdigit((unsigned char)**s)) {
		if (n <= WIDTH_MAX)
			n = n * 10 + **s - '0';
		(*s)++;
	}
	return cap_width(n);
}

static void take_length(const char **s, struct spec *x)
{
	static const struct {
		const char *text;
		int bits;
	} lengths[] = { { "hh", 8 }, { "hl", 32 }, { "h", 16 }, { "ll", 64 },
			{ "l", 64 }, { "j", 64 },  { "z", 64 }, { "t", 64 },
			{ "L", 64 } };

	x->bits = 32;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		const size_t n = strlen(lengths[i].text);

		if (!strncmp(*s, lengths[i].text, n)) {
			x->bits = lengths[i].bits;
			*s += n;
			return;
		}
	}
}

/* A conversion specification after '%'; false: it cannot be shown. */
static bool take_spec(const char **s, struct source *src, struct spec *x)
{
	bool minus;

	*x = (struct spec){ .width = -1, .precision = -1 };
	take_flags(s, x);
	if (isdigit((unsigned char)**s) || **s == '*')
		x->width = take_number(s, src, &minus);
	else
		minus = false;
	if (minus && !strchr(x->flags, '-') &&
	    strlen(x->flags) + 1 < sizeof(x->flags))
		x->flags[strlen(x->flags)] = '-';
	if (**s == '.') {
		(*s)++;
		x->precision = take_number(s, src, &minus);
		if (minus)
			x->precision = -1;
	}
	if (**s == 'v') {
		(*s)++;
		x->vector = take_number(s, src, &minus);
		if (x->vector < 2 || x->vector > 16 ||
		    (x->vector != 3 && x->vector & (x->vector - 1)))
			return false;
	}
	take_length(s, x);
	x->conv = **s;
	if (!x->conv || !strchr("diouxXcsfFeEgGaAp", x->conv))
		return false;
	(*s)++;
	return true;
}

/* "%-+8.3llx" of a specification that take_spec() has checked. */
static void spell_spec(const struct spec *x, const char *length, char out[32])
{
	size_t n = (size_t)snprintf(out, 32, "%%%s", x->flags);

	if (x->width >= 0)
		n += (size_t)snprintf(out + n, 32 - n, "%d", x->width);
	if (x->precision >= 0)
		n += (size_t)snprintf(out + n, 32 - n, ".%d", x->precision);
	snprintf(out + n, 32 - n, "%s%c", length, x->conv);
}

static double half_to_double(uint16_t h)
{
	const int exp = h >> 10 & 31;
	const double sign = h & 0x8000 ? -1 : 1, m = h & 0x3ff;

	if (exp == 31)
		return m ? sign * __builtin_nan("") : sign * __builtin_inf();
	return sign * (exp ? __builtin_ldexp(m + 1024, exp - 25) :
			     __builtin_ldexp(m, -24));
}

static double read_real(const uint8_t *p, size_t bytes)
{
	uint16_t h = 0;
	float f = 0;
	double d = 0;

	if (bytes >= 8) {
		memcpy(&d, p, 8);
		return d;
	}
	if (bytes >= 4) {
		memcpy(&f, p, 4);
		return (double)f;
	}
	memcpy(&h, p, bytes < 2 ? bytes : 2);
	return half_to_double(h);
}

static uint64_t read_integer(const struct spec *x, const uint8_t *p,
			     size_t bytes)
{
	uint64_t v = 0;
	int bits = x->bits;

	memcpy(&v, p, bytes < 8 ? bytes : 8);
	if ((size_t)bits > 8 * bytes)
		bits = (int)(8 * bytes);
	if (bits == 64 || !bits)
		return v;
	v &= (1ull << bits) - 1;
	if (strchr("di", x->conv) && v >> (bits - 1))
		v |= ~0ull << bits;
	return v;
}

/* One element; libc does the digits, for a format of our own making. */
static void print_element(const struct spec *x, const uint8_t *p, size_t bytes,
			  struct buf *out)
{
	char spec[32], text[4 * WIDTH_MAX];
	uint64_t v = 0;
	int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (strchr("fFeEgGaA", x->conv)) {
		spell_spec(x, "", spec);
		n = snprintf(text, sizeof(text), spec, read_real(p, bytes));
	} else if (x->conv == 'c') {
		spell_spec(x, "", spec);
		n = snprintf(text, sizeof(text), spec,
			     bytes ? (int)p[0] : 0);
	} else if (x->conv == 'p') {
		spell_spec(x, "", spec);
		memcpy(&v, p, bytes < 8 ? bytes : 8);
		n = snprintf(text, sizeof(text), spec, (void *)(uintptr_t)v);
	} else {
		spell_spec(x, "ll", spec);
		n = snprintf(text, sizeof(text), spec,
			     (unsigned long long)read_integer(x, p, bytes));
	}
#pragma GCC diagnostic pop
	if (n > 0)
		buf_add(out, text, (size_t)n < sizeof(text) ? (size_t)n :
							      sizeof(text) - 1);
}

static void pad_spaces(struct buf *out, size_t n)
{
	while (n--)
		buf_addc(out, ' ');
}

static void print_string(const struct spec *x, const struct arg *a,
			 struct buf *out)
{
	size_t n = strnlen((const char *)a->p, a->bytes);
	const bool left = strchr(x->flags, '-');

	if (x->precision >= 0 && (size_t)x->precision < n)
		n = (size_t)x->precision;
	const size_t fill = x->width > 0 && (size_t)x->width > n ?
				    (size_t)x->width - n : 0;
	pad_spaces(out, left ? 0 : fill);
	buf_add(out, a->p, n);
	pad_spaces(out, left ? fill : 0);
}

/* Elements are a power of two of bytes apart; three may be laid out as four. */
static size_t element_stride(size_t bytes, int n)
{
	size_t each = bytes / (size_t)n;

	if (n == 3 && each & (each - 1))
		each = bytes / 4;
	return each;
}

static void print_vector(const struct spec *x, const struct arg *a,
			 struct buf *out)
{
	const size_t each = element_stride(a->bytes, x->vector);

	for (int i = 0; i < x->vector; i++) {
		if (i)
			buf_addc(out, ',');
		print_element(x, a->p + (size_t)i * each, each, out);
	}
}

/* The conversion after '%' at *s, which is advanced. */
static void print_conversion(const char **s, struct source *src,
			     struct buf *out)
{
	const char *begin = *s - 1;
	struct spec x;
	struct arg a;

	if (**s == '%') {
		buf_addc(out, '%');
		(*s)++;
		return;
	}
	if (!take_spec(s, src, &x)) {
		/* Not to be shown (%n, %v5d, ...): as it stands. */
		if (**s)
			(*s)++;
		buf_add(out, begin, (size_t)(*s - begin));
		(void)take_arg(src, false, &a);
		return;
	}
	if (!take_arg(src, x.conv == 's', &a))
		buf_adds(out, "(missing)");
	else if (x.conv == 's')
		print_string(&x, &a, out);
	else if (x.vector)
		print_vector(&x, &a, out);
	else
		print_element(&x, a.p, a.bytes, out);
}

static void print_format(const char *s, struct source *src, struct buf *out)
{
	while (*s) {
		const size_t n = strcspn(s, "%");

		buf_add(out, s, n);
		s += n;
		if (!*s)
			break;
		s++;
		print_conversion(&s, src, out);
	}
}

bool kfd_format_record(const struct kfd_formats *f, uint32_t id,
		       const void *args, size_t len, struct buf *out)
{
	const struct format *x = find_format(f, id);
	struct layout l = { .f = x, .args = args, .len = len };
	struct source src = { .at = args, .left = len, .l = &l };

	if (!x)
		return false;
	find_cuts(&l);
	print_format(x->text, &src, out);
	return true;
}

void kfd_format_words(const char *format, const void *args, size_t len,
		      struct buf *out)
{
	struct source src = { .at = args, .left = len };

	print_format(format, &src, out);
}
