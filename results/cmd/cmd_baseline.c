/*
 * results/cmd/cmd_baseline.c - what gates measure against.
 *
 * Baselines are accepted with a reason, and retired with one.
 */
#include "results/cmd/cmd.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum action { FIRST, RAISE, LOWER, SAME_RUN, FEW, NOISY, WRONG, UNCHECKED };
static const char *const action_names[] = {
	"first",
	"raises",
	"LOWERS",
	"left: accepted already",
	"left: too few processes",
	"left: too noisy",
	"left: its check failed",
	"left: faster, but unchecked",
};

struct change {
	const struct piece *now, *old; /* old NULL = none */
	struct measured m;
	double loss;
	double detectable; /* NaN = too few to tell */
	enum action action;
};

struct accepting {
	struct show *s;
	struct pieces now, old;
	struct change *v; /* [n] */
	size_t n;
};

static bool is_taken(const struct change *c)
{
	return c->action <= LOWER;
}

/* ---- what accepting would do ---- */

/* The newest active baseline of the same thing under the same conditions. */
static const struct piece *find_old(const struct accepting *a,
				    const struct piece *now)
{
	struct mismatch m;

	for (size_t i = 0; i < a->old.n; i++)
		if (!piece_order(&a->old.v[i], now) &&
		    pieces_comparable(&a->old.v[i], now, true, NULL, &m))
			return &a->old.v[i];
	return NULL;
}

static bool is_word(const char *verdict, const char *word)
{
	return verdict && !strcmp(verdict, word);
}

static bool is_checked(const struct change *c)
{
	return is_word(c->m.correct, "pass") &&
	       (strcmp(c->now->unit, "token/s") ||
		is_word(c->m.coherent, "pass"));
}

static enum action action_of(const struct change *c, double limit)
{
	if (is_word(c->m.correct, "fail") || is_word(c->m.coherent, "fail"))
		return WRONG;
	if (isnan(c->detectable))
		return FEW;
	if (c->detectable > limit)
		return NOISY;
	if (!c->old)
		return FIRST;
	if (!strcmp(c->old->facts->uuid, c->now->facts->uuid))
		return SAME_RUN;
	if (c->loss > 0)
		return LOWER;
	return c->loss < 0 && !is_checked(c) ? UNCHECKED : RAISE;
}

static double loss_from(const struct piece *old, const struct measured *now)
{
	double d = now->median.value - old->value;

	if (!strcmp(old->better, "none"))
		d = fabs(d);
	else if (!strcmp(old->better, "higher"))
		d = -d;
	return d / (old->value != 0 ? fabs(old->value) : 1);
}

static int by_measurement(const void *p, const void *q)
{
	const struct piece *a = p, *b = q;
	int c = piece_order(a, b);

	return c ? c : (a->id > b->id) - (a->id < b->id);
}

/* One row for each measurement, whichever number of processes made it. */
static void group_pieces(struct accepting *a, const char *glob)
{
	const char *metric = a->s->o.metric;
	struct buf name = { 0 }, title = { 0 };

	for (size_t i = 0, k; i < a->now.n; i += k) {
		const struct piece *p = &a->now.v[i];
		for (k = 1; i + k < a->now.n && !piece_order(p, p + k); k++)
			;
		buf_reset(&name);
		buf_reset(&title);
		piece_name(p, &name);
		piece_title(p, &title);
		if ((metric && strcmp(metric, p->metric)) ||
		    (glob && fnmatch(glob, name.data, 0) &&
		     fnmatch(glob, title.data, 0)))
			continue;
		struct change *c = &a->v[a->n++];
		c->now = p;
		measured_init(&c->m, p, k);
	}
	buf_fini(&title);
	buf_fini(&name);
}

/* What a gate of as many rows would find with as many processes again. */
static void plan_actions(struct accepting *a)
{
	size_t family = 0;

	for (size_t i = 0; i < a->n; i++)
		family += !a->v[i].m.exact;
	double alpha = FAMILY_ALPHA / (double)(family ? family : 1);
	for (size_t i = 0; i < a->n; i++) {
		struct change *c = &a->v[i];
		c->detectable = measured_detectable(&c->m, alpha);
		c->old = find_old(a, c->now);
		c->loss = c->old ? loss_from(c->old, &c->m) : 0;
		c->action = action_of(c, a->s->o.limit);
	}
}

