/*
 * autotune/tuner - which tile configuration is best for a matrix product of a
 * chip, that of the costs, and is it right: the manual.
 *
 * A *problem* is an operation (compiler/gemm/gemm.h) with its sizes.  For each
 * the tuner
 *
 *	1. enumerates a space of some thousands of configurations (space.def),
 *	2. drops those that the hardware cannot have, with the reason,
 *	3. ranks all others by an analytic estimate (roofline.c),
 *	4. compiles and simulates the best ones until nobody left could win
 *	   (simulate.c), as many as the budget allows,
 *	5. simulates the fastest few with other costs that may be true as well
 *	   (draws.c), where no card measures them,
 *	6. runs the best on the soft device against a double-precision
 *	   reference (check.c); one that is wrong is out for ever,
 *	7. measures those that remain on a card, where there is one (measure.c),
 *	8. stores every decision at once, so that a search which is killed goes
 *	   on with what is missing (results/db/tunes.h).
 *
 * Correctness comes before time: a configuration becomes a winner only through
 * res_tune_win(), and the database refuses one whose machine code did not
 * pass its check.
 *
 *	struct tune_problem p = { .op = op, .m = 128, .n = 3072, .k = 1024,
 *				  .batch = 1 };
 *	struct tune_selector *s = tune_selector_open(&opts, &e);
 *	struct tune_choice c;
 *
 *	if (!s || !tune_select(s, &p, &c, &e))
 *		return err_wrap(&e, "tuning");
 *	... c.code.object[0], launched as compiler/gemm/gemm.h says ...
 *	tune_choice_fini(&c);
 *
 * Times are of the product's kernels alone, without the launch; TFLOPS are
 * 2 m n k batch over that time, whatever the epilogue adds.
 */
#ifndef T0_AUTOTUNE_TUNE_H
#define T0_AUTOTUNE_TUNE_H

#include "base/base.h"
#include "compiler/cost/cost.h"
#include "compiler/gemm/gemm.h"
#include "kfd/kfd.h"
#include "probes/common/common.h"
#include "results/db/tunes.h"

/* Of the kit for a card (autotune/card) and of what others published. */
#define TUNE_CHIP COST_CHIP

/*
 * Where operands lie before a product begins.  Loops that call one product over
 * and over find all where the last call left it; a model's weights are in DRAM,
 * while what the kernel before has just written is not.
 */
enum tune_caches {
	TUNE_WARM,   /* in the smallest level of caches that holds all */
	TUNE_COLD_B, /* B in DRAM, the others as in TUNE_WARM */
	TUNE_COLD,   /* A, B and C in DRAM */
	TUNE_CACHES
};

struct tune_problem {
	struct gemm_op op;
	uint32_t m, n, k, batch;
	enum tune_caches caches;
};

/* Room for any text form below, and for the reason of a decision. */
#define TUNE_TEXT 96
#define TUNE_REASON 112

/* ------------------------------------------------------- problem.c ---- */

/*
 * From the words of the command line; NULL: "bf16", "nn", "".  `dtype` is
 * IN[:OUT] (IN also f16w4 and such: B of integers), `layout` two of n and t,
 * `epilogue` a comma list of bias, scale, relu, silu, gelu, swiglu, shrink,
 * residual, beta.
 */
bool tune_op_parse(const char *dtype, const char *layout, const char *epilogue,
		   struct gemm_op *op, struct err *e);
/* Bytes of an element in memory. */
uint32_t tune_type_bytes(enum dsl_type t);
/* Bytes of an element of B, with its share of a scale. */
double tune_b_bytes(const struct gemm_op *op);
/* "warm", "cold-b", "cold"; of the database, too. */
const char *tune_caches_name(enum tune_caches c);
bool tune_caches_parse(const char *s, enum tune_caches *c, struct err *e);
/* Dense. */
struct gemm_shape tune_shape(const struct tune_problem *p);
double tune_flop(const struct tune_problem *p);
/* Columns of B; SwiGLU takes two for one of C. */
uint64_t tune_columns(const struct tune_problem *p);
/* Bytes of A, B and C, each once; of A, of B; of those in caches. */
double tune_bytes(const struct tune_problem *p);
double tune_bytes_a(const struct tune_problem *p);
double tune_bytes_b(const struct tune_problem *p);
double tune_bytes_warm(const struct tune_problem *p);

struct tune_problems {
	struct tune_problem *v; /* [n] */
	size_t n, cap;
	/* Of what is added; NULL: warm, but cold-b for what a model needs. */
	const enum tune_caches *caches;
};
void tune_problems_fini(struct tune_problems *l);
/* Cubes of these sizes (base/base.h: sweeps); "a..b" means powers of two. */
bool tune_problems_sizes(struct tune_problems *l, const struct gemm_op *op,
			 const char *sweep, struct err *e);
