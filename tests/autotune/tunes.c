/* What the tuner tried is kept; what was not proven right is never chosen. */
#include <math.h>

#include "results/db/tunes.h"
#include "tests/results/results.h"

static char dir[64], path[96];
static const struct res_tune_key key = {
	.target = "gfx1100", .op = "bf16 nn", .m = 64, .n = 32, .k = 16,
	.batch = 1, .origin = RES_SIMULATED, .operands = "", .costs = "c0",
	.code = "b0",
};

static struct res_tune timed(const char *config, const char *object, double s)
{
	return (struct res_tune){
		.config = config, .state = RES_TUNE_TIMED, .object = object,
		.bound_s = s / 2, .time_s = s, .lo_s = NAN, .hi_s = NAN,
		.clock_hz = 2e9, .samples = 1,
	};
}

static struct res_tune_check check(const char *config, const char *object,
				   bool pass)
{
	return (struct res_tune_check){
		.target = "gfx1100", .op = "bf16 nn", .config = config,
		.object = object, .class = "even", .pass = pass, .worst = 0.25,
		.compared = 2048, .seed = 7,
	};
}

static struct res_tune_winner winner(const char *config)
{
	return (struct res_tune_winner){
		.key = key, .tune = { .config = config }, .class = "even",
		.budget = "quick", .candidates = 3,
	};
}

struct rows {
	int n;
	char text[512];
};

static bool add_row(void *ctx, const struct res_tune *t)
{
	struct rows *r = ctx;
	size_t at = strlen(r->text);

	r->n++;
	snprintf(r->text + at, sizeof(r->text) - at, "%s:%s ", t->config,
		 res_tune_state_name(t->state));
	return true;
}

static void test_rows(struct res_db *db, int64_t run)
{
	struct res_tune slow = timed("slow", "o1", 3e-6);
	struct res_tune fast = timed("fast", "o2", 1e-6);
	struct res_tune none = { .config = "none", .state = RES_TUNE_REJECTED,
				 .reason = "300 VGPRs of 256", .bound_s = NAN,
				 .time_s = NAN, .lo_s = NAN, .hi_s = NAN,
				 .clock_hz = NAN };
	struct rows r = { 0 };
	struct err e = { 0 };

	ok(res_tune_put(db, run, &key, &none, &e) &&
	   res_tune_put(db, run, &key, &slow, &e) &&
	   res_tune_put(db, run, &key, &fast, &e), "rows are stored: %s",
	   e.msg);
	ok(res_tune_each(db, &key, add_row, &r, &e), "and read: %s", e.msg);
	is_str(r.text, "fast:timed slow:timed none:rejected ",
	       "the fastest first, what has no time last");
	slow.time_s = 5e-7;
	ok(res_tune_put(db, run, &key, &slow, &e), "one is decided anew");
	r = (struct rows){ 0 };
	res_tune_each(db, &key, add_row, &r, &e);
	is_str(r.text, "slow:timed fast:timed none:rejected ",
	       "and replaces what was said before");

	struct res_tune_key other = key;
	other.costs = "c1";
	r = (struct rows){ 0 };
	ok(res_tune_each(db, &other, add_row, &r, &e) && !r.n,
	   "another cost model knows none of them");
	none.reason = "";
	ok(!res_tune_put(db, run, &key, &none, &e),
	   "a rejection without a reason is refused");
	slow.object = "";
	ok(!res_tune_put(db, run, &key, &slow, &e),
	   "a time without machine code is refused");
}

static bool count_winner(void *ctx, const struct res_tune_winner *w)
{
	struct rows *r = ctx;

	r->n++;
	snprintf(r->text, sizeof(r->text), "%s %s %s %lldx%lldx%lld",
		 w->tune.config, w->class, w->budget, (long long)w->key.m,
		 (long long)w->key.n, (long long)w->key.k);
	return true;
}

static struct rows winners(struct res_db *db)
{
	struct rows r = { 0 };
	struct err e = { 0 };

	if (!res_tune_winners(db, "gfx1100", "bf16 nn", count_winner, &r, &e))
		diag("%s", e.msg);
	return r;
}

static void test_winner(struct res_db *db, int64_t run)
{
	struct res_tune_winner fast = winner("fast"), slow = winner("slow");
	struct res_tune_check good = check("fast", "o2", true);
	struct res_tune_check bad = check("fast", "o2", false);
	struct err e = { 0 };
	int answer = 9;

	ok(res_tune_checked(db, &good, &answer, &e) && answer == 0,
	   "nobody has looked at it");
	ok(!res_tune_win(db, &fast, &e), "so it cannot win");
	has_str(e.msg, "checked and right", "and the message says why");
	ok(res_tune_check_put(db, run, &good, &e), "it is checked: %s", e.msg);
	ok(res_tune_checked(db, &good, &answer, &e) && answer == 1,
	   "and found right");
	good.class = "odd";
	ok(res_tune_checked(db, &good, &answer, &e) && answer == 0,
	   "for this class alone");
	ok(res_tune_win(db, &fast, &e), "now it wins: %s", e.msg);
	is_str(winners(db).text, "fast even quick 64x32x16", "the winner");
	ok(!res_tune_win(db, &slow, &e), "a quicker one nobody checked: no");
	fast.tune.config = "none";
	ok(!res_tune_win(db, &fast, &e), "one that was rejected: no");
	fast.tune.config = "strange";
	ok(!res_tune_win(db, &fast, &e), "one that nobody tried: no");
	is_i64(winners(db).n, 1, "the winner stays");

	is_i64(raw_sql(path, "INSERT INTO tune_winners SELECT id, '', 'even', "
			     "'', 1, 1 FROM tunes WHERE config = 'slow'"), -1,
	       "not even bare SQL makes a wrong one win");
	is_i64(raw_sql(path, "UPDATE tune_winners SET tune = (SELECT id FROM "
			     "tunes WHERE config = 'slow')"), -1,
	       "nor changes the winner");
	ok(res_tune_check_put(db, run, &bad, &e), "it fails another check");
	is_i64(winners(db).n, 0, "then it has not won");
	fast.tune.config = "fast";
	ok(!res_tune_win(db, &fast, &e), "and never wins again");
}

int main(void)
{
	struct err e = { 0 };

	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t.db", dir);
	struct res_db *db = res_open(path, RES_WRITE, &e);
	int64_t run = db ? begin_run(db, &e) : 0;

	if (ok(run, "a run: %s", e.msg)) {
		test_rows(db, run);
		test_winner(db, run);
	}
	res_close(db);
	ok(is_intact(path), "the file is whole");
	remove_dir(dir);
	return plan_done();
}
