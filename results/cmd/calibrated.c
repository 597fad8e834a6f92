/*
 * results/cmd/calibrated.c - what is known of the noise of this machine, for
 * those who compare.
 */
#include "base/vec.h"
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char query[] =
	"SELECT machine, area, kind, condition, created, processes, side, "
	"measures, trials, false_alarms, serial, serial_false, "
	"planted_trials, planted_found, planted_passed, alpha, detectable, spread, "
	"drift, planted FROM v_calibrations v WHERE NOT EXISTS("
	"SELECT 1 FROM v_calibrations l WHERE l.machine = v.machine "
	"AND l.kind = v.kind AND l.condition = v.condition "
	"AND (l.created_ns, l.calibration) > (v.created_ns, v.calibration)) "
	"ORDER BY kind, condition DESC";

static void read_row(struct calibrations *c, sqlite3_stmt *st)
{
	struct calibration *k = vec_add(c);
	const char **word[] = { &k->machine, &k->area, &k->kind, &k->condition,
				&k->created };
	int64_t *integer[] = { &k->processes, &k->side, &k->measures,
			       &k->trials, &k->false_alarms, &k->serial,
			       &k->serial_false, &k->planted_trials,
			       &k->planted_found, &k->planted_passed };
	double *real[] = { &k->alpha, &k->detectable, &k->spread, &k->drift,
			   &k->planted };
	int col = 0;

	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		*word[i] = arena_strdup(&c->mem, (const char *)
					sqlite3_column_text(st, col++));
	for (size_t i = 0; i < ARRAY_SIZE(integer); i++)
		*integer[i] = sqlite3_column_int64(st, col++);
	for (size_t i = 0; i < ARRAY_SIZE(real); i++, col++)
		*real[i] = sqlite3_column_type(st, col) == SQLITE_NULL ? NAN :
			   sqlite3_column_double(st, col);
}

bool calibrations_load(struct res_db *db, struct calibrations *c,
		       struct err *e)
{
	bool ok;
	sqlite3_stmt *st = res_stmt(db, e, query, "");

	if (!st)
		return false;
	while (res_step(db, st, &ok, e))
		read_row(c, st);
	res_stmt_done(st);
	return ok;
}

void calibrations_fini(struct calibrations *c)
{
	free(c->v);
	arena_fini(&c->mem);
	*c = (struct calibrations){ 0 };
}

static bool is_about(const struct calibration *k, const struct piece *p)
{
	return !strcmp(k->area, p->area) &&
	       !strcmp(k->machine, p->facts->machine);
}

double calibrated_drift(const struct calibrations *c, const struct piece *p)
{
	for (size_t i = 0; i < c->n; i++)
		if (is_about(&c->v[i], p) &&
		    !strcmp(c->v[i].condition, "quiet"))
			return c->v[i].drift;
	return NAN;
}

void calibrations_print(const struct calibrations *c, const struct pieces *p,
			FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < c->n; i++) {
		const struct calibration *k = &c->v[i];
		bool about = false;
		for (size_t j = 0; j < p->n && !about; j++)
			about = is_about(k, &p->v[j]);
		any |= about;
		if (!about)
			continue;
		fprintf(out, "calibrated: %s, %s, %.10s: %lld of %lld A/A "
			"trials had a false verdict", k->kind, k->condition,
			k->created, (long long)k->false_alarms,
			(long long)k->trials);
		if (isfinite(k->detectable))
			fprintf(out, "; %lld processes a side find %.2g %%",
				(long long)k->side, 100 * k->detectable);
		fputc('\n', out);
	}
	if (!any)
		fputs("calibrated: not on this machine; t0-results calibrate "
		      "measures its false alarms\n", out);
}
