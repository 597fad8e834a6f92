/*
 * vector - recorded instruction traces of real hardware as wave sources, and
 * how well the simulator predicts them.
 *
 * A trace is one JSON object per line: `code` (hex), `kernel`, `sha` (its id),
 * `gpu_clk_ghz` or null, and `events`: [cycle, "I", wave, offset, kind] when an
 * instruction issues, and [cycle, "END", wave, ...] when the wave in that slot
 * ends, so that the slot's next wave is another one.  Other events are not
 * read.  The path that waves took and their first issues are inputs; every
 * later issue is predicted.  Offsets that a trace leaves out (s_delay_alu) are
 * filled in from the code.
 *
 * Where the cycle jumps by more than VECTOR_JUMP the recorder lost its place;
 * what follows is a segment of its own, aligned at its first instruction.
 */
#ifndef T0_SIM_VECTOR_H
#define T0_SIM_VECTOR_H

#include "compiler/sim/sim.h"

#define VECTOR_JUMP (1u << 20)
#define VECTOR_WAVES_MAX 4096

struct vector_event {
	uint64_t cycle;	   /* traced, from the first event on */
	uint64_t guess;	   /* predicted, on the same scale */
	uint32_t off;
	int wave, segment;
	bool seen;
};

struct vector {
	char kernel[64], id[64];
	bool judges;	   /* compiler/sim/examine/split.def */
	double clock_mhz;  /* 0: not known */
	uint8_t *code;
	size_t code_bytes;
	struct vector_event *event; /* [n], in the order of the trace */
	int n, n_waves, n_segments;
	/* Of each wave: the offsets it executes, and their events or -1. */
	struct vector_path {
		uint32_t *off;
		int *event;
		int n, cap;
		uint64_t start;
	} *path; /* [n_waves] */
	uint64_t duration; /* cycles, of all segments */
	double error;	   /* median of |guess - cycle| */
	double rank;	   /* Spearman's, guess against cycle */
	double within;	   /* share of the distances between a wave's issues
			    * that are predicted within a cycle */
};

/* ---------------------------------------------------------- vector.c ---- */

/* One line of a file; `where` is for messages.  End with vector_fini(). */
bool vector_parse(struct vector *v, const char *json, size_t len,
		  const char *where, struct err *e);
void vector_fini(struct vector *v);

/* Simulate it with these costs and fill guesses, error and rank. */
bool vector_predict(struct vector *v, const struct cost_model *m,
		    struct err *e);

/* ------------------------------------------------------------ rank.c ---- */

/* Does the row with this key judge? */
bool sim_split_judges(const char *key);

/* Spearman's rank correlation of n pairs, ties shared; NaN without spread. */
double sim_rank(const double *x, const double *y, size_t n);

#endif
