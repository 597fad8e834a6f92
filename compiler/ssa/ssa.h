/*
 * ssa - the compiler's middle: a kernel in static single assignment form.
 *
 * A function is the program of one work-item (one lane).  Lanes of a wave run
 * it in lockstep under an execution mask; what is the same in all lanes of a
 * wave is *uniform* and may live in scalar registers.
 *
 * Shape.  A function is a graph of blocks.  A block has parameters (the phis),
 * a list of instructions and one terminator; an edge carries one argument for
 * each parameter of its target.  Control flow is structured:
 * - a `branch` that does not close or leave a loop names its merge block, the
 *   block that both sides reach and that it dominates; nothing else goes
 *   there, and the two edges of a branch go to different blocks;
 * - a loop has one header (the only entry, target of its only back edge) and
 *   leaves from the header or the latch only, to one exit block that has no
 *   other predecessor; the leaving branch has merge == NULL;
 * - exactly one block returns;
 * - ssa_check() proves all, and with them every lane reconverges.
 * So the back end can turn a divergent branch into masked straight code.
 *
 * Values.  An instruction is its value.  Definitions dominate uses.  A value
 * defined in a loop and used behind it passes through the exit block's
 * parameters (loop-closed form): lanes that left in different iterations hold
 * different values there.
 *
 * Types.  A scalar, or a vector of up to SSA_MAX_LANES scalars that is only
 * loaded, stored, packed, taken apart and given to matrix operations.
 * Arithmetic is on scalars, and on packed pairs of 16-bit elements.  `ptr` is a
 * 64-bit global address, `lds` a 32-bit byte address in the group's memory.
 * i8 and bf16 are stored, moved and converted, never computed with; i1 is never
 * in memory.  compiler/ssa/ssa.def says which types each operation takes.
 *
 * Memory.  Accesses name a base, an unsigned 32-bit byte offset and a constant,
 * as the hardware addresses memory; `align` is the known alignment in bytes.
 * Global pointers that come from different arguments marked noalias do not
 * overlap.  Order between accesses of a lane is kept where one of them writes
 * and they may overlap; across barrier and fence always.  Two lanes, of one
 * wave too, that reach the same bytes, one writing, have a race unless a
 * barrier stands between or both are atomic.
 *
 * Floating point.  Every operation is rounded as IEEE says; an instruction with
 * SSA_CONTRACT may be fused with another such into fma, and an fma with it may
 * leave its rounding to the conversion to f16 that alone uses it; one with
 * SSA_FAST may use the hardware's approximation (its bound is in
 * compiler/ssa/ssa.def), one with SSA_REASSOC may be reordered in a reduction.
 * Nothing else is ever assumed; NaN and infinity are always kept.
 *
 * Ownership: everything belongs to the function's arena; ssa_func_free() frees
 * all at once.  Not thread-safe per function; two threads may work on two.
 */
#ifndef T0_COMPILER_SSA_H
#define T0_COMPILER_SSA_H

#include "base/base.h"

#define SSA_MAX_LANES 16 /* elements of a vector */
#define SSA_MAX_ARGS 64	 /* of a kernel */
/* The argument of a kernel with printf: the runtime's ring (kfd/runtime). */
#define SSA_PRINTF_RING "t0_printf_ring"

enum ssa_kind {
	SSA_VOID,
	SSA_I1,
	SSA_I8,
	SSA_I16,
	SSA_I32,
	SSA_I64,
	SSA_F16,
	SSA_BF16,
	SSA_F32,
	SSA_F64,
	SSA_PTR,
	SSA_LDS,
	SSA_KINDS
};

struct ssa_type {
	uint8_t kind; /* enum ssa_kind */
	uint8_t n;    /* elements; 1 for a scalar, 0 for SSA_VOID */
};

enum ssa_op {
#define OP(name, args, result, flags) SSA_##name,
#include "compiler/ssa/ssa.def"
	SSA_OPS
};

/* Predicates of icmp (EQ NE, S.. signed, U.. unsigned) and fcmp (O.. ordered:
 * false with a NaN; U.. unordered: true with a NaN; ORD, UNO). */
