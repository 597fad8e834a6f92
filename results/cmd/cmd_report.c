/*
 * results/cmd/cmd_report.c - one static page.
 *
 * What stands out, the plots, the tables: DIR/index.html with the pictures
 * beside it; every table also as CSV.  It names nothing outside its folder;
 * its one script sorts and filters tables.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct page {
	struct show *s;
	const char *dir;
	struct buf html;
	struct err *e;
};

/* The plots and tables, in the order of the page. */
static const struct section {
	const char *id, *title, *about, *columns, *sql;
} sections[] = {
	{ "wrong", "Wrong results",
	  "Verdicts that a check did not pass, newest first.",
	  "#run,kind,verdict,area,case,params,reason",
	  "SELECT run, kind, verdict, area, name, params, reason "
	  "FROM v_verdicts WHERE kind <> 'gate' AND verdict IN('fail', "
	  "'regress') ORDER BY verdict_id DESC LIMIT 50" },
	{ "noisy", "Noisiest results",
	  "Half the interval of the median as a share of it; above a few "
	  "percent a comparison sees nothing.",
	  "#spread,area,case,params,metric,~value,unit,#n,origin,#run",
	  "SELECT (hi - lo) / 2 / abs(value) AS spread, area, name, params, "
	  "metric, value, unit, n, origin, run FROM v_results "
	  "WHERE value <> 0 AND hi > lo AND origin <> "
	  "'simulated' ORDER BY spread DESC, result LIMIT 15" },
	{ "prediction", "Worst predictions",
	  "Simulator against reference, by size of the error.",
	  "#error,case,params,~reference,~predicted,unit,source,#run",
	  "SELECT p.value / r.value - 1 AS error, r.name, r.params, r.value, "
	  "p.value, r.unit, r.source, r.run FROM v_results r "
	  "JOIN v_results p ON p.run = r.run AND p.case_id = r.case_id "
	  "AND p.metric = 'predicted' WHERE r.metric = 'reference' "
	  "AND r.value <> 0 ORDER BY abs(error) DESC, r.result LIMIT 15" },
	{ "forecasts", "Forecasts of models",
	  "Simulated tokens per second of one sequence, newest first, beside "
	  "what others published of the nearest model.",
	  "model,params,#tokens_per_s,#from,#to,#published,source,#run",
	  "SELECT f.name, f.params, f.value, f.lo, f.hi, r.value, r.source, "
	  "f.run FROM v_results f LEFT JOIN v_results r ON r.run = f.run AND "
	  "r.area = 'predict' AND r.name = f.name AND r.params = f.params AND "
	  "r.metric = 'reference' WHERE f.area = 'forecast' AND f.metric = "
	  "'tokens_per_s' ORDER BY f.run DESC, f.result LIMIT 50" },
	{ "costs", "Costs", "The newest of each kind.",
	  "name,params,metric,~value,unit,origin,device,#spread,#n,source",
	  "SELECT name, params, metric, value, unit, origin, device_name, "
	  "(hi - lo) / 2 / nullif(abs(value), 0), n, source FROM (SELECT *, "
	  "row_number() OVER (PARTITION BY case_id, metric, origin, "
	  "device_name, gfx, uid ORDER BY start_ns DESC, run DESC) AS newest "
	  "FROM v_results WHERE area = 'cost' AND state = 'complete') "
	  "WHERE newest = 1 ORDER BY name, params, metric, origin LIMIT 500" },
	{ "baselines", "Accepted baselines", "What `t0-results gate` asks for.",
	  "created,area,case,params,metric,~value,unit,origin,device,commit,"
	  "reason",
	  "SELECT created, area, name, params, metric, value, unit, origin, "
	  "device_name, git_commit, reason FROM v_baselines WHERE active "
	  "ORDER BY area, name, params, metric, created_ns" },
	{ "ledger", "Experiments", "What was tried, and what came of it.",
	  "created,status,#expected,#measured,about,hypothesis,commit,remark",
	  "SELECT created, status, expected, measured, about, hypothesis, "
	  "git_commit, remark FROM v_notes WHERE current ORDER BY note DESC" },
	{ "devices", "Devices", "",
	  "name,gfx,uid,driver,firmware,origin,#cu_count,#vram_bytes",
	  "SELECT name, gfx, uid, driver, firmware, origin, cu_count, "
	  "vram_bytes FROM devices ORDER BY id" },
	{ "runs", "Newest runs", "",
	  "#run,started,tool,device,origin,commit,state,#cases,#pass,#fail",
	  "SELECT run, started, tool, device_name, origin, git_commit, state, "
	  "cases, passed, failed FROM v_runs ORDER BY run DESC LIMIT 50" },
};

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	"<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>T0 report</title>\n"
	"<link rel=\"icon\" href=\"data:,\">\n<style>\n"
	":root { color-scheme: light dark; --ink: #222; --paper: #fff; "
	"--rule: #ddd; --soft: #f6f6f6; --bad: #a40000; --link: #0b57a4; }\n"
	"@media (prefers-color-scheme: dark) { :root { --ink: #ececec; "
	"--paper: #161616; --rule: #444; --soft: #242424; --bad: #ff8f80; "
	"--link: #8ec5ff; } }\n"
	"body { font: 15px/1.45 sans-serif; margin: 2em auto; "
	"max-width: 1100px; padding: 0 1em; color: var(--ink); "
	"background: var(--paper); }\na { color: var(--link); }\n"
	"table { border-collapse: collapse; font-size: 13px; }\n"
	"th, td { padding: .2em .6em; border-bottom: 1px solid var(--rule); "
	"text-align: left; vertical-align: top; }\n"
	"td.n, th.n { text-align: right; font-variant-numeric: "
	"tabular-nums; }\n"
	"th button { font: inherit; font-weight: bold; color: inherit; "
	"background: none; border: 0; padding: 0; cursor: pointer; "
	"min-height: 24px; text-align: inherit; }\n"
	"div.scroll { overflow-x: auto; }\n"
	"input { font: inherit; padding: .2em .4em; margin-bottom: .5em; } "
	"::placeholder { color: inherit; opacity: .8; }\n"
	"figure { margin: 1em 0; } img { width: 100%; height: auto; "
	"background: #fff; }\n@media screen and (prefers-color-scheme: dark) { "
	"img { filter: invert(.92) hue-rotate(180deg); } }\n"
	"pre { background: var(--soft); padding: .8em; overflow-x: auto; }\n"
	"nav a { display: inline-block; margin-right: 1em; "
	"line-height: 28px; } .regress { color: var(--bad); }\n"
	"@media print { nav, input, .csv { display: none; } "
	"body { max-width: none; margin: 0; } "
	"figure, tr { break-inside: avoid; } }\n"
	"</style>\n</head>\n<body>\n<main>\n<h1>T0 report</h1>\n";

