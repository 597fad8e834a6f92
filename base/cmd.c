/*
 * base/cmd.c - which command is meant, and how it runs.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cmd_int.h"

/* ---- which options a command takes ---- */

/* Is it a word of the list? */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		if (n == len && !strncmp(p, word, n))
			return true;
		p += n;
	}
	return false;
}

bool cmd_takes(const struct cmd_spec *s, const char *names)
{
	if (!names || s->flags & CMD_ALL)
		return true;
	if (s->flags & CMD_COMMON)
		return false;
	return has_word(names, s->name ? s->name : CMD_UNNAMED);
}

struct cmd_spec cmd_whole(const struct cmd_tool *tool, unsigned which)
{
	unsigned any = 0, every = ~0u;

	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		any |= s->flags;
		every &= s->flags;
	}
	return (struct cmd_spec){
		.flags = which | (which == CMD_ALL ? any : every),
	};
}

/*
 * Has the tool an option of that name of its own for this command; for all of
 * CMD_ALL, for any of CMD_COMMON?
 */
static bool has_own(const struct cmd_tool *tool, const struct cmd_spec *s,
		    const char *name)
{
	const char *names = NULL;
	bool all = s->flags & CMD_ALL;

	for (const struct cmd_spec *one = tool->commands; all && one->run; one++)
		all = has_own(tool, one, name);
	for (const struct cli_opt *o = tool->options; o && o->name; o++)
		if (o->type == CLI_GROUP)
			names = o->help;
		else if (!(s->flags & CMD_ALL) && !strcmp(o->name, name) &&
			 (s->flags & CMD_COMMON || cmd_takes(s, names)))
			return true;
	return all;
}

/* Does it choose the device that the command runs on? */
static bool is_device(const struct cli_opt *o)
{
	return !strcmp(o->name, "device") && o->arg && strcmp(o->arg, "NAME");
}

struct cli_opt *cmd_options(const struct cmd_tool *tool,
			    const struct cmd_spec *s, struct cmd *c)
{
	const struct {
		unsigned flag;
		struct cli_opt opt;
	} standard[] = {
		{ CMD_JSON, { "json", 0, CLI_FLAG, &c->json, NULL,
			      "print JSON" } },
		{ CMD_CSV, { "csv", 0, CLI_FLAG, &c->csv, NULL,
			     "print CSV" } },
		{ CMD_OUTPUT, { "output", 'o', CLI_STR, &c->output, "FILE",
				"write there instead of to stdout" } },
		{ CMD_QUIET, { "quiet", 'q', CLI_FLAG, &c->quiet, NULL,
			       "no progress and no remarks on stderr" } },
		{ CMD_DEVICE, { "verbose", 'v', CLI_FLAG, &c->verbose, NULL,
				"say why it is this device" } },
		{ ~0u, { "color", 0, CLI_STR, &c->color, "WHEN",
			 "colours: always, never or auto (on a terminal, not "
			 "with NO_COLOR)" } },
		{ ~0u, { "deadline", 0, CLI_SECONDS, &c->deadline_ns, "SECONDS",
			 "end after this long, with status 3" } },
		{ ~0u, { "help", 'h', CLI_STOP, NULL, NULL,
			 "show this help (=scd: manual page; =bash, =zsh, "
			 "=fish: completion)" } },
		{ ~0u, { "version", 0, CLI_STOP, NULL, NULL,
			 "show the version and commit" } },
	};
	const char *names = NULL;
	cmd_options_vec all = { 0 };
	unsigned flags = s->flags;

	for (const struct cli_opt *o = tool->options; o && o->name; o++)
		if (o->type == CLI_GROUP) {
			names = o->help;
		} else if (cmd_takes(s, names)) {
			vec_push(&all, *o);
			if (is_device(o))
				flags |= CMD_DEVICE;
		}
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
		if ((flags & standard[i].flag || standard[i].flag == ~0u) &&
		    !has_own(tool, s, standard[i].opt.name))
			vec_push(&all, standard[i].opt);
	vec_push(&all, (struct cli_opt){ 0 });
	return all.v;
}

/* ---- which command is meant ---- */

const struct cmd_spec *cmd_unnamed(const struct cmd_tool *tool)
{
	for (const struct cmd_spec *s = tool->commands; s->run; s++)
		if (!s->name)
			return s;
	return NULL;
}

