/*
 * gemm_int - what the files of the GEMM front end share.
 */
#ifndef T0_GEMM_INT_H
#define T0_GEMM_INT_H

#include "compiler/gemm/gemm.h"

enum {
	GEMM_WAVE = 32,
	GEMM_FRAG = 16,
	GEMM_RUN = 4,
	GEMM_MAX_LOADS = 64,
	GEMM_MAX_FRAGS = 32, /* of B, straight from memory */
	GEMM_LANES_M = 8,    /* a wave's lanes on an f32 tile */
	GEMM_LANES_N = 4,
};

/* ------------------------------------------------------------- plan.c ---- */

/*
 * How the tile of one operand goes from memory to LDS.  Memory has `major` rows
 * of `minor` adjacent elements.  LDS has its own order: rows of K where matrix
 * instructions read, rows along M or N for f32.  Where both agree a lane moves
 * vectors; else blocks of `turn` by `vec` that it transposes in registers.
 */
struct gemm_side {
	uint32_t rows;	       /* of the tile along M or N */
	uint32_t major, minor; /* of the tile in memory */
	bool minor_k;	       /* K is adjacent in memory */
	uint32_t vec;	       /* adjacent elements of a load */
	uint32_t turn;	       /* 0: as in memory; else loads of a block */
	uint32_t along;	       /* of a turned side: lanes in a row whose blocks
				* lie along minor; then along major, so that
				* a wave has all along one of them */
	uint32_t steps;	       /* vectors, or blocks, of a work-item */
	/*
	 * Where row r begins in LDS, in elements: r / group * pitch +
	 * r % group * plane.  Neighbouring lanes store `vec` rows apart, which
	 * lie side by side so.
	 */
	uint32_t pitch, plane, group;
	uint32_t first;	       /* in a buffer, elements */
	/* I8, U8: integers with scales (weights.c); minor, vec are bytes */
	enum dsl_type stored;
	uint32_t chunk_mask;   /* swizzle: 16-byte chunks of a row, less 1 */
	uint32_t chunk_shift;  /* and the row's bits that move them */
};

struct gemm_plan {
	bool wmma;
	uint32_t elem_bytes, threads;
	uint32_t wave_m, wave_n;   /* tile of a wave */
	uint32_t frags_m, frags_n; /* of it; f32: elements of a lane */
	uint32_t slices;	   /* of the tile's K: 16, f32: 1 */
	/*
	 * A lane's sums are runs of GEMM_RUN neighbours in a row: frags_m rows
	 * of `runs`; 16 columns take runs_16.
	 */
	uint32_t runs, runs_16;
	uint32_t buffer;	   /* elements of an LDS buffer */
	uint32_t out_n;		   /* columns of C of a tile */
	struct gemm_side a, b;
};
/*
 * Rows of a fragment of B are read in another order, so that a lane's results
 * are neighbours in C: of its elements j, at row 2j + h of the fragment, four
 * and four are at columns 4h and 8 + 4h.
 */
static inline uint32_t gemm_frag_row(uint32_t r)
{
	return (r >> 1 & 3) | (r & 1) << 2 | (r & 8);
}
bool gemm_plan(const struct gemm_op *op, const struct gemm_config *c,
	       struct gemm_plan *p, struct err *e);
/* Element of K at byte `at` of a tile's row in memory. */
static inline uint32_t gemm_side_element(const struct gemm_side *s, uint32_t at)
{
	return s->stored == DSL_U8 ? at + at / 16 * 16 : at;
}

/* -------------------------------------------------------------- lds.c ---- */

