/*
 * compiler/sim/examine/code_rows.c - published times of kernels whose code is
 * at hand: any compiler's objects, with the launch that was timed.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "isa/launch/launch.h"

enum {
	C_SOURCE,
	C_CODE,
	C_KERNEL,
	C_GRID,
	C_BLOCK,
	C_ARGUMENTS,
	C_LAUNCH,
	C_TIME,
	C_CLOCK,
	C_COUNT
};
static const char *const names[C_COUNT] = {
	"source",    "code",   "kernel",  "grid",      "block",
	"arguments", "launch", "time_us", "clock_mhz",
};

/* What stands between two launches, beside what a number says. */
static const struct launching {
	const char *name;
	enum cost_row row;
} launchings[] = {
	{ "queue", COST_LAUNCH },
	{ "sync", COST_LAUNCH_SYNC },
	{ "runtime", COST_LAUNCH_ASYNC },
};

struct reader {
	const char *path;
	struct csv csv;
	int column[C_COUNT], line;
};

static char *cell_copy(const struct reader *r, int column, struct arena *mem)
{
	return arena_strdup(mem, csv_cell(&r->csv, r->column[column]));
}

/* "" and "none": what was timed is the GPU alone. */
static bool find_launch(const struct reader *r, const struct cost_model *m,
			double *seconds, struct err *e)
{
	const char *text = csv_cell(&r->csv, r->column[C_LAUNCH]);
	char *end;

	*seconds = 0;
	if (!*text || !strcmp(text, "none"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(launchings); i++)
		if (!strcmp(text, launchings[i].name)) {
			*seconds = 1e-6 * cost_value(m, launchings[i].row);
			return true;
		}
	*seconds = 1e-6 * strtod(text, &end);
	if (end != text && !*end && *seconds >= 0)
		return true;
	return err_set(e, ERR_INPUT,
		       "launch %s: wanted none, queue, sync, "
		       "runtime, or microseconds",
		       text);
}

/* Beside the file of rows, unless its path is absolute. */
static char *find_code(const struct reader *r, struct arena *mem)
{
	const char *code = csv_cell(&r->csv, r->column[C_CODE]);
	const char *slash = strrchr(r->path, '/');

	if (*code == '/' || !slash)
		return arena_strdup(mem, code);
	return arena_printf(mem, "%.*s%s", (int)(slash + 1 - r->path), r->path,
			    code);
}

/* FILE [KERNEL] ARGUMENT...; the number of them. */
static int split_words(const struct reader *r, struct arena *mem, char **word,
		       int most)
{
	char *text = cell_copy(r, C_ARGUMENTS, mem), *save = NULL;
	int n = 0;

	word[n++] = find_code(r, mem);
	if (*csv_cell(&r->csv, r->column[C_KERNEL]))
		word[n++] = cell_copy(r, C_KERNEL, mem);
	for (char *w = strtok_r(text, " ", &save); w && n < most;
	     w = strtok_r(NULL, " ", &save))
		word[n++] = w;
	return n;
}

static bool predict_launch(struct launch_plan *l, int n, char *const *word,
			   double clock_mhz, double idle_s,
			   const struct cost_model *m, double *seconds,
			   struct err *e)
{
	struct sim_dispatch how = {
		.cost = m,
		.trips = SIM_TRIPS,
		.warmth = SIM_WARM,
		.clock_mhz = clock_mhz,
		.idle_s = idle_s,
	};
	struct sim_plan plan = { 0 };
	struct sim_forecast f;
	bool ok = launch_parse(l, n, word, e) && launch_load(l, false, e) &&
		  launch_check(l, e) && sim_plan_init(&plan, l, e);

	how.footprint_bytes = plan.buffer_bytes;
	ok = ok && sim_plan_forecast(&how, &plan, &f, e);
	if (ok) {
		*seconds = f.time_s;
		sim_forecast_fini(&f);
	}
	sim_plan_fini(&plan);
	return ok;
}

static bool run_row(const struct reader *r, const struct cost_model *m,
		    struct arena *mem, struct loop_row *row, struct err *e)
{
	struct launch_plan l = LAUNCH_DEFAULTS;
	char *word[LAUNCH_ARGS_MAX + 2];
	int n = split_words(r, mem, word, LAUNCH_ARGS_MAX + 2);
	double launch_s;
	const char *grid = cell_copy(r, C_GRID, mem);
	const char *block = cell_copy(r, C_BLOCK, mem);

	l.grid_text = *grid ? grid : NULL;
	l.block_text = *block ? block : NULL;
	row->name = arena_printf(mem, "%s %s %s",
				 csv_cell(&r->csv, r->column[C_CODE]),
				 csv_cell(&r->csv, r->column[C_KERNEL]), grid);
	snprintf(row->source, sizeof(row->source), "%s",
		 csv_cell(&r->csv, r->column[C_SOURCE]));
	row->reference =
		1e-6 * strtod(csv_cell(&r->csv, r->column[C_TIME]), NULL);
	if (!(row->reference > 0))
		return err_set(e, ERR_INPUT,
			       "time_us %s: wanted a time above 0",
			       csv_cell(&r->csv, r->column[C_TIME]));
	bool ok = find_launch(r, m, &launch_s, e) &&
		  predict_launch(
			  &l, n, word,
			  strtod(csv_cell(&r->csv, r->column[C_CLOCK]), NULL),
			  launch_s, m, &row->predicted, e);
	row->predicted += launch_s;
	launch_fini(&l);
	return ok;
}

static bool run_rows(struct reader *r, const struct cost_model *m,
		     void (*fn)(void *ctx, const struct loop_row *row),
		     void *ctx, struct err *e)
{
	for (r->line = 2; csv_next(&r->csv); r->line++) {
		struct arena mem = { 0 };
		struct loop_row row;
		bool ok = run_row(r, m, &mem, &row, e);

		if (ok)
			fn(ctx, &row);
		arena_fini(&mem);
		if (!ok)
			return err_wrap(e, "%s: row %d", r->path, r->line);
	}
	return true;
}

bool code_rows_run(const char *path, const struct cost_model *m,
		   void (*fn)(void *ctx, const struct loop_row *row), void *ctx,
		   bool *found, struct err *e)
{
	struct buf b = { 0 };
	bool ok = file_read(path, 64 << 20, &b, e);
	struct reader r = { .path = path, .csv = { .at = b.data } };

	*found = false;
	if (ok && b.len && csv_next(&r.csv)) {
		for (int k = 0; k < C_COUNT; k++)
			r.column[k] = csv_column(&r.csv, names[k]);
		*found = r.column[C_CODE] >= 0;
		if (*found && r.column[C_TIME] < 0)
			ok = err_set(e, ERR_INPUT,
				     "%s: wanted a column "
				     "time_us beside code",
				     path);
		ok = ok && (!*found || run_rows(&r, m, fn, ctx, e));
	}
	buf_fini(&b);
	return ok;
}
