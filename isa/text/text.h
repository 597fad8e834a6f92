/*
 * isa/text - the assembly text of RDNA: print, parse, expressions.
 *
 * The syntax is LLVM's, and "unused_src1:N unused_src2:N" for sources that a
 * VOP3 instruction does not have and whose fields are not 0.  No function keeps state, allocates, or reads outside
 * the text it was given; all may be called from any number of threads.
 *
 * A whole program, which tests/isa/example.t cuts out of this comment,
 * compiles and runs.  It assembles three lines, and from the bytes alone tells
 * what each is and which registers it needs:
 *
 *	#include <stdio.h>
 *	#include "isa/text/text.h"
 *
 *	static void explain(const struct isa_target *t, const uint8_t *code,
 *			    int size_bytes)
 *	{
 *		char text[ISA_TEXT_MAX];
 *		struct isa_inst in;
 *		struct isa_use use;
 *		const char *why = isa_decode(t, code, size_bytes, &in);
 *
 *		if (why) { // not an instruction of this generation
 *			printf("? %s\n", why);
 *			return;
 *		}
 *		isa_print(t, &in, text, sizeof(text));
 *		printf("%s\n", text);
 *		isa_use(t, &in, &use); // EXEC and VCC, too
 *		for (int i = 0; i < use.n; i++)
 *			printf("  %s %c%d+%d\n",
 *			       use.reg[i].role & ISA_DST ? "writes" : "reads",
 *			       use.reg[i].file == ISA_K_VGPR ? 'v' : 's',
 *			       use.reg[i].reg, use.reg[i].count);
 *	}
 *
 *	int main(void)
 *	{
 *		static const char *const line[] = {
 *			"v_fma_f32 v0, -v1, s2, 1.0",
 *			"global_load_b64 v[4:5], v2, s[8:9] offset:16",
 *			"v_add_f32 v0, v1", // one operand is missing
 *		};
 *		struct isa_target t = { ISA_GFX11, 32, false };
 *
 *		for (int i = 0; i < 3; i++) {
 *			uint8_t code[ISA_MAX_SIZE_BYTES];
 *			struct isa_inst in;
 *			const char *why =
 *				isa_parse(&t, line[i], NULL, NULL, &in);
 *
 *			if (why)
 *				printf("%s: %s\n", line[i], why);
 *			else
 *				explain(&t, code, isa_encode(&in, code));
 *		}
 *		return 0;
 *	}
 */
#ifndef T0_ISA_TEXT_H
#define T0_ISA_TEXT_H

#include "isa/code/code.h"

#define ISA_TEXT_MAX 512 /* enough for every printed instruction */

/* ----------------------------------------------------------- print.c ---- */

/*
 * Write the instruction in LLVM's syntax, NUL-terminated, cut at `size`.
 * Returns the length it wants (as snprintf).  Branch targets print as
 * the 16 bits of their field, without a sign.
 */
int isa_print(const struct isa_target *t, const struct isa_inst *in, char *out,
	      size_t size);
/*
 * The same with .l or .h at each VGPR of which an instruction uses half, as
 * LLVM writes code with real true16 (its default for gfx11 since version 21).
 */
int isa_print_true16(const struct isa_inst *in, char *out, size_t size);
/* "v_add_f32_e64", "v_dual_mov_b32 :: v_dual_add_f32". */
int isa_print_name(const struct isa_inst *in, char *out, size_t size);

/* ----------------------------------------------------------- parse.c ---- */

/* What a symbol or expression stands for, when the caller is asked for it. */
enum isa_symbol_use {
	ISA_SYM_INLINE,	 /* asked first: is it a number that is known by now? */
	ISA_SYM_LITERAL, /* 32-bit literal, absolute or to be relocated */
	ISA_SYM_BRANCH,	 /* signed dwords from the next instruction */
	ISA_SYM_VALUE,	 /* a plain number: offsets, immediates */
};
/*
 * Value of the expression `s` (not NUL-terminated); false if it has none.  A
 * caller that does not know a label yet may answer 0 and patch later.
 */
typedef bool isa_symbol_fn(void *ctx, const char *s, int len,
			   enum isa_symbol_use use, int64_t *value);

/*
 * Parse one instruction in LLVM's syntax; comments and labels are the
 * caller's.  Without suffix the shortest encoding that takes the operands is
 * chosen.  `symbol` may be NULL: symbols are then errors.  Returns NULL and
 * fills *in as isa_decode() would, or a static text that says why not.
 */
const char *isa_parse(const struct isa_target *t, const char *text,
		      isa_symbol_fn *symbol, void *ctx, struct isa_inst *in);
/*
 * The same, and the in->size_bytes bytes of the instruction at `code`, which
 * holds ISA_MAX_SIZE_BYTES.
 */
const char *isa_assemble_line(const struct isa_target *t, const char *text,
			      isa_symbol_fn *symbol, void *ctx,
			      struct isa_inst *in, uint8_t *code);

/* ------------------------------------------------------------- expr.c ---- */

/*
 * Integer expressions.
 *
 * Operators, precedence and 64-bit wrap-around are those of LLVM's assembler:
 * || lowest, then &&, comparisons (true is -1), + -, | ^ & and, highest,
 * * / % << >> (>> shifts zeros in).  Unary - + ~ ! and parentheses as usual.
 *
 * A value is n + add - sub, where add and sub name symbols whose addresses are
 * not known yet.  Only + and - keep symbols; other operators need numbers.
 */

struct isa_value {
	int64_t n;
	int add, sub;	 /* the caller's symbol numbers, 0 = none */
	uint8_t variant; /* the caller's, of `add`: how to refer to it */
};

struct isa_expr_env {
	/* The value of a symbol; false after setting *why. */
	bool (*symbol)(void *ctx, const char *s, int len, struct isa_value *v,
		       const char **why);
	/* Make a number of add - sub if that is known by now; may be NULL. */
	void (*fold)(void *ctx, struct isa_value *v);
	void *ctx;
};

/*
 * Parse the longest expression at *p (not necessarily up to the end of the
 * line) and move *p past it.  Returns NULL, or a static text that says what
 * is wrong at *p.  `env` may be NULL: symbols are then errors.
 */
const char *isa_expr(const char **p, const struct isa_expr_env *env,
		     struct isa_value *out);

/* As isa_expr(), up to the first operator: for the text between bars. */
const char *isa_expr_primary(const char **p, const struct isa_expr_env *env,
			     struct isa_value *out);

/* Past blanks and tabs. */
static inline const char *isa_skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* May this character start, continue a symbol's name? */
enum { ISA_NAME_START = 1, ISA_NAME = 2 };
extern const unsigned char isa_name_class[256];

static inline bool isa_is_name_start(char c)
{
	return isa_name_class[(unsigned char)c] & ISA_NAME_START;
}
static inline bool isa_is_name(char c)
{
	return isa_name_class[(unsigned char)c];
}

#endif
