/*
 * verify_int - what the parts of the verifier share.
 *
 * The state at a point of the code (struct vstate) is a record of small
 * lattices that are joined where paths meet:
 *
 *   v[]      a value number for every register: equal numbers are equal values
 *   age[]    for every register that a memory operation writes, how many
 *            younger operations of its kind are certainly after it
 *   undef[]  scalar registers and SCC that some path has not set, and VGPRs
 *            that no path has set
 *   lds[]    LDS accesses since the last barrier on some path
 *
 * verify_value.c numbers values, verify_wait.c keeps the ages, verify.c runs
 * the fixed point; the other files look at its result.
 */
#ifndef T0_ISA_VERIFY_INT_H
#define T0_ISA_VERIFY_INT_H

#include "isa/verify/cfg_int.h"
#include "isa/verify/verify.h"

/* Registers in one numbering: scalars 0..127, VGPRs, then SCC. */
enum { R_VGPR = 128, R_SCC = 384, R_COUNT = 385 };

/* ------------------------------------------------------------- values ---- */

/*
 * Value nodes are unique: the same operation on the same operands is the same
 * node.  A linear node is coef * a + b, b being linear with smaller roots or a
 * constant.  A mask node is a subset of the mask `a`: those lanes where the
 * condition `b` holds (neg: does not hold).
 */
enum value_kind {
	VAL_CONST, /* imm */
	VAL_ENTRY, /* register imm at the entry of function a */
	VAL_INSN,  /* dword b of what instruction a produced */
	VAL_PHI,   /* register b where paths meet at block a */
	VAL_EXPR,  /* operation imm on a, b */
	VAL_LIN,
	VAL_MASK,
	VAL_HIGH, /* the high half of the 64-bit mask a */
};

enum value_flag {
	VF_LANE = 1, /* certainly depends on the lane or the work-item */
	VF_VARY = 2, /* differs by path or loop iteration */
	VF_MEM = 4,  /* comes from memory that others may share */
	VF_DARK = 8, /* comes from scratch, a lane of a VGPR or a callee */
};

struct value {
	uint8_t kind, flags, neg;
	uint8_t zeros; /* low bits that are 0, of all but VAL_CONST, VAL_LIN */
	uint32_t a, b, imm;
	uint32_t lo, hi; /* bounds as an unsigned number */
	uint32_t next;	 /* hash chain */
};

struct values {
	struct value *v;
	uint32_t n, cap;
	uint32_t *hash, n_hash;
};

/* ------------------------------------------------------------- states ---- */

/*
 * Ages: NOT_PENDING, or a lower bound on the operations of the same in-order
 * kind that were issued later.  A wait for count N has covered an operation
 * whose age is N or more, on every path.
 */
enum { NOT_PENDING = 255, AGE_MAX = 62 };

/* Halves of VGPRs: 2n is bits 15:0 of v(n), 2n + 1 bits 31:16. */
enum { N_HALVES = 512 };

enum vm_kind { VM_PLAIN, VM_SAMPLER, VM_BVH, VM_KINDS };

struct vage {
	/* That vector memory writes, by what keeps order among itself. */
	uint8_t vm[VM_KINDS][N_HALVES];
	uint8_t lds[N_HALVES];	/* that LDS or FLAT writes */
	uint8_t smem[128]; /* SGPRs that scalar memory or messages write: 0 */
	uint8_t exp[N_HALVES];	/* that LDS direct loads write */
	uint8_t lock[N_HALVES]; /* that exports still read: 0 */
	/* Youngest LDS access and stores, none of which writes a register. */
	uint8_t lds_store, scratch_store, global_store;
	/*
	 * 0: a global store may be outstanding that is younger than all loads
	 * and returning atomics; one was at the last barrier, and there was no
	 * load or atomic since.
	 */
	uint8_t late_store, barrier_store;
};

