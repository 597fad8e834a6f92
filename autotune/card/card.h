/*
 * autotune/card - the first day with a card: the manual.
 *
 * A stranger runs `make card` (scripts/card): a list of the tools' commands,
 * whose rows come back as one file.  This room knows what that list measures
 * (*points*, card.def), which products it times (design.def), what the simulator
 * makes of all of it with given costs, and the way back: costs from a file.
 *
 *	struct card_data data = { 0 };
 *	struct card_fit fit;
 *
 *	card_read(&data, "card.jsonl", &e) && card_fit(&fit, &data, &how, &e)
 *	... fit.row[COST_L2_LAT].value, .lo, .hi, .state ...
 *
 * The fit has three steps.  Points that are mostly about one parameter each move
 * it until the simulated probe, which is the very kernel that was measured,
 * gives what the card gave (observe.c).  Clock and launch follow from their own
 * rows in closed form (clock.c).  What is left and nobody knows well (confidence
 * M or L of cost.def) is found from the products, together, as far as they say
 * more about it than was known before (rest.c).
 */
#ifndef T0_AUTOTUNE_CARD_H
#define T0_AUTOTUNE_CARD_H

#include "autotune/tuner/tune.h"
#include "compiler/cost/cost.h"
#include "results/db/results.h"

/* ---------------------------------------------------------- points.c ---- */

/* How a point moves with its parameter. */
enum card_rule {
	CARD_ADD,   /* cycles, or nanoseconds: one more is one more */
	CARD_RATIO, /* rates: twice is twice */
	CARD_CYCLE, /* rates per cycle, measured per second */
	CARD_INVERSE, /* cycles of what is done so much at a time */
	CARD_LOAD,  /* of clock.c */
};

/* A result in the database, and the parameter that it is mostly about. */
struct card_point {
	enum cost_row row;
	enum card_rule rule;
	const char *area, *name, *metric;
	const char *where; /* of its params: "key=value key=value", or "" */
};
enum { CARD_POINTS_MAX = 160, CARD_GEMMS_MAX = 64 };

/* All of them: of instructions, and the rest of card.def. */
struct card_list {
	struct card_point v[CARD_POINTS_MAX];
	int n;
	int of[COST_ROW_COUNT]; /* the number of a row's point; -1: none */
};
void card_list_init(struct card_list *l);

/* What was measured, or simulated, of a point or a product; n 0: nothing. */
struct card_value {
	double value, lo, hi, clock_hz;
	int64_t n;
};
/* Zero-initialise. */
struct card_data {
	struct card_value point[CARD_POINTS_MAX];
	/* Seconds from one launch to the next, of a chain of them. */
	struct card_value gemm[CARD_GEMMS_MAX];
	char object[CARD_GEMMS_MAX][20]; /* digest of its machine code */
	/* Shader clock by the share of time under load. */
	struct card_load {
		int pause_percent;
		struct card_value clock, share;
	} load[16];
	int n_loads;
	enum res_origin origin; /* of all of them; the first one's */
	char device[96];
	int mixed;		/* rows of another origin, passed over */
	int failed;		/* rows whose values were wrong, passed over */
};

/* ------------------------------------------------------------ read.c ---- */

/* An export (t0-results export) or a database. */
bool card_read(struct card_data *d, const char *path, struct err *e);
/* The rows of an open database. */
bool card_read_db(struct card_data *d, struct res_db *db, struct err *e);

/* --------------------------------------------------------- observe.c ---- */

/*
 * What a card of these costs would have measured: the probes run on the soft
 * device under the simulator, one sample each.  `which`: only points for which
 * it is true, [struct card_list.n]; NULL: all.
 */
bool card_observe(const struct cost_model *m, const bool *which,
		  struct card_data *out, const _Atomic int *stop,
		  struct err *e);

/* ----------------------------------------------------------- clock.c ---- */

/* The same for the clock under load and the time from packet to packet. */
void card_observe_clock(const struct cost_model *m, struct card_data *out);
bool card_observe_launch(const struct cost_model *m, struct card_data *out,
			 struct err *e);
/* The clock's costs from what was measured; false: too little was. */
bool card_fit_clock(struct cost_model *m, const struct card_data *d);

/* -------------------------------------------------------- products.c ---- */

/* A product of the kit: design.def. */
struct card_gemm {
	const char *dtype; /* as t0-tune's --dtype */
	uint32_t m, n, k;
	const char *config; /* compiler/gemm/gemm.h, gemm_config_parse() */
};
const struct card_gemm *card_gemms(int *n);

/* One of them, compiled with cost.def's costs whatever was measured since. */
struct card_code {
	struct tune_problem problem;
	struct gemm_config config;
	struct gemm_code code;
	char object[20];
};
bool card_compile(const struct card_gemm *g, struct card_code *out,
		  struct err *e);
void card_code_fini(struct card_code *c);
/* From launch to launch in a chain, simulated. */
bool card_simulate(const struct card_code *c, const struct cost_model *m,
		   double *seconds, struct err *e);

/* ---------------------------------------------------------- design.c ---- */

/*
 * Choose products from which the parameters that no point tells can be told
 * apart: of the best configurations of each size, one after the other that tells
 * most about what those before it left open.  Rows of design.def on `out`.
 */
struct card_fit_how; /* its threads, `stop` and `quiet` */
bool card_design(FILE *out, int how_many, const struct card_fit_how *how,
		 struct err *e);

/* ------------------------------------------------------------- fit.c ---- */

enum card_state {
	CARD_STATED,   /* not looked for: known well enough, or a size */
	CARD_FOUND,    /* the data say it */
	CARD_UNKNOWN,  /* the data do not; its range is what it was */
	CARD_ODD,      /* measured, but no value of it makes the simulator so */
};
struct card_fit_row {
	enum card_state state;
	double value, lo, hi; /* 95 % */
	double measured, simulated; /* of its point; NaN */
	double effect; /* unknown ones: on no product more than this share */
};
struct card_fit_how {
	int products; /* of the list, at most; 0: all */
	bool rest;    /* look for what only products tell, too */
	unsigned jobs;
	const _Atomic int *stop;
	bool quiet;
};
struct card_fit {
	struct card_fit_row row[COST_ROW_COUNT];
	struct cost_model costs; /* with all that was found */
	double gemm[CARD_GEMMS_MAX], before[CARD_GEMMS_MAX]; /* simulated; NaN */
	double residual; /* median error of the products; NaN: none measured */
	int other_code;	 /* products measured with other machine code */
};
/* End with card_fit_fini(), also after an error. */
bool card_fit(struct card_fit *f, const struct card_data *d,
	      const struct card_fit_how *how, struct err *e);
void card_fit_fini(struct card_fit *f);

/* ------------------------------------------------------------ rest.c ---- */

/* The parameters that no point tells and that are not known well, [*n]. */
const enum cost_row *card_rest(int *n);
/* The range that one of them may have. */
void card_range(enum cost_row row, double *least, double *most);
/* As the simulator takes it: cycles and numbers of things are whole. */
double card_round(enum cost_row row, double value);

#endif
