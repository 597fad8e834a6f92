/*
 * compiler/cost/cost_db.c - costs from t0.db laid over the defaults, and the
 * list of all of them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cost/cost.h"
#include "results/db/results.h"

/* Columns of the query below. */
enum { C_NAME, C_METRIC, C_UNIT, C_VALUE, C_LO, C_HI, C_N, C_CLOCK, C_ORIGIN,
       C_SOURCE, C_RUN, C_AGE };

/* Ascending by trust and time, so that what comes later may overwrite. */
static const char query[] =
	"SELECT name, metric, unit, value, lo, hi, n, clock_hz, origin, "
	"source, run, (?2 - start_ns) / 86400e9 FROM v_results "
	"WHERE area = 'cost' AND params = '{}' AND state = 'complete' "
	"AND (gfx = ?1 OR (gfx IS NULL AND origin = 'published' AND "
	"?1 = '" COST_CHIP "')) "
	"AND (origin = 'published' OR (?3 AND origin = 'hardware')) "
	"AND metric IN ('value', 'latency', 'interval') "
	"AND (correct IS NULL OR correct = 'pass') "
	"ORDER BY origin = 'hardware', start_ns, run, result";

static double parse_real(const char *s)
{
	return s ? strtod(s, NULL) : NAN;
}

static struct cost_value value_of(struct cost_model *m, const char **c)
{
	struct cost_value v = {
		.value = parse_real(c[C_VALUE]),
		.origin = strcmp(c[C_ORIGIN], "hardware") ? COST_PUBLISHED :
							    COST_HARDWARE,
		.age_days = parse_real(c[C_AGE]),
		.clock_hz = parse_real(c[C_CLOCK]),
		.n = c[C_N] ? strtoll(c[C_N], NULL, 10) : 0,
		.run = strtoll(c[C_RUN], NULL, 10),
	};

	v.spread =
		(parse_real(c[C_HI]) - parse_real(c[C_LO])) / 2 / fabs(v.value);
	v.source = c[C_SOURCE] ? arena_strdup(&m->mem, c[C_SOURCE])
			       : arena_printf(&m->mem, "run %s", c[C_RUN]);
	return v;
}

static bool take_op(struct cost_model *m, const char **c)
{
	enum isa_op op = isa_op_find(c[C_NAME]);
	struct cost_op *o = &m->op[op];
	bool latency = !strcmp(c[C_METRIC], "latency");

	if (op == ISA_OP_NONE || strcmp(c[C_UNIT], "cycle"))
		return false;
	m->n_ops += !o->has_latency && !o->has_issue;
	*(latency ? &o->latency : &o->issue) = value_of(m, c);
	*(latency ? &o->has_latency : &o->has_issue) = true;
	return true;
}

/* A rate of 0 would stop the machine; latencies of 0 are fine. */
static bool take_row(struct cost_model *m, const char **c)
{
	double v = parse_real(c[C_VALUE]);

	if (!(v >= 0) || isinf(v))
		return false;
	if (strcmp(c[C_METRIC], "value"))
		return take_op(m, c);
	enum cost_row row = cost_row_find(c[C_NAME]);
	if (row == COST_ROW_COUNT ||
	    strcmp(c[C_UNIT], cost_row_info(row)->unit) ||
	    (row >= COST_CLOCK && !v))
		return false;
	m->row[row] = value_of(m, c);
	return true;
}

/* --------------------------------------------------- what a chip lacks -- */

static const char lacking[] =
	"SELECT mnemonic, verdict, encoding, form, difference, run, "
	"device_name FROM v_latest_slots WHERE gfx = ? AND origin = 'hardware' "
	"AND mnemonic IS NOT NULL AND (verdict IN('illegal', 'faults', "
	"'hangs') OR emulated_ok = 0) ORDER BY run, encoding, opcode, form";

static void take_lacking(struct cost_model *m, const char **c)
{
	static const char dual[] = "v_dual_";
	size_t len = strncmp(c[0], dual, sizeof(dual) - 1) ? 0 :
							     sizeof(dual) - 1;
	struct buf name = { 0 };

	buf_printf(&name, "%s%s", len ? "v_" : "", c[0] + len);
	int op = isa_op_find(name.data);
	buf_fini(&name);
	if (op == ISA_OP_NONE)
		return;
	op += len ? ISA_OP_COUNT : 0;
	if (!m->lacks)
		m->lacks = arena_alloc(&m->mem, 2 * ISA_OP_COUNT *
				       sizeof(*m->lacks));
	m->n_lacks += !m->lacks[op];
	m->lacks[op] = arena_printf(&m->mem, "%s as %s%s%s on %s (discovery, "
				    "run %s)", strcmp(c[1], "executes") ? c[1] :
				    "computes something else", c[2],
				    *c[3] ? " " : "", c[3], c[6], c[5]);
}

