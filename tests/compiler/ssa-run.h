/*
 * ssa-run - run SSA functions in the interpreter from a test.
 */
#ifndef T0_TESTS_SSA_RUN_H
#define T0_TESTS_SSA_RUN_H

#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp.h"
#include "tests/tap.h"

enum { SSA_RUN_ARGS = 24 };

/* The arguments of one run: buffers are also what may be accessed. */
struct ssa_call {
	uint64_t arg[SSA_RUN_ARGS];
	uint32_t n_args;
	struct ssa_range range[SSA_RUN_ARGS];
	uint32_t n_ranges;
};

static inline void call_buffer(struct ssa_call *c, void *p, size_t size_bytes)
{
	c->arg[c->n_args++] = (uint64_t)(uintptr_t)p;
	c->range[c->n_ranges++] = (struct ssa_range){ p, size_bytes };
}

static inline void call_u32(struct ssa_call *c, uint32_t v)
{
	c->arg[c->n_args++] = v;
}

static inline void call_u64(struct ssa_call *c, uint64_t v)
{
	c->arg[c->n_args++] = v;
}

static inline void call_f32(struct ssa_call *c, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, 4);
	call_u32(c, bits);
}

static inline bool call_run(struct ssa_func *f, const struct ssa_call *c,
			    uint32_t gx, uint32_t gy, struct buf *printed,
			    struct err *e)
{
	const struct ssa_run run = {
		.groups = { gx, gy, 1 },
		.arg = c->arg,
		.range = c->range,
		.n_ranges = c->n_ranges,
		.max_steps = 100000000,
		.printed = printed,
	};

	return ssa_interpret(f, &run, e);
}

#define SSA_DATA "tests/data/ssa/"

/* A file of SSA_DATA, the caller's; ends the test when it is not there. */
static inline char *ssa_read(const char *name)
{
	struct buf path = { 0 }, text = { 0 };
	struct err e = { 0 };

	buf_printf(&path, SSA_DATA "%s", name);
	if (!file_read(path.data, 0, &text, &e)) {
		diag("%s", e.msg);
		exit(1);
	}
	buf_fini(&path);
	return text.data;
}

/* A function from text; ends the test when it is none. */
static inline struct ssa_func *ssa_text(const char *text)
{
	struct err e = { 0 };
	struct ssa_func *f = ssa_parse(text, &e);

	if (!f || !ssa_check(f, &e)) {
		diag("%s\n%s", e.msg, text);
		exit(1);
	}
	return f;
}

/* splitmix64 */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* In [-1, 1). */
static inline float test_random_f32(uint64_t *state)
{
	return (float)((double)(int64_t)test_random(state) * 0x1p-63);
}

#endif
