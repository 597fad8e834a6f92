/* A variable of another object, and what another object may replace. */
typedef unsigned u32;
#define GLOBAL __attribute__((address_space(1)))
#define OPEN __attribute__((visibility("default")))

extern OPEN GLOBAL u32 outside[64];
OPEN GLOBAL u32 here[64] = { 1, 2, 3 };

OPEN __attribute__((noinline)) u32 helper(u32 x)
{
	return x * 3 + here[x & 63];
}

__attribute__((amdgpu_kernel)) void k(GLOBAL u32 *out)
{
	u32 i = __builtin_amdgcn_workitem_id_x();

	out[i] = helper(i) + outside[i];
}
