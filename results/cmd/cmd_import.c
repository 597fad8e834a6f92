/*
 * results/cmd/cmd_import.c - the lines of an export, back into a database.
 */
#include "results/cmd/import.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

bool import_bad_value(struct res_import *im, const char *name,
		      const char *wanted)
{
	return err_set(im->e, ERR_INPUT, "\"%s\": wanted %s", name, wanted);
}

static bool is_infinite(const json_t *v, double *out)
{
	const char *s = json_string_value(v);

	*out = s && *s == '-' ? -INFINITY : INFINITY;
	return s && (!strcmp(s, "inf") || !strcmp(s, "-inf"));
}

static bool bind_real(struct res_import *im, sqlite3_stmt *st, int i,
		      const char *name, const json_t *v)
{
	double inf;

	if (json_is_number(v))
		sqlite3_bind_double(st, i, json_number_value(v));
	else if (is_infinite(v, &inf))
		sqlite3_bind_double(st, i, inf);
	else if (json_is_null(v))
		sqlite3_bind_null(st, i);
	else
		return import_bad_value(im, name, "a number or null");
	return true;
}

static bool bind_column(struct res_import *im, sqlite3_stmt *st, int i,
			const char *column, const json_t *row)
{
	const json_t *v = json_object_get(row, column + 1);

	if ((!v || json_is_null(v)) && isupper((unsigned char)*column)) {
		sqlite3_bind_null(st, i);
		return true;
	}
	if (!v)
		return import_bad_value(im, column + 1,
					"this key, which is missing");
	if (tolower((unsigned char)*column) == 'd')
		return bind_real(im, st, i, column + 1, v);
	if (json_is_null(v) && (*column == 'n' || *column == 'j')) {
		sqlite3_bind_null(st, i);
		return true;
	}
	if (tolower((unsigned char)*column) == 't' || *column == 'n') {
		if (!json_is_string(v))
			return import_bad_value(im, column + 1, "a string");
		sqlite3_bind_text(st, i, json_string_value(v),
				  (int)json_string_length(v), SQLITE_TRANSIENT);
		return true;
	}
	if (!json_is_integer(v))
		return import_bad_value(im, column + 1, "an integer");
	sqlite3_bind_int64(st, i, json_integer_value(v));
	return true;
}

static void column_list(struct buf *out, const struct import_fixed *fixed,
			const char *const *column, const char *join)
{
	for (int i = 0; fixed[i].name; i++)
		buf_printf(out, "%s%s%s", out->len ? ", " : "", fixed[i].name,
			   join);
	for (int i = 0; column[i]; i++)
		buf_printf(out, "%s%s%s", out->len ? ", " : "", column[i] + 1,
			   join);
}

static struct buf insert_sql(const char *table,
			     const struct import_fixed *fixed,
			     const char *const *column)
{
	struct buf names = { 0 }, sql = { 0 };
	int n = 0;

	column_list(&names, fixed, column, "");
	for (const char *p = names.data; *p; p++)
		n += *p == ',';
	buf_printf(&sql, "INSERT INTO %s(%s) VALUES(?", table, names.data);
	while (n--)
		buf_adds(&sql, ", ?");
	buf_adds(&sql, ")");
	buf_fini(&names);
	return sql;
}

bool import_step(struct res_import *im, const char *sql,
		 const struct import_fixed *fixed, const char *const *column,
		 const json_t *row, int64_t *id)
{
	sqlite3_stmt *st = res_stmt_bare(im->db, im->e, sql);
	int i = 0;
	bool ok = st != NULL;

	for (int k = 0; ok && fixed[k].name; k++)
		if (fixed[k].value)
			sqlite3_bind_int64(st, ++i, fixed[k].value);
		else
			sqlite3_bind_null(st, ++i);
	for (int k = 0; ok && column[k]; k++)
		ok = bind_column(im, st, ++i, column[k], row);
	if (ok && res_step(im->db, st, &ok, im->e) && id)
		*id = sqlite3_column_int64(st, 0);
	if (st)
		res_stmt_done(st);
	return ok;
}

