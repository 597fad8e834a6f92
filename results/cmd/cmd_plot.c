/*
 * results/cmd/cmd_plot.c - pictures from the database alone, drawn by gnuplot.
 *
 * Each plot becomes NAME.gp, a script with its data inside, which gnuplot turns
 * into NAME.svg, NAME.pdf and NAME.png of 200 dpi.  Nothing in it depends on time, place or the
 * order of rows in the file, so the same rows give the same bytes.
 */
#include "results/cmd/cmd.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum style { BARS, BARSLOG, STACK, DOTS, LINES2, LINESLOG, BYTES, BYTESLOG,
	     POINTS, STEPS, HEAT, DIAGONAL, ROOF, TIME, TIMELOG, RATIO };

/* What gnuplot is told of a style, but for the curves themselves. */
static const struct look {
	bool names; /* x is one of several names, not a number */
	bool apart; /* series that share an x stand beside each other */
	bool bytes; /* x counts them */
	const char *axes;
} looks[] = {
	[BARS] = { .names = true, .axes = "set yrange [0:*]\n" },
	[BARSLOG] = { .names = true,
		      .axes = "set logscale y 10\n" },
	[STACK] = { .names = true, .axes = "set yrange [0:*]\n" },
	[DOTS] = { .names = true, .apart = true,
		   .axes = "set yrange [0:*]\n" },
	[LINES2] = { .axes = "set yrange [0:*]\nset logscale x 2\n" },
	[LINESLOG] = { .axes = "set logscale xy 2\n" },
	[BYTES] = { .bytes = true,
		    .axes = "set yrange [0:*]\nset logscale x 2\n" },
	[BYTESLOG] = { .bytes = true,
		       .axes = "set logscale x 2\nset logscale y 10\n" },
	[POINTS] = { .axes = "" },
	[STEPS] = { .axes = "set logscale x 10\nset yrange [0:1]\n" },
	[HEAT] = { .names = true,
		   .axes = "set palette defined (0 '#f7fbff', 0.5 '#9ecae1', "
			   "1 '#4292c6')\nunset key\nunset grid\n" },
	[DIAGONAL] = { .axes = "set logscale xy 10\n" },
	[ROOF] = { .axes = "set logscale xy 10\n" },
	[TIME] = { .names = true, .apart = true, .axes = "" },
	[TIMELOG] = { .names = true, .apart = true,
		      .axes = "set logscale y 10\n" },
	[RATIO] = { .names = true, .apart = true, .axes = "" },
};

static const struct plot {
	const char *name;
	enum style style;
	const char *areas, *fill, *title, *x_label, *y_label, *sql;
} plots[] = {
#define PLOT(name, style, areas, fill, title, x, y, sql) \
	{ #name, style, areas, fill, title, x, y, sql },
#include "results/cmd/plots.def"
#undef PLOT
};

/* gnuplot ends by SIGALRM if it takes longer than this. */
#define GNUPLOT_SECONDS 60

/* Columns of the SELECT. */
enum { SERIES, X, Y, LOW, HIGH, LABEL };

/*
 * Figures of a paper, in 96ths of an inch: a column of 85 mm or two with their
 * gap.  The names of the curves stand below, and what is drawn in the caption.
 */
static const struct paper {
	const char *name;
	double width, height, font;
} papers[] = {
	{ "column", 321, 250, 8.5 },
	{ "page", 661, 340, 8.5 },
};

struct drawing {
	struct show *s;
	const struct paper *paper; /* NULL: for a screen */
	const struct plot *plot;
	const struct look *look;
	struct table rows;
	struct buf title, footer, script;
	double bottom; /* lines below the axis */
	const char **series; /* [n_series], as they first appear */
	const char **name;   /* [n_names], of x: bars, heat map, commits */
	int n_series, n_names;
};

/* ---- what is shown ---- */

/* The device that was measured last, or the host where there was none. */
static const char device_sql[] =
	"SELECT v.device_name, v.gfx, v.uid, v.origin, h.id, h.cpu "
	"FROM v_results v JOIN runs r ON r.id = v.run JOIN hosts h "
	"ON h.id = r.host WHERE v.area = ?1 AND v.state = 'complete' "
	"AND (?2 IS NULL OR v.origin = ?2) "
	"AND (?3 IS NULL OR v.device_name LIKE '%' || ?3 || '%' "
	"OR (?3 = 'host' AND v.device_name IS NULL)) "
	"AND (?4 IS NULL OR v.run = CAST(?4 AS INTEGER)) "
	"ORDER BY v.origin = 'published', v.start_ns DESC, v.run DESC, "
	"v.origin LIMIT 1";

/*
 * Published numbers always are beside it.  Without a device, what was measured
 * is the host's, and the rest is exact wherever it was worked out.
 */
static const char area_sql[] =
	"INSERT INTO every SELECT result, run, case_id, area, name, params, "
	"metric, unit, value, coalesce(lo, value), coalesce(hi, value), "
	"clock_hz, better, origin, source, start_ns, device_name, git_commit, "
	"dirty FROM v_results WHERE state = 'complete' AND area = ?1 "
	"AND (origin = 'published' OR (device_name IS ?2 AND gfx IS ?3 "
	"AND uid IS ?4 AND iif(?2 IS NULL, origin <> 'hardware' OR (SELECT "
	"host FROM runs WHERE id = run) = ?6, origin IS ?5) "
	"AND (?7 IS NULL OR run = CAST(?7 AS INTEGER))))";

/* Each is made anew from the one before it. */
static const struct view {
	const char *name, *sql;
} views[] = {
	{ "latest", "CREATE TEMP TABLE latest AS SELECT * FROM (SELECT *, "
		    "row_number() OVER (PARTITION BY case_id, metric, origin "
		    "ORDER BY start_ns DESC, run DESC) AS newest FROM every) "
		    "WHERE newest = 1" },
	{ "commits", "CREATE TEMP TABLE commits AS SELECT *, value / nullif("
		     "first_value(value) OVER (PARTITION BY case_id, metric, "
		     "origin ORDER BY at, start_ns), 0) AS ratio FROM (SELECT "
		     "*, substr(git_commit, 1, 8) || iif(dirty, '+', '') AS "
		     "commit_id, min(start_ns) OVER (PARTITION BY git_commit, "
		     "dirty) AS at, row_number() OVER (PARTITION BY case_id, "
		     "metric, origin, git_commit, dirty ORDER BY start_ns DESC, "
		     "run DESC) AS newest FROM every) WHERE newest = 1" },
};

static bool drop_table(struct res_db *db, const char *name, struct err *e)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS temp.%s", name);
	return res_exec(db, e, sql, "");
}