/* Heads sort their column; what is typed above a table leaves matching rows. */
static const char script[] =
	"<script>\n'use strict';\n"
	"for (const box of document.querySelectorAll('div.scroll')) {\n"
	"\tconst rows = () => [...box.querySelectorAll('tr')].slice(1);\n"
	"\tif (rows().length < 2) continue;\n"
	"\tconst find = document.createElement('input');\n"
	"\tfind.type = 'search'; find.placeholder = 'filter rows';\n"
	"\tfind.setAttribute('aria-label', 'filter rows of ' + "
	"box.ariaLabel);\n"
	"\tfind.oninput = () => { for (const r of rows()) r.hidden = "
	"!r.textContent.toLowerCase().includes(find.value.toLowerCase()); };\n"
	"\tbox.before(find);\n"
	"\tbox.querySelectorAll('th').forEach((th, i) => {\n"
	"\t\tconst b = document.createElement('button');\n"
	"\t\tb.textContent = th.textContent; th.replaceChildren(b);\n"
	"\t\tb.onclick = () => {\n"
	"\t\t\tconst up = th.getAttribute('aria-sort') !== 'ascending';\n"
	"\t\t\tfor (const o of box.querySelectorAll('th')) "
	"o.removeAttribute('aria-sort');\n"
	"\t\t\tth.setAttribute('aria-sort', up ? 'ascending' : "
	"'descending');\n"
	"\t\t\tconst key = r => r.cells[i].dataset.v ?? "
	"r.cells[i].textContent;\n"
	"\t\t\tconst sorted = rows().sort((x, y) => (up ? 1 : -1) * "
	"(th.className === 'n' ? key(x) - key(y) : "
	"key(x).localeCompare(key(y))));\n"
	"\t\t\tfor (const r of sorted) r.parentNode.append(r);\n"
	"\t\t};\n\t});\n}\n</script>\n";

