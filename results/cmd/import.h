/*
 * import.h - what the readers of an export's lines share; not for others.
 *
 * Columns are a letter for the type, then the name, which is that of the table
 * and of the JSON object alike: 't' text, 'n' text or null, 'i' integer, 'j'
 * integer or null, 'd' real or null.  In upper case they may be missing or null.
 * Lists of them end with NULL.
 */
#ifndef T0_RESULTS_IMPORT_H
#define T0_RESULTS_IMPORT_H

#include <jansson.h>

#include "results/cmd/cmd.h"

struct res_import {
	struct res_db *db;
	int64_t line;	/* of the input, from 1 */
	int64_t run;	/* that the following lines belong to */
	bool unnamed;	/* its hashes do not name their algorithm */
	bool known_run; /* it was here before: only new verdicts are taken */
	int64_t runs, known;
	struct err *e;
};

/* Columns that the object does not hold: ids of this file, 0 = NULL. */
struct import_fixed {
	const char *name; /* NULL: the end */
	int64_t value;
};

/* ------------------------------------------------------------ import.c -- */

extern const struct import_fixed import_none[];
/* Sets im->e; returns false. */
bool import_bad_value(struct res_import *im, const char *name,
		      const char *wanted);
/*
 * Bind the fixed values, then the columns, and step once; *id (may be NULL) is
 * the first column of a row, if there is one.
 */
bool import_step(struct res_import *im, const char *sql,
		 const struct import_fixed *fixed, const char *const *column,
		 const json_t *row, int64_t *id);
bool import_insert(struct res_import *im, const char *table,
		   const struct import_fixed *fixed, const char *const *column,
		   const json_t *row);
/* Is such a row here?  *id is 0 if not.  NULL finds NULL. */
bool import_find(struct res_import *im, const char *table,
		 const struct import_fixed *fixed, const char *const *column,
		 const json_t *row, int64_t *id);

/* Takes the lines of an export one by one, in their order. */
struct res_import *import_new(struct res_db *db, struct err *e);
bool import_line(struct res_import *im, const char *line, size_t len,
		 struct err *e);
/* Commits (ok) or drops everything and frees; tells what was added. */
bool import_end(struct res_import *im, bool ok, int64_t *runs, int64_t *known,
		struct err *e);

/* ------------------------------------------------------ import_tunes.c -- */

/* A check is taken once of each run. */
bool import_check(struct res_import *im, const json_t *row);
/*
 * Of two decisions about one configuration under one key that stays which is
 * proven further: a winner, before code that passed its check, before code that
 * failed one, before what was timed and never checked, before what was not
 * timed; then the one of more samples, then the faster.  Of two winners of a
 * key the faster stays, then the newer.
 */
bool import_tune(struct res_import *im, const json_t *row);

#endif