static bool begin_view(struct res_db *db, struct err *e)
{
	return drop_table(db, "every", e) &&
	       res_exec(db, e, "CREATE TEMP TABLE every AS SELECT result, run, "
			"case_id, area, name, params, metric, unit, value, lo, "
			"hi, clock_hz, better, origin, source, start_ns, "
			"device_name, git_commit, dirty FROM v_results LIMIT 0",
			"");
}

static bool finish_view(struct res_db *db, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ARRAY_SIZE(views); i++)
		ok = drop_table(db, views[i].name, e) &&
		     res_exec(db, e, views[i].sql, "");
	return ok;
}

/* Of the first area that holds something. */
static void add_device(struct buf *footer, const char **v)
{
	if (footer->len)
		return;
	if (v[0])
		buf_printf(footer, "%s (%s, %s)", v[0], v[1] ? v[1] : "no GPU",
			   v[3]);
	else if (!strcmp(v[3], "hardware"))
		buf_printf(footer, "%s (host, hardware)", v[5]);
	else
		buf_printf(footer, "%s", v[3]);
}

static bool load_area(struct drawing *d, const char *area, struct err *e)
{
	struct table device;

	table_init(&device, "name,gfx,uid,origin,host,cpu");
	bool ok = res_query(d->s->db, &device, 0, e, device_sql, "tttt", area,
			    d->s->o.origin, d->s->o.device, d->s->o.run);
	if (ok && device.n_rows) {
		const char **v = device.row[0];

		add_device(&d->footer, v);
		ok = res_exec(d->s->db, e, area_sql, "tttttit", area, v[0],
			      v[1], v[2], v[3], (int64_t)atoll(v[4]),
			      d->s->o.run);
	}
	table_fini(&device);
	return ok;
}

static bool load_areas(struct drawing *d, struct err *e)
{
	char areas[128], *save = NULL;
	bool ok = true;

	snprintf(areas, sizeof(areas), "%s", d->plot->areas);
	for (char *a = strtok_r(areas, " ", &save); ok && a;
	     a = strtok_r(NULL, " ", &save))
		ok = load_area(d, a, e);
	return ok;
}

static bool load_footer(struct drawing *d, struct err *e)
{
	struct table t;

	table_init(&t, "commit,day");
	bool ok = res_query(d->s->db, &t, 0, e,
		"SELECT git_commit || iif(dirty, '+', ''), "
		"date(start_ns / 1000000000, 'unixepoch') FROM every "
		"WHERE origin <> 'published' OR NOT EXISTS(SELECT 1 FROM every "
		"WHERE origin <> 'published') "
		"ORDER BY start_ns DESC, run DESC LIMIT 1", "");
	if (ok && t.n_rows)
		buf_printf(&d->footer, ", commit %s, %s", t.row[0][0],
			   t.row[0][1]);
	if (!d->footer.len)
		buf_adds(&d->footer, "all devices of this database");
	table_fini(&t);
	return ok;
}

static bool is_point(const struct drawing *d, int row);

/* *found = false where the areas hold nothing, or limits alone. */
static bool load_rows(struct drawing *d, bool *found, struct err *e)
{
	table_init(&d->rows, "series,x,y,low,high,label");
	bool ok = begin_view(d->s->db, e) && load_areas(d, e) &&
		  finish_view(d->s->db, e) && load_footer(d, e) &&
		  res_query(d->s->db, &d->rows, 9, e, d->plot->sql, "");

	*found = false;
	for (int i = 0; ok && i < d->rows.n_rows; i++)
		*found |= is_point(d, i);
	return ok;
}

