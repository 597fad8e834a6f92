/*
 * trees.h - commits of a repository, checked out and built, each in a folder
 * of its own; for bench-commits, bisect and experiment, not for others.
 */
#ifndef T0_RESULTS_TREES_H
#define T0_RESULTS_TREES_H

#include "results/cmd/cmd.h"

struct trees {
	struct show *s;
	char *repository; /* its top folder */
	char *folder;	  /* the trees'; in the user's cache */
	int lock;
};

enum { TREE_COMMIT = 65, TREE_NAME = 24 };

struct tree {
	char commit[TREE_COMMIT];
	char name[TREE_NAME]; /* 12 digits, with a patch + and its hash */
	char key[128];	      /* of what it is built */
	struct buf path;      /* of the folder */
	bool built;
	char reason[256]; /* why not */
};

/* The repository of the working folder; one process at a time. */
bool trees_open(struct trees *t, struct show *s, struct err *e);
/* Removes the trees, unless --keep; after a kill they are found again. */
void trees_close(struct trees *t, bool keep);

/* What git prints for these words, up to NULL, into *out (NULL: nowhere). */
bool trees_git(const struct trees *t, struct buf *out, struct err *e, ...);
bool trees_git_words(const struct trees *t, struct buf *out,
		     const char *const *words,
		     struct err *e);
/* The whole hash of what names a commit. */
bool trees_resolve(const struct trees *t, const char *name,
		   char out[TREE_COMMIT], struct err *e);
/*
 * A tree of `commit` with the patch in a file (NULL: none), built once.  That
 * it cannot be patched or built is no error: tree->built is false.  Zero
 * *tree; end with tree_fini().
 */
bool trees_build(const struct trees *t, const char *commit, const char *patch,
		 struct tree *tree, struct err *e);
void tree_fini(struct tree *tree);
/*
 * A hash of the program at `path` in the tree, without what differs between
 * two builds of the same code: debug information, build id, the commit's name.
 */
bool tree_code(const struct tree *tree, const char *path,
	       char out[RES_IDENTITY], struct err *e);

#endif
