/*
 * commits.h - what bench-commits, bisect and experiment share; not for others.
 */
#ifndef T0_RESULTS_COMMITS_H
#define T0_RESULTS_COMMITS_H

#include <wordexp.h>

#include "results/cmd/series.h"
#include "results/cmd/trees.h"

struct commits {
	struct show *s;
	struct trees trees;
	const char *const *words; /* the command; its program is looked up in each tree */
	const char *const *cases; /* only these, up to NULL; NULL: all it measures */
	struct res_shard shard; /* of the cases; count 0: all of them */
	struct calibrations known;
	wordexp_t stored; /* the words, if the database had them */
};

/*
 * c->shard is the caller's, else zero.  `words`: a command whose program every tree has (build/rel/NAME, or NAME
 * alone), or cases, AREA/NAME, for the command of the newest run that has them.
 */
bool commits_open(struct commits *c, struct show *s,
		  const char *const *words, struct err *e);
void commits_close(struct commits *c);

/* One tree that is measured; zero it. */
struct candidate {
	struct tree tree;
	struct buf program, key;
	char code[RES_IDENTITY];
	struct series_side side; /* of a series */
	struct pieces pieces;	 /* what was measured of it */
};
/* Builds; c->tree says whether it could be. */
bool candidate_build(const struct commits *c, struct candidate *k,
		     const char *commit, const char *patch, struct err *e);
void candidate_fini(struct candidate *k);

/*
 * `n` candidates in turns, `processes` each; their pieces are what the series
 * has of them.  The series' label, recalls and until_ns are the caller's.
 */
bool commits_measure(const struct commits *c, struct series *x,
		     struct candidate *const *k, size_t n, struct err *e);
/* b against a, at `alpha` for all rows; end with pairs_fini(). */
bool commits_judge(const struct commits *c, const struct candidate *a,
		   const struct candidate *b, double alpha, struct pairs *out,
		   struct err *e);
#endif
