/* Constant data with pointers in it: the loader has to relocate them. */
#include "gpu.h"

constant int odd[4] = { 1, 3, 5, 7 };
constant int even[4] = { 2, 4, 6, 8 };
constant int *constant row[2] = { odd, even };

kernel void table(global const uint *pick, global int *y)
{
	uint i = gid();

	y[i] = row[pick[i] & 1][pick[i] >> 1 & 3];
}
