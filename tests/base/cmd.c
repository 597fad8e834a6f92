/* base/cmd.c: the runner of commands, alone. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cmd.h"
#include "base/threads.h"
#include "tests/tap.h"

static struct tool_options {
	struct cmd cmd;
	bool hex;
	const char *name;
	struct cli_list allow;
	uint64_t level;
} o;

/* What the commands did, as a text. */
static struct buf did;

static bool do_copy(struct cmd *c, struct err *e)
{
	struct tool_options *mine = (struct tool_options *)c;

	buf_printf(&did, "copy hex=%d", mine->hex);
	for (int i = 0; i < c->argc; i++)
		buf_printf(&did, " %s", c->argv[i]);
	fprintf(c->out, "copied\n");
	if (mine->level == 3)
		return err_set(e, ERR_DEVICE, "the device faulted");
	if (mine->level == 77)
		return err_set(e, ERR_NODEV, "no device");
	c->status = mine->level == 1 ? EXIT_NO : EXIT_YES;
	return true;
}

static bool do_list(struct cmd *c, struct err *e)
{
	struct table t;

	table_init(&t, "name,#size");
	table_row(&t);
	table_cell(&t, 0, "a");
	table_cell(&t, 1, "%d", 4);
	cmd_remark(c, "%d row", 1);
	buf_adds(&did, "list");
	const bool ok = cmd_table(c, &t, e);
	table_fini(&t);
	return ok;
}

static bool do_watch(struct cmd *c, struct err *e)
{
	fprintf(c->out, "one\n");
	return err_set(e, ERR_INPUT, "interrupted");
}

/* One thread has the signal, the other looks for it. */
static void stop_team(void *ctx, struct threads *t, unsigned thread)
{
	const _Atomic int *stop = ctx;

	(void)t;
	if (!thread)
		raise(SIGTERM);
	for (int i = 0; i < 2000 && !*stop; i++)
		usleep(1000);
}

/* Runs until it is asked to end, or is as if it were. */
static bool do_sleep(struct cmd *c, struct err *e)
{
	const _Atomic int *stop = cmd_catch_signals(c);

	if (o.name && !strcmp(o.name, "hup"))
		raise(SIGHUP);
	if (o.name && !strcmp(o.name, "term"))
		raise(SIGTERM);
	if (o.name && !strcmp(o.name, "team")) {
		struct threads *team = threads_new(2, e);
		if (!team)
			return false;
		threads_run(team, stop_team, (void *)stop);
		threads_free(team);
	}
	for (int i = 0; i < 2000 && !*stop; i++)
		usleep(1000);
	fprintf(c->out, "slept\n");
	if (o.level == 1)
		return err_set(e, ERR_STOPPED, "run 3 has 4 of 7 cases");
	c->kept = o.level == 2 ? "the same command goes on" : NULL;
	return true;
}

static bool do_draw(struct cmd *c, struct err *e)
{
	(void)e;
	buf_printf(&did, "draw into %s", c->output ? c->output : "plots");
	fprintf(c->out, "drawn\n");
	return true;
}

static bool open_door(struct cmd *c, struct err *e)
{
	buf_adds(&did, "open ");
	return !c->argc || err_set(e, ERR_INPUT, "%s is locked", c->argv[0]);
}

static void close_door(struct cmd *c)
{
	(void)c;
	buf_adds(&did, " close");
}

static const struct cmd_hook door = { open_door, close_door };

static const struct cmd_spec commands[] = {
	{ "copy", "FILE...", "copies files", do_copy, 1, CMD_MANY,
	  .flags = CMD_OUTPUT },
	{ "list", "[DOOR]", "lists what there is", do_list, 0, 1,
	  .flags = CMD_TABLE | CMD_QUIET, .hook = &door,
	  .notes = "A DOOR is locked." },
	{ "watch", NULL, "goes on", do_watch, 0, 0,
	  .flags = CMD_OUTPUT | CMD_STREAM },
	{ "sleep", NULL, "sleeps", do_sleep, 0, 0, .flags = CMD_OUTPUT },
	{ "draw", NULL, "draws", do_draw, 0, 0,
	  .flags = CMD_OUTPUT | CMD_OWN_OUTPUT },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "level", 'l', CLI_U64, &o.level, "N", "how deep" },
	CLI_OF("copy"),
	{ "hex", 'x', CLI_FLAG, &o.hex, NULL, "copy as hexadecimal text" },
	CLI_OF("list watch sleep"),
	{ "name", 'n', CLI_STR, &o.name, "NAME", "only this name" },
	{ "allow", 0, CLI_LIST, &o.allow, "RULE", "let it pass" },
	{ 0 },
};