/* ---- the script ---- */

/* Inside "..." of gnuplot: only quotes and backslashes mean something. */
static void add_quoted(struct buf *out, const char *text)
{
	buf_addc(out, '"');
	for (; text && *text; text++)
		if (*text == '"' || *text == '`')
			buf_addc(out, '\'');
		else if (*text == '\\')
			buf_addc(out, '/');
		else
			buf_addc(out, (unsigned char)*text < ' ' ? ' ' : *text);
	buf_addc(out, '"');
}

static void set_text(struct buf *out, const char *what, const char *text)
{
	buf_printf(out, "set %s ", what);
	add_quoted(out, text);
	buf_adds(out, " noenhanced\n");
}

static int index_of(const char ***list, int *n, const char *text)
{
	int i = 0;

	while (i < *n && strcmp((*list)[i], text))
		i++;
	if (i == *n) {
		*list = xrealloc(*list, (size_t)(*n + 1) * sizeof(**list));
		(*list)[(*n)++] = text;
	}
	return i;
}

static const char *cell_text(const struct drawing *d, int row, int col)
{
	const char *v = d->rows.row[row][col];

	return v ? v : "NaN";
}

static bool is_series(const struct drawing *d, int row, int series)
{
	return !strcmp(cell_text(d, row, SERIES), d->series[series]);
}

static bool is_roof(const char *series)
{
	return !strncmp(series, "roof ", 5);
}

static bool is_mark(const struct drawing *d, int row)
{
	return !strcmp(cell_text(d, row, SERIES), "mark");
}

/* Not a limit, not a part of the title, not a place on the x axis. */
static bool is_point(const struct drawing *d, int row)
{
	const char *series = cell_text(d, row, SERIES);

	return !is_roof(series) && strcmp(series, "title") != 0 &&
	       !is_mark(d, row);
}

static int by_number(const void *a, const void *b)
{
	double x = atof(*(const char *const *)a);
	double y = atof(*(const char *const *)b);

	return (x > y) - (x < y);
}

/* A grid of numbers is in their order, whichever of them it lacks. */
static void collect_names(struct drawing *d)
{
	buf_adds(&d->title, d->plot->title);
	for (int i = 0; i < d->rows.n_rows; i++) {
		const char *series = cell_text(d, i, SERIES);

		if (!strcmp(series, "title")) {
			buf_printf(&d->title, "%s", cell_text(d, i, LABEL));
			continue;
		}
		if (is_mark(d, i))
			continue;
		index_of(&d->series, &d->n_series, series);
		if (d->look->names && d->rows.row[i][X])
			index_of(&d->name, &d->n_names, cell_text(d, i, X));
	}
	if (d->plot->style != HEAT)
		return;
	qsort(d->series, (size_t)d->n_series, sizeof(*d->series), by_number);
	qsort(d->name, (size_t)d->n_names, sizeof(*d->name), by_number);
}

/* Names of one place stand beside each other as far as there is room. */
static double name_shift(const struct drawing *d, int series)
{
	double step = fmin(0.13, 0.8 / d->n_series);

	return d->look->apart ? (series - (d->n_series - 1) / 2.0) * step : 0;
}

static void add_x(struct drawing *d, int row, int series)
{
	if (d->look->names)
		buf_printf(&d->script, "%g ", name_shift(d, series) +
			   index_of(&d->name, &d->n_names,
				    cell_text(d, row, X)));
	else
		buf_printf(&d->script, "%s ", cell_text(d, row, X));
	if (d->plot->style == HEAT)
		buf_printf(&d->script, "%d ", series);
}

/* x y low high "label": one block per series, rows in their order. */
static void add_data(struct drawing *d, int series)
{
	for (int i = 0; i < d->rows.n_rows; i++) {
		if (!is_series(d, i, series))
			continue;
		add_x(d, i, series);
		bool exact = !d->rows.row[i][LOW] || !d->rows.row[i][HIGH];
		buf_printf(&d->script, "%s %s %s ", cell_text(d, i, Y),
			   cell_text(d, i, exact ? Y : LOW),
			   cell_text(d, i, exact ? Y : HIGH));
		add_quoted(&d->script, cell_text(d, i, LABEL));
		buf_addc(&d->script, '\n');
	}
}

/* A grid is one block. */
static void add_blocks(struct drawing *d)
{
	bool one = d->plot->style == HEAT;

	for (int i = 0; i < d->n_series; i++) {
		if (!one || !i)
			buf_printf(&d->script, "$d%d << EOD\n", i);
		add_data(d, i);
		if (!one || i == d->n_series - 1)
			buf_adds(&d->script, "EOD\n");
	}
}

