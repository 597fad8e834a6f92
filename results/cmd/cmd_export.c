/*
 * results/cmd/cmd_export.c - the whole database as JSON lines.
 *
 * The first line names the format.  Then, for every run by time and uuid: the
 * run with its host, device and build written out, its results with their
 * samples, its verdicts, its slots; then baselines, notes, and what the tuner
 * checked and decided.  No line holds an id of the file: runs are named by
 * uuid, cases by area, name and params.
 * Reals always have a point or an exponent and read back as the same bits.
 */
#include "results/cmd/cmd.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct exporter {
	struct res_db *db;
	/* Not whose it is: hidden columns, and of texts what names[] are. */
	bool anonymous;
	char name[4][128];
	bool (*put)(void *ctx, const char *line, size_t len, struct err *e);
	void *ctx;
	struct buf line;
	struct err *e;
};

/* ---- whose it is ---- */

/* Columns that say it by themselves, and what stands there instead. */
static const struct {
	const char *column, *instead;
} hidden[] = {
	{ "host.machine", "anonymous" }, { "device.uid", "" },
	{ "device.pci", "" },		 { "argv", "" },
	{ "owner", "" },
};

static const char *find_hidden(const struct exporter *x, const char *column)
{
	for (size_t i = 0; x->anonymous && i < ARRAY_SIZE(hidden); i++)
		if (!strcmp(hidden[i].column, column))
			return hidden[i].instead;
	return NULL;
}

/* The host, the user, and both folders that are likely to name him. */
static void find_names(struct exporter *x)
{
	const char *const env[] = { "HOME", "USER", "LOGNAME" };

	if (gethostname(x->name[0], sizeof(x->name[0]) - 1))
		x->name[0][0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(env); i++) {
		const char *v = getenv(env[i]);

		snprintf(x->name[1 + i], sizeof(x->name[1 + i]), "%s",
			 v ? v : "");
	}
}

/* `s` without them; short ones are parts of other words. */
static char *without_names(const struct exporter *x, const char *s)
{
	char *text = xstrdup(s);

	for (size_t i = 0; i < ARRAY_SIZE(x->name); i++) {
		const size_t n = strlen(x->name[i]);

		for (char *at = n > 2 ? strstr(text, x->name[i]) : NULL; at;
		     at = strstr(at, x->name[i])) {
			memmove(at + 1, at + n, strlen(at + n) + 1);
			*at++ = '-';
		}
	}
	return text;
}

/* ---- values ---- */

static bool add_string(struct exporter *x, const char *s)
{
	json_t *j = json_string(s);
	char *text = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

	if (text)
		buf_adds(&x->line, text);
	free(text);
	json_decref(j);
	return text || err_set(x->e, ERR_INPUT, "%s: \"%.60s\" is not UTF-8; "
			       "correct it with sqlite3, then export again",
			       res_db_path(x->db), s);
}

/*
 * 15 digits if they read back as the same number, else 17, which always do.
 * JSON has no infinity; "inf" stands for it.
 */
static void add_real(struct exporter *x, double v)
{
	char number[40];

	snprintf(number, sizeof(number), "%.15g", v);
	if (strtod(number, NULL) != v)
		snprintf(number, sizeof(number), "%.17g", v);
	if (!isfinite(v))
		buf_printf(&x->line, "\"%s\"", number);
	else
		buf_printf(&x->line, "%s%s", number,
			   strpbrk(number, ".e") ? "" : ".0");
}

static bool add_value(struct exporter *x, sqlite3_stmt *st, int col)
{
	const char *instead = find_hidden(x, sqlite3_column_name(st, col));

	if (instead && sqlite3_column_type(st, col) == SQLITE_TEXT)
		return add_string(x, instead);
	switch (sqlite3_column_type(st, col)) {
	case SQLITE_NULL:
		buf_adds(&x->line, "null");
		return true;
	case SQLITE_INTEGER:
		buf_printf(&x->line, "%lld",
			   (long long)sqlite3_column_int64(st, col));
		return true;
	case SQLITE_FLOAT:
		add_real(x, sqlite3_column_double(st, col));
		return true;
	}
	if (!x->anonymous)
		return add_string(x, (const char *)sqlite3_column_text(st, col));
	char *text = without_names(x, (const char *)sqlite3_column_text(st,
									col));
	const bool ok = add_string(x, text);

	free(text);
	return ok;
}

