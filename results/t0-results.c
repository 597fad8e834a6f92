/* t0-results - what has been measured: lists runs, shows one. */
#include <stdlib.h>
#include <string.h>

#include "results/results.h"

struct show {
	struct res_db *db;
	enum table_format format;
	FILE *out;
	bool slots; /* list every slot, not only counts */
	bool quiet;
};

/* A running run whose process is gone was killed: it is interrupted. */
#define STATE \
	"CASE WHEN state = 'running' AND NOT t0_alive(owner) " \
	"THEN 'interrupted' ELSE state END"

/* A table for the reader, or every digit for a program. */
static int digits(const struct show *s)
{
	return s->format == TABLE_TEXT ? 6 : 0;
}

/* ---- list ---- */

static bool list_runs(struct show *s, struct err *e)
{
	struct table t;

	table_init(&t, "#run,started,tool,device,origin,state,#cases,#slots,"
		       "#pass,#fail,#open");
	bool ok = res_query(s->db, &t, digits(s), e,
			    "SELECT run, started, tool, device_name, origin, "
			    STATE ", cases, slots, passed, failed, undecided "
			    "FROM v_runs ORDER BY run", "");
	if (ok && !t.n_rows && !s->quiet)
		fprintf(stderr, "t0-results: %s holds no runs yet\n",
			res_db_path(s->db));
	ok = ok && table_print(&t, s->format, s->out, e);
	table_fini(&t);
	return ok;
}

/* ---- show ---- */

/* The newest runs' ids, for a message. */
static bool known_runs(struct res_db *db, struct buf *b, struct err *e)
{
	struct table t;

	table_init(&t, "#run");
	bool ok = res_query(db, &t, 0, e, "SELECT run FROM (SELECT run FROM "
			    "v_runs ORDER BY run DESC LIMIT 10) ORDER BY run",
			    "");
	for (int i = 0; ok && i < t.n_rows; i++)
		buf_printf(b, "%s%s", i ? ", " : "", t.row[i][0]);
	table_fini(&t);
	return ok;
}

static bool no_such_run(struct res_db *db, const char *name, struct err *e)
{
	struct buf b = { 0 };

	if (known_runs(db, &b, e))
		err_set(e, ERR_INPUT, "%s: there is no run %s; %s%s",
			res_db_path(db), name,
			b.len ? "the newest are " : "it holds no runs yet",
			b.len ? b.data : "");
	buf_fini(&b);
	return false;
}

/* A run's id, or "last". */
static bool find_run(struct res_db *db, const char *name, int64_t *run,
		     struct err *e)
{
	uint64_t n = 0;
	bool last = !strcmp(name, "last");

	if (!last && !cli_u64(name, &n, e))
		return err_wrap(e, "run (its number, or \"last\")");
	bool ok = last ? res_query_int(db, run, e, "SELECT max(id) FROM runs",
				       "") :
			 res_query_int(db, run, e,
				       "SELECT id FROM runs WHERE id = ?", "i",
				       (int64_t)n);
	return ok && (*run || no_such_run(db, name, e));
}

static const char run_columns[] =
	"#run,uuid,tool,command,inputs,conditions,seed,started,#duration_s,"
	"state,#exit_code,reason,device,gfx,uid,pci,driver,firmware,origin,"
	"#cu_count,#vram_bytes,machine,cpu,kernel,#cores,#host_mem_bytes,"
	"version,commit,#dirty,compiler,flags,binary";
static const char run_sql[] =
	"SELECT run, uuid, tool, argv, inputs, conditions, "
	"printf('0x%016x', seed), started, duration_s, " STATE ", exit_code, "
	"reason, device_name, gfx, uid, pci, driver, firmware, origin, "
	"cu_count, vram_bytes, machine, cpu, kernel, cores, host_mem_bytes, "
	"version, git_commit, dirty, compiler, flags, binary "
	"FROM v_runs WHERE run = ?";

static const char result_columns[] =
	"area,case,params,metric,#value,unit,#lo,#hi,#n,#clock_hz,better,"
	"origin,source,correct";
static const char result_sql[] =
	"SELECT area, name, params, metric, value, unit, lo, hi, n, clock_hz, "
	"better, origin, source, correct FROM v_results WHERE run = ? "
	"ORDER BY area, name, params, metric";

