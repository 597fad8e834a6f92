/*
 * Command lines: such with a known answer, and any.
 */
#include <string.h>

#include "tests/attack/tools/campaign.h"

static const struct tool_row *any_tool(struct attack *a)
{
	return &a->c->tools.v[below(a, a->c->tools.n)];
}

static const struct command_row *any_command(struct attack *a,
					     const struct tool_row *t)
{
	return &t->commands.v[below(a, t->commands.n)];
}

static bool has_option(const struct command_row *c, const char *name)
{
	for (size_t i = 0; i < c->options.n; i++)
		if (!strcmp(c->options.v[i].name, name))
			return true;
	return false;
}

/* An option of the command, with or without a value; NULL: it has none. */
static const struct option_row *any_option(struct attack *a,
					   const struct command_row *c,
					   bool takes_value)
{
	const struct option_row *found = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < c->options.n; i++)
		if (c->options.v[i].takes_value == takes_value &&
		    one_in(a, ++n))
			found = &c->options.v[i];
	return found;
}

/* ---- what each is to answer ---- */

static void expect(struct attack *a, int status, const char *text)
{
	struct outcome o;

	launch(a, &o);
	judge_exact(a, &o, status, text);
	if (o.out.len && status == 2)
		fault(a, "prints although its command line is wrong");
	outcome_fini(&o);
}

static void bad_deadline(struct attack *a)
{
	static const char *const bad[] = {
		"", "-1", "0", "nan", "inf", "-inf", "1e999", "1e7", "1s",
		" 1", "0x", "1,2", "1e-10", "--", "\033[31m", "\xff",
	};

	word_add(a, arena_printf(&a->mem, "--deadline=%s",
				 bad[below(a, ARRAY_SIZE(bad))]));
	expect(a, 2, "option --deadline");
}

static void missing_value(struct attack *a, const struct command_row *c)
{
	const struct option_row *o = any_option(a, c, true);

	word_add(a, o ? o->name : "--deadline");
	expect(a, 2, "needs an argument");
}

static void value_of_flag(struct attack *a, const struct command_row *c)
{
	const struct option_row *o = any_option(a, c, false);

	if (!o || !strcmp(o->name, "--help") || !strcmp(o->name, "--version"))
		o = NULL;
	word_add(a, o ? arena_printf(&a->mem, "%s=%s", o->name,
				     hostile_word(a)) : "--zzz");
	expect(a, 2, o ? "takes no argument" : "option --zzz");
}

static void page_of(struct attack *a, const struct tool_row *t,
		    const struct command_row *c)
{
	static const char *const pages[] = {
		"--help", "--version", "-h", "--help=scd", "--help=bash",
	};
	size_t which = below(a, ARRAY_SIZE(pages));
	struct outcome o;

	word_add(a, pages[which]);
	/* Nothing behind it is looked at. */
	if (one_in(a, 2))
		word_add(a, hostile_word(a));
	launch(a, &o);
	/* A word behind may be a command of another name. */
	judge_exact(a, &o, 0, NULL);
	if (!o.out.len || !memmem(o.out.data, o.out.len, t->name,
				  strlen(t->name)))
		fault(a, "prints a page without its name");
	(void)c;
	outcome_fini(&o);
}

/* The command is known, or there is none, and the rest is wrong. */
void attack_known(struct attack *a)
{
	const struct tool_row *t = any_tool(a);
	const struct command_row *c = any_command(a, t);

	a->tool = t->name;
	if (*c->name)
		word_add(a, c->name);
	else if (t->commands.n > 1)
		c = &t->commands.v[0], word_add(a, c->name);
	switch (below(a, 7)) {
	case 0:
		word_add(a, arena_printf(&a->mem, "--zz%s", hostile_word(a)));
		expect(a, 2, "option --zz");
		break;
	case 1:
		missing_value(a, c);
		break;
	case 2:
		value_of_flag(a, c);
		break;
	case 3:
		if (has_option(c, "--deadline") && strcmp(t->name, "t0-run")) {
			bad_deadline(a);
			break;
		}
		/* fallthrough */
	case 4:
		page_of(a, t, c);
		break;
	case 5: /* both of what excludes each other */
		if (has_option(c, "--json") && has_option(c, "--csv")) {
			word_add(a, "--zzz=1");
			word_add(a, "--json");
			word_add(a, "--csv");
			expect(a, 2, "option --zzz");
			break;
		}
		/* fallthrough */
	default: /* an unknown command */
		a->words.n = 0;
		word_add(a, "zz\033q");
		struct outcome o;
		launch(a, &o);
		judge_exact(a, &o, 2, NULL);
		outcome_fini(&o);
		break;
	}
}