/*
 * The row's columns from `from` as `"name": value` pairs.  A column "a.b"
 * begins the object "a" or goes on with it; one whose name is "_" is skipped.
 */
static bool add_row(struct exporter *x, sqlite3_stmt *st, int from)
{
	char open[32] = "";
	bool ok = true, first = true;

	for (int c = from; ok && c < sqlite3_column_count(st); c++) {
		const char *name = sqlite3_column_name(st, c);
		const char *dot = strchr(name, '.');
		char object[32] = "";
		snprintf(object, sizeof(object), "%.*s",
			 dot ? (int)(dot - name) : 0, name);
		if (*open && strcmp(open, object))
			buf_addc(&x->line, '}');
		if (!first)
			buf_addc(&x->line, ',');
		first = false;
		if (*object && strcmp(open, object))
			buf_printf(&x->line, "\"%s\":{", object);
		snprintf(open, sizeof(open), "%s", object);
		buf_printf(&x->line, "\"%s\":", dot ? dot + 1 : name);
		ok = add_value(x, st, c);
	}
	if (*open)
		buf_addc(&x->line, '}');
	return ok;
}

static bool put_line(struct exporter *x)
{
	bool ok = x->put(x->ctx, x->line.data, x->line.len, x->e);

	buf_reset(&x->line);
	return ok;
}

/* ---- rows ---- */

/* A line {"kind": {...}} for every row of the SELECT. */
static bool put_rows(struct exporter *x, const char *kind, const char *sql,
		     int64_t run)
{
	bool ok;
	sqlite3_stmt *st = res_stmt(x->db, x->e, sql, "i", run);

	if (!st)
		return false;
	while (res_step(x->db, st, &ok, x->e)) {
		buf_printf(&x->line, "{\"%s\":{", kind);
		ok = add_row(x, st, 0);
		buf_adds(&x->line, "}}");
		if (!ok || !(ok = put_line(x)))
			break;
	}
	res_stmt_done(st);
	return ok;
}

static bool add_samples(struct exporter *x, int64_t result)
{
	bool ok, first = true;
	sqlite3_stmt *st = res_stmt(x->db, x->e,
		"SELECT value FROM samples WHERE result = ? ORDER BY idx", "i",
		result);

	if (!st)
		return false;
	for (; res_step(x->db, st, &ok, x->e); first = false) {
		if (!first)
			buf_addc(&x->line, ',');
		add_real(x, sqlite3_column_double(st, 0));
	}
	res_stmt_done(st);
	return ok;
}

static bool add_sensors(struct exporter *x, int64_t result)
{
	bool ok;
	sqlite3_stmt *st = res_stmt(x->db, x->e,
		"SELECT moment, sclk_hz, mclk_hz, load, power_w, edge_c, "
		"junction_c, memory_c FROM sensors WHERE result = ? "
		"ORDER BY moment DESC", "i", result);
	int n = 0;

	if (!st)
		return false;
	while (res_step(x->db, st, &ok, x->e)) {
		buf_adds(&x->line, n++ ? ",{" : ",\"sensors\":[{");
		ok = add_row(x, st, 0);
		buf_addc(&x->line, '}');
		if (!ok)
			break;
	}
	if (n)
		buf_addc(&x->line, ']');
	res_stmt_done(st);
	return ok;
}

static bool put_results(struct exporter *x, int64_t run)
{
	bool ok;
	sqlite3_stmt *st = res_stmt(x->db, x->e,
		"SELECT x.id, c.area AS \"case.area\", "
		"c.name AS \"case.name\", c.params AS \"case.params\", "
		"x.metric, x.unit, x.value, x.lo, x.hi, x.n, x.clock_hz, "
		"x.better, x.origin, x.source "
		"FROM results x JOIN cases c ON c.id = x.case_id "
		"WHERE x.run = ? ORDER BY x.id", "i", run);

	if (!st)
		return false;
	while (res_step(x->db, st, &ok, x->e)) {
		buf_adds(&x->line, "{\"result\":{");
		ok = add_row(x, st, 1);
		buf_adds(&x->line, ",\"samples\":[");
		ok = ok && add_samples(x, sqlite3_column_int64(st, 0));
		buf_addc(&x->line, ']');
		ok = ok && add_sensors(x, sqlite3_column_int64(st, 0));
		buf_adds(&x->line, "}}");
		if (!ok || !(ok = put_line(x)))
			break;
	}
	res_stmt_done(st);
	return ok;
}