static void add_tics(struct buf *out, const char *axis, const char **name,
		     int n)
{
	buf_printf(out, "set %stics (", axis);
	for (int i = 0; i < n; i++) {
		buf_adds(out, i ? ", " : "");
		add_quoted(out, name[i]);
		buf_printf(out, " %d", i);
	}
	buf_adds(out, ") noenhanced\n");
}

/* The least and the greatest x of a point; false: there is none above 0. */
static bool x_range(const struct drawing *d, double *lo, double *hi)
{
	*lo = HUGE_VAL;
	*hi = 0;
	for (int i = 0; i < d->rows.n_rows; i++) {
		double x = atof(cell_text(d, i, X));

		if (!is_point(d, i) || !(x > 0))
			continue;
		*lo = fmin(*lo, x);
		*hi = fmax(*hi, x);
	}
	return *hi > 0;
}

/* ---- names beside points ---- */

/* What the axes of a plot with names span; a roofline's are logarithmic. */
struct span {
	double x0, x1, y0, y1;
	double beyond; /* of logarithmic ones: a factor at their ends */
	bool log;
};

static void take_level(struct span *s, const struct drawing *d, int row)
{
	const char *const *v = d->rows.row[row];

	if (is_roof(cell_text(d, row, SERIES))) {
		s->beyond = 4;
		s->y1 = v[X] ? fmax(s->y1, atof(v[X])) : s->y1;
	} else if (is_point(d, row)) {
		s->y0 = fmin(s->y0, atof(v[Y]));
		s->y1 = fmax(s->y1, atof(v[Y]));
	}
}

/* Limits shall reach beyond the first and the last kernel. */
static struct span find_span(const struct drawing *d)
{
	struct span s = { .y0 = HUGE_VAL, .beyond = 1.5,
			  .log = d->plot->style == ROOF };

	if (!x_range(d, &s.x0, &s.x1))
		s.x0 = s.x1 = 1;
	for (int i = 0; i < d->rows.n_rows; i++)
		take_level(&s, d, i);
	if (!s.log)
		return (struct span){ 0, 1.15 * s.x1, 0,
				      s.y1 > 0 ? 1.1 * s.y1 : 1, 1, false };
	s.x0 /= s.beyond;
	s.x1 *= s.beyond;
	s.y0 /= s.beyond;
	s.y1 *= 2;
	return s;
}

static double share_of(double v, double lo, double hi, bool log)
{
	return log ? log2(v / lo) / log2(hi / lo) : (v - lo) / (hi - lo);
}

/* In pixels of the picture, about. */
struct box {
	double x, y, width, height;
};
enum { SPAN_WIDTH = 540, SPAN_HEIGHT = 390, LETTER = 7, LINE = 13, GAP = 8,
       POINT = 8, NEAR = 60 };

struct names {
	struct span span;
	struct box *taken; /* [n]: points, and the names so far */
	int n;
};

static struct box point_box(const struct drawing *d, const struct span *s,
			    int row)
{
	double x = share_of(atof(cell_text(d, row, X)), s->x0, s->x1, s->log);
	double y = share_of(atof(cell_text(d, row, Y)), s->y0, s->y1, s->log);

	return (struct box){ x * SPAN_WIDTH - POINT / 2.0,
			     y * SPAN_HEIGHT - POINT / 2.0, POINT, POINT };
}

static bool is_free(const struct names *v, const struct box *b)
{
	bool is = b->x > 0 && b->x + b->width < SPAN_WIDTH && b->y > 0 &&
		  b->y + b->height < SPAN_HEIGHT;

	for (int i = 0; is && i < v->n; i++) {
		const struct box *t = &v->taken[i];

		is = b->x >= t->x + t->width || t->x >= b->x + b->width ||
		     b->y >= t->y + t->height || t->y >= b->y + b->height;
	}
	return is;
}

/* Right of the point, left of it, and further up and down. */
static bool find_place(const struct names *v, const struct box *point,
		       struct box *b)
{
	enum { PLACES = 14 };

	for (int i = 0; i < PLACES; i++) {
		int line = (i / 2 + 1) / 2 * (i / 2 % 2 ? 1 : -1);

		b->x = point->x + (i % 2 ? -POINT - b->width : POINT + GAP);
		b->y = point->y + (POINT - LINE) / 2.0 + line * LINE;
		if (is_free(v, b))
			return true;
	}
	return false;
}

/* A point of the same name is so near that one of them is enough. */
static bool is_named(const struct drawing *d, const struct span *s, int row)
{
	const struct box b = point_box(d, s, row);

	for (int i = 0; i < row; i++) {
		const struct box o = point_box(d, s, i);

		if (!strcmp(cell_text(d, i, LABEL), cell_text(d, row, LABEL)) &&
		    fabs(o.x - b.x) < NEAR && fabs(o.y - b.y) < NEAR)
			return true;
	}
	return false;
}

