#include <stdlib.h>

#include "base/base.h"

static bool has_v3(void)
{
	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("f16c") &&
	       __builtin_cpu_supports("fma") &&
	       __builtin_cpu_supports("lzcnt");
}

static bool has_v4(void)
{
	return has_v3() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

int cpu_level(const char *variable)
{
	const char *most = getenv(variable);
	int level = has_v4() ? 4 : has_v3() ? 3 : 2;

	if (most && most[0] == 'v' && most[1] >= '2' && most[1] - '0' < level)
		level = most[1] - '0';
	return level;
}
