/*
 * results/cmd/cmd_gate.c - results against accepted baselines.
 *
 * What stops a change.
 */
#include "base/vec.h"
#include "results/cmd/cmd.h"

#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const answer_names[] = { "pass", "regress", "inconclusive",
					    "no data" };
static const enum res_answer stored_answer[] = { RES_PASS, RES_REGRESS,
						 RES_INCONCLUSIVE, RES_NODATA };

/* What the command line wants measured: a run, a commit, or the newest. */
struct wanted {
	int64_t run; /* 0 = any */
	char commit[80];
	int64_t dirty; /* -1 = any */
};

/* A baseline, and what stands against it. */
struct held {
	const struct piece *base;
	struct pieces found; /* newest first */
	size_t n;	     /* of them may be compared; moved to the front */
	struct mismatch why; /* if none may */
	struct measured was, now;
	struct gate_verdict v;
};

struct gating {
	struct show *s;
	struct wanted wanted;
	struct calibrations known;
	struct held *held; /* [n] */
	size_t n;
	int count[4]; /* by enum gate_answer */
};

/* ----------------------------------------------------------- selection -- */

static bool parse_wanted(struct show *s, struct wanted *w, struct err *e)
{
	const char *c = s->o.commit;

	*w = (struct wanted){ .dirty = -1 };
	if (c) {
		size_t len = strcspn(c, "+");
		snprintf(w->commit, sizeof(w->commit), "%.*s", (int)len, c);
		w->dirty = c[len] == '+';
	}
	return !s->cmd.argc ||
	       show_find_run(s->db, s->cmd.argv[0], &w->run, e);
}

/*
 * Results that may stand against the baseline, newest first: of the wanted run
 * and its series, of a commit, or of the newest build since the baseline.
 */
static bool load_candidates(struct show *s, const struct wanted *w,
			    const struct piece *base, struct pieces *out,
			    struct err *e)
{
	return pieces_of_results(s->db, out, e,
		"x.case_id = ?2 AND x.metric = ?3 AND r.uuid <> ?4 "
		"AND r.state = 'complete' AND (?1 = 0 OR " SIDE_OF_RUN ") "
		"AND (?5 = '' OR (substr(b.git_commit, 1, length(?5)) = ?5 "
		"OR substr(?5, 1, length(b.git_commit)) = b.git_commit)) "
		"AND (?6 < 0 OR b.dirty = ?6) AND NOT EXISTS(SELECT 1 FROM "
		"runs f WHERE f.uuid = ?4 AND (f.start_ns > r.start_ns OR "
		"(f.series = r.series AND f.side IS r.side))) "
		"AND r.id IN(SELECT run FROM results WHERE case_id = ?2 "
		"AND metric = ?3 ORDER BY run DESC LIMIT 400)",
		"iittti", w->run, base->case_id, base->metric,
		base->facts->uuid, w->commit, w->dirty);
}

/*
 * Those that are comparable, of the build of the newest of them; and of its
 * series, if it is of one.
 */
static void choose_candidates(struct held *h, const struct cli_list *allow)
{
	struct mismatch m;

	for (size_t i = 0; i < h->found.n; i++) {
		struct piece p = h->found.v[i];
		if (!pieces_comparable(h->base, &p, true, allow, &m)) {
			h->why = *h->why.field ? h->why : m;
			continue;
		}
		const struct facts *f = h->n ? h->found.v[0].facts : p.facts;
		if (strcmp(f->binary, p.facts->binary) ||
		    strcmp(f->series, p.facts->series) ||
		    strcmp(f->side, p.facts->side))
			continue;
		h->found.v[i] = h->found.v[h->n];
		h->found.v[h->n++] = p;
	}
}

/* ------------------------------------------------------------- storing -- */

static void put_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