bool import_insert(struct res_import *im, const char *table,
		   const struct import_fixed *fixed, const char *const *column,
		   const json_t *row)
{
	struct buf sql = insert_sql(table, fixed, column);
	bool ok = import_step(im, sql.data, fixed, column, row, NULL);

	buf_fini(&sql);
	return ok;
}

/* ---- rows that are found by their content ---- */

const struct import_fixed import_none[] = { { NULL, 0 } };

bool import_find(struct res_import *im, const char *table,
		 const struct import_fixed *fixed, const char *const *column,
		 const json_t *row, int64_t *id)
{
	struct buf sql = { 0 }, names = { 0 };

	column_list(&names, fixed, column, " IS ?");
	buf_printf(&sql, "SELECT id FROM %s WHERE ", table);
	for (const char *p = names.data; *p; p++)
		if (*p == ',')
			buf_adds(&sql, " AND");
		else
			buf_addc(&sql, *p);
	*id = 0;
	bool ok = import_step(im, sql.data, fixed, column, row, id);
	buf_fini(&sql);
	buf_fini(&names);
	return ok;
}

static bool find_or_insert(struct res_import *im, const char *table,
		   const char *const *column, const json_t *row, int64_t *id)
{
	if (!json_is_object(row))
		return import_bad_value(im, table, "an object");
	return import_find(im, table, import_none, column, row, id) &&
	       (*id || (import_insert(im, table, import_none, column, row) &&
			import_find(im, table, import_none, column, row, id)));
}

static const char *const host_columns[] = { "tmachine", "tcpu", "tkernel",
					    "icores", "imem_bytes", NULL };
static const char *const device_columns[] = {
	"tname", "tgfx", "tuid", "tpci", "tdriver", "tfirmware", "tfacts",
	"torigin", "icu_count", "ivram_bytes", NULL
};
static const char *const build_columns[] = { "tversion", "tgit_commit",
					     "idirty", "tcompiler", "tflags",
					     "tbinary", NULL };
static const char *const case_columns[] = { "tarea", "tname", "tparams", NULL };

static bool is_absent(const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key));
}

static bool take_facts(struct res_import *im, const json_t *row, int64_t *host,
		  int64_t *device, int64_t *build)
{
	const json_t *d = json_object_get(row, "device");

	*device = 0;
	return find_or_insert(im, "hosts", host_columns,
			      json_object_get(row, "host"), host) &&
	       find_or_insert(im, "builds", build_columns,
			      json_object_get(row, "build"), build) &&
	       (is_absent(d, "name") ||
		find_or_insert(im, "devices", device_columns, d, device));
}

/* ---- kinds of lines ---- */

static bool take_header(struct res_import *im, const json_t *row)
{
	json_int_t format = json_integer_value(json_object_get(row, "export"));
	json_int_t schema = json_integer_value(json_object_get(row, "schema"));

	im->unnamed = schema < 6;
	if (format == 1 && schema >= 1 && schema <= res_schema_version())
		return true;
	return err_set(im->e, ERR_INPUT, "written by another T0 (export %lld, "
		       "schema %lld; this build knows export 1, schema up to "
		       "%d); use the newer build", (long long)format,
		       (long long)schema, res_schema_version());
}

static const char *const run_columns[] = {
	"tuuid", "ttool", "targv", "tinputs", "tconditions", "iseed",
	"istart_ns", "jend_ns", "tstate", "jexit_code", "treason", "towner",
	"Tseries", "Tside", NULL
};

/*
 * A run that is here already stays, unless it was copied before it ended and
 * this is the later copy.
 */