#define FACT_COLUMNS \
	"h.machine AS \"host.machine\", h.cpu AS \"host.cpu\", " \
	"h.kernel AS \"host.kernel\", h.cores AS \"host.cores\", " \
	"h.mem_bytes AS \"host.mem_bytes\", d.name AS \"device.name\", " \
	"d.gfx AS \"device.gfx\", d.uid AS \"device.uid\", " \
	"d.pci AS \"device.pci\", d.driver AS \"device.driver\", " \
	"d.firmware AS \"device.firmware\", d.facts AS \"device.facts\", " \
	"d.origin AS \"device.origin\", d.cu_count AS \"device.cu_count\", " \
	"d.vram_bytes AS \"device.vram_bytes\", " \
	"b.version AS \"build.version\", " \
	"b.git_commit AS \"build.git_commit\", b.dirty AS \"build.dirty\", " \
	"b.compiler AS \"build.compiler\", b.flags AS \"build.flags\", " \
	"b.binary AS \"build.binary\""
#define FACT_TABLES \
	"JOIN hosts h ON h.id = r.host JOIN builds b ON b.id = r.build " \
	"LEFT JOIN devices d ON d.id = r.device "

static const char run_sql[] =
	"SELECT r.uuid, r.tool, r.argv, r.inputs, r.conditions, r.seed, "
	"r.start_ns, r.end_ns, r.state, r.exit_code, r.reason, r.owner, "
	"r.series, r.side, "
	FACT_COLUMNS " FROM runs r " FACT_TABLES "WHERE r.id = ?";
static const char verdict_sql[] =
	"SELECT v.kind, v.verdict, v.reason, v.detail, "
	"c.area AS \"case.area\", c.name AS \"case.name\", "
	"c.params AS \"case.params\", o.area AS \"of.area\", "
	"o.name AS \"of.name\", o.params AS \"of.params\", "
	"z.metric AS \"of.metric\" "
	"FROM verdicts v LEFT JOIN cases c ON c.id = v.case_id "
	"LEFT JOIN results z ON z.id = v.result "
	"LEFT JOIN cases o ON o.id = z.case_id WHERE v.run = ? ORDER BY v.id";
static const char slot_sql[] =
	"SELECT encoding, opcode, form, mnemonic, verdict, signature, reason, "
	"expected, oracle, emulated_ok, difference, errata FROM slot_verdicts "
	"WHERE run = ? ORDER BY encoding, opcode, form";
static const char baseline_sql[] =
	"SELECT r.uuid, r.created_ns, r.state, r.reason, r.replaces, r.run, "
	"r.start_ns, r.tool, r.inputs, r.conditions, "
	"c.area AS \"case.area\", c.name AS \"case.name\", "
	"c.params AS \"case.params\", "
	"r.metric, r.unit, r.value, r.lo, r.hi, r.n, r.clock_hz, r.better, "
	"r.origin, r.source, r.correct, r.coherent, r.samples, r.processes, "
	"r.loss_limit, r.required, " FACT_COLUMNS
	" FROM baselines r " FACT_TABLES "JOIN cases c ON c.id = r.case_id "
	"WHERE ? = 0 ORDER BY r.created_ns, r.uuid";
static const char note_sql[] =
	"SELECT uuid, created_ns, hypothesis, about, expected, measured, "
	"status, git_commit, patch, remark, replaces FROM notes WHERE ? = 0 "
	"ORDER BY created_ns, uuid";

static const char calibration_sql[] =
	"SELECT r.uuid, r.created_ns, r.kind, r.area, r.condition, "
	"r.processes, r.side, r.measures, r.alpha, r.trials, r.false_alarms, "
	"r.serial, r.serial_false, r.detectable, r.spread, r.drift, "
	"r.planted, r.planted_trials, r.planted_found, r.planted_passed, "
	FACT_COLUMNS " FROM calibrations r JOIN hosts h ON h.id = r.host "
	"JOIN builds b ON b.id = r.build LEFT JOIN devices d ON 0 "
	"WHERE ? = 0 ORDER BY r.created_ns, r.uuid";

