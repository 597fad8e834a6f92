/* 64-bit integer mixing, bit counting, and a CRC by table in constant memory. */
#include "gpu.h"

constant uint nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

kernel void hash(global const ulong *x, global ulong *mixed, global uint *crc,
		 global uint *counts)
{
	uint i = gid(), c = ~0u;
	ulong v = x[i];

	for (uint k = 0; k < 16; k++)
		c = c >> 4 ^ nibble[(c ^ (uint)(v >> 4 * k)) & 15];
	crc[i] = ~c;
	counts[i] = __builtin_popcountl(v) |
		    (v ? __builtin_clzl(v) : 64) << 8 |
		    (v ? __builtin_ctzl(v) : 64) << 16;
	for (uint k = 0; k < 3; k++) {
		v ^= v >> 33;
		v *= 0xff51afd7ed558ccdul;
		v = v << 29 | v >> 35;
		v += (long)v >> 7;
	}
	mixed[i] = v;
}
