/*
 * autotune/tuner/tune_int.h - between the files of the tuner.
 */
#ifndef T0_AUTOTUNE_TUNE_INT_H
#define T0_AUTOTUNE_TUNE_INT_H

#include <pthread.h>

#include "autotune/tuner/tune.h"
#include "base/vec.h"
#include "kfd/kfd.h"
#include "results/stats/stats.h"

/* ------------------------------------------------------------ fill.c ---- */

/* Elements of memory as numbers, and back (to nearest even). */
double tune_read_element(enum dsl_type t, const void *base, size_t i);
/* `n` elements from `first` on; the same seed, the same values. */
void tune_fill_operand(enum tune_fill f, enum dsl_type t, void *base, size_t n,
		       uint64_t seed);
/*
 * B of integers (struct gemm_op) and its scales, of n elements whose values
 * are drawn alike.
 */
void tune_fill_weights(enum tune_fill f, enum dsl_type weights, void *base,
		       void *scale, size_t n, uint64_t seed);
/* Element i of such a B, rounded to `in`. */
double tune_read_weight(enum dsl_type weights, enum dsl_type in,
			const void *base, const void *scale, size_t i);

/* ---------------------------------------------------- bench_device.c ---- */

/* Zero-initialise; tune_bench_close() frees all. */
struct tune_bench {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	const struct tune_clock *clock; /* NULL: the device's own, or none */
	const _Atomic int *stop; /* set: no wait goes on; or NULL */
	/* Of the product set last. */
	struct tune_problem p;
	struct gemm_shape shape;
	struct kfd_mem *a, *b, *c, *bias, *residual, *scale, *work;
};
/* Kernels on the device; they belong to it. */
struct tune_loaded {
	struct kfd_code *code[GEMM_KERNELS];
	const struct kfd_kernel *kernel[GEMM_KERNELS];
	size_t code_bytes[GEMM_KERNELS];
	int n;
};

/* On a device, or on that of a clock, which outlives the bench; or NULL. */
bool tune_bench_open(struct tune_bench *r, const char *device,
		     const struct tune_clock *clock, const _Atomic int *stop,
		     struct err *e);
void tune_bench_close(struct tune_bench *r);
/* All but the device. */
void tune_bench_drop(struct tune_bench *r);
bool tune_bench_load(struct tune_bench *r, const struct gemm_code *code,
		     struct tune_loaded *out, struct err *e);
void tune_bench_unload(struct tune_loaded *l);
/* Would a problem's operands fit into the device's memory?  Else ERR_NOMEM. */
bool tune_bench_has_room(struct tune_bench *r, const struct tune_problem *p,
			 struct err *e);
/* Memory for a problem's operands, filled; kept if the problem is the same. */
bool tune_bench_set(struct tune_bench *r, const struct tune_problem *p,
		    enum tune_fill fill, uint64_t seed, struct err *e);
/* C as it was before a run: stale values, or those that beta reads. */
void tune_bench_stale(struct tune_bench *r, uint64_t seed);

/* A part of the product: a block of C, and the first elements of K. */
struct tune_view {
	uint32_t row, column, m, n, k;
};
struct tune_view tune_view_all(const struct tune_problem *p);
/* The launches of this view with this configuration. */
bool tune_bench_launch(struct tune_bench *r, const struct gemm_config *c,
		       const struct tune_view *v, struct gemm_launch *out,
		       struct err *e);
/*
 * Run them and wait.  device_s (may be NULL): from the start of the first to
 * the end of the last by the device's clock, 0 where it gives none.
 */
bool tune_bench_run(struct tune_bench *r, const struct tune_loaded *code,
		    const struct gemm_launch *l, double *device_s,
		    struct err *e);

/* Send step `i` of a launch, without waiting. */
bool tune_bench_submit(struct tune_bench *r, const struct tune_loaded *code,
		       const struct gemm_launch *l, int i, uint64_t *ticket,
		       struct err *e);

/* alpha and beta of all runs. */
#define TUNE_ALPHA 0.75
#define TUNE_BETA -0.5

/* ----------------------------------------------------------- check.c ---- */

/*
 * Is what a kernel computes right?
 *
 * Operands are normal random numbers, results are compared with a reference in
 * double precision.  An element may be off by
 *
 *	CHECK_EPS sqrt(K) 2^-24 |a||b| / sqrt(K)    the sum in f32, whose errors
 *						    add up like a random walk
 *	+ half a unit in the last place of C's type
 *
 * with a the row of A and b the column of B; through an epilogue the first part
 * grows by what the epilogue's slope makes of it.  Integers must be equal.
 *
 * Small products are compared in full.  Of large ones, a small one of the same
 * class (tune_class()) is, and of the real one whole rows and columns - first,
 * last, around the edges of tiles, random ones - and an element of every tile.
 * Where even running it takes too long, the real one is run twice: all of C
 * with a short K, and the last tiles of C with all of K.
 */
