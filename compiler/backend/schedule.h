/*
 * schedule - the order of instructions within blocks.
 *
 * Before allocation, blocks are list-scheduled from the top: of what could
 * issue now, what has the longest way to the block's end goes first (latencies
 * and pipes from the cost model), so loads move up and their uses down; but no
 * further than the registers allow that the wanted occupancy leaves.
 */
#ifndef T0_COMPILER_SCHEDULE_H
#define T0_COMPILER_SCHEDULE_H

#include "compiler/cost/cost.h"
#include "compiler/mir/mir.h"

struct sched_options {
	const struct cost_model *costs;
	uint32_t max_vgprs; /* what a lane may have */
	uint32_t waves;	    /* occupancy to aim at, 0: what the code allows */
};

void mir_schedule(struct mir_func *m, const struct sched_options *o);

/* ----------------------------------------------------------- depend.c ---- */

/* Instructions that stay together. */
struct node {
	struct mir_inst *first, *last;
	uint32_t index; /* in the source's order */
	uint32_t *succ; /* [n_succ] nodes */
	uint16_t *lat;	/* [n_succ] cycles until they may issue */
	uint32_t n_succ, cap_succ;
	uint32_t n_preds; /* not yet scheduled */
	uint32_t height;  /* cycles to the end of the block */
	uint32_t ready;	  /* cycle from which its operands are there */
	bool done;
};

struct graph {
	struct mir_func *m;
	const struct cost_model *costs;
	struct node *node; /* [n] */
	uint32_t n;
};

/* The part [first, last] of a block; nodes and edges, then heights. */
void graph_build(struct graph *g, struct mir_inst *first,
		 struct mir_inst *last);
void graph_free(struct graph *g);
/* Cycles for which an instruction keeps its pipe. */
uint32_t graph_issue(const struct graph *g, const struct mir_inst *i);

#endif
