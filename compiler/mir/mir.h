/*
 * mir - machine instructions with virtual registers: the back end's form.
 *
 * A function is a list of blocks in the order in which they will lie in
 * memory.  An instruction is a row of isa/tables/insts.def with its operands in
 * the order of the assembler's text; before register allocation they name
 * virtual registers, afterwards the same operands print as hardware registers.
 *
 * Control flow is already that of the wave: both sides of a divergent branch
 * follow each other, EXEC says which lanes take part, and a virtual vector
 * register is live wherever some lane still needs it.  A definition that must
 * preserve inactive lanes is marked MIR_PARTIAL: it reads what it writes.
 * MIR_UNDEF starts the live interval of such a register.
 *
 * SCC, VCC and M0 are live only inside a bundle of glued instructions, which no
 * pass separates; EXEC is written only inside bundles and at the boundaries of
 * blocks.
 *
 * Ownership: everything is in the function's arena.
 */
#ifndef T0_COMPILER_MIR_H
#define T0_COMPILER_MIR_H

#include "base/base.h"
#include "isa/code/code.h"

struct ssa_inst;

#define MIR_MAX_OPND 7

/* Operations that no row of isa/tables/insts.def has. */
enum mir_pseudo {
	MIR_COPY = ISA_OP_COUNT, /* D, S: any width; S may be a constant */
	MIR_UNDEF,		 /* D holds nothing from here on */
	MIR_OPS
};

enum mir_kind {
	MIR_NONE,
	MIR_VREG,  /* registers sub..sub+n-1 of virtual register `reg` */
	MIR_HW,	   /* scalar register `reg` (enum isa_reg), n of them */
	MIR_IMM,   /* 32 bits */
	MIR_LABEL, /* block */
	MIR_OFF,   /* no register: "off" */
	MIR_WORD,  /* text as it stands: messages, hardware registers */
	MIR_SIMM16, /* `imm` as encoded: wait counts, delays */
};

struct mir_opnd {
	uint8_t kind; /* enum mir_kind */
	uint8_t sub, n;
	uint8_t mods; /* ISA_M_NEG, ISA_M_ABS */
	uint32_t reg;
	union {
		uint32_t imm;
		struct mir_block *label;
		const char *word;
	};
};

enum mir_flag {
	MIR_GLUED = 1,	  /* bundled with the one before */
	MIR_PARTIAL = 2,  /* its definition keeps other lanes' values */
	MIR_EARLY = 4,	  /* writes results before it has read all sources */
	MIR_TERM = 8,	  /* end of a block, not scheduled */
	MIR_KEEP = 16,	  /* has an effect beyond its results */
	MIR_HEAD = 32,	  /* start of a block, not scheduled */
	MIR_TIED = 64,	  /* result and last source want one register */
	MIR_DPP = 128,	  /* `tail` has a lane pattern */
	MIR_ORDERED = 256, /* memory: keeps its place among the others */
	MIR_SPILL = 512,   /* made by the spiller */
	MIR_SKIP = 1024,   /* branch over a body that no lane enters */
	MIR_LDS = 2048,	   /* memory instruction on LDS */
	MIR_CONST = 4096,  /* load of what is constant during the kernel */
};

struct mir_inst {
	uint16_t op; /* enum isa_op or enum mir_pseudo */
	uint16_t flags;
	uint8_t n_opnd, n_def; /* results come first */
	uint8_t align;	       /* memory: log2 of the known alignment */
	uint8_t bytes;	       /* of the memory that it touches, per lane */
	int32_t off;	       /* memory: constant offset */
	uint32_t line;
	struct mir_opnd o[MIR_MAX_OPND];
	const char *tail;	   /* further modifiers, "" if none */
	const struct ssa_inst *mem; /* memory: what it came from, or NULL */
	struct mir_inst *pair;	   /* second half of a dual instruction */
	struct mir_inst *prev, *next;
	struct mir_block *block;
	uint32_t pos;  /* number in the function, by mir_number() */
	uint32_t addr; /* bytes from the entry, by emit.c */
	void *tmp;
};

