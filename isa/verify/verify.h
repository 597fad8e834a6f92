/*
 * verify - find faults in final gfx11 machine code without running it.
 *
 * Purpose: what a compiler, an assembler or a hand got wrong about wait
 * counters, barriers, EXEC, branches, register budgets and hazards shows on
 * hardware as a rare wrong number or a hang.  The verifier follows every path
 * through the code instead: it rebuilds the control-flow graph, runs a
 * dataflow analysis over it until nothing changes, and reports each place
 * where a rule of isa/verify/verify.def is broken on some path.
 *
 * It knows what the bytes say.  It never guesses what a program is
 * meant to compute, and stays silent where a value comes from memory or from
 * a caller; so a report without findings is not a proof, while a finding is a
 * path that exists in the graph.  Branch conditions are not evaluated: a path
 * that no input takes can be reported.
 *
 * Two kinds of faults it cannot know from the bytes, and does not report:
 * - a missing barrier between LDS accesses of which both addresses come from
 *   memory, a caller or loop-carried values (a loop that strides over an
 *   array), or which are farther apart than 32 lanes without overlap for
 *   certain: another array may begin between;
 * - a missing vscnt(0) before a release by a plain store or by an atomic that
 *   returns: that is how relaxed and acquiring ones look.  It is found before
 *   a barrier or fence that invalidates caches (buffer_gl0_inv), and between
 *   an acquiring atomic without result and its invalidation.
 *
 * Calls (s_swappc_b64) are followed when their target is a constant, as it is
 * after s_getpc_b64; other callees are taken to follow LLVM's calling
 * convention: they wait for everything on entry, and clobber VCC, SCC, s0..s29
 * and the VGPRs that callers save.
 *
 * Ownership: the input stays the caller's and must outlive the call only;
 * struct verify_report owns its findings until verify_report_fini().
 *
 *	struct verify_input in;
 *	struct verify_report r = { 0 };
 *	if (!verify_input_kernel(&in, &co, kernel, &e) ||
 *	    !isa_verify(&in, &r, &e))
 *		return err_wrap(&e, "%s", path);
 *	for (int i = 0; i < r.n; i++)
 *		printf("%s at %#llx: %s\n", verify_rule_name(r.v[i].rule),
 *		       (unsigned long long)r.v[i].addr, r.v[i].what);
 *	verify_report_fini(&r);
 *	verify_input_fini(&in);
 */
#ifndef T0_ISA_VERIFY_H
#define T0_ISA_VERIFY_H

#include "base/base.h"
#include "isa/object/object.h"
#include "isa/tables/tables.h"

enum verify_rule {
#define RULE(id, name, summary, remedy) VERIFY_##id,
#include "isa/verify/verify.def"
#undef RULE
	VERIFY_RULE_COUNT
};

/* One function of the code: [start, end) as virtual addresses. */
struct verify_func {
	uint64_t start, end;
};

struct verify_input {
	struct isa_target target; /* GFX11 or GFX11_5 */
	const uint8_t *code;	  /* all executable bytes around the kernel */
	size_t size_bytes;
	uint64_t vaddr; /* of code[0] */
	uint64_t entry; /* of the kernel's first instruction */
	/*
	 * Functions, ascending; the kernel among them.  A branch may not leave
	 * its function.  Without functions the whole code is one.
	 */
	struct verify_func *func;
	int n_funcs;

	/* What the descriptor declares; -1 is "not known, do not check". */
	int vgprs;	   /* per lane */
	int sgprs;	   /* with VCC */
	int64_t lds_bytes; /* static; dynamic LDS is -1 */
	int64_t scratch_bytes;
	int user_sgprs;	  /* USER_SGPR_COUNT */
	int system_sgprs; /* workgroup ids and info behind them */
	/* Bit n: s(n) has a value at entry.  All ones when not known. */
	uint64_t sgpr_set[2];
	int max_workgroup;    /* work-items, 0 = not known */
	int workgroup_dim[3]; /* exact, 0 = not known */
	bool wgp_mode;

	bool allow[VERIFY_RULE_COUNT]; /* rules not to report */
};

/* One step of a path: a block, and how the next one is reached from it. */
struct verify_step {
	uint64_t addr;	 /* of the block's first instruction */
	const char *how; /* "falls", "taken", "not taken", "call", "" at end */
};

struct verify_finding {
	enum verify_rule rule;
	uint64_t addr;
	const char *text;		/* the instruction */
	const char *what;		/* what is wrong with it here */
	const struct verify_step *path; /* from the entry to `addr` */
	int n_path;
};

struct verify_report {
	struct verify_finding *v; /* ascending by address, then rule */
	int n, cap;
	int n_insns, n_blocks; /* reached from the entry */
	bool lds_of_launch; /* LDS is used whose size is not known */
	struct arena mem;
};

/* ------------------------------------------------------------ verify.c ---- */

/*
 * Verify the code that `in->entry` reaches.  False only for input that cannot
 * be verified at all (another generation, an entry outside the code); faults
 * are findings.  `r` is zero-initialised by the caller.
 */
bool isa_verify(const struct verify_input *in, struct verify_report *r,
		struct err *e);
void verify_report_fini(struct verify_report *r);

const char *verify_rule_name(enum verify_rule rule);
const char *verify_rule_summary(enum verify_rule rule);
const char *verify_rule_remedy(enum verify_rule rule);
/* VERIFY_RULE_COUNT if there is none of that name. */
enum verify_rule verify_rule_find(const char *name);

/* --------------------------------------------------------- verify_co.c ---- */

/* Bare code: nothing is declared, entry at its first byte. */
void verify_input_raw(struct verify_input *in, struct isa_target target,
		      const void *code, size_t size_bytes);
/*
 * Everything that a parsed object says about a kernel.  `co` must outlive
 * *in, which verify_input_fini() frees.
 */
bool verify_input_kernel(struct verify_input *in, const struct co *co,
			 const struct co_kernel *k, struct err *e);
void verify_input_fini(struct verify_input *in);

/* ----------------------------------------------------- verify_report.c ---- */

/* How `t0-isa verify` shows its findings. */
struct verify_show {
	FILE *out;
	struct table *table; /* a row per finding; NULL: text to `out` */
	const char *kernel;  /* only this one; NULL: all */
	const struct cli_list *allow; /* names of rules not to report */
	const char *chip; /* read the code as this chip's, or NULL */
	int wave;	  /* 32 or 64; 0: the kernel's */
	int found;	  /* counts up */
	/* Called with each report, if not NULL; false ends with *e. */
	bool (*verified)(void *ctx, const char *kernel,
			 const struct verify_report *r, struct err *e);
	void *ctx;
};
/* Columns of the table. */
#define VERIFY_COLUMNS "kernel,rule,#address,instruction,finding,path,remedy"

/* Verify the kernels of a code object or offload bundle. */
bool verify_show_object(struct verify_show *show, const void *bytes, size_t len,
			struct err *e);
/* Verify bare machine code from its first byte on. */
bool verify_show_code(struct verify_show *show, struct isa_target target,
		      const void *code, size_t size_bytes, struct err *e);

#endif
