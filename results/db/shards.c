/*
 * results/db/shards.c - the runs of all N shards of a work, made one run.
 *
 * A shard's run says in its inputs which part it is (results/db/results.h:
 * shard.c), a process of a sharded series in the name of its series.  Parts that
 * may have been one run - the same tool, inputs, build, device and seed, and on
 * one host, if anything was measured by its clock - are joined once each of the
 * N is complete; what was killed before adds what it has.  Of what two parts
 * have, the complete part's stays, then the one with the lower uuid.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "results/db/res.h"

/* What a part's run says of the whole: all but the times and the place. */
static const char parts_sql[] =
	"CREATE TEMP TABLE parts AS WITH spec AS (SELECT r.*, "
	"coalesce(json_extract(r.inputs, '$.shard'), CASE WHEN "
	"instr(r.series, ' ') THEN substr(r.series, instr(r.series, ' ') + 1) "
	"END) AS spec FROM runs r), plain AS (SELECT *, "
	"substr(spec, instr(spec, '/') + 1) AS rest, "
	"replace(replace(inputs, ',\"shard\":\"' || spec || '\"', ''), "
	"'\"shard\":\"' || spec || '\"', '') AS whole_inputs, "
	"CASE WHEN instr(series, ' ') THEN substr(series, 1, "
	"instr(series, ' ') - 1) ELSE series END AS whole_series FROM spec "
	"WHERE spec IS NOT NULL AND NOT (state = 'running' AND "
	"t0_alive(owner)) AND (series IS NULL OR state = 'complete')) "
	"SELECT p.id AS run, p.uuid, p.spec, p.state = 'complete' AS complete, "
	"CAST(p.spec AS INTEGER) AS slot, CAST(p.rest AS INTEGER) AS n, "
	"p.whole_inputs, p.whole_series, "
	"json_array(p.tool, p.whole_inputs, p.rest, p.seed, b.version, "
	"b.git_commit, b.dirty, b.compiler, b.flags, b.binary, d.name, d.gfx, "
	"d.uid, d.pci, d.driver, d.firmware, d.facts, d.origin, p.whole_series, "
	"p.side, CASE WHEN p.series IS NOT NULL THEN row_number() OVER ("
	"PARTITION BY p.tool, p.series, p.side, p.inputs, p.host "
	"ORDER BY p.start_ns, p.uuid) END, "
	"CASE WHEN p.series IS NOT NULL OR EXISTS(SELECT 1 FROM results x "
	"WHERE x.run = p.id AND x.origin = 'hardware') THEN h.machine || "
	"h.cpu || h.kernel END) AS key "
	"FROM plain p JOIN builds b ON b.id = p.build "
	"JOIN hosts h ON h.id = p.host LEFT JOIN devices d ON d.id = p.device";

/* A part that measured nothing (it has no piece) goes where the others are. */
static const char empty_sql[] =
	"UPDATE parts SET key = coalesce((SELECT min(o.key) FROM parts o "
	"WHERE json_remove(o.key, '$[21]') = json_remove(parts.key, '$[21]') "
	"AND json_extract(o.key, '$[21]') IS NOT NULL), key) "
	"WHERE json_extract(key, '$[21]') IS NULL";

/* Of each whole: is there a complete run of every part? */
static const char wholes_sql[] =
	"SELECT key FROM parts WHERE slot BETWEEN 1 AND n GROUP BY key "
	"HAVING count(DISTINCT CASE WHEN complete THEN slot END) = max(n) "
	"OR whole_uuid(key) IN (SELECT uuid FROM runs) ORDER BY key";

static const char new_sql[] =
	"INSERT INTO runs(uuid, host, device, build, tool, argv, inputs, "
	"conditions, seed, start_ns, end_ns, state, exit_code, reason, owner, "
	"series, side) SELECT whole_uuid(p.key), r.host, r.device, r.build, "
	"r.tool, replace(replace(r.argv, ' --shard ' || p.spec, ''), "
	"' --shard=' || p.spec, ''), p.whole_inputs, "
	"(SELECT json_object('shards', json_group_array(uuid)) FROM "
	"(SELECT uuid FROM parts WHERE key = ?1 AND complete "
	"ORDER BY slot, uuid)), r.seed, "
	"(SELECT min(start_ns) FROM runs WHERE id IN "
	"(SELECT run FROM parts WHERE key = ?1)), "
	"(SELECT max(end_ns) FROM runs WHERE id IN "
	"(SELECT run FROM parts WHERE key = ?1)), 'complete', "
	"(SELECT max(exit_code) FROM runs WHERE id IN "
	"(SELECT run FROM parts WHERE key = ?1 AND complete)), '', '', "
	"p.whole_series, r.side FROM parts p JOIN runs r ON r.id = p.run "
	"WHERE p.key = ?1 AND p.complete ORDER BY p.slot, p.uuid LIMIT 1";