static bool plan_changes(struct accepting *a, const char *spec,
			 const char *glob, struct err *e)
{
	int64_t run;

	if (!show_find_run(a->s->db, spec, &run, e) ||
	    !pieces_of_results(a->s->db, &a->now, e, SIDE_OF_RUN
			       " AND r.state = 'complete'", "i", run) ||
	    !pieces_of_baselines(a->s->db, &a->old, e, "active", ""))
		return false;
	if (a->now.n)
		qsort(a->now.v, a->now.n, sizeof(*a->now.v), by_measurement);
	a->v = xcalloc(a->now.n + 1, sizeof(*a->v));
	group_pieces(a, glob);
	plan_actions(a);
	return a->n || err_set(e, ERR_INPUT, "run %s is not complete or holds "
			       "no result that matches", spec);
}

/* ---- telling ---- */

static bool print_plan(struct accepting *a, struct err *e)
{
	struct table t;
	int digits = show_is_text(a->s) ? 6 : 17;
	struct buf name = { 0 };

	table_init(&t, "case,metric,unit,~new,~replaces,#loss,action,accepted,"
		       "its reason,#processes,#detectable");
	for (size_t i = 0; i < a->n; i++) {
		const struct change *c = &a->v[i];
		buf_reset(&name);
		piece_name(c->now, &name);
		table_row(&t);
		table_cell(&t, 0, "%s", name.data);
		table_cell(&t, 1, "%s", c->now->metric);
		table_cell(&t, 2, "%s", c->now->unit);
		table_cell(&t, 3, "%.*g", digits, c->m.median.value);
		table_cell(&t, 6, "%s", action_names[c->action]);
		table_cell(&t, 9, "%zu", c->m.n);
		if (isfinite(c->detectable))
			table_cell(&t, 10, "%.*g", digits, c->detectable);
		if (!c->old)
			continue;
		table_cell(&t, 4, "%.*g", digits, c->old->value);
		table_cell(&t, 5, "%.*g", digits, c->loss);
		table_cell(&t, 7, "%s", c->old->created);
		table_cell(&t, 8, "%s", c->old->reason);
	}
	buf_fini(&name);
	bool ok = cmd_table(&a->s->cmd, &t, e);
	table_fini(&t);
	return ok;
}

/* Why it was not taken, and what would help. */
static void explain_left(const struct change *c, double limit, struct buf *out)
{
	double times = c->detectable / limit;

	switch (c->action) {
	case FEW:
		buf_printf(out, "measured by %zu process%s, whose luck is not "
			   "known; wanted %d (t0-results bench)", c->m.n,
			   c->m.n == 1 ? "" : "es", GATE_PROCESSES);
		break;
	case NOISY:
		buf_printf(out, "%zu processes find a change of %.2g %%, not "
			   "one of %.2g %%; wanted %.0f of them, a quieter "
			   "machine, or a higher --limit", c->m.n,
			   100 * c->detectable, 100 * limit,
			   ceil((double)c->m.n * times * times));
		break;
	case WRONG:
		buf_adds(out, "its correctness or coherence check failed");
		break;
	case UNCHECKED:
		buf_adds(out, "faster, without a passing correctness check "
			 "(and coherence, for token/s): that is no win");
		break;
	default:
		break;
	}
}

static void remark_left(const struct accepting *a)
{
	struct buf why = { 0 }, name = { 0 };

	for (size_t i = 0; i < a->n; i++) {
		const struct change *c = &a->v[i];
		buf_reset(&why);
		buf_reset(&name);
		explain_left(c, a->s->o.limit, &why);
		piece_name(c->now, &name);
		if (why.len)
			cmd_remark(&a->s->cmd, "%s %s: %s", name.data,
				   c->now->metric, why.data);
	}
	buf_fini(&why);
	buf_fini(&name);
}

static size_t count_action(const struct accepting *a, enum action action)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->v[i].action == action;
	return n;
}

static size_t count_taken(const struct accepting *a)
{
	return count_action(a, FIRST) + count_action(a, RAISE) +
	       count_action(a, LOWER);
}