static void add_name(struct drawing *d, struct names *v, int row)
{
	const struct box point = point_box(d, &v->span, row);
	const char *name = cell_text(d, row, LABEL);
	struct box b = { .width = LETTER * (double)strlen(name),
			 .height = LINE };

	if (is_named(d, &v->span, row) || !find_place(v, &point, &b))
		return;
	v->taken[v->n++] = b;
	buf_adds(&d->script, "set label ");
	add_quoted(&d->script, name);
	buf_printf(&d->script, " at graph %.4f, graph %.4f left font ',9' "
		   "noenhanced\n", b.x / SPAN_WIDTH,
		   (b.y + LINE / 2.0) / SPAN_HEIGHT);
}

/* A name that finds no place is left out; the script has it in its data. */
static void add_names(struct drawing *d)
{
	const int n = d->rows.n_rows;
	struct names v = { find_span(d),
			   xcalloc((size_t)n * 2 + 1, sizeof(*v.taken)), 0 };

	buf_printf(&d->script, "set xrange [%g:%g]\nset yrange [%g:%g]\n",
		   v.span.x0, v.span.x1, v.span.y0, v.span.y1);
	for (int i = 0; i < n; i++)
		if (is_point(d, i))
			v.taken[v.n++] = point_box(d, &v.span, i);
	for (int i = 0; i < n; i++)
		if (is_point(d, i))
			add_name(d, &v, i);
	free(v.taken);
}

/* ---- axes ---- */

/* gnuplot knows no KiB. */
static void add_byte_tics(struct drawing *d)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB" };
	enum { TICS = 8 };
	double lo, hi;

	if (!x_range(d, &lo, &hi))
		return;
	int first = (int)floor(log2(lo)), last = (int)ceil(log2(hi));
	int step = (last - first) / TICS + 1;

	buf_adds(&d->script, "set xtics (");
	for (int i = first; i <= last; i += step) {
		int u = i < 0 ? 0 : i >= 30 ? 3 : i / 10;

		buf_printf(&d->script, "%s\"%g %s\" %.0f", i > first ? ", " : "",
			   exp2(i - 10 * u), unit[u], exp2(i));
	}
	buf_printf(&d->script, ")\nset xrange [%.0f:%.0f]\n",
		   0.9 * exp2(first), 1.1 * exp2(last));
}

/* Short names lie, many stand upright, others lean; the longest has room. */
static void add_name_axis(struct drawing *d)
{
	struct buf *o = &d->script;
	bool upright = d->n_names > 24;
	size_t longest = 0;

	for (int i = 0; i < d->n_names; i++)
		longest = strlen(d->name[i]) > longest ? strlen(d->name[i]) :
							 longest;
	add_tics(o, "x", d->name, d->n_names);
	if (longest * (size_t)d->n_names > 60) {
		buf_printf(o, "set xtics rotate by %d font ',%d'\n",
			   upright ? -90 : -40, upright ? 8 : 10);
		d->bottom = 5 + (double)longest * (upright ? 0.36 : 0.3);
		buf_printf(o, "set bmargin %.1f\n", d->bottom);
	}
	buf_printf(o, "set xrange [-0.7:%d.7]\n", d->n_names - 1);
}

/* gnuplot has no range for values that are all the same, nor bars from 1. */
static void add_value_range(struct drawing *d)
{
	double lo = HUGE_VAL, hi = 0;

	for (int i = 0; i < d->rows.n_rows; i++)
		for (int c = Y; c <= HIGH; c++) {
			const char *v = d->rows.row[i][c];

			lo = v ? fmin(lo, atof(v)) : lo;
			hi = v ? fmax(hi, atof(v)) : hi;
		}
	if (d->plot->style == BARSLOG)
		buf_printf(&d->script, "set yrange [%g:*]\n",
			   lo > 0 ? fmin(0.5, lo / 2) : 0.5);
	if (d->plot->style == TIME)
		buf_printf(&d->script, "set yrange [0:%g]\n",
			   fmax(1, 1.1 * hi));
	if (d->plot->style == TIMELOG)
		buf_printf(&d->script, "set yrange [%g:%g]\n", lo / 2, hi * 2);
	if (d->plot->style == RATIO)
		buf_printf(&d->script, "set yrange [%g:%g]\n",
			   fmin(0.9, 0.97 * lo), fmax(1.1, 1.03 * hi));
}

/* Upright lines with their names at the top, where points are on both sides. */
static void add_marks(struct drawing *d)
{
	double lo, hi;

	for (int i = 0; x_range(d, &lo, &hi) && i < d->rows.n_rows; i++) {
		const char *x = cell_text(d, i, X);

		if (!is_mark(d, i) || atof(x) < lo || atof(x) > hi)
			continue;
		buf_printf(&d->script, "set arrow from first %s, graph 0 to "
			   "first %s, graph 1 nohead dashtype 3 linecolor rgb "
			   "'#777777'\nset label ", x, x);
		add_quoted(&d->script, cell_text(d, i, LABEL));
		buf_printf(&d->script, " at first %s, graph 0.97 right rotate "
			   "by 90 offset -0.9,0 noenhanced textcolor rgb "
			   "'#555555' font ',%g'\n", x,
			   d->paper ? d->paper->font - 2 : 9);
	}
}