/* "MxNxK[xBATCH],..." */
bool tune_problems_shapes(struct tune_problems *l, const struct gemm_op *op,
			  const char *list, struct err *e);
/*
 * What the engine launches for the model of this name (models.def), for
 * prompts of the usual lengths and for decoding; of `op` only the type of the
 * inputs and weights counts.
 */
bool tune_problems_model(struct tune_problems *l, const struct gemm_op *op,
			 const char *model, struct err *e);

/*
 * The class of a problem under a configuration: which paths through the code
 * it takes.  For each dimension whether there is a tile, a whole number of
 * them or a part beyond; how many steps of K, exactly up to TUNE_STEPS and by
 * the place in the cycle of buffers beyond; whether parts of K are uneven, and
 * whether there is a batch.  A check of one problem holds for all of its class.
 */
#define TUNE_STEPS 8
void tune_class(const struct tune_problem *p, const struct gemm_config *c,
		char out[TUNE_TEXT]);
/* The smallest problem of the same class; `p` itself if it is small. */
struct tune_problem tune_reduced(const struct tune_problem *p,
				 const struct gemm_config *c);

/* --------------------------------------------------------- space.c ---- */

struct tune_candidate {
	struct gemm_config config;
	double estimate_s; /* ranks; roofline.c */
	double bound_s;	   /* nothing can be faster under the cost model */
	const char *limit; /* of the bound: "wmma", "lds", "l2", ... */
	enum res_tune_state state;
	char reason[TUNE_REASON];
};
struct tune_space {
	struct tune_candidate *v; /* [n] */
	size_t n, cap;
	size_t legal;
};
/*
 * Every configuration of space.def for this problem, those that cannot be had
 * marked RES_TUNE_REJECTED with the reason; the legal ones first, by estimate.
 */
void tune_space_init(struct tune_space *s, const struct tune_problem *p,
		     const struct cost_model *m);
void tune_space_fini(struct tune_space *s);

/* What a compiled object takes; a guess before there is one. */
struct tune_needs {
	int vgprs, groups; /* workgroups of a WGP at once */
	uint32_t lds_bytes;
};
void tune_needs_guess(const char *chip, const struct tune_problem *p,
		      const struct gemm_config *c, struct tune_needs *out);
/* Workgroups that a WGP of the chip holds at once; 0: none. */
int tune_groups_at_once(const char *chip, const struct gemm_config *c,
			int vgprs, uint32_t lds_bytes);

/* -------------------------------------------------------- roofline.c ---- */

/*
 * The share of workgroups that go element by element through the last whole
 * tile of K, because its rows are incomplete; of bytes in rows of odd length
 * all go so through all their tiles.
 */
double tune_masked_share(const struct tune_problem *p,
			 const struct gemm_config *c);
/*
 * What a product takes at least, whatever its tiles: its arithmetic, and each
 * byte of A, B and C once from where all are warm.
 */
double tune_least_time(const struct tune_problem *p, const struct cost_model *m,
		       double clock_hz);
/* The FLOP per second of all units that compute such a product. */
double tune_peak_flops(const struct tune_problem *p, const struct cost_model *m,
		       double clock_hz);
/* Fills bound_s, estimate_s and limit. */
void tune_roofline(const struct tune_problem *p, const struct cost_model *m,
		   const struct tune_needs *needs, struct tune_candidate *c);

/* -------------------------------------------------------- simulate.c ---- */

struct tune_simulation {
	double time_s, clock_hz, cycles;
	int at_once;	    /* workgroups of a WGP, of the first kernel */
	uint64_t unknown;   /* accesses whose addresses are not known */
	char limit[64];	    /* what is busiest, and by how much */
	struct buf explain; /* lines for people, if asked for */
};
/*
 * Times `code` for a problem on the simulated GPU.  Loops of more than some
 * steps are simulated in part and go on in their pace.  Thread-safe.
 */
bool tune_simulate(const struct tune_problem *p, const struct gemm_config *c,
		   const struct gemm_code *code, const struct cost_model *m,
		   bool explain, struct tune_simulation *out, struct err *e);
void tune_simulation_fini(struct tune_simulation *p);

/* --------------------------------------------------------- foreign.c ---- */

struct launch_plan; /* isa/launch/launch.h */

/* A launch that computes a product, whose first buffers are A, B and C. */
struct tune_foreign {
	struct launch_plan *plan; /* that launch_check() passed */
	int a, b, c;		  /* numbers of the arguments */
};
/* false and *e: the operands are not those of the product. */
bool tune_foreign_init(struct tune_foreign *f, struct launch_plan *l,
		       const struct tune_problem *p, struct err *e);
