/*
 * compiler/cmd/cmd_sim_html.c - a kernel as a page: what limits it, what would
 * help, its waves over time, and its code with where they wait.  The page is
 * one file and asks for nothing else.
 */
#include <math.h>
#include <string.h>

#include "compiler/cmd/cmd_sim.h"
#include "isa/text/text.h"

/* What is too wide for a window scrolls, by keys too. */
#define SCROLL(name) \
	"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" \
	name "\">"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<link rel=\"icon\" href=\"data:,\">\n<style>\n"
	":root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; "
	"--dim: #595959; --rule: #d0d0d0; --heat: 213, 94, 0; "
	"--link: #0b57a4; }\n"
	"@media (prefers-color-scheme: dark) { :root { --ink: #ececec; "
	"--paper: #161616; --dim: #b0b0b0; --rule: #444; --link: #8ec5ff; } }\n"
	"body { font: 15px/1.5 sans-serif; color: var(--ink); background: "
	"var(--paper); max-width: 1200px; margin: 1.5em auto; padding: 0 1em; "
	"}\n"
	"a { color: var(--link); } h1 { font-size: 1.5em; } h2 { font-size: "
	"1.2em; margin-top: 1.6em; }\n"
	".dim { color: var(--dim); }\n"
	"table { border-collapse: collapse; } th, td { padding: .15em .6em; "
	"border-bottom: 1px solid var(--rule); text-align: left; "
	"vertical-align: top; }\n"
	".n { text-align: right; font-variant-numeric: tabular-nums; "
	"white-space: nowrap; }\n"
	"nav a { display: inline-block; margin-right: 1em; line-height: 28px; }\n"
	".scroll { overflow-x: auto; } pre, code, .code td { font: 13px/1.35 "
	"monospace; }\n"
	".code td { border: 0; white-space: pre; } "
	".code tr:target, .code tr:hover { outline: 2px solid var(--link); }\n"
	".src td { color: var(--dim); padding-top: .5em; }\n"
	".loop { border-left: 3px solid #0072b2 !important; }\n"
	"meter { width: 8em; } "
	"@media (max-width: 600px) { meter { width: 3em; } }\n"
	"@media print { body { max-width: none; } }\n"
	"</style>\n";

/* ---- what is said above the code ---- */

static void add_fact(struct buf *o, const char *name, const char *value)
{
	buf_printf(o, "<tr><th scope=\"row\">%s</th><td>", name);
	buf_add_html(o, value);
	buf_adds(o, "</td></tr>\n");
}

static void add_facts(const struct show_sim *s, struct buf *o)
{
	const struct sim_result *r = s->r;
	struct buf text = { 0 };

	buf_adds(o, "<table>\n");
	buf_printf(&text, "%llu cycles, ", (unsigned long long)r->cycles);
	unit_print(&text, r->time_s, "s");
	buf_printf(&text, " at %.0f MHz, of one workgroup processor",
		   r->clock_mhz);
	add_fact(o, "time", text.data);
	if (s->gpu) {
		buf_reset(&text);
		unit_print(&text, s->gpu->time_s, "s");
		buf_printf(&text, " for %llu workgroups, %d at once on each of "
			   "%d WGPs", (unsigned long long)s->gpu->groups,
			   s->gpu->groups_per_wgp, s->gpu->wgps);
		add_fact(o, "whole chip", text.data);
	}
	buf_reset(&text);
	show_limit(r, &text);
	add_fact(o, "limited by", text.data);
	buf_reset(&text);
	buf_printf(&text, "%d of 16 waves a SIMD, limited by %s", r->slots,
		   r->occupancy_limit);
	add_fact(o, "occupancy", text.data);
	buf_adds(o, "</table>\n");
	buf_fini(&text);
}

