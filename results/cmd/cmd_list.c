/*
 * results/cmd/cmd_list.c - history, costs, devices, free SQL, pruning runs.
 */
#include "results/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- history ---- */

bool res_cmd_history(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	const char *name = c->argv[0];
	struct table t;

	table_init(&t, "#run,started,commit,device,origin,case,params,metric,"
		       "~value,unit,~lo,~hi,#n,#ratio,correct");
	/* `ratio` is to the row before it of the same thing. */
	bool ok = res_query(s->db, &t, show_digits(s), e,
		"SELECT run, strftime('%Y-%m-%dT%H:%M:%SZ', start_ns / "
		"1000000000, 'unixepoch'), git_commit || "
		"CASE WHEN dirty THEN '+' ELSE '' END, device_name, origin, "
		"area || '/' || name, params, metric, value, unit, lo, hi, n, "
		"value / nullif(lag(value) OVER (PARTITION BY case_id, metric, "
		"origin, device_name, gfx, uid ORDER BY start_ns, run), 0), "
		"correct FROM v_results WHERE (name = ?1 "
		"OR area || '/' || name = ?1 OR area || '/' || name GLOB ?1) "
		"AND (?2 IS NULL OR metric = ?2) "
		"ORDER BY area, name, params, metric, origin, device_name, "
		"uid, start_ns, run", "tt", name, s->o.metric);
	if (ok && !t.n_rows)
		ok = err_set(e, ERR_INPUT, "%s: no result of a case \"%s\"%s%s;"
			     " wanted its name, AREA/NAME, or a pattern like "
			     "'gemm/*'", res_db_path(s->db), name,
			     s->o.metric ? " with metric " : "",
			     s->o.metric ? s->o.metric : "");
	ok = ok && show_table(s, &t, e);
	table_fini(&t);
	return ok;
}

/* ---- costs ---- */

/* The newest of each (what, metric, where, origin), with its age today. */
bool res_cmd_costs(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct table t;

	table_init(&t, "name,params,metric,~value,unit,origin,device,"
		       "#age_days,#spread,#n,#clock_hz,source,#run");
	bool ok = res_query(s->db, &t, show_digits(s), e,
		"SELECT name, params, metric, value, unit, origin, device_name,"
		" round((?1 - start_ns) / 86400e9, 1), "
		"(hi - lo) / 2 / nullif(abs(value), 0), n, clock_hz, source, "
		"run FROM (SELECT *, row_number() OVER (PARTITION BY case_id, "
		"metric, origin, device_name, gfx, uid "
		"ORDER BY start_ns DESC, run DESC) AS newest FROM v_results "
		"WHERE area = 'cost' AND state = 'complete') WHERE newest = 1 "
		"ORDER BY name, params, metric, CASE origin "
		"WHEN 'hardware' THEN 0 WHEN 'published' THEN 1 ELSE 2 END, "
		"origin, device_name, uid", "i", (int64_t)time_wall_ns());
	if (ok && !t.n_rows)
		cmd_remark(c, "%s holds no costs yet", res_db_path(s->db));
	ok = ok && show_table(s, &t, e);
	table_fini(&t);
	return ok;
}

/* ---- devices ---- */

bool res_cmd_devices(struct cmd *c, struct err *e)
{
	return show_query(
		(struct show *)c,
		"#device,name,gfx,uid,pci,driver,firmware,origin,#cu_count,"
		"#vram_bytes,#runs,last,hosts",
		"SELECT d.id, d.name, d.gfx, d.uid, d.pci, d.driver, "
		"d.firmware, d.origin, d.cu_count, d.vram_bytes, count(r.id), "
		"strftime('%Y-%m-%dT%H:%M:%SZ', max(r.start_ns) / 1000000000, "
		"'unixepoch'), group_concat(DISTINCT h.machine) "
		"FROM devices d LEFT JOIN runs r ON r.device = d.id "
		"LEFT JOIN hosts h ON h.id = r.host GROUP BY d.id "
		"ORDER BY d.id",
		e);
}

