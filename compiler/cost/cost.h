/*
 * cost - what instructions and the machine cost, as one table of named rows.
 *
 * Scheduler, tuner and pipeline simulator read costs from a struct cost_model
 * and from nowhere else.  A row has a name ("valu.latency"), a unit and a
 * default with its source and confidence: compiler/cost/cost.def.  cost_load()
 * lays what t0.db knows over the defaults: `hardware` wins over `published`,
 * which wins over the default.  Emulated and simulated rows are never read: a
 * model must not learn from its own predictions.
 *
 * The defaults are gfx1100's.  Of other chips compiler/cost/chips.def has what is
 * published, and their description (isa/tables/chips.def) how much there is of
 * what; every other row is taken over from gfx1100 and called a guess, whatever
 * its source says of gfx1100.  No row of the database counts for another chip.
 *
 * A model also knows what the chip lacks: instructions that the newest complete
 * discovery on a card of it (origin hardware) proved illegal, faulting, hanging
 * or computing something else.  The compiler avoids them where it can and
 * refuses them, by name, where it cannot.  A software device's discovery says
 * nothing of a card and is not read.
 *
 * In the database a cost is a result of area "cost" (results/db/results.h):
 *
 *	name      metric              unit     means
 *	row       value               row's    the row of cost.def of that name
 *	mnemonic  latency, interval   cycle    this instruction alone, instead
 *	                                       of the rows of its class
 *
 * with params "{}", of the newest complete run on a device of this chip or, for
 * published rows of gfx1100, also of a run on no device.  A row whose correctness verdict
 * is not a pass, or whose value makes no sense, is passed over.
 *
 * Classes: every instruction belongs to one enum cost_class, which has a
 * latency and an issue row: "CLASS.latency" and "CLASS.issue".
 *
 *	struct cost_model m;
 *	cost_init(&m, "gfx1100");
 *	if (db && !cost_load(&m, db, COST_HARDWARE, &e))
 *		...
 *	ready = issued + cost_latency(&m, &inst);
 *	cost_fini(&m);
 *
 * Units: "cycle" is a shader clock cycle.  Values are doubles; a query rounds
 * nothing.  A model is only read after it was loaded, by any number of threads.
 */
#ifndef T0_COMPILER_COST_H
#define T0_COMPILER_COST_H

#include "base/base.h"
#include "isa/code/code.h"

struct res_db;

/* Classes of instructions that cost the same: rows CLASS() of cost.def. */
enum cost_class {
#define CLASS(id, name, latency, issue, conf, source) COST_CLASS_##id,
#include "compiler/cost/cost.def"
	COST_CLASS_COUNT
};

/* Rows: two per class, then those of PARAM(). */
enum cost_row {
#define CLASS(id, name, latency, issue, conf, source) \
	COST_##id##_LATENCY, COST_##id##_ISSUE,
#include "compiler/cost/cost.def"
#define PARAM(id, name, value, unit, conf, source) COST_##id,
#include "compiler/cost/cost.def"
	COST_ROW_COUNT
};

/* The chip whose costs cost.def has. */
#define COST_CHIP "gfx1100"

/* In ascending order of trust; guesses are another chip's defaults. */
enum cost_origin { COST_GUESS, COST_DEFAULT, COST_PUBLISHED, COST_HARDWARE };

struct cost_row_info {
	const char *name, *unit, *source;
	double value;	 /* default */
	char confidence; /* 'H' measured or stated, 'M' derived, 'L' a guess */
};

/* A row that was chosen to meet measurements: FIT() of cost.def. */
enum cost_fit_by { COST_FIT_TIME, COST_FIT_ISSUES };
struct cost_fit {
	enum cost_row row;
	enum cost_fit_by by;
	double from; /* without these measurements */
	double least, most, step;
	const char *on; /* their kernels or sources, | between them */
};

struct cost_value {
	double value;
	enum cost_origin origin;
	double age_days; /* since its run began; 0 for defaults */
	double spread;	 /* half the interval over the value; NaN: not known */
	double clock_hz; /* NaN: not known */
	int64_t n;	 /* samples behind it, 0 for defaults */
	int64_t run;	 /* of t0.db, 0 for defaults */
	const char *source; /* cost.def's, or the published row's */
};

