/*
 * res.h - what the files of results/ share; not for other folders.
 *
 * Statements are named by their SQL text and prepared once per handle.  Values
 * are bound by a letter each, as in res_query(), and two more:
 *   't' const char *  NULL = SQL NULL     's' const char *  NULL = ''
 *   'i' int64_t                           'k' int64_t       0 = SQL NULL
 *   'd' double        NaN = SQL NULL
 * Integers must be int64_t at the call: the compiler cannot check them.
 */
#ifndef T0_RES_H
#define T0_RES_H

#include <sqlite3.h>

#include "results/db/results.h"

/* "T0db" in the file's header: tells our files from other sqlite ones. */
#define RES_APPLICATION_ID 0x54306462
/* How long a tool waits for another one's commit. */
#define RES_BUSY_MS 30000

struct res_db {
	sqlite3 *sq;
	char *path;
	bool read_only;
	sqlite3_stmt **stmt; /* [n_stmt], found by sqlite3_sql() */
	int n_stmt;
	bool batch;		 /* between res_batch_begin() and _end() */
	bool whole;		 /* in a run that is stored as a whole */
	int batch_rows;		 /* rows of the open transaction */
	uint64_t batch_start_ns; /* of its first row, monotonic */
};

/* --------------------------------------------------------------- sql.c -- */

/* Set *e from sqlite's code and message, with path, meaning and remedy. */
bool res_sql_err(struct res_db *db, int rc, struct err *e, const char *doing);

/* A cached statement with its values bound, ready to step; NULL = error. */
sqlite3_stmt *res_stmt(struct res_db *db, struct err *e, const char *sql,
		       const char *binds, ...);
sqlite3_stmt *res_stmt_v(struct res_db *db, struct err *e, const char *sql,
			 const char *binds, va_list ap);
/* The same with nothing bound yet. */
sqlite3_stmt *res_stmt_bare(struct res_db *db, struct err *e, const char *sql);
/* End with the statement: it holds a read lock until then. */
void res_stmt_done(sqlite3_stmt *st);
/* Next row?  false at the end and on error; then *ok tells which. */
bool res_step(struct res_db *db, sqlite3_stmt *st, bool *ok, struct err *e);
/* Run a statement that returns no rows. */
bool res_exec(struct res_db *db, struct err *e, const char *sql,
	      const char *binds, ...);

/* As few digits as read back as the same number. */
void res_real(char out[40], double value);

/*
 * Bracket every write: one call's rows are stored together or not at all,
 * inside a batch or not.  res_write_end() takes and returns whether all went
 * well.
 */
bool res_write_begin(struct res_db *db, struct err *e);
bool res_write_end(struct res_db *db, bool ok, struct err *e);

/*
 * The id of the row that `select` finds; `insert` makes it if there is none
 * (ON CONFLICT DO NOTHING: another process may be quicker).  Both take the
 * same values.
 */
bool res_upsert(struct res_db *db, int64_t *id, struct err *e,
		const char *select, const char *insert, const char *binds, ...);

/* ------------------------------------------------------------ schema.c -- */

/* The newest version this build knows. */
int res_schema_version(void);
/* Bring an open file from its version to the newest. */
bool res_schema_upgrade(struct res_db *db, struct err *e);
/* Is it T0's, not newer, and whole enough to read?  *version is its own. */
bool res_schema_check(struct res_db *db, int *version, struct err *e);

/* ------------------------------------------------------------- runs.c -- */

/* 128 random bits in hex, so that merged files never confuse two rows. */
bool res_uuid(char out[33], struct err *e);

/* -------------------------------------------------------- provenance.c -- */

/* Names this process so that others can see whether it still lives. */
void res_owner_self(char *out, size_t size_bytes);
bool res_owner_alive(const char *owner);

#endif
