/*
 * results/db/sql.c - errors, statements and transactions: all that talks to
 * sqlite.
 */
#include "results/db/res.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A batch's rows and age; see res_batch_begin(). */
#define BATCH_ROWS 256
#define BATCH_NS 1000000000u

/* ------------------------------------------------------------ errors -- */

static bool disk_err(struct res_db *db, int rc, struct err *e,
		     const char *doing)
{
	int sys = sqlite3_system_errno(db->sq);

	if (rc == SQLITE_FULL)
		return err_set(e, ERR_IO,
			       "%s: disk full while %s; everything committed "
			       "before is kept; free some space and run again",
			       db->path, doing);
	return err_sys(e, ERR_IO, sys,
		       "%s: disk error while %s (sqlite code %d); everything "
		       "committed before is kept; check the disk, quotas and "
		       "size limits", db->path, doing,
		       sqlite3_extended_errcode(db->sq));
}

static bool damaged_err(struct res_db *db, struct err *e, const char *doing)
{
	return err_set(e, ERR_INPUT,
		       "%s: damaged (%s, while %s); restore a copy, or save "
		       "what is left: sqlite3 '%s' .recover | sqlite3 new.db",
		       db->path, sqlite3_errmsg(db->sq), doing, db->path);
}

static bool readonly_err(struct res_db *db, struct err *e, const char *doing)
{
	return err_set(e, ERR_PERM,
		       "%s: may not be written (%s, while %s); check the "
		       "permissions of the file and of its folder, or name "
		       "another file with --db or T0_DB",
		       db->path, sqlite3_errmsg(db->sq), doing);
}

/*
 * Why the folder cannot take a file; 0: it can.  Access is that of the
 * effective user.  (sqlite tries again to read, and then says that there is no
 * such file.)
 */
static int folder_errno(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";
	struct stat s;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s",
			 slash == path ? 1 : (int)(slash - path), path);
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) && errno != ENOENT)
		return 0; /* it is the file */
	if (stat(folder, &s))
		return errno;
	if (!S_ISDIR(s.st_mode))
		return ENOTDIR;
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) ? errno : 0;
}

static bool cantopen_err(struct res_db *db, struct err *e, const char *doing)
{
	const int folder = folder_errno(db->path);

	if (folder)
		return err_sys(e, ERR_PERM, folder,
			       "%s: its folder cannot take a new file; check "
			       "that the folder exists and may be written, or "
			       "name another file with --db or T0_DB",
			       db->path);
	return err_sys(e, ERR_PERM, sqlite3_system_errno(db->sq),
		       "%s: sqlite cannot open it or create %s-wal and -shm "
		       "beside it (%s); check that the folder exists and may "
		       "be written, or name another file with --db or T0_DB",
		       db->path, db->path, doing);
}

bool res_sql_err(struct res_db *db, int rc, struct err *e, const char *doing)
{
	const char *msg = sqlite3_errmsg(db->sq);

	switch (rc & 0xff) {
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return disk_err(db, rc & 0xff, e, doing);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return damaged_err(db, e, doing);
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return readonly_err(db, e, doing);
	case SQLITE_CANTOPEN:
		return cantopen_err(db, e, doing);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_BUSY,
			       "%s: another process held it for %d s while %s; "
			       "wait for that tool or end it",
			       db->path, RES_BUSY_MS / 1000, doing);
	case SQLITE_INTERRUPT:
		return err_set(e, ERR_STOPPED, "%s: left while %s", db->path,
			       doing);
	case SQLITE_NOMEM:
		return err_set(e, ERR_NOMEM, "%s: %s", db->path, msg);
	case SQLITE_CONSTRAINT:
		return err_set(e, ERR_USAGE, "%s: refused: %s", db->path, msg);
	default:
		return err_set(e, ERR_USAGE, "%s: %s (while %s)", db->path, msg,
			       doing);
	}
}

/* -------------------------------------------------------- statements -- */

sqlite3_stmt *res_stmt_bare(struct res_db *db, struct err *e, const char *sql)
{
	sqlite3_stmt *st;

	/* A busy one belongs to a caller whose callback came back here. */
	for (int i = 0; i < db->n_stmt; i++)
		if (!sqlite3_stmt_busy(db->stmt[i]) &&
		    !strcmp(sqlite3_sql(db->stmt[i]), sql))
			return db->stmt[i];
	int rc = sqlite3_prepare_v3(db->sq, sql, -1, SQLITE_PREPARE_PERSISTENT,
				    &st, NULL);
	if (rc != SQLITE_OK) {
		res_sql_err(db, rc, e, "preparing a statement");
		return NULL;
	}
	db->stmt = xrealloc(db->stmt, (size_t)(db->n_stmt + 1) *
			    sizeof(*db->stmt));
	db->stmt[db->n_stmt++] = st;
	return st;
}

