/*
 * results/cmd - the commands of t0-results, and what they share.
 */
#ifndef T0_RESULTS_CMD_H
#define T0_RESULTS_CMD_H

#include "base/cmd.h"
#include "results/db/res.h"
#include "results/stats/stats.h"

/* The options, as parsed; see the table in t0-results.c for their meaning. */
struct show_opts {
	const char *db, *reason, *commit, *metric, *only;
	const char *older_than;
	const char *hypothesis, *about, *expected, *measured, *status, *patch;
	const char *remark, *replaces;
	struct cli_list allow;
	double alpha, least;
	bool slots, yes, dry_run, any_host, all, term, tunes;
};

struct show {
	struct cmd cmd;
	struct res_db *db; /* open while a command runs */
	struct show_opts o;
};

/* A table for the reader, or every digit for a program. */
static inline int show_digits(const struct show *s)
{
	return s->cmd.format == TABLE_TEXT ? 6 : 0;
}

/* A running run whose process is gone was killed: it is interrupted. */
#define SHOW_STATE \
	"CASE WHEN state = 'running' AND NOT t0_alive(owner) " \
	"THEN 'interrupted' ELSE state END"

/* ----------------------------------------------------- cmd_show.c ---- */

/* The table's one row stood on its side, without what nobody knows. */
bool show_facts(struct show *s, const struct table *row, struct err *e);

/* Runs a SELECT without parameters and prints it. */
bool show_query(struct show *s, const char *columns, const char *sql,
		struct err *e);

/* A run's id, or "last". */
bool show_find_run(struct res_db *db, const char *name, int64_t *run,
		   struct err *e);

bool res_cmd_list(struct cmd *c, struct err *e);
bool res_cmd_show(struct cmd *c, struct err *e);

/* ----------------------------------------------------- cmd_list.c ---- */

bool res_cmd_history(struct cmd *c, struct err *e);
bool res_cmd_costs(struct cmd *c, struct err *e);
bool res_cmd_devices(struct cmd *c, struct err *e);
bool res_cmd_sql(struct cmd *c, struct err *e);
bool res_cmd_prune(struct cmd *c, struct err *e);

/* ------------------------------------------------------ samples.c ---- */

/* What decides whether two numbers may be compared, and what explains them. */
struct facts {
	int64_t run; /* its id; 0 for a baseline */
	int64_t start_ns;
	const char *uuid, *tool, *inputs, *conditions;
	const char *machine, *cpu, *kernel;
	const char *device, *gfx, *uid, *driver, *firmware; /* NULL = none */
	const char *commit, *compiler, *flags, *binary;
	bool dirty;
};

/* One metric of one case, from one run or from a baseline. */
struct piece {
	const struct facts *facts;
	int64_t id; /* of the result, or of the baseline */
	int64_t case_id;
	const char *area, *name, *params, *metric, *unit;
	const char *better, *origin, *source;
	const char *correct, *coherent; /* verdicts; NULL = not checked */
	double value, lo, hi, clock_hz; /* NaN = not known */
	int64_t n;
	double *samples; /* [n_samples], in the order measured */
	size_t n_samples;
	/* Of a baseline only. */
	const char *baseline_uuid, *created, *reason;
};

/* Owns its strings and samples.  Zero-initialise. */
struct pieces {
	struct arena mem;
	struct piece *v;
	size_t n, cap;
};

/*
 * Append the results for which the SQL condition `where` holds, with their
 * samples; it may use r (v_runs' tables: r, h, d, b), x (results), c (cases).
 */
bool pieces_of_results(struct res_db *db, struct pieces *p, struct err *e,
		       const char *where, const char *binds, ...);
/* Append baselines; `where` is about v_baselines. */
bool pieces_of_baselines(struct res_db *db, struct pieces *p, struct err *e,
			 const char *where, const char *binds, ...);
void pieces_fini(struct pieces *p);

/* -1, 0, 1 by area, name, params, metric: the same measurement? */
int piece_order(const struct piece *a, const struct piece *b);
/* "area/name {params}" without empty params. */
void piece_name(const struct piece *p, struct buf *out);