struct vstate {
	uint32_t v[R_COUNT];
	struct vage age;
	uint64_t undef[7];  /* bit per register of R_* */
	uint64_t masked[4]; /* VGPRs written while EXEC was narrowed */
	int exec_zero;	    /* instruction + 1 of a branch that found EXEC 0 */
	uint64_t lds[];	    /* [words] accesses since the last barrier */
};

/* An LDS access, as the last visit of the fixed point saw it. */
struct lds_access {
	int insn;
	uint32_t addr, exec; /* values */
	bool store, load, atomic;
};

struct verifier {
	const struct verify_input *in;
	struct cfg g;
	struct values val;
	struct vstate **at; /* [blocks] at their start; NULL = not reached */
	int **loop; /* [blocks] of a header: its loop's blocks, header first, -1
		     */
	uint8_t *stale;	   /* [blocks] replace the state at the next visit */
	struct vage **ret; /* [functions] where they return, joined */
	size_t state_bytes;
	int lds_words;
	struct lds_access *lds;
	int n_lds;
	int *lds_of;	    /* [instructions] number of the access, or -1 */
	uint32_t *exec_out; /* [blocks] EXEC at the end */
	uint32_t *cond_out; /* [blocks] what a branch at the end tests */
	struct verify_report *r;
	bool check; /* the last pass: report */
	bool several_waves;
};

enum { MAX_WRITES = 80, OP_PAIR = 0xffff, OP_SCC = 0x10000 };

/* Transfer function of one instruction: its operands, and pending writes. */
struct step {
	struct verifier *v;
	struct values *val;
	struct vstate *s;
	const struct cfg_insn *x;
	int insn;
	/* One half of a VOPD, or the whole instruction. */
	enum isa_op op;
	const struct isa_operand *o;
	int n;
	struct {
		uint16_t reg;
		uint32_t value;
	} w[MAX_WRITES];
	int n_w;
};

/* ---------------------------------------------------------- verify.c ---- */

/*
 * Report a finding at instruction `insn`, with a shortest path through block
 * `via` (-1 = any).
 */
void ver_report(struct verifier *v, enum verify_rule rule, int insn, int via,
		const char *fmt, ...) T0_PRINTF(5, 6);
/* The same with a path of the caller's. */
void ver_report_path(struct verifier *v, enum verify_rule rule, int insn,
		     const int *block, int n, const char *fmt, ...)
	T0_PRINTF(6, 7);
/* "v7", "s3", "vcc_lo", "scc" into a buffer of 16. */
const char *ver_reg_name(int reg, char *out);

/* ---------------------------------------------------- verify_value.c ---- */

void val_init(struct values *s);
void val_fini(struct values *s);
uint32_t val_const(struct values *s, uint32_t value);
uint32_t val_entry(struct values *s, int func, int reg);
uint32_t val_insn(struct values *s, int insn, int dword, int flags);
uint32_t val_phi(struct values *s, int block, int reg);
uint32_t val_expr(struct values *s, uint32_t op, uint32_t a, uint32_t b,
		  int flags);
uint32_t val_add(struct values *s, uint32_t a, uint32_t b);
uint32_t val_scale(struct values *s, uint32_t a, uint32_t k);
uint32_t val_bound(struct values *s, uint32_t x, uint32_t lo, uint32_t hi);
uint32_t val_mask(struct values *s, uint32_t parent, uint32_t cond, bool neg);
uint32_t val_high(struct values *s, uint32_t mask);
bool val_is_const(const struct values *s, uint32_t x, uint32_t *value);
/* Is mask `x` a subset of `of` by construction, and not the same? */
bool val_narrower(const struct values *s, uint32_t x, uint32_t of);
/* Constant part of a linear value, and the rest (0 if there is none). */
uint32_t val_split(const struct values *s, uint32_t x, uint32_t *rest);
/*
 * Greatest common divisor of the terms, as far as they have all of `flags`,
 * without the constant one; 0 if there are none.
 */