static bool check_level(struct cmd *c, struct err *e)
{
	(void)c;
	return o.level < 100 || err_set(e, ERR_USAGE, "--level: too deep");
}

static const struct cmd_tool tool = {
	.name = "t0-x", .summary = "tests commands", .commands = commands,
	.options = options, .notes = "A note.", .check = check_level,
};

/* A tool of one row without a name, and one that has it beside a command. */
static const struct cmd_spec only[] = {
	{ NULL, "FROM TO\n--all FROM", NULL, do_copy, 2, 2,
	  .flags = CMD_OUTPUT },
	{ 0 },
};
static const struct cmd_tool single = {
	.name = "t0-y", .summary = "copies", .commands = only,
};
static const struct cmd_spec mixed_commands[] = {
	{ NULL, "FROM TO", "copies one file", do_copy, 2, 2, .flags = 0 },
	{ "list", NULL, "lists", do_list, 0, 0, .flags = CMD_TABLE },
	{ 0 },
};
static const struct cli_opt mixed_options[] = {
	CLI_OF(CMD_UNNAMED),
	{ "hex", 'x', CLI_FLAG, &o.hex, NULL, "copy as hexadecimal text" },
	{ 0 },
};
static const struct cmd_tool mixed = {
	.name = "t0-z", .summary = "copies and lists",
	.commands = mixed_commands, .options = mixed_options,
};

/* ---- running a command line ---- */

static char out[8192], err[2048];

static int redirect(int fd, FILE *f)
{
	int keep = dup(fd);

	dup2(fileno(f), fd);
	return keep;
}

