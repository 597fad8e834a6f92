/*
 * mutants - waits and barriers taken out of right kernels, and who notices.
 *
 * A mutant is a kernel of which one s_waitcnt is removed or weakened by one,
 * or one s_barrier removed.  It matters if the late executor (tests/ref/late.h)
 * stores another result in some order of waves; it is found if the verifier
 * objects, or the checked run of t0-run reports.
 */
#ifndef T0_TESTS_REF_MUTANTS_H
#define T0_TESTS_REF_MUTANTS_H

#include "base/base.h"

enum mutant_kind { MUTANT_REMOVED, MUTANT_WEAKENED, MUTANT_BARRIER,
		   MUTANT_KINDS };

struct mutant_counts {
	int made, matter, by_verifier, by_run, missed;
};

struct mutants {
	int per_kernel;	  /* barriers, and as many waits; at random places */
	uint64_t seed;
	const char *dir;  /* for objects and logs */
	const char *save; /* what is added to the names of saved buffers */
	void (*say)(const char *text); /* what was missed, or NULL */
	int kernels;
	struct mutant_counts count[MUTANT_KINDS];
};

/*
 * One kernel, as a line of words separated by tabs: a name, --lds, --grid and
 * --block as t0-run has them, object, kernel, arguments.  False and *e: it
 * cannot run, or the unchanged kernel's result depends on the order.
 */
bool mutants_run(struct mutants *m, const char *line, struct err *e);

#endif