static bool check_plan(const struct accepting *a, struct err *e)
{
	size_t lowers = count_action(a, LOWER);

	if (lowers && !a->s->o.reason)
		return err_set(e, ERR_USAGE, "this lowers %zu baselines, shown "
			       "above; say why with --reason TEXT", lowers);
	return true;
}

/* ---- storing ---- */

static char *values_json(const struct measured *m)
{
	struct buf b = { 0 };
	char number[40];

	buf_addc(&b, '[');
	for (size_t i = 0; i < m->n; i++) {
		res_real(number, m->value[i]);
		buf_printf(&b, "%s%s", i ? "," : "", number);
	}
	buf_addc(&b, ']');
	return b.data;
}

static bool insert_baseline(const struct accepting *a, const struct change *c,
			    const char *reason, struct err *e)
{
	const struct piece *p = c->now;
	const struct measured *m = &c->m;
	const struct show_opts *o = &a->s->o;
	char uuid[33];
	char *values = values_json(m);
	bool ok = res_uuid(uuid, e) && res_exec(a->s->db, e,
		"INSERT INTO baselines(uuid, created_ns, state, reason, "
		"replaces, run, start_ns, tool, host, device, build, inputs, "
		"conditions, case_id, metric, unit, value, lo, hi, n, "
		"clock_hz, better, origin, source, correct, coherent, samples, "
		"processes, loss_limit, required) "
		"SELECT ?, ?, 'accepted', ?, ?, uuid, start_ns, tool, host, "
		"device, build, inputs, conditions, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ?",
		"tittittdddidttttttidii", uuid, (int64_t)time_wall_ns(),
		reason, c->old ? c->old->baseline_uuid : NULL, p->case_id,
		p->metric, p->unit, m->median.value, m->median.lo,
		m->median.hi, (int64_t)m->n, p->clock_hz, p->better, p->origin,
		p->source, m->correct, m->coherent, values, (int64_t)m->n,
		o->limit, (int64_t)o->required, p->facts->run);
	free(values);
	return ok;
}

static const char *reason_for(const struct accepting *a,
			      const struct change *c)
{
	if (a->s->o.reason && *a->s->o.reason)
		return a->s->o.reason;
	return c->old ? "not lower than the one before" : "the first";
}

static bool insert_all(struct accepting *a, struct err *e)
{
	struct res_db *db = a->s->db;

	if (!res_write_begin(db, e))
		return false;
	bool ok = true;
	for (size_t i = 0; ok && i < a->n; i++)
		if (is_taken(&a->v[i]))
			ok = insert_baseline(a, &a->v[i],
					     reason_for(a, &a->v[i]), e);
	return res_write_end(db, ok, e);
}

static bool accept_run(struct show *s, struct err *e)
{
	struct accepting a = { .s = s };
	struct cmd *c = &s->cmd;

	if (!(s->o.limit > 0) || s->o.limit > 1)
		return err_set(e, ERR_USAGE, "--limit %g: wanted the share that "
			       "may be lost, above 0 and at most 1, like 0.05",
			       s->o.limit);
	bool ok = plan_changes(&a, c->argc > 1 ? c->argv[1] : "last",
			       c->argc > 2 ? c->argv[2] : NULL, e) &&
		  print_plan(&a, e) && check_plan(&a, e) &&
		  (s->o.dry_run || insert_all(&a, e));

	if (ok)
		remark_left(&a);
	c->status = count_taken(&a) || count_action(&a, SAME_RUN) ? EXIT_YES :
								   EXIT_NO;
	for (size_t i = 0; i < a.n; i++)
		measured_fini(&a.v[i].m);
	free(a.v);
	pieces_fini(&a.now);
	pieces_fini(&a.old);
	return ok;
}

/* ---- the other verbs ---- */

static const char list_columns[] =
	"#baseline,created,state,area,case,params,metric,~value,unit,~lo,~hi,"
	"#n,origin,device,commit,#replaces,reason,#limit,#required";
