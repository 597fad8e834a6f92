/*
 * gemm - matrix products as tile kernels, made through the DSL and the
 * compiler.
 *
 *	struct gemm_op op = { .in = DSL_BF16, .out = DSL_BF16,
 *			      .b_trans = true };
 *	struct gemm_config c = gemm_default(&op);
 *	struct gemm_code code;
 *	struct gemm_launch l;
 *
 *	gemm_check(&op, &c, &e) && gemm_compile(&op, &c, &o, &code, &e) &&
 *	gemm_fits(&op, &c, &shape, &e) &&
 *	gemm_launch(&op, &c, &shape, &operands, &l, &e)
 *
 * op says what is computed, config how, shape how large.  Code depends on op
 * and config alone; sizes are arguments of the kernel, so one object does for
 * every M, N and K (0, 1 and odd ones, too), unless config.even promises that
 * tiles divide the shape.
 *
 *	x = alpha A B + beta C + bias[n]	(alpha: GEMM_SCALE, else 1)
 *	x = act(x)				(at most one activation)
 *	x = x / 64				(GEMM_SHRINK)
 *	C = round(x + residual)
 *
 * A is M x K, stored row-major with `lda` elements from row to row; with
 * a_trans it is stored K x M.  B is K x N, with b_trans stored N x K.  C and
 * the residual are M x N, row-major with ldc.  The bias has N elements of the
 * type of C.  With GEMM_SWIGLU B has 2N columns, first those of the gate, then
 * those of the other factor, bias as well: C = silu(gate) * other.
 * Products and sums are f32 (i32 for i8); bf16 and f16 are rounded to nearest
 * even, once.
 *
 * B may be of integers of 8 or 4 bits, of which GEMM_GROUP neighbours in K
 * share a scale: N x K int8_t, or N x K/2 bytes, where byte j of a group of 32
 * holds element j in its low and j + 16 in its high half, 8 added; scales are
 * f16, N x K/32.  An element of B is its integer times its scale, rounded to
 * the type of A on its way to LDS.  K, ldb and stride_b are multiples of 32
 * elements and B lies at a multiple of 16 bytes.
 *
 * Launches: the main kernel, then, for split or stream_k, one that adds up what
 * several workgroups have of a tile and applies the epilogue.  Both take their
 * arguments from the struct gemm_launch, in stream order.
 */
#ifndef T0_GEMM_H
#define T0_GEMM_H

#include "compiler/driver/cc.h"
#include "compiler/dsl/dsl.h"

/* Epilogues, in the order in which they are applied. */
enum {
	GEMM_SCALE = 1 << 0, /* alpha */
	GEMM_BIAS = 1 << 1,
	GEMM_RELU = 1 << 2, /* at most one from here ... */
	GEMM_SILU = 1 << 3,
	GEMM_GELU = 1 << 4,
	GEMM_SWIGLU = 1 << 5, /* ... to here */
	GEMM_SHRINK = 1 << 6, /* f16 then holds what no bound is known of */
	GEMM_RESIDUAL = 1 << 7,
};
#define GEMM_SHRINK_BY 64
#define GEMM_ACTIVATIONS (GEMM_RELU | GEMM_SILU | GEMM_GELU | GEMM_SWIGLU)

enum { GEMM_GROUP = 32 };

struct gemm_op {
	enum dsl_type in;  /* of A and B: BF16, F16, I8, F32 */
	enum dsl_type out; /* of C: F32, BF16, F16; I8 also I32 */
	/* NONE: B is as A; else I8, U8 for two of 4 bits, of f16 or bf16 */
	enum dsl_type weights;
	bool a_trans, b_trans;
	bool beta;	  /* C is read, too */
	uint8_t epilogue; /* GEMM_... */
};

/*
 * How LDS keeps its banks busy; amounts are computed (lds.c).  Operands that
 * are turned on the way are always padded.
 */
enum gemm_lds { GEMM_LDS_PAD, GEMM_LDS_SWIZZLE };

struct gemm_config {
	uint16_t m, n, k;	  /* tile of a workgroup */
	uint8_t waves_m, waves_n; /* the waves' grid on it */
	uint8_t buffers;	  /* tiles in LDS: 1, 2, 3 */
	uint8_t prefetch;	  /* tiles ahead in registers: 0, 1, 2 */
	uint8_t unroll;		  /* of the K loop, in tiles: 1 to 4 */
	uint8_t order;		  /* rows of tiles in a band that runs through
				   * all columns (for L2); a power of two; 0:
				   * row by row */
	enum gemm_lds lds;
	bool b_direct; /* fragments of B from memory, not through LDS */
	bool cu_mode;  /* else WGP mode */
	bool even;     /* tiles divide M, N, K; rows and operands lie at
			* multiples of 16 bytes */
	bool stream_k; /* as many workgroups as `split` says share all work */
	uint32_t split; /* of K, 1: none; stream_k: workgroups */
};
/* Both have no padding, so that memcmp() compares them. */
_Static_assert(sizeof(struct gemm_op) == 3 * sizeof(enum dsl_type) + 4, "");
_Static_assert(sizeof(struct gemm_config) == 20 + sizeof(enum gemm_lds), "");