static const struct cmd_spec *find_command(const struct cmd_tool *tool,
					   const char *name)
{
	for (const struct cmd_spec *s = tool->commands; s->run; s++)
		if (s->name && !strcmp(s->name, name))
			return s;
	return NULL;
}

/* Does the option take the word behind it as its argument? */
static bool takes_next(const struct cli_opt *table, const char *arg)
{
	const struct cli_opt *o = NULL;

	if (arg[1] == '-') {
		o = cli_find_long(table, arg + 2, strlen(arg + 2));
		return o && o->type != CLI_FLAG && o->type != CLI_STOP;
	}
	for (const char *p = arg + 1; *p; p++) {
		o = cli_find_letter(table, *p);
		if (o && o->type != CLI_FLAG && o->type != CLI_STOP)
			return !p[1];
	}
	return false;
}

/*
 * The first operand, which names the command: NULL if there is none, or a
 * request for help stands before it.  Options of all commands are looked
 * through: one that two of them have is of one type.
 */
static const char *first_operand(const struct cli_opt *table, int argc,
				 char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			return argv[i + 1];
		if (argv[i][0] != '-' || !argv[i][1])
			return argv[i];
		if (!strncmp(argv[i], "--help", 6) || !strcmp(argv[i], "-h"))
			return NULL;
		i += takes_next(table, argv[i]);
	}
	return NULL;
}

/* "asm, dis or list" */
static void add_commands(const struct cmd_tool *tool, struct buf *out)
{
	for (const struct cmd_spec *s = tool->commands; s->run; s++) {
		const char *join = s == tool->commands ? "" :
				   s[1].run ? ", " : " or ";

		buf_printf(out, "%s%s", join, s->name ? s->name : s->operands);
	}
}

/* The command that `name` is mistyped of, or NULL. */
static const char *near_command(const struct cmd_tool *tool, const char *name)
{
	struct cmd_near n = { .name = name };

	for (const struct cmd_spec *s = tool->commands; name && s->run; s++)
		if (s->name)
			cmd_near_try(&n, s->name);
	return n.meant;
}

/* `name` names no command; NULL: nothing is named at all. */
static bool no_command(const struct cmd_tool *tool, const char *name,
		       struct err *e)
{
	const char *meant = near_command(tool, name);
	struct buf all = { 0 };

	add_commands(tool, &all);
	if (meant)
		err_set(e, ERR_USAGE, "no command \"%s\": did you mean %s?  "
			"Wanted %s", name, meant, all.data);
	else if (name)
		err_set(e, ERR_USAGE, "no command \"%s\"; wanted %s, see %s "
			"--help", name, all.data, tool->name);
	else
		err_set(e, ERR_USAGE, "no command given; wanted %s, see %s "
			"--help", all.data, tool->name);
	buf_fini(&all);
	return false;
}

/* ---- parsing ---- */

/* An option that the command refused: does another command take it? */
static bool explain_unknown(const struct cmd *c, const struct cli_line *l,
			    struct err *e)
{
	char name[80];
	struct buf takers = { 0 };
	struct cmd none = { 0 };

	if (l->unknown)
		snprintf(name, sizeof(name), "--%.*s",
			 (int)strcspn(l->unknown, "="), l->unknown);
	else
		snprintf(name, sizeof(name), "-%c", l->unknown_letter);
	for (const struct cmd_spec *s = c->tool->commands; s->run; s++) {
		struct cli_opt *table = cmd_options(c->tool, s, &none);

		if (l->unknown ?
			    cli_find_long(table, name + 2, strlen(name + 2)) :
			    cli_find_letter(table, name[1]))
			buf_printf(&takers, "%s%s", takers.len ? ", " : "",
				   s->name ? s->name : s->operands);
		free(table);
	}
	if (takers.len) {
		*e = (struct err){ 0 };
		err_set(e, ERR_USAGE, "%s has no option %s (it is for %s): see "
			"%s --help",
			c->spec->name ? c->spec->name : c->spec->operands,
			name, takers.data, l->name);
	}
	buf_fini(&takers);
	return false;
}

/* --help or --version, in one of its forms. */
static bool print_page(const struct cmd *c, const struct cli_line *l,
		       struct err *e)
{
	const struct cmd_tool *tool = c->tool;
	const char *form = l->stop_value;