/* What one mnemonic costs, where the database knows better than its class. */
struct cost_op {
	bool has_latency, has_issue;
	struct cost_value latency, issue;
};

/* What a row is before a database or a hand changes it. */
struct cost_base {
	double value;
	enum cost_origin origin;
	char confidence; /* as in struct cost_row_info */
};

struct cost_model {
	char chip[16];
	struct cost_base base[COST_ROW_COUNT];
	struct cost_value row[COST_ROW_COUNT];
	struct cost_op *op; /* [ISA_OP_COUNT] */
	int n_ops;	    /* mnemonics with a value of their own */
	/*
	 * [2 * ISA_OP_COUNT] what discovery proved of an instruction that this
	 * chip lacks or computes otherwise, then the same of them as halves of
	 * VOPD; NULL: it is as the tables say.
	 */
	const char **lacks;
	int n_lacks;
	int n_ignored;	    /* rows of the database that could not be used */
	struct arena mem;
};

/* ------------------------------------------------------------ cost.c ---- */

const struct cost_row_info *cost_row_info(enum cost_row row);
/* The row of this name; COST_ROW_COUNT if there is none. */
enum cost_row cost_row_find(const char *name);
const char *cost_class_name(enum cost_class c);

/* All rows that were fitted, [*n], in the order of cost.def. */
const struct cost_fit *cost_fits(int *n);
/* How one row was fitted, or NULL: on nothing. */
const struct cost_fit *cost_fit_find(enum cost_row row);
/* Was it fitted on this kernel or source? */
bool cost_fit_names(const struct cost_fit *f, const char *kernel_or_source);
const char *cost_origin_name(enum cost_origin o);

/*
 * All rows at the defaults of the chip.  *m is overwritten; end with
 * cost_fini().
 */
void cost_init(struct cost_model *m, const char *chip);
void cost_fini(struct cost_model *m);

/*
 * Change a row by hand (`t0-sim --set NAME=VALUE`, experiments, tests).
 * Refuses negative and infinite values and unknown names.
 */
bool cost_set(struct cost_model *m, const char *name, double value,
	      enum cost_origin origin, struct err *e);
/* Every NAME=VALUE that --set named. */
bool cost_set_list(struct cost_model *m, const struct cli_list *set,
		   struct err *e);

static inline double cost_value(const struct cost_model *m, enum cost_row row)
{
	return m->row[row].value;
}
/* How many rows have this origin. */
int cost_count(const struct cost_model *m, enum cost_origin origin);
/*
 * "3 hardware, 12 published, 121 default (48 of them guesses)"; of other chips
 * "0 hardware, 26 published, 111 guesses taken over from gfx1100".
 */
void cost_summary(const struct cost_model *m, char *out, size_t size_bytes);

/*
 * All numbers, and what is lacking, as 16 hexadecimal digits: what depends on
 * nothing else of a model is the same where this is.  Where a number comes from
 * changes nothing.
 */
enum { COST_DIGEST = 20 };
void cost_digest(const struct cost_model *m, char out[COST_DIGEST]);
/*
 * "DIGEST: 2 hardware, 1 published, 175 default, 0 lacking", counting what is
 * not as the defaults have it, so that a measured default is a default; with
 * ", 111 guessed" of other chips.
 */
enum { COST_ORIGINS = 120 };
void cost_origins(const struct cost_model *m, char out[COST_ORIGINS]);
/* The rows that are not the chip's defaults, and lacking instructions. */
void cost_list_changed(const struct cost_model *m, struct table *t);

/* ----------------------------------------------------- cost_class.c ---- */

/* By operation and encoding; every decoded instruction has a class. */
enum cost_class cost_class_of(const struct isa_inst *in);

/*
 * Cycles from the issue of an instruction to the earliest issue of one that
 * reads its result in the usual way: forwarded for the vector ALU, behind its
 * wait for memory.  Vector loads are priced as L2 hits.
 */
double cost_latency(const struct cost_model *m, const struct isa_inst *in);
/* Cycles until the same pipe takes the next independent instruction. */
double cost_issue(const struct cost_model *m, const struct isa_inst *in);

