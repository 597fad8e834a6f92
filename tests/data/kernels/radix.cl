/*
 * Radix sort of 128 keys by a workgroup of 128: four bits at a time, counted in
 * LDS, each key's place from a scan over the counts.
 */
#include "gpu.h"

#define KEYS 128

kernel void radix(global uint *x)
{
	local uint key[KEYS];
	local uint count[16 * KEYS]; /* [digit][key] */
	uint i = lid(), k = x[gid()];

	for (uint shift = 0; shift < 32; shift += 4) {
		uint digit = k >> shift & 15, sum = 0;

		for (uint d = 0; d < 16; d++)
			count[d * KEYS + i] = d == digit;
		barrier_lds();
		/* Sixteen counts each, then the sums of those before. */
		for (uint j = 0; j < 16; j++) {
			sum += count[i * 16 + j];
			count[i * 16 + j] = sum;
		}
		barrier_lds();
		key[i] = sum;
		barrier_lds();
		sum = 0;
		for (uint j = 0; j < i; j++)
			sum += key[j];
		barrier_lds();
		for (uint j = 0; j < 16; j++)
			count[i * 16 + j] += sum;
		barrier_lds();
		key[count[digit * KEYS + i] - 1] = k;
		barrier_lds();
		k = key[i];
		barrier_lds();
	}
	x[gid()] = k;
}
