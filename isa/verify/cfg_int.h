/*
 * cfg_int - the control-flow graph of machine code, from an entry point on.
 *
 * Only reachable code is decoded, so data and padding between functions do
 * not matter.  Blocks are numbered by address; block 0 is not necessarily the
 * entry.  The graph spans functions: a call whose target is known starts a
 * function of its own, and its block continues at `succ[0]`, the return point.
 *
 * Faults of the code itself (bytes that do not decode, branches out, running
 * off the end) are collected; the graph simply ends there.
 */
#ifndef T0_ISA_CFG_INT_H
#define T0_ISA_CFG_INT_H

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/verify/verify.h"

enum cfg_end {
	CFG_FALL,   /* into the next block: succ[0] */
	CFG_JUMP,   /* s_branch, or s_setpc_b64 to a known place: succ[0] */
	CFG_COND,   /* succ[0] not taken, succ[1] taken */
	CFG_CALL,   /* returns to succ[0]; `callee` or -1 */
	CFG_RETURN, /* s_setpc_b64 to an unknown place; a tail call if callee */
	CFG_STOP,   /* s_endpgm, or a fault */
};

struct cfg_insn {
	struct isa_inst in;
	struct isa_use use;
	uint32_t off;	/* bytes from the start of the code */
	uint32_t flags; /* of the row, or of both rows of a VOPD */
	int block;
	uint8_t pipe;
	bool valu, salu, vmem; /* vmem: also FLAT and scratch */
	bool lds_dir;
};

struct cfg_block {
	int first, n; /* instructions */
	int succ[2];  /* blocks, -1 = none */
	int func, callee;
	enum cfg_end end;
	int pred, n_preds; /* into cfg.preds */
	int order;	   /* position in reverse postorder of its function */
	bool header;	   /* the target of a back edge */
	int scc;	   /* number of its strongly connected component */
};

struct cfg_func {
	uint32_t lo, hi, entry; /* offsets */
	int block;		/* of the entry */
};

struct cfg_fault {
	enum verify_rule rule;
	uint32_t off;  /* of the instruction that is to blame */
	uint32_t from; /* of the one before it on the path */
	const char *what;
};

/* Indirect branch target that value numbering has resolved. */
struct cfg_target {
	uint32_t from, to; /* offsets */
};

struct cfg {
	const struct verify_input *in;
	struct cfg_insn *insn; /* ascending by offset */
	int n_insns;
	struct cfg_block *block;
	int n_blocks;
	struct cfg_func *func; /* 0 is the kernel */
	int n_funcs, cap_funcs;
	int *preds;
	int *rpo; /* all blocks, callers before callees */
	struct cfg_fault *fault;
	int n_faults, cap_faults;
	struct cfg_target *target;
	int n_targets, cap_targets;
	int32_t *at;   /* [dwords] instruction that starts there, or -1 */
	uint8_t *mark; /* [dwords] */
	struct arena mem;
};

/* Build the graph; `target` may hold what is known of indirect branches. */
void cfg_build(struct cfg *g);
/* Free the graph but not the targets. */
void cfg_reset(struct cfg *g);
void cfg_fini(struct cfg *g);
/* Record the target of an indirect branch; false if it was known. */
bool cfg_add_target(struct cfg *g, uint32_t from, uint32_t to);

static inline uint64_t cfg_addr(const struct cfg *g, int insn)
{
	return g->in->vaddr + g->insn[insn].off;
}
/* Block numbers `from`..`to` of a shortest path, -1 if there is none. */
int cfg_path(const struct cfg *g, int from, int to, int *out, int max);
/* How `next` is reached from `b`: "falls", "taken", "not taken", "call". */
const char *cfg_how(const struct cfg *g, int b, int next);

/* Does the instruction use one of `count` registers from `reg` on, in `role`? */
bool cfg_uses(const struct cfg_insn *x, int file, int role, int reg, int count);

/* ------------------------------------------------------- cfg_order.c ---- */

/* Fills rpo, and order, header, scc and func of the blocks. */
void cfg_order(struct cfg *g);

#endif
