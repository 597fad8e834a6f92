/*
 * kfd/soft/exec/fast/microop_cross.h - instructions that move lanes at will, as steps.
 *
 * Private to step_cross.c and step_cross_simd.c.  b is the plane that is
 * read, d the one that is written.
 */
#ifndef T0_KFD_SOFT_STEP_CROSS_H
#define T0_KFD_SOFT_STEP_CROSS_H

#include "kfd/soft/exec/valu.h"

struct soft_cross_steps {
	soft_step_fn *bpermute; /* a: the plane of addresses, imm: offset */
	soft_step_fn *swizzle;	/* a: an absolute plane: lanes to be read */
	/* Of a wave32.  imm: 16 to read the other row; part: any lane may be
	 * read, else the handler does it unless all execute. */
	soft_step_fn *permlane;
};
extern const struct soft_cross_steps soft_cross_steps_v2, soft_cross_steps_v3,
	soft_cross_steps_v4;

#endif
