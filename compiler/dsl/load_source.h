/*
 * source - kernels of a C source that uses compiler/dsl/dsl.h, built by the C
 * compiler of the host and loaded into this program.
 *
 *	struct cc_source s;
 *	if (!cc_source_open(&s, "saxpy.c", &e))
 *		...
 *	struct ssa_func *f = cc_source_build(&s, &s.kernel[0], &e);
 *	cc_source_close(&s);
 *
 * The compiler is $CC, else cc, with $CFLAGS; what it says goes to stderr.  The
 * source's own code runs in this program, as a plug-in's would.  The program
 * must show it the functions of the DSL: linked with -rdynamic, and using them.
 * Headers are those of the tree that the program lies in, or was installed to.
 */
#ifndef T0_COMPILER_SOURCE_H
#define T0_COMPILER_SOURCE_H

#include "compiler/dsl/dsl.h"

/* ---------------------------------------------------------- source.c ---- */

struct cc_source {
	const char *path;
	const struct dsl_kernel *kernel; /* [n_kernels], those of the source */
	size_t n_kernels;		 /* 1 or more */
	void *handle;			 /* of the loaded object */
};

/* `path` stays the caller's and must stay. */
bool cc_source_open(struct cc_source *s, const char *path, struct err *e);
void cc_source_close(struct cc_source *s);
/* NULL if there is none of this name. */
const struct dsl_kernel *cc_source_find(const struct cc_source *s,
					const char *name);
/*
 * The caller's function, which outlives the source; else an error that names
 * the line of the source and shows it.
 */
struct ssa_func *cc_source_build(const struct cc_source *s,
				 const struct dsl_kernel *k, struct err *e);

#endif
