/*
 * examine - how good the simulator is: its predictions against what others
 * measured on hardware.
 *
 * Measured are instruction traces (vector.c), matrix products whose kernels are
 * rebuilt from their descriptions (others*.c), and plain loops (loops.c);
 * validate.c runs all of them and sums up.
 *
 * Some parameters were chosen to meet measurements; compiler/cost/cost.def says
 * which, and on which kernels and sources (FIT).  A kernel or a source is
 * therefore predicted with parameters that are fitted again without it (fit.c):
 * what is wrong then is the error.  Samples of one kernel are never on both
 * sides.
 */
#ifndef T0_SIM_EXAMINE_H
#define T0_SIM_EXAMINE_H

#include "compiler/sim/sim.h"

/* ---------------------------------------------------------- vector.c ---- */

/*
 * Recorded instruction traces of real hardware as wave sources, and how well
 * the simulator predicts them.
 *
 * A trace is one JSON object per line: `code` (hex), `kernel`, `sha` (its id),
 * `gpu_clk_ghz` or null, and `events`: [cycle, "I", wave, offset, kind] when an
 * instruction issues, and [cycle, "END", wave, ...] when the wave in that slot
 * ends, so that the slot's next wave is another one.  Other events are not
 * read.  The path that waves took, their first issues and how many of them meet
 * at barriers are inputs; every later issue is predicted.  Offsets that a trace
 * leaves out (s_delay_alu) are filled in from the code.
 *
 * Where the cycle jumps by more than VECTOR_JUMP the recorder lost its place;
 * what follows is a segment of its own, aligned at its first instruction.
 */
#define VECTOR_JUMP	 (1u << 20)
#define VECTOR_WAVES_MAX 4096

struct vector_event {
	uint64_t cycle; /* traced, from the first event on */
	uint64_t guess; /* predicted, on the same scale */
	uint32_t off;
	int wave, segment;
	bool seen;
};

struct vector {
	char kernel[64], id[64];
	double clock_mhz; /* 0: not known */
	uint8_t *code;
	size_t code_bytes;
	struct vector_event *event; /* [n], in the order of the trace */
	int n, n_waves, n_segments;
	int group_waves; /* of a workgroup; the last one may have fewer */
	/* Of each wave: the offsets it executes, and their events or -1. */
	struct vector_path {
		uint32_t *off;
		int *event;
		int n, cap;
		uint64_t start;
	} * path;	   /* [n_waves] */
	/* From the first issue to the last of all waves, cycles. */
	uint64_t duration, predicted;
	/*
	 * Of the distances from issue to issue of a wave, within a segment: the
	 * cycles by which they are wrong, of all their cycles, and the share
	 * that is predicted within a cycle.
	 */
	double issue_error, within;
	double rank; /* Spearman's, guess against cycle */
};

/* One line of a file; `where` is for messages.  End with vector_fini(). */
bool vector_parse(struct vector *v, const char *json, size_t len,
		  const char *where, struct err *e);
void vector_fini(struct vector *v);
/*
 * Sets v->group_waves: how many waves, one started after the other, are of a
 * workgroup, as far as one SIMD shows.  None of them leaves a barrier before
 * all have come to it; the largest number up to 16 of which that is true
 * everywhere, 1 without barriers.  By vector_parse().
 */
void vector_find_groups(struct vector *v);

/* Simulate it with these costs: fills what is predicted or compared. */
bool vector_predict(struct vector *v, const struct cost_model *m,
		    struct err *e);

/* ------------------------------------------------------------ rank.c ---- */

/* Spearman's rank correlation of n pairs, ties shared; NaN without spread. */
double sim_rank(const double *x, const double *y, size_t n);
/* qsort() of doubles, ascending. */
int sim_compare_numbers(const void *a, const void *b);
/*
 * Where 80 % of what comes next lie, by n numbers that came before (sorted in
 * place): from the tenth part of them to the ninth, of few numbers their ends,
 * of which one more lies outside with a chance of 2 / (n + 1).  NaN of none.
 */