static void add_axes(struct drawing *d)
{
	struct buf *o = &d->script;

	buf_adds(o, d->look->axes);
	if (d->look->names)
		add_name_axis(d);
	add_value_range(d);
	if (d->plot->style == HEAT) {
		add_tics(o, "y", d->series, d->n_series);
		buf_printf(o, "set yrange [-0.5:%d.5]\n", d->n_series - 1);
		buf_printf(o, "set xrange [-0.5:%d.5]\n", d->n_names - 1);
	}
	if (d->look->bytes)
		add_byte_tics(d);
	add_marks(d);
	if (d->plot->style == ROOF || d->plot->style == POINTS)
		add_names(d);
}

/* Bars of several series stand beside each other. */
static void add_bars(struct drawing *d, int i)
{
	double width = 0.8 / d->n_series;

	buf_printf(&d->script, "$d%d using ($1 + %.4f):2:3:4:(%.4f) "
		   "with boxerrorbars linestyle %d fillstyle solid 0.6",
		   i, (i - (d->n_series - 1) / 2.0) * width, 0.9 * width,
		   i + 1);
}

static void add_roof(struct drawing *d, int i)
{
	/* The one row of this series has either x or y. */
	for (int r = 0; r < d->rows.n_rows; r++) {
		if (!is_series(d, r, i))
			continue;
		if (d->rows.row[r][X])
			buf_printf(&d->script, "%s", d->rows.row[r][X]);
		else
			buf_printf(&d->script, "%s * x", cell_text(d, r, Y));
		break;
	}
	buf_printf(&d->script, " with lines linestyle %d dashtype 2", i + 1);
}

static void add_heat(struct buf *o)
{
	buf_adds(o, "$d0 using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5)"
		    ":3 with boxxyerror fillstyle solid noborder fillcolor "
		    "palette notitle, \\\n  $d0 using 1:2:(sprintf('%.3g', $3))"
		    " with labels textcolor rgb 'black' notitle");
}

static void add_curve(struct drawing *d, int i)
{
	struct buf *o = &d->script;

	if (is_roof(d->series[i])) {
		add_roof(d, i);
		return;
	}
	switch (d->plot->style) {
	case BARS:
	case BARSLOG:
		add_bars(d, i);
		break;
	case STACK:
		buf_printf(o, "$d%d using 1:2:($1 - 0.38):($1 + 0.38):3:4 with "
			   "boxxyerror linestyle %d fillstyle solid 0.6", i,
			   i + 1);
		break;
	case HEAT:
		add_heat(o);
		break;
	case DOTS:
	case ROOF:
	case DIAGONAL:
	case POINTS:
		buf_printf(o, "$d%d using 1:2:3:4 with yerrorbars linestyle %d",
			   i, i + 1);
		break;
	case STEPS:
		buf_printf(o, "$d%d using 1:2 with steps linestyle %d "
			   "linewidth 2", i, i + 1);
		break;
	default:
		buf_printf(o, "$d%d using 1:2:3:4 with yerrorlines "
			   "linestyle %d", i, i + 1);
	}
}

static void add_diagonals(struct drawing *d)
{
	buf_adds(&d->script, ", \\\n  x with lines linecolor rgb "
		 "'#444444' title 'equal', \\\n  1.2 * x with lines "
		 "linecolor rgb '#aaaaaa' dashtype 2 title '20 % off', "
		 "\\\n  x / 1.2 with lines linecolor rgb '#aaaaaa' "
		 "dashtype 2 notitle");
}

static void add_plot_command(struct drawing *d)
{
	bool heat = d->plot->style == HEAT;

	buf_adds(&d->script, "plot");
	for (int i = 0; i < (heat ? 1 : d->n_series); i++) {
		buf_adds(&d->script, i ? ", \\\n  " : " ");
		add_curve(d, i);
		if (heat)
			continue;
		buf_adds(&d->script, " title ");
		add_quoted(&d->script, d->series[i] +
			   (is_roof(d->series[i]) ? 5 : 0));
		buf_adds(&d->script, " noenhanced");
	}
	if (d->plot->style == DIAGONAL)
		add_diagonals(d);
	buf_addc(&d->script, '\n');
}

/* Colours that differ also without colour vision (Okabe and Ito). */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73",
				       "#cc79a7", "#e69f00", "#56b4e9",
				       "#000000", "#b8a900" };

/* A file, its units in one of 96 to the inch, and what enlarges it so. */
struct terminal {
	const char *name, *extension, *unit;
	double unit_dots, scale;
};

static void add_terminal(struct drawing *d, const struct terminal *t)
{
	const struct paper *p = d->paper;
	/* Names of 8 points stand beside each other, lines are of 12. */
	double width = p ? p->width : fmax(960, d->n_names * 14 + 240);
	double height = p ? fmax(p->height, d->bottom * p->font + 120) :
			    fmax(560, d->bottom * 19 + 280);

	buf_printf(&d->script, "set terminal %s size %.6g%s,%.6g%s font "
		   "'DejaVu Sans,%g' ", t->name,
		   round(width * t->unit_dots * 1e3) / 1e3, t->unit,
		   round(height * t->unit_dots * 1e3) / 1e3, t->unit,
		   p ? p->font : 12);
	if (t->scale != 1)
		buf_printf(&d->script, "fontscale %.4g linewidth %.4g "
			   "pointscale %.4g ", t->scale, t->scale, t->scale);
	buf_printf(&d->script, "noenhanced background 'white'\n"
		   "set output '%s.%s'\n", d->plot->name, t->extension);
	add_plot_command(d);
}

