/*
 * backend - the passes behind register allocation, and emission.
 */
#ifndef T0_COMPILER_BACKEND_H
#define T0_COMPILER_BACKEND_H

#include "compiler/mir/mir.h"
#include "compiler/ssa/ssa.h"

/* Hardware registers that an instruction touches, implicit ones included. */
struct mir_touch {
	struct {
		uint8_t file;  /* enum mir_file; VCC, EXEC and M0 are scalars */
		bool read, write;
		uint16_t reg, n;
	} t[MIR_MAX_OPND + 3];
	int n;
};

/* ----------------------------------------------------------- backend.c ---- */

/* After allocation. */
void mir_touches(const struct mir_func *m, const struct mir_inst *i,
		 struct mir_touch *t);
int mir_phys(const struct mir_func *m, const struct mir_opnd *o);
/*
 * Forward dataflow: a state is `size` bytes, ages of what is under way, which
 * are FAR where there is nothing; where paths meet the younger counts.  walk()
 * takes a state through a block, until nothing changes and then once more with
 * `insert`.
 */
enum { MIR_FAR = 255 };
typedef void mir_walk_fn(struct mir_func *m, struct mir_block *b, void *state,
			 bool insert);
void mir_flow_ages(struct mir_func *m, size_t size, mir_walk_fn *walk);
/* Removes branches over bodies that cost less than the branch. */
void mir_flow(struct mir_func *m);
/* Gives registers back while the last stores are under way. */
void mir_end(struct mir_func *m);

/* ------------------------------------------------------------ layout.c ---- */

/* Fewer and cheaper branches; `rotates`: loops test at their bottom. */
void mir_layout(struct mir_func *m, bool rotates);

/* ------------------------------------------------------------- masks.c ---- */

/* Neighbouring masked accesses share the saved mask. */
void mir_masks(struct mir_func *m);

/* ------------------------------------------------------------- waits.c ---- */

/* The fewest wait counts with which every register is there when used. */
void mir_waits(struct mir_func *m);

/* ----------------------------------------------------------- hazards.c ---- */

void mir_hazards(struct mir_func *m);

/* -------------------------------------------------------------- vopd.c ---- */

/* Pairs of vector instructions; before waits and hazards. */
void mir_vopd(struct mir_func *m);

/* ------------------------------------------------------------- delay.c ---- */

void mir_delays(struct mir_func *m);
void mir_clauses(struct mir_func *m);

/* -------------------------------------------------------------- emit.c ---- */

/* Machine code, appended; sets addresses. */
bool mir_encode(struct mir_func *m, const char *chip, struct buf *code,
		struct err *e);
struct cc_kernel {
	const struct ssa_func *f;
	struct mir_func *m;
	const char *chip;
	bool wgp, hidden;
	uint32_t groups; /* bit d: the group id of dimension d is used */
	uint32_t hidden_offset; /* of block counts in the arguments */
};
bool cc_object_build(const struct cc_kernel *k, const struct buf *code,
		     struct buf *out, struct err *e);
bool cc_assembly_build(const struct cc_kernel *k, struct buf *out,
		       struct err *e);

#endif
