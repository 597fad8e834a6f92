/*
 * Changes an input: bits, bytes and numbers of it, pieces moved, repeated,
 * dropped or taken from another input, decimal numbers in text, and the two
 * sides of a comparison put in each other's place.
 */
#include <string.h>

#include "base/base.h"
#include "tests/attack/driver/driver.h"

struct draft {
	uint64_t *seed;
	uint8_t *data;
	size_t size, max;
	const struct input *other;
};

static size_t below(struct draft *d, size_t n)
{
	return n ? random_next(d->seed) % n : 0;
}

/* Puts `n` bytes in the place of `gone` bytes at `at`, if they fit. */
static void replace_at(struct draft *d, size_t at, size_t gone,
		       const void *bytes, size_t n)
{
	uint8_t copy[INPUT_MAX];

	if (at + gone > d->size || d->size - gone + n > d->max)
		return;
	memcpy(copy, bytes, n);
	memmove(d->data + at + n, d->data + at + gone, d->size - at - gone);
	memcpy(d->data + at, copy, n);
	d->size += n - gone;
}

static void flip_bit(struct draft *d)
{
	if (d->size)
		d->data[below(d, d->size)] ^= 1 << below(d, 8);
}

static void set_byte(struct draft *d)
{
	static const uint8_t text[] = "\0\n\t ,:;.-+*/\"'\\(){}[]<>=#@%$_0159axzAZ";
	size_t at = below(d, d->size);

	if (d->size)
		d->data[at] = below(d, 2) ? text[below(d, sizeof(text))] :
					    below(d, 256);
}

/* A number of 1, 2, 4 or 8 bytes: a little more or less, or a limit. */
static void set_number(struct draft *d)
{
	static const uint64_t limits[] = {
		0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff,
		0x80000000, 0xffffffff, 0x7fffffffffffffff,
		0x8000000000000000, UINT64_MAX, UINT64_MAX - 7
	};
	size_t n = (size_t)1 << below(d, 4);
	uint64_t v = 0;

	if (d->size < n)
		return;
	size_t at = below(d, d->size - n + 1);
	memcpy(&v, d->data + at, n);
	v = below(d, 2) ? v + below(d, 65) - 32 :
			  limits[below(d, ARRAY_SIZE(limits))];
	memcpy(d->data + at, &v, n);
}

static void drop_piece(struct draft *d)
{
	size_t at = below(d, d->size);
	size_t n = 1 + below(d, below(d, 4) ? 8 : d->size - at);

	if (d->size > n)
		replace_at(d, at, n < d->size - at ? n : d->size - at, "", 0);
}

static void take_piece(struct draft *d, const uint8_t *from, size_t size)
{
	size_t at = below(d, d->size + 1), start = below(d, size);
	size_t n = 1 + below(d, below(d, 4) ? 16 : size - start);

	if (!size)
		return;
	n = n < size - start ? n : size - start;
	replace_at(d, at, below(d, 2) && at + n <= d->size ? n : 0,
		   from + start, n);
}

static void repeat_piece(struct draft *d)
{
	take_piece(d, d->data, d->size);
}

static void take_other(struct draft *d)
{
	take_piece(d, d->other->data, d->other->size);
}

static void insert_bytes(struct draft *d)
{
	uint8_t bytes[8];
	size_t n = 1 + below(d, sizeof(bytes));
	uint64_t v = random_next(d->seed);

	memcpy(bytes, &v, sizeof(bytes));
	if (below(d, 2))
		memset(bytes, bytes[0], sizeof(bytes));
	replace_at(d, below(d, d->size + 1), 0, bytes, n);
}

/* Digits in text become another number. */
static void set_digits(struct draft *d)
{
	static const char *const numbers[] = {
		"0", "1", "-1", "2", "7", "63", "64", "255", "256", "65535",
		"65536", "2147483647", "2147483648", "4294967295",
		"4294967296", "9223372036854775807", "9223372036854775808",
		"18446744073709551615", "18446744073709551616", "1e999", "1e-9",
		"nan", "0x10", "00"
	};
	size_t at = below(d, d->size), n = 0;

	while (at < d->size && (d->data[at] < '0' || d->data[at] > '9'))
		at++;
	while (at + n < d->size && d->data[at + n] >= '0' &&
	       d->data[at + n] <= '9')
		n++;
	const char *text = numbers[below(d, ARRAY_SIZE(numbers))];
	if (n)
		replace_at(d, at, n, text, strlen(text));
}

/* What the last input was compared with takes the place of what it was. */
static void obey_comparison(struct draft *d)
{
	size_t n, at;
	const struct cover_pair *p = cover_pairs(&n);

	if (!n)
		return;
	p += below(d, n);
	bool swap = below(d, 2);
	const uint8_t *from = swap ? p->b : p->a, *to = swap ? p->a : p->b;
	size_t old = swap ? p->size_b : p->size_a;
	size_t new = swap ? p->size_a : p->size_b;

	/* From some place on, and around. */
	if (old && old <= d->size) {
		size_t places = d->size - old + 1, start = below(d, places);

		for (size_t i = 0; i < places; i++) {
			at = (start + i) % places;
			if (!memcmp(d->data + at, from, old)) {
				replace_at(d, at, old, to, new);
				return;
			}
		}
	}
	if (!below(d, 4))
		replace_at(d, below(d, d->size + 1), 0, to, new);
}

size_t mutate(uint64_t *seed, uint8_t *data, size_t size, size_t max,
	      const struct input *other)
{
	static void (*const change[])(struct draft *d) = {
		flip_bit, set_byte, set_byte, set_number, drop_piece,
		repeat_piece, take_other, insert_bytes, set_digits,
		obey_comparison, obey_comparison, obey_comparison
	};
	struct draft d = { seed, data, size, max, other };
	size_t times = (size_t)1 << below(&d, 4);

	for (size_t i = 0; i < times; i++)
		change[below(&d, ARRAY_SIZE(change))](&d);
	return d.size;
}
