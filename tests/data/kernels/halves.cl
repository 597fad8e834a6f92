/* Half precision one by one, bfloat16 by hand, and bytes. */
#include "gpu.h"

static float from_bf16(ushort u)
{
	return __builtin_astype((uint)u << 16, float);
}

static ushort to_bf16(float f)
{
	uint u = __builtin_astype(f, uint);

	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

kernel void polynomial(global const half *x, global half *y)
{
	uint i = gid();
	half v = x[i];

	y[i] = __builtin_fmaf16(__builtin_fmaf16(v, (half)0.5f, (half)-1.25f),
				v, (half)3) -
	       v * (half)2;
}

kernel void bf16_axpy(global const ushort *x, global ushort *y, float a)
{
	uint i = gid();

	y[i] = to_bf16(__builtin_fmaf(a, from_bf16(x[i]), from_bf16(y[i])));
}

kernel void bytes(global const uchar *x, global char *y, global short *sum)
{
	uint i = gid();
	short s = 0;

	for (uint k = 0; k < 4; k++) {
		int v = x[4 * i + k] - 128;

		y[4 * i + k] = v > 100 ? 100 : v < -100 ? -100 : v;
		s += y[4 * i + k];
	}
	sum[i] = s;
}