static bool load_lacking(struct cost_model *m, struct res_db *db, struct err *e)
{
	struct table t;

	table_init(&t, "mnemonic,verdict,encoding,form,difference,run,device");
	bool ok = res_query(db, &t, 0, e, lacking, "t", m->chip);
	for (int i = 0; ok && i < t.n_rows; i++)
		take_lacking(m, t.row[i]);
	table_fini(&t);
	return ok;
}

bool cost_open(struct cost_model *m, const char *chip, const char *path,
	       bool writes, enum cost_origin most, const struct cli_list *set,
	       struct err *e)
{
	bool there = access(res_path(path), F_OK) == 0 || errno != ENOENT;
	bool read = most > COST_DEFAULT && (there || (path && !writes));
	struct res_db *db = NULL;

	cost_init(m, chip);
	bool ok = !read || (db = res_open(path, RES_READ, e));
	ok = ok && (!db || cost_load(m, db, most, e));
	res_close(db);
	return ok && (!set || cost_set_list(m, set, e));
}

bool cost_load(struct cost_model *m, struct res_db *db, enum cost_origin most,
	       struct err *e)
{
	struct table t;

	if (most == COST_DEFAULT)
		return true;
	if (most == COST_HARDWARE && !load_lacking(m, db, e))
		return false;
	table_init(&t, "name,metric,unit,value,lo,hi,n,clock,origin,source,"
		       "run,age");
	bool ok = res_query(db, &t, 0, e, query, "tii", m->chip,
			    (int64_t)time_wall_ns(),
			    (int64_t)(most == COST_HARDWARE));
	for (int i = 0; ok && i < t.n_rows; i++)
		m->n_ignored += !take_row(m, t.row[i]);
	table_fini(&t);
	return ok || err_wrap(e, "costs of %s", m->chip);
}

/* In as many digits as read back as the same number. */
static void list_number(struct table *t, int column, double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", v);
	table_cell(t, column, "%.*g", strtod(text, NULL) == v ? 6 : 17, v);
}

static void list_value(struct table *t, const struct cost_value *v)
{
	list_number(t, 1, v->value);
	table_cell(t, 3, "%s", cost_origin_name(v->origin));
	if (v->run)
		table_cell(t, 4, "%.1f", v->age_days);
	if (!isnan(v->spread))
		table_cell(t, 5, "%.4g", v->spread);
	if (v->n)
		table_cell(t, 6, "%lld", (long long)v->n);
	table_cell(t, 9, "%s", v->source);
}

static void list_op(struct table *t, enum isa_op op, const char *metric,
		    const struct cost_value *v)
{
	table_row(t);
	table_cell(t, 0, "%s.%s", isa_op_info(op)->name, metric);
	table_cell(t, 2, "cycle");
	list_value(t, v);
}

/* What it was fitted on, between commas. */
static void list_fit(struct table *t, const struct cost_fit *fit)
{
	struct buf on = { 0 };

	for (const char *p = fit->on; *p; p++)
		buf_adds(&on, *p == '|' ? ", " : (char[]){ *p, '\0' });
	table_cell(t, 10, "%s", on.data);
	buf_fini(&on);
}

void cost_list(const struct cost_model *m, struct table *t)
{
	for (int i = 0; i < COST_ROW_COUNT; i++) {
		const struct cost_row_info *row = cost_row_info(i);
		const struct cost_fit *fit = cost_fit_find(i);

		table_row(t);
		table_cell(t, 0, "%s", row->name);
		table_cell(t, 2, "%s", row->unit);
		list_value(t, &m->row[i]);
		table_cell(t, 7, "%c", m->base[i].confidence);
		list_number(t, 8, m->base[i].value);
		if (fit)
			list_fit(t, fit);
	}
	for (int op = 0; op < ISA_OP_COUNT; op++) {
		if (m->op[op].has_latency)
			list_op(t, op, "latency", &m->op[op].latency);
		if (m->op[op].has_issue)
			list_op(t, op, "issue", &m->op[op].issue);
	}
}

void cost_list_changed(const struct cost_model *m, struct table *t)
{
	struct table all;

	table_init(&all, COST_COLUMNS);
	cost_list(m, &all);
	for (int i = 0; i < all.n_rows; i++) {
		if (i < COST_ROW_COUNT &&
		    m->row[i].value == m->base[i].value)
			continue;
		table_row(t);
		for (int c = 0; c < all.n_cols; c++)
			if (all.row[i][c])
				table_cell(t, c, "%s", all.row[i][c]);
	}
	table_fini(&all);
	for (int op = 0; m->n_lacks && op < 2 * ISA_OP_COUNT; op++) {
		if (!m->lacks[op])
			continue;
		table_row(t);
		table_cell(t, 0, "%s%s", isa_op_info(op % ISA_OP_COUNT)->name,
			   op < ISA_OP_COUNT ? "" : " (dual)");
		table_cell(t, 3, "%s", cost_origin_name(COST_HARDWARE));
		table_cell(t, 9, "lacking: %s", m->lacks[op]);
	}
}