void sim_spread(double *v, size_t n, double *least, double *most);

/* ------------------------------------------------------------- mca.c ---- */

/*
 * Cycles that llvm-mca-19 predicts for what the first wave of a trace executed;
 * branches are left out, for it does not follow them.  NaN without the program,
 * or when it refuses.
 */
double mca_cycles(const struct vector *v);

/* ---------------------------------------------------------- others.c ---- */

/*
 * Matrix products of others, written from how their authors describe them, to
 * predict published figures whose code is not at hand.
 *
 * What is generated is the whole kernel as gfx1100 machine code: loads of a
 * tile into registers and from there into LDS, fragments back from LDS, matrix
 * products, pointers, barriers, and the stores of C, with an affine description
 * of every address (compiler/sim/sim.h).  A and B are bf16, C is f32.
 *
 * Two families:
 *   OTHERS_TRITON  four waves in a square, A row-major and B with N contig.,
 *		  so that fragments of B are gathered by halves; one LDS buffer,
 *		  the next tile waits in registers; two barriers
 *   OTHERS_T0	  a wave for 32 rows and the whole width, both operands with K
 *		  contiguous, two LDS buffers, one barrier, fragments of B one
 *		  after the other
 */
enum others_family { OTHERS_TRITON, OTHERS_T0 };

struct others_tile {
	enum others_family family;
	int m, n, k; /* of a workgroup; multiples of 16 */
	int vgprs;   /* of a wave, 0: what the code uses */
	bool cu_mode;
};

/* A product C[m][n] = sum over k; in `split` parts of k. */
struct others_shape {
	int m, n, k, split;
};

struct others_code {
	struct buf code, affine;
	int waves, vgprs;
	uint32_t lds_bytes;
	int wmmas; /* of a wave and step */
};

/* What a prediction consists of. */
struct others_guess {
	double gpu_s; /* on the GPU alone */
	double cycles;
	double clock_mhz;
	int groups, at_once;
	double rounds;
};

/*
 * The kernel, whose loop makes `trips` + 1 rounds, for `groups` workgroups of
 * this shape.  false and *e for a tile that cannot be.
 */
bool others_generate(struct others_code *g, const struct others_tile *t,
		     const struct others_shape *s, int trips, int groups,
		     struct err *e);
void others_fini(struct others_code *g);

/* -------------------------------------------------- others_predict.c ---- */

/* Seconds of each round in which its author's card had nothing to do. */
double others_idle(const struct others_tile *t, const struct cost_model *m);
/* Simulates what a WGP gets of it, and the tail. */
bool others_predict(const struct others_tile *t, const struct others_shape *s,
		    const struct cost_model *m, struct others_guess *out,
		    struct err *e);

/* ----------------------------------------------------- others_rows.c ---- */

/*
 * Published figures of matrix products whose kernels can be rebuilt, and what
 * the simulator says about them.
 *
 * Read are CSV files with a header, columns by name in any order:
 *   source_doc, system, M, N, K, tile_m, tile_n, tile_k, split_k, wg_mode,
 *   other, tflops		a row per tile; `other` has "reliability=..."
 *   source, gpu, kernel, M, N, K, config, metric, value, unit, notes
 *
 * Rows are used by class, all as times:
 *   gemm	 random operands and a known tile ("reliability=good"), and
 *		 tiles of 16 in K of "medium" ones
 *   pairs	 one configuration by one author in CU and in WGP mode, whatever
 *		 its reliability: the ratio of the two times
 *   split	 split-K rows that are "medium" or better, without the
 *		 reduction, which their authors left out
 *   tiles	 the other "medium" rows with a tile: constant or zero operands,
 *		 so the card's clock was higher than assumed
 * Of the second kind: the product's time, where kernel or config names a tile
 * MxNxK of Triton on this card, as gemm.
 */