static const char verdict_columns[] =
	"kind,verdict,area,case,params,metric,reason";
static const char verdict_sql[] =
	"SELECT kind, verdict, area, name, params, metric, reason "
	"FROM v_verdicts WHERE run = ? ORDER BY verdict_id";

static const char summary_columns[] =
	"encoding,#slots,#executes,#illegal,#faults,#hangs,#unproven,"
	"#differences";
static const char summary_sql[] =
	"SELECT encoding, slots, executes, illegal, faults, hangs, unproven, "
	"differences FROM v_slot_summary WHERE run = ?1 "
	"UNION ALL SELECT 'total', sum(slots), sum(executes), sum(illegal), "
	"sum(faults), sum(hangs), sum(unproven), sum(differences) "
	"FROM v_slot_summary WHERE run = ?1 HAVING count(*) > 0";

static const char slot_columns[] =
	"encoding,#opcode,form,mnemonic,verdict,signature,reason,expected,"
	"oracle,#emulated_ok,difference,errata";
static const char slot_sql[] =
	"SELECT encoding, opcode, form, mnemonic, verdict, signature, reason, "
	"expected, oracle, emulated_ok, difference, errata FROM v_slots "
	"WHERE run = ? ORDER BY encoding, opcode, form";

static bool load(struct show *s, struct table *t, const char *columns,
		 const char *sql, int64_t run, struct err *e)
{
	table_init(t, columns);
	return res_query(s->db, t, digits(s), e, sql, "i", run);
}

/* The one row stood on its side, without the facts that nobody knows. */
static bool print_facts(struct show *s, const struct table *row, struct err *e)
{
	struct table t;

	table_init(&t, "fact,value");
	for (int c = 0; c < row->n_cols; c++) {
		const char *v = row->row[0][c];
		if (!v || !*v)
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", row->head[c]);
		table_cell(&t, 1, "%s", v);
	}
	bool ok = table_print(&t, TABLE_TEXT, s->out, e);
	table_fini(&t);
	return ok;
}

/* A JSON array of one object, as that object. */
static bool print_object(struct show *s, const struct table *row,
			 struct err *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *mem = open_memstream(&text, &len);

	if (!mem)
		return err_set(e, ERR_NOMEM, "no memory for JSON");
	bool ok = table_print(row, TABLE_JSON, mem, e);
	fclose(mem);
	char *from = ok ? strchr(text, '{') : NULL;
	char *to = ok ? strrchr(text, '}') : NULL;
	if (from && to)
		fprintf(s->out, "{\"run\": %.*s", (int)(to + 1 - from), from);
	free(text);
	return ok;
}

static const struct section {
	const char *key;
	const char *columns, *sql;
	bool every_slot; /* only with --slots */
} sections[] = {
	{ "results", result_columns, result_sql, false },
	{ "verdicts", verdict_columns, verdict_sql, false },
	{ "slot_summary", summary_columns, summary_sql, false },
	{ "slots", slot_columns, slot_sql, true },
};

static bool print_section(struct show *s, const struct section *c,
			  int64_t run, struct err *e)
{
	struct table t;
	bool ok = load(s, &t, c->columns, c->sql, run, e);

	if (ok && s->format == TABLE_JSON) {
		fprintf(s->out, ",\n\"%s\": ", c->key);
		ok = table_print(&t, TABLE_JSON, s->out, e);
	} else if (ok && t.n_rows) {
		fprintf(s->out, "\n");
		ok = table_print(&t, TABLE_TEXT, s->out, e);
	}
	table_fini(&t);
	return ok;
}

static bool show_all(struct show *s, int64_t run, struct err *e)
{
	struct table t;
	bool json = s->format == TABLE_JSON;
	bool ok = load(s, &t, run_columns, run_sql, run, e);

	ok = ok && (json ? print_object(s, &t, e) : print_facts(s, &t, e));
	table_fini(&t);
	for (size_t i = 0; ok && i < ARRAY_SIZE(sections); i++)
		if (s->slots || !sections[i].every_slot)
			ok = print_section(s, &sections[i], run, e);
	if (ok && json)
		fprintf(s->out, "}\n");
	return ok;
}