/* As tune_simulate(), for warm caches. */
bool tune_foreign_simulate(const struct tune_problem *p,
			   const struct tune_foreign *f,
			   const struct cost_model *m,
			   struct tune_simulation *out, struct err *e);
struct tune_verdict {
	bool checked, right;
	uint64_t compared; /* elements */
	char detail[sizeof(((struct err *)0)->msg)]; /* the first wrong one;
						      * why no check */
};
/* Run once on the device with normal operands, and compared as ours are. */
bool tune_foreign_check(const struct tune_problem *p,
			const struct tune_foreign *f, const char *device,
			uint64_t seed, struct tune_verdict *out, struct err *e);

/* ------------------------------------------------------------ fill.c ---- */

/*
 * What operands hold.  Power, and with it the clock, depends on it: zeros run
 * faster than data.  Normal (mean 0, deviation 1) is what to measure with.
 */
enum tune_fill { TUNE_NORMAL, TUNE_UNIFORM, TUNE_ZERO, TUNE_CONSTANT };
bool tune_fill_parse(const char *s, enum tune_fill *f, struct err *e);

/* ----------------------------------------------------------- chain.c ---- */

/*
 * One product on a device with a clock, launch behind launch, as programs run
 * it: what is measured is the time from the start of one to that of the next,
 * by the device's stamps, and so has the launch in it.  No launch waits for the
 * host, and the card's power is what such a program takes.
 */
struct tune_chain {
	const struct tune_problem *problem;
	const struct gemm_config *config;
	const struct gemm_code *code;
	uint64_t seed;
	const _Atomic int *stop;
};
enum { TUNE_CHAIN_SAMPLES = 15 };
struct tune_chain_time {
	double sample[TUNE_CHAIN_SAMPLES]; /* [n] seconds */
	size_t n;
	int launches; /* of a sample */
	bool right;   /* compared with the reference, before it was timed */
	char detail[200];
	struct probe_reading before, after;
};
/* false and *e: no answer, or the device has no clock. */
bool tune_chain_time(const struct tune_chain *c, struct kfd_dev *dev,
		     struct tune_chain_time *out, struct err *e);

/* ---------------------------------------------------- bench_device.c ---- */

/*
 * A device whose clock is a simulator's: it opens the device, and is told what
 * will run before each launch.
 */
struct tune_clock {
	bool (*open)(void *ctx, struct kfd_dev **dev, struct err *e);
	void (*about)(void *ctx, const struct kfd_kernel *kernel,
		      size_t code_bytes);
	/* Could the last launch be timed?  Else *e says why not. */
	bool (*check)(void *ctx, struct err *e);
	void *ctx;
};

/* ---------------------------------------------------------- search.c ---- */

struct tune_budget {
	const char *name;
	uint32_t simulate; /* configurations of a problem, at most */
	uint32_t verify;   /* of them checked: the winner and runners-up */
	uint32_t measure;  /* of those, on a device that has a clock */
	double seconds;	   /* for everything; 0: no limit */
	uint32_t draw;	   /* finalists, simulated with other costs, too;
			    * below 2: none */
};
/* "quick", "standard", "exhaustive", or seconds. */
bool tune_budget_parse(const char *s, struct tune_budget *b, struct err *e);

/* What a search has just learnt. */
struct tune_seen {
	uint64_t done, total; /* configurations */
	const struct tune_problem *problem;
	const struct gemm_config *config;
	double time_s; /* NAN: it was not timed */
};

struct tune_opts {
	const char *db, *device, *operands;
	struct tune_budget budget;
	unsigned jobs; /* 0: a thread per processor */
	uint64_t seed;
	bool quiet;
	const struct cost_model *costs; /* of the chip that is tuned for */
	const _Atomic int *stop; /* set: end soon, keep what there is */
	/* NULL, or told of each, by the thread that searches. */
	void (*see)(void *ctx, const struct tune_seen *x);
	void *see_ctx;
	int argc;
	char *const *argv;
	/*
	 * NULL, or a shard's: then each product is searched and checked by
	 * itself, as if there were no others, and `work` names them all.
	 */
	const struct res_shard *shard;
	const char *work;
	/* Of measurements, where the device has a clock: */
	uint64_t samples; /* 0: as many as the protocol wants at least */
	const struct tune_clock *clock; /* instead of `device`; NULL: none */
	/* Where tune_select() takes objects from, or NULL. */
	struct object_cache *objects;
	/* NULL: gemm_compile(); for tests, which compile wrong kernels. */
	bool (*compile)(const struct gemm_op *op, const struct gemm_config *c,
			const struct cc_options *o, struct gemm_code *out,
			struct err *e);
};

