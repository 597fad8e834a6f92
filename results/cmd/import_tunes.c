/*
 * results/cmd/import_tunes.c - what the tuner decided, merged by key.
 */
#include "results/cmd/import.h"

#include <math.h>
#include <string.h>

static const char *take_text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

static int64_t take_integer(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

/* The run by its uuid; 0 where it was pruned. */
static bool run_of(struct res_import *im, const json_t *row, int64_t *run)
{
	return res_query_int(im->db, run, im->e,
			     "SELECT id FROM runs WHERE uuid = ?", "t",
			     take_text(row, "run"));
}

/* -------------------------------------------------------------- checks -- */

static const char *const check_columns[] = {
	"ttarget", "top", "tconfig", "tobject", "tclass", "tverdict", "dworst",
	"icompared", "iseed", "tdetail", NULL
};

bool import_check(struct res_import *im, const json_t *row)
{
	struct import_fixed run[] = { { "run", 0 }, { NULL, 0 } };
	static const struct import_fixed no_run[] = { { "run", 0 },
						      { NULL, 0 } };
	int64_t here, orphan = 0;

	if (!run_of(im, row, &run[0].value))
		return false;
	/* Without its run it is as good as the same of any run. */
	if (!import_find(im, "tune_checks", run[0].value ? run : import_none,
			 check_columns, row, &here))
		return false;
	if (here)
		return true;
	if (!import_find(im, "tune_checks", no_run, check_columns, row,
			 &orphan))
		return false;
	return orphan ? res_exec(im->db, im->e, "UPDATE tune_checks SET run = "
				 "? WHERE id = ?", "ii", run[0].value, orphan)
		      : import_insert(im, "tune_checks", run, check_columns,
				      row);
}

/* ----------------------------------------------------------- decisions -- */

/* What a row has behind it. */
struct standing {
	int64_t id; /* 0: there is no such row */
	char state[16], run[40];
	int64_t proof, samples; /* proof: v_tunes */
	bool winner;
	double time_s;
};

static int rank_of(const struct standing *s)
{
	if (!strcmp(s->state, "timed"))
		return s->proof < 0 ? 1 : s->winner ? 6 : s->proof ? 5 : 3;
	if (!strcmp(s->state, "failed"))
		return s->proof < 0 ? 4 : 2;
	return !strcmp(s->state, "rejected") ? 2 : 0;
}

static bool is_better(const struct standing *a, const struct standing *b)
{
	int ra = rank_of(a), rb = rank_of(b);

	if (ra != rb)
		return ra > rb;
	if (a->samples != b->samples)
		return a->samples > b->samples;
	if (a->time_s != b->time_s && !isnan(a->time_s) && !isnan(b->time_s))
		return a->time_s < b->time_s;
	return strcmp(a->run, b->run) > 0; /* the same, whoever merges whom */
}

static const char *const tune_key[] = {
	"ttarget", "top", "im", "in", "ik", "ibatch", "tcaches", "torigin",
	"toperands", "tcosts", "tcode", "tconfig", NULL
};
static const char *const tune_columns[] = {
	"ttarget", "top", "im", "in", "ik", "ibatch", "tcaches", "torigin",
	"toperands", "tcosts", "tcode", "tconfig", "tstate", "treason",
	"dbound_s", "dtime_s", "dlo_s", "dhi_s", "isamples", "dclock_hz",
	"tlimits", "tobject", NULL
};
/* Of these, what a better row replaces; in this order below. */
static const char *const told_columns[] = {
	"tstate", "treason", "dbound_s", "dtime_s", "dlo_s", "dhi_s",
	"isamples", "dclock_hz", "tlimits", "tobject", NULL
};
static const char tell_sql[] =
	"UPDATE tunes SET run = ?2, state = ?3, reason = ?4, bound_s = ?5, "
	"time_s = ?6, lo_s = ?7, hi_s = ?8, samples = ?9, clock_hz = ?10, "
	"limits = ?11, object = ?12 WHERE id = ?1";

static void standing_read(struct standing *s, sqlite3_stmt *st)
{
	const char *state = (const char *)sqlite3_column_text(st, 0);
	const char *run = (const char *)sqlite3_column_text(st, 5);

	snprintf(s->state, sizeof(s->state), "%s", state ? state : "");
	snprintf(s->run, sizeof(s->run), "%s", run ? run : "");
	s->proof = sqlite3_column_int64(st, 1);
	s->samples = sqlite3_column_int64(st, 2);
	s->winner = sqlite3_column_int(st, 3);
	s->time_s = sqlite3_column_type(st, 4) == SQLITE_NULL
			    ? NAN : sqlite3_column_double(st, 4);
}

/* The row of this key and configuration that is here. */
static bool standing_here(struct res_import *im, const json_t *row,
			  struct standing *s)
{
	bool ok;

	*s = (struct standing){ .id = 0 };
	if (!import_find(im, "tunes", import_none, tune_key, row, &s->id))
		return false;
	if (!s->id)
		return true;
	sqlite3_stmt *st = res_stmt(im->db, im->e,
		"SELECT t.state, t.proof, t.samples, t.winner, t.time_s, "
		"r.uuid FROM v_tunes t LEFT JOIN runs r ON r.id = t.run "
		"WHERE t.tune = ?", "i", s->id);
	if (!st)
		return false;
	if (res_step(im->db, st, &ok, im->e))
		standing_read(s, st);
	res_stmt_done(st);
	return ok;
}

static bool standing_told(struct res_import *im, const json_t *row,
			  bool winner, struct standing *s)
{
	const json_t *time = json_object_get(row, "time_s");

	*s = (struct standing){
		.samples = take_integer(row, "samples"), .winner = winner,
		.time_s = json_is_number(time) ? json_number_value(time) : NAN,
	};
	snprintf(s->state, sizeof(s->state), "%s", take_text(row, "state"));
	snprintf(s->run, sizeof(s->run), "%s", take_text(row, "run"));
	return res_query_int(im->db, &s->proof, im->e,
			     "SELECT min(CASE WHEN verdict = 'fail' THEN -1 "
			     "WHEN config = ? THEN 1 ELSE 2 END) % 2 FROM "
			     "tune_checks WHERE target = ? AND op = ? AND "
			     "object = ?", "tttt", take_text(row, "config"),
			     take_text(row, "target"), take_text(row, "op"),
			     take_text(row, "object"));
}

/* ------------------------------------------------------------- winners -- */

static const char *const winner_columns[] = {
	"tsecond", "tclass", "tbudget", "icandidates", "ichosen_ns", NULL
};

/* The faster, then the newer one. */
static bool is_beaten(struct res_import *im, const json_t *row,
		      const json_t *winner, int64_t old, bool *beaten)
{
	double time_s = json_number_value(json_object_get(row, "time_s"));
	int64_t n = 0;
	bool ok = res_query_int(im->db, &n, im->e,
				"SELECT count(*) FROM "
				"v_tunes WHERE tune = ? AND (time_s > ? OR "
				"(time_s = ? AND chosen_ns < ?))",
				"iddi", old, time_s, time_s,
				take_integer(winner, "chosen_ns"));

	*beaten = n > 0;
	return ok;
}

/* The winner of the same key, whatever its configuration; 0: none. */
static bool winner_here(struct res_import *im, int64_t tune, int64_t *old)
{
	return res_query_int(im->db, old, im->e,
		"SELECT b.id FROM tunes a JOIN tunes b USING(target, op, m, n, "
		"k, batch, caches, origin, operands, costs, code) "
		"JOIN tune_winners w ON w.tune = b.id WHERE a.id = ?", "i",
		tune);
}

/* Is it what the row here says, timed, checked and right? */
static bool may_win(struct res_import *im, const json_t *row,
		    const json_t *winner, int64_t tune, bool *may)
{
	int64_t n = 0;
	bool ok = res_query_int(
		im->db, &n, im->e,
		"SELECT count(*) FROM v_tunes t WHERE t.tune = ? AND "
		"t.state = 'timed' AND t.object = ? AND t.proof > 0 AND "
		"EXISTS(SELECT 1 FROM tune_checks c WHERE c.target = t.target "
		"AND c.op = t.op AND c.config = t.config AND "
		"c.object = t.object AND c.class = ? AND c.verdict = 'pass')",
		"itt", tune, take_text(row, "object"),
		take_text(winner, "class"));

	*may = n > 0;
	return ok;
}

static bool take_winner(struct res_import *im, const json_t *row,
			const json_t *winner, int64_t tune)
{
	const struct import_fixed id[] = { { "tune", tune }, { NULL, 0 } };
	int64_t old = 0;
	bool may, beaten = true;

	if (!may_win(im, row, winner, tune, &may))
		return false;
	if (!may) /* somebody here knows that it is wrong */
		return true;
	if (!winner_here(im, tune, &old) ||
	    (old && !is_beaten(im, row, winner, old, &beaten)))
		return false;
	if (!beaten)
		return true;
	return res_exec(im->db, im->e, "DELETE FROM tune_winners WHERE "
			"tune = ?", "i", old) &&
	       import_insert(im, "tune_winners", id, winner_columns, winner);
}

/* ----------------------------------------------------------------- row -- */

static bool put_tune(struct res_import *im, const json_t *row, int64_t *id)
{
	struct import_fixed here[] = { { "id", *id }, { "run", 0 },
				       { NULL, 0 } };

	if (!run_of(im, row, &here[1].value))
		return false;
	if (*id)
		return import_step(im, tell_sql, here, told_columns, row, NULL);
	if (!import_insert(im, "tunes", here + 1, tune_columns, row))
		return false;
	*id = sqlite3_last_insert_rowid(im->db->sq);
	return true;
}

bool import_tune(struct res_import *im, const json_t *row)
{
	const json_t *winner = json_object_get(row, "winner");
	bool wins = json_is_string(json_object_get(winner, "class"));
	struct standing here, told;

	if (!json_is_object(winner))
		return import_bad_value(im, "winner", "an object");
	if (!standing_here(im, row, &here) ||
	    !standing_told(im, row, wins, &told))
		return false;
	if ((!here.id || is_better(&told, &here)) &&
	    !put_tune(im, row, &here.id))
		return false;
	return !wins || take_winner(im, row, winner, here.id);
}
