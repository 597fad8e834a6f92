/*
 * base - what every folder of T0 shares: errors, growing buffers, arenas,
 * command lines, result tables and progress.
 *
 * Nothing here knows about GPUs or databases.  All functions are thread-safe
 * as long as two threads do not use one object at the same time.  Only `main`
 * functions print errors and exit; everything else returns false or NULL after
 * filling the caller's `struct err`.
 */
#ifndef T0_BASE_H
#define T0_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define T0_VERSION "0.1.0"

/*
 * version.c: the commit this was built from, "+" behind it if the tree had
 * changes; "unknown" outside git.  For every measurement that is stored.
 */
const char *t0_commit(void);

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__GNUC__)
#define T0_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define T0_PRINTF(fmt, args)
#endif

/* ------------------------------------------------------------- err.c ---- */

/*
 * What went wrong, coarsely: enough to choose an exit code.  The message has
 * the rest: what, which, got, wanted, and a hint at the remedy.
 */
enum err_code {
	ERR_NONE,
	ERR_USAGE,	 /* the command line or a call's arguments */
	ERR_INPUT,	 /* a file or a stream that is malformed */
	ERR_IO,		 /* open, read, write, disk full */
	ERR_PERM,	 /* the operating system refused */
	ERR_NOMEM,	 /* host or device memory */
	ERR_NODEV,	 /* no suitable device */
	ERR_DEVICE,	 /* the device faulted */
	ERR_TIMEOUT,	 /* a deadline passed (a hanging device) */
	ERR_UNSUPPORTED, /* known, but not done by this build or device */
	ERR_BUSY,	 /* somebody else holds it */
	ERR_STOPPED,	 /* asked to end: base/cmd.h */
};

/* Exit codes of every tool (DESIGN.md, "Tools"). */
enum {
	EXIT_YES = 0,	   /* success, or "yes" */
	EXIT_NO = 1,	   /* a regression, a mismatch, "no" */
	EXIT_TROUBLE = 2,  /* usage, input, permission, disk */
	EXIT_FAULT = 3,	   /* device fault or timeout */
	EXIT_NODEVICE = 77 /* no suitable device */
};

/*
 * One error.  Zero-initialise (`struct err e = { 0 }`) before the first call;
 * a successful call leaves it alone.  Owns nothing, may be copied.
 */
struct err {
	enum err_code code;
	int sys_errno;	  /* errno at the time, 0 if none */
	const char *file; /* where in T0 it was raised */
	int line;
	char msg[1024]; /* "outer context: inner context: message" */
};

/*
 * Set `e`.  Always returns false, so that a function can end with
 * `return err_set(e, ERR_INPUT, "%s: ...", path);`.  `e` may be NULL.
 */
#define err_set(e, code, ...) \
	err_set_at((e), (code), 0, __FILE__, __LINE__, __VA_ARGS__)
/* As err_set(), and appends ": strerror(errnum)". */
#define err_sys(e, code, errnum, ...) \
	err_set_at((e), (code), (errnum), __FILE__, __LINE__, __VA_ARGS__)
bool err_set_at(struct err *e, enum err_code code, int errnum, const char *file,
		int line, const char *fmt, ...) T0_PRINTF(6, 7);

/* Put "context: " in front of the message.  Always returns false. */
bool err_wrap(struct err *e, const char *fmt, ...) T0_PRINTF(2, 3);

/* The exit code that DESIGN.md gives to this error. */
int err_exit_code(const struct err *e);

/*
 * For main(): print "tool: message" to stderr (with file:line when the
 * environment has T0_DEBUG) and return err_exit_code().
 */
int err_report(const char *tool, const struct err *e);

/*
 * Names out of files may hold what a terminal obeys: it becomes '?'.  That is
 * C0 but newline and tab, DEL, and C1, which UTF-8 has as 0xc2 0x80..0x9f.
 * err_report() and cmd_remark() show what they are given so.
 */
void err_make_visible(char *text);

/* A broken invariant of T0 itself: prints and aborts.  Never for bad input. */
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
	T0_PRINTF(3, 4);

/* ------------------------------------------------------------- mem.c ---- */

/*
 * These never return NULL: out of memory prints how much was wanted by whom, and
 * exits 2.  For what a user's input makes large, ask malloc() and say what.
 */