enum ssa_pred {
	SSA_EQ, SSA_NE,
	SSA_SLT, SSA_SLE, SSA_SGT, SSA_SGE,
	SSA_ULT, SSA_ULE, SSA_UGT, SSA_UGE,
	SSA_FOEQ, SSA_FONE, SSA_FOLT, SSA_FOLE, SSA_FOGT, SSA_FOGE,
	SSA_FUEQ, SSA_FUNE, SSA_FULT, SSA_FULE, SSA_FUGT, SSA_FUGE,
	SSA_ORD, SSA_UNO,
	SSA_PREDS
};

/* What atomics, reductions and scans do. */
enum ssa_rmw {
	SSA_RMW_XCHG, /* atomics only */
	SSA_RMW_ADD,
	SSA_RMW_MIN_S, SSA_RMW_MAX_S, SSA_RMW_MIN_U, SSA_RMW_MAX_U,
	SSA_RMW_AND, SSA_RMW_OR, SSA_RMW_XOR,
	SSA_RMW_FADD, SSA_RMW_FMIN, SSA_RMW_FMAX,
	SSA_RMWS
};

/*
 * Matrix products D = A B + C of one wave (wave32).  A and B: 16 elements of
 * f16 or bf16 ({f16,16}), 16 bytes ({i32,4}), or 16 nibbles ({i32,2}); lane l
 * holds row (A) or column (B) l % 16, the same in lanes l and l + 16.  C and D:
 * {f32,8} or {i32,8}; element j of lane l is row 2j + l / 16, column l % 16;
 * for 16-bit accumulators {f16,16} or {bf16,16}, of which element 2j counts.
 */
enum ssa_wmma {
	SSA_WMMA_F32_F16, SSA_WMMA_F32_BF16,
	SSA_WMMA_F16_F16, SSA_WMMA_BF16_BF16,
	SSA_WMMA_I32_IU8, SSA_WMMA_I32_IU4, /* flags SSA_SIGNED_A, _B */
	SSA_WMMAS
};

/* Flags of an instruction. */
enum {
	SSA_CONTRACT = 1 << 0,
	SSA_FAST = 1 << 1,
	SSA_REASSOC = 1 << 2,
	SSA_VOLATILE = 1 << 3,	 /* memory: never merged, moved or removed */
	SSA_STREAM = 1 << 4,	 /* memory: used once, do not keep in caches */
	SSA_INVARIANT = 1 << 5,	 /* load: nobody writes there meanwhile */
	SSA_SIGNED_A = 1 << 6,
	SSA_SIGNED_B = 1 << 7,
	SSA_NUW = 1 << 8,	 /* integer: never wraps as unsigned */
	SSA_NSW = 1 << 9,	 /* never wraps as signed */
	/* Set by ssa_uniform(), valid until the function changes. */
	SSA_UNIFORM = 1 << 10,
};

struct ssa_block;

/* An edge; n_args equals the target's number of parameters. */
struct ssa_edge {
	struct ssa_block *to;
	struct ssa_inst **arg;
	uint32_t n_args;
};

struct ssa_inst {
	uint16_t op;		/* enum ssa_op */
	uint8_t sub;		/* ssa_pred, ssa_rmw or ssa_wmma, by op */
	uint8_t align;		/* memory: log2 of the known alignment */
	struct ssa_type type;	/* of the result */
	uint16_t flags;
	uint32_t id;		/* unique in the function; the name %id */
	uint32_t line;		/* in the kernel's source, 0 = unknown */
	int32_t off;		/* memory: constant byte offset */
	uint32_t n_args;
	uint64_t imm;		/* by op, see compiler/ssa/ssa.def */
	struct ssa_inst **arg;
	struct ssa_block *block;
	struct ssa_inst *prev, *next;
	/* terminators only */
	struct ssa_edge edge[2];
	struct ssa_block *merge;
	/* for the pass that runs: any meaning, undefined before */
	union {
		void *ptr;
		uint64_t num;
	} tmp;
};

struct ssa_block {
	uint32_t id;
	struct ssa_inst **param;
	uint32_t n_params;
	struct ssa_inst *first, *last; /* last: the terminator */
	struct ssa_block *prev, *next; /* layout order; first = entry */
	/* filled by ssa_analyse(), valid until edges change */
	struct ssa_block **pred;
	uint32_t n_preds;
	struct ssa_block *idom;
	struct ssa_block *loop; /* header of the innermost loop, or NULL */
	uint32_t loop_depth, rpo;
	union {
		void *ptr;
		uint64_t num;
	} tmp;
};