/*
 * How a configuration stands with the draws of the costs (cost_draw()), beside
 * the other finalists.  draws 0: it was not drawn, and the rest is NAN.
 */
struct tune_standing {
	int draws, won; /* in how many it is the fastest */
	double worst;	/* its time over the fastest's, where that is most */
	double least, most; /* its time over the winner's; NAN: it is that */
};

/* What came out for one problem. */
struct tune_outcome {
	struct tune_problem problem;
	bool found, stored; /* stored: taken from the database as it is */
	char config[TUNE_TEXT], second[TUNE_TEXT], class[TUNE_TEXT];
	char limit[64];
	double time_s, lo_s, hi_s, second_s, bound_s, clock_hz;
	int64_t samples;
	enum res_origin origin;
	uint32_t space, rejected, timed, failed; /* configurations */
	char why[160]; /* not found: why */
	struct tune_standing standing, second_standing;
	/* The fastest with the costs as they are; "": it is the winner. */
	char fastest[TUNE_TEXT];
	double fastest_s;
};
/*
 * Search for all problems; out[l->n] is filled.  Every decision is in the
 * database when this returns, whatever it returns; what is decided there is
 * not done again.  Interrupted by `stop`: true, with what there is.
 */
bool tune_search(const struct tune_opts *o, const struct tune_problems *l,
		 struct tune_outcome *out, struct err *e);

/* --------------------------------------------------------- store.c ---- */

struct tune_store {
	struct res_db *db;
	int64_t run;
	char chip[16];
	char costs[20], code[RES_IDENTITY]; /* digests of the keys */
};
/* Opens the database and a run; `inputs` as in struct res_start. */
bool tune_store_open(struct tune_store *s, const struct tune_opts *o,
		     struct err *e);
/* Ends the run; when not good, *e is the reason. */
bool tune_store_close(struct tune_store *s, bool good, bool interrupted,
		      struct err *e);
/* The key of a problem; `op` holds its text. */
struct res_tune_key tune_store_key(const struct tune_store *s,
				   const struct tune_problem *p,
				   enum res_origin origin,
				   const char *operands, char op[TUNE_TEXT]);
/*
 * A speed as a result of area "tune", or "gemm" for a winner, with its verdict
 * (results/db/results.h): what plots and gates read.
 */
struct tune_speed {
	const struct tune_problem *problem;
	const struct gemm_config *config;
	bool winner; /* checked, and right */
	enum res_origin origin;
	double time_s, lo_s, hi_s, clock_hz;
	int64_t n;
};
bool tune_store_speed(struct tune_store *s, const struct tune_speed *x,
		      struct err *e);
/* Of all kernels of a product, in hex: the machine code that a check is of. */
void tune_object_digest(const struct gemm_code *code, char out[20]);

/* -------------------------------------------------------- select.c ---- */

/*
 * What an engine launches.  In this order:
 *	exact	 the winner of this very problem, caches and all; measured
 *		 before simulated
 *	nearest	 the winner of the same operation that is least far,
 *		 |log2(m/m')| + |log2(n/n')| + |log2(k/k')| <= 2, and one
 *		 more for another state of the caches: the same sizes warm
 *		 are as good as twice the rows cold
 *	model	 the best of the space by the analytic estimate
 * Whatever it is, it is compiled, and taken only if just this machine code
 * passed the check of the problem's class and never failed one.  With a device
 * in the options an unknown one is checked then and there; without, it is
 * passed over.
 */
enum tune_how { TUNE_EXACT, TUNE_NEAREST, TUNE_MODEL };

struct tune_choice {
	enum tune_how how;
	struct gemm_config config;
	struct gemm_code code;
	double time_s;	/* as far as it is known; NAN */
	char why[240];	/* for people: which row, which rule */
};
void tune_choice_fini(struct tune_choice *c);

/*
 * How far apart the rule "nearest" calls two problems of the same operation;
 * INFINITY where only one has a batch.
 */
#define TUNE_NEAREST_FAR 2.0
double tune_distance(const struct tune_problem *p,
		     const struct res_tune_key *k);

struct tune_selector;
/* Uses db, device (NULL: no checks), costs, seed, objects, compile of `o`. */
struct tune_selector *tune_selector_open(const struct tune_opts *o,
					 struct err *e);
void tune_selector_close(struct tune_selector *s);
/*
 * End with tune_choice_fini(); on failure `out` has no code.  ERR_UNSUPPORTED
 * if nothing is proven right.
 */
bool tune_select(struct tune_selector *s, const struct tune_problem *p,
		 struct tune_choice *out, struct err *e);

#endif
