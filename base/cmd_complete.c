/*
 * base/cmd_complete.c - completion for shells, out of a tool's tables:
 * commands, their options, and the values of options and operands.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cmd_int.h"

/* ---- values ---- */

/*
 * What stands for these names of arguments and operands: a command that prints
 * a table, and its column.
 */
static const struct source {
	const char *names, *command;
	int column;
} sources[] = {
	{ "DEVICE|DEV|SPEC", "t0-device list --csv", 2 },
	{ "RUN|A B", "t0-results list --csv", 1 },
	{ "INSTRUCTION", "t0-isa list --csv", 1 },
	{ "PLOT", "t0-results plot --list --csv", 1 },
};

static const struct source *source_of(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(sources); i++)
		for (const char *p = sources[i].names; *p; p += strspn(p, "|")) {
			const size_t len = strcspn(p, "|");

			if (!strncmp(p, name, len) && !isalnum(name[len]))
				return &sources[i];
			p += len;
		}
	return NULL;
}

static size_t value_length(const char *s)
{
	size_t n = 0;

	while (islower((unsigned char)s[n]) || isdigit((unsigned char)s[n]) ||
	       (n && s[n] && strchr("-_", s[n])))
		n++;
	return n;
}

/* " (the default)" behind a value. */
static size_t note_length(const char *s)
{
	return !strncmp(s, " (", 2) && strchr(s, ')') ? strcspn(s, ")") + 1 : 0;
}

/*
 * "auto, always or never" at `s`, or a help that ends with "f32, f16, bf16":
 * how long it is; 0: it is no such list.
 */
static size_t list_length(const char *s, int *n)
{
	static const char *const joins[] = { ", or ", " or ", " and ", ", " };
	enum { MORE = 3 }; /* behind which others come */
	size_t at = value_length(s);

	*n = at > 0;
	for (size_t i = 0; at && i < ARRAY_SIZE(joins); i++) {
		const size_t note = note_length(s + at);
		const size_t join = strlen(joins[i]);
		const size_t len = strncmp(s + at + note, joins[i], join) ?
					   0 :
					   value_length(s + at + note + join);

		if (!len)
			continue;
		at += note + join + len;
		++*n;
		if (i != MORE)
			return at;
		i = (size_t)-1;
	}
	return at && !s[at + note_length(s + at)] ? at : 0;
}

/* The values that the help of an option lists: "hardware, ... or published". */
static void add_values(const struct cli_opt *o, struct buf *out)
{
	const int least = o->arg && !strcmp(o->arg, "WORD") ? 2 : 3;

	for (const char *s = o->help; o->arg && *s; s++) {
		int n;
		const size_t len = s > o->help && s[-1] != ' ' ? 0 :
				   list_length(s, &n);

		if (!len || n < least)
			continue;
		for (const char *p = s; p < s + len;) {
			const size_t word = value_length(p);
			const bool join = !strncmp(p, "or ", 3) ||
					  !strncmp(p, "and ", 4);

			if (!join)
				buf_printf(out, "%s%.*s", out->len ? " " : "",
					   (int)word, p);
			p += word;
			while (p < s + len && !value_length(p))
				p += note_length(p) ? note_length(p) : 1;
		}
		return;
	}
}

/* What a shell runs for the rest; nothing where the tables have no word. */
static void add_source(const struct source *s, struct buf *out)
{
	if (s)
		buf_printf(out, "$(%s 2>/dev/null | tail -n +2 | cut -d, -f%d)",
			   s->command, s->column);
}

/* ---- options ---- */

/* Calls `print` for every option that the row takes. */
static void each_option(const struct cmd_tool *tool, const struct cmd_spec *s,
			void (*print)(const struct cmd_tool *tool,
				      const struct cmd_spec *s,
				      const struct cli_opt *o))
{
	struct cmd none = { 0 };
	struct cli_opt *table = cmd_options(tool, s, &none);

	for (const struct cli_opt *o = table; o->name; o++)
		print(tool, s, o);
	free(table);
}

