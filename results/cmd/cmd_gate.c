/*
 * results/cmd/cmd_gate.c - results against accepted baselines.
 *
 * What stops a change.
 */
#include "results/cmd/cmd.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const answer_names[] = { "pass", "regress", "inconclusive",
					    "no data" };
static const enum res_answer stored_answer[] = { RES_PASS, RES_REGRESS,
						 RES_INCONCLUSIVE, RES_NODATA };

/* ------------------------------------------------------------- judging -- */

static void set_reason(struct gate_verdict *v, enum gate_answer a,
		       const char *fmt, ...) T0_PRINTF(3, 4);
static void set_reason(struct gate_verdict *v, enum gate_answer a,
		       const char *fmt, ...)
{
	va_list ap;

	v->answer = a;
	va_start(ap, fmt);
	vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
	va_end(ap);
}

/* The share lost: positive is bad, whichever way the metric counts. */
static double loss_of(const char *better, double change)
{
	if (!strcmp(better, "none"))
		return fabs(change);
	return strcmp(better, "higher") ? change : -change;
}

static bool is_pass(const char *verdict)
{
	return verdict && !strcmp(verdict, "pass");
}

static bool is_text(const struct piece *p)
{
	return !strcmp(p->unit, "token/s");
}

/* A verdict of the baseline that the new result lacks or fails. */
static bool check_verdict(const char *what, const char *was, const char *is,
			  struct gate_verdict *v)
{
	if (is && (!strcmp(is, "fail") || !strcmp(is, "regress")))
		set_reason(v, GATE_REGRESS, "the %s check says %s", what, is);
	else if (is_pass(was) && !is_pass(is))
		set_reason(v, GATE_NODATA,
			   "no passing %s check, which the baseline "
			   "had: %s",
			   what, is ? is : "it did not run");
	else
		return true;
	return false;
}

static bool has_data(const struct piece *base, const struct piece *now,
		     struct gate_verdict *v)
{
	if (!now)
		set_reason(v, GATE_NODATA, "nothing was measured");
	else if (check_verdict("correctness", base->correct, now->correct, v) &&
		 check_verdict("coherence", base->coherent, now->coherent, v))
		return true;
	return false;
}

/* A gain counts only for output that was checked. */
static void judge_gain(const struct piece *now, struct gate_verdict *v)
{
	if (!is_pass(now->correct))
		set_reason(v, GATE_INCONCLUSIVE,
			   "%.3g %% better, but no correctness "
			   "check passed",
			   -100 * v->loss);
	else if (is_text(now) && !is_pass(now->coherent))
		set_reason(v, GATE_INCONCLUSIVE,
			   "%.3g %% better, but no coherence "
			   "check passed",
			   -100 * v->loss);
	else
		set_reason(v, GATE_PASS, "%.3g %% better, and correct",
		    -100 * v->loss);
}

static void judge_effect(const struct piece *base, const struct piece *now,
			 struct gate_verdict *v)
{
	const struct effect *f = &v->effect;
	bool proven = f->p < GATE_ALPHA;
	double worst = fmax(loss_of(base->better, f->change.lo),
			    loss_of(base->better, f->change.hi));

	if (proven && v->loss >= v->threshold)
		set_reason(v, GATE_REGRESS,
			   "%.3g %% worse (p %.2g), more than the "
			   "%.3g %% that this case may lose",
			   100 * v->loss, f->p, 100 * v->threshold);
	else if (proven && v->loss <= -v->threshold)
		judge_gain(now, v);
	else if (!(worst < v->threshold))
		set_reason(v, GATE_INCONCLUSIVE, "a loss of %.3g %% cannot be "
		    "excluded: the interval reaches %.3g %%; take more "
		    "samples", 100 * v->threshold, 100 * worst);
	else
		set_reason(v, GATE_PASS, "no loss of %.3g %%",
			   100 * v->threshold);
}

void gate_judge(const struct piece *base, const struct piece *now,
		struct gate_verdict *v)
{
	double mad = base->n_samples ? res_relative_mad(base->samples,
							base->n_samples) : 0;

	*v = (struct gate_verdict){ .threshold = fmax(GATE_LEAST, 3 * mad),
				    .loss = NAN };
	if (now) {
		v->effect = effect_of(base, now);
		v->loss = loss_of(base->better, v->effect.change.value);
		v->investigate = fabs(v->loss) >= GATE_INVESTIGATE;
	}
	if (!has_data(base, now, v))
		return;
	if (!v->effect.tested)
		set_reason(v, GATE_INCONCLUSIVE,
			   "%zu samples against the baseline's "
			   "%zu: a verdict needs %d of each",
			   now->n_samples, base->n_samples, RES_MIN_SAMPLES);
	else
		judge_effect(base, now, v);
}

/* ----------------------------------------------------------- checklist -- */

