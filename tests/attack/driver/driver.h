/*
 * driver - runs a target of tests/attack on inputs that it makes up, led by the
 * coverage that they reach.
 *
 * A target is LLVMFuzzerTestOneInput(), which aborts (BUG, a sanitizer) when
 * the parser under attack breaks a promise.  What it calls is compiled with
 * -fsanitize-coverage=trace-pc,trace-cmp, so every basic block and every
 * comparison that it comes by is reported to cover.c.  main.c keeps the inputs
 * that reach what none before them did, and mutate.c changes kept ones.
 */
#ifndef T0_TESTS_ATTACK_DRIVER_H
#define T0_TESTS_ATTACK_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INPUT_MAX = 1 << 16 };

/* Of functions that the sanitizer's library looks for. */
#define VISIBLE __attribute__((visibility("default")))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* ------------------------------------------------------------- main.c --- */

/* A folder for targets whose parsers want files; it goes with the parent. */
const char *work_folder(void);
/* A file there with this content, and with `tail` (NULL: none) behind it. */
const char *input_file(const uint8_t *data, size_t size, const char *tail);

/* ------------------------------------------------------------ cover.c --- */

/* Finds the blocks of this program; before anything else. */
void cover_init(void);
/* The blocks that the linked objects have, and those reached so far. */
uint32_t cover_blocks(void);
uint32_t cover_reached(void);

/* From here on this thread's blocks count, and its comparisons if wanted. */
void cover_start(bool with_pairs);
/* The blocks that were new, and in *more those that were new this often. */
uint32_t cover_stop(uint32_t *more);

/* Two different values that were compared: of one of `size` bytes each. */
struct cover_pair {
	uint8_t a[32], b[32];
	uint8_t size_a, size_b;
};
/* Those of the last input with them, at most some hundred. */
const struct cover_pair *cover_pairs(size_t *n);

/* ----------------------------------------------------------- mutate.c --- */

struct input {
	uint8_t *data;
	size_t size;
	const char *path; /* of its file; NULL: made up */
};

/*
 * Changes the `size` bytes at `data`, which has room for `max`, in a few places
 * and returns the new size.  `other` is another input, to take pieces from.
 */
size_t mutate(uint64_t *seed, uint8_t *data, size_t size, size_t max,
	      const struct input *other);

#endif