/* ------------------------------------------------------- cost_db.c ---- */

/*
 * Lay the rows of `db` over the model, those up to and including `most`:
 * COST_PUBLISHED leaves hardware rows out, COST_DEFAULT reads nothing.
 */
bool cost_load(struct cost_model *m, struct res_db *db, enum cost_origin most,
	       struct err *e);

/*
 * The costs of a tool: defaults, over them the database at `path` (NULL:
 * $T0_DB, else t0.db), over it every NAME=VALUE of `set` (may be NULL).  A
 * database that is not there is none, unless `path` names it and nothing is
 * going to be written to it.  *m is overwritten; end with cost_fini(), also
 * after an error.
 */
bool cost_open(struct cost_model *m, const char *chip, const char *path,
	       bool writes, enum cost_origin most, const struct cli_list *set,
	       struct err *e);

/*
 * Append one line per row, and per mnemonic with a value of its own, to a
 * table: "name,~value,unit,origin,#age_days,#spread,#n,confidence,~default,
 * source,fitted_on".
 */
#define COST_COLUMNS \
	"name,~value,unit,origin,#age_days,#spread,#n,confidence,~default," \
	"source,fitted_on"
void cost_list(const struct cost_model *m, struct table *t);

/* ------------------------------------------------------ cost_draw.c ---- */

/*
 * One of COST_DRAWS sets of costs that all may be true: 0 as they are, in the
 * others every cost that is a guess (confidence L) is between half and twice,
 * every derived one (M) within a quarter, all at once; what the database knows,
 * sizes and the clock stay.  The same for everybody: who compares kernels gives
 * each the same draws.  *out borrows from *m and is never finished.
 */
enum { COST_DRAWS = 12 };
void cost_draw(const struct cost_model *m, int draw, struct cost_model *out);

/* ----------------------------------------------------- cost_clock.c ---- */

/*
 * The shader clock in MHz of a dispatch of so many cycles that is repeated with
 * `idle_s` seconds between.  At "clock" a card that is always busy meets its
 * power limit; one that is idle for a part of the time may use that much more
 * while it works, and power goes with the clock to the "clock.power": up to
 * "clock.short", what kernels of microseconds reach.
 */
double cost_clock(const struct cost_model *m, double cycles, double idle_s);

/* ----------------------------------------------------- cost_peaks.c ---- */

/* FLOP per cycle and SIMD of matrix products, and of pairs of FMA in f32. */
double cost_wmma_rate(const struct cost_model *m);
double cost_fma_rate(const struct cost_model *m);
/*
 * The limits of a roofline, as rows of area "peak" (results.h): what all matrix
 * units and all lanes could do, at the clock of short and of long kernels where
 * they differ, and the bandwidth of Infinity Cache and DRAM.
 */
bool cost_store_peaks(const struct cost_model *m, struct res_db *db,
		      int64_t run, struct err *e);

/* ---------------------------------------------------- cost_import.c ---- */

struct cost_import {
	int taken, skipped;
	bool seen[COST_ROW_COUNT];
};
/*
 * Published costs of a chip (NULL: gfx1100) in a CSV file, as a run of their
 * own: with columns name,
 * value, unit and source (names of cost.def), or with those of a table of
 * instruction classes (cost_import.def).  Rows that are no cost of ours, or the
 * second of one, are counted as skipped.
 */
bool cost_import(struct res_db *db, const char *path, const char *chip,
		 struct cost_import *out, struct err *e);

/* ------------------------------------------------------------- csv.c ---- */

/* Tables that others published: RFC 4180, a header, columns by name. */
#define CSV_COLUMNS_MAX 64

/* Over a text that is cut into fields in place; zero-initialise, set `at`. */
struct csv {
	char *at;
	char *field[CSV_COLUMNS_MAX]; /* of the last record */
	int n;
};

/* The next record: true.  Fields beyond CSV_COLUMNS_MAX are lost. */
bool csv_next(struct csv *c);
/* After the header was read: where the column of this name is, or -1. */
int csv_column(const struct csv *c, const char *name);
/* The cell of the last record, "" where the column or the cell is not. */
const char *csv_cell(const struct csv *c, int column);

#endif