/* ---- sql ---- */

/* Reading only: the file is opened so, but ATTACH could create others. */
static int may_read(void *ctx, int action, const char *a, const char *b,
		    const char *c, const char *d)
{
	(void)ctx, (void)a, (void)b, (void)c, (void)d;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_FUNCTION:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	}
	return SQLITE_DENY;
}

/* A column is numeric if all its values are numbers. */
static void query_row(struct table *t, sqlite3_stmt *st, int digits)
{
	table_row(t);
	for (int c = 0; c < t->n_cols; c++) {
		int type = sqlite3_column_type(st, c);
		char number[40];
		if (type == SQLITE_NULL)
			continue;
		t->numeric[c] &= type == SQLITE_INTEGER || type == SQLITE_FLOAT;
		if (type != SQLITE_FLOAT) {
			table_cell(t, c, "%s",
				   (const char *)sqlite3_column_text(st, c));
			continue;
		}
		double v = sqlite3_column_double(st, c);
		if (digits)
			snprintf(number, sizeof(number), "%.*g", digits, v);
		else
			res_real(number, v);
		table_cell(t, c, "%s", number);
	}
}

/* Names of columns may hold commas, which table_init() would split at. */
static void query_head(struct table *t, sqlite3_stmt *st)
{
	struct buf names = { 0 };
	int n = sqlite3_column_count(st);

	for (int c = 0; c < n; c++)
		buf_adds(&names, c ? ",#c" : "#c");
	table_init(t, names.data);
	for (int c = 0; c < n; c++)
		t->head[c] = arena_strdup(&t->mem, sqlite3_column_name(st, c));
	buf_fini(&names);
}

static bool run_query(struct show *s, sqlite3_stmt *st, struct err *e)
{
	struct table t;
	bool ok;

	query_head(&t, st);
	while (res_step(s->db, st, &ok, e))
		query_row(&t, st, show_digits(s));
	ok = ok && show_table(s, &t, e);
	table_fini(&t);
	return ok;
}

bool res_cmd_sql(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	sqlite3_stmt *st = NULL;
	const char *rest = "";

	sqlite3_set_authorizer(s->db->sq, may_read, NULL);
	int rc = sqlite3_prepare_v2(s->db->sq, c->argv[0], -1, &st, &rest);
	bool ok = rc == SQLITE_OK && st && !rest[strspn(rest, " \t\n;")];
	/* VACUUM asks nobody. */
	if (ok && (!sqlite3_stmt_readonly(st) || !sqlite3_column_count(st)))
		rc = SQLITE_AUTH;
	if (rc == SQLITE_AUTH)
		ok = err_set(e, ERR_USAGE, "sql only reads; wanted one SELECT, "
			     "not \"%.60s\"", c->argv[0]);
	else if (rc != SQLITE_OK)
		err_set(e, ERR_USAGE, "sql: %s", sqlite3_errmsg(s->db->sq));
	else if (!ok)
		err_set(e, ERR_USAGE, "sql takes one SELECT, not %s",
			st ? "several statements" : "an empty text");
	ok = ok && run_query(s, st, e);
	sqlite3_finalize(st);
	sqlite3_set_authorizer(s->db->sq, NULL, NULL);
	return ok;
}

/* ---- prune ---- */

/* The runs to go, as a temporary table: by number, or by age. */
static bool choose_runs(struct show *s, struct err *e)
{
	uint64_t days;
	int64_t run;

	if (!res_exec(s->db, e, "CREATE TEMP TABLE doomed(run INTEGER PRIMARY "
		      "KEY)", ""))
		return false;
	for (int i = 0; i < s->cmd.argc; i++)
		if (!show_find_run(s->db, s->cmd.argv[i], &run, e) ||
		    !res_exec(s->db, e, "INSERT OR IGNORE INTO doomed "
			      "VALUES(?)", "i", run))
			return false;
	if (!s->o.older_than)
		return true;
	if (!cli_u64(s->o.older_than, &days, e))
		return err_wrap(e, "--older-than (days)");
	if (days > 36500)
		return err_set(e, ERR_USAGE, "--older-than %s: more than a "
			       "hundred years of days", s->o.older_than);
	return res_exec(s->db, e, "INSERT OR IGNORE INTO doomed SELECT id "
			"FROM runs WHERE start_ns < ?", "i",
			(int64_t)time_wall_ns() -
			(int64_t)days * 86400 * 1000000000);
}

