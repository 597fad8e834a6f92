/*
 * asm_int - what the parts of the assembler share.
 *
 * asm.c           lines, labels, instructions, patching
 * asm_symbol.c    symbols in expressions, references, local labels
 * asm_directive.c sections and symbol directives
 * asm_data.c      data directives
 * asm_kernel.c    .amdhsa_kernel
 * asm_meta.c      .amdgpu_metadata: YAML to MessagePack
 */
#ifndef T0_ISA_ASM_INT_H
#define T0_ISA_ASM_INT_H

#include "base/vec.h"
#include "isa/asm/asm.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

enum { ASM_N_SPECIAL = 5 };

/* How an expression refers to its symbol: "@rel32@lo". */
enum asm_variant {
	VARIANT_NONE,
	VARIANT_ABS32_LO,
	VARIANT_ABS32_HI,
	VARIANT_REL32_LO,
	VARIANT_REL32_HI,
	VARIANT_REL64,
	VARIANT_GOTPCREL,
	VARIANT_GOTPCREL32_LO,
	VARIANT_GOTPCREL32_HI,
};

enum asm_fixup_kind {
	FIX_DATA,    /* `bytes` wide */
	FIX_LITERAL, /* 32 bits, relative to itself unless a difference */
	FIX_BRANCH,  /* 16 bits, dwords from the next instruction */
	FIX_SIZE,    /* the size of symbol `section` */
};

/* Bytes to patch when the value is known. */
struct asm_fixup {
	uint8_t kind, bytes;
	int section;	  /* FIX_SIZE: the symbol */
	int line, column; /* for messages */
	uint64_t offset;
	struct isa_value value;
};

/* .set: symbols that stand for expressions, parallel to object.symbol. */
struct asm_variable {
	bool set;
	struct isa_value value;
};

struct asm_local { /* "1:" */
	int number;
	int last, next; /* symbols of 1b and 1f */
};

struct assembler {
	struct isa_object *o;
	struct isa_target t;
	struct isa_asm_options options;
	const char *file;
	const char *next, *end; /* what was not read yet */
	const char *special[ASM_N_SPECIAL]; /* where its characters are next */
	struct buf text;
	const char *line; /* current, in `text`, without comments */
	int line_no;
	int section, previous;
	VEC(struct asm_fixup) fixup;
	VEC(struct asm_variable) variable; /* by symbol */
	VEC(struct asm_local) local;
	struct asm_fixup pending; /* of the instruction being parsed */
	bool has_pending;
	struct buf errors;
	int n_errors;
	int max_vgpr, max_sgpr; /* numbers used so far, -1 = none */
	const char *original;	/* the file as given, for messages */
	size_t original_len;
	struct buf scratch; /* an expression's text */
	int more_lines;	    /* that a comment added to the current one */
};

/* The current directive: `arg` comes from its row of the table. */
struct directive {
	struct assembler *a;
	const char *p; /* what follows the name */
	int arg;
};

/* ------------------------------------------------------------- asm.c ---- */

/* An error at `at`, a place in a->line (NULL: the whole line). False. */
bool asm_error(struct assembler *a, const char *at, const char *fmt, ...)
	T0_PRINTF(3, 4);
bool asm_error_at(struct assembler *a, int line, int column, const char *fmt,
		  ...) T0_PRINTF(4, 5);
static inline struct isa_section *asm_here(struct assembler *a)
{
	return isa_section_at(a->o, a->section);
}
/* Append to the current section; it must have bytes. */
bool asm_emit(struct assembler *a, const void *data, size_t len_bytes);
bool asm_emit_fill(struct assembler *a, uint64_t n_bytes, uint8_t byte);
void asm_fixup(struct assembler *a, const struct asm_fixup *f);
/* Copy the next line to a->line; false at the end.  `raw`: comments stay. */
bool asm_next_line(struct assembler *a, bool raw);
/* A name at *p: its length, 0 if there is none. */
int asm_name(const char *p);

/* ------------------------------------------------------ asm_symbol.c ---- */

/* An absolute expression at *p: all its symbols are known by now. */
bool asm_number(struct assembler *a, const char **p, int64_t *v);
/* Any expression at *p. */
bool asm_value(struct assembler *a, const char **p, struct isa_value *v);
bool asm_set(struct assembler *a, const char *name, int len,
	     const struct isa_value *v, bool again);
bool asm_label(struct assembler *a, const char *name, int len);
bool asm_local_label(struct assembler *a, int number);
/* For isa_parse(). */
bool asm_instruction_symbol(void *ctx, const char *s, int len,
			    enum isa_symbol_use use, int64_t *value);
/* Patch all fixups; those that only a linker can resolve become relocations. */
void asm_resolve(struct assembler *a);

/* --------------------------------------------------- asm_directive.c ---- */

/* ".word" of `len` characters, operands at p. */
bool asm_directive(struct assembler *a, const char *word, int len,
		   const char *p);
/* Is the line at its end?  An error if it is not. */
bool dir_done(struct directive *d);
/* Skips a comma, if one follows. */
bool dir_comma(struct directive *d);
/* An absolute expression: a number from `low` to `high`, known by now. */
bool dir_number(struct directive *d, int64_t low, int64_t high, int64_t *v);

/* ------------------------------------------------------ asm_data.c ---- */

/* Each reads the rest of its line; `arg` is explained there. */
bool dir_align(struct directive *d);
bool dir_data(struct directive *d);
bool dir_floats(struct directive *d);
bool dir_strings(struct directive *d);
bool dir_space(struct directive *d);
bool dir_fill(struct directive *d);

/* ------------------------------------------------------ asm_kernel.c ---- */

bool asm_kernel(struct assembler *a, const char *p);

/* -------------------------------------------------------- asm_meta.c ---- */

bool asm_metadata(struct assembler *a);

#endif