struct mir_block {
	uint32_t id;	/* by creation */
	uint32_t order; /* in the layout */
	uint32_t depth; /* of loops */
	struct mir_inst *first, *last;
	struct mir_block *succ[2];
	uint32_t n_succ;
	struct mir_block **pred;
	uint32_t n_preds;
	uint32_t start, end; /* positions [start, end) */
	uint32_t addr;
	bool loop_header;
	uint64_t *live_in, *live_out; /* [dwords], by mir_compute_live() */
};

enum mir_file { MIR_V, MIR_S };

struct mir_vreg {
	uint8_t file; /* enum mir_file */
	uint8_t n;    /* registers */
	uint8_t align;
	bool fixed;   /* `phys` was given, not chosen */
	bool tiny;    /* must not be spilled: made by the spiller */
	int16_t phys; /* first register, -1 = none yet */
	uint32_t dword; /* number of its first dword in live sets */
	uint32_t hint;	/* vreg whose register it would like, 0 = none */
	uint8_t hint_sub, hint_at; /* register hint_sub is hint's hint_at */
	bool vcc;	/* would like VCC */
};

struct mir_func {
	const char *name;
	struct arena *arena;
	enum isa_gen gen; /* whose instructions; mir_init() says gfx11 */
	int wave;
	struct mir_block **order; /* layout */
	uint32_t n_order, cap_order;
	uint32_t n_blocks, n_insts;
	struct mir_vreg *vreg; /* [n_vregs], 0 is unused */
	uint32_t n_vregs, cap_vregs;
	uint32_t n_dwords;
	uint32_t lds_bytes, scratch_bytes;
	uint32_t vgprs, sgprs;		     /* used, by allocation */
	uint32_t vgpr_spills, sgpr_spills; /* registers */
	const bool *noalias; /* [kernel arguments] do not overlap others */
	uint32_t line;			     /* given to new instructions */
	/*
	 * [2 * ISA_OP_COUNT] why the device lacks an instruction, or NULL; then
	 * the same of halves of VOPD.  NULL: all is there.
	 */
	const char *const *lacks;
};

/* Is there no such instruction, in this generation or on this device? */
static inline bool mir_lacks(const struct mir_func *m, int op)
{
	return op < ISA_OP_COUNT &&
	       (isa_op_info(op)->opcode[m->gen] < 0 ||
		(m->lacks && m->lacks[op]));
}
static inline bool mir_lacks_half(const struct mir_func *m, int op)
{
	return m->lacks && m->lacks[ISA_OP_COUNT + op];
}

/* Every instruction `i` in the order of the layout. */
#define MIR_EACH_INST(m, i)                                   \
	for (uint32_t b_ = 0; b_ < (m)->n_order; b_++)        \
		for (struct mir_inst *i = (m)->order[b_]->first; i; \
		     i = i->next)
/* The same where the body may remove `i`. */
#define MIR_EACH_INST_SAFE(m, i)                                        \
	for (uint32_t b_ = 0; b_ < (m)->n_order; b_++)                  \
		for (struct mir_inst *i = (m)->order[b_]->first, *next_; \
		     i && (next_ = i->next, true); i = next_)

/* ------------------------------------------------------------- mir.c ---- */

void mir_init(struct mir_func *m, struct arena *a, const char *name, int wave);
void mir_fini(struct mir_func *m); /* the tables that are not in the arena */

uint32_t mir_vreg(struct mir_func *m, enum mir_file file, int n);
struct mir_block *mir_block(struct mir_func *m);
void mir_append_block(struct mir_func *m,
		      struct mir_block *b); /* end of layout */
void mir_add_edge(struct mir_block *from, struct mir_block *to);

struct mir_inst *mir_inst(struct mir_func *m, int op, const struct mir_opnd *o,
			  int n);
void mir_append(struct mir_block *b, struct mir_inst *i);
void mir_before(struct mir_inst *at, struct mir_inst *i);
void mir_after(struct mir_inst *at, struct mir_inst *i);
void mir_unlink(struct mir_inst *i);
/* The same; a group whose head it was begins with the next. */
void mir_remove(struct mir_inst *i);
/* A new instruction before `at`, of the same line. */
struct mir_inst *mir_insert(struct mir_func *m, struct mir_inst *at, int op,
			    const struct mir_opnd *o, int n);