struct ssa_arg {
	const char *name;
	struct ssa_type type;
	struct ssa_type elem; /* of a ptr: what it points to */
	bool noalias, readonly;
	uint32_t offset; /* in the kernarg segment, bytes */
};
/* The argument that is printf's ring; the runtime knows it by this name. */
#define SSA_PRINTF_RING "t0_printf_ring"

struct ssa_lds {
	const char *name;
	uint32_t size_bytes, align_bytes;
};

struct ssa_func {
	const char *name;
	const char *file;    /* source of `line`, or NULL */
	uint32_t group[3];   /* work-items of a workgroup, when compiled */
	uint32_t wave;	     /* 32 (64 where no wmma is used) */
	uint32_t waves;	     /* per SIMD that are enough: registers that more
				would need are free; 0: none are */
	struct ssa_arg *arg;
	uint32_t n_args;
	struct ssa_lds *lds;
	uint32_t n_lds;
	const char **format; /* of printf */
	uint32_t n_formats;
	struct ssa_block *first, *last;
	uint32_t n_insts, n_blocks; /* ids given out, not what is alive */
	struct arena *arena;
};

/* ------------------------------------------------------------- ssa.c ---- */

struct ssa_op_info {
	const char *name;
	int8_t n_args;	 /* -1: varies */
	char result;	 /* 'N' 'A' 'B' 'T', compiler/ssa/ssa.def */
	uint16_t flags;	 /* enum ssa_op_flag */
};
enum ssa_op_flag {
	SSA_OP_PURE = 1, SSA_OP_COMMUTES = 2, SSA_OP_READS = 4,
	SSA_OP_WRITES = 8, SSA_OP_CROSSES = 16, SSA_OP_SAME = 32,
	SSA_OP_ENDS = 64,
};
const struct ssa_op_info *ssa_op_info(enum ssa_op op);
uint32_t ssa_kind_bits(enum ssa_kind kind); /* i1: 1 */
uint32_t ssa_type_bytes(struct ssa_type t); /* in memory; i1: 1 */
bool ssa_type_eq(struct ssa_type a, struct ssa_type b);
bool ssa_kind_is_int(enum ssa_kind kind);   /* i1 to i64 */
bool ssa_kind_is_float(enum ssa_kind kind); /* f16, bf16, f32, f64 */
uint32_t ssa_n_edges(const struct ssa_inst *i); /* 0 if no terminator */
/* The enum ssa_pred that holds of b and a where `pred` does of a and b. */
uint8_t ssa_pred_swap(uint8_t pred);
static inline struct ssa_type ssa_type(enum ssa_kind kind, uint32_t n)
{
	return (struct ssa_type){ (uint8_t)kind, (uint8_t)n };
}

/* Both own their arena; new functions are empty, without blocks. */
struct ssa_func *ssa_func_new(const char *name);
void ssa_func_free(struct ssa_func *f);
struct ssa_func *ssa_func_copy(const struct ssa_func *f);

/* The new one's number; an argument's offset follows from its type. */
uint32_t ssa_arg_add(struct ssa_func *f, const char *name, struct ssa_type t);
uint32_t ssa_lds_add(struct ssa_func *f, const char *name, uint32_t size_bytes,
		     uint32_t align_bytes);
uint32_t ssa_format_add(struct ssa_func *f, const char *format);

struct ssa_block *ssa_block_new(struct ssa_func *f);	/* appended */
struct ssa_block *ssa_block_after(struct ssa_func *f, struct ssa_block *b);
struct ssa_inst *ssa_block_param(struct ssa_func *f, struct ssa_block *b,
				 struct ssa_type t);
void ssa_block_unlink(struct ssa_func *f, struct ssa_block *b);
/* Made but not placed; `arg` is copied. */
struct ssa_inst *ssa_inst_new(struct ssa_func *f, enum ssa_op op,
			      struct ssa_type t, uint32_t n_args,
			      struct ssa_inst *const *arg);
struct ssa_inst **ssa_args_copy(struct ssa_func *f, uint32_t n,
				struct ssa_inst *const *arg);
struct ssa_inst *ssa_const(struct ssa_func *f, struct ssa_type t,
			   uint64_t bits);
