/*
 * The tuner of the host's GEMM: its candidates, its checks, what it stores and
 * what is selected from that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "results/db/tunes.h"
#include "tests/tap.h"

enum { CAP = 600 };

static void names(void)
{
	static const char *const bad[] = {
		"", "dot", "dot v4 ahead10 x",
		"normal v4 12x2 kc512 depth512 nc9 copy",
		"auto v4 12x2 kc512 depth512 nc9",
		"normal v4 12x2 kc70000 depth512 nc9",
	};
	static const char text[] = "swapped v3 6x2 kc256 depth512 nc96";
	char again[CPU_GEMM_TEXT];
	struct cpu_gemm_config c;
	struct err e = { 0 };

	ok(cpu_gemm_config_parse(text, &c, &e), "a configuration is read");
	is_u64(c.path, CPU_GEMM_SWAPPED, "its path");
	is_u64(c.rows * 1000 + c.vecs, 6002, "its tile");
	is_u64(c.depth, 512, "its depth");
	cpu_gemm_config_name(&c, again);
	is_str(again, text, "and printed again");
	ok(cpu_gemm_config_parse("normal vnni 4x3 kc12 depth12 nc1", &c, &e) &&
	   c.level == CPU_LEVEL_VNNI, "a unit is read");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ok(!cpu_gemm_config_parse(bad[i], &c, &e),
		   "\"%s\" is refused", bad[i]);
}

/* Every candidate for a shape is right: first, last and some elements. */
static void candidates(size_t m, size_t n, size_t k, enum cpu_gemm_type type,
		       bool by_n, unsigned level, enum cpu_gemm_type as)
{
	const struct cpu_problem p = { m, n, k, type, by_n, as };
	struct cpu_gemm_config *c = xcalloc(CAP, sizeof(*c));
	size_t count = cpu_gemm_candidates(&p, level, c, CAP), same = 0;
	size_t wrong = 0, compared;
	struct err e = { 0 };
	struct cpu_trial *t = cpu_trial_new(&p, 2, 7, &e);
	char op[CPU_GEMM_TEXT];

	cpu_problem_op(&p, op);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			same += !memcmp(&c[i], &c[j], sizeof(*c));
	for (size_t i = 0; t && i < count; i++) {
		for (size_t x = 0; x < m * n; x++)
			cpu_trial_c(t)[x] = NAN;
		cpu_trial_run(t, &c[i]);
		wrong += !(cpu_trial_worst(t, &compared) <= 1);
	}
	ok(t && count > 20 && count < CAP, "%s, v%u: %zu candidates", op, level,
	   count);
	is_u64(same, 0, "%s, v%u: no two are the same", op, level);
	is_u64(wrong, 0, "%s, v%u: all are right", op, level);
	cpu_trial_free(t);
	free(c);
}

/* What the check must not let pass. */
static void mutants(void)
{
	const struct cpu_problem p = { 40, 70, 300, CPU_GEMM_BF16, true,
				       CPU_GEMM_F32 };
	struct err e = { 0 };
	struct cpu_trial *t = cpu_trial_new(&p, 1, 3, &e);
	float *c = cpu_trial_c(t), keep;
	struct cpu_gemm_config config;
	struct cpu_gemm g = { .m = 40, .n = 70, .k = 300, .b_by_n = true };
	size_t compared;

	cpu_gemm_default(&g, &config);
	cpu_trial_run(t, &config);
	ok(cpu_trial_worst(t, &compared) <= 1, "a right product passes");
	is_u64(compared, 16 * 24, "16 rows and 24 columns are compared");
	keep = c[40 * 70 - 1];
	c[40 * 70 - 1] = NAN;
	ok(isinf(cpu_trial_worst(t, &compared)), "a last element left out");
	/* 300 products of variance 1: 1e-3 is 60 times sqrt(300) eps. */
	c[40 * 70 - 1] = keep + 1e-2f;
	ok(cpu_trial_worst(t, &compared) > 1, "one that is a little off");
	memset(c, 0, 40 * 70 * sizeof(*c));
	ok(cpu_trial_worst(t, &compared) > 1, "zeros");
	cpu_trial_free(t);
}

static bool tune(const char *db, const struct cpu_problem *p,
		 const _Atomic int *stop, struct cpu_outcome *out)
{
	static char name[] = "tests/autotune/cpu-tune",
		    *argv[] = { name, NULL };
	const struct cpu_tune_opts o = { .db = db, .threads = 1,
					 .seconds = .3, .seed = 1,
					 .stop = stop, .argc = 1,
					 .argv = argv };
	struct err e = { 0 };

	return cpu_tune(&o, p, 1, out, &e) || (diag("%s", e.msg), false);
}

static int64_t count(const char *db, const char *sql)
{
	struct err e = { 0 };
	struct res_db *r = res_open(db, RES_READ, &e);
	int64_t n = -1;

	if (!r || !res_query_int(r, &n, &e, sql, ""))
		diag("%s", e.msg);
	res_close(r);
	return n;
}

