/*
 * cc - from SSA to a verified code object: the compiler's one entry.
 *
 *	struct cc_options o;
 *	cc_options_init(&o);
 *	struct cc_object obj;
 *	if (!cc_compile(f, &o, &obj, &e))	// f: compiler/ssa/ssa.h, or the DSL
 *		return err_wrap(&e, "saxpy");
 *	file_write_atomic("saxpy.co", obj.bytes.data, obj.bytes.len, &e);
 *	cc_object_fini(&obj);
 *
 * Stages: ssa_optimize() (level), selection into machine instructions with
 * virtual registers, scheduling by the cost model, register allocation and
 * spilling, wait counts, VOPD pairs, hazards and delays, encoding, code object,
 * verification.  An object that the verifier (isa/verify/verify.h) finds fault with is
 * never returned.  All functions are thread-safe on different functions.
 */
#ifndef T0_COMPILER_CC_H
#define T0_COMPILER_CC_H

#include "base/base.h"
#include "compiler/ssa/ssa.h"
#include "isa/tables/tables.h"

struct cost_model; /* compiler/cost/cost.h */

/* Called after each stage with its text: "ssa:PASS", "select", "final", ... */
typedef void cc_dump_fn(void *ctx, const char *stage, const char *text);

struct cc_options {
	const char *chip;	/* "gfx1100" */
	int level;		/* 0..3 */
	uint32_t max_vgprs;	/* per lane, 0 = 256 */
	uint32_t waves;		/* per SIMD, to aim at; 0 = let it choose */
	/* WGP mode, or CU mode; neither: as its size and LDS ask for. */
	bool wgp, cu;
	bool no_verify;		/* only for tests of the verifier itself */
	const struct cost_model *costs; /* NULL: the defaults */
	cc_dump_fn *dump;
	void *dump_ctx;
};
void cc_options_init(struct cc_options *o);

/* What came out; launch parameters are in the object's descriptor alone. */
struct cc_stats {
	uint32_t vgprs, sgprs, lds_bytes, scratch_bytes, spills, code_bytes;
	uint32_t waves_per_simd;
	uint32_t insts, valu, salu, vmem, smem, lds, wmma, vopd, waits,
		branches;
};

struct cc_object {
	struct buf bytes; /* the ELF file */
	struct cc_stats stats;
};
bool cc_compile(const struct ssa_func *f, const struct cc_options *o,
		struct cc_object *out, struct err *e);
/* The same as assembly text that `t0-isa asm` accepts, appended to `out`. */
bool cc_assembly(const struct ssa_func *f, const struct cc_options *o,
		 struct buf *out, struct err *e);
void cc_object_fini(struct cc_object *obj);

#endif
