/*
 * Code of the host where the system lets the process make no more of it: what
 * was made before goes on running, and what is executed often later runs
 * without.
 */
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/exec/wave.h"
#include "tests/tap.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define RUNS 100u /* often enough for the fastest form */
#define SECOND 1024u /* bytes behind the first program */

enum { GOOD, WRONG, NO_SUCH_CALL };

/* v1 += v2 and v3 ^= v1, `by` of which v2 is. */
static void put_program(struct bench *b, size_t at)
{
	uint32_t code[16];
	const size_t n = code_lines("v_add_nc_u32 v1, v1, v2\n"
				    "v_xor_b32 v3, v3, v1\n"
				    "s_endpgm", 32, code, ARRAY_SIZE(code));

	memcpy(b->code + at, code, n * sizeof(*code));
}

/* False: some lane of v1 or v3 is not what it must be. */
static bool has_run_right(struct bench *b, size_t at)
{
	struct soft_wave *w = &b->wave[0];
	uint32_t sum[SOFT_LANES], all[SOFT_LANES];
	bool good = true;

	memcpy(sum, w->v[0][1], sizeof(sum));
	memcpy(all, w->v[0][3], sizeof(all));
	for (unsigned i = 0; i < RUNS; i++) {
		w->pc = BENCH_CODE + at;
		w->state = SOFT_READY;
		soft_wave_run(w, 1000);
		for (uint32_t k = 0; k < SOFT_LANES; k++)
			all[k] ^= sum[k] += k + 5;
	}
	for (uint32_t k = 0; k < SOFT_LANES; k++)
		good &= w->v[0][1][k] == sum[k] && w->v[0][3][k] == all[k];
	return good;
}

/* In a process of its own: with `first` a program is hot before. */
static int run_refused(bool first)
{
	struct bench b;
	bool good = true;

	bench_init(&b, 32, 1);
	for (uint32_t k = 0; k < SOFT_LANES; k++)
		b.wave[0].v[0][2][k] = k + 5;
	put_program(&b, 0);
	put_program(&b, SECOND);
	if (first)
		good = has_run_right(&b, 0);
	if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0))
		return NO_SUCH_CALL;
	good &= has_run_right(&b, SECOND);
	good &= has_run_right(&b, 0);
	bench_fini(&b);
	return good ? GOOD : WRONG;
}

static void test_refused(bool first, const char *what)
{
	const pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(run_refused(first));
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH_CALL)
		skip("Linux 6.3 is needed: %s", what);
	else
		is_i64(status, 0, "%s", what);
}

int main(void)
{
	test_refused(false, "no code of the host is made");
	test_refused(true, "what was made before stays");
	return plan_done();
}
