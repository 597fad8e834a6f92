/*
 * code - machine code of tests, from assembly text.
 *
 *	struct code loop = code_of("tests/soft/launch.s", "endless");
 *
 * The kernels of a test stand in a file of their own beside it; each begins at
 * a label and ends where the next one begins (labels as .Lwait do not count).
 * A file with "wave64" in its name is for waves of 64.
 *
 * The product's assembler reads them.  That it makes of them what LLVM's does
 * is tested once, in tests/isa/code.c, against bytes that are stored there.
 */
#ifndef T0_TESTS_CODE_H
#define T0_TESTS_CODE_H

#include <stddef.h>
#include <stdint.h>

struct code {
	const uint32_t *dw; /* [n], for the rest of the process */
	size_t n, size_bytes;
};

/* The program ends ("Bail out!") if the file or the label is not there. */
struct code code_of(const char *path, const char *label);

/* All of the file. */
struct code code_file(const char *path);

/*
 * Instructions, a line each or separated by "; ", into dw[max]; how many dwords
 * they are.  `wave` is 32 or 64.
 */
size_t code_lines(const char *text, int wave, uint32_t *dw, size_t max);
/* The same for another chip than gfx1100. */
size_t code_lines_of(const char *chip, const char *text, int wave, uint32_t *dw,
		     size_t max);

#endif