/* Strides in elements; 0 for a leading dimension: dense. */
struct gemm_shape {
	uint32_t m, n, k, batch; /* batch 0 is 1 */
	uint64_t lda, ldb, ldc;
	uint64_t stride_a, stride_b, stride_c; /* from product to product */
};

/* Device addresses; those that the op does not name are not used. */
struct gemm_operands {
	uint64_t a, b, c, bias, residual;
	uint64_t scale; /* of B, where it is of integers */
	uint64_t workspace; /* of gemm_launch.workspace_bytes */
	float alpha, beta;
};

enum { GEMM_KERNELS = 2, GEMM_ARGS_BYTES = 192 };

/* One or two objects with a kernel each. */
struct gemm_code {
	struct cc_object object[GEMM_KERNELS];
	int n;
};

struct gemm_launch {
	struct {
		const char *kernel;  /* its name in the object */
		uint32_t groups[3];  /* workgroups; 0: nothing to launch */
		uint32_t group_size; /* work-items */
		uint32_t args_bytes;
		uint8_t args[GEMM_ARGS_BYTES];
	} step[GEMM_KERNELS];
	int n;
	uint64_t workspace_bytes;
};

/* ----------------------------------------------------------- config.c ---- */

/* A configuration that every shape of this op may run with. */
struct gemm_config gemm_default(const struct gemm_op *op);
/*
 * The same, but good for a product of about this size: one of a few, by the
 * simulator.  Of thousands of rows it may be `even`: of this size only.
 */
struct gemm_config gemm_default_for(const struct gemm_op *op, uint32_t m,
				    uint32_t n, uint32_t k);
/*
 * Can there be such a kernel?  What is known before compiling: registers that
 * the accumulators alone need, LDS, shares of waves.  *e has the reason.
 */
bool gemm_check(const struct gemm_op *op, const struct gemm_config *c,
		struct err *e);
/*
 * The same for many configurations of one operation, most quickly where those
 * that differ in flow alone (buffers, split, order) come one after another.
 */
struct gemm_checker *gemm_checker_new(const struct gemm_op *op);
void gemm_checker_free(struct gemm_checker *k);
bool gemm_checker_check(struct gemm_checker *k, const struct gemm_config *c,
			struct err *e);
/* May this shape run with it? */
bool gemm_fits(const struct gemm_op *op, const struct gemm_config *c,
	       const struct gemm_shape *s, struct err *e);

/* ------------------------------------------------------------- name.c ---- */

/*
 * One text form each, for people and the database:
 *
 *	bf16_nt_bf16+bias+silu			in, A and B n or t, out, ...
 *	f16w4_nt_f32				B of 4 bits (w8: of 8)
 *	128x128x32_w2x2_b2_p1_u1_g8_pad_wgp_even
 *				and the rest: _direct _sk _split4
 *
 * Return what snprintf() does.
 */
int gemm_op_name(const struct gemm_op *op, char *buf, size_t size);
int gemm_config_name(const struct gemm_config *c, char *buf, size_t size);
bool gemm_op_parse(const char *text, struct gemm_op *op, struct err *e);
bool gemm_config_parse(const char *text, struct gemm_config *c, struct err *e);

/* ---------------------------------------------------------- compile.c ---- */

/*
 * Of `o` the chip, level, costs and dump are used (NULL: defaults); the mode is
 * the configuration's.  A kernel that spills is not refused: see the stats.
 */
bool gemm_compile(const struct gemm_op *op, const struct gemm_config *c,
		  const struct cc_options *o, struct gemm_code *out,
		  struct err *e);
/* The same from the cache of `j`, if it is there; then without stats. */
bool gemm_object(struct object_cache *j, const struct gemm_op *op,
		 const struct gemm_config *c, const struct cc_options *o,
		 struct gemm_code *out, struct err *e);
void gemm_code_fini(struct gemm_code *code);

/* ----------------------------------------------------------- launch.c ---- */

/*
 * Grid, arguments and workspace.  Call it with workspace 0 to learn the size
 * first.  An empty product (M, N or batch of 0) has steps of 0 groups.
 */
bool gemm_launch(const struct gemm_op *op, const struct gemm_config *c,
		 const struct gemm_shape *s, const struct gemm_operands *x,
		 struct gemm_launch *out, struct err *e);

#endif
