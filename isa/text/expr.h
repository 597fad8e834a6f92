/*
 * expr - integer expressions of assembly text.
 *
 * Operators, precedence and 64-bit wrap-around are those of LLVM's assembler:
 * || lowest, then &&, comparisons (true is -1), + -, | ^ & and, highest,
 * * / % << >> (>> shifts zeros in).  Unary - + ~ ! and parentheses as usual.
 *
 * A value is n + add - sub, where add and sub name symbols whose addresses are
 * not known yet.  Only + and - keep symbols; other operators need numbers.
 */
#ifndef T0_ISA_EXPR_H
#define T0_ISA_EXPR_H

#include <stdbool.h>
#include <stdint.h>

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
 * line) and move *p behind it.  Returns NULL, or a static text that says what
 * is wrong at *p.  `env` may be NULL: symbols are then errors.
 */
const char *isa_expr(const char **p, const struct isa_expr_env *env,
		     struct isa_value *out);

/* As isa_expr(), for what stands between bars: no operator follows it. */
const char *isa_expr_primary(const char **p, const struct isa_expr_env *env,
			     struct isa_value *out);

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
