/*
 * probes/common - what all probes share: the manual.
 *
 * A run in the database around an open device (run.c), the method by which
 * costs are measured on whatever machine (method.c), the host's own counters
 * (perf.c), the soft device with the pipeline simulator as its clock (timed.c),
 * and kernels for whichever chip (assemble.c).
 */
#ifndef T0_PROBES_COMMON_H
#define T0_PROBES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "compiler/sim/sim.h"
#include "kfd/kfd.h"
#include "kfd/soft/timed/timed.h"
#include "results/db/results.h"
#include "results/stats/stats.h"

/* ------------------------------------------------------- assemble.c ---- */

/* Lines for gfx11 as those of another generation, appended. */
void probe_text(enum isa_gen gen, const char *text, struct buf *out);
/*
 * Machine code of a chip for such lines, in wave32, appended; *e shows the line
 * that was not understood.
 */
bool probe_assemble(const char *chip, const char *text, struct buf *code,
		    struct err *e);
/* The generation of an open device; gfx11 where it is not known. */
enum isa_gen probe_gen(struct kfd_dev *dev);
/* Such lines as a kernel of the device, which is the device's. */
bool probe_load(struct kfd_dev *dev, const char *text,
		const struct kfd_raw_desc *d, const struct kfd_kernel **k,
		struct err *e);
/* COMPUTE_PGM_RSRC1 of a kernel in wave32 and WGP mode, denormals kept. */
uint32_t probe_rsrc1(enum isa_gen gen, uint32_t vgprs);

/* The command line of t0-probe, as its commands see it. */
struct probe_opts {
	const char *device, *db, *oracle;
	const char *format_out; /* file for --json, --csv; NULL = stdout */
	enum table_format format;
	struct cli_list encodings, replace;
	uint64_t seed, deadline_ns, batch;
	bool quiet, second_opinion, quick;
	const char *inst;   /* costs: only names that begin so; NULL = all */
	struct cli_list set; /* sim: NAME=VALUE of cost.def */
	const struct cost_model *costs; /* sim: instead of cost.def's, or NULL */
	bool levels; /* memory: one working set of each level of caches */
	uint64_t samples;   /* costs: per metric; 0 = the default */
	uint64_t max_bytes; /* memory: largest working set; 0 = the default */
	struct res_shard shard; /* the part that is done; count 0: all */
	int require; /* tiers: exit 1 below this one; -1 = none */
	int argc;
	char *const *argv;
	const _Atomic int *stop;
};

/* ------------------------------------------------------------ run.c ---- */

/* Is the command asked to end? */
bool probe_stopped(const struct probe_opts *o);

/* Is this case in the shard that was asked for? */
bool probe_in_shard(const struct probe_opts *o, const char *area,
		    const char *name);

struct probe_reading {
	bool good; /* else nothing could be read */
	struct res_sensors s;
	bool counts_evicted;
	uint64_t evicted_ms;
};
struct probe_run {
	struct res_db *db;
	int64_t id;
	enum res_origin origin;
	struct arena mem;
	/* Around what is stored next: read them when it is measured. */
	struct probe_reading before, after;
};
/* Zero-initialise first.  device: NULL = it could not be opened. */
bool probe_run_begin(struct probe_run *r, const struct probe_opts *o,
		     const char *tool, const struct kfd_info *device,
		     const char *inputs, struct err *e);
bool probe_run_verdict(struct probe_run *r, const char *area, const char *name,
		       enum res_answer answer, const char *reason,
		       struct err *e);
/* The device's sensors now, for the database. */
struct probe_reading probe_reading(struct kfd_dev *dev);
/*
 * Were our queues taken off the card in between?  Says so on stderr: what was
 * measured is not the card's fault.
 */
bool probe_was_evicted(const struct probe_reading *before,
		       const struct probe_reading *after);
/* One metric with its raw samples; the value is their median. */
bool probe_run_samples(struct probe_run *r, const char *area, const char *name,
		       const char *params, const char *metric,
		       const char *unit, enum res_better better,
		       const double *v, size_t n, struct err *e);
/* Ends and frees it; when not good, *e is the reason. */
bool probe_run_end(struct probe_run *r, const struct probe_opts *o, bool good,
		   int code, struct err *e);