/* The column that has the unit of a row; -1: none. */
static int unit_of(const struct table *t)
{
	for (int c = 0; c < t->n_cols; c++)
		if (!strcmp(t->head[c], "unit"))
			return c;
	return -1;
}

/* Values have their unit behind them, in its size; what sorts is the value. */
static void add_cell(struct page *p, const struct table *t, int row, int col)
{
	const char *v = t->row[row][col];
	const int unit = unit_of(t);
	struct buf text = { 0 };

	if (!v || !t->scaled[col] || unit < 0 || !t->row[row][unit]) {
		buf_adds(&p->html, t->numeric[col] ? "<td class=\"n\">" :
						     "<td>");
	} else {
		unit_print(&text, atof(v), t->row[row][unit]);
		buf_printf(&p->html, "<td class=\"n\" data-v=\"%s\">", v);
		v = text.data;
	}
	buf_add_html(&p->html, v ? v : "");
	buf_adds(&p->html, "</td>");
	buf_fini(&text);
}

static void add_table(struct page *p, const struct table *t, const char *name)
{
	struct buf *o = &p->html;

	buf_printf(o, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		   "aria-label=\"%s\"><table>\n<tr>", name);
	for (int c = 0; c < t->n_cols; c++) {
		buf_printf(o, "<th scope=\"col\"%s>",
			   t->numeric[c] ? " class=\"n\"" : "");
		buf_add_html(o, t->head[c]);
		buf_adds(o, "</th>");
	}
	buf_adds(o, "</tr>\n");
	for (int r = 0; r < t->n_rows; r++) {
		buf_adds(o, "<tr>");
		for (int c = 0; c < t->n_cols; c++) {
			add_cell(p, t, r, c);
		}
		buf_adds(o, "</tr>\n");
	}
	buf_adds(o, "</table></div>\n");
}

static bool write_file(struct page *p, const char *name, const char *data,
		       size_t len)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s", p->dir, name);
	bool ok = file_write_atomic(path.data, data, len, p->e);
	buf_fini(&path);
	return ok;
}

static bool write_csv(struct page *p, const char *id, const struct section *c)
{
	char name[64], *text = NULL;
	size_t len = 0;
	struct table t;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return err_set(p->e, ERR_NOMEM, "no memory for a table");
	table_init(&t, c->columns);
	bool ok = res_query(p->s->db, &t, 0, p->e, c->sql, "") &&
		  table_print(&t, TABLE_CSV, out, p->e);
	fclose(out);
	snprintf(name, sizeof(name), "%s.csv", id);
	ok = ok && write_file(p, name, text, len);
	free(text);
	table_fini(&t);
	return ok;
}

static bool add_section(struct page *p, const struct section *c)
{
	struct table t;

	table_init(&t, c->columns);
	bool ok = res_query(p->s->db, &t, 6, p->e, c->sql, "");
	buf_printf(&p->html, "<h2 id=\"%s\">%s</h2>\n<p>%s", c->id, c->title,
		   c->about);
	if (ok && t.n_rows) {
		buf_printf(&p->html, " <a class=\"csv\" href=\"%s.csv\">CSV "
			   "of %s</a></p>\n", c->id, c->title);
		add_table(p, &t, c->title);
		ok = write_csv(p, c->id, c);
	} else {
		buf_adds(&p->html, " None.</p>\n");
	}
	table_fini(&t);
	return ok;
}

/* ---- the worst offenders of the gates, with their checklists ---- */

/* Gate verdicts that count today: the newest of each result. */
static const char gated[] =
	"x.id IN(SELECT result FROM v_verdicts v WHERE kind = 'gate' "
	"AND verdict_id = (SELECT max(id) FROM verdicts w "
	"WHERE w.result = v.result AND w.kind = 'gate') "
	"AND (verdict <> 'pass' OR detail ->> 'investigate'))";

/* What the gate said of it, and against what. */
struct offender {
	const struct piece *base, *now;
	const char *verdict, *reason;
	double loss; /* the share */
	bool investigate;
};

static const struct piece *baseline_of(const struct pieces *bases,
				       const char *uuid)
{
	for (size_t i = 0; i < bases->n; i++)
		if (!strcmp(bases->v[i].baseline_uuid, uuid))
			return &bases->v[i];
	return NULL;
}