/* Block of a turned side that work-item v has: row and column of blocks. */
struct gemm_block {
	uint32_t major, minor;
};
struct gemm_block gemm_block_of(const struct gemm_side *s, uint32_t v);
/* Lanes of a wave along major, for each of those along minor. */
static inline uint32_t gemm_across(const struct gemm_side *s)
{
	return GEMM_WAVE / s->along;
}
/* Pitch and plane of rows of `row` elements with the fewest bank conflicts. */
void gemm_lds_pad(const struct gemm_plan *p, struct gemm_side *s, uint32_t row);
/* Cycles of an access of `bytes` per lane (RDNA3: 32 banks of 4 bytes). */
uint32_t gemm_lds_cycles(const uint32_t *addr, uint32_t lanes, uint32_t bytes);

/*
 * An element of row `row` + `more` of an operand's tile, from LDS's first;
 * `more` is a multiple of the group.
 */
struct gemm_place {
	struct val at; /* i32 */
	uint32_t add;
};
struct gemm_place gemm_lds_place(const struct gemm_side *s, struct val row,
				 uint32_t more, struct val e,
				 uint32_t elem_bytes);
/* The same of a `row` that is a multiple of the group, with any `more`. */
struct gemm_place gemm_lds_place_block(const struct gemm_side *s,
				       struct val row, uint32_t more,
				       struct val e, uint32_t elem_bytes);

/* ------------------------------------------------------------- build.c --- */

/* Arguments of both kernels: id, DSL type, pointer's use. */
#define GEMM_ARGS(PTR, LONG, INT, FLOAT)                            \
	PTR(a) PTR(b) PTR(c) PTR(bias) PTR(residual) PTR(workspace) \
	PTR(scale)                                                  \
	LONG(stride_a) LONG(stride_b) LONG(stride_c)                \
	INT(m) INT(n) INT(k) INT(lda) INT(ldb) INT(ldc)             \
	INT(tiles_m) INT(tiles_n) INT(part) INT(batch) INT(aligned) \
	FLOAT(alpha) FLOAT(beta)

/* aligned: rows of A and B begin at even addresses. */
struct gemm_args {
#define ONE(name) struct val name;
	GEMM_ARGS(ONE, ONE, ONE, ONE)
#undef ONE
};
void gemm_args(struct dsl *k, const struct gemm_op *op,
	       const struct gemm_config *c, struct gemm_args *a);

/* One operand in a kernel being built. */
struct gemm_feed {
	const struct gemm_side *s;
	struct val base;  /* tile's first element at K = 0; uniform */
	struct val ld;	  /* i32 */
	struct val valid; /* rows along M or N that are there; i32, uniform */
	struct val at[GEMM_MAX_LOADS]; /* offsets of this lane's loads */
	/* Of weights, as base, ld and at: one scale for each load. */
	struct val scale, scale_ld, scale_at[GEMM_MAX_LOADS];
};

struct gemm_gen {
	const struct gemm_op *op;
	const struct gemm_config *c;
	struct gemm_plan p;
	struct dsl *k;
	struct gemm_args arg;
	struct val lds;
	struct val row, column; /* of the tile in C, i32, uniform */
	struct val batch;	/* i32, uniform */
	struct gemm_feed a, b;
	struct val wave_row, wave_column; /* of the wave in the tile */
	struct var *acc; /* [frags_m][frags_n] */
};

/* ------------------------------------------------------------- feed.c ---- */

/* Loads of a tile, waiting in registers. */
struct gemm_stage {
	struct val v[GEMM_MAX_LOADS];
	uint32_t n;
};
/* Row r of the tile along M or N in memory; is it there? */
struct val gemm_feed_row(const struct gemm_gen *g, const struct gemm_feed *f,
			 struct val r, bool clamp);
struct val gemm_feed_has(const struct gemm_gen *g, const struct gemm_feed *f,
			 struct val r);
void gemm_feed_init(struct gemm_gen *g, struct gemm_feed *f);
/* The tile that begins at element k of K, all of it inside. */
void gemm_feed_load(const struct gemm_feed *f, struct val k,
		    struct gemm_stage *s);
