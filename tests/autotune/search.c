/*
 * A search whose fastest kernel computes the wrong thing chooses another, and
 * what is chosen for launching is always proven.
 */
#include <math.h>

#include "autotune/tuner/tune_int.h"
#include "tests/results/results.h"

static char dir[64], path[96];
static struct cost_model costs;
static char wrong[TUNE_TEXT]; /* this configuration is miscompiled */
static int compiled, searches;

/* The reference compiler, but for one configuration that forgets the bias. */
static bool compile(const struct gemm_op *op, const struct gemm_config *c,
		    const struct cc_options *o, struct gemm_code *out,
		    struct err *e)
{
	struct gemm_op forgetful = *op;
	char name[TUNE_TEXT];

	__atomic_add_fetch(&compiled, 1, __ATOMIC_RELAXED);
	gemm_config_name(c, name, sizeof(name));
	if (*wrong && !strcmp(name, wrong))
		forgetful.epilogue &= ~(uint32_t)GEMM_BIAS;
	return gemm_compile(&forgetful, c, o, out, e);
}

static struct tune_opts options(void)
{
	return (struct tune_opts){
		.db = path, .device = "soft", .operands = "normal",
		.budget = { "quick", 6, 1, 3, 0 }, .seed = 3, .quiet = true,
		.costs = &costs, .compile = compile, .jobs = 1,
	};
}

static struct tune_problem problem(uint32_t m, uint32_t n, uint32_t k)
{
	struct tune_problem p = { .m = m, .n = n, .k = k, .batch = 1 };
	struct err e = { 0 };

	if (!tune_op_parse("bf16", "nt", "bias", &p.op, &e))
		diag("%s", e.msg);
	return p;
}

static struct tune_outcome search(struct tune_problem p)
{
	struct tune_problems l = { .v = &p, .n = 1 };
	struct tune_opts o = options();
	struct tune_outcome out;
	struct err e = { 0 };

	ok(tune_search(&o, &l, &out, &e), "search %d, of %ux%ux%u: %s",
	   ++searches, p.m, p.n, p.k, e.msg);
	return out;
}

static int64_t count(const char *sql)
{
	return raw_sql(path, sql);
}

static void test_wrong(void)
{
	struct tune_outcome good = search(problem(64, 64, 64));

	ok(good.found && !good.stored, "the first search finds %s",
	   good.config);
	raw_sql(path, "DELETE FROM tune_winners; DELETE FROM tunes; "
		"DELETE FROM tune_checks");
	snprintf(wrong, sizeof(wrong), "%s", good.config);

	struct tune_outcome other = search(problem(64, 64, 64));
	ok(other.found && strcmp(other.config, wrong),
	   "miscompiled, it does not win: %s does", other.config);
	is_u64(other.failed, 1, "one configuration has failed");
	is_i64(count("SELECT count(*) FROM v_tunes WHERE state = 'failed' AND "
		     "reason LIKE 'wrong: element%'"), 1,
	       "its row says which element was wrong");
	is_i64(count("SELECT count(*) FROM v_tune_checks WHERE "
		     "verdict = 'fail'"), 1, "and so does its check");
	is_i64(count("SELECT count(*) FROM v_tunes t JOIN v_tune_checks c "
		     "USING(target, op, config, object) WHERE t.winner AND "
		     "c.verdict = 'fail'"), 0, "no winner ever failed");
	compiled = 0;
	other = search(problem(64, 64, 64));
	ok(other.stored, "the next search takes what is stored");
	is_i64(compiled, 0, "and compiles nothing");
}

static void test_select(void)
{
	struct tune_opts o = options();
	struct tune_choice c;
	struct err e = { 0 };
	struct tune_problem exact = problem(64, 64, 64);
	struct tune_problem near = problem(64, 64, 128);
	struct tune_problem far = problem(512, 96, 1024);

	o.device = NULL;
	struct tune_selector *s = tune_selector_open(&o, &e);
	if (!ok(s, "a selector that may not check: %s", e.msg))
		return;
	ok(tune_select(s, &exact, &c, &e), "the very shape: %s%s", c.why,
	   e.msg);
	is_i64(c.how, TUNE_EXACT, "is an exact row");
	ok(c.code.n > 0 && c.time_s > 0, "with code and its time");
	tune_choice_fini(&c);
	ok(!tune_select(s, &far, &c, &e), "one that nobody checked: nothing");
	has_str(e.msg, "t0-tune --shapes 512x96x1024", "with the remedy");
	tune_choice_fini(&c);
	tune_selector_close(s);

	o.device = "soft";
	e = (struct err){ 0 };
	s = tune_selector_open(&o, &e);
	if (!ok(s, "one that may: %s", e.msg))
		return;
	ok(tune_select(s, &near, &c, &e), "twice as deep: %s%s", c.why, e.msg);
	is_i64(c.how, TUNE_NEAREST, "takes the nearest winner");
	tune_choice_fini(&c);
	ok(tune_select(s, &far, &c, &e), "far from all: %s%s", c.why, e.msg);
	is_i64(c.how, TUNE_MODEL, "takes the model's choice");
	tune_choice_fini(&c);
	tune_selector_close(s);
	is_i64(count("SELECT count(*) FROM v_tune_checks WHERE run = (SELECT "
		     "max(id) FROM runs) AND verdict = 'pass'"), 2,
	       "both were checked then and there");
}