static void add_terminals(struct drawing *d)
{
	static const double dpi = 200;
	const struct terminal terminals[] = {
		{ "svg", "svg", "", 1, 1 },
		{ "pdfcairo", "pdf", "in", 1 / 96.0, 0.75 },
		{ "pngcairo", "png", "", dpi / 96, dpi / 96 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(terminals); i++)
		add_terminal(d, &terminals[i]);
}

static void add_styles(struct drawing *d)
{
	struct buf *o = &d->script;

	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		buf_printf(o, "set linetype %zu linecolor rgb '%s' linewidth "
			   "1.5 pointtype %zu\n", i + 1,
			   colours[i], i + 4);
	/* The first are seen around those that are drawn over them. */
	for (int i = 0; i < d->n_series; i++)
		buf_printf(o, "set style line %d linetype %d pointsize %g\n",
			   i + 1, i % (int)ARRAY_SIZE(colours) + 1,
			   d->look->apart ? 0.8 : fmax(0.6, 1.2 - 0.15 * i));
}

static void add_texts(struct drawing *d)
{
	struct buf *o = &d->script;

	set_text(o, "title", d->paper ? "" : d->title.data);
	set_text(o, "xlabel", d->plot->x_label);
	set_text(o, "ylabel", d->plot->y_label);
	buf_adds(o, "set label 999 ");
	add_quoted(o, d->footer.data);
	buf_adds(o, " at screen 0.99, screen 0.02 right noenhanced textcolor "
		 "rgb '#666666' ");
	buf_printf(o, "font ',%g'\n", d->paper ? d->paper->font - 2.5 : 10);
}

static void write_script(struct drawing *d)
{
	struct buf *o = &d->script;

	buf_printf(o, "# %s, made by t0-results; data and all, for gnuplot 5\n"
		   "reset\nset encoding utf8\n"
		   "set grid linetype 1 linewidth 0.7 linecolor rgb "
		   "'#dddddd'\nset border 3\nset tics nomirror\n"
		   "set key outside right top vertical Left reverse samplen 2 "
		   "font ',10'\nset bmargin 6\n", d->plot->name);
	if (d->paper)
		buf_printf(o, "set key below center horizontal font ',%g'\n"
			   "unset bmargin\nset origin 0,0.06\n"
			   "set size 1,0.94\n", d->paper->font - 1);
	add_styles(d);
	add_texts(d);
	add_axes(d);
	add_blocks(d);
	if (d->s->o.term) {
		const char *columns = getenv("COLUMNS");
		int width = columns ? atoi(columns) : 0;
		buf_printf(o, "set key outside top center horizontal\n"
			   "set bmargin 4\nset rmargin 2\n"
			   "set terminal dumb size %d,28\n",
			   width >= 40 && width <= 400 ? width : 80);
		add_plot_command(d);
		return;
	}
	add_terminals(d);
	buf_adds(o, "set output\n");
}

/* ---- gnuplot ---- */

static void exec_gnuplot(const char *dir, const char *file)
{
	alarm(GNUPLOT_SECONDS);
	if (chdir(dir) == 0) {
		setenv("LC_ALL", "C.UTF-8", 1);
		execlp("gnuplot", "gnuplot", file, (char *)NULL);
	}
	fprintf(stderr, "t0-results: gnuplot: %s\n", strerror(errno));
	_exit(127);
}

static bool run_gnuplot(const char *dir, const char *file, struct err *e)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, ERR_IO, errno, "starting gnuplot");
	if (!pid)
		exec_gnuplot(dir, file);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, ERR_IO, errno, "waiting for gnuplot");
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return err_set(e, ERR_TIMEOUT, "gnuplot %s/%s took more than "
			       "%d s", dir, file, GNUPLOT_SECONDS);
	return err_set(e, ERR_IO, "gnuplot could not draw %s/%s (status %d); "
		       "is gnuplot installed (package gnuplot-nox)?", dir,
		       file, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* Cairo writes when it drew; the same rows shall give the same bytes. */
static bool clear_date(const char *path, struct err *e)
{
	static const char key[] = "/CreationDate (D:";
	enum { DIGITS = 14 };
	struct buf b = { 0 };
	bool ok = file_read(path, 0, &b, e);
	char *at = ok ? memmem(b.data, b.len, key, strlen(key)) : NULL;

	if (at && at + strlen(key) + DIGITS < b.data + b.len)
		memcpy(at + strlen(key), "20000101000000", DIGITS);
	ok = ok && (!at || file_write_unsynced(path, b.data, b.len, e));
	buf_fini(&b);
	return ok;
}

static bool draw_plot(struct drawing *d, const char *dir, struct err *e)
{
	char file[64];
	struct buf path = { 0 };

	collect_names(d);
	write_script(d);
	snprintf(file, sizeof(file), "%s.gp", d->plot->name);
	buf_printf(&path, "%s/%s", dir, file);
	bool ok = file_write_atomic(path.data, d->script.data, d->script.len,
				    e) &&
		  run_gnuplot(dir, file, e);
	buf_reset(&path);
	buf_printf(&path, "%s/%s.pdf", dir, d->plot->name);
	ok = ok && (d->s->o.term || clear_date(path.data, e));
	buf_fini(&path);
	return ok;
}

static const struct paper *find_paper(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(papers); i++)
		if (!strcmp(papers[i].name, name))
			return &papers[i];
	return NULL;
}

