/*
 * base/cmd_help.c - what a tool's tables say: help and manual page.
 */
#include <ctype.h>
#include <string.h>

#include "base/cmd_int.h"

/* "-o, --output=FILE" */
static void add_option(const struct cli_opt *o, struct buf *out)
{
	if (o->letter)
		buf_printf(out, "-%c, ", o->letter);
	buf_printf(out, "--%s", o->name);
	if (o->arg)
		buf_printf(out, "=%s", o->arg);
}

/* ---- folding ---- */

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* Bytes of the first line of `s`; one beyond `room` ends between words. */
static size_t line_length(const char *s, size_t room)
{
	size_t len = strcspn(s, "\n"), n = room;

	if (len <= room)
		return len;
	while (n && s[n] != ' ')
		n--;
	return n ? n : strcspn(s, " \n");
}

/*
 * Calls `line` for every line of `text`, folded to `room`; the blanks between
 * two sentences all go where they are folded.
 */
static void each_line(const char *text, size_t room,
		      void (*line)(const char *s, int len))
{
	for (const char *s = text; s && *s;) {
		size_t len = line_length(s, room), end = len;

		while (end && s[end - 1] == ' ')
			end--;
		line(s, (int)end);
		s += len;
		s += *s == '\n' ? 1 : strspn(s, " ");
	}
}

/* ---- help ---- */

/* In the second column, which the first line has reached. */
static void print_explanation(const char *s, int len)
{
	printf("%.*s\n%*s", len, s, s[len] ? HELP_COLUMN : 0, "");
}

static void print_note(const char *s, int len)
{
	printf("%.*s\n", len, s);
}

/* A name in the first column and what it means in the second. */
static void print_entry(const struct buf *name, const char *meaning)
{
	if (name->len + 2 > HELP_COLUMN)
		printf("%s\n%*s", name->data, HELP_COLUMN, "");
	else
		printf("%-*s", HELP_COLUMN, name->data);
	each_line(meaning, HELP_WIDTH - HELP_COLUMN, print_explanation);
}

/* A line for every way to call the command. */
static void add_usage(const struct cmd_tool *tool, const struct cmd_spec *s,
		      struct buf *out)
{
	const char *form = s->operands ? s->operands : "";

	do {
		size_t len = strcspn(form, "\n");

		buf_printf(out, "%s%s%s [options]%s%.*s\n", tool->name,
			   s->name ? " " : "", s->name ? s->name : "",
			   len ? " " : "", (int)len, form);
		form += len + (form[len] == '\n');
	} while (*form);
}

static void print_usage(const char *s, int len)
{
	printf("  %.*s\n", len, s);
}

static void print_commands(const struct cmd_tool *tool)
{
	struct buf text = { 0 };

	printf("  %s COMMAND [options]\n\nCommands:\n", tool->name);
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		if (!s->name)
			continue;
		buf_reset(&text);
		buf_printf(&text, "  %s%s%s", s->name, s->operands ? " " : "",
			   s->operands ? s->operands : "");
		print_entry(&text, s->summary);
	}
	buf_fini(&text);
	printf("\n`%s COMMAND --help` explains one, with its options.\n",
	       tool->name);
}

static void print_options(const struct cmd_tool *tool,
			  const struct cmd_spec *s)
{
	struct cmd none = { 0 };
	struct cli_opt *table = cmd_options(tool, s, &none);
	struct buf text = { 0 };

	for (const struct cli_opt *o = table; o->name; o++) {
		buf_reset(&text);
		buf_adds(&text, o->letter ? "  " : "      ");
		add_option(o, &text);
		print_entry(&text, o->help);
	}
	buf_fini(&text);
	free(table);
}

static void print_notes(const char *notes)
{
	if (notes)
		putchar('\n');
	each_line(notes, HELP_WIDTH, print_note);
}

static bool has_commands(const struct cmd_tool *tool)
{
	return tool->commands[0].name || tool->commands[1].run;
}