static bool read_offender(struct page *p, struct pieces *now,
			  const struct pieces *bases, const struct piece *of,
			  struct offender *o)
{
	bool ok = false;
	sqlite3_stmt *st = res_stmt(p->s->db, p->e,
		"SELECT verdict, reason, coalesce(detail ->> 'baseline', ''), "
		"coalesce(detail ->> 'loss', 0), "
		"coalesce(detail ->> 'investigate', 0) FROM verdicts "
		"WHERE result = ? AND kind = 'gate' ORDER BY id DESC LIMIT 1",
		"i", of->id);

	*o = (struct offender){ .now = of };
	if (st && res_step(p->s->db, st, &ok, p->e)) {
		o->verdict = arena_strdup(&now->mem, (const char *)
					  sqlite3_column_text(st, 0));
		o->reason = arena_strdup(&now->mem, (const char *)
					 sqlite3_column_text(st, 1));
		o->base = baseline_of(bases, (const char *)
				      sqlite3_column_text(st, 2));
		o->loss = sqlite3_column_double(st, 3);
		o->investigate = sqlite3_column_int(st, 4);
	}
	if (st)
		res_stmt_done(st);
	return st && ok;
}

/* The greatest loss first. */
static int by_loss(const void *a, const void *b)
{
	double la = ((const struct offender *)a)->loss;
	double lb = ((const struct offender *)b)->loss;

	return (la < lb) - (la > lb);
}

static void add_offender(struct page *p, const struct offender *o)
{
	const struct piece *base = o->base, *now = o->now;
	struct buf name = { 0 }, checks = { 0 };

	piece_title(now, &name);
	buf_printf(&p->html, "<h3%s>", !strcmp(o->verdict, "regress") ?
		   " class=\"regress\"" : "");
	buf_add_html(&p->html, name.data);
	buf_printf(&p->html, ", %s, run %lld</h3>\n<p>", now->metric,
		   (long long)now->facts->run);
	buf_add_html(&p->html, o->reason);
	buf_printf(&p->html, ": %.5g %s, baseline %.5g</p>\n", now->value,
		   now->unit, base->value);
	if (o->investigate) {
		gate_checklist(base, now, &checks);
		buf_adds(&p->html, "<pre tabindex=\"0\">");
		buf_add_html(&p->html, checks.data);
		buf_adds(&p->html, "</pre>\n");
	}
	buf_fini(&name);
	buf_fini(&checks);
}

static bool add_offenders(struct page *p)
{
	enum { MOST = 20 };
	struct pieces now = { 0 }, bases = { 0 };
	bool ok = pieces_of_results(p->s->db, &now, p->e, gated, "") &&
		  pieces_of_baselines(p->s->db, &bases, p->e, "active", "");
	struct offender *v = xcalloc(now.n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; ok && i < now.n; i++) {
		ok = read_offender(p, &now, &bases, &now.v[i], &v[n]);
		n += ok && v[n].base;
	}
	qsort(v, n, sizeof(*v), by_loss);
	if (n)
		buf_adds(&p->html, "<h2 id=\"gates\">Gates</h2>\n<p>Cases that "
			 "did not pass their baseline, or that changed by 5 % "
			 "or more; the worst first.</p>\n");
	for (size_t i = 0; i < n && i < MOST; i++)
		add_offender(p, &v[i]);
	free(v);
	pieces_fini(&now);
	pieces_fini(&bases);
	return ok;
}

/* ---- the summary ---- */

