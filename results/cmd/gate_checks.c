/*
 * results/cmd/gate_checks.c - where to look when a case changed.
 */
#include "results/cmd/cmd.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OUT "ruled out: "
#define IN "SUSPECT: "
#define UNKNOWN "not recorded: "

/* Do the first samples differ from the rest?  Then it was not warm. */
static void check_warm_up(const struct piece *base, const struct piece *now,
			  struct buf *out)
{
	size_t n = now->n_samples, head = n / 4;

	(void)base;
	if (head < 2) {
		buf_printf(out, UNKNOWN "%zu samples are too few to tell", n);
		return;
	}
	double first = res_median(now->samples, head).value;
	double rest = res_median(now->samples + head, n - head).value;
	double drift = rest != 0 ? first / rest - 1 : 0;
	buf_printf(out, "%sthe first %zu samples lie %+.2g %% off the rest",
		   fabs(drift) < 0.02 ? OUT : IN, head, 100 * drift);
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
	list_or(&found, "kernel, driver, firmware and processor are the same",
		out);
}

/* Who else ran meanwhile: processes of the host, as each run began. */
static void check_load(const struct piece *base, const struct piece *now,
		       struct buf *out)
{
	char *was = find_recorded(base, "load"), *is = find_recorded(now,
								"load");

	if (!was || !is)
		buf_adds(out, UNKNOWN "the host's load of one side");
	else
		buf_printf(out, "%sload %s, was %s",
			   fabs(atof(is) - atof(was)) < 0.5 ? OUT : IN, is,
			   was);
	free(was);
	free(is);
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
		buf_printf(out, IN "run t0-results bisect %s %s -- '%s/%s'",
			   a->commit, b->commit, now->area, now->name);
}

void gate_checklist(const struct piece *base, const struct piece *now,
		    struct buf *out)
{
	static const struct {
		const char *what;
		void (*check)(const struct piece *base,
			      const struct piece *now, struct buf *out);
	} checks[] = {
		{ "warm-up", check_warm_up },	{ "clocks", check_clocks },
		{ "occupancy", check_occupancy },
		{ "flags/prompt", check_flags },
		{ "environment", check_environment },
		{ "load", check_load },		{ "bisect", check_code },
	};

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		buf_printf(out, "  %zu. %-13s", i + 1, checks[i].what);
		checks[i].check(base, now, out);
		buf_addc(out, '\n');
	}
}
