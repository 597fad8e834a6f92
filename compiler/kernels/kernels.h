/*
 * kernels - the library of kernels of T0, written in the DSL.
 *
 * Each entry builds one kernel for a shape; cc_compile() (compiler/driver/cc.h)
 * makes a code object of it.  Arithmetic is in f32 whatever the type in
 * memory; results are rounded to it to nearest even.
 *
 *	struct kernel_shape s = { .type = DSL_BF16 };
 *	const struct kernel_entry *k = kernel_find("rms_norm");
 *	struct ssa_func *f = kernel_build(k, &s, &e);
 *
 * or, ready to run and for the usual shapes without compiling:
 *
 *	kernel_object(&cache, k, &s, NULL, &object, &e);
 *
 * Rows are dense, row-major, without padding.  Sizes are arguments of the
 * kernel, so that one object does for every size: n is a row's length or the
 * number of elements, and nothing beyond is read or written.  A launch has one
 * group per row, or kernel_groups() groups.
 *
 * Caches.  Vectors of keys (kc) and of values (vc) of one token's head, head
 * elements each, lie at element
 *
 *	slot * sequence + kv_head * head + position * row
 *
 * of their array, so that any order of sequences, heads and positions does.
 * Where the head size is a multiple of 8, every vector begins at a multiple
 * of 16 bytes, as do rows of queries.
 *
 * Paged (shape.paged): the arrays are blocks of KERNEL_BLOCK positions, and a
 * table of i32 comes behind the strides.  Position p lies in the block
 * table[slot + p / KERNEL_BLOCK]: slot is where the sequence's blocks begin in
 * the table, `sequence` is from block to block, and p % KERNEL_BLOCK is the
 * position within.  Entries up to KERNEL_TABLE_MORE behind the last key's are
 * read, too, and may have any value.
 *
 * In a cache of I8 elements are bytes, a vector has kernel_cache_row() of them,
 * and begins at a multiple of 8: `head` signed bytes, then an f32 for each
 * KERNEL_CACHE_GROUP of these, which is what one counts.  Head is a multiple of
 * KERNEL_CACHE_GROUP.  A scale is the largest of its group's sizes / 127, and
 * bytes are rounded to nearest even; what is infinite or NaN makes its group
 * NaN.
 *
 * In a cache of U8 an element is a byte of E4M3, and there are no scales: what
 * is larger than 448 becomes that, what is infinite NaN.
 *
 * In a cache of U32 an element of the array is a word of 8 codes of 4 bits, the
 * first in the lowest, each 8 more than its number; a vector has
 * kernel_cache_row() words: its codes, then an f16 for each KERNEL_CACHE_GROUP
 * of them.  That is the value of the group whose size is largest, the negative
 * of two, by -8; else it is as with I8.
 */
#ifndef T0_COMPILER_KERNELS_H
#define T0_COMPILER_KERNELS_H

#include "compiler/driver/cc.h"
#include "compiler/dsl/dsl.h"

/* What a kernel is built for; zero: its default. */
struct kernel_shape {
	/* Of elements in memory: F32, F16 or BF16; kv_gather: I8 to I8, too. */
	enum dsl_type type;
	enum dsl_type to;     /* convert: of the results */
	/* stream: or I8, U8 for pairs of 4 bits, U32 for 6 bits, I16 for 3 */
	enum dsl_type weights;
	uint32_t span; /* columns with a scale, of the last two: 32 to 256 */
	uint32_t group;	      /* work-items per group */
	enum dsl_type cache; /* of keys and values; I8, U8, U32, too */
	uint32_t head;	      /* elements of a head: 1 to 256, 0: 128 */
	/*
	 * gemv, kv_gather: rows are whole multiples of 16 bytes, and begin so.
	 */
	bool wide;
	uint32_t ratio;	      /* heads of a group of attn_decode: 1 to 8 */
	uint32_t tokens;      /* stream: that a group takes, 1 to 4, 0: 1 */
	bool paged;	      /* the cache has a table of blocks */
	/*
	 * Queries, keys and values are multiplied by Hadamard's matrix,
	 * normalized, before they are rounded; heads of 32, 64, 128 or 256.
	 */
	bool turned;
};
#define KERNEL_MAX_HEAD	 256
#define KERNEL_MAX_RATIO 8
#define KERNEL_MAX_TOPK	 64
#define KERNEL_MAX_EXPERTS 4096
/* Pairs of an expert in a tile. */
#define KERNEL_EXPERT_TILE_BITS 5
#define KERNEL_EXPERT_TILE (1 << KERNEL_EXPERT_TILE_BITS)
#define KERNEL_MAX_TOKENS 4
/* Positions of a block of a paged cache. */
#define KERNEL_BLOCK_BITS 4
#define KERNEL_BLOCK (1 << KERNEL_BLOCK_BITS)
#define KERNEL_TABLE_MORE 8
/* Blocks that attn_decode is told with a token. */
#define KERNEL_TABLE_BEGIN 4
/* Elements with one scale, in a cache of I8 or U32. */
#define KERNEL_CACHE_GROUP_BITS 5
#define KERNEL_CACHE_GROUP (1 << KERNEL_CACHE_GROUP_BITS)

