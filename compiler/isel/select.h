/*
 * select - what the files of instruction selection share.
 *
 * A walk over the structured control flow gives each SSA value an operand:
 * a virtual register, or a constant that instructions take directly.  Three
 * classes of values:
 * - C: constants of up to 32 bits, no register;
 * - S: the same in all lanes, in scalar registers;
 * - V: one value per lane, in vector registers.
 * i1 is always a lane mask in scalar registers; bits of lanes that are off mean
 * nothing.  Bits above the width of i8, i16, f16 and bf16 mean nothing either:
 * who looks at them extends first (sel_ext()).
 */
#ifndef T0_COMPILER_SELECT_H
#define T0_COMPILER_SELECT_H

#include "base/base.h"
#include "compiler/mir/mir.h"
#include "compiler/ssa/ssa.h"

enum sel_class { SEL_C, SEL_S, SEL_V };

struct sel_val {
	struct mir_opnd o;
	uint8_t cls; /* enum sel_class */
	bool made;
	uint32_t uses;
	struct mir_opnd upper; /* of 16 bits: also the upper half of this */
	struct mir_opnd dealt[2];	/* as A and as B of a chip's matrices ... */
	struct mir_block *dealt_in[2];	/* ... in this block */
};

/* A loop that the walk is in. */
struct sel_loop {
	struct ssa_block *header, *exit;
	struct mir_block *head, *out;
	struct mir_opnd save; /* EXEC before the loop */
	bool divergent;	      /* lanes leave one by one */
	struct sel_loop *outer;
};

/* An address that was computed in a block: base + off. */
struct sel_address {
	const struct mir_block *in;
	struct mir_opnd base, off, sum;
};

struct sel {
	struct ssa_func *f;
	struct mir_func *m;
	struct err *e;
	bool failed;
	struct sel_val *val;   /* [n_insts], by id */
	struct mir_block *b;   /* being filled */
	struct sel_loop *loop; /* innermost */
	/* What the wave gets; one register for all work-item ids, or three. */
	struct mir_opnd kernarg, group_id[3], local[3];
	struct mir_opnd *arg; /* [n_args] where each was loaded to */
	uint32_t *lds_at;     /* [n_lds] byte offsets */
	uint32_t hidden;      /* offset of the hidden kernel arguments */
	bool uses_hidden, wgp;
	bool *behind_write;   /* [blocks] by id, see sel_find_writes() */
	int mask;	      /* registers of a lane mask */
	bool glue;	      /* next instruction stays with the last */
	int divergent;	      /* depth of regions with lanes off */
	const struct ssa_inst *mem; /* memory operation being selected */
	struct mir_opnd zero;	    /* a vector register with 0 ... */
	struct mir_block *zero_in;  /* ... in this block */
	struct sel_address address[8]; /* the latest, by turns */
	unsigned n_addresses;
	/* select_dealt.c: the upper lanes, and which lane takes which row. */
	struct mir_opnd upper_lanes, row_low, row_high;
	struct mir_block *rows_in; /* ... in this block */
};

/* ------------------------------------------------------------ select.c ---- */

bool sel_run(struct sel *s);
/* The instructions of a block but its last. */
void sel_block(struct sel *s, struct ssa_block *b);
/* Refuses, naming the operation and its line. */
void sel_refuse(struct sel *s, const struct ssa_inst *i, const char *why);

/* ------------------------------------------------------ select_dealt.c ---- */

/* A matrix product for chips that deal K and rows out to lanes. */
void sel_dealt_matrix(struct sel *s, const struct ssa_inst *i);

/* ---------------------------------------------------------- legalize.c ---- */

/*
 * Replaces, in the SSA form, what no instruction does: group reductions by
 * wave reductions through LDS, arithmetic of bf16 by that of f32, operations
 * on pairs that are not packed ones by two on scalars.
 */
bool sel_legalize(struct ssa_func *f, struct err *e);

/* -------------------------------------------------- legalize_printf.c ---- */

/*
 * printf becomes records in the runtime's ring, the argument SSA_PRINTF_RING;
 * f->format is then the metadata's entries, one for each printf.
 */
bool sel_legalize_printf(struct ssa_func *f, struct err *e);

/* ------------------------------------------------------- select_emit.c ---- */

#define SEL_LIST(...) \
	(const struct mir_opnd[]){ __VA_ARGS__ }, \
		(int)(sizeof((const struct mir_opnd[]){ __VA_ARGS__ }) / \
		      sizeof(struct mir_opnd))