static int bind_text(sqlite3_stmt *st, int i, const char *s)
{
	return s ? sqlite3_bind_text(st, i, s, -1, SQLITE_TRANSIENT) :
		   sqlite3_bind_null(st, i);
}

static int bind_one(sqlite3_stmt *st, int i, char letter, va_list *ap)
{
	const char *s;
	int64_t n;

	switch (letter) {
	case 't':
		return bind_text(st, i, va_arg(*ap, const char *));
	case 's':
		s = va_arg(*ap, const char *);
		return bind_text(st, i, s ? s : "");
	case 'i':
		return sqlite3_bind_int64(st, i, va_arg(*ap, int64_t));
	case 'k':
		n = va_arg(*ap, int64_t);
		return n ? sqlite3_bind_int64(st, i, n) :
			   sqlite3_bind_null(st, i);
	case 'd': /* sqlite stores NaN as NULL */
		return sqlite3_bind_double(st, i, va_arg(*ap, double));
	}
	BUG("unknown bind letter '%c'", letter);
}

sqlite3_stmt *res_stmt_v(struct res_db *db, struct err *e, const char *sql,
			 const char *binds, va_list ap)
{
	sqlite3_stmt *st = res_stmt_bare(db, e, sql);
	int rc = SQLITE_OK;
	va_list args;

	if (!st)
		return NULL;
	if (sqlite3_bind_parameter_count(st) != (int)strlen(binds))
		BUG("%zu values for: %s", strlen(binds), sql);
	va_copy(args, ap);
	for (int i = 0; binds[i] && rc == SQLITE_OK; i++)
		rc = bind_one(st, i + 1, binds[i], &args);
	va_end(args);
	if (rc == SQLITE_OK)
		return st;
	res_sql_err(db, rc, e, "passing values");
	res_stmt_done(st);
	return NULL;
}

sqlite3_stmt *res_stmt(struct res_db *db, struct err *e, const char *sql,
		       const char *binds, ...)
{
	va_list ap;

	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql, binds, ap);
	va_end(ap);
	return st;
}

void res_stmt_done(sqlite3_stmt *st)
{
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}

static const char *doing_what(const struct res_db *db, sqlite3_stmt *st)
{
	/* COMMIT counts as read-only, but returns no columns. */
	if (sqlite3_stmt_readonly(st) && sqlite3_column_count(st))
		return "reading";
	return db->batch ? "storing a batch of rows" : "storing a row";
}

bool res_step(struct res_db *db, sqlite3_stmt *st, bool *ok, struct err *e)
{
	int rc = sqlite3_step(st);

	*ok = rc == SQLITE_ROW || rc == SQLITE_DONE;
	if (!*ok)
		res_sql_err(db, rc, e, doing_what(db, st));
	return rc == SQLITE_ROW;
}

static bool step_to_end(struct res_db *db, sqlite3_stmt *st, struct err *e)
{
	bool ok;

	while (res_step(db, st, &ok, e))
		;
	res_stmt_done(st);
	return ok;
}

bool res_exec(struct res_db *db, struct err *e, const char *sql,
	      const char *binds, ...)
{
	va_list ap;

	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql, binds, ap);
	va_end(ap);
	return st && step_to_end(db, st, e);
}

bool res_query_int(struct res_db *db, int64_t *out, struct err *e,
		   const char *sql, const char *binds, ...)
{
	bool ok;
	va_list ap;

	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql, binds, ap);
	va_end(ap);
	if (!st)
		return false;
	int64_t value = res_step(db, st, &ok, e) ? sqlite3_column_int64(st, 0)
						 : 0;
	res_stmt_done(st);
	if (ok)
		*out = value;
	return ok;
}

void res_real(char out[40], double value)
{
	for (int d = 15; d <= 17; d++) {
		snprintf(out, 40, "%.*g", d, value);
		if (strtod(out, NULL) == value)
			break;
	}
}

