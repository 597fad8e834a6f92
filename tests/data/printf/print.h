/*
 * What the printing kernels share.  clang calls __printf_alloc for room in the
 * linear buffer that kfd/printf.h describes.
 */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define lid() ((int)__builtin_amdgcn_workitem_id_x())
#define group() ((int)__builtin_amdgcn_workgroup_id_x())
#define gid() (group() * (int)__builtin_amdgcn_workgroup_size_x() + lid())

#define PRINTF_BUFFER 72 /* bytes into the hidden arguments */

__attribute__((always_inline)) global char *__printf_alloc(uint bytes)
{
	constant uchar *hidden =
		(constant uchar *)__builtin_amdgcn_implicitarg_ptr();
	global uint *p = *(global uint *constant *)(hidden + PRINTF_BUFFER);
	global atomic_uint *used = (global atomic_uint *)p;
	const uint size = p[1];
	uint at = __opencl_atomic_load(used, __ATOMIC_RELAXED,
				       __OPENCL_MEMORY_SCOPE_DEVICE);

	do {
		if (8 + at + bytes > size)
			return 0;
	} while (!__opencl_atomic_compare_exchange_strong(
		used, &at, at + bytes, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
		__OPENCL_MEMORY_SCOPE_DEVICE));
	return (global char *)p + 8 + at;
}
