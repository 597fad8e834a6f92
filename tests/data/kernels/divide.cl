/* Integer division, which the compiler expands into dozens of instructions. */
#include "gpu.h"

kernel void divide(global const int *a, global const int *b,
		   global int *quot, global int *rem, global uint *uquot,
		   global long *lquot)
{
	uint i = gid();

	quot[i] = a[i] / b[i];
	rem[i] = a[i] % b[i];
	uquot[i] = (uint)a[i] / (uint)b[i];
	lquot[i] = ((long)a[i] * 1000003) / b[i];
}