enum others_class {
	OTHERS_GEMM,
	OTHERS_PAIRS,
	OTHERS_SPLIT,
	OTHERS_TILES
};

struct others_row {
	/* `source` is the same for a measurement that both kinds hold. */
	char system[48], source[128], key[512];
	int m, n, k, split_k;
	struct others_tile tile;
	enum others_class class;
	bool low;	    /* of use in pairs only */
	double time_s, predicted_s; /* pairs: of WGP mode over CU mode */
	struct others_guess guess;
};

/*
 * Calls fn for every row of the file that can be predicted.  Rows that cannot
 * are counted on stderr, unless `quiet`.  `stop`: struct validate's.
 */
bool others_rows_run(const char *path, const struct cost_model *m, bool quiet,
		     const _Atomic int *stop,
		     void (*fn)(void *ctx, const struct others_row *row),
		     void *ctx, struct err *e);
/*
 * predicted_s of a row with other costs of launching, seconds; what it takes on
 * the GPU is row->guess's.
 */
double others_row_time(const struct others_row *row,
		       const struct cost_model *m);

/* ------------------------------------------------------------ loops.c ---- */

/*
 * A published rate of a plain loop, operations a second
 * (compiler/sim/examine/loops.def), or the seconds of a kernel (code_rows.c).
 */
struct loop_row {
	const char *name;
	char source[128];
	double reference, predicted;
};
/* Those of a file of the second kind; of others there are none. */
bool loop_rows_run(const char *path, const struct cost_model *m,
		   void (*fn)(void *ctx, const struct loop_row *row), void *ctx,
		   struct err *e);

/* -------------------------------------------------------- code_rows.c ---- */

/*
 * Times of kernels whose objects lie beside the file of the third kind, which
 * has a column `code` (t0-sim(1)).  *found: it is of that kind; nothing else is
 * done where it is not.
 */
bool code_rows_run(const char *path, const struct cost_model *m,
		   void (*fn)(void *ctx, const struct loop_row *row), void *ctx,
		   bool *found, struct err *e);

/* -------------------------------------------------------------- fit.c ---- */

/* Measurements in groups that are left out whole: kernels, or sources. */
struct fit_data {
	const char *const *group; /* [n] names, as in cost.def's FIT */
	int n;
	/* How wrong these costs are for a group, 0: not at all. */
	bool (*loss)(void *ctx, int group, enum cost_fit_by by,
		     const struct cost_model *m, double *loss, struct err *e);
	void *ctx;
	const _Atomic int *stop; /* as in struct validate */
};

/* Is any parameter fitted on this kernel or source? */
bool fit_knows(const char *group);
/*
 * Fit parameters (FIT of cost.def) again: all that any group of *d is for, or,
 * where `without` is not -1, those that were fitted on that group, to the other
 * groups.  A parameter begins at what it is without measurements and moves by
 * halving steps, in turn with the others, to the least mean loss of its own
 * groups; it stays at that beginning where none of them is there.  The rest of
 * *m stays as it is.  Deterministic.
 */
bool fit_costs(struct cost_model *m, const struct fit_data *d, int without,
	       struct err *e);

/* -------------------------------------------------------- validate.c ---- */

struct validate {
	const struct cli_list *traces; /* files of JSON lines, recorded */
	const struct cli_list *perf;   /* CSV files of published rows */
	const char *db;	    /* where to store area "predict"; NULL: nowhere */
	const char *plot;   /* picture, or NULL; by draw() */
	bool (*draw)(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);
	bool mca, rows, quiet;
	bool fits; /* also fit to everything, and print all fits */
	bool ranges; /* print how good ranges of times are */
	bool order;  /* print which products are in their order */
	const _Atomic int *stop; /* set: ends with ERR_STOPPED; or NULL */
	enum table_format format;
	FILE *out;
	const char *tool;
};

bool validate_run(const struct validate *v, const struct cost_model *m,
		  struct err *e);

#endif