#define xmalloc(size_bytes) mem_new((size_bytes), MEM_HERE)
#define xcalloc(n, size_bytes) mem_zeros((n), (size_bytes), MEM_HERE)
#define xrealloc(p, size_bytes) mem_resize((p), (size_bytes), MEM_HERE)
#define xaligned(align, size_bytes) mem_aligned((align), (size_bytes), MEM_HERE)
#define xstrdup(s) mem_copy((s), MEM_HERE)
#define MEM_HERE      __FILE__ ":" MEM_LINE(__LINE__)
#define MEM_LINE(n)   MEM_LINE_(n)
#define MEM_LINE_(n)  #n
void *mem_new(size_t size_bytes, const char *whose);
void *mem_zeros(size_t n, size_t size_bytes, const char *whose); /* checks */
void *mem_resize(void *p, size_t size_bytes, const char *whose);
void *mem_aligned(size_t align, size_t size_bytes, const char *whose);
char *mem_copy(const char *s, const char *whose);
_Noreturn void mem_ran_out(size_t size_bytes, const char *whose);

/* false on overflow; *out is then unchanged. */
bool size_add(size_t a, size_t b, size_t *out);
bool size_mul(size_t a, size_t b, size_t *out);

/* Growing bytes.  Zero-initialise; keep indices, not pointers, into it. */
struct buf {
	char *data; /* always NUL-terminated once anything was added */
	size_t len; /* bytes used, without the NUL */
	size_t cap;
};
void buf_add(struct buf *b, const void *data, size_t len_bytes);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *s);
/* As text or a quoted attribute of HTML. */
void buf_add_html(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) T0_PRINTF(2, 3);
void buf_reset(struct buf *b); /* len = 0, keeps the memory */
void buf_fini(struct buf *b);  /* frees; b may be used again */

/* Arena: many allocations, one free.  Zero-initialise. */
struct arena {
	struct arena_block *head;
};
void *arena_alloc(struct arena *a, size_t size_bytes); /* zeroed, 16-aligned */
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) T0_PRINTF(2, 3);
void arena_fini(struct arena *a);

/* ------------------------------------------------------------ file.c ---- */

/*
 * Read a whole file ("-" is stdin) into *out (appended).  Refuses files above
 * `max_bytes` (0 = 1 GiB, of pipes and devices 64 MiB) with ERR_INPUT.  Where
 * it fails *out is as before.
 */
bool file_read(const char *path, size_t max_bytes, struct buf *out,
	       struct err *e);
/*
 * The lines of a file ("-" is stdin), one by one:
 *
 *	ok = file_lines_open(&l, path, 1 << 20, e);
 *	while (ok && (ok = file_lines_next(&l, &line, &len, e)) && line)
 *		...
 *	file_lines_close(&l);
 *
 * A line of over `max_bytes` is an error, as is whatever keeps it from being
 * read: only the end of the file is its end.
 */
struct file_lines {
	const char *path;
	size_t max_bytes;
	uint64_t line; /* number of the one that was got last, from 1 */
	bool cut;      /* which has no newline: it is the last */
	int fd;
	struct buf text;
	size_t next; /* in `text` */
};
bool file_lines_open(struct file_lines *l, const char *path, size_t max_bytes,
		     struct err *e);
/*
 * *line without its newline, NUL-terminated, good until the next call; NULL at
 * the end.
 */
bool file_lines_next(struct file_lines *l, char **line, size_t *len,
		     struct err *e);
/* Only after file_lines_open() succeeded. */
void file_lines_close(struct file_lines *l);
/*
 * Could file_write_atomic() write there?  For what has to work long before it
 * does: a folder in its place, or one that may not be written, is an error.
 */
bool file_check_writable(const char *path, struct err *e);
/*
 * Write a file so that a reader never sees half of it: temporary file in the
 * same folder, fsync, rename.  A full disk leaves the old file untouched.
 * Replaces what a symbolic link points to; writes straight into devices and
 * pipes.
 */
bool file_write_atomic(const char *path, const void *data, size_t len_bytes,
		       struct err *e);
/*
 * The same without fsync, for what can be made again: after a power failure
 * the file may be empty.
 */
bool file_write_unsynced(const char *path, const void *data, size_t len_bytes,
			 struct err *e);
/*
 * Makes the name of a file that was renamed to `path` survive a power failure,
 * too.  Not every file system can, so there is no error.
 */
void file_sync_folder(const char *path);
/*
 * Where this user's files that can be made again lie, $XDG_CACHE_HOME/t0 or
 * ~/.cache/t0, or `name` in it (NULL: itself).  NULL if there is no home; else
 * the caller's.
 */