static struct tune_choice chosen(struct tune_selector *s,
				 struct tune_problem p)
{
	struct tune_choice c;
	struct err e = { 0 };

	if (!ok(tune_select(s, &p, &c, &e), "for caches that are %s: %s%s",
		tune_caches_name(p.caches), c.why, e.msg))
		c.how = TUNE_MODEL;
	gemm_code_fini(&c.code);
	return c;
}

/* Rows of the state that is asked for first, then of another, one further. */
static void test_caches(void)
{
	struct tune_opts o = options();
	struct tune_problem warm = problem(96, 64, 64), cold = warm;
	struct tune_problem wide = problem(96, 128, 64);
	struct tune_outcome out[2];
	struct err e = { 0 };

	*wrong = 0;
	cold.caches = TUNE_COLD_B;
	out[0] = search(warm);
	out[1] = search(cold);
	ok(out[0].found && out[1].found && !out[1].stored,
	   "one shape, warm and cold, is two searches");
	is_i64(count("SELECT count(*) FROM v_tunes WHERE winner AND m = 96 AND "
		     "caches = 'cold-b'"), 1, "with a winner each");
	is_i64(count("SELECT count(*) FROM v_tunes c JOIN v_tunes w "
		     "USING(m, n, k, config) WHERE w.winner AND m = 96 AND "
		     "w.caches = 'warm' AND c.caches = 'cold-b' AND "
		     "(c.state = 'timed' OR c.reason LIKE 'bound: %')"), 1,
	       "the warm winner was tried for the cold search, too");
	o.device = "soft"; /* more may have to be checked */
	struct tune_selector *s = tune_selector_open(&o, &e);
	if (!ok(s, "a selector: %s", e.msg))
		return;
	struct tune_choice c = chosen(s, cold);
	is_i64(c.how, TUNE_EXACT, "the cold row");
	has_str(c.why, "96x64x64 cold-b", "is the one that is taken");
	has_str(chosen(s, warm).why, "96x64x64 warm", "and the warm one");
	raw_sql(path, "DELETE FROM tune_winners WHERE tune IN(SELECT tune FROM "
		"v_tunes WHERE caches = 'cold-b')");
	c = chosen(s, cold);
	is_i64(c.how, TUNE_NEAREST, "without it, the nearest");
	has_str(c.why, "96x64x64 warm", "which is the warm one");
	out[1] = search((wide.caches = TUNE_COLD_B, wide));
	cold.n = 80;
	has_str(chosen(s, cold).why, "96x128x64 cold-b", "80 columns cold are "
		"nearer to 128 cold than to 64 warm");
	tune_selector_close(s);
}

/* The code of today differs from what was checked: not exact any more. */
static void test_stale(void)
{
	struct tune_opts o = options();
	struct tune_problem p = problem(64, 64, 64);
	struct tune_choice c;
	struct err e = { 0 };

	o.device = NULL;
	raw_sql(path, "UPDATE tune_checks SET object = 'ffff' WHERE "
		"verdict = 'pass'");
	struct tune_selector *s = tune_selector_open(&o, &e);
	if (!ok(s, "a selector over checks of other code: %s", e.msg))
		return;
	ok(!tune_select(s, &p, &c, &e), "does not take what was not checked");
	tune_choice_fini(&c);
	tune_selector_close(s);
}

int main(void)
{
	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t.db", dir);
	cost_init(&costs, TUNE_CHIP);
	test_wrong();
	test_select();
	test_stale();
	test_caches();
	cost_fini(&costs);
	ok(is_intact(path), "the file is whole");
	remove_dir(dir);
	return plan_done();
}