void cmd_help(const struct cmd_tool *tool, const struct cmd_spec *s)
{
	const struct cmd_spec *unnamed = cmd_unnamed(tool);
	const struct cmd_spec common = cmd_whole(tool, CMD_COMMON);
	struct buf usage = { 0 };

	printf("%s%s%s - %s\n\nUsage:\n", tool->name, s ? " " : "",
	       s ? s->name : "", s ? s->summary : tool->summary);
	if (s || unnamed)
		add_usage(tool, s ? s : unnamed, &usage);
	each_line(usage.data, SIZE_MAX, print_usage);
	buf_fini(&usage);
	if (!s && has_commands(tool))
		print_commands(tool);
	printf("\nOptions%s:\n", s || unnamed ? "" : " of all commands");
	print_options(tool, s ? s : unnamed ? unnamed : &common);
	print_notes(s ? s->notes : tool->notes);
}

/* ---- the manual page ---- */

/* scdoc gives meaning to punctuation; behind a backslash it has none. */
static void print_scd(const char *s)
{
	for (; *s; s++) {
		if (ispunct((unsigned char)*s))
			putchar('\\');
		putchar(*s);
	}
}

/* Every way to call the tool, a line each: "++" breaks them. */
static void print_synopsis(const struct cmd_tool *tool)
{
	struct buf usage = { 0 };
	size_t name = strlen(tool->name);

	for (const struct cmd_spec *s = tool->commands; s->run; s++)
		add_usage(tool, s, &usage);
	for (char *p = usage.data, *end; (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		printf("%s*%s*", p > usage.data ? "++\n" : "", tool->name);
		print_scd(p + name);
	}
	buf_fini(&usage);
}

/* As it stands, but for backslashes. */
static void print_literal(const char *s, int len)
{
	for (; len > 0; s++, len--)
		printf(*s == '\\' ? "\\\\" : "%c", *s);
	putchar('\n');
}

/* Which commands take it, where not all do: " (dis, verify)". */
static void add_takers(const struct cmd_tool *tool,
		       const struct cli_opt *option, struct buf *out)
{
	struct cmd none = { 0 };
	size_t n = 0, takers = 0;
	struct buf names = { 0 };

	for (const struct cmd_spec *s = tool->commands; s->run; s++, n++) {
		struct cli_opt *table = cmd_options(tool, s, &none);
		const struct cli_opt *o = cli_find_long(table, option->name,
							strlen(option->name));

		/* Two commands may have two options of one name. */
		if (o && o->help == option->help) {
			buf_printf(&names, "%s%s", takers ? ", " : "",
				   s->name ? s->name : "no command");
			takers++;
		}
		free(table);
	}
	if (takers < n)
		buf_printf(out, " (%s)", names.data);
	buf_fini(&names);
}

static void print_manual_options(const struct cmd_tool *tool)
{
	const struct cmd_spec all = cmd_whole(tool, CMD_ALL);
	struct cmd none = { 0 };
	struct cli_opt *table = cmd_options(tool, &all, &none);
	struct buf text = { 0 };

	for (const struct cli_opt *o = table; o->name; o++) {
		buf_reset(&text);
		add_option(o, &text);
		putchar('*');
		print_scd(text.data);
		printf("*\n\t");
		buf_reset(&text);
		buf_adds(&text, o->help);
		add_takers(tool, o, &text);
		print_scd(text.data);
		printf("\n\n");
	}
	buf_fini(&text);
	free(table);
}

static bool has_notes(const struct cmd_tool *tool)
{
	bool any = tool->notes != NULL;

	for (const struct cmd_spec *s = tool->commands; s->run; s++)
		any |= s->notes != NULL;
	return any;
}

void cmd_manual(const struct cmd_tool *tool)
{
	const char *between = "";

	printf("%s(1) \"\" \"T0 %s\"\n\n# NAME\n\n%s - ", tool->name,
	       T0_VERSION, tool->name);
	print_scd(tool->summary);
	printf("\n\n# SYNOPSIS\n\n");
	print_synopsis(tool);
	printf("\n\n# OPTIONS\n\n");
	print_manual_options(tool);
	if (!has_notes(tool))
		return;
	printf("# NOTES\n\n```\n");
	each_line(tool->notes, HELP_WIDTH, print_literal);
	between = tool->notes ? "\n" : "";
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		if (!s->notes)
			continue;
		fputs(between, stdout);
		each_line(s->notes, HELP_WIDTH, print_literal);
		between = "\n";
	}
	printf("```\n");
}