static bool refuse_live(struct show *s, struct err *e)
{
	int64_t live;

	return res_query_int(s->db, &live, e, "SELECT min(r.id) FROM runs r "
			     "JOIN doomed ON doomed.run = r.id WHERE r.state = "
			     "'running' AND t0_alive(r.owner)", "") &&
	       (!live || err_set(e, ERR_BUSY, "run %lld is still being "
				 "measured; end it first", (long long)live));
}

/* "yes" on a terminal; scripts say --yes. */
static bool confirm_deletion(struct show *s, int n, struct err *e)
{
	char answer[16] = "";

	if (s->o.yes)
		return true;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_USAGE, "prune asks first and there is no "
			       "terminal to ask on; --yes answers for you");
	fprintf(stderr, "t0-results: delete these %d runs for good? [yes/no] ",
		n);
	if (fgets(answer, sizeof(answer), stdin) && !strcmp(answer, "yes\n"))
		return true;
	return err_set(e, ERR_USAGE, "nothing was deleted");
}

static const char doomed_columns[] =
	"#run,started,tool,device,state,#results,#samples,#slots";
static const char doomed_sql[] =
	"SELECT v.run, started, tool, device_name, " SHOW_STATE ", results, "
	"(SELECT count(*) FROM results x JOIN samples m ON m.result = x.id "
	"WHERE x.run = v.run), slots FROM v_runs v JOIN doomed d "
	"ON d.run = v.run ORDER BY v.run";

/*
 * What the tuner decided in these runs, or in runs that are gone.  Failures
 * stay: code that was once wrong must not be chosen.
 */
static bool delete_tunes(struct show *s, struct err *e)
{
	return !s->o.tunes ||
	       (res_exec(s->db, e, "DELETE FROM tunes WHERE run IS NULL OR "
			 "run IN(SELECT run FROM doomed)", "") &&
		res_exec(s->db, e, "DELETE FROM tune_checks WHERE verdict = "
			 "'pass' AND (run IS NULL OR run IN(SELECT run FROM "
			 "doomed)) AND NOT EXISTS(SELECT 1 FROM tunes t WHERE "
			 "t.target = tune_checks.target AND "
			 "t.op = tune_checks.op AND "
			 "t.object = tune_checks.object)", ""));
}

static bool delete_runs(struct show *s, struct err *e)
{
	if (!res_write_begin(s->db, e))
		return false;
	bool ok = refuse_live(s, e) && delete_tunes(s, e) &&
		  res_exec(s->db, e, "DELETE FROM verdicts WHERE result IN("
			   "SELECT id FROM results WHERE run IN(SELECT run "
			   "FROM doomed))", "") &&
		  res_exec(s->db, e, "DELETE FROM runs WHERE id IN(SELECT run "
			   "FROM doomed)", "");
	return res_write_end(s->db, ok, e);
}

bool res_cmd_prune(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct table t;

	if (!c->argc && !s->o.older_than)
		return err_set(e, ERR_USAGE, "prune what?  Wanted runs, or "
			       "--older-than DAYS");
	table_init(&t, doomed_columns);
	bool ok = choose_runs(s, e) && refuse_live(s, e) &&
		  res_query(s->db, &t, show_digits(s), e, doomed_sql, "") &&
		  cmd_table(&s->cmd, &t, e);
	if (ok && t.n_rows && !s->o.dry_run)
		ok = confirm_deletion(s, t.n_rows, e) && delete_runs(s, e);
	table_fini(&t);
	return ok;
}