#define OUT "ruled out: "
#define IN "SUSPECT: "
#define UNKNOWN "not recorded: "

/* Do the first samples differ from the rest?  Then it was not warm. */
static void check_warm_up(const struct piece *now, struct buf *out)
{
	size_t n = now->n_samples, head = n / 4;

	if (head < 2) {
		buf_printf(out, UNKNOWN "%zu samples are too few to tell", n);
		return;
	}
	double first = res_median(now->samples, head).value;
	double rest = res_median(now->samples + head, n - head).value;
	double drift = rest != 0 ? first / rest - 1 : 0;
	buf_printf(out, "%sthe first %zu samples lie %+.2g %% off the rest",
		   fabs(drift) < GATE_LEAST ? OUT : IN, head, 100 * drift);
}

static void check_clocks(const struct piece *base, const struct piece *now,
			 struct buf *out)
{
	double was = base->clock_hz, is = now->clock_hz;

	if (isnan(was) || isnan(is)) {
		buf_adds(out, UNKNOWN "the clock of one side is not known");
		return;
	}
	buf_printf(out, "%s%.4g MHz, was %.4g MHz (%+.2g %%)",
		   fabs(is / was - 1) < 0.01 ? OUT : IN, is / 1e6, was / 1e6,
		   100 * (is / was - 1));
}

/* A key of the run's conditions, else of its inputs. */
static char *find_recorded(const struct piece *p, const char *key)
{
	const char *const where[] = { p->facts->conditions, p->facts->inputs,
				      p->params };
	char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_SIZE(where); i++) {
		json_t *j = json_loads(where[i], 0, NULL);
		json_t *v = json_object_get(j, key);
		text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
		json_decref(j);
	}
	return text;
}

static void check_occupancy(const struct piece *base, const struct piece *now,
			    struct buf *out)
{
	char *was = find_recorded(base, "occupancy"), *is = find_recorded(now,
								"occupancy");
	if (!was || !is)
		buf_adds(out, UNKNOWN "no condition \"occupancy\" in both "
			 "runs");
	else
		buf_printf(out, "%s%s, was %s", strcmp(was, is) ? IN : OUT, is,
			   was);
	free(was);
	free(is);
}

static bool list_change(const char *what, const char *was, const char *is,
			struct buf *out)
{
	was = was ? was : "absent";
	is = is ? is : "absent";
	if (!strcmp(was, is))
		return false;
	buf_printf(out, "%s%s: %s, was %s", out->len ? "; " : "", what, is,
		   was);
	return true;
}

static void list_or(struct buf *found, const char *none, struct buf *out)
{
	if (found->len)
		buf_printf(out, IN "%s", found->data);
	else
		buf_printf(out, OUT "%s", none);
	buf_fini(found);
}

static void check_flags(const struct piece *base, const struct piece *now,
			struct buf *out)
{
	const struct facts *a = base->facts, *b = now->facts;
	struct buf found = { 0 };

	list_change("inputs", a->inputs, b->inputs, &found);
	list_change("compiler", a->compiler, b->compiler, &found);
	list_change("flags", a->flags, b->flags, &found);
	list_or(&found, "inputs with their hashes, compiler and flags are the "
		"same", out);
}

static void check_environment(const struct piece *base,
			      const struct piece *now, struct buf *out)
{
	const struct facts *a = base->facts, *b = now->facts;
	struct buf found = { 0 };

	list_change("kernel", a->kernel, b->kernel, &found);
	list_change("driver", a->driver, b->driver, &found);
	list_change("firmware", a->firmware, b->firmware, &found);
	list_change("cpu", a->cpu, b->cpu, &found);
	list_change("conditions", a->conditions, b->conditions, &found);
	list_or(&found, "kernel, driver, firmware, processor and conditions "
		"are the same", out);
}

static void check_code(const struct piece *base, const struct piece *now,
		       struct buf *out)
{
	const struct facts *a = base->facts, *b = now->facts;

	if (!strcmp(a->binary, b->binary))
		buf_adds(out, OUT "the same binary, so it is not the code");
	else if (!strcmp(a->commit, b->commit) &&
		 !res_is_same_algorithm(a->binary, b->binary))
		buf_printf(out, IN "commit %s%s again, but the two binaries "
			   "were hashed by different algorithms: measure the "
			   "older again to tell whether they are one",
			   b->commit, b->dirty ? " (with changes)" : "");
	else if (!strcmp(a->commit, b->commit))
		buf_printf(out, IN "another binary of the same commit %s%s",
			   b->commit, b->dirty ? " (with changes)" : "");
	else
		buf_printf(out, IN "run scripts/bisect-regression '%s/%s' %s "
			   "%s", now->area, now->name, a->commit, b->commit);
}

