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
	const char *against, *condition, *planted, *build, *base, *check;
	struct cli_list evaluator;
	uint64_t budget_ns; /* 0: none */
	bool anonymous; /* export */
	const char *origin, *device, *run; /* that a plot shows */
	const char *paper;
	const char *shard;
	int processes, side, trials;
	double limit;
	bool slots, yes, dry_run, any_host, all, term, tunes, verbose, required;
	bool list, keep;
};

struct show {
	struct cmd cmd;
	struct res_db *db; /* open while a command runs */
	struct show_opts o;
};

/* For a reader, as text or markdown: not for a program. */
static inline bool show_is_text(const struct show *s)
{
	return s->cmd.format == TABLE_TEXT || s->cmd.format == TABLE_MARKDOWN;
}

/* A table for the reader, or every digit for a program. */
static inline int show_digits(const struct show *s)
{
	return show_is_text(s) ? 6 : 0;
}

/* A running run whose process is gone was killed: it is interrupted. */
#define SHOW_STATE \
	"CASE WHEN state = 'running' AND NOT t0_alive(owner) " \
	"THEN 'interrupted' ELSE state END"

/* ----------------------------------------------------- cmd_show.c ---- */

/* The table's one row stood on its side, without what nobody knows. */
bool show_facts(struct show *s, const struct table *row, struct err *e);

/* cmd_table(), for people with parameters as KEY=VALUE. */
bool show_table(struct show *s, struct table *t, struct err *e);

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
	const char *series, *side; /* "": a run by itself */
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
	/* Of a baseline only; its samples are the values of its processes. */
	const char *baseline_uuid, *created, *reason;
	int64_t n_processes;
	double limit; /* the share that may be lost */
	bool required;
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
/* `where` for a run and the others of its side of its series. */
#define SIDE_OF_RUN \
	"(r.id = ?1 OR (r.state = 'complete' AND EXISTS(SELECT 1 FROM runs s " \
	"WHERE s.id = ?1 AND s.series = r.series AND s.side IS r.side)))"

/* -1, 0, 1 by area, name, params, metric: the same measurement? */
int piece_order(const struct piece *a, const struct piece *b);
/* "area/name {params}" without empty params. */
void piece_name(const struct piece *p, struct buf *out);
/* The same for readers: AREA/NAME KEY=VALUE ... */
void piece_title(const struct piece *p, struct buf *out);

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
 * One side of a comparison: RUN, last, run:N, commit:HASH[+], HASH, baseline,
 * or FILE.db:SIDE.  A run stands for its whole side of its series; run:N is that
 * process alone.  Pieces are sorted by piece_order(), then by run.
 */
bool side_load(struct show *s, const char *spec, struct pieces *out,
	       struct err *e);
void pieces_sort(struct pieces *p);

/* ------------------------------------------------------- effect.c ---- */

/*
 * One measurement on one side: a value of each process that measured it.  What
 * a process repeats within itself shares its luck (addresses, pages, clocks),
 * so it counts once, by its median.
 */
struct measured {
	const struct piece *first; /* NULL: nothing was measured */
	double *value;		   /* [n], in the order of `when` */
	int64_t *when;		   /* start_ns */
	size_t n;
	/* Counted or simulated: every process gave the very same number. */
	bool exact;
	struct res_interval median;	/* over the processes, 95 % */
	const char *correct, *coherent; /* the worst; NULL = not checked */
};

/* Of n pieces of one measurement; a baseline's samples are its processes. */
void measured_init(struct measured *m, const struct piece *v, size_t n);
void measured_fini(struct measured *m);

/* What two sides say about each other. */
struct effect {
	struct res_interval change; /* share by which b differs from a */
	double p;		    /* NaN = no test */
	bool exact;		    /* both are: no chance in it */
	bool tested; /* exact, or processes that can prove something */
	bool proven; /* that there is a difference */
	bool turns;  /* the sides ran in turns, not one after the other */
	size_t na, nb;
	double detectable; /* the least change found 19 times of 20; NaN */
};
/*
 * `alpha`: how often a difference may be called proven where there is none.
 * `drift`: the share by which groups that run one after the other differ on
 * this machine (of a calibration); widens the interval of such.  NaN: not
 * known.
 */
struct effect effect_of(const struct measured *a, const struct measured *b,
			double alpha, double drift);
/* How many processes a side it takes to find a change of `share`; 0 = NaN. */
size_t effect_processes(const struct effect *f, double share);
/* The least change that as many processes again would find; NaN = too few. */
double measured_detectable(const struct measured *m, double alpha);

/* How often a whole comparison or gate may hold any false verdict. */
#define FAMILY_ALPHA 0.01

/* -------------------------------------------------- calibrated.c ---- */

/* The newest calibration of each kind and condition, of all machines. */
struct calibration {
	const char *machine, *area, *kind, *condition, *created;
	int64_t processes, side, measures, trials, false_alarms, serial,
		serial_false;
	int64_t planted_trials, planted_found, planted_passed; /* 0: none */
	double alpha, detectable, spread, drift, planted; /* NaN = not known */
};
struct calibrations {
	struct arena mem;
	struct calibration *v;
	size_t n, cap;
};
bool calibrations_load(struct res_db *db, struct calibrations *c,
		       struct err *e);
