/*
 * isa_int - what decode.c tells print.c beyond isa/isa.h.
 */
#ifndef T0_ISA_INT_H
#define T0_ISA_INT_H

#include "isa/isa.h"

/* The op_sel bits of VOP3 and VINTERP words that select something. */
unsigned isa_int_opsel(const struct isa_inst *in);
/* WMMA with 32-bit results: there are no halves to select. */
bool isa_int_whole_matrix(const struct isa_inst *in);

#endif
