/*
 * isa/launch/value.c - numbers of the device's types, between text and bytes.
 */
#include "isa/launch/launch.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float.h"

static const struct value_type types[] = {
	/* name  class		 bytes exp man */
	{ "i8", VALUE_SIGNED, 1, 0, 0 },    { "i16", VALUE_SIGNED, 2, 0, 0 },
	{ "i32", VALUE_SIGNED, 4, 0, 0 },   { "i64", VALUE_SIGNED, 8, 0, 0 },
	{ "u8", VALUE_UNSIGNED, 1, 0, 0 },  { "u16", VALUE_UNSIGNED, 2, 0, 0 },
	{ "u32", VALUE_UNSIGNED, 4, 0, 0 }, { "u64", VALUE_UNSIGNED, 8, 0, 0 },
	{ "x8", VALUE_HEX, 1, 0, 0 },	    { "x16", VALUE_HEX, 2, 0, 0 },
	{ "x32", VALUE_HEX, 4, 0, 0 },	    { "x64", VALUE_HEX, 8, 0, 0 },
	{ "f16", VALUE_FLOAT, 2, 5, 10 },   { "bf16", VALUE_FLOAT, 2, 8, 7 },
	{ "f32", VALUE_FLOAT, 4, 8, 23 },   { "f64", VALUE_FLOAT, 8, 11, 52 },
};

const struct value_type *value_type_find(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == n &&
		    !memcmp(types[i].name, name, n))
			return &types[i];
	return NULL;
}

/* ---- bits of floats ----------------------------------------------------- */

static uint64_t bits_of(const struct value_type *t, double v)
{
	return float_bits(v, t->exp_bits, t->man_bits);
}

static double value_of(const struct value_type *t, uint64_t bits)
{
	return float_value(bits, t->exp_bits, t->man_bits);
}

/* ---- text --------------------------------------------------------------- */

static uint64_t load_bits(const struct value_type *t, const void *bytes)
{
	uint64_t v = 0;

	memcpy(&v, bytes, t->size_bytes);
	return v;
}

static int64_t sign_extend(const struct value_type *t, uint64_t v)
{
	int shift = 64 - t->size_bytes * 8;

	return (int64_t)(v << shift) >> shift;
}

static uint64_t max_unsigned(const struct value_type *t)
{
	return UINT64_MAX >> (64 - t->size_bytes * 8);
}

static bool parse_signed(const struct value_type *t, const char *text,
			 char **end, uint64_t *out)
{
	int64_t max = (int64_t)(max_unsigned(t) >> 1), v;

	errno = 0;
	v = strtoll(text, end, 0);
	*out = (uint64_t)v;
	return !errno && v <= max && v >= -max - 1;
}

static bool parse_unsigned(const struct value_type *t, const char *text,
			   char **end, uint64_t *out)
{
	errno = 0;
	*out = strtoull(text, end, 0);
	return !errno && *out <= max_unsigned(t) && !strchr(text, '-');
}

static bool parse_float(const struct value_type *t, const char *text,
			char **end, uint64_t *out)
{
	double v = strtod(text, end);

	*out = bits_of(t, v);
	/* An infinity that nobody asked for. */
	return isinf(v) ? !isdigit((unsigned char)text[strspn(text, "+-")]) :
			  isnan(v) || isfinite(value_of(t, *out));
}

bool value_parse(const struct value_type *t, const char *text, void *out,
		 struct err *e)
{
	char *end;
	uint64_t v;
	bool fits;

	if (t->class == VALUE_FLOAT)
		fits = parse_float(t, text, &end, &v);
	else if (t->class == VALUE_SIGNED)
		fits = parse_signed(t, text, &end, &v);
	else
		fits = parse_unsigned(t, text, &end, &v);
	if (end == text || *end)
		return err_set(e, ERR_USAGE, "'%s' is no number", text);
	if (!fits)
		return err_set(e, ERR_USAGE, "%s does not fit %s", text,
			       t->name);
	memcpy(out, &v, t->size_bytes);
	return true;
}

void value_print(const struct value_type *t, const void *bytes, struct buf *out)
{
	uint64_t v = load_bits(t, bytes);
	double f = t->class == VALUE_FLOAT ? value_of(t, v) : 0.0;
	char text[40];

	switch (t->class) {
	case VALUE_SIGNED:
		buf_printf(out, "%" PRId64, sign_extend(t, v));
		return;
	case VALUE_UNSIGNED:
		buf_printf(out, "%" PRIu64, v);
		return;
	case VALUE_HEX:
		buf_printf(out, "0x%0*" PRIx64, t->size_bytes * 2, v);
		return;
	case VALUE_FLOAT:
		break;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, f);
		if (isnan(f) || bits_of(t, strtod(text, NULL)) == v)
			break;
	}
	buf_adds(out, text);
}

bool value_f64(const struct value_type *t, const void *bytes, double *out)
{
	uint64_t v = load_bits(t, bytes);

	*out = t->class == VALUE_FLOAT	? value_of(t, v) :
	       t->class == VALUE_SIGNED ? (double)sign_extend(t, v) :
					  (double)v;
	return isfinite(*out);
}

/* ---- filling ------------------------------------------------------------ */

/* One value, from what a sequence computes as double or as bits. */
static void store_bits(const struct value_type *t, void *dst, size_t i,
		       double f, uint64_t v)
{
	uint64_t bits = t->class == VALUE_FLOAT ? bits_of(t, f) : v;

	memcpy((char *)dst + i * t->size_bytes, &bits, t->size_bytes);
}

