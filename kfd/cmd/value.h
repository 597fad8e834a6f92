/*
 * value - typed values and kernel arguments as text: what a user writes on a
 * command line ("f32:1.5", "buf:1024:f32=iota") and reads back.
 *
 * Conversion is exact: a number that the type cannot hold is refused, floats
 * are rounded to nearest even, and what is printed reads back as the same
 * bits.  No function here needs a device.
 */
#ifndef T0_KFD_VALUE_H
#define T0_KFD_VALUE_H

#include "base/base.h"
#include "isa/object/object.h"

/* ----------------------------------------------------------- value.c ---- */

enum value_class { VALUE_SIGNED, VALUE_UNSIGNED, VALUE_HEX, VALUE_FLOAT };

/* One row per type; pointers to rows stand for the type. */
struct value_type {
	const char *name; /* "f32" */
	enum value_class class;
	uint8_t size_bytes;
	uint8_t exp_bits, man_bits; /* floats only */
};
#define VALUE_TYPES "i8..i64 u8..u64 x8..x64 f16 bf16 f32 f64"

/* NULL when `name` (of n characters) is no type. */
const struct value_type *value_type_find(const char *name, size_t n);

/* Text -> size_bytes at out.  Numbers are decimal or 0x..., floats as strtod.
 */
bool value_parse(const struct value_type *t, const char *text, void *out,
		 struct err *e);
/* Appends the shortest text that value_parse() turns into the same bits. */
void value_print(const struct value_type *t, const void *bytes,
		 struct buf *out);
/* The value as a double; false for NaN and infinities. */
bool value_f64(const struct value_type *t, const void *bytes, double *out);

/*
 * Fill `count` values at dst.
 *	zero		all 0
 *	V		all V
 *	A,B,C		these, then 0
 *	iota, iota(START,STEP)	START + i * STEP
 *	random(SEED), random(SEED,LO,HI)	see below; SEED may be omitted
 *	file:PATH	raw little-endian bytes; the file has exactly as many
 * Random numbers are splitmix64 of the seed: integers take its low bits, or
 * LO + r % (HI - LO + 1); floats are multiples of 2^-(mantissa bits) in
 * [-1, 1), or LO + u * (HI - LO) with u in [0, 1).
 */
bool value_fill(const struct value_type *t, void *dst, size_t count,
		const char *init, uint64_t seed, struct err *e);

/* --------------------------------------------------------- operand.c ---- */

enum operand_kind {
	OPERAND_VALUE,	/* by value: bytes in data[] */
	OPERAND_BUFFER, /* device memory of size_bytes */
	OPERAND_REF,	/* the memory of another operand */
	OPERAND_LDS,	/* dynamic LDS of size_bytes */
};

/* One kernel argument of a command line; the syntax is in operand_help. */
struct operand {
	const char *text; /* the caller's */
	enum operand_kind kind;
	const struct value_type *type; /* of values or elements */
	bool untouched; /* its memory is left as it was allocated */
	bool is_out;		       /* "out:": part of the result */
	size_t count;		       /* elements, values */
	size_t size_bytes;   /* of the value, the memory, or the LDS */
	uint8_t *data;	     /* [size_bytes] initial contents, owned; or NULL */
	int ref;	     /* of OPERAND_REF */
	uint64_t ref_offset; /* bytes */
	char *save;	     /* write the memory here after the run; owned */
};

#define OPERAND_MAX_BYTES (UINT64_C(1) << 40)

extern const char operand_help[]; /* some twenty lines for --help */

/* `seed` is for random() without one. */
bool operand_parse(struct operand *o, const char *text, uint64_t seed,
		   struct err *e);
void operand_fini(struct operand *o);

/*
 * May `o` be passed for `a`?  Kind and size have to be right, and a number of
 * a known C type is not given as the other kind (float or integer).
 */
bool operand_fits(const struct operand *o, const struct co_arg *a);
/* Appends what `a` wants: "buf:N:TYPE, float* x". */
void operand_wanted(const struct co_arg *a, struct buf *out);

#endif
