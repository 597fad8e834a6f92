/* Twins of compiler/kernels/gemv.c: a row of the matrix per wave. */
#include "lib.h"

typedef char c4 __attribute__((ext_vector_type(4)));
typedef uchar u4 __attribute__((ext_vector_type(4)));

enum { COLUMNS = 128 }; /* of a wave, four per lane */

INLINE float dot4(f4 a, f4 b, float sum)
{
	for (int k = 0; k < 4; k++)
		sum = FMA(a[k], b[k], sum);
	return sum;
}

INLINE void row_store(global float *y, int row, float sum)
{
	sum = wave_sum(sum);
	if (lane() == 0)
		y[row] = sum;
}

KERNEL(128) gemv(global float *y, global const ELEM *restrict ws,
		 global const float *restrict x, int rows, int n)
{
	const int row = wave_row(), whole = n & -4;
	global const ELEM *w = ws + (long)row * n;
	float sum = 0;

	if (row >= rows)
		return;
	for (int c = lane() * 4; c < whole; c += COLUMNS)
		sum = dot4(__builtin_convertvector(
				   *(global const elem4 *)(w + c), f4),
			   *(global const mem4 *)(x + c), sum);
	for (int c = whole + lane(); c < n; c += 32)
		sum = FMA((float)w[c], x[c], sum);
	row_store(y, row, sum);
}

KERNEL(128) gemv_int8(global float *y, global const char *restrict ws,
		      global const half *restrict scales,
		      global const float *restrict x, int rows, int n)
{
	const int row = wave_row();
	global const char *w = ws + (long)row * n;
	global const half *scale = scales + (long)row * (n >> 5);
	float sum = 0;

	if (row >= rows)
		return;
	for (int c = lane() * 4; c < n; c += COLUMNS) {
		const f4 q = __builtin_convertvector(
			*(global const c4 *)(w + c), f4);
		const float part = dot4(q, *(global const f4 *)(x + c), 0);

		sum = FMA((float)scale[c >> 5], part, sum);
	}
	row_store(y, row, sum);
}

KERNEL(128) gemv_int4(global float *y, global const uchar *restrict ws,
		      global const half *restrict scales,
		      global const float *restrict x, int rows, int n)
{
	const int row = wave_row(), half_n = n >> 1;
	global const uchar *w = ws + (long)row * half_n;
	global const half *scale = scales + (long)row * (n >> 5);
	float sum = 0;

	if (row >= rows)
		return;
	for (int b = lane() * 4; b < half_n; b += COLUMNS) {
		const int g = b >> 4, c = (g << 5) + (b & 15);
		const i4 q = __builtin_convertvector(
			*(global const u4 *)(w + b), i4);
		const f4 lo = __builtin_convertvector((q & 15) - 8, f4);
		const f4 hi = __builtin_convertvector((q >> 4) - 8, f4);
		float part = dot4(lo, *(global const f4 *)(x + c), 0);

		part = dot4(hi, *(global const f4 *)(x + c + 16), part);
		sum = FMA((float)scale[g], part, sum);
	}
	row_store(y, row, sum);
}

INLINE uint nibbles_spread(uint x)
{
	x = (x | x << 8) & 0x00ff00ff;
	return (x | x << 4) & 0x0f0f0f0f;
}

INLINE uint pairs_spread(uint x)
{
	x = (x | x << 12) & 0x000f000f;
	return (x | x << 6) & 0x03030303;
}

/* Codes of even and of odd columns, bytes; `more` than their numbers. */
INLINE float own_dot(uint even, uint odd, global const float *x, float more)
{
	const f4 a = *(global const f4 *)x, b = *(global const f4 *)(x + 4);
	float part = 0, all = 0;

	for (int j = 0; j < 8; j++) {
		const float v = j < 4 ? a[j] : b[j - 4];
		const uint code = (j % 2 ? odd : even) >> j / 2 * 8 & 255;

		part = FMA((float)code, v, part);
		all += v;
	}
	return FMA(all, -more, part);
}

KERNEL(128) gemv_int6(global float *y, global const uint *restrict lows,
		      global const ushort *restrict highs,
		      global const half *restrict scales,
		      global const float *restrict x, int rows, int n,
		      int shift)
{
	const int row = wave_row();
	const long at = (long)row * (n >> 3);
	global const half *scale = scales + (long)row * (n >> shift);
	float sum = 0;

	if (row >= rows)
		return;
	for (int c = lane() * 8; c < n; c += 256) {
		const uint low = lows[at + (c >> 3)];
		const uint pairs = nibbles_spread(highs[at + (c >> 3)]);
		const uint even = (low & 0x0f0f0f0f) |
				  (pairs & 0x03030303) << 4;
		const uint odd = (low >> 4 & 0x0f0f0f0f) |
				 (pairs & 0x0c0c0c0c) << 2;

		sum = FMA((float)scale[c >> shift],
			  own_dot(even, odd, x + c, 32), sum);
	}
	row_store(y, row, sum);
}

KERNEL(128) gemv_int3(global float *y, global const ushort *restrict lows,
		      global const uchar *restrict highs,
		      global const half *restrict scales,
		      global const float *restrict x, int rows, int n,
		      int shift)
{
	const int row = wave_row();
	const long at = (long)row * (n >> 3);
	global const half *scale = scales + (long)row * (n >> shift);
	float sum = 0;

	if (row >= rows)
		return;
	for (int c = lane() * 8; c < n; c += 256) {
		const uint pairs = nibbles_spread(lows[at + (c >> 3)]);
		const uint bits = pairs_spread(highs[at + (c >> 3)]);
		const uint even = (pairs & 0x03030303) |
				  (bits & 0x01010101) << 2;
		const uint odd = (pairs >> 2 & 0x03030303) |
				 (bits & 0x02020202) << 1;

		sum = FMA((float)scale[c >> shift],
			  own_dot(even, odd, x + c, 4), sum);
	}
	row_store(y, row, sum);
}
