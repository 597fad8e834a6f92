/*
 * kfd/soft/exec/valu_table_simd.c - valu.def and vop3.def as one table by
 * instruction.
 */
#include <stddef.h>

#include "kfd/soft/exec/valu.h"

/* The kinds that have steps (valu_step.h): usual ones, and both. */
#define STEP(name)    SIMD(step_##name), NULL
#define STEPS(name)   SIMD(step_##name), SIMD(step_flush_##name)
#define NO_STEP(name) NULL, NULL
#define STEP_F1 STEPS
#define STEP_F2 STEPS
#define STEP_F3 STEPS
#define STEP_FI STEP
#define STEP_FU STEP
#define STEP_U1 STEP
#define STEP_U2 STEP
#define STEP_U3 STEP
#define STEP_QU STEP
#define STEP_CARRY STEP
#define STEP_ADDC STEP
#define STEP_SUBC STEP
#define STEP_SELECT STEP
#define STEP_PU2 STEP
#define STEP_PU3 STEP
#define STEP_PH2 STEP
#define STEP_PH3 STEP
#define STEP_CU32 STEP
#define STEP_CI32 STEP
#define STEP_CU16 STEP
#define STEP_CI16 STEP
#define STEP_CF32 STEP
#define STEP_CF16 STEP
#define STEP_CU64 STEP
#define STEP_CI64 STEP
#define STEP_CF64 STEP
#define STEP_CB16 STEP
#define STEP_CB32 STEP
#define STEP_CB64 STEP
#define STEP_D1 NO_STEP
#define STEP_D2 NO_STEP
#define STEP_D3 NO_STEP
#define STEP_DI NO_STEP
#define STEP_H1 NO_STEP
#define STEP_H2 NO_STEP
#define STEP_HFMA NO_STEP
#define STEP_PKFMA NO_STEP
#define STEP_FH NO_STEP
#define STEP_HF NO_STEP
#define STEP_UQ NO_STEP
#define STEP_PKZ NO_STEP
#define STEP_DOT2 NO_STEP
#define STEP_Q2 STEP
#define STEP_T32 NO_STEP
#define STEP_T32D NO_STEP
#define STEP_T16 NO_STEP
#define STEP_FN NO_STEP

#define V(group, name, kind, flags, ...) \
	soft_lane_fn SIMD(soft_##name);  \
	soft_step_fn SIMD(step_##name), SIMD(step_flush_##name);
#include "kfd/soft/exec/valu.def"
#include "kfd/soft/exec/vop3.def"
#undef V

const struct soft_vrow SIMD(soft_vrows)[ISA_OP_COUNT] = {
#define V(group, name, kind, flags, ...) \
	[ISA_##name] = { SIMD(soft_##name), STEP_##kind(name), flags },
#include "kfd/soft/exec/valu.def"
#include "kfd/soft/exec/vop3.def"
#undef V
};
