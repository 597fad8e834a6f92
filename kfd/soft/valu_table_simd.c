/*
 * kfd/soft/valu_table_simd.c - valu.def and vop3.def as one table by
 * instruction.
 */
#include "kfd/soft/valu.h"

#define V(group, name, kind, flags, ...) soft_lane_fn SIMD(soft_##name);
#include "kfd/soft/valu.def"
#include "kfd/soft/vop3.def"
#undef V

const struct soft_vrow SIMD(soft_vrows)[ISA_OP_COUNT] = {
#define V(group, name, kind, flags, ...) \
	[ISA_##name] = { SIMD(soft_##name), flags },
#include "kfd/soft/valu.def"
#include "kfd/soft/vop3.def"
#undef V
};
