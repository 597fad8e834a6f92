/*
 * probes/discover/report.c - a stored run in words.
 */
#include <string.h>

#include "probes/discover/discover.h"

#define CHANGES_MAX 50

static const char unexplained[] =
	"SELECT encoding, opcode, coalesce(mnemonic, oracle, ''), verdict, "
	"difference FROM v_slots WHERE run = ? AND difference <> '' "
	"AND errata = '' ORDER BY encoding, opcode";
static const char explained[] =
	"SELECT encoding, opcode, coalesce(mnemonic, oracle, ''), verdict, "
	"errata FROM v_slots WHERE run = ? AND difference <> '' "
	"AND errata <> '' ORDER BY encoding, opcode";
static const char lacking[] =
	"SELECT encoding, opcode, mnemonic, reason FROM v_slots "
	"WHERE run = ? AND verdict = 'unproven' AND expected <> 'decode-only' "
	"ORDER BY encoding, opcode";

#define COUNTS                                                             \
	"count(*), sum(verdict = 'executes'), sum(verdict = 'illegal'), "  \
	"sum(verdict = 'faults'), sum(verdict = 'hangs'), "                \
	"sum(verdict = 'unproven' AND expected = 'decode-only'), "         \
	"sum(verdict = 'unproven' AND expected <> 'decode-only'), "        \
	"sum(difference <> '' AND errata = ''), "                       \
	"sum(difference <> '' AND errata <> '') "                    \
	"FROM v_slots WHERE run = ?1 "
static const char counts[] = "SELECT encoding, " COUNTS "GROUP BY encoding "
			     "UNION ALL SELECT 'total', " COUNTS
			     "GROUP BY run HAVING count(DISTINCT encoding) > 1";
static const char count_columns[] =
	"encoding,#slots,#executes,#illegal,#faults,#hangs,#graphics,"
	"#unproven,#differences,#explained";

static bool print_section(struct res_db *db, int64_t run, FILE *out,
			  const char *title, const char *none,
			  const char *columns, const char *sql, struct err *e)
{
	struct table t;
	bool good;

	table_init(&t, columns);
	good = res_query(db, &t, 0, e, sql, "i", run);
	if (good && t.n_rows) {
		fprintf(out, "%s (%d)\n", title, t.n_rows);
		good = table_print(&t, TABLE_TEXT, out, e);
		fputc('\n', out);
	} else if (good && none) {
		fprintf(out, "%s\n\n", none);
	}
	table_fini(&t);
	return good;
}

static bool print_counts(struct res_db *db, int64_t run, FILE *out,
			 struct err *e)
{
	struct table t;
	bool good;

	table_init(&t, count_columns);
	good = res_query(db, &t, 0, e, counts, "i", run) &&
	       table_print(&t, TABLE_TEXT, out, e);
	fputc('\n', out);
	table_fini(&t);
	return good;
}

bool probe_report(struct res_db *db, int64_t run, FILE *out, struct err *e)
{
	return print_section(db, run, out, "Differences", "No differences.",
			     "encoding,#opcode,name,verdict,difference",
			     unexplained, e) &&
	       print_section(db, run, out,
			     "Differences that isa/tables/errata.def explains",
			     NULL, "encoding,#opcode,name,verdict,reason",
			     explained, e) &&
	       print_counts(db, run, out, e) &&
	       print_section(db, run, out, "Unproven", NULL,
			     "encoding,#opcode,name,reason", lacking, e);
}

/* ------------------------------------------------------------- changes -- */

struct changes {
	struct table t;
	int n;
};

static const char *verdict_word(const struct res_slot *s)
{
	return s ? res_slot_verdict_name(s->verdict) : "not there";
}

/* Verdict, signature, and what it disagrees with, as far as there are any. */
static void add_cell(struct table *t, int col, const struct res_slot *s)
{
	table_cell(t, col, "%s%s%s%s%s%s", verdict_word(s),
		   s && s->signature && *s->signature ? " " : "",
		   s && s->signature ? s->signature : "",
		   s && s->difference && *s->difference ? " [" : "",
		   s && s->difference ? s->difference : "",
		   s && s->difference && *s->difference ? "]" : "");
}

static bool add_change(void *ctx, const struct res_slot *was,
		       const struct res_slot *is)
{
	struct changes *c = ctx;
	const struct res_slot *any = is ? is : was;

	if (c->n++ >= CHANGES_MAX)
		return true;
	table_row(&c->t);
	table_cell(&c->t, 0, "%s", any->encoding);
	table_cell(&c->t, 1, "%lld", (long long)any->opcode);
	table_cell(&c->t, 2, "%s", any->mnemonic ? any->mnemonic : "");
	add_cell(&c->t, 3, was);
	add_cell(&c->t, 4, is);
	return true;
}

bool probe_report_changes(struct res_db *db, int64_t run, FILE *out,
			  struct err *e)
{
	struct changes c = { 0 };
	int64_t previous;
	bool good;

	if (!res_run_previous(db, run, &previous, e))
		return false;
	if (!previous) {
		fprintf(out, "Run %lld in %s is the first of its kind.\n",
			(long long)run, res_db_path(db));
		return true;
	}
	table_init(&c.t, "encoding,#opcode,name,was,is");
	struct err why = { 0 };
	good = res_slot_diff(db, previous, run, add_change, &c, &why);
	if (why.code == ERR_UNSUPPORTED) /* no fault of this run */
		fprintf(out, "%s\n", why.msg);
	else if (!good)
		*e = why;
	else
		fprintf(out, "Since run %lld %s\n", (long long)previous,
			c.n ? "these slots changed:" : "nothing changed.");
	if (good && c.n)
		good = table_print(&c.t, TABLE_TEXT, out, e);
	if (good && c.n > CHANGES_MAX)
		fprintf(out, "and %d more\n", c.n - CHANGES_MAX);
	table_fini(&c.t);
	return good || why.code == ERR_UNSUPPORTED;
}

bool probe_report_slots(struct res_db *db, int64_t run, enum table_format f,
			FILE *out, struct err *e)
{
	struct table t;
	bool good;

	table_init(&t, "encoding,#opcode,name,verdict,signature,reason,"
		       "expected,oracle,#emulated_ok,difference,errata");
	good = res_query(db, &t, 0, e,
			 "SELECT encoding, opcode, mnemonic, verdict, "
			 "signature, reason, expected, oracle, emulated_ok, "
			 "difference, errata FROM v_slots WHERE run = ? "
			 "ORDER BY encoding, opcode", "i", run) &&
	       table_print(&t, f, out, e);
	table_fini(&t);
	return good;
}
