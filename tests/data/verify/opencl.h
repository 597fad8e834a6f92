/*
 * The functions of OpenCL C that these kernels use, in terms of the compiler's
 * builtins: nothing is linked with them.
 */
#define get_local_id(d)                                       \
	((d) == 0 ? (int)__builtin_amdgcn_workitem_id_x() :   \
		    (int)__builtin_amdgcn_workitem_id_y())
#define get_group_id(d)                                       \
	((d) == 0 ? (int)__builtin_amdgcn_workgroup_id_x() :  \
		    (int)__builtin_amdgcn_workgroup_id_y())
#define get_local_size(d)                                      \
	((d) == 0 ? (int)__builtin_amdgcn_workgroup_size_x() : \
		    (int)__builtin_amdgcn_workgroup_size_y())
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_global_size(d) ((int)__builtin_amdgcn_grid_size_x())
#define barrier_local()                                                 \
	do {                                                            \
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");  \
		__builtin_amdgcn_s_barrier();                           \
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");  \
	} while (0)
