/*
 * What the test kernels share.  They use no device library, only compiler
 * builtins, so that a compiler alone is enough to build them.
 */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define lid() __builtin_amdgcn_workitem_id_x()
#define group() __builtin_amdgcn_workgroup_id_x()
/* From the hidden arguments (code object v5). */
#define group_size() ((uint)__builtin_amdgcn_workgroup_size_x())
#define gid() (group() * group_size() + lid())

/* All LDS writes before it are seen by all reads after it. */
#define barrier_lds()                                                   \
	do {                                                            \
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");  \
		__builtin_amdgcn_s_barrier();                           \
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");  \
	} while (0)

#define add_relaxed(p, v, scope) \
	__opencl_atomic_fetch_add((p), (v), __ATOMIC_RELAXED, (scope))
