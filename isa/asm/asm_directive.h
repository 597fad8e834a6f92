/*
 * asm_directive - what the files of the directives share.
 *
 * asm_directive.c  sections, symbols, the target, the table of names
 * asm_data.c       alignment, numbers, strings, gaps
 */
#ifndef T0_ISA_ASM_DIRECTIVE_H
#define T0_ISA_ASM_DIRECTIVE_H

#include "isa/asm/asm_int.h"

/* The directive at hand: `arg` is what the table says. */
struct directive {
	struct assembler *a;
	const char *p; /* what follows the name */
	int arg;
};

/* ------------------------------------------------- asm_directive.c ---- */

/* Is the line at its end?  An error if it is not. */
bool dir_done(struct directive *d);
/* Moves behind a comma, if one follows. */
bool dir_comma(struct directive *d);
/* A number that is known by now, from `low` to `high`. */
bool dir_number(struct directive *d, int64_t low, int64_t high, int64_t *v);

/* ------------------------------------------------------ asm_data.c ---- */

/* Each reads the rest of its line; `arg` is explained there. */
bool dir_align(struct directive *d);
bool dir_data(struct directive *d);
bool dir_floats(struct directive *d);
bool dir_strings(struct directive *d);
bool dir_space(struct directive *d);
bool dir_fill(struct directive *d);

#endif