char *file_cache_folder(const char *name);
/* `path` and what is above it, as far as they are missing. */
bool file_make_folders(const char *path, struct err *e);
/*
 * Where what is not kept lies: $TMPDIR if that is a path from /, `otherwise` if
 * not; and where many small files cost least, /dev/shm or /tmp.
 */
const char *scratch_place(const char *otherwise);
const char *scratch_memory(void);
/*
 * A new folder in `place` (NULL: $TMPDIR or /tmp), or an open file, that only
 * this user may read; its path, t0-WHAT-..., is appended to *path.  The caller
 * removes it, and closes the file.  False or -1: there is none, and *e says why.
 */
bool scratch_folder(struct buf *path, const char *place, const char *what,
		    struct err *e);
int scratch_file(struct buf *path, const char *what, struct err *e);
/* stdout open, flushed, error-free?  Call before returning from main(). */
bool stdout_check(struct err *e);

/* CLOCK_MONOTONIC in nanoseconds; wall clock (CLOCK_REALTIME) likewise. */
uint64_t time_mono_ns(void);
uint64_t time_thread_ns(void); /* that the calling thread has computed */
uint64_t time_wall_ns(void);

/* ------------------------------------------------------------- cpu.c ---- */

/*
 * The x86-64 level (2, 3 or 4) of code that this processor runs, for choosing
 * among the objects of a *_simd.c file; the environment variable, "v2" or
 * "v3", makes it do with less.
 */
int cpu_level(const char *variable);

/* ---------------------------------------------------------- memory.c ---- */

/*
 * What memory a process may have: the machine's, or what its control group is
 * allowed.
 */
uint64_t memory_limit_bytes(void);

/* ---------------------------------------------------------- random.c ---- */

/* splitmix64: the next of 2^64 values; the same seed, the same sequence. */
uint64_t random_next(uint64_t *state);

/* ------------------------------------------------------------- cli.c ---- */

/*
 * A table of options, for parsing and for help; base/cmd.h makes a tool of it.
 */
enum cli_type {
	CLI_FLAG,  /* bool *: set to true */
	CLI_STR,   /* const char **: points into argv */
	CLI_U64,   /* uint64_t *: decimal or 0x..., k M G = powers of 2 */
	CLI_INT,   /* int * */
	CLI_F64,   /* double * */
	CLI_SECONDS, /* uint64_t *: nanoseconds; 1e-9..1e6 s, such as 0.5 */
	CLI_LIST,  /* struct cli_list *: may be repeated */
	CLI_STOP,  /* ends parsing, such as --help; `dst` is NULL */
	CLI_GROUP, /* no option: see CLI_OF() of base/cmd.h */
};
struct cli_list {
	const char **v; /* points into argv; freed by cli_list_fini */
	int n;
};
void cli_list_fini(struct cli_list *l);

struct cli_opt {
	const char *name; /* without "--"; NULL ends the table */
	char letter;	  /* 0 = none */
	enum cli_type type;
	void *dst;
	const char *arg; /* name of the argument in --help, NULL for flags */
	const char *help; /* --help folds it, and long lines of notes */
};
/* A command line: what is known, then how parsing it ended. */
struct cli_line {
	const char *name; /* "t0-isa dis", whose --help messages advise */
	const struct cli_opt *opt;
	int first;		    /* operand in argv */
	const struct cli_opt *stop; /* the CLI_STOP that was met; NULL: none */
	const char *stop_value;	    /* behind its "="; NULL: nothing */
	const char *unknown;	    /* option that was refused, to its "=" */
	char unknown_letter;
};
/*
 * Parse argv.  Options may stand before, between and after operands; "--" ends
 * them.  Operands are moved to the end in order.  Unknown options name the
 * closest known one.
 */
bool cli_parse(struct cli_line *l, int argc, char **argv, struct err *e);

/* Parse a whole string as a number, as CLI_U64 does. */
bool cli_u64(const char *s, uint64_t *out, struct err *e);

/*
 * A sweep: "a,b", "a..b" (step 1), "a..b+s", "a..b*f", comma-joined.
 * *out is allocated; free() it.  Refuses more than 1,000,000 values.
 */
bool cli_sweep(const char *s, uint64_t **out, size_t *n, struct err *e);

/* ------------------------------------------------------------ unit.c ---- */

/*
 * What multiplies a value in an SI unit ("s", "B", "B/s", "Hz", "FLOP/s") so
 * that a reader sees few digits, and the unit that it is in then: 5.741e-06 s
 * is 5.741 µs.  1 and the unit itself where there is nothing to scale.
 */
