/*
 * driver - from SSA to a verified code object, and where finished ones are
 * kept.
 *
 * cc_compile() is the compiler's one entry; object_cache_get() avoids it where
 * it can.
 *
 *	struct cc_options o;
 *	cc_options_init(&o);
 *	struct cc_object obj;
 *	if (!cc_compile(f, &o, &obj, &e)) // f: SSA text, or made by the DSL
 *		return err_wrap(&e, "saxpy");
 *	file_write_atomic("saxpy.co", obj.bytes.data, obj.bytes.len, &e);
 *	cc_object_fini(&obj);
 *
 * Stages: ssa_optimize() (level), selection into machine instructions with
 * virtual registers, scheduling by the cost model, register allocation and
 * spilling, wait counts, VOPD pairs, hazards and delays, encoding, code object,
 * verification.  An object that the verifier (isa/verify/verify.h) finds fault
 * with is never returned.  All functions are thread-safe on different
 * functions.
 */
#ifndef T0_COMPILER_CC_H
#define T0_COMPILER_CC_H

#include <stdatomic.h>

#include "base/base.h"
#include "compiler/ssa/ssa.h"
#include "isa/tables/tables.h"

struct cost_model; /* compiler/cost/cost.h */

/* Called after each stage with its text: "ssa:PASS", "select", "final", ... */
typedef void cc_dump_fn(void *ctx, const char *stage, const char *text);

struct cc_options {
	const char *chip; /* "gfx1100"; a row of chips.def */
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

/* ------------------------------------------------------ object_cache.c ---- */

/*
 * Code objects by what they are for: prebuilt ones, those of earlier runs, and
 * new ones, in this order.
 *
 * The pack of prebuilt objects is a file that the build embeds in every tool,
 * so that the usual kernels need neither a compiler nor a file at run time.
 * The cache is a folder of objects that were compiled before: $T0_CACHE, else
 * $XDG_CACHE_HOME/t0, else ~/.cache/t0; an empty T0_CACHE turns it off.
 *
 * A key is a hash of everything that the object depends on: its description,
 * which the caller writes, the compiler's options, the chip and the cost model;
 * in the cache also the build of the compiler, since what one build compiled is
 * not what another would.  A description names the kernel and every parameter
 * of it: "gemv type=bf16 group=128".
 *
 * Any number of threads and processes may use one folder: entries appear whole
 * (rename) and are checked by length and hash when they are read.  A damaged
 * one is compiled again.  A folder that cannot be written costs the time of
 * compiling, no more, and is reported once per struct object_cache.  Each build
 * has a folder of its own in it; a new one removes those that were not used for
 * a month.
 *
 *	struct object_cache c;
 *	object_cache_init(&c, warn, NULL);
 *	struct cache_object obj;
 *	if (!object_cache_get(&c, &(struct object_request){ "tile m=64", &o,
 *			      build, &p }, &obj, &e))
 *		...
 *	kfd_code_load(dev, obj.bytes, obj.len, &code, &e);
 *	cache_object_fini(&obj);
 *	object_cache_fini(&c);
 */
struct object_key {
	uint64_t hi, lo;
};

typedef struct ssa_func *object_build_fn(const void *ctx, struct err *e);
typedef void object_warn_fn(void *ctx, const char *text);

struct object_cache {
	char *folder; /* of this build's entries; NULL: no cache */
	object_warn_fn *warn;
	void *warn_ctx;
	atomic_bool warned;
	atomic_uint compiled; /* objects that were nowhere */
};

enum object_from { OBJECT_PREBUILT, OBJECT_CACHED, OBJECT_COMPILED };

struct object_request {
	const char *what; /* the description */
	const struct cc_options *options;
	object_build_fn *build;
	const void *ctx; /* of build */
};

struct cache_object {
	const uint8_t *bytes; /* the ELF file */
	size_t len;
	enum object_from from;
	struct buf own; /* where it lies, unless in the pack */
};

/* `warn`, or NULL, is told of a cache that does not work. */
void object_cache_init(struct object_cache *c, object_warn_fn *warn, void *ctx);
void object_cache_fini(struct object_cache *c);
/* ERR codes of build and of cc_compile(). */
bool object_cache_get(struct object_cache *c, const struct object_request *r,
		      struct cache_object *out, struct err *e);
void cache_object_fini(struct cache_object *o);
const char *object_from_name(enum object_from from);
/* The hash of a description and of options; not yet of the build. */
struct object_key object_key_hash(const char *what, const struct cc_options *o);

/* ---------------------------------------------------------- prebuilt.c ---- */

/*
 * A pack: the magic, the number of entries, the build that made it, the entries
 * in the order of their keys, the objects.  Equal objects are there once.
 */
struct prebuilt {
	const uint8_t *data; /* NULL: none */
	size_t size_bytes;
};

/* What this program carries; of a program without one, no data. */
struct prebuilt prebuilt_embedded(void);
uint32_t prebuilt_count(const struct prebuilt *p);
/*
 * The build of the compiler that made the pack; without one, of this program.
 */
struct object_key prebuilt_build(const struct prebuilt *p);
/* The object of a key in place, or NULL. */
const uint8_t *prebuilt_find(const struct prebuilt *p, struct object_key key,
			     size_t *len_bytes);
/* Magic, order of keys, bounds. */
bool prebuilt_check(const struct prebuilt *p, struct err *e);

/* For the build.  Zero-initialise. */
struct prebuilt_writer {
	struct prebuilt_item {
		struct object_key key;
		uint64_t at, len; /* in `objects` */
	} * item;
	uint32_t n_items, cap_items;
	struct buf objects;
};
void prebuilt_add(struct prebuilt_writer *w, struct object_key key,
		  const void *object, size_t len_bytes);
/* Appends the pack to `out`; ERR_INPUT if two entries have one key. */
bool prebuilt_write(struct prebuilt_writer *w, struct buf *out, struct err *e);
void prebuilt_writer_fini(struct prebuilt_writer *w);

#endif