static bool drop_older(struct res_import *im, const json_t *row)
{
	const char *uuid = json_string_value(json_object_get(row, "uuid"));
	int64_t end_ns =
		json_integer_value(json_object_get(row, "end_ns"));
	int64_t id, older;

	if (!res_query_int(im->db, &id, im->e, "SELECT id FROM runs WHERE "
			   "uuid = ?", "t", uuid) ||
	    !res_query_int(im->db, &older, im->e, "SELECT id FROM runs WHERE "
			   "uuid = ? AND coalesce(end_ns, 0) < ? AND NOT "
			   "(state = 'running' AND t0_alive(owner))", "ti",
			   uuid, end_ns))
		return false;
	im->known_run = id && !older;
	im->run = im->known_run ? id : 0;
	im->known += im->known_run;
	return !older ||
	       (res_exec(im->db, im->e, "DELETE FROM verdicts WHERE run = ?",
			 "i", older) &&
		res_exec(im->db, im->e, "DELETE FROM runs WHERE id = ?", "i",
			 older));
}

static bool take_run(struct res_import *im, const json_t *row)
{
	struct import_fixed id[] = {
		{ "host", 0 }, { "device", 0 }, { "build", 0 }, { NULL, 0 }
	};

	if (!drop_older(im, row))
		return false;
	if (im->known_run)
		return true;
	if (!take_facts(im, row, &id[0].value, &id[1].value, &id[2].value) ||
	    !import_insert(im, "runs", id, run_columns, row))
		return false;
	im->run = sqlite3_last_insert_rowid(im->db->sq);
	im->runs++;
	return true;
}

static bool take_sample(struct res_import *im, sqlite3_stmt *st, size_t i,
			const json_t *v)
{
	double x = json_number_value(v);
	bool ok;

	if (!json_is_number(v) && !is_infinite(v, &x))
		return import_bad_value(im, "samples", "numbers");
	sqlite3_bind_int64(st, 2, (int64_t)i);
	sqlite3_bind_double(st, 3, x);
	res_step(im->db, st, &ok, im->e);
	sqlite3_reset(st);
	return ok;
}

static bool take_samples(struct res_import *im, int64_t result,
			 const json_t *samples)
{
	size_t i;
	const json_t *v;
	bool ok = true;

	if (!json_is_array(samples))
		return import_bad_value(im, "samples", "an array");
	sqlite3_stmt *st = res_stmt_bare(im->db, im->e,
		"INSERT INTO samples(result, idx, value) VALUES(?, ?, ?)");
	if (!st)
		return false;
	sqlite3_bind_int64(st, 1, result);
	json_array_foreach(samples, i, v) {
		ok = take_sample(im, st, i, v);
		if (!ok)
			break;
	}
	res_stmt_done(st);
	return ok;
}

static const char *const result_columns[] = {
	"tmetric", "tunit", "dvalue", "dlo", "dhi", "in", "dclock_hz",
	"tbetter", "torigin", "tsource", NULL
};

static const char *const sensor_columns[] = {
	"tmoment", "dsclk_hz", "dmclk_hz", "dload", "dpower_w", "dedge_c",
	"djunction_c", "dmemory_c", NULL
};

/* Not in every line: who measured may not have read any. */
static bool take_sensors(struct res_import *im, int64_t result,
			 const json_t *readings)
{
	const struct import_fixed id[] = { { "result", result }, { NULL, 0 } };
	const json_t *v;
	size_t i;

	if (readings && !json_is_array(readings))
		return import_bad_value(im, "sensors", "an array");
	json_array_foreach(readings, i, v)
		if (!import_insert(im, "sensors", id, sensor_columns, v))
			return false;
	return true;
}

static bool take_result(struct res_import *im, const json_t *row)
{
	struct import_fixed id[] = { { "run", im->run }, { "case_id", 0 },
			      { NULL, 0 } };
	int64_t result;

	if (im->known_run)
		return true;
	if (!find_or_insert(im, "cases", case_columns,
			    json_object_get(row, "case"), &id[1].value) ||
	    !import_insert(im, "results", id, result_columns, row))
		return false;
	result = sqlite3_last_insert_rowid(im->db->sq);
	return take_samples(im, result, json_object_get(row, "samples")) &&
	       take_sensors(im, result, json_object_get(row, "sensors"));
}

