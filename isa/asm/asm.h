/*
 * asm - assembly files to objects.
 *
 * Purpose: read what clang -S writes for an AMD GPU, what t0-isa dis writes,
 * and what people write by hand in that syntax: labels (also 1: with 1f and
 * 1b), expressions, sections, data, symbols, .amdhsa_kernel descriptors and
 * .amdgpu_metadata.
 *
 *	struct isa_object o;
 *	struct buf elf = { 0 };
 *	isa_object_init(&o);
 *	if (!isa_assemble(&o, "k.s", text, len, &(struct isa_asm_options){ 0 },
 *			  &e) ||
 *	    !co_write(&o, &elf, &e))
 *		return err_wrap(&e, "assembling");
 *
 * Sizes are known in one pass: a number that is known where it is used may
 * become an inline constant, a label becomes a literal.  References are
 * patched at the end of the file; those between sections stay relocations.
 *
 * An error names file, line and column and shows the line with a caret.  All
 * lines are read even after an error, up to twenty errors.
 */
#ifndef T0_ISA_ASM_H
#define T0_ISA_ASM_H

#include "isa/object/object.h"
#include "isa/tables/tables.h"

struct isa_asm_options {
	const char *chip; /* NULL: the file's .amdgcn_target, else gfx1100 */
	int wave;	  /* 0: 64 if a descriptor says so, else 32 */
	int version;	  /* code object version, 0: the file's, else 5 */
	struct buf *messages; /* all errors; NULL: only the first, in *e */
};

/*
 * Assemble `len` bytes of text into *o, which isa_object_init() has made.
 * `name` is for messages.  On false *o holds what was read so far.
 */
bool isa_assemble(struct isa_object *o, const char *name, const char *text,
		  size_t len, const struct isa_asm_options *options,
		  struct err *e);

/* ------------------------------------------------------ asm_kernel.c ---- */

/*
 * A descriptor as the .amdhsa_kernel that makes it; false, and nothing written,
 * if it has bits that no directive sets.
 */
bool isa_print_descriptor(FILE *out, enum isa_gen gen, const char *name,
			  const struct co_descriptor *d);

#endif
