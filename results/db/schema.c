/*
 * results/db/schema.c - versions of the database file (the SQL is in
 * schema.def).
 */
#include "results/db/res.h"

static const struct {
	int version;
	const char *sql;
} schema[] = {
#define SQL(version, ...) { version, #__VA_ARGS__ },
#include "results/db/schema.def"
#undef SQL
};

/* Views that an intact file can prepare; this reads every table's schema. */
static const char *const views[] = {
	"SELECT * FROM v_runs",		"SELECT * FROM v_results",
	"SELECT * FROM v_verdicts",	"SELECT * FROM v_latest_slots",
	"SELECT * FROM v_slot_summary", "SELECT * FROM v_baselines",
	"SELECT * FROM v_notes",	"SELECT * FROM v_tunes",
	"SELECT * FROM v_tune_checks",	"SELECT * FROM v_calibrations",
	"SELECT * FROM v_experiments",
};

int res_schema_version(void)
{
	return schema[ARRAY_SIZE(schema) - 1].version;
}

static bool pragma_int(struct res_db *db, const char *sql, int64_t *out,
		       struct err *e)
{
	return res_query_int(db, out, e, sql, "");
}

static bool check_views(struct res_db *db, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		sqlite3_stmt *st = NULL;
		int rc = sqlite3_prepare_v2(db->sq, views[i], -1, &st, NULL);

		sqlite3_finalize(st);
		if (rc == SQLITE_ERROR) /* a table or view is missing */
			return err_set(e, ERR_INPUT,
				       "%s: not a whole T0 database: %s; "
				       "restore it from a copy",
				       db->path, sqlite3_errmsg(db->sq));
		if (rc != SQLITE_OK)
			return res_sql_err(db, rc, e, "reading the schema");
	}
	return true;
}

static bool check_file(struct res_db *db, int *version, struct err *e)
{
	int64_t app, v, objects;

	if (!pragma_int(db, "PRAGMA application_id", &app, e) ||
	    !pragma_int(db, "PRAGMA user_version", &v, e) ||
	    !pragma_int(db, "SELECT count(*) FROM sqlite_schema", &objects, e))
		return false;
	*version = (int)v;
	if (app == 0 && v == 0 && objects == 0)
		return true; /* empty: somebody died before creating it */
	if (app != RES_APPLICATION_ID)
		return err_set(e, ERR_INPUT,
			       "%s: an sqlite database, but not one of T0 "
			       "(application id %#llx, wanted %#x); name "
			       "another file with --db or T0_DB",
			       db->path, (unsigned long long)app,
			       RES_APPLICATION_ID);
	if (v > res_schema_version())
		return err_set(e, ERR_INPUT,
			       "%s: written by a newer T0 (schema %d, this "
			       "build knows up to %d); use the newer build",
			       db->path, *version, res_schema_version());
	return v < res_schema_version() || check_views(db, e);
}

bool res_schema_check(struct res_db *db, int *version, struct err *e)
{
	/* One snapshot: another process may be creating the file just now. */
	if (!res_exec(db, e, "SAVEPOINT look", ""))
		return false;
	bool ok = check_file(db, version, e);
	return res_exec(db, ok ? e : NULL, "RELEASE look", "") && ok;
}

static bool run_statements(struct res_db *db, int from, struct err *e)
{
	char sql[96];

	for (size_t i = 0; i < ARRAY_SIZE(schema); i++) {
		if (schema[i].version <= from)
			continue;
		int rc = sqlite3_exec(db->sq, schema[i].sql, NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			return res_sql_err(db, rc, e, "changing the schema");
	}
	snprintf(sql, sizeof(sql),
		 "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 RES_APPLICATION_ID, res_schema_version());
	int rc = sqlite3_exec(db->sq, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK || res_sql_err(db, rc, e, "changing the schema");
}

bool res_schema_upgrade(struct res_db *db, struct err *e)
{
	int version = 0;

	if (!res_write_begin(db, e))
		return false;
	/* Under the lock: another process may have done it meanwhile. */
	bool ok = res_schema_check(db, &version, e);
	if (ok && version < res_schema_version())
		ok = run_statements(db, version, e);
	return res_write_end(db, ok, e) && check_views(db, e);
}