struct tune_check_result {
	bool pass;
	double worst;	   /* largest error as a share of what is allowed */
	uint64_t compared; /* elements */
	uint64_t wrong;
	uint64_t seed;
	char detail[200];  /* the first wrong element, or what was compared */
};

/*
 * Runs `code`, which is said to be the product `p` with `c`.  true: *out is the
 * answer, a fault of the kernel being a wrong one.  false and *e: there is none
 * (the device is gone, no memory).
 */
bool tune_check(struct tune_bench *r, const struct tune_problem *p,
		const struct gemm_config *c, const struct gemm_code *code,
		uint64_t seed, struct tune_check_result *out, struct err *e);

/* The same for the operands that lie on the bench, as `v` left C. */
void tune_check_block(struct tune_bench *r, const struct gemm_config *c,
		      const struct tune_view *v, bool all,
		      struct tune_check_result *out);

/* --------------------------------------------------------- measure.c ---- */

/*
 * How long products take on a device with a clock.
 *
 * The protocol, each point for a mistake that has been made elsewhere:
 *   - one program at a time measures on a card (kfd_lock_take());
 *   - warm-up until the time of a product stands still, so that the clock does;
 *   - completion is a signal, time is what the device stamped into it, never
 *     the queue's read pointer or the host's clock;
 *   - all configurations are sampled in rounds, in an order shuffled anew for
 *     each: drift lies in everyone's spread, not in the difference;
 *   - the state of the caches is the same before each sample, and named: the
 *     product itself runs once for a warm one; for a cold one other data goes
 *     through all of them, and then A, where only B is to be cold;
 *   - ten samples at least, of launches that together take SAMPLE_S or more;
 *   - sensors are read around each sample; one during which the driver took
 *     the card away is taken again;
 *   - a time that implies more than the peak is an error, not a record.
 *
 * Results are `hardware` from a card.  The soft device has no clock and is
 * refused, but with a struct tune_clock it is the pipeline simulator's, and its
 * results are `simulated`.
 */
#define TUNE_SAMPLES_LEAST 10

/* One configuration that is measured. */
struct tune_arm {
	const struct gemm_config *config;
	const struct gemm_code *code;
	/* What came out. */
	double *sample;	   /* [n] seconds, in the order measured */
	size_t n, retaken; /* samples; those taken again */
	struct res_interval time_s;
	double clock_hz, power_w; /* means of the readings; NAN: none */
	struct res_sensors before, after; /* of the last sample */
	bool sensors;
	bool good;	   /* else `why` */
	char why[160];
	/* Private. */
	struct tune_loaded loaded;
	struct gemm_launch launch;
	unsigned repeat, readings;
};

struct tune_protocol {
	size_t samples;		/* 0: TUNE_SAMPLES_LEAST */
	enum tune_caches caches; /* before each sample */
	double warm_least_s, warm_most_s; /* 0: 1 and 20 */
	uint64_t seed;		/* of the order */
	const struct cost_model *costs; /* for the peak */
	const _Atomic int *stop;
	bool quiet;
};

/* Do times of this bench mean something?  *origin is what they are. */
bool tune_bench_has_clock(const struct tune_bench *r, enum res_origin *origin,
			  struct err *e);
/*
 * Measure all arms for the product that tune_bench_set() put there.  An arm
 * that cannot be run, or whose time cannot be, is marked, and the others go on.
 * Free the samples with tune_arm_fini().
 */
bool tune_measure(struct tune_bench *r, struct tune_arm *arm, size_t n,
		  const struct tune_protocol *p, struct err *e);
void tune_arm_fini(struct tune_arm *a);
/* The peak that a time is held against, or NULL: it is possible. */
const char *tune_is_impossible(const struct tune_problem *p, double time_s,
			       const struct cost_model *m, double max_hz);

/* ------------------------------------------------------ candidates.c ---- */

/*
 * The search for one problem, and who works on it.
 *
 * Workers take candidates and give answers; the main thread alone talks to the
 * database and to devices.
 */

struct candidate {
	struct tune_candidate c;
	char config[TUNE_TEXT];
	bool taken; /* a worker has it, or it is decided */
	bool known; /* the database has a row of it */
	double time_s, clock_hz;
	char object[20], limit[64];
	double *draw; /* [COST_DRAWS] seconds; NULL: not drawn */
};

enum { CANDIDATE_SEEDS = 4 };