#define LIST_SQL \
	"SELECT baseline, created, CASE WHEN active THEN 'active' " \
	"WHEN state = 'retired' THEN state ELSE 'replaced' END, area, name, " \
	"params, metric, value, unit, lo, hi, n, origin, device_name, " \
	"git_commit, (SELECT old.baseline FROM v_baselines old " \
	"WHERE old.uuid = v.replaces), reason, loss_limit, required " \
	"FROM v_baselines v "

static bool list_baselines(struct show *s, struct err *e)
{
	return show_query(s, list_columns, s->o.all ?
			  LIST_SQL "ORDER BY area, name, params, metric, "
			  "created_ns, baseline" :
			  LIST_SQL "WHERE active ORDER BY area, name, params, "
			  "metric, created_ns, baseline", e);
}

static bool find_baseline(struct show *s, const char *id, int64_t *out,
			  struct err *e)
{
	uint64_t n;

	if (!cli_u64(id, &n, e))
		return err_wrap(e, "baseline (its number from `baseline "
				"list`)");
	return res_query_int(s->db, out, e,
			     "SELECT id FROM baselines WHERE id = ?", "i",
			     (int64_t)n) &&
	       (*out || err_set(e, ERR_INPUT, "%s: there is no baseline %s",
				res_db_path(s->db), id));
}

/* The row and all that it replaced, newest first. */
static bool show_chain(struct show *s, const char *name, struct err *e)
{
	struct table t;
	int64_t id;

	if (!find_baseline(s, name, &id, e))
		return false;
	table_init(&t, list_columns);
	bool ok =
		res_query(
			s->db, &t, show_digits(s), e,
			"WITH RECURSIVE chain(uuid, depth) AS (SELECT uuid, 0 FROM "
			"baselines WHERE id = ? UNION SELECT b.replaces, depth + 1 "
			"FROM baselines b JOIN chain ON b.uuid = chain.uuid WHERE "
			"b.replaces IS NOT NULL AND depth < 1000) " LIST_SQL
			"JOIN chain ON chain.uuid = v.uuid ORDER BY depth",
			"i", id) &&
		show_table(s, &t, e);
	table_fini(&t);
	return ok;
}

/* A baseline that nothing can be measured against any more. */
static bool retire_baseline(struct show *s, const char *name, struct err *e)
{
	int64_t id, active = 0;
	char uuid[33];

	if (!s->o.reason || !*s->o.reason)
		return err_set(e, ERR_USAGE, "retiring a baseline needs "
			       "--reason TEXT");
	if (!find_baseline(s, name, &id, e) ||
	    !res_query_int(s->db, &active, e, "SELECT active FROM "
			   "v_baselines WHERE baseline = ?", "i", id))
		return false;
	if (!active)
		return err_set(e, ERR_INPUT, "baseline %s is not active any "
			       "more", name);
	return res_uuid(uuid, e) && res_exec(s->db, e,
		"INSERT INTO baselines(uuid, created_ns, state, reason, "
		"replaces, run, start_ns, tool, host, device, build, inputs, "
		"conditions, case_id, metric, unit, value, lo, hi, n, "
		"clock_hz, better, origin, source, correct, coherent, samples, "
		"processes, loss_limit, required) "
		"SELECT ?, ?, 'retired', ?, uuid, run, start_ns, tool, host, "
		"device, build, inputs, conditions, case_id, metric, unit, "
		"value, lo, hi, n, clock_hz, better, origin, source, correct, "
		"coherent, samples, processes, loss_limit, required "
		"FROM baselines WHERE id = ?",
		"titi", uuid, (int64_t)time_wall_ns(), s->o.reason, id);
}

bool res_cmd_baseline(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	const char *verb = c->argc ? c->argv[0] : "list";

	if (!strcmp(verb, "list") && c->argc <= 1)
		return list_baselines(s, e);
	if (!strcmp(verb, "accept") && c->argc <= 3)
		return accept_run(s, e);
	if (!strcmp(verb, "show") && c->argc == 2)
		return show_chain(s, c->argv[1], e);
	if (!strcmp(verb, "retire") && c->argc == 2)
		return retire_baseline(s, c->argv[1], e);
	return err_set(e, ERR_USAGE, "baseline: got \"%s\" with %d operands; "
		       "wanted list, accept [RUN [CASE]], show N, retire N",
		       verb, c->argc > 1 ? c->argc - 1 : 0);
}