static bool plot_one(struct show *s, const struct plot *p, const char *dir,
		     bool *found, struct err *e)
{
	struct drawing d = { .s = s, .plot = p, .look = &looks[p->style],
			     .paper = find_paper(s->o.paper) };
	bool ok = load_rows(&d, found, e) && (!*found || draw_plot(&d, dir, e));

	free(d.series);
	free(d.name);
	buf_fini(&d.title);
	buf_fini(&d.footer);
	buf_fini(&d.script);
	table_fini(&d.rows);
	return ok || err_wrap(e, "plot %s", p->name);
}

static const struct plot *find_plot(const char *name, struct err *e)
{
	struct buf known = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(plots); i++) {
		if (!strcmp(plots[i].name, name)) {
			buf_fini(&known);
			return &plots[i];
		}
		buf_printf(&known, "%s%s", i ? ", " : "", plots[i].name);
	}
	err_set(e, ERR_USAGE, "no plot \"%s\"; there are %s", name,
		known.data);
	buf_fini(&known);
	return NULL;
}

static bool make_dir(const char *dir, struct err *e)
{
	return mkdir(dir, 0777) == 0 || errno == EEXIST ||
	       err_sys(e, ERR_IO, errno, "%s", dir);
}

bool plot_each(struct show *s, const char *dir,
	       bool (*fn)(void *ctx, const char *name, const char *title),
	       void *ctx, struct err *e)
{
	bool found, ok = make_dir(dir, e);

	for (size_t i = 0; ok && i < ARRAY_SIZE(plots); i++) {
		ok = plot_one(s, &plots[i], dir, &found, e);
		if (ok && found && fn)
			ok = fn(ctx, plots[i].name, plots[i].title);
		else if (ok && !found)
			cmd_remark(&s->cmd, "plot %s: no data; `%s` brings "
				   "some", plots[i].name, plots[i].fill);
	}
	return ok;
}

static bool plot_named(struct show *s, const char *dir, struct err *e)
{
	bool found = false, ok = make_dir(dir, e);

	for (int i = 0; ok && i < s->cmd.argc; i++) {
		const struct plot *p = find_plot(s->cmd.argv[i], e);
		ok = p && plot_one(s, p, dir, &found, e);
		if (ok && !found)
			ok = err_set(e, ERR_INPUT, "plot %s: no data; `%s` "
				     "brings some", p->name, p->fill);
	}
	return ok;
}

static bool list_plots(struct cmd *c, struct err *e)
{
	struct table t;

	table_init(&t, "plot,areas,filled by,title");
	for (size_t i = 0; i < ARRAY_SIZE(plots); i++) {
		table_row(&t);
		table_cell(&t, 0, "%s", plots[i].name);
		table_cell(&t, 1, "%s", plots[i].areas);
		table_cell(&t, 2, "%s", plots[i].fill);
		table_cell(&t, 3, "%s", plots[i].title);
	}
	bool ok = table_print(&t, c->format, stdout, e) && stdout_check(e);
	table_fini(&t);
	return ok;
}

bool res_cmd_plot(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct buf scratch = { 0 };
	const char *dir = c->output ? c->output : "plots";

	if (s->o.list)
		return list_plots(c, e);
	if (s->o.paper && !find_paper(s->o.paper))
		return err_set(e, ERR_USAGE, "--paper %s: wanted column or "
			       "page", s->o.paper);
	if (s->o.term && !scratch_folder(&scratch, NULL, "plot", e)) {
		buf_fini(&scratch);
		return false;
	}
	if (s->o.term)
		dir = scratch.data;
	bool ok = c->argc ? plot_named(s, dir, e) :
			    plot_each(s, dir, NULL, NULL, e);
	for (size_t i = 0; s->o.term && i < ARRAY_SIZE(plots); i++) {
		char file[PATH_MAX];
		snprintf(file, sizeof(file), "%s/%s.gp", dir, plots[i].name);
		unlink(file);
	}
	if (s->o.term)
		rmdir(dir);
	else if (ok)
		cmd_remark(c, "plots are in %s", dir);
	buf_fini(&scratch);
	return ok;
}