/* One instruction as it stands, sources not looked at. */
#define sel_raw(s, op, ...) sel_raw_list(s, op, SEL_LIST(__VA_ARGS__))
/* A vector instruction: sources are moved where it may not take them. */
#define sel_v(s, op, ...) sel_v_list(s, op, SEL_LIST(__VA_ARGS__))
/* A scalar instruction: sources become scalar. */
#define sel_s(s, op, ...) sel_s_list(s, op, SEL_LIST(__VA_ARGS__))
struct mir_inst *sel_raw_list(struct sel *s, int op, const struct mir_opnd *o,
			      int n);
struct mir_inst *sel_v_list(struct sel *s, int op, const struct mir_opnd *o,
			    int n);
struct mir_inst *sel_s_list(struct sel *s, int op, const struct mir_opnd *o,
			    int n);
/* The same into a new register, which they return. */
#define sel_v1(s, op, ...) sel_v1_list(s, op, SEL_LIST(__VA_ARGS__))
#define sel_s1(s, op, ...) sel_s1_list(s, op, SEL_LIST(__VA_ARGS__))
struct mir_opnd sel_v1_list(struct sel *s, int op, const struct mir_opnd *o,
			    int n);
struct mir_opnd sel_s1_list(struct sel *s, int op, const struct mir_opnd *o,
			    int n);