void gate_checklist(const struct piece *base, const struct piece *now,
		    const struct gate_verdict *v, struct buf *out)
{
	buf_printf(out, "investigate: a change of %+.2g %%\n",
		   100 * v->effect.change.value);
	buf_adds(out, "  1. warm-up      ");
	check_warm_up(now, out);
	buf_adds(out, "\n  2. clocks       ");
	check_clocks(base, now, out);
	buf_adds(out, "\n  3. occupancy    ");
	check_occupancy(base, now, out);
	buf_adds(out, "\n  4. flags/prompt ");
	check_flags(base, now, out);
	buf_adds(out, "\n  5. environment  ");
	check_environment(base, now, out);
	buf_adds(out, "\n  6. bisect       ");
	check_code(base, now, out);
	buf_addc(out, '\n');
}

/* ----------------------------------------------------------- selection -- */

/* What the command line wants measured: a run, a commit, or the newest. */
struct wanted {
	int64_t run; /* 0 = any */
	char commit[80];
	int64_t dirty; /* -1 = any */
};

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

/* Results that may stand against the baseline, newest first. */
static bool load_candidates(struct show *s, const struct wanted *w,
			    const struct piece *base, struct pieces *out,
			    struct err *e)
{
	return pieces_of_results(s->db, out, e,
		"x.case_id = ? AND x.metric = ? AND r.uuid <> ? "
		"AND r.state = 'complete' AND (?4 = 0 OR r.id = ?4) "
		"AND (?5 = '' OR (substr(b.git_commit, 1, length(?5)) = ?5 "
		"OR substr(?5, 1, length(b.git_commit)) = b.git_commit)) "
		"AND (?6 < 0 OR b.dirty = ?6) AND r.id > coalesce((SELECT id "
		"FROM runs WHERE uuid = ?3), 0) AND r.id IN(SELECT run FROM "
		"results WHERE case_id = ?1 AND metric = ?2 "
		"ORDER BY run DESC LIMIT 100)",
		"itsiti", base->case_id, base->metric, base->facts->uuid,
		w->run, w->commit, w->dirty);
}

/* The newest one that may be compared; else why the newest may not. */
static const struct piece *choose_candidate(struct show *s,
					    const struct piece *base,
					    const struct pieces *p,
					    struct mismatch *m)
{
	struct mismatch first = { 0 };

	*m = first;
	for (size_t i = 0; i < p->n; i++) {
		if (pieces_comparable(base, &p->v[i], true, &s->o.allow, m))
			return &p->v[i];
		if (!i)
			first = *m;
	}
	*m = first;
	return NULL;
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
	put_real(o, "p", v->effect.p);
	put_real(o, "threshold", v->threshold);
	json_object_set_new(o, "investigate", json_boolean(v->investigate));
	char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

/* Asking again about the same pair adds no row. */
static bool store_verdict(struct show *s, const struct piece *base,
		  const struct piece *now, const struct gate_verdict *v,
		  struct err *e)
{
	int64_t known = 0;
	char *detail = detail_of(base, v);
	bool ok = res_query_int(s->db, &known, e,
		"SELECT count(*) FROM verdicts WHERE result = ? "
		"AND kind = 'gate' AND detail = ?", "it", now->id, detail);

