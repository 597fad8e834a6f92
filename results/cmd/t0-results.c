/*
 * t0-results - what has been measured: shown, compared, gated, plotted, and
 * carried from one database to another.
 */
#include <stdlib.h>
#include <string.h>

#include "results/cmd/tool.h"

static const struct command {
	const char *name, *operands; /* as in the usage; NULL = none */
	int least, most;	     /* operands */
	enum res_mode mode;
	bool (*run)(struct show *s, int argc, char **argv, struct err *e);
} commands[] = {
	{ "list", NULL, 0, 0, RES_READ, cmd_list },
	{ "show", "[RUN]", 0, 1, RES_READ, cmd_show },
	{ "compare", "A B", 2, 2, RES_READ, cmd_compare },
	{ "history", "CASE", 1, 1, RES_READ, cmd_history },
	{ "costs", NULL, 0, 0, RES_READ, cmd_costs },
	{ "devices", NULL, 0, 0, RES_READ, cmd_devices },
	{ "sql", "QUERY", 1, 1, RES_READ, cmd_sql },
	{ "gate", "[RUN]", 0, 1, RES_WRITE, cmd_gate },
	{ "baseline", "accept [RUN [CASE]]|list|show N|retire N", 0, 3,
	  RES_WRITE, cmd_baseline },
	{ "note", "add|list [TEXT]|show N", 0, 2, RES_WRITE, cmd_note },
	{ "plot", "[NAME...]", 0, 64, RES_READ, cmd_plot },
	{ "report", "DIR", 1, 1, RES_READ, cmd_report },
	{ "export", NULL, 0, 0, RES_READ, cmd_export },
	{ "import", "FILE...", 1, 1000, RES_WRITE, cmd_import },
	{ "merge", "FILE.db...", 1, 1000, RES_WRITE, cmd_merge },
	{ "prune", "[RUN...]", 0, 1000, RES_WRITE, cmd_prune },
};

static bool no_command(const char *got, struct err *e)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		buf_printf(&b, "%s%s", i ? ", " : "", commands[i].name);
	if (got)
		err_set(e, ERR_USAGE, "no command \"%s\"; wanted %s", got,
			b.data);
	else
		err_set(e, ERR_USAGE, "no command; wanted %s", b.data);
	buf_fini(&b);
	return false;
}

static const struct command *find_command(int argc, char **argv, struct err *e)
{
	const struct command *c = NULL;

	for (size_t i = 0; argc > 0 && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, argv[0]))
			c = &commands[i];
	if (!c)
		no_command(argc > 0 ? argv[0] : NULL, e);
	else if (argc - 1 > c->most)
		err_set(e, ERR_USAGE, "%s: unexpected operand \"%s\"", c->name,
			argv[c->most + 1]);
	else if (argc - 1 < c->least)
		err_set(e, ERR_USAGE, "%s: wanted %s", c->name, c->operands);
	else
		return c;
	return NULL;
}

/* Into memory first, so that a failure leaves the old file untouched. */
static bool run_into_file(const struct command *c, struct show *s, int argc,
			  char **argv, struct err *e)
{
	char *text = NULL;
	size_t len = 0;

	s->out = open_memstream(&text, &len);
	if (!s->out)
		return err_set(e, ERR_NOMEM, "no memory for the output");
	bool ok = c->run(s, argc, argv, e);
	fclose(s->out);
	ok = ok && file_write_atomic(s->o->output, text, len, e);
	free(text);
	return ok;
}

static bool is_query(int argc, char **argv)
{
	return argc < 2 || !strcmp(argv[1], "list") || !strcmp(argv[1], "show");
}

/* Only commands that bring rows may create the file. */
static struct res_db *open_for(const struct command *c,
			       const struct show_opts *o, int argc,
			       char **argv, struct err *e)
{
	bool verbs = c->run == cmd_baseline || c->run == cmd_note;
	bool brings = c->run == cmd_import || c->run == cmd_merge ||
		      c->run == cmd_note;

	if (c->mode == RES_READ || (verbs && is_query(argc, argv)))
		return res_open(o->db, RES_READ, e);
	if (!brings) {
		struct res_db *db = res_open(o->db, RES_READ, e);
		if (!db)
			return NULL;
		res_close(db);
	}
	return res_open(o->db, RES_WRITE, e);
}

static bool run(const struct show_opts *o, int argc, char **argv, int *status,
		struct err *e)
{
	struct show s = {
		.format = o->json ? TABLE_JSON :
			  o->csv  ? TABLE_CSV : TABLE_TEXT,
		.out = stdout,
		.o = o,
	};
	const struct command *c;

	if (o->json && o->csv)
		return err_set(e, ERR_USAGE, "--json and --csv exclude each "
			       "other; name one");
	c = find_command(argc, argv, e);
	if (!c)
		return false;
	s.db = open_for(c, o, argc, argv, e);
	if (!s.db)
		return false;
	/* A plot's --output is a folder, which it fills by itself. */
	bool whole = o->output && c->run != cmd_plot;
	bool ok = whole ? run_into_file(c, &s, argc, argv, e) :
			  c->run(&s, argc, argv, e) && stdout_check(e);
	res_close(s.db);
	*status = s.status;
	return ok;
}

