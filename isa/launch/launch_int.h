/*
 * isa/launch/launch_int.h - between the files of the room.
 */
#ifndef T0_ISA_LAUNCH_INT_H
#define T0_ISA_LAUNCH_INT_H

#include "isa/launch/launch.h"

/* ----------------------------------------------------------- triton.c ---- */

/*
 * Triton's JSON beside l->path, into l->triton, if it is there and of this
 * object; a remark says so, and what was found that is not.  False for one
 * that describes what gfx11 does not have.
 */
bool triton_read(struct launch_plan *l, struct err *e);
/* The pointers behind the arguments that were given, if those are missing. */
bool triton_add_scratch(struct launch_plan *l, struct err *e);

/* ------------------------------------------------------------- load.c ---- */

/* A line more of l->remarks. */
void launch_remark(struct launch_plan *l, const char *fmt, ...)
	T0_PRINTF(2, 3);

#endif