static void add_gains(const struct show_sim *s, struct buf *o)
{
	buf_adds(o, "<h2 id=\"help\">What would help</h2>\n");
	if (!s->n_gains) {
		buf_adds(o, "<p>None of the changes that the simulator can try "
			 "makes it one percent faster.</p>\n");
		return;
	}
	buf_adds(o, "<p class=\"dim\">Simulated again, with one flaw mended at "
		 "a time.</p>\n" SCROLL("what would help")
		 "<table>\n<tr>"
		 "<th scope=\"col\">flaw</th><th scope=\"col\" class=\"n\">"
		 "times as fast</th><th scope=\"col\">what it is</th>"
		 "<th scope=\"col\">what to do</th></tr>\n");
	for (int i = 0; i < s->n_gains; i++) {
		const struct sim_change *c = s->gain[i].change;

		buf_printf(o, "<tr><th scope=\"row\">%s</th><td class=\"n\">"
			   "%.2f</td><td>%s</td><td>%s</td></tr>\n", c->name,
			   s->gain[i].times, c->what, c->how);
	}
	buf_adds(o, "</table></div>\n");
}

static void add_share(struct buf *o, const char *name, const char *text,
		      double share)
{
	buf_printf(o, "<tr><th scope=\"row\">%s</th><td class=\"n\">%.1f %%"
		   "</td><td><meter aria-label=\"share of %s\" min=\"0\" max=\"1\" value=\"%.4f\">"
		   "%.1f %%</meter></td><td>%s</td></tr>\n", name, 100 * share,
		   name, fmin(share, 1), 100 * share, text);
}

static void add_shares(const struct show_sim *s, struct buf *o)
{
	const struct sim_result *r = s->r;
	uint64_t all = 0;

	buf_adds(o, "<h2 id=\"pipes\">Pipes</h2>\n" SCROLL("pipes")
		 "<table>\n");
	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		if (r->busy[p] && p != SIM_PIPE_SPECIAL)
			add_share(o, sim_pipe_name(p), "", r->share[p]);
	buf_adds(o, "</table></div>\n<h2 id=\"waits\">Cycles of the waves</h2>"
		 "\n" SCROLL("cycles of the waves") "<table>\n");
	for (int k = 0; k < SIM_STALL_COUNT; k++)
		all += r->stall[k];
	for (int k = 0; k < SIM_STALL_COUNT; k++)
		if (r->stall[k])
			add_share(o, sim_stall_name(k), sim_stall_text(k),
				  (double)r->stall[k] / (double)all);
	buf_adds(o, "</table></div>\n");
}

/* ---- the code ---- */

static uint64_t line_cycles(const struct sim_line *l)
{
	uint64_t n = 0;

	for (int k = 0; k < SIM_STALL_COUNT; k++)
		n += l->stall[k];
	return n;
}

/* Backward branches around the line: how deep in loops it is. */
static int loop_depth(const struct sim_result *r, int i)
{
	int depth = 0;

	for (int k = i; k < r->n_lines; k++) {
		uint64_t to;

		depth += show_branch(&r->line[k], &to) &&
			 to <= r->line[i].pc && r->line[k].pc >= to;
	}
	return depth;
}

static void add_source_row(const char *file, int line, struct buf *o)
{
	buf_adds(o, "<tr class=\"src\"><td colspan=\"5\">");
	buf_add_html(o, file);
	buf_printf(o, ":%d</td></tr>\n", line);
}

/* The line that the instruction was made of, where that is another one. */
static void add_source(const struct show_sim *s, const struct sim_line *l,
		       const char **file, int *line, struct buf *o)
{
	const char *f;
	int n;

	if (!s->lines || !co_lines_find(s->lines, l->pc, &f, &n) ||
	    (n == *line && *file && !strcmp(f, *file)))
		return;
	add_source_row(f, n, o);
	*file = f;
	*line = n;
}

static void add_line(const struct show_sim *s, int i, double share,
		     struct buf *o)
{
	const struct isa_target t = { ISA_GFX11, s->src->wave_size, false };
	const struct sim_line *l = &s->r->line[i];
	const int depth = loop_depth(s->r, i);
	char text[ISA_TEXT_MAX], why[96];
	uint64_t to;

