/*
 * picture - images of tests: a random one, its descriptor, and where its texels
 * are, as a model of plain C has them.
 *
 *	struct picture p;
 *	random_picture(&p);
 *	describe(&b, &p);		// in s[8:15]
 *	at = find(&p, coordinates, level);	// offset in BENCH_DATA, or -1
 */
#ifndef T0_TESTS_PICTURE_H
#define T0_TESTS_PICTURE_H

#include "tests/exec/wave.h"

enum { MEM = BENCH_PAGE };

static uint64_t seed = 0x1a6e5eed;

static inline uint32_t rnd(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* ------------------------------------------------------------- images ---- */

/* A kind of image, as assembly and descriptor name it. */
static const struct kind {
	const char *dim;
	unsigned type, coords;
	bool rows, layers; /* has more than one row, slice */
	bool array;
} kinds[] = {
	{ "SQ_RSRC_IMG_1D", 8, 1, false, false, false },
	{ "SQ_RSRC_IMG_2D", 9, 2, true, false, false },
	{ "SQ_RSRC_IMG_3D", 10, 3, true, true, false },
	{ "SQ_RSRC_IMG_1D_ARRAY", 12, 2, false, true, true },
	{ "SQ_RSRC_IMG_2D_ARRAY", 13, 3, true, true, true },
};

/* Formats, with a texel of known bytes written and read by hand. */
enum numbers { UINTS, SINTS, FLOATS, UNORMS };
static const struct format {
	unsigned number;
	int n, bits; /* components of as many bits each */
	enum numbers numbers;
} formats[] = {
	{ 1, 1, 8, UNORMS },	{ 5, 1, 8, UINTS },   { 6, 1, 8, SINTS },
	{ 11, 1, 16, UINTS },	{ 12, 1, 16, SINTS }, { 18, 2, 8, UINTS },
	{ 20, 1, 32, UINTS },	{ 21, 1, 32, SINTS }, { 22, 1, 32, FLOATS },
	{ 23, 2, 16, UNORMS },	{ 27, 2, 16, UINTS }, { 42, 4, 8, UNORMS },
	{ 46, 4, 8, UINTS },	{ 47, 4, 8, SINTS },  { 48, 2, 32, UINTS },
	{ 50, 2, 32, FLOATS },	{ 55, 4, 16, UINTS }, { 56, 4, 16, SINTS },
	{ 61, 4, 32, UINTS },	{ 63, 4, 32, FLOATS },
};

struct picture {
	const struct kind *k;
	const struct format *f;
	unsigned w, h, layers;	/* of level 0; layers: depth, or slices */
	unsigned levels, base, last; /* all levels, and those of the view */
	unsigned first;		/* slice of the view */
	unsigned pitch;		/* in texels, 0: as the width calls for */
	unsigned sel[4];
	unsigned mode;
};

static inline unsigned texel_bytes(const struct picture *p)
{
	return (unsigned)(p->f->n * p->f->bits / 8);
}

static inline void put_bits(uint32_t *d, unsigned at, uint64_t v)
{
	for (unsigned i = 0; v; i++, v >>= 1)
		if (v & 1)
			d[(at + i) / 32] |= 1u << (at + i) % 32;
}

/* The descriptor in s[8:15], field by field as RDNA3 ISA 10.5 has them. */
static inline void describe(struct bench *b, const struct picture *p)
{
	uint32_t *d = &b->wave[0].s[8];

	memset(d, 0, 32);
	put_bits(d, 0, BENCH_DATA >> 8);
	put_bits(d, 48, p->levels - 1);
	put_bits(d, 52, p->f->number);
	put_bits(d, 62, p->w - 1);
	put_bits(d, 78, p->k->rows ? p->h - 1 : 0);
	for (unsigned i = 0; i < 4; i++)
		put_bits(d, 96 + 3 * i, p->sel[i]);
	put_bits(d, 108, p->base);
	put_bits(d, 112, p->last);
	put_bits(d, 116, p->mode);
	put_bits(d, 124, p->k->type);
	if (p->k->layers)
		put_bits(d, 128, p->layers - 1);
	else if (p->pitch)
		put_bits(d, 128, p->pitch - 1);
	if (p->k->array)
		put_bits(d, 144, p->first);
}

static inline unsigned row_bytes(const struct picture *p, unsigned level)
{
	const unsigned w = (p->w + (1u << level) - 1) >> level;

	if (p->pitch && p->levels == 1)
		return p->pitch * texel_bytes(p);
	return (w * texel_bytes(p) + 255) / 256 * 256;
}

static inline unsigned rows_of(const struct picture *p, unsigned level)
{
	return p->k->rows ? (p->h + (1u << level) - 1) >> level : 1;
}

static inline unsigned level_start(const struct picture *p, unsigned level)
{
	unsigned at = 0;

	for (unsigned i = p->levels - 1; i > level; i--)
		at += row_bytes(p, i) * rows_of(p, i);
	return at;
}

static inline unsigned slice_size(const struct picture *p)
{
	return level_start(p, 0) + row_bytes(p, 0) * rows_of(p, 0);
}

static inline unsigned at_least_1(unsigned n)
{
	return n ? n : 1;
}

/* Offset of the texel at c[] of the view's level, or -1: there is none. */
static inline int find(const struct picture *p, const uint32_t *c, uint32_t level)
{
	const unsigned l = p->base + level;
	uint32_t x = c[0], y = p->k->rows ? c[1] : 0;
	uint32_t z = p->k->layers ? c[p->k->coords - 1] : 0;

	if (level > p->last - p->base || x >= at_least_1(p->w >> l) ||
	    y >= (p->k->rows ? at_least_1(p->h >> l) : 1))
		return -1;
	if (p->k->array && z >= p->layers - p->first)
		return -1;
	if (!p->k->array && z >= (p->k->layers ? at_least_1(p->layers >> l) :
						 1))
		return -1;
	return (int)((z + (p->k->array ? p->first : 0)) * slice_size(p) +
		     level_start(p, l) + y * row_bytes(p, l) +
		     x * texel_bytes(p));
}

static inline void random_picture(struct picture *p)
{
	do {
		*p = (struct picture){ .sel = { 4, 5, 6, 7 } };
		p->k = &kinds[rnd(5)];
		p->f = &formats[rnd(sizeof(formats) / sizeof(*formats))];
		p->w = 1 + rnd(24);
		p->h = p->k->rows ? 1 + rnd(5) : 1;
		p->layers = p->k->layers ? 1 + rnd(3) : 1;
		p->levels = 1 + (rnd(2) ? rnd(3) : 0);
		p->base = rnd(p->levels);
		p->last = p->base + rnd(p->levels - p->base);
		p->first = p->k->array ? rnd(p->layers) : 0;
		if (!p->k->layers && p->levels == 1 && rnd(2))
			p->pitch = 512 / texel_bytes(p);
	} while (slice_size(p) * p->layers > MEM);
}

/* ------------------------------------------------------------- texels ---- */

static inline uint32_t component(const struct picture *p, const uint8_t *m, int i)
{
	const int bits = p->f->bits;
	uint32_t v = 0;
	float f;

	if (i >= p->f->n) {
		f = i == 3;
		if (p->f->numbers == UINTS || p->f->numbers == SINTS)
			return i == 3;
		memcpy(&v, &f, 4);
		return v;
	}
	memcpy(&v, m + i * bits / 8, (size_t)bits / 8);
	if (p->f->numbers == SINTS && v >> (bits - 1) && bits < 32)
		v |= UINT32_MAX << bits;
	if (p->f->numbers == UNORMS) {
		f = (float)(v / (double)((1 << bits) - 1));
		memcpy(&v, &f, 4);
	}
	return v;
}

static inline void load(const struct picture *p, const uint8_t *m, uint32_t *out)
{
	const bool ints = p->f->numbers == UINTS || p->f->numbers == SINTS;

	for (int i = 0; i < 4; i++)
		out[i] = p->sel[i] >= 4 ?
				 component(p, m, (int)p->sel[i] - 4) :
			 p->sel[i] == 0 ? 0 :
			 ints		? 1 : 0x3f800000;
}

/* A value that the format holds exactly, and its bytes. */
static inline void random_texel(const struct picture *p, uint8_t *m)
{
	for (unsigned i = 0; i < texel_bytes(p); i++)
		m[i] = (uint8_t)rnd(256);
	if (p->f->numbers == FLOATS)
		for (int i = 0; i < p->f->n; i++)
			m[4 * i + 3] = 0x40;
}

#endif
