/*
 * experiment.h - changes that are tried, and what came of each; for
 * cmd_experiment.c and experiments.c, not for others.
 */
#ifndef T0_RESULTS_EXPERIMENT_H
#define T0_RESULTS_EXPERIMENT_H

#include "results/cmd/commits.h"

enum change_kind { CHANGE_COMMIT, CHANGE_PATCH, CHANGE_ENV, CHANGE_ARGS };

/* A line of the list. */
struct change {
	enum change_kind kind;
	const char *what; /* a commit, a patch's file, words */
	const char *hypothesis;
	const char *content; /* the commit's hash, the patch, the words */
};

/* What came of it. */
struct outcome {
	const char *verdict; /* keep, discard, crash; NULL: not tried */
	const char *reason;
	/* The row that decided; "" without one. */
	const char *row;
	/* Shares that were gained, whichever direction is better. */
	double gain, lo, hi, p;
	bool known; /* from the database */
};

/* Everything they point to. */
struct changes {
	struct arena mem;
	struct change *v;
	size_t n, cap;
};

/*
 * Lines "KIND WHAT : HYPOTHESIS", # begins a comment; patches are read.  The
 * hypothesis may be missing.
 */
bool changes_read(struct changes *l, const char *path, struct err *e);
void changes_fini(struct changes *l);
const char *change_kind_name(enum change_kind k);

/*
 * Rows of the database: what `evaluator` said of the change to `base` in so
 * many processes.  o->verdict stays NULL if nothing did.
 */
struct experiment_key {
	const char *evaluator, *base;
	size_t processes;
};
bool experiment_find(struct res_db *db, const struct experiment_key *key,
		     const struct change *c, struct arena *mem,
		     struct outcome *o, struct err *e);
bool experiment_store(struct res_db *db, const struct experiment_key *key,
		      const struct change *c, const struct outcome *o,
		      struct err *e);

#endif
