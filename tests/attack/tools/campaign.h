/*
 * campaign - seeded attacks on T0's tools, each judged by what the tools
 * promise and not by what they say.
 *
 * An attack is a run of a tool, or several, in a folder of its own.  All of it
 * is decided by (seed, number), so that any can be run again alone:
 *
 *	build/rel/tests/attack/campaign --seed 1 --first 1234 --count 1
 *
 * A family is one way to attack.  Its function makes the attack out of random
 * numbers, launches the tool and returns with attack.fault set if something is
 * wrong.  Most begin with a recipe: a command line that works, of recipes.def,
 * with the files that it reads and writes.  Commands and options come out of
 * the tools' own tables (tables.c), so a new one is attacked at once.
 *
 * Nothing is written outside of the scratch folder; run by root, the tools run
 * as nobody.
 */
#ifndef T0_TESTS_ATTACK_CAMPAIGN_H
#define T0_TESTS_ATTACK_CAMPAIGN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/vec.h"

/* ---- what is attacked ---- */

struct option_row {
	const char *name; /* with its "--" */
	bool takes_value;
};
struct command_row {
	const char *name; /* "" for a tool without commands */
	VEC(struct option_row) options;
};
struct tool_row {
	const char *name; /* "t0-isa" */
	VEC(struct command_row) commands;
};

/* Of a recipe. */
enum {
	SLOW = 1,     /* takes above half a second */
	VARIES = 2,   /* its stdout is not the same twice */
	STORES = 4,   /* writes into t0.db */
	RUNS = 8,     /* runs other programs: PATH and TMPDIR matter */
	PRELOADS = 16, /* needs libt0-soft-preload.so */
	STREAMS = 32, /* writes its output as it comes */
	CUTS = 64,    /* may drop rows */
	MEANS = 128,  /* what its file says is run: damage is not its fault */
	READS = 256,  /* its stdin */
};

struct recipe {
	const char *tool;
	int status;
	unsigned flags;
	/* Words; @NAME is an input (seeds.c), %NAME a file that it writes. */
	const char *line;
};
extern const struct recipe recipes[];
extern const size_t n_recipes;

/* ---- the machine that attacks ---- */

struct campaign {
	char *build; /* folder of the tools */
	char *source;
	char scratch[64];
	const char *program; /* for the line that replays */
	uint64_t seed;
	bool sanitized; /* address space and preload are not to be had */
	bool drop;	/* run by root: tools run as nobody */
	struct arena mem;
	VEC(struct tool_row) tools;
	/* Of this worker. */
	char room[96];	/* its folder */
	char disk[128]; /* a small file system; "": none */
};

enum stream {
	STREAM_USUAL, /* stdin: /dev/null; stdout, stderr: read by us */
	STREAM_CLOSED,
	STREAM_FULL, /* /dev/full */
	STREAM_GONE, /* a pipe without the other end */
	STREAM_WRONG, /* open the wrong way round */
};

struct limit {
	int which;
	rlim_t value;
};

struct attack {
	struct campaign *c;
	const struct family *family;
	uint64_t number, random;
	struct arena mem;
	char folder[160]; /* it runs there */
	const struct recipe *recipe; /* NULL: the command line is made up */
	const char *tool;
	VEC(char *) words;   /* behind the tool's name */
	VEC(char *) inputs;  /* names in the folder */
	VEC(char *) outputs;
	VEC(char *) environ; /* NAME=VALUE, or NAME: is not there */
	enum stream stream[3];
	struct limit limits[8];
	int n_limits;
	int signal;	       /* sent after signal_us; 0: none */
	uint64_t signal_us;
	bool may_last; /* SIGTERM after some seconds is part of it */
	bool db_damaged;
	struct buf fault; /* empty: none */
};

struct outcome {
	bool hung, killed; /* by a signal */
	int status;	   /* or that signal */
	bool stopped;	   /* SIGTERM was sent since it lasted */
	double seconds;
	struct buf out, err;
};

struct family {
	const char *name, *what; /* what a line of TAP says */
	unsigned weight;
	void (*run)(struct attack *a);
};
extern const struct family families[];
extern const size_t n_families;

/* ---------------------------------------------------------- random.c ---- */

