/*
 * results/cmd/cmd_show.c - t0-results list and show.
 */
#include "results/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

static bool is_for_people(const struct show *s)
{
	return s->cmd.format == TABLE_TEXT || s->cmd.format == TABLE_MARKDOWN;
}

/* "phase=decode tokens=16" of {"phase":"decode","tokens":16}. */
static const char *readable_params(struct table *t, const char *json)
{
	const struct piece p = { .params = (char *)json,
				 .name = "",
				 .area = "" };
	struct buf text = { 0 };

	piece_title(&p, &text);
	const char *out =
		arena_strdup(&t->mem, text.data + strspn(text.data, "/ "));

	buf_fini(&text);
	return out;
}

bool show_table(struct show *s, struct table *t, struct err *e)
{
	for (int i = 0; is_for_people(s) && i < t->n_cols; i++)
		for (int r = 0; r < t->n_rows && !strcmp(t->head[i], "params");
		     r++)
			if (t->row[r][i])
				t->row[r][i] = readable_params(t, t->row[r][i]);
	return cmd_table(&s->cmd, t, e);
}

bool show_query(struct show *s, const char *columns, const char *sql,
		struct err *e)
{
	struct table t;

	table_init(&t, columns);
	bool ok = res_query(s->db, &t, show_digits(s), e, sql, "") &&
		  show_table(s, &t, e);
	table_fini(&t);
	return ok;
}

/* ---- list ---- */

bool res_cmd_list(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct table t;

	table_init(&t, "#run,started,tool,device,origin,state,#cases,#slots,"
		       "#pass,#fail,#open");
	bool ok = res_query(s->db, &t, show_digits(s), e,
			    "SELECT run, started, tool, device_name, origin, "
			    SHOW_STATE ", cases, slots, passed, failed, "
			    "undecided FROM v_runs ORDER BY run", "");
	if (ok && !t.n_rows)
		cmd_remark(c, "%s holds no runs yet", res_db_path(s->db));
	ok = ok && cmd_table(&s->cmd, &t, e);
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
bool show_find_run(struct res_db *db, const char *name, int64_t *run,
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
	"printf('0x%016x', seed), started, duration_s, "
	SHOW_STATE ", exit_code, "
	"reason, device_name, gfx, uid, pci, driver, firmware, origin, "
	"cu_count, vram_bytes, machine, cpu, kernel, cores, host_mem_bytes, "
	"version, git_commit, dirty, compiler, flags, binary "
	"FROM v_runs WHERE run = ?";

static const char result_columns[] =
	"area,case,params,metric,~value,unit,~lo,~hi,#n,#outliers,#clock_hz,"
	"better,origin,source,correct";
static const char result_sql[] =
	"SELECT area, name, params, metric, value, unit, lo, hi, n, "
	"(SELECT t0_outliers(value) FROM samples s WHERE s.result = v.result), "
	"clock_hz, better, origin, source, correct FROM v_results v "
	"WHERE run = ? "
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

static bool load_table(struct show *s, struct table *t, const char *columns,
		 const char *sql, int64_t run, struct err *e)
{
	table_init(t, columns);
	return res_query(s->db, t, show_digits(s), e, sql, "i", run);
}

static void add_fact(struct table *t, const char *name, const char *value)
{
	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", value);
}

/* "vram  24 GiB" of "vram_bytes  25769803776", and JSON as KEY=VALUE. */
static void add_readable(struct table *t, const char *name, const char *value)
{
	static const struct {
		const char *suffix, *unit;
	} units[] = { { "_bytes", "B" }, { "_s", "s" } };
	const size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const size_t n = strlen(units[i].suffix);
		struct buf text = { 0 };

		if (len < n || strcmp(name + len - n, units[i].suffix))
			continue;
		unit_print(&text, atof(value), units[i].unit);
		add_fact(t, name, text.data);
		t->row[t->n_rows - 1][0] =
			arena_printf(&t->mem, "%.*s", (int)(len - n), name);
		buf_fini(&text);
		return;
	}
	add_fact(t, name, *value == '{' ? readable_params(t, value) : value);
}

/* The one row stood on its side, without the facts that nobody knows. */
bool show_facts(struct show *s, const struct table *row, struct err *e)
{
	struct table t;

	table_init(&t, "fact,value");
	for (int c = 0; c < row->n_cols; c++) {
		const char *v = row->row[0][c];
		if (!v || !*v)
			continue;
		if (is_for_people(s))
			add_readable(&t, row->head[c], v);
		else
			add_fact(&t, row->head[c], v);
	}
	bool ok = table_print(&t, s->cmd.format, s->cmd.out, e);
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
		fprintf(s->cmd.out, "{\"run\": %.*s", (int)(to + 1 - from),
			from);
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
	bool ok = load_table(s, &t, c->columns, c->sql, run, e);

	if (ok && s->cmd.format == TABLE_JSON) {
		fprintf(s->cmd.out, ",\n\"%s\": ", c->key);
		ok = table_print(&t, TABLE_JSON, s->cmd.out, e);
	} else if (ok && t.n_rows) {
		fprintf(s->cmd.out, "\n");
		ok = show_table(s, &t, e);
	}
	table_fini(&t);
	return ok;
}

static bool show_all(struct show *s, int64_t run, struct err *e)
{
	struct table t;
	bool json = s->cmd.format == TABLE_JSON;
	bool ok = load_table(s, &t, run_columns, run_sql, run, e);

	ok = ok && (json ? print_object(s, &t, e) : show_facts(s, &t, e));
	table_fini(&t);
	for (size_t i = 0; ok && i < ARRAY_SIZE(sections); i++)
		if (s->o.slots || !sections[i].every_slot)
			ok = print_section(s, &sections[i], run, e);
	if (ok && json)
		fprintf(s->cmd.out, "}\n");
	return ok;
}

/* A CSV file is one table: the slots, or results, or else the summary. */
static bool show_csv(struct show *s, int64_t run, struct err *e)
{
	struct table t;
	bool ok = s->o.slots ?
			  load_table(s, &t, slot_columns, slot_sql, run, e) :
			  load_table(s, &t, result_columns, result_sql, run, e);

	if (ok && !s->o.slots && !t.n_rows) {
		table_fini(&t);
		ok = load_table(s, &t, summary_columns, summary_sql, run, e);
	}
	ok = ok && table_print(&t, TABLE_CSV, s->cmd.out, e);
	table_fini(&t);
	return ok;
}

bool res_cmd_show(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	const char *name = c->argc ? c->argv[0] : "last";
	int64_t run;

	if (!show_find_run(s->db, name, &run, e))
		return false;
	return s->cmd.format == TABLE_CSV ? show_csv(s, run, e) :
					show_all(s, run, e);
}