struct candidates {
	const struct tune_problem *p;
	struct candidate *v; /* [n] by estimate, the illegal ones last */
	size_t n, legal;
	uint32_t timed, taken, failed, rejected;
	size_t seed[CANDIDATE_SEEDS]; /* [n_seeds] indices: fast for others */
	size_t n_seeds;
	size_t best; /* index of the fastest; n: none yet */
	size_t *tried; /* [n_tried] those timed, or that did not compile */
	size_t n_tried;
	bool done;   /* nothing is left to do: taken from the database */
};

/*
 * The space of p, with what `known` rows of its key say already, and what won
 * for the problems nearest to it.
 */
bool candidates_init(struct candidates *h, const struct tune_problem *p,
		     const struct tune_opts *o, struct tune_store *s,
		     struct err *e);
void candidates_fini(struct candidates *h);
/*
 * The next candidate to time: what won for near problems, then the best by
 * estimate, one of each tile, for a quarter of the budget; then the one that is
 * expected to be the fastest, which is its estimate times what was found of
 * configurations like it (candidates.c).
 * Those whose bound is above the fastest time are left out, and marked
 * rejected.  false: no more.
 */
bool candidates_next(struct candidates *h, uint32_t budget, size_t *out);
/* What is the fastest for another problem, if it was not tried for this one. */
bool candidates_follow(struct candidates *h, const struct candidates *other,
		       uint32_t budget, size_t *out);
/* One that was given is not going to be timed after all. */
void candidates_drop(struct candidates *h, size_t i);
/* A candidate was timed, or could not be. */
void candidates_take(struct candidates *h, size_t i);
/* The row of an entry, for the database. */
struct res_tune candidate_row(const struct candidate *x);

/* --------------------------------------------------------- compile.c ---- */

/* Machine code by operation and configuration: compiled once, kept. */
struct code_cache;
struct code_cache *code_cache_new(const struct tune_opts *o);
void code_cache_free(struct code_cache *c);
/*
 * Thread-safe; who comes while another compiles it, waits.  NULL and *e: it
 * cannot be had (and why, each time).
 */
const struct gemm_code *code_get(struct code_cache *c,
				 const struct gemm_op *op,
				 const struct gemm_config *config,
				 struct err *e);
/* What there is no use in running: spills, no workgroup fits. */
bool code_is_usable(const char *chip, const struct gemm_config *c,
		    const struct gemm_code *code, struct err *e);

/* ----------------------------------------------------------- draws.c ---- */

struct decider;
enum { TUNE_DRAWN_MOST = 16 };
/*
 * Simulate the finalists of n problems with every draw of the costs, until
 * end_ns (0: to their end): sets `draw` of the candidates of a problem, of all
 * its finalists or of none.
 */
bool draw_finalists(const struct decider *j, struct candidates *h, size_t n,
		    uint64_t end_ns, struct err *e);
/* The fastest of those that were drawn and are not known to be wrong. */
size_t draw_fastest(const struct candidates *h, int draw);
/*
 * The time of an entry over the fastest's, in the draw where that is most; NAN:
 * it was not drawn.
 */
double draw_worst(const struct candidates *h, size_t i);
/* How an entry stands, beside the winner `other`; h->n: it is that. */
struct tune_standing draw_standing(const struct candidates *h, size_t i,
				   size_t other);
/* As the reason of a row says it, and back; false: it says something else. */
void draw_text(const struct tune_standing *s, char out[TUNE_REASON]);
bool draw_parse(const char *reason, struct tune_standing *s);

/* ---------------------------------------------------------- decide.c ---- */

struct decider {
	const struct tune_opts *o;
	struct tune_store *s;
	struct code_cache *codes;
	struct tune_bench bench;
	/* Of the times that decide; operands "" for simulated ones. */
	enum res_origin origin;
	char operands[32];
	bool measures;
};
/*
 * A device that may have a clock is opened, and measured on if it has; the soft
 * one waits until there is something to check.
 */
bool decide_open(struct decider *j, struct err *e);
/* Would the device's memory hold the product?  Nobody else can say so sooner. */
bool decide_room(struct decider *j, const struct tune_problem *p,
		 struct err *e);
/* Checks the fastest until the budget's number is right, and chooses. */
bool decide_winner(struct decider *j, struct candidates *h,
		   struct tune_outcome *out, struct err *e);
/* What the database has for this problem under this key, if it has won. */
bool decide_stored(struct decider *j, const struct tune_problem *p,
		   struct tune_outcome *out, struct err *e);

/* ------------------------------------------------------- finalists.c ---- */

/*
 * Measure the `n` finalists; their rows, samples and sensors are stored, and
 * `out` describes the fastest, or says why there is none.
 */
bool measure_finalists(struct decider *j, struct candidates *h,
		       const size_t *finalist, size_t n,
		       struct tune_outcome *out, struct err *e);

#endif