uint64_t below(struct attack *a, uint64_t n); /* 0..n-1 */
bool one_in(struct attack *a, unsigned n);
/* From 1 to `most`, any size as likely. */
uint64_t log_uniform(struct attack *a, uint64_t least, uint64_t most);
/* A hostile word, in the attack's arena. */
char *hostile_word(struct attack *a);
/* A word with something done to it. */
char *bent_word(struct attack *a, const char *word);

/* ---------------------------------------------------------- tables.c ---- */

/* Asks the tools what commands and options they have. */
bool tables_read(struct campaign *c, struct err *e);
void tables_free(struct campaign *c);
const struct tool_row *table_tool(const struct campaign *c, const char *name);
const struct command_row *table_command(const struct tool_row *t,
					const char *name);

/* ----------------------------------------------------------- seeds.c ---- */

/* Makes the inputs that recipes name, in `scratch`/seeds. */
bool seeds_make(struct campaign *c, struct err *e);
/* Copies one into the attack's folder; folders with what is in them. */
bool seed_copy(struct attack *a, const char *name);
/* Any of them. */
const char *seed_any(struct attack *a);
/* Removes all that is in the folder, and it. */
void remove_tree(const char *path);

/* ---------------------------------------------------------- damage.c ---- */

/* Changes bytes of the file. */
void damage_file(struct attack *a, const char *path);
/* Puts something else in its place; what it is, "a folder". */
enum special { SPECIAL_EMPTY, SPECIAL_FOLDER, SPECIAL_LOOP, SPECIAL_MISSING,
	SPECIAL_DANGLING, SPECIAL_FULL, SPECIAL_ZERO, SPECIAL_NULL, SPECIAL_FIFO,
	SPECIAL_UNREADABLE, SPECIAL_NOWHERE, SPECIAL_KINDS };
void special_file(const char *path, enum special kind);

/* ---------------------------------------------------------- recipe.c ---- */

const struct recipe *recipe_any(struct attack *a, unsigned with,
				unsigned without);
/* Makes it the attack's command line and copies its inputs. */
void recipe_take(struct attack *a, const struct recipe *r);

/* What the recipe does when nobody attacks it; made once. */
struct reference {
	bool known, works;
	int status;
	struct buf out;
	struct buf files; /* its outputs, one behind another */
	int64_t runs;	  /* rows that it added */
	double seconds;
};
const struct reference *recipe_reference(struct attack *a);

/* ---------------------------------------------------------- launch.c ---- */

void word_add(struct attack *a, const char *word);
/* Folders are the attack's own; sanitizers keep their options. */
void environ_usual(struct attack *a);
void environ_set(struct attack *a, const char *fmt, ...) T0_PRINTF(2, 3);
void limit_set(struct attack *a, int which, rlim_t value);

/* A tool under way, and how it ended. */
struct launched {
	pid_t pid;
	int pidfd;
	uint64_t start_ns;
	char out[200], err[200];
};
bool launch_begin(struct attack *a, struct launched *l, int serial);
void launch_end(struct attack *a, struct launched *l, struct outcome *o);
void launch(struct attack *a, struct outcome *o);
void outcome_fini(struct outcome *o);

/* ----------------------------------------------------------- judge.c ---- */

/* The first fault that is found is told. */
void fault(struct attack *a, const char *fmt, ...) T0_PRINTF(2, 3);
/* What holds for any run: see its body, which is the list. */
void judge(struct attack *a, const struct outcome *o);
/* It did what the recipe does, or has trouble (`or_trouble`). */
void judge_work(struct attack *a, const struct outcome *o, bool or_trouble);
/* Is its status a program's, or means something else? */
bool status_is_free(const struct attack *a);
/* Exactly this status, and this text on stderr unless it is NULL. */
void judge_exact(struct attack *a, const struct outcome *o, int status,
		 const char *text);

/* -1: there is none; -2: it is broken, and that is a fault. */
int64_t db_runs(struct attack *a);
void judge_db(struct attack *a, int64_t least_runs);
/* Outputs are not there, as `old`, or whole. */
void judge_outputs(struct attack *a, const char *old, bool complete);

/* -------------------------------------------------------- family_*.c ---- */

void attack_known(struct attack *a);
void attack_lines(struct attack *a);
void attack_files(struct attack *a);
void attack_specials(struct attack *a);
void attack_environ(struct attack *a);
void attack_streams(struct attack *a);
void attack_limits(struct attack *a);
void attack_signals(struct attack *a);
void attack_killed(struct attack *a);
void attack_shared(struct attack *a);
void attack_disk(struct attack *a);

#endif
