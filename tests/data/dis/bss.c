/*
 * Variables in .bss and .data.  bss.co is this, by
 *	clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O3
 */
typedef unsigned u32;
#define GLOBAL __attribute__((address_space(1)))

GLOBAL u32 counter, table[300], start = 7;
static GLOBAL u32 hidden[5];

__attribute__((amdgpu_kernel)) void k(GLOBAL u32 *out)
{
	u32 i = __builtin_amdgcn_workitem_id_x();

	table[i] += counter + start;
	hidden[i % 5] ^= table[i];
	out[i] = table[i] + hidden[(i + 1) % 5];
}