static void print_words(const struct cmd_tool *tool, const struct cmd_spec *s)
{
	struct cmd none = { 0 };
	struct cli_opt *table = cmd_options(tool, s, &none);

	for (const struct cli_opt *o = table; o->name; o++)
		printf("%s--%s%s", o > table ? " " : "", o->name,
		       o->arg ? "=" : "");
	free(table);
}

/* Names of functions have no dashes. */
static void function_name(const struct cmd_tool *tool, char name[64])
{
	snprintf(name, 64, "_%s", tool->name);
	for (char *p = name; *p; p++)
		if (*p == '-')
			*p = '_';
}

/* ---- bash and zsh ---- */

/* A branch of `case $option`: words in place of those that were found. */
static void print_branch(const struct cmd_tool *tool, const struct cmd_spec *s,
			 const struct cli_opt *o)
{
	struct buf values = { 0 };

	(void)tool, (void)s;
	if (!o->arg)
		return;
	add_values(o, &values);
	if (source_of(o->arg)) {
		buf_addc(&values, ' ');
		add_source(source_of(o->arg), &values);
	}
	printf("\t--%s) list=\"%s\" ;;\n", o->name,
	       values.len ? values.data : "");
	buf_fini(&values);
}

/* What the operands of a command may be, and the commands as the first word. */
static void print_operands(const struct cmd_tool *tool, const char *count,
			   const char *word)
{
	printf("\tcase %s in\n", word);
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		const char *names = s->operands ? s->operands : "";
		struct buf values = { 0 };

		add_source(source_of(names + strspn(names, "[")), &values);
		if (s->name && values.len)
			printf("\t%s) list=\"%s\" ;;\n", s->name, values.data);
		buf_fini(&values);
	}
	printf("\t*) ;;\n\tesac\n\t[ %s ] || list='", count);
	for (const struct cmd_spec *s = tool->commands; s->run; s++)
		if (s->name)
			printf(" %s", s->name);
	printf("'\n");
}

/* The options of the command that `word` names; of `*`, of all of them. */
static void print_commands_options(const struct cmd_tool *tool,
				   const char *word)
{
	const struct cmd_spec all = cmd_whole(tool, CMD_ALL);

	printf("\tcase %s in\n", word);
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		if (!s->name)
			continue;
		printf("\t%s) list='", s->name);
		print_words(tool, s);
		printf("' ;;\n");
	}
	printf("\t*) list='");
	print_words(tool, &all);
	printf("' ;;\n\tesac\n");
}

/* Options where the word begins as one does, else operands and commands. */
static void print_lists(const struct cmd_tool *tool, const char *count,
			const char *word)
{
	printf("\tif [[ $at == -* ]]; then\n");
	print_commands_options(tool, word);
	printf("\telse\n");
	print_operands(tool, count, word);
	printf("\tfi\n");
}

/*
 * The shell splits "--color=al" at the sign, so the option may be one word
 * back, or two.
 */
static void print_bash(const struct cmd_tool *tool)
{
	const struct cmd_spec all = cmd_whole(tool, CMD_ALL);
	char function[64];

	function_name(tool, function);
	printf("%s() {\n\tlocal list='' option=''\n"
	       "\tlocal at=${COMP_WORDS[COMP_CWORD]}\n", function);
	print_lists(tool, "\"$COMP_CWORD\" != 1", "${COMP_WORDS[1]}");
	printf("\tcase $at in\n"
	       "\t=) option=${COMP_WORDS[COMP_CWORD - 1]} at= ;;\n"
	       "\t*) option=${COMP_WORDS[COMP_CWORD - 1]}\n"
	       "\t\t[ \"$option\" != = ] || "
	       "option=${COMP_WORDS[COMP_CWORD - 2]} ;;\n\tesac\n"
	       "\tcase $option in\n");
	each_option(tool, &all, print_branch);
	printf("\tesac\n\tCOMPREPLY=($(compgen -W \"$list\" -- \"$at\"))\n"
	       "\t[[ $list == *=* && ${COMPREPLY[0]-} == *= ]] && "
	       "compopt -o nospace 2>/dev/null\n\treturn 0\n}\n"
	       "complete -o default -F %s %s\n",
	       function, tool->name);
}