static const char experiment_sql[] =
	"SELECT r.uuid, r.created_ns, r.evaluator, r.base, r.processes, "
	"r.kind, r.what, r.content, r.hypothesis, r.verdict, r.reason, "
	"r.measured, r.gain, r.lo, r.hi, r.p, "
	FACT_COLUMNS " FROM experiments r JOIN hosts h ON h.id = r.host "
	"JOIN builds b ON b.id = r.build LEFT JOIN devices d ON 0 "
	"WHERE ? = 0 ORDER BY r.created_ns, r.uuid";

/* Checks go first: what they prove decides which decision a merge keeps. */
static const char check_sql[] =
	"SELECT r.uuid AS run, c.target, c.op, c.config, c.object, c.class, "
	"c.verdict, c.worst, c.compared, c.seed, c.detail FROM tune_checks c "
	"LEFT JOIN runs r ON r.id = c.run WHERE ? = 0 ORDER BY c.target, c.op, "
	"c.object, c.class, c.config, c.verdict, c.seed, c.worst, c.compared, "
	"c.detail, r.uuid";
static const char tune_sql[] =
	"SELECT r.uuid AS run, t.target, t.op, t.m, t.n, t.k, t.batch, "
	"t.caches, t.origin, t.operands, t.costs, t.code, t.config, t.state, "
	"t.reason, t.bound_s, t.time_s, t.lo_s, t.hi_s, t.samples, t.clock_hz, "
	"t.limits, t.object, w.second AS \"winner.second\", "
	"w.class AS \"winner.class\", w.budget AS \"winner.budget\", "
	"w.candidates AS \"winner.candidates\", "
	"w.chosen_ns AS \"winner.chosen_ns\" FROM tunes t "
	"LEFT JOIN runs r ON r.id = t.run LEFT JOIN tune_winners w "
	"ON w.tune = t.id WHERE ? = 0 ORDER BY t.target, t.op, t.m, t.n, t.k, "
	"t.batch, t.caches, t.origin, t.operands, t.costs, t.code, t.config";

static bool put_run(struct exporter *x, int64_t run)
{
	return put_rows(x, "run", run_sql, run) && put_results(x, run) &&
	       put_rows(x, "verdict", verdict_sql, run) &&
	       put_rows(x, "slot", slot_sql, run);
}

static bool put_all(struct exporter *x)
{
	bool ok;

	buf_printf(&x->line, "{\"t0\":{\"export\":1,\"schema\":%d}}",
		   res_schema_version());
	if (!put_line(x))
		return false;
	sqlite3_stmt *st = res_stmt(x->db, x->e,
		"SELECT id FROM runs ORDER BY start_ns, uuid", "");
	if (!st)
		return false;
	while (res_step(x->db, st, &ok, x->e))
		if (!(ok = put_run(x, sqlite3_column_int64(st, 0))))
			break;
	res_stmt_done(st);
	return ok && put_rows(x, "baseline", baseline_sql, 0) &&
	       put_rows(x, "note", note_sql, 0) &&
	       put_rows(x, "calibration", calibration_sql, 0) &&
	       put_rows(x, "experiment", experiment_sql, 0) &&
	       put_rows(x, "check", check_sql, 0) &&
	       put_rows(x, "tune", tune_sql, 0);
}

bool res_export(struct res_db *db, bool anonymous,
		bool (*put)(void *ctx, const char *line, size_t len,
			    struct err *e),
		void *ctx, struct err *e)
{
	struct exporter x = { .db = db, .anonymous = anonymous, .put = put,
			      .ctx = ctx, .e = e };

	find_names(&x);
	/* One snapshot: a tool may be writing meanwhile. */
	if (!res_exec(db, e, "SAVEPOINT export", ""))
		return false;
	bool ok = put_all(&x);
	buf_fini(&x.line);
	return res_exec(db, ok ? e : NULL, "RELEASE export", "") && ok;
}

static bool put_to_file(void *ctx, const char *line, size_t len, struct err *e)
{
	FILE *out = ctx;

	return (fwrite(line, 1, len, out) == len && fputc('\n', out) != EOF) ||
	       err_set(e, ERR_IO, "export: cannot write");
}

bool res_cmd_export(struct cmd *c, struct err *e)
{
	const struct show *s = (struct show *)c;

	return res_export(s->db, s->o.anonymous, put_to_file, c->out, e);
}