static void restore(int fd, int keep, FILE *f, char *text, size_t size)
{
	dup2(keep, fd);
	close(keep);
	rewind(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static int run_words(const struct cmd_tool *t, const char *line)
{
	static char words[512], *argv[32];
	int argc = 0;

	snprintf(words, sizeof(words), "%s %s", t->name, line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	return cmd_main(&o.cmd, t, argc, argv);
}

/* The exit status of the words of `line`; fills `out`, `err` and `did`. */
static int run(const struct cmd_tool *t, const char *line)
{
	FILE *to_out = tmpfile(), *to_err = tmpfile();

	o = (struct tool_options){ .level = 0 };
	buf_reset(&did);
	buf_adds(&did, "");
	fflush(stdout);
	int keep_out = redirect(1, to_out), keep_err = redirect(2, to_err);
	int status = run_words(t, line);
	fflush(stdout);
	restore(1, keep_out, to_out, out, sizeof(out));
	restore(2, keep_err, to_err, err, sizeof(err));
	return status;
}

static void test_run(void)
{
	is_i64(run(&tool, "copy a b --hex"), 0, "a command runs");
	is_str(did.data, "copy hex=1 a b", "with its operands and options");
	is_str(out, "copied\n", "and prints");
	is_i64(run(&tool, "--level 2 -x copy a"), 0, "options may come first");
	is_str(did.data, "copy hex=1 a", "without being taken for the command");
	is_i64(run(&tool, "--level=2 copy -- -x"), 0, "-- ends the options");
	is_str(did.data, "copy hex=0 -x", "behind the command, too");
	is_i64(run(&tool, "copy a --level 1"), 1, "the answer may be no");
	is_str(err, "", "which is no error");
	is_i64(run(&tool, "copy a --level 3"), 3, "a device may fault");
	is_str(err, "t0-x: the device faulted\n", "as the error says");
	is_i64(run(&tool, "copy a --level 77"), 77, "or be missing");
	is_i64(run(&tool, "copy a --level 100"), 2, "options are checked");
	is_str(did.data, "", "before anything runs");
	is_i64(run(&tool, "list"), 0, "a command with a hook runs");
	is_str(did.data, "open list close", "between opening and closing");
	is_str(err, "t0-x: 1 row\n", "a remark has the tool's name");
	is_i64(run(&tool, "list cellar"), 2, "what cannot be opened");
	is_str(did.data, "open ", "is not run, and not closed");
	is_i64(run(&tool, "list -q --allow a --allow b"), 0, "lists are taken");
	is_str(err, "", "and --quiet silences remarks");
}

static void test_formats(void)
{
	run(&tool, "list");
	is_str(out, "name  size\na        4\n", "text");
	run(&tool, "list --csv");
	is_str(out, "name,size\r\na,4\r\n", "CSV");
	run(&tool, "list --json");
	has_str(out, "\"size\": 4", "JSON");
	is_i64(run(&tool, "list --json --csv"), 2, "both are refused");
	is_str(err, "t0-x: --json and --csv exclude each other; name one\n",
	       "with the reason");
}

/* The file's text; NULL: there is none. */
static const char *text_of(const char *path)
{
	static struct buf text;

	buf_reset(&text);
	return file_read(path, 0, &text, NULL) ? text.data : NULL;
}

static void test_output(void)
{
	char dir[] = "/tmp/t0-cmd-XXXXXX", path[64], line[128];

	if (!ok(mkdtemp(dir), "a folder"))
		return;
	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(line, sizeof(line), "copy a -o %s", path);
	is_i64(run(&tool, line), 0, "--output is written");
	is_str(text_of(path), "copied\n", "with what the command printed");
	is_str(out, "", "and not to stdout");
	snprintf(line, sizeof(line), "watch -o %s", path);
	is_i64(run(&tool, line), 2, "a stream that fails");
	is_str(text_of(path), "one\n", "keeps what came");
	snprintf(line, sizeof(line), "copy a --level 3 -o %s", path);
	is_i64(run(&tool, line), 3, "another command that fails");
	is_str(text_of(path), "one\n", "leaves the file as it was");
	unlink(path);
	buf_reset(&did);
	snprintf(line, sizeof(line), "copy a -o %s", dir);
	is_i64(run(&tool, line), 2, "--output that is a folder");
	ok(!strstr(did.data ? did.data : "", "copy"), "is found before it runs");
	snprintf(line, sizeof(line), "draw -o %s", path);
	is_i64(run(&tool, line), 0, "a command that writes itself");
	ok(!text_of(path), "gets the name only");
	is_str(out, "drawn\n", "and stdout");
	snprintf(line, sizeof(line), "copy a -o %s/no/out", dir);
	is_i64(run(&tool, line), 2, "a file that cannot be written");
	has_str(err, "/no/out", "is named");
	if (access("/dev/full", W_OK) == 0)
		is_i64(run(&tool, "watch -o /dev/full"), 2, "a full disk");
	rmdir(dir);
}

static void test_mistakes(void)
{
	static const struct {
		const struct cmd_tool *tool;
		const char *line, *message;
	} v[] = {
		{ &tool, "", "no command given; wanted copy, list, watch, "
			     "sleep or draw, see t0-x --help" },
		{ &tool, "lsit", "no command \"lsit\": did you mean list?  "
				 "Wanted copy, list, watch, sleep or draw" },
		{ &tool, "frobnicate",
		  "no command \"frobnicate\"; wanted copy, list, watch, "
		  "sleep or draw, see t0-x --help" },
		{ &tool, "copy", "copy: got 0 operands, wanted FILE...; see "
				 "t0-x copy --help" },
		{ &tool, "watch a", "watch: unexpected operand \"a\"; wanted "
				    "none, see t0-x watch --help" },
		{ &tool, "list a b", "list: unexpected operand \"b\"; wanted "
				     "[DOOR], see t0-x list --help" },
		{ &tool, "list --hex", "list has no option --hex (it is for "
				       "copy): see t0-x list --help" },
		{ &tool, "-x list", "list has no option -x (it is for copy): "
				    "see t0-x list --help" },
		{ &tool, "copy a --name=x",
		  "copy has no option --name (it is for list, watch, sleep): see "
		  "t0-x copy --help" },
		{ &tool, "copy a --json", "copy has no option --json (it is "
					  "for list): see t0-x copy --help" },
		{ &tool, "copy a --hxe", "unknown option --hxe: did you mean "
					 "--hex?" },
		{ &tool, "list --zzzzz", "unknown option --zzzzz: see t0-x "
					 "list --help" },
		{ &tool, "--zzzzz", "unknown option --zzzzz: see t0-x --help" },
		{ &tool, "lsit --zzzzz", "unknown option --zzzzz: see t0-x "
					 "--help" },
		{ &tool, "list --help=html",
		  "--help=html: wanted scd, bash, zsh or fish, or nothing" },
		{ &single, "a", "got 1 operand, wanted FROM TO or --all FROM; "
				"see t0-y --help" },
		{ &single, "a b c", "unexpected operand \"c\"; wanted FROM TO "
				    "or --all FROM, see t0-y --help" },
		{ &mixed, "lost", "no command \"lost\": did you mean list?  "
				  "Wanted FROM TO or list" },
		{ &mixed, "", "no command given; wanted FROM TO or list, see "
			      "t0-z --help" },
		{ &mixed, "list --hex", "list has no option --hex (it is for "
					"FROM TO): see t0-z list --help" },
	};
	char message[512];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		is_i64(run(v[i].tool, v[i].line), 2, "\"%s\" is refused",
		       v[i].line);
		snprintf(message, sizeof(message), "%s: %s\n", v[i].tool->name,
			 v[i].message);
		is_str(err, message, "the message for \"%s\"", v[i].line);
		is_str(did.data, "", "and nothing runs");
	}
}

static void test_unnamed(void)
{
	is_i64(run(&single, "a b"), 0, "a tool may have no commands");
	is_str(did.data, "copy hex=0 a b", "and takes all operands");
	is_i64(run(&mixed, "a b -x"), 0, "an operand that is no command");
	is_str(did.data, "copy hex=1 a b", "is one of the row without a name");
	is_i64(run(&mixed, "list"), 0, "a command is found beside it");
	is_str(did.data, "list", "and runs");
}

static const char common[] =
	"      --color=WHEN          colours: always, never or auto (on a "
	"terminal, not\n"
	"                            with NO_COLOR)\n"
	"      --deadline=SECONDS    end after this long, with status 3\n"
	"  -h, --help                show this help (=scd: manual page; =bash, "
	"=zsh,\n"
	"                            =fish: completion)\n"
	"      --version             show the version and commit\n";

static void test_help(void)
{
	char wanted[2048];

	is_i64(run(&tool, "--help"), 0, "--help");
	snprintf(wanted, sizeof(wanted), "%s%s\nA note.\n",
		 "t0-x - tests commands\n\n"
		 "Usage:\n"
		 "  t0-x COMMAND [options]\n\n"
		 "Commands:\n"
		 "  copy FILE...              copies files\n"
		 "  list [DOOR]               lists what there is\n"
		 "  watch                     goes on\n"
		 "  sleep                     sleeps\n"
		 "  draw                      draws\n\n"
		 "`t0-x COMMAND --help` explains one, with its options.\n\n"
		 "Options of all commands:\n"
		 "  -l, --level=N             how deep\n"
		 "  -o, --output=FILE         write there instead of to "
		 "stdout\n", common);
	is_str(out, wanted, "lists commands and what all of them take");
	is_i64(run(&tool, "list --help --nonsense"), 0, "list --help");
	snprintf(wanted, sizeof(wanted), "%s%s\nA DOOR is locked.\n",
		 "t0-x list - lists what there is\n\n"
		 "Usage:\n"
		 "  t0-x list [options] [DOOR]\n\n"
		 "Options:\n"
		 "  -l, --level=N             how deep\n"
		 "  -n, --name=NAME           only this name\n"
		 "      --allow=RULE          let it pass\n"
		 "      --json                print JSON\n"
		 "      --csv                 print CSV\n"
		 "  -o, --output=FILE         write there instead of to "
		 "stdout\n"
		 "  -q, --quiet               no progress and no remarks on "
		 "stderr\n", common);
	is_str(out, wanted, "has its own options only");
	is_str(did.data, "", "and runs nothing");
	run(&tool, "--help list");
	has_str(out, "Commands:", "--help first is the tool's");
	is_i64(run(&single, "-h"), 0, "the help of a tool without commands");
	snprintf(wanted, sizeof(wanted), "%s%s",
		 "t0-y - copies\n\n"
		 "Usage:\n"
		 "  t0-y [options] FROM TO\n"
		 "  t0-y [options] --all FROM\n\n"
		 "Options:\n"
		 "  -o, --output=FILE         write there instead of to "
		 "stdout\n", common);
	is_str(out, wanted, "has a line for each form");
	run(&mixed, "--help");
	has_str(out, "  t0-z [options] FROM TO\n  t0-z COMMAND [options]\n",
		"both kinds of usage");
	has_str(out, "--hex", "with the options of the row without a name");
	is_i64(run(&tool, "copy --version"), 0, "--version of a command");
	has_str(out, "t0-x " T0_VERSION " (", "is the tool's");
}

static void test_pages(void)
{
	is_i64(run(&tool, "--help=scd"), 0, "the manual page");
	has_str(out, "t0-x(1) \"\" \"T0 ", "has its title");
	has_str(out, "# SYNOPSIS\n\n*t0-x* copy \\[options\\] FILE\\.\\.\\.++\n"
		"*t0-x* list", "a line for each command");
	has_str(out, "*\\-x\\, \\-\\-hex*\n\tcopy as hexadecimal text "
		"\\(copy\\)\n", "every option, and which commands take it");
	has_str(out, "*\\-l\\, \\-\\-level\\=N*\n\thow deep\n",
		"but for those of all");
	has_str(out, "A note.\n\nA DOOR is locked.\n", "and all notes");
	is_i64(run(&tool, "--help=bash"), 0, "the completion");
	has_str(out, "\tcopy) list='--level= --hex --output= --color= "
		"--deadline= --help --version' ;;\n",
		"has the options of each command");
	has_str(out, "list=' copy list watch sleep draw'", "and commands");
	has_str(out, "\t--color) list=\"always never auto\" ;;\n",
		"and the values that the help of an option lists");
	has_str(out, "complete -o default -F _t0_x t0-x\n", "under its name");
	is_i64(run(&tool, "--help=zsh"), 0, "that of zsh");
	has_str(out, "#compdef t0-x\n", "is for its function path");
	is_i64(run(&tool, "--help=fish"), 0, "that of fish");
	has_str(out, "complete -c t0-x -n '__fish_seen_subcommand_from copy' "
		"-l color -d ", "has a line for each option of a command");
}

static void test_signals(void)
{
	is_i64(run(&tool, "sleep -n term"), 128 + SIGTERM, "a signal");
	is_str(out, "slept\n", "ends a command, which keeps its output");
	is_str(err, "t0-x: stopped by SIGTERM: what was finished is kept\n",
	       "and is told");
	is_i64(run(&tool, "sleep -n team"), 128 + SIGTERM,
	       "every thread sees it");
	is_i64(run(&tool, "sleep -n hup -l 1"), 128 + SIGHUP, "a hangup");
	is_str(err, "t0-x: stopped by SIGHUP: run 3 has 4 of 7 cases\n",
	       "is told with what the command says of it");
	run(&tool, "sleep -n hup -l 2");
	is_str(err, "t0-x: stopped by SIGHUP: the same command goes on\n",
	       "in either way");
	signal(SIGHUP, SIG_IGN);
	is_i64(run(&tool, "sleep -n hup --deadline 0.05"), 3,
	       "nohup is not overruled; a deadline ends it");
	is_str(err, "t0-x: stopped by --deadline 0.05: what was finished is "
	       "kept\n", "and is told");
	is_i64(run(&tool, "list --deadline 1000"), 0, "what is done before");
	is_str(err, "t0-x: 1 row\n", "hears nothing of it");
	is_i64(run(&tool, "list --deadline 0"), 2, "no time at all");
	has_str(err, "option --deadline: \"0\" is out of range", "is refused");
	is_i64(run(&tool, "list --deadline 1e7"), 2, "and too much");
	is_i64(run(&tool, "list --deadline x"), 2, "and what is no number");
}

/* A command that does not look at c->stop: in a process of its own. */
static bool do_hang(struct cmd *c, struct err *e)
{
	(void)c;
	for (;;)
		pause();
	return err_set(e, ERR_INPUT, "never");
}

static void test_hang(void)
{
	static const struct cmd_spec hang[] = {
		{ NULL, NULL, NULL, do_hang, 0, 0, .flags = 0 }, { 0 }
	};
	static const struct cmd_tool hangs = {
		.name = "t0-h", .summary = "hangs", .commands = hang,
	};
	int to[2], status = 0;
	char text[256] = "";

	if (!ok(!pipe(to), "a pipe"))
		return;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		dup2(to[1], 2);
		_exit(run_words(&hangs, "--deadline 0.1"));
	}
	waitpid(pid, &status, 0);
	is_i64(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 3,
	       "a deadline ends a command that does not look");
	text[read(to[0], text, sizeof(text) - 1)] = '\0';
	is_str(text, "t0-h: not done after --deadline 0.1\n", "and is told");
	close(to[0]);
	close(to[1]);
}

/* An option of the tool's own of that name is the command's. */
static void test_own_deadline(void)
{
	static const struct cli_opt own[] = {
		CLI_OF("list"),
		{ "deadline", 0, CLI_STR, &o.name, "DAY", "of all things" },
		{ 0 },
	};
	static const struct cmd_tool late = {
		.name = "t0-z", .summary = "has a deadline",
		.commands = mixed_commands, .options = own,
	};

	is_i64(run(&late, "list --deadline monday"), 0, "an own --deadline");
	is_str(o.name, "monday", "gets its value");
	is_i64(run(&late, "a b --deadline monday"), 2, "of its command only");
	run(&late, "--help=scd");
	has_str(out, "\tof all things \\(list\\)", "the manual has it");
	has_str(out, "status 3 \\(no command\\)", "and the usual one");
	run(&late, "list --help");
	ok(!strstr(out, "status 3"), "which the command's page has not");
}

/* What is closed is not what the tool opens next. */
static void test_closed(void)
{
	struct err e = { 0 };
	int keep = dup(1);

	fflush(stdout);
	close(1);
	o = (struct tool_options){ .level = 0 };
	int status = run_words(&tool, "list -q");
	int flags = fcntl(1, F_GETFL);
	bool fine = stdout_check(&e);
	clearerr(stdout);
	dup2(keep, 1);
	close(keep);
	is_i64(status, 2, "a closed stdout is trouble");
	is_i64(flags & O_ACCMODE, O_RDONLY, "and stays unusable");
	ok(!fine, "as it is said");
	has_str(e.msg, "stdout is closed", "in words");
}

/* Folding: at 80 columns, without blanks where a line ends. */
static void test_folding(void)
{
	static const struct cmd_tool folded = {
		.name = "t0-y", .summary = "copies", .commands = only,
		.notes =
	"A note of eighty bytes in a line, which is what a terminal has: not "
	"folded here.\nOne byte more than there is room for in a line of the "
	"same terminal, so it is folded.\nWhere a sentence ends with the line, "
	"both blanks behind it go, as they do here.  Gone.\nNor does the next "
	"line begin with one of them, where the first is 1 byte beyond.  Gone.",
	};

	run(&folded, "--help");
	has_str(out, "A note of eighty bytes in a line, which is what a "
		"terminal has: not folded here.\n"
		"One byte more than there is room for in a line of the same "
		"terminal, so it is\n"
		"folded.\n"
		"Where a sentence ends with the line, both blanks behind it "
		"go, as they do here.\n"
		"Gone.\n"
		"Nor does the next line begin with one of them, where the "
		"first is 1 byte beyond.\n"
		"Gone.\n", "notes are folded between words");
}

int main(void)
{
	test_run();
	test_formats();
	test_output();
	test_mistakes();
	test_unnamed();
	test_help();
	test_pages();
	test_folding();
	test_signals();
	test_hang();
	test_own_deadline();
	test_closed();
	buf_fini(&did);
	return plan_done();
}