/* A CSV file is one table: the slots, or results, or else the summary. */
static bool show_csv(struct show *s, int64_t run, struct err *e)
{
	struct table t;
	bool ok = s->slots ? load(s, &t, slot_columns, slot_sql, run, e) :
			     load(s, &t, result_columns, result_sql, run, e);

	if (ok && !s->slots && !t.n_rows) {
		table_fini(&t);
		ok = load(s, &t, summary_columns, summary_sql, run, e);
	}
	ok = ok && table_print(&t, TABLE_CSV, s->out, e);
	table_fini(&t);
	return ok;
}

static bool show_run(struct show *s, const char *name, struct err *e)
{
	int64_t run;

	if (!find_run(s->db, name, &run, e))
		return false;
	return s->format == TABLE_CSV ? show_csv(s, run, e) :
					show_all(s, run, e);
}

/* ---- main ---- */

struct opts {
	const char *db, *output;
	bool json, csv, slots, quiet;
};

static bool command(struct show *s, int argc, char **argv, struct err *e)
{
	if (!strcmp(argv[0], "list"))
		return list_runs(s, e);
	return show_run(s, argc > 1 ? argv[1] : "last", e);
}

static bool check_usage(const struct opts *o, int argc, char **argv,
			struct err *e)
{
	if (o->json && o->csv)
		return err_set(e, ERR_USAGE, "--json and --csv exclude each "
			       "other; name one");
	if (argc < 1)
		return err_set(e, ERR_USAGE, "no command; wanted \"list\" or "
			       "\"show RUN\" (see --help)");
	bool list = !strcmp(argv[0], "list");
	if (!list && strcmp(argv[0], "show"))
		return err_set(e, ERR_USAGE, "no command \"%s\"; wanted "
			       "\"list\" or \"show RUN\" (see --help)",
			       argv[0]);
	if (argc > (list ? 1 : 2))
		return err_set(e, ERR_USAGE, "%s: unexpected operand \"%s\"",
			       argv[0], argv[list ? 1 : 2]);
	return true;
}

/* Into memory first, so that a failure leaves the old file untouched. */
static bool run_into_file(struct show *s, const char *path, int argc,
			  char **argv, struct err *e)
{
	char *text = NULL;
	size_t len = 0;

	s->out = open_memstream(&text, &len);
	if (!s->out)
		return err_set(e, ERR_NOMEM, "no memory for the output");
	bool ok = command(s, argc, argv, e);
	fclose(s->out);
	ok = ok && file_write_atomic(path, text, len, e);
	free(text);
	return ok;
}

static bool run(const struct opts *o, int argc, char **argv, struct err *e)
{
	struct show s = {
		.format = o->json ? TABLE_JSON :
			  o->csv  ? TABLE_CSV : TABLE_TEXT,
		.out = stdout,
		.slots = o->slots,
		.quiet = o->quiet,
	};

	if (!check_usage(o, argc, argv, e))
		return false;
	s.db = res_open(o->db, RES_READ, e);
	if (!s.db)
		return false;
	bool ok = o->output ? run_into_file(&s, o->output, argc, argv, e) :
			      command(&s, argc, argv, e) && stdout_check(e);
	res_close(s.db);
	return ok;
}

int main(int argc, char **argv)
{
	struct opts o = { 0 };
	const struct cli_opt opt[] = {
		{ "db", 0, CLI_STR, &o.db, "FILE",
		  "the database (default: $T0_DB, else t0.db)" },
		{ "slots", 0, CLI_FLAG, &o.slots, NULL,
		  "show: list every opcode slot, not only counts" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "write there instead of to stdout" },
		{ "quiet", 'q', CLI_FLAG, &o.quiet, NULL,
		  "no remarks on stderr" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = "t0-results",
		.summary = "shows what has been measured",
		.usage = "list [options]\nshow [options] [RUN]",
		.opt = opt,
		.notes = "RUN is a number from `list`, or `last` (the default)."
			 "  Values are in SI\nunits.  With --csv, show prints "
			 "one table: the slots if asked for, else\nresults, "
			 "else the slot summary.\n",
	};
	struct err e = { 0 };
	int first = 0;
	bool done = false;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(tool.name, &e);
	if (done)
		return EXIT_YES;
	if (!run(&o, argc - first, argv + first, &e))
		return err_report(tool.name, &e);
	return EXIT_YES;
}
