/*
 * results/db/tunes.c - configurations that were tried, checked and chosen.
 */
#include "results/db/res.h"
#include "results/db/tunes.h"

#include <math.h>
#include <string.h>

static const char *const states[] = { "ranked", "rejected", "failed",
				      "timed" };

const char *res_tune_state_name(enum res_tune_state s)
{
	return states[s];
}

static enum res_tune_state state_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (word && !strcmp(word, states[i]))
			return (enum res_tune_state)i;
	BUG("tune state '%s' passed the schema", word ? word : "NULL");
}

#define KEY "target = ? AND op = ? AND m = ? AND n = ? AND k = ? AND " \
	    "batch = ? AND caches = ? AND origin = ? AND operands = ? AND " \
	    "costs = ? AND code = ?"
#define KEY_BINDS "ssiiiisssss"
#define KEY_VALUES(x) (x)->target, (x)->op, (x)->m, (x)->n, (x)->k,    \
	(x)->batch, (x)->caches, res_origin_name((x)->origin),          \
	(x)->operands, (x)->costs, (x)->code

bool res_tune_put(struct res_db *db, int64_t run, const struct res_tune_key *k,
		  const struct res_tune *t, struct err *e)
{
	if (!res_write_begin(db, e))
		return false;
	bool ok = res_exec(db, e,
		"INSERT INTO tunes(run, target, op, m, n, k, batch, caches, "
		"origin, operands, costs, code, config, state, reason, "
		"bound_s, time_s, lo_s, hi_s, samples, clock_hz, limits, "
		"object) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(target, op, m, n, k, "
		"batch, caches, origin, operands, costs, code, config) "
		"DO UPDATE SET "
		"run = excluded.run, state = excluded.state, "
		"reason = excluded.reason, bound_s = excluded.bound_s, "
		"time_s = excluded.time_s, lo_s = excluded.lo_s, "
		"hi_s = excluded.hi_s, samples = excluded.samples, "
		"clock_hz = excluded.clock_hz, limits = excluded.limits, "
		"object = excluded.object",
		"k" KEY_BINDS "sssddddidss", run, KEY_VALUES(k), t->config,
		states[t->state], t->reason, t->bound_s, t->time_s, t->lo_s,
		t->hi_s, t->samples, t->clock_hz, t->limits, t->object);
	return res_write_end(db, ok, e) ||
	       err_wrap(e, "%s for %lldx%lldx%lld", t->config, (long long)k->m,
			(long long)k->n, (long long)k->k);
}

static const char *tune_text(sqlite3_stmt *st, int col)
{
	return (const char *)sqlite3_column_text(st, col);
}

static double tune_real(sqlite3_stmt *st, int col)
{
	return sqlite3_column_type(st, col) == SQLITE_NULL
		       ? NAN : sqlite3_column_double(st, col);
}

#define COLUMNS "t.id, t.config, t.state, t.reason, t.limits, t.object, " \
		"t.bound_s, t.time_s, t.lo_s, t.hi_s, t.clock_hz, t.samples"
enum { N_COLUMNS = 12 };

static void load_tune(struct res_tune *t, sqlite3_stmt *st)
{
	*t = (struct res_tune){
		.id = sqlite3_column_int64(st, 0),
		.config = tune_text(st, 1),
		.state = state_of(tune_text(st, 2)),
		.reason = tune_text(st, 3),
		.limits = tune_text(st, 4),
		.object = tune_text(st, 5),
		.bound_s = tune_real(st, 6),
		.time_s = tune_real(st, 7),
		.lo_s = tune_real(st, 8),
		.hi_s = tune_real(st, 9),
		.clock_hz = tune_real(st, 10),
		.samples = sqlite3_column_int64(st, 11),
	};
}

bool res_tune_each(struct res_db *db, const struct res_tune_key *k,
		   bool (*fn)(void *ctx, const struct res_tune *t), void *ctx,
		   struct err *e)
{
	bool ok, go_on = true;
	sqlite3_stmt *st = res_stmt(db, e,
		"SELECT " COLUMNS " FROM tunes t WHERE " KEY
		" ORDER BY t.time_s IS NULL, t.time_s, t.bound_s, t.config",
		KEY_BINDS, KEY_VALUES(k));

	if (!st)
		return false;
	while (go_on && res_step(db, st, &ok, e)) {
		struct res_tune t;

		load_tune(&t, st);
		go_on = fn(ctx, &t);
	}
	res_stmt_done(st);
	return !go_on || ok;
}

