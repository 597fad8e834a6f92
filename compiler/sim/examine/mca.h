/* mca.h - llvm-mca's opinion of straight-line code, where it is installed. */
#ifndef T0_SIM_MCA_H
#define T0_SIM_MCA_H

#include "compiler/sim/examine/vector.h"

/* ------------------------------------------------------------- mca.c ---- */

/*
 * Cycles that llvm-mca-19 predicts for what the first wave of a trace executed;
 * branches are left out, for it does not follow them.  NaN without the program,
 * or when it refuses.
 */
double mca_cycles(const struct vector *v);

#endif
