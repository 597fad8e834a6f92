/* printf by hostcalls: clang's HIP and ROCm's device library. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
extern "C" __device__ int printf(const char *, ...);

extern "C" __global__ void hip(int n, int *lengths)
{
	const int i = (int)(__builtin_amdgcn_workgroup_id_x() * 64 +
			    __builtin_amdgcn_workitem_id_x());

	if (i < n)
		lengths[i] = printf("hip %d %s %f %lld %c %*d\n", i,
				    i & 1 ? "odd" : "an even number, said at "
				    "such a length that it takes more parts "
				    "than one", -1.5 * i,
				    (long long)i << 32, 'a' + i % 26, 6, -i);
}