	if (ok && !known)
		ok = res_verdict_add(s->db, &(struct res_verdict){
			.run = now->facts->run, .case_id = now->case_id,
			.result = now->id, .kind = RES_GATE,
			.answer = stored_answer[v->answer],
			.reason = v->reason, .detail = detail }, e);
	free(detail);
	return ok;
}

/* ------------------------------------------------------------ printing -- */

static const char data_columns[] =
	"verdict,case,metric,unit,#baseline,#now,#change,#change_lo,"
	"#change_hi,#p,#threshold,#run,why";
/* The reasons stand below, where they need not be cut. */
static const char text_columns[] =
	"verdict,case,metric,#baseline,#now,#change,#p,#limit";

struct gating {
	struct show *s;
	struct wanted wanted;
	struct table table;
	struct buf reasons, checks; /* below the table */
	int count[4]; /* by enum gate_answer */
};

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

static void text_row(struct gating *g, const struct piece *base,
		     const struct piece *now, const struct gate_verdict *v,
		     const char *name)
{
	struct table *t = &g->table;

	table_cell(t, 1, "%s", name);
	table_cell(t, 2, "%s", base->metric);
	cell_num(t, 3, 4, base->value);
	cell_percent(t, 7, v->threshold);
	if (v->answer != GATE_PASS || v->investigate)
		buf_printf(&g->reasons, "%s: %s %s: %s\n",
			   answer_names[v->answer], name, base->metric,
			   v->reason);
	if (!now)
		return;
	cell_num(t, 4, 4, now->value);
	cell_percent(t, 5, v->effect.change.value);
	cell_num(t, 6, 2, v->effect.p);
}

static void data_row(struct gating *g, const struct piece *base,
		     const struct piece *now, const struct gate_verdict *v,
		     const char *name)
{
	struct table *t = &g->table;
	const struct res_interval *c = &v->effect.change;

	table_cell(t, 1, "%s", name);
	table_cell(t, 2, "%s", base->metric);
	table_cell(t, 3, "%s", base->unit);
	cell_num(t, 4, 17, base->value);
	cell_num(t, 10, 17, v->threshold);
	table_cell(t, 12, "%s%s", v->reason,
		   v->investigate ? "; investigate" : "");
	if (!now)
		return;
	cell_num(t, 5, 17, now->value);
	cell_num(t, 6, 17, c->value);
	cell_num(t, 7, 17, c->lo);
	cell_num(t, 8, 17, c->hi);
	cell_num(t, 9, 17, v->effect.p);
	table_cell(t, 11, "%lld", (long long)now->facts->run);
}

static void print_row(struct gating *g, const struct piece *base,
		      const struct piece *now, const struct gate_verdict *v)
{
	struct buf name = { 0 };

	piece_name(base, &name);
	table_row(&g->table);
	table_cell(&g->table, 0, "%s", answer_names[v->answer]);
	if (g->s->cmd.format == TABLE_TEXT)
		text_row(g, base, now, v, name.data);
	else
		data_row(g, base, now, v, name.data);
	buf_fini(&name);
}

static void print_checks(struct gating *g, const struct piece *base,
			 const struct piece *now, const struct gate_verdict *v)
{
	if (!v->investigate || !now)
		return;
	buf_addc(&g->checks, '\n');
	piece_name(base, &g->checks);
	buf_printf(&g->checks, " %s\n", base->metric);
	gate_checklist(base, now, v, &g->checks);
}

/* ---------------------------------------------------------------- gate -- */

static bool gate_one(struct gating *g, const struct piece *base, struct err *e)
{
	struct pieces found = { 0 };
	struct gate_verdict v;
	struct mismatch m;
	bool ok = load_candidates(g->s, &g->wanted, base, &found, e);

	if (ok) {
		const struct piece *now =
			choose_candidate(g->s, base, &found, &m);
		gate_judge(base, now, &v);
		if (!now && found.n)
			set_reason(&v, GATE_NODATA, "nothing comparable was "
				   "measured: %s is %.60s, the baseline's "
				   "%.60s%s", m.field, m.b, m.a, m.remedy);
		g->count[v.answer]++;
		print_row(g, base, now, &v);
		print_checks(g, base, now, &v);
		if (now && !g->s->o.dry_run)
			ok = store_verdict(g->s, base, now, &v, e);
	}
	pieces_fini(&found);
	return ok;
}

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
		fprintf(stderr, "t0-results: warning: %lld baselines name "
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

static int worst_status(const struct gating *g, size_t n)
{
	if (g->count[GATE_REGRESS])
		return 1;
	if (g->count[GATE_NODATA] || !n)
		return 3;
	return g->count[GATE_INCONCLUSIVE] ? 2 : 0;
}

static bool print_gating(struct gating *g, size_t n, struct err *e)
{
	struct show *s = g->s;
	bool ok = cmd_table(&s->cmd, &g->table, e);

	if (s->cmd.format == TABLE_TEXT) {
		if (g->reasons.len)
			fprintf(s->cmd.out, "\n%s", g->reasons.data);
		if (g->checks.len)
			fputs(g->checks.data, s->cmd.out);
		fprintf(s->cmd.out,
			"\n%s: %d pass, %d regress, %d inconclusive, "
			"%d no data\n",
			s->cmd.status ? "NOT PASSED" : "passed", g->count[0],
			g->count[1], g->count[2], g->count[3]);
	}
	if (!n)
		cmd_remark(&s->cmd, "no baseline %s: nothing was gated, which "
			   "is no pass; see `t0-results baseline accept`",
			   s->o.any_host ? "is accepted" :
			   "of this machine is accepted (--any-host for "
			   "others)");
	return ok;
}

bool res_cmd_gate(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct gating g = { .s = s };
	struct pieces bases = { 0 };
	bool ok = parse_wanted(s, &g.wanted, e) &&
		  load_baselines(s, &bases, e);

	table_init(&g.table, s->cmd.format == TABLE_TEXT ? text_columns :
						       data_columns);
	if (bases.n)
		qsort(bases.v, bases.n, sizeof(*bases.v), by_measurement);
	for (size_t i = 0; ok && i < bases.n; i++)
		ok = gate_one(&g, &bases.v[i], e);
	c->status = worst_status(&g, bases.n);
	ok = ok && print_gating(&g, bases.n, e);
	table_fini(&g.table);
	buf_fini(&g.reasons);
	buf_fini(&g.checks);
	pieces_fini(&bases);
	return ok;
}
