/*
 * compiler/cost/cost_int.h - between the files of costs.
 */
#ifndef T0_COMPILER_COST_INT_H
#define T0_COMPILER_COST_INT_H

#include "compiler/cost/cost.h"

/* ------------------------------------------------------ cost_chip.c ---- */

/* Fills base[], sources, and the instructions known by themselves. */
void cost_take_chip(struct cost_model *m);

#endif
