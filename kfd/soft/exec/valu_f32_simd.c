/*
 * kfd/soft/exec/valu_f32_simd.c - arithmetic of floats (valu.def, FLOAT).
 */
#define IF_FLOAT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

#include "kfd/soft/exec/valu.def"
