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

enum action { FIRST, RAISE, LOWER, SAME_RUN, TOO_FEW, WRONG, UNCHECKED };
static const char *const action_names[] = {
	"first",
	"raises",
	"LOWERS",
	"already accepted",
	"skipped: too few samples",
	"refused: its check failed",
	"refused: faster, but no passing check",
};

struct change {
	const struct piece *now, *old; /* old NULL = none */
	double loss;
	enum action action;
};

struct accepting {
	struct show *s;
	struct pieces now, old;
	struct change *v; /* [n] */
	size_t n;
};

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

static bool is_checked(const struct piece *p)
{
	return is_word(p->correct, "pass") &&
	       (strcmp(p->unit, "token/s") || is_word(p->coherent, "pass"));
}

static enum action action_of(const struct piece *now, const struct piece *old,
			     double loss)
{
	bool exact = now->n >= 1 && now->lo == now->value &&
		     now->hi == now->value;

	if (is_word(now->correct, "fail") || is_word(now->coherent, "fail"))
		return WRONG;
	if (now->n_samples < RES_MIN_SAMPLES && !exact)
		return TOO_FEW;
	if (!old)
		return FIRST;
	if (!strcmp(old->facts->uuid, now->facts->uuid))
		return SAME_RUN;
	if (loss > 0)
		return LOWER;
	return loss < 0 && !is_checked(now) ? UNCHECKED : RAISE;
}

static double loss_from(const struct piece *old, const struct piece *now)
{
	double d = now->value - old->value;

	if (!strcmp(old->better, "none"))
		d = fabs(d);
	else if (!strcmp(old->better, "higher"))
		d = -d;
	return d / (old->value != 0 ? fabs(old->value) : 1);
}

static bool plan_changes(struct accepting *a, const char *spec,
			 const char *glob, struct err *e)
{
	const char *metric = a->s->o.metric;
	struct buf name = { 0 };
	int64_t run;

	if (!show_find_run(a->s->db, spec, &run, e) ||
	    !pieces_of_results(a->s->db, &a->now, e,
			       "r.id = ? AND r.state = 'complete'", "i", run) ||
	    !pieces_of_baselines(a->s->db, &a->old, e, "active", ""))
		return false;
	a->v = xcalloc(a->now.n + 1, sizeof(*a->v));
	for (size_t i = 0; i < a->now.n; i++) {
		const struct piece *p = &a->now.v[i];
		buf_reset(&name);
		piece_name(p, &name);
		if ((metric && strcmp(metric, p->metric)) ||
		    (glob && fnmatch(glob, name.data, 0)))
			continue;
		struct change *c = &a->v[a->n++];
		c->now = p;
		c->old = find_old(a, p);
		c->loss = c->old ? loss_from(c->old, p) : 0;
		c->action = action_of(p, c->old, c->loss);
	}
	buf_fini(&name);
	return a->n || err_set(e, ERR_INPUT, "run %s is not complete or holds "
			       "no result that matches", spec);
}

/* ---- telling ---- */

