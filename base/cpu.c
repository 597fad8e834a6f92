/*
 * base/cpu.c - the level of the processor's instruction set.
 */
#include <cpuid.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"

/* What clang 14 has no name for. */
static bool has_f16c_and_lzcnt(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C &&
	       __get_cpuid(0x80000001, &a, &b, &c, &d) && c & bit_LZCNT;
}

static bool has_v3(void)
{
	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("fma") && has_f16c_and_lzcnt();
}

static bool has_v4(void)
{
	return has_v3() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

/* Asked once: under a hypervisor, CPUID takes microseconds each time. */
static int level_known(void)
{
	static _Atomic int known;
	int level = atomic_load_explicit(&known, memory_order_relaxed);

	if (!level) {
		level = has_v4() ? 4 : has_v3() ? 3 : 2;
		atomic_store_explicit(&known, level, memory_order_relaxed);
	}
	return level;
}

int cpu_level(const char *variable)
{
	const char *most = getenv(variable);
	int level = level_known();

	if (most && most[0] == 'v' && most[1] >= '2' && most[1] - '0' < level)
		level = most[1] - '0';
	return level;
}