/* A line for each command. */
static struct buf usage(void)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		buf_printf(&b, "%s%s [options]%s%s", i ? "\n" : "",
			   commands[i].name, commands[i].operands ? " " : "",
			   commands[i].operands ? commands[i].operands : "");
	return b;
}

static const char notes[] =
	"RUN is a number from `list`, or `last`.  A side of `compare` is "
	"a run, a commit (seven digits or more, + behind it for a changed "
	"tree), `baseline`, or FILE.db:SIDE.  With six runs or more on both "
	"sides, their medians are the samples.  A verdict of ~ means that "
	"nothing is proven.  Values are in SI units.\n"
	"\n"
	"gate ends with 0 pass, 1 regress, 2 inconclusive (or trouble), 3 no "
	"data; only 0 is a pass.  compare ends with 1 if a case is proven "
	"worse.  With --csv, show prints one table: the slots if asked for, "
	"else results, else the slot summary.\n";

int main(int argc, char **argv)
{
	struct show_opts o = { .alpha = 0.05 };
	const struct cli_opt opt[] = {
		{ "db", 0, CLI_STR, &o.db, "FILE",
		  "the database (default: $T0_DB, else t0.db)" },
		{ "slots", 0, CLI_FLAG, &o.slots, NULL,
		  "show: list every opcode slot, not only counts" },
		{ "allow", 0, CLI_LIST, &o.allow, "FIELD",
		  "compare, gate: this field may differ (\"all\": any)" },
		{ "alpha", 0, CLI_F64, &o.alpha, "P",
		  "compare: what counts as proven (default 0.05)" },
		{ "least", 0, CLI_F64, &o.least, "SHARE",
		  "compare: exit 1 only for a loss of this size (default 0)" },
		{ "metric", 0, CLI_STR, &o.metric, "NAME",
		  "compare, history, baseline accept: only this metric" },
		{ "only", 0, CLI_STR, &o.only, "CASE",
		  "compare: only this case; a pattern like 'gemm/*' works" },
		{ "commit", 0, CLI_STR, &o.commit, "HASH",
		  "gate: only results of this commit; note: what it is about" },
		{ "any-host", 0, CLI_FLAG, &o.any_host, NULL,
		  "gate: also baselines of other machines" },
		{ "reason", 0, CLI_STR, &o.reason, "TEXT",
		  "baseline accept, retire: why" },
		{ "all", 0, CLI_FLAG, &o.all, NULL,
		  "baseline list, note list: also what was replaced" },
		{ "hypothesis", 0, CLI_STR, &o.hypothesis, "TEXT",
		  "note: what was expected to help, and why" },
		{ "about", 0, CLI_STR, &o.about, "CASE",
		  "note: the case that it is about" },
		{ "expected", 0, CLI_STR, &o.expected, "GAIN",
		  "note: 5%, 0.05 or 1.05x" },
		{ "measured", 0, CLI_STR, &o.measured, "GAIN",
		  "note: what it really gained" },
		{ "status", 0, CLI_STR, &o.status, "WORD",
		  "note: keep, discard, null, crash or retracted" },
		{ "patch", 0, CLI_STR, &o.patch, "TEXT",
		  "note: the change, or the name of its file" },
		{ "remark", 0, CLI_STR, &o.remark, "TEXT",
		  "note: anything else" },
		{ "replaces", 0, CLI_STR, &o.replaces, "N",
		  "note: the earlier note that this one corrects" },
		{ "older-than", 0, CLI_STR, &o.older_than, "DAYS",
		  "prune: every run that began before that" },
		{ "tunes", 0, CLI_FLAG, &o.tunes, NULL,
		  "prune: also what the tuner decided in them, which stays "
		  "otherwise" },
		{ "yes", 'y', CLI_FLAG, &o.yes, NULL, "prune: do not ask" },
		{ "dry-run", 'n', CLI_FLAG, &o.dry_run, NULL,
		  "prune, gate, baseline accept: store nothing" },
		{ "term", 0, CLI_FLAG, &o.term, NULL,
		  "plot: draw with letters on the terminal" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "write there instead of to stdout; plot: into this folder" },
		{ "quiet", 'q', CLI_FLAG, &o.quiet, NULL,
		  "no remarks on stderr" },
		{ 0 },
	};
	struct buf lines = usage();
	const struct cli_tool tool = {
		.name = "t0-results",
		.summary = "shows, compares and gates what has been measured",
		.usage = lines.data,
		.opt = opt,
		.notes = notes,
	};
	struct err e = { 0 };
	int first = 0, status = EXIT_YES;
	bool done = false;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e) ||
	    (!done && !run(&o, argc - first, argv + first, &status, &e)))
		status = err_report(tool.name, &e);
	cli_list_fini(&o.allow);
	buf_fini(&lines);
	return status;
}
