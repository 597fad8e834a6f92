/*
 * jit - code objects by what they are for: prebuilt ones, those of earlier
 * runs, and new ones, in this order.
 *
 * The pack is a file of objects that the build embeds in every tool, so that
 * the usual kernels need neither a compiler nor a file at run time.  The cache
 * is a folder of objects that were compiled before: $T0_CACHE, else
 * $XDG_CACHE_HOME/t0, else ~/.cache/t0; an empty T0_CACHE turns it off.
 *
 * A key is a hash of everything that the object depends on: its description,
 * which the caller writes, the compiler's options, the chip and the cost model;
 * in the cache also the build of the compiler, since what one build compiled is
 * not what another would.  A description names the kernel and every parameter
 * of it: "gemv type=bf16 group=128".
 *
 * Any number of threads and processes may use one folder: entries appear whole
 * (rename) and are checked by length and hash when they are read.  One that is
 * damaged is made anew.  A folder that cannot be written costs the time of
 * compiling, no more, and is said once per struct jit.  Each build has a folder
 * of its own in it; a new one removes those that were not used for a month.
 *
 *	struct jit j;
 *	jit_init(&j, say, NULL);
 *	struct jit_object obj;
 *	if (!jit_object(&j, &(struct jit_request){ "tile m=64", &o, build, &p },
 *			&obj, &e))
 *		...
 *	kfd_code_load(dev, obj.bytes, obj.len, &code, &e);
 *	jit_object_fini(&obj);
 *	jit_fini(&j);
 */
#ifndef T0_COMPILER_JIT_H
#define T0_COMPILER_JIT_H

#include <stdatomic.h>

#include "compiler/driver/cc.h"

struct jit_key {
	uint64_t hi, lo;
};

/* ------------------------------------------------------------- jit.c ---- */

typedef struct ssa_func *jit_build_fn(const void *ctx, struct err *e);
typedef void jit_say_fn(void *ctx, const char *text);

struct jit {
	char *folder; /* of this build's entries; NULL: no cache */
	jit_say_fn *say;
	void *say_ctx;
	atomic_bool said;
	atomic_uint compiled; /* objects that were nowhere */
};

enum jit_from { JIT_PACK, JIT_CACHE, JIT_COMPILED };

struct jit_request {
	const char *what; /* the description */
	const struct cc_options *options;
	jit_build_fn *build;
	const void *ctx; /* of build */
};

struct jit_object {
	const uint8_t *bytes; /* the ELF file */
	size_t len;
	enum jit_from from;
	struct buf own; /* where it lies, unless in the pack */
};

/* `say`, or NULL, is told of a cache that does not work. */
void jit_init(struct jit *j, jit_say_fn *say, void *ctx);
void jit_fini(struct jit *j);
/* ERR codes of build and of cc_compile(). */
bool jit_object(struct jit *j, const struct jit_request *r,
		struct jit_object *out, struct err *e);
void jit_object_fini(struct jit_object *o);
const char *jit_from_name(enum jit_from from);
/* The hash of a description and of options; not yet of the build. */
struct jit_key jit_key(const char *what, const struct cc_options *o);

/* ------------------------------------------------------------ pack.c ---- */

/*
 * A pack: the magic, the number of entries, the build that made it, the entries
 * in the order of their keys, the objects.  Equal objects are there once.
 */
struct pack {
	const uint8_t *data; /* NULL: none */
	size_t size_bytes;
};

/* What this program carries; of a program without one, no data. */
struct pack pack_embedded(void);
uint32_t pack_count(const struct pack *p);
/*
 * The build of the compiler that made the pack; without one, of this program.
 */
struct jit_key pack_build(const struct pack *p);
/* The object of a key in place, or NULL. */
const uint8_t *pack_find(const struct pack *p, struct jit_key key,
			 size_t *len_bytes);
/* Magic, order of keys, bounds. */
bool pack_check(const struct pack *p, struct err *e);

/* For the build.  Zero-initialise. */
struct pack_writer {
	struct pack_item {
		struct jit_key key;
		uint64_t at, len; /* in `objects` */
	} *item;
	uint32_t n_items;
	struct buf objects;
};
void pack_add(struct pack_writer *w, struct jit_key key, const void *object,
	      size_t len_bytes);
/* Appends the pack to `out`; ERR_INPUT if two entries have one key. */
bool pack_write(struct pack_writer *w, struct buf *out, struct err *e);
void pack_writer_fini(struct pack_writer *w);

#endif
