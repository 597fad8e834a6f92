/* Images by descriptors that the kernel makes: loads, samples and stores. */
#include "gpu.h"

typedef float v4f __attribute__((ext_vector_type(4)));
typedef uint v4u __attribute__((ext_vector_type(4)));
typedef uint v8u __attribute__((ext_vector_type(8)));

v4f load_2d(uint, int, int, v8u, uint, uint)
	__asm("llvm.amdgcn.image.load.2d.v4f32.i32");
void store_2d(v4f, uint, int, int, v8u, uint, uint)
	__asm("llvm.amdgcn.image.store.2d.v4f32.i32");
v4f sample_2d(uint, float, float, v8u, v4u, bool, uint, uint)
	__asm("llvm.amdgcn.image.sample.lz.2d.v4f32.f32");

/* 8 by 4 texels of `format`, rows of 256 bytes. */
static v8u image_of(global void *p, uint format)
{
	ulong at = (ulong)p >> 8;
	v8u d = { (uint)at, (uint)(at >> 32) | format << 20 | 3u << 30,
		  1 | 3 << 14, 0x90000fac, 0, 0, 0, 0 };

	return d;
}

/* One that all lanes have. */
static v8u same_image(v8u d)
{
	d.s0 = __builtin_amdgcn_readfirstlane(d.s0);
	d.s1 = __builtin_amdgcn_readfirstlane(d.s1);
	return d;
}

/* Every other lane reads another image: a descriptor after the other. */
kernel void images(global v4f *out, global uint *a, global uint *b,
		   global uint *to)
{
	uint i = gid(), x = i % 8, y = i / 8 % 4;
	v8u bytes = same_image(image_of(a, 42));
	v8u floats = same_image(image_of(to, 63));
	v4u s = { 2 | 2 << 3 | 2 << 6, 0xfff000, 1 << 20 | 1 << 22, 0 };
	v4f here = load_2d(15, x, y, image_of(i & 1 ? a : b, 42), 0, 0);
	v4f there = load_2d(15, 7 - x, y, bytes, 0, 0);
	v4f between = sample_2d(15, (x + 1) / 8.0f, (y + 0.5f) / 4.0f,
				image_of(i & 2 ? a : b, 42), s, false, 0, 0);

	store_2d(here + 2 * there, 15, x, y, floats, 0, 0);
	out[i] = there - between;
}