static bool find_result(struct res_import *im, const json_t *of, int64_t *id)
{
	int64_t c = 0;

	if (is_absent(of, "metric"))
		return true;
	if (!find_or_insert(im, "cases", case_columns, of, &c) ||
	    !res_query_int(im->db, id, im->e, "SELECT id FROM results WHERE "
			   "run = ? AND case_id = ? AND metric = ?", "iit",
			   im->run, c,
			   json_string_value(json_object_get(of, "metric"))))
		return false;
	return *id || im->known_run ||
	       err_set(im->e, ERR_INPUT, "a verdict of a result that the run "
		       "does not hold");
}

static const char *const verdict_columns[] = { "tkind", "tverdict", "treason",
					       "tdetail", NULL };

static bool take_verdict(struct res_import *im, const json_t *row)
{
	const json_t *c = json_object_get(row, "case");
	struct import_fixed id[] = { { "run", im->run }, { "case_id", 0 },
			      { "result", 0 }, { NULL, 0 } };
	int64_t here = 0;

	if (!is_absent(c, "name") &&
	    !find_or_insert(im, "cases", case_columns, c, &id[1].value))
		return false;
	if (!find_result(im, json_object_get(row, "of"), &id[2].value))
		return false;
	if (im->known_run &&
	    !import_find(im, "verdicts", id, verdict_columns, row, &here))
		return false;
	return here || import_insert(im, "verdicts", id, verdict_columns, row);
}

static const char *const slot_columns[] = {
	"tencoding", "iopcode", "tform", "nmnemonic", "tverdict", "tsignature",
	"treason", "nexpected", "noracle", "jemulated_ok", "tdifference",
	"terrata", NULL
};

static bool take_slot(struct res_import *im, const json_t *row)
{
	const struct import_fixed id[] = { { "run", im->run }, { NULL, 0 } };

	return im->known_run ||
	       import_insert(im, "slot_verdicts", id, slot_columns, row);
}

static const char *const baseline_columns[] = {
	"tuuid", "icreated_ns", "tstate", "treason", "nreplaces", "trun",
	"istart_ns", "ttool", "tinputs", "tconditions", "tmetric", "tunit",
	"dvalue", "dlo", "dhi", "in", "dclock_hz", "tbetter", "torigin",
	"tsource", "ncorrect", "ncoherent", "tsamples", "Iprocesses",
	"Dloss_limit", "Irequired", NULL
};
static const char *const note_columns[] = {
	"tuuid", "icreated_ns", "thypothesis", "tabout", "dexpected",
	"dmeasured", "tstatus", "tgit_commit", "tpatch", "tremark", "nreplaces",
	NULL
};
static const char *const calibration_columns[] = {
	"tuuid", "icreated_ns", "tkind", "tarea", "tcondition", "iprocesses",
	"iside", "imeasures", "dalpha", "itrials", "ifalse_alarms", "iserial",
	"iserial_false", "ddetectable", "dspread", "ddrift",
	"Dplanted", "Iplanted_trials", "Iplanted_found", "Iplanted_passed",
	NULL
};
static const char *const experiment_columns[] = {
	"tuuid", "icreated_ns", "tevaluator", "tbase", "iprocesses", "tkind",
	"twhat", "tcontent", "thypothesis", "tverdict", "treason", "tmeasured",
	"dgain", "dlo", "dhi", "dp", NULL
};
static const char *const uuid_column[] = { "tuuid", NULL };

static bool take_baseline(struct res_import *im, const json_t *row)
{
	struct import_fixed id[] = { { "host", 0 },
				     { "device", 0 },
				     { "build", 0 },
				     { "case_id", 0 },
				     { NULL, 0 } };
	int64_t here;

	if (!import_find(im, "baselines", import_none, uuid_column, row,
			 &here) ||
	    here)
		return here;
	return take_facts(im, row, &id[0].value, &id[1].value, &id[2].value) &&
	       find_or_insert(im, "cases", case_columns,
			      json_object_get(row, "case"), &id[3].value) &&
	       import_insert(im, "baselines", id, baseline_columns, row);
}