static void select_from(const char *db, const char *config)
{
	static const struct {
		size_t m, n, k;
		enum cpu_gemm_type type;
		enum cpu_choice how;
		const char *name;
	} want[] = {
		{ 64, 100, 256, CPU_GEMM_BF16, CPU_EXACT, "the same" },
		{ 128, 100, 256, CPU_GEMM_BF16, CPU_NEAREST,
		  "twice the rows" },
		{ 128, 200, 256, CPU_GEMM_BF16, CPU_NEAREST, "as far as 2" },
		{ 130, 200, 256, CPU_GEMM_BF16, CPU_DEFAULT, "farther" },
		{ 64, 100, 256, CPU_GEMM_F16, CPU_DEFAULT, "another type" },
	};
	const struct cpu_gemm rounds = { .m = 64, .n = 100, .k = 256,
					 .b_by_n = true,
					 .b_type = CPU_GEMM_BF16,
					 .a_as = CPU_GEMM_BF16 };
	struct err e = { 0 };
	struct cpu_table *t = cpu_table_open(db, 1, &e);
	struct cpu_table *other = cpu_table_open(db, 2, &e);
	struct cpu_gemm_config c;
	char got[CPU_GEMM_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct cpu_gemm g = { .m = want[i].m, .n = want[i].n,
					    .k = want[i].k, .b_by_n = true,
					    .b_type = want[i].type };
		is_u64(cpu_select(t, &g, &c), want[i].how, "selected: %s",
		       want[i].name);
		cpu_gemm_config_name(&c, got);
		if (want[i].how != CPU_DEFAULT)
			is_str(got, config, "the winner: %s", want[i].name);
		is_u64(cpu_select(other, &g, &c), CPU_DEFAULT,
		       "other threads, no row: %s", want[i].name);
	}
	is_u64(cpu_select(t, &rounds, &c), CPU_DEFAULT,
	       "not for an A that may be rounded");
	const struct cpu_gemm same = { .m = 64, .n = 100, .k = 256,
				       .b_by_n = true,
				       .b_type = CPU_GEMM_BF16 };
	struct cpu_gemm_config winner;
	enum cpu_choice want_v2 = CPU_DEFAULT;
	if (cpu_gemm_config_parse(config, &winner, &e) && winner.level == 2)
		want_v2 = CPU_EXACT;
	setenv("T0_HOST_SIMD", "v2", 1);
	is_u64(cpu_select(t, &same, &c), want_v2, "a winner of a higher "
	       "level is not selected where less is asked for");
	unsetenv("T0_HOST_SIMD");
	cpu_table_free(t);
	cpu_table_free(other);
}

static void stored(void)
{
	const struct cpu_problem p = { 64, 100, 256, CPU_GEMM_BF16, true,
				       CPU_GEMM_F32 };
	char db[] = "/tmp/t0-host-tune-XXXXXX";
	struct cpu_outcome one, two;
	_Atomic int stop = 1;
	struct err e = { 0 };
	int fd = mkstemp(db);

	/* sqlite wants to make the file itself. */
	if (fd < 0 || close(fd) || unlink(db))
		BUG("no temporary file");
	struct cpu_table *t = cpu_table_open(db, 1, &e);
	ok(t != NULL, "a file that is not there is an empty table");
	cpu_table_free(t);
	ok(tune(db, &p, &stop, &one) && !one.found, "stopped: nothing found");
	is_i64(count(db, "SELECT count(*) FROM v_runs WHERE "
			 "state = 'interrupted'"), 1, "and the run says so");
	if (!ok(tune(db, &p, NULL, &one) && one.found, "a winner is found"))
		return;
	ok(!one.stored && one.time_s > 0 && one.lo_s <= one.time_s &&
	   one.time_s <= one.hi_s, "timed now, with an interval");
	ok(one.default_s >= one.lo_s, "the default is not faster");
	is_i64(count(db, "SELECT count(*) FROM v_tunes t WHERE winner AND "
			 "EXISTS(SELECT 1 FROM v_tune_checks c WHERE "
			 "c.object = t.object AND c.verdict = 'pass')"), 1,
	       "one winner, checked");
	is_i64(count(db, "SELECT count(*) FROM v_tunes"),
	       (int64_t)one.candidates, "every candidate has its row");
	is_i64(count(db, "SELECT count(*) FROM v_tune_checks WHERE "
			 "verdict = 'fail'"), 0, "none was wrong");
	ok(tune(db, &p, NULL, &two) && two.stored, "the second run takes it");
	is_str(two.config, one.config, "the same one");
	select_from(db, one.config);
	res_remove(db);
}

int main(void)
{
	names();
	for (unsigned level = 2; level <= 5; level++) {
		if (level == 5 ? !cpu_has_amx() : (int)level > cpu_level("")) {
			skip("no level %u here", level);
			continue;
		}
		candidates(33, 61, 530, CPU_GEMM_F32, false, level,
			   CPU_GEMM_F32);
		candidates(21, 75, 600, CPU_GEMM_BF16, true, level,
			   CPU_GEMM_F32);
		candidates(70, 35, 270, CPU_GEMM_F16, true, level,
			   CPU_GEMM_F32);
		candidates(21, 75, 320, CPU_GEMM_BF16, true, level,
			   CPU_GEMM_BF16);
		candidates(21, 75, 320, CPU_GEMM_INT8, true, level,
			   CPU_GEMM_INT8);
		candidates(9, 35, 96, CPU_GEMM_INT4, true, level,
			   CPU_GEMM_INT8);
		candidates(21, 75, 320, CPU_GEMM_CHANNEL8, true, level,
			   CPU_GEMM_INT8);
	}
	mutants();
	stored();
	return plan_done();
}
