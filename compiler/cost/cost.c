/*
 * compiler/cost/cost.c - the rows of cost.def, and a model made of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost_int.h"

#include <xxhash.h>

static const struct cost_row_info rows[COST_ROW_COUNT] = {
#define CLASS(id, name, latency, issue, conf, source)                  \
	{ name ".latency", "cycle", source, latency, conf },            \
	{ name ".issue", "cycle", source, issue, conf },
#include "compiler/cost/cost.def"
#define PARAM(id, name, value, unit, conf, source) \
	{ name, unit, source, value, conf },
#include "compiler/cost/cost.def"
};

static const char *const class_names[COST_CLASS_COUNT] = {
#define CLASS(id, name, latency, issue, conf, source) name,
#include "compiler/cost/cost.def"
};

static const struct cost_fit fits[] = {
#define FIT(id, from, least, most, step, by, on) \
	{ COST_##id, COST_FIT_##by, from, least, most, step, on },
#include "compiler/cost/cost.def"
};

const struct cost_row_info *cost_row_info(enum cost_row row)
{
	return &rows[row];
}

enum cost_row cost_row_find(const char *name)
{
	int i = 0;

	while (i < COST_ROW_COUNT && strcmp(rows[i].name, name))
		i++;
	return i;
}

const char *cost_class_name(enum cost_class c)
{
	return class_names[c];
}

const struct cost_fit *cost_fits(int *n)
{
	*n = (int)ARRAY_SIZE(fits);
	return fits;
}

const struct cost_fit *cost_fit_find(enum cost_row row)
{
	for (size_t i = 0; i < ARRAY_SIZE(fits); i++)
		if (fits[i].row == row)
			return &fits[i];
	return NULL;
}

bool cost_fit_names(const struct cost_fit *f, const char *kernel_or_source)
{
	size_t len = strlen(kernel_or_source);

	for (const char *at = f->on, *end; at; at = end ? end + 1 : NULL) {
		end = strchr(at, '|');
		if ((end ? (size_t)(end - at) : strlen(at)) == len &&
		    !memcmp(at, kernel_or_source, len))
			return true;
	}
	return false;
}

const char *cost_origin_name(enum cost_origin o)
{
	static const char *const name[] = { "guess", "default", "published",
					    "hardware" };
	return name[o];
}

void cost_init(struct cost_model *m, const char *chip)
{
	memset(m, 0, sizeof(*m));
	snprintf(m->chip, sizeof(m->chip), "%s", chip);
	m->op = arena_alloc(&m->mem, ISA_OP_COUNT * sizeof(*m->op));
	cost_take_chip(m);
	for (int i = 0; i < COST_ROW_COUNT; i++)
		m->row[i] = (struct cost_value){
			.value = m->base[i].value,
			.origin = m->base[i].origin,
			.spread = NAN,
			.clock_hz = NAN,
			.source = m->row[i].source,
		};
}

void cost_fini(struct cost_model *m)
{
	arena_fini(&m->mem);
	memset(m, 0, sizeof(*m));
}

bool cost_set(struct cost_model *m, const char *name, double value,
	      enum cost_origin origin, struct err *e)
{
	enum cost_row row = cost_row_find(name);

	if (row == COST_ROW_COUNT)
		return err_set(e, ERR_USAGE, "no cost is called \"%s\"; "
			       "t0-sim costs lists them", name);
	if (!(value >= 0) || isinf(value))
		return err_set(e, ERR_USAGE, "cost %s = %g: wanted a number "
			       "from 0 on", name, value);
	m->row[row].value = value;
	m->row[row].origin = origin;
	return true;
}

static bool set_text(struct cost_model *m, const char *text, struct err *e)
{
	const char *eq = strchr(text, '=');
	char name[64], *end;

	if (!eq || (size_t)(eq - text) >= sizeof(name))
		return err_set(e, ERR_USAGE, "--set %s: wanted NAME=VALUE",
			       text);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	const double v = strtod(eq + 1, &end);
	if (end == eq + 1 || *end)
		return err_set(e, ERR_USAGE, "--set %s: '%s' is no number",
			       text, eq + 1);
	return cost_set(m, name, v, COST_DEFAULT, e);
}

bool cost_set_list(struct cost_model *m, const struct cli_list *set,
		   struct err *e)
{
	for (int i = 0; i < set->n; i++)
		if (!set_text(m, set->v[i], e))
			return false;
	return true;
}

int cost_count(const struct cost_model *m, enum cost_origin origin)
{
	int n = 0;

	for (int i = 0; i < COST_ROW_COUNT; i++)
		n += m->row[i].origin == origin;
	return n;
}

void cost_summary(const struct cost_model *m, char *out, size_t size_bytes)
{
	int guesses = 0, set = cost_count(m, COST_DEFAULT);
	char by_hand[32] = "";

	for (int i = 0; i < COST_ROW_COUNT; i++)
		guesses += m->row[i].origin <= COST_DEFAULT &&
			   m->base[i].confidence == 'L';
	if (!strcmp(m->chip, COST_CHIP)) {
		snprintf(out, size_bytes, "%d hardware, %d published, %d "
			 "default (%d of them guesses)",
			 cost_count(m, COST_HARDWARE),
			 cost_count(m, COST_PUBLISHED), set, guesses);
		return;
	}
	if (set)
		snprintf(by_hand, sizeof(by_hand), "%d set, ", set);
	snprintf(out, size_bytes, "%d hardware, %d published, %s%d guesses "
		 "taken over from " COST_CHIP, cost_count(m, COST_HARDWARE),
		 cost_count(m, COST_PUBLISHED), by_hand,
		 cost_count(m, COST_GUESS));
}

/* -------------------------------------------------------------- digests -- */

