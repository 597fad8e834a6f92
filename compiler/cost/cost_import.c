/*
 * compiler/cost/cost_import.c - published costs from a CSV file into t0.db, as
 * results of area "cost" with origin `published`.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "results/db/results.h"

/* Columns of either form of file; -1: not there. */
struct columns {
	int name, value, unit, source; /* rows of cost.def by name */
	int class, latency, issue;     /* cost_import.def */
};

static const struct {
	const char *class, *row;
	bool issue;
	double added;
} mapped[] = {
#define L false
#define I true
#define COLUMN(class, row, column, added) { #class, row, column, added },
#include "compiler/cost/cost_import.def"
#undef L
#undef I
};

/*
 * "5", "32-34", "75-120 (uncalibrated)": the middle, and both ends.  What is no
 * number of cycles ("+4..+8", "64 B/clk/CU", "-") is none.
 */
static bool parse_value(const char *text, double *lo, double *hi)
{
	char *end;

	*lo = *hi = strtod(text, &end);
	if (end == text || *text == '+' || *text == '-')
		return false;
	if (*end == '-') {
		char *from = end + 1;

		*hi = strtod(from, &end);
		if (end == from)
			return false;
	}
	end += strspn(end, " ");
	return (!*end || *end == '(') && *lo >= 0 && *hi >= *lo;
}

struct target {
	struct res_db *db;
	int64_t run;
	struct cost_import *out;
	struct err *e;
};

static bool store_cost(const struct target *t, enum cost_row row, double lo,
		       double hi, const char *source)
{
	const struct cost_row_info *info = cost_row_info(row);
	struct res_result r = {
		.run = t->run, .metric = "value", .unit = info->unit,
		.value = (lo + hi) / 2, .lo = lo, .hi = hi, .n = 1,
		.clock_hz = NAN, .better = RES_NEITHER,
		.origin = RES_PUBLISHED, .source = source,
	};

	if (t->out->seen[row]) {
		t->out->skipped++;
		return true;
	}
	t->out->seen[row] = true;
	t->out->taken++;
	return res_case_id(t->db, "cost", info->name, NULL, &r.case_id, t->e) &&
	       res_result_add(t->db, &r, NULL, t->e);
}

static bool take_named(const struct target *t, const struct csv *c,
		       const struct columns *k)
{
	enum cost_row row = cost_row_find(csv_cell(c, k->name));
	const char *unit = csv_cell(c, k->unit);
	double lo, hi;

	if (row == COST_ROW_COUNT ||
	    !parse_value(csv_cell(c, k->value), &lo, &hi) ||
	    strcmp(unit, cost_row_info(row)->unit)) {
		t->out->skipped++;
		return true;
	}
	return store_cost(t, row, lo, hi, csv_cell(c, k->source));
}

static bool take_class(const struct target *t, const struct csv *c,
		       const struct columns *k)
{
	const char *class = csv_cell(c, k->class);
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(mapped); i++) {
		double lo, hi;

		if (strcmp(mapped[i].class, class) ||
		    !parse_value(csv_cell(c, mapped[i].issue ? k->issue
							     : k->latency),
				 &lo, &hi))
			continue;
		any = true;
		if (!store_cost(t, cost_row_find(mapped[i].row),
				lo + mapped[i].added, hi + mapped[i].added,
				csv_cell(c, k->source)))
			return false;
	}
	t->out->skipped += !any;
	return true;
}

static bool take_all(const struct target *t, struct csv *c, const char *path)
{
	const struct columns k = {
		.name = csv_column(c, "name"), .value = csv_column(c, "value"),
		.unit = csv_column(c, "unit"),
		.source = csv_column(c, "source"),
		.class = csv_column(c, "instruction_class"),
		.latency = csv_column(c, "latency_cycles"),
		.issue = csv_column(c, "issue_cycles"),
	};
	bool named = k.name >= 0 && k.value >= 0 && k.unit >= 0;

	if (k.source < 0 || (!named && k.class < 0))
		return err_set(t->e, ERR_INPUT, "%s: wanted columns name, "
			       "value, unit, source, or instruction_class, "
			       "latency_cycles, issue_cycles, source", path);
	while (csv_next(c))
		if (*csv_cell(c, k.source) &&
		    !(named ? take_named(t, c, &k) : take_class(t, c, &k)))
			return false;
	return true;
}

/* What is published of gfx1100 is on no device; else the chip is one. */
static bool name_device(struct target *t, const char *chip, int64_t *device)
{
	const struct res_device row = { .name = chip, .gfx = chip,
					.driver = "published",
					.origin = RES_PUBLISHED };

	return !chip || !strcmp(chip, COST_CHIP) ||
	       res_device_id(t->db, &row, device, t->e);
}

static bool into_run(struct target *t, struct csv *c, const char *path,
		     const char *chip)
{
	struct res_start start = { .tool = "t0-sim import" };

	if (!res_host_self(t->db, &start.host, t->e) ||
	    !res_build_self(t->db, &start.build, t->e) ||
	    !name_device(t, chip, &start.device) ||
	    !res_run_begin(t->db, &start, &t->run, t->e))
		return false;
	res_batch_begin(t->db);
	return take_all(t, c, path) && res_batch_end(t->db, t->e) &&
	       res_run_finish(t->db, t->run, RES_COMPLETE, 0, NULL, t->e);
}

bool cost_import(struct res_db *db, const char *path, const char *chip,
		 struct cost_import *out, struct err *e)
{
	struct target t = { .db = db, .out = out, .e = e };
	struct buf b = { 0 };
	struct csv c = { 0 };

	memset(out, 0, sizeof(*out));
	bool ok = file_read(path, 16 << 20, &b, e);
	c.at = b.data;
	ok = ok && (csv_next(&c) ||
		    err_set(e, ERR_INPUT, "%s: is empty", path)) &&
	     into_run(&t, &c, path, chip);
	buf_fini(&b);
	return ok;
}