void ssa_append(struct ssa_block *b, struct ssa_inst *i);
/* Ends block `from`; `arg` is copied. */
struct ssa_inst *ssa_jump_to(struct ssa_func *f, struct ssa_block *from,
			     struct ssa_block *to, uint32_t n,
			     struct ssa_inst *const *arg);
void ssa_insert_before(struct ssa_inst *at, struct ssa_inst *i);
void ssa_insert_after(struct ssa_inst *at, struct ssa_inst *i);
void ssa_unlink(struct ssa_inst *i);
/* Every use of `from` in the function, edges included, becomes `to`. */
void ssa_replace(struct ssa_func *f, struct ssa_inst *from,
		 struct ssa_inst *to);
void ssa_edge_set(struct ssa_func *f, struct ssa_edge *edge,
		  struct ssa_block *to, uint32_t n,
		  struct ssa_inst *const *arg);
void ssa_edge_add(struct ssa_func *f, struct ssa_edge *edge,
		  struct ssa_inst *arg);

/* --------------------------------------------------------- analyse.c ---- */

/*
 * Predecessors, dominators, loops; drops dead blocks.  Then the layout is a
 * reverse postorder (definitions stand before uses, edges to earlier blocks are
 * back edges) in which the blocks of a loop are adjacent, and those of a
 * branch's first side stand before those of its second; `rpo` counts it.
 */
void ssa_analyse(struct ssa_func *f);
bool ssa_dominates(const struct ssa_block *a, const struct ssa_block *b);
/* Is b in the loop of this header, or in a loop in it? */
bool ssa_loop_has(const struct ssa_block *head, const struct ssa_block *b);
/*
 * Sets SSA_UNIFORM on every value that is the same in all active lanes of a
 * wave wherever it is used, and on branches whose condition is.
 */
void ssa_uniform(struct ssa_func *f);

/* ----------------------------------------------------------- check.c ---- */

/* Everything that this header promises; the message names value and line. */
bool ssa_check(struct ssa_func *f, struct err *e);

/* --------------------------------------------- ssa_names.c, ssa_parse.c ---- */

/*
 * One line per instruction; ssa_parse() reads back exactly what was printed.
 *
 *	kernel saxpy group 64 1 1 wave 32	; behind it may stand: waves 8
 *	arg x ptr f32 noalias readonly		; or: arg n i32
 *	lds tile 1024 align 16
 *	format "x is %d\n"
 *	b0:
 *		%0 = arg ptr 0
 *		%1 = const i32 0x10
 *		%2 = load f32x4 %0, %1 +32 align 16 invariant !12
 *		%3 = icmp.slt i1 %1, %9
 *		branch %3, b1(%2, %1), b2 merge b3
 *	b1(%4 f32x4, %5 i32):
 *
 * A result has its type behind the operation; then operands, the immediate,
 * +offset, align (bytes), flags, !line of the source; `;` starts a comment.
 * The offset of an argument follows from the types before it.
 */
void ssa_print(const struct ssa_func *f, struct buf *out);
struct ssa_func *ssa_parse(const char *text, struct err *e);

/* ----------------------------------------------------------- alias.c ---- */

/* What a load, store, atomic or cmpxchg touches. */
struct ssa_place {
	struct ssa_inst *root; /* the pointer under all ptradds */
	struct ssa_inst *base, *off;
	int64_t add;	 /* constant bytes from base + off */
	uint32_t size;	 /* bytes */
	struct ssa_inst *mask; /* or NULL */
};
bool ssa_is_access(const struct ssa_inst *i);
struct ssa_place ssa_place(const struct ssa_inst *i);
/* Never the same byte (in one lane)? */
bool ssa_disjoint(const struct ssa_func *f, const struct ssa_inst *a,
		  const struct ssa_inst *b);
/* The same bytes exactly, under the same mask? */
bool ssa_same_place(const struct ssa_inst *a, const struct ssa_inst *b);
/* May i write what load `l` reads, in this or another lane? */
bool ssa_may_clobber(const struct ssa_func *f, const struct ssa_inst *i,
		     const struct ssa_inst *l);

/* ----------------------------------------------------------- range.c ---- */

/*
 * What is known about integer scalars without running: bounds as unsigned
 * numbers of the type's width, and how many low bits are zero.  Facts hold
 * wherever the value is used.  They come from the definition alone, a few steps
 * deep; ssa_analyse() must be valid.
 */
