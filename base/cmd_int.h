/*
 * cmd_int.h - what cli.c and cmd*.c share; not for other folders.
 */
#ifndef T0_BASE_CMD_INT_H
#define T0_BASE_CMD_INT_H

#include "base/cmd.h"
#include "base/vec.h"

/* ------------------------------------------------------------- cli.c ---- */

/* Levenshtein distance of two short names, the first of `a_len` bytes. */
size_t cli_distance(const char *a, size_t a_len, const char *b);
/* Below this distance a name of `len` bytes was probably meant. */
size_t cli_near(size_t len);

/* The option of that name, or letter; NULL if the table has none. */
const struct cli_opt *cli_find_long(const struct cli_opt *table,
				    const char *name, size_t len);
const struct cli_opt *cli_find_letter(const struct cli_opt *table, char c);

/* ------------------------------------------------------------- cmd.c ---- */

typedef VEC(struct cli_opt) cmd_options_vec;

/* Rows for which the help of a tool as a whole stands, no commands. */
enum {
	CMD_ALL = 64,	  /* takes what any command takes */
	CMD_COMMON = 128, /* takes what all commands take */
	CMD_DEVICE = 256, /* runs on a device: not a flag of a row */
};

/* The row without a name; NULL: there is none. */
const struct cmd_spec *cmd_unnamed(const struct cmd_tool *tool);
bool cmd_takes(const struct cmd_spec *s, const char *names);
/*
 * What the row takes, ended by {0}: of the tool's table, then standard options,
 * which store into `c`, then --help and --version.  The caller frees it.
 */
struct cli_opt *cmd_options(const struct cmd_tool *tool,
			    const struct cmd_spec *s, struct cmd *c);
/* CMD_ALL or CMD_COMMON of this tool. */
struct cmd_spec cmd_whole(const struct cmd_tool *tool, unsigned which);

/* -------------------------------------------------------- cmd_stop.c ---- */

/* What is closed of stdin, stdout and stderr is opened, and cannot be used. */
void cmd_open_streams(void);
/*
 * A file that grows beyond the limit of `ulimit -f` is an error like a full
 * disk, and does not end the process.
 */
void cmd_refuse_quietly(void);
/* No signal has come yet; --deadline runs from now on. */
void cmd_stop_begin(struct cmd *c);
/*
 * --deadline no longer runs.  True: a signal or it ended the command, `e` says
 * so, and *status is the exit status.
 */
bool cmd_stop_end(const struct cmd *c, struct err *e, int *status);

/* -------------------------------------------------------- cmd_help.c ---- */

/* The page of a command; of the tool where `s` is NULL. */
void cmd_help(const struct cmd_tool *tool, const struct cmd_spec *s);
/* The parts of a manual page that the tables know, as scdoc source. */
void cmd_manual(const struct cmd_tool *tool);

/* --------------------------------------------------- cmd_complete.c ---- */

/*
 * Completion of commands, their options and the values of options, for
 * "bash", "zsh" or "fish"; false: for no other shell.
 */
bool cmd_completion(const struct cmd_tool *tool, const char *shell);

#endif