double unit_scale(double value, const char *unit, const char **scaled);
/* "5.741 µs", to four digits. */
void unit_print(struct buf *out, double value, const char *unit);

/* ----------------------------------------------------------- paint.c ---- */

/*
 * Is `out` to have colours?  A terminal is, but with NO_COLOR in the
 * environment or TERM=dumb; everything is with CLICOLOR_FORCE.
 */
bool paint_wanted(FILE *out);
/* For --color=WHEN: always, never or auto; this process and those it starts. */
bool paint_when(const char *when, struct err *e);
/* The SGR sequence for a word of a verdict such as "pass"; NULL: of none. */
const char *paint_word(const char *word);
#define PAINT_BOLD "\033[1m"
#define PAINT_DIM "\033[2m"
#define PAINT_OFF "\033[0m"

/* -------------------------------------------------------- terminal.c ---- */

/* Columns of the terminal that `out` is; 0: it is none. */
size_t terminal_width(FILE *out);
/* Columns that UTF-8 takes, one for each character. */
size_t text_width(const char *s);
/*
 * Bytes of `s` that a line of `width` columns has room for: to the end of its
 * line, or to the blank before the word that is too much.  A word that is wider
 * than all that is one line.
 */
size_t fold_length(const char *s, size_t width);
/*
 * `text` with each of its lines folded so; what is folded begins `hang` columns
 * behind where its line did.  Width 0 leaves lines as they are.
 */
void fold_text(struct buf *out, const char *text, size_t width, size_t hang);
/* Likewise, to `out`: only where that is a terminal lines are folded. */
void fold_printf(FILE *out, size_t hang, const char *fmt, ...) T0_PRINTF(3, 4);

/* ----------------------------------------------------------- table.c ---- */

/*
 * A result table.  Cells are strings; numbers are right-aligned and stay
 * numbers in JSON.  A NULL cell prints "n/a" and is null in JSON: "not
 * measured" is never 0.
 */
enum table_format { TABLE_TEXT, TABLE_JSON, TABLE_CSV, TABLE_MARKDOWN };
struct table {
	struct arena mem;
	const char **head; /* column names */
	bool *numeric;	   /* per column: right-align, bare in JSON */
	int n_cols;
	const char ***row; /* [n_rows][n_cols] */
	int n_rows, cap_rows;
	bool *scaled; /* per column: see table_init() */
};
/*
 * `columns` is "name,name,#number,~number": '#' marks a numeric column, '~' one
 * in the unit that the row has in its column "unit", which text and markdown
 * show in a unit of that size (unit_scale()); JSON and CSV have it as it is.
 */
void table_init(struct table *t, const char *columns);
/* Starts a row of NULL cells; cells are then set by index. */
void table_row(struct table *t);
void table_cell(struct table *t, int col, const char *fmt, ...) T0_PRINTF(3, 4);
/*
 * Text fits the terminal when `out` is one: columns without a value are left
 * out, then those that have one value, which stands above the table, and one
 * row becomes a list; then prose is folded, and what is too wide even so
 * continues below, with what names the rows again.  Nothing is cut.  JSON
 * is an array of objects, malformed UTF-8 in it becomes U+FFFD; CSV is RFC
 * 4180, with an empty field for NULL and "" for an empty string; markdown is
 * a table of GitHub's.
 */
bool table_print(const struct table *t, enum table_format f, FILE *out,
		 struct err *e);
void table_fini(struct table *t);

/* -------------------------------------------------------- progress.c ---- */

/*
 * A bar with count, rate and time left on stderr; silent unless stderr is a
 * terminal, and with `quiet`.  Redrawn at most ten times a second.
 */
struct progress {
	const char *what;
	uint64_t total, done;
	uint64_t start_ns, drawn_ns;
	bool on;
};
void progress_init(struct progress *p, const char *what, uint64_t total,
		   bool quiet);
void progress_step(struct progress *p, uint64_t n);
void progress_fini(struct progress *p); /* clears the line */
/* A warning on stderr that does not tear the bar: "tool: warning: ...". */
void progress_warn(struct progress *p, const char *tool, const char *fmt, ...)
	T0_PRINTF(3, 4);
/* The same of what is as it should be: "tool: ...". */
void progress_remark(struct progress *p, const char *tool, const char *fmt, ...)
	T0_PRINTF(3, 4);

#endif
