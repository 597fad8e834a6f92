/*
 * dsl_int - what the files of the DSL share.
 */
#ifndef T0_COMPILER_DSL_INT_H
#define T0_COMPILER_DSL_INT_H

#include "compiler/dsl/dsl.h"

struct dsl_type_info {
	const char *name;
	enum ssa_kind kind;
	bool is_float, is_signed;
	bool computes; /* arithmetic on it is there */
};
extern const struct dsl_type_info dsl_type_info[DSL_TYPES];

/* What a variable is now. */
struct dsl_slot {
	struct val v;  /* v.e is NULL where it has no value */
	uint32_t line; /* of its VAR() */
};

enum dsl_flow_kind { DSL_IF, DSL_ELSE, DSL_FOR, DSL_WHILE };

/* An open IF or loop. */
struct dsl_flow {
	enum dsl_flow_kind kind;
	uint32_t line;
	uint32_t region, n_vars;    /* outside */
	struct dsl_slot *at_start;  /* [n_vars] */
	struct dsl_slot *then_vars; /* [n_vars], of an ELSE */
	struct ssa_inst *branch;    /* of an IF */
	struct ssa_inst *then_jump; /* of an ELSE */
	struct ssa_block *head;	    /* of a loop */
	struct ssa_inst *count;	    /* FOR: i, and its step */
	struct val step;
};

struct dsl_leaf {
	struct dsl_leaf *next;
	struct ssa_inst *i;
};
enum { DSL_LEAF_BUCKETS = 256, DSL_MAX_DEPTH = 64 };

struct dsl {
	struct ssa_func *f;
	struct err err; /* the first; code != 0 once there is one */
	uint32_t line;
	uint16_t math;
	struct ssa_block *block; /* being filled */
	/* Constants and ids stand at the start of the entry, once each. */
	struct ssa_inst *last_leaf;
	struct dsl_leaf *leaf[DSL_LEAF_BUCKETS];
	struct dsl_slot *var;
	uint32_t n_vars, cap_vars;
	struct dsl_flow flow[DSL_MAX_DEPTH];
	uint32_t depth;
	struct dsl_flow last_if; /* just closed, for ELSE */
	struct ssa_block *last_merge;
	bool closed; /* the construct on top just ended */
	/* Values are usable while the region of their block is open. */
	bool *open; /* [n_regions]; a block's is in its tmp.num */
	uint32_t n_regions, cap_regions, region;
};

/* ------------------------------------------------------------- dsl.c ---- */

/* Notes the line; false after an error, or if there is no builder. */
bool dsl_go(struct dsl *k, struct dsl_at at);
/* The builder of the first of these that has one. */
struct dsl *dsl_pick(const struct val *v, size_t n);
/* Are all defined and in scope?  Else an error. */
bool dsl_defined(struct dsl *k, struct dsl_at at, const struct val *v,
		 size_t n);
/* `v` as a value of this type if it is a number; else unchanged. */
struct val dsl_typed(struct dsl *k, struct dsl_at at, struct val v,
		     enum dsl_type type);
/* An error unless v has this type. */
bool dsl_want(struct dsl *k, struct dsl_at at, const struct val *v,
	      enum dsl_type type);

struct ssa_inst *dsl_emit(struct dsl *k, enum ssa_op op, struct ssa_type t,
			  uint32_t n, struct ssa_inst *const *arg);
struct ssa_inst *dsl_emit1(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   struct ssa_inst *a);
struct ssa_inst *dsl_emit2(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   struct ssa_inst *a, struct ssa_inst *b);
/* A leaf of the entry block: a constant, an argument, an id. */
struct ssa_inst *dsl_entry(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   uint64_t imm);
struct ssa_inst *dsl_bits_const(struct dsl *k, enum ssa_kind kind,
				uint64_t bits);
/* A value of n elements to be filled. */
struct val dsl_val(struct dsl *k, enum dsl_type type, uint32_t n);
struct val dsl_val1(struct dsl *k, enum dsl_type type, struct ssa_inst *i);
/* Element j, or the only one. */
static inline struct ssa_inst *dsl_at_elem(const struct val *v, uint32_t j)
{
	return v->e[v->n == 1 ? 0 : j];
}
/* The number of elements of an operation on these; 0 after an error. */
uint32_t dsl_width(struct dsl *k, struct dsl_at at, const struct val *v,
		   size_t n);
static inline struct ssa_type dsl_ssa(enum dsl_type t)
{
	return ssa_type(dsl_type_info[t].kind, 1);
}
/* The elements of an SSA vector as a value; several as one vector. */
struct val dsl_unpack(struct dsl *k, enum dsl_type type, struct ssa_inst *v);
struct ssa_inst *dsl_pack(struct dsl *k, const struct val *v);

/* -------------------------------------------------------- dsl_wide.c ---- */

struct val dsl_i64_to_f32(struct dsl_at at, struct val x);
struct val dsl_f32_to_i64(struct dsl_at at, struct val x);

/* -------------------------------------------------------- dsl_flow.c ---- */

uint64_t dsl_region_new(struct dsl *k);
struct ssa_block *dsl_block_new(struct dsl *k);

#endif