/* --------------------------------------------------- comparable.c ---- */

/* The first difference that forbids a comparison. */
struct mismatch {
	char field[128];
	char a[160], b[160];
	const char *remedy; /* "", or what else is to be said */
};

/*
 * May a and b be compared?  Device, host, origin, unit, direction and every run
 * input must agree, and every condition that is a word (a governor, a power
 * profile); numbers in the conditions vary by nature.  Fields in `allow` may
 * differ.  With `strict` the driver may not either.
 */
bool pieces_comparable(const struct piece *a, const struct piece *b,
		       bool strict, const struct cli_list *allow,
		       struct mismatch *m);

/*
 * One side of a comparison: RUN, last, commit:HASH[+], HASH, baseline, or
 * FILE.db:SIDE.  Pieces are sorted by piece_order(), then by run.
 */
bool side_load(struct show *s, const char *spec, struct pieces *out,
	       struct err *e);

/* -------------------------------------------------- cmd_compare.c ---- */

/* What two samples say about each other. */
struct effect {
	struct res_interval change; /* share by which b differs from a */
	double p;		    /* of Mann-Whitney; NaN = no test */
	bool tested;		    /* enough samples, or both are exact */
};
/*
 * An exact value (its interval is itself, and n at least 1) needs no samples:
 * any difference to another exact one is proven.
 */
struct effect effect_of(const struct piece *a, const struct piece *b);

bool res_cmd_compare(struct cmd *c, struct err *e);

/* ----------------------------------------------------- cmd_gate.c ---- */

/* What a gate says of one case; the exit status is the worst of them. */
enum gate_answer { GATE_PASS, GATE_REGRESS, GATE_INCONCLUSIVE, GATE_NODATA };

struct gate_verdict {
	enum gate_answer answer;
	struct effect effect;
	double loss;	  /* share lost, the estimate; negative = gained */
	double threshold; /* what a loss must reach to count */
	bool investigate; /* 5 % or more, either way */
	char reason[256];
};

/* Significance that a gate asks for: false alarms stay below this share. */
#define GATE_ALPHA 0.01
/* The least loss that is a regression; noisier cases have a higher one. */
#define GATE_LEAST 0.02
/* From here on a change wants an explanation. */
#define GATE_INVESTIGATE 0.05

/* `now` may be NULL: nothing was measured. */
void gate_judge(const struct piece *base, const struct piece *now,
		struct gate_verdict *v);

/* A line for each cause, in the order in which to look: "ruled out" or not. */
void gate_checklist(const struct piece *base, const struct piece *now,
		    const struct gate_verdict *v, struct buf *out);

bool res_cmd_gate(struct cmd *c, struct err *e);

/* ------------------------------------------------- cmd_baseline.c ---- */

bool res_cmd_baseline(struct cmd *c, struct err *e);

/* ----------------------------------------------------- cmd_note.c ---- */

bool res_cmd_note(struct cmd *c, struct err *e);

/* ------------------------------------- cmd_export.c, cmd_import.c ---- */

/*
 * The whole file as JSON lines in an order that depends on nothing but the
 * rows.  Calls put(ctx, line) for each, without its newline.
 */
bool res_export(struct res_db *db,
		bool (*put)(void *ctx, const char *line, size_t len,
			    struct err *e),
		void *ctx, struct err *e);

bool res_cmd_export(struct cmd *c, struct err *e);
bool res_cmd_import(struct cmd *c, struct err *e);
bool res_cmd_merge(struct cmd *c, struct err *e);

/* --------------------------------------- cmd_plot.c, cmd_report.c ---- */

/*
 * Draw every plot that has data into the folder `dir`, as NAME.gp, NAME.svg and
 * NAME.png; then fn is called with its name and title.  fn may be NULL.
 */
bool plot_each(struct show *s, const char *dir,
	       bool (*fn)(void *ctx, const char *name, const char *title),
	       void *ctx, struct err *e);
bool res_cmd_plot(struct cmd *c, struct err *e);
bool res_cmd_report(struct cmd *c, struct err *e);

#endif