	isa_print(&t, &l->in, text, sizeof(text));
	show_reasons(l, why, sizeof(why));
	buf_printf(o, "<tr id=\"x%llx\"><td class=\"n\"><a href=\"#x%llx\">%llx"
		   "</a></td><td class=\"n\">%llu</td><td class=\"n\" "
		   "style=\"background: rgba(var(--heat), %.3f)\">%.1f %%</td>"
		   "<td>%s</td><td%s>%*s",
		   (unsigned long long)(l->pc - s->src->code_va),
		   (unsigned long long)(l->pc - s->src->code_va),
		   (unsigned long long)(l->pc - s->src->code_va),
		   (unsigned long long)l->issues, fmin(0.45, 1.5 * share),
		   100 * share, why, depth ? " class=\"loop\"" : "", 2 * depth,
		   "");
	buf_add_html(o, text);
	if (show_branch(l, &to) && to <= l->pc)
		buf_printf(o, "  <a href=\"#x%llx\">loop, %llu times</a>",
			   (unsigned long long)(to - s->src->code_va),
			   (unsigned long long)l->issues);
	if (l->conflicts)
		buf_printf(o, "  <span class=\"dim\">bank conflicts: %.1f "
			   "cycles</span>",
			   (double)l->conflicts / (double)l->issues);
	buf_adds(o, "</td></tr>\n");
}

static void add_code(const struct show_sim *s, struct buf *o)
{
	const char *file = NULL;
	uint64_t all = 0;
	int line = 0;

	for (int i = 0; i < s->r->n_lines; i++)
		all += line_cycles(&s->r->line[i]);
	buf_adds(o, "<h2 id=\"code\">Code</h2>\n<p class=\"dim\">Share of all "
		 "cycles of the waves; waits in cycles for each execution; a "
		 "bar marks loops.</p>\n" SCROLL("code") "<table class=\"code\">\n"
		 "<tr><th scope=\"col\" class=\"n\">offset</th><th scope=\"col\" "
		 "class=\"n\">issues</th><th scope=\"col\" class=\"n\">share"
		 "</th><th scope=\"col\">waits</th><th scope=\"col\">"
		 "instruction</th></tr>\n");
	for (int i = 0; i < s->r->n_lines; i++) {
		const struct sim_line *l = &s->r->line[i];

		add_source(s, l, &file, &line, o);
		add_line(s, i, all ? (double)line_cycles(l) / (double)all : 0,
			 o);
	}
	buf_adds(o, "</table></div>\n");
}

bool show_html(const struct show_sim *s, const char *path, struct err *e)
{
	struct buf o = { 0 }, waves = { 0 };

	buf_adds(&o, head);
	buf_adds(&o, "<title>");
	buf_add_html(&o, s->kernel);
	buf_adds(&o, ", simulated</title>\n</head>\n<body>\n<main>\n<h1>");
	buf_add_html(&o, s->kernel);
	buf_adds(&o, "</h1>\n<p class=\"dim\">");
	buf_add_html(&o, s->file);
	buf_printf(&o, ", simulated by t0-sim %s, not measured.</p>\n"
		   "<nav><a href=\"#help\">What would help</a> "
		   "<a href=\"#pipes\">Pipes</a> <a href=\"#waits\">Waits</a> "
		   "<a href=\"#time\">Waves over time</a> "
		   "<a href=\"#code\">Code</a></nav>\n", T0_VERSION);
	add_facts(s, &o);
	add_gains(s, &o);
	add_shares(s, &o);
	show_waves(s, 110, &waves);
	buf_adds(&o, "<h2 id=\"time\">Waves over time</h2>\n"
		 SCROLL("waves over time") "<pre>");
	buf_add_html(&o, waves.data ? waves.data : "");
	buf_adds(&o, "</pre></div>\n");
	add_code(s, &o);
	buf_adds(&o, "</main>\n</body>\n</html>\n");
	bool ok = file_write_atomic(path, o.data, o.len, e);
	buf_fini(&waves);
	buf_fini(&o);
	return ok;
}