void gemm_feed_store(struct gemm_gen *g, const struct gemm_feed *f,
		     const struct gemm_stage *s, struct val buffer);
/* Straight to LDS, with zeros for what is outside. */
void gemm_feed_masked(struct gemm_gen *g, const struct gemm_feed *f,
		      struct val k, struct val end, struct val buffer);

struct val gemm_lds_at(const struct gemm_gen *g, const struct gemm_place *p,
		       struct val buffer);

/* ---------------------------------------------------------- weights.c ---- */

/* Scales of the loads: offsets, and loads behind the integers' in a stage. */
void gemm_scales_init(struct gemm_gen *g, struct gemm_feed *f, uint32_t j,
		      struct val row, struct val byte);
void gemm_scales_load(const struct gemm_feed *f, struct val k,
		      struct gemm_stage *s);
/*
 * What a load at `byte` of row `row` + `more` brought, as elements in the type
 * of the products to LDS.
 */
void gemm_weights_store(struct gemm_gen *g, const struct gemm_side *s,
			struct val loaded, struct val scale, struct val row,
			uint32_t more, struct val byte, struct val buffer);
/* One load with its scale; nothing is read where `in` is false. */
void gemm_weights_masked(struct gemm_gen *g, const struct gemm_feed *f,
			 struct val row, struct val byte, struct val k,
			 struct val end, struct val *loaded, struct val *scale);

/* ----------------------------------------------------------- direct.c ---- */

/* The fragments of B of this wave, as they come from memory; [slices][n]. */
void gemm_direct_init(struct gemm_gen *g);
void gemm_direct_load(struct gemm_gen *g, struct val k, struct gemm_stage *s);
void gemm_direct_masked(struct gemm_gen *g, struct val k, struct val end,
			struct gemm_stage *s);

/* ---------------------------------------------------------- product.c ---- */

/* Row of a fragment of B that this lane reads. */
struct val gemm_lane_row_n(struct gemm_gen *g);
/* acc += the tile in LDS at element `buffer`; `b`: B, unless from there. */
void gemm_product(struct gemm_gen *g, struct val buffer,
		  const struct gemm_stage *b);
/* Run c of row group i: its sums, its place in the workgroup's tile. */
struct val gemm_run_sums(struct gemm_gen *g, uint32_t i, uint32_t c);
struct val gemm_run_row(struct gemm_gen *g, uint32_t i);
struct val gemm_run_column(struct gemm_gen *g, uint32_t c);

/* --------------------------------------------------------- epilogue.c ---- */

typedef struct val gemm_sums_fn(struct gemm_gen *g, uint32_t i, uint32_t c);
/* C, of row groups [from, to), whose sums sums() gives. */
void gemm_epilogue(struct gemm_gen *g, gemm_sums_fn *sums, uint32_t from,
		   uint32_t to);

/* ------------------------------------------------------------ parts.c ---- */

/* The sums go to this slot of the workspace. */
void gemm_part_store(struct gemm_gen *g, struct val slot);
/* All that this workgroup of a stream-K grid does; tile() makes one. */
typedef void gemm_tile_fn(struct gemm_gen *g, struct val from, struct val end,
			  struct val whole, struct val slot);
void gemm_stream(struct gemm_gen *g, gemm_tile_fn *tile);
/* The second kernel: adds parts up. */
struct ssa_func *gemm_build_reduce(const struct gemm_op *op,
				   const struct gemm_config *c, struct err *e);
bool gemm_has_parts(const struct gemm_config *c);

/* ------------------------------------------------------------ build.c ---- */

/* Which tile, of which product of the batch; row, column, feeds follow. */
void gemm_place_tile(struct gemm_gen *g, struct val tile_m, struct val tile_n);
void gemm_waves_init(struct gemm_gen *g, struct val wave);
/* The first kernel. */
struct ssa_func *gemm_build_main(const struct gemm_op *op,
				 const struct gemm_config *c, struct err *e);

#endif
