// Compute shaders for tests/data/clients/vulkan.c, one for each of the names.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : enable

layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint x[]; };
layout(binding = 1) buffer Out { uint y[]; };
layout(push_constant) uniform Push { uint n; uint k; };
shared uint group[64];

void main()
{
	const uint i = gl_GlobalInvocationID.x;
	const uint value = i < n ? x[i] : 0;

#if defined(SHARED) // y[i] = k x[i] + sum over its group of (j + 1) x[j]
	group[gl_LocalInvocationID.x] = value;
	barrier();
	uint sum = 0;
	for (uint j = 0; j < 64; j++)
		sum += group[j] * (j + 1);
	if (i < n)
		y[i] = value * k + sum;
#elif defined(FLOATS) // the bits of sqrt(x[i]) * k + 1 / (x[i] + 1)
	const float f = float(value);
	if (i < n)
		y[i] = floatBitsToUint(sqrt(f) * float(k) + 1 / (f + 1));
#elif defined(ATOMICS) // y[x[i] % k] counts
	if (i < n)
		atomicAdd(y[value % k], 1);
#elif defined(BRANCHES) // steps of 3 n + 1 until 1
	uint v = value + 1, steps = 0;
	while (v != 1 && steps < 1000) {
		v = (v & 1) != 0 ? 3 * v + 1 : v / 2;
		steps++;
	}
	if (i < n)
		y[i] = steps;
#elif defined(SUBGROUPS) // y[0] is the sum of all, an atomic a subgroup
	const uint sum = subgroupAdd(value);
	if (subgroupElect())
		atomicAdd(y[0], sum);
#endif
}