static char *detail_of(const struct piece *base, const struct gate_verdict *v)
{
	json_t *o = json_object();

	json_object_set_new(o, "baseline", json_string(base->baseline_uuid));
	put_real(o, "change", v->effect.change.value);
	put_real(o, "change_lo", v->effect.change.lo);
	put_real(o, "change_hi", v->effect.change.hi);
	put_real(o, "loss", v->loss.value);
	put_real(o, "p", v->effect.p);
	put_real(o, "limit", v->limit);
	json_object_set_new(o, "investigate", json_boolean(v->investigate));
	char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

/* Asking again about the same pair adds no row. */
static bool store_verdict(struct show *s, const struct held *h, struct err *e)
{
	const struct piece *now = h->now.first;
	int64_t known = 0;
	char *detail = detail_of(h->base, &h->v);
	bool ok = res_query_int(s->db, &known, e,
		"SELECT count(*) FROM verdicts WHERE result = ? "
		"AND kind = 'gate' AND detail = ?", "it", now->id, detail);

	if (ok && !known)
		ok = res_verdict_add(s->db, &(struct res_verdict){
			.run = now->facts->run, .case_id = now->case_id,
			.result = now->id, .kind = RES_GATE,
			.answer = stored_answer[h->v.answer],
			.reason = h->v.reason, .detail = detail }, e);
	free(detail);
	return ok;
}

/* ------------------------------------------------------------ printing -- */

static const char data_columns[] =
	"verdict,case,metric,unit,#baseline,#now,#change,#change_lo,"
	"#change_hi,#p,#limit,#run,why,#processes,#detectable";
static const char text_columns[] =
	"verdict,case,metric,#baseline,#now,#change,#limit";

static void cell_num(struct table *t, int col, int digits, double v)
{
	if (isfinite(v))
		table_cell(t, col, "%.*g", digits, v);
}

static void cell_percent(struct table *t, int col, double v)
{
	if (isfinite(v))
		table_cell(t, col, "%+.2f%%", 100 * v);
}

static void text_row(struct table *t, const struct held *h, const char *name)
{
	const char *unit;
	const double by = unit_scale(h->was.median.value, h->base->unit, &unit);

	table_cell(t, 1, "%s", name);
	table_cell(t, 2, "%s (%s)", h->base->metric, unit);
	cell_num(t, 3, 4, h->was.median.value * by);
	table_cell(t, 6, "%.3g%%", 100 * h->v.limit);
	if (!h->n)
		return;
	cell_num(t, 4, 4, h->now.median.value * by);
	cell_percent(t, 5, h->v.effect.change.value);
}

static void data_row(struct table *t, const struct held *h, const char *name)
{
	const struct res_interval *c = &h->v.effect.change;

	table_cell(t, 1, "%s", name);
	table_cell(t, 2, "%s", h->base->metric);
	table_cell(t, 3, "%s", h->base->unit);
	cell_num(t, 4, 17, h->was.median.value);
	cell_num(t, 10, 17, h->v.limit);
	table_cell(t, 12, "%s%s", h->v.reason,
		   h->v.investigate ? "; investigate" : "");
	if (!h->n)
		return;
	cell_num(t, 5, 17, h->now.median.value);
	cell_num(t, 6, 17, c->value);
	cell_num(t, 7, 17, c->lo);
	cell_num(t, 8, 17, c->hi);
	cell_num(t, 9, 17, h->v.effect.p);
	table_cell(t, 11, "%lld", (long long)h->now.first->facts->run);
	table_cell(t, 13, "%zu", h->now.n);
	cell_num(t, 14, 17, h->v.effect.detectable);
}

/* A terminal shows what did not pass, and the rest if it is little. */
enum { FEW_ROWS = 12 };

static bool is_shown(const struct gating *g, const struct held *h)
{
	return !show_is_text(g->s) || g->s->o.verbose ||
	       g->n <= FEW_ROWS || h->v.answer != GATE_PASS;
}

static bool print_rows(struct gating *g, struct err *e)
{
	bool text = show_is_text(g->s);
	struct buf name = { 0 };
	struct table t;

	table_init(&t, text ? text_columns : data_columns);
	for (size_t i = 0; i < g->n; i++) {
		const struct held *h = &g->held[i];
		if (!is_shown(g, h))
			continue;
		buf_reset(&name);
		(text ? piece_title : piece_name)(h->base, &name);
		table_row(&t);
		table_cell(&t, 0, "%s", answer_names[h->v.answer]);
		(text ? text_row : data_row)(&t, h, name.data);
	}
	bool ok = (text && !t.n_rows) || cmd_table(&g->s->cmd, &t, e);
	table_fini(&t);
	buf_fini(&name);
	return ok;
}

/* Below the table, where they need not be cut. */
static void print_reasons(struct gating *g)
{
	FILE *out = g->s->cmd.out;

	for (size_t i = 0; i < g->n; i++) {
		const struct held *h = &g->held[i];
		struct buf name = { 0 };
		if (h->v.answer == GATE_PASS && !g->s->o.verbose)
			continue;
		piece_title(h->base, &name);
		fprintf(out, "%s: %s %s: %s\n", answer_names[h->v.answer],
			name.data, h->base->metric, h->v.reason);
		buf_fini(&name);
	}
}

/* The case that changed most: the others were measured by the same processes. */
static void print_checks(struct gating *g)
{
	const struct held *most = NULL;
	struct buf out = { 0 };

	for (size_t i = 0; i < g->n; i++) {
		const struct held *h = &g->held[i];
		if (h->v.investigate && h->n &&
		    (!most || fabs(h->v.loss.value) >
				      fabs(most->v.loss.value)))
			most = h;
	}
	if (!most)
		return;
	if (g->s->o.verbose) {
		buf_adds(&out, "\ninvestigate ");
		piece_name(most->base, &out);
		buf_printf(&out, " %s, which changed most (%+.3g %%):\n",
			   most->base->metric,
			   100 * most->v.effect.change.value);
		gate_checklist(most->base, most->now.first, &out);
	} else {
		buf_adds(&out, "--verbose says what to look at\n");
	}
	fputs(out.data, g->s->cmd.out);
	buf_fini(&out);
}

static void print_method(struct gating *g)
{
	size_t family = 0;

	for (size_t i = 0; i < g->n; i++)
		family += g->held[i].n && !g->held[i].v.effect.exact;
	if (!family)
		return;
	fold_printf(g->s->cmd.out, 2,
		    "method: rank test of processes; %.3g shared by "
		    "%zu rows (Bonferroni)\n",
		    FAMILY_ALPHA, family);
	for (size_t i = 0; i < g->n; i++) {
		if (!g->held[i].n || g->held[i].v.effect.exact)
			continue;
		calibrations_print(&g->known, &g->held[i].found,
				   g->s->cmd.out);
		return;
	}
}

static bool print_gating(struct gating *g, struct err *e)
{
	struct show *s = g->s;
	bool text = show_is_text(s);

	if (text)
		fprintf(s->cmd.out, "%s: %d pass, %d regress, %d inconclusive, "
			"%d no data\n\n",
			s->cmd.status ? "NOT PASSED" : "passed", g->count[0],
			g->count[1], g->count[2], g->count[3]);
	bool ok = print_rows(g, e);
	if (ok && text) {
		print_reasons(g);
		print_checks(g);
		print_method(g);
	}
	if (!g->n)
		cmd_remark(&s->cmd, "no baseline %s that was measured: nothing "
			   "was gated, which is no pass; see `t0-results "
			   "baseline accept`", s->o.any_host ? "is accepted" :
			   "of this machine (--any-host for others) is "
			   "accepted");
	return ok;
}

/* ---------------------------------------------------------------- gate -- */

/* Whether these are this machine's cannot be told. */
static bool warn_of_algorithms(struct show *s, int64_t host, struct err *e)
{
	int64_t n;

	if (!res_query_int(s->db, &n, e, "SELECT count(*) FROM v_baselines v, "
			   "hosts h WHERE h.id = ? AND active AND "
			   "instr(v.machine, ':') > 0 AND "
			   "substr(v.machine, 1, instr(v.machine, ':')) <> "
			   "substr(h.machine, 1, instr(h.machine, ':'))", "i",
			   host))
		return false;
	if (n && !s->cmd.quiet)
		fold_printf(
			stderr, 2,
			"t0-results: warning: %lld baselines name "
			"their machine by a hash of another algorithm than "
			"today's; whether it is this one cannot be told, and "
			"nothing is gated by them: measure and accept again\n",
			(long long)n);
	return true;
}

/* This machine's own, unless --any-host: others cannot be measured here. */
static bool load_baselines(struct show *s, struct pieces *p, struct err *e)
{
	int64_t host = 0;

	if (s->o.any_host)
		return pieces_of_baselines(s->db, p, e, "active", "");
	return res_host_self(s->db, &host, e) &&
	       warn_of_algorithms(s, host, e) &&
	       pieces_of_baselines(s->db, p, e, "active AND machine = "
				   "(SELECT machine FROM hosts WHERE id = ?)",
				   "i", host);
}

static int by_measurement(const void *a, const void *b)
{
	return piece_order(a, b);
}

static bool is_wanted(const struct show_opts *o, const struct piece *p)
{
	struct buf name = { 0 };

	if (!o->only)
		return true;
	buf_printf(&name, "%s/%s", p->area, p->name);
	bool wanted = !strcmp(o->only, p->name) ||
		      !fnmatch(o->only, name.data, 0);
	buf_fini(&name);
	return wanted;
}

static void held_fini(struct held *h)
{
	pieces_fini(&h->found);
	measured_fini(&h->was);
	measured_fini(&h->now);
}

/*
 * A gate of one run or commit holds what that has measured, and what a baseline
 * requires; without either, everything that was accepted.
 */
static bool hold_one(struct gating *g, const struct piece *base, struct err *e)
{
	const struct wanted *w = &g->wanted;
	bool narrow = w->run || *w->commit;
	struct held h = { .base = base };

	if (!is_wanted(&g->s->o, base))
		return true;
	if (!load_candidates(g->s, w, base, &h.found, e)) {
		pieces_fini(&h.found);
		return false;
	}
	if (narrow && !h.found.n && !base->required) {
		pieces_fini(&h.found);
		return true;
	}
	choose_candidates(&h, &g->s->o.allow);
	measured_init(&h.was, base, 1);
	measured_init(&h.now, h.found.v, h.n);
	g->held[g->n++] = h;
	return true;
}

static void judge_all(struct gating *g)
{
	size_t family = 0;

	for (size_t i = 0; i < g->n; i++)
		family += g->held[i].n && !(g->held[i].was.exact &&
					    g->held[i].now.exact);
	for (size_t i = 0; i < g->n; i++) {
		struct held *h = &g->held[i];
		gate_judge(&h->was, &h->now,
			   FAMILY_ALPHA / (double)(family ? family : 1),
			   calibrated_drift(&g->known, h->base), &h->v);
		if (!h->n && h->found.n)
			snprintf(h->v.reason, sizeof(h->v.reason),
				 "nothing comparable was measured: %s is "
				 "%.60s, the baseline's %.60s%s",
				 h->why.field, h->why.b, h->why.a,
				 h->why.remedy);
		g->count[h->v.answer]++;
	}
}

static bool store_all(struct gating *g, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < g->n; i++)
		if (g->held[i].n)
			ok = store_verdict(g->s, &g->held[i], e);
	return ok;
}

bool res_cmd_gate(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct gating g = { .s = s };
	struct pieces bases = { 0 };
	bool ok = parse_wanted(s, &g.wanted, e) &&
		  load_baselines(s, &bases, e) &&
		  calibrations_load(s->db, &g.known, e);

	if (bases.n)
		qsort(bases.v, bases.n, sizeof(*bases.v), by_measurement);
	g.held = xcalloc(bases.n + 1, sizeof(*g.held));
	for (size_t i = 0; ok && i < bases.n; i++)
		ok = hold_one(&g, &bases.v[i], e);
	if (ok) {
		judge_all(&g);
		c->status = g.n && g.count[GATE_PASS] == (int)g.n ? EXIT_YES :
								   EXIT_NO;
		ok = (s->o.dry_run || store_all(&g, e)) &&
		     print_gating(&g, e);
	}
	for (size_t i = 0; i < g.n; i++)
		held_fini(&g.held[i]);
	free(g.held);
	calibrations_fini(&g.known);
	pieces_fini(&bases);
	return ok;
}
