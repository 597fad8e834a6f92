/*
 * Products of decoding, weights of ELEM: some rows per wave, and RMSNorm of the
 * activations on the way.
 */
#include "lib.h"

enum { ROWS = 4, STEP = 16 / (sizeof(ELEM) == 4 ? 4 : 2) };

typedef float fv __attribute__((ext_vector_type(STEP)));
typedef half hv __attribute__((ext_vector_type(STEP), aligned(8)));
typedef ELEM ev __attribute__((ext_vector_type(STEP), aligned(8)));

#define rsqrt_of(x) __builtin_amdgcn_rsqf(x)

struct input {
	global const float *x, *gain;
	float eps;
	bool norm;
};

/* out[j]: the product of row r[j] with the input, the same in all lanes. */
INLINE void stream_some(global const ELEM *ws, int n, const struct input *in,
			const int *r, float *out, int rows)
{
	float sum[ROWS] = { 0 }, squares = 0, rms = 1;
	global const ELEM *w[ROWS];

	for (int j = 0; j < rows; j++)
		w[j] = ws + (long)r[j] * n;
	for (int i = lane(); i < n / STEP; i += 32) {
		fv x = *(global const fv *)(in->x + i * STEP);

		if (in->norm) {
			for (int e = 0; e < STEP; e++)
				squares = FMA(x[e], x[e], squares);
			x *= *(global const fv *)(in->gain + i * STEP);
		}
		for (int j = 0; j < rows; j++) {
			const fv v = __builtin_convertvector(
				*(global const ev *)(w[j] + i * STEP), fv);

			for (int e = 0; e < STEP; e++)
				sum[j] = FMA(v[e], x[e], sum[j]);
		}
	}
	if (in->norm)
		rms = rsqrt_of(wave_sum(squares) / (float)n + in->eps);
	for (int j = 0; j < rows; j++)
		out[j] = wave_sum(sum[j]) * rms;
}

INLINE void stream_rows(global const ELEM *ws, int n, const struct input *in,
			const int *r, float *out)
{
	stream_some(ws, n, in, r, out, ROWS);
}

INLINE int cut(int row, int rows)
{
	return row < rows ? row : rows - 1;
}