/* ?1 is the part, ?2 the whole; what the whole has, stays as it is. */
static const char *const move_sql[] = {
	"UPDATE OR IGNORE results SET run = ?2 WHERE run = ?1",
	"UPDATE verdicts SET run = ?2 WHERE run = ?1 AND result IN "
	"(SELECT id FROM results WHERE run = ?2)",
	"UPDATE verdicts SET run = ?2 WHERE run = ?1 AND result IS NULL AND "
	"kind || '/' || coalesce(case_id, 0) NOT IN (SELECT kind || '/' || "
	"coalesce(case_id, 0) FROM verdicts WHERE run = ?2 AND "
	"result IS NULL)",
	"UPDATE OR IGNORE slot_verdicts SET run = ?2 WHERE run = ?1",
	"UPDATE tunes SET run = ?2 WHERE run = ?1",
	"UPDATE tune_checks SET run = ?2 WHERE run = ?1",
	"DELETE FROM verdicts WHERE run = ?1 AND ?2 > 0",
	"DELETE FROM runs WHERE id = ?1 AND ?2 > 0",
	NULL
};
static const char once_sql[] =
	"DELETE FROM tune_checks WHERE run = ? AND EXISTS(SELECT 1 FROM "
	"tune_checks c WHERE c.id < tune_checks.id AND c.run = tune_checks.run "
	"AND c.target = tune_checks.target AND c.op = tune_checks.op AND "
	"c.config = tune_checks.config AND c.object = tune_checks.object AND "
	"c.class = tune_checks.class AND c.verdict = tune_checks.verdict AND "
	"c.worst IS tune_checks.worst AND "
	"c.compared = tune_checks.compared AND c.seed = tune_checks.seed AND "
	"c.detail = tune_checks.detail)";

/* The whole is known by what it is, so that it is made once wherever. */
static void whole_uuid(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	const char *key = (const char *)sqlite3_value_text(v[0]);
	XXH128_hash_t h = XXH3_128bits(key ? key : "", key ? strlen(key) : 0);
	char out[33];

	(void)n;
	snprintf(out, sizeof(out), "%016llx%016llx",
		 (unsigned long long)h.high64, (unsigned long long)h.low64);
	sqlite3_result_text(ctx, out, -1, SQLITE_TRANSIENT);
}

static bool move_part(struct res_db *db, int64_t part, int64_t whole,
		      struct err *e)
{
	for (const char *const *sql = move_sql; *sql; sql++)
		if (!res_exec(db, e, *sql, "ii", part, whole))
			return false;
	return true;
}

static bool join_whole(struct res_db *db, const char *key, struct err *e)
{
	int64_t whole;
	struct table t;

	if (!res_query_int(db, &whole, e, "SELECT id FROM runs WHERE uuid = "
			   "whole_uuid(?)", "t", key))
		return false;
	if (!whole) {
		if (!res_exec(db, e, new_sql, "t", key))
			return false;
		whole = sqlite3_last_insert_rowid(db->sq);
	}
	table_init(&t, "#run");
	bool ok = res_query(db, &t, 0, e, "SELECT run FROM parts WHERE key = ? "
			    "ORDER BY complete DESC, slot, uuid", "t", key);
	for (int i = 0; ok && i < t.n_rows; i++)
		ok = move_part(db, strtoll(t.row[i][0], NULL, 10), whole, e);
	table_fini(&t);
	return ok && res_exec(db, e, once_sql, "i", whole);
}

static bool join_wholes(struct res_db *db, int64_t *joined, struct err *e)
{
	struct table t;

	table_init(&t, "key");
	bool ok = res_exec(db, e, parts_sql, "") &&
		  res_exec(db, e, empty_sql, "") &&
		  res_query(db, &t, 0, e, wholes_sql, "");
	for (int i = 0; ok && i < t.n_rows; i++)
		ok = join_whole(db, t.row[i][0], e);
	*joined = t.n_rows;
	table_fini(&t);
	return res_exec(db, ok ? e : NULL, "DROP TABLE IF EXISTS temp.parts",
			"") && ok;
}

bool res_shards_join(struct res_db *db, int64_t *joined, struct err *e)
{
	int64_t any = 0;

	*joined = 0;
	if (!res_query_int(db, &any, e, "SELECT count(*) FROM runs WHERE "
			   "json_extract(inputs, '$.shard') IS NOT NULL OR "
			   "instr(series, ' ')", ""))
		return false;
	if (!any)
		return true;
	sqlite3_create_function(db->sq, "whole_uuid", 1,
				SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
				whole_uuid, NULL, NULL);
	if (!res_write_begin(db, e))
		return false;
	return res_write_end(db, join_wholes(db, joined, e), e) ||
	       err_wrap(e, "joining shards");
}
