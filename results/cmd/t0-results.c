/*
 * results/cmd/t0-results.c - what has been measured.
 *
 * Shown, compared, gated, plotted, and carried from one database to another.
 */
#include <string.h>

#include "results/cmd/cmd.h"

#define STEPS_AT_ONCE 10000 /* of sqlite's machine: well below 1 ms */

static struct show s = { .o = { .alpha = FAMILY_ALPHA, .limit = GATE_LIMIT,
				.side = GATE_PROCESSES,
				.trials = 2000 } };

/* ---- the database, open while a command runs ---- */

/* Sqlite asks now and then: what it does is left if not 0, and undone. */
static int ask_stop(void *stop)
{
	return *(const _Atomic int *)stop;
}

static bool open_mode(enum res_mode mode, struct err *e)
{
	s.db = res_open(s.o.db, mode, e);
	if (!s.db)
		return false;
	sqlite3_progress_handler(s.db->sq, STEPS_AT_ONCE, ask_stop,
				 (void *)(uintptr_t)cmd_catch_signals(&s.cmd));
	return true;
}

static bool open_to_read(struct cmd *c, struct err *e)
{
	(void)c;
	return open_mode(RES_READ, e);
}

static void close_database(struct cmd *c)
{
	(void)c;
	res_close(s.db);
}

/* For commands that bring rows: they may create the file. */
static bool open_to_add(struct cmd *c, struct err *e)
{
	(void)c;
	return open_mode(RES_WRITE, e);
}

/* For those that do not: the file has to be there. */
static bool open_to_change(struct cmd *c, struct err *e)
{
	if (!open_mode(RES_READ, e))
		return false;
	close_database(c);
	return open_mode(RES_WRITE, e);
}

static bool is_query(const struct cmd *c)
{
	return !c->argc || !strcmp(c->argv[0], "list") ||
	       !strcmp(c->argv[0], "show");
}

static bool open_for_note(struct cmd *c, struct err *e)
{
	return is_query(c) ? open_to_read(c, e) : open_to_add(c, e);
}

static bool open_for_experiment(struct cmd *c, struct err *e)
{
	return c->argc ? open_to_add(c, e) : open_to_read(c, e);
}

static bool open_for_baseline(struct cmd *c, struct err *e)
{
	return is_query(c) ? open_to_read(c, e) : open_to_change(c, e);
}

/* The list of plots needs no database. */
static bool open_for_plot(struct cmd *c, struct err *e)
{
	return s.o.list || open_to_read(c, e);
}

static const struct cmd_hook reads_for_plot = { open_for_plot,
						close_database };
static const struct cmd_hook reads = { open_to_read, close_database };
static const struct cmd_hook adds = { open_to_add, close_database };
static const struct cmd_hook changes = { open_to_change, close_database };
static const struct cmd_hook for_note = { open_for_note, close_database };
static const struct cmd_hook for_experiment = { open_for_experiment,
						close_database };
static const struct cmd_hook for_baseline = { open_for_baseline,
					      close_database };

/* ---- commands and options ---- */

#define QUIET .flags = CMD_QUIET
#define SHOWS .flags = CMD_TABLE | CMD_QUIET

