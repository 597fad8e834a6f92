/*
 * kfd/soft/exec/dispatch_simd.c - what is compiled for one level, as one table.
 */
#include "kfd/soft/exec/wmma.h"

/* A row whose kind makes no microop (valu_microop.h) leaves a null pointer. */
#define V(group, name, kind, flags, ...) \
	soft_lane_fn SIMD(soft_##name); \
	soft_microop_fn SIMD(microop_##name) __attribute__((weak)); \
	soft_microop_fn SIMD(microop_flush_##name) __attribute__((weak));
#include "kfd/soft/exec/valu.def"
#include "kfd/soft/exec/vop3.def"
#undef V

static const struct soft_lane_op ops[ISA_OP_COUNT] = {
#define V(group, name, kind, flags, ...) \
	[ISA_##name] = { SIMD(soft_##name), SIMD(microop_##name), \
			 SIMD(microop_flush_##name), flags },
#include "kfd/soft/exec/valu.def"
#include "kfd/soft/exec/vop3.def"
#undef V
};

extern const struct soft_row_microops SIMD(soft_row_microops);
extern const struct soft_cross_microops SIMD(soft_cross_microops);
extern const struct soft_mem_microops SIMD(soft_mem_microops);
extern const struct soft_move_table SIMD(soft_moves);

const struct soft_simd SIMD(soft_simd) = {
	.ops = ops,
	.wmma_float = SIMD(soft_wmma_float),
	.wmma_int = SIMD(soft_wmma_int),
	.wmma = &SIMD(soft_wmma_microops),
	.row = &SIMD(soft_row_microops),
	.cross = &SIMD(soft_cross_microops),
	.mem = &SIMD(soft_mem_microops),
	.moves = &SIMD(soft_moves),
};