/* Of what the device yields: emulated where nothing in it costs time. */
enum res_origin probe_origin(const struct kfd_info *in);
/* What the database keeps of a device; strings live in `mem`. */
void probe_device_row(const struct kfd_info *in, struct arena *mem,
		      struct res_device *d);
/* The q-quantile (0..1) of n > 0 values. */
double probe_quantile(const double *v, size_t n, double q);
/* The GPU's lock, waiting up to 2 minutes and saying so on stderr. */
bool probe_lock(const struct kfd_info *info, struct kfd_lock *l,
		struct err *e);

/* --------------------------------------------------------- method.c ---- */

/*
 * A cost is never read off one clock difference.  The same loop exists twice,
 * with n and with 2n copies of what is measured, and both run the same number
 * of times: what the loop, the counter and the call cost is in both, so that
 *
 *	cost of one copy = (T(2n) - T(n)) / (n * iterations)
 *
 * Around each pair the clock is measured.  A pair is rejected, counted by
 * reason and taken again when the clock was not the same before and after,
 * when a run was interrupted, when the longer loop was not the longer one, or
 * when the loop did not compute what it should.  Nothing is dropped because
 * of its result.  A sample is the median of a few pairs.
 *
 * All series of one run are measured in rounds, one sample each, in an order
 * shuffled anew for every round: what drifts over the run lies in the spread
 * of every series, not in the difference between them.
 *
 * The machine is behind probe_read_fn, so the method itself is tested with a
 * clock that jumps, wraps and lies (tests/probes/micro-method.c).
 */

enum probe_reject {
	PROBE_PAIR_GOOD,
	PROBE_PAIR_CLOCK, /* the clock moved between before and after */
	PROBE_PAIR_CUT,   /* a run was interrupted */
	PROBE_PAIR_ORDER, /* the longer loop took no longer */
	PROBE_PAIR_VALUE, /* the chain's final value is wrong */
	PROBE_REJECTS
};

/* One pair of runs.  Ticks are of any counter; clocks of any unit. */
struct probe_pair {
	double before, after;	/* clock, as cycles per tick; both > 0 */
	double shorter, longer; /* ticks of the loops of n and of 2n */
	double copies;		/* by which they differ: n * iterations */
	bool cut;		/* the reader saw an interruption */
	bool wrong;		/* final value is not the expected one */
};

/* How far two readings of the clock may lie apart. */
#define PROBE_CLOCK_TOLERANCE 0.005

/* Why not, or PROBE_PAIR_GOOD and *cycles = cycles of one copy. */
enum probe_reject probe_pair_cycles(const struct probe_pair *p, double *cycles);

/*
 * From `start` to `end` on a counter of `bits` bits that wrapped at most once.
 */
uint32_t probe_ticks_between(uint32_t start, uint32_t end, int bits);

/* Reads one pair; false and *e only when the machine is lost. */
typedef bool probe_read_fn(void *ctx, struct probe_pair *p, struct err *e);

#define PROBE_SAMPLES_MAX 101
#define PROBE_PAIRS_MAX	  9

/* One metric of one thing.  The caller fills the first part. */
struct probe_series {
	const char *name;
	probe_read_fn *read;
	void *ctx;
	double floor; /* added to the interval: what the method can resolve */

	double v[PROBE_SAMPLES_MAX];	     /* [n] samples in order */
	size_t n;
	unsigned rejected[PROBE_REJECTS];
	bool gave_up; /* too many rejections; `n` may be short */
	double clock; /* mean of the clocks of accepted pairs */
	double clock_sum;
	unsigned n_clocks;
};

struct probe_plan {
	size_t samples; /* per series, at most PROBE_SAMPLES_MAX */
	size_t pairs;	/* per sample, at most PROBE_PAIRS_MAX */
	uint64_t seed;	/* of the order */
	const _Atomic int *stop; /* may be NULL; set: ends after this pair */
	struct progress *progress; /* may be NULL: a step per sample */
};

/* Measure all series.  A stop is no error: what there is stays. */
bool probe_measure(const struct probe_plan *plan, struct probe_series **s,
	       size_t n, struct err *e);

/*
 * Median with its 95 % interval, widened on both sides by what the method can
 * resolve: half of the tolerance of the clock, and s->floor.
 */
struct res_interval probe_series_median(const struct probe_series *s);