/* Names of devices have a sign that the shell would split at. */
static void print_zsh(const struct cmd_tool *tool)
{
	const struct cmd_spec all = cmd_whole(tool, CMD_ALL);

	printf("#compdef %s\n\nlocal line=(\"${words[@]}\") list='' "
	       "option='' word\nlocal at=$line[CURRENT]\n",
	       tool->name);
	print_lists(tool, "$CURRENT != 2", "$line[2]");
	printf("\toption=$line[CURRENT-1]\n"
	       "\tcase $at in --*=*) option=${at%%%%=*} list=''; "
	       "compset -P '*=' ;; esac\n"
	       "\tcase $option in\n");
	each_option(tool, &all, print_branch);
	printf("\tesac\n[ -n \"${list// /}\" ] || { _files; return }\n"
	       "for word in ${=list}; do\n\tcase $word in\n"
	       "\t*=) compadd -S '' -- $word ;;\n\t*) compadd -- $word ;;\n"
	       "\tesac\ndone\n");
}

/* ---- fish ---- */

/* Between single quotes. */
static void print_fish_text(const char *s)
{
	putchar('\'');
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			putchar('\\');
		putchar(*s == '\n' ? ' ' : *s);
	}
	putchar('\'');
}

/* A list of words in fish is `(command)`. */
static void print_fish_values(const struct cli_opt *o)
{
	struct buf values = { 0 };
	const struct source *s = source_of(o->arg);

	add_values(o, &values);
	if (s)
		buf_printf(&values, "%s(%s 2>/dev/null | tail -n +2 | cut -d, "
			   "-f%d)", values.len ? " " : "", s->command,
			   s->column);
	if (values.len) {
		printf(" -x -a ");
		print_fish_text(values.data);
	} else {
		printf(" -r");
	}
	buf_fini(&values);
}

static void print_fish_option(const struct cmd_tool *tool,
			      const struct cmd_spec *s, const struct cli_opt *o)
{
	printf("complete -c %s", tool->name);
	if (s->name)
		printf(" -n '__fish_seen_subcommand_from %s'", s->name);
	printf(" -l %s", o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	printf(" -d ");
	print_fish_text(o->help);
	if (o->arg)
		print_fish_values(o);
	putchar('\n');
}

static void print_fish(const struct cmd_tool *tool)
{
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		const char *names = s->operands ? s->operands : "";
		const struct source *of = source_of(names + strspn(names, "["));

		if (s->name) {
			printf("complete -c %s -n __fish_use_subcommand%s -a %s "
			       "-d ",
			       tool->name, cmd_unnamed(tool) ? "" : " -f",
			       s->name);
			print_fish_text(s->summary);
			putchar('\n');
		}
		if (s->name && of)
			printf("complete -c %s -n '__fish_seen_subcommand_from "
			       "%s' -f -a '(%s 2>/dev/null | tail -n +2 | cut "
			       "-d, -f%d)'\n",
			       tool->name, s->name, of->command, of->column);
		each_option(tool, s, print_fish_option);
	}
}

/* ---- */

bool cmd_completion(const struct cmd_tool *tool, const char *shell)
{
	static const struct {
		const char *shell;
		void (*print)(const struct cmd_tool *tool);
	} shells[] = {
		{ "bash", print_bash }, { "zsh", print_zsh },
		{ "fish", print_fish },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (!strcmp(shells[i].shell, shell)) {
			shells[i].print(tool);
			return true;
		}
	return false;
}
