/*
 * backend_int - what the passes share: touched registers, live intervals,
 * coalesced registers, the scheduling DAG.
 */
#ifndef T0_COMPILER_BACKEND_INT_H
#define T0_COMPILER_BACKEND_INT_H

#include "compiler/backend/backend.h"

/* ----------------------------------------------------------- backend.c ---- */

/* Hardware registers that an instruction touches, implicit ones included. */
struct mir_touch {
	struct {
		uint8_t file; /* enum mir_file; VCC, EXEC and M0 are scalars */
		bool read, write;
		uint16_t reg, n;
	} t[MIR_MAX_OPND + 3];
	int n;
};
/* After allocation. */
void mir_touches(const struct mir_func *m, const struct mir_inst *i,
		 struct mir_touch *t);
/* Does one of them write what the other touches? */
bool mir_touches_conflict(const struct mir_touch *a, const struct mir_touch *b);
int mir_phys(const struct mir_func *m, const struct mir_opnd *o);

/*
 * Forward dataflow: a state is `size` bytes, ages of what is under way, which
 * are MIR_FAR where there is nothing; where paths meet the younger counts.
 * walk() takes a state through a block, until nothing changes and then once
 * more with `insert`.
 */
enum { MIR_FAR = 255 };
typedef void mir_walk_fn(struct mir_func *m, struct mir_block *b, void *state,
			 bool insert);
void mir_flow_ages(struct mir_func *m, size_t size, mir_walk_fn *walk);

/* --------------------------------------------------------- hazards10.c ---- */

/* The part of mir_resolve_hazards() that gfx10_1 alone needs. */
void mir_resolve_gfx10(struct mir_func *m);

/* ----------------------------------------------------- live_interval.c ---- */

/*
 * Time is counted in half steps: instruction p reads its sources at 2p and
 * writes its results at 2p + 1 (at 2p if MIR_EARLY).  A live interval is a list
 * of half-open ranges of such times, kept for each 32-bit register of a virtual
 * register by itself.
 */
struct live_range {
	uint32_t start, end;
};
/* What two ranges have in common; start >= end: nothing. */
static inline struct live_range live_range_common(struct live_range a,
						  struct live_range b)
{
	return (struct live_range){ a.start > b.start ? a.start : b.start,
				    a.end < b.end ? a.end : b.end };
}

struct live_interval {
	struct live_range *r; /* ascending, apart */
	uint32_t n, cap;
};

/* Live sets of blocks; numbers the function first. */
void mir_compute_live(struct mir_func *m);
/* Is a dword of register `v` in a live set? */
bool live_has_register(const struct mir_func *m, const uint64_t *set,
		       uint32_t v);
/* Of all dwords, [m->n_dwords], after mir_compute_live(). */
struct live_interval *live_intervals(struct mir_func *m);
void live_intervals_free(struct live_interval *l, uint32_t n);
/* `except`: a position at which they may overlap, 0 = none. */
bool live_interval_overlaps(const struct live_interval *a,
			    const struct live_interval *b, uint32_t except);
/* *a becomes the union of both. */
void live_interval_join(struct live_interval *a, const struct live_interval *b);

/* ---------------------------------------------------------- coalesce.c ---- */

/* Which register, from where on, a virtual register has become part of. */
struct merged_into {
	uint32_t reg; /* 0: none */
	uint8_t at;
};
struct coalescer {
	struct mir_func *m;
	struct live_interval *live; /* [dwords] of what has been joined */
	struct merged_into *into;   /* [n_vregs] */
};
struct mir_opnd coalescer_resolve(const struct coalescer *j, struct mir_opnd o);

/* ----------------------------------------------------- coalesce_lane.c ---- */

/*
 * Then registers of disjoint lanes: one that lanes fill one by one and the
 * values that they fill it with.
 */
void coalesce_lanes(struct coalescer *j);

/* ------------------------------------------------------------- spill.c ---- */

/* Rewrites the function so that the marked registers live in memory. */
void mir_spill(struct mir_func *m, const bool *which);

/* --------------------------------------------------------------- dag.c ---- */

/* Instructions that stay together. */
struct sched_node {
	struct mir_inst *first, *last;
	uint32_t index; /* in the source's order */
	uint32_t *succ; /* [n_succ] nodes */
	uint16_t *lat;	/* [n_succ] cycles until they may issue */
	uint32_t n_succ, cap_succ;
	uint32_t n_preds; /* not yet scheduled */
	uint32_t height;  /* cycles to the end of the block */
	uint32_t ready;	  /* cycle from which its operands are there */
};

struct sched_dag {
	struct mir_func *m;
	const struct cost_model *costs;
	struct sched_node *node; /* [n] */
	uint32_t n;
};

/* The part [first, last] of a block; nodes and edges, then heights. */
void sched_dag_build(struct sched_dag *g, struct mir_inst *first,
		     struct mir_inst *last);
void sched_dag_free(struct sched_dag *g);
/* Cycles for which an instruction keeps its pipe. */
uint32_t sched_issue_cycles(const struct sched_dag *g,
			    const struct mir_inst *i);

#endif