uint32_t val_stride(const struct values *s, uint32_t x, int flags);
/* Low bits that are certainly 0; 32 of the constant 0. */
uint32_t val_zeros(const struct values *s, uint32_t x);
/* x & k, with the tightest bounds that those of x allow. */
uint32_t val_and(struct values *s, uint32_t x, uint32_t k);

/* ----------------------------------------------------- verify_mask.c ---- */

/*
 * The boolean function of a scalar logic or saveexec row on two masks; 0 if
 * nothing is known of the result.  `exec` is EXEC now.
 */
uint32_t val_logic(struct values *s, uint32_t exec, enum isa_op op, uint32_t a,
		   uint32_t b);

/* ---------------------------------------------------- verify_state.c ---- */

/* Entry state of a kernel, as the descriptor declares it. */
struct vstate *state_entry(struct verifier *v);
/* Join into the state at the start of `block`; did it change? */
bool state_join(struct verifier *v, int block, const struct vstate *from);
/* From a call into function `func`, and past a call to `callee` (-1: any). */
void state_call(struct verifier *v, struct vstate *s, int func);
void state_return(struct verifier *v, struct vstate *s, int call, int callee);

/* ----------------------------------------------------- verify_step.c ---- */

/* Values that one instruction leaves. */
void step_values(struct verifier *v, struct vstate *s, int insn);
/* The value of dword `dw` of operand `o`. */
uint32_t step_operand(struct verifier *v, const struct vstate *s,
		      const struct isa_operand *o, int dw);
/* SGPRs and VGPRs that a callee does not preserve (LLVM's convention). */
bool step_clobbered(int reg);
/* Queue a register write; all take effect after all reads. */
void step_put(struct step *p, int reg, uint32_t value);
/* The number of an operand's first register in struct vstate. */
int step_reg(const struct isa_operand *o);
/* The low dword of source `i`, and of the destination as it was. */
uint32_t step_src(struct step *p, int i);
uint32_t step_old(struct step *p);
/* VF_ flags of a value. */
int step_flags(struct step *p, uint32_t x);
/* An opaque value of two. */
uint32_t step_pair(struct step *p, uint32_t a, uint32_t b);
/* A value that stands for all that the instruction depends on. */
uint32_t step_chain(struct step *p);

/* ---------------------------------------------------- verify_arith.c ---- */

uint32_t step_product(struct step *p, uint32_t a, uint32_t b);
/* The 32-bit result where it stays linear; 0 if the row is none of these. */
uint32_t step_linear(struct step *p);
/* SCC of an addition, and the addition that reads it. */
void step_carry(struct step *p);
bool step_addc(struct step *p);

/* ----------------------------------------------------- verify_wait.c ---- */

void wait_init(struct vage *a);
void wait_join(struct vage *into, const struct vage *from, bool *changed);
/* Advance over one instruction; reports when v->check. */
void wait_step(struct verifier *v, struct vstate *s, int insn);
/* Across a call: the callee waits for all but stores. */
void wait_call(struct vage *a);

/* ------------------------------------------------------ verify_lds.c ---- */

void lds_collect(struct verifier *v);
void lds_step(struct verifier *v, struct vstate *s, int insn);
void budget_check(struct verifier *v, const struct vstate *s, int insn);

/* ----------------------------------------------------- verify_exec.c ---- */

void exec_check(struct verifier *v, struct vstate *s, int insn);
bool ver_writes_exec(const struct cfg_insn *x);
/* Joins of paths with different EXEC; runs after the fixed point. */
void exec_check_joins(struct verifier *v);
static inline bool ver_undef(const struct vstate *s, int reg)
{
	return s->undef[reg / 64] >> (reg & 63) & 1;
}
/* Undefined flags and addresses. */
void undef_step(struct verifier *v, struct vstate *s, int insn);

/* ---------------------------------------------------- verify_loops.c ---- */

/* Fills v->loop. */
void loops_collect(struct verifier *v);
void loops_check(struct verifier *v);

/* --------------------------------------------------- verify_hazard.c ---- */

void hazard_check(struct verifier *v, const struct vstate *s, int insn);

#endif