/* ---- any ---- */

/* Words that are run must be harmless programs. */
static bool is_run(const struct option_row *o)
{
	static const char *const names[] = {
		"--oracle", "--check", "--build", "--against", "--planted",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(o->name, names[i]))
			return true;
	return false;
}

static const char *any_value(struct attack *a, const struct option_row *o)
{
	static const char *const programs[] = {
		"true", "false", "none", "/proc/none/x", "", "cat", "yes",
	};

	if (is_run(o))
		return programs[below(a, ARRAY_SIZE(programs))];
	switch (below(a, 8)) {
	case 0:
		return "t0.db";
	case 1:
		return seed_any(a);
	default:
		return hostile_word(a);
	}
}

/* At place `at` of the words. */
static void insert_word(struct attack *a, size_t at, const char *word)
{
	word_add(a, word);
	char *last = a->words.v[a->words.n - 1];
	for (size_t i = a->words.n - 1; i > at; i--)
		a->words.v[i] = a->words.v[i - 1];
	a->words.v[at] = last;
}

static void insert_option(struct attack *a, const struct command_row *c)
{
	const struct option_row *o = &c->options.v[below(a, c->options.n)];
	size_t at = below(a, a->words.n + 1);

	if (!o->takes_value) {
		insert_word(a, at, o->name);
	} else if (one_in(a, 8)) {
		insert_word(a, at, any_value(a, o));
		insert_word(a, at, o->name);
	} else {
		insert_word(a, at, arena_printf(&a->mem, "%s=%s", o->name,
						any_value(a, o)));
	}
}

static void change_line(struct attack *a, const struct command_row *c)
{
	size_t n = a->words.n, at = n ? below(a, n) : 0;

	switch (below(a, 8)) {
	case 0:
	case 1:
	case 2:
		insert_option(a, c);
		break;
	case 3:
		insert_word(a, n ? at : 0, one_in(a, 2) ? hostile_word(a) :
							  seed_any(a));
		break;
	case 4:
	case 5:
		if (n)
			a->words.v[at] = bent_word(a, a->words.v[at]);
		break;
	case 6: /* one less */
		if (n) {
			memmove(a->words.v + at, a->words.v + at + 1,
				(n - at - 1) * sizeof(*a->words.v));
			a->words.n--;
		}
		break;
	case 7: /* two change places, or one comes twice */
		if (n && one_in(a, 2)) {
			insert_word(a, below(a, n), a->words.v[at]);
		} else if (n) {
			size_t other = below(a, n);
			char *w = a->words.v[at];

			a->words.v[at] = a->words.v[other];
			a->words.v[other] = w;
		}
		break;
	}
}

/* A command of the tool that the words name. */
static const struct command_row *named_command(struct attack *a,
					       const struct tool_row *t)
{
	const struct command_row *c = a->words.n ?
				table_command(t, a->words.v[0]) : NULL;

	return c ? c : &t->commands.v[t->commands.n - 1];
}

/* Is it asked to drop rows, or to write something else over the database? */
static bool may_lose_rows(const struct attack *a)
{
	for (size_t i = 0; i < a->words.n; i++) {
		const char *w = a->words.v[i];

		if (!strcmp(w, "prune") ||
		    (strstr(w, "t0.db") && strcmp(w, "--db=t0.db") &&
		     (strcmp(w, "t0.db") || !i ||
		      strcmp(a->words.v[i - 1], "--db"))))
			return true;
	}
	return false;
}

void attack_lines(struct attack *a)
{
	const struct tool_row *t = any_tool(a);
	struct outcome o;

	if (one_in(a, 3)) {
		const struct command_row *c = any_command(a, t);

		a->tool = t->name;
		if (*c->name)
			word_add(a, c->name);
		seed_copy(a, seed_any(a));
		seed_copy(a, "t0.db");
		for (uint64_t n = below(a, 4); n; n--)
			change_line(a, c);
	} else {
		recipe_take(a, recipe_any(a, 0, 0));
		t = table_tool(a->c, a->tool);
	}
	for (uint64_t n = 1 + below(a, 4); n; n--)
		change_line(a, named_command(a, t));
	a->db_damaged = may_lose_rows(a);
	const int64_t before = db_runs(a);
	a->may_last = true;
	launch(a, &o);
	judge(a, &o);
	if (!a->db_damaged)
		judge_db(a, before);
	outcome_fini(&o);
}
