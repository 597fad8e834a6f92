/*
 * Addresses in data: of variables, of functions, of an unnamed string.
 * addresses.co is this, by
 *	clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O2 \
 *		-fPIC -fvisibility=default
 */
typedef unsigned u32;
#define GLOBAL __attribute__((address_space(1)))
#define CONST __attribute__((address_space(4)))

GLOBAL u32 one = 1, two = 2;
GLOBAL u32 *GLOBAL list[3] = { &one, &two, &one };
static const CONST char text[] = "thirteen";
const CONST char *GLOBAL word = text + 4;

static __attribute__((noinline)) u32 inc(u32 x)
{
	return x + 1;
}

static __attribute__((noinline)) u32 mul(u32 x)
{
	return x * 5;
}

u32 (*GLOBAL calls[2])(u32) = { inc, mul };

__attribute__((amdgpu_kernel)) void k(GLOBAL u32 *out)
{
	u32 i = __builtin_amdgcn_workitem_id_x();

	out[i] = calls[i & 1](i) + *list[i % 3] + word[i & 3];
}