struct ssa_bounds {
	uint64_t min, max;
};
struct ssa_bounds ssa_bounds(const struct ssa_func *f,
			     const struct ssa_inst *i);
uint32_t ssa_zero_bits(const struct ssa_inst *i); /* low ones */
/* Is a + b, as unsigned numbers, the sum? */
bool ssa_adds_exactly(const struct ssa_func *f, const struct ssa_inst *a,
		      const struct ssa_inst *b);
/* Is it 0 or positive as a signed number? */
bool ssa_never_negative(const struct ssa_func *f, const struct ssa_inst *i);

/* ------------------------------------------------------------ eval.c ---- */

/*
 * What a pure operation on scalars and packed pairs computes from the bits of
 * its operands; constant folding and the tests' interpreter both ask here, so
 * that they cannot disagree.  A scalar is its bits, zero-extended to 64; a
 * packed pair has element 0 in the low half of 32 bits.  NaN results are quiet,
 * with any sign.  Operations of limited accuracy (compiler/ssa/ssa.def) are
 * computed in double precision and rounded once; ssa_eval_exact() says which
 * those are not.  False if the operation is no pure one on these (leaves, pack,
 * extract; ptr of unknown place).  ptradd of lds is done modulo 2^32.
 */
bool ssa_eval(const struct ssa_inst *i, const uint64_t *arg, uint64_t *out);
/* Is every device's result the same, bit for bit (any NaN equal)? */
bool ssa_eval_exact(const struct ssa_inst *i);
/* a op b, as atomics, reductions and scans combine; t is a scalar. */
uint64_t ssa_eval_rmw(enum ssa_rmw op, struct ssa_type t, uint64_t a,
		      uint64_t b);
/* What leaves a reduction over nothing. */
uint64_t ssa_rmw_identity(enum ssa_rmw op, struct ssa_type t);
bool ssa_eval_pred(enum ssa_pred p, enum ssa_kind kind, uint64_t a, uint64_t b);

/* ----------------------------------------------------------- float.c ---- */

/* Bits of f16, bf16, f32 or f64 and the number, rounded to nearest even. */
double ssa_bits_to_f64(enum ssa_kind kind, uint64_t bits);
uint64_t ssa_f64_to_bits(enum ssa_kind kind, double v);
/* a b + c rounded once to the kind. */
uint64_t ssa_fma_bits(enum ssa_kind kind, uint64_t a, uint64_t b, uint64_t c);

/* Sign-extended from the kind's width; and cut to it. */
static inline int64_t ssa_bits_to_s(enum ssa_kind kind, uint64_t bits)
{
	const uint32_t drop = 64 - ssa_kind_bits(kind);

	return (int64_t)(bits << drop) >> drop;
}
static inline uint64_t ssa_bits_cut(enum ssa_kind kind, uint64_t v)
{
	return v << (64 - ssa_kind_bits(kind)) >> (64 - ssa_kind_bits(kind));
}

/* ----------------------------------------------------------- clone.c ---- */

/*
 * Copies of parts of a function, for passes that repeat code: what stands for
 * a value or a block in the copy; NULL: itself.
 */
struct ssa_clone {
	struct ssa_func *f;
	struct ssa_inst **value;  /* by id, [n_values] */
	struct ssa_block **block; /* by id, [n_blocks] */
	uint32_t n_values, n_blocks;
};
/* For what the function has now; what is made later stands for itself. */
void ssa_clone_init(struct ssa_clone *c, struct ssa_func *f);
void ssa_clone_fini(struct ssa_clone *c);
void ssa_clone_set(struct ssa_clone *c, const struct ssa_inst *from,
		   struct ssa_inst *to);
struct ssa_inst *ssa_cloned(const struct ssa_clone *c, struct ssa_inst *i);
/* Forgets all values and blocks. */
void ssa_clone_reset(struct ssa_clone *c);
/* An empty block with copies of b's parameters, at the end of the layout. */
struct ssa_block *ssa_clone_block(struct ssa_clone *c,
				  const struct ssa_block *b);
/* Appends copies of from..to (not with `to`; NULL: all) to a block. */
void ssa_clone_insts(struct ssa_clone *c, struct ssa_inst *from,
		     const struct ssa_inst *to, struct ssa_block *at);

#endif