/* What one wants to know first: a question, and rows of an answer. */
static const struct answer {
	const char *what, *sql;
} answers[] = {
	{ "machine", "SELECT cpu || ', ' || cores || ' cores' FROM v_runs "
		     "WHERE cpu IS NOT NULL ORDER BY run DESC LIMIT 1" },
	{ "device", "SELECT device_name || ', ' || origin FROM v_runs WHERE "
		    "device_name IS NOT NULL ORDER BY origin <> 'hardware', "
		    "run DESC LIMIT 1" },
	{ "newest run", "SELECT 'run ' || run || ', ' || tool || ', ' || "
			"started || coalesce(', commit ' || git_commit, '') "
			"FROM v_runs ORDER BY run DESC LIMIT 1" },
	{ "best product", "SELECT printf('%.1f TFLOP/s, %.0f %% of %s, %s ', "
			  "g.value / 1e12, 100 * g.value / p.value, p.name, "
			  "g.origin) || g.params FROM v_results g "
			  "JOIN v_results p ON p.area = 'peak' AND p.metric = "
			  "'flops' AND p.name LIKE 'WMMA%' WHERE g.area = "
			  "'gemm' AND g.metric = 'flops' AND g.origin <> "
			  "'published' ORDER BY g.value DESC, p.value DESC "
			  "LIMIT 1" },
	{ "fastest decode", "SELECT printf('%.1f token/s, ', value) || name || "
			    "', ' || origin FROM v_results WHERE area = "
			    "'engine' AND unit = 'token/s' AND params ->> "
			    "'phase' = 'decode' ORDER BY value DESC LIMIT 1" },
	{ "gates", "SELECT CASE WHEN count(*) = 0 THEN 'none has run' ELSE "
		   "sum(verdict = 'pass') || ' of ' || count(*) || ' cases "
		   "pass' || iif(sum(verdict = 'regress'), ', ' || "
		   "sum(verdict = 'regress') || ' regressed', '') END FROM "
		   "(SELECT verdict, row_number() OVER (PARTITION BY area, "
		   "name, params, metric ORDER BY verdict_id DESC) AS newest "
		   "FROM v_verdicts WHERE kind = 'gate') WHERE newest = 1" },
};

static bool add_summary(struct page *p)
{
	bool ok = true;

	buf_adds(&p->html, "<h2 id=\"summary\">Summary</h2>\n<table>\n");
	for (size_t i = 0; ok && i < ARRAY_SIZE(answers); i++) {
		struct table t;

		table_init(&t, "answer");
		ok = res_query(p->s->db, &t, 6, p->e, answers[i].sql, "");
		if (ok && t.n_rows && t.row[0][0]) {
			buf_printf(&p->html, "<tr><th scope=\"row\">%s</th>"
				   "<td>", answers[i].what);
			buf_add_html(&p->html, t.row[0][0]);
			buf_adds(&p->html, "</td></tr>\n");
		}
		table_fini(&t);
	}
	buf_adds(&p->html, "</table>\n");
	return ok;
}

/* ---- the page ---- */

static bool add_figure(void *ctx, const char *name, const char *title)
{
	struct page *p = ctx;

	buf_printf(&p->html, "<figure><img src=\"%s.svg\" alt=\"%s\">"
		   "\n<figcaption>%s: "
		   "<a href=\"%s.svg\">SVG</a>, <a href=\"%s.pdf\">PDF</a>, "
		   "<a href=\"%s.png\">PNG</a>, <a href=\"%s.gp\">gnuplot "
		   "script with the data</a>"
		   "</figcaption></figure>\n", name, title, title, name, name,
		   name, name);
	return true;
}

static void add_nav(struct page *p)
{
	buf_adds(&p->html, "<nav><a href=\"#summary\">Summary</a>\n"
		 "<a href=\"#plots\">Plots</a>\n");
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		buf_printf(&p->html, "<a href=\"#%s\">%s</a>\n",
			   sections[i].id, sections[i].title);
	buf_adds(&p->html, "</nav>\n");
}

static bool add_all(struct page *p)
{
	buf_adds(&p->html, head);
	add_nav(p);
	bool ok = add_summary(p) && add_offenders(p);
	buf_adds(&p->html, "<h2 id=\"plots\">Plots</h2>\n");
	ok = ok && plot_each(p->s, p->dir, add_figure, p, p->e);
	for (size_t i = 0; ok && i < ARRAY_SIZE(sections); i++)
		ok = add_section(p, &sections[i]);
	buf_printf(&p->html, "<p>Made by t0-results %s.</p>\n</main>\n%s"
		   "</body>\n</html>\n", T0_VERSION, script);
	return ok;
}

bool res_cmd_report(struct cmd *c, struct err *e)
{
	struct page p = { .s = (struct show *)c, .dir = c->argv[0], .e = e };
	bool ok = add_all(&p) &&
		  write_file(&p, "index.html", p.html.data, p.html.len);
	if (ok)
		cmd_remark(c, "the report is %s/index.html", p.dir);
	buf_fini(&p.html);
	return ok;
}