	if (!strcmp(l->stop->name, "version"))
		printf("%s %s (%s)\n", tool->name, T0_VERSION, t0_commit());
	else if (!form)
		cmd_help(tool, c->spec && c->spec->name ? c->spec : NULL);
	else if (!strcmp(form, "scd"))
		cmd_manual(tool);
	else if (!cmd_completion(tool, form))
		return err_set(e, ERR_USAGE, "--help=%s: wanted scd, bash, zsh "
			       "or fish, or nothing", form);
	return stdout_check(e);
}

/* How many operands there may be; a form a line becomes "A or B". */
static bool check_operands(const struct cmd *c, const struct cli_line *l,
			   struct err *e)
{
	const struct cmd_spec *s = c->spec;
	struct buf wanted = { 0 }, who = { 0 };

	/* Alone, it may be a command that is mistyped, unless it is a file. */
	const bool alone = c->argc == 1 && !s->name && s->most &&
			   near_command(c->tool, c->argv[0]) &&
			   access(c->argv[0], F_OK);

	if (c->argc >= s->least && c->argc <= s->most && !alone)
		return true;
	if (!s->name && c->tool->commands[1].run)
		return no_command(c->tool, c->argc ? c->argv[0] : NULL, e);
	for (const char *p = s->operands ? s->operands : "none"; *p; p++)
		if (*p == '\n')
			buf_adds(&wanted, " or ");
		else
			buf_addc(&wanted, *p);
	if (s->name)
		buf_printf(&who, "%s: ", s->name);
	if (c->argc > s->most)
		err_set(e, ERR_USAGE, "%sunexpected operand \"%s\"; wanted %s, "
			"see %s --help", who.len ? who.data : "",
			c->argv[s->most], wanted.data, l->name);
	else
		err_set(e, ERR_USAGE, "%sgot %d operand%s, wanted %s; see %s "
			"--help", who.len ? who.data : "", c->argc,
			c->argc == 1 ? "" : "s", wanted.data, l->name);
	buf_fini(&wanted);
	buf_fini(&who);
	return false;
}

/* Options and operands of the command; *done: a page was all that is wanted. */
static bool parse_line(struct cmd *c, const char *command, bool *done,
		       struct err *e)
{
	const struct cmd_spec all = cmd_whole(c->tool, CMD_ALL);
	char name[80];
	struct cli_line l = { .name = name };
	struct cli_opt *table = cmd_options(c->tool,
					    c->spec ? c->spec : &all, c);

	snprintf(name, sizeof(name), "%s%s%s", c->tool->name,
		 c->spec && c->spec->name ? " " : "",
		 c->spec && c->spec->name ? c->spec->name : "");
	l.opt = table;
	bool ok = cli_parse(&l, c->line_argc, c->line_argv, e);
	*done = ok && l.stop;
	if (!ok && c->spec && (l.unknown || l.unknown_letter))
		explain_unknown(c, &l, e);
	if (*done)
		ok = print_page(c, &l, e);
	free(table);
	if (!ok || *done)
		return ok;
	if (!c->spec)
		return no_command(c->tool, command, e);
	c->argc = c->line_argc - l.first - (c->spec->name != NULL);
	c->argv = c->line_argv + l.first + (c->spec->name != NULL);
	return check_operands(c, &l, e);
}

/* ---- running ---- */

/* Where output goes until it is whole. */
struct held {
	char *text;
	size_t len;
};

static bool open_output(struct cmd *c, struct held *h, struct err *e)
{
	c->out = stdout;
	if (!c->output || c->spec->flags & CMD_OWN_OUTPUT)
		return true;
	if (c->spec->flags & CMD_STREAM)
		c->out = fopen(c->output, "w");
	else if (!file_check_writable(c->output, e))
		return false;
	else
		c->out = open_memstream(&h->text, &h->len);
	if (c->out)
		return true;
	return c->spec->flags & CMD_STREAM ?
		       err_sys(e, ERR_IO, errno, "%s", c->output) :
		       err_set(e, ERR_NOMEM, "no memory for the output");
}

/* `ok`: the command succeeded. */
static bool close_output(struct cmd *c, struct held *h, bool ok, struct err *e)
{
	if (c->out == stdout)
		return ok && stdout_check(e);
	const bool bad = ferror(c->out) != 0;
	if ((fclose(c->out) || bad) && ok)
		ok = c->spec->flags & CMD_STREAM ?
			     err_sys(e, ERR_IO, errno, "%s", c->output) :
			     err_set(e, ERR_NOMEM, "no memory for the output");
	if (!(c->spec->flags & CMD_STREAM))
		ok = ok && file_write_atomic(c->output, h->text, h->len, e);
	free(h->text);
	return ok && stdout_check(e);
}

