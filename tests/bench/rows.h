/*
 * tests/bench/rows.h - what a benchmark prints, as rows of the database.
 *
 * Where the environment names a database (T0_DB, as `make bench` and `t0-results
 * bench` do), a benchmark's process is a run of it, of the tool "bench-PROGRAM";
 * without T0_DB nothing is written.  What the benchmark prints becomes cases of
 * the area "bench", called PROGRAM/ROW:
 *
 *	metric     unit     better
 *	time       s        lower   (cycle, where it was simulated)
 *	cpu_time   s        lower   of the processor
 *	rate       X/s      higher
 *	ratio      1                to what the parameter "to" names
 *
 * Every function returns the value that it stored, for printing: the median
 * where there are several samples.  They are stored at once, with their samples
 * in the order measured.  An error ends the storing; bench_close() reports it.
 * T0_BENCH_ROUNDS makes a benchmark shorter, and its rows no longer comparable
 * with those of whole ones.
 */
#ifndef T0_TESTS_BENCH_ROWS_H
#define T0_TESTS_BENCH_ROWS_H

#include "results/db/results.h"

struct bench_rows {
	struct res_db *db; /* NULL: nothing is stored */
	const char *program;
	int64_t run;
	char name[128], params[256]; /* of the case */
	enum res_origin origin;	     /* of what comes next; first: hardware */
	struct err e;
};

/* How often to repeat: `n`, or what T0_BENCH_ROUNDS says if that is less. */
unsigned bench_rounds(unsigned n);

/* Begins the run.  The arguments and what else decides are its inputs. */
void bench_open(struct bench_rows *r, const char *program, int argc,
		char **argv);
/*
 * Ends it: complete if `good` and all was stored and printed, else failed.
 * Reports the error of either and returns the exit status.
 */
int bench_close(struct bench_rows *r, bool good, struct err *e);

/* What the values behind it are of; params as of res_params(), NULL = {}. */
void bench_case(struct bench_rows *r, const char *name, const char *params);

/* Of n samples in units of `unit_s` seconds; so is what is returned. */
double bench_time(struct bench_rows *r, const double *v, size_t n,
		  double unit_s);
double bench_cpu_time(struct bench_rows *r, const double *v, size_t n,
		      double unit_s);
/* In SI units: "insts/s", "FLOP/s". */
double bench_rate(struct bench_rows *r, const char *unit, const double *v,
		  size_t n);
/* One that has no samples: of the best, or of medians. */
double bench_rate_one(struct bench_rows *r, const char *unit, double v);
/* Of the case with "to" added to its parameters. */
double bench_ratio(struct bench_rows *r, const char *to,
		   enum res_better better, const double *v, size_t n);
double bench_ratio_one(struct bench_rows *r, const char *to,
		       enum res_better better, double v);
/* Simulated, so exact. */
double bench_cycles(struct bench_rows *r, double cycles);

/* The case's results were compared with others'. */
void bench_checked(struct bench_rows *r, bool right, const char *with);

#endif