static const struct cmd_spec commands[] = {
	{ "list", NULL, "the runs", res_cmd_list, 0, 0, SHOWS,
	  .hook = &reads },
	{ "show", "[RUN]", "a run with its results and verdicts", res_cmd_show,
	  0, 1, SHOWS, .hook = &reads,
	  .notes = "With --csv it prints one table: the slots if asked for, "
		   "else results, else the slot summary." },
	{ "compare", "A B", "two runs, commits or baselines, case by case",
	  res_cmd_compare, 2, 2, SHOWS, .hook = &reads,
	  .notes = "A side is a run, a commit (seven digits or more, + behind "
		   "it for a changed tree), `baseline`, or FILE.db:SIDE; a run "
		   "of a series stands for its whole side, run:N for itself.  "
		   "Processes are compared, each by its median; those of one "
		   "process are inconclusive.  A verdict of ~ means that "
		   "nothing is proven.  Exit 1 if a case is proven worse." },
	{ "history", "CASE", "a case from run to run", res_cmd_history, 1, 1,
	  SHOWS, .hook = &reads },
	{ "costs", NULL, "the newest costs of each kind", res_cmd_costs, 0, 0,
	  SHOWS, .hook = &reads },
	{ "devices", NULL, "the devices that were measured", res_cmd_devices,
	  0, 0, SHOWS, .hook = &reads },
	{ "sql", "QUERY", "one SELECT", res_cmd_sql, 1, 1, SHOWS,
	  .hook = &reads },
	{ "gate", "[RUN]", "hold results against the accepted baselines",
	  res_cmd_gate, 0, 1, SHOWS, .hook = &changes,
	  .notes = "A case passes when a loss of its baseline's limit is "
		   "excluded.  A gate of a run or commit holds what that "
		   "measured and what baselines require; else all that was "
		   "accepted.  Exit: 0 all passed, 1 not, 2 trouble." },
	{ "bench", "COMMAND...", "a command in fresh processes, and another build", res_cmd_bench, 1, CMD_MANY, SHOWS,
	  .hook = &adds,
	  .notes = "COMMAND stands behind --, as in `bench -p 20 -- t0-probe "
		   "latency --device host`; it stores into this database.  The "
		   "same command goes on with what a kill left.  With "
		   "--against it compares both: exit 1 if a case is worse." },
	{ "bench-commits", "A..B COMMAND...",
	  "a command in every commit of a range, in turns",
	  res_cmd_bench_commits, 2, CMD_MANY, SHOWS, .hook = &adds,
	  .notes = "Each commit is built in a work tree of its own and held "
		   "against the one before it.  COMMAND stands behind --; its "
		   "program is a tree's own, as in -- build/rel/t0-probe "
		   "latency.  Or cases, as in -- cost/v_add_f32, for the "
		   "command of the newest run that measured them.  After a "
		   "kill the same command goes on.  Exit 1 if one is worse." },
	{ "bisect", "GOOD [BAD] COMMAND...",
	  "the commit that made a case worse", res_cmd_bisect, 2, CMD_MANY,
	  SHOWS, .hook = &adds,
	  .notes = "COMMAND or cases as for bench-commits.  Each step runs in "
		   "turns with both ends; what was measured before is not "
		   "measured again.  Exit: 0 found, 1 BAD is not worse, 2 "
		   "trouble.  Without BAD it judges the commit that is checked "
		   "out, for `git bisect run`: 0 good, 1 worse, 125 neither is "
		   "proven, or it cannot be built or run." },
	{ "experiment", "[LIST COMMAND...]",
	  "changes that are tried, kept or discarded", res_cmd_experiment, 0,
	  CMD_MANY, SHOWS, .hook = &for_experiment,
	  .notes = "A line of the file LIST is \"commit HASH\", \"patch "
		   "FILE\", \"env NAME=VALUE...\" or \"args WORD...\", then "
		   "\" : \" and the hypothesis.  COMMAND or cases as for "
		   "bench-commits.  What was tried by the same evaluator is "
		   "not tried again; without LIST it shows all that was." },
	{ "calibrate", "[KIND...]", "false alarms, and what can be found",
	  res_cmd_calibrate, 0, 16, SHOWS, .hook = &adds,
	  .notes = "Kinds: dispatch, latency, gemm, decode, compile, soft.  "
		   "Each gets a pool of processes, quiet and with a busy "
		   "neighbour; a kill is gone on from.  compare and gate print "
		   "what is known." },
	{ "baseline", "accept [RUN [CASE]]|list|show N|retire N",
	  "what gates measure against", res_cmd_baseline, 0, 3, SHOWS,
	  .hook = &for_baseline },
	{ "note", "add|list [TEXT]|show N", "the ledger of experiments",
	  res_cmd_note, 0, 2, SHOWS, .hook = &for_note },
	{ "plot", "[PLOT...]", "draw what was measured", res_cmd_plot, 0, 64,
	  .flags = CMD_JSON | CMD_CSV | CMD_QUIET | CMD_OWN_OUTPUT,
	  .hook = &reads_for_plot,
	  .notes = "A plot shows the device that was measured last in its "
		   "areas, or the one that --device and --origin choose." },
	{ "report", "DIR", "one page of plots, tables and worst offenders",
	  res_cmd_report, 1, 1, QUIET, .hook = &reads },
	{ "export", NULL, "everything, as lines of JSON", res_cmd_export, 0, 0,
	  .flags = CMD_OUTPUT | CMD_QUIET, .hook = &reads },
	{ "import", "FILE...", "take the lines of exports", res_cmd_import, 1,
	  1000, QUIET, .hook = &adds },
	{ "merge", "FILE.db...", "take the rows of other databases",
	  res_cmd_merge, 1, 1000, QUIET, .hook = &adds,
	  .notes = "Once all shards of a work are there (--shard I/N), one run "
		   "is made of them; until then they stay as they are." },
	{ "push", "URL", "all rows into a shared store", res_cmd_push, 1, 1,
	  QUIET, .hook = &reads,
	  .notes = "URL is PostgreSQL's, as postgresql://host/database; the "
		   "library libpq5 must be there.  Rows that the store has are "
		   "not added again; where a connection is lost it goes on." },
	{ "pull", "URL", "take the rows of a shared store", res_cmd_pull, 1, 1,
	  QUIET, .hook = &adds },
	{ "prune", "[RUN...]", "drop runs", res_cmd_prune, 0, 1000, SHOWS,
	  .hook = &changes },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "db", 0, CLI_STR, &s.o.db, "FILE", RES_DB_HELP },
	CLI_OF("show"),
	{ "slots", 0, CLI_FLAG, &s.o.slots, NULL,
	  "list every opcode slot, not only counts" },
	CLI_OF("compare gate bench-commits bisect experiment"),
	{ "allow", 0, CLI_LIST, &s.o.allow, "FIELD",
	  "this field may differ (\"all\": any)" },
	CLI_OF("compare bench-commits bisect experiment"),
	{ "alpha", 0, CLI_F64, &s.o.alpha, "P",
	  "how often a comparison may hold any false verdict (default 0.01; "
	  "its rows share it)" },
	{ "least", 0, CLI_F64, &s.o.least, "SHARE",
	  "exit 1 only for a loss of this size (default 0)" },
	CLI_OF("compare gate bench-commits bisect experiment"),
	{ "only", 0, CLI_STR, &s.o.only, "CASE",
	  "only this case; a pattern like 'gemm/*' works" },
	CLI_OF("compare history baseline bench-commits bisect experiment"),
	{ "metric", 0, CLI_STR, &s.o.metric, "NAME",
	  "only this metric (of baseline: accept)" },
	CLI_OF("experiment"),
	{ "base", 0, CLI_STR, &s.o.base, "COMMIT",
	  "what changes are held against (HEAD)" },
	{ "evaluator", 0, CLI_LIST, &s.o.evaluator, "FILE",
	  "a file that decides: no change may touch it, another content is "
	  "another series (may be given again)" },
	{ "check", 0, CLI_STR, &s.o.check, "COMMAND",
	  "in a shell in each change's tree: are its results right?" },
	{ "budget", 0, CLI_SECONDS, &s.o.budget_ns, "SECONDS",
	  "begin no process after that" },
	CLI_OF("bench-commits bisect experiment"),
	{ "build", 0, CLI_STR, &s.o.build, "COMMAND",
	  "what builds a tree, in a shell there (default: make m=rel all)" },
	{ "keep", 0, CLI_FLAG, &s.o.keep, NULL,
	  "keep the trees in the cache ($XDG_CACHE_HOME/t0/trees)" },
	CLI_OF("bench-commits"),
	{ "shard", 0, CLI_STR, &s.o.shard, "I/N", RES_SHARD_HELP "; it deals "
	  "cases, never commits, so that what is compared was measured on one "
	  "machine in one run" },
	CLI_OF("bench calibrate bench-commits bisect experiment"),
	{ "processes", 'p', CLI_INT, &s.o.processes, "N",
	  "fresh processes of each build (20); calibrate: of a pool (300)" },
	CLI_OF("calibrate"),
	{ "condition", 0, CLI_STR, &s.o.condition, "WORD",
	  "only quiet or busy" },
	{ "planted", 0, CLI_STR, &s.o.planted, "DIR",
	  "builds with a loss of 5 %, to be found (make calibrate has them)" },
	{ "side", 0, CLI_INT, &s.o.side, "N",
	  "processes a side of a trial (20)" },
	{ "trials", 0, CLI_INT, &s.o.trials, "N", "relabellings (2000)" },
	CLI_OF("bench"),
	{ "against", 0, CLI_STR, &s.o.against, "PROGRAM",
	  "another build: its program, or the folder it is in" },
	CLI_OF("gate note"),
	{ "commit", 0, CLI_STR, &s.o.commit, "HASH",
	  "gate: only results of this commit; note: what it is about" },
	CLI_OF("gate"),
	{ "any-host", 0, CLI_FLAG, &s.o.any_host, NULL,
	  "also baselines of other machines" },
	{ "verbose", 'v', CLI_FLAG, &s.o.verbose, NULL,
	  "all rows with their reasons, and what to investigate" },
	CLI_OF("baseline"),
	{ "reason", 0, CLI_STR, &s.o.reason, "TEXT", "accept, retire: why" },
	{ "limit", 0, CLI_F64, &s.o.limit, "SHARE",
	  "accept: what these cases may lose (default 0.05)" },
	{ "required", 0, CLI_FLAG, &s.o.required, NULL,
	  "accept: every gate must have measured them" },
	CLI_OF("baseline note"),
	{ "all", 0, CLI_FLAG, &s.o.all, NULL,
	  "list: also what was replaced" },
	CLI_OF("export"),
	{ "anonymous", 0, CLI_FLAG, &s.o.anonymous, NULL,
	  "no name of host or user, no serial number, no command line" },
	CLI_OF("note"),
	{ "hypothesis", 0, CLI_STR, &s.o.hypothesis, "TEXT",
	  "what was expected to help, and why" },
	{ "about", 0, CLI_STR, &s.o.about, "CASE",
	  "the case that it is about" },
	{ "expected", 0, CLI_STR, &s.o.expected, "GAIN",
	  "5%, 0.05 or 1.05x" },
	{ "measured", 0, CLI_STR, &s.o.measured, "GAIN",
	  "what it really gained" },
	{ "status", 0, CLI_STR, &s.o.status, "WORD",
	  "keep, discard, null, crash or retracted" },
	{ "patch", 0, CLI_STR, &s.o.patch, "TEXT",
	  "the change, or the name of its file" },
	{ "remark", 0, CLI_STR, &s.o.remark, "TEXT", "anything else" },
	{ "replaces", 0, CLI_STR, &s.o.replaces, "N",
	  "the earlier note that this one corrects" },
	CLI_OF("prune"),
	{ "older-than", 0, CLI_STR, &s.o.older_than, "DAYS",
	  "every run that began before that" },
	{ "tunes", 0, CLI_FLAG, &s.o.tunes, NULL,
	  "also what the tuner decided in them, which stays otherwise" },
	{ "yes", 'y', CLI_FLAG, &s.o.yes, NULL, "do not ask" },
	CLI_OF("prune gate baseline"),
	{ "dry-run", 'n', CLI_FLAG, &s.o.dry_run, NULL,
	  "prune, gate, baseline accept: store nothing" },
	CLI_OF("plot"),
	{ "term", 0, CLI_FLAG, &s.o.term, NULL,
	  "draw with letters on the terminal" },
	{ "list", 'l', CLI_FLAG, &s.o.list, NULL,
	  "list the plots, their areas, and what fills them" },
	{ "paper", 0, CLI_STR, &s.o.paper, "WORD",
	  "figures of a paper, as wide as a column or page" },
	{ "output", 'o', CLI_STR, &s.cmd.output, "DIR",
	  "draw into this folder (default: plots)" },
	CLI_OF("plot report"),
	{ "origin", 0, CLI_STR, &s.o.origin, "WORD",
	  "draw hardware, emulated, simulated or published numbers" },
	{ "device", 0, CLI_STR, &s.o.device, "NAME",
	  "draw the device that has this in its name, or host" },
	{ "run", 0, CLI_STR, &s.o.run, "RUN",
	  "draw what this run measured, beside what was published" },
	{ 0 },
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-results",
		.summary = "shows, compares and gates what has been measured",
		.commands = commands,
		.options = options,
		.notes = "RUN is a number from `list`, or `last`.  Values are "
			 "in SI units.",
	};

	return cmd_main(&s.cmd, &tool, argc, argv);
}