void calibrations_fini(struct calibrations *c);
/* What groups of processes drift on p's machine, when quiet; NaN = unknown. */
double calibrated_drift(const struct calibrations *c, const struct piece *p);
/* A line for each that is about these pieces; one that says there is none. */
void calibrations_print(const struct calibrations *c, const struct pieces *p,
			FILE *out);

/* ------------------------------------------------------- pairs.c ---- */

/* One measurement on two sides; its pieces are theirs. */
struct pair {
	const struct piece *of_a, *of_b;
	size_t n_a, n_b;
	struct measured a, b;
	struct effect effect;
	const char *verdict;
};
struct pairs {
	struct pair *v;
	size_t n, cap;
	size_t family; /* rows that chance may decide: they share alpha */
};
/*
 * Every measurement of either side, both sorted as by side_load(); ERR_INPUT if
 * two must not be compared, unless the field that differs is allowed.
 */
bool pairs_make(struct pairs *all, const struct pieces *a,
		const struct pieces *b, const struct cli_list *allow,
		struct err *e);
/* Rows get equal parts of alpha, so that all together keep it (Bonferroni). */
void pairs_judge(struct pairs *all, double alpha,
		 const struct calibrations *known);
/* How many are proven worse by at least this share. */
size_t pairs_worse(const struct pairs *all, double least);
void pairs_fini(struct pairs *all);
bool pair_has_both(const struct pair *p);
bool pair_is_chancy(const struct pair *p);
/* Its first piece, of whichever side has it. */
const struct piece *pair_piece(const struct pair *p);

/* -------------------------------------------------- cmd_compare.c ---- */

bool res_cmd_compare(struct cmd *c, struct err *e);

/* --------------------------------------------------------- gate.c ---- */

/* What a gate says of one case; only a pass is one. */
enum gate_answer { GATE_PASS, GATE_REGRESS, GATE_INCONCLUSIVE, GATE_NODATA };

struct gate_verdict {
	enum gate_answer answer;
	struct effect effect;
	struct res_interval loss; /* shares; negative = gained */
	double limit;		  /* the baseline's: what may be lost */
	bool investigate;	  /* 5 % or more, either way */
	char reason[512];
};

/* The share that a case may lose, unless its baseline says otherwise. */
#define GATE_LIMIT 0.05
/* From here on a change wants an explanation. */
#define GATE_INVESTIGATE 0.05
/* How many processes a side are advised. */
#define GATE_PROCESSES 20

/*
 * `base` is one baseline; `now` may be empty: nothing was measured.  `alpha` and
 * `drift` as for effect_of().
 */
void gate_judge(const struct measured *base, const struct measured *now,
		double alpha, double drift, struct gate_verdict *v);

/* -------------------------------------------------- gate_checks.c ---- */

/* A line for each cause, in the order in which to look: "ruled out" or not. */
void gate_checklist(const struct piece *base, const struct piece *now,
		    struct buf *out);

/* ----------------------------------------------------- cmd_gate.c ---- */

bool res_cmd_gate(struct cmd *c, struct err *e);

/* ------------------------------------------------- cmd_baseline.c ---- */

bool res_cmd_baseline(struct cmd *c, struct err *e);

/* ---------------------------------------------------- cmd_bench.c ---- */

bool res_cmd_bench(struct cmd *c, struct err *e);

/* ------------------------------- cmd_commits.c, cmd_bisect.c ---- */

bool res_cmd_bench_commits(struct cmd *c, struct err *e);
bool res_cmd_bisect(struct cmd *c, struct err *e);

/* ----------------------------------------------- cmd_experiment.c ---- */

bool res_cmd_experiment(struct cmd *c, struct err *e);

/* ------------------------------------------------ cmd_calibrate.c ---- */

bool res_cmd_calibrate(struct cmd *c, struct err *e);

/* ----------------------------------------------------- cmd_note.c ---- */

bool res_cmd_note(struct cmd *c, struct err *e);

/* ------------------------------------- cmd_export.c, cmd_import.c ---- */

/*
 * The whole file as JSON lines in an order that depends on nothing but the
 * rows.  Calls put(ctx, line) for each, without its newline.  Anonymous ones
 * name neither machine nor card nor user, and hold no command lines.
 */
bool res_export(struct res_db *db, bool anonymous,
		bool (*put)(void *ctx, const char *line, size_t len,
			    struct err *e),
		void *ctx, struct err *e);

/* The rows of another database into this one. */
bool show_merge(struct res_db *db, const char *path, struct err *e);

bool res_cmd_export(struct cmd *c, struct err *e);
bool res_cmd_import(struct cmd *c, struct err *e);
bool res_cmd_merge(struct cmd *c, struct err *e);

/* --------------------------------------------------- cmd_push.c ---- */

bool res_cmd_push(struct cmd *c, struct err *e);
bool res_cmd_pull(struct cmd *c, struct err *e);

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