static bool print_plan(struct accepting *a, struct err *e)
{
	struct table t;
	int digits = a->s->cmd.format == TABLE_TEXT ? 6 : 17;
	struct buf name = { 0 };

	table_init(&t, "case,metric,unit,#new,#replaces,#loss,action,accepted,"
		       "its reason");
	for (size_t i = 0; i < a->n; i++) {
		const struct change *c = &a->v[i];
		buf_reset(&name);
		piece_name(c->now, &name);
		table_row(&t);
		table_cell(&t, 0, "%s", name.data);
		table_cell(&t, 1, "%s", c->now->metric);
		table_cell(&t, 2, "%s", c->now->unit);
		table_cell(&t, 3, "%.*g", digits, c->now->value);
		table_cell(&t, 6, "%s", action_names[c->action]);
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

static size_t count_action(const struct accepting *a, enum action action)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->v[i].action == action;
	return n;
}

static bool check_plan(const struct accepting *a, struct err *e)
{
	size_t lowers = count_action(a, LOWER), wrong = count_action(a, WRONG);
	size_t unchecked = count_action(a, UNCHECKED);

	if (wrong)
		return err_set(e, ERR_INPUT, "%zu of these results failed "
			       "their correctness or coherence check; nothing "
			       "was accepted", wrong);
	if (unchecked)
		return err_set(e, ERR_INPUT, "%zu of these results are faster "
			       "without a passing correctness check (and "
			       "coherence, for token/s); that is no win, and "
			       "nothing was accepted", unchecked);
	if (lowers && !a->s->o.reason)
		return err_set(e, ERR_USAGE, "this lowers %zu baselines, shown "
			       "above; say why with --reason TEXT", lowers);
	return true;
}

/* ---- storing ---- */

static char *samples_json(const struct piece *p)
{
	struct buf b = { 0 };
	char number[40];

	buf_addc(&b, '[');
	for (size_t i = 0; i < p->n_samples; i++) {
		res_real(number, p->samples[i]);
		buf_printf(&b, "%s%s", i ? "," : "", number);
	}
	buf_addc(&b, ']');
	return b.data;
}

static bool insert_baseline(struct res_db *db, const struct change *c,
		   const char *reason, struct err *e)
{
	const struct piece *p = c->now;
	char uuid[33];
	char *samples = samples_json(p);
	bool ok = res_uuid(uuid, e) && res_exec(db, e,
		"INSERT INTO baselines(uuid, created_ns, state, reason, "
		"replaces, run, start_ns, tool, host, device, build, inputs, "
		"conditions, case_id, metric, unit, value, lo, hi, n, "
		"clock_hz, better, origin, source, correct, coherent, samples) "
		"SELECT ?, ?, 'accepted', ?, ?, uuid, start_ns, tool, host, "
		"device, build, inputs, conditions, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ? FROM runs WHERE id = ?",
		"tittittdddidtttttti", uuid, (int64_t)time_wall_ns(), reason,
		c->old ? c->old->baseline_uuid : NULL, p->case_id, p->metric,
		p->unit, p->value, p->lo, p->hi, p->n, p->clock_hz, p->better,
		p->origin, p->source, p->correct, p->coherent, samples,
		p->facts->run);
	free(samples);
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
		if (a->v[i].action <= LOWER)
			ok = insert_baseline(db, &a->v[i],
					     reason_for(a, &a->v[i]), e);
	return res_write_end(db, ok, e);
}

static bool accept_run(struct show *s, struct err *e)
{
	struct accepting a = { .s = s };
	struct cmd *c = &s->cmd;
	bool ok = plan_changes(&a, c->argc > 1 ? c->argv[1] : "last",
			       c->argc > 2 ? c->argv[2] : NULL, e) &&
		  print_plan(&a, e) && check_plan(&a, e) &&
		  (s->o.dry_run || insert_all(&a, e));

	c->status = count_action(&a, TOO_FEW) ? EXIT_NO : EXIT_YES;
	free(a.v);
	pieces_fini(&a.now);
	pieces_fini(&a.old);
	return ok;
}

/* ---- the other verbs ---- */

static const char list_columns[] =
	"#baseline,created,state,area,case,params,metric,#value,unit,#lo,#hi,"
	"#n,origin,device,commit,#replaces,reason";
#define LIST_SQL \
	"SELECT baseline, created, CASE WHEN active THEN 'active' " \
	"WHEN state = 'retired' THEN state ELSE 'replaced' END, area, name, " \
	"params, metric, value, unit, lo, hi, n, origin, device_name, " \
	"git_commit, (SELECT old.baseline FROM v_baselines old " \
	"WHERE old.uuid = v.replaces), reason FROM v_baselines v "

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
	bool ok = res_query(s->db, &t, show_digits(s), e,
		"WITH RECURSIVE chain(uuid, depth) AS (SELECT uuid, 0 FROM "
		"baselines WHERE id = ? UNION SELECT b.replaces, depth + 1 "
		"FROM baselines b JOIN chain ON b.uuid = chain.uuid WHERE "
		"b.replaces IS NOT NULL AND depth < 1000) "
		LIST_SQL "JOIN chain ON chain.uuid = v.uuid ORDER BY depth",
		"i", id) && cmd_table(&s->cmd, &t, e);
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
		"clock_hz, better, origin, source, correct, coherent, samples) "
		"SELECT ?, ?, 'retired', ?, uuid, run, start_ns, tool, host, "
		"device, build, inputs, conditions, case_id, metric, unit, "
		"value, lo, hi, n, clock_hz, better, origin, source, correct, "
		"coherent, samples FROM baselines WHERE id = ?",
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