/* "NAME" or "NAME(A,B,C)" -> the texts between the commas; -1 = not NAME. */
static int parse_call(const char *init, const char *name, char *copy,
		      size_t room, const char *arg[3])
{
	size_t n = strlen(name), len = strlen(init);
	int count = 0;
	char *save = NULL;

	if (strncmp(init, name, n) || (init[n] && init[n] != '('))
		return -1;
	if (!init[n])
		return 0;
	if (init[len - 1] != ')' || len - n - 1 >= room)
		return -1;
	memcpy(copy, init + n + 1, len - n - 2);
	copy[len - n - 2] = '\0';
	for (char *s = strtok_r(copy, ",", &save); s;
	     s = strtok_r(NULL, ",", &save)) {
		if (count == 3)
			return -1;
		arg[count++] = s;
	}
	return count;
}

/* A number of the type, both as a double and as bits. */
static bool parse_both(const struct value_type *t, const char *text, double *f,
		       uint64_t *v, struct err *e)
{
	uint64_t bits = 0;

	if (!value_parse(t, text, &bits, e))
		return false;
	*v = t->class == VALUE_SIGNED ? (uint64_t)sign_extend(t, bits) : bits;
	value_f64(t, &bits, f);
	return true;
}

static bool fill_iota(const struct value_type *t, void *dst, size_t count,
		      const char *const *arg, int n, struct err *e)
{
	double f = 0, fstep = 1;
	uint64_t v = 0, vstep = 1;

	if ((n > 0 && !parse_both(t, arg[0], &f, &v, e)) ||
	    (n > 1 && !parse_both(t, arg[1], &fstep, &vstep, e)))
		return false;
	if (n > 2)
		return err_set(e, ERR_USAGE, "iota takes START,STEP");
	for (size_t i = 0; i < count; i++)
		store_bits(t, dst, i, f + (double)i * fstep, v + i * vstep);
	return true;
}

static bool fill_random(const struct value_type *t, void *dst, size_t count,
			const char *const *arg, int n, uint64_t seed,
			struct err *e)
{
	/* So many random bits that every multiple of 2^-man is exact. */
	int bits = t->man_bits + 1;
	double lo = -1, hi = 1;
	uint64_t vlo = 0, vhi = UINT64_MAX;

	if (n == 2)
		return err_set(e, ERR_USAGE, "random takes SEED or SEED,LO,HI");
	if ((n > 0 && !cli_u64(arg[0], &seed, e)) ||
	    (n > 1 && (!parse_both(t, arg[1], &lo, &vlo, e) ||
		       !parse_both(t, arg[2], &hi, &vhi, e))))
		return false;
	if (lo > hi)
		return err_set(e, ERR_USAGE, "random(%s): %s is above %s",
			       arg[0], arg[1], arg[2]);
	for (size_t i = 0; i < count; i++) {
		uint64_t r = random_next(&seed);
		uint64_t range = vhi - vlo + 1; /* 0 = all 2^64 */

		store_bits(t, dst, i,
		      lo + ldexp((double)(r >> (64 - bits)), -bits) * (hi - lo),
		      vlo + (range ? r % range : r));
	}
	return true;
}

static bool fill_file(void *dst, size_t size_bytes, const char *path,
		      struct err *e)
{
	struct buf b = { 0 };
	bool good = file_read(path, size_bytes + 1, &b, e);

	if (good && b.len != size_bytes)
		good = err_set(e, ERR_INPUT,
			       "%s has %s%zu bytes, the buffer %zu", path,
			       b.len > size_bytes ? "at least " : "", b.len,
			       size_bytes);
	if (good)
		memcpy(dst, b.data, size_bytes);
	buf_fini(&b);
	return good;
}

/* "A,B,C", or "A" for all. */
static bool fill_list(const struct value_type *t, void *dst, size_t count,
		      const char *init, struct err *e)
{
	char *copy = xstrdup(init), *save = NULL;
	bool all = !strchr(init, ','), good = true;
	uint64_t v = 0;
	size_t n = 0;

	memset(dst, 0, count * t->size_bytes);
	for (char *s = strtok_r(copy, ",", &save); s && good;
	     s = strtok_r(NULL, ",", &save)) {
		if (n == count && !all)
			good = err_set(e, ERR_USAGE, "more than %zu values",
				       count);
		else
			good = value_parse(t, s, &v, e);
		for (; good && n < count; n++) {
			memcpy((char *)dst + n * t->size_bytes, &v,
			       t->size_bytes);
			if (!all) {
				n++;
				break;
			}
		}
	}
	free(copy);
	return good;
}

bool value_fill(const struct value_type *t, void *dst, size_t count,
		const char *init, uint64_t seed, struct err *e)
{
	char copy[256];
	const char *arg[3];
	int n;

	if (!strncmp(init, "file:", 5))
		return fill_file(dst, count * t->size_bytes, init + 5, e);
	if (!strcmp(init, "zero")) {
		memset(dst, 0, count * t->size_bytes);
		return true;
	}
	n = parse_call(init, "iota", copy, sizeof(copy), arg);
	if (n >= 0)
		return fill_iota(t, dst, count, arg, n, e);
	n = parse_call(init, "random", copy, sizeof(copy), arg);
	if (n >= 0)
		return fill_random(t, dst, count, arg, n, seed, e);
	if (!isdigit((unsigned char)init[strspn(init, "+-.")]) &&
	    strncmp(init, "nan", 3) && strncmp(init, "inf", 3) &&
	    strncmp(init, "-inf", 4))
		return err_set(
			e, ERR_USAGE,
			"'%s' is no contents; there are zero, V, A,B,C, "
			"iota(START,STEP), random(SEED,LO,HI), file:PATH",
			init);
	return fill_list(t, dst, count, init, e);
}