/* What one group works on. */
enum kernel_per {
	KERNEL_ELEMENTS, /* group * KERNEL_VECTOR elements */
	KERNEL_ROW,	 /* one row of n */
	KERNEL_TILE,	 /* KERNEL_TILE_SIZE squared; the grid is 2D */
	KERNEL_WAVE_ROW, /* group / 32 rows */
	KERNEL_GRID,	 /* as the comment of its builder says */
	KERNEL_STREAM,	 /* KERNEL_STREAM_ROWS as many */
	KERNEL_STREAM_PAIR, /* half of these */
};
#define KERNEL_VECTOR	 4
#define KERNEL_TILE_SIZE 32
#define KERNEL_STREAM_ROWS 4
#define KERNEL_EXPERT_ROWS 2 /* of a group of expert_add */
#define KERNEL_PACKED_ROWS 64
#define KERNEL_MAX_PARTS 9 /* of sum_parts */
#define KERNEL_SPAN	 4096 /* elements of a group of square_sum */

/* What of its shape a kernel depends on, besides the group. */
enum kernel_uses {
	KERNEL_TYPE = 1,
	KERNEL_TO = 2,
	KERNEL_CACHE = 4,
	KERNEL_HEAD = 8,
	KERNEL_RATIO = 16,
	KERNEL_WIDE = 32,
	KERNEL_WEIGHTS = 64,
	KERNEL_TOKENS = 128,
	KERNEL_BYTES = 256, /* moves I8 as it is */
	KERNEL_NARROW = 512, /* its weights are not of f32, but 0: bf16 */
	KERNEL_PAGED = 1024,
	KERNEL_TURNED = 2048,
};

struct kernel_entry {
	const char *name, *what;
	void (*body)(struct dsl *k, const struct kernel_shape *s);
	const char *file; /* of its source */
	enum kernel_per per;
	uint32_t group; /* default work-items per group */
	uint32_t uses;	/* enum kernel_uses */
};

/* ---------------------------------------------------------- kernels.c ---- */

extern const struct kernel_entry kernel_table[];
extern const size_t kernel_count;
const struct kernel_entry *kernel_find(const char *name);
struct ssa_func *kernel_build(const struct kernel_entry *k,
			      const struct kernel_shape *s, struct err *e);
/*
 * Groups for `n` elements, or for n rows; for KERNEL_TILE those along one side
 * of n.
 */
uint64_t kernel_groups(const struct kernel_entry *k,
		       const struct kernel_shape *s, uint64_t n);
/*
 * The shape with defaults filled in, also for what the kernel does not depend
 * on; ERR_USAGE if it cannot have this shape.
 */
bool kernel_shape_check(const struct kernel_entry *k, struct kernel_shape *s,
			struct err *e);
/* "softmax type=bf16 group=128": what tells a kernel of the library. */
void kernel_describe(const struct kernel_entry *k,
		     const struct kernel_shape *s, struct buf *out);
const char *kernel_type_name(enum dsl_type t); /* "bf16" */

/* ------------------------------------------------------------ cache.c ---- */

/* Elements of the array from one vector of a dense cache to the next. */
uint32_t kernel_cache_row(enum dsl_type cache, uint32_t head);

/* --------------------------------------------------------- prebuilt.c ---- */

/* What this shape is best compiled with. */
void kernel_options(const struct kernel_shape *s, struct cc_options *o);
/*
 * The code object for a shape: prebuilt, from the cache or compiled
 * (compiler/driver/cc.h).  `o` may be NULL: kernel_options().
 */
bool kernel_object(struct object_cache *j, const struct kernel_entry *k,
		   const struct kernel_shape *s, const struct cc_options *o,
		   struct cache_object *out, struct err *e);
/*
 * The shapes that the build compiles: those of a kernel, from 0 on; false
 * behind the last.
 */
bool kernel_usual(const struct kernel_entry *k, uint32_t i,
		  struct kernel_shape *out);
/* Compiles them all and appends the pack to `out`; for the build. */
bool kernel_pack(struct buf *out, struct err *e);

#endif
