/*
 * cmd - a tool: its commands and options, where its output goes, how it ends.
 *
 * A tool is a table of commands and a table of options; its main() only calls
 * cmd_main().  From the tables come parsing, `t0-x --help` (commands, and the
 * options that all of them take), `t0-x COMMAND --help` (that command and its
 * options), the parts of the manual page (--help=scd), completion (--help=bash)
 * and the messages for whatever is mistyped.
 *
 *	static struct opts { struct cmd cmd; const char *chip; bool hex; } o;
 *
 *	static bool run_dis(struct cmd *c, struct err *e)
 *	{
 *		struct table t;
 *		...
 *		for (int i = 0; ok && i < c->argc; i++)
 *			ok = disassemble(&o, c->argv[i], &t, e);
 *		return ok && cmd_table(c, &t, e);
 *	}
 *
 *	static const struct cmd_spec commands[] = {
 *		{ "dis", "FILE...", "disassemble code objects", run_dis,
 *		  1, CMD_MANY, CMD_TABLE },
 *		{ "list", NULL, "print all instructions", run_list,
 *		  0, 0, CMD_TABLE },
 *		{ 0 }
 *	};
 *	static const struct cli_opt options[] = {
 *		{ "chip", 0, CLI_STR, &o.chip, "NAME", "for this chip" },
 *		CLI_OF("dis"),
 *		{ "hex", 0, CLI_FLAG, &o.hex, NULL, "FILE is hex text" },
 *		{ 0 }
 *	};
 *	static const struct cmd_tool tool = {
 *		.name = "t0-isa", .summary = "explain machine code",
 *		.commands = commands, .options = options,
 *	};
 *
 *	int main(int argc, char **argv)
 *	{
 *		return cmd_main(&o.cmd, &tool, argc, argv);
 *	}
 *
 * The struct cmd stands first in the tool's own struct, so that a command finds
 * its options: `struct opts *o = (struct opts *)c`.
 *
 * A tool that has no commands has one row without a name.  Such a row may also
 * stand among commands: it is what the tool does when the first operand names
 * none of them.
 *
 * Exit status: 0 yes, 1 no, 2 trouble, 3 the device faulted, 77 no device
 * (err_exit_code(); an error is printed as "TOOL: MESSAGE").  A command that
 * succeeds and has another answer than yes sets c->status.
 *
 * A signal ends a command at once, and so does --deadline SECONDS, which every
 * command takes unless its tool has an option of that name: status 3.  One that
 * runs for long and has something to keep calls cmd_catch_signals() and looks,
 * in any thread, at *c->stop: as soon as that is not 0 it keeps what it has and
 * returns; with ERR_STOPPED and what is to be known ("the same command goes on
 * with run 3"), or with true, and c->kept, if its output is of use as far as it
 * came.  The runner says which signal it was, and the status is 128 + its number.
 *
 * Every command takes --color=WHEN, and one with an option --device, but =NAME,
 * takes --verbose, which sets T0_VERBOSE: the runtime then says why it is this one.
 *
 * Standard streams that are closed at the start are opened on /dev/null, so
 * that no file of the tool becomes one of them; what is printed to a closed
 * stdout is an error, as on a full disk; so is a file beyond `ulimit -f`.
 */
#ifndef T0_BASE_CMD_H
#define T0_BASE_CMD_H

#include <limits.h>

#include "base/base.h"

struct cmd;

/* What a command has open while it runs, such as a database. */
struct cmd_hook {
	bool (*open)(struct cmd *c, struct err *e);
	void (*close)(struct cmd *c); /* only after open() succeeded */
};

/* Standard options that a command takes, and how it writes. */
enum {
	CMD_JSON = 1,	/* --json: c->format */
	CMD_CSV = 2,	/* --csv */
	/*
	 * --output FILE, -o: c->out is that file.  Its name, .json, .csv or
	 * .md (markdown), chooses the format where no option does.
	 */
	CMD_OUTPUT = 4,
	CMD_QUIET = 8,	/* --quiet, -q: c->quiet */
	CMD_TABLE = CMD_JSON | CMD_CSV | CMD_OUTPUT,
	/*
	 * --output is written in whole when the command succeeded, else left
	 * as it was; with this as it comes, and as far as it came.
	 */
	CMD_STREAM = 16,
	/* The command itself writes into c->output; c->out is stdout. */
	CMD_OWN_OUTPUT = 32,
};

enum { CMD_MANY = INT_MAX };

struct cmd_spec {
	const char *name;     /* NULL: what the tool does without a command */
	const char *operands; /* as in the usage, a form a line; NULL: none */
	const char *summary;  /* one line; that of the tool if it has no name */
	bool (*run)(struct cmd *c, struct err *e); /* NULL ends the table */
	int least, most;			   /* operands */
	unsigned flags;
	const struct cmd_hook *hook; /* NULL: none */
	const char *notes; /* printed after its options; NULL: none */
};

struct cmd_tool {
	const char *name, *summary;
	const struct cmd_spec *commands;
	const struct cli_opt *options; /* beside the standard ones */
	const char *notes; /* printed after the options; NULL: none */
	/* Checks the options of any command before it runs; NULL: nothing. */
	bool (*check)(struct cmd *c, struct err *e);
};

/* In a table of options: those behind it are only of these commands. */
#define CLI_OF(names) { .name = "", .type = CLI_GROUP, .help = (names) }
/* Among the names: the row without one. */
#define CMD_UNNAMED "-"

/* A command that runs. */
struct cmd {
	const struct cmd_tool *tool;
	const struct cmd_spec *spec;
	int argc;    /* operands behind the command's name */
	char **argv; /* ends with NULL */
	int line_argc; /* the whole command line, options first */
	char **line_argv;
	const char *output; /* of --output; NULL: stdout */
	bool json, csv, quiet;
	enum table_format format;
	FILE *out;
	int status; /* the exit status, if the command succeeds */
	const _Atomic int *stop; /* the signal that asks it to end; 0: none */
	const char *kept; /* what is to be known then; NULL: the usual */
	uint64_t deadline_ns;	  /* of --deadline; 0: none */
	bool verbose;
	const char *color; /* of --color; NULL: auto */
};

/* ------------------------------------------------------------- cmd.c ---- */

/*
 * Does what the command line says: returns the exit status of main().  Lists
 * that options filled are freed.
 */
int cmd_main(struct cmd *c, const struct cmd_tool *tool, int argc, char **argv);

/* The table to c->out, as --json and --csv ask for. */
bool cmd_table(const struct cmd *c, const struct table *t, struct err *e);

/*
 * The name that was probably meant: begins as { .name = what was given }, and
 * is shown all that there are.  `meant` is NULL if none is close.
 */
struct cmd_near {
	const char *name, *meant;
	size_t distance;
};
void cmd_near_try(struct cmd_near *n, const char *candidate);

/* "TOOL: TEXT" and a newline on stderr; nothing with --quiet. */
void cmd_remark(const struct cmd *c, const char *fmt, ...) T0_PRINTF(2, 3);

/* -------------------------------------------------------- cmd_stop.c ---- */

/*
 * From now on SIGINT, SIGTERM, SIGHUP (unless nohup ignores it) and the end of
 * --deadline set *c->stop, which is also returned.  Calls that they interrupt
 * go on; a second signal of a kind ends the process.
 */
const _Atomic int *cmd_catch_signals(const struct cmd *c);
/* Has one of them come?  For what waits and knows no command. */
bool cmd_is_stopped(void);
/* The exit status for *c->stop. */
int cmd_stop_status(int signal);

#endif
