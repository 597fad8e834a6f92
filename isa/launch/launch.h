/*
 * launch - a kernel of a code object with what a command line gives it: which
 * kernel, typed arguments ("f32:1.5", "buf:1024:f32=iota"), grid, workgroup
 * and LDS, held against the kernel's metadata.  Whoever launches, on a device
 * or in the simulator, reads them here, so that a command line means the same
 * to all.  No function here needs a device.
 *
 *	static struct launch_plan l = LAUNCH_DEFAULTS;
 *	... options: LAUNCH_OPTIONS(l) ...
 *
 *	launch_parse(&l, argc, argv, &e)	FILE [KERNEL] [ARGUMENT...]
 *	launch_load(&l, &e)			the file and, in it, the kernel
 *	launch_check(&l, &e)			all of it against the metadata
 *	... memory for the buffers: operands of kind OPERAND_BUFFER ...
 *	launch_arguments(&l, va, &e)		l.kernarg, from their addresses
 *	launch_hidden(...)			what the runtime adds to it
 *	launch_fini(&l)
 *
 * Conversion is exact: a number that the type cannot hold is refused, floats
 * are rounded to nearest even, and what is printed reads back as the same
 * bits.
 */
#ifndef T0_ISA_LAUNCH_H
#define T0_ISA_LAUNCH_H

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
	uint32_t lds_at;     /* of OPERAND_LDS; launch_check() knows it */
	char *save;	     /* write the memory here after the run; owned */
};

#define OPERAND_MAX_BYTES (UINT64_C(1) << 40)

extern const char operand_help[]; /* some twenty lines for --help */

/* `seed` is for random() without one. */
bool operand_parse(struct operand *o, const char *text, uint64_t seed,
		   struct err *e);
void operand_fini(struct operand *o);
/* Is this text an argument, and not the name of a kernel or file? */
bool operand_is(const char *text);

/*
 * May `o` be passed for `a`?  Kind and size have to be right, and a number of
 * a known C type is not given as the other kind (float or integer).
 */
bool operand_fits(const struct operand *o, const struct co_arg *a);
/* Appends what `a` wants: "buf:N:TYPE, float* x". */
void operand_wanted(const struct co_arg *a, struct buf *out);

/* ----------------------------------------------------------- triton.c ---- */

/* What Triton writes beside an object about its kernel: NAME.json. */
struct launch_triton {
	char *path, *kernel; /* owned; NULL: there is no such file */
	uint32_t items;	     /* of a workgroup: warps times their lanes */
	uint32_t lds_bytes;  /* dynamic */
	/*
	 * Pointers that it adds behind the arguments of the source, and the
	 * bytes of a workgroup behind each; a null pointer where it is 0.
	 */
	int n_scratch;
	uint64_t scratch_bytes[2];
};

/* -------------------------------------------- load.c, check.c ---- */

#define LAUNCH_ARGS_MAX 256
#define LAUNCH_UNSET UINT64_MAX

/* Zero but for LAUNCH_DEFAULTS; end with launch_fini(). */
struct launch_plan {
	/* Options. */
	const char *chip; /* as of co_unbundle() */
	const char *grid_text, *block_text;
	uint64_t seed, stack_bytes;
	uint64_t more_lds_bytes; /* LAUNCH_UNSET: --lds is not given */

	/* What the command line means. */
	const char *path, *kernel_name; /* NULL: not named */
	struct operand arg[LAUNCH_ARGS_MAX];
	int n_args;
	struct buf file;
	struct co co;
	const struct co_kernel *kernel;
	struct launch_triton triton;
	/* Lines for people: what was read beside it, what is not served. */
	struct buf remarks;
	uint32_t grid[3], block[3]; /* work-items */
	uint32_t lds_bytes;	    /* dynamic: of arguments, then --lds */

	/* Arguments: explicit_bytes of kernarg_bytes, the others 0. */
	uint8_t *kernarg;
	uint32_t explicit_bytes, kernarg_bytes;
};

#define LAUNCH_DEFAULTS { .more_lds_bytes = LAUNCH_UNSET }

/* Rows of a table of options (base/cmd.h). */
#define LAUNCH_OPTIONS(l)                                                     \
	{ "grid", 'g', CLI_STR, &(l).grid_text, "X,Y,Z",                      \
	  "work-items in all (default: one block)" },                         \
	{ "block", 'b', CLI_STR, &(l).block_text, "X,Y,Z",                    \
	  "work-items per workgroup (default: what the kernel was "           \
	  "compiled for, else one wave)" },                                   \
	{ "lds", 0, CLI_U64, &(l).more_lds_bytes, "BYTES",                    \
	  "LDS of a workgroup that no argument names, besides the kernel's "  \
	  "own (default: `shared' of Triton's JSON beside FILE, else 0)" },   \
	{ "stack", 0, CLI_U64, &(l).stack_bytes, "BYTES",                     \
	  "scratch of a work-item for calls, besides the kernel's own "       \
	  "(kernels with a dynamic stack need it)" }
/* Of tools that have no other use for the name of a chip. */
#define LAUNCH_CHIP_OPTION(l)                                                 \
	{ "chip", 0, CLI_STR, &(l).chip, "GFX",                               \
	  "object to take out of an offload bundle (default: the device's, "  \
	  "without one gfx1100)" }
#define LAUNCH_SEED_HELP                                                      \
	"of random without a seed; argument I uses N + I"

/*
 * FILE [KERNEL] [ARGUMENT...]; the kernel may be left out where the object, or
 * Triton's JSON, has only one.
 */
bool launch_parse(struct launch_plan *l, int argc, char *const *argv,
		  struct err *e);
/*
 * The file, and the kernel of that name or the only one.  With `any` it need
 * not be known which kernel; l->kernel may be NULL then.
 */
bool launch_load(struct launch_plan *l, bool any, struct err *e);
/* Grid, workgroup and LDS: enough to know what a workgroup takes. */
bool launch_shape(struct launch_plan *l, struct err *e);
/* launch_shape(), and the arguments. */
bool launch_check(struct launch_plan *l, struct err *e);
void launch_fini(struct launch_plan *l);

/* Workgroups, partial ones too: of each dimension, and all. */
uint64_t launch_groups(const struct launch_plan *l, uint32_t n[3]);

/* ------------------------------------------------------- arguments.c ---- */

/*
 * l->kernarg: what each argument is, where the metadata says, or one after the
 * other, each aligned to its size, where there is none.  va: [n_args] addresses
 * of the buffers.
 */
bool launch_arguments(struct launch_plan *l, const uint64_t *va,
		      struct err *e);

/* A dispatch, as hidden arguments tell it. */
struct launch_dispatch {
	uint32_t grid[3], block[3]; /* work-items; 0 counts as 1 */
	uint32_t lds_bytes;	    /* dynamic */
	/* Of the queue and the device; 0: there is none. */
	uint64_t print_va, hostcall_va, queue_va;
	uint64_t lds_base, scratch_base; /* apertures */
};
/* Dimensions in use: one that only the workgroup has counts, too. */
unsigned launch_dimensions(const uint32_t grid[3], const uint32_t block[3]);
/*
 * Fill the hidden ones of `n` arguments, as AMDGPUUsage describes code object
 * version 5; `kernarg` has `bytes`, 0 in what nothing serves.
 */
void launch_hidden(const struct launch_dispatch *d, const struct co_arg *arg,
		   uint32_t n, void *kernarg, size_t bytes);

#endif
