/*
 * kfd/soft/exec/format.c - conversion of typed buffer formats.
 *
 * format.def lists them.  RDNA3 ISA 9.1.6.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/mem.h"

enum type { UNORM, SNORM, USCALED, SSCALED, UINT, SINT, FLOAT };

static const struct format {
	uint8_t type; /* enum type */
	uint8_t bits[4];
} formats[] = {
	{ 0, { 0 } },
#define FORMAT(t, x, y, z, w) { t, { x, y, z, w } },
#include "kfd/soft/exec/format.def"
};
_Static_assert(ARRAY_SIZE(formats) == 64, "formats are numbered by 6 bits");

static const struct format *find_format(uint32_t format)
{
	return &formats[format < ARRAY_SIZE(formats) ? format : 0];
}

uint32_t soft_format_bytes(uint32_t format, int n)
{
	const struct format *f = find_format(format);
	bool packed = f->bits[1] && f->bits[0] % 8 + f->bits[1] % 8;
	uint32_t bits = 0;

	for (int i = 0; i < (packed ? 4 : n); i++)
		bits += f->bits[i];
	return bits / 8;
}

/* -------------------------------------------------------- number types ---- */

static float half_to_float(uint16_t bits)
{
	_Float16 h;

	memcpy(&h, &bits, sizeof(h));
	return (float)h;
}

static uint16_t float_to_half(float f)
{
	_Float16 h = (_Float16)f;
	uint16_t bits;

	memcpy(&bits, &h, sizeof(bits));
	return bits;
}

static int32_t signed_field(uint32_t v, int bits)
{
	return (int32_t)(v << (32 - bits)) >> (32 - bits);
}

static uint32_t max_unsigned(int bits)
{
	return UINT32_MAX >> (32 - bits);
}

static int32_t max_signed(int bits)
{
	return (int32_t)(max_unsigned(bits) >> 1);
}

/* Floats of 10 and 11 bits are halves without sign and low mantissa. */
static float small_to_float(uint32_t v, int bits)
{
	return half_to_float((uint16_t)(v << (15 - bits)));
}

static uint32_t float_to_small(float f, int bits)
{
	if (f <= 0)
		return 0;
	return (float_to_half(f) & 0x7fff) >> (15 - bits);
}

static bool is_integer(const struct format *f)
{
	return f->type == UINT || f->type == SINT;
}

/* -------------------------------------------------------------- loads ---- */

/* A component as a float. */
static float load_float(enum type t, uint32_t v, int bits)
{
	float f;

	switch (t) {
	case UNORM:
		return (float)v / (float)max_unsigned(bits);
	case SNORM:
		f = (float)signed_field(v, bits) / (float)max_signed(bits);
		return f < -1 ? -1 : f;
	case USCALED:
		return (float)v;
	case SSCALED:
		return (float)signed_field(v, bits);
	default:
		return bits == 16 ? half_to_float((uint16_t)v) :
				    small_to_float(v, bits);
	}
}

static uint32_t load_one(const struct format *f, bool d16, uint32_t v, int bits)
{
	float x;

	if (f->type == UINT)
		return d16 ? v & 0xffff : v;
	if (f->type == SINT) {
		v = (uint32_t)signed_field(v, bits);
		return d16 ? v & 0xffff : v;
	}
	if (f->type == FLOAT && bits == (d16 ? 16 : 32))
		return v; /* NaNs pass as they are */
	x = bits == 32 ? f32_value(v) : load_float(f->type, v, bits);
	return d16 ? float_to_half(x) : f32_bits(x);
}

static uint32_t get_bits(const uint8_t *mem, int at, int bits)
{
	uint64_t v = 0;

	for (int i = at / 8; i <= (at + bits - 1) / 8; i++)
		v |= (uint64_t)mem[i] << 8 * (i - at / 8);
	return (uint32_t)(v >> at % 8) & max_unsigned(bits);
}

uint32_t soft_format_one(uint32_t format, bool d16)
{
	if (is_integer(find_format(format)))
		return 1;
	return d16 ? float_to_half(1) : f32_bits(1);
}

void soft_format_load(uint32_t format, bool d16, const uint8_t *mem,
		      uint32_t out[4])
{
	const struct format *f = find_format(format);
	int at = 0;

	for (int i = 0; i < 4; i++) {
		int bits = f->bits[i];

		out[i] = i == 3 ? soft_format_one(format, d16) : 0;
		if (bits)
			out[i] = load_one(f, d16, get_bits(mem, at, bits),
					  bits);
		at += bits;
	}
}

/* ------------------------------------------------------------- stores ---- */

/* A NaN becomes the low end, 0 of unsigned types. */
static float clamp_float(float f, float low, float high)
{
	if (isnan(f))
		return low < 0 ? 0 : low;
	return f < low ? low : f > high ? high : f;
}

static uint32_t store_float(enum type t, float f, int bits)
{
	double max = max_unsigned(bits), half = max_signed(bits);

	switch (t) {
	case UNORM:
		return (uint32_t)rint(clamp_float(f, 0, 1) * max);
	case SNORM:
		return (uint32_t)(int32_t)rint(clamp_float(f, -1, 1) * half);
	case USCALED:
		return (uint32_t)clamp_float(f, 0, (float)max);
	case SSCALED:
		return (uint32_t)(int32_t)clamp_float(f, (float)(-half - 1),
						(float)half);
	default:
		return bits == 16 ? float_to_half(f) : float_to_small(f, bits);
	}
}

static uint32_t store_integer(enum type t, uint32_t v, int bits)
{
	int32_t s = (int32_t)v, max = max_signed(bits);

	if (t == UINT)
		return v > max_unsigned(bits) ? max_unsigned(bits) : v;
	return (uint32_t)(s > max ? max : s < -max - 1 ? -max - 1 : s);
}

static uint32_t store_one(const struct format *f, bool d16, uint32_t v,
			  int bits)
{
	if (d16)
		v = f->type == SINT ? (uint32_t)(int16_t)v : v & 0xffff;
	if (is_integer(f))
		return store_integer(f->type, v, bits);
	if (f->type == FLOAT && bits == (d16 ? 16 : 32))
		return v;
	if (d16)
		v = f32_bits(half_to_float((uint16_t)v));
	return bits == 32 ? v : store_float(f->type, f32_value(v), bits);
}

static void set_bits(uint8_t *mem, int at, int bits, uint32_t v)
{
	for (int i = 0; i < bits; i++) {
		uint8_t bit = (uint8_t)(1u << (at + i) % 8);

		mem[(at + i) / 8] &= (uint8_t)~bit;
		if (v >> i & 1)
			mem[(at + i) / 8] |= bit;
	}
}

void soft_format_store(uint32_t format, bool d16, const uint32_t in[4],
		       uint8_t *mem)
{
	const struct format *f = find_format(format);
	int at = 0;

	for (int i = 0; i < 4; i++) {
		int bits = f->bits[i];

		if (bits)
			set_bits(mem, at, bits,
				 store_one(f, d16, in[i], bits));
		at += bits;
	}
}
