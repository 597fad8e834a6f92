/*
 * compiler/cost/cost_class.c - which class an instruction belongs to, and its
 * cost. The row of isa/tables/insts.def gives the pipe; what the pipes do not
 * tell apart (multiplies, dot products, lane moves) stands in a table here.
 */
#include <string.h>

#include "compiler/cost/cost.h"

static const struct {
	const char *prefix; /* of the mnemonic */
	uint8_t class;
} named[] = {
	{ "v_mad_u64_u32", COST_CLASS_MAD64 },
	{ "v_mad_i64_i32", COST_CLASS_MAD64 },
	{ "v_dot4_", COST_CLASS_DOT4 },
	{ "v_dot8_", COST_CLASS_DOT8 },
	{ "v_permlane", COST_CLASS_PERMLANE },
	{ "v_readlane", COST_CLASS_READLANE },
	{ "v_readfirstlane", COST_CLASS_READLANE },
	{ "v_wmma_i32_16x16x16_iu4", COST_CLASS_WMMA4 },
	{ "ds_permute", COST_CLASS_LDS_PERMUTE },
	{ "ds_bpermute", COST_CLASS_LDS_PERMUTE },
	{ "s_getreg_b32", COST_CLASS_GETREG },
};

static const uint8_t of_pipe[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = COST_CLASS_SALU,
	[ISA_PIPE_SMEM] = COST_CLASS_SMEM,
	[ISA_PIPE_VALU] = COST_CLASS_VALU,
	[ISA_PIPE_VALU64] = COST_CLASS_VALU64,
	[ISA_PIPE_QUARTER] = COST_CLASS_MUL,
	[ISA_PIPE_TRANS] = COST_CLASS_TRANS,
	[ISA_PIPE_TRANS64] = COST_CLASS_TRANS64,
	[ISA_PIPE_DOUBLE] = COST_CLASS_DOUBLE,
	[ISA_PIPE_WMMA] = COST_CLASS_WMMA,
	[ISA_PIPE_LDS] = COST_CLASS_LDS_LOAD,
	[ISA_PIPE_LDSDIR] = COST_CLASS_LDS_LOAD,
	[ISA_PIPE_FLAT] = COST_CLASS_VMEM_LOAD,
	[ISA_PIPE_VMEM] = COST_CLASS_VMEM_LOAD,
	[ISA_PIPE_EXPORT] = COST_CLASS_EXPORT,
	[ISA_PIPE_BRANCH] = COST_CLASS_BRANCH,
	[ISA_PIPE_MSG] = COST_CLASS_MSG,
	[ISA_PIPE_SPECIAL] = COST_CLASS_SPECIAL,
};

/* Loads, stores and atomics of one pipe are neighbours in that order. */
static enum cost_class access_class(enum cost_class load, uint32_t flags)
{
	if (flags & ISA_ATOMIC)
		return load + 2;
	return flags & ISA_STORE ? load + 1 : load;
}
_Static_assert(COST_CLASS_LDS_ATOMIC == COST_CLASS_LDS_LOAD + 2 &&
	       COST_CLASS_VMEM_ATOMIC == COST_CLASS_VMEM_LOAD + 2, "order");

enum cost_class cost_class_of(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	enum cost_class c = of_pipe[op->pipe];

	if (in->op_y)
		return COST_CLASS_VOPD;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if (!strncmp(op->name, named[i].prefix,
			     strlen(named[i].prefix)))
			return named[i].class;
	if (c == COST_CLASS_LDS_LOAD || c == COST_CLASS_VMEM_LOAD)
		return access_class(c, op->flags);
	/* Comparing f64 takes two passes, as traces show. */
	if (c == COST_CLASS_DOUBLE && !strncmp(op->name, "v_cmp", 5))
		return COST_CLASS_VALU64;
	if (c == COST_CLASS_VALU && in->form != ISA_FORM_PLAIN)
		return COST_CLASS_DPP;
	return c;
}

double cost_latency(const struct cost_model *m, const struct isa_inst *in)
{
	const struct cost_op *op = &m->op[in->op];

	if (op->has_latency && !in->op_y)
		return op->latency.value;
	return m->row[COST_SALU_LATENCY + 2 * cost_class_of(in)].value;
}

double cost_issue(const struct cost_model *m, const struct isa_inst *in)
{
	const struct cost_op *op = &m->op[in->op];

	if (op->has_issue && !in->op_y)
		return op->issue.value;
	return m->row[COST_SALU_ISSUE + 2 * cost_class_of(in)].value;
}
_Static_assert(COST_SMEM_ISSUE == COST_SALU_ISSUE + 2, "two rows a class");
