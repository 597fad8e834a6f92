/*
 * tap - a test program prints TAP version 13 and prove reads it.
 *
 *	int main(void)
 *	{
 *		is_u64(parse("0x10"), 16, "hexadecimal is read");
 *		ok(!parse_ok(""), "an empty string is refused");
 *		return plan_done();
 *	}
 *
 * Every check prints one line at once and returns whether it passed, so
 * that a test can stop early: `if (!ok(p, "opens")) return plan_done();`.
 * Names are formats, say what behaves how, and are unique in a file.
 * A failing check says on stderr where it stands, what it got and what it
 * wanted.  Values wanted come from somewhere else than the code under test.
 *
 * A program that dies before plan_done() has printed no plan and so fails.
 * Only one thread may use these functions.
 */
#ifndef T0_TESTS_TAP_H
#define T0_TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAP_HERE	      __FILE__, __LINE__
#define TAP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define ok(cond, ...) tap_ok(TAP_HERE, (cond), #cond, __VA_ARGS__)

/* is_TYPE(got, wanted, name...) */
#define is_u64(got, wanted, ...) tap_u64(TAP_HERE, (got), (wanted), __VA_ARGS__)
#define is_i64(got, wanted, ...) tap_i64(TAP_HERE, (got), (wanted), __VA_ARGS__)
/* Equal as values, or both NaN; -0 and 0 differ. */
#define is_f64(got, wanted, ...) tap_f64(TAP_HERE, (got), (wanted), __VA_ARGS__)
/* NULL equals only NULL. */
#define is_str(got, wanted, ...) tap_str(TAP_HERE, (got), (wanted), __VA_ARGS__)
/* `part` occurs in `got`. */
#define has_str(got, part, ...) tap_has(TAP_HERE, (got), (part), __VA_ARGS__)
#define is_mem(got, wanted, size_bytes, ...) \
	tap_mem(TAP_HERE, (got), (wanted), (size_bytes), __VA_ARGS__)

/* Instead of one check that cannot run here.  Say what is missing. */
void skip(const char *why, ...) TAP_PRINTF(1, 2);

/* Instead of n of them. */
void skip_some(unsigned n, const char *why, ...) TAP_PRINTF(2, 3);

/* Instead of the whole program, before any check: prints the plan, exits 0. */
_Noreturn void skip_all(const char *why, ...) TAP_PRINTF(1, 2);

/* A line "# ..." on stderr, where prove shows it. */
void diag(const char *fmt, ...) TAP_PRINTF(1, 2);

/*
 * Checks between these two are known to fail because of `why`.  They do not
 * fail the program; one that passes does, so that the mark goes when the
 * fault does.
 */
void todo_start(const char *why);
void todo_end(void);

/* Prints the plan; the exit status for main(): 0 if all passed, else 1. */
int plan_done(void);

bool tap_ok(const char *file, int line, bool passed, const char *cond,
	    const char *name, ...) TAP_PRINTF(5, 6);
bool tap_u64(const char *file, int line, uint64_t got, uint64_t wanted,
	     const char *name, ...) TAP_PRINTF(5, 6);
bool tap_i64(const char *file, int line, int64_t got, int64_t wanted,
	     const char *name, ...) TAP_PRINTF(5, 6);
bool tap_f64(const char *file, int line, double got, double wanted,
	     const char *name, ...) TAP_PRINTF(5, 6);
bool tap_str(const char *file, int line, const char *got, const char *wanted,
	     const char *name, ...) TAP_PRINTF(5, 6);
bool tap_has(const char *file, int line, const char *got, const char *part,
	     const char *name, ...) TAP_PRINTF(5, 6);
bool tap_mem(const char *file, int line, const void *got, const void *wanted,
	     size_t size_bytes, const char *name, ...) TAP_PRINTF(6, 7);

#endif