bool res_tune_check_put(struct res_db *db, int64_t run,
			const struct res_tune_check *c, struct err *e)
{
	if (!res_write_begin(db, e))
		return false;
	bool ok = res_exec(db, e,
		"INSERT INTO tune_checks(run, target, op, config, object, "
		"class, verdict, worst, compared, seed, detail) "
		"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "kssssssdiis", run,
		c->target, c->op, c->config, c->object, c->class,
		c->pass ? "pass" : "fail", c->worst, c->compared,
		(int64_t)c->seed, c->detail);
	return res_write_end(db, ok, e) ||
	       err_wrap(e, "the check of %s", c->config);
}

bool res_tune_checked(struct res_db *db, const struct res_tune_check *c,
		      int *answer, struct err *e)
{
	int64_t v;

	if (!res_query_int(db, &v, e,
			   "SELECT min(CASE WHEN verdict = 'fail' THEN -1 "
			   "WHEN class = ? AND config = ? THEN 1 ELSE 2 END) "
			   "FROM tune_checks "
			   "WHERE target = ? AND op = ? AND object = ?",
			   "ttttt", c->class, c->config, c->target, c->op,
			   c->object))
		return false;
	*answer = v == 2 ? 0 : (int)v;
	return true;
}

static bool insert_winner(struct res_db *db, const struct res_tune_winner *w,
			  int64_t id, struct err *e)
{
	return res_exec(db, e, "DELETE FROM tune_winners WHERE tune IN("
			"SELECT id FROM tunes WHERE " KEY ")", KEY_BINDS,
			KEY_VALUES(&w->key)) &&
	       res_exec(db, e, "INSERT INTO tune_winners(tune, second, class, "
			"budget, candidates, chosen_ns) "
			"VALUES(?, ?, ?, ?, ?, ?)", "isssii", id, w->second,
			w->class, w->budget, w->candidates,
			(int64_t)time_wall_ns());
}

bool res_tune_win(struct res_db *db, const struct res_tune_winner *w,
		  struct err *e)
{
	int64_t id;

	if (!res_query_int(db, &id, e, "SELECT id FROM tunes WHERE " KEY
			   " AND config = ?", KEY_BINDS "s",
			   KEY_VALUES(&w->key), w->tune.config))
		return false;
	if (!id)
		return err_set(e, ERR_INPUT, "%s: %s is no row of this "
			       "problem; it cannot win", res_db_path(db),
			       w->tune.config);
	if (!res_write_begin(db, e))
		return false;
	return res_write_end(db, insert_winner(db, w, id, e), e) ||
	       err_wrap(e, "%s as the winner", w->tune.config);
}

static enum res_origin origin_of(const char *word)
{
	return !strcmp(word, res_origin_name(RES_HARDWARE)) ? RES_HARDWARE
							    : RES_SIMULATED;
}

static void load_winner(struct res_tune_winner *w, sqlite3_stmt *st)
{
	int c = N_COLUMNS;

	load_tune(&w->tune, st);
	w->key = (struct res_tune_key){
		.target = tune_text(st, c),
		.op = tune_text(st, c + 1),
		.m = sqlite3_column_int64(st, c + 2),
		.n = sqlite3_column_int64(st, c + 3),
		.k = sqlite3_column_int64(st, c + 4),
		.batch = sqlite3_column_int64(st, c + 5),
		.caches = tune_text(st, c + 6),
		.origin = origin_of(tune_text(st, c + 7)),
		.operands = tune_text(st, c + 8),
		.costs = tune_text(st, c + 9),
		.code = tune_text(st, c + 10),
	};
	w->second = tune_text(st, c + 11);
	w->class = tune_text(st, c + 12);
	w->budget = tune_text(st, c + 13);
	w->candidates = sqlite3_column_int64(st, c + 14);
}

bool res_tune_winners(struct res_db *db, const char *target, const char *op,
		      bool (*fn)(void *ctx, const struct res_tune_winner *w),
		      void *ctx, struct err *e)
{
	bool ok, go_on = true;
	sqlite3_stmt *st = res_stmt(db, e,
		"SELECT " COLUMNS ", t.target, t.op, t.m, t.n, t.k, t.batch, "
		"t.caches, t.origin, t.operands, t.costs, t.code, w.second, "
		"w.class, w.budget, w.candidates FROM tune_winners w "
		"JOIN tunes t ON t.id = w.tune WHERE t.target = ? AND "
		"t.op = ? ORDER BY w.chosen_ns DESC, t.id DESC", "ss", target,
		op);

	if (!st)
		return false;
	while (go_on && res_step(db, st, &ok, e)) {
		struct res_tune_winner w;

		load_winner(&w, st);
		go_on = fn(ctx, &w);
	}
	res_stmt_done(st);
	return !go_on || ok;
}
