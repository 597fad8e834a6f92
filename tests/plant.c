/*
 * tests/plant.c - a loss in the measured program, for calibrate --planted.
 *
 * Linked with --wrap of each function below: where one is called from another
 * object it takes 5 % longer than it would, by the processor's own clock.  What
 * it computes stays what it was; no sample is touched.
 */
#include <stdint.h>
#include <x86intrin.h>

#define SHARE 20 /* one part of so many */
/* Iterations of the loop that reads the clock (probes/host/host_cost.c). */
#define CLOCK_LOOPS 100

static void take_longer(uint64_t start)
{
	uint64_t until = __rdtsc();

	until += (until - start) / SHARE;
	while (__rdtsc() < until)
		_mm_pause();
}

/*
 * Integers and pointers in, an integer, a pointer or nothing out: six registers
 * and one. Weak, for not every tool has every function.
 */
#define PLANT(name)                                                        \
	long __real_##name(long, long, long, long, long, long)             \
		__attribute__((weak));                                     \
	long __wrap_##name(long a, long b, long c, long d, long e, long f); \
	long __wrap_##name(long a, long b, long c, long d, long e, long f)  \
	{                                                                  \
		const uint64_t start = __rdtsc();                          \
		long r = __real_##name(a, b, c, d, e, f);                  \
		take_longer(start);                                        \
		return r;                                                  \
	}

PLANT(cpu_gemm)
PLANT(cc_compile)
PLANT(qwen_forward)
PLANT(kfd_run)
PLANT(kfd_wait)
PLANT(kfd_put)
PLANT(kfd_flush)
PLANT(soft_wave_run)

/* The loops of the host's instructions: what is timed is a loop that waits. */
typedef void loop_fn(void *state, uint64_t iterations);
uint64_t __real_host_time(loop_fn *f, void *state, uint64_t iterations)
	__attribute__((weak));
uint64_t __wrap_host_time(loop_fn *f, void *state, uint64_t iterations);
static loop_fn *planted_loop;

static void run_longer(void *state, uint64_t iterations)
{
	const uint64_t start = __rdtsc();

	planted_loop(state, iterations);
	take_longer(start);
}

uint64_t __wrap_host_time(loop_fn *f, void *state, uint64_t iterations)
{
	if (iterations == CLOCK_LOOPS)
		return __real_host_time(f, state, iterations);
	planted_loop = f;
	return __real_host_time(run_longer, state, iterations);
}