struct mir_opnd sel_new_v(struct sel *s, int n);
struct mir_opnd sel_new_s(struct sel *s, int n);
struct mir_opnd sel_new_mask(struct sel *s);
struct mir_opnd sel_exec(const struct sel *s);
/* The wave's form of a mask operation: _b32 or _b64. */
#define sel_mop(s, name) \
	((s)->mask == 2 ? ISA_##name##_b64 : ISA_##name##_b32)
/* The operand in registers of that kind; scalars take the first lane. */
struct mir_opnd sel_to_v(struct sel *s, struct mir_opnd o);
struct mir_opnd sel_to_s(struct sel *s, struct mir_opnd o);
void sel_copy(struct sel *s, struct mir_opnd to, struct mir_opnd from);
bool sel_is_inline(uint32_t v, int type);
/* Low or high 32 bits of a 64-bit operand. */
struct mir_opnd sel_lo(struct mir_opnd o);
struct mir_opnd sel_hi(struct mir_opnd o);
/* Its k-th 32 bits. */
struct mir_opnd sel_dword(struct mir_opnd o, int k);
/* d = a in the lanes of the mask, b in the others; any width. */
void sel_cndmask(struct sel *s, struct mir_opnd d, struct mir_opnd mask,
		 struct mir_opnd a, struct mir_opnd b);

/* ------------------------------------------------------ select_value.c ---- */

void sel_classify(struct sel *s);
int sel_dwords(const struct sel *s, struct ssa_type t);
/* The value as an operand; 64-bit constants in registers. */
struct mir_opnd sel_get(struct sel *s, const struct ssa_inst *i);
/* The same in vector registers. */
struct mir_opnd sel_get_v(struct sel *s, const struct ssa_inst *i);
struct mir_opnd sel_get_s(struct sel *s, const struct ssa_inst *i);
/* Where the result of `i` goes: registers of its class. */
struct mir_opnd sel_def(struct sel *s, const struct ssa_inst *i);
/* The result of `i` is an operand that is there already. */
void sel_alias(struct sel *s, const struct ssa_inst *i, struct mir_opnd o);
bool sel_is_s(const struct sel *s, const struct ssa_inst *i); /* or constant */
bool sel_const(const struct ssa_inst *i, uint64_t *v);
/* A float operand with fneg and fabs folded in, for vector instructions. */
struct mir_opnd sel_get_f(struct sel *s, const struct ssa_inst *i);
/* Of an i8 in a vector register: which, and where in it.  Else false. */
bool sel_byte(struct sel *s, const struct ssa_inst *i, struct mir_opnd *word,
	      uint32_t *bit);
/* i8 and i16 to 32 bits. */
struct mir_opnd sel_ext(struct sel *s, const struct ssa_inst *i, bool sign);

/* -------------------------------------------------------- select_cmp.c ---- */

void sel_icmp(struct sel *s, const struct ssa_inst *i);
void sel_fcmp(struct sel *s, const struct ssa_inst *i);
void sel_select(struct sel *s, const struct ssa_inst *i);
/* Sets SCC to a uniform condition; the reader must follow, glued. */
void sel_scc(struct sel *s, const struct ssa_inst *cond, bool *inverted);

/* ---------------------------------------- select_int.c, select_int64.c ---- */

bool sel_int(struct sel *s, const struct ssa_inst *i);
void sel_int64(struct sel *s, const struct ssa_inst *i);
bool sel_int_scalar(const struct sel *s, const struct ssa_inst *i);
/* Does it hold no more than 24 bits, as the fast products want? */
bool sel_fits24(const struct sel *s, const struct ssa_inst *i);
void sel_convert_int(struct sel *s, const struct ssa_inst *i);
/* 64-bit sums in the file of their result. */
void sel_add64(struct sel *s, struct mir_opnd d, struct mir_opnd a,
	       struct mir_opnd b);
/* pointer + 32-bit unsigned */
void sel_add64_u32(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		   struct mir_opnd b);

/* ------------------------------------------------------- select_fuse.c ---- */

/* Selects `i` with one of its operands as one instruction, if there is one. */
bool sel_fuse(struct sel *s, const struct ssa_inst *i);

/* -------------------------------------------------------- select_div.c ---- */

void sel_div(struct sel *s, const struct ssa_inst *i);
void sel_fdiv(struct sel *s, const struct ssa_inst *i);
void sel_fsqrt(struct sel *s, const struct ssa_inst *i);

/* ------------------------------------------------------ select_float.c ---- */

bool sel_float(struct sel *s, const struct ssa_inst *i);
void sel_fcvt(struct sel *s, const struct ssa_inst *i);
/*
 * The fma of f32 that `i` rounds to f16, that nothing else uses and that may be
 * contracted with it, since both are one rounding then; or NULL.
 */
const struct ssa_inst *sel_rounded_fma(const struct sel *s,
				       const struct ssa_inst *i);
/* Both as one: op is v_fma_mixlo_f16, or mixhi for the upper half of d. */
void sel_mixed_fma(struct sel *s, int op, struct mir_opnd d,
		   const struct ssa_inst *sum);
void sel_fcvt_int(struct sel *s, const struct ssa_inst *i);

/* ------------------------------------------------------- select_args.c ---- */

void sel_args(struct sel *s);

/* -------------------------------------------------------- select_mem.c ---- */

bool sel_load_scalar(const struct sel *s, const struct ssa_inst *i);
void sel_load(struct sel *s, const struct ssa_inst *i);
void sel_store(struct sel *s, const struct ssa_inst *i);

/* One access to memory, as loads, stores and atomics select it. */
struct sel_access {
	const struct sel *s;
	const struct ssa_inst *i;
	bool lds, store;
	struct mir_opnd data;	  /* registers */
	struct mir_opnd addr;	  /* vector registers */
	struct mir_opnd base;	  /* scalar, or OFF */
	int32_t off;
	const char *tail;
	bool partial;
	bool upper;		  /* store 16 bits: of the upper half */
};
/* Fills in where the access goes. */
void sel_address(struct sel *s, struct sel_access *a);
/* Writes down what `m` touches: `bytes` at `at` of the access. */
void sel_note(struct sel_access *a, struct mir_inst *m, int at, int bytes);
/* Only lanes of the mask from here on; what to give to sel_mask_end(). */
struct mir_opnd sel_mask_begin(struct sel *s, const struct ssa_inst *mask);
void sel_mask_end(struct sel *s, struct mir_opnd save);

/* ----------------------------------------------------- select_atomic.c ---- */

void sel_atomic(struct sel *s, const struct ssa_inst *i);
/* Marks the blocks that come behind a write to global memory. */
void sel_find_writes(struct sel *s);
void sel_barrier(struct sel *s, const struct ssa_inst *i);
void sel_fence(struct sel *s, const struct ssa_inst *i);

/* ------------------------------------------------------- select_lane.c ---- */

void sel_lane_op(struct sel *s, const struct ssa_inst *i);

/* --------------------------------------------------------- cfg_lower.c ---- */

void sel_flow(struct sel *s);

/*
 * A loop inside of one operation, that lanes leave one by one: begin, what is
 * done once, head, the body, end.  Registers that lanes keep from a round to the
 * next are written by instructions with MIR_PARTIAL.
 */
struct sel_lane_loop {
	struct mir_opnd save;
	struct mir_block *head, *out;
};
/* Lanes of `mask`, or with NULL all that are on. */
void sel_lane_loop_begin(struct sel *s, struct sel_lane_loop *l,
			 const struct ssa_inst *mask);
void sel_lane_loop_head(struct sel *s, struct sel_lane_loop *l);
/* Those whose bit is set in `again` have another round. */
void sel_lane_loop_end(struct sel *s, struct sel_lane_loop *l,
		       struct mir_opnd again);

/* ----------------------------------------------------- select_matrix.c ---- */

/* Matrix products, and dot products of pairs and of bytes. */
void sel_wmma(struct sel *s, const struct ssa_inst *i);
void sel_dot(struct sel *s, const struct ssa_inst *i);

/* ----------------------------------------------------- select_vector.c ---- */

bool sel_vector(struct sel *s, const struct ssa_inst *i);

#endif
