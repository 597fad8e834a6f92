/*
 * probes/host/host_cpu.c - which processor this is, and what it can do.
 *
 * A hypervisor may hide or change the model number, but not what the core can
 * execute nor, usually, its first-level caches, so those decide.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "probes/host/host.h"

bool host_has(enum host_need need)
{
	__builtin_cpu_init();
	switch (need) {
	case HOST_BASE:
	case HOST_SSE2:
		return true;
#define HAS(name, word) \
	case name:      \
		return __builtin_cpu_supports(word);
	HAS(HOST_SSSE3, "ssse3")
	HAS(HOST_SSE41, "sse4.1")
	HAS(HOST_SSE42, "sse4.2")
	HAS(HOST_POPCNT, "popcnt")
	HAS(HOST_LZCNT, "lzcnt")
	HAS(HOST_BMI, "bmi")
	HAS(HOST_BMI2, "bmi2")
	HAS(HOST_PCLMUL, "pclmul")
	HAS(HOST_AVX, "avx")
	HAS(HOST_AVX2, "avx2")
	HAS(HOST_FMA, "fma")
	HAS(HOST_F16C, "f16c")
	HAS(HOST_AVX512F, "avx512f")
	HAS(HOST_AVX512BW, "avx512bw")
	HAS(HOST_AVX512DQ, "avx512dq")
	HAS(HOST_AVX512CD, "avx512cd")
	HAS(HOST_AVX512VNNI, "avx512vnni")
	HAS(HOST_AVX512VPOPCNT, "avx512vpopcntdq")
#undef HAS
	case HOST_NEEDS:
		break;
	}
	return false;
}

static const char *const arch_name[HOST_ARCHES] = {
	"unknown", "Zen 3", "Zen 4", "Skylake-X", "Ice Lake", "Golden Cove",
	"Redwood Cove",
};

const char *host_arch_name(enum host_arch a)
{
	return arch_name[a];
}

static enum host_arch identify_amd(const struct host_facts *f)
{
	if (f->family != 0x19)
		return HOST_OTHER;
	return f->avx512f ? HOST_ZEN4 : HOST_ZEN3;
}

static enum host_arch identify_intel(const struct host_facts *f)
{
	/* Alder Lake and Raptor Lake have the core, but not AMX. */
	const bool client = f->family == 6 &&
			    (f->model == 0x97 || f->model == 0x9a ||
			     f->model == 0xb7 || f->model == 0xba ||
			     f->model == 0xbf);

	if (f->amx && f->l1i_bytes >= 65536)
		return HOST_RWC;
	if (f->amx || f->avx512_fp16 || client)
		return HOST_GLC;
	if (f->avx512f && f->gfni)
		return HOST_ICX;
	return f->avx512f ? HOST_SKX : HOST_OTHER;
}

enum host_arch host_arch_of(const struct host_facts *f, char why[160])
{
	enum host_arch a = HOST_OTHER;

	if (!strcmp(f->vendor, "AuthenticAMD"))
		a = identify_amd(f);
	else if (!strcmp(f->vendor, "GenuineIntel"))
		a = identify_intel(f);
	snprintf(why, 160, "%s family %u model %u,%s%s%s%s L1I %llu KiB, "
		 "L1D %llu KiB", f->vendor, f->family, f->model,
		 f->avx512f ? " AVX-512F" : "", f->gfni ? " GFNI" : "",
		 f->avx512_fp16 ? " FP16" : "", f->amx ? " AMX" : "",
		 (unsigned long long)f->l1i_bytes / 1024,
		 (unsigned long long)f->l1d_bytes / 1024);
	return a;
}

/* Leaf 4 of Intel and 0x8000001d of AMD describe caches alike. */
static void read_caches(struct host_cpu *c, struct host_facts *f)
{
	const unsigned leaf = f->vendor[0] == 'A' ? 0x8000001d : 4;
	unsigned a, b, x, d;

	for (unsigned i = 0; i < 8; i++) {
		if (!__get_cpuid_count(leaf, i, &a, &b, &x, &d) || !(a & 31))
			return;
		const unsigned type = a & 31, level = a >> 5 & 7;
		const uint64_t bytes = (uint64_t)((b >> 22) + 1) *
				       ((b >> 12 & 1023) + 1) *
				       ((b & 4095) + 1) * ((uint64_t)x + 1);

		if (type == 2 && level == 1)
			f->l1i_bytes = bytes;
		if (type == 1 && level == 1)
			f->l1d_bytes = bytes;
		if (type != 2 && level >= 1 && level <= HOST_CACHES_MAX) {
			c->cache_bytes[level - 1] = bytes;
			c->n_caches = (int)level > c->n_caches ? (int)level :
								 c->n_caches;
		}
	}
}

static void read_facts(struct host_cpu *c, struct host_facts *f)
{
	unsigned a, b, x, d;

	__cpuid(0, a, b, x, d);
	memcpy(f->vendor, &b, 4);
	memcpy(f->vendor + 4, &d, 4);
	memcpy(f->vendor + 8, &x, 4);
	__cpuid(1, a, b, x, d);
	f->family = a >> 8 & 15;
	f->model = (a >> 4 & 15) | (a >> 12 & 0xf0);
	if (f->family == 15)
		f->family += a >> 20 & 255;
	f->avx512f = host_has(HOST_AVX512F);
	if (__get_cpuid_count(7, 0, &a, &b, &x, &d)) {
		f->gfni = x >> 8 & 1;
		f->avx512_fp16 = d >> 23 & 1;
		f->amx = d >> 24 & 1;
	}
	read_caches(c, f);
}

static void cpu_name(char name[64])
{
	unsigned r[12];

	for (unsigned i = 0; i < 3; i++)
		if (!__get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1],
				 &r[4 * i + 2], &r[4 * i + 3])) {
			snprintf(name, 64, "x86-64");
			return;
		}
	memcpy(name, r, 48);
	name[48] = 0;
}

static uint64_t raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Against the raw monotonic clock over 20 ms: good to about 5 ppm. */
static uint64_t measure_tsc(void)
{
	const uint64_t start = raw_ns(), tsc = __rdtsc();
	uint64_t now;

	do
		now = raw_ns();
	while (now < start + 20000000);
	return (uint64_t)((double)(__rdtsc() - tsc) * 1e9 /
			  (double)(now - start));
}

void host_cpu_read(struct host_cpu *c)
{
	struct host_facts f = { 0 };
	unsigned a, b, x, d;
	cpu_set_t set;

	*c = (struct host_cpu){ .cpus = 1 };
	cpu_name(c->name);
	read_facts(c, &f);
	c->arch = host_arch_of(&f, c->why);
	c->invariant = __get_cpuid(0x80000007, &a, &b, &x, &d) && d >> 8 & 1;
	c->virtual_machine = __get_cpuid(1, &a, &b, &x, &d) && x >> 31 & 1;
	c->tsc_hz = measure_tsc();
	if (!sched_getaffinity(0, sizeof(set), &set))
		c->cpus = (unsigned)CPU_COUNT(&set);
}