static bool take_note(struct res_import *im, const json_t *row)
{
	int64_t here;

	if (!import_find(im, "notes", import_none, uuid_column, row, &here) ||
	    here)
		return here;
	return import_insert(im, "notes", import_none, note_columns, row);
}

/* A row of a table that names the host and the build it is of. */
static bool take_of_build(struct res_import *im, const char *table,
			  const char *const *columns, const json_t *row)
{
	struct import_fixed id[] = { { "host", 0 }, { "build", 0 },
				     { NULL, 0 } };
	int64_t here, device;

	if (!import_find(im, table, import_none, uuid_column, row,
			 &here) ||
	    here)
		return here;
	return take_facts(im, row, &id[0].value, &device, &id[1].value) &&
	       import_insert(im, table, id, columns, row);
}

static bool take_calibration(struct res_import *im, const json_t *row)
{
	return take_of_build(im, "calibrations", calibration_columns, row);
}

static bool take_experiment(struct res_import *im, const json_t *row)
{
	return take_of_build(im, "experiments", experiment_columns, row);
}

/* What schema.def's version 6 did to a file's hashes, for an export's. */
static void name_hash(json_t *row, const char *object, const char *key)
{
	json_t *o = object ? json_object_get(row, object) : row;
	const char *text = json_string_value(json_object_get(o, key));
	const char *hash = text ? strrchr(text, '#') : NULL;

	hash = hash ? hash + 1 : text;
	if (hash && strspn(hash, "0123456789abcdef") == 16 && !hash[16])
		json_object_set_new(o, key, json_sprintf(
			"%.*sfnv1a-64:%s", (int)(hash - text), text, hash));
}

static void name_hashes(json_t *row)
{
	name_hash(row, "host", "machine");
	name_hash(row, "build", "binary");
	name_hash(row, NULL, "signature");
	name_hash(row, NULL, "code");
}

static const struct kind {
	const char *name;
	bool of_run; /* belongs to the run before it */
	bool (*take)(struct res_import *im, const json_t *row);
} kinds[] = {
	{ "t0", false, take_header },	   { "run", false, take_run },
	{ "result", true, take_result },   { "verdict", true, take_verdict },
	{ "slot", true, take_slot },	   { "note", false, take_note },
	{ "baseline", false, take_baseline },
	{ "calibration", false, take_calibration },
	{ "experiment", false, take_experiment },
	{ "check", false, import_check },  { "tune", false, import_tune },
};

static bool take_line(struct res_import *im, const json_t *line)
{
	const char *name = json_object_iter_key(json_object_iter(
		(json_t *)line));
	json_t *row = json_object_get(line, name ? name : "");

	if (json_object_size(line) != 1 || !json_is_object(row))
		return err_set(im->e, ERR_INPUT, "not a line of an export, "
			       "{\"kind\": {...}}");
	if ((im->line == 1) != !strcmp(name, "t0"))
		return err_set(im->e, ERR_INPUT, "got \"%.40s\"; wanted \"t0\" "
			       "on the first line and only there", name);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, name))
			continue;
		if (kinds[i].of_run && !im->run)
			return err_set(im->e, ERR_INPUT, "a %s before any run",
				       name);
		if (im->unnamed)
			name_hashes(row);
		return kinds[i].take(im, row);
	}
	return err_set(im->e, ERR_INPUT, "unknown kind of row \"%.40s\"", name);
}

/* ---- the whole ---- */

/* The longest line of an export has all samples of a result: millions. */
#define LINE_BYTES ((size_t)64 << 20)

struct res_import *import_new(struct res_db *db, struct err *e)
{
	if (!res_write_begin(db, e))
		return NULL;
	struct res_import *im = xcalloc(1, sizeof(*im));
	im->db = db;
	return im;
}