void cost_digest(const struct cost_model *m, char out[COST_DIGEST])
{
	XXH3_state_t *x = XXH3_createState();

	if (!x)
		mem_ran_out(576, MEM_HERE); /* xxhash.h: its size */
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, m->chip, strlen(m->chip));
	for (int i = 0; i < COST_ROW_COUNT; i++)
		XXH3_64bits_update(x, &m->row[i].value, sizeof(double));
	for (int i = 0; i < ISA_OP_COUNT; i++) {
		const struct cost_op *op = &m->op[i];
		double v[3] = { i, op->latency.value, op->issue.value };

		if (op->has_latency || op->has_issue)
			XXH3_64bits_update(x, v, sizeof(v));
	}
	for (int i = 0; m->n_lacks && i < 2 * ISA_OP_COUNT; i++)
		if (m->lacks[i])
			XXH3_64bits_update(x, &i, sizeof(i));
	snprintf(out, COST_DIGEST, "%016llx",
		 (unsigned long long)XXH3_64bits_digest(x));
	XXH3_freeState(x);
}

static bool is_changed(const struct cost_model *m, int row)
{
	return m->row[row].value != m->base[row].value;
}

void cost_origins(const struct cost_model *m, char out[COST_ORIGINS])
{
	int n[COST_HARDWARE + 1] = { 0 };
	char digest[COST_DIGEST], guessed[32] = "";

	for (int i = 0; i < COST_ROW_COUNT; i++)
		n[is_changed(m, i) ? m->row[i].origin : m->base[i].origin]++;
	for (int i = 0; m->n_ops && i < ISA_OP_COUNT; i++) {
		n[m->op[i].latency.origin] += m->op[i].has_latency;
		n[m->op[i].issue.origin] += m->op[i].has_issue;
	}
	cost_digest(m, digest);
	if (n[COST_GUESS])
		snprintf(guessed, sizeof(guessed), ", %d guessed",
			 n[COST_GUESS]);
	snprintf(out, COST_ORIGINS, "%s: %d hardware, %d published, %d "
		 "default, %d lacking%s", digest, n[COST_HARDWARE],
		 n[COST_PUBLISHED], n[COST_DEFAULT], m->n_lacks, guessed);
}
