/* What a workbench must survive. */
#include "gpu.h"

kernel void bad_store(global uint *p, ulong far)
{
	*(global uint *)((global char *)p + far) = 1;
}

kernel void forever(global volatile uint *p)
{
	while (p[0] == 0)
		;
}

kernel void illegal(global uint *p)
{
	p[0] = 1;
	/* VOP3 opcode 0x3ff, which no gfx11 chip has. */
	__asm__ volatile(".long 0xd7ff0000\n\t.long 0");
	p[1] = 1;
}