static bool run_hooked(struct cmd *c, struct err *e)
{
	const struct cmd_hook *hook = c->spec->hook;

	if (hook && !hook->open(c, e))
		return false;
	bool ok = c->spec->run(c, e);
	if (hook)
		hook->close(c);
	return ok;
}

/*
 * Threads get stacks as large as the limit, and half a megabyte of sums lies on
 * one (autotune/cpu): what overflows is killed without a word.
 */
static bool check_stack(struct err *e)
{
	const rlim_t least = 1 << 20;
	struct rlimit r;

	return getrlimit(RLIMIT_STACK, &r) || r.rlim_cur >= least ||
	       err_set(e, ERR_NOMEM, "a stack of %ju KiB is too small: wanted "
		       "at least %ju (ulimit -s 8192)",
		       (uintmax_t)(r.rlim_cur >> 10), (uintmax_t)(least >> 10));
}

/* What the options say, else the name of the file. */
static enum table_format output_format(const struct cmd *c)
{
	static const struct {
		const char *end;
		unsigned flag;
		enum table_format format;
	} ends[] = {
		{ ".json", CMD_JSON, TABLE_JSON },
		{ ".csv", CMD_CSV, TABLE_CSV },
		{ ".md", CMD_CSV, TABLE_MARKDOWN },
	};
	const char *end = c->output ? strrchr(c->output, '.') : NULL;

	if (c->json || c->csv)
		return c->json ? TABLE_JSON : TABLE_CSV;
	for (size_t i = 0; end && i < ARRAY_SIZE(ends); i++)
		if (!strcmp(end, ends[i].end) &&
		    c->spec->flags & ends[i].flag &&
		    !(c->spec->flags & CMD_OWN_OUTPUT))
			return ends[i].format;
	return TABLE_TEXT;
}

static bool run_command(struct cmd *c, struct err *e)
{
	struct held h = { 0 };

	if (!check_stack(e) || (c->color && !paint_when(c->color, e)))
		return false;
	if (c->json && c->csv)
		return err_set(e, ERR_USAGE, "--json and --csv exclude each "
			       "other; name one");
	if (c->verbose)
		setenv("T0_VERBOSE", "1", 1);
	c->format = output_format(c);
	return (!c->tool->check || c->tool->check(c, e)) &&
	       open_output(c, &h, e) &&
	       close_output(c, &h, run_hooked(c, e), e);
}

/* JSON that lacks what did not fit would be wrong. */
static void *json_memory(size_t size_bytes)
{
	return xmalloc(size_bytes);
}

int cmd_main(struct cmd *c, const struct cmd_tool *tool, int argc, char **argv)
{
	const struct cmd_spec all = cmd_whole(tool, CMD_ALL);
	struct cli_opt *table = cmd_options(tool, &all, c);
	const char *command = first_operand(table, argc, argv);
	struct err e = { 0 };
	bool done = false;

	cmd_open_streams();
	cmd_refuse_quietly();
	json_set_alloc_funcs(json_memory, free);
	free(table);
	c->tool = tool;
	c->line_argc = argc;
	c->line_argv = argv;
	c->spec = command ? find_command(tool, command) : NULL;
	if (!c->spec)
		c->spec = cmd_unnamed(tool);
	bool ok = parse_line(c, command, &done, &e);
	cmd_stop_begin(c);
	ok = ok && (done || run_command(c, &e));
	int status;
	if (cmd_stop_end(c, &e, &status)) {
		err_report(tool->name, &e);
		c->status = status;
	} else if (!ok) {
		if (e.code == ERR_NONE)
			BUG("%s failed without saying why", tool->name);
		c->status = err_report(tool->name, &e);
	}
	for (const struct cli_opt *o = tool->options; o && o->name; o++)
		if (o->type == CLI_LIST)
			cli_list_fini(o->dst);
	return c->status;
}

/* ---- for commands ---- */

bool cmd_table(const struct cmd *c, const struct table *t, struct err *e)
{
	return table_print(t, c->format, c->out, e);
}

void cmd_remark(const struct cmd *c, const char *fmt, ...)
{
	va_list ap;

	if (c->quiet)
		return;
	char *text = NULL;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		mem_ran_out(strlen(fmt), MEM_HERE);
	va_end(ap);
	err_make_visible(text);
	fold_printf(stderr, 2, "%s: %s\n", c->tool->name, text);
	free(text);
}