static void real_cell(struct table *t, int col, double value, int digits)
{
	char text[40];

	if (digits)
		snprintf(text, sizeof(text), "%.*g", digits, value);
	else
		res_real(text, value);
	table_cell(t, col, "%s", text);
}

static void row_cells(struct table *t, sqlite3_stmt *st, int digits)
{
	table_row(t);
	for (int c = 0; c < t->n_cols; c++) {
		switch (sqlite3_column_type(st, c)) {
		case SQLITE_NULL:
			break;
		case SQLITE_FLOAT:
			real_cell(t, c, sqlite3_column_double(st, c), digits);
			break;
		default:
			table_cell(t, c, "%s",
				   (const char *)sqlite3_column_text(st, c));
		}
	}
}

bool res_query(struct res_db *db, struct table *t, int digits, struct err *e,
	       const char *sql, const char *binds, ...)
{
	bool ok;
	va_list ap;

	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql, binds, ap);
	va_end(ap);
	if (!st)
		return false;
	if (sqlite3_column_count(st) != t->n_cols)
		BUG("%d columns for a table of %d: %s",
		    sqlite3_column_count(st), t->n_cols, sql);
	while (res_step(db, st, &ok, e))
		row_cells(t, st, digits);
	res_stmt_done(st);
	return ok;
}

/* ------------------------------------------------------ transactions -- */

static bool exec_simple(struct res_db *db, const char *sql, struct err *e)
{
	return res_exec(db, e, sql, "");
}

/* Undo what is open, if sqlite has not done so itself. */
static void roll_back(struct res_db *db)
{
	if (!sqlite3_get_autocommit(db->sq))
		exec_simple(db, "ROLLBACK", NULL);
	db->batch_rows = 0;
}

static bool end_transaction(struct res_db *db, struct err *e)
{
	db->batch_rows = 0;
	if (exec_simple(db, "COMMIT", e))
		return true;
	roll_back(db);
	return false;
}

bool res_write_begin(struct res_db *db, struct err *e)
{
	if (sqlite3_get_autocommit(db->sq)) {
		/* IMMEDIATE: wait for the lock now, not after a read. */
		if (!exec_simple(db, "BEGIN IMMEDIATE", e))
			return false;
		db->batch_rows = 0;
		db->batch_start_ns = time_mono_ns();
	}
	return exec_simple(db, "SAVEPOINT one_call", e);
}

bool res_write_end(struct res_db *db, bool ok, struct err *e)
{
	if (!ok && sqlite3_get_autocommit(db->sq)) {
		db->batch_rows = 0;
		return false;
	}
	if (!ok)
		exec_simple(db, "ROLLBACK TO one_call", NULL);
	ok = exec_simple(db, "RELEASE one_call", e) && ok;
	if (!db->batch && !db->whole && !ok) {
		roll_back(db);
		return false;
	}
	db->batch_rows += ok;
	if (db->whole)
		return ok;
	if (!db->batch || db->batch_rows >= BATCH_ROWS ||
	    time_mono_ns() - db->batch_start_ns >= BATCH_NS)
		return end_transaction(db, e) && ok;
	return ok;
}

void res_batch_begin(struct res_db *db)
{
	db->batch = true;
}

bool res_batch_commit(struct res_db *db, struct err *e)
{
	return db->whole || sqlite3_get_autocommit(db->sq) ||
	       end_transaction(db, e);
}

bool res_batch_end(struct res_db *db, struct err *e)
{
	db->batch = false;
	return res_batch_commit(db, e);
}

static bool find_id(struct res_db *db, int64_t *id, struct err *e,
		    const char *sql, const char *binds, va_list ap)
{
	bool ok;
	sqlite3_stmt *st = res_stmt_v(db, e, sql, binds, ap);

	if (!st)
		return false;
	*id = res_step(db, st, &ok, e) ? sqlite3_column_int64(st, 0) : 0;
	res_stmt_done(st);
	return ok;
}

bool res_upsert(struct res_db *db, int64_t *id, struct err *e,
		const char *select, const char *insert, const char *binds, ...)
{
	va_list ap;

	va_start(ap, binds);
	bool ok = find_id(db, id, e, select, binds, ap);
	if (ok && !*id && (ok = res_write_begin(db, e))) {
		sqlite3_stmt *st = res_stmt_v(db, e, insert, binds, ap);
		ok = st && step_to_end(db, st, e) &&
		     find_id(db, id, e, select, binds, ap);
		ok = res_write_end(db, ok, e);
	}
	va_end(ap);
	return ok;
}