static inline struct mir_opnd mir_reg(const struct mir_func *m, uint32_t v)
{
	return (struct mir_opnd){ .kind = MIR_VREG, .n = m->vreg[v].n,
				  .reg = v };
}
static inline struct mir_opnd mir_imm(uint32_t v)
{
	return (struct mir_opnd){ .kind = MIR_IMM, .n = 1, .imm = v };
}
static inline struct mir_opnd mir_hw(int reg, int n)
{
	return (struct mir_opnd){ .kind = MIR_HW, .n = (uint8_t)n,
				  .reg = (uint32_t)reg };
}
static inline struct mir_opnd mir_label(struct mir_block *b)
{
	return (struct mir_opnd){ .kind = MIR_LABEL, .label = b };
}
static inline struct mir_opnd mir_off(void)
{
	return (struct mir_opnd){ .kind = MIR_OFF };
}
static inline struct mir_opnd mir_word(const char *w)
{
	return (struct mir_opnd){ .kind = MIR_WORD, .word = w };
}
/* What SIMM16 holds: no text lies between it and the machine code. */
static inline struct mir_opnd mir_simm16(uint32_t v)
{
	return (struct mir_opnd){ .kind = MIR_SIMM16, .n = 1, .imm = v };
}
/* Registers at..at+n-1 of an operand. */
struct mir_opnd mir_part(struct mir_opnd o, int at, int n);
bool mir_same(const struct mir_opnd *a, const struct mir_opnd *b);
static inline bool mir_is_v(const struct mir_func *m, const struct mir_opnd *o)
{
	return o->kind == MIR_VREG && m->vreg[o->reg].file == MIR_V;
}
static inline bool mir_is_s(const struct mir_func *m, const struct mir_opnd *o)
{
	return (o->kind == MIR_VREG && m->vreg[o->reg].file == MIR_S) ||
	       o->kind == MIR_HW;
}

/* Facts of an operation; pseudo ones have none. */
const struct isa_op_info *mir_info(const struct mir_inst *i);
static inline uint32_t mir_isa_flags(const struct mir_inst *i)
{
	return mir_info(i)->flags;
}
static inline int mir_pipe(const struct mir_inst *i)
{
	return mir_info(i)->pipe;
}
static inline bool mir_is_valu(const struct mir_inst *i)
{
	return isa_fmt_is_valu(mir_info(i)->fmt);
}
static inline bool mir_is_salu(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_SALU;
}
/* Global, buffer, scratch. */
static inline bool mir_is_vmem(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_VMEM;
}
static inline bool mir_is_smem(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_SMEM;
}
static inline bool mir_is_ds(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_LDS;
}
static inline bool mir_is_memory(const struct mir_inst *i)
{
	return mir_is_vmem(i) || mir_is_smem(i) || mir_is_ds(i);
}
static inline bool mir_is_load(const struct mir_inst *i)
{
	return (mir_isa_flags(i) & ISA_LOAD) != 0;
}
/* Atomics too. */
static inline bool mir_is_store(const struct mir_inst *i)
{
	return (mir_isa_flags(i) & (ISA_STORE | ISA_ATOMIC)) != 0;
}
static inline bool mir_is_branch(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_BRANCH;
}
bool mir_writes_exec(const struct mir_inst *i);
/* Does operand k also count as read: a partial or tied result? */
bool mir_reads_result(const struct mir_inst *i);

/* Positions, successors' predecessors, number of dwords. */
void mir_number(struct mir_func *m);
/* Removes instructions without effect; true if any was. */
bool mir_dce(struct mir_func *m);

/* Text of one instruction as `t0-isa asm` reads it, and of all. */
void mir_print_inst(const struct mir_func *m, const struct mir_inst *i,
		    struct buf *out);
void mir_print(const struct mir_func *m, struct buf *out);

#endif
