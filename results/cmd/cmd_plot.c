/*
 * results/cmd/cmd_plot.c - pictures from the database alone, drawn by gnuplot.
 *
 * Each plot becomes NAME.gp, a script with its data inside, which gnuplot turns
 * into NAME.svg and NAME.png.  Nothing in it depends on time, place or the
 * order of rows in the file, so the same rows give the same bytes.
 */
#include "results/cmd/cmd.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum style { BARS, LINES2, LINESLOG, STEPS, HEAT, DIAGONAL, ROOF, TIME };

static const struct plot {
	const char *name;
	enum style style;
	const char *area, *title, *x_label, *y_label, *sql;
} plots[] = {
#define PLOT(name, style, area, title, x, y, sql) \
	{ #name, style, area, title, x, y, sql },
#include "results/cmd/plots.def"
#undef PLOT
};

/* gnuplot ends by SIGALRM if it takes longer than this. */
#define GNUPLOT_SECONDS 60

/* Columns of the SELECT. */
enum { SERIES, X, Y, LOW, HIGH, LABEL };

struct drawing {
	struct show *s;
	const struct plot *plot;
	struct table rows;
	struct buf footer, script;
	const char **series; /* [n_series], as they first appear */
	const char **name;   /* [n_names], of x: bars, heat map, commits */
	int n_series, n_names;
};

/* ---- what is shown ---- */

/* The device that was measured last; published numbers have no say. */
static const char device_sql[] =
	"SELECT device_name, gfx, uid, origin FROM v_results "
	"WHERE area = ? AND state = 'complete' ORDER BY origin = 'published', "
	"start_ns DESC, run DESC LIMIT 1";

static bool bind_view(struct res_db *db, const struct table *device,
		      const char *area, struct err *e)
{
	const char **d = device->row[0];

	return res_exec(db, e, "DROP TABLE IF EXISTS temp.every", "") &&
	       res_exec(db, e, "DROP TABLE IF EXISTS temp.latest", "") &&
	       res_exec(db, e,
		"CREATE TEMP TABLE every AS SELECT result, run, case_id, area, "
		"name, params, metric, unit, value, coalesce(lo, value) AS lo, "
		"coalesce(hi, value) AS hi, origin, source, start_ns, "
		"device_name, git_commit, dirty FROM v_results "
		"WHERE state = 'complete' "
		"AND area IN(?1, iif(?1 = 'kernel', 'peak', ?1)) "
		"AND (origin = 'published' OR (device_name IS ?2 AND gfx IS ?3 "
		"AND uid IS ?4 AND origin IS ?5))", "ttttt", area, d[0], d[1],
		d[2], d[3]) &&
	       res_exec(db, e,
		"CREATE TEMP TABLE latest AS SELECT * FROM (SELECT *, "
		"row_number() OVER (PARTITION BY case_id, metric, origin "
		"ORDER BY start_ns DESC, run DESC) AS newest FROM every) "
		"WHERE newest = 1", "");
}

static bool load_footer(struct drawing *d, const struct table *device,
			struct err *e)
{
	const char **v = device->row[0];
	struct table t;

	buf_printf(&d->footer, "%s (%s, %s)", v[0] ? v[0] : "no device",
		   v[1] ? v[1] : "no GPU", v[3]);
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
	table_fini(&t);
	return ok;
}

/* *found = false where the area holds nothing. */
static bool load_rows(struct drawing *d, bool *found, struct err *e)
{
	struct table device;

	table_init(&device, "name,gfx,uid,origin");
	table_init(&d->rows, "series,x,y,low,high,label");
	bool ok = res_query(d->s->db, &device, 0, e, device_sql, "t",
			    d->plot->area);
	*found = ok && device.n_rows;
	if (*found)
		ok = bind_view(d->s->db, &device, d->plot->area, e) &&
		     load_footer(d, &device, e) &&
		     res_query(d->s->db, &d->rows, 9, e, d->plot->sql, "");
	*found = ok && d->rows.n_rows;
	table_fini(&device);
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

static bool names_x(enum style s)
{
	return s == BARS || s == HEAT || s == TIME;
}

static const char *cell_text(const struct drawing *d, int row, int col)
{
	const char *v = d->rows.row[row][col];

	return v ? v : "NaN";
}

static void collect_names(struct drawing *d)
{
	for (int i = 0; i < d->rows.n_rows; i++) {
		index_of(&d->series, &d->n_series, cell_text(d, i, SERIES));
		if (names_x(d->plot->style))
			index_of(&d->name, &d->n_names, cell_text(d, i, X));
	}
}

static bool is_roof(const char *series)
{
	return !strncmp(series, "roof ", 5);
}

/* x y low high "label": one block per series, rows in their order. */
static void add_data(struct drawing *d, int series)
{
	buf_printf(&d->script, "$d%d << EOD\n", series);
	for (int i = 0; i < d->rows.n_rows; i++) {
		if (strcmp(cell_text(d, i, SERIES), d->series[series]))
			continue;
		if (d->plot->style == HEAT)
			buf_printf(&d->script, "%d %d ",
				   index_of(&d->name, &d->n_names,
					    cell_text(d, i, X)), series);
		else if (names_x(d->plot->style))
			buf_printf(&d->script, "%d ",
				   index_of(&d->name, &d->n_names,
					    cell_text(d, i, X)));
		else
			buf_printf(&d->script, "%s ", cell_text(d, i, X));
		buf_printf(&d->script, "%s %s %s ", cell_text(d, i, Y),
			   cell_text(d, i, LOW), cell_text(d, i, HIGH));
		add_quoted(&d->script, cell_text(d, i, LABEL));
		buf_addc(&d->script, '\n');
	}
	buf_adds(&d->script, "EOD\n");
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

/* The limits shall reach beyond the first and the last kernel. */
static void add_range(struct drawing *d)
{
	double lo = HUGE_VAL, hi = 0;

	for (int i = 0; i < d->rows.n_rows; i++) {
		double x = atof(cell_text(d, i, X));
		if (is_roof(cell_text(d, i, SERIES)) || !(x > 0))
			continue;
		lo = fmin(lo, x);
		hi = fmax(hi, x);
	}
	if (hi > 0)
		buf_printf(&d->script, "set xrange [%g:%g]\n", lo / 4, hi * 4);
}

static void add_axes(struct drawing *d)
{
	struct buf *o = &d->script;
	enum style s = d->plot->style;

	if (names_x(s)) {
		add_tics(o, "x", d->name, d->n_names);
		buf_adds(o, "set xtics rotate by -40\nset bmargin 10\n"
			    "set rmargin 10\n");
		buf_printf(o, "set xrange [-0.7:%d.7]\n", d->n_names - 1);
	}
	if (s == HEAT) {
		add_tics(o, "y", d->series, d->n_series);
		buf_printf(o, "set yrange [-0.5:%d.5]\n", d->n_series - 1);
		buf_printf(o, "set xrange [-0.5:%d.5]\n", d->n_names - 1);
		buf_adds(o, "set palette defined (0 '#f7fbff', 0.5 '#9ecae1', "
			    "1 '#4292c6')\nunset key\nunset grid\n");
	}
	if (s == BARS || s == TIME || s == LINES2)
		buf_adds(o, "set yrange [0:*]\n");
	if (s == LINES2)
		buf_printf(o, "set logscale x 2\nset format x '%s'\n",
			   strstr(d->plot->x_label, "(B)") ? "%.0b %BB" :
							     "%.0f");
	if (s == LINESLOG || s == DIAGONAL || s == ROOF)
		buf_adds(o, "set logscale xy 10\n");
	if (s == ROOF)
		add_range(d);
	if (s == STEPS)
		buf_adds(o, "set logscale x 10\nset yrange [0:1]\n");
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
		if (strcmp(cell_text(d, r, SERIES), d->series[i]))
			continue;
		if (d->rows.row[r][X])
			buf_printf(&d->script, "%s", d->rows.row[r][X]);
		else
			buf_printf(&d->script, "%s * x", cell_text(d, r, Y));
		break;
	}
	buf_printf(&d->script, " with lines linestyle %d dashtype 2", i + 1);
}

static void add_curve(struct drawing *d, int i)
{
	struct buf *o = &d->script;

	switch (d->plot->style) {
	case BARS:
		add_bars(d, i);
		break;
	case HEAT:
		buf_printf(o, "$d%d using 1:2:3 with image notitle, '' using "
			   "1:2:(sprintf('%%.3g', $3)) with labels textcolor "
			   "rgb 'black'", i);
		break;
	case ROOF:
	case DIAGONAL:
		if (is_roof(d->series[i])) {
			add_roof(d, i);
			break;
		}
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
	if (d->plot->style != HEAT) {
		buf_adds(o, " title ");
		add_quoted(o, d->series[i] + (is_roof(d->series[i]) ? 5 : 0));
		buf_adds(o, " noenhanced");
	}
}

static void add_labels(struct drawing *d)
{
	for (int i = 0; i < d->n_series && d->plot->style == ROOF; i++)
		if (!is_roof(d->series[i]))
			buf_printf(&d->script, ", \\\n  $d%d using 1:2:5 with "
				   "labels offset 0,-1 noenhanced notitle", i);
	if (d->plot->style == DIAGONAL)
		buf_adds(&d->script, ", \\\n  x with lines linecolor rgb "
			 "'#444444' title 'equal', \\\n  1.2 * x with lines "
			 "linecolor rgb '#aaaaaa' dashtype 2 title '20 % off', "
			 "\\\n  x / 1.2 with lines linecolor rgb '#aaaaaa' "
			 "dashtype 2 notitle");
}

static void add_plot_command(struct drawing *d)
{
	bool heat = d->plot->style == HEAT;

	/* One grid: gnuplot wants it in one block. */
	buf_adds(&d->script, "plot");
	for (int i = 0; i < (heat ? 1 : d->n_series); i++) {
		buf_adds(&d->script, i ? ", \\\n  " : " ");
		add_curve(d, i);
	}
	add_labels(d);
	buf_addc(&d->script, '\n');
}

static void add_heat_data(struct drawing *d)
{
	struct buf *o = &d->script;

	buf_adds(o, "$d0 << EOD\n");
	for (int y = 0; y < d->n_series; y++)
		for (int x = 0; x < d->n_names; x++) {
			const char *v = "NaN";
			for (int i = 0; i < d->rows.n_rows; i++)
				if (!strcmp(cell_text(d, i, SERIES),
					    d->series[y]) &&
				    !strcmp(cell_text(d, i, X), d->name[x]))
					v = cell_text(d, i, Y);
			buf_printf(o, "%d %d %s\n", x, y, v);
		}
	buf_adds(o, "EOD\n");
}

/* Colours that differ also without colour vision (Okabe and Ito). */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73",
				       "#cc79a7", "#e69f00", "#56b4e9",
				       "#000000", "#b8a900" };

static void add_terminal(struct drawing *d, const char *terminal,
			 const char *extension)
{
	buf_printf(&d->script, "set terminal %s\n", terminal);
	if (extension)
		buf_printf(&d->script, "set output '%s.%s'\n", d->plot->name,
			   extension);
	add_plot_command(d);
}

#define FONT "font 'DejaVu Sans,12'"

static void write_script(struct drawing *d)
{
	struct buf *o = &d->script;

	buf_printf(o, "# %s, made by t0-results; data and all, for gnuplot 5\n"
		   "reset\nset encoding utf8\n"
		   "set grid linecolor rgb '#dddddd'\n"
		   "set key outside top center horizontal\n"
		   "set bmargin 7\n", d->plot->name);
	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		buf_printf(o, "set linetype %zu linecolor rgb '%s' linewidth "
			   "1.5 pointtype %zu pointsize 0.8\n", i + 1,
			   colours[i], i + 4);
	for (int i = 0; i < d->n_series; i++)
		buf_printf(o, "set style line %d linetype %d\n", i + 1,
			   i % (int)ARRAY_SIZE(colours) + 1);
	set_text(o, "title", d->plot->title);
	set_text(o, "xlabel", d->plot->x_label);
	set_text(o, "ylabel", d->plot->y_label);
	buf_adds(o, "set label 999 ");
	add_quoted(o, d->footer.data);
	buf_adds(o, " at screen 0.99, screen 0.02 right noenhanced textcolor "
		 "rgb '#666666'\n");
	add_axes(d);
	if (d->plot->style == HEAT)
		add_heat_data(d);
	else
		for (int i = 0; i < d->n_series; i++)
			add_data(d, i);
	if (d->s->o.term) {
		const char *columns = getenv("COLUMNS");
		int width = columns ? atoi(columns) : 0;
		buf_printf(o, "set bmargin 4\nset rmargin 2\n"
			   "set terminal dumb size %d,28\n",
			   width >= 40 && width <= 400 ? width : 80);
		add_plot_command(d);
		return;
	}
	add_terminal(d, "svg size 900,560 " FONT " noenhanced background "
		     "'white'", "svg");
	add_terminal(d, "pngcairo size 900,560 " FONT " noenhanced background "
		     "'white'", "png");
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
	buf_fini(&path);
	return ok;
}

static bool plot_one(struct show *s, const struct plot *p, const char *dir,
		     bool *found, struct err *e)
{
	struct drawing d = { .s = s, .plot = p };
	bool ok = load_rows(&d, found, e) && (!*found || draw_plot(&d, dir, e));

	free(d.series);
	free(d.name);
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
			cmd_remark(&s->cmd, "plot %s: nothing measured in area "
				   "\"%s\"", plots[i].name, plots[i].area);
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
			ok = err_set(e, ERR_INPUT, "plot %s: nothing measured "
				     "in area \"%s\"", p->name, p->area);
	}
	return ok;
}

bool res_cmd_plot(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	char scratch[] = "/tmp/t0-plot-XXXXXX";
	const char *dir = c->output ? c->output : "plots";

	if (s->o.term && !(dir = mkdtemp(scratch)))
		return err_sys(e, ERR_IO, errno, "%s", scratch);
	bool ok = c->argc ? plot_named(s, dir, e) :
			    plot_each(s, dir, NULL, NULL, e);
	for (size_t i = 0; s->o.term && i < ARRAY_SIZE(plots); i++) {
		char file[128];
		snprintf(file, sizeof(file), "%s/%s.gp", dir, plots[i].name);
		unlink(file);
	}
	if (s->o.term)
		rmdir(dir);
	else if (ok)
		cmd_remark(c, "plots are in %s", dir);
	return ok;
}