/* What was measured again, over all rows of a table. */
struct probe_rejects {
	unsigned n[PROBE_REJECTS];
	unsigned empty; /* rows without a value, none of them wrong */
	bool column;	/* the table's last one has it by row */
};

/* "12 clock moved, 3 interrupted" appended; nothing if none. */
void probe_rejects_print(const unsigned rejected[PROBE_REJECTS],
			 struct buf *out);
/*
 * Those of `s`, which the row begun last is of, into its last column; `t` NULL:
 * it has no row.
 */
void probe_rejects_add(struct probe_rejects *all, const struct probe_series *s,
		       struct table *t);
/* Is what is printed for people, and not for programs? */
bool probe_is_for_people(const struct probe_opts *o);
/* A number of bytes: "16 KiB" for people, else 16384. */
void probe_bytes_cell(const struct probe_opts *o, struct table *t, int col,
		      uint64_t bytes);
/*
 * Print a table where the options say.  Programs get what was rejected by row;
 * people only the sum, on stderr.  `all` may be NULL.
 */
bool probe_print_table(const struct probe_opts *o, const struct table *t,
		       const struct probe_rejects *all, struct err *e);

/* A cyclic permutation of n numbers: one orbit (Sattolo). */
void probe_random_cycle(uint32_t *next, uint32_t n, uint64_t seed);

/* ----------------------------------------------------------- perf.c ---- */

struct probe_perf {
	int fd[2];     /* a group; -1 = not there */
	bool hardware; /* value[] are cycles and instructions */
	bool software; /* value[] are task nanoseconds and context switches */
	char what[160]; /* one line for people */
	uint64_t tsc;
};
struct probe_perf_count {
	double value[2];
	uint64_t tsc;
	bool multiplexed;
};

/* Never fails: p->what says what there is.  Of the calling thread. */
void probe_perf_open(struct probe_perf *p);
void probe_perf_close(struct probe_perf *p);
void probe_perf_start(struct probe_perf *p);
/* false: only the time-stamp counter was read. */
bool probe_perf_stop(struct probe_perf *p, struct probe_perf_count *c);

/* ---------------------------------------------------------- timed.c ---- */

/*
 * The soft device with the pipeline simulator as its clock.
 *
 * The soft device executes and knows no time; the simulator (compiler/sim)
 * knows time and no values.  Joined, a kernel runs for real while the
 * simulator decides which wave issues in which cycle, and what the kernel
 * reads from SHADER_CYCLES and GET_REALTIME is the simulator's clock.  So the
 * probes run as on a card, and what they find out is what the simulator was
 * told: the proof that they measure what they say.
 *
 * One WGP is simulated.  A dispatch of fewer workgroups than the GPU has WGPs
 * runs on it; of a larger one it runs its share, every 48th, while all others
 * are as busy, and those others' workgroups are executed without being timed.
 *
 * Results of such a device are `simulated`.  They are never read as costs
 * (compiler/cost/cost.h), for a model must not learn from itself.
 *
 *	struct probe_timed *t = probe_timed_new(&costs);
 *	probe_timed_open(t, &dev, &e);
 *	probe_timed_code(t, code, bytes, kernel->entry_va);
 *	kfd_run(queue, &launch, NULL, &e) && probe_timed_check(t, &e);
 *	kfd_close(dev);
 *	probe_timed_free(t);
 */
struct probe_timed;

/* `costs` is only read, and outlives it. */
struct probe_timed *probe_timed_new(const struct cost_model *costs);
/* After kfd_close() of its device. */
void probe_timed_free(struct probe_timed *t);

/* A soft device, of the costs' chip, whose dispatches are timed by `t`. */
bool probe_timed_open(struct probe_timed *t, struct kfd_dev **dev,
		      struct err *e);

/* The code of the dispatches that follow; the bytes stay the caller's. */
void probe_timed_code(struct probe_timed *t, const void *code, size_t bytes,
		      uint64_t va);
/* The cycle that the next dispatch begins with (0): to see counters wrap. */
void probe_timed_first(struct probe_timed *t, uint64_t cycle);

/* Could the last dispatch be simulated?  Else *e says why not. */
bool probe_timed_check(struct probe_timed *t, struct err *e);
/* Wave-instructions of all dispatches so far. */
uint64_t probe_timed_issues(struct probe_timed *t);

#endif