bool import_line(struct res_import *im, const char *line, size_t len,
			struct err *e)
{
	json_error_t je;
	json_t *j = json_loadb(line, len, JSON_ALLOW_NUL, &je);

	im->line++;
	im->e = e;
	bool ok = j ? take_line(im, j) :
		      err_set(e, ERR_INPUT, "column %d: %s", je.column,
			      je.text);
	json_decref(j);
	return ok || err_wrap(e, "line %lld", (long long)im->line);
}

bool import_end(struct res_import *im, bool ok, int64_t *runs,
		       int64_t *known, struct err *e)
{
	if (ok && !im->line)
		ok = err_set(e, ERR_INPUT, "an empty file; wanted an export");
	*runs = im->runs;
	*known = im->known;
	struct res_db *db = im->db;
	free(im);
	return res_write_end(db, ok, e);
}

static bool remark_import(struct show *s, const char *path, int64_t runs,
			  int64_t known)
{
	cmd_remark(&s->cmd, "%s: %lld new runs, %lld were here already", path,
		   (long long)runs, (long long)known);
	return true;
}

static bool read_lines(struct res_import *im, struct file_lines *l,
		       struct err *e)
{
	char *line;
	size_t len;
	bool ok;

	while ((ok = file_lines_next(l, &line, &len, e)) && line) {
		ok = l->cut ? err_set(e, ERR_INPUT, "line %lld: cut short",
				      (long long)l->line) :
			      import_line(im, line, len, e);
		if (!ok)
			return err_wrap(e, "%s", l->path);
	}
	return ok;
}

static bool import_file(struct show *s, const char *path, struct err *e)
{
	int64_t runs, known;
	struct file_lines l;

	if (!file_lines_open(&l, path, LINE_BYTES, e))
		return false;
	struct res_import *im = import_new(s->db, e);
	bool read = im && read_lines(im, &l, e);
	bool ok = im && import_end(im, read, &runs, &known, e) && read;
	file_lines_close(&l);
	if (ok)
		return remark_import(s, path, runs, known);
	return read ? err_wrap(e, "%s", path) : false;
}

static bool join_shards(struct show *s, struct err *e)
{
	int64_t joined;

	if (!res_shards_join(s->db, &joined, e))
		return false;
	if (joined)
		cmd_remark(&s->cmd, "joined the shards of %lld run%s",
			   (long long)joined, joined == 1 ? "" : "s");
	return true;
}

bool res_cmd_import(struct cmd *c, struct err *e)
{
	bool ok = true;

	for (int i = 0; ok && i < c->argc; i++)
		ok = import_file((struct show *)c, c->argv[i], e);
	return ok && join_shards((struct show *)c, e);
}

static bool put_to_import(void *ctx, const char *line, size_t len,
			  struct err *e)
{
	return import_line(ctx, line, len, e);
}

/* A merge is an export read by an import, so that both say the same. */
static bool merge_rows(struct res_db *db, const char *path, int64_t *runs,
		       int64_t *known, struct err *e)
{
	struct res_db *from = res_open(path, RES_READ, e);

	if (!from)
		return false;
	struct res_import *im = import_new(db, e);
	bool ok = im && res_export(from, false, put_to_import, im, e);
	ok = im && import_end(im, ok, runs, known, e) && ok;
	res_close(from);
	return ok || err_wrap(e, "merging %s", path);
}

bool show_merge(struct res_db *db, const char *path, struct err *e)
{
	int64_t runs, known;

	return merge_rows(db, path, &runs, &known, e);
}

static bool merge_file(struct show *s, const char *path, struct err *e)
{
	int64_t runs, known;

	return merge_rows(s->db, path, &runs, &known, e) &&
	       remark_import(s, path, runs, known);
}

bool res_cmd_merge(struct cmd *c, struct err *e)
{
	bool ok = true;

	for (int i = 0; ok && i < c->argc; i++)
		ok = merge_file((struct show *)c, c->argv[i], e);
	return ok && join_shards((struct show *)c, e);
}
